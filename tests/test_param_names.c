/* Names of parameters: those of blocks; in files, rules that turn those of another program into paths; what a file
 * holds. */
#include <string.h>

#include "blocks.h"

/* ---- a file of another program ----------------------------------------------------------------------------------- */

static sl_tensor *nothing(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)self;
	(void)nin;
	return in[0];
}

/* A parameter of 1, 2, 3, … from `first` on. */
static void add(sl_block *block, const char *name, sl_shape shape, double first)
{
	sl_param *p = sl_block_param(block, name, shape);
	double end = first + (double)sl_shape_size(shape);
	SL_SCOPE
		CHECK_OK(sl_param_set(p, sl_reshape(sl_arange(first, end, 1), shape)));
}

/* transformer.wte (3, 2), transformer.fc.weight (2, 4), .bias, .mask, lm_head.weight (3, 2), which begins with
 * `head`. */
static void write(const char *path, double head)
{
	sl_block *root = slp_user_block(nothing), *inner = sl_block_add(root, "transformer", slp_user_block(nothing));
	sl_block *fc = sl_block_add(inner, "fc", slp_user_block(nothing));
	add(inner, "wte", SL_SHAPE(3, 2), 1);
	add(fc, "weight", SL_SHAPE(2, 4), 10);
	add(fc, "bias", SL_SHAPE(4), 20);
	add(fc, "mask", SL_SHAPE(1), 0);
	add(sl_block_add(root, "lm_head", slp_user_block(nothing)), "weight", SL_SHAPE(3, 2), head);
	CHECK_OK(sl_save_params(root, path));
	sl_block_free(root);
}

#define RULES                                                                                                          \
	{"transformer.*", "*", false}, {"wte", "1.weight", false}, {"lm_head.*", "1.*", false},                        \
	        {"fc.weight", "0.weight", true},                                                                       \
	{                                                                                                              \
		"*.mask", NULL, false                                                                                  \
	}

