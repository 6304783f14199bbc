/* Emulated GPUs: streams and events.  A stream is a thread with a queue, or runs what it is given at once. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

/* A point in a stream. */
struct emu_mark {
	int refs;
	bool done;
	double us; /* of its stream's clock */
};

struct CUstream_st {
	struct emu_device *device;
	bool blocking, busy, stop; /* blocking: it and the NULL stream wait for each other */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct emu_work *head, **tail;
	struct emu_capture capture;
	double us; /* its clock */
	struct CUstream_st *next;
};

struct CUevent_st {
	struct emu_device *device;
	struct emu_mark *mark; /* NULL: not recorded yet */
};

static pthread_mutex_t mark_lock = PTHREAD_MUTEX_INITIALIZER, list_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t mark_reached = PTHREAD_COND_INITIALIZER;

static void *allocate(size_t n)
{
	void *p = calloc(1, n);
	if (!p) emu_misuse("no memory");
	return p;
}

struct emu_work *emu_work_new(enum emu_kind kind)
{
	struct emu_work *w = allocate(sizeof *w);
	w->kind = kind;
	return w;
}

/* ---- marks ------------------------------------------------------------------------------------------------------ */

static struct emu_mark *mark_new(int refs)
{
	struct emu_mark *m = allocate(sizeof *m);
	m->refs = refs;
	return m;
}

static void mark_drop(struct emu_mark *m)
{
	if (m && __atomic_sub_fetch(&m->refs, 1, __ATOMIC_ACQ_REL) == 0) free(m);
}

static bool mark_done(const struct emu_mark *m)
{
	return !m || __atomic_load_n(&m->done, __ATOMIC_ACQUIRE);
}

static void mark_wait(struct emu_mark *m)
{
	pthread_mutex_lock(&mark_lock);
	while (!mark_done(m)) pthread_cond_wait(&mark_reached, &mark_lock);
	pthread_mutex_unlock(&mark_lock);
}

static void mark_set(struct emu_mark *m)
{
	pthread_mutex_lock(&mark_lock);
	__atomic_store_n(&m->done, true, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&mark_reached);
	pthread_mutex_unlock(&mark_lock);
}

/* ---- the work --------------------------------------------------------------------------------------------------- */

static void move(const struct emu_work *w)
{
	for (size_t z = 0; z < w->depth; z++)
		for (size_t y = 0; y < w->height; y++)
			memcpy(w->to + z * w->to_slice + y * w->to_pitch,
			       w->from + z * w->from_slice + y * w->from_pitch, w->width);
}

static void execute(struct CUstream_st *s, struct emu_work *w)
{
	switch (w->kind) {
	case EMU_RUN:
		s->us += w->us;
		w->run(w->arg);
		if (w->drop) w->drop(w->arg);
		break;
	case EMU_SET: memset(w->to, w->value, w->width); break;
	case EMU_MOVE: move(w); break;
	case EMU_MARK:
		w->mark->us = s->us;
		mark_set(w->mark);
		mark_drop(w->mark);
		break;
	case EMU_WAIT:
		mark_wait(w->mark);
		mark_drop(w->mark);
		break;
	}
	free(w);
}

/* Before kernels and copies, not before marks: what does not wait for them properly goes wrong. */
static void delay(enum emu_kind kind, unsigned *seed)
{
	if (kind > EMU_MOVE) return;
	int us = kind == EMU_RUN ? emu_settings.kernel_us : emu_settings.copy_us;
	if (emu_settings.jitter_us) us += rand_r(seed) % emu_settings.jitter_us;
	if (us) usleep((useconds_t)us);
}

/* Locked: the next piece; NULL: the stream is destroyed. */
static struct emu_work *next_work(struct CUstream_st *s)
{
	s->busy = false;
	while (!s->head && !s->stop) pthread_cond_wait(&s->work, &s->lock);
	struct emu_work *w = s->head;
	if (!w) return NULL;
	s->head = w->next;
	if (!s->head) s->tail = &s->head;
	s->busy = w->kind != EMU_MARK; /* who has seen a mark finds the stream idle */
	return w;
}

static void *stream_main(void *arg)
{
	struct CUstream_st *s = arg;
	unsigned seed = (unsigned)s->device->id + 1;
	char name[16];
	snprintf(name, sizeof name, "emulated gpu:%d", s->device->id);
	pthread_setname_np(pthread_self(), name);
	emu_set_current(s->device->id);
	for (;;) {
		pthread_mutex_lock(&s->lock);
		struct emu_work *w = next_work(s);
		pthread_mutex_unlock(&s->lock);
		if (!w) return NULL;
		delay(w->kind, &seed);
		execute(s, w);
	}
}

static void push(struct CUstream_st *s, struct emu_work *w)
{
	pthread_mutex_lock(&s->lock);
	if (emu_settings.async) {
		*s->tail = w;
		s->tail = &w->next;
		pthread_cond_signal(&s->work);
	} else {
		execute(s, w);
	}
	pthread_mutex_unlock(&s->lock);
}

