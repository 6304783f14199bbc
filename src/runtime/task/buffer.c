/* Buffers: StarPU data handles with their memory, recycled through pools (pool.c).
 *
 * Registering a handle costs several times as much as a task, so no handle is unregistered while the engine runs and
 * memory is not short.  A buffer that tasks still use may be used again: StarPU makes its next writer wait for
 * them.  That bounds memory, but it also makes independent tasks wait for each other.  So it is done only once
 * enough bytes are in flight, or if a single worker runs all tasks anyway: then the last used buffer is still in its
 * caches.  If there is none to use again, a new one is made, until as much is in flight as the program itself held
 * at its peak; then submission waits.  All this is counted for each device: none waits for another one's tasks.  Where
 * several workers share a device (`auto`, `cpu`, `gpu`), each may have as much in flight as the program held at its
 * peak, up to a quarter of the memory: the shards of a batch run side by side only if each has buffers of its own.
 *
 * Without GPUs all values are in main memory, which is allocated here: StarPU would repeat a refused allocation for
 * ever. */
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "runtime/device/device.h"
#include "runtime/engine.h"
#include "runtime/fault.h"
#include "runtime/memory/admission.h"
#include "runtime/memory/memory_limit.h"
#include "runtime/memory/place.h"
#include "runtime/memory/pool.h"
#include "runtime/memory/runahead.h"
#include "runtime/memory/spill.h"
#include "runtime/observe/stats.h"
#include "runtime/task/buffer.h"
#include "runtime/task/handle.h"

enum {
	MIN_PROMISE = 65536,
	WARM = 256 << 10,                           /* it pays to find so many in a cache */
	HANDLE_BYTES = 1024 * (STARPU_MAXNODES + 4) /* 18.4 KiB with 32 nodes are needed */
};

static struct slp_buffer *reserve; /* by `next`: for segments that must not fail any more */
static int nreserve;
static struct slp_buffer *everything; /* all buffers, by `older` and `newer` */
static struct slp_buffer *retiring;   /* adopted memory without a holder */
static atomic_int retiring_count;
/* Bytes that the program holds, on each device. */
static struct account {
	size_t held, most_held;
} accounts[SLP_POOLS];

size_t slp_buffer_class_bytes(size_t bytes)
{
	return slp_pool_class_bytes(slp_pool_class(bytes));
}

static void enlist(struct slp_buffer *b)
{
	b->older = everything;
	if (everything) everything->newer = b;
	everything = b;
	slp_stats_bytes((long)b->bytes);
	atomic_fetch_add(&slp_counters.handles, 1);
}

static void give_memory(void *memory, size_t bytes)
{
	if (memory) starpu_memory_deallocate(STARPU_MAIN_RAM, bytes);
	free(memory);
}

static void discard(struct slp_buffer *b)
{
	slp_buffer_written(b);
	slp_place_forget(b);
	slp_spill_discharge(b);
	if (!atomic_load(&b->seen)) give_memory(b->memory, b->bytes);
	*(b->newer ? &b->newer->older : &everything) = b->older;
	if (b->older) b->older->newer = b->newer;
	slp_stats_bytes(-(long)b->bytes);
	atomic_fetch_sub(&slp_counters.handles, 1);
	free(b);
}

static void unregister(struct slp_buffer *b)
{
	starpu_data_unregister_no_coherency(b->handle);
	discard(b);
}

/* Frees idle buffers, the largest first, until this much is left. */
static void shrink(size_t keep)
{
	for (struct slp_buffer *b; slp_pool_idle_bytes() > keep && (b = slp_pool_largest());) unregister(b);
}

/* Releases idle memory of sizes that are no longer requested, if it is both large and a considerable part of all. */
static void trim(size_t wanted)
{
	size_t all = atomic_load(&slp_counters.bytes), keep = ((size_t)64 << 20) + all / 4;
	if (slp_pool_idle_bytes() + wanted > keep) shrink(keep / 2);
}

/* ---- main memory ------------------------------------------------------------------------------------------------- */

bool slp_buffer_owns_memory(void)
{
	return !slp_engine.ngpus && !sl_is_simulated();
}

/* Releases unneeded memory, then waits for tasks; false: no memory to release, no task in flight. */
static bool make_room(size_t bytes)
{
	slp_pool_settle();
	size_t idle = slp_pool_idle_bytes();
	if (!idle) return slp_runahead_wait_progress();
	shrink(idle > bytes ? idle - bytes : 0);
	slp_heap_trim();
	return true;
}

