/* Every loss is reported, and the program waits for none of them right away: each is read a few batches late. */
#include <math.h>

#include "book.h"

enum { ROUNDS = 5, BATCHES = 20, ROWS = 256, LATE = 4 };

static sl_tensor *step(sl_block *net, sl_trainer *trainer)
{
	sl_tensor *x = sl_normal(SL_SHAPE(ROWS, 256), 0, 1), *y = sl_ones(SL_SHAPE(ROWS, 1)), *loss;
	SL_RECORD
		loss = sl_l2_loss(sl_forward(net, x), y);
	sl_backward(loss);
	sl_trainer_step(trainer, ROWS);
	return sl_mean(loss);
}

/* Trains; reads each loss so many batches after it was asked for.  Seconds; *last gets the last loss. */
static double train(sl_block *net, sl_trainer *trainer, int late, double *last)
{
	sl_tensor *losses[BATCHES];
	double start = sl_time();
	for (int i = 0; i < BATCHES + late; i++) {
		if (i < BATCHES)
			SL_SCOPE
				losses[i] = sl_retain(step(net, trainer)); /* outlives the scope */
		if (i < late) continue;
		*last = sl_item(losses[i - late]);
		sl_release(losses[i - late]);
	}
	sl_wait_all();
	return sl_time() - start;
}

int main(void)
{
	sl_block *net =
	        sl_sequential(sl_dense(512, .activation = SL_RELU), sl_dense(256, .activation = SL_RELU), sl_dense(1));
	sl_initialize(net);
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.005));
	double last = 0, at_once = INFINITY, late = INFINITY;
	for (int round = 0; round < ROUNDS; round++) { /* in turn, and the best of each */
		at_once = fmin(at_once, train(net, trainer, 0, &last));
		late = fmin(late, train(net, trainer, LATE, &last));
	}
	printf("losses read at once:        %.4f s\n", at_once);
	printf("losses read %d batches late: %.4f s; the last one is %.4f\n", LATE, late, last);
	sl_trainer_free(trainer);
	sl_block_free(net);
	return finish();
}
