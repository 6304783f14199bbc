/* layer_norm: each sample with its own mean and deviation over the last axis.
 * J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer normalization", arXiv:1607.06450, 2016. */
#include "layer_norm.h"
#include "op_list/norm.h"
#include "options.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/primitives.h"

#include "loss/softmax_rows.h"

static const struct slp_attr attr_table[] = {
        SLP_ATTR_DEFAULTED(struct slp_layer_norm_attrs, eps, "added to the variance; 0 means 1e-5"),
        {0},
};

/* ---- rules ------------------------------------------------------------------------------------------------------ */

/* Inputs [first, end) are vectors with an element for each of the last axis of x. */
enum sl_status slp_layer_norm_check(const struct slp_infer *c, const struct slp_type *x, int first, int end)
{
	if (!slp_is_float(x->dtype))
		return slp_reject(c, SL_EDTYPE, "x is %s, float32 or float64 needed", sl_dtype_name(x->dtype));
	if (x->shape.ndim < 1) return slp_reject(c, SL_ESHAPE, "x is a number; at least one axis needed");
	int64_t n = x->shape.dim[x->shape.ndim - 1];
	for (int i = 0; i < c->nin; i++) {
		if (c->in[i].dtype == x->dtype || (i >= first && c->in[i].dtype == slp_promoted(x->dtype))) continue;
		return slp_reject(c, SL_EDTYPE,
		                  "all inputs must have the data type of x, %s, or if that is a half type, gamma, beta "
		                  "and statistics float32",
		                  sl_dtype_name(x->dtype));
	}
	for (int i = first; i < end; i++)
		if (!sl_shape_equal(c->in[i].shape, SL_SHAPE(n)))
			return slp_reject(c, SL_ESHAPE, "gamma and beta must have shape (%lld), that of the last axis",
			                  (long long)n);
	return SL_OK;
}

static sl_shape without_last(sl_shape s)
{
	s.dim[--s.ndim] = 0;
	return s;
}

enum sl_status slp_layer_norm_set_eps(const struct slp_infer *c, struct slp_layer_norm_attrs *a)
{
	a->eps = slp_or(a->eps, 1e-5);
	if (a->eps >= 0 && isfinite(a->eps)) return SL_OK;
	return slp_reject(c, SL_EINVAL, "eps is %g, a finite number needed, not below 0", a->eps);
}

static enum sl_status infer_forward(struct slp_infer *c)
{
	enum sl_status status = slp_layer_norm_check(c, &c->in[0], 1, 3);
	if (status == SL_OK) status = slp_layer_norm_set_eps(c, c->attrs);
	if (status) return status;
	c->out[0] = c->in[0];
	c->out[1] = c->out[2] = (struct slp_type){slp_promoted(c->in[0].dtype), without_last(c->in[0].shape)};
	return SL_OK;
}

/* The gradient of rows of float32 may be in a half type, as autocast makes it: dy, and the term added to dx. */
static enum sl_status infer_grad(struct slp_infer *c)
{
	struct slp_type in[6];
	struct slp_infer all = *c;
	const struct slp_type *x = &c->in[1];
	memcpy(in, c->in, (size_t)c->nin * sizeof *in);
	for (int i = 0; i < c->nin; i += 5)
		if (x->dtype == SL_FLOAT32) in[i].dtype = slp_promoted(in[i].dtype);
	all.in = in;
	enum sl_status status = slp_layer_norm_check(&all, x, 2, 3);
	if (status) return status;
	if (c->nin > 5 && !sl_shape_equal(c->in[5].shape, x->shape))
		return slp_reject(c, SL_ESHAPE, "the term added to dx must have the shape of x");
	if (!sl_shape_equal(c->in[0].shape, x->shape)) return slp_reject(c, SL_ESHAPE, "dy must have the shape of x");
	for (int i = 3; i < 5; i++)
		if (!sl_shape_equal(c->in[i].shape, without_last(x->shape)))
			return slp_reject(c, SL_ESHAPE,
			                  "mean and invstd must have the shape of x without its last axis");
	c->out[0] = *x;
	c->out[1] = c->out[2] = c->in[2];
	return SL_OK;
}

