/* Functions of one tensor, element by element, and their gradients, as unary.def lists them. */
#include "common/describe.h"
#include "fill/fill.h"
#include "op_list/unary.h"
#include "slopes.h"
#include "spans.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/primitives.h"

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static enum sl_status infer_all(struct slp_infer *c)
{
	c->out[0] = c->in[0];
	return SL_OK;
}

static enum sl_status infer_floats(struct slp_infer *c)
{
	if (!slp_is_float(c->in[0].dtype))
		return slp_reject(c, SL_EDTYPE, "takes float32 or float64; convert the argument with sl_cast");
	return infer_all(c);
}

static enum sl_status infer_slope(struct slp_infer *c)
{
	if (c->in[0].dtype != c->in[1].dtype) return slp_reject(c, SL_EDTYPE, "both arguments must have one data type");
	if (!sl_shape_equal(c->in[0].shape, c->in[1].shape))
		return slp_reject(c, SL_ESHAPE, "both arguments must have one shape");
	return infer_floats(c);
}

static enum sl_status give(struct slp_grad *g, sl_tensor *d)
{
	g->din[0] = d;
	return d ? SL_OK : sl_error();
}

static enum sl_status grad_by(struct slp_grad *g, const struct sl_op *slope, sl_tensor *saved)
{
	return give(g, slp_apply1(g->at, slope, NULL, 2, (sl_tensor *[]){g->dout[0], saved}));
}

