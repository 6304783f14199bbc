/* Two operations as programs register them, for tests, and the training of networks that contain such. */
#ifndef SLP_OWN_OPS_H
#define SLP_OWN_OPS_H

#include <starling/own.h>

/* own_axpb: a x^power + b, by element.  Powers that something goes wrong with: 5 and 6 in the gradient, 77 and 78 in
 * the rule, 98 and 99 in the kernel. */
struct slp_axpb {
	double a, b;
	int power; /* of x; 0: 1 */
	bool negate;
	const void *unnamed; /* what no attribute names is 0 in kernels */
};

extern const struct sl_op_def slp_axpb_def;

/* own_outer: a b', and the sum of each of its rows; float64. */
extern const struct sl_op_def slp_outer_def;

/* The first weight of net, which is freed, after three steps of training: call by call, or as whole steps without these
 * passes. */
sl_tensor *slp_own_trained(sl_block *net, bool whole, unsigned passes_off);

#endif
