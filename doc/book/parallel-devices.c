/* Two devices: one after the other, and at the same time; the program does not say which. */
#include "book.h"

enum { PRODUCTS = 10, SIZE = 600 };

static void products(sl_tensor *x)
{
	for (int i = 0; i < PRODUCTS; i++) sl_dot(x, x);
}

static void done(const char *what, double *start)
{
	sl_wait_all();
	printf("%-22s %.4f s\n", what, sl_time() - *start);
	*start = sl_time();
}

int main(void)
{
	/* Two CPU devices, half of the cores each. */
	if (sl_init(&(struct sl_config){.teams = 2}) != SL_OK) return finish();
	SL_SCOPE {
		sl_tensor *a = sl_uniform(SL_SHAPE(SIZE, SIZE), 0, 1, .device = sl_cpu(0));
		sl_tensor *b = sl_uniform(SL_SHAPE(SIZE, SIZE), 0, 1, .device = sl_cpu(1));
		products(a);
		products(b);
		sl_wait_all(); /* warm */

		double start = sl_time();
		products(a);
		done("on cpu:0", &start);
		products(b);
		done("then on cpu:1", &start);
		products(a);
		products(b);
		done("on both", &start);
	}
	return finish();
}
