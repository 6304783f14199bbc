/* Reductions over axes, as reduce.def lists them. */
#include "common/describe.h"
#include "op_list/binary.h"
#include "op_list/reduce.h"
#include "reduce_exact.h"
#include "starling/arithmetic.h"
#include "starling/primitives.h"

/* ---- rules ------------------------------------------------------------------------------------------------------ */

static const struct slp_attr reduce_attrs[] = {
        SLP_ATTR(struct slp_reduce_attrs, axes, SLP_INT, SL_MAX_NDIM,
                 "axes to reduce; negative ones count from the end"),
        SLP_ATTR(struct slp_reduce_attrs, naxes, SLP_INT, 1, "number of axes; 0 means all"),
        SLP_ATTR(struct slp_reduce_attrs, keepdims, SLP_BOOL, 1, "reduced axes stay, with size 1"),
        {0},
};

/* infer and scratch use normalised attributes; attributes as given may not be normalised. */
static void set_axes(struct slp_reduce_attrs *a, unsigned mask)
{
	*a = (struct slp_reduce_attrs){.keepdims = a->keepdims};
	for (int i = 0; i < SL_MAX_NDIM; i++)
		if (mask >> i & 1) a->axes[a->naxes++] = i;
}

static enum sl_status normalise(struct slp_infer *c)
{
	struct slp_reduce_attrs *a = c->attrs;
	int ndim = c->in[0].shape.ndim;
	unsigned mask = a->naxes ? 0 : (1u << ndim) - 1;
	if (a->naxes < 0 || a->naxes > SL_MAX_NDIM) return slp_reject(c, SL_EINVAL, "%d axes", a->naxes);
	for (int i = 0; i < a->naxes; i++) {
		int axis = a->axes[i];
		if (!slp_axis(&axis, ndim))
			return slp_reject(c, SL_EINVAL, "axis %d of a tensor with %d axes", a->axes[i], ndim);
		if (mask >> axis & 1) return slp_reject(c, SL_EINVAL, "axis %d is given twice", axis);
		mask |= 1u << axis;
	}
	set_axes(a, mask);
	return SL_OK;
}

static sl_shape reduced_shape(sl_shape in, unsigned mask, bool keepdims)
{
	sl_shape s = {0, {0}};
	for (int i = 0; i < in.ndim; i++)
		if (!(mask >> i & 1)) s.dim[s.ndim++] = in.dim[i];
		else if (keepdims) s.dim[s.ndim++] = 1;
	return s;
}

static enum sl_status infer_axes(struct slp_infer *c)
{
	enum sl_status status = normalise(c);
	if (status) return status;
	const struct slp_reduce_attrs *a = c->attrs;
	c->out[0] = (struct slp_type){c->in[0].dtype, reduced_shape(c->in[0].shape, slp_reduce_mask(a), a->keepdims)};
	return SL_OK;
}

#define infer_sum infer_axes
#define infer_prod infer_axes
#define infer_any infer_axes
#define infer_all infer_axes

static enum sl_status infer_mean(struct slp_infer *c)
{
	if (!slp_is_float(c->in[0].dtype))
		return slp_reject(c, SL_EDTYPE, "float32 or float64 needed; sl_cast converts");
	return infer_axes(c);
}

#define infer_norm infer_mean

static enum sl_status infer_max(struct slp_infer *c)
{
	enum sl_status status = infer_axes(c);
	if (!status && sl_shape_size(c->in[0].shape) == 0 && sl_shape_size(c->out[0].shape) > 0)
		return slp_reject(c, SL_ESHAPE, "no elements to choose from");
	return status;
}

#define infer_min infer_max

static double flops(const struct slp_infer *c)
{
	return (double)sl_shape_size(c->in[0].shape);
}

static size_t scratch(const struct slp_infer *c)
{
	struct slp_reduce_plan p = slp_reduce_plan_of(c->in[0].shape, c->attrs);
	bool exact = c->in[0].dtype == SL_INT64; /* in twice the bits of a double */
	return slp_reduce_scratch(&p) * (exact ? 2 : 1);
}

/* ---- reference -------------------------------------------------------------------------------------------------- */

/* The offset of combination i of the indices of the axes in mask. */
static int64_t masked_offset(sl_shape shape, unsigned mask, int64_t i)
{
	int64_t offset = 0, stride = 1;
	for (int a = shape.ndim - 1; a >= 0; a--) {
		if (mask >> a & 1) {
			offset += i % shape.dim[a] * stride;
			i /= shape.dim[a];
		}
		stride *= shape.dim[a];
	}
	return offset;
}

static int64_t gathered(sl_shape shape, unsigned mask)
{
	int64_t count = 1;
	for (int a = 0; a < shape.ndim; a++)
		if (mask >> a & 1) count *= shape.dim[a];
	return count;
}

