/* ONNX models made by tests, through protobuf-c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "onnx/read.h"
#include "onnx_builder.h"

void slp_model_begin(struct slp_model *m, int opset)
{
	memset(m, 0, sizeof *m);
	slp_onnx__model_proto__init(&m->model);
	slp_onnx__graph_proto__init(&m->graph);
	slp_onnx__operator_set_id_proto__init(&m->opset);
	slp_onnx__value_info_proto__init(&m->in);
	slp_onnx__value_info_proto__init(&m->out);
	slp_onnx__type_proto__init(&m->type);
	slp_onnx__type_proto__tensor__init(&m->tensor_type);
	m->model.graph = &m->graph;
	m->opset.has_version = true, m->opset.version = opset;
	m->opsets[0] = &m->opset, m->model.opset_import = m->opsets, m->model.n_opset_import = 1;
	m->in.name = (char *)"x", m->out.name = (char *)"y";
	m->ins[0] = &m->in, m->outs[0] = &m->out;
	m->graph.input = m->ins, m->graph.n_input = 1, m->graph.output = m->outs, m->graph.n_output = 1;
	m->graph.node = m->node_list, m->graph.initializer = m->tensor_list;
}

SlpOnnx__NodeProto *slp_model_node(struct slp_model *m, const char *text)
{
	size_t i = m->graph.n_node++;
	SlpOnnx__NodeProto *n = m->node_list[i] = &m->nodes[i];
	char *save, *word;
	bool out = false;
	slp_onnx__node_proto__init(n);
	snprintf(m->text[i], sizeof m->text[i], "%s", text);
	n->op_type = strtok_r(m->text[i], " ", &save);
	n->input = m->names[i], n->attribute = m->attribute_list[i];
	while ((word = strtok_r(NULL, " ", &save))) {
		if (!strcmp(word, "->")) {
			out = true;
			n->output = n->input + n->n_input;
		} else if (out) {
			n->output[n->n_output++] = word;
		} else {
			n->input[n->n_input++] = strcmp(word, "-") ? word : (char *)"";
		}
	}
	return n;
}

SlpOnnx__AttributeProto *slp_model_attribute(struct slp_model *m, SlpOnnx__NodeProto *n, const char *name, int type)
{
	SlpOnnx__AttributeProto *a = &m->attributes[m->attributes_used++];
	slp_onnx__attribute_proto__init(a);
	a->name = (char *)name, a->has_type = true, a->type = type;
	n->attribute[n->n_attribute++] = a;
	return a;
}

void slp_model_int(struct slp_model *m, SlpOnnx__NodeProto *n, const char *name, int64_t v)
{
	SlpOnnx__AttributeProto *a = slp_model_attribute(m, n, name, 2);
	a->has_i = true, a->i = v;
}

static size_t set_ends(struct slp_model *m, int which, const char *names, SlpOnnx__ValueInfoProto **list)
{
	size_t n = 0;
	char *save, *text = m->end_names[which];
	snprintf(text, sizeof m->end_names[which], "%s", names);
	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		SlpOnnx__ValueInfoProto *v = list[n] = &m->ends[(size_t)which * SLP_MODEL_ENDS + n];
		slp_onnx__value_info_proto__init(v);
		v->name = word;
		n++;
	}
	return n;
}

void slp_model_ends(struct slp_model *m, const char *inputs, const char *outputs)
{
	m->graph.n_input = set_ends(m, 0, inputs, m->ins);
	m->graph.n_output = set_ends(m, 1, outputs, m->outs);
}

/* Bytes that the program keeps. */
struct kept {
	struct kept *next;
	uint8_t bytes[];
};

static uint8_t *keep(size_t size)
{
	static struct kept *all;
	struct kept *k = malloc(sizeof *k + size);
	k->next = all;
	all = k;
	return k->bytes;
}

void slp_model_graph(struct slp_model *m, SlpOnnx__NodeProto *n, const char *name, const struct slp_model *graph)
{
	SlpOnnx__AttributeProto *a = slp_model_attribute(m, n, name, 5);
	size_t size = slp_onnx__graph_proto__get_packed_size(&graph->graph);
	a->has_g = true;
	a->g = (ProtobufCBinaryData){size, keep(size)};
	slp_onnx__graph_proto__pack(&graph->graph, a->g.data);
}

SlpOnnx__TensorProto *slp_model_tensor(struct slp_model *m, const char *name, int type, const int64_t *dims, int ndim)
{
	size_t i = m->graph.n_initializer++;
	SlpOnnx__TensorProto *t = m->tensor_list[i] = &m->tensors[i];
	slp_onnx__tensor_proto__init(t);
	t->name = (char *)name, t->has_data_type = true, t->data_type = type, t->dims = m->dims[i],
	t->n_dims = (size_t)ndim;
	for (int axis = 0; axis < ndim; axis++) t->dims[axis] = dims[axis];
	return t;
}

void slp_model_raw(SlpOnnx__TensorProto *t, const void *data, size_t bytes)
{
	t->has_raw_data = true, t->raw_data = (ProtobufCBinaryData){bytes, (uint8_t *)data};
}

sl_block *slp_model_built(const struct slp_model *m, struct sl_import_onnx_opts opts)
{
	size_t size = slp_onnx__model_proto__get_packed_size(&m->model);
	struct slp_file f = {
	        .at = SL_HERE, .function = "sl_import_onnx", .path = "x.onnx", .data = malloc(size + 1), .size = size};
	slp_onnx__model_proto__pack(&m->model, f.data);
	sl_block *b = slp_import_onnx_parse(&f, opts);
	free(f.data);
	return b;
}
