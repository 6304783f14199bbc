/* Scratch memory: the working memory of segments, one piece for each size and worker.
 *
 * If all values are in main memory it is allocated here, for all workers at once; otherwise StarPU allocates it when
 * a task runs.  Calling threads that compute have another piece each, of which one is kept. */
#include <stdlib.h>

#include "alloc.h"
#include "runtime/engine.h"
#include "runtime/memory/memory_limit.h"
#include "runtime/observe/stats.h"
#include "runtime/task/buffer.h"
#include "runtime/task/handle.h"
#include "runtime/task/record.h"

enum { SIZES = 256, LEAST = 4096 };

static struct slp_scratch list[SIZES]; /* by size, as they are made */
static atomic_bool fresh[SIZES];
static int count;

static bool all_own(void)
{
	return slp_buffer_owns_memory() && !slp_engine.nslaves;
}

static long total(const struct slp_scratch *s)
{
	return (long)(s->bytes * (size_t)slp_engine.nteams);
}

static bool make(size_t bytes, struct slp_scratch *s)
{
	s->bytes = bytes;
	if (!all_own()) {
		if (!sl_is_simulated() && !slp_memory_limit_allows(bytes)) return false;
		slp_handle_register_scratch(&s->handle, bytes);
		return true;
	}
	s->memory = bytes <= SIZE_MAX / 2 / (size_t)slp_engine.nteams ? slp_buffer_memory((size_t)total(s)) : NULL;
	if (!s->memory) return false;
	slp_memory_promise(total(s));
	return true;
}

/* Existing scratch that is not much too large. */
static const struct slp_scratch *find(size_t bytes)
{
	for (int i = 0; i < count; i++)
		if (list[i].bytes >= bytes && list[i].bytes <= 2 * bytes) return &list[i];
	return NULL;
}

static size_t class_for(size_t bytes)
{
	return slp_buffer_class_bytes(bytes < LEAST ? LEAST : bytes);
}

size_t slp_scratch_missing(size_t bytes)
{
	return bytes && !find(class_for(bytes)) ? class_for(bytes) * (size_t)slp_engine.nteams : 0;
}

const char *slp_memory_missing_text(size_t bytes, size_t scratch, char text[160])
{
	if (bytes < SLP_LARGE) return NULL;
	slp_lock();
	bytes += slp_scratch_missing(scratch);
	bool fits = slp_buffer_could_be(bytes);
	slp_unlock();
	return fits ? NULL : slp_memory_limit_text(bytes, text);
}

bool slp_scratch_get(size_t bytes, struct slp_scratch *scratch)
{
	*scratch = (struct slp_scratch){0};
	if (!bytes) return true;
	size_t wanted = class_for(bytes);
	const struct slp_scratch *s = find(wanted);
	if (s) *scratch = *s;
	if (s) return true;
	if (count == SIZES || !make(wanted, scratch)) return false;
	atomic_store(&fresh[count], scratch->memory);
	scratch->fresh = &fresh[count];
	list[count++] = *scratch;
	atomic_fetch_add(&slp_counters.scratch, wanted);
	return true;
}

void slp_scratch_used(const struct slp_scratch *s)
{
	if (!s->memory || !atomic_load_explicit(s->fresh, memory_order_relaxed)) return;
	if (atomic_exchange(s->fresh, false)) slp_memory_promise(-total(s));
}

/* ---- of calling threads ------------------------------------------------------------------------------------------ */

struct piece {
	_Alignas(64) size_t bytes;
};

static _Atomic(struct piece *) kept;

void *slp_scratch_take(size_t bytes)
{
	struct piece *p = atomic_exchange(&kept, NULL);
	if (!p || p->bytes < bytes) {
		free(p);
		p = slp_try_aligned_alloc(64, sizeof *p + slp_align(bytes, 64));
		if (p) p->bytes = bytes;
	}
	return p ? p + 1 : NULL;
}

void slp_scratch_give(void *memory)
{
	free(atomic_exchange(&kept, (struct piece *)memory - 1));
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

void slp_scratch_clear(void)
{
	free(atomic_exchange(&kept, NULL));
	for (int i = 0; i < count; i++) {
		slp_scratch_used(&list[i]);
		if (list[i].handle) starpu_data_unregister_no_coherency(list[i].handle);
		if (list[i].memory) starpu_memory_deallocate(STARPU_MAIN_RAM, (size_t)total(&list[i]));
		free(list[i].memory);
	}
	count = 0;
	atomic_store(&slp_counters.scratch, 0);
}
