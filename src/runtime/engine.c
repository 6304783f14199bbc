/* Start and stop: StarPU with CPU teams, the scheduler, the defaults. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "number.h"
#include "runtime/cores.h"
#include "runtime/explain.h"
#include "runtime/finite.h"
#include "runtime/fuzz.h"
#include "runtime/fxt.h"
#include "runtime/gate.h"
#include "runtime/priority.h"
#include "runtime/processes.h"
#include "runtime/room.h"
#include "runtime/simulate.h"
#include "tune.h"
#include "runtime/thread.h"
#include "runtime/uncancelled.h"
#include "runtime/watch.h"

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;

/* The version of the library, as text that is never freed: "0.1.0". */
const char *sl_version(void)
{
	return PACKAGE_VERSION;
}

/* An environment variable as a number of at least `low`; otherwise `otherwise`, with a word about it if it is set. */
static bool env_wrong; /* a variable was not understood, and an error says so */

static long long env_number(const char *name, long long low, long long otherwise)
{
	const char *text = getenv(name);
	if (!text || !*text) return otherwise;
	char *end;
	errno = 0;
	long long v = strtoll(text, &end, 10);
	if (!errno && !*end && v >= low) return v;
	slp_call_fail(NULL, "sl_init", SL_EINVAL, "%s=%s in the environment is not a number of at least %lld", name,
	              text, low);
	env_wrong = true;
	return otherwise;
}

static int pick(int wanted, const char *variable, int low, int otherwise)
{
	if (wanted) return wanted;
	long long v = env_number(variable, low, otherwise);
	return v < INT_MAX ? (int)v : INT_MAX;
}

static int slave_processes(void)
{
	long long n = env_number("STARPU_TCPIP_MS_SLAVES", 0, 0);
	return n < INT_MAX ? (int)n : INT_MAX;
}

/* Devices in slave processes, each with as many as there are threads; StarPU would take as many as a slave has
 * cores. */
static int expected_slaves(void)
{
#ifdef STARPU_USE_TCPIP_MASTER_SLAVE
	int slaves = slave_processes();
	if (slaves) setenv("STARPU_NTCPIPMSTHREADS", "1", 0);
	long long all = slaves ? slaves * env_number("STARPU_NTCPIPMSTHREADS", 1, 1) : 0;
	return all < INT_MAX ? (int)all : INT_MAX;
#else
	return 0;
#endif
}

static enum sl_tf32 tf32_wanted(void)
{
	static const char *const names[] = {[SL_TF32_NONE] = "none", [SL_TF32_CONV] = "conv", [SL_TF32_ALL] = "all"};
	const char *text = slp_env_or("SL_TF32", "conv");
	for (enum sl_tf32 t = SL_TF32_NONE; t <= SL_TF32_ALL; t++)
		if (!strcmp(text, names[t])) return t;
	slp_call_fail(NULL, "sl_init", SL_EINVAL, "SL_TF32=%s in the environment is none of none, conv, all", text);
	env_wrong = true;
	return SL_TF32_CONV;
}

