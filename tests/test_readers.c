/* Every kind of data set, read by several threads at once: the bytes are those that one thread reads, however soon
 * loaders end and whatever goes wrong meanwhile.  Part of check-threads. */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "folder.h"

enum { ROWS = 60, BATCH = 7, WORKERS = 4, EPOCHS = 2, MOST = 4096 };

/* ---- kinds of sets ----------------------------------------------------------------------------------------------- */

static float pixels[ROWS][3 * 4 * 4];

static sl_dataset *arrays(void)
{
	static int32_t labels[ROWS];
	for (int i = 0; i < ROWS; i++) labels[i] = i % 7;
	for (int i = 0; i < ROWS * 48; i++) pixels[i / 48][i % 48] = (float)(i * 37 % 101) / 101;
	return sl_dataset_arrays(((struct sl_array){pixels, SL_SHAPE(ROWS, 3, 4, 4), SL_FLOAT32}),
	                         ((struct sl_array){labels, SL_SHAPE(ROWS), SL_INT32}), .classes = 7);
}

static sl_dataset *csv(void)
{
	char path[PATH_MAX], text[16 * ROWS];
	int n = 0;
	for (int i = 0; i < ROWS; i++)
		n += snprintf(text + n, sizeof text - (size_t)n, "%d,%d,%c\n", i, i * i, 'a' + i % 5);
	slp_write_scratch("a.csv", text, (size_t)n);
	return sl_dataset_csv(slp_scratch_path("a.csv", path));
}

/* ROWS rows of two numbers: of a type that is read as it lies in the file, or is converted. */
static sl_dataset *npy_of(const char *type, size_t bytes)
{
	char path[PATH_MAX], file[128 + ROWS * 2 * 8] = "\x93NUMPY\x01\0\x76\0";
	int n = snprintf(file + 10, 118, "{'descr': '%s', 'fortran_order': False, 'shape': (%d, 2)}", type, ROWS);
	memset(file + 10 + n, ' ', 118 - (size_t)n);
	for (size_t i = 0; i < ROWS * 2 * bytes; i++) file[128 + i] = (char)(i % 61);
	slp_write_scratch("a.npy", file, 128 + ROWS * 2 * bytes);
	return sl_dataset_npy(slp_scratch_path("a.npy", path), NULL);
}
static sl_dataset *npy(void)
{
	return npy_of("<f4", 4);
}
static sl_dataset *npy_converted(void)
{
	return npy_of("<u2", 2);
}

static sl_dataset *tokens(void)
{
	char path[PATH_MAX], text[ROWS + 8];
	for (size_t i = 0; i < sizeof text; i++) text[i] = (char)('a' + i % 26);
	slp_write_scratch("tokens", text, sizeof text);
	return sl_dataset_tokens(slp_scratch_path("tokens", path), .length = 8, .stride = 1, .bytes = 1);
}

#if defined HAVE_PNG && defined HAVE_JPEG
/* The images that fuzz_images begins with, many times each. */
static sl_dataset *images(void)
{
	char path[PATH_MAX];
	int64_t numbers[ROWS];
	const char *source = getenv("srcdir");
	snprintf(path, sizeof path, "%s/tests/fuzz/seeds", source ? source : ".");
	sl_dataset *d = sl_dataset_images(path, .height = 4, .width = 4), *many = NULL;
	for (int i = 0; i < ROWS; i++) numbers[i] = d ? i % sl_dataset_size(d) : 0;
	if (d) many = sl_dataset_select(d, numbers, ROWS);
	sl_dataset_free(d);
	return many;
}
#endif

static bool double_it(void *arg, struct sl_sample *s)
{
	atomic_fetch_add((atomic_int *)arg, 1);
	((float *)s->x)[0] = 2 * ((float *)s->x)[0] + (float)sl_sample_uniform(s);
	return true;
}
static atomic_int mapped;

static sl_dataset *transformed(void)
{
	sl_dataset *d = arrays();
	sl_dataset *t = sl_dataset_transform(d, sl_random_crop(.height = 3, .width = 3, .pad = 1), sl_random_flip(),
	                                     sl_map(.map = double_it, .arg = &mapped), sl_normalise(.mean = {0.5}),
	                                     sl_resize_image(.height = 5, .width = 5));
	sl_dataset_free(d);
	return t;
}

