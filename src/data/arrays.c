/* Data sets of arrays in main memory. */
#include <stdlib.h>
#include <string.h>

#include "data/arrays.h"
#include "data/dataset.h"
#include "io/crc32c.h"
#include "op.h"
#include "starling/data.h"
#include "tensor/tensor.h"

struct arrays {
	struct sl_dataset base;
	const char *x, *y;
	size_t x_bytes, y_bytes; /* of a sample */
	void *owned[2];
};

static bool get(const sl_dataset *d, struct sl_sample *s)
{
	const struct arrays *a = (const struct arrays *)d;
	memcpy(s->x, a->x + (size_t)s->index * a->x_bytes, a->x_bytes);
	if (s->y && a->y_bytes) memcpy(s->y, a->y + (size_t)s->index * a->y_bytes, a->y_bytes);
	return true;
}

static void give_up(sl_dataset *d)
{
	struct arrays *a = (struct arrays *)d;
	free(a->owned[0]);
	free(a->owned[1]);
}

static bool sums(const sl_dataset *d, uint32_t sums[2])
{
	const struct arrays *a = (const struct arrays *)d;
	sums[0] = slp_crc32c(0, a->x, (size_t)d->size * a->x_bytes);
	sums[1] = slp_crc32c(0, a->y, (size_t)d->size * a->y_bytes);
	return true;
}

static const struct slp_source arrays_source = {"arrays", get, give_up, sums};

/* ---- making one ------------------------------------------------------------------------------------------------- */

bool slp_rows_split(const char *what, sl_shape shape, int64_t *rows, sl_shape *row)
{
	if (shape.ndim < 1 || !slp_shape_valid(shape))
		return slp_data_fail(SL_ESHAPE, "%s has no first axis of samples", what);
	if (!sl_shape_size(shape)) return slp_data_fail(SL_ESHAPE, "%s is empty", what);
	if (shape.dim[0] > INT32_MAX) return slp_data_fail(SL_ESHAPE, "%s has more than %d samples", what, INT32_MAX);
	*rows = shape.dim[0];
	*row = (sl_shape){.ndim = shape.ndim - 1};
	memcpy(row->dim, shape.dim + 1, (size_t)row->ndim * sizeof *row->dim);
	return true;
}

bool slp_rows_fit(const char *x, int64_t x_rows, const char *y, int64_t y_rows)
{
	return x_rows == y_rows ||
	       slp_data_fail(SL_ESHAPE, "%s has %lld samples, %s has %lld", x, (long long)x_rows, y, (long long)y_rows);
}

static bool check_array(const char *what, const struct sl_array *a, int64_t *rows, struct sl_array *of)
{
	if (!a->data) return slp_data_fail(SL_EINVAL, "%s has no data", what);
	if ((unsigned)a->dtype >= SL_DTYPE_COUNT)
		return slp_data_fail(SL_EDTYPE, "%s: %d is not a data type", what, (int)a->dtype);
	of->dtype = a->dtype ? a->dtype : SL_FLOAT32;
	return slp_rows_split(what, a->shape, rows, &of->shape);
}

bool slp_label_classes(sl_dataset *d, const int32_t *labels, int64_t n, int classes)
{
	int32_t largest = 0;
	if (!labels) return slp_dataset_classes(d, classes);
	for (int64_t i = 0; i < n; i++) {
		if (labels[i] < 0 && !classes) return slp_dataset_classes(d, 0); /* no labels, then */
		if (labels[i] < 0 || (classes && labels[i] >= classes))
			return slp_data_fail(SL_EFORMAT, "sample %lld has label %d, labels are 0 to %d", (long long)i,
			                     (int)labels[i], classes - 1);
		if (labels[i] > largest) largest = labels[i];
	}
	if (!classes && largest >= SLP_MAX_CLASSES) return slp_dataset_classes(d, 0);
	return slp_dataset_classes(d, classes ? classes : largest + 1);
}

static const char *take_array(struct sl_array from, bool copy, void **owned)
{
	size_t bytes = slp_array_bytes((struct sl_array){NULL, from.shape, from.dtype ? from.dtype : SL_FLOAT32});
	if (!copy) return from.data;
	*owned = slp_malloc(bytes);
	return *owned ? memcpy(*owned, from.data, bytes) : NULL;
}

static bool fill(struct arrays *a, struct sl_array x, struct sl_array y, struct sl_dataset_opts opts)
{
	sl_dataset *d = &a->base;
	int64_t y_rows = 0;
	if (!check_array("x", &x, &d->size, &d->x)) return false;
	if (y.data && (!check_array("y", &y, &y_rows, &d->y) || !slp_rows_fit("x", d->size, "y", y_rows))) return false;
	a->x_bytes = slp_array_bytes(d->x);
	a->y_bytes = slp_array_bytes(d->y);
	a->x = take_array(x, opts.copy, &a->owned[0]);
	a->y = a->x && y.data ? take_array(y, opts.copy, &a->owned[1]) : NULL;
	if (!a->x || (y.data && !a->y)) return false;
	bool labels = d->y.dtype == SL_INT32 && d->y.shape.ndim == 0;
	if (opts.classes && !labels)
		return slp_data_fail(SL_EDTYPE, "y is not a list of int32, as labels of classes are");
	return slp_label_classes(d, labels ? (const int32_t *)a->y : NULL, d->size, opts.classes);
}

/* A data set of arrays in main memory: x[i] and y[i], along the first axis, are sample i; y without data: no y.  Data
 * types are kept.  If y is a list of int32, these are labels; see struct sl_dataset_opts.  The memory must stay as long
 * as the data set and the objects made from it, unless .copy is set.  NULL with SL_EINVAL: x has no data; SL_EDTYPE: no
 * such data type, or .classes without such labels; SL_ESHAPE: x and y have different numbers of rows; SL_EFORMAT: a
 * label is not a class.
 *
 *     sl_dataset *d = sl_dataset_arrays(((struct sl_array){x, SL_SHAPE(1000, 4), SL_FLOAT32}),
 *                                       ((struct sl_array){y, SL_SHAPE(1000), SL_INT32}), .classes = 3); */
sl_dataset *sl_dataset_arrays_at(const char *at, struct sl_array x, struct sl_array y, struct sl_dataset_opts opts)
{
	SLP_CALL("sl_dataset_arrays", at);
	struct arrays *a = slp_dataset_new(sizeof *a, &arrays_source);
	if (a && fill(a, x, y, opts)) return &a->base;
	sl_dataset_free(a ? &a->base : NULL);
	return NULL;
}

sl_dataset *slp_arrays_own(struct sl_array x, struct sl_array y, void *x_owned, void *y_owned)
{
	struct arrays *a = slp_dataset_new(sizeof *a, &arrays_source);
	if (!a) {
		free(x_owned);
		free(y_owned);
		return NULL;
	}
	a->owned[0] = x_owned;
	a->owned[1] = y_owned;
	if (fill(a, x, y, (struct sl_dataset_opts){0})) return &a->base;
	sl_dataset_free(&a->base);
	return NULL;
}
