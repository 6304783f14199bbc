/* The computations of transforms. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "data/image/transforms.h"
#include "options.h"
#include "starling/data.h"

enum { MOST_CHANNELS = 4, LARGEST = 1 << 16 };

static bool is_image(const char *name, sl_shape in)
{
	char text[128];
	return in.ndim == 3 || slp_data_fail(SL_ESHAPE, "%s: x has shape %s, no image (channels, height, width)", name,
	                                     sl_shape_string(in, text));
}

static bool check_size(const char *name, const struct sl_transform *t)
{
	return (t->height >= 1 && t->width >= 1 && t->height <= LARGEST && t->width <= LARGEST) ||
	       slp_data_fail(SL_EINVAL, "%s: a result of %lld × %lld pixels", name, (long long)t->height,
	                     (long long)t->width);
}

static sl_shape sized(sl_shape in, const struct sl_transform *t)
{
	return SL_SHAPE(in.dim[0], t->height, t->width);
}

/* A number below n. */
static int64_t draw(struct sl_sample *s, int64_t n)
{
	return (int64_t)(sl_sample_uniform(s) * (double)n);
}

/* ---- crops ------------------------------------------------------------------------------------------------------ */

static bool crop_shape(const struct sl_transform *t, sl_shape in, sl_shape *out)
{
	const char *name = t->kind == SL_RANDOM_CROP ? "sl_random_crop" : "sl_center_crop";
	if (!is_image(name, in) || !check_size(name, t)) return false;
	int64_t pad = t->kind == SL_RANDOM_CROP ? t->pad : 0;
	if (pad < 0 || pad > LARGEST) return slp_data_fail(SL_EINVAL, "%s: pad is %lld", name, (long long)pad);
	if (t->height > in.dim[1] + 2 * pad || t->width > in.dim[2] + 2 * pad)
		return slp_data_fail(SL_ESHAPE, "%s: %lld × %lld pixels of an image of %lld × %lld", name,
		                     (long long)t->height, (long long)t->width, (long long)(in.dim[1] + 2 * pad),
		                     (long long)(in.dim[2] + 2 * pad));
	*out = sized(in, t);
	return true;
}

/* From row `top` and column `left` on, which may lie outside, where it is 0. */
static void crop(const struct sl_transform *t, sl_shape in, const float *from, float *to, int64_t top, int64_t left)
{
	int64_t h = in.dim[1], w = in.dim[2];
	int64_t begin = left < 0 ? -left : 0, end = w - left < t->width ? w - left : t->width;
	for (int64_t c = 0; c < in.dim[0]; c++)
		for (int64_t i = 0; i < t->height; i++, to += t->width) {
			int64_t row = top + i;
			if (row < 0 || row >= h || end <= begin) {
				memset(to, 0, (size_t)t->width * sizeof *to);
				continue;
			}
			memset(to, 0, (size_t)begin * sizeof *to);
			memcpy(to + begin, from + (c * h + row) * w + left + begin, (size_t)(end - begin) * sizeof *to);
			memset(to + end, 0, (size_t)(t->width - end) * sizeof *to);
		}
}

static bool random_crop(const struct sl_transform *t, sl_shape in, const float *from, float *to, struct sl_sample *s)
{
	int64_t top = draw(s, in.dim[1] + 2 * t->pad - t->height + 1),
	        left = draw(s, in.dim[2] + 2 * t->pad - t->width + 1);
	crop(t, in, from, to, top - t->pad, left - t->pad);
	return true;
}

static bool center_crop(const struct sl_transform *t, sl_shape in, const float *from, float *to, struct sl_sample *s)
{
	(void)s;
	crop(t, in, from, to, (in.dim[1] - t->height) / 2, (in.dim[2] - t->width) / 2);
	return true;
}

/* ---- flips ------------------------------------------------------------------------------------------------------ */

static bool flip_shape(const struct sl_transform *t, sl_shape in, sl_shape *out)
{
	*out = in;
	if (!(t->p >= 0 && t->p <= 1))
		return slp_data_fail(SL_EINVAL, "sl_random_flip: p is %g; it must be from 0 to 1", t->p);
	return is_image("sl_random_flip", in);
}

static void swap(float *a, float *b)
{
	float v = *a;
	*a = *b;
	*b = v;
}

