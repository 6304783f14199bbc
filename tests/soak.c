/* soak FOLDER SECONDS: networks that are made, trained, saved, resumed and dropped, again and again: LeNet call by call
 * and as a program, hybridised forward passes, ResNet with batch norm.  Prints what the process has resident each
 * minute, and fails if that is more than 1 % above its highest in the first ten minutes (or the first third of a short
 * run).  Run by soak-long.sh. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "chaos/run.h"

enum { STEPS = 40, EVERY = 10, WARM_UP = 600 };

/* Resident memory in KB; 0 if it cannot be read.  What is free in the heap goes back first: how much of that has ever
 * been touched depends on which threads were late when. */
static long resident(void)
{
	long pages = 0;
	malloc_trim(0);
	FILE *f = fopen("/proc/self/statm", "r");
	if (!f) return 0;
	if (fscanf(f, "%*d %ld", &pages) != 1) pages = 0;
	fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Steps with a checkpoint being written beside them. */
static bool train_and_save(struct run *r, const char *folder)
{
	bool ok = run_steps(r, EVERY);
	for (int done = EVERY; ok && done < STEPS; done += EVERY) {
		sl_checkpoint_job *job = sl_checkpoint_begin(folder, RUN_STATE(r), .keep = 2);
		ok = job && run_steps(r, EVERY);
		if (job) ok = sl_checkpoint_end(job) == SL_OK && ok;
	}
	return ok;
}

static bool infer(struct run *r)
{
	sl_hybridize(r->net);
	for (int i = 0; i < STEPS; i++)
		SL_SCOPE {
			sl_tensor *y = sl_forward(r->net, sl_uniform(SL_SHAPE(1 + i % 3, 1, 12, 12), 0, 1));
			if (y) sl_wait(y);
		}
	return sl_error() == SL_OK;
}

/* One life of a network; every other one goes on from where the one before was saved. */
static bool round_of(const char *folder, struct run_options options, sl_dataset *data, bool resume)
{
	struct run r;
	bool ok = run_start(&r, options, data);
	if (ok && resume) ok = sl_checkpoint_load(folder, RUN_STATE(&r)) == SL_OK;
	ok = ok && train_and_save(&r, folder) && (options.net == RUN_RESNET || infer(&r));
	run_stop(&r);
	return ok;
}

static bool rounds(const char *folder, sl_dataset *data, double seconds)
{
	static const struct run_options kinds[] = {
	        {.net = RUN_LENET, .eager = true}, {.net = RUN_LENET}, {.net = RUN_RESNET}};
	double begin = sl_time(), warm_up = seconds < 3 * WARM_UP ? seconds / 3 : WARM_UP, minute = 0;
	long first = 0, later = 0, count = 0;
	char path[4096];
	for (double t = 0; t < seconds; t = sl_time() - begin, count++) {
		int kind = (int)(count / 2 % 3);
		snprintf(path, sizeof path, "%s/%d", folder, kind);
		if (!round_of(path, kinds[kind], data, count % 2)) return false;
		long kb = resident(), *most = t < warm_up ? &first : &later;
		if (kb > *most) *most = kb;
		if (t < minute) continue;
		printf("%5.0f s: %ld networks, %ld KB\n", t, count + 1, kb);
		fflush(stdout);
		minute += 60;
	}
	printf("%ld networks, %ld steps: at most %ld KB in the first %.0f s, %ld KB after (%+.2f %%)\n", count,
	       count * STEPS, first, warm_up, later, 100.0 * (double)(later - first) / (double)first);
	return first > 0 && (double)later <= 1.01 * (double)first;
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fputs("usage: soak FOLDER SECONDS\n", stderr);
		return 2;
	}
	if (sl_init(&(struct sl_config){.seed = 11}) != SL_OK) return 1;
	sl_dataset *data = run_data(argv[1], 4 * RUN_SAMPLES, 1);
	bool ok = data && rounds(argv[1], data, atof(argv[2]));
	if (sl_error() != SL_OK) fprintf(stderr, "soak: %s\n", sl_error_message());
	sl_error_clear();
	sl_dataset_free(data);
	sl_shutdown();
	return !ok;
}
