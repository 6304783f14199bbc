/* Convolution of many images with few channels: the gradients of weight and bias.
 *
 * As in conv2d_batch.c, the lanes of vectors are images, here 16.  Several output channels × one row of a kernel are
 * summed in registers while rows of x and of the gradient of y run by; lanes are added up at the end.
 *
 * Images are dealt to a number of parts that depends on sizes alone, and the parts' sums are added in a fixed order:
 * the result has the same bits whatever the threads. */
#include "conv2d_batch.h"
#include "common/lanes16.h"
#include "move/relayout.h"
#include "common/workspace.h"

enum {
	LANES = 16,
	SUMS = 25,
	WIDEST = 7,
	PARTS = 8,
	UNITS = 40,
	NEAR = 24 << 10 /* bytes of dy that stay in the first cache */
};

struct strip;

struct weights {
	struct slp_conv c;
	const float *y;
	const float *x; /* in lane order; y too, if y_lanes */
	bool y_lanes;
	int pool; /* y is pooled, and then in lane order */
	const uint8_t *mask;
	float *partial;                     /* [part][oc][ic kh kw], then [part][oc] */
	int64_t groups, parts, tiles, rows; /* rows of dy at once */
	int tile;                           /* output channels at once */
	void (*multiply)(const struct slp_conv *, const struct strip *);
	bool no_memory; /* some thread had none */
};

/* Rows [i, end) of dy of a tile of channels with one channel of x; u is the row of the kernel. */
struct strip {
	const float *x, *y; /* the plane of x; the rows of dy, planes `plane` vectors apart */
	int64_t plane, i, end, u;
	slp_v16 *sums; /* [tile][kw] */
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

/* acc[o][v] += dy[o][j] · x[v], where window elements outside the image count as 0 if `edge`. */
SLP_INLINE void column(const struct slp_conv *c, const int tile, const int kw, bool edge, const float *x,
                       const float *y, int64_t plane, int64_t j, slp_v16 acc[SUMS])
{
	slp_v16 xv[WIDEST], yv;
	SLP_UNROLL for (int v = 0; v < kw; v++)
	{
		int64_t w = j * c->sw - c->pw + v * c->dw;
		xv[v] = (slp_v16){0};
		if (!edge || (w >= 0 && w < c->iw)) memcpy(&xv[v], x + w * LANES, sizeof xv[v]);
	}
	SLP_UNROLL for (int o = 0; o < tile; o++)
	{
		memcpy(&yv, y + (o * plane + j) * LANES, sizeof yv);
		SLP_UNROLL for (int v = 0; v < kw; v++) acc[o * kw + v] += yv * xv[v];
	}
}

SLP_INLINE void multiply(const struct slp_conv *c, const struct strip *s, const int tile, const int kw)
{
	slp_v16 acc[SUMS];
	int64_t j0, j1;
	inner_columns(c, &j0, &j1);
	SLP_UNROLL for (int a = 0; a < tile * kw; a++) acc[a] = s->sums[a];
	for (int64_t i = s->i; i < s->end; i++) {
		int64_t h = i * c->sh - c->ph + s->u * c->dh;
		if (h < 0 || h >= c->ih) continue;
		const float *x = s->x + h * c->iw * LANES, *y = s->y + (i - s->i) * c->ow * LANES;
		for (int64_t j = 0; j < j0; j++) column(c, tile, kw, true, x, y, s->plane, j, acc);
		for (int64_t j = j0; j < j1; j++) column(c, tile, kw, false, x, y, s->plane, j, acc);
		for (int64_t j = j1; j < c->ow; j++) column(c, tile, kw, true, x, y, s->plane, j, acc);
	}
	SLP_UNROLL for (int a = 0; a < tile * kw; a++) s->sums[a] = acc[a];
}

/* X(width of a kernel, output channels at once): up to 25 sums; fewer channels where that leaves fewer of them over. */
/* clang-format off */
#define VARIANTS(X)                                                                                                    \
	X(1, 16)                                                                                                       \
	X(1, 10) X(2, 12) X(2, 10) X(2, 8) X(3, 8) X(3, 7) X(3, 5) X(4, 6) X(4, 5) X(4, 4) X(5, 5) X(5, 4) X(5, 3)     \
	        X(6, 4) X(6, 3) X(7, 3) X(7, 2)
/* clang-format on */
#define X(kw, tile)                                                                                                    \
	SLP_AVX512 static void multiply_##kw##_##tile(const struct slp_conv *c, const struct strip *s)                 \
	{                                                                                                              \
		multiply(c, s, tile, kw);                                                                              \
	}
VARIANTS(X)
#undef X

static const struct variant {
	int kw, tile;
	void (*multiply)(const struct slp_conv *, const struct strip *);
} variants[] = {
#define X(kw, tile) {kw, tile, multiply_##kw##_##tile},
        VARIANTS(X)
#undef X
};

/* The variant with the least work: two products a cycle, and two vectors loaded; NULL: none of this width. */
static const struct variant *variant_for(int64_t kw, int64_t channels)
{
	const struct variant *best = NULL;
	int64_t least = 0;
	for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
		const struct variant *v = &variants[i];
		int64_t work = (channels + v->tile - 1) / v->tile * (2 * v->tile * kw + v->tile + kw);
		if (v->kw != kw || (best && work >= least)) continue;
		best = v;
		least = work;
	}
	return best;
}

