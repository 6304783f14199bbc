/* Lower bounds of the time of a simulated run, under any policy, computed while its tasks are submitted.
 *
 *   area    all work, divided arbitrarily and spread over all devices that may do it
 *   path    the longest chain of tasks that wait for each other, each where it is fastest, and of the host's waits
 *   pinned  the work of the device that the program itself has given most
 *
 * Transfers take no time here. */
#include "config.h"
#include "alloc.h"
#include "runtime/engine.h"
#include "runtime/simulation/area.h"
#include "runtime/simulation/simulate.h"
#include "runtime/task/buffer.h"

#ifdef SLP_SIMULATION
static struct {
	struct slp_area_type *types;
	int ntypes, max_types;
	double host; /* the earliest time at which the submitting thread could be here */
	double path;
	double pinned[STARPU_NMAXWORKERS];
} bound;

static bool may_run(const struct starpu_task *task, unsigned worker)
{
	if (task->execute_on_a_specific_worker) return task->workerid == worker;
	uint32_t kind = starpu_worker_get_type((int)worker) == STARPU_CUDA_WORKER ? STARPU_CUDA : STARPU_CPU;
	uint32_t where = task->where == (int32_t)-1 || !task->where ? task->cl->where : (uint32_t)task->where;
	return where & kind;
}

/* The times of a task; the workers of a kind are equal. */
static struct slp_area_type times(const struct slp_segment *seg, const struct starpu_task *task)
{
	struct slp_area_type t = {INFINITY, INFINITY, 1};
	for (unsigned w = 0; w < (unsigned)slp_engine.nworkers; w++) {
		double *time = starpu_worker_get_type((int)w) == STARPU_CUDA_WORKER ? &t.gpu : &t.cpu;
		if (isinf(*time) && may_run(task, w)) *time = slp_simulated_seconds(seg, w);
	}
	return t;
}

static void count(struct slp_area_type t)
{
	for (int i = bound.ntypes - 1; i >= 0; i--)
		if (bound.types[i].cpu == t.cpu && bound.types[i].gpu == t.gpu) {
			bound.types[i].count++;
			return;
		}
	if (slp_grow((void **)&bound.types, &bound.max_types, bound.ntypes + 1, sizeof t))
		bound.types[bound.ntypes++] = t;
}

/* The earliest start of the task: after its inputs are written, and the values that it changes are no longer used.  A
 * pure output could be in another buffer: the engine decided to use this one again. */
static double begin(const struct slp_segment *seg)
{
	double t = bound.host;
	for (int i = 0; i < seg->nslots; i++) {
		const struct slp_slot *s = &seg->slots[i];
		if (!s->buffer || s->mode == STARPU_W) continue;
		t = fmax(t, s->mode & STARPU_W ? s->buffer->used : s->buffer->written);
	}
	return t;
}

static void end(const struct slp_segment *seg, double t)
{
	for (int i = 0; i < seg->nslots; i++) {
		struct slp_buffer *b = seg->slots[i].buffer;
		if (!b) continue;
		bool anew = seg->slots[i].mode == STARPU_W;
		b->used = anew ? t : fmax(b->used, t);
		if (seg->slots[i].mode & STARPU_W) b->written = anew ? t : fmax(b->written, t);
	}
	bound.path = fmax(bound.path, t);
}

void slp_bound_task(const struct slp_segment *seg, const struct starpu_task *task, double seconds)
{
	struct slp_area_type t = times(seg, task);
	double least = fmin(t.cpu, t.gpu);
	if (isinf(least)) return; /* no worker can run it: StarPU will say so */
	bound.host += seconds;
	count(t);
	if (task->execute_on_a_specific_worker) bound.pinned[task->workerid] += least;
	end(seg, begin(seg) + least);
}

void slp_bound_access(struct slp_buffer *b, bool write)
{
	bound.host = fmax(bound.host, write ? b->used : b->written);
	b->used = fmax(b->used, bound.host);
	if (write) b->written = bound.host;
	bound.path = fmax(bound.path, bound.host);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

void slp_bound_get(struct slp_bound *b)
{
	*b = (struct slp_bound){.path = bound.path};
	if (bound.ntypes)
		b->area = slp_area(bound.types, bound.ntypes, fmax(1, slp_engine.nteams), fmax(1, slp_engine.ngpus));
	for (int w = 0; w < slp_engine.nworkers; w++) b->pinned = fmax(b->pinned, bound.pinned[w]);
}

void slp_bound_clear(void)
{
	free(bound.types);
	bound.types = NULL;
	bound.ntypes = bound.max_types = 0;
	bound.host = bound.path = 0;
	for (int w = 0; w < STARPU_NMAXWORKERS; w++) bound.pinned[w] = 0;
}
#endif
