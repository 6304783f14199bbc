/* Handles of buffers (handle.c). */
#ifndef SLP_HANDLE_H
#define SLP_HANDLE_H

#include "runtime/task/buffer.h"

/* Registers b->handle, of b->bytes bytes; data: its copy in main memory, or NULL.  Locked. */
void slp_handle_register(struct slp_buffer *b, void *data);
void slp_handle_register_scratch(starpu_data_handle_t *handle, size_t bytes); /* of scratch memory */
/* Whether handles get memory on GPUs from arenas (memory/arena.h), where there are any; whether they could. */
void slp_handles_use_arenas(bool yes);
bool slp_handles_can_use_arenas(void);

#endif
