/* Layer normalisation on a GPU: a group of threads a row; for gamma and beta a tile of threads sums columns of a part
 * of the rows, and the last one of these columns joins the parts.  The order of all sums is fixed. */
#include "op.h"
#include "common/lanes.cuh"
#include "common/last.cuh"
#include "common/wide.cuh"
#include "layer_norm.h"

template <class S, class T, int LANES> __global__ void
forward(slp_layer_rows s, double eps, const S *x, slp_vector<T> gamma, slp_vector<T> beta, S *y, T *means, T *invstds)
{
	for (int64_t r = slp_group<LANES>(); r < s.rows; r += slp_groups<LANES>()) {
		double sum = 0, squares = 0;
		for (int64_t i = slp_lane<LANES>(); i < s.n; i += LANES) sum += x[r * s.n + i];
		double mean = slp_group_reduce<LANES>(sum, slp_sum_of(), 0.0) / s.n;
		T center = (T)mean;
		for (int64_t i = slp_lane<LANES>(); i < s.n; i += LANES) {
			T d = (T)x[r * s.n + i] - center;
			squares += (double)d * d;
		}
		double rest = mean - center; /* the rounding error of the centre */
		double var = slp_group_reduce<LANES>(squares, slp_sum_of(), 0.0) / s.n - rest * rest;
		double invstd = 1 / sqrt((var < 0 ? 0 : var) + eps);
		T scale = (T)invstd, shift = (T)(-rest * invstd);
		for (int64_t i = slp_lane<LANES>(); i < s.n; i += LANES)
			y[r * s.n + i] = (((T)x[r * s.n + i] - center) * scale + shift) * gamma[i] + beta[i];
		if (slp_lane<LANES>() == 0) {
			means[r] = center;
			invstds[r] = scale;
		}
	}
}

template <class S, class T, int LANES> __global__ void grad_rows(slp_layer_rows s, const S *dy, const S *x,
                                                                 slp_vector<T> gamma, slp_vector<T> means,
                                                                 slp_vector<T> invstds, S *dx)
{
	for (int64_t r = slp_group<LANES>(); r < s.rows; r += slp_groups<LANES>()) {
		T mean = means[r], invstd = invstds[r];
		double sum = 0, product = 0;
		for (int64_t i = slp_lane<LANES>(); i < s.n; i += LANES) {
			T d = (T)dy[r * s.n + i] * gamma[i];
			sum += d;
			product += d * ((T)x[r * s.n + i] - mean);
		}
		T a = (T)(slp_group_reduce<LANES>(sum, slp_sum_of(), 0.0) / s.n);
		T b = (T)(slp_group_reduce<LANES>(product, slp_sum_of(), 0.0) / s.n * invstd * invstd);
		for (int64_t i = slp_lane<LANES>(); i < s.n; i += LANES)
			dx[r * s.n + i] = invstd * ((T)dy[r * s.n + i] * gamma[i] - a - b * ((T)x[r * s.n + i] - mean));
	}
}

/* The same for rows that fit in a group's registers, UNITS times 16 bytes of a thread: each element is read once. */
template <class S, int LANES, int UNITS> struct held {
	typedef typename slp_number<S>::type T;
	static constexpr int W = slp_wide_count<S>, COUNT = UNITS * W;
	/* The beginning of unit u of this thread. */
	static __device__ int64_t at(int u)
	{
		return (slp_lane<LANES>() + u * LANES) * (int64_t)W;
	}
	static __device__ void load(const S *row, int64_t n, T *v)
	{
#pragma unroll
		for (int u = 0; u < UNITS; u++) slp_wide_load(row + at(u), at(u) < n ? W : 0, v + u * W, T(0));
	}
	/* f(element of the row, element of the thread) */
	template <class F> static __device__ void each(int64_t n, F f)
	{
#pragma unroll
		for (int u = 0; u < UNITS; u++)
			if (at(u) < n)
#pragma unroll
				for (int l = 0; l < W; l++) f(at(u) + l, u * W + l);
	}
	static __device__ void store(S *row, int64_t n, const T *v)
	{
#pragma unroll
		for (int u = 0; u < UNITS; u++)
			if (at(u) < n) slp_wide_store(row + at(u), W, v + u * W);
	}
};

