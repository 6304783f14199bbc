/* Files that are read: regular ones only, which are opened without waiting. */
#ifndef SLP_REGULAR_H
#define SLP_REGULAR_H

#include <stdint.h>
#include <stdio.h>

enum { SLP_WHY = 160 }; /* bytes of a reason */

/* Opens a regular file for reading; opening a FIFO without a writer would block.  -1, and why not: "cannot be opened:
 * No such file or directory".  size, unless NULL: its bytes. */
int slp_regular_open(const char *path, int64_t *size, char why[SLP_WHY]);
/* The same as a stream; NULL. */
FILE *slp_regular_stream(const char *path, int64_t *size, char why[SLP_WHY]);

#endif
