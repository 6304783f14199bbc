/* Values in a file: settings, start and stop. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "alloc.h"
#include "number.h"
#include "op.h"
#include "options.h"
#include "runtime/engine.h"
#include "runtime/fault.h"
#include "runtime/forked.h"
#include "runtime/memory/memory_limit.h"
#include "runtime/memory/spill.h"
#include "runtime/memory/spill_file.h"
#include "runtime/memory/spill_values.h"
#include "starling/spill.h"

struct slp_spill slp_spill = {
        .lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};
SLP_FORK_MUTEX(slp_spill.lock);

/* What sl_spill asked for. */
static struct {
	char *path;
	size_t memory;
} asked;

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
	pthread_mutex_lock(&slp_spill.lock);
	slp_spill.room = asked.memory ? asked.memory : bytes ? (size_t)bytes : default_room();
	slp_spill.guessed = !asked.memory && !bytes;
	slp_spill.patience = seconds > 0 ? seconds : 30;
	pthread_mutex_unlock(&slp_spill.lock);
	return true;
}

static bool still_runs(void)
{
	pthread_mutex_lock(&slp_spill.lock);
	bool runs = slp_spill.runs;
	pthread_mutex_unlock(&slp_spill.lock);
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
	char why[SLP_SPILL_MESSAGE];
	slp_spill.counts = (struct slp_spill_counts){0};
	if (!read_settings(at, &path)) return SL_EINVAL;
	if (!path || !*path) return SL_OK;
	const char *refused = why_not(alone);
	if (refused) return slp_call_fail(at, "sl_init", SL_EUNSUPPORTED, "%s", refused), SL_EUNSUPPORTED;
	if (!slp_spill_file_open(path, why, sizeof why)) return slp_call_fail(at, "sl_init", SL_EIO, "%s", why), SL_EIO;
	if (!slp_spill_thread_start()) {
		slp_spill_file_close();
		return slp_call_fail(at, "sl_init", SL_ENOMEM, "no thread for the spill file"), SL_ENOMEM;
	}
	slp_spill.on = true;
	return SL_OK;
}

/* All buffers have been freed. */
void slp_spill_stop(void)
{
	if (!slp_spill.on) return;
	slp_spill_thread_stop();
	slp_spill.on = false;
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
