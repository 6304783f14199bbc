/* Data types of ONNX models: int64 beyond what other types hold, truth values as bools, both from file to file; bits,
 * random numbers; which numbers are constants. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "folder.h"
#include "onnx_builder.h"

#define BIG INT64_C(1099511627776) /* 2^40: no int32, and no float32 distinguishes it from its neighbours */
#define HUGE_ONE (INT64_C(1) << 62)
enum { INT64 = 7, BOOL = 9, MOST = 8 };

static const int64_t numbers[] = {BIG + 1, -BIG - 3, 5, HUGE_ONE + 1, -7, 0};

/* Nodes that compute y of x, int64 (2, 3), of c, int64, and of the tensors below; what y is. */
struct graph {
	const char *nodes[5], *attribute; /* nodes: up to a NULL */
	int64_t value;                    /* of the attribute of the last node */
	int64_t c[3];
	int nc;
	enum sl_dtype dtype;
	int64_t wanted[MOST];
	int count;
};

static const struct graph graphs[] = {
        {{"Add x c -> y"},
         NULL,
         0,
         {BIG},
         1,
         SL_INT64,
         {2 * BIG + 1, -3, BIG + 5, HUGE_ONE + BIG + 1, BIG - 7, BIG},
         6},
        {{"Sub c x -> y"},
         NULL,
         0,
         {HUGE_ONE + 1},
         1,
         SL_INT64,
         {HUGE_ONE - BIG, HUGE_ONE + BIG + 4, HUGE_ONE - 4, 0, HUGE_ONE + 8, HUGE_ONE + 1},
         6},
        {{"Mul x c -> y"}, NULL, 0, {3}, 1, SL_INT64, {3 * BIG + 3, -3 * BIG - 9, 15, 3 - HUGE_ONE, -21, 0}, 6},
        {{"Div x c -> y"}, NULL, 0, {2, 3, -4}, 3, SL_INT64, {BIG / 2, -(BIG + 3) / 3, -1, HUGE_ONE / 2, -2, 0}, 6},
        {{"Mod x c -> y"}, NULL, 0, {4, 1000, -3}, 3, SL_INT64, {1, 1000 - (BIG + 3) % 1000, -1, 1, 993, 0}, 6},
        {{"Mod x c -> y"}, "fmod", 1, {4, 1000, -3}, 3, SL_INT64, {1, -((BIG + 3) % 1000), 2, 1, -7, 0}, 6},
        {{"Equal x c -> y"}, NULL, 0, {HUGE_ONE + 1}, 1, SL_BOOL, {0, 0, 0, 1, 0, 0}, 6},
        {{"Less x c -> y"}, NULL, 0, {HUGE_ONE + 2}, 1, SL_BOOL, {1, 1, 1, 1, 1, 1}, 6},
        {{"GreaterOrEqual x c -> y"}, NULL, 0, {HUGE_ONE + 2}, 1, SL_BOOL, {0, 0, 0, 0, 0, 0}, 6},
        {{"Less x c -> l", "Not l -> n", "Where n x c -> y"},
         NULL,
         0,
         {BIG},
         1,
         SL_INT64,
         {BIG + 1, BIG, BIG, HUGE_ONE + 1, BIG, BIG},
         6},
        {{"Greater x c -> l", "Cast l -> y"}, "to", INT64, {0}, 1, SL_INT64, {1, 0, 1, 1, 0, 0}, 6},
        {{"Cast x -> y"}, "to", BOOL, {0}, 1, SL_BOOL, {1, 1, 1, 1, 1, 0}, 6},
        {{"Gather x c -> y"}, "axis", 1, {-1, 0, 1}, 3, SL_INT64, {5, BIG + 1, -BIG - 3, 0, HUGE_ONE + 1, -7}, 6},
        {{"ArgMax x -> y"}, "axis", 1, {0}, 1, SL_INT64, {0, 0}, 2},
        {{"ArgMin x -> y"}, "axis", 1, {0}, 1, SL_INT64, {1, 1}, 2},
        {{"TopK x two -> v y"}, "largest", 0, {0}, 1, SL_INT64, {1, 2, 1, 2}, 4},
        {{"TopK x two -> y p"}, "largest", 0, {0}, 1, SL_INT64, {-BIG - 3, 5, -7, 0}, 4},
        {{"TopK x two -> v p", "GatherElements x p -> y"},
         "axis",
         1,
         {0},
         1,
         SL_INT64,
         {BIG + 1, 5, HUGE_ONE + 1, 0},
         4},
        {{"ReduceSum x one -> y"}, "keepdims", 0, {0}, 1, SL_INT64, {3, HUGE_ONE - 6}, 2},
        {{"ReduceMax x one -> y"}, "keepdims", 0, {0}, 1, SL_INT64, {BIG + 1, HUGE_ONE + 1}, 2},
        {{"CumSum x axis -> y"}, "reverse", 1, {0}, 1, SL_INT64, {3, -BIG + 2, 5, HUGE_ONE - 6, -7, 0}, 6},
        {{"Shape x -> s", "Mul s c -> p", "Add p c -> y"},
         NULL,
         0,
         {BIG + 1},
         1,
         SL_INT64,
         {3 * BIG + 3, 4 * BIG + 4},
         2},
        {{"Range start limit step -> r", "Equal x c -> e", "CastLike e c -> i", "Gather r i -> y"},
         NULL,
         0,
         {5},
         1,
         SL_INT64,
         {HUGE_ONE + 1, HUGE_ONE + 1, HUGE_ONE + 3, HUGE_ONE + 1, HUGE_ONE + 1, HUGE_ONE + 1},
         6},
        {{"Equal x c -> e", "ReduceMax e one -> y"}, "keepdims", 0, {-7}, 1, SL_BOOL, {0, 1}, 2},
        {{"ScatterND x where c -> y"},
         NULL,
         0,
         {HUGE_ONE - 1, -BIG - 1},
         2,
         SL_INT64,
         {BIG + 1, HUGE_ONE - 1, 5, HUGE_ONE + 1, -7, -BIG - 1},
         6},
        /* results that nobody takes */
        {{"Split x -> y b d"}, "axis", 1, {0}, 1, SL_INT64, {BIG + 1, HUGE_ONE + 1}, 2},
        {{"Split x -> a y b"}, "axis", 1, {0}, 1, SL_INT64, {-BIG - 3, -7}, 2},
        {{"Split x c -> y b"}, "axis", 1, {1, 2}, 2, SL_INT64, {BIG + 1, HUGE_ONE + 1}, 2},
        /* fewer indices than data; a shape */
        {{"Unsqueeze one axis -> i", "Unsqueeze c axis -> u", "ScatterElements x i u -> y"},
         "axis",
         1,
         {BIG},
         1,
         SL_INT64,
         {BIG + 1, BIG, 5, HUGE_ONE + 1, -7, 0},
         6},
        {{"Shape x -> s", "ScatterElements s one c -> t", "Reshape x t -> y"},
         NULL,
         0,
         {-1},
         1,
         SL_INT64,
         {BIG + 1, -BIG - 3, 5, HUGE_ONE + 1, -7, 0},
         6},
};

