/* Numbers at the edge, for every function of unary.def, binary.def and reduce.def: NaN, zeros with signs, infinities,
 * subnormal, largest and smallest numbers, ties, in all data types, call by call and compiled, on CPUs and, where there
 * are some, on GPUs, against the C library in double precision.  NumPy gives the same, and so does PyTorch; where they
 * differ, or this library does, a comment says so. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "check.h"
#include "op.h"

/* ---- what is expected -------------------------------------------------------------------------------------------- */

static double sigmoid(double x)
{
	return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

/* x times something that is 0 at minus infinity: 0, where PyTorch has NaN. */
static double vanishing(double x, double factor)
{
	return factor == 0 && !isnan(x) ? copysign(0, x) : x * factor;
}

static double softplus(double x)
{
	return x > 40 ? x : log1p(exp(x));
}

static double hard_swish(double x)
{
	return x <= -3 ? 0 : x >= 3 ? x : x * (x + 3) / 6; /* -0 and subnormals: as they come */
}

static double sign(double x)
{
	return isnan(x) || x == 0 ? x : copysign(1, x); /* PyTorch's of NaN is 0, NumPy's NaN */
}

/* X(name, value): of one number. */
/* clang-format off */
#define UNARY_EDGES(X)                                                                                                 \
	X(neg, -x) X(abs, fabs(x)) X(exp, exp(x)) X(log, log(x)) X(sqrt, sqrt(x)) X(square, x * x)                     \
	X(reciprocal, 1 / x) X(relu, x < 0 ? 0 : x) X(sigmoid, sigmoid(x)) X(tanh, tanh(x))                            \
	X(gelu, vanishing(x, erfc(-x * M_SQRT1_2) / 2)) X(softplus, softplus(x)) X(sin, sin(x)) X(cos, cos(x))         \
	X(tan, tan(x)) X(asin, asin(x)) X(acos, acos(x)) X(atan, atan(x)) X(sinh, sinh(x)) X(cosh, cosh(x))            \
	X(asinh, asinh(x)) X(acosh, acosh(x)) X(atanh, atanh(x)) X(erf, erf(x)) X(erfc, erfc(x))                       \
	X(log1p, log1p(x))                                                                                             \
	X(expm1, expm1(x)) X(rsqrt, 1 / sqrt(x)) X(silu, vanishing(x, sigmoid(x))) X(hard_swish, hard_swish(x))        \
	X(gelu_tanh, vanishing(x, sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x)))) X(sign, sign(x))          \
	X(floor, floor(x)) X(ceil, ceil(x)) X(round, nearbyint(x)) X(isnan, isnan(x) ? 1 : 0)                          \
	X(isfinite, isfinite(x) ? 1 : 0) X(logical_not, x == 0 ? 1 : 0)
/* clang-format on */

static double larger(double a, double b)
{
	return isnan(a) || isnan(b) ? NAN : a >= b ? a : b;
}

static double smaller(double a, double b)
{
	return isnan(a) || isnan(b) ? NAN : a <= b ? a : b;
}

/* With the sign of b; that of a zero is a's. */
static double rest_of_floats(double a, double b)
{
	double r = fmod(a, b);
	return r == 0 || signbit(r) == signbit(b) ? r : r + b;
}

static double whole_quotient(double a, double b)
{
	if (b == 0 || isnan(a) || isnan(b) || isinf(a)) return isinf(a) && b != 0 ? NAN : a / b;
	if (isinf(b)) return a == 0 ? a / b : (a < 0) == (b < 0) ? 0 : -1;
	double whole = (a - rest_of_floats(a, b)) / b;
	return whole == 0 ? copysign(0, a / b) : nearbyint(whole);
}

