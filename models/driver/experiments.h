/* Drivers that are a row of experiments: all of them run, or those named on the command line. */
#ifndef MODELS_DRIVER_EXPERIMENTS_H
#define MODELS_DRIVER_EXPERIMENTS_H

#include "common.h"

/* A measurement under way: who reads the lines, the object for --json, when it began. */
struct drv_bench {
	const struct drv_options *common;
	const struct drv_precision *precision;
	const void *options; /* the driver's own */
	json_t *results;
	double start;
	bool failed; /* beyond what sl_error knows of */
};

struct drv_experiment {
	const char *name, *doc;
	void (*run)(struct drv_bench *b);
};

/* The experiments of a driver, and what was chosen of them. */
struct drv_experiments {
	const char *program;
	const struct drv_experiment *list;
	int count;
	struct drv_options *common;
	unsigned chosen;                /* a bit each; 0: all */
	struct drv_precision precision; /* --dtype: they run under autocast to it */
};

/* The parsers that such a driver's argp names as its children; at ARGP_KEY_INIT it calls drv_experiments_init. */
extern const struct argp_child drv_experiments_children[];

void drv_experiments_init(struct argp_state *state, struct drv_experiments *e);
int drv_run_experiments(const struct drv_experiments *e, const void *options);

void drv_title(const struct drv_bench *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void drv_begin(struct drv_bench *b);
void drv_note(struct drv_bench *b, const char *key, double value);
void drv_end(struct drv_bench *b, const char *key, const char *text);

#endif
