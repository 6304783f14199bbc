/* Attributes of affine_blocked. */
#ifndef SLP_AFFINE_BLOCKED_H
#define SLP_AFFINE_BLOCKED_H

#include "op.h"

struct slp_affine_attrs {
	bool relu;
};

extern const struct sl_op slp_op_affine_blocked;

#endif
