/* Values that are computed again instead of being kept or copied, under a limit of memory.
 *
 * A value that the forward pass makes for the backward pass lies unused in between.  If the operations that make it are
 * faster than the link (normalisations, activations, sums), it is dropped after its last use in the forward pass, and
 * computed again just before its next use, by the same kernels from the same values: the bits are the same.  These values
 * must be there at that time anyway, be small, or be computed again, too; so nothing is kept for longer.
 *
 * A batch normalisation also writes running statistics.  The second one writes them to tensors that nobody reads. */
#include <math.h>
#include <stdlib.h>

#include "graph/offload.h"
#include "graph/pass/pass.h"
#include "graph/units.h"
#include "op_list/norm.h"
#include "runtime/observe/fxt.h"
#include "runtime/task/code.h"
#include "starling/autograd.h"
#include "starling/graph.h"
#include "starling/primitives.h"

enum { SMALL = 32 }; /* a value of fewer bytes than this part of another may be kept for it */

struct recompute {
	sl_graph *g;
	struct slp_users users;  /* of the original graph */
	int count;               /* nodes of the original graph */
	double *seconds;         /* of each node */
	double *begin;           /* of each node */
	bool *written;           /* by value: some node writes its memory */
	int *last;               /* by value: the last node that reads it or a view of it; count: it is a result */
	int *late;               /* by value: the node before which it is computed again; -1: it is kept */
	struct slp_value *again; /* by value: the second one */
	int *built, cone; /* by node: its copy in the present cone of operations, if `mark` is that cone's number */
	int *mark;
	int *uses, nuses; /* nodes that read the present value, in order */
	double link;      /* bytes a second */
	double peak;      /* the moment at which most bytes are of use: the end of the forward pass */
	struct slp_offload_again which;
	enum sl_status status;
};

/* ---- values ------------------------------------------------------------------------------------------------------ */

static size_t bytes_of(const struct recompute *r, struct slp_value v)
{
	return slp_type_bytes(slp_value_type(r->g, v));
}

static bool is_view(const struct slp_gnode *n)
{
	return n->kind == SLP_NODE_OP && n->op->view;
}

static struct slp_value root_of(const sl_graph *g, struct slp_value v)
{
	while (is_view(&g->nodes[v.node])) v = g->nodes[v.node].in[0];
	return v;
}

/* Whether the value may be read at node `place` without being kept for it. */
static bool is_there(const struct recompute *r, struct slp_value v, int place, size_t bytes)
{
	struct slp_value root = root_of(r->g, v);
	if (r->g->nodes[root.node].kind != SLP_NODE_OP || bytes_of(r, root) <= bytes / SMALL) return true;
	int late = r->late[slp_value_id(root)];
	return r->last[slp_value_id(root)] >= place && (late < 0 || late <= place);
}

/* Whether a second call gives the same results and has no effect. */
static bool may_repeat(const struct slp_gnode *n)
{
	if (n->kind != SLP_NODE_OP || n->op->hold) return false;
	return !slp_node_has_effect(n) || n->op == &slp_op_batch_norm || n->op == &slp_op_batch_norm_sum;
}

/* The seconds of all operations that make the results of a node again at `place`; infinite: that is impossible. */
static double cone_seconds(struct recompute *r, int node, int place, size_t bytes)
{
	const struct slp_gnode *n = &r->g->nodes[node];
	if (r->mark[node] == r->cone) return 0;
	r->mark[node] = r->cone;
	r->built[node] = -1;
	double sum = r->seconds[node];
	if (!may_repeat(n)) return INFINITY;
	for (int i = 0; i < n->nin && isfinite(sum); i++) {
		if (slp_node_writes(n, i)) continue;
		if (n->in[i].node >= r->count) return INFINITY; /* made again for this one */
		if (!slp_users_stays(&r->users, n->in[i], node, place - 1)) return INFINITY;
		if (!is_there(r, n->in[i], place, bytes)) sum += cone_seconds(r, n->in[i].node, place, bytes);
	}
	return sum;
}

/* ---- second calls ------------------------------------------------------------------------------------------------ */

/* Traces show the time of operations that run again by itself. */
static const char *site_of(const char *at)
{
	const char *outer = slp_fxt_enter("recompute");
	at = slp_fxt_call_site(at);
	slp_fxt_leave(outer);
	return at;
}

static int add(struct recompute *r, int node, const struct slp_value *in, int place)
{
	const struct slp_gnode n = r->g->nodes[node]; /* the list may move */
	int again = slp_graph_add_op(r->g, site_of(n.at), n.name, n.op, n.attrs.bytes, n.nin, in);
	if (again < 0) return r->status = slp_pass_no_memory("recompute"), -1;
	slp_graph_before(r->g, again, place);
	r->g->nodes[again].backward = true;
	r->status = slp_node_infer(r->g, again);
	return r->status == SL_OK ? again : -1;
}

