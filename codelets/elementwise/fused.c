/* fused: a short expression of elementwise functions, run in one pass over memory.
 *
 * The kernel takes blocks that stay in a first-level cache and runs on each, step by step, the CPU kernels of the fused
 * operations (their references for float64): so the result has the bits of single calls. expression.c makes
 * expressions. */
#include <math.h>
#include <string.h>

#include "common/operands.h"
#include "fill/fill.h"
#include "fused.h"
#include "op_list/binary.h"

/* ---- rules ------------------------------------------------------------------------------------------------------ */

static const struct slp_attr attr_table[] = {
        SLP_ATTR_VALUE(struct slp_fused_attrs, number, SLP_DOUBLE, SLP_FUSED_NUMBERS, "numbers that are operands"),
        SLP_ATTR(struct slp_fused_attrs, step, SLP_INT, SLP_FUSED_STEPS,
                 "function + 256 operand + 65536 operand; the first one + 2^30: images in NHWC"),
        {0},
};

/* Whether step i may read the operand: an input, a number, or the result of an earlier step. */
static bool readable(const struct slp_infer *c, int operand, int i)
{
	if (operand >= SLP_FUSED_NUMBER) return operand < SLP_FUSED_NUMBER + SLP_FUSED_NUMBERS;
	if (operand >= SLP_FUSED_RESULT) return operand < SLP_FUSED_RESULT + i;
	return operand < c->nin;
}

/* Expressions compute in float32 or float64; a program's operation may lack a kernel for one. */
static bool has_kernel(const struct slp_infer *c, struct slp_fused_step s)
{
	struct slp_types types = SLP_ALL_OF(slp_promoted(c->in[0].dtype));
	return !s.own || slp_kernel_for(slp_fused_function(s), types, SL_DEVICE_CPU).kernel;
}

static enum sl_status check_expression(const struct slp_infer *c)
{
	const struct slp_fused_attrs *f = c->attrs;
	int n = slp_fused_count(f);
	if (n == 0) return slp_reject(c, SL_EINVAL, "an expression without steps");
	for (int i = 0; i < n; i++) {
		struct slp_fused_step s = slp_fused_step_at(f, i);
		if (f->step[i] < 0 || (i && f->step[i] & SLP_FUSED_NHWC))
			return slp_reject(c, SL_EINVAL, "step %d: %d is none", i, f->step[i]);
		if (!slp_fused_step_exists(s)) return slp_reject(c, SL_EINVAL, "step %d: no function %d", i, s.code);
		if (!has_kernel(c, s))
			return slp_reject(c, SL_EDTYPE, "step %d, %s: no kernel takes %s", i,
			                  slp_fused_function(s)->name, sl_dtype_name(c->in[0].dtype));
		if (!readable(c, s.a, i) || !readable(c, s.b, i))
			return slp_reject(c, SL_EINVAL, "step %d, %s: operands %d, %d do not both exist", i,
			                  slp_fused_function(s)->name, s.a, s.b);
	}
	return SL_OK;
}

static enum sl_status infer(struct slp_infer *c)
{
	sl_shape shape = c->in[0].shape;
	if (c->nin > SLP_FUSED_INPUTS) return slp_reject(c, SL_EINVAL, "takes at most %d inputs", SLP_FUSED_INPUTS);
	for (int i = 0; i < c->nin; i++) {
		enum sl_dtype type = c->in[i].dtype, first = c->in[0].dtype;
		if (!slp_is_float(type) || (type != first && type != slp_promoted(first)))
			return slp_reject(c, SL_EDTYPE,
			                  "inputs must all be float32 or all float64, or, beside a half type, float32");
		if (!slp_broadcast(shape, c->in[i].shape, &shape))
			return slp_reject(c, SL_ESHAPE, "input %d cannot be broadcast together with those before it",
			                  i);
	}
	if (slp_fused_is_nhwc(c->attrs) && shape.ndim != 4)
		return slp_reject(c, SL_ESHAPE, "the result has %d axes, images in NHWC have 4", shape.ndim);
	c->out[0] = (struct slp_type){c->in[0].dtype, shape};
	return check_expression(c);
}

static double flops(const struct slp_infer *c)
{
	return slp_fused_count(c->attrs) * (double)sl_shape_size(c->out[0].shape);
}

