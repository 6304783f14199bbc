/* Cases of the functions of one tensor and their gradients.  The expected values are PyTorch's, in float64. */
#include <math.h>

#include "cases.h"

/* clang-format off */
#define LIST(...) {__VA_ARGS__}
/* clang-format on */
#define ANY LIST(-2.5, -1, -0.25, 0.125, 0.75, 3)
#define POSITIVE LIST(0.0625, 0.125, 0.5, 1, 2.5, 9)
#define UNIT LIST(-0.9, -0.5, -0.25, 0.125, 0.75, 0.99)
#define BEYOND LIST(1.0625, 1.25, 1.5, 2, 3.5, 9)
#define GIVEN LIST(1, -2, 0.5, 3, -0.25, 2)
#define NO_NUMBERS LIST(INFINITY, -INFINITY, NAN, 0)

/* clang-format off */

/* Arguments with known results, and from ranges: all kinds of shapes, the last of them for several threads, with a
 * tail. */
#define VALUES(name, x, y)                                                                                             \
	{name, "known values", NULL, 1, .in = {{SL_FLOAT32, DIMS(2, 3), 0, 0, x, 6}}, .expect = y, .nexpect = 6}
#define RANGE(name, low, high)                                                                                         \
	{name, "empty", NULL, 1, .in = {{SL_FLOAT32, DIMS(3, 0, 2), low, high, {0}, 0}}},                              \
	{name, "scalar", NULL, 1, .in = {{SL_FLOAT32, {0, {0}}, low, high, {0}, 0}}},                                  \
	{name, "one element", NULL, 1, .in = {{SL_FLOAT32, DIMS(1, 1), low, high, {0}, 0}}},                           \
	{name, "four axes", NULL, 1, .in = {{SL_FLOAT32, DIMS(2, 3, 1, 7), low, high, {0}, 0}}},                       \
	{name, "large", NULL, 1, .in = {{SL_FLOAT32, DIMS(3, 23457), low, high, {0}, 0}}, .no_grad = true}
/* At inf, -inf, NaN and 0. */
#define LIMITS(name, ...)                                                                                              \
	{name, "no numbers", NULL, 1, .in = {{SL_FLOAT32, DIMS(4), 0, 0, NO_NUMBERS, 4}}, .no_grad = true,             \
	 .expect = {__VA_ARGS__}, .nexpect = 4}
#define FLOATS_ONLY(name)                                                                                              \
	{name, "integers", NULL, 1, .in = {{SL_INT32, DIMS(3), -5, 5, {0}, 0}}, .reject = SL_EDTYPE}
#define INTEGERS(name, type, a, b, c, y)                                                                               \
	{name, "integers", NULL, 1, .in = {{type, DIMS(3), 0, 0, {a, b, c}, 3}}, .no_grad = true,                      \
	 .expect = y, .nexpect = 3}

/* Where nothing flows back; known values are those of these. */
#define STEPS LIST(-2.5, -1, -0.25, 0.5, 0, 3.5)
#define FLAT(name, y)                                                                                                  \
	{name, "known values", NULL, 1, .in = {{SL_FLOAT32, DIMS(2, 3), 0, 0, STEPS, 6}}, .no_grad = true,             \
	 .expect = y, .nexpect = 6},                                                                                   \
	{name, "large", NULL, 1, .in = {{SL_FLOAT32, DIMS(3, 23457), -3, 3, {0}, 0}}, .no_grad = true},                \
	{name, "empty", NULL, 1, .in = {{SL_FLOAT32, DIMS(3, 0, 2), -3, 3, {0}, 0}}, .no_grad = true}

