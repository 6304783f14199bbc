/* The CUDA sources of elementwise expressions, of their reductions and of softmax: each function has one, the longest
 * expressions fit, and NVRTC compiles them for the architectures of release builds, if it is here.  No GPU is needed. */
#include <CUnit/CUnit.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "elementwise/fused_source.h"
#include "op_list/binary.h"
#include "op_list/reduce.h"

enum { SOURCE = 1 << 14 };

/* ---- NVRTC, by its interface ------------------------------------------------------------------------------------- */

typedef struct _nvrtcProgram *program;
static struct {
	int (*create)(program *, const char *, const char *, int, const char *const *, const char *const *);
	int (*compile)(program, int, const char *const *);
	int (*log_size)(program, size_t *);
	int (*log)(program, char *);
	int (*code_size)(program, size_t *);
	int (*destroy)(program *);
} rtc;

static bool find_rtc(void)
{
	static const char *const names[] = {"nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcGetProgramLogSize",
	                                    "nvrtcGetProgramLog", "nvrtcGetCUBINSize",   "nvrtcDestroyProgram"};
	static const char *const files[] = {"libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"};
	void *library = NULL;
	for (size_t i = 0; i < sizeof files / sizeof *files && !library; i++) library = dlopen(files[i], RTLD_NOW);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		void *f = library ? dlsym(library, names[i]) : NULL;
		if (!f) return false;
		memcpy((char *)&rtc + i * sizeof f, &f, sizeof f);
	}
	return true;
}

static void compile(const char *source, const char *arch)
{
	enum { MOST = 16 };
	const char *names[MOST], *texts[MOST], *options[] = {arch, "--fmad=false", "--std=c++17"};
	static char log[4000];
	size_t bytes = 0;
	program p;
	int n = 0;
	for (; slp_fused_headers[n].name; n++)
		names[n] = slp_fused_headers[n].name, texts[n] = slp_fused_headers[n].text;
	CHECK(rtc.create(&p, source, "kernel.cu", n, texts, names) == 0);
	int status = rtc.compile(p, 3, options);
	if (status != 0 && rtc.log_size(p, &bytes) == 0 && bytes < sizeof log) rtc.log(p, log);
	CHECK_SAYING(status == 0, "%s: %s\n%s", arch, log, source);
	bytes = 0;
	CHECK(status != 0 || (rtc.code_size(p, &bytes) == 0 && bytes > 0));
	rtc.destroy(&p);
}

/* ---- sources ----------------------------------------------------------------------------------------------------- */

/* An expression of as many functions as it holds, from `code` on; the first that is not in it. */
static int chain_from(int code, struct slp_fused_attrs *f)
{
	memset(f, 0, sizeof *f);
	for (int i = 0; i < SLP_FUSED_STEPS && code < SLP_FUSED_CODES; i++, code++) {
		int last = i ? SLP_FUSED_RESULT + i - 1 : SLP_FUSED_INPUT;
		f->step[i] = code | last << 8 |
		             (i % 2 ? SLP_FUSED_NUMBER + i % SLP_FUSED_NUMBERS : SLP_FUSED_INPUT + 1) << 16;
	}
	return code;
}

/* Operands of a matrix: one read in each of the ways. */
static struct slp_fused_plan plan_of(enum sl_dtype type, enum slp_fused_reading how)
{
	struct slp_fused_plan p = {.dtype = type,
	                           .width = slp_fused_width(type),
	                           .nin = 2,
	                           .ndim = 2,
	                           .aligned = true,
	                           .n = 960,
	                           .dim = {20, 48}};
	p.how[0] = SLP_FUSED_GAPLESS;
	p.how[1] = how;
	p.stride[0][0] = 48, p.stride[0][1] = 1;
	p.stride[1][1] = how == SLP_FUSED_SPLAT ? 0 : 1;
	return p;
}

static void of_type(enum sl_dtype type, int first, int end, const char *arch)
{
	static char source[SOURCE];
	struct slp_fused_attrs f;
	for (int code = first; code < end;) {
		struct slp_fused_plan p = plan_of(type, (enum slp_fused_reading)(code % (SLP_FUSED_SINGLE + 1)));
		code = chain_from(code, &f);
		CHECK_SAYING(slp_fused_source(&f, &p, source, sizeof source), "functions below %d have no source",
		             code);
		if (rtc.create) compile(source, arch);
	}
}

