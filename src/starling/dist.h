/* Several processes, on one machine or many, that train one network together (doc/distributed.md); programs that need
 * this header include it beside starling.h.  A process takes part if .dist of sl_config or SL_DIST is set.  Otherwise
 * all functions still work: the process is rank 0 of 1.  Errors are reported as base.h describes.  Besides the
 * documented ones, every exchange may return SL_EIO: a process has died, stopped, or did not arrive in time; and
 * SL_ESTATE: the processes make different calls.  The message names the rank. */
#ifndef STARLING_DIST_H
#define STARLING_DIST_H

#include <starling/data.h>
#include <starling/nn.h>

#pragma GCC system_header
#ifdef __cplusplus
extern "C" {
#endif

SL_API int sl_dist_rank(void);
SL_API int sl_dist_size(void);
SL_API enum sl_status sl_dist_barrier_at(const char *at);
#define sl_dist_barrier() sl_dist_barrier_at(SL_HERE)
SL_API enum sl_status sl_dist_sum_at(const char *at, sl_tensor *t);
#define sl_dist_sum(t) sl_dist_sum_at(SL_HERE, t)
SL_API enum sl_status sl_dist_broadcast_at(const char *at, sl_block *block);
#define sl_dist_broadcast(block) sl_dist_broadcast_at(SL_HERE, block)

SL_API void sl_dist_local(sl_trainer *trainer);
SL_API enum sl_status sl_dist_share_at(const char *at, sl_loader *loader);
#define sl_dist_share(loader) sl_dist_share_at(SL_HERE, loader)

/* The cost of exchanges for this process since sl_init. */
struct sl_dist_info {
	int rank, size;
	uint64_t exchanges, bytes_sent;
	double seconds;     /* time with an exchange in flight, including waits for other processes */
	double cpu_seconds; /* processor time of the communicating thread and the threads that add for it */
	const char
	        *gpu_sums; /* "NCCL 2.27.3" if NCCL adds gradients on GPUs; or the reason if not; NULL: not requested */
};
SL_API struct sl_dist_info sl_dist_info(void);

#ifdef __cplusplus
}
#endif
#endif
