/* Optimisers: steps against PyTorch's and against a loop in double precision; clipping; mistakes; nothing
 * is recorded. */
#include <math.h>
#include <stdlib.h>

#include "blocks.h"
#include "check.h"

/* ---- known values: three steps of torch.optim's optimisers in float64 ------------------------------------------- */

/* Parameters w (3) and u (1, 2) with state of two kinds; at step s gradients s * g, which are rescaled by 0.5. */
enum { NSTEPS = 3 };
struct known {
	sl_tensor *param[2], *state[2][2], *grad[2];
	int64_t step;
};

static sl_tensor *double_of(const double *v, int n)
{
	return sl_from(v, n == 3 ? SL_SHAPE(3) : SL_SHAPE(1, 2), .dtype = SL_FLOAT64);
}

static struct known known_start(void)
{
	const double w[] = {1, -2, 3}, u[] = {0.5, -0.25}, zero[3] = {0};
	struct known k = {.param = {double_of(w, 3), double_of(u, 2)}};
	for (int i = 0; i < 2; i++) {
		k.state[i][0] = double_of(zero, 3);
		k.state[i][1] = double_of(zero, 2);
	}
	return k;
}

/* Goes on to the next step: its gradients and number. */
static bool known_next(struct known *k)
{
	const double w[] = {0.5, 1, -2}, u[] = {2, -4};
	if (k->step++ == NSTEPS) return false;
	k->grad[0] = sl_mul_scalar(double_of(w, 3), (double)k->step);
	k->grad[1] = sl_mul_scalar(double_of(u, 2), (double)k->step);
	return true;
}

static struct known sgd_steps(struct sl_sgd_opts o)
{
	struct known k = known_start();
	o.lr = 0.1;
	o.rescale = 0.5;
	while (known_next(&k))
		CHECK_OK(sl_sgd_update_at(SL_HERE, k.param, k.grad, o.momentum != 0 ? k.state[0] : NULL, 2, o));
	return k;
}

static struct known adam_steps(struct sl_adam_opts o)
{
	struct known k = known_start();
	o.lr = 0.1;
	o.rescale = 0.5;
	while (known_next(&k)) {
		o.step = k.step;
		CHECK_OK(sl_adam_update_at(SL_HERE, k.param, k.grad, k.state[0], k.state[1], 2, o));
	}
	return k;
}

static struct known rmsprop_steps(struct sl_rmsprop_opts o)
{
	struct known k = known_start();
	sl_tensor **momenta = o.momentum != 0 ? k.state[1] : NULL;
	o.rescale = 0.5;
	while (known_next(&k)) CHECK_OK(sl_rmsprop_update_at(SL_HERE, k.param, k.grad, k.state[0], momenta, 2, o));
	return k;
}
#define SGD_STEPS(k, ...) struct known k = sgd_steps((struct sl_sgd_opts){__VA_ARGS__})
#define ADAM_STEPS(k, ...) struct known k = adam_steps((struct sl_adam_opts){__VA_ARGS__})
#define RMSPROP_STEPS(k, rate, ...) struct known k = rmsprop_steps((struct sl_rmsprop_opts){.lr = rate, __VA_ARGS__})

static void test_sgd(void)
{
	SL_SCOPE {
		SGD_STEPS(plain, .weight_decay = 0.01);
		CHECK_VALUES(plain.param[0], 0.847102974, -2.29380605, 3.5906091);
		CHECK_VALUES(plain.param[1], -0.101098601, 0.94994945);
		SGD_STEPS(k, .weight_decay = 0.01, .momentum = 0.9);
		CHECK_VALUES(k.param[0], 0.756789774, -2.46399965, 3.9336045);
		CHECK_VALUES(k.param[1], -0.453222701, 1.6522415);
		CHECK_VALUES(k.state[0][0], 1.42836226, 2.74847648, -5.52401497);
		CHECK_VALUES(k.state[0][1], 5.61873201, -11.2171675);
		SGD_STEPS(n, .weight_decay = 0.01, .momentum = 0.9, .nesterov = true);
		CHECK_VALUES(n.param[0], 0.62842768, -2.71100425, 4.43004359);
		CHECK_VALUES(n.param[1], -0.958166435, 2.66030655);
		CHECK_VALUES(n.state[0][0], 1.42748274, 2.74681813, -5.5206731);
		CHECK_VALUES(n.state[0][1], 5.61530203, -11.2103264);
	}
}

