/* Tensors full of a number, and number ranges. */
#include <string.h>

#include "common/create.h"
#include "common/scalar.h"
#include "fill.h"
#include "op_list/fill.h"
#include "starling/arithmetic.h"
#include "starling/primitives.h"

static const struct slp_attr fill_attrs[] = {
        SLP_CREATED_ATTRS(struct slp_fill),
        SLP_ATTR_VALUE(struct slp_fill, value, SLP_DOUBLE, 1, "value of every element"),
        {0},
};

const struct slp_attr slp_value_attrs[] = {
        SLP_ATTR_VALUE(struct slp_value, value, SLP_DOUBLE, 1, "the number"),
        {0},
};

/* ---- rules ------------------------------------------------------------------------------------------------------- */

/* Whether the type reaches so far; integers lose the fraction. */
static bool reaches(enum sl_dtype dtype, double value)
{
	return slp_can_be(dtype, slp_kind_of(dtype) == SLP_KIND_INT ? trunc(value) : value);
}

static enum sl_status refuse(struct slp_infer *c, double value, enum sl_dtype dtype)
{
	return slp_reject(c, SL_EDTYPE, "%.9g is out of the range of %s", value, sl_dtype_name(dtype));
}

static enum sl_status fill_infer(struct slp_infer *c)
{
	double value = ((const struct slp_fill *)c->attrs)->value;
	enum sl_status s = slp_created_infer(c);
	return s == SL_OK && !reaches(c->out[0].dtype, value) ? refuse(c, value, c->out[0].dtype) : s;
}

static enum sl_status like_infer(struct slp_infer *c)
{
	double value = ((const struct slp_value *)c->attrs)->value;
	c->out[0] = c->in[0];
	/* of floats, passes may have computed it */
	return slp_is_float(c->out[0].dtype) || reaches(c->out[0].dtype, value) ? SL_OK
	                                                                        : refuse(c, value, c->out[0].dtype);
}

/* The last number counts: others lie between it and the first. */
static enum sl_status arange_infer(struct slp_infer *c)
{
	const struct slp_arange *a = c->attrs;
	enum sl_status s = slp_created_infer(c);
	int64_t n = s == SL_OK ? sl_shape_size(c->out[0].shape) : 0;
	double last = a->start + (double)(n - 1) * a->step;
	if (n < 1) return s;
	if (!reaches(c->out[0].dtype, a->start)) return refuse(c, a->start, c->out[0].dtype);
	return reaches(c->out[0].dtype, last) ? SL_OK : refuse(c, last, c->out[0].dtype);
}

static double result_bytes(const struct slp_infer *c)
{
	return (double)sl_shape_size(c->out[0].shape) * (double)sl_dtype_size(c->out[0].dtype);
}

sl_tensor *slp_zeros_like(const char *at, sl_tensor *like)
{
	return slp_apply1(at, &slp_op_full_like, &(struct slp_value){0}, 1, &like);
}

/* ---- fill, full_like --------------------------------------------------------------------------------------------- */

static enum sl_status fill_with_ref(const struct slp_kernel *k, double value)
{
	for (int64_t i = 0; i < slp_size(&k->out[0]); i++) slp_set_truncated(&k->out[0], i, value);
	return SL_OK;
}

static double value_of(const struct slp_kernel *k)
{
	return k->nin ? ((const struct slp_value *)k->attrs)->value : ((const struct slp_fill *)k->attrs)->value;
}

static enum sl_status fill_ref(const struct slp_kernel *k)
{
	return fill_with_ref(k, value_of(k));
}

/* The number as an element of the result, and the result. */
struct fill_work {
	uint64_t element;
	void *out;
};

#define X(symbol, name, type, ...)                                                                                     \
	SLP_CLONES static void fill_##symbol(void *arg, int64_t begin, int64_t end)                                    \
	{                                                                                                              \
		const struct fill_work *w = arg;                                                                       \
		type value, *out = w->out;                                                                             \
		memcpy(&value, &w->element, sizeof value);                                                             \
		for (int64_t i = begin; i < end; i++) out[i] = value;                                                  \
	}
SL_DTYPE_LIST(X)
#undef X

typedef void range_fn(void *arg, int64_t begin, int64_t end);

static enum sl_status fill_cpu(const struct slp_kernel *k)
{
	static range_fn *const fill[] = {
#define X(symbol, name, type, ...) [symbol] = fill_##symbol,
	        SL_DTYPE_LIST(X)
#undef X
	};
	struct fill_work w = {0, k->out[0].ptr};
	slp_set_truncated(&(struct slp_view){&w.element, {k->out[0].type.dtype, SL_SCALAR}}, 0, value_of(k));
	slp_parallel_for(slp_size(&k->out[0]), SLP_GRAIN, fill[k->out[0].type.dtype], &w);
	return SL_OK;
}

static enum sl_status full_like_grad(struct slp_grad *g)
{
	g->din[0] = slp_zeros_like(g->at, g->dout[0]);
	return g->din[0] ? SL_OK : sl_error();
}

const struct sl_op slp_op_fill = {
        .name = "fill",
        .doc = "a tensor of one value",
        .args = "",
        SLP_NIN(0),
        .nout = 1,
        .attr_table = fill_attrs,
        .attrs_size = sizeof(struct slp_fill),
        .rows = SLP_ANY_ROWS(fill),
        .infer = fill_infer,
        .ref = fill_ref,
};

