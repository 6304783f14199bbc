/* qconv2d, qconv2d_pack: convolution of quantised images in NHWC, and its weights as a library takes them. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "common/workspace.h"
#include "op_list/quant.h"
#include "quant.h"

static const struct slp_attr attr_table[] = {
        SLP_ATTR(struct slp_qconv_attrs, stride, SLP_INT, 2, "steps of the window down and across"),
        SLP_ATTR(struct slp_qconv_attrs, pad, SLP_INT, 4, "zero points above, left, below, right"),
        SLP_ATTR(struct slp_qconv_attrs, dilation, SLP_INT, 2, "steps between kernel elements"),
        SLP_ATTR(struct slp_qconv_attrs, groups, SLP_INT, 1, "independent groups of channels"),
        SLP_ATTR(struct slp_qconv_attrs, kernel, SLP_INT, 2, "height and width of the window"),
        SLP_ATTR(struct slp_qconv_attrs, channels, SLP_INT, 2, "of x, of y"),
        SLP_ATTR(struct slp_qconv_attrs, x_zero, SLP_INT, 1, "the zero point of x"),
        SLP_ATTR(struct slp_qconv_attrs, y_zero, SLP_INT, 1, "that of y"),
        SLP_ATTR(struct slp_qconv_attrs, out, SLP_INT, 1, "y is 0: uint8, 1: the sums, int32, 2: float32"),
        SLP_ATTR(struct slp_qconv_attrs, size, SLP_INT, 2, "height and width of x, for qconv2d_pack"),
        SLP_ATTR(struct slp_qconv_attrs, images, SLP_INT, 1, "in x, for qconv2d_pack"),
        SLP_ATTR(struct slp_qconv_attrs, packed, SLP_INT64, 1, "bytes of the packed weights; 0: they are not"),
        {0},
};

struct slp_qconv slp_qconv_of(const struct slp_qconv_attrs *a, sl_shape x)
{
	struct slp_qconv c = {.n = x.dim[0],
	                      .ih = x.dim[1],
	                      .iw = x.dim[2],
	                      .ic = a->channels[0],
	                      .oc = a->channels[1],
	                      .kh = a->kernel[0],
	                      .kw = a->kernel[1],
	                      .sh = a->stride[0],
	                      .sw = a->stride[1],
	                      .top = a->pad[0],
	                      .left = a->pad[1],
	                      .bottom = a->pad[2],
	                      .right = a->pad[3],
	                      .dh = a->dilation[0],
	                      .dw = a->dilation[1],
	                      .groups = a->groups};
	c.each_in = c.ic / c.groups;
	c.each_out = c.oc / c.groups;
	c.oh = (c.ih + c.top + c.bottom - (c.kh - 1) * c.dh - 1) / c.sh + 1;
	c.ow = (c.iw + c.left + c.right - (c.kw - 1) * c.dw - 1) / c.sw + 1;
	return c;
}

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static enum sl_status check_attrs(const struct slp_infer *c, const struct slp_qconv_attrs *a)
{
	for (int i = 0; i < 2; i++)
		if (a->stride[i] < 1 || a->dilation[i] < 1 || a->pad[i] < 0 || a->pad[i + 2] < 0 || a->kernel[i] < 1 ||
		    a->channels[i] < 1)
			return slp_reject(c, SL_EINVAL,
			                  "sizes, stride and dilation must be positive, pad not negative");
	if (a->groups < 1 || a->channels[0] % a->groups || a->channels[1] % a->groups)
		return slp_reject(c, SL_EINVAL, "channels cannot be dealt to %d groups", a->groups);
	if (a->out < 0 || a->out >= SLP_Q_OUTS) return slp_reject(c, SL_EINVAL, "out must be 0 to 2");
	if (a->x_zero < 0 || a->x_zero > 255 || a->y_zero < 0 || a->y_zero > 255)
		return slp_reject(c, SL_EINVAL, "zero points must be 0 to 255");
	return a->packed < 0 ? slp_reject(c, SL_EINVAL, "packed must not be negative") : SL_OK;
}

static sl_shape weights_of(const struct slp_qconv_attrs *a)
{
	return SL_SHAPE(a->channels[1], a->channels[0] / a->groups, a->kernel[0], a->kernel[1]);
}

static enum sl_status check_types(const struct slp_infer *c)
{
	if (c->in[0].dtype != SL_UINT8 || (c->nin > 1 && c->in[1].dtype != SL_UINT8))
		return slp_reject(c, SL_EDTYPE, "x and w must be uint8");
	if (c->nin > 2 && c->in[2].dtype != SL_FLOAT32) return slp_reject(c, SL_EDTYPE, "scale must be float32");
	if (c->nin > 3 && c->in[3].dtype != SL_INT32) return slp_reject(c, SL_EDTYPE, "b must be int32");
	return SL_OK;
}

static enum sl_status qconv2d_infer(struct slp_infer *c)
{
	const struct slp_qconv_attrs *a = c->attrs;
	enum sl_status s = check_types(c);
	if (s == SL_OK) s = check_attrs(c, a);
	if (s != SL_OK) return s;
	char text[128];
	sl_shape x = c->in[0].shape, w = a->packed ? SL_SHAPE(a->packed) : weights_of(a),
	         each = SL_SHAPE(a->channels[1]);
	if (x.ndim != 4 || x.dim[3] != a->channels[0])
		return slp_reject(c, SL_ESHAPE, "x must have 4 axes, the last of %d channels", a->channels[0]);
	if (!sl_shape_equal(c->in[1].shape, w))
		return slp_reject(c, SL_ESHAPE, "w must have shape %s", sl_shape_string(w, text));
	for (int i = 2; i < c->nin; i++)
		if (!sl_shape_equal(c->in[i].shape, each))
			return slp_reject(c, SL_ESHAPE, "scale and b must have an element for each of %d channels",
			                  a->channels[1]);
	struct slp_qconv v = slp_qconv_of(a, x);
	if (v.ih + v.top + v.bottom < (v.kh - 1) * v.dh + 1 || v.iw + v.left + v.right < (v.kw - 1) * v.dw + 1)
		return slp_reject(c, SL_ESHAPE, "the kernel is larger than the padded image");
	c->out[0] = (struct slp_type){slp_q_dtype(a->out), SL_SHAPE(v.n, v.oh, v.ow, v.oc)};
	return SL_OK;
}

static enum sl_status pack_infer(struct slp_infer *c)
{
	const struct slp_qconv_attrs *a = c->attrs;
	enum sl_status s = check_types(c);
	if (s == SL_OK) s = check_attrs(c, a);
	if (s != SL_OK) return s;
	if (a->packed < 1) return slp_reject(c, SL_EINVAL, "needs the size of the packed weights");
	if (!sl_shape_equal(c->in[0].shape, weights_of(a)))
		return slp_reject(c, SL_ESHAPE, "w does not have the given sizes");
	c->out[0] = (struct slp_type){SL_UINT8, SL_SHAPE(a->packed)};
	return SL_OK;
}

static double qconv2d_flops(const struct slp_infer *c)
{
	struct slp_qconv v = slp_qconv_of(c->attrs, c->in[0].shape);
	return 2.0 * (double)(v.n * v.oc * v.oh * v.ow) * (double)(v.each_in * v.kh * v.kw);
}

static double no_flops(const struct slp_infer *c)
{
	(void)c;
	return 0;
}

/* ---- reference --------------------------------------------------------------------------------------------------- */

