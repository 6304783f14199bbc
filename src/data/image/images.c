/* Data sets of folders of images, one folder for each class. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "data/dataset.h"
#include "data/image/image.h"
#include "data/image/transforms.h"
#include "io/crc32c.h"
#include "op.h"
#include "options.h"
#include "starling/data.h"
#include "tensor/tensor.h"

struct images {
	struct sl_dataset base;
	char *dir;
	char **files; /* names within the folders of their classes */
	int32_t *labels;
	bool resized; /* to the shape of x, or they have it */
};

static const char *path_of(const struct images *d, int64_t i, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%s/%s", d->dir, d->base.names[d->labels[i]], d->files[i]);
	return path;
}

static bool fit(const struct images *d, const char *path, const struct slp_image *image, float *to)
{
	sl_shape want = d->base.x.shape, is = SL_SHAPE(want.dim[0], image->height, image->width);
	int channels = (int)want.dim[0];
	if (sl_shape_equal(want, is)) {
		slp_image_planes(image, channels, to);
		return true;
	}
	if (!d->resized)
		return slp_data_fail(SL_ESHAPE,
		                     "%s: has %lld × %lld pixels, the first image has %lld × %lld; .height and .width "
		                     "resize them",
		                     path, (long long)is.dim[1], (long long)is.dim[2], (long long)want.dim[1],
		                     (long long)want.dim[2]);
	float *planes = slp_try_malloc((size_t)sl_shape_size(is) * sizeof *planes);
	if (!planes) return slp_data_fail(SL_ENOMEM, "%s: no memory to resize it", path);
	slp_image_planes(image, channels, planes);
	bool ok = slp_resize(planes, is, to, want.dim[1], want.dim[2]);
	free(planes);
	return ok;
}

static bool get(const sl_dataset *base, struct sl_sample *s)
{
	const struct images *d = (const struct images *)base;
	struct slp_image image;
	char path[PATH_MAX];
	if (!slp_image_read(path_of(d, s->index, path), &image)) return false;
	bool ok = fit(d, path, &image, s->x);
	free(image.pixels);
	if (s->y) *(int32_t *)s->y = d->labels[s->index];
	return ok;
}

static void give_up(sl_dataset *base)
{
	struct images *d = (struct images *)base;
	slp_names_free(d->files, d->files ? (int)base->size : 0);
	free(d->labels);
	free(d->dir);
}

/* Names, not pixels: to read all would take as long as an epoch. */
static bool sums(const sl_dataset *base, uint32_t sums[2])
{
	const struct images *d = (const struct images *)base;
	sums[0] = slp_crc32c(0, &base->x.shape, sizeof base->x.shape);
	for (int64_t i = 0; i < base->size; i++) sums[0] = slp_crc32c(sums[0], d->files[i], strlen(d->files[i]) + 1);
	sums[1] = slp_crc32c(0, d->labels, (size_t)base->size * sizeof *d->labels);
	return true;
}

static const struct slp_source images_source = {"images", get, give_up, sums};

/* ---- files of folders ------------------------------------------------------------------------------------------- */

/* Requested names, sorted byte by byte. */
struct list {
	char **names;
	int64_t count, room;
};

