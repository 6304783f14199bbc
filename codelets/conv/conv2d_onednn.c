/* Convolution by oneDNN: its objects (conv2d_onednn_make.c) are kept and run.
 *
 * oneDNN works best in layouts of its own, which it names for the layout "any"; tensors are reordered on the way in and
 * out. Each thread caches oneDNN's objects (machine code, descriptions, reorders) for its most recent sizes: threads
 * share nothing, so nothing is locked. */
#include "conv2d_kernels.h"
#include "op.h"

#ifdef HAVE_ONEDNN
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/bf16.h"
#include "common/blocks.h"
#include "common/onednn.h"
#include "common/workspace.h"
#include "conv2d_onednn.h"
#include "fixed.h"

enum { SETS = 256, WAYS = 4 }; /* of the cache: a key has its place in one set */
struct cache {
	struct slp_conv_made made[SETS][WAYS];
	uint64_t clock;
	dnnl_stream_t stream;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t cache_key;
static dnnl_engine_t engine;

/* ---- the cache of a thread -------------------------------------------------------------------------------------- */

static void free_cache(void *arg)
{
	struct cache *cache = arg;
	for (int i = 0; i < SETS * WAYS; i++) slp_conv_unmake(&cache->made[i / WAYS][i % WAYS]);
	if (cache->stream) dnnl_stream_destroy(cache->stream);
	free(cache);
}

static void start(void)
{
	pthread_key_create(&cache_key, free_cache);
	if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success) engine = NULL;
}

static struct cache *cache_of_thread(void)
{
	pthread_once(&once, start);
	struct cache *cache = pthread_getspecific(cache_key);
	if (cache || !engine) return cache;
	cache = slp_try_calloc(1, sizeof *cache);
	if (!cache) return NULL;
	if (dnnl_stream_create(&cache->stream, engine, dnnl_stream_default_flags) != dnnl_success) {
		free(cache);
		return NULL;
	}
	pthread_setspecific(cache_key, cache);
	return cache;
}

static size_t set_of(const struct slp_conv_key *key)
{
	uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a */
	for (size_t i = 0; i < sizeof *key; i++) h = (h ^ ((const unsigned char *)key)[i]) * UINT64_C(1099511628211);
	return (size_t)(h ^ h >> 32) % SETS;
}

/* The entry of these sizes, made now if necessary in place of the least recently used one. */
static struct slp_conv_made *find(struct cache *cache, const struct slp_conv_key *key)
{
	struct slp_conv_made *set = cache->made[set_of(key)], *oldest = set;
	for (int i = 0; i < WAYS; i++) {
		struct slp_conv_made *m = &set[i];
		if (m->convolution && !memcmp(&m->key, key, sizeof *key)) {
			m->used = ++cache->clock;
			return m;
		}
		if (m->used < oldest->used) oldest = m;
	}
	slp_conv_unmake(oldest);
	if (!slp_conv_make_onednn(oldest, engine, key)) {
		slp_conv_unmake(oldest);
		return NULL;
	}
	oldest->used = ++cache->clock;
	return oldest;
}

/* ---- threads ---------------------------------------------------------------------------------------------------- */

/* One thread computes a small convolution: it is done before a team has met.  Others get the whole team, since libgomp
 * ends the threads that a smaller one leaves out. */
static int threads_for(const struct slp_conv *c, int team)
{
	enum { SMALL = 400000 }; /* products, about 15 microseconds; an element of y costs as much as 8 */
	double places = (double)(c->n * c->oc * c->oh * c->ow) * (double)(c->kd ? c->od : 1);
	double products = (double)(c->ic / c->groups * slp_conv_taps(c) + 8) * places;
	return products < SMALL ? 1 : team;
}

/* oneDNN makes code, and runs it, for OpenMP's number of threads.  Returns the number before. */
static int take_threads(int threads)
{
	int before = omp_get_max_threads();
	if (threads != before) omp_set_num_threads(threads);
	return before;
}

/* ---- running ---------------------------------------------------------------------------------------------------- */

static dnnl_status_t run_reorder(struct cache *cache, const struct slp_conv_port *p, bool out)
{
	dnnl_exec_arg_t args[2] = {{DNNL_ARG_FROM, out ? p->inside : p->outside},
	                           {DNNL_ARG_TO, out ? p->outside : p->inside}};
	return dnnl_primitive_execute(p->reorder, cache->stream, 2, args);
}

