/* Steps of a trainer in several processes. */
#ifndef SLP_DATA_PARALLEL_H
#define SLP_DATA_PARALLEL_H

#include "dist/dist.h"
#include "nn/nn.h"
#include "starling/nn.h"

struct slp_data_parallel **slp_trainer_ranks(sl_trainer *trainer); /* its data about them; NULL before the first step */

/* How a step is made, which processes compare before the first one. */
struct slp_data_parallel_step {
	const char *way;
	int64_t rows;
	bool computed; /* gradients were, by the parameters as they are */
};

/* data_parallel.c */
void slp_data_parallel_free(struct slp_data_parallel *ranks);
/* The trainer has yet to begin with the values of rank 0; it has, or does not have to. */
void slp_data_parallel_expect(sl_trainer *trainer);
void slp_data_parallel_known(sl_trainer *trainer);
/* Before the first step: all processes are about to do the same, and begin with the parameters of rank 0, unless
 * gradients were computed by them, which have to be the same then.  False with an error recorded, on all of them. */
bool slp_data_parallel_begin(const char *at, sl_trainer *trainer, const char *function,
                             const struct slp_data_parallel_step *step);
/* Has a gradient summed over the processes, in place; param: the number of the (first) parameter that it is of.  what:
 * its rows and parts. */
bool slp_data_parallel_sum(const char *at, sl_trainer *trainer, int param, sl_tensor *gradient,
                           struct slp_dist_what what);
/* The same for those of all parameters, NULL: none, in as few exchanges as they have buckets; of those in no bucket,
 * each takes about as many bytes.  The last ones first: in the backward pass, they come first. */
bool slp_data_parallel_sum_groups(const char *at, sl_trainer *trainer, sl_tensor *const *gradients, int64_t rows);
/* Gives all processes the values of one that parameter `param` has, or that it lies among. */
bool slp_data_parallel_give(const char *at, sl_trainer *trainer, int param, sl_tensor *values, int rank);

#endif
