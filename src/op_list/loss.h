/* Softmax and losses, by name. */
#ifndef SLP_OP_LIST_LOSS_H
#define SLP_OP_LIST_LOSS_H

#include "op.h"

#define X SLP_DECLARE_OP
#include "loss/ops.def"
#undef X

#endif
