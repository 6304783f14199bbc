/* Cases of the optimisers' steps: those that all have (optimizers.def), and those of single ones.  Known values, and that many parameters are walked rightly, are in test_optim.c. */
#include "optim/optim.h"

#include "cases.h"

/* clang-format off */

#define OF(type, low, high, ...) {type, DIMS(__VA_ARGS__), low, high, {0}, 0}
#define R(...) OF(SL_FLOAT32, -3, 3, __VA_ARGS__)
#define P(...) OF(SL_FLOAT32, 0, 3, __VA_ARGS__) /* squares */
#define I(...) OF(SL_INT32, 0, 3, __VA_ARGS__)
#define D(...) OF(SL_FLOAT64, 0, 3, __VA_ARGS__) /* sums of squares */

#define SGD(...) (&(const struct slp_sgd_attrs){.lr = .1, .weight_decay = .01, .rescale = .5, .momentum = .9, __VA_ARGS__})
#define ADAM_AT(number, small, ...) (&(const struct slp_adam_attrs){.lr = .1, .weight_decay = .01, .rescale = .5, .step = number, .eps = small, __VA_ARGS__})
#define ADAM(...) ADAM_AT(3, .01, __VA_ARGS__)
#define RMSPROP_EPS(small, ...) (&(const struct slp_rmsprop_attrs){.lr = .1, .weight_decay = .01, .rescale = .5, .momentum = .9, .eps = small, __VA_ARGS__})
#define AVERAGE(k) (&(const struct slp_average_attrs){.keep = k})
#define CLIP(norm) (&(const struct slp_optim_attrs){.rescale = .5, .clip_norm = norm})
#define RMSPROP(...) RMSPROP_EPS(.1, __VA_ARGS__)

/* Attributes of any optimiser: its own have their defaults. */
#define ANY(...) (&(const union {struct slp_optim_counted_attrs a; char all[SLP_MAX_ATTRS];}){.a = {.lr = .1, .weight_decay = .01, .rescale = .5, __VA_ARGS__}})
#define UNCOUNTED(...) ANY(__VA_ARGS__)
#define COUNTED(...) ANY(.step = 3, __VA_ARGS__)

/* A parameter and what belongs to it, for each of the operations. */
#define PARAM_2(...) R(__VA_ARGS__), R(__VA_ARGS__)
#define PARAM_3(...) R(__VA_ARGS__), R(__VA_ARGS__), P(__VA_ARGS__)
#define PARAM_4(...) R(__VA_ARGS__), R(__VA_ARGS__), P(__VA_ARGS__), P(__VA_ARGS__)
#define PARAM_average PARAM_sgd
#define PARAM_sgd(...) R(__VA_ARGS__), R(__VA_ARGS__)
#define PARAM_sgd_momentum(...) R(__VA_ARGS__), R(__VA_ARGS__), R(__VA_ARGS__)
#define PARAM_adam(...) R(__VA_ARGS__), R(__VA_ARGS__), R(__VA_ARGS__), P(__VA_ARGS__)
#define PARAM_rmsprop(...) R(__VA_ARGS__), R(__VA_ARGS__), P(__VA_ARGS__)
#define PARAM_rmsprop_momentum(...) R(__VA_ARGS__), R(__VA_ARGS__), P(__VA_ARGS__), R(__VA_ARGS__)

