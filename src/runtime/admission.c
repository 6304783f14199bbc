/* What fits into the memory of a GPU together.
 *
 * StarPU brings the data of queued tasks to a GPU ahead of time and puts nothing of it out again before these tasks have
 * run; if there are too many of them, the next task never gets its memory.  So no more tasks are under way on a GPU than
 * have room together.  One that has no room even alone is refused, or goes to a CPU if it may. */
#include "runtime/admission.h"

static atomic_long under_way[SLP_MAX_GPUS]; /* bytes of the tasks that may run there */

/* Bytes that StarPU may use there; 0: no limit is known. */
static size_t room(int gpu)
{
	starpu_ssize_t total =
	        starpu_memory_get_total(starpu_worker_get_memory_node((unsigned)slp_engine.gpu_worker[gpu]));
	return total > 0 ? (size_t)total : 0;
}

static size_t need(const struct slp_segment *seg)
{
	size_t bytes = slp_scratch_bytes(seg->scratch, seg->calls->op_scratch);
	for (int i = 0; i < seg->nbuffers; i++) bytes += seg->buffers[i]->bytes;
	return bytes;
}

/* The GPUs where it may run: from *first to before *last. */
static void find_gpus(const struct slp_segment *seg, int *first, int *last)
{
	*first = *last = 0;
	if (seg->device.kind == SL_DEVICE_CPU || !seg->calls->cuda) return;
	bool one = seg->device.kind == SL_DEVICE_GPU && seg->device.index >= 0;
	*first = one ? seg->device.index : 0;
	*last = one ? *first + 1 : slp_engine.ngpus;
}

/* Some of it is left for what is being put out, and for gaps. */
static bool is_full(int gpu, size_t all, size_t bytes)
{
	size_t used = (size_t)atomic_load(&under_way[gpu]);
	return all && used && used + bytes > all / 4 * 3;
}

static void count(const struct slp_segment *seg, long bytes)
{
	int first, last;
	find_gpus(seg, &first, &last);
	for (int i = first; i < last; i++) atomic_fetch_add(&under_way[i], bytes);
}

bool slp_admission_enter(struct slp_segment *seg, char *why, size_t size)
{
	int first, last;
	find_gpus(seg, &first, &last);
	seg->need = first < last ? need(seg) : 0;
	for (int i = first; i < last; i++) {
		size_t all = room(i);
		if (all && seg->need > all) {
			if (seg->device.kind != SL_DEVICE_GPU && slp_engine.nteams) {
				seg->device = sl_cpu(-1);
				break;
			}
			snprintf(why, size, "it needs %.1f MiB at once, and gpu:%d has %.1f MiB",
			         (double)seg->need / (1 << 20), i, (double)all / (1 << 20));
			seg->need = 0;
			return false;
		}
		while (is_full(i, all, seg->need) && slp_runahead_wait_progress()) continue;
	}
	count(seg, (long)seg->need);
	return true;
}

void slp_admission_leave(const struct slp_segment *seg)
{
	count(seg, -(long)seg->need);
}
