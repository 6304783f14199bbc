/* Training that never waits: how far does the program run ahead, and how much memory does that take? */
#include "book.h"

enum { BATCHES = 60, ROWS = 256 };

static void step(sl_block *net, sl_trainer *trainer, bool wait)
{
	sl_tensor *x = sl_normal(SL_SHAPE(ROWS, 256), 0, 1), *y = sl_ones(SL_SHAPE(ROWS, 1)), *loss;
	SL_RECORD
		loss = sl_l2_loss(sl_forward(net, x), y);
	sl_backward(loss);
	sl_trainer_step(trainer, ROWS);
	if (wait) sl_item(sl_mean(loss));
}

static void train(const char *name, sl_block *net, sl_trainer *trainer, bool wait)
{
	struct sl_stats stats;
	sl_stats_reset();
	double start = sl_time();
	for (int i = 0; i < BATCHES; i++)
		SL_SCOPE
			step(net, trainer, wait);
	double asked = sl_time() - start;
	sl_wait_all();
	sl_stats_get(&stats);
	printf("%s: asked for after %.3f s, done after %.3f s\n", name, asked, sl_time() - start);
	printf("  at most %llu unfinished tasks, %.1f MB; held back %llu times\n", (unsigned long long)stats.peak_tasks,
	       (double)stats.peak_bytes / 1e6, (unsigned long long)stats.stalls);
}

int main(void)
{
	sl_block *net =
	        sl_sequential(sl_dense(512, .activation = SL_RELU), sl_dense(256, .activation = SL_RELU), sl_dense(1));
	sl_initialize(net);
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.005));
	SL_SCOPE
		step(net, trainer, true); /* warms up */
	train("the loss read after each batch", net, trainer, true);
	train("nothing read", net, trainer, false);
	sl_trainer_free(trainer);
	sl_block_free(net);
	return finish();
}
