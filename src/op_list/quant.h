/* Operations on quantised numbers, by name. */
#ifndef SLP_OP_LIST_QUANT_H
#define SLP_OP_LIST_QUANT_H

#include "op.h"

#define X SLP_DECLARE_OP
#include "quant/ops.def"
#undef X

#endif
