/* relayout: images into the layout N16 and back (image_layout.h). */
#ifndef SLP_RELAYOUT_H
#define SLP_RELAYOUT_H

#include "op.h"

struct slp_relayout_attrs {
	int layout; /* enum slp_layout, of the result: N16 from the plain layout, or plain from N16 */
};

/* On this worker's team, n images of `flat` floats each; n may be any number: the last group of `to` is filled up with
 * zeros.  slp_from_n16 leaves these out. */
void slp_to_n16(const float *from, int64_t n, int64_t flat, float *to);
void slp_from_n16(const float *from, int64_t n, int64_t flat, float *to);

#endif
