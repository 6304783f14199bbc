/* MXNet's operators, computed: shapes, indexing, and moving elements. */
#include "mxnet/import_operators.h"
#include "starling/primitives.h"

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

/* MXNet's codes in the attribute of Reshape. */
enum { KEEP = 0, INFER = -1, REST = -2, MERGE = -3, SPLIT = -4 };

struct reshaping {
	struct slp_mx_call *c;
	sl_shape x, y;
	int at; /* axis of x that is next */
	const int64_t *code;
	int ncodes, next;
};

static void push(struct reshaping *r, int64_t dim)
{
	if (r->y.ndim == SL_MAX_NDIM) slp_mx_fail(r->c, SL_EUNSUPPORTED, "makes more than %d axes", SL_MAX_NDIM);
	else r->y.dim[r->y.ndim++] = dim;
}

static int64_t pull(struct reshaping *r)
{
	if (r->at < r->x.ndim) return r->x.dim[r->at++];
	slp_mx_fail(r->c, SL_ESHAPE, "attribute shape refers to axis %d, the input has %d", r->at, r->x.ndim);
	return 1;
}

/* -4 a b: one axis becomes two; one of a and b may be -1. */
static void split_axis(struct reshaping *r)
{
	int64_t n = pull(r);
	if (r->ncodes - r->next < 2) {
		slp_mx_fail(r->c, SL_EFORMAT, "attribute shape ends after -4");
		return;
	}
	int64_t a = r->code[r->next++], b = r->code[r->next++];
	if (a == -1 && b > 0) a = n / b;
	else if (b == -1 && a > 0) b = n / a;
	if (a < 1 || b < 1 || a > n || a * b != n)
		slp_mx_fail(r->c, SL_ESHAPE, "attribute shape cannot split an axis of %lld", (long long)n);
	push(r, a);
	push(r, b);
}

static void apply_code(struct reshaping *r, int64_t code)
{
	switch (code) {
	case KEEP: push(r, pull(r)); break;
	case REST:
		while (r->at < r->x.ndim && !r->c->failed) push(r, pull(r));
		break;
	case MERGE: {
		int64_t a = pull(r);
		push(r, a * pull(r));
		break;
	}
	case SPLIT: split_axis(r); break;
	default:
		if (code < INFER) slp_mx_fail(r->c, SL_EFORMAT, "attribute shape has the code %lld", (long long)code);
		if (r->at < r->x.ndim) r->at++;
		push(r, code);
	}
}

void slp_mx_import_reshape(struct slp_mx_call *c)
{
	int64_t code[SLP_MX_TUPLE];
	int n = slp_mx_tuple(c, "shape", code);
	slp_mx_only(c, "reverse", "False");
	if (n < 0) slp_mx_fail(c, SL_EFORMAT, "has no attribute shape");
	if (!slp_mx_go(c)) return;
	struct reshaping r = {.c = c, .x = slp_mx_known(c, 0), .code = code, .ncodes = n};
	while (r.next < n && !c->failed) apply_code(&r, code[r.next++]);
	if (!c->failed) c->out[0] = sl_reshape_at(c->at, c->in[0], r.y);
}

void slp_mx_import_flatten(struct slp_mx_call *c)
{
	if (slp_mx_go(c)) c->out[0] = sl_flatten_at(c->at, c->in[0]);
}

/* x with one more axis, of size 1. */
static sl_tensor *expand(struct slp_mx_call *c, sl_tensor *x, int64_t axis)
{
	sl_shape s = sl_tensor_shape(x), y = {.ndim = s.ndim + 1};
	if (!slp_shape_known(s) || s.ndim == SL_MAX_NDIM) {
		slp_mx_fail(c, SL_ESHAPE, "the shape is not known, or has no room for another axis");
		return NULL;
	}
	int place = slp_mx_axis(c, axis, y.ndim);
	for (int i = 0; i < y.ndim; i++) y.dim[i] = i < place ? s.dim[i] : i == place ? 1 : s.dim[i - 1];
	return c->failed ? NULL : sl_reshape_at(c->at, x, y);
}

