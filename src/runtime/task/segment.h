/* Internals of segments: common parts of building and submitting them. */
#ifndef SLP_SEGMENT_H
#define SLP_SEGMENT_H

#include "runtime/task/execute.h"
#include "runtime/task/record.h"
#include "runtime/task/storage.h"

/* code.c */
/* The name of the prepared code that a record comes from; NULL: from none, or it has none. */
const char *slp_code_name_of(const struct slp_segment *segment, const struct slp_record *record);

/* segment.c */
/* The segment that gathers small calls on a device, opened if need be; NULL with an error. */
struct slp_segment *slp_segment_open(sl_device device);
void slp_segment_close_if_full(void);
static inline void slp_segment_raise(struct slp_segment *seg, int level) /* it has calls of this level */
{
	if (seg->level < level) seg->level = level;
}
/* Ensures that the segment can have `slots` slots, and a buffer for each; false with an error. */
bool slp_segment_reserve(struct slp_segment *seg, int nslots);
/* The slot of a storage in a segment, for which there is room. */
int slp_segment_slot(struct slp_segment *seg, struct slp_storage *storage);
/* Submits a segment whose slots have storages, buffers or offsets in scratch; it ends in segment_done. */
void slp_segment_submit(struct slp_segment *seg);

#endif
