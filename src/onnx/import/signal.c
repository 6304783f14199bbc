/* ONNX operators, computed: Fourier transforms, as products with a matrix of cosines and one of sines; windows; mel
 * filters. */
#include <math.h>

#include "onnx/model/call.h"
#include "op.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/functions.h"
#include "starling/primitives.h"

/* ---- transforms of rows ------------------------------------------------------------------------------------------ */

/* Rows of complex numbers, (rows, width); im NULL: real ones. */
struct spectrum {
	sl_tensor *re, *im;
};

struct transform {
	struct slp_onnx_call *c;
	int64_t length, bins; /* of the signal with its padding; of the result */
	bool inverse;
};

/* cos or sin of 2 pi j k / length, (n, bins), as the transform's signals. */
static sl_tensor *waves(const struct transform *t, int64_t n, bool sine, sl_tensor *like)
{
	struct slp_onnx_call *c = t->c;
	enum { MOST = 1 << 25 };
	if (n > MOST / t->bins) slp_onnx_call_fail(c, SL_EUNSUPPORTED, "a transform of more than %d factors", MOST);
	struct slp_onnx_known *k = c->failed ? NULL : slp_onnx_known_new(c->made, SL_FLOAT64, SL_SHAPE(n, t->bins));
	for (int64_t i = 0; k && i < n * t->bins; i++) {
		double turn = (double)(i / t->bins * (i % t->bins) % t->length) / (double)t->length;
		k->v[i].f = (sine ? sin : cos)(2 * M_PI * turn);
	}
	struct slp_onnx_value v = {.known = k};
	if (k) v = slp_onnx_cast(c, v, sl_tensor_dtype(like));
	return slp_onnx_as_tensor(c, v);
}

static sl_tensor *product(const struct transform *t, sl_tensor *rows, sl_tensor *matrix)
{
	return rows && matrix ? sl_dot_at(t->c->at, rows, matrix, (struct sl_dot_opts){0}) : NULL;
}

/* The transform of rows that are cut to its length, or padded by zeros. */
static struct spectrum transformed(const struct transform *t, struct spectrum x)
{
	const char *at = t->c->at;
	struct spectrum y = {NULL, NULL};
	int64_t width = sl_tensor_shape(x.re).dim[1], n = width < t->length ? width : t->length;
	if (n < width) x.re = sl_slice_at(at, x.re, 1, 0, n, 1);
	if (n < width && x.im) x.im = sl_slice_at(at, x.im, 1, 0, n, 1);
	sl_tensor *cosine = x.re ? waves(t, n, false, x.re) : NULL, *sine = cosine ? waves(t, n, true, x.re) : NULL;
	if (sine && !t->inverse) sine = sl_neg_at(at, sine);
	y.re = product(t, x.re, cosine);
	y.im = product(t, x.re, sine);
	if (x.im && y.im) {
		y.re = sl_sub_at(at, y.re, product(t, x.im, sine));
		y.im = sl_add_at(at, y.im, product(t, x.im, cosine));
	}
	if (t->inverse && y.re && y.im) {
		y.re = sl_div_scalar_at(at, y.re, (double)t->length);
		y.im = sl_div_scalar_at(at, y.im, (double)t->length);
	}
	return y;
}

/* The real and imaginary parts of x (…, 1 or 2), as rows of this width. */
static struct spectrum parts_of(struct slp_onnx_call *c, sl_tensor *x, int64_t width)
{
	struct spectrum y = {NULL, NULL};
	sl_shape s = x ? sl_tensor_shape(x) : SL_SCALAR;
	if (!x) return y;
	y.re = sl_reshape_at(c->at, sl_slice_at(c->at, x, s.ndim - 1, 0, 1, 1), SL_SHAPE(-1, width));
	if (s.dim[s.ndim - 1] == 2)
		y.im = sl_reshape_at(c->at, sl_slice_at(c->at, x, s.ndim - 1, 1, 2, 1), SL_SHAPE(-1, width));
	return y;
}

