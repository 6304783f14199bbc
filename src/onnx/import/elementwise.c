/* ONNX operators, computed: elementwise arithmetic, comparisons, casts. */
#include <math.h>
#include <stdlib.h>

#include "onnx/model/call.h"
#include "op_inner.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/functions.h"
#include "whole.h"

enum { UINT64 = 13 }; /* the number of the type in the format */

/* ---- of one tensor ----------------------------------------------------------------------------------------------- */

static sl_tensor *mish(const char *at, sl_tensor *x)
{
	return sl_mul_at(at, x, sl_tanh_at(at, sl_softplus_at(at, x)));
}

static double negated(double x)
{
	return -x;
}
static double inverted(double x)
{
	return 1 / x;
}
static double unless(double x)
{
	return x == 0;
}

/* The function of a tensor, and of a number, if shapes are made by it; is a truth value. */
static const struct unary {
	const char *name;
	sl_tensor *(*tensor)(const char *at, sl_tensor *x);
	double (*number)(double x);
	bool truth;
} unaries[] = {
        {"Abs", sl_abs_at, fabs, false},
        {"Neg", sl_neg_at, negated, false},
        {"Exp", sl_exp_at, exp, false},
        {"Log", sl_log_at, log, false},
        {"Sqrt", sl_sqrt_at, sqrt, false},
        {"Reciprocal", sl_reciprocal_at, inverted, false},
        {"Relu", sl_relu_at, NULL, false},
        {"Sigmoid", sl_sigmoid_at, NULL, false},
        {"Tanh", sl_tanh_at, tanh, false},
        {"Softplus", sl_softplus_at, NULL, false},
        {"Sin", sl_sin_at, sin, false},
        {"Cos", sl_cos_at, cos, false},
        {"Asin", sl_asin_at, asin, false},
        {"Acos", sl_acos_at, acos, false},
        {"Atan", sl_atan_at, atan, false},
        {"Erf", sl_erf_at, erf, false},
        {"Sign", sl_sign_at, NULL, false},
        {"Floor", sl_floor_at, floor, false},
        {"Ceil", sl_ceil_at, ceil, false},
        {"Round", sl_round_at, rint, false},
        {"Not", sl_logical_not_at, unless, true},
        {"IsNaN", sl_isnan_at, NULL, true},
        {"HardSwish", sl_hard_swish_at, NULL, false},
        {"Softsign", sl_softsign_at, NULL, false},
        {"Mish", mish, NULL, false},
        {"Tan", sl_tan_at, tan, false},
        {"Sinh", sl_sinh_at, sinh, false},
        {"Cosh", sl_cosh_at, cosh, false},
        {"Asinh", sl_asinh_at, asinh, false},
        {"Acosh", sl_acosh_at, acosh, false},
        {"Atanh", sl_atanh_at, atanh, false},
};

static sl_tensor *as_truth(struct slp_onnx_call *c, sl_tensor *t)
{
	return t && sl_tensor_dtype(t) != SL_BOOL ? sl_cast_at(c->at, t, SL_BOOL) : t;
}

void slp_onnx_import_unary(struct slp_onnx_call *c)
{
	const struct unary *u = unaries;
	while (strcmp(u->name, c->op->name)) u++;
	struct slp_onnx_known *k = c->in[0].known, *y = NULL;
	int64_t (*whole)(int64_t x) = u->number == fabs ? slp_whole_abs : u->number == negated ? slp_whole_neg : NULL;
	if (!k || !u->number) {
		sl_tensor *t = u->tensor(c->at, slp_onnx_tensor(c, 0));
		slp_onnx_set_output(c, 0, u->truth ? as_truth(c, t) : t);
		return;
	}
	y = slp_onnx_known_new(c->made, u->truth ? SL_BOOL : k->dtype, k->shape);
	for (int64_t i = 0; y && i < sl_shape_size(k->shape); i++)
		if (whole && !slp_is_float(k->dtype)) y->v[i].i = whole(k->v[i].i);
		else slp_onnx_known_put(y, i, u->number(slp_onnx_known_number(k, i)));
	slp_onnx_set_output_value(c, 0, (struct slp_onnx_value){.known = y});
}

