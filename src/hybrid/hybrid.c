/* Hybrid blocks: traced once for each signature, then run as plans that never enter the block's forward. */
#include <stdlib.h>
#include <string.h>

#include "hybrid/padding.h"
#include "hybrid/trace.h"
#include "runtime/fault.h"
#include "runtime/gate.h"
#include "runtime/memory/memory_limit.h"
#include "runtime/random.h"
#include "runtime/task/buffer.h"
#include "starling/nn.h"

enum { MAX_ENTRIES = 16, MAX_BUCKETED = 64 }; /* plans a block keeps; the one not used for longest goes */

/* The plans for one signature.  Recorded calls refer to it. */
struct entry {
	atomic_int refs;
	uint64_t used;
	struct slp_signature *signature;
	unsigned filled; /* the inputs that follow a bucket's size; 0: none */
	struct slp_follows follows[SL_MAX_RESULTS];
	struct slp_traced traced; /* its graphs have become the plans' */
	sl_plan *forward, *backward;
	sl_graph *source; /* the program of forward before the passes, for second derivatives; NULL: not recorded */
	size_t bytes, scratch; /* of the values that forward leaves for backward; 0: they keep their memory */
	struct entry *next;
};

struct hybrid {
	struct slp_hybrid base;
	struct slp_guard guard; /* of the list; plans run without it */
	atomic_bool stale;      /* the block was changed by another thread while one was here */
	struct sl_hybridize_opts opts;
	struct entry *entries;
	int count;
	uint64_t calls;
	atomic_bool eager; /* could not be traced, and falls back */
};

static struct hybrid *hybrid_of(const sl_block *block)
{
	return (struct hybrid *)block->base->hybrid;
}

/* ---- entries ----------------------------------------------------------------------------------------------------- */

static void entry_release(struct entry *e)
{
	if (!e || atomic_fetch_sub(&e->refs, 1) != 1) return;
	slp_traced_clear(&e->traced);
	sl_plan_free(e->forward);
	sl_plan_free(e->backward);
	sl_graph_free(e->source);
	free(e->signature);
	free(e);
}

static sl_plan *make_plan(const char *at, const char *what, sl_graph **graph, const struct hybrid *h, sl_device device)
{
	sl_graph *g = *graph;
	*graph = NULL;
	struct sl_compile_opts opts = {.off = h->opts.passes_off, .device = device, .memory = h->opts.memory};
	sl_plan *plan = slp_plan_new(at, what, g, opts);
	if (plan && h->opts.static_alloc && !h->opts.memory) slp_plan_keep_memory(plan);
	return plan;
}

static void count_bytes(struct entry *e)
{
	struct slp_plan_bytes forward = slp_plan_bytes(e->forward), backward = slp_plan_bytes(e->backward);
	e->bytes = forward.results + backward.run;
	e->scratch = forward.scratch > backward.scratch ? forward.scratch : backward.scratch;
}

/* Whether the block gives results that can be cut back, and how.  Its forward is traced for shorter inputs, too. */
static bool check_padding(const char *at, sl_block *block, const struct slp_padding *f, struct entry *e)
{
	struct slp_signature *shorter = slp_signature_shorter(e->signature, f->which, f->axis);
	struct slp_traced less;
	bool ok = shorter && slp_trace_block(at, block, shorter, &less);
	free(shorter);
	if (!ok) return false;
	int nout = e->traced.nresults;
	ok = slp_padding_follows(at, sl_block_name(block), f, e->traced.forward, less.forward, nout, e->follows);
	slp_traced_clear(&less);
	return ok;
}

static struct entry *entry_new(const char *at, sl_block *block, struct hybrid *h, const struct slp_padding *f,
                               sl_tensor *const *in, int nin)
{
	struct entry *e = slp_calloc(1, sizeof *e);
	if (e) e->signature = slp_signature_new(nin, in);
	if (!e || !e->signature) {
		free(e);
		return slp_call_fail(at, "sl_forward", SL_ENOMEM, "no memory for a plan");
	}
	atomic_init(&e->refs, 1);
	e->filled = f->which;
	SLP_FORWARD_SCOPE();
	slp_forward.sizes_vary = f->which != 0;
	bool ok = slp_trace_block(at, block, e->signature, &e->traced);
	if (ok && f->which) ok = check_padding(at, block, f, e);
	bool both = ok && e->traced.backward;
	if (both && h->opts.memory)
		ok = slp_call_fail(
		             at, sl_block_name(block), SL_EUNSUPPORTED,
		             "was hybridised with .memory, which is for programs without a backward pass: train it by "
		             "sl_step_compile(.memory = n)") != NULL;
	if (ok && both) ok = (e->source = slp_graph_copy(e->traced.forward)) != NULL;
	if (ok)
		ok = (e->forward = make_plan(at, "forward program", &e->traced.forward, h, e->signature->device)) !=
		     NULL;
	if (ok && both)
		ok = (e->backward = make_plan(at, "backward program", &e->traced.backward, h, e->signature->device)) !=
		     NULL;
	if (ok && both && !h->opts.static_alloc) count_bytes(e);
	if (ok) return e;
	entry_release(e);
	return NULL;
}

