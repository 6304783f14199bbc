/* MXNet's lists of arrays, as MXNet 1.9.1 writes and reads them (mx.nd.save, gluon's save_parameters and export).
 * Found from what it writes; little-endian:
 *
 *     u64 0x112, u64 0
 *     u64 arrays, each: u32 version, i32 storage (0: dense; not in version 1), shape (i32 axes, i64 each),
 *                       i32 device, i32 its number, i32 element type, elements
 *     u64 names, each: u64 length, characters
 *
 * Version 2 cannot hold scalars and empty arrays: those are written as version 3, which MXNet reads in its NumPy
 * mode. */
#include <string.h>

#include "io/elements.h"
#include "io/params.h"
#include "starling/tensor.h"

enum { LIST_MAGIC = 0x112, SMALLEST_ARRAY = 8 };
static const uint32_t version_1 = 0xf993fac8, version_2 = 0xf993fac9, version_3 = 0xf993faca;

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* An array whose name comes later. */
struct array {
	uint64_t number;
	enum sl_dtype element;
	sl_shape shape;
	size_t pos;         /* of its elements */
	uint64_t bytes;     /* of these, and of their data */
	const char *except; /* a property that tensors lack; NULL: none */
	bool ends;          /* with its shape: it has no values */
};

/* Storage of sparse arrays by number: the number of arrays of indices after the elements. */
enum { DENSE, ROW_SPARSE, CSR };

/* A property that tensors lack is an error, or leniently a reason to skip the array. */
static bool except(struct slp_file *f, struct array *a, bool lenient, enum sl_status status, const char *what)
{
	if (!lenient) return slp_file_fail(f, status, "array %llu %s", (unsigned long long)a->number, what);
	if (!a->except) a->except = what;
	return true;
}

static bool read_version(struct slp_file *f, const struct array *a, uint32_t *version, int32_t *storage)
{
	*version = (uint32_t)slp_file_number(f, 4, "an array's header");
	if (f->failed) return false;
	if (*version < version_1 || *version > version_3)
		return slp_file_fail(
		        f, SL_EFORMAT,
		        "array %llu begins with 0x%08x, which is not a version of the format since MXNet 1.0",
		        (unsigned long long)a->number, *version);
	*storage = *version == version_1 ? DENSE : (int32_t)slp_file_number(f, 4, "an array's header");
	return !f->failed;
}

/* Axes and the number of elements; *shape gets as many axes as it can hold. */
static bool read_dims(struct slp_file *f, int32_t *ndim, sl_shape *shape, uint64_t *size)
{
	*ndim = (int32_t)slp_file_number(f, 4, "an array's shape");
	*shape = (sl_shape){.ndim = *ndim > 0 && *ndim <= SL_MAX_NDIM ? *ndim : 0};
	*size = 1;
	for (int32_t k = 0; k < *ndim && !f->failed; k++) {
		int64_t n = (int64_t)slp_file_number(f, 8, "an array's shape");
		if (k < SL_MAX_NDIM) shape->dim[k] = n;
		if (!f->failed && (n < 0 || __builtin_mul_overflow(*size, (uint64_t)n, size))) *size = UINT64_MAX;
	}
	return !f->failed;
}

static bool read_shape(struct slp_file *f, struct array *a, uint32_t version, bool lenient, uint64_t *size)
{
	int32_t ndim;
	if (!read_dims(f, &ndim, &a->shape, size)) return false;
	if (ndim < 0 || (ndim == 0 && version != version_3)) {
		a->ends = true;
		return except(f, a, lenient, SL_EFORMAT, "has no values");
	}
	if (ndim <= SL_MAX_NDIM || lenient)
		return ndim <= SL_MAX_NDIM || except(f, a, true, SL_EFORMAT, "has more than 8 axes");
	return slp_file_fail(f, SL_EFORMAT, "array %llu has %d axes, more than %d", (unsigned long long)a->number, ndim,
	                     SL_MAX_NDIM);
}

/* The field after an array: another one, or the number of names. */
static bool stands_before_next(const struct slp_file *f, uint64_t bytes, bool last, uint64_t count)
{
	uint64_t next = 0;
	size_t n = last ? 8 : 4;
	if (bytes > slp_file_left(f) || slp_file_left(f) - bytes < n) return false;
	memcpy(&next, f->data + f->pos + bytes, n);
	return last ? next == count || !next : next >= version_1 && next <= version_3;
}

