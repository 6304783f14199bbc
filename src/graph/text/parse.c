/* Programs from text: statements and calls.  The language is described in text.h. */
#include <stdlib.h>
#include <string.h>

#include "graph/text/parse.h"
#include "op.h"
#include "starling/autograd.h"
#include "starling/graph.h"

enum { DEEPEST = 100 }; /* depth of nested calls */
int64_t slp_text_most_bytes = 1 << 30;

/* ---- names ------------------------------------------------------------------------------------------------------- */

static bool no_memory(struct slp_parser *p)
{
	return slp_lex_fail(&p->lex, SL_ENOMEM, "no memory for the program");
}

/* Where a node came from: the call of sl_graph_parse, and the line. */
static const char *call_site(const struct slp_parser *p, char text[256])
{
	snprintf(text, 256, "%.200s, line %d", p->lex.at, p->lex.line);
	return text;
}

static bool define(struct slp_parser *p, const char *name, struct slp_value v)
{
	if (!slp_grow((void **)&p->values, &p->max_values, p->nvalues + 1, sizeof v)) return no_memory(p);
	const char *own = slp_graph_string(p->g, name);
	if (!own || !slp_names_add(&p->names, own, p->nvalues)) return no_memory(p);
	p->values[p->nvalues++] = v;
	return true;
}

