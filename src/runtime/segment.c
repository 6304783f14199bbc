/* Segments: calls are gathered into the open segment, which is submitted to StarPU as one task.
 *
 * A small call waits in the open segment for more of its kind, until someone waits for a result, a large call comes,
 * or enough have gathered.  What is not small makes a segment of its own. */
#include <stdlib.h>
#include <string.h>

#include "runtime/segment.h"

/* Calls up to these are small: some ten microseconds of work, less than what StarPU takes for a handful of tasks. */
static const double small_bytes = 65536, small_flops = 1e6;
enum { MAX_SLOTS = 192 };

static struct slp_segment *open_segment;
static struct slp_storage *free_storages;

/* ---- storages ---------------------------------------------------------------------------------------------------- */

struct slp_storage *slp_storage_new(size_t bytes, sl_device device)
{
	struct slp_storage *s = free_storages;
	if (s) free_storages = s->next;
	else if (!(s = malloc(sizeof *s))) return NULL;
	atomic_init(&s->refs, 1);
	atomic_init(&s->version, 0);
	s->bytes = bytes;
	s->device = device;
	s->buffer = NULL;
	s->slot = -1;
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
	if (s->buffer && s->generation == slp_engine.generation) slp_buffer_put(s->buffer);
	s->next = free_storages;
	free_storages = s;
}

