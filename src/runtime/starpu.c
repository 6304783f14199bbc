/* The start of StarPU: its policy, its workers, and variables hidden from it. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "number.h"
#include "runtime/device/cores.h"
#include "runtime/task/fuzz.h"
#include "runtime/settings/home.h"
#include "runtime/task/priority.h"
#include "runtime/process/processes.h"
#include "runtime/memory/memory_limit.h"
#include "runtime/simulation/simulate.h"
#include "op.h"
#include "runtime/device/team.h"
#include "runtime/engine.h"
#include "runtime/settings/environment.h"
#include "runtime/process/slaves.h"
#include "runtime/start.h"
#include "runtime/thread.h"

/* The accelerators for StarPU.  The scheduler must be chosen before it starts, and it warns if more are requested than
 * exist. */
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
	int modular = 0; /* many, and rarely useful */
	if (!strcmp(name, SLP_FUZZ_POLICY)) return SL_OK;
	for (struct starpu_sched_policy **p = starpu_sched_get_predefined_policies(); *p; p++) {
		bool waits = (*p)->do_schedule !=
		             NULL; /* it waits for starpu_do_schedule, which is never called: no task would run */
		if (!strcmp((*p)->policy_name, name) && waits) {
			slp_call_fail(at, "sl_init", SL_EUNSUPPORTED,
			              "the scheduling policy \"%s\" waits for starpu_do_schedule, which is not called",
			              name);
			return SL_EUNSUPPORTED;
		}
		if (!strcmp((*p)->policy_name, name)) return SL_OK;
		bool is_modular = !strncmp((*p)->policy_name, "modular-", 8);
		modular += is_modular;
		if (waits || is_modular) continue;
		if (n < sizeof known) n += (size_t)snprintf(known + n, sizeof known - n, " %s", (*p)->policy_name);
	}
	if (getenv("STARPU_SCHED_LIB")) return SL_OK; /* it may come from there */
	slp_call_fail(at, "sl_init", SL_EINVAL,
	              "StarPU has no scheduling policy \"%s\"; there are%s, and %d whose names begin with modular-",
	              name, known, modular);
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
	int cores = slp_team_cores_total();
	if (teams <= cores || slp_env_unbound()) return SL_OK;
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

static enum sl_status refuse_home(const char *at, const char *path)
{
	slp_call_fail(at, "sl_init", SL_EIO,
	              "StarPU keeps its measurements in %s, which cannot be created: %s; "
	              "set STARPU_HOME to a folder that can be written",
	              path, strerror(errno));
	return SL_EIO;
}

/* StarPU aborts if it cannot create the folder of its measurements. */
static enum sl_status check_home(const char *at)
{
	char path[PATH_MAX] = "a folder of temporary files";
	if (!slp_home_make()) return refuse_home(at, path);
	if (!slp_starpu_folder(path, sizeof path - sizeof "/bus")) return SL_OK; /* it finds a place */
	strcat(path, "/bus");
	if (make_folders(path)) return SL_OK;
	return refuse_home(at, path);
}

/* Our own policy, for tests: which schedule it makes is said, so that it can be made again. */
static void choose_fuzz(struct starpu_conf *conf, long long seed)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (seed < 0) seed = now.tv_nsec;
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
	struct hidden cache = *slp_env_or("STARPU_HOME", "") ? hide("XDG_CACHE_HOME") : (struct hidden){NULL, NULL};
	bool looks = conf->ncuda || getenv("HWLOC_COMPONENTS");
	hwloc_bitmap_t mask = slp_cores_widen();
	if (!looks) setenv("HWLOC_COMPONENTS", "-pci,-gl,-opencl", 1);
	(void)slp_memory_available(); /* where there is a ulimit, threads to come share one heap */
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

enum sl_status slp_starpu_start(const char *at, struct slp_settings *settings)
{
	struct sl_config *c = &settings->config;
	struct starpu_conf conf;
	read_conf(&conf);
	int gpus = expected_gpus(c);
	settings->places = !c->sched || !*c->sched;
	if (!c->sched || !*c->sched) c->sched = gpus ? "dmdas" : "lws";
	enum sl_status s = check_policy(at, c->sched);
	if (s == SL_OK) s = check_teams(at, c->teams, gpus);
	if (s == SL_OK) s = check_home(at);
	if (s == SL_OK) s = slp_priority_prepare(at, c->sched, &conf);
	if (s == SL_OK) s = slp_slaves_meet(at, settings->slaves);
	if (s != SL_OK) return s;
	conf.precedence_over_environment_variables = 1;
	conf.sched_policy_name = c->sched;
	if (!strcmp(c->sched, SLP_FUZZ_POLICY)) choose_fuzz(&conf, settings->fuzz_seed);
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