void slp_mx_import_expand_dims(struct slp_mx_call *c)
{
	int64_t axis = slp_mx_need(c, "axis", -SL_MAX_NDIM, SL_MAX_NDIM);
	if (slp_mx_go(c)) c->out[0] = expand(c, c->in[0], axis);
}

static sl_tensor *squeeze(struct slp_mx_call *c, sl_tensor *x, const int64_t *axes, int naxes)
{
	sl_shape s = sl_tensor_shape(x), y = {0};
	bool gone[SL_MAX_NDIM] = {false};
	if (!slp_shape_known(s)) slp_mx_fail(c, SL_ESHAPE, "the shape of the input must be known");
	for (int i = 0; i < naxes && !c->failed; i++) gone[slp_mx_axis(c, axes[i], s.ndim)] = true;
	for (int i = 0; i < s.ndim && !c->failed; i++) {
		if (naxes < 0 ? s.dim[i] == 1 : gone[i]) {
			if (s.dim[i] != 1) slp_mx_fail(c, SL_ESHAPE, "axis %d has size %lld", i, (long long)s.dim[i]);
			continue;
		}
		y.dim[y.ndim++] = s.dim[i];
	}
	return c->failed ? NULL : sl_reshape_at(c->at, x, y);
}

void slp_mx_import_squeeze(struct slp_mx_call *c)
{
	int64_t axes[SLP_MX_TUPLE];
	int n = slp_mx_tuple(c, "axis", axes);
	if (slp_mx_go(c)) c->out[0] = squeeze(c, c->in[0], axes, n);
}

/* ---- axes -------------------------------------------------------------------------------------------------------- */

void slp_mx_import_transpose(struct slp_mx_call *c)
{
	int64_t t[SLP_MX_TUPLE];
	int n = slp_mx_tuple(c, "axes", t), axes[SLP_MX_TUPLE];
	for (int i = 0; i < n; i++) axes[i] = (int)t[i];
	if (n > SL_MAX_NDIM) slp_mx_fail(c, SL_EUNSUPPORTED, "has %d axes", n);
	if (slp_mx_go(c))
		c->out[0] = sl_transpose_at(c->at, c->in[0], (struct sl_reduce_opts){axes, n > 0 ? n : 0, false});
}

