/* Layer normalisation on a GPU: a group of threads a row.  In the backward pass, where warps hold rows in registers, a
 * block computes a part of the rows and sums them for gamma and beta as it goes, so that they come from memory once; the
 * last block joins the parts.  Longer rows are read twice: by groups, and by blocks that sum columns of parts of the
 * rows, all in one launch.  The order of all sums is fixed.  Rows that a group cannot hold in registers have one type;
 * others may have several (autocast). */
#include "op.h"
#include "common/lanes.cuh"
#include "common/last.cuh"
#include "common/wide.cuh"
#include "layer_norm.h"

/* The operands of the forward pass: x and, if not NULL, r, whose sum is stored in `sum`. */
template <class X, class R, class Y> struct layer {
	typedef X x_type;
	typedef typename slp_number<X>::type T;
	slp_layer_rows s;
	double eps;
	const X *x;
	const R *r;
	slp_vector<T> gamma, beta;
	X *sum;
	Y *y;
	T *means, *invstds;
	/* Tells the emulated devices of the tests which pointers are in here. */
	template <class F> void emu_pointers(F f)
	{
		f(x), f(r), f(gamma), f(beta), f(sum), f(y), f(means), f(invstds);
	}
};

/* Of the backward pass: `more` is added to dx if it is not NULL; `copy`, if it is not NULL, gets dx in the half type of dy
 * or more. */
template <class D, class X, class M> struct slopes {
	typedef X x_type;
	typedef typename slp_number<X>::type T;
	typedef typename std::conditional<std::is_same<D, X>::value, M, D>::type copy_type;
	slp_layer_rows s;
	const D *dy;
	const X *x;
	const M *more;
	slp_vector<T> gamma, means, invstds;
	X *dx;
	copy_type *copy;
	slp_vector<T> dgamma, dbeta;
	double *sums;            /* [part][2][n]: of dy h and of dy */
	unsigned *arrived, rows; /* rows: blocks for dx, which come first */
	template <class F> void emu_pointers(F f)
	{
		f(dy), f(x), f(more), f(gamma), f(means), f(invstds), f(dx), f(copy), f(dgamma), f(dbeta), f(sums),
		        f(arrived);
	}
};

/* The sum, as it is stored. */
template <class X, class T> __device__ inline T rounded(T v)
{
	return (T)slp_stored<X>::of(v);
}

template <int LANES, class L> __global__ void forward(L w)
{
	typedef typename L::T T;
	typedef typename L::x_type X;
	const slp_layer_rows &s = w.s;
	for (int64_t r = slp_group<LANES>(); r < s.rows; r += slp_groups<LANES>()) {
		const X *x = w.x + r * s.n;
		double sum = 0, squares = 0;
		for (int64_t i = slp_lane<LANES>(); w.r && i < s.n; i += LANES)
			w.sum[r * s.n + i] = rounded<X>((T)x[i] + (T)w.r[r * s.n + i]);
		if (w.r) x = w.sum + r * s.n; /* a thread reads what it has written */
		for (int64_t i = slp_lane<LANES>(); i < s.n; i += LANES) sum += x[i];
		double mean = slp_group_reduce<LANES>(sum, slp_sum_of(), 0.0) / s.n;
		T center = (T)mean;
		for (int64_t i = slp_lane<LANES>(); i < s.n; i += LANES) {
			T d = (T)x[i] - center;
			squares += (double)d * d;
		}
		double rest = mean - center; /* the rounding error of the centre */
		double var = slp_group_reduce<LANES>(squares, slp_sum_of(), 0.0) / s.n - rest * rest;
		double invstd = 1 / sqrt((var < 0 ? 0 : var) + w.eps);
		T scale = (T)invstd, shift = (T)(-rest * invstd);
		for (int64_t i = slp_lane<LANES>(); i < s.n; i += LANES)
			w.y[r * s.n + i] = (((T)x[i] - center) * scale + shift) * w.gamma[i] + w.beta[i];
		if (slp_lane<LANES>() == 0) {
			w.means[r] = center;
			w.invstds[r] = scale;
		}
	}
}

