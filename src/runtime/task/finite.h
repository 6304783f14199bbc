/* NaN mode: the first operation that makes a NaN or an infinity is an error. */
#ifndef SLP_FINITE_H
#define SLP_FINITE_H

#include "op.h"

extern bool slp_finite_wanted; /* SL_NAN; set while no task runs */

/* The NaNs and infinities among a call's arguments or its numbers. */
struct slp_not_finite {
	bool nan, infinity;
};
struct slp_not_finite slp_finite_before(const struct slp_kernel *k);
/* After the kernel: an error if its results have a NaN or an infinity that its arguments did not have. */
enum sl_status slp_finite_after(const struct slp_kernel *k, struct slp_not_finite before);

#endif
