/* Cases of what graph passes make: fused programs, batch normalisation with an activation.  The expected values are
 * NumPy's and PyTorch's, in float64. */
#include <math.h>
#include <starling.h>

#include "norm/batch_norm.h"
#include "cases.h"
#include "elementwise/fused.h"
#include "reduce/fused_reduce.h"

/* clang-format off */

#define THESE(dims, ...) {SL_FLOAT32, dims, 0, 0, {__VA_ARGS__}, SL_COUNT_(double, __VA_ARGS__)}
#define REAL(...) {SL_FLOAT32, DIMS(__VA_ARGS__), -1, 1, {0}, 0}
#define POSITIVE(...) {SL_FLOAT32, DIMS(__VA_ARGS__), 0.5, 2, {0}, 0}
#define ONE {SL_FLOAT32, NO_DIMS, 0.5, 1, {0}, 0}
#define WHOLE(...) {SL_INT32, DIMS(__VA_ARGS__), -9, 9, {0}, 0}
#define EXPECT(...) .expect = {__VA_ARGS__}, .nexpect = SL_COUNT_(double, __VA_ARGS__)
#define LIST(...) {__VA_ARGS__}

#define R(i) (SLP_FUSED_RESULT + (i))
#define N(i) (SLP_FUSED_NUMBER + (i))
#define DO(name, a, b) (SLP_FUSED_##name | (a) << 8 | (b) << 16)
#define PROGRAM(numbers, ...) &(const struct slp_fused_attrs){.number = LIST numbers, .step = {__VA_ARGS__}}
#define CASE(what, program, n, inputs, ...) \
	{.op = "fused", .label = what, .attrs = program, .nin = n, .in = LIST inputs, .no_grad = true, __VA_ARGS__}

#define REDUCED(number, axes, ...) &(const struct slp_fused_reduce_attrs){.step = {__VA_ARGS__}, .reduction = (number) | (axes) << 8}
#define REDUCED_CASE(what, program, n, inputs, ...) \
	{.op = "fused_reduce", .label = what, .attrs = program, .nin = n, .in = LIST inputs, .no_grad = true, __VA_ARGS__}
#define PRODUCTS(axes) REDUCED(SLP_REDUCE_sum, axes, DO(mul, 0, 1))
#define DISTANCE(axes) REDUCED(SLP_REDUCE_norm, axes, DO(sub, 0, 1), DO(gelu, R(0), R(0)))

#define ADD PROGRAM((0), DO(add, 0, 1))
/* relu(x * w + b) */
#define AFFINE PROGRAM((0), DO(mul, 0, 1), DO(add, R(0), 2), DO(relu, R(1), R(1)))
/* x * w + b of images in NHWC */
#define NHWC PROGRAM((0), DO(mul, 0, 1) | SLP_FUSED_NHWC, DO(add, R(0), 2))
/* dy * sigmoid'(y) * 0.5 - (1 - y) ^ 2: a number on both sides, a result used twice, one never used */
#define MIXED PROGRAM((0.5, 1, 2), DO(sigmoid, 0, 0), DO(sigmoid_grad, 1, R(0)), DO(mul, R(1), N(0)), \
	DO(sub, N(1), R(0)), DO(exp, R(0), R(0)), DO(pow, R(3), N(2)), DO(sub, R(2), R(5)))
/* Twelve steps, and five results alive at once. */
#define LONG PROGRAM((0.25), DO(tanh, 0, 0), DO(square, 0, 0), DO(softplus, 0, 0), DO(abs, 0, 0), DO(gelu, 0, 0), \
	DO(add, R(0), R(1)), DO(add, R(2), R(3)), DO(mul, R(5), R(6)), DO(maximum, R(7), R(4)), DO(mul, R(8), N(0)), \
	DO(lt, R(9), 0), DO(add, R(9), R(10)))

#define X6 THESE(DIMS(2, 3), 1.5, -2, 0.5, 3, -1, 4)
#define Y6 THESE(DIMS(2, 3), 2, -1, 3, 0.5, -1, -2)
#define ROW3 THESE(DIMS(3), 1, -1, 2)

/* Twelve numbers x, dy, and statistics of two channels. */
#define X12 THESE(DIMS(2, 2, 3), .5, -1.25, 2, 3.5, -.75, 1.5, 4, -2.5, .25, 1, -3, 2.25)
#define DY12 THESE(DIMS(2, 2, 3), 1, -.5, .25, 2, .75, -1, .5, 1.25, -2, 1.5, -.25, .5)
#define Y12 THESE(DIMS(2, 2, 3), .25, 0, 1.3181, .3488, 1.3552, .8224, 2.7422, 0, .072, .9408, 1.888, .6448)
#define TWO(a, b) THESE(DIMS(2), a, b)
#define KNOWN X12, TWO(1.5, -.5), TWO(.25, 1), TWO(.1, -.2), TWO(.8, 1.5)
#define NORM(eps, activation) (&(const struct slp_norm_attrs){eps, .75, activation})
#define NORM_CASE(name, what, a, n, inputs, ...) \
	{.op = name, .label = what, .attrs = a, .nin = n, .in = LIST inputs, .no_grad = true, __VA_ARGS__}