static double window(const struct slp_kernel *k, const struct slp_qconv *c, int64_t n, int64_t i, int64_t j, int64_t o)
{
	const struct slp_qconv_attrs *a = k->attrs;
	double sum = k->nin > 3 ? slp_get(&k->in[3], o) : 0;
	for (int64_t e = 0; e < c->each_in * c->kh * c->kw; e++) {
		int64_t ch = o / c->each_out * c->each_in + e / (c->kh * c->kw);
		int64_t h = i * c->sh - c->top + e / c->kw % c->kh * c->dh, w = j * c->sw - c->left + e % c->kw * c->dw;
		if (h < 0 || h >= c->ih || w < 0 || w >= c->iw) continue;
		sum += (slp_get(&k->in[0], ((n * c->ih + h) * c->iw + w) * c->ic + ch) - a->x_zero) *
		       (slp_get(&k->in[1], o * c->each_in * c->kh * c->kw + e) - SLP_Q_WEIGHT_ZERO);
	}
	return sum;
}

static enum sl_status qconv2d_ref(const struct slp_kernel *k)
{
	const struct slp_qconv_attrs *a = k->attrs;
	struct slp_qconv c = slp_qconv_of(a, k->in[0].type.shape);
	if (a->packed) return slp_kernel_fail(k, SL_EUNSUPPORTED, "the plain kernel takes no packed weights");
	for (int64_t i = 0; i < slp_size(&k->out[0]); i++) {
		int64_t o = i % c.oc, at = i / c.oc;
		double sum = window(k, &c, at / (c.oh * c.ow), at / c.ow % c.oh, at % c.ow, o);
		slp_q_put(k->out[0].ptr, i, (int64_t)sum, (float)slp_get(&k->in[2], o), a->out, a->y_zero);
	}
	return SL_OK;
}