static const int64_t one[] = {1}, two[] = {2}, start[] = {HUGE_ONE + 1}, limit[] = {HUGE_ONE + 7},
                     where[] = {0, 1, 1, 2};

static void add_tensors(struct slp_model *m, const struct graph *g)
{
	const int64_t dims[] = {g->nc};
	slp_model_raw(slp_model_tensor(m, "c", INT64, dims, 1), g->c, (size_t)g->nc * sizeof *g->c);
	slp_model_raw(slp_model_tensor(m, "one", INT64, SLP_DIMS(1)), one, sizeof one);
	slp_model_raw(slp_model_tensor(m, "two", INT64, SLP_DIMS(1)), two, sizeof two);
	slp_model_raw(slp_model_tensor(m, "axis", INT64, NULL, 0), one, sizeof one);
	slp_model_raw(slp_model_tensor(m, "start", INT64, NULL, 0), start, sizeof start);
	slp_model_raw(slp_model_tensor(m, "limit", INT64, NULL, 0), limit, sizeof limit);
	slp_model_raw(slp_model_tensor(m, "step", INT64, NULL, 0), two, sizeof two);
	slp_model_raw(slp_model_tensor(m, "where", INT64, SLP_DIMS(2, 2)), where, sizeof where);
}

static sl_block *graph_block(const struct graph *g)
{
	static struct slp_model m;
	int n = 0;
	slp_model_begin(&m, 13);
	m.in.type = &m.type, m.type.tensor_type = &m.tensor_type;
	m.tensor_type.has_elem_type = true, m.tensor_type.elem_type = INT64;
	add_tensors(&m, g);
	for (; g->nodes[n]; n++) slp_model_node(&m, g->nodes[n]);
	if (g->attribute) slp_model_int(&m, &m.nodes[n - 1], g->attribute, g->value);
	return slp_model_built(&m, (struct sl_import_onnx_opts){0});
}

