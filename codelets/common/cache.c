/* Sizes of caches (cache.h), which the C library knows from the processor. */
#include "cache.h"

#include <pthread.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int64_t first;

static void ask(void)
{
	long bytes = 0;
#ifdef _SC_LEVEL1_DCACHE_SIZE
	bytes = sysconf(_SC_LEVEL1_DCACHE_SIZE);
#endif
	first = bytes > 0 ? bytes : 32 << 10;
}

int64_t slp_first_cache(void)
{
	pthread_once(&once, ask);
	return first;
}
