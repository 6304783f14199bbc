/* The operations on quantised tensors on GPUs: a thread an element. */
#include "common/element.cuh"
#include "common/gpu.cuh"
#include "op.h"
#include "nbits.h"
#include "quant.h"

struct runs {
	int64_t inner, count;
};

template <bool back>
__global__ void quantize_kernel(const void *x, void *y, const float *scale, const float *zero, int64_t n, struct runs r)
{
	SLP_GRID_STRIDE(i, n)
	{
		int64_t at = i / r.inner % r.count;
		if (back) ((float *)y)[i] = ((float)((const uint8_t *)x)[i] - zero[at]) * scale[at];
		else ((uint8_t *)y)[i] = slp_q_byte(rintf(((const float *)x)[i] / scale[at]), (int)zero[at]);
	}
}

template <bool back> static enum sl_status quantise(const struct slp_kernel *k)
{
	int64_t n = slp_size(&k->in[0]), inner = ((const struct slp_quantize_attrs *)k->attrs)->inner;
	struct runs r = {inner ? inner : n, slp_size(&k->in[1])};
	if (n == 0) return SL_OK;
	SLP_LAUNCH(quantize_kernel<back>, slp_grid(n), SLP_BLOCK, 0, k->stream, k->in[0].ptr, k->out[0].ptr,
	           (const float *)k->in[1].ptr, (const float *)k->in[2].ptr, n, r);
	return slp_launched(k);
}

extern "C" enum sl_status slp_cuda_quantize(const struct slp_kernel *k)
{
	return quantise<false>(k);
}

extern "C" enum sl_status slp_cuda_dequantize(const struct slp_kernel *k)
{
	return quantise<true>(k);
}

__global__ void qbinary_kernel(const uint8_t *a, const uint8_t *b, uint8_t *y, int64_t n, struct slp_qbinary_attrs t)
{
	SLP_GRID_STRIDE(i, n)
	{
		double u = (a[i] - t.zero[0]) * t.scale[0], v = (b[i] - t.zero[1]) * t.scale[1];
		y[i] = slp_q_byte((float)((t.kind == SLP_Q_MUL ? u * v : u + v) / t.scale[2]), t.zero[2]);
	}
}

extern "C" enum sl_status slp_cuda_qbinary(const struct slp_kernel *k)
{
	int64_t n = slp_size(&k->in[0]);
	SLP_LAUNCH(qbinary_kernel, slp_grid(n), SLP_BLOCK, 0, k->stream, (const uint8_t *)k->in[0].ptr,
	           (const uint8_t *)k->in[1].ptr, (uint8_t *)k->out[0].ptr, n,
	           *(const struct slp_qbinary_attrs *)k->attrs);
	return slp_launched(k);
}

struct images {
	int64_t h, w, c, size;
};

__global__ void qpool_kernel(const uint8_t *x, uint8_t *y, struct images m, struct slp_qpool_attrs t)
{
	SLP_GRID_STRIDE(e, m.size)
	{
		int64_t ch = e % m.c, j = e / m.c % t.size[1], i = e / m.c / t.size[1] % t.size[0],
		        n = e / m.c / t.size[1] / t.size[0], sum = 0, inside = 0, counted = 0;
		int most = 0;
		for (int64_t p = 0; p < (int64_t)t.kernel[0] * t.kernel[1]; p++) {
			int64_t h = i * t.stride[0] - t.pad[0] + p / t.kernel[1],
			        w = j * t.stride[1] - t.pad[1] + p % t.kernel[1];
			counted += h < m.h + t.pad[2] && w < m.w + t.pad[3];
			if (h < 0 || h >= m.h || w < 0 || w >= m.w) continue;
			int v = x[((n * m.h + h) * m.w + w) * m.c + ch];
			sum += v;
			most = v > most ? v : most;
			inside++;
		}
		float scale = (float)(t.scale / (double)(t.include_pad ? counted : inside));
		y[e] = t.max ? (uint8_t)most : slp_q_byte((float)(sum - inside * t.x_zero) * scale, t.y_zero);
	}
}

extern "C" enum sl_status slp_cuda_qpool2d(const struct slp_kernel *k)
{
	sl_shape s = k->in[0].type.shape;
	struct images m = {s.dim[1], s.dim[2], s.dim[3], slp_size(&k->out[0])};
	SLP_LAUNCH(qpool_kernel, slp_grid(m.size), SLP_BLOCK, 0, k->stream, (const uint8_t *)k->in[0].ptr,
	           (uint8_t *)k->out[0].ptr, m, *(const struct slp_qpool_attrs *)k->attrs);
	return slp_launched(k);
}

struct conv_work {
	struct slp_qconv c;
	int x_zero, y_zero, out;
	int64_t size;
};

__global__ void qconv_kernel(const uint8_t *x, const uint8_t *w, const float *scale, const int32_t *b, void *y,
                             struct conv_work t)
{
	const struct slp_qconv &c = t.c;
	SLP_GRID_STRIDE(e, t.size)
	{
		int64_t o = e % c.oc, j = e / c.oc % c.ow, i = e / c.oc / c.ow % c.oh, n = e / c.oc / c.ow / c.oh;
		int64_t taps = c.kh * c.kw, first = o / c.each_out * c.each_in;
		int32_t sum = b ? b[o] : 0;
		for (int64_t p = 0; p < taps; p++) {
			int64_t h = i * c.sh - c.top + p / c.kw * c.dh, v = j * c.sw - c.left + p % c.kw * c.dw;
			if (h < 0 || h >= c.ih || v < 0 || v >= c.iw) continue;
			const uint8_t *from = x + ((n * c.ih + h) * c.iw + v) * c.ic + first;
			for (int64_t a = 0; a < c.each_in; a++)
				sum += (from[a] - t.x_zero) * (w[(o * c.each_in + a) * taps + p] - SLP_Q_WEIGHT_ZERO);
		}
		slp_q_put(y, e, sum, scale[o], t.out, t.y_zero);
	}
}

