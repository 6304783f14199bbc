/* Optimisers and their hyperparameters.  Each is a line of a list here, which trainers, files of states, processes that
 * train together, Python and the documentation expand: doc/adding-an-optimizer.md. */
#ifndef STARLING_OPTIM_H
#define STARLING_OPTIM_H

#include <starling/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(kind, name): codelets/optim/rules/NAME.h describes the optimiser, slp_op_NAME is a step of it.  States in files
 * hold the names, programs the numbers: a new one goes to the end. */
#define SL_OPTIMIZER_LIST(X)                                                                                           \
	X(SL_SGD, sgd)                                                                                                 \
	X(SL_ADAM, adam)                                                                                               \
	X(SL_ADAMW, adamw)                                                                                             \
	X(SL_RMSPROP, rmsprop)                                                                                         \
	X(SL_LION, lion)                                                                                               \
	X(SL_NADAM, nadam)                                                                                             \
	X(SL_LAMB, lamb)

enum sl_optimizer_kind {
#define X(kind, name) kind,
	SL_OPTIMIZER_LIST(X)
#undef X
};

/* The optimiser of a kind with its settings: SL_OPTIMIZER(SL_SGD, .lr = 0.1). */
#define SL_OPTIMIZER(kind_, ...) SL_OPTIONS(sl_optimizer, .kind = (kind_), __VA_ARGS__)
#define sl_sgd(...) SL_OPTIMIZER(SL_SGD, __VA_ARGS__)
#define sl_adam(...) SL_OPTIMIZER(SL_ADAM, __VA_ARGS__)
#define sl_adamw(...) SL_OPTIMIZER(SL_ADAMW, __VA_ARGS__)
#define sl_rmsprop(...) SL_OPTIMIZER(SL_RMSPROP, __VA_ARGS__)
#define sl_lion(...) SL_OPTIMIZER(SL_LION, __VA_ARGS__)
#define sl_nadam(...) SL_OPTIMIZER(SL_NADAM, __VA_ARGS__)
#define sl_lamb(...) SL_OPTIMIZER(SL_LAMB, __VA_ARGS__)

/* Settings of optimisers beside the learning rate, with their ranges: SHARE, in [0, 1); AMOUNT, a number that is not
 * negative; LIMIT, a positive number; AVERAGE, in (0, 1); FLAG, a boolean.  GIVEN(type, field, range, x): 0 is an
 * ordinary value, and the default depends on the optimiser, or there is none; PLAIN(type, field, range, x): 0 is the
 * default.  x is passed on.
 *
 * momentum        factor of the old momentum
 * nesterov        steps by the next momentum
 * beta1, beta2    factors of the old running means, of the gradient and of its square
 * alpha           factor of the old running mean of the squares
 * eps             added to the divisor
 * momentum_decay  speed at which the momentum of NAdam grows
 * weight_decay    rate at which parameters decay
 * clip_norm       limit of the L2 norm of all gradients together
 * clip_value      limit of each element of a gradient
 * average         factor of the old moving averages of the parameters in a step; if omitted, no averages are kept */
#define SL_HYPERPARAMETER_LIST(GIVEN, PLAIN, x)                                                                        \
	PLAIN(double, momentum, SHARE, x)                                                                              \
	PLAIN(bool, nesterov, FLAG, x)                                                                                 \
	GIVEN(double, beta1, SHARE, x)                                                                                 \
	GIVEN(double, beta2, SHARE, x)                                                                                 \
	GIVEN(double, alpha, SHARE, x)                                                                                 \
	GIVEN(double, eps, AMOUNT, x)                                                                                  \
	GIVEN(double, momentum_decay, AMOUNT, x)                                                                       \
	PLAIN(double, weight_decay, AMOUNT, x)                                                                         \
	GIVEN(double, clip_norm, LIMIT, x)                                                                             \
	GIVEN(double, clip_value, LIMIT, x)                                                                            \
	GIVEN(double, average, AVERAGE, x)

SL_API const char *sl_optimizer_name(enum sl_optimizer_kind kind);
SL_API int sl_optimizer_named(const char *name);

#ifdef __cplusplus
}
#endif
#endif