/* Both parts next to each other, in this shape, whose last axis has 2 elements. */
static sl_tensor *paired(struct slp_onnx_call *c, struct spectrum y, sl_shape s)
{
	sl_shape one = s;
	one.dim[s.ndim - 1] = 1;
	if (!y.re || !y.im) return NULL;
	sl_tensor *list[] = {sl_reshape_at(c->at, y.re, one), sl_reshape_at(c->at, y.im, one)};
	return list[0] && list[1] ? sl_concat_at(c->at, list, 2, s.ndim - 1) : NULL;
}

/* ---- DFT --------------------------------------------------------------------------------------------------------- */

static sl_tensor *fitted(struct slp_onnx_call *c, sl_tensor *x, int64_t n)
{
	int64_t width = sl_tensor_shape(x).dim[1];
	return width > n ? sl_slice_at(c->at, x, 1, 0, n, 1)
	                 : sl_pad_at(c->at, x, 1, 0, n - width, (struct sl_pad_opts){0});
}

/* Of half a spectrum, the whole one, of `length` bins: the other half is its mirror image, conjugated. */
static struct spectrum completed(struct slp_onnx_call *c, struct spectrum x, int64_t length)
{
	int64_t half = length / 2 + 1, more = length - half;
	struct sl_reduce_opts last = {SL_AXES(1)};
	sl_tensor **part[] = {&x.re, &x.im};
	x.re = fitted(c, x.re, half);
	x.im = fitted(c, x.im, half);
	for (int i = 0; i < 2 && more > 0 && *part[i]; i++) {
		sl_tensor *mirror = sl_flip_at(c->at, sl_slice_at(c->at, *part[i], 1, 1, 1 + more, 1), last);
		sl_tensor *list[] = {*part[i], i && mirror ? sl_neg_at(c->at, mirror) : mirror};
		*part[i] = list[1] ? sl_concat_at(c->at, list, 2, 1) : NULL;
	}
	return x;
}

static int dft_axis(struct slp_onnx_call *c, sl_shape s)
{
	int64_t axis = c->opset < 20        ? slp_onnx_attr_int(c, "axis", 1)
	               : slp_onnx_has(c, 2) ? (int64_t)slp_onnx_number_in(c, 2, NULL, -2)
	                                    : -2;
	return slp_onnx_axis(c, axis, s.ndim);
}

/* Signals along `axis`, in front of the parts. */
static void dft(struct transform *t, sl_shape s, int axis, bool onesided)
{
	struct slp_onnx_call *c = t->c;
	int last = s.ndim - 1;
	struct slp_onnx_value v =
	        slp_onnx_axis_moved(c, (struct slp_onnx_value){.t = slp_onnx_tensor(c, 0)}, axis, last - 1);
	struct spectrum x = parts_of(c, v.t, s.dim[axis]);
	bool real = t->inverse && onesided;
	if (real && x.re && x.im) x = completed(c, x, t->length);
	if (!x.re || (s.dim[last] == 2 && !x.im)) {
		c->failed = true; /* and recorded */
		return;
	}
	struct spectrum y = transformed(t, x);
	sl_shape out = v.t ? sl_tensor_shape(v.t) : s;
	out.dim[last - 1] = t->bins;
	out.dim[last] = real ? 1 : 2;
	v.t = real ? (y.re ? sl_reshape_at(c->at, y.re, out) : NULL) : paired(c, y, out);
	if (!v.t) c->failed = true; /* and recorded */
	else slp_onnx_set_output_value(c, 0, slp_onnx_axis_moved(c, v, last - 1, axis));
}

