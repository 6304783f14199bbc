/* multinomial: the classes that numbers from 0 to 1 select, by cumulative probabilities. */
#include <math.h>

#include "common/describe.h"
#include "common/index.h"
#include "op_list/reduce.h"

#include "multinomial.h"

static enum sl_status infer(struct slp_infer *c)
{
	sl_shape s = c->in[0].shape, u = c->in[1].shape, rows = u;
	int last = s.ndim - 1;
	if (!slp_is_float(c->in[0].dtype) || c->in[0].dtype != c->in[1].dtype)
		return slp_reject(c, SL_EDTYPE, "sums and numbers must be of one type, float32 or float64");
	if (last < 0 || s.dim[last] < 1 || s.dim[last] > INT32_MAX)
		return slp_reject(c, SL_ESHAPE, "there is no class, or more than an int32 can count");
	if (u.ndim == s.ndim) rows.dim[last] = s.dim[last];
	if (!sl_shape_equal(rows, s))
		return slp_reject(c, SL_ESHAPE, "sums and numbers must have one shape but for the last axis");
	c->out[0] = (struct slp_type){SL_INT32, u};
	return SL_OK;
}

/* The error in a row of sums; NULL: none. */
static const char *wrong(const struct slp_view *sums, int64_t row, int64_t n)
{
	double before = 0, sum = 0;
	for (int64_t i = 0; i < n; i++, before = sum) {
		sum = slp_get(sums, row * n + i);
		if (!isfinite(sum)) return "one is not a finite number, or their sum is not";
		if (sum < before) return "one is negative";
	}
	return sum > 0 ? NULL : "all are 0";
}

static enum sl_status fail(const struct slp_kernel *k, int64_t row, const char *why)
{
	return slp_kernel_fail(k, SL_EINVAL, "the probabilities of row %lld cannot be drawn by: %s", (long long)row,
	                       why);
}

/* The first class whose sum is above the number's part of the total. */
static enum sl_status multinomial_ref(const struct slp_kernel *k)
{
	sl_shape s = k->in[0].type.shape, u = k->in[1].type.shape;
	int64_t n = s.dim[s.ndim - 1], draws = u.dim[u.ndim - 1];
	for (int64_t i = 0; i < slp_size(&k->out[0]); i++) {
		int64_t row = i / draws, picked = 0;
		const char *why = i % draws == 0 ? wrong(&k->in[0], row, n) : NULL;
		if (why) return fail(k, row, why);
		double part = slp_get(&k->in[1], i) * slp_get(&k->in[0], row * n + n - 1);
		while (picked < n - 1 && slp_get(&k->in[0], row * n + picked) <= part) picked++;
		slp_set(&k->out[0], i, (double)picked);
	}
	return SL_OK;
}

struct job {
	int64_t n, draws;
	const float *sums, *numbers;
	int32_t *classes;
	int64_t bad; /* a row without a valid distribution; -1: none */
};

static SLP_CLONES bool is_good(const float *sums, int64_t n)
{
	int falls = !(sums[0] >= 0);
	for (int64_t i = 1; i < n; i++) falls |= !(sums[i] >= sums[i - 1]);
	return !falls && sums[n - 1] > 0 && sums[n - 1] < INFINITY;
}

static void rows(void *arg, int64_t begin, int64_t end)
{
	struct job *j = arg;
	for (int64_t r = begin; r < end; r++) {
		const float *sums = j->sums + r * j->n;
		if (!is_good(sums, j->n)) __atomic_store_n(&j->bad, r, __ATOMIC_RELAXED);
		for (int64_t i = r * j->draws; i < (r + 1) * j->draws; i++)
			j->classes[i] = slp_class_of(sums, j->n, (double)j->numbers[i] * (double)sums[j->n - 1]);
	}
}

static enum sl_status multinomial_cpu(const struct slp_kernel *k)
{
	sl_shape s = k->in[0].type.shape, u = k->in[1].type.shape;
	struct job j = {s.dim[s.ndim - 1], u.dim[u.ndim - 1], k->in[0].ptr, k->in[1].ptr, k->out[0].ptr, -1};
	if (slp_size(&k->out[0]) == 0) return SL_OK;
	slp_parallel_for(slp_size(&k->out[0]) / j.draws, SLP_GRAIN / (j.n + 16 * j.draws) + 1, rows, &j);
	return j.bad < 0 ? SL_OK : fail(k, j.bad, wrong(&k->in[0], j.bad, j.n));
}

SLP_DESCRIBE(multinomial, "classes that numbers from 0 to 1 fall on, by the sums of their probabilities",
             "sums numbers", 2, .rows = SLP_FLOAT_ROWS(multinomial), .infer = infer, .flops = slp_flops_elementwise,
             .grad = slp_constant);
