/* slice: every step-th element of an axis; slice_grad puts them back among zeros. */
#include "common/move_attrs.h"
#include "op_list/move.h"
#include "slice.h"
#include "starling/primitives.h"

#define SLICE_ATTRS(type, path)                                                                                        \
	{"axis", SLP_INT, offsetof(type, path axis), 1, "the axis; negative: from the end", false, false},             \
	        {"begin", SLP_INT64, offsetof(type, path begin), 1, "first element; negative: from the end",           \
	         false,   false},                                                                                      \
	        {"end", SLP_INT64, offsetof(type, path end), 1, "element to stop before; negative: from the end",      \
	         false, false},                                                                                        \
	{                                                                                                              \
		"step", SLP_INT64, offsetof(type, path step), 1, "distance; negative: backwards; not 0", false, false  \
	}

static const struct slp_attr slice_attr_table[] = {SLICE_ATTRS(struct slp_slice_attrs, ), {0}};
static const struct slp_attr slice_grad_attr_table[] = {
        SLICE_ATTRS(struct slp_slice_grad_attrs, slice.),
        SLP_ATTR(struct slp_slice_grad_attrs, size, SLP_INT64, 1, "size of the axis of x"),
        {0},
};

/* A bound of the slice, counted from the start and limited to low and high. */
static int64_t clamp(int64_t i, int64_t n, int64_t low, int64_t high)
{
	if (i < 0) i += n; /* cannot overflow: the signs differ */
	return i < low ? low : i > high ? high : i;
}

static struct slp_slice resolve(const struct slp_slice_attrs *a, int64_t n)
{
	bool back = a->step < 0;
	int64_t low = back ? -1 : 0, high = back ? n - 1 : n;
	int64_t begin = clamp(a->begin, n, low, high), end = clamp(a->end, n, low, high);
	int64_t length = back ? begin - end : end - begin;
	uint64_t step = back ? -(uint64_t)a->step : (uint64_t)a->step;
	struct slp_slice s = {begin, a->step, length > 0 ? (int64_t)(((uint64_t)length - 1) / step + 1) : 0};
	if (s.count < 2) s.step = 1; /* now steps of all sizes stay inside */
	if (s.count == 0) s.begin = 0;
	return s;
}

static enum sl_status check(const struct slp_infer *c, const struct slp_slice_attrs *a, sl_shape shape, int *axis)
{
	*axis = a->axis;
	if (!slp_axis(axis, shape.ndim))
		return slp_reject(c, SL_EINVAL, "axis %d does not exist: the tensor has %d axes", a->axis, shape.ndim);
	return a->step ? SL_OK : slp_reject(c, SL_EINVAL, "step is 0; it must be 1 or more, or -1 or less");
}

/* ---- slice ------------------------------------------------------------------------------------------------------ */

static enum sl_status slice_infer(struct slp_infer *c)
{
	const struct slp_slice_attrs *a = c->attrs;
	int axis;
	enum sl_status status = check(c, a, c->in[0].shape, &axis);
	if (status) return status;
	c->out[0] = c->in[0];
	c->out[0].shape.dim[axis] = resolve(a, c->in[0].shape.dim[axis]).count;
	return SL_OK;
}

/* Only the slice is read. */
static double slice_bytes(const struct slp_infer *c)
{
	return 2.0 * (double)sl_shape_size(c->out[0].shape) * (double)sl_dtype_size(c->out[0].dtype);
}

static struct slp_strided plan(const struct slp_kernel *k)
{
	const struct slp_slice_attrs *a = k->attrs;
	int axis = a->axis;
	slp_axis(&axis, k->in[0].type.shape.ndim);
	struct slp_split x = slp_split_at(k->in[0].type.shape, axis);
	struct slp_slice s = resolve(a, x.n);
	struct slp_strided p = {.base = s.begin * x.inner};
	slp_strided_add(&p, x.outer, x.n * x.inner);
	slp_strided_add(&p, s.count, s.step * x.inner);
	slp_strided_add(&p, x.inner, 1);
	return p;
}

