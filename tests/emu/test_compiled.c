/* Elementwise expressions that are compiled at run time, and their reductions, on an emulated GPU whose NVRTC is this
 * machine's compiler: the values of the interpreter and of separate reductions, bit by bit; what is compiled, kept on disk,
 * and refused. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <starling.h>

#include "check.h"
#include "compiled.h"
#include "elementwise/fused.h"
#include "emulated.h"
#include "op.h"
#include "op_list/binary.h"
#include "tune.h"

enum { ROWS = 37, WIDTH = 64, N = ROWS * WIDTH };

static void start(const char *compile, const char *gpu)
{
	static char name[64];
	setenv("STARPU_NCPU", "0", 1);
	setenv("SL_GPU_COMPILE", compile, 1);
	snprintf(name, sizeof name, "emulated GPU, %s, %d", gpu, (int)getpid());
	emu_name(name);
	slp_begin((struct sl_config){.gpus = 1, .seed = 1});
	CHECK_OK(sl_device_default(sl_gpu(0)));
	emu_counts_reset();
	emu_kernels_reset();
}

static int compiled(void)
{
	struct emu_counts c;
	CHECK_OK(sl_wait_all());
	emu_counts_get(&c);
	return (int)c.compiled;
}

static void find_compiled(const struct emu_kernel *k, void *arg)
{
	if (!strcmp(k->name, "compiled")) *(int *)arg = (int)k->launches;
}

/* Launches of compiled kernels since the start. */
static int ran(void)
{
	int n = 0;
	CHECK_OK(sl_wait_all());
	emu_kernels_each(find_compiled, &n);
	return n;
}

static sl_tensor *operand(int n, enum sl_dtype type, double from)
{
	float x[N];
	for (int i = 0; i < n; i++) x[i] = (float)(from + (i * 37 % 101) * 0.03);
	return sl_cast(sl_from(x, SL_SHAPE(n)), type);
}

/* Function `code` of x and y, plus a number; as double. */
static void evaluate(int code, enum sl_dtype type, sl_shape second, double *to)
{
	SL_SCOPE {
		struct slp_fused_attrs f = {{0.25}, {0}};
		f.step[0] = code | SLP_FUSED_INPUT << 8 | (SLP_FUSED_INPUT + 1) << 16;
		f.step[1] = SLP_FUSED_add | SLP_FUSED_RESULT << 8 | SLP_FUSED_NUMBER << 16;
		sl_tensor *x = sl_reshape(operand(N, type, -1.4), SL_SHAPE(ROWS, WIDTH));
		sl_tensor *y = sl_reshape(operand((int)sl_shape_size(second), type, 0.3), second);
		sl_tensor *z = slp_apply1(SL_HERE, &slp_op_fused, &f, 2, (sl_tensor *[]){x, y});
		CHECK_OK(sl_read(sl_cast(z, SL_FLOAT64), to, N * sizeof *to));
	}
}

/* pow is less accurate in the emulation's kernels than in compiled ones. */
static bool has_other_bits(int code)
{
	return code == SLP_FUSED_pow || code == SLP_FUSED_pow_by_base;
}

static void compare(int code, enum sl_dtype type, sl_shape second)
{
	static double one[N], two[N];
	start("0", "interpreted");
	evaluate(code, type, second, one);
	CHECK_SAYING(compiled() == 0 && ran() == 0, "%d are compiled", compiled());
	slp_end_well();
	start("1", "compiled");
	evaluate(code, type, second, two);
	CHECK_SAYING(compiled() <= 1 && ran() == 1, "function %d: %d are compiled, %d ran", code, compiled(), ran());
	slp_end_well();
	if (!has_other_bits(code))
		CHECK_SAYING(!memcmp(one, two, sizeof one), "function %d, type %d: %.17g, %.17g", code, type, one[1],
		             two[1]);
}

/* A function of each kind of text; all of them: tests/test_fused_source. */
static void test_functions(void)
{
	static const int codes[] = {SLP_FUSED_add,       SLP_FUSED_relu,      SLP_FUSED_gelu,
	                            SLP_FUSED_gelu_grad, SLP_FUSED_lt,        SLP_FUSED_logical_xor,
	                            SLP_FUSED_take_if,   SLP_FUSED_tanh_grad, SLP_FUSED_pow};
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) compare(codes[i], SL_FLOAT32, SL_SHAPE(ROWS, WIDTH));
}

