/* Quantising ONNX models: ranges of values over samples, by their extremes, by a percentile, or by entropy (S. Migacz,
 * "8-bit inference with TensorRT", 2017), and the scales that follow. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "alloc.h"
#include "onnx/packed.h"
#include "onnx/quantize/quantize.h"
#include "onnx/read.h"
#include "tensor/tensor.h"

enum { BINS = SLP_QUANTIZE_BINS };

/* ---- numbers of one value ---------------------------------------------------------------------------------------- */

static void extend(struct slp_quantized *v, const float *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		if (!isfinite(x[i])) continue; /* a mask of attention */
		v->low = fmin(v->low, x[i]);
		v->high = fmax(v->high, x[i]);
	}
}

/* The histogram's ends: those of the values, or of their magnitudes. */
static void ends_of(const struct slp_quantizing *q, const struct slp_quantized *v, double *low, double *high)
{
	bool magnitudes = q->opts->method == SL_CALIBRATE_ENTROPY;
	*low = magnitudes ? 0 : v->low;
	*high = magnitudes ? fmax(fabs(v->low), fabs(v->high)) : v->high;
}

static void count(const struct slp_quantizing *q, struct slp_quantized *v, const float *x, int64_t n)
{
	double low, high;
	ends_of(q, v, &low, &high);
	double width = (high - low) / BINS;
	for (int64_t i = 0; i < n && width > 0; i++) {
		if (!isfinite(x[i])) continue;
		double at = q->opts->method == SL_CALIBRATE_ENTROPY ? fabs((double)x[i]) : x[i];
		int bin = (int)((at - low) / width);
		v->counts[bin < 0 ? 0 : bin >= BINS ? BINS - 1 : bin]++;
	}
}

/* Half of the rest is cut off at each end. */
static void cut_tails(struct slp_quantized *v, double percentile)
{
	double total = 0, width = (v->high - v->low) / BINS, sum = 0, low = v->low, high = v->high;
	for (int i = 0; i < BINS; i++) total += v->counts[i];
	double tail = total * (100 - percentile) / 200;
	for (int i = 0; i < BINS && (sum += v->counts[i]) <= tail; i++) low = v->low + (i + 1) * width;
	sum = 0;
	for (int i = BINS - 1; i >= 0 && (sum += v->counts[i]) <= tail; i--) high = v->low + i * width;
	if (low < high) v->low = low, v->high = high;
}

/* The divergence between the first n bins, with all larger values in the last one, and the same in fewer levels; and how
 * far chance alone moves it: of few values, whose bins differ by chance, no two limits are told apart. */
struct divergence {
	double from, chance;
};

/* Without what chance gives: of so many values, half of the bins that levels join. */
static struct divergence without_chance(double sum, int bins, int levels, double total)
{
	int joined = bins > levels ? bins - levels : 0;
	return (struct divergence){sum - joined / (2 * total), sqrt(2.0 * joined) / (2 * total)};
}

static struct divergence divergence(const double *counts, int n, int levels)
{
	double p[BINS] = {0}, outside = 0, total = 0, kept = 0, sum = 0, q[BINS] = {0};
	int bins = 0, used = 0;
	for (int i = n; i < BINS; i++) outside += counts[i];
	for (int i = 0; i < n; i++) p[i] = counts[i], kept += counts[i];
	p[n - 1] += outside;
	total = kept + outside;
	for (int level = 0; level < levels; level++) {
		int first = level * n / levels, last = (level + 1) * n / levels, some = 0;
		double all = 0;
		for (int i = first; i < last; i++) all += counts[i], some += p[i] > 0;
		for (int i = first; i < last; i++)
			if (p[i] > 0) q[i] = all / some;
		used += some > 0, bins += some;
	}
	if (kept <= 0) return (struct divergence){DBL_MAX, 0};
	for (int i = 0; i < n; i++) {
		if (p[i] <= 0) continue;
		double share = q[i] > 0 ? q[i] / kept : 1e-10;
		sum += p[i] / total * log(p[i] / total / share);
	}
	return without_chance(sum, bins, used, total);
}

/* The largest limit that is not worse than the best by more than chance. */
static void cut_magnitudes(struct slp_quantized *v)
{
	enum { STEP = 8 }; /* bins */
	double most = fmax(fabs(v->low), fabs(v->high)), best = DBL_MAX, limit = most;
	int levels = (int)lrint(255 * most / (fmax(v->high, 0) - fmin(v->low, 0))); /* of the longer side */
	v->counts[0] = v->counts[1]; /* zeros, of which a Relu makes many, are exact anyway */
	for (int n = BINS; n >= levels; n -= STEP) best = fmin(best, divergence(v->counts, n, levels).from);
	for (int n = BINS; n >= levels; n -= STEP) {
		struct divergence d = divergence(v->counts, n, levels);
		limit = most * n / BINS;
		if (d.from <= best + 2 * d.chance) break;
	}
	v->low = fmax(v->low, -limit);
	v->high = fmin(v->high, limit);
}

