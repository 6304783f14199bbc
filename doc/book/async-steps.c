/* Many small operations: with a wait after each, and with one at the end. */
#include <math.h>

#include "book.h"

enum { ROUNDS = 20, TIMES = 100 };

static double seconds(sl_tensor *x, bool each)
{
	double start = sl_time();
	for (int i = 0; i < TIMES; i++)
		SL_SCOPE {
			sl_tensor *y = sl_add_scalar(x, 1);
			if (each) sl_wait(y);
		}
	sl_wait_all();
	return sl_time() - start;
}

int main(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(1, 2));
		double waiting = INFINITY, queued = INFINITY; /* the best of each: the machine does other things, too */
		for (int round = 0; round < ROUNDS; round++) {
			waiting = fmin(waiting, seconds(x, true));
			queued = fmin(queued, seconds(x, false));
		}
		printf("%d times y = x + 1, waiting each time:   %.6f s\n", TIMES, waiting);
		printf("%d times y = x + 1, waiting at the end:  %.6f s\n", TIMES, queued);
	}
	return finish();
}
