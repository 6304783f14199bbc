/* Convolution in bfloat16 on CPUs with AVX-512, by oneDNN, which adds in float32, and computes in float32 if the
 * processor has no instructions for bfloat16.  Cases that oneDNN refuses, or computes slowly, are converted to
 * float32. */
#include "common/activation.h"
#include "common/bf16.h"
#include "common/convert.h"
#include "common/widen.h"
#include "common/workspace.h"
#include "conv2d_kernels.h"
#include "op.h"
#include "starling/options.h"

/* ---- by oneDNN ------------------------------------------------------------------------------------------------ */

struct activation {
	sl_bfloat16 *y;
	int which;
};

static void activate(void *arg, int64_t begin, int64_t end)
{
	enum { PIECE = 2048 };
	const struct activation *a = arg;
	float wide[PIECE];
	for (int64_t n; begin < end; begin += n) {
		n = end - begin < PIECE ? end - begin : PIECE;
		slp_convert(SL_BFLOAT16, a->y + begin, SL_FLOAT32, wide, n);
		slp_activate_range(wide, n, a->which);
		slp_convert(SL_FLOAT32, wide, SL_BFLOAT16, a->y + begin, n);
	}
}

/* `n` images, from image `first` on. */
static struct slp_conv_args part_of(const struct slp_conv_args *a, int64_t first, int64_t n)
{
	const struct slp_conv *c = &a->c;
	struct slp_conv_args part = *a;
	part.x = (float *)((sl_bfloat16 *)a->x + first * c->ic * c->ih * c->iw);
	part.y = (float *)((sl_bfloat16 *)a->y + first * c->oc * c->oh * c->ow);
	part.c.n = n;
	return part;
}

/* The gradients of the parameters are added up in float32, and rounded once. */
static enum sl_status weights(const struct slp_kernel *k, const struct slp_conv_args *a, int64_t most)
{
	const struct slp_conv *c = &a->c;
	int64_t w = (c->oc * (c->ic / c->groups) * c->kh * c->kw + 15) / 16 * 16, n = w + c->oc;
	bool wide = k->out[0].type.dtype == SL_FLOAT32, whole = c->n <= most;
	float *work = wide && whole ? NULL : slp_workspace(SLP_WORK_PART, 2 * sizeof *work * (size_t)(n + 16));
	if (!work && !(wide && whole)) return slp_kernel_fail(k, SL_ENOMEM, "no memory for sums in float32");
	float *sums = wide ? a->w : work, *biases = wide ? a->b : work + w,
	      *more = work ? work + (n + 15) / 16 * 16 : NULL;
	enum sl_status s = SL_OK;
	for (int64_t i = 0; i < c->n && s == SL_OK; i += most) {
		struct slp_conv_args part = part_of(a, i, c->n - i < most ? c->n - i : most);
		part.w = i ? more : sums;
		part.b = !a->b ? NULL : i ? more + w : biases;
		s = slp_conv_bf16_weights(k, &part);
		if (s == SL_EUNSUPPORTED) s = slp_conv_onednn(k, &part);
		for (int64_t j = 0; i && j < slp_size(&k->out[0]); j++) sums[j] += more[j];
		for (int64_t j = 0; i && a->b && j < c->oc; j++) biases[j] += more[w + j];
	}
	if (s != SL_OK || wide) return s;
	slp_cpu_convert(k, &(struct slp_view){sums, {SL_FLOAT32, k->out[0].type.shape}}, &k->out[0]);
	if (a->b) slp_cpu_convert(k, &(struct slp_view){biases, {SL_FLOAT32, k->out[1].type.shape}}, &k->out[1]);
	return SL_OK;
}

static enum sl_status images(const struct slp_kernel *k, const struct slp_conv_args *a, int64_t most)
{
	enum sl_status s = SL_OK;
	for (int64_t i = 0; i < a->c.n && s == SL_OK; i += most) {
		struct slp_conv_args part = part_of(a, i, a->c.n - i < most ? a->c.n - i : most);
		s = slp_conv_onednn(k, &part);
	}
	struct activation f = {(sl_bfloat16 *)a->y, a->activation};
	if (s == SL_OK && a->activation != SL_IDENTITY) slp_parallel_for(slp_size(&k->out[0]), SLP_GRAIN, activate, &f);
	return s;
}

bool slp_conv_takes_nc16(void)
{
	return slp_conv_onednn_half();
}

/* Whether vectors of channels would stay half empty: kernels for float32 avoid that. */
static bool few_channels(const struct slp_conv_args *a)
{
	return !slp_layout_among(SLP_LAYOUT_NC16, a->x_layout, a->y_layout) && slp_conv_batch_pays(&a->c);
}

enum sl_status slp_conv2d_bf16(const struct slp_kernel *k)
{
	if (slp_conv_is_nhwc(k)) return slp_conv_by_plain(k, slp_conv2d_bf16);
	struct slp_conv_args a = slp_conv_args_of(k);
	if (slp_conv_is_empty(&a.c)) return k->op->ref(k);
	a.half = true;
	a.wide = slp_conv_attrs(k)->wide;
	int64_t most = slp_conv_images_at_once(&a.c);
	bool n16 = slp_layout_among(SLP_LAYOUT_N16, a.x_layout, a.y_layout);
	bool plain = !n16 && !a.cropped && !a.pool && !few_channels(&a);
	enum sl_status s = !plain                       ? SL_EUNSUPPORTED
	                   : a.pass == SLP_CONV_WEIGHTS ? weights(k, &a, most)
	                                                : images(k, &a, most);
	if (s != SL_EUNSUPPORTED) return s;
	return slp_layout_among(SLP_LAYOUT_NC16, a.x_layout, a.y_layout) ? k->op->ref(k) : slp_in_float32(k);
}
