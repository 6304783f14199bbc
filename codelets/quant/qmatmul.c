/* qmatmul, qmatmul_pack: products of quantised matrices, and weights as a library takes them.
 *
 * The library adds up products of a's bytes and of b's as int8; zero points are taken off from the sums of a's rows and
 * of b's columns, which follow packed weights. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "common/workspace.h"
#include "op_list/quant.h"
#include "quant.h"

#ifdef HAVE_ONEDNN
#include "qdnn.h"
#endif

static const struct slp_attr attr_table[] = {
        SLP_ATTR(struct slp_qmatmul_attrs, b_zero, SLP_INT, 1, "the zero point of b"),
        SLP_ATTR(struct slp_qmatmul_attrs, y_zero, SLP_INT, 1, "that of y"),
        SLP_ATTR(struct slp_qmatmul_attrs, out, SLP_INT, 1, "y is 0: uint8, 1: the sums, int32, 2: float32"),
        SLP_ATTR(struct slp_qmatmul_attrs, b_transposed, SLP_BOOL, 1, "b is (n, k)"),
        SLP_ATTR(struct slp_qmatmul_attrs, rows, SLP_INT64, 1, "of a, for qmatmul_pack"),
        SLP_ATTR(struct slp_qmatmul_attrs, inner, SLP_INT64, 1, "columns of a, for packed weights"),
        SLP_ATTR(struct slp_qmatmul_attrs, cols, SLP_INT64, 1, "columns of y, for packed weights"),
        SLP_ATTR(struct slp_qmatmul_attrs, packed, SLP_INT64, 1, "bytes of the packed weights; 0: they are not"),
        {0},
};

/* ---- rules ------------------------------------------------------------------------------------------------------- */

/* y = a b of `batch` products (m, k) (k, n). */
struct sizes {
	int64_t batch, m, k, n;
};

static struct sizes sizes_of(const struct slp_qmatmul_attrs *t, sl_shape a, sl_shape b)
{
	struct sizes s = {.batch = 1, .m = 1, .k = a.dim[a.ndim - 1]};
	bool one = t->packed || b.ndim == 2; /* the same b for all rows */
	for (int i = 0; i < a.ndim - 1; i++) *(one || i == a.ndim - 2 ? &s.m : &s.batch) *= a.dim[i];
	s.n = t->packed ? t->cols : b.dim[b.ndim - (t->b_transposed ? 2 : 1)];
	return s;
}

static enum sl_status check_b(const struct slp_infer *c, const struct slp_qmatmul_attrs *t, const struct slp_type *in)
{
	sl_shape a = in[0].shape, b = in[1].shape;
	if (a.ndim < 2) return slp_reject(c, SL_ESHAPE, "a must have 2 axes at least");
	int64_t k = a.dim[a.ndim - 1];
	if (t->packed) {
		if (b.ndim == 1 && b.dim[0] == t->packed && t->inner == k && t->cols > 0) return SL_OK;
		return slp_reject(c, SL_ESHAPE, "packed weights do not fit a");
	}
	bool fits = b.ndim >= 2 && b.dim[b.ndim - (t->b_transposed ? 1 : 2)] == k && (b.ndim == 2 || b.ndim == a.ndim);
	for (int i = 0; fits && b.ndim > 2 && i < a.ndim - 2; i++) fits = a.dim[i] == b.dim[i];
	return fits ? SL_OK : slp_reject(c, SL_ESHAPE, "b does not fit a");
}

static enum sl_status check_types(const struct slp_infer *c)
{
	if (c->in[0].dtype != SL_UINT8 || (c->nin > 1 && c->in[1].dtype != SL_UINT8))
		return slp_reject(c, SL_EDTYPE, "a and b must be uint8");
	if (c->nin > 1 && (c->in[2].dtype != SL_FLOAT32 || c->in[3].dtype != SL_FLOAT32))
		return slp_reject(c, SL_EDTYPE, "a_zero and scale must be float32");
	return c->nin > 4 && c->in[4].dtype != SL_INT32 ? slp_reject(c, SL_EDTYPE, "bias must be int32") : SL_OK;
}

static enum sl_status check_attrs(const struct slp_infer *c, const struct slp_qmatmul_attrs *t)
{
	if (t->out < 0 || t->out >= SLP_Q_OUTS) return slp_reject(c, SL_EINVAL, "out must be 0 to 2");
	if (t->b_zero < 0 || t->b_zero > 255 || t->y_zero < 0 || t->y_zero > 255)
		return slp_reject(c, SL_EINVAL, "zero points must be 0 to 255");
	return t->packed < 0 ? slp_reject(c, SL_EINVAL, "packed must not be negative") : SL_OK;
}

