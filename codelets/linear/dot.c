/* Products of matrices: dot (matrices and vectors) and matmul (stacks of matrices). */
#include "common/bf16.h"
#include "common/forget.h"
#include "common/gemm.h"
#include "dot.h"
#include "op_list/linear.h"
#include "starling/primitives.h"

static const struct slp_attr dot_attrs[] = {
        SLP_ATTR(struct sl_dot_opts, ta, SLP_BOOL, 1, "use the transpose of the first operand"),
        SLP_ATTR(struct sl_dot_opts, tb, SLP_BOOL, 1, "use the transpose of the second operand"),
        {0},
};

static struct sl_dot_opts opts_of(const void *attrs)
{
	return *(const struct sl_dot_opts *)attrs;
}

/* ---- shapes ----------------------------------------------------------------------------------------------------- */

static enum sl_status check_dtypes(const struct slp_infer *c)
{
	if (!slp_is_float(c->in[0].dtype) || c->in[0].dtype != c->in[1].dtype)
		return slp_reject(c, SL_EDTYPE, "operands must both be float32 or both float64");
	return SL_OK;
}

/* Checks that the inner sizes agree, once each operand is known to be a vector, a matrix or a stack of them. */
static enum sl_status check_inner(const struct slp_infer *c, const struct slp_product *p)
{
	sl_shape b = c->in[1].shape;
	int64_t inner = b.ndim < 2 ? b.dim[0] : b.dim[b.ndim - (p->tb ? 1 : 2)];
	if (inner == p->k) return SL_OK;
	return slp_reject(c, SL_ESHAPE, "inner sizes differ: %lld%s and %lld%s", (long long)p->k,
	                  p->ta ? " (transposed)" : "", (long long)inner, p->tb ? " (transposed)" : "");
}

static enum sl_status dot_infer(struct slp_infer *c)
{
	sl_shape a = c->in[0].shape, b = c->in[1].shape;
	enum sl_status s = check_dtypes(c);
	if (s != SL_OK) return s;
	if (a.ndim < 1 || a.ndim > 2 || b.ndim < 1 || b.ndim > 2)
		return slp_reject(c, SL_ESHAPE, "operands must have 1 or 2 axes (see sl_matmul for more)");
	struct slp_product p = slp_product_of(opts_of(c->attrs), a, b);
	if ((s = check_inner(c, &p)) != SL_OK) return s;
	sl_shape out = {0};
	if (a.ndim == 2) out.dim[out.ndim++] = p.m;
	if (b.ndim == 2) out.dim[out.ndim++] = p.n;
	c->out[0] = (struct slp_type){c->in[0].dtype, out};
	return SL_OK;
}

static enum sl_status matmul_infer(struct slp_infer *c)
{
	sl_shape a = c->in[0].shape, b = c->in[1].shape, out;
	enum sl_status s = check_dtypes(c);
	if (s != SL_OK) return s;
	if (a.ndim < 2 || b.ndim < 2)
		return slp_reject(c, SL_ESHAPE, "operands must have at least 2 axes (see sl_dot for vectors)");
	if (!slp_broadcast(slp_leading(a), slp_leading(b), &out))
		return slp_reject(c, SL_ESHAPE, "axes before the last two must be equal or 1");
	struct slp_product p = slp_product_of(opts_of(c->attrs), a, b);
	if ((s = check_inner(c, &p)) != SL_OK) return s;
	out.dim[out.ndim++] = p.m;
	out.dim[out.ndim++] = p.n;
	c->out[0] = (struct slp_type){c->in[0].dtype, out};
	return SL_OK;
}

static double product_flops(const struct slp_infer *c)
{
	struct slp_product p = slp_product_of(opts_of(c->attrs), c->in[0].shape, c->in[1].shape);
	return 2.0 * (double)p.m * (double)p.n * (double)p.k * (double)p.count;
}

/* ---- gradients --------------------------------------------------------------------------------------------------
 * With C = op(A) op(B):  dA = dC op(B)ᵀ, or op(B) dCᵀ where A is used transposed;  dB likewise. */

typedef sl_tensor *product_fn(const char *at, sl_tensor *a, sl_tensor *b, struct sl_dot_opts o);

static sl_tensor *grad_of_a(product_fn *product, const char *at, struct sl_dot_opts o, sl_tensor *b, sl_tensor *dc)
{
	return o.ta ? product(at, b, dc, (struct sl_dot_opts){.ta = o.tb, .tb = true})
	            : product(at, dc, b, (struct sl_dot_opts){.tb = !o.tb});
}