static struct emu_mark *push_mark(struct CUstream_st *s)
{
	struct emu_work *w = emu_work_new(EMU_MARK);
	struct emu_mark *m = w->mark = mark_new(2);
	push(s, w);
	return m;
}

static void push_wait(struct CUstream_st *s, struct emu_mark *m)
{
	struct emu_work *w = emu_work_new(EMU_WAIT);
	__atomic_add_fetch(&m->refs, 1, __ATOMIC_RELAXED);
	w->mark = m;
	push(s, w);
}

static void follow(struct CUstream_st *s, struct CUstream_st *other)
{
	struct emu_mark *m = push_mark(other);
	push_wait(s, m);
	mark_drop(m);
}

static void count(const struct emu_work *w)
{
	if (w->kind == EMU_SET) emu_count_set(w->target);
	if (w->kind == EMU_MOVE) emu_count_copy(w->source, w->target, w->width * w->height * w->depth);
}

cudaError_t emu_submit(struct CUstream_st *s, struct emu_work *w)
{
	if (s->capture.graph) return emu_record(&s->capture, w);
	struct emu_device *d = s->device;
	count(w);
	if (s == d->null) {
		pthread_mutex_lock(&list_lock);
		for (struct CUstream_st *t = d->streams; t; t = t->next)
			if (t->blocking) follow(s, t);
		pthread_mutex_unlock(&list_lock);
	} else if (s->blocking && d->null) {
		follow(s, d->null);
	}
	push(s, w);
	return cudaSuccess;
}

struct emu_capture *emu_capture_of(cudaStream_t s)
{
	return &s->capture;
}

bool emu_is_captured(cudaStream_t handle)
{
	return handle && emu_stream_of(handle)->capture.graph;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, enum cudaStreamCaptureStatus *status)
{
	*status = emu_is_captured(handle) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
	return cudaSuccess;
}

void emu_drain(struct CUstream_st *s)
{
	struct emu_mark *m = push_mark(s);
	mark_wait(m);
	mark_drop(m);
}

void emu_drain_device(struct emu_device *d)
{
	enum { MOST = 256 };
	struct emu_mark *m[MOST];
	int n = 0;
	pthread_mutex_lock(&list_lock);
	for (struct CUstream_st *s = d->streams; s; s = s->next) {
		if (n == MOST) emu_misuse("more than %d streams", MOST);
		m[n++] = push_mark(s);
	}
	pthread_mutex_unlock(&list_lock);
	while (n--) {
		mark_wait(m[n]);
		mark_drop(m[n]);
	}
}

/* ---- streams ---------------------------------------------------------------------------------------------------- */

/* StarPU binds its threads to cores; the GPU must not inherit that, nor take signals. */
static void start_thread(struct CUstream_st *s)
{
	sigset_t all, before;
	cpu_set_t cpus;
	pthread_attr_t attributes;
	CPU_ZERO(&cpus);
	for (long i = 0, n = sysconf(_SC_NPROCESSORS_CONF); i < n && i < CPU_SETSIZE; i++) CPU_SET((size_t)i, &cpus);
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	pthread_attr_init(&attributes);
	pthread_attr_setaffinity_np(&attributes, sizeof cpus, &cpus);
	if (pthread_create(&s->thread, &attributes, stream_main, s) && pthread_create(&s->thread, NULL, stream_main, s))
		emu_misuse("no thread for a stream");
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static struct CUstream_st *stream_new(struct emu_device *d, bool blocking)
{
	struct CUstream_st *s = allocate(sizeof *s);
	s->device = d;
	s->blocking = blocking;
	s->tail = &s->head;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->work, NULL);
	if (emu_settings.async) start_thread(s);
	pthread_mutex_lock(&list_lock);
	s->next = d->streams;
	d->streams = s;
	pthread_mutex_unlock(&list_lock);
	return s;
}

struct CUstream_st *emu_stream_of(cudaStream_t handle)
{
	static pthread_mutex_t null_lock = PTHREAD_MUTEX_INITIALIZER;
	if (handle == cudaStreamPerThread) emu_misuse("streams per thread are not emulated");
	if (handle && handle != cudaStreamLegacy) return handle;
	struct emu_device *d = &emu_devices[emu_current()];
	pthread_mutex_lock(&null_lock);
	if (!d->null) d->null = stream_new(d, false);
	pthread_mutex_unlock(&null_lock);
	return d->null;
}

/* StarPU polls; here it would keep the core from the thread that it waits for. */
static cudaError_t not_ready(void)
{
	usleep(20);
	return cudaErrorNotReady;
}

int starpu_progression_hook_register(unsigned (*hook)(void *arg), void *arg) __attribute__((weak));

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Whoever looks again and again, with nothing to do in between, sleeps, and longer when that goes on. */
static unsigned give_way(void *arg)
{
	enum { AT_ONCE_NS = 20000, AWAKE = 4, SHORT = 100, SHORT_US = 20, LONG_US = 200 };
	static _Thread_local uint64_t left;
	static _Thread_local unsigned looks;
	(void)arg;
	looks = now_ns() - left < AT_ONCE_NS ? looks + 1 : 0;
	if (looks >= AWAKE) usleep(looks < SHORT ? SHORT_US : LONG_US);
	left = now_ns();
	return 1;
}