/* Sets all addresses to this call's: the caller's tensors, and the workspace of reordered tensors. */
static bool point(struct slp_conv_made *m, float *const data[OPERANDS])
{
	size_t bytes = m->scratch_bytes + 64;
	for (int i = 0; i < OPERANDS; i++) bytes += m->port[i].bytes;
	char *work = slp_workspace(SLP_WORK_CALL, bytes);
	if (!work) return false;
	for (int i = 0; i < OPERANDS; i++) {
		struct slp_conv_port *p = &m->port[i];
		if (!p->outside) continue;
		dnnl_memory_set_data_handle(p->outside, data[i]);
		if (!p->reorder) continue;
		dnnl_memory_set_data_handle(p->inside, work);
		work += p->bytes;
	}
	return dnnl_memory_set_data_handle(m->scratchpad, work) == dnnl_success;
}

static dnnl_status_t run(struct cache *cache, struct slp_conv_made *m)
{
	dnnl_exec_arg_t args[OPERANDS + 1] = {{DNNL_ARG_SCRATCHPAD, m->scratchpad}};
	dnnl_status_t s = dnnl_success;
	int n = 1;
	for (int i = 0; i < OPERANDS && s == dnnl_success; i++) {
		const struct slp_conv_port *p = &m->port[i];
		if (!p->outside) continue;
		args[n++] = (dnnl_exec_arg_t){p->arg, p->inside};
		if (p->reorder && !slp_conv_is_output(m->key.pass, i)) s = run_reorder(cache, p, false);
	}
	if (s == dnnl_success) s = dnnl_primitive_execute(m->convolution, cache->stream, n, args);
	for (int i = 0; i < OPERANDS && s == dnnl_success; i++)
		if (m->port[i].reorder && slp_conv_is_output(m->key.pass, i)) s = run_reorder(cache, &m->port[i], true);
	return s == dnnl_success ? dnnl_stream_wait(cache->stream) : s;
}

/* Padding too is cleared: keys are compared as bytes. */
static void make_key(struct slp_conv_key *key, const struct slp_conv_args *a, int threads)
{
	memset(key, 0, sizeof *key);
	key->c = a->c;
	key->pass = a->pass;
	key->bias = a->b != NULL;
	key->threads = threads;
	key->half = a->half;
	key->wide = a->wide;
	key->x_nc16 = a->x_layout == SLP_LAYOUT_NC16;
	key->y_nc16 = a->y_layout == SLP_LAYOUT_NC16;
	key->inner = a->half && slp_bf16_available();
	const struct slp_conv2d_blocked_attrs *o = a->blocked;
	if (!o) return;
	key->block = o->block;
	key->x_plain = o->x_plain;
	key->packed = o->packed > 0;
	key->winograd = o->winograd;
	key->after.sum = a->sum;
	key->after.relu = o->relu;
	key->after.bounded = o->bounded;
	key->after.low = o->bounded ? (float)o->low : 0;
	key->after.high = o->bounded ? (float)o->high : 0;
}

static struct slp_conv_made *find_for(struct cache *cache, const struct slp_conv_args *a, int threads)
{
	struct slp_conv_key key;
	make_key(&key, a, threads);
	return cache ? find(cache, &key) : NULL;
}

static bool is_product(const struct slp_kernel *k, const struct slp_conv_args *a)
{
	int threads = threads_for(&a->c, k->threads), before = take_threads(threads);
	struct slp_conv_made *m = find_for(cache_of_thread(), a, threads);
	take_threads(before);
	return m && m->product;
}

enum sl_status slp_conv_onednn(const struct slp_kernel *k, const struct slp_conv_args *a)
{
	if (a->cropped || !slp_fixed_sums()) return slp_conv_onednn_alone(k, a);
	if (a->pass == SLP_CONV_WEIGHTS) return slp_conv_fixed_weights(k, a);
	return is_product(k, a) ? slp_conv_fixed_images(k, a) : slp_conv_onednn_alone(k, a);
}

static enum sl_status convolve(const struct slp_kernel *k, const struct slp_conv_args *a, int threads)
{
	struct cache *cache = a->cropped ? NULL : cache_of_thread(); /* y must be as large as x demands */
	struct slp_conv_made *m = find_for(cache, a, threads);
	if (!m) return SL_EUNSUPPORTED;
	if (m->key.packed && m->weight_bytes > sizeof(float) * (size_t)a->blocked->packed)
		return slp_kernel_fail(k, SL_EKERNEL, "the weights were packed for another kernel");
	if (!point(m, (float *const[]){a->x, a->w, a->b, a->y}))
		return slp_kernel_fail(k, SL_ENOMEM, "no memory to reorder tensors in");
	dnnl_status_t s = run(cache, m);
	return s == dnnl_success ? SL_OK : slp_kernel_fail(k, SL_EKERNEL, "oneDNN: status %d", (int)s);
}

