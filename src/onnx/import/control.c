/* ONNX operators, computed: branches and loops.  Their conditions are mostly known while a network is built: then one
 * branch is computed, and loops are unrolled. */
#include <stdlib.h>

#include "onnx/model/call.h"
#include "op.h"
#include "starling/functions.h"

/* ---- If ---------------------------------------------------------------------------------------------------------- */

static void drop_all(struct slp_onnx_value *v, int n)
{
	for (int i = 0; v && i < n; i++) slp_onnx_drop(&v[i]);
	free(v);
}

/* The results of a branch; the caller drops them. */
static struct slp_onnx_value *branch(struct slp_onnx_call *c, const char *name, int *count)
{
	int graph = slp_onnx_graph_named(c, name);
	if (graph < 0) return NULL;
	*count = slp_onnx_graph_outputs(c, graph);
	if (slp_onnx_graph_inputs(c, graph) || *count < c->nout)
		slp_onnx_call_fail(c, SL_EFORMAT, "the graph %s has inputs, or too few results", name);
	struct slp_onnx_value *out = c->failed ? NULL : slp_calloc((size_t)*count + 1, sizeof *out);
	if (!out) c->failed = true; /* and recorded */
	else if (!slp_onnx_graph_run(c, graph, NULL, out)) *count = 0;
	return out;
}

static void give_held(struct slp_onnx_call *c, int i, struct slp_onnx_value v)
{
	if (v.t) slp_scope_add(sl_retain(v.t));
	slp_onnx_set_output_value(c, i, v);
}

static void one_branch(struct slp_onnx_call *c, bool taken)
{
	int count = 0;
	struct slp_onnx_value *out = branch(c, taken ? "then_branch" : "else_branch", &count);
	for (int i = 0; i < c->nout && !c->failed; i++) give_held(c, i, out[i]);
	drop_all(out, count);
}

static bool same_values(const struct slp_onnx_known *a, const struct slp_onnx_known *b)
{
	bool same = a && b && a->dtype == b->dtype && sl_shape_equal(a->shape, b->shape);
	return same && !memcmp(a->v, b->v, (size_t)sl_shape_size(a->shape) * sizeof *a->v);
}

/* Of the results of both branches, element by element the one that the condition selects. */
static void give_either(struct slp_onnx_call *c, int i, struct slp_onnx_value then, struct slp_onnx_value otherwise)
{
	char a[128], b[128];
	if (same_values(then.known, otherwise.known)) {
		slp_onnx_set_output_value(c, i, then);
		return;
	}
	sl_tensor *x = slp_onnx_as_tensor(c, then), *y = slp_onnx_as_tensor(c, otherwise);
	sl_shape s = x ? sl_tensor_shape(x) : SL_SCALAR, w = y ? sl_tensor_shape(y) : SL_SCALAR;
	if (!x || !y || !sl_shape_equal(s, w) || sl_tensor_dtype(x) != sl_tensor_dtype(y)) {
		slp_onnx_call_fail(c, SL_EUNSUPPORTED,
		                   "its condition (\"%.100s\") depends on values that a run computes, and its branches "
		                   "give %s and %s",
		                   c->node->input[0], x ? sl_shape_string(s, a) : "no tensor",
		                   y ? sl_shape_string(w, b) : "no tensor");
		return;
	}
	sl_tensor *when = sl_reshape_at(c->at, slp_onnx_tensor(c, 0), SL_SCALAR);
	slp_onnx_set_output(c, i, when ? sl_where_at(c->at, when, x, y) : NULL);
}

static void both_branches(struct slp_onnx_call *c)
{
	int n = 0, m = 0;
	struct slp_onnx_value *then = branch(c, "then_branch", &n);
	struct slp_onnx_value *otherwise = c->failed ? NULL : branch(c, "else_branch", &m);
	for (int i = 0; i < c->nout && !c->failed; i++) give_either(c, i, then[i], otherwise[i]);
	drop_all(then, n);
	drop_all(otherwise, m);
}

