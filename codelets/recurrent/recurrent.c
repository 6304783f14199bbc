/* recurrent: a recurrent layer over all steps of a sequence, after the product with its inputs; recurrent_grad: its
 * gradient. Both compute step by step only the part that depends on the previous step; the rest is one product over all
 * steps. */
#include "op_list/recurrent.h"
#include "recurrent.h"
#include "recurrent_again.h"

#include <stdlib.h>
#include <string.h>

#include "common/panels.h"
#include "common/scalar.h"
#include "common/simd.h"

#define CELL_FN SLP_VFN
#define T float
#define CELL(name) float_##name
#include "cell.h"
#undef T
#undef CELL
#undef CELL_FN
#define CELL_FN static inline
#define T double
#define CELL(name) double_##name
#include "cell.h"
#undef T
#undef CELL

static const struct slp_attr attr_table[] = {
        SLP_ATTR(struct slp_recurrent_attrs, cell, SLP_INT, 1, "kind of unit: 0: tanh, 1: relu, 2: LSTM, 3: GRU"),
        SLP_ATTR(struct slp_recurrent_attrs, reverse, SLP_BOOL, 1, "from the last step to the first"),
        {0},
};

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static bool is_shape(const struct slp_type *t, sl_shape shape)
{
	return sl_shape_equal(t->shape, shape);
}

/* Checks gates, weight, state, last; *y: the shape of the result. */
static enum sl_status check(const struct slp_infer *c, const struct slp_type *gates, const struct slp_type *weight,
                            const struct slp_type *state, const struct slp_type *last, sl_shape *y)
{
	int cell = ((const struct slp_recurrent_attrs *)c->attrs)->cell;
	if (cell < SL_CELL_TANH || cell > SL_CELL_GRU) return slp_reject(c, SL_EINVAL, "%d is not a cell", cell);
	for (int i = 0; i < c->nin; i++)
		if (!slp_is_float(c->in[i].dtype) || slp_promoted(c->in[i].dtype) != slp_promoted(gates->dtype))
			return slp_reject(c, SL_EDTYPE, "all must be floats of one data type");
	int64_t units = weight->shape.ndim == 2 ? weight->shape.dim[1] : -1, all = slp_gates_of(cell) * units;
	if (units < 0 || weight->shape.dim[0] != all)
		return slp_reject(c, SL_ESHAPE, "weight (%lld · units, units) needed", (long long)slp_gates_of(cell));
	if (gates->shape.ndim != 3 || gates->shape.dim[2] != all)
		return slp_reject(c, SL_ESHAPE, "gates (steps, rows, %lld) needed", (long long)all);
	*y = SL_SHAPE(gates->shape.dim[0], gates->shape.dim[1], units);
	if (!is_shape(state, SL_SHAPE(y->dim[1], units))) return slp_reject(c, SL_ESHAPE, "state (rows, units) needed");
	if (cell == SL_CELL_LSTM && (!last || !is_shape(last, SL_SHAPE(y->dim[1], units))))
		return slp_reject(c, SL_ESHAPE, "an LSTM needs a cell (rows, units) as well");
	if (cell == SL_CELL_GRU && last && !is_shape(last, SL_SHAPE(all)))
		return slp_reject(c, SL_ESHAPE, "bias (3 · units) needed");
	if (cell <= SL_CELL_RELU && last) return slp_reject(c, SL_EINVAL, "this cell has neither cell nor bias");
	return SL_OK;
}

static enum sl_status recurrent_infer(struct slp_infer *c)
{
	sl_shape y;
	enum sl_status status = check(c, &c->in[0], &c->in[1], &c->in[2], c->nin > 3 ? &c->in[3] : NULL, &y);
	if (status) return status;
	struct slp_recurrent r = slp_recurrent_of(c->attrs, y);
	enum sl_dtype wide = slp_promoted(c->in[0].dtype);
	c->out[0] = (struct slp_type){c->in[0].dtype, y};
	c->out[1] = (struct slp_type){wide, SL_SHAPE(r.cell == SL_CELL_LSTM ? r.rows : 0, r.units)};
	c->out[2] = (struct slp_type){wide, SL_SHAPE(r.steps, r.rows, r.kept)};
	return SL_OK;
}

