/* Reductions, sorting and the like, by name. */
#ifndef SLP_OP_LIST_REDUCE_H
#define SLP_OP_LIST_REDUCE_H

#include "op.h"

#define X SLP_DECLARE_OP
#include "reduce/ops.def"
#undef X

#endif
