/* Saving checkpoints: the state of a run is gathered, copied by tasks, and written by a thread while the run continues.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "checkpoint/state.h"
#include "dist/dist.h"
#include "io/numbered.h"
#include "io/params.h"
#include "runtime/engine.h"
#include "runtime/fault.h"
#include "runtime/forked.h"
#include "runtime/gate.h"
#include "runtime/thread.h"
#include "runtime/uncancelled.h"
#include "starling/checkpoint.h"
#include "tensor/moment.h"
#include "train/train.h"

struct sl_checkpoint_job {
	struct slp_state state;
	char *path, *text; /* where to, and the figures as text */
	int keep;
	pthread_t thread;
	bool elsewhere; /* another process writes it */
	atomic_bool ended;
	atomic_bool written;
	enum sl_status status;
	char message[SLP_MESSAGE_MAX];
};

/* One job writes at a time: the memory for copies is bounded, and numbers follow each other. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool running;
} writer = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

static void reset_in_child(void)
{
	pthread_mutex_init(&writer.lock, NULL);
	pthread_cond_init(&writer.ended, NULL);
	writer.running = false; /* in the other process */
}
SLP_AT_FORK(reset_in_child);

static void wait_for_writer(void)
{
	pthread_mutex_lock(&writer.lock);
	while (writer.running) pthread_cond_wait(&writer.ended, &writer.lock);
	pthread_mutex_unlock(&writer.lock);
}

static void take_writer(void)
{
	pthread_mutex_lock(&writer.lock);
	while (writer.running) pthread_cond_wait(&writer.ended, &writer.lock);
	writer.running = true;
	pthread_mutex_unlock(&writer.lock);
}

static void give_writer(void)
{
	pthread_mutex_lock(&writer.lock);
	writer.running = false;
	pthread_cond_broadcast(&writer.ended);
	pthread_mutex_unlock(&writer.lock);
}

/* ---- gathering --------------------------------------------------------------------------------------------------- */

static void job_free(sl_checkpoint_job *job)
{
	if (!job) return;
	slp_state_clear(&job->state);
	free(job->path);
	free(job->text);
	free(job);
}

static void free_later(void *job)
{
	job_free(job);
}

static sl_checkpoint_job *job_new(const char *at, const char *function, const char *path,
                                  const struct sl_checkpoint_opts *opts)
{
	if (!path || opts->keep < 0)
		return slp_call_fail(at, function, SL_EINVAL, path ? ".keep is negative" : "the path is NULL");
	if (!opts->keep && !slp_path_ends(path, ".safetensors"))
		return slp_call_fail(at, function, SL_EINVAL,
		                     "%s: a checkpoint is named *.safetensors; a folder of several needs .keep", path);
	sl_checkpoint_job *job = slp_calloc(1, sizeof *job);
	if (job) job->path = slp_strdup(path);
	if (job && job->path) {
		job->keep = opts->keep;
		job->state.at = at;
		job->state.function = function;
		return job;
	}
	job_free(job);
	return slp_call_fail(at, function, SL_ENOMEM, "no memory for a checkpoint");
}

static bool gather(sl_checkpoint_job *job, const struct sl_checkpoint_opts *opts)
{
	job->state.opts = opts;
	bool ok = slp_state_save(&job->state);
	job->state.opts = NULL;
	if (!ok) return false;
	job->text = json_dumps(job->state.figures, JSON_COMPACT);
	if (!job->text) slp_call_fail(job->state.at, job->state.function, SL_ENOMEM, "no memory for the run's figures");
	return job->text != NULL;
}

/* Of one moment, whatever other threads do: steps are in it as a whole or not at all. */
static bool gather_copies(sl_checkpoint_job *job, const struct sl_checkpoint_opts *opts)
{
	SLP_MOMENT();
	return gather(job, opts) && slp_moment_copy(job->state.at, job->state.tensors, job->state.count);
}

