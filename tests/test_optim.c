/* Optimisers: steps against PyTorch's and against a loop in double precision; mistakes; nothing is recorded. */
#include <math.h>
#include <stdlib.h>

#include "check.h"

/* ---- known values: three steps of torch.optim.SGD(lr=0.1, weight_decay=0.01) in float64 ----------------------------
 */

/* Parameters w (3) and u (1, 2); at step s gradients s * g, which are rescaled by 0.5. */
struct known {
	sl_tensor *param[2], *momentum[2];
};

static void known_steps(struct known *k, double momentum)
{
	const double w[] = {1, -2, 3}, u[] = {0.5, -0.25}, gw[] = {0.5, 1, -2}, gu[] = {2, -4};
	k->param[0] = sl_from(w, SL_SHAPE(3), .dtype = SL_FLOAT64);
	k->param[1] = sl_from(u, SL_SHAPE(1, 2), .dtype = SL_FLOAT64);
	k->momentum[0] = sl_zeros(SL_SHAPE(3), .dtype = SL_FLOAT64);
	k->momentum[1] = sl_zeros(SL_SHAPE(1, 2), .dtype = SL_FLOAT64);
	sl_tensor *g[] = {sl_from(gw, SL_SHAPE(3), .dtype = SL_FLOAT64),
	                  sl_from(gu, SL_SHAPE(1, 2), .dtype = SL_FLOAT64)};
	for (int s = 1; s <= 3; s++) {
		sl_tensor *now[] = {sl_mul_scalar(g[0], s), sl_mul_scalar(g[1], s)};
		CHECK_OK(sl_sgd_update(k->param, now, momentum ? k->momentum : NULL, 2, .lr = 0.1, .momentum = momentum,
		                       .weight_decay = 0.01, .rescale = 0.5));
	}
}

static void test_known_values(void)
{
	SL_SCOPE {
		struct known k;
		known_steps(&k, 0);
		CHECK_VALUES(k.param[0], 0.847102974, -2.29380605, 3.5906091);
		CHECK_VALUES(k.param[1], -0.101098601, 0.94994945);
	}
}

static void test_known_values_with_momentum(void)
{
	SL_SCOPE {
		struct known k;
		known_steps(&k, 0.9);
		CHECK_VALUES(k.param[0], 0.756789774, -2.46399965, 3.9336045);
		CHECK_VALUES(k.param[1], -0.453222701, 1.6522415);
		CHECK_VALUES(k.momentum[0], 1.42836226, 2.74847648, -5.52401497);
		CHECK_VALUES(k.momentum[1], 5.61873201, -11.2171675);
	}
}

static void test_plain(void)
{
	SL_SCOPE {
		sl_tensor *w = sl_full(SL_SHAPE(5), 2.0), *g = sl_full(SL_SHAPE(5), 4.0);
		CHECK_OK(sl_sgd_update(&w, &g, NULL, 1, .lr = 0.25));
		CHECK_ALL(w, 1);
		CHECK_ALL(g, 4);
	}
}

/* ---- many parameters of all sizes, against a loop ------------------------------------------------------------------
 */

enum { MANY = 75, STEPS = 4 };

/* Large ones that threads share, some that end within a block, nothing, and many small ones. */
static sl_shape shape_of(int i)
{
	const sl_shape shapes[] = {SL_SHAPE(70001), SL_SHAPE(0), SL_SCALAR, SL_SHAPE(300, 301), SL_SHAPE(5, 1025)};
	const int n = (int)(sizeof shapes / sizeof *shapes);
	return i < n ? shapes[i] : SL_SHAPE(i);
}

static double *numbers(int64_t n, unsigned seed)
{
	double *v = malloc((size_t)(n ? n : 1) * sizeof *v);
	for (int64_t i = 0; i < n; i++) {
		seed = seed * 1664525u + 1013904223u;
		v[i] = (seed >> 8) / 8388608.0 - 1;
	}
	return v;
}

