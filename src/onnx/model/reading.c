/* ONNX models: values that a run computes and that shapes depend on.  The run waits for such a value and reads it; from
 * there on it is known, as numbers of the file are.  A program that is being traced has no values: the trace ends with
 * an error that says so (sl_hybridize: .fallback). */
#include <stdlib.h>

#include "onnx/model/tensors.h"
#include "op.h"
#include "tensor/tensor.h"

struct slp_onnx_known *slp_onnx_read(struct slp_onnx_call *c, struct slp_onnx_value v)
{
	sl_tensor *t = v.t;
	if (v.known || !t || c->failed) return v.known;
	struct slp_onnx_data d = {.element = sl_tensor_dtype(t), .shape = sl_tensor_shape(t)};
	struct slp_onnx_known *k = NULL;
	d.bytes = (uint64_t)sl_tensor_size(t) * sl_dtype_size(sl_tensor_dtype(t));
	d.data = d.owned = slp_malloc(d.bytes + 1);
	if (d.owned && sl_read_at(c->at, t, d.owned, d.bytes) == SL_OK) k = slp_onnx_known_from(c->made, &d);
	free(d.owned);
	if (!k) c->failed = true; /* and recorded */
	return k;
}

bool slp_onnx_can_read(const struct slp_onnx_value *v)
{
	return v->known || (v->t && !slp_is_symbolic(1, (sl_tensor *const[]){v->t}));
}

void slp_onnx_cannot_read(struct slp_onnx_call *c, const char *what, const char *name)
{
	slp_trace_complain("%s: %s: %s (\"%.100s\") depends on values that a run computes", c->at,
	                   c->op ? c->op->name : "", what, name);
	slp_onnx_call_fail(c, SL_EUNSUPPORTED, "%s (\"%.100s\") depends on values that a run computes", what, name);
}
