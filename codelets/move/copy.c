/* Copies, assignments, conversions between data types. */
#include <string.h>

#include "op_inner.h"
#include "fill/fill.h"
#include "common/scalar.h"
#include "op_list/move.h"
#include "starling/arithmetic.h"
#include "starling/primitives.h"

static enum sl_status give(struct slp_grad *g, int i, sl_tensor *d)
{
	g->din[i] = d;
	return d ? SL_OK : sl_error();
}

/* ---- copy, copy_over, assign --------------------------------------------------------------------------------------------- */

static enum sl_status copy_infer(struct slp_infer *c)
{
	c->out[0] = c->in[0];
	return SL_OK;
}

static double copy_bytes(const struct slp_infer *c)
{
	return 2.0 * (double)sl_shape_size(c->in[0].shape) * (double)sl_dtype_size(c->in[0].dtype);
}

static enum sl_status same_type(struct slp_infer *c)
{
	if (c->in[0].dtype != c->in[1].dtype)
		return slp_reject(c, SL_EDTYPE, "the data types differ; convert one with sl_cast");
	if (!sl_shape_equal(c->in[0].shape, c->in[1].shape)) return slp_reject(c, SL_ESHAPE, "the shapes differ");
	return SL_OK;
}

static enum sl_status copy_over_infer(struct slp_infer *c)
{
	enum sl_status s = same_type(c);
	return s == SL_OK ? copy_infer(c) : s;
}

/* The input to copy is the last one. */
static const struct slp_view *copied(const struct slp_kernel *k)
{
	return &k->in[k->nin - 1];
}

/* The destination: an assignment has no result. */
static const struct slp_view *destination(const struct slp_kernel *k)
{
	return k->nout ? &k->out[0] : &k->in[0];
}

static enum sl_status copy_ref(const struct slp_kernel *k)
{
	for (int64_t i = 0; i < slp_size(copied(k)); i++) slp_set(destination(k), i, slp_get(copied(k), i));
	return SL_OK;
}

static void copy_range(void *arg, int64_t begin, int64_t end)
{
	const struct slp_kernel *k = arg;
	size_t size = sl_dtype_size(copied(k)->type.dtype), offset = (size_t)begin * size;
	const char *from = copied(k)->ptr;
	char *to = destination(k)->ptr;
	if (from != to) memcpy(to + offset, from + offset, (size_t)(end - begin) * size);
}

static enum sl_status copy_cpu(const struct slp_kernel *k)
{
	slp_parallel_for(slp_size(copied(k)), SLP_GRAIN, copy_range, (void *)k);
	return SL_OK;
}

/* x may be on another device: its gradient goes back there unchanged. */
static enum sl_status copy_grad(struct slp_grad *g)
{
	sl_device to = sl_tensor_device(g->in[0]);
	sl_tensor *d = g->dout[0];
	return give(g, 0, sl_device_equal(sl_tensor_device(d), to) ? d : sl_place_at(g->at, d, to));
}

static enum sl_status copy_over_grad(struct slp_grad *g)
{
	enum sl_status s = SL_OK;
	if (g->need[0]) s = give(g, 0, slp_zeros_like(g->at, g->dout[0]));
	if (g->need[1] && s == SL_OK) s = give(g, 1, g->dout[0]);
	return s;
}

const struct sl_op slp_op_copy = {
        .name = "copy",
        .doc = "the same elements in other memory",
        .args = "x",
        SLP_NIN(1),
        .nout = 1,
        .rows = SLP_ANY_ROWS(copy),
        .infer = copy_infer,
        .grad = copy_grad,
        .ref = copy_ref,
};

const struct sl_op slp_op_copy_over = {
        .name = "copy_over",
        .doc = "the elements of from, written to x",
        .args = "x from",
        SLP_NIN(2),
        .nout = 1,
        .inplace = true,
        .overwrites = true,
        .rows = SLP_ROWS(SLP_ROW(SLP_ANY, copy_cpu, slp_cuda_copy_over)),
        .infer = copy_over_infer,
        .bytes = copy_bytes,
        .grad = copy_over_grad,
        .ref = copy_ref,
};

