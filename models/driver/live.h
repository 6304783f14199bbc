/* What can be seen of a training run while it runs: points about once a second, for --watch and --tensorboard. */
#ifndef MODELS_DRIVER_LIVE_H
#define MODELS_DRIVER_LIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct drv_training;

/* Rates and shares are those since the point before. */
struct drv_point {
	double epoch; /* with its fraction: 1.5 is the middle of the second one */
	double loss;  /* mean of the epoch so far */
	double images_per_second;
	double own_cpu, all_cpu; /* percent of the processors' time that this program, that all programs used */
	double megabytes;        /* held by tensors and pools */
	double tasks;            /* in flight */
};

enum { DRV_POINTS = 1024 }; /* when there are as many, every second one goes */

struct drv_live {
	struct drv_point points[DRV_POINTS];
	int count;
	double interval, asked;          /* seconds between two points; when the last one was asked for */
	double seen;                     /* when the last one was made */
	double images, own, busy, total; /* counted until then */
	FILE *events;                    /* --tensorboard; NULL: none */
	bool failed;                     /* something could not be written */
};

/* Before training: makes what will be written; false if it cannot be. */
bool drv_live_begin(struct drv_training *t);
/* Whether it is time to ask for a loss: more often than points are made, so that they are not old. */
bool drv_live_due(const struct drv_training *t);
/* The mean loss of the epoch's first images, after so many steps of all epochs: makes a point if it is time for one. */
void drv_live_point(struct drv_training *t, double loss, int64_t images, int64_t steps);
/* An epoch has been trained and tested; false after an error. */
bool drv_live_epoch(struct drv_training *t);
bool drv_live_end(struct drv_training *t);

/* ---- the page: watch.c ------------------------------------------------------------------------------------------- */

/* Writes the page anew; running: it asks the browser to come back. */
bool drv_watch_write(const struct drv_training *t, bool running);

/* ---- TensorBoard's files: tensorboard.c -------------------------------------------------------------------------- */

bool drv_tensorboard_folder(const char *folder);
FILE *drv_tensorboard_open(const char *folder);
bool drv_tensorboard_scalar(FILE *events, const char *tag, int64_t step, double value);

#endif
