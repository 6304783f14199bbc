/* Test cases of operations: operands, the reference's results, comparing. */
#include <starling.h>

#include "op_case.h"
#include "runtime/task/storage.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "philox.h"
#include "runtime/task/segment.h"

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

static uint64_t hash_text(uint64_t h, const char *text)
{
	for (; *text; text++) h = (h ^ (unsigned char)*text) * 0x100000001B3u;
	return h;
}

double slp_case_random(const struct slp_case *c, unsigned stream, int64_t i)
{
	static const struct slp_case *last;
	static uint64_t seed, block;
	static unsigned from;
	static uint32_t words[4]; /* of the block: elements are mostly made in their order */
	bool same = c == last && stream == from && (uint64_t)i / 4 == block;
	if (c != last) seed = hash_text(hash_text(0xCBF29CE484222325u, c->op), c->label ? c->label : "");
	last = c, from = stream, block = (uint64_t)i / 4;
	if (!same) slp_philox(seed, stream, block, words);
	return (double)words[i % 4] / 4294967296.0;
}

/* Values given come first, and again from the start where no range is given for the others. */
static double input_value(const struct slp_case *c, int input, int64_t i)
{
	const struct slp_case_input *in = &c->in[input];
	bool ranged = in->low < in->high;
	if (in->nvalues && (i < in->nvalues || !ranged)) return in->values[i % in->nvalues];
	double v = in->low + (in->high - in->low) * slp_case_random(c, (unsigned)input, i);
	return slp_is_float(in->dtype) ? v : floor(v);
}

static void *allocate(const struct slp_type *type)
{
	size_t bytes = (size_t)sl_shape_size(type->shape) * sl_dtype_size(type->dtype);
	return calloc(bytes ? bytes : 1, 1);
}

/* What a number becomes in a data type. */
static double rounded(double v, enum sl_dtype dtype)
{
	uint64_t element = 0;
	struct slp_view one = {&element, {dtype, SL_SCALAR}};
	if (!slp_is_float(dtype)) return v;
	slp_set(&one, 0, v);
	return slp_get(&one, 0);
}

static void make_input(struct slp_operands *o, const struct slp_case *c, int i, enum sl_dtype stored,
                       enum sl_dtype like)
{
	enum sl_dtype dtype = c->in[i].dtype;
	struct slp_view *v = &o->in[i];
	v->type = (struct slp_type){dtype == SL_FLOAT32 ? stored : dtype, c->in[i].shape};
	v->ptr = allocate(&v->type);
	for (int64_t e = 0; e < slp_size(v); e++) {
		double x = input_value(c, i, e);
		slp_set(v, e, dtype == SL_FLOAT32 ? rounded(x, like) : x);
	}
}

static enum sl_status infer(struct slp_operands *o, const void *attrs)
{
	struct slp_type in[SLP_CASE_INPUTS], out[SLP_MAX_OUTPUTS];
	if (attrs) memcpy(o->attrs.bytes, attrs, o->op->attrs_size);
	for (int i = 0; i < o->nin; i++) in[i] = o->in[i].type;
	struct slp_infer c = {o->op, SL_HERE, o->attrs.bytes, o->nin, o->nout, in, out};
	enum sl_status s = o->op->infer(&c);
	for (int i = 0; i < o->nout; i++) {
		o->out[i].ptr = s == SL_OK ? allocate(&out[i]) : NULL;
		if (s == SL_OK) o->out[i].type = out[i];
	}
	return s;
}

enum sl_status slp_operands_make(struct slp_operands *o, const struct slp_case *c, enum sl_dtype stored,
                                 enum sl_dtype like)
{
	const struct sl_op *op = slp_op_find(c->op);
	memset(o, 0, sizeof *o);
	o->op = op;
	o->nin = c->nin;
	o->nout = op->nout;
	o->threads = 1;
	for (int i = 0; i < c->nin; i++) make_input(o, c, i, stored, like);
	return infer(o, c->attrs);
}

void slp_operands_free(struct slp_operands *o)
{
	for (int i = 0; i < o->nin; i++) free(o->in[i].ptr);
	for (int i = 0; i < o->nout; i++) free(o->out[i].ptr);
}

