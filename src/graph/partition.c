/* Partitions a graph into units, each of which becomes one task.
 *
 * A task costs microseconds, so smaller operations share one. If several workers could share the work, a unit ends once
 * it is worth a task by itself, so that heavy independent branches become tasks of their own. Units are numbered so
 * that each depends on lower ones only: a node joins the highest unit among those it depends on, or opens a new one. On
 * one device a program is one unit, unless other tasks wait for groups of outputs: then a unit ends where a group is
 * complete. If a unit does not fit in the device's memory, it also ends before it would use too many bytes. */
#include <stdlib.h>
#include <string.h>

#include "graph/plan.h"
#include "graph/units.h"
#include "runtime/task/code.h"

/* The price of some tens of tasks; rough rates of one core: only orders of magnitude matter. */
static const double worth_a_task = 200e-6, flops_per_second = 100e9, bytes_per_second = 10e9;

static double seconds_of(const sl_graph *g, const struct slp_gnode *n)
{
	struct slp_infer c;
	if (!slp_node_call(g, n, &c)) return 0;
	double flops = n->op->flops ? n->op->flops(&c) : 0;
	double bytes = slp_call_bytes(&c);
	slp_call_free(&c);
	double a = flops / flops_per_second, b = bytes / bytes_per_second;
	return a > b ? a : b;
}

/* The number of workers that could compute at once, on average: all work over the longest chain's. */
double slp_graph_width(const sl_graph *g)
{
	double all = 0, longest = 0, *path = slp_calloc((size_t)g->count + 1, sizeof *path);
	for (int i = 0; path && i < g->count; i++) {
		const struct slp_gnode *n = &g->nodes[i];
		if (n->kind != SLP_NODE_OP) continue;
		double seconds = n->op->view ? 0 : seconds_of(g, n), before = 0;
		for (int k = 0; k < n->nin; k++)
			if (path[n->in[k].node] > before) before = path[n->in[k].node];
		path[i] = before + seconds;
		all += seconds;
		if (path[i] > longest) longest = path[i];
	}
	free(path);
	return longest > 0 ? all / longest : 1;
}

/* The state of the partition: for each memory (slp_graph_memories), the last unit that wrote it and the highest that
 * read it. */
struct partition {
	const sl_graph *g;
	struct slp_layout *layout;
	int *memory, *writer, *reader;
	bool *written;   /* of each memory: some node writes it */
	double *seconds; /* of each unit, as in the layout */
	size_t most;     /* bytes for each unit to use; 0: any number */
	size_t *bytes;   /* bytes that it uses, by unit */
	int *user;       /* of each memory: the last unit that uses it */
	bool *ends;      /* by node: it completes a group of outputs */
	bool full;       /* the last unit ended with a group */
};

/* Another shape of the same elements needs no copy, unless they may change before they are read. */
static bool is_view(const struct partition *c, const struct slp_gnode *n)
{
	const sl_graph *g = c->g;
	if (!n->op->view) return false;
	struct slp_value root = n->in[0];
	while (g->nodes[root.node].kind == SLP_NODE_OP && g->nodes[root.node].op->view)
		root = g->nodes[root.node].in[0];
	return !c->written[c->memory[slp_value_id(root)]];
}

static int higher(int a, int b)
{
	return a > b ? a : b;
}

/* The highest unit that must come before the node, or contain it; -1: none. */
static int latest(const struct partition *c, const struct slp_gnode *n)
{
	int unit = -1;
	for (int i = 0; i < n->nin; i++) {
		int m = c->memory[slp_value_id(n->in[i])];
		unit = higher(unit, c->writer[m]);
		if (slp_node_writes(n, i)) unit = higher(unit, c->reader[m]);
	}
	return unit;
}

static void note(const struct partition *c, int node, int unit)
{
	const struct slp_gnode *n = &c->g->nodes[node];
	for (int i = 0; i < n->nin; i++) {
		int m = c->memory[slp_value_id(n->in[i])];
		if (slp_node_writes(n, i)) c->writer[m] = unit;
		else c->reader[m] = higher(c->reader[m], unit);
	}
	for (int i = 0; i < n->nout; i++) c->writer[c->memory[slp_value_id((struct slp_value){node, i})]] = unit;
}

/* A view has the memory of its argument. */
static int memory_of(const struct partition *c, struct slp_value v)
{
	while (c->g->nodes[v.node].kind == SLP_NODE_OP && is_view(c, &c->g->nodes[v.node]))
		v = c->g->nodes[v.node].in[0];
	return c->memory[slp_value_id(v)];
}

static struct slp_value operand(const struct slp_gnode *n, int node, int i)
{
	return i < n->nin ? n->in[i] : (struct slp_value){node, i - n->nin};
}

