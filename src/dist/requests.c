/* Requests: exchanges between processes, served by a thread of their own in the order in which the program made them, which
 * is the same in all processes.  A tensor's memory belongs to that thread from the end of the last task that writes it
 * (starpu_data_acquire_on_node_cb) until the exchange is over: what uses it waits by StarPU's own dependencies, and the
 * program goes on.  The thread never takes the engine's lock, with which submission waits for work to end. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alloc.h"
#include "dist/dist.h"
#include "dist/transport.h"
#include "dtype.h"
#include "runtime/explain.h"
#include "runtime/processes.h"

struct request {
	struct slp_exchange x;
	bool broadcast;
	const char *at;
	struct slp_buffer *buffer; /* NULL: memory of the caller, who waits */
	size_t offset;
	uint32_t version; /* of the buffer, that the exchange writes */
	bool ready, over;
	enum slp_outcome outcome;
	struct request *next;
	int nparts;
	struct slp_dist_part parts[]; /* as in struct slp_dist_what */
};

static struct {
	const struct slp_transport *transport; /* NULL: the thread does not run */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct request *first, **last;
	uint64_t number; /* of the next one */
	bool ending;
	char broken[SLP_DIST_WHY]; /* why no exchange will be any more; "": they go on */
	uint32_t fault;            /* of that */
	sl_bfloat16 *packed;       /* gradients as they travel, if they do so in a half type */
	size_t room;               /* elements of packed */
	struct sl_dist_info info;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* ---- serving ------------------------------------------------------------------------------------------------------- */

static double seconds(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The next one, once its values are there; NULL at the end. */
static struct request *take(void)
{
	pthread_mutex_lock(&queue.lock);
	while (queue.first ? !queue.first->ready : !queue.ending) pthread_cond_wait(&queue.changed, &queue.lock);
	struct request *r = queue.first;
	if (r && !(queue.first = r->next)) queue.last = &queue.first;
	pthread_mutex_unlock(&queue.lock);
	return r;
}

static bool is_finite(const struct request *r)
{
	const char *data = r->x.data;
	bool finite = r->nparts || slp_all_finite(data, r->x.count, r->x.dtype);
	for (int i = 0; finite && i < r->nparts; i++)
		finite = slp_all_finite(data + r->parts[i].first * sl_dtype_size(r->x.dtype), r->parts[i].count,
		                        r->x.dtype);
	return finite;
}

/* Why the values are none; NULL: they are sound.  Gradients that are not finite would spoil the parameters of all. */
static const char *what_spoilt(const struct request *r, char text[SLP_DIST_WHY])
{
	uint32_t fault = r->buffer ? atomic_load(&r->buffer->fault) : 0;
	if (fault) slp_fault_text(fault, text, SLP_DIST_WHY);
	else if (r->x.rows && !is_finite(r))
		snprintf(text, SLP_DIST_WHY, "the gradient of %s is not finite", r->x.name);
	else return NULL;
	return text;
}

static bool make_room(size_t count)
{
	if (count <= queue.room) return true;
	void *packed = slp_try_realloc(queue.packed, count * sizeof *queue.packed);
	if (!packed) return false;
	queue.packed = packed;
	queue.room = count;
	return true;
}

/* The sum of gradients that travel in half the bytes; each addition is rounded. */
static enum slp_outcome sum_packed(const struct slp_exchange *x, char why[SLP_DIST_WHY])
{
	struct slp_exchange packed = *x;
	float *values = x->data;
	if (!make_room(x->count)) packed.spoilt = "there is no memory to pack the gradient";
	for (size_t i = 0; !packed.spoilt && i < x->count; i++) queue.packed[i] = slp_bfloat16_of_float(values[i]);
	packed.data = queue.packed;
	packed.dtype = SL_BFLOAT16;
	enum slp_outcome outcome = queue.transport->sum(&packed, why);
	for (size_t i = 0; outcome == SLP_EXCHANGED && i < x->count; i++)
		values[i] = slp_float_of_bfloat16(queue.packed[i]);
	return outcome;
}

static enum slp_outcome sum(const struct slp_exchange *x, char why[SLP_DIST_WHY])
{
	bool pack = slp_dist.wire == SL_BFLOAT16 && x->rows && x->dtype == SL_FLOAT32;
	return pack ? sum_packed(x, why) : queue.transport->sum(x, why);
}

static enum slp_outcome carry_out(struct request *r, char why[SLP_DIST_WHY])
{
	char text[SLP_DIST_WHY];
	if (r->buffer)
		r->x.data = (char *)starpu_data_handle_to_pointer(r->buffer->handle, STARPU_MAIN_RAM) + r->offset;
	bool gives = !r->broadcast || r->x.rank == slp_dist.rank;
	r->x.spoilt = gives ? what_spoilt(r, text) : NULL;
	enum slp_outcome outcome = r->broadcast ? queue.transport->broadcast(&r->x, why) : sum(&r->x, why);
	if (outcome != SLP_EXCHANGED || !r->broadcast || !r->buffer) return outcome;
	if (!gives) atomic_store(&r->buffer->fault, 0); /* the values are new */
	return outcome;
}

static void note_broken(const char *why)
{
	pthread_mutex_lock(&queue.lock);
	snprintf(queue.broken, sizeof queue.broken, "%s", why);
	pthread_mutex_unlock(&queue.lock);
}

static uint32_t fault_of(const struct request *r, const char *why)
{
	char text[2 * SLP_DIST_WHY];
	bool broken = r->outcome == SLP_DIST_BROKEN;
	if (broken && queue.fault) return queue.fault;
	snprintf(text, sizeof text, "%s of %s over %d processes at %s: %s", r->broadcast ? "broadcast" : "sum",
	         r->x.name, slp_dist.size, r->at, why);
	uint32_t fault = slp_fault_add(broken ? SL_EIO : SL_EKERNEL, text);
	if (broken) queue.fault = fault;
	return fault;
}

/* The tensor's tasks go on. */
static void give_back(struct request *r, const char *why)
{
	struct slp_buffer *b = r->buffer;
	if (r->outcome != SLP_EXCHANGED && (r->outcome == SLP_DIST_BROKEN || !atomic_load(&b->fault)))
		atomic_store(&b->fault, fault_of(r, why));
	starpu_data_release_on_node(b->handle, STARPU_MAIN_RAM);
	slp_buffer_send(b, r->version);
	slp_buffer_done(b);
	slp_idle_wake();
	free(r);
}

static void end_waiting(struct request *r)
{
	pthread_mutex_lock(&queue.lock);
	r->over = true;
	pthread_cond_broadcast(&queue.changed);
	pthread_mutex_unlock(&queue.lock);
}

static void count(double began)
{
	pthread_mutex_lock(&queue.lock);
	queue.info.exchanges++;
	queue.info.bytes_sent = *queue.transport->sent;
	queue.info.seconds += seconds(CLOCK_MONOTONIC) - began;
	queue.info.cpu_seconds = seconds(CLOCK_THREAD_CPUTIME_ID);
	pthread_mutex_unlock(&queue.lock);
}

static void *communicate(void *unused)
{
	char why[SLP_DIST_WHY];
	(void)unused;
	for (struct request *r; (r = take());) {
		double began = seconds(CLOCK_MONOTONIC);
		if (*queue.broken) snprintf(why, sizeof why, "%s", queue.broken);
		r->outcome = *queue.broken ? SLP_DIST_BROKEN : carry_out(r, why);
		if (r->outcome == SLP_DIST_BROKEN) note_broken(why);
		count(began);
		if (r->buffer) give_back(r, why);
		else end_waiting(r);
	}
	queue.transport->end();
	return NULL;
}

/* ---- making requests ----------------------------------------------------------------------------------------------- */

/* What breaks once stays broken. */
static bool is_broken(const char *at, const char *what)
{
	char why[SLP_DIST_WHY];
	pthread_mutex_lock(&queue.lock);
	snprintf(why, sizeof why, "%s", queue.broken);
	pthread_mutex_unlock(&queue.lock);
	if (*why) slp_call_fail(at, what, SL_EIO, "%s", why);
	return *why;
}

static void enqueue(struct request *r)
{
	pthread_mutex_lock(&queue.lock);
	r->x.number = queue.number++;
	*queue.last = r;
	queue.last = &r->next;
	if (r->ready) pthread_cond_broadcast(&queue.changed);
	pthread_mutex_unlock(&queue.lock);
}

/* From the worker that ended the last task that uses the values, or at once. */
static void values_are_there(void *arg)
{
	struct request *r = arg;
	pthread_mutex_lock(&queue.lock);
	r->ready = true;
	pthread_cond_broadcast(&queue.changed);
	pthread_mutex_unlock(&queue.lock);
}

static bool claim(struct request *r, sl_tensor *t)
{
	slp_lock();
	slp_storage_materialize(t->storage);
	slp_explain_forget(t->storage);
	r->buffer = t->storage->buffer;
	if (r->buffer) {
		atomic_fetch_add(&r->buffer->pending, 1);
		atomic_fetch_add(&t->storage->version, 1);
		r->version = slp_buffer_use(r->buffer, true);
	}
	slp_unlock();
	return r->buffer;
}

static bool request(const char *at, sl_tensor *t, struct slp_dist_what what, bool broadcast)
{
	const char *function = broadcast ? "broadcast" : "sum";
	if (slp_dist.size == 1) return true;
	if (!slp_tensor_usable(at, function, t) || is_broken(at, function)) return false;
	size_t parts = (size_t)what.nparts * sizeof *what.parts;
	struct request *r = slp_calloc(1, sizeof *r + parts);
	if (!r) return false;
	r->nparts = what.nparts;
	if (parts) memcpy(r->parts, what.parts, parts);
	r->at = at ? at : "?";
	r->broadcast = broadcast;
	r->offset = t->offset;
	r->x = (struct slp_exchange){.count = (size_t)sl_tensor_size(t), .dtype = t->type.dtype, .rows = what.rows};
	r->x.rank = what.rank;
	r->x.one = what.one;
	snprintf(r->x.name, sizeof r->x.name, "%s", what.name);
	if (!claim(r, t)) {
		free(r);
		return slp_call_fail(at, function, SL_EINTERNAL, "the tensor has no values");
	}
	enqueue(r);
	if (starpu_data_acquire_on_node_cb(r->buffer->handle, STARPU_MAIN_RAM, STARPU_RW, values_are_there, r) == 0) {
		slp_idle_wake();
		return true;
	}
	/* Where it stands in the queue, all others wait for it. */
	return slp_call_fail(at, function, SL_EINTERNAL, "StarPU would not hand over the values");
}

bool slp_dist_sum(const char *at, sl_tensor *t, struct slp_dist_what what)
{
	return request(at, t, what, false);
}

bool slp_dist_broadcast(const char *at, sl_tensor *t, struct slp_dist_what what)
{
	return request(at, t, what, true);
}

void slp_dist_skip(void)
{
	pthread_mutex_lock(&queue.lock);
	queue.number++;
	pthread_mutex_unlock(&queue.lock);
}

static enum sl_status wait_for(const char *at, struct request *r)
{
	if (slp_dist.size == 1) return SL_OK;
	if (is_broken(at, r->x.name)) return sl_error();
	r->at = at ? at : "?";
	r->ready = true;
	enqueue(r);
	pthread_mutex_lock(&queue.lock);
	while (!r->over) pthread_cond_wait(&queue.changed, &queue.lock);
	pthread_mutex_unlock(&queue.lock);
	if (r->outcome == SLP_EXCHANGED) return SL_OK;
	is_broken(at, r->x.name);
	return sl_error();
}

enum sl_status slp_dist_sum_now(const char *at, const char *name, void *data, size_t elements, enum sl_dtype dtype)
{
	struct request r = {.x = {.data = data, .count = elements, .dtype = dtype}};
	snprintf(r.x.name, sizeof r.x.name, "%s", name);
	return wait_for(at, &r);
}

enum sl_status slp_dist_broadcast_now(const char *at, const char *name, void *data, size_t bytes)
{
	struct request r = {.x = {.data = data, .count = bytes, .dtype = SL_UINT8}, .broadcast = true};
	snprintf(r.x.name, sizeof r.x.name, "%s", name);
	return wait_for(at, &r);
}

enum sl_status slp_dist_agree(const char *at, const char *function, const char *wrong)
{
	enum { ROOM = 256 };
	char *all = slp_calloc((size_t)slp_dist.size, ROOM);
	if (!all) return sl_error();
	snprintf(all + slp_dist.rank * ROOM, ROOM, "%s", wrong);
	enum sl_status s = slp_dist_sum_now(at, function, all, (size_t)slp_dist.size * ROOM, SL_UINT8);
	for (int r = 0; s == SL_OK && r < slp_dist.size; r++) {
		if (!all[r * ROOM]) continue;
		slp_call_fail(at, function, SL_ESTATE, "rank %d: %.*s", r, ROOM - 1, all + r * ROOM);
		s = SL_ESTATE;
	}
	free(all);
	return s;
}

/* What exchanges have cost this process; zeros for one that is alone. */
struct sl_dist_info sl_dist_info(void)
{
	pthread_mutex_lock(&queue.lock);
	struct sl_dist_info info = queue.info;
	pthread_mutex_unlock(&queue.lock);
	info.rank = slp_dist.rank;
	info.size = slp_dist.size;
	return info;
}

/* ---- start and end ------------------------------------------------------------------------------------------------- */

enum sl_status slp_requests_start(const char *at, const struct slp_transport *transport, struct slp_place *place)
{
	char why[SLP_DIST_WHY] = "";
	enum sl_status s = transport->start(place, why);
	if (s != SL_OK) return slp_call_fail(at, "sl_init", s, "%s: %s", transport->name, why), s;
	queue.transport = transport;
	queue.first = NULL;
	queue.last = &queue.first;
	queue.number = 0;
	queue.ending = false;
	queue.broken[0] = '\0';
	queue.fault = 0;
	queue.info = (struct sl_dist_info){0};
	int error = pthread_create(&queue.thread, NULL, communicate, NULL);
	if (!error) return SL_OK;
	transport->end();
	queue.transport = NULL;
	return slp_call_fail(at, "sl_init", SL_ENOMEM, "no thread that communicates: %s", strerror(error)), SL_ENOMEM;
}

void slp_requests_end(void)
{
	if (!queue.transport) return;
	pthread_mutex_lock(&queue.lock);
	queue.ending = true;
	pthread_cond_broadcast(&queue.changed);
	pthread_mutex_unlock(&queue.lock);
	pthread_join(queue.thread, NULL);
	free(queue.packed);
	queue.packed = NULL;
	queue.room = 0;
	queue.transport = NULL;
}
