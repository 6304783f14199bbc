/* Reads CSV files (RFC 4180), one field after the other: quotes, line ends in quotes, CR LF.  Memory is bounded by
 * the longest field, which is bounded. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "data/csv.h"
#include "data/dataset.h"
#include "io/regular.h"
#include "tensor/tensor.h"

enum { LONGEST = 1 << 16, MOST_COLUMNS = 1 << 24 };

/* Skips the byte order mark of UTF-8.  False: it is UTF-16 or UTF-32. */
static bool skip_mark(struct slp_csv *c)
{
	char start[3] = "";
	size_t n = fread(start, 1, 3, c->file);
	if (n == 3 && !memcmp(start, "\xef\xbb\xbf", 3)) return true;
	rewind(c->file);
	if (n < 2 || (memcmp(start, "\xff\xfe", 2) && memcmp(start, "\xfe\xff", 2))) return true;
	return slp_data_fail(SL_EFORMAT, "%s: is in UTF-16 or UTF-32; UTF-8 is read", c->path);
}

bool slp_csv_open(struct slp_csv *c, const char *path, char separator)
{
	char why[SLP_WHY];
	*c = (struct slp_csv){.path = path,
	                      .file = slp_regular_stream(path, NULL, why),
	                      .separator = separator,
	                      .line = 1,
	                      .last = true};
	if (!c->file) return slp_data_fail(SL_EIO, "%s: %s", path, why);
	return skip_mark(c);
}

void slp_csv_close(struct slp_csv *c)
{
	if (c->file) fclose(c->file);
	free(c->text);
	c->file = NULL;
	c->text = NULL;
}

/* ---- a field ---------------------------------------------------------------------------------------------------- */

static bool grow(struct slp_csv *c)
{
	size_t room = c->room ? 2 * c->room : 64;
	if (c->length >= LONGEST)
		return slp_data_fail(SL_EFORMAT, "%s: line %lld, column %d: a field of more than %d bytes", c->path,
		                     (long long)c->begin, c->column, LONGEST);
	char *text = slp_realloc(c->text, room);
	if (!text) return false;
	c->text = text;
	c->room = room;
	return true;
}

/* There is always room for one more behind it. */
static bool put(struct slp_csv *c, int byte)
{
	if (!byte)
		return slp_data_fail(SL_EFORMAT, "%s: line %lld, column %d: a zero byte", c->path, (long long)c->line,
		                     c->column);
	c->text[c->length++] = (char)byte;
	return c->length + 1 < c->room || grow(c);
}

static int next_byte(struct slp_csv *c)
{
	int byte = getc_unlocked(c->file);
	if (byte == '\r') { /* CR LF is one line end; so is CR alone */
		byte = getc_unlocked(c->file);
		if (byte != '\n') ungetc(byte, c->file);
		byte = '\n';
	}
	return byte;
}

/* Whether the byte ends a field that is not in quotes. */
static bool ends(struct slp_csv *c, int byte)
{
	return byte == EOF || byte == '\n' || byte == (unsigned char)c->separator;
}

static bool end_field(struct slp_csv *c, int byte)
{
	if (byte == '\n') c->line++;
	c->last = byte != (unsigned char)c->separator;
	if (ferror(c->file)) return slp_data_fail(SL_EIO, "%s: cannot be read: %s", c->path, strerror(errno));
	return true;
}

static bool in_quotes(struct slp_csv *c)
{
	for (;;) {
		int byte = getc_unlocked(c->file);
		if (byte == EOF)
			return slp_data_fail(SL_EFORMAT,
			                     "%s: ends within the quotes that begin in line %lld, column %d", c->path,
			                     (long long)c->begin, c->column);
		if (byte == '\n') c->line++;
		if (byte == '"') {
			byte = next_byte(c);
			if (ends(c, byte)) return end_field(c, byte);
			if (byte != '"')
				return slp_data_fail(SL_EFORMAT,
				                     "%s: line %lld, column %d: something follows the closing quote",
				                     c->path, (long long)c->line, c->column);
		}
		if (!put(c, byte)) return false;
	}
}

static bool read_field(struct slp_csv *c, int byte)
{
	c->quoted = byte == '"';
	if (c->quoted) return in_quotes(c);
	for (; !ends(c, byte); byte = next_byte(c))
		if (!put(c, byte)) return false;
	return end_field(c, byte);
}

int slp_csv_next(struct slp_csv *c)
{
	bool first = c->last;
	int byte = next_byte(c);
	for (; first && byte == '\n'; byte = next_byte(c)) c->line++;
	if (first && byte == EOF)
		return ferror(c->file) ? slp_data_fail(SL_EIO, "%s: cannot be read: %s", c->path, strerror(errno)) - 1
		                       : 0;
	c->column = first ? 1 : c->column + 1;
	if (c->column > MOST_COLUMNS)
		return slp_data_fail(SL_EFORMAT, "%s: line %lld has more than %d columns", c->path, (long long)c->begin,
		                     MOST_COLUMNS) -
		       1;
	c->begin = c->line;
	c->length = 0;
	if (!c->text && !grow(c)) return -1;
	if (!read_field(c, byte)) return -1;
	c->text[c->length] = '\0';
	return 1;
}
