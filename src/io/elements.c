/* Conversion of the elements that files may hold into those of tensors. */
#include <stdlib.h>
#include <string.h>

#include "io/elements.h"
#include "op.h"

const struct slp_element_info slp_elements[SLP_ELEMENTS] = {
#define X(symbol, name, type, kind, compute, low, high, numpy, safetensors, mxnet, onnx)                               \
	[symbol] = {sizeof(type), symbol, numpy, safetensors, mxnet, onnx},
        SL_DTYPE_LIST(X)
#undef X
#define X(NAME, type, dtype, numpy, safetensors, mxnet, onnx)                                                          \
	[SLP_EL_##NAME] = {sizeof(type), dtype, numpy, safetensors, mxnet, onnx},
                SLP_FOREIGN_LIST(X)
#undef X
};

bool slp_elements_size(enum slp_element element, sl_shape shape, uint64_t *bytes)
{
	if (!slp_shape_valid(shape)) return false;
	uint64_t n = (uint64_t)sl_shape_size(shape);
	return !__builtin_mul_overflow(n, (uint64_t)slp_elements[element].bytes, bytes) && *bytes <= PTRDIFF_MAX;
}

/* Element i as an integer; false if int64 does not hold it. */
static bool integer(enum slp_element element, const unsigned char *data, int64_t i, int64_t *to)
{
	switch (element) {
#define X(NAME, type, ...)                                                                                             \
	case SLP_EL_##NAME: {                                                                                          \
		type v;                                                                                                \
		memcpy(&v, data + (size_t)i * sizeof v, sizeof v);                                                     \
		*to = (int64_t)v;                                                                                      \
		return (*to < 0) == (v < 1 && v != 0);                                                                 \
	}
		SLP_FOREIGN_LIST(X)
#undef X
	case SLP_EL_OWN:
	case SLP_ELEMENTS: break;
	}
	return false;
}

int64_t slp_elements_copy(enum slp_element element, const void *from, void *to, int64_t n)
{
	enum sl_dtype dtype = slp_elements[element].dtype;
	const unsigned char *bytes = from;
	int64_t v = 0;
	if (slp_elements_plain(element)) {
		memcpy(to, from, (size_t)n * slp_elements[element].bytes);
		return -1;
	}
	for (int64_t i = 0; i < n; i++) {
		if (dtype == SL_BOOL)
			((bool *)to)[i] = bytes[i] != 0; /* a byte that is neither 0 nor 1 would be no bool */
		else if (!integer(element, from, i, &v)) return i;
		else if (dtype == SL_INT64) ((int64_t *)to)[i] = v;
		else ((int32_t *)to)[i] = (int32_t)v;
	}
	return -1;
}

int64_t slp_elements_misfit(enum slp_element element, const void *from, int64_t n)
{
	int64_t v;
	if (element != SLP_EL_U64) return -1; /* int64 holds all others */
	for (int64_t i = 0; i < n; i++)
		if (!integer(element, from, i, &v)) return i;
	return -1;
}

static bool convert(struct slp_file *f, const char *name, const struct slp_view *to, enum slp_element element,
                    const void *from)
{
	int64_t wrong = slp_elements_copy(element, from, to->ptr, slp_size(to));
	return wrong < 0 ||
	       slp_file_fail(f, SL_EDTYPE, "%s: element %lld is larger than an int64 can be", name, (long long)wrong);
}

static sl_tensor *make(struct slp_file *f, const void *data, sl_shape shape, enum sl_dtype dtype)
{
	sl_tensor *t = NULL;
	SL_SCOPE
		t = sl_retain(sl_from_at(f->at, data, shape, SL_MAKE_(.dtype = dtype)));
	if (!t) f->failed = true; /* and recorded */
	return t;
}

sl_tensor *slp_elements_tensor(struct slp_file *f, const char *name, enum slp_element element, sl_shape shape,
                               const void *data)
{
	enum sl_dtype dtype = slp_elements[element].dtype;
	if (slp_elements_plain(element)) return make(f, data, shape, dtype);
	struct slp_view values = {slp_malloc((size_t)sl_shape_size(shape) * sl_dtype_size(dtype) + 1), {dtype, shape}};
	if (!values.ptr) {
		slp_file_fail(f, SL_ENOMEM, "no memory for %s", name);
		return NULL;
	}
	sl_tensor *t = convert(f, name, &values, element, data) ? make(f, values.ptr, shape, dtype) : NULL;
	free(values.ptr);
	return t;
}
