/* ONNX models: tensors in the file, in its typed fields or as bytes, or in another file beside it. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "number.h"
#include "onnx/model/outline.h"
#include "onnx/model/tensors.h"
#include "io/regular.h"
#include "op.h"
#include "tensor/tensor.h"

enum { LOCATION_EXTERNAL = 1 };

enum sl_dtype slp_onnx_element_numbered(int number)
{
	for (int e = 1; e < SL_DTYPE_COUNT; e++)
		if (slp_elements[e].onnx == number) return (enum sl_dtype)e;
	return SL_DTYPE_COUNT;
}

enum sl_dtype slp_onnx_dtype_numbered(int number)
{
	enum sl_dtype e = slp_onnx_element_numbered(number);
	return e == SL_DTYPE_COUNT ? SL_DTYPE_DEFAULT : slp_elements_wide(e);
}

/* ---- typed fields ------------------------------------------------------------------------------------------------ */

/* n numbers of a field, each `from` bytes long, the lower `to` of which are the element. */
static bool narrow(struct slp_file *f, const char *name, struct slp_onnx_data *d, const void *field, size_t n,
                   size_t from)
{
	size_t to = slp_elements[d->element].bytes;
	if (n * to != d->bytes)
		return slp_file_fail(f, SL_EFORMAT, "tensor \"%.100s\" has %zu elements, its shape %llu", name, n,
		                     (unsigned long long)(d->bytes / to));
	d->data = field;
	if (from == to) return true;
	unsigned char *bytes = d->owned = slp_malloc(d->bytes + 1);
	if (!bytes) return slp_file_fail(f, SL_ENOMEM, "no memory for \"%.100s\"", name);
	for (size_t i = 0; i < n; i++) memcpy(bytes + i * to, (const unsigned char *)field + i * from, to);
	d->data = bytes;
	return true;
}

/* The field that holds elements of a type: its own, or a wider one. */
static bool from_field(struct slp_file *f, const char *name, const SlpOnnx__TensorProto *t, struct slp_onnx_data *d)
{
	switch (slp_elements[d->element].onnx) {
	case 1: return narrow(f, name, d, t->float_data, t->n_float_data, sizeof *t->float_data);
	case 11: return narrow(f, name, d, t->double_data, t->n_double_data, sizeof *t->double_data);
	case 7: return narrow(f, name, d, t->int64_data, t->n_int64_data, sizeof *t->int64_data);
	case 12:
	case 13: return narrow(f, name, d, t->uint64_data, t->n_uint64_data, sizeof *t->uint64_data);
	default: return narrow(f, name, d, t->int32_data, t->n_int32_data, sizeof *t->int32_data);
	}
}

/* ---- other files ------------------------------------------------------------------------------------------------- */

/* Whether a path has a part "..", or is not relative. */
static bool leaves_folder(const char *path)
{
	if (path[0] == '/' || !path[0]) return true;
	for (const char *p = path; *p; p += strspn(p, "/")) {
		size_t n = strcspn(p, "/");
		if (n == 2 && p[0] == '.' && p[1] == '.') return true;
		p += n;
	}
	return false;
}

/* Whether `path`, resolved, is in the folder of `beside`, resolved or as named. */
static bool lies_beside(const char *path, const char *beside)
{
	char real[PATH_MAX], folder[PATH_MAX];
	if (!realpath(path, real)) return true; /* is reported when it is opened */
	for (int i = 0; i < 2; i++) {
		if (i == 0 && !realpath(beside, folder)) return true;
		if (i == 1) {
			const char *slash = strrchr(beside, '/');
			char called[PATH_MAX];
			snprintf(called, sizeof called, "%.*s", slash ? (int)(slash - beside + 1) : 1,
			         slash ? beside : ".");
			if (!realpath(called, folder)) return true;
			strncat(folder, "/", sizeof folder - strlen(folder) - 1);
		}
		char *end = strrchr(folder, '/');
		if (end && !strncmp(real, folder, (size_t)(end - folder) + 1)) return true;
	}
	return false;
}

static const char *entry(const SlpOnnx__TensorProto *t, const char *key, const char *otherwise)
{
	for (size_t i = 0; i < t->n_external_data; i++)
		if (t->external_data[i]->key && !strcmp(t->external_data[i]->key, key) && t->external_data[i]->value)
			return t->external_data[i]->value;
	return otherwise;
}