/* ---- reference -------------------------------------------------------------------------------------------------- */

/* The element in an input of shape s for element i of the result. */
static int64_t source(sl_shape s, sl_shape out, int64_t i)
{
	int64_t from = 0, step[SL_MAX_NDIM];
	slp_broadcast_steps(s, out.ndim, step);
	for (int axis = out.ndim - 1; axis >= 0; axis--) {
		from += i % out.dim[axis] * step[axis];
		i /= out.dim[axis];
	}
	return from;
}

/* One step on one element, by the reference of its operation; a program's operation has none. */
static double ref_step(const struct slp_kernel *k, struct slp_fused_step s, const double *value)
{
	const struct slp_type one = {SL_FLOAT64, {1, {1}}};
	double a = value[s.a], b = value[s.b], result = NAN;
	struct slp_view in[2] = {{&a, one}, {&b, one}}, out = {&result, one};
	const struct sl_op *op = slp_fused_function(s);
	if (!op->ref) return result;
	op->ref(&(struct slp_kernel){
	        .op = op, .nin = op->nin_max, .nout = 1, .in = in, .out = &out, .threads = 1, .stream = k->stream});
	return result;
}

static enum sl_status ref(const struct slp_kernel *k)
{
	const struct slp_fused_attrs *f = k->attrs;
	bool single = k->out[0].type.dtype == SL_FLOAT32;
	double value[SLP_FUSED_NUMBER + SLP_FUSED_NUMBERS] = {0};
	int n = slp_fused_count(f);
	sl_shape out = slp_fused_stored(f, k->out[0].type.shape);
	for (int i = 0; i < SLP_FUSED_NUMBERS; i++)
		value[SLP_FUSED_NUMBER + i] = single ? (double)(float)f->number[i] : f->number[i];
	for (int64_t e = 0; e < slp_size(&k->out[0]); e++) {
		for (int i = 0; i < k->nin; i++)
			value[i] = slp_get(&k->in[i], source(slp_fused_stored(f, k->in[i].type.shape), out, e));
		for (int i = 0; i < n; i++) value[SLP_FUSED_RESULT + i] = ref_step(k, slp_fused_step_at(f, i), value);
		slp_set(&k->out[0], e, value[SLP_FUSED_RESULT + n - 1]);
	}
	return SL_OK;
}

/* ---- blocks ----------------------------------------------------------------------------------------------------- */

enum { BLOCK = 8192 }; /* bytes of each value: a few of them fit a first-level cache */

typedef char buffer[BLOCK];

struct work {
	const struct slp_kernel *k;
	enum sl_dtype dtype;
	size_t size; /* of an element */
	int nsteps;
	struct slp_fused_step step[SLP_FUSED_STEPS];
	const struct sl_op *op[SLP_FUSED_STEPS];
	slp_kernel_fn *kernel[SLP_FUSED_STEPS];
	int slot[SLP_FUSED_STEPS]; /* the buffer for the result of a step */
	union attrs *attrs;        /* of each step, if some step is a program's operation; otherwise NULL */
	struct slp_first_failure *failure;
	struct slp_broadcast_plan plan[SLP_FUSED_INPUTS];
	float number[SLP_FUSED_NUMBERS];
};

union attrs {
	char bytes[SLP_MAX_ATTRS];
	max_align_t align;
};

/* An operand within a block: one number for each element, or a single one for all. */
struct value {
	char *ptr;
	int64_t n;
};

/* Writes n copies of *from. */
static void repeat(const struct work *w, const char *from, int64_t n, char *to)
{
	if (w->dtype == SL_FLOAT64)
		for (int64_t i = 0; i < n; i++) ((double *)to)[i] = *(const double *)from;
	else
		for (int64_t i = 0; i < n; i++) ((float *)to)[i] = *(const float *)from;
}

/* Copies n elements of input i from element `begin` of the result on, broadcast as in the result. */
static void spread(const struct work *w, int i, int64_t begin, int64_t n, char *to)
{
	const struct slp_broadcast_plan *p = &w->plan[i];
	int last = p->ndim - 1;
	int64_t column = begin % p->dim[last], row = begin / p->dim[last];
	for (int64_t done = 0, run; done < n; done += run, column = 0, row++) {
		int64_t at = column * p->a[last], rest = row;
		for (int axis = last - 1; axis >= 0; rest /= p->dim[axis], axis--)
			at += rest % p->dim[axis] * p->a[axis];
		const char *from = (const char *)w->k->in[i].ptr + (size_t)at * w->size;
		run = p->dim[last] - column < n - done ? p->dim[last] - column : n - done;
		if (p->a[last]) memcpy(to + (size_t)done * w->size, from, (size_t)run * w->size);
		else repeat(w, from, run, to + (size_t)done * w->size);
	}
}

