/* Windows that move over sequences, images and volumes, as attributes of ONNX nodes describe them. */
#ifndef SLP_ONNX_WINDOW_H
#define SLP_ONNX_WINDOW_H

#include "onnx/model/call.h"
#include "starling/tensor.h"

/* Numbers for height, width and depth: those of sequences are widths, and images have a depth of 1. */
enum { SLP_ONNX_SPACE = 3 };
struct slp_onnx_window {
	int axes; /* 1: sequences, 2: images, 3: volumes */
	int64_t size[SLP_ONNX_SPACE], kernel[SLP_ONNX_SPACE], stride[SLP_ONNX_SPACE], dilation[SLP_ONNX_SPACE],
	        begin[SLP_ONNX_SPACE], end[SLP_ONNX_SPACE];
};

/* Where the number of the i-th of these axes is. */
static inline int slp_onnx_window_place(int axes, int i)
{
	return axes == 3 ? (i + 2) % 3 : 2 - axes + i;
}
/* kernel NULL: from the attribute.  False after an error. */
bool slp_onnx_window_read(struct slp_onnx_call *c, sl_shape x, const sl_shape *kernel, struct slp_onnx_window *w);
/* Stride, dilation and border of an image, as operations take them. */
void slp_onnx_window_pairs(const struct slp_onnx_window *w, int stride[2], int dilation[2], int pad[2]);

/* (n, c, length) as (n, c, 1, length). */
sl_tensor *slp_onnx_as_image(struct slp_onnx_call *c, sl_tensor *t);
/* Gives y, which is a sequence again if x was one. */
void slp_onnx_set_output_image(struct slp_onnx_call *c, sl_tensor *y, int axes);
/* Operations pad both sides equally: for other padding, x, an image, gets its border before; so do layers of volumes. */
sl_tensor *slp_onnx_bordered(struct slp_onnx_call *c, sl_tensor *x, struct slp_onnx_window *w, bool always,
                             double value);

#endif
