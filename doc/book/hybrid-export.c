/* A network goes into files, and comes back without the code that built it. */
#include "book.h"

int main(void)
{
	sl_block *net = sl_sequential(sl_dense(16, .activation = SL_RELU), sl_dense(2));
	sl_initialize(net, .init = sl_constant_init(0.1));
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(1, 8));
		sl_print(sl_forward(net, x));
		sl_export(net, "my_mlp", SL_SHAPES(SL_SHAPE(1, 8))); /* my_mlp-symbol.json, my_mlp-0000.params */

		sl_block *again = sl_import("my_mlp-symbol.json", SL_NAMES("data"), "my_mlp-0000.params");
		sl_print(sl_forward(again, x));
		sl_summary(stdout, again, SL_SHAPE(1, 8));
		sl_block_free(again);
	}
	sl_block_free(net);
	return finish();
}
