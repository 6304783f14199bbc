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

static bool read_version(struct slp_file *f, uint64_t i, uint32_t *version)
{
	*version = (uint32_t)slp_file_number(f, 4, "an array's header");
	if (f->failed) return false;
	if (*version < version_1 || *version > version_3)
		return slp_file_fail(
		        f, SL_EFORMAT,
		        "array %llu begins with 0x%08x, which is not a version of the format since MXNet 1.0",
		        (unsigned long long)i, *version);
	int32_t storage = *version == version_1 ? 0 : (int32_t)slp_file_number(f, 4, "an array's header");
	if (storage)
		return slp_file_fail(f, SL_EUNSUPPORTED, "array %llu is sparse (storage %d), only dense ones are read",
		                     (unsigned long long)i, storage);
	return !f->failed;
}

static bool read_shape(struct slp_file *f, uint64_t i, uint32_t version, sl_shape *shape)
{
	int32_t ndim = (int32_t)slp_file_number(f, 4, "an array's shape");
	if (f->failed) return false;
	if (ndim < 0 || (ndim == 0 && version != version_3))
		return slp_file_fail(f, SL_EFORMAT, "array %llu has no values", (unsigned long long)i);
	if (ndim > SL_MAX_NDIM)
		return slp_file_fail(f, SL_EFORMAT, "array %llu has %d axes, more than %d", (unsigned long long)i, ndim,
		                     SL_MAX_NDIM);
	*shape = (sl_shape){.ndim = ndim};
	for (int k = 0; k < ndim; k++) shape->dim[k] = (int64_t)slp_file_number(f, 8, "an array's shape");
	return !f->failed;
}

static bool read_element(struct slp_file *f, uint64_t i, enum slp_element *element)
{
	slp_file_take(f, 8, "an array's device");
	int32_t number = (int32_t)slp_file_number(f, 4, "an array's element type");
	if (f->failed) return false;
	for (*element = 1; *element < SLP_ELEMENTS; (*element)++)
		if (slp_elements[*element].mxnet == number) return true;
	return slp_file_fail(f, SL_EFORMAT, "array %llu has the unknown element type %d", (unsigned long long)i,
	                     number);
}

/* An array whose name comes later. */
struct array {
	enum slp_element element;
	sl_shape shape;
	size_t pos; /* of its elements */
};

static bool read_array(struct slp_file *f, uint64_t i, struct array *a)
{
	uint32_t version;
	uint64_t bytes;
	char text[128];
	if (!read_version(f, i, &version) || !read_shape(f, i, version, &a->shape) || !read_element(f, i, &a->element))
		return false;
	if (!slp_elements_size(a->element, a->shape, &bytes))
		return slp_file_fail(f, SL_EFORMAT, "array %llu has the impossible shape %s", (unsigned long long)i,
		                     sl_shape_string(a->shape, text));
	a->pos = f->pos;
	if (bytes > slp_file_left(f))
		return slp_file_fail(f, SL_EFORMAT, "array %llu has shape %s, %llu bytes, but %zu follow",
		                     (unsigned long long)i, sl_shape_string(a->shape, text), (unsigned long long)bytes,
		                     slp_file_left(f));
	return slp_file_take(f, bytes, "an array's values") != NULL;
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
	char text[80];
	uint64_t length = slp_file_number(f, 8, "the names");
	const char *name = slp_file_take(f, length, "the names");
	if (!name) return false;
	name = without_prefix(name, &length);
	sl_tensor *t =
	        slp_elements_tensor(f, slp_arrays_quote(name, length, text), a->element, a->shape, f->data + a->pos);
	return slp_arrays_add(f, p, name, length, t);
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
		if (!read_array(f, i, &a)) return false;
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
		if (!read_array(f, i, &a)) return false;
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
	slp_out_number(o, (uint64_t)slp_elements[slp_element_of(sl_tensor_dtype(t))].mxnet, 4);
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
