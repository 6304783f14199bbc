/* JSON from files. */
#ifndef SLP_JSON_H
#define SLP_JSON_H

#include <jansson.h>

#include "io/file.h"

/* Parses a part of a file; NULL: it is not JSON, and e has the reason, or there is no memory, which is recorded. */
json_t *slp_json_read(struct slp_file *f, const char *text, size_t length, json_error_t *e);

#endif
