/* Normalisation, by name. */
#ifndef SLP_OP_LIST_NORM_H
#define SLP_OP_LIST_NORM_H

#include "op.h"

#define X SLP_DECLARE_OP
#include "norm/ops.def"
#undef X

#endif
