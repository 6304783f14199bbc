/* The rule of each operation along an axis whose size changes: the elements of its results that depend on later
 * elements there.  Operations that are not listed depend on all elements. */
#include "graph/pass/pass.h"
#include "graph/prefix.h"
#include "op_list/all.h"

static double number(const struct slp_pair *p, const char *name)
{
	return slp_attr_number(p->call[0]->op, p->call[0]->attrs, name);
}

static const int *list(const struct slp_pair *p, const char *name)
{
	return (const int *)(const void *)((const char *)p->call[0]->attrs +
	                                   slp_attr_find(p->call[0]->op, name)->offset);
}

static bool begins(const struct slp_pair *p, int i)
{
	return i < p->call[0]->nin && p->in[i].kind == SLP_BEGINS;
}

static int ndim(const struct slp_pair *p, int i)
{
	return p->call[0]->in[i].shape.ndim;
}

/* The number of elements in the axes before this one. */
static int64_t before(sl_shape s, int axis)
{
	int64_t n = 1;
	for (int i = 0; i < axis; i++) n *= s.dim[i];
	return n;
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static const char odd[] = "gives a result whose shape does not follow the size";

static const char *give(struct slp_pair *p, int o, int64_t runs)
{
	sl_shape more = p->call[0]->out[o].shape, less = p->call[1]->out[o].shape;
	int axis = slp_prefix_axis(more, less);
	if (axis < 0) return odd;
	int64_t n = runs ? runs * p->size[0] : 1, m = runs ? runs * p->size[1] : 1;
	bool whole = more.dim[axis] % n == 0 && less.dim[axis] % m == 0;
	if (!whole || (runs && more.dim[axis] / n != less.dim[axis] / m) || !less.dim[axis]) return odd;
	p->out[o] = (struct slp_follows){.kind = SLP_BEGINS, .axis = axis, .runs = runs};
	return NULL;
}

/* For all results: the axis has its old position, or has moved as a whole. */
static const char *give_all(struct slp_pair *p, int64_t runs)
{
	const char *why = NULL;
	for (int o = 0; !why && o < p->call[0]->nout; o++) why = give(p, o, runs);
	return why;
}

/* The elements keep their order, in other axes. */
static const char *give_outer(struct slp_pair *p, int o, int64_t outer)
{
	sl_shape s = p->call[0]->out[o].shape;
	int axis = slp_prefix_axis(s, p->call[1]->out[o].shape);
	int64_t n = axis < 0 ? 0 : before(s, axis);
	return !n || outer % n ? odd : give(p, o, outer / n);
}

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static const char others[] = "has an operand besides the first that follows the size";

/* Whether inputs from this one on are the same for both sizes. */
static bool rest_is_same(const struct slp_pair *p, int from)
{
	for (int i = from; i < p->call[0]->nin; i++)
		if (p->in[i].kind != SLP_SAME) return false;
	return true;
}

/* The runs of all inputs, which are broadcast to the shape of result 0; -1: they differ. */
static int64_t agreed(const struct slp_pair *p)
{
	sl_shape out = p->call[0]->out[0].shape;
	int axis = slp_prefix_axis(out, p->call[1]->out[0].shape);
	int64_t runs = 0;
	for (int i = 0; i < p->call[0]->nin; i++) {
		if (!begins(p, i)) continue;
		const struct slp_follows *f = &p->in[i];
		if (f->axis + out.ndim - ndim(p, i) != axis) return -1;
		if (p->call[0]->in[i].shape.dim[f->axis] != out.dim[axis]) return -1;
		if (f->runs && runs && f->runs != runs) return -1;
		if (f->runs) runs = f->runs;
	}
	return runs;
}

static const char *elements(struct slp_pair *p)
{
	int64_t runs = agreed(p);
	return runs < 0 ? "has operands that follow the size along different axes" : give(p, 0, runs);
}

static const char *like(struct slp_pair *p)
{
	return give(p, 0, 0);
}

/* The first of more elements are the fewer elements. */
static const char *range(struct slp_pair *p)
{
	for (int i = 0; i < 2; i++)
		if (slp_attr_number(p->call[i]->op, p->call[i]->attrs, "start") != number(p, "start") ||
		    slp_attr_number(p->call[i]->op, p->call[i]->attrs, "step") != number(p, "step"))
			return "has another step for another size";
	return give(p, 0, 1);
}

static const char *made(struct slp_pair *p)
{
	static const char *const names[] = {"value", "a", "b", "low", "high", "mean", "sigma", "dtype"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (slp_attr_number(p->call[1]->op, p->call[1]->attrs, names[i]) != number(p, names[i]))
			return "has another value for another size";
	return give(p, 0, 0);
}

static const char *reshape(struct slp_pair *p)
{
	int axis = p->in[0].axis;
	sl_shape in = p->call[0]->in[0].shape;
	return give_outer(p, 0, before(in, axis) * (p->in[0].runs ? p->in[0].runs : 1));
}

/* The axis is another one, or has another one behind it, but it is whole. */
static const char *moved(struct slp_pair *p)
{
	return give(p, 0, p->in[0].runs);
}

static const char *broadcast(struct slp_pair *p)
{
	return begins(p, 0) ? elements(p) : give(p, 0, 0);
}

/* Every row of the last axis by itself. */
static const char *rows(struct slp_pair *p)
{
	const struct slp_follows *f = &p->in[0];
	if (f->axis == ndim(p, 0) - 1) return "goes over the axis";
	if (!rest_is_same(p, 1)) return others;
	const char *why = NULL;
	for (int o = 0; !why && o < p->call[0]->nout; o++)
		why = give_outer(p, o, before(p->call[0]->in[0].shape, f->axis) * (f->runs ? f->runs : 1));
	return why;
}

static const char *along(struct slp_pair *p)
{
	int axis = (int)number(p, "axis");
	if (axis < 0) axis += ndim(p, 0);
	if (axis == p->in[0].axis) return "goes over the axis";
	return give(p, 0, p->in[0].runs);
}

static const char *reduction(struct slp_pair *p)
{
	const int *axes = list(p, "axes");
	for (int i = 0; i < (int)number(p, "naxes"); i++)
		if (axes[i] == p->in[0].axis) return "goes over the axis";
	return give(p, 0, p->in[0].runs);
}

static const char inner[] = "adds products along the axis";

/* Both operands of a product: the axis is not the one that is summed. */
static const char *product(struct slp_pair *p)
{
	int na = ndim(p, 0), nb = ndim(p, 1), a = p->in[0].axis - (na - 2), b = p->in[1].axis - (nb - 2);
	bool ta = number(p, "ta") != 0, tb = number(p, "tb") != 0, of_a = begins(p, 0), of_b = begins(p, 1);
	if (na < 2 || nb < 2) return "is a product of a vector";
	if (of_a && of_b && (a >= 0 || b >= 0)) return "multiplies elements along the axis by one another";
	if (of_a && of_b && (a != b || p->in[0].runs != p->in[1].runs)) return odd;
	if (of_a && a >= 0 && a != ta) return inner;
	if (of_b && b >= 0 && b == tb) return inner;
	return give(p, 0, p->in[of_a ? 0 : 1].runs);
}

static const char *attention(struct slp_pair *p)
{
	int steps = ndim(p, 0) - 2;
	for (int i = 0; i < 3; i++)
		if (begins(p, i) && p->in[i].axis > steps) return inner;
	if (!rest_is_same(p, 3)) return "has a mask that follows the size";
	bool self = begins(p, 0) && begins(p, 1) && begins(p, 2);
	if (!self && (begins(p, 1) || begins(p, 2) || p->in[0].axis != steps)) return "sees all keys";
	if (self && (p->in[0].axis != p->in[1].axis || p->in[0].axis != p->in[2].axis)) return "sees all keys";
	if (self && (p->in[0].runs != p->in[1].runs || p->in[0].runs != p->in[2].runs)) return odd;
	if (self && p->in[0].axis == steps && !(number(p, "causal") != 0 && p->in[0].runs == 1))
		return "sees all steps, as it is not causal";
	return give_all(p, p->in[0].axis == steps && !p->in[0].runs ? 1 : p->in[0].runs);
}

/* Along time, or for each row. */
static const char *recurrent(struct slp_pair *p)
{
	const struct slp_follows *gates = &p->in[0];
	if (!begins(p, 0) || gates->axis > 1) return inner;
	if (gates->axis == 0 && (number(p, "reverse") != 0 || gates->runs > 1)) return "goes backwards";
	if (gates->axis == 0 && !rest_is_same(p, 1)) return others;
	bool lstm = p->call[0]->out[1].shape.dim[0] != 0;
	if (gates->axis == 0 && lstm) /* the cell after the last step */
		p->out[1] = (struct slp_follows){.kind = SLP_OTHER, .why = "gives its state after the last step"};
	for (int i = 1; i < p->call[0]->nin; i++) {
		bool is_state = i == 2 || (i == 3 && lstm);
		if (gates->axis == 1 && begins(p, i) && !(is_state && p->in[i].axis == 0)) return others;
		if (gates->axis == 1 && begins(p, i) && p->in[i].runs && p->in[i].runs != gates->runs) return odd;
	}
	int64_t runs = gates->axis == 0 ? 1 : gates->runs;
	const char *why = give(p, 0, runs);
	if (!why) why = give(p, 2, runs);
	return !why && gates->axis == 1 && lstm ? give(p, 1, gates->runs) : why;
}

/* For each image, for each row of the first axis. */
static const char *images(struct slp_pair *p)
{
	if (!rest_is_same(p, 1)) return others;
	return p->in[0].axis ? "reaches along the axis" : give_all(p, p->in[0].runs);
}

static const char *losses(struct slp_pair *p)
{
	for (int i = 0; i < p->call[0]->nin; i++)
		if (begins(p, i) && p->in[i].axis) return "is a mean over the axis";
	if (!begins(p, 0) || !begins(p, 1)) return "has one operand that does not follow the size";
	int64_t a = p->in[0].runs, b = p->in[1].runs;
	return a && b && a != b ? odd : give(p, 0, a ? a : b);
}

static const char *gather(struct slp_pair *p)
{
	return begins(p, 0) ? "reads from a table that follows the size" : give(p, 0, p->in[1].runs);
}

/* The parts that two calls of slice take, from the first element on. */
static bool same_begin(const struct slp_pair *p)
{
	for (int i = 0; i < 2; i++)
		if (slp_attr_number(p->call[i]->op, p->call[i]->attrs, "begin") != 0 ||
		    slp_attr_number(p->call[i]->op, p->call[i]->attrs, "step") != 1)
			return false;
	return true;
}

static const char *slice(struct slp_pair *p)
{
	int axis = (int)number(p, "axis");
	if (axis < 0) axis += ndim(p, 0);
	if (!begins(p, 0)) return same_begin(p) ? give(p, 0, 1) : "does not begin with the first element";
	if (axis != p->in[0].axis) return p->same_attrs ? give(p, 0, p->in[0].runs) : odd;
	bool whole = true;
	for (int i = 0; i < 2; i++) whole &= p->call[i]->in[0].shape.dim[axis] == p->call[i]->out[0].shape.dim[axis];
	return whole && same_begin(p) ? give(p, 0, p->in[0].runs) : "takes a part of the axis";
}

static const char *concat(struct slp_pair *p)
{
	int axis = (int)number(p, "axis");
	if (axis < 0) axis += ndim(p, 0);
	for (int i = 0; i < p->call[0]->nin; i++)
		if (!begins(p, i) || p->in[i].axis == axis || p->in[i].axis != p->in[0].axis)
			return "joins along the axis";
	int64_t runs = agreed(p);
	return runs < 0 ? odd : give(p, 0, runs);
}

static const char *statistics(struct slp_pair *p)
{
	(void)p;
	return "takes means over the whole batch";
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

/* X(operation, its rule, whether attributes may differ: the rule looks at them) */
/* clang-format off */
#define RULES(X) \
	X(cast, elements, false) X(copy, elements, false) X(dropout, elements, false) X(full_like, like, false) \
	X(fill, made, true) X(uniform, made, true) X(normal, made, true) X(arange, range, true) \
	X(reshape, reshape, true) X(transpose, moved, false) X(broadcast_to, broadcast, true) X(one_hot, moved, false) \
	X(slice, slice, true) X(concat, concat, false) X(gather, gather, false) \
	X(linear, rows, false) X(layer_norm, rows, false) X(dot, product, false) X(matmul, product, false) \
	X(softmax, along, false) X(log_softmax, along, false) X(argmax, along, false) X(argsort, along, false) \
	X(cumsum, along, false) X(sum, reduction, false) X(mean, reduction, false) X(max, reduction, false) \
	X(min, reduction, false) X(norm, reduction, false) X(prod, reduction, false) X(any, reduction, false) \
	X(all, reduction, false) X(attention, attention, false) X(recurrent, recurrent, false) \
	X(conv2d, images, false) X(max_pool2d, images, false) X(avg_pool2d, images, false) \
	X(batch_norm_infer, images, false) X(batch_norm, statistics, true) \
	X(softmax_cross_entropy, losses, false) X(l1_loss, losses, false) X(l2_loss, losses, false) \
	X(huber_loss, losses, false) X(bce_logits_loss, losses, false)
/* clang-format on */

static const struct {
	const struct sl_op *op;
	slp_prefix_rule *rule;
	bool any_attrs;
} rules[] = {
#define X(name, rule, any_attrs) {&slp_op_##name, rule, any_attrs},
        RULES(X)
#undef X
};

slp_prefix_rule *slp_prefix_rule_of(const struct sl_op *op, bool *any_attrs)
{
	*any_attrs = false;
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		if (rules[i].op != op) continue;
		*any_attrs = rules[i].any_attrs;
		return rules[i].rule;
	}
	return op->elementwise ? elements : NULL;
}
