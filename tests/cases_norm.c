/* Cases of batch and layer normalisation.  The expected values are PyTorch's, in float64. */
#include <math.h>
#include <starling.h>

#include "../codelets/norm/batch_norm.h"
#include "../codelets/norm/layer_norm.h"
#include "cases.h"

/* clang-format off */

#define COUNT(...) SL_COUNT_(double, __VA_ARGS__)

/* An input: random, or with these values. */
#define RANDOM(dims, low, high) {SL_FLOAT32, dims, low, high, {0}, 0}
#define ANY(dtype, ...) {dtype, DIMS(__VA_ARGS__), 1, 2, {0}, 0}
#define VALUES(dims, ...) {SL_FLOAT32, dims, 0, 0, {__VA_ARGS__}, COUNT(__VA_ARGS__)}

/* Twelve numbers x, dy, and statistics of two channels. */
#define X VALUES(DIMS(2, 2, 3), .5, -1.25, 2, 3.5, -.75, 1.5, 4, -2.5, .25, 1, -3, 2.25)
#define DY VALUES(DIMS(2, 2, 3), 1, -.5, .25, 2, .75, -1, .5, 1.25, -2, 1.5, -.25, .5)
#define ONE(a) VALUES(DIMS(1), a)
#define TWO(a, b) VALUES(DIMS(2), a, b)
#define KNOWN X, TWO(1.5, -.5), TWO(.25, 1), TWO(.1, -.2), TWO(.8, 1.5)

/* Random inputs of this shape, with c channels. */
#define INPUTS(c, ...) \
	RANDOM(DIMS(__VA_ARGS__), -2, 2), RANDOM(DIMS(c), .5, 1.5), RANDOM(DIMS(c), -1, 1), \
	RANDOM(DIMS(c), -.5, .5), RANDOM(DIMS(c), .5, 2)
#define GRAD_INPUTS(c, ...) \
	RANDOM(DIMS(__VA_ARGS__), -1, 1), RANDOM(DIMS(__VA_ARGS__), -2, 2), RANDOM(DIMS(c), .5, 1.5), \
	RANDOM(DIMS(c), -.5, .5), RANDOM(DIMS(c), .5, 1.5)

#define EPS(eps, momentum) (&(const struct slp_norm_attrs){eps, momentum})
#define GLOBAL(yes) &(const struct slp_norm_grad_attrs){yes}
#define CASE(name, what, a, ...) .op = name, .label = what, .attrs = a, .nin = 5, .in = {__VA_ARGS__}
#define EXPECT(...) .expect = {__VA_ARGS__}, .nexpect = COUNT(__VA_ARGS__)
#define REJECT(status) .reject = status, .no_grad = true

/* Dense layers, short planes (walked by columns), long ones, some with tails, some for several threads. */
#define SHAPE(name, what, a, none, ...) {CASE(name, what, a, __VA_ARGS__), .tolerance = 1e-4, .no_grad = none}
#define SHAPES(name, a, none, INPUTS) \
	SHAPE(name, "dense", a, none, INPUTS(3, 8, 3)), \
	SHAPE(name, "planes", a, none, INPUTS(2, 3, 2, 4, 5)), \
	SHAPE(name, "one axis after the channels", a, none, INPUTS(2, 4, 2, 7)), \
	SHAPE(name, "planes of fours", a, none, INPUTS(2, 3, 2, 4, 8)), \
	SHAPE(name, "dense, channels in eights", a, true, INPUTS(24, 75, 24)), \
	SHAPE(name, "no channels", a, none, INPUTS(0, 4, 0, 2)), \
	SHAPE(name, "dense, large", a, true, INPUTS(301, 331, 301)), \
	SHAPE(name, "dense, many channels", a, true, INPUTS(2101, 37, 2101)), \
	SHAPE(name, "small planes, large", a, true, INPUTS(67, 133, 67, 3, 3)), \
	SHAPE(name, "planes, large", a, true, INPUTS(16, 17, 16, 19, 21)), \
	SHAPE(name, "few long planes", a, true, INPUTS(2, 3, 2, 131, 137)), \
	SHAPE(name, "more than stays in cache", a, true, INPUTS(24, 48, 24, 31, 33))

