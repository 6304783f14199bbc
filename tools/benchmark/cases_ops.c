/* Cases of one operation each, forward or backward: inputs are made once, then the operation is issued again and
 * again, waiting at the end. */
#include <stdlib.h>

#include "bench.h"

static struct {
	sl_tensor *in[BENCH_MAX_INPUTS], *out, *dout;
} b;

static sl_tensor *make_classes(sl_shape shape)
{
	int64_t n = sl_shape_size(shape);
	int32_t *labels = malloc((size_t)n * sizeof *labels);
	if (!labels) return NULL;
	for (int64_t i = 0; i < n; i++) labels[i] = (int32_t)(i % 10);
	sl_tensor *t = sl_from(labels, shape, .dtype = SL_INT32);
	free(labels);
	return t;
}

static bool make_inputs(const struct bench_op *op)
{
	for (int i = 0; i < BENCH_MAX_INPUTS && op->in[i].used; i++) {
		const struct bench_input *in = &op->in[i];
		sl_tensor *t = in->dtype == SL_INT32 ? make_classes(in->shape) : sl_normal(in->shape, 0, 1);
		if (in->dtype == SL_BFLOAT16) t = sl_cast(t, SL_BFLOAT16);
		if (!t || (in->want_grad && sl_attach_grad(t) != SL_OK)) return false;
		b.in[i] = sl_retain(t);
	}
	return true;
}

bool bench_op_setup(const struct bench_case *c)
{
	SL_SCOPE {
		if (!make_inputs(c->op)) return false;
		if (!c->op->backward) return sl_wait_all() == SL_OK;
		SL_RECORD
			b.out = sl_retain(c->op->forward(b.in));
		if (b.out) b.dout = sl_retain(sl_ones(sl_tensor_shape(b.out), .dtype = sl_tensor_dtype(b.out)));
	}
	return sl_wait_all() == SL_OK && b.out;
}

double bench_op_run(const struct bench_case *c, int64_t times)
{
	double start = bench_now();
	for (int64_t i = 0; i < times; i++)
		SL_SCOPE {
			if (!c->op->backward) c->op->forward(b.in);
			else sl_backward_heads(&b.out, 1, .head_grads = &b.dout, .retain_graph = true);
		}
	bench_must(sl_wait_all());
	return (bench_now() - start) / (double)times;
}

void bench_op_teardown(void)
{
	for (int i = 0; i < BENCH_MAX_INPUTS; i++) sl_release(b.in[i]);
	sl_release(b.out);
	sl_release(b.dout);
}
