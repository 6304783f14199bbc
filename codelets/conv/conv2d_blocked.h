/* Convolution of images whose channels are in blocks (common/blocks.h), for programs that do not go back: weights are
 * packed beforehand, and relu or bounds and an addition belong to it. */
#ifndef SLP_CONV2D_BLOCKED_H
#define SLP_CONV2D_BLOCKED_H

#include "common/blocks.h"
#include "conv2d.h"

struct slp_conv2d_blocked_attrs {
	struct sl_conv2d_opts conv;
	int kernel[2];
	int channels[2]; /* of x, of y */
	int size[2];     /* of x, for conv2d_pack: height and width */
	int images;      /* of x, for conv2d_pack */
	int block;       /* channels in a block */
	int64_t packed;  /* floats of w as conv2d_pack gives it; 0: w is in the plain order */
	bool x_plain;    /* x is in the plain order */
	bool winograd, relu;
	bool bounded; /* y is kept between these two */
	double low, high;
};

extern const struct sl_op slp_op_conv2d_blocked, slp_op_conv2d_blocked_add, slp_op_conv2d_pack;

/* Whether there is a fast kernel for a convolution in blocks, on a team of so many threads; sets a->packed. */
bool slp_conv_blocked_plan(struct slp_conv2d_blocked_attrs *a, int threads);

#endif
