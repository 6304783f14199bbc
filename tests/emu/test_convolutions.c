/* Convolutions with a bias and relu, and gradients, on an emulated GPU: one operation graph of cuDNN computes all of it
 * where there is an engine, else the older interface, and in steps; always the values of a plain sum in double
 * precision. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cudnn.h>
#include <starling.h>

#include "op_list/conv.h"
#include "check.h"
#include "conv/conv2d_kernels.h"
#include "emulated.h"
#include "tune.h"

struct shape {
	const char *name;
	int64_t n, ic, ih, iw, oc, kh, kw;
	struct sl_conv2d_opts o;
};

static const struct shape shapes[] = {
        {"plain", 2, 3, 6, 5, 4, 3, 3, {.stride = {1, 1}, .dilation = {1, 1}, .groups = 1}},
        {"padded", 2, 3, 6, 5, 4, 3, 2, {.stride = {1, 1}, .pad = {1, 2}, .dilation = {1, 1}, .groups = 1}},
        {"strides", 3, 2, 7, 9, 3, 3, 3, {.stride = {2, 3}, .pad = {1, 0}, .dilation = {1, 1}, .groups = 1}},
        {"dilation", 1, 2, 9, 8, 2, 3, 3, {.stride = {1, 1}, .pad = {2, 1}, .dilation = {2, 3}, .groups = 1}},
        {"groups", 2, 6, 5, 5, 9, 3, 3, {.stride = {1, 1}, .pad = {1, 1}, .dilation = {1, 1}, .groups = 3}},
        {"depthwise", 2, 4, 5, 6, 4, 3, 3, {.stride = {2, 2}, .pad = {1, 1}, .dilation = {1, 1}, .groups = 4}},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* ---- a plain sum ------------------------------------------------------------------------------------------------ */

struct values {
	double *x, *w, *b, *y; /* b NULL: none */
	struct slp_conv c;
};

static struct slp_conv sizes_of(const struct shape *s)
{
	struct slp_conv c = {.n = s->n, .ic = s->ic, .ih = s->ih, .iw = s->iw, .oc = s->oc, .kh = s->kh, .kw = s->kw};
	c.groups = s->o.groups;
	c.sh = s->o.stride[0], c.sw = s->o.stride[1];
	c.ph = s->o.pad[0], c.pw = s->o.pad[1];
	c.dh = s->o.dilation[0], c.dw = s->o.dilation[1];
	c.oh = (c.ih + 2 * c.ph - c.dh * (c.kh - 1) - 1) / c.sh + 1;
	c.ow = (c.iw + 2 * c.pw - c.dw * (c.kw - 1) - 1) / c.sw + 1;
	return c;
}

static double sum(const struct values *v, int64_t n, int64_t o, int64_t i, int64_t j)
{
	const struct slp_conv *c = &v->c;
	int64_t channels = c->ic / c->groups, first = o / (c->oc / c->groups) * channels;
	double all = v->b ? v->b[o] : 0;
	for (int64_t k = 0; k < channels * c->kh * c->kw; k++) {
		int64_t ch = k / (c->kh * c->kw), r = k / c->kw % c->kh, s = k % c->kw;
		int64_t h = i * c->sh - c->ph + r * c->dh, w = j * c->sw - c->pw + s * c->dw;
		if (h < 0 || w < 0 || h >= c->ih || w >= c->iw) continue;
		all += v->w[o * channels * c->kh * c->kw + k] *
		       v->x[((n * c->ic + first + ch) * c->ih + h) * c->iw + w];
	}
	return all;
}

static void compute(struct values *v, bool relu)
{
	const struct slp_conv *c = &v->c;
	int64_t plane = c->oh * c->ow;
	for (int64_t i = 0; i < c->n * c->oc * plane; i++) {
		double y = sum(v, i / plane / c->oc, i / plane % c->oc, i % plane / c->ow, i % c->ow);
		v->y[i] = relu && y < 0 ? 0 : y;
	}
}

/* ---- a call ------------------------------------------------------------------------------------------------------ */

/* Values that every type holds exactly; with `spoilt`, one is NaN. */
static sl_tensor *operand(sl_shape shape, enum sl_dtype type, unsigned seed, double *values, bool spoilt)
{
	int64_t n = sl_shape_size(shape);
	float *floats = malloc((size_t)n * sizeof *floats);
	for (int64_t i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		values[i] = floats[i] = (float)((int)(seed >> 24) - 128) / 64;
	}
	if (spoilt) values[n / 2] = floats[n / 2] = NAN;
	sl_tensor *t = sl_from(floats, shape);
	free(floats);
	return sl_cast(t, type);
}

