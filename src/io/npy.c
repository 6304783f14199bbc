/* NumPy's files of one array (.npy), versions 1 and 2 (numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
 */
#include <stdlib.h>
#include <string.h>

#include "ascii.h"
#include "io/elements.h"
#include "runtime/budget.h"
#include "op.h"
#include "runtime/uncancelled.h"
#include "starling/io.h"

enum { MAGIC = 6, ALIGN = 64, TEXT = 256 };
static const char magic[MAGIC + 1] = "\x93NUMPY";

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* The contents of the header, a Python dictionary as text. */
struct header {
	const char *p, *end;
	enum sl_dtype element;
	sl_shape shape;
	bool has_type, has_order, has_shape, fortran;
};

static bool bad(struct slp_file *f, const char *what)
{
	return slp_file_fail(f, SL_EFORMAT, "%s", what);
}

static void skip_blanks(struct header *h)
{
	while (h->p < h->end && slp_is_space(*h->p)) h->p++;
}

static bool is_next(struct header *h, char c)
{
	skip_blanks(h);
	if (h->p == h->end || *h->p != c) return false;
	h->p++;
	return true;
}

/* A string in quotes; NULL: there is none. */
static const char *read_string(struct header *h, char text[32])
{
	char quote = is_next(h, '\'') ? '\'' : is_next(h, '"') ? '"' : 0;
	if (!quote) return NULL;
	size_t n = 0;
	for (; h->p < h->end && *h->p != quote && n < 31; n++) text[n] = *h->p++;
	text[n] = '\0';
	return is_next(h, quote) ? text : NULL;
}

static bool read_type(struct slp_file *f, struct header *h)
{
	char text[32];
	if (h->has_type || !read_string(h, text)) return bad(f, "has a descr that is not a plain numeric type");
	h->has_type = true;
	bool single = text[0] && strchr("|=<", text[0]);
	for (h->element = 1; single && h->element < SL_DTYPE_COUNT; h->element++)
		if (!strcmp(slp_elements[h->element].numpy, text + 1)) return true;
	return slp_file_fail(f, SL_EDTYPE,
	                     "has elements of type '%s'; little-endian floats, integers and booleans are read", text);
}

static bool read_order(struct slp_file *f, struct header *h)
{
	skip_blanks(h);
	for (int i = 0; i < 2; i++) {
		const char *word = i ? "True" : "False";
		size_t n = strlen(word);
		if ((size_t)(h->end - h->p) < n || strncmp(h->p, word, n)) continue;
		h->p += n;
		h->fortran = i;
		h->has_order = true;
		return true;
	}
	return bad(f, "has a fortran_order that is neither True nor False");
}

static bool read_dim(struct slp_file *f, struct header *h)
{
	int64_t n = 0;
	if (h->shape.ndim == SL_MAX_NDIM) return bad(f, "has more than 8 axes");
	if (h->p == h->end || !slp_is_digit(*h->p)) return bad(f, "has a shape that is not a tuple of numbers");
	for (; h->p < h->end && slp_is_digit(*h->p); h->p++)
		if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *h->p - '0', &n))
			return bad(f, "has an impossible shape");
	if (h->p < h->end && *h->p == 'L') h->p++; /* Python 2 */
	h->shape.dim[h->shape.ndim++] = n;
	return true;
}

static bool read_shape(struct slp_file *f, struct header *h)
{
	if (h->has_shape || !is_next(h, '(')) return bad(f, "has a shape that is not a tuple");
	h->has_shape = true;
	while (!is_next(h, ')')) {
		if (!read_dim(f, h)) return false;
		if (is_next(h, ',')) continue;
		if (is_next(h, ')')) break;
		return bad(f, "has a shape that is not a tuple of numbers");
	}
	return true;
}

static bool read_item(struct slp_file *f, struct header *h)
{
	char key[32];
	if (!read_string(h, key) || !is_next(h, ':')) return bad(f, "has a header that is not a dictionary");
	if (!strcmp(key, "descr")) return read_type(f, h);
	if (!strcmp(key, "fortran_order")) return read_order(f, h);
	if (!strcmp(key, "shape")) return read_shape(f, h);
	return slp_file_fail(f, SL_EFORMAT, "has a header with the unknown key '%s'", key);
}

static bool read_dictionary(struct slp_file *f, struct header *h)
{
	if (!is_next(h, '{')) return bad(f, "has a header that is not a dictionary");
	while (!is_next(h, '}')) {
		if (!read_item(f, h)) return false;
		if (is_next(h, ',')) continue;
		if (is_next(h, '}')) break;
		return bad(f, "has a header that is not a dictionary");
	}
	skip_blanks(h);
	if (h->p != h->end || !h->has_type || !h->has_order || !h->has_shape)
		return bad(f, "has a header without descr, fortran_order and shape, or with more");
	if (h->fortran && h->shape.ndim > 1)
		return slp_file_fail(f, SL_EUNSUPPORTED,
		                     "is in Fortran order; save np.ascontiguousarray of the array instead");
	return true;
}

