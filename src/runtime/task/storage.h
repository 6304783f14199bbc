/* Storages: the values of tensors and their views; calls that compute them (segment.c). */
#ifndef SLP_STORAGE_H
#define SLP_STORAGE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "op.h"
#include "runtime/task/buffer.h"

/* The values of a tensor and its views.  Its buffer comes late: results of small operations that die within one
 * segment never get one. */
struct slp_storage {
	atomic_int refs;
	size_t bytes;
	sl_device device;
	struct slp_buffer *buffer;           /* NULL: only the open segment knows it */
	int slot;                            /* in the open segment; -1: none */
	unsigned generation;                 /* of the engine; values do not survive sl_shutdown */
	atomic_uint version;                 /* counts writes */
	struct slp_explanation *explanation; /* of the task that computed its values (explain.h); NULL: none is kept */
	int explained_call;                  /* of that task */
	struct slp_storage *next;
};

struct slp_storage *slp_storage_new(size_t bytes, sl_device device); /* locked */
void slp_storage_retain(struct slp_storage *storage);
void slp_storage_release(struct slp_storage *storage);
/* Makes sure that it has a buffer, before it must have one; false without memory, without an error.  Locked. */
bool slp_storage_allocate(struct slp_storage *storage);
void slp_storage_forget(struct slp_storage *storage); /* its buffer, and so its values; locked */

/* An argument of a call. */
struct slp_operand {
	struct slp_storage *storage;
	size_t offset;
	struct slp_type type;
};

/* Whether a call of op also writes its input i. */
static inline bool slp_input_is_written(const struct sl_op *op, int i)
{
	int bit = op->period ? i % op->period : i;
	return bit < 16 && (op->mutates & SLP_IN(bit));
}

/* Adds a call to the open segment or submits it as a separate segment; locked. */
enum sl_status slp_submit(const struct slp_infer *call, const struct slp_operand *in, const struct slp_operand *out,
                          sl_device device, bool inplace);
void slp_flush(void);                                      /* submits the open segment; locked */
void slp_storage_materialize(struct slp_storage *storage); /* flushes if its values are still only planned; locked */

void slp_segments_clear(void);

#endif
