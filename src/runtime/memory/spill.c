/* Values in a file while main memory is too small for all: what tasks and the program hold of them.
 *
 * A task gets all of its values at once before it runs, so tasks never wait for each other's.  spill_order.c decides which
 * values leave and which come, spill_thread.c reads and writes.
 *
 * StarPU's own disks (starpu_disk_register, STARPU_DISK_SWAP) are not used: StarPU ends the program if a disk is full or an
 * access fails, it can move only memory that it has allocated itself, and it chooses by the past. */
#include <stdio.h>
#include <stdlib.h>

#include "alloc.h"
#include "runtime/memory/memory_limit.h"
#include "runtime/memory/pool.h"
#include "runtime/memory/spill.h"
#include "runtime/memory/spill_file.h"
#include "runtime/memory/spill_values.h"
#include "runtime/task/buffer.h"
#include "runtime/task/segment.h"
#include "runtime/uncancelled.h"
#include "starling/base.h"

enum { SMALLEST = 65536 };

/* ---- waiting for values -------------------------------------------------------------------------------------------- */

/* A set of values that are needed together. */
struct set {
	struct slp_spilled **list;
	int count;
	size_t bytes;
};

static bool is_there(const struct set *set)
{
	for (int i = 0; i < set->count; i++)
		if (!set->list[i]->memory || set->list[i]->busy) return false;
	return true;
}

/* A room that nobody has set is no more than a guess: one task may take more while no other runs, if limits allow it once
 * all other values have left. */
static bool may_take_more(const struct set *set)
{
	size_t there = slp_memory_available() + slp_spill.resident;
	return slp_spill.guessed && there >= set->bytes + SLP_MEMORY_BESIDE_MOVABLE;
}

/* Waits until the set fits beside those of other tasks that run.  False: it never will. */
static bool fits(const struct set *set, char *why, size_t size)
{
	while (slp_spill.held && slp_spill.held + set->bytes > slp_spill.room && !slp_spill.broken)
		pthread_cond_wait(&slp_spill.news, &slp_spill.lock);
	if (set->bytes <= slp_spill.room || may_take_more(set)) return true;
	snprintf(why, size,
	         "it uses %zu bytes at once, and spilled values may take %zu of memory (SL_SPILL_MEMORY); %zu are free "
	         "beside %zu of values",
	         set->bytes, slp_spill.room, slp_memory_available(), slp_spill.resident);
	return false;
}

/* Brings the set into memory and holds it. */
static bool hold_set(const struct set *set, char *why, size_t size)
{
	double start = is_there(set) ? 0 : sl_time();
	for (int i = 0; i < set->count; i++) {
		set->list[i]->held++;
		set->list[i]->asked = true;
	}
	while (!is_there(set) && !slp_spill.broken) {
		pthread_cond_signal(&slp_spill.work);
		slp_spill_wait_for_news();
	}
	bool ok = is_there(set);
	if (start > 0) slp_spill.counts.waited += sl_time() - start;
	for (int i = 0; i < set->count; i++) set->list[i]->asked = false;
	if (!ok) snprintf(why, size, "%s", slp_spill.why);
	return ok;
}

static void release_value(struct slp_spilled *s, bool written)
{
	s->dirty |= written;
	s->last = slp_spill.started;
	s->held--;
	pthread_cond_signal(&slp_spill.work);
	pthread_cond_broadcast(&slp_spill.news);
}

/* ---- segments ------------------------------------------------------------------------------------------------------ */

static bool is_written(const struct slp_segment *seg, int buffer)
{
	for (int i = 0; i < seg->nslots; i++)
		if (seg->slots[i].buffer == seg->buffers[buffer] && seg->slots[i].mode & STARPU_W) return true;
	return false;
}

void slp_spill_foresee(struct slp_segment *seg)
{
	if (!slp_spill.on) return;
	pthread_mutex_lock(&slp_spill.lock);
	seg->spill_number = ++slp_spill.submitted;
	for (int i = 0; i < seg->nbuffers; i++)
		if (seg->buffers[i]->spilled) slp_spilled_will_be_used(seg->buffers[i]->spilled, seg->spill_number);
	pthread_cond_signal(&slp_spill.work);
	pthread_mutex_unlock(&slp_spill.lock);
}

/* Those of a segment that are spilled. */
static struct set set_of(const struct slp_segment *seg, struct slp_spilled **list)
{
	struct set set = {.list = list};
	for (int i = 0; i < seg->nbuffers; i++) {
		struct slp_spilled *s = seg->buffers[i]->spilled;
		if (!s) continue;
		if (list) list[set.count] = s;
		set.count++;
		set.bytes += s->bytes;
	}
	return set;
}

