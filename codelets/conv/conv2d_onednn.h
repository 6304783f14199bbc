/* oneDNN's objects for a convolution. */
#ifndef SLP_CONV2D_ONEDNN_H
#define SLP_CONV2D_ONEDNN_H

#include "common/onednn.h"
#include "conv2d_kernels.h"

enum operand { X, W, B, Y, OPERANDS };

struct slp_conv_key {
	struct slp_conv c;
	int pass, bias, threads, half, wide, x_nc16, y_nc16;
	int inner;                            /* of half types: computed in bfloat16, too */
	int block, x_plain, packed, winograd; /* images in blocks, conv2d_blocked.h; block 0: in the plain order */
	struct slp_dnn_after after;
};

/* A tensor in the caller's layout and in the convolution's; if they differ, `reorder` converts an input or output. */
struct slp_conv_port {
	dnnl_memory_t outside, inside;
	dnnl_primitive_t reorder;
	size_t bytes; /* of inside, where there is a reorder */
	int arg;
};

struct slp_conv_made {
	struct slp_conv_key key;
	uint64_t used;
	dnnl_primitive_t convolution;
	struct slp_conv_port port[OPERANDS];
	dnnl_memory_t scratchpad;
	size_t scratch_bytes, weight_bytes;
	bool product; /* computed as products of matrices, whose bits depend on the number of threads */
};

/* Makes the objects of m, which is zeros before; false, with parts of them, if oneDNN has no such convolution. */
bool slp_conv_make_onednn(struct slp_conv_made *m, dnnl_engine_t engine, const struct slp_conv_key *key);
void slp_conv_unmake(struct slp_conv_made *m);
/* The description of the pass alone; false if oneDNN has none. */
bool slp_conv_describe(const struct slp_conv_key *key, dnnl_engine_t engine, dnnl_primitive_desc_t *pd);
bool slp_conv_is_output(int pass, int operand);

#endif