void slp_onnx_import_isinf(struct slp_onnx_call *c)
{
	bool down = slp_onnx_attr_int(c, "detect_negative", 1) != 0,
	     up = slp_onnx_attr_int(c, "detect_positive", 1) != 0;
	sl_tensor *x = slp_onnx_tensor(c, 0);
	if (down && !up) x = sl_neg_at(c->at, x);
	if (down && up) x = sl_abs_at(c->at, x);
	slp_onnx_set_output(c, 0,
	                    as_truth(c, down || up ? sl_eq_scalar_at(c->at, x, INFINITY) : sl_lt_at(c->at, x, x)));
}

/* ---- of two ------------------------------------------------------------------------------------------------------ */

static double plus(double a, double b)
{
	return a + b;
}
static double minus(double a, double b)
{
	return a - b;
}
static double times(double a, double b)
{
	return a * b;
}
static double over(double a, double b)
{
	return a / b;
}
static double power(double a, double b)
{
	return pow(a, b);
}
static double larger(double a, double b)
{
	return a > b || isnan(a) ? a : b;
}
static double smaller(double a, double b)
{
	return a < b || isnan(a) ? a : b;
}
#define COMPARISON(name, operator)                                                                                     \
	static double name(double a, double b)                                                                         \
	{                                                                                                              \
		return a operator b;                                                                                   \
	}                                                                                                              \
	static int64_t whole_##name(int64_t a, int64_t b)                                                              \
	{                                                                                                              \
		return a operator b;                                                                                   \
	}
COMPARISON(same, ==)
COMPARISON(less, <)
COMPARISON(most, <=)
COMPARISON(more, >)
COMPARISON(least, >=)
static double both(double a, double b)
{
	return a != 0 && b != 0;
}
static double either(double a, double b)
{
	return a != 0 || b != 0;
}
static double one(double a, double b)
{
	return (a != 0) != (b != 0);
}

/* The function of two tensors, with a number on the right, on the left; of two numbers, of two integers. */
static const struct binary {
	const char *name;
	sl_tensor *(*tensors)(const char *at, sl_tensor *a, sl_tensor *b);
	sl_tensor *(*right)(const char *at, sl_tensor *x, double s);
	sl_tensor *(*left)(const char *at, sl_tensor *x, double s);
	double (*numbers)(double a, double b);
	bool truth;
	int64_t (*wholes)(int64_t a, int64_t b); /* NULL: that of doubles does */
} binaries[] = {
        {"Add", sl_add_at, sl_add_scalar_at, sl_add_scalar_at, plus, false, slp_whole_add},
        {"Sub", sl_sub_at, sl_sub_scalar_at, sl_rsub_scalar_at, minus, false, slp_whole_sub},
        {"Mul", sl_mul_at, sl_mul_scalar_at, sl_mul_scalar_at, times, false, slp_whole_mul},
        {"Div", sl_div_at, sl_div_scalar_at, sl_rdiv_scalar_at, over, false, slp_whole_div},
        {"Pow", sl_pow_at, sl_pow_scalar_at, sl_rpow_scalar_at, power, false, NULL},
        {"Max", sl_maximum_at, sl_maximum_scalar_at, sl_maximum_scalar_at, larger, false, slp_whole_maximum},
        {"Min", sl_minimum_at, sl_minimum_scalar_at, sl_minimum_scalar_at, smaller, false, slp_whole_minimum},
        {"Sum", sl_add_at, sl_add_scalar_at, sl_add_scalar_at, plus, false, slp_whole_add},
        {"Mean", sl_add_at, sl_add_scalar_at, sl_add_scalar_at, plus, false, slp_whole_add},
        {"Equal", sl_eq_at, sl_eq_scalar_at, sl_eq_scalar_at, same, true, whole_same},
        {"Less", sl_lt_at, sl_lt_scalar_at, sl_gt_scalar_at, less, true, whole_less},
        {"LessOrEqual", sl_le_at, sl_le_scalar_at, sl_ge_scalar_at, most, true, whole_most},
        {"Greater", sl_gt_at, sl_gt_scalar_at, sl_lt_scalar_at, more, true, whole_more},
        {"GreaterOrEqual", sl_ge_at, sl_ge_scalar_at, sl_le_scalar_at, least, true, whole_least},
        {"And", sl_logical_and_at, NULL, NULL, both, true, NULL},
        {"Or", sl_logical_or_at, NULL, NULL, either, true, NULL},
        {"Xor", sl_logical_xor_at, NULL, NULL, one, true, NULL},
};

