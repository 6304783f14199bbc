/* Loaders whose batches worker threads read: the same with any number of them, resumed, after errors, without memory.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <starling.h>

#include "alloc.h"
#include "check.h"
#include "folder.h"

enum { SIZE = 50, WIDTH = 3 };

/* Sample i is i, a random number, another one; its label is i modulo 7.  Some fail, as `failing` says. */
static _Atomic int64_t failing = -1;
static _Atomic int calls, freed;

static bool get(void *self, struct sl_sample *s)
{
	(void)self;
	atomic_fetch_add(&calls, 1);
	if (s->index == atomic_load(&failing) ||
	    (atomic_load(&failing) >= 0 && s->index == atomic_load(&failing) + 9)) {
		if (s->index % 2) return false;
		sl_error_raise(SL_EIO, s->index == failing ? "the first disk is gone" : "the second disk is gone");
		return false;
	}
	float *x = s->x;
	x[0] = (float)s->index;
	for (int i = 1; i < WIDTH; i++) x[i] = (float)sl_sample_uniform(s);
	*(int32_t *)s->y = (int32_t)(s->index % 7);
	return true;
}

static void count_freed(void *self)
{
	(void)self;
	atomic_fetch_add(&freed, 1);
}

static sl_dataset *numbers(void)
{
	sl_dataset *d = sl_dataset_new(.size = SIZE, .x_shape = SL_SHAPE(WIDTH), .y_dtype = SL_INT32, .classes = 7,
	                               .get = get, .free = count_freed);
	CHECK_SAYING(d != NULL, "%s", sl_error_message());
	return d;
}

/* What two epochs handed out. */
struct record {
	int rows, batches;
	float x[3 * SIZE][WIDTH];
	int32_t y[3 * SIZE];
};

static bool note(sl_loader *l, struct record *r)
{
	struct sl_batch b;
	bool more = false;
	SL_SCOPE {
		if (!(more = sl_loader_next(l, &b))) break;
		CHECK(b.index == r->batches % sl_loader_batches(l));
		CHECK_OK(sl_read(b.x, r->x[r->rows], sl_tensor_bytes(b.x)));
		CHECK_OK(sl_read(b.y, r->y + r->rows, sl_tensor_bytes(b.y)));
		r->rows += (int)sl_tensor_size(b.y);
		r->batches++;
	}
	return more;
}

static void note_all(sl_loader *l, struct record *r)
{
	*r = (struct record){0};
	for (int epoch = 0; epoch < 2; epoch++)
		while (note(l, r)) continue;
	CHECK_SAYING(sl_error() == SL_OK, "%s", sl_error_message());
}

static bool same(const struct record *a, const struct record *b)
{
	return a->rows == b->rows && !memcmp(a->x, b->x, sizeof a->x) && !memcmp(a->y, b->y, sizeof a->y);
}

static sl_loader *loader(sl_dataset *d, int workers, int64_t batch, uint64_t seed)
{
	sl_loader *l = sl_loader_new(d, .batch_size = batch, .shuffle = true, .seed = seed, .workers = workers,
	                             .prefetch = 1 + workers);
	CHECK_SAYING(l != NULL, "%s", sl_error_message());
	return l;
}

