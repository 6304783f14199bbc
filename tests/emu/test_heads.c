/* Attention in half types on an emulated GPU, against double precision: grouped heads (several heads of queries for one of
 * keys and values), forward and back, and generation over a cache, in which prompts and single steps come one after the
 * other. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdlib.h>

#include "check.h"
#include "emulated.h"

/* HEADS of queries, GROUPS of keys and values. */
enum { ROWS = 2, HEADS = 4, GROUPS = 2, STEPS = 24, WIDTH = 16, MOST = ROWS * HEADS * STEPS * WIDTH };

static void start(void)
{
	setenv("STARPU_NCPU", "0", 1);
	slp_begin((struct sl_config){.gpus = 1, .seed = 1});
	CHECK_OK(sl_device_default(sl_gpu(0)));
}

/* Numbers of a half type, the same ones as doubles in `exact`. */
static sl_tensor *operand(enum sl_dtype type, int heads, double step, double *exact)
{
	float data[MOST];
	int n = ROWS * heads * STEPS * WIDTH;
	for (int i = 0; i < n; i++) data[i] = (float)sin(step * i * i + i);
	sl_tensor *t = sl_cast(sl_from(data, SL_SHAPE(ROWS, heads, STEPS, WIDTH)), type);
	CHECK_OK(sl_read(sl_cast(t, SL_FLOAT64), exact, (size_t)n * sizeof *exact));
	return t;
}

/* ---- double precision -------------------------------------------------------------------------------------------- */

struct reference {
	double q[MOST], k[MOST], v[MOST], weight[MOST]; /* of the result, in the loss */
	double y[MOST], dq[MOST], dk[MOST], dv[MOST];
};

static double product(const double *a, const double *b)
{
	double sum = 0;
	for (int i = 0; i < WIDTH; i++) sum += a[i] * b[i];
	return sum;
}

static void add(double *to, double by, const double *from)
{
	for (int i = 0; i < WIDTH; i++) to[i] += by * from[i];
}

/* The shares of `seen` keys for a query. */
static void weigh(const double *q, const double *k, int seen, double *shares)
{
	double most = -INFINITY, sum = 0;
	for (int j = 0; j < seen; j++) {
		shares[j] = product(q, k + j * WIDTH) / sqrt(WIDTH);
		most = fmax(most, shares[j]);
	}
	for (int j = 0; j < seen; j++) sum += shares[j] = exp(shares[j] - most);
	for (int j = 0; j < seen; j++) shares[j] /= sum;
}

/* Query i of a head, at `at`; its keys and values begin at `from`. */
static void refer_query(struct reference *r, int at, int from, int seen)
{
	double shares[STEPS], mean = 0, slopes[STEPS];
	weigh(r->q + at, r->k + from, seen, shares);
	for (int j = 0; j < seen; j++) add(r->y + at, shares[j], r->v + from + j * WIDTH);
	for (int j = 0; j < seen; j++) {
		slopes[j] = product(r->weight + at, r->v + from + j * WIDTH);
		mean += shares[j] * slopes[j];
		add(r->dv + from + j * WIDTH, shares[j], r->weight + at);
	}
	for (int j = 0; j < seen; j++) {
		double slope = shares[j] * (slopes[j] - mean) / sqrt(WIDTH);
		add(r->dq + at, slope, r->k + from + j * WIDTH);
		add(r->dk + from + j * WIDTH, slope, r->q + at);
	}
}

static void refer(struct reference *r, int groups, bool causal)
{
	for (int i = 0; i < MOST; i++) r->y[i] = r->dq[i] = r->dk[i] = r->dv[i] = 0;
	for (int h = 0; h < ROWS * HEADS; h++) {
		int group = h / HEADS * groups + h % HEADS / (HEADS / groups);
		for (int i = 0; i < STEPS; i++)
			refer_query(r, (h * STEPS + i) * WIDTH, group * STEPS * WIDTH, causal ? i + 1 : STEPS);
	}
}

/* Relative to the largest number: `most` steps of the type's rounding. */
static void check_near(const char *what, sl_tensor *t, enum sl_dtype type, const double *expected, double most)
{
	static double got[MOST];
	double largest = 0, error = 0, unit = type == SL_BFLOAT16 ? 0x1p-8 : 0x1p-11;
	int64_t n = t ? sl_tensor_size(t) : 0;
	CHECK(n > 0 && sl_tensor_dtype(t) == type);
	if (n == 0) return;
	CHECK_OK(sl_read(sl_cast(t, SL_FLOAT64), got, (size_t)n * sizeof *got));
	for (int64_t i = 0; i < n; i++) {
		largest = fmax(largest, fabs(expected[i]));
		error = isnan(got[i]) ? INFINITY : fmax(error, fabs(got[i] - expected[i]));
	}
	CHECK_SAYING(error <= most * unit * largest, "%s, %s: off by %.2f units in the last place of the largest", what,
	             sl_dtype_name(type), error / unit / largest);
}

