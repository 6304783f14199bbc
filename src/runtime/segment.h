/* Segments from the inside: what building, submitting and running them share. */
#ifndef SLP_SEGMENT_H
#define SLP_SEGMENT_H

#include "runtime/runtime.h"

/* One storage that a segment uses. */
struct slp_slot {
	struct slp_storage *storage; /* while the segment is open */
	struct slp_buffer *buffer;   /* then: where it lies; NULL: in scratch */
	int index;                   /* of the buffer among the task's */
	size_t offset;               /* in scratch */
	enum starpu_data_access_mode mode;
	bool known;                  /* some call of the segment has used it before */
};

/* One call.  Behind it lie its operands' places, its views and its attributes. */
struct slp_record {
	size_t size; /* bytes to the next record */
	int op;      /* number in slp_ops */
	int nin, nout;
	unsigned mutated; /* inputs below 32 that are written too */
	const char *at;
	struct slp_place {
		int slot;
		size_t offset;
	} *places;
	struct slp_view *views; /* inputs, then outputs; the pointers are set when it runs */
	void *attrs;
};

struct slp_segment {
	struct slp_segment *next;
	char *records;
	size_t used, capacity;
	struct slp_slot *slots;
	int nslots, max_slots;
	int nops;
	int op;            /* of its only call */
	sl_device device;
	bool cuda;         /* every call has a CUDA kernel for its types */
	size_t scratch, op_scratch; /* bytes for dead results; on top, for the call that needs most */
	int scratch_index; /* among the task's buffers; -1: none */
	uint32_t footprint;
	double flops;
	struct slp_buffer **buffers; /* of the task, without scratch */
	int nbuffers, max_buffers;
};

static inline struct slp_record *slp_record_first(struct slp_segment *s)
{
	return (struct slp_record *)s->records;
}
static inline struct slp_record *slp_record_next(struct slp_record *r)
{
	return (struct slp_record *)((char *)r + r->size);
}

/* For tests: the k-th kernel from now on fails (1: the next); 0: none. */
extern _Atomic long slp_fail_kernel;

#endif
