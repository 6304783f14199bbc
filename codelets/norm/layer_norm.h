/* The division of rows into parts, for layer_norm.c and layer_norm.cu. */
#ifndef SLP_LAYER_NORM_H
#define SLP_LAYER_NORM_H

#include "op.h"

struct slp_layer_norm_attrs {
	double eps;
	int dtype; /* of layer_norm_sum: the type of y, 0: that of x; of layer_norm_grad_copy: that of the copy */
};

/* The tensor as rows of n elements, and the parts in which rows are summed for gamma and beta: the shape alone decides
 * their number, and so the order of the sums. */
struct slp_layer_rows {
	int64_t rows, n, parts;
};

/* At most `most` parts of at least `least` rows each. */
static inline int64_t slp_layer_parts(int64_t rows, int64_t least, int64_t most)
{
	int64_t parts = (rows + least - 1) / least;
	return parts > most ? most : parts;
}

static inline struct slp_layer_rows slp_layer_rows_of(sl_shape x)
{
	struct slp_layer_rows s = {1, x.dim[x.ndim - 1], 0};
	for (int i = 0; i + 1 < x.ndim; i++) s.rows *= x.dim[i];
	s.parts = slp_layer_parts(s.rows, 32, 32);
	return s;
}

/* On a GPU, where a block computes the rows of a part and their sums: two blocks for each multiprocessor of a large one.
 * If a part had fewer rows, writing its sums would cost more than an eighth of reading its rows. */
enum { SLP_LAYER_BLOCKS = 264 };
static inline int64_t slp_layer_blocks(int64_t rows)
{
	return slp_layer_parts(rows, 16, SLP_LAYER_BLOCKS);
}

/* The first row of a part; a macro, because GPUs use it, too. */
#define SLP_LAYER_PART(s, part) ((s).rows * (part) / (s).parts)

#ifndef __CUDACC__
/* layer_norm.c: the kernels of layer_norm, and the rule for x and the vectors [first, end) beside it. */
enum sl_status slp_layer_norm_cpu(const struct slp_kernel *k);
enum sl_status slp_layer_norm_ref(const struct slp_kernel *k);
enum sl_status slp_layer_norm_check(const struct slp_infer *c, const struct slp_type *x, int first, int end);
enum sl_status slp_layer_norm_set_eps(const struct slp_infer *c, struct slp_layer_norm_attrs *a);
#endif

#endif
