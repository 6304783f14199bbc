/* What a simulated run takes at least, whatever the policy decides: found while its tasks are submitted.
 *
 *   area    all work, cut into pieces as small as one likes and spread over all devices that may do it
 *   path    the longest chain of tasks that wait for each other, each where it is fastest, and of the host's waits
 *   pinned  the work of the device that the program itself has given most
 *
 * Transfers take no time here.  The area is exact for two kinds of devices: the share of each task type is a fractional
 * knapsack, so types go to the GPUs by how much faster these are. */
#include "runtime/simulate.h"

#ifdef SLP_SIMULATION
#include <math.h>
#include <stdlib.h>

/* Tasks of the same times. */
struct type {
	double cpu, gpu; /* seconds; INFINITY: not there */
	double count;
};

static struct {
	struct type *types;
	int ntypes, max_types;
	double host; /* when the thread that submits could be where it is */
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
static struct type times(const struct slp_segment *seg, const struct starpu_task *task)
{
	struct type t = {INFINITY, INFINITY, 1};
	for (unsigned w = 0; w < (unsigned)slp_engine.nworkers; w++) {
		double *time = starpu_worker_get_type((int)w) == STARPU_CUDA_WORKER ? &t.gpu : &t.cpu;
		if (isinf(*time) && may_run(task, w)) *time = slp_simulated_seconds(seg, w);
	}
	return t;
}

static void count(struct type t)
{
	for (int i = bound.ntypes - 1; i >= 0; i--)
		if (bound.types[i].cpu == t.cpu && bound.types[i].gpu == t.gpu) {
			bound.types[i].count++;
			return;
		}
	if (slp_grow((void **)&bound.types, &bound.max_types, bound.ntypes + 1, sizeof t)) bound.types[bound.ntypes++] = t;
}

/* When the task can begin: after what it reads is written, and what it writes is used no more. */
static double begin(const struct slp_segment *seg)
{
	double t = bound.host;
	for (int i = 0; i < seg->nslots; i++) {
		const struct slp_slot *s = &seg->slots[i];
		if (s->buffer) t = fmax(t, s->mode & STARPU_W ? s->buffer->used : s->buffer->written);
	}
	return t;
}

static void end(const struct slp_segment *seg, double t)
{
	for (int i = 0; i < seg->nslots; i++) {
		struct slp_buffer *b = seg->slots[i].buffer;
		if (!b) continue;
		b->used = fmax(b->used, t);
		if (seg->slots[i].mode & STARPU_W) b->written = fmax(b->written, t);
	}
	bound.path = fmax(bound.path, t);
}

void slp_bound_task(const struct slp_segment *seg, const struct starpu_task *task, double seconds)
{
	struct type t = times(seg, task);
	double least = fmin(t.cpu, t.gpu);
	if (isinf(least)) return; /* nobody can run it: StarPU will say so */
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

/* ---- the area ---------------------------------------------------------------------------------------------------- */

static double gain(const struct type *t)
{
	return isinf(t->gpu) ? 0 : t->cpu / t->gpu; /* INFINITY where there is no other way */
}

static int by_gain(const void *a, const void *b)
{
	double x = gain(a), y = gain(b);
	return (x < y) - (x > y);
}

/* Moves types from the CPUs to the GPUs, those that gain most first, until both take equally long. */
static double area(double cpus, double gpus)
{
	double on_cpu = 0, on_gpu = 0, left = 0; /* seconds on each device; left: on the CPUs, of what may go to both */
	for (int i = 0; i < bound.ntypes; i++) {
		const struct type *t = &bound.types[i];
		if (isinf(t->gpu)) on_cpu += t->count * t->cpu / cpus;
		else if (isinf(t->cpu)) on_gpu += t->count * t->gpu / gpus;
		else left += t->count * t->cpu / cpus;
	}
	qsort(bound.types, (size_t)bound.ntypes, sizeof *bound.types, by_gain);
	for (int i = 0; i < bound.ntypes; i++) {
		const struct type *t = &bound.types[i];
		if (isinf(t->cpu) || isinf(t->gpu)) continue;
		double here = t->count * t->cpu / cpus, there = t->count * t->gpu / gpus;
		double part = fmin(1, fmax(0, (on_cpu + left - on_gpu) / (here + there)));
		on_gpu += part * there;
		left -= part * here;
	}
	return fmax(on_cpu + left, on_gpu);
}

void slp_bound_get(struct slp_bound *b)
{
	*b = (struct slp_bound){.path = bound.path};
	if (bound.ntypes) b->area = area(fmax(1, slp_engine.nteams), fmax(1, slp_engine.ngpus));
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
