/* Random numbers and dropout on GPUs: a thread draws a block of four words. */
#include <cmath>

#include "op.h"
#include "common/lanes.cuh"
#include "random.h"

template <class S, class T> __global__ void uniform_kernel(struct slp_rng rng, T low, T width, S *out, int64_t n)
{
	SLP_GRID_STRIDE(block, (n + 3) / 4)
	{
		uint32_t w[4];
		slp_philox(rng.seed, rng.stream, (uint64_t)block, w);
		for (int i = 0; i < 4 && 4 * block + i < n; i++)
			out[4 * block + i] = low + width * (T)slp_unit_float(w[i]);
	}
}

template <class S, class T> __global__ void normal_kernel(struct slp_rng rng, T mean, T sigma, S *out, int64_t n)
{
	SLP_GRID_STRIDE(block, (n + 3) / 4)
	{
		uint32_t w[4];
		slp_philox(rng.seed, rng.stream, (uint64_t)block, w);
		for (int i = 0; i < 4 && 4 * block + i < n; i += 2) {
			T radius = sigma * std::sqrt(-2 * std::log(1 - (T)slp_unit_float(w[i])));
			T angle = (T)6.283185307179586 * (T)slp_unit_float(w[i + 1]);
			out[4 * block + i] = mean + radius * std::cos(angle);
			if (4 * block + i + 1 < n) out[4 * block + i + 1] = mean + radius * std::sin(angle);
		}
	}
}

template <class S, class T>
__global__ void dropout_kernel(struct slp_rng rng, uint32_t threshold, T scale, const S *in, S *out, int64_t n)
{
	SLP_GRID_STRIDE(block, (n + 3) / 4)
	{
		uint32_t w[4];
		slp_philox(rng.seed, rng.stream, (uint64_t)block, w);
		for (int i = 0; i < 4 && 4 * block + i < n; i++)
			out[4 * block + i] = w[i] >= threshold ? (T)in[4 * block + i] * scale : (T)0;
	}
}

/* A kernel cannot report a probability out of range: it returns NaN instead. */
template <class S, class T> __global__ void bernoulli_kernel(struct slp_rng rng, const S *p, S *out, int64_t n)
{
	SLP_GRID_STRIDE(block, (n + 3) / 4)
	{
		uint32_t w[4];
		slp_philox(rng.seed, rng.stream, (uint64_t)block, w);
		for (int i = 0; i < 4 && 4 * block + i < n; i++) {
			T limit = (T)p[4 * block + i];
			bool valid = limit >= 0 && limit <= 1;
			out[4 * block + i] = valid ? (T)((T)slp_unit_float(w[i]) < limit) : (T)NAN;
		}
	}
}

extern "C" enum sl_status slp_cuda_bernoulli(const struct slp_kernel *k)
{
	int64_t n = slp_size(&k->out[0]);
	const struct slp_bernoulli *b = (const struct slp_bernoulli *)k->attrs;
	slp_with_float(k->out[0].type.dtype, [&](auto zero) {
		typedef decltype(zero) S;
		typedef typename slp_number<S>::type T;
		SLP_LAUNCH((bernoulli_kernel<S, T>), slp_grid((n + 3) / 4), SLP_BLOCK, 0, k->stream, b->rng,
		           (const S *)k->in[0].ptr, (S *)k->out[0].ptr, n);
	});
	return slp_launched(k);
}

extern "C" enum sl_status slp_cuda_uniform(const struct slp_kernel *k)
{
	int64_t n = slp_size(&k->out[0]);
	const struct slp_draw *d = (const struct slp_draw *)k->attrs;
	slp_with_float(k->out[0].type.dtype, [&](auto zero) {
		typedef decltype(zero) S;
		typedef typename slp_number<S>::type T;
		SLP_LAUNCH((uniform_kernel<S, T>), slp_grid((n + 3) / 4), SLP_BLOCK, 0, k->stream, d->rng, (T)d->a,
		           (T)(d->b - d->a), (S *)k->out[0].ptr, n);
	});
	return slp_launched(k);
}

extern "C" enum sl_status slp_cuda_normal(const struct slp_kernel *k)
{
	int64_t n = slp_size(&k->out[0]);
	const struct slp_draw *d = (const struct slp_draw *)k->attrs;
	slp_with_float(k->out[0].type.dtype, [&](auto zero) {
		typedef decltype(zero) S;
		typedef typename slp_number<S>::type T;
		SLP_LAUNCH((normal_kernel<S, T>), slp_grid((n + 3) / 4), SLP_BLOCK, 0, k->stream, d->rng, (T)d->a,
		           (T)d->b, (S *)k->out[0].ptr, n);
	});
	return slp_launched(k);
}

extern "C" enum sl_status slp_cuda_dropout(const struct slp_kernel *k)
{
	int64_t n = slp_size(&k->out[0]);
	const struct slp_dropout *d = (const struct slp_dropout *)k->attrs;
	slp_with_float(k->out[0].type.dtype, [&](auto zero) {
		typedef decltype(zero) S;
		typedef typename slp_number<S>::type T;
		SLP_LAUNCH((dropout_kernel<S, T>), slp_grid((n + 3) / 4), SLP_BLOCK, 0, k->stream, d->rng,
		           slp_dropout_threshold(d), (T)(1 / (1 - d->p)), (const S *)k->in[0].ptr, (S *)k->out[0].ptr,
		           n);
	});
	return slp_launched(k);
}
