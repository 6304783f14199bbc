/* Cases of conv2d and its gradients.  The expected values were computed with PyTorch, in double precision. */
#include <math.h>
#include <starling.h>

#include "../codelets/conv/conv2d_kernels.h"
#include "cases.h"

/* clang-format off */

#define REAL(...) {SL_FLOAT32, DIMS(__VA_ARGS__), -1, 1, {0}, 0}
#define HALF(...) {SL_BFLOAT16, DIMS(__VA_ARGS__), -1, 1, {0}, 0}
#define WHOLE(...) {SL_INT32, DIMS(__VA_ARGS__), -9, 9, {0}, 0}
#define A(...) {SL_FLOAT32, DIMS(__VA_ARGS__), 0, 0, {1, -2, 3, 0.5, -1, 2, 0, 4, -3, 1.5, 2.5}, 11}
#define B(...) {SL_FLOAT32, DIMS(__VA_ARGS__), 0, 0, {1, 0.5, -1, 2, -0.5, 0.25, 3}, 7}
#define BIAS {SL_FLOAT32, DIMS(2), 0, 0, {0.5, -1}, 2}
#define NANS(...) {SL_FLOAT32, DIMS(__VA_ARGS__), 0, 0, {1, 2, 3, NAN, 4, 5, 6, 7, 8}, 9}
#define EXPECT(...) .expect = {__VA_ARGS__}, .nexpect = SL_COUNT_(double, __VA_ARGS__)
#define REJECT(status) .reject = status, .no_grad = true

