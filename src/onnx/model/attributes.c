/* ONNX models: attributes and inputs of nodes. */
#include <stdlib.h>

#include "onnx/model/call.h"
#include "number.h"
#include "runtime/text.h"
#include "op.h"

void slp_onnx_call_fail(struct slp_onnx_call *c, enum sl_status status, const char *format, ...)
{
	char text[512];
	SLP_FORMAT(text, sizeof text, format);
	slp_text_escape(text, sizeof text, false);
	if (!c->failed) slp_call_fail(c->at, "sl_import_onnx", status, "%.60s: %s", c->node->op_type, text);
	c->failed = true;
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

const SlpOnnx__AttributeProto *slp_onnx_attr(const struct slp_onnx_call *c, const char *name)
{
	for (size_t i = 0; i < c->node->n_attribute; i++) {
		const SlpOnnx__AttributeProto *a = c->node->attribute[i];
		if (a->name && !strcmp(a->name, name)) return a;
	}
	return NULL;
}

/* The attribute, if it is there and has a value of its kind. */
static const SlpOnnx__AttributeProto *of_kind(struct slp_onnx_call *c, const char *name, int type)
{
	const SlpOnnx__AttributeProto *a = slp_onnx_attr(c, name);
	if (!a || !a->has_type || a->type == type) return a;
	slp_onnx_call_fail(c, SL_EFORMAT, "attribute %s has another type", name);
	return NULL;
}

enum { KIND_FLOAT = 1, KIND_INT = 2, KIND_STRING = 3, KIND_INTS = 7 };

int64_t slp_onnx_attr_int(struct slp_onnx_call *c, const char *name, int64_t otherwise)
{
	const SlpOnnx__AttributeProto *a = of_kind(c, name, KIND_INT);
	return a ? a->i : otherwise;
}

int slp_onnx_attr_small(struct slp_onnx_call *c, const char *name, int otherwise, int low, int high)
{
	int64_t v = slp_onnx_attr_int(c, name, otherwise);
	if (v >= low && v <= high) return (int)v;
	slp_onnx_call_fail(c, SL_EFORMAT, "attribute %s is %lld, it must be in %d to %d", name, (long long)v, low,
	                   high);
	return low;
}

double slp_onnx_attr_float(struct slp_onnx_call *c, const char *name, double otherwise)
{
	const SlpOnnx__AttributeProto *a = of_kind(c, name, KIND_FLOAT);
	return a ? a->f : otherwise;
}

const char *slp_onnx_attr_text(struct slp_onnx_call *c, const char *name, const char *otherwise, char text[64])
{
	const SlpOnnx__AttributeProto *a = of_kind(c, name, KIND_STRING);
	size_t n = a ? a->s.len : 0;
	if (!a) return otherwise;
	if (n > 63) n = 63;
	if (n) memcpy(text, a->s.data, n);
	text[n] = '\0';
	return text;
}

bool slp_onnx_attr_is(struct slp_onnx_call *c, const char *name, const char *otherwise, const char *value)
{
	char text[64];
	return !strcmp(slp_onnx_attr_text(c, name, otherwise, text), value);
}

int slp_onnx_attr_ints(struct slp_onnx_call *c, const char *name, int64_t *v, int max)
{
	const SlpOnnx__AttributeProto *a = of_kind(c, name, KIND_INTS);
	if (!a) return -1;
	if (a->n_ints > (size_t)max) {
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "attribute %s has %zu numbers, more than %d", name, a->n_ints,
		                   max);
		return -1;
	}
	for (size_t i = 0; i < a->n_ints; i++) v[i] = a->ints[i];
	return (int)a->n_ints;
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

/* The elements as memory; the caller frees it. */
static void *elements(const struct slp_onnx_known *k)
{
	int64_t n = sl_shape_size(k->shape);
	struct slp_view view = {slp_malloc((size_t)n * sl_dtype_size(k->dtype) + 1), {k->dtype, k->shape}};
	int64_t *whole = view.ptr;
	for (int64_t i = 0; view.ptr && i < n; i++)
		if (k->dtype == SL_INT64) whole[i] = k->v[i].i;
		else slp_set(&view, i, slp_onnx_known_number(k, i));
	return view.ptr;
}

/* Made once for a device: runs on the same one share it. */
static sl_tensor *made_of(struct slp_onnx_call *c, struct slp_onnx_known *k)
{
	sl_device device = c->beside ? sl_tensor_device(c->beside) : (sl_device){0};
	if (k->made && sl_device_equal(sl_tensor_device(k->made), device)) return k->made;
	void *data = elements(k);
	sl_release(k->made);
	k->made = NULL;
	if (data)
		SL_SCOPE
			k->made = sl_retain(sl_from_at(c->at, data, k->shape, (struct sl_make){k->dtype, device}));
	free(data);
	if (!k->made) c->failed = true;
	return k->made;
}

sl_tensor *slp_onnx_as_tensor(struct slp_onnx_call *c, struct slp_onnx_value v)
{
	return v.known ? made_of(c, v.known) : v.t;
}

sl_tensor *slp_onnx_tensor(struct slp_onnx_call *c, int i)
{
	return slp_onnx_has(c, i) ? slp_onnx_as_tensor(c, c->in[i]) : NULL;
}

const struct slp_onnx_known *slp_onnx_known_in(struct slp_onnx_call *c, int i)
{
	char what[32];
	if (slp_onnx_has(c, i) && slp_onnx_can_read(&c->in[i])) return c->in[i].known = slp_onnx_read(c, c->in[i]);
	snprintf(what, sizeof what, "input %d", i);
	if (slp_onnx_has(c, i) && !c->in[i].sequence) slp_onnx_cannot_read(c, what, c->node->input[i]);
	else slp_onnx_call_fail(c, SL_EFORMAT, "has no %s", what);
	return NULL;
}

int slp_onnx_ints_in(struct slp_onnx_call *c, int i, const char *attribute, int64_t *v, int max)
{
	if (!slp_onnx_has(c, i)) return attribute ? slp_onnx_attr_ints(c, attribute, v, max) : -1;
	const struct slp_onnx_known *k = slp_onnx_known_in(c, i);
	int64_t n = k ? sl_shape_size(k->shape) : -1;
	if (k && n > max && max == SL_MAX_NDIM) {
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "input %d has %lld numbers: tensors have at most %d axes", i,
		                   (long long)n, SL_MAX_NDIM);
		return -1;
	}
	if (k && (slp_is_float(k->dtype) || n > max)) {
		slp_onnx_call_fail(c, SL_EFORMAT, "input %d must have at most %d whole numbers", i, max);
		return -1;
	}
	for (int64_t e = 0; e < n; e++) v[e] = k->v[e].i;
	return (int)n;
}

