/* Trainers whose states are in main memory while the network is on an emulated GPU (.state_on): the bits of updates that
 * the test makes by itself on the CPU; all options; files; what stays on the GPU, and what travels. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "driver/networks.h"
#include "emulated.h"

enum { STEPS = 4, ROWS = 8, INPUTS = 24, UNITS = 40, CLASSES = 5, MOST = 64 };

/* Passes that change the order of sums, or skip roundings. */
enum {
	ROUNDING = 1u << SL_PASS_SIMPLIFY | 1u << SL_PASS_NORM | 1u << SL_PASS_BLOCK | 1u << SL_PASS_FUSE |
	           1u << SL_PASS_LAYOUT
};

/* ---- training ------------------------------------------------------------------------------------------------------ */

struct training {
	sl_block *net;
	sl_trainer *trainer;
	sl_step *step; /* NULL: call by call */
	sl_param *params[MOST];
	int count;
};

static void set_weights(struct training *t)
{
	t->count = sl_block_params(t->net, t->params, MOST);
	for (int i = 0; i < t->count; i++) {
		sl_shape shape = sl_tensor_shape(sl_param_data(t->params[i]));
		int64_t size = sl_shape_size(shape);
		float *values = malloc((size_t)size * sizeof *values);
		for (int64_t k = 0; k < size; k++) values[k] = 0.2f * (float)sin(1 + i + (double)(k * k % 1009));
		enum sl_dtype dtype = sl_tensor_dtype(sl_param_data(t->params[i]));
		CHECK_OK(sl_param_set(t->params[i], sl_cast(sl_from(values, shape, .device = sl_cpu(0)), dtype)));
		free(values);
	}
}

static sl_block *perceptron(void)
{
	return sl_sequential(sl_dense(UNITS, .activation = SL_TANH), sl_dense(UNITS, .activation = SL_TANH),
	                     sl_dense(UNITS, .activation = SL_TANH), sl_dense(CLASSES));
}

static void begin(struct training *t, enum sl_dtype dtype, struct sl_optimizer o, bool whole, int accumulate)
{
	*t = (struct training){.net = perceptron()};
	sl_device gpu = sl_gpu(0);
	CHECK_OK(sl_initialize(t->net, .init = sl_zeros_init(), .dtype = dtype, .devices = &gpu, .ndevices = 1));
	SL_SCOPE {
		sl_forward(t->net, sl_zeros(SL_SHAPE(1, INPUTS), .dtype = dtype, .device = gpu)); /* shapes */
		set_weights(t);
	}
	t->trainer = sl_trainer_new(t->net, o);
	CHECK(t->trainer != NULL);
	if (whole)
		t->step = sl_step_compile(t->net, sl_softmax_cross_entropy_at, t->trainer, .passes_off = ROUNDING,
		                          .accumulate = accumulate);
}

static void end(struct training *t)
{
	sl_step_free(t->step);
	sl_trainer_free(t->trainer);
	sl_block_free(t->net);
}

static void make_batch(int number, enum sl_dtype dtype, sl_tensor **x, sl_tensor **y)
{
	float values[ROWS * INPUTS];
	int32_t classes[ROWS];
	for (int i = 0; i < ROWS * INPUTS; i++) values[i] = (float)sin(i * i + 7 * number);
	for (int i = 0; i < ROWS; i++) classes[i] = (i + number) % CLASSES;
	*x = sl_cast(sl_from(values, SL_SHAPE(ROWS, INPUTS), .device = sl_gpu(0)), dtype);
	*y = sl_from(classes, SL_SHAPE(ROWS), .dtype = SL_INT32, .device = sl_gpu(0));
}

static void backward(const struct training *t, sl_tensor *x, sl_tensor *y)
{
	sl_tensor *loss = NULL;
	SL_RECORD
		loss = sl_softmax_cross_entropy(sl_forward(t->net, x), y);
	double scale = t->trainer ? sl_trainer_loss_scale(t->trainer) : 1;
	CHECK_OK(sl_backward_heads_at(SL_HERE, &loss, 1, (struct sl_backward_opts){.scale = scale}));
}

