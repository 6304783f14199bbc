/* Quantising: networks of float32 become networks of eight-bit numbers, in ONNX files. */
#ifndef STARLING_QUANTIZE_H
#define STARLING_QUANTIZE_H

#include <starling/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the range of a value follows from samples. */
enum sl_calibration {
	SL_CALIBRATE_MINMAX,     /* its smallest and largest number */
	SL_CALIBRATE_PERCENTILE, /* without the rarest numbers at both ends: .percentile of them stay */
	SL_CALIBRATE_ENTROPY     /* the range whose bytes say most about the distribution */
};

struct sl_quantize_opts {
	enum sl_calibration method;
	double percentile;         /* of SL_CALIBRATE_PERCENTILE, from 50 to 100 */
	bool per_tensor;           /* one scale for all of a weight, instead of one for each channel */
	const char *const *inputs; /* names of the inputs, in the samples' order: SL_INPUTS("ids", "mask") */
	int ninputs;               /* 0: the file's order */
};
SL_API enum sl_status sl_quantize_onnx_at(const char *at, const char *from, const char *to, sl_tensor *const *samples,
                                          int nsamples, struct sl_quantize_opts opts);
SL_API enum sl_status sl_quantize_at(const char *at, sl_block *net, const char *to, sl_tensor *const *samples,
                                     int nsamples, struct sl_quantize_opts opts);
/* clang-format off */
#define sl_quantize_onnx(from, to, samples, nsamples, ...)                                                             \
	sl_quantize_onnx_at(SL_HERE, from, to, samples, nsamples, (struct sl_quantize_opts){__VA_ARGS__})
#define sl_quantize(net, to, samples, nsamples, ...)                                                                   \
	sl_quantize_at(SL_HERE, net, to, samples, nsamples, (struct sl_quantize_opts){__VA_ARGS__})
/* clang-format on */

#ifdef __cplusplus
}
#endif
#endif
