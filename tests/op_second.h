/* Second derivatives of a test case against finite differences of first derivatives. */
#ifndef SLP_TESTS_OP_SECOND_H
#define SLP_TESTS_OP_SECOND_H

#include "op_case.h"

/* Records the call and its gradients in float64 on a device (.create_graph), goes back from a sum of the gradients with
 * random weights, and compares the results, in a random direction of all inputs and of the gradient of output 0, with
 * central differences of the first derivatives, which the operations' own kernels compute. */
void slp_case_second(struct slp_place_of_test at, sl_device device, const struct slp_operands *o);

#endif
