/* Cases of what goes over axes: reductions, argmax, broadcast_to.  The expected values are PyTorch's, in float64. */
#include <math.h>
#include <starling.h>

#include "common/axis.h"
#include "cases.h"
#include "reduce/reduce_plan.h"

/* clang-format off */
#define LIST(...) {__VA_ARGS__}
#define ALL NULL
#define AXES(...) &(const struct slp_reduce_attrs){{__VA_ARGS__}, SL_COUNT_(int, __VA_ARGS__), false}
#define KEEP(...) &(const struct slp_reduce_attrs){{__VA_ARGS__}, SL_COUNT_(int, __VA_ARGS__), true}
#define AXIS(a) &(const struct slp_axis_attrs){a}
#define TO(...) &(const sl_shape)DIMS(__VA_ARGS__)

#define X12 {SL_FLOAT32, DIMS(2, 3, 2), 0, 0, {3, -1, 4, 1, -5, 9, 2, 6, -5, 3, 5, 8}, 12}
#define RANDOM(type, ...) {type, __VA_ARGS__, -3, 3, {0}, 0}
/* clang-format on */

/* Known values.  `ties`: where finite differences would meet them. */
/* clang-format off */
#define KNOWN(op, label, axes, ties, n, values) {op, label, axes, 1, {X12}, 0, ties, SL_OK, values, n}
/* clang-format on */
/* Random ones. */
/* clang-format off */
#define SHAPE(op, label, axes, grad, shape)                                                                            \
	{op, label, axes, 1, {RANDOM(SL_FLOAT32, shape)}, 0, !(grad), SL_OK, {0}, 0}
#define BAD(op, label, axes, status, type, shape)                                                                      \
	{op, label, axes, 1, {RANDOM(type, shape)}, 0, true, status, {0}, 0}
#define GIVEN(op, label, axes, type, shape, n, in, m, ...)                                                          \
	{op, label, axes, 1, {{type, shape, 0, 0, in, n}}, 0, true, SL_OK, __VA_ARGS__, m}
/* clang-format on */

/* Each way through the kernels: rows and columns, long and short, of one part or several, with tails. */
#define WAYS(op)                                                                                                       \
	SHAPE(op, "one element", ALL, true, DIMS(1)), SHAPE(op, "all of three axes", ALL, true, DIMS(3, 2, 4)),        \
	        SHAPE(op, "axis of size 1", AXES(1), true, DIMS(5, 1, 3)),                                             \
	        SHAPE(op, "bias gradient", AXES(0), false, DIMS(256, 10)),                                             \
	        SHAPE(op, "channels", AXES(0, 2, 3), false, DIMS(16, 5, 7, 7)),                                        \
	        SHAPE(op, "channels kept", KEEP(0, -1, -2), true, DIMS(2, 3, 2, 2)),                                   \
	        SHAPE(op, "middle", AXES(1), false, DIMS(9, 1000, 3)),                                                 \
	        SHAPE(op, "short rows", AXES(1), false, DIMS(5001, 10)),                                               \
	        SHAPE(op, "long rows", AXES(1), false, DIMS(3, 40001)),                                                \
	        SHAPE(op, "wide columns", AXES(0), false, DIMS(130, 2500)),                                            \
	        SHAPE(op, "high columns", AXES(0), false, DIMS(40003, 3)),                                             \
	        SHAPE(op, "in turn", AXES(1, 3, 5), false, DIMS(2, 5, 3, 4, 2, 6)),                                    \
	        SHAPE(op, "in turn from the first", AXES(0, 2, 4), false, DIMS(3, 2, 5, 3, 4, 2)),                     \
	        SHAPE(op, "large", ALL, false, DIMS(300001)), SHAPE(op, "no outputs", AXES(1), true, DIMS(0, 3)),      \
	        BAD(op, "no such axis", AXES(2), SL_EINVAL, SL_FLOAT32, DIMS(2, 3)),                                   \
	        BAD(op, "no such negative axis", AXES(-3), SL_EINVAL, SL_FLOAT32, DIMS(2, 3)),                         \
	        BAD(op, "axis given twice", AXES(1, -1), SL_EINVAL, SL_FLOAT32, DIMS(2, 3))

