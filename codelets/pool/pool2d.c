/* Pooling in two dimensions: the largest or the mean element under a window.
 *
 * These are two operations behind one public function, because their gradients read different tensors: that of the
 * largest reads x, that of the mean none. */
#include "op_list/pool.h"
#include "options.h"
#include "pool2d.h"
#include "starling/arithmetic.h"
#include "starling/primitives.h"

#include <math.h>

/* clang-format off */
#define ATTR(type, prefix, name, field, kind, count, doc) {name, kind, offsetof(type, prefix field), count, doc, false, false}
#define POOL_ATTRS(t, prefix)                                                                                          \
	ATTR(t, prefix, "type", pool.type, SLP_INT, 1, "0: largest element, 1: mean"),                                 \
	ATTR(t, prefix, "kernel", pool.kernel, SLP_INT, 2, "height and width of the window"),                          \
	ATTR(t, prefix, "stride", pool.stride, SLP_INT, 2, "steps of the window down and across"),                     \
	ATTR(t, prefix, "pad", pool.pad, SLP_INT, 2, "border around the image"),                                       \
	ATTR(t, prefix, "global", pool.global, SLP_BOOL, 1, "one window of the whole image"),                          \
	ATTR(t, prefix, "ceil", pool.ceil, SLP_BOOL, 1, "windows that overlap the end count too"),                     \
	ATTR(t, prefix, "exclude_pad", pool.exclude_pad, SLP_BOOL, 1, "means count only elements inside the image"),   \
	ATTR(t, prefix, "x_layout", x_layout, SLP_INT, 1, "of x and its gradient"),                                    \
	ATTR(t, prefix, "y_layout", y_layout, SLP_INT, 1, "of y and its gradient")
/* clang-format on */

const struct slp_attr slp_pool_attr_table[] = {POOL_ATTRS(struct slp_pool2d_attrs, ), {0}};

static const struct slp_attr grad_attrs[] = {
        POOL_ATTRS(struct slp_pool2d_grad, of.),
        SLP_ATTR(struct slp_pool2d_grad, size, SLP_INT64, 2, "height and width of the input"),
        SLP_ATTR(struct slp_pool2d_grad, relu, SLP_BOOL, 1, "through the relu that x came from, too"),
        {0},
};

/* ---- shapes ----------------------------------------------------------------------------------------------------- */

static void set_defaults(struct sl_pool2d_opts *o, sl_shape x)
{
	bool given = o->stride[0] != 0;
	for (int i = 0; i < 2; i++) {
		if (o->global) {
			o->kernel[i] = (int)x.dim[2 + i];
			o->stride[i] = 1;
			o->pad[i] = 0;
		}
		if (o->kernel[i] == 0) o->kernel[i] = o->kernel[0];
		if (o->stride[i] == 0) o->stride[i] = given ? o->stride[0] : o->kernel[i];
	}
}

static enum sl_status check(const struct slp_infer *c, const struct sl_pool2d_opts *o, sl_shape x)
{
	for (int i = 0; i < 2; i++) {
		if (o->kernel[i] < 1 || o->stride[i] < 1)
			return slp_reject(c, SL_EINVAL, "kernel must be given and, like stride, positive");
		if (o->pad[i] < 0 || o->pad[i] >= o->kernel[i])
			return slp_reject(c, SL_EINVAL, "pad must be at least 0 and less than the kernel");
		if (o->kernel[i] > x.dim[2 + i] + 2 * (int64_t)o->pad[i])
			return slp_reject(c, SL_ESHAPE, "%s of the window is %d, of the padded image %lld",
			                  i ? "width" : "height", o->kernel[i],
			                  (long long)x.dim[2 + i] + 2 * o->pad[i]);
	}
	return SL_OK;
}

