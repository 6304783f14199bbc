/* The cache of the running network: its interface for layers. */
#include "nn/cached.h"
#include "op.h"
#include "starling/arithmetic.h"
#include "starling/functions.h"
#include "starling/nn.h"

#include "autograd/autograd.h"
#include "nn/nn.h"

static _Thread_local sl_cache *current;

sl_cache *slp_cache_switch(sl_cache *cache)
{
	sl_cache *outer = current;
	current = cache;
	return outer;
}

bool slp_cache_is_on(void)
{
	return current != NULL;
}

uint64_t slp_cache_number(void)
{
	return current ? current->number : 0;
}

bool slp_cache_is_of(const sl_block *block)
{
	return current && current->net == block;
}

void slp_cache_enter(const sl_block *block)
{
	for (int i = 0; slp_cache_is_of(block) && i < current->count; i++) current->kept[i].used = false;
}

static struct slp_kept *find(const sl_block *layer)
{
	for (int i = 0; i < current->count; i++)
		if (current->kept[i].layer == layer) return &current->kept[i];
	return NULL;
}

/* Made outside of the program that is traced, which uses it by reference. */
static sl_tensor *memory_for(const char *at, sl_tensor *rows)
{
	sl_shape shape = sl_tensor_shape(rows);
	shape.dim[2] = current->steps;
	struct sl_make make = {slp_promoted(sl_tensor_dtype(rows)), sl_tensor_device(rows)};
	struct slp_trace *trace = slp_trace_pause();
	sl_tensor *t = NULL;
	SL_SCOPE
		t = sl_retain(sl_zeros_at(at, shape, make));
	slp_trace_resume(trace);
	return t;
}

static struct slp_kept *add(const char *at, const sl_block *layer, sl_tensor *k, sl_tensor *v)
{
	struct slp_kept *list = slp_realloc(current->kept, ((size_t)current->count + 1) * sizeof *list);
	if (!list) return slp_call_fail(at, "sl_cache_forward", SL_ENOMEM, "no memory for the list of layers");
	current->kept = list;
	struct slp_kept new = {layer, memory_for(at, k), memory_for(at, v), false};
	if (new.keys &&new.values) {
		list[current->count] = new;
		return &list[current->count++];
	}
	sl_release(new.keys);
	sl_release(new.values);
	return NULL;
}

sl_tensor *slp_cache_attend(const char *at, const sl_block *layer, sl_tensor *q, sl_tensor *k, sl_tensor *v)
{
	if (!q || !k || !v) return NULL;
	struct slp_kept *kept = find(layer);
	if (!kept) kept = add(at, layer, k, v);
	if (!kept) return NULL;
	if (kept->used)
		return slp_call_fail(at, "sl_cache_forward", SL_EUNSUPPORTED,
		                     "%s is used several times in the network, but a cache has room for one use",
		                     layer->base->name);
	kept->used = true;
	return sl_cached_attention_at(at, q, k, v, kept->keys, kept->values, current->place,
	                              (struct sl_cached_attention_opts){0});
}

sl_tensor *slp_cache_rows(const char *at, const sl_block *layer, sl_tensor *table, int64_t n)
{
	sl_tensor *places = current->place;
	int64_t most = sl_tensor_shape(table).dim[0];
	if (current->steps > most)
		return slp_call_fail(at, "sl_cache_forward", SL_ESHAPE,
		                     "a cache of %lld steps, but %s has %lld positions", (long long)current->steps,
		                     layer->base->name, (long long)most);
	if (n != 1) {
		struct sl_make make = {SL_INT32, sl_tensor_device(table)};
		places = sl_add_at(at, sl_arange_at(at, 0, (double)n, 1, make), places);
	}
	return sl_gather_at(at, table, places);
}

bool slp_cache_refuses(const char *at, const sl_block *layer, const char *why)
{
	if (!current) return false;
	slp_call_fail(at, "sl_cache_forward", SL_EUNSUPPORTED, "%s: %s", layer->base->name, why);
	return true;
}
