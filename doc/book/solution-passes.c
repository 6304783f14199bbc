/* What the compiler's passes gain: operations and tasks of a small convolutional network without some of them. */
#include "book.h"

static sl_block *network(void)
{
	return sl_sequential(sl_conv2d_layer(8, .kernel = {3}, .activation = SL_RELU), sl_max_pool2d_layer(2),
	                     sl_flatten_layer(), sl_dense(32, .activation = SL_RELU), sl_dense(10));
}

static void compile(const char *name, unsigned off)
{
	sl_block *net = network();
	sl_initialize(net);
	sl_hybridize(net, .passes_off = off);
	SL_SCOPE {
		sl_wait(sl_forward(net, sl_ones(SL_SHAPE(4, 1, 28, 28))));
		struct sl_plan_info info = sl_plan_info(sl_block_plan(net, 0));
		printf("%-18s %2d operations, %2d tasks, %6zu bytes\n", name, info.nodes, info.segments, info.memory);
	}
	sl_block_free(net);
}

int main(void)
{
	compile("all passes", 0);
	compile("without fuse", 1u << SL_PASS_FUSE);
	compile("without layout", 1u << SL_PASS_LAYOUT);
	compile("without segment", 1u << SL_PASS_SEGMENT);
	compile("without memory", 1u << SL_PASS_MEMORY);
	return finish();
}
