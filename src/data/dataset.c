/* Data sets of any source: references, types and classes, reading a sample. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset.h"
#include "runtime/budget.h"
#include "runtime/forked.h"
#include "runtime/text.h"
#include "number.h"
#include "op.h"
#include "philox.h"
#include "runtime/fault.h"
#include "starling/data.h"
#include "tensor/tensor.h"

bool slp_data_fail(enum sl_status status, const char *format, ...)
{
	const struct slp_call *c = &slp_current_call;
	char text[1024];
	SLP_FORMAT(text, sizeof text, format);
	slp_text_escape(text, sizeof text, false);
	if (c->at) slp_call_fail(c->at, c->function, status, "%s", text);
	else slp_error_set(status, "%s", text);
	return false;
}

bool slp_data_spend(const char *path, double operations)
{
	char why[256];
	return slp_budget_spend(operations, why) || slp_data_fail(SL_ETIME, "%s: %s", path, why);
}

/* ---- making and giving up --------------------------------------------------------------------------------------- */

void *slp_dataset_new(size_t bytes, const struct slp_source *source)
{
	struct sl_dataset *d = slp_calloc(1, bytes);
	if (!d) return NULL;
	d->source = source;
	atomic_init(&d->holders, 1);
	return d;
}

sl_dataset *slp_dataset_hold(sl_dataset *d)
{
	atomic_fetch_add(&d->holders, 1);
	return d;
}

void slp_names_free(char **names, int count)
{
	for (int i = 0; names && i < count; i++) free(names[i]);
	free(names);
}

void slp_dataset_names(sl_dataset *d, char **names, int classes)
{
	d->names = names;
	d->classes = classes;
}

bool slp_dataset_classes(sl_dataset *d, int classes)
{
	if (classes < 0 || classes > SLP_MAX_CLASSES)
		return slp_data_fail(SL_EINVAL, "%d classes; the number must be from 1 to %d", classes,
		                     SLP_MAX_CLASSES);
	d->numbers = slp_calloc((size_t)classes + 1, sizeof *d->numbers);
	if (!d->numbers) return false;
	d->classes = classes;
	return true;
}

bool slp_dataset_copy_classes(sl_dataset *d, const sl_dataset *from)
{
	if (!from->names) return slp_dataset_classes(d, from->classes);
	char **names = slp_calloc((size_t)from->classes, sizeof *names);
	bool ok = names != NULL;
	for (int i = 0; ok && i < from->classes; i++) ok = (names[i] = slp_strdup(from->names[i])) != NULL;
	if (ok) slp_dataset_names(d, names, from->classes);
	else slp_names_free(names, names ? from->classes : 0);
	return ok;
}

/* Releases the data set; loaders and data sets that were made from it still work.  NULL is ignored. */
void sl_dataset_free(sl_dataset *dataset)
{
	if (!dataset || atomic_fetch_sub(&dataset->holders, 1) > 1) return;
	if (dataset->source->free) dataset->source->free(dataset);
	slp_names_free(dataset->names, dataset->classes);
	free(dataset->numbers);
	free(dataset);
}

/* ---- looking at one --------------------------------------------------------------------------------------------- */

/* The number of samples; 0 for NULL. */
int64_t sl_dataset_size(const sl_dataset *dataset)
{
	return dataset ? dataset->size : 0;
}

/* Shape and data type of x of one sample; data is NULL.  All 0 for NULL. */
struct sl_array sl_dataset_x(const sl_dataset *dataset)
{
	return dataset ? dataset->x : (struct sl_array){0};
}

/* Shape and data type of y of one sample; data is NULL.  All 0 for NULL, and if samples have no y. */
struct sl_array sl_dataset_y(const sl_dataset *dataset)
{
	return dataset ? dataset->y : (struct sl_array){0};
}

/* The shape of x of one sample, (channels, height, width) in pixels for images; a scalar's shape for NULL. */
sl_shape sl_dataset_sample_shape(const sl_dataset *dataset)
{
	return dataset ? dataset->x.shape : SL_SCALAR;
}

/* The number of classes: labels are below it.  0 for NULL, and if y is not a label. */
int sl_dataset_classes(const sl_dataset *dataset)
{
	return dataset ? dataset->classes : 0;
}

