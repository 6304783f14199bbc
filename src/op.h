/* What an operation is.  The whole of what codelets/ sees of the engine: they know neither tape nor tasks.
 *
 * An operation is one const struct sl_op at the foot of its file.  The engine makes from it the StarPU codelet, the
 * performance model, the recorded node, the row in the tests and the entry in the manual. */
#ifndef SLP_OP_H
#define SLP_OP_H

#include <starling.h>

#include "alloc.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Compile a function once per instruction set and pick at load time, where the compiler can. */
#ifdef HAVE_TARGET_CLONES
#define SLP_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SLP_CLONES
#endif

/* The CUDA kernel of an operation: extern "C" in a .cu file, or absent from a build without CUDA.  In simulation kernels
 * do not run; it matters only which operations have one, and what memory it takes. */
#if defined HAVE_CUDA
#define SLP_CUDA(fn) fn
#define SLP_CUDA_SCRATCH(fn) fn
#elif defined SLP_SIMULATION
#define SLP_CUDA(fn) slp_simulated_kernel
#define SLP_CUDA_SCRATCH(fn) fn
struct slp_kernel;
enum sl_status slp_simulated_kernel(const struct slp_kernel *k);
#else
#define SLP_CUDA(fn) NULL
#define SLP_CUDA_SCRATCH(fn) NULL
#endif

#define SLP_MAX_ATTRS 112 /* bytes of an attribute structure */
#define SLP_MAX_OUTPUTS 4

struct sl_op;

/* ---- types: what is known before anything runs ------------------------------------------------------------------ */

struct slp_type {
	enum sl_dtype dtype;
	sl_shape shape;
};

/* A call whose result types are wanted.  infer may also put defaults into attrs. */
struct slp_infer {
	const struct sl_op *op;
	const char *at;
	void *attrs;
	int nin, nout;
	const struct slp_type *in;
	struct slp_type *out;
};

/* Rejects the call: records an error that names the operation, its arguments' types and the call site.
 * Returns status, so infer can end with  return slp_reject(c, SL_ESHAPE, "weight has %d axes, 4 needed", n); */