static void start_giving_way(void)
{
	if (starpu_progression_hook_register) starpu_progression_hook_register(give_way, NULL);
}

/* CUDA workers poll for work, and threads of the program for data.  StarPU keeps a hook when it stops and starts
 * again. */
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *to, unsigned flags)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	if (!emu_start()) return emu_result(cudaErrorNoDevice);
	pthread_once(&once, start_giving_way);
	*to = stream_new(&emu_devices[emu_current()], !(flags & cudaStreamNonBlocking));
	return cudaSuccess;
}

/* Unlike the real one it waits for what is queued. */
cudaError_t cudaStreamDestroy(cudaStream_t s)
{
	if (!s || s == cudaStreamLegacy || s == cudaStreamPerThread) return emu_result(cudaErrorInvalidResourceHandle);
	if (s->capture.graph) emu_misuse("a stream is destroyed while it is captured");
	pthread_mutex_lock(&list_lock);
	struct CUstream_st **at = &s->device->streams;
	while (*at && *at != s) at = &(*at)->next;
	if (!*at) emu_misuse("a stream is destroyed twice");
	*at = s->next;
	pthread_mutex_unlock(&list_lock);
	if (emu_settings.async) {
		pthread_mutex_lock(&s->lock);
		s->stop = true;
		pthread_cond_signal(&s->work);
		pthread_mutex_unlock(&s->lock);
		pthread_join(s->thread, NULL);
	}
	free(s);
	return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle)
{
	if (!emu_start()) return emu_result(cudaErrorNoDevice);
	EMU_NOT_CAPTURED;
	emu_count_wait(EMU_WAIT_STREAM);
	emu_drain(emu_stream_of(handle));
	return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t handle)
{
	if (!emu_start()) return emu_result(cudaErrorNoDevice);
	EMU_NOT_CAPTURED;
	struct CUstream_st *s = emu_stream_of(handle);
	pthread_mutex_lock(&s->lock);
	bool idle = !s->head && !s->busy;
	pthread_mutex_unlock(&s->lock);
	return idle ? cudaSuccess : not_ready();
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *to, unsigned flags)
{
	(void)flags;
	if (!emu_start()) return emu_result(cudaErrorNoDevice);
	*to = allocate(sizeof **to);
	(*to)->device = &emu_devices[emu_current()];
	return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
	if (!e) return emu_result(cudaErrorInvalidResourceHandle);
	mark_drop(e->mark);
	free(e);
	return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t handle)
{
	struct CUstream_st *s = emu_stream_of(handle);
	if (e->device != s->device)
		emu_misuse("an event of gpu:%d is recorded on a stream of gpu:%d", e->device->id, s->device->id);
	mark_drop(e->mark);
	struct emu_work *w = emu_work_new(EMU_MARK);
	w->mark = e->mark = mark_new(2);
	emu_submit(s, w);
	return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t e)
{
	EMU_NOT_CAPTURED;
	return mark_done(e->mark) ? cudaSuccess : not_ready();
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
	EMU_NOT_CAPTURED;
	emu_count_wait(EMU_WAIT_EVENT);
	mark_wait(e->mark);
	return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
	if (!from->mark || !to->mark) return emu_result(cudaErrorInvalidResourceHandle);
	if (!mark_done(from->mark) || !mark_done(to->mark)) return cudaErrorNotReady;
	*ms = (float)((to->mark->us - from->mark->us) / 1000);
	return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t e, unsigned flags)
{
	(void)flags;
	if (emu_is_captured(handle)) emu_misuse("events in captures are not emulated");
	if (e->mark) push_wait(emu_stream_of(handle), e->mark);
	return cudaSuccess;
}

/* ---- launches --------------------------------------------------------------------------------------------------- */

static _Thread_local double next_us = 1;

void emu_takes(double us)
{
	next_us = us;
}

cudaError_t emu_launch(cudaStream_t handle, void (*run)(void *), void *arg, void (*drop)(void *))
{
	cudaError_t error = cudaErrorNoDevice;
	bool captured = emu_is_captured(handle);
	double us = next_us;
	next_us = 1;
	if (!emu_start() || (!captured && emu_fails(EMU_LAUNCH, &error))) {
		if (drop) drop(arg);
		return emu_result(error);
	}
	struct CUstream_st *s = emu_stream_of(handle);
	if (s->device->id != emu_current())
		emu_misuse("a kernel on a stream of gpu:%d while gpu:%d is current", s->device->id, emu_current());
	struct emu_work *w = emu_work_new(EMU_RUN);
	w->run = run;
	w->arg = arg;
	w->drop = drop;
	w->us = us;
	if (!captured) emu_count_launch(s->device->id);
	return emu_submit(s, w);
}
