/* The gradients of weights and biases of a convolution in bfloat16 as a product of matrices, (channels of y, places) by
 * (places, kernel · channels of x), by im2col: oneDNN's convolution pairs neighbours of a row, and is up to five times
 * slower where rows are short or strides are larger than 1.
 * K. Chellapilla et al., "High performance convolutional neural networks for document processing", 2006. */
#include <string.h>

#include "common/bf16.h"
#include "common/image_layout.h"
#include "common/workspace.h"
#include "conv2d_kernels.h"
#include "op.h"

enum { BLOCK = 16, SHORT_ROW = 7 };

struct job {
	const struct slp_conv_args *a;
	int64_t places, taps;   /* of all images; of the kernel */
	sl_bfloat16 *rows, *dy; /* (places, taps · ic), (places, oc) */
	float *dw;              /* (oc, taps · ic) */
};

static bool pays(const struct slp_conv_args *a)
{
	const struct slp_conv *c = &a->c;
	bool whole_blocks = c->ic % BLOCK == 0 && c->oc % BLOCK == 0 && c->groups == 1;
	return whole_blocks && (c->sh > 1 || c->sw > 1 || c->ow <= SHORT_ROW) && slp_bf16_available();
}

/* The channels at one place of an image, side by side. */
static void channels_of(const void *images, int layout, int64_t channels, int64_t plane, int64_t n, int64_t at,
                        sl_bfloat16 *to)
{
	const sl_bfloat16 *from = (const sl_bfloat16 *)images + n * channels * plane;
	if (layout == SLP_LAYOUT_NC16)
		for (int64_t c = 0; c < channels; c += BLOCK)
			memcpy(to + c, from + c * plane + at * BLOCK, BLOCK * sizeof *to);
	else
		for (int64_t c = 0; c < channels; c++) to[c] = from[c * plane + at];
}

static void one_place(const struct job *j, int64_t place)
{
	const struct slp_conv *c = &j->a->c;
	int64_t n = place / (c->oh * c->ow), oy = place / c->ow % c->oh, ox = place % c->ow;
	sl_bfloat16 *to = j->rows + place * j->taps * c->ic;
	for (int64_t t = 0; t < j->taps; t++, to += c->ic) {
		int64_t y = oy * c->sh - c->ph + t / c->kw * c->dh, x = ox * c->sw - c->pw + t % c->kw * c->dw;
		if (y < 0 || x < 0 || y >= c->ih || x >= c->iw) memset(to, 0, (size_t)c->ic * sizeof *to);
		else channels_of(j->a->x, j->a->x_layout, c->ic, c->ih * c->iw, n, y * c->iw + x, to);
	}
	channels_of(j->a->y, j->a->y_layout, c->oc, c->oh * c->ow, n, oy * c->ow + ox, j->dy + place * c->oc);
}

static void gather(void *arg, int64_t begin, int64_t end)
{
	for (int64_t place = begin; place < end; place++) one_place(arg, place);
}

/* Reorders the gradients of some channels of y as the weights are. */
static void scatter(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	int64_t ic = j->a->c.ic;
	for (int64_t o = begin; o < end; o++) {
		const float *from = j->dw + o * j->taps * ic;
		float *to = j->a->w + o * ic * j->taps;
		for (int64_t i = 0; i < ic; i++)
			for (int64_t t = 0; t < j->taps; t++) to[i * j->taps + t] = from[t * ic + i];
	}
}

static void add_biases(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	for (int64_t o = begin; o < end; o++) j->a->b[o] = 0;
	for (int64_t place = 0; place < j->places; place++)
		for (int64_t o = begin; o < end; o++)
			j->a->b[o] += slp_float_of_bfloat16(j->dy[place * j->a->c.oc + o]);
}

static bool place_memory(struct job *j)
{
	const struct slp_conv *c = &j->a->c;
	size_t row = (size_t)(j->taps * c->ic);
	size_t dw = row * (size_t)c->oc * sizeof(float), rows = row * (size_t)j->places * sizeof(sl_bfloat16),
	       dy = (size_t)(c->oc * j->places) * sizeof(sl_bfloat16);
	char *work = dw + rows + dy > slp_conv_most_work ? NULL : slp_workspace(SLP_WORK_CALL, dw + rows + dy);
	if (!work) return false;
	j->dw = (float *)work;
	j->rows = (sl_bfloat16 *)(work + dw);
	j->dy = (sl_bfloat16 *)(work + dw + rows);
	return true;
}

enum sl_status slp_conv_bf16_weights(const struct slp_kernel *k, const struct slp_conv_args *a)
{
	const struct slp_conv *c = &a->c;
	struct job j = {.a = a, .places = c->n * c->oh * c->ow, .taps = c->kh * c->kw};
	int64_t row = j.taps * c->ic;
	if (!pays(a) || !place_memory(&j)) return SL_EUNSUPPORTED;
	slp_parallel_for(j.places, 1 + SLP_GRAIN / (row + c->oc), gather, &j);
	struct slp_bf16_matrix y = {j.dy, c->oc, j.places, c->oc, true}, x = {j.rows, j.places, row, row, false},
	                       w = {j.dw, c->oc, row, row, false};
	enum sl_status s = slp_bf16_multiply(k, &y, &x, &w, true);
	if (s != SL_OK) return s;
	slp_parallel_for(c->oc, 1 + SLP_GRAIN / row, scatter, &j);
	if (a->b) slp_parallel_for(c->oc, BLOCK, add_biases, &j);
	return SL_OK;
}
