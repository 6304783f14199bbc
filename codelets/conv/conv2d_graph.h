/* y = relu(convolution of x and w + b), or a gradient of a convolution, float32 or a half type, as one operation of
 * cuDNN's graph API (conv2d_graph.cu). */
#ifndef SLP_CONV2D_GRAPH_H
#define SLP_CONV2D_GRAPH_H

#include "cuda_libs.h"

#include "conv2d.h"

enum { SLP_GRAPH_ALIGNMENT = 16 }; /* of all operands, bytes */

struct slp_conv_graph {
	cudnnHandle_t handle;
	struct slp_conv c;
	size_t limit;                           /* bytes of its workspace */
	int64_t pass;                           /* enum slp_conv_pass */
	int64_t type;                           /* cudnnDataType_t of x, w, b and y; sums are float32 */
	int64_t bias, relu, tensor_cores, nhwc; /* as bools; tensor_cores: allowed; nhwc: channels last in x, w and y */
};

struct slp_conv_graph_at {
	const void *x, *w, *b, *y; /* of which one is written, as the pass has it; b NULL: no bias */
	void *work, *stream;       /* stream: the handle's */
};

#ifdef __cplusplus
extern "C" {
#endif

/* Whether there is a plan for it.  `f` is compared as bytes: fill it with zeros first. */
bool slp_conv_graph_can(const struct slp_conv_graph *f, const struct slp_conv_graph_at *at);
/* Queues it.  false: it cannot, and then, or by the caller's other way, the result is what it would have been. */
bool slp_conv_graph_run(const struct slp_conv_graph *f, const struct slp_conv_graph_at *at);

#ifdef __cplusplus
}
#endif

#endif
