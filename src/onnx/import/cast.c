/* ONNX operators, computed: casts. */
#include "io/elements.h"
#include "onnx/model/call.h"
#include "op_inner.h"
#include "starling/primitives.h"

/* Bits of the integers that wrap, and whether they have a sign; 0: other types. */
static int bits_of(int type, bool *sign)
{
	enum sl_dtype dtype = slp_onnx_element_numbered(type);
	*sign = dtype == SL_INT8 || dtype == SL_INT16 || dtype == SL_INT32;
	bool narrow = *sign || dtype == SL_UINT8 || dtype == SL_UINT16 || dtype == SL_UINT32;
	return narrow ? 8 * (int)sl_dtype_size(dtype) : 0;
}

static struct slp_onnx_value wrapped_known(struct slp_onnx_call *c, const struct slp_onnx_known *k, int bits, bool sign)
{
	struct slp_onnx_known *y = slp_onnx_known_new(c->made, SL_INT64, k->shape);
	int64_t half = sign ? INT64_C(1) << (bits - 1) : 0, all = INT64_C(1) << bits;
	for (int64_t i = 0; y && i < sl_shape_size(k->shape); i++) {
		int64_t v = k->v[i].i & (all - 1);
		y->v[i].i = sign && v >= half ? v - all : v;
	}
	return (struct slp_onnx_value){.known = y};
}

struct slp_onnx_value slp_onnx_wrapped(struct slp_onnx_call *c, struct slp_onnx_value v, int type)
{
	bool sign;
	enum sl_dtype from = slp_onnx_dtype(&v);
	int bits = bits_of(type, &sign), had = slp_onnx_type_of(&v);
	bool fits = had == type || (had == 2 && type != 3) || (had == 3 && (type == 5 || type == 6)) ||
	            (had == 4 && (type == 6 || type == 12)) || (had == 5 && type == 6);
	if (!bits || slp_is_float(from) || from == SL_BOOL || (fits && from != SL_INT64)) return v;
	if (v.known) return wrapped_known(c, v.known, bits, sign);
	return (struct slp_onnx_value){.t = slp_wrap(c->at, v.t, slp_onnx_element_numbered(type))};
}

/* uint64 is held as int64 of the same bits: floats and it are converted through a tensor of its own type. */
static struct slp_onnx_value cast_unsigned(struct slp_onnx_call *c, struct slp_onnx_value v, bool to_float,
                                           enum sl_dtype dtype)
{
	sl_tensor *t = slp_onnx_as_tensor(c, v);
	if (to_float) t = t ? sl_cast_at(c->at, slp_wrap(c->at, t, SL_UINT64), dtype) : NULL;
	else t = t ? slp_wrap(c->at, sl_cast_at(c->at, t, SL_UINT64), SL_INT64) : NULL;
	return (struct slp_onnx_value){.t = t};
}

static void cast_to(struct slp_onnx_call *c, int type)
{
	enum { UINT64 = 13 };
	enum sl_dtype dtype = slp_onnx_dtype_numbered(type);
	if (dtype == SL_DTYPE_DEFAULT) {
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "data type %d is not supported", type);
		return;
	}
	bool was_float = slp_is_float(slp_onnx_dtype(&c->in[0])), is_float = slp_is_float(dtype);
	struct slp_onnx_value y = slp_onnx_wrapped(c, c->in[0], type);
	if ((type == UINT64 && was_float) || (slp_onnx_type_of(&c->in[0]) == UINT64 && is_float))
		y = cast_unsigned(c, y, is_float, dtype);
	else if (!c->failed && slp_onnx_present(y)) y = slp_onnx_cast(c, y, dtype);
	y.type = type;
	slp_onnx_set_output_value(c, 0, y);
}

/* The number of a type, which operator sets before 6 name. */
static int type_named(struct slp_onnx_call *c)
{
	static const char *const names[] = {"UNDEFINED", "FLOAT",  "UINT8", "INT8",    "UINT16", "INT16",  "INT32",
	                                    "INT64",     "STRING", "BOOL",  "FLOAT16", "DOUBLE", "UINT32", "UINT64"};
	for (int i = 1; i < (int)(sizeof names / sizeof *names); i++)
		if (slp_onnx_attr_is(c, "to", "", names[i])) return i;
	slp_onnx_call_fail(c, SL_EFORMAT, "its attribute to names no type");
	return 0;
}

void slp_onnx_import_cast(struct slp_onnx_call *c)
{
	int to = c->opset < 6 ? type_named(c) : slp_onnx_attr_small(c, "to", 0, 0, INT16_MAX);
	if (!c->failed) cast_to(c, to);
}

void slp_onnx_import_cast_like(struct slp_onnx_call *c)
{
	cast_to(c, slp_onnx_type_of(&c->in[1]));
}
