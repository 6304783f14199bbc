/* Start and stop of the engine, and waiting for all of its work. */
#include <stdlib.h>
#include <string.h>

#include "compiled.h"
#include "config.h"
#include "number.h"
#include "runtime/budget.h"
#include "runtime/device/cores.h"
#include "runtime/observe/energy.h"
#include "runtime/observe/explain.h"
#include "runtime/task/finite.h"
#include "runtime/observe/fxt.h"
#include "runtime/gate.h"
#include "runtime/settings/home.h"
#include "runtime/task/priority.h"
#include "runtime/process/processes.h"
#include "runtime/simulation/simulate.h"
#include "runtime/device/auto.h"
#include "runtime/device/device.h"
#include "runtime/device/gpu.h"
#include "runtime/device/idle.h"
#include "runtime/device/throttle.h"
#include "runtime/engine.h"
#include "runtime/settings/environment.h"
#include "runtime/fault.h"
#include "runtime/forked.h"
#include "runtime/memory/arena.h"
#include "runtime/memory/runahead.h"
#include "runtime/memory/spill.h"
#include "runtime/observe/stats.h"
#include "runtime/observe/watch.h"
#include "runtime/process/slaves.h"
#include "runtime/start.h"
#include "runtime/task/buffer.h"
#include "runtime/task/codelet.h"
#include "runtime/task/handle.h"
#include "runtime/task/storage.h"
#include "runtime/thread.h"
#include "runtime/uncancelled.h"
#include "tune.h"

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool starting;

/* The version of the library, as text that is never freed: "0.2.0", SL_VERSION of its header. */
const char *sl_version(void)
{
	return SL_VERSION;
}

static int cuda_devices(void)
{
#if defined HAVE_CUDA || defined SLP_SIMULATION
	int n = (int)starpu_cuda_worker_get_count();
	return n < SLP_MAX_GPUS ? n : SLP_MAX_GPUS;
#else
	return 0;
#endif
}

static void find_workers(void)
{
	struct slp_engine *e = &slp_engine;
	int ids[STARPU_NMAXWORKERS];
	int n = (int)starpu_worker_get_ids_by_type(STARPU_CPU_WORKER, ids, STARPU_NMAXWORKERS);
	e->nteams = n < SLP_MAX_TEAMS ? n : SLP_MAX_TEAMS;
	e->nslaves = slp_slave_workers(ids + e->nteams, SLP_MAX_TEAMS - e->nteams);
	e->nteams += e->nslaves;
	memcpy(e->team_worker, ids, (size_t)e->nteams * sizeof *ids);
	e->ngpus = cuda_devices();
	for (int i = 0; i < e->ngpus; i++) e->gpu_worker[i] = starpu_worker_get_by_type(STARPU_CUDA_WORKER, i);
	e->nworkers = (int)starpu_worker_get_count();
}

static void report_missing_shutdown(void)
{
	if (!sl_is_initialized()) return;
	fprintf(stderr, "starling: the program ended without sl_shutdown()\n");
	sl_shutdown_at_exit();
}

/* In the child of a fork: StarPU's threads do not exist here, and threads that do not exist may hold locks. */
static void forked(void)
{
	pthread_mutex_init(&slp_engine.lock, NULL);
	pthread_mutex_init(&start_lock, NULL);
	slp_gate_forked();
	slp_fault_forked();
	slp_fork_reset_all();
	if (!sl_is_initialized() && !atomic_load(&starting)) return;
	slp_engine.forked = true;
	slp_engine.generation++;
	atomic_store(&slp_engine.users, 0);
}

static void register_exit(void)
{
	atexit(report_missing_shutdown);
}

static void register_fork(void)
{
	pthread_atfork(NULL, NULL, forked);
}

static void start_watch(const struct slp_settings *s)
{
	if (!sl_is_simulated())
		slp_watch_start(s->deadline, s->deadline_is_error); /* simulated time differs from that of threads */
	slp_finite_wanted = s->nan && !sl_is_simulated();
}

enum sl_status (*slp_engine_join)(const char *at, const char *transport);
void (*slp_engine_joined)(const char *at);
void (*slp_engine_leave)(void);
void (*slp_engine_others)(void);

static enum sl_status join(const char *at, const char *transport)
{
	if (!strcmp(transport, "none")) return SL_OK;
	if (slp_engine_join) return slp_engine_join(at, transport);
	slp_call_fail(at, "sl_init", SL_EUNSUPPORTED, "this library has no transports");
	return SL_EUNSUPPORTED;
}

static void leave(void)
{
	if (slp_engine_leave) slp_engine_leave();
}