static void *get_memory(size_t bytes)
{
	/* Of small ones the handle takes most.  For large ones alloc.c asks. */
	if (bytes < SLP_MEMORY_LARGE && !slp_memory_limit_allows(bytes + HANDLE_BYTES)) return NULL;
	if (starpu_memory_allocate(STARPU_MAIN_RAM, bytes, 0)) return NULL; /* STARPU_LIMIT_CPU_MEM */
	void *memory = slp_try_aligned_alloc(64, bytes);
	if (!memory) starpu_memory_deallocate(STARPU_MAIN_RAM, bytes);
	return memory;
}

bool slp_buffer_could_be(size_t bytes)
{
	return !slp_buffer_owns_memory() || slp_spill_takes(bytes) ||
	       slp_memory_limit_could_allow(bytes, slp_pool_bytes());
}

/* Waiting helps only as far as tasks can release memory. */
void *slp_buffer_memory(size_t bytes)
{
	void *memory = get_memory(bytes);
	if (!memory && !slp_buffer_could_be(bytes)) return NULL;
	while (!memory && make_room(bytes)) memory = get_memory(bytes);
	if (memory) return memory;
	slp_heap_trim();
	return get_memory(bytes);
}

/* With GPUs, StarPU allocates memory when a task runs; a buffer that fits nowhere would never get it. */
static bool could_be(size_t bytes, sl_device device)
{
	if (sl_is_simulated()) return true;
	bool fits =
	        slp_memory_limit_allows(bytes); /* admission.c checks GPUs; a task that it refuses uses main memory */
	for (int i = 0; !fits && device.kind != SL_DEVICE_CPU && i < slp_engine.ngpus; i++) {
		starpu_ssize_t all =
		        starpu_memory_get_total(starpu_worker_get_memory_node((unsigned)slp_engine.gpu_worker[i]));
		fits = all <= 0 || (size_t)all >= bytes;
	}
	return fits;
}

/* Memory for a buffer, NULL where StarPU asks for it; false if there is none. */
static bool find_memory(size_t bytes, sl_device device, void **memory)
{
	bool own = slp_buffer_owns_memory() && !slp_spill_takes(bytes);
	*memory = own ? slp_buffer_memory(bytes) : NULL;
	return own ? *memory != NULL : slp_spill_takes(bytes) || could_be(bytes, device);
}

/* ---- room for handles -------------------------------------------------------------------------------------------- */

/* StarPU ends the program if there is no memory for a handle: an array for its nodes, many small pieces, and at times a
 * larger table of handles.  At a limit's end a small piece may cost a page, and one large piece, once given back, may
 * hold none of them. */
static void *handle_pieces(void)
{
	return slp_try_pieces(HANDLE_BYTES, 2 * STARPU_MAXNODES + 8, 64);
}

static bool handle_fits(void)
{
	void *pieces = handle_pieces();
	slp_free_pieces(pieces);
	return pieces;
}

/* Buffers without a holder make room for it. */
static void *handle_room(void)
{
	void *pieces;
	do pieces = handle_pieces();
	while (!pieces && make_room(HANDLE_BYTES));
	if (!pieces) slp_no_memory(HANDLE_BYTES);
	return pieces;
}

/* ---- making them ------------------------------------------------------------------------------------------------- */

/* Makes reserved buffers, each with memory for a handle, until there are n. */
bool slp_buffer_reserve(int n)
{
	while (nreserve < n) {
		struct slp_buffer *b = slp_calloc(1, sizeof *b);
		if (!b || !(b->memory = handle_room())) {
			free(b);
			return false;
		}
		b->next = reserve;
		reserve = b;
		nreserve++;
	}
	return true;
}

/* Its handle must be registered at once. */
static struct slp_buffer *take_reserved(void)
{
	struct slp_buffer *b = reserve;
	reserve = b->next;
	b->next = NULL;
	slp_free_pieces(b->memory);
	b->memory = NULL;
	nreserve--;
	return b;
}

static void free_reserve(void)
{
	while (nreserve) free(take_reserved());
}

static void enter(size_t bytes, void *data, struct slp_buffer *b)
{
	b->bytes = bytes;
	slp_handle_register(b, data);
	enlist(b);
}

/* It only carries a fault, which the segment sets; like adopted memory, it is not handed out again. */
static struct slp_buffer *create_lost(void)
{
	struct slp_buffer *b = take_reserved();
	enter(1, &b->nothing, b);
	b->adopted = &b->nothing;
	b->lost = true;
	return b;
}

