/* The runtime as the layers above see it: engine, buffers, segments, faults. */
#ifndef SLP_RUNTIME_H
#define SLP_RUNTIME_H

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>

#include "op.h"
#include "runtime/compat.h"

/* Marks a function as one that prints; n: place of the format. */
#define SLP_PRINTF(n) __attribute__((format(printf, n, n + 1)))

/* ---- errors (error.c) ------------------------------------------------------------------------------------------- */

enum { SLP_MESSAGE_MAX = 2048 };

/* Records an error of the calling thread, unless one is pending (the first wins); returns status. */
enum sl_status slp_error_set(enum sl_status status, const char *format, ...) SLP_PRINTF(2);
enum sl_status slp_error_setv(enum sl_status status, const char *prefix, const char *format, va_list args);
/* Sets the pending error aside, if there is one, so that those of what follows are seen; slp_error_rejoin puts it back:
 * the first wins. */
struct slp_pending {
	enum sl_status status;
	char message[SLP_MESSAGE_MAX];
};
void slp_error_set_aside(struct slp_pending *first);
void slp_error_rejoin(const struct slp_pending *first);
const char *slp_refused_text(char text[160]); /* of the last allocation that failed, in any thread: as slp_room_text */
enum sl_status
slp_no_memory(size_t bytes); /* sets the error of the program's call: so many were asked for; SL_ENOMEM */
/* Ends a sync point: the first error, of the thread or of kernels, counts as reported. */
enum sl_status slp_error_take(void);

/* A kernel that failed.  Returns the fault's number, at least 1. */
uint32_t slp_fault_add(enum sl_status status, const char *message);
enum sl_status slp_fault_report(uint32_t fault); /* makes it the thread's error */
void slp_fault_reset(void);
void slp_fault_forked(void); /* in a child process, where whoever held the lock is not */

/* ---- lists (grow.c) ---------------------------------------------------------------------------------------------- */

/* Makes a list of items of a size longer if it must be; false without memory. */
bool slp_grow(void **list, int *max, int n, size_t size);

/* ---- the engine (state.c, engine.c) ----------------------------------------------------------------------------- */

enum { SLP_MAX_TEAMS = 256, SLP_MAX_GPUS = 8 };
enum { SLP_POOLS = 3 + SLP_MAX_TEAMS + SLP_MAX_GPUS }; /* auto, cpu, gpu, cpu:i, gpu:i */

struct slp_engine {
	pthread_mutex_t lock; /* taken around every change of buffers, segments and the free lists */
	atomic_int users;     /* sl_init less sl_shutdown */
	struct sl_config config;
	bool cudnn_graph; /* SL_CUDNN_GRAPH: use that API where it will do */
	int nteams, ngpus;
	int nslaves; /* of the nteams: the last ones, which are workers of slave processes */
	int team_worker[SLP_MAX_TEAMS], gpu_worker[SLP_MAX_GPUS];
	int nworkers;
	_Atomic sl_device device; /* the default */
	bool forked;              /* this is a child of the process where it ran: its threads are not here */
	unsigned generation;      /* how often it was stopped: older tensors have lost their values */
	_Atomic uint64_t rng_seed, rng_stream;
};
extern struct slp_engine slp_engine;

/* environment.c */
bool slp_env_check(const char *at); /* false, with an error recorded: StarPU would abort on one of its variables */
bool slp_env_unbound(void);         /* STARPU_WORKERS_NOBIND: workers run on any core */
/* The folder where StarPU keeps its measurements: its length, as of snprintf; 0: StarPU chooses one itself. */
int slp_starpu_folder(char *path, size_t size);

/* Whether a worker calls, which would wait for itself: from a kernel, or at the end of a task; that is an error. */
bool slp_worker_refused(const char *at, const char *function);
/* Starts the engine with defaults if it does not run yet. */
enum sl_status slp_engine_need(const char *at);
void slp_engine_idle(void);           /* waits for all work; errors stay to be reported */
bool slp_engine_poll(double seconds); /* the same, but not for longer than that; false: the time is up */
/* Called before the engine stops, if set: for threads that use it. */
extern void (*_Atomic slp_engine_before_stop)(void);
void slp_segments_clear(void);
static inline void slp_lock(void)
{
	pthread_mutex_lock(&slp_engine.lock);
}
static inline void slp_unlock(void)
{
	pthread_mutex_unlock(&slp_engine.lock);
}

/* ---- devices (device.c) ----------------------------------------------------------------------------------------- */

/* DEFAULT becomes the default device; an error if the device does not exist. */
enum sl_status slp_device_resolve(const char *at, sl_device *device);
int slp_device_pool(sl_device device);                      /* index of its pool, below SLP_POOLS */
int slp_pool_workers(int pool);                             /* how many workers share it */
uint64_t slp_device_nodes(const sl_device *devices, int n); /* the memory nodes of these devices, as bits */
/* "main memory", "gpu:0", "a slave process" */
const char *slp_node_name(unsigned node, char name[SL_DEVICE_NAME_MAX]);
void slp_device_place(struct starpu_task *task, sl_device device, bool cuda);

