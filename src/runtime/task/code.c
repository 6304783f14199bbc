/* Prepared code: calls whose operands have fixed addresses, submitted repeatedly with other storages.  Plans consist of
 * it. */
#include <stdlib.h>
#include <string.h>

#include "runtime/device/cuda_graph.h"
#include "runtime/device/auto.h"
#include "runtime/engine.h"
#include "runtime/fault.h"
#include "runtime/observe/stats.h"
#include "runtime/simulation/simulate.h"
#include "runtime/task/buffer.h"
#include "runtime/task/code.h"
#include "runtime/task/codelet.h"
#include "runtime/task/priority.h"
#include "runtime/task/segment.h"
#include "runtime/task/storage.h"

struct slp_code {
	atomic_int refs; /* of the plan, and of each segment in flight */
	struct slp_call_list calls;
	struct slp_slot *slots;
	int nslots, max_slots;
	size_t scratch;
	double bytes;      /* moved by all calls */
	int level;         /* of its task (priority.h) */
	char *name;        /* its origin, for people; NULL: unknown */
	char **call_sites; /* of the calls, in the user's program: copies */
	int ncall_sites, max_call_sites;
};

double slp_call_gpu_seconds(const struct slp_infer *c)
{
	double described = slp_simulated_call_seconds(c);
	return described > 0 ? described : slp_gpu_seconds(c->op->flops ? c->op->flops(c) : 0, slp_call_bytes(c), 1);
}

struct slp_code *slp_code_new(void)
{
	struct slp_code *code = slp_calloc(1, sizeof *code);
	if (!code) return NULL;
	atomic_init(&code->refs, 1);
	code->calls.code = slp_graph_code();
	return code;
}

void slp_code_release(struct slp_code *code)
{
	if (!code || atomic_fetch_sub(&code->refs, 1) != 1) return;
	slp_graph_forget(code->calls.code);
	for (int i = 0; i < code->ncall_sites; i++) free(code->call_sites[i]);
	free(code->call_sites);
	free(code->name);
	free(code->calls.records);
	free(code->slots);
	free(code);
}

int slp_code_slot(struct slp_code *code)
{
	if (!slp_grow((void **)&code->slots, &code->max_slots, code->nslots + 1, sizeof *code->slots)) return -1;
	code->slots[code->nslots] = (struct slp_slot){0};
	return code->nslots++;
}

int slp_code_scratch_slot(struct slp_code *code, size_t offset, size_t bytes)
{
	int slot = slp_code_slot(code);
	if (slot < 0) return -1;
	code->slots[slot].offset = offset;
	static const size_t most = (size_t)1 << 55; /* no machine has as much, and it times all teams does not wrap */
	size_t end;
	if (__builtin_add_overflow(offset, bytes, &end) || end > most) end = most;
	if (end > code->scratch) code->scratch = slp_align(end, 64);
	return slot;
}

/* A copy of the call site that lives as long as the code: faults name it. */
static const char *keep_call_site(struct slp_code *code, const char *at)
{
	if (code->ncall_sites && at && !strcmp(code->call_sites[code->ncall_sites - 1], at))
		return code->call_sites[code->ncall_sites - 1];
	if (!slp_grow((void **)&code->call_sites, &code->max_call_sites, code->ncall_sites + 1,
	              sizeof *code->call_sites))
		return NULL;
	char *copy = slp_strdup(at ? at : "?");
	if (copy) code->call_sites[code->ncall_sites++] = copy;
	return copy;
}

void slp_code_name(struct slp_code *code, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	code->name = slp_try_format(format, args);
	va_end(args);
}

void slp_code_set_level(struct slp_code *code, int level)
{
	code->level = level;
}

bool slp_code_writes(const struct slp_code *code, int slot)
{
	return code->slots[slot].mode & STARPU_W;
}

const char *slp_code_name_of(const struct slp_segment *seg, const struct slp_record *r)
{
	for (int i = 0; i < seg->ncodes; i++) /* records that were copied refer to the same call sites */
		for (int k = 0; k < seg->codes[i]->ncall_sites; k++)
			if (seg->codes[i]->call_sites[k] == r->at) return seg->codes[i]->name;
	return NULL;
}

