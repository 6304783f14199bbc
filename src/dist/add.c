/* Sums of what several processes have: the same elements in the same order as those of shards (slp_tree_sum). */
#include "dist/transport.h"
#include "dtype.h"

#define X(symbol, name, type, kind, compute, ...)                                                                      \
	static void add_##symbol(void *to, const void *from, size_t n)                                                 \
	{                                                                                                              \
		type *restrict a = to;                                                                                 \
		const type *restrict b = from;                                                                         \
		for (size_t i = 0; i < n; i++)                                                                         \
			a[i] = slp_store_##symbol((compute)slp_load(a[i]) + (compute)slp_load(b[i]));                  \
	}                                                                                                              \
	static bool finite_##symbol(const void *data, size_t n)                                                        \
	{                                                                                                              \
		const type *p = data;                                                                                  \
		compute zero = 0; /* what is not finite makes it a NaN */                                              \
		for (size_t i = 0; i < n; i++) zero += (compute)slp_load(p[i]) * 0;                                    \
		return zero == 0;                                                                                      \
	}
SL_DTYPE_LIST(X)
#undef X

static const struct {
	void (*add)(void *to, const void *from, size_t n);
	bool (*finite)(const void *data, size_t n);
} functions[] = {
#define X(symbol, ...) [symbol] = {add_##symbol, finite_##symbol},
        SL_DTYPE_LIST(X)
#undef X
};

void slp_add_tree(void **list, int n, size_t count, enum sl_dtype dtype)
{
	for (int stride = 1; stride < n; stride *= 2)
		for (int i = 0; i + stride < n; i += 2 * stride) functions[dtype].add(list[i], list[i + stride], count);
}

bool slp_all_finite(const void *data, size_t count, enum sl_dtype dtype)
{
	return functions[dtype].finite(data, count);
}