#define INPUTS(c, ...) (REAL(__VA_ARGS__), POSITIVE(c), REAL(c), REAL(c), POSITIVE(c))
#define GRAD_INPUTS(c, ...) \
	(REAL(__VA_ARGS__), REAL(__VA_ARGS__), POSITIVE(c), REAL(c), POSITIVE(c), REAL(__VA_ARGS__))
/* Dense layers and short planes (walked by columns), long ones, some for several threads. */
#define SHAPES(name, a, n, INPUTS) \
	NORM_CASE(name, "with relu, dense", a, n, INPUTS(3, 8, 3), .tolerance = 1e-4), \
	NORM_CASE(name, "with relu, planes of fours", a, n, INPUTS(3, 2, 3, 4, 8), .tolerance = 1e-4), \
	NORM_CASE(name, "with relu, dense, channels in eights", a, n, INPUTS(24, 75, 24), .tolerance = 1e-4), \
	NORM_CASE(name, "with relu, planes", a, n, INPUTS(3, 2, 3, 4, 5), .tolerance = 1e-4), \
	NORM_CASE(name, "with relu, dense, many channels", a, n, INPUTS(2101, 37, 2101), .tolerance = 1e-4), \
	NORM_CASE(name, "with relu, planes, large", a, n, INPUTS(17, 16, 17, 19, 21), .tolerance = 1e-4), \
	NORM_CASE(name, "with relu, few long planes", a, n, INPUTS(3, 2, 3, 131, 137), .tolerance = 1e-4), \
	NORM_CASE(name, "with relu, more than stays in cache", a, n, INPUTS(48, 24, 48, 31, 33), .tolerance = 1e-4)

