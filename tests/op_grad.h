/* Gradients of a test case against finite differences of the reference. */
#ifndef SLP_TESTS_OP_GRAD_H
#define SLP_TESTS_OP_GRAD_H

#include "op_case.h"

/* Records the call in float64 on a device, goes back with random numbers as the gradient of output 0, and compares
 * what comes out with central differences of the reference: by some elements of each float input, and by all of them
 * at once in a random direction.  Further outputs are by-products, without gradients. */
void slp_case_gradient(struct slp_place_of_test at, sl_device device, const struct slp_operands *o);

#endif
