/* Data: IDX files as they should be and in every way broken, data sets, the loader's batches and orders. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "check.h"

/* ---- files ------------------------------------------------------------------------------------------------------ */

enum { MAX_FILE = 8192 };

/* A file to be: its bytes. */
struct bytes {
	unsigned char data[MAX_FILE];
	size_t size;
};

static char folder[PATH_MAX / 2];

static int make_folder(void)
{
	const char *tmp = getenv("TMPDIR");
	snprintf(folder, sizeof folder, "%s/test_data.XXXXXX", tmp ? tmp : "/tmp");
	return mkdtemp(folder) == NULL;
}

static int remove_folder(void)
{
	return rmdir(folder);
}

static const char *place(const char *name, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%s", folder, name);
	return path;
}

static void write_file(const char *name, const void *data, size_t size)
{
	char path[PATH_MAX];
	FILE *f = fopen(place(name, path), "wb");
	CHECK(f && fwrite(data, 1, size, f) == size);
	if (f) fclose(f);
}

static void remove_file(const char *name)
{
	char path[PATH_MAX];
	CHECK(remove(place(name, path)) == 0);
}

static void put(struct bytes *b, const void *data, size_t size)
{
	memcpy(b->data + b->size, data, size);
	b->size += size;
}

static void put_number(struct bytes *b, uint32_t n)
{
	unsigned char big[] = {(unsigned char)(n >> 24), (unsigned char)(n >> 16), (unsigned char)(n >> 8),
	                       (unsigned char)n};
	put(b, big, sizeof big);
}

/* The header of an IDX file of unsigned bytes. */
static struct bytes header(int ndim, const uint32_t *dims)
{
	struct bytes b = {{0}, 0};
	put_number(&b, 0x800u + (unsigned)ndim);
	for (int i = 0; i < ndim; i++) put_number(&b, dims[i]);
	return b;
}

enum { HEIGHT = 2, WIDTH = 3, PIXELS = HEIGHT * WIDTH };

/* Pixel p of image i. */
static int pixel(int i, int p)
{
	return (i * 7 + p) % 256;
}

static int label(int i)
{
	return i % 10;
}

static struct bytes images(int n)
{
	struct bytes b = header(3, (uint32_t[]){(uint32_t)n, HEIGHT, WIDTH});
	for (int i = 0; i < n * PIXELS; i++) b.data[b.size++] = (unsigned char)pixel(i / PIXELS, i % PIXELS);
	return b;
}

static struct bytes labels(int n)
{
	struct bytes b = header(1, (uint32_t[]){(uint32_t)n});
	for (int i = 0; i < n; i++) b.data[b.size++] = (unsigned char)label(i);
	return b;
}

