/* Convolution on CPUs: chooses the implementation that is best for a call's sizes.
 *
 * The rule depends on sizes, the build and the CPU alone, so a call has the same bits every time (doc/performance.md
 * has the measurements behind it). */
#include "common/activation.h"
#include "common/nhwc.h"
#include "conv2d_kernels.h"
#include "common/workspace.h"
#include "move/relayout.h"
#include "op.h"

bool slp_conv_is_empty(const struct slp_conv *c)
{
	return c->n == 0 || c->ic == 0 || c->oc == 0 || c->ih == 0 || c->iw == 0;
}

struct slp_conv_args slp_conv_args_of(const struct slp_kernel *k)
{
	const struct slp_conv2d_attrs *o = slp_conv_attrs(k);
	struct slp_conv_args a = {.c = slp_conv_of(k),
	                          .pass = slp_conv_pass_of(k->op),
	                          .x_layout = o->x_layout,
	                          .y_layout = o->y_layout,
	                          .cropped = o->crop[0] || o->crop[1],
	                          .pool = o->pool,
	                          .activation = o->activation};
	if (a.pass == SLP_CONV_DATA) {
		a.y = k->in[0].ptr;
		a.w = k->in[1].ptr;
		a.x = k->out[0].ptr;
		if (a.pool) a.mask = k->in[2].ptr;
		return a;
	}
	a.x = k->in[0].ptr;
	if (a.pass == SLP_CONV_WEIGHTS) {
		a.y = k->in[1].ptr;
		a.w = k->out[0].ptr;
		if (slp_size(&k->out[1]) > 0) a.b = k->out[1].ptr;
		if (a.pool) a.mask = k->in[2].ptr;
		return a;
	}
	a.w = k->in[1].ptr;
	a.y = k->out[0].ptr;
	if (k->nin == 3) a.b = k->in[2].ptr;
	if (a.pool) a.mask = k->out[1].ptr;
	return a;
}

/* Whether products of matrices are best: the gradient of an image with at most three channels has few sums, each of
 * them long. */
static bool prefers_gemm(const struct slp_conv_args *a)
{
	return a->pass == SLP_CONV_DATA && a->c.groups == 1 && a->c.ic < 4 && a->c.n >= 8;
}

/* The ways that need images in the plain layout. */
static enum sl_status run_plain(const struct slp_kernel *k, const struct slp_conv_args *a)
{
	enum sl_status s = prefers_gemm(a) ? SL_EUNSUPPORTED : slp_conv_onednn(k, a);
	if (s == SL_EUNSUPPORTED) s = slp_conv_gemm(k, a);
	if (s == SL_OK && a->pass == SLP_CONV_FORWARD)
		slp_activate_all(a->y, a->c.n * a->c.oc * a->c.oh * a->c.ow, a->activation);
	return s;
}

/* The same for images in N16: copies them into the plain layout, and results back. */
static enum sl_status run_reordered(const struct slp_kernel *k, const struct slp_conv_args *a)
{
	const struct slp_conv *c = &a->c;
	struct slp_conv_args plain = *a;
	bool x_n16 = a->x_layout == SLP_LAYOUT_N16, y_n16 = a->y_layout == SLP_LAYOUT_N16;
	int64_t x = c->ic * c->ih * c->iw, y = c->oc * c->oh * c->ow;
	float *work = slp_workspace(SLP_WORK_ORDER, sizeof *work * (size_t)(c->n * (x + y)));
	if (!work) return slp_kernel_fail(k, SL_ENOMEM, "no memory to reorder images in");
	if (x_n16) plain.x = work;
	if (y_n16) plain.y = work + c->n * x;
	if (x_n16 && a->pass != SLP_CONV_DATA) slp_from_n16(a->x, c->n, x, plain.x);
	if (y_n16 && a->pass != SLP_CONV_FORWARD) slp_from_n16(a->y, c->n, y, plain.y);
	enum sl_status s = run_plain(k, &plain);
	if (x_n16 && a->pass == SLP_CONV_DATA) slp_to_n16(plain.x, c->n, x, a->x);
	if (y_n16 && a->pass == SLP_CONV_FORWARD) slp_to_n16(plain.y, c->n, y, a->y);
	return s;
}

/* ---- a part of the images at a time ------------------------------------------------------------------------------ */

/* Memory in which libraries reorder tensors is as large as these: many images at once would need more than all tensors
 * together, in addition to the memory that was checked when the call was made. */
size_t slp_conv_most_work = 128 << 20;

