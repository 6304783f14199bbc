/* The gradient of a convolution's weights if each output channel sees few channels: in a network's first layer and in
 * depthwise ones. cuDNN's deterministic kernels take many times as long there as reading x and dy.
 *
 * A thread loops over places of y and adds the products of OUT channels there with the elements of x at ROWS × KW taps
 * to as many sums in registers, so that each element that it reads is a factor of several products. A block sums its
 * part of all places; the last block of a tile adds the parts. The order of all sums is fixed, by the sizes alone. */
#include "conv2d_graph.h"

#include "common/element.cuh"
#include "common/last.cuh"

enum { MOST_IN = 64, WIDE = 32, DEEP = SLP_BLOCK / WIDE };
#ifdef SLP_EMULATE
enum { BLOCKS = 24, LEAST = 1 }; /* so that small cases have several parts, too */
#define TWO_BLOCKS
#else
enum { BLOCKS = 528, LEAST = 4 }; /* of a launch, about; places of a thread, at least */
#define TWO_BLOCKS __launch_bounds__(SLP_BLOCK, 2) /* resident blocks of a multiprocessor: limits registers */
#endif

/* Steps between elements, of x or y in either layout. */
struct steps {
	int64_t n, c, h, w;
};

static struct steps steps_of(int64_t channels, int64_t height, int64_t width, bool nhwc)
{
	int64_t image = channels * height * width;
	if (nhwc) return {image, 1, width * channels, channels};
	return {image, height * width, width, 1};
}

/* The sums of a launch. A tile is OUT channels of a group, an input channel of it, ROWS rows of taps. */
struct few {
	struct slp_conv c;
	struct steps x, y;
	int64_t in, out;               /* channels of a group */
	int64_t out_tiles, row_tiles;  /* of a group; of a kernel */
	int64_t parts, weights;        /* weights in all */
	int64_t w_out, w_in, w_h, w_w; /* steps between weights */
};

struct tile {
	int64_t out, in, x_in, row; /* the first output channel; input channel in its group and in x; the first row */
};

__device__ static inline struct tile tile_of(const struct few &f, int64_t index, int out, int rows)
{
	struct tile t;
	t.row = index % f.row_tiles * rows;
	index /= f.row_tiles;
	t.in = index % f.in;
	index /= f.in;
	int64_t group = index / f.out_tiles;
	t.out = group * f.out + index % f.out_tiles * out;
	t.x_in = group * f.in + t.in;
	return t;
}

/* Sums of each warp, in shared memory. */
template <int COUNT> __device__ static inline void warp_sums(const float (&sums)[COUNT], float (*to)[COUNT])
{
	int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
#pragma unroll
	for (int i = 0; i < COUNT; i++) {
		float v = sums[i];
		for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
		if (lane == i % 32) to[warp][i] = v;
	}
}

/* The weights of a tile, from its sums in partial[part][weight]; at(i): the place of sum i, negative if there is none. */
template <class T, class F>
__device__ static inline void add_parts(const struct few &f, const float *partial, int count, T *w, F at)
{
	__shared__ float sums[DEEP][WIDE];
	int lane = (int)(threadIdx.x % WIDE), depth = (int)(threadIdx.x / WIDE);
	for (int first = 0; first < count; first += WIDE) {
		int64_t place = first + lane < count ? at(first + lane) : -1;
		float sum = 0;
		for (int64_t p = depth; place >= 0 && p < f.parts; p += DEEP) sum += partial[p * f.weights + place];
		sums[depth][lane] = sum;
		__syncthreads();
		for (int d = 1; d < DEEP && depth == 0; d++) sum += sums[d][lane];
		if (depth == 0 && place >= 0) w[place] = (T)sum;
		__syncthreads();
	}
}

