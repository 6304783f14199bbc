/* LeNet from scratch: what its training and its command line know of each other. */
#ifndef MODELS_LENET_H
#define MODELS_LENET_H

#include "common.h"

#define LENET(WEIGHT, BIAS)                                                                                            \
	WEIGHT(W1, 20, 1, 3, 3)                                                                                        \
	BIAS(b1, 20)                                                                                                   \
	WEIGHT(W2, 50, 20, 5, 5)                                                                                       \
	BIAS(b2, 50)                                                                                                   \
	WEIGHT(W3, 800, 128)                                                                                           \
	BIAS(b3, 128)                                                                                                  \
	WEIGHT(W4, 128, 10)                                                                                            \
	BIAS(b4, 10)

enum parameter {
#define X(name, ...) name,
	LENET(X, X)
#undef X
	        NPARAMS
};

struct options {
	struct drv_options common;
	const char *data, *plot;
	int64_t batch_size, epochs, limit;
	double lr;
	bool demo;
};

struct epoch {
	int64_t images;
	double seconds, loss, train_accuracy, test_accuracy;
};

/* What a device has of its own.  loss and correct are sums over an epoch, kept there: nobody waits for them. */
struct replica {
	sl_tensor *params[NPARAMS], *grads[NPARAMS];
	sl_tensor *loss, *correct;
};

struct trainer {
	const struct options *options;
	const sl_device *devices;
	int n;
	struct replica replicas[DRV_MAX_DEVICES];
	sl_loader *train, *test;
	struct epoch *epochs; /* of which so many are done */
	int64_t done;
	bool (*after_epoch)(const struct trainer *t);
};

void init_params(sl_tensor **params, sl_device device);
sl_tensor *lenet(sl_tensor *x, sl_tensor *const *params);

void get_params(sl_tensor *const *params, sl_device device, sl_tensor **copies);
void allreduce(sl_tensor *const *data, int n);
bool split_and_load(sl_tensor *data, const sl_device *devices, int n, sl_tensor **parts);

bool train_batch(struct trainer *t, sl_tensor *x, sl_tensor *y, double lr);
double evaluate_accuracy(struct trainer *t);
int train(struct trainer *t);

#endif
