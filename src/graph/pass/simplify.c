/* simplify: algebraic identities.
 *
 * Some change the last bits of results: chains of factors and of terms become one, pow(x, 2) becomes a product, x + 0
 * loses the sign of zero.  All hold for NaN and infinities: x * 0 and x - x stay.  To compare bits with the operations
 * called one by one, switch the pass off. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/pass/pass.h"
#include "op_list/binary.h"
#include "op_list/fill.h"
#include "op_list/linear.h"
#include "op_list/move.h"
#include "op_list/unary.h"
#include "starling/graph.h"

/* A node being simplified. */
struct site {
	struct slp_walk *w;
	sl_graph *g;
	int node;
	bool gone; /* replaced */
};

static struct slp_gnode *here(const struct site *s)
{
	return &s->g->nodes[s->node];
}

static struct slp_value arg(const struct site *s, int i)
{
	return here(s)->in[i];
}

/* ---- tools of rules ---------------------------------------------------------------------------------------------- */

static bool become_value(struct site *s, struct slp_value v)
{
	struct slp_value own = {s->node, 0};
	if (!slp_type_equal(slp_value_type(s->g, own), slp_value_type(s->g, v))) return false;
	if (!slp_walk_may_replace(s->w, own, v)) return false;
	slp_walk_replace(s->w, own, v);
	return s->gone = true;
}

/* Turns the node into op(in …); false, and it stays, if the result would have another type or reads may not move. */
static bool become(struct site *s, const struct sl_op *op, const void *attrs, int nin, const struct slp_value *in)
{
	struct slp_type type = here(s)->types[0];
	for (int i = 0; i < nin; i++)
		if (!slp_walk_may_read(s->w, in[i])) return false;
	struct slp_gnode old = *here(s);
	here(s)->in = NULL;
	bool ok = slp_graph_rewrite(s->g, s->node, op, attrs, nin, in) && slp_node_infer(s->g, s->node) == SL_OK;
	if (ok && slp_type_equal(&here(s)->types[0], &type)) {
		free(old.in);
		return true;
	}
	if (sl_error() != SL_OK) sl_error_clear(); /* the node was only a trial */
	free(here(s)->in);
	*here(s) = old;
	return false;
}

static bool become1(struct site *s, const struct sl_op *op, struct slp_value x)
{
	return become(s, op, NULL, 1, &x);
}

static bool become_scalar(struct site *s, const struct sl_op *op, struct slp_value x, double value)
{
	return become(s, op, &value, 1, &x);
}

static bool become2(struct site *s, const struct sl_op *op, struct slp_value a, struct slp_value b)
{
	return become(s, op, NULL, 2, (struct slp_value[]){a, b});
}

static bool is_float(const struct site *s)
{
	return slp_is_float(here(s)->types[0].dtype);
}

/* ---- a number in every element ----------------------------------------------------------------------------------- */

static bool read_constant(const sl_graph *g, struct slp_value v, double *x)
{
	const struct slp_gnode *n = &g->nodes[v.node];
	double buffer;
	struct slp_view view = {&buffer, n->types[0]};
	if (n->kind != SLP_NODE_CONST || slp_size(&view) != 1) return false;
	if (sl_read_at(n->at, n->tensor, &buffer, sl_tensor_bytes(n->tensor)) != SL_OK) return sl_error_clear(), false;
	*x = slp_get(&view, 0);
	return slp_is_float(n->types[0].dtype) || fabs(*x) < 0x1p53; /* attributes of operations with a number */
}

static bool is_uniform(const sl_graph *g, struct slp_value v, double *x)
{
	const struct slp_gnode *n = slp_value_op(g, v, &slp_op_fill);
	if (!n) n = slp_value_op(g, v, &slp_op_full_like);
	if (!n) return read_constant(g, v, x);
	*x = slp_node_number(n, "value");
	if (n->types[0].dtype == SL_FLOAT32) *x = (float)*x;
	return slp_is_float(n->types[0].dtype);
}