static double flops_forward(const struct slp_infer *c)
{
	return 7.0 * (double)sl_shape_size(c->out[0].shape);
}

static double flops_grad(const struct slp_infer *c)
{
	return 13.0 * (double)sl_shape_size(c->out[0].shape);
}

/* Sums for gamma and beta, of each part. */
static size_t scratch_grad(const struct slp_infer *c)
{
	struct slp_layer_rows s = slp_layer_rows_of(c->in[1].shape);
	int64_t parts = slp_layer_blocks(s.rows);
	return (size_t)(2 * (parts > s.parts ? parts : s.parts) * s.n) * sizeof(double);
}

/* ---- reference -------------------------------------------------------------------------------------------------- */

enum sl_status slp_layer_norm_ref(const struct slp_kernel *k)
{
	const struct slp_layer_norm_attrs *a = k->attrs;
	const struct slp_view *x = &k->in[0];
	struct slp_layer_rows s = slp_layer_rows_of(x->type.shape);
	for (int64_t r = 0; r < s.rows; r++) {
		double mean = 0, var = 0;
		for (int64_t i = 0; i < s.n; i++) mean += slp_get(x, r * s.n + i);
		mean /= (double)s.n;
		for (int64_t i = 0; i < s.n; i++) {
			double d = slp_get(x, r * s.n + i) - mean;
			var += d * d;
		}
		double invstd = 1 / sqrt(var / (double)s.n + a->eps);
		for (int64_t i = 0; i < s.n; i++)
			slp_set(&k->out[0], r * s.n + i,
			        (slp_get(x, r * s.n + i) - mean) * invstd * slp_get(&k->in[1], i) +
			                slp_get(&k->in[2], i));
		slp_set(&k->out[1], r, mean);
		slp_set(&k->out[2], r, invstd);
	}
	return SL_OK;
}

/* With h = (x - mean) invstd and d = dy gamma:  dgamma = Σ dy h and dbeta = Σ dy over the rows;
 * dx = invstd (d - mean(d) - h mean(d h)), means over the row, plus the term to add. */
static void ref_grad_row(const struct slp_kernel *k, int64_t r, int64_t n)
{
	double mean = slp_get(&k->in[3], r), invstd = slp_get(&k->in[4], r), sum = 0, product = 0;
	for (int64_t i = 0; i < n; i++) {
		double dy = slp_get(&k->in[0], r * n + i), h = (slp_get(&k->in[1], r * n + i) - mean) * invstd;
		sum += dy * slp_get(&k->in[2], i) / (double)n;
		product += dy * slp_get(&k->in[2], i) * h / (double)n;
	}
	for (int64_t i = 0; i < n; i++) {
		double h = (slp_get(&k->in[1], r * n + i) - mean) * invstd;
		double d = slp_get(&k->in[0], r * n + i) * slp_get(&k->in[2], i);
		double dx = invstd * (d - sum - h * product);
		slp_set(&k->out[0], r * n + i, k->nin > 5 ? dx + slp_get(&k->in[5], r * n + i) : dx);
	}
}

static enum sl_status ref_grad(const struct slp_kernel *k)
{
	struct slp_layer_rows s = slp_layer_rows_of(k->in[1].type.shape);
	for (int64_t r = 0; r < s.rows; r++) ref_grad_row(k, r, s.n);
	for (int64_t i = 0; i < s.n; i++) {
		double dgamma = 0, dbeta = 0;
		for (int64_t r = 0; r < s.rows; r++) {
			double dy = slp_get(&k->in[0], r * s.n + i);
			dbeta += dy;
			dgamma +=
			        dy * (slp_get(&k->in[1], r * s.n + i) - slp_get(&k->in[3], r)) * slp_get(&k->in[4], r);
		}
		slp_set(&k->out[1], i, dgamma);
		slp_set(&k->out[2], i, dbeta);
	}
	return SL_OK;
}

