/* Attention between the positions of sequences, and learned position embeddings. */
#include <stdlib.h>

#include "nn/nn.h"
#include "op.h"
#include "starling/arithmetic.h"
#include "starling/functions.h"
#include "starling/nn.h"

/* ---- several heads ----------------------------------------------------------------------------------------------- */

struct attention {
	sl_block base;
	int64_t width;
	int heads;
	bool causal;
	sl_param *weight, *bias; /* of queries, keys and values, below each other */
	sl_block *out;
};

/* What x gives to queries (0), keys (1) and values (2), from first to last: (last - first, rows, heads, steps, width of
 * a head). */
static sl_tensor *project(const char *at, const struct attention *a, sl_tensor *x, int first, int last)
{
	sl_tensor *w = sl_param_use_at(at, a->weight, x), *b = a->bias ? sl_param_use_at(at, a->bias, x) : NULL;
	sl_shape s = sl_tensor_shape(x);
	int64_t width = a->width, parts = last - first;
	if (!w || (a->bias && !b)) return NULL;
	if (parts < 3) w = sl_slice_at(at, w, 0, first * width, last * width, 1);
	if (parts < 3 && b) b = sl_slice_at(at, b, 0, first * width, last * width, 1);
	sl_tensor *y = sl_linear_at(at, x, w, b, (struct sl_linear_opts){.tw = true});
	y = sl_reshape_at(at, y, SL_SHAPE(s.dim[0], s.dim[1], parts, a->heads, width / a->heads));
	return sl_transpose_at(at, y, (struct sl_reduce_opts){SL_AXES(2, 0, 3, 1, 4)});
}

static sl_tensor *part_of(const char *at, sl_tensor *all, int i)
{
	if (!all) return NULL;
	sl_shape s = sl_tensor_shape(all);
	sl_tensor *part = s.dim[0] == 1 ? all : sl_slice_at(at, all, 0, i, i + 1, 1);
	return sl_reshape_at(at, part, SL_SHAPE(s.dim[1], s.dim[2], s.dim[3], s.dim[4]));
}

static bool fits(const char *at, const struct attention *a, const char *what, sl_shape s, int64_t rows)
{
	char text[128];
	if (s.ndim == 3 && s.dim[2] == a->width && (rows < 0 || s.dim[0] == rows)) return true;
	slp_call_fail(at, "sl_forward", SL_ESHAPE, "%s got %s %s, (rows, steps, %lld) needed", sl_block_name(&a->base),
	              what, sl_shape_string(s, text), (long long)a->width);
	return false;
}

static sl_tensor *attend(const char *at, const struct attention *a, sl_tensor *q, sl_tensor *k, sl_tensor *v,
                         sl_tensor *mask, bool to_itself)
{
	const char *why = !a->causal ? "a cache needs causal self-attention (.causal)"
	                  : mask     ? "a cache needs causal self-attention of x alone, but gets a memory and a mask"
	                             : "a cache needs causal self-attention of x alone, but gets a memory";
	struct sl_attention_opts opts = {.mask = mask, .causal = a->causal};
	if (slp_cache_is_on() && to_itself && a->causal) return slp_cache_attend(at, &a->base, q, k, v);
	if ((to_itself || a->causal) && slp_cache_refuses(at, &a->base, why)) return NULL;
	return sl_scaled_dot_product_attention_at(at, q, k, v, opts);
}

static sl_tensor *attention_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	const struct attention *a = (const struct attention *)self;
	const char *at = slp_forward_call_site();
	sl_shape shape = sl_tensor_shape(in[0]);
	if (nin > 3)
		return slp_call_fail(at, "sl_forward", SL_EINVAL, "%s takes x, a memory and a mask, but got %d inputs",
		                     sl_block_name(self), nin);
	if (!fits(at, a, "x", shape, -1)) return NULL;
	if (nin > 1 && !fits(at, a, "a memory", sl_tensor_shape(in[1]), shape.dim[0])) return NULL;
	sl_tensor *q = project(at, a, in[0], 0, nin > 1 ? 1 : 3), *kv = nin > 1 ? project(at, a, in[1], 1, 3) : q;
	int first = nin > 1 ? 0 : 1;
	sl_tensor *mask = nin > 2 ? in[2] : NULL, *y;
	y = attend(at, a, part_of(at, q, 0), part_of(at, kv, first), part_of(at, kv, first + 1), mask, nin == 1);
	y = sl_transpose_at(at, y, (struct sl_reduce_opts){SL_AXES(0, 2, 1, 3)});
	y = sl_reshape_at(at, y, shape);
	return y ? sl_forward_at(at, a->out, &y, 1) : NULL;
}

