/* sl_import_onnx, with protobuf-c and without. */
#include <stdlib.h>

#include "config.h"
#include "alloc.h"
#include "onnx/read.h"
#include "runtime/budget.h"
#include "starling/io.h"

#ifndef HAVE_ONNX
sl_block *slp_import_onnx_parse(struct slp_file *f, struct sl_import_onnx_opts opts)
{
	(void)opts;
	slp_file_fail(f, SL_EUNSUPPORTED, "Starling was built without protobuf-c and cannot read ONNX");
	return NULL;
}
#endif

/* Makes a block of an ONNX model (operator sets 7 to 28), as PyTorch's exporters and others write it.  sl_forward takes
 * its inputs in the file's order, or in that of .inputs: sl_import_onnx("bert.onnx", SL_INPUTS("ids", "mask")).  Whole
 * numbers of another width than the model's, and floats, are converted.  What is computed has the data type that the
 * format gives it: int64 and bool, too.  The block can be called with tensors and
 * symbols, hybridised, trained, saved.  Its parameters are the model's initializers that are floats, under their names
 * (with "_" for "." in sl_block_find); doc/files.md says which of them are constants, that are not trained. Batch norm
 * keeps the statistics of the file, in training too.  Shapes are
 * computed anew for each shape of the inputs, when the block is hybridised once for each.  So are branches and loops:
 * If, Loop and Scan may ask shapes and constants; an If that asks values computes both its branches.
 *
 * The results are the model's, in its order (sl_forward gives the first, sl_forward_all several); a model of more than
 * SL_MAX_RESULTS is refused.  SL_OUTPUTS("logits", "state") or .output = "logits" name others, also of nodes
 * within.  Tensors in files beside the model are read; a path that leaves its folder is refused. NULL after an error:
 * SL_EIO; SL_EFORMAT, the file is damaged; SL_EUNSUPPORTED, operators that Starling lacks: the message names all of
 * them with their nodes, or protobuf-c was not there when Starling was built; SL_EINVAL, .inputs, .output or .outputs
 * are not there.  What fits no shape is found by sl_forward, whose message names the node.
 *
 *     sl_block *net = sl_import_onnx("resnet18.onnx");
 *     sl_tensor *y = sl_forward(net, x); */
sl_block *sl_import_onnx_at(const char *at, const char *path, struct sl_import_onnx_opts opts)
{
	SLP_CALL("sl_import_onnx", at);
	SLP_BUDGET(path);
	struct slp_file f;
	if (!slp_file_read(&f, at, "sl_import_onnx", path)) return NULL;
	sl_block *block = slp_import_onnx_parse(&f, opts);
	free(f.data);
	return block;
}
