/* The watchdog: tasks that do not end, waits that last too long (watch.c). */
#ifndef SLP_WATCH_H
#define SLP_WATCH_H

#include "runtime/task/record.h"

/* SL_DEADLINE in seconds; 0: the watchdog is off and costs nothing. */
extern double slp_watch_deadline;
/* SL_DEADLINE_ERROR: a wait that has lasted so long ends with SL_ETIME. */
extern bool slp_watch_ends;
extern atomic_int slp_watch_told; /* number of its reports */

void slp_watch_start(double deadline, bool ends); /* 0: none */
void slp_watch_stop(void);

/* A segment is submitted; runs this call, from a worker; has ended. */
void slp_watch_enter(struct slp_segment *segment);
void slp_watch_runs(struct slp_segment *segment, const struct slp_record *call);
void slp_watch_leave(struct slp_segment *segment);

/* A wait of the calling thread, on its stack. */
struct slp_wait {
	const char *function, *at;
	double since;
	bool told;
	struct slp_wait *next;
};
void slp_watch_wait(struct slp_wait *wait);
void slp_watch_wait_over(struct slp_wait *wait);
/* Makes it the thread's error that a wait has lasted too long. */
void slp_watch_fail(void);

#endif
