/* Operations that move elements, by name. */
#ifndef SLP_OP_LIST_MOVE_H
#define SLP_OP_LIST_MOVE_H

#include "op.h"

#define X SLP_DECLARE_OP
#include "move/ops.def"
#undef X

#endif