void slp_onnx_import_dft(struct slp_onnx_call *c)
{
	sl_shape s = slp_onnx_shape(c, 0);
	bool onesided = slp_onnx_attr_int(c, "onesided", 0) != 0;
	struct transform t = {.c = c, .inverse = slp_onnx_attr_int(c, "inverse", 0) != 0};
	if (!c->failed && (s.ndim < 2 || s.dim[s.ndim - 1] < 1 || s.dim[s.ndim - 1] > 2))
		slp_onnx_call_fail(c, SL_ESHAPE,
		                   "takes real or complex numbers along its last axis, of 1 or 2 elements");
	int axis = c->failed ? 0 : dft_axis(c, s);
	if (!c->failed && axis == s.ndim - 1) slp_onnx_call_fail(c, SL_ESHAPE, "its axis is that of complex numbers");
	if (c->failed) return;
	int64_t usual = t.inverse && onesided ? 2 * (s.dim[axis] - 1) : s.dim[axis];
	t.length = slp_onnx_has(c, 1) ? (int64_t)slp_onnx_number_in(c, 1, NULL, 0) : usual;
	t.bins = onesided && !t.inverse ? t.length / 2 + 1 : t.length;
	if (!c->failed && (t.length < 1 || t.length > INT32_MAX))
		slp_onnx_call_fail(c, SL_ESHAPE, "a transform of %lld numbers", (long long)t.length);
	if (!c->failed) dft(&t, s, axis, onesided);
}

/* ---- STFT -------------------------------------------------------------------------------------------------------- */

/* Parts of the signals (batch, frames, length), `step` apart, times the window. */
static sl_tensor *framed(struct slp_onnx_call *c, sl_tensor *x, int64_t frames, int64_t length, int64_t step)
{
	enum { MOST = 1 << 26 };
	if (frames > MOST / length) slp_onnx_call_fail(c, SL_EUNSUPPORTED, "frames of more than %d elements", MOST);
	struct slp_onnx_known *k = c->failed ? NULL : slp_onnx_known_new(c->made, SL_INT64, SL_SHAPE(frames, length));
	for (int64_t i = 0; k && i < frames * length; i++) k->v[i].i = i / length * step + i % length;
	if (!k || !x) return NULL;
	x = slp_onnx_gathered(c, (struct slp_onnx_value){.t = x}, (struct slp_onnx_value){.known = k}, 1).t;
	sl_tensor *window = slp_onnx_tensor(c, 2);
	return x && window ? sl_mul_at(c->at, x, window) : x;
}

void slp_onnx_import_stft(struct slp_onnx_call *c)
{
	sl_shape s = slp_onnx_shape(c, 0), w = slp_onnx_has(c, 2) ? slp_onnx_shape(c, 2) : SL_SCALAR;
	int64_t step = (int64_t)slp_onnx_number_in(c, 1, NULL, 0), n = w.ndim == 1 ? w.dim[0] : 0;
	if (slp_onnx_has(c, 3)) n = (int64_t)slp_onnx_number_in(c, 3, NULL, 0);
	if (!c->failed &&
	    (s.ndim < 2 || s.ndim > 3 || n < 1 || step < 1 || n > s.dim[1] || (w.ndim == 1 && w.dim[0] != n)))
		slp_onnx_call_fail(c, SL_ESHAPE, "frames of %lld, %lld apart, do not fit the signal or the window",
		                   (long long)n, (long long)step);
	if (c->failed) return;
	struct transform t = {.c = c, .length = n, .bins = slp_onnx_attr_int(c, "onesided", 1) ? n / 2 + 1 : n};
	int64_t frames = (s.dim[1] - n) / step + 1;
	struct spectrum x = {slp_onnx_tensor(c, 0), NULL};
	if (s.ndim == 3) x = parts_of(c, x.re, s.dim[1]);
	sl_tensor **part[] = {&x.re, &x.im};
	for (int i = 0; i < 2 && *part[i]; i++) {
		*part[i] = framed(c, *part[i], frames, n, step);
		if (*part[i]) *part[i] = sl_reshape_at(c->at, *part[i], SL_SHAPE(s.dim[0] * frames, n));
		if (!*part[i]) c->failed = true; /* and recorded */
	}
	struct spectrum y = x.re && !c->failed ? transformed(&t, x) : (struct spectrum){NULL, NULL};
	slp_onnx_set_output(c, 0, paired(c, y, SL_SHAPE(s.dim[0], frames, t.bins, 2)));
}

/* ---- windows, filters -------------------------------------------------------------------------------------------- */

