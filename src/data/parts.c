/* Data sets derived from others: a selection of their samples, or a concatenation. */
#include <stdlib.h>
#include <string.h>

#include "data/dataset.h"
#include "io/crc32c.h"
#include "op.h"
#include "philox.h"
#include "starling/data.h"
#include "tensor/tensor.h"

/* ---- some samples of one ---------------------------------------------------------------------------------------- */

struct part {
	struct sl_dataset base;
	sl_dataset *of;
	int64_t *numbers;
};

static bool part_get(const sl_dataset *d, struct sl_sample *s)
{
	const struct part *p = (const struct part *)d;
	return slp_dataset_get_inner(p->of, p->numbers[s->index], NULL, s);
}

static void part_free(sl_dataset *d)
{
	struct part *p = (struct part *)d;
	sl_dataset_free(p->of);
	free(p->numbers);
}

static bool part_sums(const sl_dataset *d, uint32_t sums[2])
{
	const struct part *p = (const struct part *)d;
	if (!slp_dataset_sums(p->of, sums)) return false;
	for (int i = 0; i < 2; i++) sums[i] = slp_crc32c(sums[i], p->numbers, (size_t)d->size * sizeof *p->numbers);
	return true;
}

static const struct slp_source part_source = {"part", part_get, part_free, part_sums};

sl_dataset *slp_dataset_part(sl_dataset *of, int64_t *numbers, int64_t count)
{
	struct part *p = numbers ? slp_dataset_new(sizeof *p, &part_source) : NULL;
	if (!p) {
		free(numbers);
		return NULL;
	}
	p->of = slp_dataset_hold(of);
	p->numbers = numbers;
	p->base.size = count;
	p->base.x = of->x;
	p->base.y = of->y;
	if (slp_dataset_copy_classes(&p->base, of)) return &p->base;
	sl_dataset_free(&p->base);
	return NULL;
}

static bool check_range(const sl_dataset *d, int64_t first, int64_t count)
{
	if (first >= 0 && count >= 1 && first <= d->size && count <= d->size - first) return true;
	return slp_data_fail(SL_EINVAL, "%lld samples from %lld on exceed the %lld of the data set", (long long)count,
	                     (long long)first, (long long)d->size);
}

static int64_t *counted(int64_t first, int64_t count)
{
	int64_t *numbers = slp_malloc((size_t)count * sizeof *numbers);
	for (int64_t i = 0; numbers && i < count; i++) numbers[i] = first + i;
	return numbers;
}

/* `count` samples of a data set from number `first` on, as a data set.
 *     sl_dataset *small = sl_dataset_range(train, 0, 1000);
 * NULL with SL_EINVAL: the range is empty, or not within the data set. */
sl_dataset *sl_dataset_range_at(const char *at, sl_dataset *dataset, int64_t first, int64_t count)
{
	SLP_CALL("sl_dataset_range", at);
	if (!slp_given(at, "sl_dataset_range", "data set", dataset) || !check_range(dataset, first, count)) return NULL;
	return slp_dataset_part(dataset, counted(first, count), count);
}

/* The samples with these numbers, in this order; a number may occur more than once.
 *     sl_dataset *three = sl_dataset_select(train, SL_ARRAY(int64_t, 4, 8, 15), 3);
 * NULL with SL_EINVAL: numbers is NULL, or a sample does not exist. */
sl_dataset *sl_dataset_select_at(const char *at, sl_dataset *dataset, const int64_t *numbers, int64_t count)
{
	SLP_CALL("sl_dataset_select", at);
	if (!slp_given(at, "sl_dataset_select", "data set", dataset) ||
	    !slp_given(at, "sl_dataset_select", "list", numbers))
		return NULL;
	if (count < 1 || count > INT32_MAX) {
		slp_data_fail(SL_EINVAL, "%lld samples; the number must be from 1 to %d", (long long)count, INT32_MAX);
		return NULL;
	}
	for (int64_t i = 0; i < count; i++)
		if (!check_range(dataset, numbers[i], 1)) return NULL;
	int64_t *copy = counted(0, count);
	if (copy) memcpy(copy, numbers, (size_t)count * sizeof *copy);
	return slp_dataset_part(dataset, copy, count);
}

/* R. Durstenfeld, "Algorithm 235: random permutation", 1964; the stream is one that loaders have not. */
static void shuffle(int64_t *numbers, int64_t count, uint64_t seed)
{
	for (int64_t i = count - 1; i > 0; i--) {
		uint32_t w[4];
		slp_philox(seed, 5ull << 61, (uint64_t)i, w);
		int64_t j = (int64_t)((unsigned __int128)((uint64_t)w[0] << 32 | w[1]) * (uint64_t)(i + 1) >> 64);
		int64_t number = numbers[i];
		numbers[i] = numbers[j];
		numbers[j] = number;
	}
}

/* Splits the samples of a data set at random: parts[0] gets `count` of them, parts[1] the others.  The same seed gives
 * the same parts.  Returns false, with both NULL and SL_EINVAL, if a part would be empty.
 *
 *     sl_dataset *parts[2];
 *     if (sl_dataset_split(all, 50000, 1, parts)) … */