static enum sl_status check_layouts(const struct slp_infer *c, const struct slp_pool2d_attrs *a)
{
	int x = a->x_layout, y = a->y_layout;
	bool plain_or_n16 =
	        (x == SLP_LAYOUT_PLAIN || x == SLP_LAYOUT_N16) && (y == SLP_LAYOUT_PLAIN || y == SLP_LAYOUT_N16);
	if (plain_or_n16 || (x == SLP_LAYOUT_NHWC && y == SLP_LAYOUT_NHWC)) return SL_OK;
	return slp_reject(c, SL_EINVAL, "x and y are each plain or n16, or both nhwc");
}

/* Windows along one axis; `ceil` adds one that starts inside the image or before it, if elements are left over. */
static int64_t windows(const struct sl_pool2d_opts *o, int axis, int64_t size)
{
	int64_t room = size + 2 * (int64_t)o->pad[axis] - o->kernel[axis], stride = o->stride[axis];
	int64_t n = room / stride + 1;
	return o->ceil && room % stride && n * stride < size + o->pad[axis] ? n + 1 : n;
}

/* Puts defaults into *a and computes y's shape. */
enum sl_status slp_pool_shape(const struct slp_infer *c, struct slp_pool2d_attrs *a, sl_shape x, sl_shape *y)
{
	struct sl_pool2d_opts *o = &a->pool;
	for (int i = 0; i < c->nin; i++)
		if (!slp_is_float(c->in[i].dtype) || c->in[i].dtype != c->in[0].dtype)
			return slp_reject(c, SL_EDTYPE, "inputs must be float32 or float64");
	if (x.ndim != 4) return slp_reject(c, SL_ESHAPE, "input must have 4 axes, and has %d", x.ndim);
	if (check_layouts(c, a) != SL_OK) return SL_EINVAL;
	if (slp_layout_among(SLP_LAYOUT_N16, a->x_layout, a->y_layout) && x.dim[0] % SLP_N16_IMAGES)
		return slp_reject(c, SL_ESHAPE, "the layout n16 needs a multiple of %d images", SLP_N16_IMAGES);
	set_defaults(o, x);
	enum sl_status s = check(c, o, x);
	if (s == SL_OK) *y = SL_SHAPE(x.dim[0], x.dim[1], windows(o, 0, x.dim[2]), windows(o, 1, x.dim[3]));
	return s;
}

static enum sl_status pool_infer(struct slp_infer *c)
{
	c->out[0].dtype = c->in[0].dtype;
	return slp_pool_shape(c, c->attrs, c->in[0].shape, &c->out[0].shape);
}

/* Checks the number of inputs: the gradient of the largest reads x, that of the mean only for the relu. */
static enum sl_status check_count(const struct slp_infer *c)
{
	const struct slp_pool2d_grad *a = c->attrs;
	bool avg = c->op == &slp_op_avg_pool2d_grad || c->op == &slp_op_avg_pool2d_grad_sums;
	if (avg && c->nin != (a->relu ? 2 : 1))
		return slp_reject(c, SL_EINVAL, "takes dy, or with the attribute relu x and dy");
	return SL_OK;
}

/* dy is the last input; x is the first, or has its planes and the size of the attributes. */
static enum sl_status grad_infer(struct slp_infer *c)
{
	struct slp_pool2d_grad *a = c->attrs;
	if (check_count(c) != SL_OK) return SL_EINVAL;
	sl_shape dy = c->in[c->nin - 1].shape, x = c->in[0].shape, y;
	if (dy.ndim != 4) return slp_reject(c, SL_ESHAPE, "the gradient must have 4 axes, and has %d", dy.ndim);
	if (c->nin == 1) x = SL_SHAPE(dy.dim[0], dy.dim[1], a->size[0], a->size[1]);
	enum sl_status s = slp_pool_shape(c, &a->of, x, &y);
	if (s != SL_OK) return s;
	char text[128];
	if (!sl_shape_equal(y, dy))
		return slp_reject(c, SL_ESHAPE, "the gradient must have shape %s", sl_shape_string(y, text));
	c->out[0] = (struct slp_type){c->in[0].dtype, x};
	return SL_OK;
}

/* One for each element under each window; infer has completed the attributes. */
static double pool_flops(const struct slp_infer *c)
{
	const struct sl_pool2d_opts *o = &((const struct slp_pool2d_attrs *)c->attrs)->pool;
	return (double)sl_shape_size(c->out[0].shape) * o->kernel[0] * o->kernel[1];
}

