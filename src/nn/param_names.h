/* Arrays in files, with their names translated by rules. */
#ifndef SLP_NN_PARAM_NAMES_H
#define SLP_NN_PARAM_NAMES_H

#include "io/params.h"
#include "nn/nn.h"
#include "starling/nn.h"

struct slp_named_arrays {
	char **names, **origins; /* as the rules have it; as in the file */
	sl_tensor **tensors;     /* transposed, if the rules say so */
	bool *turned;
	int count;
};

/* Reads a file; false with an error recorded.  Free it either way. */
bool slp_named_arrays_load(const char *at, const char *path, const struct sl_load_opts *opts,
                           struct slp_named_arrays *f);
void slp_named_arrays_free(struct slp_named_arrays *f);
/* The name of array k with that in the file, for messages. */
const char *slp_named_array_label(const struct slp_named_arrays *f, int k, char text[160]);

#endif
