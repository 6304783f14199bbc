/* gather: rows by number; gather_grad adds rows back; one_hot: numbers as rows with a single one. */
#include "common/index.h"
#include "common/move_attrs.h"
#include "common/strided.h"
#include "op_list/move.h"
#include "starling/primitives.h"

static const struct slp_attr gather_grad_attr_table[] = {
        SLP_ATTR(struct slp_gather_grad_attrs, rows, SLP_INT64, 1, "rows of x"),
        {0},
};

static const struct slp_attr one_hot_attr_table[] = {
        SLP_ATTR(struct slp_one_hot_attrs, depth, SLP_INT64, 1, "length of a row"),
        SLP_ATTR(struct slp_one_hot_attrs, dtype, SLP_INT, 1, "data type of the result"),
        {0},
};

/* The rows of x, the elements of a row, and the number of rows that are read. */
struct rows {
	int64_t rows, width, count;
	const int32_t *index;
};

static int64_t width_of(sl_shape shape)
{
	return slp_split_at(shape, 0).inner;
}

/* An index out of range would read or write outside the tensor, so indices are checked before any row is copied. */
static enum sl_status check_rows(const struct slp_kernel *k, const struct rows *r)
{
	for (int64_t i = 0; i < r->count; i++)
		if (r->index[i] < 0 || r->index[i] >= r->rows)
			return slp_kernel_fail(k, SL_EINVAL, "index %d at position %lld is outside the %lld rows",
			                       r->index[i], (long long)i, (long long)r->rows);
	return SL_OK;
}

static enum sl_status check_indices(const struct slp_infer *c, int i)
{
	if (c->in[i].dtype == SL_INT32) return SL_OK;
	return slp_reject(c, SL_EDTYPE, "the indices are %s, int32 or int64 needed", sl_dtype_name(c->in[i].dtype));
}

struct job {
	struct rows r;
	const char *in;
	char *out;
	size_t size; /* of a row in bytes */
};

/* ---- gather ----------------------------------------------------------------------------------------------------- */

static enum sl_status gather_infer(struct slp_infer *c)
{
	sl_shape x = c->in[0].shape, s = c->in[1].shape;
	enum sl_status status = check_indices(c, 1);
	if (status) return status;
	if (x.ndim < 1) return slp_reject(c, SL_ESHAPE, "x is a scalar and has no rows");
	if (s.ndim + x.ndim - 1 > SL_MAX_NDIM)
		return slp_reject(c, SL_ESHAPE, "the result would have %d axes, more than %d", s.ndim + x.ndim - 1,
		                  SL_MAX_NDIM);
	for (int i = 1; i < x.ndim; i++) s.dim[s.ndim++] = x.dim[i];
	c->out[0] = (struct slp_type){c->in[0].dtype, s};
	return SL_OK;
}

static double gather_bytes(const struct slp_infer *c)
{
	return 2.0 * (double)sl_shape_size(c->out[0].shape) * (double)sl_dtype_size(c->out[0].dtype) +
	       4.0 * (double)sl_shape_size(c->in[1].shape);
}

static struct rows gather_rows(const struct slp_kernel *k)
{
	sl_shape x = k->in[0].type.shape;
	return (struct rows){x.dim[0], width_of(x), slp_size(&k->in[1]), k->in[1].ptr};
}

static enum sl_status gather_ref(const struct slp_kernel *k)
{
	struct rows r = gather_rows(k);
	enum sl_status status = check_rows(k, &r);
	if (status) return status;
	for (int64_t i = 0; i < r.count * r.width; i++)
		slp_set(&k->out[0], i, slp_get(&k->in[0], r.index[i / r.width] * r.width + i % r.width));
	return SL_OK;
}

static void gather_range(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	for (int64_t i = begin; i < end; i++)
		slp_copy_run(j->out + (size_t)i * j->size, j->in + (size_t)j->r.index[i] * j->size, j->size);
}

static enum sl_status gather_cpu(const struct slp_kernel *k)
{
	struct job j = {gather_rows(k), k->in[0].ptr, k->out[0].ptr, 0};
	enum sl_status status = check_rows(k, &j.r);
	if (status || j.r.width == 0) return status;
	j.size = (size_t)j.r.width * sl_dtype_size(k->in[0].type.dtype);
	slp_parallel_for(j.r.count, j.r.width < SLP_GRAIN ? SLP_GRAIN / j.r.width : 1, gather_range, &j);
	return SL_OK;
}

static enum sl_status gather_grad_of_gather(struct slp_grad *g)
{
	struct slp_gather_grad_attrs attrs = {sl_tensor_shape(g->in[0]).dim[0]};
	if (!g->need[0]) return SL_OK;
	g->din[0] = slp_apply1(g->at, &slp_op_gather_grad, &attrs, 2, (sl_tensor *[]){g->dout[0], g->in[1]});
	return SL_OK;
}

