/* Importing ONNX: networks that PyTorch exported, models made here through protobuf-c, broken ones. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <starling.h>

#include "check.h"
#include "folder.h"
#include "onnx/read.h"

#ifdef HAVE_ONNX
#include "io/params.h"
#include "onnx_builder.h"

/* ---- networks of PyTorch's --------------------------------------------------------------------------------------- */

struct arrays {
	char **names;
	sl_tensor **tensors;
	int count;
};

static sl_tensor *array(const struct arrays *a, const char *model, const char *ending)
{
	char name[128];
	snprintf(name, sizeof name, "%s%s", model, ending);
	for (int i = 0; i < a->count; i++)
		if (!strcmp(a->names[i], name)) return a->tensors[i];
	return NULL;
}

static sl_block *parse(const void *data, size_t size, struct sl_import_onnx_opts opts)
{
	struct slp_file f = {.at = SL_HERE,
	                     .function = "sl_import_onnx",
	                     .path = "x.onnx",
	                     .data = (unsigned char *)data,
	                     .size = size};
	return slp_import_onnx_parse(&f, opts);
}

static double largest(const struct slp_view *v)
{
	double most = 0;
	for (int64_t i = 0; i < slp_size(v); i++) most = fmax(most, fabs(slp_get(v, i)));
	return most;
}

static void compare(const char *what, sl_tensor *y, sl_tensor *wanted)
{
	char a[128], b[128];
	if (!CHECK_SAYING(y != NULL, "%s: %s", what, sl_error_message())) return;
	sl_shape s = sl_tensor_shape(y), w = sl_tensor_shape(wanted);
	if (!CHECK_SAYING(sl_shape_equal(s, w) && sl_tensor_dtype(y) == sl_tensor_dtype(wanted), "%s: %s, not %s", what,
	                  sl_shape_string(s, a), sl_shape_string(w, b)))
		return;
	struct slp_view got = {malloc(sl_tensor_bytes(y)), {sl_tensor_dtype(y), s}},
	                ref = {malloc(sl_tensor_bytes(y)), got.type};
	CHECK_OK(sl_read(y, got.ptr, sl_tensor_bytes(y)));
	CHECK_OK(sl_read(wanted, ref.ptr, sl_tensor_bytes(y)));
	double scale = fmax(1, largest(&ref)), worst = 0;
	for (int64_t i = 0; i < slp_size(&ref); i++) worst = fmax(worst, fabs(slp_get(&got, i) - slp_get(&ref, i)));
	CHECK_SAYING(worst <= 1e-5 * scale, "%s: differs by %g of %g", what, worst, scale);
	free(got.ptr);
	free(ref.ptr);
}

/* Node by node, and compiled. */
static void check_network(const struct arrays *a, int model)
{
	sl_tensor *in[8], *bytes = a->tensors[model], *wanted = array(a, a->names[model], ".y");
	char ending[] = ".x0";
	int n = 0;
	size_t size = sl_tensor_bytes(bytes);
	unsigned char *data = malloc(size);
	CHECK_OK(sl_read(bytes, data, size));
	while ((in[n] = array(a, a->names[model], ending))) n++, ending[2]++;
	SL_SCOPE {
		sl_block *b = parse(data, size, (struct sl_import_onnx_opts){0});
		if (CHECK_SAYING(b != NULL, "%s: %s", a->names[model], sl_error_message())) {
			compare(a->names[model], sl_forward_at(SL_HERE, b, in, n), wanted);
			CHECK_OK(sl_hybridize(b));
			compare(a->names[model], sl_forward_at(SL_HERE, b, in, n), wanted);
		}
		sl_error_clear();
		sl_block_free(b);
	}
	free(data);
}

static void test_networks(void)
{
	char path[PATH_MAX];
	struct arrays a = {0};
	int models = 0;
	a.count = slp_arrays_load(SL_HERE, slp_data_path("onnx.safetensors", path), &a.names, &a.tensors);
	for (int i = 0; i < a.count; i++) {
		if (!array(&a, a.names[i], ".y")) continue;
		check_network(&a, i);
		models++;
	}
	CHECK(models >= 40);
	slp_arrays_free(a.names, a.tensors, a.count);
}

