/* Structures of options: omitted fields, a 0 that the call sets, and a 0 that means the default because the program
 * filled the structure itself (SL_OPTIONS, starling/base.h).
 *
 * Each function that takes one of the structures begins with SLP_OPTIONS, which converts them to one form.  After it
 *   - an omitted field has its default of the list, or 0 if the default depends on other values;
 *   - a double that the call sets to 0 is -0.0, which slp_or leaves alone; an integer that it sets to 0 is refused. */
#ifndef SLP_OPTIONS_H
#define SLP_OPTIONS_H

#include <math.h>
#include <stdbool.h>

#include <starling/options.h>

struct sl_conv2d_opts;
struct sl_pool2d_opts;
struct sl_huber_loss_opts;
struct sl_batch_norm_opts;
struct sl_layer_norm_opts;
struct sl_sgd_opts;
struct sl_adam_opts;
struct sl_rmsprop_opts;
struct sl_attention_opts;
struct sl_cached_attention_opts;
struct sl_conv1d_opts;
struct sl_conv_transpose2d_opts;
struct sl_rms_norm_opts;
struct sl_gradcheck_opts;
struct sl_conv2d_layer_opts;
struct sl_batch_norm_layer_opts;
struct sl_layer_norm_layer_opts;
struct sl_recurrent_layer_opts;
struct sl_schedule;
struct sl_loss_scaling;
struct sl_optimizer;
struct sl_group_opts;
struct sl_step_opts;
struct sl_csv_opts;
struct sl_images_opts;
struct sl_tokens_opts;
struct sl_transform;
struct sl_loader_opts;
struct sl_backward_opts;
struct sl_spill_opts;

/* The structures of which a field has a default that is not 0. */
#define SLP_OPTIONS_LIST(X)                                                                                            \
	X(sl_conv2d_opts)                                                                                              \
	X(sl_pool2d_opts)                                                                                              \
	X(sl_huber_loss_opts)                                                                                          \
	X(sl_batch_norm_opts)                                                                                          \
	X(sl_layer_norm_opts)                                                                                          \
	X(sl_sgd_opts)                                                                                                 \
	X(sl_adam_opts)                                                                                                \
	X(sl_rmsprop_opts)                                                                                             \
	X(sl_attention_opts)                                                                                           \
	X(sl_cached_attention_opts)                                                                                    \
	X(sl_conv1d_opts)                                                                                              \
	X(sl_conv_transpose2d_opts)                                                                                    \
	X(sl_rms_norm_opts)                                                                                            \
	X(sl_gradcheck_opts)                                                                                           \
	X(sl_conv2d_layer_opts)                                                                                        \
	X(sl_batch_norm_layer_opts)                                                                                    \
	X(sl_layer_norm_layer_opts)                                                                                    \
	X(sl_recurrent_layer_opts)                                                                                     \
	X(sl_schedule)                                                                                                 \
	X(sl_loss_scaling)                                                                                             \
	X(sl_optimizer)                                                                                                \
	X(sl_group_opts)                                                                                               \
	X(sl_step_opts)                                                                                                \
	X(sl_csv_opts)                                                                                                 \
	X(sl_images_opts)                                                                                              \
	X(sl_tokens_opts)                                                                                              \
	X(sl_transform)                                                                                                \
	X(sl_loader_opts)                                                                                              \
	X(sl_backward_opts)                                                                                            \
	X(sl_spill_opts)