/* dy, dcell, weight, state, y, kept, last: the results are the gradients of gates, weight, state, last. */
static enum sl_status recurrent_grad_infer(struct slp_infer *c)
{
	const struct slp_type *y = &c->in[4], *last = c->nin > 6 ? &c->in[6] : NULL;
	struct slp_recurrent r = {0};
	sl_shape shape = SL_SHAPE(0);
	if (y->shape.ndim != 3 || !is_shape(&c->in[0], y->shape))
		return slp_reject(c, SL_ESHAPE, "dy and y (steps, rows, units) needed");
	struct slp_type gates = *y;
	gates.shape.dim[2] *= slp_gates_of(((const struct slp_recurrent_attrs *)c->attrs)->cell);
	enum sl_status status = check(c, &gates, &c->in[2], &c->in[3], last, &shape);
	if (status) return status;
	r = slp_recurrent_of(c->attrs, shape);
	if (!is_shape(&c->in[1], SL_SHAPE(r.cell == SL_CELL_LSTM ? r.rows : 0, r.units)) ||
	    !is_shape(&c->in[5], SL_SHAPE(r.steps, r.rows, r.kept)))
		return slp_reject(c, SL_ESHAPE, "dcell and kept must have the shapes of the results");
	c->out[0] = gates;
	c->out[1] = c->in[2];
	c->out[2] = c->in[3];
	c->out[3] = last ? *last : (struct slp_type){gates.dtype, SL_SHAPE(0)};
	return SL_OK;
}

static double recurrent_flops(const struct slp_infer *c)
{
	bool back = c->nout == 4;
	struct slp_recurrent r = slp_recurrent_of(c->attrs, back ? c->in[4].shape : c->out[0].shape);
	return (back ? 4.0 : 2.0) * (double)(r.steps * r.rows) * (double)r.gates * (double)r.units;
}

/* CPUs: the packed weights; GPUs: a step's product. Backward: also the state's part of the gates' gradients. */
static size_t recurrent_scratch(const struct slp_infer *c)
{
	bool back = c->nout == 4;
	struct slp_recurrent r = slp_recurrent_of(c->attrs, back ? c->in[4].shape : c->out[0].shape);
	int64_t packed = back ? slp_panels_size(r.gates, r.units) : slp_panels_size(r.units, r.gates);
	int64_t more = !back ? r.rows * r.gates : r.cell == SL_CELL_GRU ? r.steps * r.rows * r.gates : 0;
	return (size_t)(packed + more) * sl_dtype_size(slp_promoted(c->in[0].dtype));
}

static sl_tensor *or_zeros(const char *at, sl_tensor *given, sl_tensor *like)
{
	struct sl_make make = {sl_tensor_dtype(like), sl_tensor_device(like)};
	return given ? given : sl_full_at(at, sl_tensor_shape(like), 0, make);
}

static enum sl_status grad(struct slp_grad *g)
{
	sl_tensor *d[4], *in[] = {or_zeros(g->at, g->dout[0], g->out[0]),
	                          or_zeros(g->at, g->dout[1], g->out[1]),
	                          g->in[1],
	                          g->in[2],
	                          g->out[0],
	                          g->out[2],
	                          g->nin > 3 ? g->in[3] : NULL};
	if (!in[0] || !in[1]) return sl_error();
	enum sl_status s =
	        slp_apply(g->at, &slp_op_recurrent_grad, g->attrs, g->nin > 3 ? 7 : 6, in, sl_tensor_device(in[0]), d);
	for (int i = 0; i < g->nin && s == SL_OK; i++)
		if (g->need[i]) g->din[i] = d[i];
	return s;
}

/* ---- reference --------------------------------------------------------------------------------------------------- */

static double product(const struct slp_view *a, int64_t at, int64_t a_step, const struct slp_view *b, int64_t bt,
                      int64_t b_step, int64_t n)
{
	double sum = 0;
	for (int64_t i = 0; i < n; i++) sum += slp_get(a, at + i * a_step) * slp_get(b, bt + i * b_step);
	return sum;
}

/* Element j of row b of the state, or of the cell, before step number i. */
static double before_of(const struct slp_recurrent *r, const struct slp_view *first, const struct slp_view *all,
                        int64_t width, int64_t offset, int64_t i, int64_t b, int64_t j)
{
	if (i == 0) return slp_get(first, b * r->units + j);
	return slp_get(all, (slp_step_before(r, i) * r->rows + b) * width + offset + j);
}

