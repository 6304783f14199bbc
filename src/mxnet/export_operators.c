/* Our operations as MXNet's operators. */
#include <string.h>

#include "mxnet/writer.h"
#include "op_list/pool.h"
#include "op_list/reduce.h"
#include "op_list/unary.h"

/* ---- without attributes, and with one ---------------------------------------------------------------------------- */

static const char *mxnet_name(const struct slp_gnode *n)
{
	return slp_mx_op_for(n->op)->name;
}

/* Layers of activations are MXNet's Activation; functions have separate operators. */
static bool is_activation_layer(const struct slp_gnode *n)
{
	size_t length = strlen(n->name);
	bool activation = n->op == &slp_op_relu || n->op == &slp_op_sigmoid || n->op == &slp_op_tanh;
	return activation && length > 4 && !strcmp(n->name + length - 4, "_fwd");
}

void slp_mx_export_plain(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	bool layer = is_activation_layer(n);
	if (layer) slp_mx_set(w, "act_type", "%s", mxnet_name(n));
	slp_mx_as(w, layer ? "Activation" : mxnet_name(n), n->nin);
}

void slp_mx_export_scalar(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	slp_mx_set_number(w, "scalar", slp_export_number(n, "value", 0));
	slp_mx_as(w, mxnet_name(n), 1);
}

/* A value with axes of size 1 before its own: MXNet wants the same number on both sides. */
static struct slp_mx_value with_axes(struct slp_mx_writer *w, struct slp_mx_value v, int ndim, int wanted)
{
	for (; ndim < wanted; ndim++) {
		slp_mx_set(w, "axis", "0");
		v = slp_mx_emit(w, "expand_dims", "expanded", 1, &v);
	}
	return v;
}

void slp_mx_export_pair(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	int ndim[] = {slp_input_type(w->g, n, 0)->shape.ndim, slp_input_type(w->g, n, 1)->shape.ndim};
	int most = ndim[0] > ndim[1] ? ndim[0] : ndim[1];
	struct slp_mx_value in[2];
	for (int i = 0; i < 2; i++) in[i] = with_axes(w, slp_mx_in(w, n, i), ndim[i], most);
	slp_mx_result(w, mxnet_name(n), 2, in);
}

void slp_mx_export_axis(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	slp_mx_set(w, "axis", "%d", (int)slp_export_int(n, "axis", 0));
	slp_mx_as(w, mxnet_name(n), 1);
}

void slp_mx_export_gelu(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	(void)n;
	slp_mx_set(w, "act_type", "gelu");
	slp_mx_as(w, "LeakyReLU", 1);
}

