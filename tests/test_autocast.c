/* Automatic mixed precision: which types calls compute in, gradients, hybridised blocks, whole networks in a half type.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "blocks.h"
#include "op_inner.h"

#define IS(t, type) CHECK_SAYING(sl_tensor_dtype(t) == (type), "%s is %s", #t, sl_dtype_name(sl_tensor_dtype(t)))

static sl_tensor *normal(int64_t rows, int64_t columns)
{
	return sl_normal(SL_SHAPE(rows, columns), 0, 1);
}

/* One operation for each policy. */
static void test_policies(void)
{
	SL_SCOPE {
		sl_tensor *x = normal(3, 4), *half = sl_cast(x, SL_BFLOAT16), *wide = sl_cast(x, SL_FLOAT64);
		SL_AUTOCAST(SL_BFLOAT16)
		{
			CHECK(sl_autocast_dtype() == SL_BFLOAT16);
			IS(sl_dot(x, x, .tb = true), SL_BFLOAT16);
			IS(sl_linear(x, sl_transpose(x), NULL), SL_BFLOAT16);
			sl_tensor *q = sl_reshape(x, SL_SHAPE(1, 3, 4)), *image = sl_reshape(x, SL_SHAPE(1, 3, 2, 2));
			IS(sl_scaled_dot_product_attention(q, q, q), SL_BFLOAT16);
			IS(sl_scaled_dot_product_attention(q, q, q, .mask = sl_zeros(SL_SHAPE(3, 3))), SL_BFLOAT16);
			IS(sl_conv_transpose2d(sl_cast(image, SL_BFLOAT16), sl_ones(SL_SHAPE(3, 2, 2, 2)),
			                       sl_ones(SL_SHAPE(2))),
			   SL_BFLOAT16);
			IS(sl_conv_transpose2d(image, sl_ones(SL_SHAPE(3, 2, 2, 2)), NULL), SL_BFLOAT16);
			IS(sl_lt(half, x), SL_FLOAT32);
			IS(sl_exp(half), SL_FLOAT32);
			IS(sl_sum(half), SL_FLOAT32);
			IS(sl_softmax(half, -1), SL_FLOAT32);
			IS(sl_l2_loss(half, x), SL_FLOAT32);
			IS(sl_add(half, x), SL_FLOAT32);
			IS(sl_add(half, half), SL_BFLOAT16);
			IS(sl_concat(((sl_tensor *[]){half, x}), 2, 0), SL_FLOAT32);
			IS(sl_relu(half), SL_BFLOAT16);
			IS(sl_dot(wide, wide, .tb = true), SL_FLOAT64);
			SL_AUTOCAST(SL_FLOAT16)
			IS(sl_dot(x, x, .tb = true), SL_FLOAT16);
			SL_AUTOCAST(SL_FLOAT32)
			IS(sl_dot(x, x, .tb = true), SL_FLOAT32);
			IS(sl_dot(x, x, .tb = true), SL_BFLOAT16);
		}
		CHECK(sl_autocast_dtype() == SL_DTYPE_DEFAULT);
		IS(sl_dot(x, x, .tb = true), SL_FLOAT32);
		SL_AUTOCAST(SL_INT32)
		IS(sl_dot(x, x, .tb = true), SL_FLOAT32);
		CHECK_STATUS(sl_error(), SL_EDTYPE, "sl_autocast", "int32");
		sl_error_clear();
	}
}

static void read(sl_tensor *t, float *to)
{
	CHECK_OK(sl_read(t, to, sl_tensor_bytes(t)));
}

/* The result is the exact product of the rounded arguments, rounded. */
static void test_values(void)
{
	float x[6], w[8], y[12];
	SL_SCOPE {
		sl_tensor *a = normal(3, 2), *b = normal(2, 4), *c = NULL;
		SL_AUTOCAST(SL_BFLOAT16) c = sl_dot(a, b);
		read(sl_cast(sl_cast(a, SL_BFLOAT16), SL_FLOAT32), x);
		read(sl_cast(sl_cast(b, SL_BFLOAT16), SL_FLOAT32), w);
		read(sl_cast(c, SL_FLOAT32), y);
	}
	for (int i = 0; i < 12; i++) {
		double e = 0;
		for (int k = 0; k < 2; k++) e += (double)x[i / 4 * 2 + k] * (double)w[k * 4 + i % 4];
		CHECK(fabs(y[i] - e) <= 0x1p-8 * fabs(e) + 1e-6);
	}
}

