/* Batch normalisation on a GPU: partial sums by several blocks a channel, the last of which joins them, a warp a channel;
 * threads that apply them to 16 bytes each.  The order of all sums is fixed.  Where each element of an image is a channel of its own,
 * as in all images in NHWC, neighbouring threads have neighbouring channels. */
#include "op.h"
#include "starling/options.h"
#include "common/divide.cuh"
#include "common/lanes.cuh"
#include "common/last.cuh"
#include "common/wide.cuh"
#include "batch_norm.h"
#include "common/activation.h"
#include "common/image_layout.h"

/* Scratch, as in batch_norm.h: coefficients of the channels, then two partial sums for each part of each. */
template <class T> struct space {
	T *center, *k0, *k1, *k2, *part;
	template <class F> void emu_pointers(F f)
	{
		f(center), f(k0), f(k1), f(k2), f(part);
	}
};

template <class T> static struct space<T> space_of(const struct slp_kernel *k, int64_t c) {
	T *p = (T *)k->scratch;
	return {p, p + c, p + 2 * c, p + 3 * c, p + 4 * c};
}

/* The elements in units of W neighbours, in planes of a channel or, if planes are single elements, along the
 * channels. */
template <class I>
struct places {
	typedef typename slp_divisor<I>::type D;
	int64_t c, s, units; /* channels; elements of a plane; units of a channel */
	bool nc16, rows;
	D by_plane, by_channels; /* units of a plane and planes of an image; of rows, 1 and units of a row */

	places(struct slp_norm_size z, int width)
	    : c(z.c), s(z.s), units(z.n * z.s), nc16(z.layout == SLP_LAYOUT_NC16), rows(z.s == 1 && !nc16)
	{
		if (!rows) units /= width;
		by_plane = slp_divisor<I>::of(rows ? 1 : nc16 ? z.s * SLP_NC16_CHANNELS : z.s / width);
		by_channels = slp_divisor<I>::of(rows ? z.c / width : nc16 ? z.c / SLP_NC16_CHANNELS : z.c);
	}
};

/* Elements of a channel. */
template <int W, class I> static __device__ inline int64_t elements_of(const places<I> &p)
{
	return p.rows ? p.units : p.units * W;
}

/* Units [begin, end) of a channel are part `part` of `parts`. */
static __device__ int64_t part_begin(int64_t units, int part, int parts)
{
	return units * part / parts;
}

/* The first element of unit i of channel c, counted over images and within planes. */
template <int W, class I> static __device__ inline int64_t element(const places<I> &p, int64_t c, int64_t i)
{
	I at, n;
	if (p.nc16) {
		n = (I)i / (I)p.s;
		return slp_layout_index(SLP_LAYOUT_NC16, p.c, p.s, n, c, (I)i - n * (I)p.s);
	}
	n = slp_divided((I)i, p.by_plane, &at);
	return ((int64_t)n * p.c + c) * p.s + (int64_t)at * W;
}

/* ---- coefficients ----------------------------------------------------------------------------------------------- */

/* The rounding error of the centre goes into the constant. */
template <class T>
static __device__ void set_forward(struct space<T> w, int64_t c, double mean, double invstd, T gamma, T beta)
{
	w.center[c] = (T)mean;
	w.k0[c] = 0;
	w.k1[c] = (T)(gamma * invstd);
	w.k2[c] = (T)(beta + ((T)mean - mean) * gamma * invstd);
}

template <class T> struct forward {
	slp_vector<T> gamma, beta, running_mean, running_var, mean, invstd;
	template <class F> void emu_pointers(F f)
	{
		f(gamma), f(beta), f(running_mean), f(running_var), f(mean), f(invstd);
	}
};

