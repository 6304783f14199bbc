/* The fully connected layer in bfloat16, and all its gradients: products by bf16.h; additions happen in float32,
 * before the single rounding. */
#include "common/activation.h"
#include "common/bf16.h"
#include "common/convert.h"
#include "common/workspace.h"
#include "linear.h"
#include "op.h"
#include "op_inner.h"
#include "starling/options.h"

enum { COLUMNS = 512, ROWS = 64 }; /* bytes of float32 data at a time */

static void widen(const sl_bfloat16 *from, float *to, int64_t n)
{
	slp_convert(SL_BFLOAT16, from, SL_FLOAT32, to, n);
}

/* ---- forward -------------------------------------------------------------------------------------------------- */

struct rows {
	const struct slp_kernel *k;
	float *y; /* without bias and activation */
	int64_t units;
};

SLP_CLONES static void add(float *restrict y, const float *restrict x, int64_t n)
{
	for (int64_t i = 0; i < n; i++) y[i] += x[i];
}

static void finish_rows(void *arg, int64_t begin, int64_t end)
{
	const struct rows *r = arg;
	const struct slp_linear_attrs *a = r->k->attrs;
	const sl_bfloat16 *bias = r->k->nin == 3 ? r->k->in[2].ptr : NULL;
	sl_bfloat16 *out = r->k->out[0].ptr;
	float wide[COLUMNS];
	for (int64_t u = 0; u < r->units; u += COLUMNS) {
		int64_t n = r->units - u < COLUMNS ? r->units - u : COLUMNS;
		if (bias) widen(bias + u, wide, n);
		for (int64_t i = begin; i < end; i++) {
			float *y = r->y + i * r->units + u;
			if (bias) add(y, wide, n);
			slp_activate_range(y, n, a->activation);
			slp_convert(SL_FLOAT32, y, SL_BFLOAT16, out + i * r->units + u, n);
		}
	}
}

enum sl_status slp_linear_bf16(const struct slp_kernel *k)
{
	const struct slp_linear_attrs *a = k->attrs;
	struct slp_linear_size z = slp_linear_size_of(k->in[0].type.shape, k->in[1].type.shape, a->tw);
	bool more = k->nin == 3 || a->activation != SL_IDENTITY;
	if (z.rows == 0 || z.units == 0) return SL_OK;
	void *to = more ? slp_workspace(SLP_WORK_CALL, sizeof(float) * (size_t)(z.rows * z.units)) : k->out[0].ptr;
	if (!to) return slp_kernel_fail(k, SL_ENOMEM, "no memory for sums in float32");
	struct slp_bf16_matrix x = {k->in[0].ptr, z.rows, z.inputs, z.inputs, false};
	struct slp_bf16_matrix w = {k->in[1].ptr, z.inputs, z.units, a->tw ? z.inputs : z.units, a->tw};
	struct slp_bf16_matrix y = {to, z.rows, z.units, z.units, false};
	enum sl_status s = slp_bf16_multiply(k, &x, &w, &y, more);
	struct rows r = {k, to, z.units};
	if (s == SL_OK && more) slp_parallel_for(z.rows, SLP_GRAIN / (z.units + 1) + 1, finish_rows, &r);
	return s;
}

/* ---- gradients ------------------------------------------------------------------------------------------------ */

struct columns {
	const sl_bfloat16 *dy, *v;
	sl_bfloat16 *g, *sums;
	int64_t rows, units;
	const struct sl_op *slope; /* NULL: g is dy */
};

/* g = dy through the slope: n elements in float32. */
static void through_slope(const struct columns *c, int64_t at, int64_t n, float *g)
{
	float dy[COLUMNS], v[COLUMNS];
	struct slp_type type = {SL_FLOAT32, {1, {n}}};
	struct slp_view in[] = {{dy, type}, {v, type}}, out = {g, type};
	struct slp_kernel k = {.op = c->slope, .nin = 2, .nout = 1, .in = in, .out = &out, .threads = 1};
	widen(c->dy + at, dy, n);
	widen(c->v + at, v, n);
	slp_kernel_for(c->slope, SLP_ALL_OF(SL_FLOAT32), SL_DEVICE_CPU).kernel(&k);
	slp_convert(SL_FLOAT32, g, SL_BFLOAT16, c->g + at, n);
}

SLP_CLONES static void add_wide(double *restrict sum, const float *restrict part, int64_t n)
{
	for (int64_t i = 0; i < n; i++) sum[i] += (double)part[i];
}

/* g and its sum for columns [j, j + n): some rows are added in single precision first. */
static void some_columns(const struct columns *c, int64_t j, int64_t n)
{
	double sum[COLUMNS] = {0};
	float g[COLUMNS];
	for (int64_t i = 0; i < c->rows;) {
		float part[COLUMNS] = {0};
		for (int64_t end = i + ROWS; i < end && i < c->rows; i++) {
			int64_t at = i * c->units + j;
			if (c->slope) through_slope(c, at, n, g);
			else widen(c->dy + at, g, n);
			add(part, g, n);
		}
		add_wide(sum, part, n);
	}
	slp_convert(SL_FLOAT64, sum, SL_BFLOAT16, c->sums + j, n);
}

static void all_columns(void *arg, int64_t begin, int64_t end)
{
	for (int64_t n; begin < end; begin += n) {
		n = end - begin < COLUMNS ? end - begin : COLUMNS;
		some_columns(arg, begin, n);
	}
}

enum sl_status slp_linear_grad_bf16(const struct slp_kernel *k)
{
	const struct slp_linear_grad_attrs *a = k->attrs;
	struct slp_linear_size z = slp_linear_size_of(k->in[0].type.shape, k->in[1].type.shape, a->tw);
	struct columns c = {.dy = k->in[2].ptr,
	                    .v = a->activation ? k->in[3].ptr : NULL,
	                    .g = a->activation ? k->scratch : k->in[2].ptr,
	                    .sums = k->out[2].ptr,
	                    .rows = z.rows,
	                    .units = z.units,
	                    .slope = slp_activations[a->activation].slope};
	struct slp_bf16_matrix g = {c.g, z.rows, z.units, z.units, false}, gt = {c.g, z.units, z.rows, z.units, true};
	struct slp_bf16_matrix w = {k->in[1].ptr, z.units, z.inputs, a->tw ? z.inputs : z.units, !a->tw};
	struct slp_bf16_matrix x = {k->in[0].ptr, z.rows, z.inputs, z.inputs, false},
	                       xt = {x.ptr, z.inputs, z.rows, z.inputs, true};
	struct slp_bf16_matrix dx = {k->out[0].ptr, z.rows, z.inputs, z.inputs, false};
	struct slp_bf16_matrix dw = {k->out[1].ptr, z.inputs, z.units, z.units, false};
	struct slp_bf16_matrix dwt = {k->out[1].ptr, z.units, z.inputs, z.inputs, false};
	slp_parallel_for(z.units, (SLP_GRAIN / (z.rows + 1) + 32) / 32 * 32, all_columns, &c);
	enum sl_status s = SL_OK;
	if (a->data && z.rows && z.inputs) s = slp_bf16_multiply(k, &g, &w, &dx, false);
	if (s != SL_OK || z.inputs == 0 || z.units == 0) return s;
	return a->tw ? slp_bf16_multiply(k, &gt, &x, &dwt, false) : slp_bf16_multiply(k, &xt, &g, &dw, false);
}
