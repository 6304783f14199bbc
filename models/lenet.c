/* LeNet from scratch, trained on Fashion-MNIST on one or several devices.
 *
 * Parameters are copied to each device by hand, batches are split over the devices, gradients are summed over them:
 * Zhang, Lipton, Li, Smola, "Dive into Deep Learning", section "Training on Multiple GPUs".  The network follows
 * LeCun, Bottou, Bengio, Haffner, "Gradient-based learning applied to document recognition", 1998. */
#include <starling.h>

#include "lenet.h"

/* ---- the network ------------------------------------------------------------------------------------------------- */

void init_params(sl_tensor **params, sl_device device)
{
#define WEIGHT(name, ...) params[name] = sl_normal(SL_SHAPE(__VA_ARGS__), 0, LENET_SCALE, .device = device);
#define BIAS(name, ...) params[name] = sl_zeros(SL_SHAPE(__VA_ARGS__), .device = device);
	LENET(WEIGHT, BIAS)
#undef WEIGHT
#undef BIAS
}

sl_tensor *lenet(sl_tensor *x, sl_tensor *const *params)
{
	sl_tensor *h1_conv = sl_conv2d(x, params[W1], params[b1]);
	sl_tensor *h1 = sl_pool2d(sl_relu(h1_conv), .type = SL_POOL_AVG, .kernel = {2, 2}, .stride = {2, 2});
	sl_tensor *h2_conv = sl_conv2d(h1, params[W2], params[b2]);
	sl_tensor *h2 = sl_pool2d(sl_relu(h2_conv), .type = SL_POOL_AVG, .kernel = {2, 2}, .stride = {2, 2});
	sl_tensor *h3 = sl_relu(sl_linear(sl_flatten(h2), params[W3], params[b3]));
	return sl_linear(h3, params[W4], params[b4]);
}

/* ---- several devices --------------------------------------------------------------------------------------------- */

/* Copies the parameters to a device and attaches gradients. */
void get_params(sl_tensor *const *params, sl_device device, sl_tensor **copies)
{
	for (int p = 0; p < NPARAMS; p++) {
		copies[p] = sl_copy_to(params[p], device);
		sl_attach_grad(copies[p]);
	}
}

/* Replaces each tensor, one a device, by the sum of all: sums onto the first, then copies to the others. */
void allreduce(sl_tensor *const *data, int n)
{
	for (int i = 1; i < n; i++) sl_add_(data[0], sl_copy_to(data[i], sl_tensor_device(data[0])));
	for (int i = 1; i < n; i++) sl_copy_(data[i], sl_copy_to(data[0], sl_tensor_device(data[i])));
}

/* The tensor itself if it is on the device, else a copy there. */
static sl_tensor *as_on(sl_tensor *t, sl_device device)
{
	return sl_device_equal(sl_tensor_device(t), device) ? t : sl_copy_to(t, device);
}

/* Cuts a batch along axis 0 into equal parts, one a device, and copies each there.  Says so and returns false if it
 * cannot be cut equally. */