/* ---- CPU -------------------------------------------------------------------------------------------------------- */

struct job {
	struct slp_layer_rows s;
	const float *x, *gamma;
	/* forward */
	double eps;
	const float *beta, *r; /* r: x is the sum of x and r; NULL: of nothing */
	float *sum, *y, *out_mean, *out_invstd;
	/* backward */
	const float *dy, *mean, *invstd, *more; /* more: added to dx; NULL: nothing */
	float *dx, *dgamma, *dbeta;
	double *sums; /* [part][2][n]: of dy h and of dy */
};

/* Row r of x, of which the sum is made while it is in the cache. */
SLP_VFN const float *row_of(const struct job *j, int64_t r)
{
	int64_t n = j->s.n;
	const float *x = j->x + r * n, *more = j->r + (j->r ? r * n : 0);
	float *sum = j->sum + (j->r ? r * n : 0);
	if (!j->r) return x;
	SLP_INDEPENDENT
	for (int64_t i = 0; i < n; i++) sum[i] = x[i] + more[i];
	return sum;
}

static SLP_CLONES void forward(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	int64_t n = j->s.n;
	const float *gamma = j->gamma, *beta = j->beta;
	for (int64_t r = begin; r < end; r++) {
		const float *x = row_of(j, r);
		float *y = j->y + r * n;
		double mean, rest, squares;
		SLP_ROW_SUM(mean, n, (double)x[i]);
		mean /= (double)n;
		float center = (float)mean; /* adds the rounding error of the mean, `rest` */
		rest = mean - center;
		SLP_ROW_SUM(squares, n, (double)(x[i] - center) * (x[i] - center));
		double var = squares / (double)n - rest * rest, invstd = 1 / sqrt((var < 0 ? 0 : var) + j->eps);
		float scale = (float)invstd, shift = (float)(-rest * invstd);
		SLP_INDEPENDENT
		for (int64_t i = 0; i < n; i++) y[i] = ((x[i] - center) * scale + shift) * gamma[i] + beta[i];
		j->out_mean[r] = center;
		j->out_invstd[r] = scale;
	}
}

SLP_VFN void grad_row(const struct job *j, int64_t r)
{
	int64_t n = j->s.n;
	const float *x = j->x + r * n, *dy = j->dy + r * n, *gamma = j->gamma;
	float *dx = j->dx + r * n, mean = j->mean[r], invstd = j->invstd[r];
	double sum, product;
	SLP_ROW_SUM(sum, n, (double)(dy[i] * gamma[i]));
	SLP_ROW_SUM(product, n, (double)(dy[i] * gamma[i] * (x[i] - mean)));
	float a = (float)(sum / (double)n), b = (float)(product / (double)n * invstd * invstd);
	SLP_INDEPENDENT
	for (int64_t i = 0; i < n; i++) dx[i] = invstd * (dy[i] * gamma[i] - a - b * (x[i] - mean));
	if (!j->more) return;
	const float *more = j->more + r * n;
	SLP_INDEPENDENT
	for (int64_t i = 0; i < n; i++) dx[i] += more[i];
}

/* The number of rows that are added in single precision before they join the sums of their part. */
enum { ROWS = 8 };

SLP_VFN void add_rows(const struct job *j, int64_t r, int rows, double *dgamma, double *dbeta)
{
	int64_t n = j->s.n;
	const float *x = j->x + r * n, *dy = j->dy + r * n, *mean = j->mean + r, *invstd = j->invstd + r;
	SLP_INDEPENDENT
	for (int64_t i = 0; i < n; i++) {
		float product = 0, sum = 0;
		for (int l = 0; l < rows; l++) {
			float d = dy[l * n + i];
			product += d * ((x[l * n + i] - mean[l]) * invstd[l]);
			sum += d;
		}
		dgamma[i] += (double)product;
		dbeta[i] += (double)sum;
	}
}

