/* What finds mistakes: gradients against differences, derivatives of gradients, hooks, summaries of several inputs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "alloc.h"
#include "blocks.h"

/* ---- sl_gradcheck ------------------------------------------------------------------------------------------------ */

static sl_tensor *right(void *context, sl_tensor *const *in, int nin)
{
	(void)context;
	return nin == 2 ? sl_mul(sl_tanh(in[0]), in[1]) : NULL;
}

/* The second factor's element 2 counts, but no gradient flows to it. */
static sl_tensor *wrong(void *context, sl_tensor *const *in, int nin)
{
	sl_tensor *first = sl_slice(in[1], 0, 0, 2, 1), *last = sl_detach(sl_slice(in[1], 0, 2, 4, 1)),
	          *y[] = {first, last};
	(void)context, (void)nin;
	return sl_mul(sl_tanh(in[0]), sl_concat(y, 2, 0));
}

static sl_tensor *random_function(void *context, sl_tensor *const *in, int nin)
{
	(void)context, (void)nin;
	return sl_dropout(in[0], 0.5);
}

static sl_tensor *rounded(void *context, sl_tensor *const *in, int nin)
{
	(void)context, (void)nin;
	return sl_cast(in[0], SL_FLOAT32);
}

static sl_tensor *unused(void *context, sl_tensor *const *in, int nin)
{
	(void)context, (void)nin;
	return sl_gather(in[0], in[2]);
}

static void test_functions(void)
{
	SL_SCOPE {
		sl_tensor *in[] = {sl_normal(SL_SHAPE(3, 4), 0, 1), sl_normal(SL_SHAPE(4), 0, 1),
		                   sl_from(((int32_t[]){2, 0}), SL_SHAPE(2), .dtype = SL_INT32)};
		struct sl_gradcheck_worst worst;
		struct sl_rng before = sl_rng_get();
		CHECK_OK(sl_gradcheck(right, NULL, in, 2, .worst = &worst));
		CHECK_SAYING(worst.error < 1e-8, "%g", worst.error);
		CHECK_OK(sl_gradcheck(random_function, NULL, in, 1));
		CHECK(sl_rng_get().stream == before.stream);
		CHECK_OK(sl_gradcheck(unused, NULL, in, 3));
		CHECK_MISTAKE(sl_gradcheck(wrong, NULL, in, 2, .worst = &worst), SL_EINVAL, "input 1",
		              "central differences");
		CHECK_SAYING(worst.input == 1 && !worst.param && worst.element >= 2 && worst.gradient == 0 &&
		                     worst.difference != 0,
		             "input %d, element %d: %g, %g", worst.input, (int)worst.element, worst.gradient,
		             worst.difference);
		CHECK_OK(sl_gradcheck(wrong, NULL, in, 2, .elements = 1)); /* the first of each */
		CHECK_MISTAKE(sl_gradcheck(rounded, NULL, in, 1), SL_EDTYPE, "float32, not float64");
		CHECK_MISTAKE(sl_gradcheck(right, NULL, in, 1), SL_EINVAL, "returned NULL");
		CHECK_MISTAKE(sl_gradcheck(NULL, NULL, in, 1), SL_EINVAL, "NULL");
		CHECK_MISTAKE(sl_gradcheck(right, NULL, NULL, 1), SL_EINVAL, "no inputs");
		CHECK_MISTAKE(sl_gradcheck(right, NULL, in, 2, .step = -1), SL_EINVAL, "negative");
	}
}

/* A layer whose forward keeps the bias from its gradient. */
static sl_tensor *careless(sl_block *self, sl_tensor *const *in, int nin)
{
	sl_param *bias = NULL;
	(void)nin;
	sl_block_params(self, &bias, 1);
	return sl_add(in[0], sl_detach(sl_param_use(bias, in[0])));
}

