/* Copies of parameters, sums over devices, parts of a batch: each by itself, on small tensors. */
#include "book.h"

int main(void)
{
	if (sl_init(&(struct sl_config){.teams = 2}) != SL_OK) return finish();
	sl_device devices[] = {sl_cpu(0), sl_cpu(1)};
	SL_SCOPE {
		puts("a copy of a bias on cpu:1, and its gradient");
		sl_tensor *bias = sl_copy_to(sl_zeros(SL_SHAPE(4)), devices[1]);
		sl_attach_grad(bias);
		sl_print(bias);
		sl_print(sl_grad(bias));

		puts("two tensors, and their sum on both devices");
		sl_tensor *a = sl_ones(SL_SHAPE(1, 2), .device = devices[0]),
		          *b = sl_full(SL_SHAPE(1, 2), 2, .device = devices[1]);
		sl_add_(a, sl_copy_to(b, devices[0]));
		sl_copy_(b, sl_copy_to(a, devices[1]));
		sl_print(a);
		sl_print(b);

		puts("a batch of four rows, and its two parts");
		sl_tensor *batch = sl_reshape(sl_arange(0, 12, 1), SL_SHAPE(4, 3));
		for (int i = 0; i < 2; i++) sl_print(sl_copy_to(sl_rows(batch, 2 * i, 2 * i + 2), devices[i]));
	}
	return finish();
}
