/* Moments: the lock between changes of many tensors and saves of them, and copies for saves. */
#include "runtime/engine.h"
#include "runtime/forked.h"
#include "starling/tensor.h"
#include "tensor/moment.h"

#include <time.h>

#include "runtime/uncancelled.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER; /* changes share it, a save has it alone */
static _Thread_local int changes, moments;                 /* how deep this thread is in them */
static pthread_key_t key;

/* Saves that wait: changes that follow each other, of several threads, let them in between. */
static struct {
	atomic_int count;
	pthread_mutex_t lock;
	pthread_cond_t begun;
} saves = {.lock = PTHREAD_MUTEX_INITIALIZER, .begun = PTHREAD_COND_INITIALIZER};

static void reset_in_child(void)
{
	pthread_mutex_init(&saves.lock, NULL);
	pthread_cond_init(&saves.begun, NULL);
	atomic_store(&saves.count, 0);
	pthread_rwlock_init(&lock, NULL);
	if (moments) pthread_rwlock_wrlock(&lock); /* the thread that has forked goes on */
	else if (changes) pthread_rwlock_rdlock(&lock);
}
SLP_AT_FORK(reset_in_child);

/* A thread ends within a function of the program's. */
static void thread_ends(void *unused)
{
	(void)unused;
	if (changes || moments) pthread_rwlock_unlock(&lock);
	changes = moments = 0;
}

static void make_key(void)
{
	(void)pthread_key_create(&key, thread_ends);
}

static void note_thread(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static _Thread_local bool noted;
	if (noted) return;
	pthread_once(&once, make_key);
	noted = pthread_setspecific(key, &noted) == 0;
}

/* For a while only: a change that the save waits for may wait for this thread. */
static void let_saves_begin(void)
{
	SLP_UNCANCELLED();
	struct timespec end;
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec++;
	pthread_mutex_lock(&saves.lock);
	while (atomic_load(&saves.count))
		if (pthread_cond_timedwait(&saves.begun, &saves.lock, &end)) break;
	pthread_mutex_unlock(&saves.lock);
}

static void begin_save(void)
{
	atomic_fetch_add(&saves.count, 1);
	pthread_rwlock_wrlock(&lock);
	pthread_mutex_lock(&saves.lock);
	atomic_fetch_sub(&saves.count, 1);
	pthread_cond_broadcast(&saves.begun);
	pthread_mutex_unlock(&saves.lock);
}

void slp_change_begin(void)
{
	if (changes++ || moments) return;
	note_thread();
	if (atomic_load(&saves.count)) let_saves_begin();
	pthread_rwlock_rdlock(&lock);
}

void slp_change_end(void)
{
	if (!--changes && !moments) pthread_rwlock_unlock(&lock);
}

void slp_moment_begin(void)
{
	if (moments++ || changes) return;
	note_thread();
	begin_save();
}

void slp_moment_end(void)
{
	if (!--moments && !changes) pthread_rwlock_unlock(&lock);
}

bool slp_moment_copy(const char *at, sl_tensor **list, int count)
{
	const sl_device memory = {SL_DEVICE_CPU, -1};
	SLP_MODE_SCOPE();
	bool ok = true;
	slp_mode.recorder = NULL; /* no gradients flow through a save */
	SL_SCOPE
		for (int i = 0; ok && i < count; i++) {
			/* In main memory, if a CPU worker can write it there. */
			sl_device there = slp_engine.nteams ? memory : sl_tensor_device(list[i]);
			sl_tensor *copy = sl_retain(sl_copy_to_at(at, list[i], there));
			ok = copy != NULL;
			if (!ok) break;
			sl_release(list[i]);
			list[i] = copy;
		}
	return ok;
}
