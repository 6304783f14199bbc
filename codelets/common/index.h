/* Indices and labels as functions take them: int32, or int64 as other frameworks have them. */
#ifndef SLP_INDEX_H
#define SLP_INDEX_H

#include "op.h"

/* In int32, which kernels read.  What is too large for it saturates: it is outside of every tensor as before. */
static inline sl_tensor *slp_as_index(const char *at, sl_tensor *t)
{
	return t && sl_tensor_dtype(t) == SL_INT64 ? sl_cast_at(at, t, SL_INT32) : t;
}

#endif
