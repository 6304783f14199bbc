/* Planned places of buffers in an arena (place.c). */
#ifndef SLP_PLACE_H
#define SLP_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slp_buffer;

enum { SLP_PLACE_SMALL = 4096 }; /* bytes: values up to this have no places, but lie in the arena's heap */

/* Bytes that a place takes for a buffer of this size. */
static inline size_t slp_place_bytes(size_t bytes)
{
	return (bytes + 255) / 256 * 256;
}

/* Seconds that a value may take to leave while no task ends. */
extern double slp_place_patience;
/* All but the last three are for the thread that runs programs, locked.  False: a value did not leave, an error.
 * The buffer has this place from now on: what lies there leaves first, and what the buffer has elsewhere on the node. */
bool slp_place_take(struct slp_buffer *b, unsigned node, size_t offset);
/* Its value leaves the node: main memory has it afterwards. */
bool slp_place_leave(struct slp_buffer *b);
void slp_place_dead(struct slp_buffer *b);   /* tasks in flight are the last that use its value */
void slp_place_forget(struct slp_buffer *b); /* the buffer's handle is gone */
bool slp_places_leave(unsigned node);        /* all of them */
/* The next buffer that has a place on the node, and a value of further use; NULL: the first one, none. */
struct slp_buffer *slp_place_next(const struct slp_buffer *b, unsigned node);
/* From any thread: it would need a place on the node, and has none now. */
bool slp_place_is_away(const struct slp_buffer *b, unsigned node);
/* StarPU gets or returns the memory of a buffer; 0, false: it has no place. */
uintptr_t slp_place_get(struct slp_buffer *b, unsigned node);
bool slp_place_put(unsigned node, uintptr_t memory);

#endif
