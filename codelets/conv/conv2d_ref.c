/* Convolution by its definition, in double precision: the reference for the fast kernels. */
#include "common/activation.h"
#include "conv2d_kernels.h"
#include "common/image_layout.h"
#include "op.h"
#include "starling/options.h"

/* The position in x at which output position (i, j) and kernel position (u, v) meet; false: in the padding. */
static bool meet(const struct slp_conv *c, int64_t i, int64_t j, int64_t u, int64_t v, int64_t *offset)
{
	int64_t h = i * c->sh - c->ph + u * c->dh, w = j * c->sw - c->pw + v * c->dw;
	*offset = h * c->iw + w;
	return h >= 0 && h < c->ih && w >= 0 && w < c->iw;
}

/* Element `at` of plane q of image n of x, or of dx; of plane o of y, or dy. */
static int64_t x_index(const struct slp_kernel *k, const struct slp_conv *c, int64_t n, int64_t q, int64_t at)
{
	return slp_layout_index(slp_conv_attrs(k)->x_layout, c->ic, c->ih * c->iw, n, q, at);
}

static int64_t y_index(const struct slp_kernel *k, const struct slp_conv *c, int64_t n, int64_t o, int64_t at)
{
	return slp_layout_index(slp_conv_attrs(k)->y_layout, c->oc, c->oh * c->ow, n, o, at);
}

/* Element `at` of plane o of image n of dy, which is the in-th input; if y was pooled, from its window's. */
static double dy_element(const struct slp_kernel *k, const struct slp_conv *c, int in, int64_t n, int64_t o, int64_t at)
{
	int pool = slp_conv_attrs(k)->pool;
	if (!pool) return slp_get(&k->in[in], y_index(k, c, n, o, at));
	struct slp_conv pooled = *c;
	pooled.oh /= 2;
	pooled.ow /= 2;
	unsigned bits = (unsigned)slp_get(&k->in[2], slp_conv_mask_index(c, n, o, at));
	int64_t window = at / c->ow / 2 * pooled.ow + at % c->ow / 2;
	double share = slp_get(&k->in[in], y_index(k, &pooled, n, o, window)) * slp_conv_pool_share(pool);
	return bits >> n % 8 & 1 ? share : 0;
}

/* Element (u, v) of the kernel from channel q (within its group) to output channel o. */
static int64_t w_index(const struct slp_kernel *k, const struct slp_conv *c, int64_t o, int64_t q, int64_t u, int64_t v)
{
	return slp_layout_index(slp_conv_attrs(k)->w_layout, c->ic / c->groups, c->kh * c->kw, o, q, u * c->kw + v);
}

/* The first input channel of the group of output channel o. */
static int64_t first_channel(const struct slp_conv *c, int64_t o)
{
	return o / (c->oc / c->groups) * (c->ic / c->groups);
}

static double y_element(const struct slp_kernel *k, const struct slp_conv *c, int64_t n, int64_t o, int64_t i,
                        int64_t j)
{
	double sum = 0;
	int64_t at;
	for (int64_t q = 0; q < c->ic / c->groups; q++)
		for (int64_t u = 0; u < c->kh; u++)
			for (int64_t v = 0; v < c->kw; v++)
				if (meet(c, i, j, u, v, &at))
					sum += slp_get(&k->in[0], x_index(k, c, n, first_channel(c, o) + q, at)) *
					       slp_get(&k->in[1], w_index(k, c, o, q, u, v));
	return sum;
}

/* The same with the bias and the activation. */
static double y_value(const struct slp_kernel *k, const struct slp_conv *c, int64_t n, int64_t o, int64_t i, int64_t j)
{
	double bias = k->nin == 3 ? slp_get(&k->in[2], o) : 0;
	return slp_activated(bias + y_element(k, c, n, o, i, j), slp_conv_attrs(k)->activation);
}

/* Window (i, j) of plane o of image n: its result and its bits. */
static void pool_window(const struct slp_kernel *k, const struct slp_conv *c, const struct slp_conv *pooled, int64_t n,
                        int64_t o, int64_t i, int64_t j)
{
	const struct slp_conv2d_attrs *a = slp_conv_attrs(k);
	double v[4];
	unsigned flow;
	for (int e = 0; e < 4; e++) v[e] = y_value(k, c, n, o, 2 * i + e / 2, 2 * j + e % 2);
	slp_set(&k->out[0], y_index(k, pooled, n, o, i * pooled->ow + j),
	        slp_conv_pool4(a->pool, a->activation == SL_RELU, v, &flow));
	for (int e = 0; e < 4; e++) {
		int64_t at = slp_conv_mask_index(c, n, o, (2 * i + e / 2) * c->ow + 2 * j + e % 2);
		unsigned bits = (unsigned)slp_get(&k->out[1], at);
		slp_set(&k->out[1], at, bits | (flow >> e & 1) << n % 8);
	}
}

