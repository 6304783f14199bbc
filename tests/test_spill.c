/* Values in a file while main memory is too small (sl_spill): networks train with the same bits in half of the memory that
 * they need; a file that is full, shortened or does not answer is an error that names it. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "blocks.h"
#include "driver/networks.h"
#include "runtime/memory/spill.h"
#include "runtime/memory/spill_file.h"
#include "starling/spill.h"

enum { STEPS = 3, IMAGES = 64 };

/* A folder on a disk, if there is one: tmpfs is memory. */
static const char *folder(void)
{
	return ".";
}

/* ---- training ------------------------------------------------------------------------------------------------------ */

enum how { WHOLE, HYBRID, CALLS };

struct course {
	const char *name;
	sl_block *(*network)(void);
	void (*batch)(int step, sl_tensor **x, sl_tensor **y);
	sl_loss *loss;
	enum how how;
	struct sl_optimizer optimizer;
};

/* One loss for each word. */
static sl_tensor *word_loss(const char *at, sl_tensor *out, sl_tensor *target)
{
	sl_shape s = sl_tensor_shape(out);
	sl_tensor *rows = sl_reshape_at(at, out, SL_SHAPE(s.dim[0] * s.dim[1], s.dim[2]));
	return sl_softmax_cross_entropy_at(at, rows, sl_reshape_at(at, target, SL_SHAPE(s.dim[0] * s.dim[1])));
}

struct result {
	uint64_t bits; /* of all parameters */
	double loss;
	size_t need; /* bytes of all values, and of the memory that tasks work in */
	uint64_t written, read;
	bool ok;
};

static sl_block *gpt(void)
{
	return net_gpt((struct net_gpt_size){.words = 512, .steps = 32, .width = 128, .layers = 4, .heads = 4});
}

static void words(int step, sl_tensor **x, sl_tensor **y)
{
	int32_t values[4 * 33];
	for (int i = 0; i < 4 * 33; i++) values[i] = (i * i + 31 * step) % 512;
	*x = sl_from(values, SL_SHAPE(4, 32), .dtype = SL_INT32);
	*y = sl_from(values + 4, SL_SHAPE(4, 32), .dtype = SL_INT32);
}

static void digits(int step, sl_tensor **x, sl_tensor **y)
{
	static float values[IMAGES * 28 * 28];
	int32_t classes[IMAGES];
	for (int i = 0; i < IMAGES * 28 * 28; i++) values[i] = (float)sin(0.1 * i + step);
	for (int i = 0; i < IMAGES; i++) classes[i] = (i + step) % 10;
	*x = sl_from(values, SL_SHAPE(IMAGES, 1, 28, 28));
	*y = sl_from(classes, SL_SHAPE(IMAGES), .dtype = SL_INT32);
}

static sl_tensor *make_step(const struct course *c, sl_block *net, sl_trainer *trainer, sl_step *step, sl_tensor *x,
                            sl_tensor *y)
{
	if (step) return sl_step_run(step, x, y, NULL);
	sl_tensor *loss = NULL;
	SL_RECORD
		loss = c->loss(SL_HERE, sl_forward(net, x), y);
	bool ok = sl_backward(loss) == SL_OK && sl_trainer_step(trainer, 32) == SL_OK;
	return ok ? loss : NULL;
}

static void train_network(const struct course *c, struct result *r)
{
	sl_block *net = c->network();
	r->ok = sl_initialize(net, .init = sl_xavier_init()) == SL_OK;
	sl_trainer *trainer = sl_trainer_new(net, c->optimizer);
	sl_step *step = c->how == WHOLE ? sl_step_compile(net, c->loss, trainer) : NULL;
	if (c->how == HYBRID) sl_hybridize(net);
	for (int i = 0; r->ok && i < STEPS; i++)
		SL_SCOPE {
			sl_tensor *x, *y;
			c->batch(i, &x, &y);
			sl_tensor *loss = make_step(c, net, trainer, step, x, y);
			r->loss = loss ? sl_item(sl_sum(loss)) : NAN;
			r->ok = isfinite(r->loss);
		}
	r->bits = slp_net_bits(net);
	r->ok &= r->bits != 0;
	r->need = slp_stats().peak_bytes;
	struct slp_spill_counts counts = slp_spill_counts();
	r->written = counts.written;
	r->read = counts.read;
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
}

