/* The available main memory: the minimum of the machine's available memory and of the limits of the process (ulimit)
 * and its control groups.  Linux grants more memory than it has and kills the process that uses it; StarPU
 * repeats a refused allocation endlessly.  So large requests are checked here first. */
#include "runtime/compat.h"
#include "runtime/memory/memory_limit.h"
#include "starling/base.h"

#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "runtime/budget.h"
#include "runtime/memory/cgroup.h"

enum {
	LEAST = 4 << 20,
	MOST = 128 << 20, /* is left for allocations of kernels and libraries */
	GROUP_MARGIN = 32 << 20,
	FRESH_MS = 100
};

static _Atomic size_t asked, enough; /* since it was last read how much there is; this much needs no reading */
static _Atomic int64_t read_at;      /* in ms */
static atomic_long promised;
bool (*_Atomic slp_memory_leave_for_others)(size_t bytes);

/* ---- the system's limits ----------------------------------------------------------------------------------------- */

struct room {
	uint64_t bytes;
	const char *whose;
	uint64_t margin; /* stays free beside the libraries' part */
	uint64_t pieces; /* of bytes: free in the heap, wherever that may be */
};

static void lower(struct room *r, uint64_t limit, uint64_t used, const char *whose)
{
	uint64_t bytes = limit > used ? limit - used : 0;
	if (bytes < r->bytes) *r = (struct room){bytes, whose, 0, 0};
}

/* The system counts its own memory for a group too, and counts it late. */
static void lower_group(struct room *r, uint64_t limit, uint64_t used, const char *whose)
{
	uint64_t before = r->bytes;
	lower(r, limit, used, whose);
	if (r->bytes < before) r->margin = limit / 64 < GROUP_MARGIN ? limit / 64 : GROUP_MARGIN;
}

/* The number behind a line's first word; otherwise 0. */
static uint64_t value_of(const char *text, const char *key)
{
	size_t n = strlen(key);
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, key, n)) return strtoull(line + n, NULL, 10);
	}
	return 0;
}

/* Lowers the room to the machine's; returns the swap space in it. */
static uint64_t read_machine(struct room *r)
{
	char text[4096];
	if (!slp_system_read("/proc/meminfo", text, sizeof text)) return 0;
	uint64_t swap = 1024 * value_of(text, "SwapFree:");
	if (strstr(text, "MemAvailable:")) lower(r, 1024 * value_of(text, "MemAvailable:") + swap, 0, "machine");
	return swap;
}

/* The main memory that StarPU may still use; no limit: -1. */
static void read_starpu(struct room *r)
{
	starpu_ssize_t bytes = sl_is_initialized() ? starpu_memory_get_available(STARPU_MAIN_RAM) : -1;
	if (bytes >= 0) lower(r, (uint64_t)bytes, 0, "StarPU");
}

/* Taken from the system, and free. */
static uint64_t free_in_heap(void)
{
#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 33)
	return mallinfo2().fordblks;
#endif
#endif
	return 0;
}

void slp_heap_trim(void)
{
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}

/* Otherwise each thread takes 64 MiB of the limited memory, and another thread cannot use the free part of its heap. */
static void share_heap(void)
{
#ifdef __GLIBC__
	static atomic_bool done;
	if (!atomic_exchange(&done, true)) mallopt(M_ARENA_MAX, 1);
#endif
}

/* Free memory of the heap remains part of the process, so it can be used, if not as a whole. */
static void lower_limit(struct room *r, uint64_t limit, uint64_t used, uint64_t unused, const char *whose)
{
	uint64_t before = r->bytes;
	lower(r, limit + unused, used, whose);
	if (r->bytes < before) r->pieces = unused < r->bytes ? unused : r->bytes;
}

static bool has_limits(struct rlimit *all, struct rlimit *data)
{
	if (getrlimit(RLIMIT_AS, all) || getrlimit(RLIMIT_DATA, data)) return false;
	return all->rlim_cur != RLIM_INFINITY || data->rlim_cur != RLIM_INFINITY;
}

