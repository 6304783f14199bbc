/* Common parts of all optimisers: they process a whole list of parameters in one operation, since most parameters are
 * too small to be worth one each, and clip gradients. */
#include "op.h"
#include "optim.h"
#include "options.h"
#include "starling/autograd.h"

#include <stdlib.h>
#include <string.h>

#include "loss/softmax_rows.h"

/* ---- rules ------------------------------------------------------------------------------------------------------ */

enum sl_status slp_optim_figure(struct slp_infer *c, const char *name, double value)
{
	if (value >= 0 && isfinite(value)) return SL_OK;
	return slp_reject(c, SL_EINVAL, "%s is %g; a finite number needed, not below 0", name, value);
}

/* Of gradients: 0 by default, which is none. */
static enum sl_status check_limit(struct slp_infer *c, const char *name, double value)
{
	if (value == 0 && slp_was_given(value))
		return slp_reject(c, SL_EINVAL, "%s is 0, which leaves nothing of gradients; leave it out for no limit",
		                  name);
	return slp_optim_figure(c, name, value);
}

static enum sl_status check_attrs(struct slp_infer *c)
{
	struct slp_optim_attrs *a = c->attrs;
	a->rescale = slp_or(a->rescale, 1);
	if (!isfinite(a->rescale)) return slp_reject(c, SL_EINVAL, "rescale is %g, a finite number needed", a->rescale);
	enum sl_status s = slp_optim_figure(c, "lr", a->lr);
	if (s == SL_OK) s = slp_optim_figure(c, "weight_decay", a->weight_decay);
	if (s == SL_OK) s = slp_optim_figure(c, "lr_scale", a->lr_scale);
	if (s == SL_OK) s = check_limit(c, "clip_norm", a->clip_norm);
	return s == SL_OK ? check_limit(c, "clip_value", a->clip_value) : s;
}

/* Word j of the inputs' names. */
static int name_of(const struct sl_op *op, int j, const char **name)
{
	for (*name = op->args; j > 0; j--) *name += strcspn(*name, " ") + 1;
	return (int)strcspn(*name, " ");
}

enum sl_status slp_optim_infer(struct slp_infer *c)
{
	int period = c->op->period;
	char a[128], b[128];
	if (c->nin % period) return slp_reject(c, SL_EINVAL, "%d tensors; they come by %d", c->nin, period);
	for (int i = 0; i < c->nin; i++) {
		const struct slp_type *w = &c->in[i - i % period], *t = &c->in[i];
		const char *what;
		int length = name_of(c->op, i % period, &what);
		if (!slp_is_float(t->dtype) || t->dtype != c->in[0].dtype)
			return slp_reject(c, SL_EDTYPE,
			                  "parameter %d: %s, the first %s; all must be float32 or all float64",
			                  i / period, sl_dtype_name(t->dtype), sl_dtype_name(c->in[0].dtype));
		if (!sl_shape_equal(w->shape, t->shape))
			return slp_reject(c, SL_ESHAPE, "parameter %d is %s, its %.*s %s", i / period,
			                  sl_shape_string(w->shape, a), length, what, sl_shape_string(t->shape, b));
	}
	return check_attrs(c);
}

static bool by_norm(const void *attrs)
{
	return ((const struct slp_optim_attrs *)attrs)->clip_norm > 0;
}

static double elements(const struct slp_infer *c)
{
	double n = 0;
	for (int i = 0; i < c->nin; i += c->op->period) n += (double)sl_shape_size(c->in[i].shape);
	return n;
}

double slp_optim_flops(const struct slp_infer *c)
{
	return 2.0 * c->op->period * elements(c);
}

/* All are read, all but the gradients written. */
double slp_optim_bytes(const struct slp_infer *c)
{
	double passes = 2.0 * c->op->period - 1 + (by_norm(c->attrs) ? 1 : 0);
	return passes * elements(c) * (double)sl_dtype_size(c->in[0].dtype);
}

/* The sum of squares, and its parts: one for each block of a GPU; a CPU needs fewer. */
size_t slp_optim_scratch(const struct slp_infer *c)
{
	const int64_t chunk = SLP_OPTIM_CHUNK;
	int64_t parts = 2;
	if (!by_norm(c->attrs)) return 0;
	for (int i = 0; i < c->nin; i += c->op->period) parts += (sl_shape_size(c->in[i].shape) + chunk - 1) / chunk;
	return (size_t)parts * sizeof(double);
}

/* The index of a gradient among the tensors of a parameter: after the parameter, if that is present. */
static int gradient_of(const struct sl_op *op)
{
	return op->period > 1;
}

/* ---- reference -------------------------------------------------------------------------------------------------- */

double slp_optim_ref_scale(const struct slp_kernel *k)
{
	double squares = 0;
	for (int p = gradient_of(k->op); p < k->nin; p += k->op->period)
		for (int64_t i = 0; i < slp_size(&k->in[p]); i++) squares += slp_optim_square(slp_get(&k->in[p], i));
	return slp_optim_scale(k->attrs, squares);
}

enum sl_status slp_optim_ref(const struct slp_kernel *k, slp_optim_one *one)
{
	int period = k->op->period;
	double scale = slp_optim_ref_scale(k), limit = slp_optim_limit(k->attrs);
	for (const struct slp_view *w = k->in; w < k->in + k->nin; w += period)
		for (int64_t i = 0; i < slp_size(w); i++) {
			double t[SLP_OPTIM_TENSORS] = {0};
			for (int j = 0; j < period; j++) t[j] = slp_get(w + j, i);
			t[1] *= scale;
			if (fabs(t[1]) > limit) t[1] = copysign(limit, t[1]);
			one(k->attrs, t);
			for (int j = 0; j < period; j++)
				if (j != 1) slp_set(w + j, i, t[j]);
		}
	return SL_OK;
}

