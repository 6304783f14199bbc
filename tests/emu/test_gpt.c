/* A GPT that is larger than the memory it may have of an emulated GPU: trained with its states in main memory (.memory beside
 * .state_on), with the bits of training without a limit; and writing, with the same words, for several requests at once. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "driver/networks.h"
#include "emulated.h"

enum { STEPS = 6, WARM = 4, MIB = 1 << 20 };

/* The proportions of GPT-2's 124 million parameters: 31 % are the words'. */
static const struct net_gpt_size size = {.words = 4140, .steps = 16, .width = 192, .layers = 4, .heads = 2};

static void begin(void)
{
	slp_begin((struct sl_config){.gpus = 1, .seed = 1});
	CHECK_OK(sl_device_default(sl_gpu(0)));
}

/* ---- training ------------------------------------------------------------------------------------------------------ */

struct course {
	const char *name;
	struct sl_optimizer optimizer;
	int accumulate;
	enum sl_dtype dtype; /* of the parameters */
	size_t limit;
};

struct result {
	double losses[STEPS];
	uint64_t bits, in, out, allocations; /* the last three: of a step after the warm ones */
	size_t peak, params;
	struct sl_plan_info info;
};

/* One loss for each word. */
static sl_tensor *word_loss(const char *at, sl_tensor *out, sl_tensor *target)
{
	sl_shape s = sl_tensor_shape(out);
	sl_tensor *rows = sl_reshape_at(at, out, SL_SHAPE(s.dim[0] * s.dim[1], s.dim[2]));
	return sl_softmax_cross_entropy_at(at, rows, sl_reshape_at(at, target, SL_SHAPE(s.dim[0] * s.dim[1])));
}

static double step_once(sl_step *step, int number)
{
	int32_t words[17];
	double sum = NAN;
	for (int i = 0; i < 17; i++) words[i] = (i * i + 31 * number) % 4140;
	SL_SCOPE {
		sl_tensor *x = sl_from(words, SL_SHAPE(1, 16), .dtype = SL_INT32);
		sl_tensor *y = sl_from(words + 1, SL_SHAPE(1, 16), .dtype = SL_INT32);
		sl_tensor *loss = sl_step_run(step, x, y, NULL);
		CHECK_OK(sl_wait_all());
		if (loss) sum = sl_item(sl_sum(sl_copy_to(loss, sl_cpu(0))));
	}
	return sum;
}

static void count(struct result *r, int sign)
{
	struct emu_counts c;
	emu_counts_settle();
	emu_counts_get(&c);
	r->in += (uint64_t)sign * c.link[EMU_HOST][0].bytes;
	r->out += (uint64_t)sign * c.link[0][EMU_HOST].bytes;
	r->allocations += (uint64_t)sign * c.allocations[0];
	r->peak = c.peak[0];
}

/* The first parameters are made beside the program: what is on the GPU counts from the first step on. */
static struct result train(const struct course *c)
{
	struct result r = {.bits = 0};
	sl_param *params[128];
	begin();
	sl_block *net = net_gpt(size);
	CHECK_OK(sl_initialize(net, .init = sl_normal_init(0.02), .dtype = c->dtype));
	sl_trainer *trainer = sl_trainer_new(net, c->optimizer);
	sl_step *step = sl_step_compile(net, word_loss, trainer, .memory = c->limit, .accumulate = c->accumulate);
	for (int i = 0; i < STEPS; i++) {
		if (i == WARM) count(&r, -1);
		r.losses[i] = step_once(step, i);
		if (i == 0) emu_counts_reset();
	}
	count(&r, 1);
	r.in /= STEPS - WARM;
	r.out /= STEPS - WARM;
	r.info = sl_step_info(step);
	r.bits = slp_net_bits(net);
	for (int i = 0, n = sl_block_params(net, params, 128); i < n; i++)
		r.params += sl_tensor_bytes(sl_param_data(params[i]));
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
	slp_end_well();
	return r;
}

static struct sl_optimizer apart(struct sl_optimizer o)
{
	o.state_on = sl_cpu(-1);
	return o;
}