/* clang-format off */
#define BINARY_EDGES(X)                                                                                                \
	X(add, a + b) X(sub, a - b) X(mul, a * b) X(div, a / b) X(pow, pow(a, b)) X(maximum, larger(a, b))             \
	X(minimum, smaller(a, b)) X(atan2, atan2(a, b)) X(fmod, fmod(a, b)) X(remainder, rest_of_floats(a, b))         \
	X(floor_divide, whole_quotient(a, b)) X(fmax, larger(isnan(a) ? b : a, isnan(b) ? a : b))                      \
	X(fmin, smaller(isnan(a) ? b : a, isnan(b) ? a : b)) X(copysign, copysign(a, b))                               \
	X(eq, a == b) X(ne, a != b) X(lt, a < b) X(le, a <= b) X(gt, a > b) X(ge, a >= b)                              \
	X(logical_and, a != 0 && b != 0) X(logical_or, a != 0 || b != 0) X(logical_xor, (a != 0) != (b != 0))
/* clang-format on */

typedef double unary(double x);
typedef double binary(double a, double b);
#define X(name, value)                                                                                                 \
	static double ref_##name(double x)                                                                             \
	{                                                                                                              \
		return value;                                                                                          \
	}
UNARY_EDGES(X)
#undef X
#define X(name, value)                                                                                                 \
	static double ref_##name(double a, double b)                                                                   \
	{                                                                                                              \
		return value;                                                                                          \
	}
BINARY_EDGES(X)
#undef X

static const struct of_one {
	const char *name;
	sl_tensor *(*call)(const char *at, sl_tensor *x);
	unary *expected;
} of_one[] = {
#define X(name, value) {#name, sl_##name##_at, ref_##name},
        UNARY_EDGES(X)
#undef X
};
static const struct of_two {
	const char *name;
	sl_tensor *(*call)(const char *at, sl_tensor *a, sl_tensor *b);
	binary *expected;
} of_two[] = {
#define X(name, value) {#name, sl_##name##_at, ref_##name},
        BINARY_EDGES(X)
#undef X
};
#define EACH(row, table) for (size_t row = 0; row < sizeof table / sizeof *table; row++)

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static const double numbers[] = {
        NAN,   0,       -0.0,     INFINITY, -INFINITY, 0x1p-149,   -0x1p-149,    0x1p-126, FLT_MAX, -FLT_MAX,
        1e25,  5e19,    -5e19,    1,        -1,        0.5,        -0.5,         1.5,      2.5,     -2.5,
        3,     8388609, -8388609, 16777215, 0.3,       88,         89,           -88,      -104,    1e-20,
        3.125, 1e6,     7,        -7,       255,       2147483647, -2147483648.0};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

/* As the type holds it. */
static double held(double x, enum sl_dtype dtype)
{
	char element[16] = {0};
	struct slp_view v = {element, {dtype, SL_SCALAR}};
	if (dtype == SL_FLOAT64) return x;
	if (dtype == SL_FLOAT32) return (float)x;
	if (dtype == SL_BOOL) return x != 0;
	if (slp_is_half(dtype)) return slp_set(&v, 0, x), slp_get(&v, 0);
	static const double lowest[] = {
#define X(symbol, name, type, kind, compute, low, ...) [symbol] = low,
	        SL_DTYPE_LIST(X)
#undef X
	};
	static const double highest[] = {
#define X(symbol, name, type, kind, compute, low, high, ...) [symbol] = high,
	        SL_DTYPE_LIST(X)
#undef X
	};
	double low = lowest[dtype], high = highest[dtype];
	return isnan(x) ? 0 : x <= low ? low : x >= high ? high : trunc(x);
}

/* The numbers that a type has, in it; how many. */
static int numbers_of(enum sl_dtype dtype, double *of)
{
	int n = 0;
	for (int i = 0; i < NUMBERS; i++) {
		double x = held(numbers[i], dtype);
		bool is_new = slp_is_float(dtype) || (x == numbers[i] && !signbit(x == 0 ? x : 0));
		for (int k = 0; k < n; k++) is_new &= of[k] != x || signbit(of[k]) != signbit(x);
		if (is_new) of[n++] = x;
	}
	return n;
}

static sl_tensor *tensor_of(const double *x, int n, enum sl_dtype dtype, sl_device device)
{
	sl_tensor *t = sl_from(x, SL_SHAPE(n), .dtype = SL_FLOAT64);
	return sl_copy_to(sl_cast(t, dtype), device);
}

