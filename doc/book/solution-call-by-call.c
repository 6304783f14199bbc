/* The same training step, call by call and as one program a shard: time and tasks. */
#include <math.h>

#include "book.h"

enum { ROUNDS = 5, STEPS = 10, ROWS = 64, N = 2 };

struct training {
	sl_block *net;
	sl_trainer *trainer;
	sl_step *step; /* NULL: call by call */
	double seconds;
	uint64_t tasks;
};

static void set_up(struct training *t, const sl_device *devices, bool whole)
{
	t->net = sl_sequential(sl_conv2d_layer(8, .kernel = {3}, .activation = SL_RELU), sl_max_pool2d_layer(2),
	                       sl_dense(64, .activation = SL_RELU), sl_dense(10));
	sl_initialize(t->net, .devices = devices, .ndevices = N);
	t->trainer = sl_trainer_new(t->net, sl_sgd(.lr = 0.1));
	t->step = whole ? sl_step_compile(t->net, sl_softmax_cross_entropy_at, t->trainer) : NULL;
	t->seconds = INFINITY;
}

static void tear_down(struct training *t)
{
	sl_step_free(t->step);
	sl_trainer_free(t->trainer);
	sl_block_free(t->net);
}

static void step(struct training *t, sl_tensor **xs, sl_tensor **ys)
{
	sl_tensor *losses[N];
	if (t->step) {
		sl_step_run(t->step, .in = xs, .targets = ys, .losses = losses, .shards = N);
		return;
	}
	SL_RECORD
		for (int i = 0; i < N; i++) losses[i] = sl_softmax_cross_entropy(sl_forward(t->net, xs[i]), ys[i]);
	sl_backward_heads(losses, N);
	sl_trainer_step(t->trainer, ROWS);
}

/* A few steps; keeps the best time of all rounds. */
static void measure(struct training *t, sl_tensor **xs, sl_tensor **ys)
{
	struct sl_stats stats;
	sl_stats_reset();
	double start = sl_time();
	for (int i = 0; i < STEPS; i++)
		SL_SCOPE
			step(t, xs, ys);
	sl_wait_all();
	t->seconds = fmin(t->seconds, (sl_time() - start) / STEPS);
	sl_stats_get(&stats);
	t->tasks = stats.segments / STEPS;
}

int main(void)
{
	if (sl_init(&(struct sl_config){.teams = N}) != SL_OK) return finish();
	sl_device devices[N] = {sl_cpu(0), sl_cpu(1)};
	struct training t[2];
	for (int i = 0; i < 2; i++) set_up(&t[i], devices, i == 1);
	SL_SCOPE {
		sl_tensor *xs[N], *ys[N];
		sl_split_and_load(sl_ones(SL_SHAPE(ROWS, 1, 28, 28)), devices, N, xs);
		sl_split_and_load(sl_zeros(SL_SHAPE(ROWS), .dtype = SL_INT32), devices, N, ys);
		for (int round = 0; round < ROUNDS; round++)
			for (int i = 0; i < 2; i++)
				measure(&t[i], xs, ys); /* in turn: the machine does other things, too */
	}
	for (int i = 0; i < 2; i++) {
		printf("%s: %.4f s and %llu tasks a step\n", i ? "whole steps " : "call by call", t[i].seconds,
		       (unsigned long long)t[i].tasks);
		tear_down(&t[i]);
	}
	return finish();
}
