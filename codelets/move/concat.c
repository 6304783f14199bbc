/* concat: tensors one after another along an axis. */
#include "common/move_attrs.h"
#include "concat.h"
#include "op_list/move.h"
#include "starling/primitives.h"

static const struct slp_attr concat_attr_table[] = {
        SLP_ATTR(struct slp_concat_attrs, axis, SLP_INT, 1, "the axis to join along; negative: from the end"),
        {0},
};

/* Checks that input i has the first one's type, and its shape but for the size of the axis. */
static enum sl_status check(const struct slp_infer *c, int i, int axis)
{
	sl_shape first = c->in[0].shape, shape = c->in[i].shape;
	char a[128], b[128];
	if (c->in[i].dtype != c->in[0].dtype)
		return slp_reject(c, SL_EDTYPE, "tensor %d is %s, the first is %s", i, sl_dtype_name(c->in[i].dtype),
		                  sl_dtype_name(c->in[0].dtype));
	if (shape.ndim == first.ndim) first.dim[axis] = shape.dim[axis];
	if (!sl_shape_equal(shape, first))
		return slp_reject(c, SL_ESHAPE, "tensor %d has shape %s, which does not fit %s along axis %d", i,
		                  sl_shape_string(shape, a), sl_shape_string(c->in[0].shape, b), axis);
	return SL_OK;
}

static enum sl_status concat_infer(struct slp_infer *c)
{
	const struct slp_concat_attrs *attrs = c->attrs;
	int axis = attrs->axis;
	if (!slp_axis(&axis, c->in[0].shape.ndim))
		return slp_reject(c, SL_EINVAL, "axis %d does not exist: the tensors have %d axes", attrs->axis,
		                  c->in[0].shape.ndim);
	c->out[0] = c->in[0];
	for (int i = 1; i < c->nin; i++) {
		enum sl_status status = check(c, i, axis);
		if (status) return status;
		c->out[0].shape.dim[axis] += c->in[i].shape.dim[axis];
	}
	return SL_OK;
}

static int axis_of(const struct slp_kernel *k)
{
	int axis = ((const struct slp_concat_attrs *)k->attrs)->axis;
	slp_axis(&axis, k->out[0].type.shape.ndim);
	return axis;
}

static enum sl_status concat_ref(const struct slp_kernel *k)
{
	int axis = axis_of(k);
	struct slp_split whole = slp_split_at(k->out[0].type.shape, axis);
	int64_t at = 0;
	for (int i = 0; i < k->nin; i++) {
		int64_t n = k->in[i].type.shape.dim[axis] * whole.inner;
		for (int64_t j = 0; j < slp_size(&k->in[i]); j++)
			slp_set(&k->out[0], (j / n * whole.n) * whole.inner + at + j % n, slp_get(&k->in[i], j));
		at += n;
	}
	return SL_OK;
}

struct job {
	const struct slp_kernel *k;
	int axis;
	int64_t row; /* elements of the result before its next row */
	int64_t inner;
	size_t size; /* of an element */
	int64_t rows;
};

/* Whether the input is already at its place in the result: plans write operands of a concatenation there. */
static bool is_there(const struct job *j, int i, int64_t begin)
{
	return j->k->in[i].ptr == (char *)j->k->out[0].ptr + (size_t)begin * j->size;
}

/* Elements [begin, end) of the result, piece by piece: a piece is an input's part of a row. */
static void copy_range(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	char *out = j->k->out[0].ptr;
	int64_t outer = begin / j->row, at = outer * j->row; /* where the piece begins in the result */
	while (at < end) {
		for (int i = 0; i < j->k->nin && at < end; i++) {
			int64_t n = j->k->in[i].type.shape.dim[j->axis] * j->inner;
			int64_t from = at < begin ? begin : at, to = at + n < end ? at + n : end;
			if (from < to && !(j->rows == 1 && is_there(j, i, at)))
				slp_copy_run(out + (size_t)from * j->size,
				             (const char *)j->k->in[i].ptr + (size_t)(outer * n + from - at) * j->size,
				             (size_t)(to - from) * j->size);
			at += n;
		}
		outer++;
	}
}

static enum sl_status concat_cpu(const struct slp_kernel *k)
{
	int axis = axis_of(k);
	struct slp_split whole = slp_split_at(k->out[0].type.shape, axis);
	struct job j = {.k = k,
	                .axis = axis,
	                .row = whole.n * whole.inner,
	                .inner = whole.inner,
	                .size = sl_dtype_size(k->out[0].type.dtype),
	                .rows = whole.outer};
	if (slp_size(&k->out[0])) slp_parallel_for(slp_size(&k->out[0]), SLP_GRAIN, copy_range, &j);
	return SL_OK;
}

#ifdef HAVE_CUDA
static enum sl_status concat_cuda(const struct slp_kernel *k)
{
	int axis = axis_of(k);
	if (slp_size(&k->out[0]) == 0) return SL_OK;
	return slp_concat_cuda(k, axis, slp_split_at(k->out[0].type.shape, axis));
}
#endif

static enum sl_status concat_grad(struct slp_grad *g)
{
	int axis = ((const struct slp_concat_attrs *)g->attrs)->axis;
	slp_axis(&axis, sl_tensor_shape(g->in[0]).ndim);
	int64_t begin = 0;
	for (int i = 0; i < g->nin; i++) {
		int64_t end = begin + sl_tensor_shape(g->in[i]).dim[axis];
		if (g->need[i]) g->din[i] = sl_slice_at(g->at, g->dout[0], axis, begin, end, 1);
		begin = end;
	}
	return SL_OK;
}

/* The tensors one after another along an axis (negative: from the end); the other axes and the data types must be the
 * same.  Any data type; empty tensors add nothing.  SL_EINVAL: no such axis, no tensors; SL_ESHAPE, SL_EDTYPE: one does
 * not match the first.
 *
 *     sl_tensor *y = sl_concat(((sl_tensor *[]){a, b, c}), 3, 1); */
sl_tensor *sl_concat_at(const char *at, sl_tensor *const *tensors, int count, int axis)
{
	struct slp_concat_attrs attrs = {axis};
	if (count < 1 || !tensors)
		return slp_call_fail(at, "sl_concat", SL_EINVAL, "%d tensors given, at least 1 needed",
		                     tensors ? count : 0);
	return slp_apply1(at, &slp_op_concat, &attrs, count, tensors);
}

const struct sl_op slp_op_concat = {
        .name = "concat",
        .doc = "tensors one after another along an axis",
        .args = "x ...",
        .nin_min = 1,
        .nin_max = SLP_MANY,
        .autocast = SLP_CAST_WIDEST,
        .nout = 1,
        .attr_table = concat_attr_table,
        .attrs_size = sizeof(struct slp_concat_attrs),
        .rows = SLP_ROWS(SLP_ROW(SLP_ANY, concat_cpu, concat_cuda)),
        .infer = concat_infer,
        .grad = concat_grad,
        .ref = concat_ref,
};
