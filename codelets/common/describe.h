/* The description of most operations: one result, kernels that are named after it. */
#ifndef SLP_DESCRIBE_H
#define SLP_DESCRIBE_H

#include "op.h"

/* ...: what else is to be said of it; its rows, at least. */
/* clang-format off */
#define SLP_DESCRIBE(op_name, about, inputs, count, ...)                                                               \
	const struct sl_op slp_op_##op_name = {                                                                        \
	        .name = #op_name,                                                                                      \
	        .doc = about,                                                                                          \
	        .args = inputs,                                                                                        \
	        SLP_NIN(count),                                                                                        \
	        .nout = 1,                                                                                             \
	        .ref = op_name##_ref,                                                                                  \
	        __VA_ARGS__                                                                                            \
	}
/* clang-format on */

#endif