static struct slp_buffer *create_pooled(sl_device device, int cls, bool reserved)
{
	size_t bytes = slp_pool_class_bytes(cls);
	void *memory;
	trim(bytes);
	if (!find_memory(bytes, device, &memory)) return reserved ? create_lost() : NULL;
	struct slp_buffer *b = reserved ? take_reserved() : handle_fits() ? slp_calloc(1, sizeof *b) : NULL;
	if (!b) {
		give_memory(memory, bytes);
		return NULL;
	}
	b->bytes = bytes;
	bool spilled = slp_spill_takes(bytes);
	if (spilled && !slp_spill_enlist(b)) {
		free(b);
		return reserved ? create_lost() : NULL;
	}
	enter(bytes, spilled ? b : memory, b); /* StarPU keeps the order of its users, whatever its address */
	b->pool = slp_device_pool(device);
	b->cls = cls;
	b->memory = memory;
	if (!memory || bytes < MIN_PROMISE) return b;
	atomic_store(&b->fresh, true);
	slp_memory_promise((long)bytes);
	return b;
}

static struct {
	bool grows;    /* with the program's memory: SL_RUNAHEAD_BYTES is not set */
	size_t memory; /* a quarter of the least device's */
} limit;

static size_t least_memory(void)
{
	enum { SIMULATED = 64 }; /* GiB of main memory, which descriptions leave out */
	size_t least = sl_is_simulated() ? (size_t)SIMULATED << 30 : slp_memory_available();
	for (int i = 0; i < slp_engine.ngpus; i++) {
		unsigned node = starpu_worker_get_memory_node((unsigned)slp_engine.gpu_worker[i]);
		starpu_ssize_t all = starpu_memory_get_total(node);
		if (all > 0 && (size_t)all < least) least = (size_t)all;
	}
	return least;
}

void slp_buffer_start(bool grows)
{
	limit.grows = grows;
	limit.memory = grows ? least_memory() / 4 : 0;
}

/* Bytes that may be in flight before buffers are used again that tasks still use. */
static size_t room_of(int p)
{
	size_t workers = (size_t)slp_pool_workers(p), room = slp_engine.config.runahead_bytes * workers;
	if (workers < 2 || !limit.grows) return room;
	size_t more = accounts[p].most_held > limit.memory / workers ? limit.memory : accounts[p].most_held * workers;
	return more > room ? more : room;
}

static bool exceeds(int p, size_t bytes, size_t room)
{
	size_t in_flight = slp_pool_in_flight(p);
	return in_flight > 0 && in_flight + bytes > room;
}

/* Waits until tasks of the device release enough memory, or a buffer that fits. */
static struct slp_buffer *wait_for_room(int p, int cls, size_t room)
{
	struct slp_buffer *b = NULL;
	if (room < accounts[p].most_held) room = accounts[p].most_held;
	while (!b && exceeds(p, slp_pool_class_bytes(cls), room) && slp_runahead_wait_progress())
		b = slp_pool_idle(p, cls);
	return b;
}

/* One that tasks still use; NULL: there is none, or a new one is better. */
static struct slp_buffer *find_pending(int p, int cls, bool full)
{
	bool alone = slp_engine.nworkers == 1 && slp_pool_class_bytes(cls) >= WARM;
	return alone ? slp_pool_newest(p, cls) : full ? slp_pool_oldest(p, cls) : NULL;
}

/* One that is available without making a new one. */
static struct slp_buffer *find(int p, int cls, bool idle)
{
	struct slp_buffer *b = slp_pool_idle(p, cls);
	size_t room = room_of(p);
	bool full = exceeds(p, slp_pool_class_bytes(cls), room);
	if (!b && !idle) b = find_pending(p, cls, full);
	if (!b && full) b = wait_for_room(p, cls, room);
	if (b) SLP_COUNT(recycled);
	return b;
}

/* A buffer of at least `bytes` on a device. */
struct slp_buffer *slp_buffer_get(size_t bytes, sl_device device, enum slp_buffer_kind kind)
{
	int cls = slp_pool_class(bytes), p = slp_device_pool(device);
	struct slp_buffer *b = find(p, cls, kind == SLP_BUFFER_IDLE);
	if (!b) b = create_pooled(device, cls, kind == SLP_BUFFER_RESERVED);
	if (!b || b->lost) return b;
	if (b->place.dead && !slp_place_leave(b)) /* before it is written again */
		return kind == SLP_BUFFER_RESERVED ? create_lost() : NULL;
	if (!slp_pool_tasks(b)) slp_spill_dead(b);
	struct account *a = &accounts[p];
	a->held += b->bytes;
	if (a->most_held < a->held) a->most_held = a->held;
	return b;
}

