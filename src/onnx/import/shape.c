/* ONNX operators, computed: shapes, and moving elements.  They take known values and tensors alike, so that shapes
 * are computed while a network is built. */
#include <math.h>
#include <stdlib.h>

#include "onnx/model/call.h"
#include "op.h"
#include "starling/arithmetic.h"
#include "starling/functions.h"

/* ---- out of nothing ---------------------------------------------------------------------------------------------- */

void slp_onnx_import_shape(struct slp_onnx_call *c)
{
	sl_shape s = slp_onnx_shape(c, 0);
	int64_t n = s.ndim, begin = slp_onnx_attr_int(c, "start", 0), end = slp_onnx_attr_int(c, "end", n);
	if (begin < 0) begin = begin < -n ? 0 : begin + n;
	if (end < 0) end = end < -n ? 0 : end + n;
	if (end > n) end = n;
	if (begin > end) begin = end;
	if (!c->failed)
		slp_onnx_set_output_value(c, 0, slp_onnx_list_value(c, SL_INT64, s.dim + begin, (int)(end - begin)));
}

void slp_onnx_import_size(struct slp_onnx_call *c)
{
	int64_t n = sl_shape_size(slp_onnx_shape(c, 0));
	if (c->failed) return;
	struct slp_onnx_value v = slp_onnx_list_value(c, SL_INT64, &n, 1);
	if (v.known) slp_onnx_set_output_value(c, 0, slp_onnx_reshaped(c, v, SL_SCALAR));
}

/* A tensor is the graph's, as initializers are: here are numbers alone. */
void slp_onnx_import_constant(struct slp_onnx_call *c)
{
	const SlpOnnx__AttributeProto *f = slp_onnx_attr(c, "value_float"), *fs = slp_onnx_attr(c, "value_floats");
	const SlpOnnx__AttributeProto *i = slp_onnx_attr(c, "value_int"), *is = slp_onnx_attr(c, "value_ints");
	size_t n = fs ? fs->n_floats : is ? is->n_ints : 1;
	sl_shape shape = fs || is ? SL_SHAPE((int64_t)n) : SL_SCALAR;
	if (!f && !fs && !i && !is) {
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "has no value that is a number or a tensor");
		return;
	}
	struct slp_onnx_known *k = slp_onnx_known_new(c->made, f || fs ? SL_FLOAT32 : SL_INT64, shape);
	for (size_t e = 0; k && e < n; e++) {
		if (f || fs) k->v[e].f = f ? f->f : fs->floats[e];
		else k->v[e].i = i ? i->i : is->ints[e];
	}
	slp_onnx_set_output_value(c, 0, (struct slp_onnx_value){.known = k});
}

/* The shape that input i says; a shape that is too large is an error. */
static sl_shape shape_in(struct slp_onnx_call *c, int i, const char *attribute)
{
	sl_shape s = {.ndim = slp_onnx_ints_in(c, i, attribute, s.dim, SL_MAX_NDIM)};
	char text[128];
	if (s.ndim < 0 && !c->failed) slp_onnx_call_fail(c, SL_EFORMAT, "no shape is given");
	if (c->failed) return SL_SCALAR;
	for (int k = 0; k < s.ndim; k++)
		if (s.dim[k] < -1 || s.dim[k] > INT64_MAX / 2)
			slp_onnx_call_fail(c, SL_ESHAPE, "no shape: %s", sl_shape_string(s, text));
	return s;
}

/* Of one value; known while they are few. */
static struct slp_onnx_value filled(struct slp_onnx_call *c, sl_shape shape, struct slp_onnx_known *value)
{
	char text[128];
	struct slp_onnx_value v = {.known = value};
	if (!slp_shape_valid(shape)) slp_onnx_call_fail(c, SL_ESHAPE, "no shape: %s", sl_shape_string(shape, text));
	if (c->failed) return v;
	if (slp_onnx_is_few(shape) || !slp_onnx_known_is_double(value))
		return slp_onnx_broadcast(c, slp_onnx_reshaped(c, v, SL_SCALAR), shape);
	struct sl_make make = {value->dtype, sl_tensor_device(c->beside)};
	return (struct slp_onnx_value){.t = sl_full_at(c->at, shape, slp_onnx_known_number(value, 0), make)};
}

