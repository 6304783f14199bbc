/* Blocks: their life, their names, running them. */
#include <stdlib.h>
#include <string.h>

#include "ascii.h"
#include "nn/nn.h"
#include "op.h"
#include "runtime/forked.h"
#include "runtime/gate.h"
#include "runtime/observe/fxt.h"
#include "starling/nn.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/primitives.h"

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* The number of blocks that each word has named so far in the process. */
static struct word {
	struct word *next;
	unsigned count;
	char text[];
} * words;
static pthread_mutex_t words_lock = PTHREAD_MUTEX_INITIALIZER;
SLP_FORK_MUTEX(words_lock);

static char *lower(const char *text)
{
	char *s = slp_strdup(text);
	for (char *p = s; p && *p; p++) *p = slp_to_lower(*p);
	return s;
}

static struct word *word_find(const char *text)
{
	for (struct word *w = words; w; w = w->next)
		if (!strcmp(w->text, text)) return w;
	struct word *w = slp_calloc(1, sizeof *w + strlen(text) + 1);
	if (!w) return NULL;
	strcpy(w->text, text);
	w->next = words;
	return words = w;
}

/* "dense0", "dense1", …; malloc'd. */
static char *new_name(const char *word)
{
	char *text = lower(word), *name = NULL;
	pthread_mutex_lock(&words_lock);
	struct word *w = text ? word_find(text) : NULL;
	if (w) name = slp_format("%s%u", w->text, w->count++);
	pthread_mutex_unlock(&words_lock);
	free(text);
	return name;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

enum sl_status slp_block_setup(const char *at, sl_block *block, const char *type, const char *word,
                               sl_tensor *(*forward)(sl_block *, sl_tensor *const *, int), void (*destroy)(sl_block *))
{
	struct slp_block *b = slp_calloc(1, sizeof *b);
	block->forward = forward;
	block->destroy = destroy;
	block->forward_shards = NULL;
	block->base = NULL;
	if (b) {
		atomic_init(&b->refs, 1);
		b->type = slp_strdup(type);
		b->name = new_name(word);
		b->prefix = b->name ? slp_format("%s_", b->name) : NULL;
	}
	if (b && b->type && b->prefix) {
		block->base = b;
		return SL_OK;
	}
	if (b) {
		free(b->type);
		free(b->name);
		free(b->prefix);
	}
	free(b);
	slp_call_fail(at, "sl_block_init", SL_ENOMEM, "no memory for a block");
	return SL_ENOMEM;
}

/* Makes a block of the structure that begins with `block`; the caller has one reference to it (sl_block_free).  type is
 * the name of its kind ("Net"); in lower case and with a number it names the block ("net0").  forward computes the
 * result; destroy frees the structure, NULL stands for free().  SL_EINVAL: block or forward is NULL; SL_ENOMEM.
 *
 *     struct scale { sl_block base; double by; };
 *
 *     static sl_tensor *scale_forward(sl_block *self, sl_tensor *const *in, int nin)
 *     {
 *             return sl_mul_scalar(in[0], ((struct scale *)self)->by);
 *     }
 *
 *     struct scale *s = calloc(1, sizeof *s);
 *     s->by = 3;
 *     sl_block_init(&s->base, "Scale", scale_forward, NULL);
 *     sl_block *net = sl_sequential(sl_dense(8), &s->base); */
enum sl_status sl_block_init_at(const char *at, sl_block *block, const char *type,
                                sl_tensor *(*forward)(sl_block *, sl_tensor *const *, int), void (*destroy)(sl_block *))
{
	SLP_CALL("sl_block_init", at);
	if (!block || !forward) {
		slp_call_fail(at, "sl_block_init", SL_EINVAL, "%s is NULL", block ? "forward" : "the block");
		return SL_EINVAL;
	}
	if (!type || !*type) type = "Block";
	return slp_block_setup(at, block, type, type, forward, destroy);
}

void *slp_layer_new(const char *at, size_t size, const char *type, const char *word,
                    sl_tensor *(*forward)(sl_block *, sl_tensor *const *, int))
{
	sl_block *layer = slp_calloc(1, size);
	if (!layer) return slp_call_fail(at, type, SL_ENOMEM, "no memory for the layer");
	if (slp_block_setup(at, layer, type, word, forward, NULL) == SL_OK) {
		layer->base->layer = true;
		return layer;
	}
	free(layer);
	return NULL;
}

/* Adds a reference, for a block that has several parents, or outlives its parent.  Returns the block; NULL for NULL. */
sl_block *sl_block_retain(sl_block *block)
{
	if (block && block->base) atomic_fetch_add(&block->base->refs, 1);
	return block;
}

static void base_free(sl_block *block)
{
	struct slp_block *b = block->base;
	struct slp_hybrid *hybrid = b->hybrid;
	if (hybrid) hybrid->f->free(hybrid);
	for (int i = 0; i < b->nchildren; i++) {
		slp_block_leave(block, b->children[i]);
		sl_block_free(b->children[i]);
		free(b->child_names[i]);
	}
	for (int i = 0; i < b->nparams; i++) slp_param_free(b->params[i]);
	free(b->children);
	free(b->child_names);
	free(b->params);
	free(b->parents);
	free(b->type);
	free(b->name);
	free(b->prefix);
	free(b->hook);
	free(b);
}

/* Releases a reference; the last one frees the block and releases its children, parameters and plans. A parent has a
 * reference to each of its children: do not free blocks that were added.  NULL is ignored. */
void sl_block_free(sl_block *block)
{
	if (!block || (block->base && atomic_fetch_sub(&block->base->refs, 1) != 1)) return;
	if (block->base) base_free(block);
	block->base = NULL;
	if (block->destroy) block->destroy(block);
	else free(block);
}

/* The name of a block, such as "dense0": its type and a number, counted over the process, or the prefix of
 * sl_block_set_prefix.  "" for NULL.  It lives as long as the block. */
const char *sl_block_name(const sl_block *block)
{
	return block && block->base ? block->base->name : "";
}

/* Sets the prefix of names, instead of the type and a number: with "encoder_" the block is "encoder" and its parameters
 * are "encoder_weight" and so on; blocks inside keep their names.  Call it before the block is used: traced programs
 * keep the old names, and texts that sl_block_name and sl_param_name returned before are freed.  SL_EINVAL: an argument
 * is NULL, or the prefix has dots. */
enum sl_status sl_block_set_prefix_at(const char *at, sl_block *block, const char *prefix)
{
	SLP_CALL("sl_block_set_prefix", at);
	if (!block || !block->base || !prefix || strchr(prefix, '.')) {
		slp_call_fail(at, "sl_block_set_prefix", SL_EINVAL,
		              "the block or the prefix is NULL, or the prefix has dots");
		return SL_EINVAL;
	}
	SLP_TREE();
	size_t length = strlen(prefix);
	char *copy = slp_strdup(prefix);
	char *name = slp_format("%.*s", (int)(length && prefix[length - 1] == '_' ? length - 1 : length), prefix);
	if (!copy || !name || !slp_params_prefix(block->base->params, block->base->nparams, prefix)) {
		free(copy);
		free(name);
		slp_call_fail(at, "sl_block_set_prefix", SL_ENOMEM, "no memory for a name");
		return SL_ENOMEM;
	}
	slp_later(free, atomic_exchange(&block->base->prefix, copy));
	slp_later(free, atomic_exchange(&block->base->name, name));
	return SL_OK;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

_Thread_local struct slp_forward slp_forward;
static _Thread_local const char *call_site;

const char *slp_forward_call_site(void)
{
	return call_site;
}

const char *slp_forward_call_site_set(const char *at)
{
	const char *outer = call_site;
	call_site = at;
	return outer;
}

static bool ready(const char *at, const sl_block *block, sl_tensor *const *in, int nin)
{
	bool quiet = sl_error() != SL_OK; /* a NULL is the result of an earlier mistake */
	if (!block || !block->base || nin < 1) {
		if (block || !quiet)
			slp_call_fail(at, "sl_forward", SL_EINVAL, "%s",
			              !block        ? "the block is NULL"
			              : block->base ? "no input is given"
			                            : "the block was not made with sl_block_init");
		return false;
	}
	if (!slp_given(at, "sl_forward", "array of inputs", in)) return false;
	for (int i = 0; i < nin; i++) {
		if (in[i]) continue;
		if (!quiet) slp_call_fail(at, "sl_forward", SL_EINVAL, "input %d of %s is NULL", i, block->base->name);
		return false;
	}
	return true;
}

/* The results of the running forward, from the second on: held. */
static _Thread_local struct slp_results *further;

/* Adds a result of a block; only its forward may call it.  The result follows the one that forward returns and those of
 * earlier calls; sl_forward_all returns them all.  SL_EINVAL: no forward runs; SL_EUNSUPPORTED: more than
 * SL_MAX_RESULTS.
 *
 *     if (sl_also(state) != SL_OK) return NULL; */
enum sl_status sl_also_at(const char *at, sl_tensor *result)
{
	SLP_CALL("sl_also", at);
	if (!further) slp_call_fail(at, "sl_also", SL_EINVAL, "no block's forward runs");
	else if (further->count == SL_MAX_RESULTS)
		slp_call_fail(at, "sl_also", SL_EUNSUPPORTED, "a block returns at most %d results", SL_MAX_RESULTS);
	else if (slp_given(at, "sl_also", "result", result)) further->t[further->count++] = sl_retain(result);
	else return sl_error();
	return sl_error();
}

static void call_hook(sl_block *block, sl_tensor *const *in, int nin, const struct slp_results *results)
{
	const struct slp_block *b = block->base;
	const struct slp_hook *hook = b->hook;
	if (hook && results->t[0]) hook->call(block, in, nin, results->t, results->count, hook->context);
}

/* Registers a function that is called after each forward pass of a block, with its inputs and results. The function may
 * compute (under SL_PAUSE, or gradients flow through its results) and wait, but must not change the block.  NULL
 * removes it; a new function replaces the old one.  In a hybridised block or a whole step it is called with symbols
 * (sl_is_symbol) while the program is traced; for the hybridised block itself also with the values of each call.
 * context belongs to the caller.  SL_EINVAL: the block is NULL.
 *
 *     static void show(sl_block *block, sl_tensor *const *in, int nin, sl_tensor *const *out, int nout, void *context)
 *     {
 *         if (!sl_is_symbol(out[0]))
 *             SL_PAUSE printf("%s %g\n", sl_block_name(block), sl_item(sl_mean(sl_abs(out[0]))));
 *     }
 *     sl_block_hook(net->hidden, show, NULL); */
enum sl_status sl_block_hook_at(const char *at, sl_block *block, sl_hook *hook, void *context)
{
	SLP_CALL("sl_block_hook", at);
	if (!slp_given(at, "sl_block_hook", "block", block)) return sl_error();
	struct slp_hook *new = hook ? slp_malloc(sizeof *new) : NULL;
	if (hook && !new) return sl_error();
	if (new) *new = (struct slp_hook){hook, context};
	slp_later(free, atomic_exchange(&block->base->hook, new));
	slp_block_changed(block);
	return SL_OK;
}

/* Results belong to the outer scope; forward's other tensors are released here. */
bool slp_block_run(const char *at, sl_block *block, sl_tensor *const *in, int nin, struct slp_results *results)
{
	const char *outer_call_site = call_site,
	           *outer_scope = slp_trace_scope(block->base->layer ? block->base->name : block->base->prefix);
	const char *outer_block = slp_fxt_enter(block->base->name);
	struct slp_results *outer = further;
	bool looked = slp_summary_enter(block);
	sl_scope scope = {NULL, 0, 0};
	sl_scope_open(&scope);
	call_site = at;
	results->count = 1;
	further = results;
	slp_cache_enter(block);
	results->t[0] = sl_retain(block->forward(block, in, nin));
	further = outer;
	call_site = outer_call_site;
	sl_scope_close(&scope);
	if (looked) slp_summary_leave(results->t[0]);
	slp_trace_scope(outer_scope);
	slp_fxt_leave(outer_block);
	if (!results->t[0] && sl_error() == SL_OK)
		slp_call_fail(at, "sl_forward", SL_EINVAL, "forward of %s returned NULL", block->base->name);
	for (int i = 0; i < results->count; i++) results->t[i] = slp_scope_add(results->t[i]);
	return results->t[0] != NULL;
}

bool slp_block_results(const char *at, sl_block *block, sl_tensor *const *in, int nin, struct slp_results *results)
{
	bool recomputed = block->base->recompute && sl_is_recording();
	bool ok = (recomputed ? slp_block_recomputed : slp_block_run)(at, block, in, nin, results);
	if (ok) call_hook(block, in, nin, results);
	return ok;
}

static bool all_concrete(sl_tensor *const *in, int nin)
{
	for (int i = 0; i < nin; i++)
		if (sl_is_symbol(in[i])) return false;
	return true;
}

/* Releases the results from `wanted` on, unless a scope does that. */
static void leave(struct slp_results *results, int wanted)
{
	for (int i = wanted; i < results->count && !slp_scope_is_open(); i++) sl_release(results->t[i]);
}

bool (*slp_before_recording)(const char *at, sl_block *block);

static bool run(const char *at, sl_block *block, sl_tensor *const *in, int nin, struct slp_results *results)
{
	if (!ready(at, block, in, nin) || (slp_before_recording && !slp_before_recording(at, block))) return false;
	const struct slp_hybrid *hybrid = block->base->hybrid;
	if (hybrid && !slp_trace_current() && !slp_summary_looks() && all_concrete(in, nin)) {
		bool eager = false, ok = hybrid->f->call(at, block, in, nin, results, &eager);
		if (!eager && ok) call_hook(block, in, nin, results);
		if (!eager) return ok;
	}
	return slp_block_results(at, block, in, nin, results);
}

/* Runs a block on these inputs: calls its forward, or, if it is hybridised, runs the plan made from that. Inputs may be
 * values or symbols. The result is owned like that of an operation; other tensors that forward makes are released at
 * its end, unless it retains them.  NULL after an error: SL_EINVAL, the block or an input is NULL, or forward returned
 * NULL; otherwise the error that forward reported.  A block may run in several threads at the same time if its forward
 * can.  If several processes train the block (dist.h, sl_trainer_new), its first recorded forward pass gives all of
 * them the parameters of rank 0: all must make this pass, which compares their networks and trainers (SL_ESTATE).
 *
 *     SL_RECORD loss = sl_softmax_cross_entropy(sl_forward(net, x), y); */
sl_tensor *sl_forward_at(const char *at, sl_block *block, sl_tensor *const *in, int nin)
{
	SLP_CALL("sl_forward", at);
	struct slp_results results;
	if (!run(at, block, in, nin, &results)) return NULL;
	leave(&results, 1);
	return results.t[0];
}

/* As sl_forward, for blocks with several results (sl_also): out gets the first nout of them.  Gradients flow from all
 * results.  Also SL_EINVAL: the block has fewer.  After an error all are NULL.
 *
 *     sl_tensor *in[] = {x, state}, *out[2];
 *     sl_forward_all(net, in, 2, out, 2); */
enum sl_status sl_forward_all_at(const char *at, sl_block *block, sl_tensor *const *in, int nin, sl_tensor **out,
                                 int nout)
{
	SLP_CALL("sl_forward_all", at);
	struct slp_results results;
	if (!out || nout < 1) {
		slp_call_fail(at, "sl_forward_all", SL_EINVAL, "the pointer for a result is NULL");
		return SL_EINVAL;
	}
	enum sl_status s = run(at, block, in, nin, &results) ? SL_OK : sl_error();
	if (s == SL_OK && nout > results.count) {
		slp_call_fail(at, "sl_forward_all", SL_EINVAL, "%s returns %d results, but %d are requested",
		              block->base->name, results.count, nout);
		leave(&results, 0);
		s = SL_EINVAL;
	}
	for (int i = 0; i < nout; i++) out[i] = s == SL_OK ? results.t[i] : NULL; /* out may be in */
	if (s == SL_OK) leave(&results, nout);
	return s;
}

/* As sl_forward_all, for blocks whose number of results is not known: out gets up to `most` results, and NULL after
 * them.  Returns the number of the block's results; 0 after an error.
 *
 *     sl_tensor *out[SL_MAX_RESULTS];
 *     int nout = sl_forward_most(net, in, 2, out, SL_MAX_RESULTS); */
int sl_forward_most_at(const char *at, sl_block *block, sl_tensor *const *in, int nin, sl_tensor **out, int most)
{
	SLP_CALL("sl_forward_most", at);
	struct slp_results results;
	if (!out || most < 1) {
		slp_call_fail(at, "sl_forward_most", SL_EINVAL, "the pointer for a result is NULL");
		return 0;
	}
	int count = run(at, block, in, nin, &results) ? results.count : 0;
	for (int i = 0; i < most; i++) out[i] = i < count ? results.t[i] : NULL; /* out may be in */
	if (count > most) leave(&results, most);
	return count;
}

/* ---- parts of layers --------------------------------------------------------------------------------------------- */

sl_tensor *slp_layer_input(sl_block *layer, sl_tensor *const *in, int nin)
{
	if (nin == 1) return in[0];
	return slp_call_fail(call_site, "sl_forward", SL_EINVAL, "%s takes one input, got %d", layer->base->name, nin);
}

sl_tensor *slp_layer_activate(sl_tensor *y, enum sl_activation activation)
{
	return activation == SL_IDENTITY || !y ? y : sl_activate_at(call_site, y, activation);
}
