/* Models of the cases in src/onnx/operators.def: a parser of their texts, which makes protobuf's structures. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx_case.h"
#include "src/onnx/onnx.pb-c.h"

enum { ATTRIBUTES = 16 };

/* Memory of a case, freed together. */
struct piece {
	struct piece *next;
	max_align_t bytes[];
};

struct parser {
	const char *at;
	struct piece *pieces;
	bool failed;
	SlpOnnx__GraphProto *graph;  /* the model's, whose inputs operands are */
	SlpOnnx__GraphProto *within; /* where nodes and initializers go */
	struct slp_case *c;
	bool microsoft;
};

static const struct {
	const char *name;
	int onnx, bytes;
	enum sl_dtype dtype;
} types[] = {
        {"f32", 1, 4, SL_FLOAT32},  {"u8", 2, 1, SL_UINT8},    {"i8", 3, 1, SL_INT8},     {"u16", 4, 2, SL_UINT16},
        {"i16", 5, 2, SL_INT16},    {"i32", 6, 4, SL_INT32},   {"i64", 7, 8, SL_INT64},   {"b", 9, 1, SL_BOOL},
        {"f64", 11, 8, SL_FLOAT64}, {"u32", 12, 4, SL_UINT32}, {"u64", 13, 8, SL_UINT64},
};

static int type_named(const char *name)
{
	for (int i = 0; i < (int)(sizeof types / sizeof *types); i++)
		if (!strcmp(types[i].name, name)) return i;
	return -1;
}