SLP_INLINE enum sl_status whole_reference(enum slp_reduction kind, const struct slp_kernel *k)
{
	sl_shape shape = k->in[0].type.shape;
	unsigned mask = slp_reduce_mask(k->attrs);
	int64_t nout = slp_size(&k->out[0]), count = gathered(shape, mask), *y = k->out[0].ptr;
	for (int64_t o = 0; o < nout; o++) {
		const int64_t *x = (const int64_t *)k->in[0].ptr + masked_offset(shape, ~mask, o);
		struct slp_whole a = slp_whole_start(kind);
		for (int64_t i = 0; i < count; i++)
			a = slp_whole_merge(kind, a, slp_whole_element(kind, x[masked_offset(shape, mask, i)]));
		y[o] = slp_whole_finish(kind, a);
	}
	return SL_OK;
}

SLP_INLINE enum sl_status reference(enum slp_reduction kind, const struct slp_kernel *k)
{
	sl_shape shape = k->in[0].type.shape;
	unsigned mask = slp_reduce_mask(k->attrs);
	int64_t nout = slp_size(&k->out[0]), count = gathered(shape, mask);
	if (k->in[0].type.dtype == SL_INT64) return whole_reference(kind, k);
	for (int64_t o = 0; o < nout; o++) {
		int64_t base = masked_offset(shape, ~mask, o);
		double a = slp_reduce_start(kind);
		for (int64_t i = 0; i < count; i++)
			a = slp_reduce_step(kind, a, slp_get(&k->in[0], base + masked_offset(shape, mask, i)));
		slp_set(&k->out[0], o, slp_reduce_finish(kind, a, (double)count));
	}
	return SL_OK;
}

/* ---- CPU -------------------------------------------------------------------------------------------------------- */
#define KERNEL(fn, part, ...)                                                                                          \
	static SLP_CLONES void fn(void *arg, int64_t begin, int64_t end)                                               \
	{                                                                                                              \
		part(__VA_ARGS__, arg, begin, end);                                                                    \
	}
