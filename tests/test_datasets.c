/* Data sets of arrays, .npy and CSV files, tokens, CIFAR-10; parts of others; transforms. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "check.h"
#include "folder.h"

static const struct sl_array none;

/* x and y of sample i are these. */
static void check_sample(int line, sl_dataset *d, int64_t i, const float *x, int n, int32_t y)
{
	float got[64];
	int32_t label = -1;
	if (!CHECK_SAYING(sl_dataset_read(d, i, got, &label) == SL_OK, "line %d: %s", line, sl_error_message())) return;
	for (int k = 0; k < n; k++)
		CHECK_SAYING(got[k] == x[k] || (got[k] != got[k] && x[k] != x[k]), "line %d: x[%d] is %g, not %g", line,
		             k, got[k], x[k]);
	CHECK_SAYING(label == y, "line %d: label %d, not %d", line, label, y);
}
#define CHECK_SAMPLE(d, i, y, ...)                                                                                     \
	check_sample(__LINE__, d, i, (const float[]){__VA_ARGS__}, SL_COUNT_(float, __VA_ARGS__), y)

static const char *write_text(const char *name, const char *text, size_t size)
{
	static char paths[4][PATH_MAX];
	static int next;
	char *path = paths[next++ % 4];
	slp_write_scratch(name, text, size);
	slp_scratch_path(name, path);
	return path;
}
#define WRITE(name, text) write_text(name, text, sizeof text - 1)

/* ---- arrays ----------------------------------------------------------------------------------------------------- */

static float values[] = {1, 2, 3, 4, 5, 6};
static int32_t labels[] = {2, 0, 1};

static sl_dataset *three(void)
{
	return sl_dataset_arrays(((struct sl_array){values, SL_SHAPE(3, 2), SL_FLOAT32}),
	                         ((struct sl_array){labels, SL_SHAPE(3), SL_INT32}));
}

static void test_arrays(void)
{
	sl_dataset *d = three();
	CHECK(sl_dataset_size(d) == 3 && sl_dataset_classes(d) == 3);
	CHECK(sl_shape_equal(sl_dataset_sample_shape(d), SL_SHAPE(2)) && sl_dataset_y(d).dtype == SL_INT32);
	CHECK_SAMPLE(d, 0, 2, 1, 2);
	CHECK_SAMPLE(d, 2, 1, 5, 6);
	float x[2];
	CHECK_MISTAKE(sl_dataset_read(d, 3, x, NULL), SL_EINVAL, "sample 3 of 3");
	CHECK_MISTAKE(sl_dataset_read(d, 0, NULL, NULL), SL_EINVAL, "memory for x");
	sl_dataset_free(d);
	float copied[] = {7, 8};
	d = sl_dataset_arrays(((struct sl_array){copied, SL_SHAPE(2), SL_FLOAT32}), none, .copy = true);
	copied[0] = copied[1] = 0;
	CHECK(sl_dataset_classes(d) == 0 && sl_dataset_y(d).dtype == SL_DTYPE_DEFAULT);
	CHECK_SAMPLE(d, 1, -1, 8);
	sl_dataset_free(d);
}

static void test_wrong_arrays(void)
{
	struct sl_array x = {values, SL_SHAPE(3, 2), SL_FLOAT32}, y = {labels, SL_SHAPE(3), SL_INT32};
	CHECK_NULL(sl_dataset_arrays(none, y), SL_EINVAL, "x has no data");
	CHECK_NULL(sl_dataset_arrays(x, y, .classes = 2), SL_EFORMAT, "sample 0 has label 2, labels are 0 to 1");
	CHECK_NULL(sl_dataset_arrays(x, x, .classes = 2), SL_EDTYPE, "as labels of classes are");
	y.shape = SL_SHAPE(2);
	CHECK_NULL(sl_dataset_arrays(x, y), SL_ESHAPE, "x has 3 samples, y has 2");
	x.shape = SL_SHAPE(0, 2);
	CHECK_NULL(sl_dataset_arrays(x, none), SL_ESHAPE, "x is empty");
	x.shape = SL_SCALAR;
	CHECK_NULL(sl_dataset_arrays(x, none), SL_ESHAPE, "no first axis");
	x.dtype = (enum sl_dtype)77;
	CHECK_NULL(sl_dataset_arrays(x, none), SL_EDTYPE, "77 is not a data type");
}