struct call {
	const struct shape *shape;
	enum sl_dtype type;
	bool bias, relu, spoilt;
};

static double *numbers(int64_t n)
{
	return malloc((size_t)n * sizeof(double));
}

static void check_result(const struct call *k, const struct values *v, sl_tensor *y)
{
	int64_t n = v->c.n * v->c.oc * v->c.oh * v->c.ow, wrong = 0;
	float *got = malloc((size_t)n * sizeof *got);
	double tolerance = k->type == SL_BFLOAT16 ? 1.0 / 256 : k->type == SL_FLOAT16 ? 1.0 / 2048 : 1e-6;
	CHECK_OK(sl_read(sl_cast(y, SL_FLOAT32), got, (size_t)n * sizeof *got));
	for (int64_t i = 0; i < n; i++)
		wrong += isnan(v->y[i]) ? !isnan(got[i]) : !(fabs(got[i] - v->y[i]) <= tolerance * (1 + fabs(v->y[i])));
	CHECK_SAYING(wrong == 0, "%s, type %d%s%s: %lld of %lld values are wrong", k->shape->name, k->type,
	             k->bias ? ", bias" : "", k->relu ? ", relu" : "", (long long)wrong, (long long)n);
	free(got);
}

static void run(const struct call *k)
{
	struct slp_conv c = sizes_of(k->shape);
	int64_t per_group = c.ic / c.groups;
	struct values v = {numbers(c.n * c.ic * c.ih * c.iw), numbers(c.oc * per_group * c.kh * c.kw), numbers(c.oc),
	                   numbers(c.n * c.oc * c.oh * c.ow), c};
	double *bias = v.b;
	struct slp_conv2d_attrs a = {.conv = k->shape->o, .activation = k->relu ? SL_RELU : SL_IDENTITY};
	SL_SCOPE {
		sl_tensor *in[] = {operand(SL_SHAPE(c.n, c.ic, c.ih, c.iw), k->type, 1, v.x, k->spoilt),
		                   operand(SL_SHAPE(c.oc, per_group, c.kh, c.kw), k->type, 2, v.w, false),
		                   operand(SL_SHAPE(c.oc), k->type, 3, v.b, false)};
		if (!k->bias) v.b = NULL;
		compute(&v, k->relu);
		sl_tensor *y = slp_apply1(SL_HERE, &slp_op_conv2d, &a, k->bias ? 3 : 2, in);
		check_result(k, &v, y);
	}
	free(v.x);
	free(v.w);
	free(bias);
	free(v.y);
}

static struct emu_counts counts(void)
{
	struct emu_counts c;
	CHECK_OK(sl_wait_all());
	emu_counts_get(&c);
	return c;
}

/* ---- tests ------------------------------------------------------------------------------------------------------ */

static void start(enum sl_tf32 tf32)
{
	setenv("STARPU_NCPU", "0", 1);
	slp_begin((struct sl_config){.gpus = 1, .tf32 = tf32, .seed = 1});
	CHECK_OK(sl_device_default(sl_gpu(0)));
	emu_counts_reset();
}

enum { CALLS = 8 * SHAPES };

/* All shapes with and without either, twice: the second time the plan is there. */
static void run_all(enum sl_dtype type)
{
	for (int i = 0; i < CALLS; i++) run(&(struct call){&shapes[i / 8], type, i & 1, i & 2, false});
}

static void check_fused(enum sl_dtype type, enum sl_tf32 tf32)
{
	start(tf32);
	run_all(type);
	struct emu_counts c = counts();
	CHECK_SAYING(c.fused[0] == CALLS, "%d of %d convolutions in one", (int)c.fused[0], CALLS);
	bool half = type != SL_FLOAT32;
	CHECK(c.tf32[0] == (half || tf32 == SL_TF32_NONE ? 0 : CALLS));
	CHECK(c.half[0] == (half ? CALLS : 0));
	slp_end_well();
}

static void test_fused(void)
{
	check_fused(SL_FLOAT32, SL_TF32_NONE);
	check_fused(SL_FLOAT32, SL_TF32_CONV);
	check_fused(SL_BFLOAT16, SL_TF32_NONE);
	check_fused(SL_FLOAT16, SL_TF32_CONV);
}

