/* What the passes of conv2d_batch.c share with those of conv2d_batch_weights.c. */
#ifndef SLP_CONV2D_BATCH_H
#define SLP_CONV2D_BATCH_H

#include "conv2d.h"

/* Whether kernels of this width have a gradient of the weight here. */
bool slp_batch_has_width(int64_t kw);

enum sl_status slp_conv_batch_weights(const struct slp_kernel *k, const struct slp_conv_args *a);

#endif
