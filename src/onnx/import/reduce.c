/* ONNX operators, computed: matrix products, reductions, cumulative sums, sorting. */
#include <math.h>
#include <stdlib.h>

#include "onnx/model/call.h"
#include "op.h"
#include "op_inner.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/functions.h"
#include "whole.h"

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* A vector as a matrix of one row, or one column, which the result loses again. */
static sl_tensor *vector_product(struct slp_onnx_call *c, sl_tensor *a, sl_tensor *b)
{
	sl_shape x = sl_tensor_shape(a), y = sl_tensor_shape(b), out = {0};
	if (x.ndim == 1 && y.ndim <= 2) return sl_dot_at(c->at, a, b, (struct sl_dot_opts){0});
	if (x.ndim == 1) a = sl_reshape_at(c->at, a, SL_SHAPE(1, x.dim[0]));
	if (y.ndim == 1) b = sl_reshape_at(c->at, b, SL_SHAPE(y.dim[0], 1));
	sl_tensor *p = sl_matmul_at(c->at, a, b, (struct sl_dot_opts){0});
	if (!p) return NULL;
	sl_shape s = sl_tensor_shape(p);
	for (int i = 0; i < s.ndim; i++)
		if (!(x.ndim == 1 && i == s.ndim - 2) && !(y.ndim == 1 && i == s.ndim - 1))
			out.dim[out.ndim++] = s.dim[i];
	return sl_reshape_at(c->at, p, out);
}

static sl_tensor *product(struct slp_onnx_call *c, sl_tensor *a, sl_tensor *b)
{
	sl_shape x = sl_tensor_shape(a), y = sl_tensor_shape(b);
	if (!slp_shape_known(x) || !slp_shape_known(y) || !x.ndim || !y.ndim) {
		slp_onnx_call_fail(c, SL_ESHAPE, "both inputs need axes, of known sizes");
		return NULL;
	}
	if (x.ndim == 1 || y.ndim == 1) return vector_product(c, a, b);
	if (y.ndim == 2 && slp_is_float(sl_tensor_dtype(a)))
		return sl_linear_at(c->at, a, b, NULL, (struct sl_linear_opts){0});
	return sl_matmul_at(c->at, a, b, (struct sl_dot_opts){0});
}

static sl_tensor *matrix_product(struct slp_onnx_call *c, sl_tensor *a, sl_tensor *b, const void *none)
{
	(void)none;
	return product(c, a, b);
}

void slp_onnx_import_matmul(struct slp_onnx_call *c)
{
	sl_tensor *a = slp_onnx_tensor(c, 0), *b = slp_onnx_tensor(c, 1);
	if (!a || !b) {
		c->failed = true;
		return;
	}
	bool whole = !slp_is_float(sl_tensor_dtype(a));
	slp_onnx_set_output(c, 0, whole ? slp_onnx_whole_product(c, a, b, matrix_product, NULL) : product(c, a, b));
}

static sl_tensor *dot_product(struct slp_onnx_call *c, sl_tensor *a, sl_tensor *b, const void *opts)
{
	return sl_dot_at(c->at, a, b, *(const struct sl_dot_opts *)opts);
}

static void whole_gemm(struct slp_onnx_call *c, sl_tensor *a, sl_tensor *b, struct sl_dot_opts opts)
{
	struct slp_onnx_value y = {.t = slp_onnx_whole_product(c, a, b, dot_product, &opts)};
	if (y.t && slp_onnx_has(c, 2)) y = slp_onnx_binary(c, "Add", y, c->in[2]);
	if (!y.t) c->failed = true; /* and recorded */
	else slp_onnx_set_output_value(c, 0, y);
}

