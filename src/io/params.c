/* Lists of named tensors: recognises a file's format; common parts of all formats. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "ascii.h"
#include "io/params.h"
#include "runtime/budget.h"
#include "op.h"

static const struct format {
	const char *ending;
	bool (*parse)(struct slp_file *f, struct slp_arrays *p);
	void (*write)(struct slp_out *o, const char *const *names, sl_tensor *const *tensors, int count);
} formats[] = {
        {".params", slp_mxnet_params_parse, slp_mxnet_params_write},
        {".safetensors", slp_safetensors_parse, slp_safetensors_write},
        {NULL, NULL, NULL},
};

static const struct format *format_of(const char *at, const char *function, const char *path)
{
	const struct format *f = formats;
	while (path && f->ending && !slp_path_ends(path, f->ending)) f++;
	if (path && f->ending) return f;
	return slp_call_fail(at, function, SL_EINVAL, "%s: a file of parameters is named *.params or *.safetensors",
	                     path ? path : "(no path)");
}

const char *slp_arrays_quote(const char *name, uint64_t length, char text[80])
{
	enum { SHOWN = 70 };
	size_t n = 0;
	text[n++] = '"';
	for (uint64_t i = 0; i < length && i < SHOWN; i++) text[n++] = slp_is_printable(name[i]) ? name[i] : '?';
	snprintf(text + n, 80 - n, "%s\"", length > SHOWN ? "…" : "");
	return text;
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

void slp_arrays_free(char **names, sl_tensor **tensors, int count)
{
	for (int i = 0; i < count; i++) {
		free(names[i]);
		sl_release(tensors[i]);
	}
	free(names);
	free(tensors);
}

static bool grow(struct slp_arrays *p)
{
	if (p->count < p->capacity) return true;
	int capacity = p->capacity ? 2 * p->capacity : 16;
	char **names = slp_realloc(p->names, (size_t)capacity * sizeof *names);
	if (names) p->names = names;
	sl_tensor **tensors = slp_realloc(p->tensors, (size_t)capacity * sizeof *tensors);
	if (tensors) p->tensors = tensors;
	if (!names || !tensors) return false;
	p->capacity = capacity;
	return true;
}

/* Of bytes that no 0 follows. */
static char *copy_name(const char *name, size_t length)
{
	char *copy = slp_malloc(length + 1);
	if (!copy) return NULL;
	memcpy(copy, name, length);
	copy[length] = '\0';
	return copy;
}

bool slp_arrays_add(struct slp_file *f, struct slp_arrays *p, const char *name, uint64_t length, sl_tensor *t)
{
	if (!t) return false;
	if (!slp_file_spend(f, (double)sl_tensor_size(t))) {
		sl_release(t);
		return false;
	}
	char text[80], *copy = NULL;
	bool ok = false;
	if (!length || memchr(name, 0, (size_t)length))
		slp_file_fail(f, SL_EFORMAT, "array %d has the impossible name %s", p->count,
		              slp_arrays_quote(name, length, text));
	else if (p->count == INT_MAX / 4 || !grow(p) || !(copy = copy_name(name, (size_t)length)))
		slp_file_fail(f, SL_ENOMEM, "no memory for its names");
	else ok = true;
	if (!ok) {
		sl_release(t);
		return false;
	}
	p->names[p->count] = copy;
	p->tensors[p->count++] = t;
	return true;
}

bool slp_arrays_skip(const struct slp_file *f, const char *name, uint64_t length, const char *why)
{
	char text[80];
	fprintf(stderr, "%s at %s: %s, leniently: tensor %s %s, and is left out\n", f->function, f->at, f->path,
	        slp_arrays_quote(name, length, text), why);
	return true;
}

