/* The engine's state and its counters, which all files of this folder read.  It calls no other file. */
#include "runtime/engine.h"
#include "runtime/observe/stats.h"

struct slp_engine slp_engine = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct slp_counters slp_counters;

/* Whether the engine runs: from sl_init or the first operation until a matching sl_shutdown for each sl_init. */
bool sl_is_initialized(void)
{
	return atomic_load(&slp_engine.users) > 0;
}

void slp_stats_bytes(long change)
{
	size_t now = atomic_fetch_add(&slp_counters.bytes, (size_t)change) + (size_t)change;
	size_t old = atomic_load(&slp_counters.peak_bytes);
	while (now > old && !atomic_compare_exchange_weak(&slp_counters.peak_bytes, &old, now)) continue;
}
