/* Convolution of many images with few channels: the gradients of weight and bias.
 *
 * As in conv2d_batch.c, the lanes of vectors are images, 16 or, with AVX2, twice 8.  Several output channels × one row
 * of a kernel are summed in registers while rows of x and of the gradient of y run by; lanes are added up at the end.
 *
 * Images are divided into parts, whose number depends on sizes alone, and the parts' sums are added in a fixed order:
 * the bits do not depend on the number of threads. */
#include "conv2d_batch.h"
#include "common/lanes.h"
#include "common/workspace.h"
#include "move/relayout.h"
#include "op.h"

enum {
	LANES = 16,
	WIDEST = 7,
	SUMS = 25,      /* in registers, or in twelve of them with AVX2 */
	UNITS = 64,     /* at least, if there are images for so many: for as many threads */
	NEAR = 24 << 10 /* bytes of dy that stay in the first cache */
};

struct strip;

struct weights {
	struct slp_conv c;
	const float *y;
	const float *x; /* in N16; y too, if y_n16 */
	bool y_n16;
	int pool; /* y is pooled, and then in N16 */
	const uint8_t *mask;
	float *partial;                     /* [part][oc][ic kh kw], then [part][oc] */
	int64_t groups, parts, tiles, rows; /* rows of dy at once */
	int tile;                           /* output channels at once */
	void (*multiply)(const struct slp_conv *, const struct strip *);
	bool no_memory; /* a thread had no memory */
};

/* Rows [i, end) of dy of a tile of channels with one channel of x; u is the row of the kernel. */
struct strip {
	const float *x, *y; /* the plane of x; the rows of dy, planes `plane` vectors apart */
	int64_t plane, i, end, u;
	float *sums; /* [tile][kw][LANES] */
};

/* Output columns [*j0, *j1) whose whole window lies in the image. */
static void inner_columns(const struct slp_conv *c, int64_t *j0, int64_t *j1)
{
	int64_t last = c->iw - 1 + c->pw - (c->kw - 1) * c->dw;
	*j0 = (c->pw + c->sw - 1) / c->sw;
	*j1 = last < 0 ? 0 : last / c->sw + 1;
	if (*j1 > c->ow) *j1 = c->ow;
	if (*j0 > *j1) *j0 = *j1;
}

/* A kernel for a width of kernels and a number of output channels at once. */
struct variant {
	int kw, tile;
	void (*multiply)(const struct slp_conv *, const struct strip *);
};

/* X(width of a kernel, output channels at once): as many sums as fit in registers, 25 or 12; fewer channels if that
 * leaves a smaller rest. */
#define WIDTH 16
#define VECTOR slp_v16
#define TARGET SLP_AVX512
#define NAME(x) x##_16
/* clang-format off */
#define VARIANTS(X)                                                                                                    \
	X(1, 16)                                                                                                       \
	X(1, 10) X(2, 12) X(2, 10) X(2, 8) X(3, 8) X(3, 7) X(3, 5) X(4, 6) X(4, 5) X(4, 4) X(5, 5) X(5, 4) X(5, 3)     \
	        X(6, 4) X(6, 3) X(7, 3) X(7, 2)
/* clang-format on */
#include "conv2d_batch_weights.h"

#define WIDTH 8
#define VECTOR slp_v8
#define TARGET SLP_AVX2
#define NAME(x) x##_8
#define VARIANTS(X) X(1, 12) X(1, 8) X(2, 6) X(2, 5) X(3, 4) X(3, 3) X(4, 3) X(4, 2) X(5, 2) X(6, 2) X(7, 1)
#include "conv2d_batch_weights.h"

/* The variant with the least work: two products a cycle, and two vectors loaded; NULL: none of this width. */
static const struct variant *variant_for(int64_t kw, int64_t channels)
{
	const struct variant *best = NULL, *v = slp_has_avx512() ? variants_16 : slp_has_avx2() ? variants_8 : NULL;
	int64_t least = 0;
	for (; v && v->kw; v++) {
		int64_t work = (channels + v->tile - 1) / v->tile * (2 * v->tile * kw + v->tile + kw);
		if (v->kw != kw || (best && work >= least)) continue;
		best = v;
		least = work;
	}
	return best;
}

/* ---- a unit: one part of the images, one tile of output channels ------------------------------------------------ */

