/* Cases of transformers that learn to predict the next word: a training step, as one program. */
#include "bench.h"

#include "../../models/networks.h"

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

static bool make(struct net_gpt_size size, int64_t rows)
{
	gpt.net = net_gpt(size);
	gpt.words = make_words(rows, &size);
	gpt.next = make_words(rows, &size);
	if (!gpt.net || sl_initialize(gpt.net, .init = sl_normal_init(0.02)) != SL_OK) return false;
	gpt.trainer = sl_trainer_new(gpt.net, sl_adamw(.lr = 1e-3, .weight_decay = 0.1));
	gpt.step = sl_step_compile(gpt.net, token_loss, gpt.trainer);
	return sl_step_prepare(gpt.step, gpt.words, gpt.next) == SL_OK && sl_wait_all() == SL_OK;
}

/* The configuration that nanoGPT recommends for CPUs (A. Karpathy, 2022). */
bool bench_nanogpt_setup(const struct bench_case *c)
{
	(void)c;
	return make((struct net_gpt_size){.words = 65, .steps = 64, .width = 128, .layers = 4, .heads = 4}, 12);
}

/* The shape of GPT-2's smallest one, 124 million parameters; 64 steps of 4 rows. */
bool bench_gpt2_setup(const struct bench_case *c)
{
	(void)c;
	return make((struct net_gpt_size){.words = 50257, .steps = 64, .width = 768, .layers = 12, .heads = 12}, 4);
}

double bench_gpt_run(const struct bench_case *c, int64_t times)
{
	(void)c;
	double start = bench_now();
	for (int64_t i = 0; i < times; i++)
		SL_SCOPE
			sl_step_run(gpt.step, gpt.words, gpt.next, NULL);
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
