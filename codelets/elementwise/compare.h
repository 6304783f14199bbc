/* Calling a comparison, of data types that may differ. */
#ifndef SLP_COMPARE_H
#define SLP_COMPARE_H

#include "op.h"

sl_tensor *slp_apply_comparison(const char *at, const struct sl_op *op, sl_tensor *a, sl_tensor *b);

#endif
