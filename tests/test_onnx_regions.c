/* ONNX models that place a grid over images: RoiAlign, AffineGrid; and that put regions' rows back: ScatterElements.  What is
 * compared with is computed here, sample by sample, in double precision. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "onnx_builder.h"

enum { FLOAT = 1, INT64 = 7, IMAGES = 2, CHANNELS = 2, HEIGHT = 5, WIDTH = 7, REGIONS = 6, HIGH = 2, WIDE = 3 };
static struct slp_model m;

static sl_block *built(void)
{
	return slp_model_built(&m, (struct sl_import_onnx_opts){0});
}

static void set_text(SlpOnnx__NodeProto *n, const char *name, const char *text)
{
	SlpOnnx__AttributeProto *a = slp_model_attribute(&m, n, name, 3);
	a->has_s = true, a->s = (ProtobufCBinaryData){strlen(text), (uint8_t *)text};
}

static void set_float(SlpOnnx__NodeProto *n, const char *name, float v)
{
	SlpOnnx__AttributeProto *a = slp_model_attribute(&m, n, name, 1);
	a->has_f = true, a->f = v;
}

/* ---- regions ----------------------------------------------------------------------------------------------------- */

/* Inside, over the border, outside, larger than an image, of no size, turned round. */
static const float rois[REGIONS][4] = {{1, 2, 9, 8},     {-3, -1, 4, 5}, {40, 40, 50, 60},
                                       {-9, -7, 30, 41}, {3, 3, 3, 3},   {6, 6, 2.5F, 1.5F}};
static const int64_t which[REGIONS] = {0, 1, 0, 1, 1, 0};

/* As ONNX says it. */
static double pixel(const float *image, double y, double x)
{
	if (y < -1 || y > HEIGHT || x < -1 || x > WIDTH) return 0;
	y = fmin(fmax(y, 0), HEIGHT - 1), x = fmin(fmax(x, 0), WIDTH - 1);
	int i = (int)y, j = (int)x, below = i + 1 < HEIGHT ? i + 1 : i, right = j + 1 < WIDTH ? j + 1 : j;
	double v = y - i, h = x - j;
	return (1 - v) * ((1 - h) * image[i * WIDTH + j] + h * image[i * WIDTH + right]) +
	       v * ((1 - h) * image[below * WIDTH + j] + h * image[below * WIDTH + right]);
}

static double part(const float *image, const float roi[4], int p, int q, int samples, bool half)
{
	double at[2], size[2], sum = 0;
	int n[2];
	for (int a = 0; a < 2; a++) { /* 0: down */
		double low = roi[1 - a] * 0.5 - (half ? 0.5 : 0), extent = roi[3 - a] * 0.5 - (half ? 0.5 : 0) - low;
		if (!half) extent = fmax(extent, 1);
		size[a] = extent / (a ? WIDE : HIGH);
		n[a] = samples ? samples : (int)ceil(size[a]);
		at[a] = low + (a ? q : p) * size[a];
	}
	for (int i = 0; i < n[0]; i++)
		for (int j = 0; j < n[1]; j++)
			sum += pixel(image, at[0] + (i + 0.5) * size[0] / n[0], at[1] + (j + 0.5) * size[1] / n[1]);
	return sum / (n[0] * n[1] > 0 ? n[0] * n[1] : 1);
}

static void check_regions(int samples, bool half, int images, bool given)
{
	float x[IMAGES][CHANNELS][HEIGHT * WIDTH], got[REGIONS][CHANNELS][HIGH][WIDE];
	static int64_t zeros[REGIONS];
	slp_model_begin(&m, 16);
	if (!given) slp_model_raw(slp_model_tensor(&m, "r", FLOAT, SLP_DIMS(REGIONS, 4)), rois, sizeof rois);
	slp_model_raw(slp_model_tensor(&m, "b", INT64, SLP_DIMS(REGIONS)), images > 1 ? which : zeros, sizeof which);
	if (given) slp_model_ends(&m, "x r", "y");
	SlpOnnx__NodeProto *n = slp_model_node(&m, "RoiAlign x r b -> y");
	if (!half) set_text(n, "coordinate_transformation_mode", "output_half_pixel");
	set_float(n, "spatial_scale", 0.5F);
	slp_model_int(&m, n, "output_height", HIGH);
	slp_model_int(&m, n, "output_width", WIDE);
	slp_model_int(&m, n, "sampling_ratio", samples);
	for (int i = 0; i < IMAGES * CHANNELS * HEIGHT * WIDTH; i++)
		x[i / (CHANNELS * HEIGHT * WIDTH)][i / (HEIGHT * WIDTH) % CHANNELS][i % (HEIGHT * WIDTH)] =
		        (float)(i * 37 % 101) / 10;
	SL_SCOPE {
		sl_block *b = built();
		sl_tensor *in[] = {sl_from(x[0][0], SL_SHAPE(images, CHANNELS, HEIGHT, WIDTH)),
		                   sl_from(rois[0], SL_SHAPE(REGIONS, 4))};
		for (int compiled = 0; compiled < 2 && b; compiled++) {
			if (compiled) CHECK_OK(sl_hybridize(b));
			sl_tensor *y = NULL;
			CHECK_OK(sl_forward_all(b, in, 1 + given, &y, 1));
			if (!CHECK_OK(sl_read(y, got, sizeof got))) break;
			for (int r = 0; r < REGIONS; r++)
				for (int i = 0; i < CHANNELS * HIGH * WIDE; i++) {
					int c = i / (HIGH * WIDE), p = i / WIDE % HIGH, q = i % WIDE;
					const float *image = x[images > 1 ? which[r] : 0][c];
					double wanted = part(image, rois[r], p, q, samples, half);
					CHECK_SAYING(fabs(got[r][c][p][q] - wanted) < 1e-4,
					             "region %d, %d samples: [%d][%d][%d] is %g, not %g", r, samples, c,
					             p, q, (double)got[r][c][p][q], wanted);
				}
		}
		CHECK_SAYING(b != NULL, "%s", sl_error_message());
		sl_block_free(b);
	}
}

