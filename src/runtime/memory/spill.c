/* Values in a file while main memory is too small for all: which of them are in memory.
 *
 * Each task says when it is submitted which values it will use, so the future is known as far as the program runs ahead.
 * If memory is needed, the value whose next use is latest leaves it (L. Belady, "A study of replacement algorithms for a
 * virtual-storage computer", 1966), and is written if the file does not have it yet.  One thread reads and writes: first
 * what a task waits for, then what the next ones will read, while tasks compute.  A task gets all of its values at once
 * before it runs, so tasks never wait for each other's.
 *
 * StarPU's own disks (starpu_disk_register, STARPU_DISK_SWAP) are not used: StarPU ends the program if a disk is full or an
 * access fails, it can move only memory that it has allocated itself, and it chooses by the past. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alloc.h"
#include "number.h"
#include "options.h"
#include "runtime/engine.h"
#include "runtime/fault.h"
#include "runtime/forked.h"
#include "runtime/memory/memory_limit.h"
#include "runtime/memory/pool.h"
#include "runtime/memory/spill.h"
#include "runtime/memory/spill_file.h"
#include "runtime/task/buffer.h"
#include "runtime/task/segment.h"
#include "runtime/thread.h"
#include "runtime/uncancelled.h"
#include "starling/spill.h"

enum { SMALLEST = 65536, MESSAGE = 320 };

struct slp_spilled {
	void *memory;        /* NULL: its values are in the file, or there are none */
	size_t bytes;        /* of the memory: pages */
	int64_t place;       /* in the file; -1: none yet */
	bool in_file, dirty; /* the file has values; those in memory are newer */
	bool busy;           /* being read or written, or room is made for it: it stays */
	bool asked;          /* a task waits for it */
	int held;            /* by tasks that run, and the program */
	uint64_t *uses;      /* numbers of the submitted tasks that will use it, a ring */
	int first, count, most;
	uint64_t last;                     /* when it was used last */
	struct slp_spilled *next, *before; /* of all */
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t work, news; /* for the thread; for those who wait for it */
	pthread_t thread;
	bool on, ends, broken;
	bool runs, stuck;  /* the thread; in an access that does not end */
	char why[MESSAGE]; /* broken */
	struct slp_spilled *all;
	size_t room, resident, held; /* bytes: the most in memory, in memory, held there */
	uint64_t submitted, started; /* tasks */
	uint64_t progress;           /* accesses that have ended */
	struct slp_spill_counts counts;
	double patience; /* seconds that one access may take */
} spill = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};
SLP_FORK_MUTEX(spill.lock);

/* What sl_spill asked for. */
static struct {
	char *path;
	size_t memory;
} asked;

/* ---- the order of uses --------------------------------------------------------------------------------------------- */

static uint64_t next_use(const struct slp_spilled *s)
{
	return s->count ? s->uses[s->first] : UINT64_MAX;
}

/* Without memory to note it, the value is taken for one that is not used soon. */
static void note_use(struct slp_spilled *s, uint64_t task)
{
	if (s->count == s->most) {
		int most = s->most ? 2 * s->most : 8;
		uint64_t *more = slp_try_malloc((size_t)most * sizeof *more);
		if (!more) return;
		for (int i = 0; i < s->count; i++) more[i] = s->uses[(s->first + i) % s->most];
		free(s->uses);
		s->uses = more;
		s->first = 0;
		s->most = most;
	}
	s->uses[(s->first + s->count++) % s->most] = task;
}

static void forget_uses(struct slp_spilled *s, uint64_t task)
{
	while (s->count && s->uses[s->first] <= task) {
		s->first = (s->first + 1) % s->most;
		s->count--;
	}
}

/* ---- the thread that reads and writes ------------------------------------------------------------------------------ */

static void breaks(const char *why)
{
	if (!spill.broken) snprintf(spill.why, sizeof spill.why, "%s", why);
	spill.broken = true;
	pthread_cond_broadcast(&spill.news);
}

static bool may_leave(const struct slp_spilled *s)
{
	return s->memory && !s->held && !s->busy && !s->asked;
}

/* Whose next use is latest; of those without one, the one that was used longest ago. */
static struct slp_spilled *victim(void)
{
	struct slp_spilled *best = NULL;
	for (struct slp_spilled *s = spill.all; s; s = s->next) {
		if (!may_leave(s)) continue;
		uint64_t a = next_use(s), b = best ? next_use(best) : 0;
		if (!best || a > b || (a == b && s->last < best->last)) best = s;
	}
	return best;
}

