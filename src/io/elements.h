/* Types of elements in files.  Those that tensors lack are converted while reading. */
#ifndef SLP_ELEMENTS_H
#define SLP_ELEMENTS_H

#include "io/file.h"
#include "starling/tensor.h"

/* X(NAME, C type, dtype of the tensor, NumPy's letters, safetensors' name, MXNet's number, ONNX' number) for types that
 * tensors lack. */
#define SLP_FOREIGN_LIST(X)                                                                                            \
	X(I8, int8_t, SL_INT32, "i1", "I8", 5, 3)                                                                      \
	X(I16, int16_t, SL_INT32, "i2", "I16", 8, 5)                                                                   \
	X(U16, uint16_t, SL_INT32, "u2", "U16", 9, 4)                                                                  \
	X(U32, uint32_t, SL_INT64, "u4", "U32", 10, 12)                                                                \
	X(U64, uint64_t, SL_INT64, "u8", "U64", 11, 13)

/* A data type of tensors, as enum sl_dtype numbers it, or one that is not. */
enum slp_element {
	SLP_EL_OWN = SL_DTYPE_COUNT - 1,
#define X(NAME, ...) SLP_EL_##NAME,
	SLP_FOREIGN_LIST(X)
#undef X
	        SLP_ELEMENTS
};

struct slp_element_info {
	size_t bytes;
	enum sl_dtype dtype; /* of the tensor */
	const char *numpy, *safetensors;
	int mxnet, onnx;
};
extern const struct slp_element_info slp_elements[SLP_ELEMENTS]; /* from 1 */

/* The name of a dtype in files. */
static inline enum slp_element slp_element_of(enum sl_dtype dtype)
{
	return (enum slp_element)dtype;
}

/* Bytes of a shape's elements; false if they are impossible (negative dims, too many axes, more than memory). */
bool slp_elements_size(enum slp_element element, sl_shape shape, uint64_t *bytes);
/* Whether tensors have them as files do. */
static inline bool slp_elements_plain(enum slp_element element)
{
	return element <= SLP_EL_OWN && slp_elements[element].dtype != SL_BOOL;
}
/* Converts n elements to those of slp_elements[element].dtype; -1, or the number of one that does not fit. */
int64_t slp_elements_copy(enum slp_element element, const void *from, void *to, int64_t n);
/* The number of the first of n elements that does not fit, -1: all fit. */
int64_t slp_elements_misfit(enum slp_element element, const void *from, int64_t n);
/* A tensor with these elements, converted if need be: the caller's, in no scope.  name is for messages. */
sl_tensor *slp_elements_tensor(struct slp_file *f, const char *name, enum slp_element element, sl_shape shape,
                               const void *data);

/* Reads the header of an .npy file in memory; f->pos is then after it. */
bool slp_npy_header(struct slp_file *f, enum slp_element *element, sl_shape *shape);
/* Takes an .npy file in memory apart; the tensor is in no scope. */
sl_tensor *slp_npy_parse(struct slp_file *f);

#endif
