/* Data sets of CSV files: read once, kept as arrays. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/arrays.h"
#include "data/csv.h"
#include "number.h"
#include "op.h"
#include "runtime/budget.h"
#include "options.h"
#include "starling/data.h"
#include "tensor/tensor.h"

enum { MOST_NAMES = 1 << 16 };

/* A label, numbered as it first occurred. */
struct name {
	char *text;
	int32_t number;
};

struct table {
	struct slp_csv csv;
	struct sl_csv_opts opts;
	int columns, label; /* of the file; which is y, 0: none */
	bool trailing;      /* whether lines end in a separator */
	int64_t rows, room; /* rows that there is memory for */
	float *x, *y;
	int32_t *labels;    /* numbers of names, then classes */
	struct name *names; /* sorted by text */
	int nnames, names_room;
};

/* ---- labels ----------------------------------------------------------------------------------------------------- */

static bool grow_names(struct table *t)
{
	int room = t->names_room ? 2 * t->names_room : 16;
	if (t->nnames == MOST_NAMES)
		return slp_data_fail(SL_EFORMAT, "%s: column %d has more than %d different labels; is it .regression?",
		                     t->csv.path, t->label, MOST_NAMES);
	struct name *names = slp_realloc(t->names, (size_t)room * sizeof *names);
	if (!names) return false;
	t->names = names;
	t->names_room = room;
	return true;
}

static bool find_name(struct table *t, const char *text, int32_t *number)
{
	int low = 0, high = t->nnames;
	while (low < high) {
		int middle = (low + high) / 2, order = strcmp(text, t->names[middle].text);
		if (!order) {
			*number = t->names[middle].number;
			return true;
		}
		if (order < 0) high = middle;
		else low = middle + 1;
	}
	if (t->nnames == t->names_room && !grow_names(t)) return false;
	char *copy = slp_strdup(text);
	if (!copy) return false;
	memmove(t->names + low + 1, t->names + low, (size_t)(t->nnames - low) * sizeof *t->names);
	t->names[low] = (struct name){copy, *number = t->nnames};
	t->nnames++;
	return true;
}

/* A label without the blanks around it, as a number; false: it is none. */
static bool number_of(const char *text, double *v)
{
	char *end;
	if (text[strspn(text, "+-.0123456789eE")]) return false; /* nor nan, inf and hexadecimal digits */
	*v = slp_number_read(text, &end);
	return end != text && !*end && isfinite(*v);
}

