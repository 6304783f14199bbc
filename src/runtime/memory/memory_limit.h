/* The available main memory (memory_limit.c). */
#ifndef SLP_MEMORY_LIMIT_H
#define SLP_MEMORY_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { SLP_MEMORY_LARGE = 1 << 20 }; /* writing it takes longer than reading the available memory */

/* Whether `bytes` more may be requested.  Nanoseconds, unless recent requests could matter. */
bool slp_memory_limit_allows(size_t bytes);
/* The same for memory that leaves when others need some (spill.h): little stays free beside it. */
enum { SLP_MEMORY_BESIDE_MOVABLE = 16 << 20 };
bool slp_memory_limit_allows_movable(size_t bytes);
/* The same for libraries while others take memory unseen: where ulimit makes requests fail, it is read now. */
bool slp_memory_limit_allows_now(size_t bytes);
size_t slp_memory_available(void);   /* read now */
void slp_memory_limit_changed(void); /* a limit has changed: earlier readings are invalid */
/* Whether `bytes` could be requested, once `more` bytes are freed. */
bool slp_memory_limit_could_allow(size_t bytes, size_t more);
/* Set while values can leave main memory (spill_thread.c): they do until `bytes` are allowed; false: they never will be. */
extern bool (*_Atomic slp_memory_leave_for_others)(size_t bytes);
/* Free memory of the heap goes back to the system; glibc alone can do that. */
void slp_heap_trim(void);
/* Bytes that were requested and not written yet, so that the system does not count them: more, or less. */
void slp_memory_promise(long bytes);
/* "out of memory: 8 bytes needed and 4194304 reserved, 4 available (limit: control group)" */
const char *slp_memory_limit_text(size_t bytes, char text[160]);

#endif