/* Velocities are the momenta above times -lr, and the parameters are the same. */
static void test_velocities(void)
{
	SL_SCOPE {
		SGD_STEPS(k, .weight_decay = 0.01, .momentum = 0.9, .velocity = true);
		CHECK_VALUES(k.param[0], 0.756789774, -2.46399965, 3.9336045);
		CHECK_VALUES(k.param[1], -0.453222701, 1.6522415);
		CHECK_VALUES(k.state[0][0], -0.142836226, -0.274847648, 0.552401497);
		CHECK_VALUES(k.state[0][1], -0.561873201, 1.12171675);
		SGD_STEPS(n, .weight_decay = 0.01, .momentum = 0.9, .nesterov = true, .velocity = true);
		CHECK_VALUES(n.param[0], 0.62842768, -2.71100425, 4.43004359);
		CHECK_VALUES(n.param[1], -0.958166435, 2.66030655);
		CHECK_VALUES(n.state[0][0], -0.142748274, -0.274681813, 0.55206731);
		CHECK_VALUES(n.state[0][1], -0.561530203, 1.12103264);
	}
}

static void test_adam(void)
{
	SL_SCOPE {
		ADAM_STEPS(k, .weight_decay = 0.1);
		CHECK_VALUES(k.param[0], 0.704234759, -2.28640312, 3.28826984);
		CHECK_VALUES(k.param[1], 0.207073655, 0.0425008277);
		CHECK_VALUES(k.state[0][0], 0.16446818, 0.223466517, -0.47685615);
		CHECK_VALUES(k.state[0][1], 0.571681766, -1.1259089);
		CHECK_VALUES(k.state[1][0], 0.00115920884, 0.00235339926, 0.0105276743);
		CHECK_VALUES(k.state[1][1], 0.0144405596, 0.0562606286);
		ADAM_STEPS(own, .beta1 = 0.8, .beta2 = 0.9, .eps = 0.01);
		CHECK_VALUES(own.param[0], 0.714500118, -2.28939286, 3.29138381);
		CHECK_VALUES(own.param[1], 0.208616187, 0.042390731);
	}
}

static void test_adamw(void)
{
	SL_SCOPE {
		ADAM_STEPS(k, .weight_decay = 0.1, .decoupled = true);
		CHECK_VALUES(k.param[0], 0.680935865, -2.22996114, 3.20026014);
		CHECK_VALUES(k.param[1], 0.195786359, 0.046788392);
		CHECK_VALUES(k.state[0][0], 0.14025, 0.2805, -0.561);
		CHECK_VALUES(k.state[1][1], 0.013994001, 0.055976004);
	}
}

static void test_rmsprop(void)
{
	SL_SCOPE {
		RMSPROP_STEPS(k, 0.1, .weight_decay = 0.1);
		CHECK_VALUES(k.param[0], -1.56104624, -4.74549315, 5.73912421);
		CHECK_VALUES(k.param[1], -2.17412386, 2.43878843);
		CHECK_VALUES(k.state[0][0], 0.00813708539, 0.0180100439, 0.0930627113);
		RMSPROP_STEPS(own, 0.1, .alpha = 0.9, .eps = 0.5);
		CHECK_VALUES(own.param[0], 0.787755913, -2.33263836, 3.47012069);
		CHECK_VALUES(own.param[1], 0.0298793144, 0.350199521);
		RMSPROP_STEPS(m, 0.01, .weight_decay = 0.1, .momentum = 0.9);
		CHECK_VALUES(m.param[0], 0.488386793, -2.53216672, 3.52933123);
		CHECK_VALUES(m.param[1], -0.019936435, 0.270996699);
		CHECK_VALUES(m.state[0][1], 0.143336285, 0.559428013);
		CHECK_VALUES(m.state[1][0], 23.5495651, 24.8621613, -24.6875188);
		CHECK_VALUES(m.state[1][1], 24.092962, -24.161953);
	}
}

/* clip_grad_norm_ and clip_grad_value_ before the optimisers. */
static void test_clipping(void)
{
	SL_SCOPE {
		SGD_STEPS(norm, .weight_decay = 0.01, .momentum = 0.9, .clip_norm = 2);
		CHECK_VALUES(norm.param[0], 0.88284713, -2.21188494, 3.42937507);
		CHECK_VALUES(norm.param[1], 0.0510067232, 0.643782653);
		SGD_STEPS(value, .weight_decay = 0.01, .clip_value = 1.25);
		CHECK_VALUES(value.param[0], 0.847102974, -2.26880605, 3.3406841);
		CHECK_VALUES(value.param[1], 0.1488264, 0.125374375);
		SGD_STEPS(both, .weight_decay = 0.01, .clip_norm = 3, .clip_value = 1.25);
		CHECK_VALUES(both.param[0], 0.912380594, -2.16325081, 3.32949862);
		CHECK_VALUES(both.param[1], 0.160011878, 0.125374375);
		ADAM_STEPS(a, .beta1 = 0.8, .beta2 = 0.9, .eps = 0.5, .weight_decay = 0.1, .decoupled = true,
		           .clip_norm = 2);
		CHECK_VALUES(a.param[0], 0.885740244, -2.07223769, 3.09332244);
		CHECK_VALUES(a.param[1], 0.302724061, -0.0165498246);
		RMSPROP_STEPS(r, 0.01, .eps = 0.5, .momentum = 0.9, .clip_value = 1.25);
		CHECK_VALUES(r.param[0], 0.957363882, -2.07443115, 3.09896488);
		CHECK_VALUES(r.param[1], 0.401035117, -0.143212086);
	}
}

