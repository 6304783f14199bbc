/* Copies from a strided tensor on a CPU team: runs, or 16 by 16 tiles where two axes are swapped. */
#include "op.h"
#include "strided.h"

enum sl_status slp_strided_ref(const struct slp_kernel *k, const struct slp_strided *p)
{
	int64_t n = slp_size(&k->out[0]);
	for (int64_t i = 0; i < n; i++) {
		int64_t from = p->base, rest = i;
		for (int a = p->ndim - 1; a >= 0; a--) {
			from += rest % p->dim[a] * p->stride[a];
			rest /= p->dim[a];
		}
		slp_set(&k->out[0], i, slp_get(&k->in[0], from));
	}
	return SL_OK;
}

/* A position in the outer axes of p, its element in the source and, with out_stride, in the result. */
struct cursor {
	int64_t index[SL_MAX_NDIM], in, out;
};

static struct cursor cursor_at(const struct slp_strided *p, int naxes, const int64_t *out_stride, int64_t i)
{
	struct cursor c = {{0}, p->base, 0};
	for (int a = naxes - 1; a >= 0; a--) {
		c.index[a] = i % p->dim[a];
		i /= p->dim[a];
		c.in += c.index[a] * p->stride[a];
		if (out_stride) c.out += c.index[a] * out_stride[a];
	}
	return c;
}

/* Steps to the next row without a division. */
static inline void cursor_next(struct cursor *c, const struct slp_strided *p, int naxes)
{
	for (int a = naxes - 1; a >= 0; a--) {
		c->in += p->stride[a];
		if (++c->index[a] < p->dim[a]) return;
		c->in -= p->dim[a] * p->stride[a];
		c->index[a] = 0;
	}
}

struct job {
	const struct slp_strided *p;
	struct slp_tiling t;
	const char *in;
	char *out;
};

/* ---- runs along the last axis ----------------------------------------------------------------------------------- */

/* clang-format off */
#define DEFINE_RUNS(T)                                                                                                 \
	static void strided_run_##T(T *restrict out, const T *restrict in, int64_t n, int64_t stride)                  \
	{                                                                                                              \
		for (int64_t i = 0; i < n; i++) out[i] = in[i * stride];                                               \
	}                                                                                                              \
	static void runs_##T(void *arg, int64_t begin, int64_t end)                                                    \
	{                                                                                                              \
		const struct job *j = arg;                                                                             \
		int last = j->p->ndim - 1;                                                                             \
		int64_t n = j->p->dim[last], step = j->p->stride[last], skip = begin % n;                              \
		struct cursor c = cursor_at(j->p, last, NULL, begin / n);                                              \
		for (int64_t i = begin; i < end; skip = 0) {                                                           \
			int64_t len = n - skip < end - i ? n - skip : end - i;                                         \
			const T *in = (const T *)j->in + c.in + skip * step;                                           \
			T *out = (T *)j->out + i;                                                                      \
			if (step == 1)                                                                                 \
				slp_copy_run((char *)out, (const char *)in, (size_t)len * sizeof(T));                  \
			else                                                                                           \
				strided_run_##T(out, in, len, step);                                                   \
			i += len;                                                                                      \
			cursor_next(&c, j->p, last);                                                                   \
		}                                                                                                      \
	}
/* clang-format on */

/* ---- tiles ------------------------------------------------------------------------------------------------------ */

enum { TILE = 16, PANEL = 128 }; /* a cache line of floats; elements of a panel's side */

/* Lanes of two vectors, by their numbers. */
#ifdef __clang__
#define INTERLEAVE(T, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define INTERLEAVE(T, a, b, ...) __builtin_shuffle(a, b, (lanes_##T){__VA_ARGS__})
#endif

/* Transposes a square of as many rows as a vector has lanes: to interleave row i with row i + lanes / 2, for all i,
 * rotates the bits of (row, lane) by one; after log2(lanes) times row and lane have changed places. */
#define DEFINE_SQUARE(T, LANES, STAGES, LOW, HIGH)                                                                     \
	typedef T lanes_##T __attribute__((vector_size(LANES * sizeof(T))));                                           \
	static inline __attribute__((always_inline)) void square_##T(T *restrict out, int64_t out_b,                   \
	                                                             const T *restrict in, int64_t in_a)               \
	{                                                                                                              \
		lanes_##T row[LANES], next[LANES];                                                                     \
		for (int i = 0; i < LANES; i++) memcpy(&row[i], in + i * in_a, sizeof row[i]);                         \
		for (int stage = 0; stage < STAGES; stage++) {                                                         \
			for (int i = 0; i < LANES / 2; i++) {                                                          \
				next[2 * i] = INTERLEAVE(T, row[i], row[i + LANES / 2], LOW);                          \
				next[2 * i + 1] = INTERLEAVE(T, row[i], row[i + LANES / 2], HIGH);                     \
			}                                                                                              \
			for (int i = 0; i < LANES; i++) row[i] = next[i];                                              \
		}                                                                                                      \
		for (int i = 0; i < LANES; i++) memcpy(out + i * out_b, &row[i], sizeof row[i]);                       \
	}                                                                                                              \
	static inline __attribute__((always_inline)) void tile_##T(T *restrict out, int64_t out_b,                     \
	                                                           const T *restrict in, int64_t in_a)                 \
	{                                                                                                              \
		T part[TILE][TILE] __attribute__((aligned(64)));                                                       \
		for (int a = 0; a < TILE; a++) memcpy(part[a], in + a * in_a, sizeof part[a]);                         \
		for (int b = 0; b < TILE; b += LANES)                                                                  \
			for (int a = 0; a < TILE; a += LANES)                                                          \
				square_##T(out + b * out_b + a, out_b, &part[a][b], TILE);                             \
	}
