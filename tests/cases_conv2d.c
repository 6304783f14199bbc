/* Cases of conv2d and its gradients.  The expected values were computed with PyTorch, in double precision. */
#include <math.h>

#include "../codelets/conv2d.h"
#include "cases.h"

/* clang-format off */

#define DIMS(...) {SL_COUNT_(int64_t, __VA_ARGS__), {__VA_ARGS__}}
#define REAL(...) {SL_FLOAT32, DIMS(__VA_ARGS__), -1, 1, {0}, 0}
#define WHOLE(...) {SL_INT32, DIMS(__VA_ARGS__), -9, 9, {0}, 0}
#define A(...) {SL_FLOAT32, DIMS(__VA_ARGS__), 0, 0, {1, -2, 3, 0.5, -1, 2, 0, 4, -3, 1.5, 2.5}, 11}
#define B(...) {SL_FLOAT32, DIMS(__VA_ARGS__), 0, 0, {1, 0.5, -1, 2, -0.5, 0.25, 3}, 7}
#define BIAS {SL_FLOAT32, DIMS(2), 0, 0, {0.5, -1}, 2}
#define NANS(...) {SL_FLOAT32, DIMS(__VA_ARGS__), 0, 0, {1, 2, 3, NAN, 4, 5, 6, 7, 8}, 9}
#define EXPECT(...) .expect = {__VA_ARGS__}, .nexpect = SL_COUNT_(double, __VA_ARGS__)
#define REJECT(status) .reject = status, .no_grad = true

#define OPTS(...) &(const struct sl_conv2d_opts){__VA_ARGS__}
#define PLAIN OPTS(.groups = 0)
#define CONV(what, how, n, inputs, ...) {.op = "conv2d", .label = what, .attrs = how, .nin = n, .in = LIST inputs, __VA_ARGS__}
#define LIST(...) {__VA_ARGS__}
#define SIZE(height, width, with_bias, ...) &(const struct slp_conv2d_grad){.conv = {__VA_ARGS__}, .size = {height, width}, .bias = with_bias}
#define DATA(what, how, dy, w, ...) {.op = "conv2d_grad_data", .label = what, .attrs = how, .nin = 2, .in = {dy, w}, __VA_ARGS__}
#define WEIGHTS(what, how, x, dy, ...) {.op = "conv2d_grad_weights", .label = what, .attrs = how, .nin = 2, .in = {x, dy}, __VA_ARGS__}

