/* Priorities of tasks: what StarPU is given, seen where tasks are submitted.  The critical path is computed anew here,
 * from the handles of the tasks. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "blocks.h"
#include "check.h"
#include "graph/plan.h"
#include "nn/nn.h"
#include "runtime/task/priority.h"

/* ---- what was submitted ------------------------------------------------------------------------------------------ */

enum { MOST = 4096, HANDLES = 24 };
static struct seen {
	char name[32];
	int priority, count;
	bool pinned;
	starpu_data_handle_t handles[HANDLES];
	enum starpu_data_access_mode modes[HANDLES];
} seen[MOST];
static int nseen;
static bool looks;

static void look(struct starpu_task *task)
{
	struct seen *s = &seen[nseen++];
	*s = (struct seen){.priority = task->priority, .pinned = task->execute_on_a_specific_worker};
	snprintf(s->name, sizeof s->name, "%s", task->name ? task->name : "");
	for (int i = 0; i < (int)STARPU_TASK_GET_NBUFFERS(task) && i < HANDLES; i++) {
		s->handles[i] = STARPU_TASK_GET_HANDLE(task, i);
		s->modes[i] = STARPU_TASK_GET_MODE(task, i);
		s->count++;
	}
}

/* In the place of StarPU's. */
#undef starpu_task_submit
int starpu_task_submit(struct starpu_task *task)
{
	int (*submit)(struct starpu_task *);
	*(void **)&submit = dlsym(RTLD_NEXT, "starpu_task_submit");
	if (looks && task->cl && nseen < MOST) look(task); /* StarPU has some of its own, without */
	return submit(task);
}

static void start_looking(void)
{
	CHECK_OK(sl_wait_all());
	nseen = 0;
	looks = true;
}

static void stop_looking(void)
{
	CHECK_OK(sl_wait_all());
	looks = false;
	CHECK(nseen > 0 && nseen < MOST);
}

static void start(const char *sched, int teams)
{
	slp_begin((struct sl_config){.teams = teams, .gpus = -1, .sched = sched, .seed = 1});
}

/* ---- critical paths ---------------------------------------------------------------------------------------------- */

/* Whether a task must wait for one that was submitted before it. */
static bool waits(const struct seen *later, const struct seen *earlier)
{
	for (int i = 0; i < later->count; i++)
		for (int k = 0; k < earlier->count; k++)
			if (later->handles[i] == earlier->handles[k] && later->modes[i] != STARPU_SCRATCH &&
			    (later->modes[i] | earlier->modes[k]) & STARPU_W)
				return true;
	return false;
}

/* From the beginning of a task to the end of all, over every way. */
static double longest(int first, int n, const double *seconds)
{
	double most = 0;
	for (int i = first + 1; i < n; i++) {
		double path = waits(&seen[i], &seen[first]) ? longest(i, n, seconds) : 0;
		if (path > most) most = path;
	}
	return seconds[first] + most;
}

/* Two chains of products from one value, of different lengths, which meet; and one that nobody waits for. */
static sl_graph *branches(void)
{
	enum { SIDE = 512 };
	sl_tensor *x = sl_dot(sl_var("x", SL_VAR_SHAPE(SIDE, SIDE)), sl_ones(SL_SHAPE(SIDE, SIDE))), *ends[3];
	for (int i = 0; i < 3; i++) {
		ends[i] = x;
		for (int k = 0; k < 1 + 2 * i; k++) ends[i] = sl_dot(ends[i], sl_tanh(ends[i]));
	}
	return sl_graph_define(sl_dot(ends[1], ends[2]), ends[0]);
}

static void run_branches(sl_plan *plan)
{
	sl_tensor *x = sl_ones(SL_SHAPE(512, 512)), *out[2];
	start_looking();
	CHECK_OK(sl_plan_run(plan, &x, 1, out));
	stop_looking();
}

