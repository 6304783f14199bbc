/* Running a test case through the engine, in all the ways a call can reach a kernel. */
#ifndef SLP_TESTS_OP_RUN_H
#define SLP_TESTS_OP_RUN_H

#include "op_case.h"

/* X(symbol, text) */
#define SLP_WAYS(X)                                                                                                    \
	X(SLP_PLAIN, "alone")                                                                                          \
	X(SLP_AGAIN, "a second time")                                                                                  \
	X(SLP_BULKED, "in a segment with others")                                                                      \
	X(SLP_VIEWS, "with views as inputs")                                                                           \
	X(SLP_INPLACE, "in place")

enum slp_way {
#define X(symbol, text) symbol,
	SLP_WAYS(X)
#undef X
	        SLP_WAY_COUNT
};

/* Whether a case can be run this way. */
bool slp_way_applies(enum slp_way way, const struct slp_operands *o);
const char *slp_way_name(enum slp_way way);

/* Runs the call on a device with the inputs of `o`; result gets what came out.  False after a failure. */
bool slp_case_run(struct slp_place_of_test at, sl_device device, enum slp_way way, const struct slp_operands *o,
                  struct slp_operands *result);

/* The call must be rejected as the case says. */
void slp_case_reject(struct slp_place_of_test at, sl_device device, const struct slp_operands *o);

/* The call must be rejected, because the device has no kernel for these types. */
void slp_case_unsupported(struct slp_place_of_test at, sl_device device, const struct slp_operands *o);

#endif
