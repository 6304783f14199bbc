/* Windows that move over sequences, images and volumes: the attributes of ONNX nodes that describe them. */
#include "onnx/import/window.h"
#include "starling/functions.h"

/* Numbers of an attribute, one for each axis. */
static bool read_axes(struct slp_onnx_call *c, const char *name, int axes, int64_t otherwise, int64_t v[SLP_ONNX_SPACE])
{
	int64_t list[SLP_ONNX_SPACE];
	int n = slp_onnx_attr_ints(c, name, list, SLP_ONNX_SPACE);
	v[0] = axes == 1 ? 1 : otherwise;
	v[1] = otherwise;
	v[2] = axes == 3 ? otherwise : 1;
	if (n >= 0 && n != axes)
		slp_onnx_call_fail(c, SL_EFORMAT, "attribute %s has %d numbers, %d needed", name, n, axes);
	for (int i = 0; i < axes && n == axes; i++) {
		v[slp_onnx_window_place(axes, i)] = list[i];
		if (list[i] < 1 || list[i] > INT16_MAX)
			slp_onnx_call_fail(c, SL_EFORMAT, "attribute %s has the number %lld", name, (long long)list[i]);
	}
	return !c->failed;
}

/* SAME: as many windows as steps fit into the image; the padding is split between both sides, an odd one goes last or
 * first. */
static void pad_same(struct slp_onnx_window *w, bool upper)
{
	for (int i = 0; i < SLP_ONNX_SPACE; i++) {
		int64_t windows = (w->size[i] + w->stride[i] - 1) / w->stride[i];
		int64_t pad = (windows - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1 - w->size[i];
		if (pad < 0) pad = 0;
		w->begin[i] = upper ? pad / 2 : pad - pad / 2;
		w->end[i] = pad - w->begin[i];
	}
}

static void read_pads(struct slp_onnx_call *c, struct slp_onnx_window *w)
{
	int64_t list[2 * SLP_ONNX_SPACE];
	int n = slp_onnx_attr_ints(c, "pads", list, 2 * SLP_ONNX_SPACE);
	bool explicit = slp_onnx_attr_is(c, "auto_pad", "NOTSET", "NOTSET"),
	     upper = slp_onnx_attr_is(c, "auto_pad", "", "SAME_UPPER");
	if (upper || slp_onnx_attr_is(c, "auto_pad", "", "SAME_LOWER")) pad_same(w, upper);
	else if (!explicit && !slp_onnx_attr_is(c, "auto_pad", "", "VALID"))
		slp_onnx_call_fail(c, SL_EFORMAT, "auto_pad is unknown");
	if (!explicit || n < 0) return;
	if (n != 2 * w->axes)
		slp_onnx_call_fail(c, SL_EFORMAT, "attribute pads has %d numbers, %d needed", n, 2 * w->axes);
	for (int i = 0; i < w->axes && !c->failed; i++) {
		int place = slp_onnx_window_place(w->axes, i);
		w->begin[place] = list[i];
		w->end[place] = list[w->axes + i];
	}
	for (int i = 0; i < SLP_ONNX_SPACE && !c->failed; i++)
		if (w->begin[i] < 0 || w->end[i] < 0 || w->begin[i] > INT16_MAX || w->end[i] > INT16_MAX)
			slp_onnx_call_fail(c, SL_EUNSUPPORTED, "pads of %lld and %lld", (long long)w->begin[i],
			                   (long long)w->end[i]);
}

/* The sizes of the axes that it moves over. */
static void read_size(struct slp_onnx_call *c, sl_shape x, struct slp_onnx_window *w)
{
	*w = (struct slp_onnx_window){.axes = x.ndim - 2, .size = {1, 1, 1}};
	if (!c->failed && (w->axes < 1 || w->axes > SLP_ONNX_SPACE))
		slp_onnx_call_fail(c, SL_EUNSUPPORTED,
		                   "the input has %d axes; volumes have 5, images 4 and sequences 3", x.ndim);
	for (int i = 0; i < w->axes && !c->failed; i++) {
		w->size[slp_onnx_window_place(w->axes, i)] = x.dim[2 + i];
		if (x.dim[2 + i] > INT32_MAX) /* so that later products fit */
			slp_onnx_call_fail(c, SL_EUNSUPPORTED, "an axis of %lld elements", (long long)x.dim[2 + i]);
	}
}

bool slp_onnx_window_read(struct slp_onnx_call *c, sl_shape x, const sl_shape *kernel, struct slp_onnx_window *w)
{
	read_size(c, x, w);
	if (c->failed) return false;
	read_axes(c, "strides", w->axes, 1, w->stride);
	read_axes(c, "dilations", w->axes, 1, w->dilation);
	read_axes(c, "kernel_shape", w->axes, kernel ? 1 : 0, w->kernel);
	for (int i = 0; kernel && i < w->axes && kernel->ndim == x.ndim; i++)
		w->kernel[slp_onnx_window_place(w->axes, i)] = kernel->dim[2 + i];
	for (int i = 0; i < SLP_ONNX_SPACE; i++)
		if (w->kernel[i] < 1 || w->kernel[i] > INT16_MAX)
			slp_onnx_call_fail(c, SL_EFORMAT, "has no kernel, or too large a one");
	if (!c->failed) read_pads(c, w);
	return !c->failed;
}

sl_tensor *slp_onnx_as_image(struct slp_onnx_call *c, sl_tensor *t)
{
	sl_shape s = t ? sl_tensor_shape(t) : SL_SCALAR;
	return s.ndim == 3 ? sl_reshape_at(c->at, t, SL_SHAPE(s.dim[0], s.dim[1], 1, s.dim[2])) : t;
}

void slp_onnx_set_output_image(struct slp_onnx_call *c, sl_tensor *y, int axes)
{
	sl_shape s = y ? sl_tensor_shape(y) : SL_SCALAR;
	if (y && axes == 1) y = sl_reshape_at(c->at, y, SL_SHAPE(s.dim[0], s.dim[1], s.dim[3]));
	slp_onnx_set_output(c, 0, y);
}

void slp_onnx_window_pairs(const struct slp_onnx_window *w, int stride[2], int dilation[2], int pad[2])
{
	for (int i = 0; i < 2; i++) {
		stride[i] = (int)w->stride[i];
		if (dilation) dilation[i] = (int)w->dilation[i];
		pad[i] = (int)w->begin[i];
	}
}

sl_tensor *slp_onnx_bordered(struct slp_onnx_call *c, sl_tensor *x, struct slp_onnx_window *w, bool always,
                             double value)
{
	for (int i = 0; i < 2 && x; i++) {
		if (!always && w->begin[i] == w->end[i]) continue;
		if (w->begin[i] || w->end[i])
			x = sl_pad_at(c->at, x, sl_tensor_shape(x).ndim - 2 + i, w->begin[i], w->end[i],
			              (struct sl_pad_opts){.value = value});
		w->begin[i] = w->end[i] = 0;
	}
	return x;
}
