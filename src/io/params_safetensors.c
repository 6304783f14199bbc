/* safetensors: u64 length of a JSON header, the header, the elements of all tensors without gaps (the format's
 * description at https://github.com/huggingface/safetensors). */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "io/crc32c.h"
#include "io/elements.h"
#include "io/json.h"
#include "io/params.h"
#include "op.h"

enum { MOST_HEADER = 100 << 20, ALIGN = 8 };

/* A tensor of the header, and where its elements are within the data. */
struct entry {
	const char *name;
	enum sl_dtype element;
	sl_shape shape;
	uint64_t begin, end;
};

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* The skipped arrays, and the reasons. */
static bool skip(const struct slp_file *f, struct entry *e, const char *why)
{
	e->element = SL_DTYPE_COUNT;
	return slp_arrays_skip(f, e->name, strlen(e->name), why);
}

static bool bad(struct slp_file *f, const struct entry *e, const char *what)
{
	char text[80];
	return slp_file_fail(f, SL_EFORMAT, "tensor %s: %s", slp_arrays_quote(e->name, strlen(e->name), text), what);
}

static bool read_element(struct slp_file *f, struct entry *e, const json_t *value, bool lenient)
{
	const char *name = json_string_value(json_object_get(value, "dtype"));
	if (!name) return bad(f, e, "has no dtype");
	for (e->element = 1; e->element < SL_DTYPE_COUNT; e->element++)
		if (!strcmp(slp_elements[e->element].safetensors, name)) return true;
	return lenient ? skip(f, e, "has a dtype that tensors do not have") : bad(f, e, "has an unknown dtype");
}

static bool read_shape(struct slp_file *f, struct entry *e, const json_t *value, bool lenient)
{
	const json_t *dims = json_object_get(value, "shape");
	size_t n = json_array_size(dims);
	if (json_is_array(dims) && n > SL_MAX_NDIM && lenient)
		return e->element == SL_DTYPE_COUNT || skip(f, e, "has more than 8 axes");
	if (!json_is_array(dims) || n > SL_MAX_NDIM) return bad(f, e, "has no shape, or one with more than 8 axes");
	e->shape = (sl_shape){.ndim = (int)n};
	for (size_t i = 0; i < n; i++) {
		const json_t *d = json_array_get(dims, i);
		if (!json_is_integer(d)) return bad(f, e, "has a shape that is not a list of numbers");
		e->shape.dim[i] = json_integer_value(d);
	}
	return true;
}

static bool read_offsets(struct slp_file *f, struct entry *e, const json_t *value)
{
	const json_t *offsets = json_object_get(value, "data_offsets");
	const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
	uint64_t bytes;
	if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end))
		return bad(f, e, "has no data_offsets");
	if (json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin) ||
	    (uint64_t)json_integer_value(end) > slp_file_left(f))
		return bad(f, e, "has data_offsets outside of the file");
	e->begin = (uint64_t)json_integer_value(begin);
	e->end = (uint64_t)json_integer_value(end);
	if (e->element == SL_DTYPE_COUNT) return true;
	if (!slp_elements_size(e->element, e->shape, &bytes)) return bad(f, e, "has an impossible shape");
	if (bytes != e->end - e->begin) return bad(f, e, "has data_offsets that do not fit its shape");
	return true;
}

