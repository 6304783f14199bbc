/* Batches of samples read into main memory by threads, ahead of their use.
 *
 * Slots for batches lie in a ring.  Threads take a few rows at a time from the oldest batch that has any left, and do
 * not hold the lock while they read; so one batch is made by all threads at once, and the next ones are begun when
 * there is nothing left of it to take.  What a sample becomes depends on its number, the seed and the epoch, never on
 * who reads it. Of the failures in a batch the one in the first row counts, however the threads were quick. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/reader.h"
#include "op.h"
#include "runtime/fault.h"
#include "runtime/gate.h"
#include "runtime/thread.h"
#include "runtime/uncancelled.h"
#include "starling/data.h"
#include "tensor/tensor.h"

struct fault {
	int64_t row; /* -1: none */
	struct slp_pending error;
};

struct slot {
	int32_t *numbers;
	char *x, *y;
	int64_t rows, given, done; /* given out to threads; finished */
	uint64_t seed, epoch;
	struct fault fault;
};

struct slp_reader {
	sl_dataset *dataset;
	size_t x_bytes, y_bytes;
	pthread_mutex_t lock;
	pthread_cond_t work, done; /* there is more to do; a batch is complete, or a thread idle */
	struct slot *ring;
	int slots, first, count;
	int at_work; /* threads that hold rows */
	bool ending;
	pthread_t *threads;
	int nthreads;
	pid_t process; /* where the threads are */
};

/* Rows that one thread is at. */
struct share {
	struct slot *slot;
	int64_t begin, end;
};

/* The calling thread's current work: the function that gets samples may use other loaders. */
static _Thread_local const struct getting {
	const struct slp_reader *reader;
	const struct getting *outer;
} * getting;

bool slp_reader_is_here(const struct slp_reader *r)
{
	return r->process == getpid();
}

/* ---- work ------------------------------------------------------------------------------------------------------- */

/* With the lock; false: there is nothing to do. */
static bool take(struct slp_reader *r, struct share *s)
{
	enum { SHARE = 8 };
	for (int i = 0; i < r->count; i++) {
		struct slot *slot = &r->ring[(r->first + i) % r->slots];
		if (slot->given == slot->rows) continue;
		int64_t end = slot->given + SHARE < slot->rows ? slot->given + SHARE : slot->rows;
		*s = (struct share){slot, slot->given, end};
		slot->given = end;
		r->at_work++;
		return true;
	}
	return false;
}

static bool read_row(const struct slp_reader *r, const struct slot *slot, int64_t row)
{
	uint64_t number = (uint64_t)slot->numbers[row];
	struct sl_sample s = {.index = (int64_t)number,
	                      .x = slot->x + (size_t)row * r->x_bytes,
	                      .y = r->y_bytes ? slot->y + (size_t)row * r->y_bytes : NULL,
	                      .random = {slot->seed, slot->epoch | 3ull << 62, number, 0}};
	return slp_dataset_get(r->dataset, &s);
}

/* Without the lock, until one fails. */
static void read_rows(const struct slp_reader *r, const struct share *s, struct fault *fault)
{
	const struct getting mine = {r, getting};
	getting = &mine;
	for (int64_t row = s->begin; row < s->end; row++)
		if (!read_row(r, s->slot, row)) {
			fault->row = row;
			break;
		}
	getting = mine.outer;
	slp_error_set_aside(&fault->error); /* also one that was not reported */
}

/* With the lock. */
static void finish(struct slp_reader *r, const struct share *s, const struct fault *fault)
{
	struct slot *slot = s->slot;
	if (fault->row >= 0 && (slot->fault.row < 0 || fault->row < slot->fault.row)) slot->fault = *fault;
	slot->done += s->end - s->begin;
	r->at_work--;
	if (slot->done == slot->rows || !r->at_work) pthread_cond_broadcast(&r->done);
}

struct work {
	struct slp_reader *reader;
	const struct share *share;
	struct fault fault;
};

/* The function that gets samples ends its thread: the others continue. */
static void thread_ends(void *given)
{
	struct work *w = given;
	w->fault.row = w->share->begin;
	w->fault.error.status = SL_ESTATE;
	snprintf(w->fault.error.message, sizeof w->fault.error.message, "the function that gets it ended its thread");
	pthread_mutex_lock(&w->reader->lock);
	finish(w->reader, w->share, &w->fault);
	pthread_mutex_unlock(&w->reader->lock);
}

/* With the lock, which it lets go meanwhile. */
static void work(struct slp_reader *r, const struct share *s)
{
	struct work w = {r, s, {.row = -1}};
	pthread_mutex_unlock(&r->lock);
	pthread_cleanup_push(thread_ends, &w);
	read_rows(r, s, &w.fault);
	pthread_cleanup_pop(0);
	pthread_mutex_lock(&r->lock);
	finish(r, s, &w.fault);
}

