/* Records: the calls that a task runs, and their operands. */
#ifndef SLP_RECORD_H
#define SLP_RECORD_H

#include "runtime/observe/utilisation.h"
#include "runtime/task/buffer.h"
#include "runtime/task/code.h"
#include "runtime/task/storage.h"

/* One storage that a segment uses. */
struct slp_slot {
	struct slp_storage *storage; /* while the segment is open */
	struct slp_buffer *buffer;   /* then: where it lies; NULL: in scratch */
	int index;                   /* of the buffer among the task's */
	size_t offset;               /* in the buffer or in scratch */
	uint32_t version;            /* of the buffer, that the segment leaves */
	enum starpu_data_access_mode mode;
	bool known; /* some call of the segment has used it before */
};

/* One call.  After it come the addresses of its operands, their types and its attributes (record.c). */
struct slp_record {
	size_t size; /* bytes to the next record */
	int op;      /* number in slp_ops */
	int nin, nout;
	const char *at;
	bool mends; /* it overwrites the whole buffer of operand 0, which clears a fault */
};

/* Calls in order, and the resources that they need together. */
struct slp_call_list {
	char *records;
	size_t used, capacity;
	int nops;
	int op;             /* of the last call */
	int max_operands;   /* of a call */
	bool cuda;          /* every call has a CUDA kernel for its types */
	bool graph;         /* which CUDA graphs may record */
	enum slp_turn turn; /* in a program with a limit of memory */
	uint64_t code;      /* of prepared code: a number that no other has had; else 0 */
	size_t op_scratch;  /* of the call that needs most */
	uint32_t footprint;
	double flops;
};

/* The watchdog's data about a segment (watch.h). */
struct slp_watched {
	double since;                  /* it was submitted; once it runs: it does */
	const struct slp_record *call; /* that runs; NULL: it has not begun */
	int worker;
	bool told;
	struct slp_segment *older, *newer;
};

struct slp_layers;
struct slp_segment {
	struct slp_segment *next;
	struct slp_call_list own;
	const struct slp_call_list *calls; /* own, or that of prepared code */
	struct slp_code **codes;           /* prepared code that it runs, or has taken calls from: held */
	int ncodes, max_codes;
	struct slp_patch *patches; /* of attributes, in the order of the calls */
	int npatches, max_patches;
	struct slp_slot *slots;
	int nslots, max_slots;
	sl_device device;
	double bytes, seconds;               /* where there are GPUs: of its calls on one, estimated (segment.c) */
	size_t scratch;                      /* bytes for dead results; the calls' own scratch comes on top */
	int scratch_index;                   /* among the task's buffers; -1: none */
	struct slp_scratch work;             /* its data for both */
	bool lost;                           /* a buffer has no memory: calls that use it are skipped */
	struct slp_explanation *explanation; /* its record (explain.h); NULL: none */
	struct slp_buffer **buffers;         /* of the task, without scratch */
	size_t need;                         /* bytes of memory that it takes where it runs (admission.c) */
	int nbuffers, max_buffers;
	int level, priority;             /* its urgency, and the resulting priority of its task (priority.h) */
	const struct slp_layers *layers; /* whose times a trace gets (layers.h); NULL: none */
	bool placed;                     /* its device was chosen for it, which the program left open (device/auto.h) */
	bool here;                       /* a worker of this process has run it */
	uint64_t spill_number;           /* among the submitted ones (memory/spill.h) */
	bool spill_held;                 /* its values are kept in memory */
	struct slp_watched watched;
};

static inline size_t slp_align(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static inline struct slp_record *slp_record_first(const struct slp_call_list *p)
{
	return (struct slp_record *)p->records;
}
static inline struct slp_record *slp_record_next(const struct slp_record *r)
{
	return (struct slp_record *)((char *)r + r->size);
}
static inline struct slp_address *slp_record_addresses(const struct slp_record *r)
{
	return (struct slp_address *)((char *)r + slp_align(sizeof *r, 16));
}
static inline struct slp_type *slp_record_types(const struct slp_record *r)
{
	size_t n = (size_t)(r->nin + r->nout);
	return (struct slp_type *)((char *)slp_record_addresses(r) + slp_align(n * sizeof(struct slp_address), 16));
}
static inline void *slp_record_attrs(const struct slp_record *r)
{
	size_t n = (size_t)(r->nin + r->nout);
	return (char *)slp_record_types(r) + slp_align(n * sizeof(struct slp_type), 16);
}

/* The call as its operation looks at it. */
static inline struct slp_infer slp_record_call(const struct slp_record *r)
{
	struct slp_type *types = slp_record_types(r);
	return (struct slp_infer){.op = slp_ops[r->op],
	                          .at = r->at,
	                          .attrs = slp_record_attrs(r),
	                          .nin = r->nin,
	                          .nout = r->nout,
	                          .in = types,
	                          .out = types + r->nin};
}

/* ---- calls on copies of their operands (promote.c) --------------------------------------------------------------- */

/* Scratch memory for a call, on whatever device it runs. */
size_t slp_call_scratch(const struct slp_infer *c);
/* Runs the kernel for float32; wide: room for all operands. */
enum sl_status slp_run_promoted(const struct slp_kernel *k, slp_kernel_fn *kernel, bool cuda, struct slp_view *wide);
/* Runs a CUDA kernel with operands of half types at multiples of 16 bytes; aligned: room for all operands. */
enum sl_status slp_run_aligned(const struct slp_kernel *k, slp_kernel_fn *kernel, struct slp_view *aligned);

/* record.c */
/* Adds a call to the list, its addresses unset; NULL with an error. */
struct slp_record *slp_call_list_add(struct slp_call_list *p, const struct slp_infer *c, double flops);
/* Adds copies of all of another's calls; the first of them, or NULL without memory. */
struct slp_record *slp_call_list_append(struct slp_call_list *p, const struct slp_call_list *more);
void slp_call_list_clear(struct slp_call_list *p); /* keeps its memory */
/* Notes that a call uses the slot. */
void slp_slot_access(struct slp_slot *slot, bool reads, bool writes);

#endif
