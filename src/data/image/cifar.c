/* CIFAR-10's binary version: records of a label and 3 × 32 × 32 bytes. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "data/image/convert.h"
#include "data/dataset.h"
#include "data/disk.h"
#include "io/crc32c.h"
#include "op.h"
#include "runtime/budget.h"
#include "starling/data.h"
#include "starling/functions.h"
#include "tensor/tensor.h"

enum { PIXELS = 3 * 32 * 32, RECORD = 1 + PIXELS, CLASSES = 10, MOST_FILES = 5 };

struct cifar {
	struct sl_dataset base;
	int count;
	struct slp_disk files[MOST_FILES];
	int64_t ends[MOST_FILES]; /* where the samples of each end */
};

static bool get(const sl_dataset *d, struct sl_sample *s)
{
	const struct cifar *c = (const struct cifar *)d;
	uint8_t record[RECORD];
	int file = 0;
	while (s->index >= c->ends[file]) file++;
	int64_t row = s->index - (file ? c->ends[file - 1] : 0);
	if (!slp_disk_read(&c->files[file], row * RECORD, record, RECORD)) return false;
	if (record[0] >= CLASSES)
		return slp_data_fail(SL_EFORMAT, "%s: record %lld has label %d, labels are 0 to %d",
		                     c->files[file].path, (long long)row, record[0], CLASSES - 1);
	slp_unit_floats(record + 1, s->x, PIXELS);
	if (s->y) *(int32_t *)s->y = record[0];
	return true;
}

static void give_up(sl_dataset *d)
{
	struct cifar *c = (struct cifar *)d;
	for (int i = 0; i < c->count; i++) slp_disk_close(&c->files[i]);
}

static bool sums(const sl_dataset *d, uint32_t sums[2])
{
	const struct cifar *c = (const struct cifar *)d;
	for (int i = 0; i < c->count; i++) {
		uint32_t sum;
		if (!slp_disk_sum(&c->files[i], &sum)) return false;
		sums[0] = slp_crc32c(sums[0], &sum, sizeof sum);
	}
	return true;
}

static const struct slp_source cifar_source = {"cifar10", get, give_up, sums};

static bool add_file(struct cifar *c, const char *dir, const char *name)
{
	char path[PATH_MAX];
	struct slp_disk *k = &c->files[c->count];
	if (snprintf(path, sizeof path, "%s/%s", dir, name) >= PATH_MAX)
		return slp_data_fail(SL_EIO, "%s: too long a path", dir);
	if (!slp_disk_open(k, path)) return false;
	c->count++;
	if (!k->size || k->size % RECORD)
		return slp_data_fail(SL_EFORMAT, "%s: has %lld bytes, not a multiple of the %d of a record", path,
		                     (long long)k->size, RECORD);
	if (k->size / RECORD > INT32_MAX / MOST_FILES)
		return slp_data_fail(SL_EFORMAT, "%s: has too many records", path);
	c->ends[c->count - 1] = c->base.size += k->size / RECORD;
	return true;
}

static bool fill(struct cifar *c, const char *dir, enum sl_split split)
{
	static const char *const train[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
	                                    "data_batch_4.bin", "data_batch_5.bin"};
	static const char *const names[CLASSES] = {"airplane", "automobile", "bird",  "cat",  "deer",
	                                           "dog",      "frog",       "horse", "ship", "truck"};
	bool ok = true;
	if (split == SL_TEST) ok = add_file(c, dir, "test_batch.bin");
	for (int i = 0; split == SL_TRAIN && ok && i < MOST_FILES; i++) ok = add_file(c, dir, train[i]);
	c->base.x = (struct sl_array){NULL, SL_SHAPE(3, 32, 32), SL_FLOAT32};
	c->base.y = (struct sl_array){NULL, SL_SCALAR, SL_INT32};
	char **own = ok ? slp_calloc(CLASSES, sizeof *own) : NULL;
	ok = own != NULL;
	for (int i = 0; ok && i < CLASSES; i++) ok = (own[i] = slp_strdup(names[i])) != NULL;
	if (ok) slp_dataset_names(&c->base, own, CLASSES);
	else slp_names_free(own, CLASSES);
	return ok;
}

/* CIFAR-10 from the folder of its binary version, cifar-10-batches-bin: data_batch_1.bin to data_batch_5.bin, or
 * test_batch.bin.  x is float32 (3, 32, 32) in [0, 1], y the class, int32; samples are read on request.  Nothing is
 * ever downloaded.  NULL with SL_EIO: a file cannot be read; SL_EFORMAT: it does not consist of whole records;
 * SL_EINVAL: no such split.
 *
 *     sl_dataset *train = sl_dataset_cifar10("cifar-10-batches-bin", SL_TRAIN); */
sl_dataset *sl_dataset_cifar10_at(const char *at, const char *dir, enum sl_split split)
{
	SLP_CALL("sl_dataset_cifar10", at);
	SLP_BUDGET(dir);
	if (!slp_given(at, "sl_dataset_cifar10", "folder", dir)) return NULL;
	if (split != SL_TRAIN && split != SL_TEST)
		return slp_call_fail(at, "sl_dataset_cifar10", SL_EINVAL, "there is no split %d", (int)split);
	struct cifar *c = slp_dataset_new(sizeof *c, &cifar_source);
	if (!c) return NULL;
	if (fill(c, dir, split)) return &c->base;
	sl_dataset_free(&c->base);
	return NULL;
}
