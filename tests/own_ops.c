/* Two operations as programs register them: rules, kernels, gradients; training of networks that contain such. */
#include "own_ops.h"

#include <math.h>
#include <string.h>

#include "blocks.h"

/* ---- own_axpb: a x + b, by element ------------------------------------------------------------------------------- */

static const struct sl_op_attr axpb_attrs[] = {
        SL_OP_ATTR(struct slp_axpb, a, SL_ATTR_DOUBLE),
        SL_OP_ATTR(struct slp_axpb, b, SL_ATTR_DOUBLE),
        SL_OP_ATTR(struct slp_axpb, power, SL_ATTR_INT),
        SL_OP_ATTR(struct slp_axpb, negate, SL_ATTR_BOOL),
        {0},
};

static enum sl_status axpb_rule(const struct sl_op_call *c)
{
	struct slp_axpb *a = c->attrs;
	if (!a->power) a->power = 1;
	if (a->power < 0) return sl_op_fail(c, SL_EINVAL, "power %d is negative", a->power);
	if (a->power == 77) return SL_ENOMEM;
	c->out[0].dtype = c->in[0].dtype;
	c->out[0].shape = c->in[0].shape;
	if (a->power == 78) c->out[0].dtype = SL_DTYPE_DEFAULT;
	return SL_OK;
}

static void axpb_range(void *context, int64_t begin, int64_t end)
{
	const struct sl_op_call *c = context;
	const struct slp_axpb *a = c->attrs;
	for (int64_t i = begin; i < end; i++) {
		bool wide = c->in[0].dtype == SL_FLOAT64;
		double x = wide ? ((const double *)c->in[0].data)[i] : (double)((const float *)c->in[0].data)[i];
		double y = (a->negate ? -1 : 1) * (a->a * pow(x, a->power) + a->b);
		if (wide) ((double *)c->out[0].data)[i] = y;
		else ((float *)c->out[0].data)[i] = (float)y;
	}
}

static enum sl_status axpb_cpu(const struct sl_op_call *c)
{
	const struct slp_axpb *a = c->attrs;
	if (a->unnamed) return sl_op_fail(c, SL_EINVAL, "an attribute without a name came through");
	if (a->power == 99)
		return sl_op_fail(c, SL_EINVAL, "power %d is too much for %d threads", a->power, c->threads > 0);
	if (a->power == 98) return SL_EUNSUPPORTED;
	sl_parallel_for(sl_shape_size(c->in[0].shape), 1000, axpb_range, (void *)c);
	return SL_OK;
}

static enum sl_status axpb_gradient(const struct sl_op_gradient *g)
{
	const struct slp_axpb *a = g->attrs;
	double factor = (a->negate ? -1 : 1) * a->a * a->power;
	sl_tensor *slope = sl_mul_scalar_at(g->at, sl_pow_scalar_at(g->at, g->in[0], a->power - 1), factor);
	if (a->power == 5) return SL_OK; /* says nothing */
	if (a->power == 6)
		slope = sl_sum_at(g->at, slope, (struct sl_reduce_opts){.keepdims = false}), g->din[0] = slope;
	else g->din[0] = sl_mul_at(g->at, g->dout[0], slope);
	return SL_OK;
}

/* ---- own_outer: a b', and the sum of each of its rows ------------------------------------------------------------ */

static enum sl_status outer_rule(const struct sl_op_call *c)
{
	if (c->in[0].shape.ndim != 1 || c->in[1].shape.ndim != 1) return sl_op_fail(c, SL_ESHAPE, "vectors needed");
	c->out[0].dtype = c->out[1].dtype = c->in[0].dtype;
	c->out[0].shape = (sl_shape){2, {c->in[0].shape.dim[0], c->in[1].shape.dim[0]}};
	c->out[1].shape = c->in[0].shape;
	return SL_OK;
}

static size_t outer_scratch(const struct sl_op_call *c)
{
	return (size_t)c->in[1].shape.dim[0] * sizeof(double);
}

