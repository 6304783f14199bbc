/* Batch normalisation on a CPU team.
 *
 * A channel is divided into blocks that fit a first-level cache, whatever the number of threads. Two passes over each
 * block compute two sums (a mean, then deviations from it and their squares, which also correct the mean's rounding
 * error), and the blocks are joined by the formula of T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a
 * pairwise algorithm for computing sample variances", 1982. So x is read once from memory for its statistics.
 *
 * Long planes are processed by channel; short ones (dense layers: one element) by columns of the matrix (n, c * s),
 * several channels at a time. Both have the same steps: reduce, finish, apply. */
#include <math.h>

#include "batch_norm.h"
#include "common/activation.h"
#include "common/simd.h"
#include "op.h"
#include "starling/options.h"

enum {
	SMALL = 1 << 20, /* elements that stay in cache between the steps */
	BLOCK = 4096,    /* elements of a plane block */
	LANES = 32,      /* independent sums: enough to hide the latency of additions */
	SHORT = 256,     /* shorter planes are processed by columns */
	ROWS = 64,       /* rows of a column block, if there are no more than MOST blocks of them */
	MOST = 4096,
	COLUMNS = 512, /* columns of a group, at most */
};

struct work {
	const struct slp_kernel *k;
	struct slp_norm_size size;
	const float *x, *dy, *y; /* dy NULL: forward; y NULL: without the gradient of relu */
	float *out;
	float *center, *k0, *k1, *k2;    /* [channel] */
	double *part;                    /* [channel][block][2] */
	int64_t group, ngroups, nblocks; /* channels of a group */
	bool columns;
	int activation; /* of the result */
	void (*finish)(struct work *w, int64_t channel);
};

/* Planes [n0, n1) from element s0 to s1; or, by columns, rows [n0, n1). */
struct block {
	int64_t n0, n1, s0, s1;
};

static int64_t ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

static int64_t min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t block_rows(struct slp_norm_size z)
{
	if (z.s >= SHORT) return BLOCK / z.s;
	return z.n <= (int64_t)ROWS * MOST ? ROWS : ceil_div(z.n, MOST);
}

static int64_t block_count(struct slp_norm_size z)
{
	return z.s < BLOCK ? ceil_div(z.n, block_rows(z)) : z.n * ceil_div(z.s, BLOCK);
}

static struct block block_at(struct slp_norm_size z, int64_t i)
{
	int64_t rows = block_rows(z);
	if (z.s < BLOCK) return (struct block){i * rows, min((i + 1) * rows, z.n), 0, z.s};
	int64_t cuts = ceil_div(z.s, BLOCK), n = i / cuts, s = i % cuts * BLOCK;
	return (struct block){n, n + 1, s, min(s + BLOCK, z.s)};
}

/* ---- planes ----------------------------------------------------------------------------------------------------- */

SLP_INLINE double lanes_sum(const float a[LANES])
{
	double b[LANES / 2];
	for (int l = 0; l < LANES / 2; l++) b[l] = (double)a[l] + a[l + LANES / 2];
	for (int half = LANES / 4; half; half /= 2)
		for (int l = 0; l < half; l++) b[l] += b[l + half];
	return b[0];
}

/* From the sums of x - near and of its squares: the mean, and the squared deviations from it. */
SLP_INLINE void set_moments(double *part, double count, double near, double rest, double squares)
{
	part[0] = near + rest / count;
	part[1] = squares - rest * rest / count;
}

/* Calls body(l, i) for elements i of a run, in lane l. */
#define BY_LANES(n, body)                                                                                              \
	do {                                                                                                           \
		int64_t i_ = 0;                                                                                        \
		for (; i_ + LANES <= (n); i_ += LANES)                                                                 \
			for (int l = 0; l < LANES; l++) body(l, i_ + l);                                               \
		for (int l = 0; i_ < (n); i_++, l++) body(l, i_);                                                      \
	} while (0)

SLP_INLINE const float *plane(const struct work *w, const float *p, int64_t n, int64_t c)
{
	return p + (n * w->size.c + c) * w->size.s;
}