/* Equal within rounding, with the sign of zero; results below the smallest normal number may be flushed to 0. */
static bool equal(double got, double expected, enum sl_dtype dtype, double slack)
{
	double smallest = dtype == SL_FLOAT64 ? DBL_MIN : dtype == SL_FLOAT16 ? 0x1p-14 : FLT_MIN;
	double step = slack * (dtype == SL_FLOAT64   ? 1e-14
	                       : dtype == SL_FLOAT32 ? 4e-6
	                       : dtype == SL_FLOAT16 ? 0x1p-10
	                                             : 0x1p-7);
	if (isnan(expected) || isnan(got)) return isnan(expected) && isnan(got);
	if (got == expected) return got != 0 || !slp_is_float(dtype) || signbit(got) == signbit(expected);
	if (!slp_is_float(dtype)) return false;
	if (isinf(expected) || isinf(got)) { /* at the very end of the range either is right */
		double finite = fabs(isinf(got) ? expected : got), end = held(DBL_MAX, SL_FLOAT64);
		end = dtype == SL_FLOAT64 ? end : dtype == SL_FLOAT16 ? 65504 : FLT_MAX;
		return finite > end * 0.98 && signbit(got) == signbit(expected);
	}
	return fabs(got - expected) <= step * fabs(expected) || (fabs(got) <= smallest && fabs(expected) <= smallest);
}

/* ---- ways to compute --------------------------------------------------------------------------------------------- */

/* The function as a program of its own. */
static sl_tensor *compiled(const struct of_one *one, const struct of_two *two, sl_tensor *a, sl_tensor *b)
{
	sl_shape shape = sl_tensor_shape(a);
	struct sl_var_opts o = {.shape = &shape, .dtype = sl_tensor_dtype(a)};
	sl_tensor *x = sl_var_at(SL_HERE, "x", o), *y = b ? sl_var_at(SL_HERE, "y", o) : NULL, *out = NULL;
	sl_tensor *in[] = {a, b};
	sl_graph *graph = sl_graph_define(one ? one->call(SL_HERE, x) : two->call(SL_HERE, x, y));
	sl_plan *plan = sl_compile(graph, .device = sl_tensor_device(a));
	if (plan && sl_plan_run(plan, in, b ? 2 : 1, &out) != SL_OK) out = NULL;
	sl_plan_free(plan);
	sl_graph_free(graph);
	return out;
}

static void check(const char *name, const char *how, sl_tensor *got, const double *a, const double *b, int n,
                  unary *one, binary *two)
{
	enum sl_dtype dtype = sl_tensor_dtype(got);
	double *values = calloc((size_t)n + 1, sizeof *values);
	CHECK_OK(sl_read(sl_copy_to(sl_cast(got, SL_FLOAT64), sl_cpu(0)), values, (size_t)n * sizeof *values));
	for (int i = 0; i < n; i++) {
		double expected = held(one ? one(a[i]) : two(a[i], b[i]), dtype);
		/* float32 of a power: of large exponents the error grows with them */
		double slack = !strcmp(name, "pow") ? 30 : !strcmp(name, "gelu") || !strcmp(name, "gelu_tanh") ? 50 : 1;
		CHECK_SAYING(equal(values[i], expected, dtype, slack), "%s of %s, %s: %.9g%s%.9g gives %.9g, not %.9g",
		             name, sl_dtype_name(dtype), how, a[i], b ? ", " : " ", b ? b[i] : 0, values[i], expected);
	}
	free(values);
}

/* Whether the function takes the type; others refuse it when called. */
static bool taken(sl_tensor *y)
{
	bool is = y != NULL;
	if (!is) CHECK(sl_error() == SL_EDTYPE || sl_error() == SL_EUNSUPPORTED);
	sl_error_clear();
	return is;
}

static void unary_on(sl_device device, const char *where)
{
	double x[NUMBERS];
	char how[64];
	for (enum sl_dtype dtype = SL_FLOAT32; dtype < SL_DTYPE_COUNT; dtype++) {
		int n = numbers_of(dtype, x);
		EACH(i, of_one) SL_SCOPE
		{
			sl_tensor *t = tensor_of(x, n, dtype, device), *y = of_one[i].call(SL_HERE, t);
			if (!taken(y)) continue;
			snprintf(how, sizeof how, "call by call on %s", where);
			check(of_one[i].name, how, y, x, NULL, n, of_one[i].expected, NULL);
			snprintf(how, sizeof how, "compiled on %s", where);
			sl_tensor *z = compiled(&of_one[i], NULL, t, NULL);
			if (z) check(of_one[i].name, how, z, x, NULL, n, of_one[i].expected, NULL);
			else CHECK_OK(sl_wait_all());
		}
	}
}

