/* Elements of one data type as those of another. */
#ifndef SLP_CONVERT_H
#define SLP_CONVERT_H

#include "op.h"

/* n elements, on this thread.  Integers lose the fraction and saturate; floats are rounded to nearest. */
void slp_convert(enum sl_dtype from, const void *in, enum sl_dtype to, void *out, int64_t n);

#endif
