/* Results travel while the next ones are computed. */
#include "book.h"

enum { PRODUCTS = 10, SIZE = 600 };

static void products(sl_tensor *x, sl_tensor **y)
{
	for (int i = 0; i < PRODUCTS; i++) y[i] = sl_dot(x, x);
}

static void copies(sl_tensor **y, sl_device to)
{
	for (int i = 0; i < PRODUCTS; i++) sl_copy_to(y[i], to);
}

static void done(const char *what, double *start)
{
	sl_wait_all();
	printf("%-22s %.4f s\n", what, sl_time() - *start);
	*start = sl_time();
}

int main(void)
{
	if (sl_init(&(struct sl_config){.teams = 2}) != SL_OK) return finish();
	bool gpu = sl_device_count(SL_DEVICE_GPU) > 0;
	sl_device from = gpu ? sl_gpu(0) : sl_cpu(0), to = gpu ? sl_cpu(0) : sl_cpu(1);
	SL_SCOPE {
		sl_tensor *x = sl_uniform(SL_SHAPE(SIZE, SIZE), 0, 1, .device = from), *y[PRODUCTS];
		products(x, y);
		copies(y, to);
		sl_wait_all(); /* warm */

		double start = sl_time();
		products(x, y);
		done("products", &start);
		copies(y, to);
		done("then copies", &start);
		products(x, y);
		copies(y, to);
		done("together", &start);
	}
	return finish();
}
