/* Segments: calls are gathered into the open segment, which is submitted to StarPU as one task.
 *
 * A small call waits in the open segment for more small calls, until a thread waits for a result, a large call comes,
 * or the segment is full.  A large call makes a separate segment. */
#include <stdlib.h>
#include <string.h>

#include "number.h"
#include "runtime/device/auto.h"
#include "runtime/device/device.h"
#include "runtime/device/idle.h"
#include "runtime/device/team.h"
#include "runtime/engine.h"
#include "runtime/fault.h"
#include "runtime/forked.h"
#include "runtime/memory/admission.h"
#include "runtime/memory/memory_limit.h"
#include "runtime/memory/runahead.h"
#include "runtime/memory/spill.h"
#include "runtime/observe/explain.h"
#include "runtime/observe/fxt.h"
#include "runtime/observe/stats.h"
#include "runtime/observe/utilisation.h"
#include "runtime/observe/watch.h"
#include "runtime/process/slaves.h"
#include "runtime/simulation/simulate.h"
#include "runtime/task/buffer.h"
#include "runtime/task/code.h"
#include "runtime/task/codelet.h"
#include "runtime/task/priority.h"
#include "runtime/task/segment.h"
#include "runtime/task/small.h"
#include "runtime/task/storage.h"

/* Of a GPU's time: some tasks' cost for the host, so that the GPU has work while the host gathers more. */
static const double full_seconds = 100e-6;
enum { MAX_SLOTS = 192 };

static struct slp_segment *open_segment;
static struct slp_storage *free_storages;

/* ---- storages ---------------------------------------------------------------------------------------------------- */

struct slp_storage *slp_storage_new(size_t bytes, sl_device device)
{
	struct slp_storage *s = free_storages;
	if (s) free_storages = s->next;
	else if (!(s = slp_malloc(sizeof *s))) return NULL;
	atomic_init(&s->refs, 1);
	atomic_init(&s->version, 0);
	s->bytes = bytes;
	s->device = device;
	s->buffer = NULL;
	s->slot = -1;
	s->explanation = NULL;
	s->generation = slp_engine.generation;
	s->next = NULL;
	return s;
}

void slp_storage_retain(struct slp_storage *s)
{
	atomic_fetch_add(&s->refs, 1);
}

/* Locked: the storage is neither held nor in the open segment. */
static void storage_free(struct slp_storage *s)
{
	slp_explain_forget(s);
	if (s->buffer && s->generation == slp_engine.generation) slp_buffer_put(s->buffer);
	s->next = free_storages;
	free_storages = s;
}

/* The last reference is released with the engine locked: a flush finds the storage either held or freed. */
void slp_storage_release(struct slp_storage *s)
{
	int refs = atomic_load(&s->refs);
	while (refs > 1)
		if (atomic_compare_exchange_weak(&s->refs, &refs, refs - 1)) return;
	slp_lock();
	if (atomic_fetch_sub(&s->refs, 1) == 1 && s->slot < 0) { /* else flushing frees it */
		if (s->buffer && s->generation == slp_engine.generation) slp_buffer_dead(s->buffer);
		storage_free(s);
	}
	slp_unlock();
}

void slp_storage_forget(struct slp_storage *s)
{
	slp_buffer_put(s->buffer);
	s->buffer = NULL;
}

bool slp_storage_allocate(struct slp_storage *s)
{
	if (!s->buffer) s->buffer = slp_buffer_get(s->bytes, s->device, SLP_BUFFER_ANY);
	return s->buffer;
}

void slp_storage_materialize(struct slp_storage *s)
{
	if (s->slot >= 0) slp_flush();
}

void slp_storages_clear(void)
{
	for (struct slp_storage *s; (s = free_storages);) {
		free_storages = s->next;
		free(s);
	}
}

/* ---- building ---------------------------------------------------------------------------------------------------- */

bool slp_segment_reserve(struct slp_segment *seg, int nslots)
{
	return slp_grow((void **)&seg->slots, &seg->max_slots, nslots, sizeof *seg->slots) &&
	       slp_grow((void **)&seg->buffers, &seg->max_buffers, nslots, sizeof *seg->buffers) &&
	       slp_buffer_reserve(nslots);
}

