/* ONNX models of integers that represent real numbers, against sums of int64; several results; sequences of different
 * lengths; elements that are written more than once. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "onnx_builder.h"

#define PART(t, axis, first, end) sl_slice(t, axis, first, end, 1)

enum { FLOAT = 1, UINT8 = 2, INT8 = 3, UINT16 = 4, INT16 = 5, INT32 = 6, INT64 = 7 };

static struct slp_model m;

static sl_block *built(void)
{
	return slp_model_built(&m, (struct sl_import_onnx_opts){0});
}

static void add_floats(const char *name, const float *v, int64_t n)
{
	slp_model_raw(slp_model_tensor(&m, name, FLOAT, &n, n > 1), v, (size_t)n * sizeof *v);
}

/* ---- there and back ---------------------------------------------------------------------------------------------- */

/* Ties go to even numbers; what is too large or small becomes the largest or smallest. */
static void test_quantise(void)
{
	static const float half = 0.5F;
	static const int8_t three = 3;
	static const uint8_t seven = 7;
	static const uint16_t thousand = 1000;
	static const struct {
		int type;
		const void *zero;
		size_t bytes;
		double y[6];
	} cases[] = {{INT8, &three, 1, {3, 3, 5, 5, 127, -128}},
	             {UINT8, &seven, 1, {7, 7, 9, 9, 255, 0}},
	             {UINT16, &thousand, 2, {1000, 1000, 1002, 1002, 3000, 0}}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		SL_SCOPE {
			slp_model_begin(&m, 21);
			add_floats("s", &half, 1);
			slp_model_raw(slp_model_tensor(&m, "z", cases[i].type, NULL, 0), cases[i].zero, cases[i].bytes);
			slp_model_node(&m, "QuantizeLinear x s z -> q");
			slp_model_node(&m, "DequantizeLinear q s z -> y");
			slp_model_ends(&m, "x", "q y");
			sl_block *b = built();
			sl_tensor *x = sl_from(((float[]){0, 0.25F, 0.75F, 1, 1000, -1000}), SL_SHAPE(6)), *out[2];
			const double *y = cases[i].y, z = y[0];
			CHECK_MODEL(b, x, y[0], y[1], y[2], y[3], y[4], y[5]);
			if (CHECK_OK(sl_forward_all(b, &x, 1, out, 2)))
				CHECK_VALUES(out[1], 0, 0, 1, 1, (y[4] - z) / 2, (y[5] - z) / 2);
			sl_block_free(b);
		}
}

/* A scale and a zero point for each column, and for each block of two of them. */
static void test_axes(void)
{
	static const float scales[] = {1, 0.5F, 0.25F};
	static const int8_t zeros[] = {0, 1, -2};
	for (int blocks = 0; blocks < 2; blocks++)
		SL_SCOPE {
			slp_model_begin(&m, 21);
			slp_model_raw(slp_model_tensor(&m, "s", FLOAT,
			                               blocks ? (const int64_t[]){1, 2} : (const int64_t[]){3, 0},
			                               1 + blocks),
			              scales, sizeof *scales * (blocks ? 2 : 3));
			slp_model_raw(slp_model_tensor(&m, "z", INT8,
			                               blocks ? (const int64_t[]){1, 2} : (const int64_t[]){3, 0},
			                               1 + blocks),
			              zeros, blocks ? 2 : 3);
			SlpOnnx__NodeProto *n = slp_model_node(&m, "QuantizeLinear x s z -> y");
			slp_model_int(&m, n, "axis", -1);
			if (blocks) slp_model_int(&m, n, "block_size", 2);
			sl_block *b = built();
			sl_tensor *x = sl_from(((float[]){1, 2, 3}), SL_SHAPE(1, 3));
			if (blocks) CHECK_MODEL(b, x, 1, 2, 7);
			else CHECK_MODEL(b, x, 1, 5, 10);
			sl_block_free(b);
		}
}

static void check_dynamic(sl_block *b, const float *v, double scale, double zero)
{
	sl_tensor *x = sl_from(v, SL_SHAPE(4)), *out[3];
	double q[4];
	for (int i = 0; i < 4; i++) q[i] = fmax(0, fmin(255, nearbyint(v[i] / scale) + zero));
	if (!CHECK_OK(sl_forward_all(b, &x, 1, out, 3))) return;
	CHECK_VALUES(out[0], q[0], q[1], q[2], q[3]);
	CHECK(fabs(sl_item(out[1]) - scale) <= 1e-7 * scale);
	CHECK_VALUES(out[2], zero);
	CHECK(sl_tensor_dtype(out[0]) == SL_UINT8 && sl_tensor_dtype(out[2]) == SL_UINT8);
}

static void check_refused(struct sl_import_onnx_opts opts, const char *says)
{
	CHECK_SAYING(!slp_model_built(&m, opts) && sl_error() == SL_EINVAL && strstr(sl_error_message(), says), "%s",
	             sl_error_message());
	sl_error_clear();
}

static void test_dynamic(void)
{
	SL_SCOPE {
		slp_model_begin(&m, 17);
		slp_model_node(&m, "DynamicQuantizeLinear x -> y s z");
		slp_model_ends(&m, "x", "y s z");
		sl_block *b = built();
		for (int compiled = 0; compiled < 2; compiled++) {
			if (compiled) CHECK_OK(sl_hybridize(b));
			check_dynamic(b, (float[]){-1, 0.3F, 2, 1.1F}, (double)(3 / 255.0F), 85);
			check_dynamic(b, (float[]){1, 2, 3, 4}, (double)(4 / 255.0F), 0);
			check_dynamic(b, (float[]){0, 0, 0, 0}, 1, 0);
		}
		CHECK(sl_forward_all(b, &(sl_tensor *){sl_ones(SL_SHAPE(2))}, 1, (sl_tensor *[4]){NULL}, 4) ==
		      SL_EINVAL);
		sl_error_clear();
		sl_block_free(b);
		b = slp_model_built(&m, (struct sl_import_onnx_opts){SL_OUTPUTS("z", "s")});
		sl_tensor *x = sl_from(((float[]){-1, 2}), SL_SHAPE(2)), *out[2];
		if (CHECK_OK(sl_forward_all(b, &x, 1, out, 2))) CHECK_VALUES(out[0], 85);
		sl_block_free(b);
		check_refused((struct sl_import_onnx_opts){SL_OUTPUTS("z", "q")}, "\"q\"");
		check_refused((struct sl_import_onnx_opts){.output = "z", SL_OUTPUTS("s")}, ".outputs");
	}
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

enum { ROWS = 2, COLUMNS = 2, MOST = 700 };

/* Rows of bytes times columns of bytes, near 2^25, where floats have no odd numbers. */
static void check_product(int64_t k)
{
	static uint8_t a[ROWS * MOST], w[MOST * COLUMNS];
	static const uint8_t az = 1, wz[COLUMNS] = {0, 2};
	double wanted[ROWS * COLUMNS] = {0};
	for (int64_t i = 0; i < k; i++) {
		for (int r = 0; r < ROWS; r++) a[r * k + i] = (uint8_t)(255 - (i * 7 + r) % 3);
		for (int s = 0; s < COLUMNS; s++) w[i * COLUMNS + s] = (uint8_t)(255 - (i * 5 + s) % 4);
		for (int r = 0; r < ROWS; r++)
			for (int s = 0; s < COLUMNS; s++)
				wanted[r * COLUMNS + s] += (double)((a[r * k + i] - az) * (w[i * COLUMNS + s] - wz[s]));
	}
	SL_SCOPE {
		slp_model_begin(&m, 17);
		slp_model_raw(slp_model_tensor(&m, "w", UINT8, (const int64_t[]){k, COLUMNS}, 2), w,
		              (size_t)k * COLUMNS);
		slp_model_raw(slp_model_tensor(&m, "az", UINT8, NULL, 0), &az, 1);
		slp_model_raw(slp_model_tensor(&m, "wz", UINT8, SLP_DIMS(COLUMNS)), wz, COLUMNS);
		slp_model_node(&m, "MatMulInteger x w az wz -> y");
		sl_block *b = built();
		sl_tensor *x = sl_from(a, SL_SHAPE(ROWS, k), .dtype = SL_UINT8);
		CHECK(b && sl_tensor_dtype(sl_forward(b, x)) == SL_INT32);
		CHECK_MODEL(b, x, wanted[0], wanted[1], wanted[2], wanted[3]);
		sl_block_free(b);
	}
}

static void test_exact(void)
{
	check_product(3);
	check_product(258);
	check_product(MOST);
}

/* Two channels of a window of three, each with its own scale, a bias, and a border, which is the zero point. */
static void test_conv(void)
{
	static const uint8_t image[] = {10, 20, 30, 250}, xz = 10, yz = 128;
	static const int8_t w[] = {1, -2, 3, -128, 0, 127}, wz[] = {0, 0};
	static const int32_t bias[] = {100, -5};
	static const float xs = 0.5F, ws[] = {0.25F, 0.125F}, ys = 2;
	static int64_t pads[] = {1, 1};
	double y[8], z[8];
	for (int o = 0; o < 2; o++)
		for (int i = 0; i < 4; i++) {
			int sum = 0;
			for (int j = 0; j < 3; j++)
				if (i + j >= 1 && i + j <= 4) sum += (image[i + j - 1] - xz) * w[o * 3 + j];
			y[o * 4 + i] = sum;
			z[o * 4 + i] = fmax(0, fmin(255, nearbyint((sum + bias[o]) * (double)(xs * ws[o] / ys)) + yz));
		}
	for (int scaled = 0; scaled < 2; scaled++)
		SL_SCOPE {
			slp_model_begin(&m, 17);
			slp_model_raw(slp_model_tensor(&m, "w", INT8, SLP_DIMS(2, 1, 3)), w, sizeof w);
			slp_model_raw(slp_model_tensor(&m, "wz", INT8, SLP_DIMS(2)), wz, sizeof wz);
			slp_model_raw(slp_model_tensor(&m, "xz", UINT8, NULL, 0), &xz, 1);
			slp_model_raw(slp_model_tensor(&m, "yz", UINT8, NULL, 0), &yz, 1);
			slp_model_raw(slp_model_tensor(&m, "b", INT32, SLP_DIMS(2)), bias, sizeof bias);
			add_floats("xs", &xs, 1), add_floats("ws", ws, 2), add_floats("ys", &ys, 1);
			SlpOnnx__AttributeProto *a = slp_model_attribute(
			        &m,
			        slp_model_node(&m, scaled ? "QLinearConv x xs xz w ws wz ys yz b -> y"
			                                  : "ConvInteger x w xz wz -> y"),
			        "pads", 7);
			a->n_ints = 2, a->ints = pads;
			const double *v = scaled ? z : y;
			sl_block *net = built();
			CHECK_MODEL(net, sl_from(image, SL_SHAPE(1, 1, 4), .dtype = SL_UINT8), v[0], v[1], v[2], v[3],
			            v[4], v[5], v[6], v[7]);
			sl_block_free(net);
		}
}

/* (x - 1) 0.5 and (w - 2) 0.25, in steps of 0.1 from 10. */
static void check_scaled(const char *node, const uint8_t *w, double y0, double y1)
{
	static const uint8_t xz = 1, wz = 2, yz = 10;
	static const float xs = 0.5F, ws = 0.25F, ys = 0.1F;
	SL_SCOPE {
		slp_model_begin(&m, 17);
		slp_model_raw(slp_model_tensor(&m, "w", UINT8, SLP_DIMS(2, 2)), w, 4);
		slp_model_raw(slp_model_tensor(&m, "xz", UINT8, NULL, 0), &xz, 1);
		slp_model_raw(slp_model_tensor(&m, "wz", UINT8, NULL, 0), &wz, 1);
		slp_model_raw(slp_model_tensor(&m, "yz", UINT8, NULL, 0), &yz, 1);
		add_floats("xs", &xs, 1), add_floats("ws", &ws, 1), add_floats("ys", &ys, 1);
		SlpOnnx__NodeProto *n = slp_model_node(&m, node);
		if (!strncmp(node, "QLinearConcat", 13)) slp_model_int(&m, n, "axis", 0);
		sl_block *b = built();
		sl_tensor *x = sl_from(((uint8_t[]){3, 6}), SL_SHAPE(1, 2), .dtype = SL_UINT8);
		sl_tensor *y = b ? sl_forward(b, x) : NULL;
		if (CHECK_SAYING(y != NULL, "%s: %s", node, sl_error_message()))
			CHECK_VALUES(PART(sl_reshape(y, SL_SHAPE(-1)), 0, 0, 2), y0, y1);
		sl_error_clear();
		sl_block_free(b);
	}
}

static void test_scaled(void)
{
	static const uint8_t w[] = {4, 8, 3, 10}; /* 0.5 1.5 0.25 2; x is 1 2.5 */
	check_scaled("QLinearMatMul x xs xz w ws wz ys yz -> y", w, 10 + 11, 10 + 65);
	check_scaled("QGemm x xs xz w ws wz - ys yz -> y", w, 10 + 11, 10 + 65);
	check_scaled("QLinearAdd x xs xz w ws wz ys yz -> y", w, 10 + 15, 10 + 40);
	check_scaled("QLinearMul x xs xz w ws wz ys yz -> y", w, 10 + 5, 10 + 38); /* 37.5 */
	check_scaled("QLinearSigmoid x xs xz ys yz -> y", w, 10 + 7, 10 + 9);
	check_scaled("QLinearConcat ys yz x xs xz w ws wz -> y", w, 10 + 10, 10 + 25);
}

/* ---- between DequantizeLinear and QuantizeLinear ----------------------------------------------------------------- */

enum { CHANNELS = 2, SIDE = 4, KERNELS = 3, HALF = SIDE / 2, TAPS = CHANNELS * 9 };
static const float in_scale = 0.25F, w_scale[KERNELS] = {0.125F, 0.25F, 0.5F}, out_scale = 2;
static const int8_t in_zero = -8, out_zero = 5, no_zeros[KERNELS] = {0};
static const int32_t own_bias[KERNELS] = {40, -100, 7};
static int bias_steps; /* of the product, in a step of the bias */

static double clipped(double v)
{
	return fmax(-128, fmin(127, nearbyint(v)));
}

/* Largest elements of 2 × 2 windows of a convolution of quantised x, quantised, doubled, and quantised again. */
static void expect_pooled(const float *x, const int8_t *w, double *y)
{
	for (int o = 0; o < KERNELS; o++)
		for (int p = 0; p < SIDE * SIDE; p++) {
			double sum = own_bias[o] * bias_steps,
			       *to = &y[(o * HALF + p / SIDE / 2) * HALF + p % SIDE / 2];
			for (int e = 0; e < TAPS; e++) {
				int i = p / SIDE + e / 3 % 3 - 1, j = p % SIDE + e % 3 - 1;
				if (i < 0 || i >= SIDE || j < 0 || j >= SIDE) continue;
				double q = clipped(nearbyint(x[(e / 9 * SIDE + i) * SIDE + j] / in_scale) + in_zero);
				sum += (q - in_zero) * w[o * TAPS + e];
			}
			double q = clipped(nearbyint(sum * in_scale * w_scale[o] / out_scale) + out_zero);
			double twice = (clipped(2 * (q - out_zero) + out_zero) - out_zero) * out_scale;
			if (p / SIDE % 2 == 0 && p % 2 == 0) *to = twice;
			*to = fmax(*to, twice);
		}
}

static void add_numbers(const int8_t *w)
{
	add_floats("xs", &in_scale, 1), add_floats("ws", w_scale, KERNELS), add_floats("ys", &out_scale, 1);
	static float bias_scale[KERNELS];
	for (int o = 0; o < KERNELS; o++) bias_scale[o] = in_scale * w_scale[o] * (float)bias_steps;
	add_floats("bs", bias_scale, KERNELS);
	slp_model_raw(slp_model_tensor(&m, "w", INT8, SLP_DIMS(KERNELS, CHANNELS, 3, 3)), w, KERNELS * TAPS);
	slp_model_raw(slp_model_tensor(&m, "wz", INT8, SLP_DIMS(KERNELS)), no_zeros, KERNELS);
	slp_model_raw(slp_model_tensor(&m, "xz", INT8, NULL, 0), &in_zero, 1);
	slp_model_raw(slp_model_tensor(&m, "yz", INT8, NULL, 0), &out_zero, 1);
	slp_model_raw(slp_model_tensor(&m, "b", INT32, SLP_DIMS(KERNELS)), own_bias, sizeof own_bias);
}

static void add_ints(SlpOnnx__NodeProto *n, const char *name, int64_t *v, size_t count)
{
	SlpOnnx__AttributeProto *a = slp_model_attribute(&m, n, name, 7);
	a->n_ints = count, a->ints = v;
}

static void build_pooled(const int8_t *w)
{
	static int64_t pads[] = {1, 1, 1, 1}, window[] = {2, 2};
	slp_model_begin(&m, 17);
	add_numbers(w);
	slp_model_node(&m, "QuantizeLinear x xs xz -> q");
	slp_model_node(&m, "DequantizeLinear q xs xz -> dq");
	slp_model_int(&m, slp_model_node(&m, "DequantizeLinear w ws wz -> dw"), "axis", 0);
	slp_model_int(&m, slp_model_node(&m, "DequantizeLinear b bs -> db"), "axis", 0);
	add_ints(slp_model_node(&m, "Conv dq dw db -> c"), "pads", pads, 4);
	slp_model_node(&m, "QuantizeLinear c ys yz -> cq");
	slp_model_node(&m, "DequantizeLinear cq ys yz -> cd");
	slp_model_node(&m, "Add cd cd -> s");
	slp_model_node(&m, "QuantizeLinear s ys yz -> sq");
	slp_model_node(&m, "DequantizeLinear sq ys yz -> sd");
	SlpOnnx__NodeProto *pool = slp_model_node(&m, "MaxPool sd -> p");
	add_ints(pool, "kernel_shape", window, 2), add_ints(pool, "strides", window, 2);
	slp_model_node(&m, "QuantizeLinear p ys yz -> pq");
	slp_model_node(&m, "DequantizeLinear pq ys yz -> y");
}

/* The way from a file with real numbers between bytes: eagerly, compiled, and with values in between as results. */
static void check_between(void)
{
	float x[CHANNELS * SIDE * SIDE];
	int8_t w[KERNELS * TAPS];
	double y[KERNELS * HALF * HALF];
	for (int i = 0; i < CHANNELS * SIDE * SIDE; i++) x[i] = (float)(i * 37 % 101 - 50) / 8;
	for (int i = 0; i < KERNELS * TAPS; i++) w[i] = (int8_t)(i * 29 % 255 - 127);
	expect_pooled(x, w, y);
	build_pooled(w);
	SL_SCOPE {
		sl_block *b = built(),
		         *inner = slp_model_built(&m, (struct sl_import_onnx_opts){SL_OUTPUTS("cq", "sq", "y")});
		sl_tensor *image = sl_from(x, SL_SHAPE(1, CHANNELS, SIDE, SIDE)), *out[3];
		for (int compiled = 0; compiled < 2; compiled++) {
			if (compiled) CHECK_OK(sl_hybridize(b));
			CHECK_MODEL(b, image, y[0], y[1], y[2], y[3], y[4], y[5], y[6], y[7], y[8], y[9], y[10], y[11]);
		}
		if (CHECK_OK(sl_forward_all(inner, &image, 1, out, 3))) {
			CHECK(sl_tensor_dtype(out[0]) == SL_INT8); /* in the order of the format */
			CHECK(sl_shape_equal(sl_tensor_shape(out[0]), SL_SHAPE(1, KERNELS, SIDE, SIDE)));
			CHECK_VALUES(sl_reshape(out[2], SL_SHAPE(-1)), y[0], y[1], y[2], y[3], y[4], y[5], y[6], y[7],
			             y[8], y[9], y[10], y[11]);
		}
		sl_block_free(b);
		sl_block_free(inner);
	}
}

static void test_between(void)
{
	for (bias_steps = 1; bias_steps <= 2; bias_steps++) check_between();
}

/* ---- sequences of different lengths ------------------------------------------------------------------------------ */

enum { STEPS = 5, BATCH = 3, INPUTS = 2, UNITS = 2 };

static void add_random(const char *name, const int64_t *dims, unsigned seed)
{
	static float v[8][2 * 4 * UNITS * 8];
	static int used;
	float *to = v[used++ % 8];
	int64_t n = dims[0] * dims[1] * dims[2];
	for (int64_t i = 0; i < n; i++) to[i] = (float)((seed = seed * 1664525 + 1013904223) >> 8) / 16777216.0F - 0.5F;
	slp_model_raw(slp_model_tensor(&m, name, FLOAT, dims, 3), to, (size_t)n * sizeof *to);
}

static sl_block *recurrent(const char *node, int gates, bool lengths)
{
	static int64_t w[3], r[3];
	w[0] = r[0] = 2, w[1] = r[1] = gates * UNITS, w[2] = INPUTS, r[2] = UNITS;
	slp_model_begin(&m, 17);
	add_random("w", w, 1);
	add_random("r", r, 2);
	SlpOnnx__NodeProto *n = slp_model_node(&m, node);
	SlpOnnx__AttributeProto *a = slp_model_attribute(&m, n, "direction", 3);
	a->has_s = true, a->s = (ProtobufCBinaryData){13, (uint8_t *)"bidirectional"};
	slp_model_ends(&m, lengths ? "x n" : "x", gates == 4 ? "y h c" : "y h");
	return built();
}

/* Each sequence alone, cut to its length, gives the same; behind it are zeros. */
static void check_lengths(const char *with, const char *without, int gates)
{
	static const int64_t lengths[BATCH] = {5, 2, 1};
	int nout = gates == 4 ? 3 : 2;
	SL_SCOPE {
		sl_block *b = recurrent(with, gates, true), *alone = recurrent(without, gates, false);
		sl_seed(3);
		sl_tensor *x = sl_normal(SL_SHAPE(STEPS, BATCH, INPUTS), 0, 1), *out[3], *one[3];
		sl_tensor *in[] = {x, sl_from(lengths, SL_SHAPE(BATCH), .dtype = SL_INT64)};
		for (int compiled = 0; compiled < 2; compiled++) {
			if (compiled) CHECK_OK(sl_hybridize(b));
			if (!CHECK_OK(sl_forward_all(b, in, 2, out, nout))) break;
			for (int i = 0; i < BATCH; i++) {
				int64_t n = lengths[i];
				sl_tensor *part = PART(PART(x, 1, i, i + 1), 0, 0, n);
				if (!CHECK_OK(sl_forward_all(alone, &part, 1, one, nout))) break;
				sl_tensor *y = PART(out[0], 2, i, i + 1);
				CHECK(sl_item(sl_max(sl_abs(sl_sub(PART(y, 0, 0, n), one[0])))) < 1e-6);
				if (n < STEPS) CHECK(sl_item(sl_max(sl_abs(PART(y, 0, n, STEPS)))) == 0);
				for (int k = 1; k < nout; k++)
					CHECK(sl_item(sl_max(sl_abs(sl_sub(PART(out[k], 1, i, i + 1), one[k])))) <
					      1e-6);
			}
		}
		sl_block_free(b);
		sl_block_free(alone);
	}
}

static void test_lengths(void)
{
	check_lengths("LSTM x w r - n -> y h c", "LSTM x w r -> y h c", 4);
	check_lengths("GRU x w r - n -> y h", "GRU x w r -> y h", 3);
	check_lengths("RNN x w r - n -> y h", "RNN x w r -> y h", 1);
}

/* ---- what is written more than once, and narrow types ------------------------------------------------------------ */

/* The last one counts, of numbers that are known and of those that are not, along an axis and by rows. */
static void test_last(void)
{
	static const int64_t where[] = {3, 0, 3, -1, 2};
	static const float v[] = {NAN, 20, 30, 40, 50};
	for (int rows = 0; rows < 2; rows++)
		for (int known = 0; known < 2; known++)
			SL_SCOPE {
				slp_model_begin(&m, 18);
				if (known)
					slp_model_raw(slp_model_tensor(&m, "i", INT64,
					                               rows ? (const int64_t[]){5, 1}
					                                    : (const int64_t[]){5, 0},
					                               1 + rows),
					              where, sizeof where);
				slp_model_raw(slp_model_tensor(&m, "v", FLOAT, SLP_DIMS(5)), v, sizeof v);
				slp_model_node(&m, rows ? "ScatterND x i v -> y" : "ScatterElements x i v -> y");
				slp_model_ends(&m, known ? "x" : "x i", "y");
				sl_block *b = built();
				sl_tensor *in[] = {
				        sl_ones(SL_SHAPE(4)),
				        sl_from(where, rows ? SL_SHAPE(5, 1) : SL_SHAPE(5), .dtype = SL_INT64)};
				sl_tensor *y = b ? sl_forward_at(SL_HERE, b, in, 2 - known) : NULL;
				if (CHECK_SAYING(y != NULL, "%s", sl_error_message())) CHECK_VALUES(y, 20, 1, 50, 40);
				sl_error_clear();
				sl_block_free(b);
			}
}

static void test_narrow(void)
{
	static const int types[] = {UINT8, INT8, UINT16, INT16};
	static const double wanted[4][5] = {{251, 44, 128, 255, 112},
	                                    {-5, 44, -128, -1, 112},
	                                    {65531, 300, 128, 65535, 4464},
	                                    {-5, 300, 128, -1, 4464}};
	for (int i = 0; i < 4; i++)
		SL_SCOPE {
			slp_model_begin(&m, 17);
			slp_model_int(&m, slp_model_node(&m, "Cast x -> y"), "to", types[i]);
			sl_block *b = built();
			const double *w = wanted[i];
			CHECK_MODEL(b, sl_from(((int64_t[]){-5, 300, 128, -1, 70000}), SL_SHAPE(5), .dtype = SL_INT64),
			            w[0], w[1], w[2], w[3], w[4]);
			sl_block_free(b);
		}
}

static const struct slp_test tests[] = {
        {"quantised and back", test_quantise},
        {"between bytes", test_between},
        {"scales along an axis", test_axes},
        {"scales that a run computes, several results", test_dynamic},
        {"exact products", test_exact},
        {"convolutions", test_conv},
        {"operators between steps", test_scaled},
        {"sequences of different lengths", test_lengths},
        {"the last one counts", test_last},
        {"narrow types", test_narrow},
        {NULL, NULL},
};

int main(int argc, char **argv)
{
	static const struct slp_suite suites[] = {
	        {"quantised onnx", tests, slp_start_engine, slp_stop_engine, NULL, NULL},
	        {0},
	};
	return slp_test_main(argc, argv, suites);
}
