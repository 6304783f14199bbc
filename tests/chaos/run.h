/* A small training run with everything that a checkpoint has to keep: dropout, shuffled batches, Adam with a cosine, or
 * batch normalisation and SGD with momentum; on one device or in shards. */
#ifndef SLP_TESTS_CHAOS_RUN_H
#define SLP_TESTS_CHAOS_RUN_H

#include <starling.h>

enum run_net { RUN_LENET, RUN_RESNET };
enum { RUN_MAX_SHARDS = 4, RUN_SAMPLES = 44, RUN_BATCH = 8 };

struct run_options {
	enum run_net net;
	bool eager;          /* call by call; else each step is a program */
	int shards, devices; /* 0: one */
	int64_t batch;       /* 0: RUN_BATCH */
};

struct run {
	struct run_options options;
	sl_block *net;
	sl_trainer *trainer;
	sl_step *step;
	sl_loader *loader;
	sl_metric *loss;
	int64_t epoch, steps;
};

/* All of its state, for sl_checkpoint_save and others. */
#define RUN_STATE(r)                                                                                                   \
	.trainer = (r)->trainer, .loader = (r)->loader, SL_METRICS((r)->loss), .epoch = &(r)->epoch, .step = &(r)->steps

/* A data set of so many small images, the same for the same seed, written to a folder and read from it. */
sl_dataset *run_data(const char *folder, int samples, unsigned seed);
bool run_start(struct run *r, struct run_options options, sl_dataset *data);
/* So many batches, from one epoch into the next. */
bool run_steps(struct run *r, int steps);
/* A checksum of the parameters and the metric; waits. */
uint32_t run_bits(struct run *r);
void run_stop(struct run *r);

#endif
