/* Conversion of the elements that files may hold into those of tensors. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/elements.h"

const struct slp_element_info slp_elements[SLP_ELEMENTS] = {
#define X(NAME, type, dtype, mxnet, safetensors, numpy, onnx)                                                          \
	[SLP_EL_##NAME] = {sizeof(type), dtype, mxnet, safetensors, numpy, onnx},
	SLP_ELEMENT_LIST(X)
#undef X
};

enum slp_element slp_element_of(enum sl_dtype dtype)
{
	enum slp_element e = 0;
	while (e < SLP_ELEMENTS - 1 && slp_elements[e].dtype != dtype) e++;
	return e;
}

bool slp_elements_size(enum slp_element element, sl_shape shape, uint64_t *bytes)
{
	if (!slp_shape_valid(shape)) return false;
	uint64_t n = (uint64_t)sl_shape_size(shape);
	return !__builtin_mul_overflow(n, (uint64_t)slp_elements[element].bytes, bytes) && *bytes <= PTRDIFF_MAX;
}

/* IEEE 754's 16-bit numbers. */
static float half(uint16_t h)
{
	int exponent = h >> 10 & 31, fraction = h & 1023;
	float v = exponent == 31 ? (fraction ? NAN : INFINITY)
		  : exponent     ? ldexpf((float)(fraction + 1024), exponent - 25)
				 : ldexpf((float)fraction, -24);
	return h & 0x8000 ? -v : v;
}

/* The upper half of a float. */
static float brain(uint16_t h)
{
	uint32_t bits = (uint32_t)h << 16;
	float v;
	memcpy(&v, &bits, sizeof v);
	return v;
}

static void widen(float *to, enum slp_element element, const unsigned char *from, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		uint16_t h;
		memcpy(&h, from + 2 * i, 2);
		to[i] = element == SLP_EL_F16 ? half(h) : brain(h);
	}
}

/* Element i as an integer; false if int32 does not hold it. */
static bool integer(enum slp_element element, const unsigned char *data, int64_t i, int32_t *to)
{
	switch (element) {
#define X(NAME, type, ...)                                                                                             \
	case SLP_EL_##NAME: {                                                                                             \
		type v;                                                                                                \
		memcpy(&v, data + (size_t)i * sizeof v, sizeof v);                                                     \
		if ((double)v < INT32_MIN || (double)v > INT32_MAX) return false;                                      \
		*to = (int32_t)v;                                                                                      \
		return true;                                                                                           \
	}
		SLP_ELEMENT_LIST(X)
#undef X
	default:
		return false;
	}
}

static bool narrow(struct slp_file *f, const char *name, int32_t *to, enum slp_element element,
		   const unsigned char *from, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (!integer(element, from, i, &to[i]))
			return slp_file_fail(f, SL_EDTYPE, "%s: element %lld is larger than an int32 can be", name,
					     (long long)i);
	return true;
}

static sl_tensor *make(struct slp_file *f, const void *data, sl_shape shape, enum sl_dtype dtype)
{
	sl_tensor *t = NULL;
	SL_SCOPE t = sl_retain(sl_from_at(f->at, data, shape, SL_MAKE_(.dtype = dtype)));
	if (!t) f->failed = true; /* and recorded */
	return t;
}

static bool is_own(enum slp_element element)
{
	return element == SLP_EL_BOOL || slp_element_of(slp_elements[element].dtype) == element;
}

sl_tensor *slp_elements_tensor(struct slp_file *f, const char *name, enum slp_element element, sl_shape shape,
			       const void *data)
{
	enum sl_dtype dtype = slp_elements[element].dtype;
	int64_t n = sl_shape_size(shape);
	if (is_own(element)) return make(f, data, shape, dtype);
	void *values = slp_malloc((size_t)n * sl_dtype_size(dtype) + 1);
	if (!values) {
		slp_file_fail(f, SL_ENOMEM, "no memory for %s", name);
		return NULL;
	}
	bool ok = true;
	if (dtype == SL_FLOAT32) widen(values, element, data, n);
	else ok = narrow(f, name, values, element, data, n);
	sl_tensor *t = ok ? make(f, values, shape, dtype) : NULL;
	free(values);
	return t;
}
