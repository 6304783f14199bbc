/* ONNX operators, computed: convolutions of images, of sequences, which are images of one row, and of volumes. */
#include "onnx/import/window.h"
#include "op_inner.h"
#include "runtime/engine.h"
#include "starling/arithmetic.h"
#include "starling/autograd.h"
#include "starling/functions.h"

/* The layers of x under each of the kernel's, (n, channels, kernel's depth, depth, height, width). */
static sl_tensor *layers_under(struct slp_onnx_call *c, sl_tensor *x, const struct slp_onnx_window *w)
{
	enum { MOST = 128 };
	sl_tensor *list[MOST];
	int64_t kernel = w->kernel[2], step = w->stride[2], all = w->size[2] + w->begin[2] + w->end[2];
	int64_t depth = (all - (kernel - 1) * w->dilation[2] - 1) / step + 1;
	if (kernel > MOST || all < (kernel - 1) * w->dilation[2] + 1)
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "a kernel of %lld layers over %lld", (long long)kernel,
		                   (long long)all);
	if (c->failed) return NULL;
	sl_shape s = sl_tensor_shape(x);
	x = sl_pad_at(c->at, x, 2, w->begin[2], w->end[2], (struct sl_pad_opts){0});
	for (int64_t i = 0; i < kernel; i++) {
		int64_t first = i * w->dilation[2];
		list[i] = sl_slice_at(c->at, x, 2, first, first + (depth - 1) * step + 1, step);
		list[i] = sl_reshape_at(c->at, list[i], SL_SHAPE(s.dim[0], s.dim[1], 1, depth, s.dim[3], s.dim[4]));
		if (!list[i]) return NULL;
	}
	return sl_concat_at(c->at, list, (int)kernel, 2);
}

/* Whether the operation for volumes takes it: one without a gradient, on CPUs, which no file and no bucket knows. */
static bool has_volumes(sl_tensor *x, sl_tensor *k)
{
	enum sl_device_kind kind = sl_tensor_device(x).kind;
	bool cpu = kind != SL_DEVICE_GPU && (kind == SL_DEVICE_CPU || !slp_engine.ngpus);
	if (slp_forward.for_file || slp_forward.sizes_vary) return false;
	return cpu && !sl_is_recording() && sl_tensor_dtype(x) == SL_FLOAT32 && sl_tensor_dtype(k) == SL_FLOAT32;
}

static sl_tensor *volumes(struct slp_onnx_call *c, sl_tensor *x, sl_tensor *k, sl_tensor *b, struct slp_onnx_window *w,
                          struct sl_conv2d_opts o)
{
	bool uneven = w->begin[2] != w->end[2];
	if (uneven) x = sl_pad_at(c->at, x, 2, w->begin[2], w->end[2], (struct sl_pad_opts){0});
	if (uneven) w->begin[2] = 0;
	x = x ? slp_onnx_bordered(c, x, w, false, 0) : NULL;
	if (!x) return NULL;
	slp_onnx_window_pairs(w, o.stride, o.dilation, o.pad);
	struct slp_conv_depth d = {
	        .stride = (int)w->stride[2], .dilation = (int)w->dilation[2], .pad = (int)w->begin[2]};
	return slp_conv3d(c->at, x, k, b, o, d);
}

/* Volumes: the layers under the kernel are further channels of images. */
static sl_tensor *conv3d(struct slp_onnx_call *c, struct slp_onnx_window *w, struct sl_conv2d_opts o)
{
	static const int depth_first[] = {0, 3, 1, 2, 4, 5}, channels_first[] = {0, 2, 1, 3, 4};
	sl_shape ks = slp_onnx_shape(c, 1);
	sl_tensor *x = slp_onnx_tensor(c, 0), *k = slp_onnx_tensor(c, 1), *b = slp_onnx_tensor(c, 2);
	if (ks.ndim != 5) slp_onnx_call_fail(c, SL_ESHAPE, "the kernel has %d axes, 5 needed", ks.ndim);
	if (!x || !k || c->failed) return NULL;
	if (has_volumes(x, k)) return volumes(c, x, k, b, w, o);
	x = layers_under(c, x, w);
	if (!x) return NULL;
	sl_shape s = sl_tensor_shape(x);
	x = sl_transpose_at(c->at, x, (struct sl_reduce_opts){.axes = depth_first, .naxes = 6});
	x = sl_reshape_at(c->at, x, SL_SHAPE(s.dim[0] * s.dim[3], s.dim[1] * s.dim[2], s.dim[4], s.dim[5]));
	x = x ? slp_onnx_bordered(c, x, w, false, 0) : NULL;
	k = sl_reshape_at(c->at, k, SL_SHAPE(ks.dim[0], ks.dim[1] * ks.dim[2], ks.dim[3], ks.dim[4]));
	slp_onnx_window_pairs(w, o.stride, o.dilation, o.pad);
	sl_tensor *y = x && k ? sl_conv2d_at(c->at, x, k, b, o) : NULL;
	if (!y) return NULL;
	sl_shape t = sl_tensor_shape(y);
	y = sl_reshape_at(c->at, y, SL_SHAPE(s.dim[0], s.dim[3], t.dim[1], t.dim[2], t.dim[3]));
	return sl_transpose_at(c->at, y, (struct sl_reduce_opts){.axes = channels_first, .naxes = 5});
}