int slp_segment_slot(struct slp_segment *seg, struct slp_storage *s)
{
	if (s->slot >= 0) return s->slot;
	seg->slots[seg->nslots] = (struct slp_slot){.storage = s};
	return s->slot = seg->nslots++;
}

/* Operand i of a call is in the slot of its storage. */
static void set_operand(struct slp_segment *seg, struct slp_record *r, int i, const struct slp_operand *o, bool reads,
                        bool writes)
{
	int slot = slp_segment_slot(seg, o->storage);
	slp_record_addresses(r)[i] = (struct slp_address){slot, o->offset};
	slp_slot_access(&seg->slots[slot], reads, writes);
	if (writes) atomic_fetch_add_explicit(&o->storage->version, 1, memory_order_relaxed);
}

static bool covers(const struct slp_operand *o)
{
	return o->offset == 0 &&
	       (size_t)sl_shape_size(o->type.shape) * sl_dtype_size(o->type.dtype) == o->storage->bytes;
}

/* Of a GPU, for it. */
static void count_work(struct slp_segment *seg, const struct slp_infer *c, double flops)
{
	double bytes = slp_call_bytes(c);
	seg->bytes += bytes;
	seg->seconds += slp_gpu_seconds(flops, bytes, 1);
}

/* Steps that can fail come first: then the segment is unchanged. */
static enum sl_status append(struct slp_segment *seg, const struct slp_infer *c, const struct slp_operand *in,
                             const struct slp_operand *out, bool inplace, double flops)
{
	bool room = slp_segment_reserve(seg, seg->nslots + c->nin + c->nout);
	struct slp_record *r = room ? slp_call_list_add(&seg->own, c, flops) : NULL;
	if (!r) return sl_error();
	slp_segment_raise(seg, slp_level);
	r->mends = inplace && c->op->overwrites && covers(&out[0]);
	for (int i = 0; i < c->nin; i++) set_operand(seg, r, i, &in[i], true, slp_input_is_written(c->op, i));
	for (int i = 0; i < c->nout; i++) set_operand(seg, r, c->nin + i, &out[i], inplace || !covers(&out[i]), true);
	SLP_COUNT(ops);
	return SL_OK;
}

struct slp_segment *slp_segment_open(sl_device device)
{
	if (open_segment && !sl_device_equal(device, open_segment->device)) slp_flush();
	if (!open_segment) open_segment = slp_segment_new();
	if (!open_segment) slp_error_set(SL_ENOMEM, "no memory for a segment");
	else open_segment->device = device;
	return open_segment;
}

void slp_segment_close_if_full(void)
{
	const struct slp_segment *seg = open_segment;
	if (seg->own.nops >= slp_engine.config.bulk || seg->nslots >= MAX_SLOTS || seg->seconds >= full_seconds)
		slp_flush();
}

/* Memory for a large call must exist before its submission; for a small one it does, in all likelihood. */
static enum sl_status find_memory(const struct slp_infer *c, const struct slp_operand *out)
{
	char text[160], type[160];
	struct slp_scratch scratch;
	size_t bytes = slp_scratch_bytes(0, slp_call_scratch(c));
	for (int i = 0; i < c->nout; i++) {
		if (slp_storage_allocate(out[i].storage)) continue;
		slp_call_fail(c->at, c->op->name, SL_ENOMEM, "the result is %s: %s", slp_type_string(&c->out[i], type),
		              slp_memory_limit_text(out[i].storage->bytes, text));
		return SL_ENOMEM;
	}
	if (slp_scratch_get(bytes, &scratch)) return SL_OK;
	slp_call_fail(c->at, c->op->name, SL_ENOMEM, "workspace: %s", slp_memory_limit_text(bytes, text));
	return SL_ENOMEM;
}

enum sl_status slp_submit(const struct slp_infer *call, const struct slp_operand *in, const struct slp_operand *out,
                          sl_device device, bool inplace)
{
	double flops = call->op->flops ? call->op->flops(call) : 0;
	bool small = slp_call_is_small(call, flops);
	bool joins = small || slp_call_is_small_on_gpu(call, flops, device, open_segment);
	if (!joins || slp_call_parts(call, device, open_segment)) slp_flush();
	enum sl_status s = small ? SL_OK : find_memory(call, out);
	if (s != SL_OK) return s;
	struct slp_segment *seg = slp_segment_open(device);
	if (!seg) return sl_error();
	s = append(seg, call, in, out, inplace, flops);
	if (s != SL_OK) return s;
	if (joins && !small) count_work(seg, call, flops); /* others close a segment by their number, as on CPUs */
	if (joins) slp_segment_close_if_full();
	else slp_flush();
	return SL_OK;
}