/* Makes room for one more: the entry that was not used for longest goes. */
static void forget_oldest(struct hybrid *h)
{
	struct entry **oldest = &h->entries;
	for (struct entry **p = &h->entries; *p; p = &(*p)->next)
		if ((*p)->used < (*oldest)->used) oldest = p;
	struct entry *e = *oldest;
	*oldest = e->next;
	h->count--;
	entry_release(e);
}

static void insert(struct hybrid *h, struct entry *e)
{
	if (h->count >= (h->opts.buckets.sizes[0] ? MAX_BUCKETED : MAX_ENTRIES)) forget_oldest(h);
	e->next = h->entries;
	h->entries = e;
	h->count++;
}

static struct entry *known(struct hybrid *h, unsigned filled, sl_tensor *const *in, int nin)
{
	for (struct entry *e = h->entries; e; e = e->next)
		if (e->filled == filled && slp_signature_matches(e->signature, nin, in)) return e;
	return NULL;
}

static bool same_types(const struct slp_signature *s, sl_tensor *const *in, int nin)
{
	bool same = s->nin == nin;
	for (int i = 0; same && i < nin; i++) same = sl_shape_equal(s->in[i].type.shape, in[i]->type.shape);
	return same;
}

/* With .static_shape, the first call's shapes are the only ones. */
static bool shape_allowed(const char *at, const sl_block *block, const struct hybrid *h, sl_tensor *const *in, int nin)
{
	if (!h->opts.static_shape || !h->entries || same_types(h->entries->signature, in, nin)) return true;
	char now[160], then[160];
	slp_call_fail(at, sl_block_name(block), SL_ESHAPE, "was hybridised with .static_shape for %s, but got %s",
	              slp_type_string(&h->entries->signature->in[0].type, then), slp_type_string(&in[0]->type, now));
	return false;
}

static void drop_all(struct hybrid *h)
{
	while (h->entries) forget_oldest(h);
}

/* The entry for these inputs, held; NULL with an error. */
static struct entry *entry_for(const char *at, sl_block *block, struct hybrid *h, const struct slp_padding *f,
                               sl_tensor *const *in, int nin)
{
	SLP_GUARD_PATIENTLY(&h->guard);
	if (atomic_exchange(&h->stale, false)) drop_all(h);
	struct entry *e = known(h, f->which, in, nin);
	if (!e && slp_inputs_together(at, sl_block_name(block), nin, in) && shape_allowed(at, block, h, in, nin)) {
		e = entry_new(at, block, h, f, in, nin);
		if (e) insert(h, e);
	}
	if (e) {
		e->used = ++h->calls;
		atomic_fetch_add(&e->refs, 1);
	}
	return e;
}

/* ---- the recorded call: an operation whose gradient is the backward plan ----------------------------------------- */

struct recorded {
	struct entry *entry;
	struct slp_rng rng;
};

/* The gradient that comes by a result: zeros where none does. */
static sl_tensor *head_grad(const struct slp_grad *g, int i)
{
	if (g->dout[i]) return g->dout[i];
	return sl_zeros_at(g->at, g->out[i]->type.shape, (struct sl_make){g->out[i]->type.dtype, g->out[i]->device});
}

/* Its inputs: the block's, the leaves, the residuals. */
static sl_tensor *origin_of(const struct slp_grad *g, const struct entry *e, struct slp_origin o)
{
	if (o.kind == SLP_FROM_DOUT) return head_grad(g, o.index);
	return g->in[o.kind == SLP_FROM_INPUT ? o.index : e->signature->nin + e->traced.nleaves + o.index];
}