void slp_onnx_import_constant_of_shape(struct slp_onnx_call *c)
{
	const SlpOnnx__AttributeProto *a = slp_onnx_attr(c, "value");
	bool given = a && a->t;
	struct slp_onnx_known *v =
	        given ? slp_onnx_known_of(c, a->t) : slp_onnx_known_new(c->made, SL_FLOAT32, SL_SCALAR);
	sl_shape shape = shape_in(c, 0, NULL);
	if (!v) c->failed = true; /* and recorded */
	if (c->failed) return;
	if (sl_shape_size(v->shape) != 1) slp_onnx_call_fail(c, SL_EFORMAT, "attribute value must be one number");
	else slp_onnx_set_output_value(c, 0, filled(c, shape, v));
	if (given && !c->failed) c->out[0].type = a->t->data_type;
}

/* The number of int64 from start up to but excluding limit; -1: too many. */
static int64_t steps_between(int64_t start, int64_t limit, int64_t delta)
{
	__int128 way = (__int128)limit - start, n = delta ? (way + delta - (delta > 0 ? 1 : -1)) / delta : -1;
	return n > INT32_MAX || delta == 0 ? -1 : n > 0 ? (int64_t)n : 0;
}

/* Ranges of int64, exactly: a double does not hold all of them. */
static void whole_range(struct slp_onnx_call *c)
{
	int64_t from = 0, to = 0, by = 1;
	if (slp_onnx_ints_in(c, 0, NULL, &from, 1) != 1 || slp_onnx_ints_in(c, 1, NULL, &to, 1) != 1 ||
	    slp_onnx_ints_in(c, 2, NULL, &by, 1) != 1) {
		slp_onnx_call_fail(c, SL_EFORMAT, "takes three numbers");
		return;
	}
	int64_t n = steps_between(from, to, by);
	struct sl_make make = {SL_INT64, sl_tensor_device(c->beside)};
	if (n < 0)
		slp_onnx_call_fail(c, SL_ESHAPE, "from %lld to %lld by %lld", (long long)from, (long long)to,
		                   (long long)by);
	else if (n > SLP_ONNX_KNOWN_MAX && slp_onnx_known_is_double(c->in[0].known) &&
	         slp_onnx_known_is_double(c->in[1].known))
		slp_onnx_set_output(c, 0, sl_arange_at(c->at, (double)from, (double)to, (double)by, make));
	else {
		struct slp_onnx_known *k = slp_onnx_known_new(c->made, SL_INT64, SL_SHAPE(n));
		for (int64_t i = 0; k && i < n; i++) k->v[i].i = (int64_t)((uint64_t)from + (uint64_t)i * (uint64_t)by);
		slp_onnx_set_output_value(c, 0, (struct slp_onnx_value){.known = k});
	}
}

void slp_onnx_import_range(struct slp_onnx_call *c)
{
	if (slp_onnx_dtype(&c->in[0]) == SL_INT64) {
		whole_range(c);
		return;
	}
	double start = slp_onnx_number_in(c, 0, NULL, 0), limit = slp_onnx_number_in(c, 1, NULL, 0);
	double delta = slp_onnx_number_in(c, 2, NULL, 1), n = c->failed ? 0 : ceil((limit - start) / delta);
	if (!c->failed && (delta == 0 || !(n <= INT32_MAX)))
		slp_onnx_call_fail(c, SL_ESHAPE, "from %g to %g by %g", start, limit, delta);
	if (c->failed) return;
	enum sl_dtype dtype = slp_onnx_dtype(&c->in[0]);
	sl_shape shape = SL_SHAPE(n > 0 ? (int64_t)n : 0);
	if (!slp_onnx_is_few(shape)) {
		slp_onnx_set_output(
		        c, 0,
		        sl_arange_at(c->at, start, limit, delta, (struct sl_make){dtype, sl_tensor_device(c->beside)}));
		return;
	}
	struct slp_onnx_known *k = slp_onnx_known_new(c->made, dtype, shape);
	for (int64_t i = 0; k && i < shape.dim[0]; i++) slp_onnx_known_put(k, i, start + (double)i * delta);
	slp_onnx_set_output_value(c, 0, (struct slp_onnx_value){.known = k});
}