/* ---- .npy ------------------------------------------------------------------------------------------------------- */

/* As NumPy writes it: magic, version 1.0, length, dictionary, values. */
static const char *write_npy(const char *name, const char *dictionary, const void *data, size_t bytes)
{
	char file[512] = "\x93NUMPY\x01";
	size_t n = strlen(dictionary);
	file[7] = 0;
	file[8] = (char)(n & 255);
	file[9] = (char)(n >> 8);
	memcpy(file + 10, dictionary, n);
	memcpy(file + 10 + n, data, bytes);
	return write_text(name, file, 10 + n + bytes);
}
#define HEADER(type, shape) "{'descr': '" type "', 'fortran_order': False, 'shape': " shape ", }\n"

static void test_npy(void)
{
	static const int64_t y[] = {1, 0, 2};
	static const uint16_t small[] = {7, 65535, 9};
	const char *x = write_npy("x.npy", HEADER("<f4", "(3, 2)"), values, sizeof values);
	sl_dataset *d =
	        sl_dataset_npy(x, write_npy("y.npy", HEADER("<i4", "(3,)"), labels, sizeof labels), .classes = 3);
	CHECK(sl_dataset_size(d) == 3 && sl_dataset_classes(d) == 3);
	CHECK_SAMPLE(d, 1, 0, 3, 4);
	sl_dataset_free(d);
	d = sl_dataset_npy(write_npy("y.npy", HEADER("<u2", "(3,)"), small, sizeof small),
	                   write_npy("z.npy", HEADER("<i8", "(3,)"), y, sizeof y));
	int32_t v = 0;
	int64_t w = 0;
	CHECK(sl_dataset_x(d).dtype == SL_INT32 && sl_dataset_y(d).dtype == SL_INT64);
	CHECK_OK(sl_dataset_read(d, 1, &v, &w));
	CHECK(v == 65535 && w == 0);
	CHECK_OK(sl_dataset_read(d, 2, &v, &w));
	CHECK(v == 9 && w == 2);
	sl_dataset_free(d);
}

static void test_wrong_npy(void)
{
	const char *x = write_npy("x.npy", HEADER("<f4", "(3, 2)"), values, sizeof values - 1);
	CHECK_NULL(sl_dataset_npy(x, NULL), SL_EFORMAT, x, "24 bytes, but 23 follow its header");
	CHECK_NULL(sl_dataset_npy("/nowhere/x.npy", NULL), SL_EIO, "/nowhere/x.npy");
	CHECK_NULL(sl_dataset_npy(WRITE("x.npy", "no array"), NULL), SL_EFORMAT, "does not begin like an .npy file");
	x = write_npy("x.npy", HEADER("<f4", "(999999999999, 99999999)"), values, sizeof values);
	CHECK_NULL(sl_dataset_npy(x, NULL), SL_EFORMAT, x, "impossible shape");
	x = write_npy("x.npy", HEADER("<f4", "(3, 2)"), values, sizeof values);
	CHECK_NULL(sl_dataset_npy(x, write_npy("y.npy", HEADER("<i4", "(2,)"), labels, 8)), SL_ESHAPE, "3 samples",
	           "has 2");
	sl_dataset *d =
	        sl_dataset_npy(x, write_npy("y.npy", HEADER("<i4", "(3,)"), labels, sizeof labels), .classes = 2);
	float v[2];
	int32_t y;
	CHECK_MISTAKE(sl_dataset_read(d, 0, v, &y), SL_EFORMAT, "label 2, labels are 0 to 1");
	WRITE("x.npy", "cut"); /* under its feet */
	CHECK_MISTAKE(sl_dataset_read(d, 1, v, &y), SL_EIO, x, "became shorter");
	sl_dataset_free(d);
}

/* ---- CSV -------------------------------------------------------------------------------------------------------- */

