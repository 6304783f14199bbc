/* Values in a file while main memory is too small (doc/memory-state.md). */
#ifndef STARLING_SPILL_H
#define STARLING_SPILL_H

#include <starling/base.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sl_spill_opts {
	int64_t memory SL_IS_(SL_UNSET_INT); /* most bytes of values in main memory [half of the free memory] */
	bool as_written SL_IS_(true);        /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_spill_opts(X) X(memory, SL_UNSET_INT)
SL_API enum sl_status sl_spill_at(const char *at, const char *path, struct sl_spill_opts opts);
#define sl_spill(path, ...) sl_spill_at(SL_HERE, path, SL_OPTIONS(sl_spill_opts, __VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