static void check_values(const char *what, sl_tensor *y, enum sl_dtype dtype, const int64_t *wanted, int count)
{
	int64_t got[MOST] = {0};
	bool truths[MOST];
	if (!CHECK_SAYING(y != NULL, "%s: %s", what, sl_error_message())) return sl_error_clear();
	if (!CHECK_SAYING(sl_tensor_dtype(y) == dtype && sl_tensor_size(y) == count, "%s: %lld of %s", what,
	                  (long long)sl_tensor_size(y), sl_dtype_name(sl_tensor_dtype(y))))
		return;
	CHECK_OK(sl_read(y, dtype == SL_BOOL ? (void *)truths : got, sl_tensor_bytes(y)));
	for (int i = 0; i < count; i++) {
		if (dtype == SL_BOOL) got[i] = truths[i];
		CHECK_SAYING(got[i] == wanted[i], "%s: [%d] is %lld, not %lld", what, i, (long long)got[i],
		             (long long)wanted[i]);
	}
}

/* Node by node, and compiled. */
static void test_graphs(void)
{
	for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
		const struct graph *g = &graphs[i];
		char what[64];
		snprintf(what, sizeof what, "%zu, %.40s", i, g->nodes[0]);
		SL_SCOPE {
			sl_tensor *x = sl_from(numbers, SL_SHAPE(2, 3), .dtype = SL_INT64);
			sl_block *b = graph_block(g);
			check_values(what, sl_forward(b, x), g->dtype, g->wanted, g->count);
			CHECK_OK(sl_hybridize(b));
			check_values(what, sl_forward(b, x), g->dtype, g->wanted, g->count);
			sl_block_free(b);
		}
	}
}

/* Of more elements than are kept as numbers: parameters, Range and ConstantOfShape as tensors. */
static void test_large(void)
{
	enum { N = 5000 };
	static int64_t c[N], got[N];
	static struct slp_model m;
	for (int64_t i = 0; i < N; i++) c[i] = HUGE_ONE - i;
	static const int64_t n[] = {N}, zero[] = {0};
	slp_model_begin(&m, 13);
	slp_model_raw(slp_model_tensor(&m, "c", INT64, SLP_DIMS(N)), c, sizeof c);
	slp_model_raw(slp_model_tensor(&m, "n", INT64, NULL, 0), n, sizeof n);
	slp_model_raw(slp_model_tensor(&m, "zero", INT64, NULL, 0), zero, sizeof zero);
	slp_model_raw(slp_model_tensor(&m, "one", INT64, NULL, 0), one, sizeof one);
	slp_model_node(&m, "Range zero n one -> r");
	slp_model_node(&m, "Add r c -> s");
	slp_model_node(&m, "Add s x -> y");
	SL_SCOPE {
		sl_block *b = slp_model_built(&m, (struct sl_import_onnx_opts){0});
		sl_tensor *y = sl_forward(b, sl_from(one, SL_SHAPE(1), .dtype = SL_INT64));
		if (CHECK_SAYING(y && sl_tensor_dtype(y) == SL_INT64, "%s", sl_error_message())) {
			int wrong = 0;
			CHECK_OK(sl_read(y, got, sizeof got));
			for (int64_t i = 0; i < N; i++) wrong += got[i] != HUGE_ONE + 1;
			CHECK(wrong == 0);
		}
		sl_block_free(b);
	}
}

