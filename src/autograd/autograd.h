/* The tape: records of calls for the backward pass. */
#ifndef SLP_AUTOGRAD_H
#define SLP_AUTOGRAD_H

#include "op.h"
#include "starling/autograd.h"
#include "runtime/guard.h"
#include "tensor/tensor.h"

enum { SLP_TAPE_OUTPUTS = 256 }; /* of a recorded call, at most */

/* A recorded call.  It lives as long as a tensor that came from it, directly or through others. */
struct slp_node {
	atomic_int refs;
	uint64_t number; /* in the order of the calls */
	const struct sl_op *op;
	const char *at;
	union {
		char bytes[SLP_MAX_ATTRS];
		max_align_t align;
	} attrs;
	enum sl_dtype autocast; /* the call was made in */
	int nin, nout;
	struct slp_var **in_vars; /* NULL where no gradient goes */
	sl_tensor **in, **out;    /* with values if op->saves names them; NULL once released */
	unsigned *versions;       /* of the storages saved, when they were saved: inputs, then outputs */
	bool spent;               /* gone back through already */
	uint64_t visit;           /* of the last walk that met it */
	bool wanted, leads;       /* of that walk: to gradients that it returns: of results of the call, before it */
	sl_tensor **dout;         /* during a walk: gradients of the outputs */
};

/* The autograd state of a tensor: an output of a node, or a leaf with a gradient. */
struct slp_var {
	atomic_int refs;
	struct slp_node *node;         /* NULL: a leaf */
	int index;                     /* among the node's outputs */
	_Atomic(enum sl_grad_req) req; /* of a leaf */
	sl_tensor *grad;               /* of a leaf */
	atomic_bool fresh;             /* of a leaf: sl_backward wrote it since an optimiser used it */
	_Atomic double scale;          /* of a leaf's gradient; NaN: of parts of it */
	atomic_int gather;   /* of a leaf: the number of successive backward passes that add to a fresh gradient */
	atomic_int gathered; /* the number of passes added so far */
	struct slp_type type;
	sl_device device;
	sl_device owner; /* of a leaf: the device that adds contributions of several devices; DEFAULT: the leaf's */
	sl_tensor *sum;  /* of a leaf, during a walk */
	uint64_t visit;
	struct slp_var *dying; /* the next one to free, once it has no holder */
	bool inside; /* made in a part that is recomputed (recompute.c): it has no node, and no gradient flows to it */
};

/* Attaches a gradient to a symbol: after sl_backward, sl_grad returns a symbol. */
enum sl_status slp_attach_symbol(sl_tensor *symbol);

struct slp_var *slp_var_new(void);
void slp_var_retain(struct slp_var *var);
void slp_node_give_up(struct slp_node *node); /* releases the saved values, after the gradient was computed */
/* sl_backward for the library itself, also while a program is traced. */
enum sl_status slp_backward(const char *at, sl_tensor *const *heads, int count, struct sl_backward_opts opts);
/* One thread walks at a time: nodes may be shared. */
extern struct slp_guard slp_tape_guard;

/* Switches recording on as it was in this thread, without a change of how results are taken (sl_mode_enter). */
void slp_record_again(void);

/* Whether results that sl_backward has differentiated are constants for this thread, see sl_mode_enter. */
bool slp_spent_is_constant(void);
/* Sets the recorder of this thread: the tape, or one that only notes tensors; NULL: the tape.  Returns the previous
 * one. */
const struct slp_recorder *slp_record_by(const struct slp_recorder *by);
extern const struct slp_recorder slp_tape;
/* Refuses tensors from the inside of a part that is recomputed; false with an error. */
bool slp_is_outside(const char *at, const char *function, const sl_tensor *t);

/* ---- recompute.c: parts whose inside is recorded only when a walk comes there ------------------------------------ */

/* A part of a program.  It begins a structure of the caller's. */
struct slp_part {
	atomic_int refs;
	/* Repeats the part, recorded, on the same inputs; gives results as slp_part_record was given them. */
	bool (*repeat)(struct slp_part *part, sl_tensor *const *in, sl_tensor **out);
	void (*destroy)(struct slp_part *part);
	int nin; /* its inputs, the first of the call's */
};
/* While such a recorder is set, calls are not recorded, but the outside tensors that gradients flow to are noted. */
struct slp_look {
	struct slp_look *outer;
	const struct slp_recorder *by;
	sl_tensor **met; /* held */
	int count, capacity;
};
void slp_look_begin(struct slp_look *look);
void slp_look_end(struct slp_look *look);
void slp_look_free(struct slp_look *look);
bool slp_is_looking(void);
/* Whether gradients flow back from a result into the part. */
bool slp_comes_from_inside(const sl_tensor *t);
/* Records the part as one call with these results, which come from inside; false with an error. */
bool slp_part_record(const char *at, struct slp_part *part, const struct slp_look *look, sl_tensor *const *in,
                     sl_tensor *const *out, int nout);
void slp_part_release(struct slp_part *part);
/* Whether a node is such a call; and repeats the part: out gets its results, in the innermost scope. */
bool slp_node_is_part(const struct slp_node *n);
bool slp_node_repeat(const struct slp_node *n, sl_tensor **out);

#endif