/* int64 saturates and divides with rules of its own; so do the others: divided by 0 the largest, 0 / 0 is 0. */
static bool has_rule_of_its_own(const char *name, enum sl_dtype dtype, double a, double b)
{
	if (slp_is_float(dtype)) return false;
	return !strcmp(name, "pow") && (b < 0 || dtype == SL_INT64)
	               ? true
	               : dtype == SL_INT64 && (fabs(a) > 1e15 || fabs(b) > 1e15);
}

static void binary_on(sl_device device, const char *where)
{
	static double x[NUMBERS], a[NUMBERS * NUMBERS], b[NUMBERS * NUMBERS];
	char how[64];
	for (enum sl_dtype dtype = SL_FLOAT32; dtype < SL_DTYPE_COUNT; dtype++) {
		int n = numbers_of(dtype, x);
		EACH(i, of_two) SL_SCOPE
		{
			int pairs = 0;
			for (int k = 0; k < n * n; k++) {
				a[pairs] = x[k / n], b[pairs] = x[k % n];
				pairs += !has_rule_of_its_own(of_two[i].name, dtype, a[pairs], b[pairs]);
			}
			sl_tensor *ta = tensor_of(a, pairs, dtype, device), *tb = tensor_of(b, pairs, dtype, device);
			sl_tensor *y = of_two[i].call(SL_HERE, ta, tb);
			if (!taken(y)) continue;
			snprintf(how, sizeof how, "call by call on %s", where);
			check(of_two[i].name, how, y, a, b, pairs, NULL, of_two[i].expected);
			snprintf(how, sizeof how, "compiled on %s", where);
			sl_tensor *z = compiled(NULL, &of_two[i], ta, tb);
			if (z) check(of_two[i].name, how, z, a, b, pairs, NULL, of_two[i].expected);
			else CHECK_OK(sl_wait_all());
		}
	}
}

/* ---- reductions -------------------------------------------------------------------------------------------------- */

static double reduced(const char *name, const double *x, int n)
{
	double sum = 0, squares = 0, product = 1, most = -INFINITY, least = INFINITY;
	bool some = false, every = true, number = true;
	for (int i = 0; i < n; i++) {
		sum += x[i], squares = hypot(squares, x[i]), product *= x[i];
		most = x[i] > most ? x[i] : most, least = x[i] < least ? x[i] : least;
		some |= x[i] != 0, every &= x[i] != 0, number &= !isnan(x[i]);
	}
	if (!strcmp(name, "sum")) return sum;
	if (!strcmp(name, "mean")) return sum / n;
	if (!strcmp(name, "norm")) return number ? squares : NAN;
	if (!strcmp(name, "prod")) return product;
	if (!strcmp(name, "any")) return some;
	if (!strcmp(name, "all")) return every;
	return number ? (!strcmp(name, "max") ? most : least) : NAN;
}

static const struct reduction {
	const char *name;
	sl_tensor *(*call)(const char *at, sl_tensor *x, struct sl_reduce_opts opts);
} reductions[] = {
#define X(name, ...) {#name, sl_##name##_at},
#include "reduce/reduce.def"
#undef X
};

static const struct few {
	int n;
	double x[3];
} few[] = {{0, {0}},
           {1, {7}},
           {1, {NAN}},
           {2, {1e25, 1e25}},
           {2, {5e19, -5e19}},
           {2, {NAN, 1}},
           {2, {1, NAN}},
           {2, {INFINITY, -INFINITY}},
           {2, {INFINITY, 1}},
           {2, {-INFINITY, -INFINITY}},
           {2, {1, 1}},
           {2, {0x1p-140, 0x1p-140}},
           {2, {FLT_MAX, FLT_MAX}},
           {3, {FLT_MAX, FLT_MAX, -FLT_MAX}},
           {3, {255, 200, 3}},
           {3, {2147483647, 2147483647, -2147483648.0}},
           {3, {3, 5, 5}}};

