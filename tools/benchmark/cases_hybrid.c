/* Cases of compiled programs: a small network on one row, whole training steps and their gain over single calls, their
 * memory, and the time to compile. */
#include "bench.h"
#include "models/driver/networks.h"

double bench_tasks;

/* Tasks submitted so far. */
static double tasks(void)
{
	struct sl_stats stats;
	sl_stats_get(&stats);
	return (double)stats.segments;
}

/* ---- one row ------------------------------------------------------------------------------------------------------
 */

static struct {
	sl_block *eager, *hybrid;
	sl_tensor *x;
} row;

bool bench_row_setup(const struct bench_case *c)
{
	(void)c;
	row.eager = net_row_mlp();
	row.hybrid = net_row_mlp();
	SL_SCOPE
		row.x = sl_retain(sl_normal(SL_SHAPE(1, 512), 0, 1));
	sl_initialize(row.eager);
	sl_initialize(row.hybrid);
	sl_hybridize(row.hybrid);
	return row.x && sl_wait_all() == SL_OK;
}

void bench_row_teardown(void)
{
	sl_block_free(row.eager);
	sl_block_free(row.hybrid);
	sl_release(row.x);
}

static double forwards(sl_block *net, int64_t times)
{
	double before = tasks(), start = bench_now();
	for (int64_t i = 0; i < times; i++)
		SL_SCOPE
			sl_forward(net, row.x);
	bench_must(sl_wait_all());
	double seconds = bench_now() - start;
	bench_tasks = (tasks() - before) / (double)times;
	return seconds / (double)times;
}

double bench_row_eager_run(const struct bench_case *c, int64_t times)
{
	(void)c;
	return forwards(row.eager, times);
}

double bench_row_hybrid_run(const struct bench_case *c, int64_t times)
{
	(void)c;
	return forwards(row.hybrid, times);
}

double bench_row_gain_run(const struct bench_case *c, int64_t times)
{
	(void)c;
	double eager = forwards(row.eager, times);
	return eager / forwards(row.hybrid, times);
}

double bench_row_latency_run(const struct bench_case *c, int64_t times)
{
	(void)c;
	float scores[2];
	double before = tasks(), start = bench_now();
	for (int64_t i = 0; i < times; i++)
		SL_SCOPE
			bench_must(sl_read(sl_forward(row.hybrid, row.x), scores, sizeof scores));
	double seconds = bench_now() - start;
	bench_tasks = (tasks() - before) / (double)times;
	return seconds / (double)times;
}

/* ---- whole steps ---------------------------------------------------------------------------------------------------
 */

static struct {
	sl_block *net;
	sl_trainer *trainer;
	sl_step *step;
	sl_tensor *x, *y;
} whole;

static bool make_data(sl_shape images)
{
	enum { MOST = 256 };
	int32_t labels[MOST];
	int64_t batch = images.dim[0];
	for (int i = 0; i < batch && i < MOST; i++) labels[i] = i % 10;
	SL_SCOPE {
		whole.x = sl_retain(sl_uniform(images, 0, 1));
		whole.y = sl_retain(sl_from(labels, SL_SHAPE(batch), .dtype = SL_INT32));
	}
	return whole.x && whole.y;
}

enum sl_dtype bench_autocast(const struct bench_case *c)
{
	return c->half ? SL_BFLOAT16 : SL_FLOAT32;
}

/* Compiled for the images, not yet run. */
static bool make_step_of(const struct bench_case *c, sl_block *net, double lr, sl_shape images)
{
	enum sl_status s = SL_OK;
	whole.net = net;
	if (!make_data(images) || sl_initialize(net, .init = sl_xavier_init()) != SL_OK) return false;
	whole.trainer = sl_trainer_new(net, sl_sgd(.lr = lr));
	whole.step = sl_step_compile(net, sl_softmax_cross_entropy_at, whole.trainer);
	SL_AUTOCAST(bench_autocast(c)) s = sl_step_prepare(whole.step, whole.x, whole.y);
	return s == SL_OK && sl_wait_all() == SL_OK;
}

static bool make_step(const struct bench_case *c, sl_block *net, double lr, int64_t batch)
{
	return make_step_of(c, net, lr, SL_SHAPE(batch, 1, 28, 28));
}

bool bench_mlp5_setup(const struct bench_case *c)
{
	return make_step(c, net_mlp5(), 0.05, 64);
}

bool bench_lenet_hybrid_setup(const struct bench_case *c)
{
	return make_step(c, net_lenet(), 0.2, 256);
}