/* ---- one argument ------------------------------------------------------------------------------------------------ */

/* f(f(x)) is f(x) for these f. */
static bool idempotent(struct site *s)
{
	static const struct sl_op *const ops[] = {&slp_op_relu, &slp_op_abs};
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
		if (slp_node_is(here(s), ops[i]) && slp_value_op(s->g, arg(s, 0), ops[i]))
			return become_value(s, arg(s, 0));
	return false;
}

static bool signs(struct site *s)
{
	const struct slp_gnode *n = here(s), *in = n->nin ? slp_value_op(s->g, n->in[0], &slp_op_neg) : NULL;
	const struct slp_gnode *scaled = n->nin ? slp_value_op(s->g, n->in[0], &slp_op_mul_scalar) : NULL;
	if (!is_float(s)) return false; /* negatives of integers saturate */
	if (in && slp_node_is(n, &slp_op_neg)) return become_value(s, in->in[0]);
	if (in && slp_node_is(n, &slp_op_abs)) return become1(s, &slp_op_abs, in->in[0]);
	if (in && slp_node_is(n, &slp_op_square)) return become1(s, &slp_op_square, in->in[0]);
	if (in && slp_node_is(n, &slp_op_mul_scalar))
		return become_scalar(s, &slp_op_mul_scalar, in->in[0], -slp_node_number(n, "value"));
	if (scaled && slp_node_is(n, &slp_op_neg))
		return become_scalar(s, &slp_op_mul_scalar, scaled->in[0], -slp_node_number(scaled, "value"));
	return false;
}

static bool has_sign(enum sl_dtype dtype)
{
	return dtype == SL_INT8 || dtype == SL_INT16 || dtype == SL_INT32 || dtype == SL_INT64;
}

/* Whether an integer type holds all numbers of another. */
static bool holds_whole(enum sl_dtype wide, enum sl_dtype narrow)
{
	size_t w = sl_dtype_size(wide), n = sl_dtype_size(narrow);
	if (slp_kind_of(wide) != SLP_KIND_INT || slp_is_float(narrow)) return false;
	if (narrow == SL_BOOL) return true;
	return has_sign(wide) ? w > n || (w == n && has_sign(narrow)) : !has_sign(narrow) && w >= n;
}

static bool gives_truth(const struct slp_gnode *n)
{
	static const struct sl_op *const ops[] = {
	        &slp_op_eq,          &slp_op_ne,        &slp_op_lt,          &slp_op_le,         &slp_op_gt,
	        &slp_op_ge,          &slp_op_eq_scalar, &slp_op_ne_scalar,   &slp_op_lt_scalar,  &slp_op_le_scalar,
	        &slp_op_gt_scalar,   &slp_op_ge_scalar, &slp_op_logical_and, &slp_op_logical_or, &slp_op_logical_xor,
	        &slp_op_logical_not, &slp_op_isnan,     &slp_op_isfinite,
	};
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
		if (slp_node_is(n, ops[i])) return true;
	return false;
}

/* A cast into a type that holds all values, and back: indices as int64, conditions as bool. */
static bool there_and_back(struct site *s)
{
	const struct slp_gnode *n = here(s), *in = n->nin ? slp_value_op(s->g, n->in[0], &slp_op_cast) : NULL;
	if (!in || !slp_node_is(n, &slp_op_cast)) return false;
	enum sl_dtype from = slp_value_type(s->g, in->in[0])->dtype, by = in->types[0].dtype;
	if (from != n->types[0].dtype) return false;
	bool truth = by == SL_BOOL && gives_truth(&s->g->nodes[in->in[0].node]);
	return (truth || holds_whole(by, from)) && become_value(s, in->in[0]);
}