/* The memory of a unit, in vectors of LANES: sums [ic][kh][tile][kw], sums of dy [tile], rows of dy [tile][rows ·
 * ow]. */
struct unit {
	const struct weights *w;
	int64_t part, tile, channels;
	float *sums, *bias, *y;
};

/* Adds `count` vectors of a channel of dy to the sum of its bias, in four chains. Vectors are explicit, because gcc adds
 * arrays of sums lane by lane, in memory. */
SLP_CLONES static void add_bias_to_unit(const struct unit *t, int64_t channel, const float *rows, int64_t count)
{
	float *bias = t->bias + channel * LANES;
	slp_v16 sum[4] = {{0}}, row;
	int64_t p = 0;
	memcpy(&sum[0], bias, sizeof sum[0]);
	for (; p + 4 <= count; p += 4) SLP_UNROLL for (int chain = 0; chain < 4; chain++)
		{
			memcpy(&row, rows + (p + chain) * LANES, sizeof row);
			sum[chain] += row;
		}
	for (; p < count; p++) {
		memcpy(&row, rows + p * LANES, sizeof row);
		sum[0] += row;
	}
	sum[0] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
	memcpy(bias, &sum[0], sizeof sum[0]);
}

/* Rows [i, end) of dy of a group in N16, also added to the sums of the bias: in place, or in t->y if they have another
 * layout or channels are missing. */
SLP_CLONES static const float *load_rows(const struct unit *t, int64_t group, int64_t i, int64_t end, int64_t *plane)
{
	const struct weights *w = t->w;
	const struct slp_conv *c = &w->c;
	int64_t count = (end - i) * c->ow, image = group * LANES, live = c->n - image, pixels = c->oh * c->ow;
	int64_t step = w->y_n16 ? LANES : 1; /* of neighbours in a plane */
	const float *y = w->y + image * c->oc * pixels + (t->tile * w->tile * pixels + i * c->ow) * step;
	bool direct = w->y_n16 && t->channels == w->tile && !w->pool;
	*plane = direct ? pixels : w->rows * c->ow;
	for (int64_t o = 0; o < t->channels; o++) {
		const float *from = y + o * pixels * step;
		float *to = t->y + o * w->rows * c->ow * LANES;
		int64_t channel = image / LANES * c->oc + t->tile * w->tile + o; /* among those of all groups */
		if (w->pool)
			slp_unpool_rows(w->y + channel * pixels / 4 * LANES, w->mask + channel * pixels * 2,
			                slp_conv_pool_share(w->pool), c->ow, i, end, to);
		else if (w->y_n16 && !direct) memcpy(to, from, sizeof *to * (size_t)(count * LANES));
		else if (!direct)
			slp_lanes_gather(from, c->oc * pixels, live > LANES ? LANES : (int)live, count, to, LANES);
		add_bias_to_unit(t, o, direct ? from : to, count);
	}
	return direct ? y : t->y;
}

static void add_group(const struct unit *t, int64_t group)
{
	const struct weights *w = t->w;
	const struct slp_conv *c = &w->c;
	for (int64_t i = 0; i < c->oh; i += w->rows) {
		int64_t end = i + w->rows < c->oh ? i + w->rows : c->oh;
		int64_t plane;
		const float *y = load_rows(t, group, i, end, &plane);
		for (int64_t q = 0; q < c->ic; q++)
			for (int64_t u = 0; u < c->kh; u++) {
				const float *x = w->x + (group * c->ic + q) * c->ih * c->iw * LANES;
				struct strip s = {.x = x,
				                  .y = y,
				                  .plane = plane,
				                  .i = i,
				                  .end = end,
				                  .u = u,
				                  .sums = t->sums + (q * c->kh + u) * w->tile * c->kw * LANES};
				w->multiply(c, &s);
			}
	}
}

/* Copies from [ic][kh][tile][kw] to the unit's place in [part][oc][ic][kh][kw]; `flat` has room for the whole
 * former. */
static void store_sums(const struct unit *t, float *flat)
{
	const struct weights *w = t->w;
	const struct slp_conv *c = &w->c;
	int64_t size = c->ic * c->kh * c->kw, strips = c->ic * c->kh, first = t->part * c->oc + t->tile * w->tile;
	slp_lanes_sum(t->sums, strips * w->tile * c->kw, flat);
	for (int64_t s = 0; s < strips; s++)
		for (int64_t o = 0; o < t->channels; o++)
			memcpy(w->partial + (first + o) * size + s * c->kw, flat + (s * w->tile + o) * c->kw,
			       sizeof *flat * (size_t)c->kw);
	slp_lanes_sum(t->bias, t->channels, w->partial + w->parts * c->oc * size + first);
}

