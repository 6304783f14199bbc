/* Cases of dot, matmul, linear, their backward passes.  The expected values were computed with PyTorch, in double
 * precision. */
#include <math.h>
#include <starling.h>

#include "cases.h"
#include "linear/linear.h"

/* clang-format off */

#define SCALAR {0, {0}}
#define REAL(...) {SL_FLOAT32, DIMS(__VA_ARGS__), -1, 1, {0}, 0}
#define WHOLE(...) {SL_INT32, DIMS(__VA_ARGS__), -9, 9, {0}, 0}
#define A(...) {SL_FLOAT32, DIMS(__VA_ARGS__), 0, 0, {1, -2, 3, 0.5, -1, 2, 0, 4, -3, 1.5, 2.5}, 11}
#define B(...) {SL_FLOAT32, DIMS(__VA_ARGS__), 0, 0, {1, 0.5, -1, 2, -0.5, 0.25, 3}, 7}
#define BIAS {SL_FLOAT32, DIMS(2), 0, 0, {0.5, -1}, 2}
#define NAN_BIAS {SL_FLOAT32, DIMS(2), 0, 0, {NAN, 1}, 2}
#define NANS(...) {SL_FLOAT32, DIMS(__VA_ARGS__), 0, 0, {1, NAN, 3, -1, 2, 4}, 6}
#define EXPECT(...) .expect = {__VA_ARGS__}, .nexpect = SL_COUNT_(double, __VA_ARGS__)
#define REJECT(status) .reject = status, .no_grad = true

#define PLAIN &(const struct sl_dot_opts){false, false}
#define TA &(const struct sl_dot_opts){true, false}
#define TB &(const struct sl_dot_opts){false, true}
#define TT &(const struct sl_dot_opts){true, true}
#define DOT(what, how, a, b, ...) {.op = "dot", .label = what, .attrs = how, .nin = 2, .in = {a, b}, __VA_ARGS__}
#define MATMUL(what, how, a, b, ...) {.op = "matmul", .label = what, .attrs = how, .nin = 2, .in = {a, b}, __VA_ARGS__}

#define W &(const struct slp_linear_attrs){false, SL_IDENTITY}
#define TW &(const struct slp_linear_attrs){true, SL_IDENTITY}
#define WITH(activation) &(const struct slp_linear_attrs){false, activation}
#define LINEAR(what, how, n, inputs, ...) {.op = "linear", .label = what, .attrs = how, .nin = n, .in = LIST inputs, __VA_ARGS__}
#define LIST(...) {__VA_ARGS__}

/* x (rows, inputs), w, b, dy, v of linear_grad and linear_sgd. */
#define BACK(turned, dx, function) \
	&(const struct slp_linear_grad_attrs){.tw = turned, .data = dx, .activation = function}
#define WIDE(function) &(const struct slp_linear_grad_attrs){.data = true, .activation = function, .wide = true}
#define STEP(decay, turned, dx, function) \
	&(const struct slp_linear_grad_attrs){0.1, 0.5, decay, .tw = turned, .data = dx, .activation = function}
#define GRAD(what, how, n, inputs, ...) \
	{.op = "linear_grad", .label = what, .attrs = how, .nin = n, .in = LIST inputs, .no_grad = true, __VA_ARGS__}
#define SGD(what, how, n, inputs, ...) \
	{.op = "linear_sgd", .label = what, .attrs = how, .nin = n, .in = LIST inputs, .no_grad = true, __VA_ARGS__}
#define GRAD_ADD(what, how, n, inputs, ...) \
	{.op = "linear_grad_add", .label = what, .attrs = how, .nin = n, .in = LIST inputs, .no_grad = true, __VA_ARGS__}
#define DOT_ADD(what, how, sum, a, b, ...) \
	{.op = "dot_add", .label = what, .attrs = how, .nin = 3, .in = {sum, a, b}, .no_grad = true, __VA_ARGS__}
