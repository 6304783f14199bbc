/* The table of operations, from their descriptors (codelets/). */
#include <starling/tensor.h>

#include "info.h"
#include "op.h"

/* The types that an operation has separate kernels for. */
static json_t *dtypes(const struct sl_op *op, bool cuda)
{
	json_t *list = json_array();
	for (int i = SL_DTYPE_DEFAULT + 1; i < SL_DTYPE_COUNT; i++) {
		bool any = false;
		for (const struct slp_row *row = op->rows; row && row->types; row++)
			any |= row->types & SLP_DTYPE(i) &&
			       (cuda ? row->cuda != NULL : row->cpu && row->cpu != op->ref);
		if (any) json_array_append_new(list, json_string(sl_dtype_name((enum sl_dtype)i)));
	}
	return list;
}

static json_t *attributes(const struct sl_op *op)
{
	static const char *const kinds[] = {
	        [SLP_INT] = "int", [SLP_INT64] = "int64", [SLP_DOUBLE] = "double", [SLP_BOOL] = "bool"};
	json_t *list = json_array();
	for (const struct slp_attr *a = op->attr_table; a && a->name; a++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:s}", "name", a->name, "type", kinds[a->kind],
		                                      "count", (int)a->count, "doc", a->doc ? a->doc : ""));
	return list;
}

json_t *info_ops(void)
{
	json_t *list = json_array();
	for (int i = 0; i < slp_op_count(); i++) {
		const struct sl_op *op = slp_ops[i];
		json_array_append_new(list,
		                      json_pack("{s:s, s:s, s:s, s:i, s:b, s:b, s:o, s:o, s:o}", "name", op->name,
		                                "doc", op->doc ? op->doc : "", "inputs", op->args ? op->args : "",
		                                "outputs", op->nout, "gradient", op->grad && op->grad != slp_constant,
		                                "in place", op->inplace, "fast on CPUs", dtypes(op, false),
		                                "CUDA kernels", dtypes(op, true), "attributes", attributes(op)));
	}
	return list;
}

void info_print_ops(const json_t *ops)
{
	size_t i, k;
	json_t *op, *a;
	json_array_foreach(ops, i, op)
	{
		const char *inputs = json_string_value(json_object_get(op, "inputs"));
		printf("%s(%s)%s\n    %s\n", json_string_value(json_object_get(op, "name")), inputs,
		       json_is_true(json_object_get(op, "gradient")) ? "" : "  [no gradient]",
		       json_string_value(json_object_get(op, "doc")));
		json_array_foreach(json_object_get(op, "attributes"), k, a)
		        printf("    .%s  %s\n", json_string_value(json_object_get(a, "name")),
		               json_string_value(json_object_get(a, "doc")));
	}
}
