/* What optim.c and optim.cu agree on. */
#ifndef SLP_OPTIM_H
#define SLP_OPTIM_H

#include "op.h"

/* The rule, as PyTorch has it:  g' = rescale g + weight_decay w;  m = momentum m + g';  w = w - lr m. */
struct slp_sgd_attrs {
	double lr, momentum, weight_decay, rescale;
};

#endif