static enum sl_status qmatmul_infer(struct slp_infer *c)
{
	const struct slp_qmatmul_attrs *t = c->attrs;
	enum sl_status s = check_types(c);
	if (s == SL_OK) s = check_attrs(c, t);
	if (s == SL_OK) s = check_b(c, t, c->in);
	if (s != SL_OK) return s;
	struct sizes z = sizes_of(t, c->in[0].shape, c->in[1].shape);
	int64_t scales = sl_shape_size(c->in[3].shape);
	if (sl_shape_size(c->in[2].shape) != 1) return slp_reject(c, SL_ESHAPE, "one a_zero needed");
	if (scales != 1 && scales != z.n) return slp_reject(c, SL_ESHAPE, "one scale needed, or one for each column");
	if (c->nin > 4 && sl_shape_size(c->in[4].shape) != z.n)
		return slp_reject(c, SL_ESHAPE, "bias must have an element for each column");
	c->out[0] = (struct slp_type){slp_q_dtype(t->out), c->in[0].shape};
	c->out[0].shape.dim[c->in[0].shape.ndim - 1] = z.n;
	return SL_OK;
}

static enum sl_status pack_infer(struct slp_infer *c)
{
	const struct slp_qmatmul_attrs *t = c->attrs;
	enum sl_status s = check_types(c);
	if (s == SL_OK) s = check_attrs(c, t);
	if (s != SL_OK) return s;
	sl_shape b = t->b_transposed ? SL_SHAPE(t->cols, t->inner) : SL_SHAPE(t->inner, t->cols);
	if (t->packed < 1) return slp_reject(c, SL_EINVAL, "needs the size of the packed weights");
	if (!sl_shape_equal(c->in[0].shape, b)) return slp_reject(c, SL_ESHAPE, "b does not have the given sizes");
	c->out[0] = (struct slp_type){SL_UINT8, SL_SHAPE(t->packed)};
	return SL_OK;
}

static double qmatmul_flops(const struct slp_infer *c)
{
	struct sizes z = sizes_of(c->attrs, c->in[0].shape, c->in[1].shape);
	return 2.0 * (double)(z.batch * z.m * z.n) * (double)z.k;
}

static double no_flops(const struct slp_infer *c)
{
	(void)c;
	return 0;
}

/* ---- reference --------------------------------------------------------------------------------------------------- */

static enum sl_status qmatmul_ref(const struct slp_kernel *k)
{
	const struct slp_qmatmul_attrs *t = k->attrs;
	struct sizes z = sizes_of(t, k->in[0].type.shape, k->in[1].type.shape);
	int64_t down = t->b_transposed ? 1 : z.n, along = t->b_transposed ? z.k : 1;
	bool one = slp_size(&k->in[3]) == 1;
	if (t->packed) return slp_kernel_fail(k, SL_EUNSUPPORTED, "the plain kernel takes no packed weights");
	for (int64_t i = 0; i < slp_size(&k->out[0]); i++) {
		int64_t row = i / z.n, col = i % z.n, first = row / z.m * z.k * z.n;
		double sum = k->nin > 4 ? slp_get(&k->in[4], col) : 0, zero = slp_get(&k->in[2], 0);
		for (int64_t e = 0; e < z.k; e++)
			sum += (slp_get(&k->in[0], row * z.k + e) - zero) *
			       (slp_get(&k->in[1], first + e * down + col * along) - t->b_zero);
		slp_q_put(k->out[0].ptr, i, (int64_t)sum, (float)slp_get(&k->in[3], one ? 0 : col), t->out, t->y_zero);
	}
	return SL_OK;
}

static enum sl_status pack_ref(const struct slp_kernel *k)
{
	int64_t size = slp_size(&k->in[0]);
	for (int64_t i = 0; i < slp_size(&k->out[0]); i++) slp_set(&k->out[0], i, i < size ? slp_get(&k->in[0], i) : 0);
	return SL_OK;
}

/* ---- b: as int8, and sums of its columns ------------------------------------------------------------------------- */

SLP_CLONES static void make_signed(const uint8_t *b, int8_t *to, int64_t n)
{
	for (int64_t i = 0; i < n; i++) to[i] = (int8_t)(b[i] ^ 0x80);
}

SLP_CLONES static void add_row_of_bytes(int32_t *sum, const int8_t *b, int64_t n)
{
	for (int64_t i = 0; i < n; i++) sum[i] += b[i];
}

SLP_CLONES static int32_t sum_of(const int8_t *b, int64_t n)
{
	int32_t sum = 0;
	for (int64_t i = 0; i < n; i++) sum += b[i];
	return sum;
}

