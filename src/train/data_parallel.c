/* A trainer in one of several processes: checks that all ranks agree with rank 0, and reports the first difference;
 * sends rank 0's first values before the first gradient; sums gradients.  Whole steps do this themselves
 * (step_shards.c); otherwise the first recorded forward pass does, since gradients depend on the values that it reads.
 * */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "io/crc32c.h"
#include "number.h"
#include "optimizer.h"
#include "runtime/engine.h"
#include "runtime/forked.h"
#include "train/data_parallel.h"
#include "train/train.h"
#include "train/trainer.h"

struct slp_data_parallel {
	int count;
	char *paths[]; /* of the trained parameters */
};

void slp_data_parallel_free(struct slp_data_parallel *ranks)
{
	for (int i = 0; ranks && i < ranks->count; i++) free(ranks->paths[i]);
	free(ranks);
}

static struct slp_data_parallel *ranks_new(const char *at, sl_trainer *trainer)
{
	int count;
	sl_param *const *params = slp_trainer_params(at, trainer, &count);
	struct slp_data_parallel *r = slp_calloc(1, sizeof *r + (size_t)count * sizeof *r->paths);
	if (!r) return NULL;
	r->count = count;
	for (int i = 0; i < count; i++) {
		if ((r->paths[i] = slp_param_path(slp_trainer_block(trainer), params[i]))) continue;
		slp_data_parallel_free(r);
		return NULL;
	}
	return r;
}

/* Lines with this prefix are values, not requests of the program. */
#define VALUES "values of "

/* ---- describing -------------------------------------------------------------------------------------------------- */

/* One "name: value" per line, so that the first different line names the difference. */
static void describe_optimizer(FILE *f, const struct sl_optimizer *o)
{
	const struct {
		const char *name;
		double value;
	} numbers[] = {{"optimiser", o->kind},
	               {"learning rate", o->lr},
	               {"shard_state", o->shard_state},
	               {"schedule", o->schedule.kind},
	               {"warm-up", (double)o->schedule.warmup},
	               {"steps of the schedule", (double)(o->schedule.total + o->schedule.every)},
	               {"factor", o->schedule.factor},
	               {"final learning rate", o->schedule.final_lr},
	               {"power of the schedule", o->schedule.power},
	               {"first loss scale", o->loss_scaling.start},
	               {"growth of the loss scale", o->loss_scaling.growth},
	               {"backoff of the loss scale", o->loss_scaling.backoff},
	               {"steps until it grows", (double)o->loss_scaling.every}};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		slp_fprintf(f, "%s: %.17g\n", numbers[i].name, numbers[i].value);
	for (enum slp_hyperparameter i = 0; i < SLP_HYPERPARAMETERS; i++)
		slp_fprintf(f, "%s: %.17g\n", slp_hyperparameters[i].name, slp_hyperparameter(o, i));
}

static void describe_param(FILE *f, const sl_trainer *t, int i, const char *path)
{
	const sl_param *p = t->params[i];
	char shape[128];
	slp_fprintf(f, "parameter %s: %s %s, %s, bucket %d, learning rate times %.17g, weight decay %.17g\n", path,
	            p->data ? sl_dtype_name(p->data->type.dtype) : "no values",
	            sl_shape_string(p->data ? p->data->type.shape : p->shape, shape),
	            slp_param_is_frozen(p) ? "frozen" : "trained", t->buckets[i], t->groups[i].lr_scale,
	            t->groups[i].weight_decay);
}

/* Waits for the values; false without memory. */
static bool describe_values(const char *at, FILE *f, const sl_param *p, const char *path)
{
	size_t bytes = sl_tensor_bytes(p->data);
	unsigned char *values = slp_malloc(bytes + 1);
	if (!values) return false;
	if (sl_read_at(at, p->data, values, bytes) == SL_OK)
		fprintf(f, VALUES "%s: %08lx\n", path, (unsigned long)slp_crc32c(0, values, bytes));
	else fprintf(f, VALUES "%s: %s\n", path, sl_error_message());
	free(values);
	return true;
}

/* Parameters with their values, too, if gradients have been computed by them. */
static bool describe_params(const char *at, FILE *f, sl_trainer *t, bool values)
{
	bool ok = true;
	int masters = 0;
	for (int i = 0; ok && i < t->count; i++) {
		char *path = slp_param_path(t->block, t->params[i]);
		if ((ok = path)) describe_param(f, t, i, path);
		if (ok && values && t->params[i]->data) ok = describe_values(at, f, t->params[i], path);
		masters += t->states[SLP_TRAINER_MASTER][i] != NULL;
		free(path);
	}
	if (!slp_trainer_shards_state(t)) fprintf(f, "masters: %d\n", masters);
	return ok;
}

