/* The memory that programs with a limit have on a GPU (arena.c): one piece, in which values have planned places (place.h),
 * and a heap for small values and the memory that kernels work in.  StarPU's handles get it here, and return it. */
#ifndef SLP_ARENA_H
#define SLP_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether a node has an arena; in main memory: whether copies of its values are kept by size. */
bool slp_arena_serves(unsigned node);
/* Memory for a value without a planned place; 0: it is allocated elsewhere. */
uintptr_t slp_arena_get(unsigned node, size_t bytes);
/* Takes it back; false: it does not come from here. */
bool slp_arena_put(unsigned node, uintptr_t memory);
/* Gives a node this much for places, and a piece of the heap of at least that size.  No value has a place while the former
 * changes.  False: it cannot be allocated. */
bool slp_arena_make(unsigned node, size_t places, size_t heap);
uintptr_t slp_arena_base(unsigned node);                /* of the places */
size_t slp_arena_bytes(unsigned node);                  /* of the places; 0: there is no arena */
size_t slp_arena_allocated(unsigned node);              /* with the heap */
size_t slp_arena_heap_with(unsigned node, size_t heap); /* the heap's size if it has such a piece */
unsigned long slp_arena_allocations(void);
void slp_arena_stop(void); /* handles have returned all memory */

#endif
