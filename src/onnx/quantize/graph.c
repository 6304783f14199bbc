/* Quantising ONNX models: looking up and changing the graph of a file. */
#include <stdlib.h>

#include "alloc.h"
#include "onnx/quantize/quantize.h"

const SlpOnnx__TensorProto *slp_quantize_initializer(const struct slp_quantizing *q, const char *name)
{
	for (size_t i = 0; i < q->g->n_initializer; i++)
		if (q->g->initializer[i]->name && !strcmp(q->g->initializer[i]->name, name))
			return q->g->initializer[i];
	SlpOnnx__NodeProto *n = slp_quantize_producer(q, name);
	return n ? slp_onnx_constant(n) : NULL;
}

SlpOnnx__NodeProto *slp_quantize_producer(const struct slp_quantizing *q, const char *name)
{
	for (size_t i = 0; i < q->g->n_node; i++)
		for (size_t k = 0; k < q->g->node[i]->n_output; k++)
			if (!strcmp(q->g->node[i]->output[k], name)) return q->g->node[i];
	return NULL;
}

int slp_quantize_uses(const struct slp_quantizing *q, const char *name, SlpOnnx__NodeProto **user)
{
	int uses = 0;
	*user = NULL;
	for (size_t i = 0; i < q->g->n_node; i++)
		for (size_t k = 0; k < q->g->node[i]->n_input; k++)
			if (!strcmp(q->g->node[i]->input[k], name)) *user = q->g->node[i], uses++;
	for (size_t i = 0; i < q->g->n_output; i++)
		uses += q->g->output[i]->name && !strcmp(q->g->output[i]->name, name);
	return uses;
}

bool slp_quantize_is(const SlpOnnx__NodeProto *n, const char *operator)
{
	return n && (!n->domain || !n->domain[0] || !strcmp(n->domain, "ai.onnx")) && n->op_type &&
	       !strcmp(n->op_type, operator);
}

const SlpOnnx__AttributeProto *slp_quantize_attribute(const SlpOnnx__NodeProto *n, const char *name)
{
	for (size_t i = 0; i < n->n_attribute; i++)
		if (n->attribute[i]->name && !strcmp(n->attribute[i]->name, name)) return n->attribute[i];
	return NULL;
}

bool slp_quantize_floats(const struct slp_quantizing *q, const char *name, struct slp_onnx_data *d)
{
	enum { FLOAT = 1 };
	const SlpOnnx__TensorProto *t = slp_quantize_initializer(q, name);
	*d = (struct slp_onnx_data){0};
	return t && t->data_type == FLOAT && slp_onnx_data_read(q->f, t, d) && !q->f->failed;
}

/* ---- changes ----------------------------------------------------------------------------------------------------- */

static char **copies_of(const char *const *names, int n)
{
	char **list = slp_calloc((size_t)n + 1, sizeof *list);
	for (int i = 0; list && i < n; i++)
		if (!(list[i] = slp_strdup(names[i]))) {
			while (i--) free(list[i]);
			free(list);
			return NULL;
		}
	return list;
}

SlpOnnx__NodeProto *slp_quantize_node(const char *operator, const char * const * in, int nin, const char *out)
{
	SlpOnnx__NodeProto *n = slp_calloc(1, sizeof *n);
	if (!n) return NULL;
	slp_onnx__node_proto__init(n);
	n->op_type = slp_strdup(operator);
	n->input = copies_of(in, nin);
	n->output = copies_of(&out, 1);
	n->name = slp_format("%s_%s", out, operator);
	if (n->input) n->n_input = (size_t)nin;
	if (n->output) n->n_output = 1;
	if (n->op_type && n->input && n->output && n->name) return n;
	slp_onnx__node_proto__free_unpacked(n, &slp_onnx_allocator);
	return NULL;
}

bool slp_quantize_set_int(SlpOnnx__NodeProto *n, const char *name, int64_t value)
{
	enum { KIND_INT = 2 };
	SlpOnnx__AttributeProto *a = slp_calloc(1, sizeof *a), **list = NULL;
	if (a) list = slp_realloc(n->attribute, (n->n_attribute + 1) * sizeof(SlpOnnx__AttributeProto *));
	if (!list) {
		free(a);
		return false;
	}
	slp_onnx__attribute_proto__init(a);
	a->has_i = a->has_type = true, a->i = value, a->type = KIND_INT;
	a->name = slp_strdup(name);
	n->attribute = list;
	n->attribute[n->n_attribute++] = a;
	return a->name != NULL;
}

static SlpOnnx__TensorProto *tensor_of(const char *name, int type, const sl_shape *shape, const void *data,
                                       size_t bytes)
{
	SlpOnnx__TensorProto *t = slp_calloc(1, sizeof *t);
	if (!t) return NULL;
	slp_onnx__tensor_proto__init(t);
	t->name = slp_strdup(name);
	t->dims = slp_calloc((size_t)shape->ndim + 1, sizeof *t->dims);
	t->raw_data.data = slp_malloc(bytes + 1);
	if (t->raw_data.data) {
		memcpy(t->raw_data.data, data, bytes);
		t->has_raw_data = true, t->raw_data.len = bytes;
	}
	t->has_data_type = true, t->data_type = type;
	for (int i = 0; t->dims && i < shape->ndim; i++) t->dims[t->n_dims++] = shape->dim[i];
	if (t->name && t->dims && t->raw_data.data) return t;
	slp_onnx__tensor_proto__free_unpacked(t, &slp_onnx_allocator);
	return NULL;
}

bool slp_quantize_add_tensor(struct slp_quantizing *q, const char *name, int type, const sl_shape *shape,
                             const void *data, size_t bytes)
{
	SlpOnnx__GraphProto *g = q->g;
	SlpOnnx__TensorProto *t = tensor_of(name, type, shape, data, bytes), **list = NULL;
	if (t) list = slp_realloc(g->initializer, (g->n_initializer + 1) * sizeof(SlpOnnx__TensorProto *));
	if (!list) {
		if (t) slp_onnx__tensor_proto__free_unpacked(t, &slp_onnx_allocator);
		return slp_file_fail(q->f, SL_ENOMEM, "no memory for \"%.100s\"", name);
	}
	g->initializer = list;
	g->initializer[g->n_initializer++] = t;
	return true;
}

bool slp_quantize_rename(char **name, const char *to)
{
	char *copy = slp_strdup(to);
	if (!copy) return false;
	free(*name);
	*name = copy;
	return true;
}

void slp_quantize_drop(struct slp_quantizing *q, SlpOnnx__NodeProto *n)
{
	size_t kept = 0;
	for (size_t i = 0; i < q->g->n_node; i++)
		if (q->g->node[i] != n) q->g->node[kept++] = q->g->node[i];
	q->g->n_node = kept;
	slp_onnx__node_proto__free_unpacked(n, &slp_onnx_allocator);
}