static double outer_flops(const struct sl_op_call *c)
{
	return 2.0 * (double)sl_shape_size(c->out[0].shape);
}

static enum sl_status outer_cpu(const struct sl_op_call *c)
{
	const double *a = c->in[0].data, *b = c->in[1].data;
	double *y = c->out[0].data, *sums = c->out[1].data, *copy = c->scratch;
	int64_t n = c->in[0].shape.dim[0], m = c->in[1].shape.dim[0];
	memcpy(copy, b, (size_t)m * sizeof *b);
	for (int64_t i = 0; i < n; i++) {
		sums[i] = 0;
		for (int64_t j = 0; j < m; j++) sums[i] += y[i * m + j] = a[i] * copy[j];
	}
	return SL_OK;
}

/* Either result may be without a gradient. */
static enum sl_status outer_gradient(const struct sl_op_gradient *g)
{
	sl_tensor *d = g->dout[0];
	if (g->dout[1]) {
		sl_tensor *rows = sl_reshape_at(g->at, g->dout[1], SL_SHAPE(-1, 1));
		d = d ? sl_add_at(g->at, d, rows) : sl_broadcast_to_at(g->at, rows, sl_tensor_shape(g->out[0]));
	}
	int rows[] = {1}, columns[] = {0};
	sl_tensor *a = sl_reshape_at(g->at, g->in[0], SL_SHAPE(-1, 1)), *b = g->in[1];
	if (g->need[0])
		g->din[0] = sl_sum_at(g->at, sl_mul_at(g->at, d, b), (struct sl_reduce_opts){.axes = rows, .naxes = 1});
	if (g->need[1])
		g->din[1] =
		        sl_sum_at(g->at, sl_mul_at(g->at, d, a), (struct sl_reduce_opts){.axes = columns, .naxes = 1});
	return SL_OK;
}

/* ---- what is registered ------------------------------------------------------------------------------------------ */

const struct sl_op_def slp_axpb_def = {.name = "own_axpb",
                                       .doc = "a x^power + b",
                                       .args = "x",
                                       .nin = 1,
                                       .types = SL_OP_TYPE(SL_FLOAT32) | SL_OP_TYPE(SL_FLOAT64),
                                       .attrs = axpb_attrs,
                                       .attrs_size = sizeof(struct slp_axpb),
                                       .saves = SL_SAVE_IN(0),
                                       .inplace = true,
                                       .rule = axpb_rule,
                                       .cpu = axpb_cpu,
                                       .gradient = axpb_gradient};

const struct sl_op_def slp_outer_def = {.name = "own_outer",
                                        .args = "a b",
                                        .nin = 2,
                                        .nout = 2,
                                        .types = SL_OP_TYPE(SL_FLOAT64),
                                        .saves = SL_SAVE_IN(0) | SL_SAVE_IN(1),
                                        .rule = outer_rule,
                                        .cpu = outer_cpu,
                                        .gradient = outer_gradient,
                                        .flops = outer_flops,
                                        .scratch = outer_scratch};

/* ---- training ---------------------------------------------------------------------------------------------------- */

sl_tensor *slp_own_trained(sl_block *net, bool whole, unsigned passes_off)
{
	sl_tensor *x = sl_normal(SL_SHAPE(4, 3), 0, 1), *y = sl_sum(x, SL_AXES(1), .keepdims = true);
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.1, .momentum = 0.9));
	sl_step *step = whole ? sl_step_compile(net, sl_l2_loss_at, trainer, .passes_off = passes_off) : NULL;
	for (int i = 0; i < 3; i++)
		SL_SCOPE {
			sl_tensor *loss = NULL;
			if (step) CHECK(sl_step_run(step, x, y, NULL) != NULL);
			else
				SL_RECORD
					loss = sl_l2_loss(sl_forward(net, x), y);
			if (loss) CHECK_OK(sl_backward(loss));
			if (loss) CHECK_OK(sl_trainer_step(trainer, 4));
		}
	sl_tensor *weight = sl_clone(slp_data(net, "0.weight"));
	CHECK_OK(sl_wait(weight));
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
	return weight;
}
