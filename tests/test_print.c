/* The printed form of tensors, letter by letter: as NumPy's, with type, shape and device in a last line. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static void check_print(sl_tensor *t, int line, const char *expected)
{
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);
	enum sl_status s = sl_fprint(file, t);
	fclose(file);
	slp_check(s == SL_OK, __FILE__, line, "%s", sl_error_message());
	slp_check(!strcmp(text, expected), __FILE__, line, "printed\n%s\ninstead of\n%s\n", text, expected);
	free(text);
}

/* Elements of a type, under a shape. */
#define CHECK_PRINT(symbol, type, shape, text, ...)                                                                    \
	SL_SCOPE                                                                                                       \
	check_print(sl_from(((type[]){__VA_ARGS__}), shape, .dtype = symbol), __LINE__, text)
#define CHECK_FLOATS(shape, text, ...) CHECK_PRINT(SL_FLOAT32, float, shape, text, __VA_ARGS__)

static void test_floats(void)
{
	CHECK_FLOATS(SL_SHAPE(2, 3), "[[1 2 3]\n [4 5 6]]\n<float32 (2, 3) @auto>\n", 1, 2, 3, 4, 5, 6);
	CHECK_FLOATS(SL_SHAPE(3), "[0.50 1.00 2.25]\n<float32 (3,) @auto>\n", 0.5f, 1, 2.25f);
	CHECK_FLOATS(SL_SHAPE(3), "[ -1.5  10.0 100.0]\n<float32 (3,) @auto>\n", -1.5f, 10, 100);
	CHECK_FLOATS(SL_SHAPE(2), "[0.3333 0.6667]\n<float32 (2,) @auto>\n", 1 / 3.f, 2 / 3.f);
	CHECK_FLOATS(SL_SHAPE(2), "[0.1 0.2]\n<float32 (2,) @auto>\n", 0.1f, 0.2f); /* not 0.10000000149 */
	CHECK_FLOATS(SL_SHAPE(1), "[10000000]\n<float32 (1,) @auto>\n", 1e7f);
	CHECK_FLOATS(SL_SHAPE(2, 1), "[[1]\n [2]]\n<float32 (2, 1) @auto>\n", 1, 2);
	CHECK_PRINT(SL_FLOAT64, double, SL_SHAPE(1), "[0.125]\n<float64 (1,) @auto>\n", 0.125);
}

static void test_special(void)
{
	CHECK_FLOATS(SL_SHAPE(4), "[ nan  inf -inf    1]\n<float32 (4,) @auto>\n", NAN, INFINITY, -INFINITY, 1);
	CHECK_FLOATS(SL_SHAPE(2), "[ nan 0.25]\n<float32 (2,) @auto>\n", -NAN, 0.25f);
	CHECK_FLOATS(SL_SHAPE(1), "[nan]\n<float32 (1,) @auto>\n", NAN);
}

static void test_scientific(void)
{
	CHECK_FLOATS(SL_SHAPE(2), "[1.0000e-05 1.0000e+00]\n<float32 (2,) @auto>\n", 1e-5f, 1);
	CHECK_FLOATS(SL_SHAPE(3), "[ 1.5000e+10 -2.0000e+00         nan]\n<float32 (3,) @auto>\n", 1.5e10f, -2, NAN);
	CHECK_FLOATS(SL_SHAPE(2), "[0.0000e+00 1.4013e-45]\n<float32 (2,) @auto>\n", 0, 1e-45f);
	CHECK_PRINT(SL_FLOAT64, double, SL_SHAPE(1), "[1.0000e+308]\n<float64 (1,) @auto>\n", 1e308);
}

static void test_integers(void)
{
	CHECK_PRINT(SL_INT32, int32_t, SL_SHAPE(3), "[  1 -20 300]\n<int32 (3,) @auto>\n", 1, -20, 300);
	CHECK_PRINT(SL_INT64, int64_t, SL_SHAPE(2), "[    9007199254740993 -9223372036854775808]\n<int64 (2,) @auto>\n",
	            (1LL << 53) + 1, INT64_MIN);
	CHECK_PRINT(SL_INT32, int32_t, SL_SHAPE(2), "[-2147483648  2147483647]\n<int32 (2,) @auto>\n", INT32_MIN,
	            INT32_MAX);
	CHECK_PRINT(SL_UINT8, uint8_t, SL_SHAPE(2, 2), "[[  0 255]\n [  7   9]]\n<uint8 (2, 2) @auto>\n", 0, 255, 7, 9);
}

