/* Allocations of the library that fail, one at a time: each is an error that says where, nothing else happens, and
 * everything works afterwards.  A sample of them; with "all" as the only argument, each one. */
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alloc.h"
#include "check.h"
#include "folder.h"
#include "idx_files.h"

enum { SAMPLES = 16, IMAGES = 24, BATCH = 8 };
static bool all; /* no sample */

/* What a program computes; NAN elsewhere. */
struct result {
	float loss, weight;
};

/* Each is false after an error, and then sl_error() tells it, or what it was told before in `status`. */
struct program {
	const char *name;
	bool (*run)(struct result *r, enum sl_status *status);
};

static bool told(enum sl_status s, enum sl_status *status)
{
	if (*status == SL_OK) *status = s;
	return s == SL_OK;
}

static bool there(const void *p, enum sl_status *status)
{
	return p || told(sl_error(), status);
}

/* ---- the programs ------------------------------------------------------------------------------------------------ */

static sl_block *network(void)
{
	return sl_sequential(sl_conv2d_layer(3, .kernel = {3}, .activation = SL_RELU), sl_batch_norm_layer(),
	                     sl_max_pool2d_layer(2), sl_flatten_layer(), sl_dense(6, .activation = SL_RELU),
	                     sl_dropout_layer(0.25), sl_dense(4));
}

static sl_tensor *image(void)
{
	float v[4 * 8 * 8];
	for (int i = 0; i < 4 * 8 * 8; i++) v[i] = (float)(i * 37 % 101) / 101;
	return sl_from(v, SL_SHAPE(4, 1, 8, 8));
}

static sl_tensor *labels(void)
{
	return sl_from(((int32_t[]){0, 1, 2, 3}), SL_SHAPE(4), .dtype = SL_INT32);
}

static bool read_result(sl_block *net, const char *path, sl_tensor *loss, struct result *r, enum sl_status *status)
{
	float v[64];
	sl_tensor *w = sl_param_data(sl_block_find(net, path));
	if (!there(w, status)) return false;
	if (!told(sl_read(w, v, sl_tensor_bytes(w)), status)) return false;
	r->weight = v[1];
	r->loss = (float)sl_item(sl_sum(loss));
	return r->loss == r->loss || told(sl_error(), status);
}

/* Two steps of training, call by call. */
static bool train(sl_block *net, sl_trainer *trainer, struct result *r, enum sl_status *status)
{
	for (int i = 0; i < 2; i++) {
		sl_tensor *loss = NULL;
		SL_RECORD
			loss = sl_softmax_cross_entropy(sl_forward(net, image()), labels());
		if (!there(loss, status) || !told(sl_backward(loss), status)) return false;
		if (!told(sl_trainer_step(trainer, 4), status)) return false;
		if (i && !read_result(net, "6.bias", loss, r, status)) return false;
	}
	return true;
}

static bool eager_or_hybrid(bool hybrid, struct result *r, enum sl_status *status)
{
	bool ok = false;
	sl_block *net = network();
	sl_trainer *trainer = NULL;
	SL_SCOPE {
		sl_seed(7);
		if (!there(net, status) || !told(sl_initialize(net), status)) break;
		if (hybrid && !told(sl_hybridize(net), status)) break;
		trainer = sl_trainer_new(net, sl_sgd(.lr = 0.1, .momentum = 0.9));
		ok = there(trainer, status) && train(net, trainer, r, status);
	}
	sl_trainer_free(trainer);
	sl_block_free(net);
	return ok;
}

static bool eager(struct result *r, enum sl_status *status)
{
	return eager_or_hybrid(false, r, status);
}

static bool hybrid(struct result *r, enum sl_status *status)
{
	return eager_or_hybrid(true, r, status);
}

static bool compiled(struct result *r, enum sl_status *status)
{
	bool ok = false;
	sl_block *net = network();
	sl_trainer *trainer = NULL;
	sl_step *step = NULL;
	SL_SCOPE {
		sl_seed(7);
		if (!there(net, status) || !told(sl_initialize(net), status)) break;
		if (!there(trainer = sl_trainer_new(net, sl_adam()), status)) break;
		if (!there(step = sl_step_compile(net, sl_softmax_cross_entropy_at, trainer), status)) break;
		sl_tensor *loss = sl_step_run(step, image(), labels(), NULL);
		if (loss) loss = sl_step_run(step, image(), labels(), NULL);
		ok = there(loss, status) && read_result(net, "6.bias", loss, r, status);
	}
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
	return ok;
}

