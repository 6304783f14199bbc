/* Matrix products in plain C, included once per element type by gemm.c with T and PLAIN(name) defined.
 *
 * A tile of C, ROWS × COLS, stays in registers while a packed panel of op(B) runs by; elements of A are read where they
 * are. Sums over k have a fixed order, so results do not depend on the division of C among threads. */

enum {
	PLAIN(WIDTH) = 64 / sizeof(T), /* of a vector */
	PLAIN(COLS) = 2 * PLAIN(WIDTH),
	PLAIN(ROWS) = 4,
	PLAIN(DEPTH) = 256,             /* of a panel: 32 KiB, about a first-level cache */
	PLAIN(TALL) = 256,              /* rows that share a panel */
	PLAIN(SPAN) = 8 * PLAIN(WIDTH), /* elements of a matrix-vector product made at once */
};

typedef T PLAIN(vector) __attribute__((vector_size(64)));

struct PLAIN(product) {
	int64_t m, n, k;
	T alpha, beta;
	const T *a, *b;
	int64_t am, ak, bk, bn; /* steps of op(A) and op(B) along each axis */
	T *c;
	int64_t ldc;
};

SLP_INLINE void PLAIN(put)(const struct PLAIN(product) * p, T *c, T sum, T beta)
{
	*c = beta == 0 ? p->alpha * sum : p->alpha * sum + beta * *c;
}

/* Rows [k0, k1) of columns [j, j + cols) of op(B), padded with zeros. */
SLP_INLINE void PLAIN(pack)(const struct PLAIN(product) * p, T *panel, int64_t k0, int64_t k1, int64_t j, int cols)
{
	for (int64_t k = k0; k < k1; k++, panel += PLAIN(COLS)) {
		const T *b = p->b + k * p->bk + j * p->bn;
		if (p->bn == 1 && cols == PLAIN(COLS)) memcpy(panel, b, sizeof(T) * PLAIN(COLS));
		else
			for (int i = 0; i < PLAIN(COLS); i++) panel[i] = i < cols ? b[i * p->bn] : (T)0;
	}
}

/* sum[rows][COLS] = op(A)[i.., k0..k1) · panel, whose rows lie `step` apart; rows is a constant. */
SLP_INLINE void PLAIN(tile)(const struct PLAIN(product) * p, const T *panel, int64_t step, int64_t i, int64_t k0,
                            int64_t k1, const int rows, T *sum)
{
	PLAIN(vector) acc[PLAIN(ROWS)][2] = {{{0}}};
	const T *a = p->a + i * p->am + k0 * p->ak;
	for (int64_t k = k0; k < k1; k++, a += p->ak, panel += step) {
		PLAIN(vector) b0, b1;
		memcpy(&b0, panel, sizeof b0);
		memcpy(&b1, panel + PLAIN(WIDTH), sizeof b1);
		SLP_UNROLL for (int r = 0; r < rows; r++)
		{
			acc[r][0] += a[r * p->am] * b0;
			acc[r][1] += a[r * p->am] * b1;
		}
	}
	memcpy(sum, acc, sizeof acc);
}

/* Rows [i, i + rows) of a stripe: C = alpha sum + beta C, with beta 1 from the second panel on. */
SLP_INLINE void PLAIN(rows)(const struct PLAIN(product) * p, const T *panel, int64_t step, int64_t i, int64_t k0,
                            int64_t k1, const int rows, int64_t j, int cols)
{
	T sum[PLAIN(ROWS) * PLAIN(COLS)] __attribute__((aligned(64)));
	PLAIN(tile)(p, panel, step, i, k0, k1, rows, sum);
	T beta = k0 ? (T)1 : p->beta;
	for (int r = 0; r < rows; r++) {
		T *c = p->c + (i + r) * p->ldc + j;
		for (int x = 0; x < cols; x++) PLAIN(put)(p, c + x, sum[r * PLAIN(COLS) + x], beta);
	}
}

/* Rows [i0, i1) of columns [j, j + COLS) of C. A panel for only few rows is read in place. */
SLP_CLONES static void PLAIN(stripe)(const struct PLAIN(product) * p, int64_t i0, int64_t i1, int64_t j)
{
	T panel[PLAIN(DEPTH) * PLAIN(COLS)] __attribute__((aligned(64)));
	int cols = p->n - j < PLAIN(COLS) ? (int)(p->n - j) : (int)PLAIN(COLS);
	bool direct = p->bn == 1 && cols == PLAIN(COLS) && p->m <= 2 * PLAIN(ROWS);
	int64_t k0 = 0;
	do { /* once even where k is 0 */
		int64_t k1 = p->k - k0 < PLAIN(DEPTH) ? p->k : k0 + PLAIN(DEPTH), i = i0;
		const T *b = direct ? p->b + k0 * p->bk + j : panel;
		int64_t step = direct ? p->bk : (int64_t)PLAIN(COLS);
		if (!direct) PLAIN(pack)(p, panel, k0, k1, j, cols);
		for (; i + PLAIN(ROWS) <= i1; i += PLAIN(ROWS))
			PLAIN(rows)(p, b, step, i, k0, k1, PLAIN(ROWS), j, cols);
		for (; i < i1; i++) PLAIN(rows)(p, b, step, i, k0, k1, 1, j, cols);
		k0 = k1;
	} while (k0 < p->k);
}

/* ---- one row or one column: y = alpha M x + beta y -------------------------------------------------------------- */

struct PLAIN(gemv) {
	const struct PLAIN(product) * p;
	int64_t n, k, mn, mk, xk, yn; /* sizes of y and x; steps of the matrix along them, of x, of y */
	const T *matrix, *x;
};