/* ---- grouped heads ----------------------------------------------------------------------------------------------- */

/* Each head of keys or values for the heads of queries of its group. */
static sl_tensor *repeated(sl_tensor *x)
{
	sl_tensor *one = sl_reshape(x, SL_SHAPE(ROWS, GROUPS, 1, STEPS, WIDTH));
	sl_tensor *all = sl_broadcast_to(one, SL_SHAPE(ROWS, GROUPS, HEADS / GROUPS, STEPS, WIDTH));
	return sl_reshape(all, SL_SHAPE(ROWS, HEADS, STEPS, WIDTH));
}

static void check_grouped(enum sl_dtype type, bool causal)
{
	static struct reference r;
	sl_tensor *q = operand(type, HEADS, 0.11, r.q), *k = operand(type, GROUPS, 0.07, r.k);
	sl_tensor *v = operand(type, GROUPS, 0.05, r.v), *weight = operand(type, HEADS, 0.03, r.weight);
	sl_tensor *in[] = {q, k, v}, *y = NULL, *loss = NULL;
	for (int i = 0; i < 3; i++) CHECK_OK(sl_attach_grad(in[i]));
	SL_RECORD {
		y = sl_scaled_dot_product_attention(q, repeated(k), repeated(v), .causal = causal);
		loss = sl_sum(sl_mul(y, weight));
	}
	CHECK_OK(sl_backward(loss));
	refer(&r, GROUPS, causal);
	check_near("the result", y, type, r.y, 1.5);
	check_near("of queries", sl_grad(q), type, r.dq, 3);
	check_near("of keys", sl_grad(k), type, r.dk, 3);
	check_near("of values", sl_grad(v), type, r.dv, 3);
}

static void test_grouped(void)
{
	start();
	for (int i = 0; i < 4; i++)
		SL_SCOPE {
			check_grouped(i & 1 ? SL_BFLOAT16 : SL_FLOAT16, i & 2);
		}
	slp_end_well();
}

/* ---- generation -------------------------------------------------------------------------------------------------- */

static sl_tensor *steps_of(sl_tensor *x, int begin, int end)
{
	return sl_slice(x, 2, begin, end, 1);
}

/* A prompt of some steps, then the others one by one: all of them are the causal result.  The cache is rounded where it
 * has a half type, as its keys and values are already. */
static void check_generation(enum sl_dtype type, enum sl_dtype cached, int prompt)
{
	static struct reference r;
	sl_tensor *q = operand(type, HEADS, 0.11, r.q), *k = operand(type, HEADS, 0.07, r.k),
	          *v = operand(type, HEADS, 0.05, r.v), *parts[STEPS];
	sl_tensor *keys = sl_zeros(SL_SHAPE(ROWS, HEADS, STEPS, WIDTH), .dtype = cached);
	sl_tensor *values = sl_zeros(SL_SHAPE(ROWS, HEADS, STEPS, WIDTH), .dtype = cached);
	int n = 0;
	for (int begin = 0, end = prompt; begin < STEPS; begin = end, end++) {
		sl_tensor *place = sl_full(SL_SHAPE(1), begin, .dtype = SL_INT32);
		parts[n++] = sl_cached_attention(steps_of(q, begin, end), steps_of(k, begin, end),
		                                 steps_of(v, begin, end), keys, values, place);
	}
	refer(&r, HEADS, true);
	check_near("generation", sl_concat(parts, n, 2), type, r.y, 0.75);
}

static void test_generation(void)
{
	start();
	for (int i = 0; i < 8; i++)
		SL_SCOPE {
			enum sl_dtype type = i & 1 ? SL_BFLOAT16 : SL_FLOAT16;
			check_generation(type, i & 2 ? SL_FLOAT32 : type, i & 4 ? 7 : 1);
		}
	slp_end_well();
}

static const struct slp_test tests[] = {
        {"grouped heads", test_grouped}, {"generation over a cache", test_generation}, {0}};

int main(int argc, char **argv)
{
	setenv("SL_EMU_DEVICES", "1", 1);
	return slp_test_main(argc, argv, (const struct slp_suite[]){{.name = "heads", .tests = tests}, {0}});
}
