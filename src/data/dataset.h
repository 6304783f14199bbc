/* Data sets from the inside: what the loader takes from one. */
#ifndef SLP_DATASET_H
#define SLP_DATASET_H

#include <starling.h>

enum { SLP_MAX_CLASSES = 256, SLP_CLASS_NAME_MAX = 16 };

struct sl_dataset {
	sl_tensor *images; /* uint8 (n, 1, height, width) */
	sl_tensor *labels; /* uint8 (n) */
	int64_t size;
	sl_shape sample; /* of one image */
	int classes;
	char names[SLP_MAX_CLASSES][SLP_CLASS_NAME_MAX];
};

#endif