static bool is_held(const struct few *f, enum sl_dtype dtype)
{
	for (int i = 0; i < f->n; i++)
		if (held(f->x[i], dtype) != f->x[i] && !(isnan(f->x[i]) && slp_is_float(dtype))) return false;
	return true;
}

static void reductions_on(sl_device device, const char *where)
{
	for (enum sl_dtype dtype = SL_FLOAT32; dtype < SL_DTYPE_COUNT; dtype++)
		EACH(i, reductions) EACH(k, few) SL_SCOPE
		{
			const struct few *f = &few[k];
			if (!is_held(f, dtype)) continue;
			sl_tensor *y = reductions[i].call(SL_HERE, tensor_of(f->x, f->n, dtype, device),
			                                  (struct sl_reduce_opts){0});
			if (!f->n && !y && sl_error() == SL_ESHAPE) { /* there is no largest of none */
				sl_error_clear();
				continue;
			}
			if (!taken(y)) continue;
			double got = sl_item(sl_cast(y, SL_FLOAT64)),
			       expected = reduced(reductions[i].name, f->x, f->n);
			expected = held(expected, sl_tensor_dtype(y));
			CHECK_SAYING(equal(got, expected, sl_tensor_dtype(y), 1),
			             "%s of %s on %s, row %d: %.9g, not %.9g", reductions[i].name, sl_dtype_name(dtype),
			             where, (int)k, got, expected);
		}
}

/* ---- functions made of these -------------------------------------------------------------------------------------- */

static void test_squares(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_from(SL_ARRAY(float, 1e25f, -1e25f), SL_SHAPE(1, 2)), *y = NULL;
		CHECK_VALUES(sl_rms_norm(x, NULL), 1, -1);
		CHECK_VALUES(sl_rms_norm(sl_mul_scalar(x, 1e-30), NULL, .eps = 0), 1, -1);
		CHECK_VALUES(sl_cosine_similarity(x, x, 1), 1);
		CHECK_VALUES(sl_cosine_similarity(x, sl_neg(x), 1), -1);
		sl_tensor *far = sl_from(SL_ARRAY(float, 5e19f, -5e19f), SL_SHAPE(2));
		CHECK_VALUES(sl_div_scalar(sl_std(far), 1e19), 5);
		CHECK_VALUES(sl_std(sl_zeros(SL_SHAPE(3))), 0);
		sl_attach_grad(x);
		SL_RECORD
			y = sl_mul(sl_rms_norm(x, NULL), sl_from(SL_ARRAY(float, 1, 2), SL_SHAPE(2)));
		sl_backward(sl_sum(y));
		CHECK(sl_error() == SL_ESTATE); /* the sum was not recorded */
		sl_error_clear();
		SL_RECORD
			y = sl_sum(sl_mul(sl_rms_norm(x, NULL), sl_from(SL_ARRAY(float, 1, 2), SL_SHAPE(2))));
		sl_backward(y);
		CHECK_VALUES(sl_mul_scalar(sl_grad(x), 1e25), 1.5, 1.5);
	}
}

/* As PyTorch has them. */
static void test_slopes(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_from(SL_ARRAY(double, -1, 0, 2), SL_SHAPE(3), .dtype = SL_FLOAT64), *y;
		sl_attach_grad(x);
		SL_RECORD
			y = sl_rpow_scalar(x, 0);
		sl_backward(y);
		CHECK_VALUES(sl_grad(x), -INFINITY, 0, 0);
		sl_tensor *a = sl_zeros(SL_SHAPE(1)), *b = sl_full(SL_SHAPE(1), 0x1p-149);
		sl_attach_grad(a);
		sl_attach_grad(b);
		SL_RECORD
			y = sl_div(a, b);
		sl_backward(y);
		CHECK_VALUES(sl_grad(b), 0);
		/* where two are equal: all of it to the first, as MXNet has it (PyTorch: halves) */
		sl_tensor *c = sl_ones(SL_SHAPE(1)), *d = sl_ones(SL_SHAPE(1));
		sl_attach_grad(c);
		sl_attach_grad(d);
		SL_RECORD
			y = sl_maximum(c, d);
		sl_backward(y);
		CHECK_VALUES(sl_grad(c), 1);
		CHECK_VALUES(sl_grad(d), 0);
	}
}

