/* Half types on an emulated GPU: products and convolutions, their gradients and recurrent layers go to the libraries in
 * those types, for tensor cores; what cuDNN refuses in a half type is computed in float32.  (That values are right is
 * the business of test_ops.) */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attention/attention.h"
#include "check.h"
#include "emulated.h"
#include "op.h"

static const enum sl_dtype halves[] = {SL_BFLOAT16, SL_FLOAT16};

static void start(void)
{
	setenv("STARPU_NCPU", "0", 1);
	slp_begin((struct sl_config){.gpus = 1, .seed = 1});
	CHECK_OK(sl_device_default(sl_gpu(0)));
	emu_counts_reset();
}

static uint64_t products(void)
{
	struct emu_counts c;
	CHECK_OK(sl_wait_all());
	emu_counts_get(&c);
	emu_counts_reset();
	return c.half[0];
}

/* Whole numbers, so small that sums of them are exact in any type. */
static sl_tensor *numbers(enum sl_dtype type, sl_shape shape, int step)
{
	float data[1024];
	int64_t n = sl_shape_size(shape);
	for (int64_t i = 0; i < n; i++) data[i] = (float)((i * step + 1) % 5 - 2);
	return sl_cast(sl_from(data, shape), type);
}

static void check_equal(sl_tensor *a, sl_tensor *b)
{
	float x[2][2048];
	size_t bytes = (size_t)sl_shape_size(sl_tensor_shape(a)) * sizeof(float);
	CHECK_OK(sl_read(sl_cast(a, SL_FLOAT32), x[0], bytes));
	CHECK_OK(sl_read(sl_cast(b, SL_FLOAT32), x[1], bytes));
	CHECK(!memcmp(x[0], x[1], bytes));
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* One product each, and the values of float32. */
static void check_products(enum sl_dtype type)
{
	sl_tensor *y[2][4];
	for (int wide = 0; wide < 2; wide++) {
		enum sl_dtype t = wide ? SL_FLOAT32 : type;
		sl_tensor *a = numbers(t, SL_SHAPE(6, 9), 3), *b = numbers(t, SL_SHAPE(9, 5), 7);
		products();
		y[wide][0] = sl_dot(a, b);
		y[wide][1] = sl_matmul(numbers(t, SL_SHAPE(3, 4, 6), 3), numbers(t, SL_SHAPE(3, 6, 2), 7));
		y[wide][2] = sl_linear(a, b, numbers(t, SL_SHAPE(5), 2));
		y[wide][3] = sl_linear(a, b, NULL);
		CHECK(products() == (wide ? 0 : 4));
	}
	for (int i = 0; i < 4; i++) {
		CHECK(sl_tensor_dtype(y[0][i]) == type);
		check_equal(y[0][i], y[1][i]);
	}
}

static void test_products(void)
{
	start();
	for (int i = 0; i < 2; i++)
		SL_SCOPE {
			check_products(halves[i]);
		}
	slp_end_well();
}

/* Forward, and gradients of both operands. */
static void test_gradients(void)
{
	start();
	for (int i = 0; i < 2; i++)
		SL_SCOPE {
			sl_tensor *w = numbers(halves[i], SL_SHAPE(9, 5), 7),
			          *x = numbers(halves[i], SL_SHAPE(6, 9), 3);
			sl_tensor *kernel = numbers(halves[i], SL_SHAPE(4, 3, 3, 3), 3), *y = NULL;
			sl_tensor *image = numbers(halves[i], SL_SHAPE(2, 3, 6, 6), 7), *loss = NULL;
			CHECK_OK(sl_attach_grad(w));
			CHECK_OK(sl_attach_grad(x));
			CHECK_OK(sl_attach_grad(kernel));
			CHECK_OK(sl_attach_grad(image));
			products();
			SL_RECORD {
				y = sl_sum(sl_conv2d(image, kernel, NULL));
				loss = sl_add(y, sl_sum(sl_linear(x, w, NULL)));
			}
			CHECK_OK(sl_backward(loss));
			CHECK_SAYING(products() == 6, "type %d", halves[i]);
		}
	slp_end_well();
}

/* ---- autocast ---------------------------------------------------------------------------------------------------- */

/* Losses of a few steps of a network whose parameters are float32, call by call or as a whole step; its products are in
 * *count. */
static void train(enum sl_dtype type, bool whole, float losses[4], uint64_t *count)
{
	sl_seed(1);
	sl_block *net = sl_sequential(sl_conv2d_layer(4, .kernel = {3}, .pad = {1, 1}, .activation = SL_RELU),
	                              sl_batch_norm_layer(), sl_dense(10));
	CHECK_OK(sl_initialize(net, .init = sl_normal_init(0.1)));
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.1));
	sl_step *step = whole ? sl_step_compile(net, sl_softmax_cross_entropy_at, trainer) : NULL;
	sl_tensor *x = numbers(SL_FLOAT32, SL_SHAPE(4, 1, 6, 6), 3), *loss = NULL;
	sl_tensor *y = sl_from(((int32_t[]){1, 5, 0, 9}), SL_SHAPE(4), .dtype = SL_INT32);
	products();
	for (int i = 0; i < 4; i++) {
		SL_AUTOCAST(type)
		{
			SL_RECORD
				if (!step) loss = sl_softmax_cross_entropy(sl_forward(net, x), y);
			if (step) loss = sl_step_run(step, x, y, NULL);
		}
		if (!step) CHECK_OK(sl_backward(loss));
		if (!step) CHECK_OK(sl_trainer_step(trainer, 4));
		CHECK_OK(sl_read(sl_mean(loss), &losses[i], sizeof losses[i]));
	}
	*count = products();
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
}

