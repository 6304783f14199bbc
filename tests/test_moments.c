/* Saves beside training are of one moment (doc/threads.md). */
#include "beside.h"

static double only_value(sl_block *net, const char *what)
{
	sl_param *list[PARAMS];
	float v[WIDTH], first = 0;
	bool same = sl_block_params(net, list, PARAMS) == PARAMS;
	for (int i = 0; i < PARAMS; i++) {
		CHECK_OK(sl_read(sl_param_data(list[i]), v, sizeof v));
		if (i == 0) first = v[0];
		for (int k = 0; k < WIDTH; k++) same &= v[k] == first;
	}
	CHECK_SAYING(same, "%s mixes steps", what);
	return (double)first;
}

/* After n steps of +1 with momentum 1/2; a float32 stays where 2 is less than its last bit. */
static double value_after(int64_t n)
{
	return fmin(2.0 * (double)n - 2 + exp2(1 - (double)n), 0x1p25);
}

static void check_checkpoint(const char *path)
{
	struct run r = run_new();
	CHECK_OK(sl_checkpoint_load(path, .trainer = r.trainer));
	double value = only_value(r.net, "a checkpoint"), wanted = value_after(sl_trainer_steps(r.trainer));
	CHECK_SAYING(fabs(value - wanted) < 1e-3 * (1 + wanted), "%g after %lld steps, not %g", value,
	             (long long)sl_trainer_steps(r.trainer), wanted);
	run_free(&r);
}

static void check_params(const char *path)
{
	sl_block *net = net_new();
	CHECK_OK(sl_load_params(net, path));
	only_value(net, path);
	sl_block_free(net);
}

/* The parameters are those of the file's step: for a file of a trainer, its momentum. */
static void check_trainer(const char *path)
{
	struct run r = run_new();
	CHECK_OK(sl_trainer_load(r.trainer, path));
	/* Another step shows the momentum: what all parameters have in common. */
	CHECK(train(r.net, r.trainer));
	only_value(r.net, path);
	run_free(&r);
}

static void check_onnx(const char *path)
{
	SL_SCOPE {
		sl_block *net = sl_import_onnx(path);
		float v[WIDTH];
		sl_tensor *y = sl_forward(net, sl_zeros(SL_SHAPE(WIDTH)));
		CHECK_OK(sl_read(y, v, sizeof v));
		sl_block_free(net);
	}
}

static void test_saves(void)
{
	struct run r = run_new();
	struct worker w;
	char path[PATH_MAX], params[PATH_MAX], tensors[PATH_MAX], state[PATH_MAX], onnx[PATH_MAX], prefix[PATH_MAX];
	slp_scratch_path("run.safetensors", path);
	slp_scratch_path("net.params", params);
	slp_scratch_path("net.safetensors", tensors);
	slp_scratch_path("trainer.params", state);
	slp_scratch_path("net.onnx", onnx);
	slp_scratch_path("net", prefix);
	begin(&w, train_run, &r);
	wait_for_first(&w);
	for (int i = 0; i < (slp_long() ? 1700 : 15); i++) {
		CHECK_OK(sl_checkpoint_save(path, .trainer = r.trainer));
		check_checkpoint(path);
		CHECK_OK(sl_checkpoint_end(sl_checkpoint_begin(path, .trainer = r.trainer)));
		check_checkpoint(path);
		CHECK_OK(sl_save_params(r.net, params));
		check_params(params);
		CHECK_OK(sl_save_params(r.net, tensors));
		check_params(tensors);
		CHECK_OK(sl_trainer_save(r.trainer, state));
		check_trainer(state);
		CHECK_OK(sl_export_onnx(r.net, onnx, SL_SHAPES(SL_SHAPE(WIDTH))));
		check_onnx(onnx);
		CHECK_OK(sl_export(r.net, prefix, SL_SHAPES(SL_SHAPE(WIDTH))));
	}
	end(&w);
	CHECK(w.times > 0);
	run_free(&r);
}

/* Their changes leave no gap by themselves. */
static void test_saves_beside_many(void)
{
	enum { TRAINERS = 2 };
	struct run runs[TRAINERS];
	struct worker w[TRAINERS];
	char path[PATH_MAX];
	slp_scratch_path("run.safetensors", path);
	for (int i = 0; i < TRAINERS; i++) {
		runs[i] = run_new();
		begin(&w[i], train_run, &runs[i]);
	}
	for (int i = 0; i < 5; i++) {
		wait_for_first(&w[i % TRAINERS]);
		CHECK_OK(sl_checkpoint_save(path, .trainer = runs[i % TRAINERS].trainer));
		check_checkpoint(path);
	}
	for (int i = 0; i < TRAINERS; i++) {
		end(&w[i]);
		run_free(&runs[i]);
	}
}

static void test_saves_beside_programs(void)
{
	struct run r = run_new();
	struct whole whole = {sl_step_compile(r.net, loss_of, r.trainer, .reduction = SL_REDUCTION_SUM)};
	struct worker w;
	char path[PATH_MAX], params[PATH_MAX];
	slp_scratch_path("run.safetensors", path);
	slp_scratch_path("net.params", params);
	CHECK(step_whole(&whole));
	begin(&w, step_whole, &whole);
	wait_for_first(&w);
	for (int i = 0; i < (slp_long() ? 2000 : 20); i++) {
		CHECK_OK(sl_checkpoint_save(path, .trainer = r.trainer));
		check_checkpoint(path);
		CHECK_OK(sl_save_params(r.net, params));
		check_params(params);
	}
	end(&w);
	CHECK(w.times > 0);
	sl_step_free(whole.step);
	run_free(&r);
}

int main(int argc, char **argv)
{
	static const struct slp_test tests[] = {{"beside training", test_saves},
	                                        {"beside many", test_saves_beside_many},
	                                        {"beside programs", test_saves_beside_programs},
	                                        {0}};
	static const struct slp_suite suites[] = {
	        {.name = "saves", .tests = tests, .start = slp_start_with_scratch, .stop = slp_stop_with_scratch}, {0}};
	return slp_test_main(argc, argv, suites);
}
