/* Buffers: StarPU's handles with their memory, recycled (buffer.c); scratch memory of segments (scratch.c). */
#ifndef SLP_BUFFER_H
#define SLP_BUFFER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"
#include "runtime/compat.h"
#include "starling/base.h"

/* A StarPU handle and its memory.  Recycled: a buffer without a holder may still have running tasks; StarPU
 * orders its next writer after them. */
struct slp_buffer {
	starpu_data_handle_t handle;
	size_t bytes;
	atomic_int pending; /* submitted segments that use it */
	atomic_int waiters; /* threads of the program that wait for it */
	atomic_int
	        seen; /* number of uses of its memory by the program (sl_values): the memory then outlives the engine */
	_Atomic uint32_t fault;   /* the fault that spoilt its value; 0: none */
	_Atomic uint64_t readers; /* memory nodes that new values are sent to as soon as they are there, as bits */
	_Atomic uint32_t version; /* counts submitted writes */
	_Atomic uint64_t asked;   /* bit v % 64: another segment reads version v */
	atomic_bool fresh;        /* promised memory that nothing has been written into yet (memory_limit.h) */
	double ready;             /* when its value is expected to be there ... */
	uint32_t homes;           /* ... and on which GPUs, as bits; 0: in main memory (device/auto.c) */
	bool lost;                /* there was no memory: its value is spoilt for good, and no kernel may touch it */
	char nothing;             /* of a lost one: all that StarPU sees of it */
#ifdef SLP_SIMULATION
	double written, used; /* when the last task to write it, to use it, could have ended at best (bound.c) */
#endif
	int pool, cls;
	struct slp_buffer *next, *before;
	struct slp_buffer *older, *newer; /* of all that exist */
	void *adopted;                    /* the caller's memory, else NULL */
	void *memory;                     /* main memory allocated here; NULL: StarPU allocates it */
	struct {
		_Atomic uintptr_t memory; /* its planned place on a GPU (memory/place.h); 0: it has none */
		unsigned node;
		bool dead;
		struct slp_buffer *next, *before;
	} place;
	struct slp_spilled *spilled; /* it has memory only at times (memory/spill.h); NULL: always */
	void (*release)(void *data, void *arg);
	void *release_arg;
};

void slp_buffer_start(bool grows); /* the engine starts; grows: the limit of what is in flight does, with the program */
/* All with the engine locked. */
enum slp_buffer_kind {
	SLP_BUFFER_IDLE, /* without tasks in flight */
	SLP_BUFFER_ANY,
	SLP_BUFFER_RESERVED /* from those that slp_buffer_reserve has made: always succeeds, perhaps with a lost one */
};
/* NULL without memory, without an error; a lost one if it must not fail. */
struct slp_buffer *slp_buffer_get(size_t bytes, sl_device device, enum slp_buffer_kind kind);
bool slp_buffer_reserve(int n); /* reserves n buffers; false with an error */
struct slp_buffer *slp_buffer_adopt(void *data, size_t bytes);
void slp_buffer_put(struct slp_buffer *buffer);
/* The submitted task is the last to use its values. */
void slp_buffer_dead(struct slp_buffer *buffer);
void slp_buffers_leave(unsigned node); /* all values leave a memory node, on which no task works */
void slp_buffer_clear(void);
size_t slp_buffer_class_bytes(size_t bytes);
bool slp_buffer_owns_memory(void);      /* all values are in main memory, which is allocated here */
void *slp_buffer_memory(size_t bytes);  /* main memory, for which idle buffers go if they must; NULL: none */
bool slp_buffer_could_be(size_t bytes); /* false: there is not enough, whatever running tasks release */
/* Without the lock: */
enum { SLP_LARGE = 16 << 20 }; /* bytes; whether there is room for less is not asked beforehand */
/* The reason why `bytes` and a scratch of that size do not fit, as slp_memory_limit_text; NULL: they may fit. */
const char *slp_memory_missing_text(size_t bytes, size_t scratch, char text[160]);
void slp_buffer_reap(bool all); /* releases adopted memory that is no longer in use */
void slp_buffer_retire(void);   /* releases all adopted memory: the engine stops */
/* From a worker: a segment that used the buffer has ended. */
void slp_buffer_done(struct slp_buffer *buffer);
void slp_buffer_written(struct slp_buffer *buffer); /* its memory is no longer promised, but used */
/* A segment that is submitted uses the buffer; the version that it leaves.  Locked. */
uint32_t slp_buffer_use(struct slp_buffer *buffer, bool write);
/* From a worker: a segment has written this version; it is sent to the buffer's readers before they request it, unless
 * the next task changes it again. */
void slp_buffer_send(struct slp_buffer *buffer, uint32_t version, int priority);

/* ---- scratch memory (scratch.c) ---------------------------------------------------------------------------------- */

/* Memory that a segment works in: of StarPU, or each team's own part of `memory`. */
struct slp_scratch {
	starpu_data_handle_t handle;
	char *memory;
	size_t bytes;       /* of a worker */
	atomic_bool *fresh; /* not used yet */
};
static inline size_t slp_scratch_bytes(size_t results, size_t calls) /* for dead results and workspaces of calls */
{
	size_t bytes = (results + 63) / 64 * 64 + calls;
	return bytes ? bytes + 64 : 0;
}
/* At least this much for each worker; 0: none.  False without memory, without an error.  Locked. */
bool slp_scratch_get(size_t bytes, struct slp_scratch *scratch);
size_t slp_scratch_missing(size_t bytes);                 /* the size that slp_scratch_get would allocate */
void slp_scratch_used(const struct slp_scratch *scratch); /* from a worker */
void slp_scratch_clear(void);
/* For a calling thread: aligned to 64; NULL without memory, without an error. */
void *slp_scratch_take(size_t bytes);
void slp_scratch_give(void *memory);

#endif
