/* The scheduling policy "starling-fuzz": gives ready tasks to workers, orders them and delays some at random, so that a
 * program meets schedules that no sensible policy makes.  Results must have the same bits under each (doc/design.md).
 *
 * The treatment of a task depends only on the seed and its number in the order of submission, so a seed that finds a
 * fault finds it again, as far as threads that run at the same time allow. */
#include <stdatomic.h>
#include <time.h>

#include "runtime/compat.h"
#include "runtime/task/fuzz.h"

enum { MAX_WORKERS = STARPU_NMAXWORKERS, DELAYED = 8, MOST_DELAY_NS = 100000 };

_Atomic uint64_t slp_fuzz_overtaken;

static struct {
	pthread_mutex_t lock;
	_Atomic uint64_t seed, submitted;
	struct starpu_task_list ready[MAX_WORKERS]; /* of each worker */
} fuzz = {.lock = PTHREAD_MUTEX_INITIALIZER};

void slp_fuzz_seed(uint64_t seed)
{
	atomic_store(&fuzz.seed, seed);
	atomic_store(&fuzz.submitted, 0);
}

/* SplitMix64: G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", 2014. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static void begin(unsigned context)
{
	(void)context;
	for (int i = 0; i < MAX_WORKERS; i++) starpu_task_list_init(&fuzz.ready[i]);
}

static void end(unsigned context)
{
	(void)context;
}

/* StarPU's lists of tasks that are bound to a worker go by the priority, too. */
static void submitted(struct starpu_task *task)
{
	uint64_t number = atomic_fetch_add(&fuzz.submitted, 1);
	task->priority = (int)(mix(atomic_load(&fuzz.seed) ^ mix(number)) >> 33);
}

/* A random worker that can run it. */
static unsigned worker_for(struct starpu_task *task)
{
	unsigned able[MAX_WORKERS], count = 0, workers = starpu_worker_get_count();
	for (unsigned w = 0; w < workers; w++)
		if (starpu_worker_can_execute_task_first_impl(w, task, NULL)) able[count++] = w;
	return count ? able[mix((uint64_t)task->priority) % count] : 0;
}

static int push(struct starpu_task *task)
{
	unsigned worker = worker_for(task);
	pthread_mutex_lock(&fuzz.lock);
	starpu_task_list_push_back(&fuzz.ready[worker], task);
	starpu_push_task_end(task);
	pthread_mutex_unlock(&fuzz.lock);
	starpu_wake_worker_relax_light((int)worker);
	return 0;
}

static struct starpu_task *pop(unsigned context)
{
	(void)context;
	unsigned worker = (unsigned)starpu_worker_get_id(), implementation = 0;
	struct starpu_task_list *list = &fuzz.ready[worker];
	pthread_mutex_lock(&fuzz.lock);
	struct starpu_task *first = NULL, *chosen = NULL;
	if (!starpu_task_list_empty(list)) first = chosen = starpu_task_list_begin(list);
	for (struct starpu_task *t = first; t; t = starpu_task_list_next(t))
		if (t->priority > chosen->priority) chosen = t;
	if (chosen) starpu_task_list_erase(list, chosen);
	pthread_mutex_unlock(&fuzz.lock);
	if (chosen != first) atomic_fetch_add(&slp_fuzz_overtaken, 1);
	if (chosen && starpu_worker_can_execute_task_first_impl(worker, chosen, &implementation))
		starpu_task_set_implementation(chosen, implementation);
	return chosen;
}

/* Some tasks wait before they begin: others overtake them, and more is submitted meanwhile. */
static void delay(struct starpu_task *task, unsigned context)
{
	(void)context;
	uint64_t chance = mix(~(uint64_t)task->priority);
	if (chance % DELAYED) return;
	nanosleep(&(struct timespec){0, (long)(chance / DELAYED % MOST_DELAY_NS)}, NULL);
}

struct starpu_sched_policy slp_fuzz_policy = {
        .init_sched = begin,
        .deinit_sched = end,
        .submit_hook = submitted,
        .push_task = push,
        .pop_task = pop,
        .pre_exec_hook = delay,
        .policy_name = SLP_FUZZ_POLICY,
        .policy_description = "ready tasks in an order that a seed decides, for tests",
        .worker_type = STARPU_WORKER_LIST,
};