/* Orders and random numbers depend on the seed and the epoch alone. */
static void test_workers(void)
{
	static struct record first, other;
	sl_dataset *d = numbers();
	for (int workers = 0; workers <= 4; workers += workers ? 3 : 1) {
		sl_loader *l = loader(d, workers, 8, 5);
		note_all(l, workers ? &other : &first);
		CHECK_SAYING(!workers || same(&first, &other), "with %d workers it is another epoch", workers);
		sl_loader_free(l);
	}
	int seen[SIZE] = {0}, redrawn = 0;
	float drawn[SIZE] = {0};
	CHECK(first.rows == 2 * SIZE);
	for (int i = 0; i < 2 * SIZE; i++) {
		int n = (int)first.x[i][0];
		CHECK(first.y[i] == n % 7 && first.x[i][1] >= 0 && first.x[i][1] < 1 && first.x[i][1] != first.x[i][2]);
		seen[n]++;
		redrawn += i >= SIZE && drawn[n] != first.x[i][1];
		drawn[n] = first.x[i][1];
	}
	for (int i = 0; i < SIZE; i++) CHECK_SAYING(seen[i] == 2, "sample %d came %d times", i, seen[i]);
	CHECK_SAYING(redrawn == SIZE, "%d of %d samples have other random numbers in the second epoch", redrawn, SIZE);
	sl_loader *l = loader(d, 2, 8, 6);
	note_all(l, &other);
	CHECK(!same(&first, &other));
	sl_loader_free(l);
	l = loader(d, 2, 20, 5); /* other batches of the same order */
	note_all(l, &other);
	CHECK(!memcmp(first.x, other.x, sizeof first.x));
	sl_loader_free(l);
	int before = atomic_load(&freed);
	sl_dataset_free(d);
	CHECK(atomic_load(&freed) == before + 1);
}

/* A run that goes on in the middle of an epoch. */
static void test_resume(void)
{
	static struct record whole, part;
	char path[PATH_MAX];
	slp_scratch_path("run.safetensors", path);
	sl_dataset *d = numbers();
	sl_loader *l = loader(d, 2, 8, 5);
	note_all(l, &whole);
	sl_loader_free(l);
	l = loader(d, 2, 8, 5);
	part = (struct record){0};
	for (int i = 0; i < 10; i++) CHECK(note(l, &part) || note(l, &part)); /* 3 batches into the second epoch */
	CHECK_OK(sl_checkpoint_save(path, .loader = l));
	sl_loader_free(l);
	l = loader(d, 0, 8, 77);
	note(l, &(struct record){0}); /* it stands elsewhere, and has asked for more */
	CHECK_OK(sl_checkpoint_load(path, .loader = l));
	while (note(l, &part)) continue;
	CHECK_SAYING(same(&whole, &part), "it goes on elsewhere");
	sl_loader_free(l);
	sl_dataset *small = sl_dataset_range(d, 1, SIZE - 1);
	l = loader(small, 0, 8, 5);
	CHECK_STATUS(sl_checkpoint_load(path, .loader = l), SL_EINVAL, "samples: 50 in the file, 49 here");
	sl_error_clear();
	sl_loader_free(l);
	sl_dataset_free(small);
	sl_dataset_free(d);
}

/* The first sample of the batch that fails is reported, whoever read it; then the epoch begins anew. */
static void check_failing(int workers)
{
	sl_dataset *d = numbers();
	sl_loader *l = sl_loader_new(d, .batch_size = 25, .workers = workers);
	struct sl_batch b;
	atomic_store(&failing, 34);
	CHECK(sl_loader_next(l, &b));
	sl_release(b.x);
	sl_release(b.y);
	CHECK(!sl_loader_next(l, &b) && !b.x && !b.y);
	CHECK(sl_error() == SL_EIO && strstr(sl_error_message(), "sl_loader_next at ") &&
	      strstr(sl_error_message(), "sample 34: ") && strstr(sl_error_message(), "the first disk is gone"));
	sl_error_clear();
	atomic_store(&failing, 33);
	while (sl_loader_next(l, &b)) {
		sl_release(b.x);
		sl_release(b.y);
	}
	CHECK(sl_error() == SL_EINVAL && strstr(sl_error_message(), "sample 33: the data set's function failed"));
	sl_error_clear();
	atomic_store(&failing, -1);
	struct record r = {0};
	while (note(l, &r)) continue;
	CHECK(r.rows == SIZE && r.x[0][0] == 0 && r.x[SIZE - 1][0] == SIZE - 1);
	sl_loader_free(l);
	sl_dataset_free(d);
	CHECK_OK(sl_wait_all()); /* workers leave no error behind */
}

static void test_failing(void)
{
	check_failing(0);
	check_failing(3);
}

