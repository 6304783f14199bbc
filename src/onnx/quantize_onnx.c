/* sl_quantize and sl_quantize_onnx, with protobuf-c and without. */
#include <stdio.h>
#include <stdlib.h>

#include "config.h"
#include "alloc.h"
#include "export/program.h"
#include "onnx/quantize_call.h"
#include "onnx/write.h"
#include "op.h"
#include "starling/io.h"

#ifndef HAVE_ONNX
enum sl_status slp_onnx_quantize(struct slp_file *f, const char *to, sl_tensor *const *samples, int nsamples,
                                 const struct sl_quantize_opts *opts)
{
	(void)to;
	(void)samples;
	(void)nsamples;
	(void)opts;
	slp_file_fail(f, SL_EUNSUPPORTED, "Starling was built without protobuf-c and cannot read ONNX");
	return SL_EUNSUPPORTED;
}

enum sl_status slp_onnx_write(const char *at, const char *path, struct slp_file *f, const sl_graph *g)
{
	(void)at;
	(void)path;
	(void)f;
	(void)g;
	return SL_OK;
}
#endif

static bool usable(const char *at, const char *function, const void *from, const char *to, sl_tensor *const *samples,
                   int nsamples, const struct sl_quantize_opts *o)
{
	const char *wrong = !from          ? "the network is NULL"
	                    : !to          ? "the path is NULL"
	                    : nsamples < 1 ? "there are no samples"
	                    : !samples     ? "the samples are NULL"
	                                   : NULL;
	for (int i = 0; !wrong && i < nsamples; i++)
		if (!samples[i]) wrong = "a sample is NULL";
	if (!wrong && o->method == SL_CALIBRATE_PERCENTILE && !(o->percentile >= 50 && o->percentile <= 100))
		wrong = ".percentile must be from 50 to 100";
	if (!wrong && o->method != SL_CALIBRATE_PERCENTILE && o->percentile != 0)
		wrong = ".percentile has an effect with SL_CALIBRATE_PERCENTILE only";
	if (!wrong && (o->method < SL_CALIBRATE_MINMAX || o->method > SL_CALIBRATE_ENTROPY))
		wrong = "an unknown .method";
	if (wrong) slp_call_fail(at, function, SL_EINVAL, "%s", wrong);
	return !wrong;
}

static enum sl_status quantise_file(const char *at, const char *function, const char *from, const char *to,
                                    sl_tensor *const *samples, int nsamples, const struct sl_quantize_opts *opts)
{
	struct slp_file f;
	if (!slp_file_read(&f, at, function, from)) return sl_error();
	enum sl_status s = slp_onnx_quantize(&f, to, samples, nsamples, opts);
	free(f.data);
	return s;
}

/* Writes the ONNX model in the file `from` (operator set 13 or later) as one whose convolutions and products of matrices
 * are computed in bytes, into the file `to`: QuantizeLinear and DequantizeLinear stand around their operands, as
 * sl_import_onnx and other runtimes recognise them.  Weights are int8, with a scale for each channel unless .per_tensor;
 * biases are int32; other values are uint8, in a range that follows from the samples by .method.  Batch normalisations
 * become part of the convolutions before them.
 *
 * The samples are inputs of the network, as it gets them later: nsamples tensors, each sample all inputs in the file's
 * order, or in that of .inputs.  A few hundred images are usual; the network computes each once, or twice if .method is not
 * SL_CALIBRATE_MINMAX.  B. Jacob et al., "Quantization and training of neural networks for efficient
 * integer-arithmetic-only inference", 2018.
 *
 * SL_EINVAL: the number of tensors is not that of samples, .percentile is not from 50 to 100, or stands beside another method; SL_EUNSUPPORTED: the model
 * has nothing to quantise, is no network of float32, or its operator set is older; otherwise errors of sl_import_onnx,
 * sl_forward, and of writing files (io.h).
 *
 *     sl_quantize_onnx("resnet50.onnx", "resnet50-int8.onnx", images, 200);
 *     sl_block *net = sl_import_onnx("resnet50-int8.onnx"); */
enum sl_status sl_quantize_onnx_at(const char *at, const char *from, const char *to, sl_tensor *const *samples,
                                   int nsamples, struct sl_quantize_opts opts)
{
	SLP_CALL("sl_quantize_onnx", at);
	if (!usable(at, "sl_quantize_onnx", from, to, samples, nsamples, &opts)) return sl_error();
	return quantise_file(at, "sl_quantize_onnx", from, to, samples, nsamples, &opts);
}

/* The same for a block with one input, as it runs at inference, exported as by sl_export_onnx.  Each sample is one
 * tensor; their first axis is that of the batch.  Errors are those of both.
 *
 *     sl_quantize(net, "net-int8.onnx", SL_ARRAY(sl_tensor *, images, more), 2, .method = SL_CALIBRATE_ENTROPY); */
enum sl_status sl_quantize_at(const char *at, sl_block *net, const char *to, sl_tensor *const *samples, int nsamples,
                              struct sl_quantize_opts opts)
{
	SLP_CALL("sl_quantize", at);
	if (!usable(at, "sl_quantize", net, to, samples, nsamples, &opts)) return sl_error();
	sl_shape shape = sl_tensor_shape(samples[0]);
	struct sl_export_opts export = {.shapes = &shape, .nshapes = 1, .dtype = sl_tensor_dtype(samples[0])};
	sl_graph *g = slp_export_trace(at, "sl_quantize", net, &export);
	if (!g) return sl_error();
	struct slp_file f = {.at = at, .function = "sl_quantize", .path = "the exported network"};
	enum sl_status s = slp_onnx_write(at, NULL, &f, g);
	if (s == SL_OK) s = slp_onnx_quantize(&f, to, samples, nsamples, &opts);
	sl_graph_free(g);
	free(f.data);
	return s;
}
