/* Threads that add and check gradients with the communicating thread.  A process whose devices are GPUs has spare
 * cores; on others the teams compute on all cores meanwhile, and one thread adds alone.  Each thread that is ready
 * takes the next part, so a thread that gets no core delays nobody. */
#include "dist/adders.h"
#include "runtime/compat.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <time.h>

#include "runtime/thread.h"

struct pass {
	void (*work)(const void *job, size_t first, size_t count);
	const void *job;
	size_t count, grain;
	atomic_size_t next;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t begun, over;
	pthread_t threads[SLP_ADDERS_MOST];
	int wanted, cores; /* 0: the best number */
	int count;         /* of threads; -1: not started yet */
	struct pass *pass; /* NULL: there is none to take part in */
	uint64_t number;   /* of the pass */
	int busy;
	bool ending;
	double seconds;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER,
         .begun = PTHREAD_COND_INITIALIZER,
         .over = PTHREAD_COND_INITIALIZER,
         .count = -1};

void slp_adders_start(int wanted)
{
	cpu_set_t set;
	all.wanted = wanted;
	all.cores = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
	all.count = -1;
	all.seconds = 0;
}

/* A quarter of the cores that GPUs leave: some prepare batches.  Eight cores' bandwidth is more than a network's. */
int slp_adders(int cores, int gpus)
{
	enum { MOST = 8 };
	int spare = gpus > 0 ? (cores - gpus) / 4 : 1;
	if (all.wanted) return all.wanted;
	return spare < 1 ? 1 : spare < MOST ? spare : MOST;
}

static double processor_time(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void take_part(struct pass *p)
{
	for (size_t first; (first = atomic_fetch_add(&p->next, p->grain)) < p->count;)
		p->work(p->job, first, p->count - first < p->grain ? p->count - first : p->grain);
}

static void *help(void *unused)
{
	uint64_t seen = 0;
	double before = 0;
	(void)unused;
	pthread_mutex_lock(&all.lock);
	for (;;) {
		while (!all.ending && (!all.pass || all.number == seen)) pthread_cond_wait(&all.begun, &all.lock);
		if (all.ending) break;
		struct pass *p = all.pass;
		seen = all.number;
		all.busy++;
		pthread_mutex_unlock(&all.lock);
		take_part(p);
		double now = processor_time();
		pthread_mutex_lock(&all.lock);
		all.seconds += now - before;
		before = now;
		if (--all.busy == 0) pthread_cond_signal(&all.over);
	}
	pthread_mutex_unlock(&all.lock);
	return NULL;
}

/* The number of adding threads; they start on first use, once the devices are known. */
static int helpers(void)
{
	if (all.count >= 0) return all.count;
	if (!all.cores) return 0;
	int n = slp_adders(all.cores, (int)starpu_cuda_worker_get_count()) - 1;
	all.ending = false;
	for (all.count = 0; all.count < n && all.count < SLP_ADDERS_MOST; all.count++)
		if (slp_thread_create(&all.threads[all.count], help, NULL)) break;
	return all.count;
}

int slp_adders_here(void)
{
	return helpers() + 1;
}

void slp_adders_run(void (*work)(const void *job, size_t first, size_t count), const void *job, size_t count,
                    size_t grain)
{
	struct pass p = {.work = work, .job = job, .count = count, .grain = grain};
	if (count <= grain || !helpers()) {
		work(job, 0, count);
		return;
	}
	pthread_mutex_lock(&all.lock);
	all.pass = &p;
	all.number++;
	for (size_t i = 0; i < (count - 1) / grain && i < (size_t)all.count; i++) pthread_cond_signal(&all.begun);
	pthread_mutex_unlock(&all.lock);
	take_part(&p);
	pthread_mutex_lock(&all.lock);
	all.pass = NULL;
	while (all.busy) pthread_cond_wait(&all.over, &all.lock);
	pthread_mutex_unlock(&all.lock);
}

double slp_adders_seconds(void)
{
	pthread_mutex_lock(&all.lock);
	double seconds = all.seconds;
	pthread_mutex_unlock(&all.lock);
	return seconds;
}

void slp_adders_end(void)
{
	pthread_mutex_lock(&all.lock);
	all.ending = true;
	pthread_cond_broadcast(&all.begun);
	pthread_mutex_unlock(&all.lock);
	for (int i = 0; i < all.count; i++) pthread_join(all.threads[i], NULL);
	all.count = -1;
}