int64_t slp_conv_images_at_once(const struct slp_conv *c)
{
	enum { BLOCK = 16 }; /* of channels, as oneDNN has them; and of images in N16 */
	int64_t ic = c->ic < 4 ? c->ic : (c->ic + BLOCK - 1) / BLOCK * BLOCK, oc = (c->oc + BLOCK - 1) / BLOCK * BLOCK;
	double each = sizeof(float) * ((double)ic * (double)(c->ih * c->iw) + (double)oc * (double)(c->oh * c->ow));
	int64_t n = (int64_t)((double)slp_conv_most_work / each) / BLOCK * BLOCK;
	return n > BLOCK ? n : BLOCK;
}

/* `n` images, from image `first` on. */
static struct slp_conv_args part_of(const struct slp_conv_args *a, int64_t first, int64_t n)
{
	const struct slp_conv *c = &a->c;
	struct slp_conv_args part = *a;
	int64_t y = c->oc * c->oh * c->ow;
	if (a->mask) part.mask += first / 16 * 2 * y;
	part.x += first * c->ic * c->ih * c->iw;
	part.y += first * (a->pool ? y / 4 : y);
	part.c.n = n;
	return part;
}

static void add(float *sum, const float *part, int64_t n)
{
	for (int64_t i = 0; i < n; i++) sum[i] += part[i];
}

static enum sl_status run(const struct slp_kernel *k, const struct slp_conv_args *a);

static enum sl_status run_part(const struct slp_kernel *k, const struct slp_conv_args *a)
{
	if (a->pool) return slp_conv_unpooled(k, a, run);
	return slp_layout_among(SLP_LAYOUT_N16, a->x_layout, a->y_layout) ? run_reordered(k, a) : run_plain(k, a);
}

/* Adds the part's gradient of the weights to the sum. */
static enum sl_status add_part(const struct slp_kernel *k, const struct slp_conv_args *a, struct slp_conv_args *part)
{
	const struct slp_conv *c = &a->c;
	int64_t w = c->oc * (c->ic / c->groups) * c->kh * c->kw;
	float *sums = slp_workspace(SLP_WORK_PART, sizeof *sums * (size_t)(w + c->oc));
	if (!sums) return slp_kernel_fail(k, SL_ENOMEM, "no memory for the sums of a part");
	part->w = sums;
	part->b = a->b ? sums + w : NULL;
	enum sl_status s = run_part(k, part);
	if (s != SL_OK) return s;
	add(a->w, part->w, w);
	if (a->b) add(a->b, part->b, c->oc);
	return SL_OK;
}

static enum sl_status run_in_parts(const struct slp_kernel *k, const struct slp_conv_args *a)
{
	int64_t most = slp_conv_images_at_once(&a->c);
	enum sl_status s = SL_OK;
	for (int64_t i = 0; i < a->c.n && s == SL_OK; i += most) {
		struct slp_conv_args part = part_of(a, i, a->c.n - i < most ? a->c.n - i : most);
		s = i && a->pass == SLP_CONV_WEIGHTS ? add_part(k, a, &part) : run_part(k, &part);
	}
	return s;
}

static enum sl_status run(const struct slp_kernel *k, const struct slp_conv_args *a)
{
	bool n16 = slp_layout_among(SLP_LAYOUT_N16, a->x_layout, a->y_layout);
	enum sl_status s = !n16 && prefers_gemm(a) ? SL_EUNSUPPORTED : slp_conv_batch(k, a);
	return s == SL_EUNSUPPORTED ? run_in_parts(k, a) : s;
}

enum sl_status slp_conv_by_plain(const struct slp_kernel *k, slp_kernel_fn *kernel)
{
	struct slp_conv2d_attrs a = *slp_conv_attrs(k);
	static const struct {
		unsigned x, y, w;
	} at[SLP_CONV_PASSES] = {{SLP_IN(0), SLP_OUT(0), SLP_IN(1)},
	                         {SLP_OUT(0), SLP_IN(0), SLP_IN(1)},
	                         {SLP_IN(0), SLP_IN(1), SLP_OUT(0)}};
	enum slp_conv_pass pass = slp_conv_pass_of(k->op);
	unsigned nhwc = (a.x_layout == SLP_LAYOUT_NHWC ? at[pass].x : 0) |
	                (a.y_layout == SLP_LAYOUT_NHWC ? at[pass].y : 0) |
	                (a.w_layout == SLP_LAYOUT_NHWC ? at[pass].w : 0);
	a.x_layout = a.y_layout = a.w_layout = SLP_LAYOUT_PLAIN;
	return slp_by_plain(k, nhwc, &a, kernel);
}

enum sl_status slp_conv2d_cpu(const struct slp_kernel *k)
{
	if (slp_conv_is_nhwc(k)) return slp_conv_by_plain(k, slp_conv2d_cpu);
	struct slp_conv_args a = slp_conv_args_of(k);
	bool nc16 = slp_layout_among(SLP_LAYOUT_NC16, a.x_layout, a.y_layout); /* of a half type, promoted */
	return nc16 || slp_conv_is_empty(&a.c) ? k->op->ref(k) : run(k, &a);
}
