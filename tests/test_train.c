/* Training with blocks: schedules and optimisers against PyTorch, stale gradients, metrics, parameters in files. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "capture.h"
#include "folder.h"

/* ---- schedules: torch.optim.lr_scheduler with lr=0.5, step by step ----------------------------------------------- */

static void check_schedule(const char *name, struct sl_schedule s, int n, const double *expected)
{
	for (int i = 0; i < n; i++)
		CHECK_SAYING(fabs(sl_schedule_lr(&s, 0.5, i) - expected[i]) < 1e-9, "%s, step %d: %.10g, not %.10g",
		             name, i, sl_schedule_lr(&s, 0.5, i), expected[i]);
}
#define CHECK_SCHEDULE(name, s, ...)                                                                                   \
	check_schedule(name, s, SL_COUNT_(double, __VA_ARGS__), (const double[]){__VA_ARGS__})
#define SCHEDULE(...) ((struct sl_schedule){__VA_ARGS__})

static void test_schedules(void)
{
	CHECK_SCHEDULE("constant", SCHEDULE(.kind = SL_CONSTANT), 0.5, 0.5, 0.5);
	CHECK_SCHEDULE("StepLR(3, 0.5)", SCHEDULE(SL_STEPS, .every = 3, .factor = 0.5), 0.5, 0.5, 0.5, 0.25, 0.25, 0.25,
	               0.125, 0.125, 0.125, 0.0625);
	CHECK_SCHEDULE("CosineAnnealingLR(8, 0.05)", SCHEDULE(SL_COSINE, .total = 8, .final_lr = 0.05), 0.5,
	               0.4828728948, 0.4340990258, 0.3611037723, 0.275, 0.1888962277, 0.1159009742, 0.06712710518, 0.05,
	               0.05);
	CHECK_SCHEDULE("PolynomialLR(5, 2)", SCHEDULE(SL_POLYNOMIAL, .total = 5, .power = 2), 0.5, 0.32, 0.18, 0.08,
	               0.02, 0, 0);
	CHECK_SCHEDULE("LinearLR(1/4, 1, 3), then CosineAnnealingLR(6, 0.1)",
	               SCHEDULE(SL_COSINE, .warmup = 4, .total = 10, .final_lr = 0.1), 0.125, 0.25, 0.375, 0.5, 0.5,
	               0.4732050808, 0.4, 0.3, 0.2, 0.1267949192, 0.1);
	CHECK_SCHEDULE("LinearLR(1/4, 1, 3), then StepLR(2, 0.1)", SCHEDULE(SL_STEPS, .warmup = 4, .every = 2), 0.125,
	               0.25, 0.375, 0.5, 0.5, 0.5, 0.05, 0.05, 0.005, 0.005);
}

/* ---- optimisers: three steps of torch.optim on half the mean square of x·wᵀ + b - y, float64 --------------------- */

static sl_block *regression(void)
{
	const double w[] = {0.5, -1}, b[] = {0.25};
	sl_block *d = sl_dense(1);
	CHECK_OK(sl_param_set(sl_block_find(d, "weight"), sl_from(w, SL_SHAPE(1, 2), .dtype = SL_FLOAT64)));
	CHECK_OK(sl_param_set(sl_block_find(d, "bias"), sl_from(b, SL_SHAPE(1), .dtype = SL_FLOAT64)));
	return d;
}

static sl_tensor *regression_loss(sl_block *d)
{
	const double x[] = {1, 2, 3, -1, 0.5, 0.25}, y[] = {1, 0, 2};
	sl_tensor *loss = NULL;
	SL_RECORD
		loss = sl_l2_loss(sl_forward(d, sl_from(x, SL_SHAPE(3, 2), .dtype = SL_FLOAT64)),
		                  sl_from(y, SL_SHAPE(3, 1), .dtype = SL_FLOAT64));
	return loss;
}

