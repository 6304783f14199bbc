/* When does hybridising pay?  The same network for batches of one row up to many. */
#include <math.h>

#include "book.h"

enum { ROUNDS = 5 };

static sl_block *network(bool hybrid)
{
	sl_block *net =
	        sl_sequential(sl_dense(256, .activation = SL_RELU), sl_dense(128, .activation = SL_RELU), sl_dense(2));
	sl_initialize(net);
	if (hybrid) sl_hybridize(net);
	return net;
}

static double seconds(sl_block *net, sl_tensor *x, int calls)
{
	double start = sl_time();
	for (int i = 0; i < calls; i++)
		SL_SCOPE
			sl_forward(net, x);
	sl_wait_all();
	return (sl_time() - start) / calls;
}

int main(void)
{
	sl_block *net = network(false), *hybrid = network(true);
	for (int64_t rows = 1; rows <= 1024; rows *= 32)
		SL_SCOPE {
			sl_tensor *x = sl_normal(SL_SHAPE(rows, 512), 0, 1);
			double a = INFINITY,
			       b = INFINITY; /* in turn, and the best of each: the machine does other things, too */
			for (int round = 0; round < ROUNDS; round++) {
				a = fmin(a, seconds(net, x, rows < 1024 ? 200 : 10));
				b = fmin(b, seconds(hybrid, x, rows < 1024 ? 200 : 10));
			}
			printf("%4lld rows: %8.1f us imperatively, %8.1f us hybridised\n", (long long)rows, 1e6 * a,
			       1e6 * b);
		}
	sl_block_free(net);
	sl_block_free(hybrid);
	return finish();
}
