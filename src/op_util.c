/* What the rules and the reference kernels of many operations need: elements as numbers, axes, broadcasting. */
#include <math.h>

#include "op.h"

int64_t slp_size(const struct slp_view *v)
{
	return sl_shape_size(v->type.shape);
}

double slp_get(const struct slp_view *v, int64_t i)
{
	switch (v->type.dtype) {
#define X(symbol, name, type)                                                                                          \
	case symbol:                                                                                                   \
		return (double)((const type *)v->ptr)[i];
		SL_DTYPE_LIST(X)
#undef X
	case SL_DTYPE_COUNT:
		break;
	}
	return NAN;
}

/* NaN becomes 0. */
static double to_integer(double value, double low, double high)
{
	if (isnan(value)) return 0;
	value = nearbyint(value);
	return value < low ? low : value > high ? high : value;
}

void slp_set(const struct slp_view *v, int64_t i, double value)
{
	switch (v->type.dtype) {
	case SL_FLOAT32:
		((float *)v->ptr)[i] = (float)value;
		break;
	case SL_FLOAT64:
		((double *)v->ptr)[i] = value;
		break;
	case SL_INT32:
		((int32_t *)v->ptr)[i] = (int32_t)to_integer(value, INT32_MIN, INT32_MAX);
		break;
	case SL_UINT8:
		((uint8_t *)v->ptr)[i] = (uint8_t)to_integer(value, 0, UINT8_MAX);
		break;
	case SL_DTYPE_COUNT:
		break;
	}
}

bool slp_axis(int *axis, int ndim)
{
	if (*axis < 0) *axis += ndim;
	return *axis >= 0 && *axis < ndim;
}

/* Axis `axis` of a result with ndim axes, as seen from a shape whose missing first axes count as 1. */
static int64_t dim_from_end(sl_shape s, int axis, int ndim)
{
	int i = axis - (ndim - s.ndim);
	return i < 0 ? 1 : s.dim[i];
}

bool slp_broadcast(sl_shape a, sl_shape b, sl_shape *out)
{
	sl_shape s = {.ndim = a.ndim > b.ndim ? a.ndim : b.ndim};
	for (int i = 0; i < s.ndim; i++) {
		int64_t m = dim_from_end(a, i, s.ndim), n = dim_from_end(b, i, s.ndim);
		if (m != n && m != 1 && n != 1) return false;
		s.dim[i] = m == 1 ? n : m;
	}
	*out = s;
	return true;
}

bool slp_is_float(enum sl_dtype dtype)
{
	return dtype == SL_FLOAT32 || dtype == SL_FLOAT64;
}

bool slp_can_hold(enum sl_dtype dtype, double value)
{
	union {
		char bytes[16];
		max_align_t align;
	} element = {{0}};
	struct slp_view v = {&element, {dtype, SL_SCALAR}};
	if (slp_is_float(dtype)) return true;
	slp_set(&v, 0, value);
	return slp_get(&v, 0) == value;
}

double slp_flops_elementwise(const struct slp_infer *c)
{
	return (double)sl_shape_size(c->out[0].shape);
}
