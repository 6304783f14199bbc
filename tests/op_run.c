/* Running test cases through the engine. */
#include <starling.h>

#include "op_run.h"
#include "runtime/engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define X(symbol, text) text,
        SLP_WAYS(X)
#undef X
};

const char *slp_way_name(enum slp_way way)
{
	return names[way];
}

bool slp_way_applies(enum slp_way way, const struct slp_operands *o)
{
	if (way == SLP_VIEWS) return o->nin > 0;
	if (way != SLP_INPLACE) return true;
	const struct slp_type *a = &o->in[0].type, *b = &o->out[0].type;
	return o->op->inplace && o->nout == 1 && o->nin && a->dtype == b->dtype && sl_shape_equal(a->shape, b->shape);
}

static size_t bytes_of(const struct slp_view *v)
{
	return (size_t)slp_size(v) * sl_dtype_size(v->type.dtype);
}

/* ---- inputs as views --------------------------------------------------------------------------------------------- */

/* A row before and one behind, filled with what would spoil a result. */
enum { MARGIN = 1 };

static double marker(enum sl_dtype dtype)
{
	return slp_is_float(dtype) ? NAN : dtype == SL_BOOL ? 1 : 113;
}

/* The shape of the tensor that holds v and its margins; a scalar is a row of one. */
static sl_shape framed_shape(const struct slp_view *v)
{
	sl_shape shape = v->type.shape;
	if (!shape.ndim) shape = SL_SHAPE(1);
	shape.dim[0] += 2 * MARGIN;
	return shape;
}

static int64_t row_of(const struct slp_view *v)
{
	sl_shape shape = framed_shape(v);
	shape.dim[0] = 1;
	return sl_shape_size(shape);
}

static sl_tensor *make_frame(const struct slp_view *v, sl_device device)
{
	struct slp_view frame = {NULL, {v->type.dtype, framed_shape(v)}};
	size_t size = bytes_of(&frame);
	frame.ptr = malloc(size ? size : 1);
	for (int64_t i = 0; i < slp_size(&frame); i++) slp_set(&frame, i, marker(v->type.dtype));
	memcpy((char *)frame.ptr + (size_t)(MARGIN * row_of(v)) * sl_dtype_size(v->type.dtype), v->ptr, bytes_of(v));
	sl_tensor *t = sl_from(frame.ptr, frame.type.shape, .dtype = v->type.dtype, .device = device);
	free(frame.ptr);
	return t;
}

static sl_tensor *make_view(const struct slp_view *v, sl_tensor *frame)
{
	sl_tensor *t = sl_rows(frame, MARGIN, sl_tensor_shape(frame).dim[0] - MARGIN);
	return v->type.shape.ndim ? t : sl_reshape(t, SL_SCALAR);
}

static bool is_marker(double v, enum sl_dtype dtype)
{
	return slp_is_float(dtype) ? isnan(v) : v == marker(dtype);
}

