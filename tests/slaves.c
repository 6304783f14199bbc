/* Devices in other processes (StarPU's TCP/IP workers): the values, random numbers, gradients and errors of one
 * process. slaves.sh runs it as master and, with other variables, as slaves: those never come back from sl_init. */
#include <starling/own.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "blocks.h"
#include "runtime/compat.h"
#include "runtime/engine.h"

enum { MOST = 8, ROWS = 64 };

static int devices(void)
{
	int n = sl_device_count(SL_DEVICE_CPU);
	return n < MOST ? n : MOST;
}

/* A device whose worker is in another process. */
static sl_device far(void)
{
	return sl_cpu(devices() - 1);
}

static void test_there(void)
{
	const char *wanted = getenv("STARPU_TCPIP_MS_SLAVES");
	CHECK(wanted && atoi(wanted) > 0 && slp_engine.nslaves >= atoi(wanted));
	CHECK(devices() == slp_engine.nslaves + 1);
	for (int i = 0; i < devices(); i++)
		CHECK((starpu_worker_get_type(slp_engine.team_worker[i]) != STARPU_CPU_WORKER) == (i > 0));
}

/* Small calls in one task, a large call, views, and what goes from slave to slave. */
static void test_values(void)
{
	SL_SCOPE {
		sl_tensor *a = sl_normal(SL_SHAPE(200, 300), 0, 1, .device = sl_cpu(0)),
		          *b = sl_normal(SL_SHAPE(300, 100), 0, 1, .device = sl_cpu(0));
		sl_tensor *expected = sl_relu(sl_dot(a, b)), *sum = NULL;
		for (int i = 0; i < devices(); i++) {
			sl_tensor *there = sl_place(a, sl_cpu(i)), *y = sl_relu(sl_dot(there, sl_place(b, sl_cpu(i))));
			CHECK_SAME(sl_place(expected, sl_cpu(0)), sl_place(y, sl_cpu(0)));
			sl_tensor *small = sl_add_scalar(sl_mul_scalar(sl_rows(there, i, i + 1), 2), 1);
			sum = sum ? sl_add(sl_place(sum, sl_cpu(i)), small) : small;
		}
		double value = 0, first[MOST];
		for (int i = 0; i < devices(); i++) {
			first[i] = sl_item(sl_sum(sl_rows(a, i, i + 1)));
			value += 2 * first[i] + 300;
		}
		CHECK(fabs(sl_item(sl_sum(sum)) - value) < 1e-3 * fabs(value));
	}
}

/* The number of a random call counts, not the process. */
static void test_random(void)
{
	SL_SCOPE {
		sl_tensor *drawn[2];
		for (int i = 0; i < 2; i++) {
			sl_seed(3);
			sl_normal(SL_SHAPE(7), 0, 1, .device = i ? far() : sl_cpu(0));
			drawn[i] = sl_uniform(SL_SHAPE(100000), 0, 1, .device = i ? far() : sl_cpu(0));
		}
		CHECK_SAME(drawn[0], sl_place(drawn[1], sl_cpu(0)));
	}
}

/* ---- operations that programs register: before sl_init, in all processes ----------------------------------------- */

static const sl_op *twice;

static enum sl_status twice_cpu(const struct sl_op_call *c)
{
	const float *x = c->in[0].data;
	float *y = c->out[0].data;
	for (int64_t i = 0; i < sl_shape_size(c->in[0].shape); i++) y[i] = 2 * x[i];
	return SL_OK;
}

static void test_own(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_full(SL_SHAPE(1000), 3, .device = far());
		CHECK_ALL(sl_place(sl_op_apply(twice, &x, 1), sl_cpu(0)), 6);
	}
	CHECK_NULL(sl_op_register(.name = "late", .nin = 1, .cpu = twice_cpu), SL_ESTATE, "before sl_init");
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

enum how { BY_HAND, HYBRID, STEPS, HOW_COUNT };

/* Large enough that a program's tasks are not put together with others: they have attributes that change from run to
 * run. */
