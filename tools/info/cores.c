/* The cores of CPU teams, the limits of their number, and the threads of libraries. */
#include <stdio.h>
#include <stdlib.h>

#include "config.h"
#include "info.h"
#include "runtime/device/cores.h"
#include "runtime/device/team.h"
#include "runtime/engine.h"

static void add(json_t *o, const char *what, json_t *value)
{
	json_object_set_new(o, what, value);
}

static int threads_of_all(void)
{
	int sum = 0;
	for (int i = 0; i < slp_engine.nteams - slp_engine.nslaves; i++) sum += slp_team_threads(i);
	return sum;
}

/* The settings that reduce the cores. */
static void add_masks(json_t *o, const struct slp_cores *c)
{
	if (c->allowed < c->machine)
		add(o, "of these",
		    json_sprintf("%d: the mask of this process (taskset, a control group, a starter)", c->allowed));
	if (c->named)
		add(o, "named",
		    json_sprintf("%d: %s", c->named,
		                 getenv("STARPU_WORKERS_CPUID") ? "STARPU_WORKERS_CPUID" : "STARPU_WORKERS_COREID"));
	if (c->ranks)
		add(o, "shared", json_sprintf("with the %d unbound processes of this job on this machine", c->ranks));
	if (c->reserved) add(o, "reserved", json_sprintf("%d: STARPU_RESERVE_NCPU", c->reserved));
	if (c->taken) add(o, "taken", json_sprintf("%d: workers of GPUs, STARPU_MAIN_THREAD_BIND", c->taken));
}

/* The hardware threads of the teams' cores, but for one each. */
static int more_threads(const struct slp_cores *c)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	if (set) slp_cores_set(0, c->count, set);
	int n = set ? hwloc_bitmap_weight(set) - c->count : 0;
	hwloc_bitmap_free(set);
	return n > 0 ? n : 0;
}

/* The settings that reduce the threads, or add some. */
static void add_limits(json_t *o, const struct slp_cores *c)
{
	if (c->quota > 0) add(o, "quota", json_sprintf("%.1f CPUs: a control group", c->quota));
	if (c->openmp_threads) add(o, "OMP_NUM_THREADS", json_integer(c->openmp_threads));
	if (c->thread_limit) add(o, "OMP_THREAD_LIMIT", json_integer(c->thread_limit));
	if (c->team_threads) add(o, "SL_TEAM_THREADS", json_integer(c->team_threads));
	if (!c->team_threads && more_threads(c))
		add(o, "left out",
		    json_sprintf("%d hardware threads: a team has a thread for each core (SL_TEAM_THREADS)",
		                 more_threads(c)));
	add(o, "masks",
	    json_string(c->openmp_binds ? "OpenMP binds threads (OMP_PROC_BIND): each task sets them right again"
	                                : "a team's threads have that of the team"));
}

json_t *info_cores(void)
{
	const struct slp_cores *c = slp_cores();
	json_t *o = json_object();
	add(o, "machine", json_sprintf("%d cores, %d hardware threads", c->machine, c->hardware_threads));
	add_masks(o, c);
	add(o, "for teams", json_sprintf("%d cores, %d NUMA nodes", c->count, c->nodes));
	add_limits(o, c);
	add(o, "threads of teams", json_integer(threads_of_all()));
	if (slp_team_by_llvm()) add(o, "OpenMP", json_string("LLVM's"));
#ifdef HAVE_ONEDNN
	add(o, "threads of oneDNN", json_string("those of the team"));
#endif
#ifdef HAVE_OPENBLAS
	add(o, "threads of OpenBLAS", json_string("those of the team, a block each; it has none of its own"));
#endif
	return o;
}

/* Whether the first team, at least, has cores of several NUMA nodes. */
static bool spans_nodes(void)
{
	hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
	if (nodes) slp_team_nodes(0, nodes);
	bool several = nodes && hwloc_bitmap_weight(nodes) > 1;
	hwloc_bitmap_free(nodes);
	return several;
}

void info_cores_hints(json_t *hints)
{
	const struct slp_cores *c = slp_cores();
	int threads = threads_of_all();
	if (c->quota > 0 && threads > c->quota + 0.5)
		add(hints, "quota",
		    json_sprintf("teams have %d threads on %.1f CPUs: the system stops them all now and then", threads,
		                 c->quota));
	if (threads > c->count)
		add(hints, "teams",
		    json_sprintf("%d threads on %d cores: they wait for each other", threads, c->count));
	if (slp_engine.nteams > slp_engine.nslaves && spans_nodes())
		add(hints, "STARPU_NCPU",
		    json_sprintf("%d gives each NUMA node a team of its own, whose values stay in its memory",
		                 c->nodes));
	if (c->openmp_binds)
		add(hints, "OMP_PROC_BIND",
		    json_string("not needed: teams have cores of their own; without it tasks begin sooner"));
	const char *few = c->openmp_threads ? "OMP_NUM_THREADS" : c->thread_limit ? "OMP_THREAD_LIMIT" : NULL;
	if (few && threads < c->count && !c->team_threads)
		add(hints, few, json_sprintf("leaves %d of %d cores idle", c->count - threads, c->count));
}
