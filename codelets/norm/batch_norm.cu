/* Batch normalisation on a GPU: partial sums by several blocks a channel, one thread a channel that joins them, one
 * thread an element that applies them.  The order of all sums is fixed.  Where each element of an image is a channel of its own,
 * as in all images with channels last, neighbouring threads have neighbouring channels. */
#include "common/element.cuh"
#include "common/lanes.cuh"
#include "common/activation.h"
#include "common/lane_order.h"
#include "batch_norm.h"

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

/* Elements [begin, end) of a channel are part `part` of `parts`. */
static __device__ int64_t
part_begin(struct slp_norm_size z, int part, int parts)
{
	return z.n * z.s * part / parts;
}

/* Element i of channel c, counted over images and within planes. */
template <class I> static __device__ int64_t element(struct slp_norm_size z, int64_t c, int64_t i)
{
	I n = (I)i / (I)z.s, at = (I)i - n * (I)z.s;
	if (z.blocks) return slp_order_in_blocks(z.c, z.s, n, c, at);
	return ((int64_t)n * z.c + c) * z.s + at;
}

/* ---- sums ------------------------------------------------------------------------------------------------------- */

enum { CHUNK = 8 }; /* elements that a thread holds at a time */

/* Mean and sum of squared deviations of what a thread meets, a chunk at a time: joined as in batch_norm_cpu.c. */
template <class T> struct moments {
	T count, mean, squares;
	__device__ void join(T n, T m, T m2)
	{
		T total = count + n, delta = m - mean;
		mean += delta * (n / total);
		squares += m2 + delta * delta * (count * n / total);
		count = total;
	}
	__device__ void add(const T *v, int n)
	{
		T sum = 0, m2 = 0;
		for (int i = 0; i < n; i++) sum += v[i];
		T m = sum / T(n);
		for (int i = 0; i < n; i++) m2 += (v[i] - m) * (v[i] - m);
		join(T(n), m, m2);
	}
};

/* grid (channels, parts).  part[channel][part] = {mean, squares}, of the differences to the channel's first element:
 * they lose less in rounding where the mean is large against the deviation. */
template <class S, class T, class I> __global__ void stat_parts(const S *x, struct slp_norm_size z, struct space<T> w)
{
	int64_t c = blockIdx.x, begin = part_begin(z, blockIdx.y, gridDim.y),
	        end = part_begin(z, blockIdx.y + 1, gridDim.y);
	moments<T> m = {0, 0, 0};
	T first = x[element<I>(z, c, 0)];
	for (int64_t i = begin + threadIdx.x; i < end;) {
		T v[CHUNK];
		int n = 0;
		for (; n < CHUNK && i < end; n++, i += blockDim.x) v[n] = (T)x[element<I>(z, c, i)] - first;
		m.add(v, n);
	}
	T mean = slp_block_reduce(m.count * m.mean, slp_sum_of(), T(0)) / T(end - begin);
	T squares = slp_block_reduce(m.squares + m.count * (m.mean - mean) * (m.mean - mean), slp_sum_of(), T(0));
	if (threadIdx.x) return;
	T *part = w.part + (c * gridDim.y + blockIdx.y) * 2;
	part[0] = mean;
	part[1] = squares;
}

enum { WIDE = 16, DEEP = SLP_BLOCK / WIDE }; /* channels of a block; rows that it takes at a time */

/* The same for planes of an element, grid (channels / WIDE, parts). */
template <class S, class T> __global__ void stat_rows(const S *x, struct slp_norm_size z, struct space<T> w)
{
	__shared__ T all[3][DEEP][WIDE];
	int lane = (int)(threadIdx.x % WIDE), depth = (int)(threadIdx.x / WIDE);
	int64_t c = blockIdx.x * (int64_t)WIDE + lane, i = part_begin(z, blockIdx.y, gridDim.y) + depth,
	        end = part_begin(z, blockIdx.y + 1, gridDim.y);
	moments<T> m = {0, 0, 0};
	T first = c < z.c ? (T)x[c] : T(0);
	while (c < z.c && i < end) {
		T v[CHUNK];
		int n = 0;
		for (; n < CHUNK && i < end; n++, i += DEEP) v[n] = (T)x[i * z.c + c] - first;
		m.add(v, n);
	}
	all[0][depth][lane] = m.count;
	all[1][depth][lane] = m.mean;
	all[2][depth][lane] = m.squares;
	__syncthreads();
	if (depth || c >= z.c) return;
	for (int d = 1; d < DEEP; d++)
		if (all[0][d][lane] > 0) m.join(all[0][d][lane], all[1][d][lane], all[2][d][lane]);
	T *part = w.part + (c * gridDim.y + blockIdx.y) * 2;
	part[0] = m.mean;
	part[1] = m.squares;
}

