/* Elementary functions of one float, free of branches and calls, so that compilers vectorise the loops around them.
 * Within 4 units in the last place; infinities, NaN, overflow and denormals as in the C library.
 *
 * Polynomials are minimax fits (Remez).  Arguments are reduced as usual: exp(x) = 2^n exp(r) with |r| <= log(2) / 2,
 * log(x) = e log(2) + log(m) with m in [sqrt(1/2), sqrt(2)); J.-M. Muller, "Elementary functions", 2016. */
#ifndef SLP_VMATH_H
#define SLP_VMATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define SLP_VFN static inline __attribute__((always_inline))

/* Tells the vectoriser that iterations are independent: pointers are equal or their ranges apart. */
#if defined(__clang__)
#define SLP_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define SLP_INDEPENDENT _Pragma("GCC ivdep")
#endif

SLP_VFN int32_t slp_float_bits(float x)
{
	int32_t bits;
	memcpy(&bits, &x, sizeof bits);
	return bits;
}

SLP_VFN float slp_bits_float(int32_t bits)
{
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

/* 2^n for -126 <= n <= 127. */
SLP_VFN float slp_pow2i(int32_t n)
{
	return slp_bits_float((int32_t)((uint32_t)(n + 127) << 23));
}

/* (exp(r) - 1 - r) / r^2, |r| <= log(2) / 2. */
SLP_VFN float slp_exp_rest(float r)
{
	float p = 1.9915622e-4f;
	p = p * r + 1.3942047e-3f;
	p = p * r + 8.33327e-3f;
	p = p * r + 4.1666344e-2f;
	p = p * r + 1.6666667e-1f;
	p = p * r + 0.5f;
	return p;
}

/* exp(r) - 1 with r = hi + lo - n log(2), |r| <= log(2) / 2; |hi| < 150, lo small. */
SLP_VFN float slp_expm1_reduced(float hi, float lo, int32_t *n)
{
	const float shift = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer, into the low bits */
	float shifted = hi * 1.44269504f + shift, k = shifted - shift;
	/* unsigned: a NaN gives any n */
	*n = (int32_t)((uint32_t)slp_float_bits(shifted) - (uint32_t)slp_float_bits(shift));
	float r = hi - k * 0.693359375f; /* few bits: k times it is exact */
	r = r + k * 2.12194440e-4f + lo;
	return slp_exp_rest(r) * (r * r) + r;
}

/* exp(hi + lo), |hi| < 150, lo small. */
SLP_VFN float slp_exp_sum(float hi, float lo)
{
	int32_t n;
	float p = slp_expm1_reduced(hi, lo, &n) + 1;
	n = n < -160 ? -160 : n > 160 ? 160 : n; /* replaces garbage that NaN left */
	int32_t half = n >> 1;
	return p * slp_pow2i(half) * slp_pow2i(n - half); /* in two steps: 2^n may not be a float, the result may */
}

SLP_VFN float slp_expf(float x)
{
	x = x < -104 ? -104 : x;
	x = x > 89 ? 89 : x;
	return slp_exp_sum(x, 0);
}

/* exp(x) for x <= 0, as softmax needs it: half the work.  Below the smallest normal number it is 0. */
SLP_VFN float slp_exp_falling(float x)
{
	const float shift = 12582912.0f; /* as above; shifted left, its low bits become those of an exponent */
	float shifted = x * 1.44269504f + shift, k = shifted - shift;
	float r = x - k * 0.693359375f;
	r = r + k * 2.12194440e-4f;
	float p = slp_exp_rest(r) * r + 1;
	p = p * r + 1;
	float y = p * slp_bits_float((int32_t)(((uint32_t)slp_float_bits(shifted) << 23) + 0x3F800000u));
	return x < -87.3f ? 0 : y;
}

/* -1, 0 or 1; NaN stays. */
SLP_VFN float slp_signf(float x)
{
	return x > 0 ? 1 : x < 0 ? -1 : x;
}

/* x = 2^e m with m in [sqrt(1/2), sqrt(2)), for positive finite x. */
SLP_VFN float slp_split(float x, int32_t *e)
{
	int tiny = x < 1.17549435e-38f;
	int32_t bits = slp_float_bits(tiny ? x * 8388608.0f : x);
	int32_t exponent = (int32_t)((uint32_t)bits - 0x3F3504F3u) >> 23;
	*e = exponent - (tiny ? 23 : 0);
	return slp_bits_float((int32_t)((uint32_t)bits - ((uint32_t)exponent << 23)));
}

SLP_VFN float slp_logf(float x)
{
	int32_t e;
	float f = slp_split(x, &e) - 1, k = (float)e;
	float p = 6.9155395e-2f;
	p = p * f - 1.1789848e-1f;
	p = p * f + 1.1872917e-1f;
	p = p * f - 1.2384337e-1f;
	p = p * f + 1.4218666e-1f;
	p = p * f - 1.6669253e-1f;
	p = p * f + 2.0002227e-1f;
	p = p * f - 2.4999987e-1f;
	p = p * f + 3.333331e-1f;
	float square = f * f;
	float y = p * f * square - k * 2.12194440e-4f;
	y = (y - 0.5f * square + f) + k * 0.693359375f;
	y = x < INFINITY ? y : x;
	return x > 0 ? y : x == 0 ? -INFINITY : NAN;
}

/* log(1 + x) for 0 <= x <= 1, as 2 artanh(x / (2 + x)). */
SLP_VFN float slp_log1p_unit(float x)
{
	float s = x / (2 + x), z = s * s;
	float p = 2.803132e-1f;
	p = p * z + 2.7997854e-1f;
	p = p * z + 4.002177e-1f;
	p = p * z + 6.666641e-1f;
	return p * z * s + 2 * s;
}

/* log(1 + x): of the sum as a float, and what rounding took from it. */
SLP_VFN float slp_log1pf(float x)
{
	float u = 1 + x, lost = (x - (u - 1)) / u;
	float y = slp_logf(u) + (((u > 0) & (u < INFINITY)) ? lost : 0);
	return x == 0 ? x : y; /* -0 stays */
}

/* exp(x) - 1. */
SLP_VFN float slp_expm1f(float x)
{
	float y = x < -104 ? -104 : x;
	y = y > 89 ? 89 : y;
	int32_t n;
	float p = slp_expm1_reduced(y, 0, &n);
	n = n < -64 ? -64 : n > 64 ? 64 : n;
	float scale = slp_pow2i(n), near = p * scale + (scale - 1);
	near = x == 0 ? x : near; /* -0 stays */
	return y > 44 ? slp_exp_sum(y, 0) : near;
}

/* Trigonometric functions' inverses: S. L. Moshier's polynomials (Cephes, 1992) on reduced arguments. */
SLP_VFN float slp_atanf(float x)
{
	float a = fabsf(x);
	int far = a > 2.41421356f, middle = a > 0.414213562f;
	float t = far ? -1 / a : middle ? (a - 1) / (a + 1) : a, z = t * t;
	float p = 8.05374449538e-2f;
	p = p * z - 1.38776856032e-1f;
	p = p * z + 1.99777106478e-1f;
	p = p * z - 3.33329491539e-1f;
	float turn = far ? 1.57079633f : middle ? 0.785398163f : 0;
	return copysignf(turn + (p * z * t + t), x);
}

/* asin(s) for z = s^2 <= 1/4. */
SLP_VFN float slp_asin_small(float s, float z)
{
	float p = 4.2163199048e-2f;
	p = p * z + 2.4181311049e-2f;
	p = p * z + 4.5470025998e-2f;
	p = p * z + 7.4953002686e-2f;
	p = p * z + 1.6666752422e-1f;
	return p * z * s + s;
}

/* asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)). */
SLP_VFN float slp_asinf(float x)
{
	float a = fabsf(x), z = a > 0.5f ? 0.5f * (1 - a) : a * a, s = a > 0.5f ? sqrtf(z) : a;
	float p = slp_asin_small(s, z);
	return copysignf(a > 0.5f ? 1.57079633f - 2 * p : p, x);
}

SLP_VFN float slp_acosf(float x)
{
	float a = fabsf(x), z = a > 0.5f ? 0.5f * (1 - a) : a * a, s = a > 0.5f ? sqrtf(z) : x;
	float p = slp_asin_small(s, z), far = x < 0 ? 3.14159265f - 2 * p : 2 * p;
	return a > 0.5f ? far : 1.57079633f - p;
}

/* By e = exp(|x|) - 1, or the square of exp(|x| / 2), which does not overflow before the result does. */
SLP_VFN float slp_sinhf(float x)
{
	float a = fabsf(x), e = slp_expm1f(a < 1 ? a : 1), half = slp_expf(0.5f * a);
	float near = 0.5f * (e + e / (e + 1)), far = 0.5f * half * half - 0.5f / half / half;
	return copysignf(a < 1 ? near : far, x);
}

SLP_VFN float slp_coshf(float x)
{
	float half = slp_expf(0.5f * fabsf(x));
	return 0.5f * half * half + 0.5f / half / half;
}

/* log1p(|x| + x^2 / (1 + sqrt(1 + x^2))); log(2 |x|) if x^2 dominates. */
SLP_VFN float slp_asinhf(float x)
{
	float a = fabsf(x), b = a > 1e4f ? 1e4f : a, z = b * b;
	float near = slp_log1pf(b + z / (1 + sqrtf(1 + z))), far = slp_logf(a) + 0.693147181f;
	return copysignf(a > 1e4f ? far : near, x);
}

/* log(2 x) if x^2 dominates. */
SLP_VFN float slp_acoshf(float x)
{
	float b = x > 1e4f ? 1e4f : x, t = b - 1;
	return x > 1e4f ? slp_logf(x) + 0.693147181f : slp_log1pf(t + sqrtf(t) * sqrtf(b + 1));
}

SLP_VFN float slp_atanhf(float x)
{
	return 0.5f * (slp_log1pf(x) - slp_log1pf(-x));
}

SLP_VFN float slp_tanf(float x)
{
	return sinf(x) / cosf(x);
}

SLP_VFN float slp_sigmoidf(float x)
{
	float e = slp_expf(-fabsf(x));
	return (x < 0 ? e : 1) / (1 + e);
}

/* log(1 + exp(x)). */
SLP_VFN float slp_softplusf(float x)
{
	return (x < 0 ? 0 : x) + slp_log1p_unit(slp_expf(-fabsf(x)));
}

/* With t = exp(2 |x|) - 1:  t / (t + 2). */
SLP_VFN float slp_tanhf(float x)
{
	float a = 2 * fabsf(x);
	a = a > 20 ? 20 : a;
	int32_t n;
	float p = slp_expm1_reduced(a, 0, &n);
	n = n < 0 ? 0 : n > 64 ? 64 : n;
	float scale = slp_pow2i(n), t = p * scale + (scale - 1);
	return copysignf(t / (t + 2), x);
}

/* For a >= 0: the density of the standard normal distribution without its factor, *bell = exp(-a^2 / 2), and the
 * probability of more than a.  The ratio of the two is a polynomial in (a - 4) / (a + 4), over a + 4. */
SLP_VFN float slp_normal_tail(float a, float *bell)
{
	a = a > 14.5f ? 14.5f : a;
	float head = slp_bits_float((int32_t)((uint32_t)slp_float_bits(a) & 0xFFFFF000u)); /* its square is exact */
	*bell = slp_exp_sum(-0.5f * head * head, -0.5f * (a - head) * (a + head));
	float q = 1 / (a + 4), t = 1 - 8 * q;
	float p = -1.3197196e-4f;
	p = p * t + 1.793542e-4f;
	p = p * t + 1.5699238e-3f;
	p = p * t - 3.5125539e-3f;
	p = p * t - 7.5252717e-3f;
	p = p * t + 6.040383e-2f;
	p = p * t - 1.8652344e-1f;
	p = p * t + 3.871369e-1f;
	p = p * t - 6.0789657e-1f;
	p = p * t + 7.5528514e-1f;
	return *bell * (p * q);
}

SLP_VFN float slp_erff(float x)
{
	float a = fabsf(x), z = x * x, bell;
	float p = 7.8538484e-5f;
	p = p * z - 8.0101896e-4f;
	p = p * z + 5.1883273e-3f;
	p = p * z - 2.6853811e-2f;
	p = p * z + 1.12835854e-1f;
	p = p * z - 3.7612626e-1f;
	p = p * z + 1.1283791f;
	float far = copysignf(1 - 2 * slp_normal_tail(a * 1.41421356f, &bell), x);
	return a < 1 ? p * x : far;
}

/* x times the probability of less than x. */
SLP_VFN float slp_geluf(float x)
{
	float bell, tail = slp_normal_tail(fabsf(x), &bell);
	float y = x * (x < 0 ? tail : 1 - tail);
	return x < -14.5f ? -0.0f : y; /* -inf too */
}

/* Its derivative. */
SLP_VFN float slp_gelu_slopef(float x)
{
	float bell, tail = slp_normal_tail(fabsf(x), &bell);
	float reach = x < -14.5f ? -14.5f : x > 14.5f ? 14.5f : x; /* infinity times zero */
	return (x < 0 ? tail : 1 - tail) + reach * bell * 0.39894228f;
}

/* log2(x) and 2^x in double precision, as slp_powf needs them; x positive and finite, |x| <= 200. */
SLP_VFN double slp_log2_wide(float x)
{
	int32_t e;
	double m = slp_split(x, &e), s = (m - 1) / (m + 1), z = s * s;
	double p = 0.3409379390431925;
	p = p * z + 0.41166195631630176;
	p = p * z + 0.5770837555944756;
	p = p * z + 0.9617966725001132;
	p = p * z + 2.885390081790709;
	return e + p * s;
}

/* To the nearest integer for |x| < 2^51; about x beyond. */
SLP_VFN double slp_nearest(double x)
{
	const double shift = 6755399441055744.0; /* 1.5 * 2^52 */
	return (x + shift) - shift;
}

SLP_VFN double slp_exp2_wide(double x)
{
	double whole = slp_nearest(x), r = x - whole;
	int32_t n = (int32_t)whole, half = n >> 1;
	double p = 1.5314975360311444e-05;
	p = p * r + 0.00015467110154046294;
	p = p * r + 0.0013333430665636717;
	p = p * r + 0.00961803691217972;
	p = p * r + 0.05550410962718364;
	p = p * r + 0.24022651075834195;
	p = p * r + 0.6931471805416014;
	return (p * r + 1) * slp_pow2i(half) * slp_pow2i(n - half);
}

/* The special cases are those of the C library's pow.  No calls here, not even of copysign or a float made an integer
 * and back (truncf): GCC moves them under the conditions below, where it does not vectorise calls. */
SLP_VFN float slp_powf(float x, float y)
{
	float a = fabsf(x), b = fabsf(y);
	double t = y * slp_log2_wide(a);
	t = t > -200 ? t : -200; /* NaN too */
	t = t < 200 ? t : 200;
	float r = (float)slp_exp2_wide(t);
	float limit = (a > 1) == (y > 0) ? INFINITY : 0;
	r = ((a == 0) | (a == INFINITY) | (b == INFINITY)) ? limit : r;
	int integer = (float)slp_nearest(y) == y, odd = ((float)slp_nearest(0.5 * y) != 0.5f * y) & integer;
	r = slp_bits_float(slp_float_bits(r) | (slp_float_bits(x) & -odd & INT32_MIN));
	r = ((x < 0) & (a < INFINITY) & !integer) ? NAN : r;
	r = ((x != x) | (y != y)) ? NAN : r;
	return ((x == 1) | (y == 0) | ((a == 1) & (b == INFINITY))) ? 1 : r;
}

/* sin and cos of 2 pi u, 0 <= u < 1. */
SLP_VFN void slp_sincos_turn(float u, float *sine, float *cosine)
{
	int32_t quarter = (int32_t)(4 * u + 0.5f);
	float r = u - 0.25f * (float)quarter, z = r * r;
	float s = -75.39356f;
	s = s * z + 81.592354f;
	s = s * z - 41.341663f;
	s = (s * z + 6.2831855f) * r;
	float c = 59.245964f;
	c = c * z - 85.44374f;
	c = c * z + 64.93932f;
	c = c * z - 19.739208f;
	c = c * z + 1;
	float p = quarter & 1 ? c : s, q = quarter & 1 ? s : c;
	*sine = quarter & 2 ? -p : p;
	*cosine = (quarter + 1) & 2 ? -q : q;
}

#endif
