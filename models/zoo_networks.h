/* Networks that classify images, from blocks of the public interface.  Their parameters have the names that Gluon's
 * model zoo (MXNet 1.9.1) writes with save_parameters: sl_load_params reads such files. */
#ifndef MODELS_ZOO_NETWORKS_H
#define MODELS_ZOO_NETWORKS_H

#include <starling/nn.h>

struct zoo_network {
	const char *name; /* as in Gluon's zoo */
	int size;         /* height and width of the images that it was made for */
	int smallest;     /* that it can take */
	const char *paper;
};

/* The networks by number; NULL after the last one. */
const struct zoo_network *zoo_network(int i);
const struct zoo_network *zoo_find(const char *name); /* NULL: there is none */
/* A new one, without values yet, the caller's: (n, channels, height, width) to (n, classes).  NULL after an error. */
sl_block *zoo_build(const struct zoo_network *network, int64_t classes);

#endif
