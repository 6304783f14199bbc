/* Which calls wait, and for what. */
#include <stdlib.h>

#include "book.h"

static double start;

static void after(const char *what)
{
	printf("%-42s %.4f s\n", what, sl_time() - start);
	sl_wait_all();
	start = sl_time();
}

int main(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_uniform(SL_SHAPE(1000, 1000), 0, 1), *y;
		float *values = malloc(sl_tensor_bytes(x));
		sl_wait_all();
		start = sl_time();

		sl_dot(x, x);
		after("a product, nothing else");
		sl_wait(sl_dot(x, x));
		after("sl_wait: for one tensor");
		sl_dot(x, x);
		sl_dot(x, x);
		sl_wait_all();
		after("sl_wait_all: for all work, two products");
		y = sl_dot(x, x);
		sl_read(y, values, sl_tensor_bytes(y));
		after("sl_read: for the values, and copies them");
		sl_item(sl_norm(sl_dot(x, x)));
		after("sl_item: for a single value");
		y = sl_dot(x, x);
		sl_tensor_shape(y);
		after("sl_tensor_shape: for nothing");
		free(values);
	}
	return finish();
}
