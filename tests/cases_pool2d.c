/* Cases of pooling and its gradients.  The expected values were computed with PyTorch, in double precision; those with
 * NaN by hand. */
#include <math.h>
#include <starling.h>

#include "../codelets/pool/pool2d.h"
#include "cases.h"

/* clang-format off */

#define REAL(...) {SL_FLOAT32, DIMS(__VA_ARGS__), -1, 1, {0}, 0}
#define BELOW_0(...) {SL_FLOAT32, DIMS(__VA_ARGS__), -3, -2, {0}, 0}
#define WHOLE(...) {SL_INT32, DIMS(__VA_ARGS__), -9, 9, {0}, 0}
#define A(...) {SL_FLOAT32, DIMS(__VA_ARGS__), 0, 0, {1, -2, 3, 0.5, -1, 2, 0, 4, -3, 1.5, 2.5}, 11}
#define B(...) {SL_FLOAT32, DIMS(__VA_ARGS__), 0, 0, {1, 0.5, -1, 2, -0.5, 0.25, 3}, 7}
#define NANS(...) {SL_FLOAT32, DIMS(__VA_ARGS__), 0, 0, {1, 2, NAN, 0, 4, 3, NAN, 7}, 8}
#define TIES(...) {SL_FLOAT32, DIMS(__VA_ARGS__), 0, 0, {1, 1, 0, 2, 2}, 5}
#define COUNTING(...) {SL_FLOAT32, DIMS(__VA_ARGS__), 0, 0, {1, 2, 3, 4, 5, 6, 7, 8}, 8}
#define EXPECT(...) .expect = {__VA_ARGS__}, .nexpect = SL_COUNT_(double, __VA_ARGS__)
#define REJECT(status) .reject = status, .no_grad = true

#define MAX_(...) {.type = SL_POOL_MAX, __VA_ARGS__}
#define AVG_(...) {.type = SL_POOL_AVG, __VA_ARGS__}
#define MAX(what, opts, x, ...) {.op = "max_pool2d", .label = what, .attrs = &(const struct slp_pool2d_attrs){MAX_ opts}, .nin = 1, .in = {x}, __VA_ARGS__}
#define AVG(what, opts, x, ...) {.op = "avg_pool2d", .label = what, .attrs = &(const struct slp_pool2d_attrs){AVG_ opts}, .nin = 1, .in = {x}, __VA_ARGS__}
#define MAX_GRAD(what, opts, x, dy, ...) {.op = "max_pool2d_grad", .label = what, .attrs = &(const struct slp_pool2d_grad){.of.pool = MAX_ opts}, .nin = 2, .in = {x, dy}, __VA_ARGS__}
#define AVG_GRAD(what, opts, h, w, dy, ...) {.op = "avg_pool2d_grad", .label = what, .attrs = &(const struct slp_pool2d_grad){.of.pool = AVG_ opts, .size = {h, w}}, .nin = 1, .in = {dy}, __VA_ARGS__}

#define LIST(...) {__VA_ARGS__}
#define ADDED(name, what, how, inputs, ...) {.op = #name, .label = what, .attrs = &(const struct slp_pool2d_attrs)LIST how, .nin = 1, .in = LIST inputs, .no_grad = true, __VA_ARGS__}
#define ADDED_BOTH(what, opts, x, y, inputs, ...)                                                                      \
	ADDED(max_pool2d, what, (.pool = MAX_ opts, .x_layout = (x) ? SLP_LAYOUT_N16 : 0, .y_layout = (y) ? SLP_LAYOUT_N16 : 0), inputs, __VA_ARGS__),                 \
	ADDED(avg_pool2d, what, (.pool = AVG_ opts, .x_layout = (x) ? SLP_LAYOUT_N16 : 0, .y_layout = (y) ? SLP_LAYOUT_N16 : 0), inputs, __VA_ARGS__)
