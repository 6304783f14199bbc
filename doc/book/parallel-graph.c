/* Serial code: a chain must be done in order, a fan may be done at once.  Nothing here says which is which. */
#include "book.h"

enum { PRODUCTS = 12, SIZE = 500 };

int main(void)
{
	if (sl_init(&(struct sl_config){.teams = 2}) != SL_OK) return finish();
	SL_SCOPE {
		sl_tensor *x = sl_mul_scalar(sl_uniform(SL_SHAPE(SIZE, SIZE), 0, 1), 1.0 / SIZE), *y = x;
		sl_wait(sl_dot(x, x));
		double start = sl_time();
		for (int i = 0; i < PRODUCTS; i++) y = sl_dot(y, x);
		sl_wait_all();
		printf("each needs the one before: %.4f s\n", sl_time() - start);

		start = sl_time();
		for (int i = 0; i < PRODUCTS; i++) y = sl_dot(x, x);
		sl_wait_all();
		printf("none needs another:        %.4f s\n", sl_time() - start);
	}
	return finish();
}
