/* Masters of parameters in half types: steps that are small beside a parameter add up; in files; written by others. */
#include <math.h>
#include <string.h>
#include <starling.h>

#include "check.h"
#include "folder.h"
#include "nn/nn.h"
#include "train/train.h"

/* y = w·x with w at 1, whose gradient by the sum of y is x; a step of 1/1024 is lost beside 1 in bfloat16. */
struct run {
	sl_block *net;
	sl_trainer *trainer;
	sl_step *step;
};

enum way { EAGER, HYBRID, STEP };

static sl_tensor *plain_loss(const char *at, sl_tensor *y, sl_tensor *target)
{
	return sl_mul_at(at, y, target);
}

static struct run run_new(enum sl_dtype dtype, enum way way, struct sl_optimizer optimizer)
{
	struct run r = {.net = sl_dense(1, .no_bias = true)};
	CHECK_OK(sl_initialize(r.net, .init = sl_ones_init(), .dtype = dtype));
	if (way == HYBRID) CHECK_OK(sl_hybridize(r.net));
	r.trainer = sl_trainer_new(r.net, optimizer);
	if (way == STEP) r.step = sl_step_compile(r.net, plain_loss, r.trainer);
	return r;
}

static void run_free(struct run *r)
{
	sl_step_free(r->step);
	sl_trainer_free(r->trainer);
	sl_block_free(r->net);
}

static void go(struct run *r, enum sl_dtype dtype, int steps)
{
	for (int i = 0; i < steps; i++)
		SL_SCOPE {
			sl_tensor *x = sl_ones(SL_SHAPE(1, 1), .dtype = dtype), *y = NULL;
			if (r->step) {
				if (!CHECK_SAYING(sl_step_run(r->step, x, x, NULL) != NULL, "%s", sl_error_message()))
					break;
				continue;
			}
			SL_RECORD
				y = sl_forward(r->net, x);
			CHECK_OK(sl_backward(y));
			CHECK_OK(sl_trainer_step(r->trainer, 1));
		}
}

static double weight(const struct run *r)
{
	double w = NAN;
	SL_SCOPE
		w = sl_item(sl_cast(sl_param_data(sl_block_find(r->net, "weight")), SL_FLOAT32));
	return w;
}

static void test_small_steps(void)
{
	static const enum sl_dtype halves[] = {SL_BFLOAT16, SL_FLOAT16};
	for (int h = 0; h < 2; h++)
		for (enum way way = EAGER; way <= STEP; way++) {
			struct run r = run_new(halves[h], way, sl_sgd(.lr = 0x1p-12));
			go(&r, halves[h], 1024);
			CHECK_SAYING(weight(&r) == 0.75, "%s, way %d: %g", sl_dtype_name(halves[h]), way, weight(&r));
			run_free(&r);
		}
}

/* States are float32, too. */
static void test_optimizers(void)
{
	const struct sl_optimizer list[] = {sl_sgd(.lr = 1e-3, .momentum = 0.9), sl_adam(.lr = 1e-3),
	                                    sl_rmsprop(.lr = 1e-3), sl_sgd(.lr = 1e-3, .clip_norm = 0.5)};
	for (int i = 0; i < 4; i++) {
		struct run half = run_new(SL_BFLOAT16, EAGER, list[i]), full = run_new(SL_FLOAT32, EAGER, list[i]);
		go(&half, SL_BFLOAT16, 20);
		go(&full, SL_FLOAT32, 20);
		CHECK_SAYING(fabs(weight(&half) - weight(&full)) <= 0x1p-9, "%d: %g, %g", i, weight(&half),
		             weight(&full));
		run_free(&half);
		run_free(&full);
	}
}

static void test_files(void)
{
	char params[PATH_MAX], states[PATH_MAX];
	slp_scratch_path("net.safetensors", params);
	slp_scratch_path("trainer.safetensors", states);
	struct run a = run_new(SL_BFLOAT16, EAGER, sl_sgd(.lr = 0x1p-12)),
	           b = run_new(SL_BFLOAT16, STEP, sl_sgd(.lr = 0x1p-12));
	go(&b, SL_BFLOAT16, 1); /* shapes are known, and there are states to write over */
	go(&a, SL_BFLOAT16, 5); /* 1 - 5/4096, which is 1 in bfloat16 */
	CHECK(weight(&a) == 1);
	CHECK_OK(sl_save_params(a.net, params));
	CHECK_OK(sl_trainer_save(a.trainer, states));
	CHECK_OK(sl_load_params(b.net, params));
	CHECK_OK(sl_trainer_load(b.trainer, states));
	go(&b, SL_BFLOAT16, 4);
	CHECK_SAYING(weight(&b) == 1 - 0x1p-8, "%.9g", weight(&b)); /* 1 - 9/4096 is nearer to that than to 1 */
	run_free(&a);
	run_free(&b);
}

static void test_checkpoints(void)
{
	char path[PATH_MAX];
	slp_scratch_path("run.safetensors", path);
	struct run a = run_new(SL_BFLOAT16, EAGER, sl_sgd(.lr = 0x1p-12)),
	           b = run_new(SL_BFLOAT16, EAGER, sl_sgd(.lr = 0x1p-12));
	go(&b, SL_BFLOAT16, 1);
	go(&a, SL_BFLOAT16, 5);
	CHECK_OK(sl_checkpoint_save(path, .net = a.net, .trainer = a.trainer));
	CHECK_OK(sl_checkpoint_load(path, .net = b.net, .trainer = b.trainer));
	go(&b, SL_BFLOAT16, 4);
	CHECK_SAYING(weight(&b) == 1 - 0x1p-8, "%.9g", weight(&b));
	run_free(&a);
	run_free(&b);
}

/* The master of a parameter that the program writes is written, too. */
static void test_written(void)
{
	for (enum way way = EAGER; way <= STEP; way++) {
		struct run r = run_new(SL_BFLOAT16, way, sl_sgd(.lr = 0x1p-12));
		go(&r, SL_BFLOAT16, 3);
		SL_SCOPE
			CHECK_OK(sl_param_set(sl_block_find(r.net, "weight"),
			                      sl_full(SL_SHAPE(1, 1), 0.5, .dtype = SL_BFLOAT16)));
		go(&r, SL_BFLOAT16, 4);
		CHECK_SAYING(fabs(weight(&r) - (0.5 - 0x1p-10)) <= 0x1p-10, "way %d: %.9g", way, weight(&r));
		run_free(&r);
	}
}

/* Networks in float32 have none. */
static void test_none(void)
{
	struct run r = run_new(SL_FLOAT32, EAGER, sl_sgd(.lr = 1e-3));
	go(&r, SL_FLOAT32, 2);
	CHECK(!strcmp(slp_trainer_state_name(r.trainer, 0), "master"));
	CHECK(*slp_trainer_state(r.trainer, 0, 0) == NULL);
	run_free(&r);
}

static const struct slp_test tests[] = {{"small steps", test_small_steps},
                                        {"optimisers", test_optimizers},
                                        {"files", test_files},
                                        {"checkpoints", test_checkpoints},
                                        {"written", test_written},
                                        {"none", test_none},
                                        {0}};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv,
	                     (const struct slp_suite[]){{.name = "masters",
	                                                 .tests = tests,
	                                                 .start = slp_start_with_scratch,
	                                                 .stop = slp_stop_with_scratch},
	                                                {0}});
}