/* memory: bytes of values; 0: all stay there. */
static struct result train(const struct course *c, size_t memory)
{
	struct result r = {0};
	slp_end();
	CHECK_OK(sl_spill_at(SL_HERE, memory ? folder() : NULL, (struct sl_spill_opts){.memory = (int64_t)memory}));
	slp_begin((struct sl_config){.teams = 1, .seed = 1});
	sl_stats_reset();
	train_network(c, &r);
	r.ok &= sl_wait_all() == SL_OK;
	slp_end();
	CHECK_OK(sl_spill(NULL));
	return r;
}

/* In half of the memory, or, if an operation takes more than that at once, as on some processors, in more eighths of it,
 * up to `most`. */
static void compare(const struct course *c, int most)
{
	struct result ample = train(c, 0), small = {0};
	int eighths = 3;
	CHECK(ample.ok && !ample.written && !ample.read);
	while (!small.ok && eighths < most) small = train(c, ample.need / 8 * (size_t)++eighths);
	CHECK_SAYING(small.ok, "%s: fails in %d eighths of %.1f MB", c->name, eighths, 1e-6 * (double)ample.need);
	CHECK_SAYING(small.bits == ample.bits && small.loss == ample.loss, "%s: other bits in less memory", c->name);
	CHECK_SAYING(small.written > 0 && small.read > 0, "%s: nothing was spilled", c->name);
	printf("\n    %s: needs %.1f MB; in %d eighths %.1f MB written, %.1f MB read", c->name,
	       1e-6 * (double)ample.need, eighths, 1e-6 * (double)small.written, 1e-6 * (double)small.read);
}

static void test_gpt(void)
{
	compare(&(struct course){"GPT, whole steps", gpt, words, word_loss, WHOLE, sl_adamw(.lr = 1e-3)}, 6);
	compare(&(struct course){"GPT, clipped", gpt, words, word_loss, WHOLE, sl_adamw(.lr = 1e-3, .clip_norm = 0.1)},
	        5);
	compare(&(struct course){"GPT, hybrid", gpt, words, word_loss, HYBRID, sl_adamw(.lr = 1e-3)}, 6);
	compare(&(struct course){"GPT, call by call", gpt, words, word_loss, CALLS, sl_adamw(.lr = 1e-3)}, 6);
}

static void test_lenet(void)
{
	compare(&(struct course){"LeNet, call by call", net_lenet, digits, sl_softmax_cross_entropy_at, CALLS,
	                         sl_sgd(.lr = 0.1, .momentum = 0.9)},
	        7);
}

/* ---- a limit of address space --------------------------------------------------------------------------------------- */

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__ /* their shadow is most of the address space */
#define SLP_HAS_ADDRESS_SPACE

static sl_block *large_gpt(void)
{
	return net_gpt((struct net_gpt_size){.words = 512, .steps = 32, .width = 384, .layers = 4, .heads = 4});
}

/* Bytes of address space that the process has: now, or at most so far. */
static size_t address_space(const char *key)
{
	char line[256];
	size_t kib = 0;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof line, f))
		if (!strncmp(line, key, strlen(key))) kib = strtoul(line + strlen(key), NULL, 10);
	if (f) fclose(f);
	return kib << 10;
}

/* With so many more bytes of address space than the process has; values may take `memory` of these, 0: the default. */
static struct result train_within(const struct course *c, size_t bytes, int64_t memory)
{
	struct rlimit before, now;
	slp_end();
	getrlimit(RLIMIT_AS, &before);
	now = before;
	now.rlim_cur = address_space("VmSize:") + bytes;
	CHECK(setrlimit(RLIMIT_AS, &now) == 0);
	CHECK_OK(sl_spill_at(SL_HERE, folder(), (struct sl_spill_opts){.memory = memory}));
	slp_begin((struct sl_config){.teams = 1, .seed = 1});
	struct result r = {0};
	train_network(c, &r);
	r.ok &= sl_wait_all() == SL_OK;
	if (!r.ok) printf("\n    %s", sl_error_message()); /* slp_end clears it */
	slp_end();
	CHECK_OK(sl_spill(NULL));
	CHECK(setrlimit(RLIMIT_AS, &before) == 0);
	return r;
}