/* Mean of a block, and the sum of squared deviations from it. */
static SLP_CLONES void stat_planes(const struct work *w, int64_t c, struct block b, double part[2])
{
	int64_t len = b.s1 - b.s0;
	double count = (double)((b.n1 - b.n0) * len);
	float sum[LANES] = {0}, rest[LANES] = {0}, squares[LANES] = {0};
	for (int64_t n = b.n0; n < b.n1; n++) {
		const float *x = plane(w, w->x, n, c) + b.s0;
#define ADD(l, i) sum[l] += x[i]
		BY_LANES(len, ADD);
#undef ADD
	}
	float near = (float)(lanes_sum(sum) / count);
	for (int64_t n = b.n0; n < b.n1; n++) {
		const float *x = plane(w, w->x, n, c) + b.s0;
#define ADD(l, i) rest[l] += x[i] - near, squares[l] += (x[i] - near) * (x[i] - near)
		BY_LANES(len, ADD);
#undef ADD
	}
	set_moments(part, count, near, lanes_sum(rest), lanes_sum(squares));
}

/* Element i of dy, through the gradient of relu if its result y is given; relu is a constant. */
SLP_INLINE float dy_at(const float *dy, const float *y, int64_t i, const bool relu)
{
	float d = dy[i];
	return relu && y[i] <= 0 ? 0 : d;
}

/* Makes name of name_by, whose last argument is then a constant. */
/* clang-format off */
#define BY_RELU(name, parameters, ...)                                                                                 \
	static SLP_CLONES void name parameters                                                                         \
	{                                                                                                              \
		if (w->y)                                                                                              \
			name##_by(__VA_ARGS__, true);                                                                  \
		else                                                                                                   \
			name##_by(__VA_ARGS__, false);                                                                 \
	}
/* clang-format on */

/* Sums of dy and of dy (x - center). */
SLP_INLINE void grad_planes_by(const struct work *w, int64_t c, struct block b, double part[2], const bool relu)
{
	int64_t len = b.s1 - b.s0;
	float sum[LANES] = {0}, products[LANES] = {0}, center = w->center[c];
	for (int64_t n = b.n0; n < b.n1; n++) {
		int64_t at = (n * w->size.c + c) * w->size.s + b.s0;
		const float *x = w->x + at, *dy = w->dy + at, *y = relu ? w->y + at : NULL;
#define ADD(l, i) sum[l] += dy_at(dy, y, i, relu), products[l] += dy_at(dy, y, i, relu) * (x[i] - center)
		BY_LANES(len, ADD);
#undef ADD
	}
	part[0] = lanes_sum(sum);
	part[1] = lanes_sum(products);
}

BY_RELU(grad_planes, (const struct work *w, int64_t c, struct block b, double part[2]), w, c, b, part)

/* n elements of channel c, from element `at` of the tensor on. */
static SLP_CLONES void forward_run(const struct work *w, int64_t c, int64_t at, int64_t n)
{
	enum { HOT = 2048 }; /* elements that the activation finds in cache */
	float center = w->center[c], k1 = w->k1[c], k2 = w->k2[c];
	for (int64_t m; n > 0; n -= m, at += m) {
		const float *restrict x = w->x + at;
		float *restrict out = w->out + at;
		m = w->activation == SL_IDENTITY ? n : min(n, HOT);
		for (int64_t i = 0; i < m; i++) out[i] = (x[i] - center) * k1 + k2;
		slp_activate_range(out, m, w->activation);
	}
}

SLP_INLINE void backward_run_by(const struct work *w, int64_t c, int64_t at, int64_t n, const bool relu)
{
	float center = w->center[c], k0 = w->k0[c], k1 = w->k1[c], k2 = w->k2[c];
	const float *restrict x = w->x + at, *restrict dy = w->dy + at, *restrict y = relu ? w->y + at : NULL;
	float *restrict out = w->out + at;
#define RUN(dy)                                                                                                        \
	for (int64_t i = 0; i < n; i++) out[i] = dy_at(dy, y, i, relu) * k0 + (x[i] - center) * k1 + k2
	if (out == dy) RUN(out); /* in place: another restricted pointer must not be used */
	else RUN(dy);
#undef RUN
}

BY_RELU(backward_run, (const struct work *w, int64_t c, int64_t at, int64_t n), w, c, at, n)

static void apply_run(const struct work *w, int64_t c, int64_t at, int64_t n)
{
	(w->dy ? backward_run : forward_run)(w, c, at, n);
}

static void apply_planes(const struct work *w, int64_t c, struct block b)
{
	for (int64_t n = b.n0; n < b.n1; n++) apply_run(w, c, (n * w->size.c + c) * w->size.s + b.s0, b.s1 - b.s0);
}

/* Elements [begin, end) of the tensor, in the order of memory. */
static void apply_elements(void *arg, int64_t begin, int64_t end)
{
	const struct work *w = arg;
	for (int64_t i = begin; i < end;) {
		int64_t p = i / w->size.s, stop = min((p + 1) * w->size.s, end);
		apply_run(w, p % w->size.c, i, stop - i);
		i = stop;
	}
}

