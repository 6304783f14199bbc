/* sl_recurrent: recurrent with zeros as default first states; for sequences of different lengths it reorders steps, and
 * replaces results and states behind a sequence's end. */
#include "compose.h"
#include "op_list/recurrent.h"
#include "recurrent/recurrent.h"
#include "starling/functions.h"

/* ---- all steps count --------------------------------------------------------------------------------------------- */

static bool state_or_zeros(const char *at, sl_tensor *gates, sl_tensor *weight, sl_tensor **state)
{
	if (*state) return true;
	if (!slp_given(at, "sl_recurrent", "gates", gates) || !slp_given(at, "sl_recurrent", "weight", weight))
		return false;
	sl_shape g = sl_tensor_shape(gates), w = sl_tensor_shape(weight);
	if (g.ndim != 3 || w.ndim != 2) {
		slp_call_fail(at, "sl_recurrent", SL_ESHAPE, "gates (steps, rows, …) and weight (…, units) needed");
		return false;
	}
	struct sl_make make = {sl_tensor_dtype(gates), sl_tensor_device(gates)};
	return (*state = sl_full_at(at, SL_SHAPE(g.dim[1], w.dim[1]), 0, make)) != NULL;
}

static sl_tensor *state_after(const char *at, sl_tensor *y, sl_tensor *first, bool reverse)
{
	sl_shape s = sl_tensor_shape(y);
	if (s.dim[0] == 0) return first;
	int64_t last = reverse ? 0 : s.dim[0] - 1;
	return sl_reshape_at(at, sl_slice_at(at, y, 0, last, last + 1, 1), SL_SHAPE(s.dim[1], s.dim[2]));
}

static sl_tensor *run(const char *at, enum sl_cell cell, sl_tensor *gates, sl_tensor *weight, sl_tensor *state,
                      struct sl_recurrent_opts opts)
{
	struct slp_recurrent_attrs attrs = {(int)cell, opts.reverse};
	sl_tensor *out[3], *last = cell == SL_CELL_LSTM ? opts.cell : opts.bias;
	if (!state_or_zeros(at, gates, weight, &state)) return NULL;
	if (cell == SL_CELL_LSTM && !state_or_zeros(at, gates, weight, &last)) return NULL;
	sl_tensor *in[] = {gates, weight, state, last};
	if (slp_apply(at, &slp_op_recurrent, &attrs, last ? 4 : 3, in, (sl_device){0}, out) != SL_OK) return NULL;
	if (opts.last_cell) *opts.last_cell = out[1];
	if (opts.last_state && !(*opts.last_state = state_after(at, out[0], state, opts.reverse))) return NULL;
	return out[0];
}

/* ---- some count -------------------------------------------------------------------------------------------------- */

/* Masks and indices that follow from the number of steps of each row. */
struct counts {
	sl_tensor *past;   /* (steps, rows, 1): whether the step is behind the row's last one */
	sl_tensor *turned; /* (steps, rows): the row's steps in reverse order, as rows of all */
	sl_tensor *last;   /* (rows): the row's last step, as a row of all */
	sl_tensor *empty;  /* (rows, 1): whether the row has no step */
};

static bool count(const char *at, sl_shape s, sl_tensor *lengths, struct counts *c)
{
	int64_t steps = s.dim[0], rows = s.dim[1];
	sl_tensor *n = sl_reshape_at(at, sl_cast_at(at, lengths, SL_INT32), SL_SHAPE(1, rows));
	sl_tensor *row = slp_counted(at, lengths, rows, SL_SHAPE(1, rows));
	sl_tensor *step = slp_counted(at, lengths, steps, SL_SHAPE(steps, 1));
	sl_tensor *past = sl_ge_at(at, step, n), *before = sl_sub_scalar_at(at, n, 1);
	sl_tensor *from = sl_where_at(at, past, step, sl_sub_at(at, before, step));
	sl_tensor *last = sl_mul_scalar_at(at, sl_maximum_scalar_at(at, before, 0), (double)rows);
	c->past = sl_reshape_at(at, past, SL_SHAPE(steps, rows, 1));
	c->turned = sl_add_at(at, sl_mul_scalar_at(at, from, (double)rows), row);
	c->last = sl_reshape_at(at, sl_add_at(at, last, row), SL_SHAPE(rows));
	c->empty = sl_reshape_at(at, sl_lt_scalar_at(at, n, 1), SL_SHAPE(rows, 1));
	return c->past && c->turned && c->last && c->empty;
}

/* Rows of x (steps, rows, n) at the given places. */
static sl_tensor *rows_at(const char *at, sl_tensor *x, sl_tensor *places)
{
	return x ? sl_gather_at(at, sl_reshape_at(at, x, SL_SHAPE(-1, sl_tensor_shape(x).dim[2])), places) : NULL;
}

/* Gates after a row's last step that keep the state, whatever x holds there.  An LSTM then forgets nothing and adds
 * nothing: its last cell is that of this step. */
