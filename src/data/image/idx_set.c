/* Labelled images from pairs of IDX files, kept in main memory as the files hold them. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/image/convert.h"
#include "data/dataset.h"
#include "data/image/idx.h"
#include "io/crc32c.h"
#include "op.h"
#include "runtime/budget.h"
#include "starling/data.h"
#include "starling/functions.h"

/* The first labels tell Fashion-MNIST from other sets in the same format. */
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

/* ---- the source -------------------------------------------------------------------------------------------------- */

/* Memory of a set and of the tensors over it, which may end at another time than it. */
struct shared {
	_Atomic int holders;
	uint8_t *data;
};

struct idx_set {
	struct sl_dataset base;
	struct shared *x, *y;
};

static void drop(struct shared *m)
{
	if (!m || atomic_fetch_sub(&m->holders, 1) > 1) return;
	free(m->data);
	free(m);
}

static bool get(const sl_dataset *d, struct sl_sample *s)
{
	const struct idx_set *set = (const struct idx_set *)d;
	int64_t n = sl_shape_size(d->x.shape);
	slp_unit_floats(set->x->data + s->index * n, s->x, n);
	if (s->y) *(int32_t *)s->y = set->y->data[s->index];
	return true;
}

static void give_up(sl_dataset *d)
{
	struct idx_set *set = (struct idx_set *)d;
	sl_release(d->images);
	sl_release(d->labels);
	drop(set->x);
	drop(set->y);
}

static bool sums(const sl_dataset *d, uint32_t sums[2])
{
	const struct idx_set *set = (const struct idx_set *)d;
	sums[0] = slp_crc32c(0, set->x->data, (size_t)(d->size * sl_shape_size(d->x.shape)));
	sums[1] = slp_crc32c(0, set->y->data, (size_t)d->size);
	return true;
}

static const struct slp_source idx_source = {"idx", get, give_up, sums};

/* ---- making one ------------------------------------------------------------------------------------------------- */

static bool is_fashion(const struct idx_set *set)
{
	bool fashion = false;
	if (set->base.classes == FASHION_CLASSES && set->base.size >= FASHION_LABELS)
		for (int i = 0; i < 2; i++) fashion |= !memcmp(set->y->data, fashion_labels[i], FASHION_LABELS);
	return fashion;
}

static bool name_classes(struct idx_set *set)
{
	if (!is_fashion(set)) return true;
	char **names = slp_calloc(FASHION_CLASSES, sizeof *names);
	bool ok = names != NULL;
	for (int i = 0; ok && i < FASHION_CLASSES; i++) ok = (names[i] = slp_strdup(fashion_names[i])) != NULL;
	if (ok) slp_dataset_names(&set->base, names, FASHION_CLASSES);
	else slp_names_free(names, FASHION_CLASSES);
	return ok;
}

/* Takes over the arrays read. */
static struct shared *share(struct slp_idx *idx)
{
	struct shared *m = slp_malloc(sizeof *m);
	if (!m) return NULL;
	atomic_init(&m->holders, 1);
	m->data = idx->data;
	idx->data = NULL;
	return m;
}

static void drop_tensors(void *data, void *arg)
{
	(void)data;
	drop(arg);
}

/* A tensor over it, on `auto`, so that batches can be made anywhere. */
static sl_tensor *over(const char *at, struct shared *m, sl_shape shape)
{
	sl_tensor *t = NULL;
	atomic_fetch_add(&m->holders, 1);
	SL_SCOPE {
		t = sl_retain(sl_adopt_at(at, m->data, shape, drop_tensors, m, (struct sl_make){SL_UINT8, sl_auto()}));
	}
	if (!t) drop(m);
	return t;
}

static bool fill(const char *at, struct idx_set *set, struct slp_idx *images, struct slp_idx *labels, int classes)
{
	struct sl_dataset *d = &set->base;
	sl_shape s = images->shape;
	d->size = s.dim[0];
	d->x = (struct sl_array){NULL, SL_SHAPE(1, s.dim[1], s.dim[2]), SL_FLOAT32};
	d->y = (struct sl_array){NULL, SL_SCALAR, SL_INT32};
	set->x = share(images);
	set->y = set->x ? share(labels) : NULL;
	if (!set->y || !slp_dataset_classes(d, classes) || !name_classes(set)) return false;
	d->images = over(at, set->x, SL_SHAPE(d->size, 1, s.dim[1], s.dim[2]));
	d->labels = over(at, set->y, SL_SHAPE(d->size));
	return d->images && d->labels;
}

static sl_dataset *make(const char *at, struct slp_idx *images, struct slp_idx *labels, int classes)
{
	struct idx_set *set = slp_dataset_new(sizeof *set, &idx_source);
	if (!set) return NULL;
	if (fill(at, set, images, labels, classes)) return &set->base;
	sl_dataset_free(&set->base);
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
		d = make(at, &images, &labels, classes);
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
	SLP_BUDGET(images);
	enum { MOST = 256 }; /* labels are bytes */
	if (!images || !labels) return slp_call_fail(at, "sl_dataset_idx", SL_EINVAL, "a file name is NULL");
	if (classes < 1 || classes > MOST)
		return slp_call_fail(at, "sl_dataset_idx", SL_EINVAL, "%d classes; the number must be from 1 to %d",
		                     classes, MOST);
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
	if (stat(dir, &st) || !S_ISDIR(st.st_mode)) snprintf(fault, sizeof fault, "there is no such folder");
	else snprintf(fault, sizeof fault, "it has no file %s-%s-idx%d-ubyte[.gz]", part, what, axes);
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
	SLP_BUDGET(dir);
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
