/* The common part of language models' drivers: options, training, checkpoints, generating text. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <starling/dist.h>
#include <starling/io.h>

#include "health.h"
#include "language.h"

/* ---- the command line -------------------------------------------------------------------------------------------- */

enum {
	KEY_TEXT = 0x600,
	KEY_EVERY,
	KEY_LR,
	KEY_GENERATE,
	KEY_PROMPT,
	KEY_TEMPERATURE,
	KEY_SAVE,
	KEY_LOAD,
	KEY_DTYPE,
	KEY_STATE_ON,
	KEY_DISTRIBUTED,
	KEY_MEMORY,
};

static const struct argp_option options[] = {
        {"text", KEY_TEXT, "FILE", 0, "The text to learn; its last tenth is held out (default: " DRV_DEFAULT_TEXT ")",
         1},
        {"iterations", 'n', "N", 0, "Number of training steps; 0: none (default: 2000)", 1},
        {"batch-size", 'b', "N", 0, NULL, 1},
        {"lr", KEY_LR, "X", 0, NULL, 1},
        {"dtype", KEY_DTYPE, "TYPE", 0, DRV_DTYPE_HELP "); text is written in float32", 1},
        {"memory", KEY_MEMORY, "SIZE", 0, DRV_MEMORY_HELP, 1},
        {"every", KEY_EVERY, "N", 0, "Print losses and write checkpoints every N steps (default: 250)", 1},
        {"distributed", KEY_DISTRIBUTED, NULL, 0, DRV_DISTRIBUTED_HELP, 1},
        {"state-on", KEY_STATE_ON, "DEVICE", 0, DRV_STATE_ON_HELP, 1},
        {"generate", KEY_GENERATE, "N", 0, "At the end, generate N bytes or words of text (default: 0)", 3},
        {"prompt", KEY_PROMPT, "TEXT", 0, "The text that is continued (default: a new line)", 3},
        {"temperature", KEY_TEMPERATURE, "X", 0,
         "Temperature of the generated text: 1 as learnt, lower is less surprising (default: 0.8)", 3},
        {"save", KEY_SAVE, "FILE", 0, "Write the parameters to this file, as safetensors, at the end", 4},
        {"load", KEY_LOAD, "FILE", 0, "Start with the parameters in this file", 4},
        {0},
};

static error_t parse_text(int key, char *arg, struct drv_language_options *o)
{
	switch (key) {
	case KEY_TEXT: o->text = arg; return 0;
	case KEY_PROMPT: o->prompt = arg; return 0;
	case KEY_SAVE: o->save = arg; return 0;
	case KEY_LOAD: o->load = arg; return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct drv_language_options *o = state->input;
	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = &o->checkpoint; return 0;
	case 'n': o->iterations = drv_int(state, "--iterations", arg, 0, INT32_MAX); return 0;
	case 'b': o->batch = drv_int(state, "--batch-size", arg, 1, 1 << 20); return 0;
	case KEY_LR:
		o->lr = drv_real(state, "--lr", arg, 0, 1e3);
		o->lr_given = true;
		return 0;
	case KEY_DTYPE: drv_precision_parse(state, arg, &o->precision); return 0;
	case KEY_DISTRIBUTED: o->distributed = true; return 0;
	case KEY_MEMORY: o->memory = drv_limit(state, arg); return 0;
	case KEY_STATE_ON: o->state_on = drv_device(state, "--state-on", arg); return 0;
	case KEY_EVERY: o->every = drv_int(state, "--every", arg, 1, INT32_MAX); return 0;
	case KEY_GENERATE: o->generate = drv_int(state, "--generate", arg, 0, INT32_MAX); return 0;
	case KEY_TEMPERATURE: o->temperature = drv_real(state, "--temperature", arg, 1e-3, 1e3); return 0;
	default: return parse_text(key, arg, o);
	}
}

static const struct argp_child folder_children[] = {{&drv_checkpoint_folder_argp, 0, NULL, 4}, {0}};
/* Drivers have separate defaults. */
static char *help(int key, const char *text, void *input)
{
	const struct drv_language_options *o = input;
	char *own = NULL;
	int length = -1;
	if (o && key == 'b')
		length = asprintf(&own, "Number of pieces of text in a step, over all processes (default: %d)",
		                  (int)o->batch);
	else if (o && key == KEY_LR)
		length = asprintf(&own,
		                  "Learning rate after 100 steps of warm-up; then it falls to a tenth (default: %g)",
		                  o->lr);
	return length >= 0 ? own : (char *)text;
}

static const struct argp language_argp = {
        .options = options, .parser = parse, .children = folder_children, .help_filter = help};
const struct argp_child drv_language_children[] = {{&drv_argp, 0, NULL, 0}, {&language_argp, 0, NULL, 0}, {0}};