/* Weights are trained: a step of gradient descent changes them, and the loss. */
static void test_training(void)
{
	char path[PATH_MAX];
	struct arrays a = {0};
	a.count = slp_arrays_load(SL_HERE, slp_data_path("onnx.safetensors", path), &a.names, &a.tensors);
	sl_tensor *bytes = array(&a, "residual.17", ""), *x = array(&a, "residual.17", ".x0");
	size_t size = sl_tensor_bytes(bytes);
	unsigned char *data = malloc(size);
	CHECK_OK(sl_read(bytes, data, size));
	sl_block *b = parse(data, size, (struct sl_import_onnx_opts){0});
	sl_trainer *t = sl_trainer_new(b, sl_sgd(.lr = 0.01));
	double losses[2] = {0};
	for (int i = 0; i < 2; i++)
		SL_SCOPE {
			sl_tensor *loss;
			SL_RECORD
				loss = sl_sum(sl_square(sl_forward(b, x)));
			CHECK_OK(sl_backward(loss));
			CHECK_OK(sl_trainer_step(t, 1));
			losses[i] = sl_item(loss);
		}
	CHECK(losses[1] < losses[0]);
	CHECK(sl_block_find(b, "last_weight") != NULL);
	sl_trainer_free(t);
	sl_block_free(b);
	free(data);
	slp_arrays_free(a.names, a.tensors, a.count);
}

/* ---- models made here -------------------------------------------------------------------------------------------- */

static void check_refused(sl_block *b, enum sl_status status, const char *says)
{
	CHECK_SAYING(!b && sl_error() == status && strstr(sl_error_message(), says) &&
	                     strstr(sl_error_message(), "x.onnx"),
	             "says \"%s\", not \"%s\"", sl_error_message(), says);
	sl_error_clear();
}

static void declare(struct slp_model *m, int type)
{
	m->in.type = &m->type, m->type.tensor_type = &m->tensor_type;
	m->tensor_type.has_elem_type = true, m->tensor_type.elem_type = type;
}

/* Tensors of all types, in bytes and in fields: x + w, where w is 1, 2 in each. */
static void test_types(void)
{
	static const struct {
		int type;
		size_t bytes;
		unsigned char raw[16];
	} types[] = {
	        {1, 4, {0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}}, /* float */
	        {2, 1, {1, 2}},
	        {3, 1, {1, 2}}, /* uint8, int8 */
	        {4, 2, {1, 0, 2}},
	        {5, 2, {1, 0, 2}}, /* uint16, int16 */
	        {6, 4, {1, 0, 0, 0, 2}},
	        {7, 8, {1, 0, 0, 0, 0, 0, 0, 0, 2}}, /* int32, int64 */
	        {10, 2, {0, 0x3c, 0, 0x40}},
	        {16, 2, {0x80, 0x3f, 0, 0x40}},                                     /* float16, bfloat16 */
	        {11, 8, {0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0x40}}, /* double */
	        {12, 4, {1, 0, 0, 0, 2}},
	        {13, 8, {1, 0, 0, 0, 0, 0, 0, 0, 2}}, /* uint32, uint64 */
	};
	struct slp_model m;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		slp_model_begin(&m, 17);
		slp_model_raw(slp_model_tensor(&m, "w", types[i].type, SLP_DIMS(2)), types[i].raw, 2 * types[i].bytes);
		slp_model_int(&m, slp_model_node(&m, "Cast w -> v"), "to", 1);
		slp_model_node(&m, "Add x v -> y");
		SL_SCOPE {
			sl_block *b = slp_model_built(&m, (struct sl_import_onnx_opts){0});
			CHECK_SAYING(b != NULL, "%d: %s", types[i].type, sl_error_message());
			CHECK_VALUES(sl_forward(b, sl_zeros(SL_SHAPE(2))), 1, 2);
			sl_block_free(b);
		}
	}
}