/* What lies around a view that is written must stay. */
static void check_frame(struct slp_place_of_test at, int input, const struct slp_view *v, sl_tensor *t)
{
	struct slp_view frame = {NULL, {v->type.dtype, framed_shape(v)}};
	size_t size = bytes_of(&frame);
	int64_t margin = MARGIN * row_of(v), n = slp_size(&frame);
	frame.ptr = malloc(size ? size : 1);
	if (sl_read(t, frame.ptr, size) == SL_OK)
		for (int64_t i = 0; i < n; i++)
			if ((i < margin || i >= n - margin) && !is_marker(slp_get(&frame, i), v->type.dtype)) {
				slp_case_fail(at, "wrote %g before or behind input %d", slp_get(&frame, i), input);
				break;
			}
	free(frame.ptr);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

struct tensors {
	sl_tensor *in[SLP_CASE_INPUTS], *frame[SLP_CASE_INPUTS], *out[SLP_MAX_OUTPUTS];
};

static void make_inputs(struct tensors *t, enum slp_way way, const struct slp_operands *o, sl_device device)
{
	for (int i = 0; i < o->nin; i++) {
		const struct slp_view *v = &o->in[i];
		if (way == SLP_VIEWS) {
			t->frame[i] = make_frame(v, device);
			t->in[i] = make_view(v, t->frame[i]);
			continue;
		}
		t->in[i] = sl_from(v->ptr, v->type.shape, .dtype = v->type.dtype, .device = device);
		if (way == SLP_BULKED) t->in[i] = sl_clone(t->in[i]); /* computed within the segment */
	}
}

static enum sl_status call(struct tensors *t, enum slp_way way, const struct slp_operands *o, sl_device device)
{
	if (way != SLP_INPLACE) {
		enum sl_status s = slp_apply(SL_HERE, o->op, o->attrs.bytes, o->nin, t->in, device, t->out);
		if (s == SL_OK && way == SLP_BULKED && o->nout) sl_clone(t->out[0]);
		return s;
	}
	t->out[0] = slp_apply_inplace(SL_HERE, o->op, o->attrs.bytes, o->nin, t->in);
	return t->out[0] ? SL_OK : sl_error();
}

static enum sl_status read_tensor(sl_tensor *t, struct slp_view *v)
{
	v->type = (struct slp_type){sl_tensor_dtype(t), sl_tensor_shape(t)};
	size_t bytes = sl_tensor_bytes(t);
	v->ptr = malloc(bytes ? bytes : 1);
	return sl_read(t, v->ptr, bytes);
}

/* In place, input 0 is the result: it counts as an output only. */
static bool read_results(struct slp_place_of_test at, enum slp_way way, const struct tensors *t,
                         const struct slp_operands *o, struct slp_operands *result)
{
	enum sl_status s = SL_OK;
	*result = slp_operands_copy(o);
	for (int i = 0; i < o->nin && s == SL_OK; i++) {
		if (way == SLP_INPLACE && i == 0) continue;
		free(result->in[i].ptr);
		s = read_tensor(t->in[i], &result->in[i]);
	}
	for (int i = 0; i < o->nout && s == SL_OK; i++) {
		free(result->out[i].ptr);
		s = read_tensor(t->out[i], &result->out[i]);
	}
	if (s == SL_OK) return true;
	slp_case_fail(at, "%s", sl_error_message());
	slp_operands_free(result);
	return false;
}

static bool run(struct slp_place_of_test at, sl_device device, enum slp_way way, const struct slp_operands *o,
                struct slp_operands *result)
{
	struct tensors t = {.in = {NULL}};
	make_inputs(&t, way, o, device);
	enum sl_status s = call(&t, way, o, device);
	if (s != SL_OK) {
		slp_case_fail(at, "%s: %s", sl_status_name(s), sl_error_message());
		sl_error_clear();
		return false;
	}
	if (!read_results(at, way, &t, o, result)) return false;
	for (int i = 0; i < o->nin; i++)
		if (t.frame[i]) check_frame(at, i, &o->in[i], t.frame[i]);
	return true;
}

bool slp_case_run(struct slp_place_of_test at, sl_device device, enum slp_way way, const struct slp_operands *o,
                  struct slp_operands *result)
{
	bool ok = false;
	at.how = slp_way_name(way);
	slp_engine.config.bulk = way == SLP_BULKED ? 32 : 1;
	SL_SCOPE
		ok = run(at, device, way, o, result);
	return ok;
}

/* The operation's name and the caller's place must be in the message. */
static void check_rejected(struct slp_place_of_test at, enum sl_status s, enum sl_status expected, const char *here)
{
	const char *message = sl_error_message();
	if (s != expected)
		slp_case_fail(at, "%s instead of %s: %s", sl_status_name(s), sl_status_name(expected), message);
	else if (!strstr(message, at.c->op) || !strstr(message, here))
		slp_case_fail(at, "the message lacks the operation's name or place: %s", message);
	else slp_check(true, "op", 0, "rejected");
}

static void reject(struct slp_place_of_test at, sl_device device, const struct slp_operands *o, const void *attrs,
                   enum sl_status expected)
{
	SL_SCOPE {
		struct tensors t = {.in = {NULL}};
		make_inputs(&t, SLP_PLAIN, o, device);
		const char *here = SL_HERE;
		enum sl_status s = slp_apply(here, o->op, attrs, o->nin, t.in, device, t.out);
		check_rejected(at, s, expected, here);
		for (int i = 0; i < o->nout; i++)
			if (t.out[i]) slp_case_fail(at, "output %d is not NULL", i);
	}
	sl_error_clear();
}

void slp_case_reject(struct slp_place_of_test at, sl_device device, const struct slp_operands *o)
{
	at.how = "rejected";
	reject(at, device, o, at.c->attrs, at.c->reject);
}

void slp_case_unsupported(struct slp_place_of_test at, sl_device device, const struct slp_operands *o)
{
	at.how = "without a kernel";
	reject(at, device, o, o->attrs.bytes, SL_EUNSUPPORTED);
}
