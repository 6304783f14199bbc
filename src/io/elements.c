/* Conversion of the elements that files may hold into those of tensors. */
#include <stdlib.h>
#include <string.h>

#include "io/elements.h"
#include "op.h"

const struct slp_element_info slp_elements[SL_DTYPE_COUNT] = {
#define X(symbol, name, type, kind, compute, low, high, numpy, safetensors, mxnet, onnx)                               \
	[symbol] = {sizeof(type), numpy, safetensors, mxnet, onnx},
        SL_DTYPE_LIST(X)
#undef X
};

enum sl_dtype slp_elements_wide(enum sl_dtype element)
{
	static const enum sl_dtype wide[SL_DTYPE_COUNT] = {
#define X(symbol, type, wide) [symbol] = wide,
	        SLP_WIDENED_LIST(X)
#undef X
	};
	return wide[element] ? wide[element] : element;
}

bool slp_elements_size(enum sl_dtype element, sl_shape shape, uint64_t *bytes)
{
	if (!slp_shape_valid(shape)) return false;
	uint64_t n = (uint64_t)sl_shape_size(shape);
	return !__builtin_mul_overflow(n, (uint64_t)slp_elements[element].bytes, bytes) && *bytes <= PTRDIFF_MAX;
}

/* Element i as an integer; false if int64 does not hold it. */
static bool integer(enum sl_dtype element, const unsigned char *data, int64_t i, int64_t *to)
{
#define X(symbol, type, ...)                                                                                           \
	if (element == symbol) {                                                                                       \
		type v;                                                                                                \
		memcpy(&v, data + (size_t)i * sizeof v, sizeof v);                                                     \
		*to = (int64_t)v;                                                                                      \
		return (*to < 0) == (v < 1 && v != 0);                                                                 \
	}
	SLP_WIDENED_LIST(X)
#undef X
	return false;
}

int64_t slp_elements_copy(enum sl_dtype element, const void *from, void *to, int64_t n)
{
	enum sl_dtype wide = slp_elements_wide(element);
	const unsigned char *bytes = from;
	int64_t v = 0;
	if (slp_elements_plain(element)) {
		memcpy(to, from, (size_t)n * slp_elements[element].bytes);
		return -1;
	}
	for (int64_t i = 0; i < n; i++) {
		if (element == SL_BOOL)
			((bool *)to)[i] = bytes[i] != 0; /* a byte that is neither 0 nor 1 would be no bool */
		else if (!integer(element, from, i, &v)) return i;
		else if (wide == SL_INT64) ((int64_t *)to)[i] = v;
		else ((int32_t *)to)[i] = (int32_t)v;
	}
	return -1;
}

static bool convert(struct slp_file *f, const char *name, const struct slp_view *to, enum sl_dtype element,
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

sl_tensor *slp_elements_wide_tensor(struct slp_file *f, const char *name, enum sl_dtype element, sl_shape shape,
                                    const void *data)
{
	enum sl_dtype dtype = slp_elements_wide(element);
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

sl_tensor *slp_elements_tensor(struct slp_file *f, const char *name, enum sl_dtype element, sl_shape shape,
                               const void *data)
{
	return element == SL_BOOL ? slp_elements_wide_tensor(f, name, element, shape, data)
	                          : make(f, data, shape, element);
}
