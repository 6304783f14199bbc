/* Convolution of many images with few channels: y from x, and x from y.
 *
 * Libraries put channels into the lanes of vectors; with 1, 6 or 20 channels most lanes stay empty. Here lanes are
 * images (image_layout.h): with AVX-512, 32 images side by side, two groups of 16. Then no lane and no padding is
 * computed in vain, whatever the channels, strides and dilations. Both passes are one: each output position has a list
 * of taps, (input position, kernel element), and out[o][position] = bias[o] + sum over input channels i and taps of
 * w[o][i][tap] · in[i][position of tap] with up to 13 output channels × 2 vectors in registers; with AVX2, up to 6 and
 * the two halves of one group. */
#include <stdlib.h>

#include "common/activation.h"
#include "common/cache.h"
#include "common/lanes.h"
#include "common/workspace.h"
#include "conv2d_batch.h"
#include "move/relayout.h"
#include "op.h"
#include "starling/options.h"

enum { LANES = 16, TILE = 13, CHUNK = 64 };

struct tap {
	int32_t in, w; /* positions in a plane, in a kernel */
};

struct vectors;

/* A pass, forward or backward, in terms of its input and output. */
struct pass {
	const struct vectors *vectors;
	int64_t n, nin, nout, in_plane, out_plane, kernel; /* channels and sizes of planes */
	int64_t groups, units, tiles, chunk, chunks;       /* units: of groups that are computed side by side */
	int64_t near, strip;                               /* input channels, windows of a pool at once */
	int tile;                                          /* output channels at once */
	const float *bias, *w, *in;                        /* in: in N16 */
	float *out;
	bool out_n16;
	int activation, pool;
	int64_t positions, width; /* of the unpooled output: a plane, a row; out_plane is a quarter */
	uint8_t *mask;
	int64_t w_in, w_out;  /* steps of w along input and output channels */
	const int32_t *first; /* the taps of each output position, and of the next */
	const struct tap *taps;
	float *weights;
	bool no_memory; /* a thread had no memory */
};

/* weights[tile][input channel][kernel element][channel of the tile], with zeros for missing channels. */
static void pack_weights(void *arg, int64_t begin, int64_t end)
{
	const struct pass *p = arg;
	float *to = p->weights + begin * p->nin * p->kernel * p->tile;
	for (int64_t t = begin; t < end; t++)
		for (int64_t i = 0; i < p->nin; i++)
			for (int64_t e = 0; e < p->kernel; e++)
				for (int64_t o = t * p->tile; o < (t + 1) * p->tile; o++)
					*to++ = o < p->nout ? p->w[o * p->w_out + i * p->w_in + e] : 0;
}

/* ---- taps ------------------------------------------------------------------------------------------------------- */

/* The position along an axis of element u of the window of output position `at`; false: outside. */
static bool forward_tap(int64_t at, int64_t u, int64_t stride, int64_t pad, int64_t dilation, int64_t size, int64_t *in)
{
	*in = at * stride - pad + u * dilation;
	return *in >= 0 && *in < size;
}

/* The output position of the forward pass whose window has `at` as its element u; false: none. */
static bool backward_tap(int64_t at, int64_t u, int64_t stride, int64_t pad, int64_t dilation, int64_t size,
                         int64_t *in)
{
	*in = at + pad - u * dilation;
	if (*in < 0 || *in % stride) return false;
	*in /= stride;
	return *in < size;
}

/* The taps along one axis: at[position · kernel + u], -1 for none. */
static void list_axis(const struct slp_conv *c, bool backward, bool columns, int64_t positions, int32_t *at)
{
	int64_t kernel = columns ? c->kw : c->kh, stride = columns ? c->sw : c->sh, pad = columns ? c->pw : c->ph;
	int64_t dilation = columns ? c->dw : c->dh, in;
	int64_t size = backward ? (columns ? c->ow : c->oh) : columns ? c->iw : c->ih;
	for (int64_t i = 0; i < positions; i++)
		for (int64_t u = 0; u < kernel; u++) {
			bool there = backward ? backward_tap(i, u, stride, pad, dilation, size, &in)
			                      : forward_tap(i, u, stride, pad, dilation, size, &in);
			*at++ = there ? (int32_t)in : -1;
		}
}