/* Each step has two products of the convolution, whose x nobody wants the gradient of, and three of the layer above. */
static void test_training(void)
{
	setenv("SL_CUDA_GRAPHS", "0", 1);
	start();
	for (int i = 0; i < 4; i++)
		SL_SCOPE {
			float wide[4], half[4];
			uint64_t count;
			train(SL_FLOAT32, i & 1, wide, &count);
			CHECK(count == 0);
			train(halves[i / 2], i & 1, half, &count);
			CHECK_SAYING(count == 4 * 5, "type %d: %d products", halves[i / 2], (int)count);
			for (int k = 0; k < 4; k++) CHECK(fabsf(half[k] - wide[k]) <= 0.03f * (1 + wide[k]));
		}
	slp_end_well();
	unsetenv("SL_CUDA_GRAPHS");
}

/* ---- refused ----------------------------------------------------------------------------------------------------- */

/* y and the gradients of x and w, forwards and back in one type. */
static void convolution(enum sl_dtype type, int64_t size, sl_tensor *to[3])
{
	sl_tensor *x = numbers(type, SL_SHAPE(2, 3, size, size), 7), *w = numbers(type, SL_SHAPE(4, 3, 3, 3), 3);
	sl_tensor *b = numbers(type, SL_SHAPE(4), 2);
	CHECK_OK(sl_attach_grad(x));
	CHECK_OK(sl_attach_grad(w));
	SL_RECORD
		to[0] = sl_conv2d(x, w, b);
	CHECK_OK(sl_backward(to[0]));
	to[1] = sl_grad(x);
	to[2] = sl_grad(w);
}

/* The second time it is known.  Sizes that were there before keep what was chosen for them. */
static void check_refused(enum sl_dtype type, int64_t size)
{
	sl_tensor *half[3], *wide[3];
	convolution(type, 5, half);
	CHECK(products() == 3);
	convolution(SL_FLOAT32, size, wide);
	emu_fail(EMU_HALF, -1);
	for (int again = 0; again < 2; again++) {
		convolution(type, size, half);
		for (int i = 0; i < 3; i++) check_equal(half[i], wide[i]);
		emu_fail(EMU_HALF, 0);
	}
	CHECK(products() == 0);
}

static void test_refused(void)
{
	start();
	for (int i = 0; i < 2; i++)
		SL_SCOPE {
			check_refused(halves[i], 6);
		}
	slp_end_well();
}

/* ---- views ------------------------------------------------------------------------------------------------------- */

/* Numbers that are rounded, of a view that begins an element behind a multiple of 16 bytes, or of a tensor of its
 * own. */
static sl_tensor *fractions(enum sl_dtype type, sl_shape shape, bool view)
{
	float data[1024];
	int64_t n = sl_shape_size(shape);
	for (int64_t i = 0; i < n; i++) data[i + 1] = 1 / (float)(i % 37 + 3) - (float)(i % 5) * 0.1f;
	sl_tensor *all = sl_cast(sl_from(view ? data : data + 1, SL_SHAPE(n + view)), type);
	return sl_reshape(view ? sl_rows(all, 1, n + 1) : all, shape);
}

/* The same engine computes them, and so the same bits. */
static void check_views(enum sl_dtype type)
{
	struct emu_counts counts;
	sl_tensor *y[2], *z[2];
	for (int view = 0; view < 2; view++) {
		sl_tensor *x = fractions(type, SL_SHAPE(2, 3, 7, 7), view),
		          *w = fractions(type, SL_SHAPE(4, 3, 3, 3), view);
		emu_counts_reset();
		y[view] = sl_conv2d(x, w, fractions(type, SL_SHAPE(4), view));
		z[view] = sl_conv2d(x, w, NULL);
		CHECK_OK(sl_wait_all());
		emu_counts_get(&counts);
		CHECK(counts.fused[0] == 2 && counts.half[0] == 2);
	}
	check_equal(y[1], y[0]);
	check_equal(z[1], z[0]);
}