SLP_CLONES static int32_t sum_of_bytes(const uint8_t *a, int64_t n)
{
	int32_t sum = 0;
	for (int64_t i = 0; i < n; i++) sum += a[i];
	return sum;
}

static void add_columns(const struct sizes *z, bool transposed, const int8_t *b, int32_t *sums)
{
	memset(sums, 0, (size_t)z->n * sizeof *sums);
	for (int64_t i = 0; i < (transposed ? z->n : z->k); i++) {
		if (transposed) sums[i] = sum_of(b + i * z->k, z->k);
		else add_row_of_bytes(sums, b + i * z->n, z->n);
	}
}

/* ---- the sums of products ---------------------------------------------------------------------------------------- */

struct product {
	const struct slp_kernel *kernel;
	const struct slp_qmatmul_attrs *attrs;
	struct sizes z;
	const uint8_t *a;
	const void *b; /* int8, plain or packed */
	const int32_t *columns;
	int32_t *sums;
};

#ifdef HAVE_ONEDNN
static bool describe(const struct slp_qdnn_key *key, const struct slp_dnn_quant *quant, dnnl_engine_t engine,
                     dnnl_primitive_desc_t *pd, slp_dnn_md *plain)
{
	const int64_t *v = key->v; /* 2, batch, m, k, n, transposed, packed, threads */
	int from = v[1] > 1 ? 0 : 1, axes = 3 - from;
	dnnl_dims_t a = {v[1], v[2], v[3]}, b = {v[1], v[3], v[4]}, c = {v[1], v[2], v[4]};
	dnnl_format_tag_t order = from ? dnnl_ab : dnnl_abc, turned = from ? dnnl_ba : dnnl_acb;
	dnnl_format_tag_t plain_b = v[5] ? turned : order;
	slp_dnn_md x, w, y;
	(void)quant;
	bool ok = slp_dnn_md_make(&x, axes, a + from, dnnl_u8, order) &&
	          slp_dnn_md_make(&w, axes, b + from, dnnl_s8, v[6] ? dnnl_format_tag_any : plain_b) &&
	          slp_dnn_md_make(plain, axes, b + from, dnnl_s8, plain_b) &&
	          slp_dnn_md_make(&y, axes, c + from, dnnl_s32, order) &&
	          slp_dnn_matmul_describe(pd, engine, &x, &w, &y) == dnnl_success;
	if (!ok) return false;
	slp_dnn_md_free(&x);
	slp_dnn_md_free(&w);
	slp_dnn_md_free(&y);
	const char *how = "";
	dnnl_primitive_desc_query(*pd, dnnl_query_impl_info_str, 0, &how);
	if (strncmp(how, "ref", 3) != 0) return true;
	dnnl_primitive_desc_destroy(*pd);
	return false;
}

static struct slp_qdnn_key key_of(const struct sizes *z, bool transposed, bool packed, int threads)
{
	return (struct slp_qdnn_key){{2, z->batch, z->m, z->k, z->n, transposed, packed, threads}};
}

static bool by_library(const struct product *p)
{
	struct slp_qdnn_key key = key_of(&p->z, p->attrs->b_transposed, p->attrs->packed > 0, p->kernel->threads);
	struct slp_qdnn *m = slp_qdnn_find(&key, &(struct slp_dnn_quant){0}, describe);
	char *work = m ? slp_workspace(SLP_WORK_PART, m->scratch_bytes + 64) : NULL;
	return work && slp_qdnn_run(m, p->a, p->b, NULL, p->sums, work);
}

/* Bytes of the packed weights alone; their columns' sums follow. */
static size_t packed_bytes(const struct sizes *z, bool transposed, int threads)
{
	struct slp_qdnn_key key = key_of(z, transposed, true, threads);
	return (slp_qdnn_packed(&key, &(struct slp_dnn_quant){0}, describe) + 63) & ~(size_t)63;
}

static bool pack(const struct sizes *z, bool transposed, int threads, void *plain, void *packed)
{
	struct slp_qdnn_key key = key_of(z, transposed, true, threads);
	struct slp_qdnn *m = slp_qdnn_find(&key, &(struct slp_dnn_quant){0}, describe);
	return m && slp_qdnn_pack(m, plain, packed);
}
#else
static bool by_library(const struct product *p)
{
	(void)p;
	return false;
}

static size_t packed_bytes(const struct sizes *z, bool transposed, int threads)
{
	(void)z;
	(void)transposed;
	(void)threads;
	return 0;
}