/* An error that is pending stays the program's: reading goes on all the same. */
static void test_pending(void)
{
	sl_dataset *d = numbers();
	sl_loader *l = sl_loader_new(d, .batch_size = 10, .workers = 0);
	struct sl_batch b;
	sl_error_raise(SL_ETIME, "too late");
	CHECK(sl_loader_next(l, &b) && sl_error() == SL_ETIME);
	sl_error_clear();
	sl_release(b.x);
	sl_release(b.y);
	sl_loader_free(l);
	sl_dataset_free(d);
}

static int threads_now(void)
{
	int n = 0;
	char line[256];
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof line, f)) sscanf(line, "Threads: %d", &n);
	if (f) fclose(f);
	return n;
}

/* The kernel counts a thread for a moment after it was joined. */
static bool threads_become(int n)
{
	for (long i = 0; threads_now() != n && i < 10000l * SLP_PATIENCE; i++) usleep(100);
	return threads_now() == n;
}

/* Workers end with their loader, also in the middle of an epoch, and outlive the engine. */
static void test_end(void)
{
	sl_dataset *d = numbers();
	CHECK_OK(sl_init(NULL));
	int before = threads_now();
	sl_loader *l = loader(d, 4, 8, 5), *unused = loader(d, 3, 8, 5);
	CHECK(threads_become(before + 7));
	struct sl_batch b;
	SL_SCOPE
		CHECK(sl_loader_next(l, &b));
	sl_loader_free(l);
	CHECK(threads_become(before + 3));
	sl_shutdown();
	sl_loader_free(unused);
	sl_dataset_free(d);
}

/* ---- where threads meet ----------------------------------------------------------------------------------------- */

static atomic_bool held; /* samples wait */

static bool get_later(void *self, struct sl_sample *s)
{
	(void)self;
	atomic_fetch_add(&calls, 1);
	for (long i = 0; atomic_load(&held) && i < 10000l * SLP_PATIENCE; i++) usleep(100);
	*(float *)s->x = (float)s->index;
	return true;
}

static void wait_for_calls(int n)
{
	for (long i = 0; atomic_load(&calls) < n && i < 10000l * SLP_PATIENCE; i++) usleep(100);
	CHECK(atomic_load(&calls) >= n);
}

static int in_child(sl_loader *l)
{
	struct sl_batch b;
	alarm(SLP_PATIENCE); /* it shall not hang */
	int wrong = sl_loader_next(l, &b) || sl_error() != SL_ESTATE || !strstr(sl_error_message(), "fork");
	sl_error_clear();
	sl_loader_free(l);
	return wrong;
}

/* A loader that the child of a fork finds, while its workers are in the middle of a sample: they are in the other
 * process. */