static sl_tensor *loss_of(sl_tensor *x, sl_tensor *w)
{
	return sl_sum(sl_square(sl_dot(x, w)));
}

/* Gradients of float32 leaves are float32, near those without. */
static void test_gradients(void)
{
	float half[8], full[8];
	SL_SCOPE {
		sl_tensor *x = normal(6, 4), *w = normal(4, 2), *loss = NULL;
		sl_attach_grad(w);
		SL_RECORD
			loss = loss_of(x, w);
		CHECK_OK(sl_backward(loss));
		read(sl_grad(w), full);
		SL_RECORD
			SL_AUTOCAST(SL_BFLOAT16) loss = loss_of(x, w);
		IS(loss, SL_FLOAT32);
		CHECK_OK(sl_backward(loss));
		IS(sl_grad(w), SL_FLOAT32);
		read(sl_grad(w), half);
	}
	double scale = 0;
	for (int i = 0; i < 8; i++) scale = fmax(scale, fabs(full[i]));
	for (int i = 0; i < 8; i++) CHECK(fabs(half[i] - full[i]) <= 0.03 * scale);
	CHECK(memcmp(half, full, sizeof half) != 0);
}

static sl_block *network(void)
{
	return sl_sequential(sl_dense(8), sl_batch_norm_layer(), sl_activation_layer(SL_RELU), sl_dense(3));
}

/* A hybridised block is traced for the type that it runs in. */
static void test_hybrid(void)
{
	SL_SCOPE {
		sl_block *net = network();
		CHECK_OK(sl_initialize(net));
		sl_tensor *x = normal(4, 5), *plain = NULL, *traced = NULL, *full = sl_forward(net, x);
		SL_AUTOCAST(SL_BFLOAT16) plain = sl_forward(net, x);
		CHECK_OK(sl_hybridize(net));
		SL_AUTOCAST(SL_BFLOAT16) traced = sl_forward(net, x);
		sl_tensor *again = sl_forward(net, x);
		IS(plain, SL_BFLOAT16);
		IS(traced, SL_BFLOAT16);
		IS(again, SL_FLOAT32);
		float a[12], b[12], c[12];
		read(sl_cast(plain, SL_FLOAT32), a);
		read(sl_cast(traced, SL_FLOAT32), b);
		read(again, c);
		for (int i = 0; i < 12; i++)
			CHECK(fabsf(a[i] - b[i]) <= 0.02f * (1 + fabsf(a[i])) && fabsf(a[i] - c[i]) < 0.05f);
		CHECK(sl_tensor_dtype(full) == SL_FLOAT32);
		sl_block_free(net);
	}
}

/* Steps down a loss, of a network in a half type or under autocast. */
static double train(enum sl_dtype dtype, enum sl_dtype autocast, bool hybrid)
{
	double last = 0;
	SL_SCOPE {
		sl_seed(3);
		sl_block *net = network();
		CHECK_OK(sl_initialize(net, .dtype = dtype));
		if (hybrid) CHECK_OK(sl_hybridize(net));
		sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.2));
		sl_tensor *x = normal(16, 5), *labels = sl_cast(sl_argmax(sl_slice(x, 1, 0, 3, 1), 1), SL_INT32),
		          *loss = NULL;
		if (dtype != SL_FLOAT32) x = sl_cast(x, dtype);
		for (int i = 0; i < 30; i++)
			SL_SCOPE {
				SL_RECORD
					SL_AUTOCAST(autocast)
				loss = sl_softmax_cross_entropy(sl_forward(net, x), labels);
				CHECK_OK(sl_backward(loss));
				CHECK_OK(sl_trainer_step(trainer, 16));
				last = sl_item(sl_mean(sl_cast(loss, SL_FLOAT32)));
			}
		sl_trainer_free(trainer);
		sl_block_free(net);
	}
	return last;
}

static void test_training(void)
{
	double full = train(SL_FLOAT32, SL_FLOAT32, false);
	CHECK_SAYING(full < 0.5, "%g", full);
	const double others[] = {train(SL_FLOAT32, SL_BFLOAT16, false), train(SL_FLOAT32, SL_FLOAT16, false),
	                         train(SL_FLOAT32, SL_BFLOAT16, true), train(SL_BFLOAT16, SL_FLOAT32, false)};
	for (int i = 0; i < 4; i++)
		CHECK_SAYING(fabs(others[i] - full) < 0.1, "%d: %g, in float32 %g", i, others[i], full);
}