static int by_number(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static bool is_class(double v)
{
	return v >= 0 && v < SLP_MAX_CLASSES && v == floor(v);
}

/* The labels, all of them numbers, sorted and unique.  Returns their number. */
static int sort_numbers(const double *values, int n, double *sorted)
{
	int count = 0;
	memcpy(sorted, values, (size_t)n * sizeof *sorted);
	qsort(sorted, (size_t)n, sizeof *sorted, by_number);
	for (int i = 0; i < n; i++)
		if (!count || sorted[i] > sorted[count - 1]) sorted[count++] = sorted[i];
	return count;
}

/* Numbers that are no classes themselves: their places in numeric order, and texts of them. */
static bool rank_numbers(const struct table *t, const double *values, int32_t *to, char **texts, int *count)
{
	char text[32];
	double *sorted = slp_malloc(((size_t)t->nnames + 1) * sizeof *sorted);
	if (!sorted) return false;
	*count = sort_numbers(values, t->nnames, sorted);
	for (int i = 0; i < t->nnames; i++) {
		const double *found = bsearch(values + i, sorted, (size_t)*count, sizeof *sorted, by_number);
		to[t->names[i].number] = (int32_t)(found - sorted);
	}
	bool ok = true;
	for (int i = 0; ok && i < *count; i++)
		ok = (texts[i] = slp_strdup(slp_number_text(sorted[i], false, text))) != NULL;
	free(sorted);
	return ok;
}

/* Labels that are whole numbers from 0 are unchanged.  Other numbers become their places in numeric order, texts their
 * places among the sorted texts: then there are `count` names in texts. */
static bool number_classes(const struct table *t, int32_t *to, char **texts, int *count, int32_t *largest)
{
	double *values = slp_malloc(((size_t)t->nnames + 1) * sizeof *values);
	bool numbers = values != NULL, classes = true, ok = values != NULL;
	*largest = -1;
	*count = 0;
	for (int i = 0; numbers && i < t->nnames; i++) {
		numbers = number_of(t->names[i].text, values + i);
		classes &= numbers && is_class(values[i]);
	}
	if (numbers && !classes) ok = rank_numbers(t, values, to, texts, count);
	for (int i = 0; ok && i < t->nnames && (!numbers || classes); i++) {
		int32_t v = to[t->names[i].number] = numbers ? (int32_t)values[i] : i;
		if (v > *largest) *largest = v;
		if (!numbers) ok = (texts[(*count)++] = slp_strdup(t->names[i].text)) != NULL;
	}
	free(values);
	return ok;
}

static bool make_classes(struct table *t, sl_dataset *d)
{
	int32_t *to = slp_malloc(((size_t)t->nnames + 1) * sizeof *to), largest = -1;
	char **texts = slp_calloc((size_t)t->nnames + 1, sizeof *texts);
	int count = 0;
	bool ok = to && texts && number_classes(t, to, texts, &count, &largest);
	for (int64_t i = 0; ok && i < t->rows; i++) t->labels[i] = to[t->labels[i]];
	free(to);
	if (ok && count) {
		slp_dataset_names(d, texts, count);
		return true;
	}
	slp_names_free(texts, texts ? count : 0);
	return ok && slp_dataset_classes(d, largest + 1);
}

/* ---- rows ------------------------------------------------------------------------------------------------------- */

static bool resize(void **p, size_t bytes)
{
	void *more = slp_realloc(*p, bytes);
	if (more) *p = more;
	return more != NULL;
}

static bool grow(struct table *t)
{
	enum { FIRST_ROWS = 256, FIRST_ELEMENTS = 1 << 16 }; /* a wide first line promises no further lines */
	size_t width = (size_t)(t->columns - (t->label > 0)), first = width ? FIRST_ELEMENTS / width : FIRST_ROWS;
	size_t room = t->room ? 2 * (size_t)t->room : first > FIRST_ROWS ? FIRST_ROWS : first + !first;
	if (t->rows == INT32_MAX) return slp_data_fail(SL_EFORMAT, "%s: has more than %d rows", t->csv.path, INT32_MAX);
	if (!resize((void **)&t->x, room * (width ? width : 1) * sizeof *t->x)) return false;
	if (t->label && t->opts.regression && !resize((void **)&t->y, room * sizeof *t->y)) return false;
	if (t->label && !t->opts.regression && !resize((void **)&t->labels, room * sizeof *t->labels)) return false;
	t->room = (int64_t)room;
	return true;
}

static bool number(struct table *t, float *to)
{
	const struct slp_csv *c = &t->csv;
	char *end = c->text;
	double v = c->length ? slp_number_read(c->text, &end) : 0;
	while (*end == ' ' || *end == '\t') end++;
	bool is_hexadecimal = c->text[strcspn(c->text, "xX")];
	if (end != c->text && !*end && !is_hexadecimal) {
		*to = (float)v;
		if (!isinf(*to) || c->text[strcspn(c->text, "iI")]) return true; /* as text */
		return slp_data_fail(SL_EFORMAT, "%s: line %lld, column %d: '%.40s' is not a value of float32", c->path,
		                     (long long)c->begin, c->column, c->text);
	}
	if (!c->text[strspn(c->text, " \t")] && t->opts.missing) {
		*to = __builtin_nanf("");
		return true;
	}
	return slp_data_fail(SL_EFORMAT, "%s: line %lld, column %d: '%.40s' is not a number", c->path,
	                     (long long)c->begin, c->column, c->text);
}

static bool refuse_width(const struct table *t, int64_t line)
{
	return slp_data_fail(SL_EFORMAT, "%s: line %lld has %s %d fields, the first line has %d", t->csv.path,
	                     (long long)line, t->csv.column > t->columns ? "more than" : "only",
	                     t->csv.column > t->columns ? t->columns : t->csv.column, t->columns);
}

/* A label: the text without blanks around it, unless it is in quotes. */
static bool label(struct table *t)
{
	const struct slp_csv *c = &t->csv;
	char *text = c->text + (c->quoted ? 0 : strspn(c->text, " \t"));
	for (size_t n = strlen(text); !c->quoted && n && strchr(" \t", text[n - 1]); n--) text[n - 1] = '\0';
	if (*text) return find_name(t, text, t->labels + t->rows);
	return slp_data_fail(SL_EFORMAT, "%s: line %lld, column %d: the label is empty", c->path, (long long)c->begin,
	                     c->column);
}

static bool put_field(struct table *t)
{
	int column = t->csv.column, width = t->columns - (t->label > 0);
	if (t->trailing && column == t->columns + 1 && !t->csv.length) return true;
	if (column > t->columns) return refuse_width(t, t->csv.begin);
	if (column != t->label) return number(t, t->x + t->rows * width + column - 1 - (t->label && column > t->label));
	return t->opts.regression ? number(t, t->y + t->rows) : label(t);
}

/* Fields of one line into its row, or past it.  1, 0 at the end of the file, -1 after an error. */
static int read_line(struct table *t, bool keep)
{
	int64_t line = 0;
	do {
		int got = slp_csv_next(&t->csv);
		if (got <= 0) return got;
		if (t->csv.column == 1) line = t->csv.begin;
		if (keep && !put_field(t)) return -1;
	} while (!t->csv.last);
	return keep && t->csv.column < t->columns && !refuse_width(t, line) ? -1 : 1;
}

/* The number of columns of the first line; the file is rewound. */
static bool count_columns(struct table *t)
{
	int got = read_line(t, false);
	if (got < 0) return false;
	if (!got) return slp_data_fail(SL_EFORMAT, "%s: is empty", t->csv.path);
	/* Some programs end each line in a separator. */
	t->trailing = !t->opts.missing && t->csv.column > 1 && !t->csv.length && !t->csv.quoted;
	t->columns = t->csv.column - t->trailing;
	t->label = t->opts.label < 0 ? 0 : t->opts.label ? t->opts.label : t->columns;
	if (t->label > t->columns)
		return slp_data_fail(SL_EINVAL, "%s: label is column %d of %d", t->csv.path, t->label, t->columns);
	if (t->columns == 1 && t->label)
		return slp_data_fail(SL_EFORMAT, "%s: has only the column of the label", t->csv.path);
	return true;
}

static bool read_rows(struct table *t)
{
	const char *path = t->csv.path;
	if (!count_columns(t)) return false;
	if (!t->opts.header) { /* again, for its values */
		slp_csv_close(&t->csv);
		if (!slp_csv_open(&t->csv, path, t->csv.separator)) return false;
	}
	for (;; t->rows++) {
		if (!slp_data_spend(path, t->columns) || (t->rows == t->room && !grow(t))) return false;
		int got = read_line(t, true);
		if (got < 0) return false;
		if (!got) break;
	}
	return t->rows || slp_data_fail(SL_EFORMAT, "%s: has no rows after its header", path);
}

static void clear(struct table *t)
{
	slp_csv_close(&t->csv);
	free(t->x);
	free(t->y);
	free(t->labels);
	for (int i = 0; i < t->nnames; i++) free(t->names[i].text);
	free(t->names);
}

static sl_dataset *make(struct table *t)
{
	struct sl_array x = {t->x, SL_SHAPE(t->rows, t->columns - (t->label > 0)), SL_FLOAT32};
	struct sl_array y = {t->labels, SL_SHAPE(t->rows), SL_INT32};
	if (t->opts.regression) y = (struct sl_array){t->y, SL_SHAPE(t->rows), SL_FLOAT32};
	struct sl_dataset names = {0};
	if (t->label && !t->opts.regression && !make_classes(t, &names)) {
		free(names.numbers);
		return NULL;
	}
	void *owned = t->opts.regression ? (void *)t->y : t->labels;
	sl_dataset *d = slp_arrays_own(x, y, t->x, t->label ? owned : NULL);
	t->x = t->y = NULL;
	t->labels = NULL;
	if (d && names.names) slp_dataset_names(d, names.names, names.classes);
	else slp_names_free(names.names, names.classes);
	free(names.numbers);
	return d;
}

/* A data set of a CSV file (RFC 4180: fields may be quoted, lines end in LF or CR LF): each line is a sample; one
 * column is y, a label, or with .regression a number, and the other columns are x, float32.  Labels that are whole
 * numbers from 0, such as 3 and 10.0, are class numbers; other numbers become classes in numeric order, texts in
 * alphabetical order, without blanks around them; see struct sl_csv_opts.  A separator at the end of each line is
 * ignored, unless .missing allows empty fields.  Numbers have a decimal point in every locale.  The values are kept in
 * memory, 4 bytes each.  NULL with SL_EIO: the file cannot be read; SL_EFORMAT: it is malformed, has a number beyond
 * float32 or an empty label, and the message says where; SL_EINVAL: it has no such column.
 *
 *     sl_dataset *iris = sl_dataset_csv("iris.csv", .header = true); */
sl_dataset *sl_dataset_csv_at(const char *at, const char *path, struct sl_csv_opts opts)
{
	SLP_CALL("sl_dataset_csv", at);
	SLP_BUDGET(path);
	if (!SLP_OPTIONS(sl_csv_opts, at, "sl_dataset_csv", &opts)) return NULL;
	if (!slp_given(at, "sl_dataset_csv", "path", path)) return NULL;
	char separator = opts.separator ? opts.separator : ',';
	if (strchr("\"\r\n", separator))
		return slp_call_fail(at, "sl_dataset_csv", SL_EINVAL, "this character cannot be a separator");
	struct table t = {.opts = opts};
	sl_dataset *d = slp_csv_open(&t.csv, path, separator) && read_rows(&t) ? make(&t) : NULL;
	clear(&t);
	return d;
}
