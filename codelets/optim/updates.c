/* Steps of SGD, Adam, AdamW and RMSProp as functions; trainers make theirs by descriptors (optimizers.c). */
#include "op_list/optim.h"
#include "optim.h"
#include "options.h"
#include "starling/primitives.h"

/* One step of stochastic gradient descent, in place, with  g = clip(rescale grad) + weight_decay param: without
 * momentum  param -= lr g;  with it  m = momentum m + g,  param -= lr m;  with opts.nesterov param -= lr (g + momentum
 * m).  As torch.optim.SGD.  opts.velocity stores v = -lr m instead, as MXNet and Keras do:  v = momentum v - lr g,
 * param += v,  with opts.nesterov  param += momentum v - lr g;  the steps are the same while lr is.
 *
 * With opts.clip_norm, gradients are first scaled down so that the L2 norm of all of them together, after rescale, is
 * at most clip_norm; with opts.clip_value, each element is then limited to ±clip_value.  Both precede the decay, like
 * torch.nn.utils.clip_grad_norm_ (which adds 1e-6 to the norm) and clip_grad_value_ before an optimiser's step.  A NaN
 * norm makes all parameters NaN.  opts.lr_scale multiplies lr.
 *
 * Consecutive parameters on one device are updated by a single operation; with clip_norm all must be on one device.
 * Nothing is recorded.  A parameter, its gradient and its momentum have one shape; all have one dtype, float32 or
 * float64.  momenta, zero before the first step, is needed with a momentum and NULL without.  The caller keeps the
 * arrays of `count` tensors.  SL_EINVAL: an argument is NULL (or momenta is not NULL without a momentum), opts.nesterov
 * or opts.velocity without a momentum, a number that is negative (except rescale) or not finite; SL_ESHAPE, SL_EDTYPE, SL_EDEVICE:
 * tensors do not match each other; the message names the parameter by its index.
 *
 * 	sl_sgd_update(params, grads, NULL, count, .lr = 0.1, .rescale = 1.0 / batch_size); */
enum sl_status sl_sgd_update_at(const char *at, sl_tensor *const *params, sl_tensor *const *grads,
                                sl_tensor *const *momenta, int count, struct sl_sgd_opts opts)
{
	if (!SLP_OPTIONS(sl_sgd_opts, at, "sl_sgd_update", &opts)) return SL_EINVAL;
	bool plain = opts.momentum == 0;
	const struct slp_sgd_attrs attrs = {.lr = opts.lr,
	                                    .momentum = opts.momentum,
	                                    .weight_decay = opts.weight_decay,
	                                    .rescale = opts.rescale,
	                                    .nesterov = opts.nesterov,
	                                    .velocity = opts.velocity,
	                                    .clip_norm = opts.clip_norm,
	                                    .clip_value = opts.clip_value,
	                                    .lr_scale = opts.lr_scale};
	if (plain && (momenta || opts.nesterov || opts.velocity))
		return slp_call_fail(at, "sl_sgd_update", SL_EINVAL, "%s, but momentum is 0",
		                     momenta         ? "momenta are given"
		                     : opts.nesterov ? "nesterov is set"
		                                     : "velocity is set"),
		       SL_EINVAL;
	return slp_optim_update(&(struct slp_optim_call){.at = at,
	                                                 .function = "sl_sgd_update",
	                                                 .op = plain ? &slp_op_sgd : &slp_op_sgd_momentum,
	                                                 .attrs = &attrs,
	                                                 .count = count,
	                                                 .of = {params, grads, momenta},
	                                                 .names = {"params", "grads", "momenta"}});
}