/* ---- submitting -------------------------------------------------------------------------------------------------- */

/* Decides the place of a slot's values: results without a holder stay in scratch. */
static void allocate_slot(struct slp_segment *seg, struct slp_slot *slot)
{
	struct slp_storage *s = slot->storage;
	if (!s) return; /* in scratch, as planned before */
	if (s->buffer && s->buffer->lost && slot->mode == STARPU_W) slp_storage_forget(s);
	if (!s->buffer && atomic_load(&s->refs) > 0)
		s->buffer = slp_buffer_get(s->bytes, seg->device, SLP_BUFFER_RESERVED);
	slot->buffer = s->buffer;
	if (s->buffer) seg->lost |= s->buffer->lost;
	if (s->buffer) return;
	slot->offset = seg->scratch;
	seg->scratch += slp_align(s->bytes ? s->bytes : 1, 64);
}

/* Slots over the same storage share the task's buffer: that of the first, which storage->slot names. */
static void use_buffer(struct slp_segment *seg, struct slp_slot *slot)
{
	const struct slp_slot *first = &seg->slots[slot->storage->slot];
	slot->index = first->index;
	if (slp_engine.ngpus || slp_engine.nslaves) /* else, nothing travels */
		slot->version = slp_buffer_use(slot->buffer, slot->mode & STARPU_W);
	if (first != slot) return;
	slot->index = seg->nbuffers;
	seg->buffers[seg->nbuffers++] = slot->buffer;
	atomic_fetch_add(&slot->buffer->pending, 1);
}

/* The first call that uses a slot. */
static const struct slp_record *user_of(const struct slp_segment *seg, int slot)
{
	const struct slp_record *r = slp_record_first(seg->calls);
	for (int i = 1; i < seg->calls->nops; i++, r = slp_record_next(r))
		for (int k = 0; k < r->nin + r->nout; k++)
			if (slp_record_addresses(r)[k].slot == slot) return r;
	return r;
}

/* Notes for buffers that have just been lost which call requested them. */
static void blame(const struct slp_segment *seg)
{
	for (int i = 0; i < seg->nslots; i++) {
		struct slp_buffer *b = seg->slots[i].buffer;
		if (!b || !b->lost || atomic_load(&b->fault)) continue;
		char room[160], text[512];
		const struct slp_record *r = user_of(seg, i);
		snprintf(text, sizeof text, "%s at %s: %s", slp_ops[r->op]->name, r->at,
		         slp_memory_limit_text(seg->slots[i].storage->bytes, room));
		atomic_store(&b->fault, slp_fault_add(SL_ENOMEM, text));
	}
}

static void allocate_slots(struct slp_segment *seg)
{
	for (int i = 0; i < seg->nslots; i++) {
		allocate_slot(seg, &seg->slots[i]);
		if (seg->slots[i].buffer) use_buffer(seg, &seg->slots[i]);
	}
	if (seg->lost) blame(seg);
}

/* Takes the storages out of the segment; those without a holder are freed. */
static void close_slots(struct slp_segment *seg)
{
	for (int i = 0; i < seg->nslots; i++) {
		struct slp_storage *s = seg->slots[i].storage;
		if (!s || s->slot != i) continue;
		s->slot = -1;
		if (atomic_load(&s->refs) == 0) storage_free(s);
	}
}

/* Somebody may have been woken; who only polls must not keep the core from him. */
static bool is_waited_for(const struct slp_segment *seg)
{
	for (int i = 0; i < seg->nbuffers; i++)
		if (atomic_load(&seg->buffers[i]->waiters)) return true;
	return false;
}

/* Threads of the team poll, or there is more to do; else the worker is about to give way (idle.c). */
static bool keeps_cores(void)
{
	return slp_team_polls() || slp_runahead_pending();
}

