/* The cache of keys and values of the running network (cached.c). */
#ifndef SLP_NN_CACHED_H
#define SLP_NN_CACHED_H

#include "nn/nn.h"
#include "starling/nn.h"

/* The cache of an attention layer: (rows, heads, steps, width of a head) each. */
struct slp_kept {
	const sl_block *layer;
	sl_tensor *keys, *values;
	bool used; /* by the forward that runs */
};

struct sl_cache {
	struct slp_guard guard;
	sl_block *net;
	uint64_t number; /* programs of the network belong to a cache by it */
	int64_t steps;
	_Atomic int64_t length;
	sl_tensor *place; /* the length, for programs */
	struct slp_kept *kept;
	int count;
};

/* Makes it the cache of the calling thread's layers; NULL: none.  Returns the previous one. */
sl_cache *slp_cache_switch(sl_cache *cache);

#endif
