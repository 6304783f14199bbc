/* Reads IDX files as http://yann.lecun.com/exdb/mnist describes them: two zero bytes, the type of the elements, the
 * number of axes, the size of each axis as a big-endian 32-bit number, the elements.  Files are untrusted: everything
 * is checked, sizes above all. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "data/image/idx.h"
#include "data/image/idx_cache.h"
#include "io/regular.h"
#include "number.h"
#include "op.h"
#include "runtime/text.h"

enum { BUFFER = 1 << 16, UNSIGNED_BYTE = 0x08, HEADER = 4, MAX_EXPANSION = 1032 /* of deflate */ };

/* A file being read; bytes come out uncompressed. */
struct source {
	const char *at, *function, *path;
	FILE *file;
	int64_t size; /* of the file itself */
	bool gzip, ended, failed;
	z_stream z;
	unsigned char in[BUFFER]; /* last: it is not cleared */
};

static bool fail(struct source *s, enum sl_status status, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

static bool fail(struct source *s, enum sl_status status, const char *format, ...)
{
	char text[512];
	SLP_FORMAT(text, sizeof text, format);
	slp_text_escape(text, sizeof text, false);
	if (!s->failed) slp_call_fail(s->at, s->function, status, "%s: %s", s->path, text);
	s->failed = true;
	return false;
}

/* ---- bytes ------------------------------------------------------------------------------------------------------ */

static bool open_file(struct source *s)
{
	char why[SLP_WHY];
	s->file = slp_regular_stream(s->path, &s->size, why);
	if (!s->file) return fail(s, SL_EIO, "%s", why);
	int first = fgetc(s->file), second = fgetc(s->file);
	if (ferror(s->file)) return fail(s, SL_EIO, "cannot be read: %s", strerror(errno));
	rewind(s->file);
	s->gzip = first == 0x1f && second == 0x8b;
	enum { GZIP = 16 };
	if (s->gzip && inflateInit2(&s->z, MAX_WBITS + GZIP) != Z_OK) {
		s->gzip = false;
		return fail(s, SL_ENOMEM, "no memory to uncompress it");
	}
	return true;
}

static void close_file(struct source *s)
{
	if (s->gzip) inflateEnd(&s->z);
	if (s->file) fclose(s->file);
}

/* Whether there is input for inflate. */
static bool refill(struct source *s)
{
	if (s->z.avail_in) return true;
	s->z.next_in = s->in;
	s->z.avail_in = (uInt)fread(s->in, 1, sizeof s->in, s->file);
	if (ferror(s->file)) fail(s, SL_EIO, "cannot be read: %s", strerror(errno));
	return s->z.avail_in > 0;
}

/* After the end of compressed data: nothing, or more of it. */
static void next_member(struct source *s)
{
	if (!refill(s)) {
		s->ended = true;
		return;
	}
	if (s->z.next_in[0] != 0x1f) fail(s, SL_EFORMAT, "bytes follow after the end of the gzip data");
	else if (inflateReset(&s->z) != Z_OK) fail(s, SL_EINTERNAL, "cannot be uncompressed");
}

static void inflate_some(struct source *s)
{
	if (!refill(s)) {
		fail(s, SL_EFORMAT, "ends in the middle of its gzip data");
		return;
	}
	int e = inflate(&s->z, Z_NO_FLUSH);
	if (e == Z_STREAM_END) next_member(s);
	else if (e == Z_MEM_ERROR) fail(s, SL_ENOMEM, "no memory to uncompress it");
	else if (e != Z_OK && e != Z_BUF_ERROR)
		fail(s, SL_EFORMAT, "damaged gzip data: %s", s->z.msg ? s->z.msg : "the stream is invalid");
}

/* The next n bytes, or fewer at the end or after a failure; returns their number. */
static int64_t get(struct source *s, void *to, int64_t n)
{
	enum { MOST = 1 << 30 };
	int64_t got = 0;
	if (!s->gzip) {
		got = (int64_t)fread(to, 1, (size_t)n, s->file);
		if (ferror(s->file)) fail(s, SL_EIO, "cannot be read: %s", strerror(errno));
		return got;
	}
	while (got < n && !s->ended && !s->failed) {
		uInt room = n - got < MOST ? (uInt)(n - got) : MOST;
		s->z.next_out = (unsigned char *)to + got;
		s->z.avail_out = room;
		inflate_some(s);
		got += room - s->z.avail_out;
	}
	return got;
}

/* ---- the format ------------------------------------------------------------------------------------------------- */

static const char *type_name(unsigned type)
{
	switch (type) {
	case UNSIGNED_BYTE: return "unsigned byte";
	case 0x09: return "signed byte";
	case 0x0b: return "16-bit integer";
	case 0x0c: return "32-bit integer";
	case 0x0d: return "float";
	case 0x0e: return "double";
	default: return "unknown";
	}
}

static bool read_magic(struct source *s, int ndim)
{
	unsigned char h[HEADER];
	int64_t got = get(s, h, HEADER);
	if (s->failed) return false;
	if (got < HEADER)
		return fail(s, SL_EFORMAT, "ends after %lld bytes, within the header of %d", (long long)got,
		            HEADER + 4 * ndim);
	if (h[0] || h[1])
		return fail(s, SL_EFORMAT, "begins with the bytes %02x %02x, an IDX file begins with 00 00", h[0],
		            h[1]);
	if (h[2] != UNSIGNED_BYTE)
		return fail(s, SL_EFORMAT, "has elements of type %02x (%s), type %02x (%s) needed", h[2],
		            type_name(h[2]), UNSIGNED_BYTE, type_name(UNSIGNED_BYTE));
	if (h[3] != ndim) return fail(s, SL_EFORMAT, "has %d axes, %d needed", h[3], ndim);
	return true;
}

static bool read_shape(struct source *s, int ndim, struct slp_idx *idx)
{
	idx->shape.ndim = ndim;
	idx->bytes = 1;
	for (int i = 0; i < ndim; i++) {
		unsigned char b[4];
		if (get(s, b, 4) < 4)
			return fail(s, SL_EFORMAT, "ends within the header of %d bytes", HEADER + 4 * ndim);
		int64_t n = (int64_t)b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3];
		if (n == 0) return fail(s, SL_EFORMAT, "axis %d has size 0: there is nothing in it", i);
		if (n > INT32_MAX || __builtin_mul_overflow(idx->bytes, n, &idx->bytes))
			return fail(s, SL_EFORMAT, "axis %d has the impossible size %lld", i, (long long)n);
		idx->shape.dim[i] = n;
	}
	return true;
}

