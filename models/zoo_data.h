/* Images for the networks of the zoo. */
#ifndef MODELS_ZOO_DATA_H
#define MODELS_ZOO_DATA_H

#include "driver/training.h"
#include "zoo_networks.h"

struct zoo_data {
	int64_t size; /* of images; 0: what suits data and network */
};

/* The data to train and to test with; the files in the folder decide which kind. */
bool zoo_open(struct drv_training *t, const struct zoo_data *o, const struct zoo_network *n, sl_dataset *sets[2]);
/* The image in a file, (1, 3, size, size), as networks that were trained on ImageNet see it; NULL after an error. */
sl_tensor *zoo_image(const char *path, int64_t size);

#endif
