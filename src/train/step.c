/* Whole training steps as one plan: forward, loss, backward and the optimiser's update; or, for a batch in shards, a
 * plan for each shard up to its gradients (step_shards.c). */
#include <stdlib.h>
#include <string.h>

#include "hybrid/trace.h"
#include "options.h"
#include "runtime/fault.h"
#include "runtime/gate.h"
#include "runtime/memory/admission.h"
#include "train/step.h"
#include "train/trainer.h"
#include "train/train.h"

enum { MAX_PLANS = 64 };

/* A training step of a network as one program: sl_step_run computes the network's output, the losses and the gradients,
 * and updates the trainer's parameters, in as few tasks as there are workers to share them.  It is compiled at the
 * first run for a batch's shape.  The gradients themselves are not kept: sl_param_grad does not see them, and inputs get
 * none.  loss is the function behind one of the macros: sl_softmax_cross_entropy_at.  The parameters are updated by the
 * gradient of the mean of all losses, one per row, several (one per token), or one for the batch; of their sum with
 * .reduction = SL_REDUCTION_SUM.  The step has a reference to the network; the trainer must outlive it, and its current
 * learning rate and schedule apply at each run.  Parameters in half types are updated after the program, by separate
 * operations.  With .accumulate = n, each run takes a micro-batch and adds its gradients to a sum, and each n-th run
 * makes a step of the trainer with the sum, as if all rows had been one batch; checkpoints in between contain the sum.
 * An error of that step discards the sum.  With .buckets, batches of many sizes share a few programs; losses of padding
 * do not count (doc/hybrid.md).  With .memory = n, a step uses at most n bytes of its GPU: values that do not fit leave to
 * main memory and come back in time, by a plan that is made once, with the same results bit by bit (doc/memory.md); such a
 * call returns when all but the last tasks have ended.  If the trainer's states are in main memory (.state_on), the same plan
 * brings parameters and takes gradients away (doc/memory-state.md).  Free it with sl_step_free.
 *
 * For networks with several inputs or results (sl_also), any number of targets, and any loss, pass NULL as loss and set
 * .loss_of_all, a function that is called with .context, all results of the network and all targets of a batch, when
 * the program is traced; it returns the losses.  It may call any operations on them, on parameters, and on constants
 * that do not change.  The context must outlive the step.  SL_EINVAL: an argument is NULL, two losses, no such
 * reduction, or a negative .accumulate.
 *
 *     sl_step *step = sl_step_compile(net, sl_softmax_cross_entropy_at, trainer);
 *     while (next(&x, &y)) sl_step_run(step, x, y);
 *
 *     static sl_tensor *loss(void *context, sl_tensor *const *out, int nout, sl_tensor *const *targets, int ntargets)
 *     {
 *             sl_tensor *place = sl_l2_loss(out[0], targets[0]), *kind = sl_softmax_cross_entropy(out[1], targets[1]);
 *             return sl_add(place, sl_mul_scalar(kind, *(double *)context));
 *     }
 *     ...
 *     sl_step *step = sl_step_compile(net, NULL, trainer, .loss_of_all = loss, .context = &weight);
 *     sl_tensor *in[] = {image, text}, *targets[] = {box, label};
 *     sl_step_run(step, .in = in, .nin = 2, .targets = targets, .ntargets = 2); */
sl_step *sl_step_compile_at(const char *at, sl_block *net, sl_loss *loss, sl_trainer *trainer, struct sl_step_opts opts)
{
	SLP_CALL("sl_step_compile", at);
	if (!net || !(loss || opts.loss_of_all) || !trainer) {
		if (sl_error() == SL_OK) slp_call_fail(at, "sl_step_compile", SL_EINVAL, "an argument is NULL");
		return NULL;
	}
	if (loss && opts.loss_of_all)
		return slp_call_fail(at, "sl_step_compile", SL_EINVAL, "give a loss or .loss_of_all, not both");
	if ((unsigned)opts.reduction > SL_REDUCTION_SUM)
		return slp_call_fail(at, "sl_step_compile", SL_EINVAL, "%d is not a reduction", (int)opts.reduction);
	if (!slp_buckets_usable(at, "sl_step_compile", &opts.buckets)) return NULL;
	if (opts.accumulate == 0) opts.accumulate = 1; /* as 1 */
	if (!SLP_OPTIONS(sl_step_opts, at, "sl_step_compile", &opts)) return NULL;
	if (opts.accumulate < 0)
		return slp_call_fail(at, "sl_step_compile", SL_EINVAL, ".accumulate must not be negative");
	sl_step *s = slp_calloc(1, sizeof *s);
	if (!s) return slp_call_fail(at, "sl_step_compile", SL_ENOMEM, "no memory for a step");
	s->net = net;
	s->loss = loss;
	s->trainer = trainer;
	s->opts = opts;
	sl_block_retain(net);
	return s;
}

