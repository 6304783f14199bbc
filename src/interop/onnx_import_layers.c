/* ONNX operators, computed: convolutions and pooling, of images and of sequences, which are images of one row. */
#include <math.h>

#include "interop/onnx_import.h"

/* A window over height and width: what the attributes say of it. */
struct window {
	int axes; /* 1: sequences */
	int64_t size[2], kernel[2], stride[2], dilation[2], begin[2], end[2];
};

/* Numbers of an attribute, one for each axis. */
static bool read_axes(struct slp_onnx_call *c, const char *name, int axes, int64_t otherwise, int64_t v[2])
{
	int64_t list[2];
	int n = slp_onnx_attr_ints(c, name, list, 2);
	v[0] = v[1] = otherwise;
	if (n >= 0 && n != axes)
		slp_onnx_call_fail(c, SL_EFORMAT, "attribute %s has %d numbers, %d needed", name, n, axes);
	for (int i = 0; i < axes && n == axes; i++) {
		v[2 - axes + i] = list[i];
		if (list[i] < 1 || list[i] > INT16_MAX)
			slp_onnx_call_fail(c, SL_EFORMAT, "attribute %s has the number %lld", name, (long long)list[i]);
	}
	if (axes == 1) v[0] = 1;
	return !c->failed;
}

/* SAME: as many windows as steps fit into the image; what is missing goes to both sides, one more to the last or first.
 */
static void pad_same(struct window *w, bool upper)
{
	for (int i = 0; i < 2; i++) {
		int64_t windows = (w->size[i] + w->stride[i] - 1) / w->stride[i];
		int64_t pad = (windows - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1 - w->size[i];
		if (pad < 0) pad = 0;
		w->begin[i] = upper ? pad / 2 : pad - pad / 2;
		w->end[i] = pad - w->begin[i];
	}
}

static void read_pads(struct slp_onnx_call *c, struct window *w)
{
	int64_t list[4];
	int n = slp_onnx_attr_ints(c, "pads", list, 4);
	bool explicit = slp_onnx_attr_is(c, "auto_pad", "NOTSET", "NOTSET"),
	     upper = slp_onnx_attr_is(c, "auto_pad", "", "SAME_UPPER");
	if (upper || slp_onnx_attr_is(c, "auto_pad", "", "SAME_LOWER")) pad_same(w, upper);
	else if (!explicit && !slp_onnx_attr_is(c, "auto_pad", "", "VALID"))
		slp_onnx_call_fail(c, SL_EFORMAT, "auto_pad is unknown");
	if (!explicit || n < 0) return;
	if (n != 2 * w->axes)
		slp_onnx_call_fail(c, SL_EFORMAT, "attribute pads has %d numbers, %d needed", n, 2 * w->axes);
	for (int i = 0; i < w->axes && !c->failed; i++) {
		w->begin[2 - w->axes + i] = list[i];
		w->end[2 - w->axes + i] = list[w->axes + i];
	}
	for (int i = 0; i < 2 && !c->failed; i++)
		if (w->begin[i] < 0 || w->end[i] < 0 || w->begin[i] > INT16_MAX || w->end[i] > INT16_MAX)
			slp_onnx_call_fail(c, SL_EUNSUPPORTED, "pads of %lld and %lld", (long long)w->begin[i],
			                   (long long)w->end[i]);
}

/* kernel NULL: the attribute says it.  False after an error. */
static bool read_window(struct slp_onnx_call *c, sl_shape x, const sl_shape *kernel, struct window *w)
{
	*w = (struct window){.axes = x.ndim - 2};
	if (!c->failed && (w->axes < 1 || w->axes > 2))
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "the input has %d axes; images have 4 and sequences 3", x.ndim);
	if (c->failed) return false;
	w->size[0] = w->axes == 1 ? 1 : x.dim[2];
	w->size[1] = x.dim[x.ndim - 1];
	if (w->size[0] > INT32_MAX || w->size[1] > INT32_MAX) { /* what is computed of them fits then */
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "images of %lld by %lld", (long long)w->size[0],
		                   (long long)w->size[1]);
		return false;
	}
	read_axes(c, "strides", w->axes, 1, w->stride);
	read_axes(c, "dilations", w->axes, 1, w->dilation);
	read_axes(c, "kernel_shape", w->axes, kernel ? 1 : 0, w->kernel);
	for (int i = 0; kernel && i < w->axes && kernel->ndim == x.ndim; i++)
		w->kernel[2 - w->axes + i] = kernel->dim[2 + i];
	for (int i = 0; i < 2; i++)
		if (w->kernel[i] < 1 || w->kernel[i] > INT16_MAX)
			slp_onnx_call_fail(c, SL_EFORMAT, "has no kernel, or too large a one");
	if (!c->failed) read_pads(c, w);
	return !c->failed;
}