/* The gradients, of GIVEN and of the saved values v. */
#define BOTH(type, dims, low, high) {type, dims, low, high, {0}, 0}
#define SLOPES(name, v, g)                                                                                             \
	{name, "known values", NULL, 2, .in = {{SL_FLOAT32, DIMS(6), 0, 0, GIVEN, 6},                                  \
	 {SL_FLOAT32, DIMS(6), 0, 0, v, 6}}, .no_grad = true, .expect = g, .nexpect = 6},                              \
	{name, "large", NULL, 2, .in = {BOTH(SL_FLOAT32, DIMS(70001), -2, 2),                                          \
	 BOTH(SL_FLOAT32, DIMS(70001), 0.25, 1)}, .no_grad = true},                                                    \
	{name, "empty", NULL, 2, .in = {BOTH(SL_FLOAT32, DIMS(0), 0, 1), BOTH(SL_FLOAT32, DIMS(0), 0, 1)},             \
	 .no_grad = true},                                                                                             \
	{name, "shapes differ", NULL, 2, .in = {BOTH(SL_FLOAT32, DIMS(2, 3), 0, 1), BOTH(SL_FLOAT32, DIMS(3), 0, 1)},  \
	 .reject = SL_ESHAPE},                                                                                         \
	{name, "data types differ", NULL, 2, .in = {BOTH(SL_FLOAT32, DIMS(3), 0, 1), BOTH(SL_INT32, DIMS(3), 0, 2)},   \
	 .reject = SL_EDTYPE}

