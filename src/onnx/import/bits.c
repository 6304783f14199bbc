/* ONNX operators, computed: the bits of integers.
 *
 * There are no operations for these: a number x, or -1 - x if x is negative, gets a new axis of its bits, 0 or 1. */
#include <stdlib.h>

#include "onnx/model/tensors.h"
#include "op.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/functions.h"

enum { BITS = 63 }; /* of an int64, without its sign */

static int bits_of(enum sl_dtype dtype)
{
	return dtype == SL_INT64 ? BITS : dtype == SL_INT32 ? 31 : 8;
}

/* 1, 2, 4, … */
static sl_tensor *powers(struct slp_onnx_call *c, int n)
{
	int64_t v[BITS];
	for (int i = 0; i < n; i++) v[i] = INT64_C(1) << i;
	struct slp_onnx_value p = slp_onnx_list_value(c, SL_INT64, v, n);
	return p.known ? slp_onnx_as_tensor(c, p) : NULL;
}

/* An int64 with its bits along a new last axis, and its sign: 1 where it is negative, then the bits are those of the
 * number turned round. */
struct bits {
	sl_tensor *bits, *sign;
};

static sl_tensor *turned(struct slp_onnx_call *c, sl_tensor *x, sl_tensor *sign)
{
	return sl_abs_at(c->at, sl_add_at(c->at, x, sign));
}

static struct bits split(struct slp_onnx_call *c, sl_tensor *x, sl_tensor *powers)
{
	struct bits b = {0};
	sl_shape s = sl_tensor_shape(x);
	if (s.ndim == SL_MAX_NDIM) slp_onnx_call_fail(c, SL_EUNSUPPORTED, "more than %d axes", SL_MAX_NDIM - 1);
	if (c->failed) return b;
	s.dim[s.ndim++] = 1;
	x = sl_reshape_at(c->at, sl_cast_at(c->at, x, SL_INT64), s);
	b.sign = x ? sl_lt_scalar_at(c->at, x, 0) : NULL;
	sl_tensor *q = b.sign ? sl_div_at(c->at, turned(c, x, b.sign), powers) : NULL;
	sl_tensor *even = q ? sl_mul_scalar_at(c->at, sl_div_scalar_at(c->at, q, 2), 2) : NULL;
	b.bits = even ? sl_sub_at(c->at, q, even) : NULL;
	if (!b.bits) c->failed = true;
	else b.bits = sl_ne_at(c->at, b.bits, b.sign);
	return b;
}

static sl_tensor *joined(struct slp_onnx_call *c, sl_tensor *bits, sl_tensor *sign, sl_tensor *powers)
{
	if (!bits || !sign) return NULL;
	bits = sl_mul_at(c->at, sl_ne_at(c->at, bits, sign), powers);
	sl_tensor *x = sl_sum_at(c->at, bits, (struct sl_reduce_opts){SL_AXES(-1)});
	sign = sl_sum_at(c->at, sign, (struct sl_reduce_opts){SL_AXES(-1)});
	sl_tensor *negative = x ? sl_rsub_scalar_at(c->at, x, -1) : NULL;
	return negative && sign ? sl_where_at(c->at, sign, negative, x) : NULL;
}

static int64_t of_numbers(const char *name, int64_t a, int64_t b)
{
	return name[7] == 'A' ? a & b : name[7] == 'O' ? a | b : a ^ b;
}

/* Numbers that are known, of one shape or one of them a single number. */
static bool bitwise_known(struct slp_onnx_call *c)
{
	const struct slp_onnx_known *a = c->in[0].known, *b = c->in[1].known;
	sl_shape shape;
	if (!a || !b || !slp_broadcast(a->shape, b->shape, &shape) || !slp_onnx_is_few(shape)) return false;
	struct slp_onnx_value x = slp_onnx_broadcast(c, c->in[0], shape), y = slp_onnx_broadcast(c, c->in[1], shape);
	struct slp_onnx_known *to = slp_onnx_known_new(c->made, a->dtype, shape);
	for (int64_t i = 0; to && x.known && y.known && i < sl_shape_size(shape); i++)
		to->v[i].i = of_numbers(c->op->name, x.known->v[i].i, y.known->v[i].i);
	slp_onnx_set_output_value(c, 0, (struct slp_onnx_value){.known = to});
	return true;
}

static bool are_integers(struct slp_onnx_call *c)
{
	for (int i = 0; i < c->nin; i++)
		if (slp_is_float(slp_onnx_dtype(&c->in[i]))) slp_onnx_call_fail(c, SL_EDTYPE, "takes integers");
	return !c->failed;
}

void slp_onnx_import_bitwise(struct slp_onnx_call *c)
{
	char kind = c->op->name[7];
	sl_tensor *(*apply)(const char *, sl_tensor *, sl_tensor *) = kind == 'A'   ? sl_minimum_at
	                                                              : kind == 'O' ? sl_maximum_at
	                                                                            : sl_ne_at;
	if (!are_integers(c) || bitwise_known(c)) return;
	sl_tensor *a = slp_onnx_tensor(c, 0), *b = slp_onnx_tensor(c, 1);
	if (!a || !b) {
		c->failed = true;
		return;
	}
	sl_tensor *p = powers(c, bits_of(sl_tensor_dtype(a)));
	struct bits x = p ? split(c, a, p) : (struct bits){0}, y = x.bits ? split(c, b, p) : x;
	if (c->failed || !y.bits) {
		c->failed = true;
		return;
	}
	sl_tensor *t = joined(c, apply(c->at, x.bits, y.bits), apply(c->at, x.sign, y.sign), p);
	slp_onnx_set_output(c, 0, t ? sl_cast_at(c->at, t, sl_tensor_dtype(a)) : NULL);
}