/* The last reference is given up with the engine locked: a flush finds the storage either held or freed. */
void slp_storage_release(struct slp_storage *s)
{
	int refs = atomic_load(&s->refs);
	while (refs > 1)
		if (atomic_compare_exchange_weak(&s->refs, &refs, refs - 1)) return;
	slp_lock();
	if (atomic_fetch_sub(&s->refs, 1) == 1 && s->slot < 0) storage_free(s); /* else flushing frees it */
	slp_unlock();
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

static bool grow(void **list, int *max, int n, size_t size)
{
	if (n <= *max) return true;
	int bigger = 2 * *max > n ? 2 * *max : n;
	void *p = realloc(*list, (size_t)bigger * size);
	if (!p) return false;
	*list = p;
	*max = bigger;
	return true;
}

static size_t align(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

/* The slot of a storage; -1 without memory. */
static int slot_of(struct slp_segment *seg, struct slp_storage *s)
{
	if (s->slot >= 0) return s->slot;
	if (!grow((void **)&seg->slots, &seg->max_slots, seg->nslots + 1, sizeof *seg->slots)) return -1;
	seg->slots[seg->nslots] = (struct slp_slot){.storage = s};
	return s->slot = seg->nslots++;
}

static void access_slot(struct slp_slot *slot, bool reads, bool writes)
{
	if (reads && !(slot->known && slot->mode & STARPU_W)) slot->mode |= STARPU_R;
	if (writes) {
		slot->mode |= STARPU_W;
		atomic_fetch_add_explicit(&slot->storage->version, 1, memory_order_relaxed);
	}
	slot->known = true;
}

static uint32_t hash(uint32_t h, uint64_t v)
{
	uint64_t x = (h ^ v) * 0x9E3779B97F4A7C15u;
	return (uint32_t)(x ^ x >> 32);
}

static const size_t attr_sizes[] = {[SLP_INT] = sizeof(int), [SLP_INT64] = 8, [SLP_DOUBLE] = 8, [SLP_BOOL] = sizeof(bool)};

static uint32_t hash_attrs(uint32_t h, const struct sl_op *op, const void *attrs)
{
	for (const struct slp_attr *a = op->attr_table; a && a->name; a++) {
		if (a->value_only) continue;
		for (unsigned i = 0; i < a->count; i++) {
			uint64_t v = 0;
			memcpy(&v, (const char *)attrs + a->offset + i * attr_sizes[a->kind], attr_sizes[a->kind]);
			h = hash(h, v);
		}
	}
	return h;
}

static uint32_t hash_type(uint32_t h, const struct slp_type *t)
{
	h = hash(h, (uint64_t)t->dtype << 8 | (uint64_t)t->shape.ndim);
	for (int i = 0; i < t->shape.ndim; i++) h = hash(h, (uint64_t)t->shape.dim[i]);
	return h;
}

static uint32_t hash_call(uint32_t h, int op, const struct slp_infer *c)
{
	h = hash_attrs(hash(h, (uint64_t)op), c->op, c->attrs);
	for (int i = 0; i < c->nin; i++) h = hash_type(h, &c->in[i]);
	for (int i = 0; i < c->nout; i++) h = hash_type(h, &c->out[i]);
	return h;
}

static bool has_cuda(const struct slp_infer *c)
{
	const struct slp_type *t = c->nin ? &c->in[0] : &c->out[0];
	return c->op->cuda && (c->op->cuda_dtypes & SLP_DTYPE(t->dtype));
}

/* Room for a record at the end of the segment, with its inner pointers set; NULL without memory. */
static struct slp_record *record_new(struct slp_segment *seg, const struct slp_infer *c)
{
	size_t n = (size_t)(c->nin + c->nout);
	size_t places = align(sizeof(struct slp_record), 16), views = align(places + n * sizeof(struct slp_place), 16);
	size_t attrs = align(views + n * sizeof(struct slp_view), 16), size = align(attrs + c->op->attrs_size, 16);
	if (seg->used + size > seg->capacity) return NULL;
	char *p = seg->records + seg->used;
	struct slp_record *r = (struct slp_record *)p;
	*r = (struct slp_record){.size = size, .nin = c->nin, .nout = c->nout, .at = c->at,
				 .places = (void *)(p + places), .views = (void *)(p + views), .attrs = p + attrs};
	if (c->op->attrs_size) memcpy(r->attrs, c->attrs, c->op->attrs_size);
	seg->used += size;
	return r;
}

/* Records hold pointers into their own memory: it must not move once the first lies there. */
static bool reserve(struct slp_segment *seg, const struct slp_infer *c)
{
	size_t n = (size_t)(c->nin + c->nout);
	size_t size = sizeof(struct slp_record) + n * (sizeof(struct slp_place) + sizeof(struct slp_view)) +
		      c->op->attrs_size + 80;
	if (seg->used + size <= seg->capacity) return true;
	if (seg->nops) return false;
	size_t capacity = size > 16384 ? size : 16384;
	char *p = malloc(capacity);
	if (!p) return false;
	free(seg->records);
	seg->records = p;
	seg->capacity = capacity;
	return true;
}

static bool set_operand(struct slp_segment *seg, struct slp_record *r, int i, const struct slp_operand *o)
{
	int slot = slot_of(seg, o->storage);
	r->places[i] = (struct slp_place){slot, o->offset};
	r->views[i] = (struct slp_view){NULL, o->type};
	return slot >= 0;
}

static bool covers(const struct slp_operand *o)
{
	return o->offset == 0 && (size_t)sl_shape_size(o->type.shape) * sl_dtype_size(o->type.dtype) == o->storage->bytes;
}

static bool append_operands(struct slp_segment *seg, struct slp_record *r, const struct slp_infer *c,
			    const struct slp_operand *in, const struct slp_operand *out, bool inplace)
{
	for (int i = 0; i < c->nin; i++) {
		if (!set_operand(seg, r, i, &in[i])) return false;
		access_slot(&seg->slots[r->places[i].slot], true, slp_input_is_written(c->op, i));
	}
	for (int i = 0; i < c->nout; i++) {
		if (!set_operand(seg, r, c->nin + i, &out[i])) return false;
		struct slp_slot *slot = &seg->slots[r->places[c->nin + i].slot];
		access_slot(slot, inplace || !covers(&out[i]), true);
	}
	return true;
}

static int op_number(const struct sl_op *op)
{
	static _Thread_local const struct sl_op *last;
	static _Thread_local int number;
	if (op == last) return number;
	for (int i = 0; slp_ops[i]; i++)
		if (slp_ops[i] == op) {
			last = op;
			return number = i;
		}
	return -1;
}

static enum sl_status append(struct slp_segment *seg, const struct slp_infer *c, const struct slp_operand *in,
			     const struct slp_operand *out, bool inplace, double flops)
{
	int op = op_number(c->op);
	if (op < 0) return slp_error_set(SL_EINTERNAL, "%s is not in codelets/ops.def", c->op->name);
	struct slp_record *r = record_new(seg, c);
	if (!r || !append_operands(seg, r, c, in, out, inplace)) return slp_error_set(SL_ENOMEM, "no memory for a segment");
	r->op = seg->op = op;
	size_t scratch = c->op->scratch ? c->op->scratch(c) : 0;
	if (scratch > seg->op_scratch) seg->op_scratch = scratch;
	seg->cuda = (seg->nops ? seg->cuda : true) && has_cuda(c);
	seg->footprint = hash_call(seg->nops ? seg->footprint : 0, r->op, c);
	seg->flops += flops;
	seg->nops++;
	SLP_COUNT(ops);
	return SL_OK;
}

static double default_bytes(const struct slp_infer *c)
{
	double sum = 0;
	for (int i = 0; i < c->nin; i++) sum += (double)sl_shape_size(c->in[i].shape) * (double)sl_dtype_size(c->in[i].dtype);
	for (int i = 0; i < c->nout; i++) sum += (double)sl_shape_size(c->out[i].shape) * (double)sl_dtype_size(c->out[i].dtype);
	return sum;
}

static bool is_small(const struct slp_infer *c, double flops)
{
	return slp_engine.config.bulk > 1 && flops <= small_flops && c->nin + c->nout <= 16 &&
	       (c->op->bytes ? c->op->bytes(c) : default_bytes(c)) <= small_bytes;
}

enum sl_status slp_submit(const struct slp_infer *call, const struct slp_operand *in, const struct slp_operand *out,
			  sl_device device, bool inplace)
{
	double flops = call->op->flops ? call->op->flops(call) : 0;
	bool small = is_small(call, flops);
	if (open_segment && (!small || !sl_device_equal(device, open_segment->device) || !reserve(open_segment, call)))
		slp_flush();
	if (!open_segment) {
		open_segment = slp_segment_new();
		if (!open_segment || !reserve(open_segment, call)) return slp_error_set(SL_ENOMEM, "no memory for a segment");
		open_segment->device = device;
	}
	enum sl_status s = append(open_segment, call, in, out, inplace, flops);
	if (s != SL_OK) return s;
	if (!small || open_segment->nops >= slp_engine.config.bulk || open_segment->nslots >= MAX_SLOTS) slp_flush();
	return SL_OK;
}

/* ---- submitting -------------------------------------------------------------------------------------------------- */

/* Decides where the values of a slot lie: results that nobody holds any more stay in scratch. */
static bool place_slot(struct slp_segment *seg, struct slp_slot *slot)
{
	struct slp_storage *s = slot->storage;
	if (!s->buffer && atomic_load(&s->refs) > 0) {
		s->buffer = slp_buffer_get(s->bytes, seg->device, false);
		if (!s->buffer) return false;
	}
	slot->buffer = s->buffer;
	slot->offset = seg->scratch;
	if (!s->buffer) seg->scratch += align(s->bytes ? s->bytes : 1, 64);
	return true;
}

static bool place_slots(struct slp_segment *seg)
{
	if (!grow((void **)&seg->buffers, &seg->max_buffers, seg->nslots, sizeof *seg->buffers)) return false;
	for (int i = 0; i < seg->nslots; i++) {
		struct slp_slot *slot = &seg->slots[i];
		if (!place_slot(seg, slot)) return false;
		if (!slot->buffer) continue;
		slot->index = seg->nbuffers;
		seg->buffers[seg->nbuffers++] = slot->buffer;
		atomic_fetch_add(&slot->buffer->pending, 1);
	}
	return true;
}

/* Takes the storages out of the open segment; those that nobody holds go. */
static void close_slots(struct slp_segment *seg)
{
	for (int i = 0; i < seg->nslots; i++) {
		struct slp_storage *s = seg->slots[i].storage;
		s->slot = -1;
		if (atomic_load(&s->refs) == 0) storage_free(s);
	}
}

static void segment_done(void *arg)
{
	struct slp_segment *seg = arg;
	for (int i = 0; i < seg->nbuffers; i++) slp_buffer_done(seg->buffers[i]);
	slp_segment_free(seg);
	SLP_COUNT(finished);
	slp_runahead_leave();
}

/* The task's buffers: within the task where they fit, else in arrays that StarPU frees with it. */
static bool task_buffers(struct starpu_task *task, struct slp_segment *seg, starpu_data_handle_t scratch)
{
	int n = seg->nbuffers + (scratch ? 1 : 0);
	starpu_data_handle_t *handles = task->handles;
	enum starpu_data_access_mode *modes = task->modes;
	if (n > STARPU_NMAXBUFS) {
		handles = task->dyn_handles = malloc((size_t)n * sizeof *handles);
		modes = task->dyn_modes = malloc((size_t)n * sizeof *modes);
		if (!handles || !modes) return false;
	}
	for (int i = 0; i < seg->nslots; i++) {
		const struct slp_slot *slot = &seg->slots[i];
		if (!slot->buffer) continue;
		handles[slot->index] = slot->buffer->handle;
		modes[slot->index] = slot->mode;
	}
	seg->scratch_index = scratch ? n - 1 : -1;
	if (scratch) {
		handles[n - 1] = scratch;
		modes[n - 1] = STARPU_SCRATCH;
	}
	task->nbuffers = n;
	return true;
}

static struct starpu_task *make_task(struct slp_segment *seg)
{
	size_t need = align(seg->scratch, 64) + seg->op_scratch;
	starpu_data_handle_t scratch = need ? slp_buffer_scratch(need + 64) : NULL;
	struct starpu_task *task = starpu_task_create();
	if (!task || (need && !scratch) || !task_buffers(task, seg, scratch)) return NULL;
	task->cl = slp_codelet_of(seg->nops == 1 ? seg->op : -1);
	task->name = task->cl->name;
	task->cl_arg = seg;
	task->cl_arg_size = sizeof *seg;
	task->flops = seg->flops;
	task->callback_func = segment_done;
	task->callback_arg = seg;
	slp_device_place(task, seg->device, seg->cuda);
	return task;
}

/* A segment that could not be submitted: its results are spoilt. */
static void give_up(struct slp_segment *seg, enum sl_status status, const char *why)
{
	char text[512];
	const struct slp_record *r = slp_record_first(seg);
	snprintf(text, sizeof text, "%s at %s: %s", slp_ops[r->op]->name, r->at, why);
	uint32_t fault = slp_fault_add(status, text);
	for (int i = 0; i < seg->nslots; i++)
		if (seg->slots[i].buffer && seg->slots[i].mode & STARPU_W) atomic_store(&seg->slots[i].buffer->fault, fault);
	segment_done(seg);
}

void slp_flush(void)
{
	struct slp_segment *seg = open_segment;
	if (!seg) return;
	open_segment = NULL;
	slp_runahead_wait();
	bool placed = place_slots(seg);
	slp_runahead_enter();
	close_slots(seg);
	struct starpu_task *task = placed ? make_task(seg) : NULL;
	SLP_COUNT(segments);
	if (!task) {
		give_up(seg, SL_ENOMEM, "no memory for the task");
		return;
	}
	int ret = starpu_task_submit(task);
	if (ret) {
		task->destroy = 0;
		starpu_task_destroy(task);
		give_up(seg, SL_EDEVICE, "no worker can run it where its tensors live");
	}
	if (atomic_load_explicit(&slp_counters.segments, memory_order_relaxed) % 64 == 0) slp_stats_sample();
}

/* ---- their memory ------------------------------------------------------------------------------------------------ */

static struct {
	pthread_mutex_t lock;
	struct slp_segment *list;
} spare = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct slp_segment *slp_segment_new(void)
{
	pthread_mutex_lock(&spare.lock);
	struct slp_segment *s = spare.list;
	if (s) spare.list = s->next;
	pthread_mutex_unlock(&spare.lock);
	if (!s && !(s = calloc(1, sizeof *s))) return NULL;
	s->used = s->scratch = s->op_scratch = 0;
	s->nslots = s->nops = s->nbuffers = 0;
	s->footprint = 0;
	s->flops = 0;
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
		free(s->records);
		free(s->slots);
		free(s->buffers);
		free(s);
	}
	slp_storages_clear();
}