/* Lists the taps of all positions of the output; `axes` has room for the taps of its rows and columns. */
static void list_taps(const struct slp_conv *c, bool backward, int32_t *first, struct tap *tap, int32_t *axes)
{
	int64_t oh = backward ? c->ih : c->oh, ow = backward ? c->iw : c->ow, n = 0;
	int32_t iw = (int32_t)(backward ? c->ow : c->iw), *columns = axes + oh * c->kh;
	list_axis(c, backward, false, oh, axes);
	list_axis(c, backward, true, ow, columns);
	for (int64_t i = 0; i < oh; i++)
		for (int64_t j = 0; j < ow; j++) {
			*first++ = (int32_t)n;
			for (int32_t u = 0; u < c->kh; u++)
				for (int32_t v = 0; v < c->kw && axes[i * c->kh + u] >= 0; v++) {
					tap[n] = (struct tap){axes[i * c->kh + u] * iw + columns[j * c->kw + v],
					                      u * (int32_t)c->kw + v};
					n += columns[j * c->kw + v] >= 0;
				}
		}
	*first = (int32_t)n;
}

/* ---- the tile --------------------------------------------------------------------------------------------------- */

/* Groups side by side and a tile of output channels: the operands and the place of results. Two vectors are computed at
 * once, of two groups or the halves of one. */
struct unit {
	const float *in, *w, *bias;
	float *to; /* [group · group_step + channel · step + position · LANES] */
	int64_t in_second, to_second, group_step, step; /* second: from one vector to the other */
	bool has_second;
	int groups, channels; /* in use, of the unit and of the tile */
	int64_t nin;          /* input channels to add */
	bool resumes, ends;   /* `to` has the sums of earlier input channels; no later ones follow */
};

typedef void multiply_fn(const struct pass *p, const struct unit *u, int64_t position, float *to);
typedef void pool_fn(const struct pass *p, const struct unit *u, const struct unit *from, int64_t plane, int64_t at,
                     float *to);

/* The kernels for one length of vectors. */
struct vectors {
	int groups, tile; /* at once */
	multiply_fn *const *multiply;
	pool_fn *pool;
};

#define BEATS(b, a) (((b) > (a)) | (((b) != (b)) & ((a) == (a))))
#define PICK(mask, a, b) ((VECTOR)(((INTS)(a) & (mask)) | ((INTS)(b) & ~(mask))))

#define WIDTH 16
#define VECTOR slp_v16
#define BITS uint16_t
#define TARGET SLP_AVX512
#define NAME(x) x##_16
#define TILES(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)
#define LANE_BITS SLP_LANE_BITS16
#define LANES_PASS SLP_LANES_PASS16
#include "conv2d_batch_tile.h"

#define WIDTH 8
#define VECTOR slp_v8
#define BITS uint8_t
#define TARGET SLP_AVX2
#define NAME(x) x##_8
#define TILES(X) X(1) X(2) X(3) X(4) X(5) X(6)
#define LANE_BITS SLP_LANE_BITS8
#define LANES_PASS SLP_LANES_PASS8
#include "conv2d_batch_tile.h"

static const struct vectors wide = {2, TILE, multiply_by_tile_16, pool_windows_16},
                            narrow = {1, 6, multiply_by_tile_8, pool_windows_8};

static const struct vectors *vectors_here(void)
{
	return slp_has_avx512() ? &wide : slp_has_avx2() ? &narrow : NULL;
}

/* ---- a unit ----------------------------------------------------------------------------------------------------- */

/* Applies activations but relu, which is done in registers. */
static void activate(const struct pass *p, const struct unit *u, int64_t count)
{
	if (p->activation == SL_IDENTITY || p->activation == SL_RELU) return;
	for (int g = 0; g < u->groups; g++)
		for (int o = 0; o < u->channels; o++)
			slp_activate_range(u->to + g * u->group_step + o * u->step, count * LANES, p->activation);
}

