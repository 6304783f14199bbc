/* Recurrent layers step by step, by operations that have gradients, for second derivatives.
 *
 * The sums before the activations are not saved, but their inverse images are known: the sums are computed from inputs that
 * may be anything (sl_op.again), and constants shift them to their values. */
#include <stdlib.h>

#include "alloc.h"
#include "recurrent.h"
#include "recurrent_again.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/primitives.h"

struct layer {
	const char *at;
	struct slp_recurrent r;
	sl_tensor *gates, *weight, *bias, *kept, *y;
	enum sl_dtype dtype;
};

/* (rows, n) of step t. */
static sl_tensor *at_step(const struct layer *l, sl_tensor *x, int64_t t, int64_t n)
{
	sl_tensor *row = sl_slice_at(l->at, x, 0, t, t + 1, 1);
	return row ? sl_reshape_at(l->at, row, SL_SHAPE(l->r.rows, n)) : NULL;
}

/* Number k of the parts of a row, one for each unit. */
static sl_tensor *part(const struct layer *l, sl_tensor *row, int k)
{
	return sl_slice_at(l->at, row, 1, k * l->r.units, (k + 1) * l->r.units, 1);
}

/* z, shifted to where its activation is y, a constant. */
static sl_tensor *shifted(const struct layer *l, sl_tensor *z, sl_tensor *place)
{
	sl_tensor *by = place ? sl_sub_at(l->at, sl_cast_at(l->at, place, l->dtype), z) : NULL;
	return by ? sl_add_at(l->at, z, sl_detach_at(l->at, by)) : NULL;
}

static double below_one(const struct layer *l)
{
	return l->dtype == SL_FLOAT64 ? 1 - 1.2e-16 : 1 - 6e-8;
}

static sl_tensor *between(const struct layer *l, sl_tensor *y, double low, double high)
{
	return sl_minimum_scalar_at(l->at, sl_maximum_scalar_at(l->at, y, low), high);
}

static sl_tensor *sigmoid(const struct layer *l, sl_tensor *z, sl_tensor *y)
{
	y = between(l, y, 1e-30, below_one(l));
	sl_tensor *odds = sl_div_at(l->at, y, sl_rsub_scalar_at(l->at, y, 1));
	return sl_sigmoid_at(l->at, shifted(l, z, sl_log_at(l->at, odds)));
}

static sl_tensor *hyperbolic(const struct layer *l, sl_tensor *z, sl_tensor *y)
{
	y = between(l, y, -below_one(l), below_one(l));
	return sl_tanh_at(l->at, shifted(l, z, sl_atanh_at(l->at, y)));
}

static sl_tensor *lstm(const struct layer *l, sl_tensor *z, sl_tensor *kept, sl_tensor **cell)
{
	sl_tensor *i = sigmoid(l, part(l, z, 0), part(l, kept, 0)), *f = sigmoid(l, part(l, z, 1), part(l, kept, 1));
	sl_tensor *g = hyperbolic(l, part(l, z, 2), part(l, kept, 2)), *o = sigmoid(l, part(l, z, 3), part(l, kept, 3));
	*cell = sl_add_at(l->at, sl_mul_at(l->at, f, *cell), sl_mul_at(l->at, i, g));
	return sl_mul_at(l->at, o, sl_tanh_at(l->at, *cell));
}

static sl_tensor *gru(const struct layer *l, sl_tensor *x, sl_tensor *by, sl_tensor *kept, sl_tensor *before)
{
	sl_tensor *z = sl_add_at(l->at, x, by);
	sl_tensor *r = sigmoid(l, part(l, z, 0), part(l, kept, 0)), *u = sigmoid(l, part(l, z, 1), part(l, kept, 1));
	sl_tensor *sum = sl_add_at(l->at, part(l, x, 2), sl_mul_at(l->at, r, part(l, by, 2)));
	sl_tensor *c = hyperbolic(l, sum, part(l, kept, 3));
	return sl_add_at(l->at, c, sl_mul_at(l->at, u, sl_sub_at(l->at, before, c)));
}

static sl_tensor *step(const struct layer *l, int64_t t, sl_tensor *before, sl_tensor **cell)
{
	sl_tensor *x = at_step(l, l->gates, t, l->r.gates), *y = at_step(l, l->y, t, l->r.units);
	sl_tensor *by = sl_dot_at(l->at, before, l->weight, (struct sl_dot_opts){.tb = true});
	if (l->bias) by = sl_add_at(l->at, by, l->bias);
	sl_tensor *kept = l->r.kept ? at_step(l, l->kept, t, l->r.kept) : NULL;
	if (l->r.cell == SL_CELL_GRU) return gru(l, x, by, kept, before);
	sl_tensor *z = sl_add_at(l->at, x, by);
	if (l->r.cell == SL_CELL_LSTM) return lstm(l, z, kept, cell);
	return l->r.cell == SL_CELL_TANH ? hyperbolic(l, z, y) : sl_relu_at(l->at, shifted(l, z, y));
}

bool slp_recurrent_again(const struct slp_grad *g, sl_tensor **out)
{
	struct layer l = {.at = g->at, .gates = g->in[0], .weight = g->in[1]};
	l.r = slp_recurrent_of(g->attrs, sl_tensor_shape(g->out[0]));
	l.kept = sl_detach_at(g->at, g->out[2]);
	l.y = sl_detach_at(g->at, g->out[0]);
	l.dtype = sl_tensor_dtype(g->in[0]);
	bool lstm = l.r.cell == SL_CELL_LSTM;
	if (l.r.cell == SL_CELL_GRU && g->nin > 3) l.bias = g->in[3];
	sl_tensor *state = g->in[2], *cell = lstm ? g->in[3] : NULL;
	sl_tensor **rows = slp_malloc((size_t)(l.r.steps + 1) * sizeof *rows);
	for (int64_t i = 0; rows && i < l.r.steps; i++) {
		int64_t t = slp_step_at(&l.r, i);
		state = step(&l, t, state, &cell);
		rows[t] = state ? sl_reshape_at(g->at, state, SL_SHAPE(1, l.r.rows, l.r.units)) : NULL;
	}
	out[0] = rows && l.r.steps ? sl_concat_at(g->at, rows, (int)l.r.steps, 0) : NULL;
	free(rows);
	if (lstm) out[1] = cell;
	return out[0] != NULL;
}
