/* Cases of the operations on images in blocks of channels.  Expected values follow from the definitions. */
#include <starling.h>

#include "../codelets/common/blocks.h"
#include "../codelets/conv/conv2d_kernels.h"
#include "op_inner.h"
#include "../codelets/pool/pool2d.h"
#include "cases.h"

/* clang-format off */

#define REAL(...) {SL_FLOAT32, DIMS(__VA_ARGS__), -1, 1, {0}, 0}
#define POSITIVE(...) {SL_FLOAT32, DIMS(__VA_ARGS__), 0.5, 2, {0}, 0}
#define COUNTING(...) {SL_FLOAT32, DIMS(__VA_ARGS__), 0, 0, {1, 2, 3, 4, 5, 6, 7, 8}, 8}
#define EXPECT(...) .expect = {__VA_ARGS__}, .nexpect = SL_COUNT_(double, __VA_ARGS__)
#define OWN .own_types = true, .no_grad = true
#define LIST(...) {__VA_ARGS__}
#define CASE(op_name, what, n, inputs, ...) {.op = #op_name, .label = what, .nin = n, .in = LIST inputs, OWN, __VA_ARGS__}

#define BLOCKS(b, ...) .attrs = &(const struct slp_blocks_attrs){b, __VA_ARGS__}
/* images, channels of x and y, size, kernel, and what is special. */
#define CONV(n, ic, oc, h, w, kh, kw, b, ...) .attrs = &(const struct slp_conv2d_blocked_attrs){.images = n, .channels = {ic, oc}, .size = {h, w}, .kernel = {kh, kw}, .block = b, __VA_ARGS__}
#define HOW(s, p, d, g) .conv = {{s, s}, {p, p}, {d, d}, g}
/* Layers of x and of the kernel, stride, padding and dilation from layer to layer. */
#define DEEP(n, k, s, p, d) .layers = n, .depth = {k, s, p, d}
#define CONV3(s, p, d, ...) .attrs = &(const struct slp_conv3d_attrs){.depth = {0, s, p, d}, __VA_ARGS__}
#define POOL(...) .attrs = &(const struct slp_pool2d_attrs){.pool = {__VA_ARGS__}}

