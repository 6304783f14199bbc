/* The scheduling policy "starling-fuzz" (fuzz.c), and its interface for tests. */
#ifndef SLP_FUZZ_H
#define SLP_FUZZ_H

#include "runtime/compat.h"

#define SLP_FUZZ_POLICY "starling-fuzz"

extern struct starpu_sched_policy slp_fuzz_policy;
/* This seed orders all later tasks; call it while nothing is in flight. */
void slp_fuzz_seed(uint64_t seed);
/* The number of tasks that ran before others that had been ready for longer. */
extern _Atomic uint64_t slp_fuzz_overtaken;

#endif
