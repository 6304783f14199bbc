/* Random numbers: the seed, and the number of each random operation.  The bits themselves come from philox.h. */
#include "runtime/runtime.h"

_Thread_local int *slp_rng_virtual;

static bool is_traced(const char *function)
{
	if (slp_rng_virtual)
		slp_error_set(SL_ESTATE, "%s cannot be traced: it would count once, not at each run", function);
	return slp_rng_virtual;
}

/* Starts the random numbers of all threads anew: the same seed and the same calls give the same numbers, whatever the
 * schedule.  sl_init with a config starts them at its .seed.  Philox 4×32-10: J. Salmon and others, "Parallel random
 * numbers: as easy as 1, 2, 3", SC 2011. */
void sl_seed(uint64_t seed)
{
	if (is_traced("sl_seed")) return;
	atomic_store(&slp_engine.rng_seed, seed);
	atomic_store(&slp_engine.rng_stream, 0);
}

/* The state of the random numbers: the seed, and the number of random operations since.
 *
 *     struct sl_rng here = sl_rng_get();
 *     …
 *     sl_rng_set(here); // the same numbers again */
struct sl_rng sl_rng_get(void)
{
	return (struct sl_rng){atomic_load(&slp_engine.rng_seed), atomic_load(&slp_engine.rng_stream)};
}

/* Continues the random numbers of all threads from that state. */
void sl_rng_set(struct sl_rng rng)
{
	if (is_traced("sl_rng_set")) return;
	atomic_store(&slp_engine.rng_seed, rng.seed);
	atomic_store(&slp_engine.rng_stream, rng.stream);
}

struct slp_rng slp_rng_next(void)
{
	if (slp_rng_virtual) return (struct slp_rng){SLP_RNG_VIRTUAL, (uint64_t)(*slp_rng_virtual)++};
	return slp_rng_take(1);
}

struct slp_rng slp_rng_take(int count)
{
	uint64_t first = atomic_fetch_add(&slp_engine.rng_stream, (uint64_t)count);
	return (struct slp_rng){atomic_load(&slp_engine.rng_seed), first};
}
