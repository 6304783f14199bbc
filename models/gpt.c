/* A GPT that learns a text byte by byte, in whole steps, and writes more of it.
 *
 * The network is that of A. Radford and others, "Language models are unsupervised multitask learners", 2019; sizes,
 * optimiser and schedule are by default those that nanoGPT (A. Karpathy, 2022) recommends for CPUs. */
#include <stdlib.h>
#include <string.h>

#include <starling/checkpoint.h>
#include <starling/io.h>

#include "common.h"
#include "gpt_params.h"

enum { BYTES = 256, EVALUATIONS = 16, KEEP = 3 };

struct options {
	struct drv_options common;
	const char *text, *prompt, *checkpoint, *save, *load, *params, *scores;
	struct net_gpt_size size;
	bool sized;      /* by the command line */
	int32_t *tokens; /* the prompt, as numbers; NULL: as text */
	int64_t ntokens;
	int64_t batch, iterations, every, generate;
	double lr, temperature;
	bool resume, no_cache;
};

/* ---- the command line -------------------------------------------------------------------------------------------- */

enum {
	KEY_TEXT = 0x500,
	KEY_LAYERS,
	KEY_HEADS,
	KEY_WIDTH,
	KEY_CONTEXT,
	KEY_WORDS,
	KEY_EVERY,
	KEY_LR,
	KEY_GENERATE,
	KEY_PROMPT,
	KEY_TOKENS,
	KEY_TEMPERATURE,
	KEY_NO_CACHE,
	KEY_CHECKPOINT,
	KEY_RESUME,
	KEY_SAVE,
	KEY_LOAD,
	KEY_PARAMS,
	KEY_SCORES,
};

#define DEFAULT_TEXT "/usr/share/common-licenses/GPL-3"

static const struct argp_option argp_options[] = {
        {"text", KEY_TEXT, "FILE", 0, "The text to learn; its last tenth is held out (default: " DEFAULT_TEXT ")", 1},
        {"iterations", 'n', "N", 0, "Number of training steps; 0: none (default: 2000)", 1},
        {"batch-size", 'b', "N", 0, "Number of pieces of text in a step (default: 12)", 1},
        {"lr", KEY_LR, "X", 0, "Learning rate, after 100 steps, before it falls to a tenth (default: 0.001)", 1},
        {"every", KEY_EVERY, "N", 0, "Print losses and write checkpoints every N steps (default: 250)", 1},
        {"layers", KEY_LAYERS, "N", 0, "Number of layers (default: 4)", 2},
        {"heads", KEY_HEADS, "N", 0, "Number of attention heads in each layer (default: 4)", 2},
        {"width", KEY_WIDTH, "N", 0, "Numbers for each byte, a multiple of the heads (default: 128)", 2},
        {"context", KEY_CONTEXT, "N", 0, "Number of bytes that a prediction sees (default: 64)", 2},
        {"words", KEY_WORDS, "N", 0,
         "Size of the vocabulary; with another one than 256, what is written are numbers (default: 256, bytes)", 2},
        {"generate", KEY_GENERATE, "N", 0, "At the end, write N bytes of text, or N words as numbers (default: 0)", 3},
        {"prompt", KEY_PROMPT, "TEXT", 0, "The text that the written bytes continue (default: a new line)", 3},
        {"prompt-tokens", KEY_TOKENS, "LIST", 0,
         "The prompt as numbers below the vocabulary's size, separated by commas; what is written are numbers, too", 3},
        {"temperature", KEY_TEMPERATURE, "X", 0,
         "Temperature of the written text: 1 as learnt, lower is less surprising (default: 0.8)", 3},
        {"no-cache", KEY_NO_CACHE, NULL, 0,
         "For each word, compute the whole context again instead of the last word alone: slower, and the same to "
         "rounding",
         3},
        {"checkpoint", KEY_CHECKPOINT, "DIR", 0, "Write checkpoints to this folder, and keep the newest 3", 4},
        {"resume", KEY_RESUME, NULL, 0, "Continue from the newest checkpoint in DIR, or start anew if there is none",
         4},
        {"save", KEY_SAVE, "FILE", 0, "Write the parameters to this file, as safetensors, at the end", 4},
        {"load", KEY_LOAD, "FILE", 0, "Start with the parameters in this file", 4},
        {"params", KEY_PARAMS, "FILE", 0,
         "Start with a GPT-2 in this safetensors file, with the names of Hugging Face's transformers or of nanoGPT; "
         "its "
         "shapes say how large it is, and heads are 64 wide without --heads",
         4},
        {"scores", KEY_SCORES, "FILE", 0, "Write the scores of what may follow the prompt to this .npy file", 4},
        {0},
};

