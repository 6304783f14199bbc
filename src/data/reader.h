/* Batches of samples read into main memory by threads, ahead of their use. */
#ifndef SLP_READER_H
#define SLP_READER_H

#include "data/dataset.h"
#include "starling/data.h"

struct slp_reader;

/* A reader of batches of at most `rows` samples, with `slots` batches in memory; it has a reference to the data set.
 * With 0 workers the waiting thread does the work.  NULL with an error recorded. */
struct slp_reader *slp_reader_new(sl_dataset *d, int workers, int slots, int64_t rows);
void slp_reader_free(struct slp_reader *r);
/* False in the child of a fork: its threads are not there, and may have held the lock.  It can only be freed. */
bool slp_reader_is_here(const struct slp_reader *r);
/* Whether the calling thread is getting one of its samples, and would wait for itself. */
bool slp_reader_is_asking(const struct slp_reader *r);

/* One more batch: these samples, whose random numbers are of this seed and epoch.  There must be a free slot. */
void slp_reader_ask(struct slp_reader *r, const int32_t *numbers, int64_t rows, uint64_t seed, uint64_t epoch);
/* Waits for the oldest batch, helping meanwhile, and returns where it is, until slp_reader_drop; false with an error
 * recorded for sl_loader_next: that of its first sample that failed. */
bool slp_reader_wait(struct slp_reader *r, const char *at, int64_t *rows, const void **x, const void **y);
/* Its memory may be used for another one. */
void slp_reader_drop(struct slp_reader *r);
/* Forgets all batches; returns when no thread is at work. */
void slp_reader_clear(struct slp_reader *r);

#endif
