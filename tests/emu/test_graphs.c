/* CUDA graphs on emulated GPUs: the same bits with graphs and without; that a step is one launch; and what happens when
 * something cannot be recorded, fails, or lies elsewhere than before. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <pthread.h>
#include <starling/own.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "blocks.h"
#include "emulated.h"
#include "driver/networks.h"
#include "runtime/task/execute.h"
#include "tensor/tensor.h"

enum { STEPS = 10, WARM_UP = 5, ROWS = 2, SIZE = 28, MAX_PARAMS = 128 };

/* ---- training ---------------------------------------------------------------------------------------------------- */

static sl_block *mlp(void)
{
	return sl_sequential(sl_dense(64, .activation = SL_RELU), sl_dense(32, .activation = SL_RELU), sl_dense(10));
}

static sl_block *dropout_mlp(void)
{
	return sl_sequential(sl_dense(64, .activation = SL_RELU), sl_dropout_layer(0.3),
	                     sl_dense(32, .activation = SL_TANH), sl_dropout_layer(0.5), sl_dense(10));
}

static sl_block *resnet18(void)
{
	return net_resnet18_of(4, false);
}

struct course {
	const char *name;
	sl_block *(*network)(void);
	struct sl_optimizer optimizer;
	bool hybrid;                              /* not whole steps */
	bool loaded;                              /* batches come from main memory */
	void (*between)(sl_block *net, int step); /* called before each step */
	void (*last)(void);                       /* called before the engine stops */
};

struct result {
	double losses[STEPS];
	uint64_t bits; /* of all parameters */
	struct sl_stats stats;
};

static void make_batch(int step, bool there, int gpu, sl_tensor **x, sl_tensor **y)
{
	float values[ROWS * SIZE * SIZE];
	int32_t classes[ROWS];
	for (int i = 0; i < ROWS * SIZE * SIZE; i++) values[i] = (float)sin(i + 7 * step);
	for (int i = 0; i < ROWS; i++) classes[i] = (i + step) % 3;
	*x = sl_from(values, SL_SHAPE(ROWS, 1, SIZE, SIZE));
	*y = sl_from(classes, SL_SHAPE(ROWS), .dtype = SL_INT32);
	if (!there) return;
	*x = sl_copy_to(*x, sl_gpu(gpu));
	*y = sl_copy_to(*y, sl_gpu(gpu));
}

struct training {
	const struct course *c;
	int gpu;
	sl_block *net;
	sl_trainer *trainer;
	sl_step *step;
};

static void begin(struct training *t, const struct course *c, int gpu)
{
	*t = (struct training){.c = c, .gpu = gpu, .net = c->network()};
	CHECK_OK(sl_initialize(t->net, .init = sl_normal_init(0.1), .devices = (sl_device[]){sl_gpu(gpu)},
	                       .ndevices = 1));
	SL_SCOPE /* values are drawn now, whatever threads do later */
		sl_forward(t->net, sl_zeros(SL_SHAPE(1, 1, SIZE, SIZE), .device = sl_gpu(gpu)));
	t->trainer = sl_trainer_new(t->net, c->optimizer);
	if (c->hybrid) sl_hybridize(t->net);
	else t->step = sl_step_compile(t->net, sl_softmax_cross_entropy_at, t->trainer);
}

static void end(struct training *t)
{
	sl_step_free(t->step);
	sl_trainer_free(t->trainer);
	sl_block_free(t->net);
}

static sl_tensor *make_step(struct training *t, sl_tensor *x, sl_tensor *y)
{
	if (t->step) return sl_step_run(t->step, x, y, NULL);
	sl_tensor *loss = NULL;
	SL_RECORD
		loss = sl_softmax_cross_entropy(sl_forward(t->net, x), y);
	if (sl_backward(loss) != SL_OK || sl_trainer_step(t->trainer, ROWS) != SL_OK) return NULL;
	return loss;
}

/* Without checks: threads do this, too. */
static void make_steps(struct training *t, struct result *r)
{
	SL_SCOPE {
		sl_tensor *x, *y;
		make_batch(0, true, t->gpu, &x, &y);
		for (int i = 0; i < STEPS; i++)
			SL_SCOPE {
				if (t->c->loaded) make_batch(i, false, t->gpu, &x, &y);
				if (t->c->between) t->c->between(t->net, i);
				sl_tensor *loss = make_step(t, x, y);
				r->losses[i] = loss ? sl_item(sl_sum(loss)) : NAN;
			}
		r->bits = slp_net_bits(t->net);
	}
}

static void start_engine(int graphs)
{
	slp_begin((struct sl_config){.gpus = 2, .sched = "dmdas", .seed = 1, .cuda_graphs = graphs});
	CHECK_OK(sl_device_default(sl_gpu(0)));
	sl_stats_reset();
}