/* Fills in what the user left to us. */
static struct sl_config resolve(const struct sl_config *given)
{
	struct sl_config c = given ? *given : (struct sl_config){0};
	int slaves = expected_slaves();
	if (c.teams > 0 && slaves) c.teams = c.teams > slaves ? c.teams - slaves : 1;
	c.teams = pick(c.teams, "STARPU_NCPU", 0, 1);
	c.gpus = pick(c.gpus, "STARPU_NCUDA", 0, SLP_MAX_GPUS);
	if (c.gpus < 0) c.gpus = 0;
	c.bulk = pick(c.bulk, "SL_BULK", 1, 32);
	c.runahead_tasks = pick(c.runahead_tasks, "SL_RUNAHEAD_TASKS", 1, 512);
	if (!c.runahead_bytes) c.runahead_bytes = (size_t)env_number("SL_RUNAHEAD_BYTES", 1, 8 << 20);
	if (!c.explain) c.explain = env_number("SL_EXPLAIN", 0, 0) > 0;
	if (!c.sched) c.sched = getenv("STARPU_SCHED");
	if (!c.tf32) c.tf32 = tf32_wanted();
	if (!c.cuda_graphs) c.cuda_graphs = env_number("SL_CUDA_GRAPHS", 0, 1) > 0 ? 1 : -1;
	if (!c.dist) c.dist = slp_env_or("SL_DIST", "none");
	return c;
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

/* The accelerators that StarPU shall use.  The scheduler must be chosen before it starts, and it warns if it is asked
 * for more than there are. */
static int expected_gpus(const struct sl_config *c)
{
	int n = 0;
#ifdef HAVE_CUDA
	if (c->gpus > 0 && cudaGetDeviceCount(&n) != cudaSuccess) n = 0;
#elif defined SLP_SIMULATION
	n = slp_simulated_gpus();
#endif
	return n < c->gpus ? n : c->gpus;
}

/* StarPU takes another policy instead of one that it does not know. */
static enum sl_status check_policy(const char *at, const char *name)
{
	char known[512] = " " SLP_FUZZ_POLICY;
	size_t n = strlen(known);
	if (!strcmp(name, SLP_FUZZ_POLICY)) return SL_OK;
	for (struct starpu_sched_policy **p = starpu_sched_get_predefined_policies(); *p; p++) {
		bool waits =
		        (*p)->do_schedule != NULL; /* for starpu_do_schedule, which nobody calls: no task would run */
		if (!strcmp((*p)->policy_name, name) && waits) {
			slp_call_fail(at, "sl_init", SL_EUNSUPPORTED,
			              "the scheduling policy \"%s\" waits for starpu_do_schedule, which is not called",
			              name);
			return SL_EUNSUPPORTED;
		}
		if (!strcmp((*p)->policy_name, name)) return SL_OK;
		if (waits) continue;
		if (!strncmp((*p)->policy_name, "modular-", 8)) continue; /* many, and rarely wanted */
		if (n < sizeof known) n += (size_t)snprintf(known + n, sizeof known - n, " %s", (*p)->policy_name);
	}
	if (getenv("STARPU_SCHED_LIB")) return SL_OK; /* it may come from there */
	slp_call_fail(at, "sl_init", SL_EINVAL, "StarPU has no scheduling policy \"%s\"; there are%s", name, known);
	return SL_EINVAL;
}

/* Workers poll: more of them than cores would take turns, and each operation would last many times as long. */
static enum sl_status check_teams(const char *at, int teams, int gpus)
{
	if (teams == 0 && !gpus) {
		slp_call_fail(at, "sl_init", SL_EDEVICE, "neither CPU devices (STARPU_NCPU=0) nor GPUs");
		return SL_EDEVICE;
	}
	int most = STARPU_MAXCPUS < SLP_MAX_TEAMS ? STARPU_MAXCPUS : SLP_MAX_TEAMS;
	if (teams > most) {
		slp_call_fail(at, "sl_init", SL_EDEVICE, "%d CPU devices; there can be %d with this StarPU", teams,
		              most);
		return SL_EDEVICE;
	}
	const char *nobind = getenv("STARPU_WORKERS_NOBIND");
	int cores = slp_team_cores_total();
	if (teams <= cores || (nobind && strcmp(nobind, "0"))) return SL_OK;
	slp_call_fail(at, "sl_init", SL_EDEVICE, "%d CPU devices on %d cores%s", teams, cores,
	              sl_is_simulated() ? " of the machine" : "; to try it all the same: STARPU_WORKERS_NOBIND=1");
	return SL_EDEVICE;
}

static bool make_folders(char *path)
{
	for (char *end = path; end;) {
		end = strchr(end + 1, '/');
		if (end) *end = '\0';
		bool made = !mkdir(path, 0777) || errno == EEXIST;
		if (end) *end = '/';
		if (!made) return false;
	}
	return true;
}

/* StarPU aborts where it cannot make the folder in which it keeps what it measures. */
static enum sl_status check_home(const char *at)
{
	static const char *const variables[] = {"STARPU_HOME", "XDG_CACHE_HOME", "HOME"};
	const char *models = getenv("STARPU_PERF_MODEL_DIR"), *home = NULL;
	for (int i = 0; !home && i < 3; i++) home = getenv(variables[i]);
	if (!models && !home) return SL_OK; /* it finds a place */
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s%s/bus", models ? models : home, models ? "" : "/.starpu/sampling");
	if (make_folders(path)) return SL_OK;
	slp_call_fail(at, "sl_init", SL_EIO,
	              "StarPU keeps its measurements in %s, which cannot be created: %s; "
	              "set STARPU_HOME to a folder that can be written",
	              path, strerror(errno));
	return SL_EIO;
}

/* Our own policy, for tests: which schedule it makes is said, so that it can be made again. */
static void choose_fuzz(struct starpu_conf *conf)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	long long seed = env_number("SL_FUZZ_SEED", 0, now.tv_nsec);
	slp_fuzz_seed((uint64_t)seed);
	fprintf(stderr, "starling: " SLP_FUZZ_POLICY " orders tasks by SL_FUZZ_SEED=%lld\n", seed);
	conf->sched_policy = &slp_fuzz_policy;
	conf->sched_policy_name = NULL;
}

