/* dist [OPTION=VALUE...]: trains a small network in one of several processes, or in one with as many shards, and prints
 * a hash of the bits of its parameters, for dist.sh.
 *   shards=M      of this process (default: 1); all shards have the same rows whoever has them
 *   rows=R        of a shard (default: 4)
 *   optimizer=    an optimiser's name, clip (SGD that clips by the norm), average, scaled (losses), linear or power
 *                 (schedules)
 *   clip=NORM     gradients are clipped by their norm
 *   groups=1      biases have a learning rate of their own and no decay
 *   freeze=1      the first layer is not trained
 *   recompute=1   the backward pass computes again what the first layers gave
 *   autocast=     half type that products are computed in
 *   reduction=sum of losses, not their mean
 *   other_values=1   ranks begin with other values
 *   hybrid=1      the network is hybridised
 *   order=        warm: a forward pass makes the values before the trainer is made, late: one that is recorded does, changed: rank 1
 *                 changes them between the first forward pass and the first step
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
 *   async=1       it is written behind the next step
 *   fault=KIND@STEP@RANK   kill, stop, nan, large (inputs), label (that there is not: a kernel fails), rows, rate, write (killed
 *                 while rank 0 writes the step's checkpoint), late (before the start), quit (it ends its part)
 * After an error the seconds are printed since the step began, or the program. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <starling.h>
#include <starling/dist.h>

#include "dist.h"
#include "train/trainer.h"

#ifdef SLP_EMULATE
#include "emu/emulated.h"
#endif

enum { PIXELS = 8, CLASSES = 5, MAX_SHARDS = 8, MAX_DEEP = 16 };

static double dropout = 0.25, clip;
static enum sl_device_kind kind = SL_DEVICE_CPU;
static int shards = 1, gpus, together, shared, deep, accumulate = 1, rows = 4, units = 24, steps = 5, groups, freeze,
           recompute, other_values, hybrid, async, fault_step = -1, fault_rank = -1;
static const char *reduction = "mean", *optimizer = "sgd", *mode = "step", *fault = "", *checkpoint, *data, *dist,
                  *dtype = "float32", *autocast, *order = "", *device = "cpu";
static int64_t first; /* step of this run */
static double began;  /* the step, or the program */
static sl_checkpoint_job *job;

static const struct {
	const char *name;
	int *number;
	const char **text;
	double *real;
} options[] = {
        {"shards", .number = &shards},
        {"together", .number = &together},
        {"shared", .number = &shared},
        {"deep", .number = &deep},
        {"accumulate", .number = &accumulate},
        {"rows", .number = &rows},
        {"units", .number = &units},
        {"steps", .number = &steps},
        {"gpus", .number = &gpus},
        {"groups", .number = &groups},
        {"freeze", .number = &freeze},
        {"recompute", .number = &recompute},
        {"other_values", .number = &other_values},
        {"hybrid", .number = &hybrid},
        {"async", .number = &async},
        {"dropout", .real = &dropout},
        {"clip", .real = &clip},
        {"dtype", .text = &dtype},
        {"optimizer", .text = &optimizer},
        {"reduction", .text = &reduction},
        {"mode", .text = &mode},
        {"data", .text = &data},
        {"dist", .text = &dist},
        {"checkpoint", .text = &checkpoint},
        {"fault", .text = &fault},
        {"autocast", .text = &autocast},
        {"order", .text = &order},
        {"device", .text = &device},
};

static bool set(const char *name, const char *value)
{
	for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
		if (strcmp(name, options[i].name)) continue;
		if (options[i].number) *options[i].number = atoi(value);
		if (options[i].text) *options[i].text = value;
		if (options[i].real) *options[i].real = atof(value);
		return true;
	}
	return false;
}

static void parse(char **argv)
{
	for (; *argv; argv++) {
		char *value = strchr(*argv, '=');
		if (!value) exit(2);
		*value++ = '\0';
		if (!set(*argv, value)) exit(2);
	}
	char *at = (char *)strchr(fault, '@'); /* the program's argument, which may be changed */
	if (at && sscanf(at + 1, "%d@%d", &fault_step, &fault_rank) != 2) exit(2);
	if (at) *at = '\0';
	if (!strcmp(device, "gpu")) kind = SL_DEVICE_GPU;
	if (deep >= MAX_DEEP || shards > MAX_SHARDS) exit(2);
}

static sl_device device_at(int i)
{
	return kind == SL_DEVICE_GPU ? sl_gpu(i) : sl_cpu(i);
}

/* ---- the network and its data ------------------------------------------------------------------------------------ */

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
	for (int i = 0; recompute && i < 3; i++) sl_block_recompute(list[i], true);
	sl_block *net = sl_sequential_at(SL_HERE, list, n);
	if (hybrid) sl_hybridize(net);
	return net;
}

