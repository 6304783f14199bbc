/* Kernels of whole steps on an emulated GPU: how many there are, with limits, by name, and the losses of a CPU; in a build
 * with EMU_RACES, which counts bytes, also that no launch of few threads has much to do. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "courses.h"
#include "emulated.h"

struct sum {
	const struct course *course;
	int launches, most;
};

static void check_bytes(const struct course *c, const struct emu_kernel *k)
{
	printf(": %.0f kB, %.2f of the least, %d to %d blocks", (double)(k->bytes.read + k->bytes.written) / 1e3,
	       emu_kernel_ratio(k), (int)k->fewest_blocks, (int)k->most_blocks);
	course_check_alone(c, k);
}

static void look(const struct emu_kernel *k, void *arg)
{
	struct sum *s = arg;
	s->launches += (int)k->launches;
	printf("\n      %3d  %s", (int)k->launches, k->name);
	if (k->bytes.least) check_bytes(s->course, k);
}

/* Of the last step. */
static void check_kernels(const struct course *c, void *arg)
{
	struct emu_counts counts;
	struct sum s = {c, 0, *(const int *)arg};
	emu_counts_get(&counts);
	emu_kernels_each(look, &s);
	int all = (int)counts.launches[0];
	printf("\n      %3d  of libraries, %d memsets", all - s.launches, (int)counts.sets[0]);
	printf("\n    %s: %d kernels a step", c->name, all);
	CHECK_SAYING(all <= s.most, "%s: %d kernels a step, more than %d", c->name, all, s.most);
}

/* At most `most` kernels a step. */
static void count(const struct course *c, int most)
{
	slp_begin(course_config(c));
	double gpu = course_train(c, sl_gpu(0), check_kernels, &most), cpu = course_train(c, sl_cpu(-1), NULL, NULL);
	double tolerance = c->type == SL_FLOAT32 ? 1e-4 : 3e-2;
	CHECK_SAYING(fabs(gpu - cpu) <= tolerance * fabs(cpu), "%s: loss %.7g, on a CPU %.7g", c->name, gpu, cpu);
	slp_end_well();
}

#define COURSE(...) (&(const struct course){__VA_ARGS__})

static void test_lenet(void)
{
	count(COURSE("LeNet", course_lenet, SL_FLOAT32, SL_TF32_CONV, 4, 28, 0), 20);
}

static void test_resnet18(void)
{
	count(COURSE("ResNet-18, bfloat16", course_resnet18, SL_BFLOAT16, SL_TF32_CONV, 4, 16, 8), 171);
}

static void test_gpt(void)
{
	count(COURSE("GPT, 4 layers", course_gpt, SL_FLOAT32, SL_TF32_CONV, 4, -8, 32), 106);
	count(COURSE("GPT, 4 layers, bfloat16", course_gpt, SL_BFLOAT16, SL_TF32_CONV, 4, -8, 32), 113);
}

static const struct slp_test tests[] = {{"LeNet", test_lenet}, {"ResNet-18", test_resnet18}, {"GPT", test_gpt}, {0}};

int main(int argc, char **argv)
{
	setenv("SL_EMU_DEVICES", "1", 1);
	setenv("SL_CUDA_GRAPHS", "0", 1);  /* counts are of kernels */
	setenv("SL_GPU_AUTOTUNE", "0", 1); /* the quickest convolution here is not that of a GPU */
	return slp_test_main(argc, argv, (const struct slp_suite[]){{.name = "counts", .tests = tests}, {0}});
}
