/* Objects that several threads share (doc/threads.md): saves beside training are of one moment, what one thread at a
 * time may do waits or says where the other one is, and nothing crashes. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"
#include "folder.h"

enum { PARAMS = 8, WIDTH = 64 };

/* ---- a network whose parameters all have the same value, and a step adds 1 to it --------------------------------- */

struct net {
	sl_block base;
	sl_param *p[PARAMS];
};

static sl_tensor *net_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	sl_tensor *y = in[0];
	for (int i = 0; i < PARAMS && nin; i++) y = sl_sub(y, sl_param_use(((struct net *)self)->p[i], in[0]));
	return y;
}

static sl_block *net_new(void)
{
	struct net *n = calloc(1, sizeof *n);
	char name[16];
	CHECK_OK(sl_block_init(&n->base, "Net", net_forward, NULL));
	for (int i = 0; i < PARAMS; i++) {
		snprintf(name, sizeof name, "p%d", i);
		n->p[i] = sl_block_param(&n->base, name, SL_SHAPE(WIDTH), .init = sl_zeros_init());
	}
	CHECK_OK(sl_initialize(&n->base));
	return &n->base;
}

static bool train(sl_block *net, sl_trainer *trainer)
{
	bool ok = false;
	SL_SCOPE {
		sl_tensor *loss;
		SL_RECORD
			loss = sl_sum(sl_forward(net, sl_zeros(SL_SHAPE(WIDTH))));
		ok = sl_backward(loss) == SL_OK && sl_trainer_step(trainer, 1) == SL_OK;
	}
	return ok;
}

/* ---- a thread that does something until it is told to stop -------------------------------------------------------- */

struct worker {
	pthread_t thread;
	bool (*work)(void *of); /* false: an error that is not SL_ESTATE ends it */
	void *of;
	atomic_bool stop;
	atomic_long times, refused;
	char message[512];
};

static void *work(void *given)
{
	struct worker *w = given;
	while (!atomic_load(&w->stop) && !w->message[0]) {
		bool ok = w->work(w->of);
		if (ok) atomic_fetch_add(&w->times, 1);
		else if (sl_error() == SL_ESTATE || strstr(sl_error_message(), "lost its values in sl_shutdown"))
			atomic_fetch_add(&w->refused, 1);
		else snprintf(w->message, sizeof w->message, "%s", sl_error_message());
		sl_error_clear();
	}
	return NULL;
}

static void begin(struct worker *w, bool (*what)(void *), void *of)
{
	*w = (struct worker){.work = what, .of = of};
	CHECK(pthread_create(&w->thread, NULL, work, w) == 0);
}

static void end(struct worker *w)
{
	atomic_store(&w->stop, true);
	pthread_join(w->thread, NULL);
	CHECK_SAYING(!w->message[0], "%s", w->message);
}

/* Two things at the same time, each often enough. */
static void together(bool (*a)(void *), void *of_a, bool (*b)(void *), void *of_b)
{
	enum { TIMES = 40 };
	struct worker first, second;
	double end_time = sl_time() + SLP_PATIENCE;
	begin(&first, a, of_a);
	begin(&second, b, of_b);
	while ((first.times + first.refused < TIMES || second.times + second.refused < TIMES) && sl_time() < end_time &&
	       !first.message[0] && !second.message[0])
		usleep(1000);
	end(&first);
	end(&second);
	CHECK(first.times + first.refused >= TIMES && second.times + second.refused >= TIMES);
	CHECK_OK(sl_wait_all());
}

/* ---- saves -------------------------------------------------------------------------------------------------------- */

struct run {
	sl_block *net;
	sl_trainer *trainer;
};

static bool train_run(void *given)
{
	struct run *r = given;
	return train(r->net, r->trainer);
}

static struct run run_new(void)
{
	sl_block *net = net_new();
	return (struct run){net, sl_trainer_new(net, sl_sgd(.lr = 1, .momentum = 0.5))};
}

static void run_free(struct run *r)
{
	sl_trainer_free(r->trainer);
	sl_block_free(r->net);
}

/* All elements of all parameters are one number; that. */
static double only_value(sl_block *net, const char *what)
{
	sl_param *list[PARAMS];
	float v[WIDTH], first = 0;
	bool same = sl_block_params(net, list, PARAMS) == PARAMS;
	for (int i = 0; i < PARAMS; i++) {
		CHECK_OK(sl_read(sl_param_data(list[i]), v, sizeof v));
		if (i == 0) first = v[0];
		for (int k = 0; k < WIDTH; k++) same &= v[k] == first;
	}
	CHECK_SAYING(same, "%s mixes steps", what);
	return (double)first;
}

/* After n steps of +1 with momentum 1/2. */
static double value_after(int64_t n)
{
	double value = 0, momentum = 0;
	for (int64_t i = 0; i < n; i++) value += momentum = momentum / 2 + 1;
	return (double)(float)value;
}

