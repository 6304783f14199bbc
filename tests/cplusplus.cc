// The public headers from C++: each kind of macro, with values that are known.  cplusplus.sh compiles it with each C++
// compiler and standard there is.
#include <starling.h>
#include "options.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <stdexcept>

static int failures;

static void check(bool ok, const char *what)
{
	std::printf("%s: %s\n", ok ? "ok" : "FAIL", what);
	failures += !ok;
}

static bool close(sl_tensor *t, double value)
{
	return std::fabs(sl_item(t) - value) <= 1e-5 * (1 + std::fabs(value));
}

static void arrays()
{
	const float values[] = {1, 2, 3, 4, 5, 6};
	sl_tensor *x = sl_from(values, SL_SHAPE(2, 3));
	sl_tensor *y = sl_from(SL_ARRAY(float, 1, 2, 3, 4, 5, 6), SL_SHAPE(2, 3));
	check(close(sl_sum(sl_abs(sl_sub(x, y))), 0), "an array in place has the same values");
	check(close(sl_sum(sl_max(x, SL_AXES(0))), 4 + 5 + 6), "constant axes");
	int axis = 1;
	check(close(sl_sum(sl_max(x, SL_AXES(axis), .keepdims = true)), 3 + 6), "variable axes and an option");
	sl_tensor *both = sl_concat(SL_ARRAY(sl_tensor *, x, y), 2, 0);
	check(sl_tensor_shape(both).dim[0] == 4, "an array of tensors");
	check(sl_shape_equal(sl_tensor_shape(sl_transpose(x)), SL_SHAPE(3, 2)), "no options");
	check(close(sl_sum(sl_zeros(SL_SHAPE(3), .dtype = SL_FLOAT64)), 0), "an option");
	check(sl_shape_equal(sl_tensor_shape(sl_sum(x)), SL_SCALAR), "a scalar's shape");
}

static void gradients()
{
	sl_tensor *w = sl_from(SL_ARRAY(float, 3, -2), SL_SHAPE(2));
	sl_attach_grad(w);
	sl_tensor *loss, *other;
	SL_RECORD {
		loss = sl_sum(sl_square(w));
		other = sl_sum(w);
	}
	sl_backward(loss, other);
	check(close(sl_sum(sl_grad(w)), (2 * 3 + 1) + (2 * -2 + 1)), "gradients of two heads");
	sl_sgd_update(SL_ARRAY(sl_tensor *, w), SL_ARRAY(sl_tensor *, sl_grad(w)), NULL, 1, .lr = 1);
	check(close(sl_sum(w), (3 - 7) + (-2 + 3)), "an update");
}

static void blocks()
{
	sl_block *net = sl_sequential(sl_dense(4, .activation = SL_RELU), sl_dense(1));
	sl_initialize(net, .init = sl_constant_init(0.5));
	sl_tensor *x = sl_ones(SL_SHAPE(2, 3));
	double by_calls = sl_item(sl_sum(sl_forward(net, x)));
	sl_hybridize(net, .static_shape = true);
	check(close(sl_sum(sl_forward(net, x)), by_calls) && by_calls > 0, "a network, hybridised");
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.01, .momentum = 0.5));
	sl_tensor *loss;
	SL_RECORD
		loss = sl_l2_loss(sl_forward(net, x), sl_zeros(SL_SHAPE(2, 1)));
	double before = sl_item(sl_mean(loss));
	sl_backward(loss);
	sl_trainer_step(trainer, 2);
	check(sl_item(sl_mean(sl_l2_loss(sl_forward(net, x), sl_zeros(SL_SHAPE(2, 1))))) < before,
	      "a step of training");
	sl_trainer_free(trainer);
	sl_block_free(net);
}

static void programs()
{
	sl_tensor *a = sl_var("a", SL_VAR_SHAPE(2, 2)), *b = sl_var("b");
	sl_graph *graph = sl_graph_define(sl_add(a, b), sl_mul(a, b));
	check(sl_graph_inputs(graph, NULL, 0) == 2 && sl_graph_outputs(graph, NULL, 0) == 2, "a program");
	sl_plan *plan = sl_compile(graph, .shapes = SL_ARRAY(sl_shape, SL_SHAPE(2, 2), SL_SHAPE(2, 2)));
	sl_tensor *out[2] = {NULL, NULL};
	sl_tensor *in[] = {sl_full(SL_SHAPE(2, 2), 2), sl_full(SL_SHAPE(2, 2), 5)};
	sl_plan_run(plan, in, 2, out);
	check(close(sl_sum(out[0]), 4 * 7) && close(sl_sum(out[1]), 4 * 10), "a program that ran");
	sl_plan_free(plan);
	sl_graph_free(graph);
}

static bool released;

static void release(void *, void *)
{
	released = true;
}

// A scope ends however it is left.
static void scopes()
{
	static float values[] = {1, 2, 3};
	try {
		SL_SCOPE {
			sl_wait(sl_adopt(values, SL_SHAPE(3), release, NULL));
			throw std::runtime_error("out of the scope");
		}
	} catch (const std::runtime_error &) {
	}
	sl_wait_all();
	check(released, "an exception ends a scope");
}

static void files()
{
	sl_block *none = sl_import("nowhere-symbol.json", SL_NAMES("data", "more"), "nowhere-0000.params");
	check(!none && sl_error() == SL_EIO && std::strstr(sl_error_message(), "cplusplus.cc:"),
	      "an error names its place");
	sl_error_clear();
}

// Fields have the defaults of the lists that calls in C have.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
static void defaults()
{
	bool same = true;
#define ONE(field, ...)                                                                                                \
	same = same && (sizeof one.field > 24 || !std::memcmp(&one.field, &listed.field, sizeof one.field));
#define X(type)                                                                                                        \
	{                                                                                                              \
		struct type one, listed = {SL_DEFAULTS_##type(SL_SET_)};                                               \
		SL_DEFAULTS_##type(ONE) check(same &&one.as_written, #type);                                           \
	}
	SLP_OPTIONS_LIST(X)
#undef X
#undef ONE
	struct sl_optimizer given = sl_sgd(.schedule = {.kind = SL_STEPS, .every = 1, .factor = 0});
	check(given.schedule.factor == 0 && given.schedule.power == 1, "a structure within has its defaults");
}
#pragma GCC diagnostic pop

int main()
{
	check(sl_init({.teams = 1, .seed = 7}) == SL_OK, "a configuration in place");
	SL_SCOPE {
		arrays();
		gradients();
		blocks();
		programs();
		defaults();
	}
	scopes();
	files();
	check(sl_wait_all() == SL_OK, "no errors are left");
	sl_shutdown();
	return failures != 0;
}