/* x itself, or a copy of it. */
static bool nothing_done(struct site *s)
{
	static const struct sl_op *const ops[] = {&slp_op_copy, &slp_op_cast, &slp_op_reshape, &slp_op_broadcast_to,
	                                          &slp_op_concat};
	const struct slp_gnode *n = here(s);
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
		if (n->nin == 1 && slp_node_is(n, ops[i])) return become_value(s, n->in[0]);
	if (slp_node_is(n, &slp_op_slice) && slp_node_number(n, "step") == 1) return become_value(s, n->in[0]);
	if (slp_node_is(n, &slp_op_dropout) && slp_node_number(n, "p") == 0) return become_value(s, n->in[0]);
	return false;
}

/* ---- one argument and a number ----------------------------------------------------------------------------------- */

static bool neutral_number(struct site *s)
{
	static const struct {
		const struct sl_op *op;
		double value;
	} neutral[] = {{&slp_op_add_scalar, 0},
	               {&slp_op_sub_scalar, 0},
	               {&slp_op_mul_scalar, 1},
	               {&slp_op_div_scalar, 1},
	               {&slp_op_pow_scalar, 1}};
	for (size_t i = 0; i < sizeof neutral / sizeof *neutral; i++)
		if (slp_node_is(here(s), neutral[i].op) && slp_node_number(here(s), "value") == neutral[i].value)
			return become_value(s, arg(s, 0));
	return false;
}

static bool cheaper_function(struct site *s)
{
	const struct slp_gnode *n = here(s);
	double value = n->nin == 1 ? slp_node_number(n, "value") : 0;
	if (!is_float(s)) return false;
	if (slp_node_is(n, &slp_op_pow_scalar) && value == 2) return become1(s, &slp_op_square, n->in[0]);
	if (slp_node_is(n, &slp_op_pow_scalar) && value == -1) return become1(s, &slp_op_reciprocal, n->in[0]);
	if (slp_node_is(n, &slp_op_mul_scalar) && value == -1) return become1(s, &slp_op_neg, n->in[0]);
	return false;
}

/* The factor or the term of the node. */
static bool factor(const struct slp_gnode *n, double *value)
{
	*value = n->kind == SLP_NODE_OP ? slp_node_number(n, "value") : 0;
	if (slp_node_is(n, &slp_op_div_scalar)) *value = 1 / *value;
	else if (!slp_node_is(n, &slp_op_mul_scalar)) return false;
	return fabs(*value) > 1e-15 && fabs(*value) < 1e15; /* so a product of two factors keeps its number */
}

static bool term(const struct slp_gnode *n, double *value)
{
	*value = n->kind == SLP_NODE_OP ? slp_node_number(n, "value") : 0;
	if (slp_node_is(n, &slp_op_sub_scalar)) *value = -*value;
	else if (!slp_node_is(n, &slp_op_add_scalar)) return false;
	return fabs(*value) < 1e15;
}

static bool number_chains(struct site *s)
{
	double a, b;
	const struct slp_gnode *n = here(s), *in = n->nin == 1 ? &s->g->nodes[n->in[0].node] : NULL;
	if (!in || !is_float(s)) return false;
	if (factor(n, &a) && factor(in, &b)) return become_scalar(s, &slp_op_mul_scalar, in->in[0], a * b);
	if (term(n, &a) && term(in, &b)) return become_scalar(s, &slp_op_add_scalar, in->in[0], a + b);
	return false;
}

/* ---- two arguments ----------------------------------------------------------------------------------------------- */

/* One operand is a number in every element: becomes NAME_scalar, or its reverse form if the number is the first
 * operand. */