/* The bytes of an element of unknown type: the size that leads to the next array. */
static bool guess_bytes(struct slp_file *f, struct array *a, uint64_t size, uint64_t count)
{
	for (uint64_t width = 1; width <= 16; width *= 2)
		if (!__builtin_mul_overflow(size, width, &a->bytes) &&
		    stands_before_next(f, a->bytes, a->number + 1 == count, count))
			return true;
	return slp_file_fail(f, SL_EFORMAT, "array %llu has an unknown element type, and no end",
	                     (unsigned long long)a->number);
}

static enum sl_dtype element_numbered(int32_t number)
{
	enum sl_dtype e = 1;
	while (e < SL_DTYPE_COUNT && slp_elements[e].mxnet != number) e++;
	return e;
}

static bool read_element(struct slp_file *f, struct array *a, bool lenient)
{
	char text[64];
	slp_file_take(f, 8, "an array's device");
	int32_t number = (int32_t)slp_file_number(f, 4, "an array's element type");
	if (f->failed) return false;
	a->element = element_numbered(number);
	if (a->element < SL_DTYPE_COUNT) return true;
	snprintf(text, sizeof text, "has the unknown element type %d", number);
	return lenient ? except(f, a, true, SL_EFORMAT, "has an element type that tensors do not have")
	               : except(f, a, false, SL_EFORMAT, text);
}

/* The bytes of the indices of a sparse array, whose types and shapes precede the elements. */
static bool add_indices(struct slp_file *f, struct array *a, int32_t storage)
{
	sl_shape shape;
	int32_t ndim;
	for (int i = 0; i < storage; i++) {
		uint64_t size, bytes;
		enum sl_dtype e = element_numbered((int32_t)slp_file_number(f, 4, "an index's type"));
		if (!read_dims(f, &ndim, &shape, &size)) return false;
		if (e == SL_DTYPE_COUNT || __builtin_mul_overflow(size, (uint64_t)slp_elements[e].bytes, &bytes) ||
		    __builtin_add_overflow(a->bytes, bytes, &a->bytes))
			return slp_file_fail(f, SL_EFORMAT, "array %llu has impossible indices",
			                     (unsigned long long)a->number);
	}
	return true;
}

/* The bytes of the elements; those of a sparse array are as many as its storage has, not its shape. */
static bool read_bytes(struct slp_file *f, struct array *a, int32_t storage, uint64_t size, uint64_t count)
{
	char text[128];
	if (a->element == SL_DTYPE_COUNT) return guess_bytes(f, a, size, count);
	if (__builtin_mul_overflow(size, (uint64_t)slp_elements[a->element].bytes, &a->bytes) ||
	    (!a->except && !slp_elements_size(a->element, a->shape, &a->bytes)))
		return slp_file_fail(f, SL_EFORMAT, "array %llu has the impossible shape %s",
		                     (unsigned long long)a->number, sl_shape_string(a->shape, text));
	if (storage != DENSE && !add_indices(f, a, storage)) return false;
	a->pos = f->pos;
	if (a->bytes > slp_file_left(f))
		return slp_file_fail(f, SL_EFORMAT, "array %llu has shape %s, %llu bytes, but %zu follow",
		                     (unsigned long long)a->number, sl_shape_string(a->shape, text),
		                     (unsigned long long)a->bytes, slp_file_left(f));
	return true;
}

static bool read_array(struct slp_file *f, uint64_t i, uint64_t count, bool lenient, struct array *a)
{
	uint32_t version = 0;
	int32_t storage = DENSE, ndim;
	uint64_t size, stored = 0;
	*a = (struct array){.number = i};
	if (!read_version(f, a, &version, &storage)) return false;
	if (storage != DENSE && (!except(f, a, lenient && (storage == ROW_SPARSE || storage == CSR), SL_EUNSUPPORTED,
	                                 "is sparse; only dense ones are read") ||
	                         !read_dims(f, &ndim, &a->shape, &stored)))
		return false;
	if (!read_shape(f, a, version, lenient, &size)) return false;
	if (a->ends) return true;
	if (!read_element(f, a, lenient) || !read_bytes(f, a, storage, storage == DENSE ? size : stored, count))
		return false;
	return slp_file_take(f, a->bytes, "an array's values") != NULL;
}

