/* Programs as pictures: Graphviz. */
#include "graph/graph.h"
#include "op.h"
#include "starling/graph.h"

/* A tint light enough for black text. */
static unsigned lighter(unsigned colour)
{
	return (colour >> 1 & 0x7f7f7f) + 0x808080;
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
	if (n->kind == SLP_NODE_OP) fprintf(f, "fillcolor=\"#%06x\", ", lighter(slp_op_colour(n->op)));
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
 * parameters as cylinders, constants as notes; what an operation writes in red.  SL_EIO if the file cannot be written;
 * SL_EINVAL if it or the program is NULL.
 *
 *     sl_graph_dot(file, g);      $ dot -Tsvg net.dot > net.svg */
enum sl_status sl_graph_dot_at(const char *at, FILE *file, const sl_graph *g)
{
	SLP_CALL("sl_graph_dot", at);
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
	slp_call_fail(at, "sl_graph_dot", SL_EIO, "the file cannot be written");
	return SL_EIO;
}