static bool files(struct result *r, enum sl_status *status)
{
	char prefix[PATH_MAX], symbol[PATH_MAX], params[PATH_MAX];
	bool ok = false;
	sl_block *net = network(), *read = NULL;
	slp_scratch_path("net", prefix);
	slp_scratch_path("net-symbol.json", symbol);
	slp_scratch_path("net-0000.params", params);
	SL_SCOPE {
		sl_seed(7);
		if (!there(net, status) || !told(sl_initialize(net), status)) break;
		if (!told(sl_export(net, prefix, SL_SHAPES(SL_SHAPE(4, 1, 8, 8))), status)) break;
		if (!there(read = sl_import(symbol, SL_NAMES("data"), params), status)) break;
		r->loss = (float)sl_item(sl_sum(sl_forward(read, image())));
		ok = r->loss == r->loss || told(sl_error(), status);
	}
	sl_block_free(read);
	sl_block_free(net);
	return ok;
}

static bool epoch(sl_loader *loader, sl_block *net, sl_trainer *trainer, sl_metric *metric, struct result *r,
                  enum sl_status *status)
{
	bool ok = true;
	for (bool more = true; ok && more;)
		SL_SCOPE {
			struct sl_batch b;
			if (!(more = sl_loader_next(loader, &b))) break;
			sl_tensor *y = NULL, *loss = NULL;
			SL_RECORD {
				y = sl_forward(net, b.x);
				loss = sl_softmax_cross_entropy(y, b.y);
			}
			ok = there(loss, status) && told(sl_backward(loss), status) &&
			     told(sl_trainer_step(trainer, BATCH), status) &&
			     told(sl_metric_add(metric, y, b.y), status);
			if (ok) r->loss = (float)sl_item(sl_mean(loss));
		}
	if (ok) r->weight = (float)sl_metric_get(metric);
	return ok && told(sl_error(), status);
}

static bool driver(struct result *r, enum sl_status *status)
{
	char x[PATH_MAX], y[PATH_MAX], path[PATH_MAX];
	sl_dataset *set = sl_dataset_idx(slp_scratch_path("x", x), slp_scratch_path("y", y), 10);
	sl_loader *loader = there(set, status) ? sl_loader_new(set, .batch_size = BATCH, .shuffle = true) : NULL;
	sl_block *net = sl_sequential(sl_flatten_layer(), sl_dense(8, .activation = SL_TANH), sl_dense(10));
	sl_trainer *trainer = NULL;
	sl_metric *metric = sl_accuracy_new();
	slp_scratch_path("net.safetensors", path);
	bool ok = false;
	SL_SCOPE {
		sl_seed(7);
		if (!there(loader, status) || !there(net, status) || !there(metric, status)) break;
		if (!told(sl_initialize(net), status)) break;
		if (!there(trainer = sl_trainer_new(net, sl_adam()), status)) break;
		ok = epoch(loader, net, trainer, metric, r, status) && told(sl_save_params(net, path), status) &&
		     told(sl_trainer_save(trainer, path), status) && told(sl_trainer_load(trainer, path), status);
	}
	sl_metric_free(metric);
	sl_trainer_free(trainer);
	sl_block_free(net);
	sl_loader_free(loader);
	sl_dataset_free(set);
	return ok;
}

/* ---- one that fails ---------------------------------------------------------------------------------------------- */

static const char *volatile running;
static volatile long failing;

/* A crash or a hang would not tell which allocation it is. */
static void tell_which(int number)
{
	char text[128];
	int n = snprintf(text, sizeof text, "test_alloc: %s, allocation %ld: signal %d\n", running, failing, number);
	if (n > 0 && write(2, text, (size_t)n) < 0) _exit(1);
	signal(SIGABRT, SIG_DFL);
	abort();
}

/* "file.c:12", or of a network from a file, "file, node name" */
static bool has_place(const char *message)
{
	const char *p = strstr(message, ".c:");
	return (p && p[3] >= '1' && p[3] <= '9') || strstr(message, ".json, node ");
}

static void check_error(const struct program *p, long k, enum sl_status status, const char *text)
{
	CHECK_SAYING(status == SL_ENOMEM, "%s, allocation %ld: %s, \"%s\"", p->name, k, sl_status_name(status), text);
	CHECK_SAYING(has_place(text), "%s, allocation %ld: no place in \"%s\"", p->name, k, text);
}