static int by_begin(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

/* The elements fill the rest of the file, each byte once; leaves the entries in the order of their elements. */
static bool check_cover(struct slp_file *f, struct entry *entries, int count)
{
	uint64_t end = 0;
	qsort(entries, (size_t)count, sizeof *entries, by_begin);
	for (int i = 0; i < count; i++) {
		if (entries[i].begin < end) return bad(f, &entries[i], "overlaps another tensor");
		if (entries[i].begin > end) return bad(f, &entries[i], "begins after a gap");
		end = entries[i].end;
	}
	if (end != slp_file_left(f))
		return slp_file_fail(f, SL_EFORMAT, "has %llu bytes after its tensors",
		                     (unsigned long long)(slp_file_left(f) - end));
	return true;
}

/* The bytes are the written ones. */
static bool check_seal(struct slp_file *f, const struct entry *e, const json_t *checksums)
{
	return !checksums ||
	       slp_seal_holds(checksums, e->name, f->data + f->pos + e->begin, (size_t)(e->end - e->begin)) ||
	       bad(f, e, "is damaged: its checksum differs");
}

static bool make_tensors(struct slp_file *f, struct slp_arrays *p, const struct entry *entries, int count)
{
	for (int i = 0; i < count; i++) {
		const struct entry *e = &entries[i];
		if (e->element == SL_DTYPE_COUNT) continue;
		if (!slp_arrays_take(f, p, e->name, strlen(e->name), e->element, e->shape, f->data + f->pos + e->begin))
			return false;
	}
	return true;
}

static bool read_entries(struct slp_file *f, struct slp_arrays *p, json_t *header, const json_t *checksums,
                         struct entry *entries)
{
	int count = 0;
	const char *name;
	json_t *value;
	json_object_foreach(header, name, value)
	{
		if (!strcmp(name, "__metadata__")) continue;
		struct entry *e = &entries[count++];
		e->name = name;
		if (!read_element(f, e, value, p->lenient) || !read_shape(f, e, value, p->lenient) ||
		    !read_offsets(f, e, value))
			return false;
	}
	if (!check_cover(f, entries, count)) return false;
	for (int i = 0; i < count; i++)
		if (!check_seal(f, &entries[i], checksums)) return false;
	return make_tensors(f, p, entries, count);
}

static json_t *read_header(struct slp_file *f)
{
	uint64_t length = slp_file_number(f, 8, "the length of the header");
	if (!f->failed && length > MOST_HEADER) {
		slp_file_fail(f, SL_EFORMAT, "says that its header has %llu bytes: this is not a safetensors file",
		              (unsigned long long)length);
		return NULL;
	}
	const char *text = slp_file_take(f, length, "the header");
	if (!text) return NULL;
	if (slp_seal_is_there(text, (size_t)length) && !slp_seal_is_whole(text, (size_t)length)) {
		slp_file_fail(f, SL_EFORMAT, "has a damaged header: its checksum differs");
		return NULL;
	}
	json_error_t e;
	json_t *header = slp_json_read(f, text, (size_t)length, &e);
	if (!header) slp_file_fail(f, SL_EFORMAT, "has a header that is not JSON: %s", e.text);
	else if (!json_is_object(header)) slp_file_fail(f, SL_EFORMAT, "has a header that is not a JSON object");
	return header;
}

/* Checksums, and the state if it is requested. */
static bool read_seal(struct slp_file *f, struct slp_arrays *p, const json_t *header, json_t **checksums)
{
	*checksums = slp_seal_checksums(header);
	if (!p->keep_state) return true;
	const char *format = *checksums ? slp_seal_stranger(header) : NULL;
	if (format)
		return slp_file_fail(
		        f, SL_EUNSUPPORTED,
		        "has the format %.40s, written by Starling %.20s; this is Starling %s, which does not "
		        "read it",
		        format, slp_seal_writer(header), sl_version());
	p->state = slp_seal_state(header);
	return (*checksums && p->state) || slp_file_fail(f, SL_EFORMAT, "is not a checkpoint");
}

bool slp_safetensors_parse(struct slp_file *f, struct slp_arrays *p)
{
	json_t *header = read_header(f), *checksums = NULL;
	bool ok = header && !f->failed && read_seal(f, p, header, &checksums);
	struct entry *entries = ok ? slp_calloc(json_object_size(header) + 1, sizeof *entries) : NULL;
	if (ok && !entries) slp_file_fail(f, SL_ENOMEM, "no memory for its header");
	ok = entries && read_entries(f, p, header, checksums, entries);
	free(entries);
	json_decref(checksums);
	json_decref(header);
	return ok;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* The wider elements come first, so that all are aligned. */
static int next_width(int width)
{
	return width / 2;
}

static int width_of(const sl_tensor *t)
{
	return (int)sl_dtype_size(sl_tensor_dtype(t));
}

static json_t *header_entry(const sl_tensor *t, uint64_t begin)
{
	sl_shape shape = sl_tensor_shape(t);
	json_t *dims = json_array();
	for (int i = 0; i < shape.ndim; i++) json_array_append_new(dims, json_integer(shape.dim[i]));
	return json_pack("{s:s, s:o, s:[I, I]}", "dtype", slp_elements[sl_tensor_dtype(t)].safetensors, "shape", dims,
	                 "data_offsets", (json_int_t)begin, (json_int_t)(begin + sl_tensor_bytes(t)));
}

static json_t *make_header(const char *const *names, sl_tensor *const *tensors, int count, json_t *metadata)
{
	json_t *header = json_object();
	uint64_t begin = 0;
	bool ok = !metadata || json_object_set(header, "__metadata__", metadata) == 0;
	for (int width = 8; width; width = next_width(width))
		for (int i = 0; i < count; i++) {
			if (width_of(tensors[i]) != width) continue;
			ok &= json_object_set_new(header, names[i], header_entry(tensors[i], begin)) == 0;
			begin += sl_tensor_bytes(tensors[i]);
		}
	ok &= json_object_size(header) == (size_t)count + (metadata != NULL); /* no name twice */
	if (ok) return header;
	json_decref(header);
	return NULL;
}

/* The header as text, blanks behind it so that the elements are aligned; NULL without memory. */
static char *header_text(const json_t *header, bool sealed, size_t *length)
{
	char *text = json_dumps(header, JSON_COMPACT), *padded = NULL;
	size_t n = text ? strlen(text) : 0;
	*length = (n + ALIGN - 1) / ALIGN * ALIGN;
	if (text) padded = slp_realloc(text, *length + 1);
	if (!padded) {
		free(text);
		return NULL;
	}
	memset(padded + n, ' ', *length - n);
	padded[*length] = '\0';
	if (sealed) slp_seal_close(padded, *length);
	return padded;
}

static bool put_header(struct slp_out *o, const json_t *header, bool sealed)
{
	size_t length;
	char *text = header ? header_text(header, sealed, &length) : NULL;
	if (!text) {
		slp_call_fail(o->at, o->function, SL_EINVAL,
		              "%s: the header could not be made; names must be UTF-8 and distinct", o->path);
		o->failed = true;
		return false;
	}
	slp_out_number(o, length, 8);
	slp_out_put(o, text, length);
	free(text);
	return true;
}

static void write_with(struct slp_out *o, json_t *metadata, const char *const *names, sl_tensor *const *tensors,
                       int count)
{
	json_t *header = make_header(names, tensors, count, metadata);
	bool ok = put_header(o, header, metadata != NULL);
	json_decref(header);
	for (int width = 8; ok && width; width = next_width(width))
		for (int i = 0; i < count; i++)
			if (width_of(tensors[i]) == width) slp_out_tensor(o, tensors[i]);
}

void slp_safetensors_write(struct slp_out *o, const char *const *names, sl_tensor *const *tensors, int count)
{
	write_with(o, NULL, names, tensors, count);
}

/* Waits for the values; NULL with an error recorded. */
static json_t *checksums_of(struct slp_out *o, const char *const *names, sl_tensor *const *tensors, int count)
{
	json_t *checksums = json_object();
	for (int i = 0; i < count; i++) {
		const void *p = slp_host_begin(o->at, o->function, tensors[i], false);
		if (!p) {
			json_decref(checksums);
			return NULL;
		}
		uint32_t c = slp_crc32c(0, p, sl_tensor_bytes(tensors[i]));
		slp_host_end(tensors[i]);
		json_object_set_new(checksums, names[i],
		                    json_integer(c)); /* a name that is not UTF-8 is reported below */
	}
	return checksums;
}

void slp_safetensors_write_sealed(struct slp_out *o, const char *state, const char *const *names,
                                  sl_tensor *const *tensors, int count)
{
	json_t *checksums = checksums_of(o, names, tensors, count);
	json_t *metadata = checksums ? slp_seal_metadata(state, checksums) : NULL;
	if (metadata) {
		write_with(o, metadata, names, tensors, count);
	} else {
		if (checksums) slp_call_fail(o->at, o->function, SL_EINVAL, "%s: the state is not UTF-8", o->path);
		o->failed = true;
	}
	json_decref(metadata);
}
