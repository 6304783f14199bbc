/* A residual network on several devices: blocks, a trainer, whole steps. */
#include "book.h"

/* ---- network ---------------------------------------------------------------------------------------------------- */

/* Two convolutions beside a shortcut, which is one by one where the size changes. */
static sl_block *residual(int64_t channels, int stride)
{
	sl_block *body =
	        sl_sequential(sl_conv2d_layer(channels, .kernel = {3}, .pad = {1, 1}, .stride = {stride, stride}),
	                      sl_batch_norm_layer(), sl_activation_layer(SL_RELU),
	                      sl_conv2d_layer(channels, .kernel = {3}, .pad = {1, 1}), sl_batch_norm_layer());
	sl_block *shortcut = stride == 1 ? NULL : sl_conv2d_layer(channels, .kernel = {1}, .stride = {stride, stride});
	return sl_residual(body, shortcut, SL_RELU);
}

static sl_block *resnet(void)
{
	return sl_sequential(sl_conv2d_layer(16, .kernel = {3}, .pad = {1, 1}, .stride = {2, 2}), sl_batch_norm_layer(),
	                     sl_activation_layer(SL_RELU), residual(16, 1), residual(32, 2), residual(64, 2),
	                     sl_global_avg_pool2d_layer(), sl_dense(10));
}

/* ---- training --------------------------------------------------------------------------------------------------- */

static void train_batch(sl_step *step, const struct options *o, sl_tensor *x, sl_tensor *y)
{
	sl_tensor *xs[MAX_DEVICES], *ys[MAX_DEVICES], *losses[MAX_DEVICES];
	sl_split_and_load(x, o->devices, o->n, xs, .uneven = true);
	sl_split_and_load(y, o->devices, o->n, ys, .uneven = true);
	sl_step_run(step, .in = xs, .targets = ys, .losses = losses, .shards = o->n);
}

/* ---- epochs ----------------------------------------------------------------------------------------------------- */

static double test(sl_block *net, const struct options *o, sl_loader *tests)
{
	sl_metric *accuracy = sl_accuracy_new();
	bool more = true;
	for (int64_t i = 0; more; i++)
		SL_SCOPE {
			struct sl_batch b;
			more = sl_loader_next(tests, &b);
			if (!more) break;
			sl_device device = o->devices[i % o->n]; /* whole batches, in turn */
			sl_metric_add(accuracy, sl_forward(net, sl_place(b.x, device)), sl_place(b.y, device));
		}
	double value = sl_metric_get(accuracy);
	sl_metric_free(accuracy);
	return value;
}

static void train(sl_block *net, const struct options *o, sl_loader *images, sl_loader *tests)
{
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = o->lr));
	sl_step *step = sl_step_compile(net, sl_softmax_cross_entropy_at, trainer);
	for (int64_t epoch = 1; epoch <= o->epochs; epoch++) {
		double start = sl_time();
		bool more = true;
		while (more)
			SL_SCOPE {
				struct sl_batch b;
				more = sl_loader_next(images, &b);
				if (more) train_batch(step, o, b.x, b.y);
			}
		sl_wait_all();
		printf("epoch %lld: %.2f s, test accuracy %.3f\n", (long long)epoch, sl_time() - start,
		       test(net, o, tests));
	}
	sl_step_free(step);
	sl_trainer_free(trainer);
}

/* ---- main ------------------------------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
	struct options o = {.limit = 2048, .epochs = 2, .batch_size = 32, .lr = 0.1, .names = "cpu:0"};
	if (!prepare(argc, argv, &o)) return 1;
	sl_dataset *train_set = sl_dataset_mnist(SL_FASHION_MNIST_DIR, SL_TRAIN);
	sl_dataset *test_set = sl_dataset_mnist(SL_FASHION_MNIST_DIR, SL_TEST);
	sl_loader *images = sl_loader_new(train_set, .batch_size = o.batch_size, .shuffle = true, .limit = o.limit);
	sl_loader *tests = sl_loader_new(test_set, .batch_size = o.batch_size, .limit = o.limit);
	sl_block *net = resnet();
	sl_initialize(net, .init = sl_xavier_init(), .devices = o.devices, .ndevices = o.n);
	printf("%lld images on %d device%s\n", (long long)sl_loader_samples(images), o.n, o.n > 1 ? "s" : "");
	train(net, &o, images, tests);
	sl_block_free(net);
	sl_loader_free(images);
	sl_loader_free(tests);
	sl_dataset_free(train_set);
	sl_dataset_free(test_set);
	return finish();
}