/* Returns results: requested inputs first, then leaves. */
static void hand_out(const struct slp_grad *g, const struct entry *e, sl_tensor **out)
{
	int n = 0;
	for (int i = 0; i < e->signature->nin; i++)
		if (e->signature->in[i].wanted) g->din[i] = out[n++];
	for (int i = 0; i < e->traced.nleaves; i++) g->din[e->signature->nin + i] = out[n++];
}

static enum sl_status hybrid_grad(struct slp_grad *g)
{
	const struct recorded *r = g->attrs;
	const struct entry *e = r->entry;
	int nin = sl_graph_inputs(sl_plan_graph(e->backward), NULL, 0);
	int nout = sl_graph_outputs(sl_plan_graph(e->backward), NULL, 0);
	sl_tensor **in = slp_malloc((size_t)(nin + nout + 1) * sizeof *in);
	if (!in) return slp_error_set(SL_ENOMEM, "sl_backward: no memory");
	sl_tensor **out = in + nin;
	bool ok = true;
	for (int i = 0; i < nin; i++) ok &= (in[i] = origin_of(g, e, e->traced.origins[i])) != NULL;
	struct slp_rng rng = r->rng;
	enum sl_status s = ok ? slp_plan_run(g->at, e->backward, in, nin, NULL, 0, &rng, out) : sl_error();
	if (s == SL_OK) hand_out(g, e, out);
	free(in);
	return s;
}

/* For second derivatives, call by call. */
static bool hybrid_again(const struct slp_grad *g, sl_tensor **out)
{
	const struct recorded *r = g->attrs;
	const struct entry *e = r->entry;
	return slp_graph_repeat(e->source, g->in, r->rng, e->traced.nresults, out) == SL_OK;
}

static void hybrid_hold(const void *attrs, bool hold)
{
	const struct recorded *r = attrs;
	if (hold) atomic_fetch_add(&r->entry->refs, 1);
	else entry_release(r->entry);
}

_Static_assert((int)SL_MAX_RESULTS <= (int)SLP_TAPE_OUTPUTS, "the tape records a block's results");

/* Known to the tape only: it never becomes a separate task. */
static const struct sl_op hybrid_op = {
        .name = "hybrid block",
        .doc = "a block that ran as a plan",
        .args = "x ...",
        .nin_min = 1,
        .nin_max = SLP_MANY,
        .period = 1,
        .nout = SL_MAX_RESULTS, /* at most */
        .attrs_size = sizeof(struct recorded),
        .saves = SLP_IN(0),
        .grad = hybrid_grad,
        .again = hybrid_again,
        .hold = hybrid_hold,
};

