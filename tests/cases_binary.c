/* Cases of the functions of two tensors, or of a tensor and a number.  The expected values are NumPy's, in float64;
 * those of integers follow from the rule that they are truncated and saturate. */
#include <math.h>

#include "cases.h"
#include "fill/fill.h"

#define LIST(...)                                                                                                      \
	{                                                                                                              \
		__VA_ARGS__                                                                                            \
	}
#define NUMBER(s)                                                                                                      \
	&(const struct slp_value)                                                                                      \
	{                                                                                                              \
		s                                                                                                      \
	}

/* clang-format off */
#define BETWEEN(shape, low, high) {SL_FLOAT32, shape, low, high, {0}, 0}
#define THESE(type, n, ...) {type, DIMS(n), 0, 0, {__VA_ARGS__}, n}
#define A6 {SL_FLOAT32, DIMS(2, 3), 0, 0, {1.5, -2, 0.5, 3, -1, 4}, 6}
#define B6 {SL_FLOAT32, DIMS(2, 3), 0, 0, {2, -1, 3, 0.5, -1, -2}, 6}

/* Known values and NaN, a shape for several threads with a tail, and nothing. */
#define TWO(name, kinks, values, limits)                                                                               \
	{name, "known values", NULL, 2, .in = {A6, B6}, .no_grad = kinks, .expect = values, .nexpect = 6},             \
	{name, "no numbers", NULL, 2,                                                                                  \
	 .in = {THESE(SL_FLOAT32, 5, NAN, 1, NAN, INFINITY, 0), THESE(SL_FLOAT32, 5, 1, NAN, NAN, -INFINITY, 0)},      \
	 .no_grad = true, .expect = limits, .nexpect = 5},                                                             \
	{name, "large", NULL, 2, .in = {BETWEEN(DIMS(70001), 0.5, 2), BETWEEN(DIMS(70001), -2, 2)}, .no_grad = true},  \
	{name, "empty", NULL, 2, .in = {BETWEEN(DIMS(0, 3), 1, 2), BETWEEN(DIMS(3), 1, 2)}, .no_grad = true},          \
	{name, "data types differ", NULL, 2, .in = {BETWEEN(DIMS(3), 1, 2), {SL_INT32, DIMS(3), 1, 2, {0}, 0}},        \
	 .reject = SL_EDTYPE},                                                                                         \
	{name, "shapes differ", NULL, 2, .in = {BETWEEN(DIMS(2, 3), 1, 2), BETWEEN(DIMS(2), 1, 2)},                    \
	 .reject = SL_ESHAPE}
#define MANY_EQUAL(name)                                                                                               \
	{name, "many equal", NULL, 2, .in = {{SL_INT32, DIMS(7, 9), 1, 4, {0}, 0}, {SL_INT32, DIMS(7, 9), 1,           \
	 4, {0}, 0}},                                                                                                  \
	 .no_grad = true}
#define NO_INTEGERS(name)                                                                                              \
	{name, "integers", NULL, 2, .in = {THESE(SL_INT32, 2, 7, 8), THESE(SL_INT32, 2, 2, 3)}, .reject = SL_EDTYPE}
/* Elements between these numbers, whose quotients have one whole part. */
#define QUOTIENTS(name, low, high)                                                                                     \
	{name, "quotients", NULL, 2, .in = {BETWEEN(DIMS(5, 7), low, high), BETWEEN(DIMS(7), 2.1, 2.5)}}

/* All ways to broadcast; a and b do not overlap, so that no finite difference meets a kink. */
#define ROW(name) {name, "row", NULL, 2, .in = {BETWEEN(DIMS(7, 10), 1, 2), BETWEEN(DIMS(10), 2.5, 3)}}
#define CHANNEL(name)                                                                                                  \
	{name, "channel", NULL, 2, .in = {BETWEEN(DIMS(2, 3, 2, 5), 2, 3), BETWEEN(DIMS(1, 3, 1, 1), 0.5, 1)}}
#define OUTER(name) {name, "column and row", NULL, 2, .in = {BETWEEN(DIMS(4, 1), 1, 2), BETWEEN(DIMS(1, 5), 2.5, 3)}}
#define PAIR(name, label, grad, a, b)                                                                                  \
	{name, label, NULL, 2, .in = {{SL_FLOAT32, a, 1, 2, {0}, 0}, {SL_FLOAT32, b, 2.5, 3, {0}, 0}},                 \
	 .no_grad = !(grad)}

