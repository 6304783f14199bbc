/* Which kernels compute each data type on the kinds of devices that are present, from the rows of the operations. */
#include <starling/tensor.h>

#include "info.h"
#include "op_inner.h"
#include "op_list/conv.h"
#include "op_list/linear.h"
#include "runtime/engine.h"

enum way { OWN, FLOAT32, REFERENCE, NONE, WAYS };

static enum way way_of(const struct sl_op *op, enum sl_dtype dtype, enum sl_device_kind device)
{
	struct slp_types types = {SLP_DTYPE(dtype), slp_is_float(dtype) ? SLP_DTYPE(dtype) : 0};
	struct slp_choice c = slp_kernel_for(op, types, device);
	return !c.kernel ? NONE : c.promote ? FLOAT32 : c.kernel == op->ref ? REFERENCE : OWN;
}

static json_t *text_of(const struct sl_op *op, enum sl_dtype dtype, enum sl_device_kind device)
{
	static const char *const texts[WAYS] = {
	        [OWN] = "native", [FLOAT32] = "promoted to float32", [REFERENCE] = "plain C", [NONE] = "not taken"};
	return json_string(texts[way_of(op, dtype, device)]);
}

static json_t *type_on(enum sl_dtype dtype, enum sl_device_kind device)
{
	int count[WAYS] = {0};
	for (int i = 0; i < slp_op_count(); i++) count[way_of(slp_ops[i], dtype, device)]++;
	return json_pack("{s:s, s:s, s:o, s:o, s:i, s:i, s:i, s:i}", "type", sl_dtype_name(dtype), "device",
	                 device == SL_DEVICE_GPU ? "gpu" : "cpu", "products", text_of(&slp_op_dot, dtype, device),
	                 "convolutions", text_of(&slp_op_conv2d, dtype, device), "native", count[OWN], "plain C",
	                 count[REFERENCE], "promoted", count[FLOAT32], "not taken", count[NONE]);
}

json_t *info_types(void)
{
	json_t *list = json_array();
	for (int d = SL_DTYPE_DEFAULT + 1; d < SL_DTYPE_COUNT; d++) {
		json_array_append_new(list, type_on((enum sl_dtype)d, SL_DEVICE_CPU));
		if (slp_engine.ngpus) json_array_append_new(list, type_on((enum sl_dtype)d, SL_DEVICE_GPU));
	}
	return list;
}