static enum sl_status record(const char *at, struct entry *e, sl_tensor *const *in, sl_tensor **out, struct slp_rng rng)
{
	int nin = e->signature->nin, nleaves = e->traced.nleaves, n = nin + nleaves + e->traced.nresiduals;
	sl_tensor **all = slp_malloc((size_t)n * sizeof *all);
	if (!all) return slp_error_set(SL_ENOMEM, "sl_forward: no memory");
	memcpy(all, in, (size_t)nin * sizeof *all);
	if (nleaves) memcpy(all + nin, e->traced.leaves, (size_t)nleaves * sizeof *all);
	memcpy(all + nin + nleaves, out + e->traced.nresults, (size_t)e->traced.nresiduals * sizeof *all);
	struct recorded attrs = {e, rng};
	bool ok = slp_mode.recorder->call(at, &hybrid_op, &attrs, n, all, e->traced.nresults, out);
	free(all);
	return ok ? SL_OK : sl_error();
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* Whether backward will find room, too: else forward's work would be for nothing. */
static bool has_room(const char *at, const struct entry *e)
{
	char text[160];
	const char *why = slp_mode.recorder ? slp_memory_missing_text(e->bytes, e->scratch, text) : NULL;
	if (why) slp_call_fail(at, "sl_forward", SL_ENOMEM, "with its backward pass: %s", why);
	return !why;
}

static bool run_entry(const char *at, struct entry *e, sl_tensor *const *in, int nin, struct slp_results *results)
{
	enum { FEW = 16 };
	int nout = e->traced.nresults + e->traced.nresiduals;
	if (!has_room(at, e)) return false;
	sl_tensor *few[FEW], **out = nout <= FEW ? few : slp_malloc((size_t)nout * sizeof *out);
	if (!out) return slp_call_fail(at, "sl_forward", SL_ENOMEM, "no memory for the results") != NULL;
	int nrandom = sl_plan_graph(e->forward)->nrandom;
	struct slp_rng rng = nrandom ? slp_rng_take_apart(nrandom) : (struct slp_rng){SLP_RNG_VIRTUAL, 0};
	enum sl_status s = slp_plan_run(at, e->forward, in, nin, NULL, 0, &rng, out);
	if (s == SL_OK && e->backward && slp_mode.recorder) s = record(at, e, in, out, rng);
	results->count = e->traced.nresults;
	if (s == SL_OK) memcpy(results->t, out, (size_t)results->count * sizeof *out);
	/* The tape, and the scope if there is one, own the values that only the backward pass needs. */
	for (int i = s == SL_OK ? results->count : 0; i < nout && !slp_scope_is_open(); i++) sl_release(out[i]);
	if (out != few) free(out);
	return s == SL_OK;
}

static bool inputs_usable(const char *at, const sl_block *block, sl_tensor *const *in, int nin)
{
	for (int i = 0; i < nin; i++)
		if (!slp_tensor_usable(at, sl_block_name(block), in[i])) return false;
	return nin > 0;
}

/* The block runs imperatively from now on, and says so once. */
static bool fall_back(const sl_block *block, struct hybrid *h)
{
	if (!h->opts.fallback || sl_error() == SL_ENOMEM) return false;
	fprintf(stderr, "starling: %s runs imperatively: %s\n", sl_block_name(block), sl_error_message());
	sl_error_clear();
	h->eager = true;
	return true;
}

static bool call(const char *at, sl_block *block, struct hybrid *h, const struct slp_padding *f, sl_tensor *const *in,
                 int nin, struct slp_results *results, bool *eager)
{
	struct slp_pending before;
	slp_error_set_aside(&before);
	struct entry *e = entry_for(at, block, h, f, in, nin);
	if (!e) *eager = fall_back(block, h);
	slp_error_rejoin(&before);
	if (!e) return false;
	bool ok = run_entry(at, e, in, nin, results);
	for (int i = 0; ok && f->which && i < results->count; i++)
		ok = (results->t[i] = slp_unpad(at, f, e->follows[i], results->t[i])) != NULL;
	entry_release(e);
	return ok;
}

/* The same with inputs that are padded first: by operations, so that gradients flow to them. */
static bool call_padded(const char *at, sl_block *block, struct hybrid *h, const struct slp_padding *f,
                        sl_tensor *const *in, int nin, struct slp_results *results, bool *eager)
{
	bool ok = false;
	sl_tensor **filled = slp_malloc((size_t)nin * sizeof *filled);
	if (!filled) return slp_call_fail(at, "sl_forward", SL_ENOMEM, "no memory for the inputs") != NULL;
	SL_SCOPE {
		ok = slp_pad(at, f, nin, in, filled) && call(at, block, h, f, filled, nin, results, eager);
		for (int i = 0; ok && i < results->count; i++) sl_retain(results->t[i]);
	}
	for (int i = 0; ok && i < results->count; i++) results->t[i] = slp_scope_add(results->t[i]);
	free(filled);
	return ok && results->t[0];
}

static bool hybrid_call(const char *at, sl_block *block, sl_tensor *const *in, int nin, struct slp_results *results,
                        bool *eager)
{
	struct hybrid *h = hybrid_of(block);
	struct slp_padding f = {0};
	*eager = !h || h->eager ||
	         (slp_cache_is_on() && !slp_cache_is_of(block)); /* a cache does not know the programs in its network */
	if (*eager || !inputs_usable(at, block, in, nin)) return false;
	/* A cache appends its input, which is therefore not padded. */
	if (!slp_cache_is_on() && !slp_padding_of(at, sl_block_name(block), &h->opts.buckets, nin, in, &f))
		return false;
	return (f.which ? call_padded : call)(at, block, h, &f, in, nin, results, eager);
}

/* ---- switching on and off ---------------------------------------------------------------------------------------- */

static void hybrid_drop_plans(struct slp_hybrid *hybrid)
{
	struct hybrid *h = (struct hybrid *)hybrid;
	h->eager = false;
	if (!slp_guard_try(&h->guard)) {
		h->stale = true; /* the next call drops them: to wait for a thread that traces could be for ever */
		return;
	}
	struct slp_guard *guard = &h->guard;
	if (guard->depth > 1) h->stale = true;
	drop_all(h);
	slp_guard_leave(&guard);
}

static void hybrid_drop_cache(struct slp_hybrid *hybrid, uint64_t cache)
{
	struct hybrid *h = (struct hybrid *)hybrid;
	SLP_GUARD_PATIENTLY(&h->guard);
	for (struct entry **p = &h->entries; *p;) {
		struct entry *e = *p;
		if (e->signature->cache != cache) {
			p = &e->next;
			continue;
		}
		*p = e->next;
		h->count--;
		entry_release(e);
	}
}

static void hybrid_free(struct slp_hybrid *hybrid)
{
	drop_all((struct hybrid *)hybrid);
	free(hybrid);
}

static void free_later(void *hybrid)
{
	if (hybrid) hybrid_free(hybrid);
}

static const struct slp_hybrid_functions functions = {
        .call = hybrid_call,
        .drop_plans = hybrid_drop_plans,
        .drop_cache = hybrid_drop_cache,
        .free = hybrid_free,
};

/* From now on the block runs as a compiled program: its forward is called once with symbols for each signature (shapes,
 * dtypes and device of the inputs, recording, training), and not again.  Under SL_RECORD, forward and backward are
 * compiled together.  Blocks inside become part of the program.  A change of the block (a child, a parameter) drops the
 * programs.  With .off the block runs imperatively again.  A call that cannot be traced, such as one that reads values,
 * is an error that names the symbol and the place (doc/hybrid.md); with .fallback the block runs imperatively instead
 * and says so.  sl_forward reports these errors: SL_ESTATE, the block cannot be traced; SL_ESHAPE, another shape with
 * .static_shape.  With .buckets, inputs are padded along an axis to one of a few sizes, and results cut back, so that
 * many sizes share a few programs; sl_forward refuses networks whose results would depend on the padding, with
 * SL_EINVAL and the name of the operation (doc/hybrid.md).  With .memory = n, programs use at most n bytes of their GPU:
 * parameters and values come from main memory in time for the operations that read them (doc/memory.md); to record
 * such a block for a backward pass is SL_EUNSUPPORTED.  SL_EINVAL: the block is NULL, the sizes do not rise, or an
 * option beside .off.
 *
 *     sl_hybridize(net);
 *     sl_hybridize(net, .buckets = {.axis = 1, .sizes = {16, 32, 64, 128}}); // texts of any length
 *     sl_tensor *y = sl_forward(net, x); */
enum sl_status sl_hybridize_at(const char *at, sl_block *block, struct sl_hybridize_opts opts)
{
	SLP_CALL("sl_hybridize", at);
	if (!slp_given(at, "sl_hybridize", "block", block)) return sl_error();
	if (!slp_buckets_usable(at, "sl_hybridize", &opts.buckets)) return sl_error();
	if (opts.static_shape && opts.buckets.sizes[0])
		return slp_call_fail(at, "sl_hybridize", SL_EINVAL,
		                     ".static_shape has one shape, and .buckets several"),
		       SL_EINVAL;
	if (opts.off && (opts.static_alloc || opts.static_shape || opts.fallback || opts.passes_off ||
	                 opts.buckets.sizes[0] || opts.memory))
		return slp_call_fail(at, "sl_hybridize", SL_EINVAL,
		                     ".off runs the block imperatively: the other options would have no effect"),
		       SL_EINVAL;
	struct hybrid *h = opts.off ? NULL : slp_calloc(1, sizeof *h);
	if (!opts.off && !h) return slp_error_set(SL_ENOMEM, "sl_hybridize: no memory");
	if (h) {
		h->base.f = &functions;
		h->opts = opts;
	}
	slp_later(free_later,
	          atomic_exchange(&block->base->hybrid, h ? &h->base : NULL)); /* other threads may be running it */
	return SL_OK;
}

/* The i-th plan that a hybridised block keeps, the newest first; NULL: no such plan.  It belongs to the block, which
 * drops it when the block changes, or when newer plans for other shapes replace it. */
const sl_plan *sl_block_plan(const sl_block *block, int i)
{
	SLP_CALL("sl_block_plan", NULL);
	struct hybrid *h = block ? hybrid_of(block) : NULL;
	if (!h) return NULL;
	SLP_GUARD_PATIENTLY(&h->guard);
	if (atomic_exchange(&h->stale, false)) drop_all(h);
	const struct entry *e = h->entries;
	while (e && i-- > 0) e = e->next;
	return e ? e->forward : NULL;
}