/* One step of Adam, in place; with opts.decoupled, of AdamW: the decay then takes lr weight_decay of each parameter
 * instead of adding weight_decay times the parameter to its gradient.  As torch.optim.Adam and AdamW; D. P. Kingma,
 * J. Ba, ICLR 2015; I. Loshchilov, F. Hutter, ICLR 2019.
 *
 * means and vars are the running means of the gradients and of their squares, zero before the first step.  opts.step is
 * the number of this step, from 1, for the correction of their bias; opts.skipped of these steps did not update the
 * parameters.  clip_norm, clip_value, all other arguments and the errors are as in sl_sgd_update; also SL_EINVAL: step
 * below 1, a beta outside [0, 1), a negative eps.
 *
 *	for (int64_t step = 1; step <= steps; step++) {
 *		...
 *		sl_adam_update(params, grads, means, vars, count, .lr = 1e-3, .step = step);
 *	} */
enum sl_status sl_adam_update_at(const char *at, sl_tensor *const *params, sl_tensor *const *grads,
                                 sl_tensor *const *means, sl_tensor *const *vars, int count, struct sl_adam_opts opts)
{
	if (!SLP_OPTIONS(sl_adam_opts, at, "sl_adam_update", &opts)) return SL_EINVAL;
	const struct slp_adam_attrs attrs = {.lr = opts.lr,
	                                     .beta1 = opts.beta1,
	                                     .beta2 = opts.beta2,
	                                     .eps = opts.eps,
	                                     .weight_decay = opts.weight_decay,
	                                     .decoupled = opts.decoupled,
	                                     .rescale = opts.rescale,
	                                     .clip_norm = opts.clip_norm,
	                                     .clip_value = opts.clip_value,
	                                     .lr_scale = opts.lr_scale,
	                                     .step = opts.step,
	                                     .skipped = opts.skipped};
	return slp_optim_update(&(struct slp_optim_call){.at = at,
	                                                 .function = "sl_adam_update",
	                                                 .op = &slp_op_adam,
	                                                 .attrs = &attrs,
	                                                 .count = count,
	                                                 .of = {params, grads, means, vars},
	                                                 .names = {"params", "grads", "means", "vars"}});
}

/* One step of RMSProp, in place, as torch.optim.RMSprop (not centred); T. Tieleman, G. Hinton, 2012.  squares are the
 * running means of the squared gradients; momenta is needed with opts.momentum and NULL without; both are zero before
 * the first step.  clip_norm, clip_value, all other arguments and the errors are as in sl_sgd_update; also SL_EINVAL:
 * alpha outside 0 to 1, a negative eps.
 *
 *	sl_rmsprop_update(params, grads, squares, NULL, count, .lr = 1e-3, .clip_norm = 1); */
enum sl_status sl_rmsprop_update_at(const char *at, sl_tensor *const *params, sl_tensor *const *grads,
                                    sl_tensor *const *squares, sl_tensor *const *momenta, int count,
                                    struct sl_rmsprop_opts opts)
{
	if (!SLP_OPTIONS(sl_rmsprop_opts, at, "sl_rmsprop_update", &opts)) return SL_EINVAL;
	bool plain = opts.momentum == 0;
	const struct slp_rmsprop_attrs attrs = {.lr = opts.lr,
	                                        .alpha = opts.alpha,
	                                        .eps = opts.eps,
	                                        .momentum = opts.momentum,
	                                        .weight_decay = opts.weight_decay,
	                                        .rescale = opts.rescale,
	                                        .clip_norm = opts.clip_norm,
	                                        .clip_value = opts.clip_value,
	                                        .lr_scale = opts.lr_scale};
	if (plain && momenta)
		return slp_call_fail(at, "sl_rmsprop_update", SL_EINVAL, "momenta are given, but momentum is 0"),
		       SL_EINVAL;
	return slp_optim_update(&(struct slp_optim_call){.at = at,
	                                                 .function = "sl_rmsprop_update",
	                                                 .op = plain ? &slp_op_rmsprop : &slp_op_rmsprop_momentum,
	                                                 .attrs = &attrs,
	                                                 .count = count,
	                                                 .of = {params, grads, squares, momenta},
	                                                 .names = {"params", "grads", "squares", "momenta"}});
}