static void test_types(void)
{
	compare(SLP_FUSED_mul, SL_FLOAT64, SL_SHAPE(ROWS, WIDTH));
	compare(SLP_FUSED_gelu, SL_BFLOAT16, SL_SHAPE(ROWS, WIDTH));
	compare(SLP_FUSED_sub, SL_FLOAT16, SL_SHAPE(ROWS, WIDTH));
}

static void test_shapes(void)
{
	compare(SLP_FUSED_sub, SL_FLOAT32, SL_SHAPE(WIDTH));
	compare(SLP_FUSED_sub, SL_FLOAT32, SL_SHAPE(ROWS, 1));
	compare(SLP_FUSED_sub, SL_FLOAT32, SL_SHAPE(1));
	compare(SLP_FUSED_div, SL_BFLOAT16, SL_SHAPE(WIDTH));
}

/* The second start of a GPU finds the kernel; a damaged file is compiled again. */
static void test_kept(void)
{
	double one[N], two[N];
	char command[SLP_TUNE_PATH + 256], path[SLP_TUNE_PATH];
	start("1", "kept");
	slp_tune_path(path);
	*strrchr(path, '/') = '\0';
	evaluate(SLP_FUSED_square, SL_FLOAT32, SL_SHAPE(ROWS, WIDTH), one);
	CHECK(compiled() == 1);
	evaluate(SLP_FUSED_square, SL_FLOAT32, SL_SHAPE(ROWS, WIDTH), one);
	CHECK(compiled() == 1);
	slp_end_well();
	start("1", "kept");
	evaluate(SLP_FUSED_square, SL_FLOAT32, SL_SHAPE(ROWS, WIDTH), two);
	CHECK_SAYING(compiled() == 0, "%d are compiled", compiled());
	CHECK(!memcmp(one, two, sizeof one));
	slp_end_well();
	snprintf(command, sizeof command,
	         "for f in '%s'/*.cubin; do printf x | dd of=\"$f\" bs=1 seek=4000 conv=notrunc 2>/dev/null; done",
	         path);
	CHECK(system(command) == 0);
	start("1", "kept");
	evaluate(SLP_FUSED_square, SL_FLOAT32, SL_SHAPE(ROWS, WIDTH), two);
	CHECK_SAYING(compiled() == 1, "%d are compiled", compiled());
	CHECK(!memcmp(one, two, sizeof one));
	slp_end_well();
}

/* Nothing is compiled while a graph is recorded: the plain runs before did. */
static void test_graphs(void)
{
	double sums[6];
	start("1", "graphs");
	setenv("SL_CUDA_GRAPHS", "1", 1);
	SL_SCOPE {
		sl_block *net = sl_sequential(sl_activation_layer(SL_GELU), sl_activation_layer(SL_TANH));
		CHECK_OK(sl_hybridize(net));
		sl_tensor *x = sl_reshape(operand(N, SL_FLOAT32, -1), SL_SHAPE(ROWS, WIDTH));
		for (int i = 0; i < 6; i++) {
			sl_tensor *y = sl_cast(sl_sum(sl_forward(net, x)), SL_FLOAT64);
			CHECK_OK(sl_read(y, &sums[i], sizeof sums[i]));
			CHECK(sums[i] == sums[0]);
		}
		sl_block_free(net);
	}
	CHECK_SAYING(compiled() == 1, "%d are compiled", compiled());
	slp_end_well();
}

/* ---- reductions -------------------------------------------------------------------------------------------------- */

/* An expression of x (ROWS × width) and y and its reduction, a program: its values as doubles, `n` of them. */
struct reduced {
	enum sl_dtype type;
	int rows, width, n;
	sl_shape other; /* of y */
	sl_tensor *(*build)(sl_tensor *x, sl_tensor *y);
};

static sl_tensor *mean_square(sl_tensor *x, sl_tensor *y)
{
	return sl_mean(sl_square(sl_sub(x, y)));
}

static sl_tensor *sum_of_rows(sl_tensor *x, sl_tensor *y)
{
	return sl_sum(sl_mul(sl_gelu(x), y), SL_AXES(1), .keepdims = true);
}

static sl_tensor *largest_of_rows(sl_tensor *x, sl_tensor *y)
{
	return sl_max(sl_sub(x, y), SL_AXES(-1));
}

static sl_tensor *norm_of_squares(sl_tensor *x, sl_tensor *y)
{
	return sl_norm(sl_add_scalar(sl_div(x, y), -0.5), SL_AXES(1));
}