static sl_block *images(void)
{
	sl_block *body = sl_sequential(sl_conv2d_layer(32, .kernel = {3}, .pad = {1, 1}), sl_batch_norm_layer(),
	                               sl_activation_layer(SL_RELU), sl_conv2d_layer(32, .kernel = {3}, .pad = {1, 1}),
	                               sl_batch_norm_layer());
	return sl_sequential(sl_conv2d_layer(32, .kernel = {3}), sl_batch_norm_layer(),
	                     sl_residual(body, NULL, SL_RELU), sl_conv2d_layer(16, .kernel = {3}, .stride = {2, 2}),
	                     sl_batch_norm_layer(), sl_global_avg_pool2d_layer(), sl_dense(10));
}

static sl_block *few_channels(void)
{
	return sl_sequential(sl_conv2d_layer(20, .kernel = {3}, .activation = SL_RELU), sl_avg_pool2d_layer(2),
	                     sl_conv2d_layer(24, .kernel = {3}, .activation = SL_RELU), sl_dense(10));
}

/* Whether a program contains all these words. */
static bool contains(const sl_graph *g, const char *const *words)
{
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);
	CHECK_OK(sl_graph_print(file, g));
	fclose(file);
	bool all = true;
	for (; *words; words++) all = all && strstr(text, *words);
	free(text);
	return all;
}

enum { STEPS = 3, BATCH = 32, CLASSES = 10 };

/* The losses of some steps, call by call or as one program each. */
static void train_images(sl_block *net, bool whole, const char *const *words, float losses[STEPS][BATCH])
{
	int32_t labels[BATCH];
	for (int i = 0; i < BATCH; i++) labels[i] = i * i % CLASSES;
	SL_SCOPE {
		sl_seed(11);
		CHECK_OK(sl_initialize(net, .init = sl_xavier_init()));
		sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.1));
		sl_tensor *x = sl_normal(SL_SHAPE(BATCH, 1, 12, 12), 0, 1), *loss = NULL;
		sl_tensor *y = sl_from(labels, SL_SHAPE(BATCH), .dtype = SL_INT32);
		sl_step *step = sl_step_compile(net, sl_softmax_cross_entropy_at, trainer);
		for (int i = 0; i < STEPS; i++) {
			SL_AUTOCAST(SL_BFLOAT16)
			{
				if (!whole)
					SL_RECORD
						loss = sl_softmax_cross_entropy(sl_forward(net, x), y);
				if (whole) loss = sl_step_run(step, x, y, NULL);
			}
			if (!whole) CHECK_OK(sl_backward(loss));
			if (!whole) CHECK_OK(sl_trainer_step(trainer, BATCH));
			read(loss, losses[i]);
		}
		if (whole && words) CHECK(contains(sl_step_graph(step), words));
		sl_step_free(step);
		sl_trainer_free(trainer);
		sl_block_free(net);
	}
}

static void check_images(sl_block *(*make)(void), const char *const *words)
{
	float eager[STEPS][BATCH], whole[STEPS][BATCH];
	train_images(make(), false, NULL, eager);
	train_images(make(), true, words, whole);
	for (int i = 0; i < STEPS * BATCH; i++) {
		float e = eager[i / BATCH][i % BATCH], w = whole[i / BATCH][i % BATCH];
		CHECK_SAYING(fabsf(e - w) <= 0.03f * (1 + fabsf(e)), "%d: %g and %g", i, (double)e, (double)w);
	}
}

/* A whole step keeps images in another layout, and rounds less: in NC16 in bfloat16; images of few channels in N16,
 * pooled within the convolution. */
static void test_images(void)
{
	static const char *const nc16[] = {"x_layout=nc16", "y_layout=nc16", "wide", NULL};
	static const char *const n16[] = {
	        "conv2d_pool", "conv2d_grad_weights_pool", "x_layout=n16", "y_layout=n16", "bfloat16", NULL};
	check_images(images, slp_conv_takes_nc16() ? nc16 : NULL);
	check_images(few_channels, slp_conv_has_n16() ? n16 : NULL);
}

