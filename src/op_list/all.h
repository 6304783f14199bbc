/* All operations by name, for tables of operations. */
#ifndef SLP_OP_LIST_ALL_H
#define SLP_OP_LIST_ALL_H

#include "op.h"
#include "starling/optim.h"

#define X SLP_DECLARE_OP
#include "ops.def"
#undef X

#endif
