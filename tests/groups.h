/* What tests of groups of parameters have in common: a small network in float64 or another type, trained in every way
 * there is. */
#ifndef SLP_TESTS_GROUPS_H
#define SLP_TESTS_GROUPS_H

#include <math.h>
#include <string.h>

#include "blocks.h"
#include "folder.h"

enum way { EAGER, HYBRID, STEP, SHARDS, MICRO, MICRO_EAGER, MICRO_SHARDS, WAYS };
static const char *const way_names[] = {
        "eager", "hybrid", "step", "shards", "micro-batches", "eager micro-batches", "micro-batches in shards"};

struct run {
	enum way way;
	sl_block *net;
	sl_trainer *trainer;
	sl_step *step;
};

enum { ROWS = 4, NUMBERS = 13 };
static const double x_values[] = {1, 2, 3, -1, .5, .25, 2, 1}, y_values[] = {1, 0, 2, -1};
static const struct {
	const char *path;
	double values[6];
	int64_t rows, columns;
} first[] = {{"0.weight", {.5, -1, .25, .75, -.5, .125}, 3, 2},
             {"0.bias", {.1, -.2, .3}, 3, 0},
             {"1.weight", {1, -.5, .25}, 1, 3},
             {"1.bias", {.25}, 1, 0}};

static void set_first(sl_block *net, enum sl_dtype dtype)
{
	for (int i = 0; i < 4; i++)
		SL_SCOPE {
			sl_shape shape =
			        first[i].columns ? SL_SHAPE(first[i].rows, first[i].columns) : SL_SHAPE(first[i].rows);
			sl_tensor *t = sl_cast(sl_from(first[i].values, shape, .dtype = SL_FLOAT64), dtype);
			CHECK_OK(sl_param_set(sl_block_find(net, first[i].path), t));
		}
}

static struct run run_new(enum way way, enum sl_dtype dtype, struct sl_optimizer optimizer)
{
	const sl_device devices[] = {sl_cpu(0), sl_cpu(1)};
	bool shards = way == SHARDS || way == MICRO_SHARDS;
	struct run r = {
	        .way = way,
	        .net = sl_sequential(sl_dense(3, .in_units = 2, .activation = SL_TANH), sl_dense(1, .in_units = 3))};
	CHECK_OK(sl_initialize(r.net, .dtype = dtype, .gather = way == MICRO_EAGER ? 2 : 0,
	                       .devices = shards ? devices : NULL, .ndevices = shards ? 2 : 0));
	set_first(r.net, dtype);
	if (way == HYBRID) CHECK_OK(sl_hybridize(r.net));
	r.trainer = sl_trainer_new(r.net, optimizer);
	if (way != EAGER && way != HYBRID && way != MICRO_EAGER)
		r.step = sl_step_compile(r.net, sl_l2_loss_at, r.trainer,
		                         .accumulate = way == MICRO || way == MICRO_SHARDS ? 2 : 0);
	CHECK(r.trainer != NULL);
	return r;
}

static void run_free(struct run *r)
{
	sl_step_free(r->step);
	sl_trainer_free(r->trainer);
	sl_block_free(r->net);
}

/* Rows begin to end, up to the gradients or the step. */
static void part(struct run *r, enum sl_dtype dtype, int begin, int end)
{
	SL_SCOPE {
		sl_tensor *x =
		        sl_cast(sl_from(x_values + 2 * begin, SL_SHAPE(end - begin, 2), .dtype = SL_FLOAT64), dtype);
		sl_tensor *y = sl_cast(sl_from(y_values + begin, SL_SHAPE(end - begin, 1), .dtype = SL_FLOAT64), dtype),
		          *loss = NULL;
		sl_device devices[] = {sl_cpu(0), sl_cpu(1)};
		sl_tensor *xs[2], *ys[2];
		if (r->way == SHARDS || r->way == MICRO_SHARDS) {
			CHECK_OK(sl_split_and_load(x, devices, 2, xs));
			CHECK_OK(sl_split_and_load(y, devices, 2, ys));
			CHECK(sl_step_run(r->step, .in = xs, .targets = ys, .shards = 2) != NULL);
		} else if (r->step) {
			CHECK_SAYING(sl_step_run(r->step, x, y, NULL) != NULL, "%s", sl_error_message());
		} else {
			SL_RECORD
				loss = sl_l2_loss(sl_forward(r->net, x), y);
			CHECK_OK(sl_backward(loss));
		}
	}
}

/* A step on all rows; of micro-batches, the first half of one with `half`. */
static void one_step(struct run *r, enum sl_dtype dtype, bool half)
{
	bool micro = r->way == MICRO || r->way == MICRO_EAGER || r->way == MICRO_SHARDS;
	part(r, dtype, 0, micro ? 2 : ROWS);
	if (micro && !half) part(r, dtype, 2, ROWS);
	if (!r->step && !half) CHECK_OK(sl_trainer_step(r->trainer, ROWS));
}

static void go(struct run *r, enum sl_dtype dtype, int steps)
{
	for (int i = 0; i < steps; i++) one_step(r, dtype, false);
}

static void numbers_of(const struct run *r, double *numbers)
{
	for (int i = 0, n = 0; i < 4; i++)
		SL_SCOPE {
			sl_tensor *t = sl_cast(slp_data(r->net, first[i].path), SL_FLOAT64);
			CHECK_OK(sl_read(t, numbers + n, sl_tensor_bytes(t)));
			n += (int)sl_tensor_size(t);
		}
}

/* b gets where a is: by a checkpoint, or by the files of its parameters and its trainer. */
static inline void hand_over(const struct run *a, const struct run *b, bool checkpoint)
{
	char path[PATH_MAX], params[PATH_MAX];
	slp_scratch_path("run.safetensors", path);
	slp_scratch_path("net.safetensors", params);
	if (checkpoint) {
		CHECK_OK(sl_checkpoint_save(path, .trainer = a->trainer));
		CHECK_OK(sl_checkpoint_load(path, .trainer = b->trainer));
		return;
	}
	CHECK_OK(sl_save_params(a->net, params));
	CHECK_OK(sl_trainer_save(a->trainer, path));
	CHECK_OK(sl_load_params(b->net, params));
	CHECK_OK(sl_trainer_load(b->trainer, path));
}

static void check_numbers(const char *what, const struct run *r, const double *expected, double close)
{
	double got[NUMBERS];
	numbers_of(r, got);
	for (int i = 0; i < NUMBERS; i++)
		CHECK_SAYING(fabs(got[i] - expected[i]) <= close, "%s, %s: number %d is %.12g, not %.12g", what,
		             way_names[r->way], i, got[i], expected[i]);
}

#endif