static void test_fields(void)
{
	static float f[] = {1, 2};
	static double d[] = {1, 2};
	static int32_t i32[] = {1, 2}, halves[] = {0x3c00, 0x4000};
	static int64_t i64[] = {1, 2};
	static uint64_t u64[] = {1, 2};
	static const int types[] = {1, 11, 6, 3, 10, 7, 12};
	struct slp_model m;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		slp_model_begin(&m, 17);
		SlpOnnx__TensorProto *t = slp_model_tensor(&m, "w", types[i], SLP_DIMS(2));
		if (types[i] == 1) t->n_float_data = 2, t->float_data = f;
		else if (types[i] == 11) t->n_double_data = 2, t->double_data = d;
		else if (types[i] == 7) t->n_int64_data = 2, t->int64_data = i64;
		else if (types[i] == 12) t->n_uint64_data = 2, t->uint64_data = u64;
		else t->n_int32_data = 2, t->int32_data = types[i] == 10 ? halves : i32;
		slp_model_int(&m, slp_model_node(&m, "Cast w -> v"), "to", 1);
		slp_model_node(&m, "Add x v -> y");
		SL_SCOPE {
			sl_block *b = slp_model_built(&m, (struct sl_import_onnx_opts){0});
			CHECK_SAYING(b != NULL, "%d: %s", types[i], sl_error_message());
			CHECK_VALUES(sl_forward(b, sl_zeros(SL_SHAPE(2))), 1, 2);
			sl_block_free(b);
		}
	}
}

/* A shape that is computed of the input's: for each input's anew. */
static void test_shapes(void)
{
	static const int64_t one[] = {1}, minus[] = {-1};
	struct slp_model m;
	slp_model_begin(&m, 17);
	slp_model_raw(slp_model_tensor(&m, "one", 7, SLP_DIMS(1)), one, sizeof one);
	slp_model_raw(slp_model_tensor(&m, "minus", 7, SLP_DIMS(1)), minus, sizeof minus);
	slp_model_node(&m, "Shape x -> s");
	slp_model_node(&m, "Gather s one -> columns");
	slp_model_node(&m, "Concat columns minus -> to");
	slp_model_int(&m, &m.nodes[2], "axis", 0);
	slp_model_node(&m, "Reshape x to -> y");
	sl_block *b = slp_model_built(&m, (struct sl_import_onnx_opts){0});
	CHECK_SAYING(b != NULL, "%s", sl_error_message());
	for (int compiled = 0; compiled < 2; compiled++)
		SL_SCOPE {
			if (compiled) CHECK_OK(sl_hybridize(b));
			CHECK(sl_shape_equal(sl_tensor_shape(sl_forward(b, sl_ones(SL_SHAPE(2, 3)))), SL_SHAPE(3, 2)));
			CHECK(sl_shape_equal(sl_tensor_shape(sl_forward(b, sl_ones(SL_SHAPE(5, 4)))), SL_SHAPE(4, 5)));
		}
	sl_block_free(b);
}

/* Over neighbouring channels; PyTorch writes it otherwise. */
static void test_lrn(void)
{
	struct slp_model m;
	slp_model_begin(&m, 13);
	SlpOnnx__NodeProto *n = slp_model_node(&m, "LRN x -> y");
	slp_model_int(&m, n, "size", 3);
	SlpOnnx__AttributeProto *alpha = slp_model_attribute(&m, n, "alpha", 1),
	                        *beta = slp_model_attribute(&m, n, "beta", 1);
	alpha->has_f = true, alpha->f = 3;
	beta->has_f = true, beta->f = 1;
	SL_SCOPE {
		sl_block *b = slp_model_built(&m, (struct sl_import_onnx_opts){0});
		CHECK_VALUES(sl_forward(b, sl_ones(SL_SHAPE(1, 3, 1, 1))), 1.0 / 3, 0.25, 1.0 / 3);
		sl_block_free(b);
	}
}

static void ints(struct slp_model *m, const char *name, const int64_t *v, size_t count)
{
	SlpOnnx__AttributeProto *a = slp_model_attribute(m, &m->nodes[m->graph.n_node - 1], name, 7);
	a->n_ints = count, a->ints = (int64_t *)v;
}

/* Sums of blocks along the depth: the middle layer is in two of them. */
static void test_col2im(void)
{
	static const int64_t image[] = {3, 1, 1}, block[] = {2, 1, 1};
	struct slp_model m;
	slp_model_begin(&m, 18);
	slp_model_raw(slp_model_tensor(&m, "image", 7, SLP_DIMS(3)), image, sizeof image);
	slp_model_raw(slp_model_tensor(&m, "block", 7, SLP_DIMS(3)), block, sizeof block);
	slp_model_node(&m, "Col2Im x image block -> y");
	SL_SCOPE {
		sl_block *b = slp_model_built(&m, (struct sl_import_onnx_opts){0});
		CHECK_MODEL(b, sl_from(((float[]){1, 2, 10, 20}), SL_SHAPE(1, 2, 2)), 1, 12, 20);
		sl_block_free(b);
	}
}