/* (n, c, length) as (n, c, 1, length). */
static sl_tensor *as_image(struct slp_onnx_call *c, sl_tensor *t)
{
	sl_shape s = t ? sl_tensor_shape(t) : SL_SCALAR;
	return s.ndim == 3 ? sl_reshape_at(c->at, t, SL_SHAPE(s.dim[0], s.dim[1], 1, s.dim[2])) : t;
}

/* Gives y, which is a sequence again if x was one. */
static void give_image(struct slp_onnx_call *c, sl_tensor *y, int axes)
{
	sl_shape s = y ? sl_tensor_shape(y) : SL_SCALAR;
	if (y && axes == 1) y = sl_reshape_at(c->at, y, SL_SHAPE(s.dim[0], s.dim[1], s.dim[3]));
	slp_onnx_give(c, 0, y);
}

static void pairs(const struct window *w, int stride[2], int dilation[2], int pad[2])
{
	for (int i = 0; i < 2; i++) {
		stride[i] = (int)w->stride[i];
		if (dilation) dilation[i] = (int)w->dilation[i];
		pad[i] = (int)w->begin[i];
	}
}

/* Operations pad both sides by the same: where that is not wanted, x gets its border before. */
static sl_tensor *bordered(struct slp_onnx_call *c, sl_tensor *x, struct window *w, bool always, double value)
{
	for (int i = 0; i < 2 && x; i++) {
		if (!always && w->begin[i] == w->end[i]) continue;
		if (w->begin[i] || w->end[i])
			x = sl_pad_at(c->at, x, 2 + i, w->begin[i], w->end[i], (struct sl_pad_opts){.value = value});
		w->begin[i] = w->end[i] = 0;
	}
	return x;
}

void slp_onnx_import_conv(struct slp_onnx_call *c)
{
	struct sl_conv2d_opts o = {.groups = slp_onnx_attr_small(c, "group", 1, 1, INT32_MAX)};
	struct window w;
	sl_shape kernel = slp_onnx_shape(c, 1);
	if (!read_window(c, slp_onnx_shape(c, 0), &kernel, &w)) return;
	sl_tensor *x = bordered(c, as_image(c, slp_onnx_tensor(c, 0)), &w, false, 0);
	sl_tensor *k = as_image(c, slp_onnx_tensor(c, 1)), *b = slp_onnx_tensor(c, 2);
	pairs(&w, o.stride, o.dilation, o.pad);
	if (x && k) give_image(c, sl_conv2d_at(c->at, x, k, b, o), w.axes);
	else c->failed = true;
}

/* ---- transposed convolution ---------------------------------------------------------------------------------------- */

/* Output padding, or the size that is wanted instead: then the borders follow from it. */
static void read_output(struct slp_onnx_call *c, struct window *w, int64_t more[2])
{
	int64_t list[2], size[2];
	int n = slp_onnx_attr_ints(c, "output_padding", list, 2), m = slp_onnx_attr_ints(c, "output_shape", size, 2);
	bool upper = slp_onnx_attr_is(c, "auto_pad", "", "SAME_UPPER"),
	     same = upper || slp_onnx_attr_is(c, "auto_pad", "", "SAME_LOWER");
	more[0] = more[1] = 0;
	if ((n >= 0 && n != w->axes) || (m >= 0 && m != w->axes))
		slp_onnx_call_fail(c, SL_EFORMAT, "output_padding and output_shape need %d numbers", w->axes);
	for (int i = 0; i < w->axes && !c->failed; i++) {
		int a = 2 - w->axes + i;
		if (n > 0) more[a] = list[i];
		if (more[a] < 0 || more[a] > INT16_MAX)
			slp_onnx_call_fail(c, SL_EFORMAT, "output_padding has the number %lld", (long long)more[a]);
		if ((m <= 0 && !same) || c->failed) continue;
		int64_t all = w->stride[a] * (w->size[a] - 1) + more[a] + (w->kernel[a] - 1) * w->dilation[a] + 1;
		int64_t wanted = m > 0 ? size[i] : w->size[a] * w->stride[a], pad = all - wanted;
		if (wanted < 1 || pad < 0 || pad > INT16_MAX) {
			slp_onnx_call_fail(c, SL_EUNSUPPORTED, "output_shape %lld of %lld", (long long)wanted,
			                   (long long)all);
			continue;
		}
		w->begin[a] = upper ? pad / 2 : pad - pad / 2;
		w->end[a] = pad - w->begin[a];
	}
}

