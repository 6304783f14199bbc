/* Training on Fashion-MNIST, as drivers share it: options, epochs, progress, results.  A driver says how a batch is
 * trained and tested. */
#ifndef MODELS_TRAINING_H
#define MODELS_TRAINING_H

#include "checkpoint_options.h"
#include "live.h"
#include "ranks.h"

struct drv_train_options {
	const char *data, *plot, *log, *watch, *tensorboard;
	int64_t batch_size, epochs, limit;
	double lr;
	bool lr_given; /* otherwise a run that goes on keeps its own */
	struct drv_precision precision;
	bool distributed; /* one of several processes */
	bool fastest;     /* try one device and all, and keep to what is faster */
	struct drv_checkpoint_options checkpoint;
};

/* The parsers that a training driver's argp names as its children.  They are handed a struct drv_options and a struct
 * drv_train_options, to which they set the defaults. */
extern const struct argp_child drv_train_children[];
#define DRV_TRAIN_EXIT_STATUS                                                                                          \
	"Exit status: 0 if all went well, 1 after an error, 2 if the command line is wrong, " DRV_INTERRUPTED_STATUS   \
	" (after the current batch; results of the complete epochs and, with --checkpoint, a "                         \
	"checkpoint are written)."

bool drv_train_ready(struct drv_options *common, struct drv_train_options *options);

struct drv_epoch {
	int64_t images, batches;
	double seconds, loss, train_accuracy, test_accuracy;
	double tasks; /* a training batch; of one that is not complete, all of them */
};

/* Sums over an epoch, on one device, kept there: nobody waits for them. */
struct drv_sums {
	sl_tensor *loss, *correct;
};

/* What a model has that a checkpoint is made of: a trainer with its block, or tensors by name. */
enum { DRV_MAX_STATE = 3 * DRV_MAX_DEVICES };
struct drv_state {
	sl_trainer *trainer;
	const char *names[DRV_MAX_STATE];
	sl_tensor *tensors[DRV_MAX_STATE];
	int count;
};

struct drv_training {
	/* What the driver says: its name, and how a batch is trained and tested.  start makes what is trained, stop
	 * frees it (NULL: nothing to free); all return false after an error. */
	const char *program, *title;
	const char *mode; /* how steps are done, for --json; NULL: call by call */
	const struct drv_options *common;
	const struct drv_train_options *options;
	void *model;
	bool (*open)(struct drv_training *t, sl_dataset *sets[2]); /* to train with, to test with; NULL: IDX files */
	int workers; /* that read samples; 0: they are read when they are asked for */
	bool (*start)(struct drv_training *t);
	bool (*train)(struct drv_training *t, sl_tensor *x, sl_tensor *y);
	bool (*test)(struct drv_training *t, sl_tensor *x, sl_tensor *y, int64_t number);
	void (*stop)(struct drv_training *t);
	void (*state)(struct drv_training *t, struct drv_state *state);
	void (*restored)(struct drv_training *t); /* the state has other values now (NULL: nothing to do) */
	/* What training makes of it. */
	struct drv_sums sums[DRV_MAX_DEVICES]; /* one a device */
	sl_autotune *trial; /* --fastest: way 0 is the first device alone, way 1 all of them; else NULL */
	int ndevices;       /* that share the coming batch: the first ones */
	sl_loader *train_set, *test_set;
	struct drv_epoch *epochs; /* of which so many are done */
	int64_t done;
	int64_t logged; /* epochs that --log has */
	int64_t steps;  /* of all epochs */
	double lr;
	int shards;   /* of a batch, as the model cuts it; before start: as it was cut before the checkpoint, 0: none */
	double began; /* when the epoch did, as if it had never been stopped */
	uint64_t tasks_before;
	struct drv_stops stops;
	struct drv_live live;
	struct drv_pace pace; /* of programs, which are few tasks a step */
	struct drv_checkpointing {
		sl_checkpoint *from; /* while the run is being restored */
		json_t *note;
		sl_checkpoint_job *job;
		double saved_at;     /* when */
		int64_t saved_steps; /* which state; -1: none yet */
		int64_t saved_epochs;
		bool failed; /* the last one */
	} checkpointing;
};

bool drv_open_idx(const struct drv_training *t, sl_dataset *sets[2]);
int drv_train(struct drv_training *t);
void drv_count(struct drv_sums *sums, sl_tensor *losses, sl_tensor *output, sl_tensor *labels);
void drv_print_devices(const struct drv_options *o, const char *before);
void drv_state_add(struct drv_state *state, const char *name, sl_tensor *tensor);
uint64_t drv_tasks(void); /* so far */

/* ---- checkpoints: checkpointing.c -------------------------------------------------------------------------------- */

/* Before anything is made: reads the checkpoint to continue from, if one is wanted. */
bool drv_checkpoint_open(struct drv_training *t);
/* Once everything is made: goes on with it. */
bool drv_checkpoint_resume(struct drv_training *t);
/* After a batch, after an epoch: writes one if it is time. */
void drv_checkpoint_step(struct drv_training *t);
void drv_checkpoint_epoch(struct drv_training *t);
/* At the end: writes the last one, if the run is sound; false if the last one could not be written. */
bool drv_checkpoint_end(struct drv_training *t, bool sound);

/* ---- one of several processes: distributed.c --------------------------------------------------------------------- */

bool drv_distributed_ready(struct drv_options *common, struct drv_train_options *o);
void drv_sums_of_ranks(const struct drv_training *t, struct drv_sums *sums);
void drv_share_sums(struct drv_training *t);

/* Reports on training: training_report.c. */
bool drv_report_begin(struct drv_training *t);
bool drv_report_epoch(struct drv_training *t);
bool drv_report_end(struct drv_training *t, bool write);

#endif