void slp_onnx_import_if(struct slp_onnx_call *c)
{
	sl_shape s = slp_onnx_shape(c, 0);
	if (!c->failed && sl_shape_size(s) != 1)
		slp_onnx_call_fail(c, SL_ESHAPE, "its condition must be one truth value");
	if (c->failed) return;
	const struct slp_onnx_known *k = slp_onnx_can_read(&c->in[0]) ? slp_onnx_known_in(c, 0) : NULL;
	if (c->failed) return;
	if (k) one_branch(c, slp_onnx_known_number(k, 0) != 0);
	else both_branches(c);
}

/* ---- Loop and Scan ----------------------------------------------------------------------------------------------- */

/* A graph that goes round: its first `carried` results after `before` others are inputs of the next round, the others
 * are collected. */
struct unrolled {
	struct slp_onnx_call *c;
	int graph, before, carried, collected;
	int nin, nout, first;            /* of the graph; the place of the carried values among its inputs */
	struct slp_onnx_value *in, *out; /* held */
	struct slp_onnx_value *rows;     /* held: the results collected from each round */
	int64_t rounds, room;
};

static void end(struct unrolled *u)
{
	drop_all(u->in, u->nin);
	drop_all(u->out, u->nout);
	drop_all(u->rows, (int)(u->rounds * u->collected));
}

/* The node's inputs from `from` on are the carried values. */
static bool begin(struct unrolled *u, const char *attribute, int from)
{
	struct slp_onnx_call *c = u->c;
	u->graph = slp_onnx_graph_named(c, attribute);
	if (u->graph < 0) return false;
	u->nin = slp_onnx_graph_inputs(c, u->graph);
	u->nout = slp_onnx_graph_outputs(c, u->graph);
	u->collected = u->nout - u->before - u->carried;
	if (u->nin < u->first + u->carried || u->collected < 0 || u->carried < 0 || c->nout > u->carried + u->collected)
		slp_onnx_call_fail(c, SL_EFORMAT, "its graph has %d inputs and %d results, which do not fit %d and %d",
		                   u->nin, u->nout, c->nin, c->nout);
	if (c->failed) return false;
	u->in = slp_calloc((size_t)u->nin + 1, sizeof *u->in);
	u->out = slp_calloc((size_t)u->nout + 1, sizeof *u->out);
	if (!u->in || !u->out) c->failed = true; /* and recorded */
	for (int i = 0; i < u->carried && !c->failed; i++) {
		if (!slp_onnx_has(c, from + i)) slp_onnx_call_fail(c, SL_EFORMAT, "has no input %d", from + i);
		else u->in[u->first + i] = c->in[from + i];
		sl_retain(u->in[u->first + i].t);
	}
	return !c->failed;
}

static bool make_room(struct unrolled *u)
{
	if (u->rounds < u->room || !u->collected) return true;
	int64_t room = u->room ? 2 * u->room : 16;
	struct slp_onnx_value *rows = slp_realloc(u->rows, (size_t)(room * u->collected) * sizeof *rows);
	if (!rows) u->c->failed = true; /* and recorded */
	else u->rows = rows, u->room = room;
	return rows != NULL;
}

static bool go_round(struct unrolled *u)
{
	for (int i = 0; i < u->before; i++) slp_onnx_drop(&u->out[i]);
	if (!make_room(u) || !slp_onnx_graph_run(u->c, u->graph, u->in, u->out)) return false;
	struct slp_onnx_value *to = u->in + u->first, *from = u->out + u->before;
	for (int i = 0; i < u->carried; i++) {
		slp_onnx_drop(&to[i]);
		to[i] = from[i];
		from[i] = (struct slp_onnx_value){0};
	}
	for (int i = 0; i < u->collected; i++) {
		u->rows[u->rounds * u->collected + i] = from[u->carried + i];
		from[u->carried + i] = (struct slp_onnx_value){0};
	}
	u->rounds++;
	return true;
}

