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

bool slp_code_call(struct slp_code *code, const struct slp_infer *call, const struct slp_place *places)
{
	struct slp_record *r = slp_program_add(&code->program, call, call->op->flops ? call->op->flops(call) : 0);
	if (!r || !(r->at = keep_place(code, call->at))) return false;
	int n = call->nin + call->nout;
	memcpy(slp_record_places(r), places, (size_t)n * sizeof *places);
	for (int i = 0; i < n; i++) {
		bool in = i < call->nin;
		slp_slot_access(&code->slots[places[i].slot], in, !in || slp_input_is_written(call->op, i));
	}
	return true;
}

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
		if (seg->slots[i].mode & STARPU_W) atomic_fetch_add_explicit(&s->version, 1, memory_order_relaxed);
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

enum sl_status slp_code_submit(struct slp_code *code, const struct slp_binding *bindings, sl_device device,
			       const struct slp_patch *patches, int npatches)
{
	slp_flush(); /* what is bound may be computed there */
	struct slp_segment *seg = slp_segment_new();
	if (!seg || !copy_patches(seg, patches, npatches) || !bind(seg, code, bindings)) {
		if (seg) slp_segment_free(seg);
		return slp_error_set(SL_ENOMEM, "no memory for a segment");
	}
	seg->program = &code->program;
	seg->code = code;
	atomic_fetch_add(&code->refs, 1);
	seg->scratch = code->scratch;
	seg->device = device;
	atomic_fetch_add_explicit(&slp_counters.ops, (uint64_t)code->program.nops, memory_order_relaxed);
	slp_segment_submit(seg);
	return SL_OK;
}