static sl_checkpoint_job *prepare(const char *at, const char *function, const char *path,
                                  const struct sl_checkpoint_opts *opts)
{
	if (slp_engine_need(at) != SL_OK) return NULL;
	sl_checkpoint_job *job = job_new(at, function, path, opts);
	bool ok = false;
	if (!job) return NULL;
	SL_PAUSE
		SL_SCOPE
			ok = slp_state_prepare(&job->state, opts) && gather_copies(job, opts);
	if (ok) return job;
	job_free(job);
	return NULL;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static enum sl_status write_file(const sl_checkpoint_job *job, const char *path)
{
	struct slp_out o;
	const struct slp_state *s = &job->state;
	if (!slp_out_open(&o, s->at, s->function, path)) return sl_error();
	slp_safetensors_write_sealed(&o, job->text, (const char *const *)s->names, s->tensors, s->count);
	return slp_out_close(&o);
}

/* On a full disk older checkpoints make room for the new one; one always stays. */
static enum sl_status write_making_room(const sl_checkpoint_job *job, const char *path)
{
	for (;;) {
		enum sl_status status = write_file(job, path);
		if (status != SL_EIO || errno != ENOSPC || !slp_numbered_drop_oldest(job->path)) return status;
		sl_error_clear();
	}
}

/* Under the number after the newest. */
static enum sl_status write_numbered(const sl_checkpoint_job *job)
{
	const struct slp_state *s = &job->state;
	int count = 0;
	int64_t *list = slp_numbered_make(job->path) ? slp_numbered_list(job->path, &count) : NULL;
	int64_t number = list ? slp_numbered_next(list, count) : -1;
	char *path = number >= 0 ? slp_numbered_path(job->path, number) : NULL;
	enum sl_status status = SL_EIO;
	if (path) status = write_making_room(job, path);
	else if (list && number < 0) {
		slp_call_fail(s->at, s->function, SL_EIO, "%s: there is a checkpoint with the largest number, %lld",
		              job->path, (long long)list[0]);
	} else {
		slp_call_fail(s->at, s->function, SL_EIO, "%s: cannot be used: %s", job->path, strerror(errno));
		status = sl_error(); /* or there was no memory */
	}
	if (status == SL_OK) slp_numbered_prune(job->path, job->keep);
	free(path);
	free(list);
	return status;
}

static void run(sl_checkpoint_job *job)
{
	take_writer();
	job->status = job->keep ? write_numbered(job) : write_file(job, job->path);
	give_writer();
}

/* For this thread: computation has priority.  A loop of kernels waits for its slowest thread, so a thread that has to
 * share its core delays all others. */
static void lower_priority(void)
{
	setpriority(PRIO_PROCESS, (id_t)gettid(), 10); /* if that fails, it only costs time */
}

static void *run_thread(void *arg)
{
	sl_checkpoint_job *job = arg;
	lower_priority();
	slp_current_call.function =
	        job->state.function; /* for messages; it is no call, for which sl_shutdown would wait */
	slp_current_call.at = job->state.at ? job->state.at : "?";
	job->status = job->keep ? write_numbered(job) : write_file(job, job->path);
	if (job->status != SL_OK) snprintf(job->message, sizeof job->message, "%s", sl_error_message());
	sl_error_clear(); /* sl_checkpoint_end reports it */
	struct slp_state state = job->state;
	job->state = (struct slp_state){.at = state.at, .function = state.function};
	slp_state_clear(&state); /* memory is given back before the job is ended */
	atomic_store(&job->written, true);
	give_writer();
	return NULL;
}

/* The call returns the status of rank 0's file on all ranks. */
static enum sl_status tell_ranks(const char *at, enum sl_status status)
{
	struct {
		int32_t status;
		char text[SLP_MESSAGE_MAX];
	} told = {.status = status};
	if (slp_dist.size == 1 || slp_dist.apart) return status;
	if (status != SL_OK) snprintf(told.text, sizeof told.text, "%s", sl_error_message());
	enum sl_status s = slp_dist_broadcast_now(at, "sl_checkpoint_save", &told, sizeof told);
	if (s != SL_OK || told.status == SL_OK || !slp_dist.rank) return status != SL_OK ? status : s;
	slp_call_fail(at, "sl_checkpoint_save", (enum sl_status)told.status, "rank 0: %s", told.text);
	return (enum sl_status)told.status;
}

static enum sl_status save_here(const char *at, const char *path, const struct sl_checkpoint_opts *opts)
{
	sl_checkpoint_job *job = prepare(at, "sl_checkpoint_save", path, opts);
	slp_trainer_drop_others(opts->trainer);
	if (!job) return sl_error() != SL_OK ? sl_error() : SL_EINVAL;
	run(job);
	enum sl_status status = job->status;
	job_free(job);
	return status;
}

/* Writes one safetensors file with everything that a run needs to continue as if it had never stopped: parameters by
 * their paths ("0.weight"), other arrays under names that begin with @, numbers in the metadata, and checksums, which
 * are verified when the file is read.  Waits for the values, which are those of one moment: other threads may train
 * meanwhile, and the file contains each of their steps completely or not at all.  Until the call returns SL_OK an old
 * file is unchanged; then the new one is on the disk.  path ends in .safetensors; or, with .keep, it is a folder,
 * created if necessary, in which checkpoints are numbered and all but the newest .keep are removed.  Both work while
 * other checkpoints are being written.  If several processes train together (dist.h), all must call it, rank 0 writes,
 * and all get its status.  With the optimiser's .shard_state, the other ranks send it their parts.
 *
 * SL_EINVAL: another extension, a duplicate name, a note or a name that is not UTF-8; SL_ESTATE: a parameter has no
 * values yet; SL_EIO and others: see io.h.
 *
 *     sl_checkpoint_save("run", .keep = 3, .trainer = trainer, .loader = loader, .epoch = &epoch); */
enum sl_status sl_checkpoint_save_at(const char *at, const char *path, struct sl_checkpoint_opts opts)
{
	SLP_UNCANCELLED();
	SLP_CALL("sl_checkpoint_save", at);
	if (!slp_trainer_gather_states(at, opts.trainer)) return sl_error();
	return tell_ranks(at, slp_dist.rank ? sl_error() : save_here(at, path, &opts));
}

static sl_checkpoint_job *begin_elsewhere(const char *at, const char *path, const struct sl_checkpoint_opts *opts)
{
	sl_checkpoint_job *job = job_new(at, "sl_checkpoint_begin", path, opts);
	if (!job) return NULL;
	job->elsewhere = true;
	atomic_store(&job->written, true);
	return job;
}

/* Begins to write a checkpoint and returns at once: tasks copy the current values, and a thread writes the copies while
 * the run continues.  If an earlier checkpoint is still being written, the call waits for it.  End every job with
 * sl_checkpoint_end, which returns its status.  NULL after an error of sl_checkpoint_save that is found before the
 * writing.
 *
 *     sl_checkpoint_job *job = sl_checkpoint_begin("run", .keep = 3, .trainer = trainer);
 *     … train …
 *     if (sl_checkpoint_end(job) != SL_OK) fprintf(stderr, "%s\n", sl_error_message()); */
sl_checkpoint_job *sl_checkpoint_begin_at(const char *at, const char *path, struct sl_checkpoint_opts opts)
{
	SLP_UNCANCELLED();
	SLP_CALL("sl_checkpoint_begin", at);
	atomic_store(&slp_engine_before_stop, wait_for_writer);
	if (!slp_trainer_gather_states(at, opts.trainer)) return NULL;
	if (slp_dist.rank) return begin_elsewhere(at, path, &opts);
	take_writer(); /* before the values are copied: there is memory for one copy */
	sl_checkpoint_job *job = prepare(at, "sl_checkpoint_begin", path, &opts);
	slp_trainer_drop_others(opts.trainer);
	int error = job ? slp_thread_create(&job->thread, run_thread, job) : 0;
	if (job && !error) return job;
	if (error) slp_call_fail(at, "sl_checkpoint_begin", SL_ENOMEM, "no thread to write it: %s", strerror(error));
	job_free(job);
	give_writer();
	return NULL;
}

/* Whether the checkpoint is written, or has failed, so that sl_checkpoint_end does not wait.  True for NULL. */
bool sl_checkpoint_written(const sl_checkpoint_job *job)
{
	return !job || atomic_load(&job->written);
}

/* Waits until a checkpoint is written, and frees the job.  Errors as sl_checkpoint_save's.  NULL is the result of an
 * earlier mistake. */
enum sl_status sl_checkpoint_end_at(const char *at, sl_checkpoint_job *job)
{
	SLP_UNCANCELLED();
	SLP_CALL("sl_checkpoint_end", at);
	if (!slp_given(at, "sl_checkpoint_end", "job", job)) return sl_error();
	if (atomic_exchange(&job->ended, true)) {
		slp_call_fail(at, "sl_checkpoint_end", SL_ESTATE, "another thread ends it");
		return SL_ESTATE;
	}
	if (!job->elsewhere) pthread_join(job->thread, NULL);
	enum sl_status status = job->status;
	if (status != SL_OK) slp_error_set(status, "%s", job->message);
	slp_later(free_later, job);
	return status;
}
