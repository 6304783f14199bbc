/* Divides the cores of this machine among processes: whole cores, in hwloc's order, in which neighbours share caches and
 * memory.  The system's numbers of hardware threads often have another order. */
#include "launch_cores.h"

#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>

static hwloc_topology_t load(void)
{
	hwloc_topology_t t;
	if (hwloc_topology_init(&t)) return NULL;
	hwloc_topology_set_all_types_filter(t, HWLOC_TYPE_FILTER_KEEP_NONE);
	hwloc_topology_set_type_filter(t, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
	hwloc_topology_set_type_filter(t, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL); /* cores in their order */
	hwloc_topology_set_type_filter(t, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
	if (!hwloc_topology_load(t)) return t;
	hwloc_topology_destroy(t);
	return NULL;
}

/* Where a topology has no cores, its hardware threads stand for them. */
static hwloc_obj_t core(hwloc_topology_t t, int i)
{
	bool cores = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE) > 0;
	return hwloc_get_obj_by_type(t, cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU, (unsigned)i);
}

static int count(hwloc_topology_t t, hwloc_const_bitmap_t may)
{
	int n = 0;
	hwloc_obj_t c;
	for (int i = 0; (c = core(t, i)); i++) n += hwloc_bitmap_intersects(c->cpuset, may);
	return n;
}

/* The part of a process; empty if there are fewer cores than processes. */
static void part(hwloc_topology_t t, hwloc_const_bitmap_t may, int rank, int ranks, hwloc_bitmap_t own)
{
	int all = count(t, may), n = 0;
	hwloc_obj_t c;
	hwloc_bitmap_zero(own);
	for (int i = 0; all >= ranks && (c = core(t, i)); i++)
		if (hwloc_bitmap_intersects(c->cpuset, may) && (long)n++ * ranks / all == rank)
			hwloc_bitmap_or(own, own, c->cpuset);
	hwloc_bitmap_and(own, own, may);
}

static void find_mask(hwloc_topology_t t, hwloc_bitmap_t may)
{
	hwloc_const_bitmap_t all = hwloc_topology_get_allowed_cpuset(t);
	if (hwloc_get_cpubind(t, may, HWLOC_CPUBIND_PROCESS)) hwloc_bitmap_copy(may, all);
	hwloc_bitmap_and(may, may, all);
}

void launch_bind(int rank, int ranks)
{
	hwloc_topology_t t = load();
	hwloc_bitmap_t may = hwloc_bitmap_alloc(), own = hwloc_bitmap_alloc();
	if (t && may && own) {
		find_mask(t, may);
		part(t, may, rank, ranks, own);
		if (!hwloc_bitmap_iszero(own)) hwloc_set_cpubind(t, own, HWLOC_CPUBIND_PROCESS);
	}
	hwloc_bitmap_free(may);
	hwloc_bitmap_free(own);
	if (t) hwloc_topology_destroy(t);
}

bool launch_show(int ranks)
{
	char text[4096];
	hwloc_topology_t t = load();
	hwloc_bitmap_t may = hwloc_bitmap_alloc(), own = hwloc_bitmap_alloc();
	bool ok = t && may && own;
	if (ok) find_mask(t, may);
	else fprintf(stderr, "sl-launch: hwloc cannot read this machine\n");
	for (int rank = 0; ok && rank < ranks; rank++) {
		part(t, may, rank, ranks, own);
		hwloc_bitmap_list_snprintf(text, sizeof text, hwloc_bitmap_iszero(own) ? may : own);
		printf("%d: %s\n", rank, text);
	}
	hwloc_bitmap_free(may);
	hwloc_bitmap_free(own);
	if (t) hwloc_topology_destroy(t);
	return ok;
}