static bool with_number(struct site *s)
{
	static const struct {
		const struct sl_op *op, *second, *first;
	} forms[] = {
#define X(name, mirrored) {&slp_op_##name, &slp_op_##name##_scalar, &slp_op_##mirrored##_scalar},
	        X(add, add) X(sub, rsub) X(mul, mul) X(div, rdiv) X(pow, rpow) X(maximum, maximum) X(minimum, minimum)
	                X(eq, eq) X(ne, ne) X(lt, gt) X(le, ge) X(gt, lt) X(ge, le)
#undef X
	};
	const struct slp_gnode *n = here(s);
	double value;
	for (size_t i = 0; n->nin == 2 && i < sizeof forms / sizeof *forms; i++) {
		if (!slp_node_is(n, forms[i].op)) continue;
		if (is_uniform(s->g, n->in[1], &value)) return become_scalar(s, forms[i].second, n->in[0], value);
		if (is_uniform(s->g, n->in[0], &value)) return become_scalar(s, forms[i].first, n->in[1], value);
	}
	return false;
}

static bool signs_of_two(struct site *s)
{
	const struct slp_gnode *n = here(s);
	if (n->nin != 2 || !is_float(s)) return false;
	const struct slp_gnode *a = slp_value_op(s->g, n->in[0], &slp_op_neg),
	                       *b = slp_value_op(s->g, n->in[1], &slp_op_neg);
	if (b && slp_node_is(n, &slp_op_add)) return become2(s, &slp_op_sub, n->in[0], b->in[0]);
	if (a && slp_node_is(n, &slp_op_add)) return become2(s, &slp_op_sub, n->in[1], a->in[0]);
	if (b && slp_node_is(n, &slp_op_sub)) return become2(s, &slp_op_add, n->in[0], b->in[0]);
	return false;
}

/* ---- moving elements --------------------------------------------------------------------------------------------- */

static bool transposes(struct site *s)
{
	struct {
		int naxes, axes[SL_MAX_NDIM];
	} both = {here(s)->types[0].shape.ndim, {0}};
	int outer[SL_MAX_NDIM] = {0}, inner[SL_MAX_NDIM] = {0};
	bool same = true;
	if (!slp_node_is(here(s), &slp_op_transpose) || !slp_transpose_axes(s->g, here(s), outer)) return false;
	for (int i = 0; i < both.naxes; i++) same &= outer[i] == i;
	if (same) return become_value(s, arg(s, 0));
	const struct slp_gnode *in = slp_value_op(s->g, arg(s, 0), &slp_op_transpose);
	if (!in || !slp_transpose_axes(s->g, in, inner)) return false;
	for (int i = 0; i < both.naxes; i++) both.axes[i] = inner[outer[i]];
	return become(s, &slp_op_transpose, &both, 1, in->in);
}

static bool reshapes(struct site *s)
{
	const struct slp_gnode *in = here(s)->nin == 1 ? slp_value_op(s->g, arg(s, 0), &slp_op_reshape) : NULL;
	if (!in || !slp_node_is(here(s), &slp_op_reshape)) return false;
	return become(s, &slp_op_reshape, &here(s)->types[0].shape, 1, in->in);
}

/* A product reads a transposed matrix directly. */
static bool transposed_factors(struct site *s)
{
	const struct slp_gnode *n = here(s);
	if (!slp_node_is(n, &slp_op_dot)) return false;
	struct {
		bool ta, tb;
	} attrs = {slp_node_number(n, "ta") != 0, slp_node_number(n, "tb") != 0};
	struct slp_value in[2] = {n->in[0], n->in[1]};
	bool any = false;
	for (int i = 0; i < 2; i++) {
		const struct slp_gnode *t = slp_value_op(s->g, in[i], &slp_op_transpose);
		int axes[SL_MAX_NDIM] = {0};
		if (!t || t->types[0].shape.ndim != 2 || !slp_transpose_axes(s->g, t, axes) || axes[0] != 1) continue;
		in[i] = t->in[0];
		*(i ? &attrs.tb : &attrs.ta) ^= true;
		any = true;
	}
	return any && become(s, &slp_op_dot, &attrs, 2, in);
}

/* ---- gradients of slices ----------------------------------------------------------------------------------------- */

/* The gradient of a slice: a part of an axis among zeros. */
struct part {
	struct slp_value value;
	int64_t begin, count;
};

