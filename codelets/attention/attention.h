/* Scaled dot product attention: sizes and attributes, for CPUs and GPUs. */
#ifndef SLP_ATTENTION_H
#define SLP_ATTENTION_H

#include "op.h"

#ifdef __CUDACC__
#define SLP_ATTENTION_FN static __host__ __device__ inline
#else
#define SLP_ATTENTION_FN static inline
#endif

struct slp_attention_attrs {
	double scale; /* of the products; 0: one over the root of the width of q */
	bool causal;  /* query i sees keys 0 to i */
	int sources;  /* of attention_heads: tensors that hold q, k and v; else 0 */
};

/* Steps in elements: from a batch's heads to the next batch's, from head to head, from position to position. */
struct slp_head_steps {
	int64_t batch, head, row;
};

/* q (heads, t, d), k (heads, s, d), v (heads, s, dv); the mask by its steps along the axes before, along t. */
struct slp_attention {
	int64_t heads, t, s, d, dv;
	int64_t inner;                    /* heads of a batch */
	struct slp_head_steps q, k, v, y; /* of gradients, too */
	int64_t before;                   /* causal: the position of query 0 among the keys */
	double scale;
	bool causal, masked;
	int nlead;
	int64_t lead[SL_MAX_NDIM], mask_step[SL_MAX_NDIM], mask_row;
};

/* The beginning of a head's mask. */
SLP_ATTENTION_FN int64_t slp_attention_mask(const struct slp_attention *a, int64_t head)
{
	int64_t at = 0;
	for (int i = a->nlead - 1; i >= 0; i--) {
		at += head % a->lead[i] * a->mask_step[i];
		head /= a->lead[i];
	}
	return at;
}

/* The beginning of the vector at a position of a head. */
SLP_ATTENTION_FN int64_t slp_attention_at(const struct slp_attention *a, const struct slp_head_steps *o, int64_t head,
                                          int64_t place)
{
	return head / a->inner * o->batch + head % a->inner * o->head + place * o->row;
}

/* Steps where all heads of a position follow each other, as in (batch, places, parts, heads, width). */
static inline struct slp_head_steps slp_heads_at_places(int64_t places, int64_t parts, int64_t heads, int64_t width)
{
	struct slp_head_steps o = {places * parts * heads * width, width, parts * heads * width};
	return o;
}

/* Steps of heads that follow each other without gaps. */
static inline struct slp_head_steps slp_heads_in_turn(int64_t places, int64_t width)
{
	struct slp_head_steps o = {places * width, 0, width};
	return o;
}

/* The number of keys that query i sees. */
SLP_ATTENTION_FN int64_t slp_attention_seen(const struct slp_attention *a, int64_t i)
{
	return a->causal && a->before + i + 1 < a->s ? a->before + i + 1 : a->s;
}

static inline struct slp_attention slp_attention_of(const struct slp_attention_attrs *attrs, sl_shape q, sl_shape k,
                                                    sl_shape v, const sl_shape *mask)
{
	struct slp_attention a;
	int64_t step = 1;
	a.heads = a.inner = 1;
	a.nlead = q.ndim - 2;
	a.t = q.dim[a.nlead], a.d = q.dim[a.nlead + 1], a.s = k.dim[a.nlead], a.dv = v.dim[a.nlead + 1];
	a.before = 0;
	a.scale = attrs->scale;
	a.causal = attrs->causal;
	a.masked = mask != NULL;
	a.mask_row = mask && mask->dim[mask->ndim - 2] > 1 ? a.s : 0;
	if (mask) step = mask->dim[mask->ndim - 1] * mask->dim[mask->ndim - 2];
	for (int i = a.nlead - 1; i >= 0; i--) {
		int m = mask ? mask->ndim - q.ndim + i : -1;
		int64_t dim = m >= 0 ? mask->dim[m] : 1;
		a.heads *= a.lead[i] = q.dim[i];
		a.mask_step[i] = dim > 1 ? step : 0;
		step *= dim;
	}
	a.q = slp_heads_in_turn(a.t, a.d), a.k = slp_heads_in_turn(a.s, a.d);
	a.v = slp_heads_in_turn(a.s, a.dv), a.y = slp_heads_in_turn(a.t, a.dv);
	return a;
}

