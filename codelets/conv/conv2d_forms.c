/* The forms of convolutions for graph passes and kernels: the operation of each pass; default options; the size of
 * cuDNN's workspace. */
#include "conv2d_kernels.h"
#include "op_list/conv.h"
#include "starling/primitives.h"

const struct slp_conv_forms slp_conv_forms[SLP_CONV_PASSES] = {
        [SLP_CONV_FORWARD] = {&slp_op_conv2d, &slp_op_conv2d_lowered, &slp_op_conv2d_pool},
        [SLP_CONV_DATA] = {&slp_op_conv2d_grad_data, &slp_op_conv2d_grad_data_lowered, &slp_op_conv2d_grad_data_pool},
        [SLP_CONV_WEIGHTS] = {&slp_op_conv2d_grad_weights, &slp_op_conv2d_grad_weights_lowered,
                              &slp_op_conv2d_grad_weights_pool},
};

enum slp_conv_pass slp_conv_pass_of(const struct sl_op *op)
{
	int i = 0;
	for (const struct slp_conv_forms *f = slp_conv_forms; i < SLP_CONV_PASSES; i++, f++)
		if (op == f->plain || op == f->lowered || op == f->pooled) break;
	return (enum slp_conv_pass)i;
}

void slp_conv_defaults(struct sl_conv2d_opts *o)
{
	for (int i = 0; i < 2; i++) {
		if (o->stride[i] == 0) o->stride[i] = i ? o->stride[0] : 1;
		if (o->dilation[i] == 0) o->dilation[i] = 1;
	}
	if (o->groups == 0) o->groups = 1;
}

#if defined HAVE_CUDA || defined SLP_SIMULATION
/* The memory that cuDNN may work in, which limits its choice of an algorithm.  Twice the operands is what its faster
 * algorithms ask for in most cases; those for tensor cores want copies of x and y, unless these are in NHWC. */
size_t slp_conv_workspace(const struct slp_conv *c, size_t element)
{
	enum { LEAST = 1 << 20 };
	double most = (double)slp_gpu_workspace();
	double images = (double)(c->n * c->ic * c->ih * c->iw) + (double)(c->n * c->oc * c->oh * c->ow);
	double bytes = 2 * (images + (double)(c->oc * c->ic / c->groups * c->kh * c->kw)) * (double)element;
	return (size_t)(bytes < LEAST ? LEAST : bytes > most ? most : bytes);
}
#endif