/* ---- from file to file ------------------------------------------------------------------------------------------- */

static sl_tensor *whole(sl_tensor *x)
{
	sl_tensor *y = sl_sub_scalar(sl_mul_scalar(sl_relu(x), 3), 0x1p45), *place = sl_argmax(y, 1);
	y = sl_add(y, sl_reshape(sl_cast(place, SL_INT64), SL_SHAPE(2, 1)));
	y = sl_where(sl_lt_scalar(y, 0.5, .dtype = SL_BOOL), sl_neg(sl_round(y)), y);
	return sl_add(y, sl_cast(sl_gt(x, y, .dtype = SL_BOOL), SL_INT64));
}

static sl_tensor *truth(sl_tensor *x)
{
	sl_tensor *low = sl_lt_scalar(x, 2.5, .dtype = SL_BOOL), *odd = sl_ne_scalar(x, 5, .dtype = SL_BOOL);
	return sl_logical_or(sl_logical_not(low), sl_logical_and(odd, sl_isfinite(x, .dtype = SL_BOOL)));
}

/* Results fit: ours saturate, those of the format wrap. */
static void check_round_trip(const char *name, sl_tensor *(*function)(sl_tensor *x))
{
	static const int64_t fitting[] = {BIG + 1, -BIG - 3, 5, HUGE_ONE / 4 + 1, -7, 0};
	char path[PATH_MAX];
	int64_t got[6] = {0}, wanted[6] = {0};
	SL_SCOPE {
		sl_tensor *x = sl_from(fitting, SL_SHAPE(2, 3), .dtype = SL_INT64), *y = function(x);
		sl_block *net = sl_lambda(name, function);
		CHECK_OK(sl_export_onnx(net, slp_scratch_path("t.onnx", path), SL_SHAPES(SL_SHAPE(2, 3)),
		                        .dtype = SL_INT64));
		sl_block *b = sl_import_onnx(path);
		sl_tensor *z = b ? sl_forward(b, x) : NULL;
		if (CHECK_SAYING(z && sl_tensor_dtype(z) == sl_tensor_dtype(y), "%s: %s", name, sl_error_message())) {
			CHECK_OK(sl_read(y, wanted, sl_tensor_bytes(y)));
			CHECK_OK(sl_read(z, got, sl_tensor_bytes(z)));
			CHECK_SAYING(!memcmp(got, wanted, sizeof got), "%s: values differ", name);
		}
		CHECK_NULL(b ? sl_forward(b, sl_ones(SL_SHAPE(2, 3))) : NULL, SL_EDTYPE, "the model takes int64");
		sl_block_free(b);
		sl_block_free(net);
	}
}

static void test_round_trip(void)
{
	check_round_trip("whole", whole);
	check_round_trip("truth", truth);
}

/* An image and a time, as in diffusion. */
static sl_tensor *timed(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)self;
	(void)nin;
	return sl_mul(in[0], sl_sin(sl_reshape(sl_cast(in[1], SL_FLOAT32), SL_SHAPE(-1, 1))));
}

