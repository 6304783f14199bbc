/* Sums of values on a GPU, without main memory: the GPU's memory and kernels (gpu.c), and NCCL, which moves values
 * between processes (nccl.c).  The communicating thread calls all functions but slp_gpu_sums and slp_gpu_node. */
#ifndef SLP_DIST_GPU_H
#define SLP_DIST_GPU_H

#include "dist/transport.h"
#include "starling/tensor.h"

/* Whether this process adds values there where they lie on a GPU; on which of StarPU's memory nodes. */
bool slp_gpu_sums(void);
unsigned slp_gpu_node(void);

/* ---- gpu.c ------------------------------------------------------------------------------------------------------- */

/* Opens the first GPU for the calling thread; false: why has the reason. */
bool slp_gpu_open(char why[SLP_DIST_WHY]);
void slp_gpu_close(void);
void *slp_gpu_stream_of_sums(void);

/* Working memory, whose contents are lost when it grows; NULL: no memory. */
enum slp_gpu_room { SLP_ROOM_JOINED, SLP_ROOM_PARTS, SLP_ROOM_MAIN, SLP_ROOMS }; /* MAIN: in main memory */
void *slp_gpu_room(enum slp_gpu_room which, size_t bytes);

/* Queued; false: that failed. */
bool slp_gpu_copy(void *to, const void *from, size_t bytes);
bool slp_gpu_sum(void *to, const void *a, const void *b, size_t count, enum sl_dtype dtype);
/* Marks the work queued there, and polls it with slp_gpu_is_over: 1: done, 0: not yet, -1: failed. */
bool slp_gpu_mark(void);
int slp_gpu_is_over(void);
void slp_gpu_nap(double *seconds); /* between two looks, longer each time */
/* Waits for all work, for a bounded time; NULL, or the reason of a failure. */
const char *slp_gpu_finish(double timeout);

/* Checks that values are finite: begin, add arrays, end.  1: all are; 0: not all; -1: unknown. */
void slp_gpu_look_begin(void);
bool slp_gpu_look_at(const void *data, size_t count, enum sl_dtype dtype);
int slp_gpu_look_end(double timeout);

/* ---- nccl.c ------------------------------------------------------------------------------------------------------ */

/* All ranks start NCCL, or none does, and rank 0 reports the reason.  The first exchange of all. */
enum slp_outcome slp_nccl_meet(const struct slp_transport *transport, uint64_t number, bool fast,
                               char why[SLP_DIST_WHY]);
bool slp_nccl_prepare(const struct slp_exchange *x); /* memory for a sum; false: no memory */
/* All ranks have said that they have the values on GPUs; false: the ranks cannot go on together. */
bool slp_nccl_sum(const struct slp_exchange *x, char why[SLP_DIST_WHY]);
bool slp_nccl_broadcast(const struct slp_exchange *x, char why[SLP_DIST_WHY]); /* to all */
void slp_nccl_end(void);
/* For users: the version of the library that would be loaded, or the reason why none is. */
void slp_nccl_find(char text[SLP_DIST_WHY]);
/* "NCCL 2.27.3", or the reason why there are no sums on GPUs; NULL: not requested. */
const char *slp_nccl_state(void);

#endif
