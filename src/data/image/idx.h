/* IDX files: arrays of bytes with a header, plain or compressed by gzip. */
#ifndef SLP_IDX_H
#define SLP_IDX_H

#include "starling/tensor.h"

/* Values that were read; free() them. */
struct slp_idx {
	uint8_t *data;
	int64_t bytes;
	sl_shape shape;
};

/* Reads a file of unsigned bytes with ndim axes.  Everything about it is checked; false: an error that names the file
 * and the fault has been recorded for `function`. */
bool slp_idx_read(const char *at, const char *function, const char *path, int ndim, struct slp_idx *idx);

#endif
