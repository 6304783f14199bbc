/* Losses of pairs of elements, for pair_loss.c and pair_loss.cu: the term whose mean each loss is. */
#ifndef SLP_PAIR_LOSS_H
#define SLP_PAIR_LOSS_H

#include "op.h"

/* X(name, KIND) */
#define SLP_PAIR_LOSSES(X)                                                                                             \
	X(l1_loss, SLP_L1)                                                                                             \
	X(l2_loss, SLP_L2)                                                                                             \
	X(huber_loss, SLP_HUBER)                                                                                       \
	X(bce_logits_loss, SLP_BCE)

enum slp_pair_loss {
#define X(name, KIND) KIND,
	SLP_PAIR_LOSSES(X)
#undef X
};

struct slp_huber_attrs {
	double delta;
};

/* Of Huber's loss; the others ignore it. */
static inline double slp_pair_delta(const struct slp_kernel *k)
{
	return k->op->attrs_size ? ((const struct slp_huber_attrs *)k->attrs)->delta : 0;
}

#endif
