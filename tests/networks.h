/* Small networks of several kinds, and comparing what becomes of them. */
#ifndef SLP_TESTS_NETWORKS_H
#define SLP_TESTS_NETWORKS_H

#include "check.h"

/* Passes that change rounding. */
#define SLP_ROUNDING                                                                                                   \
	(1u << SL_PASS_SIMPLIFY | 1u << SL_PASS_NORM | 1u << SL_PASS_BLOCK | 1u << SL_PASS_FUSE | 1u << SL_PASS_LAYOUT)

/* Each gives three columns. */
struct slp_network {
	const char *name;
	sl_block *(*make)(void);
	sl_shape input;
};
enum { SLP_MLP, SLP_LENET, SLP_RESNET, SLP_NETWORKS, SLP_MAX_PARAMS = 32 };
extern const struct slp_network slp_networks[SLP_NETWORKS];

/* With values, the same each time, and its shapes known. */
sl_block *slp_network_new(const struct slp_network *network);

/* Equal within tolerance; 0: the same bits; and so for all parameters of two networks. */
void slp_check_close(const char *what, sl_tensor *a, sl_tensor *b, double tolerance);
void slp_check_params(const char *what, sl_block *a, sl_block *b, double tolerance);

#endif
