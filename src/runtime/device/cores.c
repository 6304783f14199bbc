/* The cores of the machine that this process may use: its mask, the cores that variables name or reserve, its part where
 * the processes of a job share a machine unbound.  A control group's quota and OMP_NUM_THREADS limit the number of
 * threads but do not change the mask, so the system chooses idle cores. */
#include "config.h"
#include "runtime/compat.h"
#include "runtime/device/cores.h"
#include "runtime/engine.h"
#include "runtime/settings/environment.h"

#include <ctype.h>
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/memory/cgroup.h"
#include "runtime/simulation/simulate.h"

struct core {
	hwloc_bitmap_t set; /* its hardware threads that the process may use */
	int node;           /* of hwloc's */
	int place;          /* of the node among those with cores for teams */
};

static struct {
	pthread_once_t once;
	hwloc_topology_t topology; /* NULL: none could be read */
	hwloc_bitmap_t allowed;
	struct core cores[SLP_MAX_CORES]; /* in the order in which teams get them */
	struct slp_cores found;
	bool chosen;
} machine = {.once = PTHREAD_ONCE_INIT};

/* ---- the machine ------------------------------------------------------------------------------------------------- */

static void load(void)
{
	hwloc_topology_t t;
	if (hwloc_topology_init(&t)) return;
	hwloc_topology_set_all_types_filter(t, HWLOC_TYPE_FILTER_KEEP_NONE); /* looking takes time */
	hwloc_topology_set_type_filter(t, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
	hwloc_topology_set_type_filter(t, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL); /* cores in their order */
	hwloc_topology_set_type_filter(t, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
	machine.allowed = hwloc_bitmap_alloc();
	if (machine.allowed && !hwloc_topology_load(t)) machine.topology = t; /* for the life of the process */
	else hwloc_topology_destroy(t);
}

/* If it lists no cores, as in some virtual machines, hardware threads count as cores. */
static hwloc_obj_type_t kind_of_core(void)
{
	bool cores = hwloc_get_nbobjs_by_type(machine.topology, HWLOC_OBJ_CORE) > 0;
	return cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
}

/* OpenMP binds the thread that loads it to the first of its places, which together are the mask of before. */
static bool add_places(hwloc_bitmap_t set)
{
	int places = omp_get_proc_bind() == omp_proc_bind_false ? 0 : omp_get_num_places();
	for (int i = 0; i < places; i++) {
		int n = omp_get_place_num_procs(i), ids[SLP_MAX_CORES];
		if (n > SLP_MAX_CORES) continue;
		omp_get_place_proc_ids(i, ids);
		for (int j = 0; j < n; j++) hwloc_bitmap_set(set, (unsigned)ids[j]);
	}
	return places > 0;
}

static void find_allowed(void)
{
	const char *getbind = getenv("STARPU_WORKERS_GETBIND");
	hwloc_const_cpuset_t all = hwloc_topology_get_allowed_cpuset(machine.topology);
	bool ignored = getbind && !strcmp(getbind, "0");
	if (ignored || hwloc_get_cpubind(machine.topology, machine.allowed, HWLOC_CPUBIND_PROCESS))
		hwloc_bitmap_copy(machine.allowed, all);
	bool here = hwloc_topology_is_thissystem(machine.topology);
	machine.found.openmp_binds = here && add_places(machine.allowed);
	hwloc_bitmap_and(machine.allowed, machine.allowed, all);
	if (hwloc_bitmap_iszero(machine.allowed)) hwloc_bitmap_copy(machine.allowed, all);
}

/* ---- which of its cores ------------------------------------------------------------------------------------------ */

static void swap(int i, int j)
{
	struct core c = machine.cores[i];
	machine.cores[i] = machine.cores[j];
	machine.cores[j] = c;
}

/* Moves the last core to those of its node: a list of cores may go back and forth between nodes. */
static void move_to_node(void)
{
	int last = machine.found.count - 1, i = last;
	while (i > 0 && machine.cores[i - 1].node != machine.cores[last].node) i--;
	if (i == 0) return;
	for (int k = last; k > i; k--) swap(k, k - 1);
}

static void append(hwloc_obj_t core)
{
	struct slp_cores *f = &machine.found;
	if (f->count == SLP_MAX_CORES) return;
	struct core *c = &machine.cores[f->count];
	if (!c->set && !(c->set = hwloc_bitmap_alloc())) return;
	hwloc_bitmap_and(c->set, core->cpuset, machine.allowed);
	if (hwloc_bitmap_iszero(c->set)) return;
	for (int i = 0; i < f->count; i++)
		if (hwloc_bitmap_intersects(machine.cores[i].set, c->set)) return; /* named twice */
	c->node = core->nodeset ? hwloc_bitmap_first(core->nodeset) : 0;
	f->count++;
	move_to_node();
}

/* A core, or the core of a hardware thread, by StarPU's number of it; these go round. */
static hwloc_obj_t numbered(hwloc_obj_type_t type, long number)
{
	int n = hwloc_get_nbobjs_by_type(machine.topology, type);
	hwloc_obj_t o = n > 0 ? hwloc_get_obj_by_type(machine.topology, type, (unsigned)(number % n)) : NULL;
	while (o && o->type != kind_of_core() && o->parent) o = o->parent;
	return o;
}

/* "0 1 4-7", "0,2", "3-" */
static void append_list(const char *list, hwloc_obj_type_t type)
{
	int last = hwloc_get_nbobjs_by_type(machine.topology, type) - 1;
	for (const char *p = list; *p;) {
		char *end;
		long from = strtol(p, &end, 10), to = from;
		if (end == p || from < 0) return;
		if (*end == '-') {
			p = end + 1;
			to = isdigit((unsigned char)*p) ? strtol(p, &end, 10) : (end++, last);
		}
		for (long i = from; i <= to && i - from <= last; i++) {
			hwloc_obj_t core = numbered(type, i);
			if (core) append(core);
		}
		p = end + strspn(end, " ,\t");
	}
}

static void append_named(void)
{
	const char *cpus = getenv("STARPU_WORKERS_CPUID"), *cores = getenv("STARPU_WORKERS_COREID");
	if (cpus && *cpus) append_list(cpus, HWLOC_OBJ_PU);
	else if (cores && *cores) append_list(cores, kind_of_core());
	machine.found.named = machine.found.count;
}

static void append_all(void)
{
	int n = hwloc_get_nbobjs_by_type(machine.topology, kind_of_core());
	for (int i = 0; i < n; i++) append(hwloc_get_obj_by_type(machine.topology, kind_of_core(), (unsigned)i));
}

static void keep(int first, int end)
{
	for (int i = first; i < end; i++) swap(i - first, i);
	machine.found.count = end - first;
}

/* Of the variables by which starters of processes number those on one machine. */
static bool local_rank(int *rank, int *ranks)
{
	static const char *const names[][2] = {{"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
	                                       {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
	                                       {"MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"},
	                                       {"LOCAL_RANK", "LOCAL_WORLD_SIZE"}};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *own = getenv(names[i][0]), *all = getenv(names[i][1]);
		if (!own || !all) continue;
		*rank = atoi(own);
		*ranks = atoi(all);
		return *ranks > 1 && *rank >= 0 && *rank < *ranks;
	}
	return false;
}

/* The processes of a job that nobody has bound would all take all cores.  All get equally many: their bits may depend on
 * that. */
static void take_part(void)
{
	int rank, ranks, n = machine.found.count;
	bool whole = hwloc_bitmap_isequal(machine.allowed, hwloc_topology_get_allowed_cpuset(machine.topology));
	if (!whole || machine.found.named || !local_rank(&rank, &ranks)) return;
	int each = n < ranks ? 1 : n / ranks, first = rank * each % n;
	keep(first, first + each);
	machine.found.ranks = ranks;
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

/* A number that a variable begins with ("4,2" is for nested regions); 0: none. */
static int limit_of(const char *name, int most)
{
	const char *text = getenv(name);
	long n = text ? strtol(text, NULL, 10) : 0;
	return n < 0 ? 0 : n < most ? (int)n : most;
}

/* The least of the groups' quotas, in CPUs. */
static void read_quota(struct slp_cgroup *group, void *arg)
{
	double *least = arg;
	uint64_t quota, period;
	char text[64], *end;
	if (group->version == 2) {
		if (!slp_cgroup_read(group, "cpu.max", text, sizeof text) || *text < '0' || *text > '9') return;
		quota = strtoull(text, &end, 10);
		period = strtoull(end, NULL, 10);
	} else if (!slp_cgroup_number(group, "cpu.cfs_quota_us", &quota) || /* -1: none */
	           !slp_cgroup_number(group, "cpu.cfs_period_us", &period)) {
		return;
	}
	if (!quota || !period) return;
	double cpus = (double)quota / (double)period;
	if (!*least || cpus < *least) *least = cpus;
}

static void find_limits(void)
{
	struct slp_cores *f = &machine.found;
	slp_cgroups_visit("cpu", read_quota, &f->quota);
	f->openmp_threads = limit_of("OMP_NUM_THREADS", SLP_MAX_THREADS);
	f->team_threads = limit_of("SL_TEAM_THREADS", SLP_MAX_THREADS);
	f->thread_limit = omp_get_thread_limit() < SLP_MAX_THREADS ? omp_get_thread_limit() : 0;
	f->reserved = limit_of("STARPU_RESERVE_NCPU", f->count - 1);
	f->count -= f->reserved;
}

/* ---- for the engine ---------------------------------------------------------------------------------------------- */

static void count_nodes(void)
{
	int nodes = 0;
	for (int i = 0; i < machine.found.count; i++) {
		nodes += i == 0 || machine.cores[i].node != machine.cores[i - 1].node;
		machine.cores[i].place = nodes - 1;
	}
	machine.found.nodes = nodes;
}

static void find_cores(void)
{
	pthread_once(&machine.once, load);
	if (!machine.topology) {
		machine.found.count = machine.found.machine = machine.found.allowed = 1;
		return;
	}
	find_allowed();
	machine.found.machine = hwloc_get_nbobjs_by_type(machine.topology, kind_of_core());
	machine.found.hardware_threads = hwloc_get_nbobjs_by_type(machine.topology, HWLOC_OBJ_PU);
	append_all();
	machine.found.allowed = machine.found.count;
	machine.found.count = 0;
	append_named();
	if (!machine.found.count) append_all();
	take_part();
}

/* A simulated machine has a number of cores, and this one's do not matter. */
#ifdef SLP_SIMULATION
static int simulated_cores(void)
{
	return slp_simulated_cores();
}

static hwloc_cpuset_t cores_of_worker(int worker)
{
	(void)worker;
	return NULL;
}
#else
static int simulated_cores(void)
{
	return 0;
}

static hwloc_cpuset_t cores_of_worker(int worker)
{
	return starpu_worker_get_hwloc_cpuset(worker);
}
#endif

void slp_cores_choose(void)
{
	int simulated = simulated_cores();
	machine.found = (struct slp_cores){.count = simulated, .machine = simulated, .allowed = simulated};
	machine.chosen = true;
	if (simulated) return;
	find_cores();
	find_limits();
	count_nodes();
}

const struct slp_cores *slp_cores(void)
{
	if (!machine.chosen) slp_cores_choose();
	return &machine.found;
}

bool slp_cores_main_bound(void)
{
	return limit_of("STARPU_MAIN_THREAD_BIND", 1) > 0;
}

static bool is_taken(int core, hwloc_const_cpuset_t taken)
{
	return hwloc_bitmap_intersects(machine.cores[core].set, taken);
}

/* Whole cores, or the teams would have a thread that others hold up all the time: all its others wait for it. */
static void leave(hwloc_const_cpuset_t taken, int teams)
{
	struct slp_cores *f = &machine.found;
	int left = 0, all = f->count, at = 0;
	for (int i = 0; i < all; i++) left += !is_taken(i, taken);
	if (left == all || left < teams || 2 * left < all) return;
	for (int i = 0; i < all; i++)
		if (!is_taken(i, taken)) swap(at++, i);
	f->count = left;
	f->taken = all - left;
	count_nodes();
}

void slp_cores_started(int teams)
{
	hwloc_bitmap_t taken = hwloc_bitmap_alloc();
	if (taken && machine.topology && !slp_env_unbound()) {
		if (slp_cores_main_bound()) hwloc_get_cpubind(machine.topology, taken, HWLOC_CPUBIND_THREAD);
		for (int i = 0; i < slp_engine.ngpus; i++) {
			hwloc_cpuset_t own = cores_of_worker(slp_engine.gpu_worker[i]);
			if (own) hwloc_bitmap_or(taken, taken, own);
			hwloc_bitmap_free(own);
		}
		leave(taken, teams);
	}
	hwloc_bitmap_free(taken);
}

void slp_cores_set(int first, int count, hwloc_bitmap_t set)
{
	hwloc_bitmap_zero(set);
	if (!machine.topology) return;
	if (!count) hwloc_bitmap_copy(set, machine.allowed);
	for (int i = first; i < first + count && i < machine.found.count; i++)
		hwloc_bitmap_or(set, set, machine.cores[i].set);
}

void slp_cores_nodes(int first, int count, hwloc_bitmap_t nodes)
{
	hwloc_bitmap_zero(nodes);
	for (int i = first; machine.topology && i < first + count; i++)
		hwloc_bitmap_set(nodes, (unsigned)machine.cores[i].node);
}

int slp_core_node(int core)
{
	return machine.topology ? machine.cores[core].place : 0;
}

void slp_cores_bind(hwloc_const_cpuset_t set)
{
	if (machine.topology && !hwloc_bitmap_iszero(set))
		hwloc_set_cpubind(machine.topology, set, HWLOC_CPUBIND_THREAD);
}

hwloc_bitmap_t slp_cores_widen(void)
{
	hwloc_bitmap_t before = machine.found.openmp_binds ? hwloc_bitmap_alloc() : NULL;
	if (before && !hwloc_get_cpubind(machine.topology, before, HWLOC_CPUBIND_THREAD))
		slp_cores_bind(machine.allowed);
	return before;
}

void slp_cores_restore(hwloc_bitmap_t before)
{
	if (before && !slp_cores_main_bound()) slp_cores_bind(before);
	hwloc_bitmap_free(before);
}
