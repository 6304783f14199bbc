/* Priorities of tasks for the scheduling policy: any number, a few, or heteroprio's buckets. */
#include <stdlib.h>
#include <string.h>

#include "op.h"
#include "runtime/compat.h"
#include "runtime/engine.h"
#include "runtime/task/priority.h"

#if SLP_STARPU_1_4
#include <starpu_heteroprio.h>
#endif

enum { TURNS = 1 << 20 };

static struct {
	enum { UNUSED, ANY, RANGE, BUCKETS } kind;
	int least, most;
	bool buckets; /* heteroprio was chosen */
} policy;

_Thread_local int slp_level;
static _Thread_local bool shares;
static _Atomic uint32_t turn;

void slp_turn_next(void)
{
	if (policy.kind != UNUSED && !shares) atomic_fetch_add_explicit(&turn, 1, memory_order_relaxed);
}

bool slp_turn_share(void)
{
	bool before = shares;
	slp_turn_next();
	shares = true;
	return before;
}

void slp_turn_unshare(const bool *before)
{
	shares = *before;
}

/* ---- heteroprio -------------------------------------------------------------------------------------------------- */

/* It has a hundred buckets, and each kind of worker visits its buckets in its own order.  Every worker that visits a
 * bucket must be able to run its tasks: so there are three times RANKS of them. */
enum { RANKS = 33, ANYWHERE = 0, CPUS = 1, GPUS = 2 };

/* A level's place in a range. */
static int part_of(int64_t most, int level)
{
	return (int)(most * (level - SLP_LEVEL_LAST) / (SLP_LEVELS - 1));
}

static int bucket_of(int kind, int rank)
{
	return kind * RANKS + rank;
}

static int bucket(int level, const struct starpu_task *task)
{
	bool cpus = task->where < 0 || task->where & SLP_CPU_WORKERS,
	     gpus = task->where < 0 || task->where & STARPU_CUDA;
	return bucket_of(cpus && gpus ? ANYWHERE : cpus ? CPUS : GPUS, part_of(RANKS - 1, level));
}

#if SLP_STARPU_1_4
/* CPUs take a task that GPUs could compute only if, for each GPU, as many such tasks wait as GPUs are faster: otherwise a
 * few tasks wait for one that lasts as long as all of them. */
static void leave_to_gpus(unsigned context)
{
	const float times = 100;
	bool both = starpu_worker_get_count_by_type(STARPU_CUDA_WORKER) &&
	            starpu_worker_get_count_by_type(STARPU_CPU_WORKER);
	for (int rank = 0; both && rank < RANKS; rank++) {
		unsigned bucket = (unsigned)bucket_of(ANYWHERE, rank);
		starpu_heteroprio_set_faster_arch(context, STARPU_CUDA_WORKER, bucket);
		starpu_heteroprio_set_arch_slow_factor(context, STARPU_CPU_WORKER, bucket, times);
	}
}

/* The highest rank first; within a rank, first tasks that others cannot run. */
static void set_up_buckets(unsigned context)
{
	static const enum starpu_worker_archtype types[] = {STARPU_CPU_WORKER, STARPU_TCPIP_MS_WORKER,
	                                                    STARPU_CUDA_WORKER};
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		if (starpu_worker_get_count_by_type(types[i]) == 0) continue;
		int own = types[i] == STARPU_CUDA_WORKER ? GPUS : CPUS;
		starpu_heteroprio_set_nb_prios(context, types[i], 2 * RANKS);
		for (int k = 0; k < RANKS; k++) {
			int rank = RANKS - 1 - k;
			starpu_heteroprio_set_mapping(context, types[i], (unsigned)(2 * k),
			                              (unsigned)bucket_of(own, rank));
			starpu_heteroprio_set_mapping(context, types[i], (unsigned)(2 * k + 1),
			                              (unsigned)bucket_of(ANYWHERE, rank));
		}
	}
	leave_to_gpus(context);
}

static bool is_set(const char *variable)
{
	const char *text = getenv(variable);
	return text && *text && strcmp(text, "0") != 0;
}

/* Left to itself it sorts codelets, of which it takes a hundred, and ends the program at one more. */
static enum sl_status prepare_buckets(const char *at, struct starpu_conf *conf)
{
	static const char *const refused[] = {"STARPU_HETEROPRIO_USE_AUTO_CALIBRATION", "STARPU_HETEROPRIO_USE_LA"};
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		if (!is_set(refused[i])) continue;
		slp_call_fail(at, "sl_init", SL_EUNSUPPORTED,
		              "the policy heteroprio with %s=1; it sorts tasks by Starling's priorities without it",
		              refused[i]);
		return SL_EUNSUPPORTED;
	}
	setenv(refused[0], "0", 1);
	conf->sched_policy_callback = set_up_buckets;
	return SL_OK;
}
#else
static enum sl_status prepare_buckets(const char *at, struct starpu_conf *conf)
{
	(void)conf;
	slp_call_fail(at, "sl_init", SL_EUNSUPPORTED, "the policy heteroprio needs StarPU 1.4");
	return SL_EUNSUPPORTED;
}
#endif

enum sl_status slp_priority_prepare(const char *at, const char *name, struct starpu_conf *conf)
{
	policy.buckets = !strcmp(name, "heteroprio");
	return policy.buckets ? prepare_buckets(at, conf) : SL_OK;
}

/* ---- all policies ------------------------------------------------------------------------------------------------ */

/* heteroprio needs them in any case: each names a bucket. */
void slp_priority_start(bool wanted)
{
	policy.least = starpu_sched_get_min_priority();
	policy.most = starpu_sched_get_max_priority();
	atomic_store(&turn, 0);
	if (policy.buckets) policy.kind = BUCKETS;
	else if (!wanted || slp_engine.nworkers < 2 || policy.least >= policy.most) policy.kind = UNUSED;
	else
		policy.kind = policy.least <= -TURNS * SLP_LEVELS + SLP_LEVEL_LAST && policy.most >= SLP_LEVEL_SUM
		                      ? ANY
		                      : RANGE;
}

bool slp_priority_is_used(void)
{
	return policy.kind != UNUSED;
}

/* Restarts after so many turns: a run then overtakes those before it, once. */
static int turns_before(void)
{
	return (int)(atomic_load_explicit(&turn, memory_order_relaxed) % TURNS) * SLP_LEVELS;
}

int slp_priority_of(int level, const struct starpu_task *task)
{
	if (policy.kind == UNUSED) return 0;
	if (policy.kind == ANY) return level - turns_before();
	if (policy.kind == BUCKETS) return bucket(level, task);
	return policy.least + part_of((int64_t)policy.most - policy.least, level);
}
