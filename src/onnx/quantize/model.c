/* Quantising ONNX models: from the bytes of one file to another. */
#include <stdlib.h>

#include "alloc.h"
#include "onnx/packed.h"
#include "onnx/quantize/quantize.h"

enum { OLDEST = 13 }; /* operator set: that of scales for each channel */

static bool unpack(struct slp_quantizing *q)
{
	int64_t opset = 0;
	q->model = slp_onnx__model_proto__unpack(&slp_onnx_allocator, q->f->size, q->f->data);
	if (!q->model || !q->model->graph)
		return slp_file_fail(q->f, SL_EFORMAT, "is not an ONNX model, or is damaged");
	q->g = q->model->graph;
	for (size_t i = 0; i < q->model->n_opset_import; i++) {
		const SlpOnnx__OperatorSetIdProto *o = q->model->opset_import[i];
		if (!o->domain || !o->domain[0] || !strcmp(o->domain, "ai.onnx")) opset = o->version;
	}
	for (size_t i = 0; i < q->g->n_node; i++)
		if (!q->g->node[i]->op_type || slp_quantize_is(q->g->node[i], "QuantizeLinear"))
			return slp_file_fail(q->f, SL_EUNSUPPORTED,
			                     "is quantised already, or has a node without an operator");
	return opset >= OLDEST ||
	       slp_file_fail(q->f, SL_EUNSUPPORTED, "uses operator set %lld; models of %d or later are quantised",
	                     (long long)opset, OLDEST);
}

/* Values in other files become part of this one. */
static bool take_in(struct slp_quantizing *q)
{
	for (size_t i = 0; i < q->g->n_initializer; i++) {
		SlpOnnx__TensorProto *t = q->g->initializer[i];
		struct slp_onnx_data d;
		if (t->data_location != 1) continue;
		if (!slp_onnx_data_read(q->f, t, &d)) return false;
		t->raw_data = (ProtobufCBinaryData){d.bytes, d.owned};
		t->has_raw_data = true;
		t->has_data_location = false, t->data_location = 0;
		for (size_t k = 0; k < t->n_external_data; k++)
			slp_onnx__string_string_entry_proto__free_unpacked(t->external_data[k], &slp_onnx_allocator);
		free(t->external_data);
		t->external_data = NULL, t->n_external_data = 0;
	}
	return true;
}

enum sl_status slp_onnx_quantize(struct slp_file *f, const char *to, sl_tensor *const *samples, int nsamples,
                                 const struct sl_quantize_opts *opts)
{
	struct slp_quantizing q = {.f = f, .at = f->at, .opts = opts};
	bool ok = unpack(&q) && take_in(&q) && slp_quantize_fold(&q) && slp_quantize_choose(&q) &&
	          slp_quantize_calibrate(&q, samples, nsamples) && slp_quantize_rewrite(&q) &&
	          slp_onnx_save(q.model, q.at, f->function, to);
	for (int i = 0; i < q.nvalues; i++) {
		free(q.values[i].name);
		free(q.values[i].from);
		free(q.values[i].counts);
	}
	free(q.values);
	if (q.model) slp_onnx__model_proto__free_unpacked(q.model, &slp_onnx_allocator);
	return ok ? SL_OK : sl_error();
}
