/* A network for one row of numbers, imperatively and hybridised: its result, its time, its number of tasks. */
#include "book.h"

enum { CALLS = 1000 };

static uint64_t tasks_so_far(void)
{
	struct sl_stats stats;
	sl_stats_get(&stats);
	return stats.segments;
}

static void call(sl_block *net, sl_tensor *x, int times)
{
	for (int i = 0; i < times; i++)
		SL_SCOPE
			sl_forward(net, x);
	sl_wait_all();
}

static void measure(const char *name, sl_block *net, sl_tensor *x)
{
	sl_print(sl_forward(net, x));
	call(net, x, CALLS / 10); /* warms up */
	uint64_t tasks = tasks_so_far();
	double start = sl_time();
	call(net, x, CALLS);
	printf("%s: %d calls in %.4f s, %llu tasks\n", name, CALLS, sl_time() - start,
	       (unsigned long long)(tasks_so_far() - tasks));
}

int main(void)
{
	sl_block *net =
	        sl_sequential(sl_dense(256, .activation = SL_RELU), sl_dense(128, .activation = SL_RELU), sl_dense(2));
	sl_initialize(net, .init = sl_constant_init(0.01));
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(1, 512));
		measure("imperatively", net, x);
		sl_hybridize(net);
		measure("hybridised", net, x);
	}
	sl_block_free(net);
	return finish();
}
