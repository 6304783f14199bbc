/* Settings of sl_config, and of the environment if a program omits them. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"
#include "runtime/process/processes.h"
#include "op.h"
#include "runtime/compat.h"
#include "runtime/engine.h"
#include "runtime/start.h"

/* Where settings are read, and whether all were understood. */
struct reader {
	const char *at;
	bool ok, quiet;
};

static void refuse(struct reader *r, const char *variable, const char *wanted)
{
	if (!r->quiet)
		slp_call_fail(r->at, "sl_init", SL_EINVAL, "%s=%s in the environment is %s", variable, getenv(variable),
		              wanted);
	r->ok = false;
}

/* An environment variable as a number of at least `low`; otherwise if it is not set, or empty. */
static long long env_number(struct reader *r, const char *name, long long low, long long otherwise)
{
	const char *text = getenv(name);
	if (!text || !*text) return otherwise;
	char wanted[64];
	int64_t v;
	if (slp_whole_given(text, &v) && v >= low) return v;
	snprintf(wanted, sizeof wanted, "not a number of at least %lld", low);
	refuse(r, name, wanted);
	return otherwise;
}

static int env_int(struct reader *r, const char *name, int low, int otherwise)
{
	long long v = env_number(r, name, low, otherwise);
	return v < INT_MAX ? (int)v : INT_MAX;
}

/* The same of at least 0, with a fraction or an exponent: 0.5, 1e9. */
static double env_real(struct reader *r, const char *name, double otherwise)
{
	const char *text = getenv(name);
	if (!text || !*text) return otherwise;
	double v;
	if (slp_real_given(text, &v) && v >= 0) return v;
	refuse(r, name, "not a number of at least 0");
	return otherwise;
}

/* Devices in slave processes, each with as many as there are threads; StarPU would take as many as a slave has
 * cores. */
static int slave_devices(struct reader *r, int slaves)
{
#ifdef STARPU_USE_TCPIP_MASTER_SLAVE
	if (!slaves) return 0;
	setenv("STARPU_NTCPIPMSTHREADS", "1", 0);
	long long all = slaves * env_number(r, "STARPU_NTCPIPMSTHREADS", 1, 1);
	return all < INT_MAX ? (int)all : INT_MAX;
#else
	(void)r, (void)slaves;
	return 0;
#endif
}

static enum sl_tf32 tf32_wanted(struct reader *r)
{
	static const char *const names[] = {[SL_TF32_NONE] = "none", [SL_TF32_CONV] = "conv", [SL_TF32_ALL] = "all"};
	const char *text = slp_env_or("SL_TF32", "conv");
	for (enum sl_tf32 t = SL_TF32_NONE; t <= SL_TF32_ALL; t++)
		if (!strcmp(text, names[t])) return t;
	refuse(r, "SL_TF32", "none of none, conv, all");
	return SL_TF32_CONV;
}

static void untrusted(struct reader *r, struct sl_untrusted *u)
{
	if (!u->bytes) u->bytes = (size_t)env_number(r, "SL_UNTRUSTED_BYTES", 0, 0);
	if (!u->seconds) u->seconds = env_real(r, "SL_UNTRUSTED_SECONDS", 0);
	if (!u->operations) u->operations = env_real(r, "SL_UNTRUSTED_OPERATIONS", 0);
}

void slp_untrusted_read(struct sl_untrusted *limits)
{
	struct reader r = {.quiet = true};
	untrusted(&r, limits);
}