/* What is left out of a cross entropy may be anything. */
static void test_ignored(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_from(SL_ARRAY(float, 1, 2, NAN, INFINITY, 0, 0), SL_SHAPE(3, 2)), *loss;
		sl_tensor *labels = sl_from(SL_ARRAY(int32_t, 1, -100, 0), SL_SHAPE(3), .dtype = SL_INT32);
		sl_attach_grad(x);
		SL_RECORD
			loss = sl_cross_entropy(x, labels, .ignore = true, .ignore_index = -100,
			                        .label_smoothing = 0.1);
		CHECK(isfinite(sl_item(loss)));
		sl_backward(loss);
		CHECK_VALUES(sl_rows(sl_grad(x), 1, 2), 0, 0);
		CHECK_VALUES(sl_isfinite(sl_sum(sl_grad(x))), 1);
	}
}

/* Numbers that a type does not have, and integers above 2^53. */
static void test_ranges(void)
{
	SL_SCOPE {
		CHECK_NULL(sl_full(SL_SHAPE(2), 300, .dtype = SL_UINT8), SL_EDTYPE, "300", "uint8");
		CHECK_NULL(sl_full(SL_SHAPE(2), -1, .dtype = SL_UINT8), SL_EDTYPE, "-1");
		CHECK_NULL(sl_full(SL_SHAPE(2), NAN, .dtype = SL_INT32), SL_EDTYPE, "nan");
		CHECK_NULL(sl_full(SL_SHAPE(2), 0x1p63, .dtype = SL_INT64), SL_EDTYPE, "int64");
		CHECK_NULL(sl_fill_(sl_zeros(SL_SHAPE(2), .dtype = SL_UINT8), 256), SL_EDTYPE, "256");
		CHECK_NULL(sl_fill_(sl_zeros(SL_SHAPE(2), .dtype = SL_INT32), 2.5), SL_EDTYPE, "2.5");
		CHECK_NULL(sl_fill_(sl_zeros(SL_SHAPE(2)), -1e39), SL_EDTYPE, "-1e+39", "float32");
		CHECK_NULL(sl_full(SL_SHAPE(2), 1e300), SL_EDTYPE, "1e+300", "float32");
		CHECK_NULL(sl_full(SL_SHAPE(2), 1e5, .dtype = SL_FLOAT16), SL_EDTYPE, "float16");
		CHECK_ALL(sl_isfinite(sl_full(SL_SHAPE(2), -INFINITY)), 0);
		CHECK_ALL(sl_fill_(sl_zeros(SL_SHAPE(2), .dtype = SL_FLOAT64), 1e300), 1e300);
		CHECK_NULL(sl_add_scalar(sl_zeros(SL_SHAPE(2), .dtype = SL_INT64), 0x1p63), SL_EDTYPE, "int64");
		CHECK_NULL(sl_arange(0, 300, 1, .dtype = SL_UINT8), SL_EDTYPE, "299");
		CHECK_NULL(sl_pow_scalar(sl_full(SL_SHAPE(2), 2, .dtype = SL_INT32), -1), SL_EINVAL, "-1");
		CHECK_VALUES(sl_full(SL_SHAPE(1), 255.5, .dtype = SL_UINT8), 255);
		sl_tensor *t = sl_arange(0x1p53, 0x1p53 + 4, 1, .dtype = SL_INT64);
		int64_t values[4] = {0};
		CHECK_OK(sl_read(t, values, sizeof values));
		for (int i = 0; i < 4; i++) CHECK(values[i] == ((int64_t)1 << 53) + i);
	}
}

/* ---- whole numbers ----------------------------------------------------------------------------------------------- */

/* Operations of integers whose kernels may use functions of floating-point numbers, such as pow or a quotient: exact wherever
 * the type has the result.  A GPU's pow is off by a unit or two, which made 2 of 2.999…. */
enum { MOST_PAIRS = 1 << 17 };