static sl_tensor *grad_of_b(product_fn *product, const char *at, struct sl_dot_opts o, sl_tensor *a, sl_tensor *dc)
{
	return o.tb ? product(at, dc, a, (struct sl_dot_opts){.ta = true, .tb = o.ta})
	            : product(at, a, dc, (struct sl_dot_opts){.ta = !o.ta});
}

/* Gradients of vectors are those of the matrices that they stand for. */
static enum sl_status dot_grad(struct slp_grad *g)
{
	sl_shape a = sl_tensor_shape(g->in[0]), b = sl_tensor_shape(g->in[1]);
	struct slp_product p = slp_product_of(opts_of(g->attrs), a, b);
	struct sl_dot_opts o = {p.ta, p.tb};
	sl_tensor *dc = sl_reshape_at(g->at, g->dout[0], SL_SHAPE(p.m, p.n));
	if (g->need[0]) {
		sl_tensor *b2 = b.ndim == 2 ? g->in[1] : sl_reshape_at(g->at, g->in[1], SL_SHAPE(p.k, 1));
		g->din[0] = sl_reshape_at(g->at, grad_of_a(sl_dot_at, g->at, o, b2, dc), a);
	}
	if (g->need[1]) {
		sl_tensor *a2 = a.ndim == 2 ? g->in[0] : sl_reshape_at(g->at, g->in[0], SL_SHAPE(1, p.k));
		g->din[1] = sl_reshape_at(g->at, grad_of_b(sl_dot_at, g->at, o, a2, dc), b);
	}
	return SL_OK;
}

/* Adds up a gradient over the axes along which its tensor of shape `to` was broadcast. */
static sl_tensor *unbroadcast(const char *at, sl_tensor *t, sl_shape to)
{
	if (!t || sl_shape_equal(sl_tensor_shape(t), to)) return t;
	sl_shape from = sl_tensor_shape(t);
	int axes[SL_MAX_NDIM], n = 0, more = from.ndim - to.ndim;
	for (int i = 0; i < from.ndim; i++)
		if (i < more || to.dim[i - more] != from.dim[i]) axes[n++] = i;
	t = sl_sum_at(at, t, (struct sl_reduce_opts){.axes = axes, .naxes = n, .keepdims = true});
	return sl_reshape_at(at, t, to);
}

static enum sl_status matmul_grad(struct slp_grad *g)
{
	struct sl_dot_opts o = opts_of(g->attrs);
	if (g->need[0])
		g->din[0] = unbroadcast(g->at, grad_of_a(sl_matmul_at, g->at, o, g->in[1], g->dout[0]),
		                        sl_tensor_shape(g->in[0]));
	if (g->need[1])
		g->din[1] = unbroadcast(g->at, grad_of_b(sl_matmul_at, g->at, o, g->in[0], g->dout[0]),
		                        sl_tensor_shape(g->in[1]));
	return SL_OK;
}

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

static double ref_element(const struct slp_kernel *k, const struct slp_product *p, int64_t a, int64_t b, int64_t i,
                          int64_t j)
{
	double sum = 0;
	for (int64_t l = 0; l < p->k; l++)
		sum += slp_get(&k->in[0], a + (p->ta ? l * p->lda + i : i * p->lda + l)) *
		       slp_get(&k->in[1], b + (p->tb ? j * p->ldb + l : l * p->ldb + j));
	return sum;
}

static enum sl_status product_ref(const struct slp_kernel *k)
{
	struct slp_product p = slp_product_of(opts_of(k->attrs), k->in[0].type.shape, k->in[1].type.shape);
	int64_t c = 0;
	for (int64_t z = 0; z < p.count; z++) {
		int64_t a = slp_product_index(&p, p.lead_a, z) * p.m * p.k;
		int64_t b = slp_product_index(&p, p.lead_b, z) * p.k * p.n;
		for (int64_t i = 0; i < p.m; i++)
			for (int64_t j = 0; j < p.n; j++) slp_set(&k->out[0], c++, ref_element(k, &p, a, b, i, j));
	}
	return SL_OK;
}

struct call {
	const struct slp_kernel *k;
	struct slp_product p;
};

/* Product z, on the team or on the calling thread. */
static enum sl_status one(const struct call *x, int64_t z, bool team)
{
	const struct slp_kernel *k = x->k;
	const struct slp_product *p = &x->p;
	int64_t a = slp_product_index(p, p->lead_a, z) * p->m * p->k, c = z * p->m * p->n;
	int64_t b = slp_product_index(p, p->lead_b, z) * p->k * p->n;
	if (k->in[0].type.dtype == SL_FLOAT64) {
		(team ? slp_dgemm : slp_dgemm_serial)(p->ta, p->tb, p->m, p->n, p->k, 1, (double *)k->in[0].ptr + a,
		                                      p->lda, (double *)k->in[1].ptr + b, p->ldb, 0,
		                                      (double *)k->out[0].ptr + c, p->n);
		return SL_OK;
	}
	const float *A = (float *)k->in[0].ptr + a, *B = (float *)k->in[1].ptr + b;
	float *C = (float *)k->out[0].ptr + c;
	if (team) return slp_sgemm(k, p->ta, p->tb, p->m, p->n, p->k, 1, A, p->lda, B, p->ldb, 0, C, p->n);
	return slp_sgemm_serial(p->ta, p->tb, p->m, p->n, p->k, 1, A, p->lda, B, p->ldb, 0, C, p->n);
}

