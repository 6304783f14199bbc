/* y = relu(convolution of x and w + b), or a gradient of a convolution, by cuDNN: float32 or a half type as one
 * operation of its graph API (conv2d_graph.cu); without bias and relu, float64 too, by its older interface
 * (conv2d_older.cu). Each has options, numbered from 0, of which the caller may choose one; by default the first usable
 * one is taken. */
#ifndef SLP_CONV2D_GRAPH_H
#define SLP_CONV2D_GRAPH_H

#include "cuda_libs.h"

#include "conv2d_kernels.h"

enum { SLP_CONV_OPTIONS = 16, SLP_CONV_NAME = 48 };

struct slp_conv_graph {
	cudnnHandle_t handle;
	struct slp_conv c;
	size_t limit;                           /* bytes of its workspace */
	int64_t pass;                           /* enum slp_conv_pass */
	int64_t type;                           /* cudnnDataType_t of x, w, b and y; sums are float32 */
	int64_t bias, relu, tensor_cores, nhwc; /* as bools; tensor_cores: allowed; nhwc: the layout of x, w and y */
};

struct slp_conv_graph_at {
	const void *x, *w, *b, *y; /* one of them is written, depending on the pass; b NULL: no bias */
	void *work, *stream;       /* stream: the handle's */
	unsigned *arrivals;        /* slp_arrivals of the call */
};

#ifdef __cplusplus
extern "C" {
#endif

/* `f` is compared as bytes: fill it with zeros first. */
#define SLP_CONV_INTERFACE(name)                                                                                       \
	/* The number of options: those that are allowed.  Whether one can compute shows when it is chosen. */         \
	int slp_conv_##name##_count(const struct slp_conv_graph *f, const struct slp_conv_graph_at *at);               \
	/* The option's name, which is the same at the next start; empty: there is none. */                            \
	void slp_conv_##name##_name(const struct slp_conv_graph *f, const struct slp_conv_graph_at *at, int option,    \
	                            char to[SLP_CONV_NAME]);                                                           \
	/* Chooses the option. false: it does not support this operation. */                                           \
	bool slp_conv_##name##_choose(const struct slp_conv_graph *f, const struct slp_conv_graph_at *at, int option); \
	/* What was not chosen need not be kept. */                                                                    \
	void slp_conv_##name##_settle(const struct slp_conv_graph *f, const struct slp_conv_graph_at *at);             \
	/* Whether it supports the operation, as far as cuDNN has said. */                                             \
	bool slp_conv_##name##_can(const struct slp_conv_graph *f, const struct slp_conv_graph_at *at);                \
	/* Queues it.  false: it cannot; what else computes it gives the result that it would have been. */            \
	bool slp_conv_##name##_run(const struct slp_conv_graph *f, const struct slp_conv_graph_at *at);
SLP_CONV_INTERFACE(graph)
SLP_CONV_INTERFACE(older)
SLP_CONV_INTERFACE(few) /* conv2d_few.cu; `can`: and it pays */

/* Why the older interface does not support it. */
const char *slp_conv_older_why(const struct slp_conv_graph *f, const struct slp_conv_graph_at *at);

#ifdef __cplusplus
}
#endif

#endif
