/* sl_import_onnx, with protobuf-c and without. */
#include <stdlib.h>

#include "config.h"
#include "alloc.h"
#include "onnx/read.h"
#include "runtime/budget.h"
#include "starling/io.h"

#ifdef HAVE_ONNX
#include "onnx/model/outline.h"
#include "onnx/model/run.h"
#else
sl_block *slp_import_onnx_parse(struct slp_file *f, struct sl_import_onnx_opts opts)
{
	(void)opts;
	slp_file_fail(f, SL_EUNSUPPORTED, "Starling was built without protobuf-c and cannot read ONNX");
	return NULL;
}

sl_block *slp_import_onnx_take(struct slp_file *f, struct sl_import_onnx_opts opts)
{
	return slp_import_onnx_parse(f, opts);
}
#endif

/* Makes a block of an ONNX model (operator sets 1 to 28), as PyTorch's exporters and others write it.  sl_forward takes
 * its inputs in the file's order, or in that of .inputs: sl_import_onnx("bert.onnx", SL_INPUTS("ids", "mask")).  Inputs
 * of another integer or float type than the model's are converted.  Results have the data types of the model, including
 * int64 and bool.  A sequence is as many tensors as it has elements, one after another; several among the inputs have
 * the same length.  The block can be called with tensors and symbols, hybridised, trained, saved.  Its parameters are
 * the model's floating-point initializers, under their names (with "_" for "." in sl_block_find); doc/files.md lists
 * those that count as constants and are not trained.  Batch norm keeps the statistics of the file, also in training.
 * Shapes are computed for each shape of the inputs, or once for each if the block is hybridised.  So are branches and
 * loops.  Where a shape, a count or a condition depends on values, a block that is not hybridised waits for them and reads them;
 * a program of such a network is refused (sl_hybridize: .fallback), but for an If, which computes both branches there.
 *
 * The results are the model's, in its order (sl_forward returns the first, sl_forward_all several); a model with more
 * than SL_MAX_RESULTS is refused.  SL_OUTPUTS("logits", "state") or .output = "logits" choose others, including results
 * of inner nodes.  Tensors in files beside the model are read; a path that leaves its folder is refused.  NULL after an
 * error: SL_EIO; SL_EFORMAT, the file is damaged; SL_EUNSUPPORTED, Starling lacks operators, and the message names all
 * of them with their nodes, or it was built without protobuf-c; SL_EINVAL, names in .inputs, .output or .outputs do not
 * exist.  sl_forward reports shapes that do not match, with the node.
 *
 *     sl_block *net = sl_import_onnx("resnet18.onnx");
 *     sl_tensor *y = sl_forward(net, x); */
sl_block *sl_import_onnx_at(const char *at, const char *path, struct sl_import_onnx_opts opts)
{
	SLP_CALL("sl_import_onnx", at);
	SLP_BUDGET(path);
	struct slp_file f;
#ifdef HAVE_ONNX
	if (!slp_onnx_outline_read(&f, at, "sl_import_onnx", path)) return NULL;
	sl_block *block = slp_import_onnx_take(&f, opts);
	if (block) slp_onnx_head_attach(block);
	slp_onnx_outline_end(&f);
#else
	if (!slp_file_read(&f, at, "sl_import_onnx", path)) return NULL;
	sl_block *block = slp_import_onnx_take(&f, opts);
	free(f.data);
#endif
	return block;
}