static void check_checkpoint(const char *path)
{
	struct run r = run_new();
	CHECK_OK(sl_checkpoint_load(path, .trainer = r.trainer));
	double value = only_value(r.net, "a checkpoint"), wanted = value_after(sl_trainer_steps(r.trainer));
	CHECK_SAYING(fabs(value - wanted) < 1e-3 * (1 + wanted), "%g after %lld steps, not %g", value,
	             (long long)sl_trainer_steps(r.trainer), wanted);
	run_free(&r);
}

static void check_params(const char *path)
{
	sl_block *net = net_new();
	CHECK_OK(sl_load_params(net, path));
	only_value(net, path);
	sl_block_free(net);
}

/* The parameters are those of the file's step: for a file of a trainer, its momentum. */
static void check_trainer(const char *path)
{
	struct run r = run_new();
	CHECK_OK(sl_trainer_load(r.trainer, path));
	/* Another step shows the momentum: what all parameters have in common. */
	CHECK(train(r.net, r.trainer));
	only_value(r.net, path);
	run_free(&r);
}

static void check_onnx(const char *path)
{
	SL_SCOPE {
		sl_block *net = sl_import_onnx(path);
		float v[WIDTH];
		sl_tensor *y = sl_forward(net, sl_zeros(SL_SHAPE(WIDTH)));
		CHECK_OK(sl_read(y, v, sizeof v));
		sl_block_free(net);
	}
}

static void test_saves(void)
{
	struct run r = run_new();
	struct worker w;
	char path[PATH_MAX], params[PATH_MAX], tensors[PATH_MAX], state[PATH_MAX], onnx[PATH_MAX], prefix[PATH_MAX];
	slp_scratch_path("run.safetensors", path);
	slp_scratch_path("net.params", params);
	slp_scratch_path("net.safetensors", tensors);
	slp_scratch_path("trainer.params", state);
	slp_scratch_path("net.onnx", onnx);
	slp_scratch_path("net", prefix);
	begin(&w, train_run, &r);
	for (int i = 0; i < (slp_long() ? 10000 : 15); i++) {
		CHECK_OK(sl_checkpoint_save(path, .trainer = r.trainer));
		check_checkpoint(path);
		CHECK_OK(sl_checkpoint_end(sl_checkpoint_begin(path, .trainer = r.trainer)));
		check_checkpoint(path);
		CHECK_OK(sl_save_params(r.net, params));
		check_params(params);
		CHECK_OK(sl_save_params(r.net, tensors));
		check_params(tensors);
		CHECK_OK(sl_trainer_save(r.trainer, state));
		check_trainer(state);
		CHECK_OK(sl_export_onnx(r.net, onnx, SL_SHAPES(SL_SHAPE(WIDTH))));
		check_onnx(onnx);
		CHECK_OK(sl_export(r.net, prefix, SL_SHAPES(SL_SHAPE(WIDTH))));
	}
	end(&w);
	CHECK(w.times > 0);
	run_free(&r);
}

static sl_tensor *loss_of(const char *at, sl_tensor *y, sl_tensor *target)
{
	return sl_sum_at(at, sl_add_at(at, y, target), (struct sl_reduce_opts){0});
}

struct whole {
	sl_step *step;
};

static bool step_whole(void *given)
{
	struct whole *w = given;
	bool ok = false;
	SL_SCOPE
		ok = sl_step_run(w->step, sl_zeros(SL_SHAPE(WIDTH)), sl_zeros(SL_SHAPE(WIDTH)), NULL) != NULL;
	return ok;
}

static void test_saves_beside_programs(void)
{
	struct run r = run_new();
	struct whole whole = {sl_step_compile(r.net, loss_of, r.trainer, .reduction = SL_REDUCTION_SUM)};
	struct worker w;
	char path[PATH_MAX], params[PATH_MAX];
	slp_scratch_path("run.safetensors", path);
	slp_scratch_path("net.params", params);
	CHECK(step_whole(&whole));
	begin(&w, step_whole, &whole);
	for (int i = 0; i < (slp_long() ? 2000 : 20); i++) {
		CHECK_OK(sl_checkpoint_save(path, .trainer = r.trainer));
		check_checkpoint(path);
		CHECK_OK(sl_save_params(r.net, params));
		check_params(params);
	}
	end(&w);
	CHECK(w.times > 0);
	sl_step_free(whole.step);
	run_free(&r);
}

/* ---- two threads with one object ---------------------------------------------------------------------------------- */

static bool forward(void *given)
{
	bool ok = false;
	SL_SCOPE {
		sl_tensor *y = sl_forward(given, sl_ones(SL_SHAPE(3, 4)));
		ok = y && sl_wait(y) == SL_OK;
	}
	return ok;
}

