/* The GPU of the calling worker: its libraries' handles, its stream (gpu.c). */
#ifndef SLP_GPU_H
#define SLP_GPU_H

#include <stdbool.h>

void slp_gpu_shutdown(void); /* destroys the library handles of each worker */
void *slp_gpu_stream(void);
void slp_gpu_wait(void); /* until the worker's stream has done all */

#endif