/* ---- teams (team.c) --------------------------------------------------------------------------------------------- */

int slp_team_cores_total(void);
int slp_team_cores(int team);   /* of a team of this process */
int slp_team_threads(int team); /* as many, or fewer, or what SL_TEAM_THREADS says */
void slp_team_stacks(void);     /* of threads to come: large enough for kernels, whatever ulimit -s says */
void slp_team_enter(void);      /* called by a CPU worker before each segment: makes it head of its team */
int slp_team_size(void);        /* threads of the calling worker's team */
int slp_team_index(void);       /* of the calling worker's team, which it has entered */
void slp_team_used(void);       /* the calling worker's team computes something together */
bool slp_team_polls(void);      /* other threads of the calling worker's team may be polling for something to compute */
void slp_team_yield(void); /* the calling worker and its team's threads yield to threads that wait for their cores */

/* ---- buffers (buffer.c) ----------------------------------------------------------------------------------------- */

/* A StarPU handle and its memory.  Recycled: a buffer without a holder may still have running tasks; StarPU
 * orders its next writer after them. */
struct slp_buffer {
	starpu_data_handle_t handle;
	size_t bytes;
	atomic_int pending;     /* submitted segments that use it */
	atomic_int waiters;     /* threads of the program that wait for it */
	atomic_int seen;        /* how often the program looks at its memory (sl_values): then it outlives the engine */
	_Atomic uint32_t fault; /* what spoilt its value; 0: nothing */
	_Atomic uint64_t readers; /* memory nodes that new values are sent to as soon as they are there, as bits */
	_Atomic uint32_t version; /* counts what is submitted to write it */
	_Atomic uint64_t asked;   /* bit v % 64: another segment reads version v */
	atomic_bool fresh;        /* promised memory that nothing has been written into yet (room.h) */
	bool lost;                /* there was no memory: its value is spoilt for good, and no kernel may touch it */
	char nothing;             /* of a lost one: all that StarPU sees of it */
#ifdef SLP_SIMULATION
	double written, used; /* when the last task to write it, to use it, could have ended at best (bound.c) */
#endif
	int pool, cls;
	struct slp_buffer *next, *before;
	struct slp_buffer *older, *newer; /* of all that exist */
	void *adopted;                    /* the caller's memory, else NULL */
	void *memory;                     /* main memory that was asked for here; NULL: StarPU asks for it */
	void (*release)(void *data, void *arg);
	void *release_arg;
};

/* All with the engine locked. */
enum slp_buffer_kind {
	SLP_BUFFER_IDLE, /* without tasks under way */
	SLP_BUFFER_ANY,
	SLP_BUFFER_RESERVED /* of those that slp_buffer_reserve has made: there is one, if need be a lost one */
};
/* NULL without memory, without an error; a lost one if it must not fail. */
struct slp_buffer *slp_buffer_get(size_t bytes, sl_device device, enum slp_buffer_kind kind);
bool slp_buffer_reserve(int n); /* reserves so many; false with an error */
struct slp_buffer *slp_buffer_adopt(void *data, size_t bytes);
void slp_buffer_put(struct slp_buffer *buffer);
/* What is submitted is the last to use its values. */
void slp_buffer_dead(struct slp_buffer *buffer);
void slp_buffer_clear(void);
size_t slp_buffer_class_bytes(size_t bytes);
bool slp_buffer_owns_memory(void);      /* all values lie in main memory, which is asked for here */
void *slp_buffer_memory(size_t bytes);  /* main memory, for which idle buffers go if they must; NULL: none */
bool slp_buffer_could_be(size_t bytes); /* false: there is not enough, whatever running tasks release */
/* Without the lock: */
enum { SLP_LARGE = 16 << 20 }; /* bytes; whether there is room for less is not asked beforehand */
/* Why there is no room for so many bytes and a scratch of that size, as slp_room_text; NULL: there may be. */
const char *slp_no_room(size_t bytes, size_t scratch, char text[160]);
void slp_buffer_reap(bool all); /* gives back adopted memory that is no longer in use */
void slp_buffer_retire(void);   /* gives back all adopted memory: the engine stops */
/* From a worker: a segment that used the buffer has ended. */
void slp_buffer_done(struct slp_buffer *buffer);
void slp_buffer_written(struct slp_buffer *buffer); /* its memory is no longer promised, but used */
/* A segment that is submitted uses the buffer; the version that it leaves.  Locked. */
uint32_t slp_buffer_use(struct slp_buffer *buffer, bool write);
/* From a worker: a segment has written this version; it travels to the buffer's readers, before these ask for it, but
 * not if the next thing that happens to it is another change. */