static bool read_header(struct slp_file *f, uint64_t *count)
{
	uint64_t magic = slp_file_number(f, 8, "the header");
	if (f->failed) return false;
	if (magic != LIST_MAGIC)
		return slp_file_fail(f, SL_EFORMAT, "begins with 0x%llx, a list of MXNet's arrays begins with 0x112",
		                     (unsigned long long)magic);
	slp_file_number(f, 8, "the header");
	*count = slp_file_number(f, 8, "the header");
	if (!f->failed && *count > slp_file_left(f) / SMALLEST_ARRAY)
		return slp_file_fail(f, SL_EFORMAT, "says that it has %llu arrays, but %zu bytes follow",
		                     (unsigned long long)*count, slp_file_left(f));
	return !f->failed;
}

static const char *without_prefix(const char *name, uint64_t *length)
{
	enum { PREFIX = 4 };
	if (*length <= PREFIX || (memcmp(name, "arg:", PREFIX) && memcmp(name, "aux:", PREFIX))) return name;
	*length -= PREFIX;
	return name + PREFIX;
}

/* Reads the next name and makes the tensor of that name from an array seen before. */
static bool read_name(struct slp_file *f, struct slp_arrays *p, const struct array *a)
{
	uint64_t length = slp_file_number(f, 8, "the names");
	const char *name = slp_file_take(f, length, "the names");
	if (!name) return false;
	name = without_prefix(name, &length);
	if (a->except) return slp_arrays_skip(f, name, length, a->except);
	bool ok = slp_arrays_take(f, p, name, length, a->element, a->shape, f->data + a->pos);
	slp_file_forget(f, f->data + a->pos, a->bytes);
	return ok;
}

/* Arrays are passed over twice, so that nothing must be kept of them: first to find the names. */
static bool read_names(struct slp_file *f, struct slp_arrays *p, uint64_t count, size_t arrays)
{
	uint64_t names = slp_file_number(f, 8, "the number of names");
	if (f->failed) return false;
	if (names != count)
		return slp_file_fail(f, SL_EFORMAT, "has %llu arrays but %llu names", (unsigned long long)count,
		                     (unsigned long long)names);
	struct array a;
	for (uint64_t i = 0; i < count; i++) {
		size_t here = f->pos;
		f->pos = arrays;
		if (!read_array(f, i, count, p->lenient, &a)) return false;
		arrays = f->pos;
		f->pos = here;
		if (!read_name(f, p, &a)) return false;
	}
	if (slp_file_left(f)) return slp_file_fail(f, SL_EFORMAT, "has %zu bytes after its end", slp_file_left(f));
	return true;
}

bool slp_mxnet_params_parse(struct slp_file *f, struct slp_arrays *p)
{
	uint64_t count = 0;
	struct array a;
	if (!read_header(f, &count)) return false;
	size_t arrays = f->pos;
	for (uint64_t i = 0; i < count; i++)
		if (!read_array(f, i, count, p->lenient, &a)) return false;
	return read_names(f, p, count, arrays);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void write_array(struct slp_out *o, sl_tensor *t)
{
	enum { CPU = 1 };
	sl_shape shape = sl_tensor_shape(t);
	slp_out_number(o, sl_shape_size(shape) && shape.ndim ? version_2 : version_3, 4);
	slp_out_number(o, 0, 4);
	slp_out_number(o, (uint64_t)shape.ndim, 4);
	for (int i = 0; i < shape.ndim; i++) slp_out_number(o, (uint64_t)shape.dim[i], 8);
	slp_out_number(o, CPU, 4);
	slp_out_number(o, 0, 4);
	slp_out_number(o, (uint64_t)slp_elements[sl_tensor_dtype(t)].mxnet, 4);
	slp_out_tensor(o, t);
}

void slp_mxnet_params_write(struct slp_out *o, const char *const *names, sl_tensor *const *tensors, int count)
{
	slp_out_number(o, LIST_MAGIC, 8);
	slp_out_number(o, 0, 8);
	slp_out_number(o, (uint64_t)count, 8);
	for (int i = 0; i < count; i++) write_array(o, tensors[i]);
	slp_out_number(o, (uint64_t)count, 8);
	for (int i = 0; i < count; i++) {
		slp_out_number(o, strlen(names[i]), 8);
		slp_out_put(o, names[i], strlen(names[i]));
	}
}
