/* Data: the classes of a set, the loader's batches and orders, Fashion-MNIST. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "check.h"
#include "idx_files.h"

static void test_class_names(void)
{
	sl_dataset *d = idx_sample_set(20);
	CHECK(!strcmp(sl_dataset_class_name(d, 0), "0") && !strcmp(sl_dataset_class_name(d, 9), "9"));
	CHECK(!sl_dataset_class_name(d, 10) && !sl_dataset_class_name(d, -1) && !sl_dataset_class_name(NULL, 0));
	sl_dataset_free(d);
	CHECK(sl_dataset_size(NULL) == 0 && sl_dataset_classes(NULL) == 0);
	sl_dataset_free(NULL);
}

/* ---- the loader -------------------------------------------------------------------------------------------------- */

enum { MOST = 128 };

/* What an epoch handed out. */
struct epoch {
	int samples, batches, sizes[MOST];
	int order[MOST]; /* which sample came at each place; known by its first pixel */
	int wrong;       /* samples whose pixels or label do not fit together */
};

static void note_sample(struct epoch *e, const float *x, int32_t y)
{
	int first = (int)(x[0] * 255 + 0.5f), i = first * 183 % 256; /* 183 · 7 = 1 modulo 256 */
	for (int p = 0; p < IDX_PIXELS; p++) e->wrong += x[p] != (float)idx_pixel(i, p) * (float)(1 / 255.0);
	e->wrong += y != idx_label(i);
	e->order[e->samples++] = i;
}

static void note_batch(struct epoch *e, const struct sl_batch *b)
{
	float x[MOST * IDX_PIXELS];
	int32_t y[MOST];
	int n = (int)sl_tensor_size(b->y);
	if (!CHECK(e->samples + n <= MOST && e->batches < MOST)) return;
	CHECK(b->index == e->batches);
	CHECK(sl_tensor_dtype(b->x) == SL_FLOAT32 && sl_tensor_dtype(b->y) == SL_INT32);
	CHECK_OK(sl_read(b->x, x, sl_tensor_bytes(b->x)));
	CHECK_OK(sl_read(b->y, y, sl_tensor_bytes(b->y)));
	e->sizes[e->batches++] = n;
	for (int i = 0; i < n; i++) note_sample(e, x + i * IDX_PIXELS, y[i]);
}

static struct epoch run_epoch(sl_loader *l)
{
	struct epoch e = {0};
	for (bool more = true; more;)
		SL_SCOPE {
			struct sl_batch b;
			if ((more = sl_loader_next(l, &b))) note_batch(&e, &b);
		}
	CHECK(sl_error() == SL_OK);
	CHECK_SAYING(e.wrong == 0, "%d wrong values", e.wrong);
	CHECK(e.batches == sl_loader_batches(l) && e.samples == sl_loader_samples(l));
	return e;
}

static bool is_permutation(const struct epoch *e, int n)
{
	bool seen[256] = {false};
	if (e->samples != n) return false;
	for (int i = 0; i < n; i++) {
		if (e->order[i] >= n || seen[e->order[i]]) return false;
		seen[e->order[i]] = true;
	}
	return true;
}

static bool is_sorted(const struct epoch *e)
{
	for (int i = 0; i < e->samples; i++)
		if (e->order[i] != i) return false;
	return true;
}

static bool same_order(const struct epoch *a, const struct epoch *b)
{
	return a->samples == b->samples && !memcmp(a->order, b->order, (size_t)a->samples * sizeof *a->order);
}

static void test_in_order(void)
{
	sl_dataset *d = idx_sample_set(100);
	sl_loader *l = sl_loader_new(d, .batch_size = 32);
	for (int i = 0; i < 3; i++) {
		struct epoch e = run_epoch(l);
		CHECK(e.batches == 4 && e.sizes[2] == 32 && e.sizes[3] == 4 && e.samples == 100 && is_sorted(&e));
	}
	sl_loader_free(l);
	sl_dataset_free(d);
}

