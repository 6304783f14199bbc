/* What the parts of gpu_probe share (gpu_probe.c). */
#ifndef GPU_PROBE_H
#define GPU_PROBE_H

#include <cuda_runtime_api.h>

#include "cuda_libs.h"
#include "starling.h"

double now(void);                     /* s */
void must(bool ok, const char *what); /* else ends the process with that message */
void cuda(cudaError_t e, const char *what);
#define CUDA(call) cuda(call, #call)
void well(enum sl_status s, const char *what);
void *device_memory(size_t bytes);
cudaStream_t stream_new(void);
cudnnHandle_t dnn_handle(cudaStream_t s);

/* gpu_probe_conv.c */
void probe_convolutions(void);
void probe_layouts(void);

#endif
