/* Building blocks of the zoo's networks: layers as rows of tables, and blocks as in Gluon's zoo. */
#ifndef MODELS_ZOO_BLOCKS_H
#define MODELS_ZOO_BLOCKS_H

#include <starling/nn.h>

enum zoo_kind {
	ZOO_END, /* of a sequence, of branches, of the table */
	ZOO_SEQUENCE,
	ZOO_BRANCHES, /* their results are concatenated along the channels */
	ZOO_CONV,
	ZOO_NORM,
	ZOO_RELU,
	ZOO_MAX,
	ZOO_AVERAGE,
	ZOO_GLOBAL, /* average of the whole image */
	ZOO_FLATTEN,
	ZOO_DENSE,
	ZOO_DROPOUT, /* of one half */
};
enum { ZOO_CLASSES = -1 }; /* channels: one a class */

struct zoo_layer {
	enum zoo_kind kind;
	int channels;
	int kernel[2], stride, pad[2];
	bool bias, relu;
	bool ceil;  /* ZOO_MAX: windows that overlap the end count too */
	double eps; /* ZOO_NORM; 0: as usual */
};

/* A sequence of the layers up to the table's ZOO_END. */
sl_block *zoo_layers(const struct zoo_layer *table, int64_t classes);

/* A sequence of nothing yet; zoo_add gives it a further layer. */
sl_block *zoo_sequence(void);
void zoo_add(sl_block *sequence, struct zoo_layer layer);
void zoo_add_block(sl_block *sequence, sl_block *block);

/* The results of several blocks for the same image, concatenated. */
enum zoo_join { ZOO_SUM, ZOO_CONCAT };
sl_block *zoo_join(enum zoo_join join, bool with_input, enum sl_activation activation);
/* Each convolution after a normalisation and a ReLU of its input; "downsample" (NULL: nothing) sees the first of
 * these. */
sl_block *zoo_preactivated(sl_block *const *convolutions, int count, sl_block *downsample);
sl_block *zoo_relu6(void);
/* Features, then an output. */
sl_block *zoo_net(sl_block *features, sl_block *output);

#endif
