/* Custom operations: the program registers them, and they are called, recorded, traced, scheduled and simulated like
 * the library's operations; doc/own-operations.md builds one.  Programs include this header beside <starling.h>.
 *
 * Several threads call the functions of an operation at the same time; these must keep no state between calls. */
#ifndef STARLING_OWN_H
#define STARLING_OWN_H

#include <starling.h>

#pragma GCC system_header
#ifdef __cplusplus
extern "C" {
#endif

enum { SL_OP_MAX_INPUTS = 16, SL_OP_MAX_OUTPUTS = 4, SL_OP_MAX_ATTRS = 112 }; /* attributes: bytes */

typedef struct sl_op sl_op;

/* Elements in row-major order without gaps. */
struct sl_op_array {
	void *data; /* NULL in rules */
	enum sl_dtype dtype;
	sl_shape shape;
};

/* A call: a rule gets types only, a kernel also gets values. */
struct sl_op_call {
	void *attrs; /* the operation's structure; a rule may set defaults in it */
	int nin, nout;
	const struct sl_op_array *in;
	struct sl_op_array *out; /* a rule sets dtype and shape; a kernel writes to data */
	void *scratch;           /* the bytes that .scratch returned, aligned to 64; NULL in rules */
	void *stream;            /* a CUDA kernel's cudaStream_t: the kernel launches there, and does not wait */
	int threads;             /* number of threads of the CPU team */
	const void *inner;       /* for sl_op_fail */
};

/* The backward pass of a call: set din[i], for each i with need[i], to the gradient with respect to input i, computed
 * by operations on tensors.  dout[i] is NULL if no gradient reaches result i.  Only the elements of in and out that
 * .saves names have values. */
struct sl_op_gradient {
	const char *at;
	const void *attrs;
	int nin, nout;
	sl_tensor *const *in, *const *out, *const *dout;
	sl_tensor **din;
	const bool *need;
};

enum sl_op_attr_kind { SL_ATTR_INT, SL_ATTR_INT64, SL_ATTR_DOUBLE, SL_ATTR_BOOL };

/* A field of the structure of attributes.  Bytes that belong to no field are 0 in rules and kernels. */
struct sl_op_attr {
	const char *name;
	enum sl_op_attr_kind kind;
	size_t offset;
	int count; /* of elements of an array; 0: the field is no array */
	const char *doc;
};
/* clang-format off */
#define SL_OP_ATTR(type, field, kind) {#field, kind, offsetof(type, field), 0, 0}
/* clang-format on */

#define SL_SAVE_IN(i) (1u << (i))
#define SL_SAVE_OUT(i) (1u << (16 + (i)))
#define SL_OP_TYPE(dtype) (1u << (dtype))

/* The definition of an operation; it is copied.
 *
 * Elementwise operations have one result and one or two inputs, all of one shape and data type.  Plans on CPUs may join
 * such a call with its neighbours in one pass over memory.  The CPU kernel then gets parts of the operands, as arrays
 * of one axis, and the result may share the memory of an input.  Such a kernel uses no scratch memory. */
struct sl_op_def {
	const char *name; /* letters, digits and _; as in messages, performance models and programs' text */
	const char *doc;  /* one line */
	const char *args; /* names of the inputs, separated by blanks */
	int nin, nin_max; /* smallest and largest number of inputs; nin_max 0: nin */
	int nout;         /* number of results; 0: 1 */
	unsigned types;   /* SL_OP_TYPE(SL_FLOAT32) | ...: types of input 0 and all floats; 0: float32 */
	const struct sl_op_attr *attrs; /* ends with a NULL name; NULL: none */
	size_t attrs_size;              /* of the structure */
	unsigned saves;                 /* SL_SAVE_IN(i) | SL_SAVE_OUT(j): the values that gradient reads */
	bool inplace;                   /* a kernel may be given the same memory for result 0 as for input 0 */
	bool elementwise; /* element i of the result follows from elements i of the inputs alone: see above */
	enum sl_status (*rule)(const struct sl_op_call *c);         /* NULL: inputs and results have one type */
	enum sl_status (*cpu)(const struct sl_op_call *c);          /* must be given */
	enum sl_status (*cuda)(const struct sl_op_call *c);         /* on a GPU; NULL: runs on CPUs only */
	enum sl_status (*gradient)(const struct sl_op_gradient *g); /* NULL: there is none */
	double (*flops)(const struct sl_op_call *c);   /* of a call; NULL: one for each element of result 0 */
	size_t (*scratch)(const struct sl_op_call *c); /* bytes; NULL: none */
};

SL_API const sl_op *sl_op_register_at(const char *at, struct sl_op_def def);
#define sl_op_register(...) sl_op_register_at(SL_HERE, (struct sl_op_def){__VA_ARGS__})
SL_API const sl_op *sl_op_find(const char *name);

struct sl_op_opts {
	const void *attrs; /* NULL: all 0 */
	sl_tensor **out;   /* gets all results; NULL: only the first is returned */
	sl_device device;  /* for a call without inputs */
};
SL_API sl_tensor *sl_op_apply_at(const char *at, const sl_op *op, sl_tensor *const *in, int nin,
                                 struct sl_op_opts opts);
#define sl_op_apply(op, in, nin, ...) sl_op_apply_at(SL_HERE, op, in, nin, (struct sl_op_opts){__VA_ARGS__})

SL_API enum sl_status sl_op_fail(const struct sl_op_call *c, enum sl_status status, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
SL_API void sl_parallel_for(int64_t n, int64_t grain, void (*range)(void *context, int64_t begin, int64_t end),
                            void *context);

#ifdef __cplusplus
}
#endif
#endif