/* ---- columns ---------------------------------------------------------------------------------------------------- */

/* Spreads a number of each channel from c on over its s columns. */
SLP_INLINE void spread(const struct work *w, int64_t c, int64_t channels, const float *from, float *restrict to)
{
	int64_t s = w->size.s;
	for (int64_t i = 0; i < channels; i++)
		for (int64_t j = 0; j < s; j++) to[i * s + j] = from[c + i];
}

/* The sum of the s columns of channel i of a group. */
SLP_INLINE double gather(const struct work *w, int64_t i, const float *from)
{
	double sum = 0;
	for (int64_t j = 0; j < w->size.s; j++) sum += from[i * w->size.s + j];
	return sum;
}

static SLP_CLONES void stat_columns(const struct work *w, int64_t c, int64_t channels, struct block b, double *part)
{
	int64_t width = channels * w->size.s, pitch = w->size.c * w->size.s;
	double count = (double)((b.n1 - b.n0) * w->size.s);
	const float *first = w->x + c * w->size.s;
	float sum[COLUMNS] = {0}, rest[COLUMNS] = {0}, squares[COLUMNS] = {0}, means[COLUMNS], near[COLUMNS];
	for (int64_t n = b.n0; n < b.n1; n++) {
		const float *x = first + n * pitch;
		for (int64_t i = 0; i < width; i++) sum[i] += x[i];
	}
	for (int64_t i = 0; i < channels; i++) means[i] = (float)(gather(w, i, sum) / count);
	spread(w, 0, channels, means, near);
	for (int64_t n = b.n0; n < b.n1; n++) {
		const float *x = first + n * pitch;
		for (int64_t i = 0; i < width; i++) {
			rest[i] += x[i] - near[i];
			squares[i] += (x[i] - near[i]) * (x[i] - near[i]);
		}
	}
	for (int64_t i = 0; i < channels; i++)
		set_moments(part + i * w->nblocks * 2, count, means[i], gather(w, i, rest), gather(w, i, squares));
}

SLP_INLINE void grad_columns_by(const struct work *w, int64_t c, int64_t channels, struct block b, double *part,
                                const bool relu)
{
	int64_t width = channels * w->size.s, pitch = w->size.c * w->size.s;
	float sum[COLUMNS] = {0}, products[COLUMNS] = {0}, center[COLUMNS];
	spread(w, c, channels, w->center, center);
	for (int64_t n = b.n0; n < b.n1; n++) {
		int64_t at = n * pitch + c * w->size.s;
		const float *x = w->x + at, *dy = w->dy + at, *y = relu ? w->y + at : NULL;
		for (int64_t i = 0; i < width; i++) {
			float d = dy_at(dy, y, i, relu);
			sum[i] += d;
			products[i] += d * (x[i] - center[i]);
		}
	}
	for (int64_t i = 0; i < channels; i++) {
		part[i * w->nblocks * 2] = gather(w, i, sum);
		part[i * w->nblocks * 2 + 1] = gather(w, i, products);
	}
}

BY_RELU(grad_columns, (const struct work *w, int64_t c, int64_t channels, struct block b, double *part), w, c, channels,
        b, part)

static SLP_CLONES void forward_columns(const struct work *w, int64_t c, int64_t channels, struct block b)
{
	int64_t width = channels * w->size.s, pitch = w->size.c * w->size.s;
	float center[COLUMNS], k1[COLUMNS], k2[COLUMNS];
	spread(w, c, channels, w->center, center);
	spread(w, c, channels, w->k1, k1);
	spread(w, c, channels, w->k2, k2);
	for (int64_t n = b.n0; n < b.n1; n++) {
		const float *restrict x = w->x + n * pitch + c * w->size.s;
		float *restrict out = w->out + n * pitch + c * w->size.s;
		for (int64_t i = 0; i < width; i++) out[i] = (x[i] - center[i]) * k1[i] + k2[i];
		slp_activate_range(out, width, w->activation);
	}
}

SLP_INLINE void backward_columns_by(const struct work *w, int64_t c, int64_t channels, struct block b, const bool relu)
{
	int64_t width = channels * w->size.s, pitch = w->size.c * w->size.s;
	float center[COLUMNS], k0[COLUMNS], k1[COLUMNS], k2[COLUMNS];
	spread(w, c, channels, w->center, center);
	spread(w, c, channels, w->k0, k0);
	spread(w, c, channels, w->k1, k1);
	spread(w, c, channels, w->k2, k2);
	for (int64_t n = b.n0; n < b.n1; n++) {
		int64_t at = n * pitch + c * w->size.s;
		const float *restrict x = w->x + at, *restrict dy = w->dy + at, *restrict y = relu ? w->y + at : NULL;
		float *restrict out = w->out + at;
#define RUN(dy)                                                                                                        \
	for (int64_t i = 0; i < width; i++) out[i] = dy_at(dy, y, i, relu) * k0[i] + (x[i] - center[i]) * k1[i] + k2[i]
		if (out == dy) RUN(out);
		else RUN(dy);
#undef RUN
	}
}

