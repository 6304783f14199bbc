/* Parameters by patterns, in eager steps, hybrid blocks, whole steps and shards: learning rates and decay of their own,
 * freezing; micro-batches; moving averages; all of them in checkpoints. */
#include <starling.h>

#include "alloc.h"
#include "groups.h"
#include "networks.h"
#include "nn/nn.h"

/* ---- four steps of torch.optim with parameter groups, float64 ---------------------------------------------------- */

static void set_groups(sl_trainer *t)
{
	CHECK_OK(sl_trainer_group(t, "*bias", .no_decay = true));
	CHECK_OK(sl_trainer_group(t, "0.*", .lr_scale = 0.5));
}

static const struct {
	const char *name;
	struct sl_optimizer optimizer;
	double close, expected[NUMBERS];
} torch_groups[] = {
        {"SGD",
         {.kind = SL_SGD, .lr = .1, .momentum = .9, .weight_decay = .1},
         1e-10,
         {0.413914210983, -0.918461293056, 0.360952014928, 0.634995115988, -0.467216309248, 0.234599136319,
          0.209116916076, -0.229027404399, 0.380183633813, 0.360591105199, -0.182685279711, 0.589614217313,
          0.591743912184}},
        {"AdamW",
         {.kind = SL_ADAMW, .lr = .1, .weight_decay = .1},
         1e-10,
         {0.295287116184, -0.834945013608, 0.434999833977, 0.549848982025, -0.494262067936, 0.314979224228,
          0.279100425396, -0.383229005914, 0.491540590823, 0.578138991302, -0.16301178421, 0.634252095117,
          0.612267884103}},
        {"RMSprop",
         {.kind = SL_RMSPROP, .lr = .1, .alpha = .9, .weight_decay = .1},
         1e-10,
         {0.0679742969969, -0.799240497056, 0.456889001734, 0.455802028876, -0.619279317516, 0.288604908361,
          0.270337132702, -0.508321514905, 0.491798402131, 0.439658489155, -0.404072241587, 0.979112987401,
          0.634735181676}},
        {"SGD, clip_grad_norm_(0.25)",
         {.kind = SL_SGD, .lr = .1, .momentum = .9, .weight_decay = .1, .clip_norm = .25},
         3e-6, /* PyTorch adds 1e-6 to the norm */
         {0.465893821704, -0.943876021034, 0.269351505871, 0.695450553901, -0.473035610947, 0.144717656738,
          0.128673621029, -0.207110180375, 0.317317364518, 0.77892917127, -0.38192823517, 0.30666324552,
          0.33455499385}},
};

static void test_groups(void)
{
	for (size_t k = 0; k < sizeof torch_groups / sizeof *torch_groups; k++)
		for (enum way way = EAGER; way < WAYS; way++) {
			struct run r = run_new(way, SL_FLOAT64, torch_groups[k].optimizer);
			set_groups(r.trainer);
			go(&r, SL_FLOAT64, 4);
			CHECK(sl_trainer_steps(r.trainer) == 4);
			check_numbers(torch_groups[k].name, &r, torch_groups[k].expected, torch_groups[k].close);
			run_free(&r);
		}
}

/* The same bits as steps by hand; programs that were compiled before follow. */
static void test_changed(void)
{
	double eager[NUMBERS], compiled[NUMBERS];
	for (enum way way = EAGER; way <= STEP; way += STEP) {
		struct run r = run_new(way, SL_FLOAT32, sl_adamw(.lr = .1, .weight_decay = .1, .clip_norm = .25));
		if (r.step) {
			sl_step_free(r.step);
			r.step = sl_step_compile(r.net, sl_l2_loss_at, r.trainer, .passes_off = SLP_ROUNDING);
		}
		go(&r, SL_FLOAT32, 2);
		set_groups(r.trainer);
		go(&r, SL_FLOAT32, 2);
		CHECK_OK(sl_freeze(r.net, "0.w*"));
		go(&r, SL_FLOAT32, 1);
		CHECK_OK(sl_unfreeze(r.net, "0.*"));
		go(&r, SL_FLOAT32, 2);
		numbers_of(&r, way == EAGER ? eager : compiled);
		run_free(&r);
	}
	for (int i = 0; i < NUMBERS; i++)
		CHECK_SAYING(eager[i] == compiled[i], "%d: %.9g, %.9g", i, eager[i], compiled[i]);
}