static void drop(struct slp_spilled *s)
{
	free(s->memory);
	s->memory = NULL;
	spill.resident -= s->bytes;
}

/* Reads or writes a value, unlocked. */
static bool move_value(struct slp_spilled *s, void *memory, bool out)
{
	char why[MESSAGE];
	double start = sl_time();
	s->busy = true;
	pthread_mutex_unlock(&spill.lock);
	bool ok = out ? slp_spill_file_write(memory, s->bytes, s->place, why, sizeof why)
	              : slp_spill_file_read(memory, s->bytes, s->place, why, sizeof why);
	pthread_mutex_lock(&spill.lock);
	s->busy = false;
	spill.progress++;
	*(out ? &spill.counts.written : &spill.counts.read) += s->bytes;
	*(out ? &spill.counts.write_seconds : &spill.counts.read_seconds) += sl_time() - start;
	if (!ok) breaks(why);
	pthread_cond_broadcast(&spill.news);
	return ok;
}

/* False: it stays, because it could not be written. */
static bool put_out(struct slp_spilled *s)
{
	if (s->dirty && s->place < 0) s->place = slp_spill_file_place(s->bytes);
	if (s->dirty) {
		s->dirty = false;
		if (!move_value(s, s->memory, true)) return s->dirty = true, false;
		s->in_file = true;
	}
	if (!s->held && !s->dirty) drop(s);
	return true;
}

/* Makes room for a value that is used next by task `when`, 0: by one that waits for it; false: not now.  What the program
 * itself holds comes on top of the room: who waits must not wait for it. */
static bool make_room(size_t bytes, uint64_t when)
{
	while (spill.resident + bytes > spill.room) {
		struct slp_spilled *s = victim();
		if (!s) return when == 0;
		if ((when && next_use(s) <= when) || !put_out(s)) return false;
	}
	return true;
}

static bool bring_in(struct slp_spilled *s, uint64_t when)
{
	s->busy = true;
	bool room = make_room(s->bytes, when);
	s->busy = false;
	if (!room) return false;
	void *memory = slp_try_aligned_alloc(SLP_SPILL_PAGE, s->bytes);
	if (!memory) return breaks("no memory for spilled values: allow them less of it"), false;
	spill.resident += s->bytes;
	bool ok = !s->in_file || move_value(s, memory, false);
	s->memory = memory;
	if (!ok) drop(s);
	pthread_cond_broadcast(&spill.news);
	return ok;
}

/* What a task waits for; else what will be read next and is not in memory; NULL: nothing. */
static struct slp_spilled *next_to_come(bool *now)
{
	struct slp_spilled *best = NULL;
	for (struct slp_spilled *s = spill.all; s; s = s->next) {
		if (s->memory || s->busy) continue;
		if (s->asked) return *now = true, s;
		if (s->in_file && s->count && (!best || next_use(s) < next_use(best))) best = s;
	}
	return *now = false, best;
}

/* The rest of the room is left for tasks that come. */
static bool work_once(void)
{
	bool now;
	struct slp_spilled *s = next_to_come(&now);
	if (!s || spill.broken) return false;
	if (now) return bring_in(s, 0);
	return bring_in(s, next_use(s));
}

static void forget(struct slp_spilled *s)
{
	*(s->before ? &s->before->next : &spill.all) = s->next;
	if (s->next) s->next->before = s->before;
	if (s->memory) drop(s);
	if (s->place >= 0) slp_spill_file_give(s->place, s->bytes);
	free(s->uses);
	free(s);
}

/* Buffers that were freed during an access that did not end have left their values behind. */
static void *reads_and_writes(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&spill.lock);
	while (!spill.ends)
		if (!work_once()) pthread_cond_wait(&spill.work, &spill.lock);
	while (spill.all) forget(spill.all);
	slp_spill_file_close();
	spill.runs = spill.stuck = false;
	pthread_cond_broadcast(&spill.news);
	pthread_mutex_unlock(&spill.lock);
	return NULL;
}

/* ---- waiting for values -------------------------------------------------------------------------------------------- */

