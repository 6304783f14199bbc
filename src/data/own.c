/* Custom data sets: a function of the program makes the samples. */
#include "data/dataset.h"
#include "io/crc32c.h"
#include "op.h"
#include "starling/data.h"
#include "tensor/tensor.h"

struct own {
	struct sl_dataset base;
	struct sl_dataset_def def;
};

static bool get(const sl_dataset *d, struct sl_sample *s)
{
	const struct sl_dataset_def *def = &((const struct own *)d)->def;
	if (def->get(def->self, s)) return true;
	return sl_error() != SL_OK ? false
	                           : slp_data_fail(SL_EINVAL, "the data set's function failed and did not say why");
}

static void give_up(sl_dataset *d)
{
	const struct sl_dataset_def *def = &((struct own *)d)->def;
	if (def->free) def->free(def->self);
}

/* Only the program knows its values. */
static bool sums(const sl_dataset *d, uint32_t sums[2])
{
	sums[0] = slp_crc32c(0, &d->size, sizeof d->size);
	return true;
}

static const struct slp_source own_source = {"own", get, give_up, sums};

static bool check(const struct sl_dataset_def *def)
{
	if (!def->get) return slp_data_fail(SL_EINVAL, ".get is NULL");
	if (def->size < 1 || def->size > INT32_MAX)
		return slp_data_fail(SL_EINVAL, "size is %lld; it must be from 1 to %d", (long long)def->size,
		                     INT32_MAX);
	if ((unsigned)def->x_dtype >= SL_DTYPE_COUNT || (unsigned)def->y_dtype >= SL_DTYPE_COUNT)
		return slp_data_fail(SL_EDTYPE, "%d or %d is not a data type", (int)def->x_dtype, (int)def->y_dtype);
	for (int i = 0; i < 2; i++) {
		sl_shape shape = i ? def->y_shape : def->x_shape;
		if (shape.ndim >= SL_MAX_NDIM || !slp_shape_valid(shape) || !sl_shape_size(shape))
			return slp_data_fail(SL_ESHAPE, "%s_shape is not a shape of samples", i ? "y" : "x");
	}
	return true;
}

/* A data set whose samples a function of the program makes: .get writes sample s->index to s->x and s->y.  Several
 * workers of a loader call it at the same time, so it must keep no state between calls and call no function that needs
 * the engine; it draws random numbers with sl_sample_uniform.  .free is called when the last reference to the data set
 * is released, and also if making it fails.
 *
 *     static bool get(void *self, struct sl_sample *s)
 *     {
 *             *(float *)s->x = (float)s->index;
 *             return true;
 *     }
 *     sl_dataset *d = sl_dataset_new(.size = 100, .x_shape = SL_SHAPE(1), .get = get);
 *
 * NULL with SL_EINVAL, SL_ESHAPE, SL_EDTYPE: the definition is not valid. */
sl_dataset *sl_dataset_new_at(const char *at, struct sl_dataset_def def)
{
	SLP_CALL("sl_dataset_new", at);
	struct own *d = check(&def) ? slp_dataset_new(sizeof *d, &own_source) : NULL;
	if (!d) {
		if (def.free) def.free(def.self);
		return NULL;
	}
	d->def = def;
	d->base.size = def.size;
	d->base.x = (struct sl_array){NULL, def.x_shape, def.x_dtype ? def.x_dtype : SL_FLOAT32};
	d->base.y = (struct sl_array){NULL, def.y_shape, def.y_dtype};
	if (slp_dataset_classes(&d->base, def.classes)) return &d->base;
	sl_dataset_free(&d->base);
	return NULL;
}