BY_RELU(backward_columns, (const struct work *w, int64_t c, int64_t channels, struct block b), w, c, channels, b)

/* ---- the order of things ---------------------------------------------------------------------------------------- */

static int64_t channels_of(const struct work *w, int64_t group)
{
	return min(w->group, w->size.c - group * w->group);
}

static void reduce(const struct work *w, int64_t group, int64_t i)
{
	int64_t c = group * w->group;
	double *part = w->part + (c * w->nblocks + i) * 2;
	struct block b = block_at(w->size, i);
	if (w->columns) (w->dy ? grad_columns : stat_columns)(w, c, channels_of(w, group), b, part);
	else (w->dy ? grad_planes : stat_planes)(w, c, b, part);
}

static void finish(struct work *w, int64_t group)
{
	for (int64_t i = 0; i < channels_of(w, group); i++) w->finish(w, group * w->group + i);
}

static void apply(const struct work *w, int64_t group, int64_t i)
{
	if (w->columns)
		(w->dy ? backward_columns : forward_columns)(w, group * w->group, channels_of(w, group),
		                                             block_at(w->size, i));
	else apply_planes(w, group * w->group, block_at(w->size, i));
}

static void whole_groups(void *arg, int64_t begin, int64_t end)
{
	struct work *w = arg;
	for (int64_t g = begin; g < end; g++) {
		for (int64_t i = 0; i < w->nblocks; i++) reduce(w, g, i);
		finish(w, g);
		for (int64_t i = 0; i < w->nblocks; i++) apply(w, g, i);
	}
}

static void reduce_blocks(void *arg, int64_t begin, int64_t end)
{
	const struct work *w = arg;
	for (int64_t i = begin; i < end; i++) reduce(w, i % w->ngroups, i / w->ngroups);
}

static void apply_blocks(void *arg, int64_t begin, int64_t end)
{
	const struct work *w = arg;
	for (int64_t i = begin; i < end; i++) apply(w, i % w->ngroups, i / w->ngroups);
}

static void apply_all(struct work *w)
{
	int64_t units = w->ngroups * w->nblocks, size = w->size.n * w->size.c * w->size.s;
	if (w->columns) slp_parallel_for(units, SLP_GRAIN * units / size + 1, apply_blocks, w);
	else slp_parallel_for(size, SLP_GRAIN, apply_elements, w);
}

/* Small tensors in one pass over the channels, if all threads have some; else step by step, in the order of memory. The
 * bits are the same. */
static void run(struct work *w)
{
	int64_t units = w->ngroups * w->nblocks, size = w->size.n * w->size.c * w->size.s;
	if (size == 0) return;
	int64_t grain = SLP_GRAIN * units / size + 1, threads = w->k->threads > 0 ? w->k->threads : 1;
	if (size <= SMALL && (w->ngroups % threads == 0 || w->ngroups >= 4 * threads)) {
		slp_parallel_for(w->ngroups, ceil_div(grain, w->nblocks), whole_groups, w);
		return;
	}
	slp_parallel_for(units, grain, reduce_blocks, w);
	for (int64_t g = 0; g < w->ngroups; g++) finish(w, g);
	apply_all(w);
}

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

size_t slp_norm_scratch(const struct slp_infer *c)
{
	struct slp_norm_size z = slp_norm_size_of(c->in[0].shape, c->op, c->attrs);
	int64_t cpu = block_count(z), gpu = SLP_NORM_PARTS;
	return (size_t)z.c * (4 + 2 * (size_t)(cpu > gpu ? cpu : gpu)) * sizeof(double);
}

static struct work work_on(const struct slp_kernel *k, const struct slp_view *x)
{
	struct work w = {.k = k, .x = x->ptr, .out = k->out[0].ptr};
	w.size = slp_norm_size_of(x->type.shape, k->op, k->attrs);
	w.columns = w.size.s < SHORT;
	w.group = w.columns ? COLUMNS / (w.size.s > 0 ? w.size.s : 1) : 1;
	w.ngroups = ceil_div(w.size.c, w.group);
	w.nblocks = w.size.s > 0 ? block_count(w.size) : 0;
	w.part = k->scratch;
	w.center = (float *)(w.part + 2 * w.size.c * w.nblocks);
	w.k0 = w.center + w.size.c;
	w.k1 = w.k0 + w.size.c, w.k2 = w.k1 + w.size.c;
	return w;
}

