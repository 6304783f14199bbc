/* The table of MXNet's operators. */
#include <string.h>

#include "mxnet/export_operators.h"
#include "mxnet/import_operators.h"
#include "op_list/all.h"

static const struct slp_mx_op ops[] = {
#define BOTH(mxnet, ours, min, max, in, out)                                                                           \
	{#mxnet, &slp_op_##ours, min, max, 0, slp_mx_import_##in, slp_mx_export_##out},
#define READ(mxnet, min, max, in) {#mxnet, NULL, min, max, 0, slp_mx_import_##in, NULL},
#define TRAIN(mxnet, in) {#mxnet, NULL, 1, 2, 1, slp_mx_import_##in, NULL},
#define WRITE(ours, out) {NULL, &slp_op_##ours, 0, 0, 0, NULL, slp_mx_export_##out},
/* clang-format off */
#define SAME(mxnet, ours, inputs)                                                                                      \
	{#mxnet, &slp_op_##ours, inputs, inputs, 0, slp_mx_import_plain, slp_mx_export_plain},
/* clang-format on */
#define ALSO(mxnet, ours, inputs) {#mxnet, &slp_op_##ours, inputs, inputs, 0, slp_mx_import_plain, NULL},
#define SCALAR(mxnet, ours) {#mxnet, &slp_op_##ours, 1, 1, 0, slp_mx_import_scalar, slp_mx_export_scalar},
#define SCALAR_ALSO(mxnet, ours) {#mxnet, &slp_op_##ours, 1, 1, 0, slp_mx_import_scalar, NULL},
#include "mxnet/operators.def"
};

const struct slp_mx_op *slp_mx_op_find(const char *name)
{
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
		if (ops[i].name && !strcmp(ops[i].name, name)) return &ops[i];
	return NULL;
}

const struct slp_mx_op *slp_mx_op_for(const struct sl_op *ours)
{
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
		if (ops[i].export && ops[i].ours == ours) return &ops[i];
	return NULL;
}