/* Input i for the elements [begin, begin + n) of the result: in place, or copied to the buffer. */
static struct value input_value(const struct work *w, int i, int64_t begin, int64_t n, char *copy)
{
	const struct slp_broadcast_plan *p = &w->plan[i];
	int last = p->ndim - 1;
	int64_t column = begin % p->dim[last], row = begin / p->dim[last], at = column * p->a[last];
	if (column + n > p->dim[last]) {
		spread(w, i, begin, n, copy);
		return (struct value){copy, n};
	}
	for (int axis = last - 1; axis >= 0; row /= p->dim[axis], axis--) at += row % p->dim[axis] * p->a[axis];
	return (struct value){(char *)w->k->in[i].ptr + (size_t)at * w->size, p->a[last] ? n : 1};
}

static struct value number_value(const struct work *w, int i)
{
	const struct slp_fused_attrs *f = w->k->attrs;
	return (struct value){w->dtype == SL_FLOAT64 ? (char *)&f->number[i] : (char *)&w->number[i], 1};
}

static struct slp_view view_of(const struct work *w, struct value v)
{
	struct slp_view view;
	view.ptr = v.ptr;
	view.type.dtype = w->dtype;
	view.type.shape.ndim = 1;
	view.type.shape.dim[0] = v.n;
	return view;
}

/* Runs a program's kernel on n elements of each operand. */
static void run_own(const struct work *w, int i, struct slp_kernel *k, struct slp_view *in, int64_t n, buffer *copies)
{
	for (int j = 0; j < k->nin; j++) {
		if (slp_size(&in[j]) == n) continue;
		repeat(w, in[j].ptr, n, copies[j]);
		in[j] = view_of(w, (struct value){copies[j], n});
	}
	k->attrs = &w->attrs[i];
	slp_note_failure(w->failure, w->kernel[i](k), k->op);
}

/* Runs one step: its operation's kernel, on this thread since there is less than a grain. A single number is copied to
 * a place that the result does not overwrite. */
static void run_step(const struct work *w, int i, struct value a, struct value b, struct value to, buffer *copies)
{
	double single[2];
	if (a.n == 1) a.ptr = memcpy(&single[0], a.ptr, w->size);
	if (b.n == 1) b.ptr = memcpy(&single[1], b.ptr, w->size);
	struct slp_view in[2] = {view_of(w, a), view_of(w, b)}, out = view_of(w, to);
	struct slp_kernel k = {
	        .op = w->op[i], .nin = w->op[i]->nin_max, .nout = 1, .in = in, .out = &out, .threads = 1};
	if (w->step[i].own) run_own(w, i, &k, in, to.n, copies);
	else w->kernel[i](&k);
}

static void run_block(const struct work *w, int64_t begin, int64_t n, buffer *buffers)
{
	struct value value[SLP_FUSED_NUMBER + SLP_FUSED_NUMBERS];
	char *out = (char *)w->k->out[0].ptr + (size_t)begin * w->size;
	int nin = w->k->nin;
	for (int i = 0; i < nin; i++) value[i] = input_value(w, i, begin, n, buffers[i]);
	for (int i = 0; i < SLP_FUSED_NUMBERS; i++) value[SLP_FUSED_NUMBER + i] = number_value(w, i);
	for (int i = 0; i < w->nsteps; i++) {
		struct slp_fused_step s = w->step[i];
		struct value a = value[s.a], b = value[s.b];
		struct value to = {i == w->nsteps - 1 ? out : buffers[nin + w->slot[i]], a.n > b.n ? a.n : b.n};
		run_step(w, i, a, b, to, buffers + SLP_FUSED_INPUTS + SLP_FUSED_STEPS);
		value[SLP_FUSED_RESULT + i] = to;
	}
	if (value[SLP_FUSED_RESULT + w->nsteps - 1].n == 1) repeat(w, out, n - 1, out + w->size);
}

