/* Writing programs as ONNX models, through protobuf-c. */
#include <stdlib.h>
#include <string.h>

#include "io/elements.h"
#include "number.h"
#include "onnx/export/writer.h"
#include "onnx/packed.h"
#include "onnx/write.h"
#include "op_list/reduce.h"
#include "runtime/uncancelled.h"
#include "starling/graph.h"

enum {
	OPSET = 17,
	IR_VERSION = 8,
	INT64 = 7,
	ATTR_FLOAT = 1,
	ATTR_INT = 2,
	ATTR_STRING = 3,
	ATTR_TENSOR = 4,
	ATTR_INTS = 7,
	ATTR_STRINGS = 8
};
static char batch_name[] = "batch";

void slp_onnx_fail(struct slp_onnx_writer *w, enum sl_status status, const char *format, ...)
{
	char text[512], what[512] = "";
	SLP_FORMAT(text, sizeof text, format);
	if (w->now)
		snprintf(what, sizeof what,
		         "%s \"%.100s\", called at %.200s: ", w->now->op ? w->now->op->name : "input", w->now->name,
		         w->now->at ? w->now->at : "?");
	if (!w->failed) slp_call_fail(w->at, "sl_export_onnx", status, "%s%s", what, text);
	w->failed = true;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Zeroed; lives as long as the writer.  NULL without memory, which is recorded. */
static void *get(struct slp_onnx_writer *w, size_t bytes)
{
	struct slp_onnx_piece *p = w->failed ? NULL : slp_calloc(1, sizeof *p + bytes);
	if (!p) {
		slp_onnx_fail(w, SL_ENOMEM, "no memory");
		return NULL;
	}
	p->next = w->pieces;
	w->pieces = p;
	return p->data;
}

static char *copy(struct slp_onnx_writer *w, const char *text)
{
	char *p = get(w, strlen(text) + 1);
	return p ? strcpy(p, text) : batch_name;
}

/* A unique name for the operation that is being written. */
static char *new_name(struct slp_onnx_writer *w)
{
	char text[512];
	snprintf(text, sizeof text, "%s.%d", w->now->name, w->helpers++);
	return copy(w, text);
}

/* Appends to a list of pointers that may grow. */
static bool append(struct slp_onnx_writer *w, void ***list, size_t *count, size_t *room, void *item)
{
	if (!item) return false;
	if (*count == *room) {
		size_t more = *room ? 2 * *room : 64;
		void **bigger = get(w, more * sizeof *bigger);
		if (!bigger) return false;
		if (*count) memcpy(bigger, *list, *count * sizeof *bigger);
		*list = bigger;
		*room = more;
	}
	(*list)[(*count)++] = item;
	return true;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

const char *slp_onnx_in(struct slp_onnx_writer *w, const struct slp_gnode *n, int i)
{
	struct slp_value v = n->in[i];
	const char *name = w->names[v.node * SLP_MAX_OUTPUTS + v.out];
	if (!name)
		slp_onnx_fail(w, SL_EUNSUPPORTED, "output %d of \"%.100s\" has no counterpart in ONNX", v.out,
		              w->g->nodes[v.node].name);
	return name ? name : "";
}

const char *slp_onnx_node(struct slp_onnx_writer *w, const char *op, bool result, int nin, const char *const *in)
{
	enum { ATTRS = 8 };
	SlpOnnx__NodeProto *p = get(w, sizeof *p);
	char **input = get(w, (size_t)(nin + 1) * sizeof *input), **output = get(w, SLP_MAX_OUTPUTS * sizeof *output);
	SlpOnnx__AttributeProto **attrs = get(w, ATTRS * sizeof *attrs);
	if (!attrs) return "";
	slp_onnx__node_proto__init(p);
	for (int i = 0; i < nin; i++) input[i] = copy(w, in[i]);
	output[0] = result ? copy(w, w->now->name) : new_name(w);
	p->op_type = copy(w, op);
	p->name = output[0];
	p->n_input = (size_t)nin, p->input = input;
	p->n_output = 1, p->output = output;
	p->attribute = attrs;
	w->node = p;
	append(w, (void ***)&w->graph.node, &w->graph.n_node, &w->max_nodes, p);
	if (result) w->names[(w->now - w->g->nodes) * SLP_MAX_OUTPUTS] = output[0];
	return output[0];
}

const char *slp_onnx_output(struct slp_onnx_writer *w)
{
	SlpOnnx__NodeProto *p = w->failed ? NULL : w->node;
	return p ? p->output[p->n_output++] = new_name(w) : "";
}

void slp_onnx_give_result(struct slp_onnx_writer *w, int i, const char *name)
{
	w->names[(w->now - w->g->nodes) * SLP_MAX_OUTPUTS + i] = name;
}

static SlpOnnx__AttributeProto *attribute(struct slp_onnx_writer *w, const char *name, int type)
{
	SlpOnnx__AttributeProto *a = get(w, sizeof *a);
	if (!a) return NULL;
	slp_onnx__attribute_proto__init(a);
	a->name = copy(w, name);
	a->has_type = true, a->type = type;
	w->node->attribute[w->node->n_attribute++] = a;
	return a;
}

void slp_onnx_int(struct slp_onnx_writer *w, const char *name, int64_t v)
{
	SlpOnnx__AttributeProto *a = attribute(w, name, ATTR_INT);
	if (a) a->has_i = true, a->i = v;
}

void slp_onnx_float(struct slp_onnx_writer *w, const char *name, double v)
{
	SlpOnnx__AttributeProto *a = attribute(w, name, ATTR_FLOAT);
	if (a) a->has_f = true, a->f = (float)v;
}

void slp_onnx_ints(struct slp_onnx_writer *w, const char *name, const int64_t *v, int n)
{
	SlpOnnx__AttributeProto *a = attribute(w, name, ATTR_INTS);
	int64_t *list = get(w, (size_t)(n + 1) * sizeof *list);
	if (!a || !list) return;
	if (n) memcpy(list, v, (size_t)n * sizeof *list);
	a->n_ints = (size_t)n, a->ints = list;
}

static ProtobufCBinaryData text(struct slp_onnx_writer *w, const char *v)
{
	return (ProtobufCBinaryData){strlen(v), (unsigned char *)copy(w, v)};
}

void slp_onnx_string(struct slp_onnx_writer *w, const char *name, const char *v)
{
	SlpOnnx__AttributeProto *a = attribute(w, name, ATTR_STRING);
	if (a) a->has_s = true, a->s = text(w, v);
}

void slp_onnx_strings(struct slp_onnx_writer *w, const char *name, const char *v)
{
	SlpOnnx__AttributeProto *a = attribute(w, name, ATTR_STRINGS);
	ProtobufCBinaryData *list = get(w, sizeof *list);
	if (!a || !list) return;
	*list = text(w, v);
	a->n_strings = 1, a->strings = list;
}

/* ---- constants --------------------------------------------------------------------------------------------------- */

/* A tensor with room for its elements, type in ONNX' numbers. */
static SlpOnnx__TensorProto *tensor(struct slp_onnx_writer *w, const char *name, int type, sl_shape shape, size_t bytes)
{
	SlpOnnx__TensorProto *t = get(w, sizeof *t);
	int64_t *dims = get(w, sizeof shape.dim);
	unsigned char *data = get(w, bytes + 1);
	if (!data) return NULL;
	slp_onnx__tensor_proto__init(t);
	memcpy(dims, shape.dim, sizeof shape.dim);
	t->n_dims = (size_t)shape.ndim, t->dims = dims;
	t->has_data_type = true, t->data_type = type;
	if (name) t->name = copy(w, name);
	t->has_raw_data = true, t->raw_data = (ProtobufCBinaryData){bytes, data};
	return t;
}

static const char *add_constant(struct slp_onnx_writer *w, SlpOnnx__TensorProto *t)
{
	if (!append(w, (void ***)&w->graph.initializer, &w->graph.n_initializer, &w->max_tensors, t)) return "";
	return t->name;
}

int slp_onnx_type(enum sl_dtype dtype)
{
	return slp_elements[dtype].onnx;
}

static void put_number(void *to, double v, enum sl_dtype dtype)
{
	struct slp_view one = {to, {dtype, SL_SCALAR}};
	slp_set(&one, 0, v);
}

const char *slp_onnx_list(struct slp_onnx_writer *w, const int64_t *v, int n)
{
	size_t bytes = (size_t)n * sizeof *v;
	SlpOnnx__TensorProto *t = tensor(w, new_name(w), INT64, SL_SHAPE(n), bytes);
	if (t && bytes) memcpy(t->raw_data.data, v, bytes);
	return add_constant(w, t);
}

const char *slp_onnx_number(struct slp_onnx_writer *w, double v, enum sl_dtype dtype)
{
	SlpOnnx__TensorProto *t = tensor(w, new_name(w), slp_onnx_type(dtype), SL_SCALAR, sl_dtype_size(dtype));
	if (t) put_number(t->raw_data.data, v, dtype);
	return add_constant(w, t);
}

void slp_onnx_value(struct slp_onnx_writer *w, const char *name, double v, enum sl_dtype dtype)
{
	SlpOnnx__AttributeProto *a = attribute(w, name, ATTR_TENSOR);
	SlpOnnx__TensorProto *t = tensor(w, NULL, slp_onnx_type(dtype), SL_SHAPE(1), sl_dtype_size(dtype));
	if (!a || !t) return;
	put_number(t->raw_data.data, v, dtype);
	a->t = t;
}

/* ---- nodes with attributes --------------------------------------------------------------------------------------- */

const char *slp_onnx_write_cast(struct slp_onnx_writer *w, bool result, const char *value, enum sl_dtype dtype)
{
	value = SLP_ONNX_NODE(w, "Cast", result, value);
	slp_onnx_int(w, "to", slp_onnx_type(dtype));
	return value;
}

const char *slp_onnx_write_transposed(struct slp_onnx_writer *w, const char *value, int ndim)
{
	int64_t axes[SL_MAX_NDIM];
	if (ndim < 2) return value;
	for (int i = 0; i < ndim; i++) axes[i] = i;
	axes[ndim - 1] = ndim - 2, axes[ndim - 2] = ndim - 1;
	value = SLP_ONNX_NODE(w, "Transpose", false, value);
	slp_onnx_ints(w, "perm", axes, ndim);
	return value;
}

/* In operator set 17 sums take their axes as an input, the others as an attribute. */
const char *slp_onnx_write_reduced(struct slp_onnx_writer *w, const char *op, bool result, const char *value,
                                   const struct slp_gnode *n)
{
	int axes[SL_MAX_NDIM], count = slp_export_axes(n, slp_onnx_shape_in(w, n, 0).ndim, axes);
	int64_t list[SL_MAX_NDIM];
	for (int i = 0; i < count; i++) list[i] = axes[i];
	if (n->op == &slp_op_sum) {
		value = SLP_ONNX_NODE(w, op, result, value, slp_onnx_list(w, list, count));
	} else {
		value = SLP_ONNX_NODE(w, op, result, value);
		slp_onnx_ints(w, "axes", list, count);
	}
	slp_onnx_int(w, "keepdims", slp_export_int(n, "keepdims", 0));
	return value;
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static void write_tensor(struct slp_onnx_writer *w, int i)
{
	const struct slp_gnode *n = &w->g->nodes[i];
	sl_tensor *t = n->tensor;
	size_t bytes = sl_tensor_bytes(t);
	SlpOnnx__TensorProto *p = tensor(w, n->name, slp_onnx_type(sl_tensor_dtype(t)), sl_tensor_shape(t), bytes);
	const void *values = p ? slp_host_begin(w->at, "sl_export_onnx", t, false) : NULL;
	if (!values) {
		w->failed = true; /* and recorded */
		return;
	}
	if (bytes) memcpy(p->raw_data.data, values, bytes);
	slp_host_end(t);
	w->names[i * SLP_MAX_OUTPUTS] = add_constant(w, p);
}

static bool dimension(struct slp_onnx_writer *w, SlpOnnx__TensorShapeProto *s, int64_t size, bool is_batch)
{
	SlpOnnx__TensorShapeProto__Dimension *d = get(w, sizeof *d);
	if (!d) return false;
	slp_onnx__tensor_shape_proto__dimension__init(d);
	if (is_batch) d->dim_param = batch_name;
	else d->has_dim_value = true, d->dim_value = size;
	s->dim[s->n_dim++] = d;
	return true;
}

/* An input or output; its first axis is open if it is that of the batch. */
static SlpOnnx__ValueInfoProto *value_info(struct slp_onnx_writer *w, const char *name, const struct slp_type *type,
                                           int64_t batch)
{
	SlpOnnx__ValueInfoProto *v = get(w, sizeof *v);
	SlpOnnx__TypeProto *p = get(w, sizeof *p);
	SlpOnnx__TypeProto__Tensor *t = get(w, sizeof *t);
	SlpOnnx__TensorShapeProto *s = get(w, sizeof *s);
	SlpOnnx__TensorShapeProto__Dimension **dims = get(w, (SL_MAX_NDIM + 1) * sizeof *dims);
	if (!dims) return NULL;
	slp_onnx__value_info_proto__init(v);
	slp_onnx__type_proto__init(p);
	slp_onnx__type_proto__tensor__init(t);
	slp_onnx__tensor_shape_proto__init(s);
	v->name = copy(w, name), v->type = p, p->tensor_type = t, t->shape = s, s->dim = dims;
	t->has_elem_type = true, t->elem_type = slp_onnx_type(type->dtype);
	for (int i = 0; i < type->shape.ndim; i++)
		if (!dimension(w, s, type->shape.dim[i], i == 0 && type->shape.dim[0] == batch)) return NULL;
	return v;
}

static void write_node(struct slp_onnx_writer *w, int i)
{
	const struct slp_gnode *n = &w->g->nodes[i];
	w->now = n;
	w->helpers = 0;
	if (n->dead) return;
	if (n->kind == SLP_NODE_INPUT) w->names[i * SLP_MAX_OUTPUTS] = n->name;
	else if (n->kind != SLP_NODE_OP) write_tensor(w, i);
	else if (!slp_onnx_export_for(n->op))
		slp_onnx_fail(w, SL_EUNSUPPORTED, "the operation has no counterpart in ONNX");
	else slp_onnx_export_for(n->op)(w, n);
}

/* Inputs and outputs of the model, and its name. */
static void write_ends(struct slp_onnx_writer *w)
{
	const sl_graph *g = w->g;
	SlpOnnx__ValueInfoProto **in = get(w, (size_t)(g->ninputs + 1) * sizeof *in);
	SlpOnnx__ValueInfoProto **out = get(w, (size_t)(g->noutputs + 1) * sizeof *out);
	if (!in || !out) return;
	const struct slp_type *first = g->ninputs ? &g->nodes[g->inputs[0]].types[0] : NULL;
	int64_t batch = first && first->shape.ndim ? first->shape.dim[0] : -1;
	for (int i = 0; i < g->ninputs; i++)
		in[i] = value_info(w, g->nodes[g->inputs[i]].name, &g->nodes[g->inputs[i]].types[0], batch);
	for (int i = 0; i < g->noutputs; i++) {
		const char *name = w->names[g->outputs[i].node * SLP_MAX_OUTPUTS + g->outputs[i].out];
		out[i] = value_info(w, name ? name : "", slp_value_type(g, g->outputs[i]), batch);
	}
	w->graph.name = copy(w, "starling");
	w->graph.n_input = (size_t)g->ninputs, w->graph.input = in;
	w->graph.n_output = (size_t)g->noutputs, w->graph.output = out;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* Into the file, or, without a path, into f. */
static enum sl_status write_model(struct slp_onnx_writer *w, const char *path, struct slp_file *f)
{
	SlpOnnx__ModelProto model = SLP_ONNX__MODEL_PROTO__INIT;
	SlpOnnx__OperatorSetIdProto opset = SLP_ONNX__OPERATOR_SET_ID_PROTO__INIT, *opsets[] = {&opset};
	opset.has_version = true, opset.version = OPSET;
	opset.domain = copy(w, "");
	model.has_ir_version = true, model.ir_version = IR_VERSION;
	model.producer_name = copy(w, "starling"), model.producer_version = copy(w, sl_version());
	model.n_opset_import = 1, model.opset_import = opsets;
	model.graph = &w->graph;
	if (slp_onnx__model_proto__get_packed_size(&model) > INT32_MAX) {
		w->now = NULL;
		slp_onnx_fail(w, SL_EUNSUPPORTED, "%s would exceed 2 GiB, the limit of an ONNX file",
		              path ? path : f->path);
	}
	bool ok =
	        !w->failed && (path ? slp_onnx_save(&model, w->at, "sl_export_onnx", path) : slp_onnx_pack(&model, f));
	return ok ? SL_OK : sl_error();
}

enum sl_status slp_onnx_write(const char *at, const char *path, struct slp_file *f, const sl_graph *g)
{
	SLP_UNCANCELLED();
	struct slp_onnx_writer w = {.at = at, .g = g, .graph = SLP_ONNX__GRAPH_PROTO__INIT};
	enum sl_status s = SL_ENOMEM;
	w.names = get(&w, (size_t)(g->count + 1) * SLP_MAX_OUTPUTS * sizeof *w.names);
	for (int i = 0; i < g->count && !w.failed; i++) write_node(&w, i);
	if (!w.failed) write_ends(&w);
	s = w.failed ? sl_error() : write_model(&w, path, f);
	for (struct slp_onnx_piece *p = w.pieces, *next; p; p = next) {
		next = p->next;
		free(p);
	}
	return s;
}
