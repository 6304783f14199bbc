/* Sums of values that lie on a GPU, without a way through main memory: memory and work of the GPU (gpu.c), and NCCL,
 * which moves them between processes (nccl.c).  All but slp_gpu_sums and slp_gpu_node are called by the communicating
 * thread. */
#ifndef SLP_DIST_GPU_H
#define SLP_DIST_GPU_H

#include "dist/transport.h"
#include "starling/tensor.h"

/* Whether this process adds values there where they lie on a GPU; on which of StarPU's memory nodes. */
bool slp_gpu_sums(void);
unsigned slp_gpu_node(void);

/* ---- gpu.c ------------------------------------------------------------------------------------------------------- */

/* The first GPU, for the calling thread; false: why says what is missing. */
bool slp_gpu_open(char why[SLP_DIST_WHY]);
void slp_gpu_close(void);
void *slp_gpu_stream_of_sums(void);

/* Memory to work in, whose contents are lost when it grows; NULL: there is none. */
enum slp_gpu_room { SLP_ROOM_JOINED, SLP_ROOM_PARTS, SLP_ROOM_MAIN, SLP_ROOMS }; /* MAIN: in main memory */
void *slp_gpu_room(enum slp_gpu_room which, size_t bytes);

/* Queued; false: that failed. */
bool slp_gpu_copy(void *to, const void *from, size_t bytes);
bool slp_gpu_sum(void *to, const void *a, const void *b, size_t count, enum sl_dtype dtype);
/* What is queued there will be over; asked again and again, by slp_gpu_is_over: 1: it is, 0: not yet, -1: it failed. */
bool slp_gpu_mark(void);
int slp_gpu_is_over(void);
void slp_gpu_nap(double *seconds); /* between two looks, longer each time */
/* Waits for all, for a bounded time; NULL, or what went wrong. */
const char *slp_gpu_finish(double timeout);

/* Whether values are finite: begin, add to what is looked at, end.  1: all are; 0: not all; -1: that is not known. */
void slp_gpu_look_begin(void);
bool slp_gpu_look_at(const void *data, size_t count, enum sl_dtype dtype);
int slp_gpu_look_end(double timeout);

/* ---- nccl.c ------------------------------------------------------------------------------------------------------ */

/* All ranks start NCCL, or none does, and rank 0 says why.  The first exchange of all. */
enum slp_outcome slp_nccl_meet(const struct slp_transport *transport, uint64_t number, bool fast,
                               char why[SLP_DIST_WHY]);
bool slp_nccl_prepare(const struct slp_exchange *x); /* memory for a sum; false: there is none */
/* All ranks have said that they have the values on GPUs; false: the ranks cannot go on together. */
bool slp_nccl_sum(const struct slp_exchange *x, char why[SLP_DIST_WHY]);
bool slp_nccl_broadcast(const struct slp_exchange *x, char why[SLP_DIST_WHY]); /* to all */
void slp_nccl_end(void);
/* For people: the version of the library that would be loaded, or why there is none. */
void slp_nccl_find(char text[SLP_DIST_WHY]);
/* "NCCL 2.27.3", or why there are no sums on GPUs; NULL: nobody has asked for any. */
const char *slp_nccl_state(void);

#endif