static enum sl_status zero_backward(struct slp_grad *g)
{
	g->din[0] = slp_zeros_like(g->at, g->dout[0]);
	return g->din[0] ? SL_OK : sl_error();
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

static enum sl_status unary_whole(const struct slp_kernel *k, int64_t (*f)(int64_t x))
{
	const int64_t *x = k->in[0].ptr;
	int64_t *out = k->out[0].ptr;
	for (int64_t i = 0; i < slp_size(&k->out[0]); i++) out[i] = f(x[i]);
	return SL_OK;
}

/* The reference and the fast kernel for one argument; `more` reads further arguments; `whole` is the function of an
 * int64, or NULL. */
#define KERNELS(name, first, more, value, whole)                                                                       \
	static enum sl_status name##_ref(const struct slp_kernel *k)                                                   \
	{                                                                                                              \
		typedef double T;                                                                                      \
		if (k->out[0].type.dtype == SL_INT64) return unary_whole(k, whole);                                    \
		for (int64_t i = 0; i < slp_size(&k->out[0]); i++) {                                                   \
			const T first = slp_get(&k->in[0], i) more(slp_get(&k->in[1], i));                             \
			slp_set(&k->out[0], i, value);                                                                 \
		}                                                                                                      \
		return SL_OK;                                                                                          \
	}                                                                                                              \
	SLP_CLONES static void name##_range(void *arg, int64_t begin, int64_t end)                                     \
	{                                                                                                              \
		typedef float T;                                                                                       \
		const struct slp_kernel *k = arg;                                                                      \
		const T *in = k->in[0].ptr, *second = k->nin > 1 ? k->in[1].ptr : in;                                  \
		T *out = k->out[0].ptr;                                                                                \
		(void)second;                                                                                          \
		SLP_INDEPENDENT                                                                                        \
		for (int64_t i = begin; i < end; i++) {                                                                \
			const T first = in[i] more(second[i]);                                                         \
			out[i] = value;                                                                                \
		}                                                                                                      \
	}                                                                                                              \
	static enum sl_status name##_cpu(const struct slp_kernel *k)                                                   \
	{                                                                                                              \
		slp_parallel_for(slp_size(&k->out[0]), SLP_GRAIN, name##_range, (void *)k);                            \
		return SL_OK;                                                                                          \
	}
#define NO_MORE(element)
#define AND_V(element) , v = element

/* ---- operations -------------------------------------------------------------------------------------------------- */

#define FLOATS_ROWS SLP_FLOAT_ROWS
#define FLOAT32_ROWS SLP_FLOAT_ROWS
#define WHOLE_ROWS(types, name)                                                                                        \
	SLP_ROWS(SLP_ROW(SLP_F32, name##_cpu, slp_cuda_##name), SLP_ROW(SLP_I64, name##_whole_cpu, slp_cuda_##name),   \
	         SLP_ROW((types) & ~SLP_FLOATS, name##_wide_cpu, slp_cuda_##name),                                     \
	         SLP_ROW(SLP_F64, name##_ref, slp_cuda_##name), SLP_HALF_ROWS(slp_cuda_##name),                        \
	         SLP_CPU_ROW(SLP_SMALL, name##_wide_cpu, NULL))
#define ALL_ROWS(name) WHOLE_ROWS(SLP_NUMBERS, name)
#define TRUTHS_ROWS(name) WHOLE_ROWS(SLP_TRUTHS, name)
/* The kernels for int64 and for other integers, if the function has them. */
#define FLOATS_KERNEL(name, value)
#define FLOAT32_KERNEL(name, value)
#define ALL_KERNEL(name, value)                                                                                        \
	SPAN_OF_ONE(name##_whole_span, int64_t, slp_whole_##name(x))                                                   \
	SPAN_OF_ONE(name##_wide_span, double, value)                                                                   \
	static enum sl_status name##_whole_cpu(const struct slp_kernel *k)                                             \
	{                                                                                                              \
		return unary_cpu(k, name##_whole_span);                                                                \
	}                                                                                                              \
	static enum sl_status name##_wide_cpu(const struct slp_kernel *k)                                              \
	{                                                                                                              \
		return unary_wide_cpu(k, name##_wide_span);                                                            \
	}
#define TRUTHS_KERNEL ALL_KERNEL
#define FLOATS_WHOLE(name) NULL
#define FLOAT32_WHOLE(name) NULL
#define ALL_WHOLE(name) slp_whole_##name
#define TRUTHS_WHOLE ALL_WHOLE
#define FLOATS_INFER infer_floats
#define FLOAT32_INFER infer_floats
#define ALL_INFER infer_all
#define TRUTHS_INFER infer_all
#define FLOATS_CAST SLP_CAST_NONE
#define FLOAT32_CAST SLP_CAST_FLOAT32
#define ALL_CAST SLP_CAST_NONE
#define TRUTHS_CAST SLP_CAST_NONE
#define INPUT_BIT SLP_IN(0)
#define OUTPUT_BIT SLP_OUT(0)
#define INPUT_OF(g) (g)->in[0]
#define OUTPUT_OF(g) (g)->out[0]

/* sl_NAME_at(at, x): the function of each element; a new tensor of x's shape and data type.  neg, abs, square, relu,
 * sign, floor, ceil, round, isnan, isfinite and logical_not also take integers, logical_not also bools; the others take
 * floats only (SL_EDTYPE).  Results that an integer cannot hold saturate.  NaN gives NaN.  The slope of relu and abs at
 * 0 is 0, and the gradient of sign, floor, ceil and round is 0.  isnan, isfinite and logical_not give 1 or 0 in the
 * data type of x, or in another one: sl_isnan(x, .dtype = SL_BOOL); their results are constants for a backward pass.
 *
 *     sl_tensor *y = sl_sigmoid(x); */
#define PUBLIC(name)                                                                                                   \
	sl_tensor *sl_##name##_at(const char *at, sl_tensor *x)                                                        \
	{                                                                                                              \
		return slp_apply1(at, &slp_op_##name, NULL, 1, &x);                                                    \
	}

#define DESCRIPTOR(op_name, about, arguments, count, dtypes, cast, rule, keeps, gradient)                              \
	SLP_DESCRIBE(op_name, about, arguments, count, .saves = keeps, .inplace = true, .elementwise = true,           \
	             .rows = dtypes(op_name), .autocast = cast, .infer = rule, .flops = slp_flops_elementwise,         \
	             .grad = gradient);

#define LINEAR(name, dtypes, value, doc)                                                                               \
	KERNELS(name, x, NO_MORE, value, dtypes##_WHOLE(name))                                                         \
	dtypes##_KERNEL(name, value) static enum sl_status name##_backward(struct slp_grad *g)                         \
	{                                                                                                              \
		g->din[0] = sl_##name##_at(g->at, g->dout[0]);                                                         \
		return g->din[0] ? SL_OK : sl_error();                                                                 \
	}                                                                                                              \
	PUBLIC(name)                                                                                                   \
	DESCRIPTOR(name, doc, "x", 1, dtypes##_ROWS, dtypes##_CAST, dtypes##_INFER, 0, name##_backward)

#define STEPS(name, dtypes, value, gradient, doc)                                                                      \
	KERNELS(name, x, NO_MORE, value, dtypes##_WHOLE(name))                                                         \
	dtypes##_KERNEL(name, value) PUBLIC(name)                                                                      \
	        DESCRIPTOR(name, doc, "x", 1, dtypes##_ROWS, dtypes##_CAST, dtypes##_INFER, 0, gradient)
#define FLAT(name, dtypes, value, doc) STEPS(name, dtypes, value, zero_backward, doc)
#define TRUTH(name, dtypes, value, doc) STEPS(name, dtypes, value, slp_constant, doc)

#define UNARY(name, dtypes, saved, value, slope, doc)                                                                  \
	KERNELS(name, x, NO_MORE, value, dtypes##_WHOLE(name))                                                         \
	dtypes##_KERNEL(name, value)                                                                                   \
	        KERNELS(name##_grad, d, AND_V, slope, NULL) static enum sl_status name##_backward(struct slp_grad *g)  \
	{                                                                                                              \
		if (g->again) return give(g, slp_slope_##name(g->at, g->dout[0], saved##_OF(g)));                      \
		return grad_by(g, &slp_op_##name##_grad, saved##_OF(g));                                               \
	}                                                                                                              \
	PUBLIC(name)                                                                                                   \
	DESCRIPTOR(name, doc, "x", 1, dtypes##_ROWS, dtypes##_CAST, dtypes##_INFER, saved##_BIT, name##_backward)      \
	DESCRIPTOR(name##_grad, "gradient of " #name ", from that of its result and its " #saved, "d v", 2,            \
	           SLP_FLOAT_ROWS, SLP_CAST_WIDEST, infer_slope, 0, NULL)

#include "unary.def"

/* x = relu(x), in place; returns x.  Errors of operations in place: see sl_add_. */
sl_tensor *sl_relu_inplace_at(const char *at, sl_tensor *x)
{
	return slp_apply_inplace(at, &slp_op_relu, NULL, 1, &x);
}
