/* Common functions of rules and reference kernels: elements as numbers, axes, broadcasting. */
#include <float.h>
#include <math.h>

#include "op.h"

int64_t slp_size(const struct slp_view *v)
{
	return sl_shape_size(v->type.shape);
}

double slp_get(const struct slp_view *v, int64_t i)
{
	switch (v->type.dtype) {
/* clang-format off */
#define X(symbol, name, type, ...)                                                                                     \
	case symbol:                                                                                                   \
		return (double)slp_load(((const type *)v->ptr)[i]);
		/* clang-format on */
		SL_DTYPE_LIST(X)
#undef X
	case SL_DTYPE_DEFAULT:
	case SL_DTYPE_COUNT: break;
	}
	return NAN;
}

void slp_set_truncated(const struct slp_view *v, int64_t i, double value)
{
	switch (v->type.dtype) {
/* clang-format off */
#define X(symbol, name, type, ...)                                                                                     \
	case symbol:                                                                                                   \
		((type *)v->ptr)[i] = slp_store_##symbol(value);                                                       \
		break;
		/* clang-format on */
		SL_DTYPE_LIST(X)
#undef X
	case SL_DTYPE_DEFAULT:
	case SL_DTYPE_COUNT: break;
	}
}

void slp_set(const struct slp_view *v, int64_t i, double value)
{
	slp_set_truncated(v, i, slp_kind_of(v->type.dtype) == SLP_KIND_INT ? nearbyint(value) : value);
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
	return slp_kind_of(dtype) == SLP_KIND_FLOAT;
}

bool slp_can_hold(enum sl_dtype dtype, double value)
{
	union {
		char bytes[16];
		max_align_t align;
	} element = {{0}};
	struct slp_view v = {&element, {dtype, SL_SCALAR}};
	if (slp_is_float(dtype)) return true;
	if (dtype == SL_INT64 && value >= 0x1p63) return false; /* the largest is rounded to it */
	if (dtype == SL_UINT64 && value >= 0x1p64) return false;
	slp_set(&v, 0, value);
	return slp_get(&v, 0) == value;
}

/* The distance from 1 to the next larger number; 0 for integers. */
static double epsilon(enum sl_dtype dtype)
{
	double step = 1, element = 0;
	struct slp_view one = {&element, {dtype, SL_SCALAR}};
	if (!slp_is_float(dtype)) return 0;
	for (slp_set(&one, 0, 1 + step / 2); slp_get(&one, 0) > 1; slp_set(&one, 0, 1 + step / 2)) step /= 2;
	return step;
}

double slp_tolerance(enum sl_dtype dtype, double single)
{
	double step = epsilon(dtype);
	return step > FLT_EPSILON ? fmax(step, single) : single / FLT_EPSILON * step;
}

double slp_rms(const struct slp_view *v)
{
	double largest = 0, sum = 0;
	int64_t n = 0;
	for (int64_t i = 0; i < slp_size(v); i++) {
		double x = fabs(slp_get(v, i));
		if (isfinite(x) && x > largest) largest = x;
	}
	for (int64_t i = 0; i < slp_size(v); i++) {
		double x = slp_get(v, i);
		if (!isfinite(x)) continue;
		n++;
		if (largest > 0) sum += (x / largest) * (x / largest);
	}
	return n ? largest * sqrt(sum / (double)n) : 0;
}

bool slp_is_close(double got, double expected, double tolerance, double rms)
{
	if (isnan(expected)) return isnan(got);
	if (got == expected || !isfinite(expected)) return got == expected;
	return fabs(got - expected) <= tolerance * fmax(rms, fabs(expected));
}

bool slp_type_equal(const struct slp_type *a, const struct slp_type *b)
{
	return a->dtype == b->dtype && sl_shape_equal(a->shape, b->shape);
}

size_t slp_attr_size(enum slp_attr_kind kind)
{
	static const size_t sizes[] = {[SLP_INT] = sizeof(int),
	                               [SLP_INT64] = sizeof(int64_t),
	                               [SLP_DOUBLE] = sizeof(double),
	                               [SLP_BOOL] = sizeof(bool)};
	return sizes[kind];
}

double slp_attr_value(const struct slp_attr *a, const void *attrs, unsigned i)
{
	const void *p = (const char *)attrs + a->offset + i * slp_attr_size(a->kind);
	switch (a->kind) {
	case SLP_INT: return *(const int *)p;
	case SLP_INT64: return (double)*(const int64_t *)p;
	case SLP_DOUBLE: return *(const double *)p;
	case SLP_BOOL: return *(const bool *)p;
	}
	return 0;
}

enum sl_status slp_constant(struct slp_grad *g)
{
	(void)g; /* the tape does not keep such calls */
	return SL_OK;
}

double slp_flops_elementwise(const struct slp_infer *c)
{
	return (double)sl_shape_size(c->out[0].shape);
}
