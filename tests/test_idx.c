/* IDX files as they should be and in every way broken; the files that a data set's folder may have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "check.h"
#include "idx_files.h"

/* The call failed with this status; the message has the texts in it. */
static void check_refused(sl_dataset *d, enum sl_status status, const char *a, const char *b)
{
	slp_check_null(__FILE__, __LINE__, d, status, (const char *const[]){"sl_dataset_idx", a, b, NULL});
	sl_dataset_free(d);
}

/* The pair is refused with a message about this file. */
static void refuse(const struct idx_bytes *x, const struct idx_bytes *y, const char *file, const char *text)
{
	char path[PATH_MAX];
	sl_dataset *d = idx_open_pair(x, y, 10);
	slp_check_null(__FILE__, __LINE__, d, SL_EFORMAT,
	               (const char *const[]){"sl_dataset_idx", slp_scratch_path(file, path), text, NULL});
	sl_dataset_free(d);
}

static void refuse_images(struct idx_bytes x, const char *text)
{
	struct idx_bytes y = idx_labels(4);
	refuse(&x, &y, "x", text);
}

static void refuse_labels(struct idx_bytes y, const char *text)
{
	struct idx_bytes x = idx_images(4);
	refuse(&x, &y, "y", text);
}
/* ---- what is wrong with files ------------------------------------------------------------------------------------ */

static struct idx_bytes cut(struct idx_bytes b, size_t size)
{
	b.size = size;
	return b;
}

static struct idx_bytes with(struct idx_bytes b, size_t at, unsigned char value)
{
	b.data[at] = value;
	return b;
}

static struct idx_bytes longer(struct idx_bytes b)
{
	b.data[b.size++] = 0;
	return b;
}

static struct idx_bytes with_dims(uint32_t n, uint32_t h, uint32_t w)
{
	struct idx_bytes b = idx_header(3, (uint32_t[]){n, h, w});
	b.size += 4 * IDX_PIXELS;
	return b;
}

static void test_headers(void)
{
	refuse_images(cut(idx_images(4), 0), "ends after 0 bytes, within the header of 16");
	refuse_images(cut(idx_images(4), 3), "ends after 3 bytes");
	refuse_images(cut(idx_images(4), 9), "ends within the header of 16 bytes");
	refuse_labels(cut(idx_labels(4), 7), "ends within the header of 8 bytes");
	refuse_images(with(idx_images(4), 0, 0x89), "begins with the bytes 89 00, an IDX file begins with 00 00");
	refuse_images(with(idx_images(4), 1, 1), "begins with the bytes 00 01");
	refuse_images(with(idx_images(4), 2, 0x0d), "elements of type 0d (float), type 08 (unsigned byte) needed");
	refuse_images(with(idx_images(4), 2, 0x77), "elements of type 77 (unknown)");
	refuse_images(with(idx_images(4), 3, 4), "has 4 axes, 3 needed");
	refuse_images(idx_labels(4), "has 1 axes, 3 needed");
	refuse_labels(idx_images(4), "has 3 axes, 1 needed");
}

static void test_sizes(void)
{
	refuse_images(with_dims(0, 2, 3), "axis 0 has size 0");
	refuse_images(with_dims(4, 0, 3), "axis 1 has size 0");
	refuse_images(with_dims(0xffffffffu, 2, 3), "axis 0 has the impossible size 4294967295");
	refuse_images(with_dims(0x7fffffffu, 0x7fffffffu, 0x7fffffffu), "axis 2 has the impossible size 2147483647");
	refuse_images(with_dims(0x7fffffffu, 0x7fffffffu, 1), "4611686014132420609 bytes, but 24 follow its header");
	refuse_images(with_dims(5, 2, 3), "(5, 2, 3), 30 bytes, but 24 follow its header");
	refuse_images(with_dims(4, 3, 2 + 3), "60 bytes, but 24 follow its header");
	refuse_images(longer(idx_images(4)), "24 bytes, but 25 follow its header");
	refuse_labels(cut(idx_labels(4), 10), "4 bytes, but 2 follow its header");
	refuse_labels(longer(idx_labels(4)), "4 bytes, but 5 follow its header");
}

static void test_pairs(void)
{
	char text[2 * PATH_MAX], path[PATH_MAX];
	struct idx_bytes x = idx_images(4), y = idx_labels(3);
	snprintf(text, sizeof text, "%s has 3 labels", slp_scratch_path("y", path));
	refuse(&x, &y, "x", "has 4 images");
	refuse(&x, &y, "x", text);
	refuse_labels(with(idx_labels(4), 8 + 2, 10), "sample 2 has label 10, labels are 0 to 9");
	refuse_labels(with(idx_labels(4), 8 + 3, 255), "sample 3 has label 255");
}