static bool pack(const struct sizes *z, bool transposed, int threads, void *plain, void *packed)
{
	(void)z;
	(void)transposed;
	(void)threads;
	(void)plain;
	(void)packed;
	return false;
}
#endif

SLP_CLONES static void add_scaled(int32_t *sum, const int8_t *b, int32_t a, int64_t n)
{
	for (int64_t i = 0; i < n; i++) sum[i] += a * b[i];
}

SLP_CLONES static int32_t inner_product(const uint8_t *a, const int8_t *b, int64_t n)
{
	int32_t sum = 0;
	for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
	return sum;
}

/* Rows of sums, without a library. */
static void sum_rows(void *arg, int64_t begin, int64_t end)
{
	const struct product *p = arg;
	const struct sizes *z = &p->z;
	for (int64_t row = begin; row < end; row++) {
		const uint8_t *a = p->a + row * z->k;
		const int8_t *b = (const int8_t *)p->b + row / z->m * z->k * z->n;
		int32_t *sum = p->sums + row * z->n;
		for (int64_t i = 0; i < z->n; i++)
			sum[i] = p->attrs->b_transposed ? inner_product(a, b + i * z->k, z->k) : 0;
		for (int64_t e = 0; !p->attrs->b_transposed && e < z->k; e++) add_scaled(sum, b + e * z->n, a[e], z->n);
	}
}

/* ---- sums as results --------------------------------------------------------------------------------------------- */

/* Σ (a - za) (b - zb) of a row: the terms to add to Σ a b, one for all columns and one for each. */
SLP_CLONES static void correct(int32_t *sum, const int32_t *columns, const int32_t *bias, int32_t za, int32_t all,
                               int64_t n)
{
	if (bias)
		for (int64_t i = 0; i < n; i++) sum[i] += all - za * columns[i] + bias[i];
	else
		for (int64_t i = 0; i < n; i++) sum[i] += all - za * columns[i];
}

SLP_CLONES static void to_floats(float *y, const int32_t *sum, const float *scale, bool one, int64_t n)
{
	if (one)
		for (int64_t i = 0; i < n; i++) y[i] = (float)sum[i] * scale[0];
	else
		for (int64_t i = 0; i < n; i++) y[i] = (float)sum[i] * scale[i];
}

SLP_CLONES static void to_bytes(uint8_t *y, const int32_t *sum, const float *scale, bool one, float zero, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		float v = (float)sum[i] * scale[one ? 0 : i] + zero;
		v = v > 0 ? v : 0;
		y[i] = (uint8_t)(int)rintf(v < 255 ? v : 255);
	}
}

static void finish_rows(void *arg, int64_t begin, int64_t end)
{
	const struct product *p = arg;
	const struct slp_kernel *k = p->kernel;
	const struct sizes *z = &p->z;
	const float *scale = k->in[3].ptr;
	bool one = slp_size(&k->in[3]) == 1;
	int32_t za = (int32_t) * (const float *)k->in[2].ptr, zb = p->attrs->b_zero - SLP_Q_WEIGHT_ZERO;
	for (int64_t row = begin; row < end; row++) {
		int32_t *sum = p->sums + row * z->n, all = zb * za * (int32_t)z->k;
		if (zb) all -= zb * sum_of_bytes(p->a + row * z->k, z->k);
		correct(sum, p->columns + row / z->m * z->n, k->nin > 4 ? k->in[4].ptr : NULL, za, all, z->n);
		if (p->attrs->out == SLP_Q_FLOAT32)
			to_floats((float *)k->out[0].ptr + row * z->n, sum, scale, one, z->n);
		else if (p->attrs->out == SLP_Q_UINT8)
			to_bytes((uint8_t *)k->out[0].ptr + row * z->n, sum, scale, one, (float)p->attrs->y_zero, z->n);
	}
}

/* b as int8, its columns' sums behind it. */
static bool prepare_b(struct product *p)
{
	const struct slp_qmatmul_attrs *t = p->attrs;
	const struct slp_kernel *k = p->kernel;
	int64_t n = slp_size(&k->in[1]), each = p->z.k * p->z.n;
	if (t->packed) {
		p->b = k->in[1].ptr;
		p->columns = (const int32_t *)(const void *)((const char *)p->b + t->packed - 4 * p->z.n);
		return true;
	}
	size_t bytes = ((size_t)n + 63) & ~(size_t)63;
	char *work = slp_workspace(SLP_WORK_ORDER, bytes + (size_t)(p->z.batch * p->z.n) * sizeof(int32_t) + 1);
	if (!work) return false;
	make_signed(k->in[1].ptr, (int8_t *)work, n);
	for (int64_t i = 0; i < p->z.batch; i++)
		add_columns(&p->z, t->b_transposed, (int8_t *)work + i * each,
		            (int32_t *)(void *)(work + bytes) + i * p->z.n);
	p->b = work;
	p->columns = (int32_t *)(void *)(work + bytes);
	return true;
}

