/* The file that values are spilled to (spill_file.c).  All but the last two are for the thread that reads and writes. */
#ifndef SLP_SPILL_FILE_H
#define SLP_SPILL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SLP_SPILL_PAGE = 4096 }; /* places, sizes and memory are multiples of it, as O_DIRECT needs them */

/* Opens the file, which nobody else sees; false: `why` has the reason. */
bool slp_spill_file_open(const char *path, char *why, size_t size);
void slp_spill_file_close(void);
const char *slp_spill_file_path(void); /* as it was given, for messages from any thread */
/* A place for so many bytes; -1 without memory to remember it by.  A free one of the same size is used again. */
int64_t slp_spill_file_place(size_t bytes);
void slp_spill_file_give(int64_t place, size_t bytes);
/* False: `why` has the reason. */
bool slp_spill_file_write(const void *data, size_t bytes, int64_t place, char *why, size_t size);
bool slp_spill_file_read(void *data, size_t bytes, int64_t place, char *why, size_t size);

/* For tests: the file, to damage it; and milliseconds that each access takes longer. */
int slp_spill_file_descriptor(void);
extern _Atomic int slp_spill_file_delay;

#endif
