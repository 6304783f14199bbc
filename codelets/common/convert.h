/* Elements of one data type as those of another. */
#ifndef SLP_CONVERT_H
#define SLP_CONVERT_H

#include "op.h"

/* n elements, on this thread.  Integers lose the fraction and saturate; floats are rounded to nearest. */
void slp_convert(enum sl_dtype from, const void *in, enum sl_dtype to, void *out, int64_t n);

/* What is added in its place: inputs 0 to n - 1 into the results of those numbers that do not lie over them. */
static inline enum sl_status slp_take_sums(const struct slp_kernel *k, int n, slp_convert_fn *convert)
{
	enum sl_status s = SL_OK;
	for (int i = 0; i < n && s == SL_OK; i++)
		if (k->out[i].ptr != k->in[i].ptr) s = convert(k, &k->in[i], &k->out[i]);
	return s;
}

#endif
