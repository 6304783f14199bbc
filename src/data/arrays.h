/* Common functions of sources of rows. */
#ifndef SLP_ARRAYS_H
#define SLP_ARRAYS_H

#include "data/dataset.h"
#include "starling/data.h"

/* The number of samples of an array of that shape, and the shape of one; false with an error about `what` recorded. */
bool slp_rows_split(const char *what, sl_shape shape, int64_t *rows, sl_shape *row);
bool slp_rows_fit(const char *x, int64_t x_rows, const char *y, int64_t y_rows);
/* Reads all labels and sets the number of classes (classes 0: the largest label plus one). */
bool slp_label_classes(sl_dataset *d, const int32_t *labels, int64_t n, int classes);
/* A set of arrays whose memory it takes over, whatever comes of it. */
sl_dataset *slp_arrays_own(struct sl_array x, struct sl_array y, void *x_owned, void *y_owned);

#endif
