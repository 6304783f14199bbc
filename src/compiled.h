/* Kernels that are compiled while the program runs, by NVRTC, and kept on disk beside the measurements of tune.h
 * (src/runtime/device/compiled.c).  Without NVRTC there are none, and callers have another way. */
#ifndef SLP_COMPILED_H
#define SLP_COMPILED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A file that sources include. */
struct slp_compiled_header {
	const char *name, *text;
};

/* Whether kernels for so many elements are compiled: SL_GPU_COMPILE at sl_init says so, NVRTC is there, and the elements are
 * enough to gain from it. */
bool slp_compiled_wanted(int64_t elements);
void slp_compiled_start(bool wish);

/* The function `kernel` of a source, for the calling thread's GPU; NULL: there is none.  It is compiled, or loaded from
 * disk, if it was not before and `may_load`: that allocates, so not while a CUDA graph is recorded.  headers: ends
 * with a name NULL; they are a part of the library, whose version stands for them. */
const void *slp_compiled_kernel(const char *source, const struct slp_compiled_header *headers, bool may_load);
/* Queues it with one argument, a structure that begins with `pointers` addresses; NULL ones are allowed. */
void slp_compiled_launch(const void *kernel, unsigned blocks, unsigned threads, void *stream, void *arg, size_t bytes,
                         int pointers);
/* Releases all kernels, at the end. */
void slp_compiled_forget(void);

/* Kernels by descriptions of launches, which may be any bytes without padding of undefined value
 * (src/runtime/device/compiled_memo.c).  Any thread may call.  recall: whether one is noted for a description, even NULL;
 * it may be gone later.  notes: how many were noted since the start. */
bool slp_compiled_recall(const void *key, size_t bytes, const void **kernel);
void slp_compiled_note(const void *key, size_t bytes, const void *kernel);
size_t slp_compiled_notes(void);
void slp_compiled_forget_notes(void);

#ifdef __cplusplus
}
#endif
#endif
