/* Limits for untrusted files (sl_config.untrusted): the calling thread counts its work while it reads one, or runs its
 * network (budget.c). */
#ifndef SLP_BUDGET_H
#define SLP_BUDGET_H

#include "op.h"

/* All 0: no limits.  Set while no call is running: by sl_init, or by the first use before it. */
extern struct sl_untrusted slp_untrusted;

/* The work for one file, and its cost so far. */
struct slp_budget {
	const char *file;
	double since, processors; /* clocks when it began, in seconds */
	double operations, ahead; /* counted; of calls that were submitted since all were waited for */
	size_t small;             /* bytes of small requests since the memory was looked at */
};
extern _Thread_local struct slp_budget *slp_budget_current;

/* Stands where a file is read, or its network is run; work within it, on other files too, is counted as its own. */
#define SLP_BUDGET(file)                                                                                               \
	__attribute__((cleanup(slp_budget_end))) struct slp_budget slp_budget_;                                        \
	slp_budget_begin(&slp_budget_, file)
void slp_budget_begin(struct slp_budget *b, const char *file);
void slp_budget_end(struct slp_budget *b);

/* Counts operations of the calling thread; false: a limit is exceeded, and why names it. */
bool slp_budget_spend(double operations, char why[256]);
/* The same, with the error recorded for the program's call. */
bool slp_budget_allows(double operations);
/* The same, for an operation of a network that is about to be called, or traced. */
struct slp_infer;
enum sl_status slp_budget_call(const struct slp_infer *c, char why[256]);
/* After a call was submitted: waits if many tasks are in flight, so that the used time is known. */
void slp_budget_pace(void);

/* Whether memory is left for a small request of `bytes`. */
bool slp_budget_has_small(size_t bytes);
/* Main memory that the process has taken, beyond its memory when the engine started. */
void slp_budget_start(const struct sl_untrusted *limits);
size_t slp_budget_taken(void);

#endif