static void test_paths(void)
{
	start("prio", 2);
	SL_SCOPE {
		sl_graph *g = branches();
		sl_plan *plan = sl_compile(g);
		run_branches(plan); /* what a program keeps is made */
		run_branches(plan);
		int n = nseen, different = 0, base = seen[0].priority;
		CHECK_SAYING(n == plan->layout.nunits && n > 5, "%d tasks, %d units", n, plan->layout.nunits);
		double paths[64], most = 0;
		for (int i = 0; i < n && i < 64; i++) {
			paths[i] = longest(i, n, plan->layout.seconds);
			if (paths[i] > most) most = paths[i];
			if (seen[i].priority > base) base = seen[i].priority;
		}
		for (int i = 0; i < n; i++) {
			int below = (int)((SLP_LEVEL_FIRST - SLP_LEVEL_LAST) * (1 - paths[i] / most) + 0.5);
			CHECK_SAYING(abs(base - seen[i].priority - below) <= 1,
			             "task %d: %d below the first, %d expected", i, base - seen[i].priority, below);
			different += below > 0;
		}
		CHECK(different >= 4);
		run_branches(plan);
		int second = seen[0].priority;
		for (int i = 0; i < n; i++) CHECK(seen[i].priority < base); /* a turn later */
		CHECK(base - second == SLP_LEVELS);
		sl_plan_free(plan);
		sl_graph_free(g);
	}
	slp_end_well();
}

/* Nobody pays for priorities that nobody looks at. */
static void check_none(const char *sched, int teams)
{
	start(sched, teams);
	SL_SCOPE {
		sl_graph *g = branches();
		sl_plan *plan = sl_compile(g);
		run_branches(plan);
		for (int i = 0; i < nseen; i++) CHECK_SAYING(seen[i].priority == 0, "%s: task %d", sched, i);
		CHECK(!slp_priority_is_used());
		sl_plan_free(plan);
		sl_graph_free(g);
	}
	slp_end_well();
}

static void test_none(void)
{
	check_none("eager", 2);
	check_none("dmda", 2);
	check_none("prio", 1);
	setenv("SL_PRIORITIES", "0", 1);
	check_none("prio", 2);
	unsetenv("SL_PRIORITIES");
}

/* ---- policies that take only some -------------------------------------------------------------------------------- */

static void check_within(const char *sched, int least, int most)
{
	int lowest = INT_MAX, highest = INT_MIN;
	start(sched, 2);
	SL_SCOPE {
		sl_graph *g = branches();
		sl_plan *plan = sl_compile(g);
		for (int round = 0; round < 3; round++) {
			run_branches(plan);
			for (int i = 0; i < nseen; i++) {
				if (seen[i].priority < lowest) lowest = seen[i].priority;
				if (seen[i].priority > highest) highest = seen[i].priority;
			}
		}
		sl_plan_free(plan);
		sl_graph_free(g);
	}
	slp_end_well();
	CHECK_SAYING(lowest >= least && highest <= most && highest - lowest > (most - least) / 2, "%s: from %d to %d",
	             sched, lowest, highest);
}

static void test_range(void)
{
	setenv("STARPU_MIN_PRIO", "5", 1);
	setenv("STARPU_MAX_PRIO", "15", 1);
	check_within("dmdas", 5, 15);
	unsetenv("STARPU_MIN_PRIO");
	unsetenv("STARPU_MAX_PRIO");
}

#if SLP_STARPU_1_4
static void test_heteroprio(void)
{
#ifdef HAVE_CUDA
	check_within("heteroprio", 0, 32); /* the buckets of what any worker runs */
#else
	check_within("heteroprio", 33, 65); /* of what only CPUs run */
#endif
	setenv("STARPU_HETEROPRIO_USE_AUTO_CALIBRATION", "1", 1);
	CHECK_STATUS(sl_init(&(struct sl_config){.sched = "heteroprio"}), SL_EUNSUPPORTED, "heteroprio",
	             "STARPU_HETEROPRIO_USE_AUTO_CALIBRATION=1");
	sl_error_clear();
	unsetenv("STARPU_HETEROPRIO_USE_AUTO_CALIBRATION");
}
#else
static void test_heteroprio(void)
{
	CHECK_STATUS(sl_init(&(struct sl_config){.sched = "heteroprio"}), SL_EUNSUPPORTED, "heteroprio", "1.4");
	sl_error_clear();
}
#endif