static void test_shuffled(void)
{
	sl_dataset *d = idx_sample_set(100);
	sl_loader *a = sl_loader_new(d, .batch_size = 16, .shuffle = true, .seed = 5);
	sl_loader *b = sl_loader_new(d, .batch_size = 25, .shuffle = true, .seed = 5, .prefetch = 7);
	sl_loader *c = sl_loader_new(d, .batch_size = 16, .shuffle = true, .seed = 6);
	sl_dataset_free(d); /* loaders go on */
	struct epoch a1 = run_epoch(a), a2 = run_epoch(a), a3 = run_epoch(a);
	sl_seed(77); /* has no influence */
	struct epoch b1 = run_epoch(b), b2 = run_epoch(b), c1 = run_epoch(c);
	CHECK(is_permutation(&a1, 100) && is_permutation(&a2, 100) && is_permutation(&a3, 100) &&
	      is_permutation(&c1, 100));
	CHECK(!is_sorted(&a1) && !same_order(&a1, &a2) && !same_order(&a2, &a3) && !same_order(&a1, &c1));
	CHECK(same_order(&a1, &b1) && same_order(&a2, &b2));
	sl_loader_free(a);
	sl_loader_free(b);
	sl_loader_free(c);
}

static void test_last_and_limit(void)
{
	sl_dataset *d = idx_sample_set(100);
	sl_loader *l = sl_loader_new(d, .batch_size = 32, .last = SL_LAST_DISCARD);
	struct epoch e = run_epoch(l);
	CHECK(e.batches == 3 && e.samples == 96 && is_sorted(&e));
	sl_loader_free(l);
	l = sl_loader_new(d, .batch_size = 8, .limit = 20, .shuffle = true);
	e = run_epoch(l);
	CHECK(e.batches == 3 && e.sizes[2] == 4 && is_permutation(&e, 20));
	sl_loader_free(l);
	l = sl_loader_new(d, .batch_size = 8, .limit = 1000, .last = SL_LAST_DISCARD);
	CHECK(sl_loader_batches(l) == 12 && sl_loader_samples(l) == 96);
	sl_loader_free(l);
	l = sl_loader_new(d, .batch_size = 1000);
	e = run_epoch(l);
	CHECK(e.batches == 1 && e.samples == 100);
	sl_loader_free(l);
	sl_dataset_free(d);
}

/* All samples take part over time, also where each epoch discards some. */
static void test_discard_shuffled(void)
{
	sl_dataset *d = idx_sample_set(50);
	sl_loader *l = sl_loader_new(d, .batch_size = 30, .shuffle = true, .last = SL_LAST_DISCARD);
	bool seen[50] = {false};
	for (int i = 0; i < 20; i++) {
		struct epoch e = run_epoch(l);
		CHECK(e.samples == 30);
		for (int s = 0; s < e.samples; s++) seen[e.order[s]] = true;
	}
	int missing = 0;
	for (int i = 0; i < 50; i++) missing += !seen[i];
	CHECK_SAYING(missing == 0, "%d samples never came", missing);
	sl_loader_free(l);
	sl_dataset_free(d);
}

/* Loaders of three ranks: batch by batch, what they hand out one after the other is what one with three times the rows
 * does. */
static void check_ranks(int samples, int rows, enum sl_last_batch last, int64_t batches)
{
	enum { RANKS = 3 };
	sl_dataset *d = idx_sample_set(100);
	struct sl_loader_opts o = {
	        .batch_size = rows, .shuffle = true, .seed = 9, .limit = samples, .last = last, .ranks = RANKS};
	sl_loader *parts[RANKS],
	        *whole = sl_loader_new(d, .batch_size = RANKS * rows, .shuffle = true, .seed = 9, .limit = samples);
	for (o.rank = 0; o.rank < RANKS; o.rank++) parts[o.rank] = sl_loader_new_at(SL_HERE, d, o);
	for (int k = 0; k < 2; k++) {
		struct epoch all = run_epoch(whole);
		for (int r = 0; r < RANKS; r++) {
			struct epoch e = run_epoch(parts[r]);
			CHECK(e.batches == batches);
			for (int b = 0, at = 0; b < e.batches; at += e.sizes[b++])
				CHECK(!memcmp(e.order + at, all.order + RANKS * at + r * e.sizes[b],
				              (size_t)e.sizes[b] * sizeof *e.order));
		}
	}
	for (int r = 0; r < RANKS; r++) sl_loader_free(parts[r]);
	sl_loader_free(whole);
	sl_dataset_free(d);
}

