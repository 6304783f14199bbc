/* The operations that make mini-batches (codelets/move/batch.c). */
#ifndef SLP_DATA_BATCH_H
#define SLP_DATA_BATCH_H

#include <starling.h>

/* Samples order[begin], ..., order[begin + count - 1] of images (n, ...), uint8, times scale, as float32 (count, ...);
 * order is int32.  They run where order lives, if images live on `auto`. */
sl_tensor *slp_batch_images(const char *at, sl_tensor *images, sl_tensor *order, int64_t begin, int64_t count,
                            double scale);
/* The same of labels (n), uint8, as int32 (count). */
sl_tensor *slp_batch_labels(const char *at, sl_tensor *labels, sl_tensor *order, int64_t begin, int64_t count);

#endif
