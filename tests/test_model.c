/* Models in files: networks that MXNet has exported, our own exported and imported again, files that are broken. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "check.h"
#include "config.h"
#include "folder.h"
#include "mxnet/import.h"
#include "io_networks.h"
#include "starling/io.h"

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static sl_tensor *data(const char *name, const char *ending)
{
	char file[64], path[PATH_MAX];
	snprintf(file, sizeof file, "%s-%s", name, ending);
	sl_tensor *t = sl_load_npy(slp_data_path(file, path));
	CHECK_SAYING(t != NULL, "%s", sl_error_message());
	return t;
}

static sl_block *import(const char *name, const char *input)
{
	char symbol[PATH_MAX], params[PATH_MAX], file[64];
	snprintf(file, sizeof file, "%s-symbol.json", name);
	slp_data_path(file, symbol);
	snprintf(file, sizeof file, "%s-0000.params", name);
	slp_data_path(file, params);
	sl_block *b = input ? sl_import(symbol, SL_NAMES(input), params) : sl_import(symbol, NULL, 0, params);
	CHECK_SAYING(b != NULL, "%s: %s", name, sl_error_message());
	return b;
}

/* The values of y are those of expected but for rounding: sums in another order, Winograd's transforms, over some
 * twenty layers. Relative to the largest value, or to 1: a sum of large terms may be small. */
static void check_close(const char *what, sl_tensor *y, sl_tensor *expected)
{
	size_t bytes = sl_tensor_bytes(expected), n = bytes / sizeof(float);
	float *a = malloc(bytes), *b = malloc(bytes);
	double worst = 0, largest = 1;
	char s[128], t[128];
	bool same = CHECK_SAYING(sl_shape_equal(sl_tensor_shape(y), sl_tensor_shape(expected)),
	                         "%s: shape %s, not %s (%s)", what, sl_shape_string(sl_tensor_shape(y), s),
	                         sl_shape_string(sl_tensor_shape(expected), t), sl_error_message());
	if (same && CHECK_OK(sl_read(y, a, bytes)) && CHECK_OK(sl_read(expected, b, bytes)))
		for (size_t i = 0; i < n; i++) {
			worst = fmax(worst, isnan(a[i]) ? INFINITY : fabs(a[i] - b[i]));
			largest = fmax(largest, fabs(b[i]));
		}
	CHECK_SAYING(worst <= 1e-5 * largest, "%s: differs by %g of %g", what, worst / largest, largest);
	free(a);
	free(b);
}

/* ---- networks of MXNet ------------------------------------------------------------------------------------------- */

static const char *const networks[] = {"mlp", "lenet", "resnet18", "mixed", "module", NULL};

static void test_mxnet(void)
{
	for (const char *const *n = networks; *n; n++)
		SL_SCOPE {
			sl_block *b = import(*n, "data");
			if (b) check_close(*n, sl_forward(b, data(*n, "x.npy")), data(*n, "y.npy"));
			sl_block_free(b);
		}
}

/* Without names of inputs, hybridised, and with a batch of another size. */
static void test_ways_to_run(void)
{
	for (const char *const *n = networks; *n; n++)
		SL_SCOPE {
			sl_block *b = import(*n, NULL);
			if (!b) continue;
			sl_tensor *x = data(*n, "x.npy"), *y = data(*n, "y.npy");
			CHECK_OK(sl_hybridize(b));
			check_close(*n, sl_forward(b, x), y);
			check_close(*n, sl_forward(b, x), y);
			check_close(*n, sl_forward(b, sl_rows(x, 1, 2)), sl_rows(y, 1, 2));
			sl_block_free(b);
		}
}