static sl_tensor *tensor(const double *v, sl_shape shape, enum sl_dtype dtype)
{
	sl_tensor *t = sl_from(v, shape, .dtype = SL_FLOAT64);
	return dtype == SL_FLOAT64 ? t : sl_cast(t, dtype);
}

static void expected_steps(double *w, const double *g, double *m, int64_t n, struct sl_sgd_opts o)
{
	for (int s = 0; s < STEPS; s++)
		for (int64_t i = 0; i < n; i++) {
			m[i] = o.momentum * m[i] + o.rescale * g[i] + o.weight_decay * w[i];
			w[i] -= o.lr * m[i];
		}
}

/* Largest difference relative to max(1, |value|). */
static double difference(sl_tensor *t, const double *expected)
{
	int64_t n = sl_tensor_size(t);
	double *v = malloc((size_t)(n ? n : 1) * sizeof *v), worst = 0;
	CHECK_OK(sl_read(sl_cast(t, SL_FLOAT64), v, (size_t)n * sizeof *v));
	for (int64_t i = 0; i < n; i++) worst = fmax(worst, fabs(v[i] - expected[i]) / fmax(1, fabs(expected[i])));
	free(v);
	return worst;
}

static void run_many(enum sl_dtype dtype, double momentum, double tolerance)
{
	const struct sl_sgd_opts o = {.lr = 0.1, .momentum = momentum, .weight_decay = 0.02, .rescale = 0.25};
	sl_tensor *w[MANY], *g[MANY], *m[MANY];
	double *dw[MANY], *dg[MANY], *dm[MANY];
	for (int i = 0; i < MANY; i++) {
		int64_t n = sl_shape_size(shape_of(i));
		w[i] = tensor(dw[i] = numbers(n, 3 * (unsigned)i), shape_of(i), dtype);
		g[i] = tensor(dg[i] = numbers(n, 3 * (unsigned)i + 1), shape_of(i), dtype);
		m[i] = sl_zeros(shape_of(i), .dtype = dtype);
		dm[i] = calloc((size_t)n + 1, sizeof *dm[i]);
		expected_steps(dw[i], dg[i], dm[i], n, o);
	}
	for (int s = 0; s < STEPS; s++) CHECK_OK(sl_sgd_update_at(SL_HERE, w, g, momentum ? m : NULL, MANY, o));
	for (int i = 0; i < MANY; i++) {
		CHECK_SAYING(difference(w[i], dw[i]) < tolerance, "parameter %d: %g", i, difference(w[i], dw[i]));
		CHECK_SAYING(!momentum || difference(m[i], dm[i]) < tolerance, "momentum %d: %g", i,
		             difference(m[i], dm[i]));
		free(dw[i]);
		free(dg[i]);
		free(dm[i]);
	}
}

static void test_many(void)
{
	SL_SCOPE
		run_many(SL_FLOAT32, 0, 1e-6);
}

static void test_many_with_momentum(void)
{
	SL_SCOPE
		run_many(SL_FLOAT32, 0.9, 1e-6);
	SL_SCOPE
		run_many(SL_FLOAT64, 0.9, 1e-14);
}

/* ---- what it does not do -------------------------------------------------------------------------------------------
 */

static void test_not_recorded(void)
{
	SL_SCOPE {
		sl_tensor *w = slp_leaf(3, 1), *loss;
		SL_RECORD {
			loss = sl_sum(sl_square(w));
		}
		CHECK_OK(sl_backward(loss));
		SL_RECORD {
			sl_tensor *g = sl_grad(w);
			CHECK_OK(sl_sgd_update(&w, &g, NULL, 1, .lr = 0.5));
			CHECK(sl_is_recording() && sl_is_training());
			loss = sl_sum(w);
		}
		CHECK_VALUES(w, 0, 0, 0);
		CHECK_OK(sl_backward(loss));
		CHECK_ALL(sl_grad(w), 1);
	}
}

