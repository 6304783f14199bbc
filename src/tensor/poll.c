/* Waiting for a limited time: for front ends whose users may interrupt a wait. */
#include <stdlib.h>

#include "runtime/device/idle.h"
#include "runtime/engine.h"
#include "runtime/task/buffer.h"
#include "runtime/task/storage.h"
#include "tensor/tensor.h"

/* A request to StarPU to report that values are computed.  The caller and StarPU's callback hold it. */
struct question {
	atomic_int refs;
	atomic_bool answered;
	starpu_data_handle_t handle;
};

static void let_go(struct question *q)
{
	if (atomic_fetch_sub(&q->refs, 1) == 1) free(q);
}

static void answer(void *arg)
{
	struct question *q = arg;
	starpu_data_release_on_node(q->handle, STARPU_ACQUIRE_NO_NODE);
	slp_idle_wake();
	atomic_store(&q->answered, true);
	let_go(q);
}

/* NULL: without memory, or StarPU does not take the question. */
static struct question *ask(const struct slp_buffer *b, enum starpu_data_access_mode mode)
{
	struct question *q = slp_try_malloc(sizeof *q);
	if (!q) return NULL;
	atomic_init(&q->refs, 2);
	atomic_init(&q->answered, false);
	q->handle = b->handle;
	if (starpu_data_acquire_on_node_cb(b->handle, STARPU_ACQUIRE_NO_NODE, mode, answer, q) == 0) return q;
	free(q);
	return NULL;
}

bool slp_buffer_poll(struct slp_buffer *b, enum starpu_data_access_mode mode, double seconds)
{
	if (!atomic_load_explicit(&b->pending, memory_order_acquire)) return true;
	struct question *q = ask(b, mode);
	if (!q) return true;
	double end = sl_time() + seconds;
	atomic_fetch_add(&b->waiters, 1); /* the workers that end tasks of the buffer give way */
	for (int look = 0; !atomic_load(&q->answered) && sl_time() < end; look++) slp_idle_between_looks(look);
	atomic_fetch_sub(&b->waiters, 1);
	bool there = atomic_load(&q->answered);
	let_go(q);
	return there;
}

/* Waits until the values of t are computed, or with t NULL until all earlier calls are, but at most `seconds`.  True if
 * they are, so that sl_wait, sl_read or sl_wait_all will not wait; also if these would report an error at once, and in
 * simulation.  False after `seconds`.  For programs that check for signals or other events meanwhile.
 *
 *     while (!sl_poll(y, 0.05))
 *             if (interrupted) return 1; */
bool sl_poll_at(const char *at, sl_tensor *t, double seconds)
{
	SLP_CALL("sl_poll", at);
	if (!sl_is_initialized() || sl_is_simulated()) return true;
	if (!t) return slp_engine_poll(seconds);
	struct slp_storage *s = t->storage; /* sl_backward in another thread may give a gradient another one */
	if (!s || s->generation != slp_engine.generation) return true;
	slp_lock();
	slp_storage_materialize(s);
	struct slp_buffer *b = s->buffer;
	slp_unlock();
	return !b || slp_buffer_poll(b, STARPU_R, seconds);
}
