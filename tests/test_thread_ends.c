/* Threads that end within calls, have little stack, or shut the engine down while others compute (doc/threads.md). */
#include <sys/resource.h>

#include "beside.h"

/* ---- threads that end, and small ones ------------------------------------------------------------------------------ */

static sl_tensor *exit_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)self;
	if (sl_is_symbol(in[0]) && nin) pthread_exit(NULL);
	return in[0];
}

static void *exit_within(void *net)
{
	SL_SCOPE
		sl_forward(net, sl_ones(SL_SHAPE(2)));
	return net;
}

static void test_exit(void)
{
#ifdef __SANITIZE_ADDRESS__
	return; /* it loses what the trace had allocated, as doc/threads.md says */
#endif
	struct sl_block *net = calloc(1, sizeof *net);
	pthread_t thread;
	void *result = net;
	CHECK_OK(sl_block_init(net, "Ends", exit_forward, NULL));
	CHECK_OK(sl_hybridize(net));
	CHECK(pthread_create(&thread, NULL, exit_within, net) == 0 && pthread_join(thread, &result) == 0 && !result);
	CHECK_OK(sl_hybridize(net, .off = true));
	SL_SCOPE
		CHECK(sl_forward(net, sl_ones(SL_SHAPE(2))) != NULL);
	sl_block_free(net);
}

static void *wait_often(void *unused)
{
	for (;;)
		SL_SCOPE {
			sl_tensor *x = sl_ones(SL_SHAPE(300, 300));
			sl_wait(sl_dot(x, x));
			sl_wait_all();
			pthread_testcancel();
		}
	return unused;
}

static void test_cancel(void)
{
#ifdef __SANITIZE_ADDRESS__
	return; /* it writes to the stack of a thread that was cancelled */
#endif
	pthread_t threads[4];
	for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, wait_often, NULL) == 0);
	usleep(20000);
	for (int i = 0; i < 4; i++) {
		void *result = NULL;
		pthread_cancel(threads[i]);
		pthread_join(threads[i], &result);
		CHECK(result == PTHREAD_CANCELED);
	}
	CHECK_OK(sl_wait_all());
}

static void *use_little_stack(void *path)
{
	struct run r = run_new();
	struct whole whole = {sl_step_compile(r.net, loss_of, r.trainer)};
	sl_block *net = sl_sequential(sl_conv2d_layer(4, .kernel = {3}), sl_batch_norm_layer(), sl_dense(3));
	CHECK(train(r.net, r.trainer) && step_whole(&whole));
	CHECK_OK(sl_initialize(net));
	CHECK_OK(sl_hybridize(net));
	for (int i = 0; i < 2; i++)
		SL_SCOPE {
			sl_tensor *loss;
			SL_RECORD
				loss = sl_sum(sl_forward(net, sl_ones(SL_SHAPE(2, 3, 8, 8))));
			CHECK_OK(sl_backward(loss));
			CHECK_OK(sl_wait_all());
		}
	CHECK_OK(sl_checkpoint_save(path, .trainer = r.trainer));
	CHECK_OK(sl_checkpoint_load(path, .trainer = r.trainer));
	SL_SCOPE {
		CHECK_NULL(sl_add(sl_ones(SL_SHAPE(2)), sl_ones(SL_SHAPE(3))), SL_ESHAPE, "add");
		sl_fprint(stderr, sl_ones(SL_SHAPE(2, 2)));
	}
	sl_block_free(net);
	sl_step_free(whole.step);
	run_free(&r);
	return NULL;
}

static void test_small_stack(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	char path[PATH_MAX];
	slp_scratch_path("small.safetensors", path);
	CHECK(pthread_attr_init(&attr) == 0 && pthread_attr_setstacksize(&attr, 128 << 10) == 0);
	CHECK(pthread_create(&thread, &attr, use_little_stack, path) == 0 && pthread_join(thread, NULL) == 0);
	pthread_attr_destroy(&attr);
}

/* ---- the end ------------------------------------------------------------------------------------------------------- */

static bool compute(void *unused)
{
	bool ok = false;
	(void)unused;
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(64, 64));
		float v[64 * 64];
		for (int i = 0; i < 8; i++) x = sl_mul_scalar(sl_dot(x, x), 1.0 / 64);
		ok = x && sl_read(x, v, sizeof v) == SL_OK;
	}
	return ok;
}

static bool build(void *unused)
{
	(void)unused;
	sl_block *net = sl_sequential(sl_dense(4, .in_units = 4), sl_dense(2, .in_units = 4));
	bool ok = net && sl_initialize(net) == SL_OK && sl_hybridize(net) == SL_OK && forward(net);
	sl_block_free(net);
	return ok;
}

static void test_shutdown(void)
{
	struct worker w[2];
	bool (*const what[])(void *) = {compute, build};
	for (int i = 0; i < 2; i++) begin(&w[i], what[i], NULL);
	for (int i = 0; i < (slp_long() ? 1000 : 5); i++) {
		long before[2] = {w[0].times, w[1].times};
		double end_time = sl_time() + SLP_PATIENCE;
		while ((w[0].times == before[0] || w[1].times == before[1]) && sl_time() < end_time) usleep(500);
		sl_shutdown();
		CHECK(sl_error() == SL_OK);
	}
	for (int i = 0; i < 2; i++) end(&w[i]);
	while (sl_is_initialized()) sl_shutdown();
	CHECK_OK(sl_init(NULL));
}

static sl_tensor *shutdown_forward(sl_tensor *x)
{
	sl_shutdown();
	return x;
}

static void test_shutdown_within(void)
{
	sl_block *b = sl_lambda("stops", shutdown_forward);
	SL_SCOPE
		CHECK(sl_forward(b, sl_ones(SL_SHAPE(2))) != NULL);
	CHECK_STATUS(sl_error(), SL_ESTATE, "sl_shutdown", "within sl_forward", "test_thread_ends.c:");
	sl_error_clear();
	CHECK(sl_is_initialized());
	sl_block_free(b);
}

int main(int argc, char **argv)
{
	static const struct slp_test tests[] = {{"exit", test_exit},
	                                        {"cancel", test_cancel},
	                                        {"small stack", test_small_stack},
	                                        {"shutdown", test_shutdown},
	                                        {"shutdown within", test_shutdown_within},
	                                        {0}};
	static const struct slp_suite suites[] = {
	        {.name = "ends", .tests = tests, .start = slp_start_with_scratch, .stop = slp_stop_with_scratch}, {0}};
	return slp_test_main(argc, argv, suites);
}
