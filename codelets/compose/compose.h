/* Common parts of functions made of operations: checks of their arguments' shapes before the first operation is
 * called. */
#ifndef SLP_COMPOSE_H
#define SLP_COMPOSE_H

#include <math.h>

#include "op_list/binary.h"
#include "starling/autograd.h"
#include "starling/arithmetic.h"
#include "starling/primitives.h"

/* Whether the argument was given and its shape is known: a symbol may not know it yet. */
static inline bool slp_shape_given(const char *at, const char *function, const char *name, sl_tensor *x)
{
	if (!slp_given(at, function, name, x)) return false;
	if (sl_tensor_shape(x).ndim >= 0) return true;
	slp_call_fail(at, function, SL_ESHAPE, "the shape of %s is not known yet: give it to sl_var", name);
	return false;
}

/* Whether an argument, or NULL for none, has the required shape; a symbol may not know its own. */
static inline bool slp_shape_fits(const char *at, const char *function, const char *name, sl_tensor *t, sl_shape wanted)
{
	char text[2][128];
	sl_shape s = t ? sl_tensor_shape(t) : wanted;
	if (s.ndim < 0 || sl_shape_equal(s, wanted)) return true;
	slp_call_fail(at, function, SL_ESHAPE, "the shape of %s is %s, %s needed", name, sl_shape_string(s, text[0]),
	              sl_shape_string(wanted, text[1]));
	return false;
}

/* As slp_shape_given, and the axis counted from 0. */
static inline bool slp_axis_given(const char *at, const char *function, sl_tensor *x, int *axis)
{
	if (!slp_shape_given(at, function, "x", x)) return false;
	int wanted = *axis, ndim = sl_tensor_shape(x).ndim;
	if (slp_axis(axis, ndim)) return true;
	slp_call_fail(at, function, SL_EINVAL, "axis %d of a tensor with %d axes", wanted, ndim);
	return false;
}

/* Whether an option is a number to compute with. */
static inline bool slp_is_figure(const char *at, const char *function, const char *name, double value)
{
	if (isfinite(value)) return true;
	slp_call_fail(at, function, SL_EINVAL, "%s is %g, a finite number needed", name, value);
	return false;
}

/* 0, 1, … to n - 1 in a shape, on the device of `like`. */
static inline sl_tensor *slp_counted(const char *at, sl_tensor *like, int64_t n, sl_shape shape)
{
	struct sl_make make = {SL_INT32, sl_tensor_device(like)};
	return sl_reshape_at(at, sl_arange_at(at, 0, (double)n, 1, make), shape);
}

/* Half types are too narrow for sums, statistics and positions: functions compute these in float32 and round once. */
static inline sl_tensor *slp_widened(const char *at, sl_tensor *x)
{
	return x && slp_is_half(sl_tensor_dtype(x)) ? sl_cast_at(at, x, SL_FLOAT32) : x;
}

/* y, computed from x widened, in the type of x; with autocast it stays float32, as results of norms and losses do. */
static inline sl_tensor *slp_narrowed(const char *at, sl_tensor *y, sl_tensor *x)
{
	bool half = y && slp_is_half(sl_tensor_dtype(x)) && sl_autocast_dtype() == SL_DTYPE_DEFAULT;
	return half ? sl_cast_at(at, y, sl_tensor_dtype(x)) : y;
}

/* x in the half type in which autocast multiplies. */
static inline sl_tensor *slp_lowered(const char *at, sl_tensor *x)
{
	enum sl_dtype to = sl_autocast_dtype(), from = sl_tensor_dtype(x);
	bool cast = x && to != SL_DTYPE_DEFAULT && from != to && slp_promoted(from) == SL_FLOAT32;
	return cast ? sl_cast_at(at, x, to) : x;
}

/* Whether two arguments have one data type; autocast lifts that requirement. */
static inline bool slp_one_type(const char *at, const char *function, const char *name, sl_tensor *x, const char *other,
                                sl_tensor *y)
{
	enum sl_dtype d = sl_tensor_dtype(x), e = sl_tensor_dtype(y);
	if (d == e || sl_autocast_dtype() != SL_DTYPE_DEFAULT) return true;
	slp_call_fail(at, function, SL_EDTYPE, "%s is %s and %s is %s; convert one with sl_cast", name,
	              sl_dtype_name(d), other, sl_dtype_name(e));
	return false;
}

/* x where the condition, of its type, is not 0, else 0. */
static inline sl_tensor *slp_take_if(const char *at, sl_tensor *condition, sl_tensor *x)
{
	return slp_apply1(at, &slp_op_take_if, NULL, 2, (sl_tensor *[]){condition, x});
}

/* A tensor of equal numbers, of the type and on the device of x. */
static inline sl_tensor *slp_full_beside(const char *at, sl_tensor *x, sl_shape shape, double value)
{
	return sl_full_at(at, shape, value, (struct sl_make){sl_tensor_dtype(x), sl_tensor_device(x)});
}

#endif
