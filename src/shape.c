/* Data types and shapes: sizes, comparison, text. */
#include <stdio.h>
#include <string.h>

#include "op.h"

static const struct {
	const char *name;
	size_t size;
} dtypes[SL_DTYPE_COUNT] = {
#define X(symbol, name, type, ...) [symbol] = {name, sizeof(type)},
        SL_DTYPE_LIST(X)
#undef X
};

/* The size of one element in bytes; 0 for no data type. */
size_t sl_dtype_size(enum sl_dtype dtype)
{
	return (unsigned)dtype < SL_DTYPE_COUNT ? dtypes[dtype].size : 0;
}

/* The name of a data type, such as "float32"; "?" for no data type. */
const char *sl_dtype_name(enum sl_dtype dtype)
{
	bool is_one = (unsigned)dtype < SL_DTYPE_COUNT && dtypes[dtype].name;
	return is_one ? dtypes[dtype].name : "?";
}

/* The data type with that name (sl_dtype_name); SL_DTYPE_DEFAULT if there is none.
 *
 *     enum sl_dtype d = sl_dtype_named("bfloat16"); */
enum sl_dtype sl_dtype_named(const char *name)
{
	for (int d = SL_DTYPE_DEFAULT + 1; name && d < SL_DTYPE_COUNT; d++)
		if (!strcmp(dtypes[d].name, name)) return (enum sl_dtype)d;
	return SL_DTYPE_DEFAULT;
}

/* The number of elements: the product of the dims, 1 for a scalar. */
int64_t sl_shape_size(sl_shape shape)
{
	uint64_t n = 1; /* of no shape it is any number */
	for (int i = 0; i < shape.ndim && i < SL_MAX_NDIM; i++) n *= (uint64_t)shape.dim[i];
	return (int64_t)n;
}

/* Whether two shapes have the same number of axes and the same sizes. */
bool sl_shape_equal(sl_shape a, sl_shape b)
{
	if (a.ndim != b.ndim) return false;
	for (int i = 0; i < a.ndim; i++)
		if (a.dim[i] != b.dim[i]) return false;
	return true;
}

/* Writes a shape, such as "(2, 3)", into text, and returns it.  Impossibly large dims may be cut off. */
const char *sl_shape_string(sl_shape shape, char text[128])
{
	if (!text) return "";
	size_t n = (size_t)snprintf(text, 128, "(");
	for (int i = 0; i < shape.ndim && i < SL_MAX_NDIM && n < 128; i++)
		n += (size_t)snprintf(text + n, 128 - n, "%s%lld", i ? ", " : "", (long long)shape.dim[i]);
	if (n < 128) snprintf(text + n, 128 - n, shape.ndim == 1 ? ",)" : ")");
	return text;
}

bool slp_shape_valid(sl_shape shape)
{
	if (shape.ndim < 0 || shape.ndim > SL_MAX_NDIM) return false;
	int64_t n = 1;
	for (int i = 0; i < shape.ndim; i++) {
		int64_t length = shape.dim[i] ? shape.dim[i] : 1; /* of some axes the product must fit, too */
		if (length < 0 || __builtin_mul_overflow(n, length, &n) || n > INT64_MAX / 16) return false;
	}
	return true;
}

const char *slp_type_string(const struct slp_type *type, char text[160])
{
	char shape[128];
	snprintf(text, 160, "%s %s", sl_dtype_name(type->dtype), sl_shape_string(type->shape, shape));
	return text;
}
