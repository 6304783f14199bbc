/* Checks on blocks and on whole tensors. */
#ifndef SLP_TESTS_BLOCKS_H
#define SLP_TESTS_BLOCKS_H

#include "check.h"

/* A mistake that is the first one. */
#define CHECK_MISTAKE(call, ...)                                                                                       \
	do {                                                                                                           \
		CHECK_STATUS(call, __VA_ARGS__);                                                                       \
		sl_error_clear();                                                                                      \
	} while (0)

/* Elements as numbers; free them. */
double *slp_numbers(sl_tensor *t);
/* The same type and the same values, bit for bit; NaN included. */
bool slp_same_bits(sl_tensor *a, sl_tensor *b);
#define CHECK_SAME(a, b) CHECK_SAYING(slp_same_bits(a, b), "tensors differ (%s)", sl_error_message())

/* FNV-1a of the values of all parameters; 0 after an error. */
uint64_t slp_net_bits(const sl_block *net);
/* The values of the parameter at a path. */
sl_tensor *slp_data(sl_block *block, const char *path);

/* A block of a test's own, (dense(in[0], 3 units) + in[1]) · scale, with in[1] left out where there is one input; scale
 * is 2 at first.  It counts its calls, and *freed when it goes. */
struct slp_scaled {
	sl_block base;
	sl_block *hidden;
	sl_param *scale;
	int calls, *freed;
};
struct slp_scaled *slp_scaled_new(int *freed);

/* A GPT of two layers for `steps` tokens, initialised. */
sl_block *slp_transformer(int64_t tokens, int64_t width, int heads, int64_t steps, enum sl_dtype dtype);

/* A block with this forward and nothing else. */
sl_block *slp_user_block(sl_tensor *(*forward)(sl_block *, sl_tensor *const *, int));

#endif
