/* Run-ahead: the limit by which submission may be ahead of execution (runahead.c). */
#ifndef SLP_RUNAHEAD_H
#define SLP_RUNAHEAD_H

#include <stdbool.h>

void slp_runahead_wait(void);          /* for room within the bound */
void slp_runahead_enter(void);         /* one more task is in flight; nothing may wait before its submission */
bool slp_runahead_leave(void);         /* a segment has ended; from a worker.  True: that woke a thread */
bool slp_runahead_wait_progress(void); /* waits for a part of them to end; false if none is pending */
bool slp_runahead_wait_one(void);      /* waits for one of them to end; false if none is pending */
int slp_runahead_pending(void);
bool slp_runahead_waited(void); /* a thread waits for tasks to end */

#endif
