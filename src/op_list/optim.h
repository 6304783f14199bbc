/* Optimisers and other operations of an update, by name. */
#ifndef SLP_OP_LIST_OPTIM_H
#define SLP_OP_LIST_OPTIM_H

#include "op.h"
#include "starling/optim.h"

#define X SLP_DECLARE_OP
#include "optim/ops.def"
#undef X

#endif