void slp_onnx_import_conv_transpose(struct slp_onnx_call *c)
{
	struct sl_conv_transpose2d_opts o = {.groups = slp_onnx_attr_small(c, "group", 1, 1, INT32_MAX)};
	struct window w;
	int64_t more[2];
	sl_shape kernel = slp_onnx_shape(c, 1);
	if (!read_window(c, slp_onnx_shape(c, 0), &kernel, &w)) return;
	read_output(c, &w, more);
	if (c->failed) return;
	sl_tensor *x = as_image(c, slp_onnx_tensor(c, 0)), *k = as_image(c, slp_onnx_tensor(c, 1));
	pairs(&w, o.stride, o.dilation, o.pad);
	for (int i = 0; i < 2; i++) { /* borders that differ are cut off afterwards */
		o.output_pad[i] = (int)more[i];
		if (w.begin[i] != w.end[i]) o.pad[i] = 0;
	}
	sl_tensor *y = x && k ? sl_conv_transpose2d_at(c->at, x, k, slp_onnx_tensor(c, 2), o) : NULL;
	for (int i = 0; i < 2 && y; i++)
		if (w.begin[i] != w.end[i])
			y = sl_slice_at(c->at, y, 2 + i, w.begin[i], sl_tensor_shape(y).dim[2 + i] - w.end[i], 1);
	give_image(c, y, w.axes);
}

/* ---- pooling ----------------------------------------------------------------------------------------------------- */

/* Means of what lies in the image alone, where its border had to be made before: over the share that lies there. */
static sl_tensor *shared_mean(struct slp_onnx_call *c, sl_tensor *x, struct window *w, struct sl_pool2d_opts o)
{
	sl_shape s = sl_tensor_shape(x);
	struct sl_make make = {sl_tensor_dtype(x), sl_tensor_device(x)};
	struct window again = *w;
	sl_tensor *ones = sl_ones_at(c->at, SL_SHAPE(1, 1, s.dim[2], s.dim[3]), make);
	sl_tensor *sums = sl_pool2d_at(c->at, bordered(c, x, w, true, 0), o);
	return sl_div_at(c->at, sums, sl_pool2d_at(c->at, bordered(c, ones, &again, true, 0), o));
}

static sl_tensor *pooled(struct slp_onnx_call *c, sl_tensor *x, struct window *w, struct sl_pool2d_opts o)
{
	bool even = w->begin[0] == w->end[0] && w->begin[1] == w->end[1];
	even = even && w->begin[0] < w->kernel[0] && w->begin[1] < w->kernel[1];
	for (int i = 0; i < 2; i++) o.kernel[i] = (int)w->kernel[i];
	pairs(w, o.stride, NULL, o.pad);
	if (even) return sl_pool2d_at(c->at, x, o);
	if (o.ceil) slp_onnx_call_fail(c, SL_EUNSUPPORTED, "ceil_mode with borders that differ is not supported");
	if (c->failed) return NULL;
	o.pad[0] = o.pad[1] = 0;
	if (o.exclude_pad && o.type == SL_POOL_AVG) return shared_mean(c, x, w, o);
	return sl_pool2d_at(c->at, bordered(c, x, w, true, o.type == SL_POOL_AVG ? 0 : -INFINITY), o);
}

void slp_onnx_import_pool(struct slp_onnx_call *c)
{
	bool mean = c->op->name[0] == 'A';
	struct sl_pool2d_opts o = {.type = mean ? SL_POOL_AVG : SL_POOL_MAX,
	                           .ceil = slp_onnx_attr_int(c, "ceil_mode", 0) != 0,
	                           .exclude_pad = !slp_onnx_attr_int(c, "count_include_pad", 0)};
	struct window w;
	if (!read_window(c, slp_onnx_shape(c, 0), NULL, &w)) return;
	if (w.dilation[0] != 1 || w.dilation[1] != 1)
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "attribute dilations is not supported");
	if (c->nout > 1)
		slp_onnx_call_fail(c, SL_EUNSUPPORTED,
		                   "its second result, the places of the largest, is not supported");
	if (c->failed) return;
	sl_tensor *x = as_image(c, slp_onnx_tensor(c, 0));
	give_image(c, x ? pooled(c, x, &w, o) : NULL, w.axes);
}

void slp_onnx_import_global_pool(struct slp_onnx_call *c)
{
	bool mean = c->op->name[6] == 'A';
	int axes[SL_MAX_NDIM], n = 0;
	sl_shape x = slp_onnx_shape(c, 0);
	if (c->failed) return;
	sl_tensor *t = slp_onnx_tensor(c, 0);
	if (x.ndim == 4) {
		slp_onnx_give(c, 0,
		              sl_pool2d_at(c->at, t,
		                           (struct sl_pool2d_opts){.type = mean ? SL_POOL_AVG : SL_POOL_MAX,
		                                                   .global = true}));
		return;
	}
	for (int i = 2; i < x.ndim; i++) axes[n++] = i;
	if (!n) slp_onnx_call_fail(c, SL_ESHAPE, "the input has %d axes, at least 3 needed", x.ndim);
	else
		slp_onnx_give(c, 0,
		              (mean ? sl_mean_at : sl_max_at)(
		                      c->at, t, (struct sl_reduce_opts){.axes = axes, .naxes = n, .keepdims = true}));
}
