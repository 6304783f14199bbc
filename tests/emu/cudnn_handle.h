/* Emulated GPUs: cuDNN's handle, for cudnn.cc and cudnn_graph.cc. */
#ifndef EMU_CUDNN_HANDLE_H
#define EMU_CUDNN_HANDLE_H

#define NV_CUDNN_DISABLE_DEPRECATED_WARNINGS
#include <cudnn.h>

struct cudnnContext {
	cudaStream_t stream;
	int device;
};

void emu_check_plans(void); /* a handle of the calling thread is destroyed */

#endif