static void test_blocks(void)
{
	sl_block *net = sl_sequential(sl_dense(5, .activation = SL_TANH), sl_batch_norm_layer(), sl_dense(2)),
	         *bad = slp_user_block(careless);
	sl_block_param(bad, "bias", SL_SHAPE(3), .init = sl_ones_init());
	CHECK_OK(sl_initialize(net, .init = sl_normal_init(1), .dtype = SL_FLOAT64));
	CHECK_OK(sl_initialize(bad, .dtype = SL_FLOAT64));
	SL_SCOPE {
		struct sl_gradcheck_worst worst;
		sl_tensor *x = sl_normal(SL_SHAPE(4, 3), 0, 1);
		CHECK_OK(sl_gradcheck_block(net, &x, 1, .worst = &worst)); /* shapes become known by it */
		CHECK_SAYING(worst.error < 1e-7, "%g", worst.error);
		sl_tensor *weight = sl_clone(slp_data(net, "0.weight")),
		          *mean = sl_clone(slp_data(net, "1.running_mean"));
		CHECK_OK(sl_hybridize(net));
		CHECK_OK(sl_gradcheck_block(net, &x, 1, .elements = 3));
		CHECK_SAME(slp_data(net, "0.weight"), weight);
		CHECK_SAME(slp_data(net, "1.running_mean"), mean);
		CHECK_MISTAKE(sl_gradcheck_block(bad, &x, 1, .worst = &worst), SL_EINVAL, "_bias",
		              "sl_backward gives 0");
		CHECK(worst.param == sl_block_find(bad, "bias") && worst.input == -1);
		CHECK_ALL(slp_data(bad, "bias"), 1);
		CHECK_MISTAKE(sl_gradcheck_block(NULL, &x, 1), SL_EINVAL);
	}
	sl_block_free(net);
	sl_block_free(bad);
}

/* An allocation that fails is SL_ENOMEM, and the block is as it was. */
static void test_memory(void)
{
	sl_block *net = sl_sequential(sl_dense(2, .in_units = 2), sl_batch_norm_layer(.in_channels = 2));
	CHECK_OK(sl_initialize(net, .init = sl_normal_init(1), .dtype = SL_FLOAT64));
	bool whole = false;
	for (long k = 1; k < 100000 && !whole; k++)
		SL_SCOPE {
			sl_tensor *x = sl_normal(SL_SHAPE(3, 2), 0, 1), *weight = sl_clone(slp_data(net, "0.weight"));
			CHECK_OK(sl_wait_all());
			slp_fail_alloc = k;
			enum sl_status s = sl_gradcheck_block(net, &x, 1, .elements = 1);
			whole = slp_fail_alloc > 0;
			slp_fail_alloc = 0;
			CHECK_SAYING(s == SL_OK || s == SL_ENOMEM, "allocation %ld: %s", k, sl_error_message());
			sl_error_clear();
			sl_wait_all();
			sl_error_clear();
			CHECK_SAYING(slp_same_bits(slp_data(net, "0.weight"), weight), "allocation %ld: another weight",
			             k);
		}
	CHECK(whole);
	sl_block_free(net);
}

/* ---- second derivatives ------------------------------------------------------------------------------------------ */

static void test_second(void)
{
	SL_SCOPE {
		sl_tensor *x = slp_leaf(3, 1), *y, *g, *z = NULL;
		SL_RECORD {
			y = sl_sum(sl_mul(x, sl_square(x)));
			CHECK_OK(sl_backward_heads(&y, 1, .retain_graph = true));
			g = sl_grad(x);
			CHECK_NULL(sl_square(g), SL_EUNSUPPORTED, "square", "was not recorded");
			CHECK_NULL(sl_add(x, g), SL_EUNSUPPORTED, "argument 1");
			CHECK_NULL(sl_reshape(g, SL_SHAPE(3, 1)), SL_EUNSUPPORTED, "was not recorded");
			z = sl_sum(sl_mul(x, sl_detach(g)));
		}
		CHECK_MISTAKE(sl_backward(g), SL_EUNSUPPORTED, "was not recorded");
		CHECK_VALUES(sl_square(g), 9, 144, 729);
		SL_RECORD
			SL_PAUSE
				CHECK_VALUES(sl_add(x, g), 4, 14, 30);
		CHECK_OK(sl_backward(z));
		CHECK_VALUES(sl_grad(x), 3, 12, 27);
	}
}

