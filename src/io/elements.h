/* Types of elements in files, and wider ones for integers that few operations compute with. */
#ifndef SLP_ELEMENTS_H
#define SLP_ELEMENTS_H

#include "io/file.h"
#include "starling/tensor.h"

/* X(symbol, C type, wide) for integers that data sets and imported models hold in a wider type. */
#define SLP_WIDENED_LIST(X)                                                                                            \
	X(SL_INT8, int8_t, SL_INT32)                                                                                   \
	X(SL_INT16, int16_t, SL_INT32)                                                                                 \
	X(SL_UINT16, uint16_t, SL_INT32)                                                                               \
	X(SL_UINT32, uint32_t, SL_INT64)                                                                               \
	X(SL_UINT64, uint64_t, SL_INT64)

struct slp_element_info {
	size_t bytes;
	const char *numpy, *safetensors;
	int mxnet, onnx;
};
extern const struct slp_element_info slp_elements[SL_DTYPE_COUNT]; /* from 1 */

/* Bytes of a shape's elements; false if they are impossible (negative dims, too many axes, more than memory). */
bool slp_elements_size(enum sl_dtype element, sl_shape shape, uint64_t *bytes);
/* The wider type; the type itself if it is not one of the list. */
enum sl_dtype slp_elements_wide(enum sl_dtype element);
/* Whether they need no conversion to the wider type: bytes of a bool may be neither 0 nor 1. */
static inline bool slp_elements_plain(enum sl_dtype element)
{
	return slp_elements_wide(element) == element && element != SL_BOOL;
}
/* Converts n elements to the wider type; -1, or the number of one that does not fit. */
int64_t slp_elements_copy(enum sl_dtype element, const void *from, void *to, int64_t n);
/* A tensor with these elements: the caller's, in no scope.  name is for messages. */
sl_tensor *slp_elements_tensor(struct slp_file *f, const char *name, enum sl_dtype element, sl_shape shape,
                               const void *data);
/* The same, in the wider type. */
sl_tensor *slp_elements_wide_tensor(struct slp_file *f, const char *name, enum sl_dtype element, sl_shape shape,
                                    const void *data);

/* Reads the header of an .npy file in memory; f->pos is then after it. */
bool slp_npy_header(struct slp_file *f, enum sl_dtype *element, sl_shape *shape);
/* Takes an .npy file in memory apart; the tensor is in no scope. */
sl_tensor *slp_npy_parse(struct slp_file *f);

#endif
