/* Feeds anything to the reader of ONNX models, and traces what comes out. */
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "fuzz.h"
#include "graph/graph.h"
#include "onnx/read.h"

static const sl_shape inputs[] = {{4, {2, 2, 5, 5}}, {2, {2, 6}}, {3, {1, 4, 6}}};
enum { MAX_INPUTS = 4 };

static void trace(sl_block *block, sl_shape shape, enum sl_dtype dtype)
{
	struct slp_trace trace;
	sl_tensor *in[MAX_INPUTS];
	slp_trace_begin(&trace, sl_cpu(0));
	SL_SCOPE {
		for (int i = 0; i < MAX_INPUTS; i++) in[i] = sl_var("x", .shape = &shape, .dtype = dtype);
		for (int n = 1; n <= MAX_INPUTS; n++) {
			sl_error_clear();
			if (sl_forward_at("fuzz", block, in, n)) break;
		}
	}
	slp_trace_end(&trace);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct slp_file f = {
	        .at = "fuzz", .function = "fuzz", .path = "/nowhere/x.onnx", .data = malloc(size + 1), .size = size};
	if (!f.data) abort();
	if (size) memcpy(f.data, data, size);
	SL_SCOPE {
		sl_block *block = slp_import_onnx_parse(&f, (struct sl_import_onnx_opts){0});
		if (block) {
			trace(block, inputs[size % 3], SL_FLOAT32);
			sl_error_clear();
			trace(block, inputs[size % 3], SL_INT64);
		}
		sl_block_free(block);
	}
	free(f.data);
	sl_error_clear();
	return 0;
}
