/* A language model with LSTM layers, of bytes or words, trained in whole steps; it writes more of the text.
 *
 * W. Zaremba, I. Sutskever, O. Vinyals, "Recurrent neural network regularization", 2014: dropout between layers, and
 * truncated backpropagation through time: each step continues the text with the state of the last one. */
#include <stdlib.h>
#include <string.h>

#include <starling/dist.h>

#include "driver/language.h"
#include "words.h"

enum { EVALUATIONS = 16, STATES = 2 };

struct options {
	struct drv_options common;
	struct drv_language_options language;
	int words, layers; /* words: the most frequent ones; 0: bytes */
	int64_t width, hidden, steps;
	double dropout, clip;
};

/* ---- the command line -------------------------------------------------------------------------------------------- */

enum { KEY_WORDS = 0x500, KEY_LAYERS, KEY_WIDTH, KEY_HIDDEN, KEY_STEPS, KEY_DROPOUT, KEY_CLIP };

static const struct argp_option argp_options[] = {
        {"words", KEY_WORDS, "N", 0, "Learn words instead of bytes: the N most frequent ones, and <unk> for others", 1},
        {"layers", KEY_LAYERS, "N", 0, "Number of layers (default: 2)", 2},
        {"width", KEY_WIDTH, "N", 0, "Width of the embedding of a byte or word (default: 128)", 2},
        {"hidden", KEY_HIDDEN, "N", 0, "Units of each layer (default: 256)", 2},
        {"steps", KEY_STEPS, "N", 0, "Bytes or words in a step; gradients reach back to its beginning (default: 35)",
         2},
        {"dropout", KEY_DROPOUT, "P", 0, "Dropout between layers: the share of elements that become 0 (default: 0.2)",
         2},
        {"clip", KEY_CLIP, "X", 0, "Clip the norm of all gradients together to X (default: 5)", 2},
        {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->common;
		state->child_inputs[1] = &o->language;
		return 0;
	case KEY_WORDS: o->words = (int)drv_int(state, "--words", arg, 2, 1 << 24); return 0;
	case KEY_LAYERS: o->layers = (int)drv_int(state, "--layers", arg, 1, 64); return 0;
	case KEY_WIDTH: o->width = drv_int(state, "--width", arg, 1, 1 << 16); return 0;
	case KEY_HIDDEN: o->hidden = drv_int(state, "--hidden", arg, 1, 1 << 16); return 0;
	case KEY_STEPS: o->steps = drv_int(state, "--steps", arg, 1, 1 << 16); return 0;
	case KEY_DROPOUT: o->dropout = drv_real(state, "--dropout", arg, 0, 0.99); return 0;
	case KEY_CLIP: o->clip = drv_real(state, "--clip", arg, 1e-6, 1e6); return 0;
	case ARGP_KEY_END:
		o->common.tf32 = o->language.precision.tf32;
		if (o->common.ndevices > 1) argp_error(state, "--device: name one device only");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

/* ---- the network ------------------------------------------------------------------------------------------------- */

struct net {
	sl_block base;
	sl_block *before, *lstm, *after;
};

/* (rows, steps) words, states and cells (layers, rows, hidden); scores (rows, steps, words), and both as they are
 * then. */
static sl_tensor *forward(sl_block *self, sl_tensor *const *in, int nin)
{
	const struct net *net = (const struct net *)self;
	sl_tensor *out[3], *all[3] = {sl_forward(net->before, in[0])};
	memcpy(all + 1, in + 1, STATES * sizeof *all);
	if (nin != 3 || sl_forward_all(net->lstm, all, 3, out, 3) != SL_OK) return NULL;
	sl_tensor *y = sl_forward(net->after, out[0]);
	for (int i = 0; i < STATES; i++) sl_also(out[1 + i]);
	return y;
}

static sl_block *new_net(const struct options *o, int64_t words)
{
	struct net *net = calloc(1, sizeof *net);
	if (!net || sl_block_init(&net->base, "LanguageModel", forward, NULL) != SL_OK) {
		free(net);
		return NULL;
	}
	net->before = sl_block_add(&net->base, "before",
	                           sl_sequential(sl_embedding(words, o->width), sl_dropout_layer(o->dropout)));
	net->lstm = sl_block_add(&net->base, "lstm",
	                         sl_lstm(o->hidden, .layers = o->layers, .dropout = o->layers > 1 ? o->dropout : 0,
	                                 .batch_first = true, .in_units = o->width));
	net->after = sl_block_add(&net->base, "after",
	                          sl_sequential(sl_dropout_layer(o->dropout),
	                                        sl_dense(words, .no_flatten = true, .in_units = o->hidden)));
	return &net->base;
}

/* ---- the text ---------------------------------------------------------------------------------------------------- */

struct part {
	sl_dataset *set;
	int64_t rows;
	int32_t *x, *y; /* the windows, as a loader asks for them */
};

struct lstm {
	const struct options *o;
	struct words text;
	struct part part[2]; /* to learn, held out */
	sl_step *step;
	sl_tensor *written[STATES]; /* after the words that were written or prompted so far: so many */
	int64_t fed;
};

/* A row of a batch continues where it was in the previous batch: row r of all reads the r-th part of the text. */
static bool cut(struct part *p, const int32_t *words, int64_t count, int64_t rows, int64_t steps)
{
	int64_t length = (count - 1) / rows, batches = length / steps, n = 0;
	p->rows = rows;
	p->x = malloc((size_t)(batches * rows * steps) * sizeof *p->x);
	p->y = malloc((size_t)(batches * rows * steps) * sizeof *p->y);
	for (int64_t b = 0; p->x && p->y && b < batches; b++)
		for (int64_t r = 0; r < rows; r++, n += steps) {
			memcpy(p->x + n, words + r * length + b * steps, (size_t)steps * sizeof *words);
			memcpy(p->y + n, words + r * length + b * steps + 1, (size_t)steps * sizeof *words);
		}
	sl_shape shape = SL_SHAPE(batches * rows, steps);
	if (p->x && p->y)
		p->set = sl_dataset_arrays(((struct sl_array){p->x, shape, SL_INT32}),
		                           ((struct sl_array){p->y, shape, SL_INT32}));
	return p->set != NULL;
}

static bool cut_text(struct lstm *m)
{
	const struct options *o = m->o;
	int64_t count = m->text.count, held = count / 10, ranks = sl_dist_size(),
	        rows[2] = {o->language.batch * ranks, 0};
	int64_t fit = (held - 1) / o->steps / ranks * ranks;
	rows[1] = fit < rows[0] ? fit : rows[0];
	if (rows[1] < 1 || (count - held - 1) / rows[0] < o->steps) {
		drv_error("%s: is too short for %lld rows of %lld steps: a tenth of it is held out", o->language.text,
		          (long long)rows[0], (long long)o->steps);
		return false;
	}
	return cut(&m->part[0], m->text.all, count - held, rows[0], o->steps) &&
	       cut(&m->part[1], m->text.all + count - held, held, rows[1], o->steps);
}

/* This rank's rows of each batch: the same ones. */
static int64_t rows_here(const struct part *p)
{
	return p->rows / sl_dist_size();
}

static sl_loader *in_order(const struct part *p, int64_t batches)
{
	int64_t limit = batches ? batches * p->rows : SL_UNSET_INT;
	return drv_language_share(sl_loader_new(p->set, .batch_size = rows_here(p), .limit = limit));
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

/* Replaces the state by other tensors, and releases the old ones; NULL: zeros. */
static bool set_states(const struct lstm *m, sl_tensor **states, sl_tensor *const *to, int64_t rows)
{
	bool ok = true;
	SL_SCOPE {
		for (int i = 0; i < STATES; i++) {
			sl_tensor *t = to ? to[i] : sl_zeros(SL_SHAPE(m->o->layers, rows, m->o->hidden));
			ok = ok && t;
			sl_retain(t);
			sl_release(states[i]);
			states[i] = t;
		}
	}
	return ok;
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

static sl_tensor *loss(void *context, sl_tensor *const *out, int nout, sl_tensor *const *targets, int ntargets)
{
	(void)context, (void)nout, (void)ntargets;
	return drv_language_loss(SL_HERE, out[0], targets[0]);
}

static bool make(struct drv_language *l)
{
	struct lstm *m = l->model;
	const struct options *o = m->o;
	if ((l->o->iterations || o->words) && !words_read(&m->text, l->o->text, o->words)) return false;
	l->net = new_net(o, m->text.vocabulary ? m->text.vocabulary : 256);
	if (!l->net || sl_initialize(l->net) != SL_OK) return false;
	l->trainer = sl_trainer_new(
	        l->net, sl_adam(.lr = l->o->lr, .clip_norm = o->clip, .schedule = drv_language_schedule(l->o),
	                        .loss_scaling = drv_loss_scaling(&l->o->precision), .state_on = l->o->state_on));
	m->step = l->trainer ? sl_step_compile(l->net, NULL, l->trainer, .loss_of_all = loss, .memory = l->o->memory)
	                     : NULL;
	if (!m->step || sl_hybridize(l->net, .memory = l->o->memory) != SL_OK ||
	    !set_states(m, l->tensors, NULL, l->o->batch))
		return false;
	if (!l->o->iterations) return true;
	if (!cut_text(m)) return false;
	l->loader = in_order(&m->part[0], 0);
	return l->loader != NULL;
}

static sl_tensor *step(struct drv_language *l)
{
	struct lstm *m = l->model;
	struct sl_batch b;
	if (!drv_language_batch(l, &b)) return NULL;
	if (!b.index && !set_states(m, l->tensors, NULL, l->o->batch)) return NULL; /* the text begins again */
	sl_tensor *in[] = {b.x, l->tensors[0], l->tensors[1]}, *out[3];
	sl_tensor *losses = sl_step_run(m->step, .in = in, .nin = 3, .targets = &b.y, .out = out, .nout = 3);
	return losses && set_states(m, l->tensors, out + 1, 0) ? losses : NULL;
}

/* One batch that is held out; false after the last one. */
static bool held_out_batch(struct drv_language *l, sl_loader *loader, sl_tensor **states, sl_metric *mean)
{
	bool ok = false;
	SL_SCOPE {
		struct sl_batch b;
		if (!sl_loader_next(loader, &b)) break;
		sl_tensor *in[] = {b.x, states[0], states[1]}, *out[3];
		if (sl_forward_all(l->net, in, 3, out, 3) != SL_OK) break;
		ok = set_states(l->model, states, out + 1, 0) &&
		     sl_metric_add(
		             mean,
		             drv_language_loss(SL_HERE, drv_language_aside(l, out[0]), drv_language_aside(l, b.y)),
		             NULL) == SL_OK;
	}
	return ok;
}

/* Of the same beginning of that text each time. */
static double held_out(struct drv_language *l)
{
	struct lstm *m = l->model;
	sl_metric *mean = sl_mean_new();
	sl_loader *loader = in_order(&m->part[1], EVALUATIONS);
	sl_tensor *states[STATES] = {NULL};
	if (mean && loader && set_states(m, states, NULL, rows_here(&m->part[1])))
		while (held_out_batch(l, loader, states, mean)) continue;
	double value = sl_metric_get(mean);
	for (int i = 0; i < STATES; i++) sl_release(states[i]);
	sl_loader_free(loader);
	sl_metric_free(mean);
	return value;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static int32_t *read_prompt(struct drv_language *l, const char *prompt, int64_t *count)
{
	return words_encode(&((struct lstm *)l->model)->text, *prompt ? prompt : "\n", count);
}

/* The words that the network has not seen yet, one by one. */
static sl_tensor *scores(struct drv_language *l, const int32_t *words, int64_t count)
{
	struct lstm *m = l->model;
	sl_tensor *y = NULL;
	if (!m->fed && !set_states(m, m->written, NULL, 1)) return NULL;
	for (; m->fed < count; m->fed++) {
		sl_tensor *x = sl_from(words + m->fed, SL_SHAPE(1, 1), .dtype = SL_INT32);
		sl_tensor *in[] = {x, m->written[0], m->written[1]}, *out[3];
		if (sl_forward_all(l->net, in, 3, out, 3) != SL_OK || !set_states(m, m->written, out + 1, 0))
			return NULL;
		y = drv_language_aside(l, out[0]);
	}
	return y ? sl_reshape(y, SL_SHAPE(sl_tensor_shape(y).dim[2])) : NULL;
}

static void print(struct drv_language *l, int32_t word)
{
	const struct words *w = &((struct lstm *)l->model)->text;
	if (!w->names) drv_language_print_byte(l, word);
	else if (!strcmp(w->names[word], "<eos>")) fputc('\n', drv_out(l->common));
	else fprintf(drv_out(l->common), "%s ", w->names[word]);
}

static void stop(struct drv_language *l)
{
	struct lstm *m = l->model;
	for (int i = 0; i < STATES; i++) sl_release(m->written[i]);
	for (int i = 0; i < STATES; i++) sl_release(l->tensors[i]);
	sl_step_free(m->step);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static const struct argp argp = {
        .options = argp_options,
        .parser = parse,
        .children = drv_language_children,
        .doc = "Trains a language model with LSTM layers on a text, byte by byte or word by word, and writes more of "
               "it.\v"
               "Examples:\n"
               "  lstm --iterations 500 --generate 300\n"
               "  lstm --text book.txt --words 10000 --save book.safetensors\n"
               "  lstm --load net.safetensors --iterations 0 --generate 1000\n\n" DRV_LANGUAGE_EXIT_STATUS,
};

static int run(const struct options *o)
{
	struct lstm lstm = {.o = o};
	struct drv_language l = {.program = "lstm",
	                         .unit = o->words ? "words" : "bytes",
	                         .common = &o->common,
	                         .o = &o->language,
	                         .model = &lstm,
	                         .per_step = o->language.batch * o->steps,
	                         .perplexity = true,
	                         .make = make,
	                         .step = step,
	                         .held_out = held_out,
	                         .read = read_prompt,
	                         .scores = scores,
	                         .print = print,
	                         .stop = stop,
	                         .names = {"state", "cell"},
	                         .ntensors = STATES};
	int status = drv_language_run(&l);
	for (int i = 0; i < 2; i++) {
		sl_dataset_free(lstm.part[i].set);
		free(lstm.part[i].x);
		free(lstm.part[i].y);
	}
	words_free(&lstm.text);
	return status;
}

int main(int argc, char **argv)
{
	struct options o = {.language = DRV_LANGUAGE_DEFAULTS,
	                    .layers = 2,
	                    .width = 128,
	                    .hidden = 256,
	                    .steps = 35,
	                    .dropout = 0.2,
	                    .clip = 5};
	o.language.batch = 20;
	o.language.lr = 2e-3;
	drv_parse(&argp, argc, argv, &o);
	return drv_stop(&o.common, drv_language_start(&o.common, &o.language) ? run(&o) : DRV_ERROR);
}