/* a to the power of b; false: 63 bits do not hold it. */
static bool power(int64_t a, int64_t b, int64_t *y)
{
	*y = 1;
	for (; b > 0; b--)
		if (__builtin_mul_overflow(*y, a, y)) return false;
	return true;
}

static bool quotient(int64_t a, int64_t b, int64_t *y)
{
	return b != 0 && (*y = a / b, true);
}

static bool product(int64_t a, int64_t b, int64_t *y)
{
	return !__builtin_mul_overflow(a, b, y);
}

/* The rest of the quotient towards 0. */
static bool rest(int64_t a, int64_t b, int64_t *y)
{
	return b != 0 && (*y = a % b, true);
}

static sl_tensor *rest_of(const char *at, sl_tensor *a, sl_tensor *b)
{
	return sl_sub_at(at, a, sl_mul_at(at, sl_div_at(at, a, b), b));
}

static const struct whole {
	const char *name;
	sl_tensor *(*call)(const char *at, sl_tensor *a, sl_tensor *b);
	bool (*expected)(int64_t a, int64_t b, int64_t *y); /* false: the type need not have it */
	int64_t most_b;
} wholes[] = {{"pow", sl_pow_at, power, 62},
              {"div", sl_div_at, quotient, INT64_MAX},
              {"mul", sl_mul_at, product, INT64_MAX},
              {"a - a / b * b", rest_of, rest, INT64_MAX}};

/* Bases and divisors: all small ones, those next to powers of two and ten, and roots of the largest numbers. */
static int operands(int64_t *x)
{
	static const int64_t roots[] = {215, 216, 1289, 1290, 1291, 46340, 46341, 55108, 55109, 2097151, 94906265};
	int n = 0;
	for (int i = -40; i <= 40; i++) x[n++] = i;
	for (int64_t p = 64; p < INT64_MAX / 4; p *= 4)
		for (int i = -1; i <= 1; i++) x[n++] = p + i, x[n++] = -p - i;
	for (int64_t p = 100; p < INT64_MAX / 10; p *= 10) x[n++] = p, x[n++] = p - 1, x[n++] = -p;
	for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) x[n++] = roots[i], x[n++] = -roots[i];
	return n;
}

static bool has(enum sl_dtype dtype, int64_t x)
{
	static const double most = 0x1p62; /* further ones are saturated: test_ranges, cases_binary.c */
	return fabs((double)x) <= most && held((double)x, dtype) == (double)x;
}

static sl_tensor *whole_tensor(const int64_t *x, int n, enum sl_dtype dtype, sl_device device)
{
	return sl_copy_to(sl_cast(sl_from(x, SL_SHAPE(n), .dtype = SL_INT64), dtype), device);
}

/* The pairs whose results the type has; how many. */
static int pairs_of(const struct whole *w, enum sl_dtype dtype, int64_t *a, int64_t *b, int64_t *y)
{
	int64_t x[512];
	int n = operands(x), pairs = 0;
	for (int i = 0; i < n; i++)
		for (int k = 0; k < n; k++) {
			if (!has(dtype, x[i]) || !has(dtype, x[k]) || x[k] > w->most_b) continue;
			if (w->expected == power && x[k] < 0) continue;
			if (!w->expected(x[i], x[k], &y[pairs]) || !has(dtype, y[pairs])) continue;
			a[pairs] = x[i], b[pairs++] = x[k];
		}
	return pairs;
}

static void wholes_on(sl_device device, const char *where)
{
	static int64_t a[MOST_PAIRS], b[MOST_PAIRS], y[MOST_PAIRS], got[MOST_PAIRS];
	for (enum sl_dtype dtype = SL_FLOAT32; dtype < SL_DTYPE_COUNT; dtype++) EACH(i, wholes) SL_SCOPE
		{
			if (slp_kind_of(dtype) != SLP_KIND_INT) continue;
			int n = pairs_of(&wholes[i], dtype, a, b, y), wrong = 0;
			sl_tensor *z = wholes[i].call(SL_HERE, whole_tensor(a, n, dtype, device),
			                              whole_tensor(b, n, dtype, device));
			if (!taken(z)) continue;
			sl_tensor *wide = sl_copy_to(sl_cast(z, SL_INT64), sl_cpu(0));
			CHECK_OK(sl_read(wide, got, (size_t)n * sizeof *got));
			for (int k = 0; k < n && wrong < 5; k++) {
				if (got[k] == y[k]) continue;
				wrong++;
				CHECK_SAYING(false, "%s of %s on %s: %lld, %lld give %lld, not %lld", wholes[i].name,
				             sl_dtype_name(dtype), where, (long long)a[k], (long long)b[k],
				             (long long)got[k], (long long)y[k]);
			}
		}
}