static void test_nothing_to_do(void)
{
	CHECK_OK(sl_sgd_update(NULL, NULL, NULL, 0, .lr = 1));
}

/* ---- mistakes ------------------------------------------------------------------------------------------------------
 */

/* Each is the first one. */
#define CHECK_MISTAKE(call, ...)                                                                                       \
	do {                                                                                                           \
		CHECK_STATUS(call, __VA_ARGS__);                                                                       \
		sl_error_clear();                                                                                      \
	} while (0)

static void test_missing(void)
{
	SL_SCOPE {
		sl_tensor *t[] = {sl_ones(SL_SHAPE(2)), sl_ones(SL_SHAPE(2)), NULL};
		sl_tensor *whole[] = {t[0], t[1], t[0]};
		CHECK_MISTAKE(sl_sgd_update(t, whole, NULL, 3, .lr = 1), SL_EINVAL, "params[2]", SL_HERE);
		CHECK_MISTAKE(sl_sgd_update(whole, t, NULL, 3, .lr = 1), SL_EINVAL, "grads[2]", SL_HERE);
		CHECK_MISTAKE(sl_sgd_update(whole, whole, t, 3, .lr = 1, .momentum = 0.5), SL_EINVAL, "momenta[2]");
		CHECK_MISTAKE(sl_sgd_update(t, NULL, NULL, 2, .lr = 1), SL_EINVAL, "grads", "NULL");
		CHECK_MISTAKE(sl_sgd_update(t, t, NULL, 2, .lr = 1, .momentum = 0.9), SL_EINVAL, "momenta", "NULL");
		CHECK_MISTAKE(sl_sgd_update(t, t, t, 2, .lr = 1), SL_EINVAL, "momenta", "momentum is 0");
		CHECK_MISTAKE(sl_sgd_update(t, t, NULL, -1, .lr = 1), SL_EINVAL, "negative");
		CHECK_ALL(t[0], 1);
	}
}

static void test_unfit(void)
{
	SL_SCOPE {
		sl_tensor *p[] = {sl_ones(SL_SHAPE(2)), sl_ones(SL_SHAPE(2, 3))};
		sl_tensor *flat[] = {p[0], sl_ones(SL_SHAPE(6))};
		sl_tensor *wide[] = {p[0], sl_ones(SL_SHAPE(2, 3), .dtype = SL_FLOAT64)};
		sl_tensor *whole[] = {sl_ones(SL_SHAPE(2), .dtype = SL_INT32)};
		CHECK_MISTAKE(sl_sgd_update(p, flat, NULL, 2, .lr = 1), SL_ESHAPE, "parameter 1", "gradient", "(6,)");
		CHECK_MISTAKE(sl_sgd_update(p, p, flat, 2, .lr = 1, .momentum = 0.5), SL_ESHAPE, "parameter 1",
		              "momentum", "(6,)");
		CHECK_MISTAKE(sl_sgd_update(p, wide, NULL, 2, .lr = 1), SL_EDTYPE, "parameter 1", "float64");
		CHECK_MISTAKE(sl_sgd_update(whole, whole, NULL, 1, .lr = 1), SL_EDTYPE, "parameter 0", "int32");
		CHECK_ALL(p[1], 1);
	}
}

static const struct slp_test tests[] = {
        {"known values", test_known_values},
        {"known values with momentum", test_known_values_with_momentum},
        {"plain", test_plain},
        {"many", test_many},
        {"many with momentum", test_many_with_momentum},
        {"not recorded", test_not_recorded},
        {"nothing to do", test_nothing_to_do},
        {"missing", test_missing},
        {"unfit", test_unfit},
        {NULL, NULL},
};

static const struct slp_suite suites[] = {
        {"optim", tests, slp_start_engine, slp_stop_engine, NULL, NULL},
        {NULL, NULL, NULL, NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv, suites);
}
