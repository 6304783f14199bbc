/* Products of growing matrices: when does the arithmetic outweigh everything else? */
#include "book.h"

int main(void)
{
	for (int64_t n = 16; n <= 1024; n *= 4)
		SL_SCOPE {
			sl_tensor *x = sl_ones(SL_SHAPE(n, n));
			int times = n < 256 ? 2000 : 20;
			double start = 0;
			for (int i = -times; i < times; i++) {
				if (i == 0) {
					sl_wait_all();
					start = sl_time();
				}
				SL_SCOPE
					sl_dot(x, x);
			}
			sl_wait_all();
			double each = (sl_time() - start) / times;
			printf("%4lld x %4lld: %9.1f us, %7.1f GFLOP/s\n", (long long)n, (long long)n, 1e6 * each,
			       2e-9 * (double)(n * n * n) / each);
		}
	return finish();
}
