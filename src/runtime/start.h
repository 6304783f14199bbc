/* The parts of sl_init: settings (settings.c), and the start of StarPU (starpu.c). */
#ifndef SLP_START_H
#define SLP_START_H

#include "starling/base.h"

/* The program's and the environment's settings; nothing is left to be chosen but the policy. */
struct slp_settings {
	struct sl_config config;
	int slaves;      /* processes */
	double deadline; /* in seconds; 0: none */
	bool deadline_is_error, nan, priorities, cudnn_graph;
	int autotune;
	bool compile;        /* kernels at run time */
	bool grows;          /* SL_RUNAHEAD_BYTES is not set */
	bool places;         /* no policy is named: tasks on `auto`, or shards of steps, are placed (device/auto.h) */
	long long fuzz_seed; /* -1: of the clock */
};

/* false, with an error recorded: a setting is none.  config may be NULL. */
bool slp_settings_read(const char *at, const struct sl_config *config, struct slp_settings *s);

/* Sets the limits that the program omitted from the environment; values that are no numbers are ignored, and sl_init
 * reports them. */
void slp_untrusted_read(struct sl_untrusted *limits);

/* Starts StarPU; the policy is entered in the settings if they name none. */
enum sl_status slp_starpu_start(const char *at, struct slp_settings *s);

#endif