static bool forward_and_back(void *given)
{
	bool ok = false;
	SL_SCOPE {
		sl_tensor *loss;
		SL_RECORD
			loss = sl_sum(sl_forward(given, sl_ones(SL_SHAPE(3, 4))));
		ok = loss && sl_backward(loss) == SL_OK;
	}
	return ok;
}

static bool hybridize(void *given)
{
	return sl_hybridize(given) == SL_OK;
}

static bool initialize(void *given)
{
	return sl_initialize(given, .force = true) == SL_OK;
}

static bool rename_block(void *given)
{
	bool named = sl_block_name(given) != NULL;
	return named && sl_block_set_prefix(given, "other_") == SL_OK;
}

static void test_blocks(void)
{
	sl_block *net = sl_sequential(sl_dense(8, .activation = SL_RELU), sl_dense(2));
	CHECK_OK(sl_initialize(net));
	CHECK(forward(net));
	together(hybridize, net, hybridize, net);
	together(hybridize, net, forward, net);
	together(hybridize, net, forward_and_back, net);
	CHECK_OK(sl_hybridize(net, .off = true));
	together(initialize, net, forward, net);
	together(initialize, net, forward_and_back, net);
	together(forward_and_back, net, forward_and_back, net);
	together(rename_block, net, forward, net);
	sl_block_free(net);
}

static bool add_child(void *given)
{
	return sl_block_add(given, NULL, sl_flatten_layer()) != NULL;
}

static void test_children(void)
{
	sl_block *net = sl_sequential(sl_dense(8), sl_dense(2));
	CHECK_OK(sl_initialize(net));
	CHECK_OK(sl_hybridize(net));
	together(add_child, net, forward, net);
	sl_block_free(net);
}

static bool count_steps(void *given)
{
	return sl_trainer_steps(((struct run *)given)->trainer) >= 0;
}

static void test_trainer(void)
{
	struct run r = run_new();
	together(train_run, &r, train_run, &r);
	together(train_run, &r, count_steps, &r);
	run_free(&r);
}

static bool attach(void *t)
{
	return sl_attach_grad(t) == SL_OK;
}

static bool back(void *t)
{
	bool ok = false;
	SL_SCOPE {
		sl_tensor *loss;
		SL_RECORD
			loss = sl_sum(sl_mul(t, t));
		ok = loss && sl_backward(loss) == SL_OK;
	}
	return ok;
}

static bool look_at_gradient(void *t)
{
	float v[4];
	sl_tensor *g = sl_grad(t);
	return g && sl_read(g, v, sizeof v) == SL_OK;
}

static void test_gradients(void)
{
	sl_tensor *t = NULL;
	SL_SCOPE
		t = sl_retain(sl_ones(SL_SHAPE(4)));
	CHECK_OK(sl_attach_grad(t));
	together(attach, t, back, t);
	together(attach, t, attach, t);
	together(back, t, back, t);
	together(back, t, look_at_gradient, t);
	sl_release(t);
}

/* Each sample of the epochs comes once, to whatever thread. */
enum { SAMPLES = 240, EPOCHS = 5 };
struct readers {
	sl_loader *loader;
	atomic_int seen[SAMPLES];
	atomic_int ends;
};

static void *read_all(void *given)
{
	struct readers *r = given;
	while (atomic_load(&r->ends) < EPOCHS)
		SL_SCOPE {
			struct sl_batch b;
			float v[8];
			bool more = sl_loader_next(r->loader, &b);
			if (!more) {
				if (sl_error() != SL_OK) atomic_store(&r->ends, 2 * EPOCHS);
				else atomic_fetch_add(&r->ends, 1);
			} else if (sl_read(b.x, v, sl_tensor_bytes(b.x)) == SL_OK) {
				for (int64_t i = 0; i < sl_tensor_size(b.x); i++)
					atomic_fetch_add(&r->seen[(int)v[i]], 1);
			}
		}
	return NULL;
}

static void test_loader_of(int workers)
{
	enum { THREADS = 4 };
	static float x[SAMPLES];
	pthread_t threads[THREADS];
	struct readers r = {0};
	for (int i = 0; i < SAMPLES; i++) x[i] = (float)i;
	sl_dataset *d =
	        sl_dataset_arrays(((struct sl_array){x, SL_SHAPE(SAMPLES), SL_FLOAT32}), ((struct sl_array){0}));
	r.loader = sl_loader_new(d, .batch_size = 8, .shuffle = true, .workers = workers);
	for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, read_all, &r) == 0);
	for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
	CHECK(r.ends >= EPOCHS && r.ends < 2 * EPOCHS);
	for (int i = 0; i < SAMPLES; i++)
		CHECK_SAYING(r.seen[i] >= EPOCHS && r.seen[i] <= r.ends + 1, "sample %d came %d times in %d epochs", i,
		             r.seen[i], r.ends);
	sl_loader_free(r.loader);
	sl_dataset_free(d);
}