static pthread_mutex_t numbers_lock = PTHREAD_MUTEX_INITIALIZER;
SLP_FORK_MUTEX(numbers_lock);

/* Of a million classes few are looked up by name. */
static const char *number_of(const sl_dataset *d, int label)
{
	char *text = d->numbers[label];
	pthread_mutex_lock(&numbers_lock);
	if (!*text) snprintf(text, sizeof *d->numbers, "%d", label);
	pthread_mutex_unlock(&numbers_lock);
	return text;
}

/* The name of a class: "ankle boot" in Fashion-MNIST, the name of the folder of images, the text in the CSV file;
 * otherwise the number itself.  NULL if there is no such class.  It lives as long as the data set. */
const char *sl_dataset_class_name(const sl_dataset *dataset, int label)
{
	if (!dataset || label < 0 || label >= dataset->classes) return NULL;
	return dataset->names ? dataset->names[label] : number_of(dataset, label);
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

size_t slp_array_bytes(struct sl_array a)
{
	return a.dtype ? (size_t)sl_shape_size(a.shape) * sl_dtype_size(a.dtype) : 0;
}

static bool check_label(const sl_dataset *d, const struct sl_sample *s)
{
	const int32_t *y = s->y;
	if (!y || !d->classes || d->y.dtype != SL_INT32) return true;
	for (int64_t i = 0; i < sl_shape_size(d->y.shape); i++)
		if (y[i] < 0 || y[i] >= d->classes)
			return slp_data_fail(SL_EFORMAT, "label %d, labels are 0 to %d", (int)y[i], d->classes - 1);
	return true;
}

bool slp_dataset_get(const sl_dataset *d, struct sl_sample *s)
{
	s->x_type = d->x;
	s->y_type = d->y;
	return d->source->get(d, s) && check_label(d, s);
}

bool slp_dataset_get_inner(const sl_dataset *inner, int64_t index, void *x, struct sl_sample *s)
{
	struct sl_sample part = *s;
	part.index = index;
	if (x) part.x = x;
	bool ok = slp_dataset_get(inner, &part);
	memcpy(s->random, part.random, sizeof s->random);
	return ok;
}

bool slp_dataset_sums(const sl_dataset *d, uint32_t sums[2])
{
	sums[0] = sums[1] = 0;
	return d->source->sums(d, sums);
}

/* Reads one sample into the caller's memory, of the sizes that sl_dataset_x and sl_dataset_y describe; y NULL: only x
 * is read.  Random transforms draw as in epoch 0 of seed 0.
 *     float pixels[3 * 32 * 32];
 *     int32_t label;
 *     sl_dataset_read(train, 17, pixels, &label);
 * SL_EINVAL: x is NULL, no such sample; SL_EIO, SL_EFORMAT: it cannot be read. */
enum sl_status sl_dataset_read_at(const char *at, const sl_dataset *dataset, int64_t index, void *x, void *y)
{
	SLP_CALL("sl_dataset_read", at);
	if (!slp_given(at, "sl_dataset_read", "data set", dataset) ||
	    !slp_given(at, "sl_dataset_read", "memory for x", x))
		return sl_error();
	if (index < 0 || index >= dataset->size) {
		slp_data_fail(SL_EINVAL, "sample %lld of %lld", (long long)index, (long long)dataset->size);
		return SL_EINVAL;
	}
	struct sl_sample s = {.index = index, .x = x, .y = y, .random = {0, 0, (uint64_t)index, 0}};
	if (slp_dataset_get(dataset, &s)) return SL_OK;
	return sl_error() != SL_OK ? sl_error() : SL_EINVAL;
}

/* The next random number of a sample, at least 0 and below 1.  It depends on the loader's seed, the epoch, the sample's
 * number in the loader's data set and the number of earlier draws, not on the calling thread. */
double sl_sample_uniform(struct sl_sample *sample)
{
	if (!sample) return 0;
	uint64_t *r = sample->random;
	uint32_t w[4];
	slp_philox(r[0], r[1], r[2] << 24 | (r[3]++ & 0xffffff), w);
	return (double)(((uint64_t)w[0] << 32 | w[1]) >> 11) * 0x1p-53;
}
