/* NaN mode (SL_NAN): the call that makes a NaN or an infinity is named, not one that hands it on. */
#include <math.h>
#include <stdlib.h>

#include "blocks.h"

static void begin(void)
{
	setenv("SL_NAN", "1", 1);
	slp_begin((struct sl_config){.teams = 2, .seed = 1});
}

static void end(void)
{
	unsetenv("SL_NAN");
	slp_end();
}

static void test_calls(void)
{
	SL_SCOPE {
		const double values[] = {1, 0, 4};
		sl_tensor *x = sl_from(values, SL_SHAPE(3), .dtype = SL_FLOAT64),
		          *zero = sl_zeros(SL_SHAPE(3), .dtype = SL_FLOAT64);
		sl_tensor *y = sl_add_scalar(sl_mul(sl_log(x), zero), 1); /* -inf, NaN, NaN */
		CHECK_MISTAKE(sl_wait(y), SL_EKERNEL, "log at", __FILE__, "result 0 is infinite at element 1");
		y = sl_exp(sl_div(zero, zero));
		CHECK_MISTAKE(sl_wait(y), SL_EKERNEL, "div at", "result 0 is NaN at element 0");
		for (enum sl_dtype half = SL_BFLOAT16; half <= SL_FLOAT16; half += SL_FLOAT16 - SL_BFLOAT16) {
			y = sl_sqrt(sl_cast(sl_full(SL_SHAPE(2), -1), half));
			CHECK_MISTAKE(sl_wait(y), SL_EKERNEL, "sqrt at", "NaN");
		}
	}
}

/* What was given is not made: masks, values of the program's. */
static void test_given(void)
{
	SL_SCOPE {
		const double values[] = {1, NAN, -INFINITY};
		sl_tensor *x = sl_from(values, SL_SHAPE(3), .dtype = SL_FLOAT64),
		          *mask = sl_from(((float[]){0, 1, 0}), SL_SHAPE(3));
		CHECK_OK(sl_wait(sl_add(x, x)));
		CHECK_OK(sl_wait(sl_softmax(sl_masked_fill(sl_ones(SL_SHAPE(3)), mask, -INFINITY), 0)));
		CHECK_OK(sl_wait(sl_mul_scalar(sl_ones(SL_SHAPE(2)), INFINITY)));
		CHECK_OK(sl_wait(sl_full(SL_SHAPE(2), NAN)));
		sl_tensor *y = sl_sub(sl_full(SL_SHAPE(1), INFINITY), sl_full(SL_SHAPE(1), INFINITY));
		CHECK_MISTAKE(sl_wait(y), SL_EKERNEL, "sub at", "NaN");
	}
}

/* In whole steps, and of what is updated in place. */
static void test_step(void)
{
	sl_block *net = sl_dense(2, .in_units = 2, .no_bias = true);
	CHECK_OK(sl_initialize(net, .init = sl_ones_init()));
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 1e38));
	sl_step *step = sl_step_compile(net, sl_l2_loss_at, trainer);
	SL_SCOPE {
		sl_tensor *x = sl_full(SL_SHAPE(2, 2), 1e3), *t = sl_zeros(SL_SHAPE(2, 2));
		CHECK(sl_step_run(step, x, t, NULL) != NULL);
		CHECK_MISTAKE(sl_wait_all(), SL_EKERNEL, "infinite", "(SL_NAN)");
	}
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
}

/* Without the variable nobody looks. */
static void test_off(void)
{
	slp_end();
	unsetenv("SL_NAN");
	slp_begin((struct sl_config){.teams = 1});
	SL_SCOPE
		CHECK_OK(sl_wait(sl_log(sl_zeros(SL_SHAPE(2)))));
}

static const struct slp_test tests[] = {
        {"calls", test_calls}, {"given", test_given}, {"step", test_step}, {"off", test_off}, {0}};

int main(int argc, char **argv)
{
	return slp_test_main(
	        argc, argv,
	        (const struct slp_suite[]){{.name = "nan", .tests = tests, .before = begin, .after = end}, {0}});
}
