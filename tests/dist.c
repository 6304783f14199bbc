/* dist [OPTION=VALUE...]: trains a small network in one of several processes, or in one with as many shards, and prints a
 * hash of the bits of its parameters, for dist.sh.
 *   shards=M      of this process (default: 1); all shards have the same rows whoever has them
 *   rows=R        of a shard (default: 4)
 *   optimizer=    sgd, adam, clip (SGD that clips by the norm), average, scaled (losses), linear or power (schedules)
 *   reduction=sum of losses, not their mean
 *   mode=         step, eager, local (whole steps, nothing summed), trial (of two ways, of which each rank has times of its own),
 *                 sums (of numbers that have only one), masks (of dropout) or sum (of so many units, which is timed)
 *   shared=1      ranks share the optimiser's state
 *   deep=K        so many more layers of as many units
 *   dtype=        of the network
 *   accumulate=A  micro-batches a step
 *   together=1    batch normalisation is synchronised
 *   dist=         what sl_init is told of the transport
 *   dropout=P     (default: 0.25)
 *   device=gpu    shards are on GPUs, and what is copied from these in the steps after the first is printed (tests/emu)
 *   gpus=1        there are GPUs, even if shards are not there
 *   units=U       of the hidden layer: another network
 *   steps=S       (default: 5)
 *   data=FOLDER   trains nothing, and prints the labels of all batches of some images there
 *   checkpoint=F  written after each step; if it is there, the run goes on with it, and nothing goes wrong any more
 *   fault=KIND@STEP@RANK   kill, stop, nan, rows, rate, late (before the start), quit (it ends its part) */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <starling.h>
#include <starling/dist.h>

#include "nn/trainer.h"

#ifdef SLP_EMULATE
#include "emu/emulated.h"
#endif

enum { PIXELS = 8, CLASSES = 5, MAX_SHARDS = 8, MAX_DEEP = 16 };

static double dropout = 0.25;
static enum sl_device_kind kind = SL_DEVICE_CPU;
static int shards = 1, gpus, together, shared, deep, accumulate = 1, rows = 4, units = 24, steps = 5, fault_step = -1,
           fault_rank = -1;
static const char *reduction = "mean", *optimizer = "sgd", *mode = "step", *fault = "", *checkpoint, *data, *dist,
                  *dtype = "float32";
static int64_t first; /* step of this run */

static void parse(char **argv)
{
	for (; *argv; argv++) {
		char *value = strchr(*argv, '='), *at;
		if (!value) exit(2);
		*value++ = '\0';
		if (!strcmp(*argv, "shards")) shards = atoi(value);
		else if (!strcmp(*argv, "together")) together = atoi(value);
		else if (!strcmp(*argv, "shared")) shared = atoi(value);
		else if (!strcmp(*argv, "deep")) deep = atoi(value) % MAX_DEEP;
		else if (!strcmp(*argv, "dtype")) dtype = value;
		else if (!strcmp(*argv, "accumulate")) accumulate = atoi(value);
		else if (!strcmp(*argv, "rows")) rows = atoi(value);
		else if (!strcmp(*argv, "units")) units = atoi(value);
		else if (!strcmp(*argv, "steps")) steps = atoi(value);
		else if (!strcmp(*argv, "dropout")) dropout = atof(value);
		else if (!strcmp(*argv, "optimizer")) optimizer = value;
		else if (!strcmp(*argv, "reduction")) reduction = value;
		else if (!strcmp(*argv, "mode")) mode = value;
		else if (!strcmp(*argv, "data")) data = value;
		else if (!strcmp(*argv, "dist")) dist = value;
		else if (!strcmp(*argv, "gpus")) gpus = atoi(value);
		else if (!strcmp(*argv, "device")) kind = strcmp(value, "gpu") ? SL_DEVICE_CPU : SL_DEVICE_GPU;
		else if (!strcmp(*argv, "checkpoint")) checkpoint = value;
		else if (!strcmp(*argv, "fault") && (at = strchr(value, '@'))) {
			*at = '\0';
			fault = value;
			if (sscanf(at + 1, "%d@%d", &fault_step, &fault_rank) != 2) exit(2);
		} else exit(2);
	}
}

