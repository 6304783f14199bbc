/* The contents of large compressed IDX files, kept unpacked for the next start. */
#ifndef SLP_IDX_CACHE_H
#define SLP_IDX_CACHE_H

#include "data/image/idx.h"

/* The contents of a compressed file at this path, if they are cached; false: unpack it.  No error is recorded. */
bool slp_idx_find(const char *path, int ndim, struct slp_idx *idx);
/* Keeps it, where that can be done. */
void slp_idx_keep(const char *path, const struct slp_idx *idx);

#endif
