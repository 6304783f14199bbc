/* Training on Fashion-MNIST, as drivers share it: options, epochs, progress, results.  A driver says how a batch is
 * trained and tested. */
#ifndef MODELS_TRAINING_H
#define MODELS_TRAINING_H

#include "common.h"

struct drv_train_options {
	const char *data, *plot, *log;
	int64_t batch_size, epochs, limit;
	double lr;
	bool fastest; /* try one device and all, and keep to what is faster */
};

/* The parsers that a training driver's argp names as its children.  They are handed a struct drv_options and a struct
 * drv_train_options, to which they set the defaults. */
extern const struct argp_child drv_train_children[];
#define DRV_TRAIN_EXIT_STATUS                                                                                          \
	"Exit status: 0 if all went well, 1 after an error, 2 if the command line is wrong, 130 if SIGINT ended "      \
	"the training (after the current batch; results of the complete epochs are written)."

bool drv_train_ready(struct drv_options *common, const struct drv_train_options *options);

struct drv_epoch {
	int64_t images, batches;
	double seconds, loss, train_accuracy, test_accuracy;
	double tasks; /* a training batch */
};

/* Sums over an epoch, on one device, kept there: nobody waits for them. */
struct drv_sums {
	sl_tensor *loss, *correct;
};

struct drv_training {
	/* What the driver says: its name, and how a batch is trained and tested.  start makes what is trained, stop
	 * frees it (NULL: nothing to free); all return false after an error. */
	const char *program, *title;
	const struct drv_options *common;
	const struct drv_train_options *options;
	void *model;
	bool (*start)(struct drv_training *t);
	bool (*train)(struct drv_training *t, sl_tensor *x, sl_tensor *y);
	bool (*test)(struct drv_training *t, sl_tensor *x, sl_tensor *y, int64_t number);
	void (*stop)(struct drv_training *t);
	/* What training makes of it. */
	struct drv_sums sums[DRV_MAX_DEVICES]; /* one a device */
	sl_trial *trial; /* --fastest: way 0 is the first device alone, way 1 all of them; else NULL */
	int ndevices;    /* that share the coming batch: the first ones */
	sl_loader *train_set, *test_set;
	struct drv_epoch *epochs; /* of which so many are done */
	int64_t done;
	int64_t logged; /* epochs that --log has */
	int64_t steps;  /* of all epochs */
};

int drv_train(struct drv_training *t);
void drv_count(struct drv_sums *sums, sl_tensor *losses, sl_tensor *output, sl_tensor *labels);
void drv_print_devices(const struct drv_options *o, const char *before);

/* What becomes known, told: training_report.c. */
bool drv_report_begin(struct drv_training *t);
bool drv_report_epoch(struct drv_training *t);
bool drv_report_end(struct drv_training *t, bool write);

#endif