static double grad_flops(const struct slp_infer *c)
{
	const struct slp_pool2d_grad *a = c->attrs;
	return (double)sl_shape_size(c->in[c->nin - 1].shape) * a->of.pool.kernel[0] * a->of.pool.kernel[1];
}

/* ---- gradients -------------------------------------------------------------------------------------------------- */

/* Layouts and relu have no gradient: graph passes add them after autograd. */
static enum sl_status check_plain(const struct slp_grad *g)
{
	const struct slp_pool2d_attrs *a = g->attrs;
	bool relu = g->op == &slp_op_avg_pool2d_grad && ((const struct slp_pool2d_grad *)g->attrs)->relu;
	if (!a->x_layout && !a->y_layout && !relu) return SL_OK;
	slp_call_fail(g->at, g->op->name, SL_EUNSUPPORTED, "a pooling made by a graph pass has no gradient");
	return SL_EUNSUPPORTED;
}

static struct slp_pool2d_grad grad_opts(const struct slp_grad *g)
{
	sl_shape x = sl_tensor_shape(g->in[0]);
	return (struct slp_pool2d_grad){.of = *(const struct slp_pool2d_attrs *)g->attrs, .size = {x.dim[2], x.dim[3]}};
}

static enum sl_status max_grad(struct slp_grad *g)
{
	struct slp_pool2d_grad a = grad_opts(g);
	if (check_plain(g) != SL_OK) return SL_EUNSUPPORTED;
	g->din[0] = slp_apply1(g->at, &slp_op_max_pool2d_grad, &a, 2, (sl_tensor *const[]){g->in[0], g->dout[0]});
	return SL_OK;
}

static enum sl_status avg_grad(struct slp_grad *g)
{
	struct slp_pool2d_grad a = grad_opts(g);
	if (check_plain(g) != SL_OK) return SL_EUNSUPPORTED;
	g->din[0] = slp_apply1(g->at, &slp_op_avg_pool2d_grad, &a, 1, (sl_tensor *const[]){g->dout[0]});
	return SL_OK;
}

/* The mean is linear: the gradient of its gradient is the mean. */
static enum sl_status avg_grad_grad(struct slp_grad *g)
{
	if (check_plain(g) != SL_OK) return SL_EUNSUPPORTED;
	g->din[0] =
	        slp_apply1(g->at, &slp_op_avg_pool2d, &((const struct slp_pool2d_grad *)g->attrs)->of, 1, &g->dout[0]);
	return SL_OK;
}

/* ---- reference -------------------------------------------------------------------------------------------------- */

/* Calls visit(k, p, window, plane, element of y) for every window in turn. */
typedef void visit_fn(const struct slp_kernel *k, const struct slp_pool *p, struct slp_window w, int64_t plane,
                      int64_t y);

static enum sl_status each_window(const struct slp_kernel *k, visit_fn *visit)
{
	struct slp_pool p = slp_pool_of(k);
	for (int64_t plane = 0; plane < p.planes; plane++)
		for (int64_t i = 0; i < p.oh; i++)
			for (int64_t j = 0; j < p.ow; j++)
				visit(k, &p, slp_pool_window(&p, i, j), plane, slp_pool_y(&p, plane, i * p.ow + j));
	return SL_OK;
}

/* The same into a gradient of zeros, which then goes through the relu. */
static enum sl_status each_window_back(const struct slp_kernel *k, visit_fn *visit)
{
	int64_t size = slp_size(&k->out[0]);
	for (int64_t i = 0; i < size; i++) slp_set(&k->out[0], i, 0);
	enum sl_status s = each_window(k, visit);
	for (int64_t i = 0; slp_pool_has_relu(k) && i < size; i++)
		if (slp_get(&k->in[0], i) <= 0) slp_set(&k->out[0], i, 0);
	return s;
}