/* ---- one of several processes ------------------------------------------------------------------------------------ */

bool drv_language_start(struct drv_options *common, struct drv_language_options *o)
{
	return drv_distributed_ask(o->distributed) && drv_start(common) && drv_distributed_split(common, &o->batch);
}

sl_loader *drv_language_share(sl_loader *loader)
{
	if (!loader || sl_dist_share(loader) == SL_OK) return loader;
	sl_loader_free(loader);
	return NULL;
}

/* What a checkpoint keeps: the rows of all ranks, one after the other; zeros in the place of the others' with `own`,
 * which are to be summed.  NULL after an error. */
static sl_tensor *of_all_ranks(sl_tensor *t, bool own)
{
	enum { MOST = 64 };
	sl_tensor *list[MOST], *zeros = sl_zeros(sl_tensor_shape(t), .dtype = sl_tensor_dtype(t));
	int ranks = sl_dist_size();
	if (ranks > MOST) return drv_error("a checkpoint keeps the state of %d ranks at most", MOST), NULL;
	for (int i = 0; i < ranks; i++) list[i] = own && i == sl_dist_rank() ? t : zeros;
	return sl_concat(list, ranks, 1);
}

/* The tensors of a checkpoint: those of the model, or of all ranks. */
static bool list_tensors(const struct drv_language *l, bool own, sl_tensor *all[DRV_LANGUAGE_TENSORS])
{
	bool ok = true;
	for (int i = 0; ok && i < l->ntensors; i++) {
		if (sl_dist_size() == 1) all[i] = l->tensors[i];
		else ok = (all[i] = of_all_ranks(l->tensors[i], own)) && (!own || sl_dist_sum(all[i]) == SL_OK);
	}
	return ok;
}

