/* oneDNN's objects for products of bytes, kept by each thread for its most recent sizes. */
#include "config.h"

#ifdef HAVE_ONEDNN
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "qdnn.h"

enum { SETS = 128, WAYS = 4 };

struct cache {
	struct slp_qdnn made[SETS][WAYS];
	uint64_t clock;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t cache_key;
static dnnl_engine_t engine;
static _Thread_local dnnl_stream_t stream;

static void unmake(struct slp_qdnn *m)
{
	if (m->product) dnnl_primitive_destroy(m->product);
	if (m->reorder) dnnl_primitive_destroy(m->reorder);
	for (int i = 0; i < SLP_QDNN_MEMORIES; i++)
		if (m->memory[i]) dnnl_memory_destroy(m->memory[i]);
	if (m->plain) dnnl_memory_destroy(m->plain);
	for (int i = 0; i < m->noperands; i++) dnnl_memory_destroy(m->operands[i].memory);
	free(m->quant.scales);
	memset(m, 0, sizeof *m);
}

static void free_cache(void *arg)
{
	struct cache *cache = arg;
	for (int i = 0; i < SETS * WAYS; i++) unmake(&cache->made[i / WAYS][i % WAYS]);
	if (stream) dnnl_stream_destroy(stream);
	stream = NULL;
	free(cache);
}

/* Whether sums of products of bytes do not saturate on the way: other instructions than these have 16 bits for them. */
static bool adds_exactly(void)
{
#ifdef __x86_64__
	unsigned isa = dnnl_get_effective_cpu_isa(); /* a set of bits */
	return (isa & dnnl_cpu_isa_avx512_core_vnni) == dnnl_cpu_isa_avx512_core_vnni ||
	       (isa & dnnl_cpu_isa_avx2_vnni) == dnnl_cpu_isa_avx2_vnni;
#else
	return true;
#endif
}

static void start(void)
{
	pthread_key_create(&cache_key, free_cache);
	if (!adds_exactly()) return;
	if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success) engine = NULL;
}

