/* Threads that end within calls, have little stack, or shut the engine down while others compute (doc/threads.md). */
#include <starling/own.h>
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

/* A kernel's thread is a worker, which nothing replaces: what ends it is the kernel's failure. */
static enum sl_status ending_kernel(const struct sl_op_call *c)
{
	((float *)c->out[0].data)[0] = 1;
	pthread_exit(NULL);
}

static enum sl_status cancelled_kernel(const struct sl_op_call *c)
{
	((float *)c->out[0].data)[0] = 1;
	pthread_cancel(pthread_self());
	pthread_testcancel();
	return SL_OK;
}

static void ending_part(void *unused, int64_t begin, int64_t end)
{
	(void)unused;
	if (begin <= 70 && 70 < end) pthread_exit(NULL);
}

static enum sl_status kernel_of_parts(const struct sl_op_call *c)
{
	(void)c;
	sl_parallel_for(100, 1, ending_part, NULL);
	return SL_OK;
}

static enum sl_status wait_for_kernel(const sl_op *op)
{
	enum sl_status s = SL_OK;
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(1));
		s = sl_wait(sl_op_apply(op, &x, 1));
	}
	return s;
}

static void test_kernels(void)
{
#ifdef __SANITIZE_ADDRESS__
	return; /* it does not see that the stack is used again */
#endif
	const sl_op *ending = sl_op_register(.name = "ending", .nin = 1, .cpu = ending_kernel),
	            *cancelled = sl_op_register(.name = "cancelled", .nin = 1, .cpu = cancelled_kernel),
	            *parts = sl_op_register(.name = "ending_parts", .nin = 1, .cpu = kernel_of_parts);
	for (int i = 0; i < 5; i++) {
		CHECK_STATUS(wait_for_kernel(ending), SL_EKERNEL, "ending", "ended the thread");
		CHECK_STATUS(wait_for_kernel(parts), SL_EKERNEL, "ending_parts", "ended its thread");
		CHECK_OK(wait_for_kernel(cancelled));
	}
}

static _Thread_local bool is_caller; /* of sl_loader_next, not a worker */
static atomic_int workers_ended;
static bool callers_end;

/* Sample 5 ends its thread: that of a worker, or the program's own. */
static bool ending_get(void *unused, struct sl_sample *s)
{
	(void)unused;
	if (s->index == 5 && is_caller == callers_end) {
		workers_ended += !is_caller;
		pthread_exit(NULL);
	}
	*(float *)s->x = (float)s->index;
	return true;
}

struct counts {
	int batches, mistakes;
};

/* Until the end of an epoch. */
static void *read_loader(void *loader)
{
	static struct counts n;
	is_caller = true;
	n = (struct counts){0};
	for (bool more = true; more;)
		SL_SCOPE {
			struct sl_batch b;
			more = sl_loader_next(loader, &b);
			n.batches += more;
			if (more || sl_error() == SL_OK) continue;
			more = n.mistakes++ < 5;
			CHECK(strstr(sl_error_message(), "ended its thread"));
			sl_error_clear();
		}
	return &n;
}

static struct counts *read_in_thread(sl_loader *loader)
{
	struct counts *n = NULL;
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, read_loader, loader) == 0);
	CHECK(pthread_join(thread, (void **)&n) == 0);
	return n;
}

static void read_with(int workers, void (*test)(sl_loader *loader))
{
#ifdef __SANITIZE_ADDRESS__
	return; /* memory that the call had allocated is lost */
#endif
	sl_dataset *d = sl_dataset_new(.size = 16, .x_shape = SL_SCALAR, .get = ending_get);
	sl_loader *loader = sl_loader_new(d, .batch_size = 4, .workers = workers, .prefetch = 1);
	test(loader);
	sl_loader_free(loader);
	sl_dataset_free(d);
}

/* Each thread reports the sample that ended the one before it, begins the epoch again, and is ended by it in turn. */
static void callers(sl_loader *loader)
{
	callers_end = true;
	for (int i = 0; i < 4; i++) CHECK(read_in_thread(loader) == NULL);
	callers_end = false;
	struct counts *n = read_in_thread(loader);
	CHECK(n && n->batches == 4 && n->mistakes == 1);
}

static void test_callers(void)
{
	read_with(0, callers);
}

/* Whoever waits for samples reads them itself if it is the quickest: how many workers end depends on that, but each
 * is reported once, and then the epoch begins again. (With .prefetch = 2 the next epoch's sample 5 would be read ahead.)
 */
static void readers(sl_loader *loader)
{
	for (int i = 0; i < 4; i++) {
		workers_ended = 0;
		struct counts *n = read_in_thread(loader);
		CHECK_SAYING(n && n->batches == 4 + n->mistakes && n->mistakes == workers_ended,
		             "%d batches, %d mistakes, %d workers ended", n ? n->batches : 0, n ? n->mistakes : 0,
		             workers_ended);
	}
}

static void test_readers(void)
{
	read_with(2, readers);
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
	                                        {"kernels", test_kernels},
	                                        {"callers", test_callers},
	                                        {"readers", test_readers},
	                                        {"cancel", test_cancel},
	                                        {"small stack", test_small_stack},
	                                        {"shutdown", test_shutdown},
	                                        {"shutdown within", test_shutdown_within},
	                                        {0}};
	static const struct slp_suite suites[] = {
	        {.name = "ends", .tests = tests, .start = slp_start_with_scratch, .stop = slp_stop_with_scratch}, {0}};
	return slp_test_main(argc, argv, suites);
}
