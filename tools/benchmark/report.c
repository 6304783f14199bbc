/* Results as a table (text or Markdown) and as JSON (one object a line). */
#include <jansson.h>
#include <string.h>

#include "../../models/driver/common.h"
#include "bench.h"

enum { COLUMNS = 9, CELL = 64 };
typedef char cells[COLUMNS][CELL];

static const struct {
	const char *title;
	int width;
} columns[COLUMNS] = {
        {"case", 20},    {"median", 16}, {"min–max", 15}, {"rate", 16}, {"floor", 8},
        {"of floor", 9}, {"peer", 8},    {"× peer", 7},   {"goal", 0},
};

/* Characters, not bytes. */
static int width(const char *text)
{
	int n = 0;
	for (; *text; text++) n += (*text & 0xC0) != 0x80;
	return n;
}

static void print_widths(FILE *file, enum bench_format format, cells row, const int widths[COLUMNS])
{
	for (int i = 0; i < COLUMNS; i++) {
		if (format == BENCH_MARKDOWN) {
			fprintf(file, "| %s ", row[i]);
			continue;
		}
		int pad = widths[i] - width(row[i]);
		fprintf(file, "%s%*s", row[i], i < COLUMNS - 1 ? (pad > 0 ? pad : 0) + 1 : 0, "");
	}
	fputs(format == BENCH_MARKDOWN ? "|\n" : "\n", file);
	fflush(file);
}

static void print_cells(FILE *file, enum bench_format format, cells row)
{
	int widths[COLUMNS];
	for (int i = 0; i < COLUMNS; i++) widths[i] = columns[i].width;
	print_widths(file, format, row, widths);
}

void bench_print_head(FILE *file, enum bench_format format)
{
	cells row;
	for (int i = 0; i < COLUMNS; i++) snprintf(row[i], CELL, "%s", columns[i].title);
	print_cells(file, format, row);
	if (format == BENCH_MARKDOWN) fputs("|---|---|---|---|---|---|---|---|---|\n", file);
}

/* Three digits or more. */
static char *number(double v, char text[CELL])
{
	if (isnan(v)) text[0] = '\0';
	else snprintf(text, CELL, "%.*f", fabs(v) >= 100 ? 0 : fabs(v) >= 10 ? 1 : fabs(v) >= 0.1 ? 2 : 4, v);
	return text;
}

/* "808 images/s", and where the energy is known "3.10/J" of the same. */
static void rate_text(const struct bench_case *c, const struct bench_summary *s, char text[CELL])
{
	char a[CELL], b[CELL];
	if (!c->rate_unit) return;
	int n = snprintf(text, CELL, "%.24s %.16s", number(s->rate, a), c->rate_unit);
	if (isfinite(s->per_joule) && s->per_joule > 0)
		snprintf(text + n, CELL - (size_t)n, ", %.12s/J", number(s->per_joule, b));
}

static void goal_text(const struct bench_case *c, const struct bench_summary *s, char text[CELL])
{
	static const char *const forms[] = {
	        [BENCH_NO_GOAL] = "%s%s",
	        [BENCH_AT_MOST] = "≤ %s: %s",
	        [BENCH_AT_LEAST] = "≥ %s: %s",
	        [BENCH_OF_FLOOR] = "≥ %s of floor: %s",
	        [BENCH_OF_PEER] = "≥ %s × peer: %s",
	};
	char limit[CELL] = "";
	bool open = c->goal.kind == BENCH_OF_PEER && isnan(s->peer_ratio);
	const char *met = open ? "no peer" : s->met ? "met" : "missed";
	if (c->goal.kind == BENCH_NO_GOAL) met = "";
	else number(c->goal.limit, limit);
	snprintf(text, CELL, forms[c->goal.kind], limit, met);
}

void bench_print_row(FILE *file, enum bench_format format, const struct bench_case *c, const struct bench_result *r)
{
	struct bench_summary s = bench_summarize(c, r);
	cells row = {{0}};
	char a[CELL], b[CELL];
	snprintf(row[0], CELL, "%s", c->name);
	if (*r->error) {
		snprintf(row[1], CELL, "failed");
	} else {
		snprintf(row[1], CELL, "%s %s", number(s.value, a), c->unit);
		snprintf(row[2], CELL, "%.24s–%.24s", number(s.low, a), number(s.high, b));
		rate_text(c, &s, row[3]);
		number(s.floor, row[4]);
		number(s.floor_ratio, row[5]);
		snprintf(row[6], CELL, *r->how ? "%s (%s)" : "%s%s", number(s.peer, a), r->how);
		number(s.peer_ratio, row[7]);
	}
	goal_text(c, &s, row[8]);
	print_cells(file, format, row);
	if (*r->error) fprintf(stderr, "bench: %s: %s\n", c->name, r->error);
}

/* ---- series ------------------------------------------------------------------------------------------------------- */

static const int series_widths[COLUMNS] = {20, 8, 14, 9, 10, 9, 9, 12, 0};

