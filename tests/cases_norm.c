/* Cases of batch normalisation.  The expected values are PyTorch's, in float64. */
#include <math.h>

#include "../codelets/batch_norm.h"
#include "cases.h"

/* clang-format off */

#define DIMS(...) {SL_COUNT_(int64_t, __VA_ARGS__), {__VA_ARGS__}}
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
	SHAPE(name, "no channels", a, none, INPUTS(0, 4, 0, 2)), \
	SHAPE(name, "dense, large", a, true, INPUTS(301, 331, 301)), \
	SHAPE(name, "dense, many channels", a, true, INPUTS(2101, 37, 2101)), \
	SHAPE(name, "small planes, large", a, true, INPUTS(67, 133, 67, 3, 3)), \
	SHAPE(name, "planes, large", a, true, INPUTS(16, 17, 16, 19, 21)), \
	SHAPE(name, "few long planes", a, true, INPUTS(2, 3, 2, 131, 137)), \
	SHAPE(name, "more than stays in cache", a, true, INPUTS(24, 48, 24, 31, 33))

/* What does not fit, with two inputs like x (2, 3, 4) for the gradient. */
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
	{0},
};