static void range(void *arg, int64_t begin, int64_t end)
{
	const struct work *w = arg;
	buffer buffers[SLP_FUSED_INPUTS + SLP_FUSED_STEPS + 2] __attribute__((aligned(64)));
	int64_t most = (int64_t)(BLOCK / w->size);
	for (; begin < end; begin += most) run_block(w, begin, end - begin < most ? end - begin : most, buffers);
}

/* ---- the kernel ------------------------------------------------------------------------------------------------- */

/* The last step that reads the result of step i. */
static int last_use(const struct work *w, int i)
{
	int last = i;
	for (int s = i + 1; s < w->nsteps; s++)
		if (w->step[s].a == SLP_FUSED_RESULT + i || w->step[s].b == SLP_FUSED_RESULT + i) last = s;
	return last;
}

/* Assigns each result the first buffer that is free; a step may overwrite its operand. */
static void assign_slots(struct work *w)
{
	int until[SLP_FUSED_STEPS] = {0}; /* the last step that reads the buffer */
	for (int i = 0; i < w->nsteps; i++) {
		int slot = 0;
		while (until[slot] > i) slot++;
		w->slot[i] = slot;
		until[slot] = last_use(w, i);
	}
}

static void prepare_steps(struct work *w, const struct slp_fused_attrs *f, union attrs *attrs)
{
	for (int i = 0; i < w->nsteps; i++) {
		w->step[i] = slp_fused_step_at(f, i);
		w->op[i] = slp_fused_function(w->step[i]);
		w->kernel[i] = slp_kernel_for(w->op[i], SLP_ALL_OF(w->dtype), SL_DEVICE_CPU).kernel;
		if (!w->step[i].own) continue;
		w->attrs = attrs;
		memset(&attrs[i], 0, sizeof attrs[i]);
		slp_fused_unpack(f, w->step[i], &attrs[i]);
	}
}

static enum sl_status cpu(const struct slp_kernel *k)
{
	const struct slp_fused_attrs *f = k->attrs;
	enum sl_dtype dtype = k->out[0].type.dtype;
	struct slp_first_failure failure = {0};
	union attrs attrs[SLP_FUSED_STEPS];
	struct work w = {.k = k,
	                 .dtype = dtype,
	                 .size = sl_dtype_size(dtype),
	                 .nsteps = slp_fused_count(f),
	                 .failure = &failure};
	int64_t n = slp_size(&k->out[0]), most = (int64_t)(BLOCK / w.size);
	if (n == 0) return SL_OK;
	prepare_steps(&w, f, attrs);
	for (int i = 0; i < SLP_FUSED_NUMBERS; i++) w.number[i] = (float)f->number[i];
	for (int i = 0; i < k->nin; i++) {
		sl_shape in = slp_fused_stored(f, k->in[i].type.shape);
		w.plan[i] = slp_broadcast_plan(in, in, slp_fused_stored(f, k->out[0].type.shape));
	}
	assign_slots(&w);
	slp_parallel_for(n, SLP_GRAIN / w.nsteps / most * most, range, &w);
	return slp_noted_failure(k, &failure);
}

/* The names of its steps. */
static void describe(const void *attrs, char *text, size_t size)
{
	size_t n = 0;
	for (int i = 0; i < slp_fused_count(attrs) && n < size; i++)
		n += (size_t)snprintf(text + n, size - n, "%s%s", i ? ", " : "",
		                      slp_fused_function(slp_fused_step_at(attrs, i))->name);
}

const struct sl_op slp_op_fused = {
        .name = "fused",
        .doc = "elementwise functions in one pass over memory",
        .args = "x ...",
        .nin_min = 1,
        .nin_max = SLP_FUSED_INPUTS,
        .nout = 1,
        .attr_table = attr_table,
        .attrs_size = sizeof(struct slp_fused_attrs),
        .inplace = true,
        .elementwise = true,
        .rows = SLP_ROWS(SLP_ROW(SLP_FLOATS, cpu, slp_cuda_fused), SLP_BESIDE_HALF_ROWS(slp_cuda_fused)),
        .infer = infer,
        .flops = flops,
        .ref = ref,
        .describe = describe,
};

_Static_assert(sizeof(struct slp_fused_attrs) <= SLP_MAX_ATTRS, "an expression must fit the attributes");
