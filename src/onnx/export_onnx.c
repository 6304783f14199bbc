/* sl_export_onnx, with protobuf-c and without. */
#include "export/program.h"
#include "onnx/write.h"
#include "op.h"
#include "starling/io.h"

/* Writes a block, as it runs at inference, as an ONNX model (operator set 17) with its parameters. Shapes and data
 * types of the inputs as in sl_export; their first axis stays open, the inputs are called "data", or "data0", "data1",
 * ….  At most 2 GiB, ONNX's own limit for one file.  Waits for the parameters.
 *
 * SL_EUNSUPPORTED: an operation has no counterpart in ONNX (the message names it), or Starling was built without
 * protobuf-c; SL_ESTATE: the shapes are not known, or forward makes a call that cannot be traced; SL_EIO and others:
 * see io.h; otherwise the error that forward reported.
 *
 *     sl_export_onnx(net, "my_mlp.onnx", SL_SHAPES(SL_SHAPE(1, 512)));
 *     sl_export_onnx(unet, "unet.onnx", SL_SHAPES(SL_SHAPE(1, 1, 28, 28), SL_SHAPE(1)),
 *                    SL_DTYPES(SL_FLOAT32, SL_INT32)); */
enum sl_status sl_export_onnx_at(const char *at, sl_block *block, const char *path, struct sl_export_opts opts)
{
	SLP_CALL("sl_export_onnx", at);
#ifdef HAVE_ONNX
	if (!path) {
		slp_call_fail(at, "sl_export_onnx", SL_EINVAL, "the path is NULL");
		return SL_EINVAL;
	}
	opts.training = false;
	sl_graph *g = slp_export_trace(at, "sl_export_onnx", block, &opts);
	if (!g) return sl_error();
	enum sl_status s = slp_onnx_write(at, path, NULL, g);
	sl_graph_free(g);
	return s;
#else
	(void)block;
	(void)path;
	(void)opts;
	slp_call_fail(
	        at, "sl_export_onnx", SL_EUNSUPPORTED,
	        "Starling was built without ONNX: install protobuf-c (Debian: libprotobuf-c-dev, protobuf-c-compiler) "
	        "and configure again");
	return SL_EUNSUPPORTED;
#endif
}