/* ---- hooks ------------------------------------------------------------------------------------------------------- */

struct seen {
	int calls, symbols, nin, nout;
	double sum;
};

static void look(sl_block *block, sl_tensor *const *in, int nin, sl_tensor *const *out, int nout, void *context)
{
	struct seen *s = context;
	CHECK(*sl_block_name(block));
	s->calls++;
	s->nin = nin;
	s->nout = nout;
	if (sl_is_symbol(out[0])) s->symbols++;
	else
		SL_PAUSE
			s->sum = sl_item(sl_sum(out[0])) + sl_item(sl_sum(in[0]));
}

static void test_hooks(void)
{
	sl_block *inner = sl_dense(2, .no_bias = true), *net = sl_sequential(inner, sl_dense(1, .no_bias = true));
	struct seen seen = {0}, outer = {0};
	CHECK_OK(sl_initialize(net, .init = sl_ones_init()));
	CHECK_OK(sl_block_hook(inner, look, &seen));
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(1, 3)), *y;
		SL_RECORD
			y = sl_forward(net, x);
		CHECK_OK(sl_backward(y));
		CHECK(seen.calls == 1 && seen.nin == 1 && seen.nout == 1 && seen.symbols == 0 && seen.sum == 9);
		CHECK_OK(sl_hybridize(net));
		CHECK_OK(sl_block_hook(net, look, &outer));
		for (int i = 0; i < 3; i++) sl_forward(net, x);
		CHECK_SAYING(seen.calls == 2 && seen.symbols == 1, "%d calls", seen.calls);
		CHECK_SAYING(outer.calls == 4 && outer.symbols == 1 && outer.sum == 9, "%d calls, %g", outer.calls,
		             outer.sum);
		CHECK_OK(sl_block_hook(inner, NULL, NULL));
		CHECK_OK(sl_block_hook(net, NULL, NULL));
		sl_forward(net, x);
		CHECK(seen.calls == 2 && outer.calls == 4);
		CHECK_MISTAKE(sl_block_hook(NULL, look, NULL), SL_EINVAL);
	}
	sl_block_free(net);
}

/* ---- summaries --------------------------------------------------------------------------------------------------- */

static void test_summary(void)
{
	int freed = 0;
	struct slp_scaled *block = slp_scaled_new(&freed);
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	CHECK_OK(sl_initialize(&block->base));
	SL_SCOPE {
		sl_tensor *in[] = {sl_ones(SL_SHAPE(2, 4)), sl_ones(SL_SHAPE(2, 3))};
		CHECK_OK(sl_summary_of(f, &block->base, in, 2));
		CHECK_MISTAKE(sl_summary_of(f, &block->base, NULL, 2), SL_EINVAL);
		fclose(f);
		/* the layer's 2 · 2 · 4 · 3 flops of its product, at least, and its 15 parameters */
		CHECK_SAYING(strstr(text, "(2, 3)") && strstr(text, " 15 "), "%s", text);
	}
	free(text);
	sl_block_free(&block->base);
	CHECK(freed == 1);
}

static const struct slp_test tests[] = {{"functions", test_functions},
                                        {"blocks", test_blocks},
                                        {"memory", test_memory},
                                        {"second derivatives", test_second},
                                        {"hooks", test_hooks},
                                        {"summary", test_summary},
                                        {0}};

int main(int argc, char **argv)
{
	return slp_test_main(
	        argc, argv,
	        (const struct slp_suite[]){
	                {.name = "gradcheck", .tests = tests, .start = slp_start_engine, .stop = slp_stop_engine},
	                {0}});
}