/* Copies positions [at, at + count) of the channels of a tile, of the groups of a unit, back into the caller's
 * layout. */
static void unpack(const struct pass *p, const struct unit *u, int64_t first, int64_t channel, int64_t at,
                   int64_t count)
{
	for (int64_t o = 0; o < u->channels; o++)
		for (int g = 0; g < u->groups; g++) {
			int64_t image = (first + g) * LANES, live = p->n - image;
			float *to = p->out + (image * p->nout + channel + o) * p->out_plane + at;
			slp_lanes_scatter(u->to + g * u->group_step + o * u->step, LANES,
			                  live > LANES ? LANES : (int)live, count, to, p->nout * p->out_plane);
		}
}

/* The place in its plane of result i; results of a pool are ordered by windows, four each. */
static int64_t place_of(const struct pass *p, int64_t i)
{
	if (!p->pool) return i;
	int64_t window = i / 4, row = window / (p->width / 2), column = window % (p->width / 2);
	return (2 * row + i % 4 / 2) * p->width + 2 * column + i % 2;
}

/* Computes results [begin, end) into u->to, a block of input channels at a time, whose rows under a window stay in the
 * first cache: the bits do not depend on the blocks, since sums between them are stored as they are. */
static void add_channels(const struct pass *p, const struct unit *u, int64_t begin, int64_t end)
{
	struct unit part = *u;
	for (int64_t channel = 0; channel < p->nin; channel += p->near) {
		part.nin = p->nin - channel < p->near ? p->nin - channel : p->near;
		part.in = u->in + channel * p->in_plane * LANES;
		part.w = u->w + channel * p->kernel * p->tile;
		part.resumes = channel > 0;
		part.ends = channel + p->near >= p->nin;
		for (int64_t i = begin; i < end; i++)
			p->vectors->multiply[p->tile](p, &part, place_of(p, i), u->to + (i - begin) * LANES);
	}
}

/* Computes windows [at, at + count), a strip at a time through `elements`. */
static void run_windows(const struct pass *p, const struct unit *u, int64_t plane, int64_t at, int64_t count,
                        float *elements)
{
	struct unit strip = *u;
	strip.to = elements;
	strip.step = 4 * p->strip * LANES;
	strip.group_step = p->tile * strip.step;
	if (p->vectors->groups > 1) strip.to_second = strip.group_step;
	for (int64_t i = at, end; i < at + count; i = end) {
		end = i + p->strip < at + count ? i + p->strip : at + count;
		add_channels(p, &strip, 4 * i, 4 * end);
		for (int64_t j = i; j < end; j++) {
			struct unit window = strip;
			window.to += 4 * (j - i) * LANES;
			p->vectors->pool(p, u, &window, plane, place_of(p, 4 * j), u->to + (j - at) * LANES);
		}
	}
}

/* Computes the groups from the first one on, and the tile with this first channel, into `buffer` or into y. */
static struct unit unit_of(const struct pass *p, int64_t first, int64_t channel, int64_t at, float *buffer)
{
	bool two = p->vectors->groups > 1, both = two && first + 1 < p->groups;
	struct unit u = {.in = p->in + first * p->nin * p->in_plane * LANES,
	                 .w = p->weights + channel * p->nin * p->kernel,
	                 .to = buffer,
	                 .group_step = p->tile * p->chunk * LANES,
	                 .step = p->chunk * LANES,
	                 .has_second = both || !two,
	                 .groups = both ? 2 : 1,
	                 .channels = (int)(p->nout - channel < p->tile ? p->nout - channel : p->tile)};
	if (p->out_n16) {
		u.group_step = p->nout * p->out_plane * LANES;
		u.step = p->out_plane * LANES;
		u.to = p->out + first * u.group_step + channel * u.step + at * LANES;
	}
	u.in_second = both ? p->nin * p->in_plane * LANES : two ? 0 : LANES / 2;
	u.to_second = two ? u.group_step : LANES / 2;
	return u;
}

