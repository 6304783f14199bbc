/* The memory that programs with a limit have on a GPU: StarPU's handles get it here, and return it (arena.c). */
#ifndef SLP_ARENA_H
#define SLP_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether handles get their memory on a node here. */
bool slp_arena_serves(unsigned node);
/* Memory on such a node; 0: the limit is reached. */
uintptr_t slp_arena_get(unsigned node, size_t bytes);
/* Takes it back; false: it does not come from here. */
bool slp_arena_put(unsigned node, uintptr_t memory);
/* A node's handles may have this much from now on, or more if that was allowed before. */
void slp_arena_grow(unsigned node, size_t bytes);
size_t slp_arena_bytes(unsigned node);     /* the limit; 0: there is none */
size_t slp_arena_allocated(unsigned node); /* in use or kept */
unsigned long slp_arena_allocations(void);
void slp_arena_stop(void); /* handles have returned all memory */

#endif