/* Neither is 0, one is, both are. */
#define TRUTHS(name, values)                                                                                           \
	{name, "zeros", NULL, 2, .in = {THESE(SL_FLOAT32, 4, 0, 0, -2, 0.5), THESE(SL_FLOAT32, 4, 0, 5, 0, 7)},        \
	 .no_grad = true, .expect = values, .nexpect = 4},                                                             \
	{name, "integers and zeros", NULL, 2, .in = {THESE(SL_INT32, 4, 0, 0, -2, 1), THESE(SL_INT32, 4, 0, 5, 0, 7)}, \
	 .no_grad = true, .expect = values, .nexpect = 4}

/* With a number: known values of A6, and a shape for several threads. */
#define ONE(name, s, kinks, values)                                                                                    \
	{name, "known values", NUMBER(s), 1, .in = {A6}, .no_grad = kinks, .expect = values, .nexpect = 6},            \
	{name, "large", NUMBER(s), 1, .in = {BETWEEN(DIMS(3, 33335), 0.5, 2)}, .no_grad = true},                       \
	{name, "scalar", NUMBER(s), 1, .in = {BETWEEN(NO_DIMS, 0.6, 0.9)}},                                            \
	{name, "empty", NUMBER(s), 1, .in = {BETWEEN(DIMS(0), 0.5, 2)}, .no_grad = true}
#define INTEGERS(name, type, a, b, values)                                                                             \
	{name, "integers", NULL, 2, .in = {THESE(type, 4, a), THESE(type, 4, b)}, .no_grad = true, .expect = values,   \
	 .nexpect = 4}
#define INTEGERS_ONE(name, s, type, a, values)                                                                         \
	{name, "integers", NUMBER(s), 1, .in = {THESE(type, 4, a)}, .no_grad = true, .expect = values, .nexpect = 4}
#define FOUR(a, b, c, d) a, b, c, d
/* Numbers that integers of these types cannot be. */
#define NO_INTEGER(name)                                                                                               \
	{name, "a fraction", NUMBER(2.9), 1, .in = {THESE(SL_INT32, 2, 1, 2)}, .reject = SL_EDTYPE},                   \
	{name, "too large", NUMBER(2147483648.0), 1, .in = {THESE(SL_INT32, 2, 1, 2)}, .reject = SL_EDTYPE},           \
	{name, "negative", NUMBER(-1), 1, .in = {THESE(SL_UINT8, 2, 1, 2)}, .reject = SL_EDTYPE},                      \
	{name, "no number", NUMBER(NAN), 1, .in = {THESE(SL_INT32, 2, 1, 2)}, .reject = SL_EDTYPE}