/* In half of the address space that the training adds to the process; and in a quarter, with room for all values by the
 * setting, so that further ones leave when the limit refuses memory to values, tasks or libraries. */
static void test_address_space(void)
{
	const struct course c = {"GPT", large_gpt, words, word_loss, WHOLE, sl_adamw(.lr = 1e-3, .clip_norm = 0.1)};
	size_t before = address_space("VmSize:");
	struct result ample = train(&c, 0);
	size_t half = (address_space("VmPeak:") - before) / 2;
	printf("\n    needs %.1f MB, and %.1f MB of address space", 1e-6 * (double)ample.need, 2e-6 * (double)half);
	for (int more = 0; more < 2; more++) {
		struct result small = train_within(&c, more ? half / 2 : half, more ? (int64_t)ample.need : 0);
		CHECK_SAYING(small.ok, "fails in %s", more ? "a quarter" : "half");
		CHECK(ample.ok && small.bits == ample.bits && small.loss == ample.loss);
		CHECK(small.written > 0);
		printf("; in %s of this %.1f MB written, %.1f MB read", more ? "a quarter" : "half",
		       1e-6 * (double)small.written, 1e-6 * (double)small.read);
	}
}

#endif

/* ---- faults -------------------------------------------------------------------------------------------------------- */

enum { VALUES = 1 << 20, COUNT = 8 };

/* Tensors of 4 MiB each where three have room. */
static void fill(sl_tensor **t)
{
	for (int i = 0; i < COUNT; i++) t[i] = sl_add_scalar(sl_zeros(SL_SHAPE(VALUES)), i);
}

static void begin_small(void)
{
	slp_end();
	CHECK_OK(sl_spill(folder(), .memory = 13 << 20));
	slp_begin((struct sl_config){.teams = 1, .seed = 1});
}

static void end_small(void)
{
	slp_end();
	CHECK_OK(sl_spill(NULL));
}

static void test_values(void)
{
	begin_small();
	SL_SCOPE {
		sl_tensor *t[COUNT];
		fill(t);
		for (int i = 0; i < COUNT; i++) CHECK(sl_item(sl_max(t[i])) == i && sl_item(sl_min(t[i])) == i);
		float *values = malloc(VALUES * sizeof *values);
		for (int i = 0; i < VALUES; i++) values[i] = (float)i;
		CHECK_OK(sl_write(t[0], values, VALUES * sizeof *values));
		for (int i = 1; i < COUNT; i++) CHECK(sl_item(sl_max(t[i])) == i);
		memset(values, 0, VALUES * sizeof *values);
		CHECK_OK(sl_read(t[0], values, VALUES * sizeof *values));
		bool same = true;
		for (int i = 0; i < VALUES; i++) same &= values[i] == (float)i;
		CHECK(same);
		free(values);
	}
	end_small();
}

/* Processor time: other programs do not change it. */
static double processor_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The error of a fault comes soon. */
static void check_prompt(double begin)
{
	double seconds = processor_seconds() - begin;
	CHECK_SAYING(seconds < 2, "the error took %.2f s", seconds);
}

/* A limit of file sizes is a disk that is full. */
static void test_full_disk(void)
{
	struct rlimit before, now;
	begin_small();
	getrlimit(RLIMIT_FSIZE, &before);
	now = before;
	now.rlim_cur = 1 << 20;
	setrlimit(RLIMIT_FSIZE, &now);
	SL_SCOPE {
		double begin = processor_seconds();
		sl_tensor *t[COUNT];
		fill(t);
		CHECK_STATUS(sl_wait_all(), SL_EIO, "spill file", "writing");
		check_prompt(begin);
	}
	setrlimit(RLIMIT_FSIZE, &before);
	end_small();
}