static sl_tensor *product_of_rows(sl_tensor *x, sl_tensor *y)
{
	return sl_prod(sl_tanh(sl_add(x, y)), SL_AXES(1));
}

/* Over the first and the last of three axes. */
static sl_tensor *sum_around(sl_tensor *x, sl_tensor *y)
{
	return sl_sum(sl_mul(sl_gelu(sl_reshape(x, SL_SHAPE(3, 40, 32))), y), SL_AXES(0, 2));
}

static sl_tensor *sum_of_columns(sl_tensor *x, sl_tensor *y)
{
	return sl_sum(sl_mul(sl_gelu(x), y), SL_AXES(0));
}

static sl_tensor *softmax_of_rows(sl_tensor *x, sl_tensor *y)
{
	return sl_softmax(sl_mul(sl_mul_scalar(x, 3), y), -1);
}

static sl_tensor *log_softmax_of_rows(sl_tensor *x, sl_tensor *y)
{
	return sl_log_softmax(sl_sub(sl_tanh(x), y), 1);
}

static sl_tensor *softmax_of_columns(sl_tensor *x, sl_tensor *y)
{
	return sl_softmax(sl_mul(sl_mul_scalar(x, 3), y), 0);
}

static sl_tensor *many(int n, enum sl_dtype type, double from)
{
	return sl_cast(sl_add_scalar(sl_sin(sl_arange(0, n, 1)), from), type);
}

static void run_reduced(const struct reduced *r, double *to)
{
	int64_t n = sl_shape_size(r->other);
	sl_shape shape = SL_SHAPE(r->rows, r->width);
	SL_SCOPE {
		sl_tensor *x = sl_var("x", .shape = &shape, .dtype = r->type);
		sl_tensor *y = sl_var("y", .shape = &r->other, .dtype = r->type);
		sl_graph *graph = sl_graph_define(r->build(x, y));
		sl_plan *plan = sl_compile(graph);
		sl_tensor *in[] = {sl_reshape(many(r->rows * r->width, r->type, -0.1), shape),
		                   sl_reshape(many((int)n, r->type, 1.5), r->other)},
		          *out;
		CHECK_OK(sl_wait_all());
		emu_kernels_reset();
		emu_counts_reset();
		CHECK_OK(sl_plan_run(plan, in, 2, &out));
		CHECK_OK(sl_wait_all());
		CHECK_OK(sl_read(sl_cast(out, SL_FLOAT64), to, (size_t)r->n * sizeof *to));
		sl_plan_free(plan);
		sl_graph_free(graph);
	}
}

static void find_reducing(const struct emu_kernel *k, void *arg)
{
	if (strstr(k->name, "rows<K, ") || strstr(k->name, "columns<K, ")) ++*(int *)arg;
}

static void find_interpreted(const struct emu_kernel *k, void *arg)
{
	if (strstr(k->name, "reduced_")) ++*(int *)arg;
}

/* Where NVRTC compiles nothing, the bits are those of two operations, too. */
static void check_interpreted(const struct reduced *r, const double *expected)
{
	static double values[N];
	const char *compiler = getenv("CXX");
	char kept[256];
	int interpreted = 0, separate = 0;
	snprintf(kept, sizeof kept, "%s", compiler ? compiler : "");
	setenv("CXX", "false", 1);
	start("1", "not compiled");
	run_reduced(r, values);
	emu_kernels_each(find_interpreted, &interpreted);
	emu_kernels_each(find_reducing, &separate);
	CHECK_SAYING(ran() == 0 && interpreted + separate == 1, "%d ran, %d, %d", ran(), interpreted, separate);
	slp_end_well();
	if (compiler) setenv("CXX", kept, 1);
	else unsetenv("CXX");
	CHECK_SAYING(!memcmp(values, expected, (size_t)r->n * sizeof *values), "%.17g, %.17g", values[0], expected[0]);
}

