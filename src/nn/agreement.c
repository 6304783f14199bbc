/* What processes that train together must have alike: each describes it line by line, and the first line that differs from
 * rank 0's is an error on all. */
#include <stdlib.h>
#include <string.h>

#include "nn/ranks.h"
#include "nn/trainer.h"
#include "number.h"

/* Lines that begin so are not what the program asked for, but values. */
#define VALUES "values of "

/* ---- describing ---------------------------------------------------------------------------------------------------- */

/* "what: value" a line, so that the first line that differs says it. */
static void describe_optimizer(FILE *f, const struct sl_optimizer *o)
{
	const struct {
		const char *name;
		double value;
	} numbers[] = {{"optimiser", o->kind},
	               {"learning rate", o->lr},
	               {"momentum", o->momentum},
	               {"nesterov", o->nesterov},
	               {"beta1", o->beta1},
	               {"beta2", o->beta2},
	               {"alpha", o->alpha},
	               {"eps", o->eps},
	               {"weight decay", o->weight_decay},
	               {"clip_norm", o->clip_norm},
	               {"clip_value", o->clip_value},
	               {"average", o->average},
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

static uint64_t hash_of(const unsigned char *data, size_t bytes)
{
	uint64_t h = bytes;
	for (size_t i = 0; i < bytes; i += sizeof h) {
		uint64_t word = 0;
		memcpy(&word, data + i, bytes - i < sizeof word ? bytes - i : sizeof word);
		h = (h ^ word) * 0x9e3779b97f4a7c15u;
		h ^= h >> 32;
	}
	return h;
}

/* Waits for the values; false without memory. */
static bool describe_values(const char *at, FILE *f, const sl_param *p, const char *path)
{
	size_t bytes = sl_tensor_bytes(p->data);
	unsigned char *values = slp_malloc(bytes + 1);
	if (!values) return false;
	if (sl_read_at(at, p->data, values, bytes) == SL_OK)
		fprintf(f, VALUES "%s: %016llx\n", path, (unsigned long long)hash_of(values, bytes));
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
	if (!slp_trainer_shares(t)) fprintf(f, "masters: %d\n", masters);
	return ok;
}

static char *describe(const char *at, sl_trainer *t, const struct slp_ranks_step *step)
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

/* ---- comparing ----------------------------------------------------------------------------------------------------- */

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

bool slp_ranks_agree(const char *at, sl_trainer *trainer, const char *function, const struct slp_ranks_step *step)
{
	char *own = NULL;
	SL_PAUSE
		own = describe(at, trainer, step);
	bool ok = own && agree(at, function, own) == SL_OK;
	free(own);
	return ok;
}
