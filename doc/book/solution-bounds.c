/* The bound on run-ahead: tasks, memory and time with a small one, with the default and with a large one. */
#include "book.h"

enum { TIMES = 300 };

static int run(int tasks)
{
	struct sl_stats stats;
	struct sl_config config = {.runahead_tasks = tasks, .runahead_bytes = (size_t)1 << 30, .bulk = 1};
	if (sl_init(&config) != SL_OK) return finish();
	double start = sl_time();
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(256, 256));
		for (int i = 0; i < TIMES; i++)
			SL_SCOPE
				sl_dot(x, x);
		sl_wait_all();
	}
	sl_stats_get(&stats);
	printf("at most %4d tasks: %4llu at the peak, %6.1f MB, %.3f s\n", tasks, (unsigned long long)stats.peak_tasks,
	       (double)stats.peak_bytes / 1e6, sl_time() - start);
	return finish();
}

int main(void)
{
	return run(2) || run(32) || run(512);
}