void slp_buffer_send(struct slp_buffer *buffer, uint32_t version, int priority);

/* ---- scratch memory (scratch.c) ---------------------------------------------------------------------------------- */

/* Memory that a segment works in: of StarPU, or each team's own part of `memory`. */
struct slp_scratch {
	starpu_data_handle_t handle;
	char *memory;
	size_t bytes;       /* of a worker */
	atomic_bool *fresh; /* not used yet */
};
static inline size_t slp_scratch_bytes(size_t results, size_t calls) /* for dead results and for what calls work in */
{
	size_t bytes = (results + 63) / 64 * 64 + calls;
	return bytes ? bytes + 64 : 0;
}
/* At least this much for each worker; 0: none.  False without memory, without an error.  Locked. */
bool slp_scratch_get(size_t bytes, struct slp_scratch *scratch);
size_t slp_scratch_missing(size_t bytes);                 /* what slp_scratch_get would ask for */
void slp_scratch_used(const struct slp_scratch *scratch); /* from a worker */
void slp_scratch_clear(void);

/* ---- storages (segment.c) --------------------------------------------------------------------------------------- */

/* The values of a tensor and its views.  Its buffer comes late: results of small operations that die within one
 * segment never get one. */
struct slp_storage {
	atomic_int refs;
	size_t bytes;
	sl_device device;
	struct slp_buffer *buffer;           /* NULL: only the open segment knows it */
	int slot;                            /* in the open segment; -1: none */
	unsigned generation;                 /* of the engine; values do not survive sl_shutdown */
	atomic_uint version;                 /* counts writes */
	struct slp_explanation *explanation; /* of the task that computed its values (explain.h); NULL: none is kept */
	int explained_call;                  /* of that task */
	struct slp_storage *next;
};

struct slp_storage *slp_storage_new(size_t bytes, sl_device device); /* locked */
void slp_storage_retain(struct slp_storage *storage);
void slp_storage_release(struct slp_storage *storage);
/* Makes sure that it has a buffer, before it must have one; false without memory, without an error.  Locked. */
bool slp_storage_allocate(struct slp_storage *storage);
void slp_storage_forget(struct slp_storage *storage); /* its buffer, and so its values; locked */

/* An argument of a call. */
struct slp_operand {
	struct slp_storage *storage;
	size_t offset;
	struct slp_type type;
};

/* Whether a call of op writes its input i, too. */
static inline bool slp_input_is_written(const struct sl_op *op, int i)
{
	int bit = op->period ? i % op->period : i;
	return bit < 16 && (op->mutates & SLP_IN(bit));
}

/* Adds a call to the open segment or submits it as a segment of its own; locked. */
enum sl_status slp_submit(const struct slp_infer *call, const struct slp_operand *in, const struct slp_operand *out,
                          sl_device device, bool inplace);
void slp_flush(void);                                      /* submits the open segment; locked */
void slp_storage_materialize(struct slp_storage *storage); /* flushes if its values are still only planned; locked */

/* ---- what a task runs (record.h), codelets (codelet.c) --------------------------------------------------------- */

struct slp_segment;
struct slp_segment *slp_segment_new(void);
void slp_segment_free(struct slp_segment *segment);
struct starpu_codelet *slp_codelet_of(int op); /* op -1: of segments with several operations */
void slp_codelets_init(void);
void slp_codelet_add(int op);
void slp_cpu_segment(void *buffers[], void *arg);
void slp_cuda_segment(void *buffers[], void *arg);

/* ---- slave processes (slaves.c, slave_meeting.c) ---------------------------------------------------------------- */

/* Before StarPU starts, and after: master and slaves wait for each other; SL_EIO if they do not come. */
enum sl_status slp_slaves_meet(const char *at, int slaves);
void slp_slaves_met(void);
/* The workers of slave processes, up to max of them; their number. */
int slp_slave_workers(int *ids, int max);
/* Has a task carry what a slave process needs to run the segment; false without memory. */
bool slp_slave_message(struct starpu_task *task, struct slp_segment *segment);

/* ---- prepared code (code.c) -------------------------------------------------------------------------------------- */

