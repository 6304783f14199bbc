/* What tests under a limit do: they ask for more memory than there is. */
#include "out_of_memory.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "check.h"

enum { MAX_HELD = 20000 };

void slp_check_usable(sl_tensor *before)
{
	CHECK_ALL(before, 3);
	SL_SCOPE {
		CHECK_ALL(sl_add(before, before), 6);
		CHECK_ALL(sl_sum(sl_ones(SL_SHAPE(100, 100))), 10000); /* small: the heap may be in pieces */
	}
	CHECK_OK(sl_wait_all());
}

void slp_check_giants(const char *whose)
{
	double longest = 0;
	SL_SCOPE {
		sl_tensor *before = sl_full(SL_SHAPE(1000), 3);
		for (int p = 34; p <= 58; p++) {
			char bytes[32];
			double start = sl_time(), seconds;
			clock_t worked = clock();
			snprintf(bytes, sizeof bytes, " %lld bytes", 4LL << p);
			CHECK_NULL(sl_zeros(SL_SHAPE(1LL << p)), SL_ENOMEM, "fill", bytes,
			           " available (limit: ", whose);
			seconds = sl_time() - start;
			if (seconds > longest) longest = seconds;
			/* On a busy machine a call may lie idle for long; what it does itself takes less. */
			CHECK_SAYING(clock() - worked < 2 * CLOCKS_PER_SEC && seconds < SLP_PATIENCE, "2^%d: %g s", p,
			             seconds);
		}
		printf("  giants: an error after at most %.3f s\n", longest);
		slp_check_usable(before);
	}
}

/* Tensors are held until the call fails; what it says.  Returns how many there were. */
static int hold(sl_tensor **held, int64_t size, const char *whose)
{
	int n = 0;
	for (; n < MAX_HELD; n++) {
		sl_tensor *t = NULL;
		SL_SCOPE
			t = sl_retain(sl_full(SL_SHAPE(size), 3));
		held[n] = t;
		if (!t || (n % 64 == 63 && sl_wait_all() != SL_OK)) break;
	}
	enum sl_status s = sl_error() != SL_OK ? sl_error() : sl_wait_all();
	const char *text = sl_error_message();
	CHECK_SAYING(s == SL_ENOMEM || strstr(text, whose), "after %d: %s", n, text);
	CHECK_SAYING(strstr(text, whose) && strstr(text, " available (limit: "), "after %d: %s", n, text);
	while (sl_wait_all() != SL_OK) continue; /* each is reported once */
	sl_error_clear();
	return n;
}

static void release(sl_tensor **held, int from, int to)
{
	for (int i = from; i < to; i++) sl_release(held[i]);
}

void slp_use_up(int64_t size, int least, const char *whose)
{
	static sl_tensor *held[MAX_HELD + 1];
	memset(held, 0, sizeof held);
	sl_tensor *before = NULL;
	SL_SCOPE
		before = sl_retain(sl_full(SL_SHAPE(1000), 3));
	int n = hold(held, size, whose);
	CHECK_SAYING(n >= least && n < MAX_HELD, "%d tensors of %lld elements", n, (long long)size);
	release(held, n / 2, n + 1);
	slp_check_usable(before);
	int more = hold(held + n / 2, size, whose);
	CHECK_SAYING(more >= least / 4, "%d more after %d were let go", more, n - n / 2);
	release(held, 0, n / 2 + more + 1);
	sl_release(before);
}

/* A step of a network whose kernels work in memory of their own. */
static enum sl_status train(sl_block *net, sl_trainer *trainer, int images)
{
	enum sl_status s = SL_OK;
	SL_SCOPE {
		sl_tensor *x = sl_uniform(SL_SHAPE(images, 1, 28, 28), 0, 1),
		          *y = sl_zeros(SL_SHAPE(images), .dtype = SL_INT32);
		sl_tensor *loss = NULL;
		SL_RECORD
			loss = sl_softmax_cross_entropy(sl_forward(net, x), y);
		if (loss && sl_backward(loss) == SL_OK) sl_trainer_step(trainer, images);
		s = sl_wait_all();
	}
	return s;
}

void slp_train_until_full(bool hybrid, void (*limit)(bool on))
{
	slp_begin((struct sl_config){.teams = 1});
	sl_block *net = sl_sequential(sl_conv2d_layer(6, .kernel = {5}, .activation = SL_RELU), sl_max_pool2d_layer(2),
	                              sl_conv2d_layer(16, .kernel = {5}, .activation = SL_RELU), sl_max_pool2d_layer(2),
	                              sl_flatten_layer(), sl_dense(10));
	SL_SCOPE
		CHECK_OK(sl_initialize(net));
	if (hybrid) CHECK_OK(sl_hybridize(net));
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.1));
	CHECK_OK(train(net, trainer, 8));
	limit(true);
	int images = 16;
	enum sl_status s = SL_OK;
	while (s == SL_OK && images < 1 << 16) s = train(net, trainer, images *= 2);
	CHECK_SAYING(s == SL_ENOMEM && images > 64, "%d images: %s", images, sl_error_message());
	CHECK_SAYING(strstr(sl_error_message(), " available (limit: ") && strstr(sl_error_message(), ".c:"), "%s",
	             sl_error_message());
	limit(false);
	while (sl_wait_all() != SL_OK) continue;
	CHECK_OK(train(net, trainer, 8));
	sl_trainer_free(trainer);
	sl_block_free(net);
	slp_end_well();
}