/* A norm that is no number makes NaN of all. */
static void test_nan(void)
{
	struct run r = run_new(EAGER, SL_FLOAT32, sl_sgd(.lr = .1, .clip_norm = 1));
	set_groups(r.trainer);
	SL_SCOPE {
		sl_tensor *x = sl_full(SL_SHAPE(1, 2), 1), *loss;
		SL_RECORD
			loss = sl_mul_scalar(sl_forward(r.net, x), NAN);
		CHECK_OK(sl_backward(loss));
		CHECK_OK(sl_trainer_step(r.trainer, 1));
		double got[NUMBERS];
		numbers_of(&r, got);
		for (int i = 0; i < NUMBERS; i++) CHECK_SAYING(isnan(got[i]), "%d: %g", i, got[i]);
	}
	run_free(&r);
}

/* ---- freezing ---------------------------------------------------------------------------------------------------- */

static void test_frozen(void)
{
	static const double expected[NUMBERS] = {.5,
	                                         -1,
	                                         .25,
	                                         .75,
	                                         -.5,
	                                         .125,
	                                         .1,
	                                         -.2,
	                                         .3,
	                                         0.740935947311,
	                                         -0.360985416852,
	                                         0.407460214936,
	                                         0.407498277583};
	for (enum way way = EAGER; way < WAYS; way++) {
		struct run r = run_new(way, SL_FLOAT64, sl_sgd(.lr = .1));
		CHECK_OK(sl_freeze(r.net, "0.*"));
		go(&r, SL_FLOAT64, 4);
		check_numbers("frozen", &r, expected, 1e-10);
		run_free(&r);
	}
}

/* Those that get their values later, too; running statistics are no parameters that are trained. */
static void test_frozen_before(void)
{
	sl_block *net = sl_sequential(sl_dense(3), sl_batch_norm_layer(), sl_dense(1));
	CHECK_OK(sl_freeze(net, "[01].*"));
	CHECK_OK(sl_initialize(net));
	SL_SCOPE {
		sl_tensor *x = sl_normal(SL_SHAPE(4, 2), 0, 1), *loss;
		sl_trainer *t = sl_trainer_new(net, sl_sgd(.lr = .1));
		sl_forward(net, x);
		sl_tensor *before = sl_clone(slp_data(net, "0.weight")), *last = sl_clone(slp_data(net, "2.weight"));
		SL_RECORD
			loss = sl_sum(sl_forward(net, x));
		CHECK_OK(sl_backward(loss));
		CHECK_OK(sl_trainer_step(t, 4));
		CHECK_SAME(slp_data(net, "0.weight"), before);
		CHECK(!slp_same_bits(slp_data(net, "2.weight"), last));
		CHECK_MISTAKE(sl_freeze(net, "*running*"), SL_EINVAL, "*running*", "no parameter");
		CHECK_MISTAKE(sl_freeze(NULL, "*"), SL_EINVAL);
		CHECK_MISTAKE(sl_freeze(net, NULL), SL_EINVAL);
		sl_trainer_free(t);
	}
	sl_block_free(net);
}

static void test_mistakes(void)
{
	struct run r = run_new(EAGER, SL_FLOAT32, sl_sgd(.lr = .1));
	CHECK_MISTAKE(sl_trainer_group(r.trainer, "2.*", .no_decay = true), SL_EINVAL, "2.*");
	CHECK_MISTAKE(sl_trainer_group(r.trainer, "*", .lr_scale = -1), SL_EINVAL, "lr_scale");
	CHECK_MISTAKE(sl_trainer_group(r.trainer, "*", .weight_decay = NAN), SL_EINVAL, "weight_decay");
	CHECK_MISTAKE(sl_trainer_group(r.trainer, "*", .weight_decay = 1, .no_decay = true), SL_EINVAL, "no_decay");
	CHECK_MISTAKE(sl_trainer_group(r.trainer, "*"), SL_EINVAL, "nothing");
	CHECK_MISTAKE(sl_trainer_group(NULL, "*", .lr_scale = 1), SL_EINVAL);
	CHECK_MISTAKE(sl_trainer_use_averages(r.trainer, true), SL_ESTATE, ".average");
	CHECK_NULL(sl_trainer_new(r.net, sl_sgd(.average = 1)), SL_EINVAL, ".average");
	CHECK_NULL(sl_step_compile(r.net, sl_l2_loss_at, r.trainer, .accumulate = -1), SL_EINVAL, ".accumulate");
	run_free(&r);
}

/* ---- averages ---------------------------------------------------------------------------------------------------- */

static const double torch_adam[NUMBERS] = {0.110863095575,  -0.689590844832, 0.626465229678,  0.377154790882,
                                           -0.585377164083, 0.478723125095,  0.442265671542,  -0.57843704618,
                                           0.635606943796,  0.619800396131,  -0.249124286236, 0.649114156147,
                                           0.592855475396};
