/* Printing tensors as NumPy does: aligned columns, long axes abbreviated, then type, shape and device. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"
#include "op.h"
#include "runtime/fault.h"
#include "tensor/tensor.h"

enum { EDGE = 3, ABBREVIATE_FROM = 1000, CELL = 32 };

struct printer {
	FILE *file;
	struct slp_view view;
	bool abbreviate;
	int width, decimals;
	bool scientific;
};

/* Which elements of an axis are shown: all, or EDGE at each end. */
static bool is_hidden(const struct printer *p, int64_t i, int64_t n)
{
	return p->abbreviate && n > 2 * EDGE && i >= EDGE && i < n - EDGE;
}

/* Calls fn for each element that is shown. */
static void each_shown(struct printer *p, int axis, int64_t at, void (*fn)(struct printer *, int64_t))
{
	const sl_shape *s = &p->view.type.shape;
	if (axis == s->ndim) {
		fn(p, at);
		return;
	}
	for (int64_t i = 0; i < s->dim[axis]; i++)
		if (!is_hidden(p, i, s->dim[axis])) each_shown(p, axis + 1, at * s->dim[axis] + i, fn);
}

static void choose_notation(struct printer *p, int64_t at)
{
	double v = slp_get(&p->view, at), a = fabs(v);
	if (isfinite(v) && (a >= 1e8 || (a > 0 && a < 1e-4))) p->scientific = true;
}

static void format(const struct printer *p, int64_t at, char cell[CELL])
{
	double v = slp_get(&p->view, at);
	if (p->view.type.dtype == SL_INT64) /* a double has not all of its digits */
		snprintf(cell, CELL, "%lld", (long long)((const int64_t *)p->view.ptr)[at]);
	else if (p->view.type.dtype == SL_UINT64)
		snprintf(cell, CELL, "%llu", (unsigned long long)((const uint64_t *)p->view.ptr)[at]);
	else if (isnan(v)) snprintf(cell, CELL, "nan");
	else if (isinf(v)) snprintf(cell, CELL, v < 0 ? "-inf" : "inf");
	else if (!slp_is_float(p->view.type.dtype)) slp_snprintf(cell, CELL, "%.0f", v);
	else slp_snprintf(cell, CELL, p->scientific ? "%.*e" : "%.*f", p->decimals, v);
}

/* Digits after the point that are needed, up to four. */
static void count_decimals(struct printer *p, int64_t at)
{
	double v = slp_get(&p->view, at);
	for (int d = p->decimals; d < 4; d++) {
		double scaled = v * pow(10, d);
		if (!isfinite(v) || (!p->scientific && fabs(scaled - nearbyint(scaled)) < 1e-6 * (1 + fabs(scaled))))
			return;
		p->decimals = d + 1;
	}
}

static void measure(struct printer *p, int64_t at)
{
	char cell[CELL];
	format(p, at, cell);
	int n = (int)strlen(cell);
	if (n > p->width) p->width = n;
}

static void print_cell(struct printer *p, int64_t at)
{
	char cell[CELL];
	format(p, at, cell);
	fprintf(p->file, "%*s", p->width, cell);
}

/* Between two entries of an axis: a blank in a row, a line end between rows, empty lines between blocks. */
static void separate(struct printer *p, int axis)
{
	int ends = p->view.type.shape.ndim - 1 - axis;
	for (int i = 0; i < ends; i++) fputc('\n', p->file);
	fprintf(p->file, "%*s", ends ? axis + 1 : 1, "");
}

static void print_axis(struct printer *p, int axis, int64_t at)
{
	const sl_shape *s = &p->view.type.shape;
	if (axis == s->ndim) {
		print_cell(p, at);
		return;
	}
	fputc('[', p->file);
	for (int64_t i = 0; i < s->dim[axis]; i++) {
		bool hidden = is_hidden(p, i, s->dim[axis]);
		if (hidden && i > EDGE) continue;
		if (i) separate(p, axis);
		if (hidden) fputs("...", p->file);
		else print_axis(p, axis + 1, at * s->dim[axis] + i);
	}
	fputc(']', p->file);
}

/* Waits for the values of t and prints them as NumPy does, with type, shape and device on a last line; arrays of more
 * than 1000 elements are abbreviated.  Prints the name of a symbol.  Returns the first error, like sl_read.
 *
 *     [[1 2 3]
 *      [4 5 6]]
 *     <float32 (2, 3) @cpu:0> */
enum sl_status sl_fprint_at(const char *at, FILE *file, sl_tensor *t)
{
	SLP_CALL("sl_fprint", at);
	if (!slp_given(at, "sl_fprint", "file", file)) return slp_error_take();
	if (t && t->symbol) {
		fprintf(file, "<Symbol %s>\n", slp_symbolic->name(t->symbol));
		return SL_OK;
	}
	void *data = slp_host_begin(at, "sl_print", t, false);
	if (!data) return slp_error_take();
	struct printer p = {.file = file, .view = {data, t->type}, .abbreviate = sl_tensor_size(t) > ABBREVIATE_FROM};
	each_shown(&p, 0, 0, choose_notation);
	each_shown(&p, 0, 0, count_decimals);
	if (p.scientific) p.decimals = 4;
	each_shown(&p, 0, 0, measure);
	print_axis(&p, 0, 0);
	slp_host_end(t);
	char type[160], device[SL_DEVICE_NAME_MAX];
	fprintf(file, "\n<%s @%s>\n", slp_type_string(&t->type, type), sl_device_name(t->device, device));
	return sl_error() == SL_OK ? SL_OK : slp_error_take();
}

/* sl_fprint to standard output, with its errors. */
enum sl_status sl_print_at(const char *at, sl_tensor *t)
{
	SLP_CALL("sl_print", at);
	return sl_fprint_at(at, stdout, t);
}