static void check_optimizer(const char *name, struct sl_optimizer optimizer, double w0, double w1, double b)
{
	const double close = optimizer.clip_norm > 0 ? 3e-7 : 1e-9; /* PyTorch adds 1e-6 to the norm */
	SL_SCOPE {
		sl_block *d = regression();
		sl_trainer *t = sl_trainer_new(d, optimizer);
		for (int i = 0; i < 3; i++) {
			CHECK_OK(sl_backward(regression_loss(d)));
			CHECK_OK(sl_trainer_step(t, 3));
		}
		double got[3];
		CHECK_OK(sl_read(sl_param_data(sl_block_find(d, "weight")), got, 2 * sizeof *got));
		CHECK_OK(sl_read(sl_param_data(sl_block_find(d, "bias")), got + 2, sizeof *got));
		CHECK_SAYING(fabs(got[0] - w0) < close && fabs(got[1] - w1) < close && fabs(got[2] - b) < close,
		             "%s: %.10g %.10g %.10g", name, got[0], got[1], got[2]);
		CHECK(sl_trainer_steps(t) == 3);
		sl_trainer_free(t);
		sl_block_free(d);
	}
}

static void test_optimisers(void)
{
	check_optimizer("SGD(0.1)", sl_sgd(.lr = 0.1), 0.1428410554, -0.3714130226, 0.3994085286);
	check_optimizer("SGD(0.1, 0.9, nesterov, decay 0.01)",
	                sl_sgd(.lr = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 0.01), -0.2067838922,
	                0.4373542977, 0.6787326108);
	check_optimizer("Adam(0.1)", sl_adam(.lr = 0.1), 0.2023340983, -0.7014394134, 0.5501647382);
	check_optimizer("AdamW(0.1, decay 0.1)", sl_adamw(.lr = 0.1, .weight_decay = 0.1), 0.1908633838, -0.674868896,
	                0.5398433219);
	check_optimizer("RMSprop(0.01, momentum 0.5)", sl_rmsprop(.lr = 0.01, .momentum = 0.5), 0.1779132856,
	                -0.6728737757, 0.5910727099);
	check_optimizer("SGD(0.1), clip_grad_norm_(0.5)", sl_sgd(.lr = 0.1, .clip_norm = 0.5), 0.4191617645,
	                -0.8755535248, 0.2717768793);
}

/* The schedule counts the trainer's steps. */
static void test_rates(void)
{
	SL_SCOPE {
		sl_block *d = regression();
		sl_trainer *t = sl_trainer_new(d, sl_sgd(.lr = 0.5, .schedule = {SL_STEPS, .every = 1, .factor = 0.5}));
		CHECK(sl_trainer_lr(t) == 0.5);
		for (int i = 0; i < 2; i++) {
			CHECK_OK(sl_backward(regression_loss(d)));
			CHECK_OK(sl_trainer_step(t, 3));
		}
		CHECK(sl_trainer_lr(t) == 0.125);
		sl_trainer_set_lr(t, 0);
		sl_tensor *w = sl_param_data(sl_block_find(d, "weight")), *before = sl_clone(w);
		CHECK_OK(sl_backward(regression_loss(d)));
		CHECK_OK(sl_trainer_step(t, 3));
		CHECK_ALL(sl_sub(w, before), 0);
		sl_trainer_free(t);
		t = sl_trainer_new(d, sl_adam());
		CHECK(sl_trainer_lr(t) == 0.001);
		sl_trainer_free(t);
		sl_block_free(d);
	}
}

/* One operation for all parameters. */
static void test_one_call(void)
{
	SL_SCOPE {
		sl_block *net = sl_sequential(sl_dense(4), sl_dense(4), sl_dense(4), sl_dense(1));
		sl_trainer *t = sl_trainer_new(net, sl_adam());
		sl_tensor *loss;
		CHECK_OK(sl_initialize(net));
		for (int i = 0; i < 2; i++) {
			SL_RECORD
				loss = sl_sum(sl_forward(net, sl_ones(SL_SHAPE(2, 3))));
			CHECK_OK(sl_backward(loss));
			uint64_t before = slp_stats().ops;
			CHECK_OK(sl_trainer_step(t, 2));
			if (i)
				CHECK_SAYING(slp_stats().ops - before == 1, "%d operations",
				             (int)(slp_stats().ops - before));
		}
		sl_trainer_free(t);
		sl_block_free(net);
	}
}

