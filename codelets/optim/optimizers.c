/* All optimisers: their rules (rules/NAME.h), their descriptors by their kinds, and a step by a descriptor. */
#include "optimizer.h"
#include "options.h"

#include <stdlib.h>
#include <string.h>

#include "optim/optim.h"

/* How an operation lists the kernels of a rule. */
#define SLP_RULE_ROWS(name, cuda) .ref = name##_ref, .rows = SLP_FLOAT_ROWS_OF(name##_ref, name##_cpu, cuda)

/* Includes the rules of SL_OPTIMIZER_LIST; made from the list by make. */
#include "codelets/optim/rules.inc"

const struct slp_optimizer *const slp_optimizers[] = {
#define X(kind, name) [kind] = &name##_optimizer,
        SL_OPTIMIZER_LIST(X)
#undef X
};
const int slp_optimizer_count = sizeof slp_optimizers / sizeof *slp_optimizers;

/* ---- hyperparameters --------------------------------------------------------------------------------------------- */

const struct slp_hyperparameter_row slp_hyperparameters[] = {
#define ROW(type, field, range, x)                                                                                     \
	[SLP_HYPER_##field] = {#field, offsetof(struct sl_optimizer, field), SLP_RANGE_##range},
        SL_HYPERPARAMETER_LIST(ROW, ROW, )
#undef ROW
};

double slp_hyperparameter(const struct sl_optimizer *o, enum slp_hyperparameter which)
{
	const struct slp_hyperparameter_row *row = &slp_hyperparameters[which];
	const char *at = (const char *)o + row->offset;
	return row->range == SLP_RANGE_FLAG ? *(const bool *)at : *(const double *)at;
}

/* All optimisers have it: trainers see to it. */
static bool is_common(enum slp_hyperparameter which)
{
	return which == SLP_HYPER_weight_decay || which == SLP_HYPER_clip_norm || which == SLP_HYPER_clip_value ||
	       which == SLP_HYPER_average;
}

static bool has_option(const struct slp_optimizer *d, enum slp_hyperparameter which)
{
	for (int i = 0; i < d->noptions; i++)
		if (d->options[i].which == which) return true;
	return is_common(which);
}

static bool is_in_range(enum slp_range range, double x)
{
	switch (range) {
	case SLP_RANGE_SHARE: return x >= 0 && x < 1;
	case SLP_RANGE_AMOUNT: return x >= 0 && isfinite(x);
	case SLP_RANGE_LIMIT: return (x > 0 && isfinite(x)) || !slp_was_given(x);
	case SLP_RANGE_AVERAGE: return (x > 0 && x < 1) || !slp_was_given(x);
	case SLP_RANGE_FLAG: return true;
	}
	return false;
}

static const char *range_text(enum slp_range range)
{
	static const char *const texts[] = {
	        [SLP_RANGE_SHARE] = "must be in [0, 1)",
	        [SLP_RANGE_AMOUNT] = "must be a number that is not negative",
	        [SLP_RANGE_LIMIT] = "must be positive; leave it out for no limit",
	        [SLP_RANGE_AVERAGE] = "must be in (0, 1); leave it out for no averages",
	        [SLP_RANGE_FLAG] = "is a truth value",
	};
	return texts[range];
}

/* The optimisers that have a hyperparameter: "sgd, rmsprop". */
static void list_owners(enum slp_hyperparameter which, char *text, size_t size)
{
	*text = '\0';
	for (int i = 0; i < slp_optimizer_count; i++) {
		size_t used = strlen(text);
		if (has_option(slp_optimizers[i], which))
			snprintf(text + used, size - used, "%s%s", used ? ", " : "", slp_optimizers[i]->name);
	}
}

static bool wrong_hyperparameter(const struct slp_optimizer *d, const struct sl_optimizer *o,
                                 enum slp_hyperparameter which, char text[256])
{
	const struct slp_hyperparameter_row *row = &slp_hyperparameters[which];
	double x = slp_hyperparameter(o, which);
	char owners[128];
	if (!is_in_range(row->range, x)) {
		snprintf(text, 256, ".%s %s", row->name, range_text(row->range));
		return true;
	}
	if (!(row->range == SLP_RANGE_FLAG ? x != 0 : slp_was_given(x)) || has_option(d, which)) return false;
	list_owners(which, owners, sizeof owners);
	snprintf(text, 256, ".%s is of %s; %s has none", row->name, owners, d->name);
	return true;
}

bool slp_optimizer_wrong(const struct sl_optimizer *o, char text[256])
{
	if ((unsigned)o->kind >= (unsigned)slp_optimizer_count) {
		snprintf(text, 256, "there is no such optimiser");
		return true;
	}
	if (!is_in_range(SLP_RANGE_AMOUNT, o->lr)) {
		snprintf(text, 256, ".lr %s", range_text(SLP_RANGE_AMOUNT));
		return true;
	}
	for (enum slp_hyperparameter i = 0; i < SLP_HYPERPARAMETERS; i++)
		if (wrong_hyperparameter(slp_optimizers[o->kind], o, i, text)) return true;
	if (o->nesterov && o->momentum == 0) {
		snprintf(text, 256, ".nesterov needs a momentum");
		return true;
	}
	return false;
}

enum sl_status slp_optim_infer_options(struct slp_infer *c, const struct slp_optimizer *d)
{
	for (int i = 0; i < d->noptions; i++) {
		const struct slp_hyperparameter_row *row = &slp_hyperparameters[d->options[i].which];
		if (row->range == SLP_RANGE_FLAG) continue;
		double *x = (double *)((char *)c->attrs + d->options[i].offset);
		*x = slp_or(*x, d->options[i].by_default);
		if (!is_in_range(row->range, *x))
			return slp_reject(c, SL_EINVAL, "%s is %g; it %s", row->name, *x, range_text(row->range));
	}
	if (!d->counts) return slp_optim_infer(c);
	const struct slp_optim_counted_attrs *a = c->attrs;
	if (a->step < 1) return slp_reject(c, SL_EINVAL, "step is %lld; steps count from 1", (long long)a->step);
	if (a->skipped < 0 || a->skipped >= a->step)
		return slp_reject(c, SL_EINVAL, "%lld of %lld steps are skipped", (long long)a->skipped,
		                  (long long)a->step);
	return slp_optim_infer(c);
}

enum sl_status slp_optim_check_number(const struct slp_kernel *k)
{
	const struct slp_optim_counted_attrs *a = k->attrs;
	if (slp_optim_number(a) >= 1) return SL_OK;
	return slp_kernel_fail(k, SL_EINVAL, "step is %lld, skipped %lld; steps count from 1", (long long)a->step,
	                       (long long)a->skipped);
}

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

const struct slp_optimizer *slp_optimizer_of(const struct sl_optimizer *o)
{
	return slp_optimizers[o->kind];
}

/* The number of states that an optimiser with these settings keeps for each parameter, 0 to 2; -1: no such optimiser.
 * */
int sl_optimizer_states(const struct sl_optimizer *o)
{
	if (!o || (unsigned)o->kind >= (unsigned)slp_optimizer_count) return -1;
	const struct slp_optimizer *d = slp_optimizer_of(o);
	int n = 0;
	while (d->states[n]) n++;
	return n - (d->plain && o->momentum == 0);
}

/* The name of an optimiser, for sl_optimizer_named and in files of states: "adam"; NULL: no such kind. */
const char *sl_optimizer_name(enum sl_optimizer_kind kind)
{
	return (unsigned)kind < (unsigned)slp_optimizer_count ? slp_optimizers[kind]->name : NULL;
}

/* The optimiser of that name, an enum sl_optimizer_kind; -1: no such optimiser.
 *
 *     int kind = sl_optimizer_named("adam");
 *     if (kind >= 0) trainer = sl_trainer_new(net, SL_OPTIMIZER((enum sl_optimizer_kind)kind, .lr = 0.01)); */
int sl_optimizer_named(const char *name)
{
	for (int i = 0; name && i < slp_optimizer_count; i++)
		if (!strcmp(slp_optimizers[i]->name, name)) return i;
	return -1;
}

/* The initial learning rate of these settings: .lr, or the optimiser's default if .lr is not set.  NaN: no such
 * optimiser. */
double sl_optimizer_lr(const struct sl_optimizer *o)
{
	if (sl_optimizer_states(o) < 0) return NAN;
	return isnan(o->lr) || !slp_was_given(o->lr) ? slp_optimizer_of(o)->lr : o->lr;
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

union attrs {
	struct slp_optim_attrs common;
	struct slp_optim_counted_attrs counted;
	char bytes[SLP_MAX_ATTRS];
};

static void set_options(union attrs *a, const struct slp_optimizer *d, const struct sl_optimizer *o)
{
	for (int i = 0; i < d->noptions; i++) {
		const struct slp_option *option = &d->options[i];
		double x = slp_hyperparameter(o, option->which);
		char *at = a->bytes + option->offset;
		if (slp_hyperparameters[option->which].range == SLP_RANGE_FLAG) *(bool *)at = x != 0;
		else *(double *)at = slp_or(x, option->by_default);
	}
}

enum sl_status slp_optimizer_update(const struct slp_optimizer_call *c)
{
	const struct slp_optimizer *d = slp_optimizer_of(c->optimizer);
	int states = sl_optimizer_states(c->optimizer);
	union attrs attrs;
	memset(&attrs, 0, sizeof attrs); /* an initialiser clears the member that it names, nothing else (gcc 15) */
	attrs.common = (struct slp_optim_attrs){.lr = c->lr,
	                                        .weight_decay = c->weight_decay,
	                                        .rescale = c->rescale,
	                                        .clip_norm = c->clip_norm,
	                                        .clip_value = c->optimizer->clip_value,
	                                        .lr_scale = c->lr_scale};
	if (d->counts) attrs.counted.step = c->step, attrs.counted.skipped = c->skipped;
	set_options(&attrs, d, c->optimizer);
	struct slp_optim_call u = {.at = c->at,
	                           .function = c->function,
	                           .op = d->plain && c->optimizer->momentum == 0 ? d->plain : d->op,
	                           .attrs = &attrs,
	                           .count = c->count,
	                           .of = {c->params, c->grads},
	                           .names = {"params", "grads"}};
	for (int i = 0; i < states; i++) {
		u.of[2 + i] = c->states[i];
		u.names[2 + i] = d->states[i];
	}
	return slp_optim_update(&u);
}

/* A step of any optimiser without a trainer: updates `count` parameters in place by their gradients, multiplied by
 * rescale.  first and second are arrays of the states, tensors of the parameters' shapes, zero before the first step;
 * sl_optimizer_states returns their number, and the others are NULL.  step is the number of this step, from 1.
 * .schedule, .loss_scaling, .average, .shard_state and .state_on are for trainers and have no effect here.  Errors as in
 * sl_sgd_update; also SL_EINVAL for a setting that is out of range, or that the optimiser does not have.
 *
 *     sl_optimizer_update(sl_lion(.lr = 1e-4), step, 1.0 / batch_size, params, grads, means, NULL, count); */
enum sl_status sl_optimizer_update_at(const char *at, struct sl_optimizer optimizer, int64_t step, double rescale,
                                      sl_tensor *const *params, sl_tensor *const *grads, sl_tensor *const *first,
                                      sl_tensor *const *second, int count)
{
	char wrong[256];
	if (!SLP_OPTIONS(sl_optimizer, at, "sl_optimizer_update", &optimizer)) return SL_EINVAL;
	if (slp_optimizer_wrong(&optimizer, wrong))
		return slp_call_fail(at, "sl_optimizer_update", SL_EINVAL, "%s", wrong), SL_EINVAL;
	return slp_optimizer_update(
	        &(struct slp_optimizer_call){.at = at,
	                                     .function = "sl_optimizer_update",
	                                     .optimizer = &optimizer,
	                                     .lr = slp_or(optimizer.lr, slp_optimizer_of(&optimizer)->lr),
	                                     .weight_decay = optimizer.weight_decay,
	                                     .rescale = rescale == 0 ? -0.0 : rescale, /* options.h */
	                                     .clip_norm = optimizer.clip_norm,
	                                     .step = step,
	                                     .count = count,
	                                     .params = params,
	                                     .grads = grads,
	                                     .states = {first, second}});
}
