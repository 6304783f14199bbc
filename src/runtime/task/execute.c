/* Running segments: the two functions that all codelets share.  They pass each call its memory, skip calls that depend
 * on a failed one, and turn a kernel's failure into a fault. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/device/gpu.h"
#include "runtime/device/idle.h"
#include "runtime/device/team.h"
#include "runtime/engine.h"
#include "runtime/fault.h"
#include "runtime/memory/memory_limit.h"
#include "runtime/memory/spill.h"
#include "runtime/observe/layers.h"
#include "runtime/observe/stats.h"
#include "runtime/observe/watch.h"
#include "runtime/task/buffer.h"
#include "runtime/task/code.h"
#include "runtime/task/codelet.h"
#include "runtime/task/execute.h"
#include "runtime/task/finite.h"
#include "runtime/task/kernel_fail.h"
#include "runtime/task/run.h"
#include "runtime/task/storage.h"

_Atomic long slp_fail_kernel;
_Atomic int slp_slow_team, slp_slow_times = 1;

static const double team_flops = 1e6;        /* with less, one thread computes */
static const size_t library_room = 32 << 20; /* memory that libraries may request while a task runs */

static char *scratch_of(const struct slp_run *run)
{
	const struct slp_segment *seg = run->seg;
	if (seg->work.memory) return seg->work.memory + (size_t)slp_team_index() * seg->work.bytes;
	if (seg->scratch_index < 0) return NULL;
	uintptr_t p = STARPU_VARIABLE_GET_PTR(run->buffers[seg->scratch_index]);
	return (char *)((p + 63) & ~(uintptr_t)63);
}

static char *memory_of(const struct slp_run *run, const struct slp_slot *slot)
{
	if (slot->buffer->spilled) return slp_spill_memory(slot->buffer);
	return (char *)STARPU_VARIABLE_GET_PTR(run->buffers[slot->index]);
}

static void find_bases(struct slp_run *run)
{
	struct slp_segment *seg = run->seg;
	run->scratch = run->elsewhere ? NULL : scratch_of(run);
	for (int i = 0; i < seg->nslots; i++) {
		const struct slp_slot *slot = &seg->slots[i];
		if (!run->elsewhere) {
			char *start = slot->buffer ? memory_of(run, slot) : run->scratch;
			run->base[i] = start + slot->offset;
		}
		run->fault[i] = slot->buffer && slot->mode & STARPU_R ? atomic_load(&slot->buffer->fault) : 0;
	}
}

static void keep_faults(const struct slp_run *run)
{
	for (int i = 0; i < run->seg->nslots; i++) {
		const struct slp_slot *slot = &run->seg->slots[i];
		if (slot->buffer && slot->mode & STARPU_W) atomic_store(&slot->buffer->fault, run->fault[i]);
	}
}

/* Of operands without memory, which must not be written either. */
static uint32_t lost_fault(const struct slp_run *run, const struct slp_record *r)
{
	const struct slp_address *addresses = slp_record_addresses(r);
	for (int i = 0; i < r->nin + r->nout; i++) {
		const struct slp_buffer *b = run->seg->slots[addresses[i].slot].buffer;
		if (b && b->lost) return atomic_load(&b->fault);
	}
	return 0;
}

static uint32_t input_fault(const struct slp_run *run, const struct slp_record *r)
{
	const struct slp_address *addresses = slp_record_addresses(r);
	for (int i = r->mends; i < r->nin; i++)
		if (run->fault[addresses[i].slot]) return run->fault[addresses[i].slot];
	return run->seg->lost ? lost_fault(run, r) : 0;
}

static void set_output_faults(struct slp_run *run, const struct slp_record *r, uint32_t fault)
{
	const struct slp_address *addresses = slp_record_addresses(r);
	for (int i = 0; i < r->nin + r->nout; i++)
		if (i >= r->nin || slp_input_is_written(slp_ops[r->op], i)) run->fault[addresses[i].slot] = fault;
	if (fault) run->spoilt = true;
}