static SLP_CLONES void grad_parts(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	for (int64_t part = begin; part < end; part++) {
		double *dgamma = j->sums + 2 * part * j->s.n, *dbeta = dgamma + j->s.n;
		int64_t last = SLP_LAYER_PART(j->s, part + 1);
		if (j->s.n) memset(dgamma, 0, (size_t)(2 * j->s.n) * sizeof *dgamma);
		for (int64_t r = SLP_LAYER_PART(j->s, part); r < last; r += ROWS) {
			int rows = last - r < ROWS ? (int)(last - r) : ROWS;
			for (int l = 0; l < rows; l++) grad_row(j, r + l);
			if (rows == ROWS) add_rows(j, r, ROWS, dgamma, dbeta);
			else
				for (int l = 0; l < rows; l++) add_rows(j, r + l, 1, dgamma, dbeta);
		}
	}
}

static SLP_CLONES void join_parts(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	int64_t n = j->s.n;
	for (int64_t i = begin; i < end; i++) {
		double dgamma = 0, dbeta = 0;
		for (int64_t part = 0; part < j->s.parts; part++) {
			dgamma += j->sums[2 * part * n + i];
			dbeta += j->sums[(2 * part + 1) * n + i];
		}
		j->dgamma[i] = (float)dgamma;
		j->dbeta[i] = (float)dbeta;
	}
}

/* Of layer_norm_sum, too. */
enum sl_status slp_layer_norm_cpu(const struct slp_kernel *k)
{
	const struct slp_layer_norm_attrs *a = k->attrs;
	struct job j = {.s = slp_layer_rows_of(k->in[0].type.shape),
	                .x = k->in[0].ptr,
	                .gamma = k->in[1].ptr,
	                .eps = a->eps,
	                .beta = k->in[2].ptr,
	                .r = k->nin > 3 ? k->in[3].ptr : NULL,
	                .sum = k->nin > 3 ? k->out[3].ptr : NULL,
	                .y = k->out[0].ptr,
	                .out_mean = k->out[1].ptr,
	                .out_invstd = k->out[2].ptr};
	slp_parallel_for(j.s.rows, SLP_GRAIN / 2 / (j.s.n + 1) + 1, forward, &j);
	return SL_OK;
}

