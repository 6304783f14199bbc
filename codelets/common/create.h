/* Parts of operations that create tensors without inputs: their attributes include the type of the result. */
#ifndef SLP_CREATE_H
#define SLP_CREATE_H

#include <math.h>

#include "op.h"

/* The first part of their attribute structures, under the name `type`. */
struct slp_created {
	int dtype, ndim;
	int64_t dim[SL_MAX_NDIM];
};

/* Its rows in their attribute tables. */
/* clang-format off */
#define SLP_CREATED_ATTRS(attrs)                                                                                       \
	{"dtype", SLP_INT, offsetof(attrs, type.dtype), 1, "data type of the result", false, false},                          \
	{"ndim", SLP_INT, offsetof(attrs, type.ndim), 1, "number of axes", false, false},                                     \
	{"dim", SLP_INT64, offsetof(attrs, type.dim), SL_MAX_NDIM, "sizes of the axes", false, false}
/* clang-format on */

static inline struct slp_created slp_created_of(sl_shape shape, enum sl_dtype dtype)
{
	struct slp_created t = {.dtype = (int)slp_dtype_or(dtype, SL_FLOAT32), .ndim = shape.ndim};
	for (int i = 0; i < shape.ndim && i < SL_MAX_NDIM; i++) t.dim[i] = shape.dim[i];
	return t;
}

/* The infer rule of all of them. */
static inline enum sl_status slp_created_infer(struct slp_infer *c)
{
	struct slp_created *t = (struct slp_created *)c->attrs;
	t->dtype = (int)slp_dtype_or((enum sl_dtype)t->dtype, SL_FLOAT32); /* a program's text need not name it */
	if (t->dtype <= SL_DTYPE_DEFAULT || t->dtype >= SL_DTYPE_COUNT)
		return slp_reject(c, SL_EDTYPE, "there is no data type %d", t->dtype);
	if (t->ndim < 0 || t->ndim > SL_MAX_NDIM)
		return slp_reject(c, SL_ESHAPE, "a tensor has 0 to %d axes, not %d", SL_MAX_NDIM, t->ndim);
	int64_t size = 16; /* more than the bytes of an element */
	c->out[0] = (struct slp_type){(enum sl_dtype)t->dtype, {.ndim = t->ndim, .dim = {0}}};
	for (int i = 0; i < t->ndim; i++) {
		if (t->dim[i] < 0) return slp_reject(c, SL_ESHAPE, "axis %d has size %lld", i, (long long)t->dim[i]);
		if (__builtin_mul_overflow(size, t->dim[i] ? t->dim[i] : 1, &size))
			return slp_reject(c, SL_ESHAPE, "no memory is as large as this shape");
		c->out[0].shape.dim[i] = t->dim[i];
	}
	return SL_OK;
}

/* Runs such an operation. */
static inline sl_tensor *slp_create(const char *at, const struct sl_op *op, const void *attrs, sl_device device)
{
	sl_tensor *out = NULL;
	slp_apply(at, op, attrs, 0, NULL, device, &out);
	return out;
}

#ifndef __cplusplus
/* Whether elements of a data type can be the number: no fraction among integers, nothing finite that is infinite. */
static inline bool slp_can_be(enum sl_dtype dtype, double value)
{
	double element = 0;
	struct slp_view v = {&element, {dtype, SL_SCALAR}};
	if (!slp_is_float(dtype)) return dtype == SL_BOOL || slp_can_hold(dtype, value);
	slp_set(&v, 0, value);
	return !isfinite(value) || isfinite(slp_get(&v, 0));
}
#endif

#endif
