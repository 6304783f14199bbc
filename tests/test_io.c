/* Arrays in files: .npy, MXNet's lists, safetensors, as they should be and in every way broken. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <starling.h>

#include "check.h"
#include "folder.h"
#include "io/elements.h"
#include "io/params.h"
#include "starling/io.h"

/* ---- .npy -------------------------------------------------------------------------------------------------------- */

static void check_npy_again(const char *name)
{
	char from[PATH_MAX], to[PATH_MAX];
	SL_SCOPE {
		sl_tensor *t = sl_load_npy(slp_data_path(name, from));
		CHECK_OK(sl_save_npy(t, slp_scratch_path("again.npy", to)));
		CHECK_SAYING(slp_same_file(from, to), "%s differs when it is written again", name);
		remove(to);
		CHECK_OK(sl_save_npy(slp_scratch_path("again.npy", to), t)); /* the order of 0.1 */
		CHECK_SAYING(slp_same_file(from, to), "%s differs in the old order of arguments", name);
		remove(to);
	}
}

static void test_npy(void)
{
	char path[PATH_MAX];
	check_npy_again("mlp-x.npy");
	check_npy_again("lenet-x.npy");
	SL_SCOPE {
		sl_tensor *t = sl_load_npy(slp_data_path("lenet-x.npy", path));
		CHECK(sl_shape_equal(sl_tensor_shape(t), SL_SHAPE(2, 1, 28, 28)) && sl_tensor_dtype(t) == SL_FLOAT32);
	}
}

static void test_npy_types(void)
{
	static const sl_shape shapes[] = {
	        {0, {0}}, {1, {5}}, {2, {2, 3}}, {3, {4, 0, 2}}, {8, {1, 2, 1, 2, 1, 2, 1, 1}}};
	char path[PATH_MAX];
	slp_scratch_path("t.npy", path);
	for (int dtype = 1; dtype < SL_DTYPE_COUNT; dtype++)
		for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
			SL_SCOPE {
				sl_tensor *t = sl_full(shapes[i], 7, .dtype = (enum sl_dtype)dtype);
				if (dtype == SL_BFLOAT16) {
					CHECK_STATUS(sl_save_npy(t, path), SL_EDTYPE, "NumPy has no bfloat16");
					sl_error_clear();
					continue;
				}
				CHECK_OK(sl_save_npy(t, path));
				sl_tensor *u = sl_load_npy(path);
				CHECK(sl_shape_equal(sl_tensor_shape(u), shapes[i]));
				CHECK(sl_tensor_dtype(u) == (enum sl_dtype)dtype);
				CHECK_ALL(u, dtype == SL_BOOL ? 1 : 7);
			}
	remove(path);
}

/* An .npy file with this header and these elements. */
static size_t make_npy(unsigned char *file, const char *header, const void *data, size_t bytes)
{
	size_t n = strlen(header);
	memcpy(file, "\x93NUMPY\x01\x00", 8);
	file[8] = (unsigned char)n;
	file[9] = (unsigned char)(n >> 8);
	memcpy(file + 10, header, n);
	if (bytes) memcpy(file + 10 + n, data, bytes);
	return 10 + n + bytes;
}

static sl_tensor *load_npy(const char *at, const char *header, const void *data, size_t bytes)
{
	unsigned char file[1024];
	char path[PATH_MAX];
	slp_write_scratch("t.npy", file, make_npy(file, header, data, bytes));
	sl_tensor *t = sl_load_npy_at(at, slp_scratch_path("t.npy", path));
	remove(path);
	return t;
}
#define LOAD_NPY(header, ...)                                                                                          \
	load_npy(SL_HERE, header, (const int64_t[]){__VA_ARGS__}, 8 * SL_COUNT_(int64_t, __VA_ARGS__))