/* What does not fit, with two inputs like x (2, 3, 4) for the gradient. */
#define BLOCKS(c) {SL_BFLOAT16, DIMS(3, c, 5, 3), -1, 2, {0}, 0}
#define VECTOR(c) RANDOM(DIMS(c), .5, 1.5)
#define OWN .own_types = true, .no_grad = true
#define THREE(dtype) ANY(dtype, 3)
#define LIKE_X(dtype) ANY(dtype, 2, 3, 4)
#define WRONG(name, what, status, ...) {CASE(name, what, NULL, __VA_ARGS__), REJECT(status)}
#define I SL_INT32
#define F SL_FLOAT32
#define REJECTS(name, second) \
	WRONG(name, "integers", SL_EDTYPE, LIKE_X(I), second(I), THREE(I), THREE(I), THREE(I)), \
	WRONG(name, "data types differ", SL_EDTYPE, LIKE_X(F), second(F), THREE(F), THREE(I), THREE(F)), \
	WRONG(name, "one axis", SL_ESHAPE, THREE(F), THREE(F), THREE(F), THREE(F), THREE(F)), \
	WRONG(name, "channels that do not fit", SL_ESHAPE, LIKE_X(F), second(F), ANY(F, 7), THREE(F), THREE(F))

/* Layer normalisation: four samples of three, and what goes back. */
#define XL VALUES(DIMS(4, 3), .5, -1.25, 2, 3.5, -.75, 1.5, 4, -2.5, .25, 1, -3, 2.25)
#define DYL VALUES(DIMS(4, 3), 1, -.5, .25, 2, .75, -1, .5, 1.25, -2, 1.5, -.25, .5)
#define THREE_OF(a, b, c) VALUES(DIMS(3), a, b, c)
#define LAYER(name, what, a, count, ...) .op = name, .label = what, .attrs = a, .nin = count, .in = {__VA_ARGS__}
/* Dims in parentheses; channels. */
#define BATCH_SUM(what, act, lay, dims, c) \
	{.op = "batch_norm_sum", .label = what, .attrs = (&(const struct slp_norm_attrs){.eps = 1e-3, .momentum = .9, .activation = act, .layout = lay}), \
	 .nin = 6, .in = {INPUTS(c, STRIP dims), RANDOM(DIMS dims, -1, 1)}, .tolerance = 1e-4, .no_grad = true}
#define STRIP(...) __VA_ARGS__
#define LCOPY(type) (&(const struct slp_layer_norm_attrs){.dtype = type})
#define LEPS(by) (&(const struct slp_layer_norm_attrs){.eps = by})
/* Dims in parentheses: those of a number a sample, those of x; the length of the last axis. */
#define LAYER_SHAPE(what, none, rows, dims, n) \
	{LAYER("layer_norm", what, LEPS(1e-3), 3, RANDOM(DIMS dims, -2, 2), RANDOM(DIMS(n), .5, 1.5), \
	       RANDOM(DIMS(n), -1, 1)), .tolerance = 1e-4, .no_grad = none}, \
	{LAYER("layer_norm_grad", what, NULL, 5, RANDOM(DIMS dims, -1, 1), RANDOM(DIMS dims, -2, 2), \
	       RANDOM(DIMS(n), .5, 1.5), RANDOM(DIMS rows, -.5, .5), RANDOM(DIMS rows, .5, 1.5)), \
	 .tolerance = 1e-4, .no_grad = true}
#define NUMBER {SL_FLOAT32, {0, {0}}, 1, 2, {0}, 0}