/* The value of a result that no round has collected, as the graph declares it. */
static void give_empty(struct unrolled *u, int to, int result, int64_t axis)
{
	struct slp_onnx_call *c = u->c;
	struct slp_type t = slp_onnx_graph_type(c, u->graph, result);
	sl_shape y = {.ndim = t.shape.ndim + 1};
	bool open = t.shape.ndim < 0 || y.ndim > SL_MAX_NDIM || t.dtype == SL_DTYPE_DEFAULT;
	int at = open ? 0 : slp_onnx_axis(c, axis, y.ndim);
	for (int i = 0, k = 0; i < y.ndim && !open; i++) {
		y.dim[i] = i == at ? 0 : t.shape.dim[k++];
		open = y.dim[i] < 0;
	}
	if (open) slp_onnx_call_fail(c, SL_EUNSUPPORTED, "runs 0 times, and the shape of its results is not declared");
	if (!c->failed)
		slp_onnx_set_output_value(c, to,
		                          (struct slp_onnx_value){.known = slp_onnx_known_new(c->made, t.dtype, y)});
}

/* The collected values of result i, round by round along an axis. */
static void give_collected(struct unrolled *u, int i, int64_t axis, bool backwards)
{
	struct slp_onnx_call *c = u->c;
	int to = u->carried + i;
	if (to >= c->nout || c->failed) return;
	if (!u->rounds) {
		give_empty(u, to, u->before + to, axis);
		return;
	}
	struct slp_onnx_value *list = slp_malloc((size_t)u->rounds * sizeof *list);
	if (!list) c->failed = true; /* and recorded */
	for (int64_t k = 0; k < u->rounds && !c->failed; k++)
		list[backwards ? u->rounds - 1 - k : k] = slp_onnx_with_axis(c, u->rows[k * u->collected + i], axis);
	int at = c->failed ? 0 : slp_onnx_axis(c, axis, slp_onnx_shape_of(c, list[0]).ndim);
	struct slp_onnx_value y = {0};
	if (!c->failed) y = slp_onnx_joined(c, list, (int)u->rounds, at);
	free(list);
	if (!c->failed && y.t) sl_retain(y.t), slp_scope_add(y.t); /* a row alone is the rows' */
	if (!c->failed) slp_onnx_set_output_value(c, to, y);
}

static void give_carried(struct unrolled *u)
{
	for (int i = 0; i < u->carried && i < u->c->nout && !u->c->failed; i++) give_held(u->c, i, u->in[u->first + i]);
}

/* ---- Loop -------------------------------------------------------------------------------------------------------- */

/* Whether the loop continues: a missing condition means yes. */
static bool goes_on(struct slp_onnx_call *c, struct slp_onnx_value condition, const char *name)
{
	if (!slp_onnx_present(condition)) return true;
	const struct slp_onnx_known *k = slp_onnx_can_read(&condition) ? slp_onnx_read(c, condition) : NULL;
	if (k && sl_shape_size(k->shape) == 1) return slp_onnx_known_number(k, 0) != 0;
	if (k) slp_onnx_call_fail(c, SL_EFORMAT, "its condition (\"%.100s\") must be one truth value", name);
	else slp_onnx_cannot_read(c, "its condition", name);
	return false;
}

/* The number of the round and the condition are the graph's first inputs, the condition is its first result. */
static bool loop_round(struct unrolled *u, int64_t round, bool *on)
{
	struct slp_onnx_call *c = u->c;
	struct slp_onnx_value number = slp_onnx_list_value(c, SL_INT64, &round, 1), truth;
	if (!number.known) c->failed = true; /* and recorded */
	if (c->failed) return false;
	u->in[0] = slp_onnx_reshaped(c, number, SL_SCALAR);
	truth = slp_onnx_cast(c, number, SL_BOOL);
	if (truth.known) truth.known->v[0].i = 1, truth = slp_onnx_reshaped(c, truth, SL_SCALAR);
	u->in[1] = truth;
	if (c->failed || !go_round(u)) return false;
	*on = goes_on(c, u->out[0], "its graph's first result");
	return !c->failed;
}

void slp_onnx_import_loop(struct slp_onnx_call *c)
{
	struct unrolled u = {.c = c, .before = 1, .first = 2, .carried = c->nin > 2 ? c->nin - 2 : 0};
	int64_t most = INT64_MAX;
	bool on = goes_on(c, c->nin > 1 ? c->in[1] : (struct slp_onnx_value){0}, c->nin > 1 ? c->node->input[1] : "");
	if (slp_onnx_has(c, 0) && !c->failed && slp_onnx_ints_in(c, 0, NULL, &most, 1) != 1)
		slp_onnx_call_fail(c, SL_EFORMAT, "input 0 must be one number");
	if (c->failed) return;
	bool ok = begin(&u, "body", 2);
	for (int64_t i = 0; ok && on && i < most; i++)
		SL_SCOPE
			ok = loop_round(&u, i, &on);
	if (ok) give_carried(&u);
	for (int i = 0; ok && i < u.collected; i++) give_collected(&u, i, 0, false);
	end(&u);
}