enum sl_dtype slp_case_dtype(const char *type)
{
	int i = type_named(type);
	return i < 0 ? SL_DTYPE_DEFAULT : types[i].dtype;
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

static bool fail(struct parser *p, const char *what)
{
	if (!p->failed) fprintf(stderr, "case: %s at \"%.60s\"\n", what, p->at);
	p->failed = true;
	return false;
}

static void *keep(struct parser *p, size_t bytes)
{
	struct piece *piece = calloc(1, sizeof *piece + bytes + 1);
	piece->next = p->pieces;
	p->pieces = piece;
	return piece->bytes;
}

static bool take(struct parser *p, char wanted)
{
	while (*p->at == ' ') p->at++;
	if (*p->at != wanted) return false;
	p->at++;
	return true;
}

static bool need(struct parser *p, char wanted)
{
	char text[32];
	snprintf(text, sizeof text, "'%c' is missing", wanted);
	return take(p, wanted) || fail(p, text);
}

/* Letters, digits, and those of `also`; "" where there are none. */
static char *word(struct parser *p, const char *also)
{
	while (*p->at == ' ') p->at++;
	size_t n = 0;
	while (isalnum((unsigned char)p->at[n]) || (p->at[n] && strchr(also, p->at[n]))) n++;
	char *text = keep(p, n);
	memcpy(text, p->at, n);
	p->at += n;
	return text;
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static double pattern(int64_t i, int seed, bool positive, const char *type)
{
	int64_t v = (i * 37 + seed * 11 + i * i * 5) % 19;
	v = positive ? v + 1 : v - 9;
	return type[0] == 'b' ? v > 0 : type[0] == 'f' ? (double)v / 8 : (double)v;
}

static bool values(struct parser *p, struct slp_case_tensor *t)
{
	int64_t n = sl_shape_size(t->shape);
	t->v = calloc((size_t)n + 1, sizeof *t->v);
	if (take(p, '~')) {
		bool positive = take(p, '+');
		int seed = (int)strtol(p->at, (char **)&p->at, 10);
		for (int64_t i = 0; i < n; i++) t->v[i] = pattern(i, seed, positive, t->type);
		return true;
	}
	if (!need(p, '{')) return false;
	for (int64_t i = 0; i < n; i++) {
		char *end;
		t->v[i] = strtod(p->at, &end);
		if (end == p->at) return fail(p, "a number is missing");
		p->at = end;
	}
	return need(p, '}');
}

static bool tensor(struct parser *p, struct slp_case_tensor *t, bool any)
{
	*t = (struct slp_case_tensor){.shape = {0}};
	snprintf(t->type, sizeof t->type, "%s", word(p, ""));
	int type = type_named(t->type);
	if (type < 0) return fail(p, "no type");
	t->onnx = types[type].onnx;
	if (!need(p, '[')) return false;
	while (!take(p, ']')) {
		if (t->shape.ndim == SL_MAX_NDIM || !isdigit((unsigned char)*p->at)) return fail(p, "no shape");
		t->shape.dim[t->shape.ndim++] = strtol(p->at, (char **)&p->at, 10);
		take(p, ',');
	}
	return (any && take(p, '?')) || values(p, t);
}

bool slp_case_tensor_parse(const char **text, struct slp_case_tensor *t)
{
	struct parser p = {.at = *text};
	bool ok = tensor(&p, t, true);
	take(&p, ';');
	*text = p.at;
	for (struct piece *next; p.pieces; p.pieces = next) {
		next = p.pieces->next;
		free(p.pieces);
	}
	return ok;
}

static void put(uint8_t *to, int type, double v)
{
	int64_t whole = (int64_t)v;
	float f = (float)v;
	bool real = types[type].name[0] == 'f';
	const void *from = real && types[type].bytes == 4 ? (const void *)&f : real ? (const void *)&v : &whole;
	memcpy(to, from, (size_t)types[type].bytes);
}

static SlpOnnx__TensorProto *tensor_proto(struct parser *p, const struct slp_case_tensor *t, char *name)
{
	SlpOnnx__TensorProto *to = keep(p, sizeof *to);
	int type = type_named(t->type);
	size_t bytes = (size_t)types[type].bytes;
	int64_t n = sl_shape_size(t->shape);
	slp_onnx__tensor_proto__init(to);
	to->name = name, to->has_data_type = true, to->data_type = t->onnx;
	to->n_dims = (size_t)t->shape.ndim, to->dims = keep(p, sizeof t->shape.dim);
	memcpy(to->dims, t->shape.dim, sizeof t->shape.dim);
	to->has_raw_data = true;
	to->raw_data = (ProtobufCBinaryData){(size_t)n * bytes, keep(p, (size_t)n * bytes)};
	for (int64_t i = 0; i < n; i++) put(to->raw_data.data + (size_t)i * bytes, type, t->v[i]);
	return to;
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

static SlpOnnx__GraphProto *new_graph(struct parser *p)
{
	SlpOnnx__GraphProto *g = keep(p, sizeof *g);
	slp_onnx__graph_proto__init(g);
	g->name = (char *)"case";
	g->node = keep(p, SLP_CASE_MOST * sizeof *g->node);
	g->initializer = keep(p, SLP_CASE_MOST * sizeof *g->initializer);
	g->input = keep(p, SLP_CASE_MOST * sizeof *g->input);
	g->output = keep(p, SLP_CASE_MOST * sizeof *g->output);
	return g;
}

static SlpOnnx__ValueInfoProto *value_info(struct parser *p, char *name, const struct slp_case_tensor *t)
{
	SlpOnnx__ValueInfoProto *v = keep(p, sizeof *v);
	slp_onnx__value_info_proto__init(v);
	v->name = name;
	if (!t) return v;
	v->type = keep(p, sizeof *v->type);
	slp_onnx__type_proto__init(v->type);
	v->type->tensor_type = keep(p, sizeof *v->type->tensor_type);
	slp_onnx__type_proto__tensor__init(v->type->tensor_type);
	v->type->tensor_type->has_elem_type = true, v->type->tensor_type->elem_type = t->onnx;
	return v;
}

/* x:f32[2]{1 2} is an input of the model, x!f32[2]{1 2} an initializer. */
static void operand(struct parser *p, SlpOnnx__NodeProto *n, char *name)
{
	struct slp_case_tensor t = {.v = NULL};
	bool input = take(p, ':'), initializer = !input && take(p, '!');
	n->input[n->n_input++] = strcmp(name, "-") ? name : (char *)"";
	if (!input && !initializer) return;
	if (tensor(p, &t, false) && input) {
		p->graph->input[p->graph->n_input++] = value_info(p, name, &t);
		struct sl_make make = {.dtype = SL_FLOAT64};
		sl_tensor *x = sl_from_at(SL_HERE, t.v, t.shape, make);
		p->c->in[p->c->nin++] = sl_cast_at(SL_HERE, x, slp_case_dtype(t.type));
	} else if (!p->failed) {
		p->within->initializer[p->within->n_initializer++] = tensor_proto(p, &t, name);
	}
	free(t.v);
}

static bool statement(struct parser *p);

/* a b -> c d: c = Add(a, b); … */
static void graph_attribute(struct parser *p, SlpOnnx__AttributeProto *a)
{
	SlpOnnx__GraphProto *outer = p->within, *g = p->within = new_graph(p);
	char *name;
	while (*(name = word(p, "_"))) g->input[g->n_input++] = value_info(p, name, NULL);
	need(p, '-'), need(p, '>');
	while (*(name = word(p, "_"))) g->output[g->n_output++] = value_info(p, name, NULL);
	need(p, ':');
	while (!p->failed && !take(p, ')')) {
		statement(p);
		take(p, ';');
	}
	p->within = outer;
	size_t size = slp_onnx__graph_proto__get_packed_size(g);
	a->type = 5, a->has_g = true;
	a->g = (ProtobufCBinaryData){size, keep(p, size)};
	slp_onnx__graph_proto__pack(g, a->g.data);
}

/* Up to the next quotation mark. */
static ProtobufCBinaryData text_of(struct parser *p)
{
	size_t length = strcspn(p->at, "'");
	ProtobufCBinaryData s = {length, (uint8_t *)keep(p, length + 1)};
	memcpy(s.data, p->at, length);
	p->at += length;
	need(p, '\'');
	return s;
}

/* ['a' 'b'] */
static void texts_attribute(struct parser *p, SlpOnnx__AttributeProto *a)
{
	a->type = 8, a->strings = keep(p, SLP_CASE_MOST * sizeof *a->strings);
	do a->strings[a->n_strings++] = text_of(p);
	while (!p->failed && a->n_strings < SLP_CASE_MOST && take(p, '\''));
	need(p, ']');
}

static void list_attribute(struct parser *p, SlpOnnx__AttributeProto *a)
{
	if (take(p, '\'')) {
		texts_attribute(p, a);
		return;
	}
	double v[SLP_CASE_MOST];
	size_t n = 0;
	bool real = memchr(p->at, '.', strcspn(p->at, "]")) != NULL;
	while (!p->failed && !take(p, ']')) v[n++] = strtod(p->at, (char **)&p->at);
	a->type = real ? 6 : 7;
	a->ints = keep(p, n * sizeof *a->ints), a->floats = keep(p, n * sizeof *a->floats);
	for (size_t i = 0; i < n; i++)
		if (real) a->floats[a->n_floats++] = (float)v[i];
		else a->ints[a->n_ints++] = (int64_t)v[i];
}

static void number_attribute(struct parser *p, SlpOnnx__AttributeProto *a)
{
	const char *text = word(p, "-.");
	if (strchr(text, '.')) a->type = 1, a->has_f = true, a->f = strtof(text, NULL);
	else if (*text) a->type = 2, a->has_i = true, a->i = strtoll(text, NULL, 10);
	else fail(p, "a value is missing");
}

/* 3, 0.5, 'text', [1 2], [0.5 1], ['a' 'b'], :f32[1]{2}, (a -> b: b = Neg(a)) */
static void attribute(struct parser *p, SlpOnnx__NodeProto *n, char *name)
{
	SlpOnnx__AttributeProto *a = n->attribute[n->n_attribute++] = keep(p, sizeof *a);
	struct slp_case_tensor t = {.v = NULL};
	slp_onnx__attribute_proto__init(a);
	a->name = name, a->has_type = true;
	if (take(p, '\'')) {
		a->type = 3, a->has_s = true, a->s = text_of(p);
	} else if (take(p, '[')) {
		list_attribute(p, a);
	} else if (take(p, '(')) {
		graph_attribute(p, a);
	} else if (take(p, ':')) {
		a->type = 4;
		if (tensor(p, &t, false)) a->t = tensor_proto(p, &t, (char *)"");
		free(t.v);
	} else {
		number_attribute(p, a);
	}
}

/* y z = Operator(a, b, attribute=value) */
static bool statement(struct parser *p)
{
	SlpOnnx__NodeProto *n = keep(p, sizeof *n);
	char *name;
	slp_onnx__node_proto__init(n);
	n->input = keep(p, SLP_CASE_MOST * sizeof *n->input);
	n->output = keep(p, SLP_CASE_MOST * sizeof *n->output);
	n->attribute = keep(p, ATTRIBUTES * sizeof *n->attribute);
	while (*(name = word(p, "_-"))) n->output[n->n_output++] = strcmp(name, "-") ? name : (char *)"";
	need(p, '=');
	n->op_type = word(p, ".");
	char *dot = strrchr(n->op_type, '.');
	if (dot) n->domain = n->op_type, n->op_type = dot + 1, *dot = '\0', p->microsoft = true;
	if (!need(p, '(')) return false;
	while (!p->failed && !take(p, ')')) {
		if (!*(name = word(p, "_-"))) return fail(p, "a name is missing");
		if (take(p, '=')) attribute(p, n, name);
		else operand(p, n, name);
		take(p, ',');
	}
	p->within->node[p->within->n_node++] = n;
	return !p->failed;
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

/* The results of the last statement are the model's. */
static void pack(struct parser *p, int opset)
{
	SlpOnnx__ModelProto model;
	SlpOnnx__OperatorSetIdProto sets[2], *list[2] = {&sets[0], &sets[1]};
	const SlpOnnx__NodeProto *last = p->graph->node[p->graph->n_node - 1];
	slp_onnx__model_proto__init(&model);
	for (int i = 0; i < 2; i++) {
		slp_onnx__operator_set_id_proto__init(&sets[i]);
		sets[i].has_version = true, sets[i].version = i ? 1 : opset;
	}
	sets[1].domain = (char *)"com.microsoft";
	for (size_t i = 0; i < last->n_output; i++)
		if (last->output[i][0]) p->graph->output[p->graph->n_output++] = value_info(p, last->output[i], NULL);
	model.graph = p->graph;
	if (!opset) sets[0].domain = sets[1].domain; /* @0: without an entry of the standard */
	model.opset_import = list, model.n_opset_import = p->microsoft ? 2 : 1;
	p->c->nout = (int)p->graph->n_output;
	p->c->size = slp_onnx__model_proto__get_packed_size(&model);
	p->c->bytes = malloc(p->c->size + 1);
	slp_onnx__model_proto__pack(&model, p->c->bytes);
}

bool slp_case_parse(const char *program, struct slp_case *c)
{
	struct parser p = {.at = program, .c = c};
	int opset = 23;
	*c = (struct slp_case){.bytes = NULL};
	p.graph = p.within = new_graph(&p);
	if (take(&p, '@')) opset = (int)strtol(p.at, (char **)&p.at, 10);
	while (!p.failed && *p.at) {
		statement(&p);
		take(&p, ';');
	}
	if (!p.failed && p.graph->n_node) pack(&p, opset);
	for (struct piece *next; p.pieces; p.pieces = next) {
		next = p.pieces->next;
		free(p.pieces);
	}
	return !p.failed && c->bytes;
}

void slp_case_free(struct slp_case *c)
{
	free(c->bytes);
}
