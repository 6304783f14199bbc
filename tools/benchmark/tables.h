/* Macros for rows of the tables of cases: units, work, kinds of cases. */
#ifndef BENCH_TABLES_H
#define BENCH_TABLES_H

#include "bench.h"

/* clang-format off */
#define DIMS(...) {SL_COUNT_(int64_t, __VA_ARGS__), {__VA_ARGS__}} /* a constant, which SL_SHAPE is not */
#define IN(...) {.shape = DIMS(__VA_ARGS__), .used = true}
#define IN_GRAD(...) {.shape = DIMS(__VA_ARGS__), .used = true, .want_grad = true}
#define IN_HALF(...) {.shape = DIMS(__VA_ARGS__), .used = true, .dtype = SL_BFLOAT16}
#define IN_HALF_GRAD(...) {.shape = DIMS(__VA_ARGS__), .used = true, .want_grad = true, .dtype = SL_BFLOAT16}
#define IN_CLASSES(n) {.shape = DIMS(n), .used = true, .dtype = SL_INT32}
/* clang-format on */

/* An operation forward, and back. */
#define OP(fn, ...)                                                                                                    \
	.op = &(const struct bench_op){.forward = fn, .in = {__VA_ARGS__}}, .setup = bench_op_setup,                   \
	.run = bench_op_run, .teardown = bench_op_teardown
#define OP_BACK(fn, ...)                                                                                               \
	.op = &(const struct bench_op){.forward = fn, .backward = true, .in = {__VA_ARGS__}}, .setup = bench_op_setup, \
	.run = bench_op_run, .teardown = bench_op_teardown
/* A network, trained. */
#define NET(kind, how) .setup = bench_##kind##_setup, .run = how, .teardown = bench_net_teardown

/* Networks made of blocks: a row, a whole step, or LeNet both ways. */
#define ROW(how) .setup = bench_row_setup, .run = how, .teardown = bench_row_teardown
#define ROW_WORK                                                                                                       \
	{                                                                                                              \
		.read = 4 * ROW_WEIGHTS, .flops = 2 * ROW_WEIGHTS, .tasks = 1                                          \
	}
#define STEP(kind) .setup = bench_##kind##_setup, .run = bench_whole_step_run, .teardown = bench_whole_step_teardown
#define SEQUENCE(kind) .setup = bench_##kind##_setup, .run = bench_sequence_run, .teardown = bench_sequence_teardown
#define GPT(kind) .setup = bench_##kind##_setup, .run = bench_gpt_run, .teardown = bench_gpt_teardown
#define GPT_GAIN(kind)                                                                                                 \
	RATIO(""), .no_peer = true, .cpu_only = true, .half = true, .setup = bench_##kind##_setup,                     \
	           .run = bench_gpt_half_gain_run, .teardown = bench_gpt_teardown
/* clang-format off */
#define WAIT(kind, how) .setup = bench_wait_##kind##_setup, .run = bench_wait_##how##_run, .teardown = bench_wait_teardown
#define BOTH(how) .no_peer = true, .setup = bench_lenet_both_setup, .run = how, .teardown = bench_lenet_both_teardown
#define HALF_BOTH(kind, how)                                                                                           \
	.no_peer = true, .cpu_only = true, .setup = bench_##kind##_setup, .run = how, .teardown = bench_whole_step_teardown
/* clang-format on */
#define TASKS .rate_unit = "tasks", .rate_value = &bench_tasks

#define MICROSECONDS(per) .unit = "µs" per, .scale = 1e6
#define MILLISECONDS(per) .unit = "ms" per, .scale = 1e3
#define RATIO(of) .unit = "×" of
#define RATE(unit, count) .rate_unit = unit, .rate_count = count
#define FLOPS(n) .work.flops = n, RATE("GFLOP/s", 1e-9 * (n))
/* Thousands of floats that have to be read and written. */
#define TRAFFIC(in, out) .work.read = 4e3 * (in), .work.written = 4e3 * (out), RATE("GB/s", 4e-6 * ((in) + (out)))