/* The loops over floats, or over elements converted to doubles. */
#define LOOPS(name, kind, wide)                                                                                        \
	KERNEL(name##_rows, rows, kind, wide)                                                                          \
	KERNEL(name##_short_rows, short_rows, kind, wide)                                                              \
	KERNEL(name##_columns, columns, kind, wide)                                                                    \
	KERNEL(name##_finish, finish, kind, wide)                                                                      \
	static enum sl_status name##_cpu(const struct slp_kernel *k)                                                   \
	{                                                                                                              \
		return reduce(k, &(struct loops){name##_rows, name##_short_rows, name##_columns, name##_finish});      \
	}
/* The kernels for integers; NULL for reductions of floats only. */
#define INTEGERS(name, kind)                                                                                           \
	LOOPS(name##_wide, kind, true)                                                                                 \
	KERNEL(name##_whole_rows, whole_rows, kind)                                                                    \
	KERNEL(name##_whole_columns, whole_columns, kind)                                                              \
	KERNEL(name##_whole_finish, whole_finish, kind)                                                                \
	static enum sl_status name##_whole_cpu(const struct slp_kernel *k)                                             \
	{                                                                                                              \
		return reduce(k, &(struct loops){name##_whole_rows, NULL, name##_whole_columns, name##_whole_finish}); \
	}
/* any and all of floats are rare: these are converted to doubles, so that the loops are not compiled again. */
#define CPU_FLOATS(name, kind) LOOPS(name, kind, false)
#define CPU_NUMBERS(name, kind) LOOPS(name, kind, false) INTEGERS(name, kind)
#define CPU_TRUTHS INTEGERS
#define X(name, start, step, merge, end_, dtypes, saves, doc)                                                          \
	CPU_##dtypes(name, SLP_REDUCE_##name) static enum sl_status name##_ref(const struct slp_kernel *k)             \
	{                                                                                                              \
		return reference(SLP_REDUCE_##name, k);                                                                \
	}                                                                                                              \
	enum sl_status slp_cuda_##name(const struct slp_kernel *k);
#include "reduce.def"
#undef X

/* ---- gradients -------------------------------------------------------------------------------------------------- */

/* t, which has the output's shape, with the reduced axes restored with size 1. */
static sl_tensor *with_axes(const struct slp_grad *g, sl_tensor *t)
{
	const struct slp_reduce_attrs *a = g->attrs;
	if (a->keepdims || !t) return t;
	return sl_reshape_at(g->at, t, reduced_shape(sl_tensor_shape(g->in[0]), slp_reduce_mask(a), true));
}

static enum sl_status grad_sum(struct slp_grad *g)
{
	if (g->need[0]) g->din[0] = sl_broadcast_to_at(g->at, with_axes(g, g->dout[0]), sl_tensor_shape(g->in[0]));
	return SL_OK;
}

static enum sl_status grad_mean(struct slp_grad *g)
{
	double count = (double)sl_tensor_size(g->in[0]) / (double)sl_tensor_size(g->out[0]);
	if (!g->need[0]) return SL_OK;
	sl_tensor *share = sl_mul_scalar_at(g->at, g->dout[0], 1 / count);
	g->din[0] = sl_broadcast_to_at(g->at, with_axes(g, share), sl_tensor_shape(g->in[0]));
	return SL_OK;
}

/* Elements that equal the extremum share its gradient, as PyTorch's amax has it. */
static enum sl_status grad_max(struct slp_grad *g)
{
	const struct slp_reduce_attrs *a = g->attrs;
	struct sl_reduce_opts opts = {a->axes, a->naxes, true};
	if (!g->need[0]) return SL_OK;
	sl_tensor *chosen = sl_eq_at(g->at, g->in[0], with_axes(g, g->out[0]));
	sl_tensor *count = a->naxes ? sl_sum_at(g->at, chosen, opts) : chosen;
	g->din[0] = sl_mul_at(g->at, chosen, sl_div_at(g->at, with_axes(g, g->dout[0]), count));
	return SL_OK;
}

#define grad_min grad_max

/* x / norm, and 0 if the norm, and so x, is 0. */
static enum sl_status grad_norm(struct slp_grad *g)
{
	if (!g->need[0]) return SL_OK;
	sl_tensor *norm = sl_add_at(g->at, g->out[0], sl_eq_scalar_at(g->at, g->out[0], 0));
	/* dy over the norm may be too small for a float */
	sl_tensor *unit = sl_div_at(g->at, g->in[0], with_axes(g, norm));
	g->din[0] = sl_mul_at(g->at, unit, with_axes(g, g->dout[0]));
	return SL_OK;
}

/* The gradient of a product is the product of the other elements. If one element is 0, only its gradient is not 0; if
 * several are 0, all gradients are.  Zeros count as 1 in the product that is divided, which may be infinite: the
 * gradients are selected, not multiplied by 0. */
static enum sl_status grad_prod(struct slp_grad *g)
{
	const struct slp_reduce_attrs *a = g->attrs;
	struct sl_reduce_opts opts = {a->axes, a->naxes, true};
	if (!g->need[0]) return SL_OK;
	sl_tensor *zero = sl_eq_scalar_at(g->at, g->in[0], 0), *zeros = a->naxes ? sl_sum_at(g->at, zero, opts) : zero;
	sl_tensor *rest = sl_add_at(g->at, g->in[0], zero), *d = with_axes(g, g->dout[0]);
	sl_tensor *chosen = sl_eq_at(g->at, zeros, zero);
	if (a->naxes) d = sl_mul_at(g->at, d, sl_prod_at(g->at, rest, opts));
	else d = sl_mul_at(g->at, d, rest);
	g->din[0] = slp_apply1(g->at, &slp_op_take_if, NULL, 2, (sl_tensor *[]){chosen, sl_div_at(g->at, d, rest)});
	return SL_OK;
}

#define grad_any slp_constant
#define grad_all slp_constant

/* ---- public ----------------------------------------------------------------------------------------------------- */

extern const struct sl_op slp_op_mean;

static sl_tensor *call_as_is(const char *at, const struct sl_op *op, sl_tensor *x, struct sl_reduce_opts opts)
{
	struct slp_reduce_attrs attrs = {.naxes = opts.naxes, .keepdims = opts.keepdims};
	if (opts.naxes < 0 || opts.naxes > SL_MAX_NDIM || (opts.naxes && !opts.axes))
		return slp_call_fail(at, op->name, SL_EINVAL, "%d axes at %p; 0 to %d needed", opts.naxes,
		                     (const void *)opts.axes, SL_MAX_NDIM);
	for (int i = 0; i < opts.naxes; i++) attrs.axes[i] = opts.axes[i];
	return slp_apply1(at, op, &attrs, 1, &x);
}

static sl_tensor *mean_of_integers(const char *at, sl_tensor *x, struct sl_reduce_opts opts)
{
	SLP_FUNCTION("mean", at);
	return SLP_RETURN(call_as_is(at, &slp_op_mean, sl_cast_at(at, x, SL_FLOAT32), opts));
}

static sl_tensor *call(const char *at, const struct sl_op *op, sl_tensor *x, struct sl_reduce_opts opts)
{
	bool cast = op == &slp_op_mean && x && !slp_is_float(sl_tensor_dtype(x));
	return cast ? mean_of_integers(at, x, opts) : call_as_is(at, op, x, opts);
}

/* The rows of integers; none for reductions of floats only. */
#define INTEGER_ROWS(name, types)                                                                                      \
	SLP_ROW(SLP_I64, name##_whole_cpu, slp_cuda_##name),                                                           \
	        SLP_ROW((types) & ~SLP_FLOATS, name##_wide_cpu, slp_cuda_##name),                                      \
	        SLP_CPU_ROW(SLP_SMALL, name##_wide_cpu, NULL),
#define FLOAT_ROW(name, kernel) SLP_ROW(SLP_F32, kernel, slp_cuda_##name),
#define ROWS_FLOATS(name) FLOAT_ROW(name, name##_cpu)
#define ROWS_NUMBERS(name) FLOAT_ROW(name, name##_cpu) INTEGER_ROWS(name, SLP_NUMBERS)
#define ROWS_TRUTHS(name) FLOAT_ROW(name, name##_wide_cpu) INTEGER_ROWS(name, SLP_TRUTHS)
#define CAST_sum SLP_CAST_FLOAT32
#define CAST_mean SLP_CAST_FLOAT32
#define CAST_max SLP_CAST_NONE
#define CAST_min SLP_CAST_NONE
/* For second derivatives: products of pairs, because a quotient by elements that are 0 says nothing about them. */
static bool prod_again(const struct slp_grad *g, sl_tensor **out)
{
	const struct slp_reduce_attrs *a = g->attrs;
	sl_shape shape = sl_tensor_shape(g->in[0]);
	unsigned mask = slp_reduce_mask(a);
	sl_tensor *x = g->in[0];
	for (int axis = 0; axis < shape.ndim && x; axis++)
		for (int64_t n = shape.dim[axis]; mask >> axis & 1 && n > 1 && x; n = (n + 1) / 2) {
			sl_tensor *low = sl_slice_at(g->at, x, axis, 0, n / 2, 1);
			sl_tensor *high = sl_slice_at(g->at, x, axis, n / 2, n / 2 * 2, 1);
			sl_tensor *parts[] = {sl_mul_at(g->at, low, high), NULL};
			if (n % 2) parts[1] = sl_slice_at(g->at, x, axis, n - 1, n, 1);
			x = n % 2 ? sl_concat_at(g->at, parts, 2, axis) : parts[0];
		}
	out[0] = x ? sl_reshape_at(g->at, x, sl_tensor_shape(g->out[0])) : NULL;
	return out[0] != NULL;
}

#define AGAIN_sum NULL
#define AGAIN_mean NULL
#define AGAIN_max NULL
#define AGAIN_min NULL
#define AGAIN_norm NULL
#define AGAIN_prod prod_again
#define AGAIN_any NULL
#define AGAIN_all NULL

#define CAST_norm SLP_CAST_FLOAT32
#define CAST_prod SLP_CAST_FLOAT32
#define CAST_any SLP_CAST_NONE
#define CAST_all SLP_CAST_NONE

/* sl_sum, sl_mean, sl_max, sl_min, sl_norm, sl_prod, sl_any, sl_all: reduce the elements along the given axes, or along
 * all, to one.  The axes are removed, or stay with size 1 (keepdims).  The result has the dtype of x, except for the
 * mean of integers, which is float32; norm (the root of the sum of squares) takes floats only.  Sums and products of
 * integers are exact, in any order, and saturate at the end (products of types other than int64 are rounded as
 * doubles).  any and all also take bools, and give 1 or 0: whether an element is not 0, and whether all are not;
 * constants for a backward pass.  max and min are NaN if x has a NaN; their gradient is shared equally by all largest
 * (smallest) elements.  SL_EINVAL: an axis that does not exist or is given twice; SL_ESHAPE: max or min of no elements;
 * SL_EDTYPE.
 *
 *	sl_tensor *per_channel = sl_mean(x, SL_AXES(0, 2, 3), .keepdims = true); */
#define X(op_name, start, step, merge, end_, dtypes, save, text)                                                       \
	sl_tensor *sl_##op_name##_at(const char *at, sl_tensor *x, struct sl_reduce_opts opts)                         \
	{                                                                                                              \
		return call(at, &slp_op_##op_name, x, opts);                                                           \
	}                                                                                                              \
	SLP_DESCRIBE(op_name, text, "x", 1, .attr_table = reduce_attrs, .attrs_size = sizeof(struct slp_reduce_attrs), \
	             .saves = save, .infer = infer_##op_name, .flops = flops,                                          \
	             .rows = SLP_ROWS(ROWS_##dtypes(op_name) SLP_ROW(SLP_F64, op_name##_ref, slp_cuda_##op_name),      \
	                              SLP_HALF_ROWS(slp_cuda_##op_name)),                                              \
	             .grad = grad_##op_name, .again = AGAIN_##op_name, .scratch = scratch,                             \
	             .autocast = CAST_##op_name);

#include "reduce.def"
#undef X