static void test_loader(void)
{
	test_loader_of(0);
	test_loader_of(2);
}

static void test_file(void)
{
	char path[PATH_MAX];
	sl_file *f = sl_file_begin(slp_scratch_path("twice", path));
	CHECK(fprintf(sl_file_stream(f), "once\n") > 0);
	sl_file *twice[] = {f, f};
	CHECK_STATUS(sl_file_commit_all(twice, 2), SL_ESTATE, "already");
	f = sl_file_begin(path);
	CHECK_OK(sl_file_commit(f));
	CHECK_STATUS(sl_file_commit(f), SL_ESTATE, "already");
	sl_file_discard(f);
}

/* ---- what waits for nobody ---------------------------------------------------------------------------------------- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int inside;
	sl_loader *loaders[2];
	enum sl_status status[2];
	char message[2][512];
} pair = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static int count_of(const char *text, const char *what)
{
	int n = 0;
	for (const char *p = text; (p = strstr(p, what)); p++) n++;
	return n;
}

/* In both loaders at the same time; then each asks for the other. */
static bool get_pair(void *self, struct sl_sample *s)
{
	int me = *(int *)self;
	*(float *)s->x = 1;
	pthread_mutex_lock(&pair.lock);
	pair.inside++;
	pthread_cond_broadcast(&pair.changed);
	while (pair.inside < 2) pthread_cond_wait(&pair.changed, &pair.lock);
	pthread_mutex_unlock(&pair.lock);
	struct sl_batch b;
	if (!pair.message[me][0] && !sl_loader_next(pair.loaders[!me], &b)) {
		pair.status[me] = sl_error();
		snprintf(pair.message[me], sizeof pair.message[me], "%s", sl_error_message());
		sl_error_clear();
	}
	pthread_mutex_lock(&pair.lock); /* until the other one has asked, too */
	pair.inside++;
	pthread_cond_broadcast(&pair.changed);
	while (pair.inside < 4) pthread_cond_wait(&pair.changed, &pair.lock);
	pthread_mutex_unlock(&pair.lock);
	return true;
}

static void *next_of(void *loader)
{
	struct sl_batch b;
	SL_SCOPE
		sl_loader_next(loader, &b);
	sl_error_clear();
	return NULL;
}

static void test_both_places(void)
{
	static int numbers[2] = {0, 1};
	pthread_t other;
	for (int i = 0; i < 2; i++) {
		sl_dataset *d = sl_dataset_new(.size = 1, .x_shape = SL_SCALAR, .get = get_pair, .self = &numbers[i]);
		pair.loaders[i] = sl_loader_new(d, .batch_size = 1, .prefetch = 1);
		sl_dataset_free(d);
	}
	CHECK(pthread_create(&other, NULL, next_of, pair.loaders[0]) == 0);
	next_of(pair.loaders[1]);
	pthread_join(other, NULL);
	for (int i = 0; i < 2; i++) {
		CHECK_SAYING(pair.status[i] == SL_ESTATE, "%s", pair.message[i]);
		CHECK_SAYING(strstr(pair.message[i], "another thread") &&
		                     count_of(pair.message[i], "test_sharing.c:") >= 2,
		             "not both places: %s", pair.message[i]);
		sl_loader_free(pair.loaders[i]);
	}
}

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
	CHECK_STATUS(sl_error(), SL_ESTATE, "sl_shutdown", "within sl_forward", "test_sharing.c:");
	sl_error_clear();
	CHECK(sl_is_initialized());
	sl_block_free(b);
}

static const struct slp_test saves[] = {
        {"beside training", test_saves}, {"beside programs", test_saves_beside_programs}, {0}};

static const struct slp_test objects[] = {{"blocks", test_blocks},           {"children", test_children},
                                          {"trainer", test_trainer},         {"gradients", test_gradients},
                                          {"loader", test_loader},           {"file", test_file},
                                          {"both places", test_both_places}, {0}};

static const struct slp_test ends[] = {{"exit", test_exit},
                                       {"cancel", test_cancel},
                                       {"small stack", test_small_stack},
                                       {"shutdown", test_shutdown},
                                       {"shutdown within", test_shutdown_within},
                                       {0}};

int main(int argc, char **argv)
{
	static const struct slp_suite suites[] = {
	        {.name = "saves", .tests = saves, .start = slp_start_with_scratch, .stop = slp_stop_with_scratch},
	        {.name = "objects", .tests = objects, .start = slp_start_with_scratch, .stop = slp_stop_with_scratch},
	        {.name = "ends", .tests = ends, .start = slp_start_with_scratch, .stop = slp_stop_with_scratch},
	        {0}};
	return slp_test_main(argc, argv, suites);
}
