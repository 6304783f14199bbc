/* Conversions between data types on CPUs: from and to float32 and float64 directly, all others by way of float64. */
#include "convert.h"
#include "op.h"

#include "simd.h"
#include "vmath.h"

typedef void convert_fn(const void *in, void *out, int64_t n);

#define CONVERT(name, from, to, store)                                                                                 \
	SLP_CLONES static void name(const void *from_ptr, void *to_ptr, int64_t n)                                     \
	{                                                                                                              \
		const from *in = from_ptr;                                                                             \
		to *out = to_ptr;                                                                                      \
		SLP_INDEPENDENT                                                                                        \
		for (int64_t i = 0; i < n; i++) out[i] = store(slp_load(in[i]));                                       \
	}
#define X(symbol, name, type, ...)                                                                                     \
	CONVERT(symbol##_to_float, type, float, slp_store_SL_FLOAT32)                                                  \
	CONVERT(symbol##_to_double, type, double, slp_store_SL_FLOAT64)                                                \
	CONVERT(symbol##_of_float, float, type, slp_store_##symbol)                                                    \
	CONVERT(symbol##_of_double, double, type, slp_store_##symbol)
SL_DTYPE_LIST(X)
#undef X

static const struct {
	convert_fn *to_float, *to_double, *of_float, *of_double;
} converters[SL_DTYPE_COUNT] = {
#define X(symbol, ...) [symbol] = {symbol##_to_float, symbol##_to_double, symbol##_of_float, symbol##_of_double},
        SL_DTYPE_LIST(X)
#undef X
};

/* In pieces that stay in a first-level cache. */
static void by_double(enum sl_dtype from, const char *in, enum sl_dtype to, char *out, int64_t n)
{
	enum { PIECE = 1024 };
	double piece[PIECE];
	for (int64_t i = 0; i < n; i += PIECE) {
		int64_t m = n - i < PIECE ? n - i : PIECE;
		converters[from].to_double(in + (size_t)i * sl_dtype_size(from), piece, m);
		converters[to].of_double(piece, out + (size_t)i * sl_dtype_size(to), m);
	}
}

/* Between the two types of 64 bits, of which doubles do not hold all numbers. */
static void from_uint64(const uint64_t *in, int64_t *out, int64_t n)
{
	for (int64_t i = 0; i < n; i++) out[i] = in[i] > INT64_MAX ? INT64_MAX : (int64_t)in[i];
}

static void from_int64(const int64_t *in, uint64_t *out, int64_t n)
{
	for (int64_t i = 0; i < n; i++) out[i] = in[i] > 0 ? (uint64_t)in[i] : 0;
}

void slp_convert(enum sl_dtype from, const void *in, enum sl_dtype to, void *out, int64_t n)
{
	if (from == to) memcpy(out, in, (size_t)n * sl_dtype_size(to));
	else if (from == SL_FLOAT32) converters[to].of_float(in, out, n);
	else if (to == SL_FLOAT32) converters[from].to_float(in, out, n);
	else if (from == SL_UINT64 && to == SL_INT64) from_uint64(in, out, n);
	else if (from == SL_INT64 && to == SL_UINT64) from_int64(in, out, n);
	else by_double(from, in, to, out, n);
}

/* The operands of a conversion, for the threads of the team. */
struct work {
	const struct slp_view *from, *to;
};

static void range(void *arg, int64_t begin, int64_t end)
{
	const struct work *w = arg;
	enum sl_dtype from = w->from->type.dtype, to = w->to->type.dtype;
	slp_convert(from, (const char *)w->from->ptr + (size_t)begin * sl_dtype_size(from), to,
	            (char *)w->to->ptr + (size_t)begin * sl_dtype_size(to), end - begin);
}

enum sl_status slp_cpu_convert(const struct slp_kernel *k, const struct slp_view *from, const struct slp_view *to)
{
	struct work w = {from, to};
	(void)k;
	slp_parallel_for(slp_size(to), SLP_GRAIN, range, &w);
	return SL_OK;
}
