/* Types of elements as files know them, more than tensors have: those are converted while reading. */
#ifndef SLP_ELEMENTS_H
#define SLP_ELEMENTS_H

#include "io/file.h"

/* X(NAME, C type that is read, dtype of the tensor, MXNet's number, safetensors' name, NumPy's letters, ONNX' number).
 * The first of a dtype is what it is written as. */
#define SLP_ELEMENT_LIST(X)                                                                                            \
	X(F32, float, SL_FLOAT32, 0, "F32", "f4", 1)                                                                   \
	X(F64, double, SL_FLOAT64, 1, "F64", "f8", 11)                                                                 \
	X(I32, int32_t, SL_INT32, 4, "I32", "i4", 6)                                                                   \
	X(U8, uint8_t, SL_UINT8, 3, "U8", "u1", 2)                                                                     \
	X(BOOL, uint8_t, SL_UINT8, 7, "BOOL", "b1", 9)                                                                 \
	X(F16, uint16_t, SL_FLOAT32, 2, "F16", "f2", 10)                                                               \
	X(BF16, uint16_t, SL_FLOAT32, 12, "BF16", "-", 16)                                                            \
	X(I8, int8_t, SL_INT32, 5, "I8", "i1", 3)                                                                      \
	X(I16, int16_t, SL_INT32, 8, "I16", "i2", 5)                                                                   \
	X(U16, uint16_t, SL_INT32, 9, "U16", "u2", 4)                                                                  \
	X(I64, int64_t, SL_INT32, 6, "I64", "i8", 7)                                                                   \
	X(U32, uint32_t, SL_INT32, 10, "U32", "u4", 12)                                                                \
	X(U64, uint64_t, SL_INT32, 11, "U64", "u8", 13)

enum slp_element {
#define X(NAME, ...) SLP_EL_##NAME,
	SLP_ELEMENT_LIST(X)
#undef X
	SLP_ELEMENTS
};

struct slp_element_info {
	size_t bytes;
	enum sl_dtype dtype;
	int mxnet;
	const char *safetensors, *numpy;
	int onnx;
};
extern const struct slp_element_info slp_elements[SLP_ELEMENTS];

/* What a dtype is written as. */
enum slp_element slp_element_of(enum sl_dtype dtype);
/* Bytes of a shape's elements; false if they cannot be (negative dims, too many axes, more than memory). */
bool slp_elements_size(enum slp_element element, sl_shape shape, uint64_t *bytes);
/* A tensor with these elements, converted if need be: the caller's, in no scope.  name is for messages. */
sl_tensor *slp_elements_tensor(struct slp_file *f, const char *name, enum slp_element element, sl_shape shape,
			       const void *data);

/* Takes an .npy file in memory apart; the tensor is in no scope. */
sl_tensor *slp_npy_parse(struct slp_file *f);

#endif