/* Waits for news of the file, as long as one access may take. */
static void wait_for_news(void)
{
	uint64_t before = spill.progress;
	struct timespec end;
	clock_gettime(CLOCK_REALTIME, &end);
	double at = (double)end.tv_sec + 1e-9 * (double)end.tv_nsec + spill.patience;
	end = (struct timespec){(time_t)at, (long)(1e9 * fmod(at, 1))};
	int error = pthread_cond_timedwait(&spill.news, &spill.lock, &end);
	if (error != ETIMEDOUT || spill.progress != before || spill.broken) return;
	spill.stuck = true;
	char why[MESSAGE];
	snprintf(why, sizeof why, "the spill file %s has not answered for %g s (SL_SPILL_TIMEOUT)",
	         slp_spill_file_path(), spill.patience);
	breaks(why);
}

/* A set of values that are needed together. */
struct set {
	struct slp_spilled **list;
	int count;
	size_t bytes;
};

static bool is_there(const struct set *set)
{
	for (int i = 0; i < set->count; i++)
		if (!set->list[i]->memory || set->list[i]->busy) return false;
	return true;
}

/* Waits until the set fits beside those of other tasks that run.  False: it never will. */
static bool fits(const struct set *set, char *why, size_t size)
{
	while (spill.held && spill.held + set->bytes > spill.room && !spill.broken)
		pthread_cond_wait(&spill.news, &spill.lock);
	if (set->bytes <= spill.room) return true;
	snprintf(why, size, "it uses %zu bytes at once, and spilled values may take %zu of memory (SL_SPILL_MEMORY)",
	         set->bytes, spill.room);
	return false;
}

/* Brings the set into memory and holds it. */
static bool hold_set(const struct set *set, char *why, size_t size)
{
	double start = is_there(set) ? 0 : sl_time();
	for (int i = 0; i < set->count; i++) {
		set->list[i]->held++;
		set->list[i]->asked = true;
	}
	while (!is_there(set) && !spill.broken) {
		pthread_cond_signal(&spill.work);
		wait_for_news();
	}
	bool ok = is_there(set);
	if (start > 0) spill.counts.waited += sl_time() - start;
	for (int i = 0; i < set->count; i++) set->list[i]->asked = false;
	if (!ok) snprintf(why, size, "%s", spill.why);
	return ok;
}

static void release_value(struct slp_spilled *s, bool written)
{
	s->dirty |= written;
	s->last = spill.started;
	s->held--;
	pthread_cond_signal(&spill.work);
	pthread_cond_broadcast(&spill.news);
}

/* ---- segments ------------------------------------------------------------------------------------------------------ */

static bool is_written(const struct slp_segment *seg, int buffer)
{
	for (int i = 0; i < seg->nslots; i++)
		if (seg->slots[i].buffer == seg->buffers[buffer] && seg->slots[i].mode & STARPU_W) return true;
	return false;
}

void slp_spill_foresee(struct slp_segment *seg)
{
	if (!spill.on) return;
	pthread_mutex_lock(&spill.lock);
	seg->spill_number = ++spill.submitted;
	for (int i = 0; i < seg->nbuffers; i++)
		if (seg->buffers[i]->spilled) note_use(seg->buffers[i]->spilled, seg->spill_number);
	pthread_cond_signal(&spill.work);
	pthread_mutex_unlock(&spill.lock);
}

/* Those of a segment that are spilled. */
static struct set set_of(const struct slp_segment *seg, struct slp_spilled **list)
{
	struct set set = {.list = list};
	for (int i = 0; i < seg->nbuffers; i++) {
		struct slp_spilled *s = seg->buffers[i]->spilled;
		if (!s) continue;
		if (list) list[set.count] = s;
		set.count++;
		set.bytes += s->bytes;
	}
	return set;
}

static enum sl_status enter(struct slp_segment *seg, const struct set *set, char *why, size_t size)
{
	if (seg->spill_number > spill.started) spill.started = seg->spill_number;
	for (int i = 0; i < set->count; i++) forget_uses(set->list[i], seg->spill_number);
	if (!fits(set, why, size)) return SL_ENOMEM;
	spill.held += set->bytes;
	seg->spill_held = hold_set(set, why, size);
	if (seg->spill_held) return SL_OK;
	spill.held -= set->bytes;
	for (int i = 0; i < set->count; i++) release_value(set->list[i], false);
	return SL_EIO;
}

enum sl_status slp_spill_enter(struct slp_segment *seg, char *why, size_t size)
{
	if (!spill.on) return SL_OK;
	struct slp_spilled **list = slp_try_malloc((size_t)(seg->nbuffers + 1) * sizeof *list);
	if (!list) return snprintf(why, size, "no memory to bring values back"), SL_ENOMEM;
	struct set set = set_of(seg, list);
	pthread_mutex_lock(&spill.lock);
	enum sl_status s = enter(seg, &set, why, size);
	pthread_mutex_unlock(&spill.lock);
	free(list);
	return s;
}

