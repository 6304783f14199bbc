/* Trains a network of blocks: eager, hybridised, or in whole steps; on one device, or in shards. */
#include <stdlib.h>
#include <string.h>

#include <starling/dist.h>

#include "block_training.h"

const char *const drv_mode_names[DRV_MODE_COUNT] = {
#define X(NAME, name, doc) name,
        DRV_MODES(X)
#undef X
};

/* The mode of --mode. */
enum drv_mode drv_mode_parse(struct argp_state *state, const char *text)
{
	for (int i = 0; i < DRV_MODE_COUNT; i++)
		if (!strcmp(text, drv_mode_names[i])) return (enum drv_mode)i;
	argp_error(state, "--mode: \"%s\" must be eager, hybrid or step", text);
	return DRV_EAGER;
}

/* The optimiser of --optimizer. */
enum sl_optimizer_kind drv_optimizer_parse(struct argp_state *state, const char *text)
{
	char names[256] = "";
	int kind = sl_optimizer_named(text);
	for (int i = 0; sl_optimizer_name((enum sl_optimizer_kind)i); i++) {
		size_t used = strlen(names);
		snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
		         sl_optimizer_name((enum sl_optimizer_kind)i));
	}
	if (kind < 0) argp_error(state, "--optimizer: \"%s\" is none of %s", text, names);
	return (enum sl_optimizer_kind)kind;
}

/* The driver's learning rate is SGD's: others have their own unless one was asked for. */
static struct sl_optimizer optimizer_of(struct drv_training *t)
{
	const struct drv_block_training *b = t->model;
	struct sl_optimizer o = SL_OPTIMIZER(b->optimizer, .loss_scaling = drv_loss_scaling(&t->options->precision),
	                                     .state_on = t->options->state_on);
	if (b->optimizer == SL_SGD || t->options->lr_given) o.lr = t->lr;
	t->lr = sl_optimizer_lr(&o);
	return o;
}

/* ---- start and stop ---------------------------------------------------------------------------------------------- */

/* Shards side by side on the devices: as many on each as their numbers allow.  What goes on with a checkpoint cuts its
 * batches as before if nothing else is asked for. */
static bool place_shards(struct drv_training *t)
{
	struct drv_block_training *b = t->model;
	const struct drv_options *o = t->common;
	if (!b->shards) b->shards = t->shards > o->ndevices ? t->shards : o->ndevices;
	t->shards = b->shards;
	b->where = calloc((size_t)b->shards, sizeof *b->where);
	for (int i = 0; b->where && i < b->shards; i++) b->where[i] = o->devices[(int64_t)i * o->ndevices / b->shards];
	if (b->where && b->by_speed) b->balance = sl_balance_new(b->where, b->shards);
	return b->where != NULL;
}

static bool start(struct drv_training *t)
{
	struct drv_block_training *b = t->model;
	const struct drv_options *o = t->common;
	if (t->options->memory && b->mode != DRV_STEP)
		return drv_error("--memory is for whole steps, each of which is one program"), false;
	b->net = b->network ? b->network() : b->build(b);
	if (!place_shards(t)) return false;
	if (sl_initialize(b->net, .init = b->init, .devices = o->devices, .ndevices = o->ndevices) != SL_OK)
		return false;
	if (b->params && sl_load_params(b->net, b->params) != SL_OK) return false;
	b->trainer = sl_trainer_new(b->net, optimizer_of(t));
	if (b->mode != DRV_EAGER) sl_hybridize(b->net, .static_alloc = true, .memory = t->options->memory);
	if (b->mode == DRV_STEP)
		b->step =
		        sl_step_compile(b->net, sl_softmax_cross_entropy_at, b->trainer, .memory = t->options->memory);
	return b->trainer && !drv_failed();
}

static void stop(struct drv_training *t)
{
	struct drv_block_training *b = t->model;
	if (t->done)
		drv_print(t->common, "%s: %.1f tasks per step\n", drv_mode_names[b->mode],
		          t->epochs[t->done - 1].tasks);
	sl_step_free(b->step);
	sl_trainer_free(b->trainer);
	sl_block_free(b->net);
	sl_balance_free(b->balance);
	free(b->where);
}

static void state(struct drv_training *t, struct drv_state *state)
{
	state->trainer = ((struct drv_block_training *)t->model)->trainer;
}

/* ---- one device -------------------------------------------------------------------------------------------------- */

/* The losses of a batch after a step on it; *output gets the network's output before the step. */
static sl_tensor *make_step(struct drv_block_training *b, sl_tensor *x, sl_tensor *y, sl_tensor **output)
{
	sl_tensor *losses = NULL;
	if (b->step) return sl_step_run(b->step, x, y, output);
	SL_RECORD {
		sl_forward_shards(b->net, 1, &x, output);
		losses = sl_softmax_cross_entropy(*output, y);
	}
	sl_backward_heads(&losses, 1, .scale = sl_trainer_loss_scale(b->trainer));
	sl_trainer_step(b->trainer, sl_tensor_shape(x).dim[0]);
	return losses;
}

/* ---- shards ------------------------------------------------------------------------------------------------------ */

/* The results of a batch, shard by shard. */
struct shards {
	int count;
	sl_tensor *x[DRV_MAX_DEVICES], *y[DRV_MAX_DEVICES], *losses[DRV_MAX_DEVICES], *outputs[DRV_MAX_DEVICES];
};