static char *describe(const char *at, sl_trainer *t, const struct slp_data_parallel_step *step)
{
	char *text = NULL;
	size_t size;
	FILE *f = slp_memory_file(&text, &size);
	if (!f) return NULL;
	fprintf(f, "version: %s\n", sl_version());
	if (step) fprintf(f, "steps: %s\nrows of a batch: %lld\n", step->way, (long long)step->rows);
	fprintf(f, "steps before: %lld\nparameters: %d\n", (long long)t->steps, t->count);
	bool ok = describe_params(at, f, t, step && step->computed && !sl_is_simulated());
	describe_optimizer(f, &t->optimizer);
	slp_fprintf(f, "loss scale: %.17g\n", sl_trainer_loss_scale(t));
	if (!fclose(f) && ok) return text;
	free(text);
	return NULL;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static size_t line_length(const char *text)
{
	return strcspn(text, "\n");
}

/* The first line that is not the same; "" if all are. */
static void compare(const char *own, const char *first, char wrong[256])
{
	*wrong = '\0';
	if (!strcmp(own, first)) return;
	while (*own && *first && line_length(own) == line_length(first) && !strncmp(own, first, line_length(own))) {
		own += line_length(own) + 1;
		first += line_length(first) + 1;
	}
	if (!strncmp(own, VALUES, strlen(VALUES)))
		snprintf(wrong, 256,
		         "%.*s are not rank 0's, and gradients were computed by them: make the trainer before the "
		         "first recorded forward pass, or call sl_dist_broadcast before it",
		         (int)strcspn(own, ":\n"), own);
	else
		snprintf(wrong, 256, "%.*s, where rank 0 has %.*s", (int)line_length(own), own, (int)line_length(first),
		         first);
}

static enum sl_status agree(const char *at, const char *function, const char *own)
{
	uint64_t size = strlen(own) + 1;
	char wrong[256];
	enum sl_status s = slp_dist_broadcast_now(at, function, &size, sizeof size);
	char *first = s == SL_OK ? slp_malloc(size) : NULL;
	if (!first) return sl_error() != SL_OK ? sl_error() : s;
	if (slp_dist.rank == 0) memcpy(first, own, size);
	s = slp_dist_broadcast_now(at, function, first, size);
	if (s == SL_OK) {
		compare(own, first, wrong);
		s = slp_dist_agree(at, function, wrong);
	}
	free(first);
	return s;
}

static bool all_agree(const char *at, sl_trainer *trainer, const char *function,
                      const struct slp_data_parallel_step *step)
{
	char *own = NULL;
	SL_PAUSE
		own = describe(at, trainer, step);
	bool ok = own && agree(at, function, own) == SL_OK;
	free(own);
	return ok;
}

/* ---- beginning --------------------------------------------------------------------------------------------------- */

static bool is_of_gpus(const sl_param *p)
{
	bool gpus = p->ndevices > 0;
	for (int i = 0; i < p->ndevices; i++) gpus &= p->devices[i].kind == SL_DEVICE_GPU;
	return gpus;
}

static bool broadcast_all(const char *at, sl_block *block)
{
	int count = 0;
	sl_param **all = slp_block_all_params(at, block, &count);
	bool ok = all != NULL;
	for (int i = 0; ok && i < count; i++) {
		if (!all[i]->data) continue;
		char *path = slp_param_path(block, all[i]);
		struct slp_dist_what what = {.name = path, .gpu = is_of_gpus(all[i])};
		ok = path && slp_dist_broadcast(at, all[i]->data, what);
		free(path);
	}
	free(all);
	return ok;
}

/* An exchange after the last one: so who only sends hears, too, that another one could not take it. */
static bool confirm(const char *at)
{
	bool ok = false;
	SL_PAUSE
		SL_SCOPE {
			sl_tensor *t = sl_zeros_at(at, SL_SHAPE(1), SL_MAKE_(.dtype = SL_UINT8));
			ok = t && slp_dist_sum(at, t, (struct slp_dist_what){.name = "the end of sl_dist_broadcast"});
		}
	return ok;
}

/* Sends the parameters and running statistics of rank 0 to all processes, and returns at once.  A trainer's first step
 * does this itself; before a test, call it to equalise the running statistics, which each process computes from its own
 * batches. */
enum sl_status sl_dist_broadcast_at(const char *at, sl_block *block)
{
	SLP_CALL("sl_dist_broadcast", at);
	if (!slp_given(at, "sl_dist_broadcast", "block", block)) return sl_error();
	enum sl_status s = slp_engine_need(at);
	if (s != SL_OK || slp_dist.size == 1) return s;
	return broadcast_all(at, block) && confirm(at) ? SL_OK : sl_error();
}

/* Masters are more exact than the parameters that they were rounded to, and stay so.  Where processes share them, each
 * is in one place alone. */
static bool broadcast_masters(const char *at, sl_trainer *t)
{
	bool ok = true;
	for (int i = 0; ok && !slp_trainer_shards_state(t) && i < t->count; i++) {
		sl_tensor *master = t->states[SLP_TRAINER_MASTER][i];
		if (!master) continue;
		char *name = slp_param_path(t->block, t->params[i]);
		ok = name && slp_dist_broadcast(at, master, (struct slp_dist_what){.name = name});
		free(name);
	}
	slp_trainer_master_weights_hold(t);
	return ok;
}

static bool give_values(const char *at, sl_trainer *trainer)
{
	bool ok = false;
	SL_PAUSE
		ok = slp_trainer_master_weights_follow(at, trainer) && broadcast_all(at, trainer->block) &&
		     broadcast_masters(at, trainer);
	return ok;
}

/* ---- before the first gradient ----------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
SLP_FORK_MUTEX(lock);
static sl_trainer *expecting; /* in the order in which they were made, which is the same in all processes */
static _Atomic int nexpecting;

void slp_data_parallel_expect(sl_trainer *trainer)
{
	pthread_mutex_lock(&lock);
	sl_trainer **last = &expecting;
	while (*last) last = &(*last)->expecting;
	*last = trainer;
	nexpecting++;
	pthread_mutex_unlock(&lock);
}

void slp_data_parallel_known(sl_trainer *trainer)
{
	pthread_mutex_lock(&lock);
	sl_trainer **t = &expecting;
	while (*t && *t != trainer) t = &(*t)->expecting;
	if (*t) {
		*t = trainer->expecting;
		nexpecting--;
	}
	trainer->expecting = NULL;
	pthread_mutex_unlock(&lock);
}

static bool trains(const sl_trainer *t, sl_param *const *params, int n)
{
	for (int i = 0; i < n; i++)
		for (int k = 0; k < t->count; k++)
			if (params[i] == t->params[k]) return true;
	return false;
}

/* The first that trains one of these parameters, which leaves the list; NULL: none does. */
static sl_trainer *take(sl_param *const *params, int n)
{
	pthread_mutex_lock(&lock);
	sl_trainer *t = expecting;
	while (t && !(slp_trainer_size(t) > 1 && trains(t, params, n))) t = t->expecting;
	pthread_mutex_unlock(&lock);
	if (t) slp_data_parallel_known(t);
	return t;
}

/* Parameters without values get theirs later: they are all that the network has, running statistics among them. */
static bool share_later(const char *at, sl_block *block)
{
	int n = 0;
	sl_param **all = slp_block_all_params(at, block, &n);
	bool ok = all != NULL;
	for (int i = 0; ok && i < n; i++)
		if (!all[i]->data && !all[i]->shared) ok = (all[i]->shared = slp_param_path(block, all[i])) != NULL;
	free(all);
	return ok;
}

static bool begin(const char *at, sl_trainer *t)
{
	return all_agree(at, t, "sl_forward", NULL) && give_values(at, t) && share_later(at, t->block);
}

/* Whether a pass of a block may be the first that is recorded. */
static bool may_begin(void)
{
	return slp_dist.size > 1 && !slp_dist.apart && sl_is_recording() && !slp_trace_current() && nexpecting > 0;
}

static bool first_values(const char *at, sl_block *block)
{
	int n = 0;
	if (!may_begin()) return true;
	sl_param **params = slp_block_all_params(at, block, &n);
	bool ok = params != NULL;
	for (sl_trainer *t; ok && (t = take(params, n));) ok = begin(at, t);
	free(params);
	return ok;
}

static bool first_values_of(const char *at, sl_param *param)
{
	if (!param->shared) return true;
	bool ok = slp_dist_broadcast(at, param->data, (struct slp_dist_what){.name = param->shared});
	free(param->shared);
	param->shared = NULL;
	return ok;
}

__attribute__((constructor)) static void ranks_init(void)
{
	slp_before_recording = first_values;
	slp_param_filled = first_values_of;
}

bool slp_data_parallel_begin(const char *at, sl_trainer *trainer, const char *function,
                             const struct slp_data_parallel_step *step)
{
	struct slp_data_parallel **ranks = slp_trainer_ranks(trainer);
	if (slp_trainer_size(trainer) == 1 || *ranks) return true;
	slp_data_parallel_known(trainer);
	if (!(*ranks = ranks_new(at, trainer))) return false;
	bool ok = all_agree(at, trainer, function, step) && (step->computed || give_values(at, trainer));
	if (ok) return true;
	slp_data_parallel_free(*ranks);
	*ranks = NULL;
	return false;
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* The common parameters of all sums of a step; param: the (first) parameter. */
static struct slp_dist_what describe_sum(sl_trainer *trainer, int param, struct slp_dist_what what)
{
	const int *shard_rank = slp_trainer_shard_ranks(trainer);
	what.name = (*slp_trainer_ranks(trainer))->paths[param];
	what.one = shard_rank && slp_trainer_optimizer(trainer)->clip_norm == 0; /* the norm is over all ranks */
	if (what.one) what.rank = shard_rank[param];
	what.any = slp_trainer_scales(trainer);
	what.lr = slp_trainer_optimizer(trainer)->lr; /* without the schedule, which is the same for all */
	return what;
}

bool slp_data_parallel_sum(const char *at, sl_trainer *trainer, int param, sl_tensor *gradient,
                           struct slp_dist_what what)
{
	return slp_dist_sum(at, gradient, describe_sum(trainer, param, what));
}

/* Gradients that are summed together. */
struct group {
	sl_tensor **list;
	const char **names;
	int n, first; /* parameter */
	double bytes;
};

/* Whether parameter i's gradient may join those of the group; gradients in no bucket are grouped by bytes. */
static bool joins(sl_trainer *t, const struct group *g, const sl_tensor *gradient, int i, double enough)
{
	const int *buckets = slp_trainer_grad_buckets(t), *shard_rank = slp_trainer_shard_ranks(t);
	if (!g->n) return true;
	return buckets[i] == buckets[g->first] && (buckets[i] >= 0 || g->bytes < enough) &&
	       gradient->type.dtype == g->list[0]->type.dtype && (!shard_rank || shard_rank[i] == shard_rank[g->first]);
}

static bool send_group(const char *at, sl_trainer *t, struct group *g, int64_t rows)
{
	struct slp_dist_what what = {.rows = rows, .names = g->names};
	bool ok = g->n == 0 || slp_dist_sum_together(at, g->list, g->n, describe_sum(t, g->first, what));
	g->n = 0;
	g->bytes = 0;
	return ok;
}

bool slp_data_parallel_sum_groups(const char *at, sl_trainer *t, sl_tensor *const *gradients, int64_t rows)
{
	int count;
	sl_param *const *params = slp_trainer_params(at, t, &count);
	double enough = slp_grad_bucket_bytes(params, count, false);
	struct group g = {.list = slp_malloc((size_t)(count + 1) * (sizeof *g.list + sizeof *g.names))};
	if (!g.list) return false;
	g.names = (const char **)(g.list + count);
	bool ok = true;
	for (int i = count; ok && i-- > 0;) {
		if (!gradients[i]) continue;
		if (!joins(t, &g, gradients[i], i, enough)) ok = send_group(at, t, &g, rows);
		if (!g.n) g.first = i;
		g.list[g.n] = gradients[i];
		g.names[g.n++] = (*slp_trainer_ranks(t))->paths[i];
		g.bytes += (double)sl_tensor_bytes(gradients[i]);
	}
	ok = ok && send_group(at, t, &g, rows);
	free(g.list);
	return ok;
}

bool slp_data_parallel_give(const char *at, sl_trainer *trainer, int param, sl_tensor *values, int rank)
{
	const struct slp_data_parallel *r = *slp_trainer_ranks(trainer);
	struct slp_dist_what what = {.name = r ? r->paths[param] : "values", .rank = rank};
	int count;
	what.gpu = is_of_gpus(slp_trainer_params(at, trainer, &count)[param]);
	return slp_dist_broadcast(at, values, what);
}