const struct slp_case slp_cases_fused[] = {
	CASE("known values", AFFINE, 3, (X6, Y6, ROW3), EXPECT(4, 1, 3.5, 2.5, 0, 0)),
	CASE("number first, number second", PROGRAM((6, 2), DO(sub, N(0), 0), DO(div, R(0), N(1))), 1, (X6),
	     EXPECT(2.25, 4, 2.75, 1.5, 3.5, 1)),
	CASE("comparison", PROGRAM((1), DO(ge, 0, N(0)), DO(mul, R(0), 1)), 2, (X6, Y6), EXPECT(2, 0, 0, 0.5, 0, -2)),
	CASE("gradient of relu", PROGRAM((0), DO(relu_grad, 0, 1)), 2, (X6, Y6), EXPECT(1.5, 0, 0.5, 3, 0, 0)),
	CASE("no numbers", AFFINE, 3, (THESE(DIMS(4), NAN, 1, INFINITY, 1), THESE(DIMS(4), 1, NAN, 0, -INFINITY), THESE(DIMS(1), 1)),
	     EXPECT(NAN, NAN, NAN, 0)),
	CASE("mixed", MIXED, 2, (REAL(3, 50), REAL(3, 50))),
	CASE("mixed, large", MIXED, 2, (REAL(70001), REAL(70001))),
	CASE("long, large", LONG, 1, (REAL(3, 20001))),
	CASE("scalar input", ADD, 2, (REAL(5, 300), ONE)),
	CASE("scalar first", ADD, 2, (ONE, REAL(5, 300))),
	CASE("scalars", AFFINE, 3, (ONE, ONE, ONE)),
	CASE("functions of a scalar only", PROGRAM((0), DO(exp, 1, 1)), 2, (REAL(5, 300), ONE)),
	CASE("a function of a scalar, then of both", PROGRAM((0), DO(exp, 1, 1), DO(mul, R(0), 0), DO(add, R(1), 0)), 2, (REAL(5, 300), ONE)),
	CASE("size 1", AFFINE, 3, (REAL(1, 1), REAL(1), REAL(1, 1, 1))),
	CASE("rows", AFFINE, 3, (REAL(40, 123), REAL(123), REAL(1, 123))),
	CASE("rows of fours", AFFINE, 3, (REAL(5, 8), REAL(8), REAL(5, 1))),
	CASE("rows of fours, row by row", AFFINE, 3, (REAL(3, 5, 8), REAL(3, 1, 8), REAL(5, 1))),
	CASE("planes of fours", AFFINE, 3, (REAL(2, 3, 4, 4), POSITIVE(1, 3, 1, 1), REAL(1, 3, 1, 1))),
	CASE("long, small", LONG, 1, (REAL(7, 9))),
	CASE("long rows", AFFINE, 3, (REAL(3, 5001), REAL(5001), REAL(3, 1))),
	CASE("columns", AFFINE, 3, (REAL(2000, 2), REAL(2000, 1), REAL(1, 2))),
	CASE("channels", AFFINE, 3, (REAL(3, 5, 7, 9), POSITIVE(1, 5, 1, 1), REAL(1, 5, 1, 1))),
	CASE("channels, long planes", AFFINE, 3, (REAL(2, 3, 50, 61), POSITIVE(1, 3, 1, 1), REAL(3, 1, 1))),
	CASE("images in NHWC, known values", NHWC, 3, (THESE(DIMS(1, 2, 1, 2), 1, 2, 3, 4), THESE(DIMS(2, 1, 1), 10, 20), THESE(DIMS(1, 2, 1, 1), 1, -1)),
	     EXPECT(11, 39, 31, 79)),
	CASE("images in NHWC", NHWC, 3, (REAL(2, 8, 3, 5), POSITIVE(8, 1, 1), REAL(1, 8, 1, 1))),
	CASE("images in NHWC, whole, and one number", NHWC, 3, (REAL(2, 5, 3, 7), ONE, REAL(2, 5, 3, 7))),
	CASE("NHWC of three axes", NHWC, 3, (REAL(8, 3, 5), REAL(8, 1, 1), REAL(8, 1, 1)), .reject = SL_ESHAPE),
	CASE("NHWC in a later step", PROGRAM((0), DO(add, 0, 1), DO(relu, R(0), R(0)) | SLP_FUSED_NHWC), 2, (REAL(2, 8, 3, 5), REAL(8, 1, 1)), .reject = SL_EINVAL),
	CASE("column and row", ADD, 2, (REAL(30, 1), REAL(1, 70))),
	CASE("middle axis", ADD, 2, (REAL(4, 1, 6, 1, 5), REAL(3, 1, 2, 1))),
	CASE("empty", ADD, 2, (REAL(0, 3), REAL(3))),
	CASE("no such input", ADD, 1, (REAL(3)), .reject = SL_EINVAL),
	CASE("no steps", PROGRAM((0), 0), 1, (REAL(3)), .reject = SL_EINVAL),
	CASE("no such function", PROGRAM((0), 255), 1, (REAL(3)), .reject = SL_EINVAL),
	CASE("a result too early", PROGRAM((0), DO(relu, R(0), R(0))), 1, (REAL(3)), .reject = SL_EINVAL),
	CASE("no such number", PROGRAM((0), DO(add, 0, N(8))), 1, (REAL(3)), .reject = SL_EINVAL),
	CASE("integers", ADD, 2, (WHOLE(3), WHOLE(3)), .reject = SL_EDTYPE),
	CASE("data types differ", ADD, 2, (REAL(3), WHOLE(3)), .reject = SL_EDTYPE),
	CASE("shapes differ", ADD, 2, (REAL(2, 3), REAL(2)), .reject = SL_ESHAPE),

	REDUCED_CASE("sums of products", PRODUCTS(2), 2, (X6, Y6), EXPECT(6.5, -5.5)),
	REDUCED_CASE("sums of products, keepdims", REDUCED(SLP_REDUCE_sum, 1 | 1 << 16, DO(mul, 0, 1)), 2, (X6, Y6), EXPECT(4.5, 3, -6.5)),
	REDUCED_CASE("the largest difference", REDUCED(SLP_REDUCE_max, 3, DO(sub, 0, 1)), 2, (X6, Y6), EXPECT(6)),
	REDUCED_CASE("the mean, beside a row", REDUCED(SLP_REDUCE_mean, 3, DO(mul, 0, 1)), 2, (X6, ROW3), EXPECT(2.75)),
	REDUCED_CASE("rows", DISTANCE(2), 2, (REAL(40, 128), REAL(128)), .tolerance = 1e-5),
	REDUCED_CASE("short rows", DISTANCE(2), 2, (REAL(40, 24), REAL(40, 1)), .tolerance = 1e-5),
	REDUCED_CASE("columns", DISTANCE(1), 2, (REAL(70, 36), REAL(36)), .tolerance = 1e-5),
	REDUCED_CASE("outer axes", DISTANCE(5), 2, (REAL(3, 40, 32), REAL(40, 1)), .tolerance = 1e-5),
	REDUCED_CASE("in parts", DISTANCE(3), 2, (REAL(9, 4096), REAL(4096)), .tolerance = 1e-5),
	REDUCED_CASE("softmax", REDUCED(SLP_FUSED_SOFTMAX, 2, DO(mul, 0, 1)), 2, (REAL(40, 128), REAL(128)), .tolerance = 1e-5),
	REDUCED_CASE("softmax of short rows", REDUCED(SLP_FUSED_SOFTMAX, 2, DO(mul, 0, 1)), 2, (X6, Y6), .tolerance = 1e-5,
	             EXPECT(0.628531719, 0.231223898, 0.140244383, 0.622430331, 0.377523079, 4.659005e-05)),
	REDUCED_CASE("log_softmax", REDUCED(SLP_FUSED_LOG_SOFTMAX, 4, DO(sub, 0, 1)), 2, (REAL(3, 7, 1024), REAL(7, 1)), .tolerance = 1e-5),
	REDUCED_CASE("empty", PRODUCTS(2), 2, (REAL(0, 3), REAL(3))),
	REDUCED_CASE("no such axis", PRODUCTS(4), 2, (REAL(2, 3), REAL(3)), .reject = SL_EINVAL),
	REDUCED_CASE("no such reduction", REDUCED(99, 1, DO(mul, 0, 1)), 2, (REAL(3), REAL(3)), .reject = SL_EINVAL),
	REDUCED_CASE("images in NHWC", REDUCED(SLP_REDUCE_sum, 1, DO(mul, 0, 1) | SLP_FUSED_NHWC), 2, (REAL(2, 8, 3, 5), REAL(8, 1, 1)), .reject = SL_EINVAL),
	REDUCED_CASE("no expression", REDUCED(SLP_REDUCE_sum, 1, 0), 2, (REAL(3), REAL(3)), .reject = SL_EINVAL),

	NORM_CASE("batch_norm", "tanh of known values", NORM(1e-3, SL_TANH), 5, (KNOWN), .tolerance = 1e-5,
	          EXPECT(0.244918662, -0.759900834, 0.866281493, 0.335372989, 0.875266158, 0.676384385, 0.991728328,
	                 -0.955019776, 0.0718786331, 0.735592514, 0.955189906, 0.568184797)),
	NORM_CASE("batch_norm", "relu of known values", NORM(1e-3, SL_RELU), 5, (KNOWN), .tolerance = 1e-5,
	          EXPECT(0.25, 0, 1.31798316, 0.348869964, 1.35516184, 0.822419081, 2.74196071, 0, 0.0720028062)),
	NORM_CASE("batch_norm_infer", "relu of known values", NORM(1e-3, SL_RELU), 5, (KNOWN),
	          EXPECT(0.920401523, 0, 3.43440723, 0, 1.22446175, 0.306209131, 6.78641485, 0, 0.501400571)),
	NORM_CASE("batch_norm_grad", "relu, known values", (&(const struct slp_norm_grad_attrs){.relu = true}), 6,
	          (DY12, X12, TWO(1.5, -.5), TWO(.5, .75), TWO(0.474712128, 0.473601692), Y12), .tolerance = 1e-5,
	          EXPECT(0.741737701, 0.152526067, 0.102380934, -0.197011606, -0.114988403, 0.41269547, 0.139990486,
	                 0.240280752, -1.37691594, -0.204480509, 0.00853004897, 0.0952549995)),
	SHAPES("batch_norm", NORM(1e-3, SL_RELU), 5, INPUTS),
	SHAPES("batch_norm_infer", NORM(1e-3, SL_RELU), 5, INPUTS),
	SHAPES("batch_norm_grad", (&(const struct slp_norm_grad_attrs){.relu = true}), 6, GRAD_INPUTS),
	NORM_CASE("batch_norm", "gelu, large", NORM(1e-3, SL_GELU), 5, INPUTS(5, 4, 5, 60, 70), .tolerance = 1e-4),
	NORM_CASE("batch_norm_grad", "relu, statistics given", (&(const struct slp_norm_grad_attrs){true, true}), 6,
	          GRAD_INPUTS(31, 3, 31, 41, 43), .tolerance = 1e-4),
	NORM_CASE("batch_norm_grad", "relu, no values", (&(const struct slp_norm_grad_attrs){.relu = true}), 6,
	          GRAD_INPUTS(2, 0, 2, 4)),
	NORM_CASE("batch_norm", "no such activation", NORM(1e-3, -1), 5, (KNOWN), .reject = SL_EINVAL),
	NORM_CASE("batch_norm_grad", "relu without its result", (&(const struct slp_norm_grad_attrs){.relu = true}), 5,
	          (DY12, X12, TWO(1.5, -.5), TWO(.5, .75), TWO(.5, .5)), .reject = SL_EINVAL),
	NORM_CASE("batch_norm_grad", "y of another shape", (&(const struct slp_norm_grad_attrs){.relu = true}), 6,
	          (DY12, X12, TWO(1.5, -.5), TWO(.5, .75), TWO(.5, .5), REAL(2, 2, 4)), .reject = SL_ESHAPE),
	{0},
};
