/* What tests of threads have in common: a network whose values tell how often it was trained, and threads that do
 * something until they are told to stop. */
#ifndef SLP_TESTS_BESIDE_H
#define SLP_TESTS_BESIDE_H

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "folder.h"

enum { PARAMS = 8, WIDTH = 64 };

/* ---- a network whose parameters all have the same value, and a step adds 1 to it --------------------------------- */

struct net {
	sl_block base;
	sl_param *p[PARAMS];
};

static inline sl_tensor *net_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	sl_tensor *y = in[0];
	for (int i = 0; i < PARAMS && nin; i++) y = sl_sub(y, sl_param_use(((struct net *)self)->p[i], in[0]));
	return y;
}

static inline sl_block *net_new(void)
{
	struct net *n = calloc(1, sizeof *n);
	char name[16];
	CHECK_OK(sl_block_init(&n->base, "Net", net_forward, NULL));
	for (int i = 0; i < PARAMS; i++) {
		snprintf(name, sizeof name, "p%d", i);
		n->p[i] = sl_block_param(&n->base, name, SL_SHAPE(WIDTH), .init = sl_zeros_init());
	}
	CHECK_OK(sl_initialize(&n->base));
	return &n->base;
}

static inline bool train(sl_block *net, sl_trainer *trainer)
{
	bool ok = false;
	SL_SCOPE {
		sl_tensor *loss;
		SL_RECORD
			loss = sl_sum(sl_forward(net, sl_zeros(SL_SHAPE(WIDTH))));
		ok = sl_backward(loss) == SL_OK && sl_trainer_step(trainer, 1) == SL_OK;
	}
	return ok;
}

struct run {
	sl_block *net;
	sl_trainer *trainer;
};

static inline bool train_run(void *given)
{
	struct run *r = given;
	return train(r->net, r->trainer);
}

static inline struct run run_new(void)
{
	sl_block *net = net_new();
	return (struct run){net, sl_trainer_new(net, sl_sgd(.lr = 1, .momentum = 0.5))};
}

static inline void run_free(struct run *r)
{
	sl_trainer_free(r->trainer);
	sl_block_free(r->net);
}

/* All elements of all parameters are one number; that. */
static inline bool forward(void *given)
{
	bool ok = false;
	SL_SCOPE {
		sl_tensor *y = sl_forward(given, sl_ones(SL_SHAPE(3, 4)));
		ok = y && sl_wait(y) == SL_OK;
	}
	return ok;
}

static inline sl_tensor *loss_of(const char *at, sl_tensor *y, sl_tensor *target)
{
	return sl_sum_at(at, sl_add_at(at, y, target), (struct sl_reduce_opts){0});
}

struct whole {
	sl_step *step;
};

static inline bool step_whole(void *given)
{
	struct whole *w = given;
	bool ok = false;
	SL_SCOPE
		ok = sl_step_run(w->step, sl_zeros(SL_SHAPE(WIDTH)), sl_zeros(SL_SHAPE(WIDTH)), NULL) != NULL;
	return ok;
}

/* ---- a thread that does something until it is told to stop -------------------------------------------------------- */

struct worker {
	pthread_t thread;
	bool (*work)(void *of); /* false: an error that is not SL_ESTATE ends it */
	void *of;
	atomic_bool stop;
	atomic_long times, refused;
	char message[512];
};

static inline void *work(void *given)
{
	struct worker *w = given;
	while (!atomic_load(&w->stop) && !w->message[0]) {
		bool ok = w->work(w->of);
		if (ok) atomic_fetch_add(&w->times, 1);
		else if (sl_error() == SL_ESTATE || strstr(sl_error_message(), "lost its values in sl_shutdown"))
			atomic_fetch_add(&w->refused, 1);
		else snprintf(w->message, sizeof w->message, "%s", sl_error_message());
		sl_error_clear();
	}
	return NULL;
}

static inline void begin(struct worker *w, bool (*what)(void *), void *of)
{
	*w = (struct worker){.work = what, .of = of};
	CHECK(pthread_create(&w->thread, NULL, work, w) == 0);
}

static inline void end(struct worker *w)
{
	atomic_store(&w->stop, true);
	pthread_join(w->thread, NULL);
	CHECK_SAYING(!w->message[0], "%s", w->message);
}

static inline void wait_for_first(const struct worker *w)
{
	double end_time = sl_time() + SLP_PATIENCE;
	while (!w->times && !w->message[0] && sl_time() < end_time) usleep(500);
}

/* Two things at the same time, each often enough. */
static inline void together(bool (*a)(void *), void *of_a, bool (*b)(void *), void *of_b)
{
	enum { TIMES = 40 };
	struct worker first, second;
	double end_time = sl_time() + SLP_PATIENCE;
	begin(&first, a, of_a);
	begin(&second, b, of_b);
	while ((first.times + first.refused < TIMES || second.times + second.refused < TIMES) && sl_time() < end_time &&
	       !first.message[0] && !second.message[0])
		usleep(1000);
	end(&first);
	end(&second);
	CHECK(first.times + first.refused >= TIMES && second.times + second.refused >= TIMES);
	CHECK_OK(sl_wait_all());
}

#endif
