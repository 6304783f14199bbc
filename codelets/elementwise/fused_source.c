/* Writes expressions as CUDA sources: the functions are the texts of unary.def and binary.def, so that a compiled
 * expression computes what the interpreter of fused.cu does.  Shapes are numbers in the source, the length of gapless
 * operands is an argument. */
#include "fused_source.h"

#include "loss/softmax.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- the files that sources include ------------------------------------------------------------------------------ */

/* NVRTC has no C library; a host compiler, in the tests, has. */
static const char library[] = "#ifdef __CUDACC_RTC__\n"
                              "typedef signed char int8_t; typedef unsigned char uint8_t; typedef short int16_t;\n"
                              "typedef unsigned short uint16_t; typedef int int32_t; typedef unsigned int uint32_t;\n"
                              "typedef long long int64_t; typedef unsigned long long uint64_t;\n"
                              "typedef unsigned long uintptr_t;\n"
                              "#define INT32_MIN (-2147483647 - 1)\n#define INT32_MAX 2147483647\n"
                              "#define INT8_MIN (-128)\n#define INT8_MAX 127\n#define UINT8_MAX 255\n"
                              "#define INT16_MIN (-32768)\n#define INT16_MAX 32767\n#define UINT16_MAX 65535\n"
                              "#define UINT32_MAX 4294967295U\n#define UINT64_MAX 18446744073709551615ULL\n"
                              "#define INT64_MAX 9223372036854775807LL\n"
                              "#define INT64_MIN (-INT64_MAX - 1)\n"
                              "#define INFINITY __int_as_float(0x7f800000)\n#define NAN __int_as_float(0x7fffffff)\n"
                              "#else\n#include <cmath>\n#include <cstdint>\n#include <cstring>\n#endif\n";
static const char cmath[] =
        "#ifndef SLP_CMATH\n#define SLP_CMATH\n#include \"library.h\"\n"
        "#ifdef __CUDACC_RTC__\nnamespace std {\n"
        "using ::exp; using ::log; using ::sqrt; using ::tanh; using ::log1p; using ::expm1; using ::erf;\n"
        "using ::erfc; using ::sin; using ::cos; using ::tan; using ::asin; using ::acos; using ::atan;\n"
        "using ::sinh; using ::cosh; using ::asinh; using ::acosh; using ::atanh; using ::floor; using ::ceil;\n"
        "using ::rint; using ::fabs; using ::pow; using ::fma; using ::frexp; using ::nextafter; using ::fmod; using "
        "::atan2; using ::copysign;\n"
        "}\n#endif\n#endif\n";
static const char tensor[] = "struct sl_bfloat16 { uint16_t bits; };\nstruct sl_float16 { uint16_t bits; };\n"
                             "enum sl_dtype { SL_DTYPE_DEFAULT, SL_BFLOAT16, SL_FLOAT16, SL_DTYPE_COUNT };\n"
                             "#define SL_DTYPE_LIST(X)\n";

#include "codelets/elementwise/fused_texts.inc"

const struct slp_compiled_header slp_fused_headers[] = {{"library.h", library},
                                                        {"cmath", cmath},
                                                        {"math.h", ""},
                                                        {"string.h", ""},
                                                        {"starling/tensor.h", tensor},
                                                        {"gpu.cuh", ""},
                                                        {"dtype.h", text_of_dtype},
                                                        {"power.cuh", text_of_power},
                                                        {"scalar.h", text_of_scalar},
                                                        {NULL, NULL}};

/* ---- functions --------------------------------------------------------------------------------------------------- */

/* The names of p and q, the operands, in the text of a function; the text. */
struct function {
	const char *names, *value;
};