static void test_csv(void)
{
	sl_dataset *d = sl_dataset_csv(
	        WRITE("a.csv", "\xef\xbb\xbf"
	                       "width,\"the \"\"height\"\"\",kind\r\n1.5,\"2\",b\r\n\r\n-3e1, 4 ,\"a,\nb\"\r\n.5,0,b"),
	        .header = true);
	if (!CHECK_SAYING(d != NULL, "%s", sl_error_message())) return;
	CHECK(sl_dataset_size(d) == 3 && sl_dataset_classes(d) == 2);
	CHECK(!strcmp(sl_dataset_class_name(d, 0), "a,\nb") && !strcmp(sl_dataset_class_name(d, 1), "b"));
	CHECK_SAMPLE(d, 0, 1, 1.5f, 2);
	CHECK_SAMPLE(d, 1, 0, -30, 4);
	CHECK_SAMPLE(d, 2, 1, .5f, 0);
	sl_dataset_free(d);
	d = sl_dataset_csv(WRITE("a.csv", "4;1.5;2\n0;2.5;3\n"), .separator = ';', .label = 1);
	CHECK(sl_dataset_classes(d) == 5 && !strcmp(sl_dataset_class_name(d, 4), "4"));
	CHECK_SAMPLE(d, 0, 4, 1.5f, 2);
	sl_dataset_free(d);
	d = sl_dataset_csv(WRITE("a.csv", "1,,2\n,5,6\n"), .label = -1, .missing = true);
	CHECK_SAMPLE(d, 0, -1, 1, NAN, 2);
	CHECK_SAMPLE(d, 1, -1, NAN, 5, 6);
	sl_dataset_free(d);
	d = sl_dataset_csv(WRITE("a.csv", "1,2.5\n3,-4\n"), .regression = true);
	float x, y;
	CHECK_OK(sl_dataset_read(d, 1, &x, &y));
	CHECK(x == 3 && y == -4 && sl_dataset_y(d).dtype == SL_FLOAT32);
	sl_dataset_free(d);
}

/* A file of one feature and these labels, which are the classes' numbers 0 to 3, with these names. */
static void check_labels(const char *text, const int32_t *labels, const char *const *names)
{
	sl_dataset *d = sl_dataset_csv(write_text("a.csv", text, strlen(text)));
	if (!CHECK_SAYING(d != NULL, "%s: %s", text, sl_error_message())) return;
	for (int64_t i = 0; i < sl_dataset_size(d); i++) CHECK_SAMPLE(d, i, labels[i], 1);
	for (int i = 0; names && names[i]; i++)
		CHECK_SAYING(!strcmp(sl_dataset_class_name(d, i), names[i]), "%s: class %d is %s", text, i,
		             sl_dataset_class_name(d, i));
	sl_dataset_free(d);
}

static void test_csv_labels(void)
{
	check_labels("1,2\n1, 10\n1,10.0 \n1,1e1\n", SL_ARRAY(int32_t, 2, 10, 10, 10), NULL);
	check_labels("1,2,\n1,0,\n1,1\n", SL_ARRAY(int32_t, 2, 0, 1), NULL);
	check_labels("1,10\n1,-1\n1,2\n1,-1.0\n", SL_ARRAY(int32_t, 2, 0, 1, 0),
	             SL_ARRAY(const char *, "-1", "2", "10", NULL));
	check_labels("1,0.5\n1,10.25\n1,2\n", SL_ARRAY(int32_t, 0, 2, 1),
	             SL_ARRAY(const char *, "0.5", "2", "10.25", NULL));
	check_labels("1, cat\n1,dog \n1,cat\n1,\" cat\"\n", SL_ARRAY(int32_t, 1, 2, 1, 0),
	             SL_ARRAY(const char *, " cat", "cat", "dog", NULL));
	check_labels("1,10\n1,9\n1,nan\n", SL_ARRAY(int32_t, 0, 1, 2), SL_ARRAY(const char *, "10", "9", "nan", NULL));
	CHECK_NULL(sl_dataset_csv(WRITE("a.csv", "1,0\n1,\n")), SL_EFORMAT, "line 2, column 2: the label is empty");
	CHECK_NULL(sl_dataset_csv(WRITE("a.csv", "1,0\n1, \n")), SL_EFORMAT, "the label is empty");
	CHECK_NULL(sl_dataset_csv(WRITE("a.csv", "1,2,\n1,0,5\n")), SL_EFORMAT, "line 2 has more than 2 fields");
	CHECK_NULL(sl_dataset_csv(WRITE("a.csv", "1,0\n-1e39,0\n")), SL_EFORMAT,
	           "line 2, column 1: '-1e39' is not a value of float32");
	CHECK_NULL(sl_dataset_csv(WRITE("a.csv", "\xff\xfe"
	                                         "1\0,\0"
	                                         "2\0")),
	           SL_EFORMAT, "a.csv: is in UTF-16");
	CHECK_NULL(sl_dataset_csv("a.csv", .label = 0), SL_EINVAL, ".label is 0");
}

