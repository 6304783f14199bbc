/* Training on Fashion-MNIST, as drivers share it: options, epochs, progress, results.  A driver says how a batch is
 * trained and tested. */
#ifndef MODELS_TRAINING_H
#define MODELS_TRAINING_H

#include "common.h"

struct drv_train_options {
	const char *data, *plot;
	int64_t batch_size, epochs, limit;
	double lr;
};

/* The parser of these options, which sets the defaults: a child of a driver's argp, handed a struct
 * drv_train_options. */
extern const struct argp drv_train_argp;

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
	/* What the driver says: its name, and how a batch is trained and tested.  start makes what is trained, stop frees
	 * it (NULL: nothing to free); all return false after an error. */
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
	sl_loader *train_set, *test_set;
	struct drv_epoch *epochs; /* of which so many are done */
	int64_t done;
};

int drv_train(struct drv_training *t);
void drv_count(struct drv_sums *sums, sl_tensor *losses, sl_tensor *output, sl_tensor *labels);
void drv_print_devices(const struct drv_options *o, const char *before);

#endif