const struct slp_case slp_cases_blocked[] = {
	CASE(to_blocks, "two channels of eight", 1, (COUNTING(1, 2, 1, 2)), BLOCKS(8, 2), EXPECT(1, 3, 0, 0, 0, 0, 0, 0, 2, 4, 0, 0, 0, 0, 0, 0)),
	CASE(to_blocks, "odd", 1, (REAL(3, 21, 5, 7)), BLOCKS(16, 21)),
	CASE(to_blocks, "large", 1, (REAL(2, 40, 33, 35)), BLOCKS(16, 40)),
	CASE(to_blocks, "large, of 8", 1, (REAL(2, 20, 33, 35)), BLOCKS(8, 20)),
	CASE(to_blocks, "no images", 1, (REAL(0, 20, 3, 3)), BLOCKS(8, 20)),
	CASE(to_blocks, "volumes", 1, (REAL(2, 21, 3, 5, 7)), BLOCKS(16, 21)),
	CASE(from_blocks, "volumes", 1, (REAL(2, 2, 15, 7, 16)), BLOCKS(16, 21, 3)),
	CASE(from_blocks, "layers that are not whole", 1, (REAL(2, 2, 15, 7, 16)), BLOCKS(16, 21, 2), .reject = SL_ESHAPE),
	CASE(to_blocks, "other channels", 1, (REAL(1, 20, 3, 3)), BLOCKS(8, 21), .reject = SL_ESHAPE),
	CASE(to_blocks, "blocks of 5", 1, (REAL(1, 20, 3, 3)), BLOCKS(5, 20), .reject = SL_EINVAL),
	CASE(from_blocks, "two channels of eight", 1, (COUNTING(1, 1, 1, 2, 8)), BLOCKS(8, 2), EXPECT(1, 1, 2, 2)),
	CASE(from_blocks, "odd", 1, (REAL(3, 2, 5, 7, 16)), BLOCKS(16, 21)),
	CASE(from_blocks, "large", 1, (REAL(2, 3, 33, 35, 16)), BLOCKS(16, 40)),
	CASE(from_blocks, "large, of 8", 1, (REAL(2, 3, 33, 35, 8)), BLOCKS(8, 20)),
	CASE(from_blocks, "too many channels", 1, (REAL(1, 1, 3, 3, 8)), BLOCKS(8, 9), .reject = SL_ESHAPE),

	CASE(conv2d_blocked, "1 × 1", 3, (REAL(2, 2, 5, 6, 16), REAL(24, 20, 1, 1), REAL(24)), CONV(2, 20, 24, 5, 6, 1, 1, 16, HOW(1, 0, 1, 1))),
	CASE(conv2d_blocked, "plain x, stride, padding", 3, (REAL(1, 3, 11, 9), REAL(16, 3, 3, 3), REAL(16)), CONV(1, 3, 16, 11, 9, 3, 3, 16, HOW(2, 1, 1, 1), .x_plain = true)),
	CASE(conv2d_blocked, "dilation, relu", 3, (REAL(1, 1, 9, 9, 16), REAL(16, 16, 3, 2), REAL(16)), CONV(1, 16, 16, 9, 9, 3, 2, 16, HOW(1, 2, 2, 1), .relu = true)),
	CASE(conv2d_blocked, "a channel a group, bounds", 3, (REAL(2, 2, 7, 7, 16), REAL(24, 1, 3, 3), REAL(24)), CONV(2, 24, 24, 7, 7, 3, 3, 16, HOW(1, 1, 1, 24), .bounded = true, .low = -0.25, .high = 0.5)),
	CASE(conv2d_blocked, "groups", 3, (REAL(1, 2, 6, 6, 16), REAL(32, 16, 3, 3), REAL(32)), CONV(1, 32, 32, 6, 6, 3, 3, 16, HOW(1, 1, 1, 2))),
	CASE(conv2d_blocked, "groups that share a block", 3, (REAL(1, 2, 6, 6, 16), REAL(24, 8, 3, 3), REAL(24)), CONV(1, 24, 24, 6, 6, 3, 3, 16, HOW(1, 1, 1, 3))),
	CASE(conv2d_blocked, "blocks of 8", 3, (REAL(1, 3, 6, 6, 8), REAL(16, 20, 3, 3), REAL(16)), CONV(1, 20, 16, 6, 6, 3, 3, 8, HOW(1, 0, 1, 1))),
	CASE(conv2d_blocked, "Winograd", 3, (REAL(1, 4, 10, 11, 16), REAL(64, 64, 3, 3), REAL(64)), CONV(1, 64, 64, 10, 11, 3, 3, 16, HOW(1, 1, 1, 1), .winograd = true), .tolerance = 5e-5),
	CASE(conv2d_blocked, "volumes", 3, (REAL(2, 2, 20, 6, 16), REAL(24, 20, 3, 3, 3), REAL(24)), CONV(2, 20, 24, 5, 6, 3, 3, 16, HOW(1, 1, 1, 1), DEEP(4, 3, 1, 1, 1))),
	CASE(conv2d_blocked, "volumes, plain x, strides", 3, (REAL(1, 3, 6, 9, 7), REAL(16, 3, 3, 3, 3), REAL(16)), CONV(1, 3, 16, 9, 7, 3, 3, 16, HOW(2, 1, 1, 1), DEEP(6, 3, 2, 1, 1), .x_plain = true, .relu = true)),
	CASE(conv2d_blocked, "volumes, along the layers, dilation", 3, (REAL(1, 1, 42, 5, 16), REAL(16, 16, 3, 1, 1), REAL(16)), CONV(1, 16, 16, 6, 5, 1, 1, 16, HOW(1, 0, 1, 1), DEEP(7, 3, 1, 2, 2))),
	CASE(conv2d_blocked, "volumes, a channel a group", 3, (REAL(1, 2, 12, 5, 16), REAL(24, 1, 3, 3, 3), REAL(24)), CONV(1, 24, 24, 4, 5, 3, 3, 16, HOW(1, 1, 1, 24), DEEP(3, 3, 1, 1, 1))),
	CASE(conv2d_blocked, "a kernel deeper than the volume", 3, (REAL(1, 1, 8, 4, 16), REAL(16, 16, 3, 1, 1), REAL(16)), CONV(1, 16, 16, 4, 4, 1, 1, 16, HOW(1, 0, 1, 1), DEEP(2, 3, 1, 0, 1)), .reject = SL_ESHAPE),
	CASE(conv2d_blocked, "no images", 3, (REAL(0, 1, 5, 5, 16), REAL(16, 16, 1, 1), REAL(16)), CONV(0, 16, 16, 5, 5, 1, 1, 16, HOW(1, 0, 1, 1))),
	CASE(conv2d_blocked, "other weights", 3, (REAL(1, 1, 5, 5, 16), REAL(16, 15, 1, 1), REAL(16)), CONV(1, 16, 16, 5, 5, 1, 1, 16, HOW(1, 0, 1, 1)), .reject = SL_ESHAPE),
	CASE(conv2d_blocked, "a kernel larger than the image", 3, (REAL(1, 1, 2, 2, 16), REAL(16, 16, 3, 3), REAL(16)), CONV(1, 16, 16, 2, 2, 3, 3, 16, HOW(1, 0, 1, 1)), .reject = SL_ESHAPE),
	CASE(conv2d_blocked_add, "relu", 4, (REAL(1, 2, 5, 5, 16), REAL(1, 1, 7, 7, 16), REAL(32, 16, 3, 3), REAL(32)), CONV(1, 16, 32, 7, 7, 3, 3, 16, HOW(1, 0, 1, 1), .relu = true)),
	CASE(conv2d_blocked_add, "another shape", 4, (REAL(1, 1, 5, 5, 16), REAL(1, 1, 7, 7, 16), REAL(32, 16, 3, 3), REAL(32)), CONV(1, 16, 32, 7, 7, 3, 3, 16, HOW(1, 0, 1, 1)), .reject = SL_ESHAPE),
	CASE(conv2d_blocked_add, "volumes", 4, (REAL(1, 2, 12, 5, 16), REAL(1, 1, 28, 7, 16), REAL(32, 16, 2, 3, 3), REAL(32)), CONV(1, 16, 32, 7, 7, 3, 3, 16, HOW(1, 0, 1, 1), DEEP(4, 2, 1, 0, 1), .bounded = true, .low = -1, .high = 2), .reject = SL_ESHAPE),
	CASE(conv2d_blocked_add, "volumes that fit", 4, (REAL(1, 2, 15, 5, 16), REAL(1, 1, 28, 7, 16), REAL(32, 16, 2, 3, 3), REAL(32)), CONV(1, 16, 32, 7, 7, 3, 3, 16, HOW(1, 0, 1, 1), DEEP(4, 2, 1, 0, 1), .bounded = true, .low = -1, .high = 2)),
	CASE(conv2d_pack, "equal weights look alike in any order", 1, ({SL_FLOAT32, DIMS(16, 16, 1, 1), 0, 0, {2}, 1}), CONV(1, 16, 16, 5, 5, 1, 1, 16, HOW(1, 0, 1, 1), .packed = 256), EXPECT(2, 2, 2)),
	CASE(conv2d_pack, "without a size", 1, (REAL(16, 16, 1, 1)), CONV(1, 16, 16, 5, 5, 1, 1, 16, HOW(1, 0, 1, 1)), .reject = SL_EINVAL),

	CASE(conv3d, "by hand", 3, (COUNTING(1, 1, 2, 2, 2), COUNTING(1, 1, 2, 1, 1), COUNTING(1)), CONV3(1, 0, 1), EXPECT(12, 15, 18, 21)),
	CASE(conv3d, "strides, padding", 3, (REAL(2, 3, 5, 9, 7), REAL(4, 3, 3, 2, 3), REAL(4)), CONV3(2, 1, 1, .conv = {{1, 2}, {1, 1}, {1, 1}, 1})),
	CASE(conv3d, "groups, dilation, no bias, relu", 2, (REAL(1, 16, 6, 8, 8), REAL(32, 8, 2, 3, 3)), CONV3(1, 0, 2, .conv = {{1, 1}, {2, 2}, {2, 2}, 2}, .activation = SL_RELU)),
	CASE(conv3d, "many channels", 3, (REAL(2, 32, 4, 7, 7), REAL(48, 32, 3, 3, 3), REAL(48)), CONV3(1, 1, 1, .conv = {{1, 1}, {1, 1}, {1, 1}, 1}), .tolerance = 5e-5),
	CASE(conv3d, "no volumes", 3, (REAL(0, 3, 5, 5, 5), REAL(4, 3, 1, 1, 1), REAL(4)), CONV3(1, 0, 1)),
	CASE(conv3d, "other channels", 3, (REAL(1, 3, 5, 5, 5), REAL(4, 2, 1, 1, 1), REAL(4)), CONV3(1, 0, 1), .reject = SL_ESHAPE),
	CASE(conv3d, "images", 3, (REAL(1, 3, 5, 5), REAL(4, 3, 1, 1), REAL(4)), CONV3(1, 0, 1), .reject = SL_ESHAPE),
	CASE(conv3d, "too deep a kernel", 3, (REAL(1, 3, 2, 5, 5), REAL(4, 3, 4, 1, 1), REAL(4)), CONV3(1, 0, 1), .reject = SL_ESHAPE),
	CASE(conv3d, "a step back", 3, (REAL(1, 3, 2, 5, 5), REAL(4, 3, 1, 1, 1), REAL(4)), CONV3(-1, 0, 1), .reject = SL_EINVAL),

	CASE(pool2d_blocked, "largest", 1, (REAL(2, 2, 9, 8, 16)), POOL(.type = SL_POOL_MAX, .kernel = {3}, .stride = {2}, .pad = {1, 1})),
	CASE(pool2d_blocked, "mean", 1, (REAL(2, 2, 9, 8, 8)), POOL(.type = SL_POOL_AVG, .kernel = {3, 2}, .stride = {2}, .pad = {1, 1})),
	CASE(pool2d_blocked, "mean of what is inside, last windows too", 1, (REAL(1, 3, 8, 8, 16)), POOL(.type = SL_POOL_AVG, .kernel = {3}, .stride = {2}, .pad = {1, 1}, .ceil = true, .exclude_pad = true)),
	CASE(pool2d_blocked, "whole image", 1, (REAL(3, 2, 7, 7, 16)), POOL(.type = SL_POOL_AVG, .global = true)),
	CASE(pool2d_blocked, "no images", 1, (REAL(0, 2, 7, 7, 16)), POOL(.type = SL_POOL_MAX, .kernel = {2})),
	CASE(pool2d_blocked, "the plain order", 1, (REAL(1, 2, 7, 7)), POOL(.type = SL_POOL_MAX, .kernel = {2}), .reject = SL_ESHAPE),

	CASE(affine_blocked, "channels that fill a block partly", 3, (REAL(2, 2, 5, 7, 16), REAL(21), REAL(21)), .attrs = &(const struct slp_affine_attrs){false}),
	CASE(affine_blocked, "relu", 3, (REAL(1, 3, 30, 30, 8), REAL(24), REAL(24)), .attrs = &(const struct slp_affine_attrs){true}),
	CASE(affine_blocked, "other channels", 3, (REAL(1, 3, 3, 3, 8), REAL(16), REAL(16)), .attrs = &(const struct slp_affine_attrs){true}, .reject = SL_ESHAPE),

	CASE(norm_fold, "one row", 5, (COUNTING(1, 2), COUNTING(1), COUNTING(1), COUNTING(1), COUNTING(1)), .attrs = &(const double){3}, EXPECT(0.5, 1)),
	CASE(norm_fold, "a convolution with a bias", 6, (REAL(6, 2, 3, 3), REAL(6), REAL(6), REAL(6), POSITIVE(6), REAL(6)), .attrs = &(const double){0}),
	CASE(norm_fold, "other channels", 5, (REAL(6, 2), REAL(5), REAL(6), REAL(6), POSITIVE(6)), .attrs = &(const double){0}, .reject = SL_ESHAPE),

	CASE(norm_affine, "of images", 4, (REAL(6), REAL(6), REAL(6), POSITIVE(6)), .attrs = &(const struct slp_norm_affine_attrs){1e-3, 2}),
	CASE(norm_affine, "of rows", 4, (REAL(301), REAL(301), REAL(301), POSITIVE(301)), .attrs = &(const struct slp_norm_affine_attrs){0, 0}),
	CASE(norm_affine, "no channels", 4, (REAL(0), REAL(0), REAL(0), POSITIVE(0)), .attrs = &(const struct slp_norm_affine_attrs){0, 2}),
	CASE(norm_affine, "other channels", 4, (REAL(6), REAL(6), REAL(5), POSITIVE(6)), .attrs = &(const struct slp_norm_affine_attrs){0, 2}, .reject = SL_ESHAPE),
	CASE(norm_affine, "too many axes", 4, (REAL(6), REAL(6), REAL(6), POSITIVE(6)), .attrs = &(const struct slp_norm_affine_attrs){0, 8}, .reject = SL_EINVAL),
	{0},
};