static void test_wrong_csv(void)
{
	CHECK_NULL(sl_dataset_csv(WRITE("a.csv", "1,2,0\n1,x,0\n")), SL_EFORMAT,
	           "a.csv: line 2, column 2: 'x' is not a number");
	CHECK_NULL(sl_dataset_csv(WRITE("a.csv", "1,2,0\n1,\"2,5\",0\n")), SL_EFORMAT,
	           "line 2, column 2: '2,5' is not a number");
	CHECK_NULL(sl_dataset_csv(WRITE("a.csv", "1,2,0\n\n1,,0\n")), SL_EFORMAT,
	           "line 3, column 2: '' is not a number");
	CHECK_NULL(sl_dataset_csv(WRITE("a.csv", "1,2,0\n1,2\n")), SL_EFORMAT,
	           "line 2 has only 2 fields, the first line has 3");
	CHECK_NULL(sl_dataset_csv(WRITE("a.csv", "1,2,0\n1,2,0,3\n")), SL_EFORMAT, "line 2 has more than 3 fields");
	CHECK_NULL(sl_dataset_csv(WRITE("a.csv", "1,2,0\n1,\"2,0\n")), SL_EFORMAT,
	           "quotes that begin in line 2, column 2");
	CHECK_NULL(sl_dataset_csv(WRITE("a.csv", "1,\"2\"5,0\n")), SL_EFORMAT,
	           "line 1, column 2: something follows the closing quote");
	CHECK_NULL(sl_dataset_csv(WRITE("a.csv", "1,2\0,0\n")), SL_EFORMAT, "line 1, column 2: a zero byte");
	CHECK_NULL(sl_dataset_csv(WRITE("a.csv", "")), SL_EFORMAT, "is empty");
	CHECK_NULL(sl_dataset_csv(WRITE("a.csv", "a,b\n"), .header = true), SL_EFORMAT, "no rows after its header");
	CHECK_NULL(sl_dataset_csv(WRITE("a.csv", "1,2\n"), .label = 3), SL_EINVAL, "label is column 3 of 2");
	CHECK_NULL(sl_dataset_csv(WRITE("a.csv", "1\n")), SL_EFORMAT, "only the column of the label");
	CHECK_NULL(sl_dataset_csv("/nowhere.csv"), SL_EIO, "/nowhere.csv");
	char *long_field = calloc(1, 200000);
	memset(long_field, '1', 200000);
	CHECK_NULL(sl_dataset_csv(write_text("a.csv", long_field, 200000)), SL_EFORMAT,
	           "a field of more than 65536 bytes");
	free(long_field);
}

/* ---- tokens and CIFAR-10 ---------------------------------------------------------------------------------------- */

static void test_tokens(void)
{
	static const uint16_t stream[] = {5, 6, 7, 8, 9, 65535, 11};
	static const uint32_t wide[] = {1, 3000000000u, 2};
	const char *path = write_text("t.bin", (const char *)stream, sizeof stream);
	int32_t x[3], y[3];
	sl_dataset *d = sl_dataset_tokens(path, .length = 3);
	CHECK(sl_dataset_size(d) == 2);
	CHECK_OK(sl_dataset_read(d, 1, x, y));
	CHECK(x[0] == 8 && x[2] == 65535 && y[0] == 9 && y[1] == 65535 && y[2] == 11);
	sl_dataset_free(d);
	d = sl_dataset_tokens(path, .length = 3, .stride = 1);
	CHECK(sl_dataset_size(d) == 4);
	CHECK_OK(sl_dataset_read(d, 1, x, y));
	CHECK(x[0] == 6 && y[2] == 9);
	sl_dataset_free(d);
	d = sl_dataset_tokens(WRITE("t.txt", "abcd"), .length = 3, .bytes = 1);
	CHECK_OK(sl_dataset_read(d, 0, x, y));
	CHECK(sl_dataset_size(d) == 1 && x[0] == 'a' && y[2] == 'd');
	sl_dataset_free(d);
	CHECK_NULL(sl_dataset_tokens(path, .length = 7), SL_EFORMAT, path, "has 7 tokens, a sample needs 8");
	CHECK_NULL(sl_dataset_tokens(path), SL_EINVAL, "length is 0");
	CHECK_NULL(sl_dataset_tokens(path, .length = 1, .bytes = 3), SL_EINVAL, "bytes is 3");
	CHECK_NULL(sl_dataset_tokens(WRITE("t.bin", "abc"), .length = 1), SL_EFORMAT,
	           "3 bytes, not a multiple of the 2 of a token");
	d = sl_dataset_tokens(write_text("t.bin", (const char *)wide, sizeof wide), .length = 2, .bytes = 4);
	CHECK_MISTAKE(sl_dataset_read(d, 0, x, y), SL_EFORMAT, "token 1 is larger");
	sl_dataset_free(d);
}

