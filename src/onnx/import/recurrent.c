/* ONNX operators, computed: recurrent layers, all steps in one operation; step by step for GRUs that reset the state
 * before its product, and for unusual functions and peepholes, which that operation does not compute. */
#include <strings.h>

#include "onnx/model/call.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/functions.h"

/* A function of a gate or of the state, with its numbers. */
struct function {
	const char *name;
	double alpha, beta;
};

/* One direction of a layer. */
struct layer {
	struct slp_onnx_call *c;
	int gates; /* 4, 3 or 1 */
	int64_t steps, batch, inputs, units;
	bool relu, before;    /* RNN's function; linear_before_reset */
	bool whole;           /* by one operation, whose order of gates is another */
	sl_tensor *x;         /* the gates' share of the inputs, (steps, batch, gates units) */
	sl_tensor *r, *rb;    /* (gates units, units), (gates units) or NULL */
	sl_tensor *h, *cell;  /* the state, (batch, units) */
	sl_tensor *lengths;   /* of sequences, (batch, 1); NULL: all have all steps */
	struct function f[3]; /* of the gates, the candidate, the result */
	double clip;          /* of what goes into the functions; 0: none */
	bool coupled;         /* the forget gate is one less the input gate */
	sl_tensor *peep[3];   /* the cell's weights in gates i, o, f, (units); NULL: none */
};

static sl_tensor *part(const struct layer *l, sl_tensor *x, int axis, int64_t i, int64_t n)
{
	return sl_slice_at(l->c->at, x, axis, i * n, (i + 1) * n, 1);
}

/* Input i's share of a direction, without that axis; NULL: none. */
static sl_tensor *of_direction(struct slp_onnx_call *c, int i, int direction)
{
	if (!slp_onnx_has(c, i)) return NULL;
	struct slp_onnx_value v = slp_onnx_sliced(c, c->in[i], 0, direction, direction + 1, 1);
	sl_shape s = slp_onnx_shape(c, i), y = {.ndim = s.ndim - 1};
	for (int k = 0; k < y.ndim; k++) y.dim[k] = s.dim[k + 1];
	if (v.t || v.known) v = slp_onnx_reshaped(c, v, y);
	return slp_onnx_as_tensor(c, v);
}

