/* The descriptor of an optimiser, at the foot of codelets/optim/rules/NAME.h.  All code that handles optimisers uses
 * the descriptor and walks the hyperparameters; none depends on the kind. */
#ifndef SLP_OPTIMIZER_H
#define SLP_OPTIMIZER_H

#include <starling/nn.h>

#include "op.h"

/* ---- hyperparameters (SL_HYPERPARAMETER_LIST) -------------------------------------------------------------------- */

enum slp_hyperparameter {
#define SLP_NUMBER_(type, field, range, x) SLP_HYPER_##field,
	SL_HYPERPARAMETER_LIST(SLP_NUMBER_, SLP_NUMBER_, )
#undef SLP_NUMBER_
	        SLP_HYPERPARAMETERS
};
enum slp_range { SLP_RANGE_SHARE, SLP_RANGE_AMOUNT, SLP_RANGE_LIMIT, SLP_RANGE_AVERAGE, SLP_RANGE_FLAG };

/* A hyperparameter: its field in struct sl_optimizer, its range. */
struct slp_hyperparameter_row {
	const char *name;
	unsigned offset;
	enum slp_range range;
};
extern const struct slp_hyperparameter_row slp_hyperparameters[SLP_HYPERPARAMETERS];
/* Its value: 0 if it was not given, -0.0 a 0 that was (options.h); a flag is 0 or 1. */
double slp_hyperparameter(const struct sl_optimizer *o, enum slp_hyperparameter which);

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

enum { SLP_OPTIMIZER_STATES = 2 }; /* of a parameter, at most */

/* A hyperparameter of an optimiser, besides weight_decay and the limits of gradients. */
struct slp_option {
	enum slp_hyperparameter which;
	unsigned offset;   /* in the attributes of its operation; a double, or the truth value of a flag */
	double by_default; /* where it was not given; 0: none */
};
#define SLP_OPTION(attrs, field, by_default)                                                                           \
	{                                                                                                              \
		SLP_HYPER_##field, offsetof(attrs, field), by_default                                                  \
	}

struct slp_optimizer {
	const char *name;
	double lr; /* by default */
	/* The states of each parameter, zero at first, after parameter and gradient among the operation's inputs.
	 * These are the names in files, which later releases must read. */
	const char *states[SLP_OPTIMIZER_STATES + 1];
	const struct slp_option *options;
	int noptions;
	const struct sl_op *op;    /* a step of many parameters */
	const struct sl_op *plain; /* the same without the last state, for a momentum of 0; NULL: it needs all states */
	bool counts;               /* a step depends on the number of updates of the parameter */
};
/* By their kinds. */
extern const struct slp_optimizer *const slp_optimizers[];
extern const int slp_optimizer_count;

/* The settings' own descriptor. */
const struct slp_optimizer *slp_optimizer_of(const struct sl_optimizer *o);
/* Checks hyperparameters and learning rate; true: `text` has the problem; false: none. */
bool slp_optimizer_wrong(const struct sl_optimizer *o, char text[256]);

/* ---- a step ------------------------------------------------------------------------------------------------------ */

/* Of `count` parameters, in place. */
struct slp_optimizer_call {
	const char *at, *function;
	const struct sl_optimizer *optimizer; /* its learning rate, weight_decay and clip_norm do not count: */
	double lr, lr_scale, weight_decay, rescale, clip_norm;
	int64_t step, skipped; /* number of the step, from 1; steps before it that left the parameters alone */
	int count;
	sl_tensor *const *params, *const *grads, *const *states[SLP_OPTIMIZER_STATES];
};
enum sl_status slp_optimizer_update(const struct slp_optimizer_call *call);

#endif