static void test_stale(void)
{
	SL_SCOPE {
		sl_block *net = sl_sequential(sl_dense(2, .in_units = 2), sl_dense(2, .in_units = 2));
		sl_trainer *t = sl_trainer_new(net, sl_sgd(.lr = 1));
		sl_param *first = sl_block_find(net, "0.weight"), *second = sl_block_find(net, "1.weight");
		CHECK_MISTAKE(sl_trainer_step(t, 1), SL_ESTATE, sl_param_name(first), "not initialised");
		CHECK_OK(sl_initialize(net));
		CHECK_MISTAKE(sl_trainer_step(t, 1), SL_ESTATE, sl_param_name(first), "no sl_backward",
		              ".ignore_stale");
		sl_tensor *x = sl_ones(SL_SHAPE(1, 2)), *loss, *before = sl_clone(sl_param_data(second));
		SL_RECORD
			loss = sl_sum(sl_forward(net, x));
		CHECK_OK(sl_backward(loss));
		CHECK_OK(sl_trainer_step(t, 1));
		CHECK_MISTAKE(sl_trainer_step(t, 1), SL_ESTATE, sl_param_name(first), "no sl_backward");
		SL_RECORD
			loss = sl_sum(sl_forward(sl_block_child(net, 0), x));
		CHECK_OK(sl_backward(loss));
		before = sl_clone(sl_param_data(second));
		CHECK_MISTAKE(sl_trainer_step(t, 1), SL_ESTATE, sl_param_name(second));
		sl_tensor *expected = sl_sub_scalar(sl_param_data(first), 1);
		CHECK_OK(sl_trainer_step(t, 1, .ignore_stale = true));
		CHECK_ALL(sl_sub(sl_param_data(first), expected), 0);
		CHECK_ALL(sl_sub(sl_param_data(second), before), 0);
		CHECK(sl_trainer_steps(t) == 2);
		sl_trainer_free(t);
		sl_block_free(net);
	}
}

static void test_frozen(void)
{
	SL_SCOPE {
		sl_block *net = sl_sequential(sl_dense(2, .in_units = 2), sl_dense(2, .in_units = 2));
		sl_trainer *t = sl_trainer_new(net, sl_sgd(.lr = 1));
		CHECK_OK(sl_initialize(net));
		sl_tensor *first = sl_param_data(sl_block_find(net, "0.weight")), *before = sl_clone(first), *loss;
		CHECK_OK(sl_attach_grad(first, SL_GRAD_NONE));
		SL_RECORD
			loss = sl_sum(sl_forward(net, sl_ones(SL_SHAPE(1, 2))));
		CHECK_OK(sl_backward(loss));
		CHECK_OK(sl_trainer_step(t, 1));
		CHECK_ALL(sl_sub(first, before), 0);
		sl_trainer_free(t);
		sl_block_free(net);
	}
}

static void test_trainer_mistakes(void)
{
	sl_block *d = sl_dense(1), *none = sl_flatten_layer();
	CHECK_NULL(sl_trainer_new(d, sl_sgd(.lr = -1)), SL_EINVAL, ".lr");
	CHECK_NULL(sl_trainer_new(d, sl_sgd(.momentum = 1)), SL_EINVAL, ".momentum");
	CHECK_NULL(sl_trainer_new(d, sl_sgd(.nesterov = true)), SL_EINVAL, ".nesterov");
	CHECK_NULL(sl_trainer_new(d, sl_sgd(.schedule = {.kind = SL_STEPS})), SL_EINVAL, ".every");
	CHECK_NULL(sl_trainer_new(d, sl_adam(.schedule = {SL_COSINE, .warmup = 5, .total = 5})), SL_EINVAL, ".total");
	CHECK_NULL(sl_trainer_new(d, sl_adam(.schedule = {SL_COSINE, .total = 5, .every = 2})), SL_EINVAL, ".every");
	CHECK_NULL(sl_trainer_new(d, sl_adam(.schedule = {SL_STEPS, .total = 5, .every = 2})), SL_EINVAL, ".total");
	CHECK_NULL(sl_trainer_new(d, sl_adam(.schedule = {SL_COSINE, .total = 5, .power = 2})), SL_EINVAL, ".power");
	CHECK_NULL(sl_trainer_new(d, sl_adam(.loss_scaling = {.growth = 4})), SL_EINVAL, "has no .start");
	CHECK_NULL(sl_trainer_new(none, sl_sgd()), SL_EINVAL, "no parameters");
	CHECK_NULL(sl_trainer_new(NULL, sl_sgd()), SL_EINVAL, "NULL");
	sl_trainer *t = sl_trainer_new(d, sl_sgd());
	CHECK_MISTAKE(sl_trainer_step(t, 0), SL_EINVAL, "batch size");
	CHECK_MISTAKE(sl_trainer_step(NULL, 1), SL_EINVAL, "trainer is NULL");
	sl_block_free(d); /* the trainer holds it */
	sl_trainer_free(t);
	sl_block_free(none);
}

