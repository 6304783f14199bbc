/* Caches: with one, a network gives the results for the steps of sequences one after the other that it gives for all of
 * them at once, eagerly and hybridised, in float64, float32 and under autocast; hybridised, by one program for all
 * places. */
#include <math.h>
#include <stdlib.h>

#include "blocks.h"

enum { WORDS = 11, WIDTH = 8, HEADS = 2, CONTEXT = 7, ROWS = 2, MOST = 256 };

/* ---- a network --------------------------------------------------------------------------------------------------- */

static void fill_params(sl_block *block, double size)
{
	sl_param *params[64];
	int n = sl_block_params(block, params, 64);
	for (int i = 0; i < n; i++)
		SL_SCOPE {
			sl_shape shape = sl_param_shape(params[i]);
			sl_tensor *t = sl_add_scalar(sl_arange(0, (double)sl_shape_size(shape), 1), 1 + i);
			t = sl_mul_scalar(sl_sin(sl_square(t)), size);
			CHECK_OK(sl_param_set(
			        params[i], sl_cast(sl_reshape(t, shape), sl_tensor_dtype(sl_param_data(params[i])))));
		}
}

static sl_block *transformer(enum sl_dtype dtype)
{
	sl_block *net = slp_transformer(WORDS, WIDTH, HEADS, CONTEXT, dtype);
	fill_params(net, 0.8);
	return net;
}

static int plans_of(sl_block *net)
{
	int n = 0;
	while (sl_block_plan(net, n)) n++;
	return n;
}

/* ---- the results are those of the whole ------------------------------------------------------------------------- */

