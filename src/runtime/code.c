/* Prepared code: calls whose operands have fixed places, submitted again and again over other storages.  What plans of
 * the graph compiler are made of. */
#include <stdlib.h>
#include <string.h>

#include "runtime/segment.h"

struct slp_code {
	atomic_int refs; /* of the plan, and of each segment under way */
	struct slp_program program;
	struct slp_slot *slots;
	int nslots, max_slots;
	size_t scratch;
	double bytes;  /* moved by all calls */
	char *name;    /* what it is part of, for people; NULL: nobody said */
	char **places; /* of the calls, in the user's program: copies */
	int nplaces, max_places;
};

struct slp_code *slp_code_new(void)
{
	struct slp_code *code = calloc(1, sizeof *code);
	if (code) atomic_init(&code->refs, 1);
	return code;
}

void slp_code_release(struct slp_code *code)
{
	if (!code || atomic_fetch_sub(&code->refs, 1) != 1) return;
	for (int i = 0; i < code->nplaces; i++) free(code->places[i]);
	free(code->places);
	free(code->name);
	free(code->program.records);
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
	if (offset + bytes > code->scratch) code->scratch = slp_align(offset + bytes, 64);
	return slot;
}

/* A copy of the place that lives as long as the code: faults name it. */
static const char *keep_place(struct slp_code *code, const char *at)
{
	if (code->nplaces && at && !strcmp(code->places[code->nplaces - 1], at)) return code->places[code->nplaces - 1];
	if (!slp_grow((void **)&code->places, &code->max_places, code->nplaces + 1, sizeof *code->places)) return NULL;
	char *copy = strdup(at ? at : "?");
	if (copy) code->places[code->nplaces++] = copy;
	return copy;
}

void slp_code_name(struct slp_code *code, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	if (vasprintf(&code->name, format, args) < 0) code->name = NULL;
	va_end(args);
}

const char *slp_code_name_of(const struct slp_segment *seg, const struct slp_record *r)
{
	for (int i = 0; i < seg->ncodes; i++) /* records that were copied refer to the same places */
		for (int k = 0; k < seg->codes[i]->nplaces; k++)
			if (seg->codes[i]->places[k] == r->at) return seg->codes[i]->name;
	return NULL;
}

bool slp_code_call(struct slp_code *code, const struct slp_infer *call, const struct slp_place *places)
{
	struct slp_record *r = slp_program_add(&code->program, call, call->op->flops ? call->op->flops(call) : 0);
	if (!r || !(r->at = keep_place(code, call->at))) return false;
	code->bytes += slp_call_bytes(call);
	int n = call->nin + call->nout;
	memcpy(slp_record_places(r), places, (size_t)n * sizeof *places);
	for (int i = 0; i < n; i++) {
		bool in = i < call->nin;
		slp_slot_access(&code->slots[places[i].slot], in, !in || slp_input_is_written(call->op, i));
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

/* ---- as a segment of its own ------------------------------------------------------------------------------------- */

/* Gives a segment the code's slots, bound to storages; false without memory. */
static bool bind(struct slp_segment *seg, const struct slp_code *code, const struct slp_binding *bindings)
{
	if (!slp_grow((void **)&seg->slots, &seg->max_slots, code->nslots, sizeof *seg->slots)) return false;
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
	slp_flush(); /* what is bound may be computed there */
	struct slp_segment *seg = slp_segment_new();
	if (!seg || !copy_patches(seg, patches, npatches) || !hold(seg, code) || !bind(seg, code, bindings)) {
		if (seg && seg->ncodes) slp_code_release(code);
		if (seg) slp_segment_free(seg);
		return no_memory();
	}
	seg->program = &code->program;
	seg->scratch = code->scratch;
	seg->device = device;
	slp_segment_submit(seg);
	return SL_OK;
}

/* ---- together with others ---------------------------------------------------------------------------------------- */

/* What a few tasks cost: then its calls had better share one with what comes before and after. */
static bool is_small(const struct slp_code *code)
{
	return slp_engine.config.bulk > 1 && code->program.flops <= 1e6 && code->bytes <= 1 << 20 &&
	       code->program.nops <= slp_engine.config.bulk / 2 && code->nslots <= 64;
}

/* The open segment's slots for those of the code.  Scratch may be that of the run before: runs follow each other. */
static bool map_slots(struct slp_segment *seg, const struct slp_code *code, const struct slp_binding *bindings, int *map)
{
	for (int i = 0; i < code->nslots; i++) {
		const struct slp_slot *slot = &code->slots[i];
		struct slp_storage *s = bindings[i].storage;
		if (s) {
			if ((map[i] = slp_segment_slot(seg, s)) < 0) return false;
			slp_slot_access(&seg->slots[map[i]], slot->mode & STARPU_R, slot->mode & STARPU_W);
			count_writes(s, slot);
		} else {
			if (!slp_grow((void **)&seg->slots, &seg->max_slots, seg->nslots + 1, sizeof *seg->slots)) return false;
			seg->slots[map[i] = seg->nslots++] = (struct slp_slot){.offset = slot->offset};
		}
	}
	if (code->scratch > seg->scratch) seg->scratch = code->scratch;
	return true;
}

/* Copies of the code's records, with their places and attributes in this run. */
static bool copy_records(struct slp_segment *seg, const struct slp_code *code, const struct slp_binding *bindings,
			 const int *map, const struct slp_patch *patch, int npatches)
{
	struct slp_record *r = slp_program_append(&seg->own, &code->program);
	if (!r) return false;
	for (int call = 0; call < code->program.nops; call++, r = slp_record_next(r)) {
		struct slp_place *places = slp_record_places(r);
		for (int i = 0; i < r->nin + r->nout; i++) {
			int slot = places[i].slot;
			places[i].slot = map[slot];
			if (bindings[slot].storage) places[i].offset += bindings[slot].offset;
		}
		for (; npatches && patch->call == call; patch++, npatches--)
			memcpy((char *)slp_record_attrs(r) + patch->offset, &patch->value, sizeof patch->value);
	}
	return true;
}

static enum sl_status submit_along(struct slp_code *code, const struct slp_binding *bindings, sl_device device,
				   const struct slp_patch *patches, int npatches)
{
	int map[64];
	struct slp_segment *seg = slp_segment_open(device);
	if (!seg) return sl_error();
	if (!hold(seg, code) || !map_slots(seg, code, bindings, map)) return no_memory();
	if (!copy_records(seg, code, bindings, map, patches, npatches)) return no_memory();
	slp_segment_close_if_full();
	return SL_OK;
}

enum sl_status slp_code_submit(struct slp_code *code, const struct slp_binding *bindings, sl_device device,
			       const struct slp_patch *patches, int npatches)
{
	atomic_fetch_add_explicit(&slp_counters.ops, (uint64_t)code->program.nops, memory_order_relaxed);
	if (is_small(code)) return submit_along(code, bindings, device, patches, npatches);
	return submit_alone(code, bindings, device, patches, npatches);
}
