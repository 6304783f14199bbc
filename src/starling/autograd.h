/* Gradients: variables, recording, the backward pass.  Errors are reported as base.h describes. */
#ifndef STARLING_AUTOGRAD_H
#define STARLING_AUTOGRAD_H

#include <starling/tensor.h>

#pragma GCC system_header
#ifdef __cplusplus
extern "C" {
#endif

/* The effect of sl_backward on the gradient of a tensor: overwrite, add, none. */
enum sl_grad_req { SL_GRAD_WRITE, SL_GRAD_ADD, SL_GRAD_NONE };

struct sl_attach_opts {
	enum sl_grad_req req;
};
SL_API enum sl_status sl_attach_grad_at(const char *at, sl_tensor *t, struct sl_attach_opts opts);
#define sl_attach_grad(t, ...) sl_attach_grad_at(SL_HERE, t, (struct sl_attach_opts){__VA_ARGS__})
SL_API sl_tensor *sl_grad_at(const char *at, sl_tensor *t);
#define sl_grad(t) sl_grad_at(SL_HERE, t)

SL_API void sl_grad_as_constant(sl_tensor *grad);
SL_API bool sl_grad_is_fresh(const sl_tensor *t);
SL_API void sl_grad_used(sl_tensor *t);

struct sl_backward_opts {
	sl_tensor *const *head_grads; /* one for each head; NULL: ones */
	bool retain_graph;            /* keep the values for another backward pass */
	double scale SL_IS_(1);       /* factor of all gradients; a trainer divides by it */
	bool create_graph;            /* record the gradients, for second derivatives; keeps the values, too */
	bool as_written SL_IS_(true); /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_backward_opts(X) X(scale, 1)
SL_API enum sl_status sl_backward_heads_at(const char *at, sl_tensor *const *heads, int count,
                                           struct sl_backward_opts opts);
#define sl_backward_heads(heads, count, ...)                                                                           \
	sl_backward_heads_at(SL_HERE, heads, count, SL_OPTIONS(sl_backward_opts, __VA_ARGS__))
/* Computes the gradients of a loss, or of several heads, sl_backward(loss1, loss2), with respect to all parameters and
 * all tensors with a gradient attached: sl_backward_heads without options.  Returns at once.  Errors: see there.
 *
 *     SL_RECORD loss = sl_mean(sl_l2_loss(sl_forward(net, x), y));
 *     sl_backward(loss); */
#define sl_backward(...)                                                                                               \
	sl_backward_heads_at(SL_HERE, SL_ARRAY(sl_tensor *, __VA_ARGS__), SL_COUNT_(sl_tensor *, __VA_ARGS__),         \
	                     SL_OPTIONS(sl_backward_opts, ))

SL_API enum sl_status sl_gradients_at(const char *at, sl_tensor *const *heads, int count, sl_tensor *const *wants,
                                      int nwants, sl_tensor **out, struct sl_backward_opts opts);
#define sl_gradients(heads, count, wants, nwants, out, ...)                                                            \
	sl_gradients_at(SL_HERE, heads, count, wants, nwants, out, SL_OPTIONS(sl_backward_opts, __VA_ARGS__))

/* The backward pass of a custom computation: sets din[i] to the gradient with respect to input i, or leaves it NULL. */
typedef enum sl_status sl_custom_backward(void *context, sl_tensor *const *dout, int nout, sl_tensor **din, int nin);
struct sl_custom_gradient_opts {
	sl_custom_backward *backward;
	void *context;                  /* passed to backward */
	void (*destroy)(void *context); /* called when context is no longer needed; may be NULL */
	bool differentiable;            /* backward is made of operations: its results have gradients (create_graph) */
};
SL_API enum sl_status sl_custom_gradient_at(const char *at, sl_tensor *const *in, int nin, sl_tensor *const *out,
                                            int nout, struct sl_custom_gradient_opts opts);
#define sl_custom_gradient(in, nin, out, nout, ...)                                                                    \
	sl_custom_gradient_at(SL_HERE, in, nin, out, nout, (struct sl_custom_gradient_opts){__VA_ARGS__})

/* Recording and training are states of the calling thread. */
SL_API bool sl_is_recording(void);
SL_API bool sl_is_training(void);

typedef struct sl_mode {
	bool recording, training; /* the states outside */
	int open;
} sl_mode;
SL_API void sl_mode_enter(sl_mode *mode, int recording, int training);
SL_API void sl_mode_leave(sl_mode *mode);

/* The condition is a pointer of its own: compilers see that the block runs exactly once. */
#define SL_MODE_(recording, training)                                                                                  \
	for (sl_mode sl_mode_ __attribute__((cleanup(sl_mode_leave))) = {false, false, 0},                             \
	                      *sl_mode_once_ = (sl_mode_enter(&sl_mode_, recording, training), &sl_mode_);             \
	     sl_mode_once_; sl_mode_once_ = NULL)
/* SL_RECORD { ... }: records the thread's calls in the block, or in the one statement that follows, that depend on
 * parameters or on tensors with a gradient attached (sl_attach_grad), so that sl_backward can differentiate them.  The
 * block runs in training mode: dropout drops, and batch norm uses the batch's statistics.  break leaves the block, as
 * return and goto do; the record lives as long as its results.
 *
 *     SL_RECORD {
 *         y = sl_forward(net, x);
 *         loss = sl_mean(sl_softmax_cross_entropy(y, labels));
 *     }
 *     sl_backward(loss); */
#define SL_RECORD SL_MODE_(1, 1)
/* SL_PAUSE { ... }: the opposite of SL_RECORD: nothing is recorded in the block, which runs in inference mode.  Its
 * results are constants for a backward pass. */
#define SL_PAUSE SL_MODE_(0, 0)
/* SL_TRAINING { ... }: the block runs in training mode; it records if the code around it does. */
#define SL_TRAINING SL_MODE_(-1, 1)
/* SL_INFERENCE { ... }: the block runs in inference mode; it records if the code around it does. */
#define SL_INFERENCE SL_MODE_(-1, 0)

/* SL_AUTOCAST(SL_BFLOAT16) { ... }: automatic mixed precision for the calling thread, like torch.autocast.  In the
 * block, calls convert float32 and half arguments to the type that suits the operation:
 *
 * - the half type: dot, matmul, linear, conv2d, scaled_dot_product_attention; einsum, conv1d, conv_transpose2d
 * - float32: softmax, log_softmax, all losses, sum, mean, norm, prod, cumsum, layer_norm, exp, log, pow, reciprocal,
 * softplus, sin, cos, tan, asin, acos, atan, sinh, cosh, asinh, acosh, atanh, erf, log1p, expm1, rsqrt; rms_norm,
 * group_norm, instance_norm, logsumexp, variance, std, cosine_similarity
 * - the widest type among the arguments: functions of two tensors, concat, stack, where, recurrent
 * - all others compute in the type of their arguments; batch_norm takes float32 parameters with a half x
 *
 * float64 is not converted.  A gradient has the type of its variable: gradients of float32 parameters are float32.
 * Traces, hybridised blocks and whole steps that run in the block are compiled for it.  sl_backward, in the block or
 * outside, computes in the types that the calls have chosen, and sums in float32. */
typedef struct sl_autocast_mode {
	enum sl_dtype outer; /* the state outside */
	int open;
	int kept; /* a part of the outer state: products keep the types of their operands */
} sl_autocast_mode;
SL_API void sl_autocast_enter_at(const char *at, sl_autocast_mode *mode, enum sl_dtype dtype);
#define sl_autocast_enter(mode, dtype) sl_autocast_enter_at(SL_HERE, mode, dtype)
SL_API void sl_autocast_leave(sl_autocast_mode *mode);
SL_API enum sl_dtype sl_autocast_dtype(void);
#define SL_AUTOCAST(dtype)                                                                                             \
	for (sl_autocast_mode sl_autocast_ __attribute__((cleanup(sl_autocast_leave))) = {SL_DTYPE_DEFAULT, 0, 0};     \
	     !sl_autocast_.open && (sl_autocast_enter(&sl_autocast_, dtype), 1);)

#ifdef __cplusplus
}
#endif
#endif