void slp_onnx_import_gemm(struct slp_onnx_call *c)
{
	double alpha = slp_onnx_attr_float(c, "alpha", 1), beta = slp_onnx_attr_float(c, "beta", 1);
	bool ta = slp_onnx_attr_int(c, "transA", 0) != 0, tb = slp_onnx_attr_int(c, "transB", 0) != 0;
	sl_shape w = slp_onnx_shape(c, 1), s = slp_onnx_has(c, 2) ? slp_onnx_shape(c, 2) : SL_SCALAR;
	sl_tensor *a = slp_onnx_tensor(c, 0), *b = slp_onnx_tensor(c, 1), *bias = slp_onnx_tensor(c, 2);
	if (c->failed || !a || !b || slp_onnx_shape(c, 0).ndim != 2 || w.ndim != 2) {
		slp_onnx_call_fail(c, SL_ESHAPE, "takes two matrices");
		return;
	}
	if (!slp_is_float(sl_tensor_dtype(a)) && alpha == 1 && beta == 1) {
		whole_gemm(c, a, b, (struct sl_dot_opts){.ta = ta, .tb = tb});
		return;
	}
	bool fits = bias && s.ndim == 1 && s.dim[0] == w.dim[tb ? 0 : 1];
	if (!ta && alpha == 1 && beta == 1 && (fits || !bias)) {
		slp_onnx_set_output(c, 0, sl_linear_at(c->at, a, b, bias, (struct sl_linear_opts){.tw = tb}));
		return;
	}
	sl_tensor *y = sl_dot_at(c->at, a, b, (struct sl_dot_opts){.ta = ta, .tb = tb});
	if (alpha != 1) y = sl_mul_scalar_at(c->at, y, alpha);
	if (bias && beta != 1) bias = sl_mul_scalar_at(c->at, bias, beta);
	slp_onnx_set_output(c, 0, bias ? sl_add_at(c->at, y, bias) : y);
}

/* ---- reductions -------------------------------------------------------------------------------------------------- */

/* The operations before and after; of two known integers. */
enum { NOTHING, ABSOLUTE, SQUARE, LOG };
static const struct reduction {
	const char *name;
	sl_tensor *(*reduce)(const char *at, sl_tensor *x, struct sl_reduce_opts opts);
	int before, after;
	int64_t (*whole)(int64_t a, int64_t b);
} reductions[] = {
        {"ReduceSum", sl_sum_at, NOTHING, NOTHING, slp_whole_add},
        {"ReduceMean", sl_mean_at, NOTHING, NOTHING, NULL},
        {"ReduceMax", sl_max_at, NOTHING, NOTHING, slp_whole_maximum},
        {"ReduceMin", sl_min_at, NOTHING, NOTHING, slp_whole_minimum},
        {"ReduceProd", sl_prod_at, NOTHING, NOTHING, slp_whole_mul},
        {"ReduceL1", sl_sum_at, ABSOLUTE, NOTHING, NULL},
        {"ReduceL2", sl_norm_at, NOTHING, NOTHING, NULL},
        {"ReduceLogSum", sl_sum_at, NOTHING, LOG, NULL},
        {"ReduceSumSquare", sl_sum_at, SQUARE, NOTHING, NULL},
        {"ReduceLogSumExp", sl_logsumexp_at, NOTHING, NOTHING, NULL},
};

/* The largest, or smallest, of no elements, with which any other would replace it: the type's smallest, or largest. */
static sl_tensor *of_none(struct slp_onnx_call *c, const struct reduction *r, sl_tensor *t, struct sl_reduce_opts o)
{
	enum sl_dtype dtype = sl_tensor_dtype(t);
	bool max = r->reduce == sl_max_at;
	int64_t largest = INT64_MAX; /* which no double is */
	double none = slp_is_float(dtype) ? max ? -INFINITY : INFINITY
	              : dtype == SL_INT64 ? -0x1p63
	              : dtype == SL_INT32 ? max ? INT32_MIN : INT32_MAX
	              : dtype == SL_UINT8 ? max ? 0 : UINT8_MAX
	                                  : !max;
	sl_shape y = sl_tensor_shape(t);
	for (int i = 0; i < o.naxes; i++) y.dim[o.axes[i]] = 1;
	struct sl_make make = {dtype, sl_tensor_device(t)};
	if (dtype != SL_INT64 || max) return sl_full_at(c->at, y, none, make);
	return sl_broadcast_to_at(c->at, sl_from_at(c->at, &largest, SL_SHAPE(1), make), y);
}

