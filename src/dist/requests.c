/* Requests: exchanges between processes, served by a separate thread in the order of the program's calls, which is the
 * same in all processes.  A tensor's memory belongs to that thread from the end of the last task that writes it
 * (starpu_data_acquire_on_node_cb) until the end of the exchange: StarPU's dependencies delay its users, and the
 * program continues.  The thread never takes the engine's lock, with which submission waits for
 * work to end. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dist/adders.h"
#include "dist/gpu.h"
#include "dist/requests.h"
#include "runtime/device/idle.h"
#include "runtime/engine.h"
#include "runtime/fault.h"
#include "runtime/observe/explain.h"
#include "runtime/process/processes.h"
#include "runtime/task/buffer.h"
#include "runtime/task/storage.h"
#include "runtime/thread.h"

static struct {
	const struct slp_transport *transport; /* NULL: the thread does not run */
	starpu_pthread_t thread;
	starpu_pthread_mutex_t lock;
	starpu_pthread_cond_t changed;
	struct slp_request *first, **last;
	uint64_t number;           /* of the next one */
	bool fast;                 /* SL_DIST_ORDER */
	bool ending, busy;         /* busy: the thread has one that is not over */
	char broken[SLP_DIST_WHY]; /* the reason why no more exchanges follow; "": they do */
	uint32_t fault;            /* of that */
	struct sl_dist_info info;
} queue = {.lock = STARPU_PTHREAD_MUTEX_INITIALIZER, .changed = STARPU_PTHREAD_COND_INITIALIZER};

/* ---- serving ----------------------------------------------------------------------------------------------------- */

