/* Moving images into the lanes of vectors and back, and adding up lanes: with AVX-512, with AVX2, and without. */
#include "lanes.h"

enum { LANES = 16 };

struct moves {
	void (*gather)(const float *from, int64_t stride, int live, int64_t count, float *to, int64_t step);
	void (*scatter)(const float *from, int64_t step, int live, int64_t count, float *to, int64_t stride);
	void (*sum)(const float *vectors, int64_t count, float *to);
};

/* ---- one by one -------------------------------------------------------------------------------------------------- */

static void gather(const float *from, int64_t stride, int live, int64_t count, float *to, int64_t step)
{
	for (int64_t p = 0; p < count; p++)
		for (int l = 0; l < LANES; l++) to[p * step + l] = l < live ? from[l * stride + p] : 0;
}

static void scatter(const float *from, int64_t step, int live, int64_t count, float *to, int64_t stride)
{
	for (int64_t p = 0; p < count; p++)
		for (int l = 0; l < live; l++) to[l * stride + p] = from[p * step + l];
}

/* Adds halves, as vectors do it. */
static void sum(const float *vectors, int64_t count, float *to)
{
	for (int64_t i = 0; i < count; i++) {
		float lanes[LANES];
		memcpy(lanes, vectors + i * LANES, sizeof lanes);
		for (int half = LANES / 2; half; half /= 2)
			for (int l = 0; l < half; l++) lanes[l] += lanes[l + half];
		to[i] = lanes[0];
	}
}

static const struct moves moves = {gather, scatter, sum};

/* ---- by vectors -------------------------------------------------------------------------------------------------- */

/* Exchanges the lanes of a whose number has bit s with the lanes of b whose number lacks it. */
#define EXCHANGE(a, b, s)                                                                                              \
	do {                                                                                                           \
		__typeof__(a) a_ = __builtin_shufflevector(a, b, LIST(FIRST, s));                                      \
		__typeof__(a) b_ = __builtin_shufflevector(a, b, LIST(SECOND, s));                                     \
		(a) = a_;                                                                                              \
		(b) = b_;                                                                                              \
	} while (0)
#define FIRST(j, s) ((j) & (s) ? WIDTH + (j) - (s) : (j))
#define SECOND(j, s) ((j) & (s) ? WIDTH + (j) : (j) + (s))
#define LIST8(lane, s) lane(0, s), lane(1, s), lane(2, s), lane(3, s), lane(4, s), lane(5, s), lane(6, s), lane(7, s)
#define LIST16(lane, s)                                                                                                \
	LIST8(lane, s), lane(8, s), lane(9, s), lane(10, s), lane(11, s), lane(12, s), lane(13, s), lane(14, s),       \
	        lane(15, s)
#define STAGE(r, s) SLP_UNROLL for (int i_ = 0; i_ < WIDTH; i_++) if (!(i_ & (s))) EXCHANGE(r[i_], r[i_ + (s)], s)
#define FOLD(r, s)                                                                                                     \
	SLP_UNROLL for (int i_ = 0; i_ < (s); i_++)                                                                    \
	{                                                                                                              \
		EXCHANGE(r[i_], r[i_ + (s)], s);                                                                       \
		r[i_] += r[i_ + (s)];                                                                                  \
	}

#define WIDTH 16
#define VECTOR slp_v16
#define LIST LIST16
#define TARGET SLP_AVX512
#define NAME(x) x##_16
#include "lanes_of.h"

#define WIDTH 8
#define VECTOR slp_v8
#define LIST LIST8
#define TARGET SLP_AVX2
#define NAME(x) x##_8
#include "lanes_of.h"

/* ---- which ------------------------------------------------------------------------------------------------------- */

static const struct moves *here(void)
{
	return slp_has_avx512() ? &moves_16 : slp_has_avx2() ? &moves_8 : &moves;
}

void slp_lanes_gather(const float *from, int64_t stride, int live, int64_t count, float *to, int64_t step)
{
	here()->gather(from, stride, live, count, to, step);
}

void slp_lanes_scatter(const float *from, int64_t step, int live, int64_t count, float *to, int64_t stride)
{
	here()->scatter(from, step, live, count, to, stride);
}

void slp_lanes_sum(const float *vectors, int64_t count, float *to)
{
	here()->sum(vectors, count, to);
}