#define CASE(name, what, a, count, ...) .op = #name, .label = what, .attrs = a, .nin = count, .in = {__VA_ARGS__}, .no_grad = true
#define WRONG(name, what, status, a, count, ...) {CASE(name, what, a, count, __VA_ARGS__), .reject = status}
#define STEPS(name, period, ATTRS) STEPS_OF(name, period, ATTRS, PARAM_##name)
#define OPTIMIZER(kind, name, period, attrs, ...) STEPS_OF(name, period, attrs, PARAM_##period), \
	{CASE(name, "a rate of its own", attrs(.lr_scale = .25), 2 * period, PARAM_##period(3), PARAM_##period(5, 7))},
#define STEPS_OF(name, period, ATTRS, PARAM) \
	{CASE(name, "two parameters", ATTRS(), 2 * period, PARAM(3), PARAM(5, 7))}, \
	{CASE(name, "large and small", ATTRS(), 3 * period, PARAM(70001), PARAM(1), PARAM(301, 307))}, \
	{CASE(name, "clipped by norm", ATTRS(.clip_norm = 2), 3 * period, PARAM(9), PARAM(0), PARAM(2, 65))}, \
	{CASE(name, "clipped by norm, large", ATTRS(.clip_norm = 30), 2 * period, PARAM(70001), PARAM(301, 307))}, \
	{CASE(name, "norm below the limit", ATTRS(.clip_norm = 1e4), period, PARAM(100))}, \
	{CASE(name, "clipped by value", ATTRS(.clip_value = .75), 2 * period, PARAM(3), PARAM(129))}, \
	{CASE(name, "clipped both ways", ATTRS(.clip_norm = 9, .clip_value = .5), period, PARAM(129))}, \
	{CASE(name, "nothing", ATTRS(.clip_norm = 1), period, PARAM(0))}, \
	WRONG(name, "gradient of another shape", SL_ESHAPE, ATTRS(), period, R(3), R(3, 1), R(3), R(3)), \
	WRONG(name, "integers", SL_EDTYPE, ATTRS(), period, I(3), I(3), I(3), I(3)), \
	WRONG(name, "data types differ", SL_EDTYPE, ATTRS(), period, R(3), I(3), R(3), R(3)), \
	WRONG(name, "one too many", SL_EINVAL, ATTRS(), period + 1, R(3), R(3), R(3), R(3), R(3)), \
	WRONG(name, "negative clip_norm", SL_EINVAL, ATTRS(.clip_norm = -1), period, PARAM(3)), \
	WRONG(name, "negative clip_value", SL_EINVAL, ATTRS(.clip_value = -1), period, PARAM(3))

const struct slp_case slp_cases_optim[] = {
	STEPS(sgd, 2, SGD),
	STEPS(sgd_momentum, 3, SGD),
	{CASE(sgd, "a rate of its own", SGD(.lr_scale = .25), 4, PARAM_sgd(3), PARAM_sgd(5, 7))},
	{CASE(sgd_momentum, "a rate of its own", SGD(.lr_scale = .25), 3, PARAM_sgd_momentum(5, 7))},
	{CASE(adam, "a rate of its own", ADAM(.lr_scale = .25, .decoupled = true), 4, PARAM_adam(5, 7))},
	{CASE(rmsprop, "a rate of its own", RMSPROP(.lr_scale = .25), 3, PARAM_rmsprop(5, 7))},
	{CASE(rmsprop_momentum, "a rate of its own", RMSPROP(.lr_scale = .25), 4, PARAM_rmsprop_momentum(5, 7))},
	{CASE(average, "two parameters", AVERAGE(.75), 4, PARAM_average(3), PARAM_average(5, 7))},
	{CASE(average, "large and small", AVERAGE(.999), 6, PARAM_average(70001), PARAM_average(1), PARAM_average(301, 307))},
	{CASE(average, "nothing", AVERAGE(.75), 2, PARAM_average(0))},
	WRONG(average, "all of it stays", SL_EINVAL, AVERAGE(1), 2, PARAM_average(3)),
	WRONG(average, "of another shape", SL_ESHAPE, AVERAGE(.75), 2, R(3), R(3, 1)),
	WRONG(average, "one too many", SL_EINVAL, AVERAGE(.75), 3, R(3), R(3), R(3)),
	{CASE(clip_scale, "clipped", CLIP(2), 3, R(9), R(0), R(2, 65))},
	{CASE(clip_scale, "large and small", CLIP(30), 3, R(70001), R(1), R(301, 307))},
	{CASE(clip_scale, "below the limit", CLIP(1e4), 1, R(100))},
	WRONG(clip_scale, "integers", SL_EDTYPE, CLIP(1), 1, I(3)),
	WRONG(clip_scale, "data types differ", SL_EDTYPE, CLIP(1), 2, R(3), I(3)),
	WRONG(clip_scale, "negative clip_norm", SL_EINVAL, CLIP(-1), 1, R(3)),
	{CASE(clip_squares, "large and small", CLIP(0), 4, R(70001), R(1), R(0), R(301, 307))},
	{CASE(clip_squares, "nothing", CLIP(0), 1, R(0))},
	WRONG(clip_squares, "integers", SL_EDTYPE, CLIP(0), 1, I(3)),
	WRONG(clip_squares, "data types differ", SL_EDTYPE, CLIP(0), 2, R(3), I(3)),
	{CASE(clip_factor, "clipped", CLIP(2), 3, D(9), D(0), D(2000))},
	{CASE(clip_factor, "below the limit", CLIP(1e4), 1, D(100))},
	WRONG(clip_factor, "float32", SL_EDTYPE, CLIP(1), 1, R(3)),
	WRONG(clip_factor, "no limit", SL_EINVAL, CLIP(0), 1, D(3)),
	{CASE(sgd_momentum, "nesterov", SGD(.nesterov = true), 6, PARAM_sgd_momentum(3), PARAM_sgd_momentum(5, 7))},
	{CASE(sgd_momentum, "velocity", SGD(.velocity = true), 6, PARAM_sgd_momentum(3), PARAM_sgd_momentum(5, 7))},
	{CASE(sgd_momentum, "velocity, nesterov", SGD(.velocity = true, .nesterov = true), 3, PARAM_sgd_momentum(50, 70))},
	STEPS(adam, 4, ADAM),
	{CASE(adam, "decoupled", ADAM(.decoupled = true), 8, PARAM_adam(3), PARAM_adam(5, 7))},
	{CASE(adam, "defaults", ADAM_AT(1000, 0), 4, PARAM_adam(100))},
	{CASE(adam, "first step", ADAM_AT(1, .01, .beta1 = .5, .beta2 = .25), 4, PARAM_adam(100))},
	WRONG(adam, "step 0", SL_EINVAL, ADAM_AT(0, .01), 4, PARAM_adam(3)),
	WRONG(adam, "beta1 of 1", SL_EINVAL, ADAM(.beta1 = 1), 4, PARAM_adam(3)),
	WRONG(adam, "negative beta2", SL_EINVAL, ADAM(.beta2 = -.5), 4, PARAM_adam(3)),
	WRONG(adam, "negative eps", SL_EINVAL, ADAM_AT(3, -1), 4, PARAM_adam(3)),
	STEPS(rmsprop, 3, RMSPROP),
	STEPS(rmsprop_momentum, 4, RMSPROP),
	{CASE(rmsprop, "alpha 0.5", RMSPROP(.alpha = .5), 3, PARAM_rmsprop(100))},
	WRONG(rmsprop, "alpha above 1", SL_EINVAL, RMSPROP(.alpha = 1.5), 3, PARAM_rmsprop(3)),
	WRONG(rmsprop, "negative eps", SL_EINVAL, RMSPROP_EPS(-1), 3, PARAM_rmsprop(3)),
#include "optimizers.def"
	{0},
};
