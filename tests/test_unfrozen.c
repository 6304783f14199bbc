/* Parameters that are frozen for a while, and trained again: Adam corrects its estimates by how often a parameter was
 * updated, not by the steps made; in every way to train, also where training goes on from a file in between. */
#include "groups.h"

/* torch.optim in float64: the first layer is frozen for 4 steps, trained for 2, frozen for 1, trained for 2. */
static const double torch_adam[NUMBERS] = {0.115262255237,  -1.39231563986, 0.51353836855,   0.447282629512,
                                           -0.892062679587, 0.343555538735, 0.246825508106,  -0.444394324678,
                                           0.629224042456,  0.220740330364, 0.0383374388748, 1.13834232868,
                                           0.89394053986};
static const double torch_adamw[NUMBERS] = {0.103812667046,  -1.34148569615, 0.47861377042,    0.441993163396,
                                            -0.864385800814, 0.308731111787, 0.22230110998,    -0.393828446187,
                                            0.622634872593,  0.152573673641, -0.0229029757342, 1.09817976981,
                                            0.831628571915};

static void freeze_first(struct run *r, bool frozen)
{
	CHECK_OK(frozen ? sl_freeze(r->net, "0.*") : sl_unfreeze(r->net, "0.*"));
}

static void test_unfrozen(void)
{
	for (enum way way = EAGER; way < WAYS; way++)
		for (int decoupled = 0; decoupled < 2; decoupled++) {
			struct run r = run_new(way, SL_FLOAT64,
			                       decoupled ? sl_adamw(.lr = .1, .weight_decay = .1, .clip_norm = .25)
			                                 : sl_adam(.lr = .1));
			static const int steps[] = {4, 2, 1, 2};
			for (int i = 0; i < 4; i++) {
				freeze_first(&r, i % 2 == 0);
				go(&r, SL_FLOAT64, steps[i]);
			}
			/* torch adds 1e-6 to the norm. */
			check_numbers("unfrozen", &r, decoupled ? torch_adamw : torch_adam, decoupled ? 1e-5 : 1e-10);
			run_free(&r);
		}
}

/* A step that no gradient of the first layer reaches leaves it alone, as if it were frozen; a program of a whole step
 * that was made before knows it. */
static void test_stale(void)
{
	struct run a = run_new(STEP, SL_FLOAT64, sl_adam(.lr = .1)), b = run_new(STEP, SL_FLOAT64, sl_adam(.lr = .1));
	go(&a, SL_FLOAT64, 1);
	go(&b, SL_FLOAT64, 1);
	freeze_first(&b, true);
	go(&b, SL_FLOAT64, 1);
	freeze_first(&b, false);
	SL_SCOPE {
		sl_tensor *x = sl_from(x_values, SL_SHAPE(ROWS, 2), .dtype = SL_FLOAT64),
		          *y = sl_from(y_values, SL_SHAPE(ROWS, 1), .dtype = SL_FLOAT64), *loss = NULL;
		sl_tensor *h = sl_forward(sl_block_child(a.net, 0), x);
		SL_RECORD
			loss = sl_l2_loss(sl_forward(sl_block_child(a.net, 1), h), y);
		CHECK_OK(sl_backward(loss));
		CHECK_OK(sl_trainer_step(a.trainer, ROWS, .ignore_stale = true));
	}
	double numbers[NUMBERS];
	go(&a, SL_FLOAT64, 2);
	go(&b, SL_FLOAT64, 2);
	numbers_of(&b, numbers);
	check_numbers("stale", &a, numbers, 1e-12);
	run_free(&a);
	run_free(&b);
}

/* What was missed is saved with the trainer. */
static void test_resumed(void)
{
	double expected[NUMBERS];
	for (int checkpoint = 0; checkpoint < 2; checkpoint++) {
		struct run a = run_new(STEP, SL_FLOAT64, sl_adam(.lr = .1)),
		           b = run_new(STEP, SL_FLOAT64, sl_adam(.lr = .1));
		freeze_first(&a, true);
		go(&a, SL_FLOAT64, 3);
		freeze_first(&a, false);
		go(&a, SL_FLOAT64, 1);
		go(&b, SL_FLOAT64, 2);
		hand_over(&a, &b, checkpoint);
		go(&a, SL_FLOAT64, 2);
		go(&b, SL_FLOAT64, 2);
		numbers_of(&a, expected);
		check_numbers("resumed", &b, expected, 0);
		run_free(&a);
		run_free(&b);
	}
}

static void before(void)
{
	slp_begin((struct sl_config){.teams = 2, .seed = 1});
}

static const struct slp_test tests[] = {
        {"unfrozen", test_unfrozen}, {"stale", test_stale}, {"resumed", test_resumed}, {0}};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv,
	                     (const struct slp_suite[]){{.name = "unfrozen",
	                                                 .tests = tests,
	                                                 .start = slp_scratch_make,
	                                                 .stop = slp_scratch_remove,
	                                                 .before = before,
	                                                 .after = slp_end_well},
	                                                {0}});
}
