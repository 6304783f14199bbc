/* Common parts of the kernels of batch normalisation: the tensor as (n, c, s), and coefficients for each channel.
 *
 * Both directions end with the same step, element by element, with coefficients of the channel:
 *     out = k0 dy + k1 (x - center) + k2
 * Forward k0 is 0.  With centred x nothing cancels where the mean is large against the deviation. */
#ifndef SLP_BATCH_NORM_H
#define SLP_BATCH_NORM_H

#include "op_inner.h"
#include "op_list/norm.h"

#ifdef __cplusplus
extern "C" {
#endif

struct slp_norm_attrs {
	double eps, momentum;
	int activation; /* enum sl_activation, of the result */
	int layout; /* enum slp_image_layout, of x and the result: plain, NC16 in half types, NHWC (image_layout.h) */
	bool unbiased; /* the running variance gets the unbiased variance of the batch, as in PyTorch */
};

extern const struct slp_attr slp_norm_attr_table[];

struct slp_norm_grad_attrs {
	bool global; /* mean and invstd did not depend on x */
	bool relu;   /* dy goes back through relu first; y, its result, is a further input */
	int layout;  /* of all images */
};

/* n images of c channels of s elements each.  In NHWC, each place counts as an image of single elements. */
struct slp_norm_size {
	int64_t n, c, s;
	enum slp_image_layout layout;
};

/* Of a call of one of the three operations. */
static inline struct slp_norm_size slp_norm_size_of(sl_shape x, const struct sl_op *op, const void *attrs)
{
	const struct slp_norm_attrs *forward = (const struct slp_norm_attrs *)attrs;
	const struct slp_norm_grad_attrs *grad = (const struct slp_norm_grad_attrs *)attrs;
	int layout = op == &slp_op_batch_norm_grad ? grad->layout : forward->layout;
	struct slp_norm_size z = {x.dim[0], x.dim[1], 1, (enum slp_image_layout)layout};
	for (int i = 2; i < x.ndim; i++) *(layout == SLP_LAYOUT_NHWC ? &z.n : &z.s) *= x.dim[i];
	return z;
}

/* The factor of the batch's variance in the running one: of `count` elements a channel. */
static inline double slp_norm_bessel(const struct slp_norm_attrs *a, double count)
{
	return a->unbiased ? count / (count > 1 ? count - 1 : 1) : 1;
}

/* Blocks of a channel for each of which a GPU keeps two partial sums. */
enum { SLP_NORM_PARTS = 128 };

/* The fast CPU kernels (batch_norm_cpu.c) and their scratch memory, on CPUs and GPUs. */
enum sl_status slp_cpu_batch_norm(const struct slp_kernel *k);
enum sl_status slp_cpu_batch_norm_infer(const struct slp_kernel *k);
enum sl_status slp_cpu_batch_norm_grad(const struct slp_kernel *k);
size_t slp_norm_scratch(const struct slp_infer *c);

/* The same for images in a half type, with vectors in that or in float32 (batch_norm_half.c). */
enum sl_status slp_cpu_batch_norm_half(const struct slp_kernel *k);
enum sl_status slp_cpu_batch_norm_infer_half(const struct slp_kernel *k);
enum sl_status slp_cpu_batch_norm_grad_half(const struct slp_kernel *k);

#ifdef __cplusplus
}
#endif
#endif
