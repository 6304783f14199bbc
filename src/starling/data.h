/* Data sets and mini-batches.  tensor.h explains the ownership of tensors, base.h the errors. */
#ifndef STARLING_DATA_H
#define STARLING_DATA_H

#include <starling/tensor.h>

#pragma GCC system_header
#ifdef __cplusplus
extern "C" {
#endif

/* Samples by number: x, the input of a network, and y, its target. */
typedef struct sl_dataset sl_dataset;

enum sl_split { SL_TRAIN, SL_TEST };

/* The folder of Debian's package dataset-fashion-mnist. */
#define SL_FASHION_MNIST_DIR "/usr/share/datasets/fashion-mnist"

SL_API sl_dataset *sl_dataset_mnist_at(const char *at, const char *SL_OPTIONAL dir, enum sl_split split);
#define sl_dataset_mnist(dir, split) sl_dataset_mnist_at(SL_HERE, dir, split)
SL_API sl_dataset *sl_dataset_idx_at(const char *at, const char *images, const char *labels, int classes);
#define sl_dataset_idx(images, labels, classes) sl_dataset_idx_at(SL_HERE, images, labels, classes)

/* Values in main memory, row-major without gaps. */
struct sl_array {
	const void *data;
	sl_shape shape;
	enum sl_dtype dtype;
};
struct sl_dataset_opts {
	int classes; /* labels, int32, are below it; 0: y has no classes, or it is 1 + the largest label */
	bool copy;   /* copy the arrays, so that the caller may free them */
};
SL_API sl_dataset *sl_dataset_arrays_at(const char *at, struct sl_array x, struct sl_array y,
                                        struct sl_dataset_opts opts);
#define sl_dataset_arrays(x, y, ...) sl_dataset_arrays_at(SL_HERE, x, y, (struct sl_dataset_opts){__VA_ARGS__})
SL_API sl_dataset *sl_dataset_npy_at(const char *at, const char *x, const char *SL_OPTIONAL y,
                                     struct sl_dataset_opts opts);
#define sl_dataset_npy(x, y, ...) sl_dataset_npy_at(SL_HERE, x, y, (struct sl_dataset_opts){__VA_ARGS__})

/* Columns are counted from 1. */
struct sl_csv_opts {
	char separator;                 /* 0: a comma */
	bool header;                    /* the first line has the names of the columns */
	int label SL_IS_(SL_UNSET_INT); /* the column of y, by default the last one; -1: none */
	bool regression;                /* y is float32; otherwise a class: a whole number from 0, or a text */
	bool missing;                   /* empty fields are NaN; otherwise they are errors */
	bool as_written SL_IS_(true);   /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_csv_opts(X) X(label, SL_UNSET_INT)
SL_API sl_dataset *sl_dataset_csv_at(const char *at, const char *path, struct sl_csv_opts opts);
#define sl_dataset_csv(path, ...) sl_dataset_csv_at(SL_HERE, path, SL_OPTIONS(sl_csv_opts, __VA_ARGS__))

struct sl_images_opts {
	int64_t height, width;        /* images are resized to this; 0: all have the size of the first */
	int channels SL_IS_(3);       /* 1: grey, 3: colours */
	bool as_written SL_IS_(true); /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_images_opts(X) X(channels, 3)
SL_API sl_dataset *sl_dataset_images_at(const char *at, const char *dir, struct sl_images_opts opts);
#define sl_dataset_images(dir, ...) sl_dataset_images_at(SL_HERE, dir, SL_OPTIONS(sl_images_opts, __VA_ARGS__))
SL_API sl_tensor *sl_image_decode_at(const char *at, const void *bytes, size_t size);
#define sl_image_decode(bytes, size) sl_image_decode_at(SL_HERE, bytes, size)
SL_API sl_dataset *sl_dataset_cifar10_at(const char *at, const char *dir, enum sl_split split);
#define sl_dataset_cifar10(dir, split) sl_dataset_cifar10_at(SL_HERE, dir, split)

struct sl_tokens_opts {
	int64_t length;                      /* of a sample; must be given */
	int64_t stride SL_IS_(SL_UNSET_INT); /* from one sample's first token to the next one's, by default length */
	int bytes SL_IS_(2);                 /* of a token in the file, 1 (text), 2 or 4 */
	bool as_written SL_IS_(true);        /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_tokens_opts(X) X(stride, SL_UNSET_INT) X(bytes, 2)
SL_API sl_dataset *sl_dataset_tokens_at(const char *at, const char *path, struct sl_tokens_opts opts);
#define sl_dataset_tokens(path, ...) sl_dataset_tokens_at(SL_HERE, path, SL_OPTIONS(sl_tokens_opts, __VA_ARGS__))

/* A sample on its way into a batch, for functions of the program (custom data sets and transforms). */
struct sl_sample {
	int64_t index;                  /* in the data set of the function */
	void *x, *y;                    /* its values; y is NULL if the data set has none */
	struct sl_array x_type, y_type; /* their shapes and data types; data is NULL */
	uint64_t random[4];             /* the position of its random numbers */
};
SL_API double sl_sample_uniform(struct sl_sample *sample);

/* The definition of a custom data set; a field of zero has its default. */
struct sl_dataset_def {
	int64_t size;
	sl_shape x_shape, y_shape;      /* of one sample */
	enum sl_dtype x_dtype, y_dtype; /* [float32, none] */
	int classes;
	/* Writes sample s->index to s->x and s->y; false: an error, reported by sl_error_raise.  Several threads call
	 * it at the same time. */
	bool (*get)(void *self, struct sl_sample *s);
	void (*free)(void *self); /* frees self with the data set; NULL: nothing to free */
	void *self;
};
SL_API sl_dataset *sl_dataset_new_at(const char *at, struct sl_dataset_def def);
#define sl_dataset_new(...) sl_dataset_new_at(SL_HERE, (struct sl_dataset_def){__VA_ARGS__})

/* ---- derived from other data sets -------------------------------------------------------------------------------- */

SL_API sl_dataset *sl_dataset_range_at(const char *at, sl_dataset *dataset, int64_t first, int64_t count);
#define sl_dataset_range(dataset, first, count) sl_dataset_range_at(SL_HERE, dataset, first, count)
SL_API sl_dataset *sl_dataset_select_at(const char *at, sl_dataset *dataset, const int64_t *numbers, int64_t count);
#define sl_dataset_select(dataset, numbers, count) sl_dataset_select_at(SL_HERE, dataset, numbers, count)
SL_API bool sl_dataset_split_at(const char *at, sl_dataset *dataset, int64_t count, uint64_t seed,
                                sl_dataset *parts[2]);
#define sl_dataset_split(dataset, count, seed, parts) sl_dataset_split_at(SL_HERE, dataset, count, seed, parts)
SL_API sl_dataset *sl_dataset_concat_at(const char *at, sl_dataset *const *datasets, int count);
#define sl_dataset_concat(...)                                                                                         \
	sl_dataset_concat_at(SL_HERE, SL_ARRAY(sl_dataset *, __VA_ARGS__), SL_COUNT_(sl_dataset *, __VA_ARGS__))

enum sl_transform_kind {
	SL_RANDOM_CROP,
	SL_CENTER_CROP,
	SL_RANDOM_FLIP,
	SL_RESIZE,
	SL_NORMALISE,
	SL_COLOUR_JITTER,
	SL_RANDOM_RESIZED_CROP,
	SL_MAP
};
/* A change of x before it enters a batch; images are (channels, height, width).  Random transforms draw new numbers for
 * each sample and epoch. */
struct sl_transform {
	enum sl_transform_kind kind;
	int64_t height, width; /* of crops and SL_RESIZE: of the result */
	int64_t pad;           /* SL_RANDOM_CROP: zeros around the image before */
	double p SL_IS_(0.5);  /* SL_RANDOM_FLIP: its probability */
	bool vertical;         /* SL_RANDOM_FLIP: upside down, not left to right */
	double mean[4],
	        std[4] SL_IS_({1, 1, 1,
	                       1}); /* SL_NORMALISE: (x - mean) / std, by channel; a second or later std of 0: 1 */
	double brightness, contrast, saturation; /* SL_COLOUR_JITTER: factors from 1 - value to 1 + value */
	/* SL_RANDOM_RESIZED_CROP: the smallest and largest part of the image's area [0.08, 1], and the smallest and
	 * largest width / height [3/4, 4/3]. */
	double area[2] SL_IS_({0.08, 1}), ratio[2] SL_IS_({3.0 / 4, 4.0 / 3});
	bool (*map)(void *arg,
	            struct sl_sample *s); /* SL_MAP: changes s->x and s->y in place; false: an error, as with get */
	void *arg;
	bool as_written SL_IS_(true); /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_transform(X) X(p, 0.5) X(std, {1, 1, 1, 1}) X(area, {0.08, 1}) X(ratio, {3.0 / 4, 4.0 / 3})
#define sl_random_crop(...) SL_OPTIONS(sl_transform, .kind = SL_RANDOM_CROP, __VA_ARGS__)
#define sl_center_crop(...) SL_OPTIONS(sl_transform, .kind = SL_CENTER_CROP, __VA_ARGS__)
#define sl_random_flip(...) SL_OPTIONS(sl_transform, .kind = SL_RANDOM_FLIP, __VA_ARGS__)
#define sl_resize_image(...) SL_OPTIONS(sl_transform, .kind = SL_RESIZE, __VA_ARGS__)
#define sl_normalise(...) SL_OPTIONS(sl_transform, .kind = SL_NORMALISE, __VA_ARGS__)
#define sl_colour_jitter(...) SL_OPTIONS(sl_transform, .kind = SL_COLOUR_JITTER, __VA_ARGS__)
#define sl_random_resized_crop(...) SL_OPTIONS(sl_transform, .kind = SL_RANDOM_RESIZED_CROP, __VA_ARGS__)
#define sl_map(...) SL_OPTIONS(sl_transform, .kind = SL_MAP, __VA_ARGS__)
SL_API sl_dataset *sl_dataset_transform_at(const char *at, sl_dataset *dataset, const struct sl_transform *transforms,
                                           int count);
#define sl_dataset_transform(dataset, ...)                                                                             \
	sl_dataset_transform_at(SL_HERE, dataset, SL_ARRAY(struct sl_transform, __VA_ARGS__),                          \
	                        SL_COUNT_(struct sl_transform, __VA_ARGS__))

/* ---- inspecting data sets ---------------------------------------------------------------------------------------- */

SL_API void sl_dataset_free(sl_dataset *SL_OPTIONAL dataset);
SL_API int64_t sl_dataset_size(const sl_dataset *dataset);
SL_API struct sl_array sl_dataset_x(const sl_dataset *dataset);
SL_API struct sl_array sl_dataset_y(const sl_dataset *dataset);
SL_API sl_shape sl_dataset_sample_shape(const sl_dataset *dataset);
SL_API int sl_dataset_classes(const sl_dataset *dataset);
SL_API const char *sl_dataset_class_name(const sl_dataset *dataset, int label);
SL_API enum sl_status sl_dataset_read_at(const char *at, const sl_dataset *dataset, int64_t index, void *x,
                                         void *SL_OPTIONAL y);
#define sl_dataset_read(dataset, index, x, y) sl_dataset_read_at(SL_HERE, dataset, index, x, y)

/* ---- mini-batches ------------------------------------------------------------------------------------------------ */

/* Rows that do not fill the last batch: a smaller batch, or left out. */
enum sl_last_batch { SL_LAST_KEEP, SL_LAST_DISCARD };

struct sl_loader_opts {
	int64_t batch_size; /* must be given */
	bool shuffle;       /* a new order in each epoch, from the seed */
	uint64_t seed;
	enum sl_last_batch last;
	int64_t limit SL_IS_(SL_UNSET_INT); /* number of samples used, the first ones; by default all */
	int prefetch SL_IS_(2);             /* number of batches prepared ahead, which are kept in memory */
	sl_device device;                   /* of the batches */
	int workers; /* threads that read and transform samples ahead; 0: a request for a batch does so.
	                           * A set of IDX files needs none: its batches are made by operations */
	int rank,
	        ranks SL_IS_(
	                1); /* this loader returns the rank-th part, from 0, of each batch of ranks × batch_size rows */
	bool as_written SL_IS_(true); /* see SL_OPTIONS */
};
#define SL_DEFAULTS_sl_loader_opts(X) X(limit, SL_UNSET_INT) X(prefetch, 2) X(ranks, 1)
typedef struct sl_loader sl_loader;
SL_API sl_loader *sl_loader_new_at(const char *at, sl_dataset *dataset, struct sl_loader_opts opts);
#define sl_loader_new(dataset, ...) sl_loader_new_at(SL_HERE, dataset, SL_OPTIONS(sl_loader_opts, __VA_ARGS__))
SL_API void sl_loader_free(sl_loader *SL_OPTIONAL loader);
SL_API int64_t sl_loader_batches(const sl_loader *loader);
SL_API int64_t sl_loader_samples(const sl_loader *loader);

/* A batch: n samples along a first axis; images are float32 (n, channels, height, width) in [0, 1], labels int32 (n).
 * The tensors belong to the innermost scope. */
struct sl_batch {
	sl_tensor *x, *y; /* y is NULL if the samples have none */
	int64_t index;    /* within the epoch, from 0 */
};
SL_API bool sl_loader_next_at(const char *at, sl_loader *loader, struct sl_batch *batch);
#define sl_loader_next(loader, batch) sl_loader_next_at(SL_HERE, loader, batch)
SL_API enum sl_status sl_loader_end_epoch_at(const char *at, sl_loader *loader);
#define sl_loader_end_epoch(loader) sl_loader_end_epoch_at(SL_HERE, loader)

#ifdef __cplusplus
}
#endif
#endif