/* ---- a unit: one part of the images, one tile of output channels ------------------------------------------------ */

/* What a unit works in, all in vectors: sums [ic][kh][tile][kw], sums of dy [tile], rows of dy [tile][rows · ow]. */
struct unit {
	const struct weights *w;
	int64_t part, tile, channels;
	slp_v16 *sums, *bias, *y;
};

/* Adds `count` vectors of a channel of dy to the sum of its bias. */
SLP_AVX512 static void add_bias(const struct unit *t, int64_t channel, const float *rows, int64_t count)
{
	slp_v16 sum[4] = {t->bias[channel]}, v;
	int64_t p = 0;
	for (; p + 4 <= count; p += 4) SLP_UNROLL for (int l = 0; l < 4; l++)
		{
			memcpy(&v, rows + (p + l) * LANES, sizeof v);
			sum[l] += v;
		}
	for (; p < count; p++) {
		memcpy(&v, rows + p * LANES, sizeof v);
		sum[0] += v;
	}
	t->bias[channel] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Rows [i, end) of dy of a group in lane order, also added to the sums of the bias: as they are, or, where they are in
 * another order or channels are missing, in t->y. */
SLP_AVX512 static const float *load_rows(const struct unit *t, int64_t group, int64_t i, int64_t end, int64_t *plane)
{
	const struct weights *w = t->w;
	const struct slp_conv *c = &w->c;
	int64_t count = (end - i) * c->ow, image = group * LANES, live = c->n - image, pixels = c->oh * c->ow;
	int64_t step = w->y_lanes ? LANES : 1; /* of neighbours in a plane */
	const float *y = w->y + image * c->oc * pixels + (t->tile * w->tile * pixels + i * c->ow) * step;
	bool direct = w->y_lanes && t->channels == w->tile && !w->pool;
	*plane = direct ? pixels : w->rows * c->ow;
	for (int64_t o = 0; o < t->channels; o++) {
		const float *from = y + o * pixels * step;
		float *to = (float *)(t->y + o * w->rows * c->ow);
		int64_t channel = image / LANES * c->oc + t->tile * w->tile + o; /* among those of all groups */
		if (w->pool)
			slp_unpool_rows(w->y + channel * pixels / 4 * LANES, w->mask + channel * pixels * 2,
			                slp_conv_pool_share(w->pool), c->ow, i, end, to);
		else if (w->y_lanes && !direct) memcpy(to, from, sizeof *to * (size_t)(count * LANES));
		else if (!direct)
			slp_lanes_gather(from, c->oc * pixels, live > LANES ? LANES : (int)live, count, to, LANES);
		add_bias(t, o, direct ? from : to, count);
	}
	return direct ? y : (float *)t->y;
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
				struct strip s = {x, y, plane, i, end, u, t->sums + (q * c->kh + u) * w->tile * c->kw};
				w->multiply(c, &s);
			}
	}
}

