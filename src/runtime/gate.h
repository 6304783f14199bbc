/* The gate that calls of programs pass (SLP_CALL): sl_shutdown closes it and waits until all calls have returned;
 * objects that a running call may use are freed after it has returned. */
#ifndef SLP_GATE_H
#define SLP_GATE_H

struct slp_call;

/* Makes new calls of other threads wait until slp_calls_go_on, and waits for running ones.  A call may wait for another
 * thread's call, so the gate opens for a moment from time to time.  False after `seconds` (0: never), with an error
 * that names a call; the gate is open then.  Only from a call that is not nested. */
bool slp_calls_stop(const char *function, double seconds);
void slp_calls_go_on(void);
void slp_gate_forked(void); /* in a child process, where the other threads are not */
/* Whether this is a thread of the process that was forked, which is not here. */
bool slp_call_is_lost(const struct slp_call *call);

/* Calls `free` with an object that later calls cannot see, once all running calls have ended: at once if there are
 * none. */
void slp_later(void (*free)(void *), void *what);

/* The calling thread leaves its call for a while, in which it touches nothing of the engine, and comes back. */
struct slp_paused {
	const char *function, *at;
};
void slp_call_pause(struct slp_paused *call);
void slp_call_resume(const struct slp_paused *call);

#endif