static void test_cifar(void)
{
	enum { RECORD = 3073, COUNT = 2 };
	static char records[COUNT * RECORD];
	char folder[PATH_MAX], name[32];
	static float x[3072];
	int32_t y;
	slp_scratch_path("", folder);
	for (int file = 5; file >= 1; file--) {
		for (int i = 0; i < COUNT * RECORD; i++)
			records[i] = (char)(i % RECORD ? i / RECORD + i % RECORD + file : file);
		CHECK_NULL(sl_dataset_cifar10(folder, SL_TRAIN), SL_EIO, "data_batch_1.bin");
		snprintf(name, sizeof name, "data_batch_%d.bin", file);
		slp_write_scratch(name, records, sizeof records);
	}
	sl_dataset *d = sl_dataset_cifar10(folder, SL_TRAIN);
	CHECK(sl_dataset_size(d) == 10 && !strcmp(sl_dataset_class_name(d, 3), "cat"));
	CHECK_OK(sl_dataset_read(d, 5, x, &y)); /* the second record of the third file */
	CHECK(y == 3 && x[0] == (float)(1 + 1 + 3) * (float)(1 / 255.0) &&
	      x[3071] == (float)((1 + 3072 + 3) % 256) * (float)(1 / 255.0));
	sl_dataset_free(d);
	records[RECORD] = 10;
	slp_write_scratch("test_batch.bin", records, sizeof records);
	d = sl_dataset_cifar10(folder, SL_TEST);
	CHECK_MISTAKE(sl_dataset_read(d, 1, x, &y), SL_EFORMAT, "test_batch.bin: record 1 has label 10");
	sl_dataset_free(d);
	slp_write_scratch("test_batch.bin", records, RECORD + 1);
	CHECK_NULL(sl_dataset_cifar10(folder, SL_TEST), SL_EFORMAT,
	           "3074 bytes, not a multiple of the 3073 of a record");
	CHECK_NULL(sl_dataset_cifar10(folder, (enum sl_split)5), SL_EINVAL, "no split 5");
}

/* ---- parts ------------------------------------------------------------------------------------------------------ */

static void test_parts(void)
{
	sl_dataset *d = three(), *last = sl_dataset_range(d, 1, 2),
	           *twice = sl_dataset_select(last, SL_ARRAY(int64_t, 1, 1, 0), 3);
	sl_dataset *all = sl_dataset_concat(d, twice, last);
	CHECK(sl_dataset_size(last) == 2 && sl_dataset_size(twice) == 3 && sl_dataset_size(all) == 8);
	CHECK_NULL(sl_dataset_range(d, 2, 2), SL_EINVAL, "2 samples from 2 on exceed the 3 of the data set");
	CHECK_NULL(sl_dataset_select(d, SL_ARRAY(int64_t, 0, 3), 2), SL_EINVAL, "exceed the 3 of");
	sl_dataset_free(d); /* those made from it go on */
	sl_dataset_free(last);
	CHECK_SAMPLE(twice, 0, 1, 5, 6);
	sl_dataset_free(twice);
	CHECK_SAMPLE(all, 2, 1, 5, 6);
	CHECK_SAMPLE(all, 5, 0, 3, 4);
	CHECK_SAMPLE(all, 7, 1, 5, 6);
	sl_dataset *parts[2], *again[2];
	CHECK(sl_dataset_split(all, 5, 3, parts) && sl_dataset_split(all, 5, 3, again));
	float sum = 0, x[2], same[2];
	for (int p = 0; p < 2; p++)
		for (int64_t i = 0; i < sl_dataset_size(parts[p]); i++) {
			CHECK_OK(sl_dataset_read(parts[p], i, x, NULL));
			CHECK_OK(sl_dataset_read(again[p], i, same, NULL));
			CHECK(!memcmp(x, same, sizeof x));
			sum += x[0];
		}
	CHECK(sum == 1 + 3 + 5 + 5 + 5 + 3 + 3 + 5 && sl_dataset_size(parts[1]) == 3);
	for (int p = 0; p < 2; p++) {
		sl_dataset_free(parts[p]);
		sl_dataset_free(again[p]);
	}
	CHECK(!sl_dataset_split(all, 8, 3, parts) && !parts[0] && sl_error() == SL_EINVAL);
	sl_error_clear();
	sl_dataset *other = sl_dataset_arrays(((struct sl_array){values, SL_SHAPE(2, 3), SL_FLOAT32}), none);
	CHECK_NULL(sl_dataset_concat(all, other), SL_ESHAPE, "data set 1 has samples of a different shape");
	sl_dataset_free(other);
	sl_dataset_free(all);
}

