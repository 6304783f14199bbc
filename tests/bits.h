/* Hashes of parameters, for bits. */
#ifndef TESTS_BITS_H
#define TESTS_BITS_H

#include <inttypes.h>
#include <stdbool.h>
#include <starling.h>

#define SLP_HASH_START UINT64_C(0xCBF29CE484222325)

/* Continues the hash h with the bytes of t. */
uint64_t slp_hash_tensor(uint64_t h, sl_tensor *t);

/* Trains the network "lenet", "resnet18" or "gpt" for some steps, and hashes its parameters.  False: there is no such
 * network, or an error occurred. */
bool slp_network_bits(const char *name, uint64_t *hash);

#endif