/* false: an integer was written as 0, and an error that names it was recorded. */
bool slp_options_sl_conv2d_opts(const char *at, const char *function, struct sl_conv2d_opts *o);
bool slp_options_sl_pool2d_opts(const char *at, const char *function, struct sl_pool2d_opts *o);
bool slp_options_sl_huber_loss_opts(const char *at, const char *function, struct sl_huber_loss_opts *o);
bool slp_options_sl_batch_norm_opts(const char *at, const char *function, struct sl_batch_norm_opts *o);
bool slp_options_sl_layer_norm_opts(const char *at, const char *function, struct sl_layer_norm_opts *o);
bool slp_options_sl_sgd_opts(const char *at, const char *function, struct sl_sgd_opts *o);
bool slp_options_sl_adam_opts(const char *at, const char *function, struct sl_adam_opts *o);
bool slp_options_sl_rmsprop_opts(const char *at, const char *function, struct sl_rmsprop_opts *o);
bool slp_options_sl_attention_opts(const char *at, const char *function, struct sl_attention_opts *o);
bool slp_options_sl_cached_attention_opts(const char *at, const char *function, struct sl_cached_attention_opts *o);
bool slp_options_sl_conv1d_opts(const char *at, const char *function, struct sl_conv1d_opts *o);
bool slp_options_sl_conv_transpose2d_opts(const char *at, const char *function, struct sl_conv_transpose2d_opts *o);
bool slp_options_sl_rms_norm_opts(const char *at, const char *function, struct sl_rms_norm_opts *o);
bool slp_options_sl_gradcheck_opts(const char *at, const char *function, struct sl_gradcheck_opts *o);
bool slp_options_sl_conv2d_layer_opts(const char *at, const char *function, struct sl_conv2d_layer_opts *o);
bool slp_options_sl_batch_norm_layer_opts(const char *at, const char *function, struct sl_batch_norm_layer_opts *o);
bool slp_options_sl_layer_norm_layer_opts(const char *at, const char *function, struct sl_layer_norm_layer_opts *o);
bool slp_options_sl_recurrent_layer_opts(const char *at, const char *function, struct sl_recurrent_layer_opts *o);
bool slp_options_sl_schedule(const char *at, const char *function, struct sl_schedule *o);
bool slp_options_sl_loss_scaling(const char *at, const char *function, struct sl_loss_scaling *o);
bool slp_options_sl_optimizer(const char *at, const char *function, struct sl_optimizer *o);
bool slp_options_sl_group_opts(const char *at, const char *function, struct sl_group_opts *o);
bool slp_options_sl_step_opts(const char *at, const char *function, struct sl_step_opts *o);
bool slp_options_sl_csv_opts(const char *at, const char *function, struct sl_csv_opts *o);
bool slp_options_sl_images_opts(const char *at, const char *function, struct sl_images_opts *o);
bool slp_options_sl_tokens_opts(const char *at, const char *function, struct sl_tokens_opts *o);
bool slp_options_sl_transform(const char *at, const char *function, struct sl_transform *o);
bool slp_options_sl_loader_opts(const char *at, const char *function, struct sl_loader_opts *o);
bool slp_options_sl_backward_opts(const char *at, const char *function, struct sl_backward_opts *o);
bool slp_options_sl_spill_opts(const char *at, const char *function, struct sl_spill_opts *o);
#define SLP_OPTIONS(type, at, function, opts) slp_options_##type(at, function, opts)

/* Whether a double was given. */
static inline bool slp_was_given(double x)
{
	return x != 0 || signbit(x);
}

/* It, or the default. */
static inline double slp_or(double x, double otherwise)
{
	return slp_was_given(x) ? x : otherwise;
}

/* An option of a pooling that has no effect beside the others, and why; NULL: there is none. */
static inline const char *slp_pool2d_ignored(const struct sl_pool2d_opts *o)
{
	if (o->exclude_pad && o->type == SL_POOL_MAX) return ".exclude_pad is for means; padding is never the largest";
	if (!o->global) return NULL;
	if (o->kernel[0] || o->kernel[1] || o->stride[0] || o->stride[1])
		return ".kernel and .stride are not for .global, one window of the whole image";
	if (o->pad[0] || o->pad[1] || o->ceil || o->exclude_pad)
		return ".pad, .ceil and .exclude_pad are not for .global, one window of the whole image";
	return NULL;
}

#endif