static struct bytes gzipped(const struct bytes *plain)
{
	struct bytes b = {{0}, 0};
	z_stream z = {.next_in = (unsigned char *)plain->data,
	              .avail_in = (uInt)plain->size,
	              .next_out = b.data,
	              .avail_out = MAX_FILE};
	CHECK(deflateInit2(&z, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
	CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
	b.size = z.total_out;
	deflateEnd(&z);
	return b;
}

static sl_dataset *open_pair(const struct bytes *x, const struct bytes *y, int classes)
{
	char a[PATH_MAX], b[PATH_MAX];
	write_file("x", x->data, x->size);
	write_file("y", y->data, y->size);
	sl_dataset *d = sl_dataset_idx(place("x", a), place("y", b), classes);
	remove_file("x");
	remove_file("y");
	return d;
}

/* A data set of n samples, as above. */
static sl_dataset *sample_set(int n)
{
	struct bytes x = images(n), y = labels(n);
	sl_dataset *d = open_pair(&x, &y, 10);
	CHECK(d != NULL);
	return d;
}

/* The call failed with this status; the message has the texts in it. */
static void check_refused(sl_dataset *d, enum sl_status status, const char *a, const char *b)
{
	slp_check_null(__FILE__, __LINE__, d, status, (const char *const[]){"sl_dataset_idx", a, b, NULL});
	sl_dataset_free(d);
}

/* The pair is refused with a message about this file. */
static void refuse(const struct bytes *x, const struct bytes *y, const char *file, const char *text)
{
	char path[PATH_MAX];
	sl_dataset *d = open_pair(x, y, 10);
	slp_check_null(__FILE__, __LINE__, d, SL_EFORMAT,
	               (const char *const[]){"sl_dataset_idx", place(file, path), text, NULL});
	sl_dataset_free(d);
}

static void refuse_images(struct bytes x, const char *text)
{
	struct bytes y = labels(4);
	refuse(&x, &y, "x", text);
}

static void refuse_labels(struct bytes y, const char *text)
{
	struct bytes x = images(4);
	refuse(&x, &y, "y", text);
}

/* ---- what is wrong with files ------------------------------------------------------------------------------------ */

static struct bytes cut(struct bytes b, size_t size)
{
	b.size = size;
	return b;
}

static struct bytes with(struct bytes b, size_t at, unsigned char value)
{
	b.data[at] = value;
	return b;
}

static struct bytes longer(struct bytes b)
{
	b.data[b.size++] = 0;
	return b;
}

static struct bytes with_dims(uint32_t n, uint32_t h, uint32_t w)
{
	struct bytes b = header(3, (uint32_t[]){n, h, w});
	b.size += 4 * PIXELS;
	return b;
}

static void test_headers(void)
{
	refuse_images(cut(images(4), 0), "ends after 0 bytes, within the header of 16");
	refuse_images(cut(images(4), 3), "ends after 3 bytes");
	refuse_images(cut(images(4), 9), "ends within the header of 16 bytes");
	refuse_labels(cut(labels(4), 7), "ends within the header of 8 bytes");
	refuse_images(with(images(4), 0, 0x89), "begins with the bytes 89 00, an IDX file begins with 00 00");
	refuse_images(with(images(4), 1, 1), "begins with the bytes 00 01");
	refuse_images(with(images(4), 2, 0x0d), "elements of type 0d (float), type 08 (unsigned byte) needed");
	refuse_images(with(images(4), 2, 0x77), "elements of type 77 (unknown)");
	refuse_images(with(images(4), 3, 4), "has 4 axes, 3 needed");
	refuse_images(labels(4), "has 1 axes, 3 needed");
	refuse_labels(images(4), "has 3 axes, 1 needed");
}

static void test_sizes(void)
{
	refuse_images(with_dims(0, 2, 3), "axis 0 has size 0");
	refuse_images(with_dims(4, 0, 3), "axis 1 has size 0");
	refuse_images(with_dims(0xffffffffu, 2, 3), "axis 0 has the absurd size 4294967295");
	refuse_images(with_dims(0x7fffffffu, 0x7fffffffu, 0x7fffffffu), "axis 2 has the absurd size 2147483647");
	refuse_images(with_dims(0x7fffffffu, 0x7fffffffu, 1), "4611686014132420609 bytes, but 24 follow its header");
	refuse_images(with_dims(5, 2, 3), "(5, 2, 3), 30 bytes, but 24 follow its header");
	refuse_images(with_dims(4, 3, 2 + 3), "60 bytes, but 24 follow its header");
	refuse_images(longer(images(4)), "24 bytes, but 25 follow its header");
	refuse_labels(cut(labels(4), 10), "4 bytes, but 2 follow its header");
	refuse_labels(longer(labels(4)), "4 bytes, but 5 follow its header");
}

static void test_pairs(void)
{
	char text[2 * PATH_MAX], path[PATH_MAX];
	struct bytes x = images(4), y = labels(3);
	snprintf(text, sizeof text, "%s has 3 labels", place("y", path));
	refuse(&x, &y, "x", "has 4 images");
	refuse(&x, &y, "x", text);
	refuse_labels(with(labels(4), 8 + 2, 10), "sample 2 has label 10, labels are 0 to 9");
	refuse_labels(with(labels(4), 8 + 3, 255), "sample 3 has label 255");
}

static void test_gzip_faults(void)
{
	struct bytes x = images(4), z = gzipped(&x), plain = longer(images(4));
	for (size_t n = 2; n < z.size; n++) refuse_images(cut(z, n), "ends in the middle of its gzip data");
	refuse_images(with(z, z.size - 5, (unsigned char)~z.data[z.size - 5]),
	              "damaged gzip data: incorrect data check");
	refuse_images(with(z, z.size - 1, 1), "damaged gzip data: incorrect length check");
	refuse_images(with(z, 2, 9), "damaged gzip data: unknown compression method");
	refuse_images(longer(z), "bytes follow after the end of the gzip data");
	refuse_images(gzipped(&plain), "goes on after its 24 values");
	plain = cut(images(4), 30);
	refuse_images(gzipped(&plain), "ends after 14 values, 24 needed");
	plain = cut(images(4), 11);
	refuse_images(gzipped(&plain), "ends within the header");
	plain = with_dims(0x7fffffffu, 1000, 1000);
	refuse_images(gzipped(&plain), "compressed bytes can hold");
	refuse_images(cut(gzipped(&plain), 2), "ends in the middle of its gzip data");
}

static void test_no_files(void)
{
	char a[PATH_MAX], b[PATH_MAX];
	struct bytes y = labels(4);
	write_file("y", y.data, y.size);
	check_refused(sl_dataset_idx(place("none", a), place("y", b), 10), SL_EIO, a, "No such file");
	check_refused(sl_dataset_idx(folder, b, 10), SL_EIO, folder, "is not a regular file");
	CHECK_NULL(sl_dataset_idx(NULL, b, 10), SL_EINVAL, "a file name is NULL");
	CHECK_NULL(sl_dataset_idx(a, b, 0), SL_EINVAL, "0 classes, 1 to 256 possible");
	CHECK_NULL(sl_dataset_idx(a, b, 257), SL_EINVAL, "257 classes");
	remove_file("y");
	if (geteuid() == 0) return; /* root may read anything */
	write_file("y", y.data, y.size);
	CHECK(chmod(b, 0) == 0);
	check_refused(sl_dataset_idx(b, b, 10), SL_EIO, b, "Permission denied");
	remove_file("y");
}

/* ---- data sets --------------------------------------------------------------------------------------------------- */

/* The set has n samples, as the functions above make them. */
static void check_set(sl_dataset *d, int n)
{
	struct sl_batch b;
	if (!CHECK(d != NULL)) return;
	CHECK(sl_dataset_size(d) == n && sl_dataset_classes(d) == 10);
	CHECK(sl_shape_equal(sl_dataset_sample_shape(d), SL_SHAPE(1, HEIGHT, WIDTH)));
	sl_loader *l = sl_loader_new(d, .batch_size = n);
	SL_SCOPE {
		if (!CHECK(sl_loader_next(l, &b))) break;
		float *x = malloc(sl_tensor_bytes(b.x));
		int32_t *y = malloc(sl_tensor_bytes(b.y));
		CHECK(sl_shape_equal(sl_tensor_shape(b.x), SL_SHAPE(n, 1, HEIGHT, WIDTH)));
		CHECK_OK(sl_read(b.x, x, sl_tensor_bytes(b.x)));
		CHECK_OK(sl_read(b.y, y, sl_tensor_bytes(b.y)));
		int wrong = 0;
		for (int i = 0; i < n * PIXELS; i++)
			wrong += x[i] != (float)pixel(i / PIXELS, i % PIXELS) * (float)(1 / 255.0);
		for (int i = 0; i < n; i++) wrong += y[i] != label(i);
		CHECK_SAYING(wrong == 0, "%d wrong values", wrong);
		free(x);
		free(y);
	}
	sl_loader_free(l);
	sl_dataset_free(d);
}

static void test_plain_and_gzip(void)
{
	struct bytes x = images(100), y = labels(100), zx = gzipped(&x), zy = gzipped(&y);
	check_set(open_pair(&x, &y, 10), 100);
	check_set(open_pair(&zx, &zy, 10), 100);
	check_set(open_pair(&zx, &y, 10), 100);
	struct bytes first = cut(x, 50), both = gzipped(&first), rest = {{0}, 0}, zrest;
	put(&rest, x.data + 50, x.size - 50);
	zrest = gzipped(&rest);
	put(&both, zrest.data, zrest.size);
	check_set(open_pair(&both, &y, 10), 100); /* gzip files may be joined */
}

/* The names that a folder's files may have. */
static void test_names(void)
{
	static const char *const names[][2] = {
	        {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
	        {"train-images.idx3-ubyte", "train-labels.idx1-ubyte"},
	        {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"},
	        {"train-images.idx3-ubyte.gz", "train-labels-idx1-ubyte"},
	        {"t10k-images-idx3-ubyte", "t10k-labels.idx1-ubyte.gz"},
	};
	struct bytes x = images(20), y = labels(20);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		write_file(names[i][0], x.data, x.size);
		write_file(names[i][1], y.data, y.size);
		check_set(sl_dataset_mnist(folder, i < 4 ? SL_TRAIN : SL_TEST), 20);
		remove_file(names[i][0]);
		CHECK_NULL(sl_dataset_mnist(folder, i < 4 ? SL_TRAIN : SL_TEST), SL_EIO, folder, "it has no file",
		           "-images-idx3-ubyte[.gz]", "apt install dataset-fashion-mnist");
		remove_file(names[i][1]);
	}
}

static void test_no_folder(void)
{
	CHECK_NULL(sl_dataset_mnist("/nowhere/at/all", SL_TEST), SL_EIO, "/nowhere/at/all", "no such folder",
	           "apt install dataset-fashion-mnist");
	CHECK_NULL(sl_dataset_mnist(folder, (enum sl_split)7), SL_EINVAL, "no split 7");
}

static void test_class_names(void)
{
	sl_dataset *d = sample_set(20);
	CHECK(!strcmp(sl_dataset_class_name(d, 0), "0") && !strcmp(sl_dataset_class_name(d, 9), "9"));
	CHECK(!sl_dataset_class_name(d, 10) && !sl_dataset_class_name(d, -1) && !sl_dataset_class_name(NULL, 0));
	sl_dataset_free(d);
	CHECK(sl_dataset_size(NULL) == 0 && sl_dataset_classes(NULL) == 0);
	sl_dataset_free(NULL);
}

/* ---- the loader -------------------------------------------------------------------------------------------------- */

enum { MOST = 128 };

/* What an epoch handed out. */
struct epoch {
	int samples, batches, sizes[MOST];
	int order[MOST]; /* which sample came at each place; told from its first pixel */
	int wrong;       /* samples whose pixels or label do not fit together */
};

static void note_sample(struct epoch *e, const float *x, int32_t y)
{
	int first = (int)(x[0] * 255 + 0.5f), i = first * 183 % 256; /* 183 · 7 = 1 modulo 256 */
	for (int p = 0; p < PIXELS; p++) e->wrong += x[p] != (float)pixel(i, p) * (float)(1 / 255.0);
	e->wrong += y != label(i);
	e->order[e->samples++] = i;
}

static void note_batch(struct epoch *e, const struct sl_batch *b)
{
	float x[MOST * PIXELS];
	int32_t y[MOST];
	int n = (int)sl_tensor_size(b->y);
	if (!CHECK(e->samples + n <= MOST && e->batches < MOST)) return;
	CHECK(b->index == e->batches);
	CHECK(sl_tensor_dtype(b->x) == SL_FLOAT32 && sl_tensor_dtype(b->y) == SL_INT32);
	CHECK_OK(sl_read(b->x, x, sl_tensor_bytes(b->x)));
	CHECK_OK(sl_read(b->y, y, sl_tensor_bytes(b->y)));
	e->sizes[e->batches++] = n;
	for (int i = 0; i < n; i++) note_sample(e, x + i * PIXELS, y[i]);
}

static struct epoch run_epoch(sl_loader *l)
{
	struct epoch e = {0};
	for (bool more = true; more;)
		SL_SCOPE {
			struct sl_batch b;
			if ((more = sl_loader_next(l, &b))) note_batch(&e, &b);
		}
	CHECK(sl_error() == SL_OK);
	CHECK_SAYING(e.wrong == 0, "%d wrong values", e.wrong);
	CHECK(e.batches == sl_loader_batches(l) && e.samples == sl_loader_samples(l));
	return e;
}

static bool is_permutation(const struct epoch *e, int n)
{
	bool seen[256] = {false};
	if (e->samples != n) return false;
	for (int i = 0; i < n; i++) {
		if (e->order[i] >= n || seen[e->order[i]]) return false;
		seen[e->order[i]] = true;
	}
	return true;
}

static bool is_sorted(const struct epoch *e)
{
	for (int i = 0; i < e->samples; i++)
		if (e->order[i] != i) return false;
	return true;
}

static bool same_order(const struct epoch *a, const struct epoch *b)
{
	return a->samples == b->samples && !memcmp(a->order, b->order, (size_t)a->samples * sizeof *a->order);
}

static void test_in_order(void)
{
	sl_dataset *d = sample_set(100);
	sl_loader *l = sl_loader_new(d, .batch_size = 32);
	for (int i = 0; i < 3; i++) {
		struct epoch e = run_epoch(l);
		CHECK(e.batches == 4 && e.sizes[2] == 32 && e.sizes[3] == 4 && e.samples == 100 && is_sorted(&e));
	}
	sl_loader_free(l);
	sl_dataset_free(d);
}

static void test_shuffled(void)
{
	sl_dataset *d = sample_set(100);
	sl_loader *a = sl_loader_new(d, .batch_size = 16, .shuffle = true, .seed = 5);
	sl_loader *b = sl_loader_new(d, .batch_size = 25, .shuffle = true, .seed = 5, .prefetch = 7);
	sl_loader *c = sl_loader_new(d, .batch_size = 16, .shuffle = true, .seed = 6);
	sl_dataset_free(d); /* loaders go on */
	struct epoch a1 = run_epoch(a), a2 = run_epoch(a), a3 = run_epoch(a);
	sl_seed(77); /* has no influence */
	struct epoch b1 = run_epoch(b), b2 = run_epoch(b), c1 = run_epoch(c);
	CHECK(is_permutation(&a1, 100) && is_permutation(&a2, 100) && is_permutation(&a3, 100) &&
	      is_permutation(&c1, 100));
	CHECK(!is_sorted(&a1) && !same_order(&a1, &a2) && !same_order(&a2, &a3) && !same_order(&a1, &c1));
	CHECK(same_order(&a1, &b1) && same_order(&a2, &b2));
	sl_loader_free(a);
	sl_loader_free(b);
	sl_loader_free(c);
}

static void test_last_and_limit(void)
{
	sl_dataset *d = sample_set(100);
	sl_loader *l = sl_loader_new(d, .batch_size = 32, .last = SL_LAST_DISCARD);
	struct epoch e = run_epoch(l);
	CHECK(e.batches == 3 && e.samples == 96 && is_sorted(&e));
	sl_loader_free(l);
	l = sl_loader_new(d, .batch_size = 8, .limit = 20, .shuffle = true);
	e = run_epoch(l);
	CHECK(e.batches == 3 && e.sizes[2] == 4 && is_permutation(&e, 20));
	sl_loader_free(l);
	l = sl_loader_new(d, .batch_size = 8, .limit = 1000, .last = SL_LAST_DISCARD);
	CHECK(sl_loader_batches(l) == 12 && sl_loader_samples(l) == 96);
	sl_loader_free(l);
	l = sl_loader_new(d, .batch_size = 1000);
	e = run_epoch(l);
	CHECK(e.batches == 1 && e.samples == 100);
	sl_loader_free(l);
	sl_dataset_free(d);
}

/* All samples take part over time, also where each epoch discards some. */
static void test_discard_shuffled(void)
{
	sl_dataset *d = sample_set(50);
	sl_loader *l = sl_loader_new(d, .batch_size = 30, .shuffle = true, .last = SL_LAST_DISCARD);
	bool seen[50] = {false};
	for (int i = 0; i < 20; i++) {
		struct epoch e = run_epoch(l);
		CHECK(e.samples == 30);
		for (int s = 0; s < e.samples; s++) seen[e.order[s]] = true;
	}
	int missing = 0;
	for (int i = 0; i < 50; i++) missing += !seen[i];
	CHECK_SAYING(missing == 0, "%d samples never came", missing);
	sl_loader_free(l);
	sl_dataset_free(d);
}

/* Batches belong to the scope of the call, also those that were made within another; without a scope, to the caller. */
static void test_scopes(void)
{
	sl_dataset *d = sample_set(64);
	sl_loader *l = sl_loader_new(d, .batch_size = 8, .prefetch = 3);
	struct sl_batch b;
	SL_SCOPE {
		CHECK(sl_loader_next(l, &b) && b.index == 0);
		SL_SCOPE {
			CHECK(sl_loader_next(l, &b) && b.index == 1);
			sl_retain(b.x);
		}
		sl_release(b.x);
		CHECK(sl_loader_next(l, &b) && b.index == 2);
	}
	CHECK(sl_loader_next(l, &b) && b.index == 3);
	sl_loader_free(l); /* in the middle; what was handed out stays */
	sl_dataset_free(d);
	CHECK_VALUES(b.y, 4, 5, 6, 7, 8, 9, 0, 1);
	sl_release(b.x);
	sl_release(b.y);
	sl_loader_free(NULL);
}

static void test_wrong_options(void)
{
	sl_dataset *d = sample_set(10);
	struct sl_batch b;
	CHECK_NULL(sl_loader_new(d), SL_EINVAL, "batch_size is 0, 1 or more needed");
	CHECK_NULL(sl_loader_new(d, .batch_size = -3), SL_EINVAL, "batch_size is -3");
	CHECK_NULL(sl_loader_new(d, .batch_size = 1, .limit = -1), SL_EINVAL, "limit is -1");
	CHECK_NULL(sl_loader_new(d, .batch_size = 1, .prefetch = -1), SL_EINVAL, "prefetch is -1");
	CHECK_NULL(sl_loader_new(d, .batch_size = 1, .last = (enum sl_last_batch)9), SL_EINVAL, "last is 9");
	CHECK_NULL(sl_loader_new(d, .batch_size = 11, .last = SL_LAST_DISCARD), SL_EINVAL,
	           "10 samples do not fill a batch of 11");
	CHECK_NULL(sl_loader_new(d, .batch_size = 1, .device = sl_cpu(9)), SL_EDEVICE, "cpu:9");
	CHECK_NULL(sl_loader_new(NULL, .batch_size = 1), SL_EINVAL, "the data set is NULL");
	CHECK(!sl_loader_next(NULL, &b) && sl_error() == SL_EINVAL);
	sl_error_clear();
	CHECK(sl_loader_batches(NULL) == 0 && sl_loader_samples(NULL) == 0);
	sl_dataset_free(d);
}

static void test_devices(void)
{
	sl_dataset *d = sample_set(30);
	char name[SL_DEVICE_NAME_MAX];
	for (int i = 0; i < sl_device_count(SL_DEVICE_CPU) + sl_device_count(SL_DEVICE_GPU); i++) {
		int cpus = sl_device_count(SL_DEVICE_CPU);
		sl_device device = i < cpus ? sl_cpu(i) : sl_gpu(i - cpus);
		sl_loader *l = sl_loader_new(d, .batch_size = 7, .shuffle = true, .device = device);
		SL_SCOPE {
			struct sl_batch b;
			CHECK(sl_loader_next(l, &b));
			CHECK_SAYING(sl_device_equal(sl_tensor_device(b.x), device), "the batch is on %s",
			             sl_device_name(sl_tensor_device(b.x), name));
		}
		sl_loader_free(l);
		l = sl_loader_new(d, .batch_size = 7, .shuffle = true, .device = device);
		struct epoch e = run_epoch(l);
		CHECK(is_permutation(&e, 30));
		sl_loader_free(l);
	}
	sl_dataset_free(d);
}

/* After sl_shutdown nothing is left to load from; all can still be given up. */
static void test_after_shutdown(void)
{
	sl_dataset *d = sample_set(30);
	sl_loader *l = sl_loader_new(d, .batch_size = 7, .shuffle = true), *unused = sl_loader_new(d, .batch_size = 3);
	struct epoch e = run_epoch(l);
	CHECK(e.samples == 30);
	sl_shutdown();
	CHECK_OK(sl_init(NULL));
	struct sl_batch b;
	CHECK(!sl_loader_next(unused, &b) && sl_error() == SL_ESTATE && !b.x && !b.y);
	sl_error_clear();
	CHECK(!sl_loader_next(unused, &b) && sl_error() == SL_ESTATE); /* and again */
	sl_error_clear();
	sl_loader_free(l);
	sl_loader_free(unused);
	sl_dataset_free(d);
}

/* ---- Fashion-MNIST, where it is installed -------------------------------------------------------------------------
 */

/* What the files hold, found with NumPy and zlib. */
static const struct {
	enum sl_split split;
	int64_t size, pixels; /* the sum of all pixels */
	unsigned long images_crc, labels_crc;
	int32_t first[8];
} facts[] = {
        {SL_TRAIN, 60000, 3431114169, 0xae65dccd, 0x2ed6e46a, {9, 0, 0, 3, 0, 2, 7, 2}},
        {SL_TEST, 10000, 573469082, 0x12728439, 0x242bc73f, {9, 2, 1, 1, 6, 1, 4, 6}},
};

/* Sums over all batches, as bytes again. */
struct sums {
	int64_t samples, pixels;
	unsigned long images_crc, labels_crc;
};

static void add_batch(struct sums *s, const struct sl_batch *b)
{
	int64_t n = sl_tensor_size(b->x), rows = sl_tensor_size(b->y);
	float *x = malloc((size_t)n * sizeof *x);
	int32_t *y = malloc((size_t)rows * sizeof *y);
	unsigned char *bytes = malloc((size_t)n);
	CHECK_OK(sl_read(b->x, x, (size_t)n * sizeof *x));
	CHECK_OK(sl_read(b->y, y, (size_t)rows * sizeof *y));
	for (int64_t i = 0; i < n; i++) s->pixels += bytes[i] = (unsigned char)(x[i] * 255 + 0.5f);
	s->images_crc = crc32(s->images_crc, bytes, (uInt)n);
	for (int64_t i = 0; i < rows; i++) bytes[i] = (unsigned char)y[i];
	s->labels_crc = crc32(s->labels_crc, bytes, (uInt)rows);
	s->samples += rows;
	free(x);
	free(y);
	free(bytes);
}

static void check_fashion(int i)
{
	sl_dataset *d = sl_dataset_mnist(NULL, facts[i].split);
	if (!CHECK_SAYING(d != NULL, "%s", sl_error_message())) return;
	CHECK(sl_dataset_size(d) == facts[i].size);
	CHECK(sl_shape_equal(sl_dataset_sample_shape(d), SL_SHAPE(1, 28, 28)));
	CHECK(!strcmp(sl_dataset_class_name(d, 9), "ankle boot") && !strcmp(sl_dataset_class_name(d, 0), "t-shirt"));
	sl_loader *l = sl_loader_new(d, .batch_size = 1024);
	struct sums s = {0};
	for (bool more = true; more;)
		SL_SCOPE {
			struct sl_batch b;
			if (!(more = sl_loader_next(l, &b))) break;
			add_batch(&s, &b);
			int32_t y[1024];
			if (b.index == 0 && CHECK_OK(sl_read(b.y, y, sizeof y)))
				CHECK(!memcmp(y, facts[i].first, sizeof facts[i].first));
		}
	CHECK(s.samples == facts[i].size && s.pixels == facts[i].pixels);
	CHECK(s.images_crc == facts[i].images_crc && s.labels_crc == facts[i].labels_crc);
	sl_loader_free(l);
	sl_dataset_free(d);
}

static void test_fashion(void)
{
	struct stat st;
	if (stat(SL_FASHION_MNIST_DIR, &st)) {
		CHECK_NULL(sl_dataset_mnist(NULL, SL_TRAIN), SL_EIO, SL_FASHION_MNIST_DIR, "no such folder",
		           "apt install dataset-fashion-mnist");
		return;
	}
	for (int i = 0; i < 2; i++) check_fashion(i);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static void start(void)
{
	CHECK_OK(sl_init(NULL));
}

static void stop(void)
{
	while (sl_is_initialized()) sl_shutdown();
	sl_error_clear();
}

static const struct slp_test idx_tests[] = {
        {"headers", test_headers},
        {"sizes", test_sizes},
        {"pairs", test_pairs},
        {"gzip", test_gzip_faults},
        {"no files", test_no_files},
        {"plain and gzip", test_plain_and_gzip},
        {NULL, NULL},
};

static const struct slp_test dataset_tests[] = {
        {"names", test_names},
        {"no folder", test_no_folder},
        {"class names", test_class_names},
        {"fashion-mnist", test_fashion},
        {NULL, NULL},
};

static const struct slp_test loader_tests[] = {
        {"in order", test_in_order},
        {"shuffled", test_shuffled},
        {"last and limit", test_last_and_limit},
        {"discard, shuffled", test_discard_shuffled},
        {"scopes", test_scopes},
        {"wrong options", test_wrong_options},
        {"devices", test_devices},
        {"after shutdown", test_after_shutdown},
        {NULL, NULL},
};

int main(int argc, char **argv)
{
	static const struct slp_suite suites[] = {
	        {"idx", idx_tests, make_folder, remove_folder, start, stop},
	        {"dataset", dataset_tests, make_folder, remove_folder, start, stop},
	        {"loader", loader_tests, make_folder, remove_folder, start, stop},
	        {0},
	};
	return slp_test_main(argc, argv, suites);
}
