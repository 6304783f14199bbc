/* dot_add: a product of matrices that is added to a sum, in place if possible. A graph pass makes it from the gradients
 * of a weight that is used several times. */
#include "common/convert.h"
#include "common/gemm.h"
#include "dot.h"
#include "op_list/linear.h"
#include "starling/primitives.h"

static const struct slp_attr attr_table[] = {
        SLP_ATTR(struct sl_dot_opts, ta, SLP_BOOL, 1, "use the transpose of the first factor"),
        SLP_ATTR(struct sl_dot_opts, tb, SLP_BOOL, 1, "use the transpose of the second factor"),
        {0},
};

/* The shapes of the factors, which follow the sum. */
static struct slp_product product_of(const void *attrs, sl_shape a, sl_shape b)
{
	return slp_product_of(*(const struct sl_dot_opts *)attrs, a, b);
}

static enum sl_status infer(struct slp_infer *c)
{
	for (int i = 0; i < 3; i++)
		if (!slp_is_float(c->in[i].dtype) || c->in[i].dtype != c->in[0].dtype)
			return slp_reject(c, SL_EDTYPE, "operands must all be float32 or all float64");
	sl_shape a = c->in[1].shape, b = c->in[2].shape;
	if (a.ndim != 2 || b.ndim != 2) return slp_reject(c, SL_ESHAPE, "factors must have 2 axes");
	struct slp_product p = product_of(c->attrs, a, b);
	int64_t inner = b.dim[p.tb];
	if (inner != p.k)
		return slp_reject(c, SL_ESHAPE, "inner sizes differ: %lld and %lld", (long long)p.k, (long long)inner);
	if (!sl_shape_equal(c->in[0].shape, SL_SHAPE(p.m, p.n)))
		return slp_reject(c, SL_ESHAPE, "the sum must have the shape of the product, (%lld, %lld)",
		                  (long long)p.m, (long long)p.n);
	c->out[0] = c->in[0];
	return SL_OK;
}

static double flops(const struct slp_infer *c)
{
	struct slp_product p = product_of(c->attrs, c->in[1].shape, c->in[2].shape);
	return 2.0 * (double)p.m * (double)p.n * (double)p.k;
}

static enum sl_status ref(const struct slp_kernel *k)
{
	struct slp_product p = product_of(k->attrs, k->in[1].type.shape, k->in[2].type.shape);
	for (int64_t i = 0; i < p.m; i++)
		for (int64_t j = 0; j < p.n; j++) {
			double sum = slp_get(&k->in[0], i * p.n + j);
			for (int64_t l = 0; l < p.k; l++)
				sum += slp_get(&k->in[1], p.ta ? l * p.lda + i : i * p.lda + l) *
				       slp_get(&k->in[2], p.tb ? j * p.ldb + l : l * p.ldb + j);
			slp_set(&k->out[0], i * p.n + j, sum);
		}
	return SL_OK;
}

static enum sl_status cpu(const struct slp_kernel *k)
{
	struct slp_product p = product_of(k->attrs, k->in[1].type.shape, k->in[2].type.shape);
	void *a = k->in[1].ptr, *b = k->in[2].ptr, *c = k->out[0].ptr;
	enum sl_status s = slp_take_sums(k, 1, slp_cpu_convert);
	if (s != SL_OK) return s;
	if (k->in[0].type.dtype == SL_FLOAT32)
		return slp_sgemm(k, p.ta, p.tb, p.m, p.n, p.k, 1, a, p.lda, b, p.ldb, 1, c, p.n);
	slp_dgemm(p.ta, p.tb, p.m, p.n, p.k, 1, a, p.lda, b, p.ldb, 1, c, p.n);
	return SL_OK;
}

const struct sl_op slp_op_dot_add = {
        .name = "dot_add",
        .doc = "a product of two matrices, added to a sum",
        .args = "sum a b",
        SLP_NIN(3),
        .nout = 1,
        .attr_table = attr_table,
        .attrs_size = sizeof(struct sl_dot_opts),
        .inplace = true,
        .rows = SLP_ROWS(SLP_ROW(SLP_FLOATS, cpu, slp_cuda_dot_add), SLP_HALF_ROWS(slp_cuda_dot_add)),
        .infer = infer,
        .flops = flops,
        .ref = ref,
};
