/* Measures the speed of a network: calls in sequence, from several threads, with batches of several sizes. */
#ifndef RUN_MEASURE_H
#define RUN_MEASURE_H

#include "../../models/driver/common.h"

enum { RUN_MAX_BATCHES = 16, RUN_MAX_THREADS = 256, RUN_MAX_INPUTS = 16 };

/* A network and its inputs. */
struct run_network {
	sl_block *net;
	sl_tensor *in[RUN_MAX_INPUTS];
	int nin;
};

/* What is measured: for each batch, calls of `threads` threads for so many seconds, or so many calls of each. */
struct run_plan {
	int64_t batches[RUN_MAX_BATCHES]; /* rows of each input; none: as the inputs are */
	int nbatches, threads;
	int64_t calls; /* 0: for `seconds` */
	double seconds;
};

bool run_repeat(const struct drv_options *o, const struct run_network *n, int64_t calls, json_t *results);
bool run_benchmark(const struct drv_options *o, const struct run_network *n, const struct run_plan *plan,
                   json_t *results);
bool run_profile(const struct drv_options *o, const struct run_network *n, int64_t calls);

#endif