static const struct binary *binary_named(const char *name)
{
	const struct binary *b = binaries;
	while (strcmp(b->name, name)) b++;
	return b;
}

/* The element of k that belongs to an element of a larger shape. */
static int64_t element_of(const struct slp_onnx_known *k, sl_shape shape, int64_t i)
{
	int64_t place = 0, step = 1;
	for (int a = k->shape.ndim - 1, b = shape.ndim - 1; b >= 0; a--, b--) {
		int64_t at = i % shape.dim[b];
		i /= shape.dim[b];
		if (a < 0) continue;
		if (k->shape.dim[a] > 1) place += at * step;
		step *= k->shape.dim[a];
	}
	return place;
}

static struct slp_onnx_value of_numbers(struct slp_onnx_call *c, const struct binary *f, const struct slp_onnx_known *a,
                                        const struct slp_onnx_known *b, sl_shape shape)
{
	struct slp_onnx_known *y = slp_onnx_known_new(c->made, f->truth ? SL_BOOL : a->dtype, shape);
	for (int64_t i = 0; y && i < sl_shape_size(shape); i++) {
		int64_t p = element_of(a, shape, i), q = element_of(b, shape, i);
		if (f->wholes && !slp_is_float(a->dtype) && !slp_is_float(b->dtype))
			y->v[i].i = f->wholes(a->v[p].i, b->v[q].i);
		else slp_onnx_known_put(y, i, f->numbers(slp_onnx_known_number(a, p), slp_onnx_known_number(b, q)));
	}
	return (struct slp_onnx_value){.known = y};
}

/* Whether a value is one number that goes with any element of the other, which has as many axes at least. */
static bool is_number(struct slp_onnx_value v, struct slp_onnx_value other)
{
	return v.known && other.t && sl_shape_size(v.known->shape) == 1 &&
	       v.known->shape.ndim <= sl_tensor_shape(other.t).ndim && slp_onnx_known_is_double(v.known);
}

static sl_tensor *to_power(struct slp_onnx_call *c, sl_tensor *x, double s)
{
	if (s == 1) return x;
	if (s == 2) return sl_square_at(c->at, x);
	if (s == 3) return sl_mul_at(c->at, sl_square_at(c->at, x), x);
	if (!slp_can_hold(sl_tensor_dtype(x), s))
		return sl_cast_at(c->at, sl_pow_scalar_at(c->at, sl_cast_at(c->at, x, SL_FLOAT64), s),
		                  sl_tensor_dtype(x));
	if (s == 0.5) return sl_sqrt_at(c->at, x);
	return sl_pow_scalar_at(c->at, x, s);
}

static sl_tensor *of_tensors(struct slp_onnx_call *c, const struct binary *f, struct slp_onnx_value a,
                             struct slp_onnx_value b)
{
	if (f->right && is_number(b, a)) {
		double s = slp_onnx_known_number(b.known, 0);
		return f->tensors == sl_pow_at ? to_power(c, a.t, s) : f->right(c->at, a.t, s);
	}
	if (f->left && is_number(a, b)) return f->left(c->at, b.t, slp_onnx_known_number(a.known, 0));
	enum sl_dtype dtype = slp_onnx_dtype(&a);
	bool root = f->tensors == sl_pow_at && !slp_is_float(dtype) && slp_is_float(slp_onnx_dtype(&b));
	if (root) a = slp_onnx_cast(c, a, SL_FLOAT64);
	if (f->tensors == sl_pow_at) b = slp_onnx_cast(c, b, slp_onnx_dtype(&a));
	sl_tensor *x = slp_onnx_as_tensor(c, a), *y = slp_onnx_as_tensor(c, b);
	y = x && y ? f->tensors(c->at, x, y) : NULL;
	return root ? sl_cast_at(c->at, y, dtype) : y;
}