double slp_onnx_number_in(struct slp_onnx_call *c, int i, const char *attribute, double otherwise)
{
	if (!slp_onnx_has(c, i)) return attribute ? slp_onnx_attr_float(c, attribute, otherwise) : otherwise;
	const struct slp_onnx_known *k = slp_onnx_known_in(c, i);
	if (!k) return otherwise;
	if (sl_shape_size(k->shape) == 1) return slp_onnx_known_number(k, 0);
	slp_onnx_call_fail(c, SL_EFORMAT, "input %d must be one number", i);
	return otherwise;
}

sl_shape slp_onnx_shape_of(struct slp_onnx_call *c, struct slp_onnx_value v)
{
	if (v.known) return v.known->shape;
	sl_shape s = v.t ? sl_tensor_shape(v.t) : (sl_shape){.ndim = -1};
	if (slp_shape_known(s)) return s;
	slp_onnx_call_fail(c, SL_ESHAPE, "the shape of its input must be known");
	return SL_SCALAR;
}

sl_shape slp_onnx_shape(struct slp_onnx_call *c, int i)
{
	if (slp_onnx_has(c, i)) return slp_onnx_shape_of(c, c->in[i]);
	slp_onnx_call_fail(c, SL_EFORMAT, "has no input %d", i);
	return SL_SCALAR;
}

enum sl_dtype slp_onnx_dtype(const struct slp_onnx_value *v)
{
	return v->known ? v->known->dtype : v->t ? sl_tensor_dtype(v->t) : SL_FLOAT32;
}

int slp_onnx_axis(struct slp_onnx_call *c, int64_t axis, int ndim)
{
	int64_t a = axis < 0 ? axis + ndim : axis;
	if (a >= 0 && a < ndim) return (int)a;
	slp_onnx_call_fail(c, SL_ESHAPE, "axis %lld does not exist: the input has %d axes", (long long)axis, ndim);
	return 0;
}
