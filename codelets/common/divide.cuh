/* Division by a divisor that is known at launch: a multiplication and a shift, much cheaper than a GPU's division. */
#ifndef SLP_DIVIDE_CUH
#define SLP_DIVIDE_CUH

#include <cstdint>

#include "gpu.cuh"

/* A divisor of numbers below 2^31: the quotient is (high word of n mul + n) >> shift.  T. Granlund, P. Montgomery,
 * "Division by Invariant Integers using Multiplication", 1994. */
struct slp_quick {
	uint32_t d, mul, shift;
};
/* The same for wider numbers, which are rare: an ordinary division. */
struct slp_slow {
	int64_t d;
};

template <class Index> struct slp_divisor;
template <> struct slp_divisor<uint32_t> {
	typedef slp_quick type;
	static slp_quick of(int64_t d)
	{
		uint32_t shift = 0;
		while ((INT64_C(1) << shift) < d) shift++;
		uint64_t mul = ((UINT64_C(1) << 32) * ((UINT64_C(1) << shift) - (uint64_t)d)) / (uint64_t)d + 1;
		return {(uint32_t)d, (uint32_t)mul, shift};
	}
};
template <> struct slp_divisor<int64_t> {
	typedef slp_slow type;
	static slp_slow of(int64_t d)
	{
		return {d};
	}
};

static __device__ inline uint32_t slp_quotient(uint32_t n, slp_quick q)
{
	return ((uint32_t)(((uint64_t)n * q.mul) >> 32) + n) >> q.shift;
}

static __device__ inline int64_t slp_quotient(int64_t n, slp_slow q)
{
	return n / q.d;
}

/* n / d; *rest becomes n % d. */
template <class Index, class D> static __device__ inline Index slp_divided(Index n, D d, Index *rest)
{
	Index q = slp_quotient(n, d);
	*rest = n - q * (Index)d.d;
	return q;
}

#endif