/* Truth values have a largest and a smallest alone; means of integers are computed in float64, then cut off. */
static sl_tensor *reduced(struct slp_onnx_call *c, const struct reduction *r, sl_tensor *t, struct sl_reduce_opts o)
{
	enum sl_dtype dtype = t ? sl_tensor_dtype(t) : SL_FLOAT32;
	bool as_float = !slp_is_float(dtype) && !r->whole && r->before == NOTHING;
	if (t && sl_tensor_size(t) == 0 && o.naxes && (r->reduce == sl_max_at || r->reduce == sl_min_at))
		return of_none(c, r, t, o);
	if (dtype == SL_BOOL && o.naxes && (r->reduce == sl_max_at || r->reduce == sl_min_at))
		return (r->reduce == sl_min_at ? sl_all_at : sl_any_at)(c->at, t, o);
	if (as_float) t = sl_cast_at(c->at, t, SL_FLOAT64);
	if (r->before == ABSOLUTE) t = sl_abs_at(c->at, t);
	if (r->before == SQUARE) t = sl_square_at(c->at, t);
	if (o.naxes) t = r->reduce(c->at, t, o);
	if (r->after == LOG) t = sl_log_at(c->at, t);
	return as_float ? sl_cast_at(c->at, t, dtype) : t;
}

/* The removed axes and the remaining shape; false after an error, or if no axis goes. */
static bool axes_of(struct slp_onnx_call *c, sl_shape x, bool gone[SL_MAX_NDIM], sl_shape *y)
{
	int64_t axes[SL_MAX_NDIM];
	int n = slp_onnx_ints_in(c, 1, "axes", axes, SL_MAX_NDIM);
	bool keep = slp_onnx_attr_int(c, "keepdims", 1) != 0;
	if (n <= 0 && slp_onnx_attr_int(c, "noop_with_empty_axes", 0)) return false;
	for (int i = 0; i < x.ndim; i++) gone[i] = n <= 0;
	for (int i = 0; i < n && !c->failed; i++) gone[slp_onnx_axis(c, axes[i], x.ndim)] = true;
	*y = SL_SCALAR;
	for (int i = 0; i < x.ndim; i++)
		if (!gone[i] || keep) y->dim[y->ndim++] = gone[i] ? 1 : x.dim[i];
	return !c->failed;
}

/* Of integers, exactly. */
static void reduce_whole(struct slp_onnx_call *c, const struct reduction *r, const struct slp_onnx_known *k, sl_shape y)
{
	struct slp_onnx_known *to = slp_onnx_known_new(c->made, k->dtype, y);
	for (int64_t i = 0; to && i < sl_shape_size(k->shape); i++)
		to->v[0].i = i ? r->whole(to->v[0].i, k->v[i].i) : k->v[0].i;
	slp_onnx_set_output_value(c, 0, (struct slp_onnx_value){.known = to});
}

/* Sums, products, extremes and means of known values: shapes depend on them. */
static bool reduce_known(struct slp_onnx_call *c, const struct reduction *r, const struct slp_onnx_known *k, sl_shape y)
{
	int64_t n = sl_shape_size(k->shape);
	if (r->before || r->after || sl_shape_size(y) != 1 || n < 1 || r->reduce == sl_norm_at ||
	    r->reduce == sl_logsumexp_at)
		return false;
	if (!slp_is_float(k->dtype) && r->whole) {
		reduce_whole(c, r, k, y);
		return true;
	}
	double v = slp_onnx_known_number(k, 0);
	for (int64_t i = 1; i < n; i++) {
		double x = slp_onnx_known_number(k, i);
		v = r->reduce == sl_prod_at  ? v * x
		    : r->reduce == sl_max_at ? fmax(v, x)
		    : r->reduce == sl_min_at ? fmin(v, x)
		                             : v + x;
	}
	struct slp_onnx_known *to = slp_onnx_known_new(c->made, k->dtype, y);
	if (to) slp_onnx_known_put(to, 0, r->reduce == sl_mean_at ? v / (double)n : v);
	slp_onnx_set_output_value(c, 0, (struct slp_onnx_value){.known = to});
	return true;
}