/* Attention of several heads: x (rows, steps, width) attends to itself, or to a second input, the memory (rows, others,
 * width); a third input is a mask, which is broadcast to (rows, heads, steps, others), as in
 * sl_scaled_dot_product_attention. .causal: a step does not see later steps.  Parameters have PyTorch's names and
 * shapes: in_proj_weight (3 · width, width), in_proj_bias, and a dense layer out_proj.  SL_EINVAL: heads do not divide
 * the width.
 *
 *     sl_block *attention = sl_sequential(sl_layer_norm_layer(), sl_multi_head_attention(64, 4, .causal = true));
 *     sl_block *dense = sl_sequential(sl_layer_norm_layer(),
 *                                     sl_dense(256, .activation = SL_GELU, .no_flatten = true),
 *                                     sl_dense(64, .no_flatten = true));
 *     sl_block *layer = sl_sequential(sl_residual(attention, NULL, 0), sl_residual(dense, NULL, 0)); */
sl_block *sl_multi_head_attention_at(const char *at, int64_t width, int heads, struct sl_multi_head_attention_opts opts)
{
	const char *me = "sl_multi_head_attention";
	SLP_CALL(me, at);
	if (width < 1 || width > INT32_MAX || heads < 1 || width % heads)
		return slp_call_fail(at, me, SL_EINVAL, "%d heads of a width of %lld", heads, (long long)width);
	struct attention *a = slp_layer_new(at, sizeof *a, "MultiHeadAttention", "attention", attention_forward);
	if (!a) return NULL;
	a->width = width;
	a->heads = heads;
	a->causal = opts.causal;
	a->weight = sl_block_param_at(at, &a->base, "in_proj_weight", SL_SHAPE(3 * width, width),
	                              (struct sl_param_opts){.init = opts.weight_init});
	if (a->weight && !opts.no_bias)
		a->bias = sl_block_param_at(at, &a->base, "in_proj_bias", SL_SHAPE(3 * width),
		                            (struct sl_param_opts){.init = sl_zeros_init()});
	if (a->weight && (a->bias || opts.no_bias))
		a->out = sl_block_add_at(at, &a->base, "out_proj",
		                         sl_dense_at(at, width,
		                                     (struct sl_dense_opts){.no_flatten = true,
		                                                            .no_bias = opts.no_bias,
		                                                            .in_units = width,
		                                                            .weight_init = opts.weight_init}));
	if (a->out) return &a->base;
	sl_block_free(&a->base);
	return NULL;
}

/* ---- positions --------------------------------------------------------------------------------------------------- */

struct positions {
	sl_block base;
	sl_param *weight;
};

static sl_tensor *positions_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	const struct positions *p = (const struct positions *)self;
	const char *at = slp_forward_call_site();
	sl_tensor *x = slp_layer_input(self, in, nin), *w = x ? sl_param_use_at(at, p->weight, x) : NULL;
	if (!w) return NULL;
	sl_shape s = sl_tensor_shape(x), all = sl_tensor_shape(w);
	char text[128];
	if (s.ndim < 2 || s.dim[s.ndim - 1] != all.dim[1] || s.dim[s.ndim - 2] > all.dim[0])
		return slp_call_fail(at, "sl_forward", SL_ESHAPE, "%s got %s, (…, at most %lld steps, %lld) needed",
		                     sl_block_name(self), sl_shape_string(s, text), (long long)all.dim[0],
		                     (long long)all.dim[1]);
	if (slp_cache_is_on()) w = slp_cache_rows(at, self, w, s.dim[s.ndim - 2]);
	else if (s.dim[s.ndim - 2] < all.dim[0] || slp_forward.sizes_vary)
		w = sl_slice_at(at, w, 0, 0, s.dim[s.ndim - 2], 1);
	return sl_add_at(at, x, w);
}

/* Adds a learned row of `width` numbers for each position of a sequence to x (…, n, width), for n up to `steps`.
 * Parameter: weight (steps, width).  SL_EINVAL: steps or width is not positive.
 *
 *     sl_block *begin = sl_sequential(sl_embedding(words, 64), sl_position_embedding(256, 64)); */
sl_block *sl_position_embedding_at(const char *at, int64_t steps, int64_t width)
{
	SLP_CALL("sl_position_embedding", at);
	if (steps < 1 || width < 1)
		return slp_call_fail(at, "sl_position_embedding", SL_EINVAL,
		                     "%lld steps of width %lld: they must be positive", (long long)steps,
		                     (long long)width);
	struct positions *p = slp_layer_new(at, sizeof *p, "PositionEmbedding", "positions", positions_forward);
	if (!p) return NULL;
	p->weight = sl_block_param_at(at, &p->base, "weight", SL_SHAPE(steps, width), (struct sl_param_opts){0});
	if (p->weight) return &p->base;
	sl_block_free(&p->base);
	return NULL;
}