static sl_device device_at(int i)
{
	return kind == SL_DEVICE_GPU ? sl_gpu(i) : sl_cpu(i);
}

/* ---- the network and its data ------------------------------------------------------------------------------------- */

static sl_block *make_network(void)
{
	sl_block *list[6 + MAX_DEEP];
	int n = 0;
	list[n++] = sl_conv2d_layer(4, .kernel = {3}, .activation = SL_RELU);
	list[n++] = sl_max_pool2d_layer(2);
	for (int i = 0; i <= deep; i++) list[n++] = sl_dense(units, .activation = SL_TANH);
	list[n++] = sl_batch_norm_layer(.synchronised = together);
	list[n++] = sl_dropout_layer(dropout);
	list[n++] = sl_dense(CLASSES);
	return sl_sequential_at(SL_HERE, list, n);
}

static struct sl_optimizer choose_optimizer(void)
{
	if (!strcmp(optimizer, "adam")) return sl_adam(.lr = 0.01, .shard_state = shared);
	if (!strcmp(optimizer, "average")) return sl_sgd(.lr = 0.1, .average = 0.9, .shard_state = shared);
	if (!strcmp(optimizer, "scaled")) return sl_sgd(.lr = 0.1, .loss_scaling.start = 64, .shard_state = shared);
	if (!strcmp(optimizer, "power")) return sl_sgd(.lr = 0.1, .schedule = {SL_POLYNOMIAL, .total = 9, .power = 2});
	if (!strcmp(optimizer, "linear")) return sl_sgd(.lr = 0.1, .schedule = {SL_POLYNOMIAL, .total = 9, .power = 1});
	return sl_sgd(.lr = 0.1, .momentum = 0.9, .clip_norm = !strcmp(optimizer, "clip") ? 0.5 : 0,
	              .shard_state = shared);
}

static float uniform(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (float)(*state >> 40) / (1 << 24);
}

/* The same for a shard, whoever computes it. */
static void make_batch(int step, int shard, int n, sl_device device, sl_tensor **x, sl_tensor **y)
{
	uint64_t state = (uint64_t)(step * 1000 + shard + 1) * 0x9e3779b97f4a7c15u;
	float images[64 * PIXELS * PIXELS];
	int32_t labels[64];
	for (int i = 0; i < n * PIXELS * PIXELS; i++) images[i] = uniform(&state);
	for (int i = 0; i < n; i++) labels[i] = (int32_t)(uniform(&state) * CLASSES);
	*x = sl_cast(sl_from(images, SL_SHAPE(n, 1, PIXELS, PIXELS), .device = device), sl_dtype_named(dtype));
	*y = sl_from(labels, SL_SHAPE(n), .dtype = SL_INT32, .device = device);
}

/* ---- what goes wrong ----------------------------------------------------------------------------------------------- */

static bool happens(const char *what, int step)
{
	return !first && !strcmp(fault, what) && step == fault_step &&
	       atoi(getenv("RANK") ? getenv("RANK") : "0") == fault_rank;
}

static sl_tensor *spoil(sl_tensor *x)
{
	return sl_log(sl_sub_scalar(sl_mul_scalar(x, 0), 1)); /* log(-1) */
}

/* ---- training ------------------------------------------------------------------------------------------------------ */

static bool step_eagerly(sl_block *net, sl_trainer *trainer, sl_tensor **x, sl_tensor **y, int n)
{
	sl_tensor *out[MAX_SHARDS], *losses[MAX_SHARDS];
	SL_RECORD {
		if (sl_forward_shards(net, n, x, out) != SL_OK) return false;
		for (int i = 0; i < n; i++) losses[i] = sl_softmax_cross_entropy(out[i], y[i]);
	}
	return sl_backward_heads(losses, n, .scale = sl_trainer_loss_scale(trainer)) == SL_OK &&
	       sl_trainer_step(trainer, (int64_t)n * rows) == SL_OK;
}