/* What rank 0 saves in the middle of an epoch is where all ranks go on. */
static void test_ranks_resume(void)
{
	enum { RANKS = 3, ROWS = 5, TAKEN = 9, AFTER = 4 }; /* of 6 batches an epoch */
	sl_dataset *d = idx_sample_set(90);
	char path[PATH_MAX];
	slp_scratch_path("loader.safetensors", path);
	for (int r = 0; r < RANKS; r++)
		SL_SCOPE {
			struct sl_loader_opts o = {
			        .batch_size = ROWS, .shuffle = true, .seed = 2, .rank = r, .ranks = RANKS};
			struct sl_batch b, c;
			sl_loader *l = sl_loader_new_at(SL_HERE, d, o), *again = sl_loader_new_at(SL_HERE, d, o);
			for (int i = 0; i < TAKEN; i++) sl_loader_next(l, &b); /* an epoch's end among them */
			if (r == 0) CHECK_OK(sl_checkpoint_save(path, .loader = l));
			CHECK_OK(sl_checkpoint_load(path, .loader = again));
			for (int i = 0; i < AFTER; i++) {
				bool more = sl_loader_next(l, &b);
				CHECK(sl_loader_next(again, &c) == more);
				if (more) CHECK(b.index == c.index && sl_item(sl_max(sl_abs(sl_sub(b.x, c.x)))) == 0);
			}
			sl_loader_free(l);
			sl_loader_free(again);
		}
	sl_dataset_free(d);
}

static void test_ranks(void)
{
	check_ranks(96, 8, SL_LAST_KEEP, 4);
	check_ranks(100, 8, SL_LAST_KEEP, 5); /* 33 of each: a last batch of one, and one sample is left out */
	check_ranks(100, 8, SL_LAST_DISCARD, 4);
	check_ranks(23, 7, SL_LAST_DISCARD, 1);
}

/* The epoch ends early, and the next one is that of a loader that took all batches; with batches made ahead, too. */
static void test_end_epoch(void)
{
	sl_dataset *d = idx_sample_set(64);
	sl_loader *l = sl_loader_new(d, .batch_size = 8, .shuffle = true, .prefetch = 3),
	          *whole = sl_loader_new(d, .batch_size = 8, .shuffle = true);
	struct sl_batch b, c;
	SL_SCOPE {
		CHECK(sl_loader_end_epoch(l) == SL_OK); /* nothing was taken: still the first epoch */
		for (int taken = 1; taken <= 8; taken += 7) {
			for (int i = 0; i < taken; i++) CHECK(sl_loader_next(l, &b) && b.index == i);
			for (int i = 0; i < 8; i++) CHECK(sl_loader_next(whole, &c));
			CHECK(!sl_loader_next(whole, &c) && sl_loader_end_epoch(l) == SL_OK);
			CHECK(sl_loader_end_epoch(l) == SL_OK); /* once more is no further epoch */
		}
		for (int i = 0; i < 8; i++) {
			CHECK(sl_loader_next(l, &b) && sl_loader_next(whole, &c) && b.index == i);
			CHECK(sl_item(sl_max(sl_abs(sl_sub(b.x, c.x)))) == 0);
		}
		CHECK(!sl_loader_next(l, &b) && sl_loader_end_epoch(l) == SL_OK);
	}
	CHECK(sl_loader_end_epoch(NULL) == SL_EINVAL);
	sl_error_clear();
	sl_loader_free(l);
	sl_loader_free(whole);
	sl_dataset_free(d);
}

/* Batches belong to the scope of the call, also those that were made within another; without a scope, to the caller. */
static void test_scopes(void)
{
	sl_dataset *d = idx_sample_set(64);
	sl_loader *l = sl_loader_new(d, .batch_size = 8, .prefetch = 3);
	struct sl_batch b;
	SL_SCOPE {
		CHECK(sl_loader_next(l, &b) && b.index == 0);
		SL_SCOPE {
			CHECK(sl_loader_next(l, &b) && b.index == 1);
			sl_retain(b.x);
		}
		sl_release(b.x);
		CHECK(sl_loader_next(l, &b) && b.index == 2);
	}
	CHECK(sl_loader_next(l, &b) && b.index == 3);
	sl_loader_free(l); /* in the middle; what was handed out stays */
	sl_dataset_free(d);
	CHECK_VALUES(b.y, 4, 5, 6, 7, 8, 9, 0, 1);
	sl_release(b.x);
	sl_release(b.y);
	sl_loader_free(NULL);
}

