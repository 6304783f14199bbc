/* Statistics: counters of the runtime, and StarPU's. */
#include <string.h>

#include "alloc.h"
#include "number.h"
#include "runtime/compat.h"
#include "runtime/forked.h"
#include "runtime/memory/arena.h"
#include "runtime/memory/runahead.h"
#include "runtime/memory/spill.h"
#include "runtime/observe/energy.h"
#include "runtime/observe/stats.h"
#include "starling/base.h"

static struct {
	pthread_mutex_t lock;
	size_t node_peak[SL_MAX_NODES];
	uint64_t link_bytes[SL_MAX_NODES][SL_MAX_NODES];
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};
SLP_FORK_MUTEX(seen.lock);

static int nodes(void)
{
	int n = (int)starpu_memory_nodes_get_count();
	return n < SL_MAX_NODES ? n : SL_MAX_NODES;
}

/* StarPU forgets a link's bytes when they are read: they are added up here. */
static void read_links(int n)
{
	struct starpu_profiling_bus_info info;
	for (int i = 0, count = starpu_bus_get_count(); i < count; i++) {
		int from = starpu_bus_get_src(i), to = starpu_bus_get_dst(i);
		if (from < 0 || to < 0 || from >= n || to >= n) continue;
		starpu_bus_get_profiling_info(i, &info);
		seen.link_bytes[from][to] += (uint64_t)info.transferred_bytes;
	}
}

void slp_stats_links(void)
{
	pthread_mutex_lock(&seen.lock);
	read_links(nodes());
	pthread_mutex_unlock(&seen.lock);
}

/* Looks at the memory of each node.  Called now and then by submission: peaks are sampled, not exact. */
void slp_stats_sample(void)
{
	slp_energy_sample();
	pthread_mutex_lock(&seen.lock);
	for (int i = 0, n = nodes(); i < n; i++) {
		size_t used = slp_node_used((unsigned)i);
		if (used > seen.node_peak[i]) seen.node_peak[i] = used;
	}
	pthread_mutex_unlock(&seen.lock);
}

/* Fills the caller's stats with the statistics since sl_init or sl_stats_reset.  Does not wait: call sl_wait_all first
 * to include all calls.  node_peak is sampled; link_bytes counts StarPU's transfers.  Without a running engine, nodes
 * is 0.  No effect if stats is NULL. */
void sl_stats_get(struct sl_stats *stats)
{
	SLP_CALL("sl_stats_get", NULL);
	if (!stats) return;
	memset(stats, 0, sizeof *stats);
#define X(name) uint64_t name = atomic_load(&slp_counters.name);
	SLP_COUNTERS(X)
#undef X
	*stats = (struct sl_stats){.ops = ops,
	                           .segments = segments,
	                           .finished = finished,
	                           .faults = faults,
	                           .skipped = skipped,
	                           .stalls = stalls,
	                           .stall_seconds = 1e-9 * (double)stall_ns,
	                           .recycled = recycled,
	                           .overflows = overflows,
	                           .graphs = graphs,
	                           .graph_launches = graph_launches,
	                           .graph_changes = graph_changes,
	                           .graph_refusals = graph_refusals,
	                           .plans = plans};
	stats->handles = atomic_load(&slp_counters.handles);
	stats->pending_tasks = (uint64_t)slp_runahead_pending();
	stats->peak_tasks = atomic_load(&slp_counters.peak_tasks);
	stats->bytes = atomic_load(&slp_counters.bytes);
	stats->peak_bytes = atomic_load(&slp_counters.peak_bytes);
	stats->scratch_bytes = atomic_load(&slp_counters.scratch);
	stats->loss_scale = atomic_load(&slp_counters.loss_scale);
	struct slp_spill_counts spill = slp_spill_counts();
	stats->spill_written = spill.written;
	stats->spill_read = spill.read;
	stats->spill_waited = spill.waited;
	if (!sl_is_initialized()) return;
	slp_stats_sample();
	pthread_mutex_lock(&seen.lock);
	stats->nodes = nodes();
	read_links(stats->nodes);
	memcpy(stats->node_peak, seen.node_peak, sizeof seen.node_peak);
	memcpy(stats->link_bytes, seen.link_bytes, sizeof seen.link_bytes);
	pthread_mutex_unlock(&seen.lock);
}

/* Resets the counts; existing memory and tasks still count, and peaks start from them. */
void sl_stats_reset(void)
{
	SLP_CALL("sl_stats_reset", NULL);
#define X(name) atomic_store(&slp_counters.name, 0);
	SLP_COUNTERS(X)
#undef X
	atomic_store(&slp_counters.peak_bytes, atomic_load(&slp_counters.bytes));
	atomic_store(&slp_counters.peak_tasks, 0);
	atomic_store(&slp_counters.planned_out, 0);
	atomic_store(&slp_counters.planned_in, 0);
	atomic_store(&slp_counters.planned_us, 0);
	atomic_store(&slp_counters.exposed_us, 0);
	atomic_store(&slp_counters.limited_us, 0);
	atomic_store(&slp_counters.waited_us, 0);
	pthread_mutex_lock(&seen.lock);
	if (sl_is_initialized()) read_links(nodes());
	memset(seen.node_peak, 0, sizeof seen.node_peak);
	memset(seen.link_bytes, 0, sizeof seen.link_bytes);
	pthread_mutex_unlock(&seen.lock);
}