/* Bytes that the unit would use in addition with the node in it; scratch memory of the node counts. */
static size_t more_bytes(const struct partition *c, int node, int unit)
{
	const struct slp_gnode *n = &c->g->nodes[node];
	size_t bytes = 0;
	for (int i = 0; i < n->nin + n->nout; i++) {
		struct slp_value v = operand(n, node, i);
		if (unit < 0 || c->user[memory_of(c, v)] != unit) bytes += slp_type_bytes(slp_value_type(c->g, v));
	}
	return bytes;
}

static void use(struct partition *c, int node, int unit)
{
	const struct slp_gnode *n = &c->g->nodes[node];
	c->bytes[unit] += more_bytes(c, node, unit);
	for (int i = 0; i < n->nin + n->nout; i++) c->user[memory_of(c, operand(n, node, i))] = unit;
}

static bool has_room(const struct partition *c, int node, int unit)
{
	return !c->most || c->bytes[unit] + more_bytes(c, node, unit) <= c->most;
}

/* The unit for a node of that price: with several workers, a unit that is worth a task takes only nodes that are small
 * beside it. */
static int choose(const struct partition *c, int node, int unit, double seconds, int workers)
{
	int last = c->layout->nunits - 1;
	if (workers == SLP_PARTITION_EACH) return c->layout->nunits++;
	if (workers == 1) unit = c->full ? -1 : last;
	else if (unit < 0) unit = last;
	bool joins = unit >= 0 && (workers == 1 || c->seconds[unit] < worth_a_task || seconds < c->seconds[unit] / 8);
	return joins && has_room(c, node, unit) ? unit : c->layout->nunits++;
}

/* The node that computes a value's memory: not a view. */
static int computed_by(const struct partition *c, struct slp_value v)
{
	while (is_view(c, &c->g->nodes[v.node])) v = c->g->nodes[v.node].in[0];
	return v.node;
}

/* Marks the last node of each group. */
static void find_ends(struct partition *c)
{
	const int *group = c->layout->group;
	for (int i = 0; group && i < c->g->noutputs; i++) {
		int last = group[i] < 0 ? -1 : computed_by(c, c->g->outputs[i]);
		for (int k = 0; last >= 0 && k < c->g->noutputs; k++)
			if (group[k] == group[i]) last = higher(last, computed_by(c, c->g->outputs[k]));
		if (last >= 0) c->ends[last] = true;
	}
}

static void partition_all(struct partition *c, int workers)
{
	find_ends(c);
	for (int i = 0; i < c->g->count; i++) {
		const struct slp_gnode *n = &c->g->nodes[i];
		c->layout->unit[i] = -1;
		if (n->kind != SLP_NODE_OP) continue;
		int unit = latest(c, n);
		if (!is_view(c, n)) {
			double seconds = seconds_of(c->g, n);
			unit = c->layout->unit[i] = choose(c, i, unit, seconds, workers);
			if (c->most) use(c, i, unit);
			c->full = c->ends[i];
			c->seconds[unit] += seconds;
		}
		note(c, i, unit);
	}
}

bool slp_partition(const sl_graph *g, int workers, size_t most, struct slp_layout *layout)
{
	size_t values = (size_t)g->count * SLP_MAX_OUTPUTS + 1;
	struct partition c = {.g = g, .layout = layout, .most = most, .memory = slp_graph_memories(g)};
	c.written = c.memory ? slp_graph_written(g, c.memory) : NULL;
	c.writer = slp_malloc(values * sizeof *c.writer);
	c.reader = slp_malloc(values * sizeof *c.reader);
	c.seconds = layout->seconds = slp_calloc((size_t)g->count + 1, sizeof *c.seconds);
	c.bytes = slp_calloc((size_t)g->count + 1, sizeof *c.bytes);
	c.user = slp_malloc(values * sizeof *c.user);
	c.ends = slp_calloc((size_t)g->count + 1, sizeof *c.ends);
	layout->unit = slp_malloc(((size_t)g->count + 1) * sizeof *layout->unit);
	layout->nunits = 0;
	bool ok = c.written && c.writer && c.reader && c.seconds && c.bytes && c.user && c.ends && layout->unit;
	if (ok) {
		memset(c.writer, 0xff, values * sizeof *c.writer);
		memset(c.reader, 0xff, values * sizeof *c.reader);
		memset(c.user, 0xff, values * sizeof *c.user);
		partition_all(&c, workers);
	}
	free(c.memory);
	free(c.written);
	free(c.writer);
	free(c.reader);
	free(c.bytes);
	free(c.user);
	free(c.ends);
	return ok;
}