static bool flip(const struct sl_transform *t, sl_shape in, float *x, struct sl_sample *s)
{
	int64_t h = in.dim[1], w = in.dim[2];
	if (sl_sample_uniform(s) >= slp_or(t->p, 0.5)) return true;
	for (int64_t c = 0; c < in.dim[0]; c++, x += h * w)
		if (t->vertical)
			for (int64_t i = 0; i < h / 2; i++)
				for (int64_t j = 0; j < w; j++) swap(x + i * w + j, x + (h - 1 - i) * w + j);
		else
			for (int64_t i = 0; i < h; i++)
				for (int64_t j = 0; j < w / 2; j++) swap(x + i * w + j, x + i * w + w - 1 - j);
	return true;
}

/* ---- colours ---------------------------------------------------------------------------------------------------- */

static bool normalise_shape(const struct sl_transform *t, sl_shape in, sl_shape *out)
{
	*out = in;
	if (in.ndim < 1 || in.dim[0] > MOST_CHANNELS)
		return slp_data_fail(SL_ESHAPE, "sl_normalise: x has no first axis of 1 to %d channels", MOST_CHANNELS);
	for (int c = 0; c < in.dim[0]; c++)
		if (!(t->std[c] >= 0) || (t->std[c] == 0 && slp_was_given(t->std[c])))
			return slp_data_fail(SL_EINVAL, "sl_normalise: std[%d] is %g, a positive number needed", c,
			                     t->std[c] + 0.0);
	return true;
}

static bool normalise(const struct sl_transform *t, sl_shape in, float *x, struct sl_sample *s)
{
	(void)s;
	int64_t n = sl_shape_size(in) / in.dim[0];
	for (int64_t c = 0; c < in.dim[0]; c++, x += n) {
		float mean = (float)t->mean[c], scale = t->std[c] > 0 ? (float)(1 / t->std[c]) : 1;
		for (int64_t i = 0; i < n; i++) x[i] = (x[i] - mean) * scale;
	}
	return true;
}

static bool jitter_shape(const struct sl_transform *t, sl_shape in, sl_shape *out)
{
	const double how[] = {t->brightness, t->contrast, t->saturation};
	*out = in;
	for (int i = 0; i < 3; i++)
		if (!(how[i] >= 0)) return slp_data_fail(SL_EINVAL, "sl_colour_jitter: %g, 0 or more needed", how[i]);
	if (!is_image("sl_colour_jitter", in)) return false;
	return in.dim[0] == 3 || in.dim[0] == 1 ||
	       slp_data_fail(SL_ESHAPE, "sl_colour_jitter: neither grey nor 3 colours");
}

/* x becomes grey + factor (x - grey), between 0 and 1. */
static void blend(float *x, const float *grey, int64_t step, int64_t n, float factor)
{
	for (int64_t i = 0; i < n; i++) {
		float v = grey[i * step] + factor * (x[i] - grey[i * step]);
		x[i] = v < 0 ? 0 : v > 1 ? 1 : v;
	}
}

static float grey_at(const float *x, int64_t n, int64_t channels, int64_t i)
{
	return channels == 3 ? 0.299f * x[i] + 0.587f * x[n + i] + 0.114f * x[2 * n + i] : x[i];
}

static float factor(struct sl_sample *s, double how)
{
	double low = how < 1 ? 1 - how : 0, u = sl_sample_uniform(s);
	return (float)(low + u * (1 + how - low));
}

static void saturate(float *x, int64_t n, float how)
{
	for (int64_t i = 0; i < n; i++) {
		float grey = grey_at(x, n, 3, i);
		for (int c = 0; c < 3; c++) blend(x + c * n + i, &grey, 0, 1, how);
	}
}

/* Three numbers are drawn, whatever the request; brightness first, then contrast, then saturation. */
static bool jitter(const struct sl_transform *t, sl_shape in, float *x, struct sl_sample *s)
{
	static const float black = 0;
	int64_t channels = in.dim[0], n = in.dim[1] * in.dim[2];
	float bright = factor(s, t->brightness), contrast = factor(s, t->contrast), colour = factor(s, t->saturation);
	if (t->brightness > 0) blend(x, &black, 0, channels * n, bright);
	if (t->contrast > 0) {
		double sum = 0;
		for (int64_t i = 0; i < n; i++) sum += grey_at(x, n, channels, i);
		float mean = (float)(sum / (double)n);
		blend(x, &mean, 0, channels * n, contrast);
	}
	if (t->saturation > 0 && channels == 3) saturate(x, n, colour);
	return true;
}