#define KERNEL(how)                                                                                                    \
	static enum sl_status slice_##how(const struct slp_kernel *k)                                                  \
	{                                                                                                              \
		struct slp_strided p = plan(k);                                                                        \
		return slp_size(&k->out[0]) ? slp_strided_##how(k, &p) : SL_OK;                                        \
	}
KERNEL(ref)
KERNEL(cpu)
#ifdef HAVE_CUDA
KERNEL(cuda)
#endif

static enum sl_status slice_grad_of_slice(struct slp_grad *g)
{
	struct slp_slice_grad_attrs attrs = {.slice = *(const struct slp_slice_attrs *)g->attrs};
	sl_shape x = sl_tensor_shape(g->in[0]);
	int axis = attrs.slice.axis;
	slp_axis(&axis, x.ndim);
	attrs.size = x.dim[axis];
	g->din[0] = slp_apply1(g->at, &slp_op_slice_grad, &attrs, 1, g->dout);
	return SL_OK;
}

/* The elements begin, begin + step, … before end of an axis of x, as x[begin:end:step] in Python: negative begin and
 * end count from the end, bounds outside of the axis are clipped, the result may be empty.  A negative step goes
 * backwards; then end INT64_MIN means "to the first".  Any data type; a copy.  SL_EINVAL: no such axis, or step 0.
 *
 *     y = sl_slice(x, 1, 0, -1, 2);              // every second column, without the last
 *     y = sl_slice(x, 0, -1, INT64_MIN, -1);     // the rows in reverse */
sl_tensor *sl_slice_at(const char *at, sl_tensor *x, int axis, int64_t begin, int64_t end, int64_t step)
{
	struct slp_slice_attrs attrs = {axis, begin, end, step};
	return slp_apply1(at, &slp_op_slice, &attrs, 1, &x);
}

/* ---- slice_grad ------------------------------------------------------------------------------------------------- */

static enum sl_status slice_grad_infer(struct slp_infer *c)
{
	const struct slp_slice_grad_attrs *a = c->attrs;
	int axis;
	enum sl_status status = check(c, &a->slice, c->in[0].shape, &axis);
	if (status) return status;
	if (a->size < 0 || resolve(&a->slice, a->size).count != c->in[0].shape.dim[axis])
		return slp_reject(c, SL_ESHAPE, "axis %d has %lld elements, but the slice of an axis of %lld has %lld",
		                  axis, (long long)c->in[0].shape.dim[axis], (long long)a->size,
		                  a->size < 0 ? 0LL : (long long)resolve(&a->slice, a->size).count);
	c->out[0] = c->in[0];
	c->out[0].shape.dim[axis] = a->size;
	return SL_OK;
}

static struct slp_split split(const struct slp_kernel *k, struct slp_slice *s)
{
	const struct slp_slice_grad_attrs *a = k->attrs;
	int axis = a->slice.axis;
	slp_axis(&axis, k->out[0].type.shape.ndim);
	*s = resolve(&a->slice, a->size);
	return slp_split_at(k->out[0].type.shape, axis);
}

static enum sl_status slice_grad_ref(const struct slp_kernel *k)
{
	struct slp_slice s;
	struct slp_split dx = split(k, &s);
	for (int64_t i = 0; i < slp_size(&k->out[0]); i++) {
		int64_t in = i % dx.inner, outer = i / dx.inner / dx.n;
		int64_t at = slp_slice_index(s, i / dx.inner % dx.n);
		slp_set(&k->out[0], i, at < 0 ? 0 : slp_get(&k->in[0], (outer * s.count + at) * dx.inner + in));
	}
	return SL_OK;
}

struct job {
	const char *dy;
	char *dx;
	struct slp_split split;
	struct slp_slice slice;
	size_t size; /* of an element */
};

