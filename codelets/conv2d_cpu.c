/* Convolution on CPUs: takes a call apart and hands it to the implementation that is best for its sizes.
 *
 * The rule depends on sizes, the build and the CPU alone, so a call has the same bits every time (doc/performance.md
 * has the measurements behind it). */
#include "conv2d.h"

static bool is_empty(const struct slp_conv *c)
{
	return c->n == 0 || c->ic == 0 || c->oc == 0 || c->ih == 0 || c->iw == 0;
}

static struct slp_conv_args args_of(const struct slp_kernel *k)
{
	struct slp_conv_args a = {.c = slp_conv_of(k)};
	if (k->op == &slp_op_conv2d_grad_data) {
		a.pass = SLP_CONV_DATA;
		a.y = k->in[0].ptr;
		a.w = k->in[1].ptr;
		a.x = k->out[0].ptr;
		return a;
	}
	a.x = k->in[0].ptr;
	if (k->op == &slp_op_conv2d_grad_weights) {
		a.pass = SLP_CONV_WEIGHTS;
		a.y = k->in[1].ptr;
		a.w = k->out[0].ptr;
		if (slp_size(&k->out[1]) > 0) a.b = k->out[1].ptr;
		return a;
	}
	a.w = k->in[1].ptr;
	a.y = k->out[0].ptr;
	if (k->nin == 3) a.b = k->in[2].ptr;
	return a;
}

/* The gradient of an image with a channel or three: few sums, each long, are what products of matrices do best. */
static bool prefers_gemm(const struct slp_conv_args *a)
{
	return a->pass == SLP_CONV_DATA && a->c.groups == 1 && a->c.ic < 4 && a->c.n >= 8;
}

enum sl_status slp_conv2d_cpu(const struct slp_kernel *k)
{
	static enum sl_status (*const ways[])(const struct slp_kernel *, const struct slp_conv_args *) = {
	        slp_conv_batch, slp_conv_onednn, slp_conv_gemm};
	struct slp_conv_args a = args_of(k);
	if (is_empty(&a.c)) return k->op->ref(k);
	if (prefers_gemm(&a)) return slp_conv_gemm(k, &a);
	enum sl_status s = SL_EUNSUPPORTED;
	for (size_t i = 0; i < sizeof ways / sizeof *ways && s == SL_EUNSUPPORTED; i++) s = ways[i](k, &a);
	return s;
}
