/* The cost of a small operation for the program that asks for it, and for the engine that does it. */
#include <math.h>

#include "book.h"

enum { ROUNDS = 50, TIMES = 2000, WAITS = 2 };

int main(void)
{
	double asked = INFINITY, done = INFINITY, waited = INFINITY; /* seconds an operation, the best of all rounds */
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(1, 2));
		for (int round = 0; round < ROUNDS; round++) {
			double start = sl_time();
			for (int i = 0; i < TIMES; i++)
				SL_SCOPE
					sl_add_scalar(x, 1);
			asked = fmin(asked, (sl_time() - start) / TIMES);
			sl_wait_all();
			done = fmin(done, (sl_time() - start) / TIMES);

			start = sl_time();
			for (int i = 0; i < WAITS; i++)
				SL_SCOPE
					sl_wait(sl_add_scalar(x, 1));
			waited = fmin(waited, (sl_time() - start) / WAITS);
		}
		printf("asking takes %.2f us an operation, all of it %.2f us\n", 1e6 * asked, 1e6 * done);
		printf("with a wait for each, %.2f us\n", 1e6 * waited);
	}
	return finish();
}
