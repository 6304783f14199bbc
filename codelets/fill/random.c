/* Random numbers, and dropout. */
#include <stdatomic.h>
#include <string.h>

#include "op_list/fill.h"
#include "starling/autograd.h"
#include "starling/functions.h"
#include "starling/primitives.h"

#include "common/describe.h"
#include "common/vmath.h"
#include "random.h"

/* clang-format off */
#define RNG_ATTRS(attrs)                                                                                               \
	{"seed", SLP_INT64, offsetof(attrs, rng.seed), 1, "seed of the random numbers", true, false},                         \
	{"stream", SLP_INT64, offsetof(attrs, rng.stream), 1, "number of the random operation", true, false}
/* clang-format on */

static const struct slp_attr uniform_attrs[] = {
        SLP_CREATED_ATTRS(struct slp_draw),
        {"low", SLP_DOUBLE, offsetof(struct slp_draw, a), 1, "the smallest number", true, false},
        {"high", SLP_DOUBLE, offsetof(struct slp_draw, b), 1, "upper bound, not reached", true, false},
        RNG_ATTRS(struct slp_draw),
        {0},
};

static const struct slp_attr normal_attrs[] = {
        SLP_CREATED_ATTRS(struct slp_draw),
        {"mean", SLP_DOUBLE, offsetof(struct slp_draw, a), 1, "mean", true, false},
        {"sigma", SLP_DOUBLE, offsetof(struct slp_draw, b), 1, "standard deviation", true, false},
        RNG_ATTRS(struct slp_draw),
        {0},
};

static const struct slp_attr dropout_attrs[] = {
        SLP_ATTR_VALUE(struct slp_dropout, p, SLP_DOUBLE, 1, "probability that an element is dropped"),
        RNG_ATTRS(struct slp_dropout),
        {0},
};

static const struct slp_attr bernoulli_attrs[] = {
        RNG_ATTRS(struct slp_bernoulli),
        {0},
};

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static enum sl_status draw_infer(struct slp_infer *c)
{
	const struct slp_draw *d = c->attrs;
	enum sl_dtype dtype = slp_dtype_or((enum sl_dtype)d->type.dtype, SL_FLOAT32);
	if (!slp_is_float(dtype)) return slp_reject(c, SL_EDTYPE, "makes float32 or float64 only");
	if (!isfinite(d->a) || !isfinite(d->b)) return slp_reject(c, SL_EINVAL, "%g and %g must be finite", d->a, d->b);
	if (!slp_can_be(dtype, d->a) || !slp_can_be(dtype, d->b))
		return slp_reject(c, SL_EDTYPE, "%.9g or %.9g is out of the range of %s", d->a, d->b,
		                  sl_dtype_name(dtype));
	return slp_created_infer(c);
}

static enum sl_status uniform_infer(struct slp_infer *c)
{
	const struct slp_draw *d = c->attrs;
	if (d->a > d->b) return slp_reject(c, SL_EINVAL, "low %g is above high %g", d->a, d->b);
	return draw_infer(c);
}

static enum sl_status normal_infer(struct slp_infer *c)
{
	const struct slp_draw *d = c->attrs;
	if (d->b < 0) return slp_reject(c, SL_EINVAL, "the standard deviation %g is negative", d->b);
	return draw_infer(c);
}

static bool is_rate(double p)
{
	return p >= 0 && p < 1;
}

static enum sl_status dropout_infer(struct slp_infer *c)
{
	const struct slp_dropout *d = c->attrs;
	if (!slp_is_float(c->in[0].dtype)) return slp_reject(c, SL_EDTYPE, "takes float32 or float64");
	if (!is_rate(d->p)) return slp_reject(c, SL_EINVAL, "probability %g is not in [0, 1)", d->p);
	c->out[0] = c->in[0];
	return SL_OK;
}

static enum sl_status dropout_grad(struct slp_grad *g)
{
	g->din[0] = slp_apply1(g->at, &slp_op_dropout, g->attrs, 1, &g->dout[0]);
	return g->din[0] ? SL_OK : sl_error();
}

static enum sl_status bernoulli_infer(struct slp_infer *c)
{
	if (!slp_is_float(c->in[0].dtype)) return slp_reject(c, SL_EDTYPE, "the probabilities must be floats");
	c->out[0] = c->in[0];
	return SL_OK;
}

/* ---- reference --------------------------------------------------------------------------------------------------- */

