/* Slopes of elementwise functions as operations that have gradients themselves.  unary.def explains d and v. */
#include "slopes.h"

#include "op_list/binary.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"

#define ADD(a, b) sl_add_at(at, a, b)
#define SUB(a, b) sl_sub_at(at, a, b)
#define MUL(a, b) sl_mul_at(at, a, b)
#define DIV(a, b) sl_div_at(at, a, b)
#define PLUS(a, s) sl_add_scalar_at(at, a, s)
#define TIMES(a, s) sl_mul_scalar_at(at, a, s)
#define FROM(s, a) sl_rsub_scalar_at(at, a, s)
#define OF(function, a) sl_##function##_at(at, a)
#define LIMIT(a) sl_maximum_scalar_at(at, sl_minimum_scalar_at(at, a, 50), -50)

static sl_tensor *take_unless(const char *at, sl_tensor *condition, sl_tensor *a)
{
	return slp_apply1(at, &slp_op_take_unless, NULL, 2, (sl_tensor *[]){condition, a});
}

/* The derivative of v sigmoid(u(v)), given that of u. */
static sl_tensor *gated(const char *at, sl_tensor *v, sl_tensor *u, sl_tensor *turn)
{
	sl_tensor *rest = MUL(LIMIT(v), OF(sigmoid, OF(neg, u)));
	return MUL(OF(sigmoid, u), PLUS(turn ? MUL(rest, turn) : rest, 1));
}

static sl_tensor *gelu_tanh_slope(const char *at, sl_tensor *v)
{
	sl_tensor *squares = OF(square, LIMIT(v));
	sl_tensor *u = MUL(v, PLUS(TIMES(OF(square, v), 0.07135481627260025), 1.5957691216057308));
	return gated(at, v, u, PLUS(TIMES(squares, 0.21406444881780074), 1.5957691216057308));
}

static sl_tensor *gelu_slope(const char *at, sl_tensor *v)
{
	sl_tensor *near = LIMIT(v), *density = TIMES(OF(exp, TIMES(OF(square, near), -0.5)), 0.3989422804014327);
	return ADD(TIMES(PLUS(OF(erf, TIMES(v, 0.7071067811865476)), 1), 0.5), MUL(near, density));
}

static sl_tensor *hard_swish_slope(const char *at, sl_tensor *v)
{
	sl_tensor *high = sl_ge_scalar_at(at, v, 3), *between = PLUS(TIMES(v, 0.33333333333333333), 0.5);
	return take_unless(at, sl_le_scalar_at(at, v, -3), ADD(take_unless(at, high, between), high));
}

#define SLOPE(name, value)                                                                                             \
	sl_tensor *slp_slope_##name(const char *at, sl_tensor *d, sl_tensor *v)                                        \
	{                                                                                                              \
		return value;                                                                                          \
	}
SLOPE(abs, MUL(d, OF(sign, v)))
SLOPE(exp, MUL(d, v))
SLOPE(log, DIV(d, v))
SLOPE(sqrt, DIV(d, TIMES(v, 2)))
SLOPE(square, MUL(TIMES(d, 2), v))
SLOPE(reciprocal, OF(neg, MUL(MUL(d, v), v)))
SLOPE(relu, take_unless(at, sl_le_scalar_at(at, v, 0), d))
SLOPE(sigmoid, MUL(MUL(d, v), FROM(1, v)))
SLOPE(tanh, MUL(d, FROM(1, OF(square, v))))
SLOPE(gelu, MUL(d, gelu_slope(at, v)))
SLOPE(softplus, MUL(d, OF(sigmoid, v)))
SLOPE(sin, MUL(d, OF(cos, v)))
SLOPE(cos, OF(neg, MUL(d, OF(sin, v))))
SLOPE(tan, MUL(d, PLUS(OF(square, v), 1)))
SLOPE(asin, DIV(d, OF(sqrt, MUL(FROM(1, v), PLUS(v, 1)))))
SLOPE(acos, OF(neg, DIV(d, OF(sqrt, MUL(FROM(1, v), PLUS(v, 1))))))
SLOPE(atan, DIV(d, PLUS(OF(square, v), 1)))
SLOPE(sinh, MUL(d, OF(cosh, v)))
SLOPE(cosh, MUL(d, OF(sinh, v)))
SLOPE(asinh, DIV(d, OF(sqrt, PLUS(OF(square, v), 1))))
SLOPE(acosh, DIV(d, MUL(OF(sqrt, PLUS(v, -1)), OF(sqrt, PLUS(v, 1)))))
SLOPE(atanh, DIV(d, MUL(FROM(1, v), PLUS(v, 1))))
SLOPE(erf, MUL(d, TIMES(OF(exp, OF(neg, OF(square, v))), 1.1283791670955126)))
SLOPE(erfc, MUL(d, TIMES(OF(exp, OF(neg, OF(square, v))), -1.1283791670955126)))
SLOPE(log1p, DIV(d, PLUS(v, 1)))
SLOPE(expm1, MUL(d, PLUS(v, 1)))
SLOPE(rsqrt, MUL(d, TIMES(MUL(MUL(v, v), v), -0.5)))
SLOPE(silu, MUL(d, gated(at, v, v, NULL)))
SLOPE(hard_swish, MUL(d, hard_swish_slope(at, v)))
SLOPE(gelu_tanh, MUL(d, gelu_tanh_slope(at, v)))

/* A 0 in the place of b would make an infinity that meets a 0. */
sl_tensor *slp_slope_by_base(const char *at, sl_tensor *a, sl_tensor *b)
{
	sl_tensor *none = sl_eq_scalar_at(at, b, 0), *other = ADD(b, none);
	return sl_sub_at(at, MUL(other, sl_pow_at(at, a, PLUS(other, -1))), none);
}

sl_tensor *slp_slope_by_exponent(const char *at, sl_tensor *a, sl_tensor *y)
{
	sl_tensor *zero = sl_eq_scalar_at(at, a, 0), *small = sl_le_scalar_at(at, y, 1);
	sl_tensor *none = MUL(zero, small); /* broadcast, as a and y */
	return MUL(take_unless(at, none, y), OF(log, ADD(a, none)));
}