/* Joins the parts of channel c, with the lanes of a warp.  Units have W elements. */
template <int W, class S, class T, class I> __device__ void finish_training(const forward<T> &v, const S *x,
                                                                            const places<I> &p, struct slp_norm_attrs a,
                                                                            struct space<T> w, int64_t c)
{
	int parts = (int)gridDim.y, width = p.rows ? 1 : W, lane = slp_lane<SLP_WARP>();
	const T *part = w.part + c * parts * 2;
	double sum = 0, squares = 0, count = (double)(p.units * width);
	for (int i = lane; i < parts; i += SLP_WARP)
		sum += (double)((part_begin(p.units, i + 1, parts) - part_begin(p.units, i, parts)) * width) *
		       part[2 * i];
	double mean = slp_group_reduce<SLP_WARP>(sum, slp_sum_of(), 0.0) / count;
	for (int i = lane; i < parts; i += SLP_WARP) {
		double n = (double)((part_begin(p.units, i + 1, parts) - part_begin(p.units, i, parts)) * width),
		       off = part[2 * i] - mean;
		squares += part[2 * i + 1] + n * off * off;
	}
	squares = slp_group_reduce<SLP_WARP>(squares, slp_sum_of(), 0.0);
	if (lane) return;
	mean += x[element<W>(p, c, 0)];
	double var = squares / count, invstd = 1 / sqrt(var + a.eps);
	v.mean.set(c, mean);
	v.invstd.set(c, invstd);
	v.running_mean.set(c, a.momentum * v.running_mean[c] + (1 - a.momentum) * mean);
	double bessel = a.unbiased ? count / (count > 1 ? count - 1 : 1) : 1; /* slp_norm_bessel */
	v.running_var.set(c, a.momentum * v.running_var[c] + (1 - a.momentum) * var * bessel);
	set_forward(w, c, mean, invstd, v.gamma[c], v.beta[c]);
}

template <class T> __global__ void use_running(struct forward<T> v, int64_t n, double eps, struct space<T> w)
{
	SLP_GRID_STRIDE(c, n)
	set_forward(w, c, v.running_mean[c], 1 / sqrt(v.running_var[c] + eps), v.gamma[c], v.beta[c]);
}

template <class T> struct backward {
	slp_vector<T> gamma, mean, invstd, dgamma, dbeta;
	template <class F> void emu_pointers(F f)
	{
		f(gamma), f(mean), f(invstd), f(dgamma), f(dbeta);
	}
};

/* The same of the gradients; count: elements of a channel. */
template <class T>
__device__ void finish_grad(const backward<T> &v, int64_t count, bool global, struct space<T> w, int64_t c)
{
	int parts = (int)gridDim.y;
	double sum = 0, product = 0;
	for (int i = slp_lane<SLP_WARP>(); i < parts; i += SLP_WARP) {
		sum += w.part[(c * parts + i) * 2];
		product += w.part[(c * parts + i) * 2 + 1];
	}
	sum = slp_group_reduce<SLP_WARP>(sum, slp_sum_of(), 0.0);
	product = slp_group_reduce<SLP_WARP>(product, slp_sum_of(), 0.0);
	if (slp_lane<SLP_WARP>()) return;
	double invstd = v.invstd[c], scale = v.gamma[c] * invstd;
	double share = global ? 0 : scale / (double)count;
	v.dgamma.set(c, product * invstd);
	v.dbeta.set(c, sum);
	w.center[c] = v.mean[c];
	w.k0[c] = (T)scale;
	w.k1[c] = (T)(-share * product * invstd * invstd);
	w.k2[c] = (T)(-share * sum);
}

/* Whether the calling block is the last one of its channels. */
static __device__ inline bool finishes(unsigned *arrived)
{
	return slp_arrives_last(arrived + blockIdx.x, gridDim.y);
}

/* ---- sums ------------------------------------------------------------------------------------------------------- */

enum { CHUNK = 8 }; /* elements that a thread holds at a time */

/* Mean and sum of squared deviations of a thread's elements, N at a time: joined as in batch_norm_cpu.c. */
template <class T> struct moments {
	T count, mean, squares;
	template <int N> __device__ void add(const T *v)
	{
		T sum = 0, m2 = 0;
#pragma unroll
		for (int i = 0; i < N; i++) sum += v[i];
		T m = sum * (T(1) / T(N));
#pragma unroll
		for (int i = 0; i < N; i++) m2 += (v[i] - m) * (v[i] - m);
		T total = count + T(N), delta = m - mean;
		mean += delta * (T(N) / total);
		squares += m2 + delta * delta * (count * T(N) / total);
		count = total;
	}
};

/* grid (channels, parts).  part[channel][part] = {mean, squares}, of the differences to the channel's first element:
 * they lose less in rounding where the mean is large against the deviation. */
