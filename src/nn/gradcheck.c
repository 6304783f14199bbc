/* Gradients against central differences in float64: A. Griewank, A. Walther, "Evaluating Derivatives", SIAM 2008. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/autograd.h"
#include "nn/nn.h"
#include "number.h"
#include "op.h"
#include "options.h"
#include "starling/nn.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/primitives.h"

/* A tensor by whose elements is differentiated: an input, or a parameter. */
struct place {
	sl_param *param; /* NULL: an input */
	int input;
	sl_shape shape;
	int64_t count;
	double *values, *gradient; /* gradient: behind the values */
};

struct gradcheck {
	const char *at, *function;
	sl_function *f;
	void *context;
	int nin;
	sl_tensor **in;  /* the arguments of the function */
	sl_block *block; /* that it is about; NULL: about a function */
	sl_param **params;
	int nparams;
	void **statistics; /* of parameters that are not trained: their values before; NULL: trained */
	struct place *places;
	int nplaces;
	sl_tensor *weights; /* of the elements of the result; NULL: not known yet */
	struct sl_rng rng;
	struct sl_gradcheck_opts opts;
	struct sl_gradcheck_worst worst;
};

static bool fail(const struct gradcheck *c, enum sl_status s, const char *text)
{
	return slp_call_fail(c->at, c->function, s, "%s", text) != NULL;
}

/* Copies values to the host, or from there: without a task or an allocation, which could fail.  The error stays
 * pending. */