/* Units are (groups, tile, chunk of positions), in this order. */
static void run_unit(const struct pass *p, int64_t unit, float *buffer)
{
	int64_t first = unit / (p->tiles * p->chunks) * p->vectors->groups;
	int64_t channel = unit / p->chunks % p->tiles * p->tile;
	int64_t at = unit % p->chunks * p->chunk, count = p->out_plane - at;
	float bias[TILE] = {0};
	struct unit u = unit_of(p, first, channel, at, buffer);
	u.bias = bias;
	if (count > p->chunk) count = p->chunk;
	for (int o = 0; p->bias && o < u.channels; o++) bias[o] = p->bias[channel + o];
	if (p->pool) run_windows(p, &u, first * p->nout + channel, at, count, buffer + p->tile * p->chunk * 2 * LANES);
	else add_channels(p, &u, at, at + count);
	activate(p, &u, count);
	if (!p->out_n16) unpack(p, &u, first, channel, at, count);
}

static void run_units(void *arg, int64_t begin, int64_t end)
{
	struct pass *p = arg;
	size_t bytes = sizeof(float) * (size_t)(p->tile * (p->chunk + 4 * p->strip) * 2 * LANES);
	float *buffer = slp_workspace(SLP_WORK_THREAD, bytes);
	if (!buffer) p->no_memory = true;
	for (int64_t unit = begin; buffer && unit < end; unit++) run_unit(p, unit, buffer);
}

/* ---- a call ----------------------------------------------------------------------------------------------------- */

/* The part of vectors of 16 channels that is in use. */
static double fullness(int64_t channels)
{
	return (double)channels / (double)((channels + 15) / 16 * 16);
}

/* Whether this beats a library: many images, and channels that would leave vectors of 16 channels half empty. Images of
 * up to 3 channels have kernels of their own in oneDNN, which fill their vectors with output channels. */
bool slp_conv_batch_pays(const struct slp_conv *c)
{
	double images = (double)c->n / (double)((c->n + 2 * LANES - 1) / (2 * LANES) * (2 * LANES));
	double channels = fullness(c->oc) * (c->ic < 4 ? 1 : fullness(c->ic));
	bool near = c->kh * c->iw * c->ic * 2 * LANES * 4 <= 512 << 10; /* the rows under a window stay in a cache */
	return c->groups == 1 && images >= 0.75 && channels < 0.75 * images && near && slp_conv_has_n16();
}

bool slp_conv_has_n16(void)
{
	return vectors_here() != NULL;
}

bool slp_conv_prefers_n16(const struct slp_infer *call)
{
	struct slp_view in[3] = {{0}}, out[2] = {{0}};
	for (int i = 0; i < call->nin && i < 3; i++) in[i].type = call->in[i];
	for (int i = 0; i < call->nout && i < 2; i++) out[i].type = call->out[i];
	struct slp_conv c =
	        slp_conv_of(&(struct slp_kernel){.op = call->op, .attrs = call->attrs, .in = in, .out = out});
	bool takes = slp_promoted(call->in[0].dtype) == SL_FLOAT32; /* half types are converted to float32 */
	return takes && c.n % LANES == 0 && slp_conv_batch_pays(&c) && slp_batch_has_width(c.kw);
}

/* As many input channels at once as fit in three quarters of the first cache: rows under a window, and weights. */
static void choose_near(struct pass *p, const struct slp_conv *c, bool back)
{
	enum { STRIP = 16 };
	int64_t row = (back ? c->ow : c->iw) * LANES * p->vectors->groups;
	int64_t bytes = (c->kh * row + p->kernel * p->tile) * (int64_t)sizeof(float), room = slp_first_cache() * 3 / 4;
	int64_t most = bytes < room ? room / bytes : 1, blocks = (p->nin + most - 1) / most;
	p->near = (p->nin + blocks - 1) / blocks;
	p->strip = blocks > 1 ? STRIP : 1;
}

