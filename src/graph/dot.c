/* Programs as pictures: Graphviz. */
#include <string.h>

#include "graph/graph.h"

/* ---- families of operations, by colour --------------------------------------------------------------------------- */

/* The first whose text begins the operation's name. */
static const struct family {
	const char *prefix, *colour;
} families[] = {
	{"linear", "#9ecae1"}, {"dot", "#9ecae1"}, {"matmul", "#9ecae1"},
	{"conv2d", "#6baed6"},
	{"max_pool", "#c7e9c0"}, {"avg_pool", "#c7e9c0"},
	{"batch_norm", "#fdd0a2"}, {"layer_norm", "#fdd0a2"}, {"softmax", "#fdd0a2"}, {"log_softmax", "#fdd0a2"},
	{"l2_loss", "#fcbba1"},
	{"fused", "#bcbddc"},
	{"reshape", "#d9d9d9"}, {"relayout", "#d9d9d9"}, {"transpose", "#d9d9d9"}, {"slice", "#d9d9d9"},
	{"concat", "#d9d9d9"}, {"gather", "#d9d9d9"}, {"copy", "#d9d9d9"}, {"cast", "#d9d9d9"},
	{"broadcast", "#d9d9d9"},
};

static const char *colour(const struct slp_gnode *n)
{
	if (slp_node_has_effect(n)) return "#fc9272";                /* updates */
	if (slp_attr_find(n->op, "seed")) return "#fa9fb5";          /* random numbers */
	for (size_t i = 0; i < sizeof families / sizeof *families; i++)
		if (!strncmp(n->op->name, families[i].prefix, strlen(families[i].prefix))) return families[i].colour;
	if (slp_attr_find(n->op, "keepdims")) return "#a1d99b";      /* reductions */
	return n->op->inplace ? "#dadaeb" : "#f0f0f0";               /* elementwise; others */
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void quote(FILE *f, const char *text)
{
	for (const char *p = text; *p; p++)
		if (*p == '"' || *p == '\\') fprintf(f, "\\%c", *p);
		else if (*p == '\n') fputs("\\n", f);
		else fputc(*p, f);
}

static void label(FILE *f, const struct slp_gnode *n)
{
	char text[160];
	fputs("label=\"", f);
	if (n->kind == SLP_NODE_OP) fprintf(f, "%s\\n", n->op->name);
	quote(f, n->name);
	for (int i = 0; i < n->nout; i++)
		if (n->types[i].shape.ndim >= 0) fprintf(f, "\\n%s", slp_type_string(&n->types[i], text));
	fputc('"', f);
}

static void node(FILE *f, const struct slp_gnode *n, int i)
{
	static const char *const shapes[] = {
		[SLP_NODE_INPUT] = "shape=oval",
		[SLP_NODE_PARAM] = "shape=cylinder",
		[SLP_NODE_CONST] = "shape=note",
		[SLP_NODE_OP] = "shape=box, style=\"filled,rounded\"",
	};
	fprintf(f, "\tn%d [%s, ", i, shapes[n->kind]);
	if (n->kind == SLP_NODE_OP) fprintf(f, "fillcolor=\"%s\", ", colour(n));
	label(f, n);
	fputs("]\n", f);
}

static void edges(FILE *f, const sl_graph *g, int i)
{
	const struct slp_gnode *n = &g->nodes[i];
	for (int j = 0; j < n->nin; j++) {
		fprintf(f, "\tn%d -> n%d", n->in[j].node, i);
		if (slp_node_writes(n, j)) fputs(" [dir=both, color=\"#cb181d\"]", f);
		else if (g->nodes[n->in[j].node].nout > 1) fprintf(f, " [taillabel=\"%d\"]", n->in[j].out);
		fputc('\n', f);
	}
}

/* Writes a program for Graphviz: a box for each operation, coloured by family, with its shapes; inputs round,
 * parameters as cylinders, constants as notes; what an operation writes in red.  SL_EIO if the file takes no more;
 * SL_EINVAL if it or the program is NULL.
 *
 *     sl_graph_dot(file, g);      $ dot -Tsvg net.dot > net.svg */
enum sl_status sl_graph_dot_at(const char *at, FILE *file, const sl_graph *g)
{
	if (!g || !file) {
		if (!file || sl_error() == SL_OK)
			slp_call_fail(at, "sl_graph_dot", SL_EINVAL, "the %s is NULL", g ? "file" : "graph");
		return SL_EINVAL;
	}
	fputs("digraph program {\n\tnode [fontname=\"Helvetica\", fontsize=10]\n", file);
	for (int i = 0; i < g->count; i++)
		if (!g->nodes[i].dead) node(file, &g->nodes[i], i);
	for (int i = 0; i < g->count; i++) edges(file, g, i);
	for (int i = 0; i < g->noutputs; i++) {
		fprintf(file, "\tout%d [shape=plaintext, label=\"", i);
		quote(file, g->output_names[i] ? g->output_names[i] : "return");
		fprintf(file, "\"]\n\tn%d -> out%d\n", g->outputs[i].node, i);
	}
	fputs("}\n", file);
	if (!ferror(file)) return SL_OK;
	slp_call_fail(at, "sl_graph_dot", SL_EIO, "the file takes no more");
	return SL_EIO;
}
