/* Slopes of elementwise functions as operations that have gradients themselves, for second derivatives (slp_grad.again). */
#ifndef SLP_SLOPES_H
#define SLP_SLOPES_H

#include "op.h"

/* slp_slope_NAME(at, d, v): the value of NAME_grad(d, v). */
#define UNARY(name, ...) sl_tensor *slp_slope_##name(const char *at, sl_tensor *d, sl_tensor *v);
#include "elementwise/unary.def"

/* The values of pow_by_base(a, b), and of pow_by_exponent(a, y) for y = a to the power b. */
sl_tensor *slp_slope_by_base(const char *at, sl_tensor *a, sl_tensor *b);
sl_tensor *slp_slope_by_exponent(const char *at, sl_tensor *a, sl_tensor *y);

#endif