bool sl_dataset_split_at(const char *at, sl_dataset *dataset, int64_t count, uint64_t seed, sl_dataset *parts[2])
{
	SLP_CALL("sl_dataset_split", at);
	if (!slp_given(at, "sl_dataset_split", "place for the parts", parts)) return false;
	parts[0] = parts[1] = NULL;
	if (!slp_given(at, "sl_dataset_split", "data set", dataset)) return false;
	if (count < 1 || count >= dataset->size)
		return slp_data_fail(SL_EINVAL, "%lld of %lld samples: one part would be empty", (long long)count,
		                     (long long)dataset->size);
	int64_t rest = dataset->size - count, *numbers = counted(0, dataset->size), *others = counted(0, rest);
	if (numbers && others) {
		shuffle(numbers, dataset->size, seed);
		memcpy(others, numbers + count, (size_t)rest * sizeof *others);
		parts[0] = slp_dataset_part(dataset, numbers, count);
		parts[1] = slp_dataset_part(dataset, others, rest);
		if (parts[0] && parts[1]) return true;
	} else {
		free(numbers);
		free(others);
	}
	for (int i = 0; i < 2; i++) {
		sl_dataset_free(parts[i]);
		parts[i] = NULL;
	}
	return false;
}

/* ---- several ---------------------------------------------------------------------------------------------------- */

struct several {
	struct sl_dataset base;
	int count;
	sl_dataset **of;
	int64_t *ends; /* where the samples of each end */
};

static bool several_get(const sl_dataset *d, struct sl_sample *s)
{
	const struct several *c = (const struct several *)d;
	int low = 0, high = c->count - 1;
	while (low < high) {
		int middle = (low + high) / 2;
		if (s->index < c->ends[middle]) high = middle;
		else low = middle + 1;
	}
	return slp_dataset_get_inner(c->of[low], s->index - (low ? c->ends[low - 1] : 0), NULL, s);
}

static void several_free(sl_dataset *d)
{
	struct several *c = (struct several *)d;
	for (int i = 0; c->of && i < c->count; i++) sl_dataset_free(c->of[i]);
	free(c->of);
	free(c->ends);
}

static bool several_sums(const sl_dataset *d, uint32_t sums[2])
{
	const struct several *c = (const struct several *)d;
	for (int i = 0; i < c->count; i++) {
		uint32_t of[2];
		if (!slp_dataset_sums(c->of[i], of)) return false;
		for (int k = 0; k < 2; k++) sums[k] = slp_crc32c(sums[k], &of[k], sizeof of[k]);
	}
	return true;
}

static const struct slp_source several_source = {"several", several_get, several_free, several_sums};

static bool same_type(struct sl_array a, struct sl_array b)
{
	return a.dtype == b.dtype && (!a.dtype || sl_shape_equal(a.shape, b.shape));
}

static bool check_alike(const char *at, sl_dataset *const *datasets, int count)
{
	int64_t size = 0;
	if (count < 1) return slp_data_fail(SL_EINVAL, "there is no data set");
	for (int i = 0; i < count; i++) {
		const sl_dataset *d = datasets[i], *first = datasets[0];
		if (!slp_given(at, "sl_dataset_concat", "data set", d)) return false;
		if (!same_type(d->x, first->x) || !same_type(d->y, first->y) || d->classes != first->classes)
			return slp_data_fail(
			        SL_ESHAPE,
			        "data set %d has samples of a different shape, data type or number of classes "
			        "than the first",
			        i);
		if ((size += d->size) > INT32_MAX)
			return slp_data_fail(SL_EINVAL, "together they have more than %d samples", INT32_MAX);
	}
	return true;
}

static bool join(struct several *c, sl_dataset *const *datasets, int count)
{
	c->of = slp_calloc((size_t)count, sizeof *c->of);
	c->ends = slp_calloc((size_t)count, sizeof *c->ends);
	if (!c->of || !c->ends) return false;
	c->count = count;
	for (int i = 0; i < count; i++) {
		c->of[i] = slp_dataset_hold(datasets[i]);
		c->ends[i] = c->base.size += datasets[i]->size;
	}
	c->base.x = datasets[0]->x;
	c->base.y = datasets[0]->y;
	return slp_dataset_copy_classes(&c->base, datasets[0]);
}

/* The samples of several data sets, one after the other; the names of the classes are those of the first data set.
 *     sl_dataset *all = sl_dataset_concat(train, extra);
 * NULL with SL_ESHAPE: their samples differ in shape or data type. */
sl_dataset *sl_dataset_concat_at(const char *at, sl_dataset *const *datasets, int count)
{
	SLP_CALL("sl_dataset_concat", at);
	if (!slp_given(at, "sl_dataset_concat", "list", datasets) || !check_alike(at, datasets, count)) return NULL;
	struct several *c = slp_dataset_new(sizeof *c, &several_source);
	if (c && join(c, datasets, count)) return &c->base;
	sl_dataset_free(c ? &c->base : NULL);
	return NULL;
}