static sl_tensor *still(const char *at, const struct counts *c, enum sl_cell cell, sl_tensor *gates)
{
	static const double held[] = {-1e4, 1e4, 0, 0}; /* what the input gate adds, what the forget gate keeps */
	if (!gates || cell != SL_CELL_LSTM) return sl_masked_fill_at(at, gates, c->past, 0);
	struct sl_make make = {sl_tensor_dtype(gates), sl_tensor_device(gates)};
	sl_shape units = SL_SHAPE(sl_tensor_shape(gates).dim[2] / 4);
	sl_tensor *all[4];
	for (int g = 0; g < 4; g++) all[g] = sl_full_at(at, units, held[g], make);
	return sl_where_at(at, c->past, sl_concat_at(at, all, 4, 0), gates);
}

/* The state after a row's last step: the first state if it has none. */
static sl_tensor *last_state(const char *at, const struct counts *c, sl_tensor *y, sl_tensor *first)
{
	sl_tensor *last = rows_at(at, y, c->last);
	return first ? sl_where_at(at, c->empty, first, last) : sl_masked_fill_at(at, last, c->empty, 0);
}

static bool lengths_fit(const char *at, sl_tensor *gates, sl_tensor *lengths)
{
	if (!slp_shape_given(at, "sl_recurrent", "gates", gates)) return false;
	sl_shape s = sl_tensor_shape(gates);
	if (s.ndim != 3) {
		slp_call_fail(at, "sl_recurrent", SL_ESHAPE, "gates (steps, rows, …) needed");
		return false;
	}
	if (!slp_shape_fits(at, "sl_recurrent", "lengths", lengths, SL_SHAPE(s.dim[1]))) return false;
	if (!slp_is_float(sl_tensor_dtype(lengths))) return true;
	slp_call_fail(at, "sl_recurrent", SL_EDTYPE, "the lengths are %s, integers needed",
	              sl_dtype_name(sl_tensor_dtype(lengths)));
	return false;
}

static sl_tensor *run_counted(const char *at, enum sl_cell cell, sl_tensor *gates, sl_tensor *weight, sl_tensor *state,
                              struct sl_recurrent_opts opts)
{
	struct counts c;
	struct sl_recurrent_opts inner = {.bias = opts.bias, .cell = opts.cell, .last_cell = opts.last_cell};
	if (!lengths_fit(at, gates, opts.lengths) || !count(at, sl_tensor_shape(gates), opts.lengths, &c)) return NULL;
	if (opts.reverse) gates = rows_at(at, gates, c.turned);
	gates = still(at, &c, cell, gates);
	sl_tensor *y = run(at, cell, gates, weight, state, inner);
	if (!y || (opts.last_state && !(*opts.last_state = last_state(at, &c, y, state)))) return NULL;
	y = sl_masked_fill_at(at, y, c.past, 0);
	return opts.reverse ? rows_at(at, y, c.turned) : y;
}

/* A recurrent layer over all steps of sequences.  gates (steps, rows, G · units) is the contribution of the inputs to
 * the G gates of each unit, with all biases: one sl_linear of all steps.  weight (G · units, units) is the weight of
 * the previous step's state.  The result (steps, rows, units) is the state after each step.  state (rows, units) is the
 * first state, NULL for zeros.
 *
 * SL_CELL_TANH, SL_CELL_RELU: G is 1, y = tanh or relu of (gates + previous y · weightᵀ).  SL_CELL_LSTM: G is 4, input,
 * forget, candidate and output gate; .cell (rows, units) is the first cell, NULL for zeros; *.last_cell, if given, gets
 * the cell after the last step.  SL_CELL_GRU: G is 3, reset and update gate and candidate; .bias (3 · units), NULL for
 * none, is added to the contribution of the state.  The order of gates is cuDNN's and PyTorch's.  .reverse goes from
 * the last step to the first.  *.last_state, if given, gets the state after the last step, (rows, units).  Gradients
 * flow to all float arguments.
 *
 * .lengths, integers (rows), is the number of valid steps of each row: results after these are 0, the last state and
 * cell are those after the last valid step (the first ones if there is none), and .reverse begins there.  A length
 * above the number of steps is an error of gather when it runs.
 *
 * SL_ESHAPE, SL_EDTYPE: arguments do not match; SL_EINVAL: no such cell.
 *
 *     y = sl_recurrent(SL_CELL_TANH, sl_linear(x, w, b, .tw = true), weight, NULL); */
sl_tensor *sl_recurrent_at(const char *at, enum sl_cell cell, sl_tensor *gates, sl_tensor *weight, sl_tensor *state,
                           struct sl_recurrent_opts opts)
{
	SLP_FUNCTION("sl_recurrent", at);
	if (opts.last_cell) *opts.last_cell = NULL; /* after an error */
	if (opts.last_state) *opts.last_state = NULL;
	if ((cell != SL_CELL_LSTM && (opts.cell || opts.last_cell)) || (cell != SL_CELL_GRU && opts.bias))
		return slp_call_fail(at, "sl_recurrent", SL_EINVAL,
		                     "only an LSTM has a cell, and only a GRU a separate bias");
	sl_tensor *y = (opts.lengths ? run_counted : run)(at, cell, gates, weight, state, opts);
	if (opts.last_cell) *opts.last_cell = y ? SLP_RETURN(*opts.last_cell) : NULL;
	if (opts.last_state) *opts.last_state = y ? SLP_RETURN(*opts.last_state) : NULL;
	return SLP_RETURN(y);
}
