/* The cores that this process may use for its CPU teams, and the reasons for the choice (cores.c). */
#ifndef SLP_CORES_H
#define SLP_CORES_H

#include <hwloc.h>
#include <stdbool.h>

enum { SLP_MAX_CORES = 4096, SLP_MAX_THREADS = 1024 };

struct slp_cores {
	int count;                     /* the cores that teams share */
	int machine, hardware_threads; /* that the machine has */
	int allowed;                   /* of these, by the process's mask */
	int named;                     /* number of cores that STARPU_WORKERS_CPUID or _COREID names; 0: all */
	int ranks;                     /* unbound processes of one job on this machine that share them; 0: none */
	int reserved;                  /* STARPU_RESERVE_NCPU */
	int taken;                     /* by the workers of GPUs and STARPU_MAIN_THREAD_BIND */
	int nodes;                     /* NUMA nodes of the teams' cores */
	int openmp_threads;            /* OMP_NUM_THREADS; 0: not set */
	int thread_limit;              /* OMP_THREAD_LIMIT; 0: not set */
	int team_threads;              /* SL_TEAM_THREADS; 0: not set */
	double quota;                  /* of a control group, in CPUs; 0: none */
	bool openmp_binds;             /* OMP_PROC_BIND or similar is set: OpenMP narrows masks itself */
};

/* Finds them again; before the engine starts. */
void slp_cores_choose(void);
/* StarPU has started: the cores of GPUs' workers, and that of the calling thread if STARPU_MAIN_THREAD_BIND bound it,
 * are not for teams, if enough are left. */
void slp_cores_started(int teams);
bool slp_cores_main_bound(void); /* STARPU_MAIN_THREAD_BIND */
const struct slp_cores *slp_cores(void);
/* The hardware threads of `count` cores from `first` on; all of the process's for count 0. */
void slp_cores_set(int first, int count, hwloc_bitmap_t set);
/* team.c: the mask of the worker and the threads of a team; false: none. */
bool slp_team_mask(int team, hwloc_bitmap_t set);
void slp_team_nodes(int team, hwloc_bitmap_t nodes); /* the NUMA nodes of its cores */
void slp_cores_nodes(int first, int count, hwloc_bitmap_t nodes);
int slp_core_node(int core); /* counts its NUMA node in the order of the cores, from 0 */
/* Binds the calling thread.  A mask that cannot be set costs only speed. */
void slp_cores_bind(hwloc_const_cpuset_t set);
/* Around the start of StarPU: where OpenMP has bound the calling thread, its mask is that of the process. */
hwloc_bitmap_t slp_cores_widen(void);
void slp_cores_restore(hwloc_bitmap_t before);

#endif