static uint32_t add_fault(const struct slp_record *r, enum sl_status status)
{
	char text[SLP_MESSAGE_MAX], worker[64] = "?", room[160] = "";
	starpu_worker_get_name(starpu_worker_get_id(), worker, sizeof worker);
	if (status == SL_ENOMEM) slp_refused_text(room);
	snprintf(text, sizeof text, "%s at %s failed on %s: %s%s%s", slp_ops[r->op]->name, r->at, worker,
	         *slp_kernel_said() ? slp_kernel_said() : sl_status_name(status), *room ? "; " : "", room);
	return slp_fault_add(status, text);
}

/* Notes a failure for the master, whose buffers these are. */
static void tell(struct slp_run *run, enum sl_status status)
{
	if (!slp_grow((void **)&run->tell, &run->max_tell, run->ntell + 1, sizeof *run->tell)) return;
	struct slp_failure *f = &run->tell[run->ntell++];
	*f = (struct slp_failure){.call = run->call, .status = status};
	snprintf(f->text, sizeof f->text, "%.*s", (int)sizeof f->text - 1, slp_kernel_said());
}

static uint32_t fail(struct slp_run *run, const struct slp_record *r, enum sl_status status)
{
	if (!run->for_master) return add_fault(r, status);
	tell(run, status);
	return 1;
}

/* A slave process's report about the call. */
static enum sl_status told(const struct slp_run *run)
{
	for (int i = 0; i < run->ntold; i++) {
		if (run->told[i].call != run->call && run->told[i].call >= 0) continue;
		slp_kernel_says(run->told[i].text);
		return run->told[i].status;
	}
	return SL_OK;
}

static bool told_to_fail(void)
{
	if (atomic_load_explicit(&slp_fail_kernel, memory_order_relaxed) <= 0) return false;
	return atomic_fetch_sub(&slp_fail_kernel, 1) == 1;
}

/* oneDNN ends a process without memory by SIGSEGV. */
static enum sl_status fail_for_room(const struct slp_kernel *k)
{
	char text[160];
	return slp_kernel_fail(k, SL_ENOMEM, "the slave process is %s", slp_memory_limit_text(library_room, text));
}

static enum sl_status call_kernel(const struct slp_run *run, const struct slp_kernel *k, const struct slp_type *types)
{
	struct slp_types sets = slp_types_of(k->nin, types, k->nout, types + k->nin);
	struct slp_choice choice = slp_kernel_for(k->op, sets, run->cuda ? SL_DEVICE_GPU : SL_DEVICE_CPU);
	slp_kernel_forget();
	if (told_to_fail()) return slp_kernel_fail(k, SL_EKERNEL, "told to fail by a test");
	if (!choice.kernel) return slp_kernel_fail(k, SL_EINTERNAL, "it has no kernel for its data types");
	if (run->no_room) return fail_for_room(k);
	struct slp_view *copies = run->views + run->max_operands;
	if (choice.promote) return slp_run_promoted(k, choice.kernel, run->cuda, copies);
	bool align = run->cuda && k->op->aligned;
	enum sl_status s = align ? slp_run_aligned(k, choice.kernel, copies) : choice.kernel(k);
	if (s != SL_EUNSUPPORTED || !k->op->declines || !run->cuda || *slp_kernel_said()) return s;
	choice = slp_promoted_kernel_for(k->op, sets, SL_DEVICE_GPU);
	return slp_run_promoted(k, choice.kernel, true, copies);
}

/* The call's attributes, changed for this submission in `patched` if they must be. */
const void *slp_run_patch_attrs(struct slp_run *run, const struct slp_record *r, char patched[SLP_MAX_ATTRS])
{
	const struct slp_segment *seg = run->seg;
	if (run->patch == seg->npatches || seg->patches[run->patch].call != run->call) return slp_record_attrs(r);
	memcpy(patched, slp_record_attrs(r), slp_ops[r->op]->attrs_size);
	for (; run->patch < seg->npatches && seg->patches[run->patch].call == run->call; run->patch++)
		memcpy(patched + seg->patches[run->patch].offset, &seg->patches[run->patch].value, sizeof(uint64_t));
	return patched;
}

void slp_run_set_views(const struct slp_run *run, const struct slp_record *r)
{
	const struct slp_address *addresses = slp_record_addresses(r);
	const struct slp_type *types = slp_record_types(r);
	for (int i = 0; i < r->nin + r->nout; i++)
		run->views[i] = (struct slp_view){run->base[addresses[i].slot] + addresses[i].offset, types[i]};
}

