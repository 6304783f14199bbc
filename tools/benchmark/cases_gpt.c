/* Cases of transformers that learn to predict the next word: a training step, as one program. */
#include "bench.h"

#include "../../models/driver/networks.h"

static struct {
	sl_block *net;
	sl_trainer *trainer;
	sl_step *step;
	sl_tensor *words, *next;
} gpt;

/* A loss a token */
static sl_tensor *token_loss(const char *at, sl_tensor *y, sl_tensor *words)
{
	sl_shape s = sl_tensor_shape(y);
	int64_t tokens = s.dim[0] * s.dim[1];
	return sl_softmax_cross_entropy_at(at, sl_reshape_at(at, y, SL_SHAPE(tokens, s.dim[2])),
	                                   sl_reshape_at(at, words, SL_SHAPE(tokens)));
}

static sl_tensor *make_words(int64_t rows, const struct net_gpt_size *size)
{
	sl_tensor *words = NULL;
	SL_SCOPE
		words = sl_retain(sl_cast(sl_uniform(SL_SHAPE(rows, size->steps), 0, (double)size->words), SL_INT32));
	return words;
}

static bool make(const struct bench_case *c, struct net_gpt_size size, int64_t rows)
{
	gpt.net = net_gpt(size);
	gpt.words = make_words(rows, &size);
	gpt.next = make_words(rows, &size);
	if (!gpt.net || sl_initialize(gpt.net, .init = sl_normal_init(0.02)) != SL_OK) return false;
	gpt.trainer = sl_trainer_new(gpt.net, sl_adamw(.lr = 1e-3, .weight_decay = 0.1));
	gpt.step = sl_step_compile(gpt.net, token_loss, gpt.trainer);
	enum sl_status s = SL_OK;
	SL_AUTOCAST(bench_autocast(c)) s = sl_step_prepare(gpt.step, gpt.words, gpt.next);
	return s == SL_OK && sl_wait_all() == SL_OK;
}

/* The configuration that nanoGPT recommends for CPUs (A. Karpathy, 2022). */
bool bench_nanogpt_setup(const struct bench_case *c)
{
	return make(c, (struct net_gpt_size){.words = 65, .steps = 64, .width = 128, .layers = 4, .heads = 4}, 12);
}

/* The shape of GPT-2's smallest one, 124 million parameters; 64 steps of 4 rows. */
bool bench_gpt2_setup(const struct bench_case *c)
{
	return make(c, (struct net_gpt_size){.words = 50257, .steps = 64, .width = 768, .layers = 12, .heads = 12}, 4);
}

bool bench_gpt2_long_setup(const struct bench_case *c)
{
	return make(c, (struct net_gpt_size){.words = 50257, .steps = 1024, .width = 768, .layers = 12, .heads = 12},
	            8);
}

double bench_gpt_run(const struct bench_case *c, int64_t times)
{
	double start = bench_now();
	for (int64_t i = 0; i < times; i++)
		SL_SCOPE
			SL_AUTOCAST(bench_autocast(c)) sl_step_run(gpt.step, gpt.words, gpt.next, NULL);
	bench_must(sl_wait_all());
	return (bench_now() - start) / (double)times;
}