static void test_gzip_faults(void)
{
	struct idx_bytes x = idx_images(4), z = idx_gzipped(&x), plain = longer(idx_images(4));
	for (size_t n = 2; n < z.size; n++) refuse_images(cut(z, n), "ends in the middle of its gzip data");
	refuse_images(with(z, z.size - 5, (unsigned char)~z.data[z.size - 5]),
	              "damaged gzip data: incorrect data check");
	refuse_images(with(z, z.size - 1, 1), "damaged gzip data: incorrect length check");
	refuse_images(with(z, 2, 9), "damaged gzip data: unknown compression method");
	refuse_images(longer(z), "bytes follow after the end of the gzip data");
	refuse_images(idx_gzipped(&plain), "has bytes after its 24 values");
	plain = cut(idx_images(4), 30);
	refuse_images(idx_gzipped(&plain), "ends after 14 values, 24 needed");
	plain = cut(idx_images(4), 11);
	refuse_images(idx_gzipped(&plain), "ends within the header");
	plain = with_dims(0x7fffffffu, 1000, 1000);
	refuse_images(idx_gzipped(&plain), "compressed bytes can hold");
	refuse_images(cut(idx_gzipped(&plain), 2), "ends in the middle of its gzip data");
}

static void test_no_files(void)
{
	char folder[PATH_MAX];
	slp_scratch_path("", folder);
	char a[PATH_MAX], b[PATH_MAX];
	struct idx_bytes y = idx_labels(4);
	slp_write_scratch("y", y.data, y.size);
	check_refused(sl_dataset_idx(slp_scratch_path("none", a), slp_scratch_path("y", b), 10), SL_EIO, a,
	              "No such file");
	check_refused(sl_dataset_idx(folder, b, 10), SL_EIO, folder, "is not a regular file");
	char fifo[PATH_MAX];
	unlink(slp_scratch_path("fifo", fifo));
	if (mkfifo(fifo, 0600) == 0) { /* nobody writes to it */
		check_refused(sl_dataset_idx(fifo, b, 10), SL_EIO, fifo, "is not a regular file");
		CHECK_NULL(sl_dataset_csv(fifo), SL_EIO, "is not a regular file");
		unlink(fifo);
	}
	CHECK_NULL(sl_dataset_idx(NULL, b, 10), SL_EINVAL, "a file name is NULL");
	CHECK_NULL(sl_dataset_idx(a, b, 0), SL_EINVAL, "0 classes; the number must be from 1 to 256");
	CHECK_NULL(sl_dataset_idx(a, b, 257), SL_EINVAL, "257 classes");
	idx_remove("y");
	if (geteuid() == 0) return; /* root may read anything */
	slp_write_scratch("y", y.data, y.size);
	CHECK(chmod(b, 0) == 0);
	check_refused(sl_dataset_idx(b, b, 10), SL_EIO, b, "Permission denied");
	idx_remove("y");
}

/* ---- data sets --------------------------------------------------------------------------------------------------- */

/* The set has n samples, as the functions above make them. */
static void check_set(sl_dataset *d, int n)
{
	struct sl_batch b;
	if (!CHECK(d != NULL)) return;
	CHECK(sl_dataset_size(d) == n && sl_dataset_classes(d) == 10);
	CHECK(sl_shape_equal(sl_dataset_sample_shape(d), SL_SHAPE(1, IDX_HEIGHT, IDX_WIDTH)));
	sl_loader *l = sl_loader_new(d, .batch_size = n);
	SL_SCOPE {
		if (!CHECK(sl_loader_next(l, &b))) break;
		float *x = malloc(sl_tensor_bytes(b.x));
		int32_t *y = malloc(sl_tensor_bytes(b.y));
		CHECK(sl_shape_equal(sl_tensor_shape(b.x), SL_SHAPE(n, 1, IDX_HEIGHT, IDX_WIDTH)));
		CHECK_OK(sl_read(b.x, x, sl_tensor_bytes(b.x)));
		CHECK_OK(sl_read(b.y, y, sl_tensor_bytes(b.y)));
		int wrong = 0;
		for (int i = 0; i < n * IDX_PIXELS; i++)
			wrong += x[i] != (float)idx_pixel(i / IDX_PIXELS, i % IDX_PIXELS) * (float)(1 / 255.0);
		for (int i = 0; i < n; i++) wrong += y[i] != idx_label(i);
		CHECK_SAYING(wrong == 0, "%d wrong values", wrong);
		free(x);
		free(y);
	}
	sl_loader_free(l);
	sl_dataset_free(d);
}

static void test_plain_and_gzip(void)
{
	struct idx_bytes x = idx_images(100), y = idx_labels(100), zx = idx_gzipped(&x), zy = idx_gzipped(&y);
	check_set(idx_open_pair(&x, &y, 10), 100);
	check_set(idx_open_pair(&zx, &zy, 10), 100);
	check_set(idx_open_pair(&zx, &y, 10), 100);
	struct idx_bytes first = cut(x, 50), both = idx_gzipped(&first), rest = {{0}, 0}, zrest;
	idx_put(&rest, x.data + 50, x.size - 50);
	zrest = idx_gzipped(&rest);
	idx_put(&both, zrest.data, zrest.size);
	check_set(idx_open_pair(&both, &y, 10), 100); /* gzip files may be joined */
}