/* Variables that StarPU shall not see while it starts.  Its STARPU_SCHED would win over the policy that it is given,
 * XDG_CACHE_HOME over STARPU_HOME; of STARPU_RESERVE_NCPU it would take away teams, instead of cores of teams. */
struct hidden {
	const char *name, *value;
};

static struct hidden hide(const char *name)
{
	struct hidden h = {name, getenv(name)};
	if (h.value) unsetenv(name);
	return h;
}

static void show(struct hidden h)
{
	if (h.value) setenv(h.name, h.value, 1);
}

static void read_conf(struct starpu_conf *conf)
{
	struct hidden reserve = hide("STARPU_RESERVE_NCPU");
	starpu_conf_init(conf);
	show(reserve);
}

/* StarPU reads files of measurements.  Where GPUs are plugged in matters to those who use some: hwloc takes 10 ms to ask
 * the PCI bus and X displays. */
static int init_starpu(struct starpu_conf *conf)
{
	struct hidden sched = hide("STARPU_SCHED"), reserve = hide("STARPU_RESERVE_NCPU");
	struct hidden cache = getenv("STARPU_HOME") ? hide("XDG_CACHE_HOME") : (struct hidden){NULL, NULL};
	bool looks = conf->ncuda || getenv("HWLOC_COMPONENTS");
	hwloc_bitmap_t mask = slp_cores_widen();
	if (!looks) setenv("HWLOC_COMPONENTS", "-pci,-gl,-opencl", 1);
	(void)slp_room(); /* where there is a ulimit, threads to come share one heap */
	slp_team_stacks();
	locale_t locale = slp_number_begin();
	sigset_t signals;
	slp_signals_hold(&signals);
	int ret = starpu_init(conf);
	slp_signals_restore(&signals);
	slp_number_end(locale);
	if (!looks) unsetenv("HWLOC_COMPONENTS");
	slp_slaves_met();
	slp_cores_restore(mask);
	show(cache);
	show(reserve);
	show(sched);
	return ret;
}