/* ---- transforms ------------------------------------------------------------------------------------------------- */

/* 1 × 3 × 4: rows of 1 2 3 4, 5 6 7 8, 9 10 11 12. */
static sl_dataset *picture(void)
{
	static float pixels[12];
	for (int i = 0; i < 12; i++) pixels[i] = (float)(i + 1);
	return sl_dataset_arrays(((struct sl_array){pixels, SL_SHAPE(1, 1, 3, 4), SL_FLOAT32}), none);
}

static bool add_index(void *arg, struct sl_sample *s)
{
	for (int64_t i = 0; i < sl_shape_size(s->x_type.shape); i++) ((float *)s->x)[i] += *(float *)arg;
	return true;
}

static void test_transforms(void)
{
	sl_dataset *d = picture();
	float hundred = 100;
	sl_dataset *t = sl_dataset_transform(d, sl_center_crop(.height = 1, .width = 2),
	                                     sl_map(.map = add_index, .arg = &hundred));
	CHECK_SAMPLE(t, 0, -1, 106, 107);
	sl_dataset_free(t);
	t = sl_dataset_transform(d, sl_random_flip(.p = 1), sl_random_flip(.p = 1, .vertical = true));
	CHECK_SAMPLE(t, 0, -1, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1);
	sl_dataset_free(t);
	t = sl_dataset_transform(d, sl_normalise(.mean = {1}, .std = {2}));
	CHECK_SAMPLE(t, 0, -1, 0, .5f, 1, 1.5f, 2, 2.5f, 3, 3.5f, 4, 4.5f, 5, 5.5f);
	sl_dataset_free(t);
	/* half the size: each pixel weighs by a triangle; by hand, for the first row of 4 to 2: (3·1 + 3·2 + 1·3) / 7
	 */
	t = sl_dataset_transform(d, sl_resize_image(.height = 3, .width = 2));
	float x[64];
	CHECK_OK(sl_dataset_read(t, 0, x, NULL));
	CHECK(fabsf(x[0] - 12.f / 7) < 1e-5f && fabsf(x[1] - (2 + 3 * 3 + 3 * 4) / 7.f) < 1e-5f &&
	      fabsf(x[2] - 4 - 12.f / 7) < 1e-5f);
	sl_dataset_free(t);
	/* twice as wide: halves between neighbours at quarters */
	t = sl_dataset_transform(d, sl_resize_image(.height = 3, .width = 8));
	CHECK_OK(sl_dataset_read(t, 0, x, NULL));
	CHECK(fabsf(x[0] - 1) < 1e-6f && fabsf(x[1] - 1.25f) < 1e-6f && fabsf(x[2] - 1.75f) < 1e-6f &&
	      fabsf(x[7] - 4) < 1e-6f);
	sl_dataset_free(t);
	sl_dataset_free(d);
}