/* More elements than are in float32 at a time, with a rest: what float32 gives, rounded. */
static void test_pieces(void)
{
	enum { N = 70001 };
	uint16_t *got = malloc(N * sizeof *got), *expected = malloc(N * sizeof *expected);
	SL_SCOPE {
		sl_tensor *x = sl_cast(sl_normal(SL_SHAPE(N), 0, 1), SL_BFLOAT16), *w = sl_cast(x, SL_FLOAT32);
		sl_tensor *two = sl_full(SL_SCALAR, 2, .dtype = SL_BFLOAT16);
		CHECK_OK(sl_read(sl_mul(sl_sigmoid(x), two), got, N * sizeof *got));
		sl_tensor *half = sl_cast(sl_sigmoid(w), SL_BFLOAT16);
		sl_tensor *twice = sl_mul_scalar(sl_cast(half, SL_FLOAT32), 2);
		CHECK_OK(sl_read(sl_cast(twice, SL_BFLOAT16), expected, N * sizeof *expected));
		CHECK(memcmp(got, expected, N * sizeof *got) == 0);
		sl_relu_(x);
		CHECK_OK(sl_read(x, got, N * sizeof *got));
		CHECK_OK(sl_read(sl_cast(sl_relu(w), SL_BFLOAT16), expected, N * sizeof *expected));
		CHECK(memcmp(got, expected, N * sizeof *got) == 0);
	}
	free(got);
	free(expected);
}

/* ---- gradients of what stays in float32, and of what is lowered within it ---------------------------------------- */

static sl_tensor *matrix, *kernel;

/* Products in float32, next to what is lowered. */
static sl_tensor *resized(sl_tensor *x)
{
	return sl_add(sl_conv2d(x, kernel, NULL, .pad = {1, 1}), sl_resize2d(x, 6, 6, .bilinear = true));
}

/* A factor that is broadcast comes from a convolution. */
static sl_tensor *excited(sl_tensor *x)
{
	sl_tensor *mean = sl_mean(x, SL_AXES(2, 3), .keepdims = true);
	return sl_mul(sl_conv2d(x, kernel, NULL, .pad = {1, 1}),
	              sl_sigmoid(sl_conv2d(mean, kernel, NULL, .pad = {1, 1})));
}

static sl_tensor *nearest(sl_tensor *x)
{
	return sl_resize2d(sl_conv2d(x, kernel, NULL, .pad = {1, 1}), 12, 12);
}

static sl_tensor *nested(sl_tensor *x)
{
	sl_tensor *y = NULL;
	SL_AUTOCAST(SL_FLOAT32)
	y = sl_matmul(sl_cast(sl_conv2d(x, kernel, NULL, .pad = {1, 1}), SL_FLOAT32), matrix);
	return y;
}

static sl_tensor *lowered(sl_tensor *x)
{
	return sl_matmul(sl_matmul(x, matrix), matrix);
}

/* The gradient is a constant: it is computed when the program is compiled. */
static sl_tensor *constant(sl_tensor *x)
{
	return sl_resize2d(x, 9, 9, .bilinear = true);
}

static sl_tensor *(*const mixed[])(sl_tensor *) = {resized, excited, nearest, nested, lowered, constant};
static int mixed_kind;

struct mixed_block {
	sl_block base;
	sl_param *weight; /* of the shape of x */
};

static sl_tensor *mixed_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)nin;
	sl_tensor *w = sl_param_use(((struct mixed_block *)self)->weight, in[0]);
	return sl_mean(sl_cast(mixed[mixed_kind](w), SL_FLOAT32), SL_AXES(1, 2, 3));
}

static sl_tensor *plain_loss(const char *at, sl_tensor *y, sl_tensor *target)
{
	return (mixed[mixed_kind] == constant ? sl_add_at : sl_mul_at)(at, y, target);
}

enum way { EAGER, WITHIN, HYBRID, WHOLE, WAYS };