/* ---- training ---------------------------------------------------------------------------------------------------- */

static const sl_device teams[] = {{SL_DEVICE_CPU, 0}, {SL_DEVICE_CPU, 1}};
enum { ROWS = 64, SHARDS = 2 };

/* Only what this step submits is seen. */
static void train(sl_block *net, sl_trainer *trainer, bool bound)
{
	sl_tensor *x = sl_ones(SL_SHAPE(ROWS, 256)), *y = sl_zeros(SL_SHAPE(ROWS), .dtype = SL_INT32);
	sl_tensor *xs[SHARDS] = {x}, *ys[SHARDS] = {y}, *losses[SHARDS];
	int n = bound ? SHARDS : 1;
	if (bound) {
		CHECK_OK(sl_split_and_load(x, teams, SHARDS, xs));
		CHECK_OK(sl_split_and_load(y, teams, SHARDS, ys));
	}
	start_looking();
	SL_RECORD
		for (int i = 0; i < n; i++) losses[i] = sl_softmax_cross_entropy(sl_forward(net, xs[i]), ys[i]);
	CHECK_OK(sl_backward_heads_at(SL_HERE, losses, n, (struct sl_backward_opts){0}));
	CHECK_OK(sl_trainer_step(trainer, ROWS));
	stop_looking();
}

/* Updates before the backward pass, this before the forward pass, where the policy places tasks. */
static void check_training(bool bound)
{
	start("dmdas", 2);
	sl_block *net = sl_sequential(sl_dense(512, .activation = SL_RELU), sl_dense(512), sl_dense(512), sl_dense(3));
	CHECK_OK(bound ? sl_initialize(net, .devices = teams, .ndevices = 2) : sl_initialize(net));
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.1));
	int levels[SLP_LEVEL_SUM + 1] = {0};
	for (int round = 0; round < 2; round++)
		SL_SCOPE
			train(net, trainer, bound);
	for (int i = 0; i < nseen; i++) {
		int level = seen[i].priority;
		if (!CHECK_SAYING(level >= 0 && level <= SLP_LEVEL_SUM, "%s: %d", seen[i].name, level)) continue;
		levels[level]++;
		if (seen[i].pinned) CHECK_SAYING(level == SLP_LEVEL_CALL, "%s: %d", seen[i].name, level);
		else if (strstr(seen[i].name, "sgd")) CHECK(level == SLP_LEVEL_SUM);
		else if (strstr(seen[i].name, "_grad")) CHECK(level == SLP_LEVEL_BACKWARD);
		else if (!strcmp(seen[i].name, "linear")) CHECK(level == SLP_LEVEL_CALL);
	}
	if (bound) CHECK(levels[SLP_LEVEL_CALL] > 8);
	else
		for (int i = 0; i <= SLP_LEVEL_SUM; i++) CHECK_SAYING(levels[i] > 0, "no task of level %d", i);
	sl_trainer_free(trainer);
	sl_block_free(net);
	slp_end_well();
}

static void test_training(void)
{
	check_training(false);
	check_training(true);
}

static const struct slp_test tests[] = {
        {"critical paths", test_paths},   {"policies that do not sort", test_none},
        {"a few priorities", test_range}, {"heteroprio", test_heteroprio},
        {"training", test_training},      {NULL, NULL},
};

int main(int argc, char **argv)
{
	const struct slp_suite suites[] = {
	        {.name = "priority", .tests = tests, .after = slp_end},
	        {.name = NULL},
	};
	return slp_test_main(argc, argv, suites);
}