/* Before memory is allocated: whether the file can hold the contents that its header declares. */
static bool check_size(struct source *s, const struct slp_idx *idx)
{
	char text[128];
	int64_t header = HEADER + 4 * idx->shape.ndim, held = s->size - header;
	const char *shape = sl_shape_string(idx->shape, text);
	if (s->gzip && idx->bytes / MAX_EXPANSION > s->size)
		return fail(s, SL_EFORMAT, "has shape %s, %lld bytes: more than %lld compressed bytes can hold", shape,
		            (long long)idx->bytes, (long long)s->size);
	if (!s->gzip && idx->bytes != held)
		return fail(s, SL_EFORMAT, "has shape %s, %lld bytes, but %lld follow its header", shape,
		            (long long)idx->bytes, (long long)held);
	return true;
}

/* The number of bytes that exist.  Memory grows as they are read: a header may declare more than there are. */
static int64_t read_growing(struct source *s, struct slp_idx *idx)
{
	int64_t got = 0, room = 0;
	while (got == room && got < idx->bytes && !s->failed) {
		room = room ? 2 * room : BUFFER;
		if (!s->gzip || room > idx->bytes) room = idx->bytes;
		void *more = slp_try_realloc(idx->data, (size_t)room);
		if (!more) {
			free(idx->data);
			idx->data = NULL;
			return 0;
		}
		idx->data = more;
		got += get(s, (char *)idx->data + got, room - got);
	}
	return got;
}

static bool read_values(struct source *s, struct slp_idx *idx)
{
	int64_t got = read_growing(s, idx);
	if (!idx->data) return fail(s, SL_ENOMEM, "no memory for its %lld bytes", (long long)idx->bytes);
	if (!s->failed && got < idx->bytes)
		return fail(s, SL_EFORMAT, "ends after %lld values, %lld needed", (long long)got,
		            (long long)idx->bytes);
	char more;
	if (!s->failed && get(s, &more, 1) && !s->failed)
		return fail(s, SL_EFORMAT, "has bytes after its %lld values", (long long)idx->bytes);
	return !s->failed;
}

bool slp_idx_read(const char *at, const char *function, const char *path, int ndim, struct slp_idx *idx)
{
	struct source *s = slp_malloc(sizeof *s);
	if (!s) {
		slp_call_fail(at, function, SL_ENOMEM, "%s: no memory to read it", path);
		return false;
	}
	memset(s, 0, offsetof(struct source, in));
	s->at = at, s->function = function, s->path = path;
	*idx = (struct slp_idx){0};
	bool ok = open_file(s), found = ok && s->gzip && slp_idx_find(path, ndim, idx);
	ok = found ||
	     (ok && read_magic(s, ndim) && read_shape(s, ndim, idx) && check_size(s, idx) && read_values(s, idx));
	if (ok && s->gzip && !found) slp_idx_keep(path, idx);
	if (!ok) {
		free(idx->data);
		idx->data = NULL;
	}
	close_file(s);
	free(s);
	return ok;
}