const struct sl_op slp_op_full_like = {
        .name = "full_like",
        .doc = "one value in the shape and data type of x",
        .args = "x",
        SLP_NIN(1),
        .nout = 1,
        .attr_table = slp_value_attrs,
        .attrs_size = sizeof(struct slp_value),
        .inplace = true,
        .overwrites = true,
        .rows = SLP_ROWS(SLP_ROW(SLP_ANY, fill_cpu, slp_cuda_full_like)),
        .infer = like_infer,
        .bytes = result_bytes,
        .grad = full_like_grad,
        .ref = fill_ref,
};

/* A tensor whose elements are all `value`.  Integers lose the fraction; bools are true if it is not 0.  SL_ESHAPE if a
 * size is negative, or the tensor is larger than any memory; SL_EDTYPE if there is no such data type, or the value is
 * out of the range of the data type; SL_EDEVICE if the device does not exist.  A double is exact up to 2^53: make
 * larger int64 by sl_from and sl_broadcast_to.
 *
 *     sl_tensor *x = sl_full(SL_SHAPE(2, 3), 0.5), *n = sl_full(SL_SHAPE(4), 7, .dtype = SL_INT32); */
sl_tensor *sl_full_at(const char *at, sl_shape shape, double value, struct sl_make make)
{
	struct slp_fill attrs = {slp_created_of(shape, make.dtype), value};
	return slp_create(at, &slp_op_fill, &attrs, make.device);
}

/* A tensor of zeros; otherwise as sl_full. */
sl_tensor *sl_zeros_at(const char *at, sl_shape shape, struct sl_make make)
{
	return sl_full_at(at, shape, 0, make);
}

/* A tensor of ones; otherwise as sl_full. */
sl_tensor *sl_ones_at(const char *at, sl_shape shape, struct sl_make make)
{
	return sl_full_at(at, shape, 1, make);
}

/* Writes a number to all elements of x and returns x.  Values that an error had spoilt are valid again, unless x is a
 * view of a part.  SL_EDTYPE: x is of integers, which do not have the number; fractions are such numbers.  Errors of
 * operations in place: see sl_add_. */
sl_tensor *sl_fill_inplace_at(const char *at, sl_tensor *x, double value)
{
	SLP_CALL("sl_fill_", at);
	if (!slp_given(at, "sl_fill_", "tensor", x)) return NULL;
	enum sl_dtype dtype = sl_tensor_dtype(x);
	if (!slp_can_be(dtype, value))
		return slp_call_fail(at, "sl_fill_", SL_EDTYPE, "%.9g is not a value of %s", value,
		                     sl_dtype_name(dtype));
	return slp_apply_inplace(at, &slp_op_full_like, &(struct slp_value){value}, 1, &x);
}

/* ---- arange ------------------------------------------------------------------------------------------------------ */

static const struct slp_attr arange_attrs[] = {
        SLP_CREATED_ATTRS(struct slp_arange),
        SLP_ATTR_VALUE(struct slp_arange, start, SLP_DOUBLE, 1, "the first number"),
        SLP_ATTR_VALUE(struct slp_arange, step, SLP_DOUBLE, 1, "distance of neighbours"),
        {0},
};

static void arange_range(void *arg, int64_t begin, int64_t end)
{
	const struct slp_kernel *k = arg;
	const struct slp_arange *r = k->attrs;
	if (slp_arange_is_whole(k)) { /* above 2^53, too */
		int64_t *out = k->out[0].ptr;
		for (int64_t i = begin; i < end; i++) out[i] = slp_arange_whole(r, i);
		return;
	}
	for (int64_t i = begin; i < end; i++) slp_set_truncated(&k->out[0], i, r->start + (double)i * r->step);
}

static enum sl_status arange_ref(const struct slp_kernel *k)
{
	arange_range((void *)k, 0, slp_size(&k->out[0]));
	return SL_OK;
}

static enum sl_status arange_cpu(const struct slp_kernel *k)
{
	slp_parallel_for(slp_size(&k->out[0]), SLP_GRAIN, arange_range, (void *)k);
	return SL_OK;
}

const struct sl_op slp_op_arange = {
        .name = "arange",
        .doc = "equally spaced numbers",
        .args = "",
        SLP_NIN(0),
        .nout = 1,
        .attr_table = arange_attrs,
        .attrs_size = sizeof(struct slp_arange),
        .rows = SLP_ANY_ROWS(arange),
        .infer = arange_infer,
        .ref = arange_ref,
};

/* start, start + step, … before stop (exclusive), one axis; no elements if stop is in the other direction.  SL_EINVAL
 * if the step is 0 or one of the numbers is not finite; SL_ESHAPE for more numbers than any memory holds; otherwise as
 * sl_full.
 *
 *     sl_tensor *t = sl_arange(0, 12, 1);        // 0, 1, … 11 */
sl_tensor *sl_arange_at(const char *at, double start, double stop, double step, struct sl_make make)
{
	double n = ceil((stop - start) / step);
	if (!isfinite(start) || !isfinite(stop) || !isfinite(step) || step == 0)
		return slp_call_fail(at, "sl_arange", SL_EINVAL,
		                     "from %g to %g in steps of %g is not a finite number of steps", start, stop, step);
	if (!(n < 0x1p60)) return slp_call_fail(at, "sl_arange", SL_ESHAPE, "%g numbers are too many", n);
	struct slp_arange attrs = {slp_created_of(SL_SHAPE(n > 0 ? (int64_t)n : 0), make.dtype), start, step};
	return slp_create(at, &slp_op_arange, &attrs, make.device);
}