static void compiled_free(struct slp_compiled *c)
{
	if (!c) return;
	sl_plan_free(c->plan);
	free(c->signature);
	free(c);
}

static void drop_plans(sl_step *step)
{
	for (struct slp_compiled *c; (c = step->plans);) {
		step->plans = c->next;
		compiled_free(c);
	}
	step->count = 0;
}

static void step_free(void *given)
{
	sl_step *step = given;
	drop_plans(step);
	sl_autotune_free(step->deals);
	slp_group_memory_clear(&step->group_memory);
	sl_block_free(step->net);
	free(step);
}

/* Frees a step; runs in flight still complete.  NULL is ignored. */
void sl_step_free(sl_step *step)
{
	slp_later(step_free, step);
}

/* ---- tracing ----------------------------------------------------------------------------------------------------- */

/* The calls of the program in this trace. */
static const char *called(void)
{
	return slp_current_call.at ? slp_current_call.function : "sl_step_run";
}

static sl_tensor *symbol_in(const struct slp_trace *trace, const sl_tensor *t)
{
	for (int i = 0; i < trace->nbound; i++)
		if (trace->bound[i].tensor == t) return trace->bound[i].symbol;
	return NULL;
}

/* The trained parameters and their gradients, as symbols. */
static bool list_params(const char *at, const struct slp_trace *trace, sl_param *const *params, int count,
                        sl_tensor **symbols, sl_tensor **grads)
{
	for (int i = 0; i < count; i++) {
		symbols[i] = slp_param_is_frozen(params[i]) ? NULL : symbol_in(trace, params[i]->data);
		grads[i] = symbols[i] && symbols[i]->var ? symbols[i]->var->grad : NULL;
		if (grads[i] || slp_param_is_frozen(params[i])) continue;
		slp_call_fail(at, called(), SL_ESTATE, "the loss does not depend on the parameter '%s'",
		              sl_param_name(params[i]));
		return false;
	}
	return true;
}

int64_t slp_step_divisor(const sl_step *step, int64_t rows)
{
	return slp_reduction_divisor(step->opts.reduction, rows * slp_trainer_size(step->trainer));
}

bool slp_step_is_alone(const sl_step *step)
{
	return !step || slp_trainer_size(step->trainer) == 1;
}

static bool trace_update(const char *at, const sl_step *step, const struct slp_trace *trace, int64_t rows)
{
	int count;
	sl_param *const *params = slp_trainer_params(at, step->trainer, &count);
	sl_tensor **symbols = slp_malloc((size_t)(2 * count + 1) * sizeof *symbols);
	if (!symbols) return slp_error_set(SL_ENOMEM, "no memory for a step") == SL_OK;
	bool ok = list_params(at, trace, params, count, symbols, symbols + count);
	SLP_GUARD_PATIENTLY(&step->trainer->guard); /* its states are made here */
	struct slp_hyper h = slp_trainer_coming(step->trainer, slp_step_divisor(step, rows));
	if (ok) ok = slp_trainer_update(at, step->trainer, symbols, symbols + count, h) == SL_OK;
	free(symbols);
	return ok;
}

/* The gradients among the results, without those of frozen parameters, and their buckets; returns their number, -1
 * after an error. */
