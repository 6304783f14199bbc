/* Places of values in an arena.  A program plans them: a buffer has the memory at its place as long as nothing else is placed
 * there, and StarPU gets that address whenever it needs memory for the buffer on the node.
 *
 * A place is given only after the previous value there has left: its tasks have ended, main memory has a copy if the value is
 * still of use, and StarPU has returned the memory. */
#include "config.h"
#include "runtime/compat.h"
#include "runtime/memory/arena.h"
#include "runtime/memory/place.h"
#include "runtime/task/buffer.h"

static struct slp_buffer *placed; /* by `next` */

static void unlist(struct slp_buffer *b)
{
	*(b->place.before ? &b->place.before->place.next : &placed) = b->place.next;
	if (b->place.next) b->place.next->place.before = b->place.before;
	b->place.memory = 0;
	b->place.dead = false;
}

#if SLP_STARPU_1_4

/* Whether StarPU has memory for it on the node, and a valid value there. */
static bool is_there(const struct slp_buffer *b, unsigned node, bool *valid)
{
	int allocated = 0, is_valid = 0;
	starpu_data_query_status(b->handle, (int)node, &allocated, &is_valid, NULL);
	*valid = is_valid;
	return allocated;
}

/* A value that main memory has no copy of is copied now.  Tasks may still read it, then StarPU keeps it for a while. */
static void evict(struct slp_buffer *b, unsigned node)
{
	const float pause = 5; /* microseconds */
	bool valid;
	while (is_there(b, node, &valid)) {
		if (valid && !b->place.dead) {
			if (starpu_data_acquire_on_node(b->handle, STARPU_MAIN_RAM, STARPU_R)) return;
			starpu_data_release_on_node(b->handle, STARPU_MAIN_RAM);
		}
		if ((valid && b->place.dead) || starpu_data_evict_from_node(b->handle, node))
			starpu_sleep(1e-6f * pause);
	}
}

void slp_place_leave(struct slp_buffer *b)
{
	if (!b->place.memory) return;
	evict(b, b->place.node);
	unlist(b);
}

void slp_places_leave(unsigned node)
{
	for (struct slp_buffer *b = placed, *next; b; b = next) {
		next = b->place.next;
		if (b->place.node == node) slp_place_leave(b);
	}
}

static void make_room(uintptr_t memory, size_t bytes, unsigned node)
{
	for (struct slp_buffer *b = placed, *next; b; b = next) {
		next = b->place.next;
		if (b->place.node == node && b->place.memory < memory + bytes && memory < b->place.memory + b->bytes)
			slp_place_leave(b);
	}
}

void slp_place_take(struct slp_buffer *b, unsigned node, size_t offset)
{
	uintptr_t memory = slp_arena_base(node) + offset;
	bool stays = b->place.memory == memory && b->place.node == node;
	if (stays && !b->place.dead) return;
	slp_place_leave(b);
	evict(b, node);
	make_room(memory, b->bytes, node);
	b->place.node = node;
	b->place.before = NULL;
	b->place.next = placed;
	if (placed) placed->place.before = b;
	placed = b;
	atomic_store(&b->place.memory, memory);
}

#else

void slp_place_leave(struct slp_buffer *b)
{
	(void)b;
}

void slp_places_leave(unsigned node)
{
	(void)node;
}

void slp_place_take(struct slp_buffer *b, unsigned node, size_t offset)
{
	(void)b, (void)node, (void)offset;
}

#endif

void slp_place_dead(struct slp_buffer *b)
{
	if (b->place.memory) b->place.dead = true;
}

void slp_place_forget(struct slp_buffer *b)
{
	if (b->place.memory) unlist(b);
}

uintptr_t slp_place_get(struct slp_buffer *b, unsigned node)
{
	uintptr_t memory = b ? atomic_load(&b->place.memory) : 0;
	return memory && b->place.node == node ? memory : 0;
}

bool slp_place_put(unsigned node, uintptr_t memory)
{
	return memory >= slp_arena_base(node) && memory < slp_arena_base(node) + slp_arena_bytes(node);
}
