/* Programs as text, to be read by people and by sl_graph_parse. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/text/text.h"
#include "number.h"
#include "op.h"
#include "op_inner.h"
#include "runtime/fault.h"
#include "starling/graph.h"

const char *const slp_activation_names[] = {"identity", "relu", "sigmoid", "tanh", "gelu", "softplus", NULL};
static const char *const layout_names[] = {
#define X(name, text) text,
        SLP_LAYOUT_LIST(X)
#undef X
                NULL};
const char *const slp_text_words[] = {"input", "param", "const", "return", "as", "true", "false", "nan", "inf", NULL};

bool slp_text_is_plain(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
	if (!n || name[n] || strchr("0123456789.", name[0])) return false;
	for (const char *const *w = slp_text_words; *w; w++)
		if (!strcmp(*w, name)) return false;
	return true;
}

/* The parser's name for numbers; programs cannot use it, because it is no plain name. */
bool slp_text_is_literal(const struct slp_gnode *n)
{
	return n->kind == SLP_NODE_CONST && n->name[0] == '#' && n->types[0].dtype == SL_FLOAT32 &&
	       n->types[0].shape.ndim == 0;
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

static void print_name(FILE *f, const char *name)
{
	if (slp_text_is_plain(name)) {
		fputs(name, f);
		return;
	}
	fputc('"', f);
	for (const char *p = name; *p; p++)
		if (*p == '"' || *p == '\\') fprintf(f, "\\%c", *p);
		else if (*p == '\n') fputs("\\n", f);
		else fputc(*p, f);
	fputc('"', f);
}

static void print_number(FILE *f, double x, bool single)
{
	char text[32];
	fputs(slp_number_text(x, single, text), f);
}

static void print_type(FILE *f, const struct slp_type *type)
{
	char shape[128];
	fputs(sl_dtype_name(type->dtype), f);
	if (type->shape.ndim >= 0) fprintf(f, " %s", sl_shape_string(type->shape, shape));
}

/* ---- constants --------------------------------------------------------------------------------------------------- */

static bool all_equal(const struct slp_view *v)
{
	double first = slp_get(v, 0);
	for (int64_t i = 1; i < slp_size(v); i++)
		if (slp_get(v, i) != first || signbit(slp_get(v, i)) != signbit(first)) return false;
	return true;
}

static void print_elements(FILE *f, const struct slp_view *v)
{
	bool single = v->type.dtype == SL_FLOAT32;
	int64_t n = slp_size(v);
	if (n > 0 && all_equal(v)) {
		print_number(f, slp_get(v, 0), single);
	} else if (n > SLP_TEXT_SHOWN) {
		fputs("...", f);
	} else {
		fputc('[', f);
		for (int64_t i = 0; i < n; i++) {
			if (i) fputs(", ", f);
			print_number(f, slp_get(v, i), single);
		}
		fputc(']', f);
	}
}

enum { READ = 1 << 20 }; /* bytes of a constant that are worth reading to see that all are equal */

static enum sl_status print_value(const char *at, FILE *f, const struct slp_gnode *n)
{
	size_t bytes = n->tensor ? sl_tensor_bytes(n->tensor) : READ + 1;
	if (bytes > READ) return fputs("...", f) < 0 ? SL_EIO : SL_OK;
	/* Not a sync point: a pending error stays pending. */
	char *p = slp_host_begin(at, "sl_graph_print", n->tensor, false);
	if (!p) return slp_error_take();
	print_elements(f, &(struct slp_view){p, n->types[0]});
	slp_host_end(n->tensor);
	return SL_OK;
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

const char *const *slp_text_names(const struct slp_attr *a)
{
	const char *end = strstr(a->name, "layout");
	if (!strcmp(a->name, "activation")) return slp_activation_names;
	return end && !strcmp(end, "layout") ? layout_names : NULL;
}

/* The name of a value; NULL: it is printed as a number. */
static const char *name_of(const struct slp_attr *a, double value)
{
	const char *const *names = slp_text_names(a);
	if (!strcmp(a->name, "dtype"))
		return value > SL_DTYPE_DEFAULT && value < SL_DTYPE_COUNT ? sl_dtype_name((enum sl_dtype)value) : NULL;
	for (int i = 0; names && names[i]; i++)
		if (i == value) return names[i];
	return NULL;
}

static void print_element(FILE *f, const struct slp_attr *a, const char *attrs, unsigned i)
{
	if (a->kind == SLP_BOOL) fputs(((const bool *)(attrs + a->offset))[i] ? "true" : "false", f);
	else if (a->kind == SLP_INT64) fprintf(f, "%lld", (long long)((const int64_t *)(attrs + a->offset))[i]);
	else print_number(f, slp_attr_value(a, attrs, i) + (a->defaulted ? 0.0 : -0.0), false); /* -0.0 as 0 */
}

static void print_list(FILE *f, const char *name, const struct slp_attr *a, const char *attrs, unsigned count)
{
	fprintf(f, "%s=(", name);
	for (unsigned i = 0; i < count; i++) {
		if (i) fputs(", ", f);
		print_element(f, a, attrs, i);
	}
	fputs(count == 1 ? ",)" : ")", f);
}

/* The number of elements up to the last that is not 0: the others have their defaults. */
static unsigned used(const struct slp_attr *a, const char *attrs)
{
	unsigned n = a->count;
	while (n && slp_attr_value(a, attrs, n - 1) == 0 && !signbit(slp_attr_value(a, attrs, n - 1))) n--;
	return n;
}

static void print_one(FILE *f, const struct slp_attr *a, const char *attrs)
{
	const char *name = name_of(a, slp_attr_value(a, attrs, 0));
	fprintf(f, "%s=", a->name);
	if (name) fputs(name, f);
	else print_element(f, a, attrs, 0);
}

/* The row of a list whose length is row a; *name: the name of both together. NULL: a is no length. */
static const struct slp_attr *list_of(const struct sl_op *op, const struct slp_attr *a, const char **name)
{
#define X(text, length, list)                                                                                          \
	if (!strcmp(a->name, length)) return *name = text, slp_attr_find(op, list);
	SLP_TEXT_LISTS(X)
#undef X
	return NULL;
}

static bool is_in_list(const struct sl_op *op, const struct slp_attr *a)
{
#define X(text, length, list)                                                                                          \
	if (!strcmp(a->name, list)) return slp_attr_find(op, length);
	SLP_TEXT_LISTS(X)
#undef X
	return false;
}

/* A virtual random stream has a number; its seed says only that it is virtual. */
static bool is_implied(const struct sl_op *op, const struct slp_attr *a, const char *attrs)
{
	uint64_t seed;
	if (is_in_list(op, a)) return true;
	if (strcmp(a->name, "seed")) return false;
	memcpy(&seed, attrs + a->offset, sizeof seed);
	return seed == SLP_RNG_VIRTUAL;
}

static void print_attr(FILE *f, const struct slp_gnode *n, const struct slp_attr *a, const char **comma)
{
	const char *attrs = n->attrs.bytes, *name = NULL;
	const struct slp_attr *list = list_of(n->op, a, &name);
	unsigned count = list ? (unsigned)slp_attr_value(a, attrs, 0) : used(a, attrs);
	bool always = !strcmp(a->name, "value") || !strcmp(a->name, "stream");
	if (is_implied(n->op, a, attrs) || (!count && !always)) return;
	fputs(*comma, f);
	*comma = ", ";
	if (list) print_list(f, name, list, attrs, count < list->count ? count : list->count);
	else if (a->count > 1) print_list(f, a->name, a, attrs, count);
	else print_one(f, a, attrs);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static enum sl_status print_use(const char *at, FILE *f, const sl_graph *g, struct slp_value v)
{
	const struct slp_gnode *n = &g->nodes[v.node];
	if (slp_text_is_literal(n)) return print_value(at, f, n);
	print_name(f, n->name);
	if (v.out) fprintf(f, "[%d]", v.out);
	return SL_OK;
}

static enum sl_status print_op(const char *at, FILE *f, const sl_graph *g, const struct slp_gnode *n)
{
	enum sl_status s = SL_OK;
	const char *comma = "";
	if (n->nout) {
		print_name(f, n->name);
		fputs(" = ", f);
	}
	fprintf(f, "%s(", n->op->name);
	for (int i = 0; s == SL_OK && i < n->nin; i++, comma = ", ") {
		fputs(comma, f);
		s = print_use(at, f, g, n->in[i]);
	}
	for (const struct slp_attr *a = n->op->attr_table; a && a->name; a++) print_attr(f, n, a, &comma);
	fputc(')', f);
	for (int i = 0; i < n->nout && n->types[0].shape.ndim >= 0; i++) {
		fputs(i ? ", " : ": ", f);
		print_type(f, &n->types[i]);
	}
	return s;
}

static enum sl_status print_given(const char *at, FILE *f, const char *word, const struct slp_gnode *n)
{
	enum sl_status s = SL_OK;
	fprintf(f, "%s ", word);
	print_name(f, n->name);
	fputs(": ", f);
	print_type(f, &n->types[0]);
	if (n->kind == SLP_NODE_CONST) {
		fputs(" = ", f);
		s = print_value(at, f, n);
	}
	return s;
}

static enum sl_status print_node(const char *at, FILE *f, const sl_graph *g, const struct slp_gnode *n)
{
	enum sl_status s = n->kind == SLP_NODE_OP
	                           ? print_op(at, f, g, n)
	                           : print_given(at, f, n->kind == SLP_NODE_PARAM ? "param" : "const", n);
	fputc('\n', f);
	return s;
}

static enum sl_status print_outputs(const char *at, FILE *f, const sl_graph *g)
{
	enum sl_status s = SL_OK;
	for (int i = 0; s == SL_OK && i < g->noutputs; i++) {
		fputs(i ? ", " : "return ", f);
		s = print_use(at, f, g, g->outputs[i]);
		if (!g->output_names[i]) continue;
		fputs(" as ", f);
		print_name(f, g->output_names[i]);
	}
	if (g->noutputs) fputc('\n', f);
	return s;
}

/* Writes a program as text: inputs (in the order in which runs take them), parameters, constants, one line for each
 * operation with its arguments, attributes that are not 0 and result types, and the results.  sl_graph_parse reads it
 * back.  A constant of more than 64 elements that are not all the same is shown as "...".  Waits for constants. SL_EIO
 * if the file cannot be written; SL_EINVAL if it or the program is NULL; the error that spoilt a constant.
 *
 *     sl_graph_print(stdout, g);      input x: float32 (2,)
 *                                     y = relu(x): float32 (2,)
 *                                     return y */
enum sl_status sl_graph_print_at(const char *at, FILE *file, const sl_graph *g)
{
	SLP_CALL("sl_graph_print", at);
	enum sl_status s = SL_OK;
	if (!g || !file) {
		if (!file || sl_error() == SL_OK)
			slp_call_fail(at, "sl_graph_print", SL_EINVAL, "the %s is NULL", g ? "file" : "graph");
		return SL_EINVAL;
	}
	for (int i = 0; s == SL_OK && i < g->ninputs; i++, fputc('\n', file))
		s = print_given(at, file, "input", &g->nodes[g->inputs[i]]);
	for (int i = 0; s == SL_OK && i < g->count; i++) {
		const struct slp_gnode *n = &g->nodes[i];
		if (!n->dead && n->kind != SLP_NODE_INPUT && !slp_text_is_literal(n)) s = print_node(at, file, g, n);
	}
	if (s == SL_OK) s = print_outputs(at, file, g);
	if (s == SL_OK && ferror(file)) slp_call_fail(at, "sl_graph_print", s = SL_EIO, "the file cannot be written");
	return s;
}