/* The last task to use values that nobody holds leaves nothing to write. */
void slp_spill_leave(struct slp_segment *seg)
{
	if (!spill.on || !seg->spill_held) return;
	pthread_mutex_lock(&spill.lock);
	spill.held -= set_of(seg, NULL).bytes;
	for (int i = 0; i < seg->nbuffers; i++) {
		struct slp_spilled *s = seg->buffers[i]->spilled;
		if (!s) continue;
		release_value(s, is_written(seg, i));
		if (slp_pool_is_last(seg->buffers[i])) s->dirty = s->in_file = false;
	}
	seg->spill_held = false;
	pthread_mutex_unlock(&spill.lock);
}

/* ---- the program's own accesses ------------------------------------------------------------------------------------ */

void *slp_spill_hold(struct slp_buffer *b, char *why, size_t size)
{
	SLP_UNCANCELLED();
	struct set set = {.list = &b->spilled, .count = 1, .bytes = b->spilled->bytes};
	pthread_mutex_lock(&spill.lock);
	bool ok = hold_set(&set, why, size);
	if (!ok) release_value(b->spilled, false);
	pthread_mutex_unlock(&spill.lock);
	return ok ? b->spilled->memory : NULL;
}

void slp_spill_release(struct slp_buffer *b, bool written)
{
	pthread_mutex_lock(&spill.lock);
	release_value(b->spilled, written);
	pthread_mutex_unlock(&spill.lock);
}

void *slp_spill_memory(const struct slp_buffer *b)
{
	return b->spilled->memory;
}

/* ---- buffers ------------------------------------------------------------------------------------------------------- */

size_t slp_spill_room(void)
{
	return spill.on ? spill.room : 0;
}

bool slp_spill_takes(size_t bytes)
{
	return spill.on && bytes >= SMALLEST;
}

bool slp_spill_enlist(struct slp_buffer *b)
{
	struct slp_spilled *s = slp_try_calloc(1, sizeof *s);
	if (!s) return false;
	s->bytes = (b->bytes + SLP_SPILL_PAGE - 1) / SLP_SPILL_PAGE * SLP_SPILL_PAGE;
	s->place = -1;
	b->spilled = s;
	pthread_mutex_lock(&spill.lock);
	s->next = spill.all;
	if (spill.all) spill.all->before = s;
	spill.all = s;
	pthread_mutex_unlock(&spill.lock);
	return true;
}

void slp_spill_discharge(struct slp_buffer *b)
{
	struct slp_spilled *s = b->spilled;
	if (!s) return;
	pthread_mutex_lock(&spill.lock);
	while (s->busy && !spill.stuck) wait_for_news();
	b->spilled = NULL;
	if (s->busy) { /* an access that does not end: it stays */
		pthread_mutex_unlock(&spill.lock);
		return;
	}
	forget(s);
	pthread_mutex_unlock(&spill.lock);
}

void slp_spill_dead(struct slp_buffer *b)
{
	if (!b->spilled) return;
	pthread_mutex_lock(&spill.lock);
	b->spilled->dirty = b->spilled->in_file = false;
	pthread_mutex_unlock(&spill.lock);
}

struct slp_spill_counts slp_spill_counts(void)
{
	pthread_mutex_lock(&spill.lock);
	struct slp_spill_counts counts = spill.counts;
	pthread_mutex_unlock(&spill.lock);
	return counts;
}

/* ---- start and stop ------------------------------------------------------------------------------------------------ */

/* Half of the memory that is there: tasks need some to work in, and so does the program. */
static size_t default_room(void)
{
	return slp_memory_available() / 2;
}

static bool read_settings(const char *at, const char **path)
{
	const char *memory = getenv("SL_SPILL_MEMORY"), *timeout = getenv("SL_SPILL_TIMEOUT");
	int64_t bytes = 0;
	double seconds = 0;
	*path = asked.path ? asked.path : getenv("SL_SPILL");
	bool ok = (!memory || !*memory || (slp_whole_given(memory, &bytes) && bytes > 0)) &&
	          (!timeout || !*timeout || (slp_real_given(timeout, &seconds) && seconds > 0));
	if (!ok)
		return slp_call_fail(at, "sl_init", SL_EINVAL,
		                     "SL_SPILL_MEMORY must be a number of bytes from 1 on, "
		                     "SL_SPILL_TIMEOUT one of seconds above 0") != NULL;
	pthread_mutex_lock(&spill.lock);
	spill.room = asked.memory ? asked.memory : bytes ? (size_t)bytes : default_room();
	spill.patience = seconds > 0 ? seconds : 30;
	pthread_mutex_unlock(&spill.lock);
	return true;
}

