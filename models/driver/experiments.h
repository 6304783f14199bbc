/* Drivers that consist of experiments: all run, or the ones that the command line names. */
#ifndef MODELS_DRIVER_EXPERIMENTS_H
#define MODELS_DRIVER_EXPERIMENTS_H

#include "common.h"

/* A measurement in progress. */
struct drv_bench {
	const struct drv_options *common;
	const struct drv_precision *precision;
	const void *options; /* the driver's own */
	json_t *results;
	double start;
	bool failed; /* for other reasons than sl_error's */
};

struct drv_experiment {
	const char *name, *doc;
	void (*run)(struct drv_bench *b);
};

/* The experiments of a driver, and the chosen ones. */
struct drv_experiments {
	const char *program;
	const struct drv_experiment *list;
	int count;
	struct drv_options *common;
	unsigned chosen;                /* a bit each; 0: all */
	struct drv_precision precision; /* --dtype: they run under autocast to it */
};

/* Parsers: the children of such a driver's argp, which calls drv_experiments_init at ARGP_KEY_INIT. */
extern const struct argp_child drv_experiments_children[];

void drv_experiments_init(struct argp_state *state, struct drv_experiments *e);
int drv_run_experiments(const struct drv_experiments *e, const void *options);

void drv_title(const struct drv_bench *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void drv_begin(struct drv_bench *b);
void drv_note(struct drv_bench *b, const char *key, double value);
void drv_end(struct drv_bench *b, const char *key, const char *text);

#endif