static void make_shard_steps(struct drv_block_training *b, struct shards *s, int64_t rows)
{
	if (b->step) {
		sl_step_run(b->step, .output = s->outputs, .in = s->x, .targets = s->y, .losses = s->losses,
		            .shards = s->count);
		return;
	}
	SL_RECORD {
		sl_forward_shards(b->net, s->count, s->x, s->outputs);
		for (int i = 0; i < s->count; i++) s->losses[i] = sl_softmax_cross_entropy(s->outputs[i], s->y[i]);
	}
	sl_backward_heads(s->losses, s->count, .scale = sl_trainer_loss_scale(b->trainer));
	sl_trainer_step(b->trainer, rows);
}

/* Which of the sums a shard counts in. */
static struct drv_sums *sums_of(struct drv_training *t, sl_device device)
{
	for (int i = 0; i < t->common->ndevices; i++)
		if (sl_device_equal(t->common->devices[i], device)) return &t->sums[i];
	return &t->sums[0];
}

/* Says how many rows each device gets, if that has changed. */
static void print_split(const struct drv_training *t, const struct shards *s)
{
	struct drv_block_training *b = t->model;
	bool changed = false;
	for (int i = 0; i < s->count; i++) {
		int64_t rows = sl_tensor_shape(s->x[i]).dim[0];
		changed |= rows != b->rows[i];
		b->rows[i] = rows;
	}
	if (!changed) return;
	drv_print(t->common, "split:");
	for (int i = 0; i < s->count; i++) {
		char name[SL_DEVICE_NAME_MAX];
		drv_print(t->common, "%s %lld on %s", i ? "," : "", (long long)b->rows[i],
		          sl_device_name(b->where[i], name));
	}
	drv_print(t->common, "\n");
}

/* Looks at the speeds once programs are compiled and caches are warm, and now and then. */
static bool rebalance(struct drv_block_training *b)
{
	enum { EVERY = 50 };
	bool due = b->batches == 2 || b->batches == 6 || b->batches == 14 || b->batches % EVERY == EVERY - 1;
	return b->balance && due && sl_balance_update(b->balance);
}

/* An epoch's last batch may have fewer rows than there are shards: then each is a shard. */
static bool train_shards(struct drv_training *t, sl_tensor *x, sl_tensor *y)
{
	struct drv_block_training *b = t->model;
	int64_t rows = sl_tensor_shape(x).dim[0];
	struct shards s = {.count = rows < b->shards ? (int)rows : b->shards};
	bool changed = rebalance(b) || (!b->batches && b->shards > 1);
	const sl_balance *balance = s.count == b->shards ? b->balance : NULL;
	sl_split_and_load(x, b->where, s.count, s.x, .uneven = true, .balance = balance);
	sl_split_and_load(y, b->where, s.count, s.y, .uneven = true, .balance = balance);
	if (drv_failed()) return false;
	if (changed) print_split(t, &s);
	make_shard_steps(b, &s, rows);
	if (b->mode != DRV_EAGER) drv_pace(&t->pace, s.losses[0]);
	for (int i = 0; i < s.count && !drv_failed(); i++)
		drv_count(sums_of(t, b->where[i]), s.losses[i], s.outputs[i], s.y[i]);
	b->batches++;
	return !drv_failed();
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

static bool train(struct drv_training *t, sl_tensor *x, sl_tensor *y)
{
	struct drv_block_training *b = t->model;
	bool alone = t->ndevices < t->common->ndevices;
	if (!alone && (b->shards > 1 || b->balance)) return train_shards(t, x, y);
	if (alone || t->options->memory) {
		x = sl_place(x, t->common->devices[0]);
		y = sl_place(y, t->common->devices[0]);
	}
	sl_tensor *output, *losses = make_step(t->model, x, y, &output);
	if (b->mode != DRV_EAGER) drv_pace(&t->pace, losses);
	drv_count(&t->sums[0], losses, output, y);
	return !drv_failed();
}

/* Whole batches are dealt out to the devices in turn.  All ranks test with rank 0's running statistics, which
 * checkpoints keep. */
static bool test(struct drv_training *t, sl_tensor *x, sl_tensor *y, int64_t number)
{
	struct drv_block_training *b = t->model;
	int64_t i = number % t->ndevices;
	sl_device device = t->common->devices[i];
	if (number == 0 && sl_dist_size() > 1 && sl_dist_broadcast(b->net) != SL_OK) return !drv_failed();
	drv_count(&t->sums[i], NULL, sl_forward(b->net, sl_place(x, device)), sl_place(y, device));
	return !drv_failed();
}

/* Trains it on the devices; returns the exit status. */
int drv_train_block(const char *program, const char *title, const struct drv_options *common,
                    const struct drv_train_options *options, struct drv_block_training *how)
{
	return drv_train(&(struct drv_training){.program = program,
	                                        .title = title,
	                                        .mode = drv_mode_names[how->mode],
	                                        .common = common,
	                                        .options = options,
	                                        .model = how,
	                                        .open = how->open,
	                                        .start = start,
	                                        .train = train,
	                                        .test = test,
	                                        .stop = stop,
	                                        .state = state});
}