/* The type in .of.pool is not read. */
#define BACK(which, what, opts, added, n, inputs, ...) {.op = #which "_pool2d_grad", .label = what, .attrs = &(const struct slp_pool2d_grad){.of.pool = LIST opts, STRIP added}, .nin = n, .in = LIST inputs, .no_grad = true, __VA_ARGS__}
#define SUMS(which, what, opts, added, n, inputs, ...) {.op = #which "_pool2d_grad_sums", .label = what, .attrs = &(const struct slp_pool2d_grad){.of.pool = LIST opts, STRIP added}, .nin = n, .in = LIST inputs, .no_grad = true, __VA_ARGS__}
#define SUMS_BOTH(what, opts, added, inputs, ...) SUMS(max, what, opts, added, 2, inputs, __VA_ARGS__), SUMS(avg, what, opts, added, 2, inputs, __VA_ARGS__)
#define STRIP(...) __VA_ARGS__
#define BACK_BOTH(what, opts, added, inputs, ...) BACK(max, what, opts, added, 2, inputs, __VA_ARGS__), BACK(avg, what, opts, added, 2, inputs, __VA_ARGS__)

/* BOTH(..., REAL, (2, 3, 4, 4)): names of inputs apart from their arguments, for a macro in a macro. */
#define BOTH(what, opts, fill, dims, ...) MAX(what, opts, fill dims, __VA_ARGS__), AVG(what, opts, fill dims, __VA_ARGS__)
#define BOTH_GRADS(what, opts, n, c, h, w, oh, ow, without_grad)                                                       \
	MAX_GRAD(what, opts, REAL(n, c, h, w), REAL(n, c, oh, ow)),                                                    \
	AVG_GRAD(what, opts, h, w, REAL(n, c, oh, ow), .no_grad = without_grad)

