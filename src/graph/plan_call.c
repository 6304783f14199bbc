/* Plans in the calling thread, on plain memory.  For small ones a task, its handles and the wait for it cost more than they
 * do.  Large ones are computed by the OpenMP threads of the calling thread: those that a program, or another library, uses for
 * its own work beside them do not have to share the cores with those of a worker then. */
#include <stdlib.h>
#include <string.h>

#include "graph/plan.h"
#include "runtime/device/team.h"
#include "runtime/engine.h"
#include "runtime/fault.h"
#include "runtime/task/buffer.h"
#include "runtime/task/code.h"
#include "runtime/task/record.h"
#include "runtime/uncancelled.h"
#include "tensor/own.h"

/* ---- a call --------------------------------------------------------------------------------------------------------- */

struct call {
	const char *at;
	const sl_plan *plan;
	void *const *in;
	const struct slp_setting *settings;
	int nsettings;
	char **base;     /* of a unit's slots */
	char **storages; /* of the run */
	char *scratch;   /* of a unit */
	struct slp_patch *patches;
};

/* NULL: in scratch, or no value. */
static char *memory_of(const struct call *c, struct slp_location location)
{
	switch (location.kind) {
	case SLP_LOCATION_INPUT: return c->in[location.index];
	case SLP_LOCATION_TENSOR: return c->plan->constants[location.index];
	case SLP_LOCATION_STORAGE: return c->storages[location.index];
	default: return NULL;
	}
}

static enum sl_status run_unit(const struct call *c, const struct slp_unit *u)
{
	for (int i = 0; i < u->nslots; i++) c->base[i] = memory_of(c, u->locations[i]);
	int n = slp_plan_fill(u, NULL, c->settings, c->nsettings, c->patches);
	return slp_code_run(u->code, c->base, c->patches, n, c->scratch);
}

static void copy_results(const struct call *c, void *const *out)
{
	const struct slp_layout *l = &c->plan->layout;
	for (int i = 0; i < c->plan->graph->noutputs; i++) {
		struct slp_value v = c->plan->graph->outputs[i];
		struct slp_location location = l->location[l->root[slp_value_id(v)]];
		size_t offset = location.kind == SLP_LOCATION_STORAGE ? location.offset : 0;
		size_t bytes = slp_type_bytes(slp_value_type(c->plan->graph, v));
		const char *from = memory_of(c, location) + offset;
		if (bytes && from != out[i]) memcpy(out[i], from, bytes);
	}
}

static enum sl_status run_units(const struct call *c, void *const *out)
{
	enum sl_status s = SL_OK;
	for (int i = 0; i < c->plan->layout.nunits && s == SL_OK; i++) s = run_unit(c, &c->plan->units[i]);
	if (s == SL_OK) copy_results(c, out);
	return s;
}

/* A piece of the memory of a call, whose size so far is *size; memory NULL: it is only measured. */
static void *piece(char *memory, size_t *size, size_t bytes)
{
	void *p = memory ? memory + *size : NULL;
	*size += slp_align(bytes ? bytes : 1, 64);
	return p;
}

/* Where the caller wants the result that fills a storage; NULL: it is copied there, as kernels want aligned memory. */
static char *direct(const struct call *c, int storage, void *const *out)
{
	int i = c->plan->direct[storage];
	return i < 0 || (uintptr_t)out[i] % 64 ? NULL : out[i];
}

/* Divides memory among the parts of a call; returns how much they need. */
static size_t lay_out(struct call *c, char *memory, void *const *out)
{
	const sl_plan *p = c->plan;
	size_t size = 0, scratch = 0;
	for (int i = 0; i < p->layout.nunits; i++) {
		size_t bytes = slp_code_scratch(p->units[i].code);
		if (scratch < bytes) scratch = bytes;
	}
	c->base = piece(memory, &size, (size_t)p->max_slots * sizeof *c->base);
	c->storages = piece(memory, &size, (size_t)p->layout.nstorages * sizeof *c->storages);
	c->patches = piece(memory, &size, (size_t)p->max_fills * sizeof *c->patches);
	c->scratch = piece(memory, &size, scratch);
	for (int i = 0; i < p->layout.nstorages; i++) {
		char *storage = direct(c, i, out);
		if (!storage) storage = piece(memory, &size, p->layout.storages[i]);
		if (memory) c->storages[i] = storage;
	}
	return size;
}