template <class S, class T, int LANES, int UNITS> __global__ void forward_held(slp_layer_rows s, double eps, const S *x,
                                                                               slp_vector<T> gamma, slp_vector<T> beta,
                                                                               S *y, T *means, T *invstds)
{
	typedef held<S, LANES, UNITS> H;
	for (int64_t r = slp_group<LANES>(); r < s.rows; r += slp_groups<LANES>()) {
		T v[H::COUNT];
		double sum = 0, squares = 0;
		H::load(x + r * s.n, s.n, v);
		H::each(s.n, [&](int64_t, int j) { sum += v[j]; });
		double mean = slp_group_reduce<LANES>(sum, slp_sum_of(), 0.0) / s.n;
		T center = (T)mean;
		H::each(s.n, [&](int64_t, int j) {
			v[j] -= center;
			squares += (double)v[j] * v[j];
		});
		double rest = mean - center; /* the rounding error of the centre */
		double var = slp_group_reduce<LANES>(squares, slp_sum_of(), 0.0) / s.n - rest * rest;
		double invstd = 1 / sqrt((var < 0 ? 0 : var) + eps);
		T scale = (T)invstd, shift = (T)(-rest * invstd);
		H::each(s.n, [&](int64_t i, int j) { v[j] = (v[j] * scale + shift) * gamma[i] + beta[i]; });
		H::store(y + r * s.n, s.n, v);
		if (slp_lane<LANES>() == 0) {
			means[r] = center;
			invstds[r] = scale;
		}
	}
}

template <class S, class T, int LANES, int UNITS>
__global__ void grad_rows_held(slp_layer_rows s, const S *dy, const S *x, slp_vector<T> gamma, slp_vector<T> means,
                               slp_vector<T> invstds, S *dx)
{
	typedef held<S, LANES, UNITS> H;
	for (int64_t r = slp_group<LANES>(); r < s.rows; r += slp_groups<LANES>()) {
		T d[H::COUNT], v[H::COUNT], mean = means[r], invstd = invstds[r];
		double sum = 0, product = 0;
		H::load(dy + r * s.n, s.n, d);
		H::load(x + r * s.n, s.n, v);
		H::each(s.n, [&](int64_t i, int j) {
			d[j] *= gamma[i];
			v[j] -= mean;
			sum += d[j];
			product += d[j] * v[j];
		});
		T a = (T)(slp_group_reduce<LANES>(sum, slp_sum_of(), 0.0) / s.n);
		T b = (T)(slp_group_reduce<LANES>(product, slp_sum_of(), 0.0) / s.n * invstd * invstd);
		H::each(s.n, [&](int64_t, int j) { d[j] = invstd * (d[j] - a - b * v[j]); });
		H::store(dx + r * s.n, s.n, d);
	}
}

/* The elements of a row that a thread can hold. */
enum { HELD = 32 };

/* Calls f with the lanes of a group that can hold a row; false: none can. */
template <class S, class F> static bool with_held(slp_layer_rows s, F f)
{
	if (s.n % slp_wide_count<S> || s.n > HELD * SLP_BLOCK || s.n < SLP_WARP) return false;
	if (s.n <= HELD * SLP_WARP) f(std::integral_constant<int, SLP_WARP>());
	else f(std::integral_constant<int, SLP_BLOCK>());
	return true;
}

/* A block: so many neighbouring columns, with so many rows at a time. */
enum { COLUMNS = 32, ROWS = SLP_BLOCK / COLUMNS };

/* Adds up what threads of a column have; the first one of each column has the sums then. */
static __device__ inline void add_rows(double *product, double *sum)
{
	__shared__ double products[ROWS][COLUMNS + 1], plain[ROWS][COLUMNS + 1];
	int column = threadIdx.x % COLUMNS, row = threadIdx.x / COLUMNS;
	products[row][column] = *product;
	plain[row][column] = *sum;
	__syncthreads();
	for (int l = 1; l < ROWS && row == 0; l++) {
		*product += products[l][column];
		*sum += plain[l][column];
	}
}

/* grid (columns / COLUMNS, parts).  sums[part][2][n]: of dy h and of dy. */
template <class S, class T> __global__ void grad_parts(slp_layer_rows s, const S *dy, const S *x, slp_vector<T> means,
                                                       slp_vector<T> invstds, double *sums, slp_vector<T> dgamma,
                                                       slp_vector<T> dbeta, unsigned *arrived)
{
	int column = threadIdx.x % COLUMNS, row = threadIdx.x / COLUMNS;
	int64_t i = blockIdx.x * (int64_t)COLUMNS + column, end = SLP_LAYER_PART(s, blockIdx.y + 1);
	double product = 0, sum = 0;
	for (int64_t r = SLP_LAYER_PART(s, blockIdx.y) + row; i < s.n && r < end; r += ROWS) {
		T d = dy[r * s.n + i];
		product += d * (((T)x[r * s.n + i] - means[r]) * invstds[r]);
		sum += d;
	}
	add_rows(&product, &sum);
	bool mine = row == 0 && i < s.n;
	if (mine && gridDim.y > 1) {
		sums[2 * blockIdx.y * s.n + i] = product;
		sums[(2 * blockIdx.y + 1) * s.n + i] = sum;
	}
	if (gridDim.y > 1) {
		if (!slp_arrives_last(arrived + blockIdx.x, gridDim.y)) return;
		product = sum = 0;
		for (int64_t part = row; i < s.n && part < gridDim.y; part += ROWS) {
			product += sums[2 * part * s.n + i];
			sum += sums[(2 * part + 1) * s.n + i];
		}
		add_rows(&product, &sum);
	}
	if (!mine) return;
	dgamma.set(i, product);
	dbeta.set(i, sum);
}