static void give_numbers(struct slp_onnx_call *c, struct slp_onnx_known *k)
{
	int type = slp_onnx_attr_small(c, "output_datatype", 1, 1, INT16_MAX);
	enum sl_dtype dtype = slp_onnx_dtype_numbered(type);
	if (!c->failed && dtype == SL_DTYPE_DEFAULT)
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "data type %d is not supported", type);
	struct slp_onnx_value v = {.known = k};
	if (k && !c->failed) v = slp_onnx_cast(c, v, dtype);
	if (!c->failed) slp_onnx_set_output_value(c, 0, v);
}

/* Sums of cosines: a - b cos(2 pi i / n) + d cos(4 pi i / n). */
void slp_onnx_import_window(struct slp_onnx_call *c)
{
	static const struct {
		const char *name;
		double a, b, d;
	} windows[] = {{"HannWindow", 0.5, 0.5, 0},
	               {"HammingWindow", 25.0 / 46, 21.0 / 46, 0},
	               {"BlackmanWindow", 0.42, 0.5, 0.08}};
	enum { MOST = 1 << 24 };
	int w = 0;
	int64_t size = (int64_t)slp_onnx_number_in(c, 0, NULL, 0);
	double n = (double)(slp_onnx_attr_int(c, "periodic", 1) ? size : size - 1);
	while (strcmp(windows[w].name, c->op->name)) w++;
	if (!c->failed && (size < 1 || size > MOST))
		slp_onnx_call_fail(c, SL_ESHAPE, "a size of %lld", (long long)size);
	struct slp_onnx_known *k = c->failed ? NULL : slp_onnx_known_new(c->made, SL_FLOAT64, SL_SHAPE(size));
	for (int64_t i = 0; k && i < size; i++) {
		double turn = n > 0 ? 2 * M_PI * (double)i / n : 0;
		k->v[i].f = windows[w].a - windows[w].b * cos(turn) + windows[w].d * cos(2 * turn);
		if (!(n > 0)) k->v[i].f = 1; /* one element of a symmetric window: 0 / 0 */
	}
	if (k) give_numbers(c, k);
	else c->failed = true; /* and recorded */
}

/* The bins of a spectrum where the triangles of the mel scale begin: as many as there are, and two. */
static int64_t edge(double i, double bins, double length, double rate, double low, double high)
{
	double from = 2595 * log10(1 + low / 700), to = 2595 * log10(1 + high / 700);
	double hertz = 700 * (pow(10, (i * (to - from) / (bins + 2) + from) / 2595) - 1);
	return (int64_t)floor((length + 1) * hertz / rate);
}

void slp_onnx_import_mel_weights(struct slp_onnx_call *c)
{
	enum { MOST = 1 << 16 };
	double in[5];
	for (int i = 0; i < 5; i++) in[i] = slp_onnx_number_in(c, i, NULL, 0);
	int64_t mels = (int64_t)in[0], length = (int64_t)in[1], bins = length / 2 + 1;
	if (!c->failed && (mels < 1 || length < 1 || mels > MOST || length > MOST || !(in[2] > 0) || !(in[3] >= 0) ||
	                   !(in[4] >= in[3]) || edge((double)mels + 1, in[0], in[1], in[2], in[3], in[4]) > bins))
		slp_onnx_call_fail(c, SL_EFORMAT, "makes no filters of these numbers");
	struct slp_onnx_known *k = c->failed ? NULL : slp_onnx_known_new(c->made, SL_FLOAT64, SL_SHAPE(bins, mels));
	for (int64_t i = 0; k && i < mels; i++) {
		int64_t e[3];
		for (int j = 0; j < 3; j++) e[j] = edge((double)(i + j), in[0], in[1], in[2], in[3], in[4]);
		for (int64_t j = e[0]; j <= e[1] && j < bins; j++)
			k->v[j * mels + i].f = e[1] > e[0] ? (double)(j - e[0]) / (double)(e[1] - e[0]) : 1;
		for (int64_t j = e[1]; j < e[2] && j < bins; j++)
			k->v[j * mels + i].f = (double)(e[2] - j) / (double)(e[2] - e[1]);
	}
	if (k) give_numbers(c, k);
	else c->failed = true; /* and recorded */
}
