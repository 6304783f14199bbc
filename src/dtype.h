/* Conversions between elements of the data types of SL_DTYPE_LIST (starling/tensor.h) and numbers. Rounding is to
 * nearest, ties to even; every function is a handful of selects, so that loops over them vectorise. */
#ifndef SLP_DTYPE_H
#define SLP_DTYPE_H

#include <math.h>
#include <starling/tensor.h>
#include <string.h>

#ifdef __CUDACC__
#define SLP_DTYPE_FN static inline __host__ __device__
#else
#define SLP_DTYPE_FN static inline
#endif

enum slp_kind { SLP_KIND_NONE, SLP_KIND_FLOAT, SLP_KIND_INT, SLP_KIND_BOOL };

SLP_DTYPE_FN uint32_t slp_bits_of(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	return bits;
}

SLP_DTYPE_FN float slp_of_bits(uint32_t bits)
{
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

/* A float that rounds to the same 16-bit number as x: its last bit records the part of x that a float cannot hold. */
SLP_DTYPE_FN float slp_round_to_odd(double x)
{
	float f = (float)x;
	uint32_t bits = slp_bits_of(f);
	bits -= fabs((double)f) > fabs(x) ? 1 : 0;
	bits |= (double)f != x && x == x ? 1 : 0;
	return slp_of_bits(bits);
}

/* ---- bfloat16 --------------------------------------------------------------------------------------------------- */

SLP_DTYPE_FN float slp_float_of_bfloat16(sl_bfloat16 x)
{
	return slp_of_bits((uint32_t)x.bits << 16);
}

SLP_DTYPE_FN sl_bfloat16 slp_bfloat16_of_float(float x)
{
	uint32_t bits = slp_bits_of(x), nearest = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
	bits = (bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : nearest;
	sl_bfloat16 y = {(uint16_t)bits};
	return y;
}

SLP_DTYPE_FN sl_bfloat16 slp_bfloat16_of_double(double x)
{
	return slp_bfloat16_of_float(slp_round_to_odd(x));
}

/* ---- float16 ---------------------------------------------------------------------------------------------------- */

SLP_DTYPE_FN float slp_float_of_float16(sl_float16 x)
{
	uint32_t sign = (uint32_t)(x.bits & 0x8000) << 16, rest = x.bits & 0x7fff, wide = rest << 13;
	uint32_t subnormal = slp_bits_of((float)(int32_t)rest * 0x1p-24f);
	uint32_t bits = rest < 0x400 ? subnormal : rest < 0x7c00 ? wide + (112u << 23) : wide | 0x7f800000;
	return slp_of_bits(sign | bits);
}

SLP_DTYPE_FN sl_float16 slp_float16_of_float(float x)
{
	uint32_t bits = slp_bits_of(x), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
	uint32_t normal = ((rest + 0xfff + (rest >> 13 & 1)) >> 13) - (112u << 10);
	uint32_t subnormal = slp_bits_of(slp_of_bits(rest < 0x38800000 ? rest : 0) + 0.5f) - 0x3f000000;
	uint32_t nan = 0x7e00 | (rest >> 13 & 0x1ff);
	uint32_t finite = rest < 0x38800000 ? subnormal : rest < 0x477ff000 ? normal : 0x7c00;
	sl_float16 y = {(uint16_t)(sign | (rest > 0x7f800000 ? nan : finite))};
	return y;
}

SLP_DTYPE_FN sl_float16 slp_float16_of_double(double x)
{
	return slp_float16_of_float(slp_round_to_odd(x));
}

/* ---- elements as numbers ---------------------------------------------------------------------------------------- */

/* slp_load(element): its number, in the type that is computed in.
 * slp_store_SYMBOL(x): the element for a float or a double.  Integers lose the fraction and saturate, NaN becomes 0; a
 * bool is whether x is not 0. */
SLP_DTYPE_FN int32_t slp_int32_of(double x)
{
	double y = x > INT32_MIN ? x : INT32_MIN;
	y = y < INT32_MAX ? y : INT32_MAX;
	return x == x ? (int32_t)y : 0;
}

SLP_DTYPE_FN uint8_t slp_uint8_of(double x)
{
	double y = x > 0 ? x : 0;
	return (uint8_t)(int32_t)(y < UINT8_MAX ? y : UINT8_MAX);
}

SLP_DTYPE_FN int64_t slp_int64_of(double x)
{
	if (!(x < 0x1p63)) return x == x ? INT64_MAX : 0;
	return x > -0x1p63 ? (int64_t)x : INT64_MIN;
}

SLP_DTYPE_FN int8_t slp_int8_of(double x)
{
	double y = x > INT8_MIN ? x : INT8_MIN;
	return (int8_t)(int32_t)(x == x ? y < INT8_MAX ? y : INT8_MAX : 0);
}

SLP_DTYPE_FN int16_t slp_int16_of(double x)
{
	double y = x > INT16_MIN ? x : INT16_MIN;
	return (int16_t)(int32_t)(x == x ? y < INT16_MAX ? y : INT16_MAX : 0);
}

SLP_DTYPE_FN uint16_t slp_uint16_of(double x)
{
	double y = x > 0 ? x : 0;
	return (uint16_t)(int32_t)(y < UINT16_MAX ? y : UINT16_MAX);
}

SLP_DTYPE_FN uint32_t slp_uint32_of(double x)
{
	double y = x > 0 ? x : 0;
	return (uint32_t)(int64_t)(y < UINT32_MAX ? y : UINT32_MAX);
}

SLP_DTYPE_FN uint64_t slp_uint64_of(double x)
{
	if (!(x > 0)) return 0;
	return x < 0x1p64 ? (uint64_t)x : UINT64_MAX;
}

#define slp_store_SL_INT32(x) slp_int32_of(x)
#define slp_store_SL_UINT8(x) slp_uint8_of(x)
#define slp_store_SL_INT64(x) slp_int64_of(x)
#define slp_store_SL_INT8(x) slp_int8_of(x)
#define slp_store_SL_INT16(x) slp_int16_of(x)
#define slp_store_SL_UINT16(x) slp_uint16_of(x)
#define slp_store_SL_UINT32(x) slp_uint32_of(x)
#define slp_store_SL_UINT64(x) slp_uint64_of(x)
#define slp_store_SL_BOOL(x) ((x) != 0)
#define slp_store_SL_FLOAT32(x) ((float)(x))
#define slp_store_SL_FLOAT64(x) ((double)(x))

#ifdef __cplusplus

#define SLP_LOAD(type, compute, value)                                                                                 \
	SLP_DTYPE_FN compute slp_load(type x)                                                                          \
	{                                                                                                              \
		return value;                                                                                          \
	}
SLP_LOAD(float, float, x)
SLP_LOAD(double, double, x)
SLP_LOAD(int32_t, double, x)
SLP_LOAD(uint8_t, double, x)
SLP_LOAD(int64_t, double, (double)x)
SLP_LOAD(bool, double, x)
SLP_LOAD(int8_t, double, x)
SLP_LOAD(int16_t, double, x)
SLP_LOAD(uint16_t, double, x)
SLP_LOAD(uint32_t, double, x)
SLP_LOAD(uint64_t, double, (double)x)
SLP_LOAD(sl_bfloat16, float, slp_float_of_bfloat16(x))
SLP_LOAD(sl_float16, float, slp_float_of_float16(x))
#undef SLP_LOAD

#define SLP_STORE_HALF(symbol, name, from)                                                                             \
	SLP_DTYPE_FN sl_##name slp_store_##symbol(from x)                                                              \
	{                                                                                                              \
		return slp_##name##_of_##from(x);                                                                      \
	}
SLP_STORE_HALF(SL_BFLOAT16, bfloat16, float)
SLP_STORE_HALF(SL_BFLOAT16, bfloat16, double)
SLP_STORE_HALF(SL_FLOAT16, float16, float)
SLP_STORE_HALF(SL_FLOAT16, float16, double)
#undef SLP_STORE_HALF

#else

SLP_DTYPE_FN double slp_load_number(double x)
{
	return x;
}
SLP_DTYPE_FN float slp_load_float(float x)
{
	return x;
}
SLP_DTYPE_FN double slp_load_uint64(uint64_t x)
{
	return (double)x;
}
#define slp_load(x)                                                                                                    \
	_Generic((x), sl_bfloat16                                                                                      \
	         : slp_float_of_bfloat16, sl_float16                                                                   \
	         : slp_float_of_float16, float                                                                         \
	         : slp_load_float, uint64_t                                                                            \
	         : slp_load_uint64, default                                                                            \
	         : slp_load_number)(x)
#define slp_store_SL_BFLOAT16(x) _Generic((x), float : slp_bfloat16_of_float, default : slp_bfloat16_of_double)(x)
#define slp_store_SL_FLOAT16(x) _Generic((x), float : slp_float16_of_float, default : slp_float16_of_double)(x)

#endif

/* The kind of a data type; SLP_KIND_NONE for none. */
SLP_DTYPE_FN enum slp_kind slp_kind_of(enum sl_dtype dtype)
{
	switch (dtype) {
/* clang-format off */
#define X(symbol, name, type, kind, ...)                                                                               \
	case symbol:                                                                                                   \
		return SLP_KIND_##kind;
		/* clang-format on */
		SL_DTYPE_LIST(X)
#undef X
	case SL_DTYPE_DEFAULT:
	case SL_DTYPE_COUNT: break;
	}
	return SLP_KIND_NONE;
}

/* A float of 16 bits: its kernels may be those of float32 (slp_kernel_for). */
SLP_DTYPE_FN bool slp_is_half(enum sl_dtype dtype)
{
	return dtype == SL_BFLOAT16 || dtype == SL_FLOAT16;
}

/* The data type that is meant where none was named. */
SLP_DTYPE_FN enum sl_dtype slp_dtype_or(enum sl_dtype dtype, enum sl_dtype otherwise)
{
	return dtype == SL_DTYPE_DEFAULT ? otherwise : dtype;
}

#endif