/* One row of the axis: zeros, then the elements of the slice. */
static inline void put(char *restrict dx, const char *restrict dy, const struct job *j)
{
	size_t run = (size_t)j->split.inner * j->size;
	memset(dx, 0, (size_t)j->split.n * run);
	dx += (size_t)j->slice.begin * run;
	if (j->slice.step == 1) {
		slp_copy_run(dx, dy, (size_t)j->slice.count * run);
		return;
	}
	ptrdiff_t step = (ptrdiff_t)j->slice.step * (ptrdiff_t)run;
	for (int64_t i = 0; i < j->slice.count; i++) slp_copy_run(dx + i * step, dy + (size_t)i * run, run);
}

static void put_outer(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	size_t run = (size_t)j->split.inner * j->size;
	for (int64_t i = begin; i < end; i++)
		put(j->dx + (size_t)(i * j->split.n) * run, j->dy + (size_t)(i * j->slice.count) * run, j);
}

/* With a single row before the axis: by elements of the axis. */
static void put_inner(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	size_t run = (size_t)j->split.inner * j->size;
	int64_t step = j->slice.step, first = j->slice.begin, last = first + (j->slice.count - 1) * step;
	int64_t low = step > 0 ? first : last, high = step > 0 ? last : first, each = step > 0 ? step : -step;
	memset(j->dx + (size_t)begin * run, 0, (size_t)(end - begin) * run);
	if (!j->slice.count) return;
	int64_t i = begin <= low ? low : low + (begin - low + each - 1) / each * each;
	for (; i < end && i <= high; i += each)
		slp_copy_run(j->dx + (size_t)i * run, j->dy + (size_t)((i - first) / step) * run, run);
}

static enum sl_status slice_grad_cpu(const struct slp_kernel *k)
{
	struct job j = {.dy = k->in[0].ptr, .dx = k->out[0].ptr, .size = sl_dtype_size(k->out[0].type.dtype)};
	j.split = split(k, &j.slice);
	int64_t each = j.split.n * j.split.inner, inner = j.split.inner;
	if (slp_size(&k->out[0]) == 0) return SL_OK;
	if (j.split.outer > 1) slp_parallel_for(j.split.outer, each < SLP_GRAIN ? SLP_GRAIN / each : 1, put_outer, &j);
	else slp_parallel_for(j.split.n, inner < SLP_GRAIN ? SLP_GRAIN / inner : 1, put_inner, &j);
	return SL_OK;
}

#ifdef HAVE_CUDA
static enum sl_status slice_grad_cuda(const struct slp_kernel *k)
{
	struct slp_slice s;
	struct slp_split dx = split(k, &s);
	return slp_size(&k->out[0]) ? slp_slice_grad_cuda(k, dx, s) : SL_OK;
}
#endif

/* The gradient of slice_grad is slice. */
static enum sl_status slice_grad_grad(struct slp_grad *g)
{
	const struct slp_slice_grad_attrs *a = g->attrs;
	g->din[0] = slp_apply1(g->at, &slp_op_slice, &a->slice, 1, g->dout);
	return SL_OK;
}

const struct sl_op slp_op_slice = {
        .name = "slice",
        .doc = "every step-th element of an axis between begin and end",
        .args = "x",
        SLP_NIN(1),
        .nout = 1,
        .attr_table = slice_attr_table,
        .attrs_size = sizeof(struct slp_slice_attrs),
        .rows = SLP_ROWS(SLP_ROW(SLP_ANY, slice_cpu, slice_cuda)),
        .infer = slice_infer,
        .bytes = slice_bytes,
        .grad = slice_grad_of_slice,
        .ref = slice_ref,
};

const struct sl_op slp_op_slice_grad = {
        .name = "slice_grad",
        .doc = "gradient of slice: its elements at their positions, zeros elsewhere",
        .args = "dy",
        SLP_NIN(1),
        .nout = 1,
        .attr_table = slice_grad_attr_table,
        .attrs_size = sizeof(struct slp_slice_grad_attrs),
        .rows = SLP_ROWS(SLP_ROW(SLP_ANY, slice_grad_cpu, slice_grad_cuda)),
        .infer = slice_grad_infer,
        .grad = slice_grad_grad,
        .ref = slice_grad_ref,
};
