/* The sizes of dot, matmul and linear as products of matrices, for their CPU and CUDA kernels. */
#ifndef SLP_DOT_H
#define SLP_DOT_H

#include "op.h"
#include "starling/primitives.h"

/* `count` products C = op(A) op(B), C m×n without gaps; the operands as stored have rows of lda and ldb elements. */
struct slp_product {
	bool ta, tb;
	int64_t m, n, k, lda, ldb, count;
	sl_shape lead_a, lead_b, lead; /* the axes before those of the matrices */
};

static inline sl_shape slp_leading(sl_shape s)
{
	sl_shape lead = s;
	lead.ndim = s.ndim > 2 ? s.ndim - 2 : 0;
	return lead;
}

/* A vector is a row on the left and a column on the right, and its own transpose. */
static inline struct slp_product slp_product_of(struct sl_dot_opts o, sl_shape a, sl_shape b)
{
	struct slp_product p = {};
	int na = a.ndim, nb = b.ndim;
	p.ta = o.ta && na > 1;
	p.tb = o.tb && nb > 1;
	p.lda = a.dim[na - 1];
	p.ldb = nb > 1 ? b.dim[nb - 1] : 1;
	int64_t rows_a = na > 1 ? a.dim[na - 2] : 1, rows_b = nb > 1 ? b.dim[nb - 2] : b.dim[0];
	p.m = p.ta ? p.lda : rows_a;
	p.k = p.ta ? rows_a : p.lda;
	p.n = p.tb ? rows_b : p.ldb;
	p.lead_a = slp_leading(a);
	p.lead_b = slp_leading(b);
	slp_broadcast(p.lead_a, p.lead_b, &p.lead);
	p.count = sl_shape_size(p.lead);
	return p;
}

/* The operand's matrix in product z; lead is the operand's. */
static inline int64_t slp_product_index(const struct slp_product *p, sl_shape lead, int64_t z)
{
	int64_t index = 0, step = 1;
	for (int i = p->lead.ndim - 1, j = lead.ndim - 1; j >= 0; i--, j--) {
		if (lead.dim[j] != 1) index += z % p->lead.dim[i] * step;
		z /= p->lead.dim[i];
		step *= lead.dim[j];
	}
	return index;
}

/* Both products in bfloat16 (dot_bf16.c). */
enum sl_status slp_product_bf16(const struct slp_kernel *k);

#endif
