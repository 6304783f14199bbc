/* Values: waiting for them, reading, writing, taking over memory. */
#include <math.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "runtime/device/auto.h"
#include "runtime/device/device.h"
#include "runtime/device/idle.h"
#include "runtime/engine.h"
#include "runtime/fault.h"
#include "runtime/memory/admission.h"
#include "runtime/memory/memory_limit.h"
#include "runtime/memory/spill.h"
#include "runtime/observe/explain.h"
#include "runtime/observe/fxt.h"
#include "runtime/observe/watch.h"
#include "runtime/simulation/simulate.h"
#include "runtime/task/buffer.h"
#include "runtime/task/storage.h"
#include "runtime/uncancelled.h"
#include "tensor/tensor.h"

static void pause_briefly(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Waiting in the kernel costs tens of microseconds: small work is waited for awake first, then letting others run.  Not
 * on a worker's core: who sleeps there wakes up on another one if any is free. */
static void spin_until_idle(const struct slp_buffer *b)
{
	enum { AWAKE = 64, YIELDING = 256 };
	for (int i = 0; i < AWAKE + YIELDING && atomic_load_explicit(&b->pending, memory_order_acquire); i++) {
		if (i < AWAKE) pause_briefly();
		else if (slp_wait_beside_worker()) break;
		else sched_yield();
	}
}

/* Whether StarPU will hand the buffer over before the deadline, if that ends waits; else an error. */
static bool comes_in_time(struct slp_buffer *b, enum starpu_data_access_mode mode)
{
	if (!slp_watch_ends || slp_buffer_poll(b, mode, slp_watch_deadline)) return true;
	slp_watch_fail();
	return false;
}

/* Sleeps until StarPU hands it over; false: it does not, or not in time, which is an error then. */
static bool sleep_until_acquired(struct slp_buffer *b, int node, enum starpu_data_access_mode mode)
{
	SLP_UNCANCELLED();
	struct slp_wait wait;
	bool watched = slp_watch_deadline > 0;
	if (watched) slp_watch_wait(&wait);
	bool ok = comes_in_time(b, mode) && starpu_data_acquire_on_node(b->handle, node, mode) == 0;
	if (watched) slp_watch_wait_over(&wait);
	return ok;
}

/* While it waits, the workers that end tasks of the buffer give way (segment.c). */
static bool acquire(struct slp_buffer *b, int node, enum starpu_data_access_mode mode)
{
	double since = slp_fxt_on ? sl_time() : 0;
	atomic_fetch_add(&b->waiters, 1);
	spin_until_idle(b);
	bool ok = sleep_until_acquired(b, node, mode);
	atomic_fetch_sub(&b->waiters, 1);
	if (slp_fxt_on) slp_fxt_waited("a value", since);
	return ok;
}

static void release(struct slp_buffer *b, int node)
{
	slp_buffer_written(b);
	starpu_data_release_on_node(b->handle, node);
	slp_idle_wake();
}

/* False, with an error: not in time. */
static bool wait_for(struct slp_buffer *b)
{
	double since = slp_fxt_on ? sl_time() : 0;
	atomic_fetch_add(&b->waiters, 1);
	spin_until_idle(b);
	bool pending = atomic_load(&b->pending);
	bool ok = !pending || sleep_until_acquired(b, STARPU_ACQUIRE_NO_NODE, STARPU_R);
	if (pending && ok) release(b, STARPU_ACQUIRE_NO_NODE);
	atomic_fetch_sub(&b->waiters, 1);
	if (slp_fxt_on) slp_fxt_waited("a value", since);
	return ok;
}

static bool is_whole(const sl_tensor *t)
{
	return t->offset == 0 && sl_tensor_bytes(t) == t->storage->bytes;
}

/* Memory that there was not, and that there may be now. */
static void find_lost_again(struct slp_storage *s)
{
	struct slp_buffer *b =
	        s->buffer && s->buffer->lost ? slp_buffer_get(s->bytes, s->device, SLP_BUFFER_IDLE) : NULL;
	if (!b) return;
	slp_storage_forget(s);
	s->buffer = b;
}

/* write: how its values were computed will not matter any more. */
static struct slp_buffer *buffer_of(sl_tensor *t, bool write)
{
	struct slp_storage *s = t->storage; /* sl_backward in another thread may give a gradient another one */
	slp_lock();
	slp_storage_materialize(s);
	if (write) slp_explain_forget(s);
	if (write && is_whole(t)) find_lost_again(s);
	struct slp_buffer *b = s->buffer;
	slp_unlock();
	return b;
}

/* Which buffers this thread holds, of which tensors: a tensor's may be another one when it is given back. */
enum { MOST_HELD = 8 };
static _Thread_local struct {
	const sl_tensor *tensor;
	struct slp_buffer *buffer;
	bool written;
} held[MOST_HELD];
static _Thread_local int nheld;

static void hold(const sl_tensor *t, struct slp_buffer *b, bool written)
{
	if (nheld < MOST_HELD) held[nheld].tensor = t, held[nheld].buffer = b, held[nheld].written = written;
	nheld++;
}

static struct slp_buffer *give_up(const sl_tensor *t, bool *written)
{
	int i = (nheld < MOST_HELD ? nheld : MOST_HELD) - 1;
	while (i >= 0 && held[i].tensor != t) i--;
	nheld--;
	*written = i < 0 || held[i].written;
	if (i < 0) return t->storage->buffer;
	struct slp_buffer *b = held[i].buffer;
	for (; i < nheld && i < MOST_HELD - 1; i++) held[i] = held[i + 1];
	return b;
}

/* Its values in main memory, until release_memory; NULL with an error. */
static char *memory_of(const char *at, const char *function, struct slp_buffer *b)
{
	char why[320];
	if (!b->spilled) return starpu_data_handle_to_pointer(b->handle, STARPU_MAIN_RAM);
	char *p = slp_spill_hold(b, why, sizeof why);
	if (!p) slp_call_fail(at, function, SL_EIO, "%s", why);
	return p;
}

static void release_memory(struct slp_buffer *b, bool written)
{
	if (b->spilled) slp_spill_release(b, written);
	release(b, STARPU_MAIN_RAM);
}

void *slp_host_begin(const char *at, const char *function, sl_tensor *t, bool write)
{
	if (!slp_tensor_usable(at, function, t)) return NULL;
	struct slp_buffer *b = buffer_of(t, write);
	if (!b) return slp_call_fail(at, function, SL_EINTERNAL, "the tensor has no values");
	if (!acquire(b, STARPU_MAIN_RAM, write ? STARPU_RW : STARPU_R))
		return slp_call_fail(at, function, SL_EINTERNAL, "StarPU did not hand over the values");
	char *p = memory_of(at, function, b);
	if (!p) {
		release(b, STARPU_MAIN_RAM);
		return NULL;
	}
	slp_simulate_access(b, p, write);
	if (write && is_whole(t) && !b->lost) atomic_store(&b->fault, 0); /* spoilt values will be gone */
	uint32_t fault = atomic_load(&b->fault);
	if (fault) {
		release_memory(b, false);
		slp_fault_report(fault);
		return NULL;
	}
	if (write) atomic_fetch_add(&t->storage->version, 1);
	hold(t, b, write);
	return p + t->offset;
}

void slp_host_end(sl_tensor *t)
{
	bool written;
	struct slp_buffer *b = give_up(t, &written);
	release_memory(b, written);
}

bool slp_host_wait(const char *at, const char *function, sl_tensor *t)
{
	bool ok = slp_host_begin(at, function, t, false) != NULL;
	if (ok) slp_host_end(t);
	return ok;
}

bool slp_host_copy(const char *at, const char *function, sl_tensor *to, sl_tensor *from)
{
	char *values = slp_host_begin(at, function, from, false),
	     *p = values ? slp_host_begin(at, function, to, true) : NULL;
	if (p) memcpy(p, values, sl_tensor_bytes(to));
	if (p) slp_host_end(to);
	if (values) slp_host_end(from);
	return p != NULL;
}

/* Ends a call that waited: errors, now or before, are reported here. */
static enum sl_status end_sync(void)
{
	return sl_error() == SL_OK ? SL_OK : slp_error_take();
}

/* Waits until the values of t are computed, on whatever device. Returns the first error: an earlier mistake, or the
 * error that spoilt the values.
 *
 *     if (sl_wait(y) != SL_OK) fprintf(stderr, "%s\n", sl_error_message()); */
enum sl_status sl_wait_at(const char *at, sl_tensor *t)
{
	SLP_CALL("sl_wait", at);
	if (!slp_tensor_usable(at, "sl_wait", t)) return slp_error_take();
	struct slp_buffer *b = buffer_of(t, false);
	if (!wait_for(b)) return end_sync();
	slp_simulate_access(b, NULL, false);
	uint32_t fault = atomic_load(&b->fault);
	if (fault) slp_fault_report(fault);
	return end_sync();
}

static bool size_fits(const char *at, const char *function, const sl_tensor *t, size_t bytes)
{
	if (!t || t->symbol || bytes == sl_tensor_bytes(t)) return true;
	char text[160];
	slp_call_fail(at, function, SL_EINVAL, "the tensor is %s, %zu bytes, but %zu were given",
	              slp_type_string(&t->type, text), sl_tensor_bytes(t), bytes);
	return false;
}

static bool is_given(const char *at, const char *function, const void *data, size_t bytes)
{
	if (data || !bytes) return true;
	slp_call_fail(at, function, SL_EINVAL, "data is NULL");
	return false;
}

/* Waits for the values of t and copies them to data, row-major; bytes must be sl_tensor_bytes(t) (SL_EINVAL).  The
 * counterpart of asnumpy(). Returns the first error: an earlier mistake, or the error that spoilt the values.  Valid
 * values are copied even after an earlier mistake.
 *
 *     float y[6];
 *     enum sl_status s = sl_read(t, y, sizeof y); */
enum sl_status sl_read_at(const char *at, sl_tensor *t, void *data, size_t bytes)
{
	SLP_CALL("sl_read", at);
	if (slp_trace_refuses(at, "sl_read", t)) return slp_error_take();
	if (!size_fits(at, "sl_read", t, bytes) || !is_given(at, "sl_read", data, bytes)) return slp_error_take();
	void *p = slp_host_begin(at, "sl_read", t, false);
	if (!p) return slp_error_take();
	if (bytes) memcpy(data, p, bytes);
	slp_host_end(t);
	return end_sync();
}

/* Waits until no operation uses the values of t and replaces them by those at data, row-major; the caller keeps data;
 * bytes must be sl_tensor_bytes(t) (SL_EINVAL).  Values that an error had spoilt are valid again, unless t is a view of
 * a part.  Returns the first error, like sl_read. */
enum sl_status sl_write_at(const char *at, sl_tensor *t, const void *data, size_t bytes)
{
	SLP_CALL("sl_write", at);
	if (slp_trace_refuses(at, "sl_write", t)) return slp_error_take();
	if (!size_fits(at, "sl_write", t, bytes) || !is_given(at, "sl_write", data, bytes)) return slp_error_take();
	void *p = slp_host_begin(at, "sl_write", t, true);
	if (!p) return slp_error_take();
	if (bytes) memcpy(p, data, bytes);
	slp_host_end(t);
	return end_sync();
}

/* Waits for the value of a tensor with one element (else SL_ESHAPE) and returns it. The counterpart of asscalar(). NAN
 * after an error, which sl_error() and the next function that waits still report. */
double sl_item_at(const char *at, sl_tensor *t)
{
	SLP_CALL("sl_item", at);
	if (slp_trace_refuses(at, "sl_item", t)) return NAN;
	if (t && !t->symbol && sl_tensor_size(t) != 1) {
		char text[160];
		slp_call_fail(at, "sl_item", SL_ESHAPE,
		              "the tensor is %s; only one with a single element has a scalar value",
		              slp_type_string(&t->type, text));
		return NAN;
	}
	const void *p = slp_host_begin(at, "sl_item", t, false);
	if (!p) return NAN;
	double v = slp_get(&(struct slp_view){(void *)p, t->type}, 0);
	slp_host_end(t);
	return v;
}

/* ---- from memory ------------------------------------------------------------------------------------------------- */

static bool make_valid(const char *at, const char *function, const void *data, sl_shape shape, struct sl_make *make)
{
	if (slp_engine_need(at) != SL_OK) return false;
	make->dtype = slp_dtype_or(make->dtype, SL_FLOAT32);
	if ((unsigned)make->dtype >= SL_DTYPE_COUNT) {
		slp_call_fail(at, function, SL_EDTYPE, "%d is not a data type", (int)make->dtype);
		return false;
	}
	if (!slp_shape_valid(shape)) {
		char text[128];
		slp_call_fail(at, function, SL_ESHAPE, "%s is not a shape: up to %d axes, none negative, within memory",
		              sl_shape_string(shape, text), SL_MAX_NDIM);
		return false;
	}
	if (!data && sl_shape_size(shape)) {
		slp_call_fail(at, function, SL_EINVAL, "data is NULL");
		return false;
	}
	return slp_device_resolve(at, &make->device) == SL_OK;
}

/* A tensor over a buffer, which is given back if there is no memory for it. */
static sl_tensor *tensor_on(struct slp_buffer *b, size_t bytes, struct slp_type type, sl_device device)
{
	slp_lock();
	struct slp_storage *storage = slp_storage_new(bytes, device);
	if (storage) storage->buffer = b;
	else slp_buffer_put(b);
	slp_unlock();
	return storage ? slp_tensor_new(storage, 0, type, device) : NULL;
}

void slp_tensor_send(const sl_tensor *t)
{
	sl_device there = slp_auto_foreseen(t->device);
	const struct slp_buffer *b = t->storage ? t->storage->buffer : NULL;
	if (there.kind != SL_DEVICE_GPU || there.index < 0 || !b || b->lost) return;
	if (!starpu_get_prefetch_flag() || slp_admission_short()) return;
	unsigned node = starpu_worker_get_memory_node((unsigned)slp_engine.gpu_worker[there.index]);
	starpu_data_prefetch_on_node(b->handle, node, 1);
}

sl_tensor *slp_filled(const char *at, const char *function, bool (*fill)(void *to, size_t bytes, void *arg), void *arg,
                      struct slp_type type, sl_device device)
{
	size_t bytes = (size_t)sl_shape_size(type.shape) * sl_dtype_size(type.dtype);
	if (slp_engine_need(at) != SL_OK || slp_device_resolve(at, &device) != SL_OK) return NULL;
	slp_lock();
	struct slp_buffer *b = slp_buffer_get(bytes, device, SLP_BUFFER_IDLE);
	slp_unlock();
	sl_tensor *t = b ? tensor_on(b, bytes, type, device) : NULL;
	if (!t || starpu_data_acquire_on_node(b->handle, STARPU_MAIN_RAM, STARPU_W)) {
		char text[160];
		sl_release(t);
		return slp_call_fail(at, function, SL_ENOMEM, "%s", slp_memory_limit_text(bytes, text));
	}
	slp_simulate_access(b, NULL, true);
	char *p = memory_of(at, function, b);
	bool ok = p && fill(p, bytes, arg);
	atomic_store(&b->fault, 0);
	if (p) release_memory(b, true);
	else release(b, STARPU_MAIN_RAM);
	if (ok) return slp_scope_add(t);
	sl_release(t);
	return NULL;
}

static bool copy_bytes(void *to, size_t bytes, void *data)
{
	if (bytes) memcpy(to, data, bytes);
	return true;
}

/* A tensor with a copy of the values at data, row-major, of type make.dtype.  The caller may change the memory once the
 * call returns.  SL_EINVAL: data is NULL; SL_ESHAPE, SL_EDTYPE: invalid shape, no such data type.
 *
 *     float v[] = {1, 2, 3, 4, 5, 6};
 *     sl_tensor *t = sl_from(v, SL_SHAPE(2, 3)); */
sl_tensor *sl_from_at(const char *at, const void *data, sl_shape shape, struct sl_make make)
{
	SLP_CALL("sl_from", at);
	if (!make_valid(at, "sl_from", data, shape, &make)) return NULL;
	return slp_filled(at, "sl_from", copy_bytes, (void *)data, (struct slp_type){make.dtype, shape}, make.device);
}

/* A tensor in the caller's memory, without a copy.  The memory must not be touched until release(data, arg) is called,
 * some time after the tensor and its views are released and all work on them has ended; values changed in place have
 * been written back by then.  If release is NULL, the memory must stay until sl_shutdown.  After an error the caller
 * keeps the memory, and release is not called: errors of sl_from, and SL_ESHAPE for an empty shape.
 *
 *     static void give_back(void *data, void *arg) { free(data); }
 *     sl_tensor *t = sl_adopt(pixels, SL_SHAPE(60000, 784), give_back, NULL, .dtype = SL_UINT8); */
sl_tensor *sl_adopt_at(const char *at, void *data, sl_shape shape, void (*release)(void *data, void *arg), void *arg,
                       struct sl_make make)
{
	SLP_CALL("sl_adopt", at);
	if (!make_valid(at, "sl_adopt", data, shape, &make)) return NULL;
	size_t bytes = (size_t)sl_shape_size(shape) * sl_dtype_size(make.dtype);
	if (!bytes) return slp_call_fail(at, "sl_adopt", SL_ESHAPE, "the shape is empty: there is no memory to adopt");
	if (!slp_scope_reserve(1)) return NULL;
	slp_lock();
	struct slp_buffer *b = slp_buffer_adopt(data, bytes);
	slp_unlock();
	sl_tensor *t = b ? tensor_on(b, bytes, (struct slp_type){make.dtype, shape}, make.device) : NULL;
	if (!t) return slp_call_fail(at, "sl_adopt", SL_ENOMEM, "no memory for the tensor");
	b->release = release; /* only now: after an error the memory is the caller's */
	b->release_arg = arg;
	return slp_scope_add(t);
}
