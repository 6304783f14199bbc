/* The C part of bench-python: a round for each line of standard input, as JSON. */
#include <starling/arithmetic.h>
#include <starling/nn.h>
#include <stdio.h>
#include <time.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static sl_tensor *x, *y, *row;
static sl_block *net;

static sl_tensor *add(void)
{
	return sl_add(x, y);
}

static sl_tensor *scalar(void)
{
	return sl_add_scalar(x, 1);
}

static sl_tensor *forward(void)
{
	return sl_forward(net, row);
}

/* Microseconds a call, after some that do not count, as in bench-python. */
static double per_call(sl_tensor *(*call)(void), int n, bool wait_for_each, bool wait_at_end)
{
	for (int i = 0; i < n / 5; i++) sl_release(call());
	sl_wait_all();
	double start = now();
	for (int i = 0; i < n; i++) {
		sl_tensor *t = call();
		if (wait_for_each) sl_wait(t);
		sl_release(t);
	}
	if (wait_at_end) sl_wait_all();
	return (now() - start) / n;
}

int main(void)
{
	char line[64];
	x = sl_ones(SL_SHAPE(2, 3));
	y = sl_ones(SL_SHAPE(2, 3));
	row = sl_normal(SL_SHAPE(1, 512), 0, 1);
	net = sl_sequential(sl_dense(256, .activation = SL_RELU), sl_dense(128, .activation = SL_RELU), sl_dense(2));
	sl_initialize(net);
	sl_hybridize(net);
	sl_release(forward());
	while (sl_error() == SL_OK && fgets(line, sizeof line, stdin)) {
		printf("{\"add\": %f, ", per_call(add, 5000, false, false));
		printf("\"scalar\": %f, ", per_call(scalar, 5000, false, false));
		printf("\"hybrid\": %f, ", per_call(forward, 500, false, false));
		printf("\"hybrid-1000\": %f, ", per_call(forward, 1000, false, true)); /* ms for all of them */
		printf("\"wait\": %f}\n", per_call(scalar, 300, true, false));
		fflush(stdout);
	}
	if (sl_error() != SL_OK) fprintf(stderr, "%s\n", sl_error_message());
	sl_block_free(net);
	sl_release(row);
	sl_release(y);
	sl_release(x);
	sl_shutdown();
	return 0;
}
