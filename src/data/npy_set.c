/* Data sets of arrays in .npy files, of which each sample reads its rows. */
#include <stdlib.h>
#include <string.h>

#include "data/arrays.h"
#include "data/disk.h"
#include "io/crc32c.h"
#include "io/elements.h"
#include "op.h"
#include "runtime/budget.h"
#include "starling/data.h"

struct column {
	struct slp_disk disk;
	enum sl_dtype element;
	int64_t begin, rows; /* where the values begin */
	int64_t n;           /* elements of a sample */
};

struct npy_set {
	struct sl_dataset base;
	struct column x, y;
};

static bool get_row(const struct column *c, int64_t index, void *to)
{
	size_t size = slp_elements[c->element].bytes, bytes = (size_t)c->n * size;
	int64_t from = c->begin + index * (int64_t)bytes;
	if (slp_elements_plain(c->element)) return slp_disk_read(&c->disk, from, to, bytes);
	void *row = slp_try_malloc(bytes);
	if (!row) return slp_data_fail(SL_ENOMEM, "%s: no memory for a sample of %zu bytes", c->disk.path, bytes);
	bool ok = slp_disk_read(&c->disk, from, row, bytes);
	int64_t wrong = ok ? slp_elements_copy(c->element, row, to, c->n) : -1;
	free(row);
	if (wrong >= 0)
		return slp_data_fail(SL_EDTYPE, "%s: element %lld is larger than an int64 can be", c->disk.path,
		                     (long long)(index * c->n + wrong));
	return ok;
}

static bool get(const sl_dataset *d, struct sl_sample *s)
{
	const struct npy_set *set = (const struct npy_set *)d;
	return get_row(&set->x, s->index, s->x) && (!s->y || !d->y.dtype || get_row(&set->y, s->index, s->y));
}

static void give_up(sl_dataset *d)
{
	struct npy_set *set = (struct npy_set *)d;
	slp_disk_close(&set->x.disk);
	slp_disk_close(&set->y.disk);
}

static bool sums(const sl_dataset *d, uint32_t sums[2])
{
	const struct npy_set *set = (const struct npy_set *)d;
	return slp_disk_sum(&set->x.disk, &sums[0]) && (!d->y.dtype || slp_disk_sum(&set->y.disk, &sums[1]));
}

static const struct slp_source npy_source = {"npy", get, give_up, sums};

/* ---- making one ------------------------------------------------------------------------------------------------- */

static bool check_size(const struct column *c, sl_shape shape)
{
	uint64_t bytes;
	char text[128];
	if (!slp_elements_size(c->element, shape, &bytes))
		return slp_data_fail(SL_EFORMAT, "%s: has the impossible shape %s", c->disk.path,
		                     sl_shape_string(shape, text));
	if ((int64_t)bytes != c->disk.size - c->begin)
		return slp_data_fail(SL_EFORMAT, "%s: has shape %s, %llu bytes, but %lld follow its header",
		                     c->disk.path, sl_shape_string(shape, text), (unsigned long long)bytes,
		                     (long long)(c->disk.size - c->begin));
	return true;
}

/* Only as much of the file is read as a header can take; the parser sees it end there. */
static bool read_header(const char *at, struct column *c, sl_shape *shape)
{
	enum { MOST = 1 << 17 };
	size_t size = c->disk.size < MOST ? (size_t)c->disk.size : MOST;
	struct slp_file f = {.at = at, .function = "sl_dataset_npy", .path = c->disk.path, .size = size};
	f.data = slp_malloc(size + 1);
	bool ok = f.data && slp_disk_read(&c->disk, 0, f.data, size) && slp_npy_header(&f, &c->element, shape);
	c->begin = (int64_t)f.pos;
	free(f.data);
	return ok;
}

static bool open_column(const char *at, struct column *c, const char *path, struct sl_array *of)
{
	sl_shape shape;
	if (!slp_disk_open(&c->disk, path) || !read_header(at, c, &shape) || !check_size(c, shape) ||
	    !slp_rows_split(c->disk.path, shape, &c->rows, &of->shape))
		return false;
	of->dtype = slp_elements_wide(c->element);
	c->n = sl_shape_size(of->shape);
	return true;
}

static bool fill(const char *at, struct npy_set *set, const char *x, const char *y, struct sl_dataset_opts opts)
{
	sl_dataset *d = &set->base;
	set->x.disk.file = set->y.disk.file = -1;
	if (!open_column(at, &set->x, x, &d->x)) return false;
	d->size = set->x.rows;
	if (y && (!open_column(at, &set->y, y, &d->y) || !slp_rows_fit(x, d->size, y, set->y.rows))) return false;
	if (opts.classes && (d->y.dtype != SL_INT32 || d->y.shape.ndim))
		return slp_data_fail(SL_EDTYPE, "%s is not a list of integers, as labels of classes are", y ? y : "y");
	return slp_dataset_classes(d, opts.classes);
}

/* A data set of arrays that NumPy saved (np.save): x are the rows of the first file, y those of the second; NULL: no y.
 * Types as in sl_load_npy.  Rows are read on request and not kept, so a file may be larger than memory.  The files must
 * not change.  NULL with SL_EIO: a file cannot be read; SL_EFORMAT: it is malformed; SL_EDTYPE, SL_EUNSUPPORTED: as in
 * sl_load_npy, or y has no integer labels; SL_ESHAPE: x and y do not have the same number of rows.  With .classes, a
 * label out of range is SL_EFORMAT when its sample is read.
 *
 *     sl_dataset *d = sl_dataset_npy("images.npy", "labels.npy", .classes = 10); */
sl_dataset *sl_dataset_npy_at(const char *at, const char *x, const char *y, struct sl_dataset_opts opts)
{
	SLP_CALL("sl_dataset_npy", at);
	SLP_BUDGET(x);
	if (!slp_given(at, "sl_dataset_npy", "path of x", x)) return NULL;
	struct npy_set *set = slp_dataset_new(sizeof *set, &npy_source);
	if (!set) return NULL;
	if (fill(at, set, x, y, opts)) return &set->base;
	sl_dataset_free(&set->base);
	return NULL;
}
