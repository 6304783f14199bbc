/* conv3d: convolution of volumes, without a gradient: importers call it for networks that run on CPUs. Graph passes put
 * volumes into blocks of channels, as images (src/graph/pass/block.c). */
#include "common/activation.h"
#include "common/gemm.h"
#include "conv2d_kernels.h"
#include "fixed.h"
#include "op_list/conv.h"

/* clang-format off */
#define OPTION(field, count, doc) {#field, SLP_INT, offsetof(struct slp_conv3d_attrs, conv.field), count, doc, false, false}
/* clang-format on */
static const struct slp_attr attr_table[] = {
        OPTION(stride, 2, "steps of the window down and across"),
        OPTION(pad, 2, "zeros around each layer"),
        OPTION(dilation, 2, "steps between elements of the window"),
        OPTION(groups, 1, "independent groups of channels"),
        SLP_CONV_DEPTH_ATTRS(struct slp_conv3d_attrs),
        SLP_ATTR(struct slp_conv3d_attrs, activation, SLP_INT, 1, "applied to y: enum sl_activation"),
        {0},
};

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static struct slp_conv conv_of(const struct slp_conv3d_attrs *a, sl_shape x, sl_shape w)
{
	struct slp_conv c = {.n = x.dim[0],
	                     .ic = x.dim[1],
	                     .ih = x.dim[3],
	                     .iw = x.dim[4],
	                     .oc = w.dim[0],
	                     .kh = w.dim[3],
	                     .kw = w.dim[4]};
	slp_conv_set_result(&c, &a->conv);
	slp_conv_set_depth(&c, &a->depth, x.dim[2]);
	return c;
}

static bool are_positive(const struct slp_conv3d_attrs *a)
{
	const struct sl_conv2d_opts *o = &a->conv;
	bool ok = a->depth.stride > 0 && a->depth.dilation > 0 && a->depth.pad >= 0 && o->groups > 0;
	for (int i = 0; i < 2; i++) ok = ok && o->stride[i] > 0 && o->dilation[i] > 0 && o->pad[i] >= 0;
	return ok && a->activation >= 0 && a->activation < SL_ACTIVATIONS;
}

/* Whether a window is larger than the padded volume, or empty. */
static bool is_too_large(const struct slp_conv *c)
{
	return c->kd < 1 || c->kh < 1 || c->kw < 1 || (c->kd - 1) * c->dd + 1 > c->id + 2 * c->pd ||
	       (c->kh - 1) * c->dh + 1 > c->ih + 2 * c->ph || (c->kw - 1) * c->dw + 1 > c->iw + 2 * c->pw;
}

static enum sl_status infer(struct slp_infer *c)
{
	struct slp_conv3d_attrs *a = c->attrs;
	sl_shape x = c->in[0].shape, w = c->in[1].shape;
	slp_conv_defaults(&a->conv);
	if (!a->depth.stride) a->depth.stride = 1;
	if (!a->depth.dilation) a->depth.dilation = 1;
	for (int i = 0; i < c->nin; i++)
		if (c->in[i].dtype != SL_FLOAT32) return slp_reject(c, SL_EDTYPE, "inputs must be float32");
	if (x.ndim != 5 || w.ndim != 5) return slp_reject(c, SL_ESHAPE, "x and w must have 5 axes");
	if (!are_positive(a))
		return slp_reject(c, SL_EINVAL, "stride, dilation and groups must be positive, pad not negative");
	if (x.dim[1] != w.dim[1] * a->conv.groups || w.dim[0] % a->conv.groups)
		return slp_reject(c, SL_ESHAPE, "%lld channels do not fit a kernel of %lld, in %d groups",
		                  (long long)x.dim[1], (long long)w.dim[1], a->conv.groups);
	if (c->nin == 3 && !sl_shape_equal(c->in[2].shape, SL_SHAPE(w.dim[0])))
		return slp_reject(c, SL_ESHAPE, "b must have an element for each of %lld channels",
		                  (long long)w.dim[0]);
	a->depth.kernel = (int)w.dim[2];
	struct slp_conv v = conv_of(a, x, w);
	if (is_too_large(&v)) return slp_reject(c, SL_ESHAPE, "the kernel is larger than the padded volume");
	c->out[0] = (struct slp_type){SL_FLOAT32, SL_SHAPE(v.n, v.oc, v.od, v.oh, v.ow)};
	return SL_OK;
}

