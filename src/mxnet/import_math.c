/* MXNet's operators, computed: arithmetic, reductions, products, creation of tensors. */
#include <float.h>
#include <string.h>

#include "as_index.h"
#include "mxnet/import_operators.h"
#include "op_list/fill.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/primitives.h"

/* ---- operations that are the same on both sides ------------------------------------------------------------------ */

void slp_mx_import_plain(struct slp_mx_call *c)
{
	if (slp_mx_go(c)) c->out[0] = slp_apply1(c->at, c->op->ours, NULL, c->nin, c->in);
}

void slp_mx_import_scalar(struct slp_mx_call *c)
{
	double scalar = slp_mx_double(c, "scalar", 1);
	if (slp_mx_go(c)) c->out[0] = slp_apply1(c->at, c->op->ours, &scalar, 1, c->in);
}

void slp_mx_import_identity(struct slp_mx_call *c)
{
	if (slp_mx_go(c)) c->out[0] = c->in[0];
}

void slp_mx_import_stop_gradient(struct slp_mx_call *c)
{
	if (slp_mx_go(c)) c->out[0] = sl_detach_at(c->at, c->in[0]);
}

/* ---- composed ---------------------------------------------------------------------------------------------------- */

void slp_mx_import_sigmoid(struct slp_mx_call *c)
{
	if (slp_mx_go(c)) c->out[0] = sl_sigmoid_at(c->at, c->in[0]);
}

static sl_tensor *between(struct slp_mx_call *c, sl_tensor *x, double low, double high)
{
	return sl_maximum_scalar_at(c->at, sl_minimum_scalar_at(c->at, x, high), low);
}

void slp_mx_import_clip(struct slp_mx_call *c)
{
	double low = slp_mx_double(c, "a_min", -DBL_MAX), high = slp_mx_double(c, "a_max", DBL_MAX);
	if (slp_mx_go(c)) c->out[0] = between(c, c->in[0], low, high);
}

void slp_mx_import_hard_sigmoid(struct slp_mx_call *c)
{
	double alpha = slp_mx_double(c, "alpha", 0.2), beta = slp_mx_double(c, "beta", 0.5);
	if (!slp_mx_go(c)) return;
	c->out[0] = between(c, sl_add_scalar_at(c->at, sl_mul_scalar_at(c->at, c->in[0], alpha), beta), 0, 1);
}

void slp_mx_import_add_n(struct slp_mx_call *c)
{
	if (slp_mx_int(c, "num_args", c->nin) != c->nin) slp_mx_fail(c, SL_EFORMAT, "attribute num_args is wrong");
	if (!slp_mx_go(c)) return;
	c->out[0] = c->in[0];
	for (int i = 1; i < c->nin; i++) c->out[0] = sl_add_at(c->at, c->out[0], c->in[i]);
}

static void like(struct slp_mx_call *c, double value)
{
	if (slp_mx_go(c)) c->out[0] = slp_apply1(c->at, &slp_op_full_like, &value, 1, c->in);
}

void slp_mx_import_zeros_like(struct slp_mx_call *c)
{
	like(c, 0);
}

void slp_mx_import_ones_like(struct slp_mx_call *c)
{
	like(c, 1);
}

/* ---- products and reductions ------------------------------------------------------------------------------------- */

static struct sl_dot_opts transposes(struct slp_mx_call *c)
{
	return (struct sl_dot_opts){slp_mx_bool(c, "transpose_a", false), slp_mx_bool(c, "transpose_b", false)};
}

void slp_mx_import_dot(struct slp_mx_call *c)
{
	struct sl_dot_opts o = transposes(c);
	if (slp_mx_go(c)) c->out[0] = sl_dot_at(c->at, c->in[0], c->in[1], o);
}

void slp_mx_import_batch_dot(struct slp_mx_call *c)
{
	struct sl_dot_opts o = transposes(c);
	if (slp_mx_go(c)) c->out[0] = sl_matmul_at(c->at, c->in[0], c->in[1], o);
}

/* The axes that the attributes name, or with `exclude` all others. */
static int reduced_axes(struct slp_mx_call *c, const int64_t *t, int n, bool exclude, int axes[SL_MAX_NDIM])
{
	if (n > SL_MAX_NDIM) slp_mx_fail(c, SL_EFORMAT, "attribute axis has %d numbers", n);
	if (c->failed || n <= 0) return 0;
	int ndim = slp_mx_known(c, 0).ndim, count = 0;
	bool named[SL_MAX_NDIM] = {false};
	for (int i = 0; i < n && !c->failed; i++) named[slp_mx_axis(c, t[i], ndim)] = true;
	for (int i = 0; i < ndim; i++)
		if (named[i] != exclude) axes[count++] = i;
	if (!c->failed && !count) slp_mx_fail(c, SL_EUNSUPPORTED, "attribute exclude leaves no axis");
	return count;
}

