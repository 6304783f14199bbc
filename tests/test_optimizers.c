/* Every optimiser of SL_OPTIMIZER_LIST alike: known values in every way of training, names, defaults and settings, states
 * in files, steps without a trainer, averages and groups; Lion by hand. */
#include <float.h>
#include <stdlib.h>

#include "folder.h"
#include "groups.h"
#include "optimizer.h"

static const struct known {
	enum sl_optimizer_kind kind;
	const char *name;
	struct sl_optimizer settings;
	double expected[NUMBERS];
} rows[] = {
#define SETTINGS_(...) __VA_ARGS__
#define OPTIMIZER(kind_, name_, tensors_, counted_, settings_, ...)                                                    \
	[kind_] = {kind_, #name_, {.kind = (kind_), SETTINGS_ settings_}, {__VA_ARGS__}},
#include "optimizers.def"
#undef OPTIMIZER
};
enum { KINDS = sizeof rows / sizeof *rows };

#define OPTIMIZERS(k) for (const struct known *k = rows; k < rows + KINDS; k++)

/* A new optimiser has a row. */
static void test_list(void)
{
	CHECK(KINDS == slp_optimizer_count);
	OPTIMIZERS(k)
	{
		const struct slp_optimizer *d = slp_optimizers[k->kind];
		CHECK_SAYING(k->name != NULL, "optimiser %d has no row", (int)(k - rows));
		if (!k->name) continue;
		CHECK(!strcmp(sl_optimizer_name(k->kind), k->name) && sl_optimizer_named(k->name) == (int)k->kind);
		struct sl_optimizer left_out = SL_OPTIMIZER(k->kind, ), written = SL_OPTIMIZER(k->kind, .lr = 0.5);
		CHECK(sl_optimizer_lr(&left_out) == d->lr && sl_optimizer_lr(&written) == 0.5);
		CHECK(d->lr > 0 && d->op && d->op->doc && !strcmp(d->name, k->name));
		for (int i = 0; i < d->noptions; i++)
			CHECK(slp_hyperparameters[d->options[i].which].range != SLP_RANGE_LIMIT);
	}
	CHECK(sl_optimizer_named("sgdd") == -1 && sl_optimizer_named(NULL) == -1);
	CHECK(!sl_optimizer_name((enum sl_optimizer_kind)KINDS) && !sl_optimizer_name((enum sl_optimizer_kind) - 1));
}

/* The numbers and names that are in files of states. */
static void test_names(void)
{
	CHECK(SL_SGD == 0 && SL_ADAM == 1 && SL_ADAMW == 2 && SL_RMSPROP == 3);
	CHECK(!strcmp(slp_optimizers[SL_SGD]->states[0], "momentum"));
	for (int kind = SL_ADAM; kind <= SL_ADAMW; kind++)
		CHECK(!strcmp(slp_optimizers[kind]->states[0], "mean") &&
		      !strcmp(slp_optimizers[kind]->states[1], "var"));
	CHECK(!strcmp(slp_optimizers[SL_RMSPROP]->states[0], "square"));
	CHECK(!strcmp(slp_optimizers[SL_RMSPROP]->states[1], "momentum"));
}

static void test_known(void)
{
	OPTIMIZERS(k)
	for (enum way way = EAGER; way < WAYS; way++) {
		struct run r = run_new(way, SL_FLOAT64, k->settings);
		go(&r, SL_FLOAT64, 6);
		check_numbers(k->name, &r, k->expected, 1e-10);
		run_free(&r);
	}
}

/* float32 and bfloat16 go the same way: their kernels, masters and averages. */
static void test_narrow(void)
{
	OPTIMIZERS(k)
	{
		struct sl_optimizer o = k->settings;
		o.average = .75;
		struct run r = run_new(STEP, SL_FLOAT32, o), half = run_new(EAGER, SL_BFLOAT16, o);
		go(&r, SL_FLOAT32, 6);
		check_numbers(k->name, &r, k->expected, 1e-4);
		CHECK_OK(sl_trainer_use_averages(r.trainer, true));
		CHECK_OK(sl_trainer_use_averages(r.trainer, false));
		go(&half, SL_BFLOAT16, 6);
		check_numbers(k->name, &half, k->expected, k->kind == SL_LION ? 0.21 : 0.15); /* signs may turn */
		run_free(&r);
		run_free(&half);
	}
}

/* Three steps, a file, three steps: the bits of six. */
static void test_resume(void)
{
	OPTIMIZERS(k)
	for (int checkpoint = 0; checkpoint < 2; checkpoint++) {
		double whole[NUMBERS], resumed[NUMBERS];
		enum way way = checkpoint ? STEP : EAGER;
		struct run a = run_new(way, SL_FLOAT32, k->settings), b = run_new(way, SL_FLOAT32, k->settings);
		go(&a, SL_FLOAT32, 3);
		hand_over(&a, &b, checkpoint);
		CHECK(sl_trainer_steps(b.trainer) == 3);
		go(&a, SL_FLOAT32, 3);
		go(&b, SL_FLOAT32, 3);
		numbers_of(&a, whole);
		numbers_of(&b, resumed);
		CHECK_SAYING(!memcmp(whole, resumed, sizeof whole), "%s, %s", k->name,
		             checkpoint ? "checkpoint" : "files");
		run_free(&a);
		run_free(&b);
	}
}

/* A setting that the optimiser does not have is refused by name, in whatever optimiser; one that it has by its range. */
static void test_settings(void)
{
	sl_block *net = sl_dense(1, .in_units = 1);
	OPTIMIZERS(k)
	for (enum slp_hyperparameter i = 0; i < SLP_HYPERPARAMETERS; i++) {
		const struct slp_hyperparameter_row *row = &slp_hyperparameters[i];
		const struct slp_optimizer *d = slp_optimizers[k->kind];
		bool has =
		        row->range == SLP_RANGE_LIMIT || row->range == SLP_RANGE_AVERAGE || i == SLP_HYPER_weight_decay;
		for (int j = 0; j < d->noptions; j++) has |= d->options[j].which == i;
		struct sl_optimizer o = SL_OPTIMIZER(k->kind, .momentum = 0);
		if (row->range == SLP_RANGE_FLAG) {
			*(bool *)((char *)&o + row->offset) = true;
			o.momentum = has ? 0.5 : 0;
		} else *(double *)((char *)&o + row->offset) = 0.5;
		sl_trainer *t = sl_trainer_new(net, o);
		CHECK_SAYING(has == (t != NULL), "%s takes %s: %d", k->name, row->name, t != NULL);
		CHECK(has || strstr(sl_error_message(), row->name));
		sl_error_clear();
		sl_trainer_free(t);
		if (row->range == SLP_RANGE_FLAG) continue;
		*(double *)((char *)&o + row->offset) = -0.5;
		CHECK_NULL(sl_trainer_new(net, o), SL_EINVAL, row->name);
	}
	CHECK_NULL(sl_trainer_new(net, SL_OPTIMIZER((enum sl_optimizer_kind)KINDS, )), SL_EINVAL, "no such optimiser");
	sl_block_free(net);
}

/* What is left out has the descriptor's default. */
static void test_defaults(void)
{
	OPTIMIZERS(k)
	{
		const struct slp_optimizer *d = slp_optimizers[k->kind];
		struct sl_optimizer plain = SL_OPTIMIZER(k->kind, ), written = SL_OPTIMIZER(k->kind, .lr = d->lr);
		for (int i = 0; i < d->noptions; i++) {
			const struct slp_hyperparameter_row *row = &slp_hyperparameters[d->options[i].which];
			if (row->range != SLP_RANGE_FLAG && d->options[i].by_default != 0)
				*(double *)((char *)&written + row->offset) = d->options[i].by_default;
		}
		double left_out[NUMBERS], given[NUMBERS];
		struct run a = run_new(EAGER, SL_FLOAT32, plain), b = run_new(EAGER, SL_FLOAT32, written);
		go(&a, SL_FLOAT32, 2);
		go(&b, SL_FLOAT32, 2);
		numbers_of(&a, left_out);
		numbers_of(&b, given);
		CHECK_SAYING(!memcmp(left_out, given, sizeof given), "%s", k->name);
		run_free(&a);
		run_free(&b);
	}
}

/* Without a trainer: the bits of one with the same gradient. */
static void test_update(void)
{
	OPTIMIZERS(k)
	{
		int states = sl_optimizer_states(&k->settings);
		sl_block *net = sl_dense(1, .in_units = 3, .no_bias = true);
		CHECK_OK(sl_initialize(net, .init = sl_constant_init(0.5)));
		sl_trainer *t = sl_trainer_new(net, k->settings);
		SL_SCOPE {
			sl_tensor *w = sl_full(SL_SHAPE(1, 3), 0.5),
			          *s[] = {sl_zeros(SL_SHAPE(1, 3)), sl_zeros(SL_SHAPE(1, 3))};
			for (int step = 1; step <= 3; step++) {
				sl_tensor *x = sl_from(SL_ARRAY(float, 2, -3, (float)(2 - step)), SL_SHAPE(1, 3)),
				          *y = NULL;
				SL_RECORD
					y = sl_forward(net, x);
				CHECK_OK(sl_backward(y));
				CHECK_OK(sl_trainer_step(t, 2));
				CHECK_OK(sl_optimizer_update(k->settings, step, 0.5, &w, &x, states > 0 ? s : NULL,
				                             states > 1 ? s + 1 : NULL, 1));
			}
			float a[3], b[3];
			CHECK_OK(sl_read(w, a, sizeof a));
			CHECK_OK(sl_read(sl_param_data(sl_block_find(net, "weight")), b, sizeof b));
			CHECK_SAYING(!memcmp(a, b, sizeof a), "%s: %g %g %g, %g %g %g", k->name, a[0], a[1], a[2], b[0],
			             b[1], b[2]);
			if (states > 0)
				CHECK_STATUS(sl_optimizer_update(k->settings, 1, 1, &w, &w, NULL, NULL, 1), SL_EINVAL,
				             "sl_optimizer_update", "NULL");
			sl_error_clear();
		}
		sl_trainer_free(t);
		sl_block_free(net);
	}
	SL_SCOPE {
		sl_tensor *w = sl_ones(SL_SHAPE(2));
		CHECK_STATUS(sl_optimizer_update(sl_lion(.momentum = 0.5), 1, 1, &w, &w, &w, NULL, 1), SL_EINVAL,
		             "momentum");
		sl_error_clear();
		CHECK_STATUS(sl_optimizer_update(sl_nadam(), 0, 1, &w, &w, &w, &w, 1), SL_EINVAL, "step is 0");
		sl_error_clear();
	}
	CHECK(sl_optimizer_states(NULL) == -1 && isnan(sl_optimizer_lr(NULL)));
}

/* Lion by its formula in double precision: gradients x of w·x, decay, clipping, a rate of its own, zero gradients. */
static void test_lion(void)
{
	enum { STEPS = 7 };
	const double lr = 0.01, beta1 = 0.8, beta2 = 0.95, decay = 0.3, scale = 0.5, limit = 1.5;
	double w[3] = {0.5, 0.5, 0.5}, m[3] = {0};
	sl_block *net = sl_dense(1, .in_units = 3, .no_bias = true);
	CHECK_OK(sl_initialize(net, .init = sl_constant_init(0.5), .dtype = SL_FLOAT64));
	sl_trainer *t = sl_trainer_new(
	        net, sl_lion(.lr = lr, .beta1 = beta1, .beta2 = beta2, .weight_decay = decay, .clip_value = limit));
	CHECK_OK(sl_trainer_group(t, "*", .lr_scale = scale));
	for (int step = 0; step < STEPS; step++)
		SL_SCOPE {
			const double g[3] = {step % 3 - 1, 4 - step * step, 0};
			sl_tensor *x = sl_from(g, SL_SHAPE(1, 3), .dtype = SL_FLOAT64), *y = NULL;
			SL_RECORD
				y = sl_forward(net, x);
			CHECK_OK(sl_backward(y));
			CHECK_OK(sl_trainer_step(t, 1));
			for (int i = 0; i < 3; i++) {
				double clipped = fmax(-limit, fmin(limit, g[i]));
				double mean = beta1 * m[i] + (1 - beta1) * clipped;
				w[i] -= lr * scale * ((mean > 0) - (mean < 0) + decay * w[i]);
				m[i] = beta2 * m[i] + (1 - beta2) * clipped;
			}
		}
	SL_SCOPE {
		double got[3];
		CHECK_OK(sl_read(sl_param_data(sl_block_find(net, "weight")), got, sizeof got));
		for (int i = 0; i < 3; i++) CHECK_SAYING(fabs(got[i] - w[i]) < 1e-14, "%.17g, not %.17g", got[i], w[i]);
	}
	sl_trainer_free(t);
	sl_block_free(net);
}

/* A gradient that is NaN makes all parameters NaN that it belongs to, whatever the optimiser. */
static void test_nan(void)
{
	OPTIMIZERS(k)
	for (int type = 0; type < 2; type++)
		SL_SCOPE {
			int states = sl_optimizer_states(&k->settings);
			enum sl_dtype dtype = type ? SL_FLOAT32 : SL_FLOAT64;
			sl_tensor *w = sl_ones(SL_SHAPE(5), .dtype = dtype),
			          *g = sl_full(SL_SHAPE(5), NAN, .dtype = dtype);
			sl_tensor *s[] = {sl_zeros(SL_SHAPE(5), .dtype = dtype), sl_zeros(SL_SHAPE(5), .dtype = dtype)};
			CHECK_OK(sl_optimizer_update(k->settings, 1, 1, &w, &g, states > 0 ? s : NULL,
			                             states > 1 ? s + 1 : NULL, 1));
			CHECK_SAYING(isnan(sl_item(sl_sum(w))), "%s, %s", k->name, sl_dtype_name(dtype));
		}
}

/* NAdam's momentum after very many steps, when nothing is left of the product, and with odd settings: finite steps. */
static void test_late(void)
{
	const struct sl_optimizer settings[] = {sl_nadam(),
	                                        sl_nadam(.beta1 = 0),
	                                        sl_nadam(.momentum_decay = 0),
	                                        sl_nadam(.beta1 = 0.9999999, .momentum_decay = 0.0122),
	                                        sl_nadam(.momentum_decay = 1e6),
	                                        sl_adam(.beta2 = 0.9999999)};
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
		for (int64_t step = 1; step < INT64_C(10000000000); step *= 100)
			SL_SCOPE {
				sl_tensor *w = sl_ones(SL_SHAPE(3)), *g = sl_ones(SL_SHAPE(3)),
				          *m = sl_ones(SL_SHAPE(3)), *v = sl_ones(SL_SHAPE(3));
				CHECK_OK(sl_optimizer_update(settings[i], step, 1, &w, &g, &m, &v, 1));
				double sum = sl_item(sl_sum(w));
				CHECK_SAYING(isfinite(sum) && sum < 3, "%zu, step %lld: %g", i, (long long)step, sum);
			}
}

/* The row of the table in doc/training.md: learning rate, settings and states are the descriptor's. */
static void row_of(const struct slp_optimizer *d, char row[512])
{
	int n = snprintf(row, 512, "\n| `sl_%s` | %g | ", d->name, d->lr);
	for (int i = 0; i < d->noptions; i++) {
		const struct slp_hyperparameter_row *h = &slp_hyperparameters[d->options[i].which];
		double value = d->options[i].by_default;
		n += snprintf(row + n, 512 - (size_t)n, "%s`.%s` ", i ? ", " : "", h->name);
		if (h->range == SLP_RANGE_FLAG) n += snprintf(row + n, 512 - (size_t)n, "%s", value ? "true" : "false");
		else n += snprintf(row + n, 512 - (size_t)n, "%g", value);
	}
	n += snprintf(row + n, 512 - (size_t)n, " | ");
	for (int i = 0; d->states[i]; i++) n += snprintf(row + n, 512 - (size_t)n, "%s%s", i ? ", " : "", d->states[i]);
	snprintf(row + n, 512 - (size_t)n, "%s | ", d->plain ? " (if not 0)" : "");
}

/* The table has a row for each optimiser and no other; README.md names them all. */
static void test_documented(void)
{
	char path[PATH_MAX], row[512];
	size_t size;
	char *page = slp_read_file(slp_data_path("../../doc/training.md", path), &size);
	char *readme = slp_read_file(slp_data_path("../../README.md", path), &size);
	int table = 0;
	for (const char *at = strstr(page, "## Optimisers"), *end = strstr(at, "\n## ");
	     (at = strstr(at, "\n| `sl_")) && at < end; at++)
		table++;
	CHECK_SAYING(table == slp_optimizer_count, "doc/training.md has %d rows", table);
	for (int kind = 0; kind < slp_optimizer_count; kind++) {
		const struct slp_optimizer *d = slp_optimizers[kind];
		row_of(d, row);
		CHECK_SAYING(strstr(page, row) != NULL, "doc/training.md has no row%s", row);
		CHECK_SAYING(strcasestr(readme, d->name) != NULL, "README.md does not name %s", d->name);
	}
	free(page);
	free(readme);
}

static const struct slp_test tests[] = {
        {"list", test_list},
        {"names in files", test_names},
        {"known values", test_known},
        {"narrow types", test_narrow},
        {"resuming", test_resume},
        {"settings", test_settings},
        {"defaults", test_defaults},
        {"without a trainer", test_update},
        {"Lion", test_lion},
        {"NaN", test_nan},
        {"late steps", test_late},
        {"documented", test_documented},
        {0},
};

static void before(void)
{
	slp_begin((struct sl_config){.teams = 2, .seed = 1});
}

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv,
	                     (const struct slp_suite[]){{.name = "optimisers",
	                                                 .tests = tests,
	                                                 .start = slp_scratch_make,
	                                                 .stop = slp_scratch_remove,
	                                                 .before = before,
	                                                 .after = slp_end_well},
	                                                {0}});
}
