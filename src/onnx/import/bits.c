/* ONNX operators, computed: the bits of integers, as int64 (op_inner.h: slp_modular). */
#include <stdlib.h>

#include "onnx/model/tensors.h"
#include "op.h"
#include "op_inner.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"

enum { UINT64 = 13 }; /* the number of the type in the format */

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

/* The two inputs as int64 of one shape; false after an error. */
static bool read_pair(struct slp_onnx_call *c, sl_tensor *in[2])
{
	sl_shape x = slp_onnx_shape(c, 0), y = slp_onnx_shape(c, 1), shape;
	if (!c->failed && !slp_broadcast(x, y, &shape)) slp_onnx_call_fail(c, SL_ESHAPE, "the shapes do not match");
	for (int i = 0; i < 2 && !c->failed; i++) {
		struct slp_onnx_value v = slp_onnx_broadcast(c, slp_onnx_cast(c, c->in[i], SL_INT64), shape);
		in[i] = slp_onnx_present(v) ? slp_onnx_as_tensor(c, v) : NULL;
		if (!in[i]) c->failed = true; /* and recorded */
	}
	return !c->failed;
}

/* The result in the type of the first input. */
static void give(struct slp_onnx_call *c, sl_tensor *t)
{
	enum sl_dtype dtype = slp_onnx_dtype(&c->in[0]);
	slp_onnx_set_output(c, 0, t && dtype != SL_INT64 ? slp_wrap(c->at, t, dtype) : t);
}

void slp_onnx_import_bitwise(struct slp_onnx_call *c)
{
	char kind = c->op->name[7];
	if (!are_integers(c) || bitwise_known(c)) return;
	sl_tensor *in[2];
	if (read_pair(c, in))
		give(c, slp_modular(c->at, in[0], in[1],
		                    kind == 'A'   ? SLP_MODULAR_AND
		                    : kind == 'O' ? SLP_MODULAR_OR
		                                  : SLP_MODULAR_XOR));
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

/* To the right; of a negative number -1 - x is shifted. */
static sl_tensor *shifted_right(struct slp_onnx_call *c, sl_tensor *x, sl_tensor *by)
{
	sl_tensor *negative = sl_lt_scalar_at(c->at, x, 0);
	sl_tensor *ones = negative ? sl_neg_at(c->at, sl_cast_at(c->at, negative, SL_INT64)) : NULL;
	x = ones ? slp_modular(c->at, x, ones, SLP_MODULAR_XOR) : NULL;
	x = x ? slp_modular(c->at, x, by, SLP_MODULAR_RIGHT) : NULL;
	return x ? slp_modular(c->at, x, ones, SLP_MODULAR_XOR) : NULL;
}

/* uint64 is held as int64 of the same bits, other unsigned numbers have no sign in int64. */
void slp_onnx_import_bit_shift(struct slp_onnx_call *c)
{
	bool left = slp_onnx_attr_is(c, "direction", "", "LEFT");
	if (!left && !slp_onnx_attr_is(c, "direction", "", "RIGHT"))
		slp_onnx_call_fail(c, SL_EFORMAT, "attribute direction must be LEFT or RIGHT");
	sl_tensor *in[2];
	if (!are_integers(c) || c->failed || !read_pair(c, in)) return;
	if (left) give(c, slp_modular(c->at, in[0], in[1], SLP_MODULAR_LEFT));
	else if (slp_onnx_type_of(&c->in[0]) == UINT64) give(c, slp_modular(c->at, in[0], in[1], SLP_MODULAR_RIGHT));
	else give(c, shifted_right(c, in[0], in[1]));
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