const struct slp_case slp_cases_unary[] = {
	VALUES("neg", ANY, LIST(2.5, 1, 0.25, -0.125, -0.75, -3)),
	VALUES("abs", ANY, LIST(2.5, 1, 0.25, 0.125, 0.75, 3)),
	SLOPES("abs_grad", ANY, LIST(-1, 2, -0.5, 3, -0.25, 2)),
	VALUES("exp", ANY, LIST(0.0820849986, 0.367879441, 0.778800783, 1.13314845, 2.11700002, 20.0855369)),
	SLOPES("exp_grad", LIST(0.0820849986, 0.367879441, 0.778800783, 1.13314845, 2.11700002, 20.0855369),
	       LIST(0.0820849986, -0.735758882, 0.389400392, 3.39944536, -0.529250004, 40.1710738)),
	VALUES("log", POSITIVE, LIST(-2.77258872, -2.07944154, -0.693147181, 0, 0.916290732, 2.19722458)),
	SLOPES("log_grad", POSITIVE, LIST(16, -16, 1, 3, -0.1, 0.222222222)),
	VALUES("sqrt", POSITIVE, LIST(0.25, 0.353553391, 0.707106781, 1, 1.58113883, 3)),
	SLOPES("sqrt_grad", LIST(0.25, 0.353553391, 0.707106781, 1, 1.58113883, 3),
	       LIST(2, -2.82842712, 0.353553391, 1.5, -0.0790569415, 0.333333333)),
	VALUES("square", ANY, LIST(6.25, 1, 0.0625, 0.015625, 0.5625, 9)),
	SLOPES("square_grad", ANY, LIST(-5, 4, -0.25, 0.75, -0.375, 12)),
	VALUES("reciprocal", POSITIVE, LIST(16, 8, 2, 1, 0.4, 0.111111111)),
	SLOPES("reciprocal_grad", LIST(16, 8, 2, 1, 0.4, 0.111111111), LIST(-256, 128, -2, -3, 0.04, -0.024691358)),
	VALUES("relu", ANY, LIST(0, 0, 0, 0.125, 0.75, 3)),
	SLOPES("relu_grad", LIST(0, 0, 0, 0.125, 0.75, 3), LIST(0, 0, 0, 3, -0.25, 2)),
	VALUES("sigmoid", ANY, LIST(0.07585818, 0.268941421, 0.437823499, 0.531209373, 0.679178699, 0.952574127)),
	SLOPES("sigmoid_grad", LIST(0.07585818, 0.268941421, 0.437823499, 0.531209373, 0.679178699, 0.952574127),
	       LIST(0.0701037165, -0.393223866, 0.123067041, 0.747077925, -0.0544737484, 0.0903533195)),
	VALUES("tanh", ANY, LIST(-0.986614298, -0.761594156, -0.244918662, 0.124353002, 0.635148952, 0.995054754)),
	SLOPES("tanh_grad", LIST(-0.986614298, -0.761594156, -0.244918662, 0.124353002, 0.635148952, 0.995054754),
	       LIST(0.0265922267, -0.839948683, 0.470007424, 2.95360899, -0.149146452, 0.0197320743)),
	VALUES("gelu", ANY, LIST(-0.0155241633, -0.158655254, -0.100323419, 0.0687172781, 0.580029486, 2.99595031)),
	SLOPES("gelu_grad", ANY, LIST(-0.0376110859, 0.166630941, 0.152313323, 1.79765381, -0.24980643, 2.02389129)),
	VALUES("softplus", ANY, LIST(0.0788897343, 0.313261688, 0.57593942, 0.757599035, 1.13687101, 3.04858735)),
	SLOPES("softplus_grad", ANY, LIST(0.07585818, -0.537882843, 0.21891175, 1.59362812, -0.169794675, 1.90514825)),

	VALUES("sin", ANY,
	       LIST(-0.598472144, -0.841470985, -0.247403959, 0.124674733, 0.68163876, 0.141120008)),
	SLOPES("sin_grad", ANY,
	       LIST(-0.801143616, -1.08060461, 0.484456211, 2.976593, -0.182922217, -1.97998499)),
	VALUES("cos", ANY,
	       LIST(-0.801143616, 0.540302306, 0.968912422, 0.992197667, 0.731688869, -0.989992497)),
	SLOPES("cos_grad", ANY,
	       LIST(0.598472144, -1.68294197, 0.12370198, -0.3740242, 0.17040969, -0.282240016)),
	VALUES("tan", ANY,
	       LIST(0.747022297, -1.55740772, -0.255341921, 0.125655137, 0.93159646, -0.142546543)),
	SLOPES("tan_grad", LIST(0.747022297, -1.55740772, -0.255341921, 0.125655137, 0.93159646, -0.142546543),
	       LIST(1.55804231, -6.85103764, 0.532599748, 3.04736764, -0.466967991, 2.04063903)),
	VALUES("asin", UNIT,
	       LIST(-1.11976951, -0.523598776, -0.252680255, 0.125327831, 0.848062079, 1.42925685)),
	SLOPES("asin_grad", UNIT,
	       LIST(2.29415734, -2.30940108, 0.516397779, 3.02371578, -0.377964473, 14.1776241)),
	VALUES("acos", UNIT,
	       LIST(2.69056584, 2.0943951, 1.82347658, 1.4454685, 0.722734248, 0.141539473)),
	SLOPES("acos_grad", UNIT,
	       LIST(-2.29415734, 2.30940108, -0.516397779, -3.02371578, 0.377964473, -14.1776241)),
	VALUES("atan", ANY,
	       LIST(-1.19028995, -0.785398163, -0.244978663, 0.124354995, 0.643501109, 1.24904577)),
	SLOPES("atan_grad", ANY,
	       LIST(0.137931034, -1, 0.470588235, 2.95384615, -0.16, 0.2)),
	VALUES("sinh", ANY,
	       LIST(-6.05020448, -1.17520119, -0.252612317, 0.125325775, 0.822316732, 10.0178749)),
	SLOPES("sinh_grad", ANY,
	       LIST(6.13228948, -3.08616127, 0.51570655, 3.02346803, -0.323670821, 20.135324)),
	VALUES("cosh", ANY,
	       LIST(6.13228948, 1.54308063, 1.0314131, 1.00782268, 1.29468328, 10.067662)),
	SLOPES("cosh_grad", ANY,
	       LIST(-6.05020448, 2.35040239, -0.126306158, 0.375977326, -0.205579183, 20.0357499)),
	VALUES("asinh", ANY,
	       LIST(-1.64723115, -0.881373587, -0.247466462, 0.124676747, 0.693147181, 1.81844646)),
	SLOPES("asinh_grad", ANY,
	       LIST(0.371390676, -1.41421356, 0.48507125, 2.97683363, -0.2, 0.632455532)),
	VALUES("acosh", BEYOND,
	       LIST(0.35173739, 0.693147181, 0.96242365, 1.3169579, 1.9248473, 2.88727095)),
	SLOPES("acosh_grad", BEYOND,
	       LIST(2.7852425, -2.66666667, 0.447213595, 1.73205081, -0.0745355992, 0.223606798)),
	VALUES("atanh", UNIT,
	       LIST(-1.47221949, -0.549306144, -0.255412812, 0.125657214, 0.972955075, 2.64665241)),
	SLOPES("atanh_grad", UNIT,
	       LIST(5.26315789, -2.66666667, 0.533333333, 3.04761905, -0.571428571, 100.502513)),
	VALUES("erf", ANY,
	       LIST(-0.999593048, -0.842700793, -0.27632639, 0.140316205, 0.711155634, 0.99997791)),
	SLOPES("erf_grad", ANY,
	       LIST(0.00217828423, -0.830214995, 0.530007065, 3.33265581, -0.160732767, 0.000278506104)),
	VALUES("erfc", ANY,
	       LIST(1.99959305, 1.84270079, 1.27632639, 0.859683795, 0.288844366, 2.2090497e-05)),
	SLOPES("erfc_grad", ANY,
	       LIST(-0.00217828423, 0.830214995, -0.530007065, -3.33265581, 0.160732767, -0.000278506104)),
	VALUES("log1p", POSITIVE,
	       LIST(0.0606246218, 0.117783036, 0.405465108, 0.693147181, 1.25276297, 2.30258509)),
	SLOPES("log1p_grad", POSITIVE,
	       LIST(0.941176471, -1.77777778, 0.333333333, 1.5, -0.0714285714, 0.2)),
	VALUES("expm1", ANY,
	       LIST(-0.917915001, -0.632120559, -0.221199217, 0.133148453, 1.11700002, 19.0855369)),
	SLOPES("expm1_grad", LIST(-0.917915001, -0.632120559, -0.221199217, 0.133148453, 1.11700002, 19.0855369),
	       LIST(0.0820849986, -0.735758882, 0.389400392, 3.39944536, -0.529250004, 40.1710738)),
	VALUES("rsqrt", POSITIVE,
	       LIST(4, 2.82842712, 1.41421356, 1, 0.632455532, 0.333333333)),
	SLOPES("rsqrt_grad", LIST(4, 2.82842712, 1.41421356, 1, 0.632455532, 0.333333333),
	       LIST(-32, 22.627417, -0.707106781, -1.5, 0.0316227766, -0.037037037)),
	VALUES("silu", ANY,
	       LIST(-0.18964545, -0.268941421, -0.109455875, 0.0664011717, 0.509384024, 2.85772238)),
	SLOPES("silu_grad", ANY,
	       LIST(-0.0994011113, -0.144658976, 0.188144989, 1.68701286, -0.210649986, 2.17620821)),
	{"hard_swish", "known values", NULL, 1, .in = {{SL_FLOAT32, DIMS(2, 3), 0, 0, ANY, 6}}, .no_grad = true, /* a kink */
	 .expect = {-0.208333333, -0.333333333, -0.114583333, 0.0651041667, 0.46875, 3}, .nexpect = 6},
	SLOPES("hard_swish_grad", ANY,
	       LIST(-0.333333333, -0.333333333, 0.208333333, 1.625, -0.1875, 2)),
	VALUES("gelu_tanh", ANY,
	       LIST(-0.0150842661, -0.158808009, -0.100324649, 0.0687171986, 0.579960555, 2.99636261)),
	SLOPES("gelu_tanh_grad", ANY,
	       LIST(-0.0379515762, 0.165928168, 0.152322952, 1.79764622, -0.249734564, 2.02316833)),
	FLAT("sign", LIST(-1, -1, -1, 1, 0, 1)),
	FLAT("floor", LIST(-3, -1, -1, 0, 0, 3)),
	FLAT("ceil", LIST(-2, -1, 0, 1, 0, 4)),
	FLAT("round", LIST(-2, -1, 0, 0, 0, 4)),
	FLAT("isnan", LIST(0, 0, 0, 0, 0, 0)),
	FLAT("isfinite", LIST(1, 1, 1, 1, 1, 1)),
	FLAT("logical_not", LIST(0, 0, 0, 0, 1, 0)),

	RANGE("sign", 0.5, 3),
	RANGE("floor", 0.1, 0.9),
	RANGE("ceil", -1.9, -1.1),
	RANGE("round", 0.6, 1.4),
	RANGE("neg", -3, 3),
	RANGE("abs", 0.5, 3),
	RANGE("exp", -4, 4),
	RANGE("log", 0.1, 5),
	RANGE("sqrt", 0.1, 5),
	RANGE("square", -3, 3),
	RANGE("reciprocal", 0.5, 3),
	RANGE("relu", -3, -0.5),
	RANGE("relu", 0.5, 3),
	RANGE("sigmoid", -6, 6),
	RANGE("tanh", -4, 4),
	RANGE("gelu", -5, 5),
	RANGE("softplus", -6, 6),
	RANGE("sin", -9, 9),
	RANGE("cos", -9, 9),
	RANGE("tan", -1.4, 1.4),
	RANGE("asin", -0.9, 0.9),
	RANGE("acos", -0.9, 0.9),
	RANGE("atan", -9, 9),
	RANGE("sinh", -4, 4),
	RANGE("sinh", -1e-3, 1e-3),
	RANGE("cosh", -4, 4),
	RANGE("asinh", -9, 9),
	RANGE("asinh", -1e-3, 1e-3),
	RANGE("acosh", 1.1, 9),
	RANGE("atanh", -0.9, 0.9),
	RANGE("atanh", -1e-3, 1e-3),
	RANGE("erf", -3, 3),
	RANGE("erfc", -3, 3),
	RANGE("erfc", 3, 9),
	RANGE("log1p", -0.8, 5),
	RANGE("log1p", -1e-3, 1e-3),
	RANGE("expm1", -9, 4),
	RANGE("expm1", -1e-3, 1e-3),
	RANGE("rsqrt", 0.2, 5),
	RANGE("silu", -6, 6),
	RANGE("hard_swish", -2.9, 2.9),
	RANGE("hard_swish", 3.1, 5),
	RANGE("gelu_tanh", -5, 5),

	LIMITS("neg", -INFINITY, INFINITY, NAN, 0),
	LIMITS("abs", INFINITY, INFINITY, NAN, 0),
	LIMITS("exp", INFINITY, 0, NAN, 1),
	LIMITS("log", INFINITY, NAN, NAN, -INFINITY),
	LIMITS("sqrt", INFINITY, NAN, NAN, 0),
	LIMITS("square", INFINITY, INFINITY, NAN, 0),
	LIMITS("reciprocal", 0, 0, NAN, INFINITY),
	LIMITS("relu", INFINITY, 0, NAN, 0),
	LIMITS("sigmoid", 1, 0, NAN, 0.5),
	LIMITS("tanh", 1, -1, NAN, 0),
	LIMITS("gelu", INFINITY, 0, NAN, 0),
	LIMITS("softplus", INFINITY, 0, NAN, 0.69314718056),
	LIMITS("sin", NAN, NAN, NAN, 0),
	LIMITS("cos", NAN, NAN, NAN, 1),
	LIMITS("tan", NAN, NAN, NAN, 0),
	LIMITS("asin", NAN, NAN, NAN, 0),
	LIMITS("acos", NAN, NAN, NAN, 1.57079632679),
	LIMITS("atan", 1.57079632679, -1.57079632679, NAN, 0),
	LIMITS("sinh", INFINITY, -INFINITY, NAN, 0),
	LIMITS("cosh", INFINITY, INFINITY, NAN, 1),
	LIMITS("asinh", INFINITY, -INFINITY, NAN, 0),
	LIMITS("acosh", INFINITY, NAN, NAN, NAN),
	LIMITS("atanh", NAN, NAN, NAN, 0),
	LIMITS("erf", 1, -1, NAN, 0),
	LIMITS("erfc", 0, 2, NAN, 1),
	LIMITS("log1p", INFINITY, NAN, NAN, 0),
	LIMITS("expm1", INFINITY, -1, NAN, 0),
	LIMITS("rsqrt", 0, NAN, NAN, INFINITY),
	LIMITS("silu", INFINITY, 0, NAN, 0),
	LIMITS("hard_swish", INFINITY, 0, NAN, 0),
	LIMITS("gelu_tanh", INFINITY, 0, NAN, 0),
	LIMITS("sign", 1, -1, NAN, 0),
	LIMITS("floor", INFINITY, -INFINITY, NAN, 0),
	LIMITS("ceil", INFINITY, -INFINITY, NAN, 0),
	LIMITS("round", INFINITY, -INFINITY, NAN, 0),
	LIMITS("isnan", 0, 0, 1, 0),
	LIMITS("isfinite", 0, 0, 0, 1),
	LIMITS("logical_not", 0, 0, 0, 1),
	{"log1p", "its ends", NULL, 1, .in = {{SL_FLOAT32, DIMS(3), 0, 0, {-1, -2, 1e30}, 3}}, .no_grad = true,
	 .expect = {-INFINITY, NAN, 69.0775528}, .nexpect = 3},

	FLOATS_ONLY("exp"),
	FLOATS_ONLY("log"),
	FLOATS_ONLY("sqrt"),
	FLOATS_ONLY("reciprocal"),
	FLOATS_ONLY("sigmoid"),
	FLOATS_ONLY("tanh"),
	FLOATS_ONLY("gelu"),
	FLOATS_ONLY("softplus"),
	FLOATS_ONLY("sin"),
	FLOATS_ONLY("silu"),
	INTEGERS("sign", SL_INT32, 5, -7, 0, LIST(1, -1, 0)),
	INTEGERS("floor", SL_INT32, 5, -7, 0, LIST(5, -7, 0)),
	INTEGERS("logical_not", SL_UINT8, 5, 0, 255, LIST(0, 1, 0)),
	INTEGERS("isfinite", SL_INT32, 5, -7, 0, LIST(1, 1, 1)),
	INTEGERS("neg", SL_INT32, 5, -7, -2147483648.0, LIST(-5, 7, 2147483647)),
	INTEGERS("neg", SL_INT64, 5, -7, -0x1p63, LIST(-5, 7, 0x1p63)),
	INTEGERS("abs", SL_INT64, 5, -7, -0x1p63, LIST(5, 7, 0x1p63)),
	INTEGERS("square", SL_INT64, 5, -7, 0x1p32, LIST(25, 49, 0x1p63)),
	INTEGERS("relu", SL_INT64, 5, -7, 0x1p60, LIST(5, 0, 0x1p60)),
	INTEGERS("sign", SL_INT64, 5, -7, 0, LIST(1, -1, 0)),
	INTEGERS("ceil", SL_INT64, 5, -7, 0x1p60, LIST(5, -7, 0x1p60)),
	INTEGERS("isnan", SL_INT64, 5, -7, 0, LIST(0, 0, 0)),
	INTEGERS("logical_not", SL_INT64, 5, 0, -7, LIST(0, 1, 0)),
	INTEGERS("logical_not", SL_BOOL, 1, 0, 1, LIST(0, 1, 0)),
	INTEGERS("neg", SL_UINT8, 0, 1, 255, LIST(0, 0, 0)),
	INTEGERS("abs", SL_INT32, 5, -7, -2147483648.0, LIST(5, 7, 2147483647)),
	INTEGERS("square", SL_INT32, 5, -7, 50000, LIST(25, 49, 2147483647)),
	INTEGERS("square", SL_UINT8, 5, 15, 16, LIST(25, 225, 255)),
	INTEGERS("relu", SL_INT32, 5, -7, 0, LIST(5, 0, 0)),
	{0},
};