static void unit_ref(const struct slp_kernel *k, const struct slp_recurrent *r, int64_t i, int64_t b, int64_t j)
{
	int64_t row = slp_step_at(r, i) * r->rows + b, n = r->units, gates = r->gates / (n ? n : 1), from = 0;
	const struct slp_view *prior = i ? &k->out[0] : &k->in[2], *bias = k->nin > 3 ? &k->in[3] : NULL;
	if (i) from = slp_step_before(r, i) * r->rows * n;
	double z[5], state = slp_get(prior, from + b * n + j), y;
	for (int64_t g = 0; g < gates; g++) {
		double in = slp_get(&k->in[0], row * r->gates + g * n + j);
		double by = product(prior, from + b * n, 1, &k->in[1], (g * n + j) * n, 1, n);
		if (r->cell == SL_CELL_GRU && bias) by += slp_get(bias, g * n + j);
		z[g] = in + by;
		if (r->cell == SL_CELL_GRU && g == 2) z[2] = by, z[3] = in;
	}
	if (r->cell == SL_CELL_LSTM)
		y = double_lstm(z, 1, before_of(r, &k->in[3], &k->out[2], r->kept, 4 * n, i, b, j));
	else if (r->cell == SL_CELL_GRU) y = double_gru(z, 1, state);
	else y = double_plain(r->cell, z[0]);
	slp_set(&k->out[0], row * n + j, y);
	for (int64_t g = 0; g < slp_kept_of(r->cell); g++) slp_set(&k->out[2], row * r->kept + g * n + j, z[g]);
}

static enum sl_status recurrent_ref(const struct slp_kernel *k)
{
	struct slp_recurrent r = slp_recurrent_of(k->attrs, k->out[0].type.shape);
	for (int64_t i = 0; i < r.steps; i++)
		for (int64_t e = 0; e < r.rows * r.units; e++) unit_ref(k, &r, i, e / r.units, e % r.units);
	for (int64_t e = 0; r.cell == SL_CELL_LSTM && e < r.rows * r.units; e++)
		slp_set(&k->out[1], e,
		        before_of(&r, &k->in[3], &k->out[2], r.kept, 4 * r.units, r.steps, e / r.units, e % r.units));
	return SL_OK;
}

/* Adds x to an element. */
static void add(const struct slp_view *to, int64_t at, double x)
{
	slp_set(to, at, slp_get(to, at) + x);
}

/* The backward pass of a unit; the gradient of its state is in out[2], and becomes that of the previous state. */
static void unit_grad_ref(const struct slp_kernel *k, const struct slp_recurrent *r, int64_t i, int64_t b, int64_t j,
                          double dx[4], double dz[4], double *past)
{
	int64_t row = slp_step_at(r, i) * r->rows + b, n = r->units, at = b * n + j;
	double z[5], dh = slp_get(&k->in[0], row * n + j) + slp_get(&k->out[2], at),
	             y = slp_get(&k->in[4], row * n + j);
	for (int64_t g = 0; g < slp_kept_of(r->cell); g++) z[g] = slp_get(&k->in[5], row * r->kept + g * n + j);
	*past = 0;
	if (r->cell == SL_CELL_LSTM) {
		double dc = slp_get(&k->out[3], at);
		double_lstm_back(z, 1, before_of(r, &k->in[6], &k->in[5], r->kept, 4 * n, i, b, j), dh, &dc, dz);
		slp_set(&k->out[3], at, dc);
		memcpy(dx, dz, 4 * sizeof *dx);
	} else if (r->cell == SL_CELL_GRU)
		*past = double_gru_back(z, 1, before_of(r, &k->in[3], &k->in[4], n, 0, i, b, j), dh, dx, dz);
	else dx[0] = dz[0] = double_plain_back(r->cell, y, dh);
}

/* Row b at step number i: its units first, then their shared parts. */
static void row_grad_ref(const struct slp_kernel *k, const struct slp_recurrent *r, int64_t i, int64_t b,
                         double *to_state)
{
	int64_t row = slp_step_at(r, i) * r->rows + b, n = r->units, gates = r->gates / n;
	for (int64_t j = 0; j < n; j++) to_state[j] = 0;
	for (int64_t j = 0; j < n; j++) {
		double dx[4], dz[4], past;
		unit_grad_ref(k, r, i, b, j, dx, dz, &past);
		to_state[j] += past;
		for (int64_t g = 0; g < gates; g++) {
			int64_t at = g * n + j;
			slp_set(&k->out[0], row * r->gates + at, dx[g]);
			if (r->cell == SL_CELL_GRU && k->nin > 6) add(&k->out[3], at, dz[g]);
			for (int64_t l = 0; l < n; l++) {
				to_state[l] += dz[g] * slp_get(&k->in[2], at * n + l);
				add(&k->out[1], at * n + l, dz[g] * before_of(r, &k->in[3], &k->in[4], n, 0, i, b, l));
			}
		}
	}
	for (int64_t j = 0; j < n; j++) slp_set(&k->out[2], b * n + j, to_state[j]);
}

