/* Attention, by name. */
#ifndef SLP_OP_LIST_ATTENTION_H
#define SLP_OP_LIST_ATTENTION_H

#include "op.h"

#define X SLP_DECLARE_OP
#include "attention/ops.def"
#undef X

#endif
