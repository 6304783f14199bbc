/* What the files of tests/sharing share. */
#ifndef SLP_TESTS_SHARING_SHARED_H
#define SLP_TESTS_SHARING_SHARED_H

struct one_call;

/* A path that no other thread writes; it lasts until the thread's next call. */
const char *own_path(const char *name);

/* One of the blocks that all threads share, whose children may be replaced. */
struct sl_block *changing_block(void);

/* By the function that each is about, with the one that ends it; ends with a NULL name. */
extern const struct one_call calls_by_hand[];

#endif
