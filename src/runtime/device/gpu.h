/* The GPU of the calling worker: its libraries' handles, its stream (gpu.c). */
#ifndef SLP_GPU_H
#define SLP_GPU_H

#include <stdbool.h>
#include <stddef.h>

void slp_gpu_shutdown(void); /* destroys the library handles of each worker */
/* Bytes of a GPU's memory that its libraries get from here, beside StarPU's handles. */
size_t slp_gpu_own_bytes(int gpu);
void *slp_gpu_stream(void);
void slp_gpu_wait(void); /* until the worker's stream has done all */

#endif