const struct slp_case slp_cases_pool2d[] = {
	MAX("2 × 2", (.kernel = {2}), A(1, 2, 4, 5), EXPECT(2, 4, 2.5, 4, 2.5, 2, 3, 2.5)),
	MAX("3 × 3, stride, padding", (.kernel = {3}, .stride = {2}, .pad = {1, 1}), A(1, 2, 4, 5), .no_grad = true, EXPECT(2, 4, 1.5, 2.5, 4, 4, 2.5, 2.5, 4, 3, 2.5, 4)),
	MAX("uneven kernel", (.kernel = {2, 3}), A(1, 2, 4, 5), EXPECT(4, 2.5, 2.5, 3)),
	MAX("whole image", (.global = true), A(1, 2, 4, 5), .no_grad = true, EXPECT(4, 4)),
	MAX("padding is not an element", (.kernel = {2}, .pad = {1, 1}), BELOW_0(1, 1, 2, 2)),
	MAX("NaN", (.kernel = {1, 2}), NANS(1, 1, 2, 4), .no_grad = true, EXPECT(2, NAN, 4, NAN)),
	MAX("NaN in rows", (.kernel = {2}), NANS(2, 1, 4, 20), .no_grad = true),
	AVG("2 × 2", (.kernel = {2}), A(1, 2, 4, 5), EXPECT(0.25, 1.125, 1.125, 1.25, 0.875, 0.25, 0.5, 1.125)),
	AVG("3 × 3, stride, padding", (.kernel = {3}, .stride = {2}, .pad = {1, 1}), A(1, 2, 4, 5), EXPECT(0.1111111111, 0.2777777778, -0.2222222222, 0.7222222222, 1, 0.3333333333, 0.3888888889, 0.2777777778, 0.5555555556, 0.1666666667, 0.8333333333, 0.5555555556)),
	AVG("without padding", (.kernel = {3}, .stride = {2}, .pad = {1, 1}, .exclude_pad = true), A(1, 2, 4, 5), EXPECT(0.25, 0.4166666667, -0.5, 1.083333333, 1, 0.5, 0.875, 0.4166666667, 1.25, 0.25, 0.8333333333, 0.8333333333)),
	AVG("rounded up", (.kernel = {2, 3}, .stride = {2}, .ceil = true), A(1, 2, 4, 5), EXPECT(1.333333333, 0.8333333333, 0.4166666667, 0.4166666667, 1.083333333, 1.333333333, 0.5833333333, 0.4166666667)),
	AVG("rounded up, padding", (.kernel = {3}, .stride = {2}, .pad = {1, 1}, .ceil = true), A(1, 2, 4, 5), EXPECT(0.1111111111, 0.2777777778, -0.2222222222, 0.7222222222, 1, 0.3333333333, 0.1666666667, 1, 0.1666666667, 0.3888888889, 0.2777777778, 0.5555555556, 0.1666666667, 0.8333333333, 0.5555555556, 0.5833333333)),
	AVG("whole image", (.global = true), A(1, 2, 4, 5), EXPECT(0.65, 0.8)),
	AVG("NaN", (.kernel = {1, 2}), NANS(1, 1, 2, 4), .no_grad = true, EXPECT(1.5, NAN, 3.5, NAN)),
	BOTH("rows of four windows", (.kernel = {2}), REAL, (2, 3, 9, 9)),
	BOTH("rows of more than eight windows", (.kernel = {2}), REAL, (2, 1, 6, 27), .no_grad = true),
	BOTH("uneven strides", (.kernel = {3, 2}, .stride = {1, 3}, .pad = {2, 1}), REAL, (2, 2, 6, 7)),
	BOTH("rounded up, a rest", (.kernel = {3}, .stride = {3}, .pad = {2, 2}, .ceil = true), REAL, (2, 2, 5, 6)),
	BOTH("rounded up, without padding", (.kernel = {3}, .stride = {2}, .pad = {1, 1}, .ceil = true, .exclude_pad = true), REAL, (2, 2, 6, 7)),
	BOTH("overlapping", (.kernel = {3}, .stride = {1}, .pad = {1, 1}), REAL, (1, 2, 5, 20)),
	BOTH("size 1", (.kernel = {1}), REAL, (1, 1, 1, 1)),
	BOTH("whole, large", (.global = true), REAL, (2, 30, 33, 35), .no_grad = true),
	BOTH("large, 2 × 2", (.kernel = {2}), REAL, (8, 20, 26, 26), .no_grad = true),
	BOTH("large, 3 × 3", (.kernel = {3}, .stride = {2}, .pad = {1, 1}), REAL, (8, 16, 28, 29), .no_grad = true),
	BOTH("no images", (.kernel = {2}), REAL, (0, 3, 4, 4)),
	BOTH("no kernel", (.pad = {0, 0}), REAL, (1, 1, 4, 4), REJECT(SL_EINVAL)),
	BOTH("negative stride", (.kernel = {2}, .stride = {-1}), REAL, (1, 1, 4, 4), REJECT(SL_EINVAL)),
	BOTH("padding as wide as the kernel", (.kernel = {2}, .pad = {2, 0}), REAL, (1, 1, 4, 4), REJECT(SL_EINVAL)),
	BOTH("window larger than the image", (.kernel = {5}), REAL, (1, 1, 4, 4), REJECT(SL_ESHAPE)),
	BOTH("three axes", (.kernel = {2}), REAL, (1, 4, 4), REJECT(SL_ESHAPE)),
	BOTH("integers", (.kernel = {2}), WHOLE, (1, 1, 4, 4), REJECT(SL_EDTYPE)),

	MAX_GRAD("2 × 2", (.kernel = {2}), A(1, 2, 4, 5), B(1, 2, 2, 2), EXPECT(0, 0, 0, 0, 0, 1, 0, 0.5, 0, 0, -1, 0, 0, 0, 0, 0)),
	MAX_GRAD("3 × 3, stride, padding", (.kernel = {3}, .stride = {2}, .pad = {1, 1}), A(1, 2, 4, 5), B(1, 2, 2, 3), EXPECT(0, 0, 0, 0, 0, 1, 0, 0, 0, -1, 2, 0, 0, 0, 0, 0)),
	MAX_GRAD("the first of equals", (.kernel = {1, 3}, .stride = {1, 2}), TIES(1, 1, 1, 5), COUNTING(1, 1, 1, 2), EXPECT(1, 0, 0, 2, 0)),
	MAX_GRAD("the first of equals, 2 × 2", (.kernel = {2}), TIES(1, 2, 4, 8), REAL(1, 2, 2, 4)),
	MAX_GRAD("the first NaN", (.kernel = {1, 4}), NANS(1, 1, 2, 4), COUNTING(1, 1, 2, 1), EXPECT(0, 0, 1, 0, 0, 0, 2, 0)),
	MAX_GRAD("the first NaN, 2 × 2", (.kernel = {2}), NANS(1, 2, 5, 19), REAL(1, 2, 2, 9)),
	AVG_GRAD("2 × 2", (.kernel = {2}), 4, 5, B(1, 2, 2, 2), EXPECT(0.25, 0.25, 0.125, 0.125, 0, 0.25, 0.25, 0.125, 0.125, 0, -0.25, -0.25, 0.5, 0.5, 0, -0.25)),
	AVG_GRAD("3 × 3, stride, padding", (.kernel = {3}, .stride = {2}, .pad = {1, 1}), 4, 5, B(1, 2, 2, 3), EXPECT(0.1111111111, 0.1666666667, 0.05555555556, -0.05555555556, -0.1111111111, 0.3333333333, 0.3333333333, 0, -0.08333333333, -0.08333333333, 0.2222222222, 0.1666666667, -0.05555555556, -0.02777777778, 0.02777777778, 0.2222222222)),
	BOTH_GRADS("rows of four windows", (.kernel = {2}), 2, 3, 9, 9, 4, 4, false),
	BOTH_GRADS("rows of more than eight windows", (.kernel = {2}), 2, 2, 5, 27, 2, 13, true),
	BOTH_GRADS("uneven strides", (.kernel = {3, 2}, .stride = {1, 3}, .pad = {2, 1}), 2, 2, 6, 7, 8, 3, false),
	BOTH_GRADS("rounded up", (.kernel = {3}, .stride = {2}, .pad = {1, 1}, .ceil = true, .exclude_pad = true), 2, 2, 6, 7, 4, 4, false),
	BOTH_GRADS("whole image", (.global = true), 2, 3, 5, 4, 1, 1, false),
	BOTH_GRADS("large, 2 × 2", (.kernel = {2}), 8, 20, 26, 26, 13, 13, true),
	BOTH_GRADS("large, 3 × 3", (.kernel = {3}, .stride = {2}, .pad = {1, 1}), 8, 16, 28, 29, 14, 15, true),
	BOTH_GRADS("no images", (.kernel = {2}), 0, 3, 4, 4, 2, 2, false),
	MAX_GRAD("another size", (.kernel = {2}), REAL(1, 1, 4, 4), REAL(1, 1, 2, 3), REJECT(SL_ESHAPE)),
	AVG_GRAD("another size", (.kernel = {2}), 4, 4, REAL(1, 1, 3, 2), REJECT(SL_ESHAPE)),
	MAX_GRAD("integers", (.kernel = {2}), WHOLE(1, 1, 4, 4), WHOLE(1, 1, 2, 2), REJECT(SL_EDTYPE)),
	AVG_GRAD("three axes", (.kernel = {2}), 4, 4, REAL(1, 2, 2), REJECT(SL_ESHAPE)),

	/* What graph passes add. */
	ADDED(max_pool2d, "n16", (.pool = MAX_(.kernel = {2}), .x_layout = SLP_LAYOUT_N16, .y_layout = SLP_LAYOUT_N16), (A(16, 2, 4, 5)), EXPECT(2, 1.5, 4, 1, 4, 3, 1.5, 4, 3, 1.5, 4, 2, 1.5, 4, 1, 4)),
	ADDED(avg_pool2d, "n16 in x", (.pool = AVG_(.kernel = {2}), .x_layout = SLP_LAYOUT_N16), (A(16, 2, 4, 5)), EXPECT(0.125, 2.125, 0.75, 1.125, -0.375, 0.125, 0.875, 0.75, -0.375, 0.125, 0.875, 0.75, 2.875, -0.375, 0.75, 0.875)),
	ADDED(avg_pool2d, "n16 in y", (.pool = AVG_(.kernel = {2}), .y_layout = SLP_LAYOUT_N16), (A(16, 2, 4, 5)), EXPECT(0.25, 0.5, -0.5, 1.125, 0.75, 1.125, 0.875, 1.375, 1.25, 0.5, 1.25, 0.25, 0.5, -0.5, 1.125, 0.75)),
	ADDED_BOTH("n16, overlapping", (.kernel = {3}, .stride = {2}, .pad = {1, 1}, .ceil = true), true, true, (REAL(32, 3, 8, 7))),
	ADDED_BOTH("n16, whole image", (.global = true), true, true, (REAL(16, 3, 5, 4))),
	ADDED_BOTH("n16, NaN", (.kernel = {2, 3}), true, false, (NANS(16, 2, 5, 9))),
	ADDED_BOTH("n16, large", (.kernel = {2}), true, true, (REAL(32, 20, 26, 26))),
	ADDED_BOTH("n16, no images", (.kernel = {2}), true, true, (REAL(0, 3, 4, 4))),
	ADDED_BOTH("n16, 8 images", (.kernel = {2}), true, true, (REAL(8, 3, 4, 4)), .reject = SL_ESHAPE),

	ADDED(max_pool2d, "nhwc", (.pool = MAX_(.kernel = {2}), .x_layout = SLP_LAYOUT_NHWC, .y_layout = SLP_LAYOUT_NHWC), (COUNTING(1, 2, 2, 2)), EXPECT(7, 8)),
	ADDED(avg_pool2d, "nhwc", (.pool = AVG_(.kernel = {2}), .x_layout = SLP_LAYOUT_NHWC, .y_layout = SLP_LAYOUT_NHWC), (COUNTING(1, 2, 2, 2)), EXPECT(4, 5)),
	ADDED(max_pool2d, "nhwc, overlapping", (.pool = MAX_(.kernel = {3}, .stride = {2}, .pad = {1, 1}, .ceil = true), .x_layout = SLP_LAYOUT_NHWC, .y_layout = SLP_LAYOUT_NHWC), (REAL(3, 5, 8, 7))),
	ADDED(avg_pool2d, "nhwc, overlapping", (.pool = AVG_(.kernel = {3}, .stride = {2}, .pad = {1, 1}, .ceil = true), .x_layout = SLP_LAYOUT_NHWC, .y_layout = SLP_LAYOUT_NHWC), (REAL(3, 5, 8, 7))),
	ADDED(max_pool2d, "nhwc, eights", (.pool = MAX_(.kernel = {3}, .stride = {2}, .pad = {1, 1}), .x_layout = SLP_LAYOUT_NHWC, .y_layout = SLP_LAYOUT_NHWC), (REAL(2, 16, 6, 7))),
	ADDED(avg_pool2d, "nhwc, eights", (.pool = AVG_(.kernel = {3}, .stride = {2}, .pad = {1, 1}), .x_layout = SLP_LAYOUT_NHWC, .y_layout = SLP_LAYOUT_NHWC), (REAL(2, 16, 6, 7))),
	ADDED(avg_pool2d, "nhwc, whole image", (.pool = AVG_(.global = true), .x_layout = SLP_LAYOUT_NHWC, .y_layout = SLP_LAYOUT_NHWC), (REAL(3, 40, 7, 5))),
	ADDED(max_pool2d, "nhwc, NaN", (.pool = MAX_(.kernel = {2, 3}), .x_layout = SLP_LAYOUT_NHWC, .y_layout = SLP_LAYOUT_NHWC), (NANS(2, 3, 5, 9))),
	ADDED(max_pool2d, "nhwc, no images", (.pool = MAX_(.kernel = {2}), .x_layout = SLP_LAYOUT_NHWC, .y_layout = SLP_LAYOUT_NHWC), (REAL(0, 3, 4, 4))),
	ADDED(max_pool2d, "nhwc and n16", (.pool = MAX_(.kernel = {2}), .x_layout = SLP_LAYOUT_N16, .y_layout = SLP_LAYOUT_NHWC), (REAL(16, 3, 4, 4)), .reject = SL_EINVAL),
	BACK_BOTH("nhwc, overlapping", (.kernel = {3}, .stride = {2}, .pad = {1, 1}), (.of.x_layout = SLP_LAYOUT_NHWC, .of.y_layout = SLP_LAYOUT_NHWC, .relu = true), (REAL(3, 5, 9, 8), REAL(3, 5, 5, 4))),
	BACK(avg, "nhwc, whole image", (.global = true), (.of.x_layout = SLP_LAYOUT_NHWC, .of.y_layout = SLP_LAYOUT_NHWC, .size = {5, 4}), 1, (REAL(3, 40, 1, 1))),
	BACK_BOTH("nhwc, no images", (.kernel = {2}), (.of.x_layout = SLP_LAYOUT_NHWC, .of.y_layout = SLP_LAYOUT_NHWC, .relu = true), (REAL(0, 3, 4, 4), REAL(0, 3, 2, 2))),
	BACK(max, "n16", (.kernel = {2}), (.of.x_layout = SLP_LAYOUT_N16, .of.y_layout = SLP_LAYOUT_N16), 2, (A(16, 2, 4, 5), B(16, 2, 2, 2)), EXPECT(0, 0, 0, 0, 0, 0, 0, 1, 0, -1, 0, 0, 0, 0, 0, 0)),
	BACK(avg, "n16 in y", (.kernel = {2}), (.of.y_layout = SLP_LAYOUT_N16, .size = {4, 5}), 1, (B(16, 2, 2, 2)), EXPECT(0.25, 0.25, -0.25, -0.25, 0, 0.25, 0.25, -0.25, -0.25, 0, -0.125, -0.125, 0.75, 0.75, 0, -0.125)),
	BACK(avg, "n16, relu", (.kernel = {2}), (.of.x_layout = SLP_LAYOUT_N16, .of.y_layout = SLP_LAYOUT_N16, .size = {4, 5}, .relu = true), 2, (A(16, 2, 4, 5), B(16, 2, 2, 2)), EXPECT(0.25, 0, -0.25, 0.5, 0, 0.0625, 0, 0.25, 0, -0.25, 0.5, -0.125, 0, 0.75, 0.25, 0)),
	BACK(avg, "relu", (.kernel = {2}), (.relu = true), 2, (A(1, 2, 4, 5), B(1, 2, 2, 2)), EXPECT(0.25, 0, 0.125, 0.125, 0, 0.25, 0, 0.125, 0, 0, -0.25, -0.25, 0, 0.5, 0, 0)),
	BACK(max, "relu", (.kernel = {3}, .stride = {2}, .pad = {1, 1}), (.relu = true), 2, (A(1, 2, 4, 5), B(1, 2, 2, 3)), EXPECT(0, 0, 0, 0, 0, 1, 0, 0, 0, -1, 2, 0, 0, 0, 0, 0)),
	BACK(max, "the first of equals, n16", (.kernel = {2}), (.of.x_layout = SLP_LAYOUT_N16), 2, (TIES(16, 1, 4, 8), REAL(16, 1, 2, 4))),
	BACK(max, "NaN, n16, relu", (.kernel = {2}), (.of.x_layout = SLP_LAYOUT_N16, .of.y_layout = SLP_LAYOUT_N16, .relu = true), 2, (NANS(16, 2, 5, 19), REAL(16, 2, 2, 9))),
	BACK_BOTH("n16, relu, overlapping", (.kernel = {3}, .stride = {2}, .pad = {1, 1}), (.of.x_layout = SLP_LAYOUT_N16, .of.y_layout = SLP_LAYOUT_N16, .relu = true), (REAL(32, 3, 9, 8), REAL(32, 3, 5, 4))),
	BACK_BOTH("n16, relu, gaps", (.kernel = {2}, .stride = {3}), (.of.x_layout = SLP_LAYOUT_N16, .of.y_layout = SLP_LAYOUT_N16, .relu = true), (REAL(32, 3, 9, 8), REAL(32, 3, 3, 3))),
	BACK_BOTH("n16 in y, relu, large", (.kernel = {2}), (.of.y_layout = SLP_LAYOUT_N16, .relu = true), (REAL(32, 20, 26, 26), REAL(32, 20, 13, 13))),
	BACK_BOTH("relu, large", (.kernel = {2}), (.relu = true), (REAL(8, 20, 26, 26), REAL(8, 20, 13, 13))),
	BACK_BOTH("n16, no images", (.kernel = {2}), (.of.x_layout = SLP_LAYOUT_N16, .of.y_layout = SLP_LAYOUT_N16, .relu = true), (REAL(0, 3, 4, 4), REAL(0, 3, 2, 2))),
	BACK_BOTH("n16, 8 images", (.kernel = {2}), (.of.x_layout = SLP_LAYOUT_N16, .relu = true), (REAL(8, 3, 4, 4), REAL(8, 3, 2, 2)), .reject = SL_ESHAPE),
	BACK(avg, "relu without x", (.kernel = {2}), (.relu = true, .size = {4, 4}), 1, (REAL(1, 1, 2, 2)), .reject = SL_EINVAL),
	BACK(avg, "x without relu", (.kernel = {2}), (.size = {4, 4}), 2, (REAL(1, 1, 4, 4), REAL(1, 1, 2, 2)), .reject = SL_EINVAL),
	SUMS(max, "2 × 2", (.kernel = {2}), (.relu = false), 2, (A(1, 2, 4, 5), B(1, 2, 2, 2)), EXPECT(0, 0, 0, 0, 0, 1, 0, 0.5, 0, 0, -1, 0, 0, 0, 0, 0)),
	SUMS(avg, "2 × 2", (.kernel = {2}), (.size = {4, 5}), 1, (B(1, 2, 2, 2)), EXPECT(0.25, 0.25, 0.125, 0.125, 0, 0.25, 0.25, 0.125, 0.125, 0, -0.25, -0.25, 0.5, 0.5, 0, -0.25)),
	SUMS_BOTH("relu", (.kernel = {2}), (.relu = true), (REAL(5, 3, 9, 8), REAL(5, 3, 4, 4))),
	SUMS_BOTH("overlapping", (.kernel = {3}, .stride = {2}, .pad = {1, 1}), (.relu = true), (REAL(3, 5, 9, 8), REAL(3, 5, 5, 4))),
	SUMS_BOTH("more images than parts", (.kernel = {2}), (.relu = true), (REAL(67, 2, 6, 4), REAL(67, 2, 3, 2))),
	SUMS_BOTH("large", (.kernel = {2}), (.relu = true), (REAL(40, 20, 26, 26), REAL(40, 20, 13, 13))),
	SUMS_BOTH("no images", (.kernel = {2}), (.relu = true), (REAL(0, 3, 4, 4), REAL(0, 3, 2, 2))),
	SUMS_BOTH("nhwc", (.kernel = {2}), (.of.x_layout = SLP_LAYOUT_NHWC, .of.y_layout = SLP_LAYOUT_NHWC, .relu = true), (REAL(2, 8, 4, 4), REAL(2, 8, 2, 2)), .reject = SL_EINVAL),
	{0},
};