/* Places in column-major order. */
static void test_places(void)
{
	static const int64_t windows[] = {1, 1};
	struct slp_model m;
	slp_model_begin(&m, 17);
	slp_model_int(&m, slp_model_node(&m, "MaxPool x -> p y"), "storage_order", 1);
	ints(&m, "kernel_shape", windows, 2);
	SL_SCOPE {
		sl_block *b = slp_model_built(&m, (struct sl_import_onnx_opts){0});
		CHECK_MODEL(b, sl_from(((float[]){1, 5, 2, 6, 3, 4}), SL_SHAPE(1, 1, 2, 3)), 0, 2, 4, 1, 3, 5);
		sl_block_free(b);
	}
}

/* All results of a model, of x = 1, 3 in two rows. */
static void run_rows(const struct slp_model *m, sl_tensor **out, int nout)
{
	sl_block *b = slp_model_built(m, (struct sl_import_onnx_opts){0});
	sl_tensor *x = sl_from(((float[]){1, 3}), SL_SHAPE(2, 1));
	if (CHECK_SAYING(b != NULL, "%s", sl_error_message())) CHECK_OK(sl_forward_all(b, &x, 1, out, nout));
	sl_block_free(b);
}

/* Of a batch, and running ones that follow it. */
static void test_statistics(void)
{
	static const struct {
		const char *name;
		float value;
	} given[] = {{"s", 1}, {"b", 0}, {"m", 4}, {"v", 3}};
	struct slp_model m;
	slp_model_begin(&m, 17);
	slp_model_ends(&m, "x", "y rm rv");
	for (int i = 0; i < 4; i++)
		slp_model_raw(slp_model_tensor(&m, given[i].name, 1, SLP_DIMS(1)), &given[i].value, sizeof(float));
	SlpOnnx__NodeProto *n = slp_model_node(&m, "BatchNormalization x s b m v -> y rm rv");
	slp_model_int(&m, n, "training_mode", 1);
	SlpOnnx__AttributeProto *momentum = slp_model_attribute(&m, n, "momentum", 1);
	momentum->has_f = true, momentum->f = 0.25F;
	SL_SCOPE {
		sl_tensor *out[3] = {NULL};
		run_rows(&m, out, 3);
		CHECK_VALUES(out[0], -0.999995, 0.999995);
		CHECK_VALUES(out[1], 2.5);
		CHECK_VALUES(out[2], 1.5);
	}
}

static void test_mask(void)
{
	static const float ratio[] = {0};
	static const unsigned char yes[] = {1};
	struct slp_model m;
	slp_model_begin(&m, 17);
	slp_model_ends(&m, "x", "y mask");
	slp_model_raw(slp_model_tensor(&m, "r", 1, NULL, 0), ratio, sizeof ratio);
	slp_model_raw(slp_model_tensor(&m, "t", 9, NULL, 0), yes, sizeof yes);
	slp_model_node(&m, "Dropout x r t -> y mask");
	SL_SCOPE {
		sl_tensor *out[2] = {NULL};
		run_rows(&m, out, 2);
		CHECK_VALUES(out[0], 1, 3);
		CHECK_VALUES(out[1], 1, 1);
	}
}

/* Whole numbers are converted, and what is wanted of several results. */
static void test_ends(void)
{
	static const float rows[] = {0, 1, 10, 11, 20, 21};
	struct slp_model m;
	slp_model_begin(&m, 17);
	slp_model_raw(slp_model_tensor(&m, "w", 1, SLP_DIMS(3, 2)), rows, sizeof rows);
	declare(&m, 7);
	slp_model_node(&m, "Gather w x -> y");
	slp_model_node(&m, "Neg y -> z");
	SL_SCOPE {
		sl_block *b = slp_model_built(&m, (struct sl_import_onnx_opts){.output = "z"});
		sl_tensor *i = sl_from(SL_ARRAY(uint8_t, 2, 0), SL_SHAPE(2), .dtype = SL_UINT8);
		CHECK_VALUES(sl_forward(b, i), -20, -21, 0, -1);
		CHECK_VALUES(sl_forward(b, sl_cast(i, SL_INT64)), -20, -21, 0, -1);
		CHECK_VALUES(sl_forward(b, sl_from(SL_ARRAY(int32_t, -1), SL_SHAPE(1), .dtype = SL_INT32)), -20, -21);
		CHECK_NULL(sl_forward(b, sl_ones(SL_SHAPE(2))), SL_EDTYPE, "input \"x\"");
		sl_block_free(b);
		check_refused(slp_model_built(&m, (struct sl_import_onnx_opts){.output = "q"}), SL_EINVAL, "\"q\"");
		check_refused(slp_model_built(&m, (struct sl_import_onnx_opts){SL_INPUTS("u")}), SL_EINVAL, "\"u\"");
	}
}

