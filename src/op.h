/* The contract of operations.  codelets/ use nothing else of the engine, neither tape nor tasks.
 *
 * An operation is one const struct sl_op at the foot of its file.  The engine makes from it the StarPU codelet, the
 * performance model, the recorded node, the row in the tests and the entry in the manual. */
#ifndef SLP_OP_H
#define SLP_OP_H

#include <limits.h>
#include <stddef.h>
#include <starling/tensor.h>

#include "alloc.h"
#include "dtype.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Compile a function once per instruction set and pick at load time, where the compiler can. */
#ifdef SLP_TARGETS
#define SLP_CLONES __attribute__((target_clones(SLP_TARGETS)))
#else
#define SLP_CLONES
#endif

/* The CUDA kernel of an operation: extern "C" in a .cu file, or absent from a build without CUDA.  In simulation
 * kernels do not run; only their existence and memory matter. */
#if defined HAVE_CUDA
#define SLP_CUDA(fn) fn
#define SLP_CUDA_SCRATCH(fn) fn
#define SLP_CUDA_FORGET(fn) fn
#elif defined SLP_SIMULATION
#define SLP_CUDA(fn) slp_simulated_kernel
#define SLP_CUDA_SCRATCH(fn) fn
#define SLP_CUDA_FORGET(fn) NULL
struct slp_kernel;
enum sl_status slp_simulated_kernel(const struct slp_kernel *k);
#else
#define SLP_CUDA(fn) NULL
#define SLP_CUDA_SCRATCH(fn) NULL
#define SLP_CUDA_FORGET(fn) NULL
#endif

/* An operation of a list, ops.def, by name: its descriptor, by whose address it is recognised, and its CUDA kernel.
 * op_list/ declares them by families: a file includes those of the operations that it names. */
#ifdef __cplusplus
#define SLP_EXTERN_ extern "C"
#else
#define SLP_EXTERN_ extern
#endif
#define SLP_DECLARE_OP(name)                                                                                           \
	SLP_EXTERN_ const struct sl_op slp_op_##name;                                                                  \
	SLP_EXTERN_ enum sl_status slp_cuda_##name(const struct slp_kernel *k);

#define SLP_MAX_ATTRS 112 /* bytes of an attribute structure */
#define SLP_MAX_OUTPUTS 16

struct sl_op;

/* ---- types: known before anything runs --------------------------------------------------------------------------- */

struct slp_type {
	enum sl_dtype dtype;
	sl_shape shape;
};

bool slp_type_equal(const struct slp_type *a, const struct slp_type *b);

/* A call whose result types are computed.  infer may also set defaults in attrs. */
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

/* ---- kernels: run on workers ------------------------------------------------------------------------------------- */

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

/* CUDA libraries' handles of this worker, on the kernel's stream: a cublasHandle_t, a cudnnHandle_t;
 * NULL if one could not be made, and slp_kernel_fail has been called (src/runtime/device/gpu.c). */
void *slp_cublas(const struct slp_kernel *k);
void *slp_cudnn(const struct slp_kernel *k);