const struct slp_case slp_cases_norm[] = {
	{CASE("batch_norm", "known values", NULL, KNOWN), .tolerance = 1e-5,
	 EXPECT(0.25, -0.996119337, 1.31810229, 0.348797674, 1.35520127, 0.822399366, 2.74223867, -1.88620458,
		0.0719829519, 0.940799789, 1.88800317, 0.644798731)},
	{CASE("batch_norm", "a single value a channel", EPS(1e-2, .5), VALUES(DIMS(1, 2), 3, -7), TWO(1.5, -.5),
	      TWO(.25, 1), TWO(0, 0), TWO(1, 1)),
	 .no_grad = true, EXPECT(.25, 1)},
	{CASE("batch_norm", "the same value everywhere", EPS(1e-2, .5), VALUES(DIMS(4, 1), 3, 3, 3, 3), ONE(2), ONE(.5),
	      ONE(0), ONE(1)),
	 .no_grad = true, EXPECT(.5, .5, .5, .5)},
	{CASE("batch_norm", "no number", NULL, VALUES(DIMS(2, 2), NAN, 1, 2, 1), TWO(1, 1), TWO(0, .5), TWO(0, 0),
	      TWO(1, 1)),
	 .no_grad = true, EXPECT(NAN, .5, NAN, .5)},
	{CASE("batch_norm", "a mean far above the deviation", NULL, RANDOM(DIMS(64, 3, 9, 9), 1000, 1001),
	      RANDOM(DIMS(3), .5, 1), RANDOM(DIMS(3), -1, 1), RANDOM(DIMS(3), -1, 1), RANDOM(DIMS(3), .5, 2)),
	 .no_grad = true, .tolerance = 1e-4},
	SHAPES("batch_norm", EPS(1e-3, .75), false, INPUTS),
	SHAPE("batch_norm", "unbiased", (&(const struct slp_norm_attrs){.momentum = .75, .unbiased = true}), true, INPUTS(3, 2, 3, 4, 5)),
	{CASE("batch_norm", "nc16", (&(const struct slp_norm_attrs){.layout = SLP_LAYOUT_NC16, .activation = SL_RELU}), BLOCKS(32), VECTOR(32), VECTOR(32), VECTOR(32), VECTOR(32)), OWN},
	{CASE("batch_norm_infer", "nc16", (&(const struct slp_norm_attrs){.layout = SLP_LAYOUT_NC16}), BLOCKS(48), VECTOR(48), VECTOR(48), VECTOR(48), VECTOR(48)), OWN},
	{CASE("batch_norm_grad", "nc16", (&(const struct slp_norm_grad_attrs){.layout = SLP_LAYOUT_NC16}), BLOCKS(32), BLOCKS(32), VECTOR(32), VECTOR(32), VECTOR(32)), OWN},
	{CASE("batch_norm", "nhwc", (&(const struct slp_norm_attrs){.layout = SLP_LAYOUT_NHWC, .activation = SL_RELU}), INPUTS(37, 3, 37, 5, 3)), .no_grad = true, .tolerance = 1e-4},
	{CASE("batch_norm", "nhwc, large", (&(const struct slp_norm_attrs){.layout = SLP_LAYOUT_NHWC}), INPUTS(24, 16, 24, 19, 21)), .no_grad = true, .tolerance = 1e-4},
	{CASE("batch_norm", "nhwc, a mean far above the deviation", (&(const struct slp_norm_attrs){.layout = SLP_LAYOUT_NHWC}), RANDOM(DIMS(16, 3, 9, 9), 1000, 1001), RANDOM(DIMS(3), .5, 1), RANDOM(DIMS(3), -1, 1), RANDOM(DIMS(3), -1, 1), RANDOM(DIMS(3), .5, 2)), .no_grad = true, .tolerance = 1e-4},
	{CASE("batch_norm_infer", "nhwc", (&(const struct slp_norm_attrs){.layout = SLP_LAYOUT_NHWC, .activation = SL_TANH}), INPUTS(37, 3, 37, 5, 3)), .no_grad = true},
	{CASE("batch_norm_grad", "nhwc", (&(const struct slp_norm_grad_attrs){.layout = SLP_LAYOUT_NHWC}), GRAD_INPUTS(37, 3, 37, 5, 3)), .no_grad = true, .tolerance = 1e-4},
	{CASE("batch_norm_grad", "nhwc, large", (&(const struct slp_norm_grad_attrs){.layout = SLP_LAYOUT_NHWC}), GRAD_INPUTS(24, 16, 24, 19, 21)), .no_grad = true, .tolerance = 1e-4},
	{.op = "batch_norm_grad", .label = "nhwc, relu", .attrs = (&(const struct slp_norm_grad_attrs){.layout = SLP_LAYOUT_NHWC, .relu = true}), .nin = 6, .in = {GRAD_INPUTS(37, 3, 37, 5, 3), RANDOM(DIMS(3, 37, 5, 3), -1, 1)}, .no_grad = true, .tolerance = 1e-4},
	{CASE("batch_norm", "another layout", (&(const struct slp_norm_attrs){.layout = SLP_LAYOUT_N16}), BLOCKS(32), VECTOR(32), VECTOR(32), VECTOR(32), VECTOR(32)), REJECT(SL_EINVAL), .own_types = true},
	{CASE("batch_norm", "blocks of 30", (&(const struct slp_norm_attrs){.layout = SLP_LAYOUT_NC16}), BLOCKS(30), VECTOR(30), VECTOR(30), VECTOR(30), VECTOR(30)), REJECT(SL_EINVAL), .own_types = true},
	REJECTS("batch_norm", THREE),
	{CASE("batch_norm", "no values", NULL, INPUTS(2, 0, 2, 4)), REJECT(SL_ESHAPE)},
	{CASE("batch_norm", "negative eps", EPS(-1, 0), KNOWN), REJECT(SL_EINVAL)},
	{CASE("batch_norm", "eps that is no number", EPS(NAN, 0), KNOWN), REJECT(SL_EINVAL)},
	{CASE("batch_norm", "momentum above 1", EPS(0, 1.5), KNOWN), REJECT(SL_EINVAL)},

	{CASE("batch_norm_infer", "known values", EPS(1e-3, 0), KNOWN),
	 EXPECT(0.920401523, -2.01260514, 3.43440723, -0.51001542, 1.22446175, 0.306209131, 6.78641485, -4.1076099,
		0.501400571, 0.510265269, 2.14271437, 0.000124924525)},
	{CASE("batch_norm_infer", "no values", NULL, INPUTS(2, 0, 2, 4))},
	SHAPES("batch_norm_infer", NULL, false, INPUTS),
	REJECTS("batch_norm_infer", THREE),

	{CASE("batch_norm_grad", "known values", NULL, DY, X, TWO(1.5, -.5), TWO(.5, .75),
	      TWO(0.474712128, 0.473601692)),
	 .no_grad = true, .tolerance = 1e-5,
	 EXPECT(0.652729177, -0.427073737, 0.128707139, -0.197011606, -0.114988403, 0.41269547, 0.32009633, 0.810688011,
		-1.48514692, -0.204480509, 0.00853004897, 0.0952549995)},
	{CASE("batch_norm_grad", "statistics given", GLOBAL(true), DY, X, TWO(1.5, -.5), TWO(.5, .75), TWO(.5, .25)),
	 .no_grad = true, EXPECT(.75, -.375, .1875, -.25, -.09375, .125, .375, .9375, -1.5, -.1875, .03125, -.0625)},
	{CASE("batch_norm_grad", "no values", NULL, GRAD_INPUTS(2, 0, 2, 4)), .no_grad = true},
	SHAPES("batch_norm_grad", GLOBAL(false), true, GRAD_INPUTS),
	{CASE("batch_norm_grad", "statistics given, large", GLOBAL(true), GRAD_INPUTS(3, 31, 3, 41, 43)),
	 .no_grad = true, .tolerance = 1e-4},
	REJECTS("batch_norm_grad", LIKE_X),
	{CASE("batch_norm_grad", "dy of another shape", NULL, ANY(F, 2, 3), ANY(F, 3, 3), THREE(F), THREE(F), THREE(F)),
	 REJECT(SL_ESHAPE)},

	{LAYER("layer_norm", "known values", NULL, 3, XL, THREE_OF(1.5, -.5, 2), THREE_OF(.25, 1, -1)), .tolerance = 1e-5,
	 EXPECT(0.344118104, 1.62745403, 1.3843253, 2.05005462, 1.62401893, -0.903997087, 2.17375323, 1.57869, -1.25024432,
		0.864065803, 1.68849802, 0.935237682)},
	{LAYER("layer_norm", "eps 0.1", LEPS(.1), 3, XL, THREE_OF(1.5, -.5, 2), THREE_OF(.25, 1, -1)), .tolerance = 1e-5,
	 EXPECT(0.341558781, 1.61039188, 1.31948913, 2.02091806, 1.61391826, -0.905551037, 2.16034327, 1.57465611,
		-1.24849994, 0.858032865, 1.68173382, 0.916224787)},
	{LAYER("layer_norm", "one value a sample", NULL, 3, VALUES(DIMS(2, 1), 3, -7), ONE(2), ONE(.5)), .no_grad = true,
	 EXPECT(.5, .5)},
	BATCH_SUM("dense", SL_IDENTITY, 0, (8, 3), 3),
	BATCH_SUM("planes", SL_RELU, 0, (3, 2, 4, 5), 2),
	BATCH_SUM("planes of fours, an activation", SL_TANH, 0, (3, 2, 4, 8), 2),
	BATCH_SUM("nhwc", SL_RELU, SLP_LAYOUT_NHWC, (3, 16, 5, 7), 16),
	BATCH_SUM("planes, large", SL_RELU, 0, (17, 16, 19, 21), 16),
	{.op = "batch_norm_sum", .label = "another shape", .attrs = EPS(1e-3, .9), .nin = 6, .in = {LIKE_X(F), THREE(F), THREE(F), THREE(F), THREE(F), ANY(F, 2, 3, 5)}, REJECT(SL_ESHAPE)},
	{LAYER("layer_norm", "no number", NULL, 3, VALUES(DIMS(2, 2), NAN, 1, 1, 1), TWO(1, 1), TWO(0, .5)),
	 .no_grad = true, EXPECT(NAN, NAN, 0, .5)},
	{LAYER("layer_norm", "a mean far above the deviation", NULL, 3, RANDOM(DIMS(37, 300), 1000, 1001),
	       RANDOM(DIMS(300), .5, 1), RANDOM(DIMS(300), -1, 1)), .no_grad = true, .tolerance = 1e-4},
	{LAYER("layer_norm", "one sample", NULL, 3, RANDOM(DIMS(7), -2, 2), RANDOM(DIMS(7), .5, 1.5), RANDOM(DIMS(7), -1, 1))},
	{LAYER("layer_norm_grad", "one sample", NULL, 5, RANDOM(DIMS(7), -1, 1), RANDOM(DIMS(7), -2, 2),
	       RANDOM(DIMS(7), .5, 1.5), NUMBER, NUMBER), .no_grad = true},
	LAYER_SHAPE("three axes", false, (2, 3), (2, 3, 5), 5),
	LAYER_SHAPE("more rows than a part", false, (75), (75, 6), 6),
	LAYER_SHAPE("no samples", false, (0), (0, 5), 5),
	LAYER_SHAPE("no elements", false, (4), (4, 0), 0),
	LAYER_SHAPE("words", true, (3, 401), (3, 401, 96), 96),
	LAYER_SHAPE("rows of a warp", true, (5), (5, 64), 64),
	LAYER_SHAPE("rows of a block", true, (2), (2, 1104), 1104),
	LAYER_SHAPE("many short rows", true, (20011), (20011, 9), 9),
	LAYER_SHAPE("long rows", true, (45), (45, 5003), 5003),
	LAYER_SHAPE("rows in groups of parts", true, (601), (601, 64), 64),
	LAYER_SHAPE("the longest that warps hold", true, (40), (40, 1024), 1024),
	{LAYER("layer_norm_grad", "known values", NULL, 5, DYL, XL, THREE_OF(1.5, -.5, 2),
	       VALUES(DIMS(4), 0.416666667, 1.41666667, 0.583333333, 0.0833333333),
	       VALUES(DIMS(4), 0.752944832, 0.576017477, 0.375366484, 0.446593311)),
	 .no_grad = true, .tolerance = 1e-5,
	 EXPECT(0.558779958, -0.257899099, -0.300880859, 0.692816685, 0.615831195, -1.30864788, 0.415630726, 0.566768052,
		-0.982398779, 0.397805366, -0.0947162153, -0.30308915)},
	{LAYER("layer_norm_grad", "another gradient", NULL, 6, RANDOM(DIMS(3, 37, 96), -1, 1), RANDOM(DIMS(3, 37, 96), -2, 2),
	       RANDOM(DIMS(96), .5, 1.5), RANDOM(DIMS(3, 37), -.5, .5), RANDOM(DIMS(3, 37), .5, 1.5), RANDOM(DIMS(3, 37, 96), -1, 1)), .tolerance = 1e-4, .no_grad = true},
	{LAYER("layer_norm_grad", "another gradient, short rows", NULL, 6, RANDOM(DIMS(70, 7), -1, 1), RANDOM(DIMS(70, 7), -2, 2),
	       RANDOM(DIMS(7), .5, 1.5), RANDOM(DIMS(70), -.5, .5), RANDOM(DIMS(70), .5, 1.5), RANDOM(DIMS(70, 7), -1, 1)), .tolerance = 1e-4, .no_grad = true},
	{LAYER("layer_norm_grad", "another gradient that does not fit", NULL, 6, ANY(F, 2, 3), ANY(F, 2, 3), THREE(F), ANY(F, 2), ANY(F, 2), ANY(F, 3, 2)), REJECT(SL_ESHAPE)},
	/* Half types round the sum first, the reference does not: rows of 96 differ least. */
	{LAYER("layer_norm_sum", "a sum", LEPS(1e-3), 4, RANDOM(DIMS(3, 37, 96), -2, 2), RANDOM(DIMS(96), .5, 1.5), RANDOM(DIMS(96), -1, 1), RANDOM(DIMS(3, 37, 96), -2, 2)), .tolerance = 1e-4, .no_grad = true},
	{LAYER("layer_norm_sum", "a sum of long rows", NULL, 4, RANDOM(DIMS(5, 1104), -2, 2), RANDOM(DIMS(1104), .5, 1.5), RANDOM(DIMS(1104), -1, 1), RANDOM(DIMS(5, 1104), -2, 2)), .tolerance = 1e-4, .no_grad = true, .own_types = true},
	{LAYER("layer_norm_sum", "a sum of short rows", NULL, 4, RANDOM(DIMS(70, 7), -2, 2), RANDOM(DIMS(7), .5, 1.5), RANDOM(DIMS(7), -1, 1), RANDOM(DIMS(70, 7), -2, 2)), .tolerance = 1e-4, .no_grad = true, .own_types = true},
	{LAYER("layer_norm_sum", "alone", NULL, 3, RANDOM(DIMS(3, 96), -2, 2), RANDOM(DIMS(96), .5, 1.5), RANDOM(DIMS(96), -1, 1)), .tolerance = 1e-4, .no_grad = true},
	{LAYER("layer_norm_sum", "another shape", NULL, 4, ANY(F, 2, 3), THREE(F), THREE(F), ANY(F, 3, 2)), REJECT(SL_ESHAPE)},
	{LAYER("layer_norm_sum", "no such type", (&(const struct slp_layer_norm_attrs){.dtype = SL_INT32}), 3, ANY(F, 2, 3), THREE(F), THREE(F)), REJECT(SL_EDTYPE)},
	{LAYER("layer_norm_grad_copy", "a copy", LCOPY(SL_BFLOAT16), 5, {SL_BFLOAT16, DIMS(3, 37, 96), -1, 1}, RANDOM(DIMS(3, 37, 96), -2, 2),
	       RANDOM(DIMS(96), .5, 1.5), RANDOM(DIMS(3, 37), -.5, .5), RANDOM(DIMS(3, 37), .5, 1.5)), .tolerance = 1e-4, .no_grad = true, .own_types = true},
	{LAYER("layer_norm_grad_copy", "a copy of a sum", LCOPY(SL_FLOAT16), 6, RANDOM(DIMS(5, 1104), -1, 1), RANDOM(DIMS(5, 1104), -2, 2),
	       RANDOM(DIMS(1104), .5, 1.5), RANDOM(DIMS(5), -.5, .5), RANDOM(DIMS(5), .5, 1.5), {SL_FLOAT16, DIMS(5, 1104), -1, 1}), .tolerance = 1e-4, .no_grad = true, .own_types = true},
	{LAYER("layer_norm_grad_copy", "short rows", LCOPY(SL_BFLOAT16), 5, {SL_BFLOAT16, DIMS(70, 7), -1, 1}, RANDOM(DIMS(70, 7), -2, 2),
	       RANDOM(DIMS(7), .5, 1.5), RANDOM(DIMS(70), -.5, .5), RANDOM(DIMS(70), .5, 1.5)), .tolerance = 1e-4, .no_grad = true, .own_types = true},
	{LAYER("layer_norm_grad_copy", "no such type", LCOPY(SL_BFLOAT16), 5, ANY(F, 2, 3), ANY(F, 2, 3), THREE(F), ANY(F, 2), ANY(F, 2)), REJECT(SL_EDTYPE)},
	{LAYER("layer_norm", "integers", NULL, 3, LIKE_X(I), THREE(I), THREE(I)), REJECT(SL_EDTYPE)},
	{LAYER("layer_norm", "data types differ", NULL, 3, ANY(F, 2, 3), THREE(F), THREE(I)), REJECT(SL_EDTYPE)},
	{LAYER("layer_norm", "gamma that does not fit", NULL, 3, ANY(F, 3, 2), THREE(F), THREE(F)), REJECT(SL_ESHAPE)},
	{LAYER("layer_norm", "a number", NULL, 3, NUMBER, THREE(F), THREE(F)), REJECT(SL_ESHAPE)},
	{LAYER("layer_norm", "negative eps", LEPS(-1), 3, ANY(F, 2, 3), THREE(F), THREE(F)), REJECT(SL_EINVAL)},
	{LAYER("layer_norm_grad", "means of another shape", NULL, 5, ANY(F, 2, 3), ANY(F, 2, 3), THREE(F), THREE(F), ANY(F, 2)),
	 REJECT(SL_ESHAPE)},
	{0},
};
