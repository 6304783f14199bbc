/* The scheduling policy "starling-fuzz" (fuzz.c), and what tests need of it. */
#ifndef SLP_FUZZ_H
#define SLP_FUZZ_H

#include "runtime/compat.h"

#define SLP_FUZZ_POLICY "starling-fuzz"

extern struct starpu_sched_policy slp_fuzz_policy;
/* All that follows is ordered by this seed; while nothing is under way. */
void slp_fuzz_seed(uint64_t seed);
/* How many tasks were taken before others that had been ready for longer. */
extern _Atomic uint64_t slp_fuzz_overtaken;

#endif