static void make_step(const struct training *t, int number, enum sl_dtype dtype)
{
	SL_SCOPE {
		sl_tensor *x, *y;
		make_batch(number, dtype, &x, &y);
		if (t->step) {
			CHECK(sl_step_run(t->step, x, y, NULL) != NULL);
		} else {
			backward(t, x, y);
			CHECK_OK(sl_trainer_step(t->trainer, ROWS));
		}
	}
}

/* All parameters, as float32. */
static float *values_of(const struct training *t, int64_t *size)
{
	*size = 0;
	for (int i = 0; i < t->count; i++) *size += sl_tensor_size(sl_param_data(t->params[i]));
	float *all = malloc((size_t)*size * sizeof *all), *at = all;
	SL_SCOPE
		for (int i = 0; i < t->count; i++) {
			sl_tensor *p = sl_param_data(t->params[i]);
			size_t n = (size_t)sl_tensor_size(p);
			CHECK_OK(sl_read(sl_cast(p, SL_FLOAT32), at, n * sizeof *at));
			at += n;
		}
	return all;
}

static void check_same(const char *name, float *a, float *b, int64_t size, double tolerance)
{
	double worst = 0;
	for (int64_t i = 0; i < size; i++) {
		double apart = fabs((double)a[i] - (double)b[i]);
		if (!(apart <= worst)) worst = apart;
	}
	CHECK_SAYING(worst <= tolerance, "%s: parameters differ by %g", name, worst);
	free(a);
	free(b);
}

/* ---- by hand ------------------------------------------------------------------------------------------------------- */

/* Values and states in main memory, of each parameter. */
struct by_hand {
	sl_tensor *p[MOST], *g[MOST], *s[2][MOST];
};

static void update(const struct training *t, struct by_hand *h, const struct sl_optimizer *o, int step)
{
	for (int i = 0; i < t->count; i++) {
		h->g[i] = sl_copy_to(sl_param_grad(t->params[i]), sl_cpu(0));
		if (!h->p[i]) {
			h->p[i] = sl_retain(sl_copy_to(sl_param_data(t->params[i]), sl_cpu(0)));
			for (int k = 0; k < 2; k++)
				h->s[k][i] = sl_retain(sl_zeros(sl_tensor_shape(h->p[i]), .device = sl_cpu(0)));
		}
	}
	int states = sl_optimizer_states(o);
	CHECK_OK(sl_optimizer_update(*o, step, 1.0 / ROWS, h->p, h->g, states > 0 ? h->s[0] : NULL,
	                             states > 1 ? h->s[1] : NULL, t->count));
	for (int i = 0; i < t->count; i++) CHECK_OK(sl_param_set(t->params[i], h->p[i]));
}

static float *train_by_hand(const struct sl_optimizer *o, int64_t *size)
{
	struct by_hand h;
	struct training t;
	memset(&h, 0, sizeof h);
	begin(&t, SL_FLOAT32, *o, false, 1);
	for (int i = 0; i < STEPS; i++)
		SL_SCOPE {
			sl_tensor *x, *y;
			make_batch(i, SL_FLOAT32, &x, &y);
			backward(&t, x, y);
			update(&t, &h, o, i + 1);
		}
	float *values = values_of(&t, size);
	for (int i = 0; i < t.count; i++) {
		sl_release(h.p[i]);
		for (int k = 0; k < 2; k++) sl_release(h.s[k][i]);
	}
	end(&t);
	return values;
}

static float *train(enum sl_dtype dtype, struct sl_optimizer o, bool whole, int accumulate, int64_t *size)
{
	struct training t;
	begin(&t, dtype, o, whole, accumulate);
	for (int i = 0; i < STEPS; i++) make_step(&t, i, dtype);
	float *values = values_of(&t, size);
	CHECK(sl_trainer_steps(t.trainer) == STEPS / accumulate);
	end(&t);
	return values;
}

static struct sl_optimizer apart(struct sl_optimizer o)
{
	o.state_on = sl_cpu(-1);
	return o;
}