static bool still_runs(void)
{
	pthread_mutex_lock(&spill.lock);
	bool runs = spill.runs;
	pthread_mutex_unlock(&spill.lock);
	return runs;
}

/* There is one memory, which the engine allocates itself. */
static const char *why_not(bool alone)
{
	if (!alone) return "values of several processes are not spilled";
	if (still_runs()) return "the previous spill file has still not answered";
	if (slp_engine.ngpus || slp_engine.nslaves) return "values are spilled without GPUs and slave processes only";
	if (sl_is_simulated()) return "a simulation spills nothing";
	return NULL;
}

enum sl_status slp_spill_start(const char *at, bool alone)
{
	const char *path;
	char why[MESSAGE];
	spill.counts = (struct slp_spill_counts){0};
	if (!read_settings(at, &path)) return SL_EINVAL;
	if (!path || !*path) return SL_OK;
	const char *refused = why_not(alone);
	if (refused) return slp_call_fail(at, "sl_init", SL_EUNSUPPORTED, "%s", refused), SL_EUNSUPPORTED;
	if (!slp_spill_file_open(path, why, sizeof why)) return slp_call_fail(at, "sl_init", SL_EIO, "%s", why), SL_EIO;
	spill.ends = spill.broken = spill.stuck = false;
	spill.resident = spill.held = 0;
	if (slp_thread_create(&spill.thread, reads_and_writes, NULL)) {
		slp_spill_file_close();
		return slp_call_fail(at, "sl_init", SL_ENOMEM, "no thread for the spill file"), SL_ENOMEM;
	}
	spill.on = spill.runs = true;
	return SL_OK;
}

/* All buffers have been freed.  A thread whose access does not end is left alone; it closes the file when it does. */
void slp_spill_stop(void)
{
	if (!spill.on) return;
	pthread_mutex_lock(&spill.lock);
	spill.ends = true;
	pthread_cond_signal(&spill.work);
	while (spill.runs && !spill.stuck) wait_for_news();
	bool stuck = spill.stuck;
	pthread_mutex_unlock(&spill.lock);
	if (stuck) pthread_detach(spill.thread);
	else pthread_join(spill.thread, NULL);
	spill.on = false;
}

/* Values that do not fit into main memory go to a file, and come back before they are used: parameters, states of
 * optimisers, values that the backward pass reads.  path names a new file, which has no name once it is open and goes with
 * the process, or a folder for it, best on a fast disk that is not tmpfs.  Values may take .memory bytes of main memory;
 * operations work in memory beside that.  Results have the same bits.  Takes effect when the engine starts next; path NULL:
 * nothing is spilled.  SL_EINVAL: .memory is below 1; SL_ESTATE: the engine runs; when it starts, SL_EIO: the file cannot be made, SL_EUNSUPPORTED: there
 * are GPUs.  If the file cannot be written or read, or does not answer for 30 s (SL_SPILL_TIMEOUT), operations fail with
 * SL_EIO.  SL_SPILL and SL_SPILL_MEMORY do the same from outside.
 *
 *     sl_spill("/var/tmp", .memory = (int64_t)2 << 30); */
enum sl_status sl_spill_at(const char *at, const char *path, struct sl_spill_opts opts)
{
	SLP_CALL("sl_spill", at);
	if (!SLP_OPTIONS(sl_spill_opts, at, "sl_spill", &opts)) return SL_EINVAL;
	if (opts.memory < 0)
		return slp_call_fail(at, "sl_spill", SL_EINVAL, ".memory is %lld bytes", (long long)opts.memory),
		       SL_EINVAL;
	if (sl_is_initialized())
		return slp_call_fail(at, "sl_spill", SL_ESTATE, "the engine runs: call it before the first operation"),
		       SL_ESTATE;
	char *copy = path ? slp_strdup(path) : NULL;
	if (path && !copy) return sl_error();
	free(asked.path);
	asked.path = copy;
	asked.memory = (size_t)opts.memory;
	return SL_OK;
}
