/* Operations that make elements, by name. */
#ifndef SLP_OP_LIST_FILL_H
#define SLP_OP_LIST_FILL_H

#include "op.h"

#define X SLP_DECLARE_OP
#include "fill/ops.def"
#undef X

#endif