template <int LANES, class L> __device__ inline void grad_rows(const L &w)
{
	typedef typename L::T T;
	const slp_layer_rows &s = w.s;
	for (int64_t r = slp_group<LANES>(); r < s.rows; r += slp_groups<LANES>(w.rows)) {
		T mean = w.means[r], invstd = w.invstds[r];
		double sum = 0, product = 0;
		for (int64_t i = slp_lane<LANES>(); i < s.n; i += LANES) {
			T d = (T)w.dy[r * s.n + i] * w.gamma[i];
			sum += d;
			product += d * ((T)w.x[r * s.n + i] - mean);
		}
		T a = (T)(slp_group_reduce<LANES>(sum, slp_sum_of(), 0.0) / s.n);
		T b = (T)(slp_group_reduce<LANES>(product, slp_sum_of(), 0.0) / s.n * invstd * invstd);
		for (int64_t e = r * s.n + slp_lane<LANES>(); e < (r + 1) * s.n; e += LANES) {
			T dx = invstd * ((T)w.dy[e] * w.gamma[e - r * s.n] - a - b * ((T)w.x[e] - mean));
			w.dx[e] = dx = w.more ? rounded<typename L::x_type>(dx) + (T)w.more[e] : dx;
			if (w.copy) w.copy[e] = rounded<typename L::x_type>(dx);
		}
	}
}

/* The same for rows that fit in a group's registers, UNITS groups of W neighbours of a thread: each element is read
 * once. */