static int64_t largest(const struct slp_kernel *k, const struct slp_pool *p, struct slp_window w, int64_t plane)
{
	int64_t best = slp_pool_x(p, plane, w.h0 * p->iw + w.w0);
	for (int64_t h = w.h0; h < w.h1; h++)
		for (int64_t v = w.w0; v < w.w1; v++) {
			int64_t at = slp_pool_x(p, plane, h * p->iw + v);
			double a = slp_get(&k->in[0], best), b = slp_get(&k->in[0], at);
			if (SLP_POOL_BEATS(b, a)) best = at;
		}
	return best;
}

static void max_window(const struct slp_kernel *k, const struct slp_pool *p, struct slp_window w, int64_t plane,
                       int64_t y)
{
	slp_set(&k->out[0], y, slp_get(&k->in[0], largest(k, p, w, plane)));
}

static void max_grad_window(const struct slp_kernel *k, const struct slp_pool *p, struct slp_window w, int64_t plane,
                            int64_t y)
{
	int64_t best = largest(k, p, w, plane);
	slp_set(&k->out[0], best, slp_get(&k->out[0], best) + slp_get(&k->in[1], y));
}

static void avg_window(const struct slp_kernel *k, const struct slp_pool *p, struct slp_window w, int64_t plane,
                       int64_t y)
{
	double sum = 0;
	for (int64_t h = w.h0; h < w.h1; h++)
		for (int64_t v = w.w0; v < w.w1; v++) sum += slp_get(&k->in[0], slp_pool_x(p, plane, h * p->iw + v));
	slp_set(&k->out[0], y, sum / (double)w.count);
}

static void avg_grad_window(const struct slp_kernel *k, const struct slp_pool *p, struct slp_window w, int64_t plane,
                            int64_t y)
{
	double share = slp_get(&k->in[k->nin - 1], y) / (double)w.count;
	for (int64_t h = w.h0; h < w.h1; h++)
		for (int64_t v = w.w0; v < w.w1; v++) {
			int64_t i = slp_pool_x(p, plane, h * p->iw + v);
			slp_set(&k->out[0], i, slp_get(&k->out[0], i) + share);
		}
}

static enum sl_status max_pool2d_ref(const struct slp_kernel *k)
{
	return each_window(k, max_window);
}

static enum sl_status avg_pool2d_ref(const struct slp_kernel *k)
{
	return each_window(k, avg_window);
}

static enum sl_status max_pool2d_grad_ref(const struct slp_kernel *k)
{
	return each_window_back(k, max_grad_window);
}

static enum sl_status avg_pool2d_grad_ref(const struct slp_kernel *k)
{
	return each_window_back(k, avg_grad_window);
}

/* ---- public ----------------------------------------------------------------------------------------------------- */

/* The largest (SL_POOL_MAX, the default) or mean (SL_POOL_AVG) element under a window that slides over each channel of
 * x (n, channels, height, width), float32 or float64: y (n, channels, h, w), h = (height + 2 pad - kernel) / stride +
 * 1.  .ceil rounds up instead of down, if the last window starts inside the image.  Means divide by the number of the
 * window's elements in the image and its padding, or with .exclude_pad in the image.  .global: one window, y (n,
 * channels, 1, 1).  .pad = {1} applies to the height alone: write {1, 1} for both; .kernel = {2} and .stride = {2}
 * apply to both.  SL_EINVAL: no kernel, options out of range, or one without effect: .exclude_pad of a maximum, another
 * beside .global; SL_ESHAPE: not 4 axes, or a window larger than the
 * image; SL_EDTYPE.
 *
 *	sl_tensor *y = sl_pool2d(x, .kernel = {3}, .stride = {2}, .pad = {1, 1}); */
sl_tensor *sl_pool2d_at(const char *at, sl_tensor *x, struct sl_pool2d_opts opts)
{
	if (!SLP_OPTIONS(sl_pool2d_opts, at, "sl_pool2d", &opts)) return NULL;
	if (opts.type != SL_POOL_MAX && opts.type != SL_POOL_AVG)
		return slp_call_fail(at, "sl_pool2d", SL_EINVAL, "type %d is neither SL_POOL_MAX nor SL_POOL_AVG",
		                     (int)opts.type);
	const char *idle = slp_pool2d_ignored(&opts);
	if (idle) return slp_call_fail(at, "sl_pool2d", SL_EINVAL, "%s", idle);
	return slp_apply1(at, opts.type == SL_POOL_MAX ? &slp_op_max_pool2d : &slp_op_avg_pool2d,
	                  &(struct slp_pool2d_attrs){.pool = opts}, 1, &x);
}