static uint32_t word(struct slp_rng rng, int64_t element)
{
	uint32_t words[4];
	slp_philox(rng.seed, rng.stream, (uint64_t)element / 4, words);
	return words[element % 4];
}

static double unit(struct slp_rng rng, int64_t element)
{
	return (double)slp_unit_float(word(rng, element));
}

static enum sl_status uniform_ref(const struct slp_kernel *k)
{
	const struct slp_draw *d = k->attrs;
	for (int64_t i = 0; i < slp_size(&k->out[0]); i++)
		slp_set(&k->out[0], i, d->a + (d->b - d->a) * unit(d->rng, i));
	return SL_OK;
}

/* G. E. P. Box, M. E. Muller, "A note on the generation of random normal deviates", 1958: two from two. */
static enum sl_status normal_ref(const struct slp_kernel *k)
{
	const struct slp_draw *d = k->attrs;
	for (int64_t i = 0; i < slp_size(&k->out[0]); i++) {
		int64_t pair = i - i % 2;
		double radius = sqrt(-2 * log(1 - unit(d->rng, pair))), angle = 2 * M_PI * unit(d->rng, pair + 1);
		slp_set(&k->out[0], i, d->a + d->b * radius * (i % 2 ? sin(angle) : cos(angle)));
	}
	return SL_OK;
}

static enum sl_status dropout_ref(const struct slp_kernel *k)
{
	const struct slp_dropout *d = k->attrs;
	uint32_t threshold = slp_dropout_threshold(d);
	for (int64_t i = 0; i < slp_size(&k->out[0]); i++) {
		bool keep = word(d->rng, i) >= threshold;
		slp_set(&k->out[0], i, keep ? slp_get(&k->in[0], i) / (1 - d->p) : 0);
	}
	return SL_OK;
}

static enum sl_status bernoulli_fail(const struct slp_kernel *k, int64_t element)
{
	return slp_kernel_fail(k, SL_EINVAL, "the probability of element %lld is %g; it must be from 0 to 1",
	                       (long long)element, slp_get(&k->in[0], element));
}

static enum sl_status bernoulli_ref(const struct slp_kernel *k)
{
	const struct slp_bernoulli *b = k->attrs;
	for (int64_t i = 0; i < slp_size(&k->out[0]); i++) {
		double p = slp_get(&k->in[0], i);
		if (!(p >= 0 && p <= 1)) return bernoulli_fail(k, i);
		slp_set(&k->out[0], i, unit(b->rng, i) < p);
	}
	return SL_OK;
}

/* ---- fast kernels: many blocks at once --------------------------------------------------------------------------- */

enum { LANES = 32, BATCH = 4 * LANES };

/* Word i of block first + lane in words[i][lane]. */
SLP_VFN void draw_words(struct slp_rng rng, int64_t first, uint32_t words[4][LANES])
{
	SLP_INDEPENDENT
	for (int lane = 0; lane < LANES; lane++) {
		uint32_t w[4];
		slp_philox(rng.seed, rng.stream, (uint64_t)(first + lane), w);
		for (int i = 0; i < 4; i++) words[i][lane] = w[i];
	}
}

SLP_VFN float unit_of(uint32_t w)
{
	return (float)(int32_t)(w >> 8) * (1.0f / 16777216.0f);
}

SLP_VFN size_t batch_bytes(int64_t begin, int64_t end)
{
	return (size_t)(end - begin < BATCH ? end - begin : BATCH) * sizeof(float);
}

SLP_CLONES static void uniform_range(void *arg, int64_t begin, int64_t end)
{
	const struct slp_kernel *k = arg;
	const struct slp_draw *d = k->attrs;
	float *out = k->out[0].ptr, low = (float)d->a, width = (float)(d->b - d->a), batch[BATCH];
	uint32_t words[4][LANES];
	for (; begin < end; begin += BATCH) {
		draw_words(d->rng, begin / 4, words);
		for (int lane = 0; lane < LANES; lane++)
			for (int i = 0; i < 4; i++) batch[4 * lane + i] = low + width * unit_of(words[i][lane]);
		memcpy(out + begin, batch, batch_bytes(begin, end));
	}
}