static struct result train(const struct course *c, int graphs)
{
	struct training t;
	struct result r;
	start_engine(graphs);
	begin(&t, c, 0);
	make_steps(&t, &r);
	r.stats = slp_stats();
	if (c->last) c->last();
	end(&t);
	slp_end_well();
	return r;
}

static void check_alike(const char *name, const struct result *a, const struct result *b)
{
	for (int i = 0; i < STEPS; i++)
		CHECK_SAYING(a->losses[i] == b->losses[i], "%s: loss %d is %.9g, not %.9g", name, i, a->losses[i],
		             b->losses[i]);
	CHECK_SAYING(a->bits == b->bits, "%s: other parameters", name);
}

/* Trains with graphs and without. */
static struct result compare(const struct course *c)
{
	struct result with = train(c, 1), without = train(c, -1);
	check_alike(c->name, &with, &without);
	CHECK(isfinite(with.losses[STEPS - 1]) && with.losses[STEPS - 1] != with.losses[0]);
	CHECK_SAYING(without.stats.graphs == 0 && without.stats.graph_launches == 0, "%s: graphs though off", c->name);
	printf("\n    %s: %d graphs, %d launches, %d calls recorded again in %d steps", c->name, (int)with.stats.graphs,
	       (int)with.stats.graph_launches, (int)with.stats.graph_changes, STEPS);
	return with;
}

static const struct course lenet = {
        .name = "LeNet, SGD", .network = net_lenet, .optimizer = {.kind = SL_SGD, .lr = 0.05, .momentum = 0.5}};
static const struct course small = {
        .name = "MLP, SGD", .network = mlp, .optimizer = {.kind = SL_SGD, .lr = 0.05, .momentum = 0.5}};
static const struct course small_adam = {
        .name = "MLP, Adam", .network = mlp, .optimizer = {.kind = SL_ADAM, .lr = 0.01}};
static const struct course lenet_adam = {
        .name = "LeNet, Adam", .network = net_lenet, .optimizer = {.kind = SL_ADAM, .lr = 0.01}};

static const struct course resnet = {
        .name = "ResNet-18, SGD", .network = resnet18, .optimizer = {.kind = SL_SGD, .lr = 0.02, .momentum = 0.5}};