/* "15496,11,995" */
static void parse_tokens(struct argp_state *state, const char *text, struct options *o)
{
	o->tokens = calloc(strlen(text) / 2 + 1, sizeof *o->tokens);
	if (!o->tokens) argp_failure(state, DRV_ERROR, 0, "no memory for the prompt");
	o->ntokens = 0;
	for (const char *p = text; o->tokens; p++) {
		char *end;
		long n = strtol(p, &end, 10);
		if (end == p || (*end && *end != ',') || n < 0 || n > INT32_MAX)
			argp_error(state, "--prompt-tokens: '%s' is no list of numbers separated by commas", text);
		o->tokens[o->ntokens++] = (int32_t)n;
		if (!*(p = end)) break;
	}
}

static void complete(struct argp_state *state, struct options *o)
{
	if (o->params && o->sized) argp_error(state, "--params: the file says how large the network is");
	if (o->params && o->load) argp_error(state, "--load and --params: give one");
	if (!o->params && !o->size.heads) o->size.heads = 4;
	if (!o->params && o->size.width % o->size.heads) argp_error(state, "--width must be a multiple of --heads");
	if (o->resume && !o->checkpoint) argp_error(state, "--resume: needs --checkpoint DIR");
	if (o->common.ndevices > 1) argp_error(state, "--device: name one device only");
}