/* Large compressed files are unpacked once: after that what is damaged in the middle of one does not matter, but what
 * is damaged in what was kept does. */
static void test_kept(void)
{
	enum { PLAIN = 16 + 4 * 512 * 1024 };
	static unsigned char plain[PLAIN], packed[PLAIN];
	char cache[PATH_MAX], path[PATH_MAX], labels[PATH_MAX], command[PATH_MAX + 128];
	struct idx_bytes y = idx_labels(4);
	memcpy(plain, "\0\0\10\3\0\0\0\4\0\0\2\0\0\0\4\0", 16);
	for (int i = 16; i < PLAIN; i++) plain[i] = (unsigned char)(i * 31 + i / 1000);
	z_stream z = {.next_in = plain, .avail_in = PLAIN, .next_out = packed, .avail_out = PLAIN};
	CHECK(deflateInit2(&z, 1, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
	CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
	deflateEnd(&z);
	slp_write_scratch("large.gz", packed, z.total_out);
	slp_write_scratch("labels", y.data, y.size);
	slp_scratch_path("large.gz", path);
	slp_scratch_path("labels", labels);
	setenv("SL_CACHE", slp_scratch_path("cache/idx", cache), 1);
	static float x[512 * 1024];
	for (int round = 0; round < 3; round++) { /* unpacked; kept, and damaged here; damaged there */
		if (round == 1) packed[z.total_out / 2] ^= 0xff;
		slp_write_scratch("large.gz", packed, z.total_out);
		if (round == 2) {
			snprintf(command, sizeof command,
			         "for f in %s/idx-*; do printf x | dd bs=1 seek=99999 conv=notrunc status=none "
			         "of=\"$f\"; done",
			         cache);
			CHECK(system(command) == 0);
			CHECK_NULL(sl_dataset_idx(path, labels, 10), SL_EFORMAT, path);
			break;
		}
		sl_dataset *d = sl_dataset_idx(path, labels, 10);
		if (!CHECK_SAYING(d != NULL, "round %d: %s", round, sl_error_message())) continue;
		int wrong = 0;
		for (int64_t i = 0; i < 4; i++) {
			CHECK_OK(sl_dataset_read(d, i, x, NULL));
			for (int k = 0; k < 512 * 1024; k++)
				wrong += x[k] != (float)plain[16 + i * 512 * 1024 + k] * (float)(1 / 255.0);
		}
		CHECK_SAYING(!wrong, "round %d: %d wrong values", round, wrong);
		sl_dataset_free(d);
	}
	unsetenv("SL_CACHE");
}

/* The names that a folder's files may have. */
static void test_names(void)
{
	char folder[PATH_MAX];
	slp_scratch_path("", folder);
	static const char *const names[][2] = {
	        {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
	        {"train-images.idx3-ubyte", "train-labels.idx1-ubyte"},
	        {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"},
	        {"train-images.idx3-ubyte.gz", "train-labels-idx1-ubyte"},
	        {"t10k-images-idx3-ubyte", "t10k-labels.idx1-ubyte.gz"},
	};
	struct idx_bytes x = idx_images(20), y = idx_labels(20);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		slp_write_scratch(names[i][0], x.data, x.size);
		slp_write_scratch(names[i][1], y.data, y.size);
		check_set(sl_dataset_mnist(folder, i < 4 ? SL_TRAIN : SL_TEST), 20);
		idx_remove(names[i][0]);
		CHECK_NULL(sl_dataset_mnist(folder, i < 4 ? SL_TRAIN : SL_TEST), SL_EIO, folder, "it has no file",
		           "-images-idx3-ubyte[.gz]", "apt install dataset-fashion-mnist");
		idx_remove(names[i][1]);
	}
}

static void test_no_folder(void)
{
	char folder[PATH_MAX];
	slp_scratch_path("", folder);
	CHECK_NULL(sl_dataset_mnist("/nowhere/at/all", SL_TEST), SL_EIO, "/nowhere/at/all", "no such folder",
	           "apt install dataset-fashion-mnist");
	CHECK_NULL(sl_dataset_mnist(folder, (enum sl_split)7), SL_EINVAL, "no split 7");
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static const struct slp_test idx_tests[] = {
        {"headers", test_headers},   {"sizes", test_sizes},
        {"pairs", test_pairs},       {"gzip", test_gzip_faults},
        {"no files", test_no_files}, {"plain and gzip", test_plain_and_gzip},
        {"kept", test_kept},         {NULL, NULL},
};

static const struct slp_test folder_tests[] = {
        {"names", test_names},
        {"no folder", test_no_folder},
        {NULL, NULL},
};

int main(int argc, char **argv)
{
	static const struct slp_suite suites[] = {
	        {"idx", idx_tests, slp_scratch_make, slp_scratch_remove, slp_begin_plainly, slp_end},
	        {"folder", folder_tests, slp_scratch_make, slp_scratch_remove, slp_begin_plainly, slp_end},
	        {0},
	};
	return slp_test_main(argc, argv, suites);
}
