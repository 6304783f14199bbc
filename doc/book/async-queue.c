/* Asking for work and having it done are two things. */
#include "book.h"

int main(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_uniform(SL_SHAPE(1500, 1500), 0, 1);
		sl_wait(x);
		double start = sl_time();
		sl_tensor *y = sl_sum(sl_dot(x, x));
		printf("asked for after %.4f s\n", sl_time() - start);
		double sum = sl_item(y);
		printf("there after     %.4f s: %.6g\n", sl_time() - start, sum);
	}
	return finish();
}