/* ---- another shape ----------------------------------------------------------------------------------------------- */

/* 0 keeps a size, -1 takes the remaining elements. */
static sl_shape completed(struct slp_onnx_call *c, sl_shape x, sl_shape y)
{
	int64_t rest = sl_shape_size(x), known = 1;
	int open = -1;
	bool zeros = slp_onnx_attr_int(c, "allowzero", 0) != 0;
	for (int i = 0; i < y.ndim; i++) {
		if (y.dim[i] == 0 && !zeros && i < x.ndim) y.dim[i] = x.dim[i];
		if (y.dim[i] == -1 && open >= 0) slp_onnx_call_fail(c, SL_EFORMAT, "two sizes are left open");
		if (y.dim[i] == -1) open = i;
		else if (__builtin_mul_overflow(known, y.dim[i], &known))
			slp_onnx_call_fail(c, SL_ESHAPE, "the shape is too large");
	}
	if (open >= 0) y.dim[open] = known ? rest / known : 0;
	return y;
}

void slp_onnx_import_reshape(struct slp_onnx_call *c)
{
	sl_shape x = slp_onnx_shape(c, 0), y = shape_in(c, 1, "shape");
	if (c->failed) return;
	y = completed(c, x, y);
	if (!c->failed) slp_onnx_set_output_value(c, 0, slp_onnx_reshaped(c, c->in[0], y));
}

void slp_onnx_import_flatten(struct slp_onnx_call *c)
{
	sl_shape x = slp_onnx_shape(c, 0), y = {2, {1, 1}};
	int64_t axis = slp_onnx_attr_int(c, "axis", 1);
	if (axis < 0) axis += x.ndim;
	if (axis < 0 || axis > x.ndim) slp_onnx_call_fail(c, SL_ESHAPE, "axis %lld does not exist", (long long)axis);
	for (int i = 0; i < x.ndim; i++) y.dim[i >= axis] *= x.dim[i];
	if (!c->failed) slp_onnx_set_output_value(c, 0, slp_onnx_reshaped(c, c->in[0], y));
}

void slp_onnx_import_squeeze(struct slp_onnx_call *c)
{
	int64_t axes[SL_MAX_NDIM];
	int n = slp_onnx_ints_in(c, 1, "axes", axes, SL_MAX_NDIM);
	sl_shape x = slp_onnx_shape(c, 0), y = {0};
	bool gone[SL_MAX_NDIM] = {false};
	for (int i = 0; i < n && !c->failed; i++) gone[slp_onnx_axis(c, axes[i], x.ndim)] = true;
	for (int i = 0; i < x.ndim && !c->failed; i++) {
		bool goes = n < 0 ? x.dim[i] == 1 : gone[i];
		if (goes && x.dim[i] != 1)
			slp_onnx_call_fail(c, SL_ESHAPE, "axis %d has size %lld", i, (long long)x.dim[i]);
		if (!goes) y.dim[y.ndim++] = x.dim[i];
	}
	if (!c->failed) slp_onnx_set_output_value(c, 0, slp_onnx_reshaped(c, c->in[0], y));
}

void slp_onnx_import_unsqueeze(struct slp_onnx_call *c)
{
	int64_t axes[SL_MAX_NDIM];
	int n = slp_onnx_ints_in(c, 1, "axes", axes, SL_MAX_NDIM);
	sl_shape x = slp_onnx_shape(c, 0), y = {.ndim = x.ndim + (n > 0 ? n : 0)};
	bool new[2 * SL_MAX_NDIM] = {false};
	if (n < 0 || y.ndim > SL_MAX_NDIM)
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "makes %d axes, more than %d", y.ndim, SL_MAX_NDIM);
	for (int i = 0; i < n && !c->failed; i++) {
		int axis = slp_onnx_axis(c, axes[i], y.ndim);
		if (new[axis] && !c->failed) slp_onnx_call_fail(c, SL_EFORMAT, "axis %d is named twice", axis);
		new[axis] = true;
	}
	for (int i = 0, k = 0; i < y.ndim && !c->failed; i++) y.dim[i] = new[i] ? 1 : x.dim[k++];
	if (!c->failed) slp_onnx_set_output_value(c, 0, slp_onnx_reshaped(c, c->in[0], y));
}