static struct sl_optimizer optimizer_named(const char *name)
{
	if (!strcmp(name, "adam")) return sl_adam(.lr = 0.01);
	if (!strcmp(name, "adamw")) return sl_adamw(.lr = 0.01, .weight_decay = 0.1);
	if (!strcmp(name, "rmsprop")) return sl_rmsprop(.lr = 0.01, .momentum = 0.9);
	if (!strcmp(name, "average")) return sl_sgd(.lr = 0.1, .average = 0.9);
	if (!strcmp(name, "scaled")) return sl_sgd(.lr = 0.1, .loss_scaling.start = 64);
	if (!strcmp(name, "power")) return sl_sgd(.lr = 0.1, .schedule = {SL_POLYNOMIAL, .total = 9, .power = 2});
	if (!strcmp(name, "linear")) return sl_sgd(.lr = 0.1, .schedule = {SL_POLYNOMIAL, .total = 9, .power = 1});
	if (!strcmp(name, "clip")) return sl_sgd(.lr = 0.1, .momentum = 0.9, .clip_norm = 0.5);
	int kind = strcmp(name, "sgd") ? sl_optimizer_named(name) : -1;
	if (kind >= 0) return SL_OPTIMIZER((enum sl_optimizer_kind)kind, .lr = 0.01, .weight_decay = 0.1);
	return sl_sgd(.lr = 0.1, .momentum = 0.9);
}

