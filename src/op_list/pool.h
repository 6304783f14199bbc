/* Poolings, by name. */
#ifndef SLP_OP_LIST_POOL_H
#define SLP_OP_LIST_POOL_H

#include "op.h"

#define X SLP_DECLARE_OP
#include "pool/ops.def"
#undef X

#endif