/* partial[part][weight]; grid (parts, tiles). */
template <class T, int OUT, int ROWS, int KW>
__global__ static void TWO_BLOCKS add_products(struct few f, const T *x, const T *dy, float *partial, T *weights,
                                               unsigned *arrived)
{
	const struct slp_conv &c = f.c;
	struct tile t = tile_of(f, blockIdx.y, OUT, ROWS);
	int64_t last_out = t.out / f.out * f.out + f.out; /* of the group */
	unsigned places = (unsigned)(c.n * c.oh * c.ow), ow = (unsigned)c.ow, oh = (unsigned)c.oh;
	unsigned begin = (unsigned)((int64_t)places * blockIdx.x / f.parts);
	unsigned end = (unsigned)((int64_t)places * (blockIdx.x + 1) / f.parts);
	int first = (int)t.row * (int)c.dh, row_step = (int)f.x.h, tap_step = (int)(c.dw * f.x.w);
	float sums[OUT * ROWS * KW];
#pragma unroll
	for (float &s : sums) s = 0;
	for (unsigned p = begin + threadIdx.x; p < end; p += SLP_BLOCK) {
		unsigned row = p / ow, n = row / oh;
		int j = (int)(p - row * ow), i = (int)(row - n * oh);
		const T *from = dy + n * f.y.n + t.out * f.y.c + (int64_t)i * f.y.h + (int64_t)j * f.y.w;
		const T *image = x + n * f.x.n + t.x_in * f.x.c;
		int h = i * (int)c.sh - (int)c.ph + first, w = j * (int)c.sw - (int)c.pw;
		float d[OUT];
#pragma unroll
		for (int o = 0; o < OUT; o++, from += f.y.c) d[o] = t.out + o < last_out ? (float)*from : 0.0f;
#pragma unroll
		for (int r = 0; r < ROWS; r++, h += (int)c.dh) {
			bool within = h >= 0 && h < (int)c.ih && t.row + r < c.kh;
			int at = h * row_step + w * (int)f.x.w;
#pragma unroll
			for (int s = 0; s < KW; s++) {
				int column = w + s * (int)c.dw;
				bool there = within && column >= 0 && column < (int)c.iw;
				float v = there ? (float)image[at + s * tap_step] : 0.0f;
#pragma unroll
				for (int o = 0; o < OUT; o++) {
					float &sum = sums[(o * ROWS + r) * KW + s];
					sum = fmaf(d[o], v, sum);
				}
			}
		}
	}
	__shared__ float part[SLP_BLOCK / 32][OUT * ROWS * KW];
	warp_sums(sums, part);
	__syncthreads();
	auto place = [&](int i) -> int64_t {
		int64_t o = t.out + i / (ROWS * KW), r = t.row + i / KW % ROWS, s = i % KW;
		return o < last_out && r < c.kh ? o * f.w_out + t.in * f.w_in + r * f.w_h + s * f.w_w : -1;
	};
	for (int i = (int)threadIdx.x; i < OUT * ROWS * KW; i += SLP_BLOCK) {
		float all = 0;
		for (int v = 0; v < SLP_BLOCK / 32; v++) all += part[v][i];
		if (place(i) >= 0) partial[blockIdx.x * f.weights + place(i)] = all;
	}
	if (slp_arrives_last(arrived + (gridDim.x > 1 ? blockIdx.y : 0), gridDim.x))
		add_parts(f, partial, OUT * ROWS * KW, weights, place);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

template <int OUT, int ROWS> static struct few few_of(const struct slp_conv_graph *g)
{
	const struct slp_conv &c = g->c;
	struct few f;
	f.c = c;
	f.x = steps_of(c.ic, c.ih, c.iw, g->nhwc);
	f.y = steps_of(c.oc, c.oh, c.ow, g->nhwc);
	f.in = c.ic / c.groups;
	f.out = c.oc / c.groups;
	f.out_tiles = (f.out + OUT - 1) / OUT;
	f.row_tiles = (c.kh + ROWS - 1) / ROWS;
	f.weights = c.oc * f.in * c.kh * c.kw;
	struct steps w = steps_of(f.in, c.kh, c.kw, g->nhwc);
	f.w_out = w.n, f.w_in = w.c, f.w_h = w.h, f.w_w = w.w;
	int64_t tiles = c.groups * f.out_tiles * f.in * f.row_tiles;
	int64_t most = c.n * c.oh * c.ow / (SLP_BLOCK * LEAST), room = (int64_t)(g->limit / sizeof(float)) / f.weights;
	f.parts = (BLOCKS + tiles - 1) / tiles;
	static_assert((int)BLOCKS <= (int)SLP_ARRIVALS, "tiles of several parts have a counter each");
	if (f.parts > most) f.parts = most;
	if (f.parts > room) f.parts = room;
	if (f.parts < 1) f.parts = 1;
	return f;
}

template <class T, int OUT, int ROWS, int KW>
static bool launch(const struct slp_conv_graph *g, const struct slp_conv_graph_at *at)
{
	struct few f = few_of<OUT, ROWS>(g);
	float *partial = (float *)at->work;
	dim3 grid((unsigned)f.parts, (unsigned)(f.c.groups * f.out_tiles * f.in * f.row_tiles));
	if (!at->arrivals) return false;
	SLP_LAUNCH((add_products<T, OUT, ROWS, KW>), grid, SLP_BLOCK, 0, at->stream, f, (const T *)at->x,
	           (const T *)at->y, partial, (T *)at->w, at->arrivals);
	return cudaGetLastError() == cudaSuccess;
}

/* About 100 sums a thread, whose factors it reads once; fewer if a channel of y is alone in its group. */
template <class T> static bool launch_for(const struct slp_conv_graph *g, const struct slp_conv_graph_at *at)
{
	bool alone = g->c.oc / g->c.groups < 4;
	switch (g->c.kw) {
	case 3: return alone ? launch<T, 1, 3, 3>(g, at) : launch<T, 8, 3, 3>(g, at);
	case 5: return alone ? launch<T, 1, 5, 5>(g, at) : launch<T, 3, 5, 5>(g, at);
	case 7: return alone ? launch<T, 1, 7, 7>(g, at) : launch<T, 3, 4, 7>(g, at);
	default: return false;
	}
}

/* ---- the interface ----------------------------------------------------------------------------------------------- */

int slp_conv_few_count(const struct slp_conv_graph *f, const struct slp_conv_graph_at *)
{
	const struct slp_conv &c = f->c;
	bool kernel = (c.kw == 3 || c.kw == 5 || c.kw == 7) && c.kh <= 16;
	bool few = c.ic / c.groups <= MOST_IN && f->pass == SLP_CONV_WEIGHTS && f->type != CUDNN_DATA_DOUBLE;
	double places = (double)c.n * (double)c.oh * (double)c.ow, tiles = (double)c.oc * (double)c.ic / c.groups * 16;
	if (c.oc / c.groups >= 4) tiles /= 3;
	double image = (double)c.ic * (double)(c.ih + c.kh * c.dh) * (double)(c.iw + c.kw * c.dw);
	bool small = places < 2e9 && tiles < 65536 && image < 1e9; /* the range of int, including padding */
	double weights = (double)c.oc * (double)(c.ic / c.groups) * (double)(c.kh * c.kw);
	return kernel && few && small && weights * sizeof(float) <= (double)f->limit;
}

void slp_conv_few_name(const struct slp_conv_graph *, const struct slp_conv_graph_at *, int, char to[SLP_CONV_NAME])
{
	to[0] = '\0';
}

bool slp_conv_few_choose(const struct slp_conv_graph *f, const struct slp_conv_graph_at *at, int)
{
	return slp_conv_few_count(f, at);
}

void slp_conv_few_settle(const struct slp_conv_graph *, const struct slp_conv_graph_at *)
{
}

/* Without measurements: only if cuDNN has no comparable kernel. For half types it has tensor cores. */
bool slp_conv_few_can(const struct slp_conv_graph *f, const struct slp_conv_graph_at *at)
{
	return f->type == CUDNN_DATA_FLOAT && !f->nhwc && f->c.kw <= 5 && f->c.ic / f->c.groups <= 2 &&
	       slp_conv_few_count(f, at);
}

bool slp_conv_few_run(const struct slp_conv_graph *f, const struct slp_conv_graph_at *at)
{
	if (!slp_conv_few_count(f, at)) return false;
	if (f->type == CUDNN_DATA_BFLOAT16) return launch_for<slp_bf16>(f, at);
	if (f->type == CUDNN_DATA_HALF) return launch_for<slp_f16>(f, at);
	return launch_for<float>(f, at);
}
