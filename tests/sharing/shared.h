/* What the files of tests/sharing share. */
#ifndef SLP_TESTS_SHARING_SHARED_H
#define SLP_TESTS_SHARING_SHARED_H

/* A path that no other thread writes; it lasts until the thread's next call. */
const char *own_path(const char *name);

#endif
