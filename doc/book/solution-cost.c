/* What one small operation costs the program that asks for it, and the engine that does it. */
#include "book.h"

enum { TIMES = 20000, WAITS = 200 };

int main(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(1, 2));
		for (int round = 0; round < 2; round++) { /* the first warms up */
			double start = sl_time();
			for (int i = 0; i < TIMES; i++) SL_SCOPE sl_add_scalar(x, 1);
			double asked = sl_time() - start;
			sl_wait_all();
			double done = sl_time() - start;
			if (round)
				printf("asking takes %.2f us an operation, all of it %.2f us\n", 1e6 * asked / TIMES,
				       1e6 * done / TIMES);
		}
		double start = sl_time();
		for (int i = 0; i < WAITS; i++) SL_SCOPE sl_wait(sl_add_scalar(x, 1));
		printf("with a wait for each, %.2f us\n", 1e6 * (sl_time() - start) / WAITS);
	}
	return finish();
}
