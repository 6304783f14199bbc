/* Indices and labels as functions take them: int32, or int64 as in other frameworks. */
#ifndef SLP_INDEX_H
#define SLP_INDEX_H

#include "op.h"
#include "starling/primitives.h"

/* Indices in int32, which kernels read. Values that are too large saturate, and stay outside of every tensor. */
static inline sl_tensor *slp_as_index(const char *at, sl_tensor *t)
{
	return t && sl_tensor_dtype(t) == SL_INT64 ? sl_cast_at(at, t, SL_INT32) : t;
}

/* The same for a function's argument, which must be given; NULL with an error. */
static inline sl_tensor *slp_indices(const char *at, const char *function, sl_tensor *t)
{
	if (!slp_given(at, function, "indices", t)) return NULL;
	enum sl_dtype dtype = sl_tensor_dtype(t);
	if (dtype == SL_INT32 || dtype == SL_INT64) return slp_as_index(at, t);
	return slp_call_fail(at, function, SL_EDTYPE, "the indices are %s, int32 or int64 needed",
	                     sl_dtype_name(dtype));
}

#endif
