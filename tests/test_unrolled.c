/* Weights that a loop over time uses at every step: compiled, their gradients are added in the memory of one sum, in
 * the order of eager mode.  Call by call, hybridised and as a whole step, they are those in double precision. */
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <starling.h>

#include "op_list/binary.h"
#include "op_list/linear.h"
#include "graph/pass/pass.h"
#include "check.h"
#include "op_inner.h"

enum { ROWS = 4, INPUTS = 5, UNITS = 6 };

/* h = tanh(x · wxᵀ + b + h · wh) for each step: one weight in a layer with a bias, one in a product.  With `hooked`,
 * the layer's weight counts in another sum, too, so that its gradients do not come in the same places as those of the
 * bias. */
struct cell {
	sl_block base;
	sl_param *wx, *b, *wh;
	bool hooked;
};

static sl_tensor *forward(sl_block *self, sl_tensor *const *in, int nin)
{
	struct cell *c = (struct cell *)self;
	sl_shape shape = sl_tensor_shape(in[0]);
	sl_tensor *wx = sl_param_use(c->wx, in[0]), *b = sl_param_use(c->b, in[0]), *wh = sl_param_use(c->wh, in[0]);
	sl_tensor *h = NULL;
	(void)nin;
	for (int64_t t = 0; t < shape.dim[1]; t++) {
		sl_tensor *x = sl_reshape(sl_slice(in[0], 1, t, t + 1, 1), SL_SHAPE(shape.dim[0], INPUTS));
		sl_tensor *z = sl_linear(x, wx, b, .tw = true);
		h = sl_tanh(h ? sl_add(z, sl_dot(h, wh)) : z);
	}
	return c->hooked ? sl_mul(h, sl_mean(sl_square(wx))) : h;
}

static sl_block *cell_new(enum sl_dtype dtype, bool hooked)
{
	struct cell *c = calloc(1, sizeof *c);
	CHECK_OK(sl_block_init(&c->base, "Cell", forward, NULL));
	c->wx = sl_block_param(&c->base, "wx", SL_SHAPE(UNITS, INPUTS));
	c->b = sl_block_param(&c->base, "b", SL_SHAPE(UNITS));
	c->wh = sl_block_param(&c->base, "wh", SL_SHAPE(UNITS, UNITS));
	c->hooked = hooked;
	CHECK_OK(sl_initialize(&c->base, .init = sl_normal_init(0.4), .dtype = dtype));
	return &c->base;
}

/* The same values, in another type. */
static void copy_params(sl_block *from, sl_block *to, enum sl_dtype dtype)
{
	sl_param *a[3], *b[3];
	CHECK(sl_block_params(from, a, 3) == 3 && sl_block_params(to, b, 3) == 3);
	for (int i = 0; i < 3; i++) CHECK_OK(sl_param_set(b[i], sl_cast(sl_param_data(a[i]), dtype)));
}

enum way { EAGER, HYBRID, WHOLE, WAYS };
static const char *const way_names[WAYS] = {"call by call", "hybridised", "whole step"};

static int count_op(const sl_graph *g, const struct sl_op *op)
{
	int n = 0;
	for (int i = 0; i < g->count; i++) n += slp_node_is(&g->nodes[i], op);
	return n;
}

/* What a whole step's program is like. */
struct program {
	int products, layers, sums; /* dot_add, linear_grad_add, and add beside them in the backward pass */
	size_t memory;
};

static struct program program_of(sl_step *step)
{
	const sl_graph *g = sl_step_graph(step);
	return (struct program){count_op(g, &slp_op_dot_add), count_op(g, &slp_op_linear_grad_add),
	                        count_op(g, &slp_op_add) + count_op(g, &slp_op_fused), sl_step_info(step).memory};
}