static int trace_gradients(const char *at, const sl_step *step, const struct slp_trace *trace, sl_tensor **heads,
                           int *bucket)
{
	int count, n = 0;
	sl_param *const *params = slp_trainer_params(at, step->trainer, &count);
	slp_trainer_owners(step->trainer); /* shapes may be known only now */
	const int *buckets = slp_trainer_grad_buckets(step->trainer);
	sl_tensor **symbols = slp_malloc((size_t)(2 * count + 1) * sizeof *symbols);
	if (!symbols) return slp_error_set(SL_ENOMEM, "no memory for a step"), -1;
	sl_tensor **grads = symbols + count;
	bool ok = list_params(at, trace, params, count, symbols, grads);
	for (int i = 0; ok && i < count; i++) {
		if (!grads[i]) continue;
		bucket[n] = buckets[i];
		heads[n++] = grads[i];
	}
	free(symbols);
	return ok ? n : -1;
}

sl_tensor *slp_step_loss(const char *at, const sl_step *step, sl_tensor *const *out, int nout,
                         sl_tensor *const *targets, int ntargets)
{
	const struct sl_step_opts *o = &step->opts;
	if (o->loss_of_all) return o->loss_of_all(o->context, out, nout, targets, ntargets);
	return step->loss(at, out[0], targets[0]);
}

/* Forward: the losses and the results of the network, as symbols; *mask: the batch's, if it is padded. */
static bool trace_forward(const char *at, const sl_step *step, struct slp_compiled *c, sl_tensor **heads,
                          sl_tensor **mask)
{
	const struct slp_signature *s = c->signature;
	struct slp_results results;
	sl_tensor **in = slp_malloc((size_t)s->nin * sizeof *in);
	if (!in) return slp_error_set(SL_ENOMEM, "no memory for a step") == SL_OK;
	bool ok = slp_trace_inputs(at, s, in) && slp_block_results(at, step->net, in, c->nin, &results);
	heads[0] = ok ? slp_step_loss(at, step, results.t, results.count, in + c->nin, c->ntargets) : NULL;
	*mask = ok && c->filled ? in[s->nin - 1] : NULL;
	free(in);
	if (slp_trace_failed(at, step->net, ok ? results.t[0] : NULL)) return false;
	if (ok && !heads[0]) slp_call_fail(at, called(), SL_EINVAL, "the loss function returned NULL");
	c->nresults = ok && heads[0] ? results.count : 0;
	for (int i = 0; i < c->nresults; i++)
		if (!(heads[1 + i] = slp_symbol_of(at, results.t[i], NULL))) return false;
	return c->nresults > 0;
}

/* heads: the losses, the results, and the gradients if there is no update; returns their number, -1 after an error.
 * bucket NULL: forward alone. */
static int trace_step(const char *at, const sl_step *step, struct slp_compiled *c, struct slp_trace *trace,
                      sl_tensor **heads, int *bucket)
{
	sl_tensor *weights, *mask = NULL, *scale = NULL;
	int64_t rows = slp_rows_of(c->signature->in[0].type.shape);
	if (!trace_forward(at, step, c, heads, &mask)) return -1;
	int n = 1 + c->nresults;
	if (!bucket) return n;
	for (int i = 0; i < n; i++) bucket[i] = -1;
	trace->backward = true;
	if (slp_trainer_scales(step->trainer) && !(scale = slp_loss_scaling_symbol(at, step->trainer))) return -1;
	if (!slp_reduction_weigh(at, step->opts.reduction, heads[0], rows, scale, &weights)) return -1;
	if (mask && !(weights = slp_step_mask(at, &c->follows[0], mask, heads[0], weights))) return -1;
	if (!heads[0]->var) {
		slp_call_fail(at, called(), SL_ESTATE, "the loss does not depend on any parameter");
		return -1;
	}
	if (slp_backward(at, &heads[0], 1, (struct sl_backward_opts){.head_grads = &weights}) != SL_OK) return -1;
	int grads = c->whole ? 0 : trace_gradients(at, step, trace, heads + n, bucket + n);
	SL_PAUSE
		if (c->whole && !trace_update(at, step, trace, rows)) return -1;
	return grads < 0 ? -1 : n + grads;
}

int slp_step_params(const sl_step *step)
{
	int count;
	slp_trainer_params(NULL, step->trainer, &count);
	return count;
}