/* Element i of dy, back through relu where its result y is given. */
template <class S> static __device__ inline typename slp_number<S>::type dy_at(const S *dy, const S *y, int64_t i)
{
	typedef typename slp_number<S>::type T;
	return y && (T)y[i] <= 0 ? T(0) : (T)dy[i];
}

/* part[channel][part] = {Σ dy, Σ dy (x - center)}. */
template <class S, class T, class I> __global__ void
grad_parts(const S *dy, const S *y, const S *x, slp_vector<T> center, struct slp_norm_size z, struct space<T> w)
{
	int64_t c = blockIdx.x, begin = part_begin(z, blockIdx.y, gridDim.y),
	        end = part_begin(z, blockIdx.y + 1, gridDim.y);
	T sum = 0, product = 0, mean = center[c];
	for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
		int64_t e = element<I>(z, c, i);
		T d = dy_at(dy, y, e);
		sum += d;
		product += d * ((T)x[e] - mean);
	}
	sum = slp_block_reduce(sum, slp_sum_of(), T(0));
	product = slp_block_reduce(product, slp_sum_of(), T(0));
	if (threadIdx.x) return;
	T *part = w.part + (c * gridDim.y + blockIdx.y) * 2;
	part[0] = sum;
	part[1] = product;
}

/* The same for planes of an element, as stat_rows. */
template <class S, class T> __global__ void grad_rows(const S *dy, const S *y, const S *x, slp_vector<T> center,
                                                      struct slp_norm_size z, struct space<T> w)
{
	__shared__ T all[2][DEEP][WIDE];
	int lane = (int)(threadIdx.x % WIDE), depth = (int)(threadIdx.x / WIDE);
	int64_t c = blockIdx.x * (int64_t)WIDE + lane, end = part_begin(z, blockIdx.y + 1, gridDim.y);
	T sum = 0, product = 0, mean = c < z.c ? center[c] : T(0);
	for (int64_t i = part_begin(z, blockIdx.y, gridDim.y) + depth; c < z.c && i < end; i += DEEP) {
		T d = dy_at(dy, y, i * z.c + c);
		sum += d;
		product += d * ((T)x[i * z.c + c] - mean);
	}
	all[0][depth][lane] = sum;
	all[1][depth][lane] = product;
	__syncthreads();
	if (depth || c >= z.c) return;
	for (int d = 1; d < DEEP; d++) sum += all[0][d][lane], product += all[1][d][lane];
	T *part = w.part + (c * gridDim.y + blockIdx.y) * 2;
	part[0] = sum;
	part[1] = product;
}

/* ---- coefficients ----------------------------------------------------------------------------------------------- */

/* What the centre loses in rounding goes into the constant. */
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