void bench_whole_step_teardown(void)
{
	sl_step_free(whole.step);
	sl_trainer_free(whole.trainer);
	sl_block_free(whole.net);
	sl_release(whole.x);
	sl_release(whole.y);
}

double bench_whole_step_run(const struct bench_case *c, int64_t times)
{
	double before = tasks(), start = bench_now();
	for (int64_t i = 0; i < times; i++)
		SL_SCOPE
			SL_AUTOCAST(bench_autocast(c)) sl_step_run(whole.step, whole.x, whole.y, NULL);
	bench_must(sl_wait_all());
	double seconds = bench_now() - start;
	bench_tasks = (tasks() - before) / (double)times;
	return seconds / (double)times;
}

/* ---- LeNet call by call and as a whole -----------------------------------------------------------------------------
 */

bool bench_lenet_both_setup(const struct bench_case *c)
{
	return bench_lenet_setup(c) && bench_lenet_hybrid_setup(c);
}

void bench_lenet_both_teardown(void)
{
	bench_net_teardown();
	bench_whole_step_teardown();
}

double bench_lenet_gain_run(const struct bench_case *c, int64_t times)
{
	double eager = bench_step_run(c, times);
	return eager / bench_whole_step_run(c, times);
}

double bench_eager_megabytes;

/* The memory that the first step call by call adds, at its peak, to the parameters and the batch.  Later ones find it
 * in pools. */
static double eager_peak(const struct bench_case *c)
{
	struct sl_stats stats;
	bench_must(sl_wait_all());
	sl_stats_reset();
	sl_stats_get(&stats);
	double before = (double)stats.bytes;
	bench_step_sync_run(c, 1);
	sl_stats_get(&stats);
	return (double)stats.peak_bytes - before;
}

double bench_lenet_memory_run(const struct bench_case *c, int64_t times)
{
	(void)times;
	static double peak;
	if (!peak) peak = eager_peak(c);
	bench_eager_megabytes = 1e-6 * peak;
	return (double)sl_step_info(whole.step).memory / peak;
}

/* ---- compiling ------------------------------------------------------------------------------------------------------
 */

double bench_compiled_calls;

bool bench_resnet_setup(const struct bench_case *c)
{
	return make_step(c, net_resnet18(), 0.05, c->gpu_only ? 256 : 32);
}

/* K. Simonyan, A. Zisserman, "Very deep convolutional networks for large-scale image recognition", 2015: the convolutions of
 * VGG-11, and one dense layer. */
static sl_block *vgg(void)
{
#define CONV(channels) sl_conv2d_layer(channels, .kernel = {3}, .pad = {1, 1}, .activation = SL_RELU)
#define HALVE sl_max_pool2d_layer(2)
	return sl_sequential(CONV(64), HALVE, CONV(128), HALVE, CONV(256), CONV(256), HALVE, CONV(512), CONV(512),
	                     HALVE, CONV(512), CONV(512), HALVE, sl_dense(10));
#undef CONV
#undef HALVE
}

bool bench_vgg_setup(const struct bench_case *c)
{
	return make_step_of(c, vgg(), 0.01, SL_SHAPE(c->gpu_only ? 256 : 8, 3, 64, 64));
}

/* Tracing, passes and plan; nothing runs. */
double bench_resnet_compile_run(const struct bench_case *c, int64_t times)
{
	(void)c;
	double seconds = 0;
	for (int64_t i = 0; i < times; i++) {
		double start = bench_now();
		sl_step *step = sl_step_compile(whole.net, sl_softmax_cross_entropy_at, whole.trainer);
		bench_must(sl_step_prepare(step, whole.x, whole.y));
		seconds += bench_now() - start;
		bench_compiled_calls = sl_step_info(step).nodes;
		sl_step_free(step);
	}
	return seconds / (double)times;
}

double bench_half_megabytes;

static double planned(enum sl_dtype autocast)
{
	double bytes = 0;
	sl_step *step = sl_step_compile(whole.net, sl_softmax_cross_entropy_at, whole.trainer);
	SL_AUTOCAST(autocast) bench_must(sl_step_prepare(step, whole.x, whole.y));
	bytes = (double)sl_step_info(step).memory;
	sl_step_free(step);
	return bytes;
}

double bench_half_memory_run(const struct bench_case *c, int64_t times)
{
	(void)c;
	(void)times;
	double half = planned(SL_BFLOAT16);
	bench_half_megabytes = 1e-6 * half;
	return half / planned(SL_FLOAT32);
}