static struct cache *cache_of_thread(void)
{
	pthread_once(&once, start);
	struct cache *cache = pthread_getspecific(cache_key);
	if (cache || !engine) return cache;
	cache = slp_try_calloc(1, sizeof *cache);
	if (cache && dnnl_stream_create(&stream, engine, dnnl_stream_default_flags) == dnnl_success) {
		pthread_setspecific(cache_key, cache);
		return cache;
	}
	free(cache);
	return NULL;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

/* The operands' descriptions, in the order of the memories. */
static slp_dnn_ref description(const_dnnl_primitive_desc_t pd, int i)
{
	static const struct {
		dnnl_query_t query;
		int index;
	} list[SLP_QDNN_MEMORIES] = {{dnnl_query_src_md, 0},
	                             {dnnl_query_weights_md, 0},
	                             {dnnl_query_weights_md, 1},
	                             {dnnl_query_dst_md, 0},
	                             {dnnl_query_scratchpad_md, 0}};
	return dnnl_primitive_desc_query_md(pd, list[i].query, list[i].index);
}

static bool make_reorder(struct slp_qdnn *m, slp_dnn_ref plain, slp_dnn_ref inside)
{
	dnnl_primitive_desc_t pd;
	if (dnnl_memory_create(&m->plain, plain, engine, DNNL_MEMORY_NONE) != dnnl_success) return false;
	if (dnnl_reorder_primitive_desc_create(&pd, plain, engine, inside, engine, NULL) != dnnl_success) return false;
	bool ok = dnnl_primitive_create(&m->reorder, pd) == dnnl_success;
	dnnl_primitive_desc_destroy(pd);
	return ok;
}

static bool make(struct slp_qdnn *m, slp_qdnn_describe *describe)
{
	dnnl_primitive_desc_t pd = NULL;
	slp_dnn_md plain;
	memset(&plain, 0, sizeof plain);
	if (!describe(&m->key, &m->quant, engine, &pd, &plain)) return false;
	bool ok = dnnl_primitive_create(&m->product, pd) == dnnl_success &&
	          slp_dnn_quant_operands(&m->quant, engine, m->operands, &m->noperands);
	for (int i = 0; i < SLP_QDNN_MEMORIES && ok; i++) {
		slp_dnn_ref md = description(pd, i);
		size_t bytes = md ? dnnl_memory_desc_get_size(md) : 0;
		if (i == SLP_QDNN_W) m->weight_bytes = bytes;
		if (i == SLP_QDNN_SCRATCH) m->scratch_bytes = bytes;
		if (bytes) ok = dnnl_memory_create(&m->memory[i], md, engine, DNNL_MEMORY_NONE) == dnnl_success;
	}
	ok = ok && make_reorder(m, slp_dnn_md_ref(&plain), description(pd, SLP_QDNN_W));
	slp_dnn_md_free(&plain);
	dnnl_primitive_desc_destroy(pd);
	return ok;
}

static size_t set_of(const struct slp_qdnn_key *key)
{
	uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a, of numbers */
	for (int i = 0; i < SLP_QDNN_NUMBERS; i++) h = (h ^ (uint64_t)key->v[i]) * UINT64_C(1099511628211);
	return (size_t)(h ^ h >> 32) % SETS;
}

static size_t scale_bytes(const struct slp_dnn_quant *quant)
{
	return (size_t)quant->n * sizeof *quant->scales;
}

/* The zero points are in the key. */
static bool is(const struct slp_qdnn *m, const struct slp_qdnn_key *key, const struct slp_dnn_quant *quant)
{
	return m->product && m->quant.n == quant->n && !memcmp(&m->key, key, sizeof *key) &&
	       (!quant->n || !memcmp(m->quant.scales, quant->scales, scale_bytes(quant)));
}

static bool copy_quant(struct slp_dnn_quant *to, const struct slp_dnn_quant *from)
{
	*to = *from;
	to->scales = slp_try_calloc((size_t)from->n + 1, sizeof *to->scales);
	if (to->scales && from->n) memcpy(to->scales, from->scales, scale_bytes(from));
	return to->scales != NULL;
}

struct slp_qdnn *slp_qdnn_find(const struct slp_qdnn_key *key, const struct slp_dnn_quant *quant,
                               slp_qdnn_describe *describe)
{
	struct cache *cache = cache_of_thread();
	struct slp_qdnn *set = cache ? cache->made[set_of(key)] : NULL, *oldest = set;
	for (int i = 0; set && i < WAYS; i++) {
		if (is(&set[i], key, quant)) return set[i].used = ++cache->clock, &set[i];
		if (set[i].used < oldest->used) oldest = &set[i];
	}
	if (!set) return NULL;
	unmake(oldest);
	oldest->key = *key;
	if (copy_quant(&oldest->quant, quant) && make(oldest, describe)) return oldest->used = ++cache->clock, oldest;
	unmake(oldest);
	return NULL;
}

size_t slp_qdnn_packed(const struct slp_qdnn_key *key, const struct slp_dnn_quant *quant, slp_qdnn_describe *describe)
{
	dnnl_primitive_desc_t pd = NULL;
	slp_dnn_md plain;
	memset(&plain, 0, sizeof plain);
	if (!cache_of_thread() || !describe(key, quant, engine, &pd, &plain)) return 0;
	size_t bytes = dnnl_memory_desc_get_size(description(pd, SLP_QDNN_W));
	slp_dnn_md_free(&plain);
	dnnl_primitive_desc_destroy(pd);
	return bytes;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

bool slp_qdnn_pack(struct slp_qdnn *m, void *plain, void *packed)
{
	dnnl_exec_arg_t args[2] = {{DNNL_ARG_FROM, m->plain}, {DNNL_ARG_TO, m->memory[SLP_QDNN_W]}};
	return dnnl_memory_set_data_handle(m->plain, plain) == dnnl_success &&
	       dnnl_memory_set_data_handle(m->memory[SLP_QDNN_W], packed) == dnnl_success &&
	       dnnl_primitive_execute(m->reorder, stream, 2, args) == dnnl_success &&
	       dnnl_stream_wait(stream) == dnnl_success;
}

bool slp_qdnn_run(struct slp_qdnn *m, const void *x, const void *w, const void *b, void *y, void *scratch)
{
	static const int names[SLP_QDNN_MEMORIES] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST,
	                                             DNNL_ARG_SCRATCHPAD};
	const void *data[SLP_QDNN_MEMORIES] = {x, w, b, y, scratch};
	dnnl_exec_arg_t args[SLP_QDNN_MEMORIES + SLP_DNN_QUANT_OPERANDS];
	int n = m->noperands;
	memcpy(args, m->operands, sizeof m->operands);
	for (int i = 0; i < SLP_QDNN_MEMORIES; i++) {
		if (!m->memory[i]) continue;
		if (dnnl_memory_set_data_handle(m->memory[i], (void *)(uintptr_t)data[i]) != dnnl_success) return false;
		args[n++] = (dnnl_exec_arg_t){names[i], m->memory[i]};
	}
	return dnnl_primitive_execute(m->product, stream, n, args) == dnnl_success &&
	       dnnl_stream_wait(stream) == dnnl_success;
}

#endif
