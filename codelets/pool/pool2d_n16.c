/* Pooling of images in the layout N16: 16 images at once, so that every window is reduced by whole vectors.  If x or y is
 * plain, its planes are copied into N16, or back, one at a time. */
#include "common/lanes.h"
#include "common/workspace.h"
#include "op_list/pool.h"
#include "pool2d.h"

enum { LANES = SLP_N16_IMAGES };

typedef int32_t int16s __attribute__((vector_size(64)));

/* Planes of 16 images of one channel, all in N16; NULL: the operation has no such operand. */
struct planes {
	const float *x, *dy;
	float *y, *dx;
	const float *relu; /* NULL, or x */
};

typedef void planes_fn(const struct slp_pool *p, const struct planes *u);

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

SLP_INLINE void load(const float *plane, int64_t at, slp_v16 *v)
{
	memcpy(v, plane + at * LANES, sizeof *v);
}

SLP_INLINE void store(float *plane, int64_t at, const slp_v16 *v)
{
	memcpy(plane + at * LANES, v, sizeof *v);
}

#define BEATS(b, a) (((b) > (a)) | (((b) != (b)) & ((a) == (a))))
#define PICK(mask, a, b) (((int16s)(a) & (mask)) | ((int16s)(b) & ~(mask)))

/* The gradient vanishes where x, the result of a relu, is not positive. */
SLP_INLINE void through_relu(const struct planes *u, int64_t at, slp_v16 *d)
{
	slp_v16 x;
	if (!u->relu) return;
	load(u->relu, at, &x);
	*d = (slp_v16)((int16s)*d & ~(x <= 0));
}

/* Constants describe windows of 2 × 2 side by side, without a border. */
SLP_INLINE struct slp_window window_of(const struct slp_pool *p, int64_t i, int64_t j, const bool two)
{
	return two ? (struct slp_window){2 * i, 2 * i + 2, 2 * j, 2 * j + 2, 4} : slp_pool_window(p, i, j);
}

static bool is_two(const struct slp_pool *p)
{
	return p->kh == 2 && p->kw == 2 && p->sh == 2 && p->sw == 2 && p->ph == 0 && p->pw == 0 && 2 * p->oh <= p->ih &&
	       2 * p->ow <= p->iw;
}

SLP_INLINE void max_windows(const struct slp_pool *p, const struct planes *u, const bool two)
{
	slp_v16 best, v;
	for (int64_t i = 0; i < p->oh; i++)
		for (int64_t j = 0; j < p->ow; j++) {
			struct slp_window r = window_of(p, i, j, two);
			load(u->x, r.h0 * p->iw + r.w0, &best);
			for (int64_t h = r.h0; h < r.h1; h++)
				for (int64_t w = r.w0; w < r.w1; w++) {
					load(u->x, h * p->iw + w, &v);
					best = (slp_v16)PICK(BEATS(v, best), v, best);
				}
			store(u->y, i * p->ow + j, &best);
		}
}

SLP_INLINE void avg_windows(const struct slp_pool *p, const struct planes *u, const bool two)
{
	for (int64_t i = 0; i < p->oh; i++)
		for (int64_t j = 0; j < p->ow; j++) {
			struct slp_window r = window_of(p, i, j, two);
			slp_v16 sum = {0}, v;
			for (int64_t h = r.h0; h < r.h1; h++)
				for (int64_t w = r.w0; w < r.w1; w++) {
					load(u->x, h * p->iw + w, &v);
					sum += v;
				}
			sum /= (float)r.count;
			store(u->y, i * p->ow + j, &sum);
		}
}

/* Windows that do not overlap store each element once; others add. */
SLP_INLINE void give(const struct planes *u, int64_t at, const slp_v16 *d, const bool disjoint)
{
	slp_v16 sum = *d, old;
	if (disjoint) {
		through_relu(u, at, &sum);
	} else {
		load(u->dx, at, &old);
		sum += old;
	}
	store(u->dx, at, &sum);
}

