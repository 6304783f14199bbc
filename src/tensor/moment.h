/* Moments: a save has the values of one moment, which lies between changes that belong together. */
#ifndef SLP_MOMENT_H
#define SLP_MOMENT_H

#include "starling/tensor.h"
#include "tensor/tensor.h"

/* The thread's submissions from here to slp_change_end are one change for a save, which contains all of it or nothing.
 * Other threads may make other changes at the same time.  Nests. */
void slp_change_begin(void);
void slp_change_end(void);

/* Waits for the changes that other threads have begun, and lets none begin until slp_moment_end: values gathered and
 * copied in between are of one moment.  Nests; within a change of the same thread it is that change's moment. */
void slp_moment_begin(void);
void slp_moment_end(void);

/* Replaces each tensor, of which the list holds a reference, by a copy in main memory: the copies are submitted, the
 * values come later.  False with an error; then some are replaced. */
bool slp_moment_copy(const char *at, sl_tensor **list, int count);

static inline void slp_change_leave(const char *unused)
{
	(void)unused;
	slp_change_end();
}
static inline void slp_moment_leave(const char *unused)
{
	(void)unused;
	slp_moment_end();
}
/* The rest of the block is one change; is of one moment. */
#define SLP_CHANGE()                                                                                                   \
	__attribute__((cleanup(slp_change_leave), unused)) const char slp_change_ = 0;                                 \
	slp_change_begin()
#define SLP_MOMENT()                                                                                                   \
	__attribute__((cleanup(slp_moment_leave), unused)) const char slp_moment_ = 0;                                 \
	slp_moment_begin()

#endif