static void test_npy_conversions(void)
{
	SL_SCOPE {
		CHECK_VALUES(LOAD_NPY("{'shape': (2,), 'fortran_order': False, 'descr': '<i8'}", -3, INT32_MAX), -3,
		             INT32_MAX);
		CHECK_VALUES(LOAD_NPY("{'descr': \"<u8\", 'fortran_order': True, 'shape': (1L,), }\n", 9), 9);
		/* 1, -2, 65504, smallest */
		CHECK_VALUES(LOAD_NPY("{'descr':'<f2','fortran_order':False,'shape':(2,2)}", 0x00017bffc0003c00), 1, -2,
		             65504, 5.9604644775390625e-8);
		CHECK_VALUES(LOAD_NPY("{'descr': '<i2', 'fortran_order': False, 'shape': (4,)}", 0x7fff800000020001), 1,
		             2, -32768, 32767);
		CHECK_VALUES(LOAD_NPY("{'descr': '|b1', 'fortran_order': False, 'shape': (8,)}", 0x0100000001000001), 1,
		             0, 0, 1, 0, 0, 0, 1);
		sl_tensor *t = LOAD_NPY("{'descr': '<u8', 'fortran_order': False, 'shape': (2,)}", 1, -1);
		CHECK_VALUES(t, 1, 0x1p64);
		CHECK(sl_tensor_dtype(t) == SL_UINT64);
	}
}

static void test_npy_faults(void)
{
	static const struct {
		const char *header, *says;
	} cases[] = {
	        {"", "not a dictionary"},
	        {"{", "not a dictionary"},
	        {"{'descr'", "not a dictionary"},
	        {"{'descr': '<f8', 'fortran_order': False, }", "without descr"},
	        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,)} x", "without descr"},
	        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'more': 1}", "unknown key 'more'"},
	        {"{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (1,)}", "descr"},
	        {"{'descr': '>f8', 'fortran_order': False, 'shape': (1,)}", "'>f8'"},
	        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "'|O'"},
	        {"{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}", "not a plain numeric type"},
	        {"{'descr': '<f8', 'fortran_order': 0, 'shape': (1,)}", "neither True nor False"},
	        {"{'descr': '<f8', 'fortran_order': True, 'shape': (1,1)}", "ascontiguousarray"},
	        {"{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}", "not a tuple of numbers"},
	        {"{'descr': '<f8', 'fortran_order': False, 'shape': 1}", "not a tuple"},
	        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1 1)}", "not a tuple of numbers"},
	        {"{'descr': '<f8', 'fortran_order': False, 'shape': (2,)}", "16 bytes, but 8 follow"},
	        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "4 bytes, but 8 follow"},
	        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "more than 8 axes"},
	        {"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}", "impossible shape"},
	        {"{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", "impossible shape"},
	        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846976,)}", "t.npy"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		sl_tensor *t = LOAD_NPY(cases[i].header, 0);
		CHECK_SAYING(!t && sl_error() != SL_OK && strstr(sl_error_message(), cases[i].says), "%s: says \"%s\"",
		             cases[i].header, sl_error_message());
		sl_error_clear();
	}
}

static void test_npy_cut(void)
{
	unsigned char file[1024];
	char path[PATH_MAX];
	size_t n = make_npy(file, "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}", "12345678", 8);
	slp_scratch_path("t.npy", path);
	for (size_t i = 0; i < n; i++) {
		slp_write_scratch("t.npy", file, i);
		CHECK_NULL(sl_load_npy(path), SL_EFORMAT, "t.npy: ");
	}
	file[6] = 4;
	slp_write_scratch("t.npy", file, n);
	CHECK_NULL(sl_load_npy(path), SL_EUNSUPPORTED, "version 4.0");
	file[0] = 'x';
	slp_write_scratch("t.npy", file, n);
	CHECK_NULL(sl_load_npy(path), SL_EFORMAT, "does not begin like");
	remove(path);
	CHECK_NULL(sl_load_npy(path), SL_EIO, "cannot be opened");
	CHECK_NULL(sl_load_npy("/tmp"), SL_EIO, "regular file");
	if (mkfifo(path, 0600) == 0) CHECK_NULL(sl_load_npy(path), SL_EIO, "regular file"); /* nobody writes to it */
	remove(path);
	CHECK_NULL(sl_load_npy(NULL), SL_EINVAL, "path is NULL");
	CHECK_STATUS(sl_save_npy(NULL, "/nowhere/x.npy"), SL_EINVAL);
	sl_error_clear();
	SL_SCOPE
		CHECK_STATUS(sl_save_npy(sl_zeros(SL_SHAPE(2)), "/nowhere/x.npy"), SL_EIO, "/nowhere/x.npy");
	sl_error_clear();
}

