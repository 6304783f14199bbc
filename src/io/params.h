/* Named tensors in a file: MXNet's list of arrays (.params) and safetensors. */
#ifndef SLP_PARAMS_H
#define SLP_PARAMS_H

#include <jansson.h>

#include "io/elements.h"
#include "io/file.h"
#include "starling/tensor.h"

/* Writes tensors under their names; PATH's extension chooses the format: .params or .safetensors.  Waits for their
 * values. */
enum sl_status slp_arrays_save(const char *at, const char *path, const char *const *names, sl_tensor *const *tensors,
                               int count);
/* Reads them: *names without MXNet's prefixes arg: and aux:, *tensors in no scope; slp_arrays_free both.  The number
 * of them, or -1 with an error recorded. */
int slp_arrays_load(const char *at, const char *path, char ***names, sl_tensor ***tensors);
void slp_arrays_free(char **names, sl_tensor **tensors, int count);

/* The same for a call of another name, in messages.  The tensors are changed by nothing else. */
enum sl_status slp_arrays_save_as(const char *at, const char *function, const char *path, const char *const *names,
                                  sl_tensor *const *tensors, int count);
/* Writes them to an open file, in the format of its path's extension: false with an error recorded. */
bool slp_arrays_put(struct slp_out *o, const char *const *names, sl_tensor *const *tensors, int count);
int slp_arrays_load_as(const char *at, const char *function, const char *path, char ***names, sl_tensor ***tensors);
/* Leaves out arrays of data types, shapes and numbers that tensors do not have, with a line on stderr for each. */
int slp_arrays_load_leniently(const char *at, const char *function, const char *path, char ***names,
                              sl_tensor ***tensors);

/* Names in the order of strcmp, equal ones in their own: numbers, to be freed; NULL without memory.  The first of a
 * name, -1: it is not there. */
int *slp_order_names(char *const *names, int count);
int slp_order_find(char *const *names, const int *order, int count, const char *name);

/* ---- inside ------------------------------------------------------------------------------------------------------ */

struct slp_arrays {
	char **names;
	sl_tensor **tensors;
	int count, capacity;
	bool keep_state, lenient;
	char *state; /* of a sealed file, if keep_state; free it */
};

/* Appends; takes the tensor over, whatever happens.  The name is length bytes. */
bool slp_arrays_add(struct slp_file *f, struct slp_arrays *p, const char *name, uint64_t length, sl_tensor *t);
/* Appends an array of the file, as slp_arrays_add does; leniently, one with values that no tensor can hold is skipped.
 */
bool slp_arrays_take(struct slp_file *f, struct slp_arrays *p, const char *name, uint64_t length, enum sl_dtype element,
                     sl_shape shape, const void *data);
/* Reports on stderr that an array is skipped, and the reason: "has the unknown element type 99".  Returns true. */
bool slp_arrays_skip(const struct slp_file *f, const char *name, uint64_t length, const char *why);
/* Parses a file in memory; false with an error recorded.  The list must be freed in either case. */
bool slp_arrays_parse(struct slp_file *f, struct slp_arrays *p);
/* "name" with unprintable characters escaped, cut to a length for messages. */
const char *slp_arrays_quote(const char *name, uint64_t length, char text[80]);

bool slp_mxnet_params_parse(struct slp_file *f, struct slp_arrays *p); /* params_mxnet.c */
void slp_mxnet_params_write(struct slp_out *o, const char *const *names, sl_tensor *const *tensors, int count);
bool slp_safetensors_parse(struct slp_file *f, struct slp_arrays *p); /* params_safetensors.c */
void slp_safetensors_write(struct slp_out *o, const char *const *names, sl_tensor *const *tensors, int count);
/* With a state, text of the program's own, and checksums of it and of each array: a sealed file.  They are verified
 * whenever such a file is read. */
void slp_safetensors_write_sealed(struct slp_out *o, const char *state, const char *const *names,
                                  sl_tensor *const *tensors, int count);

/* seal.c: the header of a sealed file begins with its own checksum, and has those of the arrays. */
/* Makes its metadata, a JSON object of strings; takes `checksums`, an object of numbers by names.  NULL: not UTF-8. */
json_t *slp_seal_metadata(const char *state, json_t *checksums);
/* Puts the header's checksum into it. */
void slp_seal_close(char *header, size_t length);
bool slp_seal_is_there(const char *header, size_t length);
/* Whether a file begins as those do that slp_safetensors_write_sealed writes. */
bool slp_seal_is_file(const char *path);
bool slp_seal_is_whole(const char *header, size_t length);
/* The checksums of a sealed header's arrays; NULL: none. */
json_t *slp_seal_checksums(const json_t *header);
/* Whether an array is as it was written. */
bool slp_seal_holds(const json_t *checksums, const char *name, const void *data, size_t bytes);
/* The format of a sealed header if it is another than this version writes, otherwise NULL; who wrote it. */
const char *slp_seal_stranger(const json_t *header);
const char *slp_seal_writer(const json_t *header);
/* The state; malloc'd, NULL: no state, or no memory. */
char *slp_seal_state(const json_t *header);

#endif
