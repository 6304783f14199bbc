/* Values in a file: the thread that reads and writes.  First what a task waits for, then what the next ones will read, while
 * tasks compute. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alloc.h"
#include "runtime/fault.h"
#include "runtime/memory/memory_limit.h"
#include "runtime/memory/spill_file.h"
#include "runtime/memory/spill_values.h"
#include "runtime/thread.h"
#include "starling/base.h"

static void breaks(const char *why)
{
	if (!slp_spill.broken) snprintf(slp_spill.why, sizeof slp_spill.why, "%s", why);
	slp_spill.broken = true;
	pthread_cond_broadcast(&slp_spill.news);
}

static void drop(struct slp_spilled *s)
{
	slp_free_pages(s->memory, s->bytes);
	s->memory = NULL;
	slp_spill.resident -= s->bytes;
}

/* Reads or writes a value, unlocked. */
static bool move_value(struct slp_spilled *s, void *memory, bool out)
{
	char why[SLP_SPILL_MESSAGE];
	double start = sl_time();
	s->busy = slp_spill.accesses = true;
	pthread_mutex_unlock(&slp_spill.lock);
	bool ok = out ? slp_spill_file_write(memory, s->bytes, s->place, why, sizeof why)
	              : slp_spill_file_read(memory, s->bytes, s->place, why, sizeof why);
	pthread_mutex_lock(&slp_spill.lock);
	s->busy = slp_spill.accesses = false;
	slp_spill.progress++;
	*(out ? &slp_spill.counts.written : &slp_spill.counts.read) += s->bytes;
	*(out ? &slp_spill.counts.write_seconds : &slp_spill.counts.read_seconds) += sl_time() - start;
	if (!ok) breaks(why);
	pthread_cond_broadcast(&slp_spill.news);
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

/* The next victim leaves for a value that is used next by task `when`; false: none may, or it cannot be written. */
static bool puts_out_one(uint64_t when)
{
	struct slp_spilled *s = slp_spill_victim();
	return s && !(when && slp_spilled_next_use(s) <= when) && put_out(s);
}

/* Makes room for a value that is used next by task `when`, 0: by one that waits for it; false: not now.  What the program
 * itself holds comes on top of the room: who waits must not wait for it. */
static bool make_room(size_t bytes, uint64_t when)
{
	while (slp_spill.resident + bytes > slp_spill.room) {
		if (!slp_spill_victim()) return when == 0;
		if (!puts_out_one(when)) return false;
	}
	return true;
}

/* The room is no promise: where limits of the process refuse memory, further values leave for it.  NULL: not now.  A value that
 * a task waits for may wait for the end of tasks that run; without any, there is no memory for it. */
static void *find_memory(size_t bytes, uint64_t when)
{
	char text[160], why[SLP_SPILL_MESSAGE];
	void *memory;
	if (!make_room(bytes, when)) return NULL;
	while (!(memory = slp_try_pages(bytes)) && puts_out_one(when)) continue;
	if (memory || when || slp_spill.running) return memory;
	snprintf(why, sizeof why, "no memory for spilled values, all others have left: %s", slp_refused_text(text));
	return breaks(why), NULL;
}

static bool bring_in(struct slp_spilled *s, uint64_t when)
{
	s->busy = true;
	void *memory = find_memory(s->bytes, when);
	s->busy = false;
	if (!memory) return false;
	slp_spill.resident += s->bytes;
	bool ok = !s->in_file || move_value(s, memory, false);
	s->memory = memory;
	if (!ok) drop(s);
	pthread_cond_broadcast(&slp_spill.news);
	return ok;
}

/* Values leave for memory that others need. */
static bool give_way(void)
{
	size_t bytes = slp_spill.wanted, before = slp_spill.resident;
	if (!bytes) return false;
	while (before - slp_spill.resident < bytes && puts_out_one(0)) continue;
	slp_spill.gave = before - slp_spill.resident;
	slp_spill.wanted = 0;
	pthread_cond_broadcast(&slp_spill.news);
	return true;
}

/* The rest of the room is left for tasks that come. */
static bool work_once(void)
{
	bool now;
	if (slp_spill.broken) return false;
	if (give_way()) return true;
	struct slp_spilled *s = slp_spill_next_to_come(&now);
	if (!s) return false;
	if (now) return bring_in(s, 0);
	return slp_spill.started > slp_spill.short_at && bring_in(s, slp_spilled_next_use(s));
}

void slp_spilled_free(struct slp_spilled *s)
{
	*(s->before ? &s->before->next : &slp_spill.all) = s->next;
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
	pthread_mutex_lock(&slp_spill.lock);
	while (!slp_spill.ends)
		if (!work_once()) pthread_cond_wait(&slp_spill.work, &slp_spill.lock);
	while (slp_spill.all) slp_spilled_free(slp_spill.all);
	slp_spill_file_close();
	slp_spill.runs = slp_spill.stuck = false;
	pthread_cond_broadcast(&slp_spill.news);
	pthread_mutex_unlock(&slp_spill.lock);
	return NULL;
}

void slp_spill_wait_for_news(void)
{
	uint64_t before = slp_spill.progress;
	struct timespec end;
	clock_gettime(CLOCK_REALTIME, &end);
	double at = (double)end.tv_sec + 1e-9 * (double)end.tv_nsec + slp_spill.patience;
	end = (struct timespec){(time_t)at, (long)(1e9 * fmod(at, 1))};
	int error = pthread_cond_timedwait(&slp_spill.news, &slp_spill.lock, &end);
	if (error != ETIMEDOUT || slp_spill.progress != before || !slp_spill.accesses || slp_spill.broken) return;
	slp_spill.stuck = true;
	char why[SLP_SPILL_MESSAGE];
	snprintf(why, sizeof why, "the spill file %s has not answered for %g s (SL_SPILL_TIMEOUT)",
	         slp_spill_file_path(), slp_spill.patience);
	breaks(why);
}

/* ---- memory that others need ----------------------------------------------------------------------------------------- */

/* Until another task has begun, nothing comes ahead of its use: it would take the memory again. */
static bool ask_for_memory(size_t bytes)
{
	if (!slp_memory_limit_could_allow(bytes, slp_spill.resident)) return false;
	while (slp_spill.wanted && !slp_spill.broken) slp_spill_wait_for_news(); /* another one's */
	slp_spill.wanted = bytes;
	slp_spill.gave = 0;
	slp_spill.short_at = slp_spill.started;
	pthread_cond_signal(&slp_spill.work);
	while (slp_spill.wanted && !slp_spill.broken) slp_spill_wait_for_news();
	slp_spill.wanted = 0;
	return slp_spill.gave > 0;
}

/* For memory of tasks and libraries that limits refuse. */
static bool leave_for_others(size_t bytes)
{
	bool left = true, allowed = false;
	while (left && !allowed) {
		pthread_mutex_lock(&slp_spill.lock);
		left = ask_for_memory(bytes);
		pthread_mutex_unlock(&slp_spill.lock);
		allowed = slp_memory_limit_allows(bytes);
	}
	return allowed;
}

/* ---- start and stop -------------------------------------------------------------------------------------------------- */

bool slp_spill_thread_start(void)
{
	slp_spill.ends = slp_spill.broken = slp_spill.stuck = false;
	slp_spill.resident = slp_spill.held = slp_spill.wanted = 0;
	slp_spill.running = 0;
	slp_spill.submitted = slp_spill.started = slp_spill.short_at = 0;
	if (slp_thread_create(&slp_spill.thread, reads_and_writes, NULL)) return false;
	slp_spill.runs = true;
	atomic_store(&slp_memory_leave_for_others, leave_for_others);
	return true;
}

void slp_spill_thread_stop(void)
{
	atomic_store(&slp_memory_leave_for_others, NULL);
	pthread_mutex_lock(&slp_spill.lock);
	slp_spill.ends = true;
	pthread_cond_signal(&slp_spill.work);
	while (slp_spill.runs && !slp_spill.stuck) slp_spill_wait_for_news();
	bool stuck = slp_spill.stuck;
	pthread_mutex_unlock(&slp_spill.lock);
	if (stuck) pthread_detach(slp_spill.thread);
	else pthread_join(slp_spill.thread, NULL);
}
