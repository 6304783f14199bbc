/* Random numbers: the seed, and the number of each random operation.  The bits themselves come from philox.h. */
#include "runtime/engine.h"
#include "runtime/random.h"

_Thread_local struct slp_draws slp_draws;

static bool is_traced(const char *function)
{
	if (slp_draws.count)
		slp_call_fail(slp_current_call.at, function, SL_ESTATE,
		              "cannot be traced: it would count once, not at each run");
	return slp_draws.count;
}

/* Restarts the random numbers of all threads from a seed: the same seed and the same calls give the same numbers,
 * whatever the schedule.  sl_init with a config restarts them from its .seed.  Philox 4×32-10: J. Salmon and others,
 * "Parallel random numbers: as easy as 1, 2, 3", SC 2011. */
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

/* Whether a stream is drawn again. */
static bool repeat(struct slp_rng *rng)
{
	struct slp_rng_log *log = slp_draws.repeats;
	if (!log || log->owner != slp_draws.count || log->next >= log->count) return false;
	*rng = log->list[log->next++];
	return true;
}

static struct slp_rng note(struct slp_rng rng)
{
	struct slp_rng_log *log = slp_draws.notes;
	if (!log || log->owner != slp_draws.count) return rng;
	if (slp_grow((void **)&log->list, &log->capacity, log->count + 1, sizeof rng)) log->list[log->count++] = rng;
	else log->failed = true;
	return rng;
}

struct slp_rng slp_rng_next(void)
{
	struct slp_rng rng;
	if (!slp_draws.count) return slp_rng_take(1);
	if (!repeat(&rng)) rng = (struct slp_rng){SLP_RNG_VIRTUAL, (uint64_t)(*slp_draws.count)++};
	return note(rng);
}

/* The first of `count` streams, from the skip-th stream on. */
static struct slp_rng take(int count, int skip, int passing)
{
	struct slp_rng rng;
	if (repeat(&rng)) return note(rng);
	uint64_t first = atomic_fetch_add(&slp_engine.rng_stream, (uint64_t)count * (uint64_t)passing);
	return note((struct slp_rng){atomic_load(&slp_engine.rng_seed), first + (uint64_t)count * (uint64_t)skip});
}

struct slp_rng slp_rng_take(int count)
{
	return take(count, 0, 1);
}

static int own_rank, all_ranks = 1;

void slp_rng_share(int rank, int ranks)
{
	own_rank = rank;
	all_ranks = ranks;
}

struct slp_rng slp_rng_take_apart(int count)
{
	return take(count, own_rank, all_ranks);
}

/* Initialisation is the same in all processes; dropout is not. */
struct slp_rng slp_rng_next_apart(void)
{
	return slp_draws.count ? slp_rng_next() : slp_rng_take_apart(1);
}