/* ---- again, for second derivatives ------------------------------------------------------------------------------ */

/* x with n more indices of an axis before or after it; their elements are -inf, which is never a maximum. */
static sl_tensor *with_border(const struct slp_grad *g, sl_tensor *x, int axis, int64_t n, bool before)
{
	if (n <= 0 || !x) return x;
	sl_shape shape = sl_tensor_shape(x);
	shape.dim[axis] = n;
	struct sl_make make = {sl_tensor_dtype(x), sl_tensor_device(x)};
	sl_tensor *border = sl_full_at(g->at, shape, -INFINITY, make);
	return sl_concat_at(g->at, before ? (sl_tensor *[]){border, x} : (sl_tensor *[]){x, border}, 2, axis);
}

static sl_tensor *bordered(const struct slp_grad *g, const struct sl_pool2d_opts *o, sl_shape y)
{
	sl_shape of = sl_tensor_shape(g->in[0]);
	sl_tensor *x = g->in[0];
	for (int i = 0; i < 2; i++) {
		x = with_border(g, x, 2 + i, o->pad[i], true);
		int64_t end = (y.dim[2 + i] - 1) * o->stride[i] + o->kernel[i];
		x = with_border(g, x, 2 + i, end - of.dim[2 + i] - o->pad[i], false);
	}
	return x;
}

/* The elements of all windows at one place. */
static sl_tensor *at_place(const struct slp_grad *g, const struct sl_pool2d_opts *o, sl_tensor *x, const int *place,
                           sl_shape y)
{
	for (int i = 0; i < 2 && x; i++)
		x = sl_slice_at(g->at, x, 2 + i, place[i], place[i] + (y.dim[2 + i] - 1) * o->stride[i] + 1,
		                o->stride[i]);
	return x;
}

/* The first of equal elements gets the gradient, as in the kernel. */
static bool max_again(const struct slp_grad *g, sl_tensor **out)
{
	struct sl_pool2d_opts o = ((const struct slp_pool2d_attrs *)g->attrs)->pool;
	sl_shape y = sl_tensor_shape(g->out[0]);
	if (check_plain(g) != SL_OK) return false;
	set_defaults(&o, sl_tensor_shape(g->in[0]));
	sl_tensor *x = bordered(g, &o, y), *most = NULL;
	for (int p[2] = {0, 0}; p[0] < o.kernel[0] && x; p[0]++)
		for (p[1] = 0; p[1] < o.kernel[1]; p[1]++) {
			sl_tensor *next = at_place(g, &o, x, p, y);
			most = most ? sl_maximum_at(g->at, most, next) : next;
		}
	out[0] = most;
	return most != NULL;
}

#define POOLING(op_name, text, prefix, attributes, attr_names, inputs, least, most, kept, gradient, repeat)            \
	const struct sl_op slp_op_##op_name = {                                                                        \
	        .name = #op_name,                                                                                      \
	        .doc = text,                                                                                           \
	        .args = inputs,                                                                                        \
	        .nin_min = least,                                                                                      \
	        .nin_max = most,                                                                                       \
	        .nout = 1,                                                                                             \
	        .attr_table = attr_names,                                                                              \
	        .attrs_size = sizeof(attributes),                                                                      \
	        .saves = kept,                                                                                         \
	        .rows = SLP_FLOAT_ROWS_OF(op_name##_ref, slp_##op_name##_cpu, slp_cuda_##op_name),                     \
	        .infer = prefix##_infer,                                                                               \
	        .flops = prefix##_flops,                                                                               \
	        .grad = gradient,                                                                                      \
	        .again = repeat,                                                                                       \
	        .ref = op_name##_ref,                                                                                  \
	};

