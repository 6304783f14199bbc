/* Option structures that operations (ops.h) and layers (nn.h) share. */
#ifndef STARLING_OPTIONS_H
#define STARLING_OPTIONS_H

#include <starling/base.h>

#pragma GCC system_header

/* The function that a layer applies to its result. */
enum sl_activation { SL_IDENTITY, SL_RELU, SL_SIGMOID, SL_TANH, SL_GELU, SL_SOFTPLUS, SL_ACTIVATIONS };

/* Pooling of images. */
enum sl_pool_type { SL_POOL_MAX, SL_POOL_AVG };
struct sl_pool2d_opts {
	enum sl_pool_type type;
	int kernel[2], stride[2] SL_IS_({SL_UNSET_INT, SL_UNSET_INT}),
	        pad[2];   /* stride: by default the kernel; a second kernel or stride of 0 equals the first */
	bool global;      /* one window of the whole image */
	bool ceil;        /* windows that overlap the end count too */
	bool exclude_pad; /* averages count only elements inside the image */
	bool as_written SL_IS_(true); /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_pool2d_opts(X) X(stride, {SL_UNSET_INT, SL_UNSET_INT})

#endif
