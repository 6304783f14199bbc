/* The description of most operations: one result, kernels that are named after it. */
#ifndef SLP_DESCRIBE_H
#define SLP_DESCRIBE_H

#include "op.h"

/* ...: what else is to be said of it; the data types of the CUDA kernel, at least. */
#define SLP_DESCRIBE(op_name, about, inputs, count, ...)                                                               \
	const struct sl_op slp_op_##op_name = {                                                                        \
	        .name = #op_name,                                                                                      \
	        .doc = about,                                                                                          \
	        .args = inputs,                                                                                        \
	        .nin = count,                                                                                          \
	        .nout = 1,                                                                                             \
	        .cpu_dtypes = SLP_DTYPE(SL_FLOAT32),                                                                   \
	        .ref = op_name##_ref,                                                                                  \
	        .cpu = op_name##_cpu,                                                                                  \
	        .cuda = SLP_CUDA(slp_cuda_##op_name),                                                                  \
	        __VA_ARGS__                                                                                            \
	}

#endif
