/* Labels and words that a program gives as numbers of any type: indices for kernels. */
#ifndef SLP_AS_INDEX_H
#define SLP_AS_INDEX_H

#include <starling/tensor.h>

/* Numbers of any type as int32 (codelets/compose/choose.c); NULL stays NULL. */
sl_tensor *slp_numbers_as_index(const char *at, sl_tensor *x);
sl_tensor *slp_labels_as_index(const char *at, sl_tensor *x); /* NaN as -1 */

#endif
