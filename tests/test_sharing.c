/* Objects that several threads share (doc/threads.md): what one thread at a time may do waits or says where the other one
 * is, and nothing crashes. */
#include "beside.h"

/* ---- two threads with one object ---------------------------------------------------------------------------------- */

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
	enum { MOST = 60 }; /* each child makes a forward longer, and a program to compile */
	if (sl_block_children(given) < MOST) return sl_block_add(given, NULL, sl_flatten_layer()) != NULL;
	sl_block *first = sl_dense(8);
	return sl_initialize(first) == SL_OK && sl_block_replace(given, "0", first) != NULL;
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

int main(int argc, char **argv)
{
	static const struct slp_test tests[] = {{"blocks", test_blocks},           {"children", test_children},
	                                        {"trainer", test_trainer},         {"gradients", test_gradients},
	                                        {"loader", test_loader},           {"file", test_file},
	                                        {"both places", test_both_places}, {0}};
	static const struct slp_suite suites[] = {
	        {.name = "objects", .tests = tests, .start = slp_start_with_scratch, .stop = slp_stop_with_scratch},
	        {0}};
	return slp_test_main(argc, argv, suites);
}