/* Whether cached keys have room for the keys of all queries from this position on. */
SLP_ATTENTION_FN bool slp_attention_has_room(const struct slp_attention *a, int64_t place)
{
	return place >= 0 && a->t <= a->s && place <= a->s - a->t;
}

/* The number of heads whose scores, of `bytes` an element, a GPU multiplies at a time (attention_products.cu); 0: not
 * even one head fits. */
static inline int64_t slp_attention_heads_at_once(const struct slp_attention *a, size_t bytes)
{
	const double room = 64 << 20, most = room / ((double)a->t * (double)a->s * (double)bytes + 1);
	return most < 1 ? 0 : most < (double)a->heads ? (int64_t)most : a->heads;
}

/* Bytes of the scores and, backward, of their gradients, in float32; in a half type, too, if the operands are. float64:
 * none. */
static inline size_t slp_attention_score_bytes(enum sl_dtype dtype, bool back)
{
	if (dtype == SL_FLOAT64) return 0;
	return (sizeof(float) + (slp_is_half(dtype) ? sl_dtype_size(dtype) : 0)) * (back ? 2 : 1);
}

/* cuDNN's memory for so many heads: backward, the gradients of their scores, in the half type, at multiples of 128; and
 * the workspace of its engines. */
enum { SLP_ATTENTION_MOST = 64 << 20, SLP_ATTENTION_ROOM = 64 << 10 };
static inline size_t slp_attention_graph_bytes(const struct slp_attention *a, bool back, int64_t heads)
{
	double t = (double)((a->t + 127) / 128 * 128), s = (double)((a->s + 127) / 128 * 128);
	double bytes = back ? 2 * t * s * (double)heads : 0;
	return bytes < 1e15 ? (size_t)bytes + SLP_ATTENTION_ROOM : (size_t)1 << 50;
}

/* Whether cuDNN's engines take these widths of q and v. */
static inline bool slp_attention_suits_graph(int64_t d, int64_t dv)
{
	return d > 0 && dv > 0 && d % 8 == 0 && dv % 8 == 0 && d <= 256 && dv <= 256;
}

/* The number of heads that cuDNN computes at once (attention_graph.cu), in equal parts; 0: not even one fits. */
static inline int64_t slp_attention_graph_heads(const struct slp_attention *a, bool back)
{
	size_t each = slp_attention_graph_bytes(a, back, 1) - SLP_ATTENTION_ROOM;
	int64_t most = each ? SLP_ATTENTION_MOST / (int64_t)each : a->heads;
	if (most < 1 || a->heads < 1) return 0;
	int64_t parts = (a->heads + most - 1) / most, one = (a->heads + parts - 1) / parts;
	int64_t aligned = (one + 3) / 4 * 4; /* so that logs of each part begin at multiples of 16 bytes */
	return aligned <= most && aligned <= a->heads ? aligned : one;
}

static inline size_t slp_attention_graph_work(const struct slp_attention *a, bool back)
{
	return slp_attention_graph_bytes(a, back, slp_attention_graph_heads(a, back));
}

/* A number for each query: two of these are in front of that, a sum and a logarithm. */
static inline size_t slp_attention_sums_bytes(int64_t queries)
{
	return ((size_t)queries * sizeof(float) + 255) / 256 * 256;
}

/* The number of parts into which the keys of a query are divided if the queries alone are too few for a GPU
 * (attention_kept.cu). */
static inline int64_t slp_attention_parts(const struct slp_attention *a)
{
	int64_t queries = a->heads * a->t, most = (a->s + 63) / 64, parts = queries > 0 ? 528 / queries : 1;
	parts = parts < most ? parts : most;
	return parts < 1 ? 1 : parts;
}