static void test_bits(void)
{
	const struct sl_optimizer all[] = {sl_adam(.lr = 0.01), sl_adamw(.lr = 0.01, .weight_decay = 0.1),
	                                   sl_sgd(.lr = 0.1, .momentum = 0.9), sl_lion(.lr = 0.01),
	                                   sl_adam(.lr = 0.01, .clip_norm = 0.05)};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		int64_t size;
		float *hand = train_by_hand(&all[i], &size);
		CHECK(size > 0 && hand[0] != 0);
		float *whole = train(SL_FLOAT32, apart(all[i]), true, 1, &size);
		float *calls = train(SL_FLOAT32, apart(all[i]), false, 1, &size);
		check_same("call by call", calls,
		           memcpy(malloc((size_t)size * sizeof(float)), hand, (size_t)size * sizeof(float)), size, 0);
		check_same(sl_optimizer_name(all[i].kind), whole, hand, size, 0);
	}
}

/* ---- options ------------------------------------------------------------------------------------------------------- */

/* Whole steps have the bits of the same calls one by one, and about the values of a trainer with all on the GPU. */
static void compare(const char *name, enum sl_dtype dtype, struct sl_optimizer o, int accumulate, double tolerance)
{
	int64_t size;
	float *whole = train(dtype, apart(o), true, accumulate, &size);
	float *plain = train(dtype, o, true, accumulate, &size);
	if (accumulate == 1) {
		float *calls = train(dtype, apart(o), false, 1, &size), *copy = malloc((size_t)size * sizeof *copy);
		memcpy(copy, whole, (size_t)size * sizeof *copy);
		check_same(name, calls, copy, size, 0);
	}
	check_same(name, whole, plain, size, tolerance);
}

static void test_options(void)
{
	compare("Adam", SL_FLOAT32, sl_adam(.lr = 0.01), 1, 1e-6);
	compare("bfloat16", SL_BFLOAT16, sl_adamw(.lr = 0.01), 1, 0.01);
	compare("micro-batches", SL_FLOAT32, sl_adam(.lr = 0.01), 2, 1e-6);
	compare("loss scaling", SL_FLOAT16, sl_adam(.lr = 0.01, .loss_scaling = {.start = 256}), 1, 0.01);
	compare("averages", SL_FLOAT32, sl_adam(.lr = 0.01, .average = 0.9), 1, 1e-6);
	compare("clipping", SL_BFLOAT16, sl_adam(.lr = 0.01, .clip_norm = 0.5), 1, 0.01);
}

/* An overflow skips the step. */
static void test_overflow(void)
{
	struct training t;
	begin(&t, SL_FLOAT16, apart(sl_adam(.lr = 0.01, .loss_scaling = {.start = 0x1p30})), true, 1);
	int64_t size;
	float *before = values_of(&t, &size);
	make_step(&t, 0, SL_FLOAT16);
	CHECK(sl_trainer_overflows(t.trainer) == 1 && sl_trainer_steps(t.trainer) == 0);
	check_same("overflow", before, values_of(&t, &size), size, 0);
	end(&t);
}

/* Averages stand in for the parameters, and these come back. */
static void test_averages(void)
{
	struct training t;
	begin(&t, SL_FLOAT32, apart(sl_sgd(.lr = 0.1, .average = 0.5)), true, 1);
	int64_t size;
	float *first = values_of(&t, &size);
	make_step(&t, 0, SL_FLOAT32);
	float *own = values_of(&t, &size);
	CHECK_OK(sl_trainer_use_averages(t.trainer, true));
	float *averages = values_of(&t, &size);
	for (int64_t i = 0; i < size; i++) first[i] = 0.5f * first[i] + 0.5f * own[i];
	check_same("averages", averages, first, size, 1e-6);
	CHECK_OK(sl_trainer_use_averages(t.trainer, false));
	check_same("own values", values_of(&t, &size), own, size, 0);
	end(&t);
}

