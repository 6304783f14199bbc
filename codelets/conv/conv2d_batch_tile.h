/* The innermost loops of conv2d_batch.c for one length of vectors. Included there once for each, with WIDTH, the floats
 * of a VECTOR; BITS, that many bits; TARGET, the instructions; TILES(X), the numbers of output channels at once;
 * NAME(x), x with the length appended. */

typedef int32_t NAME(ints) __attribute__((vector_size(4 * WIDTH)));
#define INTS NAME(ints)

#include "starling/options.h"

SLP_INLINE void NAME(relu)(VECTOR *v)
{
	*v = (VECTOR)((INTS)*v & ~(*v < 0));
}

/* The sums so far of one output position, of earlier blocks of input channels. */
SLP_INLINE void NAME(resume)(const int tile, const struct unit *u, const float *to, VECTOR acc[TILE][2])
{
	SLP_UNROLL for (int o = 0; o < tile; o++)
	{
		if (o < u->channels) memcpy(&acc[o][0], to + o * u->step, sizeof acc[o][0]);
		if (o < u->channels && u->has_second)
			memcpy(&acc[o][1], to + u->to_second + o * u->step, sizeof acc[o][1]);
	}
}

/* One output position of `tile` channels, a constant. */
SLP_INLINE void NAME(multiply)(const struct pass *p, const int tile, const struct unit *u, int64_t position, float *to)
{
	VECTOR acc[TILE][2];
	const struct tap *begin = p->taps + p->first[position], *end = p->taps + p->first[position + 1];
	const float *in = u->in, *w = u->w;
	const int64_t second = u->in_second;
	SLP_UNROLL for (int o = 0; o < tile; o++) acc[o][0] = acc[o][1] = (VECTOR){0} + u->bias[o];
	if (u->resumes) NAME(resume)(tile, u, to, acc);
	const int64_t count = end - begin, in_step = p->in_plane * LANES, w_step = p->kernel * tile;
	int64_t t = 0;
	for (int64_t left = u->nin * count; left > 0; left--) {
		const float *x = in + begin[t].in * (int64_t)LANES, *e = w + begin[t].w * (int64_t)tile;
		VECTOR x0, x1;
		memcpy(&x0, x, sizeof x0);
		memcpy(&x1, x + second, sizeof x1);
		SLP_UNROLL for (int o = 0; o < tile; o++)
		{
			acc[o][0] += e[o] * x0;
			acc[o][1] += e[o] * x1;
		}
		/* Moves to the next channel without a branch: positions differ in their number of taps. */
		const int64_t last = -(int64_t)(++t == count);
		t -= last & count;
		in += last & in_step;
		w += last & w_step;
	}
	if (u->ends && p->activation == SL_RELU)
		SLP_UNROLL for (int o = 0; o < 2 * tile; o++) NAME(relu)(&acc[o / 2][o % 2]);
	SLP_UNROLL for (int o = 0; o < tile; o++)
	{
		if (o < u->channels) memcpy(to + o * u->step, &acc[o][0], sizeof acc[o][0]);
		if (o < u->channels && u->has_second)
			memcpy(to + u->to_second + o * u->step, &acc[o][1], sizeof acc[o][1]);
	}
}

#define FUNCTION(tile) NAME(multiply_##tile)
#define X(tile)                                                                                                        \
	TARGET static void FUNCTION(tile)(const struct pass *p, const struct unit *u, int64_t position, float *to)     \
	{                                                                                                              \
		NAME(multiply)(p, tile, u, position, to);                                                              \
	}
TILES(X)
#undef X

static multiply_fn *const NAME(multiply_by_tile)[] = {NULL,
#define X(tile) FUNCTION(tile),
                                                      TILES(X)
#undef X
};

/* The four elements of a window, two rows of two, and the destinations of its gradient: slp_conv_pool4 by vectors. */
TARGET static void NAME(pool4)(const struct pass *p, const VECTOR *v, VECTOR *y, BITS flow[4])
{
	for (int e = 0; e < 4; e++) flow[e] = p->activation == SL_RELU ? LANES_PASS(v[e]) : (BITS)-1;
	if (p->pool == SLP_CONV_POOL_AVG) {
		*y = ((v[0] + v[1]) + (v[2] + v[3])) * 0.25f;
		return;
	}
	INTS right0 = BEATS(v[1], v[0]), right1 = BEATS(v[3], v[2]);
	VECTOR upper = PICK(right0, v[1], v[0]), lower = PICK(right1, v[3], v[2]);
	INTS below = BEATS(lower, upper);
	unsigned low = LANE_BITS(below), r0 = LANE_BITS(right0), r1 = LANE_BITS(right1);
	*y = PICK(below, lower, upper);
	flow[0] &= (BITS) ~(low | r0);
	flow[1] &= (BITS)(~low & r0);
	flow[2] &= (BITS)(low & ~r1);
	flow[3] &= (BITS)(low & r1);
}

/* The windows of all channels of a tile, whose elements are in the unit `from`; at: the first element's
 * place in its plane. */
TARGET static void NAME(pool_windows)(const struct pass *p, const struct unit *u, const struct unit *from,
                                      int64_t plane, int64_t at, float *to)
{
	const int64_t next = WIDTH == LANES ? 2 * p->nout * p->positions : WIDTH / 8; /* the mask's second vector */
	for (int v = 0; v < 1 + u->has_second; v++)
		for (int o = 0; o < u->channels; o++) {
			uint8_t *mask = p->mask + 2 * ((plane + o) * p->positions + at) + v * next;
			VECTOR element[4], y;
			BITS flow[4];
			SLP_UNROLL for (int e = 0; e < 4; e++) memcpy(
			        &element[e], from->to + v * from->to_second + o * from->step + e * LANES, sizeof y);
			NAME(pool4)(p, element, &y, flow);
			memcpy(to + v * u->to_second + o * u->step, &y, sizeof y);
			for (int e = 0; e < 4; e++)
				memcpy(mask + 2 * (e / 2 * p->width + e % 2), &flow[e], sizeof flow[e]);
		}
}

#undef WIDTH
#undef VECTOR
#undef BITS
#undef TARGET
#undef NAME
#undef TILES
#undef LANE_BITS
#undef LANES_PASS
#undef FUNCTION
#undef INTS