static enum sl_status start_starpu(const char *at, struct sl_config *c)
{
	struct starpu_conf conf;
	read_conf(&conf);
	int gpus = expected_gpus(c);
	if (!c->sched || !*c->sched) c->sched = gpus ? "dmdas" : "lws";
	enum sl_status s = check_policy(at, c->sched);
	if (s == SL_OK) s = check_teams(at, c->teams, gpus);
	if (s == SL_OK) s = check_home(at);
	if (s == SL_OK) s = slp_priority_prepare(at, c->sched, &conf);
	if (s == SL_OK) s = slp_slaves_meet(at, slave_processes());
	if (s != SL_OK) return s;
	conf.precedence_over_environment_variables = 1;
	conf.sched_policy_name = c->sched;
	if (!strcmp(c->sched, SLP_FUZZ_POLICY)) choose_fuzz(&conf);
	conf.ncpus = c->teams + (c->teams && slp_cores_main_bound()); /* StarPU takes one away for that thread */
	conf.ncuda = gpus;
	conf.nopencl = 0;
	if (c->explain)
		conf.calibrate = conf.calibrate ? conf.calibrate : 1; /* else predictions are asked of policies only */
	conf.catch_signals = 0;                                       /* a library leaves signals to the program */
	int ret = init_starpu(&conf);
	if (ret == 0) return SL_OK;
	slp_call_fail(at, "sl_init", SL_EDEVICE, "StarPU did not start with %d CPU workers and policy %s: %s", c->teams,
	              c->sched, strerror(-ret));
	return SL_EDEVICE;
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

/* In the child of a fork: StarPU's threads are not here, and locks may be held by threads that are not. */
static void forked(void)
{
	if (!sl_is_initialized()) return;
	slp_engine.forked = true;
	slp_engine.generation++;
	atomic_store(&slp_engine.users, 0);
	pthread_mutex_init(&slp_engine.lock, NULL);
	pthread_mutex_init(&start_lock, NULL);
	slp_gate_forked();
	slp_fault_forked();
}

static void register_exit(void)
{
	atexit(report_missing_shutdown);
	pthread_atfork(NULL, NULL, forked);
}

static void start_watch(void)
{
	long long seconds = env_number("SL_DEADLINE", 0, 0), ends = env_number("SL_DEADLINE_ERROR", 0, 0);
	if (!sl_is_simulated()) slp_watch_start((double)seconds, ends > 0); /* simulated time is not that of threads */
	slp_finite_wanted = env_number("SL_NAN", 0, 0) > 0 && !sl_is_simulated();
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
	if (!slp_env_check(at)) return SL_EINVAL;
	env_wrong = false;
	struct sl_config c = resolve(given);
	env_number("SL_DEADLINE", 0, 0), env_number("SL_DEADLINE_ERROR", 0, 0); /* read again when the engine runs */
	if (env_wrong) return SL_EINVAL;
	if (c.teams < 0 || c.bulk < 0 || c.runahead_tasks < 0) {
		slp_call_fail(at, "sl_init", SL_EINVAL, ".teams, .bulk and .runahead_tasks must not be negative");
		return SL_EINVAL;
	}
	enum sl_status s = slp_simulate_start(at) ? join(at, c.dist) : SL_EINVAL;
	if (s != SL_OK) return s;
	slp_cores_choose();
	if ((s = start_starpu(at, &c)) != SL_OK) {
		leave();
		return s;
	}
	find_workers();
	slp_cores_started(slp_engine.nteams - slp_engine.nslaves);
	slp_priority_start(env_number("SL_PRIORITIES", 0, 1) > 0);
	slp_engine.cudnn_graph = env_number("SL_CUDNN_GRAPH", 0, 1) > 0;
	slp_tune_start((int)env_number("SL_GPU_AUTOTUNE", 0, 1));
	slp_report_begin();
	slp_simulate_memory();
	slp_fxt_start();
	slp_engine.config = c;
	slp_explain_start();
	slp_idle_start();
	start_watch();
	slp_engine.device = sl_auto();
	slp_codelets_init();
	if (slp_engine_joined) slp_engine_joined(at);
	if (given || !atomic_load(&slp_engine.rng_seed)) sl_seed(c.seed);
	pthread_once(&once, register_exit);
	return SL_OK;
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
 * Random numbers start at config->seed, or without a config as sl_seed says.  Returns SL_EINVAL for a scheduling
 * policy that StarPU does not have, numbers below 0, or if the library simulates and SL_MACHINE names no machine;
 * SL_EDEVICE for more teams than cores or than StarPU was built for (64), for no devices at all, or if StarPU cannot
 * start so; SL_EIO if the folder for its measurements cannot be created, or if the other processes of a run cannot be
 * met (doc/distributed.md, and slave processes: doc/parallel.md); SL_ESTATE in the child of a fork, if the engine ran
 * before.  After an error the engine does not run. */
enum sl_status sl_init_at(const char *at, const struct sl_config *config)
{
	SLP_UNCANCELLED();
	SLP_CALL("sl_init", at);
	pthread_mutex_lock(&start_lock);
	enum sl_status s = SL_OK;
	if (slp_engine.forked) s = refuse_child(at);
	else if (atomic_load(&slp_engine.users) == 0) s = start(at, config);
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

/* Sets the device of tensors that are made without naming one; at first, it is auto. SL_EDEVICE if it does not exist.
 */
enum sl_status sl_device_default_at(const char *at, sl_device device)
{
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
	slp_scratch_clear();
	slp_segments_clear();
	slp_unlock();
	slp_fault_reset();
	slp_fxt_stop();
	slp_idle_stop();
	slp_watch_stop();
	locale_t locale = slp_number_begin();
	starpu_shutdown();
	slp_number_end(locale);
	slp_engine.nteams = slp_engine.ngpus = slp_engine.nslaves = 0;
}

static bool refused(const char *function, bool outermost)
{
	if (slp_worker_refused("?", function)) return true;
	if (!outermost)
		slp_call_fail("?", function, SL_ESTATE, "called within %s at %s", slp_current_call.function,
		              slp_current_call.at);
	return !outermost;
}

/* How many still use the engine after one has given it up; the last one stays until it has stopped. */
static int give_up_use(void)
{
	SLP_UNCANCELLED();
	pthread_mutex_lock(&start_lock);
	int users = atomic_load(&slp_engine.users);
	if (users > 1) atomic_fetch_sub(&slp_engine.users, 1);
	pthread_mutex_unlock(&start_lock);
	return users - 1;
}

/* No call of another thread is under way. */
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

/* Undoes one sl_init; the last call waits for all work, stops StarPU, and prints on stderr an error that was not
 * reported. Tensors that still exist lose their values: they can be released, and anything else with them is
 * SL_ESTATE.  Calls of other threads that are under way end first; those that begin meanwhile wait until the engine has
 * stopped, and then find their tensors without values, or start it again.  In a function that another call has called,
 * a forward for example, it is SL_ESTATE (sl_error), and the engine goes on. */
void sl_shutdown(void)
{
	SLP_CALL("sl_shutdown", NULL);
	if (refused("sl_shutdown", slp_outermost_) || give_up_use()) return;
	if (!slp_calls_stop("sl_shutdown", 0)) return;
	stop_for_last(false);
	slp_calls_go_on();
}

/* sl_shutdown for the end of a process, however often sl_init was called: calls of other threads that begin from now on
 * never return, so that threads which go on while the process ends do no harm.  It waits ten seconds for calls that are
 * under way; if one has not returned then, the engine goes on, and sl_error is SL_ESTATE.  The end of a program that
 * forgot sl_shutdown does the same.
 *
 *     atexit(sl_shutdown_at_exit); */
void sl_shutdown_at_exit(void)
{
	const double patience = 10; /* seconds */
	SLP_CALL("sl_shutdown_at_exit", NULL);
	if (refused("sl_shutdown_at_exit", slp_outermost_) || !sl_is_initialized()) return;
	if (slp_calls_stop("sl_shutdown_at_exit", patience)) stop_for_last(true);
}

/* Waits for all work, of all threads. Returns the first error of the calling thread, or of an operation whose failure
 * was not reported yet; sl_error_message() has all of them, one on each line.
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