static const double torch_average[NUMBERS] = {0.309978232305,  -0.834001958946, 0.437048923261,  0.564258008508,
                                              -0.502559345603, 0.305750682179,  0.27546237019,   -0.386890419702,
                                              0.474241686859,  0.811767132039,  -0.355679498418, 0.444737977732,
                                              0.425881286487};

static void test_averages(void)
{
	for (enum way way = EAGER; way < WAYS; way++) {
		struct run r = run_new(way, SL_FLOAT64, sl_adam(.lr = .1, .average = .75));
		CHECK_OK(sl_trainer_use_averages(r.trainer, true)); /* there are none yet */
		CHECK_OK(sl_trainer_use_averages(r.trainer, false));
		go(&r, SL_FLOAT64, 2);
		for (int i = 0; i < 2; i++) CHECK_OK(sl_trainer_use_averages(r.trainer, true));
		CHECK_OK(sl_trainer_use_averages(r.trainer, false));
		go(&r, SL_FLOAT64, 2);
		check_numbers("Adam", &r, torch_adam, 1e-10);
		CHECK_OK(sl_trainer_use_averages(r.trainer, true));
		check_numbers("averages", &r, torch_average, 1e-10);
		if (!r.step) {
			part(&r, SL_FLOAT64, 0, ROWS);
			CHECK_MISTAKE(sl_trainer_step(r.trainer, ROWS), SL_ESTATE, "sl_trainer_use_averages");
		}
		CHECK_MISTAKE(sl_trainer_save(r.trainer, "none.params"), SL_ESTATE, "replaced by their averages");
		CHECK_MISTAKE(sl_checkpoint_save("none.safetensors", .trainer = r.trainer), SL_ESTATE,
		              "replaced by their averages");
		CHECK_OK(sl_trainer_use_averages(r.trainer, false));
		check_numbers("Adam again", &r, torch_adam, 1e-10);
		run_free(&r);
	}
}

/* The averages of parameters in half types are those of their masters. */
static void test_halves(void)
{
	for (enum way way = EAGER; way <= STEP; way += STEP) {
		struct run r = run_new(way, SL_BFLOAT16, sl_adam(.lr = .1, .average = .75));
		go(&r, SL_BFLOAT16, 2);
		CHECK_OK(sl_trainer_use_averages(r.trainer, true));
		CHECK_OK(sl_trainer_use_averages(r.trainer, false));
		go(&r, SL_BFLOAT16, 2);
		check_numbers("bfloat16", &r, torch_adam, 0.05);
		CHECK_OK(sl_trainer_use_averages(r.trainer, true));
		check_numbers("averages in bfloat16", &r, torch_average, 0.05);
		run_free(&r);
	}
}

/* ---- going on ---------------------------------------------------------------------------------------------------- */

static struct run resumable(enum way way)
{
	struct run r =
	        run_new(way, SL_FLOAT32, sl_adamw(.lr = .1, .weight_decay = .1, .average = .75, .clip_norm = .25));
	set_groups(r.trainer);
	return r;
}

/* Parameters and averages after six steps. */
static void finish(struct run *r, int steps, double numbers[2][NUMBERS])
{
	go(r, SL_FLOAT32, steps);
	numbers_of(r, numbers[0]);
	CHECK_OK(sl_trainer_use_averages(r->trainer, true));
	numbers_of(r, numbers[1]);
	run_free(r);
}

/* Saved after three steps and, of micro-batches, one micro-batch; loaded where steps have been made before. */
static void resume(enum way way, bool checkpoint)
{
	double expected[2][NUMBERS], got[2][NUMBERS];
	bool half = way == MICRO || way == MICRO_SHARDS;
	struct run a = resumable(way), b = resumable(way);
	go(&a, SL_FLOAT32, 3);
	if (half) one_step(&a, SL_FLOAT32, true);
	go(&b, SL_FLOAT32, 1);
	hand_over(&a, &b, checkpoint);
	for (int i = 0; half && i < 2; i++) part(i ? &b : &a, SL_FLOAT32, 2, ROWS);
	CHECK(sl_trainer_steps(b.trainer) == sl_trainer_steps(a.trainer));
	finish(&a, 3, expected);
	finish(&b, 3, got);
	CHECK_SAYING(!memcmp(expected, got, sizeof got), "%s: going on changes the bits", way_names[way]);
}