static sl_trainer *make_trainer(sl_block *net)
{
	struct sl_optimizer o = optimizer_named(optimizer);
	o.shard_state = shared;
	if (clip > 0) o.clip_norm = clip;
	sl_trainer *trainer = sl_trainer_new(net, o);
	if (!strcmp(mode, "local")) sl_dist_local(trainer);
	if (groups) sl_trainer_group(trainer, "*.bias", .lr_scale = 2, .no_decay = true);
	return trainer;
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

/* ---- what goes wrong --------------------------------------------------------------------------------------------- */

/* To some rank. */
static bool comes(const char *what, int step)
{
	return !first && !strcmp(fault, what) && step == fault_step;
}

static bool happens(const char *what, int step)
{
	return comes(what, step) && atoi(getenv("RANK") ? getenv("RANK") : "0") == fault_rank;
}

static sl_tensor *spoil(sl_tensor *x)
{
	return sl_log(sl_sub_scalar(sl_mul_scalar(x, 0), 1)); /* log(-1) */
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

static enum sl_dtype cast_to(void)
{
	return autocast ? sl_dtype_named(autocast) : SL_FLOAT32;
}

static void change_values(sl_block *net)
{
	sl_param *params[64];
	if (sl_dist_rank() == 1 && sl_block_params(net, params, 64) > 0)
		SL_PAUSE
			sl_fill_(sl_param_data(params[0]), 1);
}

static bool step_eagerly(sl_block *net, sl_trainer *trainer, sl_tensor **x, sl_tensor **y, int n)
{
	sl_tensor *out[MAX_SHARDS], *losses[MAX_SHARDS];
	SL_AUTOCAST(cast_to())
	SL_RECORD {
		if (sl_forward_shards(net, n, x, out) != SL_OK) return false;
		for (int i = 0; i < n; i++) losses[i] = sl_softmax_cross_entropy(out[i], y[i]);
	}
	if (sl_backward_heads(losses, n, .scale = sl_trainer_loss_scale(trainer)) != SL_OK) return false;
	if (!strcmp(order, "changed") && !sl_trainer_steps(trainer)) change_values(net);
	return sl_trainer_step(trainer, (int64_t)n * rows) == SL_OK;
}

static bool make_step(int step, sl_block *net, sl_trainer *trainer, sl_step *program)
{
	sl_tensor *x[MAX_SHARDS], *y[MAX_SHARDS];
	int devices = sl_device_count(kind), n = happens("rows", step) ? rows + 1 : rows;
	for (int i = 0; i < shards; i++) {
		make_batch(step, sl_dist_rank() * shards + i, n, device_at(i * devices / shards), &x[i], &y[i]);
		if (happens("nan", step)) x[i] = spoil(x[i]);
		if (happens("label", step)) y[i] = sl_add_scalar(y[i], 1000);
		if (happens("large", step)) x[i] = sl_mul_scalar(x[i], 1e30);
	}
	if (happens("kill", step)) kill(getpid(), SIGKILL);
	if (happens("stop", step)) kill(getpid(), SIGSTOP);
	if (!strcmp(mode, "eager")) return step_eagerly(net, trainer, x, y, shards);
	bool ok = false;
	SL_AUTOCAST(cast_to())
	{
		if (shards == 1) ok = sl_step_run(program, x[0], y[0], NULL) != NULL;
		else ok = sl_step_run(program, .in = x, .targets = y, .shards = shards) != NULL;
	}
	return ok;
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

static bool end_job(void)
{
	bool ok = !job || sl_checkpoint_end(job) == SL_OK;
	job = NULL;
	return ok;
}

static bool save(sl_trainer *trainer, int64_t step)
{
	if (!checkpoint) return true;
	if (comes("write", (int)step)) dist_die_in_write(fault_rank, checkpoint);
	if (!async) return sl_checkpoint_save(checkpoint, .trainer = trainer, .step = &step) == SL_OK;
	return end_job() && (job = sl_checkpoint_begin(checkpoint, .trainer = trainer, .step = &step));
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

static sl_block *begin_network(void)
{
	sl_device devices[MAX_SHARDS];
	int count = sl_device_count(kind);
	for (int i = 0; i < count; i++) devices[i] = device_at(i);
	sl_block *net = make_network();
	if (other_values) sl_seed(7 + (uint64_t)sl_dist_rank());
	sl_initialize(net, .init = sl_xavier_init(), .devices = devices, .ndevices = count,
	              .dtype = sl_dtype_named(dtype));
	if (freeze) sl_freeze(net, "0.*");
	sl_tensor *x, *y;
	SL_SCOPE {
		make_batch(0, 0, rows, device_at(0), &x, &y);
		if (!strcmp(order, "warm")) sl_forward(net, x);
		if (!strcmp(order, "late"))
			SL_RECORD
				sl_forward(net, x);
	}
	return net;
}

/* Once more with the averages in their place. */
static bool show_averages(sl_block *net, sl_trainer *trainer)
{
	bool ok = sl_trainer_use_averages(trainer, false) == SL_OK;
	SL_SCOPE
		if (ok) printf("then %016" PRIx64 "\n", hash_of(net));
	return ok;
}

static bool show(sl_block *net, sl_trainer *trainer)
{
	struct sl_stats stats = {0};
	bool ok = true, averages = !strcmp(optimizer, "average");
	if (kind == SL_DEVICE_GPU) count_copies(true);
	if (averages) ok = sl_trainer_use_averages(trainer, true) == SL_OK;
	SL_SCOPE
		if (ok) printf("hash %016" PRIx64 "\n", hash_of(net));
	if (ok && averages) ok = show_averages(net, trainer);
	if (!strcmp(optimizer, "scaled"))
		printf("scale %g after %d overflows\n", sl_trainer_loss_scale(trainer),
		       (int)sl_trainer_overflows(trainer));
	sl_stats_get(&stats);
	printf("keeps %zu bytes of state of %zu in all\n", state_bytes(trainer), stats.bytes);
	return ok;
}

static bool train(void)
{
	sl_block *net = begin_network();
	sl_trainer *trainer = make_trainer(net);
	sl_step *program =
	        sl_step_compile(net, sl_softmax_cross_entropy_at, trainer, .accumulate = accumulate,
	                        .reduction = strcmp(reduction, "sum") ? SL_REDUCTION_MEAN : SL_REDUCTION_SUM);
	bool ok = true;
	if (checkpoint && access(checkpoint, F_OK) == 0)
		ok = sl_checkpoint_load(checkpoint, .trainer = trainer, .step = &first) == SL_OK;
	for (int i = (int)first; ok && i < steps; i++)
		SL_SCOPE {
			if (happens("quit", i)) ok = false;
			if (happens("rate", i)) sl_trainer_set_lr(trainer, 0.25);
			began = sl_time();
			ok = ok && make_step(i, net, trainer, program) && sl_wait_all() == SL_OK;
			ok = ok && save(trainer, i + 1);
			if (i == first) count_copies(false);
		}
	ok = end_job() && ok && show(net, trainer);
	sl_step_free(program);
	sl_trainer_free(trainer);
	sl_block_free(net);
	return ok;
}

static bool run(void)
{
	if (data) return dist_show_batches(data, rows);
	if (!strcmp(mode, "sum")) return dist_time_sum(units);
	if (!strcmp(mode, "sums")) return dist_show_sums(device_at(0));
	if (!strcmp(mode, "shapes")) return dist_sum_shapes();
	if (!strcmp(mode, "masks")) return dist_show_masks();
	return strcmp(mode, "trial") ? train() : dist_show_trial();
}

int main(int argc, char **argv)
{
	(void)argc;
	parse(argv + 1);
	if (happens("late", 0)) sleep(600);
	began = sl_time();
	bool ok =
	        sl_init(&(struct sl_config){.gpus = gpus || kind == SL_DEVICE_GPU ? 0 : -1, .seed = 7, .dist = dist}) ==
	                SL_OK &&
	        run();
	if (ok) dist_show_mean();
	struct sl_dist_info info = sl_dist_info();
	if (ok) ok = sl_wait_all() == SL_OK;
	if (!ok) fprintf(stderr, "error: %s\nafter %.1f seconds\n", sl_error_message(), sl_time() - began);
	if (info.gpu_sums) printf("sums of GPUs: %s\n", info.gpu_sums);
	if (ok && info.size > 1)
		printf("sent %" PRIu64 " bytes in %" PRIu64 " exchanges\n", info.bytes_sent, info.exchanges);
	sl_error_clear();
	sl_shutdown();
	return ok ? 0 : 1;
}
