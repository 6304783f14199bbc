/* Operations that make mini-batches, by name. */
#ifndef SLP_OP_LIST_BATCH_H
#define SLP_OP_LIST_BATCH_H

#include "op.h"

#define X SLP_DECLARE_OP
#include "move/batch_ops.def"
#undef X

#endif
