/* Data sets: labelled images from pairs of IDX files, kept in main memory as the files hold them. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/dataset.h"
#include "data/idx.h"
#include "op.h"

/* Fashion-MNIST is told from other sets in the same format by its first labels. */
enum { FASHION_CLASSES = 10, FASHION_LABELS = 16 };
static const char *const fashion_names[FASHION_CLASSES] = {
        "t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot",
};
static const uint8_t fashion_labels[][FASHION_LABELS] = {
        [SL_TRAIN] = {9, 0, 0, 3, 0, 2, 7, 2, 5, 5, 0, 9, 5, 5, 7, 9},
        [SL_TEST] = {9, 2, 1, 1, 6, 1, 4, 6, 5, 7, 4, 5, 7, 3, 4, 1},
};

/* ---- checks ----------------------------------------------------------------------------------------------------- */

static bool check_labels(const char *at, const char *function, const char *path, const struct slp_idx *labels,
                         int classes)
{
	for (int64_t i = 0; i < labels->bytes; i++) {
		if (labels->data[i] < classes) continue;
		slp_call_fail(at, function, SL_EFORMAT, "%s: sample %lld has label %d, labels are 0 to %d", path,
		              (long long)i, labels->data[i], classes - 1);
		return false;
	}
	return true;
}

static bool check_counts(const char *at, const char *function, const char *images_path, const struct slp_idx *images,
                         const char *labels_path, const struct slp_idx *labels)
{
	if (images->shape.dim[0] == labels->shape.dim[0]) return true;
	slp_call_fail(at, function, SL_EFORMAT, "%s has %lld images, but %s has %lld labels", images_path,
	              (long long)images->shape.dim[0], labels_path, (long long)labels->shape.dim[0]);
	return false;
}

/* ---- making one ------------------------------------------------------------------------------------------------- */

static void name_classes(struct sl_dataset *d, const uint8_t *labels)
{
	bool fashion = false;
	if (d->classes == FASHION_CLASSES && d->size >= FASHION_LABELS)
		for (int i = 0; i < 2; i++) fashion |= !memcmp(labels, fashion_labels[i], FASHION_LABELS);
	for (int i = 0; i < d->classes; i++)
		if (fashion)
			snprintf(d->names[i], sizeof d->names[i], "%s", fashion_names[i]);
		else
			snprintf(d->names[i], sizeof d->names[i], "%d", i);
}

static void free_data(void *data, void *arg)
{
	(void)arg;
	free(data);
}

/* A tensor over what was read, which is not its reader's any more; on `auto`, so that batches can be made anywhere. */
static sl_tensor *adopt(const char *at, struct slp_idx *idx, sl_shape shape)
{
	sl_tensor *t = NULL;
	SL_SCOPE {
		t = sl_retain(
		        sl_adopt_at(at, idx->data, shape, free_data, NULL, (struct sl_make){SL_UINT8, sl_auto()}));
	}
	if (t) idx->data = NULL;
	return t;
}

static sl_dataset *make(const char *at, const char *function, struct slp_idx *images, struct slp_idx *labels,
                        int classes)
{
	struct sl_dataset *d = slp_calloc(1, sizeof *d);
	if (!d) return slp_call_fail(at, function, SL_ENOMEM, "no memory for the data set");
	sl_shape s = images->shape;
	d->size = s.dim[0];
	d->sample = SL_SHAPE(1, s.dim[1], s.dim[2]);
	d->classes = classes;
	name_classes(d, labels->data);
	d->images = adopt(at, images, SL_SHAPE(d->size, 1, s.dim[1], s.dim[2]));
	d->labels = adopt(at, labels, SL_SHAPE(d->size));
	if (d->images && d->labels) return d;
	sl_dataset_free(d);
	return NULL;
}

static sl_dataset *load(const char *at, const char *function, const char *images_path, const char *labels_path,
                        int classes)
{
	struct slp_idx images = {0}, labels = {0};
	sl_dataset *d = NULL;
	if (slp_idx_read(at, function, images_path, 3, &images) &&
	    slp_idx_read(at, function, labels_path, 1, &labels) &&
	    check_counts(at, function, images_path, &images, labels_path, &labels) &&
	    check_labels(at, function, labels_path, &labels, classes))
		d = make(at, function, &images, &labels, classes);
	free(images.data);
	free(labels.data);
	return d;
}

/* A data set from two IDX files of unsigned bytes, plain or compressed by gzip: images (n, height, width) and labels
 * (n), each label below `classes` (1 to 256).  Free it with sl_dataset_free.
 *     sl_dataset *d = sl_dataset_idx("images.gz", "labels.gz", 10);
 * NULL with SL_EIO: a file cannot be read; SL_EFORMAT: it is malformed, or the two do not belong together; SL_EINVAL: a
 * name is NULL, no such number of classes.  The message names the file and the fault. */