/* What is imported can be trained: the loss falls, running statistics move. */
static void test_training(void)
{
	SL_SCOPE {
		sl_block *b = import("resnet18", "data");
		if (!b) break;
		sl_tensor *x = data("resnet18", "x.npy"), *loss = NULL, *before;
		sl_tensor *labels = sl_from(((const int32_t[]){3, 7}), SL_SHAPE(2), .dtype = SL_INT32);
		sl_param *mean = sl_block_find(b, "resnet18_batchnorm0_running_mean");
		before = sl_clone(sl_param_data(mean));
		sl_trainer *trainer = sl_trainer_new(b, sl_sgd(.lr = 0.05));
		double first = 0, last = 0;
		for (int i = 0; i < 5; i++)
			SL_SCOPE {
				SL_RECORD
					loss = sl_softmax_cross_entropy_at(SL_HERE, sl_forward(b, x), labels);
				CHECK_OK(sl_backward(loss));
				CHECK_OK(sl_trainer_step(trainer, 2));
				last = sl_item(sl_mean(loss));
				if (i == 0) first = last;
			}
		CHECK_SAYING(last < first, "the loss went from %g to %g", first, last);
		CHECK(sl_item(sl_max(sl_abs(sl_sub(sl_param_data(mean), before)))) > 0);
		sl_trainer_free(trainer);
		sl_block_free(b);
	}
}

/* A node in the middle as the result; labels are left out. */
static void test_output(void)
{
	char symbol[PATH_MAX], params[PATH_MAX];
	slp_data_path("module-symbol.json", symbol);
	slp_data_path("module-0000.params", params);
	SL_SCOPE {
		sl_block *b = sl_import(symbol, SL_NAMES("data"), params, .output = "fc2_output");
		sl_tensor *y = b ? sl_softmax(sl_forward(b, data("module", "x.npy")), 1) : NULL;
		if (CHECK_SAYING(y != NULL, "%s", sl_error_message()))
			check_close("module", y, data("module", "y.npy"));
		sl_block_free(b);
		CHECK_NULL(sl_import(symbol, SL_NAMES("data"), params, .output = "fc3"), SL_EINVAL, "no node \"fc3\"");
		b = sl_import(symbol, SL_NAMES("data"), params, .output = "fc1"); /* needs less */
		CHECK_SAYING(b != NULL, "%s", sl_error_message());
		sl_block_free(b);
	}
}

/* ---- our own, there and back ------------------------------------------------------------------------------------- */

static void check_there_and_back(const char *name, sl_block *net, sl_shape shape, const char *params_ending)
{
	char prefix[PATH_MAX], symbol[PATH_MAX], params[PATH_MAX], file[64];
	snprintf(file, sizeof file, "%s-symbol.json", name);
	slp_scratch_path(name, prefix);
	slp_scratch_path(file, symbol);
	snprintf(file, sizeof file, "%s-%s", name, params_ending);
	slp_scratch_path(file, params);
	SL_SCOPE {
		sl_tensor *x = sl_uniform(shape, 0, 10), *half = sl_rows(x, 0, 1);
		CHECK_OK(sl_initialize(net, .init = sl_xavier_init()));
		SL_RECORD
			sl_forward(net, x); /* running statistics move */
		if (!CHECK_OK(sl_export(net, prefix, SL_SHAPES(shape), .epoch = 7))) break;
		sl_tensor *y = sl_forward(net, x);
		sl_block *b = sl_import(symbol, SL_NAMES("data"), params);
		if (CHECK_SAYING(b != NULL, "%s", sl_error_message())) {
			check_close(name, sl_forward(b, x), y);
			check_close(name, sl_forward(b, half), sl_forward(net, half));
			/* and once more, from what was imported */
			CHECK_OK(sl_export(b, prefix, SL_SHAPES(shape), .epoch = 7));
			sl_block_free(b);
			b = sl_import(symbol, SL_NAMES("data"), params);
			check_close(name, sl_forward(b, x), y);
			sl_block_free(b);
		}
	}
	remove(symbol);
	remove(params);
	sl_block_free(net);
}

static void test_there_and_back(void)
{
	for (const struct slp_network *n = slp_networks; n->name; n++)
		if (!n->onnx_alone) check_there_and_back(n->name, n->make(), n->shape, "0007.params");
}

