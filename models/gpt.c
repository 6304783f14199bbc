/* A GPT that learns a text byte by byte, in whole steps, and writes more of it.
 *
 * The network is that of A. Radford and others, "Language models are unsupervised multitask learners", 2019; sizes,
 * optimiser and schedule are by default those that nanoGPT (A. Karpathy, 2022) recommends for CPUs. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <starling/checkpoint.h>
#include <starling/io.h>

#include "common.h"
#include "networks.h"

enum { BYTES = 256, EVALUATIONS = 16, KEEP = 3 };

struct options {
	struct drv_options common;
	const char *text, *prompt, *checkpoint, *save, *load;
	struct net_gpt_size size;
	int64_t batch, iterations, every, generate;
	double lr, temperature;
	bool resume;
};

/* ---- the command line -------------------------------------------------------------------------------------------- */

enum {
	KEY_TEXT = 0x500,
	KEY_LAYERS,
	KEY_HEADS,
	KEY_WIDTH,
	KEY_CONTEXT,
	KEY_EVERY,
	KEY_LR,
	KEY_GENERATE,
	KEY_PROMPT,
	KEY_TEMPERATURE,
	KEY_CHECKPOINT,
	KEY_RESUME,
	KEY_SAVE,
	KEY_LOAD,
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
	{"generate", KEY_GENERATE, "N", 0, "At the end, write N bytes of text (default: 0)", 3},
	{"prompt", KEY_PROMPT, "TEXT", 0, "The text that the written bytes continue (default: a new line)", 3},
	{"temperature", KEY_TEMPERATURE, "X", 0, "Temperature of the written text: 1 as learnt, lower is less surprising (default: 0.8)", 3},
	{"checkpoint", KEY_CHECKPOINT, "DIR", 0, "Write checkpoints to this folder, and keep the newest 3", 4},
	{"resume", KEY_RESUME, NULL, 0, "Continue from the newest checkpoint in DIR, or start anew if there is none", 4},
	{"save", KEY_SAVE, "FILE", 0, "Write the parameters to this file, as safetensors, at the end", 4},
	{"load", KEY_LOAD, "FILE", 0, "Start with the parameters in this file", 4},
	{0},
};

static void complete(struct argp_state *state, struct options *o)
{
	if (o->size.width % o->size.heads) argp_error(state, "--width must be a multiple of --heads");
	if (o->resume && !o->checkpoint) argp_error(state, "--resume: needs --checkpoint DIR");
	if (o->common.ndevices > 1) argp_error(state, "--device: only one device is possible");
}

static error_t parse_text(int key, char *arg, struct options *o)
{
	switch (key) {
	case KEY_TEXT: o->text = arg; return 0;
	case KEY_PROMPT: o->prompt = arg; return 0;
	case KEY_CHECKPOINT: o->checkpoint = arg; return 0;
	case KEY_RESUME: o->resume = true; return 0;
	case KEY_SAVE: o->save = arg; return 0;
	case KEY_LOAD: o->load = arg; return 0;
	default: return ARGP_ERR_UNKNOWN;
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
	case KEY_LAYERS: o->size.layers = (int)drv_int(state, "--layers", arg, 1, 64); return 0;
	case KEY_HEADS: o->size.heads = (int)drv_int(state, "--heads", arg, 1, 1024); return 0;
	case KEY_WIDTH: o->size.width = drv_int(state, "--width", arg, 1, 1 << 16); return 0;
	case KEY_CONTEXT: o->size.steps = drv_int(state, "--context", arg, 1, 1 << 16); return 0;
	case KEY_GENERATE: o->generate = drv_int(state, "--generate", arg, 0, INT32_MAX); return 0;
	case KEY_TEMPERATURE: o->temperature = drv_real(state, "--temperature", arg, 1e-3, 1e3); return 0;
	case ARGP_KEY_END: complete(state, o); return 0;
	default: return parse_text(key, arg, o);
	}
}

/* ---- the text ---------------------------------------------------------------------------------------------------- */

struct text {
	unsigned char *bytes;
	int64_t size, train; /* the first `train` bytes are learnt */
};

static bool read_text(const char *path, struct text *t)
{
	FILE *f = fopen(path, "rb");
	long size = f && !fseek(f, 0, SEEK_END) ? ftell(f) : -1;
	bool ok = false;
	if (size < 0) drv_error("%s: %s", path, strerror(errno));
	else if (!(t->bytes = malloc((size_t)size + 1))) drv_error("%s: no memory", path);
	else {
		rewind(f);
		ok = fread(t->bytes, 1, (size_t)size, f) == (size_t)size;
		if (!ok) drv_error("%s: cannot be read", path);
	}
	if (f) fclose(f);
	t->size = size;
	t->train = size - size / 10;
	return ok;
}