enum sl_status slp_reject(const struct slp_infer *c, enum sl_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- kernels: what runs on a worker ----------------------------------------------------------------------------- */

/* Elements in row-major order without gaps. */
struct slp_view {
	void *ptr;
	struct slp_type type;
};

struct slp_kernel {
	const struct sl_op *op;
	const void *attrs;
	int nin, nout;
	const struct slp_view *in;
	struct slp_view *out; /* may share memory with an input only where the operation allows to run in place */
	void *scratch;        /* op->scratch() bytes, aligned to 64, on the device that runs the kernel */
	void *stream;         /* cudaStream_t; NULL on a CPU */
	int threads;          /* of the team that runs the kernel */
};

/* Says why a kernel failed; returns status. */
enum sl_status slp_kernel_fail(const struct slp_kernel *k, enum sl_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Calls fn(arg, begin, end) on ranges that cover [0, n), on the threads of this worker's team.  Ranges begin at
 * multiples of grain, whatever the number of threads; a single range where n <= grain. */
void slp_parallel_for(int64_t n, int64_t grain, void (*fn)(void *arg, int64_t begin, int64_t end), void *arg);

/* Elements below which a memory-bound loop is not worth a second thread. */
#define SLP_GRAIN 65536

/* ---- gradients: nodes that go back through a call; nothing runs here -------------------------------------------- */

/* grad fills din[i], for each i with need[i], with a tensor made by the public operations (called with g->at), or with
 * one of dout itself where that is the gradient.
 * dout[i] is NULL where no gradient reaches output i (never all of them).  Of in[] and out[], only those that the
 * operation's `saves` names have values; the others have a shape and a dtype only. */
struct slp_grad {
	const struct sl_op *op;
	const char *at;
	const void *attrs;
	int nin, nout;
	sl_tensor *const *in, *const *out, *const *dout;
	sl_tensor **din;
	const bool *need;
};

/* ---- attributes ------------------------------------------------------------------------------------------------- */

enum slp_attr_kind { SLP_INT, SLP_INT64, SLP_DOUBLE, SLP_BOOL };

/* One field of an attribute structure.  Tables end with a NULL name. */
struct slp_attr {
	const char *name;
	enum slp_attr_kind kind;
	unsigned offset, count; /* count > 1: an array */
	const char *doc;
	bool value_only;        /* changes values but not the work (a learning rate): not in the footprint */
};
#define SLP_ATTR(type, field, kind, count, doc) {#field, kind, offsetof(type, field), count, doc, false}
#define SLP_ATTR_VALUE(type, field, kind, count, doc) {#field, kind, offsetof(type, field), count, doc, true}

/* ---- the operation ---------------------------------------------------------------------------------------------- */

#define SLP_IN(i) (1u << (i))
#define SLP_OUT(i) (1u << (16 + (i)))
#define SLP_DTYPE(d) (1u << (d))
#define SLP_FLOATS (SLP_DTYPE(SL_FLOAT32) | SLP_DTYPE(SL_FLOAT64))
#define SLP_ALL_DTYPES (SLP_FLOATS | SLP_DTYPE(SL_INT32) | SLP_DTYPE(SL_UINT8))

struct sl_op {
	const char *name;  /* as in messages, models, files */
	const char *doc;   /* one line */
	const char *args;  /* names of the inputs, separated by blanks; a last "..." : any number of them */
	int nin, nout;     /* nin -1: any number, at least one */
	const struct slp_attr *attr_table;
	size_t attrs_size;
	unsigned saves;    /* SLP_IN(i) | SLP_OUT(j): what grad reads the values of */
	unsigned mutates;  /* SLP_IN(i): inputs that are also written; with nin -1: every input i with i % period in mask */
	int period;        /* of mutates, with nin -1 */
	bool inplace;      /* output 0 may lie over input 0 (same type) */
	unsigned cpu_dtypes;  /* of input 0 (output 0, without inputs): those the fast CPU kernel takes; others: ref */
	unsigned cuda_dtypes; /* ... that the CUDA kernel takes; others cannot run there */
	enum sl_status (*infer)(struct slp_infer *c);
	double (*flops)(const struct slp_infer *c);
	double (*bytes)(const struct slp_infer *c);  /* NULL: all inputs and outputs once */
	enum sl_status (*grad)(struct slp_grad *g);  /* NULL: has no gradient */
	size_t (*scratch)(const struct slp_infer *c); /* NULL: none */
	enum sl_status (*ref)(const struct slp_kernel *k);  /* plain C, every dtype that infer lets pass; the measure */
	enum sl_status (*cpu)(const struct slp_kernel *k);  /* fast; NULL: ref */
	/* NULL, or: says what a call does beyond its operation's name, on one line. */
	void (*describe)(const void *attrs, char *text, size_t size);
	void (*hold)(const void *attrs, bool hold);         /* NULL, or: attrs refer to something that recorded calls keep alive */
	enum sl_status (*cuda)(const struct slp_kernel *k); /* queued on k->stream; NULL: runs on CPUs only */
};

/* All operations, in the order of codelets/ops.def; ends with NULL. */
extern const struct sl_op *const slp_ops[];
int slp_op_count(void);
const struct sl_op *slp_op_find(const char *name);

/* The colour of its family, 0xrrggbb. */
unsigned slp_op_colour(const struct sl_op *op);

/* Dtypes are those of input 0, or of output 0 without inputs. */
static inline bool slp_has_cuda(const struct slp_infer *c)
{
	const struct slp_type *t = c->nin ? &c->in[0] : &c->out[0];
	return c->op->cuda && c->op->cuda_dtypes & SLP_DTYPE(t->dtype);
}

/* ---- calling one (src/tensor/apply.c) --------------------------------------------------------------------------- */

/* Runs or records op.  in[i] NULL makes the whole call NULL (an earlier mistake), silently.  attrs is copied.
 * out gets op->nout new tensors that belong to the innermost scope.  Devices of the inputs must agree; an operation
 * without inputs runs on `device`. */
enum sl_status slp_apply(const char *at, const struct sl_op *op, const void *attrs, int nin, sl_tensor *const *in,
			 sl_device device, sl_tensor **out);
/* The same for one output, returning it. */
sl_tensor *slp_apply1(const char *at, const struct sl_op *op, const void *attrs, int nin, sl_tensor *const *in);
/* The same, over input 0; returns in[0]. */
sl_tensor *slp_apply_inplace(const char *at, const struct sl_op *op, const void *attrs, int nin, sl_tensor *const *in);
/* ---- mistakes in calls (src/runtime/error.c) --------------------------------------------------------------------- */

/* An error found before the call could be made; returns NULL. */
void *slp_call_fail(const char *at, const char *function, enum sl_status status, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Whether the argument, of that name, was given; NULL is an error unless a mistake before is why. */
bool slp_given(const char *at, const char *function, const char *name, const void *argument);

/* ---- common parts of kernels and rules (src/op_util.c) ---------------------------------------------------------- */

int64_t slp_size(const struct slp_view *v);
/* Element i as a number, for reference kernels.  Stored values are rounded to nearest for integers, saturated. */
double slp_get(const struct slp_view *v, int64_t i);
void slp_set(const struct slp_view *v, int64_t i, double value);
/* 0 <= *axis < ndim after counting negative ones from the end; false if outside. */
bool slp_axis(int *axis, int ndim);
/* NumPy's rule; false if a and b do not fit. */
bool slp_broadcast(sl_shape a, sl_shape b, sl_shape *out);
bool slp_is_float(enum sl_dtype dtype);
/* Whether a number can be an element of this type: any can be a float, rounded; integers are whole, and have limits. */
bool slp_can_hold(enum sl_dtype dtype, double value);
/* Common flops: one an element of output 0. */
double slp_flops_elementwise(const struct slp_infer *c);

/* ---- types and shapes (src/shape.c) ------------------------------------------------------------------------------ */

/* "float32 (2, 3)" */
const char *slp_type_string(const struct slp_type *type, char text[160]);
/* Whether a shape can be: dims not negative, sizes within memory. */
bool slp_shape_valid(sl_shape shape);

/* ---- linear algebra on a CPU team (codelets/common/gemm.c) ------------------------------------------------------------- */

/* C = alpha op(A) op(B) + beta C, row-major with leading dimensions, op(A) m×k, op(B) k×n; float32, on the team. */
enum sl_status slp_sgemm(const struct slp_kernel *k, bool ta, bool tb, int64_t m, int64_t n, int64_t kk, float alpha,
			 const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);

/* ---- random bits (src/runtime/random.c): Philox 4×32-10 --------------------------------------------------------- */

/* The stream of one operation: the engine's seed and the number of the random operation. */
struct slp_rng {
	uint64_t seed, stream;
};
struct slp_rng slp_rng_next(void);
/* In programs, streams are numbered within a run: this seed marks them, and each run gives them real ones. */
#define SLP_RNG_VIRTUAL UINT64_C(0x5354524c56495254)

/* In the attributes of reshape: a dim as the input has it; -1: one that is computed. */
#define SLP_DIM_KEEP (-2)

/* Of batch_norm's running statistics, where none is given. */
#define SLP_BATCH_NORM_MOMENTUM 0.9

#ifdef __cplusplus
}
#endif
#endif
