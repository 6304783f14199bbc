/* Limits the tasks on a GPU to those that fit into its memory together.
 *
 * StarPU copies the data of queued tasks to a GPU ahead of time and evicts none of it before these tasks have run;
 * if there are too many of them, the next task never gets its memory.  So no more tasks are in flight on a GPU than
 * fit together.  A task that does not even fit alone is refused, or runs on a CPU if it may. */
#include "runtime/engine.h"
#include "runtime/memory/admission.h"
#include "runtime/memory/arena.h"
#include "runtime/memory/pool.h"
#include "runtime/memory/runahead.h"
#include "runtime/memory/spill.h"
#include "runtime/task/buffer.h"

bool slp_admission_planned;
_Thread_local size_t slp_admission_limit;
static atomic_long under_way[SLP_MAX_GPUS]; /* bytes of the tasks that may run there */

/* Bytes that StarPU may use there; 0: no limit is known. */
static size_t room(int gpu)
{
	starpu_ssize_t total =
	        starpu_memory_get_total(starpu_worker_get_memory_node((unsigned)slp_engine.gpu_worker[gpu]));
	return total > 0 ? (size_t)total : 0;
}

static size_t room_of(sl_device device)
{
	bool one = device.index >= 0;
	size_t least = 0;
	if (device.kind != SL_DEVICE_GPU) return slp_spill_room();
	for (int i = one ? device.index : 0; i < (one ? device.index + 1 : slp_engine.ngpus); i++)
		if (room(i) && (!least || room(i) < least)) least = room(i);
	return least;
}

size_t slp_admission_room(sl_device device)
{
	return slp_admission_limit && device.kind != SL_DEVICE_CPU ? slp_admission_limit : room_of(device);
}

/* Simulated kernels need none.  The least leaves a unit room for its own values in a piece of 64 MiB. */
size_t slp_gpu_workspace(void)
{
	size_t share = room_of((sl_device){SL_DEVICE_GPU, -1}) / 32, least = ((size_t)64 << 20) - 65536;
	return share < least || sl_is_simulated() ? least : share;
}

static bool is_short(int gpu)
{
	size_t all = room(gpu);
	starpu_ssize_t left =
	        starpu_memory_get_available(starpu_worker_get_memory_node((unsigned)slp_engine.gpu_worker[gpu]));
	return all && left >= 0 && (size_t)left < all / 4;
}

/* With an arena it always is: what is of no use must make room there. */
bool slp_admission_short(void)
{
	for (int i = 0; i < slp_engine.ngpus; i++)
		if (slp_arena_bytes(starpu_worker_get_memory_node((unsigned)slp_engine.gpu_worker[i])) || is_short(i))
			return true;
	return false;
}

static size_t need(const struct slp_segment *seg)
{
	size_t bytes = slp_scratch_bytes(seg->scratch, seg->calls->op_scratch);
	for (int i = 0; i < seg->nbuffers; i++) bytes += seg->buffers[i]->bytes;
	return bytes;
}

/* The GPUs that may run it: from *first to before *last. */
static void find_gpus(const struct slp_segment *seg, int *first, int *last)
{
	*first = *last = 0;
	if (seg->device.kind == SL_DEVICE_CPU || !seg->calls->cuda) return;
	bool one = seg->device.kind == SL_DEVICE_GPU && seg->device.index >= 0;
	*first = one ? seg->device.index : 0;
	*last = one ? *first + 1 : slp_engine.ngpus;
}

/* Some of it is left for data being evicted, and for gaps. */
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
			if ((seg->placed || seg->device.kind != SL_DEVICE_GPU) && slp_engine.nteams) {
				seg->device = sl_cpu(-1);
				break;
			}
			snprintf(why, size, "it needs %.1f MiB at once, and gpu:%d has %.1f MiB: make batches smaller",
			         (double)seg->need / (1 << 20), i, (double)all / (1 << 20));
			seg->need = 0;
			return false;
		}
		while (!slp_admission_planned && is_full(i, all, seg->need) && slp_runahead_wait_progress()) continue;
	}
	count(seg, (long)seg->need);
	return true;
}

/* A task requests its values when it is ready, which in a chain is when the previous one has ended.  Values that no
 * other task uses now are requested as soon as they fit, in the order of the program.  If all values fit, they are
 * there already. */
void slp_admission_prefetch(const struct slp_segment *seg)
{
	int first, last;
	find_gpus(seg, &first, &last);
	if (last - first != 1 || seg->device.kind != SL_DEVICE_GPU) return;
	if (slp_admission_planned || !starpu_get_prefetch_flag() || !is_short(first)) return;
	unsigned node = starpu_worker_get_memory_node((unsigned)slp_engine.gpu_worker[first]);
	for (int i = 0; i < seg->nslots; i++) {
		const struct slp_slot *s = &seg->slots[i];
		if (s->buffer && s->mode & STARPU_R && !s->buffer->lost && slp_pool_tasks(s->buffer) == 1)
			starpu_data_prefetch_on_node_prio(s->buffer->handle, node, 1, seg->priority);
	}
}

void slp_admission_leave(const struct slp_segment *seg)
{
	count(seg, -(long)seg->need);
}