void bench_print_series(FILE *file, enum bench_format format, const struct bench_series *s)
{
	static const char *const titles[COLUMNS] = {"case",     "",     "median", "",      "efficiency",
	                                            "of floor", "peer", "",       "× peer"};
	cells row;
	bool threads = s->kind == BENCH_THREADS;
	for (int i = 0; i < COLUMNS; i++) snprintf(row[i], CELL, "%s", titles[i]);
	snprintf(row[1], CELL, "%s", threads ? "threads" : "beside");
	snprintf(row[3], CELL, "%s", threads ? "speed-up" : "× alone");
	snprintf(row[7], CELL, "its %.40s", row[3]);
	print_widths(file, format, row, series_widths);
	if (format == BENCH_MARKDOWN) fputs("|---|---|---|---|---|---|---|---|---|\n", file);
}

void bench_print_point(FILE *file, enum bench_format format, const struct bench_case *c, const struct bench_result *r,
                       const struct bench_point *p)
{
	struct bench_summary s = bench_summarize(c, r);
	cells row = {{0}};
	char a[CELL];
	snprintf(row[0], CELL, "%s", c->name);
	snprintf(row[1], CELL, "%d", p->count);
	if (*r->error) {
		snprintf(row[2], CELL, "failed");
	} else {
		snprintf(row[2], CELL, "%s %s", number(s.value, a), c->unit);
		number(p->change, row[3]);
		number(p->efficiency, row[4]);
		number(s.floor_ratio, row[5]);
		number(s.peer, row[6]);
		number(p->peer_change, row[7]);
		number(s.peer_ratio, row[8]);
	}
	print_widths(file, format, row, series_widths);
	if (*r->error) fprintf(stderr, "bench: %s: %s\n", c->name, r->error);
}

void bench_print_list(FILE *file)
{
	for (int i = 0; i < bench_case_count(); i++)
		fprintf(file, "%-20s %s\n", bench_case(i)->name, bench_case(i)->doc);
}

/* ---- JSON ----------------------------------------------------------------------------------------------------------
 */

static json_t *real(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *reals(const double *values, int n)
{
	json_t *list = json_array();
	for (int i = 0; i < n; i++) json_array_append_new(list, real(values[i]));
	return list;
}

static json_t *goal(const struct bench_case *c, const struct bench_summary *s)
{
	static const char *const kinds[] = {
	        [BENCH_AT_MOST] = "value_at_most",
	        [BENCH_AT_LEAST] = "value_at_least",
	        [BENCH_OF_FLOOR] = "floor_ratio_at_least",
	        [BENCH_OF_PEER] = "peer_ratio_at_least",
	};
	if (c->goal.kind == BENCH_NO_GOAL) return json_null();
	return json_pack("{s:f, s:b}", kinds[c->goal.kind], c->goal.limit, "met", s->met);
}

static json_t *object_of(const char *machine, const struct bench_case *c, const struct bench_result *r)
{
	struct bench_summary s = bench_summarize(c, r);
	json_t *object =
	        json_pack("{s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s}", "case", c->name, "value",
	                  real(s.value), "unit", c->unit, "floor", real(s.floor), "floor_ratio", real(s.floor_ratio),
	                  "peer", real(s.peer), "peer_ratio", real(s.peer_ratio), "runs", reals(r->value, r->runs),
	                  "rate", real(s.rate), "goal", goal(c, &s), "machine", machine);
	if (!object) return NULL;
	drv_json_stamp(object);
	if (c->rate_unit) json_object_set_new(object, "rate_unit", json_string(c->rate_unit));
	json_object_set_new(object, "joules", real(s.joules));
	json_object_set_new(object, "per_joule", c->rate_count ? real(s.per_joule) : json_null());
	if (*r->how) json_object_set_new(object, "peer_how", json_string(r->how));
	if (*r->error) json_object_set_new(object, "error", json_string(r->error));
	return object;
}

static bool write_line(FILE *file, json_t *object)
{
	bool ok = object && json_dumpf(object, file, JSON_REAL_PRECISION(6)) == 0 && fputc('\n', file) != EOF &&
	          fflush(file) == 0;
	json_decref(object);
	return ok;
}

bool bench_write_json(FILE *file, const char *machine, const struct bench_case *c, const struct bench_result *r)
{
	return write_line(file, object_of(machine, c, r));
}

bool bench_write_point(FILE *file, const char *machine, const struct bench_case *c, const struct bench_result *r,
                       const struct bench_series *s, const struct bench_point *p)
{
	json_t *object = object_of(machine, c, r);
	bool threads = s->kind == BENCH_THREADS;
	if (!object) return false;
	json_object_set_new(object, threads ? "threads" : "beside", json_integer(p->count));
	json_object_set_new(object, threads ? "speed_up" : "times_alone", real(p->change));
	json_object_set_new(object, "efficiency", real(p->efficiency));
	json_object_set_new(object, threads ? "peer_speed_up" : "peer_times_alone", real(p->peer_change));
	return write_line(file, object);
}
