/* Memory of programs with a limit, allocated when they are compiled: while they run, there is no cudaMalloc, which takes
 * longer than many kernels and waits for all of them.
 *
 * A GPU's arena has one piece for places, which place.c gives out, and a heap: pieces in which small values and scratch memory
 * lie one after the other, the first gap that is large enough for each.  What does not fit there is allocated by StarPU, as
 * without a limit: it belongs to calls beside the program.  Main memory that once was pinned for copies is kept by size,
 * as pinning takes even longer. */
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "runtime/compat.h"
#include "runtime/memory/arena.h"

enum { ALIGNMENT = 256 };

struct piece {
	uintptr_t memory;
	size_t bytes;
	struct piece *next;
};

/* A part of the heap. */
struct chunk {
	uintptr_t memory;
	size_t bytes;
	struct piece *used; /* in order of their addresses */
	struct chunk *next;
};

static struct {
	struct arena {
		uintptr_t base;
		size_t bytes, heap;
		struct chunk *chunks;
		struct piece *used, *idle; /* of main memory */
	} of[STARPU_MAXNODES];
	unsigned long allocations;
	bool any;
	starpu_pthread_mutex_t lock; /* StarPU's, so that simulated threads can wait for it */
} arenas = {.lock = STARPU_PTHREAD_MUTEX_INITIALIZER};

static bool is_main(unsigned node)
{
	return starpu_node_get_kind(node) == STARPU_CPU_RAM;
}

bool slp_arena_serves(unsigned node)
{
	return arenas.any && (arenas.of[node].bytes || is_main(node));
}

uintptr_t slp_arena_base(unsigned node)
{
	return arenas.of[node].base;
}

size_t slp_arena_bytes(unsigned node)
{
	return arenas.of[node].bytes;
}

size_t slp_arena_heap(unsigned node)
{
	return arenas.of[node].heap;
}

size_t slp_arena_allocated(unsigned node)
{
	return arenas.of[node].bytes + arenas.of[node].heap;
}

unsigned long slp_arena_allocations(void)
{
	return arenas.allocations;
}

/* ---- main memory, locked ----------------------------------------------------------------------------------------- */

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

static struct piece *take_used(struct piece **list, uintptr_t memory)
{
	struct piece **p = list;
	while (*p && (*p)->memory != memory) p = &(*p)->next;
	return *p ? take(p) : NULL;
}

/* Not locked while it is allocated: in simulation this takes time. */
static struct piece *allocate(unsigned node, size_t bytes)
{
	struct piece *p = slp_try_malloc(sizeof *p);
	if (!p) return NULL;
	starpu_pthread_mutex_unlock(&arenas.lock);
	*p = (struct piece){starpu_malloc_on_node(node, bytes), bytes, NULL};
	starpu_pthread_mutex_lock(&arenas.lock);
	if (p->memory) return p;
	free(p);
	return NULL;
}

static uintptr_t get_main(struct arena *a, unsigned node, size_t bytes)
{
	struct piece *p = take_size(a, bytes);
	if (!p) p = allocate(node, bytes);
	if (p) push(&a->used, p);
	return p ? p->memory : 0;
}

/* ---- the heap, locked --------------------------------------------------------------------------------------------- */

static uintptr_t get_from(struct chunk *c, size_t bytes)
{
	struct piece **p = &c->used, *new;
	uintptr_t at = c->memory;
	while (*p && (*p)->memory - at < bytes) {
		at = (*p)->memory + (*p)->bytes;
		p = &(*p)->next;
	}
	if ((!*p && c->memory + c->bytes - at < bytes) || !(new = slp_try_malloc(sizeof *new))) return 0;
	*new = (struct piece){at, bytes, *p};
	*p = new;
	return at;
}

static uintptr_t get_heap(const struct arena *a, size_t bytes)
{
	uintptr_t memory = 0;
	bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	for (struct chunk *c = a->chunks; c && !memory; c = c->next) memory = get_from(c, bytes);
	return memory;
}

static bool put_heap(const struct arena *a, uintptr_t memory)
{
	struct piece *p = NULL;
	for (struct chunk *c = a->chunks; c && !p; c = c->next) p = take_used(&c->used, memory);
	free(p);
	return p;
}

/* ---- for handles ------------------------------------------------------------------------------------------------- */

uintptr_t slp_arena_get(unsigned node, size_t bytes)
{
	struct arena *a = &arenas.of[node];
	starpu_pthread_mutex_lock(&arenas.lock);
	uintptr_t memory = is_main(node) ? get_main(a, node, bytes) : get_heap(a, bytes);
	starpu_pthread_mutex_unlock(&arenas.lock);
	return memory;
}

bool slp_arena_put(unsigned node, uintptr_t memory)
{
	struct arena *a = &arenas.of[node];
	if (!slp_arena_serves(node)) return false;
	starpu_pthread_mutex_lock(&arenas.lock);
	struct piece *p = is_main(node) ? take_used(&a->used, memory) : NULL;
	if (p) push(&a->idle, p);
	bool ours = p || (!is_main(node) && put_heap(a, memory));
	starpu_pthread_mutex_unlock(&arenas.lock);
	return ours;
}

/* ---- beginning and end ------------------------------------------------------------------------------------------- */

static uintptr_t allocate_on(unsigned node, size_t bytes)
{
	arenas.allocations++;
	return starpu_malloc_on_node(node, bytes);
}

static bool grow_heap(struct arena *a, unsigned node, size_t heap)
{
	struct chunk *c = slp_try_malloc(sizeof *c);
	if (c) *c = (struct chunk){allocate_on(node, heap), heap, NULL, a->chunks};
	if (!c || !c->memory) return free(c), false;
	a->chunks = c;
	a->heap += heap;
	return true;
}

size_t slp_arena_heap_with(unsigned node, size_t heap)
{
	const struct arena *a = &arenas.of[node];
	for (const struct chunk *c = a->chunks; c; c = c->next)
		if (c->bytes >= heap) return a->heap;
	return a->heap + heap;
}

bool slp_arena_make(unsigned node, size_t places, size_t heap)
{
	struct arena *a = &arenas.of[node];
	arenas.any = true;
	if (places != a->bytes) {
		if (a->bytes) starpu_free_on_node(node, a->base, a->bytes);
		a->base = places ? allocate_on(node, places) : 0;
		a->bytes = a->base ? places : 0;
	}
	if (a->bytes != places) return false;
	return slp_arena_heap_with(node, heap) == a->heap || grow_heap(a, node, heap);
}

static void forget(unsigned node, struct piece *p)
{
	for (struct piece *next; p; p = next) {
		next = p->next;
		if (is_main(node)) starpu_free_on_node(node, p->memory, p->bytes);
		free(p);
	}
}

static void forget_chunks(unsigned node, struct chunk *c)
{
	for (struct chunk *next; c; c = next) {
		next = c->next;
		forget(node, c->used);
		starpu_free_on_node(node, c->memory, c->bytes);
		free(c);
	}
}

void slp_arena_stop(void)
{
	for (unsigned node = 0; arenas.any && node < STARPU_MAXNODES; node++) {
		struct arena *a = &arenas.of[node];
		forget(node, a->idle);
		forget(node, a->used);
		forget_chunks(node, a->chunks);
		if (a->bytes) starpu_free_on_node(node, a->base, a->bytes);
	}
	memset(arenas.of, 0, sizeof arenas.of);
	arenas.any = false;
}
