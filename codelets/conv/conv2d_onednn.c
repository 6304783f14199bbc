/* Convolution by oneDNN.
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
#include "conv2d_kernels.h"
#include "fixed.h"

enum { SETS = 256, WAYS = 4 }; /* of the cache: a key has its place in one set */
enum operand { X, W, B, Y, OPERANDS };

struct key {
	struct slp_conv c;
	int pass, bias, threads, half, wide, x_nc16, y_nc16;
	int inner;                            /* of half types: computed in bfloat16, too */
	int block, x_plain, packed, winograd; /* images in blocks, conv2d_blocked.h; block 0: in the plain order */
	struct slp_dnn_after after;
};

/* A tensor in the caller's layout and in the convolution's; if they differ, `reorder` converts an input or output. */
struct port {
	dnnl_memory_t outside, inside;
	dnnl_primitive_t reorder;
	size_t bytes; /* of inside, where there is a reorder */
	int arg;
};

struct made {
	struct key key;
	uint64_t used;
	dnnl_primitive_t convolution;
	struct port port[OPERANDS];
	dnnl_memory_t scratchpad;
	size_t scratch_bytes, weight_bytes;
	bool product; /* computed as products of matrices, whose bits depend on the number of threads */
};

struct cache {
	struct made made[SETS][WAYS];
	uint64_t clock;
	dnnl_stream_t stream;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t cache_key;
static dnnl_engine_t engine;

/* ---- the cache of a thread -------------------------------------------------------------------------------------- */

static void unmake(struct made *m)
{
	if (m->convolution) dnnl_primitive_destroy(m->convolution);
	for (int i = 0; i < OPERANDS; i++) {
		struct port *p = &m->port[i];
		if (p->inside && p->inside != p->outside) dnnl_memory_destroy(p->inside);
		if (p->outside) dnnl_memory_destroy(p->outside);
		if (p->reorder) dnnl_primitive_destroy(p->reorder);
	}
	if (m->scratchpad) dnnl_memory_destroy(m->scratchpad);
	memset(m, 0, sizeof *m);
}

static void free_cache(void *arg)
{
	struct cache *cache = arg;
	for (int i = 0; i < SETS * WAYS; i++) unmake(&cache->made[i / WAYS][i % WAYS]);
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

/* ---- making ----------------------------------------------------------------------------------------------------- */

/* Winograd's algorithm, if its transforms cost little beside the products that it saves. A. Lavin, S. Gray, "Fast
 * algorithms for convolutional neural networks", 2016. SL_WINOGRAD=0 turns it off. */
static bool winograd_pays(const struct slp_conv *c)
{
	const char *wish = getenv("SL_WINOGRAD");
	bool plain = c->sh == 1 && c->sw == 1 && c->dh == 1 && c->dw == 1 && c->groups == 1;
	plain = plain && !c->kd && c->kh == 3 && c->kw == 3;
	return plain && c->ic >= 64 && c->oc >= 64 && !(wish && !strcmp(wish, "0"));
}

/* With a single channel, the forward pass through matrix products in the plain layout beats blocks of 16 channels. */
static bool stays_plain(const struct key *key)
{
	return key->c.ic == key->c.groups && key->pass != SLP_CONV_WEIGHTS && !key->inner;
}

/* The layout of x and y: the caller's, or oneDNN's choice. */
static dnnl_format_tag_t image_tag(const struct key *key, bool plain, bool outside, bool is_x)
{
	bool volume = key->c.kd != 0;
	if (outside && (is_x ? key->x_nc16 : key->y_nc16)) return dnnl_nChw16c;
	if (key->block && !(is_x && key->x_plain))
		return key->block == 16 ? volume ? dnnl_nCdhw16c : dnnl_nChw16c : volume ? dnnl_nCdhw8c : dnnl_nChw8c;
	return !plain && !key->block ? dnnl_format_tag_any : volume ? dnnl_ncdhw : dnnl_nchw;
}

/* The type of an operand, in the caller's memory or in the computation: gradients of parameters are never rounded
 * here. */
static dnnl_data_type_t type_of(const struct key *key, enum operand o, bool outside)
{
	bool sums = key->pass == SLP_CONV_WEIGHTS && (o == W || o == B);
	bool wide = key->wide && (o == B || (o == W && outside));
	return key->half && (outside || key->inner) && !sums && !wide ? dnnl_bf16 : dnnl_f32;
}

/* Sizes after the first `first`, of images or volumes; returns their number. */
static int set_dims(dnnl_dims_t dims, int first, int64_t depth, int64_t height, int64_t width)
{
	if (depth) dims[first++] = depth;
	dims[first++] = height;
	dims[first++] = width;
	return first;
}

/* The three or four tensors, in the caller's layout or in oneDNN's choice. */
static bool describe_tensors(const struct key *key, bool plain, bool plain_w, struct slp_dnn_conv *d)
{
	const struct slp_conv *c = &key->c;
	bool grouped = c->groups > 1;
	dnnl_dims_t x = {c->n, c->ic}, y = {c->n, c->oc}, b = {c->oc}, w = {c->oc, c->ic};
	dnnl_dims_t wg = {c->groups, c->oc / c->groups, c->ic / c->groups};
	dnnl_format_tag_t oihw = c->kd ? dnnl_oidhw : dnnl_oihw, goihw = c->kd ? dnnl_goidhw : dnnl_goihw;
	dnnl_format_tag_t w_tag = !plain_w ? dnnl_format_tag_any : grouped ? goihw : oihw;
	int axes = set_dims(x, 2, c->id, c->ih, c->iw);
	set_dims(y, 2, c->od, c->oh, c->ow);
	set_dims(w, 2, c->kd, c->kh, c->kw);
	set_dims(wg, 3, c->kd, c->kh, c->kw);
	d->bias = key->bias;
	return slp_dnn_md_make(&d->x, axes, x, type_of(key, X, plain_w), image_tag(key, plain, plain_w, true)) &&
	       slp_dnn_md_make(&d->w, axes + grouped, grouped ? wg : w, type_of(key, W, plain_w), w_tag) &&
	       slp_dnn_md_make(&d->b, 1, b, type_of(key, B, plain_w), dnnl_x) &&
	       slp_dnn_md_make(&d->y, axes, y, type_of(key, Y, plain_w), image_tag(key, plain, plain_w, false));
}

static void free_tensors(struct slp_dnn_conv *d)
{
	slp_dnn_md_free(&d->x);
	slp_dnn_md_free(&d->w);
	slp_dnn_md_free(&d->b);
	slp_dnn_md_free(&d->y);
}

/* How windows move over images, or over volumes, whose depth comes first. */
static void set_windows(const struct slp_conv *c, struct slp_dnn_conv *d)
{
	int depth = c->kd ? 1 : 0;
	if (depth) {
		d->strides[0] = c->sd;
		d->dilates[0] = c->dd - 1;
		d->padding[0] = d->padding_after[0] = c->pd;
	}
	set_dims(d->strides, depth, 0, c->sh, c->sw);
	set_dims(d->dilates, depth, 0, c->dh - 1, c->dw - 1);
	set_dims(d->padding, depth, 0, c->ph, c->pw);
	set_dims(d->padding_after, depth, 0, c->ph, c->pw);
}

/* The description of the pass by one algorithm; false if oneDNN has none. */
static bool describe_by(const struct key *key, dnnl_alg_kind_t algorithm, dnnl_primitive_desc_t *pd)
{
	const struct slp_conv *c = &key->c;
	struct slp_dnn_conv d = {.algorithm = algorithm, .inference = key->block != 0, .after = key->after};
	dnnl_primitive_desc_t forward = NULL;
	struct key of_forward = *key;
	of_forward.pass = SLP_CONV_FORWARD;
	bool plain = stays_plain(key), ok = true;
	set_windows(c, &d);
	if (key->pass != SLP_CONV_FORWARD) {
		ok = describe_tensors(&of_forward, plain, false, &d) &&
		     slp_dnn_conv_describe(&forward, engine, &d, SLP_DNN_FORWARD, NULL) == dnnl_success;
		free_tensors(&d);
	}
	ok = ok && describe_tensors(key, plain, false, &d);
	ok = ok && slp_dnn_conv_describe(pd, engine, &d, (enum slp_dnn_pass)key->pass, forward) == dnnl_success;
	if (forward) dnnl_primitive_desc_destroy(forward);
	free_tensors(&d);
	return ok;
}

static bool describe(const struct key *key, dnnl_primitive_desc_t *pd)
{
	if (key->block)
		return describe_by(key, key->winograd ? dnnl_convolution_winograd : dnnl_convolution_direct, pd);
	if (!key->inner && winograd_pays(&key->c) && describe_by(key, dnnl_convolution_winograd, pd)) return true;
	return describe_by(key, dnnl_convolution_direct, pd);
}

/* Memory for one operand, and the reorder between the two layouts if they differ. */
static bool make_port(struct port *p, slp_dnn_ref outside, slp_dnn_ref inside, bool is_output)
{
	if (dnnl_memory_create(&p->outside, outside, engine, DNNL_MEMORY_NONE) != dnnl_success) return false;
	p->inside = p->outside;
	if (dnnl_memory_desc_equal(outside, inside)) return true;
	p->inside = NULL;
	p->bytes = (dnnl_memory_desc_get_size(inside) + 63) & ~(size_t)63;
	if (dnnl_memory_create(&p->inside, inside, engine, DNNL_MEMORY_NONE) != dnnl_success) return false;
	dnnl_primitive_desc_t pd;
	slp_dnn_ref from = is_output ? inside : outside, to = is_output ? outside : inside;
	if (dnnl_reorder_primitive_desc_create(&pd, from, engine, to, engine, NULL) != dnnl_success) return false;
	bool ok = dnnl_primitive_create(&p->reorder, pd) == dnnl_success;
	dnnl_primitive_desc_destroy(pd);
	return ok;
}

/* oneDNN's names of the operands of each pass. */
static const struct name {
	dnnl_query_t query;
	int index, arg;
} names[SLP_CONV_PASSES][OPERANDS] = {
        [SLP_CONV_FORWARD] = {{dnnl_query_src_md, 0, DNNL_ARG_SRC},
                              {dnnl_query_weights_md, 0, DNNL_ARG_WEIGHTS},
                              {dnnl_query_weights_md, 1, DNNL_ARG_BIAS},
                              {dnnl_query_dst_md, 0, DNNL_ARG_DST}},
        [SLP_CONV_DATA] = {{dnnl_query_diff_src_md, 0, DNNL_ARG_DIFF_SRC},
                           {dnnl_query_weights_md, 0, DNNL_ARG_WEIGHTS},
                           {dnnl_query_weights_md, 1, DNNL_ARG_BIAS},
                           {dnnl_query_diff_dst_md, 0, DNNL_ARG_DIFF_DST}},
        [SLP_CONV_WEIGHTS] = {{dnnl_query_src_md, 0, DNNL_ARG_SRC},
                              {dnnl_query_diff_weights_md, 0, DNNL_ARG_DIFF_WEIGHTS},
                              {dnnl_query_diff_weights_md, 1, DNNL_ARG_DIFF_BIAS},
                              {dnnl_query_diff_dst_md, 0, DNNL_ARG_DIFF_DST}},
};

static bool is_output(int pass, int operand)
{
	return pass == SLP_CONV_FORWARD ? operand == Y
	       : pass == SLP_CONV_DATA  ? operand == X
	                                : operand == W || operand == B;
}

static bool make_ports(struct made *m, const_dnnl_primitive_desc_t pd)
{
	struct slp_dnn_conv d = {0};
	const slp_dnn_md *plain[OPERANDS] = {&d.x, &d.w, &d.b, &d.y};
	bool ok = describe_tensors(&m->key, true, true, &d);
	for (int i = 0; i < OPERANDS && ok; i++) {
		const struct name *name = &names[m->key.pass][i];
		if (i == B && !m->key.bias) continue;
		slp_dnn_ref inside = dnnl_primitive_desc_query_md(pd, name->query, name->index);
		slp_dnn_ref outside = i == W && m->key.packed ? inside : slp_dnn_md_ref(plain[i]);
		m->port[i].arg = name->arg;
		ok = make_port(&m->port[i], outside, inside, is_output(m->key.pass, i));
	}
	free_tensors(&d);
	return ok;
}

/* oneDNN 3 computes windows as large as the image as inner products, each in one accumulator: long ones round too much. */
static bool rounds_too_much(const struct key *key, const char *how)
{
	enum { MOST_TERMS = 1 << 15 };
	return strncmp(how, "ip:", 3) == 0 && key->c.ic / key->c.groups * slp_conv_taps(&key->c) > MOST_TERMS;
}

static bool make(struct made *m, const struct key *key)
{
	dnnl_primitive_desc_t pd;
	m->key = *key;
	if (!describe(key, &pd)) return false;
	slp_dnn_ref scratch = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
	m->scratch_bytes = dnnl_memory_desc_get_size(scratch);
	m->weight_bytes = dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0));
	const char *how = "";
	dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &how);
	m->product = strstr(how, "emm") || strstr(how, "brg"); /* gemm, brgconv, ip:any+emm (oneDNN 3) */
	bool ok = !rounds_too_much(key, how) && make_ports(m, pd) &&
	          dnnl_primitive_create(&m->convolution, pd) == dnnl_success &&
	          dnnl_memory_create(&m->scratchpad, scratch, engine, DNNL_MEMORY_NONE) == dnnl_success;
	dnnl_primitive_desc_destroy(pd);
	return ok;
}