/* Where the shapes come from, and what is refused. */
static void test_export_shapes(void)
{
	char prefix[PATH_MAX], path[PATH_MAX];
	slp_scratch_path("m", prefix);
	SL_SCOPE {
		sl_block *net = slp_networks[0].make();
		CHECK_STATUS(sl_export(net, prefix), SL_ESTATE, "SL_SHAPES");
		sl_error_clear();
		CHECK_STATUS(sl_export(net, prefix, SL_SHAPES(SL_SHAPE(1, 8))), SL_ESTATE, "initial");
		sl_error_clear();
		CHECK_OK(sl_initialize(net));
		CHECK_STATUS(sl_export(net, prefix, SL_SHAPES(SL_SHAPE(1, -8))), SL_ESHAPE, "(1, -8)");
		sl_error_clear();
		CHECK_STATUS(sl_export(net, NULL, SL_SHAPES(SL_SHAPE(1, 8))), SL_EINVAL, "prefix");
		sl_error_clear();
		CHECK_STATUS(sl_export(net, "/nowhere/m", SL_SHAPES(SL_SHAPE(1, 8))), SL_EIO, "/nowhere/m-symbol.json");
		sl_error_clear();
		CHECK_OK(sl_export(net, prefix, SL_SHAPES(SL_SHAPE(1, 8)))); /* without a run */
		CHECK(remove(slp_scratch_path("m-symbol.json", path)) == 0);
		CHECK(remove(slp_scratch_path("m-0000.params", path)) == 0);
		CHECK_OK(sl_hybridize(net));
		CHECK(sl_forward(net, sl_ones(SL_SHAPE(2, 8))) != NULL);
		CHECK_OK(sl_export(net, prefix)); /* from the run */
		CHECK(remove(slp_scratch_path("m-symbol.json", path)) == 0);
		CHECK(remove(slp_scratch_path("m-0000.params", path)) == 0);
		sl_block_free(net);
	}
}

static sl_tensor *noisy(sl_tensor *x)
{
	return sl_add(x, sl_uniform(SL_SHAPE(1), 0, 1));
}

static void test_export_unknown(void)
{
	char prefix[PATH_MAX];
	slp_scratch_path("m", prefix);
	sl_block *net = sl_lambda("noisy", noisy);
	CHECK_STATUS(sl_export(net, prefix, SL_SHAPES(SL_SHAPE(1, 8))), SL_EUNSUPPORTED, "uniform", "test_model.c");
	sl_error_clear();
	sl_block_free(net);
}

/* ---- broken files ------------------------------------------------------------------------------------------------ */

#define GRAPH(nodes) "{\"nodes\": [" nodes "], \"arg_nodes\": [], \"heads\": [[1, 0, 0]]}"
#define NODES1(a) GRAPH(a)
#define NODES2(a, b) GRAPH(a ", " b)
#define NODES3(a, b, c) GRAPH(a ", " b ", " c)
#define PICK_(a, b, c, name, ...) name
#define NODES(...) PICK_(__VA_ARGS__, NODES3, NODES2, NODES1, )(__VA_ARGS__)
#define VAR(name) "{\"op\": \"null\", \"name\": \"" name "\", \"inputs\": []}"
/* clang-format off */
#define NODE(op, name, attrs, inputs) "{\"op\": \"" op "\", \"name\": \"" name "\", \"attrs\": {" attrs "}, \"inputs\": [" inputs "]}"
/* clang-format on */

static sl_block *parse(const char *text, sl_tensor **tensors, char **names, int count)
{
	struct slp_file f = {.at = SL_HERE,
	                     .function = "sl_import",
	                     .path = "x.json",
	                     .data = (unsigned char *)text,
	                     .size = strlen(text)};
	return slp_import_parse(&f, (const char *[]){"data"}, 1, "x.params", names, tensors, count,
	                        (struct sl_import_opts){0});
}