POOLING(max_pool2d, "largest element under a window", pool, struct slp_pool2d_attrs, slp_pool_attr_table, "x", 1, 1,
        SLP_IN(0), max_grad, max_again)
POOLING(avg_pool2d, "mean of the elements under a window", pool, struct slp_pool2d_attrs, slp_pool_attr_table, "x", 1,
        1, 0, avg_grad, NULL)
POOLING(max_pool2d_grad, "gradient of max_pool2d: to the first largest element", grad, struct slp_pool2d_grad,
        grad_attrs, "x dy", 2, 2, 0, NULL, NULL)
POOLING(avg_pool2d_grad, "gradient of avg_pool2d", grad, struct slp_pool2d_grad, grad_attrs, "dy_or_x dy", 1, 2, 0,
        avg_grad_grad, NULL)

/* ---- gradients with the sums of their channels ------------------------------------------------------------------- */

/* As its gradient alone; the sums are output 1. */
static enum sl_status infer_sums(struct slp_infer *c)
{
	const struct slp_pool2d_grad *a = c->attrs;
	enum sl_status s = grad_infer(c);
	if (s != SL_OK) return s;
	if (a->of.x_layout || a->of.y_layout) return slp_reject(c, SL_EINVAL, "images must be in the plain layout");
	c->out[1] = (struct slp_type){c->out[0].dtype, SL_SHAPE(c->out[0].shape.dim[1])};
	return SL_OK;
}

static enum sl_status compute_sums(const struct slp_kernel *k, const struct sl_op *alone, slp_kernel_fn *gradient)
{
	struct slp_kernel inner = *k;
	sl_shape x = k->out[0].type.shape;
	int64_t plane = x.dim[2] * x.dim[3];
	inner.op = alone;
	inner.nout = 1;
	enum sl_status s = gradient(&inner);
	for (int64_t c = 0; s == SL_OK && c < x.dim[1]; c++) {
		double sum = 0;
		for (int64_t i = 0; i < x.dim[0]; i++)
			for (int64_t at = 0; at < plane; at++)
				sum += slp_get(&k->out[0], (i * x.dim[1] + c) * plane + at);
		slp_set(&k->out[1], c, sum);
	}
	return s;
}

/* Sums of the parts of each channel. */
static size_t sums_scratch(const struct slp_infer *c)
{
	return (size_t)c->in[0].shape.dim[1] * SLP_POOL_PARTS * sizeof(double);
}

#define SUMS(of, text, least, inputs)                                                                                  \
	static enum sl_status of##_sums_ref(const struct slp_kernel *k)                                                \
	{                                                                                                              \
		return compute_sums(k, &slp_op_##of, of##_ref);                                                        \
	}                                                                                                              \
	static enum sl_status of##_sums_cpu(const struct slp_kernel *k)                                                \
	{                                                                                                              \
		return compute_sums(k, &slp_op_##of, slp_##of##_cpu);                                                  \
	}                                                                                                              \
	const struct sl_op slp_op_##of##_sums = {                                                                      \
	        .name = #of "_sums",                                                                                   \
	        .doc = text,                                                                                           \
	        .args = inputs,                                                                                        \
	        .nin_min = least,                                                                                      \
	        .nin_max = 2,                                                                                          \
	        .nout = 2,                                                                                             \
	        .attr_table = grad_attrs,                                                                              \
	        .attrs_size = sizeof(struct slp_pool2d_grad),                                                          \
	        .rows = SLP_FLOAT_ROWS(of##_sums),                                                                     \
	        .infer = infer_sums,                                                                                   \
	        .flops = grad_flops,                                                                                   \
	        .scratch = sums_scratch,                                                                               \
	        .ref = of##_sums_ref,                                                                                  \
	};
SUMS(max_pool2d_grad, "gradient of max_pool2d, and the sum of each of its channels", 2, "x dy")
SUMS(avg_pool2d_grad, "gradient of avg_pool2d, and the sum of each of its channels", 1, "dy_or_x dy")