/* ---- lists of arrays --------------------------------------------------------------------------------------------- */

struct list {
	char **names;
	sl_tensor **tensors;
	int count;
};

static struct list load(const char *path)
{
	struct list l;
	l.count = slp_arrays_load(SL_HERE, path, &l.names, &l.tensors);
	return l;
}

static void drop(struct list *l)
{
	if (l->count >= 0) slp_arrays_free(l->names, l->tensors, l->count);
}

static sl_tensor *find(const struct list *l, const char *name)
{
	for (int i = 0; i < l->count; i++)
		if (!strcmp(l->names[i], name)) return l->tensors[i];
	return NULL;
}

static void test_mxnet_types(void)
{
	char path[PATH_MAX];
	struct list l = load(slp_data_path("types.params", path));
	if (!CHECK_SAYING(l.count == 7, "%s", sl_error_message())) return;
	CHECK_VALUES(find(&l, "f32"), 1.5, -2);
	CHECK_VALUES(find(&l, "f64"), 1 / 3.0);
	CHECK_VALUES(find(&l, "i32"), 1, -2, 3, 4);
	CHECK_VALUES(find(&l, "u8"), 0, 255);
	CHECK_VALUES(find(&l, "f16"), 0.5, 65504, 5.9604644775390625e-8);
	CHECK_VALUES(find(&l, "i64"), -5, 7);
	CHECK_VALUES(find(&l, "i8"), -128);
	CHECK(sl_tensor_dtype(find(&l, "f64")) == SL_FLOAT64 && sl_tensor_dtype(find(&l, "u8")) == SL_UINT8);
	CHECK(sl_shape_equal(sl_tensor_shape(find(&l, "i32")), SL_SHAPE(2, 2)));
	drop(&l);
}

/* What MXNet wrote is, written again, the same bytes. */
static void test_mxnet_again(void)
{
	char path[PATH_MAX], again[PATH_MAX];
	struct list l = load(slp_data_path("mlp-0000.params", path));
	if (!CHECK_SAYING(l.count == 6, "%s", sl_error_message())) return;
	CHECK(sl_shape_equal(sl_tensor_shape(find(&l, "mlp_dense0_weight")), SL_SHAPE(24, 32)));
	char *names[6];
	for (int i = 0; i < 6; i++) CHECK(asprintf(&names[i], "arg:%s", l.names[i]) > 0);
	slp_scratch_path("again.params", again);
	CHECK_OK(slp_arrays_save(SL_HERE, again, (const char *const *)names, l.tensors, 6));
	CHECK(slp_same_file(path, again));
	for (int i = 0; i < 6; i++) free(names[i]);
	remove(again);
	drop(&l);
}

enum { MANY = 4 * 5 };