/* Over no axes: of each element alone, such as its absolute value. */
static void reduce_none(struct slp_onnx_call *c, const struct reduction *r, sl_shape x)
{
	bool itself = r->reduce != sl_norm_at && !r->before && !r->after;
	sl_shape wide = x;
	int last = x.ndim;
	if (itself || x.ndim == SL_MAX_NDIM) {
		slp_onnx_set_output_value(c, 0, c->in[0]);
		return;
	}
	wide.dim[wide.ndim++] = 1;
	sl_tensor *t = slp_onnx_tensor(c, 0);
	t = t ? sl_reshape_at(c->at, t, wide) : NULL;
	if (t) t = reduced(c, r, t, (struct sl_reduce_opts){.axes = &last, .naxes = 1, .keepdims = true});
	slp_onnx_set_output(c, 0, t ? sl_reshape_at(c->at, t, x) : NULL);
}

void slp_onnx_import_reduce(struct slp_onnx_call *c)
{
	const struct reduction *r = reductions;
	bool gone[SL_MAX_NDIM];
	int axes[SL_MAX_NDIM], n = 0;
	sl_shape x = slp_onnx_shape(c, 0), y;
	while (strcmp(r->name, c->op->name)) r++;
	if (c->failed || !axes_of(c, x, gone, &y)) {
		if (!c->failed) reduce_none(c, r, x);
		return;
	}
	if (c->in[0].known && reduce_known(c, r, c->in[0].known, y)) return;
	for (int i = 0; i < x.ndim; i++)
		if (gone[i]) axes[n++] = i;
	struct sl_reduce_opts o = {.axes = axes, .naxes = n, .keepdims = true};
	sl_tensor *t = reduced(c, r, slp_onnx_tensor(c, 0), o);
	slp_onnx_set_output(c, 0, t ? sl_reshape_at(c->at, t, y) : NULL);
}

/* Reverses the order of the elements: large ones become small.  Applied twice, it gives x. */
static sl_tensor *turned(struct slp_onnx_call *c, sl_tensor *t)
{
	enum sl_dtype dtype = t ? sl_tensor_dtype(t) : SL_FLOAT32;
	if (slp_is_float(dtype)) return sl_neg_at(c->at, t);
	return sl_rsub_scalar_at(c->at, t, dtype == SL_UINT8 ? UINT8_MAX : -1);
}