static enum sl_status qmatmul_cpu(const struct slp_kernel *k)
{
	struct product p = {.kernel = k,
	                    .attrs = k->attrs,
	                    .z = sizes_of(k->attrs, k->in[0].type.shape, k->in[1].type.shape),
	                    .a = k->in[0].ptr};
	int64_t rows = p.z.batch * p.z.m;
	if (slp_size(&k->out[0]) == 0) return SL_OK;
	bool inside = p.attrs->out != SLP_Q_UINT8; /* sums lie in the result */
	p.sums = inside ? k->out[0].ptr : slp_workspace(SLP_WORK_CALL, (size_t)(rows * p.z.n) * sizeof *p.sums);
	if (!p.sums || !prepare_b(&p)) return slp_kernel_fail(k, SL_ENOMEM, "no memory for sums");
	if (p.z.k == 0) memset(p.sums, 0, (size_t)(rows * p.z.n) * sizeof *p.sums);
	else if (!by_library(&p)) {
		if (p.attrs->packed) return slp_kernel_fail(k, SL_EKERNEL, "no kernel for packed weights");
		slp_parallel_for(rows, SLP_GRAIN / (p.z.k * p.z.n + 1) + 1, sum_rows, &p);
	}
	slp_parallel_for(rows, SLP_GRAIN / 4 / (p.z.n + 1) + 1, finish_rows, &p);
	return SL_OK;
}

static enum sl_status pack_cpu(const struct slp_kernel *k)
{
	const struct slp_qmatmul_attrs *t = k->attrs;
	struct sizes z = {1, t->rows, t->inner, t->cols};
	char *to = k->out[0].ptr;
	size_t columns = (size_t)z.n * sizeof(int32_t),
	       needed = packed_bytes(&z, t->b_transposed, k->threads) + columns;
	if (needed != (size_t)t->packed)
		return slp_kernel_fail(k, SL_EKERNEL, "packed weights take %zu bytes, %lld were planned", needed,
		                       (long long)t->packed);
	int8_t *b = slp_workspace(SLP_WORK_ORDER, (size_t)slp_size(&k->in[0]) + 1);
	if (!b) return slp_kernel_fail(k, SL_ENOMEM, "no memory for weights");
	make_signed(k->in[0].ptr, b, slp_size(&k->in[0]));
	add_columns(&z, t->b_transposed, b, (int32_t *)(void *)(to + t->packed - (int64_t)columns));
	if (pack(&z, t->b_transposed, k->threads, b, to)) return SL_OK;
	return slp_kernel_fail(k, SL_EKERNEL, "oneDNN cannot reorder the weights");
}

bool slp_qmatmul_plan(struct slp_qmatmul_attrs *t, int threads)
{
	struct sizes z = {1, t->rows, t->inner, t->cols};
	int before = omp_get_max_threads(); /* oneDNN reads it, so it must be the team's */
	omp_set_num_threads(threads);
	size_t bytes = packed_bytes(&z, t->b_transposed, threads);
	omp_set_num_threads(before);
	t->packed = bytes ? (int64_t)(bytes + (size_t)z.n * sizeof(int32_t)) : 0;
	return bytes > 0;
}

const struct sl_op slp_op_qmatmul = {
        .name = "qmatmul",
        .doc = "products of quantised matrices",
        .args = "a b a_zero scale bias",
        .nin_min = 4,
        .nin_max = 5,
        .nout = 1,
        .attr_table = attr_table,
        .attrs_size = sizeof(struct slp_qmatmul_attrs),
        .rows = SLP_ROWS(SLP_ROW(SLP_DTYPE(SL_UINT8) | SLP_F32, qmatmul_cpu, slp_cuda_qmatmul)),
        .infer = qmatmul_infer,
        .flops = qmatmul_flops,
        .grad = slp_constant,
        .ref = qmatmul_ref,
};

const struct sl_op slp_op_qmatmul_pack = {
        .name = "qmatmul_pack",
        .doc = "weights as qmatmul takes them",
        .args = "b",
        SLP_NIN(1),
        .nout = 1,
        .attr_table = attr_table,
        .attrs_size = sizeof(struct slp_qmatmul_attrs),
        .rows = SLP_ROWS(SLP_CPU_ROW(SLP_DTYPE(SL_UINT8), pack_cpu, NULL)),
        .infer = pack_infer,
        .flops = no_flops,
        .ref = pack_ref,
};
