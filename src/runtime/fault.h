/* Errors of the calling thread, and faults: kernels that failed, which a later sync point reports (error.c). */
#ifndef SLP_FAULT_H
#define SLP_FAULT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/base.h"

/* Marks a function as one that prints; n: place of the format. */
#define SLP_PRINTF(n) __attribute__((format(printf, n, n + 1)))

enum { SLP_MESSAGE_MAX = 2048 };

/* Records an error of the calling thread, unless one is pending (the first wins); returns status. */
enum sl_status slp_error_set(enum sl_status status, const char *format, ...) SLP_PRINTF(2);
enum sl_status slp_error_setv(enum sl_status status, const char *prefix, const char *format, va_list args);
/* Sets the pending error, if any, aside, so that later errors are seen; slp_error_rejoin restores it, and the first one
 * is kept. */
struct slp_pending {
	enum sl_status status;
	char message[SLP_MESSAGE_MAX];
};
void slp_error_set_aside(struct slp_pending *first);
void slp_error_rejoin(const struct slp_pending *first);
const char *slp_refused_text(
        char text[160]); /* of the last allocation that failed, in any thread: as slp_memory_limit_text; none: "" */
enum sl_status
slp_no_memory(size_t bytes); /* sets the error of the program's call: SL_ENOMEM for a request of `bytes` */
/* Ends a sync point: the first error, of the thread or of kernels, counts as reported. */
enum sl_status slp_error_take(void);

/* A kernel that failed.  Returns the fault's number, at least 1. */
uint32_t slp_fault_add(enum sl_status status, const char *message);
enum sl_status slp_fault_report(uint32_t fault); /* makes it the thread's error */
void slp_fault_reset(void);
void slp_fault_forked(void); /* in a child process, where the thread that held the lock does not exist */

#endif