template <int W, int LANES, int UNITS> struct held {
	static constexpr int COUNT = UNITS * W;
	/* The beginning of unit u of this thread. */
	static __device__ int64_t at(int u)
	{
		return (slp_lane<LANES>() + u * LANES) * (int64_t)W;
	}
	template <class S, class T> static __device__ void load(const S *row, int64_t n, T *v)
	{
#pragma unroll
		for (int u = 0; u < UNITS; u++)
			if (at(u) < n) slp_load_group<W>(row + at(u), v + u * W);
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
	template <class S, class T> static __device__ void store(S *row, int64_t n, const T *v)
	{
#pragma unroll
		for (int u = 0; u < UNITS; u++)
			if (at(u) < n) slp_store_group<W>(row + at(u), v + u * W);
	}
};

/* The elements of a row that a thread can hold. */
enum { HELD = 32 };
template <class X, int LANES> struct held_of : held<slp_wide_count<X>, LANES, HELD / slp_wide_count<X>> {
};

template <int LANES, class L> __global__ void forward_held(L w)
{
	typedef typename L::T T;
	typedef typename L::x_type X;
	typedef held_of<X, LANES> H;
	const slp_layer_rows &s = w.s;
	for (int64_t r = slp_group<LANES>(); r < s.rows; r += slp_groups<LANES>()) {
		T v[H::COUNT];
		double sum = 0, squares = 0;
		H::load(w.x + r * s.n, s.n, v);
		if (w.r) {
			T other[H::COUNT];
			H::load(w.r + r * s.n, s.n, other);
			H::each(s.n, [&](int64_t, int j) { v[j] = rounded<X>(v[j] + other[j]); });
			H::store(w.sum + r * s.n, s.n, v);
		}
		H::each(s.n, [&](int64_t, int j) { sum += v[j]; });
		double mean = slp_group_reduce<LANES>(sum, slp_sum_of(), 0.0) / s.n;
		T center = (T)mean;
		H::each(s.n, [&](int64_t, int j) {
			v[j] -= center;
			squares += (double)v[j] * v[j];
		});
		double rest = mean - center; /* the rounding error of the centre */
		double var = slp_group_reduce<LANES>(squares, slp_sum_of(), 0.0) / s.n - rest * rest;
		double invstd = 1 / sqrt((var < 0 ? 0 : var) + w.eps);
		T scale = (T)invstd, shift = (T)(-rest * invstd);
		H::each(s.n, [&](int64_t i, int j) { v[j] = (v[j] * scale + shift) * w.gamma[i] + w.beta[i]; });
		H::store(w.y + r * s.n, s.n, v);
		if (slp_lane<LANES>() == 0) {
			w.means[r] = center;
			w.invstds[r] = scale;
		}
	}
}

/* One row. */
template <int LANES, class L> __device__ inline void grad_held(const L &w, int64_t r)
{
	typedef typename L::T T;
	typedef held_of<typename L::x_type, LANES> H;
	const slp_layer_rows &s = w.s;
	T d[H::COUNT], v[H::COUNT], mean = w.means[r], invstd = w.invstds[r];
	double sum = 0, product = 0;
	H::load(w.dy + r * s.n, s.n, d);
	H::load(w.x + r * s.n, s.n, v);
	H::each(s.n, [&](int64_t i, int j) {
		d[j] *= w.gamma[i];
		v[j] -= mean;
		sum += d[j];
		product += d[j] * v[j];
	});
	T a = (T)(slp_group_reduce<LANES>(sum, slp_sum_of(), 0.0) / s.n);
	T b = (T)(slp_group_reduce<LANES>(product, slp_sum_of(), 0.0) / s.n * invstd * invstd);
	H::each(s.n, [&](int64_t, int j) { d[j] = invstd * (d[j] - a - b * v[j]); });
	if (w.more) {
		H::load(w.more + r * s.n, s.n, v);
		H::each(s.n, [&](int64_t, int j) { d[j] = rounded<typename L::x_type>(d[j]) + v[j]; });
	}
	H::store(w.dx + r * s.n, s.n, d);
	if (!w.copy) return;
	H::each(s.n, [&](int64_t, int j) { d[j] = rounded<typename L::x_type>(d[j]); });
	H::store(w.copy + r * s.n, s.n, d);
}

template <int LANES, class L> __device__ inline void grad_rows_held(const L &w)
{
	for (int64_t r = slp_group<LANES>(); r < w.s.rows; r += slp_groups<LANES>(w.rows)) grad_held<LANES>(w, r);
}

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

/* Columns `group` of COLUMNS, part `part` of `parts`. */
template <class L> __device__ inline void grad_parts(const L &w, unsigned group, unsigned part, unsigned parts)
{
	typedef typename L::T T;
	const slp_layer_rows &s = w.s;
	int column = threadIdx.x % COLUMNS, row = threadIdx.x / COLUMNS;
	int64_t i = group * (int64_t)COLUMNS + column, end = SLP_LAYER_PART(s, part + 1);
	double product = 0, sum = 0;
	for (int64_t r = SLP_LAYER_PART(s, part) + row; i < s.n && r < end; r += ROWS) {
		T d = w.dy[r * s.n + i];
		product += d * (((T)w.x[r * s.n + i] - w.means[r]) * w.invstds[r]);
		sum += d;
	}
	add_rows(&product, &sum);
	bool mine = row == 0 && i < s.n;
	if (mine && parts > 1) {
		w.sums[2 * part * s.n + i] = product;
		w.sums[(2 * part + 1) * s.n + i] = sum;
	}
	if (parts > 1) {
		if (!slp_arrives_last(w.arrived + group, parts)) return;
		product = sum = 0;
		for (int64_t p = row; i < s.n && p < parts; p += ROWS) {
			product += w.sums[2 * p * s.n + i];
			sum += w.sums[(2 * p + 1) * s.n + i];
		}
		add_rows(&product, &sum);
	}
	if (!mine) return;
	w.dgamma.set(i, product);
	w.dbeta.set(i, sum);
}

/* ---- rows and columns by the same blocks ------------------------------------------------------------------------- */

/* Columns of a thread; warps of a block, each with a row at a time; parts of a group. */
enum { OWN = SLP_WARP * HELD / SLP_BLOCK, WARPS = SLP_BLOCK / SLP_WARP, JOINED = 16 };

/* Both sums of a thread's columns: of dy h and of dy. */
struct column_sums {
	double product[OWN], sum[OWN];
};

/* Calls f(column, c) for each column of the calling thread; c counts them from 0. */
template <class F> __device__ inline void own_columns(int64_t n, F f)
{
#pragma unroll
	for (int c = 0; c < OWN; c++) {
		int64_t i = threadIdx.x + c * (int64_t)SLP_BLOCK;
		if (i < n) f(i, c);
	}
}

/* Adds the rows [first, end), which the block has just read. */
template <class L> __device__ inline void add_columns(const L &w, int64_t first, int64_t end, column_sums *to)
{
	typedef typename L::T T;
	for (int64_t r = first; r < end; r++) {
		T mean = w.means[r], invstd = w.invstds[r];
		own_columns(w.s.n, [&](int64_t i, int c) {
			T d = w.dy[r * w.s.n + i];
			to->product[c] += d * (((T)w.x[r * w.s.n + i] - mean) * invstd);
			to->sum[c] += d;
		});
	}
}

/* The sums of `count` parts, `step` apart. */
template <class L> __device__ inline column_sums stored_sums(const L &w, int64_t first, int64_t count, int64_t step)
{
	column_sums to = {};
	for (int64_t p = 0; p < count; p++) {
		const double *from = w.sums + 2 * (first + p * step) * w.s.n;
		own_columns(w.s.n, [&](int64_t i, int c) {
			to.product[c] += from[i];
			to.sum[c] += from[w.s.n + i];
		});
	}
	return to;
}

template <class L> __device__ inline void store_sums(const L &w, int64_t part, const column_sums &from)
{
	double *to = w.sums + 2 * part * w.s.n;
	own_columns(w.s.n, [&](int64_t i, int c) {
		to[i] = from.product[c];
		to[w.s.n + i] = from.sum[c];
	});
}

/* The last of JOINED blocks adds up their parts, and the last of these blocks all of them: alone, one block would take
 * long.  Returns true in the block that comes last; there `sums` are the sums of all rows. */
template <class L> __device__ inline bool join_parts(const L &w, column_sums *sums)
{
	unsigned parts = gridDim.x, group = blockIdx.x / JOINED, first = group * JOINED,
	         groups = (parts + JOINED - 1) / JOINED,
	         count = parts - first < JOINED ? parts - first : (unsigned)JOINED;
	store_sums(w, blockIdx.x, *sums);
	if (!slp_arrives_last(w.arrived + 1 + group, count)) return false;
	*sums = stored_sums(w, first, count, 1);
	if (groups == 1) return true;
	store_sums(w, first, *sums); /* each thread overwrites only what it has read itself */
	if (!slp_arrives_last(w.arrived, groups)) return false;
	*sums = stored_sums(w, 0, groups, JOINED);
	return true;
}

/* A block a part. */
template <class L> __global__ void backward_once(L w)
{
	const slp_layer_rows &s = w.s;
	int64_t end = SLP_LAYER_PART(s, (int64_t)blockIdx.x + 1);
	column_sums sums = {};
	for (int64_t r = SLP_LAYER_PART(s, (int64_t)blockIdx.x); r < end; r += WARPS) {
		int64_t mine = r + threadIdx.x / SLP_WARP;
		if (mine < end) grad_held<SLP_WARP>(w, mine);
		add_columns(w, r, r + WARPS < end ? r + WARPS : end, &sums);
	}
	if (!join_parts(w, &sums)) return;
	own_columns(s.n, [&](int64_t i, int c) {
		w.dgamma.set(i, sums.product[c]);
		w.dbeta.set(i, sums.sum[c]);
	});
}

/* Whether rows of x are read once: where there are several parts, and not in float64, which needs too many registers. */
template <class X> static bool reads_once(slp_layer_rows s)
{
	return sizeof(typename slp_number<X>::type) == sizeof(float) && slp_layer_blocks(s.rows) > 1 &&
	       s.n % slp_wide_count<X> == 0 && s.n >= SLP_WARP && s.n <= HELD * SLP_WARP;
}

/* ---- rows and columns by blocks of their own --------------------------------------------------------------------- */

/* Blocks for rows first, then those for the columns of parts. */
template <int LANES, bool HOLDS, class L> __global__ void backward(L w)
{
	unsigned parts = (unsigned)w.s.parts, n = blockIdx.x;
	if (n >= w.rows) grad_parts(w, (n - w.rows) / parts, (n - w.rows) % parts, parts);
	else if constexpr (HOLDS) grad_rows_held<LANES>(w);
	else grad_rows<LANES>(w);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

template <class S> static const S *in(const slp_kernel *k, int i)
{
	return i < k->nin ? (const S *)k->in[i].ptr : NULL;
}

template <class S> static S *out(const slp_kernel *k, int i)
{
	return i < k->nout ? (S *)k->out[i].ptr : NULL;
}

template <class T> static slp_vector<T> vector(const slp_kernel *k, int i)
{
	return slp_vector<T>::of(i < k->nin ? &k->in[i] : &k->out[i - k->nin]);
}

/* Calls f with the types of rows that a call may have beside x: one and the same, or float32 beside halves, where `a`
 * and `b` say which of the others is one.  `mixed` of f: whether types differ. */
template <class F> static void with_rows(enum sl_dtype x, enum sl_dtype a, enum sl_dtype b, F f)
{
	if (x == a && x == b) {
		slp_with_float(x, [&](auto zero) { f(zero, zero, zero, std::false_type()); });
		return;
	}
	slp_with_numbers<SLP_HALVES>(a == SL_FLOAT32 ? b : a, [&](auto half) {
		if (a == SL_FLOAT32) f(float(), float(), half, std::true_type());
		else if (b == SL_FLOAT32) f(float(), half, float(), std::true_type());
		else f(float(), half, half, std::true_type());
	});
}

/* Calls f(lanes, whether a group holds its row) for these rows; false: types differ, and no group holds a row. */
template <class X, bool MIXED, class F> static bool with_groups(slp_layer_rows s, F f)
{
	if (with_held<X>(s, [&](auto lanes) { f(lanes, std::true_type()); })) return true;
	if constexpr (!MIXED) slp_with_lanes(s.n, [&](auto lanes) { f(lanes, std::false_type()); });
	return !MIXED;
}

template <class X, class R, class Y, bool MIXED> static bool launch_forward(const slp_kernel *k, slp_layer_rows s)
{
	typedef typename slp_number<X>::type T;
	const slp_layer_norm_attrs *a = (const slp_layer_norm_attrs *)k->attrs;
	typedef layer<X, R, Y> L;
	L w = {s,
	       a->eps,
	       in<X>(k, 0),
	       in<R>(k, 3),
	       vector<T>(k, 1),
	       vector<T>(k, 2),
	       out<X>(k, 3),
	       out<Y>(k, 0),
	       out<T>(k, 1),
	       out<T>(k, 2)};
	return with_groups<X, MIXED>(s, [&](auto lanes, auto holds) {
		constexpr int LANES = decltype(lanes)::value;
		unsigned blocks = slp_group_grid(s.rows, LANES);
		if constexpr (decltype(holds)::value)
			SLP_LAUNCH((forward_held<LANES, L>), blocks, SLP_BLOCK, 0, k->stream, w);
		else SLP_LAUNCH((forward<LANES, L>), blocks, SLP_BLOCK, 0, k->stream, w);
	});
}

extern "C" sl_status slp_cuda_layer_norm_sum(const slp_kernel *k)
{
	slp_layer_rows s = slp_layer_rows_of(k->in[0].type.shape);
	enum sl_dtype x = k->in[0].type.dtype, y = k->out[0].type.dtype, r = k->nin > 3 ? k->in[3].type.dtype : x;
	bool done = true;
	if (s.rows == 0) return SL_OK;
	with_rows(x, r, y, [&](auto x, auto r, auto y, auto mixed) {
		done = launch_forward<decltype(x), decltype(r), decltype(y), decltype(mixed)::value>(k, s);
	});
	return done ? slp_launched(k) : SL_EUNSUPPORTED;
}

extern "C" sl_status slp_cuda_layer_norm(const slp_kernel *k)
{
	return slp_cuda_layer_norm_sum(k);
}

template <class L> static bool launch_once(const slp_kernel *k, L w)
{
	if constexpr (sizeof(typename L::T) == sizeof(float)) {
		w.s.parts = slp_layer_blocks(w.s.rows);
		SLP_LAUNCH(backward_once<L>, (unsigned)w.s.parts, SLP_BLOCK, 0, k->stream, w);
	}
	return true;
}

template <class D, class X, class M, bool MIXED>
static bool launch_back(const slp_kernel *k, slp_layer_rows s, unsigned *arrived)
{
	typedef typename slp_number<X>::type T;
	typedef slopes<D, X, M> L;
	int64_t groups = (s.n + COLUMNS - 1) / COLUMNS;
	if (s.parts == 0 || groups > SLP_ARRIVALS) s.parts = 1;
	L w = {s,
	       in<D>(k, 0),
	       in<X>(k, 1),
	       in<M>(k, 5),
	       vector<T>(k, 2),
	       vector<T>(k, 3),
	       vector<T>(k, 4),
	       out<X>(k, 0),
	       out<typename L::copy_type>(k, 3),
	       vector<T>(k, k->nin + 1),
	       vector<T>(k, k->nin + 2),
	       (double *)k->scratch,
	       arrived,
	       0};
	if (reads_once<X>(s)) return launch_once(k, w);
	return with_groups<X, MIXED>(s, [&](auto lanes, auto holds) {
		constexpr int LANES = decltype(lanes)::value;
		if (s.rows > 0) w.rows = slp_group_grid(s.rows, LANES);
		SLP_LAUNCH((backward<LANES, decltype(holds)::value, L>), w.rows + (unsigned)(groups * s.parts),
		           SLP_BLOCK, 0, k->stream, w);
	});
}

extern "C" sl_status slp_cuda_layer_norm_grad_copy(const slp_kernel *k)
{
	slp_layer_rows s = slp_layer_rows_of(k->in[1].type.shape);
	enum sl_dtype d = k->in[0].type.dtype, x = k->in[1].type.dtype, m = k->nin > 5 ? k->in[5].type.dtype : x;
	unsigned *arrived = slp_arrivals(k);
	bool done = true;
	if (!arrived) return SL_EKERNEL;
	if (s.n == 0) return SL_OK;
	with_rows(x, d, m, [&](auto x, auto d, auto m, auto mixed) {
		done = launch_back<decltype(d), decltype(x), decltype(m), decltype(mixed)::value>(k, s, arrived);
	});
	return done ? slp_launched(k) : SL_EUNSUPPORTED;
}

extern "C" sl_status slp_cuda_layer_norm_grad(const slp_kernel *k)
{
	return slp_cuda_layer_norm_grad_copy(k);
}