/* The bits of both ways, and whether one compiled kernel reads the operands. */
static void check_reduced(const struct reduced *r, bool joined)
{
	static double one[N], two[N];
	int separate = 0;
	start("0", "reduced in two");
	run_reduced(r, one);
	emu_kernels_each(find_reducing, &separate);
	CHECK_SAYING(separate == 1, "%d reductions", separate);
	slp_end_well();
	if (joined) check_interpreted(r, one); /* first: compiled kernels are kept */
	start("1", "reduced at once");
	run_reduced(r, two);
	separate = 0;
	emu_kernels_each(find_reducing, &separate);
	CHECK_SAYING(ran() == 1 && separate == !joined, "%d ran, %d reductions", ran(), separate);
	slp_end_well();
	CHECK_SAYING(isfinite(one[0]) && !memcmp(one, two, (size_t)r->n * sizeof *one), "%.17g, %.17g", one[0], two[0]);
}

static void test_reductions(void)
{
	const sl_shape all = SL_SHAPE(37, 64), row = SL_SHAPE(64), column = SL_SHAPE(37, 1);
	check_reduced(&(struct reduced){SL_FLOAT32, 37, 64, 1, all, mean_square}, true);
	check_reduced(&(struct reduced){SL_FLOAT32, 37, 64, 37, row, sum_of_rows}, true);
	check_reduced(&(struct reduced){SL_BFLOAT16, 37, 64, 37, column, sum_of_rows}, true);
	check_reduced(&(struct reduced){SL_FLOAT16, 37, 64, 37, all, largest_of_rows}, true);
	check_reduced(&(struct reduced){SL_FLOAT64, 37, 64, 37, row, norm_of_squares}, true);
	check_reduced(&(struct reduced){SL_FLOAT32, 37, 64, 37, row, product_of_rows}, true);
	check_reduced(&(struct reduced){SL_FLOAT32, 300, 32, 300, SL_SHAPE(32), sum_of_rows}, true);
	check_reduced(&(struct reduced){SL_FLOAT32, 120, 32, 40, SL_SHAPE(32), sum_around}, true);
}

/* Outputs of several parts, which a second kernel joins. */
static void test_parts(void)
{
	check_reduced(&(struct reduced){SL_FLOAT32, 9, 4096, 1, SL_SHAPE(4096), mean_square}, true);
	check_reduced(&(struct reduced){SL_BFLOAT16, 2, 33280, 2, SL_SHAPE(1), norm_of_squares}, true);
}

/* Rows whose elements are read one by one, by groups and by single threads. */
static void test_narrow(void)
{
	check_reduced(&(struct reduced){SL_FLOAT32, 64, 37, 64, SL_SHAPE(37), sum_of_rows}, true);
	check_reduced(&(struct reduced){SL_BFLOAT16, 300, 7, 300, SL_SHAPE(7), sum_of_rows}, true);
}

/* One column of a thread, or several; rows in one part, and in several. */
static void test_columns(void)
{
	check_reduced(&(struct reduced){SL_FLOAT32, 37, 64, 64, SL_SHAPE(64), sum_of_columns}, true);
	check_reduced(&(struct reduced){SL_FLOAT32, 90, 37, 37, SL_SHAPE(37), sum_of_columns}, true);
	check_reduced(&(struct reduced){SL_FLOAT32, 1100, 2048, 2048, SL_SHAPE(1100, 1), sum_of_columns}, true);
	check_reduced(&(struct reduced){SL_BFLOAT16, 70, 2304, 2304, SL_SHAPE(2304), sum_of_columns}, true);
	check_reduced(&(struct reduced){SL_FLOAT16, 600, 40, 40, SL_SHAPE(600, 40), sum_of_columns}, true);
	check_reduced(&(struct reduced){SL_FLOAT64, 200, 24, 24, SL_SHAPE(24), sum_of_columns}, true);
}

/* Rows that a warp holds, and a block; along other axes, and of other lengths, softmax reads the expression's result. */
static void test_softmax(void)
{
	check_reduced(&(struct reduced){SL_FLOAT32, 37, 64, 37 * 64, SL_SHAPE(64), softmax_of_rows}, true);
	check_reduced(&(struct reduced){SL_FLOAT32, 2, 1024, 2 * 1024, SL_SHAPE(2, 1), log_softmax_of_rows}, true);
	check_reduced(&(struct reduced){SL_BFLOAT16, 3, 640, 3 * 640, SL_SHAPE(640), softmax_of_rows}, true);
	check_reduced(&(struct reduced){SL_FLOAT64, 30, 34, 30 * 34, SL_SHAPE(34), log_softmax_of_rows}, true);
	check_reduced(&(struct reduced){SL_FLOAT32, 37, 62, 37 * 62, SL_SHAPE(62), softmax_of_rows}, false);
	check_reduced(&(struct reduced){SL_FLOAT32, 37, 64, 37 * 64, SL_SHAPE(64), softmax_of_columns}, false);
}