/* Reports the failure of a kernel; returns status. */
enum sl_status slp_kernel_fail(const struct slp_kernel *k, enum sl_status status, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* The first failure on the threads of a team, with its message; all 0: none. */
struct slp_first_failure {
	enum sl_status status;
	int noted;
	char text[256];
};
/* On the thread that may have failed; op: the operation, if it is not the kernel's. */
void slp_note_failure(struct slp_first_failure *f, enum sl_status status, const struct sl_op *op);
/* Once all threads are done: the kernel's status, and why it failed. */
enum sl_status slp_noted_failure(const struct slp_kernel *k, const struct slp_first_failure *f);

/* Calls fn(arg, begin, end) on ranges that cover [0, n), on the threads of this worker's team.  Ranges begin at
 * multiples of grain, whatever the number of threads; a single range where n <= grain.  A thread gets several, and takes
 * over those of a slower one. */
void slp_parallel_for(int64_t n, int64_t grain, void (*fn)(void *arg, int64_t begin, int64_t end), void *arg);
/* The same with no more ranges than threads: where each costs something, whatever its length. */
void slp_parallel_ranges(int64_t n, int64_t grain, void (*fn)(void *arg, int64_t begin, int64_t end), void *arg);

/* Elements below which a memory-bound loop is not worth a second thread. */
#define SLP_GRAIN 65536

/* ---- gradients: nodes that go back through a call; nothing runs here -------------------------------------------- */

/* grad sets din[i], for each i with need[i], to a tensor computed by the public operations (called with g->at), or to
 * an element of dout if that is the gradient.  dout[i] is NULL if no gradient reaches output i (never for all).  Of
 * in[] and out[], only those that the operation's `saves` names have values; the others have only shape and dtype. */
struct slp_grad {
	const struct sl_op *op;
	const char *at;
	const void *attrs;
	int nin, nout;
	sl_tensor *const *in, *const *out, *const *dout;
	sl_tensor **din;
	const bool *need;
	bool again; /* the gradients themselves must have gradients (sl_backward, .create_graph) */
};

/* The grad of comparisons and similar operations: their results are constants for a backward pass. */
enum sl_status slp_constant(struct slp_grad *g);

/* ---- attributes ------------------------------------------------------------------------------------------------- */

enum slp_attr_kind { SLP_INT, SLP_INT64, SLP_DOUBLE, SLP_BOOL };

/* One field of an attribute structure.  Tables end with a NULL name. */
struct slp_attr {
	const char *name;
	enum slp_attr_kind kind;
	unsigned offset, count; /* count > 1: an array */
	const char *doc;
	bool value_only; /* changes values but not the work (a learning rate): not in the footprint */
	bool defaulted;  /* a double: 0 is one that was not given, -0.0 a 0 that was (options.h) */
};
/* clang-format off */
#define SLP_ATTR(type, field, kind, count, doc) {#field, kind, offsetof(type, field), count, doc, false, false}
#define SLP_ATTR_VALUE(type, field, kind, count, doc) {#field, kind, offsetof(type, field), count, doc, true, false}
#define SLP_ATTR_DEFAULTED(type, field, doc) {#field, SLP_DOUBLE, offsetof(type, field), 1, doc, true, true}
/* clang-format on */

/* Bytes of an element; element i as a number. */
size_t slp_attr_size(enum slp_attr_kind kind);
double slp_attr_value(const struct slp_attr *a, const void *attrs, unsigned i);

/* ---- the operation ---------------------------------------------------------------------------------------------- */

#define SLP_IN(i) (1u << (i))
#define SLP_OUT(i) (1u << (16 + (i)))

/* Sets of data types. */
#define SLP_DTYPE(d) (1u << (d))
#define SLP_F32 SLP_DTYPE(SL_FLOAT32)
#define SLP_F64 SLP_DTYPE(SL_FLOAT64)
#define SLP_FLOATS (SLP_F32 | SLP_F64)
#define SLP_HALVES (SLP_DTYPE(SL_BFLOAT16) | SLP_DTYPE(SL_FLOAT16))
#define SLP_I32 SLP_DTYPE(SL_INT32)
#define SLP_I64 SLP_DTYPE(SL_INT64)
#define SLP_NARROW (SLP_FLOATS | SLP_I32 | SLP_DTYPE(SL_UINT8)) /* types that double precision represents exactly */
#define SLP_NUMBERS (SLP_NARROW | SLP_I64)
#define SLP_TRUTHS (SLP_NUMBERS | SLP_DTYPE(SL_BOOL)) /* types of conditions */
/* Further integers that double precision represents exactly, which CPUs compute with; uint64 is only moved and converted. */
#define SLP_SMALL (SLP_DTYPE(SL_INT8) | SLP_DTYPE(SL_INT16) | SLP_DTYPE(SL_UINT16) | SLP_DTYPE(SL_UINT32))
#define SLP_ANY ((1u << SL_DTYPE_COUNT) - 2u)

typedef enum sl_status slp_kernel_fn(const struct slp_kernel *k);

/* Kernels, and the data types that they take: input 0 (output 0, without inputs) and all other floating-point operands
 * have a type in `types`.  infer decides about other integers. */
struct slp_row {
	unsigned types;
	slp_kernel_fn *cpu, *cuda; /* NULL: runs on the other kind of device only */
	bool (*available)(void);   /* NULL, or: whether this processor supports the CPU kernel; called often */
};

/* The rows of an operation: the first one that takes a call's types is its kernel.  Macros make those of most
 * operations: SLP_FLOAT_ROWS(clip) are NAME_cpu for float32, the reference NAME_ref for float64, slp_cuda_NAME for
 * both; SLP_ANY_ROWS(name) are NAME_cpu and slp_cuda_NAME for elements of all types.  Half types need no row: without
 * one they are computed in float32 (slp_kernel_for).  CPUs do that for most operations; CUDA kernels take half types
 * directly (SLP_HALF_ROWS), except with SLP_WIDE_ROWS(name), which are otherwise SLP_FLOAT_ROWS. */
#define SLP_ROWS(...) ((const struct slp_row[]){__VA_ARGS__, {0, NULL, NULL, NULL}})
/* clang-format off */
#define SLP_ROW(types, cpu, cuda) {types, cpu, SLP_CUDA(cuda), NULL}
#define SLP_CPU_ROW(types, cpu, available) {types, cpu, NULL, available}
/* clang-format on */
#define SLP_HALF_ROWS(cuda) SLP_ROW(SLP_DTYPE(SL_BFLOAT16), NULL, cuda), SLP_ROW(SLP_DTYPE(SL_FLOAT16), NULL, cuda)
#define SLP_FLOAT_ROWS(name) SLP_FLOAT_ROWS_OF(name##_ref, name##_cpu, slp_cuda_##name)
#define SLP_FLOAT_ROWS_OF(ref, cpu, cuda)                                                                              \
	SLP_ROWS(SLP_ROW(SLP_F32, cpu, cuda), SLP_ROW(SLP_F64, ref, cuda), SLP_HALF_ROWS(cuda))
#define SLP_WIDE_ROWS(name)                                                                                            \
	SLP_ROWS(SLP_ROW(SLP_F32, name##_cpu, slp_cuda_##name), SLP_ROW(SLP_F64, name##_ref, slp_cuda_##name))
/* On CPUs only. */
#define SLP_CPU_ROWS(ref, cpu) SLP_ROWS(SLP_CPU_ROW(SLP_F32, cpu, NULL), SLP_CPU_ROW(SLP_F64, ref, NULL))
#define SLP_ROWS_AND(types, name)                                                                                      \
	SLP_ROWS(SLP_ROW(SLP_F32, name##_cpu, slp_cuda_##name), SLP_ROW(types, name##_ref, slp_cuda_##name),           \
	         SLP_HALF_ROWS(slp_cuda_##name), SLP_CPU_ROW(SLP_SMALL, name##_ref, NULL))
#define SLP_NARROW_ROWS(name) SLP_ROWS_AND(SLP_NARROW, name)
#define SLP_NUMBER_ROWS(name) SLP_ROWS_AND(SLP_NUMBERS, name) /* references and CUDA kernels exact also for int64 */
#define SLP_TRUTH_ROWS(name) SLP_ROWS_AND(SLP_TRUTHS, name)
#define SLP_ANY_ROWS(name) SLP_ROWS(SLP_ROW(SLP_ANY, name##_cpu, slp_cuda_##name))

/* The number of inputs: SLP_NIN(2), or smallest and largest number.  SLP_MANY: any number. */
#define SLP_MANY INT_MAX
#define SLP_NIN(count) .nin_min = (count), .nin_max = (count)

/* The conversion of floating-point inputs by sl_autocast (starling/autograd.h lists the operations). */
enum slp_cast_policy {
	SLP_CAST_NONE,    /* computes in the type that it gets */
	SLP_CAST_LOWER,   /* in the half type: products */
	SLP_CAST_FLOAT32, /* in float32: where half types lose too much */
	SLP_CAST_WIDEST,  /* in the widest type among its inputs */
};

struct sl_op {
	const char *name; /* as in messages, models, files */
	const char *doc;  /* one line */
	const char *args; /* names of the inputs, separated by blanks, optional ones last; a last "...": any number */
	int nin_min, nin_max, nout;
	const struct slp_attr *attr_table;
	size_t attrs_size;
	unsigned saves;   /* SLP_IN(i) | SLP_OUT(j): the values that grad reads */
	unsigned mutates; /* SLP_IN(i): inputs that are also written */
	int period;       /* where inputs come in turns: saves and mutates name the first of them, SLP_IN(i % period) */
	int inplace; /* outputs, from 0 on, that may share the memory of the inputs with the same number (same types) */
	bool overwrites; /* in place, it does not read input 0: an error that spoilt it is cleared */
	bool elementwise; /* an element of output 0 depends on the inputs' elements at its place alone, in whatever order they lie */
	bool by_parts; /* a program's, elementwise: its CPU kernel may get parts of the operands, as arrays of one axis */
	bool view;     /* output 0 has the elements of input 0 in their order: plans need no copy */
	bool declines; /* its CUDA kernels of half types may return SL_EUNSUPPORTED, silent: computed in float32 then */
	bool aligned;  /* its CUDA kernels of half types depend on the alignment of operands to 16 bytes */
	bool no_graph; /* its CUDA kernel may make calls that graphs cannot record: wait, allocate, read main memory */
	enum slp_cast_policy autocast;
	const struct slp_row *rows; /* SLP_ROWS; kernels queue on k->stream where that is a GPU's */
	enum sl_status (*infer)(struct slp_infer *c);
	double (*flops)(const struct slp_infer *c);
	double (*bytes)(const struct slp_infer *c); /* NULL: all inputs and outputs once */
	enum sl_status (*grad)(struct slp_grad *g); /* NULL: has no gradient; slp_constant: its result is a constant */
	/* NULL, or: computes the results again by operations whose gradients have gradients, because those that grad
	 * calls have none.  out: in the innermost scope; NULL for by-products.  Inputs that `saves` does not name may be
	 * zeros.  False with an error. */
	bool (*again)(const struct slp_grad *g, sl_tensor **out);
	size_t (*scratch)(const struct slp_infer *c);      /* NULL: none */
	enum sl_status (*ref)(const struct slp_kernel *k); /* plain C, every dtype that infer lets pass; the measure */
	/* NULL, or: describes a call beyond its operation's name, on one line. */
	void (*describe)(const void *attrs, char *text, size_t size);
	/* NULL, or: attrs refer to something that recorded calls keep alive. */
	void (*hold)(const void *attrs, bool hold);
	/* NULL, or: frees the state that CUDA kernels keep for the calling worker, before it destroys its libraries'
	 * handles. */
	void (*forget)(void);
};

/* All operations, in the order of codelets/ops.def, followed by those that programs registered; ends with NULL. */
enum { SLP_MAX_OPS = 511 };
extern const struct sl_op *slp_ops[SLP_MAX_OPS + 1];
int slp_op_count(void);
int slp_op_number(const struct sl_op *op);   /* its place among them */
bool slp_ops_append(const struct sl_op *op); /* by one thread at a time; false: too many */
const struct sl_op *slp_op_find(const char *name);

/* Whether it takes n inputs; the number of its inputs as text: "1 input", "2 to 3 inputs". */
bool slp_count_fits(const struct sl_op *op, int nin);
const char *slp_count_text(const struct sl_op *op, char text[64]);

/* The colour of its family, 0xrrggbb. */
unsigned slp_op_colour(const struct sl_op *op);
const char *slp_op_family(const struct sl_op *op); /* "CONVOLUTION" */

/* ---- choosing a kernel (src/op_kernel.c) ------------------------------------------------------------------------ */

/* The types that rows compare: that of the first operand, and those of all floating-point operands, as sets. */
struct slp_types {
	unsigned first, floats;
};
struct slp_types slp_types_of(int nin, const struct slp_type *in, int nout, const struct slp_type *out);
#define SLP_ALL_OF(dtype) ((struct slp_types){SLP_DTYPE(dtype), SLP_DTYPE(dtype)})

/* The kernel for a call.  promote: no row takes its half types, and this one computes in float32 for results that must
 * be rounded (slp_promoted).  kernel NULL: none. */
struct slp_choice {
	slp_kernel_fn *kernel;
	bool promote;
};
struct slp_choice slp_kernel_for(const struct sl_op *op, struct slp_types types, enum sl_device_kind device);
/* The one that promotes, even if a row takes the half types. */
struct slp_choice slp_promoted_kernel_for(const struct sl_op *op, struct slp_types types, enum sl_device_kind device);
/* Whether there is one for a call; device SL_DEVICE_AUTO: on some device. */
bool slp_has_kernel(const struct slp_infer *c, enum sl_device_kind device);
/* The types that some row takes, for people: "float32, float64 or int32".  Without halves that are promoted. */
const char *slp_row_types(const struct sl_op *op, char text[160]);

/* The type that a promoted operand has: float32 for a half type. */
static inline enum sl_dtype slp_promoted(enum sl_dtype dtype)
{
	return slp_is_half(dtype) ? SL_FLOAT32 : dtype;
}

/* The elements of one view as those of another, of as many, on the device of the kernel k
 * (codelets/common/convert.c). */
typedef enum sl_status slp_convert_fn(const struct slp_kernel *k, const struct slp_view *from,
                                      const struct slp_view *to);
slp_convert_fn slp_cpu_convert, slp_cuda_convert;

/* ---- calling one (src/tensor/apply.c) --------------------------------------------------------------------------- */

/* Runs or records op.  in[i] NULL makes the whole call NULL (an earlier mistake), silently.  attrs is copied.
 * out gets op->nout new tensors that belong to the innermost scope.  Devices of the inputs must agree; an operation
 * without inputs runs on `device`. */
enum sl_status slp_apply(const char *at, const struct sl_op *op, const void *attrs, int nin, sl_tensor *const *in,
                         sl_device device, sl_tensor **out);
/* The same, returning the first output: the others are of no use to the caller. */
sl_tensor *slp_apply1(const char *at, const struct sl_op *op, const void *attrs, int nin, sl_tensor *const *in);

/* Begins a public function that is made of operations, instead of SLP_CALL: its intermediate tensors are released when
 * it returns, even if its caller has no scope.  Its results, which may be arguments, are returned through SLP_RETURN:
 * they go to the caller's scope, or to the caller. */
#define SLP_FUNCTION(function, at)                                                                                     \
	SLP_CALL(function, at);                                                                                        \
	__attribute__((cleanup(sl_scope_close))) sl_scope slp_inside_;                                                 \
	sl_scope_open(&slp_inside_)
#define SLP_RETURN(y) slp_scope_give(&slp_inside_, y)
sl_tensor *slp_scope_give(sl_scope *inside, sl_tensor *y); /* NULL: y was, or there is no memory (recorded) */
bool slp_scope_is_open(void); /* in this thread: without one, new tensors are the caller's */
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
/* The same, but integers lose the fraction, as in C. */
void slp_set_truncated(const struct slp_view *v, int64_t i, double value);
/* 0 <= *axis < ndim after counting negative ones from the end; false if outside. */
bool slp_axis(int *axis, int ndim);
/* NumPy's rule; false if a and b do not fit. */
bool slp_broadcast(sl_shape a, sl_shape b, sl_shape *out);
bool slp_is_float(enum sl_dtype dtype);
/* Whether a number can be an element of this type: any can be a float, rounded; integers are whole, and have limits. */
bool slp_can_hold(enum sl_dtype dtype, double value);
/* The tolerance between two ways to compute the same, relative to the result: `single` in float32, the same number of
 * steps of the type in float64, at least one step of a half type, 0 for integers. */
double slp_tolerance(enum sl_dtype dtype, double single);
/* The scale of an array for comparisons: the root mean square of its finite elements. */
double slp_rms(const struct slp_view *v);
/* Whether a number is within a tolerance of the expected one: relative to that, or to its array's root mean square. */
bool slp_is_close(double got, double expected, double tolerance, double rms);
/* Common flops: one an element of output 0. */
double slp_flops_elementwise(const struct slp_infer *c);

/* ---- types and shapes (src/shape.c) ------------------------------------------------------------------------------ */

/* "float32 (2, 3)" */
const char *slp_type_string(const struct slp_type *type, char text[160]);
/* Whether a shape can be: dims not negative, sizes within memory. */
bool slp_shape_valid(sl_shape shape);

/* ---- linear algebra on a CPU team (codelets/common/gemm.c) ------------------------------------------------------- */

/* C = alpha op(A) op(B) + beta C, row-major with leading dimensions, op(A) m×k, op(B) k×n; float32, on the team. */
enum sl_status slp_sgemm(const struct slp_kernel *k, bool ta, bool tb, int64_t m, int64_t n, int64_t kk, float alpha,
                         const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);

/* ---- random bits (src/runtime/random.c): Philox 4×32-10 --------------------------------------------------------- */

/* The stream of one operation: the engine's seed and the number of the random operation. */
struct slp_rng {
	uint64_t seed, stream;
};
struct slp_rng slp_rng_next(void);
struct slp_rng slp_rng_next_apart(void); /* each of several processes draws another one */
/* In programs, streams are numbered within a run: this seed marks them, and each run replaces them by real ones. */
#define SLP_RNG_VIRTUAL UINT64_C(0x5354524c56495254)

/* In the attributes of reshape: a dim as the input has it; -1: one that is computed. */
#define SLP_DIM_KEEP (-2)

/* Of batch_norm's running statistics, where none is given. */
#define SLP_BATCH_NORM_MOMENTUM 0.9

#ifdef __cplusplus
}
#endif
#endif
