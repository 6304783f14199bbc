/* Many small operations: with a wait after each, and with one at the end. */
#include "book.h"

enum { TIMES = 1000 };

static double seconds(sl_tensor *x, bool each)
{
	double start = sl_time();
	for (int i = 0; i < TIMES; i++) SL_SCOPE {
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
		seconds(x, false); /* warms up */
		printf("%d times y = x + 1, waiting each time:   %.4f s\n", TIMES, seconds(x, true));
		printf("%d times y = x + 1, waiting at the end:  %.4f s\n", TIMES, seconds(x, false));
	}
	return finish();
}
