/* Pools: buffers without a holder.  Each device and size class has a stack of idle buffers and a queue of buffers in
 * flight, which tasks still use. */
#include "runtime/engine.h"
#include "runtime/memory/pool.h"
#include "runtime/task/buffer.h"

#include <string.h>

enum { CLASSES = 576, MIN_BYTES = 64 };

struct pool {
	struct slp_buffer *idle;         /* stack, by `next` */
	struct slp_buffer *first, *last; /* queue of pending ones, by `next` and `before` */
};
static struct pool pools[SLP_POOLS][CLASSES];
static size_t idle_bytes;
static atomic_long in_flight[SLP_POOLS];

/* Size classes: multiples of 64 bytes up to 512, then four steps for each doubling: at most a quarter is wasted.  From 4 MiB
 * to 16 GiB there are 32 steps: little is wasted, and nothing for sizes of common networks, such as 49 MiB. */
enum { FIRST_LOG = 9, FINE_LOG = 22, COARSE_LOG = 34, FIRST = 8, STEPS_LOG = 2, FINE_STEPS_LOG = 5 };
enum { FINE = FIRST + ((FINE_LOG - FIRST_LOG) << STEPS_LOG) };
enum { COARSE = FINE + ((COARSE_LOG - FINE_LOG) << FINE_STEPS_LOG) };

/* A range of doublings: its first class, the logarithms of its first size and of its number of steps. */
struct range {
	int first, log, steps_log;
};
static const struct range ranges[] = {
        {FIRST, FIRST_LOG, STEPS_LOG}, {FINE, FINE_LOG, FINE_STEPS_LOG}, {COARSE, COARSE_LOG, STEPS_LOG}};
enum { RANGES = sizeof ranges / sizeof *ranges };

int slp_pool_class(size_t bytes)
{
	if (bytes <= 512) return bytes <= MIN_BYTES ? 0 : (int)((bytes + 63) / 64) - 1;
	int log = 63 - __builtin_clzll((unsigned long long)(bytes - 1)), i = RANGES - 1;
	while (log < ranges[i].log) i--;
	const struct range *r = &ranges[i];
	int step = (int)((bytes - 1) >> (log - r->steps_log)) & ((1 << r->steps_log) - 1);
	return r->first + ((log - r->log) << r->steps_log) + step;
}

size_t slp_pool_class_bytes(int cls)
{
	if (cls < FIRST) return 64 * (size_t)(cls + 1);
	int i = RANGES - 1;
	while (cls < ranges[i].first) i--;
	const struct range *r = &ranges[i];
	int log = r->log + ((cls - r->first) >> r->steps_log), step = (cls - r->first) & ((1 << r->steps_log) - 1);
	return ((size_t)1 << log) + (size_t)(step + 1) * ((size_t)1 << (log - r->steps_log));
}

/* ---- idle ones --------------------------------------------------------------------------------------------------- */

static void push_idle(struct pool *pool, struct slp_buffer *b)
{
	b->next = pool->idle;
	pool->idle = b;
	idle_bytes += b->bytes;
}

static struct slp_buffer *pop_idle(struct pool *pool)
{
	struct slp_buffer *b = pool->idle;
	if (!b) return NULL;
	pool->idle = b->next;
	idle_bytes -= b->bytes;
	return b;
}

/* ---- pending ones ------------------------------------------------------------------------------------------------ */

/* In a buffer's `pending`: no holder, and its bytes count as in flight until its last task ends.  One word for both:
 * who ends that task must not look at the buffer again, which may be idle, handed out or gone by then. */
enum { IN_FLIGHT = 1 << 30 };

int slp_pool_tasks(const struct slp_buffer *b)
{
	return atomic_load(&b->pending) & ~IN_FLIGHT;
}

bool slp_pool_is_last(const struct slp_buffer *b)
{
	return atomic_load(&b->pending) == (IN_FLIGHT | 1);
}

static void begin_flight(struct slp_buffer *b)
{
	atomic_fetch_add(&in_flight[b->pool], (long)b->bytes);
	if (atomic_fetch_or(&b->pending, IN_FLIGHT)) return;
	atomic_fetch_sub(&in_flight[b->pool], (long)b->bytes); /* the last task has ended meanwhile */
}

static void end_flight(struct slp_buffer *b)
{
	bool counts = atomic_fetch_and(&b->pending, ~IN_FLIGHT) > IN_FLIGHT;
	if (counts) atomic_fetch_sub(&in_flight[b->pool], (long)b->bytes);
}

void slp_pool_task_ended(struct slp_buffer *b)
{
	int pool = b->pool;
	long bytes = (long)b->bytes;
	if (atomic_fetch_sub(&b->pending, 1) == IN_FLIGHT + 1) atomic_fetch_sub(&in_flight[pool], bytes);
}

static void push_pending(struct pool *pool, struct slp_buffer *b)
{
	b->next = NULL;
	b->before = pool->last;
	*(pool->last ? &pool->last->next : &pool->first) = b;
	pool->last = b;
}

static struct slp_buffer *take_pending(struct pool *pool, struct slp_buffer *b)
{
	if (!b) return NULL;
	*(b->before ? &b->before->next : &pool->first) = b->next;
	*(b->next ? &b->next->before : &pool->last) = b->before;
	end_flight(b);
	return b;
}

/* Moves buffers whose tasks have ended from the queue's head to the idle ones. */
static void settle(struct pool *pool)
{
	while (pool->first && slp_pool_tasks(pool->first) == 0) push_idle(pool, take_pending(pool, pool->first));
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

void slp_pool_put(struct slp_buffer *b)
{
	struct pool *pool = &pools[b->pool][b->cls];
	if (slp_pool_tasks(b) == 0) {
		push_idle(pool, b);
		return;
	}
	push_pending(pool, b);
	begin_flight(b);
}

struct slp_buffer *slp_pool_idle(int pool, int cls)
{
	settle(&pools[pool][cls]);
	return pop_idle(&pools[pool][cls]);
}

struct slp_buffer *slp_pool_largest(void)
{
	for (int p = 0; p < SLP_POOLS; p++)
		for (int c = CLASSES - 1; c >= 0; c--)
			if (pools[p][c].idle) return pop_idle(&pools[p][c]);
	return NULL;
}

struct slp_buffer *slp_pool_newest(int pool, int cls)
{
	return take_pending(&pools[pool][cls], pools[pool][cls].last);
}

struct slp_buffer *slp_pool_oldest(int pool, int cls)
{
	return take_pending(&pools[pool][cls], pools[pool][cls].first);
}

void slp_pool_settle(void)
{
	for (int p = 0; p < SLP_POOLS; p++)
		for (int c = 0; c < CLASSES; c++) settle(&pools[p][c]);
}

size_t slp_pool_idle_bytes(void)
{
	return idle_bytes;
}

size_t slp_pool_in_flight(int pool)
{
	long bytes = atomic_load(&in_flight[pool]);
	return bytes > 0 ? (size_t)bytes : 0;
}

size_t slp_pool_bytes(void)
{
	size_t bytes = idle_bytes;
	for (int p = 0; p < SLP_POOLS; p++) bytes += slp_pool_in_flight(p);
	return bytes;
}

void slp_pool_clear(void)
{
	memset(pools, 0, sizeof pools);
	memset(in_flight, 0, sizeof in_flight);
	idle_bytes = 0;
}