/* Adds up lanes: to[i] for i in [0, count). */
SLP_AVX512 static void add_lanes(const slp_v16 *sums, int64_t count, float *to)
{
	for (int64_t i = 0; i < count; i += 16) {
		slp_v16 r[16];
		for (int l = 0; l < 16; l++) r[l] = i + l < count ? sums[i + l] : (slp_v16){0};
		slp_sum_lanes16(r);
		memcpy(to + i, &r[0], sizeof(float) * (size_t)(count - i < 16 ? count - i : 16));
	}
}

/* From [ic][kh][tile][kw] to the unit's place in [part][oc][ic][kh][kw]; `flat` has room for all of the former. */
static void store_sums(const struct unit *t, float *flat)
{
	const struct weights *w = t->w;
	const struct slp_conv *c = &w->c;
	int64_t size = c->ic * c->kh * c->kw, strips = c->ic * c->kh, first = t->part * c->oc + t->tile * w->tile;
	add_lanes(t->sums, strips * w->tile * c->kw, flat);
	for (int64_t s = 0; s < strips; s++)
		for (int64_t o = 0; o < t->channels; o++)
			memcpy(w->partial + (first + o) * size + s * c->kw, flat + (s * w->tile + o) * c->kw,
			       sizeof *flat * (size_t)c->kw);
	add_lanes(t->bias, t->channels, w->partial + w->parts * c->oc * size + first);
}

static void run_units(void *arg, int64_t begin, int64_t end)
{
	struct weights *w = arg;
	const struct slp_conv *c = &w->c;
	size_t sums = (size_t)(c->ic * c->kh * c->kw * w->tile), y = (size_t)(w->tile * w->rows * c->ow);
	slp_v16 *work =
	        slp_workspace(SLP_WORK_THREAD, (sums + (size_t)w->tile + y) * sizeof *work + sums * sizeof(float));
	if (!work) w->no_memory = true;
	for (int64_t i = begin; work && i < end; i++) {
		struct unit t = {w, i / w->tiles, i % w->tiles, 0, work, work + sums, work + sums + w->tile};
		t.channels = c->oc - t.tile * w->tile < w->tile ? c->oc - t.tile * w->tile : w->tile;
		memset(work, 0, (sums + (size_t)w->tile + y) * sizeof *work);
		for (int64_t g = t.part * w->groups / w->parts; g < (t.part + 1) * w->groups / w->parts; g++)
			add_group(&t, g);
		store_sums(&t, (float *)(t.y + y));
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
	                    .y_lanes = a->y_lanes,
	                    .pool = a->pool,
	                    .mask = a->mask,
	                    .groups = (c->n + LANES - 1) / LANES,
	                    .tile = variant->tile,
	                    .multiply = variant->multiply};
	if (a->pool && !a->y_lanes) return SL_EUNSUPPORTED;
	int64_t size = c->oc * c->ic * c->kh * c->kw, flat = c->ic * c->ih * c->iw;
	w.tiles = (c->oc + w.tile - 1) / w.tile;
	w.parts = w.tiles >= UNITS ? 1 : (UNITS + w.tiles - 1) / w.tiles;
	w.parts = w.parts > PARTS ? PARTS : w.parts;
	w.parts = w.parts > w.groups ? w.groups : w.parts;
	w.rows = NEAR / (w.tile * c->ow * LANES * (int64_t)sizeof(float));
	w.rows = w.rows < 1 ? 1 : w.rows > c->oh ? c->oh : w.rows;
	int64_t packed = a->x_lanes ? 0 : w.groups * flat * LANES;
	float *work = slp_workspace(SLP_WORK_CALL, sizeof(float) * (size_t)(packed + w.parts * (size + c->oc + 16)));
	if (!work) return slp_kernel_fail(k, SL_ENOMEM, "no memory to reorder images in");
	w.partial = work + packed;
	if (!a->x_lanes) {
		slp_to_lanes(a->x, c->n, flat, work);
		w.x = work;
	}
	slp_parallel_for(w.parts * w.tiles, 1, run_units, &w);
	if (w.no_memory) return slp_kernel_fail(k, SL_ENOMEM, "no memory for a thread's sums");
	struct total weight = {w.partial, size, w.parts, a->w},
	             bias = {w.partial + w.parts * size, c->oc, w.parts, a->b};
	slp_parallel_for(size, SLP_GRAIN, add_parts, &weight);
	if (a->b) add_parts(&bias, 0, c->oc);
	return SL_OK;
}
