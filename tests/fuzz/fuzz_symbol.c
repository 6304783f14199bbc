/* Feeds anything to the reader of MXNet's symbols, with a few parameters at hand, and traces what comes out. */
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "fuzz.h"
#include "graph/graph.h"
#include "mxnet/import.h"

/* Parameters by name, and the shapes of inputs, by turns. */
static char *names[] = {"w", "b", "k", "c", "g", "e"};
static const sl_shape shapes[] = {{2, {4, 6}}, {1, {4}}, {4, {4, 2, 3, 3}}, {1, {4}}, {1, {2}}, {2, {7, 3}}};
static const sl_shape inputs[] = {{4, {2, 2, 5, 5}}, {2, {2, 6}}, {3, {1, 4, 6}}};
enum { PARAMS = sizeof names / sizeof *names, MAX_INPUTS = 8 };

static sl_tensor *tensors[PARAMS];

static void make_tensors(void)
{
	for (int i = 0; i < PARAMS && !tensors[i]; i++) tensors[i] = sl_ones(shapes[i]);
}

static void trace(sl_block *block, sl_shape shape)
{
	struct slp_trace trace;
	sl_tensor *in[MAX_INPUTS];
	slp_trace_begin(&trace, sl_cpu(0));
	SL_SCOPE {
		for (int i = 0; i < MAX_INPUTS; i++) in[i] = sl_var("x", .shape = &shape);
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
	        .at = "fuzz", .function = "fuzz", .path = "x.json", .data = malloc(size + 1), .size = size};
	if (!f.data) abort();
	if (size) memcpy(f.data, data, size);
	make_tensors();
	SL_SCOPE {
		sl_block *block = slp_import_parse(&f, NULL, 0, "x.params", names, tensors, PARAMS,
		                                   (struct sl_import_opts){.lenient = true});
		if (block) trace(block, inputs[size % 3]);
		sl_block_free(block);
	}
	free(f.data);
	sl_error_clear();
	return 0;
}
