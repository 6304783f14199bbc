/* ONNX models: reading a file without its large tensors.  The outline is the same message, but a large tensor in it is
 * in another file, as the format allows: in this one, which stays open until the tensors are read, one after the other.
 * So no memory holds the whole file beside the tensors. */
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "io/regular.h"
#include "onnx/model/outline.h"

enum { LARGE = 64 << 10, DEEPEST = 64, PLACE = 5 /* bytes of a length that is written later */ };

/* Messages of the format in which tensors are. */
enum kind { OTHER, MODEL, GRAPH, FUNCTION, NODE, ATTRIBUTE, TENSOR };
enum wire { VARINT, EIGHT, BYTES, FOUR = 5 };

struct outline {
	FILE *file;
	uint64_t size, pos;
	unsigned char *bytes;
	size_t count, room;
	bool failed;
};

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static unsigned char *room_for(struct outline *o, size_t n)
{
	if (o->room - o->count <= n) {
		size_t room = 2 * (o->count + n) + 4096;
		unsigned char *bytes = o->failed ? NULL : slp_realloc(o->bytes, room);
		if (!bytes) return o->failed = true, NULL;
		o->bytes = bytes;
		o->room = room;
	}
	o->count += n;
	return o->bytes + o->count - n;
}

static void put(struct outline *o, const void *data, size_t n)
{
	unsigned char *to = room_for(o, n);
	if (to && n) memcpy(to, data, n);
}

static void put_number(struct outline *o, uint64_t n)
{
	unsigned char text[10];
	size_t count = 0;
	for (; n > 0x7f; n >>= 7) text[count++] = (unsigned char)(n | 0x80);
	text[count++] = (unsigned char)n;
	put(o, text, count);
}

static uint64_t take_number(struct outline *o, uint64_t end)
{
	uint64_t n = 0;
	for (unsigned shift = 0; o->pos < end && shift < 64; shift += 7) {
		int byte = getc(o->file);
		o->pos++;
		if (byte == EOF) break;
		n |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) return n;
	}
	o->failed = true;
	return 0;
}

static void copy(struct outline *o, uint64_t n, uint64_t end)
{
	unsigned char *to = n <= end - o->pos ? room_for(o, (size_t)n) : NULL;
	if (!to || fread(to, 1, (size_t)n, o->file) != n) o->failed = true;
	o->pos += n;
}