static void print_joules(FILE *file, const char *what, double joules, const char *why)
{
	if (*why) slp_fprintf(file, "energy of the %s: unknown: %s\n", what, why);
	else slp_fprintf(file, "energy of the %s: %.3f J\n", what, joules);
}

/* If it is counted. */
static void print_energy(FILE *file)
{
	struct sl_energy e;
	sl_energy_get(&e);
	if (!(e.seconds > 0)) return;
	print_joules(file, "processors", e.cpu, e.no_cpu);
	print_joules(file, "GPUs", e.gpu, e.no_gpu);
}

/* Bytes that StarPU has copied between main memory and GPUs: all, planned or not. */
static double copied(const struct sl_stats *s, bool out)
{
	double bytes = 0;
	for (int i = 0; i < s->nodes; i++)
		for (int j = 0; j < s->nodes; j++) {
			bool from_main = starpu_node_get_kind((unsigned)i) == STARPU_CPU_RAM,
			     to_main = starpu_node_get_kind((unsigned)j) == STARPU_CPU_RAM;
			if (from_main != to_main && to_main == out) bytes += (double)s->link_bytes[i][j];
		}
	return bytes;
}

static double seconds_of(const _Atomic uint64_t *microseconds)
{
	return 1e-6 * (double)atomic_load(microseconds);
}

/* If there were limits of memory. */
static void print_planned(FILE *file, const struct sl_stats *s)
{
	enum { MIB = 1 << 20 };
	uint64_t out = atomic_load(&slp_counters.planned_out), in = atomic_load(&slp_counters.planned_in);
	if (!out && !in) return;
	double all = seconds_of(&slp_counters.planned_us), exposed = seconds_of(&slp_counters.exposed_us);
	slp_fprintf(
	        file,
	        "copies planned for limits of memory: %.1f MiB to main memory, %.1f MiB to GPUs; copied in all: %.1f "
	        "and %.1f MiB\n",
	        (double)out / MIB, (double)in / MIB, copied(s, true) / MIB, copied(s, false) / MIB);
	slp_fprintf(file, "planned: copies take %.3f s, of which %.3f s are hidden; operations wait %.3f s for them\n",
	            all, all > exposed ? all - exposed : 0, exposed);
	slp_fprintf(file, "measured: operations take %.3f s; GPUs wait %.3f s between them; allocations on GPUs: %lu\n",
	            seconds_of(&slp_counters.limited_us), seconds_of(&slp_counters.waited_us), slp_arena_allocations());
}

/* If values were spilled. */
static void print_spill(FILE *file)
{
	struct slp_spill_counts c = slp_spill_counts();
	if (!c.written && !c.read) return;
	slp_fprintf(file,
	            "spill file: %.1f MiB written in %.3f s, %.1f MiB read in %.3f s; tasks waited %.3f s for values\n",
	            (double)c.written / 1048576, c.write_seconds, (double)c.read / 1048576, c.read_seconds, c.waited);
}

/* Prints the statistics, one on each line; sizes in MiB.  No effect if file is NULL. */
void sl_stats_print(FILE *file)
{
	if (!file) return;
	struct sl_stats s;
	sl_stats_get(&s);
	slp_fprintf(file, "ops %llu in %llu tasks (%llu finished, at most %llu at a time), %llu failed, %llu skipped\n",
	            (unsigned long long)s.ops, (unsigned long long)s.segments, (unsigned long long)s.finished,
	            (unsigned long long)s.peak_tasks, (unsigned long long)s.faults, (unsigned long long)s.skipped);
	slp_fprintf(file, "run-ahead waited %llu times, %.3f s\n", (unsigned long long)s.stalls, s.stall_seconds);
	slp_fprintf(file,
	            "handles %llu, recycled %llu times; buffers %.1f MiB, at most %.1f MiB; "
	            "scratch %.1f MiB a worker\n",
	            (unsigned long long)s.handles, (unsigned long long)s.recycled, (double)s.bytes / 1048576,
	            (double)s.peak_bytes / 1048576, (double)s.scratch_bytes / 1048576);
	if (s.loss_scale != 0)
		slp_fprintf(file, "losses scaled by %g; %llu steps left out, whose gradients had overflowed\n",
		            s.loss_scale, (unsigned long long)s.overflows);
	if (s.plans) slp_fprintf(file, "programs compiled: %llu\n", (unsigned long long)s.plans);
	if (s.graphs || s.graph_refusals)
		slp_fprintf(file,
		            "CUDA graphs: %llu made, %llu launched, %llu calls in them recorded again; %llu tasks "
		            "without\n",
		            (unsigned long long)s.graphs, (unsigned long long)s.graph_launches,
		            (unsigned long long)s.graph_changes, (unsigned long long)s.graph_refusals);
	print_planned(file, &s);
	print_spill(file);
	for (int i = 0; i < s.nodes; i++) {
		slp_fprintf(file, "memory node %d: at most %.1f MiB", i, (double)s.node_peak[i] / 1048576);
		for (int j = 0; j < s.nodes; j++)
			if (s.link_bytes[i][j])
				slp_fprintf(file, ", to node %d %.1f MiB", j, (double)s.link_bytes[i][j] / 1048576);
		fputc('\n', file);
	}
	print_energy(file);
}