static enum sl_status run_light(struct call *c, void *const *out)
{
	_Alignas(64) char few[8192];
	size_t size = lay_out(c, NULL, out);
	char *memory = size > sizeof few ? slp_scratch_take(size) : few;
	if (!memory) return slp_no_memory(size);
	lay_out(c, memory, out);
	enum sl_status s = run_units(c, out);
	if (memory != few) slp_scratch_give(memory);
	return s;
}

/* With the calling thread's team. */
static enum sl_status run_large(struct call *c, void *const *out)
{
	SLP_UNCANCELLED(); /* OpenMP's threads would wait for it for ever */
	if (!slp_team_borrow()) {
		slp_call_fail(c->at, "sl_plan_call", SL_EUNSUPPORTED,
		              "there are several teams, or OpenMP gives the calling thread another number of threads: "
		              "use sl_plan_run");
		return SL_EUNSUPPORTED;
	}
	enum sl_status s = run_light(c, out);
	slp_team_return();
	return s;
}

static bool are_given(const char *at, const char *name, void *const *memory, int n)
{
	if (n > 0 && !slp_given(at, "sl_plan_call", name, memory)) return false;
	for (int i = 0; i < n; i++)
		if (!memory[i])
			return slp_call_fail(at, "sl_plan_call", SL_EINVAL, "%s: that of %d is NULL", name, i), false;
	return true;
}

static bool may_call(const char *at, const sl_plan *plan, int nin)
{
	if (!slp_given(at, "sl_plan_call", "plan", plan) || slp_engine_need(at) != SL_OK) return false;
	if (!sl_plan_may_call(plan))
		return slp_call_fail(at, "sl_plan_call", SL_EUNSUPPORTED, "the program needs tasks: use sl_plan_run"),
		       false;
	if (nin != plan->graph->ninputs)
		return slp_call_fail(at, "sl_plan_call", SL_EINVAL, "the program takes %d inputs, got %d",
		                     plan->graph->ninputs, nin),
		       false;
	return true;
}

/* Computes a program in the calling thread, without tasks: in has the memory of the inputs, out that of the results, each
 * of the type and shape that the program was compiled for, row-major.  Results overlap neither inputs nor each other.  Inputs
 * that the program writes are written there.  No task may use the memory.  One thread computes a small program
 * (sl_plan_is_small), the calling thread's team of OpenMP's threads another one.  The first call reads the program's
 * constants.  numbers: as for sl_plan_run_with.  Several threads may call one plan at the same time.
 * SL_EUNSUPPORTED: not sl_plan_may_call, or there are several teams, or OpenMP gives the calling thread another number of
 * threads than the team has; SL_ENOMEM; SL_EINVAL: as for sl_plan_run_with; and the status of a kernel that fails, after
 * which what the program writes is spoilt.
 *
 *     float x[2] = {1, 2}, y[2];
 *     if (sl_plan_may_call(plan)) sl_plan_call(plan, SL_ARRAY(void *, x), 1, NULL, 0, SL_ARRAY(void *, y)); */
enum sl_status sl_plan_call_at(const char *at, sl_plan *plan, void *const *in, int nin,
                               const struct sl_plan_number *numbers, int count, void *const *out)
{
	SLP_CALL("sl_plan_call", at);
	struct slp_setting settings[SLP_PLAN_NUMBERS];
	if (!may_call(at, plan, nin) || !are_given(at, "memory of inputs", in, nin) ||
	    !are_given(at, "memory of results", out, plan->graph->noutputs) ||
	    !slp_plan_numbers(at, "sl_plan_call", plan, numbers, count, settings) ||
	    slp_plan_read_constants(plan) != SL_OK)
		return slp_error_take();
	struct call c = {.at = at, .plan = plan, .in = in, .settings = settings, .nsettings = count};
	enum sl_status s = plan->light ? run_light(&c, out) : run_large(&c, out);
	return s == SL_OK && sl_error() == SL_OK ? SL_OK : slp_error_take();
}
