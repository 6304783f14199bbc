/* Places of values in an arena.  A program plans them: a buffer has the memory at its place as long as nothing else is placed
 * there, and StarPU gets that address whenever it needs memory for the buffer on the node.
 *
 * A place is given only after the previous value there has left: its tasks have ended, main memory has a copy if the value is
 * still of use, and StarPU has returned the memory. */
#include <math.h>

#include "config.h"
#include "runtime/compat.h"
#include "runtime/fault.h"
#include "runtime/memory/arena.h"
#include "runtime/memory/place.h"
#include "runtime/memory/pool.h"
#include "runtime/memory/runahead.h"
#include "runtime/observe/watch.h"
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

double slp_place_patience = 300;

/* A wait for a value to leave.  It lasts as long as tasks end; SL_DEADLINE_ERROR limits all of it. */
struct patience {
	double since, end;
	int pending, looks;
};

static struct patience patience_new(void)
{
	double now = sl_time();
	return (struct patience){now, slp_watch_ends ? now + slp_watch_deadline : INFINITY, slp_runahead_pending(), 0};
}

/* Whether to go on; else an error. */
static bool wait_a_while(struct patience *p, const struct slp_buffer *b)
{
	const float pause = 5; /* microseconds */
	double now = sl_time();
	int pending = slp_runahead_pending();
	if (now > p->end) return slp_watch_fail(), false;
	if (pending != p->pending) p->since = now;
	p->pending = pending;
	if (now - p->since <= slp_place_patience) {
		starpu_sleep(1e-6f * pause);
		return true;
	}
	const struct slp_call *call = &slp_current_call;
	slp_call_fail(call->at, call->at ? call->function : "the program", SL_ETIME,
	              "a value of %.1f MiB did not leave the GPU's memory in %g s, in which no task of %d has ended",
	              (double)b->bytes / 1048576, slp_place_patience, pending);
	return false;
}

/* Whether a memory node has memory for it, and its valid value. */
static bool is_there(const struct slp_buffer *b, unsigned node, bool *valid)
{
	int allocated = 0, is_valid = 0;
	starpu_data_query_status(b->handle, (int)node, &allocated, &is_valid, NULL);
	*valid = is_valid;
	return allocated;
}

/* A copy of a value that main memory does not have is requested, now and then: StarPU forgets the request of a value that a
 * task writes meanwhile.  True: no copy is needed, or it is complete. */
static bool is_saved(const struct slp_buffer *b, bool valid, int looks)
{
	enum { AGAIN = 1024 };
	bool copied;
	is_there(b, STARPU_MAIN_RAM, &copied);
	if (!valid || copied) return true;
	if (looks % AGAIN == 0) starpu_data_fetch_on_node(b->handle, STARPU_MAIN_RAM, 1);
	return false;
}

/* Tasks that may still use the value end first.  False with an error. */
static bool evict(struct slp_buffer *b, unsigned node)
{
	struct patience p = patience_new();
	bool valid;
	while (is_there(b, node, &valid)) {
		bool busy = slp_pool_tasks(b) || (valid && b->place.dead);
		if (!busy && is_saved(b, valid, p.looks++) && !starpu_data_evict_from_node(b->handle, node)) continue;
		if (!wait_a_while(&p, b)) return false;
	}
	return true;
}

bool slp_place_leave(struct slp_buffer *b)
{
	if (!b->place.memory) return true;
	if (!evict(b, b->place.node)) return false;
	unlist(b);
	return true;
}

bool slp_places_leave(unsigned node)
{
	bool ok = true;
	for (struct slp_buffer *b = placed, *next; b && ok; b = next) {
		next = b->place.next;
		if (b->place.node == node) ok = slp_place_leave(b);
	}
	return ok;
}

static bool make_room(uintptr_t memory, size_t bytes, unsigned node)
{
	bool ok = true;
	for (struct slp_buffer *b = placed, *next; b && ok; b = next) {
		next = b->place.next;
		if (b->place.node == node && b->place.memory < memory + bytes && memory < b->place.memory + b->bytes)
			ok = slp_place_leave(b);
	}
	return ok;
}

bool slp_place_take(struct slp_buffer *b, unsigned node, size_t offset)
{
	uintptr_t memory = slp_arena_base(node) + offset;
	bool stays = b->place.memory == memory && b->place.node == node;
	if (stays && !b->place.dead) return true;
	if (!slp_place_leave(b) || !evict(b, node) || !make_room(memory, b->bytes, node)) return false;
	b->place.node = node;
	b->place.before = NULL;
	b->place.next = placed;
	if (placed) placed->place.before = b;
	placed = b;
	atomic_store(&b->place.memory, memory);
	return true;
}

#else

bool slp_place_leave(struct slp_buffer *b)
{
	(void)b;
	return true;
}

bool slp_places_leave(unsigned node)
{
	(void)node;
	return true;
}

bool slp_place_take(struct slp_buffer *b, unsigned node, size_t offset)
{
	(void)b, (void)node, (void)offset;
	return true;
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

struct slp_buffer *slp_place_next(const struct slp_buffer *b, unsigned node)
{
	struct slp_buffer *next = b ? b->place.next : placed;
	while (next && (next->place.node != node || next->place.dead)) next = next->place.next;
	return next;
}

bool slp_place_is_away(const struct slp_buffer *b, unsigned node)
{
	if (b->bytes <= SLP_PLACE_SMALL || !slp_arena_bytes(node)) return false;
	return !atomic_load(&b->place.memory) || b->place.node != node;
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