const struct sl_op slp_op_assign = {
        .name = "assign",
        .doc = "writes the elements of from into x, a parameter or an input of a program",
        .args = "x from",
        SLP_NIN(2),
        .mutates = SLP_IN(0),
        .rows = SLP_ROWS(SLP_ROW(SLP_ANY, copy_cpu, slp_cuda_assign)),
        .infer = same_type,
        .bytes = copy_bytes,
        .ref = copy_ref,
};

/* Writes the elements of `from` to x, and returns x.  Values of x that an error had spoilt are valid again, unless x is
 * a view of a part.  SL_ESHAPE, SL_EDTYPE if they differ in shape or data type; other errors of operations in place:
 * see sl_add_.
 *
 *     sl_copy_(weights, snapshot); */
sl_tensor *sl_copy_inplace_at(const char *at, sl_tensor *x, sl_tensor *from)
{
	SLP_CALL("sl_copy_", at);
	return slp_apply_inplace(at, &slp_op_copy_over, NULL, 2, (sl_tensor *[]){x, from});
}

/* ---- cast -------------------------------------------------------------------------------------------------------- */

static const struct slp_attr cast_attrs[] = {
        SLP_ATTR(struct slp_cast, dtype, SLP_INT, 1, "data type of the result"),
        {0},
};

static enum sl_status cast_infer(struct slp_infer *c)
{
	struct slp_cast *a = c->attrs;
	int dtype = a->dtype = (int)slp_dtype_or((enum sl_dtype)a->dtype, SL_FLOAT32);
	if (dtype <= SL_DTYPE_DEFAULT || dtype >= SL_DTYPE_COUNT)
		return slp_reject(c, SL_EDTYPE, "there is no data type %d", dtype);
	c->out[0] = (struct slp_type){(enum sl_dtype)dtype, c->in[0].shape};
	return SL_OK;
}

/* No gradient flows through integers. */
static enum sl_status cast_grad(struct slp_grad *g)
{
	enum sl_dtype from = sl_tensor_dtype(g->in[0]);
	if (!slp_is_float(from) || !slp_is_float(sl_tensor_dtype(g->out[0]))) return SL_OK;
	return give(g, 0, sl_cast_at(g->at, g->dout[0], from));
}

static enum sl_status cast_ref(const struct slp_kernel *k)
{
	for (int64_t i = 0; i < slp_size(&k->out[0]); i++) slp_set_truncated(&k->out[0], i, slp_get(&k->in[0], i));
	return SL_OK;
}

static enum sl_status cast_cpu(const struct slp_kernel *k)
{
	return slp_cpu_convert(k, &k->in[0], &k->out[0]);
}

const struct sl_op slp_op_cast = {
        .name = "cast",
        .doc = "the same numbers in another data type",
        .args = "x",
        SLP_NIN(1),
        .nout = 1,
        .attr_table = cast_attrs,
        .attrs_size = sizeof(struct slp_cast),
        .rows = SLP_ANY_ROWS(cast),
        .infer = cast_infer,
        .flops = slp_flops_elementwise,
        .grad = cast_grad,
        .ref = cast_ref,
};

/* The elements of x in another data type.  Floats are rounded to nearest, ties to even.  Integers lose the fraction, as
 * in C, and saturate; NaN becomes 0.  A bool is true if the element is not 0.  Gradients flow between floats.
 * SL_EDTYPE if there is no such data type.
 *
 *     sl_tensor *pixels = sl_div_scalar(sl_cast(bytes, SL_FLOAT32), 255); */
sl_tensor *sl_cast_at(const char *at, sl_tensor *x, enum sl_dtype dtype)
{
	return slp_apply1(at, &slp_op_cast, &(struct slp_cast){(int)dtype}, 1, &x);
}
