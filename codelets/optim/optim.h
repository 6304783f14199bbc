/* What the optimisers share.  An optimiser's operation takes the tensors of all parameters in turn: a parameter, its
 * gradient, then its state; of each element it makes a step by a rule (rules/NAME.h; average.c). */
#ifndef SLP_OPTIM_H
#define SLP_OPTIM_H

#include <math.h>

#include "op_list/optim.h"
#include "optimizer.h"
#include "options.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SLP_OPTIM_TENSORS = 4, SLP_OPTIM_CHUNK = 4096 }; /* of a parameter, at most; elements of a block of a GPU */

/* The gradient that a rule gets is  limit(rescale c g):  c = min(1, clip_norm / norm of all rescaled gradients), where
 * clip_norm is given; limited to ±clip_value, where that is. */
#define SLP_OPTIM_ATTRS double lr, weight_decay, rescale, clip_norm, clip_value, lr_scale;
struct slp_optim_attrs {
	SLP_OPTIM_ATTRS
};
struct slp_sgd_attrs {
	SLP_OPTIM_ATTRS
	double momentum;
	bool nesterov, velocity;
};
/* Of optimisers whose steps are counted: the number of this one, from 1; of these, the steps that left the parameters
 * alone. */
#define SLP_OPTIM_COUNTED_ATTRS                                                                                        \
	SLP_OPTIM_ATTRS                                                                                                \
	int64_t step, skipped;
struct slp_optim_counted_attrs {
	SLP_OPTIM_COUNTED_ATTRS
};
/* The number of the parameters' own step. */
static inline double slp_optim_number(const void *attrs)
{
	const struct slp_optim_counted_attrs *a = (const struct slp_optim_counted_attrs *)attrs;
	return (double)(a->step - a->skipped);
}
struct slp_adam_attrs { /* and AdamW's */
	SLP_OPTIM_COUNTED_ATTRS
	double beta1, beta2, eps;
	bool decoupled;
};
struct slp_rmsprop_attrs {
	SLP_OPTIM_ATTRS
	double alpha, eps, momentum;
};
struct slp_average_attrs {
	SLP_OPTIM_ATTRS /* none of them counts */
	        double keep;
};

/* clip_norm changes the work: with it gradients are read twice. */
#define SLP_OPTIM_ROWS(type)                                                                                           \
	SLP_ATTR_VALUE(type, lr, SLP_DOUBLE, 1, "learning rate"),                                                      \
	        SLP_ATTR_VALUE(type, weight_decay, SLP_DOUBLE, 1, "part of a parameter that decays"),                  \
	        SLP_ATTR_DEFAULTED(type, rescale, "factor of the gradients; 0 means 1"),                               \
	        SLP_ATTR(type, clip_norm, SLP_DOUBLE, 1, "most that the norm of all gradients may be; 0: any"),        \
	        SLP_ATTR_VALUE(type, clip_value, SLP_DOUBLE, 1, "most that an element of a gradient may be; 0: any"),  \
	        SLP_ATTR_DEFAULTED(type, lr_scale, "factor of the learning rate; 0 means 1")
#define SLP_OPTIM_COUNTED_ROWS(type)                                                                                   \
	SLP_ATTR_VALUE(type, step, SLP_INT64, 1, "number of this step, from 1"),                                       \
	        SLP_ATTR_VALUE(type, skipped, SLP_INT64, 1, "of these, steps that left the parameters alone")

/* ---- rules of the operations ------------------------------------------------------------------------------------ */

enum sl_status slp_optim_infer(struct slp_infer *c);
/* For an optimiser's operation: gives options their defaults, and checks them. */
struct slp_optimizer;
enum sl_status slp_optim_infer_options(struct slp_infer *c, const struct slp_optimizer *optimizer);
/* SL_EINVAL naming it unless the value is finite and not below 0. */
enum sl_status slp_optim_figure(struct slp_infer *c, const char *name, double value);
double slp_optim_flops(const struct slp_infer *c);
double slp_optim_bytes(const struct slp_infer *c);
size_t slp_optim_scratch(const struct slp_infer *c);

/* Factor of the gradients, from the sum of their squares where they are clipped by norm. */
static inline double slp_optim_scale(const struct slp_optim_attrs *a, double squares)
{
	double c = a->clip_norm / (fabs(a->rescale) * sqrt(squares));
	return a->clip_norm > 0 ? a->rescale * (c > 1 ? 1 : c) : a->rescale; /* NaN stays */
}

/* The learning rate of these parameters. */
static inline double slp_optim_lr(const void *attrs)
{
	const struct slp_optim_attrs *a = (const struct slp_optim_attrs *)attrs;
	return a->lr * slp_or(a->lr_scale, 1);
}

static inline double slp_optim_limit(const struct slp_optim_attrs *a)
{
	return a->clip_value > 0 ? a->clip_value : INFINITY;
}

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

