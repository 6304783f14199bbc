/* The table of all cases. */
#include "bench.h"

/* clang-format off */
#define DIMS(...) {SL_COUNT_(int64_t, __VA_ARGS__), {__VA_ARGS__}} /* a constant, which SL_SHAPE is not */
#define IN(...) {.shape = DIMS(__VA_ARGS__), .used = true}
#define IN_GRAD(...) {.shape = DIMS(__VA_ARGS__), .used = true, .want_grad = true}
#define IN_HALF(...) {.shape = DIMS(__VA_ARGS__), .used = true, .dtype = SL_BFLOAT16}
#define IN_HALF_GRAD(...) {.shape = DIMS(__VA_ARGS__), .used = true, .want_grad = true, .dtype = SL_BFLOAT16}
#define IN_CLASSES(n) {.shape = DIMS(n), .used = true, .dtype = SL_INT32}
/* clang-format on */

#define FORWARD(name, expression)                                                                                      \
	static sl_tensor *name(sl_tensor *const *in)                                                                   \
	{                                                                                                              \
		return expression;                                                                                     \
	}

FORWARD(add, sl_add(in[0], in[1]))
FORWARD(total, sl_sum(in[0]))
FORWARD(softmax, sl_softmax(in[0], -1))
FORWARD(conv, sl_conv2d(in[0], in[1], in[2]))
FORWARD(conv_padded, sl_conv2d(in[0], in[1], in[2], .pad = {1, 1}))
FORWARD(product, sl_dot(in[0], in[1]))
FORWARD(pool, sl_pool2d(in[0], .type = SL_POOL_AVG, .kernel = {2, 2}, .stride = {2, 2}))
FORWARD(relu, sl_relu(in[0]))
FORWARD(linear, sl_linear(in[0], in[1], in[2]))
FORWARD(cross_entropy, sl_softmax_cross_entropy(in[0], in[1]))

static sl_tensor *batch_norm(sl_tensor *const *in)
{
	sl_tensor *y = NULL;
	SL_TRAINING
		y = sl_batch_norm(in[0], in[1], in[2], in[3], in[4]);
	return y;
}

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
#define WAIT(kind, how) .setup = bench_wait_##kind##_setup, .run = bench_wait_##how##_run, .teardown = bench_wait_teardown
#define BOTH(how) .no_peer = true, .setup = bench_lenet_both_setup, .run = how, .teardown = bench_lenet_both_teardown
#define HALF_BOTH(kind, how)                                                                                           \
	.no_peer = true, .cpu_only = true, .setup = bench_##kind##_setup, .run = how, .teardown = bench_whole_step_teardown
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
/* The products of a layer's weights, 12 width², and the last one's; forward, by weights, by inputs; AdamW reads and writes
 * parameters and two states, and reads gradients, which were written before. */
#define GPT_WEIGHTS(words, width, layers) ((layers) * 12.0 * (width) * (width) + (words) * (double)(width))
#define GPT_FLOPS(tokens, weights) (6.0 * (tokens) * (weights))
#define GPT_TRAFFIC(weights) .read = 16.0 * (weights), .written = 16.0 * (weights)
#define NANOGPT_WEIGHTS GPT_WEIGHTS(65, 128, 4)
#define GPT2_WEIGHTS GPT_WEIGHTS(50257, 768, 12)
#define MLP5_FLOPS (2.0 * 64 * (3 * MLP5_WEIGHTS - 784.0 * 512))

