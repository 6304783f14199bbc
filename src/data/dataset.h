/* Data sets from the inside.  A source is a file with one const descriptor at its foot; its structure begins with
 * struct sl_dataset.  The functions that read samples run on any thread, several at the same time, and do not need the
 * engine. */
#ifndef SLP_DATASET_H
#define SLP_DATASET_H

#include <stdatomic.h>

#include "starling/data.h"

enum { SLP_MAX_CLASSES = 1 << 20 };

struct slp_source {
	const char *name;
	/* Writes sample s->index to s->x and s->y (y may be NULL: only x is read); false with the thread's error
	 * recorded by slp_data_fail. */
	bool (*get)(const sl_dataset *d, struct sl_sample *s);
	/* Frees the data beyond struct sl_dataset; NULL: there is none. */
	void (*free)(sl_dataset *d);
	/* Checksums of x and of y that identify the data set, cheaper than reading all of a large one; false with an
	 * error recorded. */
	bool (*sums)(const sl_dataset *d, uint32_t sums[2]);
};

struct sl_dataset {
	const struct slp_source *source;
	_Atomic int holders;
	int64_t size;
	struct sl_array x, y; /* types of a sample; y.dtype is SL_DTYPE_DEFAULT if there is no y */
	int classes;          /* 0: y is not a label */
	char **names;         /* of the classes; NULL: their numbers */
	char (*numbers)[12];  /* those, if they are the names and were requested; else empty */
	/* Where operations can make batches of it: uint8 (n, 1, height, width) and (n); else NULL. */
	sl_tensor *images, *labels;
};

/* A zeroed structure of `bytes` bytes for a source, with one reference; NULL with an error recorded. */
void *slp_dataset_new(size_t bytes, const struct slp_source *source);
/* Gives an unfinished or finished one up: sl_dataset_free. */
sl_dataset *slp_dataset_hold(sl_dataset *d);
/* Sets the number of classes, and allocates memory for their numbers as texts; false with an error recorded. */
bool slp_dataset_classes(sl_dataset *d, int classes);
/* Takes over names: an array of malloc'd texts. */
void slp_dataset_names(sl_dataset *d, char **names, int classes);
/* Classes and names are those of another set; false with an error recorded. */
bool slp_dataset_copy_classes(sl_dataset *d, const sl_dataset *from);
void slp_names_free(char **names, int count);

size_t slp_array_bytes(struct sl_array a);
/* Gets a sample and looks whether its label is one. */
bool slp_dataset_get(const sl_dataset *d, struct sl_sample *s);
/* The same of an inner set, into memory x (NULL: where s has it); random numbers go on where s stands. */
bool slp_dataset_get_inner(const sl_dataset *inner, int64_t index, void *x, struct sl_sample *s);
bool slp_dataset_sums(const sl_dataset *d, uint32_t sums[2]);
/* A set of these samples of another one, whose numbers it takes over, whatever comes of it (parts.c). */
sl_dataset *slp_dataset_part(sl_dataset *of, int64_t *numbers, int64_t count);

/* Records a fault of the calling thread: of the program's call if there is one, else the bare text, to which the loader
 * adds whose it is.  Returns false. */
bool slp_data_fail(enum sl_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Counts work for a file where sl_config.untrusted limits that (runtime/budget.h); false with an error recorded. */
bool slp_data_spend(const char *path, double operations);

#endif