SLP_CLONES static void normal_range(void *arg, int64_t begin, int64_t end)
{
	const struct slp_kernel *k = arg;
	const struct slp_draw *d = k->attrs;
	float *out = k->out[0].ptr, mean = (float)d->a, sigma = (float)d->b, batch[BATCH];
	uint32_t words[4][LANES];
	for (; begin < end; begin += BATCH) {
		draw_words(d->rng, begin / 4, words);
		for (int i = 0; i < 4; i += 2)
			for (int lane = 0; lane < LANES; lane++) {
				float sine, cosine, radius = sigma * sqrtf(-2 * slp_logf(1 - unit_of(words[i][lane])));
				slp_sincos_turn(unit_of(words[i + 1][lane]), &sine, &cosine);
				batch[4 * lane + i] = mean + radius * cosine;
				batch[4 * lane + i + 1] = mean + radius * sine;
			}
		memcpy(out + begin, batch, batch_bytes(begin, end));
	}
}

SLP_CLONES static void dropout_range(void *arg, int64_t begin, int64_t end)
{
	const struct slp_kernel *k = arg;
	const struct slp_dropout *d = k->attrs;
	const float *in = k->in[0].ptr;
	float *out = k->out[0].ptr, scale = (float)(1 / (1 - d->p));
	uint32_t threshold = slp_dropout_threshold(d), words[4][LANES], batch[BATCH];
	for (; begin < end; begin += BATCH) {
		int n = end - begin < BATCH ? (int)(end - begin) : BATCH;
		draw_words(d->rng, begin / 4, words);
		for (int lane = 0; lane < LANES; lane++)
			for (int i = 0; i < 4; i++) batch[4 * lane + i] = words[i][lane];
		SLP_INDEPENDENT
		for (int i = 0; i < n; i++) out[begin + i] = batch[i] >= threshold ? in[begin + i] * scale : 0;
	}
}

struct trials {
	const struct slp_kernel *k;
	_Atomic int64_t wrong; /* the first element whose probability is out of range; INT64_MAX: none */
};

SLP_CLONES static bool are_probabilities(const float *p, int n)
{
	int wrong = 0;
	for (int i = 0; i < n; i++) wrong |= !(p[i] >= 0) | !(p[i] <= 1);
	return !wrong;
}

static void note_wrong(struct trials *t, const float *p, int64_t first)
{
	while (p[first] >= 0 && p[first] <= 1) first++;
	int64_t before = atomic_load(&t->wrong);
	while (first < before && !atomic_compare_exchange_weak(&t->wrong, &before, first)) continue;
}

