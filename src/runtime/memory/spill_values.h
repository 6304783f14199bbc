/* Values in a file, for the files that share their list: spill.c (tasks and the program), spill_order.c (which leave, which
 * come), spill_thread.c (reading and writing), spill_start.c (settings).  All is guarded by the lock. */
#ifndef SLP_SPILL_VALUES_H
#define SLP_SPILL_VALUES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/memory/spill.h"

enum { SLP_SPILL_MESSAGE = 320 };

struct slp_spilled {
	void *memory;        /* NULL: its values are in the file, or there are none */
	size_t bytes;        /* of the memory: pages */
	int64_t place;       /* in the file; -1: none yet */
	bool in_file, dirty; /* the file has values; those in memory are newer */
	bool busy;           /* being read or written, or room is made for it: it stays */
	bool asked;          /* a task waits for it */
	int held;            /* by tasks that run, and the program */
	uint64_t *uses;      /* numbers of the submitted tasks that will use it, a ring */
	int first, count, most;
	uint64_t last;                     /* when it was used last */
	struct slp_spilled *next, *before; /* of all */
};

struct slp_spill {
	pthread_mutex_t lock;
	pthread_cond_t work, news; /* for the thread; for those who wait for it */
	pthread_t thread;
	bool on, ends, broken;
	bool runs, accesses, stuck;  /* the thread; reads or writes; in an access that does not end */
	int running;                 /* tasks that have all of their values */
	char why[SLP_SPILL_MESSAGE]; /* broken */
	struct slp_spilled *all;
	size_t room, resident, held; /* bytes: the most in memory, in memory, held there */
	bool guessed;                /* the room: nobody has set it */
	size_t wanted, gave;         /* bytes that others need; that have left for it the last time */
	uint64_t submitted, started; /* tasks */
	uint64_t short_at;           /* the last task that had begun when others needed memory */
	uint64_t progress;           /* accesses that have ended */
	struct slp_spill_counts counts;
	double patience; /* seconds that one access may take */
};
extern struct slp_spill slp_spill;

/* ---- spill_order.c ---- */

/* The number of the task that uses it next; UINT64_MAX: none is known. */
uint64_t slp_spilled_next_use(const struct slp_spilled *s);
void slp_spilled_will_be_used(struct slp_spilled *s, uint64_t task);
/* By no task up to this one any more. */
void slp_spilled_forget_uses(struct slp_spilled *s, uint64_t task);
/* The value that leaves next; NULL: none may. */
struct slp_spilled *slp_spill_victim(void);
/* The value that comes next; NULL: none.  *now: a task waits for it. */
struct slp_spilled *slp_spill_next_to_come(bool *now);

/* ---- spill_thread.c ---- */

bool slp_spill_thread_start(void);
/* The thread of an access that does not end is left alone; it closes the file when it does. */
void slp_spill_thread_stop(void);
/* Waits for news of the file, as long as one access may take. */
void slp_spill_wait_for_news(void);
/* The value is no more; it is not busy. */
void slp_spilled_free(struct slp_spilled *s);

#endif
