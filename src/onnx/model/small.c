/* ONNX models: weights of four bits, and floats of eight, which tensors lack: they become int8, uint8 or float32 when a
 * file is read. */
#include <math.h>
#include <stdlib.h>

#include "onnx/model/model.h"

enum { FLOAT32 = 1, UINT8, INT8, FLOAT8E4M3FN = 17, FLOAT8E4M3FNUZ, FLOAT8E5M2, FLOAT8E5M2FNUZ, UINT4, INT4 };

/* A float of eight bits: so many of them for the fraction; unsigned zero, where only one number is NaN. */
static float float_of(unsigned char byte, int fraction, bool one_zero)
{
	int bias = (fraction == 3 ? 7 : 15) + one_zero, exponent = byte >> fraction & ((1 << (7 - fraction)) - 1);
	int rest = byte & ((1 << fraction) - 1), most = (1 << (7 - fraction)) - 1;
	float sign = byte & 0x80 ? -1.0f : 1.0f;
	if (one_zero && byte == 0x80) return NAN;
	if (!one_zero && fraction == 3 && exponent == most && rest == 7) return NAN;
	if (!one_zero && fraction == 2 && exponent == most) return rest ? NAN : sign * INFINITY;
	if (!exponent) return sign * ldexpf((float)rest, 1 - bias - fraction);
	return sign * ldexpf((float)(rest + (1 << fraction)), exponent - bias - fraction);
}

static float element_float(const unsigned char *bytes, uint64_t i, int type)
{
	bool one_zero = type == FLOAT8E4M3FNUZ || type == FLOAT8E5M2FNUZ;
	return float_of(bytes[i], type == FLOAT8E4M3FN || type == FLOAT8E4M3FNUZ ? 3 : 2, one_zero);
}

/* Two to a byte, the lower half first. */
static unsigned char element_half(const unsigned char *bytes, uint64_t i, int type)
{
	int v = bytes[i / 2] >> (i % 2 ? 4 : 0) & 15;
	return (unsigned char)(type == INT4 && v > 7 ? v - 16 : v);
}

/* The bytes of the file: raw ones, or one in each integer; NULL: another number of them, or no memory. */
static unsigned char *bytes_of(const SlpOnnx__TensorProto *t, uint64_t bytes)
{
	unsigned char *v = NULL;
	if (t->has_raw_data ? t->raw_data.len != bytes : t->n_int32_data != bytes) return NULL;
	v = slp_malloc(bytes + 1);
	for (uint64_t i = 0; v && i < bytes; i++)
		v[i] = t->has_raw_data ? t->raw_data.data[i] : (unsigned char)t->int32_data[i];
	return v;
}

/* The number of elements; false: it is no shape within memory. */
static bool count_of(const SlpOnnx__TensorProto *t, uint64_t *n)
{
	*n = 1;
	for (size_t i = 0; i < t->n_dims; i++)
		if (t->dims[i] < 0 || __builtin_mul_overflow(*n, (uint64_t)t->dims[i], n)) return false;
	return *n < INT64_MAX / 4;
}

/* Leaves a tensor whose bytes do not fit as it is: reading it is an error then. */
static void widen(SlpOnnx__TensorProto *t)
{
	int type = t->data_type;
	bool half = type == UINT4 || type == INT4;
	uint64_t n;
	if (type < FLOAT8E4M3FN || type > INT4 || t->data_location || !count_of(t, &n)) return;
	unsigned char *from = bytes_of(t, half ? (n + 1) / 2 : n),
	              *to = from ? slp_malloc(half ? n + 1 : 4 * n + 1) : NULL;
	for (uint64_t i = 0; to && i < n; i++) {
		float f = half ? 0 : element_float(from, i, type);
		if (half) to[i] = element_half(from, i, type);
		else memcpy(to + 4 * i, &f, sizeof f);
	}
	free(from);
	if (!to) return;
	free(t->raw_data.data);
	t->has_raw_data = true;
	t->raw_data = (ProtobufCBinaryData){half ? n : 4 * n, to};
	t->data_type = half ? (type == INT4 ? INT8 : UINT8) : FLOAT32;
}

void slp_onnx_small_types(struct slp_onnx_model *m)
{
	for (int i = 0; i < m->nnames; i++)
		if (m->names[i].tensor) widen((SlpOnnx__TensorProto *)m->names[i].tensor);
}
