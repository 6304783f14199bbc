/* Recurrent layers by operations that have gradients. */
#ifndef SLP_RECURRENT_AGAIN_H
#define SLP_RECURRENT_AGAIN_H

#include "op.h"

bool slp_recurrent_again(const struct slp_grad *g, sl_tensor **out);

#endif
