/* Common parts of the operations on bytes that represent real numbers (op_inner.h). */
#ifndef SLP_QUANT_H
#define SLP_QUANT_H

#include "op.h"
#include "op_inner.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __CUDACC__
#define SLP_Q_FN static inline __host__ __device__
#else
#define SLP_Q_FN static inline
#endif

/* A real number in steps from a zero point as a byte: to the nearest, ties to even. */
SLP_Q_FN uint8_t slp_q_byte(float x, int zero)
{
	x += (float)zero;
	x = x > 0 ? x : 0; /* NaN, too */
	return (uint8_t)(int)rintf(x < 255 ? x : 255);
}

/* Sizes of a convolution of images in NHWC. */
struct slp_qconv {
	int64_t n, ih, iw, ic, oh, ow, oc, kh, kw, each_in, each_out; /* each: channels of a group */
	int sh, sw, top, left, bottom, right, dh, dw, groups;
};
struct slp_qconv slp_qconv_of(const struct slp_qconv_attrs *a, sl_shape x);

/* The operands of one: b NULL, none. */
struct slp_qconv_args {
	struct slp_qconv c;
	const struct slp_qconv_attrs *attrs;
	const uint8_t *x, *w;
	const float *scale; /* of each channel of y */
	const int32_t *b;
	void *y;
};
/* By oneDNN; SL_EUNSUPPORTED: it cannot, and nothing was done. */
enum sl_status slp_qconv_onednn(const struct slp_kernel *k, const struct slp_qconv_args *a);
size_t slp_qconv_onednn_packed(const struct slp_qconv_args *a, int threads);
enum sl_status slp_qconv_onednn_pack(const struct slp_kernel *k, const struct slp_qconv_args *a, void *packed,
                                     size_t bytes);

/* Elements of a result of products. */
static inline enum sl_dtype slp_q_dtype(int out)
{
	return out == SLP_Q_UINT8 ? SL_UINT8 : out == SLP_Q_INT32 ? SL_INT32 : SL_FLOAT32;
}

/* y[i] = sum times scale, as `out` says. */
SLP_Q_FN void slp_q_put(void *y, int64_t i, int64_t sum, float scale, int out, int y_zero)
{
	if (out == SLP_Q_INT32) ((int32_t *)y)[i] = (int32_t)sum;
	else if (out == SLP_Q_FLOAT32) ((float *)y)[i] = (float)sum * scale;
	else ((uint8_t *)y)[i] = slp_q_byte((float)sum * scale, y_zero);
}

#ifdef __cplusplus
}
#endif
#endif