static enum sl_status pack_ref(const struct slp_kernel *k)
{
	int64_t size = slp_size(&k->in[0]);
	for (int64_t i = 0; i < slp_size(&k->out[0]); i++) slp_set(&k->out[0], i, i < size ? slp_get(&k->in[0], i) : 0);
	return SL_OK;
}

/* ---- loops on a CPU: weights in the order (kernel, channel of x, channel of y) ----------------------------------- */

struct loops {
	const struct slp_qconv_args *a;
	const int16_t *w;
	int32_t *sums; /* of each pixel's channels */
};

/* The channels of y are inside, so that elements lie next to each other. */
static void turn_weights(const struct slp_qconv_args *a, int16_t *w)
{
	const struct slp_qconv *c = &a->c;
	int64_t taps = c->kh * c->kw;
	for (int64_t o = 0; o < c->oc; o++)
		for (int64_t e = 0; e < c->each_in; e++)
			for (int64_t t = 0; t < taps; t++)
				w[(t * c->each_in + e) * c->oc + o] =
				        (int16_t)(a->w[(o * c->each_in + e) * taps + t] - SLP_Q_WEIGHT_ZERO);
}

SLP_CLONES static void add_scaled_weights(int32_t *sum, const int16_t *w, int32_t x, int64_t n)
{
	for (int64_t i = 0; i < n; i++) sum[i] += x * w[i];
}

SLP_CLONES static void add_products(int32_t *sum, const int16_t *w, const uint8_t *x, int32_t zero, int64_t n)
{
	for (int64_t i = 0; i < n; i++) sum[i] += (x[i] - zero) * w[i];
}

static void add_pixel(const struct slp_qconv_args *a, const int16_t *w, const uint8_t *x, int32_t *sum)
{
	const struct slp_qconv *c = &a->c;
	int zero = a->attrs->x_zero;
	if (c->each_in == 1 && c->each_out == 1) {
		add_products(sum, w, x, zero, c->oc);
		return;
	}
	for (int64_t g = 0; g < c->groups; g++)
		for (int64_t e = 0; e < c->each_in; e++)
			add_scaled_weights(sum + g * c->each_out, w + e * c->oc + g * c->each_out,
			                   x[g * c->each_in + e] - zero, c->each_out);
}

static void one_pixel(const struct loops *l, int64_t pixel)
{
	const struct slp_qconv_args *a = l->a;
	const struct slp_qconv *c = &a->c;
	int64_t n = pixel / (c->oh * c->ow), i = pixel / c->ow % c->oh, j = pixel % c->ow;
	int32_t *sum = l->sums + pixel * c->oc;
	for (int64_t o = 0; o < c->oc; o++) sum[o] = a->b ? a->b[o] : 0;
	for (int64_t t = 0; t < c->kh * c->kw; t++) {
		int64_t h = i * c->sh - c->top + t / c->kw * c->dh, w = j * c->sw - c->left + t % c->kw * c->dw;
		if (h < 0 || h >= c->ih || w < 0 || w >= c->iw) continue;
		add_pixel(a, l->w + t * c->each_in * c->oc, a->x + ((n * c->ih + h) * c->iw + w) * c->ic, sum);
	}
	for (int64_t o = 0; o < c->oc; o++)
		slp_q_put(a->y, pixel * c->oc + o, sum[o], a->scale[o], a->attrs->out, a->attrs->y_zero);
}

