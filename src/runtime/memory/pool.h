/* Buffers without a holder, by device and size class (pool.c).  With the engine locked, unless stated otherwise. */
#ifndef SLP_POOL_H
#define SLP_POOL_H

#include "runtime/task/buffer.h"

int slp_pool_class(size_t bytes);
size_t slp_pool_class_bytes(int cls);

/* Puts a buffer in; it is in flight as long as tasks use it. */
void slp_pool_put(struct slp_buffer *b);
/* Takes one out; NULL: none.  An idle one: */
struct slp_buffer *slp_pool_idle(int pool, int cls);
struct slp_buffer *slp_pool_largest(void); /* of all idle ones of the first device that has any */
/* A buffer that tasks still use: the one put in last, or first. */
struct slp_buffer *slp_pool_newest(int pool, int cls);
struct slp_buffer *slp_pool_oldest(int pool, int cls);

void slp_pool_settle(void); /* finds out which buffers are idle by now */
size_t slp_pool_idle_bytes(void);
size_t slp_pool_in_flight(int pool); /* bytes */
size_t slp_pool_bytes(void);         /* idle and in flight */
void slp_pool_clear(void);

/* Without the lock: one task fewer uses the buffer. */
void slp_pool_task_ended(struct slp_buffer *b);
int slp_pool_tasks(const struct slp_buffer *b); /* that use it */

#endif