sl_dataset *sl_dataset_idx_at(const char *at, const char *images, const char *labels, int classes)
{
	SLP_CALL("sl_dataset_idx", at);
	if (!images || !labels) return slp_call_fail(at, "sl_dataset_idx", SL_EINVAL, "a file name is NULL");
	if (classes < 1 || classes > SLP_MAX_CLASSES)
		return slp_call_fail(at, "sl_dataset_idx", SL_EINVAL, "%d classes, 1 to %d possible", classes,
		                     SLP_MAX_CLASSES);
	return load(at, "sl_dataset_idx", images, labels, classes);
}

/* Finds part-what-idxN-ubyte or part-what.idxN-ubyte, plain or with .gz. */
static bool find_file(const char *dir, const char *part, const char *what, int axes, char path[PATH_MAX])
{
	for (int i = 0; i < 4; i++) {
		int n = snprintf(path, PATH_MAX, "%s/%s-%s%cidx%d-ubyte%s", dir, part, what, i & 2 ? '.' : '-', axes,
		                 i & 1 ? ".gz" : "");
		if (n < PATH_MAX && !access(path, F_OK)) return true;
	}
	return false;
}

static sl_dataset *no_file(const char *at, const char *dir, const char *part, const char *what, int axes)
{
	struct stat st;
	char fault[64];
	if (stat(dir, &st) || !S_ISDIR(st.st_mode))
		snprintf(fault, sizeof fault, "there is no such folder");
	else
		snprintf(fault, sizeof fault, "it has no file %s-%s-idx%d-ubyte[.gz]", part, what, axes);
	return slp_call_fail(at, "sl_dataset_mnist", SL_EIO,
	                     "%s: %s; \"apt install dataset-fashion-mnist\" brings the files to %s", dir, fault,
	                     SL_FASHION_MNIST_DIR);
}

/* MNIST, Fashion-MNIST or another set under the same names, from a folder (NULL: where Debian's package
 * dataset-fashion-mnist has it): train-images-idx3-ubyte, train-labels-idx1-ubyte and the same with t10k, also with a
 * dot before "idx", also with .gz; 10 classes.
 *     sl_dataset *train = sl_dataset_mnist(NULL, SL_TRAIN);
 * Faults as with sl_dataset_idx; SL_EIO also where the folder or a file is not there: nothing is ever downloaded. */
sl_dataset *sl_dataset_mnist_at(const char *at, const char *dir, enum sl_split split)
{
	SLP_CALL("sl_dataset_mnist", at);
	enum { CLASSES = 10 };
	char images[PATH_MAX], labels[PATH_MAX];
	if (split != SL_TRAIN && split != SL_TEST)
		return slp_call_fail(at, "sl_dataset_mnist", SL_EINVAL, "there is no split %d", (int)split);
	const char *part = split == SL_TRAIN ? "train" : "t10k";
	if (!dir) dir = SL_FASHION_MNIST_DIR;
	if (!find_file(dir, part, "images", 3, images)) return no_file(at, dir, part, "images", 3);
	if (!find_file(dir, part, "labels", 1, labels)) return no_file(at, dir, part, "labels", 1);
	return load(at, "sl_dataset_mnist", images, labels, CLASSES);
}

/* Gives the data set up; loaders that were made from it go on.  NULL is ignored. */
void sl_dataset_free(sl_dataset *dataset)
{
	if (!dataset) return;
	sl_release(dataset->images);
	sl_release(dataset->labels);
	free(dataset);
}

/* ---- looking at one --------------------------------------------------------------------------------------------- */

/* The number of samples; 0 for NULL. */
int64_t sl_dataset_size(const sl_dataset *dataset)
{
	return dataset ? dataset->size : 0;
}

/* The shape of one image, (1, height, width) in pixels; that of a scalar for NULL. */
sl_shape sl_dataset_sample_shape(const sl_dataset *dataset)
{
	return dataset ? dataset->sample : SL_SCALAR;
}

/* The number of classes: labels are below it.  0 for NULL. */
int sl_dataset_classes(const sl_dataset *dataset)
{
	return dataset ? dataset->classes : 0;
}

/* What a label stands for: "ankle boot" in Fashion-MNIST, the number itself in other sets.  NULL if there is no such
 * class.  It lives as long as the data set. */
const char *sl_dataset_class_name(const sl_dataset *dataset, int label)
{
	return dataset && label >= 0 && label < dataset->classes ? dataset->names[label] : NULL;
}