void slp_onnx_import_conv(struct slp_onnx_call *c)
{
	struct sl_conv2d_opts o = {.groups = slp_onnx_attr_small(c, "group", 1, 1, INT32_MAX)};
	struct slp_onnx_window w;
	sl_shape kernel = slp_onnx_shape(c, 1);
	if (!slp_onnx_window_read(c, slp_onnx_shape(c, 0), &kernel, &w)) return;
	if (w.axes == 3) {
		slp_onnx_set_output(c, 0, conv3d(c, &w, o));
		return;
	}
	sl_tensor *x = slp_onnx_bordered(c, slp_onnx_as_image(c, slp_onnx_tensor(c, 0)), &w, false, 0);
	sl_tensor *k = slp_onnx_as_image(c, slp_onnx_tensor(c, 1)), *b = slp_onnx_tensor(c, 2);
	slp_onnx_window_pairs(&w, o.stride, o.dilation, o.pad);
	if (x && k) slp_onnx_set_output_image(c, sl_conv2d_at(c->at, x, k, b, o), w.axes);
	else c->failed = true;
}

/* ---- transposed convolution -------------------------------------------------------------------------------------- */

/* Output padding, or the requested size instead: then the borders follow from it. */
static void read_output(struct slp_onnx_call *c, struct slp_onnx_window *w, int64_t more[SLP_ONNX_SPACE])
{
	int64_t list[SLP_ONNX_SPACE], size[SLP_ONNX_SPACE];
	int n = slp_onnx_attr_ints(c, "output_padding", list, SLP_ONNX_SPACE),
	    m = slp_onnx_attr_ints(c, "output_shape", size, SLP_ONNX_SPACE);
	bool upper = slp_onnx_attr_is(c, "auto_pad", "", "SAME_UPPER"),
	     same = upper || slp_onnx_attr_is(c, "auto_pad", "", "SAME_LOWER");
	more[0] = more[1] = more[2] = 0;
	if ((n >= 0 && n != w->axes) || (m >= 0 && m != w->axes))
		slp_onnx_call_fail(c, SL_EFORMAT, "output_padding and output_shape need %d numbers", w->axes);
	for (int i = 0; i < w->axes && !c->failed; i++) {
		int a = slp_onnx_window_place(w->axes, i);
		if (n > 0) more[a] = list[i];
		if (more[a] < 0 || more[a] > INT16_MAX)
			slp_onnx_call_fail(c, SL_EFORMAT, "output_padding has the number %lld", (long long)more[a]);
		if ((m <= 0 && !same) || c->failed) continue;
		int64_t all = w->stride[a] * (w->size[a] - 1) + more[a] + (w->kernel[a] - 1) * w->dilation[a] + 1;
		int64_t wanted = m > 0 ? size[i] : w->size[a] * w->stride[a], pad = all - wanted;
		if (wanted < 1 || pad < -INT16_MAX || pad > INT16_MAX) {
			slp_onnx_call_fail(c, SL_EUNSUPPORTED, "output_shape %lld of %lld", (long long)wanted,
			                   (long long)all);
			continue;
		}
		if (pad < 0) more[a] -= pad, pad = 0; /* the result is too small */
		w->begin[a] = upper ? pad / 2 : pad - pad / 2;
		w->end[a] = pad - w->begin[a];
	}
}

