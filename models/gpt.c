/* A GPT that learns a text byte by byte, in whole steps, and writes more of it.
 *
 * The network is that of A. Radford and others, "Language models are unsupervised multitask learners", 2019; sizes,
 * optimiser and schedule are by default those that nanoGPT (A. Karpathy, 2022) recommends for CPUs. */
#include <stdlib.h>
#include <string.h>

#include <starling/dist.h>
#include <starling/io.h>

#include "gpt_params.h"
#include "driver/language.h"

enum { BYTES = 256, EVALUATIONS = 16 };

struct options {
	struct drv_options common;
	struct drv_language_options language;
	struct net_gpt_size size;
	bool sized;      /* by the command line */
	int32_t *tokens; /* the prompt, as numbers; NULL: as text */
	int64_t ntokens;
	const char *params, *scores;
	bool no_cache;
};

/* ---- the command line -------------------------------------------------------------------------------------------- */

enum {
	KEY_LAYERS = 0x500,
	KEY_HEADS,
	KEY_WIDTH,
	KEY_CONTEXT,
	KEY_WORDS,
	KEY_TOKENS,
	KEY_NO_CACHE,
	KEY_PARAMS,
	KEY_SCORES,
};

static const struct argp_option argp_options[] = {
        {"layers", KEY_LAYERS, "N", 0, "Number of layers (default: 4)", 2},
        {"heads", KEY_HEADS, "N", 0, "Number of attention heads in each layer (default: 4)", 2},
        {"width", KEY_WIDTH, "N", 0, "Width of the embedding of a byte, a multiple of the heads (default: 128)", 2},
        {"context", KEY_CONTEXT, "N", 0, "Number of bytes of context for a prediction (default: 64)", 2},
        {"words", KEY_WORDS, "N", 0,
         "Size of the vocabulary; with another one than 256, prompt and text are numbers (default: 256, bytes)", 2},
        {"prompt-tokens", KEY_TOKENS, "LIST", 0,
         "The prompt as numbers below the vocabulary's size, separated by commas; the text is also numbers", 3},
        {"no-cache", KEY_NO_CACHE, NULL, 0,
         "For each word, compute the whole context again instead of the last word alone: slower, and the same to "
         "rounding",
         3},
        {"params", KEY_PARAMS, "FILE", 0,
         "Start with a GPT-2 in this safetensors file, with the names of Hugging Face's transformers or of nanoGPT; "
         "its "
         "shapes say how large it is, and heads are 64 wide without --heads",
         4},
        {"scores", KEY_SCORES, "FILE", 0, "Write the scores of all words that may follow the prompt to this .npy file",
         4},
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
		if (*p < '0' || *p > '9' || (*end && *end != ',') || n > INT32_MAX)
			argp_error(state, "--prompt-tokens: '%s' is not a list of numbers separated by commas", text);
		o->tokens[o->ntokens++] = (int32_t)n;
		if (!*(p = end)) break;
	}
}