SLP_INLINE void max_back(const struct slp_pool *p, const struct planes *u, const bool two, const bool disjoint)
{
	slp_v16 best, dy, v;
	for (int64_t i = 0; i < p->oh; i++)
		for (int64_t j = 0; j < p->ow; j++) {
			struct slp_window r = window_of(p, i, j, two);
			int16s where = (int16s){0} + (int32_t)(r.h0 * p->iw + r.w0);
			load(u->x, r.h0 * p->iw + r.w0, &best);
			load(u->dy, i * p->ow + j, &dy);
			for (int64_t h = r.h0; h < r.h1; h++)
				for (int64_t w = r.w0; w < r.w1; w++) {
					load(u->x, h * p->iw + w, &v);
					int16s beats = BEATS(v, best);
					best = (slp_v16)PICK(beats, v, best);
					where = PICK(beats, (int16s){0} + (int32_t)(h * p->iw + w), where);
				}
			for (int64_t h = r.h0; h < r.h1; h++)
				for (int64_t w = r.w0; w < r.w1; w++) {
					v = (slp_v16)((int16s)dy & (where == (int32_t)(h * p->iw + w)));
					give(u, h * p->iw + w, &v, disjoint);
				}
		}
}

SLP_INLINE void avg_back(const struct slp_pool *p, const struct planes *u, const bool two, const bool disjoint)
{
	slp_v16 share;
	for (int64_t i = 0; i < p->oh; i++)
		for (int64_t j = 0; j < p->ow; j++) {
			struct slp_window r = window_of(p, i, j, two);
			load(u->dy, i * p->ow + j, &share);
			share /= (float)r.count;
			for (int64_t h = r.h0; h < r.h1; h++)
				for (int64_t w = r.w0; w < r.w1; w++) give(u, h * p->iw + w, &share, disjoint);
		}
}

SLP_INLINE void mask_plane(const struct planes *u, int64_t size)
{
	slp_v16 d;
	for (int64_t at = 0; u->relu && at < size; at++) {
		load(u->dx, at, &d);
		through_relu(u, at, &d);
		store(u->dx, at, &d);
	}
}

/* Whether every element of x is under exactly one window. */
static bool tiles_plane(const struct slp_pool *p)
{
	return p->kh == p->sh && p->kw == p->sw && p->ph == 0 && p->pw == 0 && p->oh * p->kh == p->ih &&
	       p->ow * p->kw == p->iw;
}

/* The copy of the sizes is in registers, so no store can change it. */
/* clang-format off */
#define X(name)                                                                                                        \
	SLP_CLONES static void name##_forward(const struct slp_pool *sizes, const struct planes *u)                    \
	{                                                                                                              \
		const struct slp_pool p = *sizes;                                                                      \
		const struct planes v = *u;                                                                            \
		if (is_two(&p))                                                                                        \
			name##_windows(&p, &v, true);                                                                  \
		else                                                                                                   \
			name##_windows(&p, &v, false);                                                                 \
	}                                                                                                              \
	SLP_CLONES static void name##_backward(const struct slp_pool *sizes, const struct planes *u)                   \
	{                                                                                                              \
		const struct slp_pool p = *sizes;                                                                      \
		const struct planes v = *u;                                                                            \
		if (!tiles_plane(&p)) memset(v.dx, 0, sizeof *v.dx *(size_t)(p.ih * p.iw * LANES));                    \
		if (is_two(&p)) {                                                                                      \
			name##_back(&p, &v, true, true);                                                               \
		} else if (p.kh <= p.sh && p.kw <= p.sw) {                                                             \
			name##_back(&p, &v, false, true);                                                              \
		} else {                                                                                               \
			name##_back(&p, &v, false, false);                                                             \
			mask_plane(&v, p.ih *p.iw);                                                                    \
		}                                                                                                      \
	}
/* clang-format on */
X(max)
X(avg)
#undef X

