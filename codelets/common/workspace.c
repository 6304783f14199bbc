/* Work memory of threads. */
#include "alloc.h"
#include "workspace.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

struct arena {
	void *memory;
	size_t size;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

static void free_arenas(void *arg)
{
	struct arena *arenas = arg;
	for (int i = 0; i < SLP_WORKSPACES; i++) free(arenas[i].memory);
	free(arenas);
}

static void make_key(void)
{
	pthread_key_create(&key, free_arenas);
}

static struct arena *arenas_of_thread(void)
{
	pthread_once(&once, make_key);
	struct arena *arenas = pthread_getspecific(key);
	if (!arenas && (arenas = slp_try_calloc(SLP_WORKSPACES, sizeof *arenas))) pthread_setspecific(key, arenas);
	return arenas;
}

void *slp_workspace(enum slp_workspace which, size_t bytes)
{
	struct arena *a = arenas_of_thread();
	if (!a) return NULL;
	a += which;
	if (a->size >= bytes && a->memory) return a->memory;
	free(a->memory);
	a->size = (bytes + 65535) & ~(size_t)65535;
	a->memory = slp_try_aligned_alloc(64, a->size ? a->size : 64);
	if (!a->memory) a->size = 0;
	return a->memory;
}
