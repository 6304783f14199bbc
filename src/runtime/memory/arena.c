/* Memory of values that leave a GPU and come back: it stays allocated, so that most of them cost no cudaMalloc, which takes
 * longer than many kernels and waits for all of them.
 *
 * What a value leaves behind is for the next value of its size.  If there is none, memory is allocated, and as much that is
 * not in use is freed as the limit demands.  Main memory that once was pinned for copies is kept by size, as pinning takes
 * even longer. */
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "runtime/compat.h"
#include "runtime/memory/arena.h"

struct piece {
	uintptr_t memory;
	size_t bytes;
	struct piece *next;
};

static struct {
	struct arena {
		size_t most, bytes; /* allocated: in use or not */
		struct piece *used, *idle;
	} of[STARPU_MAXNODES];
	unsigned long allocations;
	bool any;
	starpu_pthread_mutex_t lock; /* StarPU's, so that simulated threads can wait for it */
} arenas = {.lock = STARPU_PTHREAD_MUTEX_INITIALIZER};

bool slp_arena_serves(unsigned node)
{
	return arenas.any && (arenas.of[node].most || starpu_node_get_kind(node) == STARPU_CPU_RAM);
}

size_t slp_arena_bytes(unsigned node)
{
	return arenas.of[node].most;
}

size_t slp_arena_allocated(unsigned node)
{
	return arenas.of[node].bytes;
}

unsigned long slp_arena_allocations(void)
{
	return arenas.allocations;
}

/* ---- pieces, locked ---------------------------------------------------------------------------------------------- */

static void push(struct piece **list, struct piece *p)
{
	p->next = *list;
	*list = p;
}

static struct piece *take(struct piece **at)
{
	struct piece *p = *at;
	*at = p->next;
	return p;
}

static struct piece *take_size(struct arena *a, size_t bytes)
{
	struct piece **p = &a->idle;
	while (*p && (*p)->bytes != bytes) p = &(*p)->next;
	return *p ? take(p) : NULL;
}

static struct piece *take_used(struct arena *a, uintptr_t memory)
{
	struct piece **p = &a->used;
	while (*p && (*p)->memory != memory) p = &(*p)->next;
	return *p ? take(p) : NULL;
}

/* The smallest idle piece that makes enough room, else the largest; NULL: there is no idle one. */
static struct piece *take_idle(struct arena *a, size_t missing)
{
	struct piece **best = NULL;
	for (struct piece **p = &a->idle; *p; p = &(*p)->next) {
		bool enough = (*p)->bytes >= missing, had = best && (*best)->bytes >= missing;
		if (!best || (enough && !had) || (enough == had && enough == ((*p)->bytes < (*best)->bytes))) best = p;
	}
	return best ? take(best) : NULL;
}

/* ---- for handles ------------------------------------------------------------------------------------------------- */

/* Frees idle pieces until there is room, not locked meanwhile: in simulation this takes time.  Counts the new bytes. */
static bool make_room(struct arena *a, unsigned node, size_t bytes)
{
	struct piece *p;
	while (a->most && a->bytes + bytes > a->most && (p = take_idle(a, a->bytes + bytes - a->most))) {
		a->bytes -= p->bytes;
		starpu_pthread_mutex_unlock(&arenas.lock);
		starpu_free_on_node(node, p->memory, p->bytes);
		free(p);
		starpu_pthread_mutex_lock(&arenas.lock);
	}
	if (a->most && a->bytes + bytes > a->most) return false;
	a->bytes += bytes;
	if (a->most) arenas.allocations++;
	return true;
}

static struct piece *allocate(struct arena *a, unsigned node, size_t bytes)
{
	struct piece *p = slp_try_malloc(sizeof *p);
	if (!p || !make_room(a, node, bytes)) return free(p), NULL;
	starpu_pthread_mutex_unlock(&arenas.lock);
	*p = (struct piece){starpu_malloc_on_node(node, bytes), bytes, NULL};
	starpu_pthread_mutex_lock(&arenas.lock);
	if (p->memory) return p;
	a->bytes -= bytes;
	free(p);
	return NULL;
}

uintptr_t slp_arena_get(unsigned node, size_t bytes)
{
	struct arena *a = &arenas.of[node];
	starpu_pthread_mutex_lock(&arenas.lock);
	struct piece *p = take_size(a, bytes);
	if (!p) p = allocate(a, node, bytes);
	if (p) push(&a->used, p);
	uintptr_t memory = p ? p->memory : 0;
	starpu_pthread_mutex_unlock(&arenas.lock);
	return memory;
}

bool slp_arena_put(unsigned node, uintptr_t memory)
{
	struct arena *a = &arenas.of[node];
	if (!slp_arena_serves(node)) return false;
	starpu_pthread_mutex_lock(&arenas.lock);
	struct piece *p = take_used(a, memory);
	if (p) push(&a->idle, p);
	starpu_pthread_mutex_unlock(&arenas.lock);
	return p;
}

/* ---- beginning and end ------------------------------------------------------------------------------------------- */

void slp_arena_grow(unsigned node, size_t bytes)
{
	struct arena *a = &arenas.of[node];
	starpu_pthread_mutex_lock(&arenas.lock);
	if (a->most < bytes) a->most = bytes;
	arenas.any = true;
	starpu_pthread_mutex_unlock(&arenas.lock);
}

static void forget(unsigned node, struct piece *p)
{
	for (struct piece *next; p; p = next) {
		next = p->next;
		starpu_free_on_node(node, p->memory, p->bytes);
		free(p);
	}
}

void slp_arena_stop(void)
{
	for (unsigned node = 0; arenas.any && node < STARPU_MAXNODES; node++) {
		forget(node, arenas.of[node].idle);
		forget(node, arenas.of[node].used);
	}
	memset(arenas.of, 0, sizeof arenas.of);
	arenas.any = false;
}
