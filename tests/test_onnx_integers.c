/* ONNX models of integers of 32 and 64 bits whose products do not fit: all wrap, as in two's complement.  The values
 * compared with are computed here, in unsigned arithmetic. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "onnx_builder.h"

enum { INT32 = 6, INT64 = 7, ROWS = 3, INNER = 4, COLUMNS = 2 };
static struct slp_model m;

static sl_block *built(void)
{
	return slp_model_built(&m, (struct sl_import_onnx_opts){0});
}

/* Numbers of all sizes, small ones among them. */
static void fill(int64_t *v, int n, uint64_t seed)
{
	for (int i = 0; i < n; i++) {
		seed = seed * 6364136223846793005U + 1442695040888963407U;
		v[i] = (int64_t)(seed >> (i % 3 * 20));
		if (i % 4 == 1) v[i] = -v[i];
	}
}

static sl_tensor *tensor_of(const int64_t *v, sl_shape shape, int type)
{
	int32_t narrow[ROWS * INNER * COLUMNS];
	int64_t n = sl_shape_size(shape);
	if (type == INT64) return sl_from(v, shape, .dtype = SL_INT64);
	for (int i = 0; i < n; i++) narrow[i] = (int32_t)v[i];
	return sl_from(narrow, shape, .dtype = SL_INT32);
}

static void check_whole(sl_tensor *y, const int64_t *wanted, int n, int type, const char *what)
{
	int64_t got[ROWS * INNER * COLUMNS] = {0};
	int32_t narrow[ROWS * INNER * COLUMNS];
	if (!CHECK_SAYING(y && sl_tensor_size(y) == n, "%s: %s", what, sl_error_message())) return;
	if (type == INT64) CHECK_OK(sl_read(y, got, (size_t)n * sizeof *got));
	else CHECK_OK(sl_read(y, narrow, (size_t)n * sizeof *narrow));
	for (int i = 0; i < n; i++) {
		int64_t right = type == INT64 ? wanted[i] : (int32_t)wanted[i], is = type == INT64 ? got[i] : narrow[i];
		CHECK_SAYING(is == right, "%s %d: %lld, not %lld", what, i, (long long)is, (long long)right);
	}
}

/* A node of two inputs, node by node and compiled. */
static void check_node(const char *node, const char *equation, int type, sl_shape x, sl_shape w, const int64_t *wanted,
                       int n)
{
	static int64_t a[ROWS * INNER], b[INNER * COLUMNS];
	fill(a, ROWS * INNER, 7);
	fill(b, INNER * COLUMNS, 11);
	SL_SCOPE {
		slp_model_begin(&m, 17);
		slp_model_ends(&m, "x w", "y");
		SlpOnnx__NodeProto *p = slp_model_node(&m, node);
		if (equation) {
			SlpOnnx__AttributeProto *e = slp_model_attribute(&m, p, "equation", 3);
			e->has_s = true, e->s = (ProtobufCBinaryData){strlen(equation), (uint8_t *)equation};
		}
		sl_block *net = built();
		sl_tensor *in[] = {tensor_of(a, x, type), tensor_of(b, w, type)}, *y = NULL;
		for (int compiled = 0; compiled < 2 && net; compiled++) {
			if (compiled) CHECK_OK(sl_hybridize(net));
			CHECK_OK(sl_forward_all(net, in, 2, &y, 1));
			check_whole(y, wanted, n, type, equation ? equation : node);
		}
		CHECK_SAYING(net != NULL, "%s", sl_error_message());
		sl_block_free(net);
	}
}

static void test_products(void)
{
	int64_t a[ROWS * INNER], b[INNER * COLUMNS], y[ROWS * COLUMNS], sums[COLUMNS] = {0};
	fill(a, ROWS * INNER, 7);
	fill(b, INNER * COLUMNS, 11);
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < COLUMNS; j++) {
			uint64_t sum = 0;
			for (int k = 0; k < INNER; k++)
				sum += (uint64_t)a[i * INNER + k] * (uint64_t)b[k * COLUMNS + j];
			y[i * COLUMNS + j] = (int64_t)sum;
			sums[j] = (int64_t)((uint64_t)sums[j] + sum * sum);
		}
	for (int type = INT32; type <= INT64; type++) {
		sl_shape x = SL_SHAPE(ROWS, INNER), w = SL_SHAPE(INNER, COLUMNS);
		check_node("MatMul x w -> y", NULL, type, x, w, y, ROWS * COLUMNS);
		check_node("Gemm x w -> y", NULL, type, x, w, y, ROWS * COLUMNS);
		check_node("Einsum x w -> y", "ik,kj", type, x, w, y, ROWS * COLUMNS);
		check_node("Einsum x w x w -> y", "ik,kj,il,lj->j", type, x, w, sums, COLUMNS);
	}
}

/* The sum of all, by Einsum of one input; slopes. */
static void test_others(void)
{
	int64_t a[ROWS * INNER], b[INNER * COLUMNS], sloped[ROWS * INNER], rows[ROWS];
	fill(a, ROWS * INNER, 7);
	fill(b, INNER * COLUMNS, 11);
	for (int type = INT32; type <= INT64; type++) {
		for (int i = 0; i < ROWS; i++) {
			uint64_t sum = 0;
			for (int k = 0; k < INNER; k++) {
				int64_t v = a[i * INNER + k], *to = &sloped[i * INNER + k];
				if (type == INT32) v = (int32_t)v;
				*to = v < 0 ? (int64_t)((uint64_t)v * (uint64_t)b[k]) : v;
				sum += (uint64_t)v;
			}
			rows[i] = (int64_t)sum;
		}
		check_node("Einsum x -> y", "ik->i", type, SL_SHAPE(ROWS, INNER), SL_SHAPE(INNER, COLUMNS), rows, ROWS);
		check_node("PRelu x w -> y", NULL, type, SL_SHAPE(ROWS, INNER), SL_SHAPE(INNER), sloped, ROWS * INNER);
	}
}

/* A value that no double holds. */
static void test_pads(void)
{
	static const int64_t pads[] = {1, 2}, value = 9007199254740993,
	                     wanted[] = {9007199254740993, 5, INT64_MIN, 9007199254740993, 9007199254740993};
	SL_SCOPE {
		slp_model_begin(&m, 17);
		slp_model_raw(slp_model_tensor(&m, "p", INT64, SLP_DIMS(2)), pads, sizeof pads);
		slp_model_raw(slp_model_tensor(&m, "v", INT64, NULL, 0), &value, sizeof value);
		slp_model_node(&m, "Pad x p v -> y");
		sl_block *net = built();
		sl_tensor *x = sl_from(((int64_t[]){5, INT64_MIN}), SL_SHAPE(2), .dtype = SL_INT64);
		check_whole(net ? sl_forward(net, x) : NULL, wanted, 5, INT64, "Pad");
		sl_block_free(net);
	}
}

static const struct slp_test tests[] = {
        {"products", test_products},
        {"others", test_others},
        {"pads", test_pads},
        {NULL, NULL},
};

int main(int argc, char **argv)
{
	static const struct slp_suite suites[] = {
	        {"onnx integers", tests, slp_start_engine, slp_stop_engine, NULL, NULL},
	        {0},
	};
	return slp_test_main(argc, argv, suites);
}
