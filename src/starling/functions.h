/* Functions made of operations (ops.h).  They accept the same arguments, including symbols, unless they need a size
 * that is not known yet (SL_ESHAPE).  Gradients flow as through the operations that they are made of. */
#ifndef STARLING_FUNCTIONS_H
#define STARLING_FUNCTIONS_H

#include <starling/primitives.h>

#pragma GCC system_header
#ifdef __cplusplus
extern "C" {
#endif

/* ---- choosing, limiting, activations ---------------------------------------------------------------------------- */

SL_API sl_tensor *sl_where_at(const char *at, sl_tensor *condition, sl_tensor *a, sl_tensor *b);
#define sl_where(condition, a, b) sl_where_at(SL_HERE, condition, a, b)
SL_API sl_tensor *sl_masked_fill_at(const char *at, sl_tensor *x, sl_tensor *mask, double value);
#define sl_masked_fill(x, mask, value) sl_masked_fill_at(SL_HERE, x, mask, value)
SL_API sl_tensor *sl_clip_at(const char *at, sl_tensor *x, double low, double high);
#define sl_clip(x, low, high) sl_clip_at(SL_HERE, x, low, high)
SL_API sl_tensor *sl_leaky_relu_at(const char *at, sl_tensor *x, double slope);
#define sl_leaky_relu(x, slope) sl_leaky_relu_at(SL_HERE, x, slope)
SL_API sl_tensor *sl_elu_at(const char *at, sl_tensor *x, double alpha);
#define sl_elu(x, alpha) sl_elu_at(SL_HERE, x, alpha)
SL_API sl_tensor *sl_softsign_at(const char *at, sl_tensor *x);
#define sl_softsign(x) sl_softsign_at(SL_HERE, x)

/* ---- statistics over axes --------------------------------------------------------------------------------------- */

SL_API sl_tensor *sl_logsumexp_at(const char *at, sl_tensor *x, struct sl_reduce_opts opts);
#define sl_logsumexp(x, ...) sl_logsumexp_at(SL_HERE, x, SL_REDUCE_(__VA_ARGS__))
struct sl_variance_opts {
	const int *axes; /* negative ones count from the end; none: all */
	int naxes;
	bool keepdims;
	int ddof; /* subtracted from the number of elements in the divisor: 1 for the variance of a sample */
};
SL_API sl_tensor *sl_variance_at(const char *at, sl_tensor *x, struct sl_variance_opts opts);
#define sl_variance(x, ...) sl_variance_at(SL_HERE, x, (struct sl_variance_opts){__VA_ARGS__})
SL_API sl_tensor *sl_std_at(const char *at, sl_tensor *x, struct sl_variance_opts opts);
#define sl_std(x, ...) sl_std_at(SL_HERE, x, (struct sl_variance_opts){__VA_ARGS__})

/* ---- moving elements -------------------------------------------------------------------------------------------- */

SL_API enum sl_status sl_split_at(const char *at, sl_tensor *x, int axis, int count, sl_tensor **parts);
#define sl_split(x, axis, count, parts) sl_split_at(SL_HERE, x, axis, count, parts)
SL_API sl_tensor *sl_stack_at(const char *at, sl_tensor *const *tensors, int count, int axis);
#define sl_stack(tensors, count, axis) sl_stack_at(SL_HERE, tensors, count, axis)
SL_API sl_tensor *sl_tile_at(const char *at, sl_tensor *x, int axis, int64_t times);
#define sl_tile(x, axis, times) sl_tile_at(SL_HERE, x, axis, times)
SL_API sl_tensor *sl_repeat_at(const char *at, sl_tensor *x, int axis, int64_t times);
#define sl_repeat(x, axis, times) sl_repeat_at(SL_HERE, x, axis, times)
SL_API sl_tensor *sl_flip_at(const char *at, sl_tensor *x, struct sl_reduce_opts opts);
#define sl_flip(x, ...) sl_flip_at(SL_HERE, x, SL_REDUCE_(__VA_ARGS__))
struct sl_pad_opts {
	double value; /* of the new elements */
	bool reflect; /* mirror the elements at the border instead */
};
SL_API sl_tensor *sl_pad_at(const char *at, sl_tensor *x, int axis, int64_t before, int64_t after,
                            struct sl_pad_opts opts);
#define sl_pad(x, axis, before, after, ...)                                                                            \
	sl_pad_at(SL_HERE, x, axis, before, after, (struct sl_pad_opts){__VA_ARGS__})
SL_API sl_tensor *sl_shift_flip_at(const char *at, sl_tensor *x, int pad, double flip);
#define sl_shift_flip(x, pad, flip) sl_shift_flip_at(SL_HERE, x, pad, flip)
SL_API sl_tensor *sl_index_add_at(const char *at, sl_tensor *x, sl_tensor *indices, sl_tensor *rows);
#define sl_index_add(x, indices, rows) sl_index_add_at(SL_HERE, x, indices, rows)

SL_API sl_tensor *sl_take_along_at(const char *at, sl_tensor *x, sl_tensor *indices, int axis);
#define sl_take_along(x, indices, axis) sl_take_along_at(SL_HERE, x, indices, axis)
SL_API sl_tensor *sl_scatter_add_at(const char *at, sl_tensor *x, sl_tensor *indices, sl_tensor *values, int axis);
#define sl_scatter_add(x, indices, values, axis) sl_scatter_add_at(SL_HERE, x, indices, values, axis)
SL_API sl_tensor *sl_sort_at(const char *at, sl_tensor *x, int axis, bool descending);
#define sl_sort(x, axis, descending) sl_sort_at(SL_HERE, x, axis, descending)
SL_API sl_tensor *sl_topk_at(const char *at, sl_tensor *x, int64_t k, int axis, sl_tensor **SL_OPTIONAL indices);
#define sl_topk(x, k, axis, indices) sl_topk_at(SL_HERE, x, k, axis, indices)

/* ---- products --------------------------------------------------------------------------------------------------- */

SL_API sl_tensor *sl_einsum_at(const char *at, const char *equation, sl_tensor *const *tensors, int count);
#define sl_einsum(equation, ...)                                                                                       \
	sl_einsum_at(SL_HERE, equation, SL_ARRAY(sl_tensor *, __VA_ARGS__), SL_COUNT_(sl_tensor *, __VA_ARGS__))

/* ---- attention -------------------------------------------------------------------------------------------------- */

struct sl_attention_opts {
	sl_tensor *mask;               /* NULL: none */
	bool causal;                   /* a query does not see later keys */
	double scale SL_IS_(SL_UNSET); /* factor of the products; by default one over the root of a query's width */
	bool as_written SL_IS_(true);  /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_attention_opts(X) X(scale, SL_UNSET)
SL_API sl_tensor *sl_scaled_dot_product_attention_at(const char *at, sl_tensor *q, sl_tensor *k, sl_tensor *v,
                                                     struct sl_attention_opts opts);
#define sl_scaled_dot_product_attention(q, k, v, ...)                                                                  \
	sl_scaled_dot_product_attention_at(SL_HERE, q, k, v, SL_OPTIONS(sl_attention_opts, __VA_ARGS__))

struct sl_cached_attention_opts {
	double scale SL_IS_(SL_UNSET); /* as in sl_attention_opts */
	bool as_written SL_IS_(true);  /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_cached_attention_opts(X) X(scale, SL_UNSET)
SL_API sl_tensor *sl_cached_attention_at(const char *at, sl_tensor *q, sl_tensor *k, sl_tensor *v, sl_tensor *keys,
                                         sl_tensor *values, sl_tensor *place, struct sl_cached_attention_opts opts);
#define sl_cached_attention(q, k, v, keys, values, place, ...)                                                         \
	sl_cached_attention_at(SL_HERE, q, k, v, keys, values, place, SL_OPTIONS(sl_cached_attention_opts, __VA_ARGS__))

/* ---- images and sequences --------------------------------------------------------------------------------------- */

struct sl_conv1d_opts {
	int stride SL_IS_(1), pad, dilation SL_IS_(1), groups SL_IS_(1);
	bool as_written SL_IS_(true); /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_conv1d_opts(X) X(stride, 1) X(dilation, 1) X(groups, 1)
SL_API sl_tensor *sl_conv1d_at(const char *at, sl_tensor *x, sl_tensor *w, sl_tensor *SL_OPTIONAL b,
                               struct sl_conv1d_opts opts);
#define sl_conv1d(x, w, b, ...) sl_conv1d_at(SL_HERE, x, w, b, SL_OPTIONS(sl_conv1d_opts, __VA_ARGS__))
struct sl_conv_transpose2d_opts {
	int stride[2] SL_IS_({1, 1}), pad[2], dilation[2] SL_IS_({1, 1}); /* as in sl_conv2d */
	int output_pad[2]; /* additional rows and columns, if several sizes give the same x */
	int groups SL_IS_(1);
	bool as_written SL_IS_(true); /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_conv_transpose2d_opts(X) X(stride, {1, 1}) X(dilation, {1, 1}) X(groups, 1)
SL_API sl_tensor *sl_conv_transpose2d_at(const char *at, sl_tensor *x, sl_tensor *w, sl_tensor *SL_OPTIONAL b,
                                         struct sl_conv_transpose2d_opts opts);
#define sl_conv_transpose2d(x, w, b, ...)                                                                              \
	sl_conv_transpose2d_at(SL_HERE, x, w, b, SL_OPTIONS(sl_conv_transpose2d_opts, __VA_ARGS__))
struct sl_resize2d_opts {
	bool bilinear;      /* interpolates; otherwise the nearest pixel is taken */
	bool align_corners; /* bilinear: pixels in the corners stay in the corners */
};
SL_API sl_tensor *sl_resize2d_at(const char *at, sl_tensor *x, int64_t height, int64_t width,
                                 struct sl_resize2d_opts opts);
#define sl_resize2d(x, height, width, ...)                                                                             \
	sl_resize2d_at(SL_HERE, x, height, width, (struct sl_resize2d_opts){__VA_ARGS__})
SL_API sl_tensor *sl_adaptive_pool2d_at(const char *at, sl_tensor *x, enum sl_pool_type type, int64_t height,
                                        int64_t width);
#define sl_adaptive_pool2d(x, type, height, width) sl_adaptive_pool2d_at(SL_HERE, x, type, height, width)

/* ---- normalisation ---------------------------------------------------------------------------------------------- */

struct sl_rms_norm_opts {
	double eps SL_IS_(1e-5);
	bool as_written SL_IS_(true); /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_rms_norm_opts(X) X(eps, 1e-5)
SL_API sl_tensor *sl_rms_norm_at(const char *at, sl_tensor *x, sl_tensor *SL_OPTIONAL gamma,
                                 struct sl_rms_norm_opts opts);
#define sl_rms_norm(x, gamma, ...) sl_rms_norm_at(SL_HERE, x, gamma, SL_OPTIONS(sl_rms_norm_opts, __VA_ARGS__))
SL_API sl_tensor *sl_group_norm_at(const char *at, sl_tensor *x, int groups, sl_tensor *SL_OPTIONAL gamma,
                                   sl_tensor *SL_OPTIONAL beta, struct sl_layer_norm_opts opts);
#define sl_group_norm(x, groups, gamma, beta, ...)                                                                     \
	sl_group_norm_at(SL_HERE, x, groups, gamma, beta, SL_OPTIONS(sl_layer_norm_opts, __VA_ARGS__))
SL_API sl_tensor *sl_instance_norm_at(const char *at, sl_tensor *x, sl_tensor *SL_OPTIONAL gamma,
                                      sl_tensor *SL_OPTIONAL beta, struct sl_layer_norm_opts opts);
#define sl_instance_norm(x, gamma, beta, ...)                                                                          \
	sl_instance_norm_at(SL_HERE, x, gamma, beta, SL_OPTIONS(sl_layer_norm_opts, __VA_ARGS__))

/* ---- losses and similarities ------------------------------------------------------------------------------------ */

struct sl_cross_entropy_opts {
	sl_tensor *weights;     /* of the classes; NULL: all 1 */
	double label_smoothing; /* share of the probability that is spread over all classes, from 0 to 1 */
	bool ignore;            /* skip samples whose label is ignore_index */
	int64_t ignore_index;
	bool sum; /* return the sum of the losses instead of their mean */
};
SL_API sl_tensor *sl_cross_entropy_at(const char *at, sl_tensor *logits, sl_tensor *labels,
                                      struct sl_cross_entropy_opts opts);
#define sl_cross_entropy(logits, labels, ...)                                                                          \
	sl_cross_entropy_at(SL_HERE, logits, labels, (struct sl_cross_entropy_opts){__VA_ARGS__})
SL_API sl_tensor *sl_kl_div_at(const char *at, sl_tensor *log_probabilities, sl_tensor *target);
#define sl_kl_div(log_probabilities, target) sl_kl_div_at(SL_HERE, log_probabilities, target)
SL_API sl_tensor *sl_cosine_similarity_at(const char *at, sl_tensor *a, sl_tensor *b, int axis);
#define sl_cosine_similarity(a, b, axis) sl_cosine_similarity_at(SL_HERE, a, b, axis)
SL_API sl_tensor *sl_cosine_embedding_loss_at(const char *at, sl_tensor *a, sl_tensor *b, sl_tensor *target,
                                              double margin);
#define sl_cosine_embedding_loss(a, b, target, margin) sl_cosine_embedding_loss_at(SL_HERE, a, b, target, margin)

/* ---- random numbers --------------------------------------------------------------------------------------------- */

SL_API sl_tensor *sl_randint_at(const char *at, sl_shape shape, int64_t low, int64_t high, struct sl_make make);
#define sl_randint(shape, low, high, ...) sl_randint_at(SL_HERE, shape, low, high, SL_MAKE_(__VA_ARGS__))
SL_API sl_tensor *sl_bernoulli_at(const char *at, sl_tensor *probabilities);
SL_API sl_tensor *sl_permutation_at(const char *at, int64_t n, sl_device device);
#define sl_permutation(n, ...) sl_permutation_at(SL_HERE, n, (sl_device){__VA_ARGS__})
SL_API sl_tensor *sl_multinomial_at(const char *at, sl_tensor *probabilities, int64_t count);
#define sl_multinomial(probabilities, count) sl_multinomial_at(SL_HERE, probabilities, count)
#define sl_bernoulli(probabilities) sl_bernoulli_at(SL_HERE, probabilities)

#ifdef __cplusplus
}
#endif
#endif
