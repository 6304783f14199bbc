/* Products of matrices on GPUs: dot and matmul, and products that are added to a sum. */
#include "common/convert.h"
#include "dot.h"
#include "op.h"
#include "starling/primitives.h"
#include "common/gemm.cuh"
#include "common/lanes.cuh"

/* Products [z, z + count), whose operands lie at equal steps. */
template <class T>
static enum sl_status run(const struct slp_kernel *k, const struct slp_product &p, int64_t z, int64_t count)
{
	int64_t mk = p.m * p.k, kn = p.k * p.n, next = count > 1 ? z + 1 : z;
	int64_t a = slp_product_index(&p, p.lead_a, z), b = slp_product_index(&p, p.lead_b, z);
	int64_t step_a = slp_product_index(&p, p.lead_a, next) - a, step_b = slp_product_index(&p, p.lead_b, next) - b;
	struct slp_cuda_gemm g = slp_cuda_gemm_of(p.ta, p.tb, p.m, p.n, p.k);
	g.lda = p.lda;
	g.ldb = p.ldb;
	g.stride_a = step_a * mk;
	g.stride_b = step_b * kn;
	g.count = count;
	return slp_cuda_multiply<T>(k, g, (const T *)k->in[0].ptr + a * mk, (const T *)k->in[1].ptr + b * kn,
	                            (T *)k->out[0].ptr + z * p.m * p.n);
}

/* One call if no operand is broadcast along some of several axes, else a call for each run of the last axis. */
static int64_t batch_of(const struct slp_product &p)
{
	int64_t a = sl_shape_size(p.lead_a), b = sl_shape_size(p.lead_b);
	bool even = (a == 1 || a == p.count) && (b == 1 || b == p.count);
	return even || p.lead.ndim == 0 ? p.count : p.lead.dim[p.lead.ndim - 1];
}

extern "C" enum sl_status slp_cuda_product(const struct slp_kernel *k)
{
	struct slp_product p =
	        slp_product_of(*(const struct sl_dot_opts *)k->attrs, k->in[0].type.shape, k->in[1].type.shape);
	int64_t batch = batch_of(p);
	enum sl_status s = SL_OK;
	slp_with_float(k->in[0].type.dtype, [&](auto zero) {
		for (int64_t z = 0; z < p.count && s == SL_OK; z += batch) s = run<decltype(zero)>(k, p, z, batch);
	});
	return s;
}

extern "C" enum sl_status slp_cuda_dot_add(const struct slp_kernel *k)
{
	struct slp_product p =
	        slp_product_of(*(const struct sl_dot_opts *)k->attrs, k->in[1].type.shape, k->in[2].type.shape);
	struct slp_cuda_gemm g = slp_cuda_gemm_of(p.ta, p.tb, p.m, p.n, p.k);
	g.lda = p.lda;
	g.ldb = p.ldb;
	g.beta = 1;
	enum sl_status s = slp_take_sums(k, 1, slp_cuda_convert);
	if (s == SL_OK)
		slp_with_float(k->in[0].type.dtype, [&](auto zero) {
			typedef decltype(zero) T;
			s = slp_cuda_multiply<T>(k, g, (const T *)k->in[1].ptr, (const T *)k->in[2].ptr,
			                         (T *)k->out[0].ptr);
		});
	return s;
}