static enum sl_status recurrent_grad_ref(const struct slp_kernel *k)
{
	struct slp_recurrent r = slp_recurrent_of(k->attrs, k->in[4].type.shape);
	double *to_state = slp_malloc((size_t)(r.units + 1) * sizeof *to_state);
	if (!to_state) return slp_kernel_fail(k, SL_ENOMEM, "no memory");
	for (int o = 1; o < 4; o++)
		for (int64_t e = 0; e < slp_size(&k->out[o]); e++)
			slp_set(&k->out[o], e, o == 3 && r.cell == SL_CELL_LSTM ? slp_get(&k->in[1], e) : 0);
	for (int64_t i = r.steps - 1; i >= 0; i--)
		for (int64_t b = 0; r.units && b < r.rows; b++) row_grad_ref(k, &r, i, b, to_state);
	free(to_state);
	return SL_OK;
}

/* ---- CPU: forward ------------------------------------------------------------------------------------------------ */

struct job {
	struct slp_recurrent r;
	const float *gates, *state, *last, *dy, *y, *kept, *panels;
	float *out, *out_cell, *out_kept, *dx, *dz, *dstate, *dcell;
	bool together; /* all threads compute a step's product */
};

/* Rows are independent: each thread takes some of them through all steps, and reads all weights.  Where rows are too few
 * for the team, and weights are many, threads share the weights of each step instead; the bits are the same. */
static void run_rows(struct job *w, int64_t threads, void (*range)(void *, int64_t, int64_t))
{
	enum { MANY = 1 << 16 }; /* at least 10 µs a step */
	w->together = 2 * w->r.rows <= threads && w->r.gates * w->r.units >= MANY;
	if (w->together) range(w, 0, w->r.rows);
	else slp_parallel_ranges(w->r.rows, 1, range, w);
}

static void multiply(const struct job *w, int64_t rows, int64_t k, int64_t n, const float *a, float *c, int64_t ldc)
{
	if (w->together) slp_panels_multiply_together(w->panels, rows, k, n, a, k, c, ldc);
	else slp_panels_multiply(w->panels, rows, k, n, a, k, c, ldc);
}

/* The sums of a row's gates before the product with the state. */
SLP_INLINE void begin_row(const struct job *w, int64_t row, float *z)
{
	const struct slp_recurrent *r = &w->r;
	const float *x = w->gates + row * r->gates, *bias = w->last;
	memcpy(z, x, (size_t)r->gates * sizeof *z);
	if (r->cell != SL_CELL_GRU) return;
	int64_t n = r->units;
	memcpy(z + 3 * n, x + 2 * n, (size_t)n * sizeof *z);
	for (int64_t j = 0; j < n; j++) z[2 * n + j] = 0;
	for (int64_t j = 0; bias && j < 3 * n; j++) z[j] += bias[j];
}

/* From sums to the new state; before: the previous cell, or state. */
SLP_CLONES static void finish_row(int cell, int64_t n, float *z, const float *before, float *y)
{
	if (cell == SL_CELL_LSTM) {
		SLP_INDEPENDENT for (int64_t j = 0; j < n; j++) y[j] = float_lstm(z + j, n, before[j]);
	} else if (cell == SL_CELL_GRU) {
		SLP_INDEPENDENT for (int64_t j = 0; j < n; j++) y[j] = float_gru(z + j, n, before[j]);
	} else if (cell == SL_CELL_RELU) {
		SLP_INDEPENDENT for (int64_t j = 0; j < n; j++) y[j] = float_plain(SL_CELL_RELU, z[j]);
	} else {
		SLP_INDEPENDENT for (int64_t j = 0; j < n; j++) y[j] = float_plain(SL_CELL_TANH, z[j]);
	}
}