static void run_units(void *arg, int64_t begin, int64_t end)
{
	struct weights *w = arg;
	const struct slp_conv *c = &w->c;
	size_t sums = (size_t)(c->ic * c->kh * c->kw * w->tile), y = (size_t)(w->tile * w->rows * c->ow);
	size_t vectors = (sums + (size_t)w->tile + y) * LANES;
	float *work = slp_workspace(SLP_WORK_THREAD, (vectors + sums) * sizeof *work);
	if (!work) w->no_memory = true;
	for (int64_t i = begin; work && i < end; i++) {
		struct unit t = {.w = w, .part = i / w->tiles, .tile = i % w->tiles, .sums = work};
		t.bias = t.sums + sums * LANES;
		t.y = t.bias + w->tile * LANES;
		t.channels = c->oc - t.tile * w->tile < w->tile ? c->oc - t.tile * w->tile : w->tile;
		memset(work, 0, vectors * sizeof *work);
		for (int64_t g = t.part * w->groups / w->parts; g < (t.part + 1) * w->groups / w->parts; g++)
			add_group(&t, g);
		store_sums(&t, work + vectors);
	}
}

/* ---- a call ----------------------------------------------------------------------------------------------------- */

struct total {
	const float *partial;
	int64_t size, parts;
	float *to;
};

static void add_parts(void *arg, int64_t begin, int64_t end)
{
	const struct total *t = arg;
	for (int64_t i = begin; i < end; i++) {
		float sum = 0;
		for (int64_t p = 0; p < t->parts; p++) sum += t->partial[p * t->size + i];
		t->to[i] = sum;
	}
}

bool slp_batch_has_width(int64_t kw)
{
	return variant_for(kw, 1) != NULL;
}

enum sl_status slp_conv_batch_weights(const struct slp_kernel *k, const struct slp_conv_args *a)
{
	const struct slp_conv *c = &a->c;
	const struct variant *variant = variant_for(c->kw, c->oc);
	if (!variant) return SL_EUNSUPPORTED;
	struct weights w = {.c = *c,
	                    .y = a->y,
	                    .x = a->x,
	                    .y_n16 = a->y_layout == SLP_LAYOUT_N16,
	                    .pool = a->pool,
	                    .mask = a->mask,
	                    .groups = (c->n + LANES - 1) / LANES,
	                    .tile = variant->tile,
	                    .multiply = variant->multiply};
	if (a->pool && !w.y_n16) return SL_EUNSUPPORTED;
	int64_t size = c->oc * c->ic * c->kh * c->kw, flat = c->ic * c->ih * c->iw;
	w.tiles = (c->oc + w.tile - 1) / w.tile;
	w.parts = w.tiles >= UNITS ? 1 : (UNITS + w.tiles - 1) / w.tiles;
	w.parts = w.parts > w.groups ? w.groups : w.parts;
	w.rows = NEAR / (w.tile * c->ow * LANES * (int64_t)sizeof(float));
	w.rows = w.rows < 1 ? 1 : w.rows > c->oh ? c->oh : w.rows;
	bool x_n16 = a->x_layout == SLP_LAYOUT_N16;
	int64_t packed = x_n16 ? 0 : w.groups * flat * LANES;
	float *work = slp_workspace(SLP_WORK_CALL, sizeof(float) * (size_t)(packed + w.parts * (size + c->oc + 16)));
	if (!work) return slp_kernel_fail(k, SL_ENOMEM, "no memory to reorder images in");
	w.partial = work + packed;
	if (!x_n16) {
		slp_to_n16(a->x, c->n, flat, work);
		w.x = work;
	}
	slp_parallel_for(w.parts * w.tiles, 1, run_units, &w);
	if (w.no_memory) return slp_kernel_fail(k, SL_ENOMEM, "no memory for a thread's sums");
	struct total weight = {w.partial, size, w.parts, a->w},
	             bias = {w.partial + w.parts * size, c->oc, w.parts, a->b};
	slp_parallel_for(size, 1 + SLP_GRAIN / w.parts, add_parts, &weight);
	if (a->b) add_parts(&bias, 0, c->oc);
	return SL_OK;
}