template <class S> static const S *in(const slp_kernel *k, int i)
{
	return (const S *)k->in[i].ptr;
}

template <class S> static S *out(const slp_kernel *k, int i)
{
	return (S *)k->out[i].ptr;
}

template <class T> static slp_vector<T> vector(const slp_kernel *k, int i)
{
	return slp_vector<T>::of(i < k->nin ? &k->in[i] : &k->out[i - k->nin]);
}

extern "C" sl_status slp_cuda_layer_norm(const slp_kernel *k)
{
	slp_layer_rows s = slp_layer_rows_of(k->in[0].type.shape);
	double eps = ((const slp_layer_norm_attrs *)k->attrs)->eps;
	if (s.rows == 0) return SL_OK;
	slp_with_float(k->in[0].type.dtype, [&](auto zero) {
		typedef decltype(zero) S;
		typedef typename slp_number<S>::type T;
		bool done = with_held<S>(s, [&](auto lanes) {
			constexpr int LANES = decltype(lanes)::value;
			SLP_LAUNCH((forward_held<S, T, LANES, HELD / slp_wide_count<S>>), slp_group_grid(s.rows, LANES),
			           SLP_BLOCK, 0, k->stream, s, eps, in<S>(k, 0), vector<T>(k, 1), vector<T>(k, 2),
			           out<S>(k, 0), out<T>(k, 1), out<T>(k, 2));
		});
		if (done) return;
		slp_with_lanes(s.n, [&](auto lanes) {
			constexpr int LANES = decltype(lanes)::value;
			SLP_LAUNCH((forward<S, T, LANES>), slp_group_grid(s.rows, LANES), SLP_BLOCK, 0, k->stream, s,
			           eps, in<S>(k, 0), vector<T>(k, 1), vector<T>(k, 2), out<S>(k, 0), out<T>(k, 1),
			           out<T>(k, 2));
		});
	});
	return slp_launched(k);
}

template <class S> static void launch_grad(const slp_kernel *k, slp_layer_rows s, unsigned *arrived)
{
	typedef typename slp_number<S>::type T;
	double *sums = (double *)k->scratch;
	slp_vector<T> gamma = vector<T>(k, 2), means = vector<T>(k, 3), invstds = vector<T>(k, 4);
	int64_t groups = (s.n + COLUMNS - 1) / COLUMNS;
	if (s.parts == 0 || groups > SLP_ARRIVALS) s.parts = 1;
	dim3 tiles((unsigned)groups, (unsigned)s.parts);
	if (s.rows > 0) {
		bool done = with_held<S>(s, [&](auto lanes) {
			constexpr int LANES = decltype(lanes)::value;
			SLP_LAUNCH((grad_rows_held<S, T, LANES, HELD / slp_wide_count<S>>),
			           slp_group_grid(s.rows, LANES), SLP_BLOCK, 0, k->stream, s, in<S>(k, 0), in<S>(k, 1),
			           gamma, means, invstds, out<S>(k, 0));
		});
		if (!done)
			slp_with_lanes(s.n, [&](auto lanes) {
				constexpr int LANES = decltype(lanes)::value;
				SLP_LAUNCH((grad_rows<S, T, LANES>), slp_group_grid(s.rows, LANES), SLP_BLOCK, 0,
				           k->stream, s, in<S>(k, 0), in<S>(k, 1), gamma, means, invstds, out<S>(k, 0));
			});
	}
	SLP_LAUNCH((grad_parts<S, T>), tiles, SLP_BLOCK, 0, k->stream, s, in<S>(k, 0), in<S>(k, 1), means, invstds,
	           sums, vector<T>(k, k->nin + 1), vector<T>(k, k->nin + 2), arrived);
}

extern "C" sl_status slp_cuda_layer_norm_grad(const slp_kernel *k)
{
	slp_layer_rows s = slp_layer_rows_of(k->in[1].type.shape);
	unsigned *arrived = slp_arrivals(k);
	if (!arrived) return SL_EKERNEL;
	if (s.n == 0) return SL_OK;
	slp_with_float(k->in[1].type.dtype, [&](auto zero) { launch_grad<decltype(zero)>(k, s, arrived); });
	return slp_launched(k);
}
