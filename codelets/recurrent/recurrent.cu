/* Recurrent layers on a GPU: a product by cuBLAS and a kernel over the units at each step. */
#include "op.h"
#include "recurrent.h"

#include "common/gemm.cuh"
#include "common/lanes.cuh"
#include "common/scalar.h"

#define CELL_FN static __host__ __device__ inline
#define CELL(name) name
#define T float
#include "cell.h"
#undef T
#define T double
#include "cell.h"
#undef T

/* One step. Rows of the previous step, for an LSTM of its cell, lie `stride` apart. */
template <class T> struct step {
	int cell;
	int64_t rows, units, gates, kept, stride;
	const T *x, *bias, *before, *product, *dy;
	T *z, *y, *dx, *dz, *dstate, *dcell;
	/* Tells the emulated devices of the tests which pointers are in here. */
	template <class F> void emu_pointers(F f)
	{
		f(x), f(bias), f(before), f(product), f(dy), f(z), f(y), f(dx), f(dz), f(dstate), f(dcell);
	}
};

template <class T> __device__ inline T forward_unit(const step<T> &s, int64_t b, int64_t j)
{
	int64_t n = s.units;
	const T *x = s.x + b * s.gates + j, *by = s.product + b * s.gates + j;
	T *z = s.z + b * s.kept + j, before = s.before[b * s.stride + j];
	if (s.cell <= SL_CELL_RELU) return plain(s.cell, x[0] + by[0]);
	for (int g = 0; g < (s.cell == SL_CELL_LSTM ? 4 : 2); g++) z[g * n] = x[g * n] + by[g * n];
	if (s.cell == SL_CELL_LSTM) return lstm(z, n, before);
	for (int g = 0; s.bias && g < 2; g++) z[g * n] += s.bias[g * n + j];
	z[2 * n] = by[2 * n] + (s.bias ? s.bias[2 * n + j] : T(0));
	z[3 * n] = x[2 * n];
	return gru(z, n, before);
}

template <class T> __global__ void forward_step(step<T> s)
{
	SLP_GRID_STRIDE(e, s.rows * s.units) s.y[e] = forward_unit(s, e / s.units, e % s.units);
}

template <class T> __global__ void backward_step(step<T> s)
{
	SLP_GRID_STRIDE(e, s.rows * s.units)
	{
		int64_t b = e / s.units, j = e % s.units;
		T dh = s.dy[e] + s.dstate[e], past = 0, *dz = s.dz + b * s.gates + j;
		if (s.cell == SL_CELL_LSTM)
			lstm_back(s.z + b * s.kept + j, s.units, s.before[b * s.stride + j], dh, s.dcell + e, dz);
		else if (s.cell == SL_CELL_GRU)
			past = gru_back(s.z + b * s.kept + j, s.units, s.before[b * s.stride + j], dh,
			                s.dx + b * s.gates + j, dz);
		else dz[0] = plain_back(s.cell, s.y[e], dh);
		s.dstate[e] = past;
	}
}

/* The cells after the last step, which follow the gates. */
template <class T> __global__ void last_cells(step<T> s, T *to)
{
	SLP_GRID_STRIDE(e, s.rows * s.units) to[e] = s.before[e / s.units * s.stride + e % s.units];
}

template <class T> __global__ void columns(const T *from, T *to, int64_t rows, int64_t width)
{
	SLP_GRID_STRIDE(j, width)
	{
		T sum = 0;
		for (int64_t i = 0; i < rows; i++) sum += from[i * width + j];
		to[j] = sum;
	}
}

/* The values before step number i: cells of an LSTM, states of others. */
template <class T> static void look_back(const slp_recurrent &r, step<T> *s, int64_t i, const T *last, const T *kept,
                                         const T *state, const T *y)
{
	bool is_lstm = r.cell == SL_CELL_LSTM;
	s->stride = i && is_lstm ? r.kept : r.units;
	if (i == 0) s->before = is_lstm ? last : state;
	else if (is_lstm) s->before = kept + slp_step_before(&r, i) * r.rows * r.kept + 4 * r.units;
	else s->before = y + slp_step_before(&r, i) * r.rows * r.units;
}

template <class T> static step<T> step_of(const slp_recurrent &r)
{
	step<T> s = {};
	s.cell = r.cell, s.rows = r.rows, s.units = r.units, s.gates = r.gates, s.kept = r.kept;
	return s;
}