struct slp_operands slp_operands_copy(const struct slp_operands *o)
{
	struct slp_operands copy = *o;
	for (int i = 0; i < o->nin; i++) {
		copy.in[i].ptr = allocate(&o->in[i].type);
		memcpy(copy.in[i].ptr, o->in[i].ptr, (size_t)slp_size(&o->in[i]) * sl_dtype_size(o->in[i].type.dtype));
	}
	for (int i = 0; i < o->nout; i++) copy.out[i].ptr = allocate(&o->out[i].type);
	return copy;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static void infer_of(const struct slp_operands *o, struct slp_type *in, struct slp_type *out, struct slp_infer *c)
{
	for (int i = 0; i < o->nin; i++) in[i] = o->in[i].type;
	for (int i = 0; i < o->nout; i++) out[i] = o->out[i].type;
	*c = (struct slp_infer){o->op, SL_HERE, (void *)(uintptr_t)o->attrs.bytes, o->nin, o->nout, in, out};
}

static enum sl_status run(struct slp_operands *o, slp_kernel_fn *kernel, bool promote)
{
	struct slp_type in[SLP_CASE_INPUTS], out[SLP_MAX_OUTPUTS];
	struct slp_view wide[SLP_CASE_INPUTS + SLP_MAX_OUTPUTS];
	struct slp_infer c;
	infer_of(o, in, out, &c);
	size_t bytes = slp_call_scratch(&c);
	void *scratch = bytes ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
	struct slp_kernel k = {.op = o->op,
	                       .attrs = o->attrs.bytes,
	                       .nin = o->nin,
	                       .nout = o->nout,
	                       .in = o->in,
	                       .out = o->out,
	                       .scratch = scratch,
	                       .threads = o->threads};
	enum sl_status s = promote ? slp_run_promoted(&k, kernel, false, wide) : kernel(&k);
	free(scratch);
	return s;
}

struct slp_types slp_operands_types(const struct slp_operands *o)
{
	struct slp_type in[SLP_CASE_INPUTS], out[SLP_MAX_OUTPUTS];
	struct slp_infer c;
	infer_of(o, in, out, &c);
	return slp_types_of(c.nin, in, c.nout, out);
}

enum sl_status slp_operands_run(struct slp_operands *o, slp_kernel_fn *kernel)
{
	return run(o, kernel, false);
}

enum sl_status slp_operands_compute(struct slp_operands *o)
{
	struct slp_choice c = slp_kernel_for(o->op, slp_operands_types(o), SL_DEVICE_CPU);
	return c.kernel ? run(o, c.kernel, c.promote) : SL_EDTYPE;
}

double slp_operands_cost(const struct slp_operands *o)
{
	struct slp_type in[SLP_CASE_INPUTS], out[SLP_MAX_OUTPUTS];
	struct slp_infer c;
	infer_of(o, in, out, &c);
	double cost = o->op->flops ? o->op->flops(&c) : 0, elements = 0;
	for (int i = 0; i < o->nin; i++) elements += (double)slp_size(&o->in[i]);
	for (int i = 0; i < o->nout; i++) elements += (double)slp_size(&o->out[i]);
	return cost > elements ? cost : elements;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

double slp_case_tolerance(const struct slp_case *c)
{
	return c->tolerance > 0 ? c->tolerance : 1e-5;
}

bool slp_writes_input(const struct sl_op *op, int i)
{
	return slp_input_is_written(op, i);
}

void slp_case_fail(struct slp_place_of_test at, const char *format, ...)
{
	char text[512];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	slp_check(false, "op", 0, "%s [%s] on %s, %s: %s", at.c->op, at.c->label, at.device, at.how, text);
}

static bool same_type(struct slp_place_of_test at, const char *what, int n, const struct slp_view *got,
                      const struct slp_view *expected)
{
	if (sl_shape_equal(got->type.shape, expected->type.shape)) return true;
	char a[128], b[128];
	slp_case_fail(at, "%s %d has shape %s, expected %s", what, n, sl_shape_string(got->type.shape, a),
	              sl_shape_string(expected->type.shape, b));
	return false;
}

static bool compare_view_bits(struct slp_place_of_test at, const char *what, int n, const struct slp_view *got,
                              const struct slp_view *expected)
{
	if (!same_type(at, what, n, got, expected)) return false;
	size_t size = sl_dtype_size(got->type.dtype), bytes = (size_t)slp_size(got) * size;
	const char *a = got->ptr, *b = expected->ptr;
	size_t i = 0, n_all = bytes / size;
	/* A NaN is one, whatever its bits: those of a function of CUDA's differ from one way to call it to another. */
	while (i < n_all && (!memcmp(a + i * size, b + i * size, size) ||
	                     (isnan(slp_get(got, (int64_t)i)) && isnan(slp_get(expected, (int64_t)i)))))
		i++;
	if (i == n_all) return true;
	slp_case_fail(at, "%s %d (%s) element %zu is %.17g, expected the bits of %.17g", what, n,
	              sl_dtype_name(got->type.dtype), i, slp_get(got, (int64_t)i), slp_get(expected, (int64_t)i));
	return false;
}

/* By what the elements of an array are compared; where what is added up cancels out, by that. */
static double scale_of(const struct slp_case *c, const struct slp_view *expected)
{
	return fmax(slp_rms(expected), c->scale);
}

bool slp_compare_view(struct slp_place_of_test at, const char *what, int n, const struct slp_view *got,
                      const struct slp_view *expected, double tolerance)
{
	if (tolerance == 0) return compare_view_bits(at, what, n, got, expected);
	if (!same_type(at, what, n, got, expected)) return false;
	int64_t wrong = 0, first = -1;
	double scale = scale_of(at.c, expected), allowed = slp_tolerance(got->type.dtype, tolerance), most = 0;
	for (int64_t i = 0; i < slp_size(got); i++) {
		double g = slp_get(got, i), e = rounded(slp_get(expected, i), got->type.dtype);
		if (slp_is_close(g, e, allowed, scale)) continue;
		if (!wrong++) first = i;
		if (!(fabs(g - e) <= most)) most = fabs(g - e);
	}
	if (!wrong) return true;
	slp_case_fail(at,
	              "%s %d (%s) element %lld is %.9g, expected %.9g; %lld of %lld differ by more than %g of %g, at "
	              "most by %g",
	              what, n, sl_dtype_name(got->type.dtype), (long long)first, slp_get(got, first),
	              slp_get(expected, first), (long long)wrong, (long long)slp_size(got), allowed, scale, most);
	return false;
}

bool slp_compare_values(struct slp_place_of_test at, const struct slp_operands *got,
                        const struct slp_operands *expected, double tolerance)
{
	bool ok = true;
	for (int i = 0; i < got->nout; i++)
		ok &= slp_compare_view(at, "output", i, &got->out[i], &expected->out[i], tolerance);
	for (int i = 0; i < got->nin; i++)
		if (slp_writes_input(got->op, i))
			ok &= slp_compare_view(at, "input", i, &got->in[i], &expected->in[i], tolerance);
	return ok;
}

bool slp_compare_bits(struct slp_place_of_test at, const struct slp_operands *got, const struct slp_operands *expected)
{
	bool ok = true;
	for (int i = 0; i < got->nout; i++) ok &= compare_view_bits(at, "output", i, &got->out[i], &expected->out[i]);
	for (int i = 0; i < got->nin; i++) ok &= compare_view_bits(at, "input", i, &got->in[i], &expected->in[i]);
	return ok;
}

bool slp_compare_literals(struct slp_place_of_test at, const struct slp_operands *got)
{
	double expected[SLP_CASE_LITERALS], tolerance = slp_case_tolerance(at.c);
	const struct slp_view *out = &got->out[0];
	for (int i = 0; i < at.c->nexpect; i++) expected[i] = rounded(at.c->expect[i], out->type.dtype);
	struct slp_view all = {expected, {SL_FLOAT64, SL_SHAPE(at.c->nexpect)}};
	double scale = scale_of(at.c, &all);
	bool ok = true;
	for (int i = 0; i < at.c->nexpect && ok; i++) {
		double v = i < slp_size(out) ? slp_get(out, i) : NAN;
		ok = i < slp_size(out) && slp_is_close(v, expected[i], tolerance, scale);
		if (!ok) slp_case_fail(at, "element %d is %.9g, the case expects %.9g", i, v, at.c->expect[i]);
	}
	return ok;
}