/* ---- metrics ----------------------------------------------------------------------------------------------------- */

static void test_accuracies(void)
{
	SL_SCOPE {
		const float scores[] = {1, 5, 2, 9, 3, 4, 0, 1, 2};
		const int32_t labels[] = {1, 2, 0};
		sl_tensor *x = sl_from(scores, SL_SHAPE(3, 3)), *y = sl_from(labels, SL_SHAPE(3), .dtype = SL_INT32);
		sl_metric *one = sl_accuracy_new(), *two = sl_topk_new(2);
		CHECK(isnan(sl_metric_get(one)));
		CHECK_OK(sl_metric_add(one, x, y));
		CHECK_OK(sl_metric_add(one, x, sl_cast(y, SL_UINT8)));
		CHECK_OK(sl_metric_add(one, sl_rows(x, 0, 1), sl_rows(y, 0, 1)));
		CHECK_OK(sl_metric_add(two, x, y));
		CHECK_SAYING(fabs(sl_metric_get(one) - 3.0 / 7) < 1e-12, "%g", sl_metric_get(one));
		CHECK_SAYING(fabs(sl_metric_get(two) - 2.0 / 3) < 1e-12, "%g", sl_metric_get(two));
		sl_metric_reset(one);
		CHECK(isnan(sl_metric_get(one)));
		CHECK_MISTAKE(sl_metric_add(one, x, NULL), SL_EINVAL, "labels");
		CHECK_MISTAKE(sl_metric_add(one, y, y), SL_ESHAPE, "(n, classes)");
		sl_metric_free(one);
		sl_metric_free(two);
	}
}

