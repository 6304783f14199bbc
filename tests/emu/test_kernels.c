/* What the kernels of large operations cost on an emulated GPU: launches; in a build with EMU_RACES, which counts bytes,
 * that threads read little more than once, and that no launch of few threads has much to do; these are printed. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "emulated.h"

enum { INPUTS = 5, MOST_ALONE = 64 << 10 }; /* bytes: a microsecond or two of one multiprocessor */

/* An operation of tensors of these shapes; its kernels; most launches forward and back, and the most bytes that a
 * kernel may access for each byte that it must. */
struct trial {
	const char *name;
	sl_tensor *(*call)(sl_tensor *const *in);
	sl_shape in[INPUTS];
	int launches, back;
	double excess;
	bool indices; /* the second input is of int32 */
};

#define CALL(name, expression)                                                                                         \
	static sl_tensor *name(sl_tensor *const *in)                                                                   \
	{                                                                                                              \
		return expression;                                                                                     \
	}
CALL(add, sl_add(in[0], in[1]))
CALL(total, sl_sum(in[0]))
CALL(total_of_columns, sl_sum(in[0], SL_AXES(0)))
CALL(softmax, sl_softmax(in[0], -1))
CALL(layer_norm, sl_layer_norm(in[0], in[1], in[2]))
CALL(avg_pool, sl_pool2d(in[0], .type = SL_POOL_AVG, .kernel = {2, 2}, .stride = {2, 2}))
CALL(max_pool, sl_pool2d(in[0], .type = SL_POOL_MAX, .kernel = {2, 2}, .stride = {2, 2}))
CALL(turned, sl_transpose(in[0], SL_AXES(0, 2, 1)))
CALL(linear, sl_linear(in[0], in[1], in[2]))
CALL(rows_of, sl_gather(in[0], in[1]))

static sl_tensor *batch_norm(sl_tensor *const *in)
{
	sl_tensor *y = NULL;
	SL_TRAINING
		y = sl_batch_norm(in[0], in[1], in[2], in[3], in[4]);
	return y;
}

#define DIMS(...)                                                                                                      \
	{                                                                                                              \
		SL_COUNT_(int64_t, __VA_ARGS__),                                                                       \
		{                                                                                                      \
			__VA_ARGS__                                                                                    \
		}                                                                                                      \
	}
static const struct trial trials[] = {
        {"add", add, {DIMS(1 << 17), DIMS(1 << 17)}, 1, 0, 1, false},
        {"sum", total, {DIMS(1 << 18)}, 2, 1, 2, false},
        {"sum of columns", total_of_columns, {DIMS(1024, 128)}, 2, 1, 2, false},
        {"softmax", softmax, {DIMS(256, 512)}, 1, 1, 1.01, false},
        {"batch_norm", batch_norm, {DIMS(32, 16, 16, 16), DIMS(16), DIMS(16), DIMS(16), DIMS(16)}, 2, 2, 2, false},
        {"layer_norm", layer_norm, {DIMS(512, 256), DIMS(256), DIMS(256)}, 1, 2, 4, false},
        {"avg_pool", avg_pool, {DIMS(16, 8, 32, 32)}, 1, 1, 1.7, false},
        {"max_pool", max_pool, {DIMS(16, 8, 32, 32)}, 1, 1, 5, false},
        {"turned", turned, {DIMS(64, 256, 9)}, 1, 1, 1, false},
        {"linear", linear, {DIMS(1024, 32), DIMS(32, 64), DIMS(64)}, 1, 2, 3, false},
        {"rows_of", rows_of, {DIMS(512, 64), DIMS(1500)}, 1, 9, 6, true},
};

static sl_tensor *input(const struct trial *t, int i)
{
	if (!t->indices || i != 1) return sl_normal(t->in[i], 0, 1);
	static int32_t rows[1500];
	for (int j = 0; j < 1500; j++) rows[j] = j % 7 ? j * 31 % 512 : 3;
	return sl_from(rows, t->in[i], .dtype = SL_INT32);
}

struct sum {
	const struct trial *trial;
	int launches;
};

static void look(const struct emu_kernel *k, void *arg)
{
	struct sum *s = arg;
	s->launches += (int)k->launches;
	if (k->bytes.least)
		printf("\n      %s: %.0f kB, %.2f of the least, at least %d threads", k->name,
		       (double)k->bytes.accessed / 1e3, (double)k->bytes.accessed / (double)k->bytes.least,
		       (int)k->fewest);
	CHECK_SAYING(k->alone <= MOST_ALONE, "%s: %s has few threads and %llu bytes to access", s->trial->name, k->name,
	             (unsigned long long)k->alone);
	CHECK_SAYING((double)k->bytes.accessed <= s->trial->excess * (double)k->bytes.least,
	             "%s: %s accesses %.2f times as many bytes as it must", s->trial->name, k->name,
	             (double)k->bytes.accessed / (double)k->bytes.least);
}

/* Since the last look. */
static void check_kernels(const struct trial *t, const char *way, int most)
{
	struct sum s = {t, 0};
	CHECK_OK(sl_wait_all());
	emu_kernels_each(look, &s);
	emu_kernels_reset();
	printf("\n    %s %s: %d kernels", t->name, way, s.launches);
	CHECK_SAYING(s.launches <= most, "%s %s: %d launches, more than %d", t->name, way, s.launches, most);
}

static void try(const struct trial *t)
{
	sl_tensor *in[INPUTS] = {0}, *y = NULL;
	for (int i = 0; i < INPUTS && t->in[i].ndim; i++) {
		in[i] = input(t, i);
		if (i < 3 && !(t->indices && i == 1)) CHECK_OK(sl_attach_grad(in[i]));
	}
	CHECK_OK(sl_wait_all());
	emu_kernels_reset();
	SL_RECORD
		y = t->call(in);
	check_kernels(t, "forward", t->launches);
	sl_tensor *dy = sl_ones(sl_tensor_shape(y));
	CHECK_OK(sl_wait_all());
	emu_kernels_reset();
	CHECK_OK(sl_backward_heads(&y, 1, .head_grads = &dy));
	check_kernels(t, "back", t->back);
}

static void test_operations(void)
{
	slp_begin((struct sl_config){.gpus = 1, .seed = 1});
	CHECK_OK(sl_device_default(sl_gpu(0)));
	for (size_t i = 0; i < sizeof trials / sizeof *trials; i++)
		SL_SCOPE
			try(&trials[i]);
	slp_end_well();
}

static const struct slp_test tests[] = {{"operations", test_operations}, {0}};

int main(int argc, char **argv)
{
	setenv("SL_EMU_DEVICES", "1", 1);
	setenv("SL_EMU_BLOCKS", "1", 1); /* as on a GPU */
	return slp_test_main(argc, argv, (const struct slp_suite[]){{.name = "kernels", .tests = tests}, {0}});
}
