/* Several elements of a thread at once, by accesses of 16 bytes. */
#ifndef SLP_WIDE_CUH
#define SLP_WIDE_CUH

#include "element.cuh"

/* The number of elements in 16 bytes. */
template <class S> constexpr int slp_wide_count = 16 / (int)sizeof(S);

template <class S> struct alignas(16) slp_wide {
	S at[slp_wide_count<S>];
};

/* Whether 16-byte accesses may begin at p. */
__host__ __device__ static inline bool slp_is_wide(const void *p)
{
	return (uintptr_t)p % 16 == 0;
}

/* The n elements at p as numbers, the rest `other`.  One by one where p is not aligned, so that a thread has the same
 * elements wherever a view begins, and sums have the same bits. */
template <class S, class T> static __device__ inline void slp_wide_load(const S *p, int64_t n, T *v, T other)
{
	constexpr int W = slp_wide_count<S>;
	if (n >= W && slp_is_wide(p)) {
		slp_wide<S> w = *(const slp_wide<S> *)p;
#pragma unroll
		for (int i = 0; i < W; i++) v[i] = (T)w.at[i];
	} else {
#pragma unroll
		for (int i = 0; i < W; i++) v[i] = i < n ? (T)p[i] : other;
	}
}

template <class S, class T> static __device__ inline void slp_wide_store(S *p, int64_t n, const T *v)
{
	constexpr int W = slp_wide_count<S>;
	if (n >= W && slp_is_wide(p)) {
		slp_wide<S> w;
#pragma unroll
		for (int i = 0; i < W; i++) w.at[i] = slp_stored<S>::of(v[i]);
		*(slp_wide<S> *)p = w;
	} else {
#pragma unroll
		for (int i = 0; i < W; i++)
			if (i < n) p[i] = slp_stored<S>::of(v[i]);
	}
}

/* W elements of any type, by one access if they are aligned for it. */
template <int W, class S, class T> static __device__ inline void slp_load_group(const S *p, T *v)
{
	struct alignas(W * sizeof(S)) group {
		S at[W];
	};
	if ((uintptr_t)p % sizeof(group) == 0) {
		group g = *(const group *)p;
#pragma unroll
		for (int i = 0; i < W; i++) v[i] = (T)g.at[i];
	} else {
#pragma unroll
		for (int i = 0; i < W; i++) v[i] = (T)p[i];
	}
}

template <int W, class S, class T> static __device__ inline void slp_store_group(S *p, const T *v)
{
	struct alignas(W * sizeof(S)) group {
		S at[W];
	};
	if ((uintptr_t)p % sizeof(group) == 0) {
		group g;
#pragma unroll
		for (int i = 0; i < W; i++) g.at[i] = slp_stored<S>::of(v[i]);
		*(group *)p = g;
	} else {
#pragma unroll
		for (int i = 0; i < W; i++) p[i] = slp_stored<S>::of(v[i]);
	}
}

/* W elements, one or as many as 16 bytes hold. */
template <int W, class S, class T> static __device__ inline void slp_take(const S *p, T *v)
{
	if constexpr (W == 1) v[0] = (T)*p;
	else slp_wide_load(p, W, v, (T)0);
}

template <int W, class S, class T> static __device__ inline void slp_put(S *p, const T *v)
{
	if constexpr (W == 1) *p = slp_stored<S>::of(v[0]);
	else slp_wide_store(p, W, v);
}

/* Functions of elements: a thread computes some neighbours, with one access if the tensors are aligned for it. Four at
 * most, because each is a copy of the function in machine code. */
template <class S> constexpr int slp_some_count = sizeof(S) > 4 ? 2 : 4;

template <class S> struct alignas(slp_some_count<S> * sizeof(S)) slp_some {
	S at[slp_some_count<S>];
};

template <class S> static inline bool slp_is_some(const void *p)
{
	return (uintptr_t)p % sizeof(slp_some<S>) == 0;
}

/* The n elements at p; step 0: the same one n times. */
template <class S, class T>
static __device__ inline void slp_some_load(const S *p, int64_t n, bool at_once, int64_t step, T *v)
{
	constexpr int W = slp_some_count<S>;
	if (at_once && n >= W && step == 1) {
		slp_some<S> s = *(const slp_some<S> *)p;
#pragma unroll
		for (int l = 0; l < W; l++) v[l] = (T)s.at[l];
	} else {
#pragma unroll
		for (int l = 0; l < W; l++) v[l] = l < n ? (T)p[l * step] : T();
	}
}

template <class S> static __device__ inline void slp_some_store(S *p, int64_t n, bool at_once, const slp_some<S> &s)
{
	constexpr int W = slp_some_count<S>;
	if (at_once && n >= W) {
		*(slp_some<S> *)p = s;
	} else {
#pragma unroll
		for (int l = 0; l < W; l++)
			if (l < n) p[l] = s.at[l];
	}
}

/* Blocks for n elements; the first element of thread `i` of the grid is i * slp_some_count<S>. */
template <class S> static inline unsigned slp_some_grid(int64_t n)
{
	return slp_grid((n + slp_some_count<S> - 1) / slp_some_count<S>);
}

#define SLP_SOME_STRIDE(S, i, n)                                                                                       \
	for (int64_t i = (blockIdx.x * (int64_t)blockDim.x + threadIdx.x) * slp_some_count<S>; i < (n);                \
	     i += (int64_t)gridDim.x * blockDim.x * slp_some_count<S>)

#endif
