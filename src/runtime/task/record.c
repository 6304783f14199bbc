/* Records: calls prepared for a worker, with the addresses of their operands, and the resources that a list of them
 * needs. */
#include <stdlib.h>
#include <string.h>

#include "runtime/fault.h"
#include "runtime/task/code.h"
#include "runtime/task/record.h"

void slp_slot_access(struct slp_slot *slot, bool reads, bool writes)
{
	if (reads && !(slot->known && slot->mode & STARPU_W)) slot->mode |= STARPU_R;
	if (writes) slot->mode |= STARPU_W;
	slot->known = true;
}

/* ---- footprints -------------------------------------------------------------------------------------------------- */

static uint32_t hash(uint32_t h, uint64_t v)
{
	uint64_t x = (h ^ v) * 0x9E3779B97F4A7C15u;
	return (uint32_t)(x ^ x >> 32);
}

/* By its name: its place in the list of operations changes.  FNV-1a. */
static uint32_t hash_op(int op)
{
	static _Atomic uint32_t known[SLP_MAX_OPS];
	uint32_t h = atomic_load_explicit(&known[op], memory_order_relaxed);
	if (h) return h;
	h = 2166136261u;
	for (const char *p = slp_ops[op]->name; *p; p++) h = (h ^ (unsigned char)*p) * 16777619u;
	atomic_store_explicit(&known[op], h, memory_order_relaxed);
	return h;
}

static uint32_t hash_attrs(uint32_t h, const struct sl_op *op, const void *attrs)
{
	for (const struct slp_attr *a = op->attr_table; a && a->name; a++) {
		size_t size = slp_attr_size(a->kind);
		if (a->value_only) continue;
		for (unsigned i = 0; i < a->count; i++) {
			uint64_t v = 0;
			memcpy(&v, (const char *)attrs + a->offset + i * size, size);
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
	h = hash_attrs(hash(h, hash_op(op)), c->op, c->attrs);
	for (int i = 0; i < c->nin; i++) h = hash_type(h, &c->in[i]);
	for (int i = 0; i < c->nout; i++) h = hash_type(h, &c->out[i]);
	return h;
}

static double bytes_of(const struct slp_type *types, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += (double)sl_shape_size(types[i].shape) * (double)sl_dtype_size(types[i].dtype);
	return sum;
}

double slp_call_bytes(const struct slp_infer *c)
{
	return c->op->bytes ? c->op->bytes(c) : bytes_of(c->in, c->nin) + bytes_of(c->out, c->nout);
}

/* ---- lists of calls ---------------------------------------------------------------------------------------------- */

static bool reserve(struct slp_call_list *p, size_t size)
{
	if (p->used + size <= p->capacity) return true;
	size_t capacity = 2 * p->capacity > p->used + size ? 2 * p->capacity : p->used + size + 4096;
	char *records = slp_realloc(p->records, capacity);
	if (!records) return false;
	p->records = records;
	p->capacity = capacity;
	return true;
}

static struct slp_record *record_new(struct slp_call_list *p, const struct slp_infer *c)
{
	size_t n = (size_t)(c->nin + c->nout);
	size_t size = slp_align(sizeof(struct slp_record), 16) + slp_align(n * sizeof(struct slp_address), 16) +
	              slp_align(n * sizeof(struct slp_type), 16) + slp_align(c->op->attrs_size, 16);
	if (!reserve(p, size)) return NULL;
	struct slp_record *r = (struct slp_record *)(p->records + p->used);
	*r = (struct slp_record){.size = size, .nin = c->nin, .nout = c->nout, .at = c->at};
	memcpy(slp_record_types(r), c->in, (size_t)c->nin * sizeof *c->in);
	memcpy(slp_record_types(r) + c->nin, c->out, (size_t)c->nout * sizeof *c->out);
	if (c->op->attrs_size) memcpy(slp_record_attrs(r), c->attrs, c->op->attrs_size);
	p->used += size;
	return r;
}

struct slp_record *slp_call_list_add(struct slp_call_list *p, const struct slp_infer *c, double flops)
{
	int op = slp_op_number(c->op);
	if (op < 0) {
		slp_error_set(SL_EINTERNAL, "%s is not in the table of operations", c->op->name);
		return NULL;
	}
	struct slp_record *r = record_new(p, c);
	if (!r) {
		slp_error_set(SL_ENOMEM, "no memory for a segment");
		return NULL;
	}
	r->op = p->op = op;
	size_t scratch = slp_call_scratch(c);
	if (scratch > p->op_scratch) p->op_scratch = scratch;
	if (c->nin + c->nout > p->max_operands) p->max_operands = c->nin + c->nout;
	p->cuda = (p->nops ? p->cuda : true) && slp_has_kernel(c, SL_DEVICE_GPU);
	p->graph = (p->nops ? p->graph : true) && !c->op->no_graph;
	p->footprint = hash_call(p->nops ? p->footprint : 0, op, c);
	p->flops += flops;
	p->nops++;
	return r;
}

struct slp_record *slp_call_list_append(struct slp_call_list *p, const struct slp_call_list *more)
{
	if (!reserve(p, more->used)) return NULL;
	struct slp_record *first = (struct slp_record *)(p->records + p->used);
	memcpy(first, more->records, more->used);
	p->used += more->used;
	p->op = more->op;
	if (more->op_scratch > p->op_scratch) p->op_scratch = more->op_scratch;
	if (more->max_operands > p->max_operands) p->max_operands = more->max_operands;
	p->cuda = (p->nops ? p->cuda : true) && more->cuda;
	p->graph = (p->nops ? p->graph : true) && more->graph;
	p->footprint = p->nops ? hash(p->footprint, more->footprint) : more->footprint;
	p->flops += more->flops;
	p->nops += more->nops;
	return first;
}

void slp_call_list_clear(struct slp_call_list *p)
{
	p->used = p->op_scratch = 0;
	p->nops = p->max_operands = 0;
	p->footprint = 0;
	p->flops = 0;
}