/* The cells, or the states, before step number i of row b: an LSTM keeps its cells behind its gates. */
static const float *before(const struct slp_recurrent *r, const float *last, const float *kept, const float *state,
                           const float *y, int64_t i, int64_t b)
{
	bool lstm = r->cell == SL_CELL_LSTM;
	if (i == 0) return (lstm ? last : state) + b * r->units;
	int64_t row = slp_step_before(r, i) * r->rows + b;
	return lstm ? kept + row * r->kept + 4 * r->units : y + row * r->units;
}

/* Computes rows [begin, end) through all steps. */
static void forward_range(void *arg, int64_t begin, int64_t end)
{
	const struct job *w = arg;
	const struct slp_recurrent *r = &w->r;
	int64_t n = r->units, width = r->kept ? r->kept : n;
	float *sums = r->kept ? w->out_kept : w->out;
	for (int64_t i = 0; i < r->steps; i++) {
		int64_t first = slp_step_at(r, i) * r->rows;
		const float *state = i ? w->out + slp_step_before(r, i) * r->rows * n : w->state;
		for (int64_t b = begin; b < end; b++) begin_row(w, first + b, sums + (first + b) * width);
		multiply(w, end - begin, n, r->gates, state + begin * n, sums + (first + begin) * width, width);
		for (int64_t b = begin; b < end; b++)
			finish_row(r->cell, n, sums + (first + b) * width,
			           before(r, w->last, w->out_kept, w->state, w->out, i, b), w->out + (first + b) * n);
	}
	for (int64_t b = begin; r->cell == SL_CELL_LSTM && b < end; b++)
		memcpy(w->out_cell + b * n, before(r, w->last, w->out_kept, NULL, NULL, r->steps, b),
		       (size_t)n * sizeof(float));
}

static enum sl_status recurrent_cpu(const struct slp_kernel *k)
{
	struct job w = {.r = slp_recurrent_of(k->attrs, k->out[0].type.shape),
	                .gates = k->in[0].ptr,
	                .state = k->in[2].ptr,
	                .last = k->nin > 3 ? k->in[3].ptr : NULL,
	                .panels = k->scratch,
	                .out = k->out[0].ptr,
	                .out_cell = k->out[1].ptr,
	                .out_kept = k->out[2].ptr};
	slp_panels_pack(k->scratch, k->in[1].ptr, w.r.units, w.r.gates, 1, w.r.units);
	run_rows(&w, k->threads, forward_range);
	return SL_OK;
}

/* ---- CPU: back --------------------------------------------------------------------------------------------------- */

/* A row of a step: dstate holds the next step's gradient of its state, and gets the part that passes by the gates. */
SLP_CLONES static void back_row(const struct job *w, int64_t row, const float *prior, float *dstate, float *dcell)
{
	const struct slp_recurrent *r = &w->r;
	int64_t n = r->units;
	const float *dy = w->dy + row * n, *y = w->y + row * n, *z = w->kept + row * r->kept;
	float *dx = w->dx + row * r->gates, *dz = w->dz + row * r->gates;
	if (r->cell == SL_CELL_LSTM) {
		SLP_INDEPENDENT for (int64_t j = 0; j < n; j++)
		        float_lstm_back(z + j, n, prior[j], dy[j] + dstate[j], dcell + j, dz + j);
		memset(dstate, 0, (size_t)n * sizeof *dstate);
	} else if (r->cell == SL_CELL_GRU) {
		SLP_INDEPENDENT for (int64_t j = 0; j < n; j++) dstate[j] =
		        float_gru_back(z + j, n, prior[j], dy[j] + dstate[j], dx + j, dz + j);
	} else {
		SLP_INDEPENDENT for (int64_t j = 0; j < n; j++) dz[j] =
		        float_plain_back(r->cell, y[j], dy[j] + dstate[j]);
		memset(dstate, 0, (size_t)n * sizeof *dstate);
	}
}

static void backward_range(void *arg, int64_t begin, int64_t end)
{
	const struct job *w = arg;
	const struct slp_recurrent *r = &w->r;
	int64_t n = r->units;
	memset(w->dstate + begin * n, 0, (size_t)((end - begin) * n) * sizeof(float));
	for (int64_t i = r->steps - 1; i >= 0; i--) {
		int64_t first = slp_step_at(r, i) * r->rows;
		for (int64_t b = begin; b < end; b++)
			back_row(w, first + b, before(r, w->last, w->kept, w->state, w->y, i, b), w->dstate + b * n,
			         w->dcell + b * n);
		multiply(w, end - begin, r->gates, n, w->dz + (first + begin) * r->gates, w->dstate + begin * n, n);
	}
}