/* Two steps of training. */
static struct program train(sl_block *net, enum way way, enum sl_dtype dtype, int64_t steps, unsigned off)
{
	struct program program = {0};
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.2, .momentum = 0.5));
	sl_step *whole = way == WHOLE ? sl_step_compile(net, sl_l2_loss_at, trainer, .passes_off = off) : NULL;
	if (way == HYBRID) CHECK_OK(sl_hybridize(net, .passes_off = off));
	sl_seed(7);
	for (int i = 0; i < 2; i++)
		SL_SCOPE {
			sl_tensor *x = sl_cast(sl_normal(SL_SHAPE(ROWS, steps, INPUTS), 0, 1), dtype), *loss;
			sl_tensor *t = sl_cast(sl_normal(SL_SHAPE(ROWS, UNITS), 0, 1), dtype);
			if (whole) {
				CHECK(sl_step_run(whole, x, t, NULL) != NULL);
				continue;
			}
			SL_RECORD
				loss = sl_l2_loss(sl_forward(net, x), t);
			CHECK_OK(sl_backward(loss));
			CHECK_OK(sl_trainer_step(trainer, ROWS));
		}
	CHECK_SAYING(sl_error() == SL_OK, "%s", sl_error_message());
	if (whole) program = program_of(whole);
	sl_step_free(whole);
	sl_trainer_free(trainer);
	return program;
}

static void check_way(enum way way, enum sl_dtype dtype, int64_t steps, bool hooked, double tolerance)
{
	sl_seed(3);
	sl_block *wide = cell_new(SL_FLOAT64, hooked), *net = cell_new(dtype, hooked);
	char what[64];
	snprintf(what, sizeof what, "%s, %d steps", way_names[way], (int)steps);
	copy_params(net, wide, SL_FLOAT64);
	train(wide, EAGER, SL_FLOAT64, steps, 0);
	train(net, way, dtype, steps, 0);
	sl_param *a[3], *b[3];
	sl_block_params(net, a, 3);
	sl_block_params(wide, b, 3);
	for (int i = 0; i < 3; i++) {
		sl_tensor *off = sl_sub(sl_cast(sl_param_data(a[i]), SL_FLOAT64), sl_param_data(b[i]));
		double most = sl_item(sl_max(sl_abs(off)));
		CHECK_SAYING(most <= tolerance, "%s: %s is off by %g", what, sl_param_name(a[i]), most);
	}
	sl_block_free(wide);
	sl_block_free(net);
}

static void test_values(void)
{
	for (enum way way = EAGER; way < WAYS; way++)
		for (int64_t steps = 2; steps <= 9; steps += 7)
			for (int hooked = 0; hooked < 2; hooked++)
				SL_SCOPE {
					check_way(way, SL_FLOAT32, steps, hooked, 2e-6);
					check_way(way, SL_FLOAT64, steps, hooked, 1e-13);
				}
}

/* Every sum of a weight's gradient is one place in memory: so much more time needs no more of them. */
static void test_program(void)
{
	SL_SCOPE {
		sl_block *net = cell_new(SL_FLOAT32, false);
		struct program few = train(net, WHOLE, SL_FLOAT32, 9, 0);
		struct program apart = train(net, WHOLE, SL_FLOAT32, 9, 1u << SL_PASS_FUSE);
		CHECK_SAYING(few.layers == 8 && few.products == 7, "%d layers and %d products are added in place",
		             few.layers, few.products);
		CHECK(apart.layers == 0 && apart.products == 0 && apart.sums > few.sums);
		CHECK_SAYING(few.memory < apart.memory, "%zu bytes, %zu without the pass", few.memory, apart.memory);
		sl_block_free(net);
	}
}

/* ---- how long compiling takes ------------------------------------------------------------------------------------- */

static double thread_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What tracing and compiling take of this thread's time. */
static double seconds_of(sl_block *net, int64_t steps)
{
	double start, seconds = 0;
	SL_SCOPE {
		sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.2));
		sl_step *whole = sl_step_compile(net, sl_l2_loss_at, trainer);
		sl_tensor *x = sl_zeros(SL_SHAPE(ROWS, steps, INPUTS)), *t = sl_zeros(SL_SHAPE(ROWS, UNITS));
		start = thread_seconds();
		CHECK(sl_step_run(whole, x, t, NULL) != NULL);
		seconds = thread_seconds() - start;
		sl_step_free(whole);
		sl_trainer_free(trainer);
	}
	return seconds;
}