static void test_shapes(void)
{
	CHECK_FLOATS(SL_SCALAR, "3.5\n<float32 () @auto>\n", 3.5f);
	CHECK_FLOATS(SL_SHAPE(1, 1, 1), "[[[7]]]\n<float32 (1, 1, 1) @auto>\n", 7);
	CHECK_FLOATS(SL_SHAPE(2, 2, 2), "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]\n<float32 (2, 2, 2) @auto>\n", 0, 1, 2,
	             3, 4, 5, 6, 7);
	SL_SCOPE {
		check_print(sl_from(NULL, SL_SHAPE(0)), __LINE__, "[]\n<float32 (0,) @auto>\n");
		check_print(sl_from(NULL, SL_SHAPE(0, 3)), __LINE__, "[]\n<float32 (0, 3) @auto>\n");
		check_print(sl_from(NULL, SL_SHAPE(2, 0)), __LINE__, "[[]\n []]\n<float32 (2, 0) @auto>\n");
		check_print(sl_ones(SL_SHAPE(1), .device = sl_cpu(0)), __LINE__, "[1]\n<float32 (1,) @cpu:0>\n");
		check_print(sl_rows(sl_from(((float[]){100, 1, 2}), SL_SHAPE(3)), 1, 3), __LINE__,
		            "[1 2]\n<float32 (2,) @auto>\n");
	}
}

static sl_tensor *counting(int n, sl_shape shape)
{
	int32_t *v = malloc((size_t)n * sizeof *v);
	for (int i = 0; i < n; i++) v[i] = i;
	sl_tensor *t = sl_from(v, shape, .dtype = SL_INT32);
	free(v);
	return t;
}

static void test_abbreviated(void)
{
	SL_SCOPE {
		check_print(counting(1001, SL_SHAPE(1001)), __LINE__,
		            "[   0    1    2 ...  998  999 1000]\n<int32 (1001,) @auto>\n");
		check_print(counting(2000, SL_SHAPE(100, 20)), __LINE__,
		            "[[   0    1    2 ...   17   18   19]\n [  20   21   22 ...   37   38   39]\n"
		            " [  40   41   42 ...   57   58   59]\n ...\n [1940 1941 1942 ... 1957 1958 1959]\n"
		            " [1960 1961 1962 ... 1977 1978 1979]\n [1980 1981 1982 ... 1997 1998 1999]]\n"
		            "<int32 (100, 20) @auto>\n");
		check_print(counting(1002, SL_SHAPE(2, 501)), __LINE__,
		            "[[   0    1    2 ...  498  499  500]\n [ 501  502  503 ...  999 1000 1001]]\n<int32 (2, "
		            "501) @auto>\n");
		check_print(
		        counting(1400, SL_SHAPE(200, 1, 7)), __LINE__,
		        "[[[   0    1    2 ...    4    5    6]]\n\n [[   7    8    9 ...   11   12   13]]\n\n"
		        " [[  14   15   16 ...   18   19   20]]\n\n ...\n\n [[1379 1380 1381 ... 1383 1384 1385]]\n\n"
		        " [[1386 1387 1388 ... 1390 1391 1392]]\n\n [[1393 1394 1395 ... 1397 1398 1399]]]\n"
		        "<int32 (200, 1, 7) @auto>\n");
	}
}

/* What is not shown does not count for the columns' width. */
static void test_hidden_do_not_count(void)
{
	SL_SCOPE {
		sl_tensor *t = sl_zeros(SL_SHAPE(2000));
		float big = 1e30f;
		CHECK_OK(sl_write(sl_rows(t, 1000, 1001), &big, sizeof big));
		check_print(t, __LINE__, "[0 0 0 ... 0 0 0]\n<float32 (2000,) @auto>\n");
	}
}

static const struct slp_test tests[] = {
        {"floats", test_floats},
        {"special values", test_special},
        {"scientific", test_scientific},
        {"integers", test_integers},
        {"shapes", test_shapes},
        {"abbreviated", test_abbreviated},
        {"hidden elements", test_hidden_do_not_count},
        {0},
};

int main(int argc, char **argv)
{
	return slp_test_main(
	        argc, argv,
	        (const struct slp_suite[]){
	                {.name = "print", .tests = tests, .start = slp_start_engine, .stop = slp_stop_engine}, {0}});
}
