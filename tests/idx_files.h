/* IDX files as tests make them: images and labels with values that are known, plain and gzipped, in a scratch
 * folder. */
#ifndef SLP_TESTS_IDX_FILES_H
#define SLP_TESTS_IDX_FILES_H

#include <starling.h>

#include "folder.h"

enum { IDX_HEIGHT = 2, IDX_WIDTH = 3, IDX_PIXELS = IDX_HEIGHT * IDX_WIDTH, IDX_MAX_FILE = 8192 };

/* A file to be: its bytes. */
struct idx_bytes {
	unsigned char data[IDX_MAX_FILE];
	size_t size;
};

/* The values: pixel p of image i, and its label. */
int idx_pixel(int i, int p);
int idx_label(int i);

/* Files of n images and labels; the header of any IDX file of unsigned bytes. */
struct idx_bytes idx_images(int n);
struct idx_bytes idx_labels(int n);
struct idx_bytes idx_header(int ndim, const uint32_t *dims);
struct idx_bytes idx_gzipped(const struct idx_bytes *plain);
void idx_put(struct idx_bytes *b, const void *data, size_t size);

/* A data set of such files, which are gone afterwards; n samples with the values above. */
sl_dataset *idx_open_pair(const struct idx_bytes *x, const struct idx_bytes *y, int classes);
sl_dataset *idx_sample_set(int n);
void idx_remove(const char *name);

#endif