static bool read_part(struct slp_file *f, const char *name, const char *path, uint64_t offset, struct slp_onnx_data *d)
{
	char why[SLP_WHY];
	int64_t size;
	FILE *file = slp_regular_stream(path, &size, why);
	if (!file) return slp_file_fail(f, SL_EIO, "tensor \"%.100s\" is in %.200s, which %s", name, path, why);
	bool ok = offset <= (uint64_t)size && d->bytes <= (uint64_t)size - offset;
	d->data = d->owned = ok ? slp_malloc(d->bytes + 1) : NULL;
	if (ok && !d->owned) ok = slp_file_fail(f, SL_ENOMEM, "no memory for \"%.100s\"", name);
	ok = ok && fseeko(file, (off_t)offset, SEEK_SET) == 0;
	if (ok && d->bytes) ok = fread(d->owned, 1, d->bytes, file) == d->bytes;
	fclose(file);
	return ok || slp_file_fail(f, SL_EFORMAT, "tensor \"%.100s\" lies beyond the end of %.200s", name, path);
}

/* Not read yet: slp_onnx_data_load does that, or slp_onnx_data_tensor. */
static bool in_model(struct slp_file *f, const SlpOnnx__TensorProto *t, struct slp_onnx_data *d)
{
	const char *name = t->name ? t->name : "";
	struct stat st;
	uint64_t offset, bytes;
	if (!slp_size_read(entry(t, "offset", ""), &offset) || !slp_size_read(entry(t, "length", ""), &bytes) ||
	    bytes != d->bytes)
		return slp_file_fail(f, SL_EFORMAT, "tensor \"%.100s\" has %.30s bytes, its shape needs %llu", name,
		                     entry(t, "length", "?"), (unsigned long long)d->bytes);
	if (fstat(fileno(f->stream), &st) || offset > (uint64_t)st.st_size || d->bytes > (uint64_t)st.st_size - offset)
		return slp_file_fail(f, SL_EFORMAT, "tensor \"%.100s\" lies beyond the end of the file", name);
	d->offset = offset;
	d->later = true;
	return true;
}