/* Long enough for a piece, and the byte that follows, in both parts. */
static bool fits(const struct text *t, const struct options *o)
{
	if (t->size - t->train > o->size.steps) return true;
	drv_error("%s: has %lld bytes; with a context of %lld at least %lld are needed", o->text, (long long)t->size,
	          (long long)o->size.steps, (long long)(10 * (o->size.steps + 1)));
	return false;
}

/* A random number of the run: the same in each run from the same seed, wherever it began. Sebastiano Vigna's splitmix64. */
static uint64_t random_of(uint64_t seed, uint64_t stream, uint64_t i)
{
	uint64_t z = seed * UINT64_C(0xd1342543de82ef95) + stream * UINT64_C(0xda942042e4dd58b5) + (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

enum stream { TRAIN, HELD_OUT, WRITING };

/* Pieces of the text, and for each byte the one that follows. */
static bool take_batch(const struct text *t, const struct options *o, enum stream stream, int64_t number, sl_tensor **x, sl_tensor **y)
{
	int64_t steps = o->size.steps, first = stream == TRAIN ? 0 : t->train, end = stream == TRAIN ? t->train : t->size;
	int32_t *now = malloc((size_t)(2 * o->batch * steps) * sizeof *now), *next = now + o->batch * steps;
	for (int64_t i = 0; now && i < o->batch; i++) {
		uint64_t at = random_of(o->common.seed, stream, (uint64_t)(number * o->batch + i));
		const unsigned char *from = t->bytes + first + (int64_t)(at % (uint64_t)(end - first - steps));
		for (int64_t k = 0; k < steps; k++) {
			now[i * steps + k] = from[k];
			next[i * steps + k] = from[k + 1];
		}
	}
	*x = now ? sl_from(now, SL_SHAPE(o->batch, steps), .dtype = SL_INT32) : NULL;
	*y = now ? sl_from(next, SL_SHAPE(o->batch, steps), .dtype = SL_INT32) : NULL;
	if (!now) drv_error("no memory for a batch");
	free(now);
	return *x && *y;
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

struct run {
	const struct options *o;
	struct text text;
	sl_block *net;
	sl_trainer *trainer;
	sl_step *step;
	sl_tensor *loss; /* the last step's, a number a byte */
	int64_t done;    /* steps */
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
	struct sl_schedule schedule = {.kind = SL_COSINE, .warmup = 100, .total = o->iterations, .final_lr = o->lr / 10};
	if (schedule.warmup >= o->iterations) schedule = (struct sl_schedule){.kind = SL_CONSTANT};
	return sl_adamw(.lr = o->lr, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1, .schedule = schedule);
}

static bool make(struct run *r)
{
	const struct options *o = r->o;
	r->net = net_gpt(o->size);
	if (!r->net || sl_initialize(r->net, .init = sl_normal_init(0.02)) != SL_OK) return false;
	if (o->load && sl_load_params(r->net, o->load) != SL_OK) return false;
	r->trainer = sl_trainer_new(r->net, optimizer_of(o));
	r->step = r->trainer ? sl_step_compile(r->net, byte_loss, r->trainer) : NULL;
	return r->step && sl_hybridize(r->net) == SL_OK;
}

static bool resume(struct run *r)
{
	if (!r->o->resume || sl_checkpoint_count(r->o->checkpoint) < 1) return true;
	if (sl_checkpoint_load(r->o->checkpoint, .trainer = r->trainer, .step = &r->done) != SL_OK) return false;
	drv_print(&r->o->common, "going on after step %lld\n", (long long)r->done);
	return true;
}

static bool keep(struct run *r)
{
	return !r->o->checkpoint ||
	       sl_checkpoint_save(r->o->checkpoint, .trainer = r->trainer, .step = &r->done, .keep = KEEP) == SL_OK;
}

static double held_out_loss(struct run *r)
{
	double sum = 0;
	for (int64_t i = 0; i < EVALUATIONS; i++) SL_SCOPE {
		sl_tensor *x, *y;
		if (take_batch(&r->text, r->o, HELD_OUT, i, &x, &y))
			sum += sl_item(sl_mean(byte_loss(SL_HERE, sl_forward(r->net, x), y)));
	}
	return sum / EVALUATIONS;
}

static void report(struct run *r, double seconds, int64_t steps)
{
	double train = sl_item(sl_mean(r->loss)), held_out = held_out_loss(r);
	double rate = (double)(steps * r->o->batch * r->o->size.steps) / seconds;
	drv_print(&r->o->common, "step %lld: loss %.4f, held out %.4f, %.0f bytes/sec\n", (long long)r->done, train, held_out, rate);
	json_t *one = json_object();
	json_object_set_new(one, "step", json_integer(r->done));
	json_object_set_new(one, "train_loss", drv_json_real(train));
	json_object_set_new(one, "held_out_loss", drv_json_real(held_out));
	json_object_set_new(one, "bytes_per_second", drv_json_real(rate));
	json_array_append_new(r->losses, one);
}

static bool one_step(struct run *r)
{
	bool ok;
	SL_SCOPE {
		sl_tensor *x, *y, *loss = NULL;
		ok = take_batch(&r->text, r->o, TRAIN, r->done, &x, &y) && (loss = sl_step_run(r->step, x, y, NULL));
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

/* One of the bytes, drawn by their scores; u is uniform in 0..1. */
static int draw(const float *scores, double temperature, double u)
{
	double p[BYTES], sum = 0, most = scores[0];
	for (int i = 1; i < BYTES; i++) most = fmax(most, scores[i]);
	for (int i = 0; i < BYTES; i++) sum += p[i] = exp((scores[i] - most) / temperature);
	for (int i = 0; i < BYTES; i++)
		if ((u -= p[i] / sum) < 0) return i;
	return BYTES - 1;
}

/* The scores of the byte after the last `count` ones.  What stands behind them is not seen: so all calls have one shape. */
static bool score(struct run *r, const int32_t *window, int64_t count, float scores[BYTES])
{
	bool ok;
	SL_SCOPE {
		sl_tensor *y = sl_forward(r->net, sl_from(window, SL_SHAPE(1, r->o->size.steps), .dtype = SL_INT32));
		ok = y && sl_read(sl_slice(y, 1, count - 1, count, 1), scores, BYTES * sizeof *scores) == SL_OK;
	}
	return ok;
}

static bool write_text(struct run *r)
{
	const struct options *o = r->o;
	int64_t steps = o->size.steps, length = (int64_t)strlen(o->prompt), count = length < steps ? length : steps;
	int32_t *window = calloc((size_t)steps, sizeof *window);
	float scores[BYTES];
	bool ok = window != NULL;
	for (int64_t i = 0; ok && i < count; i++) window[i] = (unsigned char)o->prompt[length - count + i];
	drv_print(&o->common, "%s", o->prompt);
	for (int64_t i = 0; ok && i < o->generate && !drv_interrupted(); i++) {
		ok = score(r, window, count, scores);
		double u = (double)(random_of(o->common.seed, WRITING, (uint64_t)i) >> 11) * 0x1p-53;
		int byte = ok ? draw(scores, o->temperature, u) : 0;
		if (count == steps) memmove(window, window + 1, (size_t)(--count) * sizeof *window);
		window[count++] = byte;
		if (ok && !o->common.quiet) fputc(byte, drv_out(&o->common));
		if (ok && !o->common.quiet) fflush(drv_out(&o->common));
	}
	if (ok) drv_print(&o->common, "\n");
	free(window);
	return ok;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static bool work(struct run *r)
{
	const struct options *o = r->o;
	if (o->iterations && (!read_text(o->text, &r->text) || !fits(&r->text, o))) return false;
	if (!make(r) || !resume(r) || !train(r)) return false;
	if (o->generate && !write_text(r)) return false;
	return !o->save || sl_save_params(r->net, o->save) == SL_OK;
}

static int run(const struct options *o)
{
	json_t *results = drv_json_new("gpt", &o->common);
	struct run r = {.o = o, .losses = json_array()};
	bool ok;
	SL_SCOPE {
		ok = work(&r);
		if (drv_failed()) drv_error("%s", sl_error_message());
		sl_error_clear();
		ok = ok && drv_sync();
		sl_release(r.loss);
		sl_step_free(r.step);
		sl_trainer_free(r.trainer);
		sl_block_free(r.net);
	}
	free(r.text.bytes);
	json_object_set_new(results, "batch_size", json_integer(o->batch));
	json_object_set_new(results, "lr", drv_json_real(o->lr));
	json_object_set_new(results, "interrupted", json_boolean(drv_interrupted()));
	json_object_set_new(results, "losses", r.losses);
	if (!drv_json_write(&o->common, results)) ok = false;
	return drv_interrupted() ? drv_interrupted_status() : ok ? DRV_OK : DRV_ERROR;
}

static const struct argp_child children[] = {{&drv_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
        .options = argp_options,
        .parser = parse,
        .children = children,
        .doc = "Trains a GPT on a text, byte by byte, and writes more of it.\v"
               "  gpt --iterations 500 --generate 300\n"
               "  gpt --text book.txt --save book.safetensors\n"
               "  gpt --load book.safetensors --iterations 0 --generate 1000\n\n"
               "Exit status: 0 if all went well, 1 after an error, 2 if the command line is "
               "wrong, " DRV_INTERRUPTED_STATUS ".",
};

int main(int argc, char **argv)
{
	struct options o = {.text = DEFAULT_TEXT,
	                    .prompt = "\n",
	                    .size = {.words = BYTES, .steps = 64, .width = 128, .layers = 4, .heads = 4},
	                    .batch = 12,
	                    .iterations = 2000,
	                    .every = 250,
	                    .lr = 1e-3,
	                    .temperature = 0.8};
	drv_parse(&argp, argc, argv, &o);
	return drv_stop(&o.common, drv_start(&o.common) ? run(&o) : DRV_ERROR);
}