/* ---- files beside the model -------------------------------------------------------------------------------------- */

static sl_block *external(const char *location, const char *offset, const char *length)
{
	struct slp_model m;
	char path[PATH_MAX];
	slp_model_begin(&m, 17);
	SlpOnnx__TensorProto *t = slp_model_tensor(&m, "w", 1, SLP_DIMS(2));
	const char *pairs[][2] = {{"location", location}, {"offset", offset}, {"length", length}};
	for (int i = 0; i < 3; i++) {
		m.entry_list[i] = &m.entries[i];
		slp_onnx__string_string_entry_proto__init(&m.entries[i]);
		m.entries[i].key = (char *)pairs[i][0], m.entries[i].value = (char *)pairs[i][1];
	}
	t->has_data_location = true, t->data_location = 1, t->external_data = m.entry_list, t->n_external_data = 3;
	slp_model_node(&m, "Add x w -> y");
	size_t size = slp_onnx__model_proto__get_packed_size(&m.model);
	unsigned char *data = malloc(size);
	slp_onnx__model_proto__pack(&m.model, data);
	slp_write_scratch("m.onnx", data, size);
	free(data);
	return sl_import_onnx(slp_scratch_path("m.onnx", path));
}

static void test_external(void)
{
	static const float values[] = {7, 1, 2};
	char path[PATH_MAX];
	slp_write_scratch("w.bin", values, sizeof values);
	CHECK(symlink("/etc/passwd", slp_scratch_path("link.bin", path)) == 0);
	SL_SCOPE {
		sl_block *b = external("w.bin", "4", "8");
		CHECK_SAYING(b != NULL, "%s", sl_error_message());
		CHECK_VALUES(sl_forward(b, sl_zeros(SL_SHAPE(2))), 1, 2);
		sl_block_free(b);
	}
	static const struct {
		const char *location, *offset, *length, *says;
		enum sl_status status;
	} cases[] = {
	        {"w.bin", "8", "8", "beyond the end", SL_EFORMAT},
	        {"w.bin", "-4", "8", "offset", SL_EFORMAT},
	        {"w.bin", "0", "4", "8 bytes", SL_EFORMAT},
	        {"w.bin", "99999999999999999999", "8", "offset", SL_EFORMAT},
	        {"../w.bin", "0", "8", "not beside", SL_EFORMAT},
	        {"a/../../w.bin", "0", "8", "not beside", SL_EFORMAT},
	        {"/etc/passwd", "0", "8", "not beside", SL_EFORMAT},
	        {"", "0", "8", "not beside", SL_EFORMAT},
	        {"link.bin", "0", "8", "link", SL_EFORMAT},
	        {"none.bin", "0", "8", "none.bin", SL_EIO},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		sl_block *b = external(cases[i].location, cases[i].offset, cases[i].length);
		CHECK_SAYING(!b && sl_error() == cases[i].status && strstr(sl_error_message(), cases[i].says) &&
		                     strstr(sl_error_message(), "\"w\"") && strstr(sl_error_message(), "m.onnx"),
		             "%s: says \"%s\"", cases[i].location, sl_error_message());
		sl_error_clear();
	}
}

/* ---- large tensors, which are read from the file one by one ------------------------------------------------------ */

enum { LARGE = 30000 };
static float many[LARGE];