static bool read_header(struct slp_file *f, struct header *h)
{
	const char *start = slp_file_take(f, MAGIC, "the magic bytes");
	if (!start) return false;
	if (memcmp(start, magic, MAGIC)) return bad(f, "does not begin like an .npy file, with \\x93NUMPY");
	uint64_t major = slp_file_number(f, 1, "the version"), minor = slp_file_number(f, 1, "the version");
	if (!f->failed && (major < 1 || major > 3))
		return slp_file_fail(f, SL_EUNSUPPORTED, "is of version %d.%d of the format, 1 to 3 are read",
		                     (int)major, (int)minor);
	uint64_t length = slp_file_number(f, major == 1 ? 2 : 4, "the length of the header");
	h->p = slp_file_take(f, length, "the header");
	if (!h->p) return false;
	h->end = h->p + length;
	return read_dictionary(f, h);
}

bool slp_npy_header(struct slp_file *f, enum sl_dtype *element, sl_shape *shape)
{
	struct header h = {0};
	if (!read_header(f, &h)) return false;
	*element = h.element;
	*shape = h.shape;
	return true;
}

sl_tensor *slp_npy_parse(struct slp_file *f)
{
	struct header h = {0};
	uint64_t bytes;
	char text[128];
	if (!read_header(f, &h)) return NULL;
	if (!slp_elements_size(h.element, h.shape, &bytes)) {
		slp_file_fail(f, SL_EFORMAT, "has the impossible shape %s", sl_shape_string(h.shape, text));
		return NULL;
	}
	if (bytes != slp_file_left(f)) {
		slp_file_fail(f, SL_EFORMAT, "has shape %s, %llu bytes, but %zu follow its header",
		              sl_shape_string(h.shape, text), (unsigned long long)bytes, slp_file_left(f));
		return NULL;
	}
	return slp_elements_tensor(f, "the array", h.element, h.shape, f->data + f->pos);
}

/* Reads an array that NumPy saved (np.save): little-endian, in C order.  Data types of tensors are kept; other integers
 * become int32 if that holds the type, else int64.  The tensor is on the default device and belongs to the innermost
 * scope.  SL_EDTYPE: elements of another type, or an integer that is too large; SL_EUNSUPPORTED: another version of the
 * format; other errors: see io.h.
 *
 *     sl_tensor *x = sl_load_npy("digit.npy"); */
sl_tensor *sl_load_npy_at(const char *at, const char *path)
{
	SLP_CALL("sl_load_npy", at);
	SLP_BUDGET(path);
	struct slp_file f;
	if (!slp_file_read(&f, at, "sl_load_npy", path)) return NULL;
	sl_tensor *t = slp_npy_parse(&f);
	free(f.data);
	return slp_scope_add(t);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* The header, padded so that the elements are aligned; returns its length. */
static size_t make_header(char text[TEXT], const sl_tensor *t)
{
	sl_shape shape = sl_tensor_shape(t);
	const char *type = slp_elements[sl_tensor_dtype(t)].numpy;
	char dims[128];
	size_t n = (size_t)snprintf(text, TEXT, "{'descr': '%s%s', 'fortran_order': False, 'shape': %s, }",
	                            type[1] == '1' ? "|" : "<", type, sl_shape_string(shape, dims));
	while ((MAGIC + 4 + n + 1) % ALIGN) text[n++] = ' ';
	text[n++] = '\n';
	return n;
}

/* Writes a tensor in the format of np.load, and waits for its values.  SL_EDTYPE: bfloat16, which NumPy lacks; other
 * errors: see io.h.
 *
 *     sl_save_npy(y, "scores.npy"); */
enum sl_status sl_save_npy_at(const char *at, sl_tensor *t, const char *path)
{
	SLP_UNCANCELLED();
	SLP_CALL("sl_save_npy", at);
	char text[TEXT];
	struct slp_out o;
	if (!slp_tensor_usable(at, "sl_save_npy", t)) return sl_error() != SL_OK ? sl_error() : SL_EINVAL;
	if (!slp_elements[sl_tensor_dtype(t)].numpy[0]) {
		slp_call_fail(at, "sl_save_npy", SL_EDTYPE, "NumPy has no %s; sl_cast converts",
		              sl_dtype_name(sl_tensor_dtype(t)));
		return SL_EDTYPE;
	}
	if (!slp_out_open(&o, at, "sl_save_npy", path)) return sl_error();
	size_t n = make_header(text, t);
	slp_out_put(&o, magic, MAGIC);
	slp_out_number(&o, 1, 2);
	slp_out_number(&o, n, 2);
	slp_out_put(&o, text, n);
	slp_out_tensor(&o, t);
	return slp_out_close(&o);
}