static bool copy_host(const struct gradcheck *c, sl_tensor *t, void *data, bool write)
{
	char *p = slp_host_begin(c->at, c->function, t, write);
	if (!p) return false;
	memcpy(write ? p : data, write ? data : p, sl_tensor_bytes(t));
	slp_host_end(t);
	return true;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

static bool add_place(struct gradcheck *c, sl_param *param, int input, sl_tensor *t)
{
	struct place p = {.param = param, .input = input, .shape = sl_tensor_shape(t), .count = sl_tensor_size(t)};
	p.values = slp_calloc(2 * (size_t)p.count + 1, sizeof *p.values);
	if (!p.values) return fail(c, SL_ENOMEM, "no memory for the values");
	p.gradient = p.values + p.count;
	c->places[c->nplaces++] = p;
	return copy_host(c, t, p.values, false);
}

/* Inputs of float types become leaves in float64; others are unchanged. */
static bool add_input(struct gradcheck *c, int i, sl_tensor *x)
{
	if (!slp_tensor_usable(c->at, c->function, x)) return false;
	c->in[i] = x;
	if (!slp_is_float(sl_tensor_dtype(x))) return true;
	c->in[i] = x = sl_tensor_dtype(x) == SL_FLOAT64 ? sl_clone_at(c->at, x) : sl_cast_at(c->at, x, SL_FLOAT64);
	if (!x || sl_attach_grad_at(c->at, x, (struct sl_attach_opts){SL_GRAD_WRITE}) != SL_OK) return false;
	return add_place(c, NULL, i, x);
}

static bool add_param(struct gradcheck *c, sl_param *p)
{
	if (!p->data || slp_param_is_frozen(p)) return true;
	p->data->var->fresh = false;
	return add_place(c, p, -1, p->data);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* The differentiated scalar: the sum of the result's elements, weighted so that they do not cancel out. */
static bool make_weights(struct gradcheck *c, const sl_tensor *y)
{
	int64_t n = sl_tensor_size(y);
	double *w = slp_malloc(((size_t)n + 1) * sizeof *w);
	if (!w) return fail(c, SL_ENOMEM, "no memory for the weights");
	for (int64_t i = 0; i < n; i++) w[i] = 1 + 0.5 * cos(1.7 * (double)i);
	c->weights = sl_from_at(c->at, w, sl_tensor_shape(y), (struct sl_make){SL_FLOAT64, sl_tensor_device(y)});
	free(w);
	return c->weights != NULL;
}

/* The function's result; the same random numbers each time. */
static sl_tensor *call(struct gradcheck *c)
{
	sl_rng_set(c->rng);
	sl_tensor *y = c->f(c->context, c->in, c->nin);
	if (!y && sl_error() == SL_OK) fail(c, SL_EINVAL, "the function returned NULL");
	if (!y || sl_tensor_dtype(y) == SL_FLOAT64) return y;
	slp_call_fail(c->at, c->function, SL_EDTYPE,
	              "the result is %s, not float64: it cannot be compared with differences",
	              sl_dtype_name(sl_tensor_dtype(y)));
	return NULL;
}

/* Shapes become known; running statistics are kept. */
static bool settle(struct gradcheck *c)
{
	if (!call(c)) return false;
	for (int i = 0; i < c->nparams; i++) {
		sl_param *p = c->params[i];
		if (!p->opts.no_grad || !p->data) continue;
		c->statistics[i] = slp_malloc(sl_tensor_bytes(p->data) + 1);
		if (!c->statistics[i] || !copy_host(c, p->data, c->statistics[i], false)) return false;
	}
	return true;
}

static bool restore(const struct gradcheck *c)
{
	bool ok = true;
	for (int i = 0; i < c->nparams; i++)
		if (c->statistics[i]) ok = copy_host(c, c->params[i]->data, c->statistics[i], true) && ok;
	return ok;
}

static bool find_gradients(struct gradcheck *c)
{
	sl_tensor *y;
	SL_RECORD
		y = call(c);
	if (!y || !make_weights(c, y)) return false;
	if (sl_backward_heads_at(c->at, &y, 1, (struct sl_backward_opts){.head_grads = &c->weights}) != SL_OK)
		return false;
	for (int i = 0; i < c->nplaces; i++) {
		struct place *p = &c->places[i];
		sl_tensor *t = p->param ? p->param->data : c->in[p->input];
		if (!t->var->fresh) continue; /* the result does not depend on it */
		t->var->fresh = false;
		if (!copy_host(c, sl_grad_at(c->at, t), p->gradient, false)) return false;
	}
	return true;
}

/* Gives a place its values as they are now. */
static bool put(struct gradcheck *c, const struct place *p)
{
	if (p->param) return copy_host(c, p->param->data, p->values, true);
	sl_tensor *t = sl_from_at(c->at, p->values, p->shape, (struct sl_make){.dtype = SL_FLOAT64});
	return t && (c->in[p->input] = t);
}

/* In training mode, as the recorded call, but not recorded. */
static bool value(struct gradcheck *c, const struct place *p, int64_t element, double x, double *result)
{
	double before = p->values[element];
	sl_tensor *outer = p->param ? NULL : c->in[p->input];
	bool ok = false;
	sl_mode mode;
	sl_mode_enter(&mode, 0, 1);
	p->values[element] = x;
	SL_SCOPE {
		sl_tensor *y = put(c, p) ? call(c) : NULL;
		sl_tensor *sum =
		        y ? sl_sum_at(c->at, sl_mul_at(c->at, y, c->weights), (struct sl_reduce_opts){0}) : NULL;
		ok = sum && copy_host(c, sum, result, false);
	}
	p->values[element] = before;
	if (outer) c->in[p->input] = outer;
	sl_mode_leave(&mode);
	return ok;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static bool compare(struct gradcheck *c, const struct place *p, int64_t element)
{
	double x = p->values[element], h = c->opts.step * fmax(fabs(x), 1), above, below;
	if (!value(c, p, element, x + h, &above) || !value(c, p, element, x - h, &below)) return false;
	double difference = (above - below) / ((x + h) - (x - h)), gradient = p->gradient[element];
	double error = fabs(gradient - difference) / fmax(1, fmax(fabs(gradient), fabs(difference)));
	if (error <= c->worst.error) return true; /* NaN is worse than all */
	c->worst = (struct sl_gradcheck_worst){.input = p->input,
	                                       .param = p->param,
	                                       .element = element,
	                                       .gradient = gradient,
	                                       .difference = difference,
	                                       .error = isnan(error) ? INFINITY : error};
	return true;
}

static bool compare_all(struct gradcheck *c, const struct place *p)
{
	int64_t most = c->opts.elements, n = most > 0 && most < p->count ? most : p->count;
	bool ok = true;
	for (int64_t k = 0; ok && k < n; k++) ok = compare(c, p, k * p->count / n);
	return (!p->param || put(c, p)) && ok;
}

static bool judge(const struct gradcheck *c)
{
	const struct sl_gradcheck_worst *w = &c->worst;
	char input[32], text[3][32];
	if (w->error <= c->opts.tolerance) return true;
	snprintf(input, sizeof input, "input %d", w->input);
	slp_call_fail(c->at, c->function, SL_EINVAL,
	              "element %lld of %s: sl_backward gives %s, central differences %s (error %s)",
	              (long long)w->element, w->param ? sl_param_name(w->param) : input,
	              slp_number_text(w->gradient, false, text[0]), slp_number_text(w->difference, false, text[1]),
	              slp_number_text(w->error, false, text[2]));
	return false;
}

static bool check(struct gradcheck *c, sl_tensor *const *in)
{
	bool ok = true;
	for (int i = 0; ok && i < c->nin; i++) ok = add_input(c, i, in[i]);
	ok = ok && (!c->block || settle(c));
	for (int i = 0; ok && i < c->nparams; i++) ok = add_param(c, c->params[i]);
	ok = ok && find_gradients(c);
	for (int i = 0; ok && i < c->nplaces; i++) ok = compare_all(c, &c->places[i]);
	return restore(c) && ok && judge(c);
}

static enum sl_status run(struct gradcheck *c, sl_tensor *const *in)
{
	if (!SLP_OPTIONS(sl_gradcheck_opts, c->at, c->function, &c->opts)) return SL_EINVAL;
	if (!in || c->nin < 1) return fail(c, SL_EINVAL, "there are no inputs"), SL_EINVAL;
	if (!(c->opts.step > 0 && isfinite(c->opts.step)) || !(c->opts.tolerance >= 0) || c->opts.elements < 0)
		return fail(c, SL_EINVAL, ".step must be positive, .tolerance and .elements not negative"), SL_EINVAL;
	c->rng = sl_rng_get();
	c->in = slp_calloc((size_t)c->nin, sizeof *c->in);
	c->places = slp_calloc((size_t)(c->nin + c->nparams), sizeof *c->places);
	c->statistics = slp_calloc((size_t)c->nparams + 1, sizeof *c->statistics);
	bool ok = c->in && c->places && c->statistics;
	if (!ok) fail(c, SL_ENOMEM, "no memory");
	SL_PAUSE
		SL_SCOPE
			ok = ok && check(c, in);
	sl_rng_set(c->rng);
	for (int i = 0; i < c->nplaces; i++) free(c->places[i].values);
	for (int i = 0; c->statistics && i < c->nparams; i++) free(c->statistics[i]);
	free(c->places);
	free(c->in);
	free(c->statistics);
	if (c->opts.worst) *c->opts.worst = c->worst;
	return ok ? SL_OK : sl_error();
}

/* Compares the gradients of a function, computed by sl_backward, with central differences in float64, element by
 * element: the gradients of a weighted sum of the result's elements with respect to all floating-point inputs.  The
 * function is called with float64 copies of the inputs, in training mode, twice for each element, with the same random
 * numbers each time; it must keep no state between calls.  SL_EINVAL: the error of a gradient exceeds .tolerance, and
 * the message names the input and element; .worst is set in either case.  SL_EDTYPE: the result is not float64;
 * otherwise the errors of the function.  Differences across a kink of the function are wrong.
 *
 *     static sl_tensor *f(void *context, sl_tensor *const *in, int nin) { return sl_mul(sl_tanh(in[0]), in[1]); }
 *     ...
 *     sl_tensor *in[] = {sl_normal(SL_SHAPE(3, 4), 0, 1), sl_normal(SL_SHAPE(4), 0, 1)};
 *     if (sl_gradcheck(f, NULL, in, 2) != SL_OK) fprintf(stderr, "%s\n", sl_error_message()); */
enum sl_status sl_gradcheck_at(const char *at, sl_function *function, void *context, sl_tensor *const *in, int nin,
                               struct sl_gradcheck_opts opts)
{
	SLP_CALL("sl_gradcheck", at);
	struct gradcheck c = {
	        .at = at, .function = "sl_gradcheck", .f = function, .context = context, .nin = nin, .opts = opts};
	if (!function) return fail(&c, SL_EINVAL, "the function is NULL"), SL_EINVAL;
	return run(&c, in);
}

static sl_tensor *forward(void *context, sl_tensor *const *in, int nin)
{
	const struct gradcheck *c = context;
	return sl_forward_at(c->at, c->block, in, nin);
}

/* As sl_gradcheck, for the first result of a block, with respect to its inputs and all trained parameters.  The block
 * must be initialised with .dtype = SL_FLOAT64.  Parameters and running statistics are restored afterwards; gradients
 * are not.  Errors are those of sl_gradcheck and of the forward pass.
 *
 *     sl_initialize(net, .dtype = SL_FLOAT64);
 *     sl_gradcheck_block(net, &x, 1, .elements = 20); */
enum sl_status sl_gradcheck_block_at(const char *at, sl_block *block, sl_tensor *const *in, int nin,
                                     struct sl_gradcheck_opts opts)
{
	SLP_CALL("sl_gradcheck_block", at);
	struct gradcheck c = {.at = at,
	                      .function = "sl_gradcheck_block",
	                      .f = forward,
	                      .context = &c,
	                      .block = block,
	                      .nin = nin,
	                      .opts = opts};
	c.params = slp_block_all_params(at, block, &c.nparams);
	enum sl_status s = c.params ? run(&c, in) : sl_error();
	free(c.params);
	return s;
}