bool split_and_load(sl_tensor *data, const sl_device *devices, int n, sl_tensor **parts)
{
	int64_t rows = sl_tensor_shape(data).dim[0];
	if (rows % n) {
		drv_error("split_and_load: %lld rows cannot be split equally over %d devices", (long long)rows, n);
		return false;
	}
	for (int i = 0; i < n; i++) parts[i] = as_on(sl_rows(data, i * rows / n, (i + 1) * rows / n), devices[i]);
	return true;
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

/* The data of each device. */
struct replica {
	sl_tensor *params[NPARAMS], *grads[NPARAMS];
};

struct trainer {
	const sl_device *devices;
	int n;       /* replicas */
	int current; /* the number of devices, from the first on, that have the newest values */
	struct replica replicas[DRV_MAX_DEVICES];
};

static void sgd(struct replica *r, double lr, int64_t batch_size)
{
	sl_sgd_update(r->params, r->grads, NULL, NPARAMS, .lr = lr, .rescale = 1.0 / (double)batch_size);
}

/* Gives the first n replicas the newest values. */
static void catch_up(struct trainer *t, int n)
{
	for (int i = t->current; i < n; i++)
		for (int p = 0; p < NPARAMS; p++)
			sl_copy_(t->replicas[i].params[p], sl_copy_to(t->replicas[0].params[p], t->devices[i]));
	t->current = n;
}

/* Each device goes forward and back with its part of the batch, and updates its parameters by the gradients of all. */
static bool train_batch(struct drv_training *training, sl_tensor *x, sl_tensor *y)
{
	struct trainer *t = training->model;
	int n = training->ndevices;
	catch_up(t, n);
	sl_tensor *xs[DRV_MAX_DEVICES], *ys[DRV_MAX_DEVICES], *out[DRV_MAX_DEVICES], *losses[DRV_MAX_DEVICES];
	if (!split_and_load(x, t->devices, n, xs) || !split_and_load(y, t->devices, n, ys)) return false;
	SL_RECORD {
		for (int i = 0; i < n; i++) {
			out[i] = lenet(xs[i], t->replicas[i].params);
			losses[i] = sl_softmax_cross_entropy(out[i], ys[i]);
		}
	}
	for (int i = 0; i < n; i++) sl_backward(losses[i]);
	for (int p = 0; p < NPARAMS; p++) {
		sl_tensor *grads[DRV_MAX_DEVICES] = {NULL};
		for (int i = 0; i < n; i++) grads[i] = t->replicas[i].grads[p];
		allreduce(grads, n);
	}
	for (int i = 0; i < n; i++) {
		sgd(&t->replicas[i], training->lr, sl_tensor_shape(x).dim[0]);
		drv_count(&training->sums[i], losses[i], out[i], ys[i]);
	}
	return !drv_failed();
}

/* Whole batches are dealt out to the devices in turn, so any number of rows will do. */
static bool test_batch(struct drv_training *training, sl_tensor *x, sl_tensor *y, int64_t number)
{
	struct trainer *t = training->model;
	int64_t i = number % t->current;
	sl_tensor *output = lenet(as_on(x, t->devices[i]), t->replicas[i].params);
	drv_count(&training->sums[i], NULL, output, as_on(y, t->devices[i]));
	return !drv_failed();
}

static bool init_replicas(struct drv_training *training)
{
	struct trainer *t = training->model;
	sl_tensor *params[NPARAMS];
	training->shards = t->n;
	init_params(params, t->devices[0]);
	for (int i = 0; i < t->n; i++) {
		struct replica *r = &t->replicas[i];
		get_params(params, t->devices[i], r->params);
		for (int p = 0; p < NPARAMS; p++) r->grads[p] = sl_grad(r->params[p]);
	}
	return !drv_failed();
}

/* The first replica always has the newest values. */
static void state(struct drv_training *training, struct drv_state *state)
{
	struct trainer *t = training->model;
#define X(name, ...) drv_state_add(state, #name, t->replicas[0].params[name]);
	LENET(X, X)
#undef X
}

static void restored(struct drv_training *training)
{
	struct trainer *t = training->model;
	t->current = 1;
	catch_up(t, t->n);
}

/* Trains all epochs, from parameters that each device has a copy of.  Returns the exit status. */
int train_lenet(const struct drv_options *common, const struct drv_train_options *options)
{
	struct trainer t = {.devices = common->devices, .n = common->ndevices, .current = common->ndevices};
	return drv_train(&(struct drv_training){.program = "lenet",
	                                        .title = "LeNet",
	                                        .common = common,
	                                        .options = options,
	                                        .model = &t,
	                                        .start = init_replicas,
	                                        .train = train_batch,
	                                        .test = test_batch,
	                                        .state = state,
	                                        .restored = restored});
}
