/* Functions of two tensors or of a tensor and a number, element by element, as binary.def lists them. */
#include "binary_loops.h"
#include "common/describe.h"
#include "compare.h"
#include "slopes.h"
#include "op_list/binary.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/primitives.h"

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static enum sl_status binary_infer(struct slp_infer *c)
{
	sl_shape shape;
	if (c->in[0].dtype != c->in[1].dtype)
		return slp_reject(c, SL_EDTYPE, "both arguments must have one data type; convert one with sl_cast");
	if (!slp_broadcast(c->in[0].shape, c->in[1].shape, &shape))
		return slp_reject(c, SL_ESHAPE, "counted from the last axis, sizes must be equal, or one of them 1");
	c->out[0] = (struct slp_type){c->in[0].dtype, shape};
	return SL_OK;
}

static enum sl_status compare_scalar_infer(struct slp_infer *c)
{
	c->out[0] = c->in[0];
	return SL_OK;
}

/* Integers stay integers: the type of a result must not depend on the number's value or on the device. */
static enum sl_status scalar_infer(struct slp_infer *c)
{
	double s = number(c->attrs);
	if (!slp_can_hold(c->in[0].dtype, s))
		return slp_reject(c, SL_EDTYPE,
		                  "%.9g is not a value of %s; convert the tensor to floats first, with sl_cast", s,
		                  sl_dtype_name(c->in[0].dtype));
	if (c->op == &slp_op_pow_scalar && !slp_is_float(c->in[0].dtype) && s < 0)
		return slp_reject(c, SL_EINVAL,
		                  "integers to the power of %.9g; convert the tensor to floats first, with sl_cast", s);
	return compare_scalar_infer(c);
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

/* Sums g, which has the shape of the result, over the axes that `like` was repeated along. */
static sl_tensor *sum_like(const char *at, sl_tensor *g, const sl_tensor *like)
{
	if (!g) return NULL;
	sl_shape from = sl_tensor_shape(g), to = sl_tensor_shape(like);
	if (sl_shape_equal(from, to)) return g;
	int axes[SL_MAX_NDIM], naxes = 0, missing = from.ndim - to.ndim;
	for (int i = 0; i < from.ndim; i++)
		if (i < missing || (to.dim[i - missing] == 1 && from.dim[i] != 1)) axes[naxes++] = i;
	if (naxes) g = sl_sum_at(at, g, (struct sl_reduce_opts){axes, naxes, true});
	return g ? sl_reshape_at(at, g, to) : NULL;
}

/* Sets the gradient of input i. */
static enum sl_status give(struct slp_grad *s, int i, sl_tensor *g)
{
	s->din[i] = sum_like(s->at, g, s->in[i]);
	return s->din[i] ? SL_OK : sl_error();
}

static enum sl_status add_grad(struct slp_grad *g)
{
	enum sl_status s = SL_OK;
	for (int i = 0; i < 2 && s == SL_OK; i++)
		if (g->need[i]) s = give(g, i, g->dout[0]);
	return s;
}

static enum sl_status sub_grad(struct slp_grad *g)
{
	enum sl_status s = SL_OK;
	if (g->need[0]) s = give(g, 0, g->dout[0]);
	if (g->need[1] && s == SL_OK) s = give(g, 1, sl_neg_at(g->at, g->dout[0]));
	return s;
}

static enum sl_status mul_grad(struct slp_grad *g)
{
	enum sl_status s = SL_OK;
	for (int i = 0; i < 2 && s == SL_OK; i++)
		if (g->need[i]) s = give(g, i, sl_mul_at(g->at, g->dout[0], g->in[1 - i]));
	return s;
}

static enum sl_status div_grad(struct slp_grad *g)
{
	enum sl_status s = SL_OK;
	if (g->need[0]) s = give(g, 0, sl_div_at(g->at, g->dout[0], g->in[1]));
	if (!g->need[1] || s != SL_OK) return s;
	/* dy / b may be infinite where the quotient is 0 */
	sl_tensor *slope = sl_div_at(g->at, g->out[0], g->in[1]);
	return give(g, 1, sl_neg_at(g->at, sl_mul_at(g->at, g->dout[0], slope)));
}

static sl_tensor *part(const char *at, const struct sl_op *op, sl_tensor *a, sl_tensor *b)
{
	return slp_apply1(at, op, NULL, 2, (sl_tensor *[]){a, b});
}

static sl_tensor *by_base(const struct slp_grad *g)
{
	return g->again ? slp_slope_by_base(g->at, g->in[0], g->in[1])
	                : part(g->at, &slp_op_pow_by_base, g->in[0], g->in[1]);
}

static sl_tensor *by_exponent(const struct slp_grad *g)
{
	return g->again ? slp_slope_by_exponent(g->at, g->in[0], g->out[0])
	                : part(g->at, &slp_op_pow_by_exponent, g->in[0], g->out[0]);
}

static enum sl_status pow_grad(struct slp_grad *g)
{
	enum sl_status s = SL_OK;
	if (g->need[0]) s = give(g, 0, sl_mul_at(g->at, g->dout[0], by_base(g)));
	if (g->need[1] && s == SL_OK) s = give(g, 1, sl_mul_at(g->at, g->dout[0], by_exponent(g)));
	return s;
}

/* The larger, or the smaller, gets the gradient; a, if they are equal. */
static enum sl_status choice_grad(struct slp_grad *g, sl_tensor *(*first)(const char *, sl_tensor *, sl_tensor *),
                                  sl_tensor *(*second)(const char *, sl_tensor *, sl_tensor *))
{
	enum sl_status s = SL_OK;
	sl_tensor *a = g->in[0], *b = g->in[1], *d = g->dout[0];
	if (g->need[0]) s = give(g, 0, sl_mul_at(g->at, d, first(g->at, a, b)));
	if (g->need[1] && s == SL_OK) s = give(g, 1, sl_mul_at(g->at, d, second(g->at, a, b)));
	return s;
}

static enum sl_status maximum_grad(struct slp_grad *g)
{
	return choice_grad(g, sl_ge_at, sl_lt_at);
}

static enum sl_status minimum_grad(struct slp_grad *g)
{
	return choice_grad(g, sl_le_at, sl_gt_at);
}

/* Where the result is a: it is the larger, or b is NaN. */
static sl_tensor *fmax_first(const char *at, sl_tensor *a, sl_tensor *b)
{
	return sl_logical_or_at(at, sl_ge_at(at, a, b), sl_isnan_at(at, b));
}

static sl_tensor *fmax_second(const char *at, sl_tensor *a, sl_tensor *b)
{
	return sl_logical_not_at(at, fmax_first(at, a, b));
}

static sl_tensor *fmin_first(const char *at, sl_tensor *a, sl_tensor *b)
{
	return sl_logical_or_at(at, sl_le_at(at, a, b), sl_isnan_at(at, b));
}

static sl_tensor *fmin_second(const char *at, sl_tensor *a, sl_tensor *b)
{
	return sl_logical_not_at(at, fmin_first(at, a, b));
}

static enum sl_status fmax_grad(struct slp_grad *g)
{
	return choice_grad(g, fmax_first, fmax_second);
}

static enum sl_status fmin_grad(struct slp_grad *g)
{
	return choice_grad(g, fmin_first, fmin_second);
}

/* d(a - q b) for a quotient q that is piecewise constant. */
static enum sl_status rest_grad(struct slp_grad *g, sl_tensor *(*quotient)(const char *, sl_tensor *, sl_tensor *))
{
	enum sl_status s = SL_OK;
	if (g->need[0]) s = give(g, 0, g->dout[0]);
	if (!g->need[1] || s != SL_OK) return s;
	sl_tensor *q = quotient(g->at, g->in[0], g->in[1]);
	return give(g, 1, sl_neg_at(g->at, sl_mul_at(g->at, g->dout[0], q)));
}

static sl_tensor *truncated_quotient(const char *at, sl_tensor *a, sl_tensor *b)
{
	sl_tensor *q = sl_div_at(at, a, b);
	return sl_mul_at(at, sl_sign_at(at, q), sl_floor_at(at, sl_abs_at(at, q)));
}

static enum sl_status fmod_grad(struct slp_grad *g)
{
	return rest_grad(g, truncated_quotient);
}

static enum sl_status remainder_grad(struct slp_grad *g)
{
	return rest_grad(g, sl_floor_divide_at);
}

static enum sl_status floor_divide_grad(struct slp_grad *g)
{
	enum sl_status s = SL_OK;
	for (int i = 0; i < 2 && s == SL_OK; i++)
		if (g->need[i]) s = give(g, i, slp_zeros_like(g->at, g->dout[0]));
	return s;
}

/* The gradient is 0 where a is. */
static enum sl_status copysign_grad(struct slp_grad *g)
{
	enum sl_status s = SL_OK;
	sl_tensor *d = g->dout[0];
	if (g->need[0]) {
		sl_tensor *slope = part(g->at, &slp_op_take_if, g->in[0], sl_div_at(g->at, g->out[0], g->in[0]));
		s = give(g, 0, sl_mul_at(g->at, d, slope));
	}
	if (g->need[1] && s == SL_OK) s = give(g, 1, slp_zeros_like(g->at, d));
	return s;
}

/* d (b da - a db) / (a a + b b), 0 at the origin. */
static enum sl_status atan2_grad(struct slp_grad *g)
{
	enum sl_status s = SL_OK;
	sl_tensor *a = g->in[0], *b = g->in[1];
	sl_tensor *far = sl_add_at(g->at, sl_square_at(g->at, a), sl_square_at(g->at, b));
	sl_tensor *d = part(g->at, &slp_op_take_if, far, sl_div_at(g->at, g->dout[0], far));
	if (g->need[0]) s = give(g, 0, sl_mul_at(g->at, d, b));
	if (g->need[1] && s == SL_OK) s = give(g, 1, sl_neg_at(g->at, sl_mul_at(g->at, d, a)));
	return s;
}

/* ---- gradients of the forms with a number ------------------------------------------------------------------------ */

static enum sl_status give_only(struct slp_grad *g, sl_tensor *d)
{
	g->din[0] = d;
	return d ? SL_OK : sl_error();
}

static enum sl_status add_scalar_grad(struct slp_grad *g)
{
	return give_only(g, g->dout[0]);
}

#define sub_scalar_grad add_scalar_grad

static enum sl_status rsub_scalar_grad(struct slp_grad *g)
{
	return give_only(g, sl_neg_at(g->at, g->dout[0]));
}

static enum sl_status mul_scalar_grad(struct slp_grad *g)
{
	return give_only(g, sl_mul_scalar_at(g->at, g->dout[0], number(g->attrs)));
}

static enum sl_status div_scalar_grad(struct slp_grad *g)
{
	return give_only(g, sl_div_scalar_at(g->at, g->dout[0], number(g->attrs)));
}

/* (s / x)' = -(s / x) / x */
static enum sl_status rdiv_scalar_grad(struct slp_grad *g)
{
	sl_tensor *slope = sl_div_at(g->at, g->out[0], g->in[0]);
	return give_only(g, sl_neg_at(g->at, sl_mul_at(g->at, g->dout[0], slope)));
}

static enum sl_status pow_scalar_grad(struct slp_grad *g)
{
	double s = number(g->attrs);
	sl_tensor *x = g->in[0], *power = x;
	if (s == 0) return give_only(g, slp_zeros_like(g->at, g->dout[0]));
	if (s != 2) power = sl_pow_scalar_at(g->at, x, s - 1);
	return give_only(g, sl_mul_at(g->at, g->dout[0], sl_mul_scalar_at(g->at, power, s)));
}

static enum sl_status rpow_scalar_grad(struct slp_grad *g)
{
	double s = number(g->attrs);
	sl_tensor *d = g->dout[0], *y = g->out[0];
	if (s != 0) return give_only(g, sl_mul_scalar_at(g->at, sl_mul_at(g->at, d, y), log(s)));
	/* 0 or, where x is below 0, minus infinity */
	if (g->again) y = sl_detach_at(g->at, y); /* the derivative does not change with x */
	sl_tensor *zero = slp_zeros_like(g->at, y);
	return give_only(g, sl_mul_at(g->at, d, part(g->at, &slp_op_pow_by_exponent, zero, y)));
}

static enum sl_status maximum_scalar_grad(struct slp_grad *g)
{
	return give_only(g, sl_mul_at(g->at, g->dout[0], sl_ge_scalar_at(g->at, g->in[0], number(g->attrs))));
}

static enum sl_status minimum_scalar_grad(struct slp_grad *g)
{
	return give_only(g, sl_mul_at(g->at, g->dout[0], sl_le_scalar_at(g->at, g->in[0], number(g->attrs))));
}

/* ---- reference --------------------------------------------------------------------------------------------------- */

typedef int64_t whole_fn(int64_t a, int64_t b);

/* The element in an operand of shape s for element i of the result. */
static int64_t source(sl_shape s, sl_shape out, int64_t i)
{
	int64_t at = 0, step = 1;
	for (int axis = out.ndim - 1, j = s.ndim - 1; j >= 0; axis--, j--) {
		if (s.dim[j] != 1) at += i % out.dim[axis] * step;
		i /= out.dim[axis];
		step *= s.dim[j];
	}
	return at;
}

static enum sl_status binary_whole(const struct slp_kernel *k, whole_fn *f)
{
	sl_shape a = k->in[0].type.shape, b = k->in[1].type.shape, shape = k->out[0].type.shape;
	const int64_t *pa = k->in[0].ptr, *pb = k->in[1].ptr;
	int64_t *out = k->out[0].ptr;
	for (int64_t i = 0; i < slp_size(&k->out[0]); i++) out[i] = f(pa[source(a, shape, i)], pb[source(b, shape, i)]);
	return SL_OK;
}

static enum sl_status binary_ref(const struct slp_kernel *k, exact_fn *f, whole_fn *whole)
{
	const struct slp_view *a = &k->in[0], *b = &k->in[1], *out = &k->out[0];
	if (whole && out->type.dtype == SL_INT64) return binary_whole(k, whole);
	for (int64_t i = 0; i < slp_size(out); i++) {
		double x = slp_get(a, source(a->type.shape, out->type.shape, i));
		double y = slp_get(b, source(b->type.shape, out->type.shape, i));
		slp_set_truncated(out, i, f(x, y));
	}
	return SL_OK;
}

/* The number in the tensor's data type: 0.1 equals an element that was set to 0.1. */
static double number_for(const struct slp_kernel *k)
{
	double value = number(k->attrs);
	return k->in[0].type.dtype == SL_FLOAT32 ? (double)(float)value : value;
}

static enum sl_status scalar_whole(const struct slp_kernel *k, whole_fn *f, bool swapped)
{
	const int64_t *x = k->in[0].ptr, s = slp_int64_of(number(k->attrs));
	int64_t *out = k->out[0].ptr;
	for (int64_t i = 0; i < slp_size(&k->out[0]); i++) out[i] = swapped ? f(s, x[i]) : f(x[i], s);
	return SL_OK;
}

/* int64 may not be able to hold the number. */
static enum sl_status compare_whole(const struct slp_kernel *k, exact_fn *f)
{
	const int64_t *x = k->in[0].ptr;
	int64_t *out = k->out[0].ptr;
	double s = number(k->attrs);
	for (int64_t i = 0; i < slp_size(&k->out[0]); i++) out[i] = (int64_t)f(slp_whole_beside(x[i], s), 0);
	return SL_OK;
}

/* whole NULL: a comparison. */
static enum sl_status scalar_ref(const struct slp_kernel *k, exact_fn *f, whole_fn *whole, bool swapped)
{
	double s = number_for(k);
	if (k->in[0].type.dtype == SL_INT64) return whole ? scalar_whole(k, whole, swapped) : compare_whole(k, f);
	for (int64_t i = 0; i < slp_size(&k->out[0]); i++) {
		double x = slp_get(&k->in[0], i);
		slp_set_truncated(&k->out[0], i, swapped ? f(s, x) : f(x, s));
	}
	return SL_OK;
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

/* The function of two numbers, in double precision and over a span of floats. */
#define FUNCTION(name, value)                                                                                          \
	static double name##_exact(double a, double b)                                                                 \
	{                                                                                                              \
		typedef double T;                                                                                      \
		return (T)(value);                                                                                     \
	}                                                                                                              \
	SPAN_OF_TWO(name##_span, float, value)

/* The kernel for integers that a double holds. */
#define WIDE_KERNEL(name, value)                                                                                       \
	SPAN_OF_TWO(name##_wide_span, double, value)                                                                   \
	static enum sl_status name##_wide_cpu(const struct slp_kernel *k)                                              \
	{                                                                                                              \
		return binary_wide_cpu(k, name##_wide_span);                                                           \
	}

/* The function of two int64, if it is the same for all types. */
#define WHOLE(name, value)                                                                                             \
	static int64_t name##_whole(int64_t a, int64_t b)                                                              \
	{                                                                                                              \
		return value;                                                                                          \
	}

/* The kernels for int64: of two tensors, and of a tensor and a number. */
#define WHOLE_KERNEL(name, function)                                                                                   \
	SPAN_OF_TWO(name##_whole_span, int64_t, function(a, b))                                                        \
	static enum sl_status name##_whole_cpu(const struct slp_kernel *k)                                             \
	{                                                                                                              \
		return binary_cpu(k, name##_whole_span);                                                               \
	}
#define WHOLE_NUMBER(name, kernel, ...)                                                                                \
	static enum sl_status name##_scalar_whole_cpu(const struct slp_kernel *k)                                      \
	{                                                                                                              \
		return kernel(k, __VA_ARGS__);                                                                         \
	}

#define ROWS_AND(types, name)                                                                                          \
	SLP_ROWS(SLP_ROW(SLP_F32, name##_cpu, slp_cuda_##name), SLP_ROW(SLP_I64, name##_whole_cpu, slp_cuda_##name),   \
	         SLP_ROW((types) & ~SLP_FLOATS, name##_wide_cpu, slp_cuda_##name),                                     \
	         SLP_ROW(SLP_F64, name##_ref, slp_cuda_##name), SLP_HALF_ROWS(slp_cuda_##name),                        \
	         SLP_CPU_ROW(SLP_SMALL, name##_wide_cpu, NULL))
#define NUMBER_ROWS(name) ROWS_AND(SLP_NUMBERS, name)
#define TRUTH_ROWS(name) ROWS_AND(SLP_TRUTHS, name)

#define DESCRIPTOR(op_name, about, arguments, count, rows_of, over, keeps, gradient, ...)                              \
	SLP_DESCRIBE(op_name, about, arguments, count, .saves = keeps, .inplace = over, .elementwise = true,           \
	             .rows = rows_of(op_name), .flops = slp_flops_elementwise, .grad = gradient, __VA_ARGS__);

#define OF_TWO(name, whole, rows_of, over, saves, gradient, doc)                                                       \
	static enum sl_status name##_ref(const struct slp_kernel *k)                                                   \
	{                                                                                                              \
		return binary_ref(k, name##_exact, whole);                                                             \
	}                                                                                                              \
	static enum sl_status name##_cpu(const struct slp_kernel *k)                                                   \
	{                                                                                                              \
		return binary_cpu(k, name##_span);                                                                     \
	}                                                                                                              \
	DESCRIPTOR(name, doc, "a b", 2, rows_of, over, saves, gradient, .infer = binary_infer,                         \
	           .autocast = SLP_CAST_WIDEST)

/* sl_NAME_at(at, a, b): the function of the elements of a and b, which are repeated along axes of size 1 and along axes
 * that they lack at the front.  Both must have one data type, which is the result's (SL_EDTYPE otherwise; SL_ESHAPE if
 * the shapes do not match).  Integers, including all of int64, are computed exactly (except for powers), lose their
 * fractions as in C and saturate; x / 0 is the largest number with the sign of x, 0 / 0 is 0.  Only comparisons and the
 * logical_… functions take bools.  Their results are constants for a backward pass.  They also take two different data
 * types, except two half types, and convert both to one that holds either; it is the result's data type, unless the
 * call names another: sl_lt(a, b, .dtype = SL_BOOL).
 *
 *     sl_tensor *y = sl_add(sl_dot(x, w), bias);        // (n, m) + (m) */
#define PUBLIC_OF_TWO(name)                                                                                            \
	sl_tensor *sl_##name##_at(const char *at, sl_tensor *a, sl_tensor *b)                                          \
	{                                                                                                              \
		return part(at, &slp_op_##name, a, b);                                                                 \
	}

/* The same for data types that may differ. */
#define PUBLIC_COMPARISON(name)                                                                                        \
	sl_tensor *sl_##name##_at(const char *at, sl_tensor *a, sl_tensor *b)                                          \
	{                                                                                                              \
		return slp_apply_comparison(at, &slp_op_##name, a, b);                                                 \
	}

/* sl_NAME_scalar_at(at, x, s): the same with a number for b, or for a in the forms whose name begins with r.  The
 * result has x's data type; if that is an integer type, it must hold s (SL_EDTYPE otherwise), except in comparisons.
 *
 *     sl_tensor *half = sl_div_scalar(x, 2), *inverse = sl_rdiv_scalar(x, 1); */
#define OF_NUMBER(name, of, whole, rows_of, swapped, rule, saves, gradient, doc)                                       \
	static enum sl_status name##_scalar_ref(const struct slp_kernel *k)                                            \
	{                                                                                                              \
		return scalar_ref(k, of##_exact, whole, swapped);                                                      \
	}                                                                                                              \
	static enum sl_status name##_scalar_cpu(const struct slp_kernel *k)                                            \
	{                                                                                                              \
		return scalar_cpu(k, of##_span, swapped);                                                              \
	}                                                                                                              \
	static enum sl_status name##_scalar_wide_cpu(const struct slp_kernel *k)                                       \
	{                                                                                                              \
		return scalar_wide_cpu(k, of##_wide_span, swapped);                                                    \
	}                                                                                                              \
	sl_tensor *sl_##name##_scalar_at(const char *at, sl_tensor *x, double s)                                       \
	{                                                                                                              \
		return slp_apply1(at, &slp_op_##name##_scalar, &(struct slp_value){s}, 1, &x);                         \
	}                                                                                                              \
	DESCRIPTOR(name##_scalar, doc, "x", 1, rows_of, true, saves, gradient, .infer = rule,                          \
	           .attr_table = slp_value_attrs, .attrs_size = sizeof(struct slp_value))

#define BINARY(name, saves, scalar_saves, value, doc)                                                                  \
	FUNCTION(name, value)                                                                                          \
	WIDE_KERNEL(name, value)                                                                                       \
	WHOLE_KERNEL(name, slp_whole_##name)                                                                           \
	OF_TWO(name, slp_whole_##name, NUMBER_ROWS, true, saves, name##_grad, doc)                                     \
	PUBLIC_OF_TWO(name)                                                                                            \
	WHOLE_NUMBER(name, scalar_whole_cpu, name##_whole_span, false)                                                 \
	OF_NUMBER(name, name, slp_whole_##name, NUMBER_ROWS, false, scalar_infer, scalar_saves, name##_scalar_grad,    \
	          doc ", a number")

/* sl_NAME_at(at, a, b): the same for floats alone (SL_EDTYPE otherwise).  fmod and remainder are a - q b, with a
 * quotient q that is rounded towards 0, or down; floor_divide is the latter.  All are exact, whatever the quotient.  By
 * 0 the remainders are NaN, and floor_divide is a / b.  fmax and fmin are NaN only if both are.  The gradient of
 * copysign is 0 where a is 0, that of atan2 where both are; floor_divide has none.
 *
 *     sl_tensor *turn = sl_remainder(sl_atan2(y, x), sl_full(SL_SCALAR, 6.2831853)); */
#define PUBLIC_OF_FLOATS PUBLIC_OF_TWO

#define FLOATS(name, saves, value, doc)                                                                                \
	FUNCTION(name, value)                                                                                          \
	OF_TWO(name, NULL, SLP_FLOAT_ROWS, true, saves, name##_grad, doc)                                              \
	PUBLIC_OF_FLOATS(name)
#define TRUTH(name, value, doc)                                                                                        \
	FUNCTION(name, (value) ? 1 : 0)                                                                                \
	WIDE_KERNEL(name, (value) ? 1 : 0)                                                                             \
	WHOLE(name, (value) ? 1 : 0)                                                                                   \
	WHOLE_KERNEL(name, name##_whole)                                                                               \
	OF_TWO(name, name##_whole, TRUTH_ROWS, true, 0, slp_constant, "1 where " doc ", else 0")                       \
	PUBLIC_COMPARISON(name)
#define COMPARE(name, value, doc)                                                                                      \
	TRUTH(name, value, doc)                                                                                        \
	WHOLE_NUMBER(name, compare_whole_cpu, name##_wide_span)                                                        \
	OF_NUMBER(name, name, NULL, TRUTH_ROWS, false, compare_scalar_infer, 0, slp_constant,                          \
	          "1 where " doc ", a number, else 0")
#define CHOICE(name, value, doc)                                                                                       \
	FUNCTION(name, value)                                                                                          \
	WIDE_KERNEL(name, value)                                                                                       \
	WHOLE(name, value)                                                                                             \
	WHOLE_KERNEL(name, name##_whole)                                                                               \
	static enum sl_status name##_grad(struct slp_grad *g)                                                          \
	{                                                                                                              \
		return g->need[1] ? give(g, 1, part(g->at, g->op, g->in[0], g->dout[0])) : SL_OK;                      \
	}                                                                                                              \
	OF_TWO(name, name##_whole, TRUTH_ROWS, false, SLP_IN(0), name##_grad, doc)
#define SWAPPED(name, of, saves, doc)                                                                                  \
	WHOLE_NUMBER(name, scalar_whole_cpu, of##_whole_span, true)                                                    \
	OF_NUMBER(name, of, slp_whole_##of, NUMBER_ROWS, true, scalar_infer, saves, name##_scalar_grad, doc)
#define PART(name, value, doc)                                                                                         \
	FUNCTION(name, value)                                                                                          \
	OF_TWO(name, NULL, SLP_NARROW_ROWS, false, 0, NULL, doc)

#include "binary.def"
