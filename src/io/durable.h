/* Files that are replaced as a whole, and are on the disk when the call returns: if a step fails or the program is
 * killed meanwhile, the old file is still there.  Does not need the engine; tools also use it. */
#ifndef SLP_DURABLE_H
#define SLP_DURABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A file that is being written, beside the one that it will replace. */
struct slp_durable {
	char *target; /* the file that the path refers to: symbolic links are followed */
	char *part;   /* where it is until it is complete; NULL: in place, the target is not a regular file */
	char *old;    /* another name of the old file, while several files are replaced */
	bool is_new;  /* nothing was there */
	int fd;
	FILE *stream;
	char *block; /* unwritten bytes; NULL: each piece is written at once */
	size_t filled;
	bool direct;      /* past the system's cache */
	int error;        /* the first one, as errno; 0: none */
	const char *what; /* that could not be done: "cannot be written" */
};

/* Opens a file under a temporary name in the same folder; it gets the mode and the owner of the one that it replaces.
 * Anything but a regular file (a pipe, a terminal) is written in place.  False: error and what have the reason. */
bool slp_durable_open(struct slp_durable *d, const char *path);
/* Flushes the files to the disk, renames them all, and flushes their folders.  After an error none is renamed, as far
 * as the system allows.  They are closed in either case. */
bool slp_durable_commit(struct slp_durable *const *files, int count);
/* Closes a file and removes it. */
void slp_durable_discard(struct slp_durable *d);
/* Removes unfinished files that killed writers have left in a folder, if is_ours accepts the names of their targets. */
void slp_durable_sweep(const char *folder, bool (*is_ours)(const char *target));

#endif
