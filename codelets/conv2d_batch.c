/* Convolution of many images with few channels: see below. */
#include "conv2d.h"
enum sl_status slp_conv_batch(const struct slp_kernel *k, const struct slp_conv_args *a)
{
	(void)k;
	(void)a;
	return SL_EUNSUPPORTED;
}
