/* Numbered files of a folder: FOLDER/checkpoint-000017.safetensors. */
#ifndef SLP_NUMBERED_H
#define SLP_NUMBERED_H

#include <stdbool.h>
#include <stdint.h>

/* The numbers of files with such a name, the newest first, malloc'd; *count of them.  NULL: no memory (errno), or the folder cannot be read. */
int64_t *slp_numbered_list(const char *folder, int *count);
/* The number after the newest; -1: the largest is taken. */
int64_t slp_numbered_next(const int64_t *list, int count);
/* The path of a number; malloc'd, NULL without memory. */
char *slp_numbered_path(const char *folder, int64_t number);
/* Makes the folder if it does not exist; false with errno. */
bool slp_numbered_make(const char *folder);
/* Removes all but the newest `keep` files, and the temporary files of killed writers.  Only files that Starling wrote
 * are removed. */
void slp_numbered_prune(const char *folder, int keep);
/* Removes the oldest of two or more checkpoints, to make room on a full disk; false: none to remove. */
bool slp_numbered_drop_oldest(const char *folder);

#endif
