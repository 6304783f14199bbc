/* Caches: keys, values and positions of earlier steps of a sequence, so that later steps need not compute them. */
#include <stdlib.h>

#include "autograd/autograd.h"
#include "nn/cached.h"
#include "op.h"
#include "runtime/gate.h"
#include "starling/nn.h"
#include "starling/arithmetic.h"

/* ---- life -------------------------------------------------------------------------------------------------------- */

/* Makes a cache for sequences of at most `steps` steps: sl_cache_forward runs the network on their next steps, and
 * computes only these.  For causal attention the cache keeps the keys and values of all earlier steps, in float32 (in
 * float64 for networks of that type): 2 · rows · steps · width numbers per layer.  Free it with sl_cache_free; it has a
 * reference to the network.  SL_EINVAL: steps is not positive; SL_ENOMEM.
 *
 *     sl_cache *cache = sl_cache_new(net, 1024);
 *     y = sl_cache_forward(cache, prompt);      // (1, 5) words: (1, 5, width) results
 *     y = sl_cache_forward(cache, next_word);   // (1, 1): at the cost of one step */
sl_cache *sl_cache_new_at(const char *at, sl_block *net, int64_t steps)
{
	static _Atomic uint64_t numbers;
	SLP_CALL("sl_cache_new", at);
	if (!slp_given(at, "sl_cache_new", "block", net)) return NULL;
	if (steps < 1 || steps > INT32_MAX)
		return slp_call_fail(at, "sl_cache_new", SL_EINVAL, "%lld steps; they must be positive, and int32",
		                     (long long)steps);
	sl_cache *c = slp_calloc(1, sizeof *c);
	if (!c) return slp_call_fail(at, "sl_cache_new", SL_ENOMEM, "no memory for a cache");
	SL_PAUSE
		SL_SCOPE
			c->place = sl_retain(sl_zeros_at(at, SL_SHAPE(1), (struct sl_make){SL_INT32, sl_auto()}));
	if (!c->place) {
		free(c);
		return NULL;
	}
	c->net = sl_block_retain(net);
	c->number = ++numbers;
	c->steps = steps;
	return c;
}

static void cache_free(void *given)
{
	sl_cache *cache = given;
	struct slp_hybrid *hybrid = cache->net->base->hybrid;
	if (hybrid) hybrid->f->drop_cache(hybrid, cache->number);
	for (int i = 0; i < cache->count; i++) {
		sl_release(cache->kept[i].keys);
		sl_release(cache->kept[i].values);
	}
	free(cache->kept);
	sl_release(cache->place);
	sl_block_free(cache->net);
	free(cache);
}

/* Frees a cache, and the network's programs for it.  NULL is ignored. */
void sl_cache_free(sl_cache *cache)
{
	slp_later(cache_free, cache);
}

/* The number of steps in the cache; 0 for NULL. */
int64_t sl_cache_length(const sl_cache *cache)
{
	return cache ? cache->length : 0;
}

/* Keeps the first `length` steps and forgets the others: 0 to begin another sequence, or fewer than were given if the
 * last ones were padding.  SL_EINVAL: the cache has fewer steps.
 *
 *     sl_cache_cut(cache, 0); */
enum sl_status sl_cache_cut_at(const char *at, sl_cache *cache, int64_t length)
{
	SLP_CALL("sl_cache_cut", at);
	if (!slp_given(at, "sl_cache_cut", "cache", cache)) return sl_error();
	SLP_GUARD(&cache->guard, at, "sl_cache_cut", SL_ESTATE);
	if (length < 0 || length > cache->length) {
		slp_call_fail(at, "sl_cache_cut", SL_EINVAL, "%lld of %lld steps cannot be kept", (long long)length,
		              (long long)cache->length);
		return SL_EINVAL;
	}
	cache->length = length;
	return SL_OK;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static bool has_room(const char *at, const sl_cache *c, sl_shape x)
{
	char text[128];
	if (x.ndim < 2) {
		slp_call_fail(at, "sl_cache_forward", SL_ESHAPE, "x is %s; (rows, steps, …) needed",
		              sl_shape_string(x, text));
		return false;
	}
	if (x.dim[1] <= c->steps - c->length) return true;
	slp_call_fail(at, "sl_cache_forward", SL_ESHAPE,
	              "%lld more steps, but %lld of %lld are in use; sl_cache_cut makes room", (long long)x.dim[1],
	              (long long)c->length, (long long)c->steps);
	return false;
}

static sl_tensor *run(const char *at, sl_cache *c, sl_tensor *x)
{
	sl_tensor *y = NULL;
	if (sl_fill_inplace_at(at, c->place, (double)c->length)) {
		sl_cache *outer = slp_cache_switch(c);
		y = sl_forward_at(at, c->net, &x, 1);
		slp_cache_switch(outer);
	}
	if (y) c->length += sl_tensor_shape(x).dim[1];
	return y;
}

/* Runs the cache's network on the next steps of its sequences: x is (rows, steps, …); the result is that of sl_forward
 * for these steps after all earlier ones, to rounding; layers are in inference mode, and nothing is recorded.  A
 * hybridised network (this block itself, not one inside) runs as one program for each number of steps, whatever the
 * length of the cache: pad prompts to few different lengths, and cut the cache afterwards.  Causal
 * sl_multi_head_attention and sl_position_embedding continue at the cache's length; other layers must treat each step
 * independently.  Attention to a memory is computed again.  A full cache is an error: for longer sequences, cut it to 0
 * and pass the last steps again.  Cut it to 0 after changes of parameters.  SL_ESHAPE: too few steps left, or another
 * number of rows than before; SL_EUNSUPPORTED: attention that is not causal, recurrent layers, an attention layer with
 * two places in the network; SL_ESTATE: within a traced block; other errors as in sl_forward.
 *
 *     sl_tensor *y = sl_cache_forward(cache, words); */
sl_tensor *sl_cache_forward_at(const char *at, sl_cache *cache, sl_tensor *x)
{
	SLP_CALL("sl_cache_forward", at);
	if (!slp_given(at, "sl_cache_forward", "cache", cache) || !slp_given(at, "sl_cache_forward", "x", x))
		return NULL;
	if (sl_is_symbol(x)) return slp_symbol_fail(at, "sl_cache_forward", x);
	SLP_GUARD(&cache->guard, at, "sl_cache_forward", NULL);
	if (slp_trace_refuses(at, "sl_cache_forward", x) || !has_room(at, cache, sl_tensor_shape(x))) return NULL;
	sl_mode mode;
	sl_mode_enter(&mode, false, false);
	sl_tensor *y = run(at, cache, x);
	sl_mode_leave(&mode);
	return y;
}