static float *f32(const struct slp_view *v)
{
	return v->ptr;
}

/* The rounding error of the centre goes into the constant. */
static void set_forward(struct work *w, int64_t c, double mean, double invstd)
{
	double scale = f32(&w->k->in[1])[c] * invstd;
	w->center[c] = (float)mean;
	w->k0[c] = 0;
	w->k1[c] = (float)scale;
	w->k2[c] = (float)(f32(&w->k->in[2])[c] + (w->center[c] - mean) * scale);
}

/* Joins the blocks of a channel in their order. */
static void join(const struct work *w, int64_t c, double *mean, double *squares)
{
	double count = 0;
	*mean = *squares = 0;
	for (int64_t i = 0; i < w->nblocks; i++) {
		const double *part = w->part + (c * w->nblocks + i) * 2;
		struct block b = block_at(w->size, i);
		double n = (double)((b.n1 - b.n0) * (b.s1 - b.s0)), delta = part[0] - *mean;
		*mean += delta * n / (count + n);
		*squares += part[1] + delta * delta * count * n / (count + n);
		count += n;
	}
}

static void finish_forward(struct work *w, int64_t c)
{
	const struct slp_norm_attrs *a = w->k->attrs;
	double mean, squares;
	float *running_mean = f32(&w->k->in[3]), *running_var = f32(&w->k->in[4]);
	join(w, c, &mean, &squares);
	double count = (double)(w->size.n * w->size.s), var = squares / count, invstd = 1 / sqrt(var + a->eps);
	f32(&w->k->out[1])[c] = (float)mean;
	f32(&w->k->out[2])[c] = (float)invstd;
	running_mean[c] = (float)(a->momentum * running_mean[c] + (1 - a->momentum) * mean);
	running_var[c] = (float)(a->momentum * running_var[c] + (1 - a->momentum) * var * slp_norm_bessel(a, count));
	set_forward(w, c, mean, invstd);
}

enum sl_status slp_cpu_batch_norm(const struct slp_kernel *k)
{
	const struct slp_norm_attrs *a = k->attrs;
	struct work w = work_on(k, &k->in[0]);
	w.finish = finish_forward;
	w.activation = a->activation;
	run(&w);
	return SL_OK;
}

enum sl_status slp_cpu_batch_norm_infer(const struct slp_kernel *k)
{
	const struct slp_norm_attrs *a = k->attrs;
	struct work w = work_on(k, &k->in[0]);
	w.activation = a->activation;
	for (int64_t c = 0; c < w.size.c; c++)
		set_forward(&w, c, f32(&k->in[3])[c], 1 / sqrt(f32(&k->in[4])[c] + a->eps));
	if (slp_size(&k->out[0])) apply_all(&w);
	return SL_OK;
}

static void finish_backward(struct work *w, int64_t c)
{
	const struct slp_norm_grad_attrs *a = w->k->attrs;
	double sum = 0, product = 0, invstd = f32(&w->k->in[4])[c], scale = f32(&w->k->in[2])[c] * invstd;
	for (int64_t i = 0; i < w->nblocks; i++) {
		sum += w->part[(c * w->nblocks + i) * 2];
		product += w->part[(c * w->nblocks + i) * 2 + 1];
	}
	f32(&w->k->out[1])[c] = (float)(product * invstd);
	f32(&w->k->out[2])[c] = (float)sum;
	double share = a->global ? 0 : scale / (double)(w->size.n * w->size.s);
	w->k0[c] = (float)scale;
	w->k1[c] = (float)(-share * product * invstd * invstd);
	w->k2[c] = (float)(-share * sum);
}

enum sl_status slp_cpu_batch_norm_grad(const struct slp_kernel *k)
{
	const struct slp_norm_grad_attrs *a = k->attrs;
	struct work w = work_on(k, &k->in[1]);
	w.dy = k->in[0].ptr;
	if (a->relu) w.y = k->in[5].ptr;
	w.finish = finish_backward;
	if (w.size.c) memcpy(w.center, k->in[3].ptr, (size_t)w.size.c * sizeof(float));
	if (slp_size(&k->in[0]) == 0)
		for (int64_t c = 0; c < w.size.c; c++) finish_backward(&w, c);
	run(&w);
	return SL_OK;
}