/* Each parameter comes, each gradient leaves, those of the last unit behind the plan; what else is planned comes on top. */
static void check_copies(const char *name, const struct result *r)
{
	double planned_in = (double)r->info.copied_in, planned_out = (double)r->info.copied_out;
	CHECK_SAYING((double)r->in <= 1.1 * planned_in + 65536 &&
	                     (double)r->out <= 1.1 * planned_out + 0.4 * (double)r->params,
	             "%s: %.2f MB in (%.2f planned), %.2f out (%.2f)", name, 1e-6 * (double)r->in, 1e-6 * planned_in,
	             1e-6 * (double)r->out, 1e-6 * planned_out);
}

/* The limit is `part` of what all takes on the GPU. */
static void compare(const char *name, enum sl_dtype dtype, struct sl_optimizer o, int accumulate, double part)
{
	struct course c = {name, o, accumulate, dtype, 0};
	struct result plain = train(&c), away, small;
	c.optimizer = apart(o);
	away = train(&c);
	c.limit = (size_t)(part * (double)plain.peak);
	small = train(&c);
	for (int i = 0; i < STEPS; i++)
		CHECK_SAYING(away.losses[i] == small.losses[i] && isfinite(small.losses[i]),
		             "%s: loss %d is %.9g, not %.9g", name, i, small.losses[i], away.losses[i]);
	CHECK(small.losses[0] != small.losses[STEPS - 1]);
	CHECK_SAYING(away.bits == small.bits && small.bits, "%s: other parameters", name);
	CHECK_SAYING(small.peak <= c.limit, "%s: %.2f MB, the limit is %.2f", name, 1e-6 * (double)small.peak,
	             1e-6 * (double)c.limit);
	CHECK_SAYING(!small.allocations, "%s: %llu allocations", name, (unsigned long long)small.allocations);
	CHECK(small.info.limit == c.limit);
	if (dtype == SL_FLOAT32) check_copies(name, &small);
	double planned_in = (double)small.info.copied_in, planned_out = (double)small.info.copied_out;
	printf("\n    %s: parameters %.2f MB; on the GPU %.2f MB, with .state_on %.2f, with .memory %.2f: %.2f of it; "
	       "a "
	       "step: %.2f MB in (%.2f planned), %.2f out (%.2f), %d tasks",
	       name, 1e-6 * (double)small.params, 1e-6 * (double)plain.peak, 1e-6 * (double)away.peak,
	       1e-6 * (double)small.peak, (double)small.peak / (double)plain.peak, 1e-6 * (double)small.in,
	       1e-6 * planned_in, 1e-6 * (double)small.out, 1e-6 * planned_out, small.info.segments);
}

static void test_adamw(void)
{
	compare("AdamW", SL_FLOAT32, sl_adamw(.lr = 1e-3), 1, 0.4);
}

/* Updates follow the last gradient. */
static void test_clipped(void)
{
	compare("AdamW, clipped", SL_FLOAT32, sl_adamw(.lr = 1e-3, .clip_norm = 0.1), 1, 0.4);
}

static void test_micro_batches(void)
{
	compare("SGD, micro-batches", SL_FLOAT32, sl_sgd(.lr = 0.1, .momentum = 0.9), 2, 0.5);
}

/* Gradients and parameters are rounded to it as without a limit: attention and products compute half types in another way
 * where an operand does not lie at a multiple of 16 bytes.  The limit has room for some parameters, which come beside the
 * plan. */
static void test_bfloat16(void)
{
	compare("AdamW, bfloat16, clipped", SL_BFLOAT16, sl_adamw(.lr = 1e-3, .clip_norm = 0.1), 1, 0.5);
}

/* ---- writing ------------------------------------------------------------------------------------------------------- */

enum { PROMPT = 8, WRITTEN = 6, REQUESTS = 4 };

struct text {
	int32_t words[REQUESTS][PROMPT + WRITTEN];
	size_t peak;
	uint64_t in, out; /* bytes for each of the last words */
};

/* The most probable word at the end of each row. */
static void choose(sl_tensor *scores, struct text *t, int rows, int place)
{
	sl_shape s = sl_tensor_shape(scores);
	float *all = malloc(sl_tensor_bytes(scores));
	CHECK_OK(sl_read(scores, all, sl_tensor_bytes(scores)));
	for (int r = 0; r < rows; r++) {
		const float *last = all + ((r + 1) * s.dim[1] - 1) * s.dim[2];
		int32_t best = 0;
		for (int32_t k = 1; k < s.dim[2]; k++)
			if (last[k] > last[best]) best = k;
		t->words[r][place] = best;
	}
	free(all);
}