static const struct {
	const char *text, *says;
	enum sl_status status;
} broken[] = {
        {"", "not JSON", SL_EFORMAT},
        {"{\"nodes\": [", "not JSON", SL_EFORMAT},
        {"[]", "no list of nodes", SL_EFORMAT},
        {"{\"nodes\": 3}", "no list of nodes", SL_EFORMAT},
        {"{\"nodes\": [1], \"heads\": [[0, 0]]}", "no op or no name", SL_EFORMAT},
        {"{\"nodes\": [" VAR("data") "]}", "no list of inputs", SL_EFORMAT},
        {"{\"nodes\": [" VAR("data") "], \"heads\": []}", "no result", SL_EFORMAT},
        {"{\"nodes\": [" VAR("data") "], \"heads\": [[7, 0]]}", "node 7 of 1", SL_EFORMAT},
        {NODES(VAR("data"), NODE("relu", "r", "", "[-1, 0]")), "node -1", SL_EFORMAT},
        {NODES(VAR("data"), NODE("relu", "r", "", "[0, 99999999]")), "output 99999999", SL_EFORMAT},
        {NODES(VAR("data"), NODE("relu", "r", "", "[0, 1]")), "output 1 of node \"data\"", SL_EFORMAT},
        {NODES(VAR("data"), NODE("relu", "r", "", "0")), "form [node, output]", SL_EFORMAT},
        {NODES(VAR("data"), NODE("relu", "r", "", "[1, 0]")), "cycle: node \"r\"", SL_EFORMAT},
        {NODES(VAR("data"), NODE("relu", "a", "", "[2, 0]"), NODE("relu", "b", "", "[1, 0]")), "cycle", SL_EFORMAT},
        {NODES(VAR("data"), NODE("relu", "r", "", "[0, 0], [0, 0]")), "has 2 inputs", SL_EFORMAT},
        {NODES(VAR("data"), NODE("relu", "r", "", "")), "has 0 inputs", SL_EFORMAT},
        {NODES(VAR("data"), NODE("Warp", "w", "", "[0, 0]")), "node \"w\": operator \"Warp\" is not supported",
         SL_EUNSUPPORTED},
        {NODES(VAR("data"), NODE("relu", "r", "\"a\": 1", "[0, 0]")), "attribute a is not a string", SL_EFORMAT},
        {NODES(VAR("data"), VAR("data")), "two variables named \"data\"", SL_EFORMAT},
        {NODES(VAR("x"), NODE("relu", "r", "", "[0, 0]")), "no variable \"data\"", SL_EINVAL},
        {NODES(VAR("data"), NODE("add_n", "s", "", "[0, 0], [2, 0]"), VAR("w")), "1 parameter: w", SL_EINVAL},
        {NODES(VAR("data"), NODE("FullyConnected", "f", "\"num_hidden\": \"2\"", "[0, 0], [2, 0]"), VAR("w")),
         "no_bias", SL_EFORMAT},
        {NODES(VAR("data"), NODE("FullyConnected", "f", "\"no_bias\": \"True\"", "[0, 0], [2, 0]"), VAR("w")),
         "node \"f\" (FullyConnected): has no attribute num_hidden", SL_EFORMAT},
        {NODES(VAR("data"), NODE("Pooling", "p", "\"kernel\": \"(2, x)\"", "[0, 0]")),
         "kernel has the invalid value \"(2, x)\"", SL_EFORMAT},
        {NODES(VAR("data"), NODE("Pooling", "p", "\"kernel\": \"(2, 2\"", "[0, 0]")), "kernel", SL_EFORMAT},
        {NODES(VAR("data"), NODE("Pooling", "p", "\"kernel\": \"(2,)\"", "[0, 0]")), "two dimensions", SL_EUNSUPPORTED},
        {NODES(VAR("data"), NODE("Pooling", "p", "\"kernel\": \"(99999999999, 1)\"", "[0, 0]")), "kernel", SL_EFORMAT},
        {NODES(VAR("data"), NODE("Pooling", "p", "", "[0, 0]")), "no attribute kernel", SL_EFORMAT},
        {NODES(VAR("data"), NODE("Pooling", "p", "\"pool_type\": \"lp\"", "[0, 0]")), "pool_type is \"lp\"",
         SL_EUNSUPPORTED},
        {NODES(VAR("data"), NODE("Activation", "a", "\"act_type\": \"step\"", "[0, 0]")), "\"step\"", SL_EUNSUPPORTED},
        {NODES(VAR("data"), NODE("_plus_scalar", "a", "\"scalar\": \"one\"", "[0, 0]")), "\"one\"", SL_EFORMAT},
        {NODES(VAR("data"), NODE("softmax", "a", "\"axis\": \"77\"", "[0, 0]")), "axis 77", SL_EFORMAT},
        {NODES(VAR("data"), NODE("Cast", "a", "\"dtype\": \"complex64\"", "[0, 0]")), "complex64", SL_EUNSUPPORTED},
        {NODES("{\"op\": \"null\", \"op\": \"null\"}"), "duplicate", SL_EFORMAT},
        {"{\"nodes\": [" VAR("data") ", " VAR("b") "], \"heads\": [[0, 0], [1, 0]]}", "2 results", SL_EUNSUPPORTED},
};