/* Bytes from 0 to 255; 0 itself has one, as padding is 0. */
static void set_scale(const struct slp_quantizing *q, struct slp_quantized *v)
{
	if (v->counts && q->opts->method == SL_CALIBRATE_PERCENTILE) cut_tails(v, q->opts->percentile);
	if (v->counts && q->opts->method == SL_CALIBRATE_ENTROPY) cut_magnitudes(v);
	v->low = strcmp(v->from, v->name) ? 0 : fmin(v->low, 0);
	v->high = fmax(v->high, 0);
	v->scale = (float)((v->high - v->low) / 255);
	if (!(v->scale >= FLT_MIN)) v->scale = 1;
	v->zero = (int)lrint(fmin(255, fmax(0, -v->low / v->scale)));
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

/* The values that one block gives. */
struct group {
	sl_block *block;
	int which[SL_MAX_RESULTS], count;
};

static bool note(struct slp_quantizing *q, struct slp_quantized *v, sl_tensor *t, bool counting)
{
	int64_t n = sl_tensor_size(t);
	if (sl_tensor_dtype(t) != SL_FLOAT32)
		return slp_file_fail(q->f, SL_EUNSUPPORTED, "\"%.100s\" is %s: networks of float32 are quantised",
		                     v->name, sl_dtype_name(sl_tensor_dtype(t)));
	float *x = slp_malloc((size_t)n * sizeof *x + 1);
	bool ok = x && sl_read_at(q->at, t, x, (size_t)n * sizeof *x) == SL_OK;
	if (ok && counting) count(q, v, x, n);
	else if (ok) extend(v, x, n);
	free(x);
	return ok;
}

static bool run(struct slp_quantizing *q, const struct group *g, sl_tensor *const *in, int nin, bool counting)
{
	sl_tensor *out[SL_MAX_RESULTS];
	bool ok = false;
	SL_SCOPE {
		ok = sl_forward_all_at(q->at, g->block, in, nin, out, g->count) == SL_OK;
		for (int i = 0; ok && i < g->count; i++) ok = note(q, &q->values[g->which[i]], out[i], counting);
	}
	return ok;
}

static sl_block *block_of(struct slp_quantizing *q, const struct group *g)
{
	const char *names[SL_MAX_RESULTS];
	struct slp_file f = {.at = q->at, .function = q->f->function, .path = q->f->path};
	struct sl_import_onnx_opts o = {
	        .inputs = q->opts->inputs, .ninputs = q->opts->ninputs, .outputs = names, .noutputs = g->count};
	for (int i = 0; i < g->count; i++) names[i] = q->values[g->which[i]].name;
	sl_block *b = slp_onnx_pack(q->model, &f) ? slp_import_onnx_take(&f, o) : NULL;
	free(f.data);
	return b;
}

static bool run_samples(struct slp_quantizing *q, struct group *g, sl_tensor *const *samples, int nsamples, int nin)
{
	bool ok = (g->block = block_of(q, g)) != NULL, twice = q->opts->method != SL_CALIBRATE_MINMAX;
	for (int i = 0; i < g->count; i++) q->values[g->which[i]].low = DBL_MAX, q->values[g->which[i]].high = -DBL_MAX;
	for (int i = 0; ok && i < nsamples; i += nin) ok = run(q, g, samples + i, nin, false);
	for (int i = 0; ok && twice && i < g->count; i++) {
		struct slp_quantized *v = &q->values[g->which[i]];
		ok = (v->counts = slp_calloc(BINS, sizeof *v->counts)) != NULL;
	}
	for (int i = 0; ok && twice && i < nsamples; i += nin) ok = run(q, g, samples + i, nin, true);
	sl_block_free(g->block);
	return ok;
}

/* Inputs of the model that are no weights. */
static int inputs_of(const struct slp_quantizing *q)
{
	int n = 0;
	for (size_t i = 0; i < q->g->n_input; i++) {
		bool weight = false;
		for (size_t k = 0; k < q->g->n_initializer && !weight; k++)
			weight =
			        q->g->initializer[k]->name && !strcmp(q->g->initializer[k]->name, q->g->input[i]->name);
		n += !weight;
	}
	return n;
}

bool slp_quantize_calibrate(struct slp_quantizing *q, sl_tensor *const *samples, int nsamples)
{
	int nin = inputs_of(q);
	if (nin < 1 || nsamples < nin || nsamples % nin)
		return slp_file_fail(q->f, SL_EINVAL, "takes %d inputs: %d tensors are no samples of it", nin,
		                     nsamples);
	for (int i = 0; i < q->nvalues;) {
		struct group g = {0};
		for (; i < q->nvalues && g.count < SL_MAX_RESULTS; i++)
			if (q->values[i].like < 0) g.which[g.count++] = i;
		if (g.count && !run_samples(q, &g, samples, nsamples, nin)) return false;
	}
	for (int i = 0; i < q->nvalues; i++)
		if (q->values[i].like < 0) set_scale(q, &q->values[i]);
	for (int i = 0; i < q->nvalues; i++) {
		int like = i;
		for (int k = 0; k < q->nvalues && q->values[like].like >= 0; k++) like = q->values[like].like;
		q->values[i].scale = q->values[like].scale;
		q->values[i].zero = q->values[like].zero;
	}
	return true;
}
