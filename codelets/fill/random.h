/* Attributes of random operations.  All draw from one stream of Philox words: element e takes word e % 4 of block
 * e / 4, so results depend on neither threads nor devices. */
#ifndef SLP_RANDOM_H
#define SLP_RANDOM_H

#include "common/create.h"
#include "op.h"
#include "philox.h"

/* uniform: from a to b.  normal: mean a, standard deviation b. */
struct slp_draw {
	struct slp_created type;
	double a, b;
	struct slp_rng rng;
};

struct slp_dropout {
	double p;
	struct slp_rng rng;
};

struct slp_bernoulli {
	struct slp_rng rng;
};

/* Elements with a smaller word are dropped; 0 <= p < 1. */
static inline uint32_t slp_dropout_threshold(const struct slp_dropout *d)
{
	return (uint32_t)(d->p * 4294967296.0);
}

#endif