/* ---- CPU -------------------------------------------------------------------------------------------------------- */

/* All parameters, cut into blocks, are one range for the team: large ones are shared, small ones cost little. */
enum { BLOCK = 64, GROUP = SLP_GRAIN / BLOCK };

static int64_t blocks(const struct slp_view *w)
{
	return (slp_size(w) + BLOCK - 1) / BLOCK;
}

struct job {
	const struct slp_kernel *k;
	slp_optim_step *step;
	const void *rule;
	struct slp_optim_clip clip;
	double *squares; /* of each group of blocks */
};

/* Calls `piece` for the elements of blocks [begin, end) of the list, a parameter at a time. */
static void walk(const struct job *j, int64_t begin, int64_t end,
                 void (*piece)(const struct job *j, float *const t[], int64_t n, double *sum), double *sum)
{
	const struct slp_kernel *k = j->k;
	int period = k->op->period;
	int64_t first = 0;
	for (const struct slp_view *w = k->in; w < k->in + k->nin && first < end; w += period) {
		int64_t from = begin > first ? (begin - first) * BLOCK : 0, to = (end - first) * BLOCK, n = slp_size(w);
		first += blocks(w);
		if (to > n) to = n;
		if (from >= to) continue;
		float *t[SLP_OPTIM_TENSORS];
		for (int i = 0; i < period; i++) t[i] = (float *)w[i].ptr + from;
		piece(j, t, to - from, sum);
	}
}

static SLP_CLONES void add_squares(const struct job *j, float *const t[], int64_t n, double *sum)
{
	const float *g = t[gradient_of(j->k->op)];
	double all;
	SLP_ROW_SUM(all, n, (double)g[i] * g[i]);
	*sum += all;
}

static void square_groups(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	for (int64_t b = begin; b < end; b += GROUP) {
		j->squares[b / GROUP] = 0;
		walk(j, b, end - b < GROUP ? end : b + GROUP, add_squares, &j->squares[b / GROUP]);
	}
}

static void make_step(const struct job *j, float *const t[], int64_t n, double *sum)
{
	(void)sum;
	j->step(j->rule, &j->clip, t, n);
}

static void step_blocks(void *arg, int64_t begin, int64_t end)
{
	walk(arg, begin, end, make_step, NULL);
}

static int64_t all_blocks(const struct slp_kernel *k)
{
	int64_t all = 0;
	for (int i = 0; i < k->nin; i += k->op->period) all += blocks(&k->in[i]);
	return all;
}

double slp_optim_cpu_scale(const struct slp_kernel *k)
{
	struct job j = {.k = k, .squares = k->scratch};
	int64_t all = all_blocks(k);
	double squares = 0;
	if (by_norm(k->attrs)) {
		slp_parallel_for(all, GROUP, square_groups, &j);
		for (int64_t b = 0; b < all; b += GROUP) squares += j.squares[b / GROUP];
	}
	return slp_optim_scale(k->attrs, squares);
}

enum sl_status slp_optim_cpu(const struct slp_kernel *k, slp_optim_step *step, const void *rule)
{
	struct job j = {.k = k, .step = step, .rule = rule};
	j.clip.scale = (float)slp_optim_cpu_scale(k);
	j.clip.limit = (float)slp_optim_limit(k->attrs);
	slp_parallel_for(all_blocks(k), GROUP, step_blocks, &j);
	return SL_OK;
}

/* ---- public ----------------------------------------------------------------------------------------------------- */

static enum sl_status check(const struct slp_optim_call *u)
{
	enum sl_status bad = SL_EINVAL;
	if (u->count < 0) return slp_call_fail(u->at, u->function, bad, "a negative number of parameters"), bad;
	for (int j = 0; j < u->op->period; j++) {
		if (!u->of[j] && u->count > 0)
			return slp_call_fail(u->at, u->function, bad, "%s is NULL", u->names[j]), bad;
		for (int i = 0; i < u->count; i++)
			if (!u->of[j][i])
				return slp_call_fail(u->at, u->function, bad, "%s[%d] is NULL", u->names[j], i), bad;
	}
	return SL_OK;
}

/* The number of parameters from `first` on that are on one device; all, if their common norm is needed. */
static int same_device(const struct slp_optim_call *u, int first)
{
	sl_device device = sl_tensor_device(u->of[0][first]);
	int n = 1;
	if (by_norm(u->attrs)) return u->count - first;
	while (first + n < u->count && sl_device_equal(sl_tensor_device(u->of[0][first + n]), device)) n++;
	return n;
}

static enum sl_status update(const struct slp_optim_call *u)
{
	int period = u->op->period, all = u->count * period;
	sl_tensor **in = slp_malloc((size_t)all * sizeof *in);
	enum sl_status status = SL_OK;
	if (!in) return slp_call_fail(u->at, u->function, SL_ENOMEM, "%d parameters", u->count), SL_ENOMEM;
	for (int i = 0; i < all; i++) in[i] = u->of[i % period][i / period];
	for (int i = 0, n; i < u->count && !status; i += n) {
		n = same_device(u, i);
		status = slp_apply(u->at, u->op, u->attrs, n * period, in + i * period, sl_auto(), NULL);
	}
	free(in);
	return status;
}

/* Records no gradient. */
enum sl_status slp_optim_update(const struct slp_optim_call *u)
{
	sl_mode mode = {false, false, 0};
	enum sl_status status = check(u);
	if (status || u->count == 0) return status;
	sl_mode_enter(&mode, 0, -1);
	status = update(u);
	sl_mode_leave(&mode);
	return status;
}
