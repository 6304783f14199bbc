/* Attributes of operations that take a number or make tensors of numbers; tensors of zeros for gradients. */
#ifndef SLP_FILL_H
#define SLP_FILL_H

#include "common/create.h"
#include "op.h"

struct slp_value {
	double value;
};

struct slp_fill {
	struct slp_created type;
	double value;
};

struct slp_arange {
	struct slp_created type;
	double start, step;
};

/* Whether a call makes int64 of whole numbers, which are exact then, and element i of them. */
static inline bool slp_arange_is_whole(const struct slp_kernel *k)
{
	const struct slp_arange *a = (const struct slp_arange *)k->attrs;
	bool whole = a->start == floor(a->start) && a->step == floor(a->step);
	return k->out[0].type.dtype == SL_INT64 && whole && fabs(a->start) < 0x1p63 && fabs(a->step) < 0x1p63;
}
SLP_DTYPE_FN int64_t slp_arange_whole(const struct slp_arange *a, int64_t i)
{
	return (int64_t)((uint64_t)(int64_t)a->start + (uint64_t)i * (uint64_t)(int64_t)a->step);
}

extern const struct slp_attr slp_value_attrs[];

/* A tensor of zeros like `like`, made by an operation on it: for gradients that vanish. */
sl_tensor *slp_zeros_like(const char *at, sl_tensor *like);

#endif