const struct slp_case slp_cases_binary[] = {
	TWO("add", false, LIST(3.5, -3, 3.5, 3.5, -2, 2), LIST(NAN, NAN, NAN, NAN, 0)),
	TWO("sub", false, LIST(-0.5, -1, -2.5, 2.5, 0, 6), LIST(NAN, NAN, NAN, INFINITY, 0)),
	TWO("mul", false, LIST(3, 2, 1.5, 1.5, 1, -8), LIST(NAN, NAN, NAN, -INFINITY, 0)),
	TWO("div", false, LIST(0.75, 2, 0.166666667, 6, 1, -2), LIST(NAN, NAN, NAN, NAN, NAN)),
	TWO("pow", true, LIST(2.25, -0.5, 0.125, 1.73205081, -1, 0.0625), LIST(NAN, 1, NAN, 0, 1)),
	TWO("maximum", true, LIST(2, -1, 3, 3, -1, 4), LIST(NAN, NAN, NAN, INFINITY, 0)),
	TWO("minimum", true, LIST(1.5, -2, 0.5, 0.5, -1, -2), LIST(NAN, NAN, NAN, -INFINITY, 0)),
	TWO("eq", true, LIST(0, 0, 0, 0, 1, 0), LIST(0, 0, 0, 0, 1)),
	TWO("ne", true, LIST(1, 1, 1, 1, 0, 1), LIST(1, 1, 1, 1, 0)),
	TWO("lt", true, LIST(1, 1, 1, 0, 0, 0), LIST(0, 0, 0, 0, 0)),
	TWO("le", true, LIST(1, 1, 1, 0, 1, 0), LIST(0, 0, 0, 0, 1)),
	TWO("gt", true, LIST(0, 0, 0, 1, 0, 1), LIST(0, 0, 0, 1, 0)),
	TWO("ge", true, LIST(0, 0, 0, 1, 1, 1), LIST(0, 0, 0, 1, 1)),
	TWO("logical_and", true, LIST(1, 1, 1, 1, 1, 1), LIST(1, 1, 1, 1, 0)),
	TWO("logical_or", true, LIST(1, 1, 1, 1, 1, 1), LIST(1, 1, 1, 1, 0)),
	TWO("logical_xor", true, LIST(0, 0, 0, 0, 0, 0), LIST(0, 0, 0, 0, 0)),
	TWO("take_if", false, LIST(2, -1, 3, 0.5, -1, -2), LIST(1, NAN, NAN, -INFINITY, 0)),
	TWO("take_unless", false, LIST(0, 0, 0, 0, 0, 0), LIST(0, 0, 0, 0, 0)),
	TWO("atan2", false, LIST(0.643501109, -2.03444394, 0.165148677, 1.40564765, -2.35619449, 2.03444394),
		  LIST(NAN, NAN, NAN, 2.35619449, 0)),
	TWO("fmod", true, LIST(1.5, -0, 0.5, 0, -0, 0), LIST(NAN, NAN, NAN, NAN, NAN)),
	TWO("remainder", true, LIST(1.5, -0, 0.5, 0, -0, -0), LIST(NAN, NAN, NAN, NAN, NAN)),
	TWO("floor_divide", true, LIST(0, 2, 0, 6, 1, -2), LIST(NAN, NAN, NAN, NAN, NAN)),
	TWO("fmax", true, LIST(2, -1, 3, 3, -1, 4), LIST(1, 1, NAN, INFINITY, 0)),
	TWO("fmin", true, LIST(1.5, -2, 0.5, 0.5, -1, -2), LIST(1, 1, NAN, -INFINITY, 0)),
	TWO("copysign", false, LIST(1.5, -2, 0.5, 3, -1, -4), LIST(NAN, 1, NAN, -INFINITY, 0)),
	NO_INTEGERS("atan2"), NO_INTEGERS("fmod"), NO_INTEGERS("remainder"), NO_INTEGERS("floor_divide"),
	NO_INTEGERS("fmax"), NO_INTEGERS("fmin"), NO_INTEGERS("copysign"),
	QUOTIENTS("fmod", 5.1, 5.9), QUOTIENTS("fmod", -5.9, -5.1), QUOTIENTS("remainder", 5.1, 5.9),
	QUOTIENTS("remainder", -5.9, -5.1), QUOTIENTS("floor_divide", -5.9, -5.1),
	ROW("atan2"), CHANNEL("atan2"), OUTER("atan2"), ROW("fmax"), CHANNEL("fmax"), OUTER("fmin"), CHANNEL("fmin"),
	ROW("copysign"), CHANNEL("copysign"), OUTER("fmod"), OUTER("remainder"), ROW("floor_divide"),
	{"fmod", "large quotients", NULL, 2, .in = {THESE(SL_FLOAT32, 4, 1e30, -1e30, 16777216, 5),
	 THESE(SL_FLOAT32, 4, 7, 11, 7, INFINITY)}, .no_grad = true, .own_types = true,
	 .expect = {1, -4, 1, 5}, .nexpect = 4},
	{"remainder", "signs", NULL, 2, .in = {THESE(SL_FLOAT32, 6, 5, -5, 5, -5, 3, -3),
	 THESE(SL_FLOAT32, 6, 3, 3, -3, -3, -INFINITY, INFINITY)}, .no_grad = true,
	 .expect = {2, 1, -1, -2, -INFINITY, INFINITY}, .nexpect = 6},
	{"floor_divide", "whole quotients", NULL, 2, .in = {THESE(SL_FLOAT32, 6, 1, -7, 6, 5, -5, 0),
	 THESE(SL_FLOAT32, 6, 0.1, 2, -3, 0, 0, -3)}, .no_grad = true, .own_types = true,
	 .expect = {9, -4, -2, INFINITY, -INFINITY, 0}, .nexpect = 6},
	{"copysign", "zeros", NULL, 2,
	 .in = {THESE(SL_FLOAT32, 4, 2, 0, -3, -0.0), THESE(SL_FLOAT32, 4, -0.0, -1, 0, 1)},
	 .no_grad = true, .expect = {-2, 0, 3, 0}, .nexpect = 4},
	MANY_EQUAL("add"), MANY_EQUAL("sub"), MANY_EQUAL("mul"), MANY_EQUAL("div"), MANY_EQUAL("pow"),
	MANY_EQUAL("maximum"), MANY_EQUAL("minimum"), MANY_EQUAL("eq"), MANY_EQUAL("ne"), MANY_EQUAL("lt"),
	MANY_EQUAL("le"), MANY_EQUAL("gt"), MANY_EQUAL("ge"), MANY_EQUAL("logical_and"), MANY_EQUAL("logical_or"),
	MANY_EQUAL("logical_xor"), MANY_EQUAL("take_if"), MANY_EQUAL("take_unless"), MANY_EQUAL("pow_by_base"),
	MANY_EQUAL("pow_by_exponent"),
	TRUTHS("logical_and", LIST(0, 0, 0, 1)), TRUTHS("logical_or", LIST(0, 1, 1, 1)),
	TRUTHS("logical_xor", LIST(0, 1, 1, 0)), TRUTHS("take_if", LIST(0, 0, 0, 7)),
	TRUTHS("take_unless", LIST(0, 5, 0, 0)),
	ROW("take_if"), CHANNEL("take_if"), OUTER("take_unless"), ROW("logical_xor"),
	TWO("pow_by_base", true, LIST(3, -0.25, 0.75, 0.288675135, -1, -0.03125), LIST(1, NAN, NAN, NAN, 0)),
	TWO("pow_by_exponent", true, LIST(0.810930216, NAN, -2.07944154, 0.549306144, NAN, -2.77258872),
	    LIST(NAN, NAN, NAN, -INFINITY, 0)),

	ROW("add"), ROW("sub"), ROW("mul"), ROW("div"), ROW("pow"), ROW("maximum"), ROW("minimum"),
	CHANNEL("add"), CHANNEL("sub"), CHANNEL("mul"), CHANNEL("div"), CHANNEL("pow"), CHANNEL("maximum"),
	CHANNEL("minimum"),
	OUTER("add"), OUTER("sub"), OUTER("mul"), OUTER("div"), OUTER("pow"), OUTER("maximum"), OUTER("minimum"),
	ROW("lt"), CHANNEL("ge"), OUTER("eq"),
	PAIR("sub", "column", true, DIMS(6, 4), DIMS(6, 1)),
	PAIR("sub", "b has more axes", true, DIMS(5), DIMS(3, 4, 5)),
	PAIR("sub", "a is a scalar", true, NO_DIMS, DIMS(3, 4)),
	PAIR("sub", "b is a scalar", true, DIMS(3, 4), NO_DIMS),
	PAIR("sub", "two scalars", true, NO_DIMS, NO_DIMS),
	PAIR("sub", "one element of two axes", true, DIMS(1, 1), DIMS(3)),
	PAIR("sub", "one element each", true, DIMS(1, 1, 1), DIMS(1)),
	PAIR("div", "axes that take turns", true, DIMS(2, 1, 3, 1, 2, 2), DIMS(1, 4, 3, 2, 1, 2)),
	PAIR("sub", "empty by repetition", false, DIMS(1, 3), DIMS(0, 1)),
	PAIR("add", "large row", false, DIMS(1003, 101), DIMS(101)),
	PAIR("sub", "large, short rows", false, DIMS(20011, 7), DIMS(7)),
	PAIR("sub", "large column", false, DIMS(401, 257), DIMS(401, 1)),
	PAIR("mul", "large channel", false, DIMS(16, 33, 13, 17), DIMS(1, 33, 1, 1)),
	PAIR("sub", "large, a repeated", false, DIMS(1, 33, 1, 17), DIMS(16, 33, 13, 17)),
	PAIR("div", "large, number over tensor", false, DIMS(1), DIMS(70001)),
	PAIR("sub", "large, columns and rows", false, DIMS(307, 1), DIMS(1, 311)),
	{"sub", "known values, column and row", NULL, 2,
	 .in = {{SL_FLOAT32, DIMS(2, 1), 0, 0, {10, 20}, 2}, {SL_FLOAT32, DIMS(3), 0, 0, {1, 2, 3}, 3}},
	 .expect = {9, 8, 7, 19, 18, 17}, .nexpect = 6},
	{"pow", "positive base", NULL, 2, .in = {BETWEEN(DIMS(40), 0.5, 3), BETWEEN(DIMS(40), -2, 2)}},
	{"pow", "special cases", NULL, 2,
	 .in = {THESE(SL_FLOAT32, 12, 0, 0, -8, -8, -2, 1, -1, INFINITY, -INFINITY, 0.5, 2, -0.5),
	  THESE(SL_FLOAT32, 12, 0, -1, 3, 0.5, -3, NAN, INFINITY, -1, 3, -INFINITY, INFINITY, 2)},
	 .no_grad = true, .expect = {1, INFINITY, -512, NAN, -0.125, 1, 1, 0, -INFINITY, INFINITY, INFINITY, 0.25},
	 .nexpect = 12},

	INTEGERS("add", SL_INT32, FOUR(1, -5, 2147483647, -2147483648.0), FOUR(2, 3, 1, -1),
		 LIST(3, -2, 2147483647, -2147483648.0)),
	INTEGERS("sub", SL_UINT8, FOUR(5, 3, 255, 0), FOUR(3, 5, 0, 1), LIST(2, 0, 255, 0)),
	INTEGERS("mul", SL_INT32, FOUR(65536, -3, 7, 0), FOUR(65536, 5, 6, 9), LIST(2147483647, -15, 42, 0)),
	INTEGERS("div", SL_INT32, FOUR(7, -7, 5, 0), FOUR(2, 2, 0, 0), LIST(3, -3, 2147483647, 0)),
	INTEGERS("pow", SL_INT32, FOUR(2, -3, 2, 10), FOUR(10, 3, -1, 10), LIST(1024, -27, 0, 2147483647)),
	INTEGERS("maximum", SL_UINT8, FOUR(1, 200, 7, 0), FOUR(2, 100, 7, 255), LIST(2, 200, 7, 255)),
	INTEGERS("eq", SL_UINT8, FOUR(1, 200, 7, 0), FOUR(2, 200, 7, 255), LIST(0, 1, 1, 0)),
	INTEGERS("lt", SL_INT32, FOUR(1, -200, 7, 2147483647), FOUR(2, 200, 7, -2147483648.0), LIST(1, 1, 0, 0)),
	INTEGERS("add", SL_INT64, FOUR(1, -5, 0x1p63, -0x1p63), FOUR(2, 3, 1, -1), LIST(3, -2, 0x1p63, -0x1p63)),
	INTEGERS("sub", SL_INT64, FOUR(1, -5, 0x1p63, -0x1p63), FOUR(2, 3, -1, 1), LIST(-1, -8, 0x1p63, -0x1p63)),
	INTEGERS("mul", SL_INT64, FOUR(0x1p32, -3, 7, 0), FOUR(0x1p32, 5, 6, 9), LIST(0x1p63, -15, 42, 0)),
	INTEGERS("div", SL_INT64, FOUR(7, -7, -5, 0), FOUR(2, 2, 0, 0), LIST(3, -3, -0x1p63, 0)),
	INTEGERS("pow", SL_INT64, FOUR(2, -3, 2, 10), FOUR(10, 3, -1, 19), LIST(1024, -27, 0, 0x1p63)),
	INTEGERS("maximum", SL_INT64, FOUR(1, 200, 7, -0x1p63), FOUR(2, 100, 7, 0x1p63), LIST(2, 200, 7, 0x1p63)),
	INTEGERS("minimum", SL_INT64, FOUR(1, 200, 7, -0x1p63), FOUR(2, 100, 7, 0x1p63), LIST(1, 100, 7, -0x1p63)),
	INTEGERS("eq", SL_INT64, FOUR(1, 200, 7, 0), FOUR(2, 200, 7, 255), LIST(0, 1, 1, 0)),
	INTEGERS("ge", SL_INT64, FOUR(1, -200, 7, 0x1p63), FOUR(2, 200, 7, -0x1p63), LIST(0, 0, 1, 1)),
	INTEGERS("logical_and", SL_INT64, FOUR(1, 0, 0x1p62, 0), FOUR(2, 200, -7, 0), LIST(1, 0, 1, 0)),
	INTEGERS("take_if", SL_INT64, FOUR(1, 0, 0x1p62, 0), FOUR(2, 200, -7, 0), LIST(2, 0, -7, 0)),
	INTEGERS("eq", SL_BOOL, FOUR(0, 0, 1, 1), FOUR(0, 1, 0, 1), LIST(1, 0, 0, 1)),
	INTEGERS("ne", SL_BOOL, FOUR(0, 0, 1, 1), FOUR(0, 1, 0, 1), LIST(0, 1, 1, 0)),
	INTEGERS("lt", SL_BOOL, FOUR(0, 0, 1, 1), FOUR(0, 1, 0, 1), LIST(0, 1, 0, 0)),
	INTEGERS("logical_and", SL_BOOL, FOUR(0, 0, 1, 1), FOUR(0, 1, 0, 1), LIST(0, 0, 0, 1)),
	INTEGERS("logical_or", SL_BOOL, FOUR(0, 0, 1, 1), FOUR(0, 1, 0, 1), LIST(0, 1, 1, 1)),
	INTEGERS("logical_xor", SL_BOOL, FOUR(0, 0, 1, 1), FOUR(0, 1, 0, 1), LIST(0, 1, 1, 0)),
	INTEGERS("take_if", SL_BOOL, FOUR(0, 0, 1, 1), FOUR(0, 1, 0, 1), LIST(0, 0, 0, 1)),
	INTEGERS("take_unless", SL_BOOL, FOUR(0, 0, 1, 1), FOUR(0, 1, 0, 1), LIST(0, 1, 0, 0)),
	{"add", "bools", NULL, 2, .in = {THESE(SL_BOOL, 2, 0, 1), THESE(SL_BOOL, 2, 0, 1)}, .reject = SL_EDTYPE},
	{"sub", "int64, column and row", NULL, 2,
	 .in = {{SL_INT64, DIMS(7, 1), -9, 9, {0}, 0}, {SL_INT64, DIMS(2, 1, 31), -9, 9, {0}, 0}}, .no_grad = true},

	ONE("add_scalar", 2.5, false, LIST(4, 0.5, 3, 5.5, 1.5, 6.5)),
	ONE("sub_scalar", 2.5, false, LIST(-1, -4.5, -2, 0.5, -3.5, 1.5)),
	ONE("mul_scalar", -2, false, LIST(-3, 4, -1, -6, 2, -8)),
	ONE("div_scalar", 4, false, LIST(0.375, -0.5, 0.125, 0.75, -0.25, 1)),
	ONE("pow_scalar", 3, false, LIST(3.375, -8, 0.125, 27, -1, 64)),
	ONE("pow_scalar", 2, false, LIST(2.25, 4, 0.25, 9, 1, 16)),
	ONE("pow_scalar", 0, false, LIST(1, 1, 1, 1, 1, 1)),
	ONE("pow_scalar", -0.5, true, LIST(0.816496581, NAN, 1.41421356, 0.577350269, NAN, 0.5)),
	ONE("maximum_scalar", 1, false, LIST(1.5, 1, 1, 3, 1, 4)),
	ONE("minimum_scalar", 1, false, LIST(1, -2, 0.5, 1, -1, 1)),
	ONE("eq_scalar", 3, true, LIST(0, 0, 0, 1, 0, 0)),
	ONE("ne_scalar", 3, true, LIST(1, 1, 1, 0, 1, 1)),
	ONE("lt_scalar", 0.5, true, LIST(0, 1, 0, 0, 1, 0)),
	ONE("le_scalar", 0.5, true, LIST(0, 1, 1, 0, 1, 0)),
	ONE("gt_scalar", 0.5, true, LIST(1, 0, 0, 1, 0, 1)),
	ONE("ge_scalar", 0.5, true, LIST(1, 0, 1, 1, 0, 1)),
	ONE("rsub_scalar", 1, false, LIST(-0.5, 3, 0.5, -2, 2, -3)),
	ONE("rdiv_scalar", 3, false, LIST(2, -1.5, 6, 1, -3, 0.75)),
	ONE("rpow_scalar", 2, false, LIST(2.82842712, 0.25, 1.41421356, 8, 0.5, 16)),
	{"rpow_scalar", "base 0", NUMBER(0), 1, .in = {BETWEEN(DIMS(5), 1, 2)},
	 .expect = {0, 0, 0, 0, 0}, .nexpect = 5},
	{"eq_scalar", "a number that no float is", NUMBER(0.1), 1, .in = {THESE(SL_FLOAT32, 3, 0.1, 0.2, 0.1)},
	 .no_grad = true, .own_types = true, .expect = {1, 0, 1}, .nexpect = 3},
	{"maximum_scalar", "no number", NUMBER(0), 1, .in = {THESE(SL_FLOAT32, 3, NAN, -1, 1)}, .no_grad = true,
	 .expect = {NAN, 0, 1}, .nexpect = 3},
	{"minimum_scalar", "is no number", NUMBER(NAN), 1, .in = {THESE(SL_FLOAT32, 3, NAN, -1, 1)}, .no_grad = true,
	 .expect = {NAN, NAN, NAN}, .nexpect = 3},
	NO_INTEGER("add_scalar"), NO_INTEGER("sub_scalar"), NO_INTEGER("mul_scalar"), NO_INTEGER("div_scalar"),
	NO_INTEGER("pow_scalar"), NO_INTEGER("maximum_scalar"), NO_INTEGER("minimum_scalar"), NO_INTEGER("rsub_scalar"),
	NO_INTEGER("rdiv_scalar"), NO_INTEGER("rpow_scalar"),
	INTEGERS_ONE("mul_scalar", -3, SL_INT32, FOUR(7, -7, 0, 2147483647), LIST(-21, 21, 0, -2147483648.0)),
	INTEGERS_ONE("div_scalar", 2, SL_INT32, FOUR(7, -7, 0, 8), LIST(3, -3, 0, 4)),
	INTEGERS_ONE("rdiv_scalar", 7, SL_INT32, FOUR(2, -2, 0, 8), LIST(3, -3, 2147483647, 0)),
	INTEGERS_ONE("add_scalar", 200, SL_UINT8, FOUR(7, 55, 56, 255), LIST(207, 255, 255, 255)),
	INTEGERS_ONE("eq_scalar", 7, SL_UINT8, FOUR(7, 55, 7, 255), LIST(1, 0, 1, 0)),
	INTEGERS_ONE("sub_scalar", 3, SL_INT64, FOUR(7, -7, 0, -0x1p63), LIST(4, -10, -3, -0x1p63)),
	INTEGERS_ONE("mul_scalar", -3, SL_INT64, FOUR(7, -7, 0, 0x1p62), LIST(-21, 21, 0, -0x1p63)),
	INTEGERS_ONE("rdiv_scalar", 7, SL_INT64, FOUR(2, -2, 0, 8), LIST(3, -3, 0x1p63, 0)),
	INTEGERS_ONE("gt_scalar", 2.5, SL_INT64, FOUR(2, 3, -7, 0x1p62), LIST(0, 1, 0, 1)),
	INTEGERS_ONE("le_scalar", INFINITY, SL_INT64, FOUR(2, 3, -7, 0x1p63), LIST(1, 1, 1, 1)),
	INTEGERS_ONE("ne_scalar", NAN, SL_INT64, FOUR(2, 3, -7, 0x1p63), LIST(1, 1, 1, 1)),
	INTEGERS_ONE("lt_scalar", 0.5, SL_BOOL, FOUR(0, 1, 0, 1), LIST(1, 0, 1, 0)),
	INTEGERS_ONE("lt_scalar", 2.5, SL_INT32, FOUR(2, 3, -7, 9), LIST(1, 0, 1, 0)),
	{0},
};
