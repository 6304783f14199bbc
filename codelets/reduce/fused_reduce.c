/* fused_reduce: an expression of elementwise functions (elementwise/fused.h) whose result is reduced along axes.
 *
 * On a GPU with NVRTC one compiled kernel computes both, and the result of the expression is never stored
 * (elementwise/fused.cu); elsewhere it is computed in scratch memory.  The bits are those of the two operations. */
#include "fused_reduce.h"

#include <string.h>

#include "op_list/binary.h"
#include "op_list/reduce.h"

/* Bits of the reduction; alignment of scratch memory; elements of an output from which a group of threads reduces them. */
enum { AXES = 8, KEEP = 24, LINE = 64, GROUP = 16 };

static const struct sl_op *const reductions[] = {
#define X(name, start, step, merge, finish, dtypes, saves, doc) [SLP_REDUCE_##name] = &slp_op_##name,
#include "reduce.def"
#undef X
};
_Static_assert(sizeof(struct slp_fused_reduce_attrs) == sizeof(struct slp_fused_attrs), "one less step");
_Static_assert(SL_MAX_NDIM <= KEEP - AXES, "bits of axes");

static const struct slp_attr attr_table[] = {
        SLP_ATTR_VALUE(struct slp_fused_reduce_attrs, number, SLP_DOUBLE, SLP_FUSED_NUMBERS,
                       "numbers that are operands"),
        SLP_ATTR(struct slp_fused_reduce_attrs, step, SLP_INT, SLP_FUSED_STEPS - 1,
                 "function + 256 operand + 65536 operand"),
        SLP_ATTR(struct slp_fused_reduce_attrs, reduction, SLP_INT, 1, "reduction + 256 axes + 2^24 keepdims"),
        {0},
};

/* ---- attributes -------------------------------------------------------------------------------------------------- */

/* -1: it is none. */
static int reduction_of(const struct sl_op *op)
{
	for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
		if (reductions[i] == op) return (int)i;
	return -1;
}

int slp_fused_reduce_split(const struct slp_fused_reduce_attrs *a, struct slp_fused_attrs *f,
                           struct slp_reduce_attrs *r)
{
	memcpy(f, a, sizeof *f);
	f->step[SLP_FUSED_STEPS - 1] = SLP_FUSED_END;
	*r = (struct slp_reduce_attrs){.keepdims = a->reduction >> KEEP & 1};
	for (int i = 0; i < SL_MAX_NDIM; i++)
		if (a->reduction >> (AXES + i) & 1) r->axes[r->naxes++] = i;
	return a->reduction & ((1 << AXES) - 1);
}

bool slp_fused_reduce_suits(const struct slp_type *expression, const struct slp_reduce_attrs *r)
{
	struct slp_reduce_plan p = slp_reduce_plan_of(expression->shape, r);
	int width = 16 / (int)sl_dtype_size(expression->dtype);
	bool wide = p.inner % width == 0 && p.length % width == 0;
	int64_t rows = p.rows < p.gone.size ? p.rows : p.gone.size;
	for (int i = 0; i < p.kept.n; i++) wide = wide && p.kept.stride[i] % width == 0;
	for (int i = 0; i < p.gone.n; i++) wide = wide && p.gone.stride[i] % width == 0;
	return !p.columns && p.nout > 0 && wide && rows * p.length >= GROUP;
}

/* Whether all steps are functions of the library, and there is one less than an expression can have. */
static bool is_short(const struct slp_fused_attrs *f)
{
	int count = slp_fused_count(f);
	for (int i = 0; i < count; i++)
		if (slp_fused_step_at(f, i).own) return false;
	return count < SLP_FUSED_STEPS;
}

