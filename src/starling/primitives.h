/* Reductions, products, convolutions, losses, normalisation, moves of elements, updates of parameters; ops.h says what
 * holds for all operations. */
#ifndef STARLING_PRIMITIVES_H
#define STARLING_PRIMITIVES_H

#include <starling/options.h>
#include <starling/tensor.h>

#pragma GCC system_header
#ifdef __cplusplus
extern "C" {
#endif

/* ---- reductions: sl_sum(x), sl_sum(x, SL_AXES(0, 2), .keepdims = true) ------------------------------------------ */

struct sl_reduce_opts {
	const int *axes; /* negative ones count from the end; none: all */
	int naxes;
	bool keepdims;
};
#define SL_AXES(...) .axes = SL_ARRAY(int, __VA_ARGS__), .naxes = SL_COUNT_(int, __VA_ARGS__)
#define SL_REDUCE_(...) ((struct sl_reduce_opts){__VA_ARGS__})

SL_API sl_tensor *sl_sum_at(const char *at, sl_tensor *x, struct sl_reduce_opts opts);
SL_API sl_tensor *sl_mean_at(const char *at, sl_tensor *x, struct sl_reduce_opts opts);
SL_API sl_tensor *sl_max_at(const char *at, sl_tensor *x, struct sl_reduce_opts opts);
SL_API sl_tensor *sl_min_at(const char *at, sl_tensor *x, struct sl_reduce_opts opts);
SL_API sl_tensor *sl_norm_at(const char *at, sl_tensor *x, struct sl_reduce_opts opts);
SL_API sl_tensor *sl_prod_at(const char *at, sl_tensor *x, struct sl_reduce_opts opts);
SL_API sl_tensor *sl_any_at(const char *at, sl_tensor *x, struct sl_reduce_opts opts);
SL_API sl_tensor *sl_all_at(const char *at, sl_tensor *x, struct sl_reduce_opts opts);
SL_API sl_tensor *sl_argmax_at(const char *at, sl_tensor *x, int axis);
#define sl_sum(x, ...) sl_sum_at(SL_HERE, x, SL_REDUCE_(__VA_ARGS__))
#define sl_mean(x, ...) sl_mean_at(SL_HERE, x, SL_REDUCE_(__VA_ARGS__))
#define sl_max(x, ...) sl_max_at(SL_HERE, x, SL_REDUCE_(__VA_ARGS__))
#define sl_min(x, ...) sl_min_at(SL_HERE, x, SL_REDUCE_(__VA_ARGS__))
#define sl_norm(x, ...) sl_norm_at(SL_HERE, x, SL_REDUCE_(__VA_ARGS__))
#define sl_prod(x, ...) sl_prod_at(SL_HERE, x, SL_REDUCE_(__VA_ARGS__))
#define sl_any(x, ...) sl_any_at(SL_HERE, x, SL_REDUCE_(__VA_ARGS__))
#define sl_all(x, ...) sl_all_at(SL_HERE, x, SL_REDUCE_(__VA_ARGS__))
#define sl_argmax(x, axis) sl_argmax_at(SL_HERE, x, axis)
SL_API sl_tensor *sl_argsort_at(const char *at, sl_tensor *x, int axis, bool descending);
#define sl_argsort(x, axis, descending) sl_argsort_at(SL_HERE, x, axis, descending)
SL_API sl_tensor *sl_cumsum_at(const char *at, sl_tensor *x, int axis);
#define sl_cumsum(x, axis) sl_cumsum_at(SL_HERE, x, axis)

/* ---- products --------------------------------------------------------------------------------------------------- */

struct sl_dot_opts {
	bool ta, tb; /* use the transpose of a, of b */
};
#define SL_DOT_(...) ((struct sl_dot_opts){__VA_ARGS__})

SL_API sl_tensor *sl_dot_at(const char *at, sl_tensor *a, sl_tensor *b, struct sl_dot_opts opts);
SL_API sl_tensor *sl_matmul_at(const char *at, sl_tensor *a, sl_tensor *b, struct sl_dot_opts opts);
#define sl_dot(a, b, ...) sl_dot_at(SL_HERE, a, b, SL_DOT_(__VA_ARGS__))
#define sl_matmul(a, b, ...) sl_matmul_at(SL_HERE, a, b, SL_DOT_(__VA_ARGS__))

struct sl_linear_opts {
	bool tw; /* w is (units, inputs) instead of (inputs, units) */
};
SL_API sl_tensor *sl_linear_at(const char *at, sl_tensor *x, sl_tensor *w, sl_tensor *SL_OPTIONAL b,
                               struct sl_linear_opts opts);
#define sl_linear(x, w, b, ...) sl_linear_at(SL_HERE, x, w, b, (struct sl_linear_opts){__VA_ARGS__})

enum sl_cell { SL_CELL_TANH, SL_CELL_RELU, SL_CELL_LSTM, SL_CELL_GRU };
struct sl_recurrent_opts {
	sl_tensor *bias;       /* SL_CELL_GRU: of the state's part */
	sl_tensor *cell;       /* SL_CELL_LSTM: the first cell; NULL: zeros */
	sl_tensor **last_cell; /* SL_CELL_LSTM: gets the cell after the last step */
	bool reverse;          /* from the last step to the first */
	sl_tensor *lengths;    /* number of valid steps of each row; NULL: all */
	sl_tensor **last_state;
};
SL_API sl_tensor *sl_recurrent_at(const char *at, enum sl_cell cell, sl_tensor *gates, sl_tensor *weight,
                                  sl_tensor *SL_OPTIONAL state, struct sl_recurrent_opts opts);
#define sl_recurrent(cell, gates, weight, state, ...)                                                                  \
	sl_recurrent_at(SL_HERE, cell, gates, weight, state, (struct sl_recurrent_opts){__VA_ARGS__})

/* ---- convolution and pooling, NCHW ------------------------------------------------------------------------------ */

struct sl_conv2d_opts {
	/* {height, width}; a second stride of 0 equals the first, a second dilation of 0 is 1. */
	int stride[2] SL_IS_({1, 1}), pad[2], dilation[2] SL_IS_({1, 1});
	int groups SL_IS_(1);
	bool as_written SL_IS_(true); /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_conv2d_opts(X) X(stride, {1, 1}) X(dilation, {1, 1}) X(groups, 1)
SL_API sl_tensor *sl_conv2d_at(const char *at, sl_tensor *x, sl_tensor *w, sl_tensor *SL_OPTIONAL b,
                               struct sl_conv2d_opts opts);
#define sl_conv2d(x, w, b, ...) sl_conv2d_at(SL_HERE, x, w, b, SL_OPTIONS(sl_conv2d_opts, __VA_ARGS__))

SL_API sl_tensor *sl_pool2d_at(const char *at, sl_tensor *x, struct sl_pool2d_opts opts);
#define sl_pool2d(x, ...) sl_pool2d_at(SL_HERE, x, SL_OPTIONS(sl_pool2d_opts, __VA_ARGS__))

/* ---- softmax, losses, normalisation, dropout -------------------------------------------------------------------- */

SL_API sl_tensor *sl_softmax_at(const char *at, sl_tensor *x, int axis);
SL_API sl_tensor *sl_log_softmax_at(const char *at, sl_tensor *x, int axis);
SL_API sl_tensor *sl_softmax_cross_entropy_at(const char *at, sl_tensor *logits, sl_tensor *labels);
SL_API sl_tensor *sl_l1_loss_at(const char *at, sl_tensor *x, sl_tensor *target);
SL_API sl_tensor *sl_l2_loss_at(const char *at, sl_tensor *x, sl_tensor *target);
SL_API sl_tensor *sl_bce_logits_loss_at(const char *at, sl_tensor *logits, sl_tensor *target);
#define sl_softmax(x, axis) sl_softmax_at(SL_HERE, x, axis)
#define sl_log_softmax(x, axis) sl_log_softmax_at(SL_HERE, x, axis)
#define sl_softmax_cross_entropy(logits, labels) sl_softmax_cross_entropy_at(SL_HERE, logits, labels)
#define sl_l1_loss(x, target) sl_l1_loss_at(SL_HERE, x, target)
#define sl_l2_loss(x, target) sl_l2_loss_at(SL_HERE, x, target)
#define sl_bce_logits_loss(logits, target) sl_bce_logits_loss_at(SL_HERE, logits, target)
struct sl_huber_loss_opts {
	double delta SL_IS_(1);       /* where the square part ends */
	bool as_written SL_IS_(true); /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_huber_loss_opts(X) X(delta, 1)
SL_API sl_tensor *sl_huber_loss_at(const char *at, sl_tensor *x, sl_tensor *target, struct sl_huber_loss_opts opts);
#define sl_huber_loss(x, target, ...) sl_huber_loss_at(SL_HERE, x, target, SL_OPTIONS(sl_huber_loss_opts, __VA_ARGS__))
SL_API sl_tensor *sl_topk_hits_at(const char *at, sl_tensor *scores, sl_tensor *labels, int k);
#define sl_topk_hits(scores, labels, k) sl_topk_hits_at(SL_HERE, scores, labels, k)

struct sl_batch_norm_opts {
	double eps SL_IS_(1e-5);
	double momentum SL_IS_(0.9);  /* of the running statistics */
	bool use_global_stats;        /* normalise with the running statistics also in training */
	bool as_written SL_IS_(true); /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_batch_norm_opts(X) X(eps, 1e-5) X(momentum, 0.9)
SL_API sl_tensor *sl_batch_norm_at(const char *at, sl_tensor *x, sl_tensor *gamma, sl_tensor *beta, sl_tensor *mean,
                                   sl_tensor *var, struct sl_batch_norm_opts opts);
#define sl_batch_norm(x, gamma, beta, mean, var, ...)                                                                  \
	sl_batch_norm_at(SL_HERE, x, gamma, beta, mean, var, SL_OPTIONS(sl_batch_norm_opts, __VA_ARGS__))
struct sl_layer_norm_opts {
	double eps SL_IS_(1e-5);
	bool as_written SL_IS_(true); /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_layer_norm_opts(X) X(eps, 1e-5)
SL_API sl_tensor *sl_layer_norm_at(const char *at, sl_tensor *x, sl_tensor *gamma, sl_tensor *beta,
                                   struct sl_layer_norm_opts opts);
#define sl_layer_norm(x, gamma, beta, ...)                                                                             \
	sl_layer_norm_at(SL_HERE, x, gamma, beta, SL_OPTIONS(sl_layer_norm_opts, __VA_ARGS__))
SL_API sl_tensor *sl_dropout_at(const char *at, sl_tensor *x, double p);
#define sl_dropout(x, p) sl_dropout_at(SL_HERE, x, p)

/* ---- moving elements -------------------------------------------------------------------------------------------- */

SL_API sl_tensor *sl_transpose_at(const char *at, sl_tensor *x, struct sl_reduce_opts opts);
SL_API sl_tensor *sl_broadcast_to_at(const char *at, sl_tensor *x, sl_shape shape);
SL_API sl_tensor *sl_slice_at(const char *at, sl_tensor *x, int axis, int64_t begin, int64_t end, int64_t step);
SL_API sl_tensor *sl_concat_at(const char *at, sl_tensor *const *tensors, int count, int axis);
SL_API sl_tensor *sl_gather_at(const char *at, sl_tensor *x, sl_tensor *indices);
SL_API sl_tensor *sl_one_hot_at(const char *at, sl_tensor *indices, int64_t depth, struct sl_make make);
SL_API sl_tensor *sl_cast_at(const char *at, sl_tensor *x, enum sl_dtype dtype);
/* sl_transpose(x) reverses the axes; sl_transpose(x, SL_AXES(0, 2, 1)) puts them in this order. */
#define sl_transpose(x, ...) sl_transpose_at(SL_HERE, x, SL_REDUCE_(__VA_ARGS__))
#define sl_broadcast_to(x, shape) sl_broadcast_to_at(SL_HERE, x, shape)
#define sl_slice(x, axis, begin, end, step) sl_slice_at(SL_HERE, x, axis, begin, end, step)
#define sl_concat(tensors, count, axis) sl_concat_at(SL_HERE, tensors, count, axis)
#define sl_gather(x, indices) sl_gather_at(SL_HERE, x, indices)
#define sl_one_hot(indices, depth, ...) sl_one_hot_at(SL_HERE, indices, depth, SL_MAKE_(__VA_ARGS__))
#define sl_cast(x, dtype) sl_cast_at(SL_HERE, x, dtype)

/* ---- optimisers ------------------------------------------------------------------------------------------------- */

struct sl_sgd_opts {
	double lr;
	double momentum; /* needs momenta */
	double weight_decay;
	double rescale SL_IS_(1);           /* gradients are multiplied by it */
	bool nesterov;                      /* needs a momentum */
	bool velocity;                      /* momenta are velocities, as MXNet's; needs a momentum */
	double clip_norm SL_IS_(SL_UNSET);  /* limit of the L2 norm of all gradients together, by default none */
	double clip_value SL_IS_(SL_UNSET); /* limit of each element of a gradient, by default none */
	double lr_scale SL_IS_(1);          /* factor of lr */
	bool as_written SL_IS_(true);       /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_sgd_opts(X) X(rescale, 1) X(clip_norm, SL_UNSET) X(clip_value, SL_UNSET) X(lr_scale, 1)
SL_API enum sl_status sl_sgd_update_at(const char *at, sl_tensor *const *params, sl_tensor *const *grads,
                                       sl_tensor *const *SL_OPTIONAL momenta, int count, struct sl_sgd_opts opts);
#define sl_sgd_update(params, grads, momenta, count, ...)                                                              \
	sl_sgd_update_at(SL_HERE, params, grads, momenta, count, SL_OPTIONS(sl_sgd_opts, __VA_ARGS__))

struct sl_adam_opts {
	double lr;
	double beta1 SL_IS_(0.9), beta2 SL_IS_(0.999);
	double eps SL_IS_(1e-8);
	double weight_decay;
	bool decoupled; /* AdamW: parameters decay, not their gradients */
	double rescale SL_IS_(1), clip_norm SL_IS_(SL_UNSET), clip_value SL_IS_(SL_UNSET); /* as in sl_sgd_opts */
	int64_t step;                 /* number of this step, from 1 */
	double lr_scale SL_IS_(1);    /* as in sl_sgd_opts */
	int64_t skipped;              /* number of earlier steps that did not update these parameters */
	bool as_written SL_IS_(true); /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_adam_opts(X)                                                                                    \
	X(beta1, 0.9)                                                                                                  \
	X(beta2, 0.999) X(eps, 1e-8) X(rescale, 1) X(clip_norm, SL_UNSET) X(clip_value, SL_UNSET) X(lr_scale, 1)
SL_API enum sl_status sl_adam_update_at(const char *at, sl_tensor *const *params, sl_tensor *const *grads,
                                        sl_tensor *const *means, sl_tensor *const *vars, int count,
                                        struct sl_adam_opts opts);
#define sl_adam_update(params, grads, means, vars, count, ...)                                                         \
	sl_adam_update_at(SL_HERE, params, grads, means, vars, count, SL_OPTIONS(sl_adam_opts, __VA_ARGS__))

struct sl_rmsprop_opts {
	double lr;
	double alpha SL_IS_(0.99); /* factor of the old squares */
	double eps SL_IS_(1e-8);
	double momentum; /* needs momenta */
	double weight_decay;
	double rescale SL_IS_(1), clip_norm SL_IS_(SL_UNSET), clip_value SL_IS_(SL_UNSET); /* as in sl_sgd_opts */
	double lr_scale SL_IS_(1);                                                         /* as in sl_sgd_opts */
	bool as_written SL_IS_(true);                                                      /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_rmsprop_opts(X)                                                                                 \
	X(alpha, 0.99) X(eps, 1e-8) X(rescale, 1) X(clip_norm, SL_UNSET) X(clip_value, SL_UNSET) X(lr_scale, 1)
SL_API enum sl_status sl_rmsprop_update_at(const char *at, sl_tensor *const *params, sl_tensor *const *grads,
                                           sl_tensor *const *squares, sl_tensor *const *SL_OPTIONAL momenta, int count,
                                           struct sl_rmsprop_opts opts);
#define sl_rmsprop_update(params, grads, squares, momenta, count, ...)                                                 \
	sl_rmsprop_update_at(SL_HERE, params, grads, squares, momenta, count, SL_OPTIONS(sl_rmsprop_opts, __VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