static void test_frozen(void)
{
	struct training t;
	begin(&t, SL_FLOAT32, apart(sl_adam(.lr = 0.01)), true, 1);
	make_step(&t, 0, SL_FLOAT32);
	CHECK_OK(sl_freeze(t.net, "1.*"));
	int64_t size;
	float *before = values_of(&t, &size);
	make_step(&t, 1, SL_FLOAT32);
	float *after = values_of(&t, &size);
	int64_t frozen = INPUTS * UNITS + UNITS, end_of = frozen + UNITS * UNITS + UNITS;
	CHECK(!memcmp(before + frozen, after + frozen, (size_t)(end_of - frozen) * sizeof *after));
	CHECK(memcmp(before, after, (size_t)frozen * sizeof *after) != 0);
	CHECK(memcmp(before + end_of, after + end_of, (size_t)(size - end_of) * sizeof *after) != 0);
	free(before);
	free(after);
	end(&t);
}

/* ---- files --------------------------------------------------------------------------------------------------------- */

/* Two steps, a file of the state, and two more by another trainer: as four by one. */
static void check_resumed(enum sl_dtype dtype, struct sl_optimizer first, struct sl_optimizer second, double tolerance)
{
	char path[] = "/tmp/slp-state-XXXXXX.params";
	int file = mkstemps(path, 7);
	int64_t size;
	CHECK(file >= 0 && close(file) == 0);
	float *all = train(dtype, first, true, 1, &size);
	struct training t;
	begin(&t, dtype, first, true, 1);
	for (int i = 0; i < STEPS / 2; i++) make_step(&t, i, dtype);
	CHECK_OK(sl_trainer_save(t.trainer, path));
	sl_step_free(t.step);
	sl_trainer_free(t.trainer);
	t.trainer = sl_trainer_new(t.net, second);
	CHECK_OK(sl_trainer_load(t.trainer, path));
	t.step = sl_step_compile(t.net, sl_softmax_cross_entropy_at, t.trainer, .passes_off = ROUNDING);
	for (int i = STEPS / 2; i < STEPS; i++) make_step(&t, i, dtype);
	check_same("resumed", all, values_of(&t, &size), size, tolerance);
	end(&t);
	unlink(path);
}

static void test_files(void)
{
	check_resumed(SL_FLOAT32, apart(sl_adam(.lr = 0.01)), apart(sl_adam(.lr = 0.01)), 0);
	check_resumed(SL_BFLOAT16, apart(sl_adam(.lr = 0.01)), apart(sl_adam(.lr = 0.01)), 0);
	check_resumed(SL_FLOAT32, sl_adam(.lr = 0.01), apart(sl_adam(.lr = 0.01)), 1e-6);
	check_resumed(SL_FLOAT32, apart(sl_adam(.lr = 0.01)), sl_adam(.lr = 0.01), 1e-6);
}

/* ---- memory -------------------------------------------------------------------------------------------------------- */

/* A GPT with the proportions of GPT-2's 124 million parameters: 31 % are the words'. */
static const struct net_gpt_size gpt = {.words = 4140, .steps = 16, .width = 192, .layers = 4, .heads = 2};

struct figures {
	size_t peak, params;
	struct emu_link in, out;
};

/* One loss for each word. */
static sl_tensor *word_loss(const char *at, sl_tensor *out, sl_tensor *target)
{
	sl_shape s = sl_tensor_shape(out);
	sl_tensor *rows = sl_reshape_at(at, out, SL_SHAPE(s.dim[0] * s.dim[1], s.dim[2]));
	return sl_softmax_cross_entropy_at(at, rows, sl_reshape_at(at, target, SL_SHAPE(s.dim[0] * s.dim[1])));
}

