/* Weights of the losses of a whole step, so that it minimises their mean or their sum for any split of the batch: the
 * trainer divides by rows, and the backward pass begins with each loss's share of its row. */
#include "nn/nn.h"
#include "starling/arithmetic.h"
#include "starling/primitives.h"
#include "train/train.h"

int64_t slp_rows_of(sl_shape x)
{
	return x.ndim ? x.dim[0] : 1;
}

int64_t slp_reduction_divisor(enum sl_reduction reduction, int64_t rows)
{
	return reduction == SL_REDUCTION_SUM ? 1 : rows;
}

bool slp_reduction_weigh(const char *at, enum sl_reduction reduction, sl_tensor *losses, int64_t rows, sl_tensor *scale,
                         sl_tensor **weights)
{
	int64_t n = sl_tensor_size(losses);
	*weights = NULL;
	bool ones = reduction == SL_REDUCTION_SUM || n == rows || !n;
	if (ones && !scale) return true;
	struct sl_make make = {sl_tensor_dtype(losses), sl_tensor_device(losses)};
	*weights = sl_full_at(at, sl_tensor_shape(losses), ones ? 1 : (double)rows / (double)n, make);
	if (scale) *weights = sl_mul_at(at, *weights, sl_cast_at(at, scale, make.dtype));
	return *weights != NULL;
}
