/* Cases of fused programs.  The expected values are NumPy's, in float64. */
#include <math.h>

#include "cases.h"
#include "fused.h"

/* clang-format off */

#define DIMS(...) {SL_COUNT_(int64_t, __VA_ARGS__), {__VA_ARGS__}}
#define NO_DIMS {0, {0}}
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

#define ADD PROGRAM((0), DO(add, 0, 1))
/* relu(x * w + b) */
#define AFFINE PROGRAM((0), DO(mul, 0, 1), DO(add, R(0), 2), DO(relu, R(1), R(1)))
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
	CASE("size 1", AFFINE, 3, (REAL(1, 1), REAL(1), REAL(1, 1, 1))),
	CASE("rows", AFFINE, 3, (REAL(40, 123), REAL(123), REAL(1, 123))),
	CASE("long rows", AFFINE, 3, (REAL(3, 5001), REAL(5001), REAL(3, 1))),
	CASE("columns", AFFINE, 3, (REAL(2000, 2), REAL(2000, 1), REAL(1, 2))),
	CASE("channels", AFFINE, 3, (REAL(3, 5, 7, 9), POSITIVE(1, 5, 1, 1), REAL(1, 5, 1, 1))),
	CASE("channels, long planes", AFFINE, 3, (REAL(2, 3, 50, 61), POSITIVE(1, 3, 1, 1), REAL(3, 1, 1))),
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
	{0},
};
