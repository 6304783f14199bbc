/* Training on images, for all drivers: options, epochs, progress, results.  A driver provides functions that train and
 * test a batch. */
#ifndef MODELS_DRIVER_TRAINING_H
#define MODELS_DRIVER_TRAINING_H

#include "checkpoint_options.h"
#include "live.h"
#include "ranks.h"

struct drv_train_options {
	const char *data, *plot, *log, *tensorboard;
	int64_t batch_size, epochs, limit;
	double lr;
	bool lr_given; /* otherwise a resumed run keeps its own */
	size_t memory; /* of the GPU, for a step; 0: what there is */
	struct drv_precision precision;
	bool distributed; /* one of several processes */
	bool augment;     /* change training images at random */
	bool fastest;     /* try one device and all, and continue with the faster */
	sl_device state_on;
	struct drv_checkpoint_options checkpoint;
};

/* Parsers: the children of a training driver's argp.  They fill a struct drv_options and a struct drv_train_options, and set
 * the defaults. */
extern const struct argp_child drv_train_children[];
#define DRV_TRAIN_EXIT_STATUS                                                                                          \
	"Exit status: 0 if all went well, 1 after an error, 2 if the command line is wrong, " DRV_INTERRUPTED_STATUS   \
	" (after the current batch; results of the complete epochs and, with --checkpoint, a "                         \
	"checkpoint are written)."

bool drv_train_ready(struct drv_options *common, struct drv_train_options *options);

struct drv_epoch {
	int64_t images, batches;
	double seconds, loss, train_accuracy, test_accuracy;
	double tasks; /* for each training batch; of an incomplete epoch, for all */
};

/* Sums over an epoch, kept on one device, so that batches do not wait. */
struct drv_sums {
	sl_tensor *loss, *correct;
};

/* The state of a model for checkpoints: a trainer with its block, or tensors by name. */
enum { DRV_MAX_STATE = 3 * DRV_MAX_DEVICES };
struct drv_state {
	sl_trainer *trainer;
	const char *names[DRV_MAX_STATE];
	sl_tensor *tensors[DRV_MAX_STATE];
	int count;
};

struct drv_training {
	/* Set by the driver.  start makes the model, stop frees it (NULL: nothing to free); functions return false after an
	 * error. */
	const char *program, *title;
	const char *mode; /* how steps are done, for --json; NULL: call by call */
	const struct drv_options *common;
	const struct drv_train_options *options;
	void *model;
	bool (*open)(struct drv_training *t, sl_dataset *sets[2]); /* to train with, to test with; NULL: IDX files */
	int workers;                                               /* threads that read samples in advance; 0: none */
	bool (*start)(struct drv_training *t);
	bool (*train)(struct drv_training *t, sl_tensor *x, sl_tensor *y);
	bool (*test)(struct drv_training *t, sl_tensor *x, sl_tensor *y, int64_t number);
	void (*stop)(struct drv_training *t);
	void (*state)(struct drv_training *t, struct drv_state *state);
	void (*restored)(struct drv_training *t); /* the state has other values now (NULL: nothing to do) */
	/* Set by training. */
	struct drv_sums sums[DRV_MAX_DEVICES]; /* one a device */
	sl_autotune *trial; /* --fastest: way 0 is the first device alone, way 1 all of them; else NULL */
	int ndevices;       /* the next batch is split over the first so many */
	sl_loader *train_set, *test_set;
	struct drv_epoch *epochs; /* `done` of them are complete */
	int64_t done;
	int64_t logged; /* epochs that --log has */
	int64_t steps;  /* of all epochs */
	double lr;
	int shards;   /* into which the model splits a batch; before start: the checkpoint's, 0: none */
	double began; /* start of the epoch, as if the run had not been interrupted */
	uint64_t tasks_before;
	struct drv_stops stops;
	struct drv_live live;
	struct drv_pace pace;
	struct drv_checkpointing {
		sl_checkpoint *from; /* while the run is being restored */
		json_t *note;
		sl_checkpoint_job *job;
		double saved_at;
		int64_t saved_steps; /* -1: no checkpoint yet */
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

/* Before the model is made: opens the checkpoint to resume from, if --resume was given. */
bool drv_checkpoint_open(struct drv_training *t);
/* After the model is made: restores its state. */
bool drv_checkpoint_resume(struct drv_training *t);
/* After a batch, after an epoch: writes a checkpoint if it is due. */
void drv_checkpoint_step(struct drv_training *t);
void drv_checkpoint_epoch(struct drv_training *t);
/* At the end: writes the last checkpoint, unless the run failed; false if it could not be written. */
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
