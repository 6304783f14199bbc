/* Data sets that transform x of another data set whenever a sample is read. */
#include <stdlib.h>
#include <string.h>

#include "data/image/convert.h"
#include "data/image/transforms.h"
#include "io/crc32c.h"
#include "op.h"
#include "options.h"
#include "starling/data.h"

struct transformed {
	struct sl_dataset base;
	sl_dataset *of;
	int count;
	struct sl_transform *list;
	sl_shape *shapes; /* before each of them */
	int64_t most;     /* elements of the largest of all shapes */
};

/* Memory for a sample in work: as the inner set has it, and two buffers of numbers. */
struct room {
	void *raw;
	float *a, *b;
};

static size_t room_bytes(const struct transformed *t)
{
	size_t raw = (slp_array_bytes(t->of->x) + 63) / 64 * 64;
	return raw + 2 * (size_t)t->most * sizeof(float);
}

static struct room divide(const struct transformed *t, char *memory)
{
	size_t raw = (slp_array_bytes(t->of->x) + 63) / 64 * 64;
	return (struct room){memory, (float *)(memory + raw), (float *)(memory + raw) + t->most};
}

/* x as float32: bytes as numbers in [0, 1], others as they are. */
static void numbers_of(const sl_dataset *d, const void *raw, float *to)
{
	int64_t n = sl_shape_size(d->x.shape);
	const struct slp_view v = {(void *)raw, {d->x.dtype, d->x.shape}};
	if (d->x.dtype == SL_UINT8) slp_unit_floats(raw, to, n);
	else
		for (int64_t i = 0; i < n; i++) to[i] = (float)slp_get(&v, i);
}

static bool run(const struct transformed *t, struct room *r, struct sl_sample *s)
{
	for (int i = 0; i < t->count; i++) {
		const struct sl_transform *each = &t->list[i];
		const struct slp_transform_rule *rule = slp_transform_rule(each->kind);
		if (rule->change) {
			if (!rule->change(each, t->shapes[i], r->a, s)) return false;
			continue;
		}
		if (!rule->make(each, t->shapes[i], r->a, r->b, s)) return false;
		float *made = r->b;
		r->b = r->a;
		r->a = made;
	}
	return true;
}

static bool get_in(const struct transformed *t, struct room r, struct sl_sample *s)
{
	bool plain = t->of->x.dtype == SL_FLOAT32;
	if (!slp_dataset_get_inner(t->of, s->index, plain ? (void *)r.a : r.raw, s)) return false;
	if (!plain) numbers_of(t->of, r.raw, r.a);
	if (!run(t, &r, s)) return false;
	memcpy(s->x, r.a, slp_array_bytes(t->base.x));
	return true;
}

static bool get(const sl_dataset *d, struct sl_sample *s)
{
	const struct transformed *t = (const struct transformed *)d;
	char *memory = slp_try_malloc(room_bytes(t));
	if (!memory) return slp_data_fail(SL_ENOMEM, "no memory to transform a sample");
	bool ok = get_in(t, divide(t, memory), s);
	free(memory);
	return ok;
}

static void give_up(sl_dataset *d)
{
	struct transformed *t = (struct transformed *)d;
	sl_dataset_free(t->of);
	free(t->list);
	free(t->shapes);
}

/* Figures of the transforms; the effect of a function is known to the program only. */
static bool sums(const sl_dataset *d, uint32_t sums[2])
{
	const struct transformed *t = (const struct transformed *)d;
	if (!slp_dataset_sums(t->of, sums)) return false;
	for (int i = 0; i < t->count; i++) {
		const struct sl_transform *e = &t->list[i];
		const double v[] = {e->kind,     (double)e->height, (double)e->width, (double)e->pad, e->p,
		                    e->vertical, e->brightness,     e->contrast,      e->saturation};
		sums[0] = slp_crc32c(sums[0], v, sizeof v);
		sums[0] = slp_crc32c(sums[0], e->mean, sizeof e->mean);
		sums[0] = slp_crc32c(sums[0], e->std, sizeof e->std);
		if (e->kind != SL_RANDOM_RESIZED_CROP) continue;
		sums[0] = slp_crc32c(sums[0], e->area, sizeof e->area);
		sums[0] = slp_crc32c(sums[0], e->ratio, sizeof e->ratio);
	}
	return true;
}

static const struct slp_source transformed_source = {"transformed", get, give_up, sums};

/* ---- making one ------------------------------------------------------------------------------------------------- */

static bool chain(struct transformed *t)
{
	sl_shape shape = t->of->x.shape;
	t->most = sl_shape_size(shape);
	for (int i = 0; i < t->count; i++) {
		const struct slp_transform_rule *rule = slp_transform_rule(t->list[i].kind);
		if (!rule) return slp_data_fail(SL_EINVAL, "transform %d is of an unknown kind", i);
		t->shapes[i] = shape;
		if (!rule->shape(&t->list[i], t->shapes[i], &shape)) return false;
		if (sl_shape_size(shape) > t->most) t->most = sl_shape_size(shape);
	}
	t->base.x = (struct sl_array){NULL, shape, SL_FLOAT32};
	return true;
}

static bool fill(struct transformed *t, sl_dataset *of, const struct sl_transform *transforms, int count)
{
	t->base.size = of->size;
	t->base.y = of->y;
	t->list = slp_malloc((size_t)count * sizeof *t->list);
	t->shapes = slp_malloc((size_t)count * sizeof *t->shapes);
	if (!t->list || !t->shapes) return false;
	memcpy(t->list, transforms, (size_t)count * sizeof *t->list);
	for (int i = 0; i < count; i++)
		if (!SLP_OPTIONS(sl_transform, NULL, "sl_dataset_transform", &t->list[i])) return false;
	t->count = count;
	return chain(t) && slp_dataset_copy_classes(&t->base, of);
}

/* A data set that applies transforms, one after the other, to x of another data set whenever a sample is read.
 * Transforms work on float32; uint8 values become numbers in [0, 1].
 *
 *     sl_dataset *d = sl_dataset_transform(train, sl_random_crop(.height = 32, .width = 32, .pad = 4),
 *                                          sl_random_flip(),
 *                                          sl_normalise(.mean = {0.49, 0.48, 0.45}, .std = {0.25, 0.24, 0.26}));
 *
 * Random crops lie anywhere within the image and its padding; center crops in the middle.  Resized images are
 * antialiased when they become smaller.  Colours change by random factors of brightness, contrast and saturation in
 * this order, and stay in [0, 1].  Several threads call the function of sl_map at the same time, like that of
 * sl_dataset_new.  NULL with SL_EINVAL: a number is out of range; SL_ESHAPE: x is not an image, or smaller than a crop.
 * */
sl_dataset *sl_dataset_transform_at(const char *at, sl_dataset *dataset, const struct sl_transform *transforms,
                                    int count)
{
	SLP_CALL("sl_dataset_transform", at);
	if (!slp_given(at, "sl_dataset_transform", "data set", dataset)) return NULL;
	if (!transforms || count < 1)
		return slp_call_fail(at, "sl_dataset_transform", SL_EINVAL, "there is no transform");
	struct transformed *t = slp_dataset_new(sizeof *t, &transformed_source);
	if (!t) return NULL;
	t->of = slp_dataset_hold(dataset);
	if (fill(t, dataset, transforms, count)) return &t->base;
	sl_dataset_free(&t->base);
	return NULL;
}
