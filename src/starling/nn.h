/* Blocks: layers and networks with named parameters, initialisers, optimisers, losses, metrics; hybridising.
 *
 * The caller owns a new object (a block, a trainer, a step, a balance, an autotune, a metric, a cache) and frees it with
 * sl_block_free, sl_trainer_free, …; a parent owns its child blocks.  Objects that a call looks up (children,
 * parameters, their tensors, names, plans) belong to the object that they were found in.  tensor.h explains the
 * ownership of tensors.
 *
 * Errors are reported as base.h describes.  Constructors of layers return NULL, with SL_EINVAL, for options out of
 * range.  A layer checks its input when it runs: SL_ESHAPE, SL_EDTYPE as its operation documents, SL_ESTATE if
 * sl_initialize was not called, SL_EDEVICE if sl_initialize did not name the input's device. */
#ifndef STARLING_NN_H
#define STARLING_NN_H

#include <starling/autograd.h>
#include <starling/graph.h>
#include <starling/optim.h>
#include <starling/options.h>

#pragma GCC system_header
#ifdef __cplusplus
extern "C" {
#endif

/* ---- initialisers ----------------------------------------------------------------------------------------------- */

enum sl_init_kind { SL_INIT_DEFAULT, SL_INIT_CONSTANT, SL_INIT_NORMAL, SL_INIT_UNIFORM, SL_INIT_XAVIER, SL_INIT_HE };
enum sl_fan { SL_FAN_AVG, SL_FAN_IN, SL_FAN_OUT };

/* The first values of a parameter; zeroed: the layer's default (weights uniform in ±0.07, biases zero). */
struct sl_initializer {
	enum sl_init_kind kind;
	double value; /* the constant, sigma, the bound, Xavier's magnitude (default 3) or He's gain (default √2) */
	enum sl_fan fan;
	bool gaussian;   /* Xavier and He: normal instead of uniform */
	bool as_written; /* set by the functions below: a value of 0 means 0, not the default */
};
SL_API struct sl_initializer sl_zeros_init(void);
SL_API struct sl_initializer sl_ones_init(void);
SL_API struct sl_initializer sl_constant_init(double value);
SL_API struct sl_initializer sl_normal_init(double sigma);
SL_API struct sl_initializer sl_uniform_init(double bound);
SL_API struct sl_initializer sl_xavier_init(void);
SL_API struct sl_initializer sl_he_init(void);

/* ---- parameters ------------------------------------------------------------------------------------------------- */

typedef struct sl_block sl_block;
typedef struct sl_param sl_param;

struct sl_param_opts {
	struct sl_initializer init;
	enum sl_dtype dtype;
	bool no_grad; /* not trained: running statistics */
};
/* A dim of -1 is not known yet: sl_param_fit sets it. */
SL_API sl_param *sl_block_param_at(const char *at, sl_block *block, const char *name, sl_shape shape,
                                   struct sl_param_opts opts);
#define sl_block_param(block, name, shape, ...)                                                                        \
	sl_block_param_at(SL_HERE, block, name, shape, (struct sl_param_opts){__VA_ARGS__})
SL_API enum sl_status sl_param_fit_at(const char *at, sl_param *param, sl_shape shape);
#define sl_param_fit(param, shape) sl_param_fit_at(SL_HERE, param, shape)
SL_API sl_tensor *sl_param_use_at(const char *at, sl_param *param, sl_tensor *x);
#define sl_param_use(param, x) sl_param_use_at(SL_HERE, param, x)

SL_API const char *sl_param_name(const sl_param *param);
SL_API sl_shape sl_param_shape(const sl_param *param);
SL_API sl_tensor *sl_param_data_at(const char *at, sl_param *param, sl_device device);
#define sl_param_data(param, ...) sl_param_data_at(SL_HERE, param, (sl_device){__VA_ARGS__})
SL_API sl_tensor *sl_param_grad_at(const char *at, sl_param *param);
#define sl_param_grad(param) sl_param_grad_at(SL_HERE, param)
SL_API enum sl_status sl_param_set_at(const char *at, sl_param *param, sl_tensor *values);
#define sl_param_set(param, values) sl_param_set_at(SL_HERE, param, values)

/* ---- blocks ----------------------------------------------------------------------------------------------------- */

/* The base of every block.  A custom block is a structure that begins with one:
 *
 *     struct net { sl_block base; sl_block *hidden, *output; };
 *     static sl_tensor *forward(sl_block *self, sl_tensor *const *in, int nin);
 *     ...
 *     struct net *net = calloc(1, sizeof *net);
 *     sl_block_init(&net->base, "Net", forward, NULL);
 *     net->hidden = sl_block_add(&net->base, "hidden", sl_dense(256, .activation = SL_RELU));
 */
struct sl_block {
	/* Computes the result; sl_forward calls it in the current modes of recording and training. */
	sl_tensor *(*forward)(sl_block *self, sl_tensor *const *in, int nin);
	void (*destroy)(sl_block *self); /* frees the structure around the base; NULL: free(self) */
	/* Optional: forward of n shards together, x[i] to y[i] (which may be the same array), by sl_forward_shards of
	 * the children and operations on each shard.  Only blocks around synchronised layers need it. */
	enum sl_status (*forward_shards)(sl_block *self, int n, sl_tensor *const *x, sl_tensor **y);
	struct slp_block *base; /* the library's part: name, children, parameters, plans */
};

SL_API enum sl_status sl_block_init_at(const char *at, sl_block *block, const char *type,
                                       sl_tensor *(*forward)(sl_block *, sl_tensor *const *, int),
                                       void (*SL_OPTIONAL destroy)(sl_block *));
#define sl_block_init(block, type, forward, destroy) sl_block_init_at(SL_HERE, block, type, forward, destroy)
SL_API sl_block *sl_block_add_at(const char *at, sl_block *parent, const char *SL_OPTIONAL name, sl_block *child);
#define sl_block_add(parent, name, child) sl_block_add_at(SL_HERE, parent, name, child)
SL_API sl_block *sl_block_replace_at(const char *at, sl_block *parent, const char *name, sl_block *child);
#define sl_block_replace(parent, name, child) sl_block_replace_at(SL_HERE, parent, name, child)
SL_API sl_block *sl_block_retain(sl_block *SL_OPTIONAL block);
SL_API void sl_block_free(sl_block *SL_OPTIONAL block);
SL_API const char *sl_block_name(const sl_block *block);
SL_API enum sl_status sl_block_set_prefix_at(const char *at, sl_block *block, const char *prefix);
#define sl_block_set_prefix(block, prefix) sl_block_set_prefix_at(SL_HERE, block, prefix)
SL_API int sl_block_children(const sl_block *block);
SL_API sl_block *sl_block_child(const sl_block *block, int i);
SL_API int sl_block_params(const sl_block *block, sl_param **SL_OPTIONAL params, int max);
SL_API sl_param *sl_block_find_at(const char *at, sl_block *block, const char *path);
#define sl_block_find(block, path) sl_block_find_at(SL_HERE, block, path)

SL_API sl_tensor *sl_forward_at(const char *at, sl_block *block, sl_tensor *const *in, int nin);
/* sl_forward(net, x), sl_forward(net, x, y) */
#define sl_forward(block, ...)                                                                                         \
	sl_forward_at(SL_HERE, block, SL_ARRAY(sl_tensor *, __VA_ARGS__), SL_COUNT_(sl_tensor *, __VA_ARGS__))

/* Several results: forward returns the first, and passes the others to sl_also, in their order. */
enum { SL_MAX_RESULTS = 256 };
SL_API enum sl_status sl_also_at(const char *at, sl_tensor *result);
#define sl_also(result) sl_also_at(SL_HERE, result)
SL_API enum sl_status sl_forward_all_at(const char *at, sl_block *block, sl_tensor *const *in, int nin, sl_tensor **out,
                                        int nout);
#define sl_forward_all(block, in, nin, out, nout) sl_forward_all_at(SL_HERE, block, in, nin, out, nout)
SL_API int sl_forward_most_at(const char *at, sl_block *block, sl_tensor *const *in, int nin, sl_tensor **out,
                              int most);
#define sl_forward_most(block, in, nin, out, most) sl_forward_most_at(SL_HERE, block, in, nin, out, most)

SL_API enum sl_status sl_block_recompute_at(const char *at, sl_block *block, bool on);
#define sl_block_recompute(block, on) sl_block_recompute_at(SL_HERE, block, on)

SL_API enum sl_status sl_forward_shards_at(const char *at, sl_block *block, int n, sl_tensor *const *x, sl_tensor **y);
#define sl_forward_shards(block, n, x, y) sl_forward_shards_at(SL_HERE, block, n, x, y)

/* Generating sequences step by step, with the keys, values and positions of earlier steps kept. */
typedef struct sl_cache sl_cache;
SL_API sl_cache *sl_cache_new_at(const char *at, sl_block *net, int64_t steps);
#define sl_cache_new(net, steps) sl_cache_new_at(SL_HERE, net, steps)
SL_API void sl_cache_free(sl_cache *SL_OPTIONAL cache);
SL_API sl_tensor *sl_cache_forward_at(const char *at, sl_cache *cache, sl_tensor *x);
#define sl_cache_forward(cache, x) sl_cache_forward_at(SL_HERE, cache, x)
SL_API int64_t sl_cache_length(const sl_cache *cache);
SL_API enum sl_status sl_cache_cut_at(const char *at, sl_cache *cache, int64_t length);
#define sl_cache_cut(cache, length) sl_cache_cut_at(SL_HERE, cache, length)

struct sl_initialize_opts {
	struct sl_initializer init;
	const sl_device *devices; /* the devices that may use the parameters; NULL: any */
	int ndevices;
	enum sl_dtype dtype; /* of parameters without their own data type */
	bool force;          /* also initialise parameters that have values */
	int gather;          /* number of calls of sl_backward whose gradients are added; 0: 1 */
};
SL_API enum sl_status sl_initialize_at(const char *at, sl_block *block, struct sl_initialize_opts opts);
#define sl_initialize(block, ...) sl_initialize_at(SL_HERE, block, (struct sl_initialize_opts){__VA_ARGS__})

SL_API enum sl_status sl_summary_at(const char *at, FILE *file, sl_block *block, sl_shape input);
#define sl_summary(file, block, input) sl_summary_at(SL_HERE, file, block, input)
SL_API enum sl_status sl_summary_of_at(const char *at, FILE *file, sl_block *block, sl_tensor *const *in, int nin);
#define sl_summary_of(file, block, in, nin) sl_summary_of_at(SL_HERE, file, block, in, nin)

/* ---- finding mistakes ------------------------------------------------------------------------------------------- */

/* Called after a block's forward, with its inputs and results. */
typedef void sl_hook(sl_block *block, sl_tensor *const *in, int nin, sl_tensor *const *out, int nout, void *context);
SL_API enum sl_status sl_block_hook_at(const char *at, sl_block *block, sl_hook *SL_OPTIONAL hook,
                                       void *SL_OPTIONAL context);
#define sl_block_hook(block, hook, context) sl_block_hook_at(SL_HERE, block, hook, context)

/* The element whose gradient differs most from central differences. */
struct sl_gradcheck_worst {
	int input;             /* its number; -1: of a parameter */
	const sl_param *param; /* NULL: of an input */
	int64_t element;
	double gradient, difference; /* from sl_backward, from central differences */
	double error;                /* their distance, over the largest of both and 1 */
};
struct sl_gradcheck_opts {
	double step SL_IS_(1e-6); /* to both sides, times the larger of the element and 1 */
	double tolerance SL_IS_(1e-6);
	int64_t elements SL_IS_(SL_UNSET_INT); /* largest number checked in each tensor, spread evenly [all] */
	struct sl_gradcheck_worst *worst;      /* filled in; NULL: not wanted */
	bool as_written SL_IS_(true);          /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_gradcheck_opts(X) X(step, 1e-6) X(tolerance, 1e-6) X(elements, SL_UNSET_INT)
typedef sl_tensor *sl_function(void *context, sl_tensor *const *in, int nin);
SL_API enum sl_status sl_gradcheck_at(const char *at, sl_function *function, void *SL_OPTIONAL context,
                                      sl_tensor *const *in, int nin, struct sl_gradcheck_opts opts);
#define sl_gradcheck(function, context, in, nin, ...)                                                                  \
	sl_gradcheck_at(SL_HERE, function, context, in, nin, SL_OPTIONS(sl_gradcheck_opts, __VA_ARGS__))
SL_API enum sl_status sl_gradcheck_block_at(const char *at, sl_block *block, sl_tensor *const *in, int nin,
                                            struct sl_gradcheck_opts opts);
#define sl_gradcheck_block(block, in, nin, ...)                                                                        \
	sl_gradcheck_block_at(SL_HERE, block, in, nin, SL_OPTIONS(sl_gradcheck_opts, __VA_ARGS__))

/* A rule for arrays whose names in a file match `file`, in which a star matches any text: their parameter's path is
 * `path`, with that text in place of its star. */
struct sl_param_name {
	const char *file, *path; /* path NULL: these arrays are skipped */
	bool transposed;         /* the matrix in the file is the parameter's transpose */
};
struct sl_load_opts {
	bool lenient;                      /* report missing and superfluous parameters instead of failing */
	const struct sl_param_name *names; /* rules, one applied after the other: SL_PARAM_NAMES({"wte.*", "0.*"}, …) */
	int nnames;
};
#define SL_PARAM_NAMES(...)                                                                                            \
	SL_PARTLY_(.names = SL_ARRAY(struct sl_param_name, __VA_ARGS__),                                               \
	           .nnames = SL_COUNT_(struct sl_param_name, __VA_ARGS__))
SL_API enum sl_status sl_save_params_at(const char *at, sl_block *block, const char *path);
#define sl_save_params(block, path) sl_save_params_at(SL_HERE, SL_NO_PATH_(block), path)
SL_API enum sl_status sl_load_params_at(const char *at, sl_block *block, const char *path, struct sl_load_opts opts);
#define sl_load_params(block, path, ...) sl_load_params_at(SL_HERE, block, path, (struct sl_load_opts){__VA_ARGS__})
typedef void sl_param_listed(const char *name, enum sl_dtype dtype, sl_shape shape, void *context);
SL_API enum sl_status sl_list_params_at(const char *at, const char *path, sl_param_listed *each,
                                        void *SL_OPTIONAL context);
#define sl_list_params(path, each, context) sl_list_params_at(SL_HERE, path, each, context)

/* ---- layers; a name that an operation has ends in _layer -------------------------------------------------------- */

struct sl_dense_opts {
	enum sl_activation activation;
	bool no_bias, no_flatten;
	int64_t in_units; /* 0: inferred from the first input */
	struct sl_initializer weight_init, bias_init;
};
SL_API sl_block *sl_dense_at(const char *at, int64_t units, struct sl_dense_opts opts);
#define sl_dense(units, ...) sl_dense_at(SL_HERE, units, (struct sl_dense_opts){__VA_ARGS__})
struct sl_conv2d_layer_opts {
	/* As in sl_conv2d; a second kernel of 0 equals the first. */
	int kernel[2], stride[2] SL_IS_({1, 1}), pad[2], dilation[2] SL_IS_({1, 1});
	int groups SL_IS_(1);
	bool no_bias;
	enum sl_activation activation;
	int64_t in_channels;
	struct sl_initializer weight_init, bias_init;
	bool as_written SL_IS_(true); /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_conv2d_layer_opts(X) X(stride, {1, 1}) X(dilation, {1, 1}) X(groups, 1)
SL_API sl_block *sl_conv2d_layer_at(const char *at, int64_t channels, struct sl_conv2d_layer_opts opts);
#define sl_conv2d_layer(channels, ...)                                                                                 \
	sl_conv2d_layer_at(SL_HERE, channels, SL_OPTIONS(sl_conv2d_layer_opts, __VA_ARGS__))
struct sl_batch_norm_layer_opts {
	double eps SL_IS_(1e-5), momentum SL_IS_(0.9); /* as in sl_batch_norm */
	bool no_scale, no_center;                      /* gamma stays 1, beta 0 */
	bool synchronised;                             /* statistics of all shards: sl_forward_shards, sl_step_run */
	int64_t in_channels;
	bool as_written SL_IS_(true); /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_batch_norm_layer_opts(X) X(eps, 1e-5) X(momentum, 0.9)
struct sl_layer_norm_layer_opts {
	double eps SL_IS_(1e-5);
	int64_t in_channels;
	bool as_written SL_IS_(true); /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_layer_norm_layer_opts(X) X(eps, 1e-5)
/* kernel, stride, pad: as in sl_pool2d; .type is set by the name */
SL_API sl_block *sl_max_pool2d_layer_at(const char *at, int kernel, struct sl_pool2d_opts opts);
#define sl_max_pool2d_layer(kernel, ...)                                                                               \
	sl_max_pool2d_layer_at(SL_HERE, kernel, SL_OPTIONS(sl_pool2d_opts, __VA_ARGS__))
SL_API sl_block *sl_avg_pool2d_layer_at(const char *at, int kernel, struct sl_pool2d_opts opts);
#define sl_avg_pool2d_layer(kernel, ...)                                                                               \
	sl_avg_pool2d_layer_at(SL_HERE, kernel, SL_OPTIONS(sl_pool2d_opts, __VA_ARGS__))
SL_API sl_block *sl_global_max_pool2d_layer_at(const char *at);
#define sl_global_max_pool2d_layer() sl_global_max_pool2d_layer_at(SL_HERE)
SL_API sl_block *sl_global_avg_pool2d_layer_at(const char *at);
#define sl_global_avg_pool2d_layer() sl_global_avg_pool2d_layer_at(SL_HERE)
SL_API sl_block *sl_batch_norm_layer_at(const char *at, struct sl_batch_norm_layer_opts opts);
#define sl_batch_norm_layer(...) sl_batch_norm_layer_at(SL_HERE, SL_OPTIONS(sl_batch_norm_layer_opts, __VA_ARGS__))
SL_API sl_block *sl_layer_norm_layer_at(const char *at, struct sl_layer_norm_layer_opts opts);
#define sl_layer_norm_layer(...) sl_layer_norm_layer_at(SL_HERE, SL_OPTIONS(sl_layer_norm_layer_opts, __VA_ARGS__))
SL_API sl_block *sl_activation_layer_at(const char *at, enum sl_activation activation);
#define sl_activation_layer(activation) sl_activation_layer_at(SL_HERE, activation)
SL_API sl_block *sl_dropout_layer_at(const char *at, double p);
#define sl_dropout_layer(p) sl_dropout_layer_at(SL_HERE, p)
SL_API sl_block *sl_flatten_layer_at(const char *at);
#define sl_flatten_layer() sl_flatten_layer_at(SL_HERE)
SL_API sl_block *sl_embedding_at(const char *at, int64_t words, int64_t width);
#define sl_embedding(words, width) sl_embedding_at(SL_HERE, words, width)
SL_API sl_block *sl_position_embedding_at(const char *at, int64_t steps, int64_t width);
#define sl_position_embedding(steps, width) sl_position_embedding_at(SL_HERE, steps, width)
struct sl_multi_head_attention_opts {
	bool causal; /* a step does not see later steps */
	bool no_bias;
	struct sl_initializer weight_init;
};
SL_API sl_block *sl_multi_head_attention_at(const char *at, int64_t width, int heads,
                                            struct sl_multi_head_attention_opts opts);
#define sl_multi_head_attention(width, heads, ...)                                                                     \
	sl_multi_head_attention_at(SL_HERE, width, heads, (struct sl_multi_head_attention_opts){__VA_ARGS__})
struct sl_recurrent_layer_opts {
	int layers SL_IS_(1); /* one on top of the other */
	bool bidirectional;   /* each layer in both directions: the results are twice as wide */
	double dropout;       /* between layers, in training */
	bool batch_first;     /* x is (rows, steps, inputs) instead of (steps, rows, inputs); the result likewise */
	bool lengths;         /* the second input has the number of valid steps of each row */
	bool no_bias;
	bool relu;                    /* sl_rnn: instead of tanh */
	int64_t in_units;             /* 0: inferred from the first input */
	struct sl_initializer init;   /* of all parameters; default: uniform, up to one over the root of hidden */
	bool as_written SL_IS_(true); /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_recurrent_layer_opts(X) X(layers, 1)
SL_API sl_block *sl_rnn_at(const char *at, int64_t hidden, struct sl_recurrent_layer_opts opts);
#define sl_rnn(hidden, ...) sl_rnn_at(SL_HERE, hidden, SL_OPTIONS(sl_recurrent_layer_opts, __VA_ARGS__))
SL_API sl_block *sl_lstm_at(const char *at, int64_t hidden, struct sl_recurrent_layer_opts opts);
#define sl_lstm(hidden, ...) sl_lstm_at(SL_HERE, hidden, SL_OPTIONS(sl_recurrent_layer_opts, __VA_ARGS__))
SL_API sl_block *sl_gru_at(const char *at, int64_t hidden, struct sl_recurrent_layer_opts opts);
#define sl_gru(hidden, ...) sl_gru_at(SL_HERE, hidden, SL_OPTIONS(sl_recurrent_layer_opts, __VA_ARGS__))
SL_API sl_block *sl_lambda_at(const char *at, const char *SL_OPTIONAL name, sl_tensor *(*function)(sl_tensor *x));
#define sl_lambda(name, function) sl_lambda_at(SL_HERE, name, function)
/* x + body(x), or shortcut(x) + body(x), then an activation; the new block owns its children. */
SL_API sl_block *sl_residual_at(const char *at, sl_block *body, sl_block *SL_OPTIONAL shortcut,
                                enum sl_activation activation);
#define sl_residual(body, shortcut, activation) sl_residual_at(SL_HERE, body, shortcut, activation)
SL_API sl_block *sl_sequential_at(const char *at, sl_block *const *children, int count);
/* One after the other; the new block owns its children. */
#define sl_sequential(...)                                                                                             \
	sl_sequential_at(SL_HERE, SL_ARRAY(sl_block *, __VA_ARGS__), SL_COUNT_(sl_block *, __VA_ARGS__))

/* ---- hybridising ------------------------------------------------------------------------------------------------ */

/* Sizes that an axis is padded to, so that batches of many lengths share a few programs (doc/hybrid.md). */
struct sl_buckets {
	int axis;          /* the axis of the inputs */
	int64_t sizes[17]; /* up to 16, rising, then 0; none: no padding */
	unsigned inputs; /* bit i: input i is padded, targets after inputs; 0: all with the first input's size there */
};
struct sl_hybridize_opts {
	bool off;            /* run imperatively again */
	bool static_alloc;   /* keep the memory of intermediates between calls */
	bool static_shape;   /* refuse another input shape instead of compiling a second plan */
	bool fallback;       /* if the block cannot be traced, run it imperatively and say so once */
	unsigned passes_off; /* as sl_compile_opts.off */
	struct sl_buckets buckets;
	size_t memory; /* bytes of a GPU that programs may use, which record nothing; 0: no limit */
};
SL_API enum sl_status sl_hybridize_at(const char *at, sl_block *block, struct sl_hybridize_opts opts);
#define sl_hybridize(block, ...) sl_hybridize_at(SL_HERE, block, (struct sl_hybridize_opts){__VA_ARGS__})

SL_API const sl_plan *sl_block_plan(const sl_block *block, int i);

/* ---- optimisers and training ------------------------------------------------------------------------------------ */

/* The learning rate at a step: start at lr, warm up linearly, then … */
enum sl_schedule_kind { SL_CONSTANT, SL_STEPS, SL_COSINE, SL_POLYNOMIAL };
struct sl_schedule {
	enum sl_schedule_kind kind;
	int64_t warmup; /* steps from 0 up to lr */
	int64_t every;  /* SL_STEPS: number of steps after which lr is multiplied by factor */
	double factor SL_IS_(0.1);
	int64_t total; /* SL_COSINE, SL_POLYNOMIAL: steps until final_lr */
	double final_lr, power SL_IS_(1);
	bool as_written SL_IS_(true); /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_schedule(X) X(factor, 0.1) X(power, 1)
/* Losses are multiplied before the backward pass, so that small gradients do not vanish in float16. */
struct sl_loss_scaling {
	double start SL_IS_(SL_UNSET); /* the first scale, say 65536; by default none */
	double growth SL_IS_(2), backoff
	        SL_IS_(0.5); /* factors of the scale: after `every` steps without an overflow, and after an overflow */
	int64_t every SL_IS_(2000);
	bool as_written SL_IS_(true); /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_loss_scaling(X) X(start, SL_UNSET) X(growth, 2) X(backoff, 0.5) X(every, 2000)
/* An optimiser with its settings; optim.h explains them, doc/training.md lists the settings of each optimiser and their
 * defaults. */
#define SL_GIVEN_FIELD_(type, field, range, x) type field SL_IS_(SL_UNSET);
#define SL_PLAIN_FIELD_(type, field, range, x) type field;
struct sl_optimizer {
	enum sl_optimizer_kind kind;
	double lr SL_IS_(SL_UNSET); /* default: the optimiser's */
	SL_HYPERPARAMETER_LIST(SL_GIVEN_FIELD_, SL_PLAIN_FIELD_, )
	struct sl_schedule schedule;
	struct sl_loss_scaling loss_scaling;
	bool shard_state;   /* each of several processes keeps the optimiser's state of a part of the parameters */
	sl_device state_on; /* where states are, and parameters are updated [the parameters' own device] */
	bool as_written SL_IS_(true); /* see SL_OPTIONS */
};
#define SL_GIVEN_DEFAULT_(type, field, range, X) X(field, SL_UNSET)
#define SL_PLAIN_DEFAULT_(type, field, range, X)
/* clang-format off */
#define SL_DEFAULTS_sl_optimizer(X)                                                                                    \
	X(lr, SL_UNSET) SL_HYPERPARAMETER_LIST(SL_GIVEN_DEFAULT_, SL_PLAIN_DEFAULT_, X)                                \
	X(schedule, SL_FILLED_(sl_schedule)) X(loss_scaling, SL_FILLED_(sl_loss_scaling))
/* clang-format on */

SL_API enum sl_status sl_optimizer_update_at(const char *at, struct sl_optimizer optimizer, int64_t step,
                                             double rescale, sl_tensor *const *params, sl_tensor *const *grads,
                                             sl_tensor *const *first, sl_tensor *const *second, int count);
#define sl_optimizer_update(optimizer, step, rescale, params, grads, first, second, count)                             \
	sl_optimizer_update_at(SL_HERE, optimizer, step, rescale, params, grads, first, second, count)
SL_API int sl_optimizer_states(const struct sl_optimizer *optimizer);
SL_API double sl_optimizer_lr(const struct sl_optimizer *optimizer);

/* Updates the parameters of a block. */
typedef struct sl_trainer sl_trainer;
SL_API sl_trainer *sl_trainer_new_at(const char *at, sl_block *block, struct sl_optimizer optimizer);
#define sl_trainer_new(block, ...) sl_trainer_new_at(SL_HERE, block, __VA_ARGS__)
SL_API void sl_trainer_free(sl_trainer *SL_OPTIONAL trainer);
struct sl_trainer_step_opts {
	bool ignore_stale; /* skip parameters that no sl_backward has reached since the last step */
};
SL_API enum sl_status sl_trainer_step_at(const char *at, sl_trainer *trainer, int64_t batch_size,
                                         struct sl_trainer_step_opts opts);
#define sl_trainer_step(trainer, batch_size, ...)                                                                      \
	sl_trainer_step_at(SL_HERE, trainer, batch_size, (struct sl_trainer_step_opts){__VA_ARGS__})
/* Settings of a group of parameters; omitted ones stay unchanged. */
struct sl_group_opts {
	double lr_scale SL_IS_(SL_UNSET);     /* times the learning rate */
	double weight_decay SL_IS_(SL_UNSET); /* instead of the optimiser's */
	bool no_decay;
	bool as_written SL_IS_(true); /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_group_opts(X) X(lr_scale, SL_UNSET) X(weight_decay, SL_UNSET)
SL_API enum sl_status sl_trainer_group_at(const char *at, sl_trainer *trainer, const char *pattern,
                                          struct sl_group_opts opts);
#define sl_trainer_group(trainer, pattern, ...)                                                                        \
	sl_trainer_group_at(SL_HERE, trainer, pattern, SL_OPTIONS(sl_group_opts, __VA_ARGS__))
SL_API enum sl_status sl_freeze_at(const char *at, sl_block *block, const char *pattern);
#define sl_freeze(block, pattern) sl_freeze_at(SL_HERE, block, pattern)
SL_API enum sl_status sl_unfreeze_at(const char *at, sl_block *block, const char *pattern);
#define sl_unfreeze(block, pattern) sl_unfreeze_at(SL_HERE, block, pattern)
SL_API enum sl_status sl_trainer_use_averages_at(const char *at, sl_trainer *trainer, bool averages);
#define sl_trainer_use_averages(trainer, averages) sl_trainer_use_averages_at(SL_HERE, trainer, averages)
SL_API enum sl_status sl_trainer_save_at(const char *at, sl_trainer *trainer, const char *path);
#define sl_trainer_save(trainer, path) sl_trainer_save_at(SL_HERE, SL_NO_PATH_(trainer), path)
SL_API enum sl_status sl_trainer_load_at(const char *at, sl_trainer *trainer, const char *path);
#define sl_trainer_load(trainer, path) sl_trainer_load_at(SL_HERE, trainer, path)
SL_API double sl_trainer_lr(const sl_trainer *trainer);
SL_API void sl_trainer_set_lr(sl_trainer *trainer, double lr);
SL_API int64_t sl_trainer_steps(const sl_trainer *trainer);
SL_API double sl_trainer_loss_scale(const sl_trainer *trainer);
SL_API int64_t sl_trainer_overflows(const sl_trainer *trainer);
SL_API double sl_schedule_lr(const struct sl_schedule *SL_OPTIONAL schedule, double lr, int64_t step);

/* The loss function of a whole training step: sl_softmax_cross_entropy_at, … */
typedef sl_tensor *sl_loss(const char *at, sl_tensor *output, sl_tensor *target);
/* Any loss of a whole step: of the network's results and the targets, in their order. */
typedef sl_tensor *sl_loss_of_all(void *context, sl_tensor *const *out, int nout, sl_tensor *const *targets,
                                  int ntargets);
/* A whole training step as one plan: forward, loss, backward, update. */
typedef struct sl_step sl_step;
/* The objective of a whole step whose loss has several elements, one for each row or token: their mean or their sum. */
enum sl_reduction { SL_REDUCTION_MEAN, SL_REDUCTION_SUM };
struct sl_step_opts {
	sl_loss_of_all *loss_of_all; /* instead of loss: a function of all results and targets */
	void *context;               /* passed to loss_of_all */
	unsigned passes_off;
	enum sl_reduction reduction;  /* [SL_REDUCTION_MEAN] */
	int accumulate SL_IS_(1);     /* number of runs, of a micro-batch each, that make a step of the trainer */
	struct sl_buckets buckets;    /* losses of padding do not count */
	size_t memory;                /* bytes that a step may use on its GPU; 0: what there is */
	bool as_written SL_IS_(true); /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_step_opts(X) X(accumulate, 1)
SL_API sl_step *sl_step_compile_at(const char *at, sl_block *net, sl_loss *loss, sl_trainer *trainer,
                                   struct sl_step_opts opts);
#define sl_step_compile(net, loss, trainer, ...)                                                                       \
	sl_step_compile_at(SL_HERE, net, loss, trainer, SL_OPTIONS(sl_step_opts, __VA_ARGS__))
/* A batch for a whole step, and places for its results; a call passes x, target, output, or fields by name. */
struct sl_step_batch {
	sl_tensor *x, *target;     /* of a network with one input, and a loss with one target */
	sl_tensor **output;        /* NULL, or gets the first result of the network, of each shard */
	sl_tensor *const *in;      /* instead of x: nin inputs, of each shard */
	int nin;                   /* [1] */
	sl_tensor *const *targets; /* instead of target: ntargets, of each shard; NULL: none */
	int ntargets;              /* [1] */
	sl_tensor **out;           /* instead of output: gets the first nout results, of each shard */
	int nout;
	sl_tensor **losses; /* NULL, or gets the losses of each shard */
	int shards;         /* number of shards of the batch; 0: it is not split */
	int unused;
};
#ifdef __cplusplus
#define SL_STEP_BATCH_(...) SL_PARTLY_((struct sl_step_batch){__VA_ARGS__})
#else /* with a name in the list, compilers do not warn about the fields that are left out */
#define SL_STEP_BATCH_(...) ((struct sl_step_batch){__VA_ARGS__, .unused = 0})
#endif
SL_API sl_tensor *sl_step_run_at(const char *at, sl_step *step, struct sl_step_batch batch);
#define sl_step_run(step, ...) sl_step_run_at(SL_HERE, step, SL_STEP_BATCH_(__VA_ARGS__))
SL_API enum sl_status sl_step_prepare_at(const char *at, sl_step *step, struct sl_step_batch batch);
#define sl_step_prepare(step, ...) sl_step_prepare_at(SL_HERE, step, SL_STEP_BATCH_(__VA_ARGS__))
SL_API struct sl_plan_info sl_step_info(const sl_step *step);
SL_API const sl_graph *sl_step_graph(const sl_step *step);
SL_API void sl_step_free(sl_step *SL_OPTIONAL step);

/* The names of version 0.1, without sl_step_batch; the release after 0.2 removes them. */
#define sl_step_compile_all(net_, loss_, context_, trainer_, ...)                                                      \
	sl_step_compile(net_, NULL, trainer_, .loss_of_all = loss_, .context = context_, __VA_ARGS__)
#define SL_STEP_ALL_(in_, nin_, targets_, ntargets_)                                                                   \
	.in = in_, .nin = __extension__((nin_) ?: -1), .targets = (ntargets_) ? (sl_tensor *const *)(targets_) : NULL, \
	.ntargets = ntargets_
#define SL_STEP_SHARDS_(losses_, n_) .losses = losses_, .shards = __extension__((n_) ?: -1)
#define sl_step_run_all(step_, in_, nin_, targets_, ntargets_, out_, nout_)                                            \
	sl_step_run(step_, SL_STEP_ALL_(in_, nin_, targets_, ntargets_), .out = out_, .nout = nout_)
#define sl_step_run_all_shards(step_, n_, in_, nin_, targets_, ntargets_, losses_, out_, nout_)                        \
	(sl_step_run(step_, SL_STEP_ALL_(in_, nin_, targets_, ntargets_), .out = out_, .nout = nout_,                  \
	             SL_STEP_SHARDS_(losses_, n_))                                                                     \
	         ? SL_OK                                                                                               \
	         : sl_error())
#define sl_step_run_shards(step_, n_, x_, targets_, losses_, outputs_)                                                 \
	(sl_step_run(step_, .output = outputs_, .in = x_, .nin = 1, .targets = targets_, .ntargets = 1,                \
	             SL_STEP_SHARDS_(losses_, n_))                                                                     \
	         ? SL_OK                                                                                               \
	         : sl_error())
#define sl_step_prepare_all(step_, in_, nin_, targets_, ntargets_)                                                     \
	sl_step_prepare(step_, SL_STEP_ALL_(in_, nin_, targets_, ntargets_))

/* ---- several devices -------------------------------------------------------------------------------------------- */

/* Shares of devices in proportion to their measured speed. */
typedef struct sl_balance sl_balance;
SL_API sl_balance *sl_balance_new_at(const char *at, const sl_device *devices, int n);
#define sl_balance_new(devices, n) sl_balance_new_at(SL_HERE, devices, n)
SL_API bool sl_balance_update(sl_balance *balance); /* waits for all work */
SL_API double sl_balance_speed(const sl_balance *balance, int i);
SL_API void sl_balance_free(sl_balance *SL_OPTIONAL balance);

/* Finds the fastest of several ways to do a step. */
typedef struct sl_autotune sl_autotune;
SL_API sl_autotune *sl_autotune_new_at(const char *at, int ways);
#define sl_autotune_new(ways) sl_autotune_new_at(SL_HERE, ways)
SL_API int sl_autotune_next(sl_autotune *autotune);
SL_API bool sl_autotune_decided(const sl_autotune *autotune);
SL_API double sl_autotune_seconds(const sl_autotune *autotune, int way);
SL_API void sl_autotune_free(sl_autotune *SL_OPTIONAL autotune);
/* The names of version 0.1; the release after 0.2 removes them. */
#define sl_trial sl_autotune
#define sl_trial_new(ways) sl_autotune_new(ways)
#define sl_trial_next(autotune) sl_autotune_next(autotune)
#define sl_trial_decided(autotune) sl_autotune_decided(autotune)
#define sl_trial_seconds(autotune, way) sl_autotune_seconds(autotune, way)
#define sl_trial_free(autotune) sl_autotune_free(autotune)

struct sl_split_opts {
	bool uneven;               /* some devices may get one row more than others */
	const double *weights;     /* n of them: the devices' shares; their sum may be any number */
	const sl_balance *balance; /* shares by measured speed */
};
SL_API enum sl_status sl_split_and_load_at(const char *at, sl_tensor *x, const sl_device *devices, int n,
                                           sl_tensor **parts, struct sl_split_opts opts);
#define sl_split_and_load(x, devices, n, parts, ...)                                                                   \
	sl_split_and_load_at(SL_HERE, x, devices, n, parts, (struct sl_split_opts){__VA_ARGS__})

/* ---- metrics: running means, computed by tasks; reading them waits ---------------------------------------------- */

typedef struct sl_metric sl_metric;
SL_API sl_metric *sl_accuracy_new_at(const char *at);
#define sl_accuracy_new() sl_accuracy_new_at(SL_HERE)
SL_API sl_metric *sl_topk_new_at(const char *at, int k);
#define sl_topk_new(k) sl_topk_new_at(SL_HERE, k)
SL_API sl_metric *sl_mean_new_at(const char *at); /* of the given values: losses */
#define sl_mean_new() sl_mean_new_at(SL_HERE)
/* scores and labels for accuracies; values and NULL for means. */
SL_API enum sl_status sl_metric_add_at(const char *at, sl_metric *metric, sl_tensor *values,
                                       sl_tensor *SL_OPTIONAL labels);
#define sl_metric_add(metric, values, labels) sl_metric_add_at(SL_HERE, metric, values, labels)
SL_API double sl_metric_get_at(const char *at, sl_metric *metric); /* NaN without values */
#define sl_metric_get(metric) sl_metric_get_at(SL_HERE, metric)
SL_API void sl_metric_reset(sl_metric *SL_OPTIONAL metric);
SL_API void sl_metric_free(sl_metric *SL_OPTIONAL metric);

#ifdef __cplusplus
}
#endif
#endif
