/* Recurrent layers, by name. */
#ifndef SLP_OP_LIST_RECURRENT_H
#define SLP_OP_LIST_RECURRENT_H

#include "op.h"

#define X SLP_DECLARE_OP
#include "recurrent/ops.def"
#undef X

#endif
