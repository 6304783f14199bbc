/* Networks of blocks that drivers, benchmarks and tests share.  The caller owns them; they have no values yet. */
#ifndef MODELS_DRIVER_NETWORKS_H
#define MODELS_DRIVER_NETWORKS_H

#include <starling/nn.h>

sl_block *net_lenet(void);                 /* (n, 1, 28, 28) to (n, 10) */
sl_block *net_mlp5(void);                  /* (n, 784) or (n, 1, 28, 28) to (n, 10): 512, 512, 512, 512 units between */
sl_block *net_row_mlp(void);               /* (n, 512) to (n, 2): 256, 128 */
sl_block *net_resnet18(void);              /* (n, channels, height, width) to (n, 10) */
sl_block *net_resnet18_synchronised(void); /* the same with batch normalisation over all shards of a batch */
/* With `width` channels at first instead of 64. */
sl_block *net_resnet18_of(int64_t width, bool synchronised);

/* A transformer that predicts the next word: (n, at most steps) int32 below words, to (n, steps, words). */
struct net_gpt_size {
	int64_t words, steps, width;
	int layers, heads; /* at most 64 layers */
	bool no_bias;      /* in norms and dense layers */
	bool gelu_tanh;    /* as the first GPTs have it */
};
sl_block *net_gpt(struct net_gpt_size size);

#endif