/* LeNet with a batch of 256: elements (in thousands) and multiplications of its parts. */
#define X_K 200.7
#define CONV1_K 3461.1
#define POOL1_K 865.3
#define CONV2_K 1036.8
#define POOL2_K 204.8
#define CONV1_FLOPS (2.0 * 256 * 20 * 26 * 26 * 9)
#define CONV2_FLOPS (2.0 * 256 * 50 * 9 * 9 * 500)
#define LINEAR1_FLOPS (2.0 * 256 * 800 * 128)
#define LINEAR2_FLOPS (2.0 * 256 * 128 * 10)
/* Forward, by weights, and, but for the images, by inputs. */
#define LENET_FLOPS (3 * (CONV1_FLOPS + CONV2_FLOPS + LINEAR1_FLOPS + LINEAR2_FLOPS) - CONV1_FLOPS)
#define LENET_PARAMS_K 129.9
#define MLP_WEIGHTS (784.0 * 256 + 256 * 128 + 128 * 64 + 64 * 32 + 32 * 10)
#define MLP_FLOPS(batch) (2.0 * (batch)*MLP_WEIGHTS)
#define ROW_WEIGHTS (512.0 * 256 + 256 * 128 + 128 * 2)
#define MLP5_WEIGHTS (784.0 * 512 + 3 * 512.0 * 512 + 512 * 10)
/* The first convolution; four of 64 to 64 channels at 28 × 28; three groups, at 14, 7 and 4, of a halving convolution,
 * its shortcut, and three that keep the size; forward, by weights, and, but for the images, by inputs. */
#define RESNET_GROUP(channels, side)                                                                                   \
	((channels) * (channels)*4.5 + (channels) * (channels)*0.5 + (channels) * (channels)*27.0) * (side) * (side)
#define RESNET_FIRST (64 * 9 * 28.0 * 28)
#define RESNET_REST                                                                                                    \
	(4 * 64 * 64 * 9 * 28.0 * 28 + RESNET_GROUP(128, 14) + RESNET_GROUP(256, 7) + RESNET_GROUP(512, 4) + 5120)
#define RESNET_FLOPS(batch) (2.0 * (batch) * (2 * RESNET_FIRST + 3 * RESNET_REST))
/* Convolutions of 3 × 3, at 64, 32, 16, 8 and 4 pixels, and the dense layer; forward, by weights, and, but for the images, by
 * inputs. */
#define VGG_FIRST (64 * 27 * 64.0 * 64)
#define VGG_REST                                                                                                       \
	(128 * 576 * 32.0 * 32 + 256 * (1152 + 2304) * 16.0 * 16 + 512 * (2304 + 4608) * 8.0 * 8 +                     \
	 2 * 512 * 4608 * 4.0 * 4 + 20480)
#define VGG_FLOPS(batch) (2.0 * (batch) * (2 * VGG_FIRST + 3 * VGG_REST))
/* The products of a layer's weights, 12 width², and the last one's; forward, by weights, by inputs; AdamW reads and
 * writes parameters and two states, and reads gradients, which were written before. */
#define GPT_WEIGHTS(words, width, layers) ((layers)*12.0 * (width) * (width) + (words) * (double)(width))
#define GPT_FLOPS(tokens, weights) (6.0 * (tokens) * (weights))
#define GPT_TRAFFIC(weights) .read = 16.0 * (weights), .written = 16.0 * (weights)
#define NANOGPT_WEIGHTS GPT_WEIGHTS(65, 128, 4)
#define GPT2_WEIGHTS GPT_WEIGHTS(50257, 768, 12)
/* The share of scores and values in 12 layers, causal, both ways: a query sees half of the keys on average. */
#define GPT2_LONG_PAIRS (0.5 * 12 * 6 * 2.0 * 8 * 1024 * 1024 * 768)
#define ATTENTION_FLOPS (6 * 2.0 * 4 * 12 * 1024 * 1024 * 64)
#define MLP5_FLOPS (2.0 * 64 * (3 * MLP5_WEIGHTS - 784.0 * 512))

#endif
