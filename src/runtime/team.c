/* CPU teams: the cores of the machine are dealt out to the CPU workers; a worker's kernels run on all cores of its
 * team.  StarPU binds a worker to one core and threads inherit that mask, so it is widened before the first one. */
#include <hwloc.h>
#include <omp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/simulate.h"

static struct {
	pthread_once_t once;
	hwloc_topology_t topology;
	int cores; /* that this process may use */
} machine = {.once = PTHREAD_ONCE_INIT};

static _Thread_local int team_size; /* 0: this thread has not entered its team yet */
static _Thread_local int team_index;
static _Thread_local int64_t used_until; /* the team's threads may poll for work, in ms */

void slp_team_stacks(void)
{
	enum { LEAST = 2 << 20 };
	pthread_attr_t a;
	size_t bytes;
	if (pthread_getattr_default_np(&a)) return;
	if (!pthread_attr_getstacksize(&a, &bytes) && bytes < LEAST && !pthread_attr_setstacksize(&a, LEAST))
		(void)pthread_setattr_default_np(&a); /* the small ones may do */
	pthread_attr_destroy(&a);
}

static void machine_load(void)
{
#ifdef SLP_SIMULATION
	machine.cores = slp_simulated_cores();
	return;
#endif
	machine.cores = 1;
	if (hwloc_topology_init(&machine.topology)) return;
	hwloc_topology_set_all_types_filter(machine.topology, HWLOC_TYPE_FILTER_KEEP_NONE); /* looking takes time */
	hwloc_topology_set_type_filter(machine.topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
	if (hwloc_topology_load(machine.topology)) return;
	hwloc_cpuset_t allowed = hwloc_bitmap_alloc();
	if (!allowed) return;
	if (hwloc_get_cpubind(machine.topology, allowed, HWLOC_CPUBIND_PROCESS))
		hwloc_bitmap_copy(allowed, hwloc_topology_get_allowed_cpuset(machine.topology));
	hwloc_topology_restrict(machine.topology, allowed, 0);
	int cores = hwloc_get_nbobjs_by_type(machine.topology, HWLOC_OBJ_CORE);
	if (cores > 0) machine.cores = cores;
	hwloc_bitmap_free(allowed);
}

int slp_team_cores_total(void)
{
	pthread_once(&machine.once, machine_load);
	return machine.cores;
}

/* The first core of team i, and how many it has; teams share cores where there are more teams than cores. */
static int team_range(int team, int teams, int *count)
{
	int cores = slp_team_cores_total();
	int first = team * cores / teams, end = (team + 1) * cores / teams;
	*count = end > first ? end - first : 1;
#ifdef SLP_ONE_THREAD /* ThreadSanitizer does not see how OpenMP's threads wait for each other */
	*count = 1;
#endif
	return first;
}

int slp_team_cores(int team)
{
	int count;
	team_range(team, slp_engine.nteams - slp_engine.nslaves, &count);
	return count;
}

/* Binds the calling thread to `count` cores from `first` on.  A mask that cannot be set costs only speed. */
static void bind_to(int first, int count)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	if (!set) return;
	for (int i = first; i < first + count; i++) {
		hwloc_obj_t core = hwloc_get_obj_by_type(machine.topology, HWLOC_OBJ_CORE, (unsigned)i);
		if (core) hwloc_bitmap_or(set, set, core->cpuset);
	}
	if (!hwloc_bitmap_iszero(set)) hwloc_set_cpubind(machine.topology, set, HWLOC_CPUBIND_THREAD);
	hwloc_bitmap_free(set);
}

/* Gives each thread of the team a core of its own, or, where the user wants no binding, all of them to all. */
static void bind_team(int first, int count)
{
	bind_to(first, count); /* before the team's threads start: they inherit it */
	const char *nobind = getenv("STARPU_WORKERS_NOBIND");
	if (nobind && strcmp(nobind, "0")) return;
#pragma omp parallel num_threads(count)
	bind_to(first + omp_get_thread_num(), 1);
}

static int my_team(void)
{
	int worker = starpu_worker_get_id();
	for (int i = 0; i < slp_engine.nteams; i++)
		if (slp_engine.team_worker[i] == worker) return i;
	return -1;
}

void slp_team_enter(void)
{
	if (team_size) return;
	int team = my_team(), count = 1, teams = slp_engine.nteams - slp_engine.nslaves;
	if (team >= 0) {
		int first = team_range(team, teams, &count);
		if (slp_team_cores_total() > teams) bind_team(first, count); /* else StarPU bound it well */
	}
	omp_set_num_threads(count);
	team_size = count;
	team_index = team;
}

int slp_team_index(void)
{
	return team_index;
}

int slp_team_size(void)
{
	return team_size ? team_size : 1;
}

/* OpenMP's threads poll for some milliseconds after each parallel region, then sleep. */
enum { POLLING_MS = 20 };

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void slp_team_used(void)
{
	used_until = now_ms() + POLLING_MS;
}

bool slp_team_polls(void)
{
	return team_size > 1 && now_ms() <= used_until;
}

/* Threads that sleep are left asleep: this would wake them. */
void slp_team_yield(void)
{
	if (!slp_team_polls()) {
		sched_yield();
		return;
	}
	atomic_fetch_add_explicit(&slp_idle_counts.team_yields, 1, memory_order_relaxed);
#pragma omp parallel num_threads(team_size)
	sched_yield();
}

void slp_parallel_for(int64_t n, int64_t grain, void (*fn)(void *arg, int64_t begin, int64_t end), void *arg)
{
	if (n <= 0) return;
	int64_t chunks = (n + grain - 1) / grain;
	int threads = slp_team_size();
	if (threads > chunks) threads = (int)chunks;
	if (threads <= 1 || omp_in_parallel()) {
		fn(arg, 0, n);
		return;
	}
	slp_team_used();
#pragma omp parallel num_threads(threads)
	{
		int t = omp_get_thread_num(), all = omp_get_num_threads();
		int64_t begin = chunks * t / all * grain, end = chunks * (t + 1) / all * grain;
		if (end > n) end = n;
		if (begin < end) fn(arg, begin, end);
	}
}