static double flops(const struct slp_infer *c)
{
	struct slp_conv v = conv_of(c->attrs, c->in[0].shape, c->in[1].shape);
	return 2.0 * (double)(v.n * v.oc * v.od) * (double)(v.oh * v.ow) *
	       (double)(v.ic / v.groups * slp_conv_taps(&v));
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

static double window(const struct slp_kernel *k, const struct slp_conv *c, int64_t n, int64_t o, int64_t at)
{
	int64_t each = c->ic / c->groups, first = o / (c->oc / c->groups) * each, taps = slp_conv_taps(c);
	double sum = k->nin == 3 ? slp_get(&k->in[2], o) : 0;
	for (int64_t e = 0; e < each * taps; e++) {
		int64_t place = slp_conv_place(c, at, e % taps), ch = n * c->ic + first + e / taps;
		if (place >= 0)
			sum += slp_get(&k->in[0], ch * c->id * c->ih * c->iw + place) *
			       slp_get(&k->in[1], o * each * taps + e);
	}
	return sum;
}

static enum sl_status conv3d_ref(const struct slp_kernel *k)
{
	const struct slp_conv3d_attrs *a = k->attrs;
	struct slp_conv c = conv_of(a, k->in[0].type.shape, k->in[1].type.shape);
	int64_t plane = c.od * c.oh * c.ow, size = slp_size(&k->out[0]);
	for (int64_t i = 0; i < size; i++)
		slp_set(&k->out[0], i, window(k, &c, i / plane / c.oc, i / plane % c.oc, i % plane));
	slp_activate_all(k->out[0].ptr, size, a->activation);
	return SL_OK;
}

/* One volume at a time: a library reorders it, in memory of its size. */
static enum sl_status conv3d_cpu(const struct slp_kernel *k)
{
	const struct slp_conv3d_attrs *o = k->attrs;
	struct slp_conv c = conv_of(o, k->in[0].type.shape, k->in[1].type.shape);
	struct slp_conv_args a = {.c = c, .x = k->in[0].ptr, .w = k->in[1].ptr, .y = k->out[0].ptr};
	int64_t n = c.n, x = c.ic * c.id * c.ih * c.iw, y = c.oc * c.od * c.oh * c.ow;
	enum sl_status s = slp_fixed_sums() || !x || !y ? SL_EUNSUPPORTED : SL_OK;
	a.c.n = 1;
	if (k->nin == 3) a.b = k->in[2].ptr;
	for (int64_t i = 0; i < n && s == SL_OK; i++, a.x += x, a.y += y) s = slp_conv_onednn_alone(k, &a);
	if (s == SL_EUNSUPPORTED) return conv3d_ref(k);
	if (s == SL_OK) slp_activate_all(k->out[0].ptr, n * y, o->activation);
	return s;
}

sl_tensor *slp_conv3d(const char *at, sl_tensor *x, sl_tensor *w, sl_tensor *b, struct sl_conv2d_opts opts,
                      struct slp_conv_depth depth)
{
	struct slp_conv3d_attrs a = {.conv = opts, .depth = depth};
	return slp_apply1(at, &slp_op_conv3d, &a, b ? 3 : 2, (sl_tensor *const[]){x, w, b});
}

const struct sl_op slp_op_conv3d = {
        .name = "conv3d",
        .doc = "convolution of volumes, without a gradient",
        .args = "x w b",
        .nin_min = 2,
        .nin_max = 3,
        .nout = 1,
        .attr_table = attr_table,
        .attrs_size = sizeof(struct slp_conv3d_attrs),
        .rows = SLP_CPU_ROWS(conv3d_ref, conv3d_cpu),
        .infer = infer,
        .flops = flops,
        .ref = conv3d_ref,
};
