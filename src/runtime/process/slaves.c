/* Slave processes: StarPU's TCP/IP workers run the same program in another process, with separate memory.  A segment is
 * sent there as a message without pointers; failures are sent back, and are faults like those of this process. */
#include <stdlib.h>
#include <string.h>

#include "runtime/process/slaves.h"
#include "runtime/task/buffer.h"
#include "runtime/task/code.h"
#include "runtime/task/execute.h"

/* Behind it: the records of the calls, the slots, the patches. */
struct message {
	size_t records, scratch;
	int nops, max_operands, nslots, npatches, scratch_index;
};

struct message_slot {
	int index; /* among the task's buffers; -1: in scratch */
	enum starpu_data_access_mode mode;
	size_t offset;
};

static size_t slots_at(const struct message *m)
{
	return slp_align(sizeof *m, 16) + slp_align(m->records, 16);
}

static size_t patches_at(const struct message *m)
{
	return slots_at(m) + slp_align((size_t)m->nslots * sizeof(struct message_slot), 16);
}

static size_t message_size(const struct message *m)
{
	return patches_at(m) + (size_t)m->npatches * sizeof(struct slp_patch);
}

#ifdef STARPU_USE_TCPIP_MASTER_SLAVE

/* ---- the master -------------------------------------------------------------------------------------------------- */

int slp_slave_workers(int *ids, int max)
{
	int n = max > 0 ? (int)starpu_worker_get_ids_by_type(STARPU_TCPIP_MS_WORKER, ids, (unsigned)max) : 0;
	return n >= 0 ? n : max; /* StarPU says so if there are more */
}

/* Before anything that waits for the task may run. */
static void task_ended(void *arg)
{
	struct slp_segment *seg = arg;
	if (seg->here) return;
	const struct starpu_task *task = starpu_task_get_current();
	int count = task->cl_ret ? (int)(task->cl_ret_size / sizeof(struct slp_failure)) : 0;
	slp_segment_ran_elsewhere(seg, task->cl_ret, count);
}

static void fill(struct message *m, const struct slp_segment *seg)
{
	char *bytes = (char *)m;
	memcpy(bytes + slp_align(sizeof *m, 16), seg->calls->records, m->records);
	struct message_slot *slots = (struct message_slot *)(bytes + slots_at(m));
	for (int i = 0; i < m->nslots; i++) {
		const struct slp_slot *s = &seg->slots[i];
		slots[i] = (struct message_slot){s->buffer ? s->index : -1, s->mode, s->offset};
	}
	if (m->npatches) memcpy(bytes + patches_at(m), seg->patches, (size_t)m->npatches * sizeof *seg->patches);
}

bool slp_slave_message(struct starpu_task *task, struct slp_segment *seg)
{
	struct message head = {.records = seg->calls->used,
	                       .scratch = seg->scratch,
	                       .nops = seg->calls->nops,
	                       .max_operands = seg->calls->max_operands,
	                       .nslots = seg->nslots,
	                       .npatches = seg->npatches,
	                       .scratch_index = seg->scratch_index};
	struct message *m = slp_try_calloc(1, message_size(&head));
	if (!m) return false;
	*m = head;
	fill(m, seg);
	task->cl_arg = m;
	task->cl_arg_size = message_size(m);
	task->cl_arg_free = task->cl_ret_free = 1;
	task->epilogue_callback_func = task_ended;
	task->epilogue_callback_arg = seg;
	return true;
}

#else

int slp_slave_workers(int *ids, int max)
{
	(void)ids;
	(void)max;
	return 0;
}

bool slp_slave_message(struct starpu_task *task, struct slp_segment *seg)
{
	(void)task;
	(void)seg;
	return false;
}

#endif

/* ---- a slave ----------------------------------------------------------------------------------------------------- */

/* The segment of a message; its buffers are the master's, and only their faults within the segment are kept. */
static int run_message(struct message *m, void *buffers[], struct slp_failure **failures)
{
	struct slp_buffer theirs = {.bytes = 0};
	char *bytes = (char *)m;
	const struct message_slot *from = (const struct message_slot *)(bytes + slots_at(m));
	struct slp_slot *slots = slp_try_calloc((size_t)m->nslots + 1, sizeof *slots);
	if (!slots) return -1;
	for (int i = 0; i < m->nslots; i++)
		slots[i] = (struct slp_slot){.buffer = from[i].index < 0 ? NULL : &theirs,
		                             .index = from[i].index,
		                             .mode = from[i].mode,
		                             .offset = from[i].offset};
	struct slp_call_list calls = {.records = bytes + slp_align(sizeof *m, 16),
	                              .used = m->records,
	                              .nops = m->nops,
	                              .max_operands = m->max_operands};
	struct slp_segment seg = {.calls = &calls,
	                          .slots = slots,
	                          .nslots = m->nslots,
	                          .patches = (struct slp_patch *)(bytes + patches_at(m)),
	                          .npatches = m->npatches,
	                          .scratch = m->scratch,
	                          .scratch_index = m->scratch_index};
	int count = slp_segment_run_for_master(&seg, buffers, failures);
	free(slots);
	return count;
}

/* Runs a task of the master in this process; only StarPU calls it.  The message may have any alignment: it is copied.
 * A failure is sent to the master, which reports it like any other fault. */
void sl_slave_segment(void *buffers[], void *arg)
{
	struct message head;
	memcpy(&head, arg, sizeof head);
	struct message *m = slp_try_malloc(message_size(&head));
	struct slp_failure *failures = NULL;
	if (m) memcpy(m, arg, message_size(&head));
	int count = m ? run_message(m, buffers, &failures) : -1;
	free(m);
	if (count < 0 && (failures = slp_try_malloc(sizeof *failures))) {
		*failures = (struct slp_failure){-1, SL_ENOMEM, "no memory in the slave process"};
		count = 1;
	}
	if (count < 1) return;
#if SLP_STARPU_1_4
	struct starpu_task *task = starpu_task_get_current();
	task->cl_ret = failures;
	task->cl_ret_size = (size_t)count * sizeof *failures;
#endif
}
