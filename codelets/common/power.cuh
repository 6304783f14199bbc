/* Powers in double precision that are whole numbers or near one. CUDA's pow may be off by two units in the last place:
 * for integers, 2.999… would become 2. Powers of whole numbers by whole exponents are exact here, as long as a double
 * can hold them; next to a whole number the last place is decided with twice the digits. */
#ifndef SLP_POWER_CUH
#define SLP_POWER_CUH

#include <cmath>

#include "gpu.cuh"

#ifndef SLP_LIBRARY_POW /* the emulated devices of the tests have a less accurate one */
#define SLP_LIBRARY_POW std::pow
#endif

/* A number as the sum of two. */
struct slp_double2 {
	double high, low;
};

static __host__ __device__ inline slp_double2 slp_sum2(double a, double b)
{
	double s = a + b, part = s - a;
	return {s, (a - (s - part)) + (b - part)};
}

static __host__ __device__ inline slp_double2 slp_add2(slp_double2 a, slp_double2 b)
{
	slp_double2 s = slp_sum2(a.high, b.high);
	return slp_sum2(s.high, s.low + (a.low + b.low));
}

static __host__ __device__ inline slp_double2 slp_mul2(slp_double2 a, slp_double2 b)
{
	double p = a.high * b.high, error = std::fma(a.high, b.high, -p);
	return slp_sum2(p, error + (a.high * b.low + a.low * b.high));
}

static __host__ __device__ inline slp_double2 slp_div2(slp_double2 a, slp_double2 b)
{
	double q = a.high / b.high;
	slp_double2 rest = slp_add2(a, slp_mul2({-q, 0}, b));
	return slp_sum2(q, rest.high / b.high);
}

/* log(x) = e log(2) + 2 atanh((m - 1) / (m + 1)), for x > 0. */
static __host__ __device__ inline slp_double2 slp_log2_of(double x)
{
	int e;
	double m = std::frexp(x, &e);
	if (m < 0.7071067811865476) m *= 2, e--;
	slp_double2 t = slp_div2(slp_sum2(m, -1), slp_sum2(m, 1)), square = slp_mul2(t, t), sum = {0, 0};
	for (int i = 43; i > 0; i -= 2) sum = slp_add2(slp_mul2(sum, square), slp_div2({1, 0}, {(double)i, 0}));
	return slp_add2(slp_mul2({(double)e, 0}, {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56}),
	                slp_mul2({2, 0}, slp_mul2(t, sum)));
}

/* x to the power of y, which lies next to the whole number `near`, rounded. x > 0. */
static __host__ __device__ inline double slp_pow_near(double x, double y, double near, double found)
{
	slp_double2 power = slp_mul2({y, 0}, slp_log2_of(x)), log_near = slp_log2_of(near);
	slp_double2 apart = slp_add2(power, {-log_near.high, -log_near.low});
	double off = near * apart.high, below = near - std::nextafter(near, 0.0),
	       above = std::nextafter(near, 2 * near) - near;
	if (off >= -below / 2 && off <= above / 2) return near;
	return off < 0 && found >= near ? near - below : off > 0 && found <= near ? near + above : found;
}

static __host__ __device__ inline double slp_pow(double x, double y)
{
	if (x == std::rint(x) && y == std::rint(y) && std::fabs(y) < 0x1p53) {
		double power = 1, square = x;
		for (int64_t rest = (int64_t)std::fabs(y); rest && std::fabs(power) < 0x1p53; rest >>= 1) {
			if (rest & 1) power *= square;
			square *= square;
		}
		if (std::fabs(power) < 0x1p53) return y < 0 ? 1 / power : power;
	}
	double v = SLP_LIBRARY_POW(x, y), near = std::rint(v);
	bool close = x > 0 && near > 0 && near < 0x1p52 && std::fabs(v - near) <= near * 0x1p-50;
	return close ? slp_pow_near(x, y, near, v) : v;
}

static __host__ __device__ inline float slp_pow(float x, float y)
{
	return SLP_LIBRARY_POW(x, y);
}

#endif