static sl_graph *trace_graph(const char *at, const sl_step *step, struct slp_compiled *c, int *bucket)
{
	sl_tensor **heads = slp_calloc((size_t)slp_step_params(step) + 1 + SL_MAX_RESULTS, sizeof *heads);
	if (!heads) return slp_call_fail(at, "sl_step_run", SL_ENOMEM, "no memory for a step");
	struct slp_trace trace;
	sl_graph *g = NULL;
	sl_mode mode;
	sl_mode_enter(&mode, 1, 1);
	slp_trace_begin(&trace, c->signature->device);
	SLP_FORWARD_SCOPE();
	slp_forward.batch_is_whole = c->whole;
	SL_SCOPE {
		int n = trace_step(at, step, c, &trace, heads, bucket);
		if (n > 0) g = slp_graph_from(heads, n, &trace);
	}
	slp_trace_end(&trace);
	sl_mode_leave(&mode);
	free(heads);
	return g;
}

/* Whether losses and results can be cut back, and how: forward is traced for two sizes. */
static bool check_padding(const struct slp_step_run *r, int shard, struct slp_compiled *c)
{
	if (!c->filled) return true;
	const struct slp_padding *f = &r->padding[shard];
	struct slp_compiled shorter = *c;
	shorter.signature = slp_signature_shorter(c->signature, f->which, f->axis);
	sl_graph *more = shorter.signature ? trace_graph(r->at, r->step, c, NULL) : NULL;
	sl_graph *less = more ? trace_graph(r->at, r->step, &shorter, NULL) : NULL;
	bool ok = less && slp_padding_follows(r->at, r->function, f, more, less, 1 + c->nresults, c->follows);
	if (ok && c->follows[0].kind != SLP_BEGINS)
		ok = slp_call_fail(
		             r->at, r->function, SL_EINVAL,
		             "the losses do not follow the axis of the buckets: give one for each of its elements") !=
		     NULL;
	sl_graph_free(more);
	sl_graph_free(less);
	free(shorter.signature);
	return ok;
}

/* The tensor that the update changes elsewhere, of each result of the program; *of NULL: it is not elsewhere.  False without
 * memory. */
static bool find_changed(const sl_step *step, const struct slp_compiled *c, sl_tensor ***of)
{
	*of = NULL;
	if (c->whole || !slp_trainer_is_apart(step->trainer)) return true;
	int count, n = 1 + c->nresults;
	sl_param *const *params = slp_trainer_params(NULL, step->trainer, &count);
	*of = slp_calloc((size_t)(count + n), sizeof **of);
	for (int i = 0; *of && i < count; i++)
		if (!slp_param_is_frozen(params[i])) (*of)[n++] = params[i]->data;
	return *of != NULL;
}

/* The plan; each bucket of gradients may be used after the last reader of its parameters. */
static bool make_plan(const struct slp_step_run *r, struct slp_compiled *c, sl_graph *g, const int *bucket)
{
	const struct sl_step_opts *o = &r->step->opts;
	struct sl_compile_opts opts = {.off = o->passes_off, .device = c->signature->device, .memory = o->memory};
	sl_tensor **changed;
	if (!find_changed(r->step, c, &changed)) return sl_graph_free(g), false;
	c->plan = slp_plan_new_grouped(r->at, "step", g, opts, c->whole ? NULL : bucket, changed);
	bool ok = c->plan && (!changed || slp_plan_group(c->plan, bucket, changed));
	free(changed);
	return ok;
}