static void test_wrong_options(void)
{
	sl_dataset *d = idx_sample_set(10);
	struct sl_batch b;
	CHECK_NULL(sl_loader_new(d), SL_EINVAL, "batch_size is 0, 1 or more needed");
	CHECK_NULL(sl_loader_new(d, .batch_size = -3), SL_EINVAL, "batch_size is -3");
	CHECK_NULL(sl_loader_new(d, .batch_size = 1, .limit = -1), SL_EINVAL, "limit is -1");
	CHECK_NULL(sl_loader_new(d, .batch_size = 1, .prefetch = -1), SL_EINVAL, "prefetch is -1");
	CHECK_NULL(sl_loader_new(d, .batch_size = 1, .prefetch = INT_MAX), SL_EINVAL, "prefetch is 2147483647");
	sl_loader *l = sl_loader_new(d, .batch_size = INT64_MAX); /* all there are */
	CHECK(sl_loader_batches(l) == 1 && sl_loader_samples(l) == 10);
	sl_loader_free(l);
	CHECK_NULL(sl_loader_new(d, .batch_size = 1, .last = (enum sl_last_batch)9), SL_EINVAL, "last is 9");
	CHECK_NULL(sl_loader_new(d, .batch_size = 1, .rank = 1), SL_EINVAL, "rank is 1 of 1 ranks");
	CHECK_NULL(sl_loader_new(d, .batch_size = 1, .rank = 2, .ranks = 2), SL_EINVAL, "rank is 2 of 2");
	CHECK_NULL(sl_loader_new(d, .batch_size = 1, .rank = -1, .ranks = 2), SL_EINVAL, "rank is -1 of 2");
	CHECK_NULL(sl_loader_new(d, .batch_size = 1, .ranks = 11), SL_EINVAL,
	           "10 samples do not fill a batch of 1 for each rank");
	CHECK_NULL(sl_loader_new(d, .batch_size = 6, .ranks = 2, .last = SL_LAST_DISCARD), SL_EINVAL,
	           "10 samples do not fill a batch of 6 for each rank");
	CHECK_NULL(sl_loader_new(d, .batch_size = 11, .last = SL_LAST_DISCARD), SL_EINVAL,
	           "10 samples do not fill a batch of 11");
	CHECK_NULL(sl_loader_new(d, .batch_size = 1, .device = sl_cpu(9)), SL_EDEVICE, "cpu:9");
	CHECK_NULL(sl_loader_new(NULL, .batch_size = 1), SL_EINVAL, "the data set is NULL");
	CHECK(!sl_loader_next(NULL, &b) && sl_error() == SL_EINVAL);
	sl_error_clear();
	CHECK(sl_loader_batches(NULL) == 0 && sl_loader_samples(NULL) == 0);
	sl_dataset_free(d);
}

static void test_devices(void)
{
	sl_dataset *d = idx_sample_set(30);
	char name[SL_DEVICE_NAME_MAX];
	for (int i = 0; i < sl_device_count(SL_DEVICE_CPU) + sl_device_count(SL_DEVICE_GPU); i++) {
		int cpus = sl_device_count(SL_DEVICE_CPU);
		sl_device device = i < cpus ? sl_cpu(i) : sl_gpu(i - cpus);
		sl_loader *l = sl_loader_new(d, .batch_size = 7, .shuffle = true, .device = device);
		SL_SCOPE {
			struct sl_batch b;
			CHECK(sl_loader_next(l, &b));
			CHECK_SAYING(sl_device_equal(sl_tensor_device(b.x), device), "the batch is on %s",
			             sl_device_name(sl_tensor_device(b.x), name));
		}
		sl_loader_free(l);
		l = sl_loader_new(d, .batch_size = 7, .shuffle = true, .device = device);
		struct epoch e = run_epoch(l);
		CHECK(is_permutation(&e, 30));
		sl_loader_free(l);
	}
	sl_dataset_free(d);
}

/* After sl_shutdown nothing is left to load from; all can still be given up. */
static void test_after_shutdown(void)
{
	sl_dataset *d = idx_sample_set(30);
	sl_loader *l = sl_loader_new(d, .batch_size = 7, .shuffle = true), *unused = sl_loader_new(d, .batch_size = 3);
	struct epoch e = run_epoch(l);
	CHECK(e.samples == 30);
	sl_shutdown();
	CHECK_OK(sl_init(NULL));
	struct sl_batch b;
	CHECK(!sl_loader_next(unused, &b) && sl_error() == SL_ESTATE && !b.x && !b.y);
	sl_error_clear();
	CHECK(!sl_loader_next(unused, &b) && sl_error() == SL_ESTATE); /* and again */
	sl_error_clear();
	sl_loader_free(l);
	sl_loader_free(unused);
	sl_dataset_free(d);
}

/* ---- Fashion-MNIST, where it is installed ----------------------------------------------------------------------- */