/* Those of others, which are given up at once. */
static sl_dataset *made_of_others(void)
{
	sl_dataset *d = transformed(), *parts[2] = {NULL}, *all = NULL;
	sl_dataset_split(d, ROWS / 3, 1, parts);
	if (parts[0] && parts[1]) all = sl_dataset_concat(parts[1], parts[0]);
	sl_dataset_free(d);
	for (int i = 0; i < 2; i++) sl_dataset_free(parts[i]);
	return all;
}

static const struct kind {
	const char *name;
	sl_dataset *(*make)(void);
} kinds[] = {{"arrays", arrays},
             {"csv", csv},
             {"npy", npy},
             {"npy, converted", npy_converted},
             {"tokens", tokens},
#if defined HAVE_PNG && defined HAVE_JPEG
             {"images", images},
#endif
             {"transformed", transformed},
             {"made of others", made_of_others},
             {0}};

static sl_dataset *open_set(const struct kind *k)
{
	sl_dataset *d = k->make();
	CHECK_SAYING(d != NULL, "%s: %s", k->name, sl_error_message());
	return d;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* What a loader handed out. */
struct bytes {
	size_t size;
	int batches;
	char data[EPOCHS * ROWS * 600];
};

static sl_loader *loader(sl_dataset *d, int workers)
{
	return sl_loader_new(d, .batch_size = BATCH, .shuffle = true, .seed = 3, .workers = workers, .prefetch = 3);
}

static void keep(struct bytes *b, sl_tensor *t)
{
	size_t n = t ? sl_tensor_bytes(t) : 0;
	if (n && b->size + n <= sizeof b->data && sl_read(t, b->data + b->size, n) == SL_OK) b->size += n;
}

/* So many batches, over the ends of epochs; false if one fails. */
static bool read_batches(sl_loader *l, int most, struct bytes *b)
{
	int ends = 0;
	while (b->batches < most && ends < EPOCHS) {
		bool more = false;
		SL_SCOPE {
			struct sl_batch batch;
			if (!(more = sl_loader_next(l, &batch))) break;
			keep(b, batch.x);
			keep(b, batch.y);
			b->batches++;
		}
		if (!more && sl_error() != SL_OK) return false;
		ends += !more;
	}
	return true;
}

static void check_same(const char *name, const char *what, const struct bytes *got, const struct bytes *of)
{
	CHECK_SAYING(got->size && got->size <= of->size && !memcmp(got->data, of->data, got->size),
	             "%s, %s: %d batches are not those that one thread reads: %s", name, what, got->batches,
	             sl_error_message());
}

static void read_alone(const struct kind *k, struct bytes *b)
{
	sl_dataset *d = open_set(k);
	sl_loader *l = loader(d, 0);
	*b = (struct bytes){0};
	CHECK_SAYING(read_batches(l, MOST, b) && b->size, "%s: %s", k->name, sl_error_message());
	sl_loader_free(l);
	sl_dataset_free(d);
}

/* Loaders that are given up after each number of batches, and the set before them. */
static void check_ends(const struct kind *k, const struct bytes *alone)
{
	static struct bytes b;
	for (int most = 1; most <= alone->batches; most += most < 4 ? 1 : alone->batches - 4) {
		sl_dataset *d = open_set(k);
		sl_loader *l = loader(d, WORKERS);
		sl_dataset_free(d);
		b = (struct bytes){0};
		CHECK(read_batches(l, most, &b) && b.batches == most);
		check_same(k->name, "until an early end", &b, alone);
		sl_loader_free(l);
	}
	sl_dataset *d = open_set(k);
	sl_loader *unused = loader(d, WORKERS);
	sl_loader_free(unused);
	sl_dataset_free(d);
}

static void test_kinds(void)
{
	static struct bytes alone;
	for (const struct kind *k = kinds; k->name; k++) {
		read_alone(k, &alone);
		check_ends(k, &alone);
	}
	CHECK(atomic_load(&mapped) > 0);
}

/* ---- two threads of the program ---------------------------------------------------------------------------------- */

struct reader {
	sl_dataset *d;
	struct bytes got;
	bool ok;
};

static void *read_in_thread(void *arg)
{
	struct reader *r = arg;
	sl_loader *l = loader(r->d, WORKERS);
	r->ok = read_batches(l, MOST, &r->got) && sl_dataset_class_name(r->d, -1) == NULL;
	sl_loader_free(l);
	sl_dataset_free(r->d);
	return NULL;
}

/* A loader each, of one set that has two holders. */
static void check_two(const struct kind *k)
{
	static struct bytes alone;
	static struct reader readers[2];
	pthread_t threads[2];
	read_alone(k, &alone);
	sl_dataset *d = open_set(k);
	for (int i = 0; i < 2; i++) {
		readers[i] = (struct reader){.d = sl_dataset_range(d, 0, sl_dataset_size(d))};
		CHECK(pthread_create(&threads[i], NULL, read_in_thread, &readers[i]) == 0);
	}
	sl_dataset_free(d);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		CHECK_SAYING(readers[i].ok, "%s: a thread could not read", k->name);
		check_same(k->name, "by two threads", &readers[i].got, &alone);
	}
}

