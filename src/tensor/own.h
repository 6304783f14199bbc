/* Operations that programs registered (own.c). */
#ifndef SLP_OWN_H
#define SLP_OWN_H

#include "op.h"

bool slp_op_is_own(const struct sl_op *op);

#endif