static bool make_step(int step, sl_block *net, sl_trainer *trainer, sl_step *program)
{
	sl_tensor *x[MAX_SHARDS], *y[MAX_SHARDS];
	int devices = sl_device_count(kind), n = happens("rows", step) ? rows + 1 : rows;
	for (int i = 0; i < shards; i++) {
		make_batch(step, sl_dist_rank() * shards + i, n, device_at(i * devices / shards), &x[i], &y[i]);
		if (happens("nan", step)) x[i] = spoil(x[i]);
	}
	if (happens("kill", step)) kill(getpid(), SIGKILL);
	if (happens("stop", step)) kill(getpid(), SIGSTOP);
	if (!strcmp(mode, "eager")) return step_eagerly(net, trainer, x, y, shards);
	if (shards == 1) return sl_step_run(program, x[0], y[0], NULL) != NULL;
	return sl_step_run_shards(program, shards, x, y, NULL, NULL) == SL_OK;
}

static uint64_t hash_of(sl_block *net)
{
	sl_param *params[64];
	int n = sl_block_params(net, params, 64);
	uint64_t h = 14695981039346656037u;
	for (int i = 0; i < n; i++) {
		if (!together && strstr(sl_param_name(params[i]), "running")) continue; /* each rank has its own */
		sl_tensor *t = sl_param_data_at(SL_HERE, params[i], sl_auto());
		size_t bytes = sl_tensor_bytes(t);
		unsigned char *p = malloc(bytes);
		if (!p || sl_read(t, p, bytes) != SL_OK) memset(p, 0, bytes);
		for (size_t k = 0; k < bytes; k++) h = (h ^ p[k]) * 1099511628211u;
		free(p);
	}
	return h;
}

static bool save(sl_trainer *trainer, int64_t step)
{
	return sl_checkpoint_save(checkpoint, .trainer = trainer, .step = &step) == SL_OK;
}

/* Begins, and prints, what has gone from GPUs to main memory. */
static void count_copies(bool print)
{
#ifdef SLP_EMULATE
	struct emu_counts c;
	uint64_t copies = 0, bytes = 0;
	emu_counts_settle();
	emu_counts_get(&c);
	for (int i = 0; i < EMU_MAX_DEVICES; i++) {
		copies += c.link[i][EMU_HOST].copies;
		bytes += c.link[i][EMU_HOST].bytes;
	}
	if (print) printf("copies %" PRIu64 " of %" PRIu64 " bytes from GPUs\n", copies, bytes);
	else emu_counts_reset();
#else
	(void)print;
#endif
}

static size_t state_bytes(const sl_trainer *trainer)
{
	size_t bytes = 0;
	for (int k = 0; k < SLP_TRAINER_STATES; k++)
		for (int i = 0; i < trainer->count; i++)
			if (trainer->states[k][i]) bytes += sl_tensor_bytes(trainer->states[k][i]);
	return bytes;
}

static bool train(void)
{
	sl_device devices[MAX_SHARDS];
	int count = sl_device_count(kind);
	bool ok = true;
	for (int i = 0; i < count; i++) devices[i] = device_at(i);
	sl_block *net = make_network();
	if (!strcmp(mode, "strangers")) sl_seed(7 + (uint64_t)sl_dist_rank());
	sl_initialize(net, .init = sl_xavier_init(), .devices = devices, .ndevices = count,
	              .dtype = sl_dtype_named(dtype));
	sl_trainer *trainer = sl_trainer_new(net, choose_optimizer());
	if (!strcmp(mode, "local")) sl_dist_local(trainer);
	sl_step *program =
	        sl_step_compile(net, sl_softmax_cross_entropy_at, trainer, .accumulate = accumulate,
	                        .reduction = strcmp(reduction, "sum") ? SL_REDUCTION_MEAN : SL_REDUCTION_SUM);
	if (checkpoint && access(checkpoint, F_OK) == 0)
		ok = sl_checkpoint_load(checkpoint, .trainer = trainer, .step = &first) == SL_OK;
	for (int i = (int)first; ok && i < steps; i++)
		SL_SCOPE {
			if (happens("quit", i)) ok = false;
			if (happens("rate", i)) sl_trainer_set_lr(trainer, 0.25);
			ok = ok && make_step(i, net, trainer, program) && sl_wait_all() == SL_OK;
			if (ok && checkpoint) ok = save(trainer, i + 1);
			if (i == first) count_copies(false);
		}
	if (ok && kind == SL_DEVICE_GPU) count_copies(true);
	if (ok && !strcmp(optimizer, "average")) ok = sl_trainer_use_averages(trainer, true) == SL_OK;
	SL_SCOPE
		if (ok) printf("hash %016" PRIx64 "\n", hash_of(net));
	if (ok && !strcmp(optimizer, "average")) ok = sl_trainer_use_averages(trainer, false) == SL_OK;
	SL_SCOPE
		if (ok && !strcmp(optimizer, "average")) printf("then %016" PRIx64 "\n", hash_of(net));
	if (ok && !strcmp(optimizer, "scaled"))
		printf("scale %g after %d overflows\n", sl_trainer_loss_scale(trainer),
		       (int)sl_trainer_overflows(trainer));
	struct sl_stats stats = {0};
	if (ok) sl_stats_get(&stats);
	if (ok) printf("keeps %zu bytes of state of %zu in all\n", state_bytes(trainer), stats.bytes);
	sl_step_free(program);
	sl_trainer_free(trainer);
	sl_block_free(net);
	return ok;
}

