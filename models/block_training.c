/* Training a network made of blocks: eager, hybridised, or in whole steps. */
#include "block_training.h"

const char *const drv_mode_names[DRV_MODE_COUNT] = {
#define X(NAME, name, doc) name,
        DRV_MODES(X)
#undef X
};

static bool start(struct drv_training *t)
{
	struct drv_block_training *b = t->model;
	b->net = b->network();
	if (sl_initialize(b->net, .init = b->init, .devices = t->common->devices, .ndevices = 1) != SL_OK) return false;
	b->trainer = sl_trainer_new(b->net, sl_sgd(.lr = t->options->lr));
	if (b->mode == DRV_HYBRID) sl_hybridize(b->net, .static_alloc = true);
	if (b->mode == DRV_STEP) b->step = sl_step_compile(b->net, sl_softmax_cross_entropy_at, b->trainer);
	return b->trainer && !drv_failed();
}

static void stop(struct drv_training *t)
{
	struct drv_block_training *b = t->model;
	if (t->done)
		drv_print(t->common, "%s: %.1f tasks per step\n", drv_mode_names[b->mode], t->epochs[t->done - 1].tasks);
	sl_step_free(b->step);
	sl_trainer_free(b->trainer);
	sl_block_free(b->net);
}

/* The losses of a batch after a step on it; *output gets what the network said before. */
static sl_tensor *make_step(struct drv_block_training *b, sl_tensor *x, sl_tensor *y, sl_tensor **output)
{
	sl_tensor *losses = NULL;
	if (b->step) return sl_step_run(b->step, x, y, output);
	SL_RECORD {
		*output = sl_forward(b->net, x);
		losses = sl_softmax_cross_entropy(*output, y);
	}
	sl_backward(losses);
	sl_trainer_step(b->trainer, sl_tensor_shape(x).dim[0]);
	return losses;
}

static bool train(struct drv_training *t, sl_tensor *x, sl_tensor *y)
{
	sl_tensor *output, *losses = make_step(t->model, x, y, &output);
	drv_count(&t->sums[0], losses, output, y);
	return !drv_failed();
}

static bool test(struct drv_training *t, sl_tensor *x, sl_tensor *y, int64_t number)
{
	struct drv_block_training *b = t->model;
	(void)number;
	drv_count(&t->sums[0], NULL, sl_forward(b->net, x), y);
	return !drv_failed();
}

/* Trains it on the first device; returns the exit status. */
int drv_train_block(const char *program, const char *title, const struct drv_options *common,
                    const struct drv_train_options *options, struct drv_block_training *how)
{
	return drv_train(&(struct drv_training){.program = program,
	                                        .title = title,
	                                        .common = common,
	                                        .options = options,
	                                        .model = how,
	                                        .start = start,
	                                        .train = train,
	                                        .test = test,
	                                        .stop = stop});
}
