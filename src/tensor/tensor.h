/* Internals of tensors. */
#ifndef SLP_TENSOR_H
#define SLP_TENSOR_H

#include "runtime/fault.h"
#include "runtime/task/buffer.h"
#include "runtime/task/storage.h"

struct slp_var;    /* the autograd state of a tensor (src/autograd) */
struct slp_symbol; /* a result that is only described (src/graph) */

struct sl_tensor {
	atomic_int refs;
	struct slp_storage
	        *_Atomic storage; /* NULL: only the type is known; a replaced storage is released later (gate.h) */
	size_t offset;            /* in bytes */
	struct slp_type type;     /* of a symbol, shape.ndim may be -1: not known */
	sl_device device;
	struct slp_var *_Atomic var; /* NULL: no gradient attached; replaced like the storage */
	struct slp_symbol *symbol;   /* NULL: concrete; else there is no storage */
	int output;                  /* of the symbol */
	atomic_bool gradient;        /* a gradient from sl_grad: its computation is not recorded */
	bool part;                   /* a copy that stands for a view: changes of it would be lost */
};

/* A new tensor over a storage (one reference to it is taken over); not in any scope.  NULL without memory. */
sl_tensor *slp_tensor_new(struct slp_storage *storage, size_t offset, struct slp_type type, sl_device device);
/* Another tensor with the same values and no gradient; not in any scope.  With values false, with the type alone. */
sl_tensor *slp_tensor_alias(const sl_tensor *t, bool values);
/* Gives the tensor to the innermost scope, which releases it; returns it, or NULL, with an error, without memory: then
 * it is released at once. */
sl_tensor *slp_scope_add(sl_tensor *t);
bool slp_scope_reserve(size_t n); /* reserves space for n more; false with an error */

/* Waits until a buffer can be used so, but not for longer than that; false: the time is up (poll.c). */
bool slp_buffer_poll(struct slp_buffer *buffer, enum starpu_data_access_mode mode, double seconds);
/* Checks that a tensor given by the user can be used by `function`; records why not. */
/* Begins to copy values that are in main memory to the GPU that the tensor is on, so that they are there when a task wants
 * them: StarPU itself begins when the task is ready. */
void slp_tensor_send(const sl_tensor *t);
bool slp_tensor_usable(const char *at, const char *function, const sl_tensor *t);

/* A new tensor whose values `fill` writes into main memory; NULL with an error, which is fill's own if it returns false. */
sl_tensor *slp_filled(const char *at, const char *function, bool (*fill)(void *to, size_t bytes, void *arg), void *arg,
                      struct slp_type type, sl_device device);
/* Makes values readable at a pointer in main memory, waiting for them; NULL (with an error) if they are spoilt.
 * slp_host_end gives the access back. */
void *slp_host_begin(const char *at, const char *function, sl_tensor *t, bool write);
void slp_host_end(sl_tensor *t);
/* Without a task or an allocation, which could fail: waits for the values; copies them to a tensor of the same type and
 * size.  False with the error pending. */
bool slp_host_wait(const char *at, const char *function, sl_tensor *t);
bool slp_host_copy(const char *at, const char *function, sl_tensor *to, sl_tensor *from);

/* ---- the graph's part in a call ---------------------------------------------------------------------------------- */

/* Set once by src/graph: a call with a symbol among its arguments, and every call while a thread traces, is written
 * down instead of run. */
struct slp_symbolic {
	enum sl_status (*call)(const char *at, const struct sl_op *op, const void *attrs, int nin, sl_tensor *const *in,
	                       sl_device device, sl_tensor **out);
	void (*retain)(struct slp_symbol *symbol);
	void (*release)(struct slp_symbol *symbol);
	const char *(*name)(const struct slp_symbol *symbol);
};
extern const struct slp_symbolic *slp_symbolic;
/* The first thing that a trace could not take, though the program may have gone on; empty: nothing. */
enum { SLP_COMPLAINT_MAX = 256 };
extern _Thread_local char slp_trace_complaint[SLP_COMPLAINT_MAX];
/* Notes such a thing, if this thread traces. */
void slp_trace_complain(const char *format, ...) SLP_PRINTF(1);
/* Whether this thread traces; then it is an error that `function` uses the values of a tensor: a program would keep
 * values that it read once, and not write them again. */
bool slp_trace_refuses(const char *at, const char *function, const sl_tensor *t);
/* Whether the call of these arguments is recorded. */
bool slp_is_symbolic(int nin, sl_tensor *const *in);
/* Records the error of a call that needs values of a symbol; returns NULL. */
void *slp_symbol_fail(const char *at, const char *function, const sl_tensor *t);
/* Result types of a call, defaults put into attrs (a copy of at least op->attrs_size bytes); errors are recorded. */
enum sl_status slp_call_types(const char *at, const struct sl_op *op, void *attrs, int nin, const struct slp_type *in,
                              struct slp_type *out);

/* tree_sum.c */
/* The sum of tensors of one type that may lie on several devices, on this one, in a fixed tree: (0 + 1) + (2 + 3) …; in
 * the innermost scope.  list is used up. */
sl_tensor *slp_tree_sum(const char *at, sl_tensor **list, int count, sl_device device);

/* ---- autograd's part in a call ---------------------------------------------------------------------------------- */

/* Autograd's functions for a thread that records. */
struct slp_recorder {
	/* A call was made; links its outputs to its inputs.  False with an error, and nothing is linked. */
	bool (*call)(const char *at, const struct sl_op *op, const void *attrs, int nin, sl_tensor *const *in, int nout,
	             sl_tensor *const *out);
	/* Whether a change of t in place can be recorded; records an error if not. */
	bool (*may_change)(const char *at, const struct sl_op *op, sl_tensor *t);
	/* Whether gradients flow through t. */
	bool (*wants)(const sl_tensor *t);
};

/* How this thread's calls are made, beyond their arguments. */
struct slp_mode {
	const struct slp_recorder *recorder;            /* NULL: nothing is recorded */
	void (*observer)(const struct slp_infer *call); /* sees each call once its result types are known; NULL: off */
	enum sl_dtype
	        autocast;    /* automatic mixed precision (autocast.c): computes in this half type where that suits */
	bool autocast_keeps; /* in a backward pass: products keep the types that the forward pass has chosen */
	bool tracing;        /* calls are written down, not run */
	bool in_custom;      /* in a backward function of the program's: no other walk can begin there */
};
extern _Thread_local struct slp_mode slp_mode;
static inline void slp_mode_restore(const struct slp_mode *before)
{
	slp_mode = *before;
}
/* Stands before changes of slp_mode: it is as before at the end of the C scope. */
#define SLP_MODE_SCOPE()                                                                                               \
	__attribute__((cleanup(slp_mode_restore), unused)) const struct slp_mode slp_mode_before_ = slp_mode

/* Whether a call gets other inputs than it was given; those, in the innermost scope, false with an error. */
bool slp_autocast_changes(const struct sl_op *op, int nin, sl_tensor *const *in);
bool slp_autocast_inputs(const char *at, const struct sl_op *op, int nin, sl_tensor *const *in, sl_tensor **cast);
/* Set once by autograd: releases a tensor's share of the tape. */
extern void (*slp_var_release)(struct slp_var *var);

#endif
