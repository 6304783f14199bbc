/* Figures of a training run while it runs, about once a second, for --tensorboard and --health. */
#ifndef MODELS_DRIVER_LIVE_H
#define MODELS_DRIVER_LIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct drv_training;

/* Rates and shares are those since the point before. */
struct drv_point {
	double loss; /* mean of the epoch so far */
	double images_per_second;
	double own_cpu, all_cpu; /* percent of the processors' time that this program, that all programs used */
	double megabytes;        /* held by tensors and pools */
	double tasks;            /* in flight */
};

struct drv_live {
	double asked;                    /* when the loss was last asked for */
	double seen;                     /* when the last point was made */
	double images, own, busy, total; /* counted until then */
	FILE *events;                    /* --tensorboard; NULL: none */
	bool failed;                     /* events could not be written */
};

/* Before training: opens the event file; false after an error. */
bool drv_live_begin(struct drv_training *t);
/* Whether to compute the loss now: four times for each point, so that the point's loss is recent. */
bool drv_live_due(const struct drv_training *t);
/* The mean loss of the epoch's first images, after `steps` steps in all: writes a point if one is due. */
void drv_live_point(struct drv_training *t, double loss, int64_t images, int64_t steps);
/* An epoch has been trained and tested; false after an error. */
bool drv_live_epoch(struct drv_training *t);
bool drv_live_end(struct drv_training *t);

/* ---- TensorBoard's files: tensorboard.c -------------------------------------------------------------------------- */

bool drv_tensorboard_folder(const char *folder);
FILE *drv_tensorboard_open(const char *folder);
bool drv_tensorboard_scalar(FILE *events, const char *tag, int64_t step, double value);

#endif