static void test_types_of_each(void)
{
	sl_block *net = calloc(1, sizeof *net);
	char path[PATH_MAX];
	CHECK_OK(sl_block_init(net, "Timed", timed, NULL));
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2, 3)),
		          *t = sl_from(SL_ARRAY(int32_t, 1, 2), SL_SHAPE(2), .dtype = SL_INT32);
		CHECK_OK(sl_export_onnx(net, slp_scratch_path("t.onnx", path), SL_SHAPES(SL_SHAPE(2, 3), SL_SHAPE(2)),
		                        SL_DTYPES(SL_FLOAT32, SL_INT32)));
		sl_block *b = sl_import_onnx(path);
		sl_tensor *y = b ? sl_forward(b, x, t) : NULL;
		double one = sin(1), two = sin(2);
		CHECK_VALUES(y, one, one, one, two, two, two);
		CHECK_NULL(b ? sl_forward(b, x, sl_ones(SL_SHAPE(2))) : NULL, SL_EDTYPE, "int32");
		sl_block_free(b);
	}
	sl_block_free(net);
}

/* ---- what PyTorch does not export, or nobody can compare --------------------------------------------------------- */

static void set_text(struct slp_model *m, SlpOnnx__NodeProto *n, const char *name, const char *text)
{
	SlpOnnx__AttributeProto *a = slp_model_attribute(m, n, name, 3);
	a->has_s = true, a->s = (ProtobufCBinaryData){strlen(text), (uint8_t *)text};
}

static void set_pair(struct slp_model *m, SlpOnnx__NodeProto *n, const char *name, int64_t pair[2])
{
	SlpOnnx__AttributeProto *a = slp_model_attribute(m, n, name, 7);
	a->n_ints = 2, a->ints = pair;
}

static void set_float(struct slp_model *m, SlpOnnx__NodeProto *n, const char *name, float v)
{
	SlpOnnx__AttributeProto *a = slp_model_attribute(m, n, name, 1);
	a->has_f = true, a->f = v;
}

/* Bits that are shifted out of a byte are lost. */
static void test_shifts(void)
{
	static const uint8_t by[] = {3, 1, 7, 0, 8};
	static const char *const directions[] = {"LEFT", "RIGHT"};
	static const double wanted[2][5] = {{8, 144, 128, 7, 0}, {0, 100, 1, 7, 0}};
	static struct slp_model m;
	for (int i = 0; i < 2; i++)
		SL_SCOPE {
			slp_model_begin(&m, 18);
			slp_model_raw(slp_model_tensor(&m, "s", 2, SLP_DIMS(5)), by, sizeof by);
			set_text(&m, slp_model_node(&m, "BitShift x s -> y"), "direction", directions[i]);
			sl_block *b = slp_model_built(&m, (struct sl_import_onnx_opts){0});
			sl_tensor *y = sl_forward(
			        b, sl_from(((uint8_t[]){1, 200, 255, 7, 255}), SL_SHAPE(5), .dtype = SL_UINT8));
			CHECK(y && sl_tensor_dtype(y) == SL_UINT8);
			const double *w = wanted[i];
			CHECK_VALUES(y, w[0], w[1], w[2], w[3], w[4]);
			sl_block_free(b);
		}
}

/* As processors do it: down, not towards 0. */
static void test_negative_shifts(void)
{
	static const int64_t by[] = {1, 1, 3, 62};
	static struct slp_model m;
	SL_SCOPE {
		slp_model_begin(&m, 18);
		slp_model_raw(slp_model_tensor(&m, "s", INT64, SLP_DIMS(4)), by, sizeof by);
		set_text(&m, slp_model_node(&m, "BitShift x s -> y"), "direction", "RIGHT");
		sl_block *b = slp_model_built(&m, (struct sl_import_onnx_opts){0});
		CHECK_VALUES(sl_forward(b, sl_from(((int64_t[]){-7, 7, -BIG, -1}), SL_SHAPE(4), .dtype = SL_INT64)), -4,
		             3, -(BIG >> 3), -1);
		sl_block_free(b);
	}
}

