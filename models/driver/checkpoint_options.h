/* Options for checkpoints, of all drivers: the folder, the interval, --resume; reports of failed writes. */
#ifndef MODELS_DRIVER_CHECKPOINT_OPTIONS_H
#define MODELS_DRIVER_CHECKPOINT_OPTIONS_H

#include "common.h"

enum { DRV_KEEP = 3 };

struct drv_checkpoint_options {
	const char *folder; /* NULL: none */
	enum { DRV_EVERY_EPOCHS, DRV_EVERY_STEPS, DRV_EVERY_SECONDS } unit;
	double every;
	int keep;
	const char *health;    /* --health; NULL: none */
	bool resume, if_there; /* continue from the newest one; start anew if there is none */
};

/* Parsers that fill a struct drv_checkpoint_options: without --every, and with it. */
extern const struct argp drv_checkpoint_folder_argp, drv_checkpoint_argp;

bool drv_checkpoint_ready(const struct drv_checkpoint_options *o);
bool drv_checkpoint_written(enum sl_status s);
/* Whether this program wrote the checkpoint with this note, in this type; reports the difference. */
bool drv_checkpoint_is_of(const char *path, const json_t *note, const char *program, const struct drv_precision *here);

#endif
