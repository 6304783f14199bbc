/* Products with a packed matrix: a tile of C stays in registers while a panel of B, 16 columns wide, runs by. */
#include "op.h"
#include "panels.h"

#include "simd.h"

enum { WIDE = 16, DEEP = 256 }; /* DEEP rows of a panel are half a first-level cache */

int64_t slp_panels_size(int64_t k, int64_t n)
{
	return (n + WIDE - 1) / WIDE * WIDE * k;
}

/* ---- packing ----------------------------------------------------------------------------------------------------- */

struct packing {
	float *panels;
	const float *b;
	int64_t k, n, bk, bn;
};

static void pack_range(void *arg, int64_t begin, int64_t end)
{
	const struct packing *p = arg;
	for (int64_t panel = begin; panel < end; panel++) {
		float *to = p->panels + panel * WIDE * p->k;
		const float *from = p->b + panel * WIDE * p->bn;
		int64_t cols = p->n - panel * WIDE < WIDE ? p->n - panel * WIDE : (int64_t)WIDE;
		for (int64_t i = 0; i < p->k; i++, to += WIDE)
			for (int64_t j = 0; j < WIDE; j++) to[j] = j < cols ? from[i * p->bk + j * p->bn] : 0;
	}
}

void slp_panels_pack(float *panels, const float *b, int64_t k, int64_t n, int64_t bk, int64_t bn)
{
	struct packing p = {.panels = panels, .b = b, .k = k, .n = n, .bk = bk, .bn = bn};
	slp_parallel_for((n + WIDE - 1) / WIDE, 1 + SLP_GRAIN / (k * WIDE + 1), pack_range, &p);
}

/* ---- multiplying ------------------------------------------------------------------------------------------------- */

struct tile {
	const float *a, *panel;
	float *c;
	int64_t lda, ldc, depth;
};

typedef float half __attribute__((vector_size(32)));

/* c[rows][WIDE] += a·panel; rows is a constant, and `vector` what the processor has.  Vectors are copied one by one:
 * then they are registers. */
/* clang-format off */
#define TILE(vector, name)                                                                                             \
	SLP_INLINE void name(const struct tile *t, const int rows)                                                     \
	{                                                                                                              \
		enum { LANES = sizeof(vector) / sizeof(float), VECTORS = WIDE / LANES };                               \
		vector sum[8][VECTORS], b[VECTORS];                                                                    \
		SLP_UNROLL for (int r = 0; r < rows; r++)                                                              \
			SLP_UNROLL for (int v = 0; v < VECTORS; v++)                                                   \
				memcpy(&sum[r][v], t->c + r * t->ldc + v * LANES, sizeof(vector));                     \
		for (int64_t k = 0; k < t->depth; k++) {                                                               \
			SLP_UNROLL for (int v = 0; v < VECTORS; v++)                                                   \
				memcpy(&b[v], t->panel + k * WIDE + v * LANES, sizeof(vector));                        \
			SLP_UNROLL for (int r = 0; r < rows; r++)                                                      \
				SLP_UNROLL for (int v = 0; v < VECTORS; v++) sum[r][v] += t->a[r * t->lda + k] * b[v]; \
		}                                                                                                      \
		SLP_UNROLL for (int r = 0; r < rows; r++)                                                              \
			SLP_UNROLL for (int v = 0; v < VECTORS; v++)                                                   \
				memcpy(t->c + r * t->ldc + v * LANES, &sum[r][v], sizeof(vector));                     \
	}
/* clang-format on */
TILE(slp_v16, wide_tile)
TILE(half, half_tile)

/* The most rows of a tile: as many as fit in registers. */
enum { WIDE_ROWS = 8, HALF_ROWS = 6 };

#define ROWS(name, n)                                                                                                  \
	case n: name(t, n); break;

SLP_AVX512 static void wide_rows(const struct tile *t, int64_t rows)
{
	switch (rows) {
		ROWS(wide_tile, 1)
		ROWS(wide_tile, 2)
		ROWS(wide_tile, 3)
		ROWS(wide_tile, 4) ROWS(wide_tile, 5) ROWS(wide_tile, 6) ROWS(wide_tile, 7) ROWS(wide_tile, 8)
	}
}

SLP_CLONES static void half_rows(const struct tile *t, int64_t rows)
{
	switch (rows) {
		ROWS(half_tile, 1)
		ROWS(half_tile, 2) ROWS(half_tile, 3) ROWS(half_tile, 4) ROWS(half_tile, 5) ROWS(half_tile, 6)
	}
}

/* A tile at the right edge of C, computed through one of full width. */
static void edge(void (*rows_of)(const struct tile *, int64_t), struct tile t, int64_t rows, int64_t cols)
{
	float full[WIDE_ROWS * WIDE] = {0}, *c = t.c;
	int64_t ldc = t.ldc;
	for (int64_t r = 0; r < rows; r++) memcpy(full + r * WIDE, c + r * ldc, (size_t)cols * sizeof *c);
	t.c = full;
	t.ldc = WIDE;
	rows_of(&t, rows);
	for (int64_t r = 0; r < rows; r++) memcpy(c + r * ldc, full + r * WIDE, (size_t)cols * sizeof *c);
}

void slp_panels_multiply(const float *panels, int64_t rows, int64_t k, int64_t n, const float *a, int64_t lda, float *c,
                         int64_t ldc)
{
	bool wide = slp_has_avx512();
	void (*rows_of)(const struct tile *, int64_t) = wide ? wide_rows : half_rows;
	int64_t most = wide ? WIDE_ROWS : HALF_ROWS, tiles = (rows + most - 1) / most;
	for (int64_t from = 0; from < k; from += DEEP)
		for (int64_t j = 0; j < n; j += WIDE)
			for (int64_t i = 0; i < tiles; i++) { /* of about equal size */
				int64_t row = i * rows / tiles, count = (i + 1) * rows / tiles - row;
				struct tile t = {.a = a + row * lda + from,
				                 .panel = panels + j * k + from * WIDE,
				                 .c = c + row * ldc + j,
				                 .lda = lda,
				                 .ldc = ldc,
				                 .depth = k - from < DEEP ? k - from : (int64_t)DEEP};
				if (n - j < WIDE) edge(rows_of, t, count, n - j);
				else rows_of(&t, count);
			}
}

/* ---- on the team ------------------------------------------------------------------------------------------------- */

struct product {
	const float *panels, *a;
	float *c;
	int64_t rows, k, n, lda, ldc;
};

static void multiply_panels(void *arg, int64_t begin, int64_t end)
{
	const struct product *p = arg;
	int64_t first = begin * WIDE, cols = (end * WIDE < p->n ? end * WIDE : p->n) - first;
	slp_panels_multiply(p->panels + first * p->k, p->rows, p->k, cols, p->a, p->lda, p->c + first, p->ldc);
}

void slp_panels_multiply_together(const float *panels, int64_t rows, int64_t k, int64_t n, const float *a, int64_t lda,
                                  float *c, int64_t ldc)
{
	struct product p = {panels, a, c, rows, k, n, lda, ldc};
	slp_parallel_for((n + WIDE - 1) / WIDE, 1 + SLP_GRAIN / 4 / (rows * k * WIDE + 1), multiply_panels, &p);
}
