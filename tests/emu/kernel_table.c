/* Prints, for whole steps of LeNet, a ResNet-18 in three precisions and a GPT in two, each kernel with its launches, its blocks,
 * and the bytes that it moves beside the least, in descending order of what is lost: to the file SLP_TABLE, or standard output.
 * Fails if a launch of one block has work for more than 4 µs, or if a kernel moves more than its limit.  dev/gpu-kernels
 * builds and runs it. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "courses.h"
#include "emulated.h"

static FILE *to;

/* The most bytes that a kernel may move for each that it must, and the least bytes of a launch from which that is asked: below,
 * sectors that are not full count for much. */
enum { SMALL = 16 << 10 };
static const double most_ratio = 1.15;
static const struct {
	const char *name; /* a part of it */
	double most;
} ratios[] = {
        {"backward<S, W, M>",
         1.65},             /* attention: blocks of keys and of queries read the same, 13 tensors instead of 8 */
        {"gather", 1.65},   /* several words are the same row, which other blocks read again */
        {"finish<S>", 1.3}, /* each block reads the bias */
        {"broadcast_kernel", 1.35}, /* four blocks of sentences read the same positions */
};

static double most_of(const char *name)
{
	for (size_t i = 0; i < sizeof ratios / sizeof *ratios; i++)
		if (strstr(name, ratios[i].name)) return ratios[i].most;
	return most_ratio;
}

static void check(const struct course *c, const struct emu_kernel *k)
{
	double ratio = emu_kernel_ratio(k);
	course_check_alone(c, k);
	CHECK_SAYING(k->bytes.least > 0, "bytes are counted in a build with EMU_RACES=1 EMU_BLOCK=256 only");
	CHECK_SAYING(k->bytes.least < SMALL * k->launches || ratio <= most_of(k->name),
	             "%s: %s moves %.2f times as many bytes as it must", c->name, k->name, ratio);
}

static double kb(uint64_t bytes)
{
	return (double)bytes / 1e3;
}

struct sum {
	const struct course *course;
	int launches;
};

static void print(const struct emu_kernel *k, void *arg)
{
	struct sum *s = arg;
	s->launches += (int)k->launches;
	check(s->course, k);
	char blocks[48];
	snprintf(blocks, sizeof blocks, k->fewest_blocks < k->most_blocks ? "%llu–%llu" : "%llu",
	         (unsigned long long)k->fewest_blocks, (unsigned long long)k->most_blocks);
	fprintf(to, "| `%s` | %d | %s | %.1f | %.1f | %.1f | %.2f |\n", k->name, (int)k->launches, blocks,
	        kb(k->bytes.read), kb(k->bytes.written), kb(k->bytes.least), emu_kernel_ratio(k));
}

static void print_table(const struct course *c, void *arg)
{
	struct emu_counts counts;
	struct sum sum = {c, 0};
	(void)arg;
	emu_counts_get(&counts);
	emu_kernels_sort();
	fprintf(to,
	        "\n%s:\n\n| kernel | launches | blocks | read, kB | written, kB | least, kB | ratio |\n"
	        "|---|---|---|---|---|---|---|\n",
	        c->name);
	emu_kernels_each(print, &sum);
	fprintf(to, "| of libraries | %d | | | | | |\n", (int)counts.launches[0] - sum.launches);
	fflush(to);
}

static void print_course(const struct course *c)
{
	slp_begin(course_config(c));
	course_train(c, sl_gpu(0), print_table, NULL);
	slp_end_well();
}

/* X(function, name of the test, course) */
#define COURSES(X)                                                                                                     \
	X(lenet, "LeNet", "LeNet, float32, 64 images", course_lenet, SL_FLOAT32, SL_TF32_CONV, 64, 28, 0)              \
	X(resnet, "ResNet-18", "ResNet-18, float32, 16 channels at first, 8 images of 32 × 32", course_resnet18,       \
	  SL_FLOAT32, SL_TF32_NONE, 8, 32, 16)                                                                         \
	X(resnet_tf32, "ResNet-18 TF32", "ResNet-18, TF32", course_resnet18, SL_FLOAT32, SL_TF32_CONV, 8, 32, 16)      \
	X(resnet_bf16, "ResNet-18 bf16", "ResNet-18, bfloat16", course_resnet18, SL_BFLOAT16, SL_TF32_CONV, 8, 32, 16) \
	X(gpt, "GPT", "GPT, float32, 4 layers, 128 wide, 4 × 64 words", course_gpt, SL_FLOAT32, SL_TF32_CONV, 4, -64,  \
	  128)                                                                                                         \
	X(gpt_bf16, "GPT bf16", "GPT, bfloat16", course_gpt, SL_BFLOAT16, SL_TF32_CONV, 4, -64, 128)
#define X(function, name, ...)                                                                                         \
	static void table_##function(void)                                                                             \
	{                                                                                                              \
		print_course(&(const struct course){__VA_ARGS__});                                                     \
	}
COURSES(X)
#undef X

static const struct slp_test tests[] = {
#define X(function, name, ...) {name, table_##function},
        COURSES(X)
#undef X
                {0}};

int main(int argc, char **argv)
{
	setenv("SL_EMU_DEVICES", "1", 1);
	setenv("SL_EMU_BLOCKS", "1", 1);   /* as on a GPU */
	setenv("SL_CUDA_GRAPHS", "0", 1);  /* counts are of kernels */
	setenv("SL_GPU_AUTOTUNE", "0", 1); /* the quickest convolution here is not that of a GPU */
	const char *file = getenv("SLP_TABLE");
	if (!(to = file ? fopen(file, "we") : stdout)) return perror(file), 1;
	int status = slp_test_main(argc, argv, (const struct slp_suite[]){{.name = "table", .tests = tests}, {0}});
	return to != stdout && fclose(to) ? 1 : status;
}
