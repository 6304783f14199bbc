/* Products of matrices in bfloat16, one after the other. */
#include <string.h>

#include "common/bf16.h"
#include "dot.h"
#include "op.h"
#include "starling/primitives.h"

enum sl_status slp_product_bf16(const struct slp_kernel *k)
{
	struct slp_product p =
	        slp_product_of(*(const struct sl_dot_opts *)k->attrs, k->in[0].type.shape, k->in[1].type.shape);
	sl_bfloat16 *a = k->in[0].ptr, *b = k->in[1].ptr, *c = k->out[0].ptr;
	enum sl_status s = SL_OK;
	if (p.m == 0 || p.n == 0) return SL_OK;
	for (int64_t z = 0; z < p.count && s == SL_OK; z++) {
		struct slp_bf16_matrix A = {a + slp_product_index(&p, p.lead_a, z) * p.m * p.k, p.m, p.k, p.lda, p.ta};
		struct slp_bf16_matrix B = {b + slp_product_index(&p, p.lead_b, z) * p.k * p.n, p.k, p.n, p.ldb, p.tb};
		struct slp_bf16_matrix C = {c + z * p.m * p.n, p.m, p.n, p.n, false};
		s = slp_bf16_multiply(k, &A, &B, &C, false);
	}
	return s;
}
