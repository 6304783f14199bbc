/* ONNX models: what a file declares about its inputs and results. */
#include <string.h>

#include "onnx/model/model.h"
#include "op.h"

const SlpOnnx__TypeProto__Tensor *slp_onnx_elements(const SlpOnnx__ValueInfoProto *v, bool *list)
{
	const SlpOnnx__TypeProto *t = v->type;
	if (t && t->optional_type) t = t->optional_type->elem_type;
	*list = t && t->sequence_type;
	if (*list) t = t->sequence_type->elem_type;
	return t ? t->tensor_type : NULL;
}

struct slp_type slp_onnx_declared_type(const SlpOnnx__ValueInfoProto *v)
{
	struct slp_type type = {SL_DTYPE_DEFAULT, {.ndim = -1}};
	const SlpOnnx__TypeProto__Tensor *t = v ? slp_onnx_elements(v, &(bool){false}) : NULL;
	if (!t) return type;
	type.dtype = slp_onnx_dtype_numbered(t->elem_type);
	if (!t->shape || t->shape->n_dim > SL_MAX_NDIM) return type;
	type.shape.ndim = (int)t->shape->n_dim;
	for (int k = 0; k < type.shape.ndim; k++)
		type.shape.dim[k] = t->shape->dim[k]->has_dim_value && t->shape->dim[k]->dim_value > 0
		                            ? t->shape->dim[k]->dim_value
		                            : -1;
	return type;
}

const SlpOnnx__ValueInfoProto *slp_onnx_input_info(const struct slp_onnx_model *m, int input)
{
	return m->proto->graph->input[m->names[m->inputs[input]].declared];
}

struct slp_type slp_onnx_declared(const struct slp_onnx_model *m, int input)
{
	return slp_onnx_declared_type(slp_onnx_input_info(m, input));
}

bool slp_onnx_is_list(const struct slp_onnx_model *m, int input)
{
	bool list = false;
	slp_onnx_elements(slp_onnx_input_info(m, input), &list);
	return list;
}

int slp_onnx_declared_number(const struct slp_onnx_model *m, int input)
{
	const SlpOnnx__TypeProto__Tensor *t = slp_onnx_elements(slp_onnx_input_info(m, input), &(bool){false});
	return t ? t->elem_type : 0;
}

int slp_onnx_result_type(const struct slp_onnx_model *m, int result, int otherwise)
{
	const SlpOnnx__GraphProto *g = m->proto->graph;
	for (size_t i = 0; i < g->n_output; i++) {
		const SlpOnnx__ValueInfoProto *v = g->output[i];
		if (v->name && !strcmp(v->name, m->names[m->results[result]].name) && v->type && v->type->tensor_type)
			return v->type->tensor_type->elem_type ? v->type->tensor_type->elem_type : otherwise;
	}
	return otherwise;
}