void slp_mx_import_reduce(struct slp_mx_call *c)
{
	static const struct {
		char name[6];
		sl_tensor *(*reduce)(const char *, sl_tensor *, struct sl_reduce_opts);
	} kinds[] = {
	        {"sum", sl_sum_at}, {"mean", sl_mean_at}, {"max", sl_max_at}, {"min", sl_min_at}, {"norm", sl_norm_at}};
	int64_t t[SLP_MX_TUPLE];
	int axes[SL_MAX_NDIM], n = slp_mx_tuple(c, "axis", t), k = 0;
	bool keep = slp_mx_bool(c, "keepdims", false), exclude = slp_mx_bool(c, "exclude", false);
	slp_mx_only(c, "ord", "2");
	if (!slp_mx_go(c)) return;
	n = reduced_axes(c, t, n, exclude, axes);
	while (k < 4 && strncmp(c->op->name, kinds[k].name, strlen(kinds[k].name))) k++;
	if (!c->failed) c->out[0] = kinds[k].reduce(c->at, c->in[0], (struct sl_reduce_opts){axes, n, keep});
}

void slp_mx_import_argmax(struct slp_mx_call *c)
{
	int64_t axis = slp_mx_int(c, "axis", SLP_MX_NONE);
	bool keep = slp_mx_bool(c, "keepdims", false);
	if (axis == SLP_MX_NONE) slp_mx_fail(c, SL_EUNSUPPORTED, "attribute axis must be given");
	if (!slp_mx_go(c)) return;
	sl_shape x = slp_mx_known(c, 0);
	int a = slp_mx_axis(c, axis, x.ndim);
	if (c->failed) return;
	c->out[0] = sl_cast_at(c->at, sl_argmax_at(c->at, c->in[0], a), sl_tensor_dtype(c->in[0]));
	x.dim[a] = 1;
	if (keep) c->out[0] = sl_reshape_at(c->at, c->out[0], x);
}

/* ---- data types, and tensors out of nothing ---------------------------------------------------------------------- */

static enum sl_dtype dtype_of(struct slp_mx_call *c, const char *otherwise)
{
	const char *name = slp_mx_text(c, "dtype", otherwise);
	if (!strcmp(name, "None")) name = otherwise;
	for (int d = 0; d < SL_DTYPE_COUNT; d++)
		if (!strcmp(sl_dtype_name((enum sl_dtype)d), name)) return (enum sl_dtype)d;
	if (!strcmp(name, "int64")) return SL_INT32;
	slp_mx_fail(c, SL_EUNSUPPORTED, "data type \"%.60s\" is not supported", name);
	return SL_FLOAT32;
}

void slp_mx_import_cast(struct slp_mx_call *c)
{
	enum sl_dtype dtype = dtype_of(c, "float32");
	if (slp_mx_go(c)) c->out[0] = sl_cast_at(c->at, c->in[0], dtype);
}

void slp_mx_import_one_hot(struct slp_mx_call *c)
{
	int64_t depth = slp_mx_need(c, "depth", 1, INT32_MAX);
	double on = slp_mx_double(c, "on_value", 1), off = slp_mx_double(c, "off_value", 0);
	enum sl_dtype dtype = dtype_of(c, "float32");
	if (!slp_mx_go(c)) return;
	sl_tensor *x = slp_numbers_as_index(c->at, c->in[0]);
	x = sl_one_hot_at(c->at, x, depth, SL_MAKE_(.dtype = dtype));
	if (on - off != 1) x = sl_mul_scalar_at(c->at, x, on - off);
	c->out[0] = off == 0 ? x : sl_add_scalar_at(c->at, x, off);
}

static void fill(struct slp_mx_call *c, double value)
{
	int64_t dims[SLP_MX_TUPLE];
	int n = slp_mx_tuple(c, "shape", dims);
	enum sl_dtype dtype = dtype_of(c, "float32");
	sl_shape shape = {.ndim = n};
	if (n < 0 || n > SL_MAX_NDIM)
		slp_mx_fail(c, SL_EFORMAT, "has no attribute shape, or one with more than 8 axes");
	for (int i = 0; i < n && i < SL_MAX_NDIM; i++) shape.dim[i] = dims[i];
	if (slp_mx_go(c)) c->out[0] = sl_full_at(c->at, shape, value, SL_MAKE_(.dtype = dtype));
}

void slp_mx_import_zeros(struct slp_mx_call *c)
{
	fill(c, 0);
}

void slp_mx_import_ones(struct slp_mx_call *c)
{
	fill(c, 1);
}

void slp_mx_import_full(struct slp_mx_call *c)
{
	fill(c, slp_mx_double(c, "value", 0));
}

void slp_mx_import_arange(struct slp_mx_call *c)
{
	double start = slp_mx_double(c, "start", 0), step = slp_mx_double(c, "step", 1);
	bool one = slp_mx_is(c, "stop", "None", "None");
	double stop = one ? start : slp_mx_double(c, "stop", 0);
	enum sl_dtype dtype = dtype_of(c, "float32");
	slp_mx_only(c, "repeat", "1");
	if (slp_mx_go(c)) c->out[0] = sl_arange_at(c->at, one ? 0 : start, stop, step, SL_MAKE_(.dtype = dtype));
}
