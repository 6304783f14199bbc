/* Values in a file while main memory is too small (doc/memory-state.md). */
#ifndef STARLING_SPILL_H
#define STARLING_SPILL_H

#include <starling/base.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sl_spill_opts {
	size_t memory; /* bytes of values in main memory [half of what is available] */
};
SL_API enum sl_status sl_spill_at(const char *at, const char *path, struct sl_spill_opts opts);
#define sl_spill(path, ...) sl_spill_at(SL_HERE, path, (struct sl_spill_opts){__VA_ARGS__})

#ifdef __cplusplus
}
#endif
#endif