void bench_gpt_teardown(void)
{
	sl_step_free(gpt.step);
	sl_trainer_free(gpt.trainer);
	sl_block_free(gpt.net);
	sl_release(gpt.words);
	sl_release(gpt.next);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

enum { PROMPT = 512, CONTEXT = 1024 };
static struct {
	sl_block *net;
	sl_cache *cache;
	sl_tensor *word;
} text;

bool bench_generate_setup(const struct bench_case *c)
{
	(void)c;
	text.net = net_gpt(
	        (struct net_gpt_size){.words = 50257, .steps = CONTEXT, .width = 768, .layers = 12, .heads = 12});
	if (!text.net || sl_initialize(text.net, .init = sl_normal_init(0.02)) != SL_OK) return false;
	text.cache = sl_hybridize(text.net) == SL_OK ? sl_cache_new(text.net, CONTEXT) : NULL;
	SL_SCOPE {
		text.word = sl_retain(sl_zeros(SL_SHAPE(1, 1), .dtype = SL_INT32));
		sl_cache_forward(text.cache, sl_zeros(SL_SHAPE(1, PROMPT), .dtype = SL_INT32));
	}
	return text.word && sl_wait_all() == SL_OK;
}

/* The likeliest word follows. */
double bench_generate_run(const struct bench_case *c, int64_t times)
{
	(void)c;
	double start = bench_now();
	for (int64_t i = 0; i < times; i++)
		SL_SCOPE {
			if (i % (CONTEXT - PROMPT) == 0) bench_must(sl_cache_cut(text.cache, PROMPT));
			sl_tensor *scores = sl_cache_forward(text.cache, text.word);
			sl_tensor *next = sl_argmax(scores, -1);
			sl_release(text.word);
			text.word = sl_retain(next);
		}
	bench_must(sl_wait_all());
	return (bench_now() - start) / (double)times;
}

void bench_generate_teardown(void)
{
	sl_cache_free(text.cache);
	sl_block_free(text.net);
	sl_release(text.word);
}

/* ---- texts of many lengths: a program for each, or for each bucket ----------------------------------------------- */

enum { LENGTHS = 128 };
static const struct sl_buckets some = {.axis = 1, .sizes = {16, 32, 48, 64, 80, 96, 112, 128}};
static struct {
	sl_block *net[2]; /* without and with buckets */
	sl_trainer *trainer[2];
	sl_step *step[2];
	sl_tensor *words[LENGTHS]; /* of lengths drawn at random, 1 to 128 */
} lengths;

static bool make_lengths(int64_t rows)
{
	uint32_t state = 1;
	for (int i = 0; i < LENGTHS; i++) {
		state = state * 1664525 + 1013904223;
		struct net_gpt_size size = {.words = 65, .steps = 1 + (int64_t)((uint64_t)state * LENGTHS >> 32)};
		lengths.words[i] = make_words(rows, &size);
	}
	for (int k = 0; k < 2; k++) {
		lengths.net[k] = net_gpt(
		        (struct net_gpt_size){.words = 65, .steps = LENGTHS, .width = 128, .layers = 4, .heads = 4});
		if (!lengths.net[k] || sl_initialize(lengths.net[k], .init = sl_normal_init(0.02)) != SL_OK)
			return false;
		lengths.trainer[k] = sl_trainer_new(lengths.net[k], sl_adamw(.lr = 1e-3));
	}
	lengths.step[0] = sl_step_compile(lengths.net[0], token_loss, lengths.trainer[0]);
	lengths.step[1] = sl_step_compile(lengths.net[1], token_loss, lengths.trainer[1], .buckets = some);
	return sl_hybridize(lengths.net[0]) == SL_OK && sl_hybridize(lengths.net[1], .buckets = some) == SL_OK;
}

bool bench_lengths_setup(const struct bench_case *c)
{
	(void)c;
	return make_lengths(1);
}

bool bench_lengths_step_setup(const struct bench_case *c)
{
	(void)c;
	return make_lengths(12);
}

static double over_lengths(int k, int64_t times, bool train)
{
	double start = bench_now();
	for (int64_t i = 0; i < times; i++)
		SL_SCOPE {
			sl_tensor *words = lengths.words[i % LENGTHS];
			if (train) sl_step_run(lengths.step[k], words, words, NULL);
			else sl_forward(lengths.net[k], words);
		}
	bench_must(sl_wait_all());
	return bench_now() - start;
}

double bench_lengths_run(const struct bench_case *c, int64_t times)
{
	(void)c;
	double without = over_lengths(0, times, false);
	return without / over_lengths(1, times, false);
}

double bench_lengths_step_run(const struct bench_case *c, int64_t times)
{
	(void)c;
	double without = over_lengths(0, times, true);
	return without / over_lengths(1, times, true);
}

void bench_lengths_teardown(void)
{
	for (int k = 0; k < 2; k++) {
		sl_step_free(lengths.step[k]);
		sl_trainer_free(lengths.trainer[k]);
		sl_block_free(lengths.net[k]);
	}
	for (int i = 0; i < LENGTHS; i++) sl_release(lengths.words[i]);
}
