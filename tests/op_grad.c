/* Gradients of test cases against finite differences. */
#include "op_grad.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ELEMENTS = 40, STREAM_COTANGENT = 100, STREAM_ELEMENT = 101, STREAM_DIRECTION = 102 };
static const double step = 6e-6, tolerance = 1e-6; /* the step is near the cube root of the precision */
static const double work = 2e7;                    /* worth spending on one case's single elements */

static bool has_gradient(const struct slp_operands *o, int i)
{
	return o->in[i].type.dtype == SL_FLOAT64 && !slp_writes_input(o->op, i);
}

static double cotangent(struct slp_place_of_test at, int64_t i)
{
	return 2 * slp_case_random(at.c, STREAM_COTANGENT, i) - 1;
}

static double direction(struct slp_place_of_test at, int input, int64_t i)
{
	return slp_case_random(at.c, STREAM_DIRECTION + (unsigned)input, i) < 0.5 ? -1 : 1;
}

/* ---- by the reference -------------------------------------------------------------------------------------------- */

/* How far element i of an input moves. */
static double distance(double x)
{
	return step * fmax(1, fabs(x));
}

/* The operands moved along one element, or along the direction if input is negative; and the reference's results. */
static struct slp_operands moved(struct slp_place_of_test at, const struct slp_operands *o, int input, int64_t i,
                                 int sign)
{
	struct slp_operands m = slp_operands_copy(o);
	for (int k = 0; k < o->nin; k++) {
		if (!has_gradient(o, k) || (input >= 0 && k != input)) continue;
		double *x = m.in[k].ptr;
		int64_t first = input < 0 ? 0 : i, end = input < 0 ? slp_size(&m.in[k]) : i + 1;
		for (int64_t e = first; e < end; e++)
			x[e] += input < 0 ? sign * step * direction(at, k, e) : sign * distance(x[e]);
	}
	slp_operands_run(&m, o->op->ref);
	return m;
}

/* The change of the weighted sum of output 0 between both sides. */
static double change(struct slp_place_of_test at, const struct slp_operands *o, int input, int64_t i)
{
	struct slp_operands up = moved(at, o, input, i, 1), down = moved(at, o, input, i, -1);
	double sum = 0;
	for (int64_t e = 0; e < slp_size(&o->out[0]); e++)
		sum += cotangent(at, e) * (slp_get(&up.out[0], e) - slp_get(&down.out[0], e));
	slp_operands_free(&up);
	slp_operands_free(&down);
	return sum;
}

/* ---- by the engine ----------------------------------------------------------------------------------------------- */

static sl_tensor *cotangents(struct slp_place_of_test at, const struct slp_operands *o, sl_device device)
{
	struct slp_view v = {NULL, o->out[0].type};
	int64_t n = slp_size(&v);
	v.ptr = malloc((size_t)n * sizeof(double) + 1);
	for (int64_t i = 0; i < n; i++) slp_set(&v, i, cotangent(at, i));
	sl_tensor *t = sl_from(v.ptr, v.type.shape, .dtype = v.type.dtype, .device = device);
	free(v.ptr);
	return t;
}