/* Images, whose borders, where they differ, are cut off afterwards. */
static sl_tensor *transposed2d(struct slp_onnx_call *c, sl_tensor *x, sl_tensor *k, sl_tensor *b,
                               const struct slp_onnx_window *w, const int64_t more[2], int groups)
{
	struct sl_conv_transpose2d_opts o = {.groups = groups};
	slp_onnx_window_pairs(w, o.stride, o.dilation, o.pad);
	for (int i = 0; i < 2; i++) {
		o.output_pad[i] = (int)more[i];
		if (w->begin[i] != w->end[i]) o.pad[i] = 0;
	}
	sl_tensor *y = x && k ? sl_conv_transpose2d_at(c->at, x, k, b, o) : NULL;
	for (int i = 0; i < 2 && y; i++)
		if (w->begin[i] != w->end[i])
			y = sl_slice_at(c->at, y, 2 + i, w->begin[i], sl_tensor_shape(y).dim[2 + i] - w->end[i], 1);
	return y;
}

/* y (n, outputs, kernel's depth, depth, height, width): the kernel's layers, a stride apart, added in place. */
static sl_tensor *layers_added(struct slp_onnx_call *c, sl_tensor *y, const struct slp_onnx_window *w, int64_t more)
{
	sl_shape s = sl_tensor_shape(y);
	int64_t n = s.dim[0], o = s.dim[1], d = s.dim[3], step = w->stride[2], length = (d - 1) * step + 1;
	int64_t all = length + (w->kernel[2] - 1) * w->dilation[2] + more;
	sl_tensor *sum = NULL;
	for (int64_t i = 0; i < w->kernel[2] && !c->failed; i++) {
		int64_t before = i * w->dilation[2];
		sl_tensor *t = sl_slice_at(c->at, y, 2, i, i + 1, 1);
		t = sl_reshape_at(c->at, t, SL_SHAPE(n, o, d, 1, s.dim[4], s.dim[5]));
		t = sl_pad_at(c->at, t, 3, 0, step - 1, (struct sl_pad_opts){0});
		t = sl_reshape_at(c->at, t, SL_SHAPE(n, o, d * step, s.dim[4], s.dim[5]));
		t = sl_slice_at(c->at, t, 2, 0, length, 1);
		t = sl_pad_at(c->at, t, 2, before, all - before - length, (struct sl_pad_opts){0});
		sum = sum && t ? sl_add_at(c->at, sum, t) : t;
		if (!sum) c->failed = true;
	}
	return sum ? sl_slice_at(c->at, sum, 2, w->begin[2], all - w->end[2], 1) : NULL;
}

/* Volumes: of each layer of x an image with as many layers as the kernel. */
static sl_tensor *transposed3d(struct slp_onnx_call *c, sl_tensor *x, sl_tensor *k, sl_tensor *b,
                               const struct slp_onnx_window *w, const int64_t more[3], int groups)
{
	static const int layers_first[] = {0, 2, 1, 3, 4}, kernel_first[] = {0, 2, 3, 1, 4, 5};
	if (!x || !k) return NULL;
	sl_shape s = sl_tensor_shape(x), ks = sl_tensor_shape(k);
	x = sl_transpose_at(c->at, x, (struct sl_reduce_opts){.axes = layers_first, .naxes = 5});
	x = sl_reshape_at(c->at, x, SL_SHAPE(s.dim[0] * s.dim[2], s.dim[1], s.dim[3], s.dim[4]));
	k = sl_reshape_at(c->at, k, SL_SHAPE(ks.dim[0], ks.dim[1] * ks.dim[2], ks.dim[3], ks.dim[4]));
	sl_tensor *y = transposed2d(c, x, k, NULL, w, more, groups);
	if (!y) return NULL;
	sl_shape t = sl_tensor_shape(y);
	y = sl_reshape_at(c->at, y, SL_SHAPE(s.dim[0], s.dim[2], t.dim[1] / ks.dim[2], ks.dim[2], t.dim[2], t.dim[3]));
	y = sl_transpose_at(c->at, y, (struct sl_reduce_opts){.axes = kernel_first, .naxes = 6});
	y = y ? layers_added(c, y, w, more[2]) : NULL;
	return y && b ? sl_add_at(c->at, y, sl_reshape_at(c->at, b, SL_SHAPE(-1, 1, 1, 1))) : y;
}

