/* LeNet from scratch: parameters, training, and the parts that --demo shows. */
#ifndef MODELS_LENET_H
#define MODELS_LENET_H

#include "driver/training.h"

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

#define LENET_SCALE 0.01 /* of the first weights */

void init_params(sl_tensor **params, sl_device device);
sl_tensor *lenet(sl_tensor *x, sl_tensor *const *params);

void get_params(sl_tensor *const *params, sl_device device, sl_tensor **copies);
void allreduce(sl_tensor *const *data, int n);
bool split_and_load(sl_tensor *data, const sl_device *devices, int n, sl_tensor **parts);

int train_lenet(const struct drv_options *common, const struct drv_train_options *options);

#endif
