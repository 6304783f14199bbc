/* Products and dense layers, by name. */
#ifndef SLP_OP_LIST_LINEAR_H
#define SLP_OP_LIST_LINEAR_H

#include "op.h"

#define X SLP_DECLARE_OP
#include "linear/ops.def"
#undef X

#endif
