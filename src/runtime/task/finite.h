/* NaN mode: the first operation that makes a NaN or an infinity is an error. */
#ifndef SLP_FINITE_H
#define SLP_FINITE_H

#include "op.h"

extern bool slp_finite_wanted; /* SL_NAN; set while no task runs */

/* What a call's arguments hold already, or numbers that are given to it. */
struct slp_not_finite {
	bool nan, infinity;
};
struct slp_not_finite slp_finite_before(const struct slp_kernel *k);
/* After the kernel: an error if its results hold what was not there before. */
enum sl_status slp_finite_after(const struct slp_kernel *k, struct slp_not_finite before);

#endif