#define SPLIT_(...) __VA_ARGS__
DEFINE_SQUARE(uint8_t, 16, 4, SPLIT_(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
              SPLIT_(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31))
DEFINE_SQUARE(uint16_t, 16, 4, SPLIT_(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
              SPLIT_(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31))
DEFINE_SQUARE(uint32_t, 8, 3, SPLIT_(0, 8, 1, 9, 2, 10, 3, 11), SPLIT_(4, 12, 5, 13, 6, 14, 7, 15))
DEFINE_SQUARE(uint64_t, 4, 2, SPLIT_(0, 4, 1, 5), SPLIT_(2, 6, 3, 7))

#define DEFINE_TILES(T)                                                                                                \
	static void edge_##T(T *restrict out, int64_t out_b, const T *restrict in, int64_t in_a, int64_t na,           \
	                     int64_t nb)                                                                               \
	{                                                                                                              \
		for (int64_t b = 0; b < nb; b++)                                                                       \
			for (int64_t a = 0; a < na; a++) out[b * out_b + a] = in[a * in_a + b];                        \
	}                                                                                                              \
	static SLP_CLONES void panel_##T(T *restrict out, int64_t out_b, const T *restrict in, int64_t in_a,           \
	                                 int64_t na, int64_t nb)                                                       \
	{                                                                                                              \
		int64_t fa = na / TILE * TILE, fb = nb / TILE * TILE;                                                  \
		for (int64_t b = 0; b < fb; b += TILE)                                                                 \
			for (int64_t a = 0; a < fa; a += TILE)                                                         \
				tile_##T(out + b * out_b + a, out_b, in + a * in_a + b, in_a);                         \
		edge_##T(out + fa, out_b, in + fa * in_a, in_a, na - fa, nb);                                          \
		edge_##T(out + fb * out_b, out_b, in + fb, in_a, fa, nb - fb);                                         \
	}                                                                                                              \
	static void tiles_##T(void *arg, int64_t begin, int64_t end)                                                   \
	{                                                                                                              \
		const struct job *j = arg;                                                                             \
		const struct slp_tiling *t = &j->t;                                                                    \
		int64_t pa = panels(t->na), pb = panels(t->nb);                                                        \
		for (int64_t i = begin; i < end; i++) {                                                                \
			struct cursor c = cursor_at(&t->outer, t->outer.ndim, t->out_stride, i / (pa * pb));           \
			int64_t a = i % pa * PANEL, b = i / pa % pb * PANEL;                                           \
			panel_##T((T *)j->out + c.out + b * t->out_b + a, t->out_b,                                    \
			          (const T *)j->in + c.in + a * t->in_a + b, t->in_a,                                  \
			          t->na - a < PANEL ? t->na - a : PANEL, t->nb - b < PANEL ? t->nb - b : PANEL);       \
		}                                                                                                      \
	}

static int64_t panels(int64_t n)
{
	return (n + PANEL - 1) / PANEL;
}

#define DEFINE(T) DEFINE_RUNS(T) DEFINE_TILES(T)
SLP_SIZES(DEFINE)

/* ---- choice ----------------------------------------------------------------------------------------------------- */

enum sl_status slp_strided_cpu(const struct slp_kernel *k, const struct slp_strided *p)
{
	struct slp_strided whole = *p;
	int64_t n = slp_size(&k->out[0]);
	size_t size = sl_dtype_size(k->out[0].type.dtype);
	int axis = slp_strided_tile_axis(p);
	if (n == 0) return SL_OK;
	if (whole.ndim == 0) whole.ndim = whole.dim[0] = whole.stride[0] = 1;
	struct job j = {.p = &whole, .in = k->in[0].ptr, .out = k->out[0].ptr};
	if (axis < 0) {
		slp_parallel_for(n, SLP_GRAIN, SLP_BY_SIZE(size, runs), &j);
		return SL_OK;
	}
	j.t = slp_tiling_of(p, axis);
	int64_t units = j.t.nouter * panels(j.t.na) * panels(j.t.nb), each = n / units;
	slp_parallel_for(units, each < SLP_GRAIN ? SLP_GRAIN / each : 1, SLP_BY_SIZE(size, tiles), &j);
	return SL_OK;
}
