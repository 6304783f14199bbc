/* The state of a trainer in a file of its own: one that goes on with it makes the same steps; files of others are
 * refused. */
#include <math.h>
#include <stdio.h>
#include <starling.h>

#include "blocks.h"
#include "folder.h"
#include "io/params.h"
#include "nn/nn.h"

static void some_steps(sl_block *net, sl_trainer *t, int n)
{
	for (int i = 0; i < n; i++)
		SL_SCOPE {
			sl_tensor *loss = NULL;
			SL_RECORD
				loss = sl_square(sl_forward(net, sl_full(SL_SHAPE(2, 3), sl_trainer_steps(t) + 1)));
			CHECK_OK(sl_backward(loss));
			CHECK_OK(sl_trainer_step(t, 2));
		}
}

static void check_resumes(struct sl_optimizer optimizer, const char *file)
{
	char params[PATH_MAX], state[PATH_MAX];
	sl_block *a = sl_dense(2), *b = sl_dense(2);
	sl_trainer *t = sl_trainer_new(a, optimizer), *u = sl_trainer_new(b, optimizer);
	CHECK_OK(sl_initialize(a));
	some_steps(a, t, 3);
	sl_trainer_set_lr(t, 0.02);
	slp_scratch_path("net.params", params);
	slp_scratch_path(file, state);
	CHECK_OK(sl_save_params(a, params));
	CHECK_OK(sl_trainer_save(t, state));
	some_steps(a, t, 2);
	for (int round = 0; round < 2; round++) { /* into a new trainer, and into one with a state */
		CHECK_OK(sl_load_params(b, params));
		CHECK_OK(sl_trainer_load(u, state));
		CHECK(sl_trainer_steps(u) == 3 && sl_trainer_lr(u) == 0.02);
		some_steps(b, u, 2);
		SL_SCOPE {
			CHECK_SAME(slp_data(a, "weight"), slp_data(b, "weight"));
			CHECK_SAME(slp_data(a, "bias"), slp_data(b, "bias"));
		}
	}
	CHECK_MISTAKE(sl_trainer_load(u, params), SL_EINVAL, "trainer", "is missing", SL_HERE);
	sl_trainer_free(t);
	sl_trainer_free(u);
	sl_block_free(a);
	sl_block_free(b);
}

/* Files that another program has made, or one that went wrong. */
static void check_refused_state(const char *name, double lr, double steps, enum sl_dtype dtype, const char *saying)
{
	char path[PATH_MAX];
	sl_block *net = sl_dense(2, .in_units = 3);
	sl_trainer *t = sl_trainer_new(net, sl_sgd(.lr = 0.01, .momentum = 0.9));
	CHECK_OK(sl_initialize(net));
	SL_SCOPE {
		sl_tensor *figures = sl_from(((double[]){lr, steps}), SL_SHAPE(2), .dtype = SL_FLOAT64);
		sl_tensor *all[] = {figures, sl_ones(SL_SHAPE(2, 3), .dtype = dtype)};
		CHECK_OK(slp_arrays_save(SL_HERE, slp_scratch_path("wrong.params", path),
		                         (const char *const[]){"trainer", name}, all, 2));
		CHECK_MISTAKE(sl_trainer_load(t, path), SL_EINVAL, saying, SL_HERE);
		CHECK(sl_trainer_lr(t) == 0.01 && sl_trainer_steps(t) == 0);
	}
	CHECK(remove(path) == 0);
	sl_trainer_free(t);
	sl_block_free(net);
}

static void test_state(void)
{
	slp_begin((struct sl_config){.teams = 2, .seed = 1});
	CHECK(slp_scratch_make() == 0);
	check_resumes(sl_adam(.lr = 0.01), "adam.params");
	check_resumes(sl_sgd(.lr = 0.01, .momentum = 0.9), "momentum.safetensors");
	check_resumes(sl_sgd(.lr = 0.01), "plain.params");
	check_refused_state("weight.momentum", 0.1, 3, SL_FLOAT64, "differs in data type");
	check_refused_state("weight.momentum", NAN, 3, SL_FLOAT32, "not a learning rate");
	check_refused_state("weight.momentum", 0.1, -3, SL_FLOAT32, "not a learning rate");
	check_refused_state("weight.mean", 0.1, 3, SL_FLOAT32, "another optimiser");
	sl_block *net = sl_dense(2);
	sl_trainer *t = sl_trainer_new(net, sl_sgd(.lr = 0.01, .momentum = 0.9));
	char path[PATH_MAX];
	CHECK_MISTAKE(sl_trainer_load(t, slp_scratch_path("momentum.safetensors", path)), SL_EINVAL, "not known yet");
	CHECK_MISTAKE(sl_trainer_load(t, slp_scratch_path("adam.params", path)), SL_EINVAL, "another optimiser");
	CHECK_MISTAKE(sl_trainer_load(t, slp_scratch_path("nowhere.params", path)), SL_EIO, "nowhere.params");
	CHECK_MISTAKE(sl_trainer_save(t, "state.txt"), SL_EINVAL, "state.txt");
	sl_trainer_free(t);
	sl_block_free(net);
	static const char *const files[] = {"net.params", "adam.params", "momentum.safetensors", "plain.params"};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) CHECK(remove(slp_scratch_path(files[i], path)) == 0);
	CHECK(slp_scratch_remove() == 0);
	slp_end_well();
}

int main(int argc, char **argv)
{
	static const struct slp_test tests[] = {{"state", test_state}, {NULL, NULL}};
	static const struct slp_suite suites[] = {{.name = "trainer", .tests = tests}, {0}};
	return slp_test_main(argc, argv, suites);
}