#define OPTS(...) &(const struct slp_conv2d_attrs){.conv = {__VA_ARGS__}}
#define ADDED(...) &(const struct slp_conv2d_attrs){__VA_ARGS__}
#define N16(x, y, ...) ADDED(.x_layout = (x) ? SLP_LAYOUT_N16 : 0, .y_layout = (y) ? SLP_LAYOUT_N16 : 0, __VA_ARGS__)
#define POOL(what, how, n, inputs, ...) {.op = "conv2d_pool", .label = what, .attrs = ADDED how, .nin = n, .in = LIST inputs, .no_grad = true, __VA_ARGS__}
#define BACK(which, what, how, n, inputs, ...) {.op = "conv2d_grad_" #which "_pool", .label = what, .attrs = how, .nin = n, .in = LIST inputs, .no_grad = true, __VA_ARGS__}
#define BITS(...) {SL_UINT8, DIMS(__VA_ARGS__), 0, 256, {0}, 0}
#define OWN .own_types = true, .no_grad = true
#define NC16(x, y, ...) ADDED(.wide = true, .x_layout = (x) ? SLP_LAYOUT_NC16 : 0, .y_layout = (y) ? SLP_LAYOUT_NC16 : 0, .conv = {__VA_ARGS__})
#define NHWC(x, y, ...) ADDED(.x_layout = (x) ? SLP_LAYOUT_NHWC : 0, .y_layout = (y) ? SLP_LAYOUT_NHWC : 0, __VA_ARGS__)
#define WIDE(...) ADDED(.wide = true, .conv = {__VA_ARGS__})
#define FUSED .no_grad = true
#define PLAIN OPTS(.groups = 0)
#define CONV(what, how, n, inputs, ...) {.op = "conv2d", .label = what, .attrs = how, .nin = n, .in = LIST inputs, __VA_ARGS__}
#define LOWERED(what, how, n, inputs, ...) {.op = "conv2d_lowered", .label = what, .attrs = how, .nin = n, .in = LIST inputs, __VA_ARGS__}
#define LIST(...) {__VA_ARGS__}
#define SIZE(height, width, with_bias, ...) ADDED(.conv = {__VA_ARGS__}, .size = {height, width}, .bias = with_bias)
#define MORE(height, width, with_bias, ...) ADDED(__VA_ARGS__, .size = {height, width}, .bias = with_bias)
#define DATA(what, how, dy, w, ...) {.op = "conv2d_grad_data", .label = what, .attrs = how, .nin = 2, .in = {dy, w}, __VA_ARGS__}
#define WEIGHTS(what, how, x, dy, ...) {.op = "conv2d_grad_weights", .label = what, .attrs = how, .nin = 2, .in = {x, dy}, __VA_ARGS__}
#define LOWERED_BACK(which, what, how, a, b, ...) {.op = "conv2d_grad_" #which "_lowered", .label = what, .attrs = how, .nin = 2, .in = {a, b}, __VA_ARGS__}

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

	/* What graph passes add. */
	LOWERED("n16", N16(true, true), 3, (A(16, 2, 4, 5), B(2, 2, 3, 3), BIAS), FUSED, EXPECT(15.5, 21.375, -2.75, 4, 35.25, 5.375, -19.875, 46.375, -2.875, 2.25, 11.375, 15.5, 21.375, -2.75, 4, 35.25)),
	LOWERED("n16 in y, relu", N16(false, true, .activation = SL_RELU), 3, (A(16, 2, 4, 5), B(2, 2, 3, 3), BIAS), FUSED, EXPECT(14.125, 0, 26.625, 24, 36.375, 6.125, 0, 3.25, 5.75, 26.75, 0, 14.125, 0, 26.625, 24, 36.375)),
	LOWERED("n16 in x, tanh", N16(true, false, .activation = SL_TANH), 3, (A(16, 2, 4, 5), B(2, 2, 3, 3), BIAS), FUSED, EXPECT(1, 0.9999571101, 0.9999999997, 0.9993292997, -0.9936546343, -0.9918597246, -0.999593146, -0.9998503075, 1, -0.9895597486, 1, -0.9999999947, 1, -1, 1, 1)),
	LOWERED("cropped", ADDED(.crop = {1, 2}), 3, (A(1, 2, 4, 5), B(2, 2, 3, 3), BIAS), FUSED, EXPECT(14.125, 19.25)),
	LOWERED("cropped, relu", ADDED(.crop = {1, 1}, .activation = SL_RELU), 3, (A(1, 2, 4, 5), B(2, 2, 3, 3), BIAS), FUSED, EXPECT(14.125, 5.75, 19.25, 32.375)),
	LOWERED("n16, an odd number of groups", N16(true, true, .conv.pad = {1, 2}, .activation = SL_RELU), 3, (REAL(48, 3, 9, 8), REAL(15, 3, 3, 5), REAL(15)), FUSED),
	LOWERED("n16, all at once", N16(true, true, .conv.pad = {1, 0}, .crop = {1, 2}, .activation = SL_SIGMOID), 3, (REAL(32, 5, 10, 9), REAL(27, 5, 3, 3), REAL(27)), FUSED),
	LOWERED("n16, strides and dilation", N16(true, true, .conv.pad = {3, 2}, .conv.stride = {2, 3}, .conv.dilation = {2, 2}), 2, (REAL(32, 5, 11, 12), REAL(7, 5, 3, 3)), FUSED),
	LOWERED("n16, groups", N16(true, true, .conv.groups = 2, .activation = SL_RELU), 3, (REAL(16, 4, 5, 5), REAL(6, 2, 3, 3), REAL(6)), FUSED),
	LOWERED("n16, many channels", N16(true, true, .conv.pad = {1, 1}), 3, (REAL(16, 64, 7, 7), REAL(64, 64, 3, 3), REAL(64)), .tolerance = 2e-4, FUSED),
	CONV("many channels, relu", ADDED(.conv.pad = {1, 1}, .activation = SL_RELU), 3, (REAL(2, 64, 7, 7), REAL(64, 64, 3, 3), REAL(64)), .tolerance = 2e-4, FUSED),
	LOWERED("many channels, cropped, gelu", ADDED(.conv.pad = {1, 1}, .crop = {2, 1}, .activation = SL_GELU), 3, (REAL(2, 64, 7, 7), REAL(64, 64, 3, 3), REAL(64)), .tolerance = 2e-4, FUSED),
	LOWERED("n16, relu of NaN", N16(true, true, .activation = SL_RELU), 2, (NANS(16, 1, 3, 3), B(1, 1, 2, 2)), FUSED),
	LOWERED("n16, no images", N16(true, true), 2, (REAL(0, 2, 4, 4), REAL(3, 2, 3, 3)), FUSED),
	LOWERED("n16, no input channels: softplus of the bias", N16(true, true, .activation = SL_SOFTPLUS), 3, (REAL(16, 0, 3, 3), REAL(2, 0, 3, 3), BIAS), FUSED, EXPECT(0.974076984)),
	LOWERED("n16, 24 images", N16(false, true), 2, (REAL(24, 2, 4, 4), REAL(3, 2, 3, 3)), REJECT(SL_ESHAPE)),
	LOWERED("nothing left", ADDED(.crop = {0, 2}), 2, (REAL(1, 2, 4, 4), REAL(3, 2, 3, 3)), REJECT(SL_ESHAPE)),
	LOWERED("negative crop", ADDED(.crop = {-1, 0}), 2, (REAL(1, 2, 4, 4), REAL(3, 2, 3, 3)), REJECT(SL_EINVAL)),
	CONV("no activation", ADDED(.activation = SL_ACTIVATIONS), 2, (REAL(1, 2, 4, 4), REAL(3, 2, 3, 3)), REJECT(SL_EINVAL)),

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

	LOWERED_BACK(data, "n16", MORE(4, 5, false, .x_layout = SLP_LAYOUT_N16, .y_layout = SLP_LAYOUT_N16), A(16, 2, 2, 3), B(2, 2, 3, 3), FUSED, EXPECT(2.5, -2.75, 1.75, 0, 0, 0.5, -0.25, 4.5, -4, 1.5, 0.5, 2.5, -2.75, 1.75, 0, 0)),
	LOWERED_BACK(data, "n16 in y", MORE(4, 5, false, .y_layout = SLP_LAYOUT_N16), A(16, 2, 2, 3), B(2, 2, 3, 3), FUSED, EXPECT(2.5, 0.25, -7.75, 9.25, 9.5, -1, 5.5, 8.5, -2.75, -0.875, -7, 17, 18.75, 2.875, 1.375, -7)),
	LOWERED_BACK(data, "cropped", MORE(4, 5, false, .crop = {1, 1}), A(1, 2, 1, 2), B(2, 2, 3, 3), FUSED, EXPECT(-0.5, -1, 7.125, 3.5, 0, 5, -2.5, -1.5, -1, 0, 9, -5.5, -1, -0.875, 0, 0)),
	LOWERED_BACK(data, "n16, few channels", MORE(13, 13, false, .x_layout = SLP_LAYOUT_N16, .y_layout = SLP_LAYOUT_N16, .crop = {1, 1}), REAL(48, 17, 8, 8), REAL(17, 20, 5, 5), .tolerance = 1e-4, FUSED),
	LOWERED_BACK(data, "n16 in x, one channel", MORE(9, 8, false, .x_layout = SLP_LAYOUT_N16), REAL(32, 5, 7, 6), REAL(5, 1, 3, 3), FUSED),
	LOWERED_BACK(data, "n16, groups", MORE(5, 5, false, .conv.pad = {1, 1}, .conv.groups = 2, .x_layout = SLP_LAYOUT_N16, .y_layout = SLP_LAYOUT_N16), REAL(16, 4, 5, 5), REAL(4, 3, 3, 3), FUSED),
	LOWERED_BACK(data, "many channels, cropped", MORE(7, 7, false, .conv.pad = {1, 1}, .crop = {1, 0}), REAL(2, 64, 6, 7), REAL(64, 64, 3, 3), .tolerance = 2e-4, FUSED),

	WEIGHTS("of the first case", SIZE(3, 3, true), A(1, 2, 4, 5), A(1, 2, 2, 3), EXPECT(23, -16.5, 7, 10.25, -8.5, 11.5, -8, 23, -16.5, 4.75, -8, 23, 10.5, -4.75, 10.25, 0.5)),
	WEIGHTS("stride and padding", SIZE(3, 3, false, .stride = {2}, .pad = {1, 1}), A(1, 2, 4, 5), A(1, 2, 2, 3), EXPECT(-6, 0, 3, 10.5, -3.75, -5.5, -3, -8, 3, 1, 6.25, -0.5, -10.5, 0.5, 6.25, 5.5)),
	WEIGHTS("groups", SIZE(3, 3, true, .pad = {1, 1}, .groups = 2), REAL(2, 4, 5, 5), REAL(2, 6, 5, 5)),
	WEIGHTS("dilation", SIZE(2, 3, true, .dilation = {2, 1}), REAL(2, 3, 5, 6), REAL(2, 4, 3, 4)),
	WEIGHTS("many images, one channel", SIZE(3, 3, true), REAL(40, 1, 12, 11), REAL(40, 20, 10, 9), .tolerance = 2e-4, .no_grad = true),
	WEIGHTS("many images, few channels", SIZE(5, 5, true, .pad = {2, 2}), REAL(33, 3, 9, 8), REAL(33, 15, 9, 8), .tolerance = 2e-4, .no_grad = true),
	WEIGHTS("many images, strides", SIZE(3, 3, false, .stride = {2, 3}, .pad = {1, 2}), REAL(32, 7, 11, 12), REAL(32, 5, 6, 5), .tolerance = 1e-4, .no_grad = true),
	WEIGHTS("many images, wide kernel", SIZE(2, 7, true, .pad = {0, 3}), REAL(32, 2, 5, 9), REAL(32, 4, 4, 9), .tolerance = 1e-4, .no_grad = true),
	WEIGHTS("one channel, 5 × 5", SIZE(5, 5, true, .stride = {2, 1}, .pad = {2, 1}), REAL(9, 1, 12, 11), REAL(9, 7, 6, 9), .tolerance = 1e-4, .no_grad = true),
	WEIGHTS("few channels, 7 × 7", SIZE(7, 7, true, .stride = {2}, .pad = {3, 3}), REAL(5, 3, 14, 13), REAL(5, 8, 7, 7), .tolerance = 1e-4, .no_grad = true),
	WEIGHTS("depthwise, dilation", SIZE(4, 5, true, .dilation = {2, 3}, .pad = {1, 4}, .groups = 6), REAL(7, 6, 9, 12), REAL(7, 12, 5, 8), .tolerance = 1e-4, .no_grad = true),
	WEIGHTS("depthwise, 3 × 3", SIZE(3, 3, false, .pad = {1, 1}, .groups = 40), REAL(3, 40, 6, 5), REAL(3, 40, 6, 5), .tolerance = 1e-4, .no_grad = true),
	WEIGHTS("many channels", SIZE(3, 3, true, .pad = {1, 1}), REAL(2, 64, 7, 7), REAL(2, 64, 7, 7), .tolerance = 2e-4, .no_grad = true),
	WEIGHTS("no images: zeros", SIZE(1, 2, true), REAL(0, 2, 4, 4), REAL(0, 1, 4, 3), EXPECT(0, 0, 0, 0)),
	WEIGHTS("numbers of images differ", SIZE(3, 3, true), REAL(2, 2, 4, 4), REAL(1, 3, 2, 2), REJECT(SL_ESHAPE)),
	WEIGHTS("another size", SIZE(3, 3, true), REAL(1, 2, 4, 4), REAL(1, 3, 2, 3), REJECT(SL_ESHAPE)),
	WEIGHTS("integers", SIZE(3, 3, true), WHOLE(1, 2, 4, 4), WHOLE(1, 3, 2, 2), REJECT(SL_EDTYPE)),

	LOWERED_BACK(weights, "n16", MORE(3, 3, true, .x_layout = SLP_LAYOUT_N16, .y_layout = SLP_LAYOUT_N16), A(16, 2, 4, 5), A(16, 2, 2, 3), FUSED, .tolerance = 1e-4, EXPECT(145.75, 86.5, -63, 74.5, 114, -79, -42.75, 145.75, 86.5, 148, -42.75, 145.75, 112, 54.5, 74.5, 91.25)),
	LOWERED_BACK(weights, "n16 in x", MORE(3, 3, true, .x_layout = SLP_LAYOUT_N16), A(16, 2, 4, 5), A(16, 2, 2, 3), FUSED, .tolerance = 1e-4, EXPECT(231.5, 26.5, 13.25, 219.75, -38.25, -55.25, -60, 231.5, 26.5, -46, -60, 231.5, 28.25, 20.75, 219.75, 267.25)),
	LOWERED_BACK(weights, "cropped", MORE(3, 3, true, .crop = {1, 1}), A(1, 2, 4, 5), A(1, 2, 1, 2), FUSED, EXPECT(5, -8, 2, 2, -8, 10, 0.5, 5, -8, -3.5, 0.5, 5, 2.5, -5, 2, -6)),
	LOWERED_BACK(weights, "n16, few channels", MORE(5, 5, true, .conv.pad = {2, 2}, .x_layout = SLP_LAYOUT_N16, .y_layout = SLP_LAYOUT_N16, .crop = {2, 1}), REAL(48, 3, 9, 8), REAL(48, 17, 7, 7), .tolerance = 2e-4, FUSED),
	LOWERED_BACK(weights, "n16 in y, one channel", MORE(3, 3, true, .y_layout = SLP_LAYOUT_N16), REAL(48, 1, 12, 11), REAL(48, 20, 10, 9), .tolerance = 2e-4, FUSED),
	LOWERED_BACK(weights, "n16, 1 × 1 kernel", MORE(1, 1, true, .x_layout = SLP_LAYOUT_N16, .y_layout = SLP_LAYOUT_N16), REAL(16, 3, 5, 5), REAL(16, 4, 5, 5), .tolerance = 1e-4, FUSED),
	LOWERED_BACK(weights, "n16, groups", MORE(3, 3, true, .conv.pad = {1, 1}, .conv.groups = 2, .x_layout = SLP_LAYOUT_N16, .y_layout = SLP_LAYOUT_N16), REAL(16, 4, 5, 5), REAL(16, 6, 5, 5), .tolerance = 1e-4, FUSED),
	LOWERED_BACK(weights, "n16, wide kernel", MORE(1, 9, true, .x_layout = SLP_LAYOUT_N16, .y_layout = SLP_LAYOUT_N16), REAL(16, 2, 3, 12), REAL(16, 2, 3, 4), .tolerance = 1e-4, FUSED),
	LOWERED_BACK(weights, "n16, 8 images", MORE(3, 3, true, .x_layout = SLP_LAYOUT_N16), REAL(8, 2, 4, 4), REAL(8, 3, 2, 2), REJECT(SL_ESHAPE)),

	POOL("mean, n16", (.x_layout = SLP_LAYOUT_N16, .y_layout = SLP_LAYOUT_N16, .crop = {0, 1}, .activation = SL_RELU, .pool = SLP_CONV_POOL_AVG), 3, (A(16, 2, 6, 7), B(2, 2, 3, 3), BIAS), EXPECT(16.125, 10.9375, 13.03125, 16.4375, 5.84375, 21.46875, 2.46875, 21.5, 4.65625, 20.09375, 7.8125, 16.125, 10.9375, 13.03125, 16.4375, 5.84375)),
	POOL("largest", (.crop = {0, 1}, .activation = SL_RELU, .pool = SLP_CONV_POOL_MAX), 3, (A(16, 2, 6, 7), B(2, 2, 3, 3), BIAS), EXPECT(18, 30.75, 30.75, 28.75, 24.75, 14.5, 23.375, 13.875, 30.375, 30.75, 30.75, 7, 24.75, 13.875, 24.75, 22)),
	POOL("largest, no relu, n16", (.x_layout = SLP_LAYOUT_N16, .y_layout = SLP_LAYOUT_N16, .pool = SLP_CONV_POOL_MAX), 2, (REAL(48, 3, 9, 8), REAL(15, 3, 2, 3))),
	POOL("mean, no relu", (.pool = SLP_CONV_POOL_AVG), 2, (REAL(16, 3, 9, 8), REAL(27, 3, 2, 3))),
	POOL("one channel", (.activation = SL_RELU, .y_layout = SLP_LAYOUT_N16, .pool = SLP_CONV_POOL_AVG), 3, (REAL(48, 1, 12, 12), REAL(20, 1, 3, 3), REAL(20))),
	POOL("many channels, n16", (.activation = SL_RELU, .x_layout = SLP_LAYOUT_N16, .y_layout = SLP_LAYOUT_N16, .pool = SLP_CONV_POOL_MAX), 3, (REAL(48, 20, 16, 14), REAL(3, 20, 5, 5), REAL(3)), .tolerance = 2e-4),
	POOL("many channels", (.pool = SLP_CONV_POOL_AVG), 2, (REAL(16, 24, 14, 13), REAL(6, 24, 5, 4)), .tolerance = 2e-4),
	POOL("strides, padding", (.conv.stride = {2, 1}, .conv.pad = {1, 2}, .activation = SL_RELU, .x_layout = SLP_LAYOUT_N16, .crop = {0, 1}, .pool = SLP_CONV_POOL_MAX), 3, (REAL(32, 5, 7, 6), REAL(14, 5, 3, 4), REAL(14))),
	POOL("groups", (.conv.groups = 2, .activation = SL_RELU, .y_layout = SLP_LAYOUT_N16, .pool = SLP_CONV_POOL_AVG), 3, (REAL(16, 4, 6, 6), REAL(6, 2, 3, 3), REAL(6))),
	POOL("groups, in the plain order", (.conv.groups = 2, .pool = SLP_CONV_POOL_MAX), 3, (REAL(16, 4, 6, 6), REAL(6, 2, 3, 3), REAL(6))),
	POOL("NaN", (.activation = SL_RELU, .pool = SLP_CONV_POOL_MAX), 2, (NANS(16, 1, 7, 7), B(1, 1, 2, 2))),
	POOL("no images", (.pool = SLP_CONV_POOL_MAX), 2, (REAL(0, 2, 4, 4), REAL(3, 2, 3, 3))),
	POOL("no input channels: the bias", (.pool = SLP_CONV_POOL_MAX), 3, (REAL(16, 0, 4, 4), REAL(2, 0, 3, 3), BIAS), EXPECT(0.5, -1)),
	POOL("8 images", (.pool = SLP_CONV_POOL_MAX), 2, (REAL(8, 2, 4, 4), REAL(3, 2, 3, 3)), .reject = SL_ESHAPE),
	POOL("an odd size", (.pool = SLP_CONV_POOL_MAX), 2, (REAL(16, 2, 4, 5), REAL(3, 2, 3, 3)), .reject = SL_ESHAPE),
	POOL("no pool", (.pool = SLP_CONV_POOL_NONE), 2, (REAL(16, 2, 4, 4), REAL(3, 2, 3, 3)), .reject = SL_EINVAL),
	POOL("tanh", (.activation = SL_TANH, .pool = SLP_CONV_POOL_MAX), 2, (REAL(16, 2, 4, 4), REAL(3, 2, 3, 3)), .reject = SL_EINVAL),
	CONV("a pool", ADDED(.pool = SLP_CONV_POOL_MAX), 2, (REAL(16, 2, 4, 4), REAL(3, 2, 3, 3)), REJECT(SL_EINVAL)),

	BACK(data, "pooled", MORE(4, 4, false, .pool = SLP_CONV_POOL_MAX), 3, (REAL(16, 2, 1, 1), REAL(2, 2, 3, 3), BITS(2, 2, 2, 2))),
	BACK(data, "pooled, n16", MORE(9, 9, false, .x_layout = SLP_LAYOUT_N16, .y_layout = SLP_LAYOUT_N16, .crop = {1, 1}, .pool = SLP_CONV_POOL_AVG), 3, (REAL(48, 17, 2, 2), REAL(17, 5, 5, 5), BITS(6, 17, 4, 4)), .tolerance = 1e-4),
	BACK(data, "pooled, groups", MORE(6, 6, false, .conv.groups = 2, .x_layout = SLP_LAYOUT_N16, .pool = SLP_CONV_POOL_AVG), 3, (REAL(16, 4, 2, 2), REAL(4, 3, 3, 3), BITS(2, 4, 4, 4))),
	BACK(data, "pooled, one channel", MORE(6, 6, false, .pool = SLP_CONV_POOL_AVG), 3, (REAL(16, 4, 2, 2), REAL(4, 1, 3, 3), BITS(2, 4, 4, 4))),
	BACK(weights, "pooled", MORE(3, 3, true, .pool = SLP_CONV_POOL_MAX), 3, (REAL(16, 2, 4, 4), REAL(16, 2, 1, 1), BITS(2, 2, 2, 2))),
	BACK(weights, "pooled, n16", MORE(5, 5, true, .x_layout = SLP_LAYOUT_N16, .y_layout = SLP_LAYOUT_N16, .crop = {1, 1}, .pool = SLP_CONV_POOL_AVG), 3, (REAL(48, 3, 9, 9), REAL(48, 17, 2, 2), BITS(6, 17, 4, 4)), .tolerance = 1e-4),
	BACK(weights, "pooled, one channel", MORE(3, 3, true, .y_layout = SLP_LAYOUT_N16, .pool = SLP_CONV_POOL_AVG), 3, (REAL(48, 1, 28, 28), REAL(48, 20, 13, 13), BITS(6, 20, 26, 26)), .tolerance = 1e-4),
	BACK(weights, "pooled, groups", MORE(3, 3, true, .conv.groups = 2, .y_layout = SLP_LAYOUT_N16, .pool = SLP_CONV_POOL_MAX), 3, (REAL(16, 4, 6, 6), REAL(16, 6, 2, 2), BITS(2, 6, 4, 4)), .tolerance = 1e-4),
	BACK(weights, "pooled, no images", MORE(3, 3, true, .pool = SLP_CONV_POOL_MAX), 3, (REAL(0, 4, 6, 6), REAL(0, 6, 2, 2), BITS(0, 6, 4, 4))),
	BACK(weights, "a mask of another size", MORE(3, 3, true, .pool = SLP_CONV_POOL_MAX), 3, (REAL(16, 2, 4, 4), REAL(16, 2, 1, 1), BITS(16, 2, 2, 2)), .reject = SL_ESHAPE),
	BACK(weights, "no pool", MORE(3, 3, true, .pool = 0), 3, (REAL(16, 2, 4, 4), REAL(16, 2, 2, 2), BITS(2, 2, 2, 2)), .reject = SL_EINVAL),
	BACK(weights, "without its mask", MORE(3, 3, true, .pool = SLP_CONV_POOL_MAX), 2, (REAL(16, 2, 4, 4), REAL(16, 2, 1, 1)), .reject = SL_EINVAL),

	/* Images in bfloat16, parameters and their gradients in float32: what graph passes make under autocast. */
	LOWERED("float32 parameters", WIDE(.pad = {1, 1}), 3, (HALF(2, 3, 6, 5), REAL(4, 3, 3, 3), REAL(4)), OWN),
	LOWERED("float32 parameters, no bias, stride", WIDE(.stride = {2}), 2, (HALF(2, 32, 8, 9), REAL(32, 32, 3, 3)), OWN),
	LOWERED("float32 parameters, tanh", ADDED(.wide = true, .activation = SL_TANH), 3, (HALF(2, 16, 6, 5), REAL(16, 16, 3, 3), REAL(16)), OWN, .scale = 4 /* of what tanh is taken of, which parameters in bfloat16 make */),
	LOWERED("float32 parameters, cropped", ADDED(.wide = true, .crop = {1, 0}), 3, (HALF(2, 3, 6, 5), REAL(4, 3, 3, 3), REAL(4)), OWN),
	LOWERED("float32 parameters, n16", N16(true, true, .wide = true), 3, (HALF(16, 3, 6, 5), REAL(4, 3, 3, 3), REAL(4)), OWN),
	LOWERED("nc16", NC16(true, true, .pad = {1, 1}), 3, (HALF(2, 16, 5, 4), REAL(32, 16, 3, 3), REAL(32)), OWN, .scale = 4 /* what weights rounded to bfloat16 make of a sum of 144 products */),
	LOWERED("nc16 in y, strides", NC16(false, true, .stride = {2}), 3, (HALF(3, 1, 7, 6), REAL(16, 1, 3, 3), REAL(16)), OWN),
	LOWERED("nc16 in x, groups", NC16(true, false, .groups = 2), 2, (HALF(2, 32, 5, 4), REAL(6, 16, 1, 1)), OWN),
	LOWERED("blocks of 15", NC16(true, false, .pad = {1, 1}), 2, (HALF(2, 15, 5, 4), REAL(16, 15, 3, 3)), REJECT(SL_EINVAL), .own_types = true),
	LOWERED("blocks of float32", NC16(true, false, .pad = {1, 1}), 2, (REAL(2, 16, 5, 4), REAL(16, 16, 3, 3)), REJECT(SL_EINVAL), .own_types = true),
	LOWERED_BACK(data, "nc16", MORE(5, 4, false, .wide = true, .x_layout = SLP_LAYOUT_NC16, .y_layout = SLP_LAYOUT_NC16, .conv = {.pad = {1, 1}}), HALF(2, 32, 5, 4), REAL(32, 16, 3, 3), OWN),
	LOWERED_BACK(data, "nc16 in x", MORE(5, 4, false, .wide = true, .x_layout = SLP_LAYOUT_NC16), HALF(2, 3, 3, 2), REAL(3, 16, 3, 3), OWN),
	LOWERED_BACK(weights, "nc16", MORE(3, 3, true, .wide = true, .x_layout = SLP_LAYOUT_NC16, .y_layout = SLP_LAYOUT_NC16, .conv = {.pad = {1, 1}}), HALF(2, 16, 5, 4), HALF(2, 32, 5, 4), OWN),
	LOWERED_BACK(weights, "nc16, strides", MORE(3, 3, true, .wide = true, .x_layout = SLP_LAYOUT_NC16, .y_layout = SLP_LAYOUT_NC16, .conv = {.pad = {1, 1}, .stride = {2, 1}}), HALF(2, 16, 9, 8), HALF(2, 32, 5, 8), OWN),
	LOWERED_BACK(weights, "nc16 in x, dilated", MORE(3, 2, true, .wide = true, .x_layout = SLP_LAYOUT_NC16, .conv = {.stride = {2, 2}, .dilation = {2, 2}}), HALF(2, 16, 9, 8), HALF(2, 16, 3, 3), OWN),
	LOWERED_BACK(weights, "nc16 in dy", MORE(3, 3, false, .wide = true, .y_layout = SLP_LAYOUT_NC16), HALF(2, 3, 5, 4), HALF(2, 16, 3, 2), OWN),
	/* Channels last: what graph passes make for GPUs. */
	LOWERED("nhwc", NHWC(true, true, .conv = {.pad = {1, 1}}), 3, (REAL(2, 5, 6, 5), REAL(7, 5, 3, 3), REAL(7)), FUSED),
	LOWERED("nhwc, many", NHWC(true, true, .conv = {.pad = {1, 1}, .stride = {2}}), 3, (REAL(2, 40, 7, 6), REAL(35, 40, 3, 3), REAL(35)), FUSED, .tolerance = 1e-4),
	LOWERED("nhwc, relu", NHWC(true, true, .activation = SL_RELU), 3, (REAL(2, 8, 6, 5), REAL(16, 8, 3, 3), REAL(16)), FUSED),
	LOWERED("nhwc, tanh, no bias", NHWC(true, true, .activation = SL_TANH), 2, (REAL(2, 3, 6, 5), REAL(4, 3, 2, 3)), FUSED),
	LOWERED("nhwc in y", NHWC(false, true, .conv = {.dilation = {2, 2}}), 3, (REAL(3, 1, 9, 8), REAL(8, 1, 3, 3), REAL(8)), FUSED),
	LOWERED("nhwc in x, groups", NHWC(true, false, .conv = {.groups = 2}), 2, (REAL(2, 6, 5, 4), REAL(4, 3, 3, 2)), FUSED),
	LOWERED("nhwc, 1 × 1 kernel", NHWC(true, true, .conv = {.stride = {2}}), 3, (REAL(2, 8, 5, 5), REAL(16, 8, 1, 1), REAL(16)), FUSED),
	LOWERED("nhwc, no images", NHWC(true, true, .activation = SL_RELU), 3, (REAL(0, 2, 4, 4), REAL(3, 2, 3, 3), REAL(3)), FUSED),
	LOWERED("nhwc, cropped", NHWC(true, true, .crop = {1, 0}), 2, (REAL(2, 3, 6, 5), REAL(4, 3, 3, 3)), REJECT(SL_EINVAL)),
	LOWERED("nhwc, in n16", NHWC(true, false, .y_layout = SLP_LAYOUT_N16), 2, (REAL(16, 3, 6, 5), REAL(4, 3, 3, 3)), REJECT(SL_EINVAL)),
	LOWERED("nhwc, float32 parameters", NHWC(true, true, .wide = true, .conv = {.pad = {1, 1}}), 3, (HALF(2, 8, 6, 5), REAL(16, 8, 3, 3), REAL(16)), OWN, .scale = 4 /* as blocks of channels */),
	LOWERED("nhwc, float32 parameters, 1 × 1", NHWC(true, true, .wide = true, .activation = SL_RELU), 3, (HALF(2, 8, 6, 5), REAL(16, 8, 1, 1), REAL(16)), OWN, .scale = 4),
	LOWERED("nhwc, weights too", NHWC(true, true, .w_layout = SLP_LAYOUT_NHWC, .conv = {.pad = {1, 1}}), 3, (REAL(2, 5, 6, 5), REAL(7, 5, 3, 3), REAL(7)), FUSED),
	LOWERED("nhwc, weights too, y plain", NHWC(true, false, .w_layout = SLP_LAYOUT_NHWC, .activation = SL_RELU), 3, (REAL(2, 8, 6, 5), REAL(16, 8, 2, 3), REAL(16)), FUSED),
	LOWERED("nhwc in weights alone", ADDED(.w_layout = SLP_LAYOUT_NHWC), 2, (REAL(2, 3, 6, 5), REAL(4, 3, 3, 3)), REJECT(SL_EINVAL)),
	LOWERED_BACK(data, "nhwc, weights too", MORE(6, 5, false, .w_layout = SLP_LAYOUT_NHWC, .x_layout = SLP_LAYOUT_NHWC, .y_layout = SLP_LAYOUT_NHWC, .conv = {.pad = {1, 1}}), REAL(2, 7, 6, 5), REAL(7, 5, 3, 3), FUSED),
	LOWERED_BACK(weights, "nhwc, weights too", MORE(3, 3, true, .w_layout = SLP_LAYOUT_NHWC, .x_layout = SLP_LAYOUT_NHWC, .y_layout = SLP_LAYOUT_NHWC, .conv = {.pad = {1, 1}}), REAL(2, 5, 6, 5), REAL(2, 37, 6, 5), FUSED, .tolerance = 1e-4),
	LOWERED_BACK(data, "nhwc", MORE(6, 5, false, .x_layout = SLP_LAYOUT_NHWC, .y_layout = SLP_LAYOUT_NHWC, .conv = {.pad = {1, 1}}), REAL(2, 7, 6, 5), REAL(7, 5, 3, 3), FUSED),
	LOWERED_BACK(data, "nhwc in dy", MORE(9, 8, false, .y_layout = SLP_LAYOUT_NHWC, .conv = {.stride = {2, 1}}), REAL(2, 8, 4, 6), REAL(8, 3, 3, 3), FUSED),
	LOWERED_BACK(data, "nhwc in x, groups", MORE(5, 4, false, .x_layout = SLP_LAYOUT_NHWC, .conv = {.groups = 2}), REAL(2, 4, 3, 3), REAL(4, 3, 3, 2), FUSED),
	LOWERED_BACK(data, "nhwc, float32 weights", MORE(6, 5, false, .wide = true, .x_layout = SLP_LAYOUT_NHWC, .y_layout = SLP_LAYOUT_NHWC, .conv = {.pad = {1, 1}}), HALF(2, 16, 6, 5), REAL(16, 8, 3, 3), OWN, .scale = 4),
	LOWERED_BACK(weights, "nhwc", MORE(3, 3, true, .x_layout = SLP_LAYOUT_NHWC, .y_layout = SLP_LAYOUT_NHWC, .conv = {.pad = {1, 1}}), REAL(2, 5, 6, 5), REAL(2, 37, 6, 5), FUSED, .tolerance = 1e-4),
	LOWERED_BACK(weights, "nhwc in dy", MORE(3, 3, true, .y_layout = SLP_LAYOUT_NHWC, .conv = {.stride = {2, 2}}), REAL(3, 1, 9, 8), REAL(3, 8, 4, 3), FUSED),
	LOWERED_BACK(weights, "nhwc in x, no bias", MORE(3, 2, false, .x_layout = SLP_LAYOUT_NHWC, .conv = {.groups = 2}), REAL(2, 6, 5, 4), REAL(2, 4, 3, 3), FUSED),
	LOWERED_BACK(weights, "nhwc, no images", MORE(3, 3, true, .x_layout = SLP_LAYOUT_NHWC, .y_layout = SLP_LAYOUT_NHWC), REAL(0, 6, 5, 4), REAL(0, 4, 3, 2), FUSED),
	LOWERED_BACK(weights, "nhwc, in float32", MORE(3, 3, true, .wide = true, .x_layout = SLP_LAYOUT_NHWC, .y_layout = SLP_LAYOUT_NHWC, .conv = {.pad = {1, 1}}), HALF(2, 8, 6, 5), HALF(2, 16, 6, 5), OWN),
	LOWERED("half parameters, said to be float32", WIDE(.pad = {1, 1}), 2, (HALF(2, 3, 6, 5), HALF(4, 3, 3, 3)), REJECT(SL_EDTYPE), .own_types = true),
	CONV("float32 parameters, not said", PLAIN, 2, (HALF(2, 3, 6, 5), REAL(4, 3, 3, 3)), REJECT(SL_EDTYPE), .own_types = true),
	LOWERED_BACK(data, "float32 weights", MORE(6, 5, false, .wide = true, .conv = {.pad = {1, 1}}), HALF(2, 4, 6, 5), REAL(4, 3, 3, 3), OWN),
	LOWERED_BACK(data, "float32 weights, many channels", MORE(7, 7, false, .wide = true, .conv = {.pad = {1, 1}, .stride = {2, 2}}), HALF(2, 32, 4, 4), REAL(32, 48, 3, 3), OWN),
	LOWERED_BACK(weights, "in float32", MORE(3, 3, true, .wide = true, .conv = {.pad = {1, 1}}), HALF(2, 3, 6, 5), HALF(2, 4, 6, 5), OWN),
	LOWERED_BACK(weights, "in float32, many channels", MORE(3, 3, true, .wide = true, .conv = {.pad = {1, 1}}), HALF(3, 32, 4, 4), HALF(3, 16, 4, 4), OWN),
	{0},
};