static struct figures count_gpt(struct sl_optimizer o)
{
	struct figures f = {0};
	struct emu_counts before, counts;
	sl_device gpu = sl_gpu(0);
	int32_t words[17];
	sl_param *params[MOST];
	for (int i = 0; i < 17; i++) words[i] = i * i;
	slp_begin((struct sl_config){.gpus = 1, .seed = 1});
	emu_counts_reset();
	sl_block *net = net_gpt(gpt);
	CHECK_OK(sl_initialize(net, .init = sl_normal_init(0.02), .devices = &gpu, .ndevices = 1));
	sl_trainer *trainer = sl_trainer_new(net, o);
	sl_step *step = sl_step_compile(net, word_loss, trainer);
	for (int i = 0; i < 6; i++) {
		if (i == 4) emu_counts_settle(), emu_counts_get(&before);
		SL_SCOPE {
			sl_tensor *x = sl_from(words, SL_SHAPE(1, 16), .dtype = SL_INT32, .device = gpu);
			sl_tensor *y = sl_from(words + 1, SL_SHAPE(1, 16), .dtype = SL_INT32, .device = gpu);
			sl_tensor *loss = sl_step_run(step, x, y, NULL);
			CHECK(loss && isfinite(sl_item(sl_sum(loss))));
		}
		CHECK_OK(sl_wait_all());
	}
	emu_counts_settle();
	emu_counts_get(&counts);
	f.peak = counts.peak[0];
	f.in = (struct emu_link){counts.link[EMU_HOST][0].copies - before.link[EMU_HOST][0].copies,
	                         (counts.link[EMU_HOST][0].bytes - before.link[EMU_HOST][0].bytes) / 2};
	f.out = (struct emu_link){counts.link[0][EMU_HOST].copies - before.link[0][EMU_HOST].copies,
	                          (counts.link[0][EMU_HOST].bytes - before.link[0][EMU_HOST].bytes) / 2};
	CHECK(counts.allocations[0] == before.allocations[0]);
	for (int i = 0, n = sl_block_params(net, params, MOST); i < n; i++)
		f.params += sl_tensor_bytes(sl_param_data(params[i]));
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
	slp_end_well();
	return f;
}

/* Gradients leave once a step, parameters come back once. */
static void test_memory(void)
{
	slp_end();
	struct figures plain = count_gpt(sl_adamw(.lr = 1e-3)), f = count_gpt(apart(sl_adamw(.lr = 1e-3)));
	printf("\n    parameters %.2f MB; device memory %.2f MB, with .state_on %.2f MB: %.2f of it; a step: %.2f MB "
	       "out, "
	       "%.2f MB in",
	       1e-6 * (double)f.params, 1e-6 * (double)plain.peak, 1e-6 * (double)f.peak,
	       (double)f.peak / (double)plain.peak, 1e-6 * (double)f.out.bytes, 1e-6 * (double)f.in.bytes);
	CHECK(f.out.bytes >= f.params && f.in.bytes >= f.params);
	CHECK_SAYING((double)f.out.bytes <= 1.2 * (double)f.params && (double)f.in.bytes <= 1.2 * (double)f.params,
	             "%.2f MB out, %.2f MB in for %.2f MB", 1e-6 * (double)f.out.bytes, 1e-6 * (double)f.in.bytes,
	             1e-6 * (double)f.params);
	CHECK_SAYING((double)f.peak <= 0.7 * (double)plain.peak, "%.2f of the memory",
	             (double)f.peak / (double)plain.peak);
	slp_begin_plainly();
}

/* ---- inference ----------------------------------------------------------------------------------------------------- */

enum { LAYERS = 72, WIDTH = 256, LIMIT = 8, CUBLAS = 4, PASSES = 3 }; /* MiB */

struct pass {
	double sums[PASSES];
	size_t peak, weights;
	struct emu_link in[PASSES], out[PASSES];
};