/* ---- moving ------------------------------------------------------------------------------------------------------ */

void slp_onnx_import_transpose(struct slp_onnx_call *c)
{
	int64_t perm[SL_MAX_NDIM];
	int axes[SL_MAX_NDIM], n = slp_onnx_attr_ints(c, "perm", perm, SL_MAX_NDIM), ndim = slp_onnx_shape(c, 0).ndim;
	bool seen[SL_MAX_NDIM] = {false};
	if (n >= 0 && n != ndim)
		slp_onnx_call_fail(c, SL_ESHAPE, "attribute perm has %d numbers, the input %d axes", n, ndim);
	for (int i = 0; i < ndim && !c->failed; i++) {
		axes[i] = n < 0 ? ndim - 1 - i : slp_onnx_axis(c, perm[i], ndim);
		if (seen[axes[i]] && !c->failed)
			slp_onnx_call_fail(c, SL_EFORMAT, "attribute perm names axis %d twice", axes[i]);
		seen[axes[i]] = true;
	}
	if (!c->failed) slp_onnx_set_output_value(c, 0, slp_onnx_transposed(c, c->in[0], axes));
}

void slp_onnx_import_expand(struct slp_onnx_call *c)
{
	sl_shape y = shape_in(c, 1, NULL);
	if (!c->failed) slp_onnx_set_output_value(c, 0, slp_onnx_broadcast(c, c->in[0], y));
}

void slp_onnx_import_tile(struct slp_onnx_call *c)
{
	int64_t times[SL_MAX_NDIM];
	sl_shape x = slp_onnx_shape(c, 0);
	struct slp_onnx_value v = c->in[0];
	int n = slp_onnx_ints_in(c, 1, NULL, times, SL_MAX_NDIM);
	if (!c->failed && n != x.ndim) slp_onnx_call_fail(c, SL_ESHAPE, "%d numbers for %d axes", n, x.ndim);
	for (int i = 0; i < n && !c->failed; i++) {
		struct slp_onnx_value list[64];
		for (int64_t k = 0; k < times[i] && k < 64; k++) list[k] = v;
		if (times[i] == 1) continue;
		if (v.known && times[i] > 0 && times[i] <= 64) v = slp_onnx_joined(c, list, (int)times[i], i);
		else v = (struct slp_onnx_value){.t = sl_tile_at(c->at, slp_onnx_as_tensor(c, v), i, times[i])};
		if (!v.t && !v.known) c->failed = true;
	}
	if (!c->failed) slp_onnx_set_output_value(c, 0, v);
}

void slp_onnx_import_concat(struct slp_onnx_call *c)
{
	int axis = slp_onnx_axis(c, slp_onnx_attr_int(c, "axis", 1), slp_onnx_shape(c, 0).ndim);
	for (int i = 0; i < c->nin; i++)
		if (!slp_onnx_has(c, i)) slp_onnx_call_fail(c, SL_EFORMAT, "has no input %d", i);
	if (!c->failed) slp_onnx_set_output_value(c, 0, slp_onnx_joined(c, c->in, c->nin, axis));
}