struct kind {
	const char *name;
	enum sl_dtype dtype, autocast;
	double tolerance;
};
static const struct kind kinds[] = {
        {"float64", SL_FLOAT64, SL_FLOAT32, 1e-12},
        {"float32", SL_FLOAT32, SL_FLOAT32, 1e-5},
        {"bfloat16", SL_FLOAT32, SL_BFLOAT16, 0.03}, /* some steps of 2^-8, relative to the largest */
        {"float16", SL_FLOAT32, SL_FLOAT16, 0.004},  /* of 2^-11 */
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Whether y has the values of `whole` at places [begin, end). */
static void check_part(sl_tensor *y, sl_tensor *whole, int begin, int end, const struct kind *kind, int prompt)
{
	double *got = slp_numbers(y), *all = slp_numbers(whole), most = 0, error = 0;
	int n = (end - begin) * WORDS;
	for (int i = 0; got && all && i < ROWS * n; i++) {
		double expected = all[(i / n * CONTEXT + begin) * WORDS + i % n];
		most = fmax(most, fabs(expected));
		error = fmax(error, fabs(got[i] - expected));
	}
	CHECK_SAYING(got && all && error <= kind->tolerance * most, "%s, after %d steps: %g of %g at place %d",
	             kind->name, prompt, error, most, begin);
	free(got);
	free(all);
}

/* A prompt, then the others, so many at once. */
static void check_steps(sl_block *net, const struct kind *kind, sl_tensor *words, sl_tensor *whole, int prompt, int by)
{
	sl_cache *cache = sl_cache_new(net, CONTEXT);
	for (int begin = 0, end = prompt; begin < CONTEXT; begin = end, end = end + by < CONTEXT ? end + by : CONTEXT)
		SL_SCOPE {
			sl_tensor *y = NULL;
			SL_AUTOCAST(kind->autocast)
			y = sl_cache_forward(cache, sl_slice(words, 1, begin, end, 1));
			check_part(y, whole, begin, end, kind, prompt);
			CHECK(sl_cache_length(cache) == end);
		}
	sl_cache_free(cache);
}

static sl_tensor *some_words(void)
{
	int32_t words[ROWS * CONTEXT];
	for (int i = 0; i < ROWS * CONTEXT; i++) words[i] = (i * i + 3 * i) % WORDS;
	return sl_from(words, SL_SHAPE(ROWS, CONTEXT), .dtype = SL_INT32);
}

/* The results for all steps at once, in float64. */
static sl_tensor *exactly(sl_tensor *words)
{
	sl_block *net = transformer(SL_FLOAT64);
	sl_tensor *whole = sl_forward(net, words);
	sl_block_free(net);
	return whole;
}

static void check_all_prompts(const struct kind *kind, bool hybrid)
{
	sl_block *net = transformer(kind->dtype);
	if (hybrid) CHECK_OK(sl_hybridize(net));
	SL_SCOPE {
		sl_tensor *words = some_words(), *whole = NULL, *exact = exactly(words);
		SL_AUTOCAST(kind->autocast)
		whole = sl_forward(net, words);
		check_steps(net, kind, words, exact, 3, 1);
		for (int prompt = 1; prompt <= CONTEXT; prompt++)
			for (int by = 1; by <= 3; by += 2) check_steps(net, kind, words, whole, prompt, by);
		CHECK(plans_of(net) == hybrid); /* those of caches have gone with them */
	}
	sl_block_free(net);
}

static void test_places(void)
{
	for (int i = 0; i < KINDS; i++)
		for (int hybrid = 0; hybrid < 2; hybrid++) check_all_prompts(&kinds[i], hybrid);
}

/* ---- writing, beyond the window ---------------------------------------------------------------------------------- */

enum { WRITTEN = 3 * CONTEXT };

/* The word with the largest score at a place. */
static int best(sl_tensor *y, int64_t place)
{
	return (int)sl_item(sl_argmax(sl_reshape(sl_slice(y, 1, place, place + 1, 1), SL_SHAPE(WORDS)), 0));
}

static sl_tensor *window(const int32_t *words, int64_t n)
{
	return sl_from(words, SL_SHAPE(1, n), .dtype = SL_INT32);
}

/* The whole window each time, as nanoGPT does. */
static int next_of_whole(sl_block *net, const int32_t *words, int n)
{
	int from = n > CONTEXT ? n - CONTEXT : 0, word = 0;
	SL_SCOPE
		word = best(sl_forward(net, window(words + from, n - from)), n - from - 1);
	return word;
}

/* The last one alone, or, where the cache is full, the window again. */
static int next_of_cache(sl_cache *cache, const int32_t *words, int n)
{
	int64_t known = sl_cache_length(cache), from = n > CONTEXT ? n - CONTEXT : known;
	int word = 0;
	if (n > CONTEXT) CHECK_OK(sl_cache_cut(cache, 0));
	SL_SCOPE
		word = best(sl_cache_forward(cache, window(words + from, n - from)), n - from - 1);
	return word;
}

static void test_writing(void)
{
	for (int hybrid = 0; hybrid < 2; hybrid++) {
		int32_t words[WRITTEN] = {3, 1}, other = 0, before = 0;
		sl_block *net = transformer(SL_FLOAT32);
		sl_cache *cache = sl_cache_new(net, CONTEXT);
		if (hybrid) CHECK_OK(sl_hybridize(net));
		for (int n = 2; n < WRITTEN; n++) {
			int whole = next_of_whole(net, words, n), word = next_of_cache(cache, words, n);
			CHECK_SAYING(word == whole, "word %d is %d, and %d without a cache", n, word, whole);
			words[n] = (whole + n * n) % WORDS; /* it would be the same word for ever */
			other += whole != before;
			before = whole;
		}
		CHECK_SAYING(other > WRITTEN / 3, "%d of %d words tell something", other, WRITTEN);
		sl_cache_free(cache);
		sl_block_free(net);
	}
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* A prompt that is filled up, then cut: what stood behind it is not seen, and there are two programs in all. */
static void test_one_program(void)
{
	const struct kind *kind = &kinds[0];
	sl_block *net = transformer(kind->dtype);
	SL_SCOPE {
		sl_tensor *words = some_words(), *whole = sl_forward(net, words);
		CHECK_OK(sl_hybridize(net));
		sl_cache *cache = sl_cache_new(net, CONTEXT);
		for (int prompt = 1; prompt < CONTEXT; prompt++) {
			sl_tensor *junk[] = {sl_slice(words, 1, 0, prompt, 1),
			                     sl_full(SL_SHAPE(ROWS, CONTEXT - prompt), 5, .dtype = SL_INT32)};
			CHECK_OK(sl_cache_cut(cache, 0));
			sl_tensor *y = sl_cache_forward(cache, sl_concat(junk, 2, 1));
			CHECK_OK(sl_cache_cut(cache, prompt));
			check_part(sl_slice(y, 1, 0, prompt, 1), whole, 0, prompt, kind, prompt);
			for (int i = prompt; i < CONTEXT; i++)
				check_part(sl_cache_forward(cache, sl_slice(words, 1, i, i + 1, 1)), whole, i, i + 1,
				           kind, prompt);
		}
		CHECK_SAYING(plans_of(net) == 2, "%d programs", plans_of(net));
		sl_cache_free(cache);
		CHECK(plans_of(net) == 0);
	}
	sl_block_free(net);
}

/* Caches of one network do not know of each other, nor does the network without one. */
static void test_two_caches(void)
{
	const struct kind *kind = &kinds[0];
	sl_block *net = transformer(kind->dtype);
	SL_SCOPE {
		sl_tensor *words = some_words(), *turned = sl_flip(words, SL_AXES(1));
		sl_tensor *given[] = {words, turned}, *whole[] = {sl_forward(net, words), sl_forward(net, turned)};
		CHECK_OK(sl_hybridize(net));
		sl_cache *cache[] = {sl_cache_new(net, CONTEXT), sl_cache_new(net, CONTEXT)};
		for (int i = 0; i < CONTEXT; i++)
			for (int c = 0; c < 2; c++) {
				sl_tensor *x = sl_slice(given[c], 1, i, i + 1, 1);
				check_part(sl_cache_forward(cache[c], x), whole[c], i, i + 1, kind, 0);
				check_part(sl_forward(net, given[c]), whole[c], 0, CONTEXT, kind, 0);
			}
		for (int c = 0; c < 2; c++) sl_cache_free(cache[c]);
		CHECK(plans_of(net) == 1);
	}
	sl_block_free(net);
}

/* A block inside that is hybridised by itself runs imperatively. */
static void test_hybrid_inside(void)
{
	const struct kind *kind = &kinds[0];
	sl_block *net = transformer(kind->dtype);
	SL_SCOPE {
		sl_tensor *words = some_words(), *whole = sl_forward(net, words);
		CHECK_OK(sl_hybridize(sl_block_child(net, 2)));
		for (int prompt = 1; prompt < 3; prompt++) check_steps(net, kind, words, whole, prompt, 1);
		CHECK(plans_of(sl_block_child(net, 2)) == 0);
	}
	sl_block_free(net);
}

/* ---- mistakes ---------------------------------------------------------------------------------------------------- */

static void check_refused(sl_block *net, enum sl_status status, const char *text)
{
	CHECK_OK(sl_initialize(net));
	sl_cache *cache = sl_cache_new(net, 4);
	for (int hybrid = 0; hybrid < 2; hybrid++)
		SL_SCOPE {
			CHECK_NULL(sl_cache_forward(cache, sl_zeros(SL_SHAPE(1, 2, 4))), status, text);
			CHECK(sl_cache_length(cache) == 0);
			CHECK_OK(sl_hybridize(net));
		}
	sl_cache_free(cache);
	sl_block_free(net);
}

static void test_networks(void)
{
	sl_block *twice = sl_multi_head_attention(4, 2, .causal = true);
	check_refused(sl_multi_head_attention(4, 2), SL_EUNSUPPORTED, "causal self-attention");
	check_refused(sl_sequential(sl_gru(3)), SL_EUNSUPPORTED, "does not keep its state");
	check_refused(sl_sequential(twice, sl_block_retain(twice)), SL_EUNSUPPORTED, "several times");
	check_refused(sl_position_embedding(3, 4), SL_ESHAPE, "has 3 positions");
}

static sl_cache *shared;

static sl_tensor *forward_with_cache(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)self;
	(void)nin;
	return sl_cache_forward(shared, in[0]);
}

static void test_mistakes(void)
{
	SL_SCOPE {
		sl_block *net = sl_multi_head_attention(4, 2, .causal = true);
		sl_tensor *x = sl_ones(SL_SHAPE(1, 3, 4));
		CHECK_OK(sl_initialize(net));
		CHECK_NULL(sl_cache_new(net, 0), SL_EINVAL, "0 steps");
		CHECK_NULL(sl_cache_new(NULL, 1), SL_EINVAL, "block");
		sl_cache *cache = shared = sl_cache_new(net, 4);
		CHECK_NULL(sl_cache_forward(cache, sl_ones(SL_SHAPE(4))), SL_ESHAPE, "(rows, steps, …) needed");
		CHECK_NULL(sl_cache_forward(NULL, x), SL_EINVAL, "cache");
		CHECK(sl_cache_forward(cache, x) != NULL);
		CHECK_NULL(sl_cache_forward(cache, x), SL_ESHAPE, "3 more steps, but 3 of 4 are in use");
		CHECK_NULL(sl_cache_forward(cache, sl_ones(SL_SHAPE(2, 1, 4))), SL_ESHAPE, "cached_attention");
		CHECK_MISTAKE(sl_cache_cut(cache, 4), SL_EINVAL, "4 of 3 steps");
		CHECK_MISTAKE(sl_cache_cut(cache, -1), SL_EINVAL, "-1 of 3 steps");
		CHECK_MISTAKE(sl_cache_cut(NULL, 0), SL_EINVAL, "cache");
		CHECK(sl_cache_length(cache) == 3 && sl_cache_length(NULL) == 0);
		sl_block *around = slp_user_block(forward_with_cache);
		CHECK_OK(sl_hybridize(around));
		CHECK_NULL(sl_forward(around, sl_ones(SL_SHAPE(1, 1, 4))), SL_ESTATE, "cannot be traced");
		sl_block_free(around);
		CHECK(sl_cache_length(cache) == 3);
		sl_cache_free(cache);
		sl_cache_free(NULL);
		sl_block_free(net);
	}
}

/* No place for a step: the operation itself finds out when it runs. */
static void test_full(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(1, 1, 4)), *kept = sl_zeros(SL_SHAPE(1, 3, 4));
		sl_tensor *place = sl_full(SL_SHAPE(1), 3, .dtype = SL_INT32);
		sl_tensor *y = sl_cached_attention(x, x, x, kept, sl_zeros(SL_SHAPE(1, 3, 4)), place);
		if (!sl_device_count(SL_DEVICE_CPU)) CHECK_ALL(y, NAN);
		else CHECK_MISTAKE(sl_wait_all(), SL_EINVAL, "1 steps at place 3: the keys have 3 places");
	}
}

static const struct slp_test tests[] = {
        {"all places", test_places},
        {"writing", test_writing},
        {"one program for all places", test_one_program},
        {"two caches", test_two_caches},
        {"a hybrid block inside", test_hybrid_inside},
        {"networks without one", test_networks},
        {"mistakes", test_mistakes},
        {"full", test_full},
        {NULL, NULL},
};

static const struct slp_suite suites[] = {
        {"cache", tests, slp_start_engine, slp_stop_engine, NULL, NULL},
        {NULL, NULL, NULL, NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv, suites);
}
