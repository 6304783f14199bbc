/* relayout on GPUs. */
#include "op.h"
#include "relayout.h"

#include "common/element.cuh"
#include "common/image_layout.cuh"

template <class T> static enum sl_status run(const struct slp_kernel *k)
{
	int64_t n = k->in[0].type.shape.dim[0], size = slp_size(&k->in[0]);
	int layout = ((const struct slp_relayout_attrs *)k->attrs)->layout;
	if (size == 0) return SL_OK;
	struct slp_layout_side from = {1, size / n, layout ? SLP_LAYOUT_PLAIN : SLP_LAYOUT_N16},
	                       to = {1, size / n, layout};
	return slp_layout_copy<T>(k, (const T *)k->in[0].ptr, (T *)k->out[0].ptr, n, 1, from, to);
}

extern "C" enum sl_status slp_cuda_relayout(const struct slp_kernel *k)
{
	enum sl_status s = SL_EINTERNAL;
	slp_with_size(sl_dtype_size(k->in[0].type.dtype), [&](auto zero) { s = run<decltype(zero)>(k); });
	return s;
}
