/* Images for the networks of the zoo: three kinds of folders, and one image. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "zoo_data.h"

/* Means and deviations of ImageNet's colours: pretrained networks were trained on images that are normalised by
 * them. */
#define IMAGENET .mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}

/* ---- folders ----------------------------------------------------------------------------------------------------- */

static bool has(const char *dir, const char *name)
{
	char path[PATH_MAX];
	struct stat s;
	return snprintf(path, sizeof path, "%s/%s", dir, name) < PATH_MAX && !stat(path, &s);
}

static sl_dataset *folder(const char *dir, const char *name, int64_t size)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	return sl_dataset_images(path, .height = size, .width = size);
}

/* Resized if that is needed; colours are normalised. */
static sl_dataset *suited(sl_dataset *set, int64_t size)
{
	if (!set) return NULL;
	sl_shape s = sl_dataset_sample_shape(set);
	struct sl_transform list[2];
	int count = 0;
	if (s.dim[1] != size || s.dim[2] != size) list[count++] = sl_resize_image(.height = size, .width = size);
	if (s.dim[0] == 3) list[count++] = sl_normalise(IMAGENET);
	if (!count) return set;
	sl_dataset *made = sl_dataset_transform_at(SL_HERE, set, list, count);
	sl_dataset_free(set);
	return made;
}

static bool open_kind(const struct drv_training *t, const char *dir, int64_t size, sl_dataset *sets[2])
{
	if (has(dir, "data_batch_1.bin")) {
		sets[0] = sl_dataset_cifar10(dir, SL_TRAIN);
		sets[1] = sl_dataset_cifar10(dir, SL_TEST);
	} else if (has(dir, "train")) {
		sets[0] = folder(dir, "train", size);
		sets[1] = folder(dir, has(dir, "test") ? "test" : "val", size);
	} else {
		return drv_open_idx(t, sets);
	}
	return sets[0] && sets[1];
}

bool zoo_open(struct drv_training *t, const struct zoo_data *o, const struct zoo_network *n, sl_dataset *sets[2])
{
	int64_t size = o->size;
	if (!open_kind(t, t->options->data, size ? size : n->size, sets)) return false;
	if (!size) size = sl_dataset_sample_shape(sets[0]).dim[1];
	if (size < n->smallest) size = n->smallest;
	sl_shape s = sl_dataset_sample_shape(sets[0]);
	if (s.dim[0] == 3 || s.dim[1] != size) t->workers = 2; /* there is work for each image */
	for (int i = 0; i < 2; i++) sets[i] = suited(sets[i], size);
	return sets[0] && sets[1];
}

/* ---- one image --------------------------------------------------------------------------------------------------- */

/* A folder with a folder that has a link to the image: a data set of one class, of one image. */
struct link {
	char dir[PATH_MAX], class[PATH_MAX], path[PATH_MAX];
};

static bool link_to(struct link *l, const char *image)
{
	const char *place = getenv("TMPDIR"), *end = strrchr(image, '.');
	char *whole = realpath(image, NULL);
	bool fits = snprintf(l->dir, PATH_MAX / 2, "%s/starling-zoo-XXXXXX", place && *place ? place : "/tmp") <
	            PATH_MAX / 2;
	bool ok = whole && fits && mkdtemp(l->dir);
	if (ok) {
		snprintf(l->class, PATH_MAX, "%.*s/class", PATH_MAX / 2, l->dir);
		snprintf(l->path, PATH_MAX, "%.*s/class/image%.8s", PATH_MAX / 2, l->dir, end ? end : "");
		ok = !mkdir(l->class, 0700) && !symlink(whole, l->path);
	}
	if (!ok) drv_error("%s: %s", image, strerror(errno));
	free(whole);
	return ok;
}

static void unlink_all(const struct link *l)
{
	unlink(l->path);
	rmdir(l->class);
	rmdir(l->dir);
}

/* The middle of the image, whose shorter side is resized to 8/7 of the size, as in ImageNet's tests. */
static sl_dataset *middle(sl_dataset *set, int64_t size)
{
	sl_shape s = sl_dataset_sample_shape(set);
	int64_t h = s.dim[1], w = s.dim[2], least = h < w ? h : w, want = (size * 8 + 6) / 7;
	return sl_dataset_transform(
	        set, sl_resize_image(.height = (h * want + least / 2) / least, .width = (w * want + least / 2) / least),
	        sl_center_crop(.height = size, .width = size), sl_normalise(IMAGENET));
}

static sl_tensor *read_one(const char *dir, int64_t size)
{
	sl_dataset *set = sl_dataset_images(dir), *made = set ? middle(set, size) : NULL;
	float *x = made ? malloc((size_t)(3 * size * size) * sizeof *x) : NULL;
	sl_tensor *t = NULL;
	if (x && sl_dataset_read(made, 0, x, NULL) == SL_OK) t = sl_from(x, SL_SHAPE(1, 3, size, size));
	free(x);
	sl_dataset_free(made);
	sl_dataset_free(set);
	return t;
}

sl_tensor *zoo_image(const char *path, int64_t size)
{
	struct link l;
	if (!link_to(&l, path)) return NULL;
	sl_tensor *t = read_one(l.dir, size);
	unlink_all(&l);
	return t;
}
