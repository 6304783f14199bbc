/* Numbers of classes as an input: scores (samples, classes) with a label for each sample. */
#ifndef SLP_LABELS_H
#define SLP_LABELS_H

#include "common/index.h"
#include "op.h"

static inline enum sl_status slp_check_labelled(struct slp_infer *c, const struct slp_type *scores,
                                                const struct slp_type *labels)
{
	if (scores->shape.ndim != 2)
		return slp_reject(c, SL_ESHAPE, "%d axes; (samples, classes) needed", scores->shape.ndim);
	if (labels->dtype != SL_INT32 && labels->dtype != SL_UINT8)
		return slp_reject(c, SL_EDTYPE, "labels are class numbers: int32, int64 or uint8 needed");
	if (labels->shape.ndim != 1 || labels->shape.dim[0] != scores->shape.dim[0])
		return slp_reject(c, SL_ESHAPE, "one label for each sample needed: (%lld)",
		                  (long long)scores->shape.dim[0]);
	return SL_OK;
}

static inline int64_t slp_label(const struct slp_view *labels, int64_t i)
{
	return labels->type.dtype == SL_INT32 ? ((const int32_t *)labels->ptr)[i] : ((const uint8_t *)labels->ptr)[i];
}

/* Checks the labels before anything is computed. */
static inline enum sl_status slp_check_labels(const struct slp_kernel *k, const struct slp_view *labels,
                                              int64_t classes)
{
	int64_t n = slp_size(labels);
	for (int64_t i = 0; i < n; i++)
		if (slp_label(labels, i) < 0 || slp_label(labels, i) >= classes)
			return slp_kernel_fail(k, SL_EINVAL,
			                       "sample %lld has label %lld; with %lld classes it is 0 to %lld",
			                       (long long)i, (long long)slp_label(labels, i), (long long)classes,
			                       (long long)classes - 1);
	return SL_OK;
}

#endif
