/* Programs whose allocations fail, one at a time: each is an error that says where, nothing else happens, and
 * everything works afterwards. */
#ifndef SLP_TESTS_ALLOC_TRIALS_H
#define SLP_TESTS_ALLOC_TRIALS_H

#include <starling.h>

/* What a program computes; NAN elsewhere. */
struct slp_result {
	float loss, weight;
};

/* run is false after an error, and then sl_error() tells it, or what it was told before in `status`.  It asks for the
 * library's memory in the same order each time, as far as it uses one thread. */
struct slp_program {
	const char *name;
	bool (*run)(struct slp_result *r, enum sl_status *status);
	int teams; /* 0: 1 */
};

/* Whether all is well; the first thing that is not is kept in status. */
bool slp_told(enum sl_status s, enum sl_status *status);
bool slp_there(const void *p, enum sl_status *status);

/* The program's allocations `first` (from 1), first + step, ...; step 0: a sample. */
void slp_fail_allocations(const struct slp_program *p, long first, long step);

#endif