#define SUM(...) {SL_FLOAT32, DIMS(__VA_ARGS__), 0, 0, {1, 2}, 2}
#define SIZES_ADD(r, i, u) REAL(i, u), REAL(u), SIZES(r, i, u)
#define TURNED_ADD(r, i, u) REAL(u, i), REAL(u), TURNED(r, i, u)
#define SIZES(r, i, u) REAL(r, i), REAL(i, u), REAL(r, u), REAL(r, u)
#define SIZES_SGD(r, i, u) REAL(i, u), REAL(u), REAL(r, i), REAL(r, u), REAL(r, u)
#define TURNED(r, i, u) REAL(r, i), REAL(u, i), REAL(r, u)
#define TURNED_SGD(r, i, u) REAL(u, i), REAL(u), REAL(r, i), REAL(r, u)

const struct slp_case slp_cases_products[] = {
	DOT("matrix, matrix", PLAIN, A(3, 4), B(4, 5), EXPECT(6.75, -7.5, -1.25, 9.75, 4.625, 1.5, 1.5, 11, -3, -0.5, 2.875, 0.75, 7.125, 1.75, 2.75)),
	DOT("both transposed", TT, A(4, 3), B(5, 4), EXPECT(4.25, 1.125, -0.75, 2.5, 0.375, -1.5, 15.25, 6.75, 1.75, -1.375, 9, -9, -7, 4.25, 2.75)),
	DOT("first transposed", TA, REAL(4, 3), REAL(4, 5)),
	DOT("second transposed", TB, REAL(3, 4), REAL(5, 4)),
	DOT("matrix, vector", PLAIN, A(3, 4), B(4), EXPECT(-2, 8, -2.75)),
	DOT("transposed matrix, vector", TA, REAL(4, 3), REAL(4)),
	DOT("vector, matrix", PLAIN, B(4), B(4, 5), EXPECT(0.125, 0.5, 3.25, -1.75, -1.5)),
	DOT("vector, transposed matrix", TB, REAL(4), REAL(5, 4)),
	DOT("vector, vector", PLAIN, A(5), B(5), EXPECT(-1.5)),
	DOT("a vector is its own transpose", TT, A(5), B(5), EXPECT(-1.5)),
	DOT("size 1", PLAIN, REAL(1, 1), REAL(1, 1)),
	DOT("a row", PLAIN, REAL(1, 256), REAL(256, 128), .no_grad = true),
	DOT("a row, second transposed", TB, REAL(1, 300), REAL(77, 300), .no_grad = true),
	DOT("a column", PLAIN, REAL(300, 70), REAL(70, 1), .no_grad = true),
	DOT("outer product", PLAIN, REAL(7, 1), REAL(1, 9)),
	DOT("few rows", PLAIN, REAL(3, 200), REAL(200, 100), .no_grad = true),
	DOT("long sums", TB, REAL(5, 3000), REAL(3, 3000), .tolerance = 1e-4, .no_grad = true),
	DOT("large", PLAIN, REAL(130, 257), REAL(257, 150), .tolerance = 1e-4, .no_grad = true),
	DOT("large, first transposed", TA, REAL(257, 130), REAL(257, 150), .tolerance = 1e-4, .no_grad = true),
	DOT("large, second transposed", TB, REAL(130, 257), REAL(150, 257), .tolerance = 1e-4, .no_grad = true),
	DOT("large, both transposed", TT, REAL(257, 130), REAL(150, 257), .tolerance = 1e-4, .no_grad = true),
	DOT("tall", PLAIN, REAL(1100, 33), REAL(33, 10), .no_grad = true),
	DOT("large vectors", PLAIN, REAL(70001), REAL(70001), .tolerance = 1e-3, .no_grad = true),
	DOT("large matrix, vector", PLAIN, REAL(513, 400), REAL(400), .tolerance = 1e-4, .no_grad = true),
	DOT("NaN", PLAIN, NANS(2, 3), B(3, 2), .no_grad = true, EXPECT(NAN, NAN, -5, 4.5)),
	DOT("no rows", PLAIN, REAL(0, 3), REAL(3, 2)),
	DOT("empty sums", PLAIN, REAL(2, 0), REAL(0, 3), EXPECT(0, 0, 0, 0, 0, 0)),
	DOT("empty vectors", PLAIN, REAL(0), REAL(0), EXPECT(0)),
	DOT("inner sizes", PLAIN, REAL(2, 3), REAL(2, 3), REJECT(SL_ESHAPE)),
	DOT("inner sizes, transposed", TA, REAL(2, 3), REAL(3, 2), REJECT(SL_ESHAPE)),
	DOT("inner sizes, vectors", PLAIN, REAL(2), REAL(3), REJECT(SL_ESHAPE)),
	DOT("three axes", PLAIN, REAL(2, 3, 4), REAL(4, 2), REJECT(SL_ESHAPE)),
	DOT("integers", PLAIN, WHOLE(2, 3), WHOLE(3, 2), REJECT(SL_EDTYPE)),
	DOT("mixed types", PLAIN, REAL(2, 3), WHOLE(3, 2), REJECT(SL_EDTYPE)),
	{.op = "dot", .label = "scalar", .attrs = PLAIN, .nin = 2, .in = {{SL_FLOAT32, SCALAR, -1, 1, {0}, 0}, REAL(1)}, REJECT(SL_ESHAPE)},

	MATMUL("two stacks", PLAIN, A(2, 3, 2), B(2, 2, 2), EXPECT(3, -3.5, 2.5, 2.5, -3, 3.5, 12, 4, 6, 0.75, 1.75, 1.625)),
	MATMUL("broadcast", PLAIN, A(2, 1, 2, 3), B(2, 3, 2), EXPECT(1.5, -2.75, 0.5, -1.25, 8, 1.5, 5, 0.5, -2.5, 7.25, -1.5, 6, -4, -2.5, 7.75, -1.5)),
	MATMUL("transposed, broadcast", TT, A(2, 3, 2), B(1, 2, 3), EXPECT(3.5, 0.25, -3.75, -3.75, -4, 2.125, 3.75, 7.5)),
	MATMUL("matrices", PLAIN, REAL(3, 4), REAL(4, 2)),
	MATMUL("a stack and one matrix", PLAIN, REAL(3, 2, 4), REAL(4, 5)),
	MATMUL("a transposed stack and one matrix", TA, REAL(3, 4, 2), REAL(4, 5)),
	MATMUL("one matrix and a stack", TB, REAL(2, 4), REAL(3, 5, 4)),
	MATMUL("both broadcast", PLAIN, REAL(3, 1, 2, 4), REAL(1, 2, 4, 3)),
	MATMUL("vectors in a stack", PLAIN, REAL(4, 1, 6), REAL(4, 6, 1)),
	MATMUL("more than go at a time", PLAIN, REAL(70, 2, 3), REAL(70, 3, 2), .no_grad = true),
	MATMUL("many small", PLAIN, REAL(300, 5, 7), REAL(300, 7, 6), .no_grad = true),
	MATMUL("few large", TB, REAL(2, 140, 130), REAL(2, 150, 130), .tolerance = 1e-4, .no_grad = true),
	MATMUL("size 1", PLAIN, REAL(1, 1, 1), REAL(1, 1, 1)),
	MATMUL("empty stack", PLAIN, REAL(0, 2, 3), REAL(0, 3, 2)),
	MATMUL("empty, broadcast", PLAIN, REAL(0, 2, 3), REAL(1, 3, 2)),
	MATMUL("empty sums", PLAIN, REAL(2, 2, 0), REAL(2, 0, 1), EXPECT(0, 0, 0, 0)),
	MATMUL("inner sizes", PLAIN, REAL(2, 2, 3), REAL(2, 2, 3), REJECT(SL_ESHAPE)),
	MATMUL("stacks that differ", PLAIN, REAL(2, 2, 3), REAL(3, 3, 2), REJECT(SL_ESHAPE)),
	MATMUL("vector", PLAIN, REAL(3), REAL(3, 2), REJECT(SL_ESHAPE)),
	MATMUL("integers", PLAIN, WHOLE(1, 2, 3), WHOLE(1, 3, 2), REJECT(SL_EDTYPE)),

	LINEAR("with a bias", W, 3, (A(3, 4), B(4, 2), BIAS), EXPECT(3.5, -3.25, 9.5, 6.5, -2.25, 2.125)),
	LINEAR("transposed weight", TW, 3, (A(3, 4), B(2, 4), BIAS), EXPECT(-1.5, 7.5, 8.5, 4, -2.25, 9.375)),
	LINEAR("without a bias", TW, 2, (A(3, 4), B(2, 4)), EXPECT(-2, 8.5, 8, 5, -2.75, 10.375)),
	LINEAR("three axes", W, 3, (REAL(2, 3, 4), REAL(4, 5), REAL(5))),
	LINEAR("three axes, transposed weight", TW, 3, (REAL(2, 3, 4), REAL(5, 4), REAL(5))),
	LINEAR("one axis", W, 3, (REAL(4), REAL(4, 5), REAL(5))),
	LINEAR("size 1", W, 3, (REAL(1, 1), REAL(1, 1), REAL(1))),
	LINEAR("large", W, 3, (REAL(256, 120), REAL(120, 84), REAL(84)), .tolerance = 1e-4, .no_grad = true),
	LINEAR("large, transposed weight", TW, 3, (REAL(300, 400), REAL(70, 400), REAL(70)), .tolerance = 1e-4, .no_grad = true),
	LINEAR("NaN in the bias", W, 3, (A(2, 1), B(1, 2), NAN_BIAS), .no_grad = true, EXPECT(NAN, 1.5, NAN, 0)),
	LINEAR("relu", WITH(SL_RELU), 3, (A(3, 4), B(4, 2), BIAS), .no_grad = true, EXPECT(3.5, 0, 9.5, 6.5, 0, 2.125)),
	LINEAR("relu, no bias", &((const struct slp_linear_attrs){true, SL_RELU}), 2, (A(3, 4), B(2, 4)), .no_grad = true, EXPECT(0, 8.5, 8, 5, 0, 10.375)),
	LINEAR("sigmoid", WITH(SL_SIGMOID), 3, (A(3, 4), B(4, 2), BIAS), .no_grad = true, EXPECT(0.97068776924864364, 0.037326887344129457)),
	LINEAR("tanh", WITH(SL_TANH), 3, (REAL(70, 200), REAL(200, 300), REAL(300)), .no_grad = true, .tolerance = 1e-4),
	LINEAR("gelu", WITH(SL_GELU), 3, (REAL(70, 30), REAL(30, 1100), REAL(1100)), .no_grad = true, .tolerance = 1e-4),
	LINEAR("softplus", WITH(SL_SOFTPLUS), 3, (REAL(3, 2, 7), REAL(7, 5), REAL(5)), .no_grad = true),
	LINEAR("relu, NaN in the bias", WITH(SL_RELU), 3, (A(2, 1), B(1, 2), NAN_BIAS), .no_grad = true, EXPECT(NAN, 1.5, NAN, 0)),
	LINEAR("few rows, transposed weight", TW, 3, (REAL(60, 100), REAL(600, 100), REAL(600)), .tolerance = 1e-4, .no_grad = true),
	LINEAR("no such activation", WITH(6), 2, (REAL(2, 4), REAL(4, 2)), REJECT(SL_EINVAL)),
	LINEAR("no rows", W, 3, (REAL(0, 4), REAL(4, 5), REAL(5))),
	LINEAR("no inputs: the bias", W, 3, (REAL(2, 0), REAL(0, 2), BIAS), EXPECT(0.5, -1, 0.5, -1)),
	LINEAR("no inputs, no bias", W, 2, (REAL(2, 0), REAL(0, 2)), EXPECT(0, 0, 0, 0)),
	LINEAR("no units", W, 3, (REAL(2, 3), REAL(3, 0), REAL(0))),
	LINEAR("features differ", W, 3, (REAL(2, 4), REAL(5, 3), REAL(3)), REJECT(SL_ESHAPE)),
	LINEAR("features differ, transposed", TW, 3, (REAL(2, 4), REAL(4, 3), REAL(3)), REJECT(SL_ESHAPE)),
	LINEAR("bias of another size", W, 3, (REAL(2, 4), REAL(4, 3), REAL(4)), REJECT(SL_ESHAPE)),
	LINEAR("bias with two axes", W, 3, (REAL(2, 4), REAL(4, 3), REAL(1, 3)), REJECT(SL_ESHAPE)),
	LINEAR("weight with one axis", W, 2, (REAL(2, 4), REAL(4)), REJECT(SL_ESHAPE)),
	LINEAR("integers", W, 2, (WHOLE(2, 4), WHOLE(4, 2)), REJECT(SL_EDTYPE)),
	LINEAR("one input", W, 1, (REAL(2, 4)), REJECT(SL_EINVAL)),

	GRAD("known values", BACK(false, true, 0), 3, (A(3, 4), B(4, 2), B(3, 2)),
	     EXPECT(1.25, 0, -0.375, 3.5, 0, 5, 1, -1, -0.375, 1, 0.3125, -1.25)),
	GRAD("transposed weight", BACK(true, true, 0), 3, (A(3, 4), B(2, 4), B(3, 2)),
	     EXPECT(0.75, 0.625, 0.5, 2.5, -2, 0, 7, 0, -0.625, -0.1875, 1.25, -0.75)),
	GRAD("relu", BACK(false, true, SL_RELU), 4, (A(3, 4), B(4, 2), B(3, 2), A(3, 2)),
	     EXPECT(1, -1, -0.5, 3, 0, 5, 1, -1, 0.125, 0.5, 0.0625, 0.25)),
	GRAD("without dx", BACK(false, false, SL_RELU), 4, (SIZES(3, 4, 2))),
	GRAD("columns in parts", BACK(false, true, SL_RELU), 4, (SIZES(70, 3, 4))),
	GRAD("columns in parts, as they are", BACK(false, true, 0), 3, (A(70, 3), B(3, 4), B(70, 4))),
	GRAD("a wide sum", WIDE(SL_RELU), 4, (SIZES(70, 3, 4))),
	GRAD("sigmoid", BACK(false, true, SL_SIGMOID), 4, (SIZES(70, 30, 20)), .tolerance = 1e-4),
	GRAD("tanh", BACK(false, true, SL_TANH), 4, (SIZES(64, 300, 100)), .tolerance = 1e-4),
	GRAD("gelu", BACK(false, true, SL_GELU), 4, (SIZES(5, 7, 1100))),
	GRAD("softplus", BACK(false, true, SL_SOFTPLUS), 4, (SIZES(2, 3, 4))),
	GRAD("three axes", BACK(false, true, 0), 3, (REAL(2, 3, 4), REAL(4, 5), REAL(2, 3, 5))),
	GRAD("one axis", BACK(false, true, 0), 3, (REAL(4), REAL(4, 5), REAL(5))),
	GRAD("in blocks", BACK(false, true, SL_RELU), 4, (SIZES(60, 530, 90)), .tolerance = 1e-4),
	GRAD("in blocks, without dx", BACK(false, false, 0), 3, (REAL(60, 400), REAL(400, 90), REAL(60, 90)), .tolerance = 1e-4),
	GRAD("few rows, transposed weight", BACK(true, true, 0), 3, (TURNED(60, 300, 90)), .tolerance = 1e-4),
	GRAD("many rows", BACK(false, true, SL_RELU), 4, (SIZES(700, 70, 80)), .tolerance = 1e-4),
	GRAD("size 1", BACK(false, true, SL_RELU), 4, (SIZES(1, 1, 1))),
	GRAD("no rows", BACK(false, true, SL_RELU), 4, (SIZES(0, 4, 5))),
	GRAD("no inputs", BACK(false, true, SL_RELU), 4, (SIZES(3, 0, 5))),
	GRAD("no units", BACK(false, true, SL_RELU), 4, (SIZES(3, 4, 0))),
	GRAD("NaN", BACK(false, true, SL_RELU), 4, (NANS(3, 4), B(4, 2), NANS(3, 2), A(3, 2))),
	GRAD("no result to go back through", BACK(false, true, SL_RELU), 3, (A(3, 4), B(4, 2), B(3, 2)), .reject = SL_EINVAL),
	GRAD("a result and no activation", BACK(false, true, 0), 4, (SIZES(3, 4, 2)), .reject = SL_EINVAL),
	GRAD("no such activation", BACK(false, true, 17), 4, (SIZES(3, 4, 2)), .reject = SL_EINVAL),
	GRAD("dy of another shape", BACK(false, true, 0), 3, (REAL(3, 4), REAL(4, 2), REAL(2, 3)), .reject = SL_ESHAPE),
	GRAD("features differ", BACK(false, true, 0), 3, (REAL(3, 5), REAL(4, 2), REAL(3, 2)), .reject = SL_ESHAPE),
	GRAD("integers", BACK(false, true, 0), 3, (WHOLE(3, 4), WHOLE(4, 2), WHOLE(3, 2)), .reject = SL_EDTYPE),

	GRAD_ADD("known values", BACK(false, true, 0), 5, (SUM(4, 2), SUM(2), A(3, 4), B(4, 2), B(3, 2)),
		 EXPECT(4.5, -0.25, -3.75, 5.375, 2.75, 4.125, -3, 10.5)),
	GRAD_ADD("transposed weight", BACK(true, true, 0), 5, (TURNED_ADD(7, 4, 5))),
	GRAD_ADD("without dx", BACK(false, false, SL_RELU), 6, (SIZES_ADD(3, 4, 2))),
	GRAD_ADD("tanh", BACK(false, true, SL_TANH), 6, (SIZES_ADD(64, 300, 100)), .tolerance = 1e-4),
	GRAD_ADD("three axes", BACK(false, true, 0), 5, (REAL(4, 5), REAL(5), REAL(2, 3, 4), REAL(4, 5), REAL(2, 3, 5))),
	GRAD_ADD("in blocks", BACK(false, true, SL_RELU), 6, (SIZES_ADD(60, 530, 90)), .tolerance = 1e-4),
	GRAD_ADD("few rows, transposed weight", BACK(true, true, 0), 5, (TURNED_ADD(60, 300, 90)), .tolerance = 1e-4),
	GRAD_ADD("no rows: the sums", BACK(false, true, SL_RELU), 6, (SIZES_ADD(0, 4, 5))),
	GRAD_ADD("no inputs", BACK(false, true, SL_RELU), 6, (SIZES_ADD(3, 0, 5))),
	GRAD_ADD("no units", BACK(false, true, SL_RELU), 6, (SIZES_ADD(3, 4, 0))),
	GRAD_ADD("NaN", BACK(false, true, 0), 5, (NANS(4, 2), NANS(2), A(3, 4), B(4, 2), B(3, 2))),
	GRAD_ADD("a sum of another shape", BACK(false, true, 0), 5, (SUM(2, 4), SUM(2), A(3, 4), B(4, 2), B(3, 2)), .reject = SL_ESHAPE),
	GRAD_ADD("a bias' sum of another shape", BACK(false, true, 0), 5, (SUM(4, 2), SUM(4), A(3, 4), B(4, 2), B(3, 2)), .reject = SL_ESHAPE),
	GRAD_ADD("no sums", BACK(false, true, 0), 3, (A(3, 4), B(4, 2), B(3, 2)), .reject = SL_EINVAL),

	DOT_ADD("known values", PLAIN, SUM(3, 5), A(3, 4), B(4, 5),
		EXPECT(7.75, -5.5, -0.25, 11.75, 5.625, 3.5, 2.5, 13, -2, 1.5, 3.875, 2.75, 8.125, 3.75, 3.75)),
	DOT_ADD("first transposed", TA, REAL(3, 5), REAL(4, 3), REAL(4, 5)),
	DOT_ADD("second transposed", TB, REAL(3, 5), REAL(3, 4), REAL(5, 4)),
	DOT_ADD("both transposed", TT, REAL(3, 5), REAL(4, 3), REAL(5, 4)),
	DOT_ADD("large", TA, REAL(130, 150), REAL(257, 130), REAL(257, 150), .tolerance = 1e-4),
	DOT_ADD("a row", PLAIN, REAL(1, 128), REAL(1, 256), REAL(256, 128)),
	DOT_ADD("no rows", PLAIN, REAL(0, 2), REAL(0, 3), REAL(3, 2)),
	DOT_ADD("empty sums: what was there", PLAIN, SUM(2, 3), REAL(2, 0), REAL(0, 3), EXPECT(1, 2, 1, 2, 1, 2)),
	DOT_ADD("NaN", PLAIN, NANS(2, 2), A(2, 3), B(3, 2)),
	DOT_ADD("a sum of another shape", PLAIN, SUM(5, 3), A(3, 4), B(4, 5), .reject = SL_ESHAPE),
	DOT_ADD("inner sizes", PLAIN, SUM(2, 3), REAL(2, 3), REAL(2, 3), .reject = SL_ESHAPE),
	DOT_ADD("vectors", PLAIN, SUM(1, 1), REAL(3), REAL(3), .reject = SL_ESHAPE),
	DOT_ADD("integers", PLAIN, WHOLE(2, 2), WHOLE(2, 3), WHOLE(3, 2), .reject = SL_EDTYPE),

	SGD("plain", STEP(0, false, true, 0), 4, (B(4, 2), BIAS, A(3, 4), B(3, 2)),
	    EXPECT(1.25, 0, -0.375, 3.5, 0, 5, 1, -1, -0.375, 1, 0.3125, -1.25)),
	SGD("relu, decay", STEP(0.25, false, true, SL_RELU), 5, (B(4, 2), BIAS, A(3, 4), B(3, 2), A(3, 2)),
	    EXPECT(1, -1, -0.5, 3, 0, 5, 1, -1, 0.125, 0.5, 0.0625, 0.25)),
	SGD("without dx", STEP(0, false, false, SL_TANH), 5, (SIZES_SGD(7, 4, 5))),
	SGD("transposed weight", STEP(0.01, true, true, 0), 4, (TURNED_SGD(7, 4, 5))),
	SGD("transposed weight, few rows", STEP(0, true, true, 0), 4, (TURNED_SGD(60, 300, 90)), .tolerance = 1e-4),
	SGD("in blocks", STEP(0.01, false, true, SL_RELU), 5, (SIZES_SGD(60, 530, 90)), .tolerance = 1e-4),
	SGD("many rows", STEP(0, false, true, SL_RELU), 5, (SIZES_SGD(700, 70, 80)), .tolerance = 1e-4),
	SGD("no rows", STEP(0.5, false, true, SL_RELU), 5, (SIZES_SGD(0, 4, 5))),
	SGD("no inputs", STEP(0.5, false, true, SL_RELU), 5, (SIZES_SGD(3, 0, 5))),
	SGD("no units", STEP(0.5, false, true, SL_RELU), 5, (SIZES_SGD(3, 4, 0))),
	SGD("bias of another size", STEP(0, false, true, 0), 4, (B(4, 2), REAL(3), A(3, 4), B(3, 2)), .reject = SL_ESHAPE),
	SGD("no bias", STEP(0, false, true, 0), 3, (B(4, 2), A(3, 4), B(3, 2)), .reject = SL_EINVAL),
	{0},
};