static error_t parse_text(int key, char *arg, struct options *o)
{
	switch (key) {
	case KEY_TEXT: o->text = arg; return 0;
	case KEY_PROMPT: o->prompt = arg; return 0;
	case KEY_CHECKPOINT: o->checkpoint = arg; return 0;
	case KEY_RESUME: o->resume = true; return 0;
	case KEY_SAVE: o->save = arg; return 0;
	case KEY_PARAMS: o->params = arg; return 0;
	case KEY_SCORES: o->scores = arg; return 0;
	case KEY_LOAD: o->load = arg; return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_size(int key, char *arg, struct argp_state *state, struct options *o)
{
	o->sized |= key == KEY_LAYERS || key == KEY_WIDTH || key == KEY_CONTEXT || key == KEY_WORDS;
	switch (key) {
	case KEY_LAYERS: o->size.layers = (int)drv_int(state, "--layers", arg, 1, 64); return 0;
	case KEY_HEADS: o->size.heads = (int)drv_int(state, "--heads", arg, 1, 1024); return 0;
	case KEY_WIDTH: o->size.width = drv_int(state, "--width", arg, 1, 1 << 16); return 0;
	case KEY_CONTEXT: o->size.steps = drv_int(state, "--context", arg, 1, 1 << 16); return 0;
	case KEY_WORDS: o->size.words = drv_int(state, "--words", arg, 1, 1 << 24); return 0;
	default: return parse_text(key, arg, o);
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = &o->common; return 0;
	case 'n': o->iterations = drv_int(state, "--iterations", arg, 0, INT32_MAX); return 0;
	case 'b': o->batch = drv_int(state, "--batch-size", arg, 1, 1 << 20); return 0;
	case KEY_LR: o->lr = drv_real(state, "--lr", arg, 0, 1e3); return 0;
	case KEY_EVERY: o->every = drv_int(state, "--every", arg, 1, INT32_MAX); return 0;
	case KEY_GENERATE: o->generate = drv_int(state, "--generate", arg, 0, INT32_MAX); return 0;
	case KEY_TEMPERATURE: o->temperature = drv_real(state, "--temperature", arg, 1e-3, 1e3); return 0;
	case KEY_TOKENS: parse_tokens(state, arg, o); return 0;
	case KEY_NO_CACHE: o->no_cache = true; return 0;
	case ARGP_KEY_END: complete(state, o); return 0;
	default: return parse_size(key, arg, state, o);
	}
}

/* ---- the text ---------------------------------------------------------------------------------------------------- */

/* Windows of the text begin an eighth of their length apart. */
enum { WINDOWS = 8 };

static int64_t stride_of(const struct options *o)
{
	return o->size.steps < WINDOWS ? 1 : o->size.steps / WINDOWS;
}

/* The parts to learn and to hold out, which share no byte. */
static bool open_text(const struct options *o, sl_dataset *part[2])
{
	sl_dataset *all = sl_dataset_tokens(o->text, .length = o->size.steps, .stride = stride_of(o), .bytes = 1);
	if (!all) return false;
	int64_t windows = sl_dataset_size(all), train = windows - windows / 10;
	int64_t gap = o->size.steps / stride_of(o) + 1;
	if (windows - train <= gap)
		drv_error("%s: is too short for a context of %lld bytes: a tenth of it is held out", o->text,
		          (long long)o->size.steps);
	else {
		part[0] = sl_dataset_range(all, 0, train);
		part[1] = sl_dataset_range(all, train + gap, windows - train - gap);
	}
	sl_dataset_free(all);
	return part[0] && part[1];
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

struct run {
	const struct options *o;
	sl_dataset *part[2]; /* of the text: to learn, held out */
	sl_loader *loader;
	sl_block *net;
	sl_trainer *trainer;
	sl_step *step;
	sl_tensor *loss; /* the last step's, a number a byte */
	int64_t done;    /* steps */
	sl_cache *cache;
	int64_t written; /* words */
	double took[2];  /* seconds: the first word, for which programs are made, and all others */
	json_t *losses;
};

/* A loss a byte */
static sl_tensor *byte_loss(const char *at, sl_tensor *y, sl_tensor *next)
{
	sl_shape s = sl_tensor_shape(y);
	int64_t all = s.dim[0] * s.dim[1];
	return sl_softmax_cross_entropy_at(at, sl_reshape_at(at, y, SL_SHAPE(all, s.dim[2])),
	                                   sl_reshape_at(at, next, SL_SHAPE(all)));
}

static struct sl_optimizer optimizer_of(const struct options *o)
{
	struct sl_schedule schedule = {
	        .kind = SL_COSINE, .warmup = 100, .total = o->iterations, .final_lr = o->lr / 10};
	if (schedule.warmup >= o->iterations) schedule = (struct sl_schedule){.kind = SL_CONSTANT};
	return sl_adamw(.lr = o->lr, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1,
	                .schedule = schedule);
}

static bool make(struct run *r)
{
	const struct options *o = r->o;
	r->net = net_gpt(o->size);
	if (!r->net) return false;
	if (o->params && !gpt_params_load(r->net, o->params, &o->size)) return false;
	if (!o->params && sl_initialize(r->net, .init = sl_normal_init(0.02)) != SL_OK) return false;
	if (o->load && sl_load_params(r->net, o->load) != SL_OK) return false;
	r->trainer = sl_trainer_new(r->net, optimizer_of(o));
	r->step = r->trainer ? sl_step_compile(r->net, byte_loss, r->trainer) : NULL;
	if (!r->step || sl_hybridize(r->net) != SL_OK) return false;
	if (!o->iterations) return true;
	if (o->size.words < BYTES)
		drv_error("a vocabulary of %lld is too small for a text of bytes", (long long)o->size.words);
	if (o->size.words < BYTES || !open_text(o, r->part)) return false;
	r->loader = sl_loader_new(r->part[0], .batch_size = o->batch, .shuffle = true, .seed = o->common.seed,
	                          .last = SL_LAST_DISCARD);
	return r->loader != NULL;
}

static bool resume(struct run *r)
{
	if (!r->o->resume || sl_checkpoint_count(r->o->checkpoint) < 1) return true;
	if (sl_checkpoint_load(r->o->checkpoint, .trainer = r->trainer, .loader = r->loader, .step = &r->done) != SL_OK)
		return false;
	drv_print(&r->o->common, "going on after step %lld\n", (long long)r->done);
	return true;
}

static bool keep(struct run *r)
{
	return !r->o->checkpoint || sl_checkpoint_save(r->o->checkpoint, .trainer = r->trainer, .loader = r->loader,
	                                               .step = &r->done, .keep = KEEP) == SL_OK;
}

/* Over the same windows each time. */
static double held_out_loss(struct run *r)
{
	sl_metric *mean = sl_mean_new();
	sl_loader *l = sl_loader_new(r->part[1], .batch_size = r->o->batch, .shuffle = true, .seed = r->o->common.seed,
	                             .limit = EVALUATIONS * r->o->batch);
	for (bool more = mean && l; more;)
		SL_SCOPE {
			struct sl_batch b;
			more = sl_loader_next(l, &b);
			if (more)
				more = sl_metric_add(mean, byte_loss(SL_HERE, sl_forward(r->net, b.x), b.y), NULL) ==
				       SL_OK;
		}
	double loss = sl_metric_get(mean);
	sl_loader_free(l);
	sl_metric_free(mean);
	return loss;
}

static void report(struct run *r, double seconds, int64_t steps)
{
	double train = sl_item(sl_mean(r->loss)), held_out = held_out_loss(r);
	double rate = (double)(steps * r->o->batch * r->o->size.steps) / seconds;
	drv_print(&r->o->common, "step %lld: loss %.4f, held out %.4f, %.0f bytes/sec\n", (long long)r->done, train,
	          held_out, rate);
	json_t *one = json_object();
	json_object_set_new(one, "step", json_integer(r->done));
	json_object_set_new(one, "train_loss", drv_json_real(train));
	json_object_set_new(one, "held_out_loss", drv_json_real(held_out));
	json_object_set_new(one, "bytes_per_second", drv_json_real(rate));
	json_array_append_new(r->losses, one);
}

/* The end of an epoch is the beginning of the next one. */
static bool next_batch(sl_loader *l, struct sl_batch *b)
{
	return sl_loader_next(l, b) || (!drv_failed() && sl_loader_next(l, b));
}

static bool one_step(struct run *r)
{
	bool ok;
	SL_SCOPE {
		struct sl_batch b;
		sl_tensor *loss = NULL;
		ok = next_batch(r->loader, &b) && (loss = sl_step_run(r->step, b.x, b.y, NULL));
		sl_release(r->loss);
		r->loss = sl_retain(loss);
	}
	r->done += ok;
	return ok;
}

static bool train(struct run *r)
{
	double start = drv_now();
	int64_t from = r->done, end = r->o->iterations;
	while (r->done < end && !drv_interrupted()) {
		if (!one_step(r)) return false;
		if (r->done % r->o->every && r->done < end) continue;
		if (sl_wait_all() != SL_OK) return false;
		report(r, drv_now() - start, r->done - from);
		if (drv_failed() || !keep(r)) return false;
		start = drv_now();
		from = r->done;
	}
	return r->done == from || keep(r);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* A prompt is filled up to a power of two, so that prompts of all lengths need few programs. */
static int64_t filled_up(int64_t count, int64_t steps)
{
	int64_t n = 16;
	while (n < count) n *= 2;
	return n < steps ? n : steps;
}

/* The scores of what may follow `count` words.  The cache knows all of them but the last, or nothing that is of use: then the
 * whole window is computed, and what stands behind them is not seen. */
static sl_tensor *scores(struct run *r, const int32_t *window, int64_t count)
{
	int64_t first = 0, steps = r->o->size.steps;
	sl_tensor *y;
	if (!r->cache) {
		y = sl_forward(r->net, sl_from(window, SL_SHAPE(1, steps), .dtype = SL_INT32));
	} else if (count > 1 && sl_cache_length(r->cache) == count - 1) {
		first = count - 1;
		y = sl_cache_forward(r->cache, sl_from(window + first, SL_SHAPE(1, 1), .dtype = SL_INT32));
	} else {
		sl_cache_cut(r->cache, 0);
		sl_shape shape = SL_SHAPE(1, filled_up(count, steps));
		y = sl_cache_forward(r->cache, sl_from(window, shape, .dtype = SL_INT32));
		if (y) sl_cache_cut(r->cache, count);
	}
	return sl_reshape(sl_slice(y, 1, count - 1 - first, count - first, 1), SL_SHAPE(r->o->size.words));
}

/* The word after the last one, drawn by its probability; -1 after an error. */
static int next_token(struct run *r, const int32_t *window, int64_t count)
{
	double token = -1;
	SL_SCOPE {
		sl_tensor *y = scores(r, window, count);
		sl_tensor *drawn = sl_multinomial(sl_softmax(sl_div_scalar(y, r->o->temperature), -1), 1);
		if (drawn) token = sl_item(drawn);
	}
	return drv_failed() ? -1 : (int)token;
}

static void show(const struct options *o, int token)
{
	if (o->common.quiet) return;
	if (o->tokens || o->size.words != BYTES) fprintf(drv_out(&o->common), "%d ", token);
	else fputc(token, drv_out(&o->common));
	fflush(drv_out(&o->common));
}

static bool write_tokens(struct run *r, int32_t *window, int64_t count)
{
	const struct options *o = r->o;
	double start = drv_now();
	for (int64_t i = 0; i < o->generate && !drv_interrupted(); i++) {
		int token = next_token(r, window, count);
		if (token < 0) return false;
		if (count == o->size.steps) memmove(window, window + 1, (size_t)(--count) * sizeof *window);
		window[count++] = token;
		r->written = i + 1;
		r->took[i > 0] = drv_now() - start;
		if (i == 0) start = drv_now();
		show(o, token);
	}
	return true;
}

/* The end of the prompt, as much of it as the network sees; the length, or -1 if it is not made of the network's words. */
static int64_t take_prompt(const struct options *o, int32_t *window)
{
	int64_t length = o->tokens ? o->ntokens : (int64_t)strlen(o->prompt), steps = o->size.steps;
	int64_t count = length < steps ? length : steps;
	for (int64_t i = 0; i < length; i++) {
		int token = o->tokens ? o->tokens[i] : (unsigned char)o->prompt[i];
		if (token >= o->size.words) {
			drv_error("the prompt has the word %d, and the vocabulary %lld words", token,
			          (long long)o->size.words);
			return -1;
		}
		if (i >= length - count) window[i - (length - count)] = token;
		show(o, token);
	}
	return count;
}

static bool write_text(struct run *r)
{
	const struct options *o = r->o;
	int32_t *window = calloc((size_t)o->size.steps, sizeof *window);
	if (!o->no_cache) r->cache = sl_cache_new(r->net, o->size.steps);
	int64_t count = window && (o->no_cache || r->cache) ? take_prompt(o, window) : -1;
	SL_SCOPE
		if (count > 0 && o->scores) sl_save_npy(scores(r, window, count), o->scores);
	bool ok = count > 0 && !drv_failed() && write_tokens(r, window, count);
	if (count == 0) drv_error("the prompt is empty");
	if (ok) drv_print(&o->common, "\n");
	sl_cache_free(r->cache);
	free(window);
	return ok;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static bool work(struct run *r)
{
	const struct options *o = r->o;
	if (!make(r) || !resume(r) || !train(r)) return false;
	if ((o->generate || o->scores) && !write_text(r)) return false;
	return !o->save || sl_save_params(r->net, o->save) == SL_OK;
}

static int run(const struct options *o)
{
	json_t *results = drv_json_new("gpt", &o->common);
	struct run r = {.o = o, .losses = json_array()};
	bool ok;
	SL_SCOPE {
		ok = drv_settle(work(&r));
		sl_release(r.loss);
		sl_step_free(r.step);
		sl_trainer_free(r.trainer);
		sl_block_free(r.net);
		sl_loader_free(r.loader);
		for (int i = 0; i < 2; i++) sl_dataset_free(r.part[i]);
	}
	json_object_set_new(results, "batch_size", json_integer(o->batch));
	json_object_set_new(results, "lr", drv_json_real(o->lr));
	if (r.written > 1) {
		json_object_set_new(results, "first_seconds", drv_json_real(r.took[0]));
		json_object_set_new(results, "written_per_second", drv_json_real((double)(r.written - 1) / r.took[1]));
	}
	json_object_set_new(results, "interrupted", json_boolean(drv_interrupted()));
	json_object_set_new(results, "losses", r.losses);
	return drv_finish(&o->common, results, ok);
}

static const struct argp_child children[] = {{&drv_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
        .options = argp_options,
        .parser = parse,
        .children = children,
        .doc = "Trains a GPT on a text, byte by byte, and writes more of it.\v"
               "  gpt --iterations 500 --generate 300\n"
               "  gpt --text book.txt --save book.safetensors\n"
               "  gpt --load book.safetensors --iterations 0 --generate 1000\n"
               "  gpt --params gpt2.safetensors --iterations 0 --generate 20 --prompt-tokens 464,3290\n\n"
               "Exit status: 0 if all went well, 1 after an error, 2 if the command line is "
               "wrong, " DRV_INTERRUPTED_STATUS ".",
};

int main(int argc, char **argv)
{
	struct options o = {.text = DEFAULT_TEXT,
	                    .prompt = "\n",
	                    .size = {.words = BYTES, .steps = 64, .width = 128, .layers = 4},
	                    .batch = 12,
	                    .iterations = 2000,
	                    .every = 250,
	                    .lr = 1e-3,
	                    .temperature = 0.8};
	drv_parse(&argp, argc, argv, &o);
	bool ok = drv_start(&o.common) && (!o.params || gpt_params_size(o.params, &o.size));
	int status = drv_stop(&o.common, ok ? run(&o) : DRV_ERROR);
	free(o.tokens);
	return status;
}
