/* Checkpoints of the training drivers: when they are written, and how a run resumes from one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <starling/dist.h>

#include "training.h"

/* ---- the contents of a checkpoint -------------------------------------------------------------------------------- */

/* X(field, JSON's type) for the figures of an epoch. */
#define EPOCH(X)                                                                                                       \
	X(images, integer)                                                                                             \
	X(batches, integer)                                                                                            \
	X(seconds, real)                                                                                               \
	X(loss, real)                                                                                                  \
	X(train_accuracy, real)                                                                                        \
	X(test_accuracy, real)                                                                                         \
	X(tasks, real)

static json_t *epoch_json(const struct drv_epoch *e)
{
	json_t *json = json_object();
#define X(field, type) json_object_set_new(json, #field, json_##type(e->field)); /* omits NaN and infinities */
	EPOCH(X)
#undef X
	return json;
}

static const double missing_real = NAN;
enum { missing_integer = 0 };

static struct drv_epoch epoch_from(const json_t *json)
{
	struct drv_epoch e = {0};
	const json_t *value;
#define X(field, type)                                                                                                 \
	value = json_object_get(json, #field);                                                                         \
	e.field = value ? json_##type##_value(value) : missing_##type;
	EPOCH(X)
#undef X
	return e;
}

/* The epochs so far, the last one begun at best, and how batches are cut. */
static char *note_of(const struct drv_training *t)
{
	json_t *epochs = json_array();
	for (int64_t i = 0; i <= t->done; i++) json_array_append_new(epochs, epoch_json(&t->epochs[i]));
	json_t *note = json_pack("{s:s, s:s, s:i, s:i, s:f, s:o}", "program", t->program, "dtype",
	                         drv_precision_name(&t->options->precision), "shards", t->shards, "devices",
	                         t->common->ndevices, "lr", t->lr, "epochs", epochs);
	char *text = note ? json_dumps(note, JSON_COMPACT) : NULL;
	json_decref(note);
	return text;
}

enum { NAME_MAX_LENGTH = 32 };

/* The model's state, and the sums of this number of devices. */
static void state_of(struct drv_training *t, struct drv_state *state, const struct drv_sums *sums, int count,
                     char names[][NAME_MAX_LENGTH])
{
	t->state(t, state);
	for (int i = 0; i < count; i++) {
		snprintf(names[2 * i], NAME_MAX_LENGTH, "loss/%d", i);
		snprintf(names[2 * i + 1], NAME_MAX_LENGTH, "correct/%d", i);
		drv_state_add(state, names[2 * i], sums[i].loss);
		drv_state_add(state, names[2 * i + 1], sums[i].correct);
	}
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void tell(struct drv_checkpointing *c, enum sl_status s)
{
	c->failed = !drv_checkpoint_written(s);
}

static void end_job(struct drv_checkpointing *c)
{
	if (c->job) tell(c, sl_checkpoint_end(c->job));
	c->job = NULL;
}

static void begin_job(struct drv_training *t)
{
	struct drv_checkpointing *c = &t->checkpointing;
	const struct drv_checkpoint_options *o = &t->options->checkpoint;
	char names[2 * DRV_MAX_DEVICES][NAME_MAX_LENGTH], *note = note_of(t);
	struct drv_state s = {0};
	end_job(c);
	if (drv_failed()) return free(note); /* an error of the training: there is nothing to continue */
	SL_SCOPE {
		struct drv_sums sums[DRV_MAX_DEVICES];
		drv_sums_of_ranks(t, sums);
		state_of(t, &s, sums, t->common->ndevices, names);
		c->job = sl_checkpoint_begin(o->folder, .keep = o->keep, .trainer = s.trainer, .loader = t->train_set,
		                             .names = s.names, .tensors = s.tensors, .ntensors = s.count,
		                             .epoch = &t->done, .step = &t->steps, .note = note);
	}
	if (!c->job) tell(c, sl_error());
	c->saved_at = drv_now();
	c->saved_steps = t->steps;
	c->saved_epochs = t->done;
	free(note);
}

/* In the middle of an epoch: the figures so far. */
static void save_within(struct drv_training *t)
{
	struct drv_epoch *e = &t->epochs[t->done];
	e->seconds = drv_now() - t->began;
	e->tasks = (double)(drv_tasks() - t->tasks_before);
	begin_job(t);
}

void drv_checkpoint_step(struct drv_training *t)
{
	const struct drv_checkpoint_options *o = &t->options->checkpoint;
	if (!o->folder) return;
	struct drv_checkpointing *c = &t->checkpointing;
	/* A disk that takes longer than that does not hold up the training. */
	bool is_time = drv_now() - c->saved_at >= o->every && (!c->job || sl_checkpoint_written(c->job));
	bool due = o->unit == DRV_EVERY_STEPS     ? t->steps % (int64_t)o->every == 0
	           : o->unit == DRV_EVERY_SECONDS ? is_time
	                                          : false;
	if (due) save_within(t);
}

void drv_checkpoint_epoch(struct drv_training *t)
{
	const struct drv_checkpoint_options *o = &t->options->checkpoint;
	if (o->folder && o->unit == DRV_EVERY_EPOCHS && t->done % (int64_t)o->every == 0) begin_job(t);
}

bool drv_checkpoint_end(struct drv_training *t, bool sound)
{
	struct drv_checkpointing *c = &t->checkpointing;
	if (!t->options->checkpoint.folder) return true;
	bool is_saved = !sound || !t->steps || (c->saved_steps == t->steps && c->saved_epochs == t->done);
	if (!is_saved && t->done < t->options->epochs && t->epochs[t->done].batches) save_within(t);
	else if (!is_saved) begin_job(t);
	end_job(c);
	return !c->failed;
}

/* ---- going on ---------------------------------------------------------------------------------------------------- */

static bool refuse(const char *why)
{
	drv_error("--resume: %s", why);
	sl_error_clear();
	return false;
}

bool drv_checkpoint_open(struct drv_training *t)
{
	const struct drv_checkpoint_options *o = &t->options->checkpoint;
	struct drv_checkpointing *c = &t->checkpointing;
	*c = (struct drv_checkpointing){.saved_at = drv_now(), .saved_steps = -1};
	/* Rank 0 reads for all, perhaps from a folder that the others do not see. */
	if (!o->resume || drv_sum_over_ranks(sl_dist_rank() ? 0 : sl_checkpoint_count(o->folder)) <= 0) return true;
	c->from = sl_checkpoint_open(o->folder);
	if (!c->from) return refuse(sl_error_message());
	c->note = json_loads(sl_checkpoint_note(c->from), 0, NULL);
	t->shards = (int)json_integer_value(json_object_get(c->note, "shards"));
	return drv_checkpoint_is_of(sl_checkpoint_path(c->from), c->note, t->program, &t->options->precision);
}

static bool take_epochs(struct drv_training *t, const json_t *epochs)
{
	int64_t saved = (int64_t)json_array_size(epochs), most = t->options->epochs + 1;
	if (saved < 1 || saved - 1 != t->done) return refuse("its note about epochs is missing");
	struct drv_epoch *list = realloc(t->epochs, (size_t)(saved > most ? saved : most) * sizeof *list);
	if (!list) return refuse("no memory for its epochs");
	t->epochs = list;
	for (int64_t i = 0; i < saved; i++) list[i] = epoch_from(json_array_get(epochs, (size_t)i));
	return true;
}

/* The sums of more devices than there are now are added to the first one's. */
static void add_sums(struct drv_training *t, struct drv_sums *sums, int count)
{
	for (int i = t->common->ndevices; i < count; i++) {
		sl_add_(t->sums[0].loss, sl_place(sums[i].loss, t->common->devices[0]));
		sl_add_(t->sums[0].correct, sl_place(sums[i].correct, t->common->devices[0]));
	}
}

static bool restore(struct drv_training *t, sl_checkpoint *from, int devices)
{
	char names[2 * DRV_MAX_DEVICES][NAME_MAX_LENGTH];
	struct drv_sums sums[DRV_MAX_DEVICES];
	struct drv_state s = {0};
	for (int i = 0; i < devices; i++)
		if (i < t->common->ndevices) sums[i] = t->sums[i];
		else sums[i] = (struct drv_sums){sl_zeros(SL_SCALAR), sl_zeros(SL_SCALAR)};
	state_of(t, &s, sums, devices, names);
	if (sl_checkpoint_restore(from, .trainer = s.trainer, .loader = t->train_set, .names = s.names,
	                          .tensors = s.tensors, .ntensors = s.count, .epoch = &t->done,
	                          .step = &t->steps) != SL_OK)
		return refuse(sl_error_message());
	add_sums(t, sums, devices);
	drv_share_sums(t);
	if (t->restored) t->restored(t);
	return true;
}

/* The saved rate continues, unless --lr sets another one. */
static void resume_lr(struct drv_training *t)
{
	struct drv_state s = {0};
	const json_t *saved = json_object_get(t->checkpointing.note, "lr"); /* an earlier version saved none */
	t->state(t, &s);
	if (!t->options->lr_given) {
		if (saved) t->lr = json_number_value(saved);
		return;
	}
	if (s.trainer) sl_trainer_set_lr(s.trainer, t->lr);
	if (saved && json_number_value(saved) != t->lr)
		drv_print(t->common, "learning rate %g from now on, it was %g\n", t->lr, json_number_value(saved));
}

static void print_resumed(const struct drv_training *t, int shards)
{
	drv_print(t->common, "continuing from %s: epoch %lld, step %lld\n", sl_checkpoint_path(t->checkpointing.from),
	          (long long)t->done + 1, (long long)t->steps);
	if (shards != t->shards)
		drv_print(t->common, "batches are split into %d parts, before into %d: the last bits may differ\n",
		          t->shards, shards);
}

/* The figures of the run are restored: as if it had never stopped. */
static bool go_on(struct drv_training *t)
{
	struct drv_checkpointing *c = &t->checkpointing;
	int shards = (int)json_integer_value(json_object_get(c->note, "shards"));
	json_int_t devices = json_integer_value(json_object_get(c->note, "devices"));
	if (devices < 1 || devices > DRV_MAX_DEVICES) return refuse("the note about its devices is missing");
	if (!restore(t, c->from, (int)devices) || !take_epochs(t, json_object_get(c->note, "epochs"))) return false;
	c->saved_steps = t->steps;
	c->saved_epochs = t->done;
	print_resumed(t, shards);
	resume_lr(t);
	return drv_sync();
}

bool drv_checkpoint_resume(struct drv_training *t)
{
	struct drv_checkpointing *c = &t->checkpointing;
	bool ok = !c->from || go_on(t);
	sl_checkpoint_close(c->from);
	json_decref(c->note);
	c->from = NULL;
	c->note = NULL;
	return ok;
}