/* Half types cannot tell the elements of a long row apart: places are float32. */
static void test_sampling(void)
{
	enum { WIDTH = 2000 };
	static const double wanted[] = {0, 1999, 1001, 1203, 777};
	static float grid[5][2], row[WIDTH];
	static struct slp_model m;
	SL_SCOPE {
		for (int i = 0; i < 5; i++) grid[i][0] = (float)(2 * wanted[i] / (WIDTH - 1) - 1);
		for (int i = 0; i < WIDTH; i++) row[i] = (float)i;
		slp_model_begin(&m, 16);
		slp_model_raw(slp_model_tensor(&m, "g", 1, SLP_DIMS(1, 1, 5, 2)), grid, sizeof grid);
		SlpOnnx__NodeProto *n = slp_model_node(&m, "GridSample x g -> y");
		set_text(&m, n, "mode", "nearest");
		slp_model_int(&m, n, "align_corners", 1);
		sl_block *b = slp_model_built(&m, (struct sl_import_onnx_opts){0});
		sl_tensor *y = sl_forward(b, sl_cast(sl_from(row, SL_SHAPE(1, 1, 1, WIDTH)), SL_FLOAT16));
		CHECK(y && sl_tensor_dtype(y) == SL_FLOAT16);
		CHECK_VALUES(sl_reshape(y, SL_SHAPE(-1)), wanted[0], wanted[1], wanted[2], wanted[3], wanted[4]);
		sl_block_free(b);
	}
}

static void test_unpooling(void)
{
	static int64_t pair[] = {2, 2};
	static const int64_t places[] = {5, 7, 5, 15}, size[] = {1, 1, 5, 5};
	static struct slp_model m;
	for (int larger = 0; larger < 2; larger++)
		SL_SCOPE {
			slp_model_begin(&m, 18);
			slp_model_raw(slp_model_tensor(&m, "i", INT64, SLP_DIMS(1, 1, 2, 2)), places, sizeof places);
			slp_model_raw(slp_model_tensor(&m, "s", INT64, SLP_DIMS(4)), size, sizeof size);
			SlpOnnx__NodeProto *n =
			        slp_model_node(&m, larger ? "MaxUnpool x i s -> y" : "MaxUnpool x i -> y");
			set_pair(&m, n, "kernel_shape", pair);
			set_pair(&m, n, "strides", pair);
			sl_block *b = slp_model_built(&m, (struct sl_import_onnx_opts){0});
			sl_tensor *x = sl_from(((float[]){3, 2, 3, 4}), SL_SHAPE(1, 1, 2, 2));
			sl_tensor *y = sl_reshape(sl_forward(b, x), SL_SHAPE(-1));
			if (larger)
				CHECK_VALUES(y, 0, 0, 0, 0, 0, 0, 3, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0,
				             0);
			else CHECK_VALUES(y, 0, 0, 0, 0, 0, 3, 0, 2, 0, 0, 0, 0, 0, 0, 0, 4);
			sl_block_free(b);
		}
}

/* Mean and deviation of many; others in each run, the same after the same seed, node by node and compiled. */
static void check_random(const char *node, const char *low, float a, const char *high, float b, const double wanted[2])
{
	static struct slp_model m;
	SL_SCOPE {
		slp_model_begin(&m, 18);
		slp_model_raw(slp_model_tensor(&m, "r", 1, NULL, 0), &(float){0.25F}, sizeof(float));
		slp_model_raw(slp_model_tensor(&m, "t", 9, NULL, 0), &(bool){true}, 1);
		SlpOnnx__NodeProto *n = slp_model_node(&m, node);
		if (low) set_float(&m, n, low, a), set_float(&m, n, high, b);
		sl_block *net = slp_model_built(&m, (struct sl_import_onnx_opts){0});
		sl_tensor *x = sl_full(SL_SHAPE(300, 200), 0.25), *y[3];
		for (int i = 0; i < 3; i++) {
			if (i == 1) CHECK_OK(sl_hybridize(net));
			if (i < 2) sl_seed(7);
			y[i] = sl_forward(net, x);
			if (!CHECK_SAYING(y[i] != NULL, "%s: %s", node, sl_error_message())) continue;
			CHECK_SAYING(fabs(sl_item(sl_mean(y[i])) - wanted[0]) < 0.02, "%s: mean", node);
			CHECK_SAYING(fabs(sl_item(sl_std(y[i])) - wanted[1]) < 0.02, "%s: deviation", node);
		}
		CHECK(sl_item(sl_mean(sl_eq(y[1], y[2]))) < 0.9);
		sl_block_free(net);
	}
}