/* Promised memory is used already, as ulimit counts. */
static void read_limits(struct room *r)
{
	struct rlimit all, data;
	uint64_t pages[6] = {0}, page = (uint64_t)sysconf(_SC_PAGESIZE);
	char text[256], *p = text;
	if (!has_limits(&all, &data)) return;
	if (!slp_system_read("/proc/self/statm", text, sizeof text)) return;
	share_heap();
	for (int i = 0; i < 6; i++) pages[i] = strtoull(p, &p, 10);
	uint64_t unused = free_in_heap();
	if (all.rlim_cur != RLIM_INFINITY) lower_limit(r, all.rlim_cur, page * pages[0], unused, "ulimit -v");
	if (data.rlim_cur != RLIM_INFINITY) lower_limit(r, data.rlim_cur, page * pages[5], unused, "ulimit -d");
}

/* ---- control groups ---------------------------------------------------------------------------------------------- */

/* The files of one of the two versions.  The first counts memory and swap together, the second swap alone.  Beyond
 * `high` the system slows a process down until it has freed something: for one that waits, as good as the end. */
struct version {
	const char *limit, *high, *used, *swap_limit, *swap_used, *inactive, *active;
	bool swap_has_memory;
};

/* Files in memory count as used, and are freed when memory is needed. */
static uint64_t cached(const struct version *v, struct slp_cgroup *folder)
{
	char text[4096];
	if (!slp_cgroup_read(folder, "memory.stat", text, sizeof text)) return 0;
	return value_of(text, v->inactive) + value_of(text, v->active);
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* The part of the group that can still go to swap space. */
static uint64_t swap_left(const struct version *v, struct slp_cgroup *folder, uint64_t swap)
{
	uint64_t limit, used;
	if (v->swap_has_memory || !slp_cgroup_number(folder, v->swap_limit, &limit) ||
	    !slp_cgroup_number(folder, v->swap_used, &used))
		return swap;
	return less(limit, used) < swap ? less(limit, used) : swap;
}

/* A limit below which another group's memory does not count. */
static bool is_alone(struct slp_cgroup *folder)
{
	uint64_t hierarchy;
	return slp_cgroup_number(folder, "memory.use_hierarchy", &hierarchy) && !hierarchy;
}

static void read_group(struct room *r, const struct version *v, struct slp_cgroup *folder, uint64_t swap)
{
	uint64_t limit = UINT64_MAX, high = UINT64_MAX, used, both, both_used;
	bool limited = slp_cgroup_number(folder, v->limit, &limit), slowed = slp_cgroup_number(folder, v->high, &high);
	bool together = v->swap_has_memory && slp_cgroup_number(folder, v->swap_limit, &both);
	if (!limited && !slowed && !together) return;
	uint64_t files = cached(v, folder);
	if ((limited || slowed) && slp_cgroup_number(folder, v->used, &used)) {
		bool soft = slowed && (!limited || high < limit);
		lower_group(r, (soft ? high : limit) + swap_left(v, folder, swap), less(used, files),
		            soft ? "control group, memory.high" : "control group");
	}
	if (together && slp_cgroup_number(folder, v->swap_used, &both_used))
		lower_group(r, both, less(both_used, files), "control group, with swap");
}

/* clang-format off */
static const struct version versions[] = {
        {"memory.limit_in_bytes", NULL, "memory.usage_in_bytes", "memory.memsw.limit_in_bytes",
         "memory.memsw.usage_in_bytes", "total_inactive_file ", "total_active_file ", true},
        {"memory.max", "memory.high", "memory.current", "memory.swap.max", "memory.swap.current",
         "inactive_file ", "active_file ", false}};
/* clang-format on */

struct reading {
	struct room *r;
	uint64_t swap;
};

static void visit_group(struct slp_cgroup *group, void *arg)
{
	const struct reading *reading = arg;
	if (group->own || !is_alone(group)) read_group(reading->r, &versions[group->version - 1], group, reading->swap);
}

static struct room read_room(void)
{
	struct room r = {INT64_MAX, "machine", 0, 0};
	uint64_t swap = read_machine(&r);
	slp_cgroups_visit("memory", visit_group, &(struct reading){&r, swap});
	long waiting = atomic_load(&promised);
	r.bytes -= waiting <= 0 ? 0 : (uint64_t)waiting < r.bytes ? (uint64_t)waiting : r.bytes;
	read_limits(&r);
	read_starpu(&r);
	if (slp_untrusted.bytes)
		lower(&r, slp_untrusted.bytes, slp_budget_taken() + (waiting > 0 ? (uint64_t)waiting : 0),
		      "sl_config.untrusted");
	return r;
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The part left for libraries beside `bytes`. */
static size_t left_beside(size_t bytes)
{
	return bytes < LEAST ? LEAST : bytes < MOST ? bytes : MOST;
}

static bool fits(const struct room *r, size_t bytes, size_t more)
{
	uint64_t all = r->bytes < UINT64_MAX - more ? r->bytes + more : UINT64_MAX;
	return all >= bytes && all - bytes >= left_beside(bytes) + r->margin;
}

/* The available memory.  The heap keeps freed memory below any block in use: the system and control groups count it as
 * used, so it is returned before a request is refused. */
static struct room room_for(size_t bytes, size_t more)
{
	enum { WORTH = 1 << 20 };
	struct room r = read_room();
	if (fits(&r, bytes, more) || r.pieces || free_in_heap() < WORTH) return r;
	slp_heap_trim();
	return read_room();
}

void slp_memory_limit_changed(void)
{
	atomic_store(&enough, 0);
}

bool slp_memory_limit_allows(size_t bytes)
{
	size_t all = atomic_fetch_add(&asked, bytes) + bytes;
	if (all <= atomic_load(&enough) && now_ms() - atomic_load(&read_at) < FRESH_MS) return true;
	struct room r = room_for(bytes, 0);
	if (!fits(&r, bytes, 0)) {
		atomic_fetch_sub(&asked, bytes);
		return false;
	}
	atomic_store(&enough, (r.bytes - left_beside(bytes) - r.margin) / 2);
	atomic_store(&asked, bytes);
	atomic_store(&read_at, now_ms());
	return true;
}

bool slp_memory_limit_allows_movable(size_t bytes)
{
	if (bytes <= SLP_MEMORY_BESIDE_MOVABLE) return slp_memory_limit_allows(bytes);
	struct room r = room_for(bytes, 0);
	return r.bytes >= bytes && r.bytes - bytes >= SLP_MEMORY_BESIDE_MOVABLE + r.margin;
}

static bool is_there(size_t bytes, size_t more)
{
	struct room r = room_for(bytes, more);
	return fits(&r, bytes, more);
}

bool slp_memory_limit_allows_now(size_t bytes)
{
	struct rlimit all, data;
	return has_limits(&all, &data) ? is_there(bytes, 0) : slp_memory_limit_allows(bytes);
}

bool slp_memory_limit_could_allow(size_t bytes, size_t more)
{
	enum { MANY = 64 << 20 };
	bool fresh = bytes < MANY && now_ms() - atomic_load(&read_at) < FRESH_MS;
	if (fresh && atomic_load(&asked) + bytes <= atomic_load(&enough)) return true;
	return is_there(bytes, more);
}

size_t slp_memory_available(void)
{
	return read_room().bytes;
}

void slp_memory_promise(long bytes)
{
	atomic_fetch_add(&promised, bytes);
}

const char *slp_memory_limit_text(size_t bytes, char text[160])
{
	struct room r = read_room();
	int n = snprintf(text, 160,
	                 "out of memory: %zu bytes needed and %" PRIu64 " reserved, %" PRIu64 " available (limit: %s)",
	                 bytes, left_beside(bytes) + r.margin, r.bytes, r.whose);
	if (r.pieces > bytes && n > 0 && n < 160)
		snprintf(text + n, 160 - (size_t)n, ", %" PRIu64 " in pieces", r.pieces);
	return text;
}
