/* Eight independent operations on small vectors: in tasks of their own, and gathered. */
#include "book.h"

enum { ROUNDS = 2000, EIGHT = 8 };

static int run(int bulk)
{
	struct sl_stats stats;
	if (sl_init(&(struct sl_config){.teams = 2, .bulk = bulk}) != SL_OK) return finish();
	SL_SCOPE {
		sl_tensor *x[EIGHT];
		for (int i = 0; i < EIGHT; i++) x[i] = sl_ones(SL_SHAPE(100));
		sl_wait_all();
		sl_stats_reset();
		double start = sl_time();
		for (int r = 0; r < ROUNDS; r++)
			SL_SCOPE
				for (int i = 0; i < EIGHT; i++) sl_exp(x[i]);
		sl_wait_all();
		double seconds = sl_time() - start;
		sl_stats_get(&stats);
		printf("up to %2d a task: %5llu operations in %5llu tasks, %.4f s\n", bulk,
		       (unsigned long long)stats.ops, (unsigned long long)stats.segments, seconds);
	}
	return finish();
}

int main(void)
{
	return run(1) || run(32);
}
