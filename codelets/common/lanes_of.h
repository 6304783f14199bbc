/* The functions of lanes.c for vectors of one length. Included once for each, with WIDTH, the floats of a VECTOR; LIST,
 * which numbers its lanes; TARGET, the instructions; NAME(x), x with the length appended. */

/* r[i] lane j becomes r[j] lane i. */
SLP_INLINE void NAME(transpose)(VECTOR r[WIDTH])
{
	STAGE(r, 1);
	STAGE(r, 2);
	STAGE(r, 4);
#if WIDTH == 16
	STAGE(r, 8);
#endif
}

/* Lane i of r[0] becomes the sum of the lanes of r[i]; r is overwritten. */
SLP_INLINE void NAME(fold)(VECTOR r[WIDTH])
{
#if WIDTH == 16
	FOLD(r, 8);
#endif
	FOLD(r, 4);
	FOLD(r, 2);
	FOLD(r, 1);
}

TARGET static void NAME(gather)(const float *from, int64_t stride, int live, int64_t count, float *to, int64_t step)
{
	for (int64_t p = 0; count >= WIDTH && p < count; p += WIDTH) {
		if (p > count - WIDTH) p = count - WIDTH;
		for (int lane = 0; lane < LANES; lane += WIDTH) {
			VECTOR r[WIDTH];
			SLP_UNROLL for (int l = 0; l < WIDTH; l++)
			{
				r[l] = (VECTOR){0};
				if (lane + l < live) memcpy(&r[l], from + (lane + l) * stride + p, sizeof r[l]);
			}
			NAME(transpose)(r);
			SLP_UNROLL for (int i = 0; i < WIDTH; i++)
			        memcpy(to + (p + i) * step + lane, &r[i], sizeof r[i]);
		}
	}
	if (count < WIDTH) gather(from, stride, live, count, to, step);
}

TARGET static void NAME(scatter)(const float *from, int64_t step, int live, int64_t count, float *to, int64_t stride)
{
	for (int64_t p = 0; count >= WIDTH && p < count; p += WIDTH) {
		if (p > count - WIDTH) p = count - WIDTH;
		for (int lane = 0; lane < LANES; lane += WIDTH) {
			VECTOR r[WIDTH];
			SLP_UNROLL for (int i = 0; i < WIDTH; i++)
			        memcpy(&r[i], from + (p + i) * step + lane, sizeof r[i]);
			NAME(transpose)(r);
			SLP_UNROLL for (int l = 0; l < WIDTH; l++)
			{
				if (lane + l < live) memcpy(to + (lane + l) * stride + p, &r[l], sizeof r[l]);
			}
		}
	}
	if (count < WIDTH) scatter(from, step, live, count, to, stride);
}

/* The first additions, if sixteen lanes are two vectors. */
SLP_INLINE void NAME(load)(const float *from, VECTOR *v)
{
	VECTOR more;
	memcpy(v, from, sizeof *v);
	for (int lane = WIDTH; lane < LANES; lane += WIDTH) {
		memcpy(&more, from + lane, sizeof more);
		*v += more;
	}
}

TARGET static void NAME(sum)(const float *vectors, int64_t count, float *to)
{
	for (int64_t i = 0; i < count; i += WIDTH) {
		int64_t here = count - i < WIDTH ? count - i : WIDTH;
		VECTOR r[WIDTH];
		SLP_UNROLL for (int l = 0; l < WIDTH; l++)
		{
			r[l] = (VECTOR){0};
			if (l < here) NAME(load)(vectors + (i + l) * LANES, &r[l]);
		}
		NAME(fold)(r);
		memcpy(to + i, &r[0], sizeof *to * (size_t)here);
	}
}

static const struct moves NAME(moves) = {NAME(gather), NAME(scatter), NAME(sum)};

#undef WIDTH
#undef VECTOR
#undef LIST
#undef TARGET
#undef NAME
