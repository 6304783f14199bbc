/* Converts elements from one data type to another. */
#ifndef SLP_CONVERT_H
#define SLP_CONVERT_H

#include "op.h"

/* n elements, on this thread.  Integers lose the fraction and saturate; floats are rounded to nearest. */
void slp_convert(enum sl_dtype from, const void *in, enum sl_dtype to, void *out, int64_t n);

/* For operations that add to a sum in place: copies inputs 0 to n - 1 into the results of the same number, unless these
 * share memory already. */
static inline enum sl_status slp_take_sums(const struct slp_kernel *k, int n, slp_convert_fn *convert)
{
	enum sl_status s = SL_OK;
	for (int i = 0; i < n && s == SL_OK; i++)
		if (k->out[i].ptr != k->in[i].ptr) s = convert(k, &k->in[i], &k->out[i]);
	return s;
}

#endif