static void *run_thread(void *arg)
{
	struct slp_reader *r = arg;
	struct share s;
	pthread_mutex_lock(&r->lock);
	while (!r->ending)
		if (take(r, &s)) work(r, &s);
		else pthread_cond_wait(&r->work, &r->lock);
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* ---- start and end ---------------------------------------------------------------------------------------------- */

static bool start_threads(struct slp_reader *r, int workers)
{
	int error = 0;
	r->threads = slp_calloc((size_t)workers + 1, sizeof *r->threads);
	if (!r->threads) return false;
	while (r->nthreads < workers && !(error = slp_thread_create(&r->threads[r->nthreads], run_thread, r)))
		r->nthreads++;
	return !error || slp_data_fail(SL_ENOMEM, "no thread for worker %d: %s", r->nthreads, strerror(error));
}

static bool make_slots(struct slp_reader *r, int slots, int64_t rows)
{
	size_t x, y;
	r->ring = slp_calloc((size_t)slots, sizeof *r->ring);
	if (!r->ring) return false;
	r->slots = slots;
	if (__builtin_mul_overflow(r->x_bytes, (size_t)rows, &x) ||
	    __builtin_mul_overflow(r->y_bytes, (size_t)rows, &y))
		return slp_data_fail(SL_ENOMEM, "batches are larger than memory");
	for (int i = 0; i < slots; i++) {
		struct slot *s = &r->ring[i];
		s->numbers = slp_malloc((size_t)rows * sizeof *s->numbers);
		s->x = s->numbers ? slp_malloc(x + 1) : NULL;
		s->y = s->x ? slp_malloc(y + 1) : NULL;
		if (!s->y) return false;
	}
	return true;
}

struct slp_reader *slp_reader_new(sl_dataset *d, int workers, int slots, int64_t rows)
{
	struct slp_reader *r = slp_calloc(1, sizeof *r);
	if (!r) return NULL;
	r->process = getpid();
	r->dataset = slp_dataset_hold(d);
	r->x_bytes = slp_array_bytes(d->x);
	r->y_bytes = slp_array_bytes(d->y);
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->work, NULL);
	pthread_cond_init(&r->done, NULL);
	if (make_slots(r, slots, rows) && start_threads(r, workers)) return r;
	slp_reader_free(r);
	return NULL;
}

static void end_threads(struct slp_reader *r)
{
	pthread_mutex_lock(&r->lock);
	r->ending = true;
	pthread_cond_broadcast(&r->work);
	pthread_mutex_unlock(&r->lock);
	for (int i = 0; i < r->nthreads; i++) pthread_join(r->threads[i], NULL);
	pthread_mutex_destroy(&r->lock);
	pthread_cond_destroy(&r->work);
	pthread_cond_destroy(&r->done);
}

void slp_reader_free(struct slp_reader *r)
{
	if (!r) return;
	if (slp_reader_is_here(r)) end_threads(r);
	for (int i = 0; r->ring && i < r->slots; i++) {
		free(r->ring[i].numbers);
		free(r->ring[i].x);
		free(r->ring[i].y);
	}
	free(r->ring);
	free(r->threads);
	sl_dataset_free(r->dataset);
	free(r);
}

bool slp_reader_is_asking(const struct slp_reader *r)
{
	const struct getting *g = getting;
	while (g && g->reader != r) g = g->outer;
	return g != NULL;
}

/* ---- batches ---------------------------------------------------------------------------------------------------- */

void slp_reader_ask(struct slp_reader *r, const int32_t *numbers, int64_t rows, uint64_t seed, uint64_t epoch)
{
	pthread_mutex_lock(&r->lock);
	struct slot *s = &r->ring[(r->first + r->count) % r->slots];
	memcpy(s->numbers, numbers, (size_t)rows * sizeof *numbers);
	s->rows = rows;
	s->given = s->done = 0;
	s->seed = seed;
	s->epoch = epoch;
	s->fault.row = -1;
	r->count++;
	pthread_cond_broadcast(&r->work);
	pthread_mutex_unlock(&r->lock);
}

/* Samples fail without a place and a function: it is the loader's call whose fault this is. */
static bool report(const struct slot *s, const char *at)
{
	const struct slp_pending *e = &s->fault.error;
	slp_call_fail(at, "sl_loader_next", e->status == SL_OK ? SL_EINTERNAL : e->status, "sample %d: %s",
	              (int)s->numbers[s->fault.row], e->message);
	return false;
}

/* The calling thread works as the others do: faults of its samples are not its error yet. */
static void lend_a_hand(struct slp_reader *r, const struct slot *oldest)
{
	SLP_UNCANCELLED();
	struct slp_pending mine;
	struct slp_paused call;
	struct share s;
	slp_error_set_aside(&mine);
	slp_call_pause(&call);
	pthread_mutex_lock(&r->lock);
	while (oldest->done < oldest->rows)
		if (oldest->given < oldest->rows && take(r, &s)) work(r, &s);
		else pthread_cond_wait(&r->done, &r->lock);
	pthread_mutex_unlock(&r->lock);
	slp_call_resume(&call);
	slp_error_rejoin(&mine);
}

bool slp_reader_wait(struct slp_reader *r, const char *at, int64_t *rows, const void **x, const void **y)
{
	struct slot *s = &r->ring[r->first];
	lend_a_hand(r, s);
	*rows = s->rows;
	*x = s->x;
	*y = r->y_bytes ? s->y : NULL;
	return s->fault.row < 0 || report(s, at);
}

void slp_reader_drop(struct slp_reader *r)
{
	pthread_mutex_lock(&r->lock);
	r->first = (r->first + 1) % r->slots;
	r->count--;
	pthread_mutex_unlock(&r->lock);
}

void slp_reader_clear(struct slp_reader *r)
{
	SLP_UNCANCELLED();
	if (!slp_reader_is_here(r)) return;
	pthread_mutex_lock(&r->lock);
	for (int i = 0; i < r->count; i++) {
		struct slot *s = &r->ring[(r->first + i) % r->slots];
		s->given = s->rows; /* no thread takes more of it */
	}
	while (r->at_work) pthread_cond_wait(&r->done, &r->lock);
	r->count = 0;
	pthread_mutex_unlock(&r->lock);
}