/* A buffer over the caller's memory, which is used in place as main memory's copy. */
struct slp_buffer *slp_buffer_adopt(void *data, size_t bytes)
{
	struct slp_buffer *b = handle_fits() ? slp_calloc(1, sizeof *b) : NULL;
	if (!b) return NULL;
	enter(bytes, data, b);
	b->adopted = data;
	return b;
}

/* Else StarPU would evict data that nothing will read. */
void slp_buffer_dead(struct slp_buffer *b)
{
	if (b->lost || b->adopted || atomic_load(&b->seen) || !slp_admission_short()) return;
	starpu_data_invalidate_submit(b->handle);
	slp_place_dead(b);
}

#if SLP_STARPU_1_4
void slp_buffers_leave(unsigned node)
{
	for (struct slp_buffer *b = everything; b; b = b->older)
		if (!b->lost) starpu_data_evict_from_node(b->handle, node);
}
#else
void slp_buffers_leave(unsigned node)
{
	(void)node;
}
#endif

/* The last reference to the buffer is gone. */
void slp_buffer_put(struct slp_buffer *b)
{
	if (b->adopted) {
		b->next = retiring;
		retiring = b;
		atomic_fetch_add(&retiring_count, 1);
		return;
	}
	accounts[b->pool].held -= b->bytes;
	atomic_store_explicit(&b->readers, 0, memory_order_relaxed);
	slp_pool_put(b);
}

/* Only who holds the lock writes these two. */
uint32_t slp_buffer_use(struct slp_buffer *b, bool write)
{
	uint32_t version = atomic_load_explicit(&b->version, memory_order_relaxed) + write;
	uint64_t asked = atomic_load_explicit(&b->asked, memory_order_relaxed), bit = UINT64_C(1) << version % 64;
	atomic_store_explicit(&b->version, version, memory_order_relaxed);
	atomic_store_explicit(&b->asked, write ? asked & ~bit : asked | bit, memory_order_relaxed);
	return version;
}

/* Where memory is short StarPU may leave it at that; then they fetch the values when they need them.  Programs with a limit
 * of memory fetch what has no place when they give it one. */
void slp_buffer_send(struct slp_buffer *b, uint32_t version, int priority)
{
	uint64_t nodes = atomic_load_explicit(&b->readers, memory_order_relaxed);
	if (!nodes) return;
	bool asked = atomic_load_explicit(&b->asked, memory_order_relaxed) >> version % 64 & 1;
	if (!asked && version != atomic_load_explicit(&b->version, memory_order_relaxed)) return;
	for (unsigned node = 0; nodes; node++, nodes >>= 1)
		if (nodes & 1 && !slp_place_is_away(b, node))
			starpu_data_prefetch_on_node_prio(b->handle, node, 1, priority);
}

void slp_buffer_written(struct slp_buffer *b)
{
	if (!atomic_load_explicit(&b->fresh, memory_order_relaxed)) return;
	if (atomic_exchange(&b->fresh, false)) slp_memory_promise(-(long)b->bytes);
}

void slp_buffer_done(struct slp_buffer *b)
{
	if (!atomic_load_explicit(&b->fault, memory_order_relaxed)) slp_buffer_written(b);
	slp_pool_task_ended(b);
}

/* Brings adopted memory up to date and hands it back. */
static void retire(struct slp_buffer *b)
{
	starpu_data_unregister(b->handle);
	if (b->release) b->release(b->adopted, b->release_arg);
	slp_lock();
	discard(b);
	slp_unlock();
}

/* Takes one that no task uses, or any, off the list. */
static struct slp_buffer *next_retiring(bool all)
{
	slp_lock();
	struct slp_buffer **p = &retiring, *b;
	while ((b = *p) && !all && slp_pool_tasks(b)) p = &b->next;
	if (b) *p = b->next;
	slp_unlock();
	return b;
}

void slp_buffer_reap(bool all)
{
	if (!retiring_count) return;
	for (struct slp_buffer *b; (b = next_retiring(all));) {
		atomic_fetch_sub(&retiring_count, 1);
		retire(b);
	}
}

/* Returns all adopted memory, including live tensors'; no task is left. */
void slp_buffer_retire(void)
{
	slp_buffer_reap(true);
	slp_lock();
	for (struct slp_buffer *b = everything; b; b = b->older)
		if (b->adopted) slp_buffer_put(b);
	slp_unlock();
	slp_buffer_reap(true);
}

/* Unregisters all remaining buffers, including live tensors'; no task is left. */
void slp_buffer_clear(void)
{
	while (everything) {
		starpu_data_unregister_no_coherency(everything->handle);
		discard(everything);
	}
	free_reserve();
	slp_pool_clear();
	memset(accounts, 0, sizeof accounts);
}