static void test_regions(void)
{
	for (int i = 0; i < 8; i++) {
		check_regions(i & 1 ? 2 : 0, i & 2, i & 4 ? IMAGES : 1, false);
		check_regions(i & 1 ? 3 : 0, i & 2, i & 4 ? IMAGES : 1, true);
	}
}

/* ---- grids ------------------------------------------------------------------------------------------------------- */

/* A grid of two rows and three columns, moved, turned and stretched. */
static void test_affine_grid(void)
{
	static const float theta[2][3] = {{0.5F, -1, 0.25F}, {2, 1, -1}};
	static const int64_t size[] = {1, 4, 2, 3};
	for (int corners = 0; corners < 2; corners++)
		SL_SCOPE {
			double y[2] = {corners ? -1 : -0.5, corners ? 1 : 0.5}, w[12];
			for (int i = 0; i < 6; i++) {
				double column = (i % 3 - 1) * (corners ? 1 : 2 / 3.0);
				for (int k = 0; k < 2; k++)
					w[2 * i + k] = (double)theta[k][0] * column + (double)theta[k][1] * y[i / 3] +
					               (double)theta[k][2];
			}
			slp_model_begin(&m, 20);
			slp_model_raw(slp_model_tensor(&m, "s", INT64, SLP_DIMS(4)), size, sizeof size);
			slp_model_int(&m, slp_model_node(&m, "AffineGrid x s -> y"), "align_corners", corners);
			sl_block *b = built();
			sl_tensor *grid = b ? sl_forward(b, sl_from(theta[0], SL_SHAPE(1, 2, 3))) : NULL;
			if (CHECK_SAYING(grid && sl_tensor_shape(grid).ndim == 4, "%s", sl_error_message()))
				CHECK_VALUES(sl_reshape(grid, SL_SHAPE(-1)), w[0], w[1], w[2], w[3], w[4], w[5], w[6],
				             w[7], w[8], w[9], w[10], w[11]);
			sl_block_free(b);
		}
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

static void check_refused(enum sl_status status, const char *says, const char *also)
{
	sl_block *b = built();
	if (b)
		SL_SCOPE
			sl_forward(b, sl_ones(SL_SHAPE(1, 1, 4, 4)));
	CHECK_SAYING(sl_error() == status && strstr(sl_error_message(), says) && strstr(sl_error_message(), also),
	             "says \"%s\"", sl_error_message());
	sl_error_clear();
	sl_block_free(b);
}

/* PyTorch writes the largest int64 for "all"; scores are the input, so that the number of boxes is computed. */
static void test_all_boxes(void)
{
	static const float boxes[] = {0, 0, 1, 1, 0, 2, 1, 3};
	static const int64_t all[] = {INT64_MAX};
	int64_t got[6] = {0};
	slp_model_begin(&m, 16);
	slp_model_raw(slp_model_tensor(&m, "b", FLOAT, SLP_DIMS(1, 2, 4)), boxes, sizeof boxes);
	slp_model_raw(slp_model_tensor(&m, "n", INT64, SLP_DIMS(1)), all, sizeof all);
	slp_model_node(&m, "NonMaxSuppression b x n -> y");
	sl_block *b = built();
	SL_SCOPE {
		sl_tensor *y = b ? sl_forward(b, sl_from(((float[]){0.5F, 0.75F}), SL_SHAPE(1, 1, 2))) : NULL;
		if (CHECK_SAYING(y && sl_tensor_size(y) == 6, "%s", sl_error_message()) &&
		    CHECK_OK(sl_read(y, got, sizeof got)))
			CHECK(got[0] == 0 && got[2] == 1 && got[5] == 0);
	}
	sl_error_clear();
	sl_block_free(b);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

enum { ROWS = 5, PUT = 4, HIGHER = 3, WIDER = 6 };

/* What PyTorch writes of y[rows] = v; the last of two for one row counts.  Of all columns, or of the first two of the three. */
static void check_rows(int64_t high, const char *operator)
{
	static const int64_t rows[PUT] = {3, -5, 3, 1}, column[] = {-1, 1, 1}, spread[] = {PUT, HIGHER, WIDER};
	static float x[ROWS][HIGHER][WIDER], v[PUT][HIGHER][WIDER], want[ROWS][HIGHER][WIDER], got[ROWS][HIGHER][WIDER];
	int64_t shape[] = {PUT, high, WIDER};
	char text[64];
	for (int i = 0; i < ROWS * HIGHER * WIDER; i++) (&x[0][0][0])[i] = (float)i;
	for (int i = 0; i < PUT * HIGHER * WIDER; i++) (&v[0][0][0])[i] = i % 7 || high < HIGHER ? -(float)i : -0.0F;
	memcpy(want, x, sizeof x);
	for (int k = 0; k < PUT; k++)
		memcpy(want[(rows[k] + ROWS) % ROWS], (float *)v + k * high * WIDER,
		       (size_t)(high * WIDER) * sizeof(float));
	slp_model_begin(&m, 16);
	slp_model_raw(slp_model_tensor(&m, "c", INT64, SLP_DIMS(3)), column, sizeof column);
	slp_model_raw(slp_model_tensor(&m, "s", INT64, SLP_DIMS(3)), high == HIGHER ? spread : shape, sizeof spread);
	slp_model_node(&m, "Reshape i c -> r");
	slp_model_node(&m, "Expand r s -> e");
	snprintf(text, sizeof text, "%s x e v -> y", operator);
	slp_model_node(&m, text);
	slp_model_ends(&m, "x i v", "y");
	sl_block *b = built();
	SL_SCOPE {
		sl_tensor *in[] = {sl_from(x, SL_SHAPE(ROWS, HIGHER, WIDER)),
		                   sl_from(rows, SL_SHAPE(PUT), .dtype = SL_INT64),
		                   sl_from(v, SL_SHAPE(PUT, high, WIDER))};
		for (int compiled = 0; CHECK_SAYING(b != NULL, "%s", sl_error_message()) && compiled < 2; compiled++) {
			sl_tensor *y = NULL;
			if (compiled) CHECK_OK(sl_hybridize(b));
			CHECK_SAYING(sl_forward_all(b, in, 3, &y, 1) == SL_OK, "%s", sl_error_message());
			CHECK_OK(sl_read(y, got, sizeof got));
			CHECK_SAYING(!memcmp(got, want, sizeof got), "%s, %d", operator,(int) high);
		}
	}
	sl_block_free(b);
}

static void test_rows(void)
{
	check_rows(HIGHER, "ScatterElements");
	check_rows(HIGHER - 1, "ScatterElements");
	check_rows(1, "ScatterElements");
}

static void test_refused(void)
{
	slp_model_begin(&m, 16);
	slp_model_node(&m, "Warp x -> w");
	slp_model_node(&m, "Weft x w -> y");
	check_refused(SL_EUNSUPPORTED, "2 operators are not supported: Warp", "Weft");
	slp_model_begin(&m, 16);
	slp_model_raw(slp_model_tensor(&m, "r", FLOAT, SLP_DIMS(REGIONS, 4)), rois, sizeof rois);
	slp_model_raw(slp_model_tensor(&m, "b", INT64, SLP_DIMS(REGIONS)), which, sizeof which);
	set_text(slp_model_node(&m, "RoiAlign x r b -> y"), "mode", "max");
	check_refused(SL_EUNSUPPORTED, "RoiAlign", "only \"avg\" is");
	slp_model_begin(&m, 16);
	slp_model_raw(slp_model_tensor(&m, "r", FLOAT, SLP_DIMS(REGIONS * 2, 2)), rois, sizeof rois);
	slp_model_raw(slp_model_tensor(&m, "b", INT64, SLP_DIMS(REGIONS)), which, sizeof which);
	slp_model_node(&m, "RoiAlign x r b -> y");
	check_refused(SL_ESHAPE, "RoiAlign", "regions that do not fit the images");
}

static const struct slp_test tests[] = {
        {"regions", test_regions}, {"affine grid", test_affine_grid}, {"all boxes", test_all_boxes},
        {"rows", test_rows},       {"refused", test_refused},         {NULL, NULL},
};

int main(int argc, char **argv)
{
	static const struct slp_suite suites[] = {
	        {"onnx regions", tests, slp_start_engine, slp_stop_engine, NULL, NULL},
	        {0},
	};
	return slp_test_main(argc, argv, suites);
}