static enum sl_status enter(struct slp_segment *seg, const struct set *set, char *why, size_t size)
{
	if (seg->spill_number > slp_spill.started) slp_spill.started = seg->spill_number;
	for (int i = 0; i < set->count; i++) slp_spilled_forget_uses(set->list[i], seg->spill_number);
	if (!fits(set, why, size)) return SL_ENOMEM;
	slp_spill.held += set->bytes;
	seg->spill_held = hold_set(set, why, size);
	slp_spill.running += seg->spill_held;
	if (seg->spill_held) return SL_OK;
	slp_spill.held -= set->bytes;
	for (int i = 0; i < set->count; i++) release_value(set->list[i], false);
	return SL_EIO;
}

enum sl_status slp_spill_enter(struct slp_segment *seg, char *why, size_t size)
{
	if (!slp_spill.on) return SL_OK;
	struct slp_spilled **list = slp_try_malloc((size_t)(seg->nbuffers + 1) * sizeof *list);
	if (!list) return snprintf(why, size, "no memory to bring values back"), SL_ENOMEM;
	struct set set = set_of(seg, list);
	pthread_mutex_lock(&slp_spill.lock);
	enum sl_status s = enter(seg, &set, why, size);
	pthread_mutex_unlock(&slp_spill.lock);
	free(list);
	return s;
}

/* The last task to use values that nobody holds leaves nothing to write. */
void slp_spill_leave(struct slp_segment *seg)
{
	if (!slp_spill.on || !seg->spill_held) return;
	pthread_mutex_lock(&slp_spill.lock);
	slp_spill.held -= set_of(seg, NULL).bytes;
	slp_spill.running--;
	for (int i = 0; i < seg->nbuffers; i++) {
		struct slp_spilled *s = seg->buffers[i]->spilled;
		if (!s) continue;
		release_value(s, is_written(seg, i));
		if (slp_pool_is_last(seg->buffers[i])) s->dirty = s->in_file = false;
	}
	seg->spill_held = false;
	pthread_mutex_unlock(&slp_spill.lock);
}

/* ---- the program's own accesses ------------------------------------------------------------------------------------ */

void *slp_spill_hold(struct slp_buffer *b, char *why, size_t size)
{
	SLP_UNCANCELLED();
	struct set set = {.list = &b->spilled, .count = 1, .bytes = b->spilled->bytes};
	pthread_mutex_lock(&slp_spill.lock);
	bool ok = hold_set(&set, why, size);
	if (!ok) release_value(b->spilled, false);
	pthread_mutex_unlock(&slp_spill.lock);
	return ok ? b->spilled->memory : NULL;
}

void slp_spill_release(struct slp_buffer *b, bool written)
{
	pthread_mutex_lock(&slp_spill.lock);
	release_value(b->spilled, written);
	pthread_mutex_unlock(&slp_spill.lock);
}

void *slp_spill_memory(const struct slp_buffer *b)
{
	return b->spilled->memory;
}

/* ---- buffers ------------------------------------------------------------------------------------------------------- */

size_t slp_spill_room(void)
{
	return slp_spill.on ? slp_spill.room : 0;
}

bool slp_spill_takes(size_t bytes)
{
	return slp_spill.on && bytes >= SMALLEST;
}

bool slp_spill_enlist(struct slp_buffer *b)
{
	struct slp_spilled *s = slp_try_calloc(1, sizeof *s);
	if (!s) return false;
	s->bytes = (b->bytes + SLP_SPILL_PAGE - 1) / SLP_SPILL_PAGE * SLP_SPILL_PAGE;
	s->place = -1;
	b->spilled = s;
	pthread_mutex_lock(&slp_spill.lock);
	s->next = slp_spill.all;
	if (slp_spill.all) slp_spill.all->before = s;
	slp_spill.all = s;
	pthread_mutex_unlock(&slp_spill.lock);
	return true;
}

void slp_spill_discharge(struct slp_buffer *b)
{
	struct slp_spilled *s = b->spilled;
	if (!s) return;
	pthread_mutex_lock(&slp_spill.lock);
	while (s->busy && !slp_spill.stuck) slp_spill_wait_for_news();
	b->spilled = NULL;
	if (s->busy) { /* an access that does not end: it stays */
		pthread_mutex_unlock(&slp_spill.lock);
		return;
	}
	slp_spilled_free(s);
	pthread_mutex_unlock(&slp_spill.lock);
}

void slp_spill_dead(struct slp_buffer *b)
{
	if (!b->spilled) return;
	pthread_mutex_lock(&slp_spill.lock);
	b->spilled->dirty = b->spilled->in_file = false;
	pthread_mutex_unlock(&slp_spill.lock);
}

struct slp_spill_counts slp_spill_counts(void)
{
	pthread_mutex_lock(&slp_spill.lock);
	struct slp_spill_counts counts = slp_spill.counts;
	pthread_mutex_unlock(&slp_spill.lock);
	return counts;
}
