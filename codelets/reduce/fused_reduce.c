/* fused_reduce: an expression of elementwise functions (elementwise/fused.h) whose result is reduced along axes, or of which
 * a softmax is taken along the last axis.
 *
 * On a GPU one kernel computes both, and the result of the expression is never stored: compiled where NVRTC is
 * (elementwise/fused_source.h), else interpreted (fused_reduce.cu).  A CPU stores it in the worker's memory.  The two
 * operations, one by one, give the same bits. */
#include "fused_reduce.h"

#include <string.h>

#include "common/workspace.h"
#include "loss/softmax.h"
#include "op_list/binary.h"
#include "op_list/loss.h"
#include "op_list/reduce.h"

/* Bits of the last operation. */
enum { AXES = 8, KEEP = 24 };
/* A group of threads takes the softmax of a row of at least LEAST_ROW elements; the largest group holds LONGEST_ROW. */
enum { LEAST_ROW = 32, LONGEST_ROW = 256 * SLP_SOFTMAX_HELD };

static const struct sl_op *const last_ops[SLP_FUSED_LAST_OPS] = {
#define X(name, start, step, merge, finish, dtypes, saves, doc) [SLP_REDUCE_##name] = &slp_op_##name,
#include "reduce.def"
#undef X
        [SLP_FUSED_SOFTMAX] = &slp_op_softmax,
        [SLP_FUSED_LOG_SOFTMAX] = &slp_op_log_softmax,
};
_Static_assert(sizeof(struct slp_fused_reduce_attrs) == sizeof(struct slp_fused_attrs), "one less step");
_Static_assert(SL_MAX_NDIM <= KEEP - AXES, "bits of axes");

static const struct slp_attr attr_table[] = {
        SLP_ATTR_VALUE(struct slp_fused_reduce_attrs, number, SLP_DOUBLE, SLP_FUSED_NUMBERS,
                       "numbers that are operands"),
        SLP_ATTR(struct slp_fused_reduce_attrs, step, SLP_INT, SLP_FUSED_STEPS - 1,
                 "function + 256 operand + 65536 operand"),
        SLP_ATTR(struct slp_fused_reduce_attrs, reduction, SLP_INT, 1, "last operation + 256 axes + 2^24 keepdims"),
        {0},
};

/* ---- attributes -------------------------------------------------------------------------------------------------- */

/* -1: it is none. */
static int last_of(const struct sl_op *op)
{
	for (int i = 0; i < SLP_FUSED_LAST_OPS; i++)
		if (last_ops[i] == op) return i;
	return -1;
}

void slp_fused_reduce_split(const struct slp_fused_reduce_attrs *a, struct slp_fused_attrs *f,
                            struct slp_fused_last *last)
{
	struct slp_reduce_attrs r = {.keepdims = a->reduction >> KEEP & 1};
	memcpy(f, a, sizeof *f);
	f->step[SLP_FUSED_STEPS - 1] = SLP_FUSED_END;
	for (int i = 0; i < SL_MAX_NDIM; i++)
		if (a->reduction >> (AXES + i) & 1) r.axes[r.naxes++] = i;
	*last = (struct slp_fused_last){.number = a->reduction & ((1 << AXES) - 1)};
	last->op = last->number < SLP_FUSED_LAST_OPS ? last_ops[last->number] : NULL;
	if (slp_fused_is_softmax(last->number)) last->attrs.softmax.axis = r.axes[0];
	else last->attrs.reduce = r;
}

bool slp_fused_softmax_suits(int64_t n, enum sl_dtype dtype)
{
	return n % (16 / (int)sl_dtype_size(dtype)) == 0 && n >= LEAST_ROW && n <= LONGEST_ROW;
}

/* The bits of a softmax along the last axis; 0: a GPU's compiled kernel takes no such one. */
static int softmax_bits(const struct slp_type *expression, const struct slp_axis_attrs *a)
{
	int ndim = expression->shape.ndim, axis = a->axis;
	if (!slp_axis(&axis, ndim) || axis != ndim - 1) return 0;
	return slp_fused_softmax_suits(expression->shape.dim[axis], expression->dtype) ? 1 << (AXES + axis) : 0;
}

static int reduction_bits(const struct slp_reduce_attrs *r)
{
	return (int)(slp_reduce_mask(r) << AXES) | r->keepdims << KEEP;
}

/* Whether all steps are functions of the library, in the plain layout, and there is one less than an expression can have. */
static bool is_short(const struct slp_fused_attrs *f)
{
	int count = slp_fused_count(f);
	for (int i = 0; i < count; i++)
		if (slp_fused_step_at(f, i).own) return false;
	return count < SLP_FUSED_STEPS && !slp_fused_is_nhwc(f);
}

bool slp_fused_reduce_of(const struct slp_fused_attrs *f, const struct slp_type *expression, const struct sl_op *op,
                         const void *attrs, struct slp_fused_attrs *to)
{
	int number = last_of(op);
	if (number < 0 || !is_short(f) || sl_shape_size(expression->shape) == 0) return false;
	int bits = slp_fused_is_softmax(number) ? softmax_bits(expression, attrs) : reduction_bits(attrs);
	if (!bits) return false;
	*to = *f;
	to->step[SLP_FUSED_STEPS - 1] = number | bits;
	return true;
}

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static enum sl_status infer_inner(const struct slp_infer *c, struct slp_fused_attrs *f, struct slp_type *inner)
{
	struct slp_infer expression = *c;
	expression.attrs = f;
	expression.out = inner;
	return slp_op_fused.infer(&expression);
}