/* A tensor for results that nobody reads. */
static struct slp_value unread(struct recompute *r, struct slp_value like)
{
	struct slp_type type = *slp_value_type(r->g, like);
	int node = -1;
	SL_PAUSE
		SL_SCOPE {
			sl_tensor *t = sl_zeros(type.shape, .dtype = type.dtype, .device = r->g->device);
			if (t)
				node = slp_graph_add_tensor(r->g, r->g->nodes[like.node].at, "unread", SLP_NODE_PARAM,
				                            t);
		}
	if (node < 0) r->status = sl_error() != SL_OK ? sl_error() : slp_pass_no_memory("recompute");
	else slp_graph_before(r->g, node, 0);
	return (struct slp_value){node, 0};
}

static int repeat(struct recompute *r, int node, int place, size_t bytes);

/* The value as an operation at `place` reads it. */
static struct slp_value value_at(struct recompute *r, struct slp_value v, int place, size_t bytes)
{
	struct slp_value root = root_of(r->g, v);
	bool kept = r->g->nodes[root.node].kind != SLP_NODE_OP || r->late[slp_value_id(root)] < 0 ||
	            bytes_of(r, root) <= bytes / SMALL;
	bool there = is_there(r, v, place, bytes);
	if (kept && there) return v;
	if (there && slp_value_equal(v, root)) return r->again[slp_value_id(root)];
	int node = repeat(r, v.node, place, bytes);
	return (struct slp_value){node, v.out};
}

/* The copy of the node, made now if necessary; -1 after an error. */
static int repeat(struct recompute *r, int node, int place, size_t bytes)
{
	if (r->mark[node] == r->cone && r->built[node] >= 0) return r->built[node];
	struct slp_value *in = slp_malloc(((size_t)r->g->nodes[node].nin + 1) * sizeof *in);
	if (!in) return r->status = slp_pass_no_memory("recompute"), -1;
	for (int i = 0; i < r->g->nodes[node].nin && r->status == SL_OK; i++) {
		const struct slp_gnode *n = &r->g->nodes[node];
		in[i] = slp_node_writes(n, i) ? unread(r, n->in[i]) : value_at(r, n->in[i], place, bytes);
	}
	int again = r->status == SL_OK ? add(r, node, in, place) : -1;
	free(in);
	r->mark[node] = r->cone;
	return r->built[node] = again;
}

/* Users from node `first` on read the second value. */
static void redirect(struct recompute *r, struct slp_value from, struct slp_value to, int first)
{
	for (int i = slp_users_first(&r->users, from); i >= 0 && r->status == SL_OK; i = r->users.list[i].next) {
		int user = r->users.list[i].node;
		if (user < 0) continue;
		if (is_view(&r->g->nodes[user])) {
			int view = add(r, user, &to, first);
			if (view >= 0) redirect(r, (struct slp_value){user, 0}, (struct slp_value){view, 0}, first);
		} else if (user >= first) {
			r->g->nodes[user].in[r->users.list[i].arg] = to;
		}
	}
}

/* ---- each value -------------------------------------------------------------------------------------------------- */

/* Lists nodes that read the value or a view of it; false: it is a result. */
static bool list_uses(struct recompute *r, struct slp_value v)
{
	for (int i = slp_users_first(&r->users, v); i >= 0; i = r->users.list[i].next) {
		int user = r->users.list[i].node;
		if (user < 0) return false;
		if (is_view(&r->g->nodes[user])) {
			if (!list_uses(r, (struct slp_value){user, 0})) return false;
		} else {
			r->uses[r->nuses++] = user;
		}
	}
	return true;
}