/* What the files hold, found with NumPy and zlib. */
static const struct {
	enum sl_split split;
	int64_t size, pixels; /* the sum of all pixels */
	unsigned long images_crc, labels_crc;
	int32_t first[8];
} facts[] = {
        {SL_TRAIN, 60000, 3431114169, 0xae65dccd, 0x2ed6e46a, {9, 0, 0, 3, 0, 2, 7, 2}},
        {SL_TEST, 10000, 573469082, 0x12728439, 0x242bc73f, {9, 2, 1, 1, 6, 1, 4, 6}},
};

/* Sums over all batches, as bytes again. */
struct sums {
	int64_t samples, pixels;
	unsigned long images_crc, labels_crc;
};

static void add_batch(struct sums *s, const struct sl_batch *b)
{
	int64_t n = sl_tensor_size(b->x), rows = sl_tensor_size(b->y);
	float *x = malloc((size_t)n * sizeof *x);
	int32_t *y = malloc((size_t)rows * sizeof *y);
	unsigned char *bytes = malloc((size_t)n);
	CHECK_OK(sl_read(b->x, x, (size_t)n * sizeof *x));
	CHECK_OK(sl_read(b->y, y, (size_t)rows * sizeof *y));
	for (int64_t i = 0; i < n; i++) s->pixels += bytes[i] = (unsigned char)(x[i] * 255 + 0.5f);
	s->images_crc = crc32(s->images_crc, bytes, (uInt)n);
	for (int64_t i = 0; i < rows; i++) bytes[i] = (unsigned char)y[i];
	s->labels_crc = crc32(s->labels_crc, bytes, (uInt)rows);
	s->samples += rows;
	free(x);
	free(y);
	free(bytes);
}

static void check_fashion(int i)
{
	sl_dataset *d = sl_dataset_mnist(NULL, facts[i].split);
	if (!CHECK_SAYING(d != NULL, "%s", sl_error_message())) return;
	CHECK(sl_dataset_size(d) == facts[i].size);
	CHECK(sl_shape_equal(sl_dataset_sample_shape(d), SL_SHAPE(1, 28, 28)));
	CHECK(!strcmp(sl_dataset_class_name(d, 9), "ankle boot") && !strcmp(sl_dataset_class_name(d, 0), "t-shirt"));
	sl_loader *l = sl_loader_new(d, .batch_size = 1024);
	struct sums s = {0};
	for (bool more = true; more;)
		SL_SCOPE {
			struct sl_batch b;
			if (!(more = sl_loader_next(l, &b))) break;
			add_batch(&s, &b);
			int32_t y[1024];
			if (b.index == 0 && CHECK_OK(sl_read(b.y, y, sizeof y)))
				CHECK(!memcmp(y, facts[i].first, sizeof facts[i].first));
		}
	CHECK(s.samples == facts[i].size && s.pixels == facts[i].pixels);
	CHECK(s.images_crc == facts[i].images_crc && s.labels_crc == facts[i].labels_crc);
	sl_loader_free(l);
	sl_dataset_free(d);
}

static void test_fashion(void)
{
	struct stat st;
	if (stat(SL_FASHION_MNIST_DIR, &st)) {
		CHECK_NULL(sl_dataset_mnist(NULL, SL_TRAIN), SL_EIO, SL_FASHION_MNIST_DIR, "no such folder",
		           "apt install dataset-fashion-mnist");
		return;
	}
	for (int i = 0; i < 2; i++) check_fashion(i);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static const struct slp_test dataset_tests[] = {
        {"class names", test_class_names},
        {"fashion-mnist", test_fashion},
        {NULL, NULL},
};

static const struct slp_test loader_tests[] = {
        {"in order", test_in_order},
        {"shuffled", test_shuffled},
        {"last and limit", test_last_and_limit},
        {"ranks", test_ranks},
        {"ranks, resumed", test_ranks_resume},
        {"discard, shuffled", test_discard_shuffled},
        {"end of an epoch", test_end_epoch},
        {"scopes", test_scopes},
        {"wrong options", test_wrong_options},
        {"devices", test_devices},
        {"after shutdown", test_after_shutdown},
        {NULL, NULL},
};

int main(int argc, char **argv)
{
	static const struct slp_suite suites[] = {
	        {"dataset", dataset_tests, slp_scratch_make, slp_scratch_remove, slp_begin_plainly, slp_end},
	        {"loader", loader_tests, slp_scratch_make, slp_scratch_remove, slp_begin_plainly, slp_end},
	        {0},
	};
	return slp_test_main(argc, argv, suites);
}