void slp_onnx_import_argmax(struct slp_onnx_call *c)
{
	bool keep = slp_onnx_attr_int(c, "keepdims", 1) != 0;
	sl_shape x = slp_onnx_shape(c, 0);
	int axis = slp_onnx_axis(c, slp_onnx_attr_int(c, "axis", 0), x.ndim);
	bool last = slp_onnx_attr_int(c, "select_last_index", 0) != 0;
	if (c->failed) return;
	sl_tensor *t = slp_onnx_tensor(c, 0);
	if (c->op->name[3] == 'M' && c->op->name[4] == 'i') t = turned(c, t);
	if (last) t = t ? sl_flip_at(c->at, t, (struct sl_reduce_opts){.axes = &axis, .naxes = 1}) : NULL;
	sl_tensor *y = t ? sl_cast_at(c->at, sl_argmax_at(c->at, t, axis), SL_INT64) : NULL;
	if (last) y = y ? sl_rsub_scalar_at(c->at, y, (double)(x.dim[axis] - 1)) : NULL;
	x.dim[axis] = 1;
	slp_onnx_set_output(c, 0, y && keep ? sl_reshape_at(c->at, y, x) : y);
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

/* The elements one place further on along an axis, this value first. */
static sl_tensor *shifted(struct slp_onnx_call *c, sl_tensor *x, int axis, double first)
{
	int64_t n = x ? sl_tensor_shape(x).dim[axis] : 0;
	sl_tensor *more = n ? sl_pad_at(c->at, x, axis, 1, 0, (struct sl_pad_opts){.value = first}) : NULL;
	return n ? more ? sl_slice_at(c->at, more, axis, 0, n, 1) : NULL : x;
}

void slp_onnx_import_cumsum(struct slp_onnx_call *c)
{
	bool exclusive = slp_onnx_attr_int(c, "exclusive", 0) != 0, reverse = slp_onnx_attr_int(c, "reverse", 0) != 0;
	int axis = slp_onnx_axis(c, (int64_t)slp_onnx_number_in(c, 1, NULL, 0), slp_onnx_shape(c, 0).ndim);
	struct sl_reduce_opts o = {.axes = &axis, .naxes = 1};
	if (c->failed) return;
	sl_tensor *x = slp_onnx_tensor(c, 0);
	if (reverse) x = sl_flip_at(c->at, x, o);
	if (exclusive) x = shifted(c, x, axis, 0);
	bool whole = x && sl_tensor_dtype(x) == SL_INT64;
	sl_tensor *y = whole ? slp_cumsum_modular(c->at, x, axis) : sl_cumsum_at(c->at, x, axis);
	slp_onnx_set_output(c, 0, reverse ? sl_flip_at(c->at, y, o) : y);
}

/* Each element times the one `step` before it, for steps of 1, 2, 4, …: products of all before. */
void slp_onnx_import_cumprod(struct slp_onnx_call *c)
{
	bool exclusive = slp_onnx_attr_int(c, "exclusive", 0) != 0, reverse = slp_onnx_attr_int(c, "reverse", 0) != 0;
	sl_shape s = slp_onnx_shape(c, 0);
	int axis = slp_onnx_axis(c, (int64_t)slp_onnx_number_in(c, 1, NULL, 0), s.ndim);
	if (c->failed) return;
	struct sl_reduce_opts o = {.axes = &axis, .naxes = 1};
	struct sl_pad_opts ones = {.value = 1};
	int64_t n = s.dim[axis];
	sl_tensor *y = slp_onnx_tensor(c, 0);
	if (reverse && y) y = sl_flip_at(c->at, y, o);
	if (exclusive) y = shifted(c, y, axis, 1);
	for (int64_t step = 1; step < n && y; step *= 2) {
		sl_tensor *before = sl_pad_at(c->at, sl_slice_at(c->at, y, axis, 0, n - step, 1), axis, step, 0, ones);
		if (!before) y = NULL;
		else if (sl_tensor_dtype(y) == SL_INT64) y = slp_modular(c->at, y, before, SLP_MODULAR_MUL);
		else y = sl_mul_at(c->at, y, before);
	}
	slp_onnx_set_output(c, 0, reverse && y ? sl_flip_at(c->at, y, o) : y);
}

void slp_onnx_import_topk(struct slp_onnx_call *c)
{
	bool largest = slp_onnx_attr_int(c, "largest", 1) != 0;
	int64_t k = slp_onnx_has(c, 1) ? (int64_t)slp_onnx_number_in(c, 1, NULL, 0) : slp_onnx_attr_int(c, "k", 0);
	int axis = slp_onnx_axis(c, slp_onnx_attr_int(c, "axis", -1), slp_onnx_shape(c, 0).ndim);
	if (c->failed) return;
	sl_tensor *x = slp_onnx_tensor(c, 0), *places = NULL;
	sl_tensor *y = sl_topk_at(c->at, largest ? x : turned(c, x), k, axis, &places);
	slp_onnx_set_output(c, 0, y && !largest ? turned(c, y) : y);
	if (y && c->nout > 1) slp_onnx_set_output(c, 1, sl_cast_at(c->at, places, SL_INT64));
}
