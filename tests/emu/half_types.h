/* Emulated GPUs: elements of the types that cuDNN is given, by the conversions of CUDA's headers, not by ours. */
#ifndef EMU_HALF_TYPES_H
#define EMU_HALF_TYPES_H

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cudnn.h>

static inline bool emu_is_half(cudnnDataType_t type)
{
	return type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16;
}

/* float32 or a half type. */
static inline float emu_load(cudnnDataType_t type, const void *from, int64_t i)
{
	if (type == CUDNN_DATA_HALF) return ((const __half *)from)[i];
	return type == CUDNN_DATA_BFLOAT16 ? (float)((const __nv_bfloat16 *)from)[i] : ((const float *)from)[i];
}

static inline void emu_store(cudnnDataType_t type, void *to, int64_t i, float x)
{
	if (type == CUDNN_DATA_HALF) ((__half *)to)[i] = x;
	else if (type == CUDNN_DATA_BFLOAT16) ((__nv_bfloat16 *)to)[i] = x;
	else ((float *)to)[i] = x;
}

#endif