/* 22 images, in batches of `rows` for each process. */
static bool show_batches(void)
{
	int32_t labels[64];
	sl_dataset *images = sl_dataset_mnist(data, SL_TEST);
	sl_loader *loader = sl_loader_new(images, .batch_size = rows, .shuffle = true, .seed = 3, .limit = 22);
	bool more = sl_dist_share(loader) == SL_OK;
	while (more)
		SL_SCOPE {
			struct sl_batch b;
			if (!(more = sl_loader_next(loader, &b))) break;
			int64_t n = sl_tensor_shape(b.y).dim[0];
			sl_read(b.y, labels, (size_t)n * sizeof *labels);
			printf("batch %d", (int)b.index);
			for (int64_t i = 0; i < n; i++) printf(" %d", (int)labels[i]);
			printf("\n");
		}
	sl_loader_free(loader);
	sl_dataset_free(images);
	return sl_error() == SL_OK;
}

/* What all have added: here, rank + 1 times the rank. */
static void show_mean(void)
{
	sl_metric *mean = sl_mean_new();
	SL_SCOPE
		sl_metric_add(mean, sl_full(SL_SHAPE(sl_dist_rank() + 1), sl_dist_rank()), NULL);
	printf("mean %.4f\n", sl_metric_get(mean));
	sl_metric_free(mean);
}

/* The way that was decided upon, and what it was decided by: the sums of all ranks' times, to the last bit. */
static bool show_trial(void)
{
	sl_trial *trial = sl_trial_new(2);
	while (!sl_trial_decided(trial)) sl_trial_next(trial);
	printf("way %d of %.17g %.17g\n", sl_trial_next(trial), sl_trial_seconds(trial, 0), sl_trial_seconds(trial, 1));
	sl_trial_free(trial);
	return sl_error() == SL_OK;
}

/* sl_wait_all waits for a sum, which is not a task. */
static bool waits_for_sums(void)
{
	uint64_t before = sl_dist_info().exchanges;
	bool ok = true;
	SL_SCOPE
		ok = sl_dist_sum(sl_ones(SL_SHAPE(3))) == SL_OK && sl_wait_all() == SL_OK;
	return ok && sl_dist_info().exchanges == before + (sl_dist_size() > 1);
}

/* More than a double holds: 2^53 + 1 on rank 0, 2 on others. */
static bool sums_are_exact(void)
{
	int64_t first = (INT64_C(1) << 53) + 1, sum = sl_dist_rank() ? 2 : first;
	bool ok = true;
	SL_SCOPE {
		sl_tensor *t = sl_from(&sum, SL_SHAPE(1), .dtype = SL_INT64);
		ok = sl_dist_sum(t) == SL_OK && sl_read(t, &sum, sizeof sum) == SL_OK;
	}
	return ok && sum == first + 2 * (sl_dist_size() - 1);
}

