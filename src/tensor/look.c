/* Values that are read in place, without a copy. */
#include "alloc.h"
#include "runtime/engine.h"
#include "runtime/task/buffer.h"
#include "starling/tensor.h"
#include "tensor/tensor.h"

/* Whether main memory has the values at one place as long as the tensor lives, and no known task writes them. */
static bool can_be_seen(const sl_tensor *t)
{
	const struct slp_buffer *b = t->storage->buffer;
	enum { WRITES = 1 }; /* by the operation that computed it */
	return slp_buffer_owns_memory() && b->memory && !b->lost && !t->var &&
	       atomic_load(&t->storage->version) <= WRITES;
}

/* Waits for the values of t and returns their memory: row-major in main memory, read-only.  NULL without an error if
 * only a copy is possible (sl_read): with GPUs, for adopted memory, for tensors with a gradient attached, such as
 * parameters, for tensors that were written more than once, and for empty ones.  The memory can be read until
 * sl_values_end(t), even after sl_shutdown; call sl_values_end before the tensor is released.  Operations in place on t
 * change it when they run.  A gradient (sl_grad) gets other memory in sl_backward: use sl_detach of it.  Errors are
 * those of sl_read.
 *
 *     const float *y = sl_values(t);
 *     if (y) printf("%g\n", y[0]);
 *     if (y) sl_values_end(t); */
const void *sl_values_at(const char *at, sl_tensor *t)
{
	SLP_CALL("sl_values", at);
	if (slp_trace_refuses(at, "sl_values", t)) return NULL;
	const char *p = slp_host_begin(at, "sl_values", t, false);
	if (!p) return NULL;
	bool seen = sl_tensor_size(t) && can_be_seen(t);
	if (seen) atomic_fetch_add(&t->storage->buffer->seen, 1);
	slp_host_end(t);
	return seen ? p : NULL;
}

/* Ends the use of the memory that sl_values returned.  NULL is ignored. */
void sl_values_end(sl_tensor *t)
{
	if (!t || !t->storage) return;
	slp_lock();
	struct slp_buffer *b = t->storage->generation == slp_engine.generation ? t->storage->buffer : NULL;
	if (b && atomic_load(&b->seen) > 0) atomic_fetch_sub(&b->seen, 1); /* once too often: nothing */
	slp_unlock();
}
