/* Cases of whole networks: LeNet as in the tutorial, and a perceptron of five layers; training steps, their update
 * alone, and one row forward. */
#include <stdlib.h>

#include <starling/elementwise.h>

#include "bench.h"

enum { MAX_PARAMS = 10, LENET_BATCH = 256, MLP_BATCH = 64 };

static struct {
	sl_tensor *(*forward)(sl_tensor *x, sl_tensor *const *params);
	int count;
	sl_tensor *params[MAX_PARAMS];
	sl_tensor *x, *y;
	double lr;
	int batch;
} net;

/* ---- networks ------------------------------------------------------------------------------------------------------
 */

static const sl_shape lenet_shapes[] = {
        {4, {20, 1, 3, 3}}, {1, {20}},  {4, {50, 20, 5, 5}}, {1, {50}},
        {2, {800, 128}},    {1, {128}}, {2, {128, 10}},      {1, {10}},
};

static sl_tensor *lenet(sl_tensor *x, sl_tensor *const *p)
{
	sl_tensor *h = sl_relu(sl_conv2d(x, p[0], p[1]));
	h = sl_pool2d(h, .type = SL_POOL_AVG, .kernel = {2, 2}, .stride = {2, 2});
	h = sl_relu(sl_conv2d(h, p[2], p[3]));
	h = sl_pool2d(h, .type = SL_POOL_AVG, .kernel = {2, 2}, .stride = {2, 2});
	h = sl_relu(sl_linear(sl_flatten(h), p[4], p[5]));
	return sl_linear(h, p[6], p[7]);
}

static const sl_shape mlp_shapes[] = {
        {2, {784, 256}}, {1, {256}},    {2, {256, 128}}, {1, {128}},    {2, {128, 64}},
        {1, {64}},       {2, {64, 32}}, {1, {32}},       {2, {32, 10}}, {1, {10}},
};

static sl_tensor *mlp(sl_tensor *x, sl_tensor *const *p)
{
	sl_tensor *h = sl_flatten(x);
	for (int i = 0; i < 8; i += 2) h = sl_relu(sl_linear(h, p[i], p[i + 1]));
	return sl_linear(h, p[8], p[9]);
}

/* ---- making them ---------------------------------------------------------------------------------------------------
 */

static bool make_params(const sl_shape *shapes, int count)
{
	for (int i = 0; i < count; i++) {
		bool weight = shapes[i].ndim > 1;
		sl_tensor *p = weight ? sl_normal(shapes[i], 0, 0.01) : sl_zeros(shapes[i]);
		if (!p || sl_attach_grad(p) != SL_OK) return false;
		net.params[i] = sl_retain(p);
	}
	net.count = count;
	return true;
}

static bool make_data(int batch)
{
	int32_t labels[LENET_BATCH];
	for (int i = 0; i < batch; i++) labels[i] = i % 10;
	net.x = sl_retain(sl_uniform(SL_SHAPE(batch, 1, 28, 28), 0, 1));
	net.y = sl_retain(sl_from(labels, SL_SHAPE(batch), .dtype = SL_INT32));
	net.batch = batch;
	return net.x && net.y;
}

bool bench_lenet_setup(const struct bench_case *c)
{
	(void)c;
	bool ok = false;
	net.forward = lenet;
	net.lr = 0.2;
	SL_SCOPE
		ok = make_params(lenet_shapes, 8) && make_data(LENET_BATCH);
	return ok && sl_wait_all() == SL_OK;
}

bool bench_mlp_setup(const struct bench_case *c)
{
	bool ok = false;
	net.forward = mlp;
	net.lr = 0.05;
	SL_SCOPE
		ok = make_params(mlp_shapes, 10) && make_data(c->run == bench_latency_run ? 1 : MLP_BATCH);
	return ok && sl_wait_all() == SL_OK;
}

void bench_net_teardown(void)
{
	for (int i = 0; i < net.count; i++) sl_release(net.params[i]);
	sl_release(net.x);
	sl_release(net.y);
}

/* ---- using them ----------------------------------------------------------------------------------------------------
 */

static void update(void)
{
	sl_tensor *grads[MAX_PARAMS];
	for (int i = 0; i < net.count; i++) grads[i] = sl_grad(net.params[i]);
	sl_sgd_update(net.params, grads, NULL, net.count, .lr = net.lr, .rescale = 1.0 / net.batch);
}

static void step(const struct bench_case *c, bool wait)
{
	SL_SCOPE {
		sl_tensor *loss = NULL;
		SL_RECORD
			SL_AUTOCAST(bench_autocast(c))
		loss = sl_softmax_cross_entropy(net.forward(net.x, net.params), net.y);
		sl_backward(loss);
		update();
		if (wait) bench_must(sl_wait_all());
	}
}

static double steps(const struct bench_case *c, int64_t times, bool wait)
{
	double start = bench_now();
	for (int64_t i = 0; i < times; i++) step(c, wait);
	bench_must(sl_wait_all());
	return (bench_now() - start) / (double)times;
}

double bench_step_run(const struct bench_case *c, int64_t times)
{
	return steps(c, times, false);
}

double bench_step_sync_run(const struct bench_case *c, int64_t times)
{
	return steps(c, times, true);
}

double bench_latency_run(const struct bench_case *c, int64_t times)
{
	(void)c;
	float scores[10];
	double start = bench_now();
	for (int64_t i = 0; i < times; i++)
		SL_SCOPE
			bench_must(sl_read(net.forward(net.x, net.params), scores, sizeof scores));
	return (bench_now() - start) / (double)times;
}

double bench_update_run(const struct bench_case *c, int64_t times)
{
	static bool has_grads;
	if (!has_grads) step(c, true);
	has_grads = true;
	double start = bench_now();
	for (int64_t i = 0; i < times; i++)
		SL_SCOPE
			update();
	bench_must(sl_wait_all());
	return (bench_now() - start) / (double)times;
}
