/* The networks of models/zoo: their parameters and scores are those of Gluon's model zoo (tests/zoo.def, which MXNet
 * made), and they learn. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "../models/zoo_networks.h"
#include "check.h"
#include "nn/nn.h"

enum { CLASSES = 10 };

/* ---- values that are functions of a name: as in tests/data/make-zoo.py ------------------------------------------- */

static uint32_t fnv1a(const char *name)
{
	uint32_t h = 2166136261u;
	for (; *name; name++) h = (h ^ (uint8_t)*name) * 16777619u;
	return h;
}

static void fill(float *v, int64_t count, const char *name, double low, double high)
{
	uint32_t seed = fnv1a(name);
	for (int64_t i = 0; i < count; i++) {
		uint32_t h = (uint32_t)i * 2654435761u ^ seed;
		h = (h ^ h >> 16) * 0x85ebca6bu;
		h = (h ^ h >> 13) * 0xc2b2ae35u;
		h ^= h >> 16;
		v[i] = (float)(low + (high - low) * (h / 4294967296.0));
	}
}

static sl_tensor *made(sl_shape shape, const char *name, double low, double high)
{
	int64_t count = sl_shape_size(shape);
	float *v = malloc((size_t)count * sizeof *v);
	fill(v, count, name, low, high);
	sl_tensor *t = sl_from(v, shape);
	free(v);
	return t;
}

static sl_tensor *parameter(const char *path, sl_shape s, bool fixed)
{
	static const struct {
		const char *name;
		double low, high;
	} ranges[] = {{"bias", -0.1, 0.1},
	              {"gamma", 0.8, 1.2},
	              {"beta", -0.2, 0.2},
	              {"running_mean", -0.2, 0.2},
	              {"running_var", 0.8, 1.2}};
	const char *name = strrchr(path, '.') + 1;
	if (fixed && !strcmp(name, "gamma")) return sl_ones(s);
	double bound = sqrt(6.0 * (double)s.dim[0] / (double)sl_shape_size(s));
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
		if (!strcmp(name, ranges[i].name)) return made(s, path, ranges[i].low, ranges[i].high);
	return made(s, path, -bound, bound);
}

/* Sets all parameters; returns the number of their elements. */
static int64_t set_all(sl_block *net)
{
	int64_t sum = 0;
	int count = sl_block_params(net, NULL, 0);
	sl_param **all = malloc((size_t)count * sizeof(sl_param *));
	sl_block_params(net, all, count);
	for (int i = 0; i < count; i++)
		SL_SCOPE {
			char *path = slp_param_path(net, all[i]);
			CHECK_OK(sl_param_set(all[i], parameter(path, sl_param_shape(all[i]), all[i]->opts.no_grad)));
			sum += sl_shape_size(sl_param_shape(all[i]));
			free(path);
		}
	free(all);
	return sum;
}

/* ---- the scores of Gluon's networks ------------------------------------------------------------------------------ */

static const struct expected {
	const char *name;
	int64_t elements;
	double scores[CLASSES];
} expected[] = {
#define ZOO(name, elements, ...) {name, elements, {__VA_ARGS__}},
#include "zoo.def"
#undef ZOO
};
enum { EXPECTED = sizeof expected / sizeof *expected };

static void check_scores(const struct expected *e, sl_tensor *y)
{
	float got[CLASSES];
	double worst = 0, largest = 0;
	CHECK_OK(sl_read(y, got, sizeof got));
	for (int i = 0; i < CLASSES; i++) {
		worst = fmax(worst, fabs(got[i] - e->scores[i]));
		largest = fmax(largest, fabs(e->scores[i]));
	}
	printf("%s: scores differ by %.1e of the largest\n", e->name, worst / largest);
	CHECK_SAYING(worst <= 1e-5 * largest, "%s: scores differ by %g of the largest", e->name, worst / largest);
}

static void check_network(const struct expected *e)
{
	const struct zoo_network *n = zoo_find(e->name);
	sl_block *net = n ? zoo_build(n, CLASSES) : NULL;
	if (!CHECK_SAYING(net != NULL, "there is no %s", e->name)) return;
	SL_SCOPE {
		sl_tensor *x = made(SL_SHAPE(1, 3, n->size, n->size), "data", -1, 1);
		CHECK_OK(sl_initialize(net));
		CHECK_OK(sl_hybridize(net));
		sl_forward(net, x); /* now shapes are known */
		int64_t elements = set_all(net);
		CHECK_SAYING(elements == e->elements, "%s has %lld elements of parameters, not %lld", e->name,
		             (long long)elements, (long long)e->elements);
		check_scores(e, sl_forward(net, x));
	}
	sl_block_free(net);
}