/* Sizes of the parts: given, or equal, with a smaller last one.  The last results may be unused. */
void slp_onnx_import_split(struct slp_onnx_call *c)
{
	enum { MOST = 1024 };
	int64_t sizes[MOST], begin = 0, total = 0;
	sl_shape x = slp_onnx_shape(c, 0);
	int axis = slp_onnx_axis(c, slp_onnx_attr_int(c, "axis", 0), x.ndim),
	    n = slp_onnx_ints_in(c, 1, "split", sizes, MOST);
	if (c->failed) return;
	int parts = (int)c->node->n_output;
	int64_t size = n < 0 && parts > 0 ? (x.dim[axis] + parts - 1) / parts : 0;
	for (int i = 0; n < 0 && i < parts && i < MOST; i++, total += size)
		sizes[i] = total + size > x.dim[axis] ? x.dim[axis] - total : size;
	if (n < 0) n = parts;
	total = 0;
	for (int i = 0; i < n && i < MOST && total >= 0; i++)
		total = sizes[i] < 0 || sizes[i] > x.dim[axis] ? -1 : total + sizes[i];
	if (n != parts || n > MOST || total != x.dim[axis])
		slp_onnx_call_fail(c, SL_ESHAPE, "its sizes do not fit axis %d of %lld, or %d results", axis,
		                   (long long)x.dim[axis], parts);
	for (int i = 0; i < c->nout && !c->failed; begin += sizes[i++])
		slp_onnx_set_output_value(c, i, slp_onnx_sliced(c, c->in[0], axis, begin, begin + sizes[i], 1));
}

void slp_onnx_import_slice(struct slp_onnx_call *c)
{
	int64_t begin[SL_MAX_NDIM], end[SL_MAX_NDIM], axes[SL_MAX_NDIM], steps[SL_MAX_NDIM];
	int n = slp_onnx_ints_in(c, 1, "starts", begin, SL_MAX_NDIM),
	    m = slp_onnx_ints_in(c, 2, "ends", end, SL_MAX_NDIM);
	int a = slp_onnx_ints_in(c, 3, "axes", axes, SL_MAX_NDIM), s = slp_onnx_ints_in(c, 4, NULL, steps, SL_MAX_NDIM);
	struct slp_onnx_value v = c->in[0];
	int ndim = slp_onnx_shape(c, 0).ndim;
	if (!c->failed && (n < 0 || m != n || (a >= 0 && a != n) || (s >= 0 && s != n)))
		slp_onnx_call_fail(c, SL_EFORMAT, "starts, ends, axes and steps are of different lengths");
	for (int i = 0; i < n && !c->failed; i++) {
		int axis = slp_onnx_axis(c, a < 0 ? i : axes[i], ndim);
		if (c->failed) return;
		v = slp_onnx_sliced(c, v, axis, begin[i], end[i], s < 0 ? 1 : steps[i]);
		if (!v.t && !v.known) c->failed = true;
	}
	if (!c->failed) slp_onnx_set_output_value(c, 0, v);
}

void slp_onnx_import_gather(struct slp_onnx_call *c)
{
	int axis = slp_onnx_axis(c, slp_onnx_attr_int(c, "axis", 0), slp_onnx_shape(c, 0).ndim);
	if (!c->failed) slp_onnx_set_output_value(c, 0, slp_onnx_gathered(c, c->in[0], c->in[1], axis));
}

/* ---- crops and reversals ----------------------------------------------------------------------------------------- */

/* To this size, the same much off or on at both ends; the odd one goes to the end of a border, to the start of a cut. */
static struct slp_onnx_value centred(struct slp_onnx_call *c, struct slp_onnx_value v, int axis, int64_t size)
{
	sl_shape s = slp_onnx_shape_of(c, v);
	if (c->failed) return v;
	int64_t n = s.dim[axis], more = size - n, before = more / 2;
	if (more < 0) {
		before = (n - size) / 2;
		return slp_onnx_sliced(c, v, axis, before, before + size, 1);
	}
	sl_tensor *t = more ? slp_onnx_as_tensor(c, v) : NULL;
	if (!more) return v;
	return (struct slp_onnx_value){
	        .t = t ? sl_pad_at(c->at, t, axis, before, more - before, (struct sl_pad_opts){0}) : NULL};
}