#define INTEGERS(op, a, b, c)                                                                                           \
	GIVEN(op, "int32", AXES(1), SL_INT32, DIMS(2, 3), 6, LIST(4, -7, 2, 0, 9, 1), 2, a),                            \
	        GIVEN(op, "int64", AXES(1), SL_INT64, DIMS(2, 3), 6, LIST(4, -7, 2, 0, 9, 1), 2, a),                    \
	        {op, "int64, in turn", AXES(0, 2), 1, {{SL_INT64, DIMS(4, 30, 7), -9, 9, {0}, 0}}, 0, true, SL_OK, {0}, \
	         0},                                                                                                    \
	        {op, "int64, columns", AXES(0), 1, {{SL_INT64, DIMS(300, 5), -9, 9, {0}, 0}}, 0, true, SL_OK, {0}, 0},  \
	        GIVEN(op, "uint8", AXES(0), SL_UINT8, DIMS(2, 3), 6, LIST(4, 200, 2, 0, 99, 255), 3, b),                \
	        {op,   "many integers", AXES(0, 2), 1, {{SL_INT32, DIMS(40, 30, 7), -9, 9, {0}, 0}}, 0,                 \
	         true, SL_OK,           {0},        0},                                                                 \
	        GIVEN(op, "NaN", AXES(1), SL_FLOAT32, DIMS(2, 2), 4, LIST(NAN, 1, 2, NAN), 2, LIST(NAN, NAN)),          \
	        GIVEN(op, "infinite", AXES(1), SL_FLOAT32, DIMS(2, 2), 4, LIST(INFINITY, 1, -INFINITY, 2), 2, c)

/* Near 1, that products of many can be held. */
/* clang-format off */
#define FACTORS(label, axes, shape)                                                                                    \
	{"prod", label, axes, 1, {{SL_FLOAT32, shape, 0.9995, 1.0005, {0}, 0}}, 0, true, SL_OK, {0}, 0}
/* clang-format on */
/* Rows with one that is not 0, none, nothing else; NaN is not 0. */
/* clang-format off */
#define TRUTHS(op, rows, whole)                                                                                        \
	GIVEN(op, "rows", AXES(1), SL_FLOAT32, DIMS(3, 2), 6, LIST(0, -2, 0, 0, NAN, 0.5), 3, rows),                   \
		GIVEN(op, "integers", AXES(1), SL_INT32, DIMS(3, 2), 6, LIST(0, -2, 0, 0, 7, 1), 3, rows),             \
		GIVEN(op, "int64", AXES(1), SL_INT64, DIMS(3, 2), 6, LIST(0, -2, 0, 0, 7, 1), 3, rows),                \
		GIVEN(op, "bools", AXES(1), SL_BOOL, DIMS(3, 2), 6, LIST(0, 1, 0, 0, 1, 1), 3, rows),                  \
		GIVEN(op, "large", ALL, SL_FLOAT32, DIMS(300, 1000), 3, LIST(0, 0, 3), 1, whole),                      \
		GIVEN(op, "columns", AXES(0), SL_UINT8, DIMS(2, 3), 6, LIST(0, 1, 1, 0, 1, 0), 1,                      \
		      LIST(0)),                                                                                        \
		BAD(op, "no such axis", AXES(2), SL_EINVAL, SL_FLOAT32, DIMS(2, 3))
/* clang-format on */

