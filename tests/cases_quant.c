/* Cases of the operations on quantised tensors.  Expected values follow from the definitions. */
#include <starling.h>

#include "op_inner.h"
#include "quant/nbits.h"
#include "cases.h"

/* clang-format off */

#define BYTES(...) {SL_UINT8, DIMS(__VA_ARGS__), 0, 256, {0}, 0}
#define WEIGHTS(...) {SL_UINT8, DIMS(__VA_ARGS__), 1, 256, {0}, 0}
#define SUMS(...) {SL_INT32, DIMS(__VA_ARGS__), -1000, 1000, {0}, 0}
#define REAL(...) {SL_FLOAT32, DIMS(__VA_ARGS__), -30, 30, {0}, 0}
#define SCALES(...) {SL_FLOAT32, DIMS(__VA_ARGS__), 0.001, 0.01, {0}, 0}
#define WHOLE(...) {SL_FLOAT32, DIMS(2), 0, 0, {__VA_ARGS__}, SL_COUNT_(double, __VA_ARGS__)}
#define ONE(x) {SL_FLOAT32, DIMS(1), 0, 0, {x}, 1}
#define GIVEN(type, shape, ...) {type, DIMS shape, 0, 0, {__VA_ARGS__}, SL_COUNT_(double, __VA_ARGS__)}
#define EXPECT(...) .expect = {__VA_ARGS__}, .nexpect = SL_COUNT_(double, __VA_ARGS__)
#define OWN .own_types = true, .no_grad = true
#define LIST(...) {__VA_ARGS__}
#define CASE(op_name, what, n, inputs, ...) {.op = #op_name, .label = what, .nin = n, .in = LIST inputs, OWN, __VA_ARGS__}
#define RUNS(n) .attrs = &(const struct slp_quantize_attrs){n}
#define BINARY(k, ...) .attrs = &(const struct slp_qbinary_attrs){.kind = k, __VA_ARGS__}
#define POOL(...) .attrs = &(const struct slp_qpool_attrs){__VA_ARGS__}
#define CONV(ic, oc, kh, kw, ...) .attrs = &(const struct slp_qconv_attrs){.channels = {ic, oc}, .kernel = {kh, kw}, __VA_ARGS__}
#define HOW(s, p, d, g) .stride = {s, s}, .pad = {p, p, p, p}, .dilation = {d, d}, .groups = g
#define NBITS(...) .attrs = &(const struct slp_nbits_attrs){__VA_ARGS__}
#define MATMUL(...) .attrs = &(const struct slp_qmatmul_attrs){__VA_ARGS__}

