/* cumsum on a GPU: a thread a line. */
#include "common/element.cuh"
#include "common/gpu.cuh"
#include "cumsum.h"

/* As slp_set does it: integers are whole sums. */
template <class T> __global__ void cumsum(slp_split s, bool reverse, const T *x, T *y)
{
	SLP_GRID_STRIDE(line, s.outer * s.inner)
	{
		struct slp_cumsum_line l = slp_cumsum_line(s, reverse, line);
		double sum = 0;
		for (int64_t i = 0; i < s.n; i++) {
			sum += (double)x[l.first + i * l.step];
			y[l.first + i * l.step] = slp_stored<T>::of(sum);
		}
	}
}

extern "C" enum sl_status slp_cuda_cumsum(const struct slp_kernel *k)
{
	slp_split s = slp_cumsum_split(k);
	bool reverse = ((const slp_cumsum_attrs *)k->attrs)->reverse;
	if (slp_size(&k->out[0]) == 0) return SL_OK;
	slp_with<SLP_NUMBERS>(k->in[0].type.dtype, [&](auto zero) {
		typedef decltype(zero) T;
		SLP_LAUNCH(cumsum<T>, slp_grid(s.outer * s.inner), SLP_BLOCK, 0, k->stream, s, reverse,
		           (const T *)k->in[0].ptr, (T *)k->out[0].ptr);
	});
	return slp_launched(k);
}
