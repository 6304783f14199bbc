/* Emulated GPUs: counters of each device and of each link. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

enum { SIZES = 1024 }; /* different ones that are counted separately, over all links */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct emu_counts counts;
static struct {
	int from, to;
	size_t bytes;
	uint64_t copies;
} sizes[SIZES];
static int nsizes;

void emu_count_launch(int device)
{
	__atomic_fetch_add(&counts.launches[device], 1, __ATOMIC_RELAXED);
}

void emu_count_graph(int device, enum emu_graph what, uint64_t n)
{
	uint64_t *const lists[] = {[EMU_GRAPH_MADE] = counts.graphs,
	                           [EMU_GRAPH_CHANGED] = counts.graph_changes,
	                           [EMU_GRAPH_LAUNCHED] = counts.graph_launches,
	                           [EMU_GRAPH_KERNELS] = counts.graph_kernels,
	                           [EMU_GRAPH_CHILDREN] = counts.graph_children};
	__atomic_fetch_add(&lists[what][device], n, __ATOMIC_RELAXED);
}

void emu_count_tf32(int device)
{
	__atomic_fetch_add(&counts.tf32[device], 1, __ATOMIC_RELAXED);
}

void emu_count_last(int device)
{
	__atomic_fetch_add(&counts.last[device], 1, __ATOMIC_RELAXED);
}

void emu_count_half(int device)
{
	__atomic_fetch_add(&counts.half[device], 1, __ATOMIC_RELAXED);
}

void emu_count_fused(int device)
{
	__atomic_fetch_add(&counts.fused[device], 1, __ATOMIC_RELAXED);
}

static double way_us[EMU_WAYS];

void emu_count_way(int way)
{
	__atomic_fetch_add(&counts.ways[way], 1, __ATOMIC_RELAXED);
}

void emu_count_compiled(void)
{
	__atomic_fetch_add(&counts.compiled, 1, __ATOMIC_RELAXED);
}

void emu_way_takes(int way, double us)
{
	way_us[way] = us;
}

double emu_way_us(int way, double otherwise)
{
	return way_us[way] != 0 ? way_us[way] : otherwise;
}

void emu_count_wait(enum emu_wait wait)
{
	__atomic_fetch_add(&counts.waits[wait], 1, __ATOMIC_RELAXED);
}

const char *emu_wait_name(enum emu_wait wait)
{
	static const char *const names[] = {
#define X(name, text) text,
	        EMU_WAITS(X)
#undef X
	};
	return names[wait];
}

void emu_count_set(int device)
{
	__atomic_fetch_add(&counts.sets[device], 1, __ATOMIC_RELAXED);
}

static void count_size(int from, int to, size_t bytes)
{
	int i = 0;
	while (i < nsizes && (sizes[i].from != from || sizes[i].to != to || sizes[i].bytes != bytes)) i++;
	if (i == SIZES) return;
	if (i == nsizes) {
		sizes[nsizes].from = from;
		sizes[nsizes].to = to;
		sizes[nsizes].bytes = bytes;
		sizes[nsizes++].copies = 0;
	}
	sizes[i].copies++;
}

void emu_count_copy(int from, int to, size_t bytes)
{
	pthread_mutex_lock(&lock);
	counts.link[from][to].copies++;
	counts.link[from][to].bytes += bytes;
	count_size(from, to, bytes);
	pthread_mutex_unlock(&lock);
}

void emu_count_memory(int device, size_t used, bool refused)
{
	pthread_mutex_lock(&lock);
	if (refused) counts.refused[device]++;
	else if (used > counts.used[device]) counts.allocations[device]++;
	counts.used[device] = used;
	if (used > counts.peak[device]) counts.peak[device] = used;
	pthread_mutex_unlock(&lock);
}

void emu_counts_get(struct emu_counts *to)
{
	pthread_mutex_lock(&lock);
	*to = counts;
	pthread_mutex_unlock(&lock);
}

void emu_counts_settle(void)
{
	struct emu_counts now, before = {0};
	for (int still = 0, looks = 0; still < 20 && looks < 2000; looks++, usleep(5000)) {
		emu_counts_get(&now);
		still = memcmp(&now, &before, sizeof now) ? 0 : still + 1;
		before = now;
	}
}

void emu_counts_reset(void)
{
	pthread_mutex_lock(&lock);
	struct emu_counts fresh = {0};
	memcpy(fresh.used, counts.used, sizeof fresh.used);
	memcpy(fresh.peak, counts.used, sizeof fresh.peak);
	counts = fresh;
	nsizes = 0;
	pthread_mutex_unlock(&lock);
}

uint64_t emu_copies(int from, int to, size_t bytes)
{
	uint64_t n = 0;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < nsizes; i++)
		if (sizes[i].from == from && sizes[i].to == to && sizes[i].bytes == bytes) n = sizes[i].copies;
	pthread_mutex_unlock(&lock);
	return n;
}

static const char *place(int i, char name[16])
{
	snprintf(name, 16, i == EMU_HOST ? "host" : "gpu:%d", i);
	return name;
}

void emu_counts_print(void)
{
	char from[16], to[16];
	for (int i = 0; i < emu_settings.devices; i++)
		fprintf(stderr,
		        "emulated gpu:%d: launches=%llu tf32=%llu half=%llu last=%llu fused=%llu sets=%llu "
		        "allocations=%llu "
		        "refused=%llu "
		        "peak=%zu\n",
		        i, (unsigned long long)counts.launches[i], (unsigned long long)counts.tf32[i],
		        (unsigned long long)counts.half[i], (unsigned long long)counts.last[i],
		        (unsigned long long)counts.fused[i], (unsigned long long)counts.sets[i],
		        (unsigned long long)counts.allocations[i], (unsigned long long)counts.refused[i],
		        counts.peak[i]);
	for (int i = 0; i < emu_settings.devices; i++)
		if (counts.graphs[i])
			fprintf(stderr, "emulated gpu:%d: graphs=%llu changes=%llu graph-launches=%llu kernels=%llu\n",
			        i, (unsigned long long)counts.graphs[i], (unsigned long long)counts.graph_changes[i],
			        (unsigned long long)counts.graph_launches[i],
			        (unsigned long long)counts.graph_kernels[i]);
	for (int i = 0; i < EMU_WAIT_COUNT; i++)
		if (counts.waits[i])
			fprintf(stderr, "emulated: the host waited in %s: %llu\n", emu_wait_name((enum emu_wait)i),
			        (unsigned long long)counts.waits[i]);
	for (int i = 0; i < EMU_PLACES; i++)
		for (int j = 0; j < EMU_PLACES; j++)
			if (counts.link[i][j].copies)
				fprintf(stderr, "emulated link %s -> %s: copies=%llu bytes=%llu\n", place(i, from),
				        place(j, to), (unsigned long long)counts.link[i][j].copies,
				        (unsigned long long)counts.link[i][j].bytes);
}
