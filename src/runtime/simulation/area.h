/* The area bound: the least time of a run whose work is divided arbitrarily and spread over all devices that may do it.
 * Exact for two kinds of devices: the share of each type of task is a fractional knapsack, so types go
 * to the GPUs by how much faster these are (C. Augonnet et al., "StarPU", 2011, solve it as a linear program).  The
 * simulation's report and sl-trace use it; it knows nothing of the engine. */
#ifndef SLP_AREA_H
#define SLP_AREA_H

#include <math.h>
#include <stdlib.h>

/* Tasks of the same times. */
struct slp_area_type {
	double cpu, gpu; /* seconds; INFINITY: not there */
	double count;
};

static inline double slp_area_gain(const struct slp_area_type *t)
{
	return isinf(t->gpu) ? 0 : t->cpu / t->gpu; /* INFINITY if there is no alternative */
}

static inline int slp_area_by_gain(const void *a, const void *b)
{
	double x = slp_area_gain(a), y = slp_area_gain(b);
	return (x < y) - (x > y);
}

/* Moves types from the CPUs to the GPUs, those with the largest gain first, until both take equally long.  Sorts the
 * types. */
static inline double slp_area(struct slp_area_type *types, int ntypes, double cpus, double gpus)
{
	double on_cpu = 0, on_gpu = 0,
	       left = 0; /* seconds on each device; left: on the CPUs, of tasks that may run on both */
	for (int i = 0; i < ntypes; i++) {
		const struct slp_area_type *t = &types[i];
		if (isinf(t->gpu)) on_cpu += t->count * t->cpu / cpus;
		else if (isinf(t->cpu)) on_gpu += t->count * t->gpu / gpus;
		else left += t->count * t->cpu / cpus;
	}
	qsort(types, (size_t)ntypes, sizeof *types, slp_area_by_gain);
	for (int i = 0; i < ntypes; i++) {
		const struct slp_area_type *t = &types[i];
		if (isinf(t->cpu) || isinf(t->gpu)) continue;
		double here = t->count * t->cpu / cpus, there = t->count * t->gpu / gpus;
		double part = fmin(1, fmax(0, (on_cpu + left - on_gpu) / (here + there)));
		on_gpu += part * there;
		left -= part * here;
	}
	return fmax(on_cpu + left, on_gpu);
}

#endif
