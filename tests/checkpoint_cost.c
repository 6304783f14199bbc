/* checkpoint_cost FOLDER [ROUNDS [STEPS]]: what checkpoints cost the training that goes on beside them.  ResNet-18 on
 * batches of 32 in whole steps, with momentum: rounds of some steps with a checkpoint begun before the first of them,
 * and without, in turn.  Prints after each pair the medians so far: of the differences, and how much of the time that
 * is where one is written each 10 seconds; and the same of processor time, which other programs on the machine blur
 * less.  With no steps at all: what it takes to write one where nothing else is done. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <starling.h>

#include "models/driver/networks.h"

enum { BATCH = 32, SIDE = 28, MOST = 1000, EVERY = 10 };

static struct {
	sl_block *net;
	sl_trainer *trainer;
	sl_step *step;
	sl_tensor *x, *labels;
	const char *folder;
	int unfinished; /* rounds that ended before their checkpoint was written */
} run;

static bool start(const char *folder)
{
	run.folder = folder;
	run.net = net_resnet18();
	if (!run.net || sl_initialize(run.net, .init = sl_xavier_init()) != SL_OK) return false;
	run.trainer = sl_trainer_new(run.net, sl_sgd(.lr = 0.01, .momentum = 0.9));
	run.step = sl_step_compile(run.net, sl_softmax_cross_entropy_at, run.trainer);
	SL_SCOPE {
		run.x = sl_retain(sl_normal(SL_SHAPE(BATCH, 1, SIDE, SIDE), 0, 1));
		run.labels = sl_retain(sl_zeros(SL_SHAPE(BATCH), .dtype = SL_INT32));
	}
	return run.step && run.x && run.labels;
}

struct times {
	double wall, cpu;
};

static struct times now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (struct times){sl_time(), (double)t.tv_sec + 1e-9 * (double)t.tv_nsec};
}

/* What so many steps take; false after an error. */
static bool round_of(int steps, bool save, struct times *taken)
{
	struct times begin = now(), end;
	sl_checkpoint_job *job = NULL;
	if (save && !(job = sl_checkpoint_begin(run.folder, .keep = 2, .trainer = run.trainer))) return false;
	for (int i = 0; i < steps; i++)
		SL_SCOPE
			if (!sl_step_run(run.step, run.x, run.labels, NULL)) return false;
	if (sl_wait_all() != SL_OK) return false;
	end = now();
	run.unfinished += steps && !sl_checkpoint_written(job);
	bool ok = !job || sl_checkpoint_end(job) == SL_OK;
	if (!steps) end = now();
	*taken = (struct times){end.wall - begin.wall, end.cpu - begin.cpu};
	return ok;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Of a list that stays as it is. */
static double median(const double *list, int n)
{
	double sorted[MOST];
	memcpy(sorted, list, (size_t)n * sizeof *sorted);
	qsort(sorted, (size_t)n, sizeof *sorted, compare);
	return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

static bool measure(int rounds, int steps)
{
	static double wall[MOST], cpu[MOST], without[MOST];
	struct times t[2];
	double cores = (double)sysconf(_SC_NPROCESSORS_ONLN);
	if (!round_of(2, false, t) || !round_of(2, true, t)) return false;
	run.unfinished = 0;
	for (int i = 0; i < rounds; i++) {
		for (int k = 0; k < 2; k++) { /* each is first in turn */
			bool save = (i + k) % 2;
			if (!round_of(steps, save, &t[save])) return false;
		}
		wall[i] = t[1].wall - t[0].wall;
		cpu[i] = t[1].cpu - t[0].cpu;
		without[i] = t[0].wall;
		double w = median(wall, i + 1), c = median(cpu, i + 1);
		printf("%d: %.2f and %.2f s; a step %.0f ms, a checkpoint %.0f ms: %.2f %% of %d s; %.0f ms of "
		       "processors: %.2f %%; "
		       "%d written after their round\n",
		       i + 1, t[0].wall, t[1].wall, 1000 * median(without, i + 1) / (steps ? steps : 1), 1000 * w,
		       100 * w / EVERY, EVERY, 1000 * c, 100 * c / EVERY / cores, run.unfinished);
		fflush(stdout);
	}
	return true;
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[2]) : 12, steps = argc > 3 ? atoi(argv[3]) : 10;
	if (argc < 2 || rounds < 1 || rounds > MOST || steps < 0) {
		fprintf(stderr, "usage: %s FOLDER [ROUNDS [STEPS]]\n", argv[0]);
		return 2;
	}
	bool ok = start(argv[1]) && measure(rounds, steps);
	if (!ok) fprintf(stderr, "checkpoint_cost: %s\n", sl_error_message());
	sl_step_free(run.step);
	sl_release(run.x);
	sl_release(run.labels);
	sl_trainer_free(run.trainer);
	sl_block_free(run.net);
	sl_error_clear();
	sl_shutdown();
	return !ok;
}
