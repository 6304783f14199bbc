/* LeNet on several devices, from scratch: each has a copy of the parameters and a part of every batch. */
#include "book.h"

/* ---- network ---------------------------------------------------------------------------------------------------- */

enum { W1, B1, W2, B2, W3, B3, W4, B4, PARAMS };

static void init_params(sl_tensor **p)
{
	p[W1] = sl_normal(SL_SHAPE(20, 1, 3, 3), 0, 0.1);
	p[W2] = sl_normal(SL_SHAPE(50, 20, 5, 5), 0, 0.04);
	p[W3] = sl_normal(SL_SHAPE(800, 128), 0, 0.04);
	p[W4] = sl_normal(SL_SHAPE(128, 10), 0, 0.1);
	p[B1] = sl_zeros(SL_SHAPE(20));
	p[B2] = sl_zeros(SL_SHAPE(50));
	p[B3] = sl_zeros(SL_SHAPE(128));
	p[B4] = sl_zeros(SL_SHAPE(10));
}

static sl_tensor *lenet(sl_tensor *x, sl_tensor *const *p)
{
	x = sl_relu(sl_conv2d(x, p[W1], p[B1]));
	x = sl_pool2d(x, .type = SL_POOL_AVG, .kernel = {2});
	x = sl_relu(sl_conv2d(x, p[W2], p[B2]));
	x = sl_pool2d(x, .type = SL_POOL_AVG, .kernel = {2});
	x = sl_relu(sl_linear(sl_flatten(x), p[W3], p[B3]));
	return sl_linear(x, p[W4], p[B4]);
}

/* ---- copies ----------------------------------------------------------------------------------------------------- */

static void get_params(sl_tensor *const *params, sl_device device, sl_tensor **copies)
{
	for (int p = 0; p < PARAMS; p++) {
		copies[p] = sl_copy_to(params[p], device);
		sl_attach_grad(copies[p]);
	}
}

/* ---- sums ------------------------------------------------------------------------------------------------------- */

/* Replaces each of n tensors, one on each device, by the sum of all. */
static void allreduce(sl_tensor *const *t, int n)
{
	for (int i = 1; i < n; i++) sl_add_(t[0], sl_copy_to(t[i], sl_tensor_device(t[0])));
	for (int i = 1; i < n; i++) sl_copy_(t[i], sl_copy_to(t[0], sl_tensor_device(t[i])));
}

/* ---- parts ------------------------------------------------------------------------------------------------------ */

/* Splits a batch into n equal parts, and sends each to its device. */
static void split(sl_tensor *batch, const sl_device *devices, int n, sl_tensor **parts)
{
	int64_t rows = sl_tensor_shape(batch).dim[0] / n;
	for (int i = 0; i < n; i++) parts[i] = sl_copy_to(sl_rows(batch, i * rows, (i + 1) * rows), devices[i]);
}

/* ---- training --------------------------------------------------------------------------------------------------- */

struct replica {
	sl_tensor *params[PARAMS], *grads[PARAMS];
};

static void train_batch(struct replica *r, const struct options *o, sl_tensor *x, sl_tensor *y)
{
	sl_tensor *xs[MAX_DEVICES], *ys[MAX_DEVICES], *losses[MAX_DEVICES], *grads[MAX_DEVICES];
	split(x, o->devices, o->n, xs);
	split(y, o->devices, o->n, ys);
	SL_RECORD
		for (int i = 0; i < o->n; i++) losses[i] = sl_softmax_cross_entropy(lenet(xs[i], r[i].params), ys[i]);
	for (int i = 0; i < o->n; i++) sl_backward(losses[i]);
	for (int p = 0; p < PARAMS; p++) {
		for (int i = 0; i < o->n; i++) grads[i] = r[i].grads[p];
		allreduce(grads, o->n);
	}
	for (int i = 0; i < o->n; i++)
		sl_sgd_update(r[i].params, r[i].grads, NULL, PARAMS, .lr = o->lr,
		              .rescale = 1.0 / (double)sl_tensor_shape(x).dim[0]);
}

/* ---- epochs ----------------------------------------------------------------------------------------------------- */

static double accuracy(const struct replica *r, sl_loader *images)
{
	double right = 0;
	SL_SCOPE {
		sl_tensor *sum = sl_zeros(SL_SCALAR);
		struct sl_batch b;
		while (sl_loader_next(images, &b))
			sl_add_(sum, sl_sum(sl_cast(sl_eq(sl_argmax(lenet(b.x, r->params), 1), b.y), SL_FLOAT32)));
		right = sl_item(sum);
	}
	return right / (double)sl_loader_samples(images);
}

static void train(struct replica *r, const struct options *o, sl_loader *images, sl_loader *tests)
{
	for (int64_t epoch = 1; epoch <= o->epochs; epoch++) {
		double start = sl_time();
		bool more = true;
		while (more)
			SL_SCOPE {
				struct sl_batch b;
				more = sl_loader_next(images, &b);
				if (more) train_batch(r, o, b.x, b.y);
			}
		sl_wait_all();
		printf("epoch %lld: %.2f s, test accuracy %.3f\n", (long long)epoch, sl_time() - start,
		       accuracy(r, tests));
	}
}

/* ---- main ------------------------------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
	struct options o = {.limit = 4096, .epochs = 3, .batch_size = 64, .lr = 0.2, .names = "cpu:0"};
	if (!prepare(argc, argv, &o)) return 1;
	sl_device_default(o.devices[0]);
	sl_dataset *train_set = sl_dataset_mnist(SL_FASHION_MNIST_DIR, SL_TRAIN);
	sl_dataset *test_set = sl_dataset_mnist(SL_FASHION_MNIST_DIR, SL_TEST);
	sl_loader *images = sl_loader_new(train_set, .batch_size = o.batch_size, .shuffle = true, .limit = o.limit,
	                                  .last = SL_LAST_DISCARD);
	sl_loader *tests = sl_loader_new(test_set, .batch_size = o.batch_size, .limit = o.limit);
	SL_SCOPE {
		struct replica replicas[MAX_DEVICES];
		sl_tensor *params[PARAMS];
		init_params(params);
		for (int i = 0; i < o.n; i++) {
			get_params(params, o.devices[i], replicas[i].params);
			for (int p = 0; p < PARAMS; p++) replicas[i].grads[p] = sl_grad(replicas[i].params[p]);
		}
		printf("%lld images on %d device%s\n", (long long)sl_loader_samples(images), o.n, o.n > 1 ? "s" : "");
		train(replicas, &o, images, tests);
	}
	sl_loader_free(images);
	sl_loader_free(tests);
	sl_dataset_free(train_set);
	sl_dataset_free(test_set);
	return finish();
}
