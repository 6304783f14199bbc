/* Blocks of the zoo's networks.  Children have the names of Gluon's, so that files of parameters fit. */
#include <stdlib.h>

#include <starling/elementwise.h>
#include <starling/functions.h>

#include "zoo_blocks.h"

/* ---- blocks that join -------------------------------------------------------------------------------------------- */

enum { MOST = 8 }; /* branches */

struct join {
	sl_block base;
	enum zoo_join join;
	bool with_input;
	enum sl_activation activation;
};

static sl_tensor *join_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	const struct join *j = (const struct join *)self;
	sl_tensor *parts[MOST + 1];
	int n = 0;
	(void)nin;
	if (j->with_input) parts[n++] = in[0];
	for (int i = 0; i < sl_block_children(self) && n <= MOST; i++)
		if (!(parts[n++] = sl_forward(sl_block_child(self, i), in[0]))) return NULL;
	sl_tensor *y = n > 1 && j->join == ZOO_CONCAT ? sl_concat(parts, n, 1) : parts[0];
	for (int i = 1; i < n && j->join == ZOO_SUM; i++) y = sl_add(y, parts[i]);
	return sl_activate(y, j->activation);
}

sl_block *zoo_join(enum zoo_join join, bool with_input, enum sl_activation activation)
{
	struct join *j = calloc(1, sizeof *j);
	if (!j || sl_block_init(&j->base, "Join", join_forward, NULL) != SL_OK) {
		free(j);
		return NULL;
	}
	*j = (struct join){j->base, join, with_input, activation};
	return &j->base;
}

/* ---- residual, the second version -------------------------------------------------------------------------------- */

struct preactivated {
	sl_block base;
	int count;
	sl_block *downsample;
};

static sl_tensor *preactivated_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	const struct preactivated *p = (const struct preactivated *)self;
	sl_tensor *x = in[0], *beside = in[0];
	(void)nin;
	for (int i = 0; i < p->count; i++) {
		x = sl_relu(sl_forward(sl_block_child(self, 2 * i), x));
		if (!i && p->downsample) beside = sl_forward(p->downsample, x);
		x = sl_forward(sl_block_child(self, 2 * i + 1), x);
	}
	return sl_add(x, beside);
}

sl_block *zoo_preactivated(sl_block *const *convolutions, int count, sl_block *downsample)
{
	static const char *const norms[] = {"bn1", "bn2", "bn3"}, *const convs[] = {"conv1", "conv2", "conv3"};
	struct preactivated *p = calloc(1, sizeof *p);
	if (!p || sl_block_init(&p->base, "PreActivated", preactivated_forward, NULL) != SL_OK) {
		free(p);
		for (int i = 0; i < count; i++) sl_block_free(convolutions[i]);
		sl_block_free(downsample);
		return NULL;
	}
	for (int i = 0; i < count; i++) {
		sl_block_add(&p->base, norms[i], sl_batch_norm_layer());
		sl_block_add(&p->base, convs[i], convolutions[i]);
	}
	p->count = count;
	p->downsample = downsample ? sl_block_add(&p->base, "downsample", downsample) : NULL;
	return &p->base;
}

/* ---- others ------------------------------------------------------------------------------------------------------ */

static sl_tensor *relu6(sl_tensor *x)
{
	return sl_clip(x, 0, 6);
}

sl_block *zoo_relu6(void)
{
	return sl_lambda("relu6", relu6);
}

static sl_tensor *net_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)nin;
	return sl_forward(sl_block_child(self, 1), sl_forward(sl_block_child(self, 0), in[0]));
}

sl_block *zoo_net(sl_block *features, sl_block *output)
{
	sl_block *net = calloc(1, sizeof *net);
	if (!net || sl_block_init(net, "Zoo", net_forward, NULL) != SL_OK) {
		free(net);
		sl_block_free(features);
		sl_block_free(output);
		return NULL;
	}
	sl_block_add(net, "features", features);
	sl_block_add(net, "output", output);
	if (sl_error() == SL_OK) return net;
	sl_block_free(net);
	return NULL;
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

sl_block *zoo_sequence(void)
{
	return sl_sequential_at(SL_HERE, NULL, 0);
}

void zoo_add_block(sl_block *sequence, sl_block *block)
{
	sl_block_add(sequence, NULL, block);
}

static sl_block *conv(const struct zoo_layer *l)
{
	int stride = l->stride ? l->stride : 1;
	return sl_conv2d_layer(l->channels, .kernel = {l->kernel[0], l->kernel[1]}, .stride = {stride, stride},
	                       .pad = {l->pad[0], l->pad[1]}, .no_bias = !l->bias,
	                       .activation = l->relu ? SL_RELU : SL_IDENTITY);
}

static sl_block *layer(const struct zoo_layer *l)
{
	switch (l->kind) {
	case ZOO_CONV: return conv(l);
	case ZOO_NORM: return sl_batch_norm_layer(.eps = l->eps > 0 ? l->eps : 1e-5);
	case ZOO_RELU: return sl_activation_layer(SL_RELU);
	case ZOO_MAX:
		return sl_max_pool2d_layer(l->kernel[0], .stride = {l->stride ? l->stride : SL_UNSET_INT},
		                           .pad = {l->pad[0], l->pad[0]}, .ceil = l->ceil);
	case ZOO_AVERAGE:
		return sl_avg_pool2d_layer(l->kernel[0], .stride = {l->stride ? l->stride : SL_UNSET_INT},
		                           .pad = {l->pad[0], l->pad[0]});
	case ZOO_GLOBAL: return sl_global_avg_pool2d_layer();
	case ZOO_FLATTEN: return sl_flatten_layer();
	case ZOO_DENSE: return sl_dense(l->channels, .activation = l->relu ? SL_RELU : SL_IDENTITY);
	default: return sl_dropout_layer(0.5);
	}
}

void zoo_add(sl_block *sequence, struct zoo_layer l)
{
	zoo_add_block(sequence, layer(&l));
}

/* Adds the rows up to the group's end; returns the row behind that. */
static const struct zoo_layer *add_group(sl_block *group, const struct zoo_layer *row, int64_t classes)
{
	for (; row->kind != ZOO_END; row++) {
		struct zoo_layer l = *row;
		if (l.channels == ZOO_CLASSES) l.channels = (int)classes;
		if (l.kind > ZOO_BRANCHES) {
			zoo_add(group, l);
			continue;
		}
		sl_block *inner = l.kind == ZOO_SEQUENCE ? zoo_sequence() : zoo_join(ZOO_CONCAT, false, SL_IDENTITY);
		row = add_group(inner, row + 1, classes) - 1;
		zoo_add_block(group, inner);
	}
	return row + 1;
}

sl_block *zoo_layers(const struct zoo_layer *table, int64_t classes)
{
	sl_block *all = zoo_sequence();
	add_group(all, table, classes);
	return all;
}