struct slp_address {
	int slot;
	size_t offset;
};
/* What a slot means in one submission; without storage: it is in scratch. */
struct slp_binding {
	struct slp_storage *storage;
	size_t offset;
};
/* Another value for 8 bytes of a call's attributes, in one submission. */
struct slp_patch {
	int call;
	unsigned offset;
	uint64_t value;
};
double slp_call_bytes(const struct slp_infer *c); /* moved by a call: op->bytes, or all operands once */
struct slp_code;
struct slp_code *slp_code_new(void);
void slp_code_release(struct slp_code *code); /* also from a worker */
/* A slot that is bound at each submission, or lies in scratch; -1 without memory. */
int slp_code_slot(struct slp_code *code);
int slp_code_scratch_slot(struct slp_code *code, size_t offset, size_t bytes);
void slp_code_name(struct slp_code *code, const char *format, ...) SLP_PRINTF(2); /* for people; without memory: none */
void slp_code_set_level(struct slp_code *code, int level); /* of the task that it becomes (priority.h) */
bool slp_code_writes(const struct slp_code *code, int slot);
/* Adds a call; addresses of its inputs, then of its outputs.  False with an error. */
bool slp_code_call(struct slp_code *code, const struct slp_infer *call, const struct slp_address *addresses);
size_t slp_code_scratch(const struct slp_code *code);
bool slp_code_find_scratch(const struct slp_code *code); /* what its calls work in; false with an error; locked */
/* Locked.  bindings: one a slot; patches in the order of the calls. */
enum sl_status slp_code_submit(struct slp_code *code, const struct slp_binding *bindings, sl_device device,
                               const struct slp_patch *patches, int npatches);

/* ---- run-ahead (runahead.c) ------------------------------------------------------------------------------------- */

void slp_runahead_wait(void);          /* for room within the bound */
void slp_runahead_enter(void);         /* one more is under way; nothing may wait before its submission */
bool slp_runahead_leave(void);         /* a segment has ended; from a worker.  True: that woke a thread */
bool slp_runahead_wait_progress(void); /* waits for a part of them to end; false if none is pending */
int slp_runahead_pending(void);
bool slp_runahead_waited(void); /* a thread waits for tasks to end */

/* ---- waiting and idling (idle.c) -------------------------------------------------------------------------------- */

void slp_idle_start(void);
void slp_idle_stop(void);
void slp_idle_wake(void);              /* there may be work: something was submitted, has ended or was let go */
void slp_idle_wake_worker(int worker); /* the same for this one alone; -1: any */
void slp_idle_over(void);              /* from a worker: it has work */
struct slp_idle_counts {
	_Atomic uint64_t naps, woken; /* how often workers slept, and did until there was something */
	_Atomic uint64_t team_yields; /* how often all threads of a team gave way */
};
extern struct slp_idle_counts slp_idle_counts;
bool slp_wait_beside_worker(void);     /* the calling thread of the program is on a worker's core */
void slp_wait_all_begin(void);         /* the calling thread waits until workers have no work ... */
void slp_wait_all_end(void);           /* ... no more */
void slp_idle_between_looks(int look); /* a thread that looks again and again, for the look-th time: gives way */

/* ---- statistics (state.c, stats.c) ------------------------------------------------------------------------------ */

/* X(name): counters of struct sl_stats that are counted up from anywhere. */
/* clang-format off */
#define SLP_COUNTERS(X) X(ops) X(segments) X(finished) X(faults) X(skipped) X(stalls) X(stall_ns) X(recycled) X(overflows) \
	X(graphs) X(graph_launches) X(graph_changes) X(graph_refusals) X(plans)
/* clang-format on */
struct slp_counters {
#define X(name) _Atomic uint64_t name;
	SLP_COUNTERS(X)
#undef X
	_Atomic size_t bytes, peak_bytes, scratch;
	_Atomic uint64_t handles, peak_tasks;
	_Atomic double loss_scale; /* of the trainer that made a step last; 0: none scales */
};
extern struct slp_counters slp_counters;
#define SLP_COUNT(name) atomic_fetch_add_explicit(&slp_counters.name, 1, memory_order_relaxed)
void slp_stats_bytes(long change);
void slp_stats_sample(void);

/* ---- random streams (random.c) ----------------------------------------------------------------------------------- */

/* Counts the virtual streams that slp_rng_next gives out in this thread; NULL: it gives real ones. */
extern _Thread_local int *slp_rng_virtual;
struct slp_rng slp_rng_take(int count); /* the first of so many real ones */
/* The same in each of several processes, which draw different ones and as many. */
struct slp_rng slp_rng_take_apart(int count);
void slp_rng_share(int rank, int ranks); /* the processes */
/* The streams that a part of a program draws, to be drawn again when it is repeated. */
struct slp_rng_log {
	struct slp_rng *list;
	int count, capacity, next;
	const int *owner; /* slp_rng_virtual as it was: what others draw meanwhile is not noted */
	bool failed;      /* there was no memory */
};
/* Of this thread: notes what is drawn; gives what was noted.  Either may be NULL. */
extern _Thread_local struct slp_rng_log *slp_rng_notes, *slp_rng_repeats;

/* ---- GPUs (gpu.c) ----------------------------------------------------------------------------------------------- */

void slp_gpu_shutdown(void); /* destroys the library handles of each worker */
void *slp_gpu_stream(void);
void slp_gpu_wait(void); /* until the worker's stream has done all */

#endif
