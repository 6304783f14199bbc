/* Optimisers on a GPU: one launch updates many parameters; each block finds out which of them it works on. */
#include "gpu.cuh"
#include "optim.h"

enum { TENSORS = 32, CHUNK = 4096 }; /* a launch; elements a block */

template <class T> struct parameters {
	int count;
	T *w[TENSORS];
	const T *g[TENSORS];
	T *m[TENSORS];                       /* NULL: no momentum */
	int64_t size[TENSORS], end[TENSORS]; /* elements; the block after the last one */
	/* Tells the emulated devices of the tests which pointers are in here. */
	template <class F> void emu_pointers(F f)
	{
		for (int i = 0; i < count; i++) {
			f(w[i]);
			f(g[i]);
			f(m[i]);
		}
	}
};

template <class T> __global__ void sgd(parameters<T> p, T lr, T momentum, T decay, T rescale)
{
	int t = 0;
	while ((int64_t)blockIdx.x >= p.end[t]) t++;
	int64_t begin = (blockIdx.x - (t ? p.end[t - 1] : 0)) * (int64_t)CHUNK;
	int64_t end = begin + CHUNK < p.size[t] ? begin + CHUNK : p.size[t];
	T *w = p.w[t], *m = p.m[t];
	const T *g = p.g[t];
	for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
		T step = rescale * g[i] + decay * w[i];
		if (m) m[i] = step = momentum * m[i] + step;
		w[i] -= lr * step;
	}
}

/* Parameters from `in` on, as many as one launch takes. */
template <class T> static const slp_view *gather(parameters<T> *p, const slp_view *in, const slp_view *end, int period)
{
	int64_t blocks = 0;
	for (p->count = 0; in < end && p->count < TENSORS; in += period) {
		int64_t n = slp_size(in);
		if (n == 0) continue;
		int i = p->count++;
		p->w[i] = (T *)in[0].ptr;
		p->g[i] = (const T *)in[1].ptr;
		p->m[i] = period == 3 ? (T *)in[2].ptr : NULL;
		p->size[i] = n;
		p->end[i] = blocks += (n + CHUNK - 1) / CHUNK;
	}
	return in;
}

template <class T> static void update(const slp_kernel *k)
{
	const slp_sgd_attrs *a = (const slp_sgd_attrs *)k->attrs;
	const slp_view *end = k->in + k->nin;
	parameters<T> p;
	for (const slp_view *in = k->in; in < end;) {
		in = gather(&p, in, end, k->op->period);
		if (p.count == 0) continue;
		SLP_LAUNCH(sgd<T>, (unsigned)p.end[p.count - 1], SLP_BLOCK, 0, k->stream, p, (T)a->lr, (T)a->momentum,
		           (T)a->weight_decay, (T)a->rescale);
	}
}

extern "C" sl_status slp_cuda_sgd(const slp_kernel *k)
{
	if (k->in[0].type.dtype == SL_FLOAT64)
		update<double>(k);
	else
		update<float>(k);
	return slp_launched(k);
}