/* A kernel that finds no room for what a library needs leaves the work to another one: the last bits may differ. */
static bool is_close(float a, float b)
{
	return fabsf(a - b) <= 1e-6f * fabsf(b);
}

static bool same(const struct result *a, const struct result *b)
{
	return is_close(a->loss, b->loss) && is_close(a->weight, b->weight);
}

/* What is left to tell once all work has ended. */
static void check_rest(const struct program *p, long k, bool failed)
{
	enum sl_status s = sl_wait_all();
	if (s == SL_OK) return;
	CHECK_SAYING(failed, "%s, allocation %ld: went well, and then: %s", p->name, k, sl_error_message());
	check_error(p, k, s, sl_error_message());
}

static void check_works(const struct program *p, long k, const struct result *expected)
{
	struct result r = {0, 0};
	enum sl_status status = SL_OK;
	bool ok = p->run(&r, &status);
	CHECK_SAYING(ok && sl_wait_all() == SL_OK, "%s, after allocation %ld: %s", p->name, k, sl_error_message());
	CHECK_SAYING(same(&r, expected), "%s, after allocation %ld: computes something else", p->name, k);
	sl_error_clear();
}

/* The k-th allocation fails; false if there are not as many. */
static bool fail_one(const struct program *p, long k, const struct result *expected)
{
	struct result r = {0, 0};
	enum sl_status status = SL_OK;
	running = p->name;
	failing = k;
	alarm(4 * SLP_PATIENCE);
	atomic_store(&slp_fail_alloc, k);
	slp_begin((struct sl_config){.teams = 1});
	bool ok = p->run(&r, &status);
	bool reached = atomic_exchange(&slp_fail_alloc, 0) <= 0;
	if (!ok)
		check_error(p, k, status, sl_error_message());
	else
		CHECK_SAYING(same(&r, expected), "%s, allocation %ld: told nothing and computes something else",
		             p->name, k);
	check_rest(p, k, !ok);
	check_works(p, k, expected);
	slp_end_well();
	alarm(0);
	return reached;
}

static long count_allocations(const struct program *p, struct result *r)
{
	enum sl_status status = SL_OK;
	atomic_store(&slp_fail_alloc, LONG_MAX);
	slp_begin((struct sl_config){.teams = 1});
	CHECK_SAYING(p->run(r, &status), "%s: %s", p->name, sl_error_message());
	long count = LONG_MAX - atomic_exchange(&slp_fail_alloc, 0);
	slp_end_well();
	return count;
}

/* The sample is spread evenly: steps that do not divide the number of allocations in a repeated part. */
static void fail_each(const struct program *p)
{
	struct result expected = {0, 0};
	signal(SIGALRM, tell_which);
	signal(SIGABRT, tell_which);
	signal(SIGSEGV, tell_which);
	long n = count_allocations(p, &expected), step = all || n < SAMPLES ? 1 : n / SAMPLES | 1, tried = 0;
	for (long k = 1; k <= n && fail_one(p, k, &expected); k += step) tried++;
	CHECK(tried > 0);
	printf("  %s: %ld of %ld allocations have failed\n", p->name, tried, n);
}

/* ---- suite ------------------------------------------------------------------------------------------------------- */

static void write_images(void)
{
	struct idx_bytes x = idx_images(IMAGES), y = idx_labels(IMAGES);
	slp_write_scratch("x", x.data, x.size);
	slp_write_scratch("y", y.data, y.size);
}

#define PROGRAMS(X) X(eager) X(hybrid) X(compiled) X(files) X(driver)
#define X(name)                                                                                                        \
	static void test_##name(void)                                                                                  \
	{                                                                                                              \
		fail_each(&(struct program){#name, name});                                                             \
	}
PROGRAMS(X)
#undef X

static const struct slp_test tests[] = {
#define X(name) {#name, test_##name},
        PROGRAMS(X)
#undef X
                {NULL, NULL}};
static const struct slp_suite suites[] = {{"alloc", tests, slp_scratch_make, slp_scratch_remove, write_images, slp_end},
                                          {0}};

int main(int argc, char **argv)
{
	all = argc > 1 && !strcmp(argv[1], "all");
	return slp_test_main(all ? argc - 1 : argc, all ? argv + 1 : argv, suites);
}
