/* relayout: images into the layout N16 and back (image_layout.h). */
#ifndef SLP_RELAYOUT_H
#define SLP_RELAYOUT_H

#include <stdbool.h>
#include <stdint.h>

struct slp_relayout_attrs {
	int layout; /* enum slp_image_layout, of the result: N16 from the plain layout, or plain from N16 */
};

/* Copies n images of `flat` floats each, on this worker's team; n may be any number. slp_to_n16 pads the last group of
 * `to` with zeros, which slp_from_n16 leaves out. */
void slp_to_n16(const float *from, int64_t n, int64_t flat, float *to);
void slp_from_n16(const float *from, int64_t n, int64_t flat, float *to);

#endif