static void test_broken_symbols(void)
{
	for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
		sl_block *b = parse(broken[i].text, NULL, NULL, 0);
		CHECK_SAYING(!b && sl_error() == broken[i].status && strstr(sl_error_message(), broken[i].says) &&
		                     (strstr(sl_error_message(), "x.json")),
		             "%s: says \"%s\"", broken[i].text, sl_error_message());
		sl_error_clear();
		sl_block_free(b);
	}
}

/* Parameters that are not what the graph says, found when importing or, at the latest, when running: nodes are
 * named. */
static void test_wrong_parameters(void)
{
	static const char dense[] =
	        NODES(VAR("data"),
	              NODE("FullyConnected", "f", "\"no_bias\": \"True\", \"num_hidden\": \"2\"", "[0, 0], [2, 0]"),
	              VAR("w"));
	static const char declared[] =
	        NODES(VAR("data"), NODE("elemwise_add", "a", "", "[0, 0], [2, 0]"),
	              "{\"op\": \"null\", \"name\": \"w\", \"attrs\": {\"__shape__\": \"(0, 4)\"}, \"inputs\": []}");
	SL_SCOPE {
		sl_tensor *w = sl_ones(SL_SHAPE(3, 5)), *good = sl_ones(SL_SHAPE(2, 5)), *both[] = {good, w};
		CHECK(!parse(dense, &w, (char *[]){"w"}, 1) && sl_error() == SL_ESHAPE &&
		      strstr(sl_error_message(), "node \"f\"") && strstr(sl_error_message(), "(3, 5)"));
		sl_error_clear();
		CHECK(!parse(declared, &w, (char *[]){"w"}, 1) && sl_error() == SL_ESHAPE &&
		      strstr(sl_error_message(), "(0, 4)"));
		sl_error_clear();
		CHECK(!parse(dense, both, (char *[]){"w", "v"}, 2) && sl_error() == SL_EINVAL &&
		      strstr(sl_error_message(), "no variable \"v\""));
		sl_error_clear();
		sl_block *b = parse(dense, both, (char *[]){"w"}, 1);
		CHECK_SAYING(b != NULL, "%s", sl_error_message());
		CHECK(!sl_forward(b, sl_ones(SL_SHAPE(1, 4))) && sl_error() == SL_ESHAPE &&
		      strstr(sl_error_message(), "x.json, node f"));
		sl_error_clear();
		CHECK_NULL(sl_forward(b, w, w), SL_EINVAL, "takes 1 input");
		sl_block_free(b);
	}
}