/* Goes there and back; the gradients take the places of the inputs. */
static enum sl_status go_back(struct slp_place_of_test at, sl_device device, const struct slp_operands *o,
                              struct slp_operands *g)
{
	sl_tensor *in[SLP_CASE_INPUTS], *out[SLP_MAX_OUTPUTS], *dy = cotangents(at, o, device);
	for (int i = 0; i < o->nin; i++) {
		in[i] = sl_from(o->in[i].ptr, o->in[i].type.shape, .dtype = o->in[i].type.dtype, .device = device);
		if (has_gradient(o, i)) sl_attach_grad(in[i]);
	}
	enum sl_status s = sl_error();
	SL_RECORD {
		if (s == SL_OK) s = slp_apply(SL_HERE, o->op, o->attrs.bytes, o->nin, in, device, out);
	}
	if (s == SL_OK) s = sl_backward_heads(&out[0], 1, .head_grads = &dy);
	for (int i = 0; i < o->nin && s == SL_OK; i++)
		if (has_gradient(o, i)) s = sl_read(sl_grad(in[i]), g->in[i].ptr, sl_tensor_bytes(in[i]));
	return s;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

/* What rounding makes of the change of output 0, whose terms largely cancel out. */
static double noise(struct slp_place_of_test at, const struct slp_operands *o, double distance_moved)
{
	double sum = 0;
	struct slp_operands m = slp_operands_copy(o);
	slp_operands_run(&m, o->op->ref);
	for (int64_t e = 0; e < slp_size(&m.out[0]); e++) sum += fabs(cotangent(at, e) * slp_get(&m.out[0], e));
	slp_operands_free(&m);
	return 16 * DBL_EPSILON * sum / distance_moved;
}

static bool check(struct slp_place_of_test at, const char *what, int input, int64_t i, double got, double expected,
                  double allowed)
{
	if (fabs(got - expected) <= allowed) return slp_check(true, "op", 0, "gradient");
	slp_case_fail(at, "%s %d element %lld is %.9g, finite differences say %.9g", what, input, (long long)i, got,
	              expected);
	return false;
}

/* Some elements of an input, all if they are few.  Stops at the first wrong one. */
static void check_input(struct slp_place_of_test at, const struct slp_operands *o, const struct slp_operands *g,
                        int input)
{
	int64_t n = slp_size(&o->in[input]);
	double affordable = work / slp_operands_cost(o);
	int64_t most = affordable > MOST_ELEMENTS ? MOST_ELEMENTS : affordable < 2 ? 2 : (int64_t)affordable;
	double rms = slp_rms(&g->in[input]), rounding = n ? noise(at, o, step) : 0;
	for (int64_t k = 0; k < n && k < most; k++) {
		int64_t i = n <= most ? k : (int64_t)(slp_case_random(at.c, STREAM_ELEMENT, k) * (double)n);
		double h = distance(((double *)o->in[input].ptr)[i]), expected = change(at, o, input, i) / (2 * h);
		if (!check(at, "the gradient by input", input, i, ((double *)g->in[input].ptr)[i], expected,
		           tolerance * fmax(rms, fabs(expected)) + rounding))
			break;
	}
}

static void check_direction(struct slp_place_of_test at, const struct slp_operands *o, const struct slp_operands *g)
{
	double got = 0, scale = 0;
	for (int k = 0; k < o->nin; k++)
		for (int64_t i = 0; has_gradient(o, k) && i < slp_size(&o->in[k]); i++) {
			double d = ((double *)g->in[k].ptr)[i] * direction(at, k, i);
			got += d;
			scale += fabs(d);
		}
	check(at, "the gradient in a direction, from", 0, 0, got, change(at, o, -1, 0) / (2 * step),
	      tolerance * scale + noise(at, o, step));
}

void slp_case_gradient(struct slp_place_of_test at, sl_device device, const struct slp_operands *o)
{
	bool any = false;
	for (int i = 0; i < o->nin; i++) any |= has_gradient(o, i);
	if (!any || !o->op->grad || o->op->grad == slp_constant || at.c->no_grad || !o->nout ||
	    o->out[0].type.dtype != SL_FLOAT64)
		return;
	at.how = "going back";
	struct slp_operands g = slp_operands_copy(o);
	enum sl_status s = SL_OK;
	SL_SCOPE
		s = go_back(at, device, o, &g);
	if (s == SL_OK) {
		for (int i = 0; i < o->nin; i++)
			if (has_gradient(o, i)) check_input(at, o, &g, i);
		check_direction(at, o, &g);
	} else slp_case_fail(at, "%s: %s", sl_status_name(s), sl_error_message());
	sl_error_clear();
	slp_operands_free(&g);
}