const struct slp_case slp_cases_quant[] = {
	CASE(quantize, "ties go to even numbers, bounds", 3, (GIVEN(SL_FLOAT32, (6), 0.5, 1.5, -2, 1000, -1000, 2.5), ONE(1), ONE(3)), RUNS(0), EXPECT(3, 5, 1, 255, 0, 5)),
	CASE(quantize, "large", 3, (REAL(3, 50000), ONE(0.1), ONE(128)), RUNS(0)),
	CASE(quantize, "a scale a channel", 3, (REAL(2, 2, 21), WHOLE(0.1, 0.3), WHOLE(0, 128)), RUNS(21)),
	CASE(quantize, "integers", 3, (SUMS(3), ONE(1), ONE(0)), RUNS(0), .reject = SL_EDTYPE),
	CASE(quantize, "scales that do not fit", 3, (REAL(3, 5), WHOLE(0.1, 0.3), WHOLE(0, 128)), RUNS(5), .reject = SL_ESHAPE),
	CASE(quantize, "two scales for all", 3, (REAL(4), WHOLE(0.1, 0.3), WHOLE(0, 128)), RUNS(0), .reject = SL_EINVAL),
	CASE(dequantize, "by hand", 3, (GIVEN(SL_UINT8, (3), 0, 10, 255), ONE(0.5), ONE(10)), RUNS(0), EXPECT(-5, 0, 122.5)),
	CASE(dequantize, "large", 3, (BYTES(3, 50000), ONE(0.1), ONE(128)), RUNS(0)),
	CASE(dequantize, "a scale a channel", 3, (BYTES(2, 2, 21), WHOLE(0.1, 0.3), WHOLE(0, 128)), RUNS(21)),
	CASE(dequantize, "floats", 3, (REAL(3), ONE(1), ONE(0)), RUNS(0), .reject = SL_EDTYPE),

	CASE(qbinary, "the sum by hand", 2, (GIVEN(SL_UINT8, (3), 1, 200, 3), GIVEN(SL_UINT8, (3), 7, 80, 250)), BINARY(SLP_Q_ADD, .zero = {5, 6, 10}, .scale = {0.1, 0.05, 0.07}), EXPECT(5, 255, 181)),
	CASE(qbinary, "the product by hand", 2, (GIVEN(SL_UINT8, (3), 1, 200, 3), GIVEN(SL_UINT8, (3), 7, 80, 250)), BINARY(SLP_Q_MUL, .zero = {5, 6, 10}, .scale = {0.1, 0.05, 0.07}), EXPECT(10, 255, 0)),
	CASE(qbinary, "a large sum", 2, (BYTES(3, 50000), BYTES(3, 50000)), BINARY(SLP_Q_ADD, .zero = {5, 128, 100}, .scale = {0.125, 0.0625, 0.25})),
	CASE(qbinary, "a large product", 2, (BYTES(3, 50000), BYTES(3, 50000)), BINARY(SLP_Q_MUL, .zero = {5, 128, 100}, .scale = {0.125, 0.0625, 2})),
	CASE(qbinary, "other shapes", 2, (BYTES(3, 5), BYTES(5)), BINARY(SLP_Q_ADD, .scale = {1, 1, 1}), .reject = SL_ESHAPE),
	CASE(qbinary, "no scale", 2, (BYTES(5), BYTES(5)), BINARY(SLP_Q_ADD, .scale = {1, 1, 0}), .reject = SL_EINVAL),

	CASE(qpool2d, "largest by hand", 1, (GIVEN(SL_UINT8, (1, 2, 2, 2), 1, 50, 200, 60, 3, 255, 40, 0)), POOL(.max = 1, .kernel = {2, 2}, .stride = {1, 1}, .size = {1, 1}), EXPECT(200, 255)),
	CASE(qpool2d, "mean by hand", 1, (GIVEN(SL_UINT8, (1, 2, 2, 2), 1, 50, 200, 60, 3, 255, 40, 0)), POOL(.kernel = {2, 2}, .stride = {1, 1}, .size = {1, 1}, .x_zero = 100, .y_zero = 90, .scale = 0.05 / 0.06), EXPECT(58, 83)),
	CASE(qpool2d, "largest, padded", 1, (BYTES(2, 9, 8, 37)), POOL(.max = 1, .kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1, 1, 1}, .size = {5, 4})),
	CASE(qpool2d, "mean of what is inside", 1, (BYTES(2, 9, 8, 37)), POOL(.kernel = {3, 2}, .stride = {2, 2}, .pad = {1, 1, 1, 1}, .size = {5, 5}, .x_zero = 3, .y_zero = 7, .scale = 1.3)),
	CASE(qpool2d, "mean, with the border", 1, (BYTES(2, 9, 8, 37)), POOL(.kernel = {3, 2}, .stride = {2, 2}, .pad = {1, 1, 1, 1}, .size = {5, 5}, .include_pad = 1, .x_zero = 3, .y_zero = 7, .scale = 1.3)),
	CASE(qpool2d, "windows outside", 1, (BYTES(1, 4, 4, 3)), POOL(.max = 1, .kernel = {2, 2}, .stride = {2, 2}, .size = {3, 2}), .reject = SL_ESHAPE),

	CASE(qconv2d, "by hand", 4, (GIVEN(SL_UINT8, (1, 1, 2, 2), 3, 4, 10, 20), GIVEN(SL_UINT8, (1, 2, 1, 1), 129, 126), ONE(0.5), GIVEN(SL_INT32, (1), 100)), CONV(2, 1, 1, 1, HOW(1, 0, 1, 1), .x_zero = 2, .y_zero = 5), EXPECT(54, 41)), /* 100 + 1 - 4, 100 + 8 - 36: 48.5 + 5, 36 + 5 */
	CASE(qconv2d, "3 × 3", 4, (BYTES(2, 9, 7, 32), WEIGHTS(48, 32, 3, 3), SCALES(48), SUMS(48)), CONV(32, 48, 3, 3, HOW(1, 1, 1, 1), .x_zero = 128, .y_zero = 100)),
	CASE(qconv2d, "sums", 3, (BYTES(1, 9, 7, 20), WEIGHTS(24, 20, 3, 3), SCALES(24)), CONV(20, 24, 3, 3, HOW(2, 1, 1, 1), .x_zero = 7, .out = SLP_Q_INT32)),
	CASE(qconv2d, "floats", 4, (BYTES(1, 9, 7, 20), WEIGHTS(24, 20, 1, 1), SCALES(24), SUMS(24)), CONV(20, 24, 1, 1, HOW(1, 0, 1, 1), .x_zero = 7, .out = SLP_Q_FLOAT32)),
	CASE(qconv2d, "few channels, stride, padding", 4, (BYTES(1, 17, 15, 3), WEIGHTS(16, 3, 7, 7), SCALES(16), SUMS(16)), CONV(3, 16, 7, 7, HOW(2, 3, 1, 1), .x_zero = 114)),
	CASE(qconv2d, "a channel a group", 4, (BYTES(1, 9, 9, 40), WEIGHTS(40, 1, 3, 3), SCALES(40), SUMS(40)), CONV(40, 40, 3, 3, HOW(1, 1, 1, 40), .x_zero = 3, .y_zero = 128)),
	CASE(qconv2d, "groups", 4, (BYTES(1, 6, 6, 32), WEIGHTS(32, 16, 3, 3), SCALES(32), SUMS(32)), CONV(32, 32, 3, 3, HOW(1, 1, 1, 2), .x_zero = 3, .y_zero = 128)),
	CASE(qconv2d, "uneven borders, dilation", 4, (BYTES(1, 9, 9, 16), WEIGHTS(16, 16, 3, 2), SCALES(16), SUMS(16)), CONV(16, 16, 3, 2, .stride = {1, 2}, .pad = {0, 1, 2, 3}, .dilation = {2, 1}, .groups = 1, .x_zero = 9)),
	CASE(qconv2d, "no images", 4, (BYTES(0, 5, 5, 16), WEIGHTS(16, 16, 1, 1), SCALES(16), SUMS(16)), CONV(16, 16, 1, 1, HOW(1, 0, 1, 1))),
	CASE(qconv2d, "other weights", 3, (BYTES(1, 5, 5, 16), WEIGHTS(16, 15, 1, 1), SCALES(16)), CONV(16, 16, 1, 1, HOW(1, 0, 1, 1)), .reject = SL_ESHAPE),
	CASE(qconv2d, "floats for bytes", 3, (REAL(1, 5, 5, 16), WEIGHTS(16, 16, 1, 1), SCALES(16)), CONV(16, 16, 1, 1, HOW(1, 0, 1, 1)), .reject = SL_EDTYPE),
	CASE(qconv2d, "a kernel larger than the image", 3, (BYTES(1, 2, 2, 16), WEIGHTS(16, 16, 3, 3), SCALES(16)), CONV(16, 16, 3, 3, HOW(1, 0, 1, 1)), .reject = SL_ESHAPE),
	CASE(qconv2d_pack, "without a size", 1, (WEIGHTS(16, 16, 1, 1)), CONV(16, 16, 1, 1, HOW(1, 0, 1, 1), .images = 1, .size = {5, 5}), .reject = SL_EINVAL),
	CASE(qconv2d_pack, "other sizes", 1, (WEIGHTS(16, 15, 1, 1)), CONV(16, 16, 1, 1, HOW(1, 0, 1, 1), .packed = 256, .images = 1, .size = {5, 5}), .reject = SL_ESHAPE),

	CASE(qmatmul, "by hand", 4, (GIVEN(SL_UINT8, (2, 2), 1, 200, 3, 255), GIVEN(SL_UINT8, (2, 2), 7, 8, 100, 5), ONE(5), ONE(0.01)), MATMUL(.b_zero = 6, .y_zero = 10), EXPECT(193, 8, 245, 7)),
	CASE(qmatmul, "sums by hand", 4, (GIVEN(SL_UINT8, (2, 3), 1, 200, 3, 255, 5, 6), GIVEN(SL_UINT8, (3, 2), 127, 130, 228, 28, 133, 135), ONE(7), ONE(1)), MATMUL(.b_zero = 129, .out = SLP_Q_INT32), EXPECT(19103, -19523, -698, 444)),
	CASE(qmatmul, "bytes", 5, (BYTES(33, 70), WEIGHTS(70, 65), ONE(120), SCALES(65), SUMS(65)), MATMUL(.b_zero = 128, .y_zero = 100)),
	CASE(qmatmul, "floats, of b turned", 5, (BYTES(33, 70), WEIGHTS(65, 70), ONE(120), ONE(0.003), SUMS(65)), MATMUL(.b_zero = 128, .out = SLP_Q_FLOAT32, .b_transposed = true)),
	CASE(qmatmul, "several, both with zero points", 4, (BYTES(2, 3, 17, 20), BYTES(2, 3, 20, 19), ONE(120), ONE(0.003)), MATMUL(.b_zero = 100, .y_zero = 9)),
	CASE(qmatmul, "several, of b turned", 4, (BYTES(3, 17, 20), BYTES(3, 19, 20), ONE(120), ONE(0.003)), MATMUL(.b_zero = 100, .y_zero = 9, .b_transposed = true)),
	CASE(qmatmul, "one b for several", 4, (BYTES(2, 3, 17, 20), WEIGHTS(20, 19), ONE(0), SCALES(19)), MATMUL(.b_zero = 128, .out = SLP_Q_INT32)),
	CASE(qmatmul, "one row", 4, (BYTES(1, 300), WEIGHTS(300, 100), ONE(20), SCALES(100)), MATMUL(.b_zero = 128)),
	CASE(qmatmul, "no rows", 4, (BYTES(0, 30), WEIGHTS(30, 10), ONE(20), SCALES(10)), MATMUL(.b_zero = 128)),
	CASE(qmatmul, "nothing to add up", 5, (BYTES(3, 0), WEIGHTS(0, 4), ONE(20), ONE(1), GIVEN(SL_INT32, (4), 1, 2, 3, 4)), MATMUL(.b_zero = 128, .out = SLP_Q_INT32), EXPECT(1, 2, 3, 4)),
	CASE(qmatmul, "other sizes", 4, (BYTES(3, 30), WEIGHTS(31, 10), ONE(20), SCALES(10)), MATMUL(.b_zero = 128), .reject = SL_ESHAPE),
	CASE(qmatmul, "scales for rows", 4, (BYTES(3, 30), WEIGHTS(30, 10), ONE(20), SCALES(3)), MATMUL(.b_zero = 128), .reject = SL_ESHAPE),
	CASE(qmatmul_pack, "without a size", 1, (WEIGHTS(16, 16)), MATMUL(.rows = 1, .inner = 16, .cols = 16), .reject = SL_EINVAL),
	CASE(qmatmul_pack, "other sizes", 1, (WEIGHTS(16, 15)), MATMUL(.rows = 1, .inner = 16, .cols = 16, .packed = 256), .reject = SL_ESHAPE),

	CASE(nbits_linear, "one row", 3, (REAL(1, 64), BYTES(9, 32), SCALES(9, 2)), NBITS(4, 32, 0)),
	CASE(nbits_linear, "zero points, a bias, rows by four and one", 5, (REAL(2, 3, 96), BYTES(9, 48), SCALES(9, 3), BYTES(9, 2), REAL(9)), NBITS(4, 32, 1)),
	CASE(nbits_linear, "real zero points, a last block that is not full", 4, (REAL(3, 300), BYTES(70, 192), SCALES(70, 3), SCALES(70, 3)), NBITS(4, 128, 2)),
	CASE(nbits_linear, "small blocks", 4, (REAL(3, 40), BYTES(9, 24), SCALES(9, 3), BYTES(9, 2)), NBITS(4, 16, 1)),
	CASE(nbits_linear, "many rows", 5, (REAL(37, 100), BYTES(70, 64), SCALES(70, 4), BYTES(70, 2), REAL(70)), NBITS(4, 32, 1)),
	CASE(nbits_linear, "two bits", 4, (REAL(3, 64), BYTES(9, 16), SCALES(9, 4), BYTES(9, 1)), NBITS(2, 16, 1)),
	CASE(nbits_linear, "eight bits", 4, (REAL(3, 64), BYTES(9, 64), SCALES(9, 2), BYTES(9, 2)), NBITS(8, 32, 1)),
	CASE(nbits_linear, "no rows", 3, (REAL(0, 64), BYTES(9, 32), SCALES(9, 2)), NBITS(4, 32, 0)),
	CASE(nbits_linear, "three bits", 3, (REAL(3, 64), BYTES(9, 24), SCALES(9, 2)), NBITS(3, 32, 0), .reject = SL_EINVAL),
	CASE(nbits_linear, "a block of 24", 3, (REAL(3, 24), BYTES(9, 12), SCALES(9, 1)), NBITS(4, 24, 0), .reject = SL_EINVAL),
	CASE(nbits_linear, "no zero points", 3, (REAL(3, 64), BYTES(9, 32), SCALES(9, 2)), NBITS(4, 32, 1), .reject = SL_EINVAL),
	CASE(nbits_linear, "other weights", 3, (REAL(3, 64), BYTES(9, 31), SCALES(9, 2)), NBITS(4, 32, 0), .reject = SL_ESHAPE),
	CASE(nbits_linear, "other scales", 3, (REAL(3, 64), BYTES(9, 32), SCALES(9, 3)), NBITS(4, 32, 0), .reject = SL_ESHAPE),
	CASE(nbits_linear, "floats for bytes", 3, (REAL(3, 64), REAL(9, 32), SCALES(9, 2)), NBITS(4, 32, 0), .reject = SL_EDTYPE),
	{0},
};