const struct bench_case bench_cases[] = {
        /* What tasks cost, and what bulking makes of it. */
        {.name = "op-chain",
         .doc = "100,000 operations in a chain on 2 numbers, a task each",
         MICROSECONDS("/op"),
         .config.bulk = 1,
         .times = 100000,
         .work.tasks = 1,
         .run = bench_chain_run,
         .goal = {BENCH_AT_MOST, 4}},
        {.name = "op-chain-bulk",
         .doc = "100,000 operations in a chain on 2 numbers, as they come",
         MICROSECONDS("/op"),
         .times = 100000,
         .work.tasks = 1.0 / 32,
         .run = bench_chain_run,
         .goal = {BENCH_AT_MOST, 1.5}},
        {.name = "plus-one-async",
         .doc = "1000 times x + 1, waiting for the last one",
         MILLISECONDS(""),
         .work.tasks = 1000.0 / 32,
         .run = bench_plus_one_async_run},
        {.name = "plus-one-sync",
         .doc = "1000 times x + 1, waiting for each one",
         MILLISECONDS(""),
         .work.tasks = 1000,
         .run = bench_plus_one_sync_run},
        {.name = "plus-one-gain",
         .doc = "how many times as fast as plus-one-sync plus-one-async is",
         RATIO(""),
         .times = 20,
         .run = bench_plus_one_gain_run,
         .no_peer = true,
         .goal = {BENCH_AT_LEAST, 2}},
        {.name = "wait-tiny",
         .doc = "x + 1 and a wait for it, each time: the median",
         MICROSECONDS(""),
         .no_peer = true,
         .times = 5000,
         WAIT(tiny, median),
         .goal = {BENCH_AT_MOST, 15}},
        {.name = "wait-tiny-p99",
         .doc = "the same: what 99 of 100 waits take at most",
         MICROSECONDS(""),
         .no_peer = true,
         .times = 5000,
         WAIT(tiny, p99),
         .goal = {BENCH_AT_MOST, 200}},
        {.name = "wait-teams",
         .doc = "the same with two CPU teams: the median",
         MICROSECONDS(""),
         .no_peer = true,
         .cpu_only = true,
         .config.teams = 2,
         .times = 5000,
         WAIT(tiny, median),
         .goal = {BENCH_AT_MOST, 60}},
        {.name = "wait-teams-p99",
         .doc = "... 99 of 100 waits",
         MICROSECONDS(""),
         .no_peer = true,
         .cpu_only = true,
         .config.teams = 2,
         .times = 5000,
         WAIT(tiny, p99),
         .goal = {BENCH_AT_MOST, 1000}},
        {.name = "wait-dot256",
         .doc = "dot(256 x 256) and a wait for it, each time",
         MICROSECONDS(""),
         FLOPS(2.0 * 256 * 256 * 256),
         WAIT(dot256, dot),
         .goal = {BENCH_OF_PEER, 1 / 1.1}},
        {.name = "wait-dot1024",
         .doc = "dot(1024 x 1024) and a wait for it, each time",
         MICROSECONDS(""),
         FLOPS(2.0 * 1024 * 1024 * 1024),
         WAIT(dot1024, dot),
         .goal = {BENCH_OF_PEER, 1 / 1.05}},
        {.name = "idle",
         .doc = "processor time of an engine without work",
         .unit = "% of a core",
         .no_peer = true,
         .times = 1,
         .runs = 3,
         .run = bench_idle_run,
         .goal = {BENCH_AT_MOST, 1}},
        {.name = "queue-dot",
         .doc = "time to return from dot(2000 x 2000) on an idle engine",
         MILLISECONDS(""),
         .times = 15,
         .work.tasks = 1,
         .setup = bench_dot_setup,
         .run = bench_queue_run,
         .teardown = bench_dot_teardown,
         .no_peer = true,
         .goal = {BENCH_AT_MOST, 1}},

        /* The big product. */
        {.name = "dot2000",
         .doc = "dot(2000 x 2000) on all cores",
         MILLISECONDS(""),
         FLOPS(2 * 2000.0 * 2000 * 2000),
         .setup = bench_dot_setup,
         .run = bench_dot_run,
         .teardown = bench_dot_teardown,
         .goal = {BENCH_OF_FLOOR, 0.85}},

        /* Networks. */
        {.name = "lenet-step",
         .doc = "a training step of LeNet, batch 256: forward, loss, backward, update",
         MILLISECONDS(""),
         RATE("images/s", 256),
         .work.flops = LENET_FLOPS,
         NET(lenet, bench_step_run),
         .goal = {BENCH_OF_PEER, 1.5}},
        {.name = "lenet-step-sync",
         .doc = "the same, waiting after each step",
         MILLISECONDS(""),
         RATE("images/s", 256),
         .work.flops = LENET_FLOPS,
         NET(lenet, bench_step_sync_run)},
        {.name = "lenet-update",
         .doc = "the optimiser's part of it",
         MICROSECONDS(""),
         TRAFFIC(2 * LENET_PARAMS_K, LENET_PARAMS_K),
         NET(lenet, bench_update_run)},
        {.name = "mlp-step",
         .doc = "a training step of a perceptron of five layers, batch 64",
         MILLISECONDS(""),
         RATE("rows/s", 64),
         .work.flops = 3 * MLP_FLOPS(64) - 2.0 * 64 * 784 * 256,
         NET(mlp, bench_step_run)},
        {.name = "row-mlp",
         .doc = "one row through that perceptron, result read",
         MICROSECONDS(""),
         .work = {.read = 4 * MLP_WEIGHTS, .tasks = 1},
         NET(mlp, bench_latency_run)},

        /* Compiled. */
        {.name = "row-mlp-eager",
         .doc = "one row of 512 through 256, 128, 2 units, call by call; 1000 times, then waiting",
         MICROSECONDS("/forward"),
         TASKS,
         .times = 1000,
         .work = ROW_WORK,
         ROW(bench_row_eager_run)},
        {.name = "row-mlp-hybrid",
         .doc = "the same, hybridised; the peer with what makes it fastest",
         MICROSECONDS("/forward"),
         TASKS,
         .times = 1000,
         .work = ROW_WORK,
         ROW(bench_row_hybrid_run),
         .goal = {BENCH_AT_MOST, 10}},
        {.name = "row-mlp-gain",
         .doc = "how many times as fast as row-mlp-eager row-mlp-hybrid is, in turn",
         RATIO(""),
         .times = 1000,
         ROW(bench_row_gain_run),
         .no_peer = true,
         .goal = {BENCH_AT_LEAST, 3}},
        {.name = "row-mlp-latency",
         .doc = "row-mlp-hybrid, each result read before the next row",
         MICROSECONDS(""),
         TASKS,
         .work = ROW_WORK,
         ROW(bench_row_latency_run),
         .goal = {BENCH_OF_PEER, 1 / 1.5}},
        {.name = "mlp5-step",
         .doc = "a training step of 784-512-512-512-512-10, batch 64, as one program",
         MILLISECONDS(""),
         TASKS,
         .work.flops = MLP5_FLOPS,
         STEP(mlp5),
         .goal = {BENCH_OF_PEER, 1}},
        {.name = "mlp5-step-compiled",
         .doc = "the same beside the peer's compiler",
         MILLISECONDS(""),
         TASKS,
         .work.flops = MLP5_FLOPS,
         STEP(mlp5)},
        {.name = "lenet-step-hybrid",
         .doc = "lenet-step as one program",
         MILLISECONDS(""),
         TASKS,
         .work.flops = LENET_FLOPS,
         STEP(lenet_hybrid)},
        {.name = "lenet-step-compiled",
         .doc = "the same beside the peer's compiler",
         MILLISECONDS(""),
         TASKS,
         .work.flops = LENET_FLOPS,
         STEP(lenet_hybrid)},
        {.name = "lenet-hybrid-gain",
         .doc = "how many times as fast as lenet-step lenet-step-hybrid is, in turn",
         RATIO(""),
         .times = 8,
         BOTH(bench_lenet_gain_run),
         .goal = {BENCH_AT_LEAST, 1.3}},
        {.name = "lenet-hybrid-memory",
         .doc = "memory planned for the intermediates of lenet-step-hybrid / lenet-step's peak (which is shown)",
         RATIO(""),
         .rate_unit = "MB",
         .rate_value = &bench_eager_megabytes,
         .times = 1,
         .runs = 3,
         BOTH(bench_lenet_memory_run),
         .goal = {BENCH_AT_MOST, 0.5}},
        {.name = "compile-resnet18",
         .doc = "compiling a training step of ResNet-18, batch 32 x 1 x 28 x 28",
         MILLISECONDS(""),
         .rate_unit = "calls",
         .rate_value = &bench_compiled_calls,
         .no_peer = true,
         .setup = bench_resnet_setup,
         .run = bench_resnet_compile_run,
         .teardown = bench_whole_step_teardown,
         .goal = {BENCH_AT_MOST, 50}},

        {.name = "resnet18-step",
         .doc = "a training step of ResNet-18 as one program, batch 32 x 1 x 28 x 28",
         MILLISECONDS(""),
         RATE("images/s", 32),
         .runs = 3,
         .work.flops = RESNET_FLOPS(32),
         STEP(resnet)},
        {.name = "resnet18-step-256",
         .doc = "the same with a batch of 256: on GPUs only",
         MILLISECONDS(""),
         RATE("images/s", 256),
         .gpu_only = true,
         .work.flops = RESNET_FLOPS(256),
         STEP(resnet)},

        /* In bfloat16: tensors, or whole steps under autocast. */
        {.name = "gemm-bf16",
         .doc = "dot(2048 x 2048) in bfloat16",
         MILLISECONDS(""),
         FLOPS(2 * 2048.0 * 2048 * 2048),
         OP(product, IN_HALF(2048, 2048), IN_HALF(2048, 2048)),
         .goal = {BENCH_OF_PEER, 1}},
        {.name = "gemm-bf16-gain",
         .doc = "how many times as fast as in float32 that is, in turn",
         RATIO(""),
         .no_peer = true,
         .cpu_only = true,
         .times = 4,
         .setup = bench_gemm_both_setup,
         .run = bench_gemm_half_gain_run,
         .teardown = bench_gemm_both_teardown,
         .goal = {BENCH_AT_LEAST, 1.6}},
        {.name = "conv-bf16",
         .doc = "a convolution of ResNet-18 in bfloat16: 32 x 64 x 28 x 28, 64 kernels of 3 x 3",
         MILLISECONDS(""),
         FLOPS(2 * 32.0 * 64 * 64 * 9 * 28 * 28),
         OP(conv_padded, IN_HALF(32, 64, 28, 28), IN_HALF(64, 64, 3, 3), IN_HALF(64))},
        {.name = "conv-bf16-back",
         .doc = "both its gradients",
         MILLISECONDS(""),
         FLOPS(4 * 32.0 * 64 * 64 * 9 * 28 * 28),
         OP_BACK(conv_padded, IN_HALF_GRAD(32, 64, 28, 28), IN_HALF_GRAD(64, 64, 3, 3), IN_HALF_GRAD(64))},
        {.name = "resnet18-step-bf16",
         .doc = "resnet18-step under autocast to bfloat16",
         MILLISECONDS(""),
         RATE("images/s", 32),
         .runs = 3,
         .half = true,
         .work.flops = RESNET_FLOPS(32),
         STEP(resnet),
         .goal = {BENCH_OF_PEER, 1.2}},
        {.name = "resnet18-bf16-gain",
         .doc = "how many times as fast as resnet18-step that is, in turn",
         RATIO(""),
         .times = 1,
         .half = true,
         HALF_BOTH(resnet, bench_half_gain_run),
         .goal = {BENCH_AT_LEAST, 1.3}},
        {.name = "resnet18-bf16-memory",
         .doc = "memory planned for it (which is shown) / for resnet18-step",
         RATIO(""),
         .rate_unit = "MB",
         .rate_value = &bench_half_megabytes,
         .times = 1,
         .runs = 1,
         HALF_BOTH(resnet, bench_half_memory_run),
         .goal = {BENCH_AT_MOST, 0.65}},
        {.name = "lenet-step-bf16",
         .doc = "lenet-step-hybrid under autocast to bfloat16",
         MILLISECONDS(""),
         TASKS,
         .half = true,
         .work.flops = LENET_FLOPS,
         STEP(lenet_hybrid)},
        {.name = "lenet-bf16-gain",
         .doc = "how many times as fast as lenet-step-hybrid that is, in turn",
         RATIO(""),
         .times = 8,
         .half = true,
         HALF_BOTH(lenet_hybrid, bench_half_gain_run)},

        /* Sequences. */
        {.name = "lstm-step",
         .doc = "forward and back through an LSTM layer: 35 steps of 32 rows, 256 units on 256 inputs",
         MILLISECONDS(""),
         .work.flops = 3 * 2.0 * 35 * 32 * 1024 * 512,
         SEQUENCE(lstm)},
        {.name = "attention",
         .doc = "forward and back through attention: 4 x 12 heads, 1024 queries and keys of width 64",
         MILLISECONDS(""),
         .runs = 3,
         .work.flops = 6 * 2.0 * 4 * 12 * 1024 * 1024 * 64,
         SEQUENCE(attention)},

        /* Run-ahead. */
        {.name = "nanogpt-step",
         .doc = "a training step of a GPT as one program: 4 layers, 128 wide, 12 x 64 characters, AdamW",
         MILLISECONDS(""),
         RATE("tokens/s", 12 * 64),
         .work = {.flops = GPT_FLOPS(12 * 64, NANOGPT_WEIGHTS), GPT_TRAFFIC(NANOGPT_WEIGHTS)},
         GPT(nanogpt),
         .goal = {BENCH_OF_PEER, 1.6}},
        {.name = "gpt2-step",
         .doc = "the same in the shape of GPT-2, 124 million parameters: 4 x 64 words",
         MILLISECONDS(""),
         RATE("tokens/s", 4 * 64),
         .work = {.flops = GPT_FLOPS(4 * 64, GPT2_WEIGHTS), GPT_TRAFFIC(GPT2_WEIGHTS)},
         .runs = 5,
         GPT(gpt2),
         .goal = {BENCH_OF_PEER, 1.3}},
        {.name = "gpt2-step-compiled",
         .doc = "the same beside the peer's compiler",
         MILLISECONDS(""),
         RATE("tokens/s", 4 * 64),
         .work = {.flops = GPT_FLOPS(4 * 64, GPT2_WEIGHTS), GPT_TRAFFIC(GPT2_WEIGHTS)},
         .runs = 5,
         GPT(gpt2),
         .goal = {BENCH_OF_PEER, 1.1}},
        {.name = "run-ahead-memory",
         .doc = "memory of training without any wait / with one a batch (resident set)",
         RATIO(""),
         .rate_unit = "MB",
         .rate_value = &bench_ahead_megabytes,
         .no_engine = true,
         .cpu_only = true,
         .no_peer = true,
         .times = 1,
         .runs = 3,
         .run = bench_ahead_memory_run,
         .goal = {BENCH_AT_MOST, 1.25}},
        {.name = "run-ahead-buffers",
         .doc = "the same, of tensors and pools (sl_stats)",
         RATIO(""),
         .rate_unit = "MB",
         .rate_value = &bench_ahead_megabytes,
         .no_engine = true,
         .cpu_only = true,
         .no_peer = true,
         .times = 1,
         .runs = 3,
         .run = bench_ahead_buffers_run,
         .goal = {BENCH_AT_MOST, 1.25}},
        {.name = "run-ahead-time",
         .doc = "time of training without any wait / with one a batch",
         RATIO(""),
         .no_engine = true,
         .cpu_only = true,
         .no_peer = true,
         .times = 1,
         .runs = 5,
         .run = bench_ahead_time_run,
         .goal = {BENCH_AT_MOST, 1.02}},

        /* The parts of LeNet. */
        {.name = "conv1",
         .doc = "LeNet's first convolution",
         MILLISECONDS(""),
         TRAFFIC(X_K, CONV1_K),
         .work.flops = CONV1_FLOPS,
         OP(conv, IN(256, 1, 28, 28), IN(20, 1, 3, 3), IN(20))},
        {.name = "conv1-back",
         .doc = "... back, by its weights",
         MILLISECONDS(""),
         TRAFFIC(X_K + CONV1_K, 0),
         .work.flops = CONV1_FLOPS,
         OP_BACK(conv, IN(256, 1, 28, 28), IN_GRAD(20, 1, 3, 3), IN_GRAD(20))},
        {.name = "relu1",
         .doc = "LeNet's first relu",
         MILLISECONDS(""),
         TRAFFIC(CONV1_K, CONV1_K),
         OP(relu, IN(256, 20, 26, 26))},
        {.name = "relu1-back",
         .doc = "... back",
         MILLISECONDS(""),
         TRAFFIC(2 * CONV1_K, CONV1_K),
         OP_BACK(relu, IN_GRAD(256, 20, 26, 26))},
        {.name = "pool1",
         .doc = "LeNet's first pooling",
         MILLISECONDS(""),
         TRAFFIC(CONV1_K, POOL1_K),
         OP(pool, IN(256, 20, 26, 26))},
        {.name = "pool1-back",
         .doc = "... back",
         MILLISECONDS(""),
         TRAFFIC(POOL1_K, CONV1_K),
         OP_BACK(pool, IN_GRAD(256, 20, 26, 26))},
        {.name = "conv2",
         .doc = "LeNet's second convolution",
         MILLISECONDS(""),
         FLOPS(CONV2_FLOPS),
         OP(conv, IN(256, 20, 13, 13), IN(50, 20, 5, 5), IN(50))},
        {.name = "conv2-back",
         .doc = "... back, by its input and weights",
         MILLISECONDS(""),
         FLOPS(2 * CONV2_FLOPS),
         OP_BACK(conv, IN_GRAD(256, 20, 13, 13), IN_GRAD(50, 20, 5, 5), IN_GRAD(50))},
        {.name = "relu2",
         .doc = "LeNet's second relu",
         MILLISECONDS(""),
         TRAFFIC(CONV2_K, CONV2_K),
         OP(relu, IN(256, 50, 9, 9))},
        {.name = "pool2",
         .doc = "LeNet's second pooling",
         MILLISECONDS(""),
         TRAFFIC(CONV2_K, POOL2_K),
         OP(pool, IN(256, 50, 9, 9))},
        {.name = "pool2-back",
         .doc = "... back",
         MILLISECONDS(""),
         TRAFFIC(POOL2_K, CONV2_K),
         OP_BACK(pool, IN_GRAD(256, 50, 9, 9))},
        {.name = "linear1",
         .doc = "LeNet's first dense layer",
         MICROSECONDS(""),
         FLOPS(LINEAR1_FLOPS),
         OP(linear, IN(256, 800), IN(800, 128), IN(128))},
        {.name = "linear1-back",
         .doc = "... back",
         MICROSECONDS(""),
         FLOPS(2 * LINEAR1_FLOPS),
         OP_BACK(linear, IN_GRAD(256, 800), IN_GRAD(800, 128), IN_GRAD(128))},
        {.name = "cross-entropy",
         .doc = "LeNet's loss",
         MICROSECONDS(""),
         TRAFFIC(2.56, 0.256),
         .work.tasks = 1.0 / 32,
         OP(cross_entropy, IN(256, 10), IN_CLASSES(256))},
        {.name = "cross-entropy-back",
         .doc = "... back",
         MICROSECONDS(""),
         TRAFFIC(2.56, 2.56),
         .work.tasks = 1.0 / 32,
         OP_BACK(cross_entropy, IN_GRAD(256, 10), IN_CLASSES(256))},

        /* Memory-bound operations. */
        {.name = "add-16mb",
         .doc = "a + b of 16 MB each",
         MILLISECONDS(""),
         TRAFFIC(8388.6, 4194.3),
         OP(add, IN(4194304), IN(4194304))},
        {.name = "sum-64mb", .doc = "sum of 64 MB", MILLISECONDS(""), TRAFFIC(16777.2, 0), OP(total, IN(16777216))},
        {.name = "softmax",
         .doc = "softmax over the rows of 2048 x 2048",
         MILLISECONDS(""),
         TRAFFIC(4194.3, 4194.3),
         OP(softmax, IN(2048, 2048))},
        {.name = "batch-norm",
         .doc = "batch normalisation of 64 x 64 x 32 x 32, in training",
         MILLISECONDS(""),
         TRAFFIC(2 * 4194.3, 4194.3),
         OP(batch_norm, IN(64, 64, 32, 32), IN(64), IN(64), IN(64), IN(64))},
        {.name = "batch-norm-back",
         .doc = "... back",
         MILLISECONDS(""),
         TRAFFIC(4 * 4194.3, 4194.3),
         OP_BACK(batch_norm, IN_GRAD(64, 64, 32, 32), IN_GRAD(64), IN_GRAD(64), IN(64), IN(64))},
};

const int bench_case_count = sizeof bench_cases / sizeof *bench_cases;