template <int W, class S, class T, class I> __global__ void
stat_parts(struct forward<T> v, const S *x, places<I> p, struct slp_norm_attrs a, struct space<T> w, unsigned *arrived)
{
	constexpr int UNITS = CHUNK / W;
	int64_t c = blockIdx.x, begin = part_begin(p.units, blockIdx.y, gridDim.y),
	        end = part_begin(p.units, blockIdx.y + 1, gridDim.y), i = begin + threadIdx.x;
	moments<T> m = {0, 0, 0};
	T held[CHUNK], first = x[element<W>(p, c, 0)];
	for (; i + (UNITS - 1) * (int64_t)blockDim.x < end; i += UNITS * (int64_t)blockDim.x) {
#pragma unroll
		for (int u = 0; u < UNITS; u++) slp_take<W>(x + element<W>(p, c, i + u * blockDim.x), held + u * W);
#pragma unroll
		for (int l = 0; l < CHUNK; l++) held[l] -= first;
		m.template add<CHUNK>(held);
	}
	for (; i < end; i += blockDim.x) {
		slp_take<W>(x + element<W>(p, c, i), held);
#pragma unroll
		for (int l = 0; l < W; l++) held[l] -= first;
		m.template add<W>(held);
	}
	T mean = slp_block_reduce(m.count * m.mean, slp_sum_of(), T(0)) / T((end - begin) * W);
	T squares = slp_block_reduce(m.squares + m.count * (m.mean - mean) * (m.mean - mean), slp_sum_of(), T(0));
	if (threadIdx.x == 0) {
		T *part = w.part + (c * gridDim.y + blockIdx.y) * 2;
		part[0] = mean;
		part[1] = squares;
	}
	bool last = finishes(arrived);
	if (last && threadIdx.x < SLP_WARP) finish_training<W>(v, x, p, a, w, c);
}

/* Units of a row that a block computes; rows that it reads at a time; a thread holds some of these. */
template <int W> constexpr int wide = W == 1 ? 16 : 4;
template <int W> constexpr int deep = SLP_BLOCK / wide<W>;
enum { HELD = 4 };

/* The same for planes of an element, grid (channels / wide / W, parts). */
template <int W, class S, class T, class I> __global__ void
stat_rows(struct forward<T> v, const S *x, places<I> p, struct slp_norm_attrs a, struct space<T> w, unsigned *arrived)
{
	constexpr int WIDE = wide<W>, DEEP = deep<W>;
	__shared__ T means[DEEP][WIDE * W], squares[DEEP][WIDE * W];
	int lane = (int)(threadIdx.x % WIDE) * W, depth = (int)(threadIdx.x / WIDE);
	int64_t c0 = blockIdx.x * (int64_t)(WIDE * W), c = c0 + lane,
	        begin = part_begin(p.units, blockIdx.y, gridDim.y),
	        end = part_begin(p.units, blockIdx.y + 1, gridDim.y), i = begin + depth;
	moments<T> m[W];
	T first[W] = {0};
	if (c < p.c) slp_take<W>(x + c, first);
#pragma unroll
	for (int l = 0; l < W; l++) m[l] = {0, 0, 0};
	for (; c < p.c && i + (HELD - 1) * DEEP < end; i += HELD * DEEP) {
		T rows[HELD][W];
#pragma unroll
		for (int r = 0; r < HELD; r++) slp_take<W>(x + (i + r * DEEP) * p.c + c, rows[r]);
#pragma unroll
		for (int l = 0; l < W; l++) {
			T column[HELD];
#pragma unroll
			for (int r = 0; r < HELD; r++) column[r] = rows[r][l] - first[l];
			m[l].template add<HELD>(column);
		}
	}
	for (; c < p.c && i < end; i += DEEP) {
		T row[W];
		slp_take<W>(x + i * p.c + c, row);
#pragma unroll
		for (int l = 0; l < W; l++) {
			row[l] -= first[l];
			m[l].template add<1>(row + l);
		}
	}
#pragma unroll
	for (int l = 0; l < W; l++) means[depth][lane + l] = m[l].mean, squares[depth][lane + l] = m[l].squares;
	__syncthreads();
	for (int t = threadIdx.x; t < WIDE * W && c0 + t < p.c; t += SLP_BLOCK) {
		T sum = 0, all = 0;
		for (int d = 0; d < DEEP; d++) sum += T((end - begin - d + DEEP - 1) / DEEP) * means[d][t];
		T mean = sum / T(end - begin);
		for (int d = 0; d < DEEP; d++) {
			T off = means[d][t] - mean;
			all += squares[d][t] + T((end - begin - d + DEEP - 1) / DEEP) * off * off;
		}
		T *part = w.part + ((c0 + t) * gridDim.y + blockIdx.y) * 2;
		part[0] = mean;
		part[1] = all;
	}
	if (!finishes(arrived)) return;
	for (int t = threadIdx.x / SLP_WARP; t < WIDE * W && c0 + t < p.c; t += SLP_BLOCK / SLP_WARP)
		finish_training<W>(v, x, p, a, w, c0 + t);
}

