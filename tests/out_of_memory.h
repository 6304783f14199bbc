/* Requests for more main memory than there is, for tests under a limit. */
#ifndef SLP_OUT_OF_MEMORY_H
#define SLP_OUT_OF_MEMORY_H

#include <starling.h>
#include <stdbool.h>

/* The engine computes, and a tensor of threes from before has its values. */
void slp_check_usable(sl_tensor *before);
/* Tensors larger than any memory: an error, for less than 2 s of processor time, that names whose limit it is ("":
 * anybody's), and all goes on. */
void slp_check_giants(const char *whose);
/* Holds tensors of so many elements until there is no memory for one more, lets half of them go and goes on; at least
 * so many there must be, and the error names whose limit it is. */
void slp_use_up(int64_t size, int least, const char *whose);
/* Trains LeNet with batches that grow until there is no memory, and then with a small one; limit(true): from now on.
 * The engine must not run. */
void slp_train_until_full(bool hybrid, void (*limit)(bool on));

#endif
