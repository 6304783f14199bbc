/* Arithmetic of int64, exact where a double is not.  As with narrower integers, results that do not fit saturate,
 * fractions are lost as in C, and a division by 0 gives the saturated infinity, or 0 for 0 / 0. */
#ifndef SLP_WHOLE_H
#define SLP_WHOLE_H

#ifdef __CUDACC__
#define SLP_WHOLE_FN static __host__ __device__ inline
#else
#define SLP_WHOLE_FN static inline
#endif

SLP_WHOLE_FN int64_t slp_whole_limit(bool negative)
{
	return negative ? INT64_MIN : INT64_MAX;
}

SLP_WHOLE_FN int64_t slp_whole_add(int64_t a, int64_t b)
{
	int64_t sum = (int64_t)((uint64_t)a + (uint64_t)b);
	return ((a ^ sum) & (b ^ sum)) < 0 ? slp_whole_limit(a < 0) : sum;
}

SLP_WHOLE_FN int64_t slp_whole_sub(int64_t a, int64_t b)
{
	int64_t d = (int64_t)((uint64_t)a - (uint64_t)b);
	return ((a ^ b) & (a ^ d)) < 0 ? slp_whole_limit(a < 0) : d;
}

/* The number without its sign, and back. */
SLP_WHOLE_FN uint64_t slp_whole_size(int64_t a)
{
	return a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
}

SLP_WHOLE_FN int64_t slp_whole_signed(bool negative, uint64_t size)
{
	if (size > (uint64_t)INT64_MAX) return slp_whole_limit(negative);
	return negative ? -(int64_t)size : (int64_t)size;
}

SLP_WHOLE_FN uint64_t slp_size_mul(uint64_t a, uint64_t b)
{
#ifdef __CUDA_ARCH__
	return __umul64hi(a, b) ? UINT64_MAX : a * b;
#else
	uint64_t product;
	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
#endif
}

SLP_WHOLE_FN int64_t slp_whole_mul(int64_t a, int64_t b)
{
#ifdef __CUDA_ARCH__
	return slp_whole_signed((a < 0) != (b < 0), slp_size_mul(slp_whole_size(a), slp_whole_size(b)));
#else
	int64_t product;
	return __builtin_mul_overflow(a, b, &product) ? slp_whole_limit((a < 0) != (b < 0)) : product;
#endif
}

SLP_WHOLE_FN int64_t slp_whole_div(int64_t a, int64_t b)
{
	if (b == 0) return a ? slp_whole_limit(a < 0) : 0;
	return slp_whole_signed((a < 0) != (b < 0), slp_whole_size(a) / slp_whole_size(b));
}

/* Powers with an exponent below 0: 1, -1 or 0, and for base 0 the saturated infinity. */
SLP_WHOLE_FN int64_t slp_whole_pow(int64_t a, int64_t exponent)
{
	uint64_t power = 1, square = slp_whole_size(a);
	bool odd = exponent & 1;
	if (exponent < 0 && square != 1) return a ? 0 : INT64_MAX;
	for (uint64_t rest = slp_whole_size(exponent); rest; rest >>= 1) {
		if (rest & 1) power = slp_size_mul(power, square);
		square = slp_size_mul(square, square);
	}
	return slp_whole_signed(a < 0 && odd, power);
}

SLP_WHOLE_FN int64_t slp_whole_maximum(int64_t a, int64_t b)
{
	return a >= b ? a : b;
}

SLP_WHOLE_FN int64_t slp_whole_minimum(int64_t a, int64_t b)
{
	return a <= b ? a : b;
}

SLP_WHOLE_FN int64_t slp_whole_neg(int64_t x)
{
	return slp_whole_sub(0, x);
}

SLP_WHOLE_FN int64_t slp_whole_abs(int64_t x)
{
	return x < 0 ? slp_whole_neg(x) : x;
}

SLP_WHOLE_FN int64_t slp_whole_square(int64_t x)
{
	return slp_whole_mul(x, x);
}

SLP_WHOLE_FN int64_t slp_whole_relu(int64_t x)
{
	return x < 0 ? 0 : x;
}

SLP_WHOLE_FN int64_t slp_whole_sign(int64_t x)
{
	return (x > 0) - (x < 0);
}

SLP_WHOLE_FN int64_t slp_whole_floor(int64_t x)
{
	return x;
}
#define slp_whole_ceil slp_whole_floor
#define slp_whole_round slp_whole_floor

SLP_WHOLE_FN int64_t slp_whole_isnan(int64_t x)
{
	(void)x;
	return 0;
}

SLP_WHOLE_FN int64_t slp_whole_isfinite(int64_t x)
{
	(void)x;
	return 1;
}

SLP_WHOLE_FN int64_t slp_whole_logical_not(int64_t x)
{
	return x == 0;
}

/* A number that is to 0 as x is to s, which no int64 needs to hold: comparisons of x and s are those of it and 0. */
SLP_WHOLE_FN double slp_whole_beside(int64_t x, double s)
{
	if (!(s >= -0x1p63 && s < 0x1p63)) return s != s ? s : s > 0 ? -1 : 1;
	int64_t whole = (int64_t)s;
	return x != whole ? (x < whole ? -1 : 1) : (double)whole - s;
}

/* ---- sums that take more bits ------------------------------------------------------------------------------------ */

/* The accumulator of numbers: for a sum, 128 bits of two's complement; for a product, its sign and its absolute value.
 */
struct slp_whole {
	int64_t high;
	uint64_t low;
};

SLP_WHOLE_FN struct slp_whole slp_whole_of(int64_t x)
{
	struct slp_whole w = {x < 0 ? -1 : 0, (uint64_t)x};
	return w;
}

SLP_WHOLE_FN struct slp_whole slp_whole_plus(struct slp_whole a, struct slp_whole b)
{
	struct slp_whole w = {0, a.low + b.low};
	w.high = a.high + b.high + (w.low < a.low);
	return w;
}

SLP_WHOLE_FN int64_t slp_whole_saturated(struct slp_whole w)
{
	if (w.high == (w.low >> 63 ? -1 : 0)) return (int64_t)w.low;
	return slp_whole_limit(w.high < 0);
}

#endif