/* W elements of dy, through the gradient of relu if its result y is given. */
template <int W, class S, class T> static __device__ inline void take_dy(const S *dy, const S *y, int64_t i, T *d)
{
	slp_take<W>(dy + i, d);
	if (!y) return;
	T v[W];
	slp_take<W>(y + i, v);
#pragma unroll
	for (int l = 0; l < W; l++)
		if (v[l] <= 0) d[l] = 0;
}

/* part[channel][part] = {Σ dy, Σ dy (x - center)}. */
template <int W, class S, class T, class I> __global__ void grad_parts(struct backward<T> v, const S *dy, const S *y,
                                                                       const S *x, places<I> p, bool global,
                                                                       struct space<T> w, unsigned *arrived)
{
	int64_t c = blockIdx.x, begin = part_begin(p.units, blockIdx.y, gridDim.y),
	        end = part_begin(p.units, blockIdx.y + 1, gridDim.y);
	T sum = 0, product = 0, mean = v.mean[c];
#pragma unroll 2
	for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
		int64_t e = element<W>(p, c, i);
		T d[W], held[W];
		take_dy<W>(dy, y, e, d);
		slp_take<W>(x + e, held);
#pragma unroll
		for (int l = 0; l < W; l++) {
			sum += d[l];
			product += d[l] * (held[l] - mean);
		}
	}
	sum = slp_block_reduce(sum, slp_sum_of(), T(0));
	product = slp_block_reduce(product, slp_sum_of(), T(0));
	if (threadIdx.x == 0) {
		T *part = w.part + (c * gridDim.y + blockIdx.y) * 2;
		part[0] = sum;
		part[1] = product;
	}
	bool last = finishes(arrived);
	if (last && threadIdx.x < SLP_WARP) finish_grad(v, elements_of<W>(p), global, w, c);
}

/* The same for planes of an element, as stat_rows. */
template <int W, class S, class T, class I> __global__ void grad_rows(struct backward<T> v, const S *dy, const S *y,
                                                                      const S *x, places<I> p, bool global,
                                                                      struct space<T> w, unsigned *arrived)
{
	constexpr int WIDE = wide<W>, DEEP = deep<W>;
	__shared__ T sums[DEEP][WIDE * W], products[DEEP][WIDE * W];
	int lane = (int)(threadIdx.x % WIDE) * W, depth = (int)(threadIdx.x / WIDE);
	int64_t c0 = blockIdx.x * (int64_t)(WIDE * W), c = c0 + lane,
	        end = part_begin(p.units, blockIdx.y + 1, gridDim.y);
	T sum[W] = {0}, product[W] = {0}, mean[W];
#pragma unroll
	for (int l = 0; l < W; l++) mean[l] = c + l < p.c ? v.mean[c + l] : T(0);
#pragma unroll 2
	for (int64_t i = part_begin(p.units, blockIdx.y, gridDim.y) + depth; c < p.c && i < end; i += DEEP) {
		T d[W], row[W];
		take_dy<W>(dy, y, i * p.c + c, d);
		slp_take<W>(x + i * p.c + c, row);
#pragma unroll
		for (int l = 0; l < W; l++) {
			sum[l] += d[l];
			product[l] += d[l] * (row[l] - mean[l]);
		}
	}
#pragma unroll
	for (int l = 0; l < W; l++) sums[depth][lane + l] = sum[l], products[depth][lane + l] = product[l];
	__syncthreads();
	for (int t = threadIdx.x; t < WIDE * W && c0 + t < p.c; t += SLP_BLOCK) {
		T all = 0, all_products = 0;
		for (int d = 0; d < DEEP; d++) all += sums[d][t], all_products += products[d][t];
		T *part = w.part + ((c0 + t) * gridDim.y + blockIdx.y) * 2;
		part[0] = all;
		part[1] = all_products;
	}
	if (!finishes(arrived)) return;
	for (int t = threadIdx.x / SLP_WARP; t < WIDE * W && c0 + t < p.c; t += SLP_BLOCK / SLP_WARP)
		finish_grad(v, elements_of<W>(p), global, w, c0 + t);
}