static void write_words(sl_cache *cache, struct text *t, int rows)
{
	struct emu_counts before, after;
	for (int i = 0; i < WRITTEN; i++)
		SL_SCOPE {
			int32_t next[REQUESTS * PROMPT];
			int first = i ? PROMPT + i - 1 : 0, n = i ? 1 : PROMPT;
			for (int r = 0; r < rows; r++)
				memcpy(next + r * n, &t->words[r][first], (size_t)n * sizeof *next);
			if (i == 3) emu_counts_settle(), emu_counts_get(&before);
			sl_tensor *x = sl_from(next, SL_SHAPE(rows, n), .dtype = SL_INT32);
			choose(sl_cache_forward(cache, x), t, rows, PROMPT + i);
			if (i == 0) emu_counts_reset(); /* the parameters were made beside the program */
		}
	emu_counts_settle();
	emu_counts_get(&after);
	t->in = (after.link[EMU_HOST][0].bytes - before.link[EMU_HOST][0].bytes) / (WRITTEN - 3);
	t->out = (after.link[0][EMU_HOST].bytes - before.link[0][EMU_HOST].bytes) / (WRITTEN - 3);
	t->peak = after.peak[0];
}

static struct text generate(size_t limit, int rows)
{
	struct text t;
	memset(&t, 0, sizeof t);
	begin();
	sl_block *net = net_gpt(size);
	CHECK_OK(sl_initialize(net, .init = sl_normal_init(0.2)));
	CHECK_OK(sl_hybridize(net, .memory = limit));
	sl_cache *cache = sl_cache_new(net, size.steps);
	for (int r = 0; r < rows; r++)
		for (int i = 0; i < PROMPT; i++) t.words[r][i] = (100 * r + i * i) % 4140;
	write_words(cache, &t, rows);
	sl_cache_free(cache);
	sl_block_free(net);
	slp_end_well();
	return t;
}

/* Layer by layer, weights come once for each word, or once for a word of every request. */
static void test_writing(void)
{
	const size_t limit = (size_t)11 * MIB;
	struct text small[REQUESTS + 1];
	for (int rows = 1; rows <= REQUESTS; rows += REQUESTS - 1) {
		struct text ample = generate(0, rows), *s = &small[rows];
		*s = generate(limit, rows);
		CHECK_SAYING(!memcmp(ample.words, s->words, sizeof s->words), "%d requests: other words", rows);
		CHECK(ample.words[0][PROMPT] != ample.words[0][PROMPT + 1] || ample.words[0][PROMPT + 2]);
		CHECK_SAYING(s->peak <= limit && ample.peak > limit, "%d requests: %.2f MB, the limit is %.2f", rows,
		             1e-6 * (double)s->peak, 1e-6 * (double)limit);
		CHECK(s->in > 0 && s->in > ample.in);
		printf("\n    %d requests: %.2f MB of %.2f where %.2f are taken; a word: %.2f MB in, %.2f out", rows,
		       1e-6 * (double)s->peak, 1e-6 * (double)limit, 1e-6 * (double)ample.peak, 1e-6 * (double)s->in,
		       1e-6 * (double)s->out);
	}
	CHECK_SAYING((double)small[REQUESTS].in <= 1.2 * (double)small[1].in,
	             "%.2f MB come for one request, %.2f for %d", 1e-6 * (double)small[1].in,
	             1e-6 * (double)small[REQUESTS].in, REQUESTS);
}

static const struct slp_test tests[] = {
        {"AdamW", test_adamw},       {"clipped", test_clipped}, {"micro-batches", test_micro_batches},
        {"bfloat16", test_bfloat16}, {"writing", test_writing}, {0},
};

int main(int argc, char **argv)
{
	setenv("SL_EMU_DEVICES", "1", 1);
	setenv("STARPU_SUBALLOCATOR", "0", 1);
	return slp_test_main(argc, argv, (const struct slp_suite[]){{.name = "gpt", .tests = tests}, {0}});
}
