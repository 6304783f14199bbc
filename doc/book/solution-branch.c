/* A forward that branches on a value: an error when it is traced, or a fallback, or no branch at all. */
#include <stdlib.h>

#include "book.h"

static sl_tensor *branch(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)self, (void)nin;
	return sl_item(sl_sum(in[0])) > 0 ? sl_mul_scalar(in[0], 2) : sl_neg(in[0]);
}

/* The same without asking: both are computed, and 0 or 1 chooses. */
static sl_tensor *choose(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)self, (void)nin;
	sl_tensor *yes = sl_cast(sl_gt_scalar(sl_sum(in[0]), 0), SL_FLOAT32), *no = sl_rsub_scalar(yes, 1);
	return sl_add(sl_mul(yes, sl_mul_scalar(in[0], 2)), sl_mul(no, sl_neg(in[0])));
}

static sl_block *block(sl_tensor *(*forward)(sl_block *, sl_tensor *const *, int))
{
	sl_block *b = calloc(1, sizeof *b);
	sl_block_init(b, "Block", forward, NULL);
	return b;
}

int main(void)
{
	sl_block *branching = block(branch), *choosing = block(choose);
	SL_SCOPE {
		sl_tensor *x = sl_full(SL_SHAPE(2), 3);
		sl_print(sl_forward(branching, x));
		sl_hybridize(branching);
		printf("hybridised: %s\n", sl_forward(branching, x) ? "works" : "refused");
		sl_error_clear();
		sl_hybridize(choosing);
		sl_print(sl_forward(choosing, x));
		sl_print(sl_forward(choosing, sl_neg(x)));
	}
	sl_block_free(branching);
	sl_block_free(choosing);
	return finish();
}
