/* Waiting and idling: workers without work sleep, and wake when a task that they may run is submitted (idle.c). */
#ifndef SLP_IDLE_H
#define SLP_IDLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "starling/base.h"

void slp_idle_start(void);
void slp_idle_stop(void);
void slp_idle_wake(void);              /* there may be work: something was submitted, has ended or was let go */
void slp_idle_wake_worker(int worker); /* the same for this one alone; -1: any */
void slp_idle_over(void);              /* from a worker: it has work */
struct slp_idle_counts {
	_Atomic uint64_t naps, woken; /* number of times that workers slept, and that they slept until there was work */
	_Atomic uint64_t team_yields; /* number of times that all threads of a team yielded */
	_Atomic uint64_t crowded;     /* number of windows in which a worker lost its core to others (throttle.c) */
};
extern struct slp_idle_counts slp_idle_counts;
bool slp_wait_beside_worker(void);     /* the calling thread of the program is on a worker's core */
void slp_wait_all_begin(void);         /* the calling thread waits until workers have no work ... */
void slp_wait_all_end(void);           /* ... no more */
void slp_idle_between_looks(int look); /* a thread that looks again and again, for the look-th time: gives way */

/* A task for this device was submitted and may run at once.  From any thread. */
void slp_idle_submitted(sl_device device);
/* Such a task has ended: others may run now.  From its worker. */
void slp_idle_ended(sl_device device);

#endif