char *slp_run_scratch(const struct slp_run *run)
{
	return run->scratch ? run->scratch + slp_align(run->seg->scratch, 64) : NULL;
}

enum sl_status slp_run_call(struct slp_run *run, const struct slp_record *r, const void *attrs)
{
	slp_run_set_views(run, r);
	struct slp_kernel k = {.op = slp_ops[r->op],
	                       .attrs = attrs,
	                       .nin = r->nin,
	                       .nout = r->nout,
	                       .in = run->views,
	                       .out = run->views + r->nin,
	                       .scratch = slp_run_scratch(run),
	                       .stream = run->recorder ? run->recorder
	                                 : run->cuda   ? slp_gpu_stream()
	                                               : NULL,
	                       .threads = slp_team_size()};
	if (!slp_finite_wanted || run->cuda) return call_kernel(run, &k, slp_record_types(r));
	struct slp_not_finite before = slp_finite_before(&k);
	enum sl_status s = call_kernel(run, &k, slp_record_types(r));
	return s == SL_OK ? slp_finite_after(&k, before) : s;
}

static void run_record(struct slp_run *run, const struct slp_record *r)
{
	union {
		char bytes[SLP_MAX_ATTRS];
		max_align_t align;
	} patched;
	const void *attrs = slp_run_patch_attrs(run, r, patched.bytes);
	uint32_t fault = input_fault(run, r);
	if (slp_watch_deadline > 0 && !run->for_master) slp_watch_runs(run->seg, r);
	if (fault) {
		SLP_COUNT(skipped);
		set_output_faults(run, r, fault);
		return;
	}
	enum sl_status s = run->elsewhere ? told(run) : slp_run_call(run, r, attrs);
	set_output_faults(run, r, s == SL_OK ? 0 : fail(run, r, s));
}

/* ---- all calls of a segment -------------------------------------------------------------------------------------- */

static void run_calls(struct slp_run *run)
{
	find_bases(run);
	if (slp_run_as_graph(run)) {
		keep_faults(run);
		return;
	}
	const struct slp_call_list *p = run->seg->calls;
	const struct slp_record *r = slp_record_first(p);
	struct slp_laps laps = {0}; /* cleared for gcc, which warns with -flto */
	bool timed = !run->elsewhere && !run->for_master && slp_laps_wanted(run->seg, run->cuda);
	bool team = !run->cuda && p->flops > team_flops; /* libraries use it, too */
	if (timed) slp_laps_begin(&laps, run->seg, run->cuda);
	for (run->call = 0; run->call < p->nops; run->call++, r = slp_record_next(r)) {
		if (team) slp_team_used();
		run_record(run, r);
		if (timed) slp_laps_call(&laps, run->call, r);
	}
	if (timed) slp_laps_end(&laps);
	keep_faults(run);
}

static enum sl_status run_all(struct slp_run *run)
{
	union {
		char bytes[SLP_MAX_ATTRS];
		max_align_t align;
	} patched;
	const struct slp_call_list *p = run->seg->calls;
	const struct slp_record *r = slp_record_first(p);
	for (run->call = 0; run->call < p->nops; run->call++, r = slp_record_next(r)) {
		enum sl_status s = slp_run_call(run, r, slp_run_patch_attrs(run, r, patched.bytes));
		if (s == SL_OK) continue;
		const char *said = slp_kernel_said();
		return slp_error_set(s, "%s at %s failed: %s", slp_ops[r->op]->name, r->at,
		                     *said ? said : sl_status_name(s));
	}
	return SL_OK;
}

enum sl_status slp_segment_run(struct slp_segment *seg, char **base, char *scratch)
{
	enum { FEW = 64 };
	struct slp_view few[FEW];
	int most = seg->calls->max_operands;
	struct slp_view *views = 2 * most > FEW ? slp_try_malloc(2 * (size_t)most * sizeof *views) : few;
	if (!views) return slp_error_set(SL_ENOMEM, "no memory for the operands of a call");
	int threads = omp_get_max_threads(); /* libraries read it */
	omp_set_num_threads(slp_team_size());
	struct slp_run run = {.seg = seg, .base = base, .scratch = scratch, .views = views, .max_operands = most};
	enum sl_status s = run_all(&run);
	omp_set_num_threads(threads);
	if (views != few) free(views);
	return s;
}