static int by_number(const void *a, const void *b)
{
	return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

/* The use before which the value lies unused for longest, and for how long. */
static int longest_gap(const struct recompute *r, int node, double *seconds)
{
	int before = -1;
	*seconds = 0;
	for (int i = 0; i < r->nuses; i++) {
		int from = i ? r->uses[i - 1] : node;
		double gap = r->begin[r->uses[i]] - (r->begin[from] + r->seconds[from]);
		if (gap <= *seconds) continue;
		*seconds = gap;
		before = r->uses[i];
	}
	return before;
}

/* How many times as long as its copy a value's second computation may take. */
static double ratio_of(const struct recompute *r, int node)
{
	return r->begin[node] < r->which.until * r->peak ? r->which.early : r->which.late;
}

static void look_at(struct recompute *r, struct slp_value v, size_t least)
{
	int id = slp_value_id(v);
	size_t bytes = bytes_of(r, v);
	double gap, copy = (double)bytes / r->link;
	r->nuses = 0;
	r->last[id] = r->count;
	if (!list_uses(r, v)) return;
	qsort(r->uses, (size_t)r->nuses, sizeof *r->uses, by_number);
	r->last[id] = r->nuses ? r->uses[r->nuses - 1] : v.node;
	int place = longest_gap(r, v.node, &gap);
	if (bytes < least || place < 0 || r->written[id] || gap < copy) return;
	r->cone++;
	if (cone_seconds(r, v.node, place, bytes) > ratio_of(r, v.node) * copy) return;
	int again = repeat(r, v.node, place, bytes);
	if (again < 0) return;
	r->again[id] = (struct slp_value){again, v.out};
	r->late[id] = place;
	redirect(r, v, r->again[id], place);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static void find_times(struct recompute *r)
{
	double sum = 0;
	for (int i = 0; i < r->count; i++) {
		const struct slp_gnode *n = &r->g->nodes[i];
		struct slp_infer c;
		r->begin[i] = sum;
		if (n->kind != SLP_NODE_OP || n->op->view || !slp_node_call(r->g, n, &c)) continue;
		sum += r->seconds[i] = slp_call_gpu_seconds(&c);
		slp_call_free(&c);
	}
}

/* bytes: by node, by how many they change there. */
static void find_peak(struct recompute *r, double *bytes)
{
	double sum = 0, most = 0;
	for (int i = 0; i < r->count; i++)
		for (int k = 0; k < r->g->nodes[i].nin; k++)
			r->last[slp_value_id(root_of(r->g, r->g->nodes[i].in[k]))] = i;
	for (int i = 0; i < r->count; i++)
		for (int k = 0; k < r->g->nodes[i].nout; k++) {
			struct slp_value v = {i, k};
			int last = r->last[slp_value_id(v)];
			if (r->g->nodes[i].kind != SLP_NODE_OP || is_view(&r->g->nodes[i]) || last <= i) continue;
			bytes[i] += (double)bytes_of(r, v);
			bytes[last] -= (double)bytes_of(r, v);
		}
	for (int i = 0; i < r->count; i++) {
		sum += bytes[i];
		if (sum <= most) continue;
		most = sum;
		r->peak = r->begin[i];
	}
}

static bool find_written(struct recompute *r)
{
	int *memory = slp_graph_memories(r->g);
	r->written = memory ? slp_graph_written(r->g, memory) : NULL;
	free(memory);
	return r->written != NULL;
}

static bool begin(struct recompute *r)
{
	size_t nodes = (size_t)r->count + 1, values = nodes * SLP_MAX_OUTPUTS;
	if (!slp_users_find(&r->users, r->g) || !find_written(r)) return false;
	r->seconds = slp_calloc(3 * nodes, sizeof *r->seconds);
	r->last = slp_calloc(2 * values + 2 * nodes + (size_t)r->users.count + 1, sizeof *r->last);
	r->again = slp_calloc(values, sizeof *r->again);
	if (!r->seconds || !r->last || !r->again) return false;
	r->begin = r->seconds + nodes;
	r->late = r->last + values;
	r->built = r->late + values;
	r->mark = r->built + nodes;
	r->uses = r->mark + nodes;
	for (size_t i = 0; i < values; i++) r->late[i] = -1;
	find_times(r);
	find_peak(r, r->begin + nodes);
	return true;
}

enum sl_status slp_offload_recompute(sl_graph *g, double link, struct slp_offload_again which, size_t least,
                                     int *repeated)
{
	struct recompute r = {.g = g, .count = g->count, .link = link, .which = which};
	bool ok = begin(&r);
	for (int i = 0; ok && i < r.count && r.status == SL_OK; i++)
		for (int k = 0; k < g->nodes[i].nout && r.status == SL_OK; k++)
			if (g->nodes[i].kind == SLP_NODE_OP && !is_view(&g->nodes[i]))
				look_at(&r, (struct slp_value){i, k}, least);
	*repeated = 0;
	for (int i = r.count; i < g->count; i++) *repeated += g->nodes[i].kind == SLP_NODE_OP && !g->nodes[i].op->view;
	slp_users_free(&r.users);
	free(r.seconds);
	free(r.last);
	free(r.again);
	free(r.written);
	if (!ok) return slp_pass_no_memory("recompute");
	if (r.status != SL_OK) return r.status;
	if (!slp_graph_compact(g)) return sl_error();
	return slp_pass_dead(g);
}
