/* Statistics: counters of the runtime (state.c, stats.c). */
#ifndef SLP_STATS_H
#define SLP_STATS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* X(name): counters of struct sl_stats that are counted up from anywhere. */
/* clang-format off */
#define SLP_COUNTERS(X) X(ops) X(segments) X(finished) X(faults) X(skipped) X(stalls) X(stall_ns) X(recycled) X(overflows) \
	X(graphs) X(graph_launches) X(graph_changes) X(graph_refusals) X(plans)
/* clang-format on */
struct slp_counters {
#define X(name) _Atomic uint64_t name;
	SLP_COUNTERS(X)
#undef X
	_Atomic size_t bytes, peak_bytes, scratch;
	_Atomic uint64_t handles, peak_tasks;
	_Atomic uint64_t planned_out,
	        planned_in; /* bytes that programs with a limit of memory copy from GPUs, and to them */
	_Atomic uint64_t planned_us, exposed_us; /* microseconds of these copies; in which operations wait for them */
	_Atomic uint64_t limited_us,
	        waited_us;         /* as measured: of these programs' tasks; of GPUs without one in between */
	_Atomic double loss_scale; /* of the trainer that made a step last; 0: none scales */
};
extern struct slp_counters slp_counters;
#define SLP_COUNT(name) atomic_fetch_add_explicit(&slp_counters.name, 1, memory_order_relaxed)
void slp_stats_bytes(long change);
void slp_stats_sample(void);
void slp_stats_links(void); /* adds up what StarPU has counted of each link so far */

#endif
