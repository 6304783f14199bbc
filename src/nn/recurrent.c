/* Recurrent layers: stacks of sl_recurrent, in one direction or both. */
#include <math.h>
#include <stdlib.h>

#include "nn/nn.h"
#include "op.h"
#include "options.h"
#include "starling/nn.h"
#include "starling/arithmetic.h"
#include "starling/primitives.h"

enum { WEIGHT_IN, WEIGHT_STATE, BIAS_IN, BIAS_STATE, PARAMS };

struct recurrent {
	sl_block base;
	enum sl_cell cell;
	int64_t hidden;
	int directions;
	struct sl_recurrent_layer_opts opts;
	sl_param **params; /* PARAMS for each direction of each layer */
};

/* A call's operands besides its input: NULL for zeros, and its final states, for each direction of each layer. */
struct memory {
	sl_tensor *lengths, *state, *cell;
	sl_tensor **states, **cells;
};

static int64_t gates_of(const struct recurrent *r)
{
	return (r->cell == SL_CELL_LSTM ? 4 : r->cell == SL_CELL_GRU ? 3 : 1) * r->hidden;
}

static int runs_of(const struct recurrent *r)
{
	return r->opts.layers * r->directions;
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* Row `run` of (runs, rows, hidden); NULL stays NULL. */
static sl_tensor *part_of(const char *at, const struct recurrent *r, sl_tensor *all, int run)
{
	if (!all) return NULL;
	sl_shape s = sl_tensor_shape(all);
	sl_tensor *part = runs_of(r) == 1 ? all : sl_slice_at(at, all, 0, run, run + 1, 1);
	return sl_reshape_at(at, part, SL_SHAPE(s.dim[1], s.dim[2]));
}

/* One direction of one layer over all steps. */
static sl_tensor *run_one(const char *at, const struct recurrent *r, int run, sl_tensor *x, struct memory *m)
{
	sl_tensor *p[PARAMS] = {NULL};
	sl_shape in = sl_tensor_shape(x);
	if (sl_param_fit_at(at, r->params[run * PARAMS], SL_SHAPE(gates_of(r), in.dim[2])) != SL_OK) return NULL;
	for (int i = 0; i < PARAMS; i++)
		if (r->params[run * PARAMS + i] && !(p[i] = sl_param_use_at(at, r->params[run * PARAMS + i], x)))
			return NULL;
	bool gru = r->cell == SL_CELL_GRU;
	sl_tensor *bias = gru || !p[BIAS_IN] ? p[BIAS_IN] : sl_add_at(at, p[BIAS_IN], p[BIAS_STATE]);
	sl_tensor *gates = sl_linear_at(at, x, p[WEIGHT_IN], bias, (struct sl_linear_opts){.tw = true});
	return sl_recurrent_at(at, r->cell, gates, p[WEIGHT_STATE], part_of(at, r, m->state, run),
	                       (struct sl_recurrent_opts){.bias = gru ? p[BIAS_STATE] : NULL,
	                                                  .cell = part_of(at, r, m->cell, run),
	                                                  .last_cell = r->cell == SL_CELL_LSTM ? &m->cells[run] : NULL,
	                                                  .reverse = run % r->directions == 1,
	                                                  .lengths = m->lengths,
	                                                  .last_state = &m->states[run]});
}

static sl_tensor *run_layers(const char *at, const struct recurrent *r, sl_tensor *x, struct memory *m)
{
	for (int l = 0; x && l < r->opts.layers; l++) {
		sl_tensor *y[2] = {NULL};
		if (l && r->opts.dropout > 0) x = sl_dropout_at(at, x, r->opts.dropout);
		for (int d = 0; d < r->directions; d++)
			if (!x || !(y[d] = run_one(at, r, l * r->directions + d, x, m))) return NULL;
		x = r->directions == 1 ? y[0] : sl_concat_at(at, y, 2, 2);
	}
	return x;
}

/* The final states of the runs, as (runs, rows, hidden). */
static enum sl_status also(const char *at, const struct recurrent *r, sl_tensor **parts, sl_tensor *x)
{
	sl_shape shape = SL_SHAPE(1, sl_tensor_shape(x).dim[1], r->hidden);
	for (int i = 0; i < runs_of(r); i++)
		if (!(parts[i] = sl_reshape_at(at, parts[i], shape))) return sl_error();
	sl_tensor *all = runs_of(r) == 1 ? parts[0] : sl_concat_at(at, parts, runs_of(r), 0);
	return all ? sl_also_at(at, all) : sl_error();
}

static sl_tensor *turned(const char *at, const struct recurrent *r, sl_tensor *x)
{
	return r->opts.batch_first
	               ? sl_transpose_at(at, x, (struct sl_reduce_opts){.axes = (const int[]){1, 0, 2}, .naxes = 3})
	               : x;
}

/* Takes the inputs apart; an error if they are too few or too many. */
static bool take_inputs(const char *at, const struct recurrent *r, sl_tensor *const *in, int nin, struct memory *m)
{
	bool lstm = r->cell == SL_CELL_LSTM;
	int first = r->opts.lengths ? 2 : 1, all = first + (lstm ? 2 : 1);
	if (nin != first && nin != all) {
		slp_call_fail(at, "sl_forward", SL_EINVAL, "%s takes x%s, or x%s%s, but got %d inputs",
		              sl_block_name(&r->base), first == 2 ? " and lengths" : "", first == 2 ? ", lengths" : "",
		              lstm ? ", state and cell" : " and state", nin);
		return false;
	}
	*m = (struct memory){.lengths = first == 2 ? in[1] : NULL};
	if (nin == all) m->state = in[first];
	if (nin == all && lstm) m->cell = in[first + 1];
	return true;
}

static bool state_fits(const char *at, const struct recurrent *r, const char *what, sl_tensor *t, int64_t rows)
{
	char text[2][128];
	sl_shape wanted = SL_SHAPE(runs_of(r), rows, r->hidden), s = t ? sl_tensor_shape(t) : wanted;
	if (sl_shape_equal(s, wanted)) return true;
	slp_call_fail(at, "sl_forward", SL_ESHAPE, "%s got a %s %s, %s needed", sl_block_name(&r->base), what,
	              sl_shape_string(s, text[0]), sl_shape_string(wanted, text[1]));
	return false;
}

static bool inputs_fit(const char *at, const struct recurrent *r, sl_tensor *x, const struct memory *m)
{
	char text[128];
	sl_shape s = sl_tensor_shape(x);
	bool batch_first = r->opts.batch_first, fits = s.ndim == 3 && s.dim[batch_first] > 0;
	if (fits)
		return state_fits(at, r, "state", m->state, s.dim[!batch_first]) &&
		       state_fits(at, r, "cell", m->cell, s.dim[!batch_first]);
	slp_call_fail(at, "sl_forward", SL_ESHAPE, "%s got x %s, (%s, inputs) needed%s", sl_block_name(&r->base),
	              sl_shape_string(s, text), batch_first ? "rows, steps" : "steps, rows",
	              s.ndim == 3 ? ", and a step at least" : "");
	return false;
}

static sl_tensor *recurrent_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	const struct recurrent *r = (const struct recurrent *)self;
	const char *at = slp_forward_call_site();
	struct memory m;
	if (!take_inputs(at, r, in, nin, &m) || !inputs_fit(at, r, in[0], &m) ||
	    slp_cache_refuses(at, self, "a cache does not keep its state"))
		return NULL;
	sl_tensor **parts = slp_calloc(2 * (size_t)runs_of(r), sizeof *parts);
	if (!parts) return slp_call_fail(at, "sl_forward", SL_ENOMEM, "no memory for the states");
	m.states = parts;
	m.cells = parts + runs_of(r);
	sl_tensor *x = turned(at, r, in[0]), *y = run_layers(at, r, x, &m);
	bool ok = y && also(at, r, m.states, x) == SL_OK;
	if (ok && r->cell == SL_CELL_LSTM) ok = also(at, r, m.cells, x) == SL_OK;
	free(parts);
	return ok ? turned(at, r, y) : NULL;
}

