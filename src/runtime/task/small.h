/* Small calls: those that share a task with others (small.c). */
#ifndef SLP_SMALL_H
#define SLP_SMALL_H

#include "runtime/task/record.h"
#include "runtime/task/segment.h"

bool slp_call_is_small(const struct slp_infer *call, double flops);
/* For a GPU; `open` is the open segment, NULL: there is none. */
bool slp_call_is_small_on_gpu(const struct slp_infer *call, double flops, sl_device device,
                              const struct slp_segment *open);
/* The open segment must be submitted before this call. */
bool slp_call_parts(const struct slp_infer *call, sl_device device, const struct slp_segment *open);

#endif