/* Without memory to run, or the values that it reads: everything it writes is spoilt. */
static void spoil(struct slp_run *run, enum sl_status status, const char *why)
{
	run->call = -1;
	slp_kernel_forget();
	if (why) slp_kernel_says(why);
	uint32_t fault = fail(run, slp_record_first(run->seg->calls), status);
	for (int i = 0; i < run->seg->nbuffers; i++) atomic_store(&run->seg->buffers[i]->fault, fault);
	run->spoilt = true;
}

static void run_segment(struct slp_run *run)
{
	enum { FEW = 256, FEW_VIEWS = 64 };
	char *few_bases[FEW];
	uint32_t few_faults[FEW];
	struct slp_view few_views[FEW_VIEWS];
	struct slp_segment *seg = run->seg;
	bool many = seg->nslots > FEW || 2 * seg->calls->max_operands > FEW_VIEWS;
	size_t slots = (size_t)seg->nslots, views = 2 * (size_t)seg->calls->max_operands * sizeof(struct slp_view);
	char *memory = many ? slp_try_malloc(slots * (sizeof(char *) + sizeof(uint32_t)) + views + 64) : NULL;
	run->base = few_bases;
	run->fault = few_faults;
	run->views = few_views;
	run->max_operands = seg->calls->max_operands;
	if (memory) {
		run->views = (struct slp_view *)memory;
		run->base = (char **)(memory + views);
		run->fault = (uint32_t *)(run->base + slots);
	}
	if (many && !memory) spoil(run, SL_ENOMEM, NULL);
	else run_calls(run);
	free(memory);
}

/* The factor by which this worker is slowed down: for tests. */
static int slowness(void)
{
	int times = atomic_load_explicit(&slp_slow_times, memory_order_relaxed);
	if (times <= 1 || slp_engine.team_worker[atomic_load(&slp_slow_team)] != starpu_worker_get_id()) return 1;
	return times;
}

static double own_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Measured in this thread's processor time: other threads slow all workers alike. */
static void run_slowly(struct slp_run *run, int times)
{
	double begin = own_seconds();
	run_segment(run);
	double end = begin + times * (own_seconds() - begin);
	while (own_seconds() < end) continue;
}

static void run_here(struct slp_segment *seg, void *buffers[], bool cuda)
{
	struct slp_run run = {.seg = seg, .buffers = buffers, .cuda = cuda};
	char why[320];
	int times = slowness();
	seg->here = true;
	enum sl_status there = slp_spill_enter(seg, why, sizeof why);
	if (there != SL_OK) spoil(&run, there, why);
	else if (times > 1) run_slowly(&run, times);
	else run_segment(&run);
	slp_spill_leave(seg);
	if (run.spoilt) slp_task_time_is_void(starpu_task_get_current());
}

/* The argument is the segment; where there are slave processes, the message that they would get. */
static struct slp_segment *segment_of(void *arg)
{
	return slp_engine.nslaves ? starpu_task_get_current()->callback_arg : arg;
}

void slp_cpu_segment(void *buffers[], void *arg)
{
	struct slp_segment *seg = segment_of(arg);
	slp_idle_over();
	slp_team_enter();
	run_here(seg, buffers, false);
}

void slp_cuda_segment(void *buffers[], void *arg)
{
	run_here(segment_of(arg), buffers, true);
}

int slp_segment_run_for_master(struct slp_segment *seg, void *buffers[], struct slp_failure **failures)
{
	struct slp_run run = {.seg = seg,
	                      .buffers = buffers,
	                      .for_master = true,
	                      .no_room = !slp_memory_limit_allows_now(library_room)};
	slp_team_enter();
	run_segment(&run);
	*failures = run.tell;
	return run.ntell;
}

void slp_segment_ran_elsewhere(struct slp_segment *seg, const struct slp_failure *failures, int count)
{
	struct slp_run run = {.seg = seg, .told = failures, .ntold = count, .elsewhere = true};
	run_segment(&run);
}