static void test_views(void)
{
	start();
	for (int i = 0; i < 2; i++)
		SL_SCOPE {
			check_views(halves[i]);
		}
	slp_end_well();
}

/* ---- attention --------------------------------------------------------------------------------------------------- */

enum { STEPS = 24, ATTENTION = 3 * 4 * STEPS * 16 };

/* The result, and gradients of queries, keys and values, as float32.  mask: NULL, or numbers that are added, in float32. */
static void attend(enum sl_dtype type, bool causal, sl_tensor *mask, float to[4][ATTENTION])
{
	sl_tensor *in[3], *y = NULL, *weight;
	for (int i = 0; i < 3; i++) {
		float data[ATTENTION];
		for (int e = 0; e < ATTENTION; e++) data[e] = (float)((e * (7 + 4 * i)) % 23 - 11) / 8;
		in[i] = sl_cast(sl_from(data, SL_SHAPE(3, 4, STEPS, 16)), type);
		CHECK_OK(sl_attach_grad(in[i]));
	}
	weight = sl_cast(numbers(SL_FLOAT32, SL_SHAPE(STEPS, 16), 3), type);
	mask = mask ? sl_cast(mask, type) : NULL;
	SL_RECORD
		y = sl_scaled_dot_product_attention(in[0], in[1], in[2], .causal = causal, .mask = mask);
	SL_RECORD
		weight = sl_sum(sl_mul(y, weight));
	CHECK_OK(sl_backward(weight));
	for (int i = 0; i < 4; i++) {
		sl_tensor *t = i ? sl_grad(in[i - 1]) : y;
		CHECK(sl_tensor_dtype(t) == type);
		CHECK_OK(sl_read(sl_cast(t, SL_FLOAT32), to[i], sizeof to[i]));
	}
}

static double largest_difference(float a[4][ATTENTION], float b[4][ATTENTION])
{
	double most = 0;
	for (int i = 0; i < 4; i++)
		for (int e = 0; e < ATTENTION; e++) {
			double d = fabs((double)a[i][e] - (double)b[i][e]) / (1 + fabs((double)b[i][e]));
			most = d > most || isnan(d) ? d : most;
		}
	return most;
}

/* One operation of cuDNN forward, and for every three heads one back; where there is no plan, products: the same to
 * rounding. */
static void test_attention(void)
{
	static float wide[4][ATTENTION], half[4][ATTENTION];
	struct emu_counts counts;
	start();
	for (int i = 0; i < 8; i++)
		SL_SCOPE {
			enum sl_dtype type = halves[i % 2];
			bool causal = i % 4 > 1, refused = i >= 4;
			attend(SL_FLOAT32, causal, NULL, wide);
			if (refused) slp_end_well(), start(); /* plans are kept */
			if (refused) emu_fail(EMU_PLAN, -1);
			emu_counts_reset();
			attend(type, causal, NULL, half);
			emu_counts_get(&counts);
			emu_fail(EMU_PLAN, 0);
			CHECK_SAYING(counts.fused[0] == (refused ? 0 : 1 + 4), "%d", (int)counts.fused[0]);
			double d = largest_difference(half, wide);
			CHECK_SAYING(d < (type == SL_BFLOAT16 ? 3e-2 : 4e-3), "%g", d);
		}
	slp_end_well();
}

/* Numbers, of which every third hides a key; query 5, or without an axis of queries the second sample, sees none. */
static sl_tensor *mask_of(sl_shape shape)
{
	static float data[3 * 4 * STEPS * STEPS];
	int64_t rows = shape.dim[shape.ndim - 2];
	for (int64_t i = 0; i < sl_shape_size(shape); i++) {
		int64_t row = i / STEPS;
		bool none = rows > 1 ? row % rows == 5 : row == 1, hidden = i * 7 % 3 == 0;
		data[i] = none || hidden ? -INFINITY : (float)(i * 5 % 7 - 3) / 4;
	}
	return sl_from(data, shape);
}

/* One operation of cuDNN forward, and back one for every three heads, which are not of several samples. */
static void check_masked(enum sl_dtype type, bool causal, sl_shape shape)
{
	static float wide[4][ATTENTION], half[4][ATTENTION];
	struct emu_counts counts;
	sl_tensor *mask = mask_of(shape);
	attend(SL_FLOAT32, causal, mask, wide);
	emu_counts_reset();
	attend(type, causal, mask, half);
	emu_counts_get(&counts);
	CHECK_SAYING(counts.fused[0] == 1 + 2 * 3, "%d", (int)counts.fused[0]);
	double d = largest_difference(half, wide);
	CHECK_SAYING(d < (type == SL_BFLOAT16 ? 3e-2 : 4e-3), "a mask of %d axes: %g", shape.ndim, d);
}