/* Eight times as many operations take eight times as long, and what caches add to that; not 64 times. */
static void test_time(void)
{
	sl_block *net = cell_new(SL_FLOAT32, false);
	double few = INFINITY, many = INFINITY;
	for (int i = 0; i < 4; i++) {
		few = fmin(few, seconds_of(net, 100));
		many = fmin(many, seconds_of(net, 800));
	}
	CHECK_SAYING(many < 40 * few, "%g ms for 100 steps, %g for 800", 1e3 * few, 1e3 * many);
	sl_block_free(net);
}

/* ---- the body alone, hybridised --------------------------------------------------------------------------------- */

static sl_tensor *body_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	struct cell *c = (struct cell *)self;
	(void)nin;
	sl_tensor *wx = sl_param_use(c->wx, in[0]), *b = sl_param_use(c->b, in[0]), *wh = sl_param_use(c->wh, in[0]);
	sl_tensor *h = sl_tanh(sl_add(sl_linear(in[0], wx, b, .tw = true), sl_dot(in[1], wh)));
	sl_also(sl_mul_scalar(h, 2));
	return h;
}

/* The loop is the program's, over a body with a state and a result; the gradients of all parameters, and the seconds'. */
static void run_loop(sl_block *body, int64_t steps, sl_tensor *grads[4])
{
	sl_param *p[3];
	sl_seed(11);
	sl_tensor *x = sl_normal(SL_SHAPE(steps, ROWS, INPUTS), 0, 1, .dtype = SL_FLOAT64), *loss = NULL;
	sl_tensor *first = sl_zeros(SL_SHAPE(ROWS, UNITS), .dtype = SL_FLOAT64), *out[2] = {first};
	sl_attach_grad(x);
	SL_RECORD
		for (int64_t t = 0; t < steps; t++) {
			sl_tensor *at = sl_reshape(sl_slice(x, 0, t, t + 1, 1), SL_SHAPE(ROWS, INPUTS));
			CHECK_OK(sl_forward_all(body, SL_ARRAY(sl_tensor *, at, out[0]), 2, out, 2));
			loss = loss ? sl_add(loss, sl_sum(out[1])) : sl_sum(out[1]);
		}
	CHECK_OK(sl_backward(loss));
	sl_block_params(body, p, 3);
	for (int i = 0; i < 3; i++) grads[i] = sl_clone(sl_param_grad(p[i]));
	grads[3] = sl_grad(x);
}

static uint64_t plans(void)
{
	struct sl_stats stats;
	sl_stats_get(&stats);
	return stats.plans;
}

/* The programs are those of a first and a last step, which is the same or another, and of one between: not one a step. */
static void test_body(void)
{
	static const int64_t lengths[] = {1, 4, 9, 2};
	sl_block *body = cell_new(SL_FLOAT64, false);
	body->forward = body_forward;
	SL_SCOPE {
		sl_tensor *eager[4][4], *hybrid[4];
		for (int i = 0; i < 4; i++) run_loop(body, lengths[i], eager[i]);
		CHECK_OK(sl_hybridize(body));
		uint64_t before = plans(), after_three = 0;
		for (int i = 0; i < 4; i++) {
			if (i == 3) after_three = plans();
			run_loop(body, lengths[i], hybrid);
			for (int j = 0; j < 4; j++) {
				double most = sl_item(sl_max(sl_abs(sl_sub(hybrid[j], eager[i][j]))));
				CHECK_SAYING(most < 1e-12, "%d steps: gradient %d is off by %g", (int)lengths[i], j,
				             most);
			}
		}
		CHECK_SAYING(after_three <= before + 4, "%d programs", (int)(after_three - before));
		CHECK(plans() == after_three);
	}
	sl_block_free(body);
}

static const struct slp_test tests[] = {
        {"values", test_values}, {"program", test_program}, {"time", test_time}, {"body", test_body}, {0},
};

int main(int argc, char **argv)
{
	return slp_test_main(
	        argc, argv,
	        (const struct slp_suite[]){
	                {.name = "unrolled", .tests = tests, .start = slp_start_engine, .stop = slp_stop_engine}, {0}});
}