bool slp_code_call(struct slp_code *code, const struct slp_infer *call, const struct slp_address *addresses)
{
	struct slp_record *r = slp_call_list_add(&code->calls, call, call->op->flops ? call->op->flops(call) : 0);
	if (!r || !(r->at = keep_call_site(code, call->at))) return false;
	code->bytes += slp_call_bytes(call);
	int n = call->nin + call->nout;
	memcpy(slp_record_addresses(r), addresses, (size_t)n * sizeof *addresses);
	for (int i = 0; i < n; i++) {
		bool in = i < call->nin;
		slp_slot_access(&code->slots[addresses[i].slot], in, !in || slp_input_is_written(call->op, i));
	}
	return true;
}

/* The segment keeps the code while it runs. */
static bool hold(struct slp_segment *seg, struct slp_code *code)
{
	if (seg->ncodes && seg->codes[seg->ncodes - 1] == code) return true;
	if (!slp_grow((void **)&seg->codes, &seg->max_codes, seg->ncodes + 1, sizeof *seg->codes)) return false;
	seg->codes[seg->ncodes++] = code;
	atomic_fetch_add(&code->refs, 1);
	return true;
}

static enum sl_status no_memory(void)
{
	return slp_error_set(SL_ENOMEM, "no memory for a segment");
}

static void count_writes(struct slp_storage *s, const struct slp_slot *slot)
{
	if (slot->mode & STARPU_W) atomic_fetch_add_explicit(&s->version, 1, memory_order_relaxed);
}

/* ---- as a separate segment --------------------------------------------------------------------------------------- */

/* Gives a segment the code's slots, bound to storages; false without memory. */
static bool bind(struct slp_segment *seg, const struct slp_code *code, const struct slp_binding *bindings)
{
	if (!slp_segment_reserve(seg, code->nslots)) return false;
	seg->nslots = code->nslots;
	memcpy(seg->slots, code->slots, (size_t)code->nslots * sizeof *seg->slots);
	for (int i = 0; i < code->nslots; i++) {
		struct slp_storage *s = bindings[i].storage;
		if (!s) continue;
		seg->slots[i].storage = s;
		seg->slots[i].offset = bindings[i].offset;
		if (s->slot < 0) s->slot = i;
		count_writes(s, &seg->slots[i]);
	}
	return true;
}

static bool copy_patches(struct slp_segment *seg, const struct slp_patch *patches, int npatches)
{
	if (!slp_grow((void **)&seg->patches, &seg->max_patches, npatches, sizeof *patches)) return false;
	if (npatches) memcpy(seg->patches, patches, (size_t)npatches * sizeof *patches);
	seg->npatches = npatches;
	return true;
}

static enum sl_status submit_alone(struct slp_code *code, const struct slp_binding *bindings, sl_device device,
                                   const struct slp_patch *patches, int npatches)
{
	slp_flush(); /* bound values may be computed there */
	struct slp_segment *seg = slp_segment_new();
	if (!seg || !copy_patches(seg, patches, npatches) || !hold(seg, code) || !bind(seg, code, bindings)) {
		if (seg && seg->ncodes) slp_code_release(code);
		if (seg) slp_segment_free(seg);
		return no_memory();
	}
	seg->calls = &code->calls;
	seg->scratch = code->scratch;
	seg->device = device;
	seg->level = slp_level < SLP_LEVEL_SUM ? code->level : slp_level;
	slp_segment_submit(seg);
	return SL_OK;
}

/* ---- together with others ---------------------------------------------------------------------------------------- */

/* The cost of a few tasks: below it, its calls are better joined with the calls before and after, unless a CUDA graph
 * launches them together. */
static bool is_small(const struct slp_code *code, sl_device device)
{
	bool graph = device.kind == SL_DEVICE_GPU && slp_may_be_graph(&code->calls);
	return !graph && slp_engine.config.bulk > 1 && code->calls.flops <= 1e6 && code->bytes <= 1 << 20 &&
	       code->calls.nops <= slp_engine.config.bulk / 2 && code->nslots <= 64;
}