SLP_INLINE T PLAIN(dot)(const T *a, const T *x, int64_t n)
{
	enum { PARTS = 4 };
	PLAIN(vector) acc[PARTS] = {{0}}, u, v;
	int64_t i = 0;
	for (; i + PARTS * PLAIN(WIDTH) <= n; i += PARTS * PLAIN(WIDTH)) SLP_UNROLL for (int s = 0; s < PARTS; s++)
		{
			memcpy(&u, a + i + s * PLAIN(WIDTH), sizeof u);
			memcpy(&v, x + i + s * PLAIN(WIDTH), sizeof v);
			acc[s] += u * v;
		}
	acc[0] = (acc[0] + acc[1]) + (acc[2] + acc[3]);
	T sum = 0;
	for (int l = 0; l < PLAIN(WIDTH); l++) sum += acc[0][l];
	for (; i < n; i++) sum += a[i] * x[i];
	return sum;
}

/* y[j, end) with the rows of the matrix along x: a dot product each. */
SLP_CLONES static void PLAIN(gemv_dots)(const struct PLAIN(gemv) * g, int64_t j, int64_t end)
{
	for (; j < end; j++)
		PLAIN(put)(g->p, g->p->c + j * g->yn, PLAIN(dot)(g->matrix + j * g->mn, g->x, g->k), g->p->beta);
}

/* y[j, end) with the rows of the matrix along y: SPAN sums at once. */
SLP_CLONES static void PLAIN(gemv_sums)(const struct PLAIN(gemv) * g, int64_t j, int64_t end)
{
	for (; j < end; j += PLAIN(SPAN)) {
		T sum[PLAIN(SPAN)] = {0};
		int width = end - j < PLAIN(SPAN) ? (int)(end - j) : (int)PLAIN(SPAN);
		const T *row = g->matrix + j * g->mn, *x = g->x;
		if (width == PLAIN(SPAN) && g->mn == 1)
			for (int64_t k = 0; k < g->k; k++, row += g->mk, x += g->xk)
				for (int i = 0; i < PLAIN(SPAN); i++) sum[i] += *x * row[i];
		else
			for (int64_t k = 0; k < g->k; k++, row += g->mk, x += g->xk)
				for (int i = 0; i < width; i++) sum[i] += *x * row[i * g->mn];
		for (int i = 0; i < width; i++) PLAIN(put)(g->p, g->p->c + (j + i) * g->yn, sum[i], g->p->beta);
	}
}

static void PLAIN(gemv_range)(void *arg, int64_t begin, int64_t end)
{
	const struct PLAIN(gemv) *g = arg;
	if (g->mk == 1 && g->xk == 1) PLAIN(gemv_dots)(g, begin, end);
	else PLAIN(gemv_sums)(g, begin, end);
}

static struct PLAIN(gemv) PLAIN(gemv_of)(const struct PLAIN(product) * p)
{
	if (p->n == 1) return (struct PLAIN(gemv)){p, p->m, p->k, p->am, p->ak, p->bk, p->ldc, p->a, p->b};
	return (struct PLAIN(gemv)){p, p->n, p->k, p->bn, p->bk, p->ak, 1, p->b, p->a};
}

/* ---- on one thread, on the team --------------------------------------------------------------------------------- */

static void PLAIN(stripes)(void *arg, int64_t begin, int64_t end)
{
	const struct PLAIN(product) *p = arg;
	int64_t blocks = (p->m + PLAIN(TALL) - 1) / PLAIN(TALL);
	for (int64_t s = begin; s < end; s++) {
		int64_t i = s % blocks * PLAIN(TALL);
		PLAIN(stripe)(p, i, p->m - i < PLAIN(TALL) ? p->m : i + PLAIN(TALL), s / blocks * PLAIN(COLS));
	}
}

static void PLAIN(for)(bool team, int64_t n, int64_t grain, void (*fn)(void *, int64_t, int64_t), void *arg)
{
	if (team) slp_parallel_for(n, grain, fn, arg);
	else fn(arg, 0, n);
}

static void PLAIN(run)(bool team, struct PLAIN(product) p)
{
	if (p.m == 1 || p.n == 1) {
		struct PLAIN(gemv) g = PLAIN(gemv_of)(&p);
		int64_t rows = 8 * SLP_GRAIN / (p.k + 1);
		PLAIN(for)(team, g.n, (rows / PLAIN(SPAN) + 1) * PLAIN(SPAN), PLAIN(gemv_range), &g);
		return;
	}
	int64_t tall = p.m < PLAIN(TALL) ? p.m : (int64_t)PLAIN(TALL), work = tall * p.k * PLAIN(COLS);
	int64_t tiles = (p.m + PLAIN(TALL) - 1) / PLAIN(TALL) * ((p.n + PLAIN(COLS) - 1) / PLAIN(COLS));
	PLAIN(for)(team, tiles, 1 + 16 * SLP_GRAIN / (work + 1), PLAIN(stripes), &p);
}

static struct PLAIN(product) PLAIN(make)(bool ta, bool tb, int64_t m, int64_t n, int64_t kk, T alpha, const T *a,
                                         int64_t lda, const T *b, int64_t ldb, T beta, T *c, int64_t ldc)
{
	return (struct PLAIN(product)){
	        m, n, kk, alpha, beta, a, b, ta ? 1 : lda, ta ? lda : 1, tb ? 1 : ldb, tb ? ldb : 1, c, ldc};
}