static enum sl_status start(const char *at, const struct sl_config *given)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct slp_settings settings;
	slp_env_report_unknown();
	if (!slp_env_check(at) || !slp_settings_read(at, given, &settings)) return SL_EINVAL;
	const struct sl_config *c = &settings.config;
	enum sl_status s = slp_simulate_start(at) ? join(at, c->dist) : SL_EINVAL;
	if (s != SL_OK) return s;
	slp_cores_choose();
	if ((s = slp_starpu_start(at, &settings)) != SL_OK) {
		slp_home_forget();
		leave();
		return s;
	}
	find_workers();
	if ((s = slp_spill_start(at, !strcmp(c->dist, "none"))) != SL_OK) {
		starpu_shutdown();
		slp_home_forget();
		leave();
		return s;
	}
	slp_auto_start(settings.places);
	slp_buffer_start(settings.grows);
	slp_cores_started(slp_engine.nteams - slp_engine.nslaves);
	slp_priority_start(settings.priorities);
	slp_engine.cudnn_graph = settings.cudnn_graph;
	slp_tune_start(settings.autotune);
	slp_compiled_start(settings.compile);
	slp_report_begin();
	slp_simulate_memory();
	slp_fxt_start();
	slp_engine.config = *c;
	slp_budget_start(&c->untrusted);
	slp_explain_start();
	slp_idle_start();
	start_watch(&settings);
	slp_engine.device = sl_auto();
	slp_codelets_init();
	if (slp_engine_joined) slp_engine_joined(at);
	if (given || !atomic_load(&slp_engine.rng_seed)) sl_seed(c->seed);
	pthread_once(&once, register_exit);
	if (slp_fxt_on) slp_energy_start();
	return SL_OK;
}

/* A child that is forked meanwhile has half an engine. */
static enum sl_status start_unforked(const char *at, const struct sl_config *given)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, register_fork);
	atomic_store(&starting, true);
	enum sl_status s = start(at, given);
	atomic_store(&starting, false);
	return s;
}

static enum sl_status refuse_child(const char *at)
{
	slp_call_fail(
	        at, "sl_init", SL_ESTATE,
	        "the engine ran when this process was forked, and its threads are in the other one: fork before the "
	        "first operation, or exec a program of its own");
	return SL_ESTATE;
}

/* Starts the engine: StarPU with one worker for each CPU team and for each GPU. config may be NULL. The first
 * operation starts the engine with defaults, so programs call sl_init only to choose settings.  Calls nest: only the
 * first one's config counts, and the last sl_shutdown stops.
 *
 *     sl_init(&(struct sl_config){.teams = 2});
 *
 * Random numbers start from config->seed, or without a config from the seed of sl_seed.  Returns SL_EINVAL for a
 * scheduling policy that StarPU does not have, numbers out of range, or if the library simulates and SL_MACHINE names
 * no machine; SL_EDEVICE for more teams than cores or than StarPU was built for (by tools/build-starpu: 64), for no
 * devices at all, or if StarPU cannot start with these settings; SL_EIO if the folder for StarPU's measurements cannot
 * be created, or if the other processes of a run do not answer (doc/distributed.md; slave processes: doc/parallel.md);
 * SL_ESTATE in the child of a fork, if the engine ran before.  After an error the engine does not run. */
enum sl_status sl_init_at(const char *at, const struct sl_config *config)
{
	SLP_UNCANCELLED();
	SLP_CALL("sl_init", at);
	pthread_mutex_lock(&start_lock);
	enum sl_status s = SL_OK;
	if (slp_engine.forked) s = refuse_child(at);
	else if (atomic_load(&slp_engine.users) == 0) s = start_unforked(at, config);
	if (s == SL_OK) atomic_fetch_add(&slp_engine.users, 1);
	pthread_mutex_unlock(&start_lock);
	return s;
}

bool slp_worker_refused(const char *at, const char *function)
{
	if (!sl_is_initialized() || starpu_worker_get_id() < 0) return false;
	slp_call_fail(at, function, SL_ESTATE, "called by a kernel: only the program's threads may do that");
	return true;
}

enum sl_status slp_engine_need(const char *at)
{
	if (slp_worker_refused(at, slp_current_call.function ? slp_current_call.function : "a call")) return SL_ESTATE;
	if (sl_is_initialized()) return SL_OK;
	return sl_init_at(at, NULL);
}

/* Sets the device of tensors that are created without one; initially auto.  SL_EDEVICE if it does not exist.
 */
enum sl_status sl_device_default_at(const char *at, sl_device device)
{
	SLP_CALL("sl_device_default", at);
	enum sl_status s = slp_engine_need(at);
	if (s == SL_OK && device.kind == SL_DEVICE_DEFAULT) device = sl_auto();
	if (s == SL_OK) s = slp_device_resolve(at, &device);
	if (s == SL_OK) slp_engine.device = device;
	return s;
}

/* Prints errors that no sync point has reported. */
static void report_unseen(void)
{
	if (slp_error_take() != SL_OK)
		fprintf(stderr, "starling: not reported before sl_shutdown: %s\n", sl_error_message());
}

static void flush(void)
{
	slp_lock();
	slp_flush();
	slp_unlock();
}

void slp_engine_idle(void)
{
	SLP_UNCANCELLED();
	struct slp_wait wait;
	flush();
	if (slp_watch_deadline > 0) slp_watch_wait(&wait);
	double since = sl_time();
	slp_wait_all_begin();
	starpu_task_wait_for_all();
	slp_wait_all_end();
	if (slp_fxt_on) slp_fxt_waited("all", since);
	if (slp_watch_deadline > 0) slp_watch_wait_over(&wait);
}