/* A call of attention_heads, or of its gradient, as one of attention (heads.c): k has the operands of attention, which are
 * parts of the given tensors, at the steps of a. */
struct slp_heads_call {
	struct slp_kernel k;
	struct slp_view in[7], out[3];
	struct slp_attention a;
};

#ifdef __cplusplus
extern "C" {
#endif
void slp_heads_call_of(const struct slp_kernel *k, bool back, struct slp_heads_call *c);
/* Attention over cached keys. Whether it supports the sizes and types: then it is queued. */
bool slp_attention_by_parts(const struct slp_kernel *k, const struct slp_attention *a);
/* Returns SL_EUNSUPPORTED, without a message, if the caller must compute query by query. */
enum sl_status slp_attention_by_products(const struct slp_kernel *k, const struct slp_attention *a, bool back);
/* Whether cuDNN supports it: then it is queued. */
bool slp_attention_by_graph(const struct slp_kernel *k, const struct slp_attention *a, bool back);
enum { SLP_ATTENTION_TILE = 128 }; /* the widest vectors */
/* Computes a tile of queries and one of keys at a time (attention_tiles.cu). Whether it supports the sizes: then it is
 * queued. */
bool slp_attention_by_tiles(const struct slp_kernel *k, const struct slp_attention *a, bool back);
#ifdef __cplusplus
}
#endif

/* Of a call whose input q is followed by k and v; its mask, if there is one, is input `mask`. */
static inline struct slp_attention slp_attention_sizes(const struct slp_kernel *k, int q, int mask)
{
	return slp_attention_of((const struct slp_attention_attrs *)k->attrs, k->in[q].type.shape,
	                        k->in[q + 1].type.shape, k->in[q + 2].type.shape,
	                        k->nin > mask ? &k->in[mask].type.shape : NULL);
}

#ifndef __CUDACC__
/* attention_cpu.c: the kernels for float32 */
enum sl_status slp_attention_cpu(const struct slp_kernel *k);
enum sl_status slp_attention_grad_cpu(const struct slp_kernel *k);
enum sl_status slp_attention_heads_cpu(const struct slp_kernel *k);
enum sl_status slp_attention_heads_grad_cpu(const struct slp_kernel *k);
/* attention.c: the reference kernels, by the steps of a; the rule of the gradient's operands; scratch memory. */
enum sl_status slp_attention_plain(const struct slp_kernel *k, const struct slp_attention *a);
enum sl_status slp_attention_grad_plain(const struct slp_kernel *k, const struct slp_attention *a);
enum sl_status slp_attention_check(const struct slp_infer *c, const struct slp_type *q, const struct slp_type *k,
                                   const struct slp_type *v, const struct slp_type *mask);
double slp_attention_work(const struct slp_attention *a, bool back);
size_t slp_attention_memory(const struct slp_attention *a, enum sl_dtype dtype, bool back);
/* attention of q over k and v; mask and logs may be NULL. */
void slp_attention_by_blocks(const struct slp_attention *a, const float *q, const float *k, const float *v,
                             const float *mask, float *y, float *logs);
void slp_attention_by_hand(const struct slp_attention *a, const struct slp_view *q, const struct slp_view *k,
                           const struct slp_view *v, const struct slp_view *mask, const struct slp_view *y,
                           const struct slp_view *logs);
/* Sets the scale to one over the root of the width of q, if none was given. */
void slp_attention_set_scale(struct slp_attention_attrs *attrs, sl_shape q);
/* The mask in the form that is added to scores: of the data type of q, with the keys of k on its last axis. */
sl_tensor *slp_added_mask(const char *at, sl_tensor *q, sl_tensor *k, sl_tensor *mask);
/* again.c: attention by operations that have gradients. */
bool slp_attention_again(const struct slp_grad *g, sl_tensor **out);
#endif

#endif
