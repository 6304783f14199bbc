/* Running segments: the two functions that all codelets share.  They hand each call its memory, skip what depends on
 * a failed call, and turn a kernel's failure into a fault. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/segment.h"

_Atomic long slp_fail_kernel;

static _Thread_local char kernel_message[512];

enum sl_status slp_kernel_fail(const struct slp_kernel *k, enum sl_status status, const char *format, ...)
{
	(void)k;
	va_list args;
	va_start(args, format);
	vsnprintf(kernel_message, sizeof kernel_message, format, args);
	va_end(args);
	return status;
}

/* What one segment knows while it runs. */
struct run {
	struct slp_segment *seg;
	void **buffers; /* StarPU's interfaces */
	bool cuda;
	char *scratch;
	char **base;     /* of each slot */
	uint32_t *fault; /* of each slot */
	bool spoilt;
};

static void find_bases(struct run *run)
{
	struct slp_segment *seg = run->seg;
	run->scratch = NULL;
	if (seg->scratch_index >= 0) {
		uintptr_t p = STARPU_VARIABLE_GET_PTR(run->buffers[seg->scratch_index]);
		run->scratch = (char *)((p + 63) & ~(uintptr_t)63);
	}
	for (int i = 0; i < seg->nslots; i++) {
		const struct slp_slot *slot = &seg->slots[i];
		run->base[i] = slot->buffer ? (char *)STARPU_VARIABLE_GET_PTR(run->buffers[slot->index])
					    : run->scratch + slot->offset;
		run->fault[i] = slot->buffer && slot->mode & STARPU_R ? atomic_load(&slot->buffer->fault) : 0;
	}
}

static void keep_faults(const struct run *run)
{
	for (int i = 0; i < run->seg->nslots; i++) {
		const struct slp_slot *slot = &run->seg->slots[i];
		if (slot->buffer && slot->mode & STARPU_W) atomic_store(&slot->buffer->fault, run->fault[i]);
	}
}

static uint32_t input_fault(const struct run *run, const struct slp_record *r)
{
	for (int i = 0; i < r->nin; i++)
		if (run->fault[r->places[i].slot]) return run->fault[r->places[i].slot];
	return 0;
}

static void set_output_faults(struct run *run, const struct slp_record *r, uint32_t fault)
{
	for (int i = 0; i < r->nin + r->nout; i++)
		if (i >= r->nin || slp_input_is_written(slp_ops[r->op], i)) run->fault[r->places[i].slot] = fault;
	if (fault) run->spoilt = true;
}

static uint32_t add_fault(const struct slp_record *r, enum sl_status status)
{
	char text[SLP_MESSAGE_MAX], worker[64] = "?";
	starpu_worker_get_name(starpu_worker_get_id(), worker, sizeof worker);
	snprintf(text, sizeof text, "%s at %s failed on %s: %s", slp_ops[r->op]->name, r->at, worker,
		 kernel_message[0] ? kernel_message : sl_status_name(status));
	return slp_fault_add(status, text);
}

static bool told_to_fail(void)
{
	if (atomic_load_explicit(&slp_fail_kernel, memory_order_relaxed) <= 0) return false;
	return atomic_fetch_sub(&slp_fail_kernel, 1) == 1;
}

static enum sl_status call_kernel(const struct run *run, const struct slp_kernel *k)
{
	const struct sl_op *op = k->op;
	const struct slp_view *first = k->nin ? &k->in[0] : &k->out[0];
	kernel_message[0] = '\0';
	if (told_to_fail()) return slp_kernel_fail(k, SL_EKERNEL, "told to fail by a test");
	if (run->cuda) return op->cuda(k);
	bool fast = op->cpu && (op->cpu_dtypes & SLP_DTYPE(first->type.dtype));
	return fast ? op->cpu(k) : op->ref(k);
}

static void run_record(struct run *run, struct slp_record *r)
{
	uint32_t fault = input_fault(run, r);
	if (fault) {
		SLP_COUNT(skipped);
		set_output_faults(run, r, fault);
		return;
	}
	for (int i = 0; i < r->nin + r->nout; i++) r->views[i].ptr = run->base[r->places[i].slot] + r->places[i].offset;
	char *op_scratch = run->scratch ? run->scratch + ((run->seg->scratch + 63) & ~(size_t)63) : NULL;
	struct slp_kernel k = {.op = slp_ops[r->op], .attrs = r->attrs, .nin = r->nin, .nout = r->nout,
			       .in = r->views, .out = r->views + r->nin, .scratch = op_scratch,
			       .stream = run->cuda ? slp_gpu_stream() : NULL, .threads = slp_team_size()};
	enum sl_status s = call_kernel(run, &k);
	set_output_faults(run, r, s == SL_OK ? 0 : add_fault(r, s));
}

static void run_segment(struct slp_segment *seg, void *buffers[], bool cuda)
{
	enum { FEW = 256 };
	char *few_bases[FEW], **bases = few_bases;
	uint32_t few_faults[FEW], *faults = few_faults;
	if (seg->nslots > FEW) {
		bases = malloc((size_t)seg->nslots * sizeof *bases);
		faults = malloc((size_t)seg->nslots * sizeof *faults);
	}
	struct run run = {.seg = seg, .buffers = buffers, .cuda = cuda, .base = bases, .fault = faults};
	if (bases && faults) {
		find_bases(&run);
		struct slp_record *r = slp_record_first(seg);
		for (int i = 0; i < seg->nops; i++, r = slp_record_next(r)) run_record(&run, r);
		keep_faults(&run);
	} else {
		uint32_t fault = add_fault(slp_record_first(seg), SL_ENOMEM);
		for (int i = 0; i < seg->nbuffers; i++) atomic_store(&seg->buffers[i]->fault, fault);
		run.spoilt = true;
	}
	if (run.spoilt) slp_task_time_is_void(starpu_task_get_current());
	if (bases != few_bases) {
		free(bases);
		free(faults);
	}
}

void slp_cpu_segment(void *buffers[], void *arg)
{
	slp_team_enter();
	run_segment(arg, buffers, false);
}

void slp_cuda_segment(void *buffers[], void *arg)
{
	run_segment(arg, buffers, true);
}
