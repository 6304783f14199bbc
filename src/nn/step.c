/* Whole training steps as one plan: forward, loss, backward and the optimiser's update; or, where a batch is cut into
 * shards, a plan for each shard up to its gradients (step_shards.c). */
#include <stdlib.h>
#include <string.h>

#include "nn/step.h"
#include "nn/trace.h"
#include "runtime/fxt.h"

enum { MAX_PLANS = 64 };

struct slp_compiled {
	struct slp_signature *signature; /* of the batch and its targets */
	bool whole;                      /* with the update; else its results are the gradients, too */
	sl_plan *plan;
	struct slp_compiled *next;
};

/* A training step of a network as one program: sl_step_run computes the network's output, the losses and the
 * gradients, and updates the trainer's parameters, in as few tasks as there are workers to share them.  It is compiled at the first run
 * for a batch's shape.  The gradients themselves are not kept: sl_param_grad does not see them.  loss is the function
 * behind one of the macros: sl_softmax_cross_entropy_at.  The parameters are updated by the gradient of the mean of all
 * losses, whether there is one a row, several (one a token), or one for the batch; of their sum with
 * .reduction = SL_REDUCTION_SUM.  The step keeps the network; the trainer must outlive it, and its learning rate and
 * schedule count at each run.  Parameters in half types are updated behind the program.  With .accumulate = n, each run
 * takes a micro-batch, whose gradients are kept, and each n-th one makes a step of the trainer by their sum, as if their
 * rows had been one batch: checkpoints in between keep it.  An error of that step drops what was kept.  Free it with
 * sl_step_free.  SL_EINVAL: NULL, no such reduction, or a negative .accumulate.
 *
 *     sl_step *step = sl_step_compile(net, sl_softmax_cross_entropy_at, trainer);
 *     while (next(&x, &y)) sl_step_run(step, x, y, NULL); */
