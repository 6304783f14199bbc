/* The library's own memory: all of it is allocated here (src/runtime/alloc.c), so that a test can make any one of
 * its allocations fail.  It is freed with free().
 *
 * A failure is the calling thread's error at once, SL_ENOMEM with the call that the program made (SLP_CALL), so
 * callers that pass NULL on need not report it. slp_try_* report nothing: for memory that is optional, and for
 * kernels, which report errors themselves (slp_kernel_fail). */
#ifndef SLP_ALLOC_H
#define SLP_ALLOC_H

#include <stdarg.h>
#ifndef __cplusplus
#include <stdatomic.h>
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

void *slp_try_malloc(size_t bytes) __attribute__((malloc));
void *slp_try_calloc(size_t n, size_t size) __attribute__((malloc));
void *slp_try_realloc(void *p, size_t bytes);
void *slp_try_aligned_alloc(size_t alignment, size_t bytes) __attribute__((malloc));
char *slp_try_strdup(const char *text);
char *slp_try_format(const char *format, va_list args) __attribute__((format(printf, 1, 0)));
/* Ensures memory for the next allocations of another library: a large piece and n small ones, freed just before. */
void *slp_try_pieces(size_t large, int n, size_t small);
void slp_free_pieces(void *pieces);
/* Whole pages of the system, which leave nothing in the heap; NULL: none, or limits do not allow them. */
void *slp_try_pages(size_t bytes);
void slp_free_pages(void *pages, size_t bytes);

void *slp_malloc(size_t bytes) __attribute__((malloc));
void *slp_calloc(size_t n, size_t size) __attribute__((malloc));
void *slp_realloc(void *p, size_t bytes);
char *slp_strdup(const char *text);
char *slp_format(const char *format, ...) __attribute__((format(printf, 1, 2))); /* as asprintf; NULL without memory */
char *slp_vformat(const char *format, va_list args) __attribute__((format(printf, 1, 0)));
FILE *slp_memory_file(char **text, size_t *size); /* as open_memstream */

/* Makes a list of items of a size longer if it must be; false without memory. */
bool slp_grow(void **list, int *max, int n, size_t size);

#ifndef __cplusplus /* CUDA kernels allocate nothing */

/* For tests: the k-th allocation of the library from now on fails (1: the next); at most 0: none. */
extern _Atomic long slp_fail_alloc;

/* ---- whose error it is ------------------------------------------------------------------------------------------- */

/* The call that the calling thread's program made: the outermost one, as calls make calls.  at NULL: none. */
struct slp_call {
	const char *function, *at;
	atomic_uint turn; /* counts the beginnings and ends of calls: odd within one (runtime/gate.h) */
	bool known;       /* to the gate */
	struct slp_call *next;
};
extern _Thread_local struct slp_call slp_current_call;

/* Not 0: the gate is closed, or something waits for calls to end; or callers have to make a barrier themselves. */
extern atomic_uint slp_gate;
void slp_gate_enter(void);
void slp_gate_leave(void);

/* Who closes the gate sees the turn, or the caller sees the gate: slp_calls_stop has all threads pass a barrier. */
static inline bool slp_call_enter(const char *function, const char *at)
{
	struct slp_call *c = &slp_current_call;
	if (c->at) return false;
	c->function = function;
	c->at = at ? at : "?";
	atomic_store_explicit(&c->turn, atomic_load_explicit(&c->turn, memory_order_relaxed) + 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(atomic_load_explicit(&slp_gate, memory_order_acquire) || !c->known, 0)) slp_gate_enter();
	return true;
}

static inline void slp_call_leave(const bool *outermost)
{
	struct slp_call *c = &slp_current_call;
	if (!*outermost) return;
	c->at = NULL;
	atomic_store_explicit(&c->turn, atomic_load_explicit(&c->turn, memory_order_relaxed) + 1, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(atomic_load_explicit(&slp_gate, memory_order_relaxed) != 0, 0)) slp_gate_leave();
}

/* Stands first in a function that programs call. */
#define SLP_CALL(function, at)                                                                                         \
	__attribute__((cleanup(slp_call_leave))) const bool slp_outermost_ = slp_call_enter(function, at);             \
	(void)slp_outermost_

#endif

#ifdef __cplusplus
}
#endif
#endif
