/* Cases of what goes along an axis in order: argsort, cumsum, multinomial.  The expected values are PyTorch's. */
#include <math.h>

#include "cases.h"
#include "reduce/argsort.h"
#include "reduce/cumsum.h"

/* clang-format off */
#define LIST(...) {__VA_ARGS__}
#define UP(axis) &(const struct slp_argsort_attrs){axis, false}
#define DOWN(axis) &(const struct slp_argsort_attrs){axis, true}
#define ALONG(a) &(const struct slp_cumsum_attrs){.axis = a}
#define BACK(a) &(const struct slp_cumsum_attrs){.axis = a, .reverse = true}

#define X12 {SL_FLOAT32, DIMS(2, 3, 2), 0, 0, {3, -1, 4, 1, -5, 9, 2, 6, -5, 3, 5, 8}, 12}
/* clang-format on */
/* clang-format off */
#define KNOWN(op, label, attrs, grad, ...) {op, label, attrs, 1, {X12}, 0, !(grad), SL_OK, __VA_ARGS__, 12}
#define GIVEN(op, label, attrs, type, shape, n, in, ...) {op, label, attrs, 1, {{type, shape, 0, 0, in, n}}, 0, true, SL_OK, __VA_ARGS__, n}
#define SHAPE(op, label, attrs, grad, type, shape, low, high) {op, label, attrs, 1, {{type, shape, low, high, {0}, 0}}, 0, !(grad), SL_OK, {0}, 0}
#define BAD(op, attrs, status, type, shape) {op, "refused", attrs, 1, {{type, shape, 0, 1, {0}, 0}}, 0, true, status, {0}, 0}
#define DRAWN(label, inputs, status, ...) {"multinomial", label, NULL, 2, inputs, 0, true, status, __VA_ARGS__}

