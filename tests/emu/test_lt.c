/* Matrix products on an emulated GPU: which algorithms of cublasLt are tried and taken, and what is kept. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <starling.h>

#include "check.h"
#include "emulated.h"
#include "tune.h"

enum { INPLACE, IN_LESS, TOO_LARGE, SLOW, FAST }; /* algorithms of cublas.cc */

static struct emu_counts counts(void)
{
	struct emu_counts c;
	CHECK_OK(sl_wait_all());
	emu_counts_get(&c);
	return c;
}

/* A GPU of which nothing is known: each process has its own. */
static void start(const char *autotune, const char *gpu)
{
	static char name[64];
	setenv("STARPU_NCPU", "0", 1);
	setenv("SL_GPU_AUTOTUNE", autotune, 1);
	snprintf(name, sizeof name, "emulated GPU, %s, %d", gpu, (int)getpid());
	emu_name(name);
	slp_begin((struct sl_config){.gpus = 1, .seed = 1});
	CHECK_OK(sl_device_default(sl_gpu(0)));
}

/* (1 2 3) (4 5 6)ᵀ and so on: what it took. */
static struct emu_counts of_product(enum sl_dtype type)
{
	static const float a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, -1, 2, 0, 3, 1};
	emu_counts_reset();
	SL_SCOPE {
		sl_tensor *x = sl_cast(sl_from(a, SL_SHAPE(2, 3)), type);
		sl_tensor *y = sl_dot(x, sl_cast(sl_from(b, SL_SHAPE(3, 2)), type));
		CHECK_VALUES(sl_cast(y, SL_FLOAT64), 14, 2, 32, 2);
	}
	return counts();
}

static uint64_t tried(const struct emu_counts *c)
{
	uint64_t n = 0;
	for (int i = EMU_LT; i < EMU_WAYS; i++) n += c->ways[i];
	return n;
}

static void check_type(enum sl_dtype type)
{
	struct emu_counts c = of_product(type);
	CHECK(c.ways[EMU_LT + SLOW] > 0 && c.ways[EMU_LT + FAST] > 0);
	for (int i = INPLACE; i <= TOO_LARGE; i++) CHECK_SAYING(c.ways[EMU_LT + i] == 0, "algorithm %d", i);
	c = of_product(type);
	CHECK_SAYING(c.ways[EMU_LT + FAST] == 1 && tried(&c) == 1, "type %d: %d tried", type, (int)tried(&c));
}

static void test_measured(void)
{
	start("1", "products");
	check_type(SL_FLOAT32);
	check_type(SL_FLOAT64);
	check_type(SL_BFLOAT16);
	check_type(SL_FLOAT16);
	slp_end_well();
}

static void test_kept(void)
{
	start("1", "kept");
	of_product(SL_FLOAT32);
	slp_end_well();
	start("1", "kept");
	struct emu_counts c = of_product(SL_FLOAT32);
	CHECK(c.ways[EMU_LT + FAST] == 1 && tried(&c) == 1);
	slp_end_well();
}

static void test_not_wanted(void)
{
	start("0", "none");
	struct emu_counts c = of_product(SL_FLOAT32);
	CHECK(tried(&c) == 0);
	slp_end_well();
}

/* What a product is added to is added to once, however often it is timed. */
static void test_added(void)
{
	start("1", "sums");
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(4, 3)), *w = sl_full(SL_SHAPE(3, 2), 2);
		CHECK_OK(sl_attach_grad(w, .req = SL_GRAD_ADD));
		for (int i = 0; i < 3; i++) {
			sl_tensor *y = NULL;
			SL_RECORD
				y = sl_sum(sl_dot(x, w));
			CHECK_OK(sl_backward(y));
		}
		CHECK_ALL(sl_grad(w), 12);
	}
	CHECK(counts().ways[EMU_LT + FAST] > 0);
	slp_end_well();
}

/* A line of the file that it adds to comes from a process that measured at the same time. */
static void test_first(void)
{
	char path[SLP_TUNE_PATH], line[1024], way[SLP_TUNE_TEXT] = "first";
	start("1", "first");
	slp_tune_keep("a key", way, 1);
	slp_tune_path(path);
	FILE *file = fopen(path, "r");
	CHECK_SAYING(file && fgets(line, sizeof line, file), "%s", path);
	if (file) fclose(file);
	remove(path);
	slp_tune_forget();
	CHECK(!slp_tune_find("a key", way));
	file = fopen(path, "w");
	if (file) {
		fputs(line, file);
		fclose(file);
	}
	snprintf(way, sizeof way, "second");
	slp_tune_keep("a key", way, 2);
	CHECK_SAYING(!strcmp(way, "first"), "%s", way);
	slp_end_well();
}

static const struct slp_test tests[] = {
        {"the fastest of what is allowed", test_measured},
        {"kept", test_kept},
        {"not wanted", test_not_wanted},
        {"added once", test_added},
        {"another process was first", test_first},
        {0},
};

int main(int argc, char **argv)
{
	setenv("SL_EMU_DEVICES", "1", 1);
	return slp_test_main(argc, argv, (const struct slp_suite[]){{.name = "products", .tests = tests}, {0}});
}