/* An expression that something else reads, too, is stored. */
static sl_tensor *read_twice(sl_tensor *x, sl_tensor *y)
{
	sl_tensor *square = sl_square(sl_sub(x, y));
	return sl_add(sl_sum(square, SL_AXES(1), .keepdims = true), square);
}

static void test_read_twice(void)
{
	double values[N];
	const struct reduced r = {SL_FLOAT32, 37, 64, 37 * 64, SL_SHAPE(64), read_twice};
	int separate = 0;
	start("1", "read twice");
	run_reduced(&r, values);
	emu_kernels_each(find_reducing, &separate);
	CHECK_SAYING(separate == 1, "%d reductions", separate);
	slp_end_well();
}

/* ---- kernels of earlier launches --------------------------------------------------------------------------------- */

/* A source is written once for an expression, its operands' shapes and types: numbers do not matter. */
static void test_written_once(void)
{
	double values[N];
	start("1", "written once");
	size_t before = slp_compiled_notes();
	for (int i = 0; i < 4; i++) evaluate(SLP_FUSED_add, SL_FLOAT32, SL_SHAPE(ROWS, WIDTH), values);
	CHECK_SAYING(slp_compiled_notes() == before + 1, "%zu sources", slp_compiled_notes() - before);
	evaluate(SLP_FUSED_add, SL_FLOAT32, SL_SHAPE(WIDTH), values);
	evaluate(SLP_FUSED_sub, SL_FLOAT32, SL_SHAPE(WIDTH), values);
	evaluate(SLP_FUSED_sub, SL_FLOAT64, SL_SHAPE(WIDTH), values);
	CHECK_SAYING(slp_compiled_notes() == before + 4, "%zu sources", slp_compiled_notes() - before);
	CHECK_SAYING(ran() == 7, "%d ran", ran());
	slp_end_well();
}

enum { NOTES = 20000, NOTERS = 4 };

/* Notes descriptions, of which most replace another one; what is found is the kernel of the description asked for. */
static void *note_all(void *arg)
{
	for (int i = 0; i < NOTES; i++) {
		uint64_t key[3] = {(uint64_t)i * NOTERS + *(const unsigned *)arg, 7, 0};
		const void *kernel = NULL, *expected = (const char *)NULL + key[0];
		slp_compiled_note(key, sizeof key, expected);
		if (slp_compiled_recall(key, sizeof key, &kernel) && kernel != expected) return "another kernel";
		key[2] = 1;
		if (slp_compiled_recall(key, sizeof key, &kernel)) return "a kernel that nobody noted";
	}
	return NULL;
}

static void test_notes(void)
{
	pthread_t threads[NOTERS];
	unsigned numbers[NOTERS];
	void *fault;
	for (unsigned i = 0; i < NOTERS; i++) {
		numbers[i] = i;
		CU_ASSERT_FATAL(!pthread_create(&threads[i], NULL, note_all, &numbers[i]));
	}
	for (int i = 0; i < NOTERS; i++) {
		CHECK(!pthread_join(threads[i], &fault));
		CHECK_SAYING(!fault, "found %s", (const char *)fault);
	}
	const void *kernel;
	uint64_t key[3] = {NOTES * NOTERS - 1, 7, 0};
	slp_compiled_note(key, sizeof key, threads);
	CHECK(slp_compiled_recall(key, sizeof key, &kernel) && kernel == (const void *)threads);
	slp_compiled_forget_notes();
	CHECK(!slp_compiled_recall(key, sizeof key, &kernel));
}

static const struct slp_test tests[] = {{"functions", test_functions},   {"types", test_types},
                                        {"shapes", test_shapes},         {"kept", test_kept},
                                        {"graphs", test_graphs},         {"written once", test_written_once},
                                        {"notes", test_notes},           {"reductions", test_reductions},
                                        {"parts", test_parts},           {"narrow", test_narrow},
                                        {"columns", test_columns},       {"softmax", test_softmax},
                                        {"read twice", test_read_twice}, {0}};

int main(int argc, char **argv)
{
	setenv("SL_EMU_DEVICES", "1", 1);
	setenv("SL_GPU_AUTOTUNE", "0", 1);
	return slp_test_main(argc, argv, (const struct slp_suite[]){{.name = "compiled", .tests = tests}, {0}});
}
