/* The innermost loops of conv2d_batch_weights.c for one length of vectors. Included there once for each, with WIDTH,
 * the floats of a VECTOR; TARGET, the instructions; VARIANTS(X), the kernels; NAME(x), x with the length appended. */

/* acc[o][v] += dy[o][j] · x[v], where window elements outside the image count as 0 if `edge`. */
SLP_INLINE void NAME(column)(const struct slp_conv *c, const int tile, const int kw, bool edge, const float *x,
                             const float *y, int64_t plane, int64_t j, VECTOR *acc)
{
	VECTOR xv[WIDEST], yv;
	SLP_UNROLL for (int v = 0; v < kw; v++)
	{
		int64_t w = j * c->sw - c->pw + v * c->dw;
		xv[v] = (VECTOR){0};
		if (!edge || (w >= 0 && w < c->iw)) memcpy(&xv[v], x + w * LANES, sizeof xv[v]);
	}
	SLP_UNROLL for (int o = 0; o < tile; o++)
	{
		memcpy(&yv, y + (o * plane + j) * LANES, sizeof yv);
		SLP_UNROLL for (int v = 0; v < kw; v++) acc[o * kw + v] += yv * xv[v];
	}
}

/* Lanes [lane, lane + WIDTH). */
SLP_INLINE void NAME(multiply)(const struct slp_conv *c, const struct strip *s, const int tile, const int kw, int lane)
{
	VECTOR acc[SUMS];
	int64_t j0, j1;
	inner_columns(c, &j0, &j1);
	SLP_UNROLL for (int a = 0; a < tile * kw; a++) memcpy(&acc[a], s->sums + a * LANES + lane, sizeof acc[a]);
	for (int64_t i = s->i; i < s->end; i++) {
		int64_t h = i * c->sh - c->ph + s->u * c->dh;
		if (h < 0 || h >= c->ih) continue;
		const float *x = s->x + h * c->iw * LANES + lane, *y = s->y + (i - s->i) * c->ow * LANES + lane;
		for (int64_t j = 0; j < j0; j++) NAME(column)(c, tile, kw, true, x, y, s->plane, j, acc);
		for (int64_t j = j0; j < j1; j++) NAME(column)(c, tile, kw, false, x, y, s->plane, j, acc);
		for (int64_t j = j1; j < c->ow; j++) NAME(column)(c, tile, kw, true, x, y, s->plane, j, acc);
	}
	SLP_UNROLL for (int a = 0; a < tile * kw; a++) memcpy(s->sums + a * LANES + lane, &acc[a], sizeof acc[a]);
}

#define FUNCTION(kw, tile) NAME(multiply_##kw##_##tile)
#define X(kw, tile)                                                                                                    \
	TARGET static void FUNCTION(kw, tile)(const struct slp_conv *c, const struct strip *s)                         \
	{                                                                                                              \
		for (int lane = 0; lane < LANES; lane += WIDTH) NAME(multiply)(c, s, tile, kw, lane);                  \
	}
VARIANTS(X)
#undef X

static const struct variant NAME(variants)[] = {
#define X(kw, tile) {kw, tile, FUNCTION(kw, tile)},
        VARIANTS(X)
#undef X
                {0},
};

#undef WIDTH
#undef VECTOR
#undef TARGET
#undef NAME
#undef VARIANTS
#undef FUNCTION
