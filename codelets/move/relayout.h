/* Images into lane order and back (lane_order.h). */
#ifndef SLP_RELAYOUT_H
#define SLP_RELAYOUT_H

#include <stdbool.h>
#include <stdint.h>

struct slp_relayout_attrs {
	bool to_lanes; /* false: back */
};

/* On this worker's team, n images of `flat` floats each; n may be any number: the last group of `to` is filled up with
 * zeros, and what it has more than images is not read in the backward pass. */
void slp_to_lanes(const float *from, int64_t n, int64_t flat, float *to);
void slp_from_lanes(const float *from, int64_t n, int64_t flat, float *to);

#endif
