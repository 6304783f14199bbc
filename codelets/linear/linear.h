/* Common parts of the kernels of the fully connected layer: attributes, sizes, the product on a CPU team. */
#ifndef SLP_LINEAR_H
#define SLP_LINEAR_H

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

struct slp_linear_attrs {
	bool tw;        /* w is (units, inputs) */
	int activation; /* enum sl_activation, of the result */
};

/* Of linear_grad and linear_sgd; linear_grad ignores the first three. */
struct slp_linear_grad_attrs {
	double lr, rescale, weight_decay;
	bool tw, data;  /* data: the gradient with respect to x is computed */
	int activation; /* whose gradient dy goes through first */
	bool wide;      /* of linear_grad: db is float32 beside half types */
};

/* y (rows, units) = x (rows, inputs) · w; axes of x before the last are collapsed. */
struct slp_linear_size {
	int64_t rows, inputs, units;
};

static inline struct slp_linear_size slp_linear_size_of(sl_shape x, sl_shape w, bool tw)
{
	struct slp_linear_size z = {1, w.dim[tw], w.dim[!tw]};
	for (int i = 0; i + 1 < x.ndim; i++) z.rows *= x.dim[i];
	return z;
}

/* A GPU sums the columns of g in parts of `share` rows each, if there are not too many. Shares have SLP_LINEAR_SHARE
 * rows at least. */
enum { SLP_LINEAR_PARTS = 16, SLP_LINEAR_SHARE = 16 };

static inline int64_t slp_linear_parts(int64_t rows, int64_t share)
{
	int64_t parts = rows / share;
	return parts < 1 ? 1 : parts < SLP_LINEAR_PARTS ? parts : (int64_t)SLP_LINEAR_PARTS;
}

/* The offset of the sums of these parts in scratch memory: behind g, which is stored if there is an activation. */
static inline size_t slp_linear_parts_at(const struct slp_linear_grad_attrs *a, const struct slp_type *dy)
{
	size_t g = a->activation ? (size_t)sl_shape_size(dy->shape) * sl_dtype_size(dy->dtype) : 0;
	return (g + 7) / 8 * 8;
}

/* The rule for x and w: SL_EDTYPE or SL_ESHAPE if they do not fit; *out is the shape of y. */
enum sl_status slp_linear_check(const struct slp_infer *c, const struct slp_type *x, const struct slp_type *w, bool tw,
                                sl_shape *out);
/* SL_EINVAL if there is no such activation. */
enum sl_status slp_linear_check_activation(const struct slp_infer *c, int activation);

/* c (m, n) = a (m, kk) · bᵀ with b (n, kk), on the team, of floats if !wide; all without gaps. */
enum sl_status slp_linear_by_transposed(const struct slp_kernel *k, bool wide, int64_t m, int64_t n, int64_t kk,
                                        const void *a, const void *b, void *c);

/* Layer and gradients in bfloat16 (linear_bf16.c). */
enum sl_status slp_linear_bf16(const struct slp_kernel *k);
enum sl_status slp_linear_grad_bf16(const struct slp_kernel *k);

/* The rows of a matrix that one thread computes at a time in products with few rows of the other: enough for a library
 * to be fast, whatever the number of threads. 0 if a library is faster with the whole team. */
int64_t slp_linear_block(int64_t few, int64_t many, int64_t inner);

#ifdef __cplusplus
}
#endif
#endif