void slp_onnx_import_center_crop_pad(struct slp_onnx_call *c)
{
	int64_t sizes[SL_MAX_NDIM], axes[SL_MAX_NDIM];
	int ndim = slp_onnx_shape(c, 0).ndim, n = slp_onnx_ints_in(c, 1, NULL, sizes, SL_MAX_NDIM),
	    m = slp_onnx_attr_ints(c, "axes", axes, SL_MAX_NDIM);
	struct slp_onnx_value v = c->in[0];
	if (!c->failed && n != (m < 0 ? ndim : m))
		slp_onnx_call_fail(c, SL_ESHAPE, "%d sizes are given for %d axes", n, m < 0 ? ndim : m);
	for (int i = 0; i < n && !c->failed; i++) {
		int axis = slp_onnx_axis(c, m < 0 ? i : axes[i], ndim);
		if (!c->failed && (sizes[i] < 0 || sizes[i] > INT32_MAX))
			slp_onnx_call_fail(c, SL_ESHAPE, "axis %d cannot get %lld elements", axis, (long long)sizes[i]);
		if (!c->failed) v = centred(c, v, axis, sizes[i]);
		if (!slp_onnx_present(v)) c->failed = true;
	}
	if (!c->failed) slp_onnx_set_output_value(c, 0, v);
}

/* Where each element of a sequence comes from: time (length, 1), lengths (1, batch); behind its end it stays. */
static sl_tensor *reversed_places(struct slp_onnx_call *c, sl_tensor *lengths, int64_t time, int64_t batch)
{
	struct sl_make make = {SL_INT64, sl_tensor_device(lengths)};
	sl_tensor *i = sl_arange_at(c->at, 0, (double)time, 1, make);
	i = i ? sl_reshape_at(c->at, i, SL_SHAPE(time, 1)) : NULL;
	lengths = sl_reshape_at(c->at, sl_cast_at(c->at, lengths, SL_INT64), SL_SHAPE(1, batch));
	sl_tensor *last = i && lengths ? sl_sub_scalar_at(c->at, lengths, 1) : NULL;
	sl_tensor *turned = last ? sl_sub_at(c->at, last, i) : NULL;
	sl_tensor *within = turned ? sl_ge_scalar_at(c->at, turned, 0) : NULL;
	return within ? sl_where_at(c->at, within, turned, i) : NULL;
}

void slp_onnx_import_reverse_sequence(struct slp_onnx_call *c)
{
	int time = slp_onnx_attr_small(c, "time_axis", 0, 0, 1), batch = slp_onnx_attr_small(c, "batch_axis", 1, 0, 1);
	sl_shape s = slp_onnx_shape(c, 0);
	if (!c->failed && (time == batch || s.ndim < 2))
		slp_onnx_call_fail(c, SL_ESHAPE, "time_axis %d, batch_axis %d of %d axes", time, batch, s.ndim);
	sl_tensor *x = c->failed ? NULL : slp_onnx_tensor(c, 0), *lengths = x ? slp_onnx_tensor(c, 1) : NULL;
	if (!lengths || sl_tensor_size(lengths) != s.dim[batch]) {
		slp_onnx_call_fail(c, SL_ESHAPE, "as many lengths are needed as there are sequences");
		return;
	}
	int64_t n = s.dim[time], m = s.dim[batch];
	int swap[] = {1, 0, 2};
	struct sl_reduce_opts o = {.axes = swap, .naxes = 3};
	sl_tensor *from = reversed_places(c, lengths, n, m);
	x = sl_reshape_at(c->at, x, SL_SHAPE(s.dim[0], s.dim[1], -1));
	if (time == 1 && x) x = sl_transpose_at(c->at, x, o);
	int64_t inner = x ? sl_tensor_shape(x).dim[2] : 1;
	from = from && x
	               ? sl_broadcast_to_at(c->at, sl_reshape_at(c->at, from, SL_SHAPE(n, m, 1)), SL_SHAPE(n, m, inner))
	               : NULL;
	x = from ? sl_take_along_at(c->at, x, sl_cast_at(c->at, from, SL_INT32), 0) : NULL;
	if (time == 1 && x) x = sl_transpose_at(c->at, x, o);
	slp_onnx_set_output(c, 0, x ? sl_reshape_at(c->at, x, s) : NULL);
}