template <class S, class T> __global__ void finish_training(struct forward<T> v, const S *x, struct slp_norm_size z,
                                                            int parts, struct slp_norm_attrs a, struct space<T> w)
{
	SLP_GRID_STRIDE(c, z.c)
	{
		double count = 0, mean = 0, squares = 0;
		for (int i = 0; i < parts; i++) {
			const T *part = w.part + (c * parts + i) * 2;
			double n = (double)(part_begin(z, i + 1, parts) - part_begin(z, i, parts)),
			       delta = part[0] - mean;
			mean += delta * n / (count + n);
			squares += part[1] + delta * delta * count * n / (count + n);
			count += n;
		}
		mean += x[element<int64_t>(z, c, 0)];
		double var = squares / count, invstd = 1 / sqrt(var + a.eps);
		v.mean.set(c, mean);
		v.invstd.set(c, invstd);
		v.running_mean.set(c, a.momentum * v.running_mean[c] + (1 - a.momentum) * mean);
		v.running_var.set(c, a.momentum * v.running_var[c] + (1 - a.momentum) * var);
		set_forward(w, c, mean, invstd, v.gamma[c], v.beta[c]);
	}
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

template <class T>
__global__ void finish_grad(struct backward<T> v, struct slp_norm_size z, int parts, bool global, struct space<T> w)
{
	SLP_GRID_STRIDE(c, z.c)
	{
		double sum = 0, product = 0, invstd = v.invstd[c], scale = v.gamma[c] * invstd;
		for (int i = 0; i < parts; i++) {
			sum += w.part[(c * parts + i) * 2];
			product += w.part[(c * parts + i) * 2 + 1];
		}
		double share = global ? 0 : scale / (double)(z.n * z.s);
		v.dgamma.set(c, product * invstd);
		v.dbeta.set(c, sum);
		w.center[c] = v.mean[c];
		w.k0[c] = (T)scale;
		w.k1[c] = (T)(-share * product * invstd * invstd);
		w.k2[c] = (T)(-share * sum);
	}
}

/* ---- elements --------------------------------------------------------------------------------------------------- */

/* Of element i. */
template <class I> static __device__ I channel(struct slp_norm_size z, I i)
{
	const I block = SLP_ORDER_BLOCK;
	if (z.blocks) return i / (block * (I)z.s) % ((I)z.c / block) * block + i % block;
	return i / (I)z.s % (I)z.c;
}

template <class S, class T, class I> __global__ void apply(S *out, const S *x, const S *dy, const S *y, int64_t size,
                                                           struct slp_norm_size z, int activation, struct space<T> w)
{
	SLP_GRID_STRIDE(i, size)
	{
		I c = channel<I>(z, (I)i);
		T v = ((T)x[i] - w.center[c]) * w.k1[c] + w.k2[c];
		out[i] = dy ? dy_at(dy, y, i) * w.k0[c] + v : slp_activated<T>(v, activation);
	}
}

template <class S, class I> struct runner {
	typedef typename slp_number<S>::type T;
	const struct slp_kernel *k;
	struct slp_norm_size z;
	struct space<T> w;
	int64_t size;
	int parts;

	/* Enough blocks to fill a GPU, none with little to do. */
	runner(const struct slp_kernel *k, const struct slp_view *x)
	    : k(k), z(slp_norm_size_of(x->type.shape, k->op, k->attrs)), w(space_of<T>(k, z.c)), size(slp_size(x))
	{
		int64_t fill = (2048 + groups() - 1) / groups(),
		        most = z.n * z.s / (CHUNK * (rows() ? (int)DEEP : (int)SLP_BLOCK));
		int64_t n = fill < most ? fill : most;
		parts = (int)(n < 1 ? 1 : n > SLP_NORM_PARTS ? (int)SLP_NORM_PARTS : n);
	}
	bool rows() const
	{
		return z.s == 1 && !z.blocks;
	}
	int64_t groups() const
	{
		return rows() ? (z.c + WIDE - 1) / WIDE : z.c;
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
		SLP_LAUNCH((apply<S, T, I>), slp_grid(size), SLP_BLOCK, 0, k->stream, (S *)k->out[0].ptr, x, dy, y,
		           size, z, activation, w);
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
		if (rows()) SLP_LAUNCH((stat_rows<S, T>), grid(), SLP_BLOCK, 0, k->stream, in(0), z, w);
		else SLP_LAUNCH((stat_parts<S, T, I>), grid(), SLP_BLOCK, 0, k->stream, in(0), z, w);
		SLP_LAUNCH((finish_training<S, T>), slp_grid(z.c), SLP_BLOCK, 0, k->stream, v, in(0), z, parts, attrs(),
		           w);
		finish(in(0), nullptr, nullptr, attrs().activation);
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
		if (rows())
			SLP_LAUNCH((grad_rows<S, T>), grid(), SLP_BLOCK, 0, k->stream, in(0), y, in(1), v.mean, z, w);
		else SLP_LAUNCH((grad_parts<S, T, I>), grid(), SLP_BLOCK, 0, k->stream, in(0), y, in(1), v.mean, z, w);
		SLP_LAUNCH(finish_grad<T>, slp_grid(z.c), SLP_BLOCK, 0, k->stream, v, z, parts, a->global, w);
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
			if (slp_size(x) <= INT32_MAX) status = runner<S, uint32_t>(k, x).step();                       \
			else status = runner<S, int64_t>(k, x).step();                                                 \
		});                                                                                                    \
		return status;                                                                                         \
	} while (0)

extern "C" enum sl_status slp_cuda_batch_norm(const struct slp_kernel *k)
{
	if (slp_size(&k->in[0]) == 0) return SL_OK;
	RUN(training, &k->in[0]);
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