static double course(enum how how, int ndevices)
{
	double loss = 0;
	sl_device all[MOST], where[4];
	for (int i = 0; i < ndevices; i++) all[i] = sl_cpu(i);
	for (int i = 0; i < 4; i++) where[i] = all[i * ndevices / 4];
	sl_seed(5);
	sl_block *net = sl_sequential(sl_conv2d_layer(16, .kernel = {3}), sl_batch_norm_layer(),
	                              sl_activation_layer(SL_RELU), sl_max_pool2d_layer(2), sl_dropout_layer(0.2),
	                              sl_dense(16, .activation = SL_TANH), sl_dense(3));
	CHECK_OK(sl_initialize(net, .init = sl_xavier_init(), .devices = all, .ndevices = ndevices));
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.1, .momentum = 0.9));
	sl_step *step = sl_step_compile(net, sl_softmax_cross_entropy_at, trainer);
	if (how == HYBRID) sl_hybridize(net);
	SL_SCOPE {
		sl_tensor *x = sl_normal(SL_SHAPE(ROWS, 1, 16, 16), 0, 1, .device = sl_cpu(0)), *xs[4], *ys[4],
		          *losses[4];
		sl_tensor *y = sl_cast(sl_uniform(SL_SHAPE(ROWS), 0, 3, .device = sl_cpu(0)), SL_INT32);
		sl_forward(net, x);
		CHECK_OK(sl_split_and_load(x, where, 4, xs));
		CHECK_OK(sl_split_and_load(y, where, 4, ys));
		for (int round = 0; round < 5; round++) {
			sl_seed(100 + (uint64_t)round);
			if (how == STEPS) {
				CHECK(sl_step_run(step, .in = xs, .targets = ys, .losses = losses, .shards = 4) !=
				      NULL);
				continue;
			}
			SL_RECORD
				for (int i = 0; i < 4; i++)
					losses[i] = sl_softmax_cross_entropy(sl_forward(net, xs[i]), ys[i]);
			CHECK_OK(sl_backward_heads(losses, 4));
			CHECK_OK(sl_trainer_step(trainer, ROWS));
		}
		for (int i = 0; i < 4; i++) loss += sl_item(sl_sum(losses[i]));
	}
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
	CHECK_OK(sl_wait_all());
	return loss;
}

static void test_training(void)
{
	for (enum how how = 0; how < HOW_COUNT; how++) {
		double here = course(how, 1), there = course(how, devices());
		CHECK_SAYING(fabs(here - there) <= 1e-5 * fabs(here) && here < 0.97 * ROWS * log(3),
		             "way %d: loss %.9g here, %.9g on %d devices", how, here, there, devices());
	}
}

/* ---- mistakes that only a kernel sees ---------------------------------------------------------------------------- */

static void test_fault(void)
{
	SL_SCOPE {
		sl_tensor *scores = sl_zeros(SL_SHAPE(2, 3), .device = far()),
		          *z = sl_ones(SL_SHAPE(4), .device = far());
		sl_tensor *labels = sl_full(SL_SHAPE(2), 7, .dtype = SL_INT32, .device = far());
		sl_tensor *loss = sl_softmax_cross_entropy(scores, labels), *after = sl_add_scalar(loss, 1),
		          *other = sl_add_scalar(z, 1);
		sl_tensor *near = sl_place(after, sl_cpu(0)), *next = sl_mul_scalar(near, 2);
		CHECK_ALL(sl_place(other, sl_cpu(0)), 2); /* of the same task, and sound */
		CHECK_STATUS(sl_wait(next), SL_EINVAL, "softmax_cross_entropy at", __FILE__, "label 7",
		             "failed on TCP");
		sl_error_clear();
		CHECK_STATUS(sl_wait(loss), SL_EINVAL, "label 7");
		sl_error_clear();
		sl_wait_all();
		sl_error_clear();
		CHECK_ALL(sl_place(sl_add_scalar(z, 3), sl_cpu(0)), 4); /* and all goes on */
	}
}

int main(int argc, char **argv)
{
	static const struct slp_test all[] = {{"there", test_there},
	                                      {"values", test_values},
	                                      {"random", test_random},
	                                      {"training", test_training},
	                                      {"fault", test_fault},
	                                      {"own", test_own},
	                                      {NULL, NULL}};
	static const struct slp_suite suites[] = {
	        {.name = "slaves", .start = slp_start_engine, .stop = slp_stop_engine, .tests = all}, {0}};
#ifndef STARPU_USE_TCPIP_MASTER_SLAVE
	puts("this StarPU was built without slave processes (--enable-tcpip-master-slave)");
	return 77;
#endif
	twice = sl_op_register(.name = "twice", .nin = 1, .cpu = twice_cpu);
	return slp_test_main(argc, argv, suites);
}