/* ---- making one -------------------------------------------------------------------------------------------------- */

static void recurrent_destroy(sl_block *self)
{
	free(((struct recurrent *)self)->params);
	free(self);
}

/* "weight_ih_l0", "bias_hh_l1_reverse": as in PyTorch. */
static bool make_params(const char *at, struct recurrent *r, int run)
{
	static const char *const names[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
	int64_t all = gates_of(r), in = run >= r->directions ? r->directions * r->hidden
	                                : r->opts.in_units   ? r->opts.in_units
	                                                     : -1;
	const sl_shape shapes[] = {SL_SHAPE(all, in), SL_SHAPE(all, r->hidden), SL_SHAPE(all), SL_SHAPE(all)};
	struct sl_param_opts opts = {.init = slp_init_or(r->opts.init, sl_uniform_init(1 / sqrt((double)r->hidden)))};
	for (int i = 0; i < (r->opts.no_bias ? BIAS_IN : PARAMS); i++) {
		char name[64];
		snprintf(name, sizeof name, "%s_l%d%s", names[i], run / r->directions,
		         run % r->directions ? "_reverse" : "");
		if (!(r->params[run * PARAMS + i] = sl_block_param_at(at, &r->base, name, shapes[i], opts)))
			return false;
	}
	return true;
}

static sl_block *make(const char *at, const char *function, const char *type, const char *word, enum sl_cell cell,
                      int64_t hidden, struct sl_recurrent_layer_opts opts)
{
	enum { MOST_LAYERS = 1024 };
	if (!SLP_OPTIONS(sl_recurrent_layer_opts, at, function, &opts)) return NULL;
	if (hidden < 1 || hidden > INT32_MAX || opts.layers < 1 || opts.layers > MOST_LAYERS || opts.in_units < 0 ||
	    !(opts.dropout >= 0 && opts.dropout < 1))
		return slp_call_fail(at, function, SL_EINVAL, "hidden %lld, %d layers, dropout %g: impossible",
		                     (long long)hidden, opts.layers, opts.dropout);
	if (opts.dropout > 0 && opts.layers == 1)
		return slp_call_fail(at, function, SL_EINVAL,
		                     ".dropout %g is between layers, and there is one: it would have no effect",
		                     opts.dropout);
	if (opts.relu && cell > SL_CELL_RELU) return slp_call_fail(at, function, SL_EINVAL, ".relu is for sl_rnn");
	struct recurrent *r = slp_layer_new(at, sizeof *r, type, word, recurrent_forward);
	if (!r) return NULL;
	r->base.destroy = recurrent_destroy;
	r->cell = cell;
	r->hidden = hidden;
	r->opts = opts;
	r->directions = opts.bidirectional ? 2 : 1;
	r->params = slp_calloc((size_t)(runs_of(r) * PARAMS), sizeof *r->params);
	bool ok = r->params != NULL;
	if (!ok) slp_call_fail(at, function, SL_ENOMEM, "no memory for the layer");
	for (int i = 0; ok && i < runs_of(r); i++) ok = make_params(at, r, i);
	if (ok) return &r->base;
	sl_block_free(&r->base);
	return NULL;
}

/* A recurrent layer with `hidden` units, tanh or .relu; with .layers = n a stack of n layers, each in both directions
 * with .bidirectional.  For x (steps, rows, inputs) the result is the state of the top layer after each step, (steps,
 * rows, directions · hidden).  A second input is the first state (default: zeros), and the second result
 * (sl_forward_all) is the last state, both (layers · directions, rows, hidden).  Parameters have PyTorch's names,
 * shapes and order of gates: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0; _l1, …; _l0_reverse.  With .lengths
 * the second input, before a state, is the number of valid steps of each row, integers (rows): see sl_recurrent; the
 * results are those of PyTorch's packed sequences.  Later elements of x have no effect if they are finite.  SL_EINVAL:
 * options out of range, or .dropout with one layer.
 *
 *     sl_block *net = sl_sequential(sl_embedding(words, 64), sl_rnn(128, .layers = 2),
 *                                   sl_dense(words, .no_flatten = true)); */
sl_block *sl_rnn_at(const char *at, int64_t hidden, struct sl_recurrent_layer_opts opts)
{
	SLP_CALL("sl_rnn", at);
	return make(at, "sl_rnn", "RNN", "rnn", opts.relu ? SL_CELL_RELU : SL_CELL_TANH, hidden, opts);
}

/* As sl_rnn, with long short-term memory: state and cell are two further inputs and two further results.
 *
 *     sl_tensor *in[] = {x, state, cell}, *out[3];
 *     sl_forward_all(lstm, in, 3, out, 3); */
sl_block *sl_lstm_at(const char *at, int64_t hidden, struct sl_recurrent_layer_opts opts)
{
	SLP_CALL("sl_lstm", at);
	return make(at, "sl_lstm", "LSTM", "lstm", SL_CELL_LSTM, hidden, opts);
}

/* As sl_rnn, with gated units: see sl_recurrent. */
sl_block *sl_gru_at(const char *at, int64_t hidden, struct sl_recurrent_layer_opts opts)
{
	SLP_CALL("sl_gru", at);
	return make(at, "sl_gru", "GRU", "gru", SL_CELL_GRU, hidden, opts);
}