/* Rows of x (its parts along axis 0) by their indices, int32 or int64 (of fewer than 2^31 rows) of any shape: the shape
 * of the result is that of the indices followed by that of a row.  Any data type of x.  SL_EDTYPE: other indices;
 * SL_ESHAPE: x is a scalar, too many axes.  If an index is negative or too large, the operation fails with SL_EINVAL on
 * a CPU; on a GPU the row is NaN (zeros for integers).
 *
 *     e = sl_gather(words, tokens);    // (vocabulary, width), (batch, length) -> (batch, length, width) */
sl_tensor *sl_gather_at(const char *at, sl_tensor *x, sl_tensor *indices)
{
	SLP_FUNCTION("sl_gather", at);
	return SLP_RETURN(slp_apply1(at, &slp_op_gather, NULL, 2, (sl_tensor *[]){x, slp_as_index(at, indices)}));
}

/* ---- gather_grad ------------------------------------------------------------------------------------------------ */

static enum sl_status gather_grad_infer(struct slp_infer *c)
{
	const struct slp_gather_grad_attrs *a = c->attrs;
	sl_shape dy = c->in[0].shape, s = c->in[1].shape, dx = {.ndim = dy.ndim - s.ndim + 1, .dim = {a->rows}};
	enum sl_status status = check_indices(c, 1);
	if (status) return status;
	if (!slp_is_float(c->in[0].dtype))
		return slp_reject(c, SL_EDTYPE, "dy is %s, float32 or float64 needed", sl_dtype_name(c->in[0].dtype));
	bool fits = dy.ndim >= s.ndim && dx.ndim <= SL_MAX_NDIM && a->rows >= 0;
	for (int i = 0; fits && i < dy.ndim; i++) {
		if (i < s.ndim) fits = dy.dim[i] == s.dim[i];
		else dx.dim[i - s.ndim + 1] = dy.dim[i];
	}
	if (!fits) return slp_reject(c, SL_ESHAPE, "dy must have the shape of the indices, then that of a row");
	c->out[0] = (struct slp_type){c->in[0].dtype, dx};
	return SL_OK;
}

static double gather_grad_flops(const struct slp_infer *c)
{
	return (double)sl_shape_size(c->in[0].shape);
}

/* On a GPU: positions and their indices twice, to sort them, and two sums for each piece of 16 positions or more. */
static size_t gather_grad_scratch(const struct slp_infer *c)
{
	size_t count = (size_t)sl_shape_size(c->in[1].shape), elements = (size_t)sl_shape_size(c->in[0].shape);
	size_t pieces = elements / 16 + (count ? elements / count : 0), wide = c->in[0].dtype == SL_FLOAT64 ? 8 : 4;
	return count * 4 * sizeof(int32_t) + 2 * pieces * wide;
}

static struct rows gather_grad_rows(const struct slp_kernel *k)
{
	sl_shape dx = k->out[0].type.shape;
	return (struct rows){dx.dim[0], width_of(dx), slp_size(&k->in[1]), k->in[1].ptr};
}

static enum sl_status gather_grad_ref(const struct slp_kernel *k)
{
	struct rows r = gather_grad_rows(k);
	enum sl_status status = check_rows(k, &r);
	if (status) return status;
	for (int64_t i = 0; i < r.rows * r.width; i++) {
		double sum = 0;
		for (int64_t p = 0; p < r.count; p++)
			if (r.index[p] == i / r.width) sum += slp_get(&k->in[0], p * r.width + i % r.width);
		slp_set(&k->out[0], i, sum);
	}
	return SL_OK;
}