static void part(void *arg, int64_t begin, int64_t end)
{
	for (int64_t i = begin; i < end; i++) one_pixel(arg, i);
}

static enum sl_status by_loops(const struct slp_kernel *k, const struct slp_qconv_args *a)
{
	const struct slp_qconv *c = &a->c;
	int64_t pixels = c->n * c->oh * c->ow;
	int16_t *w = slp_workspace(SLP_WORK_ORDER, (size_t)(slp_size(&k->in[1]) + 1) * sizeof *w);
	struct loops l = {a, w, slp_workspace(SLP_WORK_CALL, (size_t)(pixels * c->oc + 1) * sizeof *l.sums)};
	if (!w || !l.sums) return slp_kernel_fail(k, SL_ENOMEM, "no memory for sums");
	turn_weights(a, w);
	slp_parallel_for(pixels, SLP_GRAIN / (c->oc * c->each_in * c->kh * c->kw + 1) + 1, part, &l);
	return SL_OK;
}

/* ---- CPU --------------------------------------------------------------------------------------------------------- */

static enum sl_status qconv2d_cpu(const struct slp_kernel *k)
{
	struct slp_qconv_args a = {.attrs = k->attrs,
	                           .c = slp_qconv_of(k->attrs, k->in[0].type.shape),
	                           .x = k->in[0].ptr,
	                           .w = k->in[1].ptr,
	                           .scale = k->in[2].ptr,
	                           .b = k->nin > 3 ? k->in[3].ptr : NULL,
	                           .y = k->out[0].ptr};
	if (slp_size(&k->out[0]) == 0) return SL_OK;
	enum sl_status s = slp_qconv_onednn(k, &a);
	return s == SL_EUNSUPPORTED ? by_loops(k, &a) : s;
}

static const int32_t some; /* not read: all packed weights belong to calls with a bias */

static struct slp_qconv_args args_of(const struct slp_qconv_attrs *a)
{
	return (struct slp_qconv_args){
	        .attrs = a,
	        .c = slp_qconv_of(a, SL_SHAPE(a->images, a->size[0], a->size[1], a->channels[0])),
	        .b = &some};
}

static enum sl_status pack_cpu(const struct slp_kernel *k)
{
	const struct slp_qconv_attrs *attrs = k->attrs;
	struct slp_qconv_args a = args_of(attrs);
	a.w = k->in[0].ptr;
	enum sl_status s = slp_qconv_onednn_pack(k, &a, k->out[0].ptr, (size_t)attrs->packed);
	return s == SL_EUNSUPPORTED ? pack_ref(k) : s;
}

bool slp_qconv_plan(struct slp_qconv_attrs *a, int threads)
{
	struct slp_qconv_args args = args_of(a);
	int before = omp_get_max_threads(); /* oneDNN reads it, so it must be the team's */
	omp_set_num_threads(threads);
	a->packed = (int64_t)slp_qconv_onednn_packed(&args, threads);
	omp_set_num_threads(before);
	return a->packed > 0;
}

const struct sl_op slp_op_qconv2d = {
        .name = "qconv2d",
        .doc = "convolution of quantised images, channels last",
        .args = "x w scale b",
        .nin_min = 3,
        .nin_max = 4,
        .nout = 1,
        .attr_table = attr_table,
        .attrs_size = sizeof(struct slp_qconv_attrs),
        .rows = SLP_ROWS(SLP_ROW(SLP_DTYPE(SL_UINT8) | SLP_F32, qconv2d_cpu, slp_cuda_qconv2d)),
        .infer = qconv2d_infer,
        .flops = qconv2d_flops,
        .grad = slp_constant,
        .ref = qconv2d_ref,
};

const struct sl_op slp_op_qconv2d_pack = {
        .name = "qconv2d_pack",
        .doc = "weights as qconv2d takes them",
        .args = "w",
        SLP_NIN(1),
        .nout = 1,
        .attr_table = attr_table,
        .attrs_size = sizeof(struct slp_qconv_attrs),
        .rows = SLP_ROWS(SLP_CPU_ROW(SLP_DTYPE(SL_UINT8), pack_cpu, NULL)),
        .infer = pack_infer,
        .flops = no_flops,
        .ref = pack_ref,
};
