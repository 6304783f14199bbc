/* Handles of buffers (handle.c). */
#ifndef SLP_HANDLE_H
#define SLP_HANDLE_H

#include "runtime/task/buffer.h"

/* Registers b->handle, of b->bytes bytes; data: its copy in main memory, or NULL.  Locked. */
void slp_handle_register(struct slp_buffer *b, void *data);

#endif