/* One element in plain C: t holds the parameter, its gradient as clipped, its state. */
typedef void slp_optim_one(const void *attrs, double t[SLP_OPTIM_TENSORS]);
enum sl_status slp_optim_ref(const struct slp_kernel *k, slp_optim_one *one);
/* slp_optim_scale of a call's gradients: clip_scale's inputs, or an optimiser's second ones. */
double slp_optim_ref_scale(const struct slp_kernel *k);
double slp_optim_cpu_scale(const struct slp_kernel *k);

/* How gradients are clipped. */
struct slp_optim_clip {
	float scale, limit;
};
/* n elements of a parameter and of what belongs to it; rule is the kernel's own. */
typedef void slp_optim_step(const void *rule, const struct slp_optim_clip *clip, float *const t[], int64_t n);
enum sl_status slp_optim_cpu(const struct slp_kernel *k, slp_optim_step *step, const void *rule);

static inline __attribute__((always_inline)) float slp_optim_clipped(const struct slp_optim_clip *c, float g)
{
	g *= c->scale;
	g = g > c->limit ? c->limit : g;
	return g < -c->limit ? -c->limit : g;
}

static inline __attribute__((always_inline)) double slp_optim_square(double x)
{
	return x * x;
}

/* SL_EINVAL unless the parameters' own steps count from 1: the number may have changed since infer saw it. */
enum sl_status slp_optim_check_number(const struct slp_kernel *k);

/* ---- layerwise rules (layerwise.c) ------------------------------------------------------------------------------ */

/* The ratio of a parameter's norm to that of the direction of its step; 1 if one of them is 0.  NaN stays. */
static inline double slp_optim_ratio(double squares_of_param, double squares_of_direction)
{
	return squares_of_param == 0 || squares_of_direction == 0 ? 1
	                                                          : sqrt(squares_of_param) / sqrt(squares_of_direction);
}

/* Chunks of the parameters, of SLP_OPTIM_CHUNK elements: a chunk belongs to one parameter. */
static inline int64_t slp_optim_chunks(int64_t size)
{
	return (size + SLP_OPTIM_CHUNK - 1) / SLP_OPTIM_CHUNK;
}

/* For n elements of a parameter: updates of the states; the sums of squares of the parameter and of the direction; the
 * step, the direction times the rule's rate and `ratio`. */
struct slp_optim_layerwise {
	slp_optim_step *update;
	void (*norms)(const void *rule, float *const t[], int64_t n, double sum[2]);
	void (*move)(const void *rule, float ratio, float *const t[], int64_t n);
};
enum sl_status slp_optim_layerwise_cpu(const struct slp_kernel *k, const struct slp_optim_layerwise *how,
                                       const void *rule);
/* The direction of an element in plain C; t as for slp_optim_one, which updates the states alone. */
typedef double slp_optim_direction(const void *attrs, const double t[SLP_OPTIM_TENSORS]);
enum sl_status slp_optim_layerwise_ref(const struct slp_kernel *k, slp_optim_one *update,
                                       slp_optim_direction *direction);
size_t slp_optim_layerwise_scratch(const struct slp_infer *c);
double slp_optim_layerwise_bytes(const struct slp_infer *c);

#define SLP_OPTIM_OP(...) SLP_OPTIM_OP_(slp_optim, __VA_ARGS__)
#define SLP_LAYERWISE_OP(...) SLP_OPTIM_OP_(slp_optim_layerwise, __VA_ARGS__)
#define SLP_OPTIM_OP_(costs, op_name, text, inputs, count, written, type, attrs, ...)                                  \
	const struct sl_op slp_op_##op_name = {                                                                        \
	        .name = #op_name,                                                                                      \
	        .doc = text,                                                                                           \
	        .args = inputs,                                                                                        \
	        .nin_min = count,                                                                                      \
	        .nin_max = SLP_MANY,                                                                                   \
	        .nout = 0,                                                                                             \
	        .attr_table = attrs,                                                                                   \
	        .attrs_size = sizeof(type),                                                                            \
	        .mutates = written,                                                                                    \
	        .period = count,                                                                                       \
	        .flops = slp_optim_flops,                                                                              \
	        .bytes = costs##_bytes,                                                                                \
	        .scratch = costs##_scratch,                                                                            \
	        __VA_ARGS__,                                                                                           \
	}

/* ---- public functions ------------------------------------------------------------------------------------------- */

/* A call of one: lists of `count` tensors, as many as the operation has a parameter, and how the caller knows them. */
struct slp_optim_call {
	const char *at, *function;
	const struct sl_op *op;
	const void *attrs;
	int count;
	sl_tensor *const *of[SLP_OPTIM_TENSORS];
	const char *names[SLP_OPTIM_TENSORS];
};
enum sl_status slp_optim_update(const struct slp_optim_call *u);

#ifdef __cplusplus
}
#endif
#endif
