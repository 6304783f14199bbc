/* Children of a fork while other threads are in the midst of calls: what a child calls is an error or works, and waits for no
 * thread that is not there (doc/threads.md). */
#include <signal.h>
#include <sys/wait.h>

#include "beside.h"

enum { CHILD_PATIENCE = 60 }; /* seconds, on a busy machine */

/* AddressSanitizer of gcc 12 does not lock its allocator for a fork: a child may wait for it for ever. */
#ifdef __SANITIZE_ADDRESS__
enum { MAY_HANG = 1 };
#else
enum { MAY_HANG = 0 };
#endif

static struct {
	struct run run;
	struct whole whole;
	sl_block *net;
	sl_loader *loader;
	sl_metric *metric;
	sl_cache *cache;
	char path[PATH_MAX], other[PATH_MAX];
} shared;

/* ---- what threads do meanwhile -------------------------------------------------------------------------------------- */

static bool save_run(void *r)
{
	return sl_checkpoint_save(shared.path, .trainer = ((struct run *)r)->trainer) == SL_OK;
}

static bool iterate(void *unused)
{
	(void)unused;
	SL_SCOPE {
		struct sl_batch b;
		if (sl_loader_next(shared.loader, &b)) sl_metric_add(shared.metric, sl_ones(SL_SHAPE(2)), NULL);
	}
	return sl_error() == SL_OK;
}

static bool make_network(void *unused)
{
	(void)unused;
	sl_block *net = sl_sequential(sl_dense(4, .in_units = 4, .activation = SL_RELU), sl_dense(2, .in_units = 4));
	bool ok = net && sl_initialize(net) == SL_OK && sl_hybridize(net) == SL_OK && forward(net);
	sl_block_free(net);
	return ok;
}

/* Errors have locks of their own. */
static bool err(void *unused)
{
	(void)unused;
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2));
		sl_add(x, sl_ones(SL_SHAPE(3)));
		sl_error_clear();
	}
	return true;
}

/* ---- what a child does ---------------------------------------------------------------------------------------------- */

static void call_everything(sl_tensor *kept)
{
	struct sl_batch b;
	struct sl_stats stats;
	float v[WIDTH];
	SL_SCOPE {
		sl_add(kept, kept);
		sl_read(kept, v, sizeof v);
		sl_wait(kept);
		sl_forward(shared.net, sl_ones(SL_SHAPE(3, 4)));
		sl_forward(shared.net, kept);
		SL_RECORD
			sl_backward(sl_sum(kept));
		sl_attach_grad(kept);
		sl_trainer_step(shared.run.trainer, 1);
		step_whole(&shared.whole);
		sl_loader_next(shared.loader, &b);
		sl_loader_end_epoch(shared.loader);
		sl_metric_add(shared.metric, kept, NULL);
		sl_metric_get(shared.metric);
		sl_cache_length(shared.cache);
		sl_checkpoint_save(shared.other, .trainer = shared.run.trainer);
		sl_checkpoint_end(sl_checkpoint_begin(shared.other, .trainer = shared.run.trainer));
		sl_checkpoint_load(shared.other, .trainer = shared.run.trainer);
		sl_save_params(shared.net, shared.other);
		sl_initialize(shared.net, .force = true);
		sl_hybridize(shared.net);
		sl_block_name(shared.net);
		sl_block_set_prefix(shared.net, "child_");
		sl_stats_get(&stats);
		sl_device_count(SL_DEVICE_CPU);
		sl_seed(1);
		sl_poll(kept, 0);
		sl_wait_all();
	}
	sl_error_clear();
	sl_file_discard(sl_file_begin(shared.other));
	sl_release(kept);
	sl_cache_free(shared.cache);
	sl_metric_free(shared.metric);
	sl_loader_free(shared.loader);
	sl_step_free(shared.whole.step);
	run_free(&shared.run);
	sl_block_free(shared.net);
	sl_shutdown();
}

static void child(sl_tensor *kept)
{
	signal(SIGALRM, SIG_DFL);
	alarm(CHILD_PATIENCE);
	call_everything(kept);
	sl_shutdown_at_exit();
	_exit(sl_init(NULL) == SL_ESTATE ? 0 : 3);
}

static void fork_often(int times)
{
	SL_SCOPE {
		sl_tensor *kept = sl_ones(SL_SHAPE(WIDTH));
		for (int i = 0; i < times; i++) {
			int status = -1;
			fflush(NULL);
			pid_t pid = fork();
			if (!pid) child(sl_retain(kept));
			CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
			if (MAY_HANG && WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) continue;
			CHECK_SAYING(status == 0, "child %d: status %#x (%s)", i, (unsigned)status,
			             WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "it hangs" : "not a hang");
			if (status) break;
			CHECK_OK(sl_wait(sl_add(kept, kept)));
		}
	}
}

static void test_forks(void)
{
	static bool (*const what[])(void *) = {train_run, step_whole, save_run, iterate, make_network, err};
	enum { THREADS = sizeof what / sizeof *what };
	static const float x[64];
	struct worker w[THREADS];
	void *of[THREADS] = {&shared.run, &shared.whole, &shared.run};
	sl_dataset *d = sl_dataset_arrays(((struct sl_array){x, SL_SHAPE(32, 2), SL_FLOAT32}), ((struct sl_array){0}));
	slp_scratch_path("run.safetensors", shared.path);
	slp_scratch_path("other.safetensors", shared.other);
	shared.run = run_new();
	shared.whole.step = sl_step_compile(shared.run.net, loss_of, shared.run.trainer, .reduction = SL_REDUCTION_SUM);
	shared.net = sl_sequential(sl_dense(8, .activation = SL_RELU), sl_dense(2));
	shared.loader = sl_loader_new(d, .batch_size = 4, .shuffle = true, .workers = 1);
	shared.metric = sl_mean_new();
	shared.cache = sl_cache_new(shared.net, 8);
	CHECK_OK(sl_initialize(shared.net));
	CHECK(forward(shared.net));
	for (int i = 0; i < THREADS; i++) begin(&w[i], what[i], of[i]);
	for (int i = 0; i < THREADS; i++) wait_for_first(&w[i]);
	fork_often(slp_long() ? 500 : 40);
	for (int i = 0; i < THREADS; i++) end(&w[i]);
	sl_cache_free(shared.cache);
	sl_metric_free(shared.metric);
	sl_loader_free(shared.loader);
	sl_dataset_free(d);
	sl_step_free(shared.whole.step);
	run_free(&shared.run);
	sl_block_free(shared.net);
}

int main(int argc, char **argv)
{
	static const struct slp_test tests[] = {{"forks", test_forks}, {0}};
	static const struct slp_suite suites[] = {
	        {.name = "children", .tests = tests, .start = slp_start_with_scratch, .stop = slp_stop_with_scratch},
	        {0}};
	return slp_test_main(argc, argv, suites);
}
