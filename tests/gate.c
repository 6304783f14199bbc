/* Gates: StarPU tasks that wait until they are let through. */
#include "gate.h"
#include "runtime/compat.h"
#include "runtime/engine.h"

#include <pthread.h>
#include <stdbool.h>

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool closed;
	int waiting;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void change_waiting(int by)
{
	gate.waiting += by;
	pthread_cond_broadcast(&gate.changed);
}

static void stand(void *buffers[], void *arg)
{
	(void)buffers;
	(void)arg;
	pthread_mutex_lock(&gate.lock);
	change_waiting(1);
	while (gate.closed) pthread_cond_wait(&gate.changed, &gate.lock);
	change_waiting(-1);
	pthread_mutex_unlock(&gate.lock);
}

static struct starpu_codelet codelet = {.where = STARPU_CPU, .cpu_funcs = {stand}, .name = "gate"};

void slp_gate_close(int team)
{
	struct starpu_task *task = starpu_task_create();
	task->cl = &codelet;
	task->execute_on_a_specific_worker = 1;
	task->workerid = (unsigned)slp_engine.team_worker[team];
	pthread_mutex_lock(&gate.lock);
	gate.closed = true;
	int wanted = gate.waiting + 1;
	pthread_mutex_unlock(&gate.lock);
	if (starpu_task_submit(task)) return;
	pthread_mutex_lock(&gate.lock);
	while (gate.waiting < wanted) pthread_cond_wait(&gate.changed, &gate.lock);
	pthread_mutex_unlock(&gate.lock);
}

void slp_gate_open(void)
{
	pthread_mutex_lock(&gate.lock);
	gate.closed = false;
	pthread_cond_broadcast(&gate.changed);
	while (gate.waiting) pthread_cond_wait(&gate.changed, &gate.lock);
	pthread_mutex_unlock(&gate.lock);
}