const struct slp_case slp_cases_order[] = {
	KNOWN("argsort", "axis 0", UP(0), false, {1, 0, 1, 0, 0, 1, 0, 1, 0, 1, 1, 0}),
	KNOWN("argsort", "axis 1", UP(1), false, {2, 0, 0, 1, 1, 2, 1, 1, 0, 0, 2, 2}),
	KNOWN("argsort", "axis 1, descending", DOWN(1), false, {1, 2, 0, 1, 2, 0, 2, 2, 0, 0, 1, 1}),
	KNOWN("argsort", "last axis", UP(-1), false, {1, 0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 1}),
	GIVEN("argsort", "equal ones and NaN", UP(0), SL_FLOAT32, DIMS(7), 7, LIST(1, NAN, 1, -INFINITY, 0, NAN, 1), {3, 4, 0, 2, 6, 1, 5}),
	GIVEN("argsort", "equal ones and NaN, descending", DOWN(0), SL_FLOAT32, DIMS(7), 7, LIST(1, NAN, 1, -INFINITY, 0, NAN, 1), {1, 5, 0, 2, 6, 4, 3}),
	GIVEN("argsort", "int32", UP(0), SL_INT32, DIMS(4), 4, LIST(5, -7, 2147483647, 0), {1, 3, 0, 2}),
	GIVEN("argsort", "int64", UP(0), SL_INT64, DIMS(4), 4, LIST(5, -7, 0x1p62, 0), {1, 3, 0, 2}),
	GIVEN("argsort", "uint8", DOWN(0), SL_UINT8, DIMS(4), 4, LIST(5, 255, 0, 5), {1, 0, 3, 2}),
	SHAPE("argsort", "rows", UP(1), false, SL_FLOAT32, DIMS(70, 131), -3, 3),
	SHAPE("argsort", "columns", DOWN(1), false, SL_FLOAT32, DIMS(3, 57, 41), -3, 3),
	SHAPE("argsort", "many equal", UP(0), false, SL_INT32, DIMS(2000), 0, 5),
	SHAPE("argsort", "long", UP(0), false, SL_FLOAT32, DIMS(3000), -3, 3),
	SHAPE("argsort", "long columns", DOWN(0), false, SL_FLOAT32, DIMS(1000, 3), -1e30, 1e30),
	SHAPE("argsort", "long, float64", DOWN(1), false, SL_FLOAT64, DIMS(2, 1000), -3, 3),
	SHAPE("argsort", "long, int32, descending", DOWN(0), false, SL_INT32, DIMS(1000), -3, 300000),
	SHAPE("argsort", "long, int64", UP(0), false, SL_INT64, DIMS(1000, 2), -70000, 70000),
	SHAPE("argsort", "long, uint8", UP(0), false, SL_UINT8, DIMS(1000), 0, 255),
	SHAPE("argsort", "one element", UP(1), false, SL_FLOAT32, DIMS(3, 1), -3, 3),
	SHAPE("argsort", "nothing", UP(1), false, SL_FLOAT32, DIMS(3, 0), -3, 3),
	BAD("argsort", UP(1), SL_EINVAL, SL_FLOAT32, DIMS(3)),

	KNOWN("cumsum", "axis 0", ALONG(0), true, {3, -1, 4, 1, -5, 9, 5, 5, -1, 4, 0, 17}),
	KNOWN("cumsum", "axis 1", ALONG(1), true, {3, -1, 7, 0, 2, 9, 2, 6, -3, 9, 2, 17}),
	KNOWN("cumsum", "last axis, from its end", BACK(-1), true, {2, -1, 5, 1, 4, 9, 8, 6, -2, 3, 13, 8}),
	GIVEN("cumsum", "infinite", ALONG(0), SL_FLOAT32, DIMS(4), 4, LIST(1, INFINITY, 2, -INFINITY), {1, INFINITY, INFINITY, NAN}),
	GIVEN("cumsum", "int32", ALONG(0), SL_INT32, DIMS(4), 4, LIST(2147483647, 1, -2, 5), {2147483647, 2147483647, 2147483646, 2147483647}),
	GIVEN("cumsum", "int64", ALONG(0), SL_INT64, DIMS(4), 4, LIST(0x1p62, 0x1p62, 0x1p62, -5), {0x1p62, 0x1p63, 0x1p63, 0x1p63}),
	GIVEN("cumsum", "int64, modulo 2^64", (&(const struct slp_cumsum_attrs){.axis = 0, .wraps = true}), SL_INT64, DIMS(4), 4, LIST(0x1p62, 0x1p62, 0x1p62, -5), {0x1p62, -0x1p63, -0x1p62, -0x1p62 - 5}),
	GIVEN("cumsum", "uint8", ALONG(0), SL_UINT8, DIMS(4), 4, LIST(200, 50, 6, 1), {200, 250, 255, 255}),
	SHAPE("cumsum", "rows", ALONG(1), false, SL_FLOAT32, DIMS(70, 1311), -3, 3),
	SHAPE("cumsum", "columns", BACK(1), false, SL_FLOAT32, DIMS(3, 570, 141), -3, 3),
	SHAPE("cumsum", "a line", BACK(0), false, SL_FLOAT32, DIMS(9001), -3, 3),
	SHAPE("cumsum", "lines, float64", ALONG(1), false, SL_FLOAT64, DIMS(2, 4000), -3, 3),
	SHAPE("cumsum", "lines side by side, int64", ALONG(0), false, SL_INT64, DIMS(1700, 3), -0x1p53, 0x1p53),
	SHAPE("cumsum", "lines that saturate, int32", BACK(1), false, SL_INT32, DIMS(3, 700, 2), -1000, 0x7fffffff),
	SHAPE("cumsum", "nothing", ALONG(1), true, SL_FLOAT32, DIMS(3, 0), -3, 3),
	BAD("cumsum", ALONG(1), SL_EINVAL, SL_FLOAT32, DIMS(3)),

	DRAWN("known values", LIST({SL_FLOAT32, DIMS(2, 4), 0, 0, {0, 2, 3, 4, 0, 0, 0.5, 0.5}, 8}, {SL_FLOAT32, DIMS(2, 3), 0, 0, {0, 0.5, 0.75, 0, 0.5, 0.999}, 6}), SL_OK, {1, 2, 3, 2, 2, 2}, 6),
	DRAWN("one class", LIST({SL_FLOAT32, DIMS(500, 1), 1, 1, {0}, 0}, {SL_FLOAT32, DIMS(500, 7), 0, 1, {0}, 0}), SL_OK, {0}, 0),
	DRAWN("many classes", LIST({SL_FLOAT32, DIMS(3, 70001), 2, 2, {0}, 0}, {SL_FLOAT32, DIMS(3, 5), 0, 1, {0}, 0}), SL_OK, {0}, 0),
	DRAWN("nothing", LIST({SL_FLOAT32, DIMS(3, 4), 1, 1, {0}, 0}, {SL_FLOAT32, DIMS(3, 0), 0, 1, {0}, 0}), SL_OK, {0}, 0),
	DRAWN("no class", LIST({SL_FLOAT32, DIMS(3, 0), 1, 1, {0}, 0}, {SL_FLOAT32, DIMS(3, 2), 0, 1, {0}, 0}), SL_ESHAPE, {0}, 0),
	DRAWN("other rows", LIST({SL_FLOAT32, DIMS(3, 4), 1, 1, {0}, 0}, {SL_FLOAT32, DIMS(2, 4), 0, 1, {0}, 0}), SL_ESHAPE, {0}, 0),
	DRAWN("integers", LIST({SL_INT32, DIMS(3), 1, 1, {0}, 0}, {SL_INT32, DIMS(2), 0, 1, {0}, 0}), SL_EDTYPE, {0}, 0),
	{0},
};
