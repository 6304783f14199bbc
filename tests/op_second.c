/* Second derivatives of test cases against finite differences of first ones. */
#include "op_second.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/tensor.h"

enum { STREAM_WEIGHTS = 200, STREAM_MOVES = 220, MOST = SLP_CASE_INPUTS + 1 };
static const double step = 6e-6, tolerance = 1e-6; /* the step is near the cube root of the precision */

/* The variables of a case: its float inputs, and the gradient of output 0, in this order. */
struct variables {
	const struct slp_operands *o;
	int count, input[MOST]; /* -1: the gradient of output 0 */
	int64_t size[MOST];
	double *x[MOST], *got[MOST]; /* values; second derivatives */
};

static bool is_variable(const struct slp_operands *o, int i)
{
	return o->in[i].type.dtype == SL_FLOAT64 && !slp_writes_input(o->op, i);
}

static double number(struct slp_place_of_test at, unsigned stream, int k, int64_t i)
{
	return 2 * slp_case_random(at.c, stream + (unsigned)k, i) - 1;
}

static void add_variable(struct variables *v, int input, const double *x, int64_t size)
{
	int k = v->count++;
	v->input[k] = input;
	v->size[k] = size;
	v->x[k] = malloc((size_t)size * sizeof(double) + 1);
	v->got[k] = calloc((size_t)size + 1, sizeof(double));
	if (x) memcpy(v->x[k], x, (size_t)size * sizeof(double));
	for (int64_t i = 0; i < size; i++)
		v->x[k][i] *= 1 + 1e-3 * sin(1 + 0.7 * (double)i + k); /* off round numbers */
}

static struct variables variables_of(struct slp_place_of_test at, const struct slp_operands *o)
{
	struct variables v = {.o = o};
	for (int i = 0; i < o->nin; i++)
		if (is_variable(o, i)) add_variable(&v, i, o->in[i].ptr, slp_size(&o->in[i]));
	add_variable(&v, -1, NULL, slp_size(&o->out[0]));
	for (int64_t i = 0; i < v.size[v.count - 1]; i++) v.x[v.count - 1][i] = number(at, STREAM_WEIGHTS, MOST, i);
	return v;
}

static void free_variables(struct variables *v)
{
	for (int k = 0; k < v->count; k++) {
		free(v->x[k]);
		free(v->got[k]);
	}
}

/* The sum of first derivatives with respect to the inputs, with random weights; its own gradients go to v->got, if
 * `again`.  The variables are moved by `moved` along their directions. */
static enum sl_status weighted(struct slp_place_of_test at, sl_device device, struct variables *v, double moved,
                               bool again, double *sum, double *size)
{
	const struct slp_operands *o = v->o;
	sl_tensor *in[SLP_CASE_INPUTS], *out[SLP_MAX_OUTPUTS], *var[MOST], *g[MOST];
	for (int i = 0; i < o->nin; i++)
		if (!is_variable(o, i))
			in[i] = sl_from(o->in[i].ptr, o->in[i].type.shape, .dtype = o->in[i].type.dtype,
			                .device = device);
	for (int k = 0; k < v->count; k++) {
		const struct slp_type *type = v->input[k] < 0 ? &o->out[0].type : &o->in[v->input[k]].type;
		double *x = malloc((size_t)v->size[k] * sizeof *x + 1);
		for (int64_t i = 0; i < v->size[k]; i++) x[i] = v->x[k][i] + moved * number(at, STREAM_MOVES, k, i);
		var[k] = sl_from(x, type->shape, .dtype = SL_FLOAT64, .device = device);
		free(x);
		sl_attach_grad(var[k]);
		if (v->input[k] >= 0) in[v->input[k]] = var[k];
	}
	int n = v->count - 1;
	enum sl_status s = sl_error();
	sl_tensor *all = NULL;
	*size = 0;
	SL_RECORD {
		if (s == SL_OK) s = slp_apply(SL_HERE, o->op, o->attrs.bytes, o->nin, in, device, out);
		if (s == SL_OK) s = sl_gradients(&out[0], 1, var, n, g, .head_grads = &var[n], .create_graph = again);
		for (int k = 0; k < n && s == SL_OK; k++) {
			double *w = malloc((size_t)v->size[k] * sizeof *w + 1);
			for (int64_t i = 0; i < v->size[k]; i++) w[i] = number(at, STREAM_WEIGHTS, k, i);
			sl_tensor *weights = sl_from(w, g[k]->type.shape, .dtype = SL_FLOAT64, .device = device);
			free(w);
			sl_tensor *product = sl_mul(again ? g[k] : sl_detach(g[k]), weights), *part = sl_sum(product);
			*size += fabs(sl_item(sl_sum(sl_abs(sl_detach(product)))));
			all = all ? sl_add(all, part) : part;
			s = sl_error();
		}
	}
	if (s == SL_OK) *sum = sl_item(all);
	if (s == SL_OK && again && all->var) s = sl_backward(all); /* or the gradients are constants */
	for (int k = 0; k < v->count && s == SL_OK && again; k++)
		s = sl_read(sl_grad(var[k]), v->got[k], sl_tensor_bytes(var[k]));
	return s == SL_OK ? sl_error() : s;
}

static enum sl_status compare(struct slp_place_of_test at, sl_device device, struct variables *v)
{
	double here = 0, up = 0, down = 0, size = 0, other = 0, got = 0, scale = 0;
	enum sl_status s = weighted(at, device, v, 0, true, &here, &size);
	if (s == SL_OK) s = weighted(at, device, v, step, false, &up, &other);
	if (s == SL_OK) s = weighted(at, device, v, -step, false, &down, &other);
	if (s != SL_OK) return s;
	for (int k = 0; k < v->count; k++)
		for (int64_t i = 0; i < v->size[k]; i++) {
			double d = v->got[k][i] * number(at, STREAM_MOVES, k, i);
			got += d;
			scale += fabs(d);
		}
	double expected = (up - down) / (2 * step), noise = 16 * DBL_EPSILON * size / step;
	if (!(fabs(got - expected) <= tolerance * fmax(scale, fabs(expected)) + noise))
		slp_case_fail(at, "the second derivative in a direction is %.9g, finite differences say %.9g", got,
		              expected);
	else slp_check(true, "op", 0, "second derivative");
	return s;
}

void slp_case_second(struct slp_place_of_test at, sl_device device, const struct slp_operands *o)
{
	bool any = false;
	for (int i = 0; i < o->nin; i++) any |= is_variable(o, i);
	if (!any || !o->op->grad || o->op->grad == slp_constant || at.c->no_grad || !o->nout ||
	    o->out[0].type.dtype != SL_FLOAT64)
		return;
	at.how = "second derivative";
	struct variables v = variables_of(at, o);
	enum sl_status s = SL_OK;
	SL_SCOPE
		s = compare(at, device, &v);
	if (s != SL_OK) slp_case_fail(at, "%s: %s", sl_status_name(s), sl_error_message());
	sl_error_clear();
	free_variables(&v);
}