enum sl_status slp_conv_onednn_alone(const struct slp_kernel *k, const struct slp_conv_args *a)
{
	int threads = threads_for(&a->c, k->threads), before = take_threads(threads);
	enum sl_status s = convolve(k, a, threads);
	take_threads(before);
	return s;
}

bool slp_conv_onednn_half(void)
{
#ifdef __x86_64__
	unsigned isa = dnnl_get_effective_cpu_isa();
	return (isa & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core;
#else
	return false;
#endif
}

/* ---- blocks of channels: packed weights -------------------------------------------------------------------------- */

int slp_block_size(void)
{
#ifdef __x86_64__
	unsigned isa = dnnl_get_effective_cpu_isa(); /* a set of bits */
	if ((isa & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core) return 16;
	if ((isa & dnnl_cpu_isa_avx2) == dnnl_cpu_isa_avx2) return 8;
#endif
	return 0;
}

static size_t packed_bytes(const struct slp_conv_args *a, int threads)
{
	dnnl_primitive_desc_t pd;
	struct slp_conv_key key;
	const char *how = "";
	make_key(&key, a, threads);
	if (!cache_of_thread() || !slp_conv_describe(&key, engine, &pd)) return 0;
	dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &how);
	size_t bytes = dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0));
	if (strncmp(how, "jit", 3) != 0 && strncmp(how, "brg", 3) != 0) bytes = 0; /* plain loops: no gain */
	dnnl_primitive_desc_destroy(pd);
	return bytes;
}

size_t slp_conv_onednn_packed(const struct slp_conv_args *a, int team)
{
	int threads = threads_for(&a->c, team), before = take_threads(threads);
	size_t bytes = packed_bytes(a, threads);
	take_threads(before);
	return bytes;
}

static enum sl_status pack(const struct slp_kernel *k, const struct slp_conv_args *a, float *packed, size_t bytes,
                           int threads)
{
	struct cache *cache = cache_of_thread();
	struct slp_conv_key key;
	make_key(&key, a, threads);
	key.packed = 0;
	struct slp_conv_made *m = cache ? find(cache, &key) : NULL;
	if (!m) return slp_kernel_fail(k, SL_EKERNEL, "oneDNN has no such convolution any more");
	struct slp_conv_port *p = &m->port[W];
	if (m->weight_bytes > bytes)
		return slp_kernel_fail(k, SL_EKERNEL, "packed weights take %zu bytes, %zu were planned",
		                       m->weight_bytes, bytes);
	if (!p->reorder) return memcpy(packed, a->w, m->weight_bytes), SL_OK;
	dnnl_memory_set_data_handle(p->outside, a->w);
	dnnl_memory_set_data_handle(p->inside, packed);
	dnnl_status_t s = run_reorder(cache, p, false);
	if (s == dnnl_success) s = dnnl_stream_wait(cache->stream);
	return s == dnnl_success ? SL_OK : slp_kernel_fail(k, SL_EKERNEL, "oneDNN: status %d", (int)s);
}

enum sl_status slp_conv_onednn_pack(const struct slp_kernel *k, const struct slp_conv_args *a, float *packed,
                                    size_t bytes)
{
	int threads = threads_for(&a->c, k->threads), before = take_threads(threads);
	enum sl_status s = pack(k, a, packed, bytes, threads);
	take_threads(before);
	return s;
}

#else

enum sl_status slp_conv_onednn(const struct slp_kernel *k, const struct slp_conv_args *a)
{
	(void)k;
	(void)a;
	return SL_EUNSUPPORTED;
}

enum sl_status slp_conv_onednn_alone(const struct slp_kernel *k, const struct slp_conv_args *a)
{
	return slp_conv_onednn(k, a);
}

bool slp_conv_onednn_half(void)
{
	return false;
}

int slp_block_size(void)
{
	return 0;
}

size_t slp_conv_onednn_packed(const struct slp_conv_args *a, int threads)
{
	(void)a;
	(void)threads;
	return 0;
}

enum sl_status slp_conv_onednn_pack(const struct slp_kernel *k, const struct slp_conv_args *a, float *packed,
                                    size_t bytes)
{
	(void)a;
	(void)packed;
	(void)bytes;
	return slp_kernel_fail(k, SL_EUNSUPPORTED, "this build has no oneDNN");
}

#endif