static void many(void *arg, int64_t begin, int64_t end)
{
	for (int64_t z = begin; z < end; z++) one(arg, z, false);
}

/* A stack times one matrix is one tall product; small products are divided among the threads, large ones are computed
 * by all. */
static enum sl_status product_cpu(const struct slp_kernel *k)
{
	enum { BIG = 1 << 21 };
	struct call x = {k, slp_product_of(opts_of(k->attrs), k->in[0].type.shape, k->in[1].type.shape)};
	enum sl_status s = SL_OK;
	if (x.p.count > 1 && !x.p.ta && sl_shape_size(x.p.lead_b) == 1 && sl_shape_size(x.p.lead_a) == x.p.count) {
		x.p.m *= x.p.count;
		x.p.count = 1;
	}
	int64_t work = x.p.m * x.p.n * x.p.k;
	if (x.p.count > 1 && work < BIG) slp_parallel_for(x.p.count, 1 + SLP_GRAIN * 8 / (work + 1), many, &x);
	else
		for (int64_t z = 0; z < x.p.count && s == SL_OK; z++) s = one(&x, z, true);
	return s;
}

#ifdef HAVE_CUDA
enum sl_status slp_cuda_product(const struct slp_kernel *k);
#endif

/* ---- public ----------------------------------------------------------------------------------------------------- */

/* The product of a and b: matrix·matrix (m, k)·(k, n) = (m, n), matrix·vector (m, k)·(k) = (m), vector·matrix
 * (k)·(k, n) = (n), or the inner product of two vectors, a scalar.  .ta and .tb use a matrix transposed (a vector is
 * its own transpose).  Both float32 or both float64 (SL_EDTYPE).  SL_ESHAPE: inner sizes differ, or an operand does not
 * have 1 or 2 axes.
 *
 *	sl_tensor *y = sl_dot(x, w, .tb = true); */
sl_tensor *sl_dot_at(const char *at, sl_tensor *a, sl_tensor *b, struct sl_dot_opts opts)
{
	return slp_apply1(at, &slp_op_dot, &opts, 2, (sl_tensor *const[]){a, b});
}

/* The products of two stacks of matrices, (..., m, k)·(..., k, n) = (..., m, n); the axes before the last two are
 * broadcast as in NumPy.  .ta and .tb use the last two axes of a, of b transposed.  Both float32 or both float64
 * (SL_EDTYPE).  SL_ESHAPE: inner sizes differ, stacks cannot be broadcast, or an operand has fewer than 2 axes.
 *
 *	sl_tensor *scores = sl_matmul(queries, keys, .tb = true); */
sl_tensor *sl_matmul_at(const char *at, sl_tensor *a, sl_tensor *b, struct sl_dot_opts opts)
{
	return slp_apply1(at, &slp_op_matmul, &opts, 2, (sl_tensor *const[]){a, b});
}

#define PRODUCT(op_name, text)                                                                                         \
	const struct sl_op slp_op_##op_name = {                                                                        \
	        .name = #op_name,                                                                                      \
	        .doc = text,                                                                                           \
	        .args = "a b",                                                                                         \
	        SLP_NIN(2),                                                                                            \
	        .nout = 1,                                                                                             \
	        .attr_table = dot_attrs,                                                                               \
	        .attrs_size = sizeof(struct sl_dot_opts),                                                              \
	        .autocast = SLP_CAST_LOWER,                                                                            \
	        .saves = SLP_IN(0) | SLP_IN(1),                                                                        \
	        .rows = SLP_ROWS(SLP_ROW(SLP_FLOATS, product_cpu, slp_cuda_product), SLP_BF16_ROW(slp_product_bf16),   \
	                         SLP_HALF_ROWS(slp_cuda_product)),                                                     \
	        .infer = op_name##_infer,                                                                              \
	        .flops = product_flops,                                                                                \
	        .grad = op_name##_grad,                                                                                \
	        .ref = product_ref,                                                                                    \
	        .forget = SLP_CUDA_FORGET(slp_cublas_forget),                                                          \
	};

PRODUCT(dot, "product of matrices and vectors")
PRODUCT(matmul, "products of two stacks of matrices")