bool slp_engine_poll(double seconds)
{
	SLP_UNCANCELLED();
	flush();
	double end = sl_time() + seconds;
	slp_wait_all_begin();
	for (int look = 0; slp_runahead_pending() && sl_time() < end; look++) slp_idle_between_looks(look);
	slp_wait_all_end();
	return !slp_runahead_pending();
}

void (*_Atomic slp_engine_before_stop)(void);

static void stop(void)
{
	void (*before)(void) = atomic_load(&slp_engine_before_stop);
	if (before) before();
	slp_engine_idle();
	leave();
	report_unseen();
	slp_report_end();
	slp_gpu_shutdown();
	slp_buffer_retire();
	slp_lock();
	slp_engine.generation++;
	slp_buffer_clear();
	slp_spill_stop();
	slp_scratch_clear();
	slp_handles_use_arenas(false);
	slp_arena_stop();
	slp_segments_clear();
	slp_unlock();
	slp_fault_reset();
	slp_energy_stop();
	slp_fxt_stop();
	slp_idle_stop();
	slp_watch_stop();
	locale_t locale = slp_number_begin();
	starpu_shutdown();
	slp_throttle_stop();
	slp_number_end(locale);
	slp_home_forget();
	slp_engine.nteams = slp_engine.ngpus = slp_engine.nslaves = 0;
	slp_budget_start(&(struct sl_untrusted){0});
}

static bool refused(const char *function, bool outermost)
{
	if (slp_worker_refused("?", function)) return true;
	if (!outermost)
		slp_call_fail("?", function, SL_ESTATE, "called within %s at %s", slp_current_call.function,
		              slp_current_call.at);
	return !outermost;
}

/* The number of users left after one has released the engine; the last one stays until it has stopped. */
static int give_up_use(void)
{
	SLP_UNCANCELLED();
	pthread_mutex_lock(&start_lock);
	int users = atomic_load(&slp_engine.users);
	if (users > 1) atomic_fetch_sub(&slp_engine.users, 1);
	pthread_mutex_unlock(&start_lock);
	return users - 1;
}

/* No call of another thread is running. */
static void stop_for_last(bool of_all)
{
	SLP_UNCANCELLED();
	pthread_mutex_lock(&start_lock);
	int users = atomic_load(&slp_engine.users);
	if (users == 1 || (users && of_all)) {
		stop();
		users = 1;
		atomic_store(&slp_engine.users, 1);
	}
	if (users) atomic_fetch_sub(&slp_engine.users, 1);
	pthread_mutex_unlock(&start_lock);
}

/* Undoes one sl_init; the last call waits for all work, stops StarPU, and prints an unreported error on stderr.
 * Tensors that still exist lose their values: they can be released, and any other use is SL_ESTATE.  Running calls of
 * other threads end first; calls that begin meanwhile wait until the engine has stopped, and then find their tensors
 * without values, or start it again.  In a function that a Starling call has called, such as a forward, it is SL_ESTATE
 * (sl_error), and the engine keeps running. */
void sl_shutdown(void)
{
	SLP_CALL("sl_shutdown", NULL);
	if (refused("sl_shutdown", slp_outermost_) || give_up_use()) return;
	if (!slp_calls_stop("sl_shutdown", 0)) return;
	stop_for_last(false);
	slp_calls_go_on();
}

/* sl_shutdown for the end of a process, whatever the number of sl_init calls: later calls of other threads never
 * return, so that threads that still run while the process ends do no harm.  It waits ten seconds for running calls; if
 * one has not returned by then, the engine keeps running, and sl_error is SL_ESTATE.  The library calls it itself at
 * the end of a program that did not call sl_shutdown.
 *
 *     atexit(sl_shutdown_at_exit); */
void sl_shutdown_at_exit(void)
{
	const double patience = 10; /* seconds */
	SLP_CALL("sl_shutdown_at_exit", NULL);
	if (refused("sl_shutdown_at_exit", slp_outermost_) || !sl_is_initialized()) return;
	if (slp_calls_stop("sl_shutdown_at_exit", patience)) stop_for_last(true);
}

/* Waits for all work of all threads.  Returns the first error of the calling thread, or of an operation whose failure
 * has not been reported yet; sl_error_message() lists all of them, one on each line.
 *
 *     if (sl_wait_all() != SL_OK) fprintf(stderr, "%s\n", sl_error_message()); */
enum sl_status sl_wait_all_at(const char *at)
{
	SLP_CALL("sl_wait_all", at);
	if (slp_worker_refused(at, "sl_wait_all")) return slp_error_take();
	if (sl_is_initialized()) {
		if (slp_watch_ends && !slp_engine_poll(slp_watch_deadline)) return slp_watch_fail(), slp_error_take();
		slp_engine_idle();
		if (slp_engine_others) slp_engine_others();
		slp_buffer_reap(false);
		slp_stats_sample();
	}
	return slp_error_take();
}
