/* train FOLDER NETWORK DEVICES STEPS [FAULT CALL K | slow MICROSECONDS]: a small run that writes a checkpoint after
 * each step and goes on with the newest one in the folder, if there is one.  FAULT is kill (the process at this call),
 * an errno's number (that call fails), or full (this call and all later ones fail for want of space).  Prints the
 * checksum of what it computed.  Run by chaos.sh. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../io_faults.h"
#include "run.h"

static int usage(void)
{
	fputs("usage: train FOLDER lenet|resnet DEVICES STEPS [kill|full|ERRNO CALL K | slow MICROSECONDS]\n", stderr);
	return 2;
}

static bool plan_fault(char **args)
{
	for (enum io_call call = 0; call < IO_COUNT; call++) {
		if (strcmp(args[1], io_names[call])) continue;
		int k = atoi(args[2]);
		if (!strcmp(args[0], "kill")) io_fail(call, k, 0);
		else if (!strcmp(args[0], "full")) io_fail(call, -k, ENOSPC);
		else io_fail(call, k, atoi(args[0]));
		return true;
	}
	return false;
}

/* What cannot be written is told, and does not end the run. */
static void end_job(sl_checkpoint_job *job)
{
	if (!job || sl_checkpoint_end(job) == SL_OK) return;
	fprintf(stderr, "no checkpoint: %s\n", sl_error_message());
	sl_error_clear();
}

static bool train(struct run *r, const char *folder, int64_t steps)
{
	sl_checkpoint_job *job = NULL;
	bool ok = true;
	while (ok && r->steps < steps) {
		ok = run_steps(r, 1);
		end_job(job);
		job = ok ? sl_checkpoint_begin(folder, .trainer = r->trainer, .loader = r->loader, SL_METRICS(r->loss),
		                               .epoch = &r->epoch, .step = &r->steps, .keep = 3)
		         : NULL;
	}
	end_job(job);
	return ok;
}

/* From the newest checkpoint, or from the beginning. */
static bool run_in(const char *folder, struct run_options options, int64_t steps)
{
	struct run r;
	sl_dataset *data = run_data(getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", RUN_SAMPLES, 1);
	bool ok = data && run_start(&r, options, data);
	if (ok && sl_checkpoint_count(folder)) ok = sl_checkpoint_load(folder, RUN_STATE(&r)) == SL_OK;
	if (ok) fprintf(stderr, "from step %lld\n", (long long)r.steps);
	ok = ok && train(&r, folder, steps);
	if (ok) printf("bits %08x\n", run_bits(&r));
	else fprintf(stderr, "train: %s\n", sl_error_message());
	sl_error_clear();
	run_stop(&r);
	sl_dataset_free(data);
	return ok;
}

int main(int argc, char **argv)
{
	if (argc != 5 && argc != 7 && argc != 8) return usage();
	struct run_options o = {.net = strcmp(argv[2], "lenet") ? RUN_RESNET : RUN_LENET, .shards = atoi(argv[3])};
	o.devices = o.shards;
	if (sl_init(&(struct sl_config){.teams = o.devices, .seed = 11}) != SL_OK) {
		fprintf(stderr, "train: %s\n", sl_error_message());
		return 77; /* too few cores */
	}
	if (argc == 7) io_slow((unsigned)atoi(argv[6]));
	if (argc == 8 && !plan_fault(argv + 5)) return usage();
	bool ok = run_in(argv[1], o, atoll(argv[4]));
	sl_shutdown();
	return !ok || fflush(stdout) != 0;
}
