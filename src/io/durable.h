/* Files that are replaced as a whole, and are on the disk when the call returns: whatever fails or is killed
 * meanwhile, the old file is still there.  Does not need the engine; tools use it, too. */
#ifndef SLP_DURABLE_H
#define SLP_DURABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A file that is being written, beside the one that it will replace. */
struct slp_durable {
	char *target; /* what the path means: symbolic links are followed */
	char *part;   /* where it is until it is complete; NULL: in place, the target is not a regular file */
	char *old;    /* another name of what is replaced, while several files are */
	bool is_new;  /* nothing was there */
	int fd;
	FILE *stream;
	char *block; /* what is not written yet; NULL: each piece is written at once */
	size_t filled;
	bool direct;      /* past the system's cache */
	int error;        /* the first one, as errno; 0: none */
	const char *what; /* that could not be done: "cannot be written" */
};

/* Opens a file under a name of its own in the same folder; it gets the mode and the owner of the one that it will
 * replace.  What is not a regular file (a pipe, a terminal) is written in place.  false: error and what say why. */
bool slp_durable_open(struct slp_durable *d, const char *path);
/* Brings the files to the disk, gives them all their names, and brings those to the disk.  After an error none has its
 * name, as far as the system still obeys.  They are closed either way. */
bool slp_durable_commit(struct slp_durable *const *files, int count);
/* Closes a file and removes it. */
void slp_durable_discard(struct slp_durable *d);
/* Removes unfinished files that killed writers have left in a folder, if is_ours accepts the names of their targets. */
void slp_durable_sweep(const char *folder, bool (*is_ours)(const char *target));

#endif
