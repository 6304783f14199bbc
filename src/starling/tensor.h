/* Tensors: creating, inspecting, reading and writing them, scopes.
 *
 * A function that returns a new tensor gives its caller one reference.  The innermost SL_SCOPE of the thread takes the
 * reference over and releases it at its end; outside of all scopes, call sl_release.  Call sl_retain for a tensor that
 * must live longer.  Arguments still belong to the caller, who may release them at once: tasks in flight keep the
 * values that they need.
 *
 * Errors of all functions on tensors: SL_ESTATE, the tensor lost its values in sl_shutdown, or is a symbol (graph.h)
 * and values are needed; SL_EDEVICE, the .device of a new tensor does not exist.  base.h explains errors. */
#ifndef STARLING_TENSOR_H
#define STARLING_TENSOR_H

#include <starling/base.h>

#pragma GCC system_header
#ifdef __cplusplus
extern "C" {
#endif

/* The C types of elements of the 16-bit floats.  bfloat16 is the upper half of a float32; float16 is IEEE 754's
 * binary16.  sl_cast converts tensors of these types. */
typedef struct sl_bfloat16 {
	uint16_t bits;
} sl_bfloat16;
typedef struct sl_float16 {
	uint16_t bits;
} sl_float16;

/* The list of data types:
 *
 *     X(symbol, name, type, kind, compute, low, high, NumPy, safetensors, MXNet, ONNX)
 *
 * type is the C type of a stored element, kind is FLOAT, INT or BOOL, compute is the C type that kernels compute in,
 * low and high are the smallest and largest finite number; then the names in files: NumPy's letters ("" if it has
 * none), safetensors' name, MXNet's and ONNX's number. */
/* clang-format off */
#define SL_DTYPE_LIST(X)                                                                                               \
	X(SL_FLOAT32, "float32", float, FLOAT, float, -0x1.fffffep127, 0x1.fffffep127, "f4", "F32", 0, 1)              \
	X(SL_FLOAT64, "float64", double, FLOAT, double, -0x1.fffffffffffffp1023, 0x1.fffffffffffffp1023, "f8", "F64", 1, 11) \
	X(SL_INT32, "int32", int32_t, INT, double, -2147483648.0, 2147483647.0, "i4", "I32", 4, 6)                     \
	X(SL_UINT8, "uint8", uint8_t, INT, double, 0.0, 255.0, "u1", "U8", 3, 2)                                       \
	X(SL_BFLOAT16, "bfloat16", sl_bfloat16, FLOAT, float, -0x1.fep127, 0x1.fep127, "", "BF16", 12, 16)             \
	X(SL_FLOAT16, "float16", sl_float16, FLOAT, float, -65504.0, 65504.0, "f2", "F16", 2, 10)                      \
	X(SL_INT64, "int64", int64_t, INT, double, -0x1p63, 0x1p63, "i8", "I64", 6, 7)                                 \
	X(SL_BOOL, "bool", bool, BOOL, double, 0.0, 1.0, "b1", "BOOL", 7, 9)                                           \
	X(SL_INT8, "int8", int8_t, INT, double, -128.0, 127.0, "i1", "I8", 5, 3)                                       \
	X(SL_INT16, "int16", int16_t, INT, double, -32768.0, 32767.0, "i2", "I16", 8, 5)                               \
	X(SL_UINT16, "uint16", uint16_t, INT, double, 0.0, 65535.0, "u2", "U16", 9, 4)                                 \
	X(SL_UINT32, "uint32", uint32_t, INT, double, 0.0, 4294967295.0, "u4", "U32", 10, 12)                          \
	X(SL_UINT64, "uint64", uint64_t, INT, double, 0.0, 0x1p64, "u8", "U64", 11, 13)
/* clang-format on */

/* SL_DTYPE_DEFAULT, the value in zeroed options, means float32 for a new tensor; other functions document its meaning.
 */
enum sl_dtype {
	SL_DTYPE_DEFAULT,
#define X(symbol, ...) symbol,
	SL_DTYPE_LIST(X)
#undef X
	        SL_DTYPE_COUNT
};

#define SL_MAX_NDIM 8

/* The shape of a tensor; ndim 0 is a scalar. */
typedef struct sl_shape {
	int ndim;
	int64_t dim[SL_MAX_NDIM];
} sl_shape;

#define SL_COUNT_(type, ...) ((int)(sizeof((const type[]){__VA_ARGS__}) / sizeof(type)))
#define SL_SHAPE(...) ((sl_shape){SL_COUNT_(int64_t, __VA_ARGS__), {__VA_ARGS__}})
#define SL_SCALAR ((sl_shape){0, {0}})

typedef struct sl_tensor sl_tensor;

/* Options of the functions that create tensors. */
struct sl_make {
	enum sl_dtype dtype;
	sl_device device;
};
#define SL_MAKE_(...) ((struct sl_make){__VA_ARGS__})

SL_API size_t sl_dtype_size(enum sl_dtype dtype);
SL_API const char *sl_dtype_name(enum sl_dtype dtype);
SL_API enum sl_dtype sl_dtype_named(const char *name);
SL_API int64_t sl_shape_size(sl_shape shape);
SL_API bool sl_shape_equal(sl_shape a, sl_shape b);
SL_API const char *sl_shape_string(sl_shape shape, char text[128]);

/* ---- creating: sl_zeros(SL_SHAPE(2, 3)), sl_zeros(SL_SHAPE(2, 3), .dtype = SL_INT32) ---------------------------- */

SL_API sl_tensor *sl_zeros_at(const char *at, sl_shape shape, struct sl_make make);
#define sl_zeros(shape, ...) sl_zeros_at(SL_HERE, shape, SL_MAKE_(__VA_ARGS__))
SL_API sl_tensor *sl_ones_at(const char *at, sl_shape shape, struct sl_make make);
#define sl_ones(shape, ...) sl_ones_at(SL_HERE, shape, SL_MAKE_(__VA_ARGS__))
SL_API sl_tensor *sl_full_at(const char *at, sl_shape shape, double value, struct sl_make make);
#define sl_full(shape, value, ...) sl_full_at(SL_HERE, shape, value, SL_MAKE_(__VA_ARGS__))
SL_API sl_tensor *sl_arange_at(const char *at, double start, double stop, double step, struct sl_make make);
#define sl_arange(start, stop, step, ...) sl_arange_at(SL_HERE, start, stop, step, SL_MAKE_(__VA_ARGS__))
SL_API sl_tensor *sl_uniform_at(const char *at, sl_shape shape, double low, double high, struct sl_make make);
#define sl_uniform(shape, low, high, ...) sl_uniform_at(SL_HERE, shape, low, high, SL_MAKE_(__VA_ARGS__))
SL_API sl_tensor *sl_normal_at(const char *at, sl_shape shape, double mean, double sigma, struct sl_make make);
#define sl_normal(shape, mean, sigma, ...) sl_normal_at(SL_HERE, shape, mean, sigma, SL_MAKE_(__VA_ARGS__))
SL_API sl_tensor *sl_from_at(const char *at, const void *data, sl_shape shape, struct sl_make make);
#define sl_from(data, shape, ...) sl_from_at(SL_HERE, data, shape, SL_MAKE_(__VA_ARGS__))
SL_API sl_tensor *sl_adopt_at(const char *at, void *data, sl_shape shape,
                              void (*SL_OPTIONAL release)(void *data, void *SL_OPTIONAL arg), void *SL_OPTIONAL arg,
                              struct sl_make make);
#define sl_adopt(data, shape, release, arg, ...) sl_adopt_at(SL_HERE, data, shape, release, arg, SL_MAKE_(__VA_ARGS__))

/* ---- inspecting (never waits) ----------------------------------------------------------------------------------- */

SL_API sl_shape sl_tensor_shape(const sl_tensor *t);
SL_API int64_t sl_tensor_size(const sl_tensor *t);
SL_API size_t sl_tensor_bytes(const sl_tensor *t);
SL_API enum sl_dtype sl_tensor_dtype(const sl_tensor *t);
SL_API sl_device sl_tensor_device(const sl_tensor *t);

/* ---- values (waits for them) ------------------------------------------------------------------------------------ */

SL_API enum sl_status sl_wait_at(const char *at, sl_tensor *t);
#define sl_wait(t) sl_wait_at(SL_HERE, t)
SL_API bool sl_poll_at(const char *at, sl_tensor *SL_OPTIONAL t, double seconds);
#define sl_poll(t, seconds) sl_poll_at(SL_HERE, t, seconds)
SL_API enum sl_status sl_read_at(const char *at, sl_tensor *t, void *data, size_t bytes);
#define sl_read(t, data, bytes) sl_read_at(SL_HERE, t, data, bytes)
SL_API enum sl_status sl_write_at(const char *at, sl_tensor *t, const void *data, size_t bytes);
#define sl_write(t, data, bytes) sl_write_at(SL_HERE, t, data, bytes)
SL_API const void *sl_values_at(const char *at, sl_tensor *t);
#define sl_values(t) sl_values_at(SL_HERE, t)
SL_API void sl_values_end(sl_tensor *SL_OPTIONAL t);
SL_API double sl_item_at(const char *at, sl_tensor *t);
#define sl_item(t) sl_item_at(SL_HERE, t)
SL_API enum sl_status sl_print_at(const char *at, sl_tensor *t);
#define sl_print(t) sl_print_at(SL_HERE, t)
SL_API enum sl_status sl_fprint_at(const char *at, FILE *file, sl_tensor *t);
#define sl_fprint(file, t) sl_fprint_at(SL_HERE, file, t)

/* ---- how they were computed ------------------------------------------------------------------------------------- */

SL_API enum sl_status sl_explain_at(const char *at, FILE *file, sl_tensor *t);
#define sl_explain(t) sl_explain_at(SL_HERE, stdout, t)
#define sl_fexplain(file, t) sl_explain_at(SL_HERE, file, t)

/* ---- copies and views ------------------------------------------------------------------------------------------- */

SL_API sl_tensor *sl_copy_to_at(const char *at, sl_tensor *t, sl_device device);
#define sl_copy_to(t, device) sl_copy_to_at(SL_HERE, t, device)
SL_API sl_tensor *sl_place_at(const char *at, sl_tensor *t, sl_device device);
#define sl_place(t, device) sl_place_at(SL_HERE, t, device)
SL_API sl_tensor *sl_clone_at(const char *at, sl_tensor *t);
#define sl_clone(t) sl_clone_at(SL_HERE, t)
SL_API sl_tensor *sl_detach_at(const char *at, sl_tensor *t);
#define sl_detach(t) sl_detach_at(SL_HERE, t)
SL_API sl_tensor *sl_rows_at(const char *at, sl_tensor *t, int64_t begin, int64_t end);
#define sl_rows(t, begin, end) sl_rows_at(SL_HERE, t, begin, end)
SL_API sl_tensor *sl_reshape_at(const char *at, sl_tensor *t, sl_shape shape);
#define sl_reshape(t, shape) sl_reshape_at(SL_HERE, t, shape)
SL_API sl_tensor *sl_flatten_at(const char *at, sl_tensor *t);
#define sl_flatten(t) sl_flatten_at(SL_HERE, t)

/* ---- lifetime --------------------------------------------------------------------------------------------------- */

SL_API sl_tensor *sl_retain(sl_tensor *SL_OPTIONAL t);
SL_API void sl_release(sl_tensor *SL_OPTIONAL t);

typedef struct sl_scope {
	struct sl_scope *outer;
	size_t mark; /* number of tensors that outer scopes hold */
	int open;
} sl_scope;

SL_API void sl_scope_open(sl_scope *scope);
SL_API void sl_scope_close(sl_scope *scope);

/* SL_SCOPE { ... }: tensors made in the block are released at its end, however control leaves it.  Like SL_RECORD it is
 * a loop that runs once: break and continue leave the block, not a loop around it. */
#define SL_SCOPE                                                                                                       \
	for (sl_scope sl_scope_ __attribute__((cleanup(sl_scope_close))) = {NULL, 0, 0},                               \
	                        *sl_scope_once_ = (sl_scope_open(&sl_scope_), &sl_scope_);                             \
	     sl_scope_once_; sl_scope_once_ = NULL)

#ifdef __cplusplus
}
#endif
#endif
