/* Networks that are exported and compared with other libraries. */
#ifndef SLP_TESTS_IO_NETWORKS_H
#define SLP_TESTS_IO_NETWORKS_H

#include <starling/io.h>

/* The shape of an input, whose elements are from 0 to 10.  The table ends with a NULL name; the first is an MLP. */
extern const struct slp_network {
	const char *name;
	sl_block *(*make)(void);
	sl_shape shape;
	bool onnx_alone; /* MXNet lacks some of its operations */
} slp_networks[];

#endif
