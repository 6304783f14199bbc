/* ONNX operators that are read, by their names. */
#include <stdlib.h>

#include "onnx/model/call.h"

static const struct slp_onnx_op table[] = {
#define OP(onnx, name, min, max, known, attributes, ...) {#onnx, slp_onnx_import_##name, min, max, known, attributes},
#include "onnx/operators.def"
};

const struct slp_onnx_op *slp_onnx_op_find(const char *name)
{
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (!strcmp(table[i].name, name)) return &table[i];
	return NULL;
}