void slp_mx_export_softplus(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	(void)n;
	slp_mx_set(w, "act_type", "softrelu");
	slp_mx_as(w, "Activation", 1);
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

static void set_bool(struct slp_mx_writer *w, const char *name, bool value)
{
	slp_mx_set(w, name, "%s", value ? "True" : "False");
}

void slp_mx_export_linear(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	bool transposed = slp_export_int(n, "tw", 0);
	struct slp_mx_value in[3];
	for (int i = 0; i < n->nin && i < 3; i++) in[i] = slp_mx_in(w, n, i);
	if (!transposed) in[1] = slp_mx_emit(w, "transpose", "weight", 1, &in[1]);
	slp_mx_set(w, "num_hidden", "%lld", (long long)slp_input_type(w->g, n, 1)->shape.dim[!transposed]);
	set_bool(w, "no_bias", n->nin < 3);
	/* A layer that flattens its input makes a flatten before it redundant. */
	bool flat = slp_mx_is_flatten(w->g, &w->g->nodes[n->in[0].node]);
	set_bool(w, "flatten", flat || slp_input_type(w->g, n, 0)->shape.ndim == 2);
	slp_mx_result(w, "FullyConnected", n->nin, in);
}

void slp_mx_export_conv2d(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	const int64_t ones[2] = {1, 1}, zeros[2] = {0, 0}, *kernel = &slp_input_type(w->g, n, 1)->shape.dim[2];
	int64_t v[2];
	slp_mx_set_tuple(w, "kernel", kernel, 2);
	slp_export_pair(n, "stride", ones, v);
	slp_mx_set_tuple(w, "stride", v, 2);
	slp_export_pair(n, "dilation", ones, v);
	slp_mx_set_tuple(w, "dilate", v, 2);
	slp_export_pair(n, "pad", zeros, v);
	slp_mx_set_tuple(w, "pad", v, 2);
	slp_mx_set(w, "num_filter", "%lld", (long long)kernel[-2]);
	slp_mx_set(w, "num_group", "%d", (int)slp_export_or(n, "groups", 1));
	set_bool(w, "no_bias", n->nin < 3);
	slp_mx_set(w, "layout", "NCHW");
	slp_mx_as(w, "Convolution", n->nin);
}

void slp_mx_export_batch_norm(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	slp_mx_set_number(w, "eps", slp_export_or(n, "eps", 1e-5));
	slp_mx_set_number(w, "momentum", slp_export_or(n, "momentum", 0.9));
	set_bool(w, "fix_gamma", false);
	set_bool(w, "use_global_stats", false);
	slp_mx_set(w, "axis", "1");
	slp_mx_as(w, "BatchNorm", 5);
}

void slp_mx_export_layer_norm(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	slp_mx_set_number(w, "eps", slp_export_or(n, "eps", 1e-5));
	slp_mx_set(w, "axis", "-1");
	slp_mx_as(w, "LayerNorm", 3);
}

void slp_mx_export_pool(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	struct slp_pooling p = slp_export_pooling(n);
	bool global = slp_export_int(n, "global", 0), mean = n->op == &slp_op_avg_pool2d;
	slp_mx_set_tuple(w, "kernel", p.kernel, 2);
	if (!global) {
		slp_mx_set_tuple(w, "stride", p.stride, 2);
		slp_mx_set_tuple(w, "pad", p.pad, 2);
	}
	set_bool(w, "global_pool", global);
	slp_mx_set(w, "pool_type", mean ? "avg" : "max");
	slp_mx_set(w, "pooling_convention", slp_export_int(n, "ceil", 0) ? "full" : "valid");
	if (mean) set_bool(w, "count_include_pad", !slp_export_int(n, "exclude_pad", 0));
	slp_mx_as(w, "Pooling", 1);
}

void slp_mx_export_dropout(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	slp_mx_set_number(w, "p", slp_export_number(n, "p", 0));
	slp_mx_as(w, "Dropout", 1);
}

void slp_mx_export_gather(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	sl_shape x = slp_input_type(w->g, n, 0)->shape;
	struct slp_mx_value in[] = {slp_mx_in(w, n, 1), slp_mx_in(w, n, 0)};
	if (x.ndim != 2) {
		slp_mx_set(w, "axis", "0");
		slp_mx_as(w, "take", 2);
		return;
	}
	slp_mx_set(w, "input_dim", "%lld", (long long)x.dim[0]);
	slp_mx_set(w, "output_dim", "%lld", (long long)x.dim[1]);
	slp_mx_set(w, "dtype", "%s", sl_dtype_name(n->types[0].dtype));
	slp_mx_result(w, "Embedding", 2, in);
}

/* ---- moving elements --------------------------------------------------------------------------------------------- */

void slp_mx_export_reshape(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	if (slp_mx_is_flatten(w->g, n)) {
		slp_mx_as(w, "Flatten", 1);
		return;
	}
	sl_shape codes = slp_export_reshape(n, slp_input_type(w->g, n, 0)->shape, n->types[0].shape, 0);
	slp_mx_set_tuple(w, "shape", codes.dim, codes.ndim);
	slp_mx_as(w, "Reshape", 1);
}

void slp_mx_export_transpose(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	int64_t axes[SL_MAX_NDIM];
	int ndim = n->types[0].shape.ndim;
	slp_export_permutation(n, ndim, axes);
	slp_mx_set_tuple(w, "axes", axes, ndim);
	slp_mx_as(w, "transpose", 1);
}

void slp_mx_export_slice(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	int64_t begin[SL_MAX_NDIM], end[SL_MAX_NDIM], step[SL_MAX_NDIM], by = slp_export_int(n, "step", 0);
	sl_shape x = slp_input_type(w->g, n, 0)->shape;
	int axis = (int)slp_export_int(n, "axis", 0);
	if (axis < 0) axis += x.ndim;
	for (int i = 0; i < x.ndim; i++) begin[i] = end[i] = SLP_MX_NONE, step[i] = 1;
	const struct slp_attr *a = slp_attr_find(n->op, "begin"), *b = slp_attr_find(n->op, "end");
	memcpy(&begin[axis], n->attrs.bytes + a->offset, sizeof *begin);
	memcpy(&end[axis], n->attrs.bytes + b->offset, sizeof *end);
	if (end[axis] >= x.dim[axis] || (by < 0 && end[axis] < -x.dim[axis])) end[axis] = SLP_MX_NONE;
	if (begin[axis] >= x.dim[axis]) begin[axis] = by < 0 ? SLP_MX_NONE : x.dim[axis];
	step[axis] = by;
	if (!sl_shape_size(n->types[0].shape)) slp_mx_write_fail(w, SL_EUNSUPPORTED, "MXNet has no empty slices");
	slp_mx_set_tuple(w, "begin", begin, x.ndim);
	slp_mx_set_tuple(w, "end", end, x.ndim);
	slp_mx_set_tuple(w, "step", step, x.ndim);
	slp_mx_as(w, "slice", 1);
}

void slp_mx_export_concat(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	enum { MOST = 512 };
	struct slp_mx_value in[MOST];
	int axis = (int)slp_export_int(n, "axis", 0);
	if (n->nin > MOST) {
		slp_mx_write_fail(w, SL_EUNSUPPORTED, "more than %d inputs", MOST);
		return;
	}
	for (int i = 0; i < n->nin; i++) in[i] = slp_mx_in(w, n, i);
	slp_mx_set(w, "num_args", "%d", n->nin);
	slp_mx_set(w, "dim", "%d", axis < 0 ? axis + n->types[0].shape.ndim : axis);
	slp_mx_result(w, "Concat", n->nin, in);
}

void slp_mx_export_broadcast_to(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	sl_shape x = slp_input_type(w->g, n, 0)->shape, y = n->types[0].shape;
	struct slp_mx_value v = with_axes(w, slp_mx_in(w, n, 0), x.ndim, y.ndim);
	for (int i = 0; i < x.ndim; i++) {
		int k = y.ndim - x.ndim + i;
		if (x.dim[i] == y.dim[k]) y.dim[k] = 0;
	}
	slp_mx_set_tuple(w, "shape", y.dim, y.ndim);
	slp_mx_result(w, "broadcast_to", 1, &v);
}

static void set_dtype(struct slp_mx_writer *w, enum sl_dtype dtype)
{
	slp_mx_set(w, "dtype", "%s", sl_dtype_name(dtype));
}

void slp_mx_export_one_hot(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	slp_mx_set(w, "depth", "%lld", (long long)slp_export_int(n, "depth", 0));
	set_dtype(w, n->types[0].dtype);
	slp_mx_as(w, "one_hot", 1);
}

void slp_mx_export_cast(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	set_dtype(w, n->types[0].dtype);
	slp_mx_as(w, "Cast", 1);
}

/* ---- products and reductions ------------------------------------------------------------------------------------- */

static void set_transposes(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	set_bool(w, "transpose_a", slp_export_int(n, "ta", 0));
	set_bool(w, "transpose_b", slp_export_int(n, "tb", 0));
}

void slp_mx_export_dot(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	set_transposes(w, n);
	slp_mx_as(w, "dot", 2);
}

/* MXNet multiplies batches with one axis before the matrices: others are made into such. */
void slp_mx_export_matmul(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	sl_shape y = n->types[0].shape;
	struct slp_mx_value in[2];
	for (int i = 0; i < 2; i++) {
		sl_shape x = slp_input_type(w->g, n, i)->shape;
		in[i] = slp_mx_in(w, n, i);
		bool same = x.ndim == y.ndim;
		for (int k = 0; same && k < y.ndim - 2; k++) same = x.dim[k] == y.dim[k];
		if (!same) slp_mx_write_fail(w, SL_EUNSUPPORTED, "MXNet does not broadcast products of batches");
		if (x.ndim <= 3 || w->failed) continue;
		slp_mx_set_tuple(w, "shape", (const int64_t[]){-1, x.dim[x.ndim - 2], x.dim[x.ndim - 1]}, 3);
		in[i] = slp_mx_emit(w, "Reshape", "batch", 1, &in[i]);
	}
	set_transposes(w, n);
	if (y.ndim <= 3) {
		slp_mx_result(w, y.ndim == 2 ? "dot" : "batch_dot", 2, in);
		return;
	}
	struct slp_mx_value product = slp_mx_emit(w, "batch_dot", "product", 2, in);
	y.dim[0] = -1;
	slp_mx_set_tuple(w, "shape", y.dim, y.ndim);
	slp_mx_result(w, "Reshape", 1, &product);
}

void slp_mx_export_reduce(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	int axes[SL_MAX_NDIM], count = slp_export_axes(n, slp_input_type(w->g, n, 0)->shape.ndim, axes);
	int64_t t[SL_MAX_NDIM];
	for (int i = 0; i < count; i++) t[i] = axes[i];
	if (n->op == &slp_op_norm) slp_mx_set(w, "ord", "2");
	slp_mx_set_tuple(w, "axis", t, count);
	set_bool(w, "keepdims", slp_export_int(n, "keepdims", 0));
	slp_mx_as(w, mxnet_name(n), 1);
}

/* MXNet's indices are floats. */
void slp_mx_export_argmax(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	struct slp_mx_value v = slp_mx_in(w, n, 0);
	slp_mx_set(w, "axis", "%d", (int)slp_export_int(n, "axis", 0));
	v = slp_mx_emit(w, "argmax", "index", 1, &v);
	set_dtype(w, n->types[0].dtype);
	slp_mx_result(w, "Cast", 1, &v);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

void slp_mx_export_full_like(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	struct slp_mx_value v = slp_mx_in(w, n, 0);
	v = slp_mx_emit(w, "zeros_like", "zeros", 1, &v);
	slp_mx_set_number(w, "scalar", slp_export_number(n, "value", 0));
	slp_mx_result(w, "_plus_scalar", 1, &v);
}

void slp_mx_export_fill(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	sl_shape shape = n->types[0].shape;
	slp_mx_set_tuple(w, "shape", shape.dim, shape.ndim);
	slp_mx_set_number(w, "value", slp_export_number(n, "value", 0));
	set_dtype(w, n->types[0].dtype);
	slp_mx_as(w, "_full", 0);
}

void slp_mx_export_arange(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	double start = slp_export_number(n, "start", 0), step = slp_export_number(n, "step", 0);
	/* Half a step before the next number: the count does not depend on rounding. */
	slp_mx_set_number(w, "start", start);
	slp_mx_set_number(w, "stop", start + step * ((double)n->types[0].shape.dim[0] - 0.5));
	slp_mx_set_number(w, "step", step);
	set_dtype(w, n->types[0].dtype);
	slp_mx_as(w, "_arange", 0);
}
