/* Keeps the data that sl_explain prints: the calls of a task, StarPU's prediction when it became ready, where its
 * inputs were, and the result.  Nothing is kept unless requested (SL_EXPLAIN, sl_config.explain). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/engine.h"
#include "runtime/forked.h"
#include "runtime/observe/explain.h"
#include "runtime/task/code.h"
#include "runtime/task/segment.h"
#include "runtime/task/storage.h"

static struct {
	pthread_mutex_t lock; /* of `done` in every explanation */
	pthread_cond_t ended;
} state = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER};

static void reset_in_child(void)
{
	pthread_mutex_init(&state.lock, NULL);
	pthread_cond_init(&state.ended, NULL);
}
SLP_AT_FORK(reset_in_child);

void slp_explain_start(void)
{
	if (slp_engine.config.explain) starpu_profiling_status_set(STARPU_PROFILING_ENABLE);
}

void slp_explain_release(struct slp_explanation *e)
{
	if (!e || atomic_fetch_sub(&e->refs, 1) != 1) return;
	free(e->calls);
	free(e->text);
	free(e->reads);
	free(e);
}

void slp_explain_drop(struct slp_storage *s)
{
	slp_explain_release(s->explanation);
	s->explanation = NULL;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

enum { WHAT_MAX = 256 };

/* The description of a call in words. */
struct texts {
	const char *at, *program;
	char what[WHAT_MAX]; /* where its operation's name is not all */
};

static void find_texts(const struct slp_segment *seg, const struct slp_record *r, struct texts *t)
{
	const struct sl_op *op = slp_ops[r->op];
	t->at = r->at ? r->at : "?";
	t->program = slp_code_name_of(seg, r);
	t->what[0] = '\0';
	if (op->describe) op->describe(slp_record_attrs(r), t->what, WHAT_MAX);
}

/* Copies a text that is not empty to *to and moves it on. */
static const char *copy_text(char **to, const char *text)
{
	char *start = *to;
	if (!text || !*text) return NULL;
	*to = stpcpy(start, text) + 1;
	return start;
}

/* Copies, because the compiled program's texts end with the program.  False without memory. */
static bool copy_texts(struct slp_explanation *e, const struct slp_segment *seg)
{
	struct texts t;
	size_t size = 1;
	const struct slp_record *r = slp_record_first(seg->calls);
	for (int i = 0; i < e->ncalls; i++, r = slp_record_next(r)) {
		find_texts(seg, r, &t);
		size += strlen(t.at) + strlen(t.what) + (t.program ? strlen(t.program) : 0) + 3;
	}
	char *to = e->text = slp_try_malloc(size);
	if (!to) return false;
	r = slp_record_first(seg->calls);
	for (int i = 0; i < e->ncalls; i++, r = slp_record_next(r)) {
		find_texts(seg, r, &t);
		e->calls[i] = (struct slp_explained_call){.op = r->op,
		                                          .at = copy_text(&to, t.at),
		                                          .what = copy_text(&to, t.what),
		                                          .program = copy_text(&to, t.program)};
	}
	return true;
}

static const char *first_without_cuda(const struct slp_call_list *p)
{
	const struct slp_record *r = slp_record_first(p);
	for (int i = 0; i < p->nops; i++, r = slp_record_next(r)) {
		struct slp_infer c = slp_record_call(r);
		if (!slp_has_kernel(&c, SL_DEVICE_GPU)) return c.op->name;
	}
	return NULL;
}

static bool copy_calls(struct slp_explanation *e, const struct slp_segment *seg)
{
	e->ncalls = seg->calls->nops;
	e->calls = slp_try_calloc((size_t)e->ncalls, sizeof *e->calls);
	if (!seg->calls->cuda) e->no_cuda = first_without_cuda(seg->calls);
	return e->calls && copy_texts(e, seg);
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

static bool copy_reads(struct slp_explanation *e, const struct slp_segment *seg)
{
	e->reads = slp_try_calloc((size_t)seg->nbuffers + 1, sizeof *e->reads);
	if (!e->reads) return false;
	for (int i = 0; i < seg->nslots; i++) {
		const struct slp_slot *slot = &seg->slots[i];
		if (!slot->buffer || !(slot->mode & STARPU_R)) continue;
		bool known = false;
		for (int k = 0; k < e->nreads; k++) known |= e->reads[k].handle == slot->buffer->handle;
		if (!known) e->reads[e->nreads++] = (struct slp_travel){slot->buffer->handle, slot->buffer->bytes, 0};
	}
	return true;
}

/* The last call that writes a storage explains it. */
static void explain_results(struct slp_explanation *e, struct slp_segment *seg)
{
	const struct slp_record *r = slp_record_first(seg->calls);
	for (int i = 0; i < e->ncalls; i++, r = slp_record_next(r)) {
		const struct slp_address *addresses = slp_record_addresses(r);
		for (int k = 0; k < r->nin + r->nout; k++) {
			struct slp_storage *s = seg->slots[addresses[k].slot].storage;
			if (!s || (k < r->nin && !slp_input_is_written(slp_ops[r->op], k))) continue;
			if (s->explanation != e) {
				slp_explain_release(s->explanation);
				atomic_fetch_add(&e->refs, 1);
				s->explanation = e;
			}
			s->explained_call = i;
		}
	}
}

/* Without memory nothing is kept, and sl_explain will say that nothing is known. */
void slp_explain_segment(struct slp_segment *seg)
{
	struct slp_explanation *e = slp_try_calloc(1, sizeof *e);
	if (!e) return;
	atomic_init(&e->refs, 1);
	e->device = seg->placed ? sl_auto() : seg->device;
	e->worker = -1;
	if (!copy_calls(e, seg) || !copy_reads(e, seg)) {
		slp_explain_release(e);
		return;
	}
	explain_results(e, seg);
	seg->explanation = e;
}

/* ---- when it becomes ready --------------------------------------------------------------------------------------- */

static bool is_allowed(const struct starpu_task *task, int worker, bool cuda)
{
	if (task->execute_on_a_specific_worker) return (int)task->workerid == worker;
	return task->where < 0 || task->where & (cuda ? STARPU_CUDA : SLP_CPU_WORKERS);
}

static void look_at(struct slp_explanation *e, struct starpu_task *task, int worker, bool cuda)
{
	struct slp_prospect *p = &e->prospects[e->nprospects++];
	*p = (struct slp_prospect){worker, !cuda || !e->no_cuda, false, NAN, NAN};
	if (!p->able) return;
	struct starpu_perfmodel_arch *arch = starpu_worker_get_perf_archtype(worker, task->sched_ctx);
	double us = starpu_task_expected_length(task, arch, 0);
	p->allowed = is_allowed(task, worker, cuda);
	if (us > 0) p->seconds = 1e-6 * us;
	p->transfers = 1e-6 * starpu_task_expected_data_transfer_time_for(task, (unsigned)worker);
}

/* The places of the inputs, and StarPU's expectations for each device: now, as its scheduler computes them. */
static void task_ready(void *arg)
{
	struct starpu_task *task = arg;
	struct slp_explanation *e = ((struct slp_segment *)task->callback_arg)->explanation;
	unsigned nodes = starpu_memory_nodes_get_count();
	for (int i = 0; i < e->nreads; i++)
		for (unsigned n = 0; n < nodes && n < 32; n++) {
			int allocated, valid = 0, requested;
			starpu_data_query_status(e->reads[i].handle, (int)n, &allocated, &valid, &requested);
			if (valid) e->reads[i].valid |= 1u << n;
		}
	e->nprospects = 0;
	for (int i = 0; i < slp_engine.nteams; i++) look_at(e, task, slp_engine.team_worker[i], false);
	for (int i = 0; i < slp_engine.ngpus; i++) look_at(e, task, slp_engine.gpu_worker[i], true);
}

void slp_explain_task(struct slp_segment *seg, struct starpu_task *task)
{
	if (!seg->explanation) return;
	seg->explanation->priority = task->priority;
	task->prologue_callback_func = task_ready;
	task->prologue_callback_arg = task;
	task->prologue_callback_arg_free = 0;
}

/* ---- when it has ended ------------------------------------------------------------------------------------------- */

static double between(const struct timespec *a, const struct timespec *b)
{
	double s = (double)(b->tv_sec - a->tv_sec) + 1e-9 * (double)(b->tv_nsec - a->tv_nsec);
	return s > 0 ? s : 0;
}

static void take_times(struct slp_explanation *e, const struct starpu_profiling_task_info *info)
{
	e->worker = info->workerid;
	e->blocked = between(&info->submit_time, &info->push_start_time);
	e->queued = between(&info->push_start_time, &info->acquire_data_start_time);
	e->fetched = between(&info->acquire_data_start_time, &info->acquire_data_end_time);
	e->ran = between(&info->start_time, &info->end_time);
}

void slp_explain_done(struct slp_segment *seg)
{
	struct slp_explanation *e = seg->explanation;
	if (!e) return;
	const struct starpu_task *task = starpu_task_get_current();
	if (task && task->callback_arg == seg && task->profiling_info) take_times(e, task->profiling_info);
	pthread_mutex_lock(&state.lock);
	e->done = true;
	pthread_cond_broadcast(&state.ended);
	pthread_mutex_unlock(&state.lock);
	slp_explain_release(e);
	seg->explanation = NULL;
}

/* Values are there a little before their task's callback. */
static void wait_until_done(const struct slp_explanation *e)
{
	pthread_mutex_lock(&state.lock);
	while (!e->done) pthread_cond_wait(&state.ended, &state.lock);
	pthread_mutex_unlock(&state.lock);
}

struct slp_explanation *slp_explain_get(struct slp_storage *s, int *call)
{
	slp_lock();
	slp_storage_materialize(s);
	struct slp_explanation *e = s->explanation;
	if (e) atomic_fetch_add(&e->refs, 1);
	*call = s->explained_call;
	slp_unlock();
	if (e) wait_until_done(e);
	return e;
}
