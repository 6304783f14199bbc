/* Networks that train on an emulated GPU in whole steps: what they are, their batches, and two steps of training. */
#include "courses.h"

#include <math.h>
#include <stdlib.h>

#include "check.h"
#include "emulated.h"
#include "driver/networks.h"

enum { STEPS = 2, CLASSES = 10, WORDS = 65 };
/* Of one multiprocessor of an H100 in 3 µs of its part of the memory's rate, 2.93 TB/s of 132, and in 4 µs of its shared
 * memory's, 128 bytes a clock. */
enum { MOST_ALONE = 64 << 10, MOST_SHARED = 870 << 10 };

sl_block *course_lenet(const struct course *c)
{
	(void)c;
	return net_lenet();
}

sl_block *course_resnet18(const struct course *c)
{
	return net_resnet18_of(c->width, false);
}

sl_block *course_gpt(const struct course *c)
{
	return net_gpt(
	        (struct net_gpt_size){.words = WORDS, .steps = -c->size, .width = c->width, .layers = 4, .heads = 4});
}

/* A loss a token */
static sl_tensor *token_loss(const char *at, sl_tensor *y, sl_tensor *words)
{
	sl_shape s = sl_tensor_shape(y);
	int64_t tokens = s.dim[0] * s.dim[1];
	return sl_softmax_cross_entropy_at(at, sl_reshape_at(at, y, SL_SHAPE(tokens, s.dim[2])),
	                                   sl_reshape_at(at, words, SL_SHAPE(tokens)));
}

static sl_tensor *loss(const char *at, sl_tensor *y, sl_tensor *labels)
{
	return sl_tensor_shape(y).ndim == 3 ? token_loss(at, y, labels) : sl_softmax_cross_entropy_at(at, y, labels);
}

static sl_tensor *integers(sl_shape shape, int from, int step, int below)
{
	int64_t n = sl_shape_size(shape);
	int32_t *values = malloc((size_t)n * sizeof *values);
	if (!values) abort();
	for (int64_t i = 0; i < n; i++) values[i] = (int32_t)((i * step + from) % below);
	sl_tensor *t = sl_from(values, shape, .dtype = SL_INT32);
	free(values);
	return t;
}

static sl_tensor *images(const struct course *c)
{
	int64_t n = (int64_t)c->rows * c->size * c->size;
	float *values = malloc((size_t)n * sizeof *values);
	if (!values) abort();
	for (int64_t i = 0; i < n; i++) values[i] = (float)sin((double)i);
	sl_tensor *t = sl_from(values, SL_SHAPE(c->rows, 1, c->size, c->size));
	free(values);
	return t;
}

static void make_batch(const struct course *c, sl_tensor **x, sl_tensor **y)
{
	bool words = c->size < 0;
	sl_shape row = SL_SHAPE(c->rows, -c->size);
	*x = words ? integers(row, 0, 7, WORDS) : images(c);
	*y = words ? integers(row, 7, 7, WORDS) : integers(SL_SHAPE(c->rows), 1, 4, CLASSES);
}

void course_check_alone(const struct course *c, const struct emu_kernel *k)
{
	CHECK_SAYING(k->alone <= MOST_ALONE, "%s: %s has few threads and %llu bytes to access", c->name, k->name,
	             (unsigned long long)k->alone);
	CHECK_SAYING(k->alone_shared <= MOST_SHARED, "%s: %s has few threads and %llu bytes of shared memory to access",
	             c->name, k->name, (unsigned long long)k->alone_shared);
}

struct sl_config course_config(const struct course *c)
{
	if (c->network == course_resnet18) setenv("SL_CHANNELS_LAST", "8", 1); /* as with all its channels */
	else setenv("SL_CHANNELS_LAST", "32", 1);
	return (struct sl_config){.gpus = 1, .tf32 = c->tf32, .seed = 1};
}

double course_train(const struct course *c, sl_device device, void (*at_end)(const struct course *c, void *arg),
                    void *arg)
{
	double last = NAN;
	CHECK_OK(sl_device_default(device));
	sl_seed(1);
	sl_block *net = c->network(c);
	CHECK_OK(sl_initialize(net, .init = sl_normal_init(0.1)));
	sl_trainer *trainer = sl_trainer_new(net, sl_adamw(.lr = 0.001));
	sl_step *step = sl_step_compile(net, loss, trainer);
	SL_SCOPE {
		sl_tensor *x, *y, *l = NULL;
		make_batch(c, &x, &y);
		for (int i = 0; i < STEPS; i++) {
			CHECK_OK(sl_wait_all());
			emu_counts_reset();
			emu_kernels_reset();
			SL_AUTOCAST(c->type) l = sl_step_run(step, x, y, NULL);
			CHECK(l);
		}
		CHECK_OK(sl_wait_all());
		if (at_end) at_end(c, arg);
		last = sl_item(sl_mean(l));
	}
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
	return last;
}