static enum sl_status cpu_grad(const struct slp_kernel *k)
{
	struct job j = {.s = slp_layer_rows_of(k->in[1].type.shape),
	                .x = k->in[1].ptr,
	                .gamma = k->in[2].ptr,
	                .dy = k->in[0].ptr,
	                .mean = k->in[3].ptr,
	                .invstd = k->in[4].ptr,
	                .more = k->nin > 5 ? k->in[5].ptr : NULL,
	                .dx = k->out[0].ptr,
	                .dgamma = k->out[1].ptr,
	                .dbeta = k->out[2].ptr,
	                .sums = k->scratch};
	if (j.s.n == 0) return SL_OK; /* scratch is NULL, too */
	int64_t part = j.s.parts ? j.s.rows / j.s.parts * j.s.n : 0;
	slp_parallel_for(j.s.parts, SLP_GRAIN / 2 / (part + 1) + 1, grad_parts, &j);
	slp_parallel_for(j.s.n, SLP_GRAIN / (2 * j.s.parts + 1) + 1, join_parts, &j);
	return SL_OK;
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

/* The mean and the inverse deviation are by-products: no gradient goes back through them. */
static enum sl_status grad(struct slp_grad *g)
{
	sl_tensor *d[3], *in[] = {g->dout[0], g->in[0], g->in[1], g->out[1], g->out[2]};
	if (!g->dout[0]) return SL_OK;
	enum sl_status status = slp_apply(g->at, &slp_op_layer_norm_grad, NULL, 5, in, sl_tensor_device(g->dout[0]), d);
	for (int i = 0; i < 3; i++)
		if (!status && g->need[i]) g->din[i] = d[i];
	return status;
}

/* The same by other operations, for second derivatives. */
static bool again(const struct slp_grad *g, sl_tensor **out)
{
	static const int last = -1;
	const struct slp_layer_norm_attrs *a = g->attrs;
	struct sl_reduce_opts along = {&last, 1, true};
	enum sl_dtype dtype = sl_tensor_dtype(g->in[0]), wide = sl_tensor_dtype(g->in[1]);
	sl_tensor *x = dtype == wide ? g->in[0] : sl_cast_at(g->at, g->in[0], wide);
	sl_tensor *centred = sl_sub_at(g->at, x, sl_mean_at(g->at, x, along));
	sl_tensor *var = sl_mean_at(g->at, sl_square_at(g->at, centred), along);
	sl_tensor *h = sl_mul_at(g->at, centred, sl_pow_scalar_at(g->at, sl_add_scalar_at(g->at, var, a->eps), -0.5));
	sl_tensor *y = sl_add_at(g->at, sl_mul_at(g->at, h, g->in[1]), g->in[2]);
	out[0] = y && dtype != wide ? sl_cast_at(g->at, y, dtype) : y;
	return out[0] != NULL;
}

/* x normalised over its last axis, for each sample: gamma (x - m) / sqrt(v + eps) + beta, with the mean m and the
 * biased variance v of the sample, in training and inference.  x is (…, n), gamma and beta are (n), all float32
 * or all float64; the result has the shape of x.  As torch.nn.LayerNorm(n); J. L. Ba et al., arXiv:1607.06450, 2016.
 * SL_ESHAPE, SL_EDTYPE: inputs do not match; SL_EINVAL: a negative eps.
 *
 *	sl_tensor *y = sl_layer_norm(x, gamma, beta, .eps = 1e-6); */
sl_tensor *sl_layer_norm_at(const char *at, sl_tensor *x, sl_tensor *gamma, sl_tensor *beta,
                            struct sl_layer_norm_opts opts)
{
	if (!SLP_OPTIONS(sl_layer_norm_opts, at, "sl_layer_norm", &opts)) return NULL;
	struct slp_layer_norm_attrs attrs = {.eps = opts.eps};
	return slp_apply1(at, &slp_op_layer_norm, &attrs, 3, (sl_tensor *[]){x, gamma, beta});
}

/* Beside x in a half type, all inputs but dy may be float32. */
#define ROWS(ref, cpu, cuda)                                                                                           \
	SLP_ROWS(SLP_ROW(SLP_F32, cpu, cuda), SLP_ROW(SLP_F64, ref, cuda),                                             \
	         SLP_ROW(SLP_DTYPE(SL_BFLOAT16) | SLP_F32, NULL, cuda),                                                \
	         SLP_ROW(SLP_DTYPE(SL_FLOAT16) | SLP_F32, NULL, cuda))

const struct sl_op slp_op_layer_norm = {
        .name = "layer_norm",
        .doc = "each sample with mean 0 and deviation 1 over the last axis, scaled and shifted",
        .args = "x gamma beta",
        .autocast = SLP_CAST_FLOAT32,
        SLP_NIN(3),
        .nout = 3,
        .attr_table = attr_table,
        .attrs_size = sizeof(struct slp_layer_norm_attrs),
        .saves = SLP_IN(0) | SLP_IN(1) | SLP_OUT(1) | SLP_OUT(2),
        .rows = ROWS(slp_layer_norm_ref, slp_layer_norm_cpu, slp_cuda_layer_norm),
        .infer = infer_forward,
        .flops = flops_forward,
        .grad = grad,
        .again = again,
        .ref = slp_layer_norm_ref,
};

const struct sl_op slp_op_layer_norm_grad = {
        .name = "layer_norm_grad",
        .doc = "gradient of layer_norm with respect to x, gamma and beta; another one is added to that of x",
        .args = "dy x gamma mean invstd more",
        .nin_min = 5,
        .nin_max = 6,
        .nout = 3,
        .declines = true,
        .rows = ROWS(ref_grad, cpu_grad, slp_cuda_layer_norm_grad),
        .infer = infer_grad,
        .flops = flops_grad,
        .scratch = scratch_grad,
        .ref = ref_grad,
};