static void segment_done(void *arg)
{
	struct slp_segment *seg = arg;
	bool waited_for = is_waited_for(seg);
	if (slp_watch_deadline > 0) slp_watch_leave(seg);
	slp_utilisation_add(seg->calls->flops, seg->calls->turn);
	slp_explain_done(seg);
	for (int i = 0; i < seg->nslots; i++)
		if (seg->slots[i].buffer && seg->slots[i].mode & STARPU_W)
			slp_buffer_send(seg->slots[i].buffer, seg->slots[i].version, seg->priority);
	slp_admission_leave(seg);
	slp_scratch_used(&seg->work);
	for (int i = 0; i < seg->nbuffers; i++) slp_buffer_done(seg->buffers[i]);
	for (int i = 0; i < seg->ncodes; i++) slp_code_release(seg->codes[i]);
	sl_device device = seg->device;
	slp_segment_free(seg);
	SLP_COUNT(finished);
	slp_idle_ended(device);
	slp_auto_ended(device);
	if (slp_runahead_leave() || (waited_for && keeps_cores())) slp_team_yield();
}

/* The task's buffers: within the task where they fit, else in arrays that StarPU frees with it. */
static bool task_buffers(struct starpu_task *task, struct slp_segment *seg)
{
	starpu_data_handle_t scratch = seg->work.handle;
	int n = seg->nbuffers + (scratch ? 1 : 0);
	starpu_data_handle_t *handles = task->handles;
	enum starpu_data_access_mode *modes = task->modes;
	if (n > STARPU_NMAXBUFS) {
		handles = task->dyn_handles = slp_try_malloc((size_t)n * sizeof *handles);
		modes = task->dyn_modes = slp_try_malloc((size_t)n * sizeof *modes);
		if (!handles || !modes) return false;
	}
	for (int i = 0, seen = 0; i < seg->nslots; i++) {
		const struct slp_slot *slot = &seg->slots[i];
		if (!slot->buffer) continue;
		handles[slot->index] = slot->buffer->handle;
		bool first = slot->index == seen;
		modes[slot->index] = slot->mode | (first ? 0 : modes[slot->index]);
		seen += first;
	}
	seg->scratch_index = scratch ? n - 1 : -1;
	if (scratch) {
		handles[n - 1] = scratch;
		modes[n - 1] = STARPU_SCRATCH;
	}
	task->nbuffers = n;
	return true;
}

static void destroy_task(struct starpu_task *task)
{
	task->destroy = 0;
	starpu_task_destroy(task);
}

/* What the program, or a step for its shards, has bound to a worker runs in the order in which it becomes ready: every other
 * order of shards' tasks that was tried in simulation was slower (doc/parallel.md). */
static int priority_of(const struct slp_segment *seg, const struct starpu_task *task)
{
	bool bound = task->execute_on_a_specific_worker && (!seg->placed || slp_auto_deal.devices);
	return bound ? 0 : slp_priority_of(seg->level, task);
}

static struct starpu_task *make_task(struct slp_segment *seg)
{
	struct starpu_task *task = starpu_task_create();
	if (!task_buffers(task, seg) || (slp_engine.nslaves && !slp_slave_message(task, seg))) {
		destroy_task(task);
		return NULL;
	}
	task->cl = slp_codelet_of(seg->calls->nops == 1 ? seg->calls->op : -1);
	task->name = task->cl->name;
	seg->here = false;
	seg->layers = NULL;
	if (!slp_engine.nslaves) {
		task->cl_arg = seg;
		task->cl_arg_size = sizeof *seg;
	}
	task->flops = seg->calls->flops;
	task->callback_func = segment_done;
	task->callback_arg = seg;
	slp_device_place(task, seg->device, seg->calls->cuda);
	task->priority = seg->priority = priority_of(seg, task);
	slp_explain_task(seg, task);
	if (slp_fxt_on) slp_fxt_task(seg, task);
	return task;
}

/* Waits until no task uses the values.  Write-only values count as written then: StarPU ends programs that read what
 * never was.  Of others, what runs yet notes at its end what has become of the values: that must not come after what is
 * noted here. */
static void settle(const struct slp_buffer *b, enum starpu_data_access_mode mode)
{
	int node = mode == STARPU_W ? STARPU_MAIN_RAM : STARPU_ACQUIRE_NO_NODE;
	if (mode != STARPU_W && b->lost) return;
	if (starpu_data_acquire_on_node(b->handle, node, mode) == 0) starpu_data_release_on_node(b->handle, node);
}