/* Two tensors of LARGE floats: an initializer of this size, and a node's value.  Bytes after `keep` are cut off. */
static sl_block *large(int64_t size, size_t keep, size_t *bytes)
{
	struct slp_model m;
	char path[PATH_MAX];
	slp_model_begin(&m, 17);
	slp_model_raw(slp_model_tensor(&m, "w", 1, SLP_DIMS(size)), many, sizeof many);
	SlpOnnx__NodeProto *n = slp_model_node(&m, "Constant -> k");
	SlpOnnx__AttributeProto *a = slp_model_attribute(&m, n, "value", 4);
	a->t = slp_model_tensor(&m, "inside", 1, SLP_DIMS(LARGE));
	m.graph.n_initializer--;
	slp_model_raw(a->t, many, sizeof many);
	slp_model_node(&m, "Mul x w -> p");
	slp_model_node(&m, "Add p k -> y");
	*bytes = slp_onnx__model_proto__get_packed_size(&m.model);
	unsigned char *data = malloc(*bytes);
	slp_onnx__model_proto__pack(&m.model, data);
	slp_write_scratch("large.onnx", data, keep < *bytes ? keep : *bytes);
	free(data);
	return sl_import_onnx(slp_scratch_path("large.onnx", path));
}

static void check_damaged(int64_t size, size_t keep, const char *says)
{
	size_t bytes;
	sl_block *b = large(size, keep, &bytes);
	CHECK_SAYING(!b && sl_error() == SL_EFORMAT && strstr(sl_error_message(), says), "%zu: says \"%s\"", keep,
	             sl_error_message());
	sl_error_clear();
	sl_block_free(b);
}

static void test_large(void)
{
	size_t bytes;
	static float got[LARGE];
	for (int i = 0; i < LARGE; i++) many[i] = (float)(i % 1001);
	SL_SCOPE {
		sl_block *b = large(LARGE, SIZE_MAX, &bytes);
		sl_tensor *y = CHECK_SAYING(b != NULL, "%s", sl_error_message())
		                       ? sl_forward(b, sl_full(SL_SHAPE(LARGE), 2))
		                       : NULL;
		int wrong = 0;
		CHECK_OK(sl_read(y, got, sizeof got));
		for (int i = 0; i < LARGE; i++) wrong += got[i] != 3 * many[i];
		CHECK_SAYING(wrong == 0, "%d are wrong", wrong);
		sl_block_free(b);
	}
	check_damaged(LARGE + 1, SIZE_MAX, "\"w\" has 120000 bytes, its shape needs 120004");
	for (size_t keep = 1; keep < bytes; keep += bytes / 37) check_damaged(LARGE, keep, "is damaged");
}

/* ---- broken and unusual ones ------------------------------------------------------------------------------------- */

static void test_broken(void)
{
	static const struct {
		const char *nodes[3], *says;
		int opset;
		enum sl_status status;
	} cases[] = {
	        {{"Warp x -> a", "Weft a -> b", "Warp b -> y"},
	         "2 operators are not supported: Warp (a, y), Weft (b)",
	         17,
	         SL_EUNSUPPORTED},
	        {{"Relu y -> y"}, "after it", 17, SL_EFORMAT},
	        {{"Relu b -> a", "Relu a -> b", "Relu b -> y"}, "after it", 17, SL_EFORMAT},
	        {{"Add x w -> y"}, "\"w\"; nothing computes it", 17, SL_EFORMAT},
	        {{"Relu x -> a"}, "result \"y\"", 17, SL_EFORMAT},
	        {{"Relu x -> y", "Relu x -> y"}, "two values named \"y\"", 17, SL_EFORMAT},
	        {{"Add x -> y"}, "has 1 inputs, it must have 2 to 2", 17, SL_EFORMAT},
	        {{"Conv - x -> y"}, "lacks input 0", 17, SL_EFORMAT},
	        {{"Relu x -> y"}, "operator set 33", 33, SL_EUNSUPPORTED},
	        {{"Relu x -> y"}, "operator set 99", 99, SL_EUNSUPPORTED},
	};
	struct slp_model m;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		slp_model_begin(&m, cases[i].opset);
		for (int k = 0; k < 3 && cases[i].nodes[k]; k++) slp_model_node(&m, cases[i].nodes[k]);
		check_refused(slp_model_built(&m, (struct sl_import_onnx_opts){0}), cases[i].status, cases[i].says);
	}
	CHECK_NULL(sl_import_onnx(NULL), SL_EINVAL);
	CHECK_NULL(sl_import_onnx("/nowhere/m.onnx"), SL_EIO, "/nowhere/m.onnx");
	CHECK(!parse("\x0a\xff\xff\xff\xff", 5, (struct sl_import_onnx_opts){0}) && sl_error() == SL_EFORMAT);
	sl_error_clear();
}

