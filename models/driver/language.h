/* The common part of language models' drivers: options, training, checkpoints, generating text.  A driver provides a
 * training step and the scores of the next word. */
#ifndef MODELS_DRIVER_LANGUAGE_H
#define MODELS_DRIVER_LANGUAGE_H

#include <starling/checkpoint.h>

#include "checkpoint_options.h"
#include "ranks.h"

struct drv_language_options {
	const char *text, *prompt, *save, *load;
	int64_t batch, iterations, every, generate; /* batch: of this rank, once drv_language_start has run */
	bool distributed;                           /* one of several processes */
	size_t memory;                              /* of the GPU, for a step; 0: what there is */
	double lr, temperature;
	bool lr_given; /* otherwise a run that goes on keeps its own */
	struct drv_precision precision;
	sl_device state_on;
	struct drv_checkpoint_options checkpoint;
};

/* Parsers: the children of such a driver's argp.  They fill a struct drv_options and a struct drv_language_options. */
extern const struct argp_child drv_language_children[];
#define DRV_DEFAULT_TEXT "/usr/share/common-licenses/GPL-3"
/* The defaults; a driver may change them. */
#define DRV_LANGUAGE_DEFAULTS                                                                                          \
	{                                                                                                              \
		.text = DRV_DEFAULT_TEXT, .prompt = "\n", .batch = 12, .iterations = 2000, .every = 250, .lr = 1e-3,   \
		.temperature = 0.8, .precision = {                                                                     \
			.dtype = SL_FLOAT32                                                                            \
		}                                                                                                      \
	}
#define DRV_LANGUAGE_EXIT_STATUS                                                                                       \
	"Exit status: 0 if all went well, 1 after an error, 2 if the command line is wrong, " DRV_INTERRUPTED_STATUS "."

enum { DRV_LANGUAGE_TENSORS = 4 };

struct drv_language {
	/* Set by the driver.  Functions return false or NULL after an error. */
	const char *program, *unit; /* "bytes" */
	const struct drv_options *common;
	const struct drv_language_options *o;
	void *model;
	int64_t per_step;                     /* units */
	bool perplexity;                      /* print it, too */
	bool (*make)(struct drv_language *l); /* net and trainer; data and loader only if there is something to learn */
	sl_tensor *(*step)(struct drv_language *l); /* the losses of a training step */
	double (*held_out)(struct drv_language *l); /* mean loss on the text that is held out */
	bool (*learnt)(struct drv_language *l);     /* or NULL: between learning and writing */
	int32_t *(*read)(struct drv_language *l, const char *prompt, int64_t *count); /* as words; free() them */
	/* Scores of each word as the next one: logarithms of probabilities, not normalised. */
	sl_tensor *(*scores)(struct drv_language *l, const int32_t *words, int64_t count);
	void (*print)(struct drv_language *l, int32_t word);
	bool by_words; /* print the prompt as the generated words are printed, not as it was given */
	void (*stop)(struct drv_language *l);
	/* Tensors that a checkpoint has beside the trainer and the loader; rows along axis 1. */
	const char *names[DRV_LANGUAGE_TENSORS];
	sl_tensor *tensors[DRV_LANGUAGE_TENSORS];
	int ntensors;
	/* Made by make. */
	sl_block *net;
	sl_trainer *trainer;
	sl_loader *loader;
	/* Set by training. */
	sl_tensor *loss; /* the last step's */
	int64_t done;    /* steps */
	double lr;       /* the highest of the schedule, */
	int64_t planned; /* which is made for so many steps */
	bool unsaved;    /* the last checkpoint could not be written */
	struct drv_stops stops;
	struct drv_pace pace;
	json_t *losses;
	/* Set by generating text. */
	int64_t written; /* words */
	double took[2];  /* seconds: the first word, with compiling, and all others */
};

/* Starts the engine, and sets this rank's part; false after an error. */
bool drv_language_start(struct drv_options *common, struct drv_language_options *o);
int drv_language_run(struct drv_language *l);
/* Shares the samples of a loader among the ranks; NULL if it is NULL. */
sl_loader *drv_language_share(sl_loader *loader);
/* The learning rate's schedule: up in 100 steps, then down to a tenth. */
struct sl_schedule drv_language_schedule(const struct drv_language_options *o);
/* For drivers whose words are bytes. */
int32_t *drv_language_bytes(struct drv_language *l, const char *prompt, int64_t *count);
void drv_language_print_byte(struct drv_language *l, int32_t word);
/* The losses of scores (n, steps, words), a number a word; what whole steps minimise. */
sl_tensor *drv_language_loss(const char *at, sl_tensor *scores, sl_tensor *next);
/* Under a limit of a GPU's memory: for calls that belong to no program, in main memory. */
sl_tensor *drv_language_aside(const struct drv_language *l, sl_tensor *t);
/* The next batch; the end of an epoch is the beginning of the next one. */
bool drv_language_batch(struct drv_language *l, struct sl_batch *b);

#endif