/* The numbers 1, -2, 3, -4, … and their sums so far. */
static void sums_on(sl_device device, const char *where)
{
	enum { SUMMED = 200 };
	int64_t x[SUMMED], got[SUMMED];
	for (enum sl_dtype dtype = SL_FLOAT32; dtype < SL_DTYPE_COUNT; dtype++)
		SL_SCOPE {
			bool negative = has(dtype, -1);
			int n = has(dtype, SUMMED) ? SUMMED : 20;
			if (slp_kind_of(dtype) != SLP_KIND_INT) continue;
			for (int i = 0; i < n; i++) x[i] = negative ? (i % 2 ? -i - 1 : i + 1) : i % 2;
			sl_tensor *z = sl_cumsum(whole_tensor(x, n, dtype, device), 0);
			if (!taken(z)) continue;
			CHECK_OK(sl_read(sl_copy_to(sl_cast(z, SL_INT64), sl_cpu(0)), got, (size_t)n * sizeof *got));
			int64_t sum = 0;
			for (int i = 0; i < n; i++) {
				sum += x[i];
				CHECK_SAYING(got[i] == sum, "cumsum of %s on %s: %lld, not %lld", sl_dtype_name(dtype),
				             where, (long long)got[i], (long long)sum);
			}
		}
}

static void test_wholes(void)
{
	wholes_on(sl_cpu(0), "a CPU");
	sums_on(sl_cpu(0), "a CPU");
	if (!sl_device_count(SL_DEVICE_GPU)) return;
	wholes_on(sl_gpu(0), "a GPU");
	sums_on(sl_gpu(0), "a GPU");
}

/* ---- all of it ---------------------------------------------------------------------------------------------------- */

static bool has_row(const char *name)
{
	EACH(i, of_one) if (!strcmp(of_one[i].name, name)) return true;
	EACH(i, of_two) if (!strcmp(of_two[i].name, name)) return true;
	return false;
}

static void test_list(void)
{
#define ROW(name, ...) CHECK_SAYING(has_row(#name), "%s has no row", #name);
#define LINEAR ROW
#define UNARY ROW
#define FLAT ROW
#define TRUTH ROW
#include "elementwise/unary.def"
#define BINARY ROW
#define FLOATS ROW
#define COMPARE ROW
#define TRUTH ROW
#include "elementwise/binary.def"
}

static void test_one(void)
{
	unary_on(sl_cpu(0), "a CPU");
	if (sl_device_count(SL_DEVICE_GPU)) unary_on(sl_gpu(0), "a GPU");
}

static void test_two(void)
{
	binary_on(sl_cpu(0), "a CPU");
	if (sl_device_count(SL_DEVICE_GPU)) binary_on(sl_gpu(0), "a GPU");
}

static void test_reductions(void)
{
	reductions_on(sl_cpu(0), "a CPU");
	if (sl_device_count(SL_DEVICE_GPU)) reductions_on(sl_gpu(0), "a GPU");
}

static const struct slp_test tests[] = {{"list", test_list},
                                        {"one", test_one},
                                        {"two", test_two},
                                        {"reductions", test_reductions},
                                        {"squares", test_squares},
                                        {"slopes", test_slopes},
                                        {"ignored", test_ignored},
                                        {"ranges", test_ranges},
                                        {"whole numbers", test_wholes},
                                        {0}};

int main(int argc, char **argv)
{
	return slp_test_main(
	        argc, argv,
	        (const struct slp_suite[]){
	                {.name = "edges", .start = slp_start_engine, .stop = slp_stop_engine, .tests = tests}, {0}});
}