/* MXNet would add a window here that ours lacks: an error instead of another result. */
static void test_full_pooling(void)
{
	static const char pool[] = NODES(VAR("data"), NODE("Pooling", "p",
	                                                   "\"kernel\": \"(2, 2)\", \"stride\": \"(3, 3)\", "
	                                                   "\"pad\": \"(1, 1)\", \"pooling_convention\": \"full\"",
	                                                   "[0, 0]"));
	SL_SCOPE {
		sl_block *b = parse(pool, NULL, NULL, 0);
		CHECK(sl_forward(b, sl_ones(SL_SHAPE(1, 1, 6, 6))) != NULL);
		CHECK(!sl_forward(b, sl_ones(SL_SHAPE(1, 1, 2, 2))) && sl_error() == SL_EUNSUPPORTED &&
		      strstr(sl_error_message(), "node \"p\""));
		sl_error_clear();
		sl_block_free(b);
	}
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

/* ONNX: dev/onnx-check looks at what is in it. */
static void test_onnx(void)
{
	char path[PATH_MAX];
	slp_scratch_path("m.onnx", path);
	sl_block *net = slp_networks[0].make(), *strange = sl_lambda("noisy", noisy);
	CHECK_OK(sl_initialize(net));
#ifdef HAVE_ONNX
	CHECK_OK(sl_export_onnx(net, path, SL_SHAPES(slp_networks[0].shape)));
	size_t size = 0;
	char *data = slp_read_file(path, &size);
	CHECK(data && size > 1000 && data[0] == 0x08 && memmem(data, size, "_weight", 7) &&
	      memmem(data, size, "Gemm", 4));
	free(data);
	remove(path);
	CHECK_STATUS(sl_export_onnx(strange, path, SL_SHAPES(SL_SHAPE(1, 8))), SL_EUNSUPPORTED, "uniform",
	             "test_model.c");
	sl_error_clear();
	CHECK_STATUS(sl_export_onnx(net, "/nowhere/m.onnx", SL_SHAPES(slp_networks[0].shape)), SL_EIO,
	             "/nowhere/m.onnx");
#else
	CHECK_STATUS(sl_export_onnx(net, path, SL_SHAPES(slp_networks[0].shape)), SL_EUNSUPPORTED, "protobuf-c");
#endif
	sl_error_clear();
	sl_block_free(net);
	sl_block_free(strange);
}

#ifdef HAVE_ONNX
/* What was written computes the same when it is read: with the batch that it was written for, and with another. */
static void check_onnx_and_back(const char *name, sl_block *net, sl_shape shape)
{
	char path[PATH_MAX];
	slp_scratch_path("m.onnx", path);
	sl_seed(3);
	CHECK_OK(sl_initialize(net, .init = sl_uniform_init(0.2)));
	CHECK_OK(sl_export_onnx(net, path, SL_SHAPES(shape)));
	SL_SCOPE {
		sl_tensor *x = sl_uniform(shape, -1, 1), *half = sl_rows(x, 0, shape.dim[0] / 2);
		sl_block *b = sl_import_onnx(path);
		CHECK_SAYING(b != NULL, "%s: %s", name, sl_error_message());
		if (b) {
			check_close(name, sl_forward(b, x), sl_forward(net, x));
			CHECK_OK(sl_hybridize(b));
			check_close(name, sl_forward(b, half), sl_forward(net, half));
		}
		sl_block_free(b);
	}
	remove(path);
	sl_block_free(net);
}

static void test_onnx_and_back(void)
{
	for (const struct slp_network *n = slp_networks; n->name; n++)
		check_onnx_and_back(n->name, n->make(), n->shape);
}
#else
static void test_onnx_and_back(void)
{
	CHECK_NULL(sl_import_onnx(SLP_SRCDIR "/tests/data/types.params"), SL_EUNSUPPORTED, "protobuf-c");
}
#endif

static const struct slp_test import_tests[] = {
        {"networks of MXNet", test_mxnet},
        {"ways to run", test_ways_to_run},
        {"training", test_training},
        {"output", test_output},
        {"broken symbols", test_broken_symbols},
        {"wrong parameters", test_wrong_parameters},
        {"full pooling", test_full_pooling},
        {NULL, NULL},
};
static const struct slp_test export_tests[] = {
        {"there and back", test_there_and_back},     {"shapes", test_export_shapes},
        {"unknown operations", test_export_unknown}, {"onnx", test_onnx},
        {"onnx and back", test_onnx_and_back},       {NULL, NULL},
};

int main(int argc, char **argv)
{
	static const struct slp_suite suites[] = {
	        {"import", import_tests, slp_start_with_scratch, slp_stop_with_scratch, NULL, NULL},
	        {"export", export_tests, slp_start_with_scratch, slp_stop_with_scratch, NULL, NULL},
	        {0},
	};
	return slp_test_main(argc, argv, suites);
}