static void test_random(void)
{
	check_random("RandomUniformLike x -> y", "low", 2, "high", 3, (const double[]){2.5, 0.28868});
	check_random("RandomNormalLike x -> y", "mean", 5, "scale", 2, (const double[]){5, 2});
	check_random("Bernoulli x -> y", NULL, 0, NULL, 0, (const double[]){0.25, 0.43301});
	check_random("Dropout x r t -> y", NULL, 0, NULL, 0, (const double[]){0.25, 0.14434}); /* 1/3 with rate 3/4 */
}

/* Tensors of floats that are all 0.5. */
static void put_halves(struct slp_model *m, const char *name, const int64_t *dims, int ndim)
{
	static const float halves[8] = {0.5F, 0.5F, 0.5F, 0.5F, 0.5F, 0.5F, 0.5F, 0.5F};
	size_t n = 1;
	for (int i = 0; i < ndim; i++) n *= (size_t)dims[i];
	slp_model_raw(slp_model_tensor(m, name, 1, dims, ndim), halves, n * sizeof *halves);
}

static void check_trained(sl_block *b, const char *name, bool trained)
{
	sl_param *p = sl_block_find(b, name);
	CHECK_SAYING(p && (sl_param_grad(p) != NULL) == trained, "%s: %s", name, sl_error_message());
	sl_error_clear();
}

/* Factors and first states are constants of a program; what is added, slopes, and weights are parameters. */
static void test_constants(void)
{
	static const char *const trained[] = {"bias", "slope", "twice", "w", "r"}, *const fixed[] = {"factor", "one",
	                                                                                             "h"};
	struct slp_model m;
	slp_model_begin(&m, 17);
	slp_model_node(&m, "Mul x factor -> a");
	slp_model_node(&m, "Sub one a -> b");
	slp_model_node(&m, "Add b bias -> c");
	slp_model_node(&m, "PRelu c slope -> d");
	slp_model_node(&m, "Mul d twice -> e");
	slp_model_node(&m, "Add e twice -> f");
	slp_model_int(&m, slp_model_node(&m, "RNN f w r - - h -> y"), "hidden_size", 2);
	const char *const single[] = {"factor", "one", "bias", "slope", "twice"};
	for (size_t i = 0; i < sizeof single / sizeof *single; i++) put_halves(&m, single[i], SLP_DIMS(1));
	put_halves(&m, "w", SLP_DIMS(1, 2, 1));
	put_halves(&m, "r", SLP_DIMS(1, 2, 2));
	put_halves(&m, "h", SLP_DIMS(1, 3, 2));
	sl_block *b = slp_model_built(&m, (struct sl_import_onnx_opts){0});
	SL_SCOPE {
		sl_tensor *y = NULL;
		SL_RECORD
			y = sl_forward(b, sl_ones(SL_SHAPE(2, 3, 1)));
		CHECK_OK(sl_backward(y));
		for (size_t i = 0; i < sizeof trained / sizeof *trained; i++) check_trained(b, trained[i], true);
		for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) check_trained(b, fixed[i], false);
	}
	sl_block_free(b);
}

static const struct slp_test tests[] = {
        {"shifts", test_shifts},
        {"shifts of negative numbers", test_negative_shifts},
        {"sampling", test_sampling},
        {"unpooling", test_unpooling},
        {"random numbers", test_random},
        {"graphs of int64 and bools", test_graphs},
        {"large tensors", test_large},
        {"export and import", test_round_trip},
        {"types of each input", test_types_of_each},
        {"constants", test_constants},
        {NULL, NULL},
};

int main(int argc, char **argv)
{
	static const struct slp_suite suites[] = {
	        {"onnx types", tests, slp_start_with_scratch, slp_stop_with_scratch, NULL, NULL},
	        {0},
	};
	return slp_test_main(argc, argv, suites);
}
