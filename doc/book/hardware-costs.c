/* The costs on this machine: an operation, a wait, an arithmetic operation, a byte. */
#include <math.h>

#include "book.h"

/* An operation's time: the best of some rounds, since the machine does other things, too. */
static double seconds(sl_tensor *(*operation)(sl_tensor *x), sl_tensor *x, int times)
{
	enum { ROUNDS = 30 };
	double best = INFINITY;
	for (int round = 0; round < ROUNDS; round++) {
		double start = sl_time();
		for (int i = 0; i < times; i++)
			SL_SCOPE
				operation(x);
		sl_wait_all();
		best = fmin(best, (sl_time() - start) / times);
	}
	return best;
}

static sl_tensor *plus_one(sl_tensor *x)
{
	return sl_add_scalar(x, 1);
}

static sl_tensor *product(sl_tensor *x)
{
	return sl_dot(x, x);
}

static sl_tensor *waited(sl_tensor *x)
{
	x = sl_add_scalar(x, 1);
	sl_wait(x);
	return x;
}

int main(void)
{
	enum { N = 1024, MANY = 1 << 24 };
	SL_SCOPE {
		sl_tensor *small = sl_ones(SL_SHAPE(4)), *matrix = sl_ones(SL_SHAPE(N, N)),
		          *vector = sl_ones(SL_SHAPE(MANY));
		double call = seconds(plus_one, small, 2000), wait = seconds(waited, small, 2);
		double flop = seconds(product, matrix, 2) / (2.0 * N * N * N),
		       byte = seconds(plus_one, vector, 2) / (8.0 * MANY);
		printf("a small operation          %8.2f us\n", 1e6 * call);
		printf("... that is waited for     %8.2f us\n", 1e6 * wait);
		printf("multiply and add, dense    %8.1f GFLOP/s\n", 1e-9 / flop);
		printf("reading and writing        %8.1f GB/s\n", 1e-9 / byte);
		printf("a byte is worth            %8.1f arithmetic operations\n", byte / flop);
		printf("a wait is worth            %8.0f arithmetic operations\n", wait / flop);
	}
	return finish();
}