static size_t set_of(const struct key *key)
{
	uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a */
	for (size_t i = 0; i < sizeof *key; i++) h = (h ^ ((const unsigned char *)key)[i]) * UINT64_C(1099511628211);
	return (size_t)(h ^ h >> 32) % SETS;
}

/* The entry of these sizes, made now if necessary in place of the least recently used one. */
static struct made *find(struct cache *cache, const struct key *key)
{
	struct made *set = cache->made[set_of(key)], *oldest = set;
	for (int i = 0; i < WAYS; i++) {
		struct made *m = &set[i];
		if (m->convolution && !memcmp(&m->key, key, sizeof *key)) {
			m->used = ++cache->clock;
			return m;
		}
		if (m->used < oldest->used) oldest = m;
	}
	unmake(oldest);
	if (!make(oldest, key)) {
		unmake(oldest);
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

static dnnl_status_t run_reorder(struct cache *cache, const struct port *p, bool out)
{
	dnnl_exec_arg_t args[2] = {{DNNL_ARG_FROM, out ? p->inside : p->outside},
	                           {DNNL_ARG_TO, out ? p->outside : p->inside}};
	return dnnl_primitive_execute(p->reorder, cache->stream, 2, args);
}

/* Sets all addresses to this call's: the caller's tensors, and the workspace of reordered tensors. */
static bool point(struct made *m, float *const data[OPERANDS])
{
	size_t bytes = m->scratch_bytes + 64;
	for (int i = 0; i < OPERANDS; i++) bytes += m->port[i].bytes;
	char *work = slp_workspace(SLP_WORK_CALL, bytes);
	if (!work) return false;
	for (int i = 0; i < OPERANDS; i++) {
		struct port *p = &m->port[i];
		if (!p->outside) continue;
		dnnl_memory_set_data_handle(p->outside, data[i]);
		if (!p->reorder) continue;
		dnnl_memory_set_data_handle(p->inside, work);
		work += p->bytes;
	}
	return dnnl_memory_set_data_handle(m->scratchpad, work) == dnnl_success;
}

static dnnl_status_t run(struct cache *cache, struct made *m)
{
	dnnl_exec_arg_t args[OPERANDS + 1] = {{DNNL_ARG_SCRATCHPAD, m->scratchpad}};
	dnnl_status_t s = dnnl_success;
	int n = 1;
	for (int i = 0; i < OPERANDS && s == dnnl_success; i++) {
		const struct port *p = &m->port[i];
		if (!p->outside) continue;
		args[n++] = (dnnl_exec_arg_t){p->arg, p->inside};
		if (p->reorder && !is_output(m->key.pass, i)) s = run_reorder(cache, p, false);
	}
	if (s == dnnl_success) s = dnnl_primitive_execute(m->convolution, cache->stream, n, args);
	for (int i = 0; i < OPERANDS && s == dnnl_success; i++)
		if (m->port[i].reorder && is_output(m->key.pass, i)) s = run_reorder(cache, &m->port[i], true);
	return s == dnnl_success ? dnnl_stream_wait(cache->stream) : s;
}

/* Padding too is cleared: keys are compared as bytes. */
static void make_key(struct key *key, const struct slp_conv_args *a, int threads)
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

static struct made *find_for(struct cache *cache, const struct slp_conv_args *a, int threads)
{
	struct key key;
	make_key(&key, a, threads);
	return cache ? find(cache, &key) : NULL;
}

static bool is_product(const struct slp_kernel *k, const struct slp_conv_args *a)
{
	int threads = threads_for(&a->c, k->threads), before = take_threads(threads);
	struct made *m = find_for(cache_of_thread(), a, threads);
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
	struct made *m = find_for(cache, a, threads);
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
	struct key key;
	const char *how = "";
	make_key(&key, a, threads);
	if (!cache_of_thread() || !describe(&key, &pd)) return 0;
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
	struct key key;
	make_key(&key, a, threads);
	key.packed = 0;
	struct made *m = cache ? find(cache, &key) : NULL;
	if (!m) return slp_kernel_fail(k, SL_EKERNEL, "oneDNN has no such convolution any more");
	struct port *p = &m->port[W];
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
