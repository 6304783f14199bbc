/* Taps of convolutions that only meet padding. */
#ifndef SLP_TAPS_H
#define SLP_TAPS_H

#include "graph/pass/pass.h"

/* Leaves them out of the sizes: crop[i] at both ends of height and width. */
void slp_taps_crop(struct slp_conv2d_blocked_attrs *a, int crop[2]);
/* Makes *w the weights without them, for node `place`. */
enum sl_status slp_taps_slice(sl_graph *g, int place, const int crop[2], struct slp_value *w);

#endif