void slp_onnx_import_bitwise_not(struct slp_onnx_call *c)
{
	const struct slp_onnx_known *k = c->in[0].known;
	if (!are_integers(c)) return;
	if (k) {
		struct slp_onnx_known *y = slp_onnx_known_new(c->made, k->dtype, k->shape);
		for (int64_t i = 0; y && i < sl_shape_size(k->shape); i++)
			y->v[i].i = k->dtype == SL_UINT8 ? UINT8_MAX - k->v[i].i : ~k->v[i].i;
		slp_onnx_set_output_value(c, 0, (struct slp_onnx_value){.known = y});
		return;
	}
	sl_tensor *x = slp_onnx_tensor(c, 0);
	slp_onnx_set_output(c, 0,
	                    x ? sl_rsub_scalar_at(c->at, x, sl_tensor_dtype(x) == SL_UINT8 ? UINT8_MAX : -1) : NULL);
}

/* Over a power of 2, downwards: a negative number is turned round before and after. */
static sl_tensor *shifted_right(struct slp_onnx_call *c, sl_tensor *x, sl_tensor *power)
{
	sl_tensor *sign = sl_lt_scalar_at(c->at, x, 0);
	x = sign ? sl_div_at(c->at, turned(c, x, sign), power) : NULL;
	sl_tensor *negative = x ? sl_rsub_scalar_at(c->at, x, -1) : NULL;
	return negative ? sl_where_at(c->at, sign, negative, x) : NULL;
}

/* Multiplied by a power of 2, without the bits that overflow; of non-negative numbers. */
void slp_onnx_import_bit_shift(struct slp_onnx_call *c)
{
	bool left = slp_onnx_attr_is(c, "direction", "", "LEFT");
	if (!left && !slp_onnx_attr_is(c, "direction", "", "RIGHT"))
		slp_onnx_call_fail(c, SL_EFORMAT, "attribute direction must be LEFT or RIGHT");
	sl_tensor *x = are_integers(c) ? slp_onnx_tensor(c, 0) : NULL, *by = x ? slp_onnx_tensor(c, 1) : NULL;
	by = by ? sl_cast_at(c->at, by, SL_INT32) : NULL;
	if (by) by = sl_masked_fill_at(c->at, by, sl_lt_scalar_at(c->at, by, 0), BITS - 1); /* all bits are lost */
	if (!by) {
		c->failed = true;
		return;
	}
	enum sl_dtype dtype = sl_tensor_dtype(x);
	int bits = bits_of(dtype);
	sl_tensor *p = powers(c, BITS), *most = sl_rsub_scalar_at(c->at, by, bits);
	x = sl_cast_at(c->at, x, SL_INT64);
	by = p && by ? sl_gather_at(c->at, p, sl_minimum_scalar_at(c->at, by, BITS - 1)) : NULL;
	if (left && by && most) {
		most = sl_gather_at(c->at, p,
		                    sl_minimum_scalar_at(c->at, sl_maximum_scalar_at(c->at, most, 0), BITS - 1));
		sl_tensor *lost = most ? sl_mul_at(c->at, sl_div_at(c->at, x, most), most) : NULL;
		x = lost ? sl_sub_at(c->at, x, lost) : NULL;
	}
	if (x && by) x = left ? sl_mul_at(c->at, x, by) : shifted_right(c, x, by);
	else x = NULL;
	slp_onnx_set_output(c, 0, x ? sl_cast_at(c->at, x, dtype) : NULL);
}

/* ---- the bits of elements as those of another type --------------------------------------------------------------- */

/* Bytes of an element of a type of the format; 0: none of ours. */
static size_t bytes_of(int type)
{
	enum sl_dtype e = slp_onnx_element_numbered(type);
	return e == SL_DTYPE_COUNT ? 0 : slp_elements[e].bytes;
}

/* The elements as the file has them: those that tensors hold in wider types lose what is above. */
static unsigned char *elements_of(struct slp_onnx_call *c, sl_tensor *t, size_t each)
{
	size_t n = (size_t)sl_tensor_size(t), held = sl_dtype_size(sl_tensor_dtype(t));
	unsigned char *bytes = slp_malloc(n * held + 1);
	if (!bytes || sl_read_at(c->at, t, bytes, n * held) != SL_OK) {
		free(bytes);
		return NULL;
	}
	for (size_t i = 0; i < n && each < held; i++) memmove(bytes + i * each, bytes + i * held, each);
	return bytes;
}

/* The values are read. */
void slp_onnx_import_bit_cast(struct slp_onnx_call *c)
{
	int from = slp_onnx_type_of(&c->in[0]), to = slp_onnx_attr_small(c, "to", 0, 0, INT16_MAX);
	if (!c->failed && (!bytes_of(from) || bytes_of(from) != bytes_of(to)))
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "types %d and %d differ in size, or are not supported", from,
		                   to);
	if (!c->failed && !slp_onnx_can_read(&c->in[0])) slp_onnx_cannot_read(c, "input 0", c->node->input[0]);
	sl_tensor *t = c->failed ? NULL : slp_onnx_tensor(c, 0);
	unsigned char *bytes = t ? elements_of(c, t, bytes_of(from)) : NULL;
	struct slp_onnx_data d = {.element = slp_onnx_element_numbered(to), .data = bytes};
	if (t) d.shape = sl_tensor_shape(t);
	struct slp_onnx_value y = {.type = to};
	if (bytes) y.known = slp_onnx_known_from(c->made, &d);
	free(bytes);
	slp_onnx_set_output_value(c, 0, y);
}