/* ---- sizes ------------------------------------------------------------------------------------------------------ */

static bool resize_shape(const struct sl_transform *t, sl_shape in, sl_shape *out)
{
	if (!is_image("sl_resize_image", in) || !check_size("sl_resize_image", t)) return false;
	*out = sized(in, t);
	return true;
}

static bool resize(const struct sl_transform *t, sl_shape in, const float *from, float *to, struct sl_sample *s)
{
	(void)s;
	return slp_resize(from, in, to, t->height, t->width);
}

/* The pixels of n that contribute to pixel i of m, from the first one on, and their weights; returns their number. */
static int64_t weigh(int64_t n, int64_t m, int64_t i, int64_t *first, float *weights)
{
	double scale = (double)n / (double)m, radius = scale > 1 ? scale : 1, center = ((double)i + 0.5) * scale,
	       sum = 0;
	int64_t begin = (int64_t)(center - radius + 0.5), end = (int64_t)(center + radius + 0.5);
	if (begin < 0 || center - radius + 0.5 < 0) begin = 0;
	if (end > n) end = n;
	for (int64_t k = begin; k < end; k++) {
		double away = ((double)k + 0.5 - center) / radius;
		double w = 1 - (away < 0 ? -away : away);
		weights[k - begin] = (float)(w > 0 ? w : 0);
		sum += w > 0 ? w : 0;
	}
	for (int64_t k = 0; k < end - begin; k++) weights[k] /= (float)sum;
	*first = begin;
	return end - begin;
}

static void add_row(float *to, const float *from, int64_t n, float weight)
{
	for (int64_t i = 0; i < n; i++) to[i] += weight * from[i];
}

/* The columns of `rows` rows, then the rows of each channel. */
static void shrink_columns(const float *from, int64_t rows, int64_t w, float *to, int64_t width, float *weights)
{
	for (int64_t j = 0; j < width; j++) {
		int64_t first, count = weigh(w, width, j, &first, weights);
		for (int64_t i = 0; i < rows; i++) {
			float sum = 0;
			for (int64_t k = 0; k < count; k++) sum += weights[k] * from[i * w + first + k];
			to[i * width + j] = sum;
		}
	}
}

bool slp_resize(const float *from, sl_shape in, float *to, int64_t height, int64_t width)
{
	int64_t c = in.dim[0], h = in.dim[1], w = in.dim[2], longest = h > w ? h : w;
	float *between = slp_try_malloc(((size_t)(c * h * width) + (size_t)longest + 1) * sizeof *between);
	if (!between)
		return slp_data_fail(SL_ENOMEM, "no memory to resize an image of %lld × %lld pixels", (long long)h,
		                     (long long)w);
	float *weights = between + c * h * width;
	shrink_columns(from, c * h, w, between, width, weights);
	memset(to, 0, (size_t)(c * height * width) * sizeof *to);
	for (int64_t i = 0; i < height; i++) {
		int64_t first, count = weigh(h, height, i, &first, weights);
		for (int64_t k = 0; k < c; k++)
			for (int64_t r = 0; r < count; r++)
				add_row(to + (k * height + i) * width, between + (k * h + first + r) * width, width,
				        weights[r]);
	}
	free(between);
	return true;
}

/* The limits of a window, with the defaults. */
struct ranges {
	double area[2], ratio[2];
};

static struct ranges ranges_of(const struct sl_transform *t)
{
	struct ranges r = {{0.08, 1}, {3.0 / 4, 4.0 / 3}};
	if (slp_was_given(t->area[0]) || t->area[1] != 0) memcpy(r.area, t->area, sizeof r.area);
	if (slp_was_given(t->ratio[0]) || t->ratio[1] != 0) memcpy(r.ratio, t->ratio, sizeof r.ratio);
	return r;
}

static bool resized_crop_shape(const struct sl_transform *t, sl_shape in, sl_shape *out)
{
	const char *name = "sl_random_resized_crop";
	struct ranges r = ranges_of(t);
	if (!is_image(name, in) || !check_size(name, t)) return false;
	if (!(r.area[0] > 0 && r.area[0] <= r.area[1] && r.area[1] <= 1))
		return slp_data_fail(SL_EINVAL, "%s: area is from %g to %g; it must be between 0 and 1", name,
		                     r.area[0], r.area[1]);
	if (!(r.ratio[0] > 0 && r.ratio[0] <= r.ratio[1] && r.ratio[1] < INFINITY))
		return slp_data_fail(SL_EINVAL, "%s: ratio is from %g to %g", name, r.ratio[0], r.ratio[1]);
	*out = sized(in, t);
	return true;
}