bool slp_arrays_take(struct slp_file *f, struct slp_arrays *p, const char *name, uint64_t length, enum sl_dtype element,
                     sl_shape shape, const void *data)
{
	char text[80];
	sl_tensor *t = slp_elements_tensor(f, slp_arrays_quote(name, length, text), element, shape, data);
	return slp_arrays_add(f, p, name, length, t);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool check_unique(struct slp_file *f, const struct slp_arrays *p)
{
	char **sorted = slp_malloc((size_t)(p->count + 1) * sizeof *sorted), text[80];
	if (!sorted) return slp_file_fail(f, SL_ENOMEM, "no memory to check its names");
	if (p->count) memcpy(sorted, p->names, (size_t)p->count * sizeof *sorted);
	qsort(sorted, (size_t)p->count, sizeof *sorted, compare);
	for (int i = 1; i < p->count && !f->failed; i++)
		if (!strcmp(sorted[i - 1], sorted[i]))
			slp_file_fail(f, SL_EFORMAT, "has the name %s twice",
			              slp_arrays_quote(sorted[i], strlen(sorted[i]), text));
	free(sorted);
	return !f->failed;
}

static int by_name(const void *a, const void *b, void *names)
{
	int i = *(const int *)a, k = *(const int *)b, order = strcmp(((char **)names)[i], ((char **)names)[k]);
	return order ? order : i - k;
}

int *slp_order_names(char *const *names, int count)
{
	int *order = slp_malloc(((size_t)count + 1) * sizeof *order);
	for (int i = 0; order && i < count; i++) order[i] = i;
	if (order && count) qsort_r(order, (size_t)count, sizeof *order, by_name, (void *)(uintptr_t)names);
	return order;
}

int slp_order_find(char *const *names, const int *order, int count, const char *name)
{
	int low = 0, high = count;
	while (low < high) {
		int middle = low + (high - low) / 2;
		if (strcmp(names[order[middle]], name) < 0) low = middle + 1;
		else high = middle;
	}
	return low < count && !strcmp(names[order[low]], name) ? order[low] : -1;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

bool slp_arrays_parse(struct slp_file *f, struct slp_arrays *p)
{
	const struct format *format = format_of(f->at, f->function, f->path);
	return format && format->parse(f, p) && check_unique(f, p);
}

static int load(const char *at, const char *function, const char *path, char ***names, sl_tensor ***tensors,
                bool lenient)
{
	struct slp_arrays p = {.lenient = lenient};
	struct slp_file f;
	SLP_BUDGET(path);
	*names = NULL;
	*tensors = NULL;
	if (!format_of(at, function, path) || !slp_file_read(&f, at, function, path)) return -1;
	bool ok = slp_arrays_parse(&f, &p);
	free(f.data);
	if (!ok) {
		slp_arrays_free(p.names, p.tensors, p.count);
		return -1;
	}
	*names = p.names;
	*tensors = p.tensors;
	return p.count;
}

int slp_arrays_load_as(const char *at, const char *function, const char *path, char ***names, sl_tensor ***tensors)
{
	return load(at, function, path, names, tensors, false);
}

int slp_arrays_load_leniently(const char *at, const char *function, const char *path, char ***names,
                              sl_tensor ***tensors)
{
	return load(at, function, path, names, tensors, true);
}

int slp_arrays_load(const char *at, const char *path, char ***names, sl_tensor ***tensors)
{
	return slp_arrays_load_as(at, "sl_load_params", path, names, tensors);
}

static bool all_usable(const char *at, const char *function, sl_tensor *const *tensors, int count)
{
	for (int i = 0; i < count; i++)
		if (!slp_tensor_usable(at, function, tensors[i])) return false;
	return true;
}

bool slp_arrays_put(struct slp_out *o, const char *const *names, sl_tensor *const *tensors, int count)
{
	const struct format *format = format_of(o->at, o->function, o->path);
	if (format && all_usable(o->at, o->function, tensors, count)) format->write(o, names, tensors, count);
	else o->failed = true;
	return !o->failed;
}

enum sl_status slp_arrays_save_as(const char *at, const char *function, const char *path, const char *const *names,
                                  sl_tensor *const *tensors, int count)
{
	struct slp_out o;
	if (!all_usable(at, function, tensors, count)) return sl_error() != SL_OK ? sl_error() : SL_EINVAL;
	if (!format_of(at, function, path) || !slp_out_open(&o, at, function, path)) return sl_error();
	slp_arrays_put(&o, names, tensors, count);
	return slp_out_close(&o);
}

enum sl_status slp_arrays_save(const char *at, const char *path, const char *const *names, sl_tensor *const *tensors,
                               int count)
{
	return slp_arrays_save_as(at, "sl_save_params", path, names, tensors, count);
}
