/* A test case's call within traced code: a program, a hybrid block, a whole step. */
#ifndef SLP_TESTS_OP_TRACED_H
#define SLP_TESTS_OP_TRACED_H

#include "op_case.h"

/* Makes the call, with the attributes as the case has them, in each of these ways on a device: results and gradients
 * must be those of the call made eagerly, bit for bit where no pass changes rounding. */
void slp_case_traced(struct slp_place_of_test at, sl_device device, const struct slp_operands *o);

#endif
