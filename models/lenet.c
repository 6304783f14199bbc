/* LeNet from scratch, trained on Fashion-MNIST on one or several devices.
 *
 * Parameters are copied to each device by hand, batches are split over the devices, gradients are summed over them:
 * Zhang, Lipton, Li, Smola, "Dive into Deep Learning", section "Training on Multiple GPUs".  The network follows
 * LeCun, Bottou, Bengio, Haffner, "Gradient-based learning applied to document recognition", 1998. */
#include "lenet.h"

/* ---- the network ------------------------------------------------------------------------------------------------- */

static const double SCALE = 0.01; /* of the first weights */

void init_params(sl_tensor **params, sl_device device)
{
#define WEIGHT(name, ...) params[name] = sl_normal(SL_SHAPE(__VA_ARGS__), 0, SCALE, .device = device);
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

/* How many rows are largest where their label says, as a tensor. */
static sl_tensor *count_correct(sl_tensor *output, sl_tensor *labels)
{
	return sl_sum(sl_cast(sl_eq(sl_argmax(output, 1), labels), SL_FLOAT32));
}

static void sgd(struct replica *r, double lr, int64_t batch_size)
{
	sl_sgd_update(r->params, r->grads, NULL, NPARAMS, .lr = lr, .rescale = 1.0 / (double)batch_size);
}

bool train_batch(struct trainer *t, sl_tensor *x, sl_tensor *y, double lr)
{
	sl_tensor *xs[DRV_MAX_DEVICES], *ys[DRV_MAX_DEVICES], *out[DRV_MAX_DEVICES], *losses[DRV_MAX_DEVICES];
	if (!split_and_load(x, t->devices, t->n, xs) || !split_and_load(y, t->devices, t->n, ys)) return false;
	SL_RECORD {
		for (int i = 0; i < t->n; i++) {
			out[i] = lenet(xs[i], t->replicas[i].params);
			losses[i] = sl_softmax_cross_entropy(out[i], ys[i]);
		}
	}
	for (int i = 0; i < t->n; i++) sl_backward(losses[i]);
	for (int p = 0; p < NPARAMS; p++) {
		sl_tensor *grads[DRV_MAX_DEVICES];
		for (int i = 0; i < t->n; i++) grads[i] = t->replicas[i].grads[p];
		allreduce(grads, t->n);
	}
	for (int i = 0; i < t->n; i++) {
		struct replica *r = &t->replicas[i];
		sgd(r, lr, sl_tensor_shape(x).dim[0]);
		sl_add_(r->loss, sl_sum(losses[i]));
		sl_add_(r->correct, count_correct(out[i], ys[i]));
	}
	return !drv_failed();
}

/* Trains on the next batch.  Rows of an epoch's last batch that do not go round equally are left out; another order
 * brings them in the next epoch.  Returns false after the last batch, or an error. */
static bool train_next(struct trainer *t, int64_t *images)
{
	bool more = false;
	SL_SCOPE {
		struct sl_batch b;
		if (!sl_loader_next(t->train, &b)) break;
		int64_t rows = sl_tensor_shape(b.x).dim[0];
		rows -= rows % t->n;
		more = rows == 0 || train_batch(t, sl_rows(b.x, 0, rows), sl_rows(b.y, 0, rows), t->options->lr);
		*images += rows;
	}
	return more;
}

/* The sum of one figure over the devices; waits for it. */
static double total(const struct trainer *t, size_t figure)
{
	double sum = 0;
	for (int i = 0; i < t->n; i++) sum += sl_item(*(sl_tensor **)((char *)&t->replicas[i] + figure));
	return sum;
}

/* Counts the right answers to the next batch on replica r; false after the last batch. */
static bool test_next(struct trainer *t, struct replica *r, sl_device device)
{
	bool more = false;
	SL_SCOPE {
		struct sl_batch b;
		if (!sl_loader_next(t->test, &b)) break;
		sl_tensor *output = lenet(as_on(b.x, device), r->params);
		sl_add_(r->correct, count_correct(output, as_on(b.y, device)));
		more = !drv_failed();
	}
	return more;
}

/* Whole batches are dealt out to the devices in turn, so any number of rows will do. */
double evaluate_accuracy(struct trainer *t)
{
	for (int i = 0; i < t->n; i++) sl_fill_(t->replicas[i].correct, 0);
	for (int i = 0; test_next(t, &t->replicas[i], t->devices[i]);) i = (i + 1) % t->n;
	return total(t, offsetof(struct replica, correct)) / (double)sl_loader_samples(t->test);
}

/* ---- progress ---------------------------------------------------------------------------------------------------- */

/* Figures asked for and shown later: what is computed, not what is queued, and hardly ever a wait. */
struct glance {
	sl_tensor *loss; /* the first device's, as it will be after so many images */
	int64_t images;
};

static void glance_drop(struct glance *g)
{
	sl_release(g->loss);
	g->loss = NULL;
}

/* Shows the figures that were asked for last time, and asks for new ones. */
static void show(struct drv_progress *bar, struct glance *g, const struct trainer *t, int64_t images)
{
	if (g->loss) drv_progress_draw(bar, g->images, sl_item(g->loss) * t->n / (double)g->images);
	glance_drop(g);
	SL_SCOPE {
		*g = (struct glance){sl_retain(sl_clone(t->replicas[0].loss)), images};
	}
	bar->drawn = drv_now();
}

/* ---- epochs ------------------------------------------------------------------------------------------------------ */

static bool train_epoch(struct trainer *t, int64_t number, struct epoch *e)
{
	struct drv_progress bar;
	struct glance glance = {0};
	char label[64];
	snprintf(label, sizeof label, "epoch %lld/%lld", (long long)number, (long long)t->options->epochs);
	for (int i = 0; i < t->n; i++) {
		sl_fill_(t->replicas[i].loss, 0);
		sl_fill_(t->replicas[i].correct, 0);
	}
	*e = (struct epoch){.seconds = drv_now()};
	drv_progress_start(&bar, &t->options->common, label, sl_loader_samples(t->train));
	while (!drv_interrupted() && train_next(t, &e->images))
		if (drv_progress_due(&bar)) show(&bar, &glance, t, e->images);
	glance_drop(&glance);
	bool ok = drv_sync();
	e->seconds = drv_now() - e->seconds;
	drv_progress_end(&bar);
	return ok && !drv_interrupted();
}

/* Trains one epoch and tests; false after an error or SIGINT. */
static bool run_epoch(struct trainer *t, int64_t number, struct epoch *e)
{
	if (!train_epoch(t, number, e)) return false;
	e->loss = total(t, offsetof(struct replica, loss)) / (double)e->images;
	e->train_accuracy = total(t, offsetof(struct replica, correct)) / (double)e->images;
	e->test_accuracy = evaluate_accuracy(t);
	if (!drv_sync()) return false;
	drv_print(&t->options->common, "epoch %lld, time %.1f sec, test acc %.2f\n", (long long)number, e->seconds,
	          e->test_accuracy);
	return true;
}

static void init_replicas(struct trainer *t)
{
	sl_tensor *params[NPARAMS];
	init_params(params, t->devices[0]);
	for (int i = 0; i < t->n; i++) {
		struct replica *r = &t->replicas[i];
		get_params(params, t->devices[i], r->params);
		for (int p = 0; p < NPARAMS; p++) r->grads[p] = sl_grad(r->params[p]);
		r->loss = sl_zeros(SL_SCALAR, .device = t->devices[i]);
		r->correct = sl_zeros(SL_SCALAR, .device = t->devices[i]);
	}
}

/* Trains all epochs, from parameters that each device has a copy of.  Returns the exit status. */
int train(struct trainer *t)
{
	init_replicas(t);
	while (t->done < t->options->epochs) {
		if (!run_epoch(t, t->done + 1, &t->epochs[t->done]))
			return drv_interrupted() ? DRV_INTERRUPTED : DRV_ERROR;
		t->done++;
		if (t->after_epoch && !t->after_epoch(t)) return DRV_ERROR;
	}
	return DRV_OK;
}