static void test_masks(void)
{
	start();
	for (int i = 0; i < 4; i++)
		SL_SCOPE {
			check_masked(halves[i % 2], i > 1, SL_SHAPE(STEPS, STEPS));
			check_masked(halves[i % 2], i > 1, SL_SHAPE(3, 1, 1, STEPS));
			check_masked(halves[i % 2], i > 1, SL_SHAPE(4, STEPS, STEPS));
			check_masked(halves[i % 2], i > 1, SL_SHAPE(3, 4, STEPS, STEPS));
		}
	slp_end_well();
}

/* Working memory of attention and its gradients. */
static size_t memory_of(int64_t steps)
{
	struct sl_stats stats;
	start();
	SL_SCOPE {
		sl_tensor *q = sl_normal(SL_SHAPE(1, steps, 8), 0, 1), *y = NULL;
		CHECK_OK(sl_attach_grad(q));
		SL_RECORD
			y = sl_sum(sl_scaled_dot_product_attention(q, q, q, .causal = true));
		CHECK_OK(sl_backward(y));
		CHECK_OK(sl_wait_all());
	}
	sl_stats_get(&stats);
	slp_end_well();
	return stats.scratch_bytes;
}

/* It grows as the steps do, not as pairs of them. */
static void test_memory(void)
{
	size_t few = memory_of(200), many = memory_of(600);
	CHECK_SAYING(many <= 4 * few && many < 600 * 600 * sizeof(float), "%zu bytes for 200 steps, %zu for 600", few,
	             many);
}

/* Of one call, without running it: its operands, and whether they have a mask, which only some calls have. */
static size_t scratch_of(const char *name, enum sl_dtype type, int64_t steps, int64_t width, bool causal, bool mask)
{
	bool back = strstr(name, "grad");
	const struct sl_op *op = slp_op_find(name);
	struct slp_attention_attrs attrs = {.causal = causal};
	struct slp_type x = {type, SL_SHAPE(1, 4, steps, width)}, logs = {slp_promoted(type), SL_SHAPE(1, 4, steps)},
	                added = {type, SL_SHAPE(steps, steps)}, out[SLP_MAX_OUTPUTS];
	struct slp_type there[] = {x, x, x, added}, again[] = {x, x, x, x, x, logs, added};
	struct slp_infer c = {.op = op, .at = SL_HERE, .attrs = &attrs, .nout = op->nout, .out = out};
	c.in = back ? again : there;
	c.nin = (back ? 6 : 3) + mask;
	CHECK_OK(op->infer(&c));
	for (int i = 0; i < op->nout; i++) /* results, too, have no pairs */
		CHECK(sl_shape_size(c.out[i].shape) <= 4 * steps * width);
	return op->scratch(&c);
}

/* Up to 64 MiB and some numbers for each query, forward and back, in all types, with and without masks: of 65536 queries, the
 * scores of one head would take 8 GiB. */
static void test_scratch(void)
{
	static const enum sl_dtype types[] = {SL_FLOAT32, SL_FLOAT64, SL_BFLOAT16, SL_FLOAT16};
	static const int64_t widths[] = {8, 20, 64, 128, 256};
	enum { LONG = 1 << 16, MOST = (64 << 20) + 64 * 4 * LONG };
	start();
	for (int i = 0; i < 4 * 5 * 8; i++) {
		const char *name = i & 1 ? "attention_grad" : "attention";
		enum sl_dtype type = types[i / 8 % 4];
		int64_t width = widths[i / 32];
		size_t bytes = scratch_of(name, type, LONG, width, i & 2, i & 4);
		CHECK_SAYING(bytes <= MOST, "%s of %s, %d wide%s%s: %zu bytes", name, sl_dtype_name(type), (int)width,
		             i & 2 ? ", causal" : "", i & 4 ? ", a mask" : "", bytes);
	}
	slp_end_well();
}

static const struct slp_test tests[] = {
        {"products", test_products},
        {"gradients", test_gradients},
        {"training", test_training},
        {"refused by cuDNN", test_refused},
        {"views", test_views},
        {"attention", test_attention},
        {"masks of attention", test_masks},
        {"memory of attention", test_memory},
        {"scratch of attention", test_scratch},
        {0},
};

int main(int argc, char **argv)
{
	setenv("SL_EMU_DEVICES", "1", 1);
	return slp_test_main(argc, argv, (const struct slp_suite[]){{.name = "half types", .tests = tests}, {0}});
}