static bool add(struct list *l, const char *name)
{
	if (l->count == l->room) {
		int64_t room = l->room ? 2 * l->room : 16;
		char **names = slp_realloc(l->names, (size_t)room * sizeof *names);
		if (!names) return false;
		l->names = names;
		l->room = room;
	}
	if (l->count == INT32_MAX) return slp_data_fail(SL_EFORMAT, "there are more than %d images", INT32_MAX);
	l->names[l->count] = slp_strdup(name);
	return l->names[l->count++] != NULL;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_wanted(const char *dir, const char *name, bool folders)
{
	char path[PATH_MAX];
	struct stat st;
	const char *end = strrchr(name, '.');
	if (name[0] == '.') return false;
	if (!folders) return end && (!strcasecmp(end, ".png") || !strcasecmp(end, ".jpg") || !strcasecmp(end, ".jpeg"));
	int n = snprintf(path, sizeof path, "%s/%s", dir, name);
	return n < PATH_MAX && !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Adds the matching files of a folder. */
static bool list_folder(const char *dir, bool folders, struct list *l)
{
	int64_t before = l->count;
	DIR *d = opendir(dir);
	if (!d) return slp_data_fail(SL_EIO, "%s: cannot be opened: %s", dir, strerror(errno));
	bool ok = true;
	for (struct dirent *e; ok && (e = readdir(d));)
		if (is_wanted(dir, e->d_name, folders)) ok = add(l, e->d_name);
	closedir(d);
	if (ok && l->count > before) qsort(l->names + before, (size_t)(l->count - before), sizeof *l->names, by_name);
	return ok;
}

static bool list_class(struct images *d, int32_t label, struct list *files)
{
	char dir[PATH_MAX];
	int n = snprintf(dir, sizeof dir, "%s/%s", d->dir, d->base.names[label]);
	if (n >= PATH_MAX) return slp_data_fail(SL_EIO, "%s: too long a path", d->base.names[label]);
	if (!list_folder(dir, false, files)) return false;
	int32_t *labels = slp_realloc(d->labels, ((size_t)files->count + 1) * sizeof *labels);
	if (!labels) return false;
	d->labels = labels;
	for (int64_t i = d->base.size; i < files->count; i++) labels[i] = label;
	d->base.size = files->count;
	return true;
}

static bool list_all(struct images *d)
{
	struct list classes = {0}, files = {0};
	bool ok = list_folder(d->dir, true, &classes);
	if (ok && classes.count > SLP_MAX_CLASSES)
		ok = slp_data_fail(SL_EFORMAT, "%s: more than %d folders", d->dir, SLP_MAX_CLASSES);
	if (!ok) slp_names_free(classes.names, (int)classes.count);
	else slp_dataset_names(&d->base, classes.names, (int)classes.count);
	for (int32_t i = 0; ok && i < classes.count; i++) ok = list_class(d, i, &files);
	d->files = files.names;
	d->base.size = files.count;
	if (ok && !files.count)
		return slp_data_fail(SL_EFORMAT,
		                     "%s: has no folders with images (*.png, *.jpg, *.jpeg), a folder a class", d->dir);
	return ok;
}

static bool first_size(const struct images *d, int64_t *height, int64_t *width)
{
	struct slp_image image;
	char path[PATH_MAX];
	if (!slp_image_read(path_of(d, 0, path), &image)) return false;
	*height = image.height;
	*width = image.width;
	free(image.pixels);
	return true;
}

static bool fill(struct images *d, const char *dir, struct sl_images_opts opts)
{
	enum { LARGEST = 1 << 14 };
	int channels = opts.channels ? opts.channels : 3;
	if (channels != 1 && channels != 3)
		return slp_data_fail(SL_EINVAL, "channels is %d; it must be 1 or 3", channels);
	if (opts.height < 0 || opts.width < 0 || !opts.height != !opts.width || opts.height > LARGEST ||
	    opts.width > LARGEST)
		return slp_data_fail(SL_EINVAL, "images of %lld × %lld pixels", (long long)opts.height,
		                     (long long)opts.width);
	d->resized = opts.height > 0;
	d->dir = slp_strdup(dir);
	if (!d->dir || !list_all(d)) return false;
	if (!d->resized && !first_size(d, &opts.height, &opts.width)) return false;
	d->base.x = (struct sl_array){NULL, SL_SHAPE(channels, opts.height, opts.width), SL_FLOAT32};
	d->base.y = (struct sl_array){NULL, SL_SCALAR, SL_INT32};
	return true;
}

/* A data set of the images (*.png, *.jpg, *.jpeg) in the subfolders of a folder; each subfolder is a class, in the
 * order of their names.  x is float32 (channels, height, width) in [0, 1], y the class, int32.  An image is read
 * whenever its sample is requested; the loader's workers read ahead.  Transparency is ignored.  NULL with SL_EIO: a
 * folder cannot be read; SL_EFORMAT: it has no images, or the first one is damaged; SL_EINVAL: an option is out of
 * range; SL_EUNSUPPORTED: Starling was built without libpng or libjpeg.  A damaged image, or without .height one of
 * another size than the first (SL_ESHAPE), fails when it is read.
 *
 *     sl_dataset *d = sl_dataset_images("flowers/train", .height = 64, .width = 64); */
sl_dataset *sl_dataset_images_at(const char *at, const char *dir, struct sl_images_opts opts)
{
	SLP_CALL("sl_dataset_images", at);
	if (!SLP_OPTIONS(sl_images_opts, at, "sl_dataset_images", &opts)) return NULL;
	if (!slp_given(at, "sl_dataset_images", "folder", dir)) return NULL;
	struct images *d = slp_dataset_new(sizeof *d, &images_source);
	if (!d) return NULL;
	if (fill(d, dir, opts)) return &d->base;
	sl_dataset_free(&d->base);
	return NULL;
}