/* One kernel, not two. */
static void test_kernels(void)
{
	const struct call k = {&shapes[0], SL_FLOAT32, true, true, false};
	uint64_t launches[2];
	for (int fuse = 0; fuse < 2; fuse++) {
		setenv("SL_CUDNN_GRAPH", fuse ? "1" : "0", 1);
		start(SL_TF32_NONE);
		run(&k);
		launches[fuse] = counts().launches[0];
		CHECK(counts().fused[0] == (uint64_t)fuse);
		slp_end_well();
	}
	unsetenv("SL_CUDNN_GRAPH");
	CHECK(launches[0] == launches[1] + 1);
}

static void test_nan(void)
{
	start(SL_TF32_NONE);
	run(&(struct call){&shapes[1], SL_FLOAT32, true, true, true});
	CHECK(counts().fused[0] == 1);
	slp_end_well();
}

/* No plan, or one that cannot be executed: the values are right, and no error is reported. */
static void check_refused(enum emu_failure what, long k, uint64_t fused)
{
	start(SL_TF32_NONE);
	emu_fail(what, k);
	run_all(SL_FLOAT32);
	emu_fail(what, 0);
	CHECK_SAYING(counts().fused[0] == fused, "%d in one, not %d", (int)counts().fused[0], (int)fused);
	slp_end_well();
}