/* A norm that is no number spoils all; gradients that are zero are not divided by their norm. */
static void test_odd_norms(void)
{
	SL_SCOPE {
		sl_tensor *w[] = {sl_ones(SL_SHAPE(3)), sl_ones(SL_SHAPE(2))},
		          *zero[] = {sl_zeros(SL_SHAPE(3)), sl_zeros(SL_SHAPE(2))};
		sl_tensor *nan[] = {sl_full(SL_SHAPE(3), NAN), zero[1]};
		CHECK_OK(sl_sgd_update(w, zero, NULL, 2, .lr = 1, .clip_norm = 1));
		CHECK_ALL(w[0], 1);
		CHECK_OK(sl_sgd_update(w, nan, NULL, 2, .lr = 1, .clip_norm = 1));
		CHECK(isnan(sl_item(sl_sum(w[1]))));
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

/* ---- many parameters of all sizes, against a loop --------------------------------------------------------------- */

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

/* A norm over many parameters, large ones and small ones. */
static void test_many_clipped(void)
{
	SL_SCOPE {
		sl_tensor *w[MANY], *g[MANY];
		double squares = 0, *v[MANY];
		for (int i = 0; i < MANY; i++) {
			int64_t n = sl_shape_size(shape_of(i));
			g[i] = tensor(v[i] = numbers(n, (unsigned)i), shape_of(i), SL_FLOAT32);
			w[i] = sl_zeros(shape_of(i));
			for (int64_t e = 0; e < n; e++) squares += v[i][e] * v[i][e];
		}
		CHECK_OK(sl_sgd_update(w, g, NULL, MANY, .lr = 1, .rescale = 0.5, .clip_norm = 70));
		for (int i = 0; i < MANY; i++) {
			for (int64_t e = 0; e < sl_shape_size(shape_of(i)); e++) v[i][e] *= -70 / sqrt(squares);
			CHECK_SAYING(difference(w[i], v[i]) < 1e-6, "parameter %d: %g", i, difference(w[i], v[i]));
			free(v[i]);
		}
	}
}

/* ---- what it does not do ---------------------------------------------------------------------------------------- */

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

/* ---- mistakes ---------------------------------------------------------------------------------------------------- */

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
		CHECK_MISTAKE(sl_sgd_update(t, t, NULL, 2, .lr = 1, .nesterov = true), SL_EINVAL, "nesterov");
		CHECK_MISTAKE(sl_sgd_update(t, t, NULL, 2, .lr = 1, .velocity = true), SL_EINVAL, "velocity");
		CHECK_MISTAKE(sl_sgd_update(t, t, NULL, 2, .clip_norm = -1), SL_EINVAL, "clip_norm", "-1");
		CHECK_MISTAKE(sl_sgd_update(t, t, NULL, 2, .clip_value = -1), SL_EINVAL, "clip_value", "-1");
		CHECK_MISTAKE(sl_adam_update(t, t, t, NULL, 2, .step = 1), SL_EINVAL, "sl_adam_update", "vars");
		CHECK_MISTAKE(sl_adam_update(t, t, t, t, 2, .lr = 1), SL_EINVAL, "step is 0", "from 1");
		CHECK_MISTAKE(sl_adam_update(t, t, t, t, 2, .beta1 = 1, .step = 1), SL_EINVAL, "beta1 is 1");
		CHECK_MISTAKE(sl_rmsprop_update(t, t, t, t, 2, .lr = 1), SL_EINVAL, "momenta", "momentum is 0");
		CHECK_MISTAKE(sl_rmsprop_update(t, t, t, NULL, 2, .momentum = 0.5), SL_EINVAL, "momenta", "NULL");
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
        {"gradient descent", test_sgd},
        {"velocities", test_velocities},
        {"Adam", test_adam},
        {"AdamW", test_adamw},
        {"RMSProp", test_rmsprop},
        {"clipping", test_clipping},
        {"odd norms", test_odd_norms},
        {"plain", test_plain},
        {"many", test_many},
        {"many with momentum", test_many_with_momentum},
        {"many clipped", test_many_clipped},
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