/* The call of the last operation; messages name the whole. */
static struct slp_infer last_call(const struct slp_infer *c, struct slp_fused_last *last, const struct slp_type *inner)
{
	struct slp_infer call = *c;
	call.attrs = &last->attrs;
	call.nin = 1;
	call.in = inner;
	return call;
}

static enum sl_status infer(struct slp_infer *c)
{
	struct slp_fused_attrs f;
	struct slp_fused_last last;
	struct slp_type inner;
	slp_fused_reduce_split(c->attrs, &f, &last);
	if (!last.op) return slp_reject(c, SL_EINVAL, "no last operation %d", last.number);
	if (slp_fused_is_nhwc(&f)) return slp_reject(c, SL_EINVAL, "images in NHWC are not reduced");
	enum sl_status s = infer_inner(c, &f, &inner);
	if (s) return s;
	struct slp_infer call = last_call(c, &last, &inner);
	return last.op->infer(&call);
}

/* Of the last operation alone. */
static size_t scratch(const struct slp_infer *c)
{
	struct slp_fused_attrs f;
	struct slp_fused_last last;
	struct slp_type inner;
	slp_fused_reduce_split(c->attrs, &f, &last);
	if (!last.op || !last.op->scratch || infer_inner(c, &f, &inner)) return 0;
	struct slp_infer call = last_call(c, &last, &inner);
	return last.op->scratch(&call);
}

static double flops(const struct slp_infer *c)
{
	struct slp_fused_attrs f;
	struct slp_fused_last last;
	struct slp_type inner;
	slp_fused_reduce_split(c->attrs, &f, &last);
	if (infer_inner(c, &f, &inner)) return 0;
	return (slp_fused_count(&f) + 1) * (double)sl_shape_size(inner.shape);
}

struct slp_type slp_fused_reduce_inner(const struct slp_kernel *k)
{
	struct slp_type inner = {k->out[0].type.dtype, k->in[0].type.shape};
	for (int i = 1; i < k->nin; i++)
		slp_broadcast(inner.shape, k->in[i].type.shape, &inner.shape); /* as infer has found */
	return inner;
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* The kernel of an operation for CPUs, or its reference. */
static slp_kernel_fn *kernel_of(const struct sl_op *op, enum sl_dtype dtype, bool reference)
{
	return reference ? op->ref : slp_kernel_for(op, SLP_ALL_OF(dtype), SL_DEVICE_CPU).kernel;
}

static enum sl_status one_after_the_other(const struct slp_kernel *k, bool reference)
{
	struct slp_fused_attrs f;
	struct slp_fused_last last;
	slp_fused_reduce_split(k->attrs, &f, &last);
	struct slp_view inner = {NULL, slp_fused_reduce_inner(k)};
	size_t bytes = (size_t)slp_size(&inner) * sl_dtype_size(inner.type.dtype);
	if (!(inner.ptr = slp_workspace(SLP_WORK_EXPRESSION, bytes)))
		return slp_kernel_fail(k, SL_ENOMEM, "no memory for %zu bytes", bytes);
	struct slp_kernel first = *k, second = *k;
	first.op = &slp_op_fused;
	first.attrs = &f;
	first.out = &inner;
	first.scratch = NULL;
	enum sl_status s = kernel_of(first.op, inner.type.dtype, reference)(&first);
	if (s) return s;
	second.op = last.op;
	second.attrs = &last.attrs;
	second.nin = 1;
	second.in = &inner;
	return kernel_of(last.op, inner.type.dtype, reference)(&second);
}

static enum sl_status cpu(const struct slp_kernel *k)
{
	return one_after_the_other(k, false);
}

static enum sl_status ref(const struct slp_kernel *k)
{
	return one_after_the_other(k, true);
}

/* The names of its steps, and of the last operation. */
static void describe(const void *attrs, char *text, size_t size)
{
	struct slp_fused_attrs f;
	struct slp_fused_last last;
	slp_fused_reduce_split(attrs, &f, &last);
	text[0] = '\0';
	slp_op_fused.describe(&f, text, size);
	size_t n = strlen(text);
	snprintf(text + n, size - n, ", %s", last.op ? last.op->name : "?");
}

const struct sl_op slp_op_fused_reduce = {
        .name = "fused_reduce",
        .doc = "elementwise functions and the reduction or softmax of their result in one pass over memory",
        .args = "x ...",
        .nin_min = 1,
        .nin_max = SLP_FUSED_INPUTS,
        .nout = 1,
        .attr_table = attr_table,
        .attrs_size = sizeof(struct slp_fused_reduce_attrs),
        .rows = SLP_ROWS(SLP_ROW(SLP_FLOATS, cpu, slp_cuda_fused_reduce), SLP_BESIDE_HALF_ROWS(slp_cuda_fused_reduce)),
        .infer = infer,
        .flops = flops,
        .scratch = scratch,
        .ref = ref,
        .describe = describe,
};