static void test_refused(void)
{
	check_refused(EMU_PLAN, -1, 0);
	check_refused(EMU_PLAN, 1, CALLS); /* of an engine that wants too much memory anyway */
	check_refused(EMU_PLAN, 2, CALLS); /* the next engine takes its place */
	check_refused(EMU_EXECUTE, -1, 0);
	check_refused(EMU_EXECUTE, 1, CALLS - 2);
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

enum { MOST = 1024 };

/* Of x and w, one after the other; their number. */
static int64_t gradients(const struct shape *s, enum sl_dtype type, float to[MOST])
{
	struct slp_conv c = sizes_of(s);
	double *values = numbers(MOST);
	sl_tensor *x = operand(SL_SHAPE(c.n, c.ic, c.ih, c.iw), type, 1, values, false), *y = NULL;
	sl_tensor *w = operand(SL_SHAPE(c.oc, c.ic / c.groups, c.kh, c.kw), type, 2, values, false);
	sl_tensor *dy = operand(SL_SHAPE(c.n, c.oc, c.oh, c.ow), type, 3, values, false);
	free(values);
	CHECK_OK(sl_attach_grad(x));
	CHECK_OK(sl_attach_grad(w));
	SL_RECORD
		y = sl_sum(sl_mul(sl_conv2d_at(SL_HERE, x, w, NULL, s->o), dy));
	CHECK_OK(sl_backward(y));
	int64_t n = sl_shape_size(sl_tensor_shape(x)), m = sl_shape_size(sl_tensor_shape(w));
	CHECK(n + m <= MOST);
	CHECK_OK(sl_read(sl_cast(sl_grad(x), SL_FLOAT32), to, (size_t)n * sizeof *to));
	CHECK_OK(sl_read(sl_cast(sl_grad(w), SL_FLOAT32), to + n, (size_t)m * sizeof *to));
	return n + m;
}

/* Kernels of our own take gradients of weights with few channels in float32. */
static bool is_few(const struct shape *s, enum sl_dtype type)
{
	return type == SL_FLOAT32 && s->ic / s->o.groups <= 2 && s->kw == 3;
}

/* Both interfaces add up in the same order here. */
static void check_gradients(const struct shape *s, enum sl_dtype type)
{
	float got[2][MOST];
	int64_t n = 0;
	for (int graph = 0; graph < 2; graph++) {
		setenv("SL_CUDNN_GRAPH", graph ? "1" : "0", 1);
		start(SL_TF32_CONV);
		SL_SCOPE {
			n = gradients(s, type, got[graph]);
		}
		CHECK(counts().fused[0] == (graph ? is_few(s, type) ? 2 : 3 : 0));
		slp_end_well();
	}
	unsetenv("SL_CUDNN_GRAPH");
	CHECK_SAYING(!memcmp(got[0], got[1], (size_t)n * sizeof **got), "%s, type %d: other gradients", s->name, type);
}

static void test_gradients(void)
{
	static const enum sl_dtype types[] = {SL_FLOAT32, SL_BFLOAT16, SL_FLOAT16};
	for (int i = 0; i < 3 * SHAPES; i++) check_gradients(&shapes[i / 3], types[i % 3]);
}

/* Another activation follows by itself; float64 has no plan. */
static void test_others(void)
{
	start(SL_TF32_NONE);
	struct slp_conv2d_attrs a = {.activation = SL_TANH};
	SL_SCOPE {
		sl_tensor *in[] = {sl_ones(SL_SHAPE(1, 1, 4, 4)), sl_ones(SL_SHAPE(1, 1, 3, 3)), sl_ones(SL_SHAPE(1))};
		CHECK_ALL(slp_apply1(SL_HERE, &slp_op_conv2d, &a, 3, in), tanh(10));
		for (int i = 0; i < 3; i++) in[i] = sl_cast(in[i], SL_FLOAT64);
		CHECK_ALL(sl_conv2d(in[0], in[1], in[2]), 10);
	}
	CHECK(counts().fused[0] == 1);
	slp_end_well();
}

/* ---- which ways are taken ---------------------------------------------------------------------------------------- */

enum { TENSOR_CORES = 7, BY_FFT, WINOGRAD, STRICT, FALLBACK, ENGINES_USED }; /* engines of cudnn_graph.cc */

/* A shape that the other tests have not. */
static const struct shape own = {
        "own", 2, 5, 7, 6, 3, 5, 5, {.stride = {1, 1}, .pad = {2, 2}, .dilation = {1, 1}, .groups = 1}};

static const char *autotune; /* SL_GPU_AUTOTUNE */

static void start_tuned(enum sl_tf32 tf32)
{
	setenv("SL_GPU_AUTOTUNE", autotune, 1);
	start(tf32);
}

/* A call, and what it took. */
static struct emu_counts of_call(enum sl_dtype type, bool bias)
{
	emu_counts_reset();
	run(&(struct call){&own, type, bias, bias, false});
	return counts();
}

static uint64_t ways(const struct emu_counts *c, int first, int end)
{
	uint64_t n = 0;
	while (first < end) n += c->ways[first++];
	return n;
}

/* All that is allowed for 5 × 5 kernels is tried once, nothing else; then the fastest runs alone. */
static void check_tuned(enum sl_dtype type, enum sl_tf32 tf32, int fastest, unsigned allowed)
{
	autotune = "1";
	start_tuned(tf32);
	struct emu_counts c = of_call(type, true);
	for (int i = 0; i < ENGINES_USED; i++)
		CHECK_SAYING(!c.ways[i] == !(allowed >> i & 1), "type %d, TF32 %d: engine %d ran %d times", type, tf32,
		             i, (int)c.ways[i]);
	CHECK(ways(&c, EMU_ENGINES, EMU_LT) > 0);
	c = of_call(type, true);
	CHECK_SAYING(c.ways[fastest] == 1 && ways(&c, 0, EMU_WAYS) == 1, "type %d, TF32 %d: %d times engine %d", type,
	             tf32, (int)c.ways[fastest], fastest);
	slp_end_well();
}

/* As if it had never been met. */
static void other_gpu(void)
{
	static char name[64];
	static int number;
	snprintf(name, sizeof name, "emulated GPU, %d.%d", (int)getpid(), number++);
	emu_name(name);
}

static void test_tuned(void)
{
	const unsigned both = 1u << STRICT | 1u << FALLBACK;
	other_gpu();
	check_tuned(SL_FLOAT32, SL_TF32_NONE, FALLBACK, both);
	check_tuned(SL_FLOAT32, SL_TF32_CONV, TENSOR_CORES, both | 1u << BY_FFT | 1u << TENSOR_CORES);
	check_tuned(SL_BFLOAT16, SL_TF32_CONV, TENSOR_CORES, both | 1u << TENSOR_CORES);
	check_tuned(SL_FLOAT16, SL_TF32_NONE, TENSOR_CORES, both | 1u << TENSOR_CORES);
}

/* The older interface can be faster, and may not take tiles that lose digits. */
static void test_older(void)
{
	const int gemm = EMU_ALGORITHM(0, CUDNN_CONVOLUTION_FWD_ALGO_GEMM);
	other_gpu();
	emu_way_takes(gemm, 3);
	emu_way_takes(EMU_ALGORITHM(0, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED), 1);
	start_tuned(SL_TF32_NONE);
	struct emu_counts c = of_call(SL_FLOAT32, false);
	CHECK(c.ways[EMU_ALGORITHM(0, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED)] == 0);
	c = of_call(SL_FLOAT32, false);
	CHECK(c.ways[gemm] == 1 && ways(&c, 0, EMU_WAYS) == 1);
	emu_way_takes(gemm, 0);
	emu_way_takes(EMU_ALGORITHM(0, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED), 0);
	slp_end_well();
}

/* Without measurements, too, in both interfaces. */
static void test_precise(void)
{
	autotune = "0";
	for (int graph = 0; graph < 2; graph++) {
		setenv("SL_CUDNN_GRAPH", graph ? "1" : "0", 1);
		start_tuned(SL_TF32_NONE);
		struct emu_counts c = of_call(SL_FLOAT32, true);
		CHECK(ways(&c, 0, EMU_WAYS) == 1);
		CHECK(graph ? c.ways[STRICT] == 1 : c.ways[EMU_ALGORITHM(0, CUDNN_CONVOLUTION_FWD_ALGO_GEMM)] == 1);
		slp_end_well();
	}
	unsetenv("SL_CUDNN_GRAPH");
	autotune = "1";
}

/* ---- what is kept ------------------------------------------------------------------------------------------------ */

static bool is_measured(int fastest)
{
	start_tuned(SL_TF32_NONE);
	struct emu_counts c = of_call(SL_FLOAT32, true), again = of_call(SL_FLOAT32, true);
	CHECK_SAYING(again.ways[fastest] == 1, "engine %d ran %d times", fastest, (int)again.ways[fastest]);
	slp_end_well();
	return ways(&c, 0, EMU_WAYS) > 1;
}

/* The file of the GPU that the emulation has now. */
static FILE *kept(const char *mode)
{
	char path[SLP_TUNE_PATH];
	slp_tune_path(path);
	slp_tune_forget(); /* it has read the file */
	FILE *file = fopen(path, mode);
	CHECK_SAYING(file, "%s", path);
	return file ? file : tmpfile();
}

/* The next start measures nothing, and takes what was the fastest then. */
static void test_kept(void)
{
	other_gpu();
	CHECK(is_measured(FALLBACK));
	emu_way_takes(STRICT, 2);
	CHECK(!is_measured(FALLBACK));
	emu_cudnn_version(99999);
	CHECK(is_measured(STRICT));
	emu_cudnn_version(0);
	CHECK(!is_measured(FALLBACK));
	other_gpu();
	CHECK(is_measured(STRICT));
	emu_way_takes(STRICT, 0);
	CHECK(!is_measured(STRICT));
}

/* Of a file that was cut off or is none of ours, what can be used is. */
static void test_spoilt(void)
{
	char line[1024];
	other_gpu();
	CHECK(is_measured(FALLBACK));
	FILE *file = kept("r");
	CHECK(fgets(line, sizeof line, file));
	fclose(file);
	char *digit = strchr(line, '\t');
	CHECK(digit);
	if (!digit) return;
	for (int i = 0; i < 2; i++) {
		file = kept("w");
		if (i == 0) fputs("\n\t\t\t\nno line of ours\n", file);
		if (i == 1) digit[-1] ^= 1; /* another key, with the sum of this one */
		fwrite(line, 1, strlen(line) - (i == 0 ? 9 : 0), file);
		fclose(file);
		CHECK(is_measured(FALLBACK));
		CHECK(!is_measured(FALLBACK));
	}
}

static const struct slp_test tests[] = {
        {"bias and relu in one", test_fused},
        {"kernels", test_kernels},
        {"NaN", test_nan},
        {"refused", test_refused},
        {"gradients", test_gradients},
        {"not fused", test_others},
        {"the fastest of what is allowed", test_tuned},
        {"the older interface", test_older},
        {"float32 is float32", test_precise},
        {"kept", test_kept},
        {"files that are spoilt", test_spoilt},
        {0},
};

int main(int argc, char **argv)
{
	setenv("SL_EMU_DEVICES", "1", 1);
	setenv("SL_GPU_AUTOTUNE", "0", 1);
	return slp_test_main(argc, argv, (const struct slp_suite[]){{.name = "convolutions", .tests = tests}, {0}});
}