static void test_fork(void)
{
	sl_dataset *d = sl_dataset_new(.size = 8, .x_shape = SL_SHAPE(1), .get = get_later);
	sl_loader *l = sl_loader_new(d, .batch_size = 2, .workers = 2, .prefetch = 2);
	struct sl_batch b;
	int status = -1, n = 0;
	atomic_store(&calls, 0);
	SL_SCOPE
		CHECK(sl_loader_next(l, &b));
	wait_for_calls(6);
	atomic_store(&held, true);
	SL_SCOPE
		CHECK(sl_loader_next(l, &b)); /* was asked for long ago, and one more is now */
	wait_for_calls(7);
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		int wrong = in_child(l);
		_exit(wrong);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK_SAYING(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %x", (unsigned)status);
	atomic_store(&held, false);
	for (bool more = true; more; n += more)
		SL_SCOPE
			more = sl_loader_next(l, &b);
	CHECK(n == 2 && sl_error() == SL_OK);
	sl_loader_free(l);
	sl_dataset_free(d);
}

static sl_loader *own;

static bool get_of_itself(void *self, struct sl_sample *s)
{
	struct sl_batch b;
	(void)self;
	*(float *)s->x = 1;
	if (s->index != 3) return true;
	bool right = !sl_loader_next(own, &b) && sl_error() == SL_ESTATE;
	sl_error_clear();
	sl_loader_free(own);
	right &= sl_error() == SL_ESTATE && strstr(sl_error_message(), "gets the loader's samples");
	sl_error_clear();
	return right;
}

/* The function that gets samples asks the loader for some: it would wait for itself. */
static void test_of_itself(void)
{
	sl_dataset *d = sl_dataset_new(.size = 4, .x_shape = SL_SHAPE(1), .get = get_of_itself);
	for (int workers = 0; workers < 3; workers++) {
		struct sl_batch b;
		own = sl_loader_new(d, .batch_size = 4, .workers = workers);
		SL_SCOPE
			CHECK_SAYING(sl_loader_next(own, &b), "%s", sl_error_message());
		sl_loader_free(own);
	}
	sl_dataset_free(d);
}

/* Memory is that of prefetch + 1 batches: no more samples are asked for than these have. */
static void test_bounded(void)
{
	sl_dataset *d = numbers();
	sl_loader *l = sl_loader_new(d, .batch_size = 5, .workers = 3, .prefetch = 2);
	struct sl_batch b;
	atomic_store(&calls, 0);
	SL_SCOPE
		CHECK(sl_loader_next(l, &b));
	usleep(20000); /* there is nothing to wait for: more calls would come */
	int read = atomic_load(&calls);
	CHECK_SAYING(read <= 15, "%d samples were read for a batch of 5 and 2 ahead", read);
	sl_loader_free(l);
	sl_dataset_free(d);
	d = sl_dataset_new(.size = 10, .x_shape = SL_SHAPE(1ll << 40), .get = get);
	CHECK_NULL(sl_loader_new(d, .batch_size = 10), SL_ENOMEM);
	sl_dataset_free(d);
}

static void test_wrong(void)
{
	sl_dataset *d = numbers();
	CHECK_NULL(sl_loader_new(d, .batch_size = 1, .workers = -1), SL_EINVAL,
	           "workers is -1; it must be from 0 to 1024");
	sl_dataset_free(d);
	CHECK_NULL(sl_dataset_new(.size = 3), SL_EINVAL, ".get is NULL");
	CHECK_NULL(sl_dataset_new(.get = get), SL_EINVAL, "size is 0");
	CHECK_NULL(sl_dataset_new(.size = 3, .get = get, .x_shape = SL_SHAPE(-1)), SL_ESHAPE, "x_shape is not a shape");
}

/* ---- without memory --------------------------------------------------------------------------------------------- */

static sl_dataset *csv(void)
{
	char path[PATH_MAX];
	static const char text[] = "1,2,a\n3,4,b\n5,6,a\n";
	slp_write_scratch("a.csv", text, sizeof text - 1);
	return sl_dataset_csv(slp_scratch_path("a.csv", path));
}

static sl_dataset *npy(void)
{
	char path[PATH_MAX];
	static const char file[] = "\x93NUMPY\x01\0\x38\0{'descr': '<u2', 'fortran_order': False, 'shape': (3,)}\n"
	                           "\1\0\2\0\3";
	slp_write_scratch("a.npy", file, sizeof file);
	return sl_dataset_npy(slp_scratch_path("a.npy", path), NULL);
}

static sl_dataset *made_of_others(void)
{
	static float pixels[12];
	sl_dataset *made[4] = {NULL}, *parts[2] = {NULL}, *all = NULL;
	made[0] = sl_dataset_arrays(((struct sl_array){pixels, SL_SHAPE(3, 1, 2, 2), SL_FLOAT32}),
	                            ((struct sl_array){0}), .copy = true);
	made[1] = made[0] ? sl_dataset_range(made[0], 0, 2) : NULL;
	made[2] = made[1] ? sl_dataset_concat(made[0], made[1]) : NULL;
	if (made[2]) sl_dataset_split(made[2], 2, 1, parts);
	if (parts[0]) all = sl_dataset_transform(parts[0], sl_resize_image(.height = 3, .width = 3), sl_random_flip());
	for (int i = 0; i < 3; i++) sl_dataset_free(made[i]);
	for (int i = 0; i < 2; i++) sl_dataset_free(parts[i]);
	return all;
}

static sl_dataset *tokens(void)
{
	char path[PATH_MAX];
	slp_write_scratch("t", "abcdefg", 7);
	return sl_dataset_tokens(slp_scratch_path("t", path), .length = 3, .bytes = 1);
}

#if defined HAVE_PNG && defined HAVE_JPEG
/* The images that fuzz_images begins with. */
static sl_dataset *images(void)
{
	char path[PATH_MAX];
	const char *source = getenv("srcdir");
	snprintf(path, sizeof path, "%s/tests/fuzz/seeds", source ? source : ".");
	return sl_dataset_images(path, .height = 4, .width = 4);
}
#endif

/* An epoch of a set: its sum, or what went wrong. */
static enum sl_status epoch(sl_dataset *(*make)(void), int workers, double *sum)
{
	sl_dataset *d = make();
	sl_loader *l = d ? sl_loader_new(d, .batch_size = 2, .shuffle = true, .workers = workers) : NULL;
	*sum = 0;
	for (bool more = l != NULL; more;)
		SL_SCOPE {
			struct sl_batch b;
			if (!(more = sl_loader_next(l, &b))) break;
			double part = sl_item(sl_sum(sl_cast(b.x, SL_FLOAT32)));
			if (part != part) more = false;
			*sum += part;
		}
	sl_loader_free(l);
	sl_dataset_free(d);
	enum sl_status s = sl_error();
	if (s != SL_OK) return s;
	return d && l ? sl_wait_all() : SL_EINTERNAL; /* a failure without an error */
}

static void fail_each(const char *name, sl_dataset *(*make)(void), int workers)
{
	double right, sum;
	CHECK_SAYING(epoch(make, workers, &right) == SL_OK, "%s: %s", name, sl_error_message());
	atomic_store(&slp_fail_alloc, LONG_MAX);
	CHECK(epoch(make, workers, &sum) == SL_OK && sum == right);
	long count = LONG_MAX - atomic_exchange(&slp_fail_alloc, 0), failed = 0;
	for (long k = 1; k <= count; k++) {
		atomic_store(&slp_fail_alloc, k);
		enum sl_status s = epoch(make, workers, &sum);
		atomic_store(&slp_fail_alloc, 0);
		CHECK_SAYING(s == SL_ENOMEM || (s == SL_OK && sum == right), "%s, allocation %ld: %s, %s", name, k,
		             sl_status_name(s), sl_error_message());
		failed += s == SL_ENOMEM;
		sl_error_clear();
		while (sl_wait_all() != SL_OK) continue;
	}
	CHECK_SAYING(failed > 0, "%s: nothing failed", name);
	CHECK_SAYING(epoch(make, workers, &sum) == SL_OK && sum == right, "%s, afterwards: %s", name,
	             sl_error_message());
	printf("  %s, %d workers: %ld of %ld allocations made it fail\n", name, workers, failed, count);
}

static void test_memory(void)
{
	fail_each("csv", csv, 0);
	fail_each("npy", npy, 2);
	fail_each("made of others", made_of_others, 1);
	fail_each("tokens", tokens, 0);
#if defined HAVE_PNG && defined HAVE_JPEG
	fail_each("images", images, 1);
#endif
}

int main(int argc, char **argv)
{
	static const struct slp_test tests[] = {{"workers", test_workers},
	                                        {"resume", test_resume},
	                                        {"failing", test_failing},
	                                        {"pending", test_pending},
	                                        {"end", test_end},
	                                        {"bounded", test_bounded},
	                                        {"wrong", test_wrong},
	                                        {"fork", test_fork},
	                                        {"of itself", test_of_itself},
	                                        {"no memory", test_memory},
	                                        {NULL, NULL}};
	static const struct slp_suite suites[] = {
	        {.name = "workers", .tests = tests, .start = slp_start_with_scratch, .stop = slp_stop_with_scratch},
	        {0}};
	return slp_test_main(argc, argv, suites);
}