static struct pass infer(int limit)
{
	struct pass p = {.peak = 0};
	struct emu_counts before, after;
	sl_block *layers[LAYERS];
	float values[4 * WIDTH];
	char text[16];
	snprintf(text, sizeof text, "%d", limit);
	if (limit) setenv("STARPU_LIMIT_CUDA_MEM", text, 1);
	slp_begin((struct sl_config){.gpus = 1, .seed = 1});
	unsetenv("STARPU_LIMIT_CUDA_MEM");
	emu_counts_reset();
	for (int i = 0; i < LAYERS; i++) layers[i] = sl_dense(WIDTH, .activation = SL_TANH, .in_units = WIDTH);
	sl_block *net = sl_sequential_at(SL_HERE, layers, LAYERS);
	CHECK_OK(
	        sl_initialize(net, .init = sl_xavier_init(), .devices = SL_ARRAY(sl_device, sl_gpu(0)), .ndevices = 1));
	sl_hybridize(net);
	for (int i = 0; i < PASSES; i++)
		SL_SCOPE {
			emu_counts_settle();
			emu_counts_get(&before);
			for (int k = 0; k < 4 * WIDTH; k++) values[k] = (float)sin(k + i);
			sl_tensor *x = sl_from(values, SL_SHAPE(4, WIDTH), .device = sl_gpu(0));
			p.sums[i] = sl_item(sl_sum(sl_forward(net, x)));
			emu_counts_get(&after);
			p.in[i].bytes = after.link[EMU_HOST][0].bytes - before.link[EMU_HOST][0].bytes;
			p.out[i].bytes = after.link[0][EMU_HOST].bytes - before.link[0][EMU_HOST].bytes;
		}
	p.weights = LAYERS * (size_t)(WIDTH + 1) * WIDTH * sizeof(float);
	p.peak = after.peak[0];
	sl_block_free(net);
	slp_end_well();
	return p;
}

/* Weights come layer by layer, and each at most once a pass; none is copied back. */
static void test_streamed(void)
{
	slp_end();
	struct pass ample = infer(0), small = infer(LIMIT);
	for (int i = 0; i < PASSES; i++)
		CHECK_SAYING(ample.sums[i] == small.sums[i], "pass %d: %.9g, not %.9g", i, small.sums[i],
		             ample.sums[i]);
	CHECK(small.weights > (size_t)2 * LIMIT << 20);
	CHECK_SAYING(small.peak <= (size_t)(LIMIT + CUBLAS + 1) << 20, "it took %.1f MiB",
	             (double)small.peak / 1048576);
	for (int i = 1; i < PASSES; i++) {
		CHECK_SAYING((double)small.in[i].bytes <= 1.1 * (double)small.weights, "pass %d: %.1f MB came for %.1f",
		             i, 1e-6 * (double)small.in[i].bytes, 1e-6 * (double)small.weights);
	}
	for (int i = 0; i < PASSES; i++)
		printf("\n    pass %d: weights %.1f MB, device memory %.1f MB; %.1f MB in, %.1f MB out (unlimited: "
		       "%.1f, %.1f)",
		       i, 1e-6 * (double)small.weights, 1e-6 * (double)small.peak, 1e-6 * (double)small.in[i].bytes,
		       1e-6 * (double)small.out[i].bytes, 1e-6 * (double)ample.in[i].bytes,
		       1e-6 * (double)ample.out[i].bytes);
	slp_begin_plainly();
}

/* ---- mistakes ------------------------------------------------------------------------------------------------------ */

static void test_mistakes(void)
{
	sl_block *net = sl_dense(1);
	CHECK_NULL(sl_trainer_new(net, sl_adam(.state_on = sl_gpu(9))), SL_EDEVICE, "gpu:9");
	CHECK_NULL(sl_trainer_new(net, sl_adam(.state_on = sl_auto())), SL_EINVAL, ".state_on");
	sl_block_free(net);
}

static const struct slp_test tests[] = {
        {"bits", test_bits},         {"options", test_options},
        {"overflow", test_overflow}, {"averages", test_averages},
        {"frozen", test_frozen},     {"files", test_files},
        {"memory", test_memory},     {"streamed", test_streamed},
        {"mistakes", test_mistakes}, {0},
};

static void start_with_gpu(void)
{
	slp_begin((struct sl_config){.gpus = 1, .seed = 1});
}

int main(int argc, char **argv)
{
	setenv("SL_EMU_DEVICES", "1", 1);
	setenv("STARPU_SUBALLOCATOR", "0", 1);
	setenv("STARPU_NCPU", "1", 1);
	const struct slp_suite suites[] = {
	        {.name = "state_device", .tests = tests, .before = start_with_gpu, .after = slp_end_well}, {0}};
	return slp_test_main(argc, argv, suites);
}