bool slp_fused_reduce_of(const struct slp_fused_attrs *f, const struct slp_type *expression,
                         const struct sl_op *reduction, const void *attrs, struct slp_fused_attrs *to)
{
	const struct slp_reduce_attrs *r = attrs;
	int number = reduction_of(reduction);
	if (number < 0 || !slp_fused_reduce_suits(expression, r) || !is_short(f)) return false;
	*to = *f;
	to->step[SLP_FUSED_STEPS - 1] = number | (int)(slp_reduce_mask(r) << AXES) | r->keepdims << KEEP;
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

/* The call of the reduction; messages name the whole. */
static struct slp_infer outer_call(const struct slp_infer *c, struct slp_reduce_attrs *r, const struct slp_type *inner)
{
	struct slp_infer outer = *c;
	outer.attrs = r;
	outer.nin = 1;
	outer.in = inner;
	return outer;
}

static enum sl_status infer(struct slp_infer *c)
{
	struct slp_fused_attrs f;
	struct slp_reduce_attrs r;
	struct slp_type inner;
	int reduction = slp_fused_reduce_split(c->attrs, &f, &r);
	if (reduction >= (int)(sizeof reductions / sizeof *reductions))
		return slp_reject(c, SL_EINVAL, "no reduction %d", reduction);
	enum sl_status s = infer_inner(c, &f, &inner);
	if (s) return s;
	struct slp_infer outer = outer_call(c, &r, &inner);
	return reductions[reduction]->infer(&outer);
}

static size_t inner_bytes(const struct slp_type *inner)
{
	size_t n = (size_t)sl_shape_size(inner->shape) * sl_dtype_size(inner->dtype);
	return (n + LINE - 1) / LINE * LINE;
}

/* The result of the expression, and behind it what the reduction needs. */
static size_t scratch(const struct slp_infer *c)
{
	struct slp_fused_attrs f;
	struct slp_reduce_attrs r;
	struct slp_type inner;
	int reduction = slp_fused_reduce_split(c->attrs, &f, &r);
	if (infer_inner(c, &f, &inner)) return 0;
	struct slp_infer outer = outer_call(c, &r, &inner);
	return inner_bytes(&inner) + reductions[reduction]->scratch(&outer);
}

static double flops(const struct slp_infer *c)
{
	struct slp_fused_attrs f;
	struct slp_reduce_attrs r;
	struct slp_type inner;
	slp_fused_reduce_split(c->attrs, &f, &r);
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

static enum sl_status one_after_the_other(const struct slp_kernel *k, slp_kernel_fn *expression, slp_kernel_fn *reduce)
{
	struct slp_fused_attrs f;
	struct slp_reduce_attrs r;
	int reduction = slp_fused_reduce_split(k->attrs, &f, &r);
	struct slp_view inner = {k->scratch, slp_fused_reduce_inner(k)};
	struct slp_kernel first = *k, second = *k;
	first.op = &slp_op_fused;
	first.attrs = &f;
	first.out = &inner;
	first.scratch = NULL;
	enum sl_status s = expression(&first);
	if (s) return s;
	second.op = reductions[reduction];
	second.attrs = &r;
	second.nin = 1;
	second.in = &inner;
	second.scratch = (char *)k->scratch + inner_bytes(&inner.type);
	return reduce(&second);
}

enum sl_status slp_fused_then_reduce(const struct slp_kernel *k, enum sl_device_kind device)
{
	struct slp_types types = SLP_ALL_OF(k->out[0].type.dtype);
	const struct slp_fused_reduce_attrs *a = k->attrs;
	const struct sl_op *op = reductions[a->reduction & ((1 << AXES) - 1)];
	return one_after_the_other(k, slp_kernel_for(&slp_op_fused, types, device).kernel,
	                           slp_kernel_for(op, types, device).kernel);
}

static enum sl_status cpu(const struct slp_kernel *k)
{
	return slp_fused_then_reduce(k, SL_DEVICE_CPU);
}

static enum sl_status ref(const struct slp_kernel *k)
{
	const struct slp_fused_reduce_attrs *a = k->attrs;
	return one_after_the_other(k, slp_op_fused.ref, reductions[a->reduction & ((1 << AXES) - 1)]->ref);
}

/* The names of its steps, and the reduction's. */
static void describe(const void *attrs, char *text, size_t size)
{
	struct slp_fused_attrs f;
	struct slp_reduce_attrs r;
	int reduction = slp_fused_reduce_split(attrs, &f, &r);
	text[0] = '\0';
	slp_op_fused.describe(&f, text, size);
	size_t n = strlen(text);
	snprintf(text + n, size - n, ", %s", reductions[reduction]->name);
}

const struct sl_op slp_op_fused_reduce = {
        .name = "fused_reduce",
        .doc = "elementwise functions and the reduction of their result in one pass over memory",
        .args = "x ...",
        .nin_min = 1,
        .nin_max = SLP_FUSED_INPUTS,
        .nout = 1,
        .attr_table = attr_table,
        .attrs_size = sizeof(struct slp_fused_reduce_attrs),
        .rows = SLP_ROWS(SLP_ROW(SLP_FLOATS, cpu, slp_cuda_fused_reduce), SLP_HALF_ROWS(slp_cuda_fused_reduce)),
        .infer = infer,
        .flops = flops,
        .scratch = scratch,
        .ref = ref,
        .describe = describe,
};