static const struct function functions[SLP_FUSED_CODES] = {
#define OF_ONE(name, text) [SLP_FUSED_##name] = {"const T x = p;", text},
#define LINEAR(name, dtypes, value, doc) OF_ONE(name, #value)
#define FLAT(name, dtypes, value, doc) OF_ONE(name, #value)
#define TRUTH(name, dtypes, value, doc) OF_ONE(name, #value)
#define UNARY(name, dtypes, saved, value, slope, doc)                                                                  \
	OF_ONE(name, #value)[SLP_FUSED_##name##_grad] = {"const T d = p, v = q;", #slope},
#include "unary.def"
#define OF_TWO(name, text) [SLP_FUSED_##name] = {"const T a = p, b = q;", text},
#define PART(name, value, doc) OF_TWO(name, #value)
#define BINARY(name, saves, scalar_saves, value, doc) OF_TWO(name, #value)
#define COMPARE(name, value, doc) OF_TWO(name, "(" #value ") ? 1 : 0")
#define TRUTH(name, value, doc) OF_TWO(name, "(" #value ") ? 1 : 0")
#define CHOICE(name, value, doc) OF_TWO(name, #value)
#include "binary.def"
};

/* ---- text -------------------------------------------------------------------------------------------------------- */

struct text {
	char *to;
	size_t size, length;
	bool full;
};

static void put(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *t, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int n = vsnprintf(t->to + t->length, t->size - t->length, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= t->size - t->length) t->full = true;
	else t->length += (size_t)n;
}

static void put_types(struct text *t, enum sl_dtype dtype, int width)
{
	bool wide = dtype == SL_FLOAT64;
	const char *stored = dtype == SL_BFLOAT16  ? "sl_bfloat16"
	                     : dtype == SL_FLOAT16 ? "sl_float16"
	                     : wide                ? "double"
	                                           : "float";
	const char *symbol = dtype == SL_BFLOAT16  ? "BFLOAT16"
	                     : dtype == SL_FLOAT16 ? "FLOAT16"
	                     : wide                ? "FLOAT64"
	                                           : "FLOAT32";
	put(t, "#include \"cmath\"\n#include \"dtype.h\"\n#include \"scalar.h\"\n");
	put(t, "typedef %s S;\ntypedef %s T;\nenum { W = %d };\n", stored, wide ? "double" : "float", width);
	put(t, "struct alignas(W * sizeof(S)) group { S at[W]; };\nstruct alignas(16) wide { T at[W]; };\n");
	put(t, "#define STORE(x) slp_store_SL_%s(x)\n", symbol);
	put(t, "struct call { const S *in[%d]; S *out; double *parts; double number[%d]; int64_t n; };\n",
	    SLP_FUSED_INPUTS, SLP_FUSED_NUMBERS);
}

/* Each function of the expression once. */
static bool put_functions(struct text *t, const struct slp_fused_attrs *f)
{
	bool known[SLP_FUSED_CODES] = {false};
	for (int i = 0; i < slp_fused_count(f); i++) {
		struct slp_fused_step s = slp_fused_step_at(f, i);
		if (s.own || s.code >= SLP_FUSED_CODES || !functions[s.code].value) return false;
		if (!known[s.code])
			put(t, "static __device__ inline T f%d(T p, T q) { %s (void)q; return (T)(%s); }\n", s.code,
			    functions[s.code].names, functions[s.code].value);
		known[s.code] = true;
	}
	return true;
}

/* The index in input i of element e of the result: divisions are by constants. */
static void put_offset(struct text *t, const struct slp_fused_plan *p, int i)
{
	put(t, "static __device__ inline int64_t at%d(int64_t e) { %s rest = (%s)e; int64_t from = 0;\n", i,
	    p->n <= INT32_MAX ? "uint32_t" : "int64_t", p->n <= INT32_MAX ? "uint32_t" : "int64_t");
	for (int axis = p->ndim - 1; axis > 0; axis--)
		put(t, "from += (int64_t)(rest %% %" PRId64 ") * %" PRId64 "LL; rest /= %" PRId64 ";\n", p->dim[axis],
		    p->stride[i][axis], p->dim[axis]);
	put(t, "return from + (int64_t)rest * %" PRId64 "LL; }\n", p->ndim > 0 ? p->stride[i][0] : 0);
}

static bool is_flat(const struct slp_fused_plan *p, int i)
{
	return p->how[i] == SLP_FUSED_GAPLESS || p->how[i] == SLP_FUSED_GAPLESS_SINGLE;
}

/* Reads the elements of a thread of input i into v<i>. */
static void put_reading(struct text *t, const struct slp_fused_plan *p, int i)
{
	enum slp_fused_reading how = p->how[i];
	const char *group = p->wide[i] ? "wide" : "group", *load = p->wide[i] ? "" : "(T)slp_load";
	put(t, "T v%d[W];\n{ const %c *in = (const %c *)c.in[%d];\n", i, p->wide[i] ? 'T' : 'S', p->wide[i] ? 'T' : 'S',
	    i);
	if (how == SLP_FUSED_SPLAT) {
		put(t, "T one = %s(in[at%d(e)]); for (int l = 0; l < W; l++) v%d[l] = one; }\n", load, i, i);
		return;
	}
	if (how == SLP_FUSED_GAPLESS || how == SLP_FUSED_ROW) {
		put(t, "if (n == W) { %s g = *(const %s *)(in + ", group, group);
		if (how == SLP_FUSED_ROW) put(t, "at%d(e)", i);
		else put(t, "e");
		put(t, "); for (int l = 0; l < W; l++) v%d[l] = %s(g.at[l]); } else\n", i, load);
	}
	put(t, "for (int l = 0; l < W; l++) v%d[l] = l < n ? %s(in[", i, load);
	if (is_flat(p, i)) put(t, "e + l");
	else put(t, "at%d(e + l)", i);
	put(t, "]) : (T)0; }\n");
}

static void put_operand(struct text *t, int v)
{
	if (v >= SLP_FUSED_NUMBER) put(t, "(T)c.number[%d]", v - SLP_FUSED_NUMBER);
	else if (v >= SLP_FUSED_RESULT) put(t, "r%d", v - SLP_FUSED_RESULT);
	else put(t, "v%d[l]", v);
}

/* The result is r<count - 1>; returns count. */
static int put_steps(struct text *t, const struct slp_fused_attrs *f)
{
	int count = slp_fused_count(f);
	put(t, "for (int l = 0; l < W; l++) {\n");
	for (int i = 0; i < count; i++) {
		struct slp_fused_step s = slp_fused_step_at(f, i);
		put(t, "T r%d = f%d(", i, s.code);
		put_operand(t, s.a);
		put(t, ", ");
		put_operand(t, s.b);
		put(t, ");\n");
	}
	return count;
}

static bool put_head(struct text *t, const struct slp_fused_attrs *f, const struct slp_fused_plan *p)
{
	put_types(t, p->dtype, p->width);
	if (!put_functions(t, f)) return false;
	for (int i = 0; i < p->nin; i++)
		if (!is_flat(p, i)) put_offset(t, p, i);
	return true;
}

static void put_kernel(struct text *t)
{
	put(t, "extern \"C\" __global__ void kernel(const struct call c)\n{\n");
}

/* The elements of a thread, and their steps; r<count - 1> of these is the result.  Returns count. */
static int put_elements(struct text *t, const struct slp_fused_attrs *f, const struct slp_fused_plan *p)
{
	for (int i = 0; i < p->nin; i++) put_reading(t, p, i);
	return put_steps(t, f);
}

bool slp_fused_source(const struct slp_fused_attrs *f, const struct slp_fused_plan *p, char *to, size_t size)
{
	struct text t = {to, size, 0, false};
	if (!put_head(&t, f, p)) return false;
	put_kernel(&t);
	put(&t, "for (int64_t e = (blockIdx.x * (int64_t)blockDim.x + threadIdx.x) * W; e < c.n;\n"
	        "     e += (int64_t)gridDim.x * blockDim.x * W) {\n"
	        "int n = c.n - e < W ? (int)(c.n - e) : W;\n");
	put(&t, "group g;\n");
	put(&t, "g.at[l] = STORE(r%d);\n}\n", put_elements(&t, f, p) - 1);
	if (p->aligned) put(&t, "if (n == W) *(group *)(c.out + e) = g; else\n");
	put(&t, "for (int l = 0; l < W; l++) if (l < n) c.out[e + l] = g.at[l];\n}\n}\n");
	return !t.full;
}

/* ---- reductions -------------------------------------------------------------------------------------------------- */

/* The texts of reduce.def. */
static const struct {
	const char *start, *step, *merge, *finish;
} reductions[] = {
#define X(name, start, step, merge, finish, dtypes, saves, doc) [SLP_REDUCE_##name] = {#start, #step, #merge, #finish},
#include "reduce/reduce.def"
#undef X
};

static void put_reduction(struct text *t, int reduction)
{
	const char *head = "static __device__ inline double";
	put(t, "%s start() { return %s; }\n", head, reductions[reduction].start);
	put(t, "%s step(double a, double x) { return %s; }\n", head, reductions[reduction].step);
	put(t, "%s merge(double a, double b) { return %s; }\n", head, reductions[reduction].merge);
	put(t, "%s finish(double a, double count) { (void)count; return %s; }\n", head, reductions[reduction].finish);
}

/* The place of combination i of axes' indices, a function `name`. */
static void put_axes(struct text *t, const char *name, const struct slp_axes *axes)
{
	put(t, "static __device__ inline int64_t %s(int64_t i) { int64_t at = 0;\n", name);
	for (int a = axes->n - 1; a > 0; a--)
		put(t, "at += i %% %" PRId64 "LL * %" PRId64 "LL; i /= %" PRId64 "LL;\n", axes->dim[a], axes->stride[a],
		    axes->dim[a]);
	put(t, "return at + i * %" PRId64 "LL; }\n", axes->stride[0]);
}

/* A function `name` that combines a over the threads of a group, in the order of lanes.cuh; merge and neutral: texts. */
static void put_group(struct text *t, const char *name, const char *merge, const char *neutral, int lanes, int block)
{
	put(t, "static __device__ inline double %s(double a)\n{\n", name);
	for (int stage = 0; stage < (lanes > 32 ? 2 : lanes > 1 ? 1 : 0); stage++) {
		if (stage == 1)
			put(t,
			    "__shared__ double part[32];\nint lane = threadIdx.x %% 32, warp = threadIdx.x / 32;\n"
			    "__syncthreads();\nif (lane == 0) part[warp] = a;\n__syncthreads();\n"
			    "a = lane < %d ? part[lane] : %s;\n",
			    block / 32, neutral);
		put(t, "for (int d = 16; d; d >>= 1) a = %s(a, __shfl_xor_sync(0xffffffffu, a, d));\n", merge);
	}
	put(t, "return a;\n}\n");
}

/* The loop over tasks, and the elements of the part of one. */
static void put_rows(struct text *t, const struct slp_fused_reduction *r)
{
	const struct slp_reduce_plan *p = &r->plan;
	put(t, "enum { LANES = %d, GROUPS = %d, ACROSS = %d };\n", r->lanes, r->block / r->lanes, r->across);
	put_kernel(t);
	put(t,
	    "int me = threadIdx.x %% LANES, across = me %% ACROSS, down = me / ACROSS;\n"
	    "for (int64_t t = blockIdx.x * (int64_t)GROUPS + threadIdx.x / LANES; t < %" PRId64 "LL;\n"
	    "     t += gridDim.x * (int64_t)GROUPS) {\n"
	    "int64_t output = t / %" PRId64 "LL, part = t %% %" PRId64 "LL;\n",
	    r->tasks, p->parts, p->parts);
	put(t,
	    "int64_t row = part / %" PRId64 "LL * %" PRId64 "LL, column = part %% %" PRId64 "LL * %" PRId64 "LL;\n"
	    "int64_t end_row = row + %" PRId64 "LL, end_column = column + %" PRId64 "LL;\n"
	    "if (end_row > %" PRId64 "LL) end_row = %" PRId64 "LL;\n"
	    "if (end_column > %" PRId64 "LL) end_column = %" PRId64 "LL;\n",
	    p->nlength, p->rows, p->nlength, p->length, p->rows, p->length, p->gone.size, p->gone.size, p->inner,
	    p->inner);
	put(t, "double a = start();\n"
	       "for (int64_t r = row + down; r < end_row; r += LANES / ACROSS)\n"
	       "for (int64_t i = column + across * W; i < end_column; i += ACROSS * W) {\n"
	       "int64_t e = kept_at(output) + gone_at(r) + i;\nconst int n = W;\n");
}

/* Stores `value` as the result, or as a part of it. */
static void put_result(struct text *t, const struct slp_reduce_plan *p, const char *value)
{
	if (p->parts > 1) put(t, "c.parts[part * %" PRId64 "LL + output] = %s;\n", p->nout, value);
	else put(t, "c.out[output] = STORE(finish(%s, %" PRId64 ".0));\n", value, p->count);
}

static void put_end_of_rows(struct text *t, const struct slp_reduce_plan *p)
{
	put(t, "}\na = combined(a);\nif (me == 0) ");
	put_result(t, p, "a");
	put(t, "}\n}\n");
}

/* The loop over tasks of a block, and the rows of the columns of a thread. */
static void put_columns(struct text *t, const struct slp_fused_reduction *r)
{
	const struct slp_reduce_plan *p = &r->plan;
	put(t, "enum { BLOCK = %d, ACROSS = %d, DOWNS = BLOCK / ACROSS };\n", r->block, r->across);
	put_kernel(t);
	put(t,
	    "__shared__ double cell[W][BLOCK];\n"
	    "int me = threadIdx.x, down = me / ACROSS;\n"
	    "for (int64_t t = blockIdx.x; t < %" PRId64 "LL; t += gridDim.x) {\n"
	    "int64_t column = (t %% %" PRId64 "LL * ACROSS + me %% ACROSS) * W;\n"
	    "int64_t part = t / %" PRId64 "LL %% %" PRId64 "LL, kept = t / %" PRId64 "LL;\n",
	    r->tasks, slp_reduce_ceil(p->inner, (int64_t)r->across * r->width),
	    slp_reduce_ceil(p->inner, (int64_t)r->across * r->width), p->nrows, r->tasks / p->kept.size);
	put(t,
	    "int64_t end_row = (part + 1) * %" PRId64 "LL;\nif (end_row > %" PRId64 "LL) end_row = %" PRId64 "LL;\n"
	    "double a[W];\nfor (int l = 0; l < W; l++) a[l] = start();\n"
	    "for (int64_t r = part * %" PRId64 "LL + down; column < %" PRId64 "LL && r < end_row; r += DOWNS) {\n"
	    "int64_t e = kept_at(kept) + gone_at(r) + column;\nconst int n = W;\n",
	    p->rows, p->gone.size, p->gone.size, p->rows, p->inner);
}

static void put_end_of_columns(struct text *t, const struct slp_reduce_plan *p)
{
	put(t,
	    "}\nfor (int l = 0; l < W; l++) cell[l][me] = a[l];\n__syncthreads();\nfor (int half = DOWNS / 2; half; "
	    "half /= 2) {\n"
	    "if (down < half) for (int l = 0; l < W; l++)\n"
	    "cell[l][me] = merge(cell[l][me], cell[l][me + half * ACROSS]);\n"
	    "__syncthreads();\n}\n"
	    "if (down == 0 && column < %" PRId64 "LL) for (int l = 0; l < W; l++) {\n"
	    "int64_t output = kept * %" PRId64 "LL + column + l;\n",
	    p->inner, p->inner);
	put_result(t, p, "cell[l][me]");
	put(t, "}\n__syncthreads();\n}\n}\n");
}

bool slp_fused_reduce_source(const struct slp_fused_attrs *f, const struct slp_fused_plan *p,
                             const struct slp_fused_reduction *r, char *to, size_t size)
{
	struct text t = {to, size, 0, false};
	bool columns = r->plan.columns;
	if (!put_head(&t, f, p)) return false;
	put_reduction(&t, r->reduction);
	put_axes(&t, "kept_at", &r->plan.kept);
	put_axes(&t, "gone_at", &r->plan.gone);
	if (!columns) put_group(&t, "combined", "merge", "start()", r->lanes, r->block);
	if (columns) put_columns(&t, r);
	else put_rows(&t, r);
	int last = put_elements(&t, f, p) - 1;
	const char *sum = columns ? "a[l]" : "a";
	put(&t, "%s = step(%s, (double)slp_load(STORE(r%d)));\n}\n", sum, sum, last);
	if (columns) put_end_of_columns(&t, &r->plan);
	else put_end_of_rows(&t, &r->plan);
	return !t.full;
}

/* ---- softmax ----------------------------------------------------------------------------------------------------- */

/* The rules of softmax.cu. */
static void put_softmax(struct text *t, bool logs)
{
	put(t, "static __device__ inline double larger(double a, double b) { return a > b || a != a ? a : b; }\n"
	       "static __device__ inline double sum_of(double a, double b) { return a + b; }\n");
	put(t, "static __device__ inline T factor(double sum) { return (T)(%s); }\n",
	    logs ? "std::log(sum)" : "1 / sum");
	put(t, "static __device__ inline T result(T a, T max, T f) { return %s; }\n",
	    logs ? "a - max - f" : "std::exp(a - max) * f");
}

/* A thread holds HELD elements, W of them neighbours; those behind the end of a row are -INFINITY. */
bool slp_fused_softmax_source(const struct slp_fused_attrs *f, const struct slp_fused_plan *p,
                              const struct slp_fused_rows *r, char *to, size_t size)
{
	struct text t = {to, size, 0, false};
	if (!put_head(&t, f, p)) return false;
	put_softmax(&t, r->logs);
	put_group(&t, "largest", "larger", "-INFINITY", r->lanes, r->block);
	put_group(&t, "total", "sum_of", "0.0", r->lanes, r->block);
	put(&t, "enum { LANES = %d, GROUPS = %d, HELD = %d, N = %d, ONCE = LANES * W };\n", r->lanes,
	    r->block / r->lanes, SLP_SOFTMAX_HELD, (int)r->n);
	put_kernel(&t);
	put(&t,
	    "int me = threadIdx.x %% LANES;\n"
	    "for (int64_t t = blockIdx.x * (int64_t)GROUPS + threadIdx.x / LANES; t < %" PRId64 "LL;\n"
	    "     t += gridDim.x * (int64_t)GROUPS) {\n"
	    "T held[HELD];\ndouble m = -INFINITY, sum = 0;\n#pragma unroll\n"
	    "for (int u = 0; u < HELD / W; u++) {\nint i = me * W + u * ONCE;\n"
	    "for (int l = 0; l < W; l++) held[u * W + l] = -INFINITY;\nif (i >= N) continue;\n"
	    "int64_t e = t * N + i;\nconst int n = W;\n",
	    r->rows);
	put(&t, "held[u * W + l] = (T)slp_load(STORE(r%d));\n}\n}\n", put_elements(&t, f, p) - 1);
	put(&t, "for (int l = 0; l < HELD; l++) m = larger(m, held[l]);\nT max = (T)largest(m);\n"
	        "for (int l = 0; l < HELD; l++)\nif (me * W + l / W * ONCE < N) sum += std::exp(held[l] - max);\n"
	        "T f = factor(total(sum));\n#pragma unroll\n"
	        "for (int u = 0; u < HELD / W; u++) {\nint i = me * W + u * ONCE;\nif (i >= N) break;\ngroup g;\n"
	        "for (int l = 0; l < W; l++) g.at[l] = STORE(result(held[u * W + l], max, f));\n");
	if (p->aligned) put(&t, "*(group *)(c.out + t * N + i) = g;\n");
	else put(&t, "for (int l = 0; l < W; l++) c.out[t * N + i + l] = g.at[l];\n");
	put(&t, "}\n}\n}\n");
	return !t.full;
}