static double processor_time(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The next one, once its values are there; NULL at the end. */
static struct slp_request *take(void)
{
	starpu_pthread_mutex_lock(&queue.lock);
	queue.busy = false;
	starpu_pthread_cond_broadcast(&queue.changed);
	while (queue.first ? queue.first->missing > 0 : !queue.ending)
		starpu_pthread_cond_wait(&queue.changed, &queue.lock);
	struct slp_request *r = queue.first;
	if (r && !(queue.first = r->next)) queue.last = &queue.first;
	queue.busy = r != NULL;
	starpu_pthread_mutex_unlock(&queue.lock);
	return r;
}

/* The sum of gradients that travel in half the bytes; each addition is rounded. */
static enum slp_outcome sum_packed(const struct slp_exchange *x, char why[SLP_DIST_WHY])
{
	struct slp_exchange packed = slp_values_pack(x);
	enum slp_outcome outcome = queue.transport->sum(&packed, why);
	if (outcome == SLP_EXCHANGED) slp_values_unpack(x);
	return outcome;
}

static enum slp_outcome sum(const struct slp_exchange *x, char why[SLP_DIST_WHY])
{
	bool pack = slp_dist.wire == SL_BFLOAT16 && x->rows && x->dtype == SL_FLOAT32 && !x->meets;
	return pack ? sum_packed(x, why) : queue.transport->sum(x, why);
}

static enum slp_outcome carry_out(struct slp_request *r, char why[SLP_DIST_WHY])
{
	char text[SLP_DIST_WHY];
	bool broadcast = r->kind == SLP_REQUEST_BROADCAST, gives = !broadcast || r->x.rank == slp_dist.rank;
	if (r->kind == SLP_REQUEST_NCCL) return slp_nccl_meet(queue.transport, r->x.number, queue.fast, why);
	slp_values_open(r);
	r->x.spoilt = gives ? slp_values_wrong(r, text) : NULL;
	enum slp_outcome outcome = broadcast ? queue.transport->broadcast(&r->x, why) : sum(&r->x, why);
	if (outcome != SLP_EXCHANGED || !r->count) return outcome;
	if (!slp_values_close(r)) {
		snprintf(why, SLP_DIST_WHY, "rank %d: CUDA failed", slp_dist.rank);
		return SLP_DIST_BROKEN;
	}
	if (!gives) atomic_store(&r->members[0].buffer->fault, 0); /* the values are new */
	return outcome;
}

static void note_broken(const char *why)
{
	starpu_pthread_mutex_lock(&queue.lock);
	snprintf(queue.broken, sizeof queue.broken, "%s", why);
	starpu_pthread_mutex_unlock(&queue.lock);
}

static uint32_t fault_of(const struct slp_request *r, const char *why)
{
	char text[2 * SLP_DIST_WHY];
	bool broken = r->outcome == SLP_DIST_BROKEN;
	if (broken && queue.fault) return queue.fault;
	snprintf(text, sizeof text, "%s of %s over %d processes at %s: %s",
	         r->kind == SLP_REQUEST_BROADCAST ? "broadcast" : "sum", r->x.name, slp_dist.size, r->at, why);
	uint32_t fault = slp_fault_add(broken ? SL_EIO : SL_EKERNEL, text);
	if (broken) queue.fault = fault;
	return fault;
}

/* The tensors' tasks continue. */
static void give_back(struct slp_request *r, const char *why)
{
	bool failed = r->outcome != SLP_EXCHANGED, broken = r->outcome == SLP_DIST_BROKEN;
	uint32_t fault = failed && (broken || !slp_values_fault(r) || r->count > 1) ? fault_of(r, why) : 0;
	for (int i = 0; i < r->count; i++) {
		struct slp_buffer *b = r->members[i].buffer;
		if (!r->members[i].claims) continue;
		if (failed && (broken || !atomic_load(&b->fault))) atomic_store(&b->fault, fault);
		starpu_data_release_on_node(b->handle, r->node);
		slp_buffer_send(b, r->members[i].version, 0);
		slp_buffer_done(b);
	}
	slp_idle_wake();
	free(r->parts);
	free(r);
}

static void end_waiting(struct slp_request *r)
{
	starpu_pthread_mutex_lock(&queue.lock);
	r->over = true;
	starpu_pthread_cond_broadcast(&queue.changed);
	starpu_pthread_mutex_unlock(&queue.lock);
}

static void count(double began)
{
	starpu_pthread_mutex_lock(&queue.lock);
	queue.info.exchanges++;
	queue.info.bytes_sent = *queue.transport->sent;
	queue.info.seconds += sl_time() - began;
	queue.info.cpu_seconds = processor_time() + slp_adders_seconds();
	starpu_pthread_mutex_unlock(&queue.lock);
}

static void *communicate(void *unused)
{
	char why[SLP_DIST_WHY];
	(void)unused;
	for (struct slp_request *r; (r = take());) {
		double began = sl_time();
		if (*queue.broken) snprintf(why, sizeof why, "%s", queue.broken);
		r->outcome = *queue.broken ? SLP_DIST_BROKEN : carry_out(r, why);
		if (r->outcome == SLP_DIST_BROKEN) note_broken(why);
		count(began);
		if (r->count) give_back(r, why);
		else end_waiting(r);
	}
	queue.transport->end();
	return NULL;
}

/* ---- making requests --------------------------------------------------------------------------------------------- */

/* A broken connection stays broken. */
static bool is_broken(const char *at, const char *what)
{
	char why[SLP_DIST_WHY];
	starpu_pthread_mutex_lock(&queue.lock);
	snprintf(why, sizeof why, "%s", queue.broken);
	starpu_pthread_mutex_unlock(&queue.lock);
	if (*why) slp_call_fail(at, what, SL_EIO, "%s", why);
	return *why;
}

static void enqueue(struct slp_request *r)
{
	starpu_pthread_mutex_lock(&queue.lock);
	r->x.number = queue.number++;
	*queue.last = r;
	queue.last = &r->next;
	if (!r->missing) starpu_pthread_cond_broadcast(&queue.changed);
	starpu_pthread_mutex_unlock(&queue.lock);
}

/* From the worker that ended the last task that uses a buffer, or immediately. */
static void values_are_there(void *arg)
{
	struct slp_request *r = arg;
	starpu_pthread_mutex_lock(&queue.lock);
	if (--r->missing == 0) starpu_pthread_cond_broadcast(&queue.changed);
	starpu_pthread_mutex_unlock(&queue.lock);
}

/* Memory shared by several members is claimed once. */
static bool claim(struct slp_request *r, sl_tensor *t, const char *name)
{
	struct slp_member *m = &r->members[r->count];
	*m = (struct slp_member){.offset = t->offset, .bytes = sl_tensor_bytes(t), .claims = true};
	snprintf(m->name, sizeof m->name, "%s", name);
	slp_lock();
	slp_storage_materialize(t->storage);
	slp_explain_forget(t->storage);
	m->buffer = t->storage->buffer;
	for (int i = 0; i < r->count; i++) m->claims &= r->members[i].buffer != m->buffer;
	if (m->buffer && m->claims) {
		atomic_fetch_add(&m->buffer->pending, 1);
		atomic_fetch_add(&t->storage->version, 1);
		m->version = slp_buffer_use(m->buffer, true);
		r->missing++;
	}
	slp_unlock();
	if (m->buffer) r->count++;
	return m->buffer;
}

static void unclaim(struct slp_request *r)
{
	for (int i = 0; i < r->count; i++)
		if (r->members[i].claims) slp_buffer_done(r->members[i].buffer);
	free(r->parts);
	free(r);
}

static struct slp_request *request_new(const char *at, struct slp_dist_what what, int n, bool broadcast)
{
	struct slp_request *r = slp_calloc(1, sizeof *r + (size_t)n * sizeof *r->members);
	size_t parts = (size_t)what.nparts * sizeof *what.parts;
	if (!r || (parts && !(r->parts = slp_malloc(parts)))) {
		free(r);
		return NULL;
	}
	r->nparts = what.nparts;
	if (parts) memcpy(r->parts, what.parts, parts);
	r->at = at ? at : "?";
	r->kind = broadcast ? SLP_REQUEST_BROADCAST : SLP_REQUEST_SUM;
	r->any = what.any;
	r->node = STARPU_MAIN_RAM;
	r->x = (struct slp_exchange){.rows = what.rows, .lr = what.lr, .rank = what.rank, .one = what.one};
	r->x.meets = slp_gpu_sums() && !(broadcast && what.one); /* rank 0 writes it into a file */
	snprintf(r->x.name, sizeof r->x.name, "%s", what.name);
	return r;
}

/* A request that waits for its buffers; a buffer that StarPU would not hand over stops all others, too. */
static bool send(const char *at, const char *function, struct slp_request *r)
{
	enum { BUFFERS = 64 };
	starpu_data_handle_t few[BUFFERS], *handles = r->count <= BUFFERS ? few : NULL;
	bool ok = true;
	if (!handles && !(handles = slp_malloc((size_t)r->count * sizeof *handles))) return unclaim(r), false;
	int n = 0;
	for (int i = 0; i < r->count; i++)
		if (r->members[i].claims) handles[n++] = r->members[i].buffer->handle;
	unsigned node = r->node;
	enqueue(r); /* which may be complete, and freed, once the last buffer was requested */
	for (int i = 0; i < n; i++)
		ok &= starpu_data_acquire_on_node_cb(handles[i], node, STARPU_RW, values_are_there, r) == 0;
	if (handles != few) free(handles);
	slp_idle_wake();
	return ok || slp_call_fail(at, function, SL_EINTERNAL, "StarPU did not hand over the values");
}

/* The memory node for the values of a sum: the GPU's if all of them are added there, else main memory. */
static unsigned choose_node(const struct slp_request *r, sl_tensor *const *list, int n, bool gpu)
{
	bool there = r->x.meets;
	for (int i = 0; i < n; i++) there &= gpu || list[i]->device.kind == SL_DEVICE_GPU;
	return there ? slp_gpu_node() : STARPU_MAIN_RAM;
}

static bool request(const char *at, sl_tensor *const *list, int n, struct slp_dist_what what, bool broadcast)
{
	const char *function = broadcast ? "broadcast" : "sum";
	if (slp_dist.size == 1 || slp_dist.apart || n == 0) return true;
	for (int i = 0; i < n; i++)
		if (!slp_tensor_usable(at, function, list[i])) return false;
	struct slp_request *r = is_broken(at, function) ? NULL : request_new(at, what, n, broadcast);
	if (!r) return false;
	r->x.dtype = list[0]->type.dtype;
	r->node = choose_node(r, list, n, what.gpu);
	for (int i = 0; i < n; i++) {
		r->x.count += (size_t)sl_tensor_size(list[i]);
		if (claim(r, list[i], what.names ? what.names[i] : what.name)) continue;
		unclaim(r);
		return slp_call_fail(at, function, SL_EINTERNAL, "the tensor has no values");
	}
	return send(at, function, r);
}

bool slp_dist_sum(const char *at, sl_tensor *t, struct slp_dist_what what)
{
	return request(at, &t, 1, what, false);
}

bool slp_dist_sum_together(const char *at, sl_tensor *const *list, int n, struct slp_dist_what what)
{
	return request(at, list, n, what, false);
}

bool slp_dist_broadcast(const char *at, sl_tensor *t, struct slp_dist_what what)
{
	return request(at, &t, 1, what, true);
}

void slp_dist_skip(void)
{
	starpu_pthread_mutex_lock(&queue.lock);
	queue.number++;
	starpu_pthread_mutex_unlock(&queue.lock);
}

static enum sl_status wait_for(const char *at, struct slp_request *r)
{
	if (slp_dist.size == 1 || slp_dist.apart) return SL_OK;
	if (is_broken(at, r->x.name)) return sl_error();
	r->at = at ? at : "?";
	enqueue(r);
	starpu_pthread_mutex_lock(&queue.lock);
	while (!r->over) starpu_pthread_cond_wait(&queue.changed, &queue.lock);
	starpu_pthread_mutex_unlock(&queue.lock);
	if (r->outcome == SLP_EXCHANGED) return SL_OK;
	is_broken(at, r->x.name);
	return sl_error();
}

enum sl_status slp_dist_sum_now(const char *at, const char *name, void *data, size_t elements, enum sl_dtype dtype)
{
	struct slp_request r = {.x = {.data = data, .count = elements, .dtype = dtype}};
	snprintf(r.x.name, sizeof r.x.name, "%s", name);
	return wait_for(at, &r);
}

enum sl_status slp_dist_broadcast_now(const char *at, const char *name, void *data, size_t bytes)
{
	struct slp_request r = {.x = {.data = data, .count = bytes, .dtype = SL_UINT8}, .kind = SLP_REQUEST_BROADCAST};
	snprintf(r.x.name, sizeof r.x.name, "%s", name);
	return wait_for(at, &r);
}

/* Sums stay on GPUs from now on, if all ranks can; errors appear in later exchanges. */
void slp_dist_meet_on_gpus(const char *at)
{
	struct slp_request r = {.kind = SLP_REQUEST_NCCL, .x.name = "sl_init"};
	if (slp_dist.nccl) wait_for(at, &r);
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

/* The cost of the exchanges of this process since sl_init; zeros for a process that is alone. */
struct sl_dist_info sl_dist_info(void)
{
	SLP_CALL("sl_dist_info", NULL);
	starpu_pthread_mutex_lock(&queue.lock);
	struct sl_dist_info info = queue.info;
	starpu_pthread_mutex_unlock(&queue.lock);
	info.rank = slp_dist.rank;
	info.size = slp_dist.size;
	info.gpu_sums = slp_nccl_state();
	return info;
}

/* ---- start and end ----------------------------------------------------------------------------------------------- */

enum sl_status slp_requests_start(const char *at, const struct slp_transport *transport, struct slp_place *place)
{
	char why[SLP_DIST_WHY] = "";
	enum sl_status s = transport->start(place, why);
	if (s != SL_OK) return slp_call_fail(at, "sl_init", s, "%s: %s", transport->name, why), s;
	queue.transport = transport;
	queue.fast = place->fast;
	queue.first = NULL;
	queue.last = &queue.first;
	queue.number = 0;
	queue.ending = false;
	queue.broken[0] = '\0';
	queue.fault = 0;
	queue.info = (struct sl_dist_info){0};
	sigset_t signals;
	slp_signals_hold(&signals);
	int error = starpu_pthread_create(&queue.thread, NULL, communicate, NULL);
	slp_signals_restore(&signals);
	if (!error) return SL_OK;
	transport->end();
	queue.transport = NULL;
	return slp_call_fail(at, "sl_init", SL_ENOMEM, "cannot start the communicating thread: %s", strerror(error)),
	       SL_ENOMEM;
}

void slp_requests_wait(void)
{
	if (!queue.transport) return;
	starpu_pthread_mutex_lock(&queue.lock);
	while (queue.first || queue.busy) starpu_pthread_cond_wait(&queue.changed, &queue.lock);
	starpu_pthread_mutex_unlock(&queue.lock);
}

void slp_requests_end(void)
{
	if (!queue.transport) return;
	starpu_pthread_mutex_lock(&queue.lock);
	queue.ending = true;
	starpu_pthread_cond_broadcast(&queue.changed);
	starpu_pthread_mutex_unlock(&queue.lock);
	starpu_pthread_join(queue.thread, NULL);
	slp_adders_end();
	slp_values_end();
	queue.transport = NULL;
}