extern "C" enum sl_status slp_cuda_qconv2d(const struct slp_kernel *k)
{
	const struct slp_qconv_attrs *a = (const struct slp_qconv_attrs *)k->attrs;
	struct conv_work t = {slp_qconv_of(a, k->in[0].type.shape), a->x_zero, a->y_zero, a->out, slp_size(&k->out[0])};
	if (a->packed) return slp_kernel_fail(k, SL_EUNSUPPORTED, "GPUs take no packed weights");
	SLP_LAUNCH(qconv_kernel, slp_grid(t.size), SLP_BLOCK, 0, k->stream, (const uint8_t *)k->in[0].ptr,
	           (const uint8_t *)k->in[1].ptr, (const float *)k->in[2].ptr,
	           k->nin > 3 ? (const int32_t *)k->in[3].ptr : (const int32_t *)NULL, k->out[0].ptr, t);
	return slp_launched(k);
}

struct product_work {
	int64_t m, k, n, size, down, along;
	int b_zero, y_zero, out, scales;
};

__global__ void qmatmul_kernel(const uint8_t *a, const uint8_t *b, const float *zero, const float *scale,
                               const int32_t *bias, void *y, struct product_work t)
{
	int za = (int)zero[0];
	SLP_GRID_STRIDE(i, t.size)
	{
		int64_t row = i / t.n, col = i % t.n;
		const uint8_t *from = b + row / t.m * t.k * t.n + col * t.along;
		int32_t sum = bias ? bias[col] : 0;
		for (int64_t e = 0; e < t.k; e++) sum += (a[row * t.k + e] - za) * (from[e * t.down] - t.b_zero);
		slp_q_put(y, i, sum, scale[t.scales > 1 ? col : 0], t.out, t.y_zero);
	}
}

extern "C" enum sl_status slp_cuda_qmatmul(const struct slp_kernel *k)
{
	const struct slp_qmatmul_attrs *a = (const struct slp_qmatmul_attrs *)k->attrs;
	sl_shape x = k->in[0].type.shape, b = k->in[1].type.shape;
	struct product_work t = {};
	if (a->packed) return slp_kernel_fail(k, SL_EUNSUPPORTED, "GPUs take no packed weights");
	t.k = x.dim[x.ndim - 1];
	t.n = k->out[0].type.shape.dim[x.ndim - 1];
	t.m = b.ndim == 2 ? INT64_MAX : x.dim[x.ndim - 2];
	t.size = slp_size(&k->out[0]);
	t.down = a->b_transposed ? 1 : t.n;
	t.along = a->b_transposed ? t.k : 1;
	t.b_zero = a->b_zero, t.y_zero = a->y_zero, t.out = a->out, t.scales = (int)slp_size(&k->in[3]);
	SLP_LAUNCH(qmatmul_kernel, slp_grid(t.size), SLP_BLOCK, 0, k->stream, (const uint8_t *)k->in[0].ptr,
	           (const uint8_t *)k->in[1].ptr, (const float *)k->in[2].ptr, (const float *)k->in[3].ptr,
	           k->nin > 4 ? (const int32_t *)k->in[4].ptr : (const int32_t *)NULL, k->out[0].ptr, t);
	return slp_launched(k);
}

/* A block a unit: its threads take turns along the weights, which each reads once for up to 8 rows, and add up at the end. */
enum { NBITS_ROWS = 8 };

struct nbits_work {
	struct slp_nbits p;
	template <class F> void emu_pointers(F f)
	{
		f(p.x), f(p.scale), f(p.bias), f(p.w), f(p.zero), f(p.y);
	}
};

__global__ void nbits_kernel(nbits_work t)
{
	const struct slp_nbits &p = t.p;
	__shared__ float part[SLP_BLOCK];
	int64_t unit = blockIdx.x;
	for (int64_t first = 0; first < p.rows; first += NBITS_ROWS) {
		float sum[NBITS_ROWS] = {};
		int rows = (int)(p.rows - first < NBITS_ROWS ? p.rows - first : (int64_t)NBITS_ROWS);
		for (int64_t i = threadIdx.x; i < p.inner; i += SLP_BLOCK) {
			float w = slp_nbits_weight(&p, unit, i);
			for (int r = 0; r < rows; r++) sum[r] += w * p.x[(first + r) * p.inner + i];
		}
		for (int r = 0; r < rows; r++) {
			part[threadIdx.x] = sum[r];
			__syncthreads();
			for (int half = SLP_BLOCK / 2; half > 0; half /= 2) {
				if ((int)threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
				__syncthreads();
			}
			if (threadIdx.x == 0) p.y[(first + r) * p.units + unit] = part[0] + (p.bias ? p.bias[unit] : 0);
			__syncthreads();
		}
	}
}

extern "C" enum sl_status slp_cuda_nbits_linear(const struct slp_kernel *k)
{
	nbits_work t = {slp_nbits_of(k)};
	if (t.p.rows == 0 || t.p.units == 0) return SL_OK;
	SLP_LAUNCH(nbits_kernel, (unsigned)t.p.units, SLP_BLOCK, 0, k->stream, t);
	return slp_launched(k);
}