static void test_functions(void)
{
	bool all = slp_long();
	if (!find_rtc()) printf("(no NVRTC: sources are only written) ");
	of_type(SL_FLOAT32, 1, SLP_FUSED_CODES, "--gpu-architecture=sm_90");
	of_type(SL_FLOAT64, 1, all ? SLP_FUSED_CODES : 2, "--gpu-architecture=sm_80");
	of_type(SL_BFLOAT16, 1, all ? SLP_FUSED_CODES : 2, "--gpu-architecture=sm_80");
	of_type(SL_FLOAT16, 1, all ? SLP_FUSED_CODES : 2, "--gpu-architecture=sm_80");
}

/* Coefficients in float32 beside a half type, read in each of the ways. */
static void test_beside_halves(void)
{
	static char source[SOURCE];
	struct slp_fused_attrs f;
	chain_from(1, &f);
	for (int how = SLP_FUSED_GAPLESS; how <= SLP_FUSED_SINGLE; how++) {
		struct slp_fused_plan p = plan_of(how % 2 ? SL_FLOAT16 : SL_BFLOAT16, (enum slp_fused_reading)how);
		p.wide[1] = true;
		CHECK(slp_fused_source(&f, &p, source, sizeof source));
		if (rtc.create) compile(source, "--gpu-architecture=sm_90");
	}
}

/* The most inputs, all broadcast over the most axes, and the longest functions. */
static void test_longest(void)
{
	static char source[SOURCE], less[1000];
	struct slp_fused_attrs f = {{0}, {0}};
	struct slp_fused_plan p = {.dtype = SL_FLOAT32, .width = 4, .nin = SLP_FUSED_INPUTS, .ndim = SL_MAX_NDIM};
	p.n = 1 << 30;
	for (int i = 0; i < SLP_FUSED_STEPS; i++)
		f.step[i] = (i % 2 ? SLP_FUSED_gelu_tanh_grad : SLP_FUSED_gelu_grad) | (SLP_FUSED_INPUT + i) << 8 |
		            (SLP_FUSED_INPUT + i + 1) << 16;
	for (int i = 0; i < p.nin; i++) {
		p.how[i] = SLP_FUSED_SINGLE;
		for (int axis = 0; axis < p.ndim; axis++) p.dim[axis] = 32, p.stride[i][axis] = axis % 2 ? 0 : 1 << 20;
	}
	CHECK(slp_fused_source(&f, &p, source, sizeof source));
	CHECK(!slp_fused_source(&f, &p, less, sizeof less));
	if (rtc.create) compile(source, "--gpu-architecture=sm_90");
}

/* An expression of (height, width) reduced along an axis. */
static void of_reduction(struct slp_fused_reduction r, enum sl_dtype type, int64_t height, int64_t width, int axis,
                         const char *arch)
{
	static char source[SOURCE];
	struct slp_fused_attrs f;
	struct slp_fused_plan p = plan_of(type, SLP_FUSED_ROW);
	const struct slp_reduce_attrs along = {.axes = {axis}, .naxes = 1};
	p.width = r.width;
	p.dim[0] = height;
	p.dim[1] = p.stride[0][0] = width;
	p.n = height * width;
	r.plan = slp_reduce_plan_of(SL_SHAPE(height, width), &along);
	r.tasks = r.plan.columns ? r.plan.nrows * slp_reduce_ceil(width, r.across * r.width)
	                         : r.plan.kept.size * r.plan.parts;
	chain_from(1, &f);
	CHECK(slp_fused_reduce_source(&f, &p, &r, source, sizeof source));
	if (rtc.create) compile(source, arch);
}

/* Rows by threads, warps and blocks, to outputs of one part and of several. */
static void of_rows(int reduction, enum sl_dtype type, int lanes, const char *arch)
{
	struct slp_fused_reduction r = {.reduction = reduction, .lanes = lanes, .block = 256, .across = 1, .width = 1};
	if (lanes > 1) r.across = 8, r.width = slp_fused_width(type);
	of_reduction(r, type, 20, lanes > 32 ? 40000 : 48, 1, arch);
}

/* Columns, one or several of a thread; of many rows also to several parts. */
static void of_columns(int reduction, enum sl_dtype type, int width, int64_t height, const char *arch)
{
	of_reduction((struct slp_fused_reduction){reduction, 256, 256, 32, width, 0, {.inner = 0}}, type, height, 512,
	             0, arch);
}

