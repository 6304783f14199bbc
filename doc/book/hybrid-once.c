/* A block of your own, hybridised: its forward runs once, with everything that it prints. */
#include <stdlib.h>

#include "book.h"

struct net {
	sl_block base; /* first: a struct net is a block */
	sl_block *hidden, *output;
};

static sl_tensor *forward(sl_block *self, sl_tensor *const *in, int nin)
{
	struct net *net = (struct net *)self;
	printf("forward, %d input: ", nin);
	sl_print(in[0]);
	return sl_forward(net->output, sl_relu(sl_forward(net->hidden, in[0])));
}

int main(void)
{
	struct net *net = calloc(1, sizeof *net);
	sl_block_init(&net->base, "Net", forward, NULL);
	net->hidden = sl_block_add(&net->base, "hidden", sl_dense(10));
	net->output = sl_block_add(&net->base, "output", sl_dense(2));
	sl_initialize(&net->base, .init = sl_constant_init(0.1));
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(1, 3));
		puts("imperatively, twice");
		for (int i = 0; i < 2; i++) sl_print(sl_forward(&net->base, x));
		puts("hybridised, twice");
		sl_hybridize(&net->base);
		for (int i = 0; i < 2; i++) sl_print(sl_forward(&net->base, x));
		puts("with two rows");
		sl_print(sl_forward(&net->base, sl_ones(SL_SHAPE(2, 3))));
	}
	sl_block_free(&net->base);
	return finish();
}