/* ---- elements --------------------------------------------------------------------------------------------------- */

/* The channel of unit i of the tensor; its first one if the unit spans channels. */
template <int W, class I> static __device__ inline I channel(const places<I> &p, I i)
{
	I rest, c;
	if (p.rows) {
		slp_divided(i, p.by_channels, &c);
		return c * W;
	}
	slp_divided(slp_divided(i, p.by_plane, &rest), p.by_channels, &c);
	return p.nc16 ? c * SLP_NC16_CHANNELS + i % SLP_NC16_CHANNELS : c;
}

/* The coefficients of W channels, or of one. */
template <int W, class T> static __device__ inline void coefficients(bool rows, const T *k, int64_t c, T *v)
{
	constexpr int N = W < slp_wide_count<T> ? W : slp_wide_count<T>;
	if (rows) {
#pragma unroll
		for (int l = 0; l < W; l += N) slp_take<N>(k + c + l, v + l);
	} else {
		T one = k[c];
#pragma unroll
		for (int l = 0; l < W; l++) v[l] = one;
	}
}

/* n: units of the tensor.  Forward, y is NULL or added before the activation, to the result as it would be stored. */
template <int W, class S, class T, class I> __global__ void
apply(S *out, const S *x, const S *dy, const S *y, int64_t n, places<I> p, int activation, struct space<T> w)
{
	SLP_GRID_STRIDE(i, n)
	{
		int64_t c = channel<W>(p, (I)i);
		T v[W], center[W], k1[W], k2[W];
		slp_take<W>(x + i * W, v);
		coefficients<W>(p.rows, w.center, c, center);
		coefficients<W>(p.rows, w.k1, c, k1);
		coefficients<W>(p.rows, w.k2, c, k2);
#pragma unroll
		for (int l = 0; l < W; l++) v[l] = (v[l] - center[l]) * k1[l] + k2[l];
		if (dy) {
			T d[W], k0[W];
			take_dy<W>(dy, y, i * W, d);
			coefficients<W>(p.rows, w.k0, c, k0);
#pragma unroll
			for (int l = 0; l < W; l++) v[l] = d[l] * k0[l] + v[l];
		} else if (y) {
			T more[W];
			slp_take<W>(y + i * W, more);
#pragma unroll
			for (int l = 0; l < W; l++)
				v[l] = slp_activated<T>((T)slp_stored<S>::of(v[l]) + more[l], activation);
		} else if (activation) {
#pragma unroll
			for (int l = 0; l < W; l++) v[l] = slp_activated<T>(v[l], activation);
		}
		slp_put<W>(out + i * W, v);
	}
}