/* Tensors of all dtypes and odd shapes, through a file and back. */
static void check_round_trip(const char *ending)
{
	static const sl_shape shapes[] = {
	        {0, {0}}, {1, {3}}, {2, {2, 3}}, {3, {4, 0, 2}}, {8, {1, 2, 1, 2, 1, 2, 1, 1}}};
	char file[32], path[PATH_MAX], text[MANY][32];
	const char *names[MANY];
	sl_tensor *tensors[MANY];
	snprintf(file, sizeof file, "t%s", ending);
	slp_scratch_path(file, path);
	SL_SCOPE {
		for (int i = 0; i < MANY; i++) {
			snprintf(text[i], sizeof text[i], "näme.%d \"'", i);
			names[i] = text[i];
			tensors[i] = sl_full(shapes[i / 4], i, .dtype = (enum sl_dtype)(1 + i % (SL_DTYPE_COUNT - 1)));
		}
		CHECK_OK(slp_arrays_save(SL_HERE, path, names, tensors, MANY));
		struct list l = load(path);
		CHECK_SAYING(l.count == MANY, "%s", sl_error_message());
		for (int i = 0; i < MANY && l.count == MANY; i++) {
			sl_tensor *t = find(&l, names[i]);
			CHECK(sl_tensor_dtype(t) == (enum sl_dtype)(1 + i % (SL_DTYPE_COUNT - 1)));
			CHECK(sl_shape_equal(sl_tensor_shape(t), shapes[i / 4]));
			if (t) CHECK_ALL(t, sl_tensor_dtype(t) == SL_BOOL ? i != 0 : i);
		}
		drop(&l);
		CHECK_OK(slp_arrays_save(SL_HERE, path, NULL, NULL, 0));
		l = load(path);
		CHECK(l.count == 0);
		drop(&l);
	}
	remove(path);
}

static void test_round_trips(void)
{
	check_round_trip(".params");
	check_round_trip(".safetensors");
}

/* A file of this name with these bytes is refused, and the message says so. */
static void check_refused(const char *name, const void *data, size_t size, const char *says)
{
	char path[PATH_MAX];
	slp_write_scratch(name, data, size);
	struct list l = load(slp_scratch_path(name, path));
	CHECK_SAYING(l.count == -1 && sl_error() != SL_OK, "accepted, where it should say \"%s\"", says);
	CHECK_SAYING(strstr(sl_error_message(), name) && strstr(sl_error_message(), says), "not \"%s\": %s", says,
	             sl_error_message());
	sl_error_clear();
	drop(&l);
	remove(path);
}

/* Bytes of a list of two float32 arrays, "a" of shape (2) and "b" of shape (1, 1). */
static size_t sample_list(unsigned char data[512])
{
	char path[PATH_MAX];
	size_t size = 0;
	SL_SCOPE {
		sl_tensor *tensors[] = {sl_ones(SL_SHAPE(2)), sl_ones(SL_SHAPE(1, 1))};
		CHECK_OK(slp_arrays_save(SL_HERE, slp_scratch_path("s.params", path), (const char *[]){"arg:a", "b"},
		                         tensors, 2));
		FILE *f = fopen(path, "rb");
		size = fread(data, 1, 512, f);
		fclose(f);
		remove(path);
	}
	return size;
}

static void test_mxnet_cut(void)
{
	unsigned char data[512];
	size_t size = sample_list(data);
	for (size_t i = 0; i < size; i++) check_refused("x.params", data, i, "x.params: ");
	data[size] = 0;
	check_refused("x.params", data, size + 1, "has 1 bytes after its end");
}

static void test_mxnet_faults(void)
{
	/* One number of a good file is replaced.  The first array begins at 24. */
	static const struct {
		int at, bytes;
		uint64_t value;
		const char *says;
	} cases[] = {
	        {0, 8, 0x113, "begins with 0x113"},
	        {16, 8, UINT64_MAX, "18446744073709551615 arrays"},
	        {16, 8, 1, "names"},
	        {16, 8, 3, "array 2 begins with"},
	        {24, 4, 7, "0x00000007"},
	        {28, 4, 1, "sparse"},
	        {32, 4, 0, "array 0 has no values"},
	        {32, 4, (uint32_t)-1, "array 0 has no values"},
	        {32, 4, 9, "9 axes"},
	        {36, 8, (uint64_t)-2, "impossible shape (-2,)"},
	        {36, 8, INT64_MAX, "impossible shape"},
	        {36, 8, INT64_MAX / 64, "bytes, but"},
	        {36, 8, 100, "400 bytes, but"},
	        {52, 4, 99, "element type 99"},
	};
	unsigned char data[512];
	size_t size = sample_list(data);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		unsigned char broken[512];
		memcpy(broken, data, size);
		memcpy(broken + cases[i].at, &cases[i].value, (size_t)cases[i].bytes);
		check_refused("x.params", broken, size, cases[i].says);
	}
	data[size - 1] = 'a'; /* the second name */
	check_refused("x.params", data, size, "has the name \"a\" twice");
	data[size - 1] = '\0';
	check_refused("x.params", data, size, "impossible name");
	data[size - 9] = 200; /* its length */
	check_refused("x.params", data, size, "within the names");
	check_refused("x.txt", data, size, "named *.params or *.safetensors");
}