static sl_block *network(void)
{
	return sl_sequential(sl_dense(4, .in_units = 2), sl_embedding(3, 2));
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void test_rules(void)
{
	static const char *const paths[] = {"names.safetensors", "names.params"};
	for (int i = 0; i < 2; i++)
		SL_SCOPE {
			sl_block *net = network();
			write(paths[i], 1);
			CHECK_OK(sl_load_params(net, paths[i], SL_PARAM_NAMES(RULES, {"fc.*", "0.*", false})));
			CHECK_VALUES(slp_data(net, "0.weight"), 10, 14, 11, 15, 12, 16, 13, 17);
			CHECK_VALUES(slp_data(net, "0.bias"), 20, 21, 22, 23);
			CHECK_VALUES(slp_data(net, "1.weight"), 1, 2, 3, 4, 5, 6);
			remove(paths[i]);
			sl_block_free(net);
		}
}

/* Both names are in the messages; nothing is loaded. */
static void test_what_does_not_fit(void)
{
	const char *path = "names.safetensors";
	sl_block *net = network();
	CHECK_OK(sl_initialize(net, .init = sl_zeros_init()));
	write(path, 1);
	CHECK_MISTAKE(sl_load_params(net, path, SL_PARAM_NAMES({"transformer.fc.*", "0.*", false}), .lenient = true),
	              SL_ESHAPE,
	              "0.weight (transformer.fc.weight) is float32 (2, 4) in the file, float32 (4, 2) expected");
	CHECK_MISTAKE(sl_load_params(net, path, SL_PARAM_NAMES(RULES, {"fc.*", "2.*", false})), SL_EINVAL,
	              "0.bias (4,) is not in the file",
	              "2.bias (transformer.fc.bias) (4,) is in the file, but not in the network");
	CHECK_MISTAKE(sl_load_params(net, path, SL_PARAM_NAMES({"*.bias", "0.bias", true})), SL_ESHAPE,
	              "transformer.fc.bias is (4,), but only a matrix can be transposed");
	CHECK_MISTAKE(sl_load_params(net, path, .nnames = 1), SL_EINVAL, "NULL");
	CHECK_MISTAKE(sl_load_params(net, path, SL_PARAM_NAMES({NULL, "x", false})), SL_EINVAL, "NULL");
	CHECK_ALL(slp_data(net, "0.weight"), 0);
	write(path, 2);
	CHECK_MISTAKE(sl_load_params(net, path, SL_PARAM_NAMES(RULES, {"fc.*", "0.*", false})), SL_EINVAL,
	              "transformer.wte", "lm_head.weight", "both 1.weight here, and they differ");
	CHECK_ALL(slp_data(net, "1.weight"), 0);
	remove(path);
	sl_block_free(net);
}

/* A file whose header is this, and so many bytes. */
static void write_header(const char *path, const char *header, int bytes)
{
	uint64_t length = strlen(header);
	FILE *f = fopen(path, "wb");
	CHECK(f && fwrite(&length, 8, 1, f) == 1 && fputs(header, f) >= 0);
	for (int i = 0; f && i < bytes; i++) putc(0, f);
	if (f) CHECK(!fclose(f));
}

/* One array of a type that tensors do not have costs the others nothing, leniently. */
static void test_foreign_types(void)
{
	const char *path = "foreign.safetensors";
	sl_block *net = sl_dense(1, .in_units = 2);
	write_header(path,
	             "{\"weight\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
	             "\"scale\":{\"dtype\":\"F8_E4M3\",\"shape\":[3],\"data_offsets\":[8,11]},"
	             "\"bias\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[11,15]}}",
	             15);
	CHECK_OK(sl_initialize(net, .init = sl_ones_init()));
	CHECK_MISTAKE(sl_load_params(net, path), SL_EFORMAT, "scale", "unknown dtype");
	CHECK_ALL(slp_data(net, "weight"), 1);
	CHECK_OK(sl_load_params(net, path, .lenient = true));
	CHECK_ALL(slp_data(net, "weight"), 0);
	CHECK_ALL(slp_data(net, "bias"), 0);
	remove(path);
	sl_block_free(net);
}

/* A list of MXNet's arrays, written by hand. */
static void put(FILE *f, uint64_t number, size_t bytes)
{
	CHECK(fwrite(&number, bytes, 1, f) == 1);
}
static void put_name(FILE *f, const char *name)
{
	put(f, strlen(name), 8);
	CHECK(fputs(name, f) >= 0);
}
static void put_dims(FILE *f, const int64_t *dims, int ndim)
{
	put(f, (uint32_t)ndim, 4);
	for (int i = 0; i < ndim; i++) put(f, (uint64_t)dims[i], 8);
}
/* Up to the values: storage 0 is dense. */
static void put_head(FILE *f, int storage, const int64_t *dims, int ndim, int type)
{
	put(f, 0xf993fac9, 4);
	put(f, (uint32_t)storage, 4);
	if (storage) put_dims(f, (int64_t[]){1, 2}, 2);
	put_dims(f, dims, ndim);
	if (!ndim) return; /* an array without values */
	put(f, 1, 4);
	put(f, 0, 4);
	put(f, (uint32_t)type, 4);
}
static void put_ones(FILE *f, int n)
{
	for (int i = 0; i < n; i++) put(f, 0x3f800000, 4);
}

/* What a file has between two arrays that tensors can have. */
static void put_foreign(FILE *f, int kind)
{
	enum { INT64 = 6, UNKNOWN = 99, ROW_SPARSE = 1, CSR = 2 };
	int64_t two[] = {2}, nine[] = {1, 1, 1, 1, 1, 1, 1, 1, 2}, matrix[] = {4, 2};
	if (kind == 0) {
		put_head(f, 0, two, 1, UNKNOWN);
		put(f, 0x7777, 2);
	} else if (kind == 1) {
		put_head(f, 0, two, 1, UNKNOWN);
		put_ones(f, 8);
	} else if (kind == 2) {
		put_head(f, 0, nine, 9, 0);
		put_ones(f, 2);
	} else if (kind == 3) {
		put_head(f, 0, two, 0, 0);
	} else {
		put_head(f, kind == 4 ? ROW_SPARSE : CSR, matrix, 2, 0);
		for (int i = 0; i < (kind == 4 ? 1 : 2); i++) {
			put(f, INT64, 4);
			put_dims(f, (int64_t[]){i ? 2 : 1}, 1);
		}
		put_ones(f, 2);
		for (int i = 0; i < (kind == 4 ? 1 : 3); i++) put(f, (uint64_t)i, 8);
	}
}

static void test_foreign_arrays(void)
{
	static const enum sl_status refused[] = {SL_EFORMAT, SL_EFORMAT,      SL_EFORMAT,
	                                         SL_EFORMAT, SL_EUNSUPPORTED, SL_EUNSUPPORTED};
	const char *path = "foreign.params";
	for (int kind = 0; kind < 6; kind++)
		for (int last = 0; last < 2; last++) {
			sl_block *net = sl_dense(1, .in_units = 2);
			CHECK_OK(sl_initialize(net, .init = sl_zeros_init()));
			FILE *f = fopen(path, "wb");
			put(f, 0x112, 8);
			put(f, 0, 8);
			put(f, 3, 8);
			put_head(f, 0, (int64_t[]){1, 2}, 2, 0);
			put_ones(f, 2);
			if (!last) put_foreign(f, kind);
			put_head(f, 0, (int64_t[]){1}, 1, 0);
			put_ones(f, 1);
			if (last) put_foreign(f, kind);
			put(f, 3, 8);
			put_name(f, "arg:weight");
			put_name(f, last ? "bias" : "foreign");
			put_name(f, last ? "foreign" : "bias");
			CHECK(!fclose(f));
			CHECK_MISTAKE(sl_load_params(net, path), refused[kind], "foreign.params");
			CHECK_ALL(slp_data(net, "weight"), 0);
			CHECK_OK(sl_load_params(net, path, .lenient = true));
			CHECK_ALL(slp_data(net, "weight"), 1);
			CHECK_ALL(slp_data(net, "bias"), 1);
			remove(path);
			sl_block_free(net);
		}
}

static void count(const char *name, enum sl_dtype dtype, sl_shape shape, void *context)
{
	CHECK(dtype == SL_FLOAT32);
	if (!strcmp(name, "transformer.fc.weight")) CHECK(sl_shape_equal(shape, SL_SHAPE(2, 4)));
	++*(int *)context;
}

static void test_list(void)
{
	int n = 0;
	write("names.safetensors", 1);
	CHECK_OK(sl_list_params("names.safetensors", count, &n));
	CHECK(n == 5);
	remove("names.safetensors");
	CHECK_MISTAKE(sl_list_params("names.safetensors", count, &n), SL_EIO, "sl_list_params", "names.safetensors");
	CHECK_MISTAKE(sl_list_params("names.txt", count, &n), SL_EINVAL, "names.txt");
	CHECK_MISTAKE(sl_list_params(NULL, count, &n), SL_EINVAL, "no path");
	CHECK_MISTAKE(sl_list_params("names.safetensors", NULL, &n), SL_EINVAL, "function");
	CHECK(n == 5);
}

/* ---- a block's own ----------------------------------------------------------------------------------------------- */

static void test_prefixes(void)
{
	sl_block *a = sl_dense(1, .in_units = 2), *net = sl_sequential(a);
	CHECK_OK(sl_block_set_prefix(a, "out_"));
	CHECK(!strcmp(sl_block_name(a), "out") && !strcmp(sl_param_name(sl_block_find(net, "0.weight")), "out_weight"));
	CHECK_OK(sl_block_set_prefix(a, "last"));
	CHECK(!strcmp(sl_block_name(a), "last"));
	CHECK(!strcmp(sl_param_name(sl_block_param(a, "more", SL_SHAPE(1))), "lastmore"));
	CHECK(!strcmp(sl_param_name(sl_block_find(a, "bias")), "lastbias"));
	CHECK_OK(sl_block_set_prefix(a, ""));
	CHECK(!strcmp(sl_block_name(a), "") && !strcmp(sl_param_name(sl_block_find(a, "bias")), "bias"));
	CHECK_MISTAKE(sl_block_set_prefix(a, "a.b"), SL_EINVAL, "dots");
	CHECK_MISTAKE(sl_block_set_prefix(NULL, "a"), SL_EINVAL, "NULL");
	CHECK_MISTAKE(sl_block_set_prefix(a, NULL), SL_EINVAL, "NULL");
	sl_block_free(net);
}

static const struct slp_test tests[] = {
        {"foreign types", test_foreign_types},
        {"foreign arrays", test_foreign_arrays},
        {"rules", test_rules},
        {"what does not fit", test_what_does_not_fit},
        {"list", test_list},
        {"prefixes", test_prefixes},
        {NULL, NULL},
};

static const struct slp_suite suites[] = {
        {"names of parameters", tests, slp_start_engine, slp_stop_engine, NULL, NULL},
        {NULL, NULL, NULL, NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv, suites);
}
