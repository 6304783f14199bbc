/* Data sets and mini-batches.  Tensors belong as tensor.h says, errors are reported as base.h describes. */
#ifndef STARLING_DATA_H
#define STARLING_DATA_H

#include <starling/tensor.h>

#ifdef __cplusplus
#pragma GCC system_header
extern "C" {
#endif

/* Labelled images in main memory. */
typedef struct sl_dataset sl_dataset;

enum sl_split { SL_TRAIN, SL_TEST };

/* The folder of Debian's package dataset-fashion-mnist. */
#define SL_FASHION_MNIST_DIR "/usr/share/datasets/fashion-mnist"

SL_API sl_dataset *sl_dataset_mnist_at(const char *at, const char *dir, enum sl_split split);
#define sl_dataset_mnist(dir, split) sl_dataset_mnist_at(SL_HERE, dir, split)
SL_API sl_dataset *sl_dataset_idx_at(const char *at, const char *images, const char *labels, int classes);
#define sl_dataset_idx(images, labels, classes) sl_dataset_idx_at(SL_HERE, images, labels, classes)
SL_API void sl_dataset_free(sl_dataset *dataset);
SL_API int64_t sl_dataset_size(const sl_dataset *dataset);
SL_API sl_shape sl_dataset_sample_shape(const sl_dataset *dataset);
SL_API int sl_dataset_classes(const sl_dataset *dataset);
SL_API const char *sl_dataset_class_name(const sl_dataset *dataset, int label);

/* What to do with the rows that do not fill the last batch. */
enum sl_last_batch { SL_LAST_KEEP, SL_LAST_DISCARD };

struct sl_loader_opts {
	int64_t batch_size;       /* must be given */
	bool shuffle;             /* a new order in each epoch, from the seed */
	uint64_t seed;
	enum sl_last_batch last;
	int64_t limit;            /* use only so many samples, the first ones; 0: all */
	int prefetch;             /* number of batches prepared ahead; 0 means 2 */
	sl_device device;         /* of the batches */
};
typedef struct sl_loader sl_loader;
SL_API sl_loader *sl_loader_new_at(const char *at, sl_dataset *dataset, struct sl_loader_opts opts);
#define sl_loader_new(dataset, ...) sl_loader_new_at(SL_HERE, dataset, (struct sl_loader_opts){__VA_ARGS__})
SL_API void sl_loader_free(sl_loader *loader);
SL_API int64_t sl_loader_batches(const sl_loader *loader);
SL_API int64_t sl_loader_samples(const sl_loader *loader);

/* A batch: images float32 (n, 1, height, width) in [0, 1], labels int32 (n).  They belong to the innermost scope. */
struct sl_batch {
	sl_tensor *x, *y;
	int64_t index; /* within the epoch, from 0 */
};
SL_API bool sl_loader_next_at(const char *at, sl_loader *loader, struct sl_batch *batch);
#define sl_loader_next(loader, batch) sl_loader_next_at(SL_HERE, loader, batch)

#ifdef __cplusplus
}
#endif
#endif