static bool from_file(struct slp_file *f, const char *name, const SlpOnnx__TensorProto *t, struct slp_onnx_data *d)
{
	const char *location = entry(t, "location", ""), *slash = strrchr(f->path, '/');
	const char *offset = entry(t, "offset", "0"), *length = entry(t, "length", NULL);
	uint64_t begin, bytes = d->bytes;
	char *path = NULL;
	if (f->stream && !strcmp(location, SLP_ONNX_IN_MODEL)) return in_model(f, t, d);
	if (!slp_size_read(offset, &begin) || (length && !slp_size_read(length, &bytes)) || bytes != d->bytes)
		return slp_file_fail(
		        f, SL_EFORMAT,
		        "tensor \"%.100s\": offset \"%.30s\" or length \"%.30s\" is wrong, %llu bytes needed", name,
		        offset, length ? length : "", (unsigned long long)d->bytes);
	if (leaves_folder(location))
		return slp_file_fail(f, SL_EFORMAT, "tensor \"%.100s\" is in \"%.200s\", which is not beside the model",
		                     name, location);
	path = slp_format("%.*s%s", slash ? (int)(slash - f->path + 1) : 0, f->path, location);
	if (!path) return slp_file_fail(f, SL_ENOMEM, "no memory");
	bool ok = lies_beside(path, f->path) ||
	          slp_file_fail(f, SL_EFORMAT,
	                        "tensor \"%.100s\" is in \"%.200s\", a link to a file that is not beside the model",
	                        name, location);
	ok = ok && read_part(f, name, path, begin, d);
	free(path);
	return ok;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

bool slp_onnx_data_type(struct slp_file *f, const SlpOnnx__TensorProto *t, struct slp_onnx_data *d)
{
	const char *name = t->name ? t->name : "";
	*d = (struct slp_onnx_data){.element = slp_onnx_element_numbered(t->data_type)};
	if (d->element == SL_DTYPE_COUNT)
		return slp_file_fail(f, SL_EUNSUPPORTED, "tensor \"%.100s\" has data type %d, which is not supported",
		                     name, t->data_type);
	if (t->n_dims > SL_MAX_NDIM)
		return slp_file_fail(f, SL_EUNSUPPORTED, "tensor \"%.100s\" has %zu axes, more than %d", name,
		                     t->n_dims, SL_MAX_NDIM);
	d->shape.ndim = (int)t->n_dims;
	for (size_t i = 0; i < t->n_dims; i++) d->shape.dim[i] = t->dims[i];
	if (!slp_elements_size(d->element, d->shape, &d->bytes))
		return slp_file_fail(f, SL_EFORMAT, "tensor \"%.100s\" has an impossible shape", name);
	return true;
}

bool slp_onnx_data_find(struct slp_file *f, const SlpOnnx__TensorProto *t, struct slp_onnx_data *d)
{
	const char *name = t->name ? t->name : "";
	if (!slp_onnx_data_type(f, t, d)) return false;
	if (t->data_location == LOCATION_EXTERNAL) return from_file(f, name, t, d);
	if (!t->has_raw_data) return from_field(f, name, t, d);
	d->data = t->raw_data.data;
	return t->raw_data.len == d->bytes ||
	       slp_file_fail(f, SL_EFORMAT, "tensor \"%.100s\" has %zu bytes, its shape needs %llu", name,
	                     t->raw_data.len, (unsigned long long)d->bytes);
}

static bool read_later(struct slp_file *f, const struct slp_onnx_data *d, void *to)
{
	ssize_t n = 0;
	for (uint64_t got = 0; got < d->bytes; got += (uint64_t)n) {
		n = pread(fileno(f->stream), (char *)to + got, d->bytes - got, (off_t)(d->offset + got));
		if (n <= 0) return slp_file_fail(f, SL_EIO, "became shorter while it was read, or cannot be read");
	}
	return true;
}

bool slp_onnx_data_load(struct slp_file *f, struct slp_onnx_data *d)
{
	if (!d->later) return true;
	d->data = d->owned = slp_malloc(d->bytes + 1);
	if (!d->owned) return slp_file_fail(f, SL_ENOMEM, "no memory for a tensor");
	d->later = false;
	return read_later(f, d, d->owned);
}

bool slp_onnx_data_read(struct slp_file *f, const SlpOnnx__TensorProto *t, struct slp_onnx_data *d)
{
	return slp_onnx_data_find(f, t, d) && slp_onnx_data_load(f, d);
}

struct reading {
	struct slp_file *f;
	const struct slp_onnx_data *d;
};

static bool fill(void *to, size_t bytes, void *arg)
{
	const struct reading *r = arg;
	(void)bytes;
	return read_later(r->f, r->d, to);
}

sl_tensor *slp_onnx_data_tensor(struct slp_file *f, const char *name, struct slp_onnx_data *d)
{
	if (!d->later || !slp_elements_plain(d->element))
		return slp_onnx_data_load(f, d) ? slp_elements_wide_tensor(f, name, d->element, d->shape, d->data)
		                                : NULL;
	struct reading r = {f, d};
	sl_device device = {SL_DEVICE_DEFAULT, -1};
	sl_tensor *t = NULL;
	SL_SCOPE
		t = sl_retain(
		        slp_filled(f->at, f->function, fill, &r, (struct slp_type){d->element, d->shape}, device));
	if (!t) f->failed = true; /* and recorded */
	return t;
}

/* Element i of data, exact for whole numbers. */
static union slp_onnx_element element_at(const struct slp_onnx_data *d, int64_t i)
{
	const unsigned char *p = (const unsigned char *)d->data + (size_t)i * slp_elements[d->element].bytes;
	union slp_onnx_element v = {0};
#define X(symbol, type, ...)                                                                                           \
	if (d->element == symbol) {                                                                                    \
		type e;                                                                                                \
		memcpy(&e, p, sizeof e);                                                                               \
		v.i = (int64_t)e;                                                                                      \
		return v;                                                                                              \
	}
	SLP_WIDENED_LIST(X)
#undef X
	enum sl_dtype dtype = d->element;
	max_align_t room;
	memcpy(&room, p, sl_dtype_size(dtype));
	struct slp_view one = {&room, {dtype, SL_SCALAR}};
	if (dtype == SL_INT64) memcpy(&v.i, p, sizeof v.i);
	else if (dtype == SL_BOOL) v.i = *p != 0;
	else if (slp_is_float(dtype)) v.f = slp_get(&one, 0);
	else v.i = (int64_t)slp_get(&one, 0);
	return v;
}

struct slp_onnx_known *slp_onnx_known_from(struct slp_onnx_known **list, const struct slp_onnx_data *d)
{
	struct slp_onnx_known *k = slp_onnx_known_new(list, slp_elements_wide(d->element), d->shape);
	for (int64_t i = 0; k && i < sl_shape_size(d->shape); i++) k->v[i] = element_at(d, i);
	return k;
}

struct slp_onnx_known *slp_onnx_known_of(struct slp_onnx_call *c, const SlpOnnx__TensorProto *t)
{
	struct slp_file f = {.at = c->at, .function = "sl_import_onnx", .path = c->op->name};
	struct slp_onnx_data d;
	struct slp_onnx_known *k = NULL;
	if (t->data_location == LOCATION_EXTERNAL || !slp_onnx_data_type(&f, t, &d) || !slp_onnx_is_few(d.shape))
		slp_onnx_call_fail(c, SL_EUNSUPPORTED,
		                   "a tensor among the attributes is too large, or in another file");
	else if (slp_onnx_data_read(&f, t, &d)) {
		k = slp_onnx_known_from(c->made, &d);
		free(d.owned);
	}
	if (!k) c->failed = true;
	return k;
}