/* The weight after a step of gradient descent with a rate of 1000: mostly its gradient. */
static sl_tensor *stepped(enum way way, sl_tensor *x, sl_tensor *target)
{
	struct mixed_block *b = calloc(1, sizeof *b);
	CHECK_OK(sl_block_init(&b->base, "Mixed", mixed_forward, NULL));
	b->weight = sl_block_param(&b->base, "weight", sl_tensor_shape(x));
	CHECK_OK(sl_initialize(&b->base));
	CHECK_OK(sl_param_set(b->weight, x));
	sl_trainer *trainer = sl_trainer_new(&b->base, sl_sgd(.lr = 1000));
	sl_step *step = way == WHOLE ? sl_step_compile(&b->base, plain_loss, trainer) : NULL;
	if (way == HYBRID) CHECK_OK(sl_hybridize(&b->base));
	sl_tensor *loss = NULL;
	if (way == WHOLE) {
		SL_AUTOCAST(SL_BFLOAT16)
		CHECK(sl_step_run(step, x, target, NULL) != NULL);
	} else {
		SL_RECORD
			SL_AUTOCAST(SL_BFLOAT16)
			{
				loss = plain_loss(SL_HERE, sl_forward(&b->base, x), target);
				if (way == WITHIN)
					SL_PAUSE
						CHECK_OK(sl_backward(loss));
			}
		if (way != WITHIN) CHECK_OK(sl_backward(loss));
		CHECK_OK(sl_trainer_step(trainer, sl_tensor_shape(x).dim[0]));
	}
	sl_tensor *w = sl_clone(sl_param_data(b->weight));
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(&b->base);
	return w;
}

/* Call by call, also where sl_backward is called within SL_AUTOCAST, hybridised, and in a whole step: the same. */
static void test_mixed(void)
{
	static const char *const names[WAYS] = {"eager", "within", "hybridised", "whole"};
	for (mixed_kind = 0; mixed_kind < (int)(sizeof mixed / sizeof *mixed); mixed_kind++)
		SL_SCOPE {
			sl_seed(3);
			sl_tensor *x = sl_normal(SL_SHAPE(2, 6, 6, 6), 0, 1), *target = sl_normal(SL_SHAPE(2), 0, 1);
			matrix = sl_normal(SL_SHAPE(6, 6), 0, 1);
			kernel = sl_normal(SL_SHAPE(6, 6, 3, 3), 0, 1);
			sl_tensor *eager = stepped(EAGER, x, target);
			for (enum way way = WITHIN; way < WAYS; way++) {
				sl_tensor *w = stepped(way, x, target);
				IS(w, SL_FLOAT32);
				double most = sl_item(sl_max(sl_abs(sl_sub(w, eager)))),
				       size = sl_item(sl_max(sl_abs(eager)));
				CHECK_SAYING(most <= 1e-5 * size, "function %d, %s: a difference of %g of %g",
				             mixed_kind, names[way], most, size);
			}
		}
	matrix = kernel = NULL;
}

static enum sl_dtype products[2];

static enum sl_status note_products(void *context, sl_tensor *const *dout, int nout, sl_tensor **din, int nin)
{
	(void)context, (void)nout, (void)nin;
	products[0] = sl_tensor_dtype(sl_dot(matrix, matrix));
	SL_AUTOCAST(SL_BFLOAT16)
	products[1] = sl_tensor_dtype(sl_dot(matrix, matrix));
	din[0] = sl_mul_scalar(dout[0], 2);
	return sl_error();
}

/* In a backward function of the program's own, products keep their types unless it asks for lower ones. */
static void test_custom(void)
{
	SL_SCOPE {
		sl_tensor *x = normal(2, 2), *y = NULL;
		matrix = normal(3, 3);
		CHECK_OK(sl_attach_grad(x));
		SL_RECORD
			SL_AUTOCAST(SL_BFLOAT16)
			{
				SL_PAUSE
					y = sl_mul_scalar(x, 2);
				CHECK_OK(sl_custom_gradient(&x, 1, &y, 1, .backward = note_products));
			}
		CHECK_OK(sl_backward(y));
		CHECK(products[0] == SL_FLOAT32 && products[1] == SL_BFLOAT16);
		matrix = NULL;
	}
}

static const struct slp_test tests[] = {{"policies", test_policies},   {"values", test_values},
                                        {"gradients", test_gradients}, {"hybridised", test_hybrid},
                                        {"training", test_training},   {"by pieces", test_pieces},
                                        {"images", test_images},       {"mixed", test_mixed},
                                        {"custom", test_custom},       {0}};

int main(int argc, char **argv)
{
	return slp_test_main(
	        argc, argv,
	        (const struct slp_suite[]){
	                {.name = "autocast", .tests = tests, .start = slp_start_engine, .stop = slp_stop_engine},
	                {0},
	        });
}