/* This rank's rows of the restored ones. */
static bool take_rows(struct drv_language *l, sl_tensor *const *all)
{
	bool ok = true;
	for (int i = 0; ok && i < l->ntensors && sl_dist_size() > 1; i++) {
		int64_t rows = sl_tensor_shape(l->tensors[i]).dim[1], first = rows * sl_dist_rank();
		ok = sl_copy_(l->tensors[i], sl_slice(all[i], 1, first, first + rows, 1)) != NULL;
	}
	return ok;
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

sl_tensor *drv_language_loss(const char *at, sl_tensor *y, sl_tensor *next)
{
	sl_shape s = sl_tensor_shape(y);
	int64_t all = s.dim[0] * s.dim[1];
	return sl_softmax_cross_entropy_at(at, sl_reshape_at(at, y, SL_SHAPE(all, s.dim[2])),
	                                   sl_reshape_at(at, next, SL_SHAPE(all)));
}

sl_tensor *drv_language_aside(const struct drv_language *l, sl_tensor *t)
{
	return t && l->o->memory ? sl_place(t, sl_cpu(-1)) : t;
}

bool drv_language_batch(struct drv_language *l, struct sl_batch *b)
{
	return sl_loader_next(l->loader, b) || (!drv_failed() && sl_loader_next(l->loader, b));
}

enum { WARMUP = 100 };

struct sl_schedule drv_language_schedule(const struct drv_language_options *o)
{
	if (WARMUP >= o->iterations) return (struct sl_schedule){.kind = SL_CONSTANT};
	return (struct sl_schedule){
	        .kind = SL_COSINE, .warmup = WARMUP, .total = o->iterations, .final_lr = o->lr / 10};
}

static struct sl_checkpoint_opts run_of(struct drv_language *l, sl_tensor *const *tensors)
{
	return (struct sl_checkpoint_opts){.trainer = l->trainer,
	                                   .loader = l->loader,
	                                   .names = l->names,
	                                   .tensors = tensors,
	                                   .ntensors = l->ntensors,
	                                   .step = &l->done};
}

/* The schedule continues as saved; --lr changes its height, --iterations the end of the run. */
static void resume_schedule(struct drv_language *l, const json_t *note)
{
	double saved = json_number_value(json_object_get(note, "lr"));
	l->planned = json_integer_value(json_object_get(note, "planned"));
	if (!l->o->lr_given) l->lr = saved;
	else if (saved != l->lr) drv_print(l->common, "learning rate %g from now on, it was %g\n", l->lr, saved);
	sl_trainer_set_lr(l->trainer, l->lr);
	if (l->planned != l->o->iterations && l->planned > WARMUP)
		drv_print(l->common, "the learning rate still falls until step %lld\n", (long long)l->planned);
}

static bool restore(struct drv_language *l, sl_checkpoint *from, const json_t *note)
{
	const char *path = sl_checkpoint_path(from);
	if (note && !drv_checkpoint_is_of(path, note, l->program, &l->o->precision)) return false;
	bool ok = false;
	SL_SCOPE {
		sl_tensor *all[DRV_LANGUAGE_TENSORS];
		ok = list_tensors(l, false, all) && sl_checkpoint_restore_at(SL_HERE, from, run_of(l, all)) == SL_OK &&
		     take_rows(l, all);
	}
	if (!ok) return false;
	drv_print(l->common, "continuing after step %lld\n", (long long)l->done);
	if (note) resume_schedule(l, note); /* an earlier version wrote none */
	return true;
}

static bool resume(struct drv_language *l)
{
	const struct drv_checkpoint_options *o = &l->o->checkpoint;
	/* Rank 0 reads for all, perhaps from a folder that the others do not see. */
	if (!o->resume || drv_sum_over_ranks(sl_dist_rank() ? 0 : sl_checkpoint_count(o->folder)) <= 0) return true;
	sl_checkpoint *from = sl_checkpoint_open(o->folder);
	if (!from) return false;
	json_t *note = json_loads(sl_checkpoint_note(from), 0, NULL);
	bool ok = restore(l, from, note);
	json_decref(note);
	sl_checkpoint_close(from);
	return ok;
}

static enum sl_status save(struct drv_language *l)
{
	enum sl_status s = SL_OK;
	json_t *note = json_pack("{s:s, s:s, s:f, s:I}", "program", l->program, "dtype",
	                         drv_precision_name(&l->o->precision), "lr", l->lr, "planned", (json_int_t)l->planned);
	char *text = note ? json_dumps(note, JSON_COMPACT) : NULL;
	SL_SCOPE {
		sl_tensor *all[DRV_LANGUAGE_TENSORS];
		bool ok = list_tensors(l, true, all);
		struct sl_checkpoint_opts run = run_of(l, all);
		run.keep = l->o->checkpoint.keep;
		run.note = text;
		s = ok ? sl_checkpoint_save_at(SL_HERE, l->o->checkpoint.folder, run) : sl_error();
	}
	free(text);
	json_decref(note);
	return s;
}

static void keep(struct drv_language *l)
{
	if (l->o->checkpoint.folder) l->unsaved = !drv_checkpoint_written(save(l));
}

static void report(struct drv_language *l, double seconds, int64_t steps)
{
	double train = drv_sum_over_ranks(sl_item(sl_mean(l->loss))) / sl_dist_size(), held_out;
	SL_AUTOCAST(l->o->precision.dtype) held_out = l->held_out(l);
	double rate = (double)(steps * l->per_step * sl_dist_size()) / seconds;
	char perplexity[64] = "", key[32];
	if (l->perplexity) snprintf(perplexity, sizeof perplexity, " (perplexity %.2f)", exp(held_out));
	drv_print(l->common, "step %lld: loss %.4f, held out %.4f%s, %.0f %s/sec\n", (long long)l->done, train,
	          held_out, perplexity, rate, l->unit);
	drv_health_loss(train);
	json_t *one = json_object();
	json_object_set_new(one, "step", json_integer(l->done));
	json_object_set_new(one, "train_loss", drv_json_real(train));
	json_object_set_new(one, "held_out_loss", drv_json_real(held_out));
	if (l->perplexity) json_object_set_new(one, "perplexity", drv_json_real(exp(held_out)));
	snprintf(key, sizeof key, "%s_per_second", l->unit);
	json_object_set_new(one, key, drv_json_real(rate));
	json_array_append_new(l->losses, one);
}

static bool one_step(struct drv_language *l)
{
	bool ok;
	SL_SCOPE {
		sl_tensor *loss;
		SL_AUTOCAST(l->o->precision.dtype) loss = l->step(l);
		ok = loss != NULL;
		sl_release(l->loss);
		l->loss = sl_retain(loss);
		if (ok) drv_pace(&l->pace, loss);
	}
	l->done += ok;
	if (ok) drv_health_step(l->done, l->per_step * sl_dist_size());
	return ok;
}

static bool train(struct drv_language *l)
{
	double start = drv_now();
	int64_t from = l->done, end = l->o->iterations;
	while (l->done < end && !drv_stops(&l->stops)) {
		if (!one_step(l)) return false;
		if (l->done % l->o->every && l->done < end) continue;
		if (!drv_sync()) return false;
		report(l, drv_now() - start, l->done - from);
		if (drv_failed()) return false;
		keep(l);
		start = drv_now();
		from = l->done;
	}
	if (l->done > from && !drv_sync()) return false;
	if (l->done > from) keep(l);
	return true;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

int32_t *drv_language_bytes(struct drv_language *l, const char *prompt, int64_t *count)
{
	(void)l;
	*count = (int64_t)strlen(prompt);
	int32_t *words = malloc((size_t)(*count + 1) * sizeof *words);
	for (int64_t i = 0; words && i < *count; i++) words[i] = (unsigned char)prompt[i];
	return words;
}

void drv_language_print_byte(struct drv_language *l, int32_t word)
{
	fputc(word, drv_out(l->common));
}

/* The word after these, drawn by its probability; -1 after an error. */
static int32_t draw(struct drv_language *l, const int32_t *words, int64_t count)
{
	double word = -1;
	SL_SCOPE {
		sl_tensor *scores = l->scores(l, words, count);
		sl_tensor *drawn =
		        scores ? sl_multinomial(sl_softmax(sl_div_scalar(scores, l->o->temperature), -1), 1) : NULL;
		if (drawn) word = sl_item(drawn);
	}
	return drv_failed() ? -1 : (int32_t)word;
}

static void show(struct drv_language *l, int32_t word)
{
	if (l->common->quiet) return;
	l->print(l, word);
	fflush(drv_out(l->common));
}

static bool write_words(struct drv_language *l, int32_t *words, int64_t count)
{
	double start = drv_now();
	for (int64_t i = 0; i < l->o->generate && !drv_interrupted(); i++) {
		int32_t word = draw(l, words, count);
		if (word < 0) return false;
		words[count++] = word;
		l->written = i + 1;
		l->took[i > 0] = drv_now() - start;
		if (i == 0) start = drv_now();
		show(l, word);
	}
	drv_print(l->common, "\n");
	return true;
}

static bool write_text(struct drv_language *l)
{
	int64_t count;
	int32_t *prompt = l->read(l, l->o->prompt, &count);
	if (!prompt) return false;
	int32_t *words = realloc(prompt, (size_t)(count + l->o->generate + 1) * sizeof *words);
	if (!words) {
		drv_error("no memory for %lld words", (long long)l->o->generate);
		free(prompt);
		return false;
	}
	if (!l->by_words) drv_print(l->common, "%s", l->o->prompt);
	for (int64_t i = 0; l->by_words && i < count; i++) show(l, words[i]);
	bool ok = write_words(l, words, count);
	free(words);
	return ok;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static bool work(struct drv_language *l)
{
	bool first = sl_dist_rank() == 0;
	if ((first && !drv_checkpoint_ready(&l->o->checkpoint)) || !l->make(l)) return false;
	if (l->o->load && sl_load_params(l->net, l->o->load) != SL_OK) return false;
	if (!resume(l) || !train(l)) return false;
	if (!first) return true;
	if (l->learnt && !l->learnt(l)) return false;
	if (l->o->generate && !write_text(l)) return false;
	return !l->o->save || sl_save_params(l->net, l->o->save) == SL_OK;
}

static void report_interruption(const struct drv_language *l)
{
	const char *folder = l->unsaved ? NULL : l->o->checkpoint.folder;
	drv_error("interrupted after step %lld%s%s", (long long)l->done, folder ? "; --resume continues from " : "",
	          folder ? folder : "");
}

/* Learns and writes, as the options say; returns the exit status. */
int drv_language_run(struct drv_language *l)
{
	json_t *results = drv_json_new(l->program, l->common);
	bool ok;
	l->losses = json_array();
	l->lr = l->o->lr;
	l->planned = l->o->iterations;
	drv_precision_print(l->common, &l->o->precision);
	if (sl_dist_size() > 1) drv_print(l->common, "rank 0 of %d processes\n", sl_dist_size());
	SL_SCOPE {
		ok = drv_settle(work(l));
		if (ok && (drv_interrupted() || l->stops.stopped)) report_interruption(l);
		sl_release(l->loss);
		drv_stops_end(&l->stops);
		drv_pace_end(&l->pace);
		l->stop(l);
		sl_trainer_free(l->trainer);
		sl_block_free(l->net);
		sl_loader_free(l->loader);
	}
	json_object_set_new(results, "batch_size", json_integer(l->o->batch * sl_dist_size()));
	json_object_set_new(results, "dtype", json_string(drv_precision_name(&l->o->precision)));
	json_object_set_new(results, "lr", drv_json_real(l->lr));
	if (l->written > 1) {
		json_object_set_new(results, "first_seconds", drv_json_real(l->took[0]));
		json_object_set_new(results, "written_per_second",
		                    drv_json_real((double)(l->written - 1) / l->took[1]));
	}
	json_object_set_new(results, "interrupted", json_boolean(drv_interrupted()));
	json_object_set_new(results, "losses", l->losses);
	int status = drv_finish(l->common, results, ok && !l->unsaved);
	return status == DRV_OK && l->stops.stopped ? DRV_STOPPED : status;
}