static enum sl_status pool_ref(const struct slp_kernel *k, const struct slp_conv *c)
{
	struct slp_conv pooled = *c;
	pooled.oh /= 2;
	pooled.ow /= 2;
	for (int64_t i = 0; i < slp_size(&k->out[1]); i++) slp_set(&k->out[1], i, 0);
	for (int64_t n = 0; n < c->n; n++)
		for (int64_t o = 0; o < c->oc; o++)
			for (int64_t i = 0; i < pooled.oh; i++)
				for (int64_t j = 0; j < pooled.ow; j++) pool_window(k, c, &pooled, n, o, i, j);
	return SL_OK;
}

enum sl_status slp_conv2d_ref(const struct slp_kernel *k)
{
	struct slp_conv c = slp_conv_of(k);
	if (slp_conv_attrs(k)->pool) return pool_ref(k, &c);
	for (int64_t n = 0; n < c.n; n++)
		for (int64_t o = 0; o < c.oc; o++)
			for (int64_t i = 0; i < c.oh; i++)
				for (int64_t j = 0; j < c.ow; j++)
					slp_set(&k->out[0], y_index(k, &c, n, o, i * c.ow + j),
					        y_value(k, &c, n, o, i, j));
	return SL_OK;
}

/* The gradient of x element (h, w) of channel q of image n: from every output that it is part of. */
static double dx_element(const struct slp_kernel *k, const struct slp_conv *c, int64_t n, int64_t q, int64_t h,
                         int64_t w)
{
	int64_t ic = c->ic / c->groups, oc = c->oc / c->groups, first = q / ic * oc;
	double sum = 0;
	for (int64_t o = first; o < first + oc; o++)
		for (int64_t u = 0; u < c->kh; u++)
			for (int64_t v = 0; v < c->kw; v++) {
				int64_t i = h + c->ph - u * c->dh, j = w + c->pw - v * c->dw;
				if (i < 0 || j < 0 || i % c->sh || j % c->sw) continue;
				i /= c->sh;
				j /= c->sw;
				if (i >= c->oh || j >= c->ow) continue;
				sum += dy_element(k, c, 0, n, o, i * c->ow + j) *
				       slp_get(&k->in[1], w_index(k, c, o, q % ic, u, v));
			}
	return sum;
}

enum sl_status slp_conv2d_grad_data_ref(const struct slp_kernel *k)
{
	struct slp_conv c = slp_conv_of(k);
	for (int64_t n = 0; n < c.n; n++)
		for (int64_t q = 0; q < c.ic; q++)
			for (int64_t h = 0; h < c.ih; h++)
				for (int64_t w = 0; w < c.iw; w++)
					slp_set(&k->out[0], x_index(k, &c, n, q, h * c.iw + w),
					        dx_element(k, &c, n, q, h, w));
	return SL_OK;
}

static double dw_element(const struct slp_kernel *k, const struct slp_conv *c, int64_t o, int64_t q, int64_t u,
                         int64_t v)
{
	double sum = 0;
	int64_t at;
	for (int64_t n = 0; n < c->n; n++)
		for (int64_t i = 0; i < c->oh; i++)
			for (int64_t j = 0; j < c->ow; j++)
				if (meet(c, i, j, u, v, &at))
					sum += slp_get(&k->in[0], x_index(k, c, n, first_channel(c, o) + q, at)) *
					       dy_element(k, c, 1, n, o, i * c->ow + j);
	return sum;
}

static double db_element(const struct slp_kernel *k, const struct slp_conv *c, int64_t o)
{
	double sum = 0;
	for (int64_t n = 0; n < c->n; n++)
		for (int64_t p = 0; p < c->oh * c->ow; p++) sum += dy_element(k, c, 1, n, o, p);
	return sum;
}

enum sl_status slp_conv2d_grad_weights_ref(const struct slp_kernel *k)
{
	struct slp_conv c = slp_conv_of(k);
	int64_t biases = slp_size(&k->out[1]);
	for (int64_t o = 0; o < c.oc; o++)
		for (int64_t q = 0; q < c.ic / c.groups; q++)
			for (int64_t u = 0; u < c.kh; u++)
				for (int64_t v = 0; v < c.kw; v++)
					slp_set(&k->out[0], w_index(k, &c, o, q, u, v), dw_element(k, &c, o, q, u, v));
	for (int64_t o = 0; o < biases; o++) slp_set(&k->out[1], o, db_element(k, &c, o));
	return SL_OK;
}