const struct slp_case slp_cases_conv2d[] = {
	CONV("with a bias", PLAIN, 3, (A(1, 2, 4, 5), B(2, 2, 3, 3), BIAS), EXPECT(14.125, 5.75, 6.125, 3.25, 36.375, -6.25, 19.25, 32.375, -9.625, 19.5, -5.875, 11.25)),
	CONV("without a bias", PLAIN, 2, (A(1, 2, 4, 5), B(2, 2, 3, 3)), EXPECT(13.625, 5.25, 5.625, 2.75, 35.875, -6.75, 20.25, 33.375, -8.625, 20.5, -4.875, 12.25)),
	CONV("padding, uneven strides", OPTS(.stride = {2, 1}, .pad = {1, 2}), 3, (A(1, 2, 4, 5), B(2, 2, 3, 3), BIAS), EXPECT(4.25, 6, 26.375, -3.25, 22, -1, 5.75, 1.375, -7.5, 3.25, 36.375, -6.25, 16.25, -10.5, -1.75, 2.75)),
	CONV("dilation", OPTS(.dilation = {2, 3}, .pad = {1, 0}), 2, (A(1, 2, 4, 5), B(2, 2, 2, 2)), EXPECT(-6.5, 4, -4.5, -0.5, 20.25, -4.25, 5.75, 0, 6, 0.25, -4.625, 11.875, 4.125, 16.25, 0.5, -5.625)),
	CONV("groups", OPTS(.groups = 2), 2, (A(1, 2, 4, 5), B(4, 1, 2, 3)), EXPECT(2, -3.75, 14.125, 2, 8.75, -4.375, 2, 2, -3.75, -1.5, 6.75, -1.75, 8.5, -4, 17.5, 12.5)),
	CONV("one stride for both axes", OPTS(.stride = {2}), 3, (REAL(2, 3, 7, 6), REAL(4, 3, 3, 3), REAL(4))),
	CONV("groups, padding", OPTS(.pad = {1, 1}, .groups = 3), 3, (REAL(2, 6, 5, 5), REAL(3, 2, 3, 3), REAL(3))),
	CONV("a group a channel", OPTS(.pad = {1, 1}, .groups = 4), 3, (REAL(2, 4, 5, 5), REAL(4, 1, 3, 3), REAL(4))),
	CONV("padding wider than the image", OPTS(.pad = {2, 2}), 2, (REAL(2, 1, 1, 1), REAL(2, 1, 3, 3))),
	CONV("1 × 1 kernel", OPTS(.stride = {2}), 3, (REAL(2, 3, 5, 5), REAL(4, 3, 1, 1), REAL(4))),
	CONV("size 1", PLAIN, 3, (REAL(1, 1, 1, 1), REAL(1, 1, 1, 1), REAL(1))),
	CONV("uneven kernel", OPTS(.pad = {0, 3}, .stride = {1, 3}), 2, (REAL(2, 2, 6, 9), REAL(3, 2, 2, 4))),
	CONV("many images, one channel", PLAIN, 3, (REAL(40, 1, 12, 11), REAL(20, 1, 3, 3), REAL(20)), .no_grad = true),
	CONV("many images, few channels", OPTS(.pad = {2, 2}), 3, (REAL(33, 3, 9, 8), REAL(15, 3, 5, 5), REAL(15)), .no_grad = true),
	CONV("many images, strides and dilation", OPTS(.pad = {3, 2}, .stride = {2, 3}, .dilation = {2, 2}), 3, (REAL(32, 5, 11, 12), REAL(7, 5, 3, 3), REAL(7)), .no_grad = true),
	CONV("many images, tiny", OPTS(.pad = {1, 1}), 3, (REAL(32, 2, 2, 2), REAL(3, 2, 3, 3), REAL(3)), .no_grad = true),
	CONV("many channels", OPTS(.pad = {1, 1}), 3, (REAL(2, 64, 7, 7), REAL(64, 64, 3, 3), REAL(64)), .tolerance = 2e-4, .no_grad = true),
	CONV("many channels, stride", OPTS(.pad = {1, 1}, .stride = {2}), 3, (REAL(2, 32, 8, 8), REAL(64, 32, 3, 3), REAL(64)), .tolerance = 1e-4, .no_grad = true),
	CONV("NaN", PLAIN, 2, (NANS(1, 1, 3, 3), B(1, 1, 2, 2)), .no_grad = true, EXPECT(NAN, 9.5, NAN, 15.5)),
	CONV("no images", PLAIN, 3, (REAL(0, 2, 4, 4), REAL(3, 2, 3, 3), REAL(3))),
	CONV("no input channels: the bias", PLAIN, 3, (REAL(1, 0, 3, 3), REAL(2, 0, 3, 3), BIAS), EXPECT(0.5, -1)),
	CONV("no output channels", PLAIN, 2, (REAL(1, 2, 3, 3), REAL(0, 2, 3, 3))),
	CONV("channels differ", PLAIN, 2, (REAL(1, 2, 4, 4), REAL(3, 3, 3, 3)), REJECT(SL_ESHAPE)),
	CONV("groups do not fit w", OPTS(.groups = 2), 2, (REAL(1, 4, 4, 4), REAL(3, 2, 3, 3)), REJECT(SL_ESHAPE)),
	CONV("groups do not fit x", OPTS(.groups = 2), 2, (REAL(1, 3, 4, 4), REAL(4, 2, 3, 3)), REJECT(SL_ESHAPE)),
	CONV("kernel larger than the image", PLAIN, 2, (REAL(1, 2, 2, 4), REAL(3, 2, 3, 3)), REJECT(SL_ESHAPE)),
	CONV("empty kernel", PLAIN, 2, (REAL(1, 2, 2, 4), REAL(3, 2, 0, 3)), REJECT(SL_ESHAPE)),
	CONV("three axes", PLAIN, 2, (REAL(2, 2, 4), REAL(3, 2, 3, 3)), REJECT(SL_ESHAPE)),
	CONV("bias of another size", PLAIN, 3, (REAL(1, 2, 4, 4), REAL(3, 2, 3, 3), REAL(2)), REJECT(SL_ESHAPE)),
	CONV("integers", PLAIN, 2, (WHOLE(1, 2, 4, 4), WHOLE(3, 2, 3, 3)), REJECT(SL_EDTYPE)),
	CONV("negative padding", OPTS(.pad = {-1, 0}), 2, (REAL(1, 2, 4, 4), REAL(3, 2, 3, 3)), REJECT(SL_EINVAL)),
	CONV("negative stride", OPTS(.stride = {-1}), 2, (REAL(1, 2, 4, 4), REAL(3, 2, 3, 3)), REJECT(SL_EINVAL)),
	CONV("negative groups", OPTS(.groups = -1), 2, (REAL(1, 2, 4, 4), REAL(3, 2, 3, 3)), REJECT(SL_EINVAL)),
	CONV("one input", PLAIN, 1, (REAL(1, 2, 4, 4)), REJECT(SL_EINVAL)),

	DATA("of the first case", SIZE(4, 5, false), A(1, 2, 2, 3), B(2, 2, 3, 3), EXPECT(1, -3.5, 3.5, 14.75, -12, 1.75, -2.125, 11.875, 2.25, 4.75, 5.5, 4, 4.875, 1.25, 0.25, 4.5)),
	DATA("stride and padding", SIZE(4, 5, false, .stride = {2}, .pad = {1, 1}), A(1, 2, 2, 3), B(2, 2, 3, 3), EXPECT(-0.5, 0.25, 3, -1.5, -3, 1.625, 4.25, -3.875, 13, 5.75, 0.5, -0.875, 1.75, 2.25, -0.5, -0.25)),
	DATA("rest of a stride: zeros", SIZE(6, 6, false, .stride = {3}), REAL(2, 3, 2, 2), REAL(3, 2, 2, 2)),
	DATA("groups", SIZE(5, 5, false, .pad = {1, 1}, .groups = 2), REAL(2, 4, 5, 5), REAL(4, 3, 3, 3)),
	DATA("dilation", SIZE(7, 6, false, .pad = {1, 1}, .dilation = {2, 2}), REAL(2, 4, 5, 4), REAL(4, 3, 3, 3)),
	DATA("many images, few channels", SIZE(13, 13, false), REAL(40, 17, 9, 9), REAL(17, 20, 5, 5), .tolerance = 1e-4, .no_grad = true),
	DATA("many images, strides", SIZE(11, 12, false, .stride = {2, 3}, .pad = {1, 2}), REAL(32, 5, 6, 5), REAL(5, 7, 3, 3), .no_grad = true),
	DATA("many channels", SIZE(7, 7, false, .pad = {1, 1}), REAL(2, 64, 7, 7), REAL(64, 64, 3, 3), .tolerance = 2e-4, .no_grad = true),
	DATA("no images", SIZE(4, 4, false), REAL(0, 3, 2, 2), REAL(3, 2, 3, 3)),
	DATA("no output channels: zeros", SIZE(3, 3, false), REAL(1, 0, 1, 1), REAL(0, 2, 3, 3), EXPECT(0, 0, 0, 0)),
	DATA("another size", SIZE(5, 5, false), REAL(1, 3, 2, 2), REAL(3, 2, 3, 3), REJECT(SL_ESHAPE)),
	DATA("other channels", SIZE(4, 4, false), REAL(1, 4, 2, 2), REAL(3, 2, 3, 3), REJECT(SL_ESHAPE)),
	DATA("integers", SIZE(4, 4, false), WHOLE(1, 3, 2, 2), WHOLE(3, 2, 3, 3), REJECT(SL_EDTYPE)),

	WEIGHTS("of the first case", SIZE(3, 3, true), A(1, 2, 4, 5), A(1, 2, 2, 3), EXPECT(23, -16.5, 7, 10.25, -8.5, 11.5, -8, 23, -16.5, 4.75, -8, 23, 10.5, -4.75, 10.25, 0.5)),
	WEIGHTS("stride and padding", SIZE(3, 3, false, .stride = {2}, .pad = {1, 1}), A(1, 2, 4, 5), A(1, 2, 2, 3), EXPECT(-6, 0, 3, 10.5, -3.75, -5.5, -3, -8, 3, 1, 6.25, -0.5, -10.5, 0.5, 6.25, 5.5)),
	WEIGHTS("groups", SIZE(3, 3, true, .pad = {1, 1}, .groups = 2), REAL(2, 4, 5, 5), REAL(2, 6, 5, 5)),
	WEIGHTS("dilation", SIZE(2, 3, true, .dilation = {2, 1}), REAL(2, 3, 5, 6), REAL(2, 4, 3, 4)),
	WEIGHTS("many images, one channel", SIZE(3, 3, true), REAL(40, 1, 12, 11), REAL(40, 20, 10, 9), .tolerance = 2e-4, .no_grad = true),
	WEIGHTS("many images, few channels", SIZE(5, 5, true, .pad = {2, 2}), REAL(33, 3, 9, 8), REAL(33, 15, 9, 8), .tolerance = 2e-4, .no_grad = true),
	WEIGHTS("many images, strides", SIZE(3, 3, false, .stride = {2, 3}, .pad = {1, 2}), REAL(32, 7, 11, 12), REAL(32, 5, 6, 5), .tolerance = 1e-4, .no_grad = true),
	WEIGHTS("many images, wide kernel", SIZE(2, 7, true, .pad = {0, 3}), REAL(32, 2, 5, 9), REAL(32, 4, 4, 9), .tolerance = 1e-4, .no_grad = true),
	WEIGHTS("many channels", SIZE(3, 3, true, .pad = {1, 1}), REAL(2, 64, 7, 7), REAL(2, 64, 7, 7), .tolerance = 2e-4, .no_grad = true),
	WEIGHTS("no images: zeros", SIZE(1, 2, true), REAL(0, 2, 4, 4), REAL(0, 1, 4, 3), EXPECT(0, 0, 0, 0)),
	WEIGHTS("numbers of images differ", SIZE(3, 3, true), REAL(2, 2, 4, 4), REAL(1, 3, 2, 2), REJECT(SL_ESHAPE)),
	WEIGHTS("another size", SIZE(3, 3, true), REAL(1, 2, 4, 4), REAL(1, 3, 2, 3), REJECT(SL_ESHAPE)),
	WEIGHTS("integers", SIZE(3, 3, true), WHOLE(1, 2, 4, 4), WHOLE(1, 3, 2, 2), REJECT(SL_EDTYPE)),
	{0},
};
