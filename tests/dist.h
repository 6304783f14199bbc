/* Parts of dist.c's program.  False with an error recorded. */
#ifndef TESTS_DIST_H
#define TESTS_DIST_H

#include <starling.h>

bool dist_show_batches(const char *data, int rows); /* the labels that this rank gets */
void dist_show_mean(void);
bool dist_show_trial(void);
bool dist_show_sums(sl_device device); /* how many are wrong */
bool dist_sum_shapes(void);
bool dist_show_masks(void);
bool dist_time_sum(int units);

/* dist_deaths.c: this rank is killed while rank 0 next writes a checkpoint. */
void dist_die_in_write(int rank, const char *checkpoint);

#endif