static struct pass pass_of(const struct slp_conv_args *a)
{
	const struct slp_conv *c = &a->c;
	bool back = a->pass == SLP_CONV_DATA;
	int64_t x = c->ih * c->iw, y = c->oh * c->ow, kernel = c->kh * c->kw;
	struct pass p = {.n = c->n,
	                 .nin = back ? c->oc : c->ic,
	                 .nout = back ? c->ic : c->oc,
	                 .in_plane = back ? y : x,
	                 .out_plane = back ? x : y,
	                 .kernel = kernel,
	                 .bias = back ? NULL : a->b,
	                 .w = a->w,
	                 .in = back ? a->y : a->x,
	                 .out = back ? a->x : a->y,
	                 .out_n16 = (back ? a->x_layout : a->y_layout) == SLP_LAYOUT_N16,
	                 .activation = a->activation,
	                 .w_in = back ? c->ic * kernel : kernel,
	                 .w_out = back ? kernel : c->ic * kernel};
	p.pool = a->pool;
	p.mask = a->mask;
	p.positions = p.out_plane;
	p.width = c->ow;
	if (p.pool) p.out_plane /= 4;
	p.vectors = vectors_here();
	p.groups = (p.n + LANES - 1) / LANES;
	p.units = (p.groups + p.vectors->groups - 1) / p.vectors->groups;
	p.tiles = (p.nout + p.vectors->tile - 1) / p.vectors->tile;
	p.tile = (int)((p.nout + p.tiles - 1) / p.tiles);
	p.chunks = (p.out_plane + CHUNK - 1) / CHUNK;
	p.chunk = (p.out_plane + p.chunks - 1) / p.chunks;
	choose_near(&p, c, back);
	return p;
}

static size_t round64(size_t bytes)
{
	return (bytes + 63) & ~(size_t)63;
}

/* Images in N16 are computed here, whatever the channels. */
static bool takes(const struct slp_conv_args *a)
{
	bool n16 = slp_layout_among(SLP_LAYOUT_N16, a->x_layout, a->y_layout);
	return n16 || a->pool ? a->c.groups == 1 && slp_conv_has_n16() : slp_conv_batch_pays(&a->c);
}

enum sl_status slp_conv_batch(const struct slp_kernel *k, const struct slp_conv_args *a)
{
	if (!takes(a)) return SL_EUNSUPPORTED;
	if (a->pass == SLP_CONV_WEIGHTS) return slp_conv_batch_weights(k, a);
	if (a->pass == SLP_CONV_DATA && a->pool) return SL_EUNSUPPORTED;
	struct pass p = pass_of(a);
	bool in_n16 = (a->pass == SLP_CONV_DATA ? a->y_layout : a->x_layout) == SLP_LAYOUT_N16;
	size_t packed = in_n16 ? 0 : round64(sizeof(float) * (size_t)(p.groups * p.nin * p.in_plane * LANES));
	size_t weights = round64(sizeof(float) * (size_t)(p.tiles * p.tile * p.nin * p.kernel));
	size_t first = round64(sizeof(int32_t) * (size_t)(p.positions + 1));
	size_t taps = round64(sizeof(struct tap) * (size_t)(p.positions * p.kernel + 1));
	size_t axes = sizeof(int32_t) * (size_t)((a->c.ih + a->c.oh) * a->c.kh + (a->c.iw + a->c.ow) * a->c.kw);
	char *work = slp_workspace(SLP_WORK_CALL, packed + weights + first + taps + axes);
	if (!work) return slp_kernel_fail(k, SL_ENOMEM, "no memory to reorder images in");
	p.weights = (float *)(work + packed);
	p.first = (int32_t *)(work + packed + weights);
	p.taps = (struct tap *)(work + packed + weights + first);
	slp_parallel_for(p.tiles, 1 + SLP_GRAIN / 4 / (p.nin * p.kernel * p.tile), pack_weights, &p);
	list_taps(&a->c, a->pass == SLP_CONV_DATA, (int32_t *)p.first, (struct tap *)p.taps,
	          (int32_t *)(work + packed + weights + first + taps));
	if (!in_n16) {
		slp_to_n16(p.in, p.n, p.nin * p.in_plane, (float *)work);
		p.in = (float *)work;
	}
	slp_parallel_for(p.units * p.tiles * p.chunks, 1, run_units, &p);
	return p.no_memory ? slp_kernel_fail(k, SL_ENOMEM, "no memory for a thread's results") : SL_OK;
}