/* Whole numbers, whose sum over the ranks is the same in any order. */
static bool show_sums(void)
{
	enum { N = 100003 }; /* several messages each */
	static double sums[N];
	static const enum sl_dtype types[] = {SL_FLOAT32, SL_FLOAT64, SL_INT32, SL_INT64, SL_UINT8, SL_BFLOAT16};
	int size = sl_dist_size(), wrong = 0, all = size * (size + 1) / 2;
	for (size_t k = 0; k < sizeof types / sizeof *types; k++)
		SL_SCOPE {
			sl_tensor *t = sl_arange(0, N, 1, .dtype = SL_FLOAT64, .device = device_at(0));
			t = sl_sub(t, sl_mul_scalar(sl_floor(sl_mul_scalar(t, 1 / 7.0)), 7));
			t = sl_cast(sl_mul_scalar(t, sl_dist_rank() + 1), types[k]);
			if (sl_dist_sum(t) != SL_OK || sl_read(sl_cast(t, SL_FLOAT64), sums, sizeof sums) != SL_OK)
				return false;
			for (int i = 0; i < N; i++) wrong += sums[i] != all * (i % 7);
		}
	wrong += !waits_for_sums() + !sums_are_exact();
	printf("%d wrong sums\n", wrong);
	return true;
}

/* Tensors of as many elements, but not of one shape. */
static bool sum_shapes(void)
{
	bool ok = true;
	SL_SCOPE {
		sl_tensor *t = sl_zeros(SL_SHAPE(sl_dist_rank() ? 2 : 3, sl_dist_rank() ? 3 : 2));
		ok = sl_dist_sum(t) == SL_OK && sl_wait(t) == SL_OK;
	}
	return ok;
}

static sl_tensor *drop(sl_tensor *x)
{
	return sl_dropout(x, 0.5);
}

static void print_mask(const char *what, sl_tensor *y)
{
	float mask[64] = {0};
	sl_read(y, mask, sizeof mask);
	printf("%s ", what);
	for (int i = 0; i < 64; i++) printf("%d", mask[i] != 0);
	printf("\n");
}

/* Of dropout, call by call and compiled, which each rank has of its own, and of numbers that are the same for all. */
static bool show_masks(void)
{
	sl_block *compiled = sl_lambda("drop", drop);
	sl_hybridize(compiled);
	SL_SCOPE {
		sl_tensor *ones = sl_ones(SL_SHAPE(64)), *y[2];
		SL_RECORD {
			y[0] = sl_dropout(ones, 0.5);
			y[1] = sl_forward(compiled, ones);
		}
		print_mask("eager", y[0]);
		print_mask("compiled", y[1]);
		print_mask("uniform", sl_floor(sl_uniform(SL_SHAPE(64), 0, 2)));
	}
	sl_block_free(compiled);
	return sl_error() == SL_OK;
}

static bool time_sum(void)
{
	SL_SCOPE {
		sl_tensor *t = sl_zeros(SL_SHAPE(units));
		sl_wait_all();
		double start = sl_time();
		if (sl_dist_sum(t) != SL_OK || sl_wait(t) != SL_OK) return false;
		printf("lasted %.9f\n", sl_time() - start);
	}
	return true;
}

static bool run(void)
{
	if (data) return show_batches();
	if (!strcmp(mode, "sum")) return time_sum();
	if (!strcmp(mode, "sums")) return show_sums();
	if (!strcmp(mode, "shapes")) return sum_shapes();
	if (!strcmp(mode, "masks")) return show_masks();
	return strcmp(mode, "trial") ? train() : show_trial();
}

int main(int argc, char **argv)
{
	(void)argc;
	parse(argv + 1);
	if (happens("late", 0)) sleep(600);
	bool ok =
	        sl_init(&(struct sl_config){.gpus = gpus || kind == SL_DEVICE_GPU ? 0 : -1, .seed = 7, .dist = dist}) ==
	                SL_OK &&
	        run();
	if (ok) show_mean();
	struct sl_dist_info info = sl_dist_info();
	if (ok) ok = sl_wait_all() == SL_OK;
	if (!ok) fprintf(stderr, "error: %s\n", sl_error_message());
	if (info.gpu_sums) printf("sums of GPUs: %s\n", info.gpu_sums);
	if (ok && info.size > 1)
		printf("sent %" PRIu64 " bytes in %" PRIu64 " exchanges\n", info.bytes_sent, info.exchanges);
	sl_error_clear();
	sl_shutdown();
	return ok ? 0 : 1;
}
