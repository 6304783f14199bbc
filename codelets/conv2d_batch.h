/* What the passes of conv2d_batch.c share with those of conv2d_batch_weights.c. */
#ifndef SLP_CONV2D_BATCH_H
#define SLP_CONV2D_BATCH_H

#include "conv2d.h"

/* The images of a tensor of `flat` elements each, dealt to groups of `lanes` (16 or 32, the last filled up with zeros):
 * to[group][flat][lanes].  Runs on the team. */
void slp_batch_pack(const float *images, int64_t n, int64_t flat, int lanes, float *to);

enum sl_status slp_conv_batch_weights(const struct slp_kernel *k, const struct slp_conv_args *a);

#endif
