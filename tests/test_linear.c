/* The backward pass of a fully connected layer: linear_grad gives the gradients that autograd's operations give,
 * linear_sgd the parameters that they and an update give. */
#include <stdlib.h>
#include <starling.h>

#include "op_list/linear.h"
#include "check.h"
#include "graph/graph.h"
#include "linear/linear.h"

static bool close_to(sl_tensor *a, sl_tensor *b, double tolerance)
{
	return slp_compare("linear", "a result", b, a, tolerance) == SL_OK;
}

/* A layer, its gradients by autograd, and a way to ask for them at once. */
struct layer {
	sl_tensor *x, *w, *b, *y, *dy;
	struct slp_linear_grad_attrs attrs;
};

static struct layer make(int64_t rows, int64_t inputs, int64_t units, bool tw, bool relu)
{
	struct layer l = {.attrs = {.tw = tw, .data = true, .activation = relu ? SL_RELU : SL_IDENTITY}};
	l.x = sl_uniform(SL_SHAPE(rows, inputs), -1, 1);
	l.w = sl_uniform(tw ? SL_SHAPE(units, inputs) : SL_SHAPE(inputs, units), -1, 1);
	l.b = sl_uniform(SL_SHAPE(units), -1, 1);
	l.dy = sl_uniform(SL_SHAPE(rows, units), -1, 1);
	sl_attach_grad(l.x);
	sl_attach_grad(l.w);
	sl_attach_grad(l.b);
	SL_RECORD {
		l.y = sl_linear(l.x, l.w, l.b, .tw = tw);
		if (relu) l.y = sl_relu(l.y);
	}
	CHECK_OK(sl_backward_heads(&l.y, 1, .head_grads = &l.dy));
	return l;
}

static void check_layer(int64_t rows, int64_t inputs, int64_t units, bool tw, bool relu)
{
	struct layer l = make(rows, inputs, units, tw, relu);
	sl_tensor *d[3], *dx;
	CHECK_OK(slp_apply(SL_HERE, &slp_op_linear_grad, &l.attrs, 3 + relu, (sl_tensor *[]){l.x, l.w, l.dy, l.y},
	                   sl_auto(), d));
	CHECK(close_to(d[0], sl_grad(l.x), 1e-4) && close_to(d[1], sl_grad(l.w), 1e-4) &&
	      close_to(d[2], sl_grad(l.b), 1e-4));
	sl_tensor *updated[] = {sl_clone(l.w), sl_clone(l.b)};
	CHECK_OK(sl_sgd_update(updated, d + 1, NULL, 2, .lr = 0.1, .rescale = 0.25, .weight_decay = 0.01));
	l.attrs.lr = 0.1;
	l.attrs.rescale = 0.25;
	l.attrs.weight_decay = 0.01;
	CHECK_OK(slp_apply(SL_HERE, &slp_op_linear_sgd, &l.attrs, 4 + relu, (sl_tensor *[]){l.w, l.b, l.x, l.dy, l.y},
	                   sl_auto(), &dx));
	CHECK(close_to(dx, d[0], 0) && close_to(l.w, updated[0], 1e-5) && close_to(l.b, updated[1], 1e-5));
}

static void test_layers(void)
{
	static const int64_t sizes[][3] = {{64, 784, 512}, {64, 512, 10}, {3, 5, 7}, {600, 70, 90}, {1, 300, 40}};
	for (int i = 0; i < 20; i++)
		SL_SCOPE
			check_layer(sizes[i / 4][0], sizes[i / 4][1], sizes[i / 4][2], i & 1, i & 2);
}

/* An activation in the layer gives the bits of the layer and the activation. */
static void test_activations(void)
{
	for (int a = 0; a < SL_ACTIVATIONS; a++)
		SL_SCOPE {
			sl_tensor *in[] = {sl_uniform(SL_SHAPE(64, 100), -1, 1), sl_uniform(SL_SHAPE(100, 333), -1, 1),
			                   sl_uniform(SL_SHAPE(333), -1, 1)};
			sl_tensor *y = sl_linear(in[0], in[1], in[2]);
			sl_tensor *const want[] = {y,          sl_relu(y), sl_sigmoid(y),
			                           sl_tanh(y), sl_gelu(y), sl_softplus(y)};
			sl_tensor *got =
			        slp_apply1(SL_HERE, &slp_op_linear, &(struct slp_linear_attrs){.activation = a}, 3, in);
			CHECK(close_to(got, want[a], 0));
		}
}

/* There is no backward pass of an activation within a layer: autograd records the two. */
static void test_no_gradient(void)
{
	SL_SCOPE {
		sl_tensor *in[] = {sl_ones(SL_SHAPE(2, 3)), sl_ones(SL_SHAPE(3, 4))}, *y = NULL;
		CHECK_OK(sl_attach_grad(in[1]));
		SL_RECORD
			y = slp_apply1(SL_HERE, &slp_op_linear, &(struct slp_linear_attrs){.activation = SL_RELU}, 2,
			               in);
		CHECK_STATUS(sl_backward(y), SL_EUNSUPPORTED, "linear", "activation");
		sl_error_clear();
	}
}

static const struct slp_test tests[] = {{"layers", test_layers},
                                        {"activations", test_activations},
                                        {"no gradient through an activation", test_no_gradient},
                                        {0}};

int main(int argc, char **argv)
{
	return slp_test_main(
	        argc, argv,
	        (const struct slp_suite[]){
	                {.name = "linear", .tests = tests, .start = slp_start_engine, .stop = slp_stop_engine}, {0}});
}