/* The first plane of an image counts columns, the second rows: what comes of it says which window it was. */
static void check_windows(sl_dataset *d, struct sl_transform crop, const double area[2], const double ratio[2])
{
	enum { SIDE = 12, H = 60, W = 90 };
	double least = 1, most = 0;
	sl_dataset *t = sl_dataset_transform(d, crop);
	CHECK_SAYING(t != NULL, "%s", sl_error_message());
	for (int i = 0; i < sl_dataset_size(t); i++) {
		float v[2][SIDE][SIDE];
		CHECK_OK(sl_dataset_read(t, i, v, NULL));
		double w = (double)(v[0][6][8] - v[0][6][4]) / 4 * SIDE,
		       h = (double)(v[1][8][6] - v[1][4][6]) / 4 * SIDE;
		double left = (double)v[0][6][6] + 0.5 - w * 6.5 / SIDE,
		       top = (double)v[1][6][6] + 0.5 - h * 6.5 / SIDE;
		double part = w * h / (H * W), slack = 1 / fmin(w, h); /* sides are whole numbers */
		CHECK(left > -0.3 && top > -0.3 && left + w < W + 0.3 && top + h < H + 0.3);
		CHECK_SAYING(part > area[0] * (1 - slack) && part < area[1] * (1 + slack), "%g of the area", part);
		CHECK_SAYING(w / h > ratio[0] * (1 - slack) && w / h < ratio[1] * (1 + slack), "%g : %g", w, h);
		least = fmin(least, part), most = fmax(most, part);
	}
	CHECK_SAYING(least < area[0] + 0.2 * (area[1] - area[0]), "at least %g", least);
	CHECK_SAYING(most > area[1] - 0.3 * (area[1] - area[0]), "at most %g", most);
	sl_dataset_free(t);
}

static void test_random_windows(void)
{
	enum { N = 200, H = 60, W = 90 };
	static float x[2][H][W];
	for (int i = 0; i < H * W; i++) x[0][i / W][i % W] = (float)(i % W), x[1][i / W][i % W] = (float)(i / W);
	sl_dataset *one = sl_dataset_arrays(((struct sl_array){x, SL_SHAPE(1, 2, H, W), SL_FLOAT32}), none), *all[N];
	for (int i = 0; i < N; i++) all[i] = one;
	sl_dataset *d = sl_dataset_concat_at(SL_HERE, all, N);
	check_windows(d, sl_random_resized_crop(.height = 12, .width = 12), (const double[]){0.08, 1},
	              (const double[]){3.0 / 4, 4.0 / 3});
	check_windows(d, sl_random_resized_crop(.height = 12, .width = 12, .area = {.2, .4}, .ratio = {.5, 2}),
	              (const double[]){.2, .4}, (const double[]){.5, 2});
	/* No window of this ratio has this area: the largest of the ratio, in the middle. */
	sl_dataset *t = sl_dataset_transform(
	        d, sl_random_resized_crop(.height = 12, .width = 12, .area = {1, 1}, .ratio = {1, 1}));
	float v[2][12][12];
	CHECK_OK(sl_dataset_read(t, 7, v, NULL));
	CHECK(fabsf(v[0][6][6] - 47) < 1e-3f && fabsf(v[1][6][6] - 32) < 1e-3f);
	CHECK(fabsf((v[0][6][8] - v[0][6][4]) / 4 - 5) < 1e-4f && fabsf((v[1][8][6] - v[1][4][6]) / 4 - 5) < 1e-4f);
	sl_dataset_free(t);
	CHECK_NULL(sl_dataset_transform(d, sl_random_resized_crop(.height = 4, .width = 4, .area = {.5, 2})), SL_EINVAL,
	           "sl_random_resized_crop", "area is from 0.5 to 2");
	CHECK_NULL(sl_dataset_transform(d, sl_random_resized_crop(.height = 4, .width = 4, .ratio = {2, 1})), SL_EINVAL,
	           "ratio is from 2 to 1");
	sl_dataset_free(d);
	sl_dataset_free(one);
}

/* Bytes are numbers in [0, 1] before; colours as in their definition. */
static void test_colours(void)
{
	static const uint8_t rgb[] = {255, 0, 51};
	sl_dataset *d = sl_dataset_arrays(((struct sl_array){rgb, SL_SHAPE(1, 3, 1, 1), SL_UINT8}), none);
	sl_dataset *t = sl_dataset_transform(d, sl_colour_jitter(.brightness = .5));
	struct sl_sample drawn = {0};
	float v[3], bright = (float)(.5 + sl_sample_uniform(&drawn));
	CHECK(sl_dataset_x(t).dtype == SL_FLOAT32);
	CHECK_OK(sl_dataset_read(t, 0, v, NULL));
	CHECK(fabsf(v[0] - fminf(bright, 1)) < 1e-6f && v[1] == 0 && fabsf(v[2] - bright * .2f) < 1e-6f);
	sl_dataset_free(t);
	t = sl_dataset_transform(d, sl_colour_jitter(.saturation = .5));
	sl_sample_uniform(&drawn);
	float how = (float)(.5 + sl_sample_uniform(&drawn)), grey = .299f + .114f * .2f;
	CHECK_OK(sl_dataset_read(t, 0, v, NULL));
	CHECK(fabsf(v[2] - fmaxf(0, grey + how * (.2f - grey))) < 1e-6f &&
	      fabsf(v[0] - fminf(1, grey + how * (1 - grey))) < 1e-6f);
	sl_dataset_free(t);
	sl_dataset_free(d);
}