static void complete(struct argp_state *state, struct options *o)
{
	if (o->params && o->sized)
		argp_error(state, "--params: the file determines the size of the network, options cannot");
	if (o->params && o->language.load) argp_error(state, "--load and --params: give one");
	if (!o->params && !o->size.heads) o->size.heads = 4;
	if (!o->params && o->size.width % o->size.heads) argp_error(state, "--width must be a multiple of --heads");
	if (o->common.ndevices > 1) argp_error(state, "--device: name one device only");
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
	default: return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->common;
		state->child_inputs[1] = &o->language;
		return 0;
	case KEY_TOKENS: parse_tokens(state, arg, o); return 0;
	case KEY_NO_CACHE: o->no_cache = true; return 0;
	case KEY_PARAMS: o->params = arg; return 0;
	case KEY_SCORES: o->scores = arg; return 0;
	case ARGP_KEY_END:
		o->common.tf32 = o->language.precision.tf32;
		complete(state, o);
		return 0;
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
	sl_dataset *all =
	        sl_dataset_tokens(o->language.text, .length = o->size.steps, .stride = stride_of(o), .bytes = 1);
	if (!all) return false;
	int64_t windows = sl_dataset_size(all), train = windows - windows / 10;
	int64_t gap = o->size.steps / stride_of(o) + 1;
	if (windows - train <= gap)
		drv_error("%s: is too short for a context of %lld bytes: a tenth of it is held out", o->language.text,
		          (long long)o->size.steps);
	else {
		part[0] = sl_dataset_range(all, 0, train);
		part[1] = sl_dataset_range(all, train + gap, windows - train - gap);
	}
	sl_dataset_free(all);
	return part[0] && part[1];
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

struct gpt {
	const struct options *o;
	sl_dataset *part[2]; /* of the text: to learn, held out */
	sl_step *step;
	int32_t *window; /* of a prediction */
	sl_cache *cache;
};

static struct sl_optimizer optimizer_of(const struct drv_language_options *o)
{
	return sl_adamw(.lr = o->lr, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1,
	                .schedule = drv_language_schedule(o), .loss_scaling = drv_loss_scaling(&o->precision),
	                .state_on = o->state_on);
}

static bool make(struct drv_language *l)
{
	struct gpt *g = l->model;
	const struct options *o = g->o;
	l->net = net_gpt(o->size);
	if (!l->net) return false;
	if (o->params && !gpt_params_load(l->net, o->params, &o->size)) return false;
	if (!o->params && sl_initialize(l->net, .init = sl_normal_init(0.02)) != SL_OK) return false;
	l->trainer = sl_trainer_new(l->net, optimizer_of(l->o));
	g->step = l->trainer ? sl_step_compile(l->net, drv_language_loss, l->trainer, .memory = l->o->memory) : NULL;
	if (!g->step || sl_hybridize(l->net, .memory = l->o->memory) != SL_OK) return false;
	if (!l->o->iterations) return true;
	if (o->size.words < BYTES)
		drv_error("a vocabulary of %lld is too small for a text of bytes", (long long)o->size.words);
	if (o->size.words < BYTES || !open_text(o, g->part)) return false;
	l->loader = drv_language_share(sl_loader_new(g->part[0], .batch_size = l->o->batch, .shuffle = true,
	                                             .seed = l->common->seed, .last = SL_LAST_DISCARD));
	return l->loader != NULL;
}

static sl_tensor *step(struct drv_language *l)
{
	struct sl_batch b;
	return drv_language_batch(l, &b) ? sl_step_run(((struct gpt *)l->model)->step, b.x, b.y, NULL) : NULL;
}

/* Over the same windows each time. */
static double held_out(struct drv_language *l)
{
	struct gpt *g = l->model;
	sl_metric *mean = sl_mean_new();
	sl_loader *loader = drv_language_share(sl_loader_new(g->part[1], .batch_size = l->o->batch, .shuffle = true,
	                                                     .seed = l->common->seed,
	                                                     .limit = EVALUATIONS * l->o->batch * sl_dist_size()));
	for (bool more = mean && loader; more;)
		SL_SCOPE {
			struct sl_batch b;
			more = sl_loader_next(loader, &b);
			if (!more) break;
			sl_tensor *y = drv_language_aside(l, sl_forward(l->net, b.x));
			sl_tensor *loss = drv_language_loss(SL_HERE, y, drv_language_aside(l, b.y));
			more = sl_metric_add(mean, loss, NULL) == SL_OK;
		}
	double loss = sl_metric_get(mean);
	sl_loader_free(loader);
	sl_metric_free(mean);
	return loss;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* A prompt is padded to a power of two, so that prompts of all lengths need few programs. */
static int64_t filled_up(int64_t count, int64_t steps)
{
	int64_t n = 16;
	while (n < count) n *= 2;
	return n < steps ? n : steps;
}

static bool ready_to_write(struct drv_language *l)
{
	struct gpt *g = l->model;
	if (!g->window) g->window = calloc((size_t)g->o->size.steps, sizeof *g->window);
	if (!g->cache && !g->o->no_cache) g->cache = sl_cache_new(l->net, g->o->size.steps);
	return g->window && (g->cache || g->o->no_cache);
}

/* The scores of what may follow the words, as many of the last ones as the network sees.  The cache knows all of them
 * but the last, or nothing that is of use: then the whole window is computed, and what stands behind the words is not
 * seen. */
static sl_tensor *scores(struct drv_language *l, const int32_t *words, int64_t count)
{
	struct gpt *g = l->model;
	int64_t steps = g->o->size.steps, used = count < steps ? count : steps, first = 0;
	sl_tensor *y;
	if (!ready_to_write(l)) return NULL;
	memcpy(g->window, words + count - used, (size_t)used * sizeof *words);
	if (!g->cache) {
		y = sl_forward(l->net, sl_from(g->window, SL_SHAPE(1, steps), .dtype = SL_INT32));
	} else if (count > 1 && used == count && sl_cache_length(g->cache) == count - 1) {
		first = count - 1;
		y = sl_cache_forward(g->cache, sl_from(g->window + first, SL_SHAPE(1, 1), .dtype = SL_INT32));
	} else {
		sl_cache_cut(g->cache, 0);
		sl_shape shape = SL_SHAPE(1, filled_up(used, steps));
		y = sl_cache_forward(g->cache, sl_from(g->window, shape, .dtype = SL_INT32));
		if (y) sl_cache_cut(g->cache, used);
	}
	y = drv_language_aside(l, y);
	return sl_reshape(sl_slice(y, 1, used - 1 - first, used - first, 1), SL_SHAPE(g->o->size.words));
}

/* The prompt, if it is made of the network's words. */
static int32_t *read(struct drv_language *l, const char *prompt, int64_t *count)
{
	const struct options *o = ((struct gpt *)l->model)->o;
	int32_t *words = o->tokens ? malloc((size_t)o->ntokens * sizeof *words) : drv_language_bytes(l, prompt, count);
	if (o->tokens && words) memcpy(words, o->tokens, (size_t)(*count = o->ntokens) * sizeof *words);
	bool known = words && *count;
	if (words && !*count) drv_error("the prompt is empty");
	for (int64_t i = 0; known && i < *count; i++)
		if (!(known = words[i] < o->size.words))
			drv_error("the prompt has the word %d, and the vocabulary %lld words", words[i],
			          (long long)o->size.words);
	if (known) return words;
	free(words);
	return NULL;
}

static void print(struct drv_language *l, int32_t word)
{
	const struct options *o = ((struct gpt *)l->model)->o;
	if (o->tokens || o->size.words != BYTES) fprintf(drv_out(l->common), "%d ", word);
	else drv_language_print_byte(l, word);
}

/* --scores */
static bool write_scores(struct drv_language *l)
{
	const struct options *o = ((struct gpt *)l->model)->o;
	int64_t count;
	int32_t *words = o->scores ? read(l, l->o->prompt, &count) : NULL;
	SL_SCOPE
		if (words) sl_save_npy(scores(l, words, count), o->scores);
	free(words);
	return !o->scores || (words && !drv_failed());
}

static void stop(struct drv_language *l)
{
	struct gpt *g = l->model;
	free(g->window);
	sl_cache_free(g->cache);
	sl_step_free(g->step);
	for (int i = 0; i < 2; i++) sl_dataset_free(g->part[i]);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static const struct argp argp = {
        .options = argp_options,
        .parser = parse,
        .children = drv_language_children,
        .doc = "Trains a GPT on a text, byte by byte, and writes more of it.\v"
               "Examples:\n"
               "  gpt --iterations 500 --generate 300\n"
               "  gpt --text book.txt --save book.safetensors\n"
               "  gpt --load book.safetensors --iterations 0 --generate 1000\n"
               "  gpt --params gpt2.safetensors -n 0 --generate 20 --prompt-tokens "
               "464,3290\n\n" DRV_LANGUAGE_EXIT_STATUS,
};

static int run(const struct options *o)
{
	struct gpt gpt = {.o = o};
	struct drv_language l = {.program = "gpt",
	                         .unit = "bytes",
	                         .common = &o->common,
	                         .o = &o->language,
	                         .model = &gpt,
	                         .per_step = o->language.batch * o->size.steps,
	                         .make = make,
	                         .step = step,
	                         .held_out = held_out,
	                         .learnt = write_scores,
	                         .read = read,
	                         .scores = scores,
	                         .print = print,
	                         .by_words = true,
	                         .stop = stop};
	return drv_language_run(&l);
}

int main(int argc, char **argv)
{
	struct options o = {.language = DRV_LANGUAGE_DEFAULTS,
	                    .size = {.words = BYTES, .steps = 64, .width = 128, .layers = 4}};
	drv_parse(&argp, argc, argv, &o);
	bool ok = drv_language_start(&o.common, &o.language) && (!o.params || gpt_params_size(o.params, &o.size));
	int status = drv_stop(&o.common, ok ? run(&o) : DRV_ERROR);
	free(o.tokens);
	return status;
}