static void test_mean(void)
{
	SL_SCOPE {
		sl_metric *m = sl_mean_new();
		CHECK_OK(sl_metric_add(m, sl_arange(0, 4, 1), NULL));
		CHECK_OK(sl_metric_add(m, sl_full(SL_SHAPE(2, 3), 10), NULL));
		CHECK_OK(sl_metric_add(m, sl_full(SL_SCALAR, 4), NULL));
		CHECK_SAYING(fabs(sl_metric_get(m) - 70.0 / 11) < 1e-12, "%g", sl_metric_get(m));
		sl_metric_free(m);
	}
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static sl_block *filed_net(void)
{
	return sl_sequential(sl_dense(4), sl_batch_norm_layer(), sl_sequential(sl_dense(2)));
}

static void check_round_trip(const char *name)
{
	char path[PATH_MAX];
	SL_SCOPE {
		sl_block *net = filed_net(), *copy = filed_net();
		sl_tensor *x = sl_normal(SL_SHAPE(5, 3), 0, 1);
		CHECK_MISTAKE(sl_save_params(net, slp_scratch_path(name, path)), SL_ESTATE, "not initialised");
		CHECK_OK(sl_initialize(net, .init = sl_normal_init(1)));
		SL_TRAINING
			sl_forward(net, x);
		CHECK_OK(sl_save_params(net, path));
		CHECK_OK(sl_load_params(copy, path));
		sl_tensor *difference = sl_sub(sl_forward(net, x), sl_forward(copy, x));
		CHECK_ALL(difference, 0);
		sl_tensor *mean = sl_param_data(sl_block_find(copy, "1.running_mean"));
		CHECK(sl_item(sl_max(sl_abs(mean))) > 0);
		CHECK(remove(path) == 0);
		sl_block_free(net);
		sl_block_free(copy);
	}
}

static void test_files(void)
{
	check_round_trip("net.params");
	check_round_trip("net.safetensors");
}

static void test_strict_and_lenient(void)
{
	char path[PATH_MAX];
	slp_scratch_path("two.params", path);
	SL_SCOPE {
		sl_block *two = sl_sequential(sl_dense(4, .in_units = 3), sl_dense(2, .in_units = 4));
		sl_block *three = sl_sequential(sl_dense(4), sl_dense(2), sl_dense(1));
		sl_block *one = sl_sequential(sl_dense(4, .in_units = 3)),
		         *other = sl_sequential(sl_dense(5), sl_dense(2));
		CHECK_OK(sl_initialize(two, .init = sl_ones_init()));
		CHECK_OK(sl_initialize(one));
		CHECK_OK(sl_save_params(two, path));
		sl_tensor *before = sl_clone(sl_param_data(sl_block_find(one, "0.weight")));
		CHECK_MISTAKE(sl_load_params(three, path), SL_EINVAL, "2.weight (1, -1) is not in the file", "2.bias",
		              ".lenient");
		CHECK_MISTAKE(sl_load_params(one, path), SL_EINVAL,
		              "1.weight (2, 4) is in the file, but not in the network");
		CHECK_ALL(sl_sub(sl_param_data(sl_block_find(one, "0.weight")), before), 0);
		slp_capture_begin();
		CHECK_OK(sl_load_params(one, path, .lenient = true));
		CHECK_OK(sl_load_params(three, path, .lenient = true));
		char *said = slp_capture_end();
		CHECK_SAYING(strstr(said, "1.bias (2,) is in the file, but not in") &&
		                     strstr(said, "2.bias (1,) is not in the file"),
		             "%s", said);
		free(said);
		CHECK_ALL(sl_param_data(sl_block_find(one, "0.weight")), 1);
		CHECK_NULL(sl_param_data(sl_block_find(three, "2.weight")), SL_ESTATE);
		CHECK_MISTAKE(sl_load_params(other, path, .lenient = true), SL_ESHAPE,
		              "0.weight is float32 (4, 3) in the file, float32 (5, -1) expected");
		CHECK_OK(sl_initialize(one, .dtype = SL_FLOAT64, .force = true));
		CHECK_MISTAKE(sl_load_params(one, path, .lenient = true), SL_ESHAPE,
		              "float32 (4, 3) in the file, float64 (4, 3)");
		CHECK(remove(path) == 0);
		CHECK_MISTAKE(sl_load_params(one, path), SL_EIO, "sl_load_params", path);
		sl_block_free(two);
		sl_block_free(three);
		sl_block_free(one);
		sl_block_free(other);
	}
}

/* What changes after a trainer or a step was made counts, or is refused. */
static void test_late_changes(void)
{
	SL_SCOPE {
		sl_block *net = sl_sequential(sl_dense(2, .in_units = 2)), *one = sl_dense(1, .in_units = 2);
		CHECK_OK(sl_initialize(net, .init = sl_ones_init()));
		sl_trainer *t = sl_trainer_new(net, sl_sgd(.lr = 0.1));
		sl_block_add(net, "late", sl_dense(1, .in_units = 2));
		CHECK_MISTAKE(sl_trainer_step(t, 1), SL_ESTATE, "4 parameters to train", "had 2");
		sl_trainer_free(t);
		CHECK_OK(sl_initialize(one, .init = sl_ones_init()));
		t = sl_trainer_new(one, sl_sgd(.lr = 0.1));
		sl_step *step = sl_step_compile(one, sl_l2_loss_at, t);
		sl_tensor *x = sl_ones(SL_SHAPE(1, 2)), *y = sl_zeros(SL_SHAPE(1, 1));
		CHECK(sl_step_run(step, x, y, NULL) != NULL);
		sl_tensor *w = sl_param_data(sl_block_find(one, "weight")), *before = sl_clone(w);
		CHECK_OK(sl_attach_grad(w, .req = SL_GRAD_NONE)); /* frozen by hand */
		CHECK(sl_step_run(step, x, y, NULL) != NULL);
		CHECK_ALL(sl_sub(w, before), 0);
		sl_step_free(step);
		sl_trainer_free(t);
		sl_block_free(one);
		sl_block_free(net);
	}
}

static const struct slp_test tests[] = {
        {"schedules", test_schedules},
        {"optimisers", test_optimisers},
        {"rates", test_rates},
        {"one call", test_one_call},
        {"stale", test_stale},
        {"frozen", test_frozen},
        {"trainer mistakes", test_trainer_mistakes},
        {"accuracies", test_accuracies},
        {"mean", test_mean},
        {"files", test_files},
        {"strict and lenient", test_strict_and_lenient},
        {"late changes", test_late_changes},
        {NULL, NULL},
};

static const struct slp_suite suites[] = {
        {"train", tests, slp_start_with_scratch, slp_stop_with_scratch, NULL, NULL},
        {NULL, NULL, NULL, NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv, suites);
}