static void test_reductions(void)
{
	for (int reduction = SLP_REDUCE_sum; reduction <= SLP_REDUCE_all; reduction++)
		of_rows(reduction, SL_FLOAT32, reduction % 2 ? 32 : 256, "--gpu-architecture=sm_90");
	of_rows(SLP_REDUCE_norm, SL_BFLOAT16, 256, "--gpu-architecture=sm_80");
	of_rows(SLP_REDUCE_sum, SL_FLOAT16, 32, "--gpu-architecture=sm_80");
	of_rows(SLP_REDUCE_max, SL_FLOAT64, 32, "--gpu-architecture=sm_80");
	of_rows(SLP_REDUCE_mean, SL_FLOAT32, 1, "--gpu-architecture=sm_80");
}

static void test_columns(void)
{
	of_columns(SLP_REDUCE_sum, SL_FLOAT32, 4, 20, "--gpu-architecture=sm_90");
	of_columns(SLP_REDUCE_mean, SL_FLOAT32, 1, 20000, "--gpu-architecture=sm_90");
	of_columns(SLP_REDUCE_norm, SL_BFLOAT16, 8, 20000, "--gpu-architecture=sm_80");
	of_columns(SLP_REDUCE_max, SL_FLOAT64, 2, 20, "--gpu-architecture=sm_80");
}

/* By warps and by blocks; the result aligned, or not. */
static void of_softmax(enum sl_dtype type, int64_t n, bool logs, bool aligned, const char *arch)
{
	static char source[SOURCE];
	struct slp_fused_attrs f;
	struct slp_fused_plan p = plan_of(type, SLP_FUSED_ROW);
	struct slp_fused_rows r = {n, 20, n > 512 ? 256 : 32, 256, logs};
	p.aligned = aligned;
	p.dim[1] = p.stride[0][0] = n;
	p.n = 20 * n;
	chain_from(1, &f);
	CHECK(slp_fused_softmax_source(&f, &p, &r, source, sizeof source));
	if (rtc.create) compile(source, arch);
}

static void test_softmax(void)
{
	of_softmax(SL_FLOAT32, 128, false, true, "--gpu-architecture=sm_90");
	of_softmax(SL_FLOAT32, 4096, true, false, "--gpu-architecture=sm_90");
	of_softmax(SL_BFLOAT16, 1024, false, true, "--gpu-architecture=sm_80");
	of_softmax(SL_FLOAT64, 64, true, true, "--gpu-architecture=sm_80");
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* The scratch memory of a reduced product of x and y is that of the reduction alone. */
static void check_scratch(sl_shape shape, int axis)
{
	const struct slp_reduce_attrs along = {.axes = {axis}, .naxes = 1};
	const struct slp_type in[] = {{SL_FLOAT32, shape}, {SL_FLOAT32, shape}};
	struct slp_type out;
	struct slp_fused_attrs f = {.step = {SLP_FUSED_mul | SLP_FUSED_INPUT << 8 | (SLP_FUSED_INPUT + 1) << 16}}, both;
	CHECK(slp_fused_reduce_of(&f, &in[0], &slp_op_sum, &along, &both));
	struct slp_infer c = {&slp_op_fused_reduce, SL_HERE, &both, 2, 1, in, &out};
	CHECK_OK(c.op->infer(&c));
	struct slp_reduce_plan p = slp_reduce_plan_of(shape, &along);
	CHECK_SAYING(c.op->scratch(&c) == slp_reduce_scratch(&p), "%zu bytes, %zu for parts", c.op->scratch(&c),
	             slp_reduce_scratch(&p));
}

static void test_scratch(void)
{
	check_scratch(SL_SHAPE(512, 1024), 1);
	check_scratch(SL_SHAPE(512, 1024), 0);
	check_scratch(SL_SHAPE(4, 100000), 1);
}

static const struct slp_test tests[] = {{"functions", test_functions}, {"beside half types", test_beside_halves},
                                        {"longest", test_longest},     {"reductions", test_reductions},
                                        {"columns", test_columns},     {"softmax", test_softmax},
                                        {"scratch", test_scratch},     {0}};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv, (const struct slp_suite[]){{.name = "fused_source", .tests = tests}, {0}});
}