static void test_two_threads(void)
{
	for (const struct kind *k = kinds; k->name; k++) check_two(k);
}

/* ---- files that are damaged meanwhile ---------------------------------------------------------------------------- */

/* The file loses its end while workers read it; once it is whole again, so is the epoch. */
static void check_shorter(const struct kind *k, const char *file)
{
	static struct bytes alone, b;
	char path[PATH_MAX];
	size_t size;
	read_alone(k, &alone);
	sl_dataset *d = open_set(k);
	char *whole = slp_read_file(slp_scratch_path(file, path), &size);
	sl_loader *l = loader(d, WORKERS);
	for (int i = 0; i < 5; i++) {
		b = (struct bytes){0};
		CHECK(read_batches(l, i % 3, &b));
		CHECK(truncate(path, (off_t)size / 2) == 0);
		CHECK(!read_batches(l, MOST, &b));
		CHECK_SAYING(sl_error() == SL_EIO && strstr(sl_error_message(), "became shorter") &&
		                     strstr(sl_error_message(), "sl_loader_next at "),
		             "%s: %s", k->name, sl_error_message());
		sl_error_clear();
		slp_write_scratch(file, whole, size);
	}
	sl_loader_free(l);
	l = loader(d, WORKERS);
	b = (struct bytes){0};
	CHECK(read_batches(l, MOST, &b));
	check_same(k->name, "once it is whole again", &b, &alone);
	sl_loader_free(l);
	sl_dataset_free(d);
	free(whole);
}

static void test_shorter(void)
{
	check_shorter(&(struct kind){"npy", npy}, "a.npy");
	check_shorter(&(struct kind){"npy, converted", npy_converted}, "a.npy");
	check_shorter(&(struct kind){"tokens", tokens}, "tokens");
}

/* A run does not go on with other transforms: their figures are part of what a data set is. */
static void test_other_transforms(void)
{
	char path[PATH_MAX];
	sl_dataset *d = arrays(), *of[3];
	slp_scratch_path("loader.safetensors", path);
	of[0] = sl_dataset_transform(d, sl_random_resized_crop(.height = 3, .width = 3, .area = {0.2, 0.9}));
	of[1] = sl_dataset_transform(d, sl_random_resized_crop(.height = 3, .width = 3, .area = {0.3, 0.9}));
	of[2] = sl_dataset_transform(
	        d, sl_random_resized_crop(.height = 3, .width = 3, .area = {0.2, 0.9}, .ratio = {1, 1}));
	for (int i = 0; i < 4; i++) {
		sl_loader *l = loader(of[i % 3], 1);
		if (i == 0) CHECK_OK(sl_checkpoint_save(path, .loader = l));
		else if (i < 3) CHECK_STATUS(sl_checkpoint_load(path, .loader = l), SL_EINVAL, "images");
		else CHECK_OK(sl_checkpoint_load(path, .loader = l));
		sl_error_clear();
		sl_loader_free(l);
	}
	for (int i = 0; i < 3; i++) sl_dataset_free(of[i]);
	sl_dataset_free(d);
}

int main(int argc, char **argv)
{
	static const struct slp_test tests[] = {{"kinds", test_kinds},
	                                        {"two threads", test_two_threads},
	                                        {"shorter", test_shorter},
	                                        {"other transforms", test_other_transforms},
	                                        {NULL, NULL}};
	static const struct slp_suite suites[] = {
	        {.name = "readers", .tests = tests, .start = slp_start_with_scratch, .stop = slp_stop_with_scratch},
	        {0},
	};
	return slp_test_main(argc, argv, suites);
}