static void skip(struct outline *o, uint64_t n)
{
	if (fseeko(o->file, (off_t)(o->pos + n), SEEK_SET)) o->failed = true;
	o->pos += n;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static enum kind kind_within(enum kind kind, uint64_t field)
{
	static const struct {
		enum kind in;
		uint64_t field;
		enum kind is;
	} table[] = {
	        {MODEL, 7, GRAPH},      {MODEL, 25, FUNCTION}, {FUNCTION, 7, NODE},
	        {GRAPH, 1, NODE},       {GRAPH, 5, TENSOR},    {NODE, 5, ATTRIBUTE},
	        {ATTRIBUTE, 5, TENSOR}, {ATTRIBUTE, 6, GRAPH}, {ATTRIBUTE, 11, GRAPH},
	};
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (table[i].in == kind && table[i].field == field) return table[i].is;
	return OTHER;
}

/* A tensor on the way: its type, and its bytes if they stay in the file. */
struct tensor {
	uint64_t type, offset, bytes;
	bool elsewhere; /* it is in another file, says the model */
};

/* Floats and bytes, which are taken as they are. */
static bool stays(const struct tensor *t, uint64_t bytes)
{
	enum { FLOAT = 1, UINT8 = 2, INT8 = 3, FLOAT16 = 10, BFLOAT16 = 16 };
	bool plain =
	        t->type == FLOAT || t->type == UINT8 || t->type == INT8 || t->type == FLOAT16 || t->type == BFLOAT16;
	return plain && bytes >= LARGE;
}

static void put_entry(struct outline *o, const char *key, const char *value)
{
	size_t k = strlen(key), v = strlen(value);
	put_number(o, 13 << 3 | BYTES);
	put_number(o, k + v + 4); /* each with a tag and a length below 128 */
	put_number(o, 1 << 3 | BYTES);
	put_number(o, k);
	put(o, key, k);
	put_number(o, 2 << 3 | BYTES);
	put_number(o, v);
	put(o, value, v);
}

/* The last data_location counts. */
static void put_place(struct outline *o, const struct tensor *t)
{
	enum { EXTERNAL = 1 };
	char number[32];
	if (t->elsewhere) o->failed = true; /* in two places */
	put_entry(o, "location", SLP_ONNX_IN_MODEL);
	snprintf(number, sizeof number, "%llu", (unsigned long long)t->offset);
	put_entry(o, "offset", number);
	snprintf(number, sizeof number, "%llu", (unsigned long long)t->bytes);
	put_entry(o, "length", number);
	put_number(o, 14 << 3 | VARINT);
	put_number(o, EXTERNAL);
}

static void message(struct outline *o, enum kind kind, uint64_t end, int depth);

/* A message, whose length is known when it is written: in as many bytes as it ever needs. */
static void within(struct outline *o, enum kind kind, uint64_t bytes, int depth)
{
	size_t place = o->count;
	room_for(o, PLACE);
	message(o, kind, o->pos + bytes, depth + 1);
	size_t n = o->failed ? 0 : o->count - place - PLACE;
	for (int i = 0; !o->failed && i < PLACE; i++, n >>= 7)
		o->bytes[place + (size_t)i] = (unsigned char)((n & 0x7f) | (i < PLACE - 1 ? 0x80 : 0));
	if (n) o->failed = true;
}

static void bytes_field(struct outline *o, enum kind kind, uint64_t tag, uint64_t end, int depth, struct tensor *t)
{
	enum { RAW = 9, ELSEWHERE = 13 };
	uint64_t bytes = take_number(o, end), field = tag >> 3;
	if (o->failed || bytes > end - o->pos) {
		o->failed = true;
		return;
	}
	if (kind == TENSOR && field == ELSEWHERE) t->elsewhere = true;
	if (kind == TENSOR && field == RAW && !t->bytes && stays(t, bytes)) {
		t->offset = o->pos;
		t->bytes = bytes;
		skip(o, bytes);
		return;
	}
	put_number(o, tag);
	if (kind_within(kind, field) != OTHER) {
		within(o, kind_within(kind, field), bytes, depth);
		return;
	}
	put_number(o, bytes);
	copy(o, bytes, end);
}

static void field(struct outline *o, enum kind kind, uint64_t end, int depth, struct tensor *t)
{
	enum { DATA_TYPE = 2 };
	uint64_t tag = take_number(o, end), number;
	if ((tag & 7) == BYTES) {
		bytes_field(o, kind, tag, end, depth, t);
		return;
	}
	put_number(o, tag);
	switch (tag & 7) {
	case VARINT:
		number = take_number(o, end);
		if (kind == TENSOR && tag >> 3 == DATA_TYPE) t->type = number;
		put_number(o, number);
		break;
	case EIGHT: copy(o, 8, end); break;
	case FOUR: copy(o, 4, end); break;
	default: o->failed = true;
	}
}

static void message(struct outline *o, enum kind kind, uint64_t end, int depth)
{
	struct tensor t = {0};
	if (depth > DEEPEST) o->failed = true;
	while (!o->failed && o->pos < end) field(o, kind, end, depth, &t);
	if (!o->failed && t.bytes) put_place(o, &t);
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

bool slp_onnx_outline_read(struct slp_file *f, const char *at, const char *function, const char *path)
{
	char why[SLP_WHY];
	int64_t size = 0;
	*f = (struct slp_file){.at = at, .function = function, .path = path ? path : "(no path)"};
	struct outline o = {.file = path ? slp_regular_stream(path, &size, why) : NULL};
	if (o.file) message(&o, MODEL, (uint64_t)size, 0);
	if (o.file && !o.failed && room_for(&o, 0)) {
		f->stream = o.file;
		f->data = o.bytes;
		f->size = o.count;
		if (slp_file_spend(f, (double)size)) return true;
	} else {
		free(o.bytes);
		if (o.file) fclose(o.file);
		return slp_file_read(f, at, function, path); /* and reports what is wrong */
	}
	slp_onnx_outline_end(f);
	return false;
}

void slp_onnx_outline_end(struct slp_file *f)
{
	free(f->data);
	f->data = NULL;
	if (f->stream) fclose(f->stream);
	f->stream = NULL;
}
