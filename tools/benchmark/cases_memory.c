/* Cases of training beside short memory: an update on the CPU, and whole steps whose values are in a file. */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <starling/spill.h>

#include "bench.h"

#include "../../models/driver/networks.h"

/* ---- an update --------------------------------------------------------------------------------------------------- */

enum { PARTS = 16 };

static struct {
	sl_tensor *of[4][PARTS]; /* parameters, gradients, means, variances */
	int64_t step;
} adam;

bool bench_adam_setup(const struct bench_case *c)
{
	(void)c;
	bool ok = true;
	for (int k = 0; k < 4; k++)
		for (int i = 0; i < PARTS; i++)
			SL_SCOPE
				ok &= (adam.of[k][i] = sl_retain(sl_zeros(SL_SHAPE(BENCH_ADAM_SIZE / PARTS)))) != NULL;
	adam.step = 0;
	return ok && sl_wait_all() == SL_OK;
}

double bench_adam_run(const struct bench_case *c, int64_t times)
{
	(void)c;
	double start = bench_now();
	for (int64_t i = 0; i < times; i++)
		bench_must(sl_adam_update(adam.of[0], adam.of[1], adam.of[2], adam.of[3], PARTS, .lr = 1e-3,
		                          .weight_decay = 0.1, .decoupled = true, .step = ++adam.step));
	bench_must(sl_wait_all());
	return (bench_now() - start) / (double)times;
}

void bench_adam_teardown(void)
{
	for (int k = 0; k < 4; k++)
		for (int i = 0; i < PARTS; i++) sl_release(adam.of[k][i]);
}

/* ---- values in a file -------------------------------------------------------------------------------------------- */

double bench_spill_megabytes; /* of a step, both ways */

static const struct net_gpt_size small_gpt = {.words = 8192, .steps = 64, .width = 512, .layers = 6, .heads = 8};
enum { ROWS = 4, WARM = 1, STEPS = 3 };

/* A loss a token */
static sl_tensor *loss_of(const char *at, sl_tensor *y, sl_tensor *words)
{
	sl_shape s = sl_tensor_shape(y);
	int64_t tokens = s.dim[0] * s.dim[1];
	return sl_softmax_cross_entropy_at(at, sl_reshape_at(at, y, SL_SHAPE(tokens, s.dim[2])),
	                                   sl_reshape_at(at, words, SL_SHAPE(tokens)));
}

struct training {
	double seconds, written, read; /* of a step */
	size_t need;
};

static void train(struct training *t)
{
	sl_block *net = net_gpt(small_gpt);
	if (!net || sl_initialize(net, .init = sl_normal_init(0.02)) != SL_OK) bench_must(sl_error());
	sl_trainer *trainer = sl_trainer_new(net, sl_adamw(.lr = 1e-3, .weight_decay = 0.1));
	sl_step *step = sl_step_compile(net, loss_of, trainer);
	struct sl_stats before = {0}, after;
	double start = 0;
	for (int i = 0; i < WARM + STEPS; i++)
		SL_SCOPE {
			if (i == WARM) {
				sl_stats_get(&before);
				start = bench_now();
			}
			sl_shape shape = SL_SHAPE(ROWS, small_gpt.steps);
			sl_tensor *x = sl_cast(sl_uniform(shape, 0, (double)small_gpt.words), SL_INT32);
			sl_step_run(step, x, x, NULL);
			bench_must(sl_wait_all());
		}
	t->seconds = (bench_now() - start) / STEPS;
	sl_stats_get(&after);
	t->written = (double)(after.spill_written - before.spill_written) / STEPS;
	t->read = (double)(after.spill_read - before.spill_read) / STEPS;
	t->need = after.peak_bytes;
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
}

/* memory: of values; 0: enough. */
static struct training train_within(size_t memory)
{
	struct training t = {.seconds = NAN};
	bench_must(memory ? sl_spill(".", .memory = (int64_t)memory) : sl_spill(NULL));
	bench_must(sl_init(&(struct sl_config){.gpus = -1, .seed = 1}));
	train(&t);
	sl_shutdown();
	bench_must(sl_spill(NULL));
	return t;
}

/* Seconds to write so many bytes to a file of their size here, or to read them again, in pieces. */
static double plain_access(int fd, void *piece, size_t size, double bytes, bool out)
{
	double start = bench_now();
	off_t at = 0;
	for (; (double)at < bytes; at += (off_t)size) {
		ssize_t n = out ? pwrite(fd, piece, size, at) : pread(fd, piece, size, at);
		if (n != (ssize_t)size) return NAN;
	}
	return (bench_now() - start) * bytes / (double)at;
}

static double plain_seconds(double written, double read)
{
	enum { PIECE = 4 << 20, PAGE = 4096 };
	void *piece = aligned_alloc(PAGE, PIECE);
	int fd = open(".", O_RDWR | O_TMPFILE | O_DIRECT, 0600);
	if (fd < 0) fd = open(".", O_RDWR | O_TMPFILE, 0600);
	double seconds = NAN;
	if (piece && fd >= 0) {
		memset(piece, 1, PIECE);
		double all = fmax(written, read), first = plain_access(fd, piece, PIECE, all, true);
		seconds = plain_access(fd, piece, PIECE, written, true) + plain_access(fd, piece, PIECE, read, false);
		if (!isfinite(first)) seconds = NAN;
	}
	if (fd >= 0) close(fd);
	free(piece);
	return seconds;
}

/* The file's bound is what a loop takes that writes and reads as many bytes, before and after; but no step is faster than one
 * with enough memory. */
double bench_spill_run(const struct bench_case *c, int64_t times)
{
	(void)c, (void)times;
	struct training ample = train_within(0), t = train_within(ample.need / 2);
	double file = fmin(plain_seconds(t.written, t.read), plain_seconds(t.written, t.read));
	bench_spill_megabytes = 1e-6 * (t.written + t.read);
	return fmax(file, ample.seconds) / t.seconds;
}