template <class T> static enum sl_status forward(const struct slp_kernel *k)
{
	slp_recurrent r = slp_recurrent_of(k->attrs, k->out[0].type.shape);
	const T *x = (const T *)k->in[0].ptr, *w = (const T *)k->in[1].ptr, *state = (const T *)k->in[2].ptr;
	const T *last = k->nin > 3 ? (const T *)k->in[3].ptr : NULL;
	T *y = (T *)k->out[0].ptr, *kept = (T *)k->out[2].ptr, *product = (T *)k->scratch;
	int64_t n = r.units, size = r.rows * n;
	struct slp_cuda_gemm by = slp_cuda_gemm_of(false, true, r.rows, r.gates, n);
	step<T> s = step_of<T>(r);
	for (int64_t i = 0; i < r.steps && size; i++) {
		int64_t t = slp_step_at(&r, i);
		const T *prior = i ? y + slp_step_before(&r, i) * size : state;
		enum sl_status status = slp_cuda_multiply<T>(k, by, prior, w, product);
		if (status) return status;
		look_back<T>(r, &s, i, last, kept, state, y);
		s.x = x + t * r.rows * r.gates, s.bias = last, s.product = product;
		s.z = kept + t * r.rows * r.kept, s.y = y + t * size;
		SLP_LAUNCH(forward_step<T>, slp_grid(size), SLP_BLOCK, 0, k->stream, s);
	}
	if (r.cell == SL_CELL_LSTM && size) {
		look_back<T>(r, &s, r.steps, last, kept, state, y);
		SLP_LAUNCH(last_cells<T>, slp_grid(size), SLP_BLOCK, 0, k->stream, s, (T *)k->out[1].ptr);
	}
	return slp_launched(k);
}

/* dw = sum over steps of dzᵀ · state before: a product for the first step, one for all others. */
template <class T> static enum sl_status weights_back(const struct slp_kernel *k, const slp_recurrent &r, const T *dz,
                                                      const T *state, const T *y, T *dw)
{
	int64_t n = r.units, first = slp_step_at(&r, 0) * r.rows, later = r.steps ? (r.steps - 1) * r.rows : 0;
	struct slp_cuda_gemm g = slp_cuda_gemm_of(true, false, r.gates, n, r.steps ? r.rows : 0);
	enum sl_status s = slp_cuda_multiply<T>(k, g, dz + (r.steps ? first * r.gates : 0), state, dw);
	if (s || !later) return s;
	g.k = later, g.beta = 1;
	return slp_cuda_multiply<T>(k, g, dz + (r.reverse ? 0 : r.rows * r.gates), y + (r.reverse ? r.rows * n : 0),
	                            dw);
}

template <class T> static enum sl_status backward(const struct slp_kernel *k)
{
	slp_recurrent r = slp_recurrent_of(k->attrs, k->in[4].type.shape);
	const T *dy = (const T *)k->in[0].ptr, *w = (const T *)k->in[2].ptr, *state = (const T *)k->in[3].ptr;
	const T *y = (const T *)k->in[4].ptr, *last = k->nin > 6 ? (const T *)k->in[6].ptr : NULL;
	T *kept = (T *)k->in[5].ptr, *dx = (T *)k->out[0].ptr, *dstate = (T *)k->out[2].ptr;
	T *dz = r.cell == SL_CELL_GRU ? (T *)k->scratch : dx, *tail = (T *)k->out[3].ptr;
	int64_t n = r.units, size = r.rows * n;
	struct slp_cuda_gemm by = slp_cuda_gemm_of(false, false, r.rows, n, r.gates);
	by.beta = 1;
	step<T> s = step_of<T>(r);
	if (size) cudaMemsetAsync(dstate, 0, (size_t)size * sizeof(T), (cudaStream_t)k->stream);
	if (size && r.cell == SL_CELL_LSTM)
		cudaMemcpyAsync(tail, k->in[1].ptr, (size_t)size * sizeof(T), cudaMemcpyDeviceToDevice,
		                (cudaStream_t)k->stream);
	for (int64_t i = r.steps - 1; i >= 0 && size; i--) {
		int64_t t = slp_step_at(&r, i);
		look_back<T>(r, &s, i, last, kept, state, y);
		s.dy = dy + t * size, s.y = (T *)y + t * size, s.z = kept + t * r.rows * r.kept;
		s.dx = dx + t * r.rows * r.gates, s.dz = dz + t * r.rows * r.gates, s.dstate = dstate, s.dcell = tail;
		SLP_LAUNCH(backward_step<T>, slp_grid(size), SLP_BLOCK, 0, k->stream, s);
		enum sl_status status = slp_cuda_multiply<T>(k, by, s.dz, w, dstate);
		if (status) return status;
	}
	if (r.cell == SL_CELL_GRU && last)
		SLP_LAUNCH(columns<T>, slp_grid(r.gates), SLP_BLOCK, 0, k->stream, (const T *)dz, tail,
		           r.steps * r.rows, r.gates);
	enum sl_status status = slp_launched(k);
	return status ? status : weights_back<T>(k, r, dz, state, y, (T *)k->out[1].ptr);
}

extern "C" enum sl_status slp_cuda_recurrent(const struct slp_kernel *k)
{
	return k->in[0].type.dtype == SL_FLOAT64 ? forward<double>(k) : forward<float>(k);
}

extern "C" enum sl_status slp_cuda_recurrent_grad(const struct slp_kernel *k)
{
	return k->in[0].type.dtype == SL_FLOAT64 ? backward<double>(k) : backward<float>(k);
}