/* A segment that could not be submitted: its results are spoilt. */
static void give_up(struct slp_segment *seg, enum sl_status status, const char *why)
{
	char text[512];
	const struct slp_record *r = slp_record_first(seg->calls);
	snprintf(text, sizeof text, "%s at %s: %s", slp_ops[r->op]->name, r->at, why);
	uint32_t fault = slp_fault_add(status, text);
	for (int i = 0; i < seg->nslots; i++) {
		struct slp_buffer *b = seg->slots[i].mode & STARPU_W ? seg->slots[i].buffer : NULL;
		if (!b) continue;
		settle(b, seg->slots[i].mode == STARPU_W ? STARPU_W : STARPU_RW);
		atomic_store(&b->fault, fault);
	}
	slp_idle_submitted(seg->device); /* segment_done takes it back */
	segment_done(seg);
}

static bool find_scratch(struct slp_segment *seg, char why[160])
{
	size_t bytes = slp_scratch_bytes(seg->scratch, seg->calls->op_scratch);
	if (slp_scratch_get(bytes, &seg->work)) return true;
	slp_memory_limit_text(bytes, why);
	return false;
}

void slp_segment_submit(struct slp_segment *seg)
{
	slp_runahead_wait();
	char why[160] = "no memory for the task";
	slp_auto_place(seg);
	allocate_slots(seg);
	bool allocated = find_scratch(seg, why) && slp_admission_enter(seg, why, sizeof why);
	slp_auto_note(seg);
	slp_runahead_enter();
	if (slp_watch_deadline > 0) slp_watch_enter(seg);
	if (slp_engine.config.explain) slp_explain_segment(seg);
	close_slots(seg);
	struct starpu_task *task = allocated ? make_task(seg) : NULL;
	SLP_COUNT(segments);
	if (!task) {
		give_up(seg, SL_ENOMEM, why);
		return;
	}
	slp_simulate_submission(seg, task);
	slp_admission_prefetch(seg);
	slp_spill_foresee(seg);
	locale_t locale = slp_number_begin(); /* the first task of a kind reads its file of measurements */
	sl_device device = seg->device;       /* its task may have ended when this returns */
	int ret = slp_task_submit(task);
	slp_number_end(locale);
	if (!ret) slp_idle_submitted(device);
	if (ret) {
		destroy_task(task);
		give_up(seg, SL_EDEVICE, "no worker can run it where its tensors live");
	}
	if (atomic_load_explicit(&slp_counters.segments, memory_order_relaxed) % 64 == 0) slp_stats_sample();
}

void slp_flush(void)
{
	struct slp_segment *seg = open_segment;
	open_segment = NULL;
	if (seg) slp_segment_submit(seg);
}

/* ---- their memory ------------------------------------------------------------------------------------------------ */

static struct {
	pthread_mutex_t lock;
	struct slp_segment *list;
} spare = {.lock = PTHREAD_MUTEX_INITIALIZER};
SLP_FORK_MUTEX(spare.lock);

struct slp_segment *slp_segment_new(void)
{
	pthread_mutex_lock(&spare.lock);
	struct slp_segment *s = spare.list;
	if (s) spare.list = s->next;
	pthread_mutex_unlock(&spare.lock);
	if (!s && !(s = slp_calloc(1, sizeof *s))) return NULL;
	slp_call_list_clear(&s->own);
	s->calls = &s->own;
	s->scratch = s->need = 0;
	s->bytes = s->seconds = 0;
	s->work = (struct slp_scratch){0};
	s->lost = s->spill_held = false;
	s->level = SLP_LEVEL_LAST;
	s->priority = 0;
	s->explanation = NULL;
	s->nslots = s->nbuffers = s->npatches = s->ncodes = 0;
	return s;
}

void slp_segment_free(struct slp_segment *s)
{
	pthread_mutex_lock(&spare.lock);
	s->next = spare.list;
	spare.list = s;
	pthread_mutex_unlock(&spare.lock);
}

void slp_segments_clear(void)
{
	for (struct slp_segment *s; (s = spare.list);) {
		spare.list = s->next;
		free(s->own.records);
		free(s->patches);
		free(s->codes);
		free(s->slots);
		free(s->buffers);
		free(s);
	}
	slp_storages_clear();
}
