/* The four operations of softmax.c and softmax.cu. */
#ifndef SLP_SOFTMAX_H
#define SLP_SOFTMAX_H

#include "common/axis.h"

/* All four have the form: e, an exponential; the sum of a term over the axis; a result. Inputs are a (x or dy) and b
 * (y). */
enum slp_softmax_kind { SLP_SOFTMAX, SLP_LOG_SOFTMAX, SLP_SOFTMAX_GRAD, SLP_LOG_SOFTMAX_GRAD };

/* On GPUs, the elements of a row that a thread can hold in registers. */
enum { SLP_SOFTMAX_HELD = 16 };

#endif
