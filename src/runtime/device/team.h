/* CPU teams: the threads on which a worker's kernels run (team.c). */
#ifndef SLP_TEAM_H
#define SLP_TEAM_H

#include <stdbool.h>

int slp_team_cores_total(void);
int slp_team_cores(int team);   /* of a team of this process */
int slp_team_threads(int team); /* the number of cores, fewer, or that of SL_TEAM_THREADS */
void slp_team_stacks(void);     /* stack size of new threads: large enough for kernels, whatever ulimit -s */
void slp_team_enter(void);      /* called by a CPU worker before each segment: makes it head of its team */
/* The calling thread, which is no worker, heads a team of the threads that OpenMP gives it, until it gives them back.  False:
 * the engine's team has another number of them, on which kernels depend, or there are several teams. */
bool slp_team_borrow(void);
void slp_team_return(void);
int slp_team_size(void);     /* threads of the calling worker's team */
int slp_team_index(void);    /* of the calling worker's team, which it has entered */
void slp_team_used(void);    /* the calling worker's team computes something together */
bool slp_team_by_llvm(void); /* this process has LLVM's OpenMP, whose threads do not inherit masks */
bool slp_team_polls(void);   /* other threads of the calling worker's team may be polling for something to compute */
void slp_team_yield(void);   /* the calling worker and its team's threads yield to threads that wait for their cores */

#endif
