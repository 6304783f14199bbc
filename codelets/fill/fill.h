/* Attributes of operations that take a number or make tensors of numbers; tensors of zeros for gradients. */
#ifndef SLP_FILL_H
#define SLP_FILL_H

#include "common/create.h"

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

struct slp_cast {
	int dtype;
};

extern const struct slp_attr slp_value_attrs[];

/* A tensor of zeros like `like`, made by an operation on it: for gradients that vanish. */
sl_tensor *slp_zeros_like(const char *at, sl_tensor *like);

#endif
