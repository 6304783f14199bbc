/* Files of tests: those in tests/data, and a scratch folder. */
#ifndef SLP_TESTS_FOLDER_H
#define SLP_TESTS_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Where a file of tests/data is. */
const char *slp_data_path(const char *name, char path[PATH_MAX]);

/* A folder of its own, removed with what is in it.  0: done; also as start and stop of a suite. */
int slp_scratch_make(void);
int slp_scratch_remove(void);
/* Any folder with what is in it; false with errno. */
bool slp_remove_folder(const char *path);
/* Start and stop of a suite: that, and the engine with its defaults. */
int slp_start_with_scratch(void);
int slp_stop_with_scratch(void);
const char *slp_scratch_path(const char *name, char path[PATH_MAX]);
void slp_write_scratch(const char *name, const void *data, size_t size);

/* All bytes of a file, a 0 after them; free it.  NULL: it cannot be read. */
char *slp_read_file(const char *path, size_t *size);
bool slp_same_file(const char *a, const char *b);

#endif