/* ---- Scan -------------------------------------------------------------------------------------------------------- */

/* Number i of an attribute that has one for each of n; 0 if it is missing. */
static int64_t number_of(struct slp_onnx_call *c, const char *attribute, int i, int n)
{
	enum { MOST = 256 };
	int64_t list[MOST];
	int count = slp_onnx_attr_ints(c, attribute, list, MOST);
	if (count >= 0 && count != n && !c->failed)
		slp_onnx_call_fail(c, SL_EFORMAT, "attribute %s has %d numbers, %d needed", attribute, count, n);
	return count == n && !c->failed ? list[i] : 0;
}

/* How an input is split: the axis, the end to begin with, the number of parts. */
static int64_t scanned(struct slp_onnx_call *c, int i, int n, int *axis, bool *backwards)
{
	sl_shape s = slp_onnx_shape(c, c->nin - n + i);
	*axis = slp_onnx_axis(c, number_of(c, "scan_input_axes", i, n), s.ndim);
	*backwards = number_of(c, "scan_input_directions", i, n) != 0;
	return c->failed ? -1 : s.dim[*axis];
}

static bool scan_round(struct unrolled *u, int64_t round, int64_t rounds, int n)
{
	struct slp_onnx_call *c = u->c;
	for (int i = 0; i < n && !c->failed; i++) {
		int axis;
		bool backwards;
		struct slp_onnx_value v = c->in[c->nin - n + i];
		scanned(c, i, n, &axis, &backwards);
		int64_t at = backwards ? rounds - 1 - round : round;
		if (!c->failed) v = slp_onnx_sliced(c, v, axis, at, at + 1, 1);
		sl_shape s = slp_onnx_shape_of(c, v), y = {.ndim = s.ndim - 1};
		for (int k = 0; k < y.ndim; k++) y.dim[k] = s.dim[k + (k >= axis)];
		if (!c->failed) v = slp_onnx_reshaped(c, v, y);
		slp_onnx_drop(&u->in[u->carried + i]);
		u->in[u->carried + i] = v;
		sl_retain(v.t);
	}
	return !c->failed && go_round(u);
}

void slp_onnx_import_scan(struct slp_onnx_call *c)
{
	int n = slp_onnx_attr_small(c, "num_scan_inputs", 0, 1, INT16_MAX), axis;
	struct unrolled u = {.c = c, .carried = c->nin - n};
	int64_t rounds = -1;
	bool backwards;
	if (c->opset < 9) slp_onnx_call_fail(c, SL_EUNSUPPORTED, "of operator set 8 is not supported");
	if (!c->failed && u.carried < 0)
		slp_onnx_call_fail(c, SL_EFORMAT, "has %d inputs, but num_scan_inputs is %d", c->nin, n);
	for (int i = 0; i < n && !c->failed; i++) {
		int64_t length = scanned(c, i, n, &axis, &backwards);
		if (!c->failed && i && length != rounds)
			slp_onnx_call_fail(c, SL_ESHAPE, "its inputs have different lengths, %lld and %lld",
			                   (long long)rounds, (long long)length);
		rounds = length;
	}
	if (c->failed) return;
	bool ok = begin(&u, "body", 0);
	if (ok && u.nin != u.carried + n) slp_onnx_call_fail(c, SL_EFORMAT, "its graph has %d inputs", u.nin);
	ok = ok && !c->failed;
	for (int64_t i = 0; ok && i < rounds; i++)
		SL_SCOPE
			ok = scan_round(&u, i, rounds, n);
	if (ok) give_carried(&u);
	for (int i = 0; ok && i < u.collected; i++)
		give_collected(&u, i, number_of(c, "scan_output_axes", i, u.collected),
		               number_of(c, "scan_output_directions", i, u.collected) != 0);
	end(&u);
}