/* W: elements of a unit. */
template <int W, class S, class I> struct runner {
	typedef typename slp_number<S>::type T;
	const struct slp_kernel *k;
	struct slp_norm_size z;
	places<I> p;
	struct space<T> w;
	int64_t size;
	int parts;

	/* Enough blocks to occupy a GPU, each with enough work. */
	runner(const struct slp_kernel *k, const struct slp_view *x, struct slp_norm_size z)
	    : k(k), z(z), p(z, W), w(space_of<T>(k, z.c)), size(slp_size(x))
	{
		int64_t fill = (1024 + groups() - 1) / groups(),
		        most = p.rows ? p.units / (HELD * deep<W>) : z.n * z.s / (CHUNK * (int64_t)SLP_BLOCK);
		int64_t n = fill < most ? fill : most;
		parts = (int)(n < 1 || groups() > SLP_ARRIVALS ? 1 : n > SLP_NORM_PARTS ? (int)SLP_NORM_PARTS : n);
	}
	int64_t groups() const
	{
		return p.rows ? (z.c + wide<W> * W - 1) / (wide<W> * W) : z.c;
	}
	dim3 grid() const
	{
		return dim3((unsigned)groups(), (unsigned)parts);
	}
	const S *in(int i) const
	{
		return (const S *)k->in[i].ptr;
	}
	slp_vector<T> vector(int i) const
	{
		return slp_vector<T>::of(&k->in[i]);
	}
	slp_vector<T> result(int i) const
	{
		return slp_vector<T>::of(i < k->nout ? &k->out[i] : NULL);
	}
	void finish(const S *x, const S *dy, const S *y, int activation) const
	{
		SLP_LAUNCH((apply<W, S, T, I>), slp_grid(size / W), SLP_BLOCK, 0, k->stream, (S *)k->out[0].ptr, x, dy,
		           y, size / W, p, activation, w);
	}
	const struct slp_norm_attrs &attrs() const
	{
		return *(const struct slp_norm_attrs *)k->attrs;
	}
	enum sl_status training() const
	{
		struct forward<T> v = {
			vector(1), vector(2), vector(3), vector(4), result(1), result(2)
		};
		unsigned *arrived = slp_arrivals(k);
		if (!arrived) return SL_EKERNEL;
		if (p.rows)
			SLP_LAUNCH((stat_rows<W, S, T, I>), grid(), SLP_BLOCK, 0, k->stream, v, in(0), p, attrs(), w,
			           arrived);
		else
			SLP_LAUNCH((stat_parts<W, S, T, I>), grid(), SLP_BLOCK, 0, k->stream, v, in(0), p, attrs(), w,
			           arrived);
		finish(in(0), nullptr, k->nin > 5 ? in(5) : nullptr, attrs().activation);
		return slp_launched(k);
	}
	enum sl_status infer() const
	{
		struct forward<T> v = {
			vector(1), vector(2), vector(3), vector(4), result(1), result(2)
		};
		SLP_LAUNCH(use_running<T>, slp_grid(z.c), SLP_BLOCK, 0, k->stream, v, z.c, attrs().eps, w);
		finish(in(0), nullptr, nullptr, attrs().activation);
		return slp_launched(k);
	}
	enum sl_status grad() const
	{
		struct backward<T> v = {
			vector(2), vector(3), vector(4), result(1), result(2)
		};
		const struct slp_norm_grad_attrs *a = (const struct slp_norm_grad_attrs *)k->attrs;
		const S *y = a->relu ? in(5) : nullptr;
		unsigned *arrived = slp_arrivals(k);
		if (!arrived) return SL_EKERNEL;
		if (p.rows)
			SLP_LAUNCH((grad_rows<W, S, T, I>), grid(), SLP_BLOCK, 0, k->stream, v, in(0), y, in(1), p,
			           a->global, w, arrived);
		else
			SLP_LAUNCH((grad_parts<W, S, T, I>), grid(), SLP_BLOCK, 0, k->stream, v, in(0), y, in(1), p,
			           a->global, w, arrived);
		if (size) finish(in(1), in(0), y, SL_IDENTITY);
		return slp_launched(k);
	}
};

/* 32-bit division is several times as fast. */
#define RUN(step, x)                                                                                                   \
	do {                                                                                                           \
		enum sl_status status = SL_EINTERNAL;                                                                  \
		slp_with_float((x)->type.dtype, [&](auto zero) {                                                       \
			typedef decltype(zero) S;                                                                      \
			constexpr int W = slp_wide_count<S>;                                                           \
			struct slp_norm_size z = slp_norm_size_of((x)->type.shape, k->op, k->attrs);                   \
			bool wide = (z.s == 1 ? z.c : z.s) % W == 0 && z.layout != SLP_LAYOUT_NC16;                    \
			if (slp_size(x) > INT32_MAX) status = runner<1, S, int64_t>(k, x, z).step();                   \
			else if (wide) status = runner<W, S, uint32_t>(k, x, z).step();                                \
			else status = runner<1, S, uint32_t>(k, x, z).step();                                          \
		});                                                                                                    \
		return status;                                                                                         \
	} while (0)

extern "C" enum sl_status slp_cuda_batch_norm(const struct slp_kernel *k)
{
	if (slp_size(&k->in[0]) == 0) return SL_OK;
	RUN(training, &k->in[0]);
}

extern "C" enum sl_status slp_cuda_batch_norm_sum(const struct slp_kernel *k)
{
	return slp_cuda_batch_norm(k);
}

extern "C" enum sl_status slp_cuda_batch_norm_infer(const struct slp_kernel *k)
{
	if (slp_size(&k->in[0]) == 0) return SL_OK;
	RUN(infer, &k->in[0]);
}

extern "C" enum sl_status slp_cuda_batch_norm_grad(const struct slp_kernel *k)
{
	if (slp_size(&k->in[2]) == 0) return SL_OK;
	RUN(grad, &k->in[1]);
}