static void check_safetensors_refused(const char *header, const char *says)
{
	unsigned char file[1024] = {0};
	uint64_t n = strlen(header);
	memcpy(file, &n, 8);
	memcpy(file + 8, header, n);
	check_refused("x.safetensors", file, 8 + n + 8, says);
}

static void test_safetensors_faults(void)
{
#define TENSOR(name, dtype, shape, begin, end)                                                                         \
	"\"" name "\": {\"dtype\": \"" dtype "\", \"shape\": " shape ", \"data_offsets\": [" begin ", " end "]}"
	static const struct {
		const char *header, *says;
	} cases[] = {
	        {"[]", "not a JSON object"},
	        {"{", "not JSON"},
	        {"{}", "8 bytes after"},
	        {"{\"a\": 1}", "\"a\": has no dtype"},
	        {"{" TENSOR("a", "F33", "[2]", "0", "8") "}", "unknown dtype"},
	        {"{" TENSOR("a", "F32", "2", "0", "8") "}", "no shape"},
	        {"{" TENSOR("a", "F32", "[1,1,1,1,1,1,1,1,2]", "0", "8") "}", "more than 8"},
	        {"{" TENSOR("a", "F32", "[2.0]", "0", "8") "}", "not a list of numbers"},
	        {"{" TENSOR("a", "F32", "[-2]", "0", "8") "}", "impossible shape"},
	        {"{" TENSOR("a", "F32", "[4611686018427387904, 4]", "0", "8") "}", "impossible shape"},
	        {"{" TENSOR("a", "F32", "[3]", "0", "8") "}", "do not fit its shape"},
	        {"{" TENSOR("a", "F32", "[2]", "0", "9") "}", "outside"},
	        {"{" TENSOR("a", "F32", "[2]", "-8", "0") "}", "outside"},
	        {"{" TENSOR("a", "F32", "[2]", "8", "0") "}", "outside"},
	        {"{" TENSOR("a", "F32", "[1]", "0", "4") "}", "4 bytes after"},
	        {"{" TENSOR("a", "F32", "[1]", "4", "8") "}", "gap"},
	        {"{" TENSOR("a", "F32", "[2]", "0", "8") ", " TENSOR("b", "F32", "[1]", "4", "8") "}", "overlaps"},
	        {"{" TENSOR("a", "F32", "[1]", "0", "4") ", " TENSOR("a", "F32", "[1]", "4", "8") "}", "duplicate"},
	        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [2]}}", "no data_offsets"},
	        {"{" TENSOR("", "F32", "[2]", "0", "8") "}", "impossible name"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		check_safetensors_refused(cases[i].header, cases[i].says);
	check_refused("x.safetensors", "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, "not a safetensors file");
	check_refused("x.safetensors", "\x10\0\0\0\0\0\0\0{}", 10, "within the header");
	check_refused("x.safetensors", "\x10\0\0", 3, "within the length");
}

/* What safetensors' own library writes: metadata, blanks, any order. */
static void test_safetensors_foreign(void)
{
	static const char header[] = "{\"__metadata__\": {\"format\": \"pt\"}, " TENSOR(
	        "b", "BF16", "[2]", "4", "8") ", " TENSOR("a", "F16", "[1, 2]", "0", "4") "}   ";
	unsigned char file[1024];
	char path[PATH_MAX];
	uint64_t n = sizeof header - 1;
	memcpy(file, &n, 8);
	memcpy(file + 8, header, n);
	memcpy(file + 8 + n, "\x00\x3c\x00\xc0\x80\x3f\x00\xc0", 8);
	slp_write_scratch("f.safetensors", file, 8 + n + 8);
	struct list l = load(slp_scratch_path("f.safetensors", path));
	if (CHECK_SAYING(l.count == 2, "%s", sl_error_message())) {
		CHECK_VALUES(find(&l, "a"), 1, -2);
		CHECK_VALUES(find(&l, "b"), 1, -2);
	}
	drop(&l);
	remove(path);
}

/* A failure leaves the old file. */
static void test_failed_save(void)
{
	char path[PATH_MAX];
	SL_SCOPE {
		sl_tensor *t = sl_ones(SL_SHAPE(2)), *both[] = {t, NULL};
		slp_scratch_path("old.params", path);
		CHECK_OK(slp_arrays_save(SL_HERE, path, (const char *[]){"a"}, both, 1));
		CHECK(slp_arrays_save(SL_HERE, path, (const char *[]){"a", "b"}, both, 2) != SL_OK);
		sl_error_clear();
		struct list l = load(path);
		CHECK(l.count == 1);
		drop(&l);
		CHECK_STATUS(slp_arrays_save(SL_HERE, "/nowhere/x.params", (const char *[]){"a"}, both, 1), SL_EIO,
		             "/nowhere/x.params", "cannot be written");
		sl_error_clear();
		CHECK_STATUS(slp_arrays_save(SL_HERE, "x.npz", (const char *[]){"a"}, both, 1), SL_EINVAL, "x.npz");
	}
	sl_error_clear();
	remove(path);
}

/* What a terminal would obey is printed as \xNN, ends of lines too: a name cannot pretend to be another message. */
static void test_control_characters(void)
{
	static const char table[] = "1,2\n\x1b[2J\t,3\n";
	char path[PATH_MAX];
	SL_SCOPE
		CHECK_NULL(LOAD_NPY("{'descr': '<\x1b[2J\n\x7f', 'fortran_order': False, 'shape': (1,)}", 0), SL_EDTYPE,
		           "'<\\x1b[2J\\x0a\\x7f'");
	slp_write_scratch("c.csv", table, sizeof table - 1);
	CHECK_NULL(sl_dataset_csv(slp_scratch_path("c.csv", path)), SL_EFORMAT, "'\\x1b[2J\\x09' is not a number");
	remove(path);
}

/* Sizes that cannot be, also where another axis is 0. */
static void test_npy_sizes(void)
{
	SL_SCOPE {
		CHECK_NULL(LOAD_NPY("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", 0), SL_EFORMAT,
		           "shape");
		CHECK_NULL(LOAD_NPY("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387905, 4)}", 0),
		           SL_EFORMAT, "impossible shape");
		const char *beside_none =
		        "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9223372036854775807, 4)}";
		CHECK_NULL(LOAD_NPY(beside_none, 0), SL_EFORMAT, "impossible shape");
	}
}

static const struct slp_test npy_tests[] = {
        {"files of NumPy", test_npy},
        {"types and shapes", test_npy_types},
        {"conversions", test_npy_conversions},
        {"headers", test_npy_faults},
        {"control characters", test_control_characters},
        {"sizes", test_npy_sizes},
        {"cut", test_npy_cut},
        {NULL, NULL},
};
static const struct slp_test list_tests[] = {
        {"MXNet's types", test_mxnet_types},
        {"MXNet's bytes", test_mxnet_again},
        {"round trips", test_round_trips},
        {"MXNet's, cut", test_mxnet_cut},
        {"MXNet's, broken", test_mxnet_faults},
        {"safetensors, broken", test_safetensors_faults},
        {"safetensors of others", test_safetensors_foreign},
        {"failed saves", test_failed_save},
        {NULL, NULL},
};

int main(int argc, char **argv)
{
	static const struct slp_suite suites[] = {
	        {"npy", npy_tests, slp_start_with_scratch, slp_stop_with_scratch, NULL, NULL},
	        {"lists", list_tests, slp_start_with_scratch, slp_stop_with_scratch, NULL, NULL},
	        {0},
	};
	return slp_test_main(argc, argv, suites);
}