struct columns {
	const float *from;
	float *to;
	int64_t rows, width;
};

/* Sums of columns, in the order of the rows. */
SLP_CLONES static void add_columns(const struct columns *c, int64_t begin, int64_t end)
{
	for (int64_t j = begin; j < end; j++) c->to[j] = 0;
	for (int64_t i = 0; i < c->rows; i++)
		for (int64_t j = begin; j < end; j++) c->to[j] += c->from[i * c->width + j];
}

static void columns_range(void *arg, int64_t begin, int64_t end)
{
	add_columns(arg, begin, end);
}

/* dw = sum over steps of dzᵀ · state before: a product for the first step, one for all others. */
static enum sl_status weights_back(const struct slp_kernel *k, const struct job *w, float *dw)
{
	const struct slp_recurrent *r = &w->r;
	int64_t n = r->units, later = (r->steps - 1) * r->rows, first = slp_step_at(r, 0) * r->rows;
	if (r->steps == 0) {
		memset(dw, 0, (size_t)(r->gates * n) * sizeof *dw);
		return SL_OK;
	}
	enum sl_status s = slp_sgemm(k, true, false, r->gates, n, r->rows, 1, w->dz + first * r->gates, r->gates,
	                             w->state, n, 0, dw, n);
	const float *dz = w->dz + (r->reverse ? 0 : r->rows * r->gates), *y = w->y + (r->reverse ? r->rows * n : 0);
	if (s || !later) return s;
	return slp_sgemm(k, true, false, r->gates, n, later, 1, dz, r->gates, y, n, 1, dw, n);
}

static enum sl_status recurrent_grad_cpu(const struct slp_kernel *k)
{
	struct job w = {.r = slp_recurrent_of(k->attrs, k->in[4].type.shape),
	                .dy = k->in[0].ptr,
	                .state = k->in[3].ptr,
	                .y = k->in[4].ptr,
	                .kept = k->in[5].ptr,
	                .last = k->nin > 6 ? k->in[6].ptr : NULL,
	                .panels = k->scratch,
	                .dx = k->out[0].ptr,
	                .dz = k->out[0].ptr,
	                .dstate = k->out[2].ptr,
	                .dcell = k->out[3].ptr};
	int64_t n = w.r.units;
	if (w.r.cell == SL_CELL_GRU) w.dz = (float *)k->scratch + slp_panels_size(w.r.gates, n);
	if (w.r.cell == SL_CELL_LSTM) memcpy(w.dcell, k->in[1].ptr, (size_t)(w.r.rows * n) * sizeof(float));
	slp_panels_pack(k->scratch, k->in[2].ptr, w.r.gates, n, n, 1);
	run_rows(&w, k->threads, backward_range);
	struct columns c = {w.dz, k->out[3].ptr, w.r.steps * w.r.rows, w.r.gates};
	if (w.r.cell == SL_CELL_GRU && k->nin > 6) slp_parallel_for(c.width, 64, columns_range, &c);
	return weights_back(k, &w, k->out[1].ptr);
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

/* clang-format off */
#define RECURRENT(op_name, about, inputs, least_in, most_in, results, ...)                                             \
	const struct sl_op slp_op_##op_name = {                                                                        \
		.name = #op_name,                                                                                      \
		.doc = about,                                                                                          \
		.args = inputs,                                                                                        \
		.nin_min = least_in,                                                                                   \
		.nin_max = most_in,                                                                                    \
		.nout = results,                                                                                       \
		.attr_table = attr_table,                                                                              \
		.attrs_size = sizeof(struct slp_recurrent_attrs),                                                      \
		.rows = SLP_WIDE_ROWS(op_name),                                                                       \
		.autocast = SLP_CAST_WIDEST,                                                                           \
		.infer = op_name##_infer,                                                                              \
		.flops = recurrent_flops,                                                                              \
		.scratch = recurrent_scratch,                                                                          \
		.ref = op_name##_ref,                                                                                  \
		__VA_ARGS__}
/* clang-format on */

RECURRENT(recurrent, "a recurrent layer, after the product with its inputs", "gates weight state last", 3, 4, 3,
          .saves = SLP_IN(1) | SLP_IN(2) | SLP_IN(3) | SLP_OUT(0) | SLP_OUT(2), .grad = grad,
          .again = slp_recurrent_again);
RECURRENT(recurrent_grad, "gradients of recurrent", "dy dcell weight state y kept last", 6, 7, 4);