static void test_resumed(void)
{
	for (enum way way = EAGER; way < WAYS; way++)
		for (int checkpoint = 0; checkpoint < 2; checkpoint++) resume(way, checkpoint);
}

/* Another run's checkpoint is refused; one that has no averages yet begins them at its parameters. */
static void test_refused(void)
{
	char path[PATH_MAX];
	slp_scratch_path("run.safetensors", path);
	struct run a = resumable(EAGER),
	           b = run_new(EAGER, SL_FLOAT32, sl_adamw(.lr = .1, .weight_decay = .1, .clip_norm = .25));
	struct run c = resumable(EAGER);
	CHECK_OK(sl_checkpoint_save(path, .trainer = a.trainer));
	CHECK_MISTAKE(sl_checkpoint_load(path, .trainer = b.trainer), SL_EINVAL, "average is 0.75 in the file, 0 here",
	              "0.weight: lr_scale is 0.5 in the file, 1 here",
	              "1.bias: weight_decay is 0 in the file, 0.1 here");
	go(&c, SL_FLOAT32, 2);
	CHECK_OK(sl_checkpoint_load(path, .trainer = c.trainer));
	CHECK_OK(sl_trainer_use_averages(c.trainer, true));
	double numbers[NUMBERS];
	numbers_of(&a, numbers);
	check_numbers("begun again", &c, numbers, 0);
	CHECK_MISTAKE(sl_checkpoint_load(path, .trainer = c.trainer), SL_EINVAL, "replaced by their averages");
	run_free(&a);
	run_free(&b);
	run_free(&c);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static enum sl_status all_of_it(enum way way)
{
	struct run r = {.net = sl_sequential(sl_dense(3, .in_units = 2), sl_dense(1, .in_units = 3))};
	sl_initialize(r.net, .init = sl_ones_init());
	r.trainer = sl_trainer_new(r.net, sl_adam(.average = .75, .clip_norm = .25));
	sl_trainer_group(r.trainer, "*bias", .lr_scale = 0.5);
	sl_freeze(r.net, "0.bias");
	r.step = way == EAGER ? NULL
	                      : sl_step_compile(r.net, sl_l2_loss_at, r.trainer, .accumulate = way == MICRO ? 2 : 1);
	for (int i = 0; i < 2 && sl_error() == SL_OK; i++)
		SL_SCOPE {
			sl_tensor *x = sl_ones(SL_SHAPE(2, 2)), *y = sl_ones(SL_SHAPE(2, 1)), *loss = NULL;
			if (way != EAGER) sl_step_run(r.step, x, y, NULL);
			else
				SL_RECORD
					loss = sl_l2_loss(sl_forward(r.net, x), y);
			if (loss) sl_backward(loss);
			if (loss) sl_trainer_step(r.trainer, 2);
		}
	if (sl_error() == SL_OK) sl_trainer_use_averages(r.trainer, true);
	if (sl_error() == SL_OK) sl_trainer_use_averages(r.trainer, false);
	enum sl_status s = sl_error();
	run_free(&r);
	return s;
}

/* Each allocation that fails is SL_ENOMEM. */
static void test_memory(void)
{
	for (enum way way = EAGER; way <= MICRO; way += STEP) {
		bool whole = false;
		for (long k = 1; k < 100000 && !whole; k += 1 + k / 16) {
			slp_fail_alloc = k;
			enum sl_status s = all_of_it(way);
			whole = slp_fail_alloc > 0;
			slp_fail_alloc = 0;
			CHECK_SAYING(s == SL_OK || s == SL_ENOMEM, "%s, allocation %ld: %s", way_names[way], k,
			             sl_error_message());
			sl_error_clear();
			sl_wait_all();
			sl_error_clear();
		}
		CHECK(whole);
	}
}

static void before(void)
{
	slp_begin((struct sl_config){.teams = 2, .seed = 1});
}

static const struct slp_test tests[] = {{"groups", test_groups},
                                        {"changed", test_changed},
                                        {"NaN", test_nan},
                                        {"frozen", test_frozen},
                                        {"frozen before", test_frozen_before},
                                        {"mistakes", test_mistakes},
                                        {"averages", test_averages},
                                        {"halves", test_halves},
                                        {"resumed", test_resumed},
                                        {"refused", test_refused},
                                        {"memory", test_memory},
                                        {0}};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv,
	                     (const struct slp_suite[]){{.name = "groups",
	                                                 .tests = tests,
	                                                 .start = slp_scratch_make,
	                                                 .stop = slp_scratch_remove,
	                                                 .before = before,
	                                                 .after = slp_end_well},
	                                                {0}});
}
