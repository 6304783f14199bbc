/* Convolutions, by name. */
#ifndef SLP_OP_LIST_CONV_H
#define SLP_OP_LIST_CONV_H

#include "op.h"

#define X SLP_DECLARE_OP
#include "conv/ops.def"
#undef X

#endif