/* A course of each kind; those after them take long. */
static void test_bits(void)
{
	const struct course courses[] = {
	        {.name = "LeNet, Adam, hybrid", .network = net_lenet, .optimizer = sl_adam(.lr = 0.01), .hybrid = true},
	        {.name = "MLP, a schedule",
	         .network = mlp,
	         .optimizer = sl_sgd(.lr = 0.05, .schedule = {.kind = SL_COSINE, .warmup = 3, .total = STEPS})},
	        {.name = "MLP with dropout, Adam", .network = dropout_mlp, .optimizer = sl_adam(.lr = 0.01)},
	        {.name = "MLP, clipped, RMSProp",
	         .network = mlp,
	         .optimizer = {.kind = SL_RMSPROP, .lr = 0.001, .clip_norm = 1}},
	        {.name = "LeNet, SGD, loaded", .network = net_lenet, .optimizer = sl_sgd(.lr = 0.05), .loaded = true},
	        lenet_adam,
	        lenet,
	        resnet,
	};
	size_t n = sizeof courses / sizeof *courses - (slp_long() ? 0 : 3);
	for (size_t i = 0; i < n; i++) {
		struct result r = compare(&courses[i]);
		CHECK_SAYING(r.stats.graphs > 0 && r.stats.graph_launches >= STEPS - 2, "%s: %d graphs, %d launches",
		             courses[i].name, (int)r.stats.graphs, (int)r.stats.graph_launches);
		CHECK_SAYING(r.stats.graph_refusals == 0, "%s: %d tasks without", courses[i].name,
		             (int)r.stats.graph_refusals);
	}
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

/* Steps after the first ones, each waited for: one launch each, and the host queues no kernel besides. */
static void count_launches(const struct course *c, int changes)
{
	struct training t;
	struct emu_counts counts = {0};
	start_engine(1);
	begin(&t, c, 0);
	SL_SCOPE {
		sl_tensor *x, *y;
		make_batch(0, true, 0, &x, &y);
		for (int i = 0; i < WARM_UP + STEPS; i++) {
			if (i == WARM_UP) emu_counts_reset();
			SL_SCOPE
				CHECK_OK(sl_wait(make_step(&t, x, y)));
			CHECK_OK(sl_wait_all());
		}
		emu_counts_get(&counts);
	}
	CHECK_SAYING(counts.graph_launches[0] == STEPS, "%s: %d launches of graphs in %d steps", c->name,
	             (int)counts.graph_launches[0], STEPS);
	CHECK_SAYING(counts.launches[0] == 0 && counts.graphs[0] == 0, "%s: %d kernels launched, %d graphs made",
	             c->name, (int)counts.launches[0], (int)counts.graphs[0]);
	CHECK_SAYING(counts.graph_changes[0] == (uint64_t)(changes * STEPS),
	             "%s: %d changes in %d steps, not %d a step", c->name, (int)counts.graph_changes[0], STEPS,
	             changes);
	CHECK_SAYING(counts.graph_children[0] == 0, "%s: %d graphs within graphs", c->name,
	             (int)counts.graph_children[0]);
	for (int i = 0; i < EMU_WAIT_COUNT; i++)
		CHECK_SAYING(counts.waits[i] == 0, "%s: waits in %s", c->name, emu_wait_name((enum emu_wait)i));
	printf("\n    %s: a step is 1 launch of %g kernels, %d of its calls recorded again", c->name,
	       (double)counts.graph_kernels[0] / STEPS, changes);
	end(&t);
	slp_end_well();
}

static void test_one_launch(void)
{
	count_launches(&lenet_adam, 1); /* its steps are counted */
	if (!slp_long()) return;
	count_launches(&lenet, 0);
	count_launches(&resnet, 0);
}

/* Off by the environment, and by the configuration. */
static void test_off(void)
{
	setenv("SL_CUDA_GRAPHS", "0", 1);
	struct result off = train(&small, 0), on = train(&small, 1);
	unsetenv("SL_CUDA_GRAPHS");
	struct result by_default = train(&small, 0);
	CHECK(off.stats.graphs == 0 && on.stats.graphs > 0 && by_default.stats.graphs > 0);
}

/* ---- memory that moves ------------------------------------------------------------------------------------------- */

static sl_tensor *in_the_way[2 * MAX_PARAMS];
static int nin_the_way;

/* All parameters leave the GPU, and others take their memory. */
static void move_parameters(sl_block *net, int step)
{
	sl_param *params[MAX_PARAMS];
	int n = step == 5 || step == 7 ? sl_block_params(net, params, MAX_PARAMS) : 0;
	if (n) CHECK_OK(sl_wait_all());
	for (int i = 0; i < n; i++) {
		sl_tensor *w = sl_param_data(params[i]);
		for (unsigned node = 1; node < starpu_memory_nodes_get_count(); node++)
			starpu_data_evict_from_node(w->storage->buffer->handle, node);
		sl_tensor *other = sl_retain(sl_full(sl_tensor_shape(w), 3));
		CHECK_OK(sl_wait(other));
		in_the_way[nin_the_way++] = other;
	}
}

static void clear_way(void)
{
	while (nin_the_way) sl_release(in_the_way[--nin_the_way]);
}

static void test_moved(void)
{
	struct course c = small;
	struct result calm = compare(&c);
	c.name = "MLP, whose parameters move";
	c.between = move_parameters;
	c.last = clear_way;
	struct result moved = compare(&c);
	check_alike(c.name, &moved, &calm);
	CHECK_SAYING(moved.stats.graphs + moved.stats.graph_changes > calm.stats.graphs + calm.stats.graph_changes,
	             "no parameter has moved");
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static void check_failure(const struct course *c, enum emu_failure what, int k, bool gives_up)
{
	struct result well = train(c, -1);
	emu_fail(what, k);
	struct result r = train(c, 1);
	emu_fail(what, 0);
	check_alike(c->name, &r, &well);
	CHECK_SAYING((r.stats.graph_refusals > 0) == gives_up, "%d tasks without", (int)r.stats.graph_refusals);
	CHECK_SAYING(gives_up || r.stats.graph_launches == STEPS - 2, "%d launches", (int)r.stats.graph_launches);
}

/* A kernel that cannot be recorded, at first or later; a call that cannot be replaced; a graph that is not launched. */
static void test_failures(void)
{
	check_failure(&small, EMU_CAPTURE, 1, true);
	check_failure(&small, EMU_CAPTURE, 5, true);
	check_failure(&lenet_adam, EMU_CAPTURE, 27, true); /* in a call that is recorded again */
	check_failure(&small_adam, EMU_UPDATE, 2, false);
	check_failure(&small_adam, EMU_UPDATE, -1, false);
	check_failure(&small, EMU_GRAPH, 3, true);
}

/* A kernel that fails is reported, whether its task was a graph before or not. */
static void test_faults(void)
{
	struct training t;
	start_engine(1);
	begin(&t, &small, 0);
	SL_SCOPE {
		sl_tensor *x, *y;
		make_batch(0, true, 0, &x, &y);
		for (int i = 0; i < WARM_UP; i++) CHECK_OK(sl_wait(make_step(&t, x, y)));
		uint64_t before = slp_stats().graph_launches;
		CHECK(before > 0);
		atomic_store(&slp_fail_kernel, 3);
		CHECK_STATUS(sl_wait(make_step(&t, x, y)), SL_EKERNEL, "told to fail by a test");
		sl_error_clear();
		sl_wait_all();
		sl_error_clear();
		CHECK(sl_wait(make_step(&t, x, y)) == SL_EKERNEL); /* its parameters are spoilt */
		sl_error_clear();
		CHECK(slp_stats().graph_launches == before);
	}
	end(&t);
	slp_end();
}

/* ---- operations of programs -------------------------------------------------------------------------------------- */

static enum sl_status slow_copy(const struct sl_op_call *c)
{
	size_t size = (size_t)sl_shape_size(c->in[0].shape) * sizeof(float);
	cudaMemcpyAsync(c->out[0].data, c->in[0].data, size, cudaMemcpyDeviceToDevice, (cudaStream_t)c->stream);
	return cudaStreamSynchronize((cudaStream_t)c->stream) == cudaSuccess ? SL_OK : SL_EKERNEL;
}

static enum sl_status no_copy(const struct sl_op_call *c)
{
	return sl_op_fail(c, SL_EKERNEL, "it runs on a GPU only");
}

/* Runs a program of x some times; launches: of graphs. */
static void check_plan(sl_tensor *symbol, sl_tensor *x, double expected, uint64_t launches)
{
	sl_graph *graph = sl_graph_define(symbol);
	sl_plan *plan = sl_compile(graph);
	CHECK(plan);
	for (int i = 0; i < 5 && plan; i++) {
		SL_SCOPE {
			sl_tensor *y;
			CHECK_OK(sl_plan_run(plan, &x, 1, &y));
			CHECK_ALL(y, expected);
		}
	}
	CHECK_SAYING(slp_stats().graph_launches == launches, "%d launches", (int)slp_stats().graph_launches);
	sl_plan_free(plan);
	sl_graph_free(graph);
}

/* They may do what cannot be recorded: their tasks are no graphs. */
static void test_own(void)
{
	start_engine(1);
	const sl_op *own = sl_op_register(.name = "own_slow_copy", .nin = 1, .cpu = no_copy, .cuda = slow_copy);
	SL_SCOPE {
		sl_tensor *v = sl_var("x", SL_VAR_SHAPE(40, 40)), *x = sl_full(SL_SHAPE(40, 40), 2);
		sl_tensor *y = sl_dot(sl_dot(sl_dot(v, v), v), v);
		check_plan(sl_op_apply(own, &y, 1), x, 16.0 * 64000, 0);
		check_plan(sl_dot(y, v), x, 32.0 * 2560000, 3);
	}
	slp_end_well();
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

struct thread {
	pthread_t id;
	struct training t;
	struct result r;
};

static void *run_thread(void *arg)
{
	struct thread *t = arg;
	make_steps(&t->t, &t->r);
	return NULL;
}

/* Two threads train a network each, on the same GPU or on two. */
static void check_threads(int second_gpu, const struct result *alone)
{
	struct thread threads[2];
	start_engine(1);
	for (int i = 0; i < 2; i++) begin(&threads[i].t, &small_adam, i ? second_gpu : 0);
	for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i].id, NULL, run_thread, &threads[i]) == 0);
	for (int i = 0; i < 2; i++) pthread_join(threads[i].id, NULL);
	CHECK(slp_stats().graph_launches == 2 * (STEPS - 2));
	for (int i = 0; i < 2; i++) end(&threads[i].t);
	slp_end_well();
	for (int i = 0; i < 2; i++) CHECK(isfinite(threads[i].r.losses[STEPS - 1]));
	check_alike("the first thread", &threads[0].r, alone);
}

static void test_threads(void)
{
	struct result alone = train(&small_adam, 1);
	check_threads(0, &alone);
	check_threads(1, &alone);
}

static const struct slp_test tests[] = {
        {"the same bits", test_bits},
        {"a step is one launch", test_one_launch},
        {"off", test_off},
        {"memory that moves", test_moved},
        {"what cannot be recorded", test_failures},
        {"kernels that fail", test_faults},
        {"operations of programs", test_own},
        {"threads", test_threads},
        {0},
};

int main(int argc, char **argv)
{
	setenv("SL_EMU_DEVICES", "2", 1);
	setenv("STARPU_SUBALLOCATOR", "0", 1);
	return slp_test_main(argc, argv, (const struct slp_suite[]){{.name = "graphs", .tests = tests}, {0}});
}