static void test_shortened(void)
{
	begin_small();
	SL_SCOPE {
		sl_tensor *t[COUNT];
		fill(t);
		CHECK_OK(sl_wait_all());
		CHECK(ftruncate(slp_spill_file_descriptor(), 0) == 0);
		double begin = processor_seconds();
		for (int i = 0; i < COUNT; i++) sl_max(t[i]);
		CHECK_STATUS(sl_wait_all(), SL_EIO, "spill file", "reading", "shortened");
		check_prompt(begin);
	}
	end_small();
}

static void start_when_it_has_ended(void)
{
	while (sl_init(NULL) != SL_OK) {
		CHECK_STATUS(sl_error(), SL_EUNSUPPORTED, "still not answered");
		sl_error_clear();
		usleep(100000);
	}
}

/* The error comes although the access has not ended; then it ends, and the next engine starts. */
static void test_no_answer(void)
{
	setenv("SL_SPILL_TIMEOUT", "0.2", 1);
	begin_small();
	SL_SCOPE {
		sl_tensor *t[COUNT];
		atomic_store(&slp_spill_file_delay, 1000);
		fill(t);
		CHECK_STATUS(sl_wait_all(), SL_EIO, "the spill file . has not answered", "SL_SPILL_TIMEOUT");
		atomic_store(&slp_spill_file_delay, 0);
	}
	slp_end();
	unsetenv("SL_SPILL_TIMEOUT");
	start_when_it_has_ended();
	test_values();
}

/* What one operation takes must fit. */
static void test_too_large(void)
{
	begin_small();
	SL_SCOPE {
		double begin = processor_seconds();
		sl_tensor *t = sl_add_scalar(sl_zeros(SL_SHAPE(4 * VALUES)), 1);
		CHECK_STATUS(sl_wait(t), SL_ENOMEM, "SL_SPILL_MEMORY");
		check_prompt(begin);
	}
	end_small();
}

static void test_mistakes(void)
{
	char path[] = "./slp-spill-XXXXXX";
	int fd = mkstemp(path);
	CHECK(fd >= 0 && close(fd) == 0);
	slp_begin_plainly();
	CHECK_STATUS(sl_spill("."), SL_ESTATE, "the engine runs");
	sl_error_clear();
	slp_end();
	CHECK_STATUS(sl_spill(".", .memory = 0), SL_EINVAL, ".memory is 0");
	sl_error_clear();
	CHECK_STATUS(sl_spill(".", .memory = -1), SL_EINVAL, "-1 bytes");
	sl_error_clear();
	CHECK_OK(sl_spill("/no/such/folder/file"));
	CHECK_STATUS(sl_init(NULL), SL_EIO, "/no/such/folder/file");
	sl_error_clear();
	CHECK_OK(sl_spill(path));
	CHECK_STATUS(sl_init(NULL), SL_EIO, path, "name a new file");
	sl_error_clear();
	unlink(path);
	CHECK_OK(sl_spill(path));
	CHECK_OK(sl_init(NULL));
	CHECK(access(path, F_OK) != 0);
	slp_end();
	CHECK_OK(sl_spill(NULL));
	setenv("SL_SPILL_MEMORY", "2x", 1);
	CHECK_STATUS(sl_init(NULL), SL_EINVAL, "SL_SPILL_MEMORY");
	unsetenv("SL_SPILL_MEMORY");
}

static const struct slp_test tests[] = {
#ifdef SLP_HAS_ADDRESS_SPACE
        {"address space", test_address_space}, /* the first one: it reads the peak so far */
#endif
        {"values", test_values},
        {"GPT", test_gpt},
        {"LeNet", test_lenet},
        {"full disk", test_full_disk},
        {"shortened", test_shortened},
        {"too large", test_too_large},
        {"mistakes", test_mistakes},
        {"no answer", test_no_answer},
        {0},
};

int main(int argc, char **argv)
{
	signal(SIGXFSZ, SIG_IGN);
	return slp_test_main(argc, argv,
	                     (const struct slp_suite[]){{.name = "spill", .tests = tests, .after = slp_end}, {0}});
}