/* clang-format off */
const struct slp_case slp_cases_reduce[] = {
	KNOWN("sum", "all", ALL, false, 1, LIST(30)),
	KNOWN("sum", "axis 0", AXES(0), false, 6, LIST(5, 5, -1, 4, 0, 17)),
	KNOWN("sum", "axis 1", AXES(1), false, 4, LIST(2, 9, 2, 17)),
	KNOWN("sum", "last axis", AXES(-1), false, 6, LIST(2, 5, 4, 8, -2, 13)),
	KNOWN("sum", "axes 0, 2", AXES(2, 0), false, 3, LIST(10, 3, 17)),
	KNOWN("sum", "axes 1, 2", KEEP(1, 2), false, 2, LIST(11, 19)),
	INTEGERS("sum", LIST(-1, 10), LIST(4, 255, 255), LIST(INFINITY, -INFINITY)),
	GIVEN("sum", "int64 saturates", ALL, SL_INT64, DIMS(2), 2, LIST(0x1p63, 1), 1, LIST(0x1p63)),
	BAD("sum", "bools", ALL, SL_EDTYPE, SL_BOOL, DIMS(3)),
	GIVEN("sum", "saturates", ALL, SL_INT32, DIMS(2), 2, LIST(2147483647, 1), 1, LIST(2147483647)),
	GIVEN("sum", "of nothing", AXES(1), SL_FLOAT32, DIMS(2, 0), 0, LIST(0), 2, LIST(0, 0)),
	{"sum", "scalar", ALL, 1, {RANDOM(SL_FLOAT32, NO_DIMS)}, 0, false, SL_OK, {0}, 0},
	WAYS("sum"),

	KNOWN("mean", "all", ALL, false, 1, LIST(2.5)),
	KNOWN("mean", "axis 0", AXES(0), false, 6, LIST(2.5, 2.5, -0.5, 2, 0, 8.5)),
	KNOWN("mean", "axis 1", AXES(1), false, 4, LIST(0.666666667, 3, 0.666666667, 5.66666667)),
	KNOWN("mean", "axes 0, 2", KEEP(0, 2), false, 3, LIST(2.5, 0.75, 4.25)),
	GIVEN("mean", "of nothing", AXES(1), SL_FLOAT32, DIMS(2, 0), 0, LIST(0), 2, LIST(NAN, NAN)),
	BAD("mean", "integers", ALL, SL_EDTYPE, SL_INT32, DIMS(3)),
	WAYS("mean"),

	KNOWN("max", "all", ALL, false, 1, LIST(9)),
	KNOWN("max", "axis 1", AXES(1), false, 4, LIST(4, 9, 5, 8)),
	KNOWN("max", "last axis", AXES(2), false, 6, LIST(3, 4, 9, 6, 3, 8)),
	KNOWN("max", "axes 0, 2", KEEP(0, 2), false, 3, LIST(6, 4, 9)),
	INTEGERS("max", LIST(4, 9), LIST(4, 200, 255), LIST(INFINITY, 2)),
	BAD("max", "of nothing", AXES(1), SL_ESHAPE, SL_FLOAT32, DIMS(2, 0)),
	WAYS("max"),

	KNOWN("min", "all", ALL, true, 1, LIST(-5)),
	KNOWN("min", "axis 1", AXES(1), false, 4, LIST(-5, -1, -5, 3)),
	KNOWN("min", "last axis", AXES(2), false, 6, LIST(-1, 1, -5, 2, -5, 5)),
	KNOWN("min", "axes 0, 2", KEEP(0, 2), false, 3, LIST(-1, -5, -5)),
	INTEGERS("min", LIST(-7, 0), LIST(0, 99, 2), LIST(1, -INFINITY)),
	BAD("min", "of nothing", ALL, SL_ESHAPE, SL_FLOAT32, DIMS(0)),
	WAYS("min"),

	KNOWN("norm", "all", ALL, false, 1, LIST(17.2046505)),
	KNOWN("norm", "axis 0", AXES(0), false, 6, LIST(3.60555128, 6.08276253, 6.40312424, 3.16227766, 7.07106781, 12.0415946)),
	KNOWN("norm", "axes 0, 2", KEEP(0, 2), false, 3, LIST(7.07106781, 7.14142843, 13.96424)),
	GIVEN("norm", "large numbers", ALL, SL_FLOAT32, DIMS(2), 2, LIST(3e30, 4e30), 1, LIST(5e30)),
	GIVEN("norm", "zeros", ALL, SL_FLOAT32, DIMS(3), 3, LIST(0, 0, 0), 1, LIST(0)),
	BAD("norm", "integers", ALL, SL_EDTYPE, SL_INT32, DIMS(3)),
	WAYS("norm"),

	KNOWN("prod", "all", ALL, false, 1, LIST(-3888000)),
	KNOWN("prod", "axis 1", AXES(1), false, 4, LIST(-60, -9, -50, 144)),
	KNOWN("prod", "last axis", AXES(-1), false, 6, LIST(-3, 4, -45, 12, -15, 40)),
	KNOWN("prod", "axes 0, 2", KEEP(0, 2), false, 3, LIST(-36, -60, -1800)),
	{"prod", "zeros", AXES(1), 1, {{SL_FLOAT32, DIMS(3, 3), 0, 0, {2, 0, 3, 0, 5, 0, 2, 3, 4}, 9}}, 0, false, SL_OK,
	 {0, 0, 24}, 3},
	INTEGERS("prod", LIST(-56, 0), LIST(0, 255, 255), LIST(INFINITY, -INFINITY)),
	FACTORS("rows", AXES(1), DIMS(301, 40)), FACTORS("short rows", AXES(1), DIMS(5001, 10)),
	FACTORS("long rows", AXES(1), DIMS(3, 40001)), FACTORS("columns", AXES(0), DIMS(130, 2500)),
	FACTORS("in turn", AXES(1, 3, 5), DIMS(2, 5, 3, 4, 2, 6)), FACTORS("large", ALL, DIMS(300001)),
	GIVEN("prod", "of nothing", AXES(1), SL_FLOAT32, DIMS(2, 0), 0, LIST(0), 2, LIST(1, 1)),

	TRUTHS("any", LIST(1, 0, 1), LIST(1)), TRUTHS("all", LIST(0, 0, 1), LIST(0)),
	GIVEN("any", "of nothing", AXES(1), SL_FLOAT32, DIMS(2, 0), 0, LIST(0), 2, LIST(0, 0)),
	GIVEN("all", "of nothing", AXES(1), SL_FLOAT32, DIMS(2, 0), 0, LIST(0), 2, LIST(1, 1)),

	KNOWN("argmax", "axis 0", AXIS(0), true, 6, LIST(0, 1, 0, 1, 1, 0)),
	KNOWN("argmax", "axis 1", AXIS(1), true, 4, LIST(1, 2, 2, 2)),
	KNOWN("argmax", "last axis", AXIS(-1), true, 6, LIST(0, 0, 1, 1, 1, 1)),
	GIVEN("argmax", "first of several", AXIS(0), SL_FLOAT32, DIMS(5), 5, LIST(1, 7, 2, 7, 7), 1, LIST(1)),
	GIVEN("argmax", "first NaN", AXIS(1), SL_FLOAT32, DIMS(2, 4), 8, LIST(1, NAN, 7, NAN, 1, INFINITY, 0, NAN), 2, LIST(1, 3)),
	GIVEN("argmax", "int32", AXIS(1), SL_INT32, DIMS(2, 3), 6, LIST(-4, -7, -2, 5, 5, 1), 2, LIST(2, 0)),
	GIVEN("argmax", "int64", AXIS(1), SL_INT64, DIMS(2, 3), 6, LIST(-4, -7, -2, 5, 5, 1), 2, LIST(2, 0)),
	GIVEN("argmax", "uint8", AXIS(0), SL_UINT8, DIMS(3, 1), 3, LIST(4, 255, 2), 1, LIST(1)),
	SHAPE("argmax", "scores", AXIS(1), false, DIMS(5001, 10)),
	SHAPE("argmax", "long rows", AXIS(1), false, DIMS(3, 40001)),
	SHAPE("argmax", "columns", AXIS(1), false, DIMS(3, 21, 1003)),
	{"argmax", "many ties", AXIS(1), 1, {{SL_UINT8, DIMS(50, 130), 0, 3, {0}, 0}}, 0, true, SL_OK, {0}, 0},
	SHAPE("argmax", "no outputs", AXIS(1), false, DIMS(0, 3)),
	BAD("argmax", "of nothing", AXIS(1), SL_ESHAPE, SL_FLOAT32, DIMS(2, 0)),
	BAD("argmax", "no such axis", AXIS(1), SL_EINVAL, SL_FLOAT32, DIMS(2)),
	BAD("argmax", "scalar", AXIS(0), SL_EINVAL, SL_FLOAT32, NO_DIMS),

	{"broadcast_to", "rows", TO(2, 3), 1, {{SL_FLOAT32, DIMS(3), 0, 0, {1, 2, 3}, 3}}, 0, false, SL_OK, {1, 2, 3, 1, 2, 3}, 6},
	{"broadcast_to", "columns", TO(2, 3), 1, {{SL_FLOAT32, DIMS(2, 1), 0, 0, {1, 2}, 2}}, 0, false, SL_OK, {1, 1, 1, 2, 2, 2}, 6},
	{"broadcast_to", "inside", TO(2, 2, 2), 1, {{SL_FLOAT32, DIMS(2, 1, 2), 0, 0, {1, 2, 3, 4}, 4}}, 0, false, SL_OK, {1, 2, 1, 2, 3, 4, 3, 4}, 8},
	{"broadcast_to", "scalar", TO(3), 1, {{SL_FLOAT32, NO_DIMS, 0, 0, {7}, 1}}, 0, false, SL_OK, {7, 7, 7}, 3},
	{"broadcast_to", "to a scalar", &(const sl_shape)NO_DIMS, 1, {{SL_FLOAT32, NO_DIMS, 0, 0, {7}, 1}}, 0, false, SL_OK, {7}, 1},
	{"broadcast_to", "int32", TO(2, 2), 1, {{SL_INT32, DIMS(1, 2), 0, 0, {-7, 9}, 2}}, 0, true, SL_OK, {-7, 9, -7, 9}, 4},
	{"broadcast_to", "uint8", TO(2, 2), 1, {{SL_UINT8, DIMS(2, 1), 0, 0, {7, 255}, 2}}, 0, true, SL_OK, {7, 7, 255, 255}, 4},
	SHAPE("broadcast_to", "as it is", TO(4, 5), true, DIMS(4, 5)),
	SHAPE("broadcast_to", "new axes of size 1", TO(1, 1, 4), true, DIMS(4)),
	SHAPE("broadcast_to", "bias", TO(5001, 10), false, DIMS(10)),
	SHAPE("broadcast_to", "channels", TO(16, 5, 27, 29), false, DIMS(1, 5, 1, 1)),
	SHAPE("broadcast_to", "large fill", TO(70001), false, DIMS(1)),
	SHAPE("broadcast_to", "in turn", TO(3, 5, 2, 3, 4, 2), false, DIMS(5, 1, 3, 1, 2)),
	SHAPE("broadcast_to", "one to none", TO(0, 3), true, DIMS(1, 3)),
	BAD("broadcast_to", "another size", TO(4), SL_ESHAPE, SL_FLOAT32, DIMS(3)),
	BAD("broadcast_to", "fewer axes", TO(3), SL_ESHAPE, SL_FLOAT32, DIMS(1, 3)),
	BAD("broadcast_to", "back to 1", TO(2, 1), SL_ESHAPE, SL_FLOAT32, DIMS(2, 3)),
	BAD("broadcast_to", "negative size", TO(-2, 3), SL_ESHAPE, SL_FLOAT32, DIMS(3)),
	{0},
};