static SLP_CLONES void add_row(float *restrict to, const float *restrict from, int64_t n)
{
	for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

/* Rows [begin, end) of dx; every element is summed in the order of the positions, whatever the division among
 * threads. */
static void add_range(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	int64_t width = j->r.width;
	float *dx = (float *)j->out;
	memset(dx + begin * width, 0, (size_t)((end - begin) * width) * sizeof *dx);
	for (int64_t p = 0; p < j->r.count; p++) {
		int32_t row = j->r.index[p];
		if (row >= begin && row < end) add_row(dx + row * width, (const float *)j->in + p * width, width);
	}
}

/* Each range reads all indices, so there is one range a thread, and more threads only if rows are wide enough. */
static enum sl_status gather_grad_cpu(const struct slp_kernel *k)
{
	struct job j = {gather_grad_rows(k), k->in[0].ptr, k->out[0].ptr, 0};
	enum sl_status status = check_rows(k, &j.r);
	if (status || slp_size(&k->out[0]) == 0) return status;
	int64_t work = (j.r.rows + j.r.count) * j.r.width, ranges = work / SLP_GRAIN + 1;
	if (ranges > k->threads) ranges = k->threads > 0 ? k->threads : 1;
	slp_parallel_for(j.r.rows, (j.r.rows + ranges - 1) / ranges, add_range, &j);
	return SL_OK;
}

static enum sl_status gather_grad_grad(struct slp_grad *g)
{
	if (g->need[0]) g->din[0] = sl_gather_at(g->at, g->dout[0], g->in[1]);
	return SL_OK;
}

/* ---- one_hot ---------------------------------------------------------------------------------------------------- */

static enum sl_status one_hot_infer(struct slp_infer *c)
{
	struct slp_one_hot_attrs *a = c->attrs;
	sl_shape s = c->in[0].shape;
	enum sl_status status = check_indices(c, 0);
	a->dtype = slp_dtype_or((enum sl_dtype)a->dtype, SL_FLOAT32);
	if (status) return status;
	if (a->depth < 0) return slp_reject(c, SL_EINVAL, "depth is %lld, 0 or more needed", (long long)a->depth);
	if (a->dtype <= SL_DTYPE_DEFAULT || a->dtype >= SL_DTYPE_COUNT)
		return slp_reject(c, SL_EDTYPE, "there is no data type %d", a->dtype);
	if (s.ndim == SL_MAX_NDIM)
		return slp_reject(c, SL_ESHAPE, "the result would have %d axes, more than %d", s.ndim + 1, SL_MAX_NDIM);
	s.dim[s.ndim++] = a->depth;
	c->out[0] = (struct slp_type){(enum sl_dtype)a->dtype, s};
	return SL_OK;
}

static enum sl_status one_hot_ref(const struct slp_kernel *k)
{
	const struct slp_one_hot_attrs *a = k->attrs;
	for (int64_t i = 0; i < slp_size(&k->out[0]); i++)
		slp_set(&k->out[0], i, slp_get(&k->in[0], i / a->depth) == (double)(i % a->depth));
	return SL_OK;
}

struct one_hot_job {
	const struct slp_view *index, *out;
	int64_t depth;
};

static void one_hot_range(void *arg, int64_t begin, int64_t end)
{
	const struct one_hot_job *j = arg;
	const int32_t *index = j->index->ptr;
	size_t row = (size_t)j->depth * sl_dtype_size(j->out->type.dtype);
	memset((char *)j->out->ptr + (size_t)begin * row, 0, (size_t)(end - begin) * row);
	for (int64_t i = begin; i < end; i++)
		if (index[i] >= 0 && index[i] < j->depth) slp_set(j->out, i * j->depth + index[i], 1);
}

static enum sl_status one_hot_cpu(const struct slp_kernel *k)
{
	int64_t depth = ((const struct slp_one_hot_attrs *)k->attrs)->depth;
	struct one_hot_job j = {&k->in[0], &k->out[0], depth};
	if (slp_size(&k->out[0]))
		slp_parallel_for(slp_size(&k->in[0]), depth < SLP_GRAIN ? SLP_GRAIN / depth : 1, one_hot_range, &j);
	return SL_OK;
}

/* Indices (int32 or int64) as rows of `depth` elements: a one at the index, zeros elsewhere; an index out of range
 * gives a row of zeros, as in MXNet.  The result has one axis more.  Float32, or make.dtype; on make.device, if it is
 * set.  SL_EDTYPE: other indices, no such data type; SL_EINVAL: negative depth; SL_ESHAPE: too many axes.
 *
 *     y = sl_one_hot(labels, 10);    // (n) -> (n, 10) */
sl_tensor *sl_one_hot_at(const char *at, sl_tensor *indices, int64_t depth, struct sl_make make)
{
	SLP_FUNCTION("sl_one_hot", at);
	struct slp_one_hot_attrs attrs = {depth, slp_dtype_or(make.dtype, SL_FLOAT32)};
	if (indices && make.device.kind != SL_DEVICE_DEFAULT &&
	    !sl_device_equal(make.device, sl_tensor_device(indices)))
		indices = sl_copy_to_at(at, indices, make.device);
	indices = slp_as_index(at, indices);
	return SLP_RETURN(slp_apply1(at, &slp_op_one_hot, &attrs, 1, &indices));
}

const struct sl_op slp_op_gather = {
        .name = "gather",
        .doc = "rows of x by their indices",
        .args = "x indices",
        SLP_NIN(2),
        .nout = 1,
        .saves = SLP_IN(1),
        .rows = SLP_ANY_ROWS(gather),
        .infer = gather_infer,
        .bytes = gather_bytes,
        .grad = gather_grad_of_gather,
        .ref = gather_ref,
};

const struct sl_op slp_op_gather_grad = {
        .name = "gather_grad",
        .doc = "gradient of gather: rows added at their indices",
        .args = "dy indices",
        SLP_NIN(2),
        .nout = 1,
        .attr_table = gather_grad_attr_table,
        .attrs_size = sizeof(struct slp_gather_grad_attrs),
        .saves = SLP_IN(1),
        .rows = SLP_FLOAT_ROWS(gather_grad),
        .infer = gather_grad_infer,
        .flops = gather_grad_flops,
        .grad = gather_grad_grad,
        .scratch = gather_grad_scratch,
        .ref = gather_grad_ref,
};

const struct sl_op slp_op_one_hot = {
        .name = "one_hot",
        .doc = "indices as rows with a single one",
        .args = "indices",
        SLP_NIN(1),
        .nout = 1,
        .attr_table = one_hot_attr_table,
        .attrs_size = sizeof(struct slp_one_hot_attrs),
        .rows = SLP_ANY_ROWS(one_hot), /* of the result; indices are int32 */
        .infer = one_hot_infer,
        .ref = one_hot_ref,
};