/* Each of the places that a crop may have comes, and only these. */
static void test_random_crop(void)
{
	sl_dataset *d = picture(), *many = sl_dataset_select(d, (int64_t[200]){0}, 200);
	sl_dataset *t = sl_dataset_transform(many, sl_random_crop(.height = 4, .width = 5, .pad = 1));
	int seen[4] = {0};
	for (int64_t i = 0; i < 200; i++) {
		float x[20];
		CHECK_OK(sl_dataset_read(t, i, x, NULL));
		int place = 4;
		for (int p = 0; p < 4; p++) { /* padded: 5 × 6, crops of 4 × 5 begin in row and column 0 or 1 */
			int fits = 1;
			for (int k = 0; k < 20; k++) {
				int r = k / 5 + p / 2 - 1, c = k % 5 + p % 2 - 1;
				fits &= x[k] == (r >= 0 && r < 3 && c >= 0 && c < 4 ? (float)(r * 4 + c + 1) : 0);
			}
			if (fits) place = p;
		}
		if (CHECK_SAYING(place < 4, "sample %d is no crop", (int)i)) seen[place]++;
	}
	for (int p = 0; p < 4; p++) CHECK_SAYING(seen[p] > 20, "place %d came %d times of 200", p, seen[p]);
	sl_dataset_free(t);
	sl_dataset_free(many);
	sl_dataset_free(d);
}

static void test_wrong_transforms(void)
{
	sl_dataset *d = picture(), *flat = three();
	CHECK_NULL(sl_dataset_transform(d, sl_center_crop(.height = 4, .width = 1)), SL_ESHAPE,
	           "4 × 1 pixels of an image of 3 × 4");
	CHECK_NULL(sl_dataset_transform(d, sl_random_crop(.height = 4)), SL_EINVAL, "4 × 0 pixels");
	CHECK_NULL(sl_dataset_transform(d, sl_random_flip(.p = 2)), SL_EINVAL, "p is 2");
	CHECK_NULL(sl_dataset_transform(flat, sl_random_flip()), SL_ESHAPE, "no image (channels, height, width)");
	CHECK_NULL(sl_dataset_transform(d, sl_map()), SL_EINVAL, "there is no function");
	CHECK_NULL(sl_dataset_transform(d, sl_normalise(.std = {-1})), SL_EINVAL, "std[0] is -1");
	CHECK_NULL(sl_dataset_transform(d, ((struct sl_transform){.kind = (enum sl_transform_kind)50})), SL_EINVAL,
	           "of an unknown kind");
	sl_dataset_free(d);
	sl_dataset_free(flat);
}

/* ---- all -------------------------------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
	static const struct slp_test sources[] = {
	        {"arrays", test_arrays},
	        {"wrong arrays", test_wrong_arrays},
	        {"npy", test_npy},
	        {"wrong npy", test_wrong_npy},
	        {"csv", test_csv},
	        {"labels in CSV", test_csv_labels},
	        {"wrong csv", test_wrong_csv},
	        {"tokens", test_tokens},
	        {"cifar", test_cifar},
	        {NULL, NULL},
	};
	static const struct slp_test others[] = {
	        {"parts", test_parts},
	        {"transforms", test_transforms},
	        {"colours", test_colours},
	        {"random windows", test_random_windows},
	        {"random crop", test_random_crop},
	        {"wrong transforms", test_wrong_transforms},
	        {NULL, NULL},
	};
	static const struct slp_suite suites[] = {
	        {.name = "sources", .tests = sources, .start = slp_scratch_make, .stop = slp_scratch_remove},
	        {.name = "made of others", .tests = others},
	        {0},
	};
	return slp_test_main(argc, argv, suites);
}