enum { MOST_PARTS = 512 };

struct parts {
	struct part list[MOST_PARTS];
	int count, axis;
	int64_t size, total; /* length of the axis, sum of the parts */
};

static bool add_part(const sl_graph *g, const struct slp_gnode *n, struct parts *p)
{
	int axis = *(const int *)slp_node_attr(n, "axis");
	int64_t begin = *(const int64_t *)slp_node_attr(n, "begin"), size = *(const int64_t *)slp_node_attr(n, "size");
	if (!slp_axis(&axis, n->types[0].shape.ndim) || slp_node_number(n, "step") != 1 || p->count == MOST_PARTS)
		return false;
	if (p->count && (axis != p->axis || size != p->size)) return false;
	p->axis = axis;
	p->size = size;
	int64_t count = slp_value_type(g, n->in[0])->shape.dim[axis];
	p->list[p->count++] = (struct part){n->in[0], begin < 0 ? begin + size : begin, count};
	p->total += count;
	return true;
}

static bool may_be_parts(const struct slp_gnode *n)
{
	return slp_node_is(n, &slp_op_slice_grad) || slp_node_is(n, &slp_op_add);
}

/* The terms of a sum, if each is the gradient of a slice of the same axis.  Both are looked at before the first is
 * followed: sums of a weight's gradients in a loop are long. */
static bool find_parts(const sl_graph *g, struct slp_value v, struct parts *p, int depth)
{
	const struct slp_gnode *n = &g->nodes[v.node];
	if (slp_node_is(n, &slp_op_slice_grad)) return add_part(g, n, p);
	if (!slp_node_is(n, &slp_op_add) || depth == MOST_PARTS) return false;
	for (int i = 0; i < 2; i++)
		if (!may_be_parts(&g->nodes[n->in[i].node])) return false;
	return find_parts(g, n->in[0], p, depth + 1) && find_parts(g, n->in[1], p, depth + 1);
}

static int by_begin(const void *a, const void *b)
{
	const struct part *x = a, *y = b;
	return (x->begin > y->begin) - (x->begin < y->begin);
}

/* The sum of the gradients of all parts of an axis is the parts one after another. */
static bool parts_of_axis(struct site *s)
{
	struct parts p;
	struct slp_value in[MOST_PARTS];
	int64_t at = 0;
	p.count = 0;
	p.total = 0;
	if (!slp_node_is(here(s), &slp_op_add) || !find_parts(s->g, (struct slp_value){s->node, 0}, &p, 0) ||
	    p.total != p.size)
		return false;
	qsort(p.list, (size_t)p.count, sizeof *p.list, by_begin);
	for (int i = 0; i < p.count; at += p.list[i++].count) {
		if (p.list[i].begin != at) return false;
		in[i] = p.list[i].value;
	}
	return become(s, &slp_op_concat, &p.axis, p.count, in);
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static bool (*const rules[])(struct site *) = {
        nothing_done, there_and_back, neutral_number, with_number, cheaper_function,   number_chains, idempotent,
        signs,        signs_of_two,   transposes,     reshapes,    transposed_factors, parts_of_axis,
};

enum { RULES = sizeof rules / sizeof *rules, MOST = 16 }; /* steps at one node */

static void simplify(struct site *s)
{
	for (int steps = 0, i = 0; i < RULES && !s->gone && steps < MOST; i++)
		if (rules[i](s)) steps++, i = -1;
}

enum sl_status slp_pass_simplify(sl_graph *g)
{
	struct slp_walk w;
	if (!slp_walk_begin(&w, g)) return SL_ENOMEM;
	for (int i = 0; i < g->count; i++) {
		if (g->nodes[i].kind != SLP_NODE_OP || g->nodes[i].dead) continue;
		slp_walk_node(&w, i);
		if (g->nodes[i].nout == 1) simplify(&(struct site){&w, g, i, false});
	}
	slp_walk_end(&w);
	return slp_pass_dead(g);
}