void slp_mx_import_swap_axes(struct slp_mx_call *c)
{
	int64_t a = slp_mx_int(c, "dim1", 0), b = slp_mx_int(c, "dim2", 0);
	if (!slp_mx_go(c)) return;
	int axes[SL_MAX_NDIM], n = slp_mx_known(c, 0).ndim;
	int i = slp_mx_axis(c, a, n), k = slp_mx_axis(c, b, n);
	if (c->failed) return;
	for (int j = 0; j < n; j++) axes[j] = j == i ? k : j == k ? i : j;
	c->out[0] = sl_transpose_at(c->at, c->in[0], (struct sl_reduce_opts){axes, n, false});
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static sl_tensor *part(struct slp_mx_call *c, sl_tensor *x, int axis, int64_t begin, int64_t end, int64_t step)
{
	if (step == SLP_MX_NONE || step == 0) step = 1;
	if (begin == SLP_MX_NONE) begin = step > 0 ? 0 : INT64_MAX;
	if (end == SLP_MX_NONE) end = step > 0 ? INT64_MAX : INT64_MIN;
	return sl_slice_at(c->at, x, axis, begin, end, step);
}

void slp_mx_import_slice_axis(struct slp_mx_call *c)
{
	int64_t axis = slp_mx_need(c, "axis", -SL_MAX_NDIM, SL_MAX_NDIM), begin = slp_mx_int(c, "begin", 0);
	int64_t end = slp_mx_int(c, "end", SLP_MX_NONE);
	if (slp_mx_go(c)) c->out[0] = part(c, c->in[0], (int)axis, begin, end, 1);
}

void slp_mx_import_slice(struct slp_mx_call *c)
{
	int64_t begin[SLP_MX_TUPLE], end[SLP_MX_TUPLE], step[SLP_MX_TUPLE];
	int n = slp_mx_tuple(c, "begin", begin), m = slp_mx_tuple(c, "end", end), k = slp_mx_tuple(c, "step", step);
	if (n < 1 || m != n || (k > 0 && k != n))
		slp_mx_fail(c, SL_EFORMAT, "attributes begin, end and step have different lengths");
	if (!slp_mx_go(c)) return;
	c->out[0] = c->in[0];
	for (int i = 0; i < n && c->out[0]; i++) {
		if (begin[i] == SLP_MX_NONE && end[i] == SLP_MX_NONE && k <= 0) continue;
		c->out[0] = part(c, c->out[0], i, begin[i], end[i], k > 0 ? step[i] : 1);
	}
}

void slp_mx_import_split(struct slp_mx_call *c)
{
	int64_t count = slp_mx_need(c, "num_outputs", 1, INT32_MAX), axis = slp_mx_int(c, "axis", 1);
	bool squeezed = slp_mx_bool(c, "squeeze_axis", false);
	if (!c->failed && c->node->nout > count)
		slp_mx_fail(c, SL_EFORMAT, "has %lld outputs, more are used", (long long)count);
	if (!slp_mx_go(c)) return;
	sl_shape x = slp_mx_known(c, 0);
	int a = slp_mx_axis(c, axis, x.ndim);
	if (!c->failed && x.dim[a] % count)
		slp_mx_fail(c, SL_ESHAPE, "cannot split an axis of %lld into %lld", (long long)x.dim[a],
		            (long long)count);
	for (int i = 0; i < c->node->nout && !c->failed; i++) {
		int64_t size = x.dim[a] / count;
		c->out[i] = sl_slice_at(c->at, c->in[0], a, i * size, (i + 1) * size, 1);
		if (squeezed) c->out[i] = squeeze(c, c->out[i], &(int64_t){a}, 1);
	}
}

/* ---- together ---------------------------------------------------------------------------------------------------- */

static void check_count(struct slp_mx_call *c)
{
	if (slp_mx_int(c, "num_args", c->nin) != c->nin)
		slp_mx_fail(c, SL_EFORMAT, "has %d inputs, but attribute num_args differs", c->nin);
}

void slp_mx_import_concat(struct slp_mx_call *c)
{
	int64_t dim = slp_mx_int(c, "dim", 1);
	check_count(c);
	if (slp_mx_go(c)) c->out[0] = sl_concat_at(c->at, c->in, c->nin, (int)dim);
}

void slp_mx_import_stack(struct slp_mx_call *c)
{
	enum { MOST = 256 };
	int64_t axis = slp_mx_int(c, "axis", 0);
	sl_tensor *parts[MOST];
	check_count(c);
	if (c->nin > MOST) slp_mx_fail(c, SL_EUNSUPPORTED, "has more than %d inputs", MOST);
	if (!slp_mx_go(c)) return;
	for (int i = 0; i < c->nin; i++) parts[i] = expand(c, c->in[i], axis);
	if (!c->failed) c->out[0] = sl_concat_at(c->at, parts, c->nin, (int)axis);
}

/* ---- larger ------------------------------------------------------------------------------------------------------ */

void slp_mx_import_broadcast_to(struct slp_mx_call *c)
{
	int64_t dims[SLP_MX_TUPLE];
	int n = slp_mx_tuple(c, "shape", dims);
	if (n < 0 || n > SL_MAX_NDIM)
		slp_mx_fail(c, SL_EFORMAT, "has no attribute shape, or one with more than 8 axes");
	if (!slp_mx_go(c)) return;
	sl_shape x = slp_mx_known(c, 0), y = {.ndim = n};
	for (int i = 0; i < n; i++) y.dim[i] = dims[i] == 0 && i < x.ndim ? x.dim[i] : dims[i];
	if (!c->failed) c->out[0] = sl_broadcast_to_at(c->at, c->in[0], y);
}

void slp_mx_import_broadcast_like(struct slp_mx_call *c)
{
	slp_mx_only(c, "lhs_axes", "None");
	slp_mx_only(c, "rhs_axes", "None");
	if (!slp_mx_go(c)) return;
	sl_shape y = slp_mx_known(c, 1);
	if (!c->failed) c->out[0] = sl_broadcast_to_at(c->at, c->in[0], y);
}