sl_step *sl_step_compile_at(const char *at, sl_block *net, sl_loss *loss, sl_trainer *trainer, struct sl_step_opts opts)
{
	SLP_CALL("sl_step_compile", at);
	if (!net || !loss || !trainer) {
		if (sl_error() == SL_OK) slp_call_fail(at, "sl_step_compile", SL_EINVAL, "an argument is NULL");
		return NULL;
	}
	if ((unsigned)opts.reduction > SL_REDUCTION_SUM)
		return slp_call_fail(at, "sl_step_compile", SL_EINVAL, "%d is not a reduction", (int)opts.reduction);
	if (opts.accumulate < 0)
		return slp_call_fail(at, "sl_step_compile", SL_EINVAL, ".accumulate must not be negative");
	sl_step *s = slp_calloc(1, sizeof *s);
	if (!s) return slp_call_fail(at, "sl_step_compile", SL_ENOMEM, "no memory for a step");
	*s = (sl_step){.net = sl_block_retain(net), .loss = loss, .trainer = trainer, .opts = opts};
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

/* Frees a step; runs under way still complete.  NULL is ignored. */
void sl_step_free(sl_step *step)
{
	if (!step) return;
	drop_plans(step);
	sl_block_free(step->net);
	free(step);
}

/* ---- tracing ----------------------------------------------------------------------------------------------------- */

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
		slp_call_fail(at, "sl_step_run", SL_ESTATE, "the loss does not depend on the parameter '%s'",
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
	struct slp_hyper h = slp_trainer_coming(step->trainer, slp_step_divisor(step, rows));
	if (ok) ok = slp_trainer_update(at, step->trainer, symbols, symbols + count, h) == SL_OK;
	free(symbols);
	return ok;
}

/* The gradients among the results, those of frozen parameters left out, and their buckets; how many, or -1 after an
 * error. */
static int trace_gradients(const char *at, const sl_step *step, const struct slp_trace *trace, sl_tensor **heads,
                           int *bucket)
{
	int count, n = 0;
	sl_param *const *params = slp_trainer_params(at, step->trainer, &count);
	slp_trainer_owners(step->trainer); /* shapes may be known only now */
	const int *buckets = slp_trainer_buckets(step->trainer);
	sl_tensor **symbols = slp_malloc((size_t)(2 * count + 1) * sizeof *symbols), **grads = symbols + count;
	if (!symbols) return slp_error_set(SL_ENOMEM, "no memory for a step"), -1;
	bool ok = list_params(at, trace, params, count, symbols, grads);
	for (int i = 0; ok && i < count; i++) {
		if (!grads[i]) continue;
		bucket[n] = buckets[i];
		heads[n++] = grads[i];
	}
	free(symbols);
	return ok ? n : -1;
}

/* heads: the losses, the output, and the gradients if there is no update; so many, or -1 after an error. */
static int trace_step(const char *at, const sl_step *step, const struct slp_signature *s, bool whole,
                      struct slp_trace *trace, sl_tensor **heads, int *bucket)
{
	bucket[0] = bucket[1] = -1;
	sl_tensor *in[2], *weights, *scale = NULL;
	int64_t rows = slp_rows_of(s->in[0].type.shape);
	if (!slp_trace_inputs(at, s, in)) return -1;
	heads[1] = slp_block_forward(at, step->net, &in[0], 1);
	heads[0] = heads[1] ? step->loss(at, heads[1], in[1]) : NULL;
	if (slp_trace_failed(at, step->net, heads[0])) return -1;
	trace->backward = true;
	if (slp_trainer_scales(step->trainer) && !(scale = slp_scaling_symbol(at, step->trainer))) return -1;
	if (!slp_reduction_weigh(at, step->opts.reduction, heads[0], rows, scale, &weights)) return -1;
	if (sl_backward_heads_at(at, &heads[0], 1, (struct sl_backward_opts){.head_grads = &weights}) != SL_OK)
		return -1;
	int grads = whole ? 0 : trace_gradients(at, step, trace, heads + 2, bucket + 2);
	SL_PAUSE
		if (whole && !trace_update(at, step, trace, rows)) return -1;
	return grads < 0 ? -1 : 2 + grads;
}

int slp_step_params(const sl_step *step)
{
	int count;
	slp_trainer_params(NULL, step->trainer, &count);
	return count;
}

static sl_graph *trace_graph(const char *at, const sl_step *step, const struct slp_signature *s, bool whole,
                             int *bucket)
{
	sl_tensor **heads = slp_calloc((size_t)slp_step_params(step) + 2, sizeof *heads);
	if (!heads) return slp_call_fail(at, "sl_step_run", SL_ENOMEM, "no memory for a step");
	struct slp_trace trace;
	sl_graph *g = NULL;
	sl_mode mode;
	sl_mode_enter(&mode, 1, 1);
	slp_trace_begin(&trace, s->device);
	slp_batch_is_whole = whole;
	SL_SCOPE {
		int n = trace_step(at, step, s, whole, &trace, heads, bucket);
		if (n > 0) g = slp_graph_from(heads, n, &trace);
	}
	slp_batch_is_whole = false;
	slp_trace_end(&trace);
	sl_mode_leave(&mode);
	free(heads);
	return g;
}

static struct slp_compiled *compile(const char *at, sl_step *step, sl_tensor *const in[2], bool whole)
{
	struct slp_compiled *c = slp_calloc(1, sizeof *c);
	if (c) c->signature = slp_signature_new(2, in);
	if (c) c->whole = whole;
	int *bucket = slp_calloc((size_t)slp_step_params(step) + 2, sizeof *bucket);
	sl_graph *g = c && c->signature && bucket ? trace_graph(at, step, c->signature, whole, bucket) : NULL;
	struct sl_compile_opts opts = {.off = step->opts.passes_off};
	if (g) {
		opts.device = c->signature->device;
		c->plan = slp_plan_new_grouped(at, "step", g, opts, whole ? NULL : bucket);
	}
	free(bucket);
	if (c && c->plan) return c;
	if (sl_error() == SL_OK) slp_error_set(SL_ENOMEM, "sl_step_run: no memory");
	compiled_free(c);
	return NULL;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

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

/* The plan for these, in front of the list; NULL with an error. */
static sl_plan *plan_for(const char *at, sl_step *step, sl_tensor *const in[2], bool whole)
{
	struct slp_compiled **p = &step->plans;
	while (*p && ((*p)->whole != whole || !slp_signature_matches((*p)->signature, 2, in))) p = &(*p)->next;
	struct slp_compiled *c = *p;
	if (c) {
		*p = c->next;
	} else {
		if (!(c = compile(at, step, in, whole))) return NULL;
		if (step->count == MAX_PLANS) forget_oldest(step);
		step->count++;
	}
	c->next = step->plans;
	step->plans = c;
	return c->plan;
}

static uint64_t bits(double x)
{
	uint64_t u;
	memcpy(&u, &x, sizeof u);
	return u;
}

sl_plan *slp_step_plan(const char *at, const char *function, sl_step *step, sl_tensor *const in[2], bool whole)
{
	if (!step) return sl_error() == SL_OK ? slp_call_fail(at, function, SL_EINVAL, "the step is NULL") : NULL;
	for (int i = 0; i < 2; i++)
		if (!slp_tensor_usable(at, function, in[i])) return NULL;
	follow_changes(step);
	return plan_for(at, step, in, whole);
}

/* Whether a run is one program with the update; masters are updated behind programs, and so are sums of micro-batches, and
 * what loss scaling may leave out. */
static bool is_whole(const sl_step *step)
{
	return step->opts.accumulate <= 1 && !slp_trainer_rounds(step->trainer) && !slp_trainer_scales(step->trainer);
}

/* Compiles the step for batches like x with their targets, without making one: then the first sl_step_run takes no
 * longer than others, and sl_step_info and sl_step_graph describe the compiled program.  Errors are those of
 * sl_step_run.
 *
 *     if (sl_step_prepare(step, x, y) == SL_OK) printf("%.1f ms\n", 1e3 * sl_step_info(step).seconds); */
enum sl_status sl_step_prepare_at(const char *at, sl_step *step, sl_tensor *x, sl_tensor *target)
{
	SLP_CALL("sl_step_prepare", at);
	sl_tensor *in[2] = {x, target};
	bool whole = slp_step_is_alone(step) && (!step || is_whole(step));
	if (step && !slp_step_is_alone(step) && slp_block_synchronised(step->net))
		return SL_OK; /* there is no program */
	return slp_step_plan(at, "sl_step_prepare", step, in, whole) ? SL_OK : sl_error();
}

/* Makes one step on a batch x with its targets, and returns at once.  Returns the losses, as the loss function
 * returned them, and the output of the network in *output, if output is not NULL: new tensors.  NULL after a mistake,
 * and nothing was updated: SL_ESTATE, forward cannot be traced, or the loss does not depend on a parameter; else those
 * of the operations. Where several processes train together (dist.h), the batch is this one's part, as many rows in
 * all of them, and the gradients are summed over them: see sl_trainer_step. */
sl_tensor *sl_step_run_at(const char *at, sl_step *step, sl_tensor *x, sl_tensor *target, sl_tensor **output)
{
	SLP_CALL("sl_step_run", at);
	sl_tensor *in[2] = {x, target}, *out[2];
	if (output) *output = NULL;
	if (step && slp_trainer_is_averaged(at, "sl_step_run", step->trainer)) return NULL;
	if (step && (!is_whole(step) || !slp_step_is_alone(step)))
		return sl_step_run_shards_at(at, step, 1, &x, &target, out, output) == SL_OK ? out[0] : NULL;
	sl_plan *plan = slp_step_plan(at, "sl_step_run", step, in, true);
	if (!plan) return NULL;
	struct slp_hyper h = slp_trainer_advance(step->trainer, slp_step_divisor(step, slp_rows_of(x->type.shape)));
	struct slp_setting settings[] = {{"lr", bits(h.lr)}, {"rescale", bits(h.rescale)}, {"step", (uint64_t)h.step}};
	if (slp_plan_run(at, plan, in, 2, settings, 3, NULL, out) != SL_OK) return NULL;
	slp_fxt_step_done();
	if (output) *output = out[1];
	return out[0];
}

/* The result of compiling the newest plan; zeros before the first run. */
struct sl_plan_info sl_step_info(const sl_step *step)
{
	return step && step->plans ? sl_plan_info(step->plans->plan) : (struct sl_plan_info){0};
}

/* The program of the newest plan; NULL before the first run. */
const sl_graph *sl_step_graph(const sl_step *step)
{
	return step && step->plans ? sl_plan_graph(step->plans->plan) : NULL;
}
