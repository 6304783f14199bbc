/* The caches of the processor that this process runs on. */
#ifndef SLP_CACHE_H
#define SLP_CACHE_H

#include <stdint.h>

/* The bytes of a core's first cache of data; 32 KiB if the system does not know. */
int64_t slp_first_cache(void);

#endif