/* The open segment's slots for those of the code.  Scratch may be that of the previous run: runs do not overlap. */
static void map_slots(struct slp_segment *seg, const struct slp_code *code, const struct slp_binding *bindings,
                      int *map)
{
	for (int i = 0; i < code->nslots; i++) {
		const struct slp_slot *slot = &code->slots[i];
		struct slp_storage *s = bindings[i].storage;
		if (s) {
			map[i] = slp_segment_slot(seg, s);
			slp_slot_access(&seg->slots[map[i]], slot->mode & STARPU_R, slot->mode & STARPU_W);
			count_writes(s, slot);
		} else {
			seg->slots[map[i] = seg->nslots++] = (struct slp_slot){.offset = slot->offset};
		}
	}
	if (code->scratch > seg->scratch) seg->scratch = code->scratch;
}

/* Gives the copies of the code's records, from r on, their addresses and attributes in this run. */
static void adapt_records(struct slp_record *r, const struct slp_code *code, const struct slp_binding *bindings,
                          const int *map, const struct slp_patch *patch, int npatches)
{
	for (int call = 0; call < code->calls.nops; call++, r = slp_record_next(r)) {
		struct slp_address *addresses = slp_record_addresses(r);
		for (int i = 0; i < r->nin + r->nout; i++) {
			int slot = addresses[i].slot;
			addresses[i].slot = map[slot];
			if (bindings[slot].storage) addresses[i].offset += bindings[slot].offset;
		}
		for (; npatches && patch->call == call; patch++, npatches--)
			memcpy((char *)slp_record_attrs(r) + patch->offset, &patch->value, sizeof patch->value);
	}
}

static enum sl_status submit_along(struct slp_code *code, const struct slp_binding *bindings, sl_device device,
                                   const struct slp_patch *patches, int npatches)
{
	int map[64];
	struct slp_segment *seg = slp_segment_open(device);
	if (!seg) return sl_error();
	/* Steps that can fail come first: then the segment is unchanged. */
	if (!slp_segment_reserve(seg, seg->nslots + code->nslots) || !hold(seg, code)) return no_memory();
	struct slp_record *first = slp_call_list_append(&seg->own, &code->calls);
	if (!first) return no_memory();
	slp_segment_raise(seg, slp_level);
	map_slots(seg, code, bindings, map);
	adapt_records(first, code, bindings, map, patches, npatches);
	slp_segment_close_if_full();
	return SL_OK;
}

void slp_code_work(const struct slp_code *code, double *flops, double *bytes)
{
	*flops += code->calls.flops;
	*bytes += code->bytes;
}

enum sl_status slp_code_run(const struct slp_code *code, char **base, struct slp_patch *patches, int npatches,
                            char *scratch)
{
	for (int i = 0; i < code->nslots; i++)
		if (!base[i]) base[i] = scratch + code->slots[i].offset;
	struct slp_segment seg = {.calls = &code->calls,
	                          .slots = code->slots,
	                          .nslots = code->nslots,
	                          .patches = patches,
	                          .npatches = npatches,
	                          .scratch = code->scratch};
	atomic_fetch_add_explicit(&slp_counters.ops, (uint64_t)code->calls.nops, memory_order_relaxed);
	return slp_segment_run(&seg, base, scratch);
}

size_t slp_code_scratch(const struct slp_code *code)
{
	return slp_scratch_bytes(code->scratch, code->calls.op_scratch);
}

void slp_code_share_scratch(struct slp_code *code, size_t bytes)
{
	size_t own = slp_code_scratch(code);
	if (own && bytes > own) code->scratch = (bytes - 64 - code->calls.op_scratch) / 64 * 64;
}

void slp_code_turn(struct slp_code *code, enum slp_turn turn)
{
	code->calls.turn = turn;
}

/* Its plan and each segment in flight hold it. */
bool slp_code_in_flight(const struct slp_code *code)
{
	return atomic_load(&code->refs) > 1;
}

bool slp_code_find_scratch(const struct slp_code *code)
{
	struct slp_scratch scratch;
	size_t bytes = slp_code_scratch(code);
	return slp_scratch_get(bytes, &scratch) || slp_no_memory(bytes) == SL_OK;
}

enum sl_status slp_code_submit(struct slp_code *code, const struct slp_binding *bindings, sl_device device,
                               const struct slp_patch *patches, int npatches)
{
	atomic_fetch_add_explicit(&slp_counters.ops, (uint64_t)code->calls.nops, memory_order_relaxed);
	if (is_small(code, device)) return submit_along(code, bindings, device, patches, npatches);
	return submit_alone(code, bindings, device, patches, npatches);
}
