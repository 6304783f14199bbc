/* Philox 4×32-10: four random words from a counter and a key, the same on CPUs and GPUs.
 * J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011. */
#ifndef SLP_PHILOX_H
#define SLP_PHILOX_H

#include <stdint.h>

#ifdef __CUDACC__
#define SLP_PHILOX_FN static __host__ __device__ inline
#else
#define SLP_PHILOX_FN static inline
#endif

/* Word i of the block `index` of the stream (seed, stream): element e of a tensor takes word e % 4 of block e / 4. */
SLP_PHILOX_FN void slp_philox(uint64_t seed, uint64_t stream, uint64_t index, uint32_t out[4])
{
	uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32), c2 = (uint32_t)stream,
	         c3 = (uint32_t)(stream >> 32);
	uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
	for (int round = 0; round < 10; round++) {
		uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
		uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
		c1 = (uint32_t)p1;
		c3 = (uint32_t)p0;
		c0 = n0;
		c2 = n2;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	out[0] = c0;
	out[1] = c1;
	out[2] = c2;
	out[3] = c3;
}

/* A word as a number in [0, 1) with 24 bits. */
SLP_PHILOX_FN float slp_unit_float(uint32_t word)
{
	return (float)(word >> 8) * (1.0f / 16777216.0f);
}

#endif
