/* Files of parameters and models: read as a whole and parsed with checked bounds; written so that a failure leaves the
 * old file. */
#ifndef SLP_FILE_H
#define SLP_FILE_H

#include <stdio.h>

#include "starling/io.h"
#include "tensor/tensor.h"

/* A file in memory that is being taken apart.  Its first fault is recorded, later ones are consequences. */
struct slp_file {
	const char *at, *function, *path; /* whose call, for messages */
	unsigned char *data;
	size_t size, pos;
	bool whole;   /* data was read by slp_file_read */
	FILE *stream; /* the open file, of which data is only a part (onnx/model/outline.h); NULL: data is all */
	bool failed;
};

/* Reads all of a regular file; false with an error recorded.  free(f->data) afterwards. */
bool slp_file_read(struct slp_file *f, const char *at, const char *function, const char *path);
/* Returns the memory of n bytes that nothing will read again. */
void slp_file_forget(struct slp_file *f, const void *data, size_t n);
/* Records "PATH: …", once; returns false. */
bool slp_file_fail(struct slp_file *f, enum sl_status status, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* Counts work for the file where sl_config.untrusted limits that (runtime/budget.h); false with an error recorded. */
bool slp_file_spend(struct slp_file *f, double operations);
static inline size_t slp_file_left(const struct slp_file *f)
{
	return f->size - f->pos;
}
/* The next n bytes, where they lie; NULL with "ends within WHAT" recorded if there are less. */
const void *slp_file_take(struct slp_file *f, uint64_t n, const char *what);
/* The next little-endian number; 0 after a fault. */
uint64_t slp_file_number(struct slp_file *f, int bytes, const char *what);

/* A file being written, under another name until it is complete. */
struct slp_out {
	const char *at, *function, *path;
	sl_file *file;
	FILE *stream;
	bool failed;
};

bool slp_out_open(struct slp_out *o, const char *at, const char *function, const char *path);
void slp_out_put(struct slp_out *o, const void *data, size_t bytes);
void slp_out_number(struct slp_out *o, uint64_t n, int bytes);
/* Puts the values of a tensor, waiting for them. */
void slp_out_tensor(struct slp_out *o, sl_tensor *t);
/* Gives the file its name, or removes it after a failure; the first error. */
enum sl_status slp_out_close(struct slp_out *o);
/* The same for two files that belong together: both have their names then, or neither. */
enum sl_status slp_out_close_both(struct slp_out *a, struct slp_out *b);

/* As sl_file_begin and sl_file_commit_all, of files that are all there, for a call of another name. */
sl_file *slp_file_begin(const char *at, const char *function, const char *path);
enum sl_status slp_file_commit(const char *at, const char *function, sl_file *const *files, int count);

/* Whether a path ends like this. */
bool slp_path_ends(const char *path, const char *ending);

#endif