/* Reads a name that is not taken. */
static bool new_name(struct slp_parser *p, char name[128])
{
	if (p->lex.kind != SLP_TOKEN_NAME || (!p->lex.quoted && !slp_text_is_plain(p->lex.text)))
		return slp_lex_fail(&p->lex, SL_EFORMAT, "a name expected");
	memcpy(name, p->lex.text, 128);
	if (slp_names_find(&p->names, name))
		return slp_lex_fail(&p->lex, SL_EINVAL, "%s has been defined already", name);
	return slp_lex_next(&p->lex);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* A constant of one number. */
static bool literal(struct slp_parser *p, const char *name, struct slp_value *v)
{
	char at[256], own[32];
	float x = (float)p->lex.number;
	snprintf(own, sizeof own, "#%d", p->literals++);
	sl_tensor *t = sl_from_at(p->lex.at, &x, SL_SCALAR, (struct sl_make){.device = sl_auto()});
	*v = (struct slp_value){-1, 0};
	if (t) v->node = slp_graph_add_tensor(p->g, call_site(p, at), name ? name : own, SLP_NODE_CONST, t);
	if (v->node < 0) return t ? no_memory(p) : false;
	return slp_lex_next(&p->lex);
}

/* Reads "[index]" after a name. */
static bool parse_index(struct slp_parser *p, struct slp_value *v)
{
	bool ok = true;
	if (!slp_lex_accept(&p->lex, "[", &ok)) return ok;
	if (!ok || p->lex.kind != SLP_TOKEN_NUMBER || !p->lex.is_integer || p->lex.integer < 0 ||
	    p->lex.integer >= p->g->nodes[v->node].nout)
		return slp_lex_fail(&p->lex, SL_EINVAL, "there are results 0 to %d", p->g->nodes[v->node].nout - 1);
	v->out = (int)p->lex.integer;
	return slp_lex_next(&p->lex) && slp_lex_expect(&p->lex, "]");
}

static bool call(struct slp_parser *p, const char *op_name, const char *name, struct slp_value *v);

/* Reads a call op( … ), or a name: the token is behind it. */
static bool named_value(struct slp_parser *p, const char *name, bool quoted, struct slp_value *v)
{
	if (!quoted && slp_lex_is(&p->lex, "(")) {
		if (!call(p, name, NULL, v)) return false;
		if (p->g->nodes[v->node].nout) return parse_index(p, v);
		return slp_lex_fail(&p->lex, SL_EINVAL, "%s has no result", name);
	}
	struct slp_name *known = slp_names_find(&p->names, name);
	if (!known) return slp_lex_fail(&p->lex, SL_EINVAL, "%s is not defined", name);
	*v = p->values[known->number];
	return parse_index(p, v);
}

static bool parse_value(struct slp_parser *p, struct slp_value *v)
{
	char name[128];
	bool quoted = p->lex.quoted;
	if (p->lex.kind == SLP_TOKEN_NUMBER) return literal(p, NULL, v);
	if (p->lex.kind != SLP_TOKEN_NAME)
		return slp_lex_fail(&p->lex, SL_EFORMAT, "expected a name, a number or a call");
	struct slp_lexer before = p->lex;
	memcpy(name, p->lex.text, sizeof name);
	if (!slp_lex_next(&p->lex)) return false;
	if (!slp_lex_is(&p->lex, "(") && !slp_names_find(&p->names, name))
		return slp_lex_fail(&before, SL_EINVAL, "%s is not defined", name);
	return named_value(p, name, quoted, v);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

struct arguments {
	struct slp_value *list;
	int count, capacity;
	unsigned given; /* SLP_GIVEN_… */
	union {
		char bytes[SLP_MAX_ATTRS];
		max_align_t align;
	} attrs;
};

static bool argument(struct slp_parser *p, struct arguments *a)
{
	if (!slp_grow((void **)&a->list, &a->capacity, a->count + 1, sizeof *a->list)) return no_memory(p);
	return parse_value(p, &a->list[a->count]) && ++a->count;
}

/* Whether the next tokens are name=value, not an argument. */
static bool is_attr(const struct slp_lexer *lex)
{
	return lex->kind == SLP_TOKEN_NAME && !lex->quoted && lex->p[strspn(lex->p, " \t")] == '=';
}

static bool arguments(struct slp_parser *p, const struct sl_op *op, struct arguments *a)
{
	bool ok = slp_lex_expect(&p->lex, "(");
	while (ok && !slp_lex_is(&p->lex, ")")) {
		if (is_attr(&p->lex)) {
			if (slp_lex_is(&p->lex, "seed")) a->given |= SLP_GIVEN_SEED;
			if (slp_lex_is(&p->lex, "stream")) a->given |= SLP_GIVEN_STREAM;
			ok = slp_parse_attr(p, op, a->attrs.bytes);
		} else {
			ok = argument(p, a);
		}
		if (ok && !slp_lex_accept(&p->lex, ",", &ok)) break;
	}
	return ok && slp_lex_expect(&p->lex, ")");
}

/* Reads a call: the token is behind the operation's name. */
static bool call(struct slp_parser *p, const char *op_name, const char *name, struct slp_value *v)
{
	const struct sl_op *op = slp_op_find(op_name);
	struct arguments a = {0};
	struct slp_lexer start = p->lex;
	char at[256];
	if (!op) return slp_lex_fail(&p->lex, SL_EINVAL, "there is no operation %s", op_name);
	if (p->depth == DEEPEST) return slp_lex_fail(&p->lex, SL_EFORMAT, "calls are nested too deeply");
	p->depth++;
	bool ok = arguments(p, op, &a);
	p->depth--;
	char count[64];
	if (ok && !slp_count_fits(op, a.count))
		ok = slp_lex_fail(&start, SL_EINVAL, "%s takes %s (%s), not %d", op->name, slp_count_text(op, count),
		                  op->args, a.count);
	if (ok) {
		slp_parse_random(p, op, a.attrs.bytes, a.given);
		*v = (struct slp_value){
		        slp_graph_add_op(p->g, call_site(p, at), name, op, a.attrs.bytes, a.count, a.list), 0};
		if (v->node < 0) ok = no_memory(p);
	}
	free(a.list);
	return ok;
}

/* ---- statements -------------------------------------------------------------------------------------------------- */

static bool input_statement(struct slp_parser *p, const char *name)
{
	struct slp_type type = {SL_FLOAT32, {.ndim = -1}};
	bool ok = true;
	char at[256];
	if (slp_lex_accept(&p->lex, ":", &ok) && ok) ok = slp_parse_type(p, &type);
	if (!ok) return false;
	int node = slp_graph_add_input(p->g, call_site(p, at), name, type);
	return node < 0 ? no_memory(p) : define(p, name, (struct slp_value){node, 0});
}

static bool add_tensor(struct slp_parser *p, const char *name, enum slp_node_kind kind, sl_tensor *t)
{
	char at[256];
	if (!t) return false;
	int node = slp_graph_add_tensor(p->g, call_site(p, at), name, kind, t);
	return node < 0 ? no_memory(p) : define(p, name, (struct slp_value){node, 0});
}

static bool tensor_type(struct slp_parser *p, struct slp_type *type)
{
	if (!slp_lex_expect(&p->lex, ":") || !slp_parse_type(p, type)) return false;
	if (type->shape.ndim < 0) return slp_lex_fail(&p->lex, SL_EFORMAT, "its shape is needed");
	if (sl_shape_size(type->shape) <= slp_text_most_bytes / (int64_t)sl_dtype_size(type->dtype)) return true;
	return slp_lex_fail(&p->lex, SL_EINVAL, "it is larger than a text may request");
}

static bool param_statement(struct slp_parser *p, const char *name)
{
	struct slp_type type;
	if (!tensor_type(p, &type)) return false;
	return add_tensor(p, name, SLP_NODE_PARAM,
	                  sl_zeros_at(p->lex.at, type.shape, (struct sl_make){.dtype = type.dtype}));
}

static bool element(struct slp_parser *p, const struct slp_view *v, int64_t i)
{
	if (p->lex.kind != SLP_TOKEN_NUMBER) return slp_lex_fail(&p->lex, SL_EFORMAT, "a number expected");
	if (i == slp_size(v)) return slp_lex_fail(&p->lex, SL_ESHAPE, "more numbers than its shape takes");
	slp_set(v, i, p->lex.number);
	return slp_lex_next(&p->lex);
}

/* Reads at most the number of elements that printing shows, so the array is small. */
static bool elements(struct slp_parser *p, const char *name, const struct slp_type *type)
{
	double buffer[SLP_TEXT_SHOWN];
	struct slp_view v = {buffer, *type};
	int64_t i = 0;
	if (slp_size(&v) > SLP_TEXT_SHOWN)
		return slp_lex_fail(&p->lex, SL_EINVAL, "at most %d elements can be given", SLP_TEXT_SHOWN);
	bool ok = slp_lex_expect(&p->lex, "[");
	while (ok && !slp_lex_is(&p->lex, "]")) {
		ok = element(p, &v, i++);
		if (ok && !slp_lex_accept(&p->lex, ",", &ok)) break;
	}
	if (ok && i < slp_size(&v)) return slp_lex_fail(&p->lex, SL_ESHAPE, "fewer numbers than its shape takes");
	if (!ok || !slp_lex_expect(&p->lex, "]")) return false;
	sl_tensor *t = sl_from_at(p->lex.at, buffer, type->shape, (struct sl_make){type->dtype, sl_auto()});
	return add_tensor(p, name, SLP_NODE_CONST, t);
}

static bool const_statement(struct slp_parser *p, const char *name)
{
	struct slp_type type;
	if (!tensor_type(p, &type) || !slp_lex_expect(&p->lex, "=")) return false;
	if (slp_lex_is(&p->lex, "...")) return slp_lex_fail(&p->lex, SL_EINVAL, "the values of %s were left out", name);
	if (p->lex.kind != SLP_TOKEN_NUMBER) return elements(p, name, &type);
	double value = p->lex.number;
	return slp_lex_next(&p->lex) &&
	       add_tensor(p, name, SLP_NODE_CONST,
	                  sl_full_at(p->lex.at, type.shape, value, (struct sl_make){type.dtype, sl_auto()}));
}

static bool return_statement(struct slp_parser *p)
{
	bool ok = true, more = true;
	while (ok && more) {
		struct slp_value v;
		char name[128] = "";
		ok = parse_value(p, &v);
		if (slp_lex_accept(&p->lex, "as", &ok) && ok) {
			if (p->lex.kind != SLP_TOKEN_NAME) return slp_lex_fail(&p->lex, SL_EFORMAT, "a name expected");
			memcpy(name, p->lex.text, sizeof name);
			ok = slp_lex_next(&p->lex);
		}
		if (ok && !slp_graph_add_output(p->g, v, *name ? name : NULL)) return no_memory(p);
		more = slp_lex_accept(&p->lex, ",", &ok);
	}
	return ok;
}

/* Types after a call repeat the types that infer finds; running the program checks them. */
static bool result_types(struct slp_parser *p, int node)
{
	bool ok = true;
	if (!slp_lex_accept(&p->lex, ":", &ok)) return ok;
	for (int i = 0; ok && i < p->g->nodes[node].nout; i++) {
		if (i) ok = slp_lex_expect(&p->lex, ",");
		ok = ok && slp_parse_type(p, &p->g->nodes[node].types[i]);
	}
	return ok;
}

/* name = call, name = number, name = name */
static bool definition(struct slp_parser *p, const char *name)
{
	struct slp_value v;
	char op[128];
	if (p->lex.kind == SLP_TOKEN_NUMBER) return literal(p, name, &v) && define(p, name, v);
	if (p->lex.kind != SLP_TOKEN_NAME || p->lex.quoted) return parse_value(p, &v) && define(p, name, v);
	struct slp_lexer before = p->lex;
	memcpy(op, p->lex.text, sizeof op);
	if (!slp_lex_next(&p->lex)) return false;
	if (!slp_lex_is(&p->lex, "(")) return p->lex = before, parse_value(p, &v) && define(p, name, v);
	if (!call(p, op, name, &v)) return false;
	if (!p->g->nodes[v.node].nout) return slp_lex_fail(&before, SL_EINVAL, "%s has no result", op);
	return result_types(p, v.node) && define(p, name, v);
}

/* A call for its effect. */
static bool effect_statement(struct slp_parser *p, const struct slp_lexer *name)
{
	struct slp_value v;
	if (!call(p, name->text, NULL, &v)) return false;
	const struct sl_op *op = p->g->nodes[v.node].op;
	if (!op->mutates)
		return slp_lex_fail(name, SL_EINVAL,
		                    "%s writes none of its arguments, and its result has no name; assign(x, y) writes "
		                    "y into x",
		                    op->name);
	return result_types(p, v.node);
}

/* The words that begin a line; definitions and calls begin with any other name. */
static bool statement(struct slp_parser *p)
{
	static bool (*const given[])(struct slp_parser *, const char *) = {input_statement, param_statement,
	                                                                   const_statement};
	char name[128];
	bool ok = true;
	for (int i = 0; i < 3; i++)
		if (slp_lex_accept(&p->lex, slp_text_words[i], &ok))
			return ok && new_name(p, name) && given[i](p, name);
	if (slp_lex_accept(&p->lex, "return", &ok)) return ok && return_statement(p);
	struct slp_lexer before = p->lex;
	if (p->lex.kind == SLP_TOKEN_NAME && !p->lex.quoted && slp_lex_next(&p->lex) && slp_lex_is(&p->lex, "(")) {
		return effect_statement(p, &before);
	}
	p->lex = before;
	return new_name(p, name) && slp_lex_expect(&p->lex, "=") && definition(p, name);
}

static bool statements(struct slp_parser *p)
{
	while (p->lex.kind != SLP_TOKEN_END) {
		if (p->lex.kind != SLP_TOKEN_LINE && !statement(p)) return false;
		if (p->lex.kind != SLP_TOKEN_LINE && p->lex.kind != SLP_TOKEN_END)
			return slp_lex_fail(&p->lex, SL_EFORMAT, "expected the end of the line");
		if (p->lex.kind == SLP_TOKEN_LINE && !slp_lex_next(&p->lex)) return false;
	}
	if (p->g->noutputs) return true;
	return slp_lex_fail(&p->lex, SL_EFORMAT, "the program returns nothing");
}

/* A program from its text, as sl_graph_print writes it, or by hand: lines of
 *
 *     input x: float32 (2, 3)         given at each run; without a type or a shape: known when it is compiled
 *     param w: float32 (3, 4)         a tensor that the program reads and may write; it begins as zeros
 *     const c: float32 (2,) = [1, 2]  a single number is the value of all elements
 *     y = dot(x, w)                   any operation; arguments are names, numbers (float32 scalars) or calls
 *     bn = batch_norm(y, g, b, m, v, eps=1e-5)     attributes by name; bn[1] is its second result
 *     sgd(w, d, lr=0.1)               an operation for its effect
 *     assign(w, y)                    writes y into a parameter or an input
 *     return y, add(y, 1) as z        results, with names if wanted
 *
 * Comments begin with #.  Result types may follow a call (": float32 (2, 4)").  Random operations draw from the streams
 * of each run.  Errors name line and column: SL_EFORMAT, not this language; SL_EINVAL, no such operation, attribute or
 * name, or a wrong number of arguments; SL_ESHAPE.  Types are checked when the program is compiled.  Free it with
 * sl_graph_free.
 *
 *     sl_graph *g = sl_graph_parse("input x\nreturn relu(add(x, 1))"); */
sl_graph *sl_graph_parse_at(const char *at, const char *text)
{
	SLP_CALL("sl_graph_parse", at);
	struct slp_parser p = {.g = slp_graph_new()};
	if (!text) slp_call_fail(at, "sl_graph_parse", SL_EINVAL, "the text is NULL");
	else if (!p.g) slp_call_fail(at, "sl_graph_parse", SL_ENOMEM, "no memory for the program");
	bool ok = text && p.g;
	SL_PAUSE
		SL_SCOPE /* the graph holds the tensors that are made */
			ok = ok && slp_lex_begin(&p.lex, at, text) && statements(&p);
	free(p.names.list);
	free(p.values);
	if (ok) return p.g;
	sl_graph_free(p.g);
	return NULL;
}