static struct slp_compiled *compile(const struct slp_step_run *r, int shard, bool whole)
{
	struct slp_compiled *c = slp_calloc(1, sizeof *c);
	if (c) *c = (struct slp_compiled){.nin = r->nin, .ntargets = r->ntargets, .whole = whole};
	if (c && r->padding) c->filled = r->padding[shard].which;
	if (c) c->signature = slp_signature_new(slp_step_inputs(r, shard), slp_step_shard(r, shard));
	int *bucket = slp_calloc((size_t)slp_step_params(r->step) + 1 + SL_MAX_RESULTS, sizeof *bucket);
	SLP_FORWARD_SCOPE();
	slp_forward.sizes_vary = c && c->filled;
	bool ok = c && c->signature && bucket && check_padding(r, shard, c);
	slp_admission_limit = r->step->opts.memory / 2; /* the update's parts are small beside it */
	sl_graph *g = ok ? trace_graph(r->at, r->step, c, bucket) : NULL;
	slp_admission_limit = 0;
	ok = g && make_plan(r, c, g, bucket);
	free(bucket);
	if (ok) return c;
	if (sl_error() == SL_OK) slp_error_set(SL_ENOMEM, "%s: no memory", r->function);
	compiled_free(c);
	return NULL;
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static void forget_oldest(sl_step *step)
{
	struct slp_compiled **p = &step->plans;
	while ((*p)->next) p = &(*p)->next;
	compiled_free(*p);
	*p = NULL;
	step->count--;
}

/* Plans of another network, or of other groups of the trainer, go. */
static void follow_changes(sl_step *step)
{
	unsigned changes = slp_trainer_changes(step->trainer) + step->net->base->changes;
	if (changes != step->changes) drop_plans(step);
	step->changes = changes;
}

static bool matches(const struct slp_compiled *c, const struct slp_step_run *r, int shard, bool whole)
{
	return c->whole == whole && c->nin == r->nin && c->filled == (r->padding ? r->padding[shard].which : 0) &&
	       slp_signature_matches(c->signature, slp_step_inputs(r, shard), slp_step_shard(r, shard));
}

/* The program for these, in front of the list; NULL with an error. */
static const struct slp_compiled *plan_for(const struct slp_step_run *r, int shard, bool whole)
{
	sl_step *step = r->step;
	struct slp_compiled **p = &step->plans;
	while (*p && !matches(*p, r, shard, whole)) p = &(*p)->next;
	struct slp_compiled *c = *p;
	if (c) {
		*p = c->next;
	} else {
		if (!(c = compile(r, shard, whole))) return NULL;
		if (step->count == MAX_PLANS) forget_oldest(step);
		step->count++;
	}
	c->next = step->plans;
	step->plans = c;
	return c;
}

/* Whether input i, or a target behind the inputs, is there; a step gives no gradients of them. */
static bool is_usable(const struct slp_step_run *r, int i, sl_tensor *t)
{
	const char *what = i < r->nin ? "input" : "target";
	int number = i < r->nin ? i : i - r->nin;
	if (!t) {
		if (sl_error() == SL_OK) slp_call_fail(r->at, r->function, SL_EINVAL, "%s %d is NULL", what, number);
		return false;
	}
	if (!slp_tensor_usable(r->at, r->function, t)) return false;
	if (!t->var || !t->var->grad) return true;
	slp_call_fail(r->at, r->function, SL_EUNSUPPORTED,
	              "%s %d has a gradient attached, which a whole step does not compute: use SL_RECORD, sl_backward "
	              "and sl_trainer_step, or give it sl_detach of that tensor",
	              what, number);
	return false;
}

const struct slp_compiled *slp_step_plan(const struct slp_step_run *r, int shard, bool whole)
{
	for (int i = 0; i < r->nin + r->ntargets; i++)
		if (!is_usable(r, i, slp_step_shard(r, shard)[i])) return NULL;
	follow_changes(r->step);
	const struct slp_compiled *c = plan_for(r, shard, whole);
	if (!c || r->nout <= c->nresults) return c;
	return slp_call_fail(r->at, r->function, SL_EINVAL, "the network returns %d result%s, but %d are requested",
	                     c->nresults, c->nresults == 1 ? "" : "s", r->nout);
}

/* Operations, tasks, memory, flops and compile time of the newest plan; zeros before the first run, and for NULL. */
struct sl_plan_info sl_step_info(const sl_step *step)
{
	if (!step) return (struct sl_plan_info){0};
	struct slp_guard *guard = &((sl_step *)(uintptr_t)step)->guard; /* looking changes nothing else */
	SLP_GUARD_PATIENTLY(guard);
	return step->plans ? sl_plan_info(step->plans->plan) : (struct sl_plan_info){0};
}

/* The program of the newest plan; NULL before the first run. */
const sl_graph *sl_step_graph(const sl_step *step)
{
	if (!step) return NULL;
	struct slp_guard *guard = &((sl_step *)(uintptr_t)step)->guard;
	SLP_GUARD_PATIENTLY(guard);
	return step->plans ? sl_plan_graph(step->plans->plan) : NULL;
}