/* Sets the fields that the program left zero. */
static void fill(struct reader *r, struct sl_config *c, int slaves)
{
	int elsewhere = slave_devices(r, slaves);
	if (c->teams > 0 && elsewhere) c->teams = c->teams > elsewhere ? c->teams - elsewhere : 1;
	if (!c->teams) c->teams = env_int(r, "STARPU_NCPU", 0, 1);
	if (!c->gpus) c->gpus = env_int(r, "STARPU_NCUDA", 0, SLP_MAX_GPUS);
	if (c->gpus < 0) c->gpus = 0;
	if (!c->bulk) c->bulk = env_int(r, "SL_BULK", 1, 32);
	if (!c->runahead_tasks) c->runahead_tasks = env_int(r, "SL_RUNAHEAD_TASKS", 1, 512);
	if (!c->runahead_bytes) c->runahead_bytes = (size_t)env_number(r, "SL_RUNAHEAD_BYTES", 1, 8 << 20);
	if (!c->explain) c->explain = env_number(r, "SL_EXPLAIN", 0, 0) > 0;
	if (!c->sched) c->sched = getenv("STARPU_SCHED");
	if (!c->tf32) c->tf32 = tf32_wanted(r);
	if (!c->cuda_graphs) c->cuda_graphs = env_number(r, "SL_CUDA_GRAPHS", 0, 1) > 0 ? 1 : -1;
	untrusted(r, &c->untrusted);
	if (!c->dist) c->dist = slp_env_or("SL_DIST", "none");
}

/* Numbers that are read later, where an error could not be reported. */
static void look_at_others(struct reader *r)
{
	static const char *const names[] = {"SL_FIXED_SUMS", "SL_WINOGRAD", "SL_CHANNELS_LAST", "SL_TEAM_THREADS",
	                                    "SL_SIMULATED_NODES"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (env_number(r, names[i], 0, 0) > INT_MAX) refuse(r, names[i], "too large");
}

/* The program's configuration, before its zeros became defaults. */
static bool check(const char *at, const struct sl_config *c)
{
	const char *wrong = c->teams < 0 || c->bulk < 0 || c->runahead_tasks < 0
	                            ? ".teams, .bulk and .runahead_tasks must not be negative"
	                    : c->gpus < -1 ? ".gpus must be a number of GPUs, or -1 for none"
	                    : c->cuda_graphs < -1 || c->cuda_graphs > 1 ? ".cuda_graphs must be 1, or -1 for none"
	                    : c->tf32 > SL_TF32_ALL    ? ".tf32 must be SL_TF32_NONE, SL_TF32_CONV or SL_TF32_ALL"
	                    : c->sched && !c->sched[0] ? ".sched is empty; NULL is the default"
	                    : c->dist && !c->dist[0]   ? ".dist is empty; \"none\" is a process alone"
	                    : !(c->untrusted.seconds >= 0) || !(c->untrusted.operations >= 0)
	                            ? ".untrusted.seconds and .untrusted.operations must be numbers of at least 0"
	                            : NULL;
	if (wrong) slp_call_fail(at, "sl_init", SL_EINVAL, "%s", wrong);
	return !wrong;
}

bool slp_settings_read(const char *at, const struct sl_config *config, struct slp_settings *s)
{
	struct reader r = {.at = at, .ok = true};
	*s = (struct slp_settings){.config = config ? *config : (struct sl_config){0}};
	s->slaves = env_int(&r, "STARPU_TCPIP_MS_SLAVES", 0, 0);
	s->grows = !s->config.runahead_bytes && !*slp_env_or("SL_RUNAHEAD_BYTES", "");
	fill(&r, &s->config, s->slaves);
	look_at_others(&r);
	s->deadline = (double)env_number(&r, "SL_DEADLINE", 0, 0);
	s->deadline_is_error = env_number(&r, "SL_DEADLINE_ERROR", 0, 0) > 0;
	s->nan = env_number(&r, "SL_NAN", 0, 0) > 0;
	s->priorities = env_number(&r, "SL_PRIORITIES", 0, 1) > 0;
	s->cudnn_graph = env_number(&r, "SL_CUDNN_GRAPH", 0, 1) > 0;
	s->autotune = env_int(&r, "SL_GPU_AUTOTUNE", 0, 1);
	s->compile = env_number(&r, "SL_GPU_COMPILE", 0, 1) > 0;
	s->fuzz_seed = env_number(&r, "SL_FUZZ_SEED", 0, -1);
	return check(at, config ? config : &(struct sl_config){0}) && r.ok;
}