static sl_tensor *gate(const struct layer *l, sl_tensor *all, int i)
{
	return part(l, all, 1, i, l->units);
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

static sl_tensor *scaled_tanh(const char *at, sl_tensor *x, struct function f)
{
	return sl_mul_scalar_at(at, sl_tanh_at(at, sl_mul_scalar_at(at, x, f.beta)), f.alpha);
}
static sl_tensor *affine(const char *at, sl_tensor *x, struct function f)
{
	return sl_add_scalar_at(at, sl_mul_scalar_at(at, x, f.alpha), f.beta);
}
static sl_tensor *hard_sigmoid(const char *at, sl_tensor *x, struct function f)
{
	return sl_minimum_scalar_at(at, sl_maximum_scalar_at(at, affine(at, x, f), 0), 1);
}
static sl_tensor *leaky(const char *at, sl_tensor *x, struct function f)
{
	return sl_add_at(at, sl_relu_at(at, x), sl_mul_scalar_at(at, sl_minimum_scalar_at(at, x, 0), f.alpha));
}
static sl_tensor *thresholded(const char *at, sl_tensor *x, struct function f)
{
	return sl_mul_at(at, x, sl_gt_scalar_at(at, x, f.alpha));
}
static sl_tensor *elu(const char *at, sl_tensor *x, struct function f)
{
	sl_tensor *below = sl_mul_scalar_at(at, sl_expm1_at(at, sl_minimum_scalar_at(at, x, 0)), f.alpha);
	return sl_add_at(at, sl_relu_at(at, x), below);
}
#define PLAIN(name, call)                                                                                              \
	static sl_tensor *name(const char *at, sl_tensor *x, struct function f)                                        \
	{                                                                                                              \
		(void)f;                                                                                               \
		return call(at, x);                                                                                    \
	}
PLAIN(sigmoid, sl_sigmoid_at)
PLAIN(hyperbolic, sl_tanh_at)
PLAIN(relu, sl_relu_at)
PLAIN(softsign, sl_softsign_at)
PLAIN(softplus, sl_softplus_at)

/* With the numbers that they have if the file gives none. */
static const struct {
	const char *name;
	sl_tensor *(*apply)(const char *at, sl_tensor *x, struct function f);
	int takes; /* of alpha and beta */
	double alpha, beta;
} functions[] = {
        {"Sigmoid", sigmoid, 0, 0, 0},
        {"Tanh", hyperbolic, 0, 0, 0},
        {"Relu", relu, 0, 0, 0},
        {"Softsign", softsign, 0, 0, 0},
        {"Softplus", softplus, 0, 0, 0},
        {"Affine", affine, 2, 1, 0},
        {"LeakyRelu", leaky, 1, 0.01, 0},
        {"ThresholdedRelu", thresholded, 1, 1, 0},
        {"ScaledTanh", scaled_tanh, 2, 1, 1},
        {"HardSigmoid", hard_sigmoid, 2, 0.2, 0.5},
        {"Elu", elu, 1, 1, 0},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static int function_named(const char *name)
{
	int i = 0;
	while (i < FUNCTIONS && strcasecmp(functions[i].name, name)) i++;
	return i;
}

static sl_tensor *apply(const struct layer *l, int which, sl_tensor *x)
{
	struct function f = l->f[which];
	bool into_gate = l->gates != 4 || which < 2; /* the cell's values are not cut */
	if (x && l->clip > 0 && into_gate) x = sl_clip_at(l->c->at, x, -l->clip, l->clip);
	return x ? functions[function_named(f.name)].apply(l->c->at, x, f) : NULL;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* Gate k of a, with what it sees of the cell. */
static sl_tensor *peeping(const struct layer *l, sl_tensor *a, int k, sl_tensor *cell)
{
	sl_tensor *x = gate(l, a, k);
	return l->peep[k] ? sl_add_at(l->c->at, x, sl_mul_at(l->c->at, cell, l->peep[k])) : x;
}

/* Gates i, o, f, c. */
static void step_lstm(struct layer *l, sl_tensor *x)
{
	const char *at = l->c->at;
	sl_tensor *a = sl_add_at(at, x, sl_linear_at(at, l->h, l->r, NULL, (struct sl_linear_opts){.tw = true}));
	sl_tensor *i = apply(l, 0, peeping(l, a, 0, l->cell)), *f = NULL;
	if (l->coupled) f = sl_rsub_scalar_at(at, i, 1);
	else f = apply(l, 0, peeping(l, a, 2, l->cell));
	sl_tensor *fresh = sl_mul_at(at, i, apply(l, 1, gate(l, a, 3)));
	l->cell = sl_add_at(at, sl_mul_at(at, f, l->cell), fresh);
	sl_tensor *o = apply(l, 0, peeping(l, a, 1, l->cell));
	l->h = sl_mul_at(at, o, apply(l, 2, l->cell));
}

/* Gates z, r, h: the state is reset before or after its product. */
static void step_gru(struct layer *l, sl_tensor *x)
{
	const char *at = l->c->at;
	const struct sl_linear_opts rows = {.tw = true};
	int64_t u = l->units;
	sl_tensor *a = NULL, *hidden;
	sl_tensor *all = l->before ? sl_linear_at(at, l->h, l->r, l->rb, rows)
	                           : sl_linear_at(at, l->h, sl_slice_at(at, l->r, 0, 0, 2 * u, 1), NULL, rows);
	a = sl_add_at(at, sl_slice_at(at, x, 1, 0, 2 * u, 1), sl_slice_at(at, all, 1, 0, 2 * u, 1));
	sl_tensor *z = apply(l, 0, gate(l, a, 0)), *r = apply(l, 0, gate(l, a, 1));
	if (l->before) hidden = sl_mul_at(at, r, gate(l, all, 2));
	else hidden = sl_linear_at(at, sl_mul_at(at, r, l->h), part(l, l->r, 0, 2, u), NULL, rows);
	sl_tensor *n = apply(l, 1, sl_add_at(at, gate(l, x, 2), hidden));
	l->h = sl_add_at(at, n, sl_mul_at(at, z, sl_sub_at(at, l->h, n)));
}

static void step_rnn(struct layer *l, sl_tensor *x)
{
	const char *at = l->c->at;
	sl_tensor *a = sl_add_at(at, x, sl_linear_at(at, l->h, l->r, NULL, (struct sl_linear_opts){.tw = true}));
	l->h = apply(l, 0, a);
}

static sl_tensor *zero_state(const struct layer *l)
{
	struct sl_make make = {sl_tensor_dtype(l->x), sl_tensor_device(l->x)};
	return sl_zeros_at(l->c->at, SL_SHAPE(l->batch, l->units), make);
}

/* The biases of both products are added to the first, except that of a state which is reset after its product. */
static sl_tensor *first_bias(struct layer *l, int direction)
{
	const char *at = l->c->at;
	int64_t n = l->gates * l->units;
	sl_tensor *b = of_direction(l->c, 3, direction);
	if (!b) return NULL;
	sl_tensor *wb = part(l, b, 0, 0, n), *rb = part(l, b, 0, 1, n);
	l->rb = l->before ? rb : NULL;
	return l->before ? wb : sl_add_at(at, wb, rb);
}

/* Gates in the order of sl_recurrent: input, forget, candidate, output; reset, update, candidate. */
static sl_tensor *reordered(const struct layer *l, sl_tensor *x)
{
	static const int lstm[] = {0, 2, 3, 1}, gru[] = {1, 0, 2};
	sl_tensor *list[4];
	if (!x || !l->whole || l->gates == 1) return x;
	for (int i = 0; i < l->gates; i++) list[i] = part(l, x, 0, l->gates == 4 ? lstm[i] : gru[i], l->units);
	return sl_concat_at(l->c->at, list, l->gates, 0);
}

/* x (steps, batch, inputs): the first product is computed for all steps together. */
static bool prepare(struct layer *l, sl_tensor *x, int direction)
{
	struct slp_onnx_call *c = l->c;
	sl_tensor *w = of_direction(c, 1, direction);
	sl_shape s = w ? sl_tensor_shape(w) : SL_SCALAR;
	if (!c->failed && (s.ndim != 2 || s.dim[0] != l->gates * l->units || s.dim[1] != l->inputs))
		slp_onnx_call_fail(c, SL_ESHAPE, "the weights do not fit %lld inputs and %lld units",
		                   (long long)l->inputs, (long long)l->units);
	if (c->failed) return false;
	l->r = reordered(l, of_direction(c, 2, direction));
	l->rb = NULL;
	sl_tensor *bias = reordered(l, first_bias(l, direction));
	l->rb = reordered(l, l->rb);
	l->x = sl_linear_at(c->at, x, reordered(l, w), bias, (struct sl_linear_opts){.tw = true});
	if (!l->x || !l->r) return false;
	l->h = of_direction(c, 5, direction);
	l->cell = of_direction(c, 6, direction);
	if (!l->h) l->h = zero_state(l);
	if (!l->cell && l->gates == 4) l->cell = zero_state(l);
	return l->h != NULL;
}

/* Step t where sequences may have ended: their state stays, their result is 0. */
static sl_tensor *step(struct layer *l, sl_tensor *x, int64_t t)
{
	const char *at = l->c->at;
	sl_tensor *h = l->h, *cell = l->cell;
	if (l->gates == 4) step_lstm(l, x);
	else if (l->gates == 3) step_gru(l, x);
	else step_rnn(l, x);
	if (!l->lengths) return l->h;
	sl_tensor *going = sl_gt_scalar_at(at, l->lengths, (double)t), *y = l->h;
	l->h = sl_where_at(at, going, y, h);
	if (cell) l->cell = sl_where_at(at, going, l->cell, cell);
	return sl_where_at(at, going, y, zero_state(l));
}

/* All steps of one direction, one by one: (steps, 1, batch, units). */
static sl_tensor *run_steps(struct layer *l, bool backwards)
{
	enum { MOST = 4096 };
	sl_tensor *list[MOST];
	const char *at = l->c->at;
	if (l->steps < 1 || l->steps > MOST)
		slp_onnx_call_fail(l->c, SL_EUNSUPPORTED, "%lld steps; the number must be from 1 to %d",
		                   (long long)l->steps, MOST);
	for (int64_t k = 0; k < l->steps && !l->c->failed; k++) {
		int64_t t = backwards ? l->steps - 1 - k : k;
		sl_tensor *x = sl_reshape_at(at, sl_slice_at(at, l->x, 0, t, t + 1, 1),
		                             SL_SHAPE(l->batch, l->gates * l->units));
		sl_tensor *y = step(l, x, t);
		list[t] = y ? sl_reshape_at(at, y, SL_SHAPE(1, 1, l->batch, l->units)) : NULL;
		if (!list[t]) l->c->failed = true;
	}
	return l->c->failed ? NULL : sl_concat_at(at, list, (int)l->steps, 0);
}

/* The same by one operation. */
static sl_tensor *run_whole(struct layer *l, bool backwards)
{
	const char *at = l->c->at;
	enum sl_cell cell = l->gates == 4   ? SL_CELL_LSTM
	                    : l->gates == 3 ? SL_CELL_GRU
	                    : l->relu       ? SL_CELL_RELU
	                                    : SL_CELL_TANH;
	struct sl_recurrent_opts opts = {.bias = l->rb, .cell = l->cell, .reverse = backwards, .last_state = &l->h};
	if (l->gates == 4) opts.last_cell = &l->cell;
	if (l->lengths) opts.lengths = sl_reshape_at(at, l->lengths, SL_SHAPE(l->batch));
	sl_tensor *y = sl_recurrent_at(at, cell, l->x, l->r, l->h, opts);
	if (y && l->cell && sl_tensor_dtype(l->cell) != sl_tensor_dtype(y)) /* of a half type */
		l->cell = sl_cast_at(at, l->cell, sl_tensor_dtype(y));
	return y ? sl_reshape_at(at, y, SL_SHAPE(l->steps, 1, l->batch, l->units)) : NULL;
}

/* ---- the node ---------------------------------------------------------------------------------------------------- */

/* Number i of an attribute that has some numbers, or this. */
static double number_of(struct slp_onnx_call *c, const char *attribute, size_t i, double otherwise)
{
	const SlpOnnx__AttributeProto *a = slp_onnx_attr(c, attribute);
	return a && i < a->n_floats ? (double)a->floats[i] : otherwise;
}

/* The function at a place of the attribute; FUNCTIONS: unknown; -1: the attribute ends before. */
static int function_at(struct slp_onnx_call *c, size_t place)
{
	const SlpOnnx__AttributeProto *a = slp_onnx_attr(c, "activations");
	char text[32] = "";
	if (!a || place >= a->n_strings) return -1;
	size_t n = a->strings[place].len < sizeof text - 1 ? a->strings[place].len : sizeof text - 1;
	memcpy(text, a->strings[place].data, n);
	int f = function_named(text);
	if (f == FUNCTIONS) slp_onnx_call_fail(c, SL_EUNSUPPORTED, "activation \"%.31s\" is not supported", text);
	return f;
}

/* Function k of a direction, which has `each`; the names of all directions follow each other, and so do the numbers of
 * those that take any. */
static void read_function(struct slp_onnx_call *c, struct layer *l, int direction, int each, int k)
{
	size_t place = (size_t)(direction * each + k), alphas = 0, betas = 0;
	const char *usual = l->gates == 1 || k ? "Tanh" : "Sigmoid";
	for (size_t i = 0; i < place && !c->failed; i++) {
		int before = function_at(c, i);
		if (before >= 0 && !c->failed)
			alphas += functions[before].takes > 0, betas += functions[before].takes > 1;
	}
	int f = c->failed ? FUNCTIONS : function_at(c, place);
	if (f < 0) f = function_named(usual);
	if (c->failed) return;
	l->f[k] = (struct function){functions[f].name, functions[f].alpha, functions[f].beta};
	if (functions[f].takes > 0) l->f[k].alpha = number_of(c, "activation_alpha", alphas, functions[f].alpha);
	if (functions[f].takes > 1) l->f[k].beta = number_of(c, "activation_beta", betas, functions[f].beta);
	bool plain_rnn = l->gates == 1 && !strcmp(functions[f].name, "Relu");
	l->relu = plain_rnn;
	if (!plain_rnn && strcmp(functions[f].name, usual)) l->whole = false;
}

/* What this direction computes; anything unusual is computed step by step. */
static void read_functions(struct slp_onnx_call *c, struct layer *l, int direction)
{
	int each = l->gates == 4 ? 3 : l->gates == 3 ? 2 : 1;
	l->whole = l->gates != 3 || l->before;
	for (int k = 0; k < each && !c->failed; k++) read_function(c, l, direction, each, k);
	l->clip = slp_onnx_attr_float(c, "clip", 0);
	l->coupled = slp_onnx_attr_int(c, "input_forget", 0) != 0;
	sl_tensor *p = l->gates == 4 ? of_direction(c, 7, direction) : NULL;
	if (p && (sl_tensor_shape(p).ndim != 1 || sl_tensor_shape(p).dim[0] != 3 * l->units))
		slp_onnx_call_fail(c, SL_ESHAPE, "peepholes that do not fit %lld units", (long long)l->units);
	for (int k = 0; k < 3 && !c->failed; k++) l->peep[k] = p ? part(l, p, 0, k, l->units) : NULL;
	if (l->clip > 0 || l->coupled || p) l->whole = false;
}

/* How long each sequence is, unless it is known that all have all steps. */
static void read_lengths(struct slp_onnx_call *c, struct layer *l)
{
	if (!slp_onnx_has(c, 4)) return;
	const struct slp_onnx_known *k = c->in[4].known;
	sl_shape s = slp_onnx_shape(c, 4);
	int64_t n = c->failed ? 0 : sl_shape_size(s), same = 0;
	while (k && same < n && k->v[same].i == l->steps) same++;
	if (!c->failed && (s.ndim != 1 || n != l->batch))
		slp_onnx_call_fail(c, SL_ESHAPE, "%lld lengths of %lld sequences", (long long)n, (long long)l->batch);
	if (c->failed || (k && same == n)) return;
	sl_tensor *t = slp_onnx_tensor(c, 4);
	l->lengths = t ? sl_reshape_at(c->at, sl_cast_at(c->at, t, SL_INT32), SL_SHAPE(n, 1)) : NULL;
	if (!l->lengths) c->failed = true; /* and recorded */
}

/* Results of the directions next to each other, in the order that the layout wants. */
static void give_joined(struct slp_onnx_call *c, int i, sl_tensor *const *list, int directions, int axis,
                        bool batch_first)
{
	static const int sequence[] = {2, 0, 1, 3}, state[] = {1, 0, 2};
	for (int d = 0; d < directions; d++)
		if (!list[d]) c->failed = true;
	if (c->failed || i >= c->nout) return;
	sl_tensor *y = directions == 1 ? list[0] : sl_concat_at(c->at, list, directions, axis);
	if (y && batch_first)
		y = sl_transpose_at(c->at, y,
		                    (struct sl_reduce_opts){.axes = axis ? sequence : state, .naxes = axis ? 4 : 3});
	slp_onnx_set_output(c, i, y);
}

/* Initial states (batch, directions, units) as where the batch is not the first axis. */
static void turn_states(struct slp_onnx_call *c)
{
	for (int i = 5; i < 7; i++) {
		if (!slp_onnx_has(c, i)) continue;
		if (slp_onnx_shape(c, i).ndim != 3) {
			slp_onnx_call_fail(c, SL_ESHAPE, "its initial states need 3 axes");
			return;
		}
		c->in[i] = slp_onnx_transposed(c, c->in[i], (const int[]){1, 0, 2});
	}
}

static void run_directions(struct layer *l, sl_tensor *x, int directions, bool reverse, bool batch_first)
{
	struct slp_onnx_call *c = l->c;
	sl_tensor *y[2] = {NULL}, *h[2] = {NULL}, *cell[2] = {NULL};
	sl_shape state = SL_SHAPE(1, l->batch, l->units);
	for (int d = 0; d < directions && !c->failed; d++) {
		read_functions(c, l, d);
		if (c->failed || !prepare(l, x, d)) {
			c->failed = true;
			return;
		}
		y[d] = l->whole ? run_whole(l, reverse || d == 1) : run_steps(l, reverse || d == 1);
		if (y[d]) h[d] = sl_reshape_at(c->at, l->h, state);
		if (y[d] && l->cell) cell[d] = sl_reshape_at(c->at, l->cell, state);
	}
	give_joined(c, 0, y, directions, 1, batch_first);
	give_joined(c, 1, h, directions, 0, batch_first);
	if (l->gates == 4) give_joined(c, 2, cell, directions, 0, batch_first);
}

void slp_onnx_import_recurrent(struct slp_onnx_call *c)
{
	bool both = slp_onnx_attr_is(c, "direction", "forward", "bidirectional"),
	     reverse = slp_onnx_attr_is(c, "direction", "forward", "reverse");
	bool batch_first = slp_onnx_attr_int(c, "layout", 0) != 0;
	sl_shape s = slp_onnx_shape(c, 0), r = slp_onnx_shape(c, 2);
	if (!c->failed && (s.ndim != 3 || r.ndim != 3 || r.dim[0] != 1 + both))
		slp_onnx_call_fail(c, SL_ESHAPE, "its inputs need 3 axes");
	if (c->failed) return;
	struct layer l = {.c = c,
	                  .gates = c->op->name[0] == 'L'   ? 4
	                           : c->op->name[0] == 'G' ? 3
	                                                   : 1,
	                  .steps = s.dim[batch_first],
	                  .batch = s.dim[!batch_first],
	                  .inputs = s.dim[2],
	                  .units = r.dim[2]};
	l.before = l.gates == 3 && slp_onnx_attr_int(c, "linear_before_reset", 0) != 0;
	if (batch_first && (slp_onnx_has(c, 5) || slp_onnx_has(c, 6)))
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "layout 1 with an initial state is not supported");
	read_lengths(c, &l);
	if (!c->failed && batch_first) turn_states(c);
	if (c->failed) return;
	sl_tensor *x = slp_onnx_tensor(c, 0);
	if (x && batch_first) x = sl_transpose_at(c->at, x, (struct sl_reduce_opts){SL_AXES(1, 0, 2)});
	if (x) run_directions(&l, x, 1 + both, reverse, batch_first);
	else c->failed = true;
}