/* Whether a network is tried: the large ones, and further ones of a family, in make check-long. */
static bool tried(const char *name)
{
	static const char *const large[] = {"alexnet",     "inceptionv3",   "resnet18_v2", "resnet50_v1",
	                                    "resnet50_v2", "squeezenet1.0", "vgg11",       "vgg11_bn"};
	for (size_t i = 0; i < sizeof large / sizeof *large; i++)
		if (!strcmp(name, large[i])) return slp_long();
	return true;
}

static void test_scores(void)
{
	for (int i = 0; i < EXPECTED; i++)
		if (tried(expected[i].name)) check_network(&expected[i]);
}

/* ---- learning ---------------------------------------------------------------------------------------------------- */

/* The mean loss of a batch before the first of so many steps on it, and before the last. */
static bool learn(const struct zoo_network *n, int size, double lr, int steps, double loss[2])
{
	sl_block *net = zoo_build(n, CLASSES);
	CHECK_OK(sl_initialize(net, .init = sl_he_init()));
	sl_trainer *trainer = sl_trainer_new(net, sl_adam(.lr = lr));
	sl_step *step = sl_step_compile(net, sl_softmax_cross_entropy_at, trainer);
	for (int i = 0; i < steps; i++)
		SL_SCOPE {
			sl_tensor *x = made(SL_SHAPE(4, 3, size, size), "data", -1, 1);
			sl_tensor *y = sl_from(((int32_t[]){1, 7, 3, 0}), SL_SHAPE(4), .dtype = SL_INT32);
			double mean = sl_item(sl_mean(sl_step_run(step, x, y, NULL)));
			if (!i || i + 1 == steps) loss[i > 0] = mean;
		}
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
	return sl_error() == SL_OK;
}

static void test_learning(void)
{
	static const struct {
		const char *name;
		double lr;
		int steps;
	} rows[] = {{"resnet18_v1", 1e-3, 8}, {"resnet50_v2", 1e-3, 8},   {"vgg11_bn", 1e-4, 8},
	            {"alexnet", 1e-4, 8},     {"densenet121", 1e-3, 8},   {"squeezenet1.1", 1e-3, 24},
	            {"inceptionv3", 1e-3, 8}, {"mobilenet0.25", 1e-3, 8}, {"mobilenetv2_0.25", 1e-3, 8}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (!tried(rows[i].name)) continue;
		const struct zoo_network *n = zoo_find(rows[i].name);
		double loss[2] = {0};
		int size = n->smallest < 32 ? 32 : n->smallest;
		CHECK(learn(n, size, rows[i].lr, rows[i].steps, loss));
		printf("%s: loss %.3f, later %.3f\n", n->name, loss[0], loss[1]);
		CHECK_SAYING(loss[1] < 0.9 * loss[0], "%s: the loss is %g, and later %g", n->name, loss[0], loss[1]);
	}
}

/* An image of the smallest size passes, a smaller one does not: the figures of the list are right. */
static void test_smallest(void)
{
	static const char *const names[] = {"vgg11",         "alexnet",       "densenet121",
	                                    "squeezenet1.0", "squeezenet1.1", "inceptionv3"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const struct zoo_network *n = zoo_find(names[i]);
		if (!tried(names[i])) continue;
		for (int size = n->smallest - 1; size <= n->smallest; size++) {
			sl_block *net = zoo_build(n, 2);
			SL_SCOPE {
				CHECK_OK(sl_initialize(net));
				sl_tensor *y = sl_forward(net, sl_zeros(SL_SHAPE(1, 3, size, size)));
				if (size == n->smallest) CHECK_OK(sl_wait(y));
				else CHECK_SAYING(!y, "%s takes images of %d", n->name, size);
				sl_error_clear();
			}
			sl_block_free(net);
		}
	}
}

int main(int argc, char **argv)
{
	static const struct slp_test tests[] = {
	        {"scores", test_scores}, {"smallest", test_smallest}, {"learning", test_learning}, {NULL, NULL}};
	static const struct slp_suite suites[] = {{"zoo", tests, slp_start_engine, slp_stop_engine, NULL, NULL},
	                                          {NULL, NULL, NULL, NULL, NULL, NULL}};
	return slp_test_main(argc, argv, suites);
}
