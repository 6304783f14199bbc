/* Running test cases within traced code. */
#include <starling.h>

#include "op_list/attention.h"
#include "op_list/binary.h"
#include "op_traced.h"
#include "train/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/autograd.h"
#include "graph/graph.h"
#include "networks.h"
#include "nn/nn.h"

enum { SEED = 5 };

/* The call as a block's forward: operands that `bound` names are met there, the others are given. */
struct call_block {
	sl_block base;
	const struct slp_operands *o;
	const void *attrs;
	sl_device device;
	int result;
	sl_tensor *bound[SLP_CASE_INPUTS];
	sl_param *params[SLP_CASE_INPUTS];
};

static sl_tensor *forward(sl_block *self, sl_tensor *const *given, int ngiven)
{
	struct call_block *b = (struct call_block *)self;
	sl_tensor *in[SLP_CASE_INPUTS] = {NULL}, *out[SLP_MAX_OUTPUTS] = {NULL};
	for (int i = 0, next = 0; i < b->o->nin; i++)
		in[i] = b->params[i] ? sl_param_data(b->params[i]) : b->bound[i] ? b->bound[i] : given[next++ % ngiven];
	enum sl_status s = slp_apply(SL_HERE, b->o->op, b->attrs, b->o->nin, in, b->device, out);
	if (s != SL_OK) return NULL;
	return b->o->nout ? out[b->result] : sl_clone(given[0]);
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

/* One trial of a case: its call, eagerly or otherwise, and what came of it. */
struct trial {
	struct slp_place_of_test at;
	sl_device device;
	const struct slp_operands *o;
	union {
		char bytes[SLP_MAX_ATTRS];
		max_align_t align;
	} attrs;                    /* as the case has them, but for the random stream */
	enum sl_dtype autocast;     /* SL_FLOAT32: none */
	struct slp_operands result; /* in: what became of the inputs; gradients in their place, where asked for */
};

/* Programs give a random call the streams of their run: eagerly it gets the first after sl_seed, too. */
static void set_stream(struct trial *t)
{
	for (const struct slp_attr *a = t->o->op->attr_table; a && a->name; a++) {
		if (strcmp(a->name, "seed")) continue;
		sl_seed(SEED);
		struct slp_rng rng = slp_rng_next();
		memcpy(t->attrs.bytes + a->offset, &rng, sizeof rng);
	}
	sl_seed(SEED);
}

static struct trial trial_of(struct slp_place_of_test at, sl_device device, const struct slp_operands *o,
                             enum sl_dtype autocast)
{
	struct trial t = {.at = at, .device = device, .o = o, .autocast = autocast};
	if (at.c->attrs) memcpy(t.attrs.bytes, at.c->attrs, o->op->attrs_size);
	set_stream(&t);
	t.result = slp_operands_copy(o);
	return t;
}

static sl_tensor *tensor_of(const struct trial *t, int i)
{
	const struct slp_view *v = &t->o->in[i];
	return sl_from(v->ptr, v->type.shape, .dtype = v->type.dtype, .device = t->device);
}

/* What chooses or hides is no matter of degree: nothing flows back to it. */
static bool chooses(const struct sl_op *op, int i)
{
	if (op == &slp_op_take_if || op == &slp_op_take_unless) return i == 0;
	return op == &slp_op_attention && i == 3;
}

static bool has_gradient(const struct slp_operands *o, int i)
{
	return !chooses(o->op, i) && slp_is_float(o->in[i].type.dtype) && !slp_writes_input(o->op, i);
}

static bool goes_back(const struct slp_operands *o)
{
	bool any = false;
	for (int i = 0; i < o->nin; i++) any |= has_gradient(o, i);
	return any && o->op->grad && o->op->grad != slp_constant && o->nout && slp_is_float(o->out[0].type.dtype);
}

/* What is added up to the loss: a number for each element of output 0. */
static sl_tensor *cotangents(const struct trial *t)
{
	struct slp_view v = {NULL, t->o->out[0].type};
	v.ptr = malloc((size_t)slp_size(&v) * sizeof(double) + 1);
	for (int64_t i = 0; i < slp_size(&v); i++) slp_set(&v, i, 2 * slp_case_random(t->at.c, 100, i) - 1);
	sl_tensor *r = sl_from(v.ptr, v.type.shape, .dtype = v.type.dtype, .device = t->device);
	free(v.ptr);
	return r;
}

static sl_tensor *of_type(sl_tensor *dy, sl_tensor *y)
{
	return sl_tensor_dtype(dy) == sl_tensor_dtype(y) ? dy : sl_cast(dy, sl_tensor_dtype(y));
}

/* ---- what came of it --------------------------------------------------------------------------------------------- */

static void take(struct slp_view *v, sl_tensor *got, enum sl_status *s)
{
	if (*s != SL_OK) return;
	*s = got ? SL_OK : sl_error() != SL_OK ? sl_error() : SL_EINVAL;
	if (*s != SL_OK) return;
	v->type = (struct slp_type){sl_tensor_dtype(got), sl_tensor_shape(got)};
	free(v->ptr);
	v->ptr = malloc(sl_tensor_bytes(got) + 1);
	*s = sl_read(got, v->ptr, sl_tensor_bytes(got));
}

static bool worked(const struct trial *t, enum sl_status s)
{
	if (s == SL_OK) return true;
	slp_case_fail(t->at, "%s: %s", sl_status_name(s), sl_error_message());
	sl_error_clear();
	return false;
}

static void free_trial(struct trial *t)
{
	slp_operands_free(&t->result);
}

/* ---- eagerly ----------------------------------------------------------------------------------------------------- */

static enum sl_status run_eagerly(struct trial *t, bool back)
{
	sl_tensor *in[SLP_CASE_INPUTS] = {NULL}, *out[SLP_MAX_OUTPUTS] = {NULL}, *dy = back ? cotangents(t) : NULL;
	enum sl_status s = SL_OK;
	for (int i = 0; i < t->o->nin; i++) {
		in[i] = tensor_of(t, i);
		if (back && has_gradient(t->o, i)) sl_attach_grad(in[i]);
	}
	if (back) {
		SL_RECORD
			s = slp_apply(SL_HERE, t->o->op, t->attrs.bytes, t->o->nin, in, t->device, out);
		if (s == SL_OK) dy = of_type(dy, out[0]);
		if (s == SL_OK) s = sl_backward_heads(&out[0], 1, .head_grads = &dy);
	} else {
		s = slp_apply(SL_HERE, t->o->op, t->attrs.bytes, t->o->nin, in, t->device, out);
	}
	for (int i = 0; i < t->o->nout; i++) take(&t->result.out[i], out[i], &s);
	for (int i = 0; i < t->o->nin; i++) {
		bool gradient = back && has_gradient(t->o, i);
		take(&t->result.in[i], gradient && s == SL_OK ? sl_grad(in[i]) : in[i], &s);
	}
	return s;
}

/* ---- as a program ------------------------------------------------------------------------------------------------ */

/* Symbols for all inputs but those that the call writes: those are the program's by reference. */
static enum sl_status run_program(struct trial *t, unsigned off)
{
	sl_tensor *in[SLP_CASE_INPUTS] = {NULL}, *given[SLP_CASE_INPUTS], *out[SLP_MAX_OUTPUTS] = {NULL};
	int n = 0;
	for (int i = 0; i < t->o->nin; i++) {
		in[i] = tensor_of(t, i);
		if (slp_writes_input(t->o->op, i)) continue;
		char name[16];
		snprintf(name, sizeof name, "x%d", i);
		given[n++] = in[i];
		in[i] = sl_var(name, .shape = &t->o->in[i].type.shape, .dtype = t->o->in[i].type.dtype);
	}
	enum sl_status s = slp_apply(SL_HERE, t->o->op, t->attrs.bytes, t->o->nin, in, t->device, out);
	sl_graph *graph = s == SL_OK ? sl_graph_define_at(SL_HERE, out, t->o->nout) : NULL;
	sl_plan *plan = graph ? sl_compile(graph, .off = off, .device = t->device) : NULL;
	s = plan ? sl_plan_run(plan, given, n, out) : sl_error();
	for (int i = 0; i < t->o->nout; i++) take(&t->result.out[i], out[i], &s);
	for (int i = 0; i < t->o->nin; i++)
		if (slp_writes_input(t->o->op, i)) take(&t->result.in[i], in[i], &s);
	sl_plan_free(plan);
	sl_graph_free(graph);
	return s;
}

static bool is_program(const struct slp_operands *o)
{
	int given = 0;
	for (int i = 0; i < o->nin; i++) given += !slp_writes_input(o->op, i);
	return o->nout && given;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static struct call_block *block_new(const struct trial *t)
{
	struct call_block *b = calloc(1, sizeof *b);
	b->o = t->o;
	b->attrs = t->attrs.bytes;
	b->device = t->device;
	CHECK_OK(sl_block_init(&b->base, "Call", forward, NULL));
	return b;
}

/* Hybridised.  A block has one result: output 0; all of them are compared in run_program. */
static enum sl_status run_hybrid(struct trial *t, unsigned off, bool back)
{
	struct call_block *b = block_new(t);
	sl_tensor *in[SLP_CASE_INPUTS], *given[SLP_CASE_INPUTS], *y = NULL, *dy = back ? cotangents(t) : NULL;
	int n = 0;
	for (int i = 0; i < t->o->nin; i++) {
		in[i] = tensor_of(t, i);
		if (back && has_gradient(t->o, i)) sl_attach_grad(in[i]);
		if (slp_writes_input(t->o->op, i)) b->bound[i] = in[i];
		else given[n++] = in[i];
	}
	if (!n) given[n++] = sl_ones(SL_SHAPE(1), .device = t->device);
	enum sl_status s = sl_hybridize(&b->base, .passes_off = off);
	if (back) {
		SL_RECORD
			y = sl_forward_at(SL_HERE, &b->base, given, n);
		if (y) dy = of_type(dy, y);
		if (y) s = sl_backward_heads(&y, 1, .head_grads = &dy);
	} else {
		y = sl_forward_at(SL_HERE, &b->base, given, n);
	}
	if (!y) s = sl_error();
	if (t->o->nout) take(&t->result.out[0], y, &s);
	for (int i = 0; i < t->o->nin; i++)
		if (back && has_gradient(t->o, i)) take(&t->result.in[i], s == SL_OK ? sl_grad(in[i]) : NULL, &s);
		else if (slp_writes_input(t->o->op, i)) take(&t->result.in[i], in[i], &s);
	sl_block_free(&b->base);
	return s;
}

static sl_tensor *weighted_sum(const char *at, sl_tensor *y, sl_tensor *weights)
{
	return sl_sum_at(at, sl_mul_at(at, y, weights), (struct sl_reduce_opts){0});
}

static sl_param *param_of(struct call_block *b, int i, sl_tensor *values)
{
	char name[16];
	snprintf(name, sizeof name, "x%d", i);
	sl_param *p = sl_block_param(&b->base, name, sl_tensor_shape(values), .dtype = sl_tensor_dtype(values));
	if (p) sl_param_set(p, values);
	return p;
}

/* The inputs are parameters; after one step the momentum of each is its gradient. */
static enum sl_status run_step(struct trial *t)
{
	struct call_block *b = block_new(t);
	sl_tensor *x = sl_ones(SL_SHAPE(1), .dtype = t->o->out[0].type.dtype, .device = t->device), *y = NULL;
	for (int i = 0; i < t->o->nin; i++)
		if (has_gradient(t->o, i)) b->params[i] = param_of(b, i, tensor_of(t, i));
		else b->bound[i] = tensor_of(t, i);
	sl_trainer *trainer = sl_trainer_new(&b->base, sl_sgd(.momentum = 0.5));
	sl_step *step = sl_step_compile(&b->base, weighted_sum, trainer);
	enum sl_status s = step && sl_step_run(step, x, cotangents(t), &y) ? SL_OK : sl_error();
	take(&t->result.out[0], y, &s);
	for (int i = 0, k = 0; i < t->o->nin; i++)
		if (has_gradient(t->o, i)) take(&t->result.in[i], *slp_trainer_state(trainer, 0, k++), &s);
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(&b->base);
	return s;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

enum way { PROGRAM, HYBRID, HYBRID_BACK, STEP };

/* What is no number spoils a parameter, whatever its gradient. */
static bool is_finite(const struct slp_operands *o)
{
	for (int i = 0; i < o->nin; i++)
		for (int64_t e = 0; e < slp_size(&o->in[i]); e++)
			if (!isfinite(slp_get(&o->in[i], e))) return false;
	return true;
}

static bool applies(enum way way, const struct slp_operands *o)
{
	if (way == STEP && !is_finite(o)) return false;
	return way == PROGRAM ? is_program(o) : way == HYBRID || goes_back(o);
}

static enum sl_status run(struct trial *t, enum way way, unsigned off)
{
	enum sl_status s = SL_OK;
	SL_SCOPE
		SL_AUTOCAST(t->autocast)
	s = way == PROGRAM ? run_program(t, off) : way == STEP ? run_step(t) : run_hybrid(t, off, way == HYBRID_BACK);
	return s;
}

/* Blocks give output 0 alone; inputs that are neither written nor have a gradient stay as they were. */
static void compare(struct trial *got, const struct trial *expected, enum way way, double tolerance)
{
	int outputs = way == PROGRAM ? got->o->nout : got->o->nout ? 1 : 0;
	for (int i = 0; i < outputs; i++)
		slp_compare_view(got->at, "output", i, &got->result.out[i], &expected->result.out[i], tolerance);
	for (int i = 0; i < got->o->nin; i++) {
		bool gradient = way >= HYBRID_BACK && has_gradient(got->o, i);
		if (gradient || (way != STEP && slp_writes_input(got->o->op, i)))
			slp_compare_view(got->at, gradient ? "the gradient by input" : "input", i, &got->result.in[i],
			                 &expected->result.in[i], tolerance);
	}
}

static void check_way(const struct trial *expected, const char *how, enum way way, unsigned off, double tolerance)
{
	struct slp_place_of_test at = expected->at;
	at.how = how;
	if (!applies(way, expected->o)) return;
	struct trial t = trial_of(at, expected->device, expected->o, expected->autocast);
	if (worked(&t, run(&t, way, off))) compare(&t, expected, way, tolerance);
	free_trial(&t);
}

/* Programs may leave out casts there and back. */
static void check(struct slp_place_of_test at, sl_device device, const struct slp_operands *o, bool back,
                  enum sl_dtype autocast)
{
	const double tolerance = autocast == SL_FLOAT32 ? 2e-5 : slp_tolerance(autocast, 0) * 2;
	at.how = back ? "eagerly, there and back" : "eagerly";
	struct trial expected = trial_of(at, device, o, autocast);
	enum sl_status s = SL_OK;
	SL_SCOPE
		SL_AUTOCAST(autocast)
	s = run_eagerly(&expected, back);
	if (s == SL_EUNSUPPORTED && back) { /* such as graph passes make of others, on which nobody goes back */
		sl_error_clear();
	} else if (worked(&expected, s)) {
		if (!back) check_way(&expected, "as a program", PROGRAM, SLP_ROUNDING, 0);
		if (!back) check_way(&expected, "as a program with all passes", PROGRAM, 0, tolerance);
		if (!back) check_way(&expected, "hybridised", HYBRID, SLP_ROUNDING, 0);
		if (back) check_way(&expected, "hybridised, there and back", HYBRID_BACK, SLP_ROUNDING, 0);
		if (back) check_way(&expected, "hybridised with all passes, there and back", HYBRID_BACK, 0, tolerance);
		if (back) check_way(&expected, "as a whole step", STEP, 0, tolerance);
	}
	free_trial(&expected);
}

void slp_case_traced(struct slp_place_of_test at, sl_device device, const struct slp_operands *o)
{
	check(at, device, o, false, SL_FLOAT32);
	if (goes_back(o)) check(at, device, o, true, SL_FLOAT32);
	if (o->op->autocast == SLP_CAST_NONE || o->in[0].type.dtype != SL_FLOAT32) return;
	check(at, device, o, false, SL_BFLOAT16);
	if (goes_back(o)) check(at, device, o, true, SL_BFLOAT16);
}