static struct slp_onnx_value apply(struct slp_onnx_call *c, const struct binary *f, struct slp_onnx_value a,
                                   struct slp_onnx_value b)
{
	sl_shape shape;
	if (a.known && b.known && slp_broadcast(a.known->shape, b.known->shape, &shape) && slp_onnx_is_few(shape))
		return of_numbers(c, f, a.known, b.known, shape);
	sl_tensor *y = of_tensors(c, f, a, b);
	return (struct slp_onnx_value){.t = f->truth ? as_truth(c, y) : y};
}

/* ---- sums, differences and products of integers, modulo 2^64 ------------------------------------------------------ */

static int64_t modular_add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}
static int64_t modular_sub(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}
static int64_t modular_mul(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* The kind of an operator of int64 that wraps; -1: another. */
static int modular_kind(const struct binary *f, struct slp_onnx_value a, struct slp_onnx_value b)
{
	if (slp_onnx_dtype(&a) != SL_INT64 || slp_onnx_dtype(&b) != SL_INT64) return -1;
	return f->wholes == slp_whole_add   ? SLP_MODULAR_ADD
	       : f->wholes == slp_whole_sub ? SLP_MODULAR_SUB
	       : f->wholes == slp_whole_mul ? SLP_MODULAR_MUL
	                                    : -1;
}

/* As operators of a file compute: integers wrap, where our own operations saturate. */
static struct slp_onnx_value apply_wrapping(struct slp_onnx_call *c, const struct binary *f, struct slp_onnx_value a,
                                            struct slp_onnx_value b)
{
	static int64_t (*const wholes[])(int64_t a, int64_t b) = {modular_add, modular_sub, modular_mul};
	sl_shape x = slp_onnx_shape_of(c, a), y = slp_onnx_shape_of(c, b), shape;
	int kind = modular_kind(f, a, b);
	if (c->failed || kind < 0 || !slp_broadcast(x, y, &shape)) return apply(c, f, a, b);
	if (a.known && b.known && slp_onnx_is_few(shape)) {
		const struct binary of_known = {.wholes = wholes[kind]};
		return of_numbers(c, &of_known, a.known, b.known, shape);
	}
	sl_tensor *p = slp_onnx_as_tensor(c, slp_onnx_broadcast(c, a, shape));
	sl_tensor *q = slp_onnx_as_tensor(c, slp_onnx_broadcast(c, b, shape));
	return (struct slp_onnx_value){.t = p && q ? slp_modular(c->at, p, q, kind) : NULL};
}

struct slp_onnx_value slp_onnx_binary(struct slp_onnx_call *c, const char *operator, struct slp_onnx_value a,
                                      struct slp_onnx_value b)
{
	struct slp_onnx_value y = {0};
	if (!c->failed) y = apply_wrapping(c, binary_named(operator), a, b);
	if (!slp_onnx_present(y)) c->failed = true; /* and recorded */
	return y;
}

/* uint64, which is held as int64 of the same bits, in the order of int64: 2^63 smaller; and back. */
static struct slp_onnx_value turned_order(struct slp_onnx_call *c, struct slp_onnx_value v)
{
	struct slp_onnx_known *k = slp_onnx_known_new(c->made, SL_INT64, SL_SCALAR);
	if (k) k->v[0].i = INT64_MIN;
	if (k && slp_onnx_present(v))
		v = apply_wrapping(c, binary_named("Add"), v, (struct slp_onnx_value){.known = k});
	return v;
}

/* Whether the operator compares numbers of uint64. */
static bool orders_unsigned(const struct slp_onnx_call *c, const struct binary *f)
{
	bool orders = f->wholes == slp_whole_maximum || f->wholes == slp_whole_minimum || f->wholes == whole_less ||
	              f->wholes == whole_most || f->wholes == whole_more || f->wholes == whole_least;
	return orders && slp_onnx_type_of(&c->in[0]) == UINT64;
}

/* The operator on all inputs, one after the other. */
static void import_all(struct slp_onnx_call *c)
{
	const struct binary *f = binary_named(c->op->name);
	bool turned = orders_unsigned(c, f);
	struct slp_onnx_value y = turned ? turned_order(c, c->in[0]) : c->in[0];
	for (int i = 1; i < c->nin && (y.t || y.known); i++)
		y = apply_wrapping(c, f, y, turned ? turned_order(c, c->in[i]) : c->in[i]);
	if (!strcmp(f->name, "Mean")) y.t = sl_div_scalar_at(c->at, slp_onnx_as_tensor(c, y), c->nin), y.known = NULL;
	slp_onnx_set_output_value(c, 0, turned && !f->truth ? turned_order(c, y) : y);
}

void slp_onnx_import_binary(struct slp_onnx_call *c)
{
	import_all(c);
}

void slp_onnx_import_variadic(struct slp_onnx_call *c)
{
	import_all(c);
}

static int64_t rest(int64_t a, int64_t b)
{
	return b == 0 || b == -1 ? 0 : a % b;
}

static int64_t modulo(int64_t a, int64_t b)
{
	int64_t r = rest(a, b);
	return r && (r < 0) != (b < 0) ? r + b : r;
}

/* Of int64, exactly.  A product has the sign of its factors even where it saturates. */
static struct slp_onnx_value whole_mod(struct slp_onnx_call *c, struct slp_onnx_value a, struct slp_onnx_value b,
                                       bool c_rule)
{
	const struct binary of_known = {.wholes = c_rule ? rest : modulo}, *mul = binary_named("Mul");
	sl_shape shape;
	if (a.known && b.known && slp_broadcast(a.known->shape, b.known->shape, &shape) && slp_onnx_is_few(shape))
		return of_numbers(c, &of_known, a.known, b.known, shape);
	struct slp_onnx_value q = {.t = of_tensors(c, binary_named("Div"), a, b)}, p = {.t = NULL};
	if (q.t) p.t = of_tensors(c, mul, q, b);
	struct slp_onnx_value r = {.t = p.t ? of_tensors(c, binary_named("Sub"), a, p) : NULL};
	if (!r.t || c_rule) return r;
	p.t = of_tensors(c, mul, r, b);
	p.t = p.t ? sl_lt_scalar_at(c->at, p.t, 0) : NULL;
	return (struct slp_onnx_value){.t = p.t ? sl_add_at(c->at, r.t, of_tensors(c, mul, p, b)) : NULL};
}

/* The rest of a division by infinity: a, or b where the signs differ. */
static struct slp_onnx_value of_infinite(struct slp_onnx_call *c, struct slp_onnx_value r, struct slp_onnx_value a,
                                         struct slp_onnx_value b, bool c_rule)
{
	const char *at = c->at;
	sl_tensor *x = slp_onnx_as_tensor(c, a), *y = slp_onnx_as_tensor(c, b), *t = slp_onnx_as_tensor(c, r);
	sl_tensor *far = t ? sl_eq_scalar_at(at, sl_abs_at(at, y), INFINITY) : NULL;
	far = far ? sl_mul_at(at, far, sl_isfinite_at(at, x)) : NULL;
	sl_tensor *apart = far ? sl_lt_scalar_at(at, sl_mul_at(at, sl_sign_at(at, x), sl_sign_at(at, y)), 0) : NULL;
	sl_tensor *then = !apart ? NULL : c_rule ? x : sl_where_at(at, apart, y, x);
	return (struct slp_onnx_value){.t = then ? sl_where_at(at, far, then, t) : NULL};
}

/* The rest has the sign of a with fmod, else that of b. */
void slp_onnx_import_mod(struct slp_onnx_call *c)
{
	bool c_rule = slp_onnx_attr_int(c, "fmod", 0) != 0;
	struct slp_onnx_value a = c->in[0], b = c->in[1];
	const struct binary *mul = binary_named("Mul"), *sub = binary_named("Sub");
	enum sl_dtype dtype = slp_onnx_dtype(&a);
	if (dtype == SL_INT64) {
		slp_onnx_set_output_value(c, 0, whole_mod(c, a, b, c_rule));
		return;
	}
	a = slp_onnx_cast(c, a, SL_FLOAT64), b = slp_onnx_cast(c, b, SL_FLOAT64);
	struct slp_onnx_value q = apply(c, binary_named("Div"), a, b);
	for (int64_t i = 0; q.known && i < sl_shape_size(q.known->shape); i++)
		q.known->v[i].f = c_rule ? trunc(q.known->v[i].f) : floor(q.known->v[i].f);
	if (q.t && c_rule) q.t = sl_mul_at(c->at, sl_sign_at(c->at, q.t), sl_floor_at(c->at, sl_abs_at(c->at, q.t)));
	else if (q.t) q.t = sl_floor_at(c->at, q.t);
	if (q.t || q.known) q = apply(c, sub, a, apply(c, mul, q, b));
	if (slp_is_float(dtype) && slp_onnx_present(q)) q = of_infinite(c, q, a, b, c_rule);
	if (slp_onnx_present(q)) slp_onnx_set_output_value(c, 0, slp_onnx_cast(c, q, dtype));
	else c->failed = true; /* and recorded */
}

void slp_onnx_import_clip(struct slp_onnx_call *c)
{
	static const char *const limits[] = {"min", "max"}, *const functions[] = {"Max", "Min"};
	bool turned = slp_onnx_type_of(&c->in[0]) == UINT64;
	struct slp_onnx_value y = turned ? turned_order(c, c->in[0]) : c->in[0];
	for (int i = 0; i < 2 && (y.t || y.known); i++) {
		const SlpOnnx__AttributeProto *a = slp_onnx_attr(c, limits[i]);
		if (slp_onnx_has(c, 1 + i))
			y = apply(c, binary_named(functions[i]), y,
			          turned ? turned_order(c, c->in[1 + i]) : c->in[1 + i]);
		else if (a)
			y.t = (i ? sl_minimum_scalar_at : sl_maximum_scalar_at)(c->at, slp_onnx_as_tensor(c, y), a->f),
			y.known = NULL;
	}
	slp_onnx_set_output_value(c, 0, turned ? turned_order(c, y) : y);
}

void slp_onnx_import_where(struct slp_onnx_call *c)
{
	const struct slp_onnx_known *p = c->in[0].known, *a = c->in[1].known, *b = c->in[2].known;
	sl_shape shape;
	if (p && a && b && slp_broadcast(p->shape, a->shape, &shape) && slp_broadcast(shape, b->shape, &shape) &&
	    slp_onnx_is_few(shape)) {
		struct slp_onnx_known *y = slp_onnx_known_new(c->made, a->dtype, shape);
		for (int64_t i = 0; y && i < sl_shape_size(shape); i++)
			y->v[i] = slp_onnx_known_number(p, element_of(p, shape, i)) != 0
			                  ? a->v[element_of(a, shape, i)]
			                  : b->v[element_of(b, shape, i)];
		slp_onnx_set_output_value(c, 0, (struct slp_onnx_value){.known = y});
		return;
	}
	sl_tensor *when = slp_onnx_tensor(c, 0), *then = slp_onnx_tensor(c, 1), *otherwise = slp_onnx_tensor(c, 2);
	slp_onnx_set_output(c, 0, when && then && otherwise ? sl_where_at(c->at, when, then, otherwise) : NULL);
}