/* Tensors whose shape, bytes or type cannot be. */
static void test_broken_tensors(void)
{
	static const struct {
		int64_t dims[2];
		int type;
		const char *says;
		enum sl_status status;
	} cases[] = {
	        {{2, 3}, 1, "8 bytes, its shape needs 24", SL_EFORMAT},
	        {{-2, 1}, 1, "impossible shape", SL_EFORMAT},
	        {{INT64_MAX, 9}, 1, "impossible shape", SL_EFORMAT},
	        {{2, 1}, 8, "data type 8", SL_EUNSUPPORTED},
	        {{INT64_C(1) << 60, 1}, 1, "impossible shape", SL_EFORMAT},
	        {{INT64_C(1) << 40, 1}, 1, "its shape needs", SL_EFORMAT},
	};
	struct slp_model m;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		slp_model_begin(&m, 17);
		slp_model_raw(slp_model_tensor(&m, "w", cases[i].type, cases[i].dims, 2), "12345678", 8);
		slp_model_node(&m, "Add x w -> y");
		check_refused(slp_model_built(&m, (struct sl_import_onnx_opts){0}), cases[i].status, cases[i].says);
	}
}

/* What is found when it runs names the node. */
static void test_wrong_runs(void)
{
	static const int64_t shape[] = {7, -1}, axis[] = {5};
	struct slp_model m;
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2, 3));
		slp_model_begin(&m, 17);
		slp_model_raw(slp_model_tensor(&m, "s", 7, SLP_DIMS(2)), shape, sizeof shape);
		slp_model_node(&m, "Reshape x s -> y");
		sl_block *b = slp_model_built(&m, (struct sl_import_onnx_opts){0});
		CHECK(!sl_forward(b, x) && sl_error() == SL_ESHAPE &&
		      strstr(sl_error_message(), "x.onnx, node y: Reshape"));
		sl_error_clear();
		sl_block_free(b);
		slp_model_begin(&m, 17);
		slp_model_raw(slp_model_tensor(&m, "a", 7, SLP_DIMS(1)), axis, sizeof axis);
		slp_model_node(&m, "ReduceSum x a -> y");
		b = slp_model_built(&m, (struct sl_import_onnx_opts){0});
		CHECK(!sl_forward(b, x) && sl_error() == SL_ESHAPE && strstr(sl_error_message(), "axis 5"));
		sl_error_clear();
		sl_block_free(b);
		slp_model_begin(&m, 17);
		slp_model_node(&m, "Reshape x x -> y"); /* a shape of values */
		b = slp_model_built(&m, (struct sl_import_onnx_opts){0});
		CHECK(!sl_forward(b, x) && sl_error() == SL_EFORMAT && strstr(sl_error_message(), "whole numbers"));
		sl_error_clear();
		CHECK_OK(sl_hybridize(b));
		CHECK(!sl_forward(b, x) && sl_error() == SL_ESTATE &&
		      strstr(sl_error_message(), "values that a run computes"));
		sl_error_clear();
		sl_block_free(b);
	}
}

static const struct slp_test tests[] = {
        {"networks of PyTorch", test_networks},
        {"training", test_training},
        {"types", test_types},
        {"typed fields", test_fields},
        {"shapes", test_shapes},
        {"normalisation over channels", test_lrn},
        {"columns of volumes", test_col2im},
        {"places in columns", test_places},
        {"statistics of a batch", test_statistics},
        {"masks", test_mask},
        {"inputs and results", test_ends},
        {"files beside the model", test_external},
        {"large tensors", test_large},
        {"broken models", test_broken},
        {"broken tensors", test_broken_tensors},
        {"what does not fit", test_wrong_runs},
        {NULL, NULL},
};
#else
static void test_without(void)
{
	char path[PATH_MAX];
	CHECK_NULL(sl_import_onnx(slp_data_path("types.params", path)), SL_EUNSUPPORTED, "protobuf-c");
}

static const struct slp_test tests[] = {{"without protobuf-c", test_without}, {NULL, NULL}};
#endif

int main(int argc, char **argv)
{
	static const struct slp_suite suites[] = {
	        {"onnx", tests, slp_start_with_scratch, slp_stop_with_scratch, NULL, NULL},
	        {0},
	};
	return slp_test_main(argc, argv, suites);
}