/* ---- planes ----------------------------------------------------------------------------------------------------- */

struct job {
	struct slp_pool p;
	const float *x, *dy;
	float *y, *dx;
	bool relu, no_memory;
	planes_fn *run;
};

/* The first element of a channel of a group of images. */
static int64_t start(const struct slp_pool *p, int layout, int64_t unit, int64_t size)
{
	int64_t group = unit / p->channels, channel = unit % p->channels;
	return slp_layout_index(layout, p->channels, size, group * LANES, channel, 0);
}

/* The planes of an input in N16: in its own memory, or copied to `buffer`. */
static const float *fetch(const struct slp_pool *p, const float *from, int layout, int64_t unit, int64_t size,
                          float *buffer)
{
	if (!from) return NULL;
	from += start(p, layout, unit, size);
	if (layout == SLP_LAYOUT_N16) return from;
	slp_lanes_gather(from, p->channels * size, LANES, size, buffer, LANES);
	return buffer;
}

static void put_back(const struct slp_pool *p, const float *buffer, float *to, int64_t unit, int64_t size)
{
	slp_lanes_scatter(buffer, LANES, LANES, size, to + start(p, SLP_LAYOUT_PLAIN, unit, size), p->channels * size);
}

/* Units are (group of images, channel); `buffer` holds the planes of x, of y and of dx. */
static void run_unit(const struct job *j, int64_t unit, float *buffer)
{
	const struct slp_pool *p = &j->p;
	int64_t x = p->ih * p->iw, y = p->oh * p->ow;
	bool x_n16 = p->x_layout == SLP_LAYOUT_N16, y_n16 = p->y_layout == SLP_LAYOUT_N16;
	float *for_y = buffer + x * LANES, *for_dx = for_y + y * LANES;
	struct planes u = {.x = fetch(p, j->x, p->x_layout, unit, x, buffer),
	                   .dy = fetch(p, j->dy, p->y_layout, unit, y, for_y)};
	if (j->y) u.y = y_n16 ? j->y + start(p, SLP_LAYOUT_N16, unit, y) : for_y;
	if (j->dx) u.dx = x_n16 ? j->dx + start(p, SLP_LAYOUT_N16, unit, x) : for_dx;
	if (j->relu) u.relu = u.x;
	j->run(p, &u);
	if (j->y && !y_n16) put_back(p, u.y, j->y, unit, y);
	if (j->dx && !x_n16) put_back(p, u.dx, j->dx, unit, x);
}

static void run_units(void *arg, int64_t begin, int64_t end)
{
	struct job *j = arg;
	int64_t x = j->p.ih * j->p.iw, y = j->p.oh * j->p.ow;
	float *buffer = slp_workspace(SLP_WORK_THREAD, sizeof *buffer * (size_t)((2 * x + y) * LANES));
	if (!buffer) j->no_memory = true;
	for (int64_t unit = begin; buffer && unit < end; unit++) run_unit(j, unit, buffer);
}

enum sl_status slp_pool2d_n16(const struct slp_kernel *k)
{
	bool max = k->op == &slp_op_max_pool2d || k->op == &slp_op_max_pool2d_grad, back = slp_pool_is_back(k);
	struct job j = {.p = slp_pool_of(k), .relu = slp_pool_has_relu(k)};
	j.run = max ? (back ? max_backward : max_forward) : back ? avg_backward : avg_forward;
	if (!back || max || j.relu) j.x = k->in[0].ptr;
	if (back) j.dy = k->in[k->nin - 1].ptr;
	*(back ? &j.dx : &j.y) = k->out[0].ptr;
	slp_parallel_for(j.p.planes / LANES, 1 + SLP_GRAIN / (j.p.ih * j.p.iw * LANES + 1), run_units, &j);
	return j.no_memory ? slp_kernel_fail(k, SL_ENOMEM, "no memory for planes in lanes") : SL_OK;
}