void slp_onnx_import_conv_transpose(struct slp_onnx_call *c)
{
	struct slp_onnx_window w;
	int64_t more[SLP_ONNX_SPACE];
	int groups = slp_onnx_attr_small(c, "group", 1, 1, INT32_MAX);
	sl_shape kernel = slp_onnx_shape(c, 1);
	if (!slp_onnx_window_read(c, slp_onnx_shape(c, 0), &kernel, &w)) return;
	read_output(c, &w, more);
	if (c->failed) return;
	if (w.axes == 3 && kernel.ndim == 5) {
		sl_tensor *b = slp_onnx_tensor(c, 2);
		slp_onnx_set_output(c, 0,
		                    transposed3d(c, slp_onnx_tensor(c, 0), slp_onnx_tensor(c, 1), b, &w, more, groups));
		return;
	}
	sl_tensor *x = slp_onnx_as_image(c, slp_onnx_tensor(c, 0)), *k = slp_onnx_as_image(c, slp_onnx_tensor(c, 1));
	slp_onnx_set_output_image(c, transposed2d(c, x, k, slp_onnx_tensor(c, 2), &w, more, groups), w.axes);
}

/* ---- columns ----------------------------------------------------------------------------------------------------- */

/* The size that columns are put together to, and the block that each of them is. */
static bool read_columns(struct slp_onnx_call *c, struct slp_onnx_window *w, int64_t size[SLP_ONNX_SPACE])
{
	int64_t image[SL_MAX_NDIM], block[SL_MAX_NDIM];
	int n = slp_onnx_ints_in(c, 1, NULL, image, SL_MAX_NDIM), m = slp_onnx_ints_in(c, 2, NULL, block, SL_MAX_NDIM);
	if (!c->failed && (n != m || n < 1 || n > SLP_ONNX_SPACE || slp_onnx_shape(c, 0).ndim != 3))
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "images of %d axes; 1 to 3 are supported", n);
	if (c->failed) return false;
	sl_shape of = {.ndim = 2 + n}, kernel = of;
	for (int i = 0; i < n; i++) of.dim[2 + i] = image[i], kernel.dim[2 + i] = block[i];
	if (!slp_onnx_window_read(c, of, &kernel, w)) return false;
	for (int i = 0; i < SLP_ONNX_SPACE; i++) { /* as many windows as fit, and the rest of the image after them */
		size[i] = w->size[i];
		int64_t room = size[i] + w->begin[i] + w->end[i] - (w->kernel[i] - 1) * w->dilation[i] - 1;
		w->size[i] = room < 0 ? 0 : room / w->stride[i] + 1;
		size[i] = room < 0 ? 0 : room % w->stride[i];
	}
	return true;
}

/* (n, channels, depth, height, width) of volumes, or without a depth. */
static sl_shape image_shape(int64_t n, int64_t channels, const struct slp_onnx_window *w, const int64_t *v)
{
	return w->axes == 3 ? SL_SHAPE(n, channels, v[2], v[0], v[1]) : SL_SHAPE(n, channels, v[0], v[1]);
}

/* Sums of overlapping elements: a transposed convolution whose kernels each have one element, 1. */
void slp_onnx_import_col2im(struct slp_onnx_call *c)
{
	struct slp_onnx_window w;
	int64_t more[SLP_ONNX_SPACE] = {0};
	sl_shape x = slp_onnx_shape(c, 0);
	if (c->failed || !read_columns(c, &w, more)) return;
	int64_t block = w.kernel[0] * w.kernel[1] * w.kernel[2], channels = x.dim[1] / block;
	int64_t places = w.size[0] * w.size[1] * w.size[2];
	if (x.dim[1] % block || x.dim[2] != places || channels > INT32_MAX || block > INT16_MAX) {
		slp_onnx_call_fail(c, SL_ESHAPE, "columns that do not fit the image");
		return;
	}
	sl_tensor *t = slp_onnx_tensor(c, 0);
	struct sl_make make = {SL_INT32, sl_tensor_device(c->beside)};
	sl_tensor *k = t ? sl_one_hot_at(c->at, sl_arange_at(c->at, 0, (double)block, 1, make), block,
	                                 (struct sl_make){.dtype = sl_tensor_dtype(t)})
	                 : NULL;
	k = k ? sl_tile_at(c->at, sl_reshape_at(c->at, k, image_shape(block, 1, &w, w.kernel)), 0, channels) : NULL;
	t = k ? sl_reshape_at(c->at, t, image_shape(x.dim[0], x.dim[1], &w, w.size)) : NULL;
	if (!t) c->failed = true; /* and recorded */
	else if (w.axes == 3) slp_onnx_set_output(c, 0, transposed3d(c, t, k, NULL, &w, more, (int)channels));
	else slp_onnx_set_output_image(c, transposed2d(c, t, k, NULL, &w, more, (int)channels), w.axes);
}