SLP_CLONES static void bernoulli_range(void *arg, int64_t begin, int64_t end)
{
	struct trials *t = arg;
	const struct slp_bernoulli *b = t->k->attrs;
	const float *p = t->k->in[0].ptr;
	float *out = t->k->out[0].ptr, batch[BATCH];
	uint32_t words[4][LANES];
	for (; begin < end; begin += BATCH) {
		int n = end - begin < BATCH ? (int)(end - begin) : BATCH;
		if (!are_probabilities(p + begin, n)) note_wrong(t, p, begin);
		draw_words(b->rng, begin / 4, words);
		for (int lane = 0; lane < LANES; lane++)
			for (int i = 0; i < 4; i++) batch[4 * lane + i] = unit_of(words[i][lane]);
		SLP_INDEPENDENT
		for (int i = 0; i < n; i++) out[begin + i] = batch[i] < p[begin + i] ? 1 : 0;
	}
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

#define RANDOM(op_name, about, arguments, count, type, ...)                                                            \
	static enum sl_status op_name##_cpu(const struct slp_kernel *k)                                                \
	{                                                                                                              \
		slp_parallel_for(slp_size(&k->out[0]), SLP_GRAIN, op_name##_range, (void *)k);                         \
		return SL_OK;                                                                                          \
	}                                                                                                              \
	SLP_DESCRIBE(op_name, about, arguments, count, .attr_table = op_name##_attrs, .attrs_size = sizeof(type),      \
	             .rows = SLP_FLOAT_ROWS(op_name), .infer = op_name##_infer, .flops = random_flops, __VA_ARGS__);

/* A block of four words takes ten rounds of about ten instructions. */
static double random_flops(const struct slp_infer *c)
{
	return 25 * slp_flops_elementwise(c);
}

RANDOM(uniform, "numbers drawn from [low, high)", "", 0, struct slp_draw)
RANDOM(normal, "numbers drawn from a normal distribution", "", 0, struct slp_draw)
RANDOM(dropout, "x with elements set to 0 at random, the others scaled up", "x", 1, struct slp_dropout, .inplace = true,
       .grad = dropout_grad)

static enum sl_status bernoulli_cpu(const struct slp_kernel *k)
{
	struct trials t = {k, INT64_MAX};
	slp_parallel_for(slp_size(&k->out[0]), SLP_GRAIN, bernoulli_range, &t);
	int64_t wrong = atomic_load(&t.wrong);
	return wrong == INT64_MAX ? SL_OK : bernoulli_fail(k, wrong);
}
SLP_DESCRIBE(bernoulli, "1 with the given probabilities, else 0", "probabilities", 1, .attr_table = bernoulli_attrs,
             .attrs_size = sizeof(struct slp_bernoulli), .rows = SLP_FLOAT_ROWS(bernoulli), .infer = bernoulli_infer,
             .flops = random_flops, .grad = slp_constant);

static sl_tensor *draw(const char *at, const struct sl_op *op, sl_shape shape, double a, double b, struct sl_make make)
{
	struct slp_draw attrs = {slp_created_of(shape, make.dtype), a, b, slp_rng_next()};
	return slp_create(at, op, &attrs, make.device);
}

/* What numbers must be below so that none is rounded to high: in a half type by half the distance to the number
 * before. */
static double bound_of(double low, double high, enum sl_dtype dtype)
{
	if (!slp_is_half(dtype)) return high;
	double distance = fmax(fabs(high) * slp_tolerance(dtype, 0), dtype == SL_FLOAT16 ? 0x1p-24 : 0);
	double bound = high - 0.51 * distance;
	return bound > low ? bound : high;
}

/* A tensor of numbers drawn from [low, high), with 24 random bits; rounding may give high itself in float32.  Floats
 * (SL_EDTYPE otherwise).  The same after the same sl_seed, on every device.  SL_EINVAL: low above high, or not finite;
 * otherwise as sl_full.
 *
 *     sl_tensor *w = sl_uniform(SL_SHAPE(784, 256), -0.05, 0.05); */
sl_tensor *sl_uniform_at(const char *at, sl_shape shape, double low, double high, struct sl_make make)
{
	return draw(at, &slp_op_uniform, shape, low, bound_of(low, high, make.dtype), make);
}

/* A tensor of numbers drawn from the normal distribution; float32 or float64 (SL_EDTYPE otherwise).  sigma is the
 * standard deviation (SL_EINVAL if negative, or one of the numbers is not finite).  The same after the same sl_seed, to
 * rounding on every device.  Otherwise as sl_full.  G. Box, M. Muller, Annals of Mathematical Statistics 29, 1958.
 *
 *     sl_tensor *noise = sl_normal(SL_SHAPE(1000, 1), 0, 0.01); */
sl_tensor *sl_normal_at(const char *at, sl_shape shape, double mean, double sigma, struct sl_make make)
{
	return draw(at, &slp_op_normal, shape, mean, sigma, make);
}

/* In training mode, x with each element set to 0 with probability p and the others divided by 1 - p; otherwise x.
 * SL_EINVAL unless 0 <= p < 1; SL_EDTYPE unless x is a float.  N. Srivastava et al., "Dropout: a simple way to prevent
 * neural networks from overfitting", JMLR 2014.
 *
 *     sl_tensor *h = sl_dropout(sl_relu(sl_linear(x, w, b)), 0.5); */
sl_tensor *sl_dropout_at(const char *at, sl_tensor *x, double p)
{
	if (!is_rate(p)) return slp_call_fail(at, "sl_dropout", SL_EINVAL, "probability %g is not in [0, 1)", p);
	if (x && (!sl_is_training() || p == 0)) return sl_reshape_at(at, x, sl_tensor_shape(x));
	struct slp_dropout attrs = {p, x ? slp_rng_next_apart() : (struct slp_rng){0, 0}};
	return slp_apply1(at, &slp_op_dropout, &attrs, 1, &x);
}

/* 1 with the given probabilities, else 0; the result has the shape and float type of the probabilities.  The same after
 * the same sl_seed, on every device.  For a probability outside [0, 1], or NaN, the operation fails with SL_EINVAL on a
 * CPU, and the message names the element; on a GPU that element is NaN.  SL_EDTYPE: the probabilities are not floats.
 *
 *     sl_tensor *kept = sl_mul(x, sl_bernoulli(sl_full(sl_tensor_shape(x), 0.9))); */
sl_tensor *sl_bernoulli_at(const char *at, sl_tensor *probabilities)
{
	struct slp_bernoulli attrs = {probabilities ? slp_rng_next() : (struct slp_rng){0, 0}};
	return slp_apply1(at, &slp_op_bernoulli, &attrs, 1, &probabilities);
}