/* A window's rows and columns, and its corner. */
struct window {
	int64_t height, width, top, left;
};

static double between(struct sl_sample *s, const double range[2])
{
	return range[0] + sl_sample_uniform(s) * (range[1] - range[0]);
}

/* As torchvision: ten attempts, then the largest window in the middle whose ratio is allowed. */
static struct window draw_window(const struct sl_transform *t, sl_shape in, struct sl_sample *s)
{
	struct ranges range = ranges_of(t);
	double whole = (double)in.dim[1] * (double)in.dim[2];
	const double logs[2] = {log(range.ratio[0]), log(range.ratio[1])};
	for (int i = 0; i < 10; i++) {
		double size = whole * between(s, range.area), r = exp(between(s, logs));
		struct window w = {llround(sqrt(size / r)), llround(sqrt(size * r)), 0, 0};
		if (w.height < 1 || w.width < 1 || w.height > in.dim[1] || w.width > in.dim[2]) continue;
		w.top = draw(s, in.dim[1] - w.height + 1);
		w.left = draw(s, in.dim[2] - w.width + 1);
		return w;
	}
	struct window w = {in.dim[1], in.dim[2], 0, 0};
	if ((double)w.width < range.ratio[0] * (double)w.height) w.height = llround((double)w.width / range.ratio[0]);
	else if ((double)w.width > range.ratio[1] * (double)w.height)
		w.width = llround((double)w.height * range.ratio[1]);
	w.height = w.height < 1 ? 1 : w.height > in.dim[1] ? in.dim[1] : w.height;
	w.width = w.width < 1 ? 1 : w.width > in.dim[2] ? in.dim[2] : w.width;
	w.top = (in.dim[1] - w.height) / 2;
	w.left = (in.dim[2] - w.width) / 2;
	return w;
}

static bool resized_crop(const struct sl_transform *t, sl_shape in, const float *from, float *to, struct sl_sample *s)
{
	struct window w = draw_window(t, in, s);
	struct sl_transform cut = {.height = w.height, .width = w.width};
	float *part = slp_try_malloc((size_t)(in.dim[0] * w.height * w.width) * sizeof *part);
	if (!part) return slp_data_fail(SL_ENOMEM, "no memory for a part of an image");
	crop(&cut, in, from, part, w.top, w.left);
	bool ok = slp_resize(part, sized(in, &cut), to, t->height, t->width);
	free(part);
	return ok;
}

/* ---- the program's own ------------------------------------------------------------------------------------------ */

static bool map_shape(const struct sl_transform *t, sl_shape in, sl_shape *out)
{
	*out = in;
	return t->map || slp_data_fail(SL_EINVAL, "sl_map: there is no function");
}

static bool map(const struct sl_transform *t, sl_shape in, float *x, struct sl_sample *s)
{
	struct sl_sample own = *s;
	own.x = x;
	own.x_type = (struct sl_array){NULL, in, SL_FLOAT32};
	bool ok = t->map(t->arg, &own);
	memcpy(s->random, own.random, sizeof s->random);
	return ok ||
	       (sl_error() == SL_OK && slp_data_fail(SL_EINVAL, "sl_map: the function failed and did not say why"));
}

const struct slp_transform_rule *slp_transform_rule(enum sl_transform_kind kind)
{
	static const struct slp_transform_rule rules[] = {
	        [SL_RANDOM_CROP] = {"random crop", crop_shape, random_crop, NULL},
	        [SL_CENTER_CROP] = {"center crop", crop_shape, center_crop, NULL},
	        [SL_RANDOM_FLIP] = {"random flip", flip_shape, NULL, flip},
	        [SL_RESIZE] = {"resize", resize_shape, resize, NULL},
	        [SL_NORMALISE] = {"normalise", normalise_shape, NULL, normalise},
	        [SL_COLOUR_JITTER] = {"colour jitter", jitter_shape, NULL, jitter},
	        [SL_RANDOM_RESIZED_CROP] = {"random resized crop", resized_crop_shape, resized_crop, NULL},
	        [SL_MAP] = {"map", map_shape, NULL, map},
	};
	return (unsigned)kind < sizeof rules / sizeof *rules ? &rules[kind] : NULL;
}
